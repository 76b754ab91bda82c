"""The score of one pair in float64, summed in one fixed order: what "the score" means everywhere.

A matrix product sums in an order that depends on the shapes it is given, so the same pair can get two
values that differ in the last bit. Whatever decides an error, decides it with these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.kernels.compiling import compiled, inlined
from matchbound.kernels.emit import DOUBLE, INDEX, SINGLE, WHOLE, cgutils, emitted, every, load, number, splat

COSINE, DOT, EUCLIDEAN = 0, 1, 2
CODES = {"cosine": COSINE, "dot": DOT, "euclidean": EUCLIDEAN}


def _emit_sum(builder: Any, kinds: Any, rows: Any, width: Any, lanes: int, term: Callable[[Any, Any], Any]) -> Any:
    """Σ_k term(x_k, y_k) of a row of one array and a row of another (or the same), in float64, by `lanes` sums.

    The columns left over go to the first sum. The order of the additions is part of what a score is: nothing here may
    be reordered or fused.

    rows : the pointer to the first element and the number of the row, of both sides; kinds : numba's types of both
    """
    wide = DOUBLE
    sides = [
        (pointer, SINGLE if kind.dtype == types.float32 else wide, builder.mul(row, width))
        for kind, (pointer, row) in zip(kinds, rows, strict=True)
    ]

    def several(k: Any, count: int) -> list[Any]:
        found = []
        for pointer, kind, at in sides:
            own, asked = (ir.VectorType(one, count) if count > 1 else one for one in (kind, wide))
            value = load(builder, pointer, builder.add(at, k), own)
            found.append(value if own == asked else builder.fpext(value, asked))
        return found

    sums = cgutils.alloca_once(builder, ir.VectorType(wide, lanes))
    builder.store(every(ir.VectorType(wide, lanes), 0.0), sums)
    step = number(lanes)
    whole = builder.sub(width, builder.srem(width, step))
    with cgutils.for_range_slice(builder, number(0), whole, step, INDEX) as (k, _):
        builder.store(builder.fadd(builder.load(sums), term(*several(k, lanes))), sums)
    first = cgutils.alloca_once(builder, wide)
    total = builder.load(sums)
    parts = [builder.extract_element(total, ir.Constant(WHOLE, q)) for q in range(lanes)]
    builder.store(parts[0], first)
    with cgutils.for_range_slice(builder, whole, width, number(1), INDEX) as (k, _):
        builder.store(builder.fadd(builder.load(first), term(*several(k, 1))), first)
    parts[0] = builder.load(first)
    while len(parts) > 1:
        parts = [builder.fadd(x, y) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


_WHOLES, _REALS = [types.int64] * 3, [types.float64] * 2


@emitted(lambda left, right, *_: types.float64(left, right, *_WHOLES, *_REALS))
def dot64(
    builder: Any, kinds: Any, left: Any, right: Any, i: Any, j: Any, width: Any, scale_i: Any, scale_j: Any
) -> Any:  # fmt: skip
    """Σ (x_k·scale_i)·(y_k·scale_j) of row i of one C-contiguous array and row j of another, by eight sums."""

    def scaled(value: Any, scale: Any) -> Any:
        return builder.fmul(value, scale if value.type == scale.type else splat(builder, scale, value.type))

    rows = (left, i), (right, j)
    return _emit_sum(
        builder, kinds[:2], rows, width, 8, lambda x, y: builder.fmul(scaled(x, scale_i), scaled(y, scale_j))
    )  # fmt: skip


@emitted(lambda left, right, *_: types.float64(left, right, *_WHOLES))
def squares64(builder: Any, kinds: Any, left: Any, right: Any, i: Any, j: Any, width: Any) -> Any:
    """Σ (x_k − y_k)² of row i of one C-contiguous array and row j of another, by four sums."""

    def square(x: Any, y: Any) -> Any:
        apart = builder.fsub(x, y)
        return builder.fmul(apart, apart)

    return _emit_sum(builder, kinds[:2], ((left, i), (right, j)), width, 4, square)


@inlined
def score64(rows: Any, lengths: Any, scales: Any, i: int, j: int, kind: int) -> float:
    """The score of rows i and j: cosine, dot product or Euclidean distance (kind 0, 1, 2); their order is moot."""
    if j < i:
        i, j = j, i
    if kind == EUCLIDEAN:
        return float(np.sqrt(squares64(rows, rows, i, j, rows.shape[1])))
    product: float = dot64(rows, rows, i, j, rows.shape[1], scales[i], scales[j])
    if kind == DOT:
        return product
    score: float = product / (lengths[i] * lengths[j])
    return score


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A C-contiguous, read-only view (or copy): one array type, so that one compiled kernel serves all."""
    view = np.ascontiguousarray(np.asarray(array)).view()
    view.flags.writeable = False
    return view


@compiled()
def _score_pairs(vectors: Any, lengths: Any, scales: Any, first: Any, second: Any, kind: int, out: Any) -> None:
    for p in range(first.shape[0]):
        out[p] = score64(vectors, lengths, scales, first[p], second[p], kind)


@compiled()
def _squared_lengths(vectors: Any, out: Any) -> None:
    for i in range(vectors.shape[0]):
        out[i] = dot64(vectors, vectors, i, i, vectors.shape[1], 1.0, 1.0)


def row_lengths(vectors: NDArray[Any], kind: int) -> tuple[FloatArray, FloatArray]:
    """Lengths and scales of rows, shape (n,) each: the length is that of the row times its scale.

    The scale is 1, or a power of two for rows so short that their squared length would underflow. Both
    are 1 where the score needs no length.
    """
    n = vectors.shape[0]
    scales = np.ones(n)
    if kind != COSINE:
        return np.ones(n), scales
    with np.errstate(under="ignore"):
        squares = np.empty(n)
        _squared_lengths(frozen(vectors), squares)
        tiny = np.flatnonzero(squares < 1e-200)
        if tiny.size:
            rows = np.asarray(vectors[tiny], dtype=np.float64)
            exponent = np.frexp(np.abs(rows).max(axis=1))[1].astype(np.float64)
            scales[tiny] = np.exp2(np.minimum(-exponent, 1000.0))
            rows = rows * scales[tiny, None]
            again = np.empty(tiny.size)
            _squared_lengths(frozen(rows), again)
            squares[tiny] = again
    return np.sqrt(squares), scales


def pair_scores(vectors: NDArray[Any], first: IntArray, second: IntArray, similarity: str) -> FloatArray:
    """Scores of the pairs of rows (first[p], second[p]), shape of `first`; the order within a pair is moot."""
    kind = CODES[similarity]
    used = np.zeros(vectors.shape[0], dtype=np.bool_)
    used[first] = used[second] = True
    compact = np.ascontiguousarray(vectors[used])
    place = np.cumsum(used, dtype=np.int64) - 1
    if compact.dtype == np.float16:
        compact = compact.astype(np.float32)
    lengths, scales = row_lengths(compact, kind)
    out = np.empty(first.shape[0])
    _score_pairs(frozen(compact), lengths, scales, place[first], place[second], kind, out)
    return out
