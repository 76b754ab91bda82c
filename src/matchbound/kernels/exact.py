"""The score of one pair in float64, summed in one fixed order: what "the score" means everywhere.

A matrix product sums in an order that depends on the shapes it is given, so the same pair can get two
values that differ in the last bit. Whatever decides an error, decides it with these functions.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

COSINE, DOT, EUCLIDEAN = 0, 1, 2
CODES = {"cosine": COSINE, "dot": DOT, "euclidean": EUCLIDEAN}


@numba.njit(nogil=True, cache=True, inline="always")
def dot64(x: Any, y: Any, scale_x: float, scale_y: float) -> float:
    """Σ (x_k·scale_x)·(y_k·scale_y) in float64 with eight running sums (a fixed order that compilers can vectorise)."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    n = x.shape[0]
    whole = n - n % 8
    for k in range(0, whole, 8):
        s0 += (np.float64(x[k]) * scale_x) * (np.float64(y[k]) * scale_y)
        s1 += (np.float64(x[k + 1]) * scale_x) * (np.float64(y[k + 1]) * scale_y)
        s2 += (np.float64(x[k + 2]) * scale_x) * (np.float64(y[k + 2]) * scale_y)
        s3 += (np.float64(x[k + 3]) * scale_x) * (np.float64(y[k + 3]) * scale_y)
        s4 += (np.float64(x[k + 4]) * scale_x) * (np.float64(y[k + 4]) * scale_y)
        s5 += (np.float64(x[k + 5]) * scale_x) * (np.float64(y[k + 5]) * scale_y)
        s6 += (np.float64(x[k + 6]) * scale_x) * (np.float64(y[k + 6]) * scale_y)
        s7 += (np.float64(x[k + 7]) * scale_x) * (np.float64(y[k + 7]) * scale_y)
    for k in range(whole, n):
        s0 += (np.float64(x[k]) * scale_x) * (np.float64(y[k]) * scale_y)
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@numba.njit(nogil=True, cache=True, inline="always")
def distance64(x: Any, y: Any) -> float:
    """√Σ (x_k − y_k)² in float64 with four running sums."""
    s0 = s1 = s2 = s3 = 0.0
    n = x.shape[0]
    whole = n - n % 4
    for k in range(0, whole, 4):
        d0 = np.float64(x[k]) - np.float64(y[k])
        d1 = np.float64(x[k + 1]) - np.float64(y[k + 1])
        d2 = np.float64(x[k + 2]) - np.float64(y[k + 2])
        d3 = np.float64(x[k + 3]) - np.float64(y[k + 3])
        s0 += d0 * d0
        s1 += d1 * d1
        s2 += d2 * d2
        s3 += d3 * d3
    for k in range(whole, n):
        d0 = np.float64(x[k]) - np.float64(y[k])
        s0 += d0 * d0
    return float(np.sqrt((s0 + s1) + (s2 + s3)))


@numba.njit(nogil=True, cache=True, inline="always")
def score64(x: Any, y: Any, length_x: float, length_y: float, scale_x: float, scale_y: float, kind: int) -> float:
    """The score of one pair: cosine, dot product or Euclidean distance (kind 0, 1, 2)."""
    if kind == 2:
        return distance64(x, y)
    product = dot64(x, y, scale_x, scale_y)
    if kind == 1:
        return product
    return product / (length_x * length_y)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A C-contiguous, read-only view (or copy): one array type, so that one compiled kernel serves all."""
    view = np.ascontiguousarray(np.asarray(array)).view()
    view.flags.writeable = False
    return view


@numba.njit(nogil=True, cache=True)
def _score_pairs(vectors: Any, lengths: Any, scales: Any, first: Any, second: Any, kind: int, out: Any) -> None:
    for p in range(first.shape[0]):
        i, j = first[p], second[p]
        if j < i:
            i, j = j, i
        out[p] = score64(vectors[i], vectors[j], lengths[i], lengths[j], scales[i], scales[j], kind)


@numba.njit(nogil=True, cache=True)
def _squared_lengths(vectors: Any, out: Any) -> None:
    for i in range(vectors.shape[0]):
        out[i] = dot64(vectors[i], vectors[i], 1.0, 1.0)


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
    rows, inverse = np.unique(np.concatenate([first, second]), return_inverse=True)
    compact = np.ascontiguousarray(vectors[rows])
    if compact.dtype == np.float16:
        compact = compact.astype(np.float32)
    lengths, scales = row_lengths(compact, kind)
    inverse = inverse.astype(np.int64, copy=False).reshape(-1)
    out = np.empty(first.shape[0])
    _score_pairs(frozen(compact), lengths, scales, inverse[: first.size], inverse[first.size :], kind, out)
    return out
