"""Intervals for one rate from its estimate and its variance, as pure functions.

Limits are asked for by tail probability, so that two-sided and one-sided intervals are the same formulas: a
two-sided level 0.95 has tails of 0.025, a one-sided bound at 0.95 a tail of 0.05.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import FloatArray
from matchbound.errors import UsageError


def ndtr(z: ArrayLike) -> FloatArray:
    """Φ(z), the shape of z."""
    from scipy.special import ndtr

    return np.asarray(ndtr(z), dtype=np.float64)


def ndtri(probability: ArrayLike) -> FloatArray:
    """Φ⁻¹, the shape of the argument."""
    from scipy.special import ndtri

    return np.asarray(ndtri(probability), dtype=np.float64)


def normal_quantile(tail: float) -> float:
    """z with an upper tail of `tail` under the standard normal."""
    return -NormalDist().inv_cdf(tail)  # so that intervals in closed form need no scipy, which takes 0.3 s to import


def t_quantile(tail: float, degrees: float) -> float:
    """The point with an upper tail of `tail` under Student's t; at least one degree of freedom."""
    from scipy.special import stdtrit

    if not 0.0 < tail < 1.0:
        raise UsageError(f"a tail must lie between 0 and 1; got {tail!r}")
    return -float(stdtrit(max(degrees, 1.0), tail))


def effective_trials(estimate: ArrayLike, variance: ArrayLike, floor: ArrayLike) -> FloatArray:
    """N* = max{p(1−p)/Var, floor} (the paper, below eq. 5), elementwise; the floor where p is 0 or 1 or Var ≤ 0."""
    p, v, least = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (estimate, variance, floor)))
    spread = p * (1.0 - p)
    known = np.divide(spread, v, out=least.copy(), where=(v > 0.0) & (spread > 0.0))
    return np.asarray(np.maximum(known, least))


def effective_n(estimate: float, variance: float, floor: float) -> float:
    """N* of one rate; see `effective_trials`."""
    return float(effective_trials(estimate, variance, floor))


def wilson_limits(estimate: ArrayLike, n: ArrayLike, z: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Wilson's limits at z standard errors for rates seen in n (effective) trials (the paper's eq. 5), elementwise.

    The limits solve (n + z²)x² − (2np + z²)x + np² = 0. The larger root is a sum of positive terms; the smaller one
    follows from the product of the two, np²/(n + z²), so that nothing cancels at rates near 0. A rate of 0 has 0 as its
    lower limit, a rate of 1 has 1 as its upper limit, and no trials at all give [0, 1]. With a negative z the limits
    change places.
    """
    p, n, z = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (estimate, n, z)))
    square = z * z
    trials = np.where(n + square > 0.0, n + square, 1.0)
    root = np.abs(z) * np.sqrt(np.maximum(n * p * (1.0 - p), 0.0) + square / 4.0)
    larger = np.where(n + square > 0.0, (p * n + square / 2.0 + root) / trials, p)
    smaller = np.where(larger > 0.0, p * (p * n / trials / np.where(larger > 0.0, larger, 1.0)), 0.0)
    smaller = np.where(n + square > 0.0, smaller, p)
    low, high = np.where(z >= 0.0, smaller, larger), np.where(z >= 0.0, larger, smaller)
    return np.where(p <= 0.0, 0.0, np.minimum(low, 1.0)), np.where(p >= 1.0, 1.0, np.minimum(high, 1.0))


def wilson(estimate: float, n: float, tail: float, degrees: float | None = None) -> tuple[float, float]:
    """Wilson's limits for a rate seen in n (effective) trials; with degrees of freedom, with Student's t for z."""
    z = normal_quantile(tail) if degrees is None else t_quantile(tail, degrees)
    low, high = wilson_limits(estimate, n, z)
    return float(low), float(high)


def agresti_coull(estimate: float, n: float, tail: float) -> tuple[float, float]:
    """Agresti & Coull's limits (1998): Wald's at (x + z²/2)/(n + z²), x = np, kept within [0, 1]."""
    z = normal_quantile(tail)
    trials = n + z * z
    if trials <= 0.0:
        return estimate, estimate
    centre = (estimate * n + z * z / 2.0) / trials
    half = z * math.sqrt(max(centre * (1.0 - centre), 0.0) / trials)
    return min(max(centre - half, 0.0), 1.0), min(max(centre + half, 0.0), 1.0)


def jeffreys(estimate: float, n: float, tail: float) -> tuple[float, float]:
    """Quantiles of Beta(np + ½, n(1−p) + ½), from 0 at a rate of 0 and up to 1 at a rate of 1 (Brown et al. 2001)."""
    from scipy.special import betaincinv

    a, b = estimate * n + 0.5, (1.0 - estimate) * n + 0.5
    low = 0.0 if estimate <= 0.0 else float(betaincinv(a, b, tail))
    return low, 1.0 if estimate >= 1.0 else 1.0 - float(betaincinv(b, a, tail))


def fallback_wilson(
    estimate: ArrayLike, variance: ArrayLike, floor: float, comparisons: float, tail: float, degrees: float
) -> tuple[FloatArray, FloatArray]:
    """Wilson's limits with Student's t and floor ≤ N* ≤ N, where the latent model cannot be fitted, elementwise.

    With no error (or nothing else) N* is the floor, and the bound is no tighter than the exact binomial one for so many
    independent trials: 1 − tail^(1/floor).
    """
    p = np.asarray(estimate, dtype=np.float64)
    n = np.minimum(effective_trials(p, variance, floor), comparisons)
    low, high = wilson_limits(p, n, t_quantile(tail, degrees))
    least = -np.expm1(math.log(tail) / np.maximum(n, 1.0))
    return np.where(p >= 1.0, np.minimum(low, 1.0 - least), low), np.where(p <= 0.0, np.maximum(high, least), high)


def wald(estimate: float, variance: float, tail: float) -> tuple[float, float]:
    """p ± z√Var, kept within [0, 1]; a variance that is not positive counts as 0."""
    half = normal_quantile(tail) * math.sqrt(max(variance, 0.0))
    return max(estimate - half, 0.0), min(estimate + half, 1.0)
