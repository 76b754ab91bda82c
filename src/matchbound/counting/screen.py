"""Rule comparisons out by products of their rows rounded to small whole numbers.

Rows are rotated: z is x on the first k principal axes, turned so that no coordinate is much larger than another, and
r is the length of what these axes leave, so that x·y ≤ z_x·z_y + (r_x² + r_y²)/2. Then z is rounded to whole
multiples of a step, s for rows and t for columns. With z_x = s·q + e and z_y = t·p + f, Cauchy–Schwarz bounds what
rounding loses: z_x·z_y ≤ s·t·q·p + A·‖e‖ + A·‖f‖, where A bounds the lengths of all z and all t·p. The oriented value
is x·y − h_x − h_y (h = ‖x‖²/2 for distances and 0 otherwise), so with u = h − r²/2 − A‖e‖ it can reach v only if

    q·p − ⌊u_y/(s·t)⌋ ≥ ⌊(v + u_x)/(s·t)⌋,

which is a test on whole numbers: the column brings the second term, the row the cut. Whatever passes is finished in
floats. `docs/explanation/all-pairs.md` proves the bound, with the rounding of the rotation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.counting.factors import UNIT32, Factors
from matchbound.counting.threads import in_slices
from matchbound.scratch import room_for

if TYPE_CHECKING:
    from matchbound.kernels.screen import Screen

Float32Array = NDArray[np.float32]
ByteArray = NDArray[np.int8]

SAMPLE_AXES = 1500
SAMPLE_PAIRS = 256
CLIPS: tuple[float, ...] = (1.0, 0.85, 0.7, 0.5, 0.35, 0.2)
SHARES_OF_AXES: tuple[float, ...] = (1 / 2, 3 / 8, 1 / 4, 1 / 8)
FEWEST_ROWS = 4096
"""Below, a screen saves at most some hundredths of a second, and choosing and compiling it costs more."""
MOST_COLUMNS = 8192
MOST_TURNED = 1024
ROWS_AT_ONCE = 2048
LARGEST = 2.0**27
ALWAYS = 2**29
MOST_PASSED = 0.001
LONGEST_CHUNK = 32
MUST_SAVE = 0.9


class Costs(NamedTuple):
    """Nanoseconds per comparison on one core; only their ratios matter, and only for speed.

    column, fixed : a column of the full product; the rest of a comparison that reaches no threshold
    byte, screened_fixed : a coordinate of the screen; the rest of a comparison that does not pass
    survivor : finishing a comparison that passes, per column of the full product

    The defaults were measured on Zen 4. There VNNI of 512 and of 256 bits and AVX2 differ by less than a quarter in the
    ratio of byte to column, so one set serves all.
    """

    column: float = 0.020
    fixed: float = 0.35
    byte: float = 0.005
    screened_fixed: float = 0.12
    survivor: float = 0.14

    def plain(self, width: int) -> float:
        """The cost of a comparison without a screen."""
        return self.column * width + self.fixed

    def screened(self, k: int, width: int, share: float) -> float:
        """The cost of a comparison with a screen of k coordinates that a share of the comparisons pass."""
        return self.byte * k + self.screened_fixed + share * self.survivor * (width + 64)


COSTS = Costs()


def best_kind(force: bool = False) -> type[Screen] | None:
    """The screen with the widest instructions of this processor; where it has none for bytes, one without, or None."""
    from matchbound.kernels.screen import SCREENS, Portable

    return next((kind for kind in SCREENS if kind.available() and (force or kind is not Portable)), None)


class Turn(NamedTuple):
    """A rotation: axes, float32, shape (d, k), or None; and how far it can be off, as a share of the length."""

    axes: Float32Array | None
    slip: float

    def apply(self, rows: Float32Array, d: int) -> Float32Array:
        """Coordinates of rows, shape (n, k)."""
        return rows[:, :d] if self.axes is None else rows[:, :d] @ self.axes


class Rounded(NamedTuple):
    """Rows in whole steps.

    whole : int8, shape (n, k rounded up to fours)
    error, length : float64, shape (n,)
        ‖z − step·whole‖ and ‖step·whole‖, rounded up.
    """

    whole: ByteArray
    error: FloatArray
    length: FloatArray


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Rotated and rounded rows, as rows and as columns of products.

    rows, columns : Rounded, with steps `row_step` and `column_step`
    rest : float64, shape (n,)
        r², rounded up.
    """

    rows: Rounded = field(repr=False)
    columns: Rounded = field(repr=False)
    rest: FloatArray = field(repr=False)
    row_step: float
    column_step: float

    @property
    def unit(self) -> float:
        """What one unit of q·p is worth among oriented values."""
        return self.row_step * self.column_step


def screen_that_pays(
    factors: Factors,
    value: float,
    genuine_share: float,
    *,
    costs: Costs | None = COSTS,
    workers: int | None = 1,
    kind: type[Screen] | None = None,
    axes: int | None = None,
) -> Screen | None:
    """A screen where a sample of the data says that it pays, None elsewhere.

    Parameters
    ----------
    value
        The lowest threshold among oriented values.
    genuine_share
        The share of comparisons that are genuine; most of them have to be finished.
    costs
        What the choice depends on; None: give one wherever it is possible, whether or not it pays.
    workers
        Threads to make it with; by default one.
    kind
        Which instructions to use; by default the widest.
    axes
        How many axes to rotate onto where there is no choice; by default all.
    """
    n, d = factors.left.shape[0], factors.dimension
    if not n or not 1 <= d <= MOST_COLUMNS:
        return None
    if n < FEWEST_ROWS and costs is not None:
        return None
    kind = kind or best_kind(costs is None)
    if kind is None:
        return None
    order = np.random.default_rng(0).permutation(n)[: 2 * SAMPLE_PAIRS]
    if costs is not None:
        turn = _cheapest_turn(factors, order, value, genuine_share, kind, costs)
    else:
        k = axes or d
        turn = _even_turn(_main_axes(factors.left[:, :d], k) if k < d else np.eye(d))
    if turn is None:
        return None
    return _make(factors, turn, order, value, kind, workers)


def _cheapest_turn(
    factors: Factors, order: IntArray, value: float, genuine_share: float, kind: type[Screen], costs: Costs
) -> Turn | None:
    """The rotation that costs least on a sample of pairs; None where it is cheaper to multiply everything.

    Rows as they are come first. A rotation costs time too, so it is tried only where it can save more than that.
    """
    (n, width), d = factors.left.shape, factors.dimension

    def cost(turn: Turn, k: int) -> float:
        return costs.screened(k, width, _survivors(factors, turn, order, value, kind) + genuine_share)

    best, least = None, MUST_SAVE * costs.plain(width)
    found = cost(Turn(None, 0.0), d)
    if found < least:
        best, least = Turn(None, 0.0), found
    hoped = costs.screened(d // 4, width, genuine_share)
    effort = costs.column * d * d * (n / 2 + SAMPLE_AXES)
    if not 8 <= d <= MOST_TURNED or (least - hoped) * n * (n - 1) / 2 < 2 * effort:
        return best
    axes = _main_axes(factors.left[:, :d], d // 2)
    for share in SHARES_OF_AXES:
        k = min(d, -(-round(share * d) // 8) * 8)
        turn = _even_turn(axes[:, :k])
        found = cost(turn, k) + costs.column * d * k * 2 / (n - 1)
        if found < least:
            best, least = turn, found
        elif found > 2 * least:  # with fewer axes, more would pass
            break
    if best is None:
        turn = _even_turn(np.eye(d))
        found = cost(turn, d) + costs.column * d * d * 2 / (n - 1)
        if found < least:
            best = turn
    return best


def _main_axes(rows: Float32Array, k: int) -> FloatArray:
    """Orthonormal axes, shape (d, k), close to the principal ones, those with the largest mean square first.

    From a sample of rows, by two steps of subspace iteration. Any orthonormal axes give a valid bound.
    """
    sample = np.asarray(rows[:: max(1, rows.shape[0] // SAMPLE_AXES)], dtype=np.float32)
    squares = sample.T @ sample
    start = np.random.default_rng(k).standard_normal((squares.shape[0], k)).astype(np.float32)
    basis, _ = np.linalg.qr(squares @ (squares @ start))
    _, ritz = np.linalg.eigh(basis.T @ squares @ basis)
    return np.asarray(basis @ ritz[:, ::-1], dtype=np.float64)


def _even_turn(axes: FloatArray) -> Turn:
    """A rotation onto orthonormal axes, shape (d, k), that spreads every axis over all coordinates.

    The cosine transform with random signs is orthonormal and has no large entry. The slip is proven for the matrix
    as it is after rounding to float32: with ε = ‖QᵀQ − 1‖_F, its polar factor is orthonormal and within ε of it, and a
    product of d terms in float32 is off by at most γ_d‖Q‖_F times the length.
    """
    d, k = axes.shape
    at = np.arange(k)
    cosines = np.cos(np.pi / k * (at[:, None] + 0.5) * at) * math.sqrt(2 / k)
    cosines[:, 0] = math.sqrt(1 / k)
    signs = 2.0 * np.random.default_rng(k).integers(0, 2, k) - 1
    turned = np.ascontiguousarray((axes * signs) @ cosines, dtype=np.float32)
    wide = turned.astype(np.float64)
    apart = float(np.linalg.norm(wide.T @ wide - np.eye(k))) + 1e-10
    gamma = d * UNIT32 / (1 - d * UNIT32)
    return Turn(turned, (gamma * math.sqrt(k * (1 + apart)) + apart) * (1 + 1e-6))


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


def _coordinates(
    factors: Factors, at: IntArray | slice, turn: Turn, row_step: float, column_step: float, most: int,
    workers: int | None = 1,
) -> Coordinates:  # fmt: skip
    """Rows `at` of the factors, rotated and rounded."""
    from matchbound.kernels.screen import round_rows

    d = factors.dimension
    left, reach = factors.left, factors.reach[at]
    if not isinstance(at, slice):
        left = np.ascontiguousarray(left[at])
    n, k = left.shape[0], d if turn.axes is None else turn.axes.shape[1]
    same = row_step == column_step and most == 127

    def empty() -> Rounded:
        return Rounded(room_for((n, -(-k // 4) * 4), np.int8), np.empty(n), np.empty(n))

    columns = empty()
    rows = columns if same else empty()
    square = np.empty(n)

    def fill(start: int, stop: int) -> None:
        for first in range(start, stop, ROWS_AT_ONCE):
            part = slice(first, min(first + ROWS_AT_ONCE, stop))
            z = np.ascontiguousarray(turn.apply(left[part], d))
            round_rows(
                z, column_step, 127, columns.whole[part], columns.error[part], columns.length[part], square[part]
            )
            if not same:
                round_rows(z, row_step, most, rows.whole[part], rows.error[part], rows.length[part], square[part])

    in_slices(fill, n, workers)
    slip = turn.slip * reach * (1 + 2.0**-20)
    rest = np.zeros(n)
    if k < d:
        longest = reach**2 * (1 + 2.0**-20)
        rest = np.maximum(longest - square, 0.0) + 2 * turn.slip * (1 + turn.slip) * longest
    columns = columns._replace(error=columns.error + slip)
    rows = columns if same else rows._replace(error=rows.error + slip)
    return Coordinates(rows, columns, rest, row_step, column_step)


def _steps_of(factors: Factors, turn: Turn, order: IntArray, most: int) -> tuple[float, float]:
    """The steps of rows and columns, from a sample."""
    sample = np.asarray(turn.apply(factors.left[order], factors.dimension))
    column_step = best_step(sample, 127)
    return (column_step if most == 127 else best_step(sample, most)), column_step


def _offsets(factors: Factors, at: IntArray | slice, made: Coordinates) -> tuple[FloatArray, FloatArray]:
    """u = h − r²/2 − A‖e‖ of rows and of columns, in units, rounded down."""
    longest = max(
        float(factors.reach.max()) * (1 + 2.0**-20), float(made.columns.length.max()), float(made.rows.length.max())
    )
    base = -made.rest / 2
    if factors.similarity == "euclidean":
        base = base - factors.left[at, factors.dimension + 1].astype(np.float64)
    both = [(base - longest * (1 + 1e-9) * part.error) / made.unit for part in (made.rows, made.columns)]
    return both[0], both[1]


def _survivors(factors: Factors, turn: Turn, order: IntArray, value: float, kind: type[Screen]) -> float:
    """The share of pairs of the sample that can reach the value."""
    made = _coordinates(factors, order, turn, *_steps_of(factors, turn, order, kind.most), kind.most)
    row_offset, column_offset = _offsets(factors, order, made)
    half = order.size // 2
    least = min(max(value, -8.0), 8.0) / made.unit + row_offset[:half, None] + column_offset[None, half:]
    products = made.rows.whole[:half].astype(np.float32) @ made.columns.whole[half:].T.astype(np.float32)
    return int(np.count_nonzero(products >= least)) / max(1, least.size)


def _make(
    factors: Factors, turn: Turn, order: IntArray, value: float, kind: type[Screen], workers: int | None
) -> Screen | None:
    """None where the numbers would not fit 32 bits."""
    from matchbound.kernels.screen import BIAS, pack_panels

    steps = _steps_of(factors, turn, order, kind.most)
    made = _coordinates(factors, slice(None), turn, *steps, kind.most, workers)
    row_offset, column_offset = _offsets(factors, slice(None), made)
    reach = float(factors.reach.max())
    beyond = 2.5 * reach**2  # oriented values are at most reach² and at least −2·reach²
    if not max(np.abs(row_offset).max(), np.abs(column_offset).max(), beyond / made.unit) < LARGEST:
        return None
    n, words = made.rows.whole.shape[0], made.rows.whole.shape[1] // 4
    width = kind.lanes * kind.vectors
    panels = room_for((-(-n // width), words, width, 4), np.uint8)
    in_slices(
        lambda start, stop: pack_panels(made.columns.whole, start, stop, kind.zero, panels),
        panels.shape[0], workers, 128,
    )  # fmt: skip
    starts = np.full(panels.shape[0] * width, -(2**30), dtype=np.int32)
    starts[:n] = -np.floor(column_offset).astype(np.int64)
    level = np.inf if value > beyond else -np.inf if value < -beyond else value
    cuts = np.clip(np.floor((level - factors.fine_band(reach, reach)) / made.unit + row_offset) - 1, -ALWAYS, 2.0**30)
    begins, chunk = np.empty(0, dtype=np.int16), words
    if kind.wraps:
        chunk, begins, forced_rows, forced_columns = _windows(made, order, workers)
        cuts -= 2 * BIAS * -(-words // chunk)
        cuts[forced_rows] = -(2.0**30)
        starts[:n][forced_columns] = ALWAYS
    elif kind.zero:
        cuts += kind.zero * made.rows.whole.sum(axis=1, dtype=np.int64)
    return kind(
        made.rows.whole.reshape(-1), panels.reshape(-1), starts, cuts.astype(np.int32), begins, words, chunk, width
    )


def _windows(
    made: Coordinates, order: IntArray, workers: int | None
) -> tuple[int, NDArray[np.int16], BoolArray, BoolArray]:
    """Where sums of 16 bits may wrap: the words that share one, what they start from, and rows and columns too long.

    A sum is never more than the product of the lengths of its parts. Rows and columns whose parts are longer than
    allowed pass whatever their sums are; all other sums are at most 32767 + BIAS above what they start from. One that
    is below −32768 + BIAS wraps around, which makes it larger: then the comparison merely passes.
    """
    from matchbound.kernels.screen import BIAS

    words = made.rows.whole.shape[1] // 4
    chunk = min(LONGEST_CHUNK, words)
    while True:
        (sums, row_length), (_, column_length) = (
            _chunks(part.whole, chunk, workers) for part in (made.rows, made.columns)
        )
        balance = math.sqrt(max(float(np.median(column_length)), 1.0) / max(float(np.median(row_length)), 1.0))
        most = math.sqrt(32767.0 + BIAS) * (1 - 1e-12)
        forced = row_length > most / balance, column_length > most * balance
        passed = max(*(float(part.mean()) for part in forced), _wrapped(made, order, chunk))
        if chunk == 1 or passed <= MOST_PASSED:
            return chunk, (-128 * sums - BIAS).astype(np.int16).reshape(-1), *forced
        chunk = -(-chunk // 2)


def _wrapped(made: Coordinates, order: IntArray, chunk: int) -> float:
    """The share of pairs of a sample with a sum of 16 bits that wraps around."""
    from matchbound.kernels.screen import BIAS

    half = order.size // 2
    rows = made.rows.whole[order[:half]].astype(np.float32).reshape(half, -1, 2, 2)
    columns = made.columns.whole[order[half:]].astype(np.float32).reshape(order.size - half, -1, 2, 2)
    wrapped = np.zeros((half, order.size - half), dtype=np.bool_)
    for at in range(0, rows.shape[1], chunk):
        for pair in range(2):
            one = np.ascontiguousarray(rows[:, at : at + chunk, pair]).reshape(half, -1)
            other = np.ascontiguousarray(columns[:, at : at + chunk, pair]).reshape(order.size - half, -1)
            wrapped |= one @ other.T < BIAS - 32768
    return float(wrapped.mean()) if wrapped.size else 0.0


def _chunks(whole: ByteArray, chunk: int, workers: int | None) -> tuple[IntArray, FloatArray]:
    """Σq of the numbers that share a sum of 16 bits, and the length of the longest such part of each row."""
    from matchbound.kernels.screen import sum_chunks

    shape = (whole.shape[0], -(-(whole.shape[1] // 4) // chunk), 2)
    sums, squares = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
    in_slices(lambda start, stop: sum_chunks(whole, start, stop, chunk, sums, squares), shape[0], workers)
    return sums, np.sqrt(squares.max(axis=(1, 2)).astype(np.float64)) * (1 + 1e-12)
