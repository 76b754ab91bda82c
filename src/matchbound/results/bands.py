"""What is made of a whole curve: bands, limits at its thresholds, a threshold with a guarantee, replicates."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.errors import DataError, MatchboundWarning, UsageError, argument
from matchbound.results import latent
from matchbound.results.error_rates import error_rates
from matchbound.results.interval import check_rate, named, tail_of
from matchbound.results.latent import CurveModels
from matchbound.results.number import ADVISED_AGAINST
from matchbound.results.points import NONE, OperatingPoint, latent_limits, replicates
from matchbound.results.rates import Metric
from matchbound.show.shown import Shown
from matchbound.stats.curve.influence import band_grid
from matchbound.stats.curve.rates import index_at_far
from matchbound.stats.dyadic import bias_factor, effective_number
from matchbound.stats.intervals import effective_trials, fallback_wilson, normal_quantile, wilson_limits

if TYPE_CHECKING:
    from matchbound.counts.curve import CurveTally
    from matchbound.results.roc import RocCurve

# A band begins where so many impostor comparisons match: pointwise, simultaneous.
BAND_ERRORS, WHOLE_BAND_ERRORS = 10, 100
# FARs at which a latent band is computed.
LATENT_POINTS = 20
# Limits as near to 0 or 1 as this are 0 or 1.
SURE = 1e-12
METHODS = ("auto", "latent", "wilson")
# Thresholds at which identity pairs are counted together.
AT_ONCE = 32
# Up to so many points the sample's own variance is counted; at more it is read between points all along the curve.
FEW_POINTS = 1000


@dataclass(frozen=True, eq=False)
class Band(Shown):
    """Limits for FRR at a grid of FARs, increasing; float64 arrays, shape (L,).

    `level` is that of each FAR by itself or, where `simultaneous`, of all together; limits are `critical` standard
    errors off.
    """

    far: FloatArray = field(repr=False)
    frr: FloatArray = field(repr=False)
    low: FloatArray = field(repr=False)
    high: FloatArray = field(repr=False)
    level: float
    simultaneous: bool
    critical: float

    def to_records(self) -> list[dict[str, Any]]:
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


def latent_band(models: CurveModels, grid: FloatArray, level: float) -> Band:
    """The latent interval of FRR at some FARs of a grid; between them straight on the probit scale."""
    from scipy.special import ndtr, ndtri

    far, frr = models.curve.far, models.curve.frr
    every = np.array([index_at_far(far, target) for target in grid])
    some = np.linspace(0, grid.size - 1, min(LATENT_POINTS, grid.size)).round().astype(np.int64)
    index = np.unique(every[some])
    low_at, high_at = latent_limits([OperatingPoint(models, frr[k], int(k), far[k], "far") for k in index], level)

    def probit(rates: ArrayLike) -> FloatArray:
        result: FloatArray = ndtri(np.clip(rates, SURE, 1.0 - SURE))
        return result

    def along(limits: FloatArray) -> FloatArray:
        value = ndtr(np.interp(probit(grid), probit(far[index]), probit(limits)))
        result: FloatArray = np.where(value <= 2 * SURE, 0.0, np.where(value >= 1.0 - 2 * SURE, 1.0, value))
        return result

    low, high, here = along(low_at), along(high_at), frr[every]
    critical = normal_quantile((1.0 - level) / 2.0)
    return Band(grid, here, np.minimum(low, here), np.maximum(high, here), level, False, critical)


def bootstrap_band(
    curve: CurveTally,
    grid: FloatArray,
    level: float,
    method: str,
    n_resamples: int,
    seed: int,
    options: Mapping[str, Any],
    workers: int,
) -> Band:
    """Percentile limits at each FAR of the grid, at which every replicate is read (vertical averaging)."""
    scheme, drawn = replicates(curve, method, n_resamples, options, seed, grid, NONE, workers=workers)
    if scheme.tau != 1.0:
        raise UsageError("tau is not available for whole curves; use the bootstrap of a point such as at_far(…)")
    if method in ADVISED_AGAINST:
        warnings.warn(ADVISED_AGAINST[method], MatchboundWarning, stacklevel=3)
    tail = tail_of(level, "two-sided")
    low, high = np.quantile(drawn.frr, [tail, 1.0 - tail], axis=0, method="weibull")
    frr = np.array([curve.frr[index_at_far(curve.far, target)] for target in grid])
    return Band(grid, frr, low, high, level, False, normal_quantile(tail))


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


@dataclass(frozen=True)
class ThresholdChoice(Shown):
    """The most lenient threshold whose one-sided upper bound on FAR, `far_upper`, meets the target."""

    threshold: float
    target: float
    confidence: float
    far: float
    far_upper: float
    frr: float
    method: str = "wilson"


class RateLimits(NamedTuple):
    """Intervals of FAR or FRR at P fixed thresholds, shape (P,); `upper` is one-sided, at the same level."""

    low: FloatArray
    high: FloatArray
    upper: FloatArray
    method: str


def limits_at(curve: RocCurve, points: IntArray, metric: Metric, level: float, method: str = "auto") -> RateLimits:
    """Limits of a rate at points of the curve: those that the rate has at each threshold, all solved together."""
    method = named(method, METHODS)
    if curve.weighting == "identities":
        return _unit_limits(curve, points, metric, level, method)
    tails = tail_of(level, "two-sided"), tail_of(level, "upper")
    fallback = method == "auto" and latent.why_not(curve.recount) is not None
    if method == "wilson" or fallback:
        both, one = (_wilson_at(curve, points, metric, tail, fallback) for tail in tails)
        return RateLimits(both[0], both[1], one[1], "wilson")
    from matchbound.stats.latent.model import BLENDED

    part, tally = curve.tally.part(metric), curve.tally
    counts, first, place = np.unique(part.errors[points], return_index=True, return_inverse=True)
    along = tally.tally_at(np.sort(points[first])) if counts.size <= FEW_POINTS else curve._models.along
    some = bool(np.any(counts < BLENDED[1] * part.total))
    across = some and bool(np.any(counts > BLENDED[0] * part.total))
    model = latent.fit(metric, along, 0 if some else part.total, curve.recount, both=across)
    t, one_sided = model.deviate(level), model.deviate(level, "upper")
    deviates, upper = np.repeat([t, t, one_sided], counts.size), np.repeat([False, True, True], counts.size)
    limits = model.limit(np.tile(counts, 3), deviates, upper).reshape(3, -1)[:, place.reshape(-1)]
    return RateLimits(limits[0], limits[1], limits[2], "latent")


def _unit_limits(curve: RocCurve, points: IntArray, metric: str, level: float, method: str) -> RateLimits:
    """The limits of rates in which every identity counts once: those of `evaluate` at each threshold."""
    limits, used = np.empty((3, points.size)), method
    for start in range(0, points.size, AT_ONCE):
        part = points[start : start + AT_ONCE]
        counted = curve.recount.tally(curve.thresholds[part], pairs=metric == "far")
        for k, rates in enumerate(error_rates(counted, (), curve.recount, "identities"), start):
            rate = getattr(rates, metric)
            both = rate.interval(method, level)
            limits[:, k] = both.low, both.high, rate.upper_bound(level, method)
            used = both.method
    return RateLimits(limits[0], limits[1], limits[2], used)


def _wilson_at(
    curve: RocCurve, points: IntArray, metric: Metric, tail: float, fallback: bool
) -> tuple[FloatArray, FloatArray]:
    """Wilson's limits at points of the curve: as printed, or those of the default where identities are unknown."""
    part, estimate = curve.tally.part(metric), getattr(curve, metric)[points]
    variance = getattr(curve, f"{metric}_variance")[points]
    if not fallback:
        trials = effective_trials(estimate, variance, part.floor)
        return wilson_limits(estimate, trials, normal_quantile(tail))
    identities = effective_number(part.weights)
    spread = variance * bias_factor(metric, identities, 0.0)
    return fallback_wilson(estimate, spread, part.floor, part.total, tail, identities - 1.0)


def threshold_for(curve: RocCurve, far: float, confidence: float, method: str) -> ThresholdChoice:
    """The most lenient threshold whose upper bound on FAR meets a target."""
    if curve.weighting == "identities":
        pooled = argument("weighting", "comparisons")
        raise UsageError(f"a threshold with a guarantee is of pooled comparisons; use {pooled}")
    check_rate(far, "far", zero=True, one=True)
    tail = tail_of(confidence, "upper")
    chosen = named(method, METHODS)
    fallback = chosen == "auto" and latent.why_not(curve.recount) is not None
    if chosen == "wilson" or fallback:
        chosen, upper = "wilson", _wilson_at(curve, np.arange(len(curve)), "far", tail, fallback)[1]
        good = np.flatnonzero(upper <= far)
        k = int(good[-1]) if good.size else int(np.argmin(upper))
        bound = float(upper[k])
    else:
        chosen, (k, bound) = "latent", _latent_choice(curve, far, confidence)
    if bound > far:
        raise DataError(
            f"no threshold of these data supports FAR ≤ {far:g} with confidence {confidence:g}: the lowest upper "
            f"bound is {bound:.3g}, at threshold {curve.thresholds[k]:g} with {int(curve.tally.false_matches[k])} "
            f"false matches among {curve.tally.n_impostor} comparisons of {curve.n_identities} identities. More "
            "identities are needed"
        )
    at = float(curve.thresholds[k])
    return ThresholdChoice(at, float(far), float(confidence), float(curve.far[k]), bound, float(curve.frr[k]), chosen)


def _latent_choice(curve: RocCurve, far: float, confidence: float) -> tuple[int, float]:
    """The last point whose latent upper bound is at most `far` (the first point where none is), and its bound.

    Near the end of a search by the model of the whole curve, bounds are those of a rate at the threshold, with the
    sample's variance counted there.
    """
    stop = index_at_far(curve.far, far) + 1
    counts, first = np.unique(curve.tally.false_matches[:stop], return_index=True)
    last = np.append(first[1:], stop) - 1  # the most lenient point of each count
    model = latent.fit("far", curve._models.along, int(counts[-1]), curve.recount)
    deviate = model.deviate(confidence, "upper")

    @cache
    def bound(at: int) -> float:
        own = latent.fit("far", curve.tally.tally_at(last[[at]]), int(counts[at]), curve.recount)
        return float(own.limit(float(counts[at]), deviate, True)[0])

    def about(at: int) -> float:
        return float(model.limit(float(counts[at]), deviate, True)[0])

    place = max(bisect_right(range(counts.size), far, key=about) - 1, 0)
    while place > 0 and bound(place) > far:
        place -= 1
    while bound(place) <= far and place + 1 < counts.size and bound(place + 1) <= far:
        place += 1
    return int(last[place]), bound(place)
