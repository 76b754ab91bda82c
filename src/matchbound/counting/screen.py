"""Rule comparisons out by products of their rows rounded to small whole numbers.

Rows are rounded to whole multiples of a step, s as rows and t as columns of products. With x = s·q + e and y = t·p + f,
Cauchy–Schwarz bounds what rounding loses: x·y ≤ s·t·q·p + A·‖e‖ + A·‖f‖, where A bounds the lengths of all x and all
t·p. The oriented value is x·y − h_x − h_y (h = ‖x‖²/2 for distances and 0 otherwise), so with u = h − A‖e‖ it can reach
v only if

    q·p − ⌊u_y/(s·t)⌋ ≥ ⌊(v + u_x)/(s·t)⌋,

which is a test on whole numbers: the column brings the second term, the row the cut. Whatever passes is finished in
floats. `docs/explanation/all-pairs.md` proves the bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.factors import Factors
from matchbound.counting.threads import in_slices
from matchbound.scratch import room_for

if TYPE_CHECKING:
    from matchbound.kernels.screen import Screen

Float32Array = NDArray[np.float32]
ByteArray = NDArray[np.int8]

SAMPLE_PAIRS = 256
CLIPS: tuple[float, ...] = (1.0, 0.85, 0.7, 0.5, 0.35, 0.2)
# Below, a screen saves at most some hundredths of a second, and choosing and compiling it costs more.
FEWEST_ROWS = 4096
MOST_COLUMNS = 8192
ROWS_AT_ONCE = 2048
LARGEST = 2.0**27
ALWAYS = 2**29
MUST_SAVE = 0.9


class Costs(NamedTuple):
    """Nanoseconds per comparison on one core; only their ratios matter, and only for speed.

    - column, fixed: a column of the full product; the rest of a comparison that reaches no threshold.
    - byte, screened_fixed: a coordinate of the screen; the rest of a comparison that does not pass.
    - survivor: finishing a comparison that passes, per column of the full product.

    The defaults were measured on Zen 4. There VNNI of 512 and of 256 bits and AVX2 differ by less than a quarter in the
    ratio of byte to column, so one set serves all.
    """

    column: float = 0.020
    fixed: float = 0.35
    byte: float = 0.005
    screened_fixed: float = 0.12
    survivor: float = 0.14


COSTS = Costs()


def best_kind(force: bool = False) -> type[Screen] | None:
    """The screen with the widest instructions of this processor; where it has none for bytes, one without, or None."""
    from matchbound.kernels.screen import SCREENS, Portable

    return next((kind for kind in SCREENS if kind.available() and (force or kind is not Portable)), None)


class Rounded(NamedTuple):
    """Rows in whole steps, padded to fours; error ‖x − step·whole‖ and length ‖step·whole‖, both rounded up."""

    whole: ByteArray
    error: FloatArray
    length: FloatArray


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Rounded rows, as rows and as columns of products; one unit of q·p is worth `unit` among oriented values.

    `row_offset`, `column_offset`: u = h − A‖e‖ of both, in units, rounded down; shape (n,).
    """

    rows: Rounded = field(repr=False)
    columns: Rounded = field(repr=False)
    unit: float
    row_offset: FloatArray = field(repr=False)
    column_offset: FloatArray = field(repr=False)


def screen_that_pays(
    factors: Factors,
    value: float,
    genuine_share: float,
    *,
    costs: Costs | None = COSTS,
    workers: int | None = 1,
    kind: type[Screen] | None = None,
) -> Screen | None:
    """A screen where a sample of the data says that it pays, None elsewhere.

    - value: the lowest threshold among oriented values.
    - genuine_share: the share of comparisons that are genuine; most of them have to be finished.
    - costs: what the choice depends on; None: give one wherever it is possible, whether or not it pays.
    """
    (n, width), d = factors.left.shape, factors.dimension
    kind = kind or best_kind(costs is None)
    if kind is None or not n or not 1 <= d <= MOST_COLUMNS or (n < FEWEST_ROWS and costs is not None):
        return None
    order = np.random.default_rng(0).permutation(n)[: 2 * SAMPLE_PAIRS]
    sample = factors.left[order, :d]
    column_step = best_step(sample, 127)
    steps = (column_step if kind.most == 127 else best_step(sample, kind.most)), column_step
    if costs is not None:
        share = _survivors(factors, order, value, kind, *steps) + genuine_share
        screened = costs.byte * d + costs.screened_fixed + share * costs.survivor * (width + 64)
        if screened >= MUST_SAVE * (costs.column * width + costs.fixed):
            return None
    return _make(factors, value, kind, *steps, workers)


def best_step(sample: Float32Array, most: int) -> float:
    """The step that loses least on a sample of rows; a few large numbers may be cut off for a finer one."""
    largest = float(np.abs(sample).max(initial=0.0))
    if largest == 0.0:
        return 1.0
    steps = [clip * largest / most for clip in CLIPS]
    lost = []
    for step in steps:
        whole = np.rint(sample * np.float32(1 / step))
        lost.append(float(np.square(sample - np.clip(whole, -most, most) * np.float32(step)).sum()))
    return steps[int(np.argmin(lost))]


def _rounded(factors: Factors, at: IntArray | slice, step: float, most: int, workers: int | None) -> Rounded:
    """Rows `at` of the factors in whole steps."""
    from matchbound.kernels.screen import round_rows

    d, left = factors.dimension, factors.left[at]
    n = left.shape[0]
    rounded = Rounded(room_for((n, -(-d // 4) * 4), np.int8), np.empty(n), np.empty(n))

    def fill(start: int, stop: int) -> None:
        for first in range(start, stop, ROWS_AT_ONCE):
            part = slice(first, min(first + ROWS_AT_ONCE, stop))
            x = np.ascontiguousarray(left[part, :d])
            round_rows(x, step, most, rounded.whole[part], rounded.error[part], rounded.length[part])

    in_slices(fill, n, workers)
    return rounded


def _coordinates(
    factors: Factors, at: IntArray | slice, row_step: float, column_step: float, most: int, workers: int | None = 1
) -> Coordinates:
    """Rows `at` of the factors, rounded both ways."""
    columns = _rounded(factors, at, column_step, 127, workers)
    same = row_step == column_step and most == 127
    rows, unit = columns if same else _rounded(factors, at, row_step, most, workers), row_step * column_step
    longest = max(float(factors.reach.max()) * (1 + 2.0**-20), float(rows.length.max()), float(columns.length.max()))
    half: FloatArray | float = 0.0
    if factors.similarity == "euclidean":
        half = -factors.left[at, factors.dimension + 1].astype(np.float64)
    offsets = ((half - longest * (1 + 1e-9) * part.error) / unit for part in (rows, columns))
    return Coordinates(rows, columns, unit, *offsets)


def _survivors(
    factors: Factors, order: IntArray, value: float, kind: type[Screen], row_step: float, column_step: float
) -> float:
    """The share of pairs of the sample that can reach the value."""
    rounded = _coordinates(factors, order, row_step, column_step, kind.most)
    half = order.size // 2
    offsets = rounded.row_offset[:half, None] + rounded.column_offset[None, half:]
    least = min(max(value, -8.0), 8.0) / rounded.unit + offsets
    products = rounded.rows.whole[:half].astype(np.float32) @ rounded.columns.whole[half:].T.astype(np.float32)
    return int(np.count_nonzero(products >= least)) / max(1, least.size)


def _make(
    factors: Factors,
    value: float,
    kind: type[Screen],
    row_step: float,
    column_step: float,
    workers: int | None,
) -> Screen | None:
    """None where the numbers would not fit 32 bits."""
    from matchbound.kernels.screen import pack_panels

    rounded = _coordinates(factors, slice(None), row_step, column_step, kind.most, workers)
    row_offset, column_offset = rounded.row_offset, rounded.column_offset
    reach = float(factors.reach.max())
    beyond = 2.5 * reach**2  # oriented values are at most reach² and at least −2·reach²
    if not max(np.abs(row_offset).max(), np.abs(column_offset).max(), beyond / rounded.unit) < LARGEST:
        return None
    n, words = rounded.rows.whole.shape[0], rounded.rows.whole.shape[1] // 4
    width = kind.lanes * kind.vectors
    panels = room_for((-(-n // width), words, width, 4), np.uint8)
    in_slices(
        lambda start, stop: pack_panels(rounded.columns.whole, start, stop, kind.zero, panels),
        panels.shape[0], workers, 128,
    )  # fmt: skip
    starts = np.full(panels.shape[0] * width, -(2**30), dtype=np.int32)
    starts[:n] = -np.floor(column_offset).astype(np.int64)
    level = np.inf if value > beyond else -np.inf if value < -beyond else value
    cuts = np.clip(
        np.floor((level - factors.fine_band(reach, reach)) / rounded.unit + row_offset) - 1, -ALWAYS, 2.0**30
    )
    cuts += kind.zero * rounded.rows.whole.sum(axis=1, dtype=np.int64)
    return kind(rounded.rows.whole.reshape(-1), panels.reshape(-1), starts, cuts.astype(np.int32), words, width)
