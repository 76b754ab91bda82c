"""What a report says about other systems on the same comparisons, as plain values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from matchbound.arraytypes import FloatArray
from matchbound.notes import Note


@dataclass(frozen=True)
class SystemRow:
    """One number of two systems and the difference of it, A minus B.

    metric
        ``"frr@far"``, ``"eer"``, or at a fixed threshold ``"far"`` and ``"frr"``.
    target
        The FAR that both systems have; None for the others.
    reading
        The threshold that both have, as a short decimal; None for the others.
    a, b
        Names of the systems.
    rate_a, rate_b, estimate
        The number of each, and A minus B.
    low, high
        Limits of the difference; with more than two systems they hold for all pairs at once.
    ratio, ratio_low, ratio_high
        A over B, with limits for this pair alone; None where it is not known or has no upper limit.
    p_value
        Of "the two are equal"; with more than two systems, adjusted for all pairs.
    method
        How the limits were made.
    disagree
        Whether anything in the data tells the systems apart.
    """

    metric: Literal["far", "frr", "frr@far", "eer"]
    target: float | None
    reading: str | None
    a: str
    b: str
    rate_a: float
    rate_b: float
    estimate: float
    low: float
    high: float
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    p_value: float
    method: str
    disagree: bool

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 0."""
        return not self.low <= 0.0 <= self.high

    @property
    def better(self) -> str | None:
        """The system with the lower rate, where the data can tell."""
        if not self.differs:
            return None
        return self.a if self.estimate < 0.0 else self.b

    @property
    def worse(self) -> str | None:
        """The system with the higher rate, where the data can tell."""
        if not self.differs:
            return None
        return self.b if self.estimate < 0.0 else self.a

    @property
    def furthest(self) -> float:
        """The largest difference, either way, that the interval holds."""
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True, eq=False)
class SystemCurve:
    """The curve of one system on its own comparisons, thinned for drawing; float64 arrays, shape (K,)."""

    name: str
    far: FloatArray = field(repr=False)
    frr: FloatArray = field(repr=False)
    eer: float


@dataclass(frozen=True)
class SystemsSection:
    """Systems on the same comparisons.

    names
        The report's own system first.
    rows
        FRR at equal FARs, then EER, then rates at thresholds; all pairs of systems for each.
    focus
        The FAR of which the verdict speaks; None where no FAR was asked for that systems can be compared at.
    matched, unmatched
        How many comparisons (or instances) all systems have, and how many each had besides.
    unit
        ``"comparisons"``, or ``"instances"`` where all systems are embeddings.
    matched_by
        What they were matched by.
    n_identities
        Identities in what was matched.
    notes
        What a reader must know.
    curves
        The curve of each system.
    """

    names: tuple[str, ...]
    rows: tuple[SystemRow, ...]
    focus: float | None
    matched: int
    unmatched: tuple[int, ...]
    unit: Literal["comparisons", "instances"]
    matched_by: str
    n_identities: int
    notes: tuple[Note, ...]
    curves: tuple[SystemCurve, ...] = ()

    @property
    def n_pairs(self) -> int:
        """How many pairs of systems there are."""
        return len(list(combinations(self.names, 2)))

    @property
    def focus_rows(self) -> tuple[SystemRow, ...]:
        """What the verdict speaks of: FRR at the FAR of `focus`, or EER."""
        aimed = [row for row in self.rows if row.metric == "frr@far" and row.target == self.focus]
        return tuple(aimed or [row for row in self.rows if row.metric == "eer"])

    @property
    def threshold_rows(self) -> tuple[SystemRow, ...]:
        """Rates at thresholds."""
        return tuple(row for row in self.rows if row.reading is not None)


def finite(value: float) -> float | None:
    """The number, or None where it is not one that can be shown."""
    return float(value) if math.isfinite(value) else None
