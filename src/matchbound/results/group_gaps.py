"""One rate between groups, and the gap between two groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from matchbound.arraytypes import FloatArray
from matchbound.errors import DataError
from matchbound.notes import Note
from matchbound.results.comparison import DYADIC, Difference, Ratio
from matchbound.results.interval import Interval, limits_record
from matchbound.results.number import Ask, Limits, Number, Rule
from matchbound.results.rates import Rate
from matchbound.stats import differences as stats
from matchbound.stats.gaps import GroupMoments, decided, difference_limits, gap_statistic, ratio_limits
from matchbound.stats.group_differences import CellRate
from matchbound.stats.intervals import effective_n, wilson


def _mover(method: str) -> Callable[[GroupGap, Ask], Limits]:
    """The limits of the two rates by one method, combined (MOVER)."""

    def limits(gap: GroupGap, ask: Ask) -> Limits:
        one, two = gap._rate_limits(method, ask)
        low, high = stats.mover(gap.rate_a, (one.low, one.high), gap.rate_b, (two.low, two.high))
        return Limits(max(low, -1.0), min(high, 1.0), one.method if method == "auto" else method)

    return limits


def _tested(gap: GroupGap, ask: Ask) -> Limits:
    """MOVER, where the score test of the p-value decides on which side of 0 the limit towards 0 lies."""
    limits = _mover("auto")(gap, ask)
    if gap._never_differ:
        return limits
    low, high = decided(0.0, difference_limits(*gap.moments, ask.tail), (limits.low, limits.high))
    return Limits(max(low, -1.0), min(high, 1.0), f"{limits.method}+score")


def _mover_ratio(method: str) -> Callable[[Ratio, Ask], Limits]:
    def limits(ratio: Ratio, ask: Ask) -> Limits:
        gap = ratio.difference
        assert isinstance(gap, GroupGap)
        one, two = gap._rate_limits(method, ask)
        low, high = stats.mover_ratio(gap.rate_a, (one.low, one.high), gap.rate_b, (two.low, two.high))
        if method != "auto" or gap._never_differ:
            return Limits(low, high, one.method if method == "auto" else method)
        return Limits(*decided(1.0, ratio_limits(*gap.moments, ask.tail), (low, high)), f"{one.method}+score")

    return limits


def _dyadic(gap: GroupGap, ask: Ask) -> Limits:
    return _mover("auto")(gap, ask) if gap._never_differ else DYADIC.limits(gap, ask)


def _cross_wilson(rate: CrossRate, ask: Ask) -> Limits:
    """Wilson's interval with Student's t, degrees of freedom from the smaller side."""
    freedom = max(min(rate.cell.sizes) - 1.0, 1.0)
    return Limits(*wilson(rate.estimate, rate.effective_n, ask.tail, freedom))


@dataclass(frozen=True, eq=False, repr=False)
class GroupGap(Difference):
    """A rate of one group minus the same rate of another group of people.

    group_a, group_b
        Names of the groups.
    a, b : Rate
        The rates within the two groups.
    moved : float64 array, shape (G,)
        What each identity adds to the gap.
    variances
        Of the two rates.
    moments : tuple of two GroupMoments
        What the test is made of.
    """

    group_a: str = field(kw_only=True)
    group_b: str = field(kw_only=True)
    a: Rate = field(kw_only=True)
    b: Rate = field(kw_only=True)
    moved: FloatArray = field(kw_only=True)
    variances: tuple[float, float] = field(kw_only=True)
    moments: tuple[GroupMoments, GroupMoments] = field(kw_only=True)
    tested: ClassVar[tuple[str, ...]] = ("auto",)
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("dyadic", _dyadic),
        Rule("wilson", _mover("wilson")),
        Rule("latent", _mover("latent")),
        Rule("default", _tested, hidden=True),
    )

    def __repr__(self) -> str:
        return f"GroupGap({self.metric}: {self.group_a} {self.rate_a:.6g} − {self.group_b} {self.rate_b:.6g})"

    @property
    def influence(self) -> FloatArray:
        """What each identity adds to the gap, shape (G,)."""
        return self.moved

    def _studentised(self) -> tuple[float, float]:
        """The gap over its standard error if both groups had a common rate, and the degrees of freedom of that."""
        statistic, freedom = gap_statistic(*self.moments)
        return float(statistic), float(freedom)

    @property
    def unpaired_variance(self) -> float:
        """The same as the variance: the groups have nobody in common."""
        return self.variance

    def _rate_limits(self, method: str, ask: Ask) -> tuple[Interval, Interval]:
        """The intervals of both rates with the tail that is asked for on either side."""
        return self.a.interval(method, ask.two_sided_level), self.b.interval(method, ask.two_sided_level)

    def _ratio_rules(self) -> Mapping[str, Callable[[Ratio, Ask], Limits]]:
        """By ``"auto"`` the ratio leaves out 1 exactly when the gap leaves out 0; ``"dyadic"`` is on the log scale."""
        return {**super()._ratio_rules(), **{name: _mover_ratio(name) for name in ("auto", "wilson", "latent")}}

    @property
    def _never_differ(self) -> bool:
        return self.a.errors == 0 and self.b.errors == 0

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know about the number."""
        if self._never_differ:
            return (Note("no-errors", f"{self.metric.upper()}: no error in {self.group_a} nor in {self.group_b}"),)
        return ()

    def _variance(self, method: str) -> float:
        return self.variances[0] + self.variances[1]

    def _log_ratio(self, method: str) -> tuple[float, float]:
        a = stats.softened(self.a.units_erred, self.a.units)
        b = stats.softened(self.b.units_erred, self.b.units)
        return math.log(a / b), self.variances[0] / a**2 + self.variances[1] / b**2


def _of_all_pairs(largest: LargestGap, ask: Ask) -> Limits:
    """Bounds of the largest gap.

    That every gap is below a target is shown when each upper bound is: no adjustment for their number is needed (an
    intersection-union test). That one of them is above it takes lower bounds that hold simultaneously (Bonferroni).
    """
    numbers = largest.numbers
    high = max(number.interval(level=1.0 - ask.tail, side="upper").high for number in numbers)
    low = max(number.interval(level=1.0 - ask.tail / len(numbers), side="lower").low for number in numbers)
    return Limits(max(low, 1.0 if largest.metric.endswith("ratio") else 0.0), high)


@dataclass(frozen=True, eq=False, repr=False)
class LargestGap(Number):
    """The largest gap, or ratio, among all pairs of groups.

    metric
        Such as ``"far gap"`` or ``"frr ratio"``.
    gaps
        Every pair of groups, in both orders.
    """

    metric: str
    gaps: tuple[GroupGap, ...]
    rules: ClassVar[tuple[Rule, ...]] = (Rule("all pairs", _of_all_pairs),)
    defaults: ClassVar[tuple[str, ...]] = ("all pairs",)

    def __repr__(self) -> str:
        return f"LargestGap({self.metric}={self.estimate:.6g})"

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The gap or the ratio of every pair."""
        return tuple(gap.as_ratio() for gap in self.gaps) if self.metric.endswith("ratio") else self.gaps

    @property
    def estimate(self) -> float:
        """The largest of them."""
        return max((float(number) for number in self.numbers if not math.isnan(float(number))), default=math.nan)

    @property
    def ends(self) -> tuple[float, float]:
        """Those of one gap or ratio."""
        return self.numbers[0].ends


@dataclass(frozen=True, eq=False)
class CrossRate(Number):
    """The impostor rate between two groups (or within one).

    group_a, group_b
        Names of the groups.
    estimate, errors, comparisons, variance
        NaN estimate and variance without comparisons.
    """

    group_a: str
    group_b: str
    cell: CellRate = field(repr=False)
    metric: ClassVar[str] = "far"
    rules: ClassVar[tuple[Rule, ...]] = (Rule("wilson", _cross_wilson),)
    defaults: ClassVar[tuple[str, ...]] = ("wilson",)

    def record(self, interval: Interval | None) -> dict[str, Any]:
        """The rate with the limits of an interval."""
        return {
            "metric": self.metric,
            "group_a": self.group_a,
            "group_b": self.group_b,
            "estimate": self.estimate,
            **limits_record(interval),
            "errors": self.errors,
            "comparisons": self.comparisons,
            "variance": self.variance,
        }

    @property
    def estimate(self) -> float:
        """errors / comparisons."""
        return self.cell.estimate

    @property
    def errors(self) -> int:
        """Impostor comparisons of this kind that matched."""
        return self.cell.errors

    @property
    def comparisons(self) -> int:
        """Impostor comparisons of this kind."""
        return self.cell.comparisons

    @property
    def variance(self) -> float:
        """Of the estimate, corrected for the bias of the plug-in."""
        return self.cell.variance

    @property
    def effective_n(self) -> float:
        """How many independent comparisons would be as informative; at least one per person on the smaller side."""
        least = min(self.cell.sizes) / (2.0 if self.group_a == self.group_b else 1.0)
        return effective_n(self.estimate, self.variance, max(math.floor(least), 1))

    def _defined(self) -> bool:
        return self.comparisons > 0

    def _must_be_defined(self) -> None:
        if not self.comparisons:
            raise DataError(f"no impostor comparisons between {self.group_a} and {self.group_b}")
