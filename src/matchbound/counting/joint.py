"""Tally two systems on the same comparisons."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray
from matchbound.counting.pairs import BlockScores
from matchbound.counting.tables import tally_comparisons
from matchbound.counts.joint import JointTally, join
from matchbound.counts.tally import Tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError

BLOCK_ROWS = 512


def joint_tally(
    a: Comparisons,
    b: Comparisons,
    thresholds_a: FloatArray,
    thresholds_b: FloatArray,
    *,
    tally: Callable[[Comparisons, FloatArray], Tally] = tally_comparisons,
) -> JointTally:
    """Tally two systems whose rows are the same comparisons (see `matchbound.data.matching`).

    Parameters
    ----------
    thresholds_a, thresholds_b : float64 arrays, shape (K,)
        The k-th of one goes with the k-th of the other.
    tally
        How each system is tallied, with pairs kept; a caller with many systems may remember.
    """
    if len(a) != len(b):
        raise DataError(f"the systems have {len(a)} and {len(b)} comparisons; match them first")
    genuine = a.genuine
    both = np.zeros((2, thresholds_a.size), dtype=np.int64)
    for k, (one, two) in enumerate(zip(thresholds_a, thresholds_b, strict=True)):
        matched_a, matched_b = _matches(a, float(one)), _matches(b, float(two))
        both[0, k] = np.count_nonzero(matched_a & matched_b & ~genuine)
        both[1, k] = np.count_nonzero(genuine & ~(matched_a | matched_b))
    return join(tally(a, thresholds_a), tally(b, thresholds_b), both[0], both[1])


def joint_tally_of_embeddings(
    a: Embeddings, b: Embeddings, thresholds_a: FloatArray, thresholds_b: FloatArray, *, workers: int | None = None
) -> JointTally:
    """The same for all pairs of two sets of embeddings whose rows are the same instances."""
    from matchbound.counting.allpairs import tally_embeddings

    both = np.zeros((2, thresholds_a.size), dtype=np.int64)
    one, two = _Matches(a), _Matches(b)
    for start in range(0, len(a), BLOCK_ROWS):
        rows = slice(start, min(start + BLOCK_ROWS, len(a)))
        matches_a, matches_b = one.block(rows), two.block(rows)
        later = np.arange(len(a))[None, start:] > np.arange(rows.start, rows.stop)[:, None]
        genuine = a.codes[rows][:, None] == a.codes[None, start:]
        for k in range(thresholds_a.size):
            matched_a, matched_b = matches_a(float(thresholds_a[k])), matches_b(float(thresholds_b[k]))
            both[0, k] += np.count_nonzero(matched_a & matched_b & later & ~genuine)
            both[1, k] += np.count_nonzero(~(matched_a | matched_b) & later & genuine)
    tallies = [
        tally_embeddings(source, grid, pairs=True, workers=workers)
        for source, grid in ((a, thresholds_a), (b, thresholds_b))
    ]
    return join(tallies[0], tallies[1], both[0], both[1])


def _matches(source: Comparisons, threshold: float) -> BoolArray:
    return np.asarray(source.score <= threshold if source.distance else source.score >= threshold)


class _Matches:
    """Which pairs of rows of embeddings match: a product decides what is clear, and the score itself what is close."""

    def __init__(self, source: Embeddings) -> None:
        self._source, self._distance = source, source.distance
        self._scores = BlockScores(source.settled, source.similarity)

    def block(self, rows: slice) -> Callable[[float], BoolArray]:
        """For a threshold, which of the rows match which rows from ``rows.start`` on, shape (rows, n − start)."""
        scores = self._scores.block(rows)

        def matches(threshold: float) -> BoolArray:
            low, high = self._scores.band(threshold)
            perhaps, surely = (scores <= high, scores < low) if self._distance else (scores >= low, scores > high)
            if np.count_nonzero(perhaps) > np.count_nonzero(surely):
                first, second = np.nonzero(perhaps & ~surely)
                exact = self._source.score_pairs(first + rows.start, second + rows.start)
                surely[first, second] = exact <= threshold if self._distance else exact >= threshold
            return np.asarray(surely)

        return matches
