"""Detection costs and Cllr of a curve, and mean losses, with intervals that account for comparisons sharing people."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.curve import CurveTally, curve_of_tally
from matchbound.errors import DataError, UsageError, argument, check_prior, named
from matchbound.notes import INVENTED_SCORES, Note
from matchbound.results.latent import LOG_T, WARNING_LATENT, CurveModels, OfBothRates, log_t_limits
from matchbound.results.number import Ask, Limits, Number, Rule, counted_fields
from matchbound.stats import costs as stats
from matchbound.stats.budget import RateModels, integrated_limits
from matchbound.stats.costs import CostWeights
from matchbound.stats.curve.rates import crossing
from matchbound.stats.dyadic import DyadicSums, effective_number
from matchbound.stats.intervals import t_quantile
from matchbound.stats.variance import residual_sums

# Of a curve without every step, identities whose pairs are scored again for the part of a variance by pairs.
SAMPLED_IDENTITIES = 200
# Cllr warns when so large a share of its variance rests on `CARRIERS` identities.
CARRIED = 0.5
CARRIERS = 5

# Priors and costs of evaluations; of two, the primary cost is the mean of both normalised costs.
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


def weights_of(
    prior: float | str, cost_miss: float, cost_false_accept: float
) -> tuple[tuple[CostWeights, ...], str | None]:
    """(weights, name of the preset), checked; `prior` may be the name of a preset."""
    if isinstance(prior, str):
        name = named(prior, tuple(PRESETS), "prior, where it is not a number,")
        if (cost_miss, cost_false_accept) != (1.0, 1.0):
            raise UsageError(f"{prior} sets the costs too; give a number as prior to choose costs")
        return PRESETS[name], name
    check_prior(prior, cost_miss, cost_false_accept)
    weights = CostWeights(float(prior), float(cost_miss), float(cost_false_accept))
    return (weights,), None


@dataclass(frozen=True, eq=False, repr=False)
class CostStatistic(OfBothRates):
    """A cost read from a curve: ``"mindcf"``, ``"actdcf"``, ``"cllr"`` or ``"mincllr"``."""

    models: CurveModels = field(repr=False)
    estimate: float
    metric: str
    rules: ClassVar[tuple[Rule, ...]] = (WARNING_LATENT, LOG_T)
    defaults: ClassVar[tuple[str, ...]] = ("latent",)

    @property
    def curve(self) -> CurveTally:
        return self.models.curve

    @property
    def ends(self) -> tuple[float, float]:
        """0, and 1 for the least costs, which the better of the two trivial decisions bounds."""
        return 0.0, 1.0 if self.metric in ("mindcf", "mincllr") else math.inf

    @property
    def effective_identities(self) -> float:
        return effective_number(self.curve.genuine_comparisons)

    def _fields(self) -> dict[str, Any]:
        return {"target": None, **counted_fields(None, self.curve.n_identities, self.variance)}


@dataclass(frozen=True, eq=False, repr=False)
class DetectionCost(CostStatistic):
    """The normalised detection cost α·FRR + β·FAR, at the best threshold or at that of calibrated scores.

    It is the mean of its `terms` (one unless a preset has two): the weights, and the point of the curve.
    """

    terms: tuple[tuple[CostWeights, int], ...]
    preset: str | None = None

    @property
    def label(self) -> str:
        if self.preset is not None:
            return f"{self.metric}({self.preset})"
        weights, _ = self.terms[0]
        both = (weights.cost_miss, weights.cost_false_accept)
        costs = "" if both == (1.0, 1.0) else f",{both[0]:g},{both[1]:g}"
        return f"{self.metric}({weights.prior:g}{costs})"

    @property
    def threshold(self) -> float:
        """The decision threshold, in the units of the scores (of the first term)."""
        weights, index = self.terms[0]
        return weights.log_odds if self.metric == "actdcf" else float(self.curve.thresholds[index])

    @property
    def notes(self) -> tuple[Note, ...]:
        for weights, k in self.terms if self.metric == "mindcf" else ():
            far, frr = self.curve.far[k], self.curve.frr[k]
            if far == 1.0 or frr == 1.0:
                what = "rejects" if far == 0.0 else "accepts"
                text = (
                    f"at prior {weights.prior:g} the cheapest decision {what} everything, so that this cost is 1 "
                    "whatever the scores are: more data, or a prior nearer to ½, would be more informative"
                )
                return (Note("trivial-cost", text),)
        return ()

    def _fields(self) -> dict[str, Any]:
        fields = {**super()._fields(), "target": self.terms[0][0].prior, "threshold": self.threshold}
        return fields if self.preset is None else {**fields, "preset": self.preset}

    @cached_property
    def sums(self) -> DyadicSums:
        """At point k, a genuine comparison that begins to match at point j is worth α(1[j > k] − FRR)/T, and so on."""
        curve, places = self.curve, np.arange(self.curve.thresholds.size)
        genuine, impostor = np.zeros((2, places.size))
        for weights, k in self.terms:
            genuine += weights.miss * ((places > k) - curve.frr[k]) / (len(self.terms) * curve.n_genuine)
            impostor += weights.false_accept * ((places <= k) - curve.far[k]) / (len(self.terms) * curve.n_impostor)
        own, shared, square = curve.summed(genuine, impostor)
        return DyadicSums(own, shared, self._largest_square() if square is None else square)

    def _largest_square(self) -> float:
        """Σ_{i<j} of squared residuals by pair where only those of single points are known: the most it can be."""
        curve, root = self.curve, 0.0
        for weights, k in self.terms:
            square = float(residual_sums(curve.tally_at(np.array([k])).impostor, 0)[1]) / 2.0
            weight = weights.false_accept / (len(self.terms) * curve.n_impostor)
            root += weight * math.sqrt(max(square, 0.0))
        return root**2

    @property
    def fit(self) -> RateModels:
        """The models of both rates around the threshold."""
        return self.models.at(self.terms[0][1])

    @property
    def operating(self) -> tuple[FloatArray, FloatArray]:
        """The errors of each term; where nothing matches, those at the largest score: minDCF = 1 is not exact."""
        curve, least = self.curve, 1 if self.metric == "mindcf" else 0
        places = [max(k, least) for _, k in self.terms]
        return curve.false_matches[places].astype(np.float64), curve.false_nonmatches[places].astype(np.float64)

    def value(self, far: FloatArray, frr: FloatArray) -> FloatArray:
        """The mean of the terms at rates of shape (P, …)."""
        terms = [stats.detection_costs(p, q, weights) for p, q, (weights, _) in zip(far, frr, self.terms, strict=True)]
        result: FloatArray = np.mean(terms, axis=0)
        return result


def _wider(cost: LogCost, ask: Ask) -> Limits:
    """The wider of both on either side: the models do not see how large single losses are."""
    (low, high), method = cost.latent_limits(ask), cost.fit.method
    if not (cost.estimate > 0.0 and cost.variance > 0.0):
        return Limits(low, high, method)
    quick = log_t_limits(cost, ask)
    return Limits(min(low, quick.low), min(max(high, quick.high), cost.ends[1]), f"{method}+log-t")


@dataclass(frozen=True, eq=False, repr=False)
class LogCost(CostStatistic):
    """Cllr of scores that are natural log-likelihood ratios, or (minCllr) of their best increasing map.

    The estimate is the mean of the mean genuine and the mean impostor loss, in bits. `llr`, shape (B,), are distinct
    log-likelihood ratios, increasing (infinite ones are capped for limits), and `genuine` and `impostor` the
    comparisons that have each. `cell`, shape (K,), is the place in `llr` of each point of the curve (what it adds to
    the points before it). `error` says how exact the value is, on a curve without every step.
    """

    rules: ClassVar[tuple[Rule, ...]] = (WARNING_LATENT, LOG_T, Rule("wider", _wider, hidden=True, warns=True))
    defaults: ClassVar[tuple[str, ...]] = ("wider",)
    llr: FloatArray = field(repr=False)
    genuine: FloatArray = field(repr=False)
    impostor: FloatArray = field(repr=False)
    cell: IntArray = field(repr=False)
    error: float = 0.0

    @property
    def notes(self) -> tuple[Note, ...]:
        notes = []
        weight = np.sort(self.sums.influence**2)[::-1]
        if self.metric == "cllr" and float(weight[:CARRIERS].sum()) > CARRIED * float(weight.sum()) > 0.0:
            text = (
                f"{CARRIERS} of {self.curve.n_identities} identities carry more than half of Cllr's variance: a few "
                "large losses dominate, and the interval may be too narrow. Calibrate the scores, or report minCllr"
            )
            notes.append(Note("few-carriers", text))
        if self.error > 1e-4:
            points = self.curve.thresholds.size
            text = f"this curve has {points} points: {self.metric} is exact to ±{self.error:.2g}"
            notes.append(Note("inexact", text))
        return tuple(notes)

    @cached_property
    def sums(self) -> DyadicSums:
        sides = zip(stats.log_losses(self.llr), (self.genuine, self.impostor), strict=True)
        genuine, impostor = (np.where(count > 0, loss, 0.0) for loss, count in sides)
        _, *means = stats.cllr_of_masses(self.llr, self.genuine, self.impostor)
        genuine = 0.5 * (genuine - means[0]) / self.curve.n_genuine
        impostor = 0.5 * (impostor - means[1]) / self.curve.n_impostor
        residual = impostor[self.cell]
        own, shared, square = self.curve.summed(genuine[self.cell], residual)
        return DyadicSums(own, shared, _sampled_square(self.models, residual) if square is None else square)

    @property
    def fit(self) -> RateModels:
        """The models of both rates around the equal error rate."""
        return self.models.at(crossing(self.curve.far, self.curve.frr).index)

    def latent_limits(self, ask: Ask) -> tuple[float, float]:
        """Cllr is an integral over thresholds of both rates; so are its limits."""
        llr = stats.capped(self.llr, self.genuine, self.impostor) if self.metric == "mincllr" else self.llr
        low, high = integrated_limits(self.fit.tables(ask.level, ask.side), llr, self.genuine, self.impostor)
        return min(low, self.estimate), min(max(high, self.estimate), self.ends[1])


def detection_cost(
    models: CurveModels, metric: str, prior: float | str, cost_miss: float, cost_false_accept: float
) -> DetectionCost:
    """The normalised cost at the cheapest threshold, or (``"actdcf"``) at the best one for log-likelihood ratios."""
    if metric == "actdcf":
        ratios_wanted(models.curve, "actual_dcf")
    weights, preset = weights_of(prior, cost_miss, cost_false_accept)
    if metric == "actdcf":
        thresholds = np.array([w.log_odds for w in weights])
        if not models.curve.every_step:
            grid = np.union1d(thresholds, models.curve.thresholds[[0, -1]])[::-1]
            models = CurveModels(curve_of_tally(models.recount.tally(grid)), models.recount)
        reached = np.searchsorted(-models.curve.similarity, -thresholds, side="right") - 1
        places = np.maximum(reached, 0).tolist()
    else:
        places = [stats.cheapest(models.curve.far, models.curve.frr, w) for w in weights]
    curve = models.curve
    costs = [stats.detection_costs(curve.far[k], curve.frr[k], w) for w, k in zip(weights, places, strict=True)]
    return DetectionCost(models, float(np.mean(costs)), metric, tuple(zip(weights, places, strict=True)), preset)


def cllr(models: CurveModels) -> LogCost:
    curve = models.curve
    ratios_wanted(curve, "cllr")
    scores_wanted(models.recount.source, "cllr")
    llr, genuine, impostor, cell = _cells(curve)
    error = 0.0
    if not curve.every_step:
        upper = np.append(llr[1:], llr[-1])
        ends = [stats.cllr_of_masses(edge, genuine, impostor)[1:] for edge in (llr, upper)]
        error = abs(ends[0][0] - ends[1][0]) / 4.0 + abs(ends[0][1] - ends[1][1]) / 4.0
        llr = (llr + upper) / 2.0
    value, *_ = stats.cllr_of_masses(llr, genuine, impostor)
    return LogCost(models, value, "cllr", llr, genuine, impostor, cell, error)


def min_cllr(models: CurveModels) -> LogCost:
    """Cllr of the best increasing map of the scores (pool adjacent violators)."""
    _, genuine, impostor, cell = _cells(models.curve)
    best = stats.calibrate(genuine, impostor)
    value, *_ = stats.cllr_of_masses(best.llr, best.genuine, best.impostor)
    block = np.searchsorted(best.ends, np.arange(genuine.size), side="right")
    return LogCost(models, value, "mincllr", best.llr, best.genuine, best.impostor, block[cell])


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
    return curve.similarity[held], genuine[held].astype(np.float64), impostor[held].astype(np.float64), cell


def scores_wanted(source: object, name: str) -> None:
    """Raise where comparisons without a score were given one: a value beyond all others is right for errors only."""
    codes = {note.code for note in getattr(source, "notes", ())} & INVENTED_SCORES.keys()
    if codes:
        remedies = " and ".join(argument(*INVENTED_SCORES[code]) for code in sorted(codes, reverse=True))
        raise DataError(
            f"{name} needs the score of every comparison, and those without one were given one beyond all others, "
            f"which only decisions can use. Leave them out ({remedies}), or report minDCF"
        )


def ratios_wanted(curve: CurveTally, name: str) -> None:
    if curve.distance:
        raise UsageError(
            f"{name} reads scores as natural log-likelihood ratios, and these are distances. Use min_dcf or min_cllr, "
            "which only need the order of the scores, or calibrate the scores first"
        )


def _sampled_square(models: CurveModels, residual: FloatArray) -> float:
    """Σ_{i<j} of squared residuals by pair, from the pairs among a random part of the identities, scaled up."""
    curve = models.curve
    taking_part = np.flatnonzero(curve.impostor_comparisons)
    count = min(SAMPLED_IDENTITIES, taking_part.size)
    chosen = np.sort(np.random.default_rng(0).choice(taking_part, count, replace=False))
    part = models.recount.among(chosen).comparisons()
    rows = np.flatnonzero(~part.genuine)
    k = np.searchsorted(-curve.similarity, -part.similarity[rows], side="left")
    each = residual[np.minimum(k, residual.size - 1)]
    keys = np.minimum(part.a[rows], part.b[rows]) * part.n_identities + np.maximum(part.a[rows], part.b[rows])
    total = np.bincount(keys, each, part.n_identities**2)
    scale = taking_part.size * (taking_part.size - 1) / (count * (count - 1))
    return float(total @ total) * scale


def _t(loss: MeanLoss, ask: Ask) -> Limits:
    half = t_quantile(ask.tail, loss.freedom) * math.sqrt(loss.variance)
    return Limits(max(loss.estimate - half, loss.ends[0]), min(loss.estimate + half, loss.ends[1]))


@dataclass(frozen=True, eq=False)
class MeanLoss(Number):
    """The mean of a loss over comparisons.

    The estimate is π·genuine + (1−π)·impostor at the prior π, or the mean over all comparisons; its variance is dyadic,
    without the bias of the plug-in. `freedom` (of Student's t) is the effective number of identities − 1, and `support`
    the smallest and largest loss that can be; limits stay inside.
    """

    metric: ClassVar[str] = "mean loss"
    rules: ClassVar[tuple[Rule, ...]] = (Rule("t", _t),)
    defaults: ClassVar[tuple[str, ...]] = ("t",)
    estimate: float
    genuine: float
    impostor: float
    prior: float | None
    variance: float
    n_comparisons: int
    n_identities: int
    freedom: float
    support: tuple[float, float] = field(repr=False)
    warnings: tuple[Note, ...] = field(repr=False, default=())

    @property
    def ends(self) -> tuple[float, float]:
        return self.support

    def _fields(self) -> dict[str, Any]:
        means = {"genuine": self.genuine, "impostor": self.impostor, "prior": self.prior}
        counts = {"comparisons": self.n_comparisons, "identities": self.n_identities}
        return {**means, **counts, "variance": self.variance}
