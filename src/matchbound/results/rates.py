"""Error rates at fixed thresholds: estimates, variances, and intervals as methods."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.recount import Recount
from matchbound.counts.tally import AllPairs, PairTable, Tally
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.results.bootstraps import Bootstrap, overstated, scheme_of
from matchbound.results.interval import check_whole, named
from matchbound.results.number import (
    DRAWING,
    SCHEME,
    Ask,
    CannotFit,
    Limits,
    Number,
    Rule,
    bootstrap_rules,
    labels_notes,
)
from matchbound.show.numbers import count_text, percent, threshold_text
from matchbound.stats import fixed_sizes, resampling, variance
from matchbound.stats.intervals import agresti_coull, effective_n, fallback_wilson, jeffreys, wald, wilson
from matchbound.stats.resampling import BOOTSTRAPS

if TYPE_CHECKING:
    from matchbound.results.erring import Erring
    from matchbound.show.tables import Table
    from matchbound.stats.latent import LatentModel, LatentSettings

Metric = Literal["far", "frr"]
VARIANCES = ("plug-in", "jackknife", "bias-corrected", "fixed-sizes")


def _latent(rate: Rate, ask: Ask) -> Limits:
    from matchbound.results import latent

    reason = latent.why_not(rate.recount)
    if reason is not None:
        raise CannotFit(reason)
    model = rate.latent_model(ask.options.get("settings"))
    return latent.limits(model, rate.units_erred, ask.level, ask.side)


def _fallback_wilson(rate: Rate, ask: Ask) -> Limits:
    """Wilson's formula with bias-corrected variance and Student's t, for data without identities."""
    identities = rate.effective_identities
    factor = variance.far_bias_factor(identities) if rate.metric == "far" else variance.frr_bias_factor(identities)
    spread = rate.variance * factor if np.isfinite(factor) else 0.0
    low, high = fallback_wilson(rate.estimate, spread, rate.floor, rate.units, ask.tail, identities - 1.0)
    return Limits(low, high, "wilson", (FALLBACK,))


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
RATE_RULES = (
    Rule("latent", _latent, frozenset({"settings"})),
    Rule("wilson", _effective(wilson), OF_VARIANCE),
    Rule("wald", _wald, OF_VARIANCE, warns=True),
    Rule("agresti-coull", _effective(agresti_coull), OF_VARIANCE),
    Rule("jeffreys", _effective(jeffreys), OF_VARIANCE),
    Rule("naive-wilson", _naive_wilson),
    *bootstrap_rules(BOOTSTRAPS),
    Rule("fallback-wilson", _fallback_wilson, hidden=True),
)


def through_rate(limits: Callable[[str, Any, Ask], Limits]) -> tuple[Rule, ...]:
    """The rules of a number whose limits are made from those of one rate by the same method."""
    named_rules = [
        Rule(rule.name, partial(limits, rule.name), rule.options | SCHEME) for rule in RATE_RULES if not rule.hidden
    ]
    return (*named_rules, Rule("default", partial(limits, "auto"), OF_VARIANCE | {"settings"}, hidden=True))


@dataclass(frozen=True, eq=False, repr=False)
class Rate(Number):
    """FAR or FRR at one threshold.

    metric
        ``"far"``: impostor comparisons that matched; ``"frr"``: genuine comparisons that did not.
    threshold
        The decision threshold, in the units of the scores.
    """

    metric: Metric
    threshold: float
    tally: Tally
    index: int
    recount: Recount | None = None
    rules: ClassVar[tuple[Rule, ...]] = RATE_RULES
    defaults: ClassVar[tuple[str, ...]] = ("latent", "fallback-wilson")

    def __repr__(self) -> str:
        return f"Rate({self.metric}={self.estimate:.6g}, {self.errors}/{self.comparisons} at {self.threshold:g})"

    def __str__(self) -> str:
        counts = f"{count_text(self.errors)} of {count_text(self.comparisons)}"
        return (
            f"{self.metric.upper()} {percent(self.estimate)} ({counts} at threshold {threshold_text(self.threshold)})"
        )

    def _tables(self) -> list[Table]:
        from matchbound.show.records import number_table

        return [number_table(self.to_records())]

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know about the rate: whether labels cover a part of the scored pairs."""
        return labels_notes(self.recount)

    @cached_property
    def errors(self) -> int:
        """How many comparisons erred."""
        if self.metric == "far":
            return int(self.tally.impostor.errors[self.index].sum()) // 2
        return int(self.tally.genuine.errors[self.index].sum())

    @cached_property
    def comparisons(self) -> int:
        """How many comparisons there were: N for FAR, T for FRR."""
        if self.metric == "far":
            return int(self.tally.impostor.comparisons.sum()) // 2
        return int(self.tally.genuine.comparisons.sum())

    @property
    def weighting(self) -> str:
        """``"comparisons"``: every comparison counts once."""
        return "comparisons"

    @property
    def counted(self) -> Tally:
        """The tally whose units the rate is a mean of."""
        return self.tally

    @property
    def units(self) -> int:
        """What the rate is a mean of: the comparisons."""
        return self.comparisons

    @property
    def units_erred(self) -> float:
        """Units that erred: the errors."""
        return float(self.errors)

    @property
    def one_error(self) -> float:
        """What one more error moves the rate by, on average over the units."""
        return 1.0 / self.comparisons

    @property
    def estimate(self) -> float:
        """errors / comparisons; NaN without comparisons."""
        return self.errors / self.comparisons if self.comparisons else float("nan")

    @cached_property
    def n_identities(self) -> int:
        """Identities that take part in these comparisons."""
        part = self.tally.impostor if self.metric == "far" else self.tally.genuine
        return int(np.count_nonzero(part.comparisons))

    @cached_property
    def variance(self) -> float:
        """The paper's plug-in variance. It can be negative in small samples; NaN without comparisons."""
        return self.variance_by("plug-in") if self.comparisons else float("nan")

    def variance_by(self, kind: str = "plug-in") -> float:
        """Variance of the estimate by another estimator.

        Parameters
        ----------
        kind
            ``"plug-in"``; ``"jackknife"`` (delete one identity); ``"bias-corrected"`` (the plug-in is too low by a
            known factor); ``"fixed-sizes"`` (given the number of instances of each identity).
        """
        self._must_be_defined()
        kind = named(kind, VARIANCES, "kind")
        far = self.metric == "far"
        if kind == "plug-in":
            return (
                variance.far_plug_in(self.tally.impostor, self.index)
                if far
                else variance.frr_plug_in(self.tally.genuine, self.index)
            )
        if kind == "jackknife":
            value = (
                variance.far_jackknife(self.tally.impostor, self.index)
                if far
                else variance.frr_jackknife(self.tally.genuine, self.index)
            )
            if np.isnan(value):
                raise DataError(
                    f"{self.metric}: one identity takes part in every comparison; nothing is left without it"
                )
            return value
        if kind == "bias-corrected":
            factor = variance.far_bias_factor if far else variance.frr_bias_factor
            corrected = factor(self.effective_identities)
            if not np.isfinite(corrected):
                raise DataError(
                    f"{self.metric}: the bias correction needs more than {3 if far else 1} effective identities; "
                    f"there are {self.effective_identities:.3g}"
                )
            return corrected * self.variance
        if far:
            value = fixed_sizes.far_fixed_sizes(self._with_pairs.impostor, self.index, self._sizes())
        else:
            value = fixed_sizes.frr_fixed_sizes(self.tally.genuine, self.index)
        if np.isnan(value):
            least = fixed_sizes.LEAST_FAR if far else fixed_sizes.LEAST_FRR
            raise DataError(f"{self.metric}: a variance given the sizes needs at least {least} identities")
        return value

    @cached_property
    def effective_identities(self) -> float:
        """How many equally large identities would weigh as much: (ΣM)²/ΣM² for FAR, T²/Σg² for FRR.

        Where instances are unknown, FAR's identities are weighed by their comparisons.
        """
        if self.metric == "frr":
            return variance.effective_identities(self.tally.genuine.comparisons)
        sizes = self.tally.instances
        if sizes is None:
            return variance.effective_identities(self.tally.impostor.comparisons)
        return variance.effective_identities(np.where(self.tally.impostor.comparisons > 0, sizes, 0))

    @property
    def floor(self) -> int:
        """Least effective number of trials (the paper, below eq. 5): ⌊G/2⌋ pairs for FAR, identities for FRR."""
        return self.n_identities // 2 if self.metric == "far" else self.n_identities

    @property
    def effective_n(self) -> float:
        """N*: how many independent comparisons would be as informative; NaN without comparisons."""
        if not self.comparisons:
            return float("nan")
        return effective_n(self.estimate, self.variance, self.floor)

    @property
    def design_effect(self) -> float:
        """The design effect: comparisons divided by the effective sample size, `effective_n`."""
        return self.comparisons / self.effective_n if self.comparisons else float("nan")

    def erring(self, most: int = 10_000) -> Erring:
        """The comparisons that erred, worst first, with identities and instances: look here for wrong labels.

        Parameters
        ----------
        most
            How many, the worst first.

        Returns
        -------
        Erring
            With arrays of identities, instances and scores; ``to_frame()`` makes a table of it.

        Examples
        --------
        >>> import matchbound as mb
        >>> worst = mb.evaluate(mb.demo_data(), threshold=0.6).far.erring(most=3)
        >>> len(worst), worst.errors
        (3, 189)
        """
        from matchbound.counting.erring import erring_rows
        from matchbound.results.erring import erring_of

        check_whole(most, "most")
        if self.recount is None:
            raise DataError("the comparisons themselves are not available, only their counts")
        found = erring_rows(self.recount, self.threshold, self.metric, self.errors, int(most))
        return erring_of(self.recount.source, self.metric, self.threshold, self.errors, found)  # type: ignore[arg-type]

    def latent_model(self, settings: LatentSettings | None = None) -> LatentModel:
        """The latent model fitted to these comparisons, for its correlations and further limits.

        Parameters
        ----------
        settings
            Other numbers than the default ones; see docs/explanation/latent.md.
        """
        from matchbound.results import latent

        self._must_be_defined()
        if self.recount is None:
            raise DataError("the latent model counts errors at other thresholds too, and the data are not available")
        return latent.fit(self.metric, self.tally, self.errors, self.recount, settings)

    def _fields(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "errors": self.errors,
            "comparisons": self.comparisons,
            "identities": self.tally.n_identities,
            "variance": self.variance,
            "effective_n": self.effective_n,
            "design_effect": self.design_effect,
            **({} if self.weighting == "comparisons" else {"weighting": self.weighting}),
        }

    def _defined(self) -> bool:
        return self.comparisons > 0

    def _chosen(self, method: str, options: Mapping[str, Any]) -> str:
        return "wilson" if method == "auto" and options.get("variance") is not None else method

    def _no_width(self) -> str:
        if 0 < self.errors < self.comparisons:
            return "its variance is not positive"
        return "no comparison erred" if self.errors == 0 else "every comparison erred"

    def _drawn(self, method: str, n_resamples: int, seed: int, workers: int, options: dict[str, Any]) -> Bootstrap:
        scheme = scheme_of(method, n_resamples, options, self._sizes, self.tally.n_identities)
        if self.metric == "frr":
            drawn = resampling.frr_replicates(
                self.tally.genuine, self.index, scheme, n_resamples, seed, workers=workers
            )
        else:
            by_pair = method in ("vertex", "double-or-nothing")
            tally = self._with_pairs if by_pair else self.tally
            note = overstated(tally.impostor, self.index, method) if by_pair else None
            if note is not None:
                warnings.warn(note, MatchboundWarning, stacklevel=4)
            drawn = resampling.far_replicates(
                tally.impostor,
                self.index,
                scheme,
                n_resamples,
                seed,
                self_comparisons=self._self_comparisons(tally) if method == "vertex" else None,
                workers=workers,
            )
        return Bootstrap(drawn, self.estimate, method, seed, scheme.tau, self.floor)

    def _spread(self, ask: Ask) -> float:
        """The variance that a closed form is asked to use."""
        options = dict(ask.options)
        kind = named(options.pop("variance", None) or "plug-in", (*VARIANCES, *BOOTSTRAPS), "variance")
        if kind not in BOOTSTRAPS:
            foreign = sorted(set(options) - DRAWING)
            if foreign:
                raise UsageError(f"unknown option {foreign[0]!r}")
            return self.variance if kind == "plug-in" else self.variance_by(kind)
        return self.bootstrap(kind, **options).variance

    def _must_be_defined(self) -> None:
        if self.comparisons == 0:
            kind = "impostor comparisons (of two different identities)"
            if self.metric == "frr":
                kind = "genuine comparisons (of two instances of one identity)"
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
        """M_i; from genuine comparisons where instances are not named."""
        if self.tally.instances is not None:
            return self.tally.instances
        sizes = (1.0 + np.sqrt(1.0 + 8.0 * self.tally.genuine.comparisons)) / 2.0
        return np.asarray(sizes.round(), dtype=np.int64)

    def _self_comparisons(self, tally: Tally) -> FloatArray:
        """Comparisons that two copies of an identity stand for: M_i² in complete data, fewer where fewer were made."""
        compared = tally.impostor.compared
        if isinstance(compared, AllPairs):
            return compared.instances.astype(np.float64) ** 2
        assert isinstance(compared, PairTable)
        sizes = self._sizes().astype(np.float64)
        complete = sizes[compared.first] * sizes[compared.second]
        expected_pairs = self.n_identities * (self.n_identities - 1) // 2
        if compared.first.size == expected_pairs and np.array_equal(complete, compared.count):
            return sizes**2
        return np.minimum(sizes**2, resampling.configuration(tally.impostor.comparisons.astype(np.float64)))
