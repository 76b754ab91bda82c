"""Precision, recall and F1 of decisions at a threshold, with intervals that know which comparisons share people."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import PairTable, Tally
from matchbound.errors import DataError
from matchbound.notes import PARTIAL_LABELS, SAID_COMPLETE, Note
from matchbound.results.claims import Claimable
from matchbound.results.interval import Interval, Side, check_prior, named, one_side, opposite, tail_of
from matchbound.results.latent_pair import Independent
from matchbound.show.costs import linkage_record
from matchbound.stats.budget import Operating, shared_limits
from matchbound.stats.clusters import DyadicSums, corrected_variance
from matchbound.stats.costs import logit_t
from matchbound.stats.intervals import t_quantile
from matchbound.stats.linkage import LinkageCounts, f1_of, f1_sums, precision_of, precision_sums
from matchbound.stats.variance import effective_identities

if TYPE_CHECKING:
    from matchbound.counting.recount import Recount
    from matchbound.results.rates import Rate
    from matchbound.stats.latent import LatentModel

METHODS = ("auto", "latent", "logit-t")


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


def labels_notes(recount: Recount | None) -> tuple[Note, ...]:
    """What data say of labels that cover a part of the scored pairs; it is said of every number made from them."""
    notes = getattr(getattr(recount, "source", None), "notes", ())
    return tuple(note for note in notes if note.code in (PARTIAL_LABELS, SAID_COMPLETE))


def refuse_partial(recount: Recount | None, what: str) -> None:
    """Raise where the labels cover a part of the scored pairs: true pairs without a label are not counted as missed."""
    if any(note.code == PARTIAL_LABELS for note in labels_notes(recount)):
        raise DataError(
            f"{what} needs every true pair, and the labels cover a part of the scored pairs; label all of them, give a "
            "table of clusters, or say labels='complete' if every true pair has a label"
        )


class AtThreshold(Claimable):
    """A number made of FRR, and perhaps of FAR, at one threshold."""

    frr: Rate

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.metric}={self.estimate:.6g})"

    @property
    def metric(self) -> str:
        """What it is, such as ``"recall"``."""
        raise NotImplementedError

    @property
    def estimate(self) -> float:
        """Its value."""
        raise NotImplementedError

    @property
    def threshold(self) -> float:
        """The decision threshold, in the units of the scores."""
        return self.frr.threshold

    def to_records(self) -> list[dict[str, Any]]:
        """The number with its default interval."""
        return [linkage_record(self)]


@dataclass(frozen=True, eq=False, repr=False)
class LinkageMeasure(Claimable):
    """Precision or F1 at one threshold.

    metric
        ``"precision"`` or ``"f1"``.
    far, frr
        The rates it is made of.
    given_prior
        The prior that was asked for; None for the sample's own prevalence.

    See Also
    --------
    ErrorRates.precision, ErrorRates.f1

    Examples
    --------
    >>> import matchbound as mb
    >>> rates = mb.evaluate(mb.demo_data(), 0.6)
    >>> round(rates.precision(prior=0.01).estimate, 3)
    0.904
    """

    metric: Literal["precision", "f1"]
    far: Rate = field(repr=False)
    frr: Rate = field(repr=False)
    given_prior: float | None = None

    def __post_init__(self) -> None:
        if self.given_prior is not None:
            check_prior(self.given_prior)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label}={self.estimate:.6g}, prior={self.prior:.4g})"

    @cached_property
    def counts(self) -> LinkageCounts:
        """The decisions behind it."""
        return linkage_counts(self.far.tally, self.far.index)

    @property
    def threshold(self) -> float:
        """The decision threshold, in the units of the scores."""
        return self.far.threshold

    @property
    def prior(self) -> float:
        """The share of genuine comparisons that it is computed for; the sample's own where none was given."""
        return self.counts.prevalence if self.given_prior is None else float(self.given_prior)

    @property
    def label(self) -> str:
        """Its name in tables."""
        return self.metric if self.given_prior is None else f"{self.metric}@prior={self.given_prior:g}"

    @property
    def estimate(self) -> float:
        """Its value; NaN for the precision of a threshold at which nothing matches."""
        return float(self._value(np.array(self.far.estimate), np.array(self.frr.estimate)))

    def _value(self, far: FloatArray, frr: FloatArray) -> FloatArray:
        made = precision_of if self.metric == "precision" else f1_of
        return made(far, frr, self.prior)

    @cached_property
    def effective_identities(self) -> float:
        """T²/Σg_i²: how many equally large identities would weigh as much."""
        return effective_identities(self.counts.genuine)

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
        return math.nan if self._sums is None else corrected_variance(self._sums, self.effective_identities)

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

    def interval(self, method: str = "auto", level: float = 0.95, *, side: Side = "two-sided") -> Interval:
        """A confidence interval.

        Parameters
        ----------
        method
            ``"auto"`` and ``"latent"``: the latent models of FAR and FRR, which share one budget of error;
            ``"logit-t"``: t limits on the logit scale with the dyadic variance. Where the models cannot be fitted,
            ``"auto"`` is ``"logit-t"`` and says so.
        level
            The confidence level.
        side
            ``"two-sided"``, or ``"upper"`` / ``"lower"`` for a one-sided bound at the same level.
        """
        tail = tail_of(level, side)
        name = named(method, METHODS)
        if math.isnan(self.estimate):
            raise DataError(f"nothing matches at threshold {self.threshold:g}, so that precision is not defined")
        notes: tuple[Note, ...] = self.notes
        if name == "auto" and self._reason is not None:
            notes = (*notes, self._reason)
            low, high, name = self._without_models(level, side)
        elif name == "auto":
            try:
                low, high = self._latent(level, side)
                name = "naive" if self._anonymous else "latent"
            except DataError as error:
                told = Note("no-model", f"the latent model cannot be fitted ({error}); logit-t was used")
                name, notes = "logit-t", (*notes, told)
                low, high = self._logit_t(tail)
        elif name == "latent":
            low, high = self._latent(level, side)
        else:
            low, high = self._logit_t(tail)
        return Interval(*one_side(low, high, side), level, name, side, notes)

    def to_records(self) -> list[dict[str, Any]]:
        """The number with its default interval."""
        return [linkage_record(self)]

    def _logit_t(self, tail: float) -> tuple[float, float]:
        variance = self.logit_variance
        if not variance > 0.0:
            raise DataError(
                f"{self.metric} = {self.estimate:g}: on the logit scale it has no finite value, and so no logit-t "
                "interval. Use method='auto'"
            )
        return logit_t(self.estimate, variance, t_quantile(tail, self.effective_identities - 1.0))

    def _without_models(self, level: float, side: Side) -> tuple[float, float, str]:
        """logit-t, or where that is not defined the default limits of FAR and FRR, both at once."""
        if self.logit_variance > 0.0:
            return *self._logit_t(tail_of(level, side)), "logit-t"
        far, frr = (rate.interval(level=level, side=opposite(side)) for rate in (self.far, self.frr))
        low, high = (
            float(np.nan_to_num(self._value(np.array(p), np.array(q)), nan=0.0))
            for p, q in ((far.high, frr.high), (far.low, frr.low))
        )
        return low, high, "wilson"

    @cached_property
    def _reason(self) -> Note | None:
        """Why the latent models cannot be fitted, or None where they can (or where nobody is known)."""
        from matchbound.results import latent

        if self._anonymous:
            return None
        found = [latent.why_not(rate.metric, rate.tally, rate.errors, rate.recount) for rate in (self.far, self.frr)]
        return found[0] or found[1]

    @property
    def _anonymous(self) -> bool:
        return self.far.recount is not None and self.far.recount.anonymous

    def _latent(self, level: float, side: Side) -> tuple[float, float]:
        far: LatentModel | Independent
        frr: LatentModel | Independent
        if self._anonymous:
            far, frr = Independent(self.far.comparisons), Independent(self.frr.comparisons)
        else:
            far, frr = self.far.latent_model(), self.frr.latent_model()
        errors = [Operating(self.far.errors, self.frr.errors)]
        deviates = far.deviate(level, side), frr.deviate(level, side)

        def value(p: FloatArray, q: FloatArray) -> FloatArray:
            return np.nan_to_num(self._value(p[0], q[0]), nan=0.0)

        return shared_limits(far, frr, errors, deviates, value, rising=False)


@dataclass(frozen=True, eq=False, repr=False)
class Recall(AtThreshold):
    """The share of genuine comparisons that match: 1 − FRR, with FRR's intervals mirrored.

    See Also
    --------
    ErrorRates.recall, LinkageMeasure

    Examples
    --------
    >>> import matchbound as mb
    >>> rates = mb.evaluate(mb.demo_data(), 0.6)
    >>> round(rates.recall().estimate, 3)
    0.871
    """

    frr: Rate = field(repr=False)

    @property
    def metric(self) -> str:
        """``"recall"``."""
        return "recall"

    @property
    def estimate(self) -> float:
        """1 − FRR."""
        return 1.0 - self.frr.estimate

    @property
    def variance(self) -> float:
        """That of FRR."""
        return self.frr.variance

    def interval(
        self, method: str | None = None, level: float = 0.95, *, side: Side = "two-sided", **options: Any
    ) -> Interval:
        """1 minus the limits of FRR; see `Rate.interval` for the methods.

        Parameters
        ----------
        method, options
            As for `Rate.interval`.
        level
            The confidence level.
        side
            ``"two-sided"``, or ``"upper"`` / ``"lower"`` for a one-sided bound at the same level.
        """
        if method is not None:
            options["method"] = method
        made = self.frr.interval(level=level, side=opposite(side), **options)
        return Interval(1.0 - made.high, 1.0 - made.low, level, made.method, side, made.notes)
