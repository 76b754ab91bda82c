"""Tally two systems on the same comparisons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.counting.allpairs import tally_embeddings
from matchbound.counting.executors import RunOptions, run_all
from matchbound.counting.pairs import BlockScores
from matchbound.counting.recount import Source, tally_comparisons
from matchbound.counting.run import Partial
from matchbound.counts.joint import JointTally, join
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.errors import DataError

BLOCK_ROWS = 512
PIECE_COLUMNS = 4096


def joint_tally(
    a: Source, b: Source, thresholds_a: FloatArray, thresholds_b: FloatArray, options: RunOptions | None = None
) -> JointTally:
    """Tally two systems on the same comparisons (`matchbound.data.matching`), the k-th threshold of each together."""
    both = shared_errors(a, b, thresholds_a, thresholds_b, options or RunOptions())
    one, two = (
        tally_comparisons(source, grid)
        if isinstance(source, Comparisons)
        else tally_embeddings(source, grid, options or RunOptions(), pairs=True)
        for source, grid in ((a, thresholds_a), (b, thresholds_b))
    )
    return join(one, two, both[0], both[1])


def shared_errors(a: Source, b: Source, one: FloatArray, two: FloatArray, options: RunOptions) -> IntArray:
    """Comparisons on which both systems err, impostor and genuine ones, at pairs of thresholds, shape (2, K)."""
    if len(a) != len(b):
        raise DataError(f"the systems have {len(a)} and {len(b)} {a.unit}; match them first")
    both = np.zeros((2, one.size), dtype=np.int64)
    if isinstance(a, Embeddings) and isinstance(b, Embeddings):
        return run_all(JointJob(a, b, one, two), lambda: SharedErrors(both), options).counts
    assert isinstance(a, Comparisons)
    assert isinstance(b, Comparisons)
    for k, (at_a, at_b) in enumerate(zip(one, two, strict=True)):
        matched_a, matched_b = _matches(a, float(at_a)), _matches(b, float(at_b))
        both[0, k] = np.count_nonzero(matched_a & matched_b & ~a.genuine)
        both[1, k] = np.count_nonzero(a.genuine & ~(matched_a | matched_b))
    return both


@dataclass(eq=False)
class SharedErrors(Partial):
    """Impostor comparisons that both systems match, genuine ones that neither does, of some blocks, shape (2, K)."""

    counts: IntArray
    blocks: set[int] = field(default_factory=set)
    sound: bool = True

    def copy(self) -> SharedErrors:
        return SharedErrors(self.counts.copy(), set(self.blocks), self.sound)

    def join(self, other: SharedErrors, workers: int | None) -> None:
        self.counts += other.counts


@dataclass(frozen=True, eq=False)
class JointJob:
    """All pairs of rows of two systems; a block is some rows with all rows behind them."""

    a: Embeddings
    b: Embeddings
    thresholds_a: FloatArray
    thresholds_b: FloatArray

    @property
    def n_blocks(self) -> int:
        return -(-len(self.a) // BLOCK_ROWS) if self.thresholds_a.size else 0

    def worker(self) -> JointWorker:
        return JointWorker(self)

    @cached_property
    def matches(self) -> tuple[_Matches, _Matches]:
        return _Matches(self.a), _Matches(self.b)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.a.vectors, self.a.similarity, self.b.vectors, self.b.similarity, self.a.codes)
        return _received, (*parts, self.thresholds_a, self.thresholds_b)


def _received(
    one: NDArray[Any], how_one: Similarity, two: NDArray[Any], how_two: Similarity, codes: IntArray, *grids: FloatArray
) -> JointJob:
    return JointJob(Embeddings(one, codes, how_one), Embeddings(two, codes, how_two), grids[0], grids[1])


class JointWorker:
    """Counts what both systems err on, block by block, a piece of the columns at a time."""

    def __init__(self, job: JointJob) -> None:
        self.partial = SharedErrors(np.zeros((2, job.thresholds_a.size), dtype=np.int64))
        self._job = job
        self._matches = job.matches

    def add(self, block: int) -> None:
        job, both = self._job, self.partial.counts
        n = len(job.a)
        rows = slice(block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, n))
        for start in range(rows.start, n, PIECE_COLUMNS):
            columns = slice(start, min(start + PIECE_COLUMNS, n))
            matches_a, matches_b = (system.block(rows, columns) for system in self._matches)
            genuine = job.a.codes[rows][:, None] == job.a.codes[None, columns]
            impostor = ~genuine
            if start == rows.start:
                later = np.arange(columns.start, columns.stop)[None, :] > np.arange(rows.start, rows.stop)[:, None]
                genuine, impostor = genuine & later, impostor & later
            for k in range(job.thresholds_a.size):
                matched_a = matches_a(float(job.thresholds_a[k]))
                matched_b = matches_b(float(job.thresholds_b[k]))
                both[0, k] += np.count_nonzero(matched_a & matched_b & impostor)
                both[1, k] += np.count_nonzero(~(matched_a | matched_b) & genuine)


def _matches(source: Comparisons, threshold: float) -> BoolArray:
    return np.asarray(source.score <= threshold if source.distance else source.score >= threshold)


class _Matches:
    """Which pairs of rows of embeddings match: a product decides what is clear, and the score itself what is close."""

    def __init__(self, source: Embeddings) -> None:
        self._source, self._distance = source, source.distance
        self._scores = BlockScores(source.vectors, source.similarity)

    def block(self, rows: slice, columns: slice) -> Callable[[float], BoolArray]:
        """For a threshold, which of the rows match which of the others, shape (rows, columns)."""
        scores = self._scores.block(rows, columns)

        def matches(threshold: float) -> BoolArray:
            low, high = self._scores.band(threshold)
            perhaps, surely = (scores <= high, scores < low) if self._distance else (scores >= low, scores > high)
            if np.count_nonzero(perhaps) > np.count_nonzero(surely):
                first, second = np.nonzero(perhaps & ~surely)
                exact = self._source.score_pairs(first + rows.start, second + columns.start)
                surely[first, second] = exact <= threshold if self._distance else exact >= threshold
            return np.asarray(surely)

        return matches
