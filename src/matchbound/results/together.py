"""Differences that are looked at together: intervals and p-values that hold for all of them at once (max-t)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from matchbound.results.comparison import Difference
from matchbound.results.interval import Interval, tail_of
from matchbound.stats.families.critical import Largest, adjusted_level


@dataclass(frozen=True, eq=False)
class Together:
    """Several differences and what the largest of them would be if nothing differed.

    Whether there is a difference at all is asked of a world without differences: its critical value decides whether an
    interval leaves out 0, and where that limit then lies. What else an interval says is about differences that exist,
    where few errors make no short tails; there the normal approximation has a say too, and the larger critical value
    counts. No interval is narrower, and no p-value smaller, than that of the difference alone; a single difference
    stays as it is.

    differences
        The family.
    gaussian : Largest
        By the normal approximation.
    null : Largest or None
        By random signs or by exchange of people; None where the approximation has to do.
    """

    differences: Sequence[Difference]
    gaussian: Largest
    null: Largest | None = None

    def adjusted(self, level: float) -> float:
        """The level of each interval at which all of them hold, by the normal approximation."""
        return adjusted_level(self._critical(level, self.gaussian))

    def intervals(self, method: str, level: float) -> list[Interval]:
        """One interval per difference; they all hold at once with the level given."""
        wide = self._critical(level, self.gaussian)
        near, far = wide, wide
        if self.null is not None and method in self.differences[0].tested:
            near = self._critical(level, self.null)
            far = max(near, wide)
        return [self._interval(d, method, level, adjusted_level(near), adjusted_level(far)) for d in self.differences]

    def p_values(self) -> list[float]:
        """Adjusted for all differences; ties count half (mid-P)."""
        alone = [d.p_value for d in self.differences]
        if len(alone) == 1:
            return alone
        adjusted = (self.gaussian if self.null is None else self.null).p_values(
            np.array([normal_score(p) for p in alone])
        )
        return [float(p) if math.isnan(one) else max(float(p), one) for p, one in zip(adjusted, alone, strict=True)]

    def _critical(self, level: float, largest: Largest) -> float:
        alone = NormalDist().inv_cdf(1.0 - tail_of(level, "two-sided"))
        return alone if len(self.differences) == 1 else max(largest.critical(level), alone)

    @staticmethod
    def _interval(difference: Difference, method: str, level: float, near: float, far: float) -> Interval:
        wide = difference.interval(method, far)
        low, high = wide.low, wide.high
        if near < far and difference.estimate != 0.0:
            close = difference.interval(method, near)
            if close.low > 0.0:
                low = close.low
            elif close.high < 0.0:
                high = close.high
        return Interval(low, high, level, f"{wide.method}, max-t", notes=wide.notes)


def normal_score(p: float) -> float:
    """The normal deviate with this two-sided tail; 0 for 1 and for an unknown p-value."""
    from scipy.special import ndtri

    return float(-ndtri(max(p, 1e-300) / 2.0)) if p < 1.0 else 0.0
