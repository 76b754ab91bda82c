"""Limits of FAR and FRR at points of a curve whose thresholds are fixed, and thresholds with a guarantee."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.errors import DataError, UsageError, argument
from matchbound.results import latent
from matchbound.results.error_rates import error_rates
from matchbound.results.interval import check_rate, named, tail_of
from matchbound.show.shown import Shown
from matchbound.stats.curve.rates import index_at_far
from matchbound.stats.intervals import effective_n, fallback_wilson, wilson, wilson_limits
from matchbound.stats.variance import effective_identities, far_bias_factor, frr_bias_factor

if TYPE_CHECKING:
    from matchbound.results.roc import RocCurve
    from matchbound.stats.latent.model import Metric

METHODS = ("auto", "latent", "wilson")
AT_ONCE = 32
"""Thresholds at which identity pairs are counted together."""
FEW_POINTS = 1000
"""Up to so many points the sample's own variance is counted; at more it is read between points all along the curve."""


@dataclass(frozen=True)
class ThresholdChoice(Shown):
    """A threshold with a guarantee.

    threshold
        The most lenient threshold whose upper bound on FAR meets the target.
    target, confidence
        What was asked for.
    far, far_upper
        FAR there and its one-sided upper bound.
    frr
        FRR there.
    method
        Of the bound.
    """

    threshold: float
    target: float
    confidence: float
    far: float
    far_upper: float
    frr: float
    method: str = "wilson"

    def to_records(self) -> list[dict[str, Any]]:
        """One record of all fields."""
        return [asdict(self)]


@dataclass(frozen=True, eq=False)
class RateLimits(Shown):
    """Intervals of FAR or FRR at P fixed thresholds; float64 arrays, shape (P,).

    low, high
        Two-sided.
    upper
        One-sided, at the same level.
    method
        How they were made.
    """

    low: FloatArray = field(repr=False)
    high: FloatArray = field(repr=False)
    upper: FloatArray = field(repr=False)
    level: float
    method: str

    def to_records(self) -> list[dict[str, Any]]:
        """The limits at each threshold."""
        rows = zip(self.low.tolist(), self.high.tolist(), self.upper.tolist(), strict=True)
        return [{"low": low, "high": high, "upper": upper, "method": self.method} for low, high, upper in rows]


def limits_at(curve: RocCurve, points: IntArray, metric: Metric, level: float, method: str) -> RateLimits:
    """See `RocCurve.limits_at`."""
    method = named(method, METHODS)
    if curve.weighting == "identities":
        return _unit_limits(curve, points, metric, level, method)
    tails = tail_of(level, "two-sided"), tail_of(level, "upper")
    careful = method == "auto" and latent.why_not(curve.recount) is not None
    if method == "wilson" or careful:
        both, one = (_wilson_at(curve, points, metric, tail, careful) for tail in tails)
        return RateLimits(both[0], both[1], one[1], level, "wilson")
    from matchbound.stats.latent import BLENDED

    far, tally = metric == "far", curve.tally
    errors = (tally.false_matches if far else tally.false_nonmatches)[points]
    total = tally.n_impostor if far else tally.n_genuine
    counts, first, place = np.unique(errors, return_index=True, return_inverse=True)
    along = (
        tally.tally_at(np.sort(points[first]))
        if counts.size <= FEW_POINTS
        else latent.tally_along(tally, curve.recount)
    )
    some = bool(np.any(counts < BLENDED[1] * total))
    across = some and bool(np.any(counts > BLENDED[0] * total))
    model = latent.fit(metric, along, 0 if some else total, curve.recount, both=across)
    t, one_sided = model.deviate(level), model.deviate(level, "upper")
    asked = np.repeat([t, t, one_sided], counts.size), np.repeat([False, True, True], counts.size)
    made = model.limit(np.tile(counts, 3), *asked).reshape(3, -1)[:, place.reshape(-1)]
    return RateLimits(made[0], made[1], made[2], level, "latent")


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
    return RateLimits(limits[0], limits[1], limits[2], level, used)


def threshold_for(curve: RocCurve, far: float, confidence: float, method: str) -> ThresholdChoice:
    """See `RocCurve.threshold_for`."""
    if curve.weighting == "identities":
        raise UsageError(
            f"a threshold with a guarantee is of pooled comparisons; use {argument('weighting', 'comparisons')}"
        )
    check_rate(far, "far", zero=True, one=True)
    tail = tail_of(confidence, "upper")
    chosen = named(method, METHODS)
    careful = False
    if chosen == "auto":
        careful = latent.why_not(curve.recount) is not None
        chosen = "wilson" if careful else "latent"
    if chosen == "wilson":
        every = np.arange(len(curve))
        upper = _wilson_at(curve, every, "far", tail, True)[1] if careful else _upper(curve, tail)
        good = np.flatnonzero(upper <= far)
        k = int(good[-1]) if good.size else int(np.argmin(upper))
        bound = float(upper[k])
    else:
        k, bound = _latent_choice(curve, far, confidence)
    if bound > far:
        raise DataError(
            f"no threshold of these data supports FAR ≤ {far:g} with confidence {confidence:g}: the lowest upper "
            f"bound is {bound:.3g}, at threshold {curve.thresholds[k]:g} with {int(curve.tally.false_matches[k])} "
            f"false matches among {curve.tally.n_impostor} comparisons of {curve.n_identities} identities. More "
            "identities are needed"
        )
    return ThresholdChoice(
        threshold=float(curve.thresholds[k]),
        target=float(far),
        confidence=float(confidence),
        far=float(curve.far[k]),
        far_upper=bound,
        frr=float(curve.frr[k]),
        method=chosen,
    )


def _wilson_at(
    curve: RocCurve, points: IntArray, metric: str, tail: float, careful: bool
) -> tuple[FloatArray, FloatArray]:
    """Wilson's limits at points of the curve, as printed or with the care of the default."""
    far, t = metric == "far", curve.tally
    estimate, spread = (curve.far, curve.far_variance) if far else (curve.frr, curve.frr_variance)
    made = t.impostor_comparisons if far else t.genuine_comparisons
    floor = int(np.count_nonzero(made)) // (2 if far else 1)
    total = t.n_impostor if far else t.n_genuine
    sizes = np.where(made > 0, t.instances, 0) if far and t.instances is not None else made
    identities = effective_identities(sizes)
    factor = far_bias_factor(identities) if far else frr_bias_factor(identities)
    limits = []
    for p, v in zip(estimate[points].tolist(), spread[points].tolist(), strict=True):
        if careful:
            known = v * factor if np.isfinite(factor) else 0.0
            limits.append(fallback_wilson(p, known, floor, total, tail, identities - 1.0))
        else:
            limits.append(wilson(p, effective_n(p, v, floor), tail))
    low, high = np.array(limits).reshape(-1, 2).T
    return low, high


def _upper(curve: RocCurve, tail: float) -> FloatArray:
    """One-sided upper bounds on FAR at every threshold, shape (K,)."""
    z = -NormalDist().inv_cdf(tail)
    floor = float(np.count_nonzero(curve.tally.impostor_comparisons) // 2)
    spread, variance = curve.far * (1.0 - curve.far), curve.far_variance
    known = (spread > 0.0) & (variance > 0.0)
    n = np.divide(spread, variance, out=np.full(spread.size, floor), where=known)
    return wilson_limits(curve.far, np.maximum(n, floor), z)[1]


def _latent_choice(curve: RocCurve, far: float, confidence: float) -> tuple[int, float]:
    """The last point whose latent upper bound is at most `far` (the first point where none is), and its bound."""
    matched = curve.tally.false_matches
    start = index_at_far(curve.far, far)
    along = latent.tally_along(curve.tally, curve.recount)
    model = latent.fit("far", along, int(matched[start]), curve.recount)
    deviate = model.deviate(confidence, "upper")
    low, high = 0, start
    while low < high:
        middle = (low + high + 1) // 2
        if float(model.limit(float(matched[middle]), deviate, True)[0]) <= far:
            low = middle
        else:
            high = middle - 1
    last = {int(count): k for k, count in enumerate(matched[: start + 1].tolist())}  # the most lenient point of a count
    counts, place = sorted(last), sorted(last).index(int(matched[low]))

    def exact(at: int) -> float:
        """The bound that a rate at this threshold has: with the sample's variance counted there."""
        k = last[counts[at]]
        own = latent.fit("far", curve.tally.tally_at(np.array([k])), counts[at], curve.recount)
        return float(own.limit(float(counts[at]), deviate, True)[0])

    bound = exact(place)
    while bound > far and place > 0:
        place -= 1
        bound = exact(place)
    while bound <= far and place + 1 < len(counts) and (above := exact(place + 1)) <= far:
        place, bound = place + 1, above
    return last[counts[place]], bound
