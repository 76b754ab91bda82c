"""Bands around a curve: limits for FRR at many FARs, each by itself or all at once.

Simultaneous bands are sup-t bands from a multiplier bootstrap over identities: with ψ_i(f) the influence of identity i
on FRR at FAR f and ξ_i independent standard normal, c is the quantile of max_f |Σξ_iψ_i(f)|/√Σψ_i(f)², and the band is
the pointwise one at c (made as much larger as t is than z) standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.counts.curve import CurveTally
from matchbound.stats.curve.influence import point_influence
from matchbound.stats.curve.rates import index_at_far
from matchbound.stats.intervals import t_quantile, wilson_limits
from matchbound.stats.normal import ndtr, ndtri
from matchbound.stats.resampling import block_rng

MULTIPLIER_BLOCK = 250


@dataclass(frozen=True, eq=False)
class BandLimits:
    """Limits at L FARs; float64 arrays, shape (L,).

    far
        The targets, increasing.
    frr, low, high
        FRR there and its limits.
    critical
        How many standard errors the limits are away.
    """

    far: FloatArray
    frr: FloatArray
    low: FloatArray
    high: FloatArray
    critical: float


def band_grid(low: float, high: float, points: int) -> FloatArray:
    """FARs at which a band is worked out: even on the probit scale, shape (points,)."""
    grid = ndtr(np.linspace(ndtri(low), ndtri(high), points))
    grid[0], grid[-1] = low, high
    return grid


def band_limits(
    curve: CurveTally, far: FloatArray, level: float, simultaneous: bool, n_resamples: int, seed: int
) -> BandLimits:
    """Limits for FRR at each FAR of an increasing grid."""
    rates = curve.false_matches / curve.n_impostor
    chosen = np.array([index_at_far(rates, target) for target in far])
    points, place = np.unique(chosen, return_inverse=True)
    place = place.reshape(-1)
    terms = point_influence(curve, points)
    floor = float(np.count_nonzero(curve.genuine_comparisons))
    n = _effective(
        terms.frr_rate, terms.variance(np.ones(points.size), terms.slope, simultaneous), floor, curve.trials[1]
    )
    freedom = max(terms.identities - 1.0, 1.0)
    tail = (1.0 - level) / 2.0
    critical = t_quantile(tail, freedom)
    if simultaneous:
        psi = terms.frr + terms.slope[:, None] * terms.far
        widest = _sup_quantile(psi, level, n_resamples, seed)
        critical = t_quantile(NormalDist().cdf(min(-widest, NormalDist().inv_cdf(tail))), freedom)
    n, q = _smooth(n, points.size)[place], terms.frr_rate[place]
    low, high = wilson_limits(q, n, critical)
    if simultaneous:  # FRR falls while FAR rises, so a limit at one FAR is a limit at those beside it
        low, high = np.maximum.accumulate(low[::-1])[::-1], np.minimum.accumulate(high)
    else:  # beyond the last genuine error the floor would say less than the last limit before it
        errors = np.flatnonzero(q > 0.0)
        if errors.size:
            high = np.where(q > 0.0, high, np.minimum(high, high[errors[-1]]))
    return BandLimits(far, q, low, high, critical)


def _effective(rate: FloatArray, variance: FloatArray, floor: float, count: int) -> FloatArray:
    spread = rate * (1.0 - rate)
    n = np.divide(spread, variance, out=np.full(rate.size, floor), where=(variance > 0.0) & (spread > 0.0))
    return np.asarray(np.clip(n, floor, count))


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
    largest = []
    for block in range(-(-n_resamples // MULTIPLIER_BLOCK)):
        rows = min(MULTIPLIER_BLOCK, n_resamples - block * MULTIPLIER_BLOCK)
        draws = block_rng(seed, block).standard_normal((rows, psi.shape[1]))
        largest.append(np.abs(draws @ shape.T).max(axis=1))
    return float(np.quantile(np.concatenate(largest), level, method="weibull"))
