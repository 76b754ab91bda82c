"""One data set of a study: all scores at once, and the tallies and curves that methods ask of it.

Studies repeat small problems thousands of times. Where `matchbound.evaluate` scores pairs one by one, this computes the
few thousand scores of one sample as a matrix; they are counted as those of any table.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.tables import tally_comparisons
from matchbound.counts.tally import AllPairs, Tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.errors import MatchboundWarning

if TYPE_CHECKING:
    from matchbound.results.roc import RocCurve

Metric = Literal["far", "frr", "frr@far"]


@dataclass(frozen=True)
class Cell:
    """One rate that a study asks about.

    metric
        ``"far"``, ``"frr"``, or ``"frr@far"``: FRR at the sample's own threshold for a FAR.
    target
        The rate that the threshold was meant to give; the FAR of ``"frr@far"``.
    threshold
        In the units of the scores; the population's, for ``"frr@far"``.
    truth
        The rate of the population at this threshold: what an interval must cover.
    """

    metric: Metric
    target: float
    threshold: float
    truth: float


@dataclass(frozen=True, eq=False)
class Sample:
    """Vectors of G identities, identity after identity, and the cells that are asked about.

    vectors : shape (n, d)
    sizes : int64 array, shape (G,)
        M_i.
    similarity
        As in `Embeddings`.
    cells
        The rates of the study; methods give one interval for each and level.
    """

    vectors: NDArray[Any] = field(repr=False)
    sizes: IntArray
    similarity: Similarity
    cells: tuple[Cell, ...]

    @property
    def n_identities(self) -> int:
        """G."""
        return int(self.sizes.size)

    @property
    def distance(self) -> bool:
        """Whether small scores mean "same"."""
        return self.similarity == "euclidean"

    def embeddings(self) -> Embeddings:
        """The sample as the rest of the package knows it."""
        names = np.repeat(np.arange(self.n_identities), self.sizes)
        return Embeddings(self.vectors, names, similarity=self.similarity)

    @cached_property
    def far_cells(self) -> tuple[int, ...]:
        """Positions of the FAR cells."""
        return tuple(c for c, cell in enumerate(self.cells) if cell.metric == "far")

    @cached_property
    def frr_cells(self) -> tuple[int, ...]:
        """Positions of the FRR cells."""
        return tuple(c for c, cell in enumerate(self.cells) if cell.metric == "frr")

    @cached_property
    def curve_cells(self) -> tuple[int, ...]:
        """Positions of the cells that are points of a curve."""
        return tuple(c for c, cell in enumerate(self.cells) if cell.metric == "frr@far")

    @cached_property
    def curve(self) -> RocCurve:
        """The curve of the sample."""
        from matchbound.calls.roc import roc

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)
            return roc(self.embeddings(), workers=1)

    @cached_property
    def impostor_scores(self) -> FloatArray:
        """Oriented scores (large means "same") of impostor comparisons, shape (N,)."""
        return self._scores[self._layout.impostor]

    @cached_property
    def genuine_scores(self) -> FloatArray:
        """Oriented scores of genuine comparisons, shape (T,)."""
        return self._scores[self._layout.genuine]

    @cached_property
    def far_tally(self) -> Tally:
        """At the thresholds of the FAR cells, with pairs kept."""
        return self.tally([self.cells[c].threshold for c in self.far_cells], pairs=True)

    @cached_property
    def frr_tally(self) -> Tally:
        """At the thresholds of the FRR cells."""
        return self.tally([self.cells[c].threshold for c in self.frr_cells])

    @cached_property
    def pair_errors(self) -> FloatArray:
        """n_ij at the thresholds of the FAR cells, symmetric, shape (cells, G, G)."""
        tables = self.far_tally.impostor.erred or ()
        n = np.zeros((len(tables), self.n_identities, self.n_identities))
        for k, table in enumerate(tables):
            n[k, table.first, table.second] = n[k, table.second, table.first] = table.count
        return n

    def tally(self, thresholds: Sequence[float] | FloatArray, *, pairs: bool = False) -> Tally:
        """The tally that ``matchbound.tally`` would give at these thresholds."""
        made = tally_comparisons(self._comparisons, np.asarray(thresholds, dtype=np.float64).reshape(-1), pairs=pairs)
        return replace(made, impostor=replace(made.impostor, compared=AllPairs(self.sizes)))

    @cached_property
    def _comparisons(self) -> Comparisons:
        """All pairs of rows, with the scores of the matrix."""
        layout = self._layout
        scores = np.concatenate([self.impostor_scores, self.genuine_scores])
        return Comparisons.from_fields(
            identities=np.arange(self.n_identities),
            a=layout.a,
            b=layout.b,
            score=-scores if self.distance else scores,
            distance=self.distance,
            instances=np.arange(int(self.sizes.sum())),
            instance_a=np.concatenate([layout.impostor[0], layout.genuine[0]]),
            instance_b=np.concatenate([layout.impostor[1], layout.genuine[1]]),
            group=None,
            notes=(),
            origin=(),
            anonymous=False,
        )

    @cached_property
    def _layout(self) -> _Layout:
        return _layout_of(tuple(self.sizes.tolist()))

    @cached_property
    def _scores(self) -> FloatArray:
        """Oriented scores of all pairs of rows, shape (n, n)."""
        x = np.asarray(self.vectors, dtype=np.float64)
        product = x @ x.T
        if self.similarity == "dot":
            return product
        lengths = np.einsum("ij,ij->i", x, x)
        if self.similarity == "cosine":
            roots = np.sqrt(lengths)
            result: FloatArray = product / roots[:, None] / roots
            return result
        negative: FloatArray = -np.sqrt(np.maximum(lengths[:, None] + lengths - 2.0 * product, 0.0))
        return negative


@dataclass(frozen=True, eq=False)
class _Layout:
    """Where the comparisons of a sample lie in its matrix of scores.

    impostor, genuine : pairs of int64 arrays, shapes (N,) and (T,)
        Rows and columns, above the diagonal.
    a, b : int64 arrays, shape (N + T,)
        The identities of both sides, of impostor comparisons and then of genuine ones.
    """

    impostor: tuple[IntArray, IntArray]
    genuine: tuple[IntArray, IntArray]
    a: IntArray
    b: IntArray


@lru_cache(maxsize=4)
def _layout_of(sizes: tuple[int, ...]) -> _Layout:
    owner = np.repeat(np.arange(len(sizes)), sizes)
    first, second = np.triu_indices(owner.size, k=1)
    same = owner[first] == owner[second]
    impostor = (first[~same], second[~same])
    genuine = (first[same], second[same])
    a, b = (owner[np.concatenate([impostor[side], genuine[side]])] for side in (0, 1))
    return _Layout(impostor, genuine, a, b)
