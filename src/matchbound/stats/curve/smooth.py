"""Smoothed curves: binormal, log-normal and kernel models of scores (the paper, "Pointwise intervals for ROC curves").

A smooth curve has an FRR at every FAR, also below one error in all comparisons; what it says there is the model's word.
Binormal: genuine and impostor scores are normal, with their own means and variances. Log-normal: their logarithms are
(scores must be positive). Kernel: each score is spread by a Gaussian of Silverman's bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.counts.curve import SortedCurve
from matchbound.errors import DataError, UsageError
from matchbound.stats.curve.bootstrap import CurveReplicates, Draw, Reader, impostor_totals
from matchbound.stats.curve.rates import crossing
from matchbound.stats.intervals import ndtr
from matchbound.stats.resampling import Scheme

Smooth = Literal["binormal", "log-normal", "kernel"]
SMOOTHS: tuple[Smooth, ...] = ("binormal", "log-normal", "kernel")
CELLS = 1024


@dataclass(frozen=True, eq=False)
class SmoothRates:
    """FAR and FRR of B curves, shape (B, C), from the strictest threshold to the most lenient."""

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
        return np.array([crossing(far, frr).estimate for far, frr in zip(self.far, self.frr, strict=True)])

    def auc(self) -> FloatArray:
        height = 2.0 - self.frr[:, 1:] - self.frr[:, :-1]
        return np.asarray((np.diff(self.far, axis=1) * height).sum(axis=1) / 2.0)

    def read(self, far_targets: FloatArray, frr_targets: FloatArray) -> CurveReplicates:
        return CurveReplicates(self.frr_at(far_targets), self.far_at(frr_targets), self.eer(), self.auc())


def smooth_rates(curve: SortedCurve, model: Smooth) -> SmoothRates:
    """The smoothed curve of the data, B = 1."""
    impostor, genuine = _row_scores(curve, model)
    if model == "kernel":
        grid = _Grid.of(genuine, impostor)
        return grid.rates(_histogram(grid.cell(impostor)), _histogram(grid.cell(genuine)))
    sides = (np.array([[scores.mean(), scores.std()]]) for scores in (genuine, impostor))
    return _normal_rates(*sides)


def smooth_reader(
    curve: SortedCurve, model: Smooth, scheme: Scheme, far_targets: FloatArray, frr_targets: FloatArray
) -> Reader:
    """Smooth the curve of each replicate, and read it. Identities are drawn as for the curve of steps."""
    if scheme.method == "two-level":
        raise UsageError("smoothed curves go with method='vertex', 'double-or-nothing' or 'subsets'")
    impostor, genuine = _row_scores(curve, model)
    grid = _Grid.of(genuine, impostor) if model == "kernel" else None

    def read(draw: Draw) -> CurveReplicates:
        if grid is not None:
            rates = grid.rates(*_weighted_histograms(curve, draw, grid, impostor, genuine))
        else:
            rates = _normal_rates(*_weighted_moments(curve, draw, impostor, genuine))
        return rates.read(far_targets, frr_targets)

    return read


def _row_scores(curve: SortedCurve, model: Smooth) -> tuple[FloatArray, FloatArray]:
    """Scores of impostor and genuine comparisons, strictest first, in the model's units, large meaning "same"."""
    if model not in SMOOTHS:
        raise UsageError(f"smooth must be one of {', '.join(SMOOTHS)}; got {model!r}")
    score, sign = curve.row_similarity, -1.0 if curve.distance else 1.0
    if model == "log-normal":
        positive = sign * score
        if float(positive.min()) <= 0.0:
            raise DataError("the log-normal model needs scores above 0; use smooth='binormal' or 'kernel'")
        score = sign * np.log(positive)
    return score[curve.impostor_rows], score[curve.genuine_rows]


def _weighted_moments(
    curve: SortedCurve, draw: Draw, impostor: FloatArray, genuine: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(mean, standard deviation) of genuine and impostor scores in each replicate, shapes (B, 2)."""

    def genuine_totals(value: FloatArray) -> FloatArray:
        return np.asarray(draw.weights @ np.bincount(curve.owner, value, curve.n_identities))

    moments = []
    for scores, totals in ((genuine, genuine_totals), (impostor, partial(impostor_totals, curve, draw))):
        centre = float(scores.mean())
        weight, first, second = (totals((scores - centre) ** power) for power in (0, 1, 2))
        mean = first / weight
        moments.append(np.stack([mean + centre, np.sqrt(np.maximum(second / weight - mean**2, 0.0))], axis=1))
    return moments[0], moments[1]


def _normal_rates(genuine: FloatArray, impostor: FloatArray) -> SmoothRates:
    """Curves of two normal distributions, from (mean, standard deviation), shapes (B, 2)."""
    mean, spread = np.concatenate([genuine, impostor]).T
    smallest = _spread(float(spread.min()))
    low, high = float((mean - 8.0 * spread).min()), float((mean + 8.0 * spread).max())
    t = np.linspace(high, low, int(np.clip((high - low) / smallest * 8.0, CELLS, 8 * CELLS)))
    far = ndtr((impostor[:, :1] - t) / impostor[:, 1:])
    return SmoothRates(far, ndtr((t - genuine[:, :1]) / genuine[:, 1:]))


def _spread(value: float) -> float:
    """A standard deviation or bandwidth, which must be positive."""
    if value <= 0.0:
        raise DataError("all genuine or all impostor scores are equal: a smooth model has nothing to fit")
    return value


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
    def of(genuine: FloatArray, impostor: FloatArray) -> _Grid:
        wide, narrow = _bandwidth(genuine), _bandwidth(impostor)
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
        return SmoothRates(np.maximum.accumulate(far, axis=1), np.minimum.accumulate(frr, axis=1))


def _bandwidth(scores: FloatArray) -> float:
    """Silverman's rule, 0.9·min(sd, IQR/1.349)·n^(−1/5)."""
    low, high = np.quantile(scores, [0.25, 0.75], method="inverted_cdf")
    spread, middle = float(scores.std()), float(high - low) / 1.349
    return _spread(0.9 * (min(spread, middle) if middle > 0.0 else spread) * float(scores.size) ** -0.2)


def _histogram(cell: FloatArray) -> FloatArray:
    """Scores a cell, each shared between the two nearest cells, shape (1, C)."""
    low = np.clip(cell.astype(np.int64), 0, CELLS - 2)
    share = cell - low
    left = np.bincount(low, weights=1.0 - share, minlength=CELLS)
    return np.asarray(left + np.bincount(low + 1, weights=share, minlength=CELLS))[None, :]


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
