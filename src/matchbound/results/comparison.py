"""The difference and the ratio of a number: of systems on the same comparisons or searches, or of two groups.

Two systems have each difference with its own interval; all pairs of several have simultaneous ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import DataError, UsageError, argument, check_level
from matchbound.metrics import Home
from matchbound.notes import Note
from matchbound.results.claims import Judged
from matchbound.results.number import (
    Ask,
    Bootstrap,
    Draws,
    Interval,
    Limits,
    Number,
    Rule,
    Side,
    bootstrap_rules,
    limits_record,
)
from matchbound.results.rates import ErrorRates, Rate
from matchbound.show.numbers import p_text, percent, points
from matchbound.show.shown import Shown
from matchbound.stats import differences as stats
from matchbound.stats.differences import JointSums, Models
from matchbound.stats.dyadic import bias_factors
from matchbound.stats.families import Largest, Rng, adjusted_level, flipped, gaussian_largest, scores_of, sign_terms
from matchbound.stats.intervals import t_quantile, wilson

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.show.section import Section
    from matchbound.show.tables import Table

# A variance below this share of the binomial one is rounding: nothing in the data tells the systems apart.
NOTHING = 1e-9
RuleLimits = Callable[[Any, Ask], Limits]


def _halves(estimate: float, near: float, far: float) -> tuple[float, float]:
    """How far an interval reaches below and above: `near` towards 0, `far` away from it."""
    if estimate == 0.0:
        return far, far
    return (far, near) if estimate < 0.0 else (near, far)


def _student(kind: str, away: str | None = None) -> RuleLimits:
    """± t standard errors by one variance, and by another one away from 0."""

    def limits(difference: Difference, ask: Ask) -> Limits:
        none = difference._without_errors(ask)
        if none is not None:
            return none
        t = t_quantile(ask.tail, difference.freedom)
        near = difference._variance(kind)
        wide = near if away is None else difference._variance(away)
        below, above = _halves(difference.estimate, t * math.sqrt(near), t * math.sqrt(wide))
        low, high = max(difference.estimate - below, -1.0), min(difference.estimate + above, 1.0)
        return Limits(low, high, kind if away is None else f"{kind}+{away}")

    return limits


def _log_student(kind: str, away: str | None = None) -> RuleLimits:
    """The ratio on the log scale; the limit towards 1 is test-based (Miettinen 1976).

    log r·(1 − t/T) with T the size of the difference over its standard error, so that the interval leaves out 1 exactly
    when that of the difference leaves out 0. (The usual variance of log r would vanish where the errors of both systems
    are those of the same identity.) The limit away from 1 is the farther of that and of the other variance's.
    """

    def limits(ratio: Ratio, ask: Ask) -> Limits:
        difference, method = ratio.difference, kind if away is None else f"{kind}+{away}"
        if difference.rate_a == 0.0 and difference.rate_b == 0.0:
            note = Note("no-errors", "no error in either system: the ratio is undefined")
            return Limits(0.0, math.inf, method, (note,))
        t = t_quantile(ask.tail, difference.freedom)
        centre, wide = difference._log_ratio(away or kind)
        near = wide
        if difference.estimate != 0.0:
            near = centre**2 * difference._variance(kind) / difference.estimate**2
        below, above = _halves(centre, t * math.sqrt(near), t * math.sqrt(max(near, wide)))
        # rates are softened so that logarithms exist: where one of them is 0, so is a limit, or it is infinite
        low, high = math.exp(centre - below), math.exp(min(centre + above, 700.0))
        return Limits(min(low, ratio.estimate), max(high, ratio.estimate), method)

    return limits


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Number):
    """A number of A minus the same number of B: of two systems or groups, of comparisons or searches.

    `a` and `b` are the two numbers, `freedom` is that of Student's t.
    """

    a: Any
    b: Any
    freedom: float
    defaults: ClassVar[tuple[str, ...]] = ("default",)
    # What records call the two sides.
    names: ClassVar[tuple[str, str]] = ("a", "b")
    # Methods whose limit towards 0 is the one that the p-value tests.
    tested: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:

        @property
        def influence(self) -> FloatArray: ...
        @property
        def _never_differ(self) -> bool: ...
        def _variance(self, method: str) -> float: ...
        def _log_ratio(self, method: str) -> tuple[float, float]: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.metric}: {self.rate_a:.6g} − {self.rate_b:.6g} = {self.estimate:.6g})"

    @property
    def metric(self) -> str:
        return str(self.a.metric)

    @property
    def rate_a(self) -> float:
        return float(self.a.estimate)

    @property
    def rate_b(self) -> float:
        return float(self.b.estimate)

    def __str__(self) -> str:
        name = self.metric.upper()
        return f"{name} {percent(self.rate_a)} − {percent(self.rate_b)} = {points(self.estimate)} points"

    @property
    def label(self) -> str:
        return f"difference of {self.metric}"

    @property
    def entry(self) -> str:
        """Its name in the table of metrics: ``"dfar"``, ``"dfrr"`` or ``"deer"``."""
        return f"d{self.metric.partition('@')[0]}"

    @property
    def ends(self) -> tuple[float, float]:
        return (-1.0, 1.0)

    def record(self, interval: Interval | None) -> dict[str, Any]:
        return {
            "metric": self.label,
            "rate_a": self.rate_a,
            "rate_b": self.rate_b,
            "estimate": self.estimate,
            **limits_record(interval),
            "ratio": self.ratio,
            "p_value": self.p_value,
            "variance": self.variance,
        }

    @property
    def estimate(self) -> float:
        return self.rate_a - self.rate_b

    @property
    def ratio(self) -> float:
        """rate_a / rate_b; infinite or NaN where rate_b is 0."""
        if self.rate_b > 0.0:
            return self.rate_a / self.rate_b
        return math.inf if self.rate_a > 0.0 else math.nan

    @property
    def variance(self) -> float:
        """Variance of the difference: the dyadic one, corrected for bias and not below its floor."""
        return self._variance("dyadic")

    @property
    def p_value(self) -> float:
        """Two-sided p-value of "the rates are equal", by Student's t."""
        if math.isnan(self.estimate):
            return math.nan
        if self.estimate == 0.0 or self._never_differ:
            return 1.0
        return stats.t_tails(*self._studentised())

    def as_ratio(self) -> Ratio:
        """rate_a / rate_b as a number with intervals and claims."""
        raise UsageError(f"a ratio of {self.metric} has no interval; use the difference")

    def ratio_interval(self, method: str = "auto", level: float = 0.95, *, side: Side = "two-sided") -> Interval:
        """A confidence interval for rate_a / rate_b; see `as_ratio`."""
        return self.as_ratio().interval(method, level, side=side)

    def _must_be_defined(self) -> None:
        if math.isnan(self.estimate):
            raise DataError(f"the data hold no comparisons for {self.metric.upper()}, so there is no difference of it")

    def _studentised(self) -> tuple[float, float]:
        """The difference over its standard error, and the degrees of freedom of that."""
        return self.estimate / math.sqrt(self.variance), self.freedom

    def _without_errors(self, ask: Ask) -> Limits | None:
        """Limits where neither side erred; None where one did."""
        return None


@dataclass(frozen=True, eq=False, repr=False)
class Ratio(Number):
    """An error rate of system A over the same rate of B; [0, ∞) where neither erred."""

    difference: Difference
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("dyadic", _log_student("dyadic")),
        Rule("latent", _log_student("latent")),
        Rule("default", _log_student("dyadic", "latent"), hidden=True),
    )
    defaults: ClassVar[tuple[str, ...]] = ("default",)
    method_argument: ClassVar[str] = "method for a ratio"

    @property
    def metric(self) -> str:
        return f"{self.difference.metric.partition('@')[0]} ratio"

    @property
    def estimate(self) -> float:
        return self.difference.ratio

    @property
    def ends(self) -> tuple[float, float]:
        return (0.0, math.inf)

    @property
    def notes(self) -> tuple[Note, ...]:
        return self.difference.notes

    def _must_be_defined(self) -> None:
        self.difference._must_be_defined()


SYSTEM_RULES = (
    Rule("dyadic", _student("dyadic")),
    Rule("latent", _student("latent")),
    Rule("default", _student("dyadic", "latent"), hidden=True),
)


@dataclass(frozen=True, eq=False, repr=False)
class SystemDifference(Difference):
    """A number of system A minus that of system B on the same comparisons.

    A number that was read from curves (FRR at equal FAR, FAR at equal FRR, EER) is to first order a combination of FRR
    and FAR at its threshold (`JointSums`), so that the uncertainty of the thresholds is counted.
    """

    sums: JointSums
    models: Models
    rules: ClassVar[tuple[Rule, ...]] = SYSTEM_RULES
    tested: ClassVar[tuple[str, ...]] = ("auto", "dyadic")

    def as_ratio(self) -> Ratio:
        return Ratio(self)

    @cached_property
    def influence(self) -> FloatArray:
        """What each identity adds to the difference, shape (G,)."""
        return self.sums.sums().influence

    @property
    def notes(self) -> tuple[Note, ...]:
        if self._never_differ:
            text = f"{self.metric.upper()}: the systems never disagree here; the interval rests on the latent model"
            return (Note("never-disagree", text),)
        return ()

    @cached_property
    def _never_differ(self) -> bool:
        return self.sums.variance() <= NOTHING * self.sums.binomial()

    def _variance(self, method: str) -> float:
        value = self.sums.variance()
        return max(value, self._modelled()) if method == "latent" or self._never_differ else value

    def _log_ratio(self, method: str) -> tuple[float, float]:
        a, b = self._softened()
        value = self.sums.variance(1.0 / a, 1.0 / b)
        if method == "latent" or self._never_differ or value <= 0.0 or min(self.rate_a, self.rate_b) <= 0.0:
            value = max(value, self._modelled(1.0 / a, 1.0 / b))
        return math.log(a / b), value

    def _modelled(self, u: float = 1.0, v: float = 1.0) -> float:
        return self.sums.modelled(self.models, u, v)

    def _softened(self) -> tuple[float, float]:
        """Both numbers with something added, so that none is 0."""
        half = 0.5 / float(self.sums.joint.a.genuine.comparisons.sum())
        return self.rate_a + half, self.rate_b + half


class RateDifference(SystemDifference):
    """FAR or FRR of A minus that of B, each at its own fixed threshold, on the comparisons that both made."""

    a: Rate
    b: Rate
    rules: ClassVar[tuple[Rule, ...]] = (*SYSTEM_RULES, *bootstrap_rules(("vertex", "double-or-nothing")))

    def _drawn(self, draws: Draws) -> Bootstrap:
        if draws.options:
            raise UsageError(f"unknown option {sorted(draws.options)[0]!r} for method {draws.method!r}")
        a, b = (rate._drawn(replace(draws, rng=draws.seed)).replicates for rate in (self.a, self.b))
        return Bootstrap(a - b, self.estimate, draws.method, draws.seed, ends=self.ends)

    def _no_width(self) -> str:
        return "the systems never disagree"

    def _without_errors(self, ask: Ask) -> Limits | None:
        if self.a.errors or self.b.errors:
            return None
        a, b = (rate.interval(level=ask.two_sided_level) for rate in (self.a, self.b))
        return Limits(-b.high, a.high, a.method)

    def _modelled(self, u: float = 1.0, v: float = 1.0) -> float:
        """By the latent model; at least what the errors of one system alone add."""
        least = 0.0
        if self.a.weighting == "comparisons":
            alone = self.sums.joint.apart(self.metric, self.sums.k) + 1.0
            least = alone * min(u * u, v * v) / float(self.a.comparisons) ** 2
        return max(super()._modelled(u, v), least)

    def _softened(self) -> tuple[float, float]:
        return self.sums.rates(self.metric)


class IdentityDifference(RateDifference):
    """The same with every identity counted once; the joint tally is of units (`unit_joint`)."""

    rules: ClassVar[tuple[Rule, ...]] = SYSTEM_RULES

    def _no_bootstrap(self) -> str:
        return f"bootstraps are of pooled rates; use {argument('weighting', 'comparisons')}"


def _influence(difference: SearchDifference, ask: Ask) -> Limits:
    """± t standard errors; where nobody tells the two apart, the most that no discordant person can exclude."""
    half, method = t_quantile(ask.tail, difference.freedom) * math.sqrt(max(difference.spread, 0.0)), None
    if not half > 0.0:
        half, method = wilson(0.0, difference.a.n_identities, ask.tail, difference.freedom)[1], "wilson"
    return Limits(max(difference.estimate - half, -1.0), min(difference.estimate + half, 1.0), method)


@dataclass(frozen=True, eq=False, repr=False)
class SearchDifference(Difference):
    """A rate of the searches of system A minus that of the same searches of system B; `spread` is its variance."""

    spread: float
    rules: ClassVar[tuple[Rule, ...]] = (Rule("influence", _influence),)
    defaults: ClassVar[tuple[str, ...]] = ("influence",)

    def record(self, interval: Interval | None) -> dict[str, Any]:
        """The difference with the limits of an interval; `metric` is that of the rates."""
        return {**super().record(interval), "metric": self.metric}

    @property
    def _never_differ(self) -> bool:
        return not self.spread > 0.0

    def _variance(self, method: str) -> float:
        return self.spread


@dataclass(frozen=True)
class FamilyRow(Shown):
    """The difference a − b of two systems or groups; interval and p-value hold for all rows at once (max-t)."""

    a: str
    b: str
    difference: Difference
    interval: Interval
    p_value: float

    @property
    def gap(self) -> Any:
        """The difference, of two groups."""
        return self.difference

    def to_records(self) -> list[dict[str, Any]]:
        names = dict(zip(self.difference.names, (self.a, self.b), strict=True))
        own = {**limits_record(self.interval), "p_value": self.p_value}
        return [{**names, **self.difference.to_records()[0], **own}]


# Differences that are looked at together, by the names of the two systems or groups.
Family = Mapping[tuple[str, str], Difference]


def simultaneous(
    family: Family,
    null: Callable[[], Largest | None],
    method: str,
    level: float,
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> tuple[FamilyRow, ...]:
    """Intervals and p-values of several differences, valid for all of them at once (max-t).

    Whether there is a difference at all is asked of a world without differences: its critical value decides whether an
    interval leaves out 0, and where that limit then lies. What else an interval says is about differences that exist,
    where few errors make no short tails; there the normal approximation has a say too, and the larger critical value
    counts. No interval is narrower, and no p-value smaller, than that of the difference alone.

    `null` draws the largest difference where nothing differs, by random signs or by exchange of people; it gives None
    where the normal approximation has to do.
    """
    several, near, far = list(family.values()), level, level
    p_values = alone = np.array([difference.p_value for difference in several])
    if len(several) > 1:
        moved = np.array([difference.influence for difference in several])
        normal, drawn = gaussian_largest(moved, n_resamples=n_resamples, rng=rng), null()
        wide = max(adjusted_level(normal.critical(level)), level)
        near = wide
        if drawn is not None and method in several[0].tested:
            near = max(adjusted_level(drawn.critical(level)), level)
        far = max(near, wide)
        p_values = np.fmax((drawn or normal).p_values(scores_of(alone)), alone)
    return tuple(
        FamilyRow(*names, difference, _family_interval(difference, method, level, near, far), float(p))
        for (names, difference), p in zip(family.items(), p_values, strict=True)
    )


def _family_interval(difference: Difference, method: str, level: float, near: float, far: float) -> Interval:
    wide = difference.interval(method, far)
    low, high = wide.low, wide.high
    if near < far and difference.estimate != 0.0:
        close = difference.interval(method, near)
        low, high = (close.low if close.low > 0.0 else low), (close.high if close.high < 0.0 else high)
    return Interval(low, high, level, f"{wide.method}, max-t", notes=wide.notes)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Judged, Shown):
    """Two systems on the same comparisons.

    With ``mode="threshold"`` rates are at fixed thresholds; with ``"far"`` or ``"frr"``, the other rate is compared
    where this one is equal to the target. `far` and `frr` are A minus B: with ``mode="far"`` the difference of FRR
    counts the uncertainty of both thresholds, and that of FAR is near 0 by construction. `a` and `b` are each system
    alone, on the comparisons that both made; `unmatched` counts those of A and of B that were not matched.
    """

    home: ClassVar[Home] = "comparison"
    mode: Literal["threshold", "far", "frr"]
    target: float | None
    far: Difference
    frr: Difference
    a: ErrorRates
    b: ErrorRates
    matched: int
    unmatched: tuple[int, ...]
    matched_by: str
    warnings: tuple[Note, ...] = field(repr=False, default=())
    at_crossing: Callable[[], Difference] | None = field(repr=False, default=None)
    names: tuple[str, str] = ("A", "B")

    def __repr__(self) -> str:
        where = f"{self.mode} {self.target:g}" if self.target is not None else "fixed thresholds"
        told = "; ".join(str(difference) for difference in self.differences)
        return f"Comparison({where}: {told}; p = {p_text(self.p_value)})"

    @property
    def table(self) -> SystemsTable:
        """The comparison as a table of one pair."""
        return SystemsTable(self.names, {self.names: self}, self.warnings)

    def to_records(self) -> list[dict[str, Any]]:
        """The differences of FAR, FRR and EER, A minus B, each with its default interval."""
        return self.table.to_records()

    def _section(self) -> Section:
        return self.table._section()

    def plot(self, metric: str | None = None, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """The differences A − B with their intervals, in percentage points.

        Parameters
        ----------
        metric, ax, level
            As for `SystemsTable.plot`.
        """
        return self.table.plot(metric, ax, level=level)

    @property
    def threshold(self) -> tuple[float, float]:
        """The thresholds of A and of B."""
        return self.a.threshold, self.b.threshold

    @property
    def n_identities(self) -> int:
        """Identities in the matched comparisons."""
        return self.a.n_identities

    @cached_property
    def eer(self) -> Difference:
        """The difference of the equal error rates, whatever the mode."""
        if self.at_crossing is None:
            raise DataError("EER needs genuine and impostor comparisons")
        return self.at_crossing()

    @property
    def differences(self) -> tuple[Difference, ...]:
        """FAR and FRR, those of them that are defined."""
        return tuple(d for d in (self.far, self.frr) if not math.isnan(d.estimate))

    @property
    def p_value(self) -> float:
        """Of "the systems are equally good".

        Where FAR (or FRR) was set equal: that of the other rate. At fixed thresholds: twice the smaller of
        the two p-values, at most 1 (Bonferroni).
        """
        if self.mode == "far":
            return self.frr.p_value
        if self.mode == "frr":
            return self.far.p_value
        values = [difference.p_value for difference in self.differences]
        return min(1.0, len(values) * min(values)) if values else math.nan


@dataclass(frozen=True, eq=False)
class SystemsTable(Shown):
    """All pairs of several systems, each on its own, in the order of the names."""

    names: tuple[str, ...]
    comparisons: Mapping[tuple[str, str], Comparison] = field(repr=False)
    warnings: tuple[Note, ...] = field(repr=False, default=())

    def to_records(self) -> list[dict[str, Any]]:
        """FAR and FRR of all pairs of systems, with simultaneous intervals; of two systems, EER too."""
        from matchbound.show.differences import comparison_records

        return comparison_records(self)

    def _section(self) -> Section:
        from matchbound.show.differences import comparison_section

        return comparison_section(self.to_records())

    def plot(self, metric: str | None = None, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """The differences of all pairs with simultaneous intervals, in percentage points.

        Parameters
        ----------
        metric, ax, level
            ``"far"``, ``"frr"`` or ``"eer"``, by default those of `to_records`; axes to draw on, by default new ones;
            level of the intervals.
        """
        from matchbound.show.differences import comparison_records, without_fixed
        from matchbound.show.figures import differences_figure
        from matchbound.show.mpl import draw

        metrics = None if metric is None else (metric,)
        return draw(differences_figure(without_fixed(comparison_records(self, level=level, metrics=metrics))), ax)

    def differences(
        self,
        metric: str = "far",
        level: float = 0.95,
        *,
        method: str = "auto",
        n_resamples: int = 10_000,
        rng: Rng = 0,
    ) -> tuple[FamilyRow, ...]:
        """Every pair's difference, with intervals that all hold at once with the level given (max-t).

        The critical value is a quantile of the largest of all the studentised differences if the systems were
        equal: rates at thresholds get random signs (`matchbound.stats.families`); differences read from curves,
        and systems with very many errors, a normal approximation. It knows how strongly the differences go
        together. P-values count ties half (mid-P), and an interval by ``"auto"`` or ``"dyadic"`` leaves out 0
        when its p-value is at most 1 − level.

        Parameters
        ----------
        metric, level, method
            ``"far"``, ``"frr"`` or ``"eer"``; the others as for one difference.
        n_resamples, rng
            Of the simulation behind the critical value; of one pair alone, of its bootstrap.
        """
        check_level(level)
        if metric not in ("far", "frr", "eer"):
            raise UsageError(f"metric must be one of far, frr, eer; got {metric!r}")
        family = {pair: getattr(comparison, metric) for pair, comparison in self.comparisons.items()}
        if len(family) == 1:
            ((pair, alone),) = family.items()
            interval = alone.interval(method, level, n_resamples=n_resamples, rng=rng)
            return (FamilyRow(*pair, alone, interval, alone.p_value),)
        null = partial(_signs, list(family.values()), n_resamples, rng)
        return simultaneous(family, null, method, level, n_resamples, rng)


def _signs(several: Sequence[Difference], n_resamples: int, rng: Rng) -> Largest | None:
    """The largest difference of equal systems by random signs; None where the normal approximation has to do."""
    rates = [d for d in several if isinstance(d, RateDifference) and d.a.weighting == "comparisons"]
    if len(rates) < len(several) or not all(d.a.comparisons for d in rates):
        return None
    first = rates[0]
    terms = sign_terms([d.sums.joint for d in rates], first.metric, first.sums.k)
    factor = bias_factors(first.sums.identities)[2 if first.metric == "far" else 0]
    return None if terms is None else flipped(terms, factor, first.freedom, n_resamples=n_resamples, rng=rng)


@dataclass(frozen=True, eq=False)
class SearchComparison(Judged, Shown):
    """Two systems on the same searches.

    `fpir`, `fnir` and `cmc` (at a rank alone) are differences at a threshold of each system, `fnir_at_fpir` is that of
    FNIR where both have the target FPIR, the thresholds estimated; None where they are not defined.
    """

    fpir: SearchDifference | None
    fnir: SearchDifference | None
    cmc: SearchDifference | None
    fnir_at_fpir: SearchDifference | None
    home: ClassVar[Home] = "comparison"

    def to_records(self) -> list[dict[str, Any]]:
        numbers = (self.fpir, self.fnir, self.cmc, self.fnir_at_fpir)
        return [record for number in numbers if number is not None for record in number.to_records()]

    def _tables(self) -> list[Table]:
        from matchbound.show.columns import search_comparison_table

        return [search_comparison_table(self.to_records(), ("the first", "the second"))]
