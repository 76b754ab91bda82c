"""FAR and FRR together, at one threshold or several, with what must be said about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.counting.recount import Recount
from matchbound.counts.tally import Tally
from matchbound.results.rates import Rate

FEW_IDENTITIES = 20


@dataclass(frozen=True, eq=False)
class ErrorRates:
    """FAR and FRR at one threshold.

    warnings
        What a reader must know about these numbers; empty when there is nothing to say.
    """

    threshold: float
    far: Rate
    frr: Rate
    n_identities: int
    distance: bool
    warnings: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, eq=False)
class ErrorRatesSeries(Sequence[ErrorRates]):
    """FAR and FRR at several thresholds, in the order in which they were asked for."""

    rates: tuple[ErrorRates, ...]

    @overload
    def __getitem__(self, index: int) -> ErrorRates: ...
    @overload
    def __getitem__(self, index: slice) -> ErrorRatesSeries: ...
    def __getitem__(self, index: int | slice) -> ErrorRates | ErrorRatesSeries:
        if isinstance(index, slice):
            return ErrorRatesSeries(self.rates[index])
        return self.rates[index]

    def __len__(self) -> int:
        return len(self.rates)

    def __iter__(self) -> Iterator[ErrorRates]:
        return iter(self.rates)

    @property
    def thresholds(self) -> FloatArray:
        """The thresholds, shape (K,)."""
        return np.array([rates.threshold for rates in self.rates])

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all thresholds, each once."""
        return tuple(dict.fromkeys(text for rates in self.rates for text in rates.warnings))


def error_rates(tally: Tally, findings: Sequence[str] = (), recount: Recount | None = None) -> tuple[ErrorRates, ...]:
    """Results at each threshold of a tally, with what must be said about them."""
    made = []
    for k, threshold in enumerate(tally.thresholds):
        far = Rate("far", float(threshold), tally, k, recount)
        frr = Rate("frr", float(threshold), tally, k, recount)
        notes = (*findings, *_of_identities(tally), *_of_rate(far), *_of_rate(frr))
        made.append(ErrorRates(float(threshold), far, frr, tally.n_identities, tally.distance, notes))
    return tuple(made)


def few_identities(n_identities: int) -> list[str]:
    """What to say about data of few identities."""
    if n_identities >= FEW_IDENTITIES:
        return []
    return [
        f"only {n_identities} identities: intervals rest on how identities differ, and so few tell little about that; "
        "the promised coverage is not to be relied on"
    ]


def _of_identities(tally: Tally) -> list[str]:
    notes = few_identities(tally.n_identities)
    if tally.instances is not None:
        alone = int(np.count_nonzero(tally.instances == 1))
        if alone:
            notes.append(
                f"{alone} of {tally.n_identities} identities have one instance: they count for FAR and not for FRR"
            )
    return notes


def _of_rate(rate: Rate) -> list[str]:
    name = rate.metric.upper()
    if rate.comparisons == 0:
        kind = "impostor" if rate.metric == "far" else "genuine"
        return [f"no {kind} comparisons: {name} is not defined"]
    notes = []
    if rate.errors == 0:
        notes.append(
            f"no {'false accept' if rate.metric == 'far' else 'false reject'} among {rate.comparisons} comparisons: "
            f"{name} is not zero, it is below the upper limit"
        )
    elif rate.errors == rate.comparisons:
        notes.append(
            f"every one of {rate.comparisons} comparisons erred: {name} is above the lower limit, no more is known"
        )
    elif rate.variance < 0.0:
        notes.append(
            f"the variance estimate of {name} is negative (too few identities share errors): Wilson falls back on "
            f"{rate.floor} effective comparisons, and a Wald interval has no width"
        )
    return notes
