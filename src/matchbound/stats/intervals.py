"""Intervals for one rate from its estimate and its variance, as pure functions.

Limits are asked for by tail probability, so that two-sided and one-sided intervals are the same formulas: a
two-sided level 0.95 has tails of 0.025, a one-sided bound at 0.95 a tail of 0.05.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_NORMAL = NormalDist()


def normal_quantile(tail: float) -> float:
    """z with an upper tail of `tail` under the standard normal."""
    return -_NORMAL.inv_cdf(tail)


def effective_n(estimate: float, variance: float, floor: float) -> float:
    """N* = max{p(1−p)/Var, floor} (the paper's eq. 7); the floor where p is 0 or 1 or the variance is not positive."""
    spread = estimate * (1.0 - estimate)
    if not (variance > 0.0 and spread > 0.0):
        return float(floor)
    return max(spread / variance, float(floor))


def wilson(estimate: float, n: float, tail: float) -> tuple[float, float]:
    """Wilson's limits for a rate seen in n (effective) trials (the paper's eq. 7)."""
    z = normal_quantile(tail)
    centre = (estimate * n + z * z / 2.0) / (n + z * z)
    half = abs(z) * math.sqrt(n) / (n + z * z) * math.sqrt(estimate * (1.0 - estimate) + z * z / (4.0 * n))
    # the limits solve (n + z²)x² − (2np + z²)x + np² = 0; the smaller one from their product, which cancels nothing
    larger = centre + half
    smaller = estimate * (estimate * n / (n + z * z) / larger) if larger > 0.0 else 0.0
    low, high = (smaller, larger) if z >= 0.0 else (larger, smaller)
    return 0.0 if estimate <= 0.0 else min(low, 1.0), 1.0 if estimate >= 1.0 else min(high, 1.0)


def wald(estimate: float, variance: float, tail: float) -> tuple[float, float]:
    """p ± z√Var, kept within [0, 1]; a variance that is not positive counts as 0."""
    half = normal_quantile(tail) * math.sqrt(max(variance, 0.0))
    return max(estimate - half, 0.0), min(estimate + half, 1.0)
