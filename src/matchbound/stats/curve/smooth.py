"""Smoothed curves: binormal, log-normal and kernel models of scores (the paper, "Pointwise intervals for ROC curves").

A smooth curve has an FRR at every FAR, also below one error in all comparisons; what it says there is the model's word.
Binormal: genuine and impostor scores are normal, with their own means and variances. Log-normal: their logarithms are
(scores must be positive). Kernel: each score is spread by a Gaussian of Silverman's bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray
from matchbound.counts.curve import CurveTally, SortedCurve
from matchbound.errors import DataError, UsageError
from matchbound.stats.curve.bootstrap import CurveReplicates, Draw, curve_draws, impostor_totals, joined
from matchbound.stats.intervals import ndtr
from matchbound.stats.resampling import Scheme

Smooth = Literal["binormal", "log-normal", "kernel"]
SMOOTHS: tuple[Smooth, ...] = ("binormal", "log-normal", "kernel")
CELLS = 1024


@dataclass(frozen=True, eq=False)
class SmoothRates:
    """FAR and FRR, shape (B, C), at decreasing similarity, shape (C,), in units of the model (logs if log-normal)."""

    similarity: FloatArray
    far: FloatArray
    frr: FloatArray

    def frr_at(self, targets: FloatArray) -> FloatArray:
        """FRR at each FAR, shape (B, L); between grid points on a line in log FAR."""
        return _read(self.far, self.frr, targets)

    def far_at(self, targets: FloatArray) -> FloatArray:
        """FAR at each FRR, shape (B, M)."""
        return _read(self.frr[:, ::-1], self.far[:, ::-1], targets)

    def eer(self) -> FloatArray:
        """Where the curves cross FAR = FRR, shape (B,)."""
        gap = self.far - self.frr
        k = np.maximum(np.argmax(gap >= 0.0, axis=1), 1)
        row = np.arange(gap.shape[0])
        before, after = -gap[row, k - 1], gap[row, k]
        share = before / (before + after)
        return np.asarray(self.far[row, k - 1] + (self.far[row, k] - self.far[row, k - 1]) * share)

    def auc(self) -> FloatArray:
        height = 2.0 - self.frr[:, 1:] - self.frr[:, :-1]
        return np.asarray((np.diff(self.far, axis=1) * height).sum(axis=1) / 2.0)

    def read(self, far_targets: FloatArray, frr_targets: FloatArray) -> CurveReplicates:
        frr, far = self.frr_at(far_targets), self.far_at(frr_targets)
        return CurveReplicates(far_targets, frr_targets, frr, far, self.eer(), self.auc())


def smooth_rates(curve: CurveTally, model: Smooth) -> SmoothRates:
    """The smoothed curve of the data, B = 1."""
    genuine, genuine_count = _scores(curve.genuine_masses(), curve.distance, model)
    impostor, count = _scores(curve.impostor_masses(), curve.distance, model)
    if model == "kernel":
        grid = _Grid.of(genuine, genuine_count, impostor, count)
        return grid.rates(
            _histogram(grid.cell(impostor), count.astype(np.float64)),
            _histogram(grid.cell(genuine), genuine_count.astype(np.float64)),
        )
    return _normal_rates(_moments(genuine, genuine_count)[None, :], _moments(impostor, count)[None, :])


def smooth_replicates(
    curve: SortedCurve,
    model: Smooth,
    scheme: Scheme,
    n_resamples: int,
    seed: int,
    *,
    far_targets: FloatArray,
    frr_targets: FloatArray,
    workers: int = 1,
) -> CurveReplicates:
    """Bootstrap replicates of the smoothed curve. Identities are drawn as for the curve of steps."""
    if scheme.method == "two-level":
        raise UsageError("smoothed curves go with method='vertex', 'double-or-nothing' or 'subsets'")
    impostor, genuine = _row_scores(curve, model)
    grid = None
    if model == "kernel":
        grid = _Grid.of(genuine, np.ones(genuine.size), impostor, np.ones(impostor.size))

    def one(draw: Draw) -> CurveReplicates:
        if grid is not None:
            rates = grid.rates(*_weighted_histograms(curve, draw, grid, impostor, genuine))
        else:
            rates = _normal_rates(*_weighted_moments(curve, draw, impostor, genuine))
        return rates.read(far_targets, frr_targets)

    return joined(curve_draws(curve, scheme, n_resamples, seed, one, workers))


def _scores(masses: tuple[FloatArray, NDArray[Any]], distance: bool, model: Smooth) -> tuple[FloatArray, NDArray[Any]]:
    """Scores in the model's units, large meaning "same", with their counts."""
    similarity, count = masses
    if model not in SMOOTHS:
        raise UsageError(f"smooth must be one of {', '.join(SMOOTHS)}; got {model!r}")
    if model != "log-normal":
        return similarity, count
    positive = -similarity if distance else similarity
    if positive.size and float(positive.min()) <= 0.0:
        raise DataError("the log-normal model needs scores above 0; use smooth='binormal' or 'kernel'")
    return (-np.log(positive) if distance else np.log(positive)), count


def _row_scores(curve: SortedCurve, model: Smooth) -> tuple[FloatArray, FloatArray]:
    """Scores of impostor and genuine comparisons, strictest first, in the model's units."""
    similarity = curve.row_similarity
    ones = np.ones(0)
    impostor, _ = _scores((similarity[curve.impostor_rows], ones), curve.distance, model)
    genuine, _ = _scores((similarity[curve.genuine_rows], ones), curve.distance, model)
    return impostor, genuine


def _moments(scores: FloatArray, count: NDArray[Any]) -> FloatArray:
    """(mean, standard deviation), shape (2,)."""
    mean = float(np.average(scores, weights=count))
    spread = float(np.sqrt(np.average((scores - mean) ** 2, weights=count)))
    return np.array([mean, spread])


def _weighted_moments(
    curve: SortedCurve, draw: Draw, impostor: FloatArray, genuine: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(mean, standard deviation) of genuine and impostor scores in each replicate, shapes (B, 2)."""
    size = curve.n_identities

    def genuine_totals(value: FloatArray) -> FloatArray:
        return np.asarray(draw.weights @ np.bincount(curve.owner, value, size))

    def moments(scores: FloatArray, totals: Callable[[FloatArray], FloatArray]) -> FloatArray:
        centre = float(scores.mean())
        weight, first, second = (totals((scores - centre) ** power) for power in (0, 1, 2))
        mean = first / weight
        spread = np.sqrt(np.maximum(second / weight - mean**2, 0.0))
        return np.stack([mean + centre, spread], axis=1)

    return moments(genuine, genuine_totals), moments(impostor, partial(impostor_totals, curve, draw))


def _normal_rates(genuine: FloatArray, impostor: FloatArray) -> SmoothRates:
    """Curves of two normal distributions, from (mean, standard deviation), shapes (B, 2)."""
    both = np.concatenate([genuine, impostor])
    smallest = max(float(both[:, 1].min()), 1e-300)
    if float(both[:, 1].min()) <= 0.0:
        raise DataError("all genuine or all impostor scores are equal: a smooth model has nothing to fit")
    low = float((both[:, 0] - 8.0 * both[:, 1]).min())
    high = float((both[:, 0] + 8.0 * both[:, 1]).max())
    cells = int(np.clip((high - low) / smallest * 8.0, CELLS, 8 * CELLS))
    t = np.linspace(high, low, cells)
    far = ndtr((impostor[:, :1] - t) / impostor[:, 1:])
    frr = ndtr((t - genuine[:, :1]) / genuine[:, 1:])
    return SmoothRates(t, far, frr)


@dataclass(frozen=True, eq=False)
class _Grid:
    """Cells of equal width for kernel curves, and how a score in a cell is spread over thresholds.

    - centre, shape (C,), decreasing
    - far_weight, frr_weight, shape (C, C): chance that a score in a cell (row) is above or below a threshold (column).
    """

    centre: FloatArray
    far_weight: FloatArray
    frr_weight: FloatArray

    @staticmethod
    def of(genuine: FloatArray, genuine_count: NDArray[Any], impostor: FloatArray, count: NDArray[Any]) -> _Grid:
        wide, narrow = _bandwidth(genuine, genuine_count), _bandwidth(impostor, count)
        if min(wide, narrow) <= 0.0:
            raise DataError("all genuine or all impostor scores are equal: a smooth model has nothing to fit")
        edge = 4.0 * max(wide, narrow)
        low = min(float(genuine.min()), float(impostor.min())) - edge
        high = max(float(genuine.max()), float(impostor.max())) + edge
        centre = np.linspace(high, low, CELLS)
        gap = centre[:, None] - centre[None, :]
        return _Grid(centre, ndtr(gap / narrow), ndtr(-gap / wide))

    def cell(self, scores: FloatArray) -> FloatArray:
        """Position of each score on the grid, as a fraction of cells."""
        return np.asarray((self.centre[0] - scores) / (self.centre[0] - self.centre[1]))

    def rates(self, impostor: FloatArray, genuine: FloatArray) -> SmoothRates:
        """Curves from weights per cell, shapes (B, C)."""
        far = impostor @ self.far_weight / impostor.sum(axis=1, keepdims=True)
        frr = genuine @ self.frr_weight / genuine.sum(axis=1, keepdims=True)
        return SmoothRates(self.centre, np.maximum.accumulate(far, axis=1), np.minimum.accumulate(frr, axis=1))


def _bandwidth(scores: FloatArray, count: NDArray[Any]) -> float:
    """Silverman's rule, 0.9·min(sd, IQR/1.349)·n^(−1/5)."""
    order = np.argsort(scores)
    running = np.cumsum(count[order])
    quarters = scores[order][np.searchsorted(running, np.array([0.25, 0.75]) * running[-1])]
    spread = float(_moments(scores, count)[1])
    middle = float(quarters[1] - quarters[0]) / 1.349
    scale = min(spread, middle) if middle > 0.0 else spread
    return 0.9 * scale * float(np.power(float(running[-1]), -0.2))


def _histogram(cell: FloatArray, count: FloatArray) -> FloatArray:
    """Counts a cell, each shared between the two nearest cells, shape (1, C)."""
    low = np.clip(cell.astype(np.int64), 0, CELLS - 2)
    share = cell - low
    left = np.bincount(low, weights=count * (1.0 - share), minlength=CELLS)
    return np.asarray(left + np.bincount(low + 1, weights=count * share, minlength=CELLS))[None, :]


def _weighted_histograms(
    curve: SortedCurve, draw: Draw, grid: _Grid, impostor: FloatArray, genuine: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weights a cell in each replicate, shapes (B, C): impostor, genuine."""
    from matchbound.kernels.sweep import weighted_histogram

    rows = draw.weights.shape[0]
    made = np.zeros((rows, CELLS))
    nearest = np.clip(np.rint(grid.cell(impostor)), 0, CELLS - 1).astype(np.int64)
    weighted_histogram(curve.first, curve.second, nearest, draw.weights, draw.additive, draw.extra, made)
    near = np.clip(np.rint(grid.cell(genuine)), 0, CELLS - 1).astype(np.int64)
    table = np.bincount(curve.owner * np.int64(CELLS) + near, minlength=curve.n_identities * CELLS)
    return made, draw.weights @ table.reshape(curve.n_identities, CELLS).astype(np.float64)


def _read(x: FloatArray, y: FloatArray, targets: FloatArray) -> FloatArray:
    """y where each row of x (increasing) reaches each target, linear in the logarithm of x, shape (B, L)."""
    out = np.empty((x.shape[0], targets.size))
    wanted = np.log(np.maximum(targets, 1e-300))
    for row in range(x.shape[0]):
        out[row] = np.interp(wanted, np.log(np.maximum(x[row], 1e-300)), y[row])
    return out
