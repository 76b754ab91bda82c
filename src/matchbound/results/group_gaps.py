"""One rate between groups, and the gap between two groups."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import DataError
from matchbound.notes import Note
from matchbound.results.comparison import Difference
from matchbound.results.interval import Interval, Side, limits_record, one_side, tail_of
from matchbound.results.rates import Rate
from matchbound.show.shown import Shown
from matchbound.stats import differences as stats
from matchbound.stats.gaps import GroupMoments, decided, difference_limits, gap_statistic, ratio_limits
from matchbound.stats.group_differences import CellRate
from matchbound.stats.intervals import effective_n, wilson

GAP_METHODS = ("auto", "dyadic", "wilson", "latent")


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

    See Also
    --------
    GroupRates.gap

    Examples
    --------
    >>> import matchbound as mb
    >>> import numpy as np
    >>> faces = mb.demo_data()
    >>> group = np.where(np.arange(faces.n_identities) % 2, "odd", "even")
    >>> rates = mb.by_group(faces, 0.6, group=group[faces.codes])
    >>> gap = rates.gap("frr", "even", "odd")
    >>> f"{100 * gap.estimate:.2f} points"
    '-2.44 points'
    """

    group_a: str = field(kw_only=True)
    group_b: str = field(kw_only=True)
    a: Rate = field(kw_only=True)
    b: Rate = field(kw_only=True)
    moved: FloatArray = field(kw_only=True)
    variances: tuple[float, float] = field(kw_only=True)
    moments: tuple[GroupMoments, GroupMoments] = field(kw_only=True)
    tested: ClassVar[tuple[str, ...]] = ("auto",)
    methods: ClassVar[tuple[str, ...]] = GAP_METHODS

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

    def interval(
        self,
        method: str = "auto",
        level: float = 0.95,
        *,
        side: Side = "two-sided",
        n_resamples: int = 2000,
        rng: int | np.random.Generator | None = None,
    ) -> Interval:
        """A confidence interval for the gap.

        Parameters
        ----------
        method
            ``"auto"``: the default limits of the two rates, combined (MOVER), where the test of the p-value decides on
            which side of 0 the limit towards 0 lies. ``"wilson"`` or ``"latent"``: the limits by that method, combined.
            ``"dyadic"``: ± t standard errors from the groups' own variances (Satterthwaite's degrees of freedom); where
            one group is small it finds gaps that are not there.
        level
            The confidence level.
        side
            ``"two-sided"``, or ``"upper"`` / ``"lower"`` for a one-sided bound at the same level.
        n_resamples, rng
            As for `Difference.interval`.
        """
        return super().interval(method, level, side=side, n_resamples=n_resamples, rng=rng)

    def ratio_interval(self, method: str = "auto", level: float = 0.95, *, side: Side = "two-sided") -> Interval:
        """A confidence interval for rate_a / rate_b: by the same test (``"auto"``), or from both rates' limits.

        By ``"auto"`` it leaves out 1 exactly when `interval` leaves out 0; ``"dyadic"`` is on the log scale.

        Parameters
        ----------
        method
            As for `interval`.
        level
            The confidence level.
        side
            ``"two-sided"``, or ``"upper"`` / ``"lower"`` for a one-sided bound at the same level.
        """
        if method == "dyadic":
            return super().ratio_interval(method, level, side=side)
        self._check(method)
        tail = tail_of(level, side)
        within = 1.0 - 2.0 * tail
        one, two = self.a.interval(method, within), self.b.interval(method, within)
        low, high = stats.mover_ratio(self.rate_a, (one.low, one.high), self.rate_b, (two.low, two.high))
        if method == "auto" and not self._never_differ:
            low, high = decided(1.0, ratio_limits(*self.moments, tail), (low, high))
        return Interval(*one_side(low, high, side, (0.0, math.inf)), level, method, side)

    def _limits(
        self, method: str, tail: float, n_resamples: int, rng: int | np.random.Generator | None
    ) -> tuple[float, float]:
        if method == "dyadic" and (self.a.errors > 0 or self.b.errors > 0):
            return super()._limits(method, tail, n_resamples, rng)
        level = 1.0 - 2.0 * tail
        name = "auto" if method == "dyadic" else method  # without an error there is nothing dyadic
        one, two = self.a.interval(name, level), self.b.interval(name, level)
        low, high = stats.mover(self.rate_a, (one.low, one.high), self.rate_b, (two.low, two.high))
        if method != "auto" or self._never_differ:
            return low, high
        return decided(0.0, difference_limits(*self.moments, tail), (low, high))

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


@dataclass(frozen=True, eq=False)
class CrossRate(Shown):
    """The impostor rate between two groups (or within one).

    group_a, group_b
        Names of the groups.
    estimate, errors, comparisons, variance
        NaN estimate and variance without comparisons.

    See Also
    --------
    GroupRates.between

    Examples
    --------
    >>> import matchbound as mb
    >>> import numpy as np
    >>> faces = mb.demo_data()
    >>> group = np.where(np.arange(faces.n_identities) % 2, "odd", "even")
    >>> rates = mb.by_group(faces, 0.6, group=group[faces.codes])
    >>> between = rates.between("even", "odd")
    >>> between.errors, between.comparisons
    (79, 101361)
    """

    group_a: str
    group_b: str
    cell: CellRate = field(repr=False)

    def to_records(self) -> list[dict[str, Any]]:
        """The rate with its interval."""
        made = self.interval() if self.comparisons else None
        return [
            {
                "metric": "far",
                "group_a": self.group_a,
                "group_b": self.group_b,
                "estimate": self.estimate,
                **limits_record(made),
                "errors": self.errors,
                "comparisons": self.comparisons,
                "variance": self.variance,
            }
        ]

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

    def interval(self, level: float = 0.95, *, side: Side = "two-sided") -> Interval:
        """Wilson's interval with Student's t, degrees of freedom from the smaller side.

        Parameters
        ----------
        level
            The confidence level.
        side
            ``"two-sided"``, or ``"upper"`` / ``"lower"`` for a one-sided bound at the same level.
        """
        if not self.comparisons:
            raise DataError(f"no impostor comparisons between {self.group_a} and {self.group_b}")
        freedom = max(min(self.cell.sizes) - 1.0, 1.0)
        low, high = wilson(self.estimate, self.effective_n, tail_of(level, side), freedom)
        return Interval(*one_side(low, high, side), level, "wilson", side)
