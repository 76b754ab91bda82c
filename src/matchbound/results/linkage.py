"""Numbers made of FAR and FRR: precision, recall, F1 and the half total error rate at a threshold and along a curve.

Their limits, and those of costs (`matchbound.results.costs`), come from the limits of both rates, which share one
budget of error: `OfBothRates.latent_limits`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.recount import Recount
from matchbound.counts.curve import CurveTally
from matchbound.counts.tally import PairTable, Tally
from matchbound.errors import DataError, argument
from matchbound.notes import PARTIAL_LABELS, Note
from matchbound.results import latent
from matchbound.results.interval import check_prior, opposite
from matchbound.results.latent import CurveModels, Independent, PairFit
from matchbound.results.number import Ask, CannotFit, Limits, Number, Rule, counted_fields, labels_notes
from matchbound.results.rates import Rate, through_rate
from matchbound.show.shown import Shown
from matchbound.stats.budget import banded_limits, shared_limits
from matchbound.stats.costs import log_t, logit_t
from matchbound.stats.curve.rates import crossing
from matchbound.stats.dyadic import DyadicSums, effective_number
from matchbound.stats.intervals import t_quantile
from matchbound.stats.linkage import LinkageCounts, f1_of, f1_sums, half_sums, precision_of, precision_sums

# Thresholds of a curve of precision, recall and F1.
POINTS = 80


class OfBothRates(Number):
    """A number that rises, or falls, with both FAR and FRR."""

    rising: ClassVar[bool] = True

    def value(self, far: FloatArray, frr: FloatArray) -> FloatArray:
        """The number at rates of shape (P, …), P the thresholds that it depends on."""
        raise NotImplementedError

    @property
    def fit(self) -> PairFit:
        """The models of both rates; CannotFit where there are none."""
        raise NotImplementedError

    @property
    def operating(self) -> tuple[FloatArray, FloatArray]:
        """Impostor comparisons that match and genuine ones that do not at each of the P thresholds, shape (P,)."""
        raise NotImplementedError

    @property
    def effective_identities(self) -> float:
        """T²/Σg_i²: how many equally large identities would weigh as much."""
        raise NotImplementedError

    @cached_property
    def sums(self) -> DyadicSums:
        """The residuals of comparisons, by identity."""
        raise NotImplementedError

    @property
    def variance(self) -> float:
        """The dyadic variance of the estimate, corrected for the bias of the plug-in."""
        return self.sums.corrected(self.effective_identities)

    def latent_limits(self, ask: Ask) -> tuple[float, float]:
        """The worst over all ways to share the error between the rates."""
        fit = self.fit
        deviates = fit.deviates(ask.level, ask.side)
        low, high = shared_limits((fit.far, fit.frr), self.operating, deviates, self.value, rising=self.rising)
        return low, min(high, self.ends[1])


def _latent(number: OfBothRates, ask: Ask) -> Limits:
    return Limits(*number.latent_limits(ask), number.fit.method)


def log_t_limits(number: OfBothRates, ask: Ask) -> Limits:
    """estimate·exp(±t·sd/estimate): quick, and too narrow where a few people make most errors."""
    if not (number.estimate > 0.0 and number.variance > 0.0):
        text = f"{number.label} = {number.estimate:g}: the estimate or its variance is zero, and log-t has no width"
        raise CannotFit(Note("no-width", f"{text}. Use method='auto'"))
    return Limits(*log_t(number.estimate, number.variance, t_quantile(ask.tail, number.effective_identities - 1.0)))


LATENT = Rule("latent", _latent)
LOG_T = Rule("log-t", log_t_limits, warns=True)
WARNING_LATENT = replace(LATENT, warns=True)


def linkage_counts(tally: Tally, k: int) -> LinkageCounts:
    impostor, genuine = tally.impostor, tally.genuine
    squares = (float(value) / 2.0 for value in (impostor.sum_nn[k], impostor.sum_nm[k], impostor.sum_mm))
    by_identity = (genuine.errors[k], genuine.comparisons, impostor.errors[k], impostor.comparisons)
    return LinkageCounts(*by_identity, _partners(tally), *squares)


def _partners(tally: Tally) -> IntArray:
    """With how many other identities each was compared; where pairs were not kept, with all that take part."""
    compared, size = tally.impostor.compared, tally.n_identities
    if isinstance(compared, PairTable):
        ends = np.bincount(compared.first, minlength=size) + np.bincount(compared.second, minlength=size)
        return ends.astype(np.int64)
    taking_part = tally.impostor.comparisons > 0
    return np.where(taking_part, np.count_nonzero(taking_part) - 1, 0).astype(np.int64)


def refuse_partial(recount: Recount | None, what: str) -> None:
    """Raise where the labels cover a part of the scored pairs: true pairs without a label are not counted as missed."""
    if any(note.code == PARTIAL_LABELS for note in labels_notes(recount)):
        raise DataError(
            f"{what} needs every true pair, and the labels cover a part of the scored pairs; label all of them, give a "
            f"table of clusters, or say {argument('labels', 'complete')} if every true pair has a label"
        )


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


def _log_t(number: HalfTotalError, ask: Ask) -> Limits:
    limits = log_t_limits(number, ask)
    return Limits(limits.low, min(limits.high, 1.0))


BOTH_RATES = Rule("both rates", _both_rates, hidden=True)


@dataclass(frozen=True, eq=False, repr=False)
class AtThreshold(OfBothRates):
    """A number made of FAR and FRR at one threshold."""

    far: Rate = field(repr=False)
    frr: Rate = field(repr=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label}={self.estimate:.6g})"

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
    def fit(self) -> PairFit:
        """The latent models of both rates; without identities, those of independent comparisons."""
        recount = self.far.recount
        if recount is not None and recount.anonymous:
            return PairFit(Independent(self.far.units), Independent(self.frr.units))
        reason = latent.why_not(recount)
        if reason is not None:
            raise CannotFit(reason)
        return PairFit(self.far.latent_model(), self.frr.latent_model())

    @property
    def operating(self) -> tuple[FloatArray, FloatArray]:
        return np.array([self.far.units_erred]), np.array([self.frr.units_erred])

    @cached_property
    def counts(self) -> LinkageCounts:
        return linkage_counts(*self.far.counted)

    @cached_property
    def effective_identities(self) -> float:
        return effective_number(self.counts.genuine)

    def _fields(self) -> dict[str, Any]:
        return counted_fields(self.threshold, self.far.tally.n_identities, self.variance)

    def _defined(self) -> bool:
        return not math.isnan(self.estimate)


@dataclass(frozen=True, eq=False, repr=False)
class LinkageMeasure(AtThreshold):
    """Precision or F1 at one threshold; `given_prior` is None for the sample's own share of genuine comparisons."""

    metric: Literal["precision", "f1"]
    given_prior: float | None = None
    rules: ClassVar[tuple[Rule, ...]] = (LATENT, Rule("logit-t", _logit_t), BOTH_RATES)
    defaults: ClassVar[tuple[str, ...]] = ("latent", "logit-t", "both rates")
    rising: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.given_prior is not None:
            check_prior(self.given_prior)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label}={self.estimate:.6g}, prior={self.prior:.4g})"

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
        if self.metric == "precision":
            return precision_sums(self.counts, self.given_prior is None)
        return f1_sums(self.counts, self.given_prior)

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
        return half_sums(self.counts)


def _one_minus(method: str, recall: Recall, ask: Ask) -> Limits:
    frr = recall.frr.interval(method, ask.level, side=opposite(ask.side), **ask.options)
    return Limits(1.0 - frr.high, 1.0 - frr.low, frr.method, frr.notes, frr.details)


@dataclass(frozen=True, eq=False, repr=False)
class Recall(Number):
    """The share of genuine comparisons that match: 1 − FRR, with FRR's intervals mirrored; see `ErrorRates.recall`."""

    frr: Rate = field(repr=False)
    metric: ClassVar[str] = "recall"
    rules: ClassVar[tuple[Rule, ...]] = through_rate(_one_minus)
    defaults: ClassVar[tuple[str, ...]] = ("default",)

    def __repr__(self) -> str:
        return f"Recall(recall={self.estimate:.6g})"

    @property
    def estimate(self) -> float:
        return 1.0 - self.frr.estimate

    @property
    def threshold(self) -> float:
        return self.frr.threshold

    @property
    def variance(self) -> float:
        return self.frr.variance

    def _fields(self) -> dict[str, Any]:
        return {**counted_fields(self.threshold, self.frr.tally.n_identities, self.variance), "prior": None}

    def _defined(self) -> bool:
        return self.frr.comparisons > 0


@dataclass(frozen=True, eq=False)
class Along:
    """A number at each of P thresholds with pointwise limits; float64 arrays, shape (P,) each."""

    estimate: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class LinkageCurve(Shown):
    """Precision, recall and F1 (at `prior`) with pointwise limits, thresholds strictest first; shapes (P,)."""

    thresholds: FloatArray
    precision: Along
    recall: Along
    f1: Along
    prior: float
    level: float
    method: str


def linkage_curve(models: CurveModels, prior: float | None, level: float, points: int = POINTS) -> LinkageCurve:
    """Precision, recall and F1 at thresholds spread over genuine scores and over the tail of impostor scores."""
    curve = models.curve
    share = curve.n_genuine / (curve.n_genuine + curve.n_impostor) if prior is None else check_prior(prior)
    k = _spread(curve, points)
    matched, missed = curve.false_matches[k].astype(np.float64), curve.false_nonmatches[k].astype(np.float64)
    far, frr = curve.far[k], curve.frr[k]
    fit = models.at(crossing(curve.far, curve.frr).index)
    values = precision_of(far, frr, share), 1.0 - frr, f1_of(far, frr, share)
    precision, recall, f1 = (Along(value, value.copy(), value.copy()) for value in values)
    most = frr > 0.5  # the model of FRR is one of matches where most comparisons err, as for a single threshold
    for part, own in ((~most, fit), (most, models.at(int(k[most][-1])) if most.any() else fit)):
        if not part.any():
            continue
        tables = own.tables(level, "two-sided")
        x, e = matched[part], missed[part]
        limits = (
            (precision, banded_limits(tables, x, e, lambda p, q: precision_of(p, q, share))),
            (recall, (1.0 - tables.frr[1].at(e)[-1], 1.0 - tables.frr[0].at(e)[-1])),
            (f1, banded_limits(tables, x, e, lambda p, q: f1_of(p, q, share))),
        )
        for band, (low, high) in limits:
            band.low[part] = np.minimum(low, band.estimate[part])
            band.high[part] = np.maximum(high, band.estimate[part])
    return LinkageCurve(curve.thresholds[k], precision, recall, f1, share, level, fit.method)


def _spread(curve: CurveTally, points: int) -> IntArray:
    """Points of a curve at which something matches: even in genuine scores, geometric in impostor ones."""
    by_recall = np.searchsorted(-curve.false_nonmatches, -np.linspace(curve.n_genuine - 1, 0, points // 2))
    by_tail = np.searchsorted(curve.false_matches, np.geomspace(1.0, max(curve.n_impostor / 2.0, 1.0), points // 2))
    found: IntArray = np.union1d(by_recall, by_tail)
    return found[(found > 0) & (found < curve.thresholds.size)]
