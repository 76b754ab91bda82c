"""Pool adjacent violators: the increasing step function nearest to a sequence of shares."""

from __future__ import annotations

from typing import Any

from matchbound.kernels.compiling import compiled


@compiled()
def pool(genuine: Any, impostor: Any, ends: Any) -> int:
    """Merge neighbouring cells until the share of genuine comparisons strictly increases.

    A cell joins the block before it where genuine/(genuine + impostor) does not increase. Counts are float64, exact up
    to 2**53.

    genuine, impostor : float64 arrays, shape (K,)
        Comparisons in each cell, scores increasing; overwritten: the first B entries become the blocks' counts.
    ends : int64 array, shape (K,)
        Written: the first B entries become the cell after the last one of each block.

    Returns
    -------
    int
        B, the number of blocks.
    """
    top = -1
    for k in range(genuine.size):
        g, n = genuine[k], impostor[k]
        top += 1
        genuine[top], impostor[top], ends[top] = g, n, k + 1
        while top > 0 and genuine[top - 1] * impostor[top] >= genuine[top] * impostor[top - 1]:
            genuine[top - 1] += genuine[top]
            impostor[top - 1] += impostor[top]
            ends[top - 1] = ends[top]
            top -= 1
    return top + 1
