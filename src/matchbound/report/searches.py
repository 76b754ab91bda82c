"""A report about searches in a gallery, as sections."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from matchbound._version import __version__
from matchbound.calls.searching import compare_searches, search_claim, search_records
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.notes import Note, heard
from matchbound.report.page import number_list
from matchbound.report.sections import with_source
from matchbound.results.claims import parse_claim
from matchbound.results.searches import CurveKind, SearchCurve, Searches
from matchbound.show.columns import (
    hubs_table,
    number_table,
    printed,
    search_comparison_table,
    search_group_tables,
    sizes_table,
)
from matchbound.show.figures import search_figure
from matchbound.show.numbers import level_text
from matchbound.show.section import Document, Section, verdict_of

DEFAULT_FPIR = (0.1, 0.01)
HUBS = 5


def search_document(
    found: Searches,
    *,
    title: str | None = None,
    provenance: Mapping[str, Any] | None = None,
    level: float = 0.95,
    **options: Any,
) -> Document:
    """A page about searches; options as of `search_sections`."""
    source = {"version": __version__, **(provenance or {})}
    eyebrow = f"Searches in a gallery, with {level_text(level)} intervals"
    return with_source(
        title or "Searches in a gallery", search_sections(found, level=level, **options), source, eyebrow
    )


def search_sections(
    found: Searches,
    *,
    fpir: Sequence[float] | float | None = None,
    threshold: Sequence[float] | float | None = None,
    ranks: Sequence[int] = (1,),
    level: float = 0.95,
    show_labels: bool = False,
    claims: Sequence[str] = (),
    group: Mapping[Any, Any] | None = None,
    against: Searches | None = None,
) -> tuple[Section, ...]:
    """Rates with verdicts and curves, other gallery sizes, hubs, groups and another system; see `write_report`."""
    if not (found.n_nonmated or found.n_mated):
        raise UsageError("there are no searches to report")
    both = bool(found.n_nonmated and found.n_mated)
    usual = DEFAULT_FPIR if both else None
    targets, cuts = number_list("fpir", usual if fpir is None else fpir), number_list("threshold", threshold)
    if against is not None and not isinstance(against, Searches):
        raise UsageError("searches are compared with searches: against takes what search returns")
    if group is not None and not cuts:
        raise UsageError("rates by group are at a threshold; give one")
    statements = [parse_claim(text) for text in claims]
    more: list[Section] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        at = cuts[0] if cuts else None
        if at is None and found.n_nonmated:
            at = found.threshold_at_fpir(targets[0] if targets else DEFAULT_FPIR[0])
        records = search_records(found, cuts or ([at] if at is not None else []), targets, list(ranks), [], level=level)
        curves = _curve(found, "trade-off", rank=ranks[0], level=level) if both else []
        curves += _curve(found, "cmc", level=level) if found.n_mated else []
        judged = [search_claim(found, statement, cuts, ranks[0], level=level) for statement in statements]
        if at is not None:
            sizes = _curve(found, "size", threshold=at, level=level)
            curves += sizes
            more += [Section("sizes-table", "FPIR in other galleries", tables=(sizes_table(curve),)) for curve in sizes]
            more.append(_hubs(found, at, show_labels))
        if group is not None:
            parts = found.by_group(cuts[0], ranks[0], group=group)
            gaps = [gap.record(gap.interval(level=level)) for gap in parts.gaps()]
            lead = f"Groups of people searched for at threshold {cuts[0]:g}, against the whole gallery."
            tables = tuple(search_group_tables(parts.to_records(), gaps))
            more.append(Section("search-groups", "Groups", lead, tables=tables))
        if against is not None:
            compared = compare_searches(
                found, against, fpir=targets[-1] if targets else None, threshold=cuts[0] if cuts else None
            )
            table = search_comparison_table(compared.to_records(), ("the system of this report", "the other"))
            more.append(Section("search-systems", "Another system", tables=(table,)))
    rates = Section(
        "searches",
        "Searches in a gallery (1:N)",
        _summary(found, level),
        verdicts=tuple(verdict_of(claim, at if claim.metric in ("fpir", "fnir") else None) for claim in judged),
        figures=tuple(search_figure(curve) for curve in curves if len(curve) > 1),
        tables=(number_table(printed(records, distance=found.lists.distance)),),
        notes=tuple(dict.fromkeys([*found.notes, *heard(caught)])),
    )
    return rates, *more


def _curve(found: Searches, kind: CurveKind, **options: Any) -> list[SearchCurve]:
    """A curve, or none with a note where candidate lists end too early for it."""
    try:
        return [found.curve(kind, **options)]
    except DataError as short:
        warnings.warn(Note("not-countable", str(short)), MatchboundWarning, stacklevel=2)
        return []


def _summary(found: Searches, level: float) -> str:
    """What was searched, in a sentence."""
    kind = "each probe's own identity left out" if found.rotating else "people who are not enrolled"
    return (
        f"{found.gallery_size:,} people are enrolled. {found.n_mated:,} searches were made for enrolled people, and "
        f"{found.n_nonmated:,} without a mate ({kind}). Intervals ({level_text(level)}) are for a new gallery of the "
        "same size and new people searched for."
    )


def _hubs(found: Searches, threshold: float, show_labels: bool) -> Section:
    """How concentrated false hits are; people have numbers unless labels are to be shown."""
    try:
        half, hubs = found.people_with_half(threshold), found.hubs(threshold, HUBS)
    except DataError as short:
        return Section("hubs", "Hubs", str(short)[:1].upper() + str(short)[1:] + ".")
    if not half:
        return Section("hubs", "Hubs", "No search without a mate returned anybody at this threshold.")
    names = [str(hub.identity) if show_labels else f"enrolled person {k}" for k, hub in enumerate(hubs, start=1)]
    rows = [{**asdict(hub), "identity": name} for hub, name in zip(hubs, names, strict=True)]
    return Section("hubs", "Hubs", tables=(hubs_table(threshold, rows, half),))
