"""FAR and FRR at fixed thresholds, each alone and both together, and the numbers made of them at one threshold.

Precision, F1 and HTER depend on both rates: their limits come from the limits of both, which share one budget of error
(`matchbound.results.latent.OfBothRates`). Recall and the generalised rates take the limits of one rate.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.counting.recount import Recount
from matchbound.counts.tally import ImpostorTally, PairTable, Tally
from matchbound.data.failures import Failures
from matchbound.data.labels import as_text
from matchbound.data.values import SURE, question
from matchbound.errors import DataError, MatchboundWarning, UsageError, argument, check_prior, check_whole, named
from matchbound.metrics import Home
from matchbound.notes import PARTIAL_LABELS, Note
from matchbound.results import latent
from matchbound.results.claims import Judged
from matchbound.results.latent import LATENT, OfBothRates, log_t_limits, why_not
from matchbound.results.number import (
    DRAWING,
    SCHEME,
    Ask,
    Bootstrap,
    CannotFit,
    Draws,
    Limits,
    Number,
    Rule,
    Side,
    bootstrap_rules,
    counted_fields,
    labels_notes,
)
from matchbound.show.numbers import count_text, percent, threshold_text
from matchbound.show.shown import Shown
from matchbound.stats import fixed_sizes, resampling
from matchbound.stats.budget import Independent, RateModels
from matchbound.stats.costs import logit_t
from matchbound.stats.dyadic import DyadicSums, bias_factor, effective_number
from matchbound.stats.failures import (
    gfar_limits,
    gfrr_limits,
    gfrr_mover,
    gfrr_of,
    gfrr_variance,
    square_of_logarithm,
)
from matchbound.stats.intervals import agresti_coull, effective_n, fallback_wilson, jeffreys, t_quantile, wald, wilson
from matchbound.stats.linkage import Decisions, f1_of, f1_sums, precision_of, precision_sums
from matchbound.stats.resampling import BOOTSTRAPS
from matchbound.stats.variance import UnitRate, jackknife, pooled_rate, residual_sums, unit_rate, unit_tally

if TYPE_CHECKING:
    from matchbound.show.tables import Table
    from matchbound.stats.latent.model import LatentModel, LatentSettings

Metric = Literal["far", "frr"]
VARIANCES = ("plug-in", "jackknife", "bias-corrected", "fixed-sizes")
WEIGHTINGS = ("comparisons", "identities")
# With fewer identities than this, the coverage of an interval is not to be relied on.
FEW_IDENTITIES = 20
# An identity that takes part in a larger share of the comparisons is named.
LARGE_SHARE = 0.3
# How many times the variance a bootstrap must give before that is said.
OVERSTATED = 1.5
# Comparisons that a printed list holds.
SHOWN = 20


@dataclass(frozen=True)
class Kind:
    """What differs between FAR and FRR besides their comparisons.

    The bias correction needs more than `least` effective identities, a variance given their sizes `least_fixed`.
    """

    comparisons: str
    meaning: str
    error: str
    least: int
    least_fixed: int


KINDS: dict[Metric, Kind] = {
    "far": Kind("impostor", "two different identities", "false accept", 3, fixed_sizes.LEAST_FAR),
    "frr": Kind("genuine", "two instances of one identity", "false reject", 1, fixed_sizes.LEAST_FRR),
}


def _latent(rate: Rate, ask: Ask) -> Limits:
    reason = latent.why_not(rate.recount)
    if reason is not None:
        raise CannotFit(reason)
    found = rate.latent_model(ask.options.get("settings")).limits(rate.units_erred, ask.level, ask.side)
    return Limits(found.low, found.high, notes=found.notes, details=found.details)


def _fallback_wilson(rate: Rate, ask: Ask) -> Limits:
    """Wilson's formula with bias-corrected variance and Student's t, for data without identities."""
    identities = rate.effective_identities
    spread = rate.variance * bias_factor(rate.metric, identities, 0.0)
    low, high = fallback_wilson(rate.estimate, spread, rate.floor, rate.units, ask.tail, identities - 1.0)
    return Limits(float(low), float(high), "wilson", (FALLBACK,))


def _naive_wilson(rate: Rate, ask: Ask) -> Limits:
    return Limits(*wilson(rate.estimate, rate.comparisons, ask.tail))


def _wald(rate: Rate, ask: Ask) -> Limits:
    low, high = wald(rate.estimate, rate._spread(ask), ask.tail)
    if low < high:
        return Limits(low, high)
    default = rate.interval(level=ask.level, side=ask.side)
    bound = f"{default.method}: {percent(default.low)} to {percent(default.high)}"
    text = f"wald has no width here ({rate._no_width()}); the default interval is right ({bound})"
    return Limits(low, high, notes=(Note("no-width", text),))


def _effective(formula: Callable[[float, float, float], tuple[float, float]]) -> Callable[[Rate, Ask], Limits]:
    """The rule of a binomial formula at the effective number of comparisons."""

    def limits(rate: Rate, ask: Ask) -> Limits:
        trials = effective_n(rate.estimate, rate._spread(ask), rate.floor)
        return Limits(*formula(rate.estimate, trials, ask.tail))

    return limits


FALLBACK = Note("wilson", "Wilson's interval with bias-corrected variance and Student's t")
OF_VARIANCE = frozenset({"variance"}) | SCHEME
UNIT_RULES = (
    Rule("latent", _latent, frozenset({"settings"})),
    Rule("wilson", _effective(wilson), OF_VARIANCE),
    Rule("wald", _wald, OF_VARIANCE, warns=True),
    Rule("fallback-wilson", _fallback_wilson, hidden=True),
)
RATE_RULES = (
    *UNIT_RULES[:3],
    Rule("agresti-coull", _effective(agresti_coull), OF_VARIANCE),
    Rule("jeffreys", _effective(jeffreys), OF_VARIANCE),
    Rule("naive-wilson", _naive_wilson),
    *bootstrap_rules(BOOTSTRAPS),
    UNIT_RULES[3],
)


def through_rate(limits: Callable[[str, Any, Ask], Limits]) -> tuple[Rule, ...]:
    """The rules of a number whose limits are made from those of one rate by the same method."""
    named_rules = [
        Rule(rule.name, partial(limits, rule.name), rule.options | SCHEME) for rule in RATE_RULES if not rule.hidden
    ]
    return (*named_rules, Rule("default", partial(limits, "auto"), OF_VARIANCE | {"settings"}, hidden=True))


@dataclass(frozen=True, eq=False, repr=False)
class Erring(Shown):
    """Comparisons on the wrong side of a threshold, worst first; arrays of shape (E,).

    There are `errors` in all; the list may hold fewer. Instances are row numbers where embeddings have no names, and
    None where a table of scores names none. `row` is that of the table, counted from 0; None for embeddings.
    """

    metric: str
    threshold: float
    errors: int
    score: FloatArray = field(repr=False)
    identity_a: LabelArray = field(repr=False)
    identity_b: LabelArray = field(repr=False)
    instance_a: LabelArray | None = field(repr=False, default=None)
    instance_b: LabelArray | None = field(repr=False, default=None)
    row: IntArray | None = field(repr=False, default=None)

    def __len__(self) -> int:
        return int(self.score.size)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_records())

    def __repr__(self) -> str:
        return f"Erring({self.metric}: {len(self)} of {self.errors} errors at threshold {self.threshold:g})"

    def to_records(self) -> list[dict[str, Any]]:
        names = ("identity_a", "identity_b", "instance_a", "instance_b", "row", "score")
        lists = {name: getattr(self, name).tolist() for name in names if getattr(self, name) is not None}
        rows = zip(*lists.values(), strict=True)
        return [{"metric": self.metric, **dict(zip(lists, row, strict=True))} for row in rows]

    def _tables(self) -> list[Table]:
        from matchbound.show.columns import erring_table

        return [erring_table(self.metric, self.to_records()[:SHOWN], self.errors)]


@dataclass(frozen=True, eq=False, repr=False)
class Rate(Number):
    """FAR (impostor comparisons that matched) or FRR (genuine ones that did not): a mean over units."""

    metric: Metric
    threshold: float
    tally: Tally
    index: int
    recount: Recount | None = None
    rules: ClassVar[tuple[Rule, ...]] = RATE_RULES
    defaults: ClassVar[tuple[str, ...]] = ("latent", "fallback-wilson")
    # What counts once: ``"comparisons"`` or ``"identities"``.
    weighting: ClassVar[str] = "comparisons"

    def __repr__(self) -> str:
        return f"Rate({self.metric}={self.estimate:.6g}, {self.errors}/{self.comparisons} at {self.threshold:g})"

    def __str__(self) -> str:
        counts = f"{count_text(self.errors)} of {count_text(self.comparisons)}"
        at = threshold_text(self.threshold)
        return f"{self.metric.upper()} {percent(self.estimate)} ({counts} at threshold {at})"

    @property
    def kind(self) -> Kind:
        """What FAR or FRR is called, and what its variances need."""
        return KINDS[self.metric]

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know about the rate: whether labels cover a part of the scored pairs."""
        return labels_notes(self.recount)

    @cached_property
    def errors(self) -> int:
        """How many comparisons erred."""
        return self.tally.part(self.metric).wrong(self.index)

    @cached_property
    def comparisons(self) -> int:
        """How many comparisons there were: N for FAR, T for FRR."""
        return self.tally.part(self.metric).total

    @cached_property
    def n_identities(self) -> int:
        """Identities that take part in these comparisons."""
        return self.tally.part(self.metric).taking_part

    @cached_property
    def unit(self) -> UnitRate:
        """The sums of the units that the rate is a mean of."""
        if self.weighting == "comparisons":
            return pooled_rate(self.tally, self.metric, self.index)
        tally = self._with_pairs if self.metric == "far" else self.tally
        return unit_rate(tally.part(self.metric), self.index)

    @property
    def counted(self) -> tuple[Tally, int]:
        """The tally whose units the rate is a mean of, and the place of the threshold in it."""
        if self.weighting == "comparisons":
            return self.tally, self.index
        return unit_tally(self._with_pairs, [self.index]), 0

    @property
    def units(self) -> int:
        """What the rate is a mean of: comparisons; or identity pairs (FAR) and identities (FRR)."""
        return self.unit.units

    @property
    def units_erred(self) -> float:
        """Units that erred; Σ of their shares where a unit is a mean of comparisons."""
        return float(self.errors) if self.weighting == "comparisons" else self.estimate * self.units

    @property
    def estimate(self) -> float:
        """errors / comparisons, or the mean over identity pairs or identities; NaN without comparisons."""
        return self.unit.estimate

    @property
    def variance(self) -> float:
        """The paper's plug-in variance. It can be negative in small samples; NaN without comparisons."""
        return self.unit.variance

    def variance_by(self, kind: str = "plug-in") -> float:
        """Variance of the estimate by another estimator.

        `kind` is ``"plug-in"``; ``"bias-corrected"`` (the plug-in is too low by a known factor); and of pooled rates
        ``"jackknife"`` (delete one identity) or ``"fixed-sizes"`` (given the number of instances of each identity).
        """
        self._must_be_defined()
        kind = named(kind, VARIANCES if self.weighting == "comparisons" else VARIANCES[::2], "kind")
        if kind == "plug-in":
            return self.variance
        if kind == "bias-corrected":
            factor, least = bias_factor(self.metric, self.effective_identities), self.kind.least
            need = f"the bias correction needs more than {least} effective identities; there are "
            self._finite(factor, f"{need}{self.effective_identities:.3g}")
            return factor * self.variance if self.weighting == "comparisons" else self.unit.without_bias()
        if kind == "jackknife":
            value = jackknife(self.tally.part(self.metric), self.index)
            return self._finite(value, "one identity takes part in every comparison; nothing is left without it")
        if self.metric == "far":
            value = fixed_sizes.far_fixed_sizes(self._with_pairs.impostor, self.index, self._sizes())
        else:
            value = fixed_sizes.frr_fixed_sizes(self.tally.genuine, self.index)
        return self._finite(value, f"a variance given the sizes needs at least {self.kind.least_fixed} identities")

    def _finite(self, value: float, need: str) -> float:
        if not np.isfinite(value):
            raise DataError(f"{self.metric}: {need}")
        return value

    @property
    def effective_identities(self) -> float:
        """How many equally large identities would weigh as much: (ΣM)²/ΣM² for FAR, T²/Σg² for FRR.

        Without instances, FAR's identities weigh by their comparisons; where every identity counts once, all weigh the
        same.
        """
        return self.unit.identities

    @property
    def floor(self) -> int:
        """Least effective number of trials (the paper, below eq. 5): ⌊G/2⌋ pairs for FAR, identities for FRR."""
        return self.n_identities // self.tally.part(self.metric).ends

    @property
    def effective_n(self) -> float:
        """N*: how many independent comparisons would be as informative; NaN without comparisons."""
        return effective_n(self.estimate, self.variance, self.floor) if self.comparisons else float("nan")

    @property
    def design_effect(self) -> float:
        """The design effect: comparisons divided by the effective sample size, `effective_n`."""
        return self.comparisons / self.effective_n if self.comparisons else float("nan")

    def erring(self, most: int = 10_000) -> Erring:
        """The `most` comparisons that erred worst, with identities and instances: look here for wrong labels."""
        check_whole(most, "most")
        if self.recount is None:
            raise DataError("the comparisons themselves are not available, only their counts")
        found = self.recount.erring(self.threshold, self.metric, self.errors, int(most))
        pairs = self.recount.source.named_pairs(found.first, found.second)
        return Erring(self.metric, self.threshold, self.errors, found.score, **pairs)

    def latent_model(self, settings: LatentSettings | None = None) -> LatentModel:
        """The latent model fitted to these comparisons; for `settings` see docs/explanation/latent.md."""
        from matchbound.stats.latent.fit import of_units

        self._must_be_defined()
        if self.recount is None:
            raise DataError("the latent model counts errors at other thresholds too, and the data are not available")
        model = latent.fit(self.metric, self.tally, self.errors, self.recount, settings)
        return model if self.weighting == "comparisons" else of_units(model, [self.unit])

    def _fields(self) -> dict[str, Any]:
        return counted_fields(
            self.threshold, self.tally.n_identities, self.variance,
            (self.errors, self.comparisons), self.effective_n, self.weighting,
        )  # fmt: skip

    def _chosen(self, method: str, options: Mapping[str, Any]) -> str:
        return "wilson" if method == "auto" and options.get("variance") is not None else method

    def _no_width(self) -> str:
        if 0 < self.errors < self.comparisons:
            return "its variance is not positive"
        return "no comparison erred" if self.errors == 0 else "every comparison erred"

    def _drawn(self, draws: Draws) -> Bootstrap:
        sizes = self._sizes()
        scheme = draws.scheme(sizes)
        by_pair = self.metric == "far" and draws.method in ("vertex", "double-or-nothing")
        tally = self._with_pairs if by_pair else self.tally
        note = overstated(tally.impostor, self.index, draws.method) if by_pair else None
        if note is not None:
            warnings.warn(note, MatchboundWarning, stacklevel=4)
        part = tally.part(self.metric)
        drawn = resampling.rate_replicates(
            part, self.index, scheme, draws.n_resamples, draws.seed, sizes, draws.workers
        )
        return Bootstrap(drawn, self.estimate, draws.method, draws.seed, scheme.tau)

    def _spread(self, ask: Ask) -> float:
        """The variance that a closed form is asked to use."""
        options = dict(ask.options)
        kind = named(options.pop("variance", None) or "plug-in", (*VARIANCES, *BOOTSTRAPS), "variance")
        if kind in BOOTSTRAPS:
            return self.bootstrap(kind, **options).variance
        foreign = sorted(set(options) - DRAWING)
        if foreign:
            raise UsageError(f"unknown option {foreign[0]!r}")
        return self.variance_by(kind)

    def _must_be_defined(self) -> None:
        if self.comparisons == 0:
            kind = f"{self.kind.comparisons} comparisons (of {self.kind.meaning})"
            raise DataError(f"the data hold no {kind}, so {self.metric.upper()} is not defined")

    @cached_property
    def _with_pairs(self) -> Tally:
        """This tally, or the same comparisons counted again once, with n_ij kept at every threshold."""
        if self.tally.has_pairs:
            return self.tally
        if self.recount is None:
            raise DataError("this needs the errors of each identity pair, which were not kept; tally with pairs=True")
        return self.recount.tally(self.tally.thresholds, pairs=True)

    def _sizes(self) -> IntArray:
        return resampling.instance_counts(self.tally.instances, self.tally.genuine.comparisons)


class IdentityRate(Rate):
    """FAR or FRR at one threshold with every identity counted once: its units are identity pairs or identities.

    FRR is the mean over identities of the share of an identity's comparisons that erred, FAR the mean over identity
    pairs. `errors` and `comparisons` are counts of comparisons, as for a pooled rate.
    """

    rules: ClassVar[tuple[Rule, ...]] = UNIT_RULES
    method_argument: ClassVar[str] = "method with weighting='identities'"
    weighting: ClassVar[str] = "identities"

    def _no_bootstrap(self) -> str:
        return f"bootstraps are of pooled rates; use {argument('weighting', 'comparisons')}"


def overstated(tally: ImpostorTally, k: int, method: str) -> Note | None:
    """What to say where a bootstrap counts single identity pairs more than once and little else makes the variance.

    Both bootstraps give (4R + 2Q)/N2² to first order, and the plug-in is (4R − 2Q)/N2². Where few identity pairs were
    compared, as in a protocol, R is hardly larger than Q.
    """
    compared = tally.compared
    size = int(np.count_nonzero(tally.comparisons))
    if not isinstance(compared, PairTable) or compared.first.size >= size * (size - 1) / 4.0:
        return None
    r, q = residual_sums(tally, k)
    ratio = float((4 * r + 2 * q) / max(4 * r - 2 * q, 2 * q)) if q > 0 else 1.0
    if ratio < OVERSTATED:
        return None
    share = compared.first.size / (size * (size - 1) / 2.0)
    text = (
        f"only {100.0 * share:.2g}% of the identity pairs were compared: on such data the {method} bootstrap gives FAR "
        f"about {ratio:.1f} times the variance that it has. Use method='auto' or 'wilson'"
    )
    return Note("overstated", text)


FEW_ERRORS = 10
# Below this FNMR, and with fewer errors than `FEW_ERRORS`, GFRR takes FNMR's own limits.
RARE = 0.01
NOT_BY_PERSON = Note(
    "not-by-person",
    "it is not known who failed: attempts count as independent of each other and of the comparisons, and the interval "
    "may be too narrow. A table of attempts by person tells",
)


def refuse_partial(recount: Recount | None, what: str) -> None:
    """Raise where the labels cover a part of the scored pairs: true pairs without a label are not counted as missed."""
    if any(note.code == PARTIAL_LABELS for note in labels_notes(recount)):
        raise DataError(
            f"{what} needs every true pair, and the labels cover a part of the scored pairs; label all of them, give a "
            f"table of clusters, or say {argument('labels', 'complete')} if every true pair has a label"
        )


def opposite(side: Side) -> Side:
    """The side of a number that falls as this one rises."""
    turned: dict[Side, Side] = {"upper": "lower", "lower": "upper"}
    return turned.get(side, side)


def _both_rates(number: AtThreshold, ask: Ask) -> Limits:
    """The default limits of FAR and FRR, both at once: careful, and never of width zero."""
    side = ask.side if number.rising else opposite(ask.side)
    far, frr = (rate.interval(level=ask.level, side=side) for rate in (number.far, number.frr))
    low, high = (float(number.value(*np.array([[p], [q]]))) for p, q in ((far.low, frr.low), (far.high, frr.high)))
    return Limits(low, high, far.method) if number.rising else Limits(high, low, far.method)


def _logit_t(number: LinkageMeasure, ask: Ask) -> Limits:
    """t limits on the logit scale with the dyadic variance."""
    if not number.logit_variance > 0.0:
        text = f"{number.metric} = {number.estimate:g}: on the logit scale it has no finite value, and so no logit-t"
        raise CannotFit(Note("no-width", f"{text} interval. Use method='auto'"))
    quantile = t_quantile(ask.tail, number.effective_identities - 1.0)
    return Limits(*logit_t(number.estimate, number.logit_variance, quantile))


def _own_share(number: LinkageMeasure, ask: Ask) -> Limits:
    """At the sample's own share of genuine comparisons, the farther of the latent and the logit-t limit on either side.

    Latent limits take the share as known, and it is sampled too: where nearly all matches were selected beforehand,
    little else varies.
    """
    limits = LATENT.limits(number, ask)
    if number.given_prior is not None or not number.logit_variance > 0.0:
        return limits
    other = _logit_t(number, ask)
    low, high = min(limits.low, other.low), max(limits.high, other.high)
    return limits if (low, high) == (limits.low, limits.high) else Limits(low, high, f"{limits.method}+logit-t")


def _log_t(number: HalfTotalError, ask: Ask) -> Limits:
    limits = log_t_limits(number, ask)
    return Limits(limits.low, min(limits.high, 1.0))


OWN_SHARE = Rule("own share", _own_share, hidden=True)
BOTH_RATES = Rule("both rates", _both_rates, hidden=True)


@dataclass(frozen=True, eq=False, repr=False)
class AtThreshold(OfBothRates):
    """A number made of FAR and FRR at one threshold."""

    far: Rate = field(repr=False)
    frr: Rate = field(repr=False)

    @property
    def estimate(self) -> float:
        return float(self._value(np.array(self.far.estimate), np.array(self.frr.estimate)))

    def _value(self, far: FloatArray, frr: FloatArray) -> FloatArray:
        """Its value at rates of any shape; NaN where it is not defined."""
        raise NotImplementedError

    def value(self, far: FloatArray, frr: FloatArray) -> FloatArray:
        """Its value at rates of shape (1, …), 0 where it is not defined."""
        return np.nan_to_num(self._value(far[0], frr[0]), nan=0.0)

    @property
    def threshold(self) -> float:
        return self.far.threshold

    @cached_property
    def fit(self) -> RateModels:
        """The latent models of both rates; without identities, those of independent comparisons."""
        recount = self.far.recount
        if recount is not None and recount.anonymous:
            return RateModels(Independent(self.far.units), Independent(self.frr.units))
        reason = why_not(recount)
        if reason is not None:
            raise CannotFit(reason)
        return RateModels(self.far.latent_model(), self.frr.latent_model())

    @property
    def operating(self) -> tuple[FloatArray, FloatArray]:
        return np.array([self.far.units_erred]), np.array([self.frr.units_erred])

    @cached_property
    def counts(self) -> Decisions:
        return Decisions(*self.far.counted)

    @cached_property
    def effective_identities(self) -> float:
        return effective_number(self.counts.tally.genuine.comparisons)

    def _fields(self) -> dict[str, Any]:
        return counted_fields(self.threshold, self.far.tally.n_identities, self.variance)


@dataclass(frozen=True, eq=False, repr=False)
class LinkageMeasure(AtThreshold):
    """Precision or F1 at one threshold; `given_prior` is None for the sample's own share of genuine comparisons."""

    metric: Literal["precision", "f1"]
    given_prior: float | None = None
    rules: ClassVar[tuple[Rule, ...]] = (LATENT, Rule("logit-t", _logit_t), OWN_SHARE, BOTH_RATES)
    defaults: ClassVar[tuple[str, ...]] = ("own share", "logit-t", "both rates")
    rising: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.given_prior is not None:
            check_prior(self.given_prior)

    @property
    def prior(self) -> float:
        """The share of genuine comparisons that it is computed for; the sample's own where none was given."""
        return self.counts.prevalence if self.given_prior is None else float(self.given_prior)

    @property
    def label(self) -> str:
        return self.metric if self.given_prior is None else f"{self.metric}@prior={self.given_prior:g}"

    def _value(self, far: FloatArray, frr: FloatArray) -> FloatArray:
        return (precision_of if self.metric == "precision" else f1_of)(far, frr, self.prior)

    @cached_property
    def sums(self) -> DyadicSums:
        """The residuals of the logit."""
        return (precision_sums if self.metric == "precision" else f1_sums)(self.counts, self.given_prior)

    @property
    def logit_variance(self) -> float:
        """The dyadic variance of the logit of the estimate; NaN where the estimate is 0, 1 or not defined."""
        wrong = self.counts.false_matches + (self.counts.missed if self.metric == "f1" else 0.0)
        if self.counts.hits <= 0.0 or wrong <= 0.0:
            return math.nan
        return self.sums.corrected(self.effective_identities)

    @property
    def variance(self) -> float:
        """Variance of the estimate: that of its logit times (estimate·(1 − estimate))²; NaN where that is."""
        return self.logit_variance * (self.estimate * (1.0 - self.estimate)) ** 2

    @property
    def notes(self) -> tuple[Note, ...]:
        about_labels = labels_notes(self.far.recount)
        if self.given_prior is not None:
            return about_labels
        text = (
            f"{self.metric} at the sample's own share of genuine comparisons, {self.prior:.3g}, holds for a sample of "
            "this size: impostor pairs grow with the square of the number of identities. Give a prior to compare sets"
        )
        return (*about_labels, Note("own-prior", text))

    def _fields(self) -> dict[str, Any]:
        return {**super()._fields(), "prior": self.prior}

    def _must_be_defined(self) -> None:
        if math.isnan(self.estimate):
            raise DataError(f"nothing matches at threshold {self.threshold:g}, so that precision is not defined")


@dataclass(frozen=True, eq=False, repr=False)
class HalfTotalError(AtThreshold):
    """HTER = (FAR + FRR)/2 at one threshold, chosen on other people (a development set); see `ErrorRates.hter`."""

    metric: ClassVar[str] = "hter"
    rules: ClassVar[tuple[Rule, ...]] = (LATENT, Rule("log-t", _log_t), BOTH_RATES)
    defaults: ClassVar[tuple[str, ...]] = ("latent", "both rates")

    def _value(self, far: FloatArray, frr: FloatArray) -> FloatArray:
        return (far + frr) / 2.0

    @cached_property
    def sums(self) -> DyadicSums:
        return (self.far.unit.sums * 0.5).plus(self.frr.unit.sums * 0.5)


def _one_minus(method: str, recall: Recall, ask: Ask) -> Limits:
    frr = recall.rate.interval(method, ask.level, side=opposite(ask.side), **ask.options)
    return Limits(1.0 - frr.high, 1.0 - frr.low, frr.method, frr.notes, frr.details)


@dataclass(frozen=True, eq=False, repr=False)
class OfOneRate(Number):
    """A number made of one rate, with limits from those of the rate by the same method."""

    rate: Rate = field(repr=False)
    defaults: ClassVar[tuple[str, ...]] = ("default",)

    @property
    def threshold(self) -> float:
        return self.rate.threshold


@dataclass(frozen=True, eq=False, repr=False)
class Recall(OfOneRate):
    """The share of genuine comparisons that match: 1 − FRR, with FRR's intervals mirrored; see `ErrorRates.recall`."""

    metric: ClassVar[str] = "recall"
    rules: ClassVar[tuple[Rule, ...]] = through_rate(_one_minus)

    @property
    def estimate(self) -> float:
        return 1.0 - self.rate.estimate

    @property
    def variance(self) -> float:
        return self.rate.variance

    def _fields(self) -> dict[str, Any]:
        return {**counted_fields(self.threshold, self.rate.tally.n_identities, self.variance), "prior": None}


def _with_failures(method: str, number: GeneralisedRate, ask: Ask) -> Limits:
    """Limits from those of FMR (FNMR) by a method.

    GFRR: Wilson's formula with the variance of influences added up by person and Student's t; with few false
    non-matches, FNMR's own limits take the place of its term. GFAR: FMR's limits times (1−FTE)(1−FTA), widened by the
    uncertainty of both on the log scale (MOVER). GFRR at an estimated threshold: the wider of both, with the limits of
    FNMR at the FMR.
    """
    rate, people, point = number.rate, number._people, number.point
    few = bool(rate.errors) and rate.errors < FEW_ERRORS and rate.estimate < RARE
    sides: tuple[Side, Side] = ("two-sided", "two-sided") if ask.side == "two-sided" else ("lower", "upper")
    known, options = (method, ask.options) if point is None or method in point.methods else ("auto", {})
    lower, upper = ((point or rate).interval(known, ask.level, side=side, **options) for side in sides)
    own, name = (lower.low, upper.high), f"{upper.method}, MOVER"
    if number.metric == "gfar":
        limits = gfar_limits(rate.estimate, own, number._kept, number._square, people, ask.tail)
        return Limits(*limits, name)
    joined = gfrr_mover(number.estimate, rate.estimate, own, number._square, people, ask.tail)
    if few:
        return Limits(*joined, name)
    low, high = gfrr_limits(number.estimate, number.variance, people, ask.tail)
    if point is not None:
        return Limits(min(low, joined[0]), max(high, joined[1]), name)
    # no claim about GFRR may be shown that FNMR's own upper limit, with the failures as they are, contradicts
    least = max(own[1], gfrr_of(number.fte, number.fta, own[1]))
    return Limits(low, max(high, least), "wilson, influences by person")


@dataclass(frozen=True, eq=False, repr=False)
class GeneralisedRate(OfOneRate):
    """GFAR = (1−FTE)(1−FTA)·FMR or GFRR = 1 − (1−FTE)(1−FTA)(1−FNMR), for a single attempt.

    `point` is FNMR at an FMR where the threshold was estimated for that FMR: then its limits are those of FNMR.
    """

    metric: str
    failures: Failures = field(repr=False)
    point: Number | None = field(default=None, repr=False)
    rules: ClassVar[tuple[Rule, ...]] = through_rate(_with_failures)

    @property
    def fte(self) -> float:
        """The failure-to-enrol rate."""
        return self.failures.fte

    @property
    def fta(self) -> float:
        """The failure-to-acquire rate."""
        return self.failures.fta

    @property
    def _kept(self) -> float:
        return (1.0 - self.fte) * (1.0 - self.fta)

    @property
    def estimate(self) -> float:
        if self.metric == "gfrr":
            return gfrr_of(self.fte, self.fta, self.rate.estimate)
        return self._kept * self.rate.estimate

    @cached_property
    def _compared(self) -> tuple[IntArray, IntArray]:
        """(errors, comparisons) of each person in the table of failures."""
        genuine, labels = self.rate.tally.genuine, as_text(self.rate.tally.identities).tolist()
        place = {label: k for k, label in enumerate(as_text(self.failures.identities).tolist())}
        errors, compared = np.zeros((2, len(place)), dtype=np.int64)
        for i in np.flatnonzero(genuine.comparisons).tolist():
            if labels[i] not in place:
                who = f"identity {labels[i]} was compared and is not among the failures"
                raise DataError(f"{who}; list everybody who tried to enrol")
            errors[place[labels[i]]] = genuine.errors[self.rate.index, i]
            compared[place[labels[i]]] = genuine.comparisons[i]
        return errors, compared

    @cached_property
    def _square(self) -> float:
        """The variance of log((1−FTE)(1−FTA))."""
        return square_of_logarithm(self.failures)

    @property
    def _people(self) -> int:
        return self.failures.people if self.failures.by_person else self.rate.n_identities

    @cached_property
    def variance(self) -> float:
        """Variance of the estimate; what each person adds to the three rates is added up before it is squared."""
        kept = self._kept
        if self.metric == "gfar":
            return kept**2 * (max(self.rate.variance, 0.0) + self.rate.estimate**2 * self._square)
        if self.failures.by_person:
            return gfrr_variance(self.failures, *self._compared)
        q = self.rate.estimate
        return (kept * (1.0 - q)) ** 2 * self._square + kept**2 * max(self.rate.variance, 0.0)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know of the failures: who failed is not known, or people without enrolment count twice."""
        if not self.failures.by_person:
            return (NOT_BY_PERSON,)
        outside = ~self.failures.enrolled
        attempts, compared = int(self.failures.tries[outside].sum()), int(np.count_nonzero(self._compared[1][outside]))
        if not attempts and not compared:
            return ()
        text = (
            f"people who are not enrolled count in FTE, and {count_text(attempts)} attempts of theirs in FTA as well; "
            f"{count_text(compared)} of them were compared. Leave out what was tried without enrolment"
        )
        return (Note("not-enrolled", text),)

    def _fields(self) -> dict[str, Any]:
        people = self.failures.people or self.rate.n_identities
        return {**counted_fields(self.threshold, people, self.variance), "fte": self.fte, "fta": self.fta}


@dataclass(frozen=True, eq=False)
class GeneralisedRates(Shown):
    """GFAR and GFRR at one threshold."""

    gfar: GeneralisedRate
    gfrr: GeneralisedRate

    def to_records(self) -> list[dict[str, Any]]:
        return [*self.gfar.to_records(), *self.gfrr.to_records()]


@dataclass(frozen=True, eq=False, repr=False)
class ErrorRates(Judged, Shown):
    """FAR and FRR at one threshold."""

    home: ClassVar[Home] = "rates"
    threshold: float
    far: Rate
    frr: Rate
    n_identities: int
    distance: bool
    warnings: tuple[Note, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        rates = f"FAR {percent(self.far.estimate)}, FRR {percent(self.frr.estimate)}"
        return f"ErrorRates({rates} at threshold {threshold_text(self.threshold)}; {self.n_identities:,} identities)"

    @property
    def fmr(self) -> Rate:
        """The same as `far`, in the words of ISO/IEC 19795-1: the false match rate."""
        return self.far

    @property
    def fnmr(self) -> Rate:
        """The same as `frr`, in the words of ISO/IEC 19795-1: the false non-match rate."""
        return self.frr

    def flat(self, level: float = 0.95, method: str = "auto") -> dict[str, float]:
        """The rates and their limits by name, for loggers: ``far``, ``far_low``, ``far_high``, ``frr``, ….

        Parameters
        ----------
        level, method
            As for `Number.interval`.
        """
        values = {"threshold": self.threshold}
        for rate in (self.far, self.frr):
            if rate.comparisons:
                low, high = rate.interval(method, level)
                values |= {rate.metric: rate.estimate, f"{rate.metric}_low": low, f"{rate.metric}_high": high}
        return values

    def precision(self, prior: float | None = None) -> LinkageMeasure:
        """The share of matches that are genuine, at a prior of genuine comparisons.

        Precision = π(1−FRR)/(π(1−FRR) + (1−π)FAR). Without `prior`, π is the share of genuine comparisons in the
        sample, and the result belongs to a sample of this size.

        Parameters
        ----------
        prior
            The share of genuine comparisons, between 0 and 1; by default that of the sample.
        """
        return LinkageMeasure(self.far, self.frr, "precision", prior)

    def recall(self) -> Recall:
        """The share of genuine comparisons that match: 1 − FRR."""
        refuse_partial(self.frr.recount, "recall")
        return Recall(self.frr)

    def f1(self, prior: float | None = None) -> LinkageMeasure:
        """The harmonic mean of precision and recall, at a prior of genuine comparisons; see `precision`.

        Parameters
        ----------
        prior
            As for `precision`.
        """
        refuse_partial(self.frr.recount, "F1")
        return LinkageMeasure(self.far, self.frr, "f1", prior)

    def hter(self) -> HalfTotalError:
        """(FAR + FRR)/2; choose the threshold on other people: ``evaluate(data, threshold_from=dev)``."""
        return HalfTotalError(self.far, self.frr)

    def generalised(self, failures: Failures) -> GeneralisedRates:
        """GFAR and GFRR: the rates of these comparisons together with failures to enrol and to acquire.

        For a single attempt GFRR = 1 − (1−FTE)(1−FTA)(1−FNMR) and GFAR = (1−FTE)(1−FTA)·FMR, with FNMR and FMR what
        this library calls FRR and FAR.

        Parameters
        ----------
        failures
            Who failed to enrol, and which attempts gave no sample.
        """
        if self.far.weighting != "comparisons":
            pooled = argument("weighting", "comparisons")
            raise UsageError(f"GFAR and GFRR are of pooled comparisons; evaluate with {pooled}")
        gfar, gfrr = GeneralisedRate(self.far, "gfar", failures), GeneralisedRate(self.frr, "gfrr", failures)
        for note in gfrr.notes:
            if note.code == "not-enrolled":
                warnings.warn(note, MatchboundWarning, stacklevel=2)
        return GeneralisedRates(gfar, gfrr)

    def to_records(self) -> list[dict[str, Any]]:
        return [*self.far.to_records(), *self.frr.to_records()]


@dataclass(frozen=True, eq=False, repr=False)
class ErrorRatesSeries(Shown, Sequence[ErrorRates]):
    """FAR and FRR at several thresholds, in the order in which they were asked for."""

    rates: tuple[ErrorRates, ...]

    def __repr__(self) -> str:
        ends = ", ".join(threshold_text(rates.threshold) for rates in self.rates[:3])
        return f"ErrorRatesSeries({len(self.rates)} thresholds: {ends}{', …' if len(self.rates) > 3 else ''})"

    def to_records(self) -> list[dict[str, Any]]:
        return [record for rates in self.rates for record in rates.to_records()]

    @overload
    def __getitem__(self, index: int) -> ErrorRates: ...
    @overload
    def __getitem__(self, index: slice) -> ErrorRatesSeries: ...
    def __getitem__(self, index: int | slice) -> ErrorRates | ErrorRatesSeries:
        return ErrorRatesSeries(self.rates[index]) if isinstance(index, slice) else self.rates[index]

    def __len__(self) -> int:
        return len(self.rates)

    @property
    def thresholds(self) -> FloatArray:
        """The thresholds, shape (K,)."""
        return np.array([rates.threshold for rates in self.rates])

    @property
    def warnings(self) -> tuple[Note, ...]:
        """The warnings of all thresholds, each once."""
        return tuple(dict.fromkeys(text for rates in self.rates for text in rates.warnings))


def error_rates(
    tally: Tally, findings: Sequence[Note] = (), recount: Recount | None = None, weighting: str = "comparisons"
) -> tuple[ErrorRates, ...]:
    """Results at each threshold of a tally, with what must be said about them."""
    results = []
    people = [] if recount is not None and recount.anonymous else _of_identities(tally)
    kind = IdentityRate if named(weighting, WEIGHTINGS, "weighting") == "identities" else Rate
    for k, threshold in enumerate(tally.thresholds.tolist()):
        far, frr = kind("far", threshold, tally, k, recount), kind("frr", threshold, tally, k, recount)
        known = {note.code for note in findings}
        about_both = [note for note in _of_both(far, frr, tally.distance) if note.code not in known]
        notes = (*findings, *people, *about_both, *_of_rate(far), *_of_rate(frr))
        results.append(ErrorRates(threshold, far, frr, tally.n_identities, tally.distance, notes))
    return tuple(results)


def few_identities(n_identities: int) -> list[Note]:
    if n_identities >= FEW_IDENTITIES:
        return []
    text = (
        f"only {n_identities} identities: too few to estimate the variation between identities, on which intervals "
        "rest; the nominal coverage may not hold"
    )
    return [Note("few-identities", text)]


def uneven_identities(metric: str, comparisons: IntArray, once: float | None = None) -> list[Note]:
    """What to say where few identities make most of the comparisons of a rate; `once` is the rate by identities."""
    made = comparisons[comparisons > 0].astype(np.float64)
    if made.size < FEW_IDENTITIES // 2:
        return []
    total = float(made.sum()) / (2.0 if metric == "far" else 1.0)
    share, effective = float(made.max()) / total, float(made.sum()) ** 2 / float(made @ made)
    if share <= LARGE_SHARE and effective >= made.size / 10.0:
        return []
    name, kind = metric.upper(), "impostor" if metric == "far" else "genuine"
    text = (
        f"one identity takes part in {100.0 * share:.0f}% of the {kind} comparisons, and the {made.size:,} identities "
        f"weigh as much as {effective:.1f} equal ones: {name} is mostly that of a few"
    )
    text += "" if once is None else f". With every identity counted once it is {percent(once)}"
    return [Note("large-share", f"{text} ({argument('weighting', 'identities')})")]


def _of_identities(tally: Tally) -> list[Note]:
    notes = few_identities(tally.n_identities)
    alone = 0 if tally.instances is None else int(np.count_nonzero(tally.instances == 1))
    if alone:
        share = f"{count_text(alone)} of {count_text(tally.n_identities)}"
        notes.append(Note("one-instance", f"{share} identities have one instance: they count for FAR and not for FRR"))
    return notes


def _of_both(far: Rate, frr: Rate, distance: bool) -> list[Note]:
    """Whether the scores point the other way, or the threshold is one for other scores."""
    if not (far.comparisons and frr.comparisons):
        return []
    none = far.errors == 0 and frr.errors == frr.comparisons
    if none or (far.errors == far.comparisons and frr.errors == 0):
        matches = f"{'no' if none else 'every'} comparison matches at threshold {threshold_text(far.threshold)}"
        text = (
            f"{matches}, where a match is a score of {'at most' if distance else 'at least'} the threshold: is the "
            f"threshold meant for another kind of score? (see {argument('similarity')} and {argument('distance')})"
        )
        return [Note("other-scores", text)]
    spread = 0.5 * math.sqrt(1.0 / far.comparisons + 1.0 / frr.comparisons)
    if far.estimate - (1.0 - frr.estimate) > SURE * spread:
        return [question(distance)]
    if far.estimate > 0.5 and frr.estimate < 0.5:
        text = f"{percent(far.estimate)} of the impostor comparisons match at threshold {threshold_text(far.threshold)}"
        return [Note("other-scale", f"{text}: is the threshold meant for scores on another scale?")]
    return []


def largest_share(rate: Rate) -> float:
    """The share of the comparisons of a rate in which the identity with the most of them takes part."""
    return float(rate.tally.part(rate.metric).comparisons.max()) / rate.comparisons if rate.comparisons else 0.0


def _of_rate(rate: Rate) -> list[Note]:
    name = rate.metric.upper()
    if rate.comparisons == 0:
        return [Note("no-comparisons", f"no {rate.kind.comparisons} comparisons: {name} is not defined")]
    notes: list[Note] = []
    if rate.weighting == "comparisons":
        once = unit_rate(rate.tally.genuine, rate.index).estimate if rate.metric == "frr" else None
        notes += uneven_identities(rate.metric, rate.tally.part(rate.metric).comparisons, once)
    if rate.errors == 0:
        text = f"no {rate.kind.error} among {count_text(rate.comparisons)} comparisons"
        notes.append(Note("no-errors", f"{text}: {name} is not zero, it is below the upper limit"))
    elif rate.errors == rate.comparisons:
        text = f"every one of {count_text(rate.comparisons)} comparisons erred"
        notes.append(Note("all-errors", f"{text}: {name} is at least the lower limit; nothing more is known"))
    elif rate.variance < 0.0:
        text = (
            f"the variance estimate of {name} is negative (too few identities share errors): "
            f"the effective sample size is the least that it can be, {rate.floor}; the design effect and Wilson's "
            "interval rest on it, the default interval does not"
        )
        notes.append(Note("negative-variance", text))
    return notes
