"""Rule comparisons out by products of their rows rounded to 8 bits.

With x = s·q + e, q whole numbers of −127..127, Cauchy–Schwarz bounds what rounding loses:
x·y ≤ s²·q_x·q_y + A·‖e_x‖ + A·‖e_y‖, where A bounds the lengths of all x and all s·q. The oriented value is
x·y − h_x − h_y (h = ‖x‖²/2 for distances and 0 otherwise), so with u = h − A‖e‖ it can reach v only if

    q_x·q_y − ⌊u_y/s²⌋ ≥ ⌊(v + u_x)/s²⌋,

which is a test on whole numbers: the column brings the second term, the row the cut. Whatever passes is finished
in floats. Unlike the bound from principal axes this one needs no structure in the data, only a processor that
multiplies bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray
from matchbound.counting.factors import Factors
from matchbound.counting.threads import in_slices
from matchbound.scratch import room_for

SAMPLE_PAIRS = 256
CLIPS: tuple[float, ...] = (1.0, 0.75, 0.5, 0.35, 0.2)
FEWEST_ROWS = 1024
MOST_COLUMNS = 8192
LARGEST = 2.0**28
# Costs in units of one column of the float32 product (0.02 ns a comparison where this was measured).
COST_OF_COLUMN = 0.2
COST_OF_COMPARISON = 6.0
COST_OF_SURVIVOR = 500.0
COST_OF_FINISHED_COLUMN = 6.0
MUST_SAVE = 0.8


@dataclass(frozen=True, eq=False)
class Coarse:
    """Rows as bytes, and what decides from their products.

    rows : uint32, flat, `steps` words a row of four unsigned bytes each
    panels : uint32, flat; starts : int32, flat
        The columns; see `matchbound.kernels.coarse.bits_of_strip`.
    cuts : int32, shape (n,)
    """

    rows: NDArray[np.uint32] = field(repr=False)
    panels: NDArray[np.uint32] = field(repr=False)
    starts: NDArray[np.int32] = field(repr=False)
    cuts: NDArray[np.int32] = field(repr=False)
    steps: int


def coarse_that_pays(
    factors: Factors, value: float, genuine_share: float, *, force: bool, workers: int | None = 1
) -> Coarse | None:
    """Rows as bytes where a sample of the data says that they pay, None elsewhere.

    Parameters
    ----------
    value
        The lowest threshold among oriented values.
    genuine_share
        The share of comparisons that are genuine; most of them have to be finished.
    force
        Give them wherever they are possible, whether or not they pay.
    workers
        Threads to make them with; by default one.
    """
    n, width = factors.left.shape
    d = width - (2 if factors.similarity == "euclidean" else 0)
    if not n or not 1 <= d <= MOST_COLUMNS:
        return None
    if not force and (n < FEWEST_ROWS or not _fast_here()):
        return None
    order = np.random.default_rng(0).permutation(n)[: 2 * SAMPLE_PAIRS]
    step = _step(factors.left[order, :d])
    if not force:
        share = _survivors(factors, order, d, value, step) + genuine_share
        plain = width + 2 * COST_OF_COMPARISON
        cost = COST_OF_COLUMN * d + COST_OF_COMPARISON
        cost += share * (COST_OF_SURVIVOR + COST_OF_FINISHED_COLUMN * d)
        if cost > MUST_SAVE * plain:
            return None
    return _make(factors, d, value, step, workers)


def _fast_here() -> bool:
    from matchbound.kernels.coarse import multiplies_bytes

    return multiplies_bytes()


def _step(sample: NDArray[np.float32]) -> float:
    """The step that loses least on a sample of rows; a few large numbers may be cut off for a finer one."""
    largest = float(np.abs(sample).max(initial=0.0))
    if largest == 0.0:
        return 1.0
    steps = [clip * largest / 127 for clip in CLIPS]
    lost = [float(np.square(sample - np.clip(np.rint(sample / s), -127, 127) * s).sum()) for s in steps]
    return steps[int(np.argmin(lost))]


def _round(
    rows: NDArray[np.float32], d: int, step: float, workers: int | None = 1
) -> tuple[NDArray[np.uint8], FloatArray, FloatArray]:
    """Bytes, shape (n, d rounded up to fours); ‖x − s·q‖ and ‖s·q‖, shape (n,)."""
    from matchbound.kernels.coarse import round_rows

    n = rows.shape[0]
    rounded = room_for((n, -(-d // 4) * 4), np.uint8)
    error, length = np.empty(n), np.empty(n)
    in_slices(lambda start, stop: round_rows(rows, d, start, stop, step, rounded, error, length), n, workers)
    return rounded, error, length


def _offsets(factors: Factors, at: NDArray[np.int64] | slice, d: int, error: FloatArray, largest: float) -> FloatArray:
    """u = h − A‖e‖ of rows `at`, rounded down."""
    lost = -largest * (1 + 1e-9) * error
    if factors.similarity != "euclidean":
        return lost
    return np.asarray(lost - factors.left[at, d + 1].astype(np.float64))


def _survivors(factors: Factors, order: NDArray[np.int64], d: int, value: float, step: float) -> float:
    """The share of pairs of the sample that can reach the value."""
    rounded, error, length = _round(np.ascontiguousarray(factors.left[order]), d, step)
    whole = rounded[:, :d].astype(np.float32) - np.float32(128)
    offset = _offsets(factors, order, d, error, max(float(factors.reach.max()), float(length.max()))) / step**2
    a, b = slice(0, order.size // 2), slice(order.size // 2, None)
    least = min(max(value, -8.0), 8.0) / step**2 + offset[a, None] + offset[None, b]
    return int(np.count_nonzero(whole[a] @ whole[b].T >= least)) / max(1, least.size)


def _make(factors: Factors, d: int, value: float, step: float, workers: int | None) -> Coarse | None:
    """None where the numbers would not fit 32 bits."""
    from matchbound.kernels.coarse import pack_panels
    from matchbound.kernels.strips import PANEL

    rounded, error, length = _round(factors.left, d, step, workers)
    n, steps = rounded.shape[0], rounded.shape[1] // 4
    reach = float(factors.reach.max())
    offset = _offsets(factors, slice(None), d, error, max(reach, float(length.max()))) / step**2
    if not np.abs(offset).max() < LARGEST:
        return None
    words = rounded.view(np.uint32)
    panels = room_for((-(-n // PANEL), steps, PANEL), np.uint32)
    sums = np.empty(n, dtype=np.int64)
    in_slices(lambda start, stop: pack_panels(words, start, stop, panels, sums), panels.shape[0], workers, 32)
    starts = np.full(panels.shape[0] * PANEL, -(2**30), dtype=np.int32)
    starts[:n] = -np.floor(offset).astype(np.int64) - 128 * sums
    with np.errstate(over="ignore"):
        least = (value - factors.fine_band(reach, reach)) / step**2
    cuts = np.clip(np.floor(least + offset) - 1, -(2.0**30), 2.0**30).astype(np.int32)
    return Coarse(words.reshape(-1), panels.reshape(-1), starts, cuts, steps)
