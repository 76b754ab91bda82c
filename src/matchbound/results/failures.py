"""Generalised rates: GFAR and GFRR, which count failures to enrol and to acquire beside errors of comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from matchbound.arraytypes import IntArray
from matchbound.data.failures import Failures
from matchbound.data.labels import as_text
from matchbound.errors import DataError
from matchbound.notes import Note
from matchbound.results.interval import Side
from matchbound.results.number import Ask, Limits, Number, Rule, counted_fields
from matchbound.results.rates import Rate, through_rate
from matchbound.show.shown import Shown
from matchbound.stats import failures as stats
from matchbound.stats.failures import Attempts, gfar_limits, gfrr_limits, gfrr_mover, gfrr_of

FEW_ERRORS = 10
# Below this FNMR, and with fewer errors than `FEW_ERRORS`, GFRR takes FNMR's own limits.
RARE = 0.01
NOT_BY_PERSON = Note(
    "not-by-person",
    "it is not known who failed: attempts count as independent of each other and of the comparisons, and the interval "
    "may be too narrow. A table of attempts by person tells",
)


def _limits(method: str, number: GeneralisedRate, ask: Ask) -> Limits:
    """Limits from those of FMR (FNMR) by a method.

    GFRR: Wilson's formula with the variance of influences added up by person and Student's t; with few false
    non-matches, FNMR's own limits take the place of its term. GFAR: FMR's limits times (1−FTE)(1−FTA), widened by the
    uncertainty of both on the log scale (MOVER).
    """
    rate, people = number.rate, number._people
    few = bool(rate.errors) and rate.errors < FEW_ERRORS and rate.estimate < RARE
    if number.metric == "gfrr" and not few:
        low, high = gfrr_limits(number.estimate, number.variance, people, ask.tail)
        return Limits(low, high, "wilson, influences by person")
    sides: tuple[Side, Side] = ("two-sided", "two-sided") if ask.side == "two-sided" else ("lower", "upper")
    lower, upper = (rate.interval(method, ask.level, side=side, **ask.options) for side in sides)
    own = (lower.low, upper.high)
    if number.metric == "gfar":
        low, high = gfar_limits(rate.estimate, own, number._kept, number._square, people, ask.tail)
    else:
        low, high = gfrr_mover(number.estimate, rate.estimate, own, number._square, people, ask.tail)
    return Limits(low, high, f"{upper.method}, MOVER")


@dataclass(frozen=True, eq=False, repr=False)
class GeneralisedRate(Number):
    """GFAR = (1−FTE)(1−FTA)·FMR or GFRR = 1 − (1−FTE)(1−FTA)(1−FNMR), for a single attempt."""

    metric: str
    rate: Rate = field(repr=False)
    failures: Failures = field(repr=False)
    rules: ClassVar[tuple[Rule, ...]] = through_rate(_limits)
    defaults: ClassVar[tuple[str, ...]] = ("default",)

    def __repr__(self) -> str:
        return f"GeneralisedRate({self.metric}={self.estimate:.6g}, FTE={self.fte:.4g}, FTA={self.fta:.4g})"

    @property
    def threshold(self) -> float:
        return self.rate.threshold

    @property
    def fte(self) -> float:
        """The failure-to-enrol rate."""
        return self.failures.fte

    @property
    def fta(self) -> float:
        """The failure-to-acquire rate."""
        return self.failures.fta

    @property
    def _kept(self) -> float:
        return (1.0 - self.fte) * (1.0 - self.fta)

    @property
    def estimate(self) -> float:
        if self.metric == "gfrr":
            return gfrr_of(self.fte, self.fta, self.rate.estimate)
        return self._kept * self.rate.estimate

    @cached_property
    def _attempts(self) -> Attempts | None:
        """What each person did; None where only totals are known."""
        failures = self.failures
        return Attempts(failures.enrolled, failures.tries, failures.acquired) if failures.by_person else None

    @cached_property
    def _compared(self) -> tuple[IntArray, IntArray]:
        """(errors, comparisons) of each person in the table of failures."""
        genuine, labels = self.rate.tally.genuine, as_text(self.rate.tally.identities).tolist()
        place = {label: k for k, label in enumerate(as_text(self.failures.identities).tolist())}
        errors, compared = np.zeros((2, len(place)), dtype=np.int64)
        for i in np.flatnonzero(genuine.comparisons).tolist():
            if labels[i] not in place:
                who = f"identity {labels[i]} was compared and is not among the failures"
                raise DataError(f"{who}; list everybody who tried to enrol")
            errors[place[labels[i]]] = genuine.errors[self.rate.index, i]
            compared[place[labels[i]]] = genuine.comparisons[i]
        return errors, compared

    @cached_property
    def _square(self) -> float:
        """The variance of log((1−FTE)(1−FTA))."""
        if self._attempts is None:
            return stats.square_of_totals(*(self.failures.counts or ()))
        psi, n = self._attempts.influence(), self._attempts.people
        return float(psi @ psi) * n / max(n - 1, 1)

    @property
    def _people(self) -> int:
        return self.rate.n_identities if self._attempts is None else self._attempts.people

    @cached_property
    def variance(self) -> float:
        """Variance of the estimate; what each person adds to the three rates is added up before it is squared."""
        kept = self._kept
        if self.metric == "gfar":
            return kept**2 * (max(self.rate.variance, 0.0) + self.rate.estimate**2 * self._square)
        if self._attempts is not None:
            return stats.gfrr_variance(self._attempts, *self._compared)
        q = self.rate.estimate
        return (kept * (1.0 - q)) ** 2 * self._square + kept**2 * max(self.rate.variance, 0.0)

    @property
    def notes(self) -> tuple[Note, ...]:
        return () if self.failures.by_person else (NOT_BY_PERSON,)

    def _fields(self) -> dict[str, Any]:
        people = self.failures.people or self.rate.n_identities
        return {**counted_fields(self.threshold, people, self.variance), "fte": self.fte, "fta": self.fta}

    def _defined(self) -> bool:
        return self.rate.comparisons > 0


@dataclass(frozen=True, eq=False)
class GeneralisedRates(Shown):
    """GFAR and GFRR at one threshold."""

    gfar: GeneralisedRate
    gfrr: GeneralisedRate

    @property
    def fte(self) -> float:
        return self.gfar.fte

    @property
    def fta(self) -> float:
        return self.gfar.fta

    def to_records(self) -> list[dict[str, Any]]:
        return [*self.gfar.to_records(), *self.gfrr.to_records()]
