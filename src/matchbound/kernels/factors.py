"""The float32 factors of sorted rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchbound.kernels.compiling import compiled


@compiled(fastmath=True)
def largest_offset(raw: Any, start: int, stop: int, centre: Any) -> float:
    """The largest |x_k − centre_k| of rows start..stop − 1."""
    largest = 0.0
    for r in range(start, stop):
        row = raw[r]
        for k in range(row.shape[0]):
            offset = abs(np.float64(row[k]) - centre[k])
            largest = offset if offset > largest else largest
    return largest


@compiled(fastmath={"reassoc", "contract"})
def fill_rows(raw: Any, order: Any, factor: Any, centre: Any, left: Any, right: Any, reach: Any) -> None:
    """The factors of rows `order` of `raw`.

    left[s] = (raw[order[s]] − centre)·factor[order[s]], and where there are two columns more, followed by (1, −‖x‖²/2),
    in `right` by (−‖x‖²/2, 1); reach[s] = ‖x‖, rounded up.
    """
    d = raw.shape[1]
    half = left.shape[1] > d
    for s in range(order.shape[0]):
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
            for k in range(d):
                right[s, k] = left[s, k]
            left[s, d] = np.float32(1.0)
            left[s, d + 1] = np.float32(-squares / 2)
            right[s, d] = np.float32(-squares / 2)
            right[s, d + 1] = np.float32(1.0)
