"""One data set of a study: all distances at once, counted by identity pair at many thresholds.

Studies repeat small problems thousands of times. Where `matchbound.evaluate` streams blocks of millions of pairs, this
computes the few thousand distances of one sample as a matrix and counts them in one pass. The counts are the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import AllPairs, GenuineTally, ImpostorTally, PairTable, Tally
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
        return self._pair_errors(self._oriented([self.cells[c].threshold for c in self.far_cells])).astype(np.float64)

    def tally(self, thresholds: Sequence[float] | FloatArray, *, pairs: bool = False) -> Tally:
        """The tally that ``matchbound.tally`` would give at these thresholds."""
        grid = self._oriented(thresholds)
        sizes = self.sizes
        n = self._pair_errors(grid)
        instances = int(sizes.sum())
        squares = int((sizes**2).sum())
        erred: tuple[PairTable, ...] | None = None
        if pairs:
            erred = tuple(_table(errors) for errors in n)
        m = np.multiply.outer(sizes, sizes)
        return Tally(
            identities=np.arange(self.n_identities),
            thresholds=np.asarray(thresholds, dtype=np.float64),
            distance=self.distance,
            instances=sizes,
            genuine=self._genuine(grid),
            impostor=ImpostorTally(
                comparisons=sizes * (instances - sizes),
                errors=n.sum(axis=2),
                sum_mm=squares**2 - int((sizes**4).sum()),
                sum_nm=np.einsum("kij,ij->k", n, m),
                sum_nn=np.einsum("kij,kij->k", n, n),
                compared=AllPairs(sizes),
                erred=erred,
            ),
        )

    def _oriented(self, thresholds: Sequence[float] | FloatArray) -> FloatArray:
        grid = np.asarray(thresholds, dtype=np.float64).reshape(-1)
        return -grid if self.distance else grid

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

    def _pair_errors(self, grid: FloatArray) -> IntArray:
        """n_ij, the impostor comparisons of {i, j} with a score at or above each threshold; shape (K, G, G)."""
        count = self.n_identities
        reached = _reached(self.impostor_scores, grid, self._layout.pair, count * count)
        n = reached.reshape(grid.size, count, count)
        return n + n.transpose(0, 2, 1)

    def _genuine(self, grid: FloatArray) -> GenuineTally:
        comparisons = self.sizes * (self.sizes - 1) // 2
        reached = _reached(self.genuine_scores, grid, self._layout.owner, self.n_identities)
        return GenuineTally(comparisons, comparisons - reached)


@dataclass(frozen=True, eq=False)
class _Layout:
    """Where the comparisons of a sample lie in its matrix of scores.

    impostor, genuine : pairs of int64 arrays, shapes (N,) and (T,)
        Rows and columns, above the diagonal.
    pair : int64 array, shape (N,)
        i·G + j of each impostor comparison.
    owner : int64 array, shape (T,)
    """

    impostor: tuple[IntArray, IntArray]
    genuine: tuple[IntArray, IntArray]
    pair: IntArray
    owner: IntArray


@lru_cache(maxsize=4)
def _layout_of(sizes: tuple[int, ...]) -> _Layout:
    owner = np.repeat(np.arange(len(sizes)), sizes)
    first, second = np.triu_indices(owner.size, k=1)
    same = owner[first] == owner[second]
    impostor = (first[~same], second[~same])
    genuine = (first[same], second[same])
    pair = owner[impostor[0]] * len(sizes) + owner[impostor[1]]
    return _Layout(impostor, genuine, pair, owner[genuine[0]])


def _reached(scores: FloatArray, grid: FloatArray, owner: IntArray, n_owners: int) -> IntArray:
    """How many scores of each owner are at or above each threshold, shape (K, n_owners)."""
    distinct, place = np.unique(grid, return_inverse=True)
    level = np.searchsorted(distinct, scores, side="right")
    flat = np.bincount(level * np.int64(n_owners) + owner, minlength=(distinct.size + 1) * n_owners)
    table = flat.reshape(distinct.size + 1, n_owners)[1:]
    return np.cumsum(table[::-1], axis=0)[::-1][place.reshape(-1)].astype(np.int64)


def _table(errors: IntArray) -> PairTable:
    first, second = np.nonzero(np.triu(errors, k=1))
    return PairTable(first.astype(np.int64), second.astype(np.int64), errors[first, second])
