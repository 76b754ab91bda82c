"""What a report about searches says, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from matchbound.notes import Note
from matchbound.results.claims import Claim
from matchbound.results.search_comparison import SearchComparison, SearchGroups
from matchbound.results.search_curves import CmcCurve, SizeCurve, TradeOff
from matchbound.show.records import Record


@dataclass(frozen=True, eq=False)
class HubRow:
    """How many false hits one enrolled person receives; `label` is None unless labels are to be shown."""

    label: str | None
    hits: int
    share: float


@dataclass(frozen=True, eq=False)
class SearchReport:
    """What a report about searches says.

    records
        Rates with intervals, as of ``matchbound identify``.
    trade_off, cmc, size
        Curves with bands; None where they are not defined.
    threshold
        At which FPIR in other galleries and hubs are given; None without searches that have no mate.
    half
        How many enrolled people receive half of the false hits.
    judged, groups, comparison
        Verdicts on claims, rates by group, and another system on the same searches, where they were asked for.

    See Also
    --------
    write_report

    Examples
    --------
    >>> import matchbound as mb
    >>> import numpy as np
    >>> faces = mb.demo_data()
    >>> first = np.unique(faces.codes, return_index=True)[1][:100]
    >>> rest = np.setdiff1d(np.arange(len(faces)), first)
    >>> names = faces.identities[faces.codes]
    >>> gallery = mb.Embeddings(faces.vectors[first], names[first])
    >>> found = mb.search(gallery, mb.Embeddings(faces.vectors[rest], names[rest]))
    >>> report = mb.write_report("searches.html", found, threshold=0.6)
    >>> report.enrolled, report.nonmated, report.mated
    (100, 220, 318)
    """

    title: str
    level: float
    enrolled: int
    nonmated: int
    mated: int
    rotating: bool
    records: tuple[Record, ...]
    trade_off: TradeOff | None
    cmc: CmcCurve | None
    size: SizeCurve | None
    threshold: float | None
    hubs: tuple[HubRow, ...]
    half: int
    notes: tuple[Note, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    judged: tuple[Claim, ...] = ()
    groups: SearchGroups | None = None
    comparison: SearchComparison | None = None

    def __repr__(self) -> str:
        return f"SearchReport({self.title!r}: {self.enrolled:,} enrolled, {len(self.records)} rates)"
