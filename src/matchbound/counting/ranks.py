"""Thresholds at which a given number of comparisons err."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.pairs import BlockScores, GenuinePairs
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
        block = scores.block(slice(start, start + BLOCK))
        later = np.arange(block.shape[0])[:, None] < np.arange(block.shape[1])
        chosen = block[later & (codes[start : start + BLOCK, None] != codes[start:])]
        parts.append(-chosen if source.distance else chosen)
    return np.concatenate(parts)
