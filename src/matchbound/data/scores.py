"""Scores: finite numbers of known direction, what stands for missing ones, and pairs that have none."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.data.arrays import as_numpy
from matchbound.errors import DataError, UsageError, argument
from matchbound.notes import Note

FAILED = (
    f"count such comparisons as rejected with {argument('missing', 'reject')}, leave them out with "
    f"{argument('missing', 'drop')}, or give them the score that the system would act on"
)
Missing = Literal["error", "reject", "drop"]
# What to do about comparisons without a score.
MISSING: tuple[Missing, ...] = ("error", "reject", "drop")
# Scores of either kind that are looked at.
SAMPLED = 20_000
# Standard errors below one half at which the area under the curve raises the question.
SURE = 4.0


def as_scores(score: ArrayLike, *, copy: bool = True) -> FloatArray:
    """Scores, one per row, as float64; an error where they are not finite real numbers."""
    score = as_numpy(score, "score")
    try:
        raw = np.asarray(score)
    except ValueError:
        raise DataError("score must be one-dimensional, one number per row; its rows differ in length") from None
    if raw.dtype.kind not in "iufbOUST":
        raise DataError(f"score must hold real numbers; it holds {raw.dtype}")
    if raw.ndim != 1:
        raise DataError(f"score must be one-dimensional, one number per row; it has shape {raw.shape}")
    try:
        with np.errstate(over="ignore"):
            values = raw.astype(np.float64, copy=copy)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"score must hold numbers: {error}") from None
    check_finite(values, lambda row: f"score: row {row} holds")
    return values


def check_finite(values: NDArray[Any], said: Callable[[int], str], remedy: str = FAILED) -> None:
    """A DataError where a number is NaN or infinite; `said` begins the message: where, and ``is`` or ``holds``."""
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        row = int(bad[0])
        more = f" ({bad.size} are not finite numbers)" if bad.size > 1 else ""
        raise DataError(f"{said(row)} {values[row]}{more}; {remedy}")


def check_missing(missing: str) -> None:
    """Raise unless `missing` names what to do about missing scores."""
    if missing not in MISSING:
        raise UsageError(f"missing must be one of {', '.join(MISSING)}; got {missing!r}")


def rejected_score(score: FloatArray, distance: bool) -> float:
    """A score that is rejected at every threshold that the scores reach: beyond the worst of them by their span + 1."""
    low, high = (float(score.min()), float(score.max())) if score.size else (0.0, 0.0)
    span = high - low + 1.0
    return high + span if distance else low - span


def uncompared_pairs(cluster: IntArray, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs of records of one cluster (shape (R,)) that no comparison joins, the smaller first; shape (k,) each."""
    order = np.argsort(cluster, kind="stable")
    sizes = np.bincount(cluster)
    start = np.cumsum(sizes) - sizes
    pairs = [np.empty((2, 0), dtype=np.int64)]
    for size in np.unique(sizes[sizes > 1]).tolist():
        within = np.stack(np.triu_indices(size, 1))
        pairs.append(order[start[sizes == size][:, None] + within[:, None, :]].reshape(2, -1))
    a, b = np.sort(np.concatenate(pairs, axis=1), axis=0)
    new = ~np.isin(pair_keys(a, b, cluster.size), pair_keys(first, second, cluster.size))
    return a[new], b[new]


def direction_question(genuine: FloatArray, impostor: FloatArray, distance: bool) -> Note | None:
    """The question whether the scores point the other way, or None where they point the right way."""
    one, two = (scores[:: max(1, -(-scores.size // SAMPLED))] for scores in (genuine, impostor))
    if not one.size or not two.size:
        return None
    ordered = np.sort(two)
    below = np.searchsorted(ordered, one, side="left") + np.searchsorted(ordered, one, side="right")
    area = float(below.mean()) / (2.0 * ordered.size)  # the chance of one above the other; a tie counts half
    area = 1.0 - area if distance else area
    unsure = area + SURE * math.sqrt((1.0 / one.size + 1.0 / two.size) / 12.0) >= 0.5
    return None if unsure else question(distance)


def question(distance: bool) -> Note:
    """The question itself, the same wherever it is asked."""
    seen, other, remedy = ("scores are lower", "a distance", "use")
    if distance:
        seen, other, remedy = ("distances are higher", "a similarity", "leave out")
    text = f"genuine {seen} than impostor ones: is the score {other}? If so, {remedy} {argument('distance', True)}"
    return Note("direction", text)


def pair_keys(first: IntArray, second: IntArray, size: int) -> IntArray:
    """A number for each unordered pair of numbers below `size`."""
    return np.minimum(first, second) * np.int64(size) + np.maximum(first, second)
