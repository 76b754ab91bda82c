"""Whole curves as results: bands, bootstrap replicates, smoothed curves."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import FloatArray
from matchbound.results.interval import tail_of
from matchbound.show.shown import Shown
from matchbound.stats.curve.smooth import Smooth, SmoothRates
from matchbound.stats.resampling import percentile


@dataclass(frozen=True, eq=False)
class Band(Shown):
    """Limits for FRR at a grid of FARs; float64 arrays, shape (L,).

    far
        Increasing.
    frr, low, high
        FRR there and its limits.
    level
        The coverage promised: of each FAR by itself, or of all together.
    simultaneous
        Which of the two.
    critical
        How many standard errors the limits are away.

    See Also
    --------
    RocCurve.band

    Examples
    --------
    >>> import matchbound as mb
    >>> band = mb.roc(mb.demo_data()).band()
    >>> bool((band.low <= band.high).all())
    True
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
        """Whether a curve lies within the band at the FARs given (limits between grid points on a straight line)."""
        x, y = np.asarray(far, dtype=np.float64), np.asarray(frr, dtype=np.float64)
        return bool(np.all((y >= np.interp(x, self.far, self.low)) & (y <= np.interp(x, self.far, self.high))))


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

    See Also
    --------
    RocCurve.bootstrap

    Examples
    --------
    >>> import matchbound as mb
    >>> drawn = mb.roc(mb.demo_data(n_identities=20)).bootstrap("vertex", n_resamples=50, rng=1)
    >>> drawn.eer.size
    50
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
        """Pointwise percentile limits at each FAR."""
        tail = tail_of(level, "two-sided")
        low, high = np.quantile(self.frr, [tail, 1.0 - tail], axis=0, method="weibull")
        return Band(self.far, self.estimate, low, high, level, False, -NormalDist().inv_cdf(tail))

    def eer_limits(self, level: float = 0.95) -> tuple[float, float]:
        """Percentile limits of EER."""
        tail = tail_of(level, "two-sided")
        return percentile(self.eer, tail), percentile(self.eer, 1.0 - tail)


@dataclass(frozen=True, eq=False)
class SmoothCurve(Shown):
    """A smoothed curve: binormal, log-normal or kernel.

    See Also
    --------
    RocCurve.smooth

    Examples
    --------
    >>> import matchbound as mb
    >>> smooth = mb.roc(mb.demo_data()).smooth("binormal")
    >>> 0.0 < smooth.frr_at(0.01) < 0.1
    True
    """

    model: Smooth
    rates: SmoothRates = field(repr=False)

    def to_records(self) -> list[dict[str, Any]]:
        """The model, its EER and its AUC."""
        return [{"model": self.model, "eer": self.eer, "auc": self.auc}]

    def frr_at(self, far: float) -> float:
        """FRR at a FAR."""
        return float(self.rates.frr_at(np.array([far]))[0, 0])

    def far_at(self, frr: float) -> float:
        """FAR at an FRR."""
        return float(self.rates.far_at(np.array([frr]))[0, 0])

    @property
    def eer(self) -> float:
        """Where the curve crosses FAR = FRR."""
        return float(self.rates.eer()[0])

    @property
    def auc(self) -> float:
        """Area under the curve."""
        return float(self.rates.auc()[0])
