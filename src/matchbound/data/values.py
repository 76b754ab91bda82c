"""Values as others hold them: tensors and Arrow columns as numpy arrays, and scores, finite and of known direction.

None of these libraries is imported before it is needed.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.errors import DataError, argument, plainly
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
# Areas that are nearer to one half than this, and known to be, raise the question whether the scores say anything.
CHANCE = 0.05
# Of fewer scores, nothing is suspected.
FEW_SCORES = 10


def values_of(column: Any) -> NDArray[Any]:
    """The numbers of an Arrow column without missing values, shape (n,), without a copy where there is one chunk.

    Arrow's own conversion imports pandas where it is installed, which takes longer than reading most files.
    """
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return np.from_dlpack(column)


def in_one_piece(parts: list[Any]) -> Any:
    """One Arrow table, of one chunk per column, of tables that are moved out of a list; nobody else may hold them."""
    import pyarrow as pa

    data = pa.concat_tables(parts)
    parts.clear()
    columns: list[Any] = []
    names, waiting = data.column_names, data.columns[::-1]
    del data
    while waiting:
        column = waiting.pop()
        if pa.types.is_dictionary(column.type):
            column = column.unify_dictionaries()
        columns.append(column.combine_chunks())
        del column
        pa.default_memory_pool().release_unused()
    return pa.table(columns, names=names)


def trim() -> None:
    """Give memory that Arrow and the C library hold without need back to the system, where they can be asked to."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def first_null(column: Any) -> int:
    """The row of the first missing value of an Arrow column that has one."""
    import pyarrow.compute as pc

    return int(pc.index(pc.is_null(column), True).as_py())


def as_numpy(value: Any, name: str) -> Any:
    """A tensor, or a list of tensors, as numpy has it; anything else as it is.

    A tensor is taken off its graph and its device. Numbers of types that numpy does not have, such as bfloat16, become
    float32. A list of batches is one array, a list of tensors of one number each a list of numbers.
    """
    try:
        if _is_tensor(value):
            return _array(value)
        if isinstance(value, list | tuple) and value and all(_is_tensor(item) for item in value):
            arrays = [_array(item) for item in value]
            flat = all(array.ndim == 0 for array in arrays)
            return np.asarray(arrays) if flat else np.concatenate([np.atleast_1d(array) for array in arrays])
    except Exception as error:  # every library has errors of its own
        raise DataError(f"{name} cannot be turned into an array ({plainly(error, 200)})") from None
    return value


def _is_tensor(value: Any) -> bool:
    return not isinstance(value, np.ndarray | np.generic) and (hasattr(value, "detach") or hasattr(value, "__dlpack__"))


def _array(tensor: Any) -> Any:
    for step in ("detach", "cpu"):
        tensor = getattr(tensor, step)() if hasattr(tensor, step) else tensor
    if "bfloat16" in str(getattr(tensor, "dtype", "")):
        tensor = tensor.float() if hasattr(tensor, "float") else tensor.astype("float32")
    if hasattr(tensor, "numpy"):
        return np.asarray(tensor.numpy())
    return np.from_dlpack(tensor) if hasattr(tensor, "__dlpack__") else np.asarray(tensor)


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


def check_finite(
    values: NDArray[Any], said: Callable[[int], str], remedy: str = FAILED, *, may_miss: bool = False
) -> None:
    """A DataError where a number is infinite, or NaN unless it `may_miss`.

    `said` begins the message: where, and ``is`` or ``holds``.
    """
    bad = np.flatnonzero(np.isinf(values) if may_miss else ~np.isfinite(values))
    if bad.size:
        row = int(bad[0])
        if np.isinf(values[row]) and remedy == FAILED:
            remedy = "give it a finite score, beyond all others on its side"
        more = f" ({bad.size} are not finite numbers)" if bad.size > 1 else ""
        raise DataError(f"{said(row)} {values[row]}{more}; {remedy}")


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
    error = SURE * math.sqrt((1.0 / one.size + 1.0 / two.size) / 12.0)
    if area + error < 0.5:
        return question(distance)
    if area - 0.5 >= CHANCE or error >= CHANCE:
        return None
    text = f"scores hardly tell genuine from impostor comparisons (AUC {area:.3f})"
    return Note("no-separation", f"{text}: do the scores stand in the order of the comparisons?")


def suspect_scores(score: FloatArray, genuine: BoolArray) -> list[Note]:
    """Notes on scores that may be codes of failures, or labels."""
    if len(score) < FEW_SCORES:
        return []
    for value, others in ((score.min(), score[score > score.min()]), (score.max(), score[score < score.max()])):
        count = score.size - others.size
        low, high = (others.min(), others.max()) if others.size else (value, value)
        with np.errstate(over="ignore"):
            apart = min(abs(value - low), abs(value - high)) >= (high - low) / 2
        if count >= FEW_SCORES // 2 and low < high and apart:
            text = (
                f"{count} scores are exactly {value:g}, and the others lie from {low:g} to {high:g}: if that is how "
                f"a comparison that failed is written, leave it empty and choose {argument('missing')} reject or drop"
            )
            return [Note("sentinel", text)]
    if np.array_equal(score, genuine):
        return [Note("labels-as-scores", "scores are 1 and 0 and agree with the labels in every row: are they labels?")]
    return []


def beside_thresholds(score: FloatArray, thresholds: FloatArray) -> list[Note]:
    """Notes on thresholds that scores in single precision miss only by their rounding: 0.63 is 0.62999999523 there."""
    with np.errstate(over="ignore"):
        single = thresholds.astype(np.float32).astype(np.float64)
    notes = []
    for threshold, rounded in zip(thresholds.tolist(), single.tolist(), strict=True):
        count = 0 if rounded == threshold else int(np.count_nonzero(score == rounded))
        if count:
            text = f"{count} scores are {rounded!r}, which is {threshold!r} in single precision"
            remedy = f"give {argument('threshold', rounded)} if they are meant to reach it"
            notes.append(Note("single-precision", f"{text}, and do not equal the threshold {threshold!r}: {remedy}"))
    return notes


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
