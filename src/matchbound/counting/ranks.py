"""Thresholds at which a given number of comparisons err."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.pairs import BlockScores, GenuinePairs
from matchbound.counting.threads import one_blas_thread
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError

Kind = Literal["impostor", "genuine"]

EXACT_ROWS = 3000
SAMPLE = 2_000_000
BLOCK = 512


def rank_scores(
    source: Comparisons | Embeddings,
    errors: ArrayLike,
    kind: Kind = "impostor",
    *,
    rng: int | np.random.Generator | None = 0,
) -> FloatArray:
    """Thresholds at which about `errors` comparisons err, in the units of the scores, shape of `errors`.

    Exact, ties apart, for `Comparisons`. For `Embeddings`, scores of impostor pairs come from a matrix product, and a
    threshold lies halfway between two of them, so that its number of errors is right unless two scores are all but
    equal; with more than 3,000 rows they are those of a seeded random sample of rows, and numbers of errors too small
    for it get the threshold of its three most similar pairs. What errs at a threshold is for a tally to count.

    Parameters
    ----------
    errors
        Whole numbers: impostor comparisons that match, or genuine ones that do not.
    kind
        Which comparisons.
    """
    wanted = np.atleast_1d(np.asarray(errors, dtype=np.int64))
    between = isinstance(source, Embeddings) and kind == "impostor"
    scores, total = _oriented(source, kind, rng)
    if not scores.size:
        raise DataError(f"there are no {kind} comparisons")
    scores.sort()
    if total > scores.size:
        wanted = np.maximum(np.rint(wanted * (scores.size / total)).astype(np.int64), 3)
    chosen = similarity_at(scores.__getitem__, scores.size, wanted, kind)
    if between:
        chosen = (chosen + similarity_at(scores.__getitem__, scores.size, wanted + 1, kind)) / 2.0
    return -chosen if source.distance else chosen


def settle_ranks(source: Embeddings, thresholds: FloatArray, errors: IntArray, counted: IntArray) -> FloatArray:
    """Thresholds of `rank_scores` for impostor pairs, moved to the exact score where their errors are not those wanted.

    Rounding of the matrix product puts pairs of all but equal scores in the wrong order. The score of the wanted rank
    lies in the band that rounding can reach, and only the pairs in it are scored exactly. Sampled ranks stay.

    Parameters
    ----------
    thresholds : float64 array, shape (K,)
        In the units of the scores.
    errors, counted : int64 arrays, shape (K,)
        The numbers of errors wanted, and those that a tally found.
    """
    off = np.flatnonzero(errors != counted)
    if not off.size or len(source) > EXACT_ROWS:
        return thresholds
    exact = source.score_pairs(*_pairs_near(source, thresholds[off]))
    scores = np.sort(-exact if source.distance else exact)
    settled = thresholds.copy()
    wanted = -thresholds[off] if source.distance else thresholds[off]
    place = np.searchsorted(scores, wanted, side="left") + counted[off] - errors[off]
    known = (place >= 0) & (place < scores.size)
    moved = scores[place[known]]
    settled[off[known]] = -moved if source.distance else moved
    return settled


def _pairs_near(source: Embeddings, thresholds: FloatArray) -> tuple[IntArray, IntArray]:
    """Impostor pairs whose scores rounding may have moved across a threshold: rows (first, second)."""
    scores = BlockScores(source.settled, source.similarity, np.float32)
    bands = np.array(sorted(scores.band(float(t)) for t in thresholds))
    apart = bands[1:, 0] > np.maximum.accumulate(bands[:, 1])[:-1]
    starts = np.concatenate([[0], np.flatnonzero(apart) + 1])
    stops = np.maximum.reduceat(bands[:, 1], starts)
    edges = np.stack([bands[starts, 0], stops], axis=1).reshape(-1).astype(np.float32)
    firsts, seconds = [], []
    for start in range(0, len(source), BLOCK):
        with one_blas_thread():
            block = scores.block(slice(start, start + BLOCK))
        later = np.arange(block.shape[0])[:, None] < np.arange(block.shape[1])
        first, second = np.nonzero(later & (source.codes[start : start + BLOCK, None] != source.codes[start:]))
        inside = np.flatnonzero(np.searchsorted(edges, block[first, second]) % 2 == 1)
        firsts.append(first[inside] + start)
        seconds.append(second[inside] + start)
    return np.concatenate(firsts), np.concatenate(seconds)


def similarity_at(pick: Callable[[IntArray], NDArray[Any]], size: int, errors: IntArray, kind: Kind) -> FloatArray:
    """The similarity at which so many comparisons of a kind err, shape of `errors`.

    Parameters
    ----------
    pick
        Gives the similarities at places in increasing order.
    size
        How many there are. Where all genuine comparisons are to err, the answer lies above them all.
    """
    last = size - 1
    chosen = np.asarray(pick(np.clip(size - errors if kind == "impostor" else errors, 0, last)), dtype=np.float64)
    if kind == "impostor":
        return chosen
    with np.errstate(over="ignore"):  # above the largest float there is infinity
        return np.where(errors > last, np.nextafter(chosen, np.inf), chosen)


def _oriented(
    source: Comparisons | Embeddings, kind: Kind, rng: int | np.random.Generator | None
) -> tuple[NDArray[Any], int]:
    """Scores with large meaning "same", in an array of their own, and of how many comparisons they are."""
    if isinstance(source, Comparisons):
        chosen = source.similarity[source.genuine if kind == "genuine" else ~source.genuine]
        return chosen, int(chosen.size)
    pairs = GenuinePairs.of(source)
    generator = np.random.default_rng(rng)
    if kind == "genuine":
        scores = source.score_pairs(*pairs.sample(SAMPLE, generator))
        return (-scores if source.distance else scores), len(pairs)
    n = len(source)
    rows = np.arange(n, dtype=np.int64)
    if n > EXACT_ROWS:
        rows = np.sort(generator.choice(rows, EXACT_ROWS, replace=False))
    return _impostor_products(source, rows), n * (n - 1) // 2 - len(pairs)


def _impostor_products(source: Embeddings, rows: IntArray) -> NDArray[np.float32]:
    """Similarities of all impostor pairs among some rows, in single precision."""
    scores, codes = BlockScores(source.settled[rows], source.similarity, np.float32), source.codes[rows]
    parts = [np.empty(0, dtype=np.float32)]
    for start in range(0, rows.size, BLOCK):
        with one_blas_thread():  # a block is so small that a second thread only gets in the way
            block = scores.block(slice(start, start + BLOCK))
        later = np.arange(block.shape[0])[:, None] < np.arange(block.shape[1])
        chosen = block[later & (codes[start : start + BLOCK, None] != codes[start:])]
        parts.append(-chosen if source.distance else chosen)
    return np.concatenate(parts)
