"""Numbers made of FAR and FRR at one threshold: precision, recall, F1 and the half total error rate."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import PairTable, Tally
from matchbound.errors import DataError, argument
from matchbound.notes import PARTIAL_LABELS, Note
from matchbound.results.interval import check_prior, opposite
from matchbound.results.latent_pair import Independent
from matchbound.results.number import Ask, CannotFit, Limits, Number, Rule, labels_notes
from matchbound.results.rates import Rate, through_rate
from matchbound.stats.budget import Operating, shared_limits
from matchbound.stats.costs import log_t, logit_t
from matchbound.stats.dyadic import DyadicSums, effective_number
from matchbound.stats.intervals import t_quantile
from matchbound.stats.linkage import LinkageCounts, f1_of, f1_sums, precision_of, precision_sums

if TYPE_CHECKING:
    from matchbound.counting.recount import Recount
    from matchbound.stats.latent import LatentModel


def linkage_counts(tally: Tally, k: int) -> LinkageCounts:
    """Decisions at one threshold of a tally."""
    impostor, genuine = tally.impostor, tally.genuine
    return LinkageCounts(
        genuine.errors[k],
        genuine.comparisons,
        impostor.errors[k],
        impostor.comparisons,
        _partners(tally),
        float(impostor.sum_nn[k]) / 2.0,
        float(impostor.sum_nm[k]) / 2.0,
        float(impostor.sum_mm) / 2.0,
    )


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


def _latent(number: OfBothRates, ask: Ask) -> Limits:
    """The latent models of FAR and FRR, which share one budget of error (without identities: Wilson's limits)."""
    from matchbound.results import latent

    rates = (number.far, number.frr)
    models: list[LatentModel | Independent] = []
    for rate in rates:
        if rate.recount is not None and rate.recount.anonymous:
            models.append(Independent(rate.units))
            continue
        reason = latent.why_not(rate.recount)
        if reason is not None:
            raise CannotFit(reason)
        models.append(rate.latent_model())
    far, frr = models

    def value(p: FloatArray, q: FloatArray) -> FloatArray:
        return np.nan_to_num(number.value(p[0], q[0]), nan=0.0)

    low, high = shared_limits(
        far,
        frr,
        [Operating(number.far.units_erred, number.frr.units_erred)],
        (far.deviate(ask.level, ask.side), frr.deviate(ask.level, ask.side)),
        value,
        rising=number.rising,
    )
    return Limits(low, high, "naive" if isinstance(far, Independent) else "latent")


def _both_rates(number: OfBothRates, ask: Ask) -> Limits:
    """The default limits of FAR and FRR, both at once: careful, and never of width zero."""
    side = ask.side if number.rising else opposite(ask.side)
    far, frr = (rate.interval(level=ask.level, side=side) for rate in (number.far, number.frr))
    ends = ((far.low, frr.low), (far.high, frr.high))
    low, high = (
        float(np.nan_to_num(number.value(np.array(p), np.array(q)), nan=0.0))
        for p, q in (ends if number.rising else ends[::-1])
    )
    return Limits(low, high, far.method)


def _logit_t(number: LinkageMeasure, ask: Ask) -> Limits:
    """t limits on the logit scale with the dyadic variance."""
    if not number.logit_variance > 0.0:
        raise CannotFit(
            Note(
                "no-width",
                f"{number.metric} = {number.estimate:g}: on the logit scale it has no finite value, and so no logit-t "
                "interval. Use method='auto'",
            )
        )
    quantile = t_quantile(ask.tail, number.effective_identities - 1.0)
    return Limits(*logit_t(number.estimate, number.logit_variance, quantile))


def _log_t(number: OfBothRates, ask: Ask) -> Limits:
    """t limits on the log scale with the dyadic variance."""
    if not (number.estimate > 0.0 and number.variance > 0.0):
        raise CannotFit(Note("no-width", "no comparison erred, so that log-t has no width. Use method='auto'"))
    low, high = log_t(number.estimate, number.variance, t_quantile(ask.tail, number.effective_identities - 1.0))
    return Limits(low, min(high, 1.0))


LATENT = Rule("latent", _latent)
BOTH_RATES = Rule("both rates", _both_rates, hidden=True)


class AtThreshold(Number):
    """A number made of FRR, and perhaps of FAR, at one threshold."""

    frr: Rate

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.metric}={self.estimate:.6g})"

    @property
    def threshold(self) -> float:
        """The decision threshold, in the units of the scores."""
        return self.frr.threshold

    @property
    def variance(self) -> float:
        """Variance of the estimate."""
        raise NotImplementedError

    def _fields(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "errors": None,
            "comparisons": None,
            "identities": self.frr.tally.n_identities,
            "variance": self.variance,
            "effective_n": None,
            "design_effect": None,
        }

    def _defined(self) -> bool:
        return not math.isnan(self.estimate)


class OfBothRates(AtThreshold):
    """A number that rises, or falls, with both FAR and FRR."""

    far: Rate
    rising: ClassVar[bool] = True

    def value(self, far: FloatArray, frr: FloatArray) -> FloatArray:
        """The number at rates of any shape."""
        raise NotImplementedError

    @property
    def estimate(self) -> float:
        """Its value."""
        return float(self.value(np.array(self.far.estimate), np.array(self.frr.estimate)))

    @cached_property
    def counts(self) -> LinkageCounts:
        """The decisions behind it."""
        return linkage_counts(*self.far.counted)

    @cached_property
    def effective_identities(self) -> float:
        """T²/Σg_i²: how many equally large identities would weigh as much."""
        return effective_number(self.counts.genuine)


@dataclass(frozen=True, eq=False, repr=False)
class LinkageMeasure(OfBothRates):
    """Precision or F1 at one threshold; see `ErrorRates.precision` and `ErrorRates.f1`.

    metric
        ``"precision"`` or ``"f1"``.
    far, frr
        The rates it is made of.
    given_prior
        The prior that was asked for; None for the sample's own prevalence.
    """

    metric: Literal["precision", "f1"]
    far: Rate = field(repr=False)
    frr: Rate = field(repr=False)
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
        """Its name in tables."""
        return self.metric if self.given_prior is None else f"{self.metric}@prior={self.given_prior:g}"

    def value(self, far: FloatArray, frr: FloatArray) -> FloatArray:
        """Precision or F1 at rates of any shape; NaN for the precision of a threshold at which nothing matches."""
        return (precision_of if self.metric == "precision" else f1_of)(far, frr, self.prior)

    @cached_property
    def _sums(self) -> DyadicSums | None:
        counts = self.counts
        wrong = counts.false_matches + (counts.missed if self.metric == "f1" else 0.0)
        if counts.hits <= 0.0 or wrong <= 0.0:
            return None
        if self.metric == "precision":
            return precision_sums(counts, self.given_prior is None)
        return f1_sums(counts, self.given_prior)

    @property
    def logit_variance(self) -> float:
        """The dyadic variance of the logit of the estimate; NaN where the estimate is 0, 1 or not defined."""
        return math.nan if self._sums is None else self._sums.corrected(self.effective_identities)

    @property
    def variance(self) -> float:
        """Variance of the estimate: that of its logit times (estimate·(1 − estimate))²; NaN where that is."""
        return self.logit_variance * (self.estimate * (1.0 - self.estimate)) ** 2

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know about the number."""
        about_labels = labels_notes(self.far.recount)
        if self.given_prior is not None:
            return about_labels
        return (
            *about_labels,
            Note(
                "own-prior",
                f"{self.metric} at the sample's own share of genuine comparisons, {self.prior:.3g}, holds for a sample "
                "of this size: impostor pairs grow with the square of the number of identities. Give a prior to "
                "compare sets",
            ),
        )

    def _fields(self) -> dict[str, Any]:
        return {**super()._fields(), "prior": self.prior}

    def _must_be_defined(self) -> None:
        if math.isnan(self.estimate):
            raise DataError(f"nothing matches at threshold {self.threshold:g}, so that precision is not defined")


@dataclass(frozen=True, eq=False, repr=False)
class HalfTotalError(OfBothRates):
    """HTER = (FAR + FRR)/2 at one threshold, chosen on other people (a development set); see `ErrorRates.hter`.

    far, frr
        The two rates.
    """

    far: Rate = field(repr=False)
    frr: Rate = field(repr=False)
    metric: ClassVar[str] = "hter"
    rules: ClassVar[tuple[Rule, ...]] = (LATENT, Rule("log-t", _log_t), BOTH_RATES)
    defaults: ClassVar[tuple[str, ...]] = ("latent", "both rates")

    def value(self, far: FloatArray, frr: FloatArray) -> FloatArray:
        """(FAR + FRR)/2."""
        return (far + frr) / 2.0

    @cached_property
    def variance(self) -> float:
        """The dyadic variance of the estimate, corrected for the bias of the plug-in."""
        counts = self.counts
        q, p = counts.missed / counts.total, counts.false_matches / counts.impostor_total
        own = (counts.misses - q * counts.genuine) / (2.0 * counts.total)
        shared = (counts.matched - p * counts.impostor) / (2.0 * counts.impostor_total)
        square = (counts.nn - 2.0 * p * counts.nm + p * p * counts.mm) / (2.0 * counts.impostor_total) ** 2
        return DyadicSums(own, shared, max(square, 0.0)).corrected(self.effective_identities)


def _one_minus(method: str, recall: Recall, ask: Ask) -> Limits:
    frr = recall.frr.interval(method, ask.level, side=opposite(ask.side), **ask.options)
    return Limits(1.0 - frr.high, 1.0 - frr.low, frr.method, frr.notes, frr.details)


@dataclass(frozen=True, eq=False, repr=False)
class Recall(AtThreshold):
    """The share of genuine comparisons that match: 1 − FRR, with FRR's intervals mirrored; see `ErrorRates.recall`."""

    frr: Rate = field(repr=False)
    metric: ClassVar[str] = "recall"
    rules: ClassVar[tuple[Rule, ...]] = through_rate(_one_minus)
    defaults: ClassVar[tuple[str, ...]] = ("default",)

    @property
    def estimate(self) -> float:
        """1 − FRR."""
        return 1.0 - self.frr.estimate

    @property
    def variance(self) -> float:
        """That of FRR."""
        return self.frr.variance

    def _fields(self) -> dict[str, Any]:
        return {**super()._fields(), "prior": None}
