"""Error rates by group of identities: within groups, between groups, gaps and ratios."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import DataError, UsageError
from matchbound.metrics import Home
from matchbound.notes import Note
from matchbound.results.claims import Judged
from matchbound.results.error_rates import ErrorRates
from matchbound.results.group_gaps import CrossRate, GroupGap, LargestGap
from matchbound.results.interval import Interval, tail_of
from matchbound.results.rates import Rate
from matchbound.results.together import Together
from matchbound.show.shown import Shown
from matchbound.stats.dyadic import bias_factors
from matchbound.stats.families.critical import Largest, gaussian_largest
from matchbound.stats.families.groups import MOST_PEOPLE, permuted_frr, thrown_far, within_groups
from matchbound.stats.gaps import GroupMoments, far_moments, frr_moments, unit_moments
from matchbound.stats.group_differences import CellRate, GroupSums, cell_rate, difference_of_cells, welch
from matchbound.stats.intervals import t_quantile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.show.section import Section

Metric = Literal["far", "frr"]
SMALL = 10
"""Groups with fewer identities than this are named, and left out of comparisons between groups."""


@dataclass(frozen=True)
class GroupRow(Shown):
    """A gap with its simultaneous interval.

    interval
        Holds together with those of all other pairs of groups at the level asked for.
    p_value
        Adjusted for all pairs (max-t).
    """

    gap: GroupGap
    interval: Interval
    p_value: float

    def to_records(self) -> list[dict[str, Any]]:
        """The gap with its simultaneous interval and adjusted p-value."""
        record = self.gap.to_records()[0]
        held = {"low": self.interval.low, "high": self.interval.high, "method": self.interval.method}
        names = {"group_a": self.gap.group_a, "group_b": self.gap.group_b}
        return [{**names, **record, **held, "level": self.interval.level, "p_value": self.p_value}]


@dataclass(frozen=True, eq=False)
class GroupRates(Judged, Shown):
    """Error rates by group at one threshold; ``rates["name"]`` gives the ErrorRates of a group.

    groups
        Names, sorted.
    overall : ErrorRates
        All the data.
    within : tuple of ErrorRates
        Each group alone: its genuine comparisons, and the impostor comparisons inside the group.
    too_small
        Groups with fewer than ten identities: their rates are given, and comparisons between groups leave them out.
    warnings
        What a reader must know.
    """

    home: ClassVar[Home] = "groups"
    threshold: float
    groups: tuple[str, ...]
    overall: ErrorRates = field(repr=False)
    within: tuple[ErrorRates, ...] = field(repr=False)
    sums: GroupSums = field(repr=False)
    genuine: tuple[FloatArray, FloatArray] = field(repr=False)
    too_small: tuple[str, ...] = ()
    warnings: tuple[Note, ...] = field(repr=False, default=())

    def __getitem__(self, group: str) -> ErrorRates:
        return self.within[self._place(group)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def to_records(self) -> list[dict[str, Any]]:
        """Rates within groups, impostor rates between groups, and gaps: ``what`` tells which."""
        from matchbound.show.differences import group_records

        return group_records(self)

    def _section(self) -> Section:
        from matchbound.show.differences import group_section

        return group_section(self, self.to_records())

    def plot(
        self, kind: Literal["far", "frr", "matrix"] = "far", ax: Axes | None = None, *, level: float = 0.95
    ) -> Axes:
        """The rate of each group with its interval, or the matrix of impostor rates within and between groups.

        Parameters
        ----------
        kind
            ``"far"``, ``"frr"`` or ``"matrix"``.
        ax
            Axes to draw on; by default a new figure.
        level
            Of the intervals, each for its group alone.
        """
        from matchbound.show.figures import groups_figure, matrix_figure
        from matchbound.show.mpl import draw

        if kind == "matrix":
            return draw(matrix_figure(self.groups, self.matrix), ax)
        intervals = self.intervals(_metric(kind), level, simultaneous=False)  # type: ignore[arg-type]
        rows = [
            (g, getattr(self[g], kind).estimate, i.low, i.high, self[g].n_identities, g in self.compared)
            for g, i in intervals.items()
        ]
        return draw(groups_figure(rows, getattr(self.overall, kind).estimate, kind, level), ax)

    @property
    def compared(self) -> tuple[str, ...]:
        """The groups that are large enough to be set side by side."""
        return tuple(group for group in self.groups if group not in self.too_small)

    def between(self, group_a: str, group_b: str) -> CrossRate:
        """The impostor rate of comparisons between two groups.

        Parameters
        ----------
        group_a, group_b
            Names of groups; the same one twice for its own impostor comparisons.
        """
        return CrossRate(group_a, group_b, self._cell(self._place(group_a), self._place(group_b)))

    @cached_property
    def matrix(self) -> FloatArray:
        """Impostor rates within (diagonal) and between groups, shape (H, H); NaN where nothing was compared."""
        size = len(self.groups)
        return np.array([[self._cell(g, h).estimate for h in range(size)] for g in range(size)])

    def cross_gap(self, one: tuple[str, str], two: tuple[str, str], level: float = 0.95) -> Interval:
        """Interval for the difference of two entries of the matrix, which may have people in common.

        D_ij = 1₁(n − p₁m)/N₁ − 1₂(n − p₂m)/N₂; the estimate is the middle of the interval.

        Parameters
        ----------
        one, two
            Pairs of names of groups.
        level
            The confidence level.
        """
        a, b = self.between(*one), self.between(*two)
        for rate in (a, b):
            if not rate.comparisons:
                raise DataError(f"no impostor comparisons between {rate.group_a} and {rate.group_b}")
        variance = difference_of_cells(a.cell, b.cell)
        freedom = max(min(*a.cell.sizes, *b.cell.sizes) - 1.0, 1.0)
        half = t_quantile(tail_of(level, "two-sided"), freedom) * math.sqrt(variance)
        d = a.estimate - b.estimate
        return Interval(max(d - half, -1.0), min(d + half, 1.0), level, "dyadic")

    def gap(self, metric: Metric, group_a: str, group_b: str) -> GroupGap:
        """The rate of one group minus that of another, each within its own group.

        Parameters
        ----------
        metric
            ``"far"`` or ``"frr"``.
        group_a, group_b
            Names of groups.
        """
        rates = [getattr(self[group], _metric(metric)) for group in (group_a, group_b)]
        for group, rate in zip((group_a, group_b), rates, strict=True):
            if rate.comparisons == 0:
                raise DataError(f"group {group} has no comparisons for {metric.upper()}")
        moved = self._moved(metric, group_a) - self._moved(metric, group_b)
        variances = (self._variance(metric, group_a), self._variance(metric, group_b))
        sizes = [max(rate.effective_identities - 1.0, 1.0) for rate in rates]
        return GroupGap(
            metric,
            rates[0].estimate,
            rates[1].estimate,
            welch(variances, (sizes[0], sizes[1])),
            group_a=group_a,
            group_b=group_b,
            a=rates[0],
            b=rates[1],
            moved=moved,
            variances=variances,
            moments=(self._moments(rates[0]), self._moments(rates[1])),
        )

    def gaps(
        self,
        metric: Metric = "far",
        level: float = 0.95,
        *,
        method: str = "auto",
        n_resamples: int = 10_000,
        rng: int | np.random.Generator | None = 0,
    ) -> tuple[GroupRow, ...]:
        """All pairs of groups that are large enough, with simultaneous intervals (max-t).

        The critical value is a quantile of the largest studentised gap if the groups were equal
        (`matchbound.stats.families.groups`; a normal approximation where errors are many). P-values count ties half
        (mid-P), and an interval by ``"auto"`` leaves out 0 when its p-value is at most 1 − level.

        Parameters
        ----------
        metric
            ``"far"`` or ``"frr"``.
        level
            Of all intervals together.
        method
            As for `GroupGap.interval`.
        n_resamples, rng
            For the distribution of the largest gap.
        """
        made = self._family(metric)
        if not made:
            return ()
        null = self._null(metric, n_resamples, rng) if len(made) > 1 else None
        together = Together(made, _gaussian(made, n_resamples, rng), null)
        rows = zip(made, together.intervals(method, level), together.p_values(), strict=True)
        return tuple(GroupRow(gap, interval, p) for gap, interval, p in rows)

    def worst_to_best(self, metric: Metric = "far", level: float = 0.95, *, method: str = "auto") -> GroupRow:
        """The largest gap: the group with the highest rate minus the one with the lowest.

        Which groups these are was read from the data, so the interval is the simultaneous one over all pairs.

        Parameters
        ----------
        metric
            ``"far"`` or ``"frr"``.
        level
            The confidence level.
        method
            As for `GroupGap.interval`.
        """
        rows = self.gaps(metric, level, method=method)
        if not rows:
            raise DataError(f"fewer than two groups are large enough to compare their {metric.upper()}")
        top = max(rows, key=lambda row: abs(row.gap.estimate))
        return top if top.gap.estimate >= 0.0 else _turned(top, self)

    def largest_gap(self, metric: Metric = "far") -> LargestGap:
        """The largest difference between two groups, as a number with bounds and claims.

        Parameters
        ----------
        metric
            ``"far"`` or ``"frr"``.
        """
        return LargestGap(f"{_metric(metric)} gap", self._compared_pairs(metric))

    def largest_ratio(self, metric: Metric = "far") -> LargestGap:
        """The largest ratio of two groups' rates, as a number with bounds and claims.

        Parameters
        ----------
        metric
            ``"far"`` or ``"frr"``.
        """
        return LargestGap(f"{_metric(metric)} ratio", self._compared_pairs(metric))

    def _compared_pairs(self, metric: Metric) -> tuple[GroupGap, ...]:
        """Every pair of groups that are large enough, in both orders."""
        pairs = tuple(self.gap(metric, a, b) for a, b in permutations(self._usable(metric), 2))
        if not pairs:
            raise DataError(f"fewer than two groups are large enough to compare their {metric.upper()}")
        return pairs

    def ratio_of_worst_to_best(self, metric: Metric = "far", level: float = 0.95, *, method: str = "auto") -> Interval:
        """A simultaneous interval for the highest rate of a group over the lowest.

        Parameters
        ----------
        metric
            ``"far"`` or ``"frr"``.
        level
            The confidence level.
        method
            As for `GroupGap.ratio_interval`.
        """
        made = self._family(metric)
        worst = self.worst_to_best(metric, level).gap
        found = worst.ratio_interval(method, Together(made, _gaussian(made)).adjusted(level))
        return Interval(found.low, found.high, level, f"{found.method}, max-t")

    def intervals(
        self, metric: Metric = "far", level: float = 0.95, *, method: str = "auto", simultaneous: bool = True
    ) -> dict[str, Interval]:
        """The interval of each group's own rate; by default simultaneous (groups share nobody: Šidák's level).

        Parameters
        ----------
        metric
            ``"far"`` or ``"frr"``.
        level
            The confidence level.
        method
            As for `Rate.interval`.
        simultaneous
            Whether all of them hold at once.
        """
        rates = {group: getattr(self[group], _metric(metric)) for group in self.groups}
        known = {group: rate for group, rate in rates.items() if rate.comparisons}
        within = level ** (1.0 / max(len(known), 1)) if simultaneous else level
        made = {group: rate.interval(method, within) for group, rate in known.items()}
        return {
            group: Interval(i.low, i.high, level, i.method + (", simultaneous" if simultaneous else ""), notes=i.notes)
            for group, i in made.items()
        }

    def _usable(self, metric: str) -> list[str]:
        return [g for g in self.compared if getattr(self[g], _metric(metric)).comparisons]

    def _family(self, metric: Metric) -> tuple[GroupGap, ...]:
        return tuple(self.gap(metric, a, b) for a, b in combinations(self._usable(metric), 2))

    def _null(self, metric: str, n_resamples: int, rng: int | np.random.Generator | None) -> Largest | None:
        """The largest gap of equal groups; None where the normal approximation has to do."""
        names = self._usable(metric)
        chosen = [self._place(name) for name in names]
        if metric == "far" and self.sums.counts is not None:
            return None
        if metric == "far":
            sizes = [self[name].far.effective_identities for name in names]
            within = within_groups(self.sums, chosen, np.array(sizes))
            if not within.few or not within.clumps.size:
                return None
            return thrown_far(within, n_resamples=n_resamples, rng=rng)
        e, made = self.genuine
        places = [np.flatnonzero((self.sums.group == g) & (made > 0.0)) for g in chosen]
        people = np.concatenate(places)
        if people.size > MOST_PEOPLE:
            return None
        group = np.repeat(np.arange(len(chosen)), [place.size for place in places])
        return permuted_frr(group, e[people], made[people], n_resamples=n_resamples, rng=rng)

    def _place(self, group: str) -> int:
        if group not in self.groups:
            raise UsageError(f"there is no group {group!r}; the groups are {', '.join(self.groups)}")
        return self.groups.index(group)

    def _cell(self, g: int, h: int) -> CellRate:
        return self._cells[g, h] if g <= h else self._cells[h, g]

    @cached_property
    def _cells(self) -> dict[tuple[int, int], CellRate]:
        size = len(self.groups)
        return {(g, h): cell_rate(self.sums, g, h) for g in range(size) for h in range(g, size)}

    def _moved(self, metric: str, group: str) -> FloatArray:
        g = self._place(group)
        if metric == "far":
            return self._cell(g, g).influence
        e, made = self.genuine
        members = self.sums.group == g
        total = float(made[members].sum())
        q = float(e[members].sum()) / total
        result: FloatArray = np.where(members, e - q * made, 0.0) / total
        return result

    @staticmethod
    def _moments(rate: Rate) -> GroupMoments:
        if rate.weighting == "identities":
            return unit_moments(rate.unit, rate.metric)
        if rate.metric == "far":
            return far_moments(rate.tally.impostor, rate.index, rate.effective_identities)
        return frr_moments(rate.tally.genuine, rate.index, rate.effective_identities)

    def _variance(self, metric: str, group: str) -> float:
        """Without bias, at least what identity pairs say alone, and at least that of one error."""
        rate: Rate = getattr(self[group], metric)
        least = rate.one_error**2
        if metric == "far":
            g = self._place(group)
            return max(self._cell(g, g).variance, least)
        moved = self._moved(metric, group)
        return max(float(moved @ moved) * bias_factors(rate.effective_identities)[0], least)


def _turned(row: GroupRow, rates: GroupRates) -> GroupRow:
    """The same row with the groups exchanged."""
    gap = row.gap
    metric: Metric = "far" if gap.metric == "far" else "frr"
    other = rates.gap(metric, gap.group_b, gap.group_a)
    interval = Interval(-row.interval.high, -row.interval.low, row.interval.level, row.interval.method)
    return GroupRow(other, interval, row.p_value)


def _gaussian(
    gaps: Sequence[GroupGap], n_resamples: int = 10_000, rng: int | np.random.Generator | None = 0
) -> Largest:
    return gaussian_largest(np.array([gap.influence for gap in gaps]), n_resamples=n_resamples, rng=rng)


def _metric(metric: str) -> str:
    if metric not in ("far", "frr"):
        raise UsageError(f"metric must be 'far' or 'frr'; got {metric!r}")
    return metric


def small_groups(names: Sequence[str], sizes: Sequence[int]) -> tuple[str, ...]:
    """Names of the groups with fewer than `SMALL` identities."""
    return tuple(name for name, size in zip(names, sizes, strict=True) if size < SMALL)
