"""Fill the float32 factors of sorted rows in one pass over the vectors."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(nogil=True, cache=True, fastmath=True)
def largest_offset(raw: Any, start: int, stop: int, centre: Any) -> float:
    """The largest |x_k − centre_k| of rows start..stop − 1."""
    largest = 0.0
    for r in range(start, stop):
        row = raw[r]
        for k in range(row.shape[0]):
            offset = abs(np.float64(row[k]) - centre[k])
            largest = offset if offset > largest else largest
    return largest


@numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def fill_rows(
    raw: Any, order: Any, start: int, stop: int, factor: Any, centre: Any, half: bool, left: Any, right: Any, reach: Any
) -> None:
    """Rows start..stop − 1 of the factors, from rows `order` of `raw`.

    left[s] = (raw[order[s]] − centre)·factor[order[s]], and where `half`, followed by (1, −‖x‖²/2), in `right`
    by (−‖x‖²/2, 1); reach[s] = ‖x‖, rounded up.
    """
    d = raw.shape[1]
    for s in range(start, stop):
        r = order[s]
        by = factor[r]
        squares = 0.0
        row, out = raw[r], left[s]
        for k in range(d):
            x = (np.float64(row[k]) - centre[k]) * by
            squares += x * x
            out[k] = np.float32(x)
        reach[s] = np.sqrt(squares) * (1.0 + 1e-12)
        if half:
            right[s, :d] = left[s, :d]
            left[s, d] = np.float32(1.0)
            left[s, d + 1] = np.float32(-squares / 2)
            right[s, d] = np.float32(-squares / 2)
            right[s, d + 1] = np.float32(1.0)


@numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def fill_bounds(
    z: Any, start: int, k: int, reach: Any, slip: float, left: Any, right: Any, stage_left: Any, stage_right: Any
) -> None:
    """Rows start.. of the factors of both bounds, from z, their coordinates on the first axes.

    left[s], right[s] = (z₁..z_k, r); stage_left[s] = (z_{k+1}.., q, r, 0..), and −r in `stage_right`, with r
    the length of what the first k axes leave and q of what all of them leave, rounded up.
    """
    more = z.shape[1] - k
    for p in range(z.shape[0]):
        s = start + p
        square = reach[s] * reach[s]
        inner = 0.0
        for c in range(k):
            x = np.float64(z[p, c])
            inner += x * x
            left[s, c] = z[p, c]
            right[s, c] = z[p, c]
        outer = inner
        for c in range(more):
            x = np.float64(z[p, k + c])
            outer += x * x
            stage_left[s, c] = z[p, k + c]
            stage_right[s, c] = z[p, k + c]
        left[s, k] = right[s, k] = _rest(square, inner, slip)
        stage_left[s, more] = stage_right[s, more] = _rest(square, outer, slip)
        stage_left[s, more + 1] = left[s, k]
        stage_right[s, more + 1] = -left[s, k]
        for c in range(more + 2, stage_left.shape[1]):
            stage_left[s, c] = stage_right[s, c] = np.float32(0.0)


@numba.njit(nogil=True, cache=True)
def _rest(square: float, inside: float, slip: float) -> float:
    """The length of what the first axes leave, rounded up."""
    left_over = max(square * (1 + 2.0**-20) - inside, 0.0) + 3 * slip * square
    rest: float = np.sqrt(left_over) * (1 + 2.0**-20)
    return rest
