"""Points of a curve that people report: FRR at a FAR, FAR at an FRR, EER, AUC; intervals are their methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.counts.curve import CurveTally
from matchbound.errors import UsageError, check_rate, named
from matchbound.notes import Note
from matchbound.results.latent import CurveModels, why_not
from matchbound.results.number import (
    Ask,
    Bootstrap,
    CannotFit,
    Draws,
    Interval,
    Limits,
    Number,
    Rule,
    bootstrap_rules,
    counted_fields,
    labels_notes,
)
from matchbound.stats.curve import influence as curves_influence
from matchbound.stats.curve import union as curves_union
from matchbound.stats.curve.bootstrap import CURVE_BOOTSTRAPS, CurveReplicates, curve_replicates, step_reader
from matchbound.stats.curve.influence import EffectiveRate, wilson_t
from matchbound.stats.curve.rates import area_terms
from matchbound.stats.curve.smooth import SMOOTHS, Smooth, smooth_rates, smooth_reader
from matchbound.stats.resampling import Scheme, instance_counts

if TYPE_CHECKING:
    from matchbound.stats.budget import RateModels
    from matchbound.stats.latent.model import LatentSettings

# FARs at which the replicates of a partial AUC are read (midpoint rule).
AREA_STEPS = 400
FEW_ERRORS = 10
NONE = np.empty(0)

# What to say to somebody who asks a curve for an interval of a rate at a fixed threshold.
HINTS = dict.fromkeys(
    ("wilson", "naive-wilson", "wald"),
    "for a rate read from a curve, method='union' joins Wilson's intervals at both ends of the threshold's range",
)


def _latent(point: CurveStatistic, ask: Ask) -> Limits:
    """The latent models of FAR and FRR together."""
    reason = why_not(point.models.recount)
    if reason is not None:
        raise CannotFit(reason)
    models = point.latent_models(ask.options.get("settings"))
    return Limits(*point.latent_limits(models, models.deviates(ask.level, ask.side)))


def _influence(point: CurveStatistic, ask: Ask) -> Limits:
    """Wilson's formula with the variance of the influence function and Student's t."""
    return Limits(*wilson_t(point._rate, ask.tail))


def _union(point: OperatingPoint, ask: Ask) -> Limits:
    """The paper's rule: Wilson's intervals at both ends of the threshold's range."""
    name = f"level_{point.given}"
    foreign = set(ask.options) & {"level_far", "level_frr"} - {name}
    if foreign:
        raise UsageError(f"unknown option {foreign.pop()!r} for method 'union'; it takes {name} and base")
    other = ask.options.get(name, curves_union.LEVEL_FAR)
    other = check_rate(other, name, "0.9", zero=True)
    base = named(ask.options.get("base", "wilson"), ("wilson", "wald"), "base")
    low, high = curves_union.union_limits(point.curve, point.target, ask.tail, (1.0 - other) / 2.0, point.given, base)
    return Limits(low, high, "union" if base == "wilson" else "union (wald)")


LATENT = Rule("latent", _latent, frozenset({"settings"}), warns=True)
INFLUENCE = Rule("influence", _influence, warns=True)
UNION = Rule("union", _union, frozenset({"level_far", "level_frr", "base"}))
CURVE_RULES = bootstrap_rules(CURVE_BOOTSTRAPS)


@dataclass(frozen=True, eq=False, repr=False)
class CurveStatistic(Number):
    """A statistic of a curve; `index` is the point that it belongs to, `models` has the latent models of both rates."""

    models: CurveModels = field(repr=False)
    estimate: float
    index: int
    rules: ClassVar[tuple[Rule, ...]] = (INFLUENCE, *CURVE_RULES)
    defaults: ClassVar[tuple[str, ...]] = ("influence",)

    @property
    def curve(self) -> CurveTally:
        return self.models.curve

    @property
    def threshold(self) -> float:
        """The threshold that it belongs to, in the units of the scores."""
        return float(self.curve.thresholds[self.index])

    @property
    def far(self) -> float:
        return float(self.curve.false_matches[self.index] / self.curve.n_impostor)

    @property
    def frr(self) -> float:
        return float(self.curve.false_nonmatches[self.index] / self.curve.n_genuine)

    @cached_property
    def _rate(self) -> EffectiveRate:
        raise NotImplementedError

    @property
    def variance(self) -> float:
        """Variance of the estimate by its influence function."""
        return self._rate.variance

    @property
    def effective_n(self) -> float:
        """How many independent trials would be as informative."""
        return self._rate.effective_n

    @property
    def counts(self) -> tuple[int | None, int | None]:
        """Errors and comparisons of the rate that the number is; None for EER and areas."""
        return None, None

    @property
    def weighting(self) -> str:
        """What counts once: ``"comparisons"`` or ``"identities"``."""
        return self.curve.weighting

    @property
    def notes(self) -> tuple[Note, ...]:
        return labels_notes(self.models.recount)

    def _fields(self) -> dict[str, Any]:
        place = {"target": getattr(self, "target", None)}
        threshold = None if self.metric == "auc" else self.threshold
        counted = (self.curve.n_identities, self.variance, self.counts, self.effective_n, self.weighting)
        return {**place, **counted_fields(threshold, *counted)}

    def record(self, interval: Interval | None) -> dict[str, Any]:
        """The number with the limits of an interval; beside a smoothed interval stands the smoothed estimate."""
        record = super().record(interval)
        if interval is None or "smooth" not in interval.details:
            return record
        return {**record, **interval.details, "empirical_estimate": self.estimate}

    def latent_models(self, settings: LatentSettings | None = None) -> RateModels:
        """The latent models of both rates, with the correlation of their estimates here."""
        from matchbound.stats.budget import Independent, estimate_correlation

        models = self.models.at(self.index, settings)
        assert not isinstance(models.far, Independent)
        return replace(models, correlation=estimate_correlation(self.curve, models.far, self.far, self.frr))

    def latent_limits(self, models: RateModels, deviates: tuple[float, float]) -> tuple[float, float]:
        """Limits from the models of both rates, at deviates of FAR and FRR."""
        raise NotImplementedError

    def _drawn(self, draws: Draws) -> Bootstrap:
        smooth = draws.options.get("smooth")
        scheme, drawn = replicates(self.curve, draws, *self._targets())
        name = draws.method if smooth is None else f"{draws.method} ({smooth})"
        estimate = self.estimate if smooth is None else self.smoothed(smooth)
        return Bootstrap(self._pick(drawn), estimate, name, draws.seed, scheme.tau)

    def smoothed(self, model: Smooth) -> float:
        """The same statistic read from a smoothed curve: ``"binormal"``, ``"log-normal"``, ``"kernel"``."""
        rates = smooth_rates(self.curve.with_rows(), named(model, SMOOTHS, "smooth"))  # type: ignore[arg-type]
        return float(self._pick(rates.read(*self._targets()))[0])

    def _targets(self) -> tuple[FloatArray, FloatArray]:
        """FARs and FRRs at which replicates are read."""
        return NONE, NONE

    def _pick(self, drawn: CurveReplicates) -> FloatArray:
        """The statistic among what was read from replicates."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class OperatingPoint(CurveStatistic):
    """FRR at the threshold of a target FAR, or FAR at that of a target FRR; `given` is the rate of the target."""

    target: float
    given: Literal["far", "frr"]
    rules: ClassVar[tuple[Rule, ...]] = (LATENT, INFLUENCE, UNION, *CURVE_RULES)
    defaults: ClassVar[tuple[str, ...]] = ("latent", "influence")
    hints: ClassVar[Mapping[str, str]] = HINTS

    @property
    def metric(self) -> str:
        return "frr@far" if self.given == "far" else "far@frr"

    @property
    def label(self) -> str:
        return f"{self.metric}={self.target:g}"

    @property
    def counts(self) -> tuple[int | None, int | None]:
        return self._counted(self.metric[:3])

    def _counted(self, metric: str) -> tuple[int, int]:
        part = self.curve.counted.part(metric)
        return int(part.errors[self.index]), part.total

    @cached_property
    def _rate(self) -> EffectiveRate:
        return curves_influence.point_rate(self.curve, self.index, self.metric, self.estimate)

    @property
    def notes(self) -> tuple[Note, ...]:
        (errors, count), kind = self._counted(self.given), "matches" if self.given == "far" else "non-matches"
        if errors >= FEW_ERRORS:
            return super().notes
        text = (
            f"the threshold for {self.given.upper()} = {self.target:g} rests on {errors} false {kind} among {count} "
            f"comparisons; with fewer than {FEW_ERRORS} its uncertainty is poorly estimated"
        )
        return (*super().notes, Note("few-errors", text))

    def latent_limits(self, models: RateModels, deviates: tuple[float, float]) -> tuple[float, float]:
        from matchbound.stats.budget import point_limits

        low, high = point_limits(self.curve, [models], np.array([self.target]), deviates, self.given)
        return float(low[0]), float(high[0])

    def _targets(self) -> tuple[FloatArray, FloatArray]:
        wanted = np.array([self.target])
        return (wanted, NONE) if self.given == "far" else (NONE, wanted)

    def _pick(self, drawn: CurveReplicates) -> FloatArray:
        return (drawn.frr if self.given == "far" else drawn.far)[:, 0]


def latent_limits(points: Sequence[OperatingPoint], level: float) -> tuple[FloatArray, FloatArray]:
    """The two-sided latent limits of FRR at the FARs of some points of one curve, shape (P,) each, solved together."""
    from matchbound.stats.budget import point_limits

    low, high = np.empty(len(points)), np.empty(len(points))
    models = [point.latent_models() for point in points]
    fits = [(id(pair.far), id(pair.frr)) for pair in models]
    for fit in dict.fromkeys(fits):
        chosen = [k for k, own in enumerate(fits) if own == fit]
        targets, same = np.array([points[k].target for k in chosen]), [models[k] for k in chosen]
        low[chosen], high[chosen] = point_limits(points[0].curve, same, targets, same[0].deviates(level))
    return low, high


@dataclass(frozen=True, eq=False, repr=False)
class Eer(CurveStatistic):
    """The equal error rate, where the line through the curve's points crosses FAR = FRR, and the nearest threshold."""

    metric: ClassVar[str] = "eer"
    rules: ClassVar[tuple[Rule, ...]] = (LATENT, INFLUENCE, *CURVE_RULES)
    defaults: ClassVar[tuple[str, ...]] = ("latent", "influence")

    @cached_property
    def _rate(self) -> EffectiveRate:
        return curves_influence.point_rate(self.curve, self.index, "eer", self.estimate)

    def latent_limits(self, models: RateModels, deviates: tuple[float, float]) -> tuple[float, float]:
        from matchbound.stats.budget import eer_limits

        return eer_limits(self.curve, models, deviates)

    def _pick(self, drawn: CurveReplicates) -> FloatArray:
        return drawn.eer


@dataclass(frozen=True, eq=False, repr=False)
class Auc(CurveStatistic):
    """The area under the curve up to `max_far`, as a share of what it could be: the mean of 1 − FRR there.

    The whole area is the chance that a genuine score beats an impostor's (a tie counts half).
    """

    metric: ClassVar[str] = "auc"
    max_far: float = 1.0

    @property
    def label(self) -> str:
        return self.metric if self.max_far == 1.0 else f"auc(far<={self.max_far:g})"

    @cached_property
    def _rate(self) -> EffectiveRate:
        return curves_influence.area_rate(self.curve, area_terms(self.curve, self.max_far))

    def _targets(self) -> tuple[FloatArray, FloatArray]:
        if self.max_far == 1.0:
            return NONE, NONE
        middles: FloatArray = (np.arange(AREA_STEPS, dtype=np.float64) + 0.5) * (self.max_far / AREA_STEPS)
        return middles, NONE

    def _pick(self, drawn: CurveReplicates) -> FloatArray:
        result: FloatArray = drawn.auc if self.max_far == 1.0 else 1.0 - drawn.frr.mean(axis=1)
        return result


def replicates(
    curve: CurveTally, draws: Draws, far_targets: FloatArray, frr_targets: FloatArray
) -> tuple[Scheme, CurveReplicates]:
    """How identities are drawn, and bootstrap curves of steps or (with the option ``smooth``) of a model."""
    smooth = draws.options.get("smooth")
    scheme = draws.scheme(instance_counts(curve.instances, curve.genuine_comparisons), smooth=True)
    whole, targets = curve.with_rows(), (far_targets, frr_targets)
    if smooth is None:
        read = step_reader(whole, scheme, *targets)
    else:
        model: Smooth = named(smooth, SMOOTHS, "smooth")  # type: ignore[assignment]
        read = smooth_reader(whole, model, scheme, *targets)
    return scheme, curve_replicates(whole, scheme, draws.n_resamples, draws.seed, read, draws.workers)
