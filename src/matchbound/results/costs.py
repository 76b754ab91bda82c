"""Detection costs and Cllr of a curve, with intervals that know which comparisons share people."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.curve import CurveTally, SortedCurve
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.results.claims import Claimable
from matchbound.results.cost_sums import pair_square, residual_sums
from matchbound.results.interval import Interval, Side, check_prior, named, one_side, tail_of
from matchbound.results.latent_pair import CurveModels, PairFit
from matchbound.results.rates import Rate
from matchbound.show.costs import cost_records
from matchbound.show.shown import Shown
from matchbound.stats.budget import Operating, Steps, integrated_limits, shared_limits
from matchbound.stats.clusters import DyadicSums, corrected_variance
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
from matchbound.stats.intervals import t_quantile
from matchbound.stats.variance import effective_identities

METHODS = ("auto", "latent", "log-t")
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


@dataclass(frozen=True, eq=False, repr=False)
class CostStatistic(Claimable):
    """A cost read from a curve.

    curve, models
        What it was read from, and where latent models come from.
    estimate
        Its value.
    metric
        ``"mindcf"``, ``"actdcf"``, ``"cllr"`` or ``"mincllr"``.

    See Also
    --------
    DetectionCost, LogCost

    Examples
    --------
    >>> import matchbound as mb
    >>> cost = mb.roc(mb.demo_data()).min_dcf(prior=0.01)
    >>> cost.metric, round(cost.estimate, 3)
    ('mindcf', 0.221)
    """

    curve: CurveTally = field(repr=False)
    models: CurveModels = field(repr=False)
    estimate: float
    metric: str
    methods: ClassVar[tuple[str, ...]] = METHODS

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label}={self.estimate:.6g})"

    @property
    def label(self) -> str:
        """Its name in tables."""
        return self.metric

    @cached_property
    def _sums(self) -> DyadicSums:
        raise NotImplementedError

    @cached_property
    def effective_identities(self) -> float:
        """T²/Σg_i²: how many equally large identities would weigh as much."""
        return effective_identities(self.curve.genuine_comparisons)

    @cached_property
    def variance(self) -> float:
        """The dyadic variance of the estimate, corrected for the bias of the plug-in."""
        return corrected_variance(self._sums, self.effective_identities)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know about the number; empty when there is nothing to say."""
        return ()

    def interval(self, method: str = "auto", level: float = 0.95, *, side: Side = "two-sided") -> Interval:
        """A confidence interval.

        Parameters
        ----------
        method
            ``"auto"``: what `methods` says is best for this number; ``"latent"``: the latent models of FAR and FRR,
            which share one budget of error; ``"log-t"``: estimate·exp(±t·sd/estimate), quick, and too narrow where a
            few people make most errors.
        level
            The confidence level.
        side
            ``"two-sided"``, or ``"upper"`` / ``"lower"`` for a one-sided bound at the same level.
        """
        tail_of(level, side)
        name = named(method, METHODS)
        for note in self.notes:
            warnings.warn(note, MatchboundWarning, stacklevel=2)
        if name == "log-t":
            low, high = self._log_t(level, side)
        elif name == "latent":
            low, high = self._latent(level, side)
            name = self._fit.method
        else:
            low, high, name = self._auto(level, side)
        low, high = one_side(float(low), float(high), side, (0.0, self._top))
        told = (self._reason,) if method == "auto" and self._reason is not None else ()
        return Interval(low, high, level, name, side, (*self.notes, *told))

    def to_records(self) -> list[dict[str, Any]]:
        """The number with its default interval."""
        return cost_records([self], "auto", 0.95)

    @property
    def _top(self) -> float:
        """The largest value that can be."""
        return math.inf

    def _quantile(self, level: float, side: Side) -> float:
        return t_quantile(tail_of(level, side), self.effective_identities - 1.0)

    def _log_t(self, level: float, side: Side) -> tuple[float, float]:
        if not (self.estimate > 0.0 and self.variance > 0.0):
            raise DataError(
                f"{self.label} = {self.estimate:g}: the estimate or its variance is zero, and log-t would have width "
                "zero. Use method='auto'"
            )
        return log_t(self.estimate, self.variance, self._quantile(level, side))

    def _latent(self, level: float, side: Side) -> tuple[float, float]:
        raise NotImplementedError

    def _auto(self, level: float, side: Side) -> tuple[float, float, str]:
        if self._reason is None:
            return *self._latent(level, side), self._fit.method
        return self._without_models(level, side)

    def _without_models(self, level: float, side: Side) -> tuple[float, float, str]:
        """Limits where the latent models cannot be fitted."""
        return *self._log_t(level, side), "log-t"

    @cached_property
    def _reason(self) -> Note | None:
        """Why the latent models cannot be fitted, or None where they can."""
        return self.models.why_not(self._index)

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
    matched: int
    missed: int


@dataclass(frozen=True, eq=False, repr=False)
class DetectionCost(CostStatistic):
    """The normalised detection cost α·FRR + β·FAR, at the best threshold or at that of calibrated scores.

    points
        Its terms; the cost is their mean (one term unless a preset has two).
    preset
        The name of the evaluation, or None.

    See Also
    --------
    RocCurve.min_dcf, RocCurve.actual_dcf

    Examples
    --------
    >>> import matchbound as mb
    >>> curve = mb.roc(mb.demo_data())
    >>> cost = curve.min_dcf(prior=0.01)
    >>> round(cost.estimate, 3)
    0.221
    """

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

    @property
    def _top(self) -> float:
        return 1.0 if self.metric == "mindcf" else math.inf

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
        return DyadicSums(own + shared, own, square)

    def _latent(self, level: float, side: Side) -> tuple[float, float]:
        fit = self._fit
        miss = np.array([[point.weights.miss] for point in self.points])
        false = np.array([[point.weights.false_accept] for point in self.points])

        def cost(far: FloatArray, frr: FloatArray) -> FloatArray:
            result: FloatArray = (miss * frr + false * far).mean(axis=0)
            return result

        errors = [Operating(*self._errors(point)) for point in self.points]
        low, high = shared_limits(fit.far, fit.frr, errors, fit.deviates(level, side), cost)
        return low, min(high, self._top)

    def _errors(self, point: CostPoint) -> tuple[float, float]:
        """(matched, missed); where nothing matches, those at the largest score: minDCF = 1 is not known exactly."""
        if self.metric == "mindcf" and point.index == 0:
            return float(self.curve.false_matches[1]), float(self.curve.false_nonmatches[1])
        return float(point.matched), float(point.missed)

    @property
    def _index(self) -> int:
        return self.points[0].index

    def _without_models(self, level: float, side: Side) -> tuple[float, float, str]:
        """The default limits of FAR and FRR put into the cost, both at once: careful, and never of width zero."""
        low = high = 0.0
        for point in self.points:
            k = max(point.index, 1) if self.metric == "mindcf" else point.index
            at = self.curve.thresholds[k : k + 1]
            tally = self.models.recount.tally(at)
            ends = [
                [Rate(metric, float(at[0]), tally, 0).interval(level=level, side=end) for end in _ends(side)]
                for metric in ("far", "frr")
            ]
            low += point.weights.false_accept * ends[0][0].low + point.weights.miss * ends[1][0].low
            high += point.weights.false_accept * ends[0][1].high + point.weights.miss * ends[1][1].high
        return low / len(self.points), min(high / len(self.points), self._top), "wilson"


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

    See Also
    --------
    RocCurve.cllr, RocCurve.min_cllr

    Examples
    --------
    >>> import matchbound as mb
    >>> curve = mb.roc(mb.demo_data())
    >>> round(curve.min_cllr().estimate, 3)
    0.036
    """

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
        weight = np.sort(self._sums.by_unit**2)[::-1]
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

    @property
    def _top(self) -> float:
        return 1.0 if self.metric == "mincllr" else math.inf

    @cached_property
    def _sums(self) -> DyadicSums:
        lost = [np.where(count > 0, loss, 0.0) for loss, count in zip(log_losses(self.llr), self._counts, strict=True)]
        genuine = 0.5 * (lost[0] - self.genuine_loss) / self.curve.n_genuine
        impostor = 0.5 * (lost[1] - self.impostor_loss) / self.curve.n_impostor
        return residual_sums(self.curve, self.models, genuine[self.cell], impostor[self.cell])

    @property
    def _counts(self) -> tuple[FloatArray, FloatArray]:
        return self.genuine, self.impostor

    def _latent(self, level: float, side: Side) -> tuple[float, float]:
        return self._integrated(self._fit, level, side)

    def _without_models(self, level: float, side: Side) -> tuple[float, float, str]:
        """log-t, or where it has no width, limits that count only comparisons that share nobody."""
        if self.estimate > 0.0 and self.variance > 0.0:
            return *self._log_t(level, side), "log-t"
        return *self._integrated(self.models.disjoint(), level, side), "wilson"

    def _integrated(self, fit: PairFit, level: float, side: Side) -> tuple[float, float]:
        llr = self._finite()
        steps = [Steps(llr[count > 0], count[count > 0]) for count in self._counts]
        low, high = integrated_limits(fit.tables(level, side), steps[0], steps[1])
        return min(low, self.estimate), min(max(high, self.estimate), self._top)

    @property
    def _index(self) -> int:
        far, frr = self.curve.false_matches / self.curve.n_impostor, self.curve.false_nonmatches / self.curve.n_genuine
        return crossing(far, frr).index

    def _finite(self) -> FloatArray:
        if self.metric == "cllr":
            return self.llr
        return Calibration(np.empty(0, dtype=np.int64), self.genuine, self.impostor, self.llr).capped()

    def _auto(self, level: float, side: Side) -> tuple[float, float, str]:
        if self._reason is not None:
            return self._without_models(level, side)
        low, high = self._latent(level, side)
        if not (self.estimate > 0.0 and self.variance > 0.0):
            return low, high, self._fit.method
        quick = self._log_t(level, side)
        return min(low, quick[0]), min(max(high, quick[1]), self._top), f"{self._fit.method}+log-t"


def _ends(side: Side) -> tuple[Side, Side]:
    """The sides at which a lower and an upper limit are asked for."""
    return ("two-sided", "two-sided") if side == "two-sided" else ("lower", "upper")


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
    if not isinstance(curve, SortedCurve):
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
    return CostPoint(weights, at, k, int(curve.false_matches[k]), int(curve.false_nonmatches[k]))


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
    if not isinstance(curve, SortedCurve):
        upper = np.append(llr[1:], llr[-1])
        middle = (llr + upper) / 2.0
        ends = [cllr_of_masses(edge, genuine, impostor)[1:] for edge in (llr, upper)]
        error = abs(ends[0][0] - ends[1][0]) / 4.0 + abs(ends[0][1] - ends[1][1]) / 4.0
        llr, (value, own, other) = middle, cllr_of_masses(middle, genuine, impostor)
    return LogCost(curve, models, value, "cllr", own, other, llr, genuine, impostor, cell, error)


def min_cllr(curve: CurveTally, models: CurveModels) -> LogCost:
    """Cllr of the best increasing map of the scores (pool adjacent violators)."""
    _, genuine, impostor, cell = _cells(curve)
    best = calibrate(genuine.astype(np.int64), impostor.astype(np.int64))
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
