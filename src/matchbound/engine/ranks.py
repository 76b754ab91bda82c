"""Thresholds at which a given number of comparisons err."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.errors import DataError
from matchbound.sources.comparisons import Comparisons
from matchbound.sources.embeddings import Embeddings

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Kind = Literal["impostor", "genuine"]

EXACT_ROWS = 3000
SAMPLE = 2_000_000


def rank_scores(
    source: Comparisons | Embeddings,
    errors: ArrayLike,
    kind: Kind = "impostor",
    *,
    rng: int | np.random.Generator | None = 0,
) -> FloatArray:
    """Thresholds at which about `errors` comparisons err, in the units of the scores, shape of `errors`.

    Exact (ties apart) for `Comparisons` and for up to 3,000 embeddings. With more, impostor scores are a seeded random
    sample of pairs, and numbers of errors too small for it get the threshold of its three most similar ones.

    Parameters
    ----------
    errors
        Whole numbers: impostor comparisons that match, or genuine ones that do not.
    kind
        Which comparisons.
    """
    wanted = np.atleast_1d(np.asarray(errors, dtype=np.int64))
    scores, total = _oriented(source, kind, rng)
    if not scores.size:
        raise DataError(f"there are no {kind} comparisons")
    place = wanted
    if total > scores.size:
        place = np.maximum(np.rint(wanted * (scores.size / total)).astype(np.int64), 3)
    if kind == "impostor":
        at = np.clip(place - 1, 0, scores.size - 1)
        chosen = _select(-scores, at)
        similarity = -chosen
    else:
        at = np.clip(place, 0, scores.size - 1)
        similarity = _select(scores, at)
        beyond = place >= scores.size
        similarity = np.where(beyond, np.nextafter(similarity, np.inf), similarity)
    return -similarity if source.distance else similarity


def _select(values: FloatArray, at: IntArray) -> FloatArray:
    """The order statistics of `values` at the places `at` (0 is the smallest)."""
    ordered = np.sort(values)
    result: FloatArray = ordered[at]
    return result


def _oriented(
    source: Comparisons | Embeddings, kind: Kind, rng: int | np.random.Generator | None
) -> tuple[FloatArray, int]:
    """Scores with large meaning "same", and of how many comparisons they are."""
    if isinstance(source, Comparisons):
        rows = source.genuine if kind == "genuine" else ~source.genuine
        chosen = source.similarity[rows]
        return chosen, int(chosen.size)
    first, second, total = _pairs(source, kind, rng)
    scores = source.score_pairs(first, second)
    return (-scores if source.distance else scores), total


def _pairs(source: Embeddings, kind: Kind, rng: int | np.random.Generator | None) -> tuple[IntArray, IntArray, int]:
    """Pairs of rows of one kind, all or a random sample, and how many there are in all."""
    rows, codes = len(source), source.codes
    counts = source.instance_counts
    genuine = int((counts * (counts - 1) // 2).sum())
    total = genuine if kind == "genuine" else rows * (rows - 1) // 2 - genuine
    if rows <= EXACT_ROWS:
        first, second = np.triu_indices(rows, k=1)
        kept = (codes[first] == codes[second]) == (kind == "genuine")
        return first[kept].astype(np.int64), second[kept].astype(np.int64), total
    generator = np.random.default_rng(rng)
    if kind == "genuine":
        return (*_genuine_pairs(codes, counts, generator), total)
    first = generator.integers(0, rows, SAMPLE)
    second = generator.integers(0, rows, SAMPLE)
    kept = codes[first] != codes[second]
    return first[kept], second[kept], total


def _genuine_pairs(codes: IntArray, counts: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """All genuine pairs of rows when they are few, else a random sample of them, each equally likely."""
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    pairs = counts * (counts - 1) // 2
    total = int(pairs.sum())
    number = np.arange(total) if total <= SAMPLE else rng.integers(0, total, SAMPLE)
    ends = np.cumsum(pairs)
    owner = np.searchsorted(ends, number, side="right")
    within = number - (ends[owner] - pairs[owner])
    second = np.floor((1.0 + np.sqrt(1.0 + 8.0 * within)) / 2.0).astype(np.int64)
    second += within >= second * (second + 1) // 2
    second -= within < second * (second - 1) // 2
    first = within - second * (second - 1) // 2
    return order[starts[owner] + first], order[starts[owner] + second]
