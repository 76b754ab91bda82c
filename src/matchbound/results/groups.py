"""Rates by group of people, of comparisons or of searches: within groups, between groups, gaps and ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import DataError, UsageError
from matchbound.metrics import METRICS, Home
from matchbound.notes import Note
from matchbound.results.claims import Judged
from matchbound.results.comparison import (
    SYSTEM_RULES,
    Difference,
    FamilyRow,
    Ratio,
    simultaneous,
)
from matchbound.results.number import Ask, Interval, Limits, Number, Rule, tail_of
from matchbound.results.rates import ErrorRates, Rate
from matchbound.show.shown import Shown
from matchbound.stats import gaps as stats
from matchbound.stats.differences import mover, mover_ratio, softened
from matchbound.stats.dyadic import effective_number
from matchbound.stats.families import Largest, Rng, permuted_frr, thrown_far, within_groups
from matchbound.stats.intervals import effective_n, t_quantile, wilson

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.results.searches import Searches, SearchRate
    from matchbound.show.section import Section
    from matchbound.show.tables import Table

Metric = Literal["far", "frr"]
# Groups with fewer identities than this are named, and left out of comparisons between groups.
SMALL = 10


@dataclass(frozen=True, eq=False, repr=False)
class Gap(Difference):
    """A rate of one group minus the same rate of another group of people."""

    group_a: str
    group_b: str
    variances: tuple[float, float]
    # The interval of a rate, by a method and a level; gaps of the same groups share what was computed once.
    interval_of: Callable[[Any, str, float], Interval]
    names: ClassVar[tuple[str, str]] = ("group_a", "group_b")

    def limits_of_rates(self, method: str, ask: Ask) -> list[Interval]:
        """The intervals of both rates with the tail that is asked for on either side."""
        return [self.interval_of(rate, method, ask.two_sided_level) for rate in (self.a, self.b)]

    @property
    def _never_differ(self) -> bool:
        return not self.variance > 0.0

    def _variance(self, method: str) -> float:
        return self.variances[0] + self.variances[1]


def _mover(method: str, gap: Gap, ask: Ask) -> Limits:
    """The limits of the two rates by one method, combined (MOVER)."""
    one, two = gap.limits_of_rates(method, ask)
    return Limits(*mover(gap.rate_a, one, gap.rate_b, two), one.method)


def _tested(gap: GroupGap, ask: Ask) -> Limits:
    """MOVER, where the score test of the p-value decides on which side of 0 the limit towards 0 lies."""
    limits = _mover("auto", gap, ask)
    if gap._never_differ:
        return limits
    one, two = gap.limits_of_rates("auto", ask)
    apart = (one.low - two.high, one.high - two.low)
    low, high = stats.decided(0.0, stats.difference_limits(*gap.moments, ask.tail), (limits.low, limits.high), apart)
    return Limits(max(low, -1.0), min(high, 1.0), f"{limits.method}+score")


def _mover_ratio(method: str, ratio: Ratio, ask: Ask) -> Limits:
    """The limits of the two rates combined (MOVER-R); by ``"auto"`` 1 is left out exactly when the gap leaves out 0."""
    gap = ratio.difference
    assert isinstance(gap, GroupGap)
    one, two = gap.limits_of_rates(method, ask)
    limits = mover_ratio(gap.rate_a, one, gap.rate_b, two)
    if method != "auto" or gap._never_differ:
        return Limits(*limits, one.method)
    apart = (one.low / two.high if two.high > 0.0 else 0.0, one.high / two.low if two.low > 0.0 else math.inf)
    return Limits(*stats.decided(1.0, stats.ratio_limits(*gap.moments, ask.tail), limits, apart), f"{one.method}+score")


def _dyadic(gap: GroupGap, ask: Ask) -> Limits:
    return _mover("auto", gap, ask) if gap._never_differ else SYSTEM_RULES[0].limits(gap, ask)


@dataclass(frozen=True, eq=False, repr=False)
class GroupGap(Gap):
    """FAR or FRR of one group minus that of another, each within its own; `influence`, shape (G,), by identity."""

    influence: FloatArray
    tested: ClassVar[tuple[str, ...]] = ("auto",)
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("dyadic", _dyadic),
        Rule("wilson", partial(_mover, "wilson")),
        Rule("latent", partial(_mover, "latent")),
        Rule("default", _tested, hidden=True),
    )

    def as_ratio(self) -> Ratio:
        return GroupRatio(self)

    def __repr__(self) -> str:
        return f"GroupGap({self.metric}: {self.group_a} {self.rate_a:.6g} − {self.group_b} {self.rate_b:.6g})"

    @cached_property
    def moments(self) -> tuple[stats.GroupMoments, stats.GroupMoments]:
        return stats.moments(self.a.unit), stats.moments(self.b.unit)

    @property
    def notes(self) -> tuple[Note, ...]:
        if self._never_differ:
            return (Note("no-errors", f"{self.metric.upper()}: no error in {self.group_a} nor in {self.group_b}"),)
        return ()

    @property
    def _never_differ(self) -> bool:
        return not (self.a.errors or self.b.errors)

    def _studentised(self) -> tuple[float, float]:
        """The gap over its standard error if both groups had a common rate, and the degrees of freedom of that."""
        statistic, freedom = stats.gap_statistic(*self.moments)
        return float(statistic), float(freedom)

    def _log_ratio(self, method: str) -> tuple[float, float]:
        a, b = (softened(rate.units_erred, rate.units) for rate in (self.a, self.b))
        return math.log(a / b), self.variances[0] / a**2 + self.variances[1] / b**2


class GroupRatio(Ratio):
    """FAR or FRR of one group over that of another, each within its own."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Ratio.rules[0],
        Rule("wilson", partial(_mover_ratio, "wilson")),
        Rule("latent", partial(_mover_ratio, "latent")),
        Rule("default", partial(_mover_ratio, "auto"), hidden=True),
    )


def _search_mover(gap: SearchGap, ask: Ask) -> Limits:
    """The limits of both rates, combined.

    The groups share the gallery, whose part of the errors partly cancels: the interval is wider than it need be.
    """
    limits = _mover("auto", gap, ask)
    notes = [note for interval in gap.limits_of_rates("auto", ask) for note in interval.notes]
    return Limits(limits.low, limits.high, notes=tuple(dict.fromkeys(notes)))


class SearchGap(Gap):
    """FPIR, FNIR or CMC of one group of people searched for minus that of another."""

    rules: ClassVar[tuple[Rule, ...]] = (Rule("mover", _search_mover),)
    defaults: ClassVar[tuple[str, ...]] = ("mover",)

    def record(self, interval: Interval | None) -> dict[str, Any]:
        """The gap with the limits of an interval; `metric` is that of the rates."""
        names = {"metric": self.metric, "group_a": self.group_a, "group_b": self.group_b}
        return {**super().record(interval), **names}


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
    """The largest gap, or ratio, among all pairs of groups in both orders; its metric is such as ``"far gap"``."""

    metric: str
    gaps: tuple[GroupGap, ...]
    rules: ClassVar[tuple[Rule, ...]] = (Rule("all pairs", _of_all_pairs),)
    defaults: ClassVar[tuple[str, ...]] = ("all pairs",)

    @property
    def numbers(self) -> tuple[Number, ...]:
        return tuple(gap.as_ratio() for gap in self.gaps) if self.metric.endswith("ratio") else self.gaps

    @property
    def _largest(self) -> tuple[Number, GroupGap]:
        known = zip(self.numbers, self.gaps, strict=True)
        return max(known, key=lambda pair: -math.inf if math.isnan(float(pair[0])) else float(pair[0]))

    @property
    def estimate(self) -> float:
        return float(self._largest[0])

    @property
    def groups(self) -> tuple[str, str]:
        """The two groups whose gap it is, the one with the higher rate first."""
        return self._largest[1].group_a, self._largest[1].group_b

    @property
    def ends(self) -> tuple[float, float]:
        return self.numbers[0].ends


def _cross_wilson(rate: CrossRate, ask: Ask) -> Limits:
    """Wilson's interval with Student's t, degrees of freedom from the smaller side."""
    freedom = max(min(rate.cell.sizes) - 1.0, 1.0)
    return Limits(*wilson(rate.estimate, rate.effective_n, ask.tail, freedom))


@dataclass(frozen=True, eq=False)
class CrossRate(Number):
    """The impostor rate between two groups (or within one); estimate and variance are NaN without comparisons."""

    group_a: str
    group_b: str
    estimate: float
    errors: int
    comparisons: int
    variance: float
    cell: stats.CellRate = field(repr=False)
    metric: ClassVar[str] = "far"
    rules: ClassVar[tuple[Rule, ...]] = (Rule("wilson", _cross_wilson),)
    defaults: ClassVar[tuple[str, ...]] = ("wilson",)

    @property
    def effective_n(self) -> float:
        """How many independent comparisons would be as informative; at least one per person on the smaller side."""
        least = min(self.cell.sizes) / (2.0 if self.group_a == self.group_b else 1.0)
        return effective_n(self.estimate, self.variance, max(math.floor(least), 1))

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("group_a", "group_b", "errors", "comparisons", "variance")}

    def _defined(self) -> bool:
        return self.comparisons > 0

    def _must_be_defined(self) -> None:
        if not self.comparisons:
            raise DataError(f"no impostor comparisons between {self.group_a} and {self.group_b}")


@dataclass(frozen=True, eq=False)
class Groups(Shown, Mapping[str, Any]):
    """The results of each group by its name."""

    parts: Mapping[str, Any] = field(repr=False)

    def __getitem__(self, group: str) -> Any:
        if group not in self.parts:
            raise UsageError(f"there is no group {group!r}; the groups are {', '.join(map(str, self.parts))}")
        return self.parts[group]

    def __contains__(self, group: object) -> bool:
        return group in self.parts

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @cached_property
    def _interval_of(self) -> Callable[[Any, str, float], Interval]:
        return cache(lambda rate, method, level: rate.interval(method, level))


@dataclass(frozen=True, eq=False)
class GroupRates(Judged, Groups):
    """Error rates by group at one threshold.

    ``rates["name"]`` gives the `ErrorRates` of a group alone: its genuine comparisons, and the impostor comparisons
    inside the group. Comparisons between groups leave out those with fewer than ten identities, `too_small`.
    """

    home: ClassVar[Home] = "groups"
    parts: Mapping[str, ErrorRates] = field(repr=False)
    threshold: float
    overall: ErrorRates = field(repr=False)
    sums: stats.GroupSums = field(repr=False)
    too_small: tuple[str, ...] = ()
    warnings: tuple[Note, ...] = field(repr=False, default=())

    def to_records(self) -> list[dict[str, Any]]:
        """Rates within groups, impostor rates between groups, and gaps: ``what`` tells which."""
        from matchbound.show.differences import group_records

        return group_records(self)

    def _section(self) -> Section:
        from matchbound.show.differences import group_section

        return group_section(self, self.to_records())

    def plot(self, kind: Literal["far", "frr"] = "far", ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """The rate of each group with its interval.

        Parameters
        ----------
        kind, ax
            What to draw, and where; by default on a new figure.
        level
            Of the intervals, each for its group alone.
        """
        from matchbound.show.figures import groups_figure
        from matchbound.show.mpl import draw

        rates = {group: self.rate(kind, group) for group in self.groups}
        shown = {group: rate.interval(level=level) for group, rate in rates.items() if rate.comparisons}
        return draw(groups_figure(self, kind, shown, level), ax)

    @property
    def groups(self) -> tuple[str, ...]:
        """Names, sorted."""
        return tuple(self.parts)

    @property
    def compared(self) -> tuple[str, ...]:
        """The groups that are large enough to be compared."""
        return tuple(group for group in self.groups if group not in self.too_small)

    def rate(self, metric: str, group: str) -> Rate:
        """FAR or FRR of a group.

        Parameters
        ----------
        metric, group
            ``"far"`` or ``"frr"``, and the name of the group.
        """
        if metric not in ("far", "frr"):
            raise UsageError(f"metric must be 'far' or 'frr'; got {metric!r}")
        rate: Rate = getattr(self[group], metric)
        return rate

    def between(self, group_a: str, group_b: str) -> CrossRate:
        """The impostor rate of comparisons between two groups.

        Parameters
        ----------
        group_a, group_b
            Names of groups; the same one twice for its own impostor comparisons.
        """
        for group in (group_a, group_b):
            self[group]
        g, h = sorted((self.groups.index(group_a), self.groups.index(group_b)))
        cell = stats.cell_rate(self.sums, g, h)
        return CrossRate(group_a, group_b, cell.estimate, cell.errors, cell.comparisons, cell.variance, cell)

    @cached_property
    def matrix(self) -> FloatArray:
        """Impostor rates within (diagonal) and between groups, shape (H, H); NaN where nothing was compared."""
        return np.array([[self.between(one, two).estimate for two in self.groups] for one in self.groups])

    def cross_gap(self, one: tuple[str, str], two: tuple[str, str], level: float = 0.95) -> Interval:
        """Interval for the difference of two entries of the matrix, which may have people in common.

        D_ij = 1₁(n − p₁m)/N₁ − 1₂(n − p₂m)/N₂; the estimate is the middle of the interval.

        Parameters
        ----------
        one, two, level
            Pairs of names of groups; the level as for `Number.interval`.
        """
        a, b = self.between(*one), self.between(*two)
        for rate in (a, b):
            rate._must_be_defined()
        variance = stats.difference_of_cells(a.cell, b.cell)
        freedom = max(min(*a.cell.sizes, *b.cell.sizes) - 1.0, 1.0)
        half = t_quantile(tail_of(level, "two-sided"), freedom) * math.sqrt(variance)
        d = a.estimate - b.estimate
        return Interval(max(d - half, -1.0), min(d + half, 1.0), level, "dyadic")

    def gap(self, metric: Metric, group_a: str, group_b: str) -> GroupGap:
        """The rate of one group minus that of another, each within its own group.

        Parameters
        ----------
        metric, group_a, group_b
            ``"far"`` or ``"frr"``, and names of groups.
        """
        a, b = (self.rate(metric, group) for group in (group_a, group_b))
        moved, variances = np.zeros(self.overall.n_identities), []
        for group, rate, sign in ((group_a, a, 1.0), (group_b, b, -1.0)):
            if not rate.comparisons:
                raise DataError(f"group {group} has no comparisons for {metric.upper()}")
            sums = rate.unit.sums
            place = np.searchsorted(self.overall.far.tally.identities, rate.tally.identities)
            moved[place] += sign * sums.influence
            # Without bias, at least what identity pairs say alone, and at least that of one error.
            variances.append(
                max(sums.corrected(effective_number(rate.unit.partners)), (rate.unit.alone / rate.units) ** 2)
            )
        both = variances[0], variances[1]
        freedom = stats.welch(both, (max(a.effective_identities - 1.0, 1.0), max(b.effective_identities - 1.0, 1.0)))
        return GroupGap(a, b, freedom, group_a, group_b, both, self._interval_of, moved)

    def gaps(
        self,
        metric: Metric = "far",
        level: float = 0.95,
        *,
        method: str = "auto",
        n_resamples: int = 10_000,
        rng: Rng = 0,
    ) -> tuple[FamilyRow, ...]:
        """All pairs of groups that are large enough, with simultaneous intervals (max-t).

        The critical value is a quantile of the largest studentised gap if the groups were equal
        (`matchbound.stats.families`; a normal approximation where errors are many). P-values count ties half
        (mid-P), and an interval by ``"auto"`` leaves out 0 when its p-value is at most 1 − level.

        Parameters
        ----------
        metric, level, method
            As for `gap`; the level is that of all intervals together.
        n_resamples, rng
            For the distribution of the largest gap.
        """
        family = self._family(metric)
        null = partial(self._null, metric, n_resamples, rng)
        return simultaneous(family, null, method, level, n_resamples, rng) if family else ()

    def largest_gap(self, metric: Metric = "far") -> LargestGap:
        """The largest difference between two groups, as a number with bounds and claims.

        Parameters
        ----------
        metric
            As for `gap`.
        """
        return LargestGap(f"{metric} gap", self._both_orders(metric))

    def largest_ratio(self, metric: Metric = "far") -> LargestGap:
        """The largest ratio of two groups' rates, as a number with bounds and claims.

        Parameters
        ----------
        metric
            As for `gap`.
        """
        return LargestGap(f"{metric} ratio", self._both_orders(metric))

    def _both_orders(self, metric: Metric) -> tuple[GroupGap, ...]:
        """The gaps of every pair of groups that are large enough, in both orders."""
        pairs = tuple(self.gap(metric, a, b) for a, b in permutations(self._usable(metric), 2))
        if not pairs:
            raise DataError(f"fewer than two groups are large enough to compare their {metric.upper()}")
        return pairs

    def _usable(self, metric: str) -> list[str]:
        return [group for group in self.compared if self.rate(metric, group).comparisons]

    def _family(self, metric: Metric) -> dict[tuple[str, str], Difference]:
        return {(a, b): self.gap(metric, a, b) for a, b in combinations(self._usable(metric), 2)}

    def _null(self, metric: str, n_resamples: int, rng: Rng) -> Largest | None:
        """The largest gap of equal groups; None where the normal approximation has to do."""
        rates = [self.rate(metric, group) for group in self._usable(metric)]
        if metric == "frr":
            parts = [rate.counted[0].genuine for rate in rates]
            group = np.repeat(np.arange(len(parts)), [part.comparisons.size for part in parts])
            errors, comparisons = (
                np.concatenate(arrays) for arrays in zip(*((p.errors[0], p.comparisons) for p in parts), strict=True)
            )
            return permuted_frr(group, errors, comparisons, n_resamples=n_resamples, rng=rng)
        if self.overall.far.weighting == "identities":
            return None
        people = np.array([rate.effective_identities for rate in rates])
        within = within_groups([rate.tally.impostor for rate in rates], people)
        return thrown_far(within, n_resamples=n_resamples, rng=rng)


@dataclass(frozen=True, eq=False)
class SearchGroups(Groups):
    """The searches of each group of people searched for, all against the whole gallery, at a threshold and a rank."""

    parts: Mapping[Any, Searches] = field(repr=False)
    threshold: float
    rank: int

    def rate(self, metric: str, group: Any) -> SearchRate | None:
        """FPIR, FNIR or CMC of a group; None where it has no searches of that kind, or its lists do not decide it.

        Parameters
        ----------
        metric, group
            ``"fpir"``, ``"fnir"`` or ``"cmc"``, and the name of the group.
        """
        at = {"threshold": self.threshold, "rank": self.rank}
        if metric == "cmc" and self.rank > self[group].lists.cmc_ranks:
            return None
        rate: SearchRate = METRICS[metric].read["searches"](self[group], at)
        return rate if rate.searches else None

    def gap(self, metric: str, group_a: Any, group_b: Any) -> SearchGap:
        """The difference of a rate between two groups, as a number with intervals and claims.

        Parameters
        ----------
        metric, group_a, group_b
            As for `rate`.
        """
        a, b = self.rate(metric, group_a), self.rate(metric, group_b)
        if a is None or b is None:
            raise DataError(f"{metric} is not defined in both of {group_a!r} and {group_b!r}")
        variances = a.variance(), b.variance()
        freedom = stats.welch(variances, (a.freedom, b.freedom))
        return SearchGap(a, b, freedom, str(group_a), str(group_b), variances, self._interval_of)

    def gaps(self) -> list[SearchGap]:
        return [
            self.gap(metric, one, two)
            for metric in ("fpir", "fnir", "cmc")
            for one, two in combinations([name for name in self if self.rate(metric, name) is not None], 2)
        ]

    def to_records(self) -> list[dict[str, Any]]:
        rates = [(name, self.rate(metric, name)) for name in self for metric in ("fpir", "fnir", "cmc")]
        return [{"group": name, **rate.to_records()[0]} for name, rate in rates if rate is not None]

    def _tables(self) -> list[Table]:
        from matchbound.show.columns import search_group_tables

        return search_group_tables(self.to_records(), [gap.record(gap.interval()) for gap in self.gaps()])
