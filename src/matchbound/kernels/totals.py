"""From what each bin between thresholds adds to the sums at each threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchbound.kernels.compiling import compiled

BLOCK = 16


@compiled()
def running_sums(values: Any, place: Any, from_end: bool, begin: int, end: int, out: Any) -> None:
    """out[p, i] = the sum of values[i, :place[p] + 1], or of values[i, place[p]:] when `from_end`; begin ≤ i < end.

    values : int64, shape (G, K); place : int64, shape (P,); out : int64, shape (P, G)
    """
    width = values.shape[1]
    sums = np.empty((width, BLOCK), dtype=np.int64)
    for start in range(begin, end, BLOCK):
        count = min(BLOCK, end - start)
        for i in range(count):
            total = 0
            for k in range(width):
                b = width - 1 - k if from_end else k
                total += values[start + i, b]
                sums[b, i] = total
        for p in range(place.shape[0]):
            b = place[p]
            for i in range(count):
                out[p, start + i] = sums[b, i]
