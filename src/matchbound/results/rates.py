"""Error rates at fixed thresholds: estimates, variances, and intervals as methods."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from matchbound.arraytypes import IntArray
from matchbound.counting.recount import Recount
from matchbound.counts.tally import ImpostorTally, PairTable, Tally
from matchbound.errors import DataError, MatchboundWarning, UsageError, argument
from matchbound.notes import Note
from matchbound.results import latent
from matchbound.results.interval import check_whole, named
from matchbound.results.number import (
    DRAWING,
    SCHEME,
    Ask,
    Bootstrap,
    CannotFit,
    Limits,
    Number,
    Rule,
    bootstrap_rules,
    counted_fields,
    labels_notes,
    scheme_of,
)
from matchbound.show.numbers import count_text, percent, threshold_text
from matchbound.stats import fixed_sizes, resampling
from matchbound.stats.dyadic import bias_factor
from matchbound.stats.intervals import agresti_coull, effective_n, fallback_wilson, jeffreys, wald, wilson
from matchbound.stats.resampling import BOOTSTRAPS
from matchbound.stats.variance import UnitRate, jackknife, pooled_rate, residual_sums, unit_rate, unit_tally

if TYPE_CHECKING:
    from matchbound.results.description import Erring
    from matchbound.stats.latent.model import LatentModel, LatentSettings

Metric = Literal["far", "frr"]
VARIANCES = ("plug-in", "jackknife", "bias-corrected", "fixed-sizes")
WEIGHTINGS = ("comparisons", "identities")
# How many times the variance a bootstrap must give before that is said.
OVERSTATED = 1.5


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
    names = ("rho_identity", "rho_pair", "erring_pairs", "effective_identities")
    return Limits(found.low, found.high, notes=found.notes, details={name: getattr(found, name) for name in names})


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
    def one_error(self) -> float:
        """What one more error moves the rate by, on average over the units."""
        return self.unit.alone / self.units

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
            return factor * self.variance if self.weighting == "comparisons" else self.unit.without_bias(self.metric)
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
        from matchbound.results.description import erring_of

        check_whole(most, "most")
        if self.recount is None:
            raise DataError("the comparisons themselves are not available, only their counts")
        found = self.recount.erring(self.threshold, self.metric, self.errors, int(most))
        return erring_of(self.recount.source, self.metric, self.threshold, self.errors, found)

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

    def _drawn(self, method: str, n_resamples: int, seed: int, workers: int, options: dict[str, Any]) -> Bootstrap:
        scheme = scheme_of(method, n_resamples, options, self._sizes())
        by_pair = self.metric == "far" and method in ("vertex", "double-or-nothing")
        tally = self._with_pairs if by_pair else self.tally
        note = overstated(tally.impostor, self.index, method) if by_pair else None
        if note is not None:
            warnings.warn(note, MatchboundWarning, stacklevel=4)
        part = tally.part(self.metric)
        drawn = resampling.rate_replicates(part, self.index, scheme, n_resamples, seed, self._sizes(), workers)
        return Bootstrap(drawn, self.estimate, method, seed, scheme.tau, self.floor)

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
