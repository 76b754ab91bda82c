"""Two systems on the same comparisons: differences and ratios of their error rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from matchbound.arraytypes import FloatArray
from matchbound.counts.joint import JointTally
from matchbound.errors import DataError, UsageError, argument
from matchbound.metrics import Home
from matchbound.notes import Note
from matchbound.results.bootstraps import Bootstrap
from matchbound.results.claims import Judged
from matchbound.results.error_rates import ErrorRates
from matchbound.results.interval import Interval, Side, limits_record
from matchbound.results.number import Ask, Limits, Number, Rule, bootstrap_rules
from matchbound.results.rates import Rate
from matchbound.show.numbers import p_text, percent, points
from matchbound.show.shown import Shown
from matchbound.stats import differences as stats
from matchbound.stats.differences import PointTerms
from matchbound.stats.dyadic import DyadicSums, bias_factors
from matchbound.stats.intervals import t_quantile
from matchbound.stats.latent.differences import DifferenceModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.show.section import Section

NOTHING = 1e-9
"""A variance below this share of the binomial one is rounding: nothing in the data tells the systems apart."""
Models = Callable[[str], DifferenceModel | None]
"""The latent model of the difference of FAR (``"far"``) or FRR (``"frr"``), fitted when first asked for."""


def _student(kind: str, away: str | None = None) -> Callable[[Difference, Ask], Limits]:
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


def _log_student(kind: str, away: str | None = None) -> Callable[[Ratio, Ask], Limits]:
    """The ratio on the log scale; the limit towards 1 is test-based (Miettinen 1976).

    log r·(1 − t/T) with T the size of the difference over its standard error, so that the interval leaves out 1 exactly
    when that of the difference leaves out 0. (The usual variance of log r would vanish where the errors of both systems
    are those of the same identity.) The limit away from 1 is the farther of that and of the other variance's.
    """

    def limits(ratio: Ratio, ask: Ask) -> Limits:
        difference = ratio.difference
        if difference.rate_a == 0.0 and difference.rate_b == 0.0:
            note = Note("no-errors", "no error in either system: the ratio is undefined")
            return Limits(0.0, math.inf, kind if away is None else f"{kind}+{away}", (note,))
        t = t_quantile(ask.tail, difference.freedom)
        centre, wide = difference._log_ratio(away or kind)
        near = wide
        if difference.estimate != 0.0:
            near = centre**2 * difference._variance(kind) / difference.estimate**2
        below, above = _halves(centre, t * math.sqrt(near), t * math.sqrt(max(near, wide)))
        low, high = math.exp(centre - below), math.exp(min(centre + above, 700.0))
        return Limits(low, high, kind if away is None else f"{kind}+{away}")

    return limits


DYADIC = Rule("dyadic", _student("dyadic"))
DIFFERENCE_RULES = (
    DYADIC,
    Rule("latent", _student("latent")),
    Rule("default", _student("dyadic", "latent"), hidden=True),
)


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Number):
    """An error rate of system A minus the same rate of system B.

    metric
        ``"far"``, ``"frr"``, ``"frr@far"``, ``"far@frr"`` or ``"eer"``.
    rate_a, rate_b
        The rates of the two systems.
    freedom
        Degrees of freedom of Student's t: effective identities − 1.
    """

    metric: str
    rate_a: float
    rate_b: float
    freedom: float
    rules: ClassVar[tuple[Rule, ...]] = DIFFERENCE_RULES
    defaults: ClassVar[tuple[str, ...]] = ("default",)
    tested: ClassVar[tuple[str, ...]] = ("auto", "dyadic")
    """Methods whose limit towards 0 is the one that the p-value tests."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.metric}: {self.rate_a:.6g} − {self.rate_b:.6g} = {self.estimate:.6g})"

    def __str__(self) -> str:
        name = self.metric.upper()
        return f"{name} {percent(self.rate_a)} − {percent(self.rate_b)} = {points(self.estimate)} points"

    @property
    def label(self) -> str:
        """Its name in tables."""
        return f"difference of {self.metric}"

    @property
    def entry(self) -> str:
        """Its name in the table of metrics: ``"dfar"``, ``"dfrr"`` or ``"deer"``."""
        return f"d{self.metric.partition('@')[0]}"

    @property
    def ends(self) -> tuple[float, float]:
        """Differences of rates lie between −1 and 1."""
        return (-1.0, 1.0)

    def record(self, interval: Interval | None) -> dict[str, Any]:
        """The difference with the limits of an interval."""
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
        """rate_a − rate_b."""
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

    @cached_property
    def unpaired_variance(self) -> float:
        """What the variance would be if the two systems had been tried on different people."""
        raise NotImplementedError

    @cached_property
    def influence(self) -> FloatArray:
        """What each identity adds to the difference, shape (G,)."""
        raise NotImplementedError

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know about the number."""
        if self._never_differ:
            text = f"{self.metric.upper()}: the systems never disagree here; the interval rests on the latent model"
            return (Note("never-disagree", text),)
        return ()

    @property
    def p_value(self) -> float:
        """Two-sided p-value of "the rates are equal", by Student's t."""
        if math.isnan(self.estimate):
            return math.nan
        if self.estimate == 0.0 or self._never_differ:
            return 1.0
        return stats.t_tails(*self._studentised())

    def _studentised(self) -> tuple[float, float]:
        """The difference over its dyadic standard error, and the degrees of freedom of that."""
        return self.estimate / math.sqrt(self.variance), self.freedom

    def as_ratio(self) -> Ratio:
        """rate_a / rate_b as a number with intervals and claims."""
        return Ratio(self)

    def ratio_interval(self, method: str = "auto", level: float = 0.95, *, side: Side = "two-sided") -> Interval:
        """A confidence interval for rate_a / rate_b; see `as_ratio`."""
        return self.as_ratio().interval(method, level, side=side)

    def _ratio_rules(self) -> Mapping[str, Callable[[Ratio, Ask], Limits]]:
        return {
            "auto": _log_student("dyadic", "latent"),
            "dyadic": _log_student("dyadic"),
            "latent": _log_student("latent"),
        }

    def _must_be_defined(self) -> None:
        if math.isnan(self.estimate):
            raise DataError(f"the data hold no comparisons for {self.metric.upper()}, so there is no difference of it")

    def _defined(self) -> bool:
        return not math.isnan(self.estimate)

    def _without_errors(self, ask: Ask) -> Limits | None:
        """Limits where neither system erred; None where one did."""
        return None

    @property
    def _never_differ(self) -> bool:
        """Whether nothing in the data tells the systems apart, so that the dyadic variance is 0."""
        raise NotImplementedError

    def _variance(self, method: str) -> float:
        raise NotImplementedError

    def _log_ratio(self, method: str) -> tuple[float, float]:
        """(log of the softened ratio, its variance)."""
        raise NotImplementedError


def _halves(estimate: float, near: float, far: float) -> tuple[float, float]:
    """How far an interval reaches below and above: `near` towards 0, `far` away from it."""
    if estimate == 0.0:
        return far, far
    return (far, near) if estimate < 0.0 else (near, far)


def _ratio_limits(name: str) -> Callable[[Ratio, Ask], Limits]:
    def limits(ratio: Ratio, ask: Ask) -> Limits:
        found = ratio.difference._ratio_rules().get(name)
        if found is None:
            raise UsageError(f"method {name!r} is not for this ratio; use method='auto'")
        return found(ratio, ask)

    return limits


@dataclass(frozen=True, eq=False, repr=False)
class Ratio(Number):
    """An error rate of system (or group) A over the same rate of B; [0, ∞) where neither erred."""

    difference: Difference
    rules: ClassVar[tuple[Rule, ...]] = (
        *(Rule(name, _ratio_limits(name)) for name in ("dyadic", "latent", "wilson")),
        Rule("default", _ratio_limits("auto"), hidden=True),
    )
    defaults: ClassVar[tuple[str, ...]] = ("default",)
    method_argument: ClassVar[str] = "method for a ratio"

    def __repr__(self) -> str:
        return f"Ratio({self.label}={self.estimate:.6g})"

    @property
    def metric(self) -> str:
        """Such as ``"far ratio"``."""
        return f"{self.difference.metric.partition('@')[0]} ratio"

    @property
    def estimate(self) -> float:
        """rate_a / rate_b; infinite or NaN where rate_b is 0."""
        return self.difference.ratio

    @property
    def ends(self) -> tuple[float, float]:
        """0 and infinity."""
        return (0.0, math.inf)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Those of the difference."""
        return self.difference.notes

    def _must_be_defined(self) -> None:
        self.difference._must_be_defined()


@dataclass(frozen=True, eq=False, repr=False)
class RateDifference(Difference):
    """FAR or FRR of A minus that of B, each at its own fixed threshold.

    a, b : Rate
        The rates of the two systems on the comparisons that both made.
    joint : JointTally
        One pair of thresholds.
    """

    a: Rate = field(kw_only=True)
    b: Rate = field(kw_only=True)
    joint: JointTally = field(kw_only=True)
    models: Models = field(kw_only=True)
    rules: ClassVar[tuple[Rule, ...]] = (*DIFFERENCE_RULES, *bootstrap_rules(("vertex", "double-or-nothing")))

    @property
    def disagreements(self) -> int:
        """Comparisons on which exactly one of the systems errs."""
        both = self.joint.both_impostor if self.metric == "far" else self.joint.both_genuine
        return self.a.errors + self.b.errors - 2 * int(both[0])

    @cached_property
    def unpaired_variance(self) -> float:
        """What the variance would be if the two systems had been tried on different people."""
        return self.factor * (max(self.a.variance, 0.0) + max(self.b.variance, 0.0))

    @cached_property
    def influence(self) -> FloatArray:
        """What each identity adds to the difference, shape (G,)."""
        return self._sums().influence

    def _drawn(self, method: str, n_resamples: int, seed: int, workers: int, options: dict[str, Any]) -> Bootstrap:
        if options:
            raise UsageError(f"unknown option {sorted(options)[0]!r} for method {method!r}")
        drawn = [rate.bootstrap(method, n_resamples, seed, workers=workers).replicates for rate in (self.a, self.b)]
        return Bootstrap(drawn[0] - drawn[1], self.estimate, method, seed)

    def _no_width(self) -> str:
        return "the systems never disagree"

    @property
    def _never_differ(self) -> bool:
        return self._sums().floor <= 0.0

    @property
    def factor(self) -> float:
        """What the plug-in variance is multiplied by to lose its bias."""
        return bias_factors(self.a.effective_identities)[2 if self.metric == "far" else 0]

    def _sums(self, u: float = 1.0, v: float = 1.0) -> DyadicSums:
        return (stats.far_sums if self.metric == "far" else stats.frr_sums)(self.joint, 0, u, v)

    def _without_errors(self, ask: Ask) -> Limits | None:
        if self.a.errors or self.b.errors:
            return None
        a, b = (rate.interval(level=ask.two_sided_level) for rate in (self.a, self.b))
        return Limits(-b.high, a.high, a.method)

    def _variance(self, method: str) -> float:
        value = self._sums().corrected(self.a.effective_identities)
        if method == "latent" or value <= 0.0:
            value = max(value, self._model(1.0, 1.0))
        return value

    def _model(self, u: float, v: float) -> float:
        model = self.models(self.metric)
        a, b = self._softened()
        if model is None:
            return (u * u * a * (1.0 - a) + v * v * b * (1.0 - b)) / max(self.a.floor, 1)
        return max(model.variance(a, b, u, v), self._least(u, v))

    def _softened(self) -> tuple[float, float]:
        """Both rates with something added to either side, so that none is 0 or 1."""
        a, b = (stats.softened(rate.units_erred, rate.units) for rate in (self.a, self.b))
        return a, b

    def _least(self, u: float, v: float) -> float:
        """What the comparisons on which the systems disagree add at the least."""
        n = float(self.a.comparisons)
        return (self.disagreements + 1.0) / n * min(u * u, v * v) / n

    def _log_ratio(self, method: str) -> tuple[float, float]:
        a, b = self._softened()
        value = self._sums(1.0 / a, 1.0 / b).corrected(self.a.effective_identities)
        if method == "latent" or value <= 0.0 or min(self.a.errors, self.b.errors) == 0:
            value = max(value, self._model(1.0 / a, 1.0 / b))
        return math.log(a / b), value


@dataclass(frozen=True, eq=False, repr=False)
class IdentityDifference(RateDifference):
    """The same with every identity counted once; the joint tally is of units (`unit_joint`)."""

    rules: ClassVar[tuple[Rule, ...]] = DIFFERENCE_RULES

    def _no_bootstrap(self) -> str:
        return f"bootstraps are of pooled rates; use {argument('weighting', 'comparisons')}"

    def _least(self, u: float, v: float) -> float:
        return 0.0


@dataclass(frozen=True, eq=False, repr=False)
class PointDifference(Difference):
    """A number read from the curve of A minus the same of B; the thresholds are estimated, and that is counted.

    FRR at equal FAR, FAR at equal FRR, or EER: to first order each is a combination of FRR and FAR at its threshold
    (`PointTerms`).

    threshold_a, threshold_b
        Where the two numbers were read.
    """

    threshold_a: float = field(kw_only=True)
    threshold_b: float = field(kw_only=True)
    terms: PointTerms = field(kw_only=True)
    models: Models = field(kw_only=True)

    @cached_property
    def unpaired_variance(self) -> float:
        """What the variance would be if the two systems had been tried on different people."""
        return self.terms.variance(1.0, 0.0) + self.terms.variance(0.0, 1.0)

    @cached_property
    def influence(self) -> FloatArray:
        """What each identity adds to the difference, shape (G,)."""
        return self.terms.sums().influence

    @property
    def _never_differ(self) -> bool:
        return self.terms.variance(1.0, 1.0) <= NOTHING * self.terms.binomial(1.0, 1.0)

    def _variance(self, method: str) -> float:
        value = self.terms.variance(1.0, 1.0)
        if method == "latent" or self._never_differ:
            value = max(value, self._model(1.0, 1.0))
        return value

    def _model(self, u: float, v: float) -> float:
        total = 0.0
        for kind, (a, b), (share_a, share_b) in (
            ("frr", self.terms.frr_softened, self.terms.frr_shares),
            ("far", self.terms.far_softened, self.terms.far_shares),
        ):
            if share_a <= 0.0 and share_b <= 0.0:
                continue
            model = self.models(kind)
            if model is None:
                return self.terms.binomial(u, v, identities=True)
            total += model.variance(a, b, u * share_a, v * share_b)
        return total

    def _log_ratio(self, method: str) -> tuple[float, float]:
        half = 0.5 / self.terms.comparisons
        a, b = self.rate_a + half, self.rate_b + half
        value = self.terms.variance(1.0 / a, 1.0 / b)
        if method == "latent" or self._never_differ or min(self.rate_a, self.rate_b) <= 0.0:
            value = max(value, self._model(1.0 / a, 1.0 / b))
        return math.log(a / b), value


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Judged, Shown):
    """Two systems on the same comparisons.

    mode
        ``"threshold"``: rates at fixed thresholds; ``"far"`` or ``"frr"``: the other rate where this one is equal.
    target
        The rate that was set equal, or None.
    far, frr : Difference
        A minus B. With ``mode="far"`` the difference of FRR counts the uncertainty of both thresholds, and
        that of FAR is near 0 by construction.
    a, b : ErrorRates
        Each system alone, on the comparisons that both made.
    matched, unmatched
        How many comparisons were matched, and how many of A and of B were not.
    matched_by
        What they were matched by.
    names
        What to call A and B in tables and pictures.
    warnings
        What a reader must know.
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

    def to_records(self) -> list[dict[str, Any]]:
        """The differences of FAR, FRR and EER, A minus B, each with its default interval."""
        from matchbound.show.differences import comparison_records

        return comparison_records(self, self.names)

    def _section(self) -> Section:
        from matchbound.show.differences import comparison_section

        return comparison_section(self.to_records())

    def plot(self, ax: Axes | None = None, *, labels: tuple[str, str] | None = None, level: float = 0.95) -> Axes:
        """The differences A − B with their intervals, in percentage points.

        Parameters
        ----------
        ax
            Axes to draw on; by default a new figure.
        labels
            Names of the two systems; by default `names`.
        level
            Of the intervals.
        """
        from matchbound.show.differences import comparison_records
        from matchbound.show.figures import differences_figure
        from matchbound.show.mpl import draw

        return draw(differences_figure(comparison_records(self, labels or self.names, level=level)), ax)

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
