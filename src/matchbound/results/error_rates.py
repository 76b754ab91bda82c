"""FAR and FRR together, at one threshold or several, with what must be said about them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.counting.recount import Recount
from matchbound.counts.tally import Tally
from matchbound.data.failures import Failures
from matchbound.data.values import SURE, question
from matchbound.errors import UsageError, argument
from matchbound.metrics import Home
from matchbound.notes import Note
from matchbound.results.claims import Judged
from matchbound.results.failures import GeneralisedRate, GeneralisedRates
from matchbound.results.interval import few_identities, named, uneven_identities
from matchbound.results.linkage import HalfTotalError, LinkageMeasure, Recall, refuse_partial
from matchbound.results.rates import WEIGHTINGS, IdentityRate, Rate
from matchbound.show.numbers import count_text, percent, threshold_text
from matchbound.show.shown import Shown
from matchbound.stats.variance import unit_rate

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False, repr=False)
class ErrorRates(Judged, Shown):
    """FAR and FRR at one threshold."""

    home: ClassVar[Home] = "rates"
    threshold: float
    far: Rate
    frr: Rate
    n_identities: int
    distance: bool
    warnings: tuple[Note, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        rates = f"FAR {percent(self.far.estimate)}, FRR {percent(self.frr.estimate)}"
        return f"ErrorRates({rates} at threshold {threshold_text(self.threshold)}; {self.n_identities:,} identities)"

    @property
    def fmr(self) -> Rate:
        """The same as `far`, in the words of ISO/IEC 19795-1: the false match rate."""
        return self.far

    @property
    def fnmr(self) -> Rate:
        """The same as `frr`, in the words of ISO/IEC 19795-1: the false non-match rate."""
        return self.frr

    def flat(self, level: float = 0.95, method: str = "auto") -> dict[str, float]:
        """The rates and their limits by name, for loggers: ``far``, ``far_low``, ``far_high``, ``frr``, ….

        Parameters
        ----------
        level, method
            As for `Number.interval`.
        """
        values = {"threshold": self.threshold}
        for rate in (self.far, self.frr):
            if rate.comparisons:
                low, high = rate.interval(method, level)
                values |= {rate.metric: rate.estimate, f"{rate.metric}_low": low, f"{rate.metric}_high": high}
        return values

    def precision(self, prior: float | None = None) -> LinkageMeasure:
        """The share of matches that are genuine, at a prior of genuine comparisons.

        Precision = π(1−FRR)/(π(1−FRR) + (1−π)FAR). Without `prior`, π is the share of genuine comparisons in the
        sample, and the result belongs to a sample of this size.

        Parameters
        ----------
        prior
            The share of genuine comparisons, between 0 and 1; by default that of the sample.
        """
        return LinkageMeasure(self.far, self.frr, "precision", prior)

    def recall(self) -> Recall:
        """The share of genuine comparisons that match: 1 − FRR."""
        refuse_partial(self.frr.recount, "recall")
        return Recall(self.frr)

    def f1(self, prior: float | None = None) -> LinkageMeasure:
        """The harmonic mean of precision and recall, at a prior of genuine comparisons; see `precision`.

        Parameters
        ----------
        prior
            As for `precision`.
        """
        refuse_partial(self.frr.recount, "F1")
        return LinkageMeasure(self.far, self.frr, "f1", prior)

    def hter(self) -> HalfTotalError:
        """(FAR + FRR)/2; choose the threshold on other people: ``evaluate(data, threshold_from=dev)``."""
        return HalfTotalError(self.far, self.frr)

    def generalised(self, failures: Failures) -> GeneralisedRates:
        """GFAR and GFRR: the rates of these comparisons together with failures to enrol and to acquire.

        For a single attempt GFRR = 1 − (1−FTE)(1−FTA)(1−FNMR) and GFAR = (1−FTE)(1−FTA)·FMR, with FNMR and FMR what
        this library calls FRR and FAR.

        Parameters
        ----------
        failures
            Who failed to enrol, and which attempts gave no sample.
        """
        if self.far.weighting != "comparisons":
            pooled = argument("weighting", "comparisons")
            raise UsageError(f"GFAR and GFRR are of pooled comparisons; evaluate with {pooled}")
        gfar, gfrr = GeneralisedRate("gfar", self.far, failures), GeneralisedRate("gfrr", self.frr, failures)
        return GeneralisedRates(gfar, gfrr)

    def to_records(self) -> list[dict[str, Any]]:
        return [*self.far.to_records(), *self.frr.to_records()]


@dataclass(frozen=True, eq=False, repr=False)
class ErrorRatesSeries(Shown, Sequence[ErrorRates]):
    """FAR and FRR at several thresholds, in the order in which they were asked for."""

    rates: tuple[ErrorRates, ...]

    def __repr__(self) -> str:
        ends = ", ".join(threshold_text(rates.threshold) for rates in self.rates[:3])
        return f"ErrorRatesSeries({len(self.rates)} thresholds: {ends}{', …' if len(self.rates) > 3 else ''})"

    def to_records(self) -> list[dict[str, Any]]:
        return [record for rates in self.rates for record in rates.to_records()]

    @overload
    def __getitem__(self, index: int) -> ErrorRates: ...
    @overload
    def __getitem__(self, index: slice) -> ErrorRatesSeries: ...
    def __getitem__(self, index: int | slice) -> ErrorRates | ErrorRatesSeries:
        return ErrorRatesSeries(self.rates[index]) if isinstance(index, slice) else self.rates[index]

    def __len__(self) -> int:
        return len(self.rates)

    def __iter__(self) -> Iterator[ErrorRates]:
        return iter(self.rates)

    @property
    def thresholds(self) -> FloatArray:
        """The thresholds, shape (K,)."""
        return np.array([rates.threshold for rates in self.rates])

    @property
    def warnings(self) -> tuple[Note, ...]:
        """The warnings of all thresholds, each once."""
        return tuple(dict.fromkeys(text for rates in self.rates for text in rates.warnings))


def error_rates(
    tally: Tally, findings: Sequence[Note] = (), recount: Recount | None = None, weighting: str = "comparisons"
) -> tuple[ErrorRates, ...]:
    """Results at each threshold of a tally, with what must be said about them."""
    results = []
    kind = IdentityRate if named(weighting, WEIGHTINGS, "weighting") == "identities" else Rate
    for k, threshold in enumerate(tally.thresholds.tolist()):
        far, frr = kind("far", threshold, tally, k, recount), kind("frr", threshold, tally, k, recount)
        about_both = [note for note in _of_both(far, frr, tally.distance) if note not in findings]
        notes = (*findings, *_of_identities(tally), *about_both, *_of_rate(far), *_of_rate(frr))
        results.append(ErrorRates(threshold, far, frr, tally.n_identities, tally.distance, notes))
    return tuple(results)


def _of_identities(tally: Tally) -> list[Note]:
    notes = few_identities(tally.n_identities)
    alone = 0 if tally.instances is None else int(np.count_nonzero(tally.instances == 1))
    if alone:
        share = f"{count_text(alone)} of {count_text(tally.n_identities)}"
        notes.append(Note("one-instance", f"{share} identities have one instance: they count for FAR and not for FRR"))
    return notes


def _of_both(far: Rate, frr: Rate, distance: bool) -> list[Note]:
    """Whether the scores point the other way, or the threshold is one for other scores."""
    if not (far.comparisons and frr.comparisons):
        return []
    none = far.errors == 0 and frr.errors == frr.comparisons
    if none or (far.errors == far.comparisons and frr.errors == 0):
        matches = f"{'no' if none else 'every'} comparison matches at threshold {threshold_text(far.threshold)}"
        text = (
            f"{matches}, where a match is a score of {'at most' if distance else 'at least'} the threshold: is the "
            f"threshold meant for another kind of score? (see {argument('similarity')} and {argument('distance')})"
        )
        return [Note("other-scores", text)]
    spread = 0.5 * math.sqrt(1.0 / far.comparisons + 1.0 / frr.comparisons)
    if far.estimate - (1.0 - frr.estimate) > SURE * spread:
        return [question(distance)]
    if far.estimate > 0.5 and frr.estimate < 0.5:
        text = f"{percent(far.estimate)} of the impostor comparisons match at threshold {threshold_text(far.threshold)}"
        return [Note("other-scale", f"{text}: is the threshold meant for scores on another scale?")]
    return []


def largest_share(rate: Rate) -> float:
    """The share of the comparisons of a rate in which the identity with the most of them takes part."""
    return float(rate.tally.part(rate.metric).comparisons.max()) / rate.comparisons if rate.comparisons else 0.0


def _of_rate(rate: Rate) -> list[Note]:
    name = rate.metric.upper()
    if rate.comparisons == 0:
        return [Note("no-comparisons", f"no {rate.kind.comparisons} comparisons: {name} is not defined")]
    notes: list[Note] = []
    if rate.weighting == "comparisons":
        once = unit_rate(rate.tally.genuine, rate.index).estimate if rate.metric == "frr" else None
        notes += uneven_identities(rate.metric, rate.tally.part(rate.metric).comparisons, once)
    if rate.errors == 0:
        text = f"no {rate.kind.error} among {count_text(rate.comparisons)} comparisons"
        notes.append(Note("no-errors", f"{text}: {name} is not zero, it is below the upper limit"))
    elif rate.errors == rate.comparisons:
        text = f"every one of {count_text(rate.comparisons)} comparisons erred"
        notes.append(Note("all-errors", f"{text}: {name} is at least the lower limit; nothing more is known"))
    elif rate.variance < 0.0:
        text = (
            f"the variance estimate of {name} is negative (too few identities share errors): Wilson falls back on "
            f"{rate.floor} effective comparisons, and a Wald interval has no width"
        )
        notes.append(Note("negative-variance", text))
    return notes
