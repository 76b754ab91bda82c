"""Rule comparisons out before they are scored: a bound from their first principal axes.

Rotate the vectors onto their principal axes. With z the first k coordinates and r the length of the rest,
x·y = z_x·z_y + rest_x·rest_y ≤ z_x·z_y + r_x·r_y (Cauchy–Schwarz), and with r as one more column the bound
is itself a product, of k + 1 columns instead of d. Comparisons whose bound reaches the lowest threshold get a
second bound, from some axes more; the few that pass that too are finished.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from matchbound.counting.factors import UNIT32, Factors, rounding_band
from matchbound.data.embeddings import Similarity
from matchbound.scratch import room_for

Float32Array = NDArray[np.float32]

SAMPLE_AXES = 3000
SAMPLE_PAIRS = 256
SHARES_OF_AXES: tuple[float, ...] = (1 / 16, 3 / 32, 1 / 8, 3 / 16, 1 / 4, 5 / 16, 3 / 8, 1 / 2)
# With the two columns of rests these fill whole vectors of `matchbound.kernels.dots`.
AXES_OF_STAGE: tuple[int, ...] = (30, 62, 94)
VECTOR = 32
FEWEST_ROWS = 4096
WORK_ROWS = 8192
# Costs in units of one column of the product (0.02 ns a comparison where this was measured).
COST_OF_COMPARISON = 14.0
COST_OF_SURVIVOR = 350.0
COST_OF_STAGE_COLUMN = 4.0
COST_OF_FINISHED_COLUMN = 6.0
MUST_SAVE = 0.9


@dataclass(frozen=True, eq=False)
class Bounds:
    """float32 factors whose product is an upper bound of the oriented value.

    left, right : float32, shape (n, w)
    stage_left, stage_right : float32, shape (n, s)
        Factors of what a few axes more take off the bound.
    slip : float
        How far the coordinates can be from those on orthonormal axes, as a share of the length.
    underflow : float
        See `Factors.underflow`.
    """

    left: Float32Array = field(repr=False)
    right: Float32Array = field(repr=False)
    stage_left: Float32Array = field(repr=False)
    stage_right: Float32Array = field(repr=False)
    similarity: Similarity
    slip: float
    underflow: float

    def allowance(self, reach_rows: float, reach_cols: float) -> float:
        """How far the float32 product can fall below the oriented value.

        Let z' be the coordinates as computed, z = Q'x and e = z − z'. With rest = x − Qz' the product is
        x·y = z'_x·z'_y + rest_x·rest_y + z'_x·e_y + e_x·z'_y, and Cauchy–Schwarz holds for the rests: it loses
        at most 2·slip·‖x‖‖y‖ beyond the rounding of the products themselves (`Factors.band`; three times as
        wide because the second bound takes off r_x·r_y again, eight columns for the rounding of the factors).
        """
        width = 3 * (self.left.shape[1] + self.stage_left.shape[1]) + 8
        rounding = rounding_band(width, self.similarity, reach_rows, reach_cols)
        return rounding + 3 * self.slip * reach_rows * reach_cols + self.underflow


def bounds_that_pay(factors: Factors, value: float, genuine_share: float, *, force: bool) -> Bounds | None:
    """Bounds on the number of axes that a sample of the data says is cheapest; None where they do not pay.

    Parameters
    ----------
    value
        The lowest threshold among oriented values.
    genuine_share
        The share of comparisons that are genuine; most of them have to be finished.
    force
        Give bounds whether or not they pay.
    """
    n, width = factors.left.shape
    extra = 2 if factors.similarity == "euclidean" else 0
    d = width - extra
    if (not force and (n < FEWEST_ROWS or d < 16)) or n < 2:
        return None
    axes = _principal_axes(factors.left[:, :d])
    k, more, cost = _cheapest(factors, axes, value, genuine_share, extra)
    if not force and cost > MUST_SAVE * (width + COST_OF_COMPARISON):
        return None
    return _make_bounds(factors, axes, k, more, extra)


def _principal_axes(rows: Float32Array) -> Float32Array:
    """Orthonormal axes, shape (d, d), those with the largest mean square first; from a sample of rows."""
    step = max(1, rows.shape[0] // SAMPLE_AXES)
    sample = np.asarray(rows[::step], dtype=np.float32)
    _, axes = np.linalg.eigh((sample.T @ sample).astype(np.float64))
    return np.ascontiguousarray(axes[:, ::-1], dtype=np.float32)


def _cheapest(
    factors: Factors, axes: Float32Array, value: float, genuine_share: float, extra: int
) -> tuple[int, int, float]:
    """The numbers of axes of the first and second bound that cost least on a sample of pairs, and the cost."""
    n, width = factors.left.shape
    d = width - extra
    order = np.random.default_rng(0).permutation(n)[: 2 * SAMPLE_PAIRS]
    rotated = factors.left[order, :d] @ axes
    squares = np.cumsum(rotated[:, ::-1] ** 2, axis=1)[:, ::-1]
    half = squares[:, 0] / 2 if extra else np.zeros(order.size, dtype=np.float32)
    a, b = slice(0, order.size // 2), slice(order.size // 2, None)
    offset = half[a, None] + half[None, b] + np.float32(min(max(value, -8.0), 8.0))

    @cache
    def survivors(k: int) -> float:
        columns = np.column_stack([rotated[:, :k], np.sqrt(squares[:, k])])
        return int(np.count_nonzero(columns[a] @ columns[b].T >= offset)) / offset.size + genuine_share

    best = (max(1, d // 4), 0, np.inf)
    for first in SHARES_OF_AXES:
        k = min(max(1, -(-round(first * d) // 8) * 8 - 1 - extra), d - 1)
        for second in AXES_OF_STAGE:
            more = min(second, d - 1 - k)
            cost = (
                k + 1 + extra + COST_OF_COMPARISON + survivors(k) * (COST_OF_SURVIVOR + COST_OF_STAGE_COLUMN * more)
            )  # fmt: skip
            if cost < best[2]:
                cost += survivors(k + more) * COST_OF_FINISHED_COLUMN * d
            if cost < best[2]:
                best = (k, more, cost)
    return best


def _make_bounds(factors: Factors, axes: Float32Array, k: int, more: int, extra: int) -> Bounds:
    from matchbound.kernels.prepare import fill_bounds

    n, width = factors.left.shape
    d = width - extra
    left = room_for((n, k + 1 + extra))
    right = room_for(left.shape) if extra else left
    stage_left = room_for((n, -(-(more + 2) // VECTOR) * VECTOR))
    stage_right = room_for(stage_left.shape)
    slip = _slip(k + more, d)
    for at in range(0, n, WORK_ROWS):
        z = factors.left[at : at + WORK_ROWS, :d] @ axes[:, : k + more]
        fill_bounds(z, at, k, factors.reach, slip, left, right, stage_left, stage_right)
    if extra:
        left[:, k + 1 :] = factors.left[:, d:]
        right[:, k + 1 :] = factors.right[:, d:]
    return Bounds(left, right, stage_left, stage_right, factors.similarity, slip, factors.underflow)


def _slip(k: int, d: int) -> float:
    """How far z, computed in float32, can be from the first k coordinates, as a share of the length.

    Each coordinate is off by at most γ_d + 2u times the length (see `rounding_band`), the vector of them by
    √k times that; the axes, rounded to float32, are orthonormal to within √(k·d)·2u.
    """
    return float(np.sqrt(k)) * rounding_band(d, "cosine", 1.0, 1.0) + 2 * float(np.sqrt(k * d)) * UNIT32
