"""The exact tail: every impostor comparison at or beyond a score, and every genuine one.

Rates down to one in all comparisons need no bins: what is kept is as long as the tail, not as the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.counting.allpairs import run_job
from matchbound.counting.executors import Executor, Progress
from matchbound.counting.job import AllPairsJob, Pruning, make_job
from matchbound.counting.pairs import GenuinePairs, impostor_pairs
from matchbound.counting.running import How
from matchbound.counting.workers import PieceWorker
from matchbound.data.embeddings import Embeddings
from matchbound.errors import UsageError

SAMPLE = 1_000_000
GENUINE_AT_ONCE = 2_000_000


@dataclass(frozen=True, eq=False)
class Tail:
    """Comparisons of complete data at the matching end of the scores.

    identities : array, shape (G,)
    first, second : int64, shape (T,)
        Positions in `identities`, first < second, of the impostor comparisons at or beyond `at_least`.
    score : float64, shape (T,)
        Their scores, most similar first (ties by identities).
    genuine : int64, shape (U,); genuine_score : float64, shape (U,)
        Identity and score of every genuine comparison, most similar first.
    at_least : float
        The score from which on the tail is complete (distances: up to which).
    comparisons : int
        How many impostor comparisons there are in all.
    instances : int64, shape (G,)
    """

    identities: LabelArray = field(repr=False)
    first: IntArray = field(repr=False)
    second: IntArray = field(repr=False)
    score: FloatArray = field(repr=False)
    genuine: IntArray = field(repr=False)
    genuine_score: FloatArray = field(repr=False)
    at_least: float
    comparisons: int
    instances: IntArray = field(repr=False)
    distance: bool


def tail_embeddings(
    source: Embeddings,
    at_least: float | None = None,
    *,
    rate: float | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
    prune: Pruning | None = None,
) -> Tail:
    """Every impostor comparison whose score is `at_least` (distance: at most) a number, exactly.

    Parameters
    ----------
    at_least
        The score; or give `rate`.
    rate
        A share of the impostor comparisons that the tail must hold; a score for it is found on a sample
        of pairs, and again where the sample misled.
    workers, progress, executor, prune
        See `matchbound.counting.allpairs.tally_embeddings`.
    """
    if (at_least is None) == (rate is None):
        raise UsageError("give at_least or rate, and not both")
    if rate is not None and not 0 < rate <= 1:
        raise UsageError(f"rate must lie in (0, 1]; got {rate}")
    sign = -1.0 if source.distance else 1.0
    sizes = source.instance_counts
    total = int((len(source) ** 2 - int((sizes**2).sum())) // 2)
    options: dict[str, Any] = {"progress": progress, "workers": workers, "executor": executor}
    if at_least is not None:
        oriented = sign * float(at_least)
        found = _collect(source, oriented, prune, options)
    else:
        assert rate is not None
        wanted = rate
        while True:
            wanted = min(1.0, 1.1 * wanted + 3 * np.sqrt(wanted / SAMPLE))
            oriented = -np.inf if wanted >= 1.0 else float(sign * score_quantiles(source, np.array([wanted]))[0])
            found = _collect(source, oriented, prune, options)
            if found[2].size >= rate * total or wanted >= 1.0:
                break
    first, second, score = found
    genuine, genuine_score = genuine_scores(source)
    return Tail(
        source.identities, first, second, sign * score, genuine, genuine_score, sign * oriented, total, sizes,
        source.distance,
    )  # fmt: skip


def genuine_scores(source: Embeddings) -> tuple[IntArray, FloatArray]:
    """Identity and score of every genuine comparison, most similar first; shapes (U,)."""
    pairs = GenuinePairs.of(source)
    score, identity = np.empty(len(pairs)), np.empty(len(pairs), dtype=np.int64)
    for start in range(0, len(pairs), GENUINE_AT_ONCE):
        part = slice(start, min(start + GENUINE_AT_ONCE, len(pairs)))
        first, second = pairs.rows(np.arange(part.start, part.stop))
        score[part], identity[part] = source.score_pairs(first, second), source.codes[first]
    by = np.lexsort((identity, score if source.distance else -score))
    return identity[by], score[by]


def score_quantiles(source: Embeddings, rates: FloatArray, sample: int = SAMPLE) -> FloatArray:
    """Scores that about these shares of the impostor comparisons reach, shape of `rates`; from a fixed sample."""
    scores = source.score_pairs(*impostor_pairs(source, sample, np.random.default_rng(0)))
    if not scores.size:
        return np.zeros(np.shape(rates))
    similar = -scores if source.distance else scores
    found = np.quantile(similar, 1.0 - np.asarray(rates, dtype=np.float64))
    return np.asarray(-found if source.distance else found)


def _collect(
    source: Embeddings, oriented: float, prune: Pruning | None, options: dict[str, Any]
) -> tuple[IntArray, IntArray, FloatArray]:
    """Identities and oriented scores of the tail, sorted."""
    base = make_job(source, np.array([oriented]), True, prune, options["workers"])
    partial = run_job(source, TailJob(base), "tail", How(**options))
    none = np.empty(0, dtype=np.int64)
    keys = np.concatenate([none, *partial.keys])
    score = np.concatenate([none, *partial.counts]).view(np.float64)
    order = np.lexsort((keys, -score))
    keys, score = keys[order], score[order]
    size = max(source.n_identities, 1)
    return keys // size, keys % size, score


@dataclass(frozen=True, eq=False)
class TailJob:
    """The blocks of an all-pairs run, collected instead of counted."""

    base: AllPairsJob

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return self.base.n_blocks

    def worker(self) -> TailWorker:
        """A new worker that has collected nothing."""
        return TailWorker(self.base)


class TailWorker(PieceWorker):
    """Collects into the pair lists of a partial tally: keys i·G + j, and the bits of the scores as counts."""

    def __init__(self, job: AllPairsJob) -> None:
        super().__init__(job, 0)
        size = job.layout.piece_size
        self._first: NDArray[np.int64] = np.empty(size, dtype=np.int64)
        self._second: NDArray[np.int64] = np.empty(size, dtype=np.int64)
        self._score = np.empty(size)

    def add(self, block: int) -> None:
        """Collect from a block."""
        from matchbound.kernels.collect import collect_block

        job, size = self._job, np.int64(self._job.n_identities)
        for first, second in job.layout.tasks_of(block):
            cut, band = self._cut(first, second)
            for piece in job.layout.pieces(first, second):
                tile = self._tile(piece, cut, band)
                found = collect_block(
                    self._block(piece, tile), tile, self._rows, float(self._values[0]),
                    float(job.thresholds[0]), self._first, self._second, self._score,
                )  # fmt: skip
                if found:
                    a, b = self._first[:found], self._second[:found]
                    self.partial.keys.append(np.minimum(a, b) * size + np.maximum(a, b))
                    self.partial.counts.append(self._score[:found].copy().view(np.int64))
