"""Which of many thresholds a comparison reaches: a table over a fine grid, then exactly.

A cell of the grid that no threshold comes near (nearer than the rounding band) settles its comparisons at
once. Where one threshold is near, it is looked at; where that leaves a doubt, the product is summed again in
float64, and what is still in doubt after that is scored by `matchbound.kernels.exact.score64`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchbound.kernels.blocks import oriented64
from matchbound.kernels.compiling import inlined
from matchbound.kernels.exact import dot64

CELLS = 1 << 14
MOST_SHORT = 1 << 14
FAR_OUT = 0.05


class Grid(NamedTuple):
    """Sorted thresholds, and a table to find a value among them.

    table : int16 (int32 from MOST_SHORT thresholds on), shape (CELLS + 3,)
        For each cell (and one below and one above) the bin of all its values; −t − 1 where it is t or t + 1; the
        least number of its kind where more than one threshold is near. One entry more than cells.
    values : float64, shape (K + 1,); thresholds : float64, shape (K,)
        The thresholds among oriented values, with infinity behind them, and among oriented scores.
    low, per_cell : float32 values
        Cell 1 begins at `low`; cells a unit of value.
    band, fine : float
        How far products of blocks and by `dot64` can be from the oriented value.
    """

    table: NDArray[Any]
    values: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    low: float
    per_cell: float
    band: float
    fine: float


def make_grid(values: NDArray[np.float64], thresholds: NDArray[np.float64], band: float, fine: float) -> Grid:
    """A grid over the thresholds that oriented values can be near to (they lie within −2.5 and 1.5).

    The first and the last threshold are left out where they are far from the others, as the one at which everything
    matches is: all values beyond the grid are in one cell then, where one threshold is near.
    """
    near = values[(values > -2.5) & (values < 1.5)]
    if near.size > 2 and near[1] - near[0] > FAR_OUT * (near[-1] - near[0]):
        near = near[1:]
    if near.size > 2 and near[-1] - near[-2] > FAR_OUT * (near[-1] - near[0]):
        near = near[:-1]
    # A band may be larger than any value (vectors that underflow when they are scaled): then all cells are in doubt.
    room = min(2 * band, 4.0) + 1e-6
    low = float(np.float32((near[0] if near.size else 0.0) - room))
    high = float((near[-1] if near.size else 0.0) + room)
    per_cell = float(np.float32(CELLS / (high - low)))
    edges = np.arange(-1, CELLS + 2) / per_cell + low
    # The cell is computed in float32: three roundings, each of half a unit in 2**-23 of at most CELLS + 2.
    slack = 1.001 * band + 2 * (CELLS + 2) * 2.0**-22 / per_cell
    start, stop = edges[:-1] - slack, edges[1:] + slack
    start[0], stop[-1] = -np.inf, np.inf
    kind = np.int16 if values.size < MOST_SHORT else np.int32
    # The thresholds certainly below each cell, and those not certainly above.
    below, above = np.searchsorted(values, start, side="left"), np.searchsorted(values, stop, side="right")
    entry = np.where(above == below, below, np.where(above == below + 1, -below - 1, np.iinfo(kind).min))
    table = np.append(entry, 0).astype(kind)
    ends = np.append(values, np.inf)
    return Grid(table, ends, thresholds, low, per_cell, float(band), float(fine))


@inlined
def cell_of(v: Any, low: Any, per_cell: Any) -> int:
    """The cell of a float32 value, 0..CELLS + 1; low and per_cell are float32."""
    x = (v - low) * per_cell
    x = max(x, np.float32(-1.0))
    x = min(x, np.float32(CELLS))
    cell: int = np.int32(x + np.float32(1.0))  # type: ignore[assignment]
    return cell


@inlined
def rank(sorted_values: Any, x: float) -> int:
    """How many of the sorted values are <= x."""
    low, high = 0, sorted_values.shape[0]
    while low < high:
        middle = (low + high) // 2
        if sorted_values[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def near_bin(t: int, data: Any, r: int, c: int, grid: Any) -> int:
    """The bin of a comparison whose product is close to threshold t, or, where t is beyond the last, to several.

    A sum in float64 decides, and where that is too close as well, the score.
    """
    values, b = grid.values, -1
    x = dot64(data.left, data.right, r, c, data.left.shape[1], 1.0, 1.0)
    if t >= grid.thresholds.shape[0]:
        b = _sure_bin(x, values, grid.fine)
    elif abs(x - values[t]) > grid.fine:
        b = t + (x >= values[t])
    return b if b >= 0 else rank(grid.thresholds, oriented64(data, r, c))


@inlined
def _sure_bin(x: float, values: Any, band: float) -> int:
    """The bin of a value that is known to within a band, or −1 when a threshold is in the band."""
    b = rank(values, x)
    if b > 0 and x < values[b - 1] + band:
        return -1
    if b < values.shape[0] and x >= values[b] - band:
        return -1
    return b
