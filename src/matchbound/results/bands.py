"""What is made of a whole curve: bands, bootstrap replicates, smoothed curves."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import FloatArray
from matchbound.errors import UsageError
from matchbound.results.interval import named, tail_of
from matchbound.results.points import NONE, OperatingPoint, latent_limits, replicates
from matchbound.show.shown import Shown
from matchbound.stats.curve.bands import band_grid, band_limits
from matchbound.stats.curve.rates import index_at_far
from matchbound.stats.curve.smooth import Smooth, SmoothRates
from matchbound.stats.resampling import percentile

if TYPE_CHECKING:
    from matchbound.counting.recount import Recount
    from matchbound.counts.curve import CurveTally
    from matchbound.stats.resampling import Scheme

BAND_ERRORS, WHOLE_BAND_ERRORS = 10, 100
"""A band begins where so many impostor comparisons match: pointwise, simultaneous."""
LATENT_POINTS = 20
"""FARs at which a latent band is computed."""
SURE = 1e-12
"""Limits as near to 0 or 1 as this are 0 or 1."""


@dataclass(frozen=True, eq=False)
class Band(Shown):
    """Limits for FRR at a grid of FARs; float64 arrays, shape (L,).

    far
        Increasing.
    frr, low, high
        FRR there and its limits.
    level
        The confidence level: of each FAR by itself, or of all together.
    simultaneous
        Which of the two.
    critical
        How many standard errors the limits are away.
    """

    far: FloatArray = field(repr=False)
    frr: FloatArray = field(repr=False)
    low: FloatArray = field(repr=False)
    high: FloatArray = field(repr=False)
    level: float
    simultaneous: bool
    critical: float

    def to_records(self) -> list[dict[str, Any]]:
        """FRR and its limits at each FAR of the grid."""
        columns = (self.far.tolist(), self.frr.tolist(), self.low.tolist(), self.high.tolist())
        return [dict(zip(("far", "frr", "low", "high"), row, strict=True)) for row in zip(*columns, strict=True)]

    def contains(self, far: ArrayLike, frr: ArrayLike) -> bool:
        """Whether a curve lies within the band at the FARs given (limits between grid points on a straight line).

        Parameters
        ----------
        far, frr
            The points of the curve, of one shape.
        """
        x, y = np.asarray(far, dtype=np.float64), np.asarray(frr, dtype=np.float64)
        return bool(np.all((y >= np.interp(x, self.far, self.low)) & (y <= np.interp(x, self.far, self.high))))


def latent_band(tally: CurveTally, recount: Recount, grid: FloatArray, level: float) -> Band:
    """The latent interval of FRR at some FARs of a grid; between them straight on the probit scale."""
    from scipy.special import ndtr, ndtri

    far, frr = tally.false_matches / tally.n_impostor, tally.false_nonmatches / tally.n_genuine
    every = np.array([index_at_far(far, target) for target in grid])
    some = np.linspace(0, grid.size - 1, min(LATENT_POINTS, grid.size)).round().astype(np.int64)
    index = np.unique(every[some])
    low_at, high_at = latent_limits(
        [OperatingPoint(tally, recount, frr[k], int(k), far[k], "far") for k in index], level
    )

    def probit(rates: ArrayLike) -> FloatArray:
        result: FloatArray = ndtri(np.clip(rates, SURE, 1.0 - SURE))
        return result

    def along(limits: FloatArray) -> FloatArray:
        value = ndtr(np.interp(probit(grid), probit(far[index]), probit(limits)))
        result: FloatArray = np.where(value <= 2 * SURE, 0.0, np.where(value >= 1.0 - 2 * SURE, 1.0, value))
        return result

    low, high, here = along(low_at), along(high_at), frr[every]
    critical = -NormalDist().inv_cdf((1.0 - level) / 2.0)
    return Band(grid, here, np.minimum(low, here), np.maximum(high, here), level, False, critical)


@dataclass(frozen=True, eq=False)
class CurveBootstrap(Shown):
    """Bootstrap replicates of a whole curve.

    far : float64 array, shape (L,)
        The FARs at which each replicate was read.
    frr : float64 array, shape (B, L)
        FRR of each replicate at those FARs.
    eer, auc : float64 arrays, shape (B,)
        Of each replicate.
    estimate : float64 array, shape (L,)
        FRR of the data at those FARs.
    """

    far: FloatArray = field(repr=False)
    frr: FloatArray = field(repr=False)
    eer: FloatArray = field(repr=False)
    auc: FloatArray = field(repr=False)
    estimate: FloatArray = field(repr=False)
    method: str
    seed: int

    @property
    def n_resamples(self) -> int:
        """B."""
        return int(self.eer.size)

    def to_records(self) -> list[dict[str, Any]]:
        """FRR and its percentile limits at each FAR of the grid (not the replicates)."""
        return self.band().to_records()

    def band(self, level: float = 0.95) -> Band:
        """Pointwise percentile limits at each FAR.

        Parameters
        ----------
        level
            The confidence level.
        """
        tail = tail_of(level, "two-sided")
        low, high = np.quantile(self.frr, [tail, 1.0 - tail], axis=0, method="weibull")
        return Band(self.far, self.estimate, low, high, level, False, -NormalDist().inv_cdf(tail))

    def eer_limits(self, level: float = 0.95) -> tuple[float, float]:
        """Percentile limits of EER.

        Parameters
        ----------
        level
            The confidence level.
        """
        tail = tail_of(level, "two-sided")
        return percentile(self.eer, tail), percentile(self.eer, 1.0 - tail)


@dataclass(frozen=True, eq=False)
class SmoothCurve(Shown):
    """A smoothed curve: binormal, log-normal or kernel."""

    model: Smooth
    rates: SmoothRates = field(repr=False)

    def to_records(self) -> list[dict[str, Any]]:
        """The model, its EER and its AUC."""
        return [{"model": self.model, "eer": self.eer, "auc": self.auc}]

    def frr_at(self, far: float) -> float:
        """FRR at a FAR.

        Parameters
        ----------
        far
            The FAR, between 0 and 1.
        """
        return float(self.rates.frr_at(np.array([far]))[0, 0])

    def far_at(self, frr: float) -> float:
        """FAR at an FRR.

        Parameters
        ----------
        frr
            The FRR, between 0 and 1.
        """
        return float(self.rates.far_at(np.array([frr]))[0, 0])

    @property
    def eer(self) -> float:
        """Where the curve crosses FAR = FRR."""
        return float(self.rates.eer()[0])

    @property
    def auc(self) -> float:
        """Area under the curve."""
        return float(self.rates.auc()[0])


def curve_grid(
    curve: CurveTally, far: ArrayLike | None, far_range: tuple[float, float] | None, points: int, errors: int
) -> FloatArray:
    """The FARs of a band or of replicates: those given, or some that are even on the probit scale."""
    if far is not None:
        grid = np.array(far, dtype=np.float64).reshape(-1)
        if not grid.size or np.any(np.diff(grid) <= 0.0) or grid[0] < 0.0 or grid[-1] > 1.0:
            raise UsageError("far must hold increasing rates between 0 and 1")
        return grid
    low, high = far_range or (min(errors / curve.n_impostor, 0.25), 0.5)
    if not 0.0 < low < high < 1.0:
        raise UsageError(f"far_range must be two increasing rates between 0 and 1; got {far_range!r}")
    return band_grid(low, high, points)


def make_band(
    curve: CurveTally,
    recount: Recount,
    grid: FloatArray,
    level: float,
    simultaneous: bool,
    method: str,
    n_resamples: int,
    seed: int,
) -> Band:
    """See `RocCurve.band`."""
    tail_of(level, "two-sided")
    if named(method, ("influence", "latent")) == "latent":
        if simultaneous:
            raise UsageError("simultaneous bands need method='influence'")
        return latent_band(curve, recount, grid, level)
    made = band_limits(curve, grid, level, simultaneous, n_resamples, seed)
    return Band(made.far, made.frr, made.low, made.high, level, simultaneous, made.critical)


def bootstrap_curve(
    curve: CurveTally,
    scheme: Scheme,
    n_resamples: int,
    seed: int,
    grid: FloatArray,
    smooth: Smooth | None,
    workers: int,
) -> CurveBootstrap:
    """See `RocCurve.bootstrap`."""
    if scheme.tau != 1.0:
        raise UsageError("tau is not available for whole curves; use the bootstrap of a point such as at_far(…)")
    made = replicates(curve, scheme, n_resamples, seed, grid, NONE, smooth, workers)
    far, frr = curve.false_matches / curve.n_impostor, curve.false_nonmatches / curve.n_genuine
    estimate = np.array([frr[index_at_far(far, target)] for target in grid])
    return CurveBootstrap(grid, made.frr, made.eer, made.auc, estimate, scheme.method, seed)
