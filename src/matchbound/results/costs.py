"""Detection costs and Cllr of a curve, with intervals that know which comparisons share people."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.curve import CurveTally
from matchbound.errors import UsageError
from matchbound.notes import Note
from matchbound.results.cost_sums import pair_square, residual_sums
from matchbound.results.interval import check_prior, named
from matchbound.results.latent_pair import CurveModels, PairFit
from matchbound.results.number import Ask, CannotFit, Limits, Number, Rule
from matchbound.show.shown import Shown
from matchbound.stats.budget import Operating, Steps, integrated_limits, shared_limits
from matchbound.stats.costs import (
    Calibration,
    CostWeights,
    calibrate,
    cheapest,
    cllr_of_masses,
    cost_sums,
    log_losses,
    log_t,
)
from matchbound.stats.curve.rates import crossing
from matchbound.stats.dyadic import DyadicSums, effective_number
from matchbound.stats.intervals import t_quantile

CARRIED = 0.5
"""Cllr warns when so large a share of its variance rests on `CARRIERS` identities."""
CARRIERS = 5

PRESETS: dict[str, tuple[CostWeights, ...]] = {
    "sre08": (CostWeights(0.01, 10.0, 1.0),),
    "sre10": (CostWeights(0.001),),
    "sre16": (CostWeights(0.01), CostWeights(0.005)),
    "sre18": (CostWeights(0.01), CostWeights(0.005)),
    "sre18-vast": (CostWeights(0.05),),
    "sre19": (CostWeights(0.01), CostWeights(0.005)),
    "sre19-av": (CostWeights(0.05),),
    "sre20": (CostWeights(0.05),),
    "sre21": (CostWeights(0.01), CostWeights(0.05)),
    "voxsrc": (CostWeights(0.05),),
}
"""Priors and costs of evaluations; of two, the primary cost is the mean of both normalised costs."""


def weights_of(
    prior: float | str, cost_miss: float, cost_false_accept: float
) -> tuple[tuple[CostWeights, ...], str | None]:
    """(weights, name of the preset), checked; `prior` may be the name of a preset."""
    if isinstance(prior, str):
        name = named(prior, tuple(PRESETS), "prior, where it is no number,")
        if (cost_miss, cost_false_accept) != (1.0, 1.0):
            raise UsageError(f"{prior} sets the costs too; give a number as prior to choose costs")
        return PRESETS[name], name
    check_prior(prior, cost_miss, cost_false_accept)
    weights = CostWeights(float(prior), float(cost_miss), float(cost_false_accept))
    return (weights,), None


def _latent(cost: CostStatistic, ask: Ask) -> Limits:
    """The latent models of FAR and FRR, which share one budget of error."""
    return Limits(*cost._latent(ask), cost._fit.method)


def _log_t(cost: CostStatistic, ask: Ask) -> Limits:
    """estimate·exp(±t·sd/estimate): quick, and too narrow where a few people make most errors."""
    if not (cost.estimate > 0.0 and cost.variance > 0.0):
        raise CannotFit(
            Note(
                "no-width",
                f"{cost.label} = {cost.estimate:g}: the estimate or its variance is zero, and log-t would have width "
                "zero. Use method='auto'",
            )
        )
    return Limits(*log_t(cost.estimate, cost.variance, t_quantile(ask.tail, cost.effective_identities - 1.0)))


def _wider(cost: LogCost, ask: Ask) -> Limits:
    """The wider of both on either side: the models do not see how large single losses are."""
    limits = _latent(cost, ask)
    if not (cost.estimate > 0.0 and cost.variance > 0.0):
        return limits
    quick = _log_t(cost, ask)
    high = min(max(limits.high, quick.high), cost.ends[1])
    return Limits(min(limits.low, quick.low), high, f"{limits.method}+log-t")


LATENT = Rule("latent", _latent, warns=True)
LOG_T = Rule("log-t", _log_t, warns=True)


@dataclass(frozen=True, eq=False, repr=False)
class CostStatistic(Number):
    """A cost read from a curve.

    curve, models
        What it was read from, and where latent models come from.
    estimate
        Its value.
    metric
        ``"mindcf"``, ``"actdcf"``, ``"cllr"`` or ``"mincllr"``.
    """

    curve: CurveTally = field(repr=False)
    models: CurveModels = field(repr=False)
    estimate: float
    metric: str
    rules: ClassVar[tuple[Rule, ...]] = (LATENT, LOG_T)
    defaults: ClassVar[tuple[str, ...]] = ("latent",)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label}={self.estimate:.6g})"

    @property
    def ends(self) -> tuple[float, float]:
        """0, and 1 for the least costs, which the better of the two trivial decisions bounds."""
        return 0.0, 1.0 if self.metric in ("mindcf", "mincllr") else math.inf

    @cached_property
    def _sums(self) -> DyadicSums:
        raise NotImplementedError

    @cached_property
    def effective_identities(self) -> float:
        """T²/Σg_i²: how many equally large identities would weigh as much."""
        return effective_number(self.curve.genuine_comparisons)

    @cached_property
    def variance(self) -> float:
        """The dyadic variance of the estimate, corrected for the bias of the plug-in."""
        return self._sums.corrected(self.effective_identities)

    def _fields(self) -> dict[str, Any]:
        preset = getattr(self, "preset", None)
        return {
            "target": getattr(self, "target", None),
            "threshold": getattr(self, "threshold", None),
            "errors": None,
            "comparisons": None,
            "identities": self.curve.n_identities,
            "variance": self.variance,
            "effective_n": None,
            "design_effect": None,
            **({} if preset is None else {"preset": preset}),
        }

    def _latent(self, ask: Ask) -> tuple[float, float]:
        """Limits by the latent models of both rates."""
        raise NotImplementedError

    @property
    def _index(self) -> int:
        """The point of the curve at which the models are fitted."""
        raise NotImplementedError

    @property
    def _fit(self) -> PairFit:
        """The models of both rates."""
        return self.models.at(self._index)


@dataclass(frozen=True)
class CostPoint(Shown):
    """One term of a detection cost: what errors cost, and the errors at its threshold.

    weights
        Prior and costs.
    threshold
        In the units of the scores.
    index
        The point of the curve with this threshold's decisions.
    matched, missed
        False matches and false non-matches there.
    """

    weights: CostWeights
    threshold: float
    index: int
    matched: float
    missed: float


@dataclass(frozen=True, eq=False, repr=False)
class DetectionCost(CostStatistic):
    """The normalised detection cost α·FRR + β·FAR, at the best threshold or at that of calibrated scores.

    points
        Its terms; the cost is their mean (one term unless a preset has two).
    preset
        The name of the evaluation, or None.
    """

    rules: ClassVar[tuple[Rule, ...]] = (LATENT, LOG_T)
    defaults: ClassVar[tuple[str, ...]] = ("latent",)
    points: tuple[CostPoint, ...]
    preset: str | None = None

    @property
    def label(self) -> str:
        """Its name in tables."""
        if self.preset is not None:
            return f"{self.metric}({self.preset})"
        weights = self.points[0].weights
        costs = (
            ""
            if weights.cost_miss == weights.cost_false_accept == 1.0
            else (f",{weights.cost_miss:g},{weights.cost_false_accept:g}")
        )
        return f"{self.metric}({weights.prior:g}{costs})"

    @property
    def prior(self) -> float:
        """π, of the first term."""
        return self.points[0].weights.prior

    @property
    def target(self) -> float:
        """The prior, as tables call what was asked for."""
        return self.prior

    @property
    def threshold(self) -> float:
        """The decision threshold, in the units of the scores (of the first term)."""
        return self.points[0].threshold

    @property
    def far(self) -> float:
        """FAR at the threshold."""
        return self.points[0].matched / self.curve.n_impostor

    @property
    def frr(self) -> float:
        """FRR at the threshold."""
        return self.points[0].missed / self.curve.n_genuine

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know about the number; empty when there is nothing to say."""
        if self.metric != "mindcf":
            return ()
        for point in self.points:
            if point.missed == self.curve.n_genuine or point.matched == self.curve.n_impostor:
                what = "rejects" if point.matched == 0 else "accepts"
                return (
                    Note(
                        "trivial-cost",
                        f"at prior {point.weights.prior:g} the cheapest decision {what} everything, so that this "
                        "cost is 1 whatever the scores are: more data, or a prior nearer to ½, would be more "
                        "informative",
                    ),
                )
        return ()

    @cached_property
    def _sums(self) -> DyadicSums:
        order = np.unique([point.index for point in self.points])
        counted = self.curve.errors_at(order)
        made = []
        for point in self.points:
            at = int(np.searchsorted(order, point.index))
            made.append(
                cost_sums(
                    point.weights,
                    (counted.genuine[at], self.curve.genuine_comparisons),
                    (counted.impostor[at], self.curve.impostor_comparisons),
                )
            )
        own = np.mean([part[0] for part in made], axis=0)
        shared = np.mean([part[1] for part in made], axis=0)
        weights = [point.weights.false_accept / (len(self.points) * self.curve.n_impostor) for point in self.points]
        square = pair_square(self.curve, [point.index for point in self.points], weights)
        return DyadicSums(own, shared, square)

    def _latent(self, ask: Ask) -> tuple[float, float]:
        fit = self._fit
        miss = np.array([[point.weights.miss] for point in self.points])
        false = np.array([[point.weights.false_accept] for point in self.points])

        def cost(far: FloatArray, frr: FloatArray) -> FloatArray:
            result: FloatArray = (miss * frr + false * far).mean(axis=0)
            return result

        errors = [Operating(*self._errors(point)) for point in self.points]
        low, high = shared_limits(fit.far, fit.frr, errors, fit.deviates(ask.level, ask.side), cost)
        return low, min(high, self.ends[1])

    def _errors(self, point: CostPoint) -> tuple[float, float]:
        """(matched, missed); where nothing matches, those at the largest score: minDCF = 1 is not known exactly."""
        if self.metric == "mindcf" and point.index == 0:
            return float(self.curve.false_matches[1]), float(self.curve.false_nonmatches[1])
        return float(point.matched), float(point.missed)

    @property
    def _index(self) -> int:
        return self.points[0].index


@dataclass(frozen=True, eq=False, repr=False)
class LogCost(CostStatistic):
    """Cllr of scores that are natural log-likelihood ratios, or (minCllr) of their best increasing map.

    genuine_loss, impostor_loss
        The mean loss in bits of either kind; the estimate is the mean of the two.
    llr : float64 array, shape (B,)
        Distinct log-likelihood ratios, increasing; infinite ones are capped for limits.
    genuine, impostor : float64 arrays, shape (B,)
        Comparisons that have each.
    cell : int64 array, shape (K,), or None
        The place in `llr` of each point of the curve (what it adds to the points before it).
    """

    rules: ClassVar[tuple[Rule, ...]] = (
        LATENT,
        LOG_T,
        Rule("wider", _wider, hidden=True, warns=True),
    )
    defaults: ClassVar[tuple[str, ...]] = ("wider",)
    genuine_loss: float
    impostor_loss: float
    llr: FloatArray = field(repr=False)
    genuine: FloatArray = field(repr=False)
    impostor: FloatArray = field(repr=False)
    cell: IntArray = field(repr=False)
    error: float = 0.0

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know about the number; empty when there is nothing to say."""
        said = []
        weight = np.sort(self._sums.influence**2)[::-1]
        total = float(weight.sum())
        if self.metric == "cllr" and total > 0.0 and float(weight[:CARRIERS].sum()) > CARRIED * total:
            said.append(
                Note(
                    "few-carriers",
                    f"{CARRIERS} of {self.curve.n_identities} identities carry more than half of Cllr's variance: a "
                    "few large losses dominate, and the interval may be too narrow. Calibrate the scores, or report "
                    "minCllr",
                )
            )
        if self.error > 1e-4:
            said.append(
                Note(
                    "inexact",
                    f"this curve has {self.curve.thresholds.size} points: {self.metric} is exact to ±{self.error:.2g}",
                )
            )
        return tuple(said)

    @cached_property
    def _sums(self) -> DyadicSums:
        lost = [np.where(count > 0, loss, 0.0) for loss, count in zip(log_losses(self.llr), self._counts, strict=True)]
        genuine = 0.5 * (lost[0] - self.genuine_loss) / self.curve.n_genuine
        impostor = 0.5 * (lost[1] - self.impostor_loss) / self.curve.n_impostor
        return residual_sums(self.curve, self.models, genuine[self.cell], impostor[self.cell])

    @property
    def _counts(self) -> tuple[FloatArray, FloatArray]:
        return self.genuine, self.impostor

    def _latent(self, ask: Ask) -> tuple[float, float]:
        return self._integrated(self._fit, ask)

    def _integrated(self, fit: PairFit, ask: Ask) -> tuple[float, float]:
        llr = self._finite()
        steps = [Steps(llr[count > 0], count[count > 0]) for count in self._counts]
        low, high = integrated_limits(fit.tables(ask.level, ask.side), steps[0], steps[1])
        return min(low, self.estimate), min(max(high, self.estimate), self.ends[1])

    @property
    def _index(self) -> int:
        far, frr = self.curve.false_matches / self.curve.n_impostor, self.curve.false_nonmatches / self.curve.n_genuine
        return crossing(far, frr).index

    def _finite(self) -> FloatArray:
        if self.metric == "cllr":
            return self.llr
        return Calibration(np.empty(0, dtype=np.int64), self.genuine, self.impostor, self.llr).capped()


def min_dcf(
    curve: CurveTally, models: CurveModels, prior: float | str, cost_miss: float = 1.0, cost_false_accept: float = 1.0
) -> DetectionCost:
    """The least normalised detection cost over thresholds."""
    weights, preset = weights_of(prior, cost_miss, cost_false_accept)
    far, frr = curve.false_matches / curve.n_impostor, curve.false_nonmatches / curve.n_genuine
    return _detection(curve, models, "mindcf", preset, [_point(curve, w, cheapest(far, frr, w)) for w in weights])


def actual_dcf(
    curve: CurveTally, models: CurveModels, prior: float | str, cost_miss: float = 1.0, cost_false_accept: float = 1.0
) -> DetectionCost:
    """The normalised detection cost at the threshold that is best for scores that are log-likelihood ratios."""
    ratios_wanted(curve, "actual_dcf")
    weights, preset = weights_of(prior, cost_miss, cost_false_accept)
    if not curve.every_step:
        from matchbound.counts.curve import curve_of_tally

        wanted = np.unique([w.log_odds for w in weights])[::-1]
        ends = curve.thresholds[[0, -1]]
        grid = np.unique(np.concatenate([wanted, ends]))[::-1]
        curve = curve_of_tally(models.recount.tally(grid))
        models = CurveModels(curve, models.recount)
    points = []
    for w in weights:
        k = max(int(np.searchsorted(-curve.similarity, -w.log_odds, side="right")) - 1, 0)
        points.append(_point(curve, w, k, w.log_odds))
    return _detection(curve, models, "actdcf", preset, points)


def _point(curve: CurveTally, weights: CostWeights, k: int, threshold: float | None = None) -> CostPoint:
    at = float(curve.thresholds[k]) if threshold is None else threshold
    return CostPoint(weights, at, k, float(curve.false_matches[k]), float(curve.false_nonmatches[k]))


def _detection(
    curve: CurveTally, models: CurveModels, metric: str, preset: str | None, points: list[CostPoint]
) -> DetectionCost:
    values = [
        p.weights.miss * p.missed / curve.n_genuine + p.weights.false_accept * p.matched / curve.n_impostor
        for p in points
    ]
    return DetectionCost(curve, models, float(np.mean(values)), metric, tuple(points), preset)


def cllr(curve: CurveTally, models: CurveModels) -> LogCost:
    """Cllr of scores that are natural log-likelihood ratios."""
    ratios_wanted(curve, "cllr")
    llr, genuine, impostor, cell = _cells(curve)
    value, own, other = cllr_of_masses(llr, genuine, impostor)
    error = 0.0
    if not curve.every_step:
        upper = np.append(llr[1:], llr[-1])
        middle = (llr + upper) / 2.0
        ends = [cllr_of_masses(edge, genuine, impostor)[1:] for edge in (llr, upper)]
        error = abs(ends[0][0] - ends[1][0]) / 4.0 + abs(ends[0][1] - ends[1][1]) / 4.0
        llr, (value, own, other) = middle, cllr_of_masses(middle, genuine, impostor)
    return LogCost(curve, models, value, "cllr", own, other, llr, genuine, impostor, cell, error)


def min_cllr(curve: CurveTally, models: CurveModels) -> LogCost:
    """Cllr of the best increasing map of the scores (pool adjacent violators)."""
    _, genuine, impostor, cell = _cells(curve)
    best = calibrate(genuine, impostor)
    value, own, other = cllr_of_masses(best.llr, best.genuine, best.impostor)
    block = np.searchsorted(best.ends, np.arange(genuine.size), side="right")
    return LogCost(curve, models, value, "mincllr", own, other, best.llr, best.genuine, best.impostor, block[cell])


def _cells(curve: CurveTally) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """(score, genuine, impostor comparisons there), scores increasing, and the cell of each point of the curve.

    A point's cell holds what it adds to the stricter points; the first point of a curve matches nothing and has none
    (it is given the strictest cell).
    """
    impostor = np.diff(curve.false_matches, prepend=0)
    genuine = -np.diff(curve.false_nonmatches, prepend=curve.n_genuine)
    held = np.flatnonzero((impostor > 0) | (genuine > 0))[::-1]
    cell = np.zeros(curve.thresholds.size, dtype=np.int64)
    cell[held] = np.arange(held.size)
    return (
        curve.similarity[held],
        genuine[held].astype(np.float64),
        impostor[held].astype(np.float64),
        cell,
    )


def ratios_wanted(curve: CurveTally, name: str) -> None:
    """Refuse distances where log-likelihood ratios are meant."""
    if curve.distance:
        raise UsageError(
            f"{name} reads scores as natural log-likelihood ratios, and these are distances. Use min_dcf or min_cllr, "
            "which only need the order of the scores, or calibrate the scores first"
        )


def costs_by_prior(curve: CurveTally, log_odds: FloatArray, *, calibrated: bool) -> dict[str, FloatArray]:
    """Normalised costs against the prior, for plots: ``minimum``, ``actual`` (where scores are ratios) and ``default``.

    Parameters
    ----------
    log_odds
        logit of the prior, shape (n,).
    calibrated
        Whether scores are log-likelihood ratios.
    """
    far, frr = curve.false_matches / curve.n_impostor, curve.false_nonmatches / curve.n_genuine
    prior = 1.0 / (1.0 + np.exp(-log_odds))
    best = np.array([float((p * frr + (1.0 - p) * far).min()) for p in prior])
    made: dict[str, FloatArray] = {"prior": prior, "minimum": best, "default": np.minimum(prior, 1.0 - prior)}
    if calibrated:
        at = np.maximum(np.searchsorted(-curve.similarity, log_odds, side="right") - 1, 0)
        made["actual"] = prior * frr[at] + (1.0 - prior) * far[at]
    return made
