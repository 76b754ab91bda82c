"""Real data in two halves: one sets thresholds, the other is the population that data sets are drawn from.

Data sets are drawn without replacement (the paper's §6.2), so that nobody is compared with a copy of themselves. A data
set of G of the half's H identities then differs from the half by less than it would from an unlimited population: to
first order the variance of a rate is (1 − G/H) times as large, and intervals seem to cover more than they would. Where
G/H is not small, look at ``coverage_adjusted`` and not at ``coverage``.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import IntArray
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.errors import DataError, MatchboundWarning
from matchbound.study.samples import Cell, Sample

EXACT_ROWS = 10_000
"""All scores of a half are held at once, to set thresholds."""
SPLIT_STREAM = 1 << 32
"""The seed's stream that splits identities: none that a replication uses."""


@dataclass(frozen=True, eq=False, repr=False)
class Half:
    """Embeddings of some identities, identity after identity.

    vectors : shape (n, d)
    sizes : int64 array, shape (H,)
        M_i.
    """

    vectors: NDArray[Any] = field(repr=False)
    sizes: IntArray
    similarity: Similarity

    @property
    def n_identities(self) -> int:
        """H."""
        return int(self.sizes.size)

    def __repr__(self) -> str:
        digest = hashlib.sha256(np.ascontiguousarray(self.vectors).tobytes()).hexdigest()[:16]
        return f"Half({self.n_identities} identities, {self.similarity}, {digest})"

    def embeddings(self) -> Embeddings:
        """The half as `Embeddings`."""
        return Embeddings(self.vectors, np.repeat(np.arange(self.n_identities), self.sizes), similarity=self.similarity)


@dataclass(frozen=True)
class HalfSampler:
    """Data sets of G identities of a half, drawn without replacement, with all their instances."""

    half: Half
    n_identities: int

    def sample(self, rng: np.random.Generator, cells: tuple[Cell, ...]) -> Sample:
        """One data set."""
        half = self.half
        chosen = np.sort(rng.choice(half.n_identities, self.n_identities, replace=False))
        starts = np.concatenate([[0], np.cumsum(half.sizes)])
        rows = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in chosen])
        return Sample(np.asarray(half.vectors)[rows], half.sizes[chosen], half.similarity, cells)


def split_identities(data: Embeddings, *, seed: int, most: int = 10) -> tuple[Half, Half]:
    """Two random halves of the identities, each identity with at most `most` of its instances, chosen at random."""
    if data.n_identities < 4:
        raise DataError(f"a study needs at least 4 identities to split in two; the data have {data.n_identities}")
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(SPLIT_STREAM,)))
    order = rng.permutation(data.n_identities)
    rows = rng.permutation(len(data))
    rows = rows[np.argsort(data.codes[rows], kind="stable")]
    owner = data.codes[rows]
    starts = np.concatenate([[0], np.cumsum(data.instance_counts)])
    rows = rows[np.arange(rows.size) - starts[owner] < most]
    owner = data.codes[rows]
    middle = data.n_identities // 2
    halves = []
    for members in (order[:middle], order[middle:]):
        kept = np.isin(owner, members)
        sizes = np.bincount(owner[kept], minlength=data.n_identities)
        halves.append(Half(np.asarray(data.vectors)[rows[kept]], sizes[sizes > 0].astype(np.int64), data.similarity))
    return halves[0], halves[1]


def cells_of_half(set_on: Half, drawn_from: Half, far: Sequence[float], frr: Sequence[float]) -> tuple[Cell, ...]:
    """Thresholds at which one half has the target rates, with the rates of the other half there."""
    from matchbound.calls.evaluate import tally

    cells: list[Cell] = []
    other = drawn_from.embeddings()
    for metric, targets in (("far", far), ("frr", frr)):
        if not len(targets):
            continue
        thresholds = _thresholds(set_on, metric, targets)
        counted = tally(other, thresholds)
        part = counted.impostor if metric == "far" else counted.genuine
        total = int(part.comparisons.sum())
        if not total:
            raise DataError(f"the half of the identities that data sets are drawn from has no comparisons for {metric}")
        truths = part.errors.sum(axis=1) / total
        cells += [
            Cell(metric, float(rate), float(threshold), float(truth))  # type: ignore[arg-type]
            for rate, threshold, truth in zip(targets, thresholds, truths, strict=True)
        ]
    return tuple(cells)


def curve_cells(drawn_from: Half, far: Sequence[float]) -> tuple[Cell, ...]:
    """FRR of a half at its own thresholds for some FARs."""
    from matchbound.calls.roc import roc

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchboundWarning)
        curve = roc(drawn_from.embeddings())
    points = [curve.at_far(float(rate)) for rate in far]
    return tuple(Cell("frr@far", point.target, point.threshold, point.estimate) for point in points)


def _thresholds(half: Half, metric: str, rates: Sequence[float]) -> list[float]:
    """Scores of the half at which `rates` of its comparisons err, to the nearest comparison."""
    whole = Sample(half.vectors, half.sizes, half.similarity, ())
    if len(half.vectors) > EXACT_ROWS:
        raise DataError(
            f"the half that sets thresholds has {len(half.vectors)} instances; studies take at most {EXACT_ROWS}. Give "
            "fewer identities, or a smaller M"
        )
    scores = np.sort(whole.impostor_scores)[::-1] if metric == "far" else np.sort(whole.genuine_scores)
    found = []
    for rate in rates:
        if scores.size * rate < 1.0:
            raise DataError(
                f"{metric} {rate:g}: the half that sets thresholds has only {scores.size} comparisons of that kind"
            )
        errors = round(scores.size * rate)
        place = errors - 1 if metric == "far" else min(errors, scores.size - 1)
        found.append(float(-scores[place] if whole.distance else scores[place]))
    return found
