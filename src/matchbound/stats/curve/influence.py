"""Influence functions of curve statistics: how much each identity moves FRR at a FAR, FAR at an FRR, EER and AUC.

The threshold of a target FAR is estimated from the same data, so an identity moves FRR@FAR twice: through the genuine
errors at the threshold, and through the threshold. With a_i = (e_i − q·g_i)/T, ρ_i = 2r_i/N2 and λ the slope of the
curve there (genuine density / impostor density), the influence of identity i is a_i + λ·ρ_i on FRR@FAR, ρ_i + a_i/λ on
FAR@FRR, and (a_i + λ·ρ_i)/(1 + λ) on EER. Variances are u²Σa_i² + 2uvΣa_iρ_i + v²·Var(FAR). For EER, areas and
simultaneous bands each term is corrected for the small-sample bias of the plug-in; for FRR@FAR and FAR@FRR the plug-in
stands as it is, with Student's t.

Simultaneous bands are sup-t bands from a multiplier bootstrap over identities: with ψ_i(f) the influence of identity i
on FRR at FAR f and ξ_i independent standard normal, c is the quantile of max_f |Σξ_iψ_i(f)|/√Σψ_i(f)², and the band is
the pointwise one at c (made as much larger as t is than z) standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.curve import CurveTally
from matchbound.stats.curve.rates import AreaTerms, index_at_far
from matchbound.stats.dyadic import DyadicSums, bias_factors, effective_number
from matchbound.stats.intervals import effective_n, effective_trials, ndtr, ndtri, t_quantile, wilson, wilson_limits
from matchbound.stats.resampling import in_blocks, percentile
from matchbound.stats.variance import plug_in

# Bandwidth, in probits of FAR, of the straight line whose slope is the curve's slope.
SLOPE_BANDWIDTH = 0.75
SLOPE_STEPS = np.linspace(-2.0, 2.0, 15)
MULTIPLIER_BLOCK = 250
# FARs around the target, as multiples of it, over which the effective sample size is averaged.
NEIGHBOURS = np.exp(np.log(2.0) * np.linspace(-1.0, 1.0, 5))


@dataclass(frozen=True, eq=False)
class PointInfluence:
    """What each identity adds to FRR and FAR at P points of a curve.

    - frr_rate, far_rate, shape (P,): q and p.
    - frr, far, shape (P, G): a_i and ρ_i.
    - far_variance, shape (P,): (4R − 2Q)/N2², less than Σρ_i² by what the comparisons of one pair count twice.
    - slope, shape (P,): λ: how much FRR falls while FAR rises by a unit.
    - identities: effective number of identities, for bias corrections and degrees of freedom.
    """

    frr_rate: FloatArray
    far_rate: FloatArray
    frr: FloatArray
    far: FloatArray
    far_variance: FloatArray
    slope: FloatArray
    identities: float

    def variance(self, frr_share: FloatArray, far_share: FloatArray, corrected: bool) -> FloatArray:
        """Variance of frr_share·FRR + far_share·FAR at each point, shape (P,), with or without bias correction."""
        own = np.einsum("pi,pi->p", self.frr, self.frr)
        cross = np.einsum("pi,pi->p", self.frr, self.far)
        far = self.far_variance
        if corrected:
            more = bias_factors(self.identities)
            own, cross, far = own * more[0], cross * more[1], far * more[2]
        u, v = frr_share, far_share
        return np.asarray(u * u * own + 2.0 * u * v * cross + v * v * far)


@dataclass(frozen=True)
class EffectiveRate:
    """An estimate with what Wilson's formula needs."""

    estimate: float
    variance: float
    effective_n: float
    freedom: float


def point_influence(curve: CurveTally, points: IntArray) -> PointInfluence:
    """Influences at some points of a curve, numbered in increasing order."""
    n, t = curve.n_impostor, curve.n_genuine
    x, e = curve.false_matches[points], curve.false_nonmatches[points]
    p, q = x / n, e / t
    tally = curve.tally_at(points)
    return PointInfluence(
        frr_rate=q,
        far_rate=p,
        frr=(tally.genuine.errors - q[:, None] * curve.genuine_comparisons) / t,
        far=(tally.impostor.errors - p[:, None] * curve.impostor_comparisons) / n,
        far_variance=np.array([plug_in(tally.impostor, k) for k in range(points.size)]),
        slope=curve_slopes(curve, points),
        identities=effective_number(curve.genuine_comparisons),
    )


def curve_slopes(curve: CurveTally, points: IntArray) -> FloatArray:
    """λ = −dFRR/dFAR at some points, shape (P,).

    On probit axes a curve is nearly straight, so its slope is taken there: a straight line through 15 points of the
    curve, weighted by a Gaussian kernel of bandwidth `SLOPE_BANDWIDTH` and less where few impostors match. The slope b
    of Φ⁻¹(FRR) on Φ⁻¹(FAR) gives λ = −b·φ(Φ⁻¹FRR)/φ(Φ⁻¹FAR), with FRR from the line.
    """
    n, t = curve.n_impostor, curve.n_genuine
    centre = ndtri(np.clip(curve.false_matches[points] / n, 0.5 / n, 1.0 - 0.5 / n))
    wanted = ndtr(centre[:, None] + SLOPE_BANDWIDTH * SLOPE_STEPS)
    at = np.maximum(np.searchsorted(curve.false_matches, wanted * n, side="right") - 1, 0)
    x = ndtri((curve.false_matches[at] + 0.5) / (n + 1.0))
    y = ndtri((curve.false_nonmatches[at] + 0.5) / (t + 1.0))
    weight = np.exp(-0.5 * ((x - centre[:, None]) / SLOPE_BANDWIDTH) ** 2)
    weight *= np.minimum(curve.false_matches[at], 30) + 0.5
    total = weight.sum(axis=1)
    mean_x, mean_y = (weight * x).sum(axis=1) / total, (weight * y).sum(axis=1) / total
    dx = x - mean_x[:, None]
    spread = (weight * dx * dx).sum(axis=1)
    slope = np.divide(
        (weight * dx * (y - mean_y[:, None])).sum(axis=1), spread, out=np.zeros_like(spread), where=spread > 0
    )
    level = mean_y + slope * (centre - mean_x)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.maximum(-slope, 0.0) * np.exp(0.5 * (centre * centre - level * level)))


def rate_shares(metric: str, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What a unit of FRR and of FAR at a fixed threshold moves FRR@FAR, FAR@FRR or EER by, at slopes λ."""
    one = np.ones_like(slope)
    if metric == "eer":
        share = 1.0 / (1.0 + slope)
        return share, 1.0 - share
    if metric == "frr@far":
        return one, slope
    return np.divide(1.0, slope, out=np.zeros_like(slope), where=slope > 0), one


def point_rate(curve: CurveTally, index: int, metric: str, estimate: float) -> EffectiveRate:
    """FRR@FAR or FAR@FRR at a point of the curve, or EER at the nearest one, with its effective number of trials.

    V/(q(1−q)), the reciprocal of the effective number of a point, is averaged geometrically over neighbouring FARs
    (half to twice the target): a few identities make it noisy at a single threshold.
    """
    eer, counted, floors = metric == "eer", curve.counted, [curve.part(kind).floor for kind in ("far", "frr")]
    terms = point_influence(curve, np.array([index]) if eer else _neighbours(curve, index))
    shares = rate_shares(metric, terms.slope)
    variance = terms.variance(*shares, corrected=eer)
    if eer:
        rates, floor = shares[0] * terms.frr_rate + shares[1] * terms.far_rate, max(min(floors), 1)
        count = counted.n_impostor + counted.n_genuine
    elif metric == "frr@far":
        rates, floor, count = terms.frr_rate, floors[1], counted.n_genuine
    else:
        rates, floor, count = terms.far_rate, floors[0], counted.n_impostor
    return _pooled(estimate, rates, variance, floor, count, terms.identities)


def area_rate(curve: CurveTally, terms: AreaTerms) -> EffectiveRate:
    """AUC or partial AUC with its variance: (4R − 2Q)/N2² for the impostor terms, Σa² and the covariance.

    Genuine terms sum by identity to a_i, impostor terms by identity pair to D_ij; both are centred.
    """
    n, t = curve.n_impostor, curve.n_genuine
    accepted, matched = t - curve.false_nonmatches, curve.false_matches
    mean_genuine = float(np.diff(accepted, prepend=0) @ terms.genuine) / t
    mean_impostor = float(np.diff(matched, prepend=0) @ terms.impostor) / n
    own, shared, square = curve.summed((terms.genuine - mean_genuine) / t, (terms.impostor - mean_impostor) / n)
    size = effective_number(curve.genuine_comparisons)
    variance = DyadicSums(own, shared, square or 0.0).corrected(size, floored=False)
    floor = max(min(curve.part(metric).floor for metric in ("far", "frr")), 1.0)
    trials = effective_n(terms.estimate, variance, floor)
    return EffectiveRate(terms.estimate, variance, trials, max(size - 1.0, 1.0))


def _neighbours(curve: CurveTally, index: int) -> IntArray:
    """The point and those at neighbouring FARs, in increasing order."""
    n = curve.n_impostor
    near = np.minimum(curve.false_matches[index] * NEIGHBOURS, 0.9 * n)
    at = np.searchsorted(curve.false_matches, near * (1.0 + 1e-12), side="right") - 1
    return np.unique(np.append(at, index))


def _pooled(
    estimate: float, rates: FloatArray, variances: FloatArray, floor: float, count: int, identities: float
) -> EffectiveRate:
    """Wilson's ingredients from a rate and from variances at neighbouring points."""
    spread = rates * (1.0 - rates)
    known = (spread > 0.0) & (variances > 0.0)
    freedom = max(identities - 1.0, 1.0)
    own = estimate * (1.0 - estimate)
    n = float(floor)
    if known.any() and own > 0.0:
        ratio = np.maximum(variances[known] / spread[known], 1.0 / count)
        n = max(1.0 / float(np.exp(np.log(ratio).mean())), n)
    return EffectiveRate(estimate, own / n, n, freedom)


def wilson_t(rate: EffectiveRate, tail: float) -> tuple[float, float]:
    """Wilson's limits with Student's t in place of the normal quantile."""
    return wilson(rate.estimate, rate.effective_n, tail, rate.freedom)


def band_grid(low: float, high: float, points: int) -> FloatArray:
    """FARs at which a band is worked out: even on the probit scale, shape (points,)."""
    grid = ndtr(np.linspace(ndtri(low), ndtri(high), points))
    grid[0], grid[-1] = low, high
    return grid


def band_limits(
    curve: CurveTally, far: FloatArray, level: float, simultaneous: bool, n_resamples: int, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """(FRR, low, high, critical) at each FAR of an increasing grid; `critical` standard errors make the band."""
    rates = curve.false_matches / curve.n_impostor
    chosen = np.array([index_at_far(rates, target) for target in far])
    points, place = np.unique(chosen, return_inverse=True)
    place = place.reshape(-1)
    terms = point_influence(curve, points)
    variance = terms.variance(np.ones(points.size), terms.slope, simultaneous)
    n = np.minimum(effective_trials(terms.frr_rate, variance, curve.part("frr").floor), curve.counted.n_genuine)
    freedom = max(terms.identities - 1.0, 1.0)
    tail = (1.0 - level) / 2.0
    critical = t_quantile(tail, freedom)
    if simultaneous:
        psi = terms.frr + terms.slope[:, None] * terms.far
        widest = _sup_quantile(psi, level, n_resamples, seed)
        critical = t_quantile(min(float(ndtr(-widest)), tail), freedom)
    n, q = _smooth(n, points.size)[place], terms.frr_rate[place]
    low, high = wilson_limits(q, n, critical)
    if simultaneous:  # FRR falls while FAR rises, so a limit at one FAR is a limit at those beside it
        low, high = np.maximum.accumulate(low[::-1])[::-1], np.minimum.accumulate(high)
    else:  # beyond the last genuine error the floor would say less than the last limit before it
        errors = np.flatnonzero(q > 0.0)
        if errors.size:
            high = np.where(q > 0.0, high, np.minimum(high, high[errors[-1]]))
    return q, low, high, critical


def _smooth(n: FloatArray, size: int) -> FloatArray:
    """Geometric running mean over a few neighbours, shape (P,)."""
    width = min(max(size // 30, 1), 5)
    padded = np.pad(np.log(n), width, mode="edge")
    kernel = np.full(2 * width + 1, 1.0 / (2 * width + 1))
    return np.exp(np.convolve(padded, kernel, mode="valid"))


def _sup_quantile(psi: FloatArray, level: float, n_resamples: int, seed: int) -> float:
    """The level-quantile of max_f |Σξψ(f)|/√Σψ(f)²."""
    size = np.sqrt(np.einsum("pi,pi->p", psi, psi))
    shape = psi[size > 0.0] / size[size > 0.0, None]
    if not shape.size:
        return 0.0

    def draw(rows: int, rng: np.random.Generator) -> FloatArray:
        return np.asarray(np.abs(rng.standard_normal((rows, psi.shape[1])) @ shape.T).max(axis=1))

    return percentile(np.concatenate(in_blocks(draw, n_resamples, seed, size=MULTIPLIER_BLOCK)), level)
