"""Points of a curve that people report: FRR at a FAR, FAR at an FRR, EER, AUC; intervals are their methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.recount import Recount
from matchbound.counts.curve import CurveTally, SortedCurve
from matchbound.errors import DataError, UsageError, argument
from matchbound.notes import Note
from matchbound.results.bootstraps import Bootstrap, scheme_of
from matchbound.results.interval import Interval, check_rate, named, tail_of
from matchbound.results.number import Ask, CannotFit, Limits, Number, Rule, bootstrap_rules, labels_notes
from matchbound.stats.curve import influence as curves_influence
from matchbound.stats.curve import union as curves_union
from matchbound.stats.curve.bootstrap import CURVE_BOOTSTRAPS, CurveReplicates, curve_replicates
from matchbound.stats.curve.influence import EffectiveRate, wilson_t
from matchbound.stats.curve.rates import area_terms
from matchbound.stats.curve.smooth import SMOOTHS, Smooth, smooth_rates, smooth_replicates
from matchbound.stats.curve.union import Calibration
from matchbound.stats.resampling import Scheme, seed_of

if TYPE_CHECKING:
    from matchbound.stats.curve.latent import LatentPair
    from matchbound.stats.latent import LatentSettings

AREA_STEPS = 400
"""FARs at which the replicates of a partial AUC are read (midpoint rule)."""
FEW_ERRORS = 10
NONE = np.empty(0)

HINTS = dict.fromkeys(
    ("wilson", "naive-wilson", "wald"),
    "for a rate read from a curve, method='union' joins Wilson's intervals at both ends of the threshold's range",
)
"""What to say to somebody who asks a curve for an interval of a rate at a fixed threshold."""


def _latent(point: CurveStatistic, ask: Ask) -> Limits:
    """The latent models of FAR and FRR together."""
    reason = point._no_latent()
    if reason is not None:
        raise CannotFit(reason)
    models = point._models(ask.options.get("settings"))
    deviates = models.far.deviate(ask.level, ask.side), models.frr.deviate(ask.level, ask.side)
    return Limits(*point._latent_limits(models, deviates))


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
    if other == "calibrate":
        other = point.calibrate_level_far(ask.level, rng=ask.options.get("rng")).level_far
    elif isinstance(other, str):
        raise UsageError(f"{name} must be a level such as 0.9, or 'calibrate'; got {other!r}")
    other = check_rate(other, name, "0.9", zero=True)
    base = named(ask.options.get("base", "wilson"), ("wilson", "wald"), "base")
    limits = curves_union.union_limits if point.given == "far" else curves_union.union_limits_far
    found = curves_union.rates_and_variances(point.curve, base)
    low, high = limits(found, point.target, ask.tail, (1.0 - other) / 2.0)
    return Limits(low, high, "union" if base == "wilson" else "union (wald)")


LATENT = Rule("latent", _latent, frozenset({"settings"}))
INFLUENCE = Rule("influence", _influence, warns=True)
UNION = Rule("union", _union, frozenset({"level_far", "level_frr", "base"}))
CURVE_RULES = bootstrap_rules(CURVE_BOOTSTRAPS)


@dataclass(frozen=True, eq=False, repr=False)
class CurveStatistic(Number):
    """A statistic of a curve.

    curve
        What it was read from.
    recount
        Where to count the same comparisons again.
    estimate
        Its value.
    index
        The point of the curve that it belongs to.
    """

    curve: CurveTally = field(repr=False)
    recount: Recount = field(repr=False)
    estimate: float
    index: int
    rules: ClassVar[tuple[Rule, ...]] = (INFLUENCE, *CURVE_RULES)
    defaults: ClassVar[tuple[str, ...]] = ("influence",)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label}={self.estimate:.6g})"

    @property
    def metric(self) -> str:
        """What it is: ``"frr@far"``, ``"far@frr"``, ``"eer"`` or ``"auc"``."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """Its name in tables."""
        return self.metric

    @property
    def threshold(self) -> float:
        """The threshold that it belongs to, in the units of the scores."""
        return float(self.curve.thresholds[self.index])

    @property
    def far(self) -> float:
        """FAR at the threshold."""
        return float(self.curve.false_matches[self.index] / self.curve.n_impostor)

    @property
    def frr(self) -> float:
        """FRR at the threshold."""
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
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know about the number; empty when there is nothing to say."""
        return labels_notes(self.recount)

    def _drawn(self, method: str, n_resamples: int, seed: int, workers: int, options: dict[str, Any]) -> Bootstrap:
        left = dict(options)
        smooth = left.pop("smooth", None)
        scheme = curve_scheme(self.curve, method, n_resamples, left)
        found = replicates(self.curve, scheme, n_resamples, seed, *self._targets(), smooth, workers)
        name = method if smooth is None else f"{method} ({smooth})"
        values = self._pick(found)
        estimate = self.estimate if smooth is None else self.smoothed(smooth)
        return Bootstrap(values, estimate, name, seed, scheme.tau, self._rate.floor)

    def smoothed(self, model: Smooth) -> float:
        """The same statistic read from a smoothed curve of the data.

        Parameters
        ----------
        model
            ``"binormal"``, ``"log-normal"`` or ``"kernel"``.
        """
        rates = smooth_rates(self.curve, named(model, SMOOTHS, "smooth"))  # type: ignore[arg-type]
        far, frr = self._targets()
        read = CurveReplicates(far, frr, rates.frr_at(far), rates.far_at(frr), rates.eer(), rates.auc())
        return float(self._pick(read)[0])

    def record(self, interval: Interval | None) -> dict[str, Any]:
        """The number with the limits of an interval; beside a smoothed interval stands the smoothed estimate."""
        record = super().record(interval)
        if interval is None or "smooth" not in interval.details:
            return record
        return {**record, **interval.details, "empirical_estimate": self.estimate}

    def _no_bootstrap(self) -> str:
        return f"bootstraps are of pooled rates; use {argument('weighting', 'comparisons')}"

    def _fields(self) -> dict[str, Any]:
        errors, comparisons = self.counts
        effective = self.effective_n
        return {
            "target": getattr(self, "target", None),
            "threshold": None if self.metric == "auc" else self.threshold,
            "errors": errors,
            "comparisons": comparisons,
            "identities": self.curve.n_identities,
            "variance": self.variance,
            "effective_n": effective,
            "design_effect": None if comparisons is None or not effective else comparisons / effective,
            **({} if self.weighting == "comparisons" else {"weighting": self.weighting}),
        }

    def _targets(self) -> tuple[FloatArray, FloatArray]:
        return NONE, NONE

    def _pick(self, made: CurveReplicates) -> FloatArray:
        raise NotImplementedError

    def _models(self, settings: LatentSettings | None = None) -> LatentPair:
        """The latent models of both rates, fitted once for the data."""
        from matchbound.results import latent
        from matchbound.stats.curve.latent import LatentPair, estimate_correlation

        counted = self._counted
        x, e = int(counted.false_matches[self.index]), int(counted.false_nonmatches[self.index])
        tally = latent.tally_along(counted, self.recount)
        far = latent.fit("far", tally, x, self.recount, settings)
        frr = latent.fit("frr", tally, e, self.recount, settings, both=True)
        if self.weighting == "identities":
            far, frr = latent.of_unit_curve(self.curve, far, frr, self.recount)
        return LatentPair(far, frr, estimate_correlation(self.curve, far, self.far, self.frr))

    @property
    def counts(self) -> tuple[int | None, int | None]:
        """Errors and comparisons of the rate that the number is; None for EER and areas."""
        curve, k = self._counted, self.index
        if self.metric == "frr@far":
            return int(curve.false_nonmatches[k]), curve.n_genuine
        if self.metric == "far@frr":
            return int(curve.false_matches[k]), curve.n_impostor
        return None, None

    @property
    def weighting(self) -> str:
        """What counts once: ``"comparisons"`` or ``"identities"``."""
        return self.curve.weighting

    @property
    def _counted(self) -> CurveTally:
        """The curve with comparisons as its units."""
        return self.curve.counted

    def _no_latent(self) -> Note | None:
        """Why the latent models cannot be fitted, or None where they can."""
        from matchbound.results import latent

        return latent.why_not(self.recount)

    def _latent_limits(self, models: LatentPair, deviates: tuple[float, float]) -> tuple[float, float]:
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class OperatingPoint(CurveStatistic):
    """FRR at the threshold of a target FAR, or FAR at the threshold of a target FRR.

    target
        The rate that was asked for.
    given
        Which of the two it is: ``"far"`` or ``"frr"``.
    """

    target: float
    given: Literal["far", "frr"]
    rules: ClassVar[tuple[Rule, ...]] = (LATENT, INFLUENCE, UNION, *CURVE_RULES)
    defaults: ClassVar[tuple[str, ...]] = ("latent", "influence")
    hints: ClassVar[Mapping[str, str]] = HINTS

    @property
    def metric(self) -> str:
        """``"frr@far"`` or ``"far@frr"``."""
        return "frr@far" if self.given == "far" else "far@frr"

    @property
    def label(self) -> str:
        """Its name in tables."""
        return f"{self.metric}={self.target:g}"

    @cached_property
    def _rate(self) -> EffectiveRate:
        if self.given == "far":
            return curves_influence.frr_at_far_rate(self.curve, self.index)
        return curves_influence.far_at_frr_rate(self.curve, self.index)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know about the number; empty when there is nothing to say."""
        counted = self._counted
        if self.given == "far":
            errors, name, count = int(counted.false_matches[self.index]), "false matches", counted.n_impostor
        else:
            errors, name, count = int(counted.false_nonmatches[self.index]), "false non-matches", counted.n_genuine
        if errors >= FEW_ERRORS:
            return super().notes
        text = (
            f"the threshold for {self.given.upper()} = {self.target:g} rests on {errors} {name} among {count} "
            f"comparisons; with fewer than {FEW_ERRORS} its uncertainty is poorly estimated"
        )
        return (*super().notes, Note("few-errors", text))

    def calibrate_level_far(
        self, level: float = 0.95, *, n_simulations: int = 200, rng: int | np.random.Generator | None = None
    ) -> Calibration:
        """Choose `level_far` for the union rule by simulation, with this sample as the population.

        Parameters
        ----------
        level
            The coverage that the union interval is to have.
        n_simulations
            Samples of identities to draw.
        rng
            Seed or generator.
        """
        if self.given != "far":
            raise UsageError("level_far belongs to FRR at a FAR; use curve.at_far(...)")
        tail_of(level, "two-sided")
        return curves_union.calibrate_level_far(every_step(self.curve), self.target, level, n_simulations, seed_of(rng))

    def _targets(self) -> tuple[FloatArray, FloatArray]:
        wanted = np.array([self.target])
        return (wanted, NONE) if self.given == "far" else (NONE, wanted)

    def _pick(self, made: CurveReplicates) -> FloatArray:
        return made.frr[:, 0] if self.given == "far" else made.far[:, 0]

    def _latent_limits(self, models: LatentPair, deviates: tuple[float, float]) -> tuple[float, float]:
        from matchbound.stats.curve.latent import limits_at_far, limits_at_frr

        limits = limits_at_far if self.given == "far" else limits_at_frr
        return limits(self.curve, models, self.target, deviates)


def latent_limits(points: Sequence[OperatingPoint], level: float) -> tuple[FloatArray, FloatArray]:
    """The two-sided latent limits of FRR at the FARs of some points of one curve, shape (P,) each, solved together."""
    from matchbound.stats.curve.latent import limits_at_fars

    low, high = np.empty(len(points)), np.empty(len(points))
    left = [(k, point._models()) for k, point in enumerate(points)]
    while left:
        far, frr = left[0][1].far, left[0][1].frr
        same = [(k, pair) for k, pair in left if pair.far is far and pair.frr is frr]
        left = [(k, pair) for k, pair in left if not (pair.far is far and pair.frr is frr)]
        chosen = [k for k, _ in same]
        low[chosen], high[chosen] = limits_at_fars(
            points[0].curve,
            [pair for _, pair in same],
            np.array([points[k].target for k in chosen]),
            (far.deviate(level), frr.deviate(level)),
        )
    return low, high


@dataclass(frozen=True, eq=False, repr=False)
class Eer(CurveStatistic):
    """The equal error rate: where the line through the curve's points crosses FAR = FRR.

    `threshold` is that of the point nearest to the crossing.
    """

    rules: ClassVar[tuple[Rule, ...]] = (LATENT, INFLUENCE, *CURVE_RULES)
    defaults: ClassVar[tuple[str, ...]] = ("latent", "influence")

    @property
    def metric(self) -> str:
        """``"eer"``."""
        return "eer"

    @cached_property
    def _rate(self) -> EffectiveRate:
        return curves_influence.eer_rate(self.curve, self.index, self.estimate)

    def _latent_limits(self, models: LatentPair, deviates: tuple[float, float]) -> tuple[float, float]:
        from matchbound.stats.curve.latent import eer_limits

        return eer_limits(self.curve, models, deviates)

    def _pick(self, made: CurveReplicates) -> FloatArray:
        return made.eer


@dataclass(frozen=True, eq=False, repr=False)
class Auc(CurveStatistic):
    """The area under the curve up to a FAR, as a share of what it could be: the mean of 1 − FRR there.

    max_far
        Up to which FAR; 1 for the whole area, the chance that a genuine score beats an impostor's (a tie counts half).
    """

    max_far: float = 1.0

    @property
    def metric(self) -> str:
        """``"auc"``."""
        return "auc"

    @property
    def label(self) -> str:
        """Its name in tables."""
        return self.metric if self.max_far == 1.0 else f"auc(far<={self.max_far:g})"

    @cached_property
    def _rate(self) -> EffectiveRate:
        return curves_influence.area_rate(self.curve, area_terms(self.curve, self.max_far))

    def _targets(self) -> tuple[FloatArray, FloatArray]:
        if self.max_far == 1.0:
            return NONE, NONE
        middles: FloatArray = (np.arange(AREA_STEPS, dtype=np.float64) + 0.5) * (self.max_far / AREA_STEPS)
        return middles, NONE

    def _pick(self, made: CurveReplicates) -> FloatArray:
        if self.max_far == 1.0:
            return made.auc
        result: FloatArray = 1.0 - made.frr.mean(axis=1)
        return result


def every_step(curve: CurveTally) -> SortedCurve:
    """The curve with every comparison, which drawing identities needs."""
    if curve.weighting == "identities":
        raise UsageError(f"bootstraps are of pooled rates; use {argument('weighting', 'comparisons')}")
    if not isinstance(curve, SortedCurve):
        raise DataError(
            f"this needs every comparison, and this curve has {curve.thresholds.size} points of {curve.n_impostor} "
            "impostor comparisons. Use method='influence' or 'union', or a random subset of identities"
        )
    return curve


def curve_scheme(curve: CurveTally, method: str, n_resamples: int, options: dict[str, Any]) -> Scheme:
    """How to draw identities for curves, with checked options."""

    def sizes() -> IntArray:
        if curve.instances is not None:
            return curve.instances
        known = (1.0 + np.sqrt(1.0 + 8.0 * curve.genuine_comparisons)) / 2.0
        return np.asarray(known.round(), dtype=np.int64)

    if "units" in options:
        raise UsageError("curves are drawn by identity; units goes with rates at a fixed threshold")
    return scheme_of(named(method, CURVE_BOOTSTRAPS), n_resamples, options, sizes, curve.n_identities)


def replicates(
    curve: CurveTally,
    method: Scheme,
    n_resamples: int,
    seed: int,
    far_targets: FloatArray,
    frr_targets: FloatArray,
    smooth: Smooth | None,
    workers: int,
) -> CurveReplicates:
    """Bootstrap curves with checked arguments, of steps or smoothed."""
    whole = every_step(curve)
    if smooth is None:
        return curve_replicates(
            whole, method, n_resamples, seed, far_targets=far_targets, frr_targets=frr_targets, workers=workers
        )
    found: Smooth = named(smooth, SMOOTHS, "smooth")  # type: ignore[assignment]
    return smooth_replicates(
        whole, found, method, n_resamples, seed, far_targets=far_targets, frr_targets=frr_targets, workers=workers
    )
