"""The paper's union rule for FRR at a FAR.

Section "Pointwise intervals for ROC curves" of Fogliato, Patil & Perona (2024): an interval for FAR at `level_far`
gives two thresholds; the intervals for FRR at these two thresholds are joined. The authors' program and figures use
α_FAR = 0.1, a `level_far` of 0.9. FAR takes steps, and its limits mostly fall between two: the thresholds are rounded
outwards, so that every threshold whose FAR lies within the limits is between them.
"""

from __future__ import annotations

import numpy as np

from matchbound.counts.curve import CurveTally
from matchbound.stats.curve.rates import SLACK, index_at_far
from matchbound.stats.intervals import effective_n, wald, wilson
from matchbound.stats.variance import plug_in

# The level of FAR's interval, 1 − α_FAR, in the authors' program.
LEVEL_FAR = 0.9


def union_limits(
    curve: CurveTally, target: float, tail: float, tail_given: float, given: str = "far", base: str = "wilson"
) -> tuple[float, float]:
    """Limits for FRR at FAR = target: FRR intervals at both ends of FAR's interval, joined; or with roles exchanged.

    `base` says whose intervals are joined, ``"wilson"`` or ``"wald"``.
    """

    def limits(metric: str, k: int, tail: float) -> tuple[float, float]:
        estimate, variance = float(getattr(curve, metric)[k]), plug_in(curve.tally_at(np.array([k])).part(metric), 0)
        if base == "wald":
            return wald(estimate, variance, min(tail, 0.5))
        return wilson(estimate, effective_n(estimate, variance, curve.part(metric).floor), min(tail, 0.5))

    rates = curve.far if given == "far" else curve.frr[::-1]  # never decreasing
    points = np.arange(rates.size) if given == "far" else np.arange(rates.size)[::-1]
    low, high = limits(given, int(points[index_at_far(rates, target)]), tail_given)
    reached = min(int(np.searchsorted(rates, high / SLACK, side="left")), rates.size - 1)
    ends = (index_at_far(rates, low), max(index_at_far(rates, high), reached))
    other = "frr" if given == "far" else "far"
    lows, highs = zip(*(limits(other, int(points[end]), tail) for end in ends), strict=True)
    return min(lows), max(highs)
