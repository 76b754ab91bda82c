"""A report about searches in a gallery, as sections."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from matchbound._version import __version__
from matchbound.calls.search_records import search_claim, search_records
from matchbound.errors import UsageError
from matchbound.notes import heard
from matchbound.report.search_numbers import HubRow, SearchReport
from matchbound.report.sections import LABORATORY, source_rows
from matchbound.results.claims import check_statement, parse_claim
from matchbound.results.search_comparison import compare_searches
from matchbound.results.searches import Searches
from matchbound.show.claims import verdict_of
from matchbound.show.numbers import MINUS, count_text, level_text, p_text, percent, points, points_span, span
from matchbound.show.records import Record
from matchbound.show.search_plots import cmc_figure, sizes_figure, trade_off_figure
from matchbound.show.searches import search_name
from matchbound.show.section import Document, Section
from matchbound.show.tables import Column, Table

DEFAULT_FPIR = (0.1, 0.01)
HUBS = 5


def make_search_report(
    found: Searches,
    *,
    fpir: Sequence[float] | float | None = None,
    threshold: Sequence[float] | float | None = None,
    ranks: Sequence[int] = (1,),
    level: float = 0.95,
    title: str | None = None,
    show_labels: bool = False,
    provenance: Mapping[str, Any] | None = None,
    claims: Sequence[str] = (),
    group: Mapping[Any, Any] | None = None,
    against: Searches | None = None,
) -> SearchReport:
    """Gather everything that a page says about searches; see `write_report`."""
    if not (found.n_nonmated or found.n_mated):
        raise UsageError("there are no searches to report")
    both = bool(found.n_nonmated and found.n_mated)
    targets = _several(fpir, DEFAULT_FPIR if both else ())
    cuts = _several(threshold, ())
    if against is not None and not isinstance(against, Searches):
        raise UsageError("searches are compared with searches: against takes what search returns")
    if group is not None and not cuts:
        raise UsageError("rates by group are at a threshold; give one")
    statements = [parse_claim(text) for text in claims]
    for text_of, said in zip(claims, statements, strict=True):
        check_statement(said, text_of)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        at = cuts[0] if cuts else None
        if at is None and found.n_nonmated:
            at = found._written(_middle(found, targets))
        records = search_records(found, cuts or ([at] if at is not None else []), targets, list(ranks), [], level=level)
        trade_off = found.trade_off(ranks[0], level) if both else None
        cmc = found.cmc_curve(level=level) if found.n_mated else None
        size = found.size_curve(at, level=level) if at is not None else None
        judged = tuple(search_claim(found, said, cuts, ranks[0], level=level) for said in statements)
        groups = None if group is None else found.by_group(cuts[0], ranks[0], group=group)
        comparison = None
        if against is not None:
            at_fpir = targets[-1] if targets else None
            comparison = compare_searches(found, against, fpir=at_fpir, threshold=cuts[0] if cuts else None)
    hubs: tuple[HubRow, ...] = ()
    if at is not None:
        hubs = tuple(
            HubRow(str(hub.identity) if show_labels else None, hub.hits, hub.share) for hub in found.hubs(at, HUBS)
        )
    return SearchReport(
        title or "Searches in a gallery",
        level,
        found.gallery_size,
        found.n_nonmated,
        found.n_mated,
        found.rotating,
        tuple(records),
        trade_off,
        cmc,
        size,
        at,
        hubs,
        0 if at is None else found.people_with_half(at),
        tuple(dict.fromkeys([*found.notes, *heard(caught)])),
        {"version": __version__, **(provenance or {})},
        judged,
        groups,
        comparison,
    )


def _several(values: Sequence[float] | float | None, default: Sequence[float]) -> list[float]:
    if values is None:
        return list(default)
    return [float(values)] if isinstance(values, (int, float)) else [float(value) for value in values]


def _middle(found: Searches, targets: Sequence[float]) -> float:
    """An oriented threshold where FPIR is the first target."""
    from matchbound.stats.search.budget import threshold_at

    return threshold_at(found.curve.best, targets[0] if targets else DEFAULT_FPIR[0])


def search_document(report: SearchReport) -> Document:
    """The report as a page of its own."""
    laboratory = dict(report.provenance.get("laboratory") or {})
    head, *rest = search_sections(report)
    at = None if report.threshold is None else report.threshold
    verdicts = tuple(verdict_of(claim, at if claim.metric in ("fpir", "fnir") else None) for claim in report.judged)
    head = replace(head, verdicts=verdicts, title="Rates")
    source = Section("provenance", "Provenance", facts=tuple(source_rows(report.provenance)))
    return Document(
        report.title,
        (head, *rest, source),
        f"Searches in a gallery, with {level_text(report.level)} intervals",
        tuple((name, str(laboratory[key])) for key, name in LABORATORY.items() if laboratory.get(key)),
        str(laboratory.get("system") or report.title),
        str(report.provenance.get("version", "")),
        "; ".join(f"{name} {value}" for name, value in source_rows(report.provenance)),
    )


def search_sections(report: SearchReport) -> tuple[Section, ...]:
    """Rates, curves, groups, another system and hubs."""
    rates = Section("searches", "Searches in a gallery (1:N)", summary(report), tables=(_rates(report),))
    level, figures = report.level, []
    if report.trade_off is not None:
        figures.append(trade_off_figure(report.trade_off, level))
    if report.cmc is not None and report.cmc.rank.size > 1:
        figures.append(cmc_figure(report.cmc, level))
    if report.size is not None:
        figures.append(sizes_figure(report.size, report.enrolled, level))
    made = [replace(rates, figures=tuple(figures), notes=tuple(report.notes))]
    made += [section for section in (_sizes(report), _hubs(report), _groups(report), _comparison(report)) if section]
    return tuple(made)


def summary(report: SearchReport) -> str:
    """What was searched, in a sentence."""
    kind = "each probe's own identity left out" if report.rotating else "people who are not enrolled"
    return (
        f"{report.enrolled:,} people are enrolled. {report.mated:,} searches were made for enrolled people, and "
        f"{report.nonmated:,} without a mate ({kind}). Intervals ({level_text(report.level)}) are for a new gallery of "
        "the same size and new people searched for."
    )


def _columns(*headings: str, texts: int = 1) -> tuple[Column, ...]:
    return tuple(Column(name, "text" if k < texts else "number") for k, name in enumerate(headings))


def _limits(record: Record) -> str:
    return percent(record["estimate"]) + ("" if record["low"] is None else f"\n{span(record['low'], record['high'])}")


def _counted(record: Record) -> str:
    if record.get("errors") is None:
        return "–"
    return f"{count_text(record['errors'])} of {count_text(record['searches'])}"


def _rates(report: SearchReport) -> Table:
    rows = tuple(
        (
            search_name(r),
            "–" if r["threshold"] is None else f"{r['threshold']:.6g}",
            _limits(r),
            _counted(r),
            r["method"] or "–",
        )
        for r in report.records
    )
    title = f"{level_text(report.level)} intervals beneath each estimate."
    return Table(_columns("Rate", "Threshold", "Estimate", "Errors", "Method"), rows, title)


def _sizes(report: SearchReport) -> Section | None:
    if report.size is None or report.threshold is None:
        return None
    made = zip(report.size.size, report.size.estimate, report.size.low, report.size.high, strict=True)
    rows = tuple((f"{size:,}", f"{percent(float(p))}\n{span(float(low), float(high))}") for size, p, low, high in made)
    title = f"FPIR at threshold {report.threshold:.6g}, with {level_text(report.level)} intervals."
    return Section("sizes-table", "FPIR in other galleries", tables=(Table(_columns("Enrolled", "FPIR"), rows, title),))


def _hubs(report: SearchReport) -> Section | None:
    if report.threshold is None:
        return None
    if not report.half:
        return Section("hubs", "Hubs", "No search without a mate returned anybody at this threshold.")
    people = "person receives" if report.half == 1 else "people receive"
    lead = f"{report.half:,} of {report.enrolled:,} enrolled {people} half of the false hits."
    rows = tuple(
        (hub.label if hub.label is not None else f"enrolled person {place}", f"{hub.hits:,}", percent(hub.share))
        for place, hub in enumerate(report.hubs, start=1)
    )
    largest = max((hub.share for hub in report.hubs), default=1.0)
    title = f"False hits at threshold {report.threshold:.6g}."
    table = Table(_columns("Enrolled person", "False hits", "Share"), rows, title)
    return Section("hubs", "Hubs", lead, tables=(table,) if rows and largest else ())


def _groups(report: SearchReport) -> Section | None:
    if report.groups is None:
        return None
    rows = tuple((str(r["group"]), search_name(r), _limits(r), _counted(r)) for r in report.groups.to_records())
    title = "Groups of people searched for, against the whole gallery. Each interval is for its group alone."
    tables = [Table(_columns("Group", "Rate", "Estimate", "Errors", texts=2), rows, title)]
    gaps = tuple(
        (
            f"{r['group_a']} {MINUS} {r['group_b']}",
            search_name(r),
            f"{points(r['estimate'])}\n{points_span(r['low'], r['high'])}",
            "not shown" if r["low"] <= 0.0 <= r["high"] else "yes",
        )
        for r in report.groups.gap_records(report.level)
    )
    if gaps:
        title = "Gaps between groups, each interval for its own pair."
        tables.append(Table(_columns("Groups", "Rate", "Gap, percentage points", "Differs", texts=2), gaps, title))
    return Section("search-groups", "Groups", f"At threshold {report.groups.threshold:g}.", tables=tuple(tables))


def _comparison(report: SearchReport) -> Section | None:
    if report.comparison is None:
        return None
    rows = tuple(
        (
            search_name(r),
            percent(r["rate_a"]),
            percent(r["rate_b"]),
            f"{points(r['estimate'])}\n{points_span(r['low'], r['high'])}",
            p_text(r["p_value"]),
        )
        for r in report.comparison.to_records()
    )
    title = "A is the system of this report, B the other, in the same searches."
    columns = _columns("Rate", "A", "B", f"A {MINUS} B, percentage points", "p")
    return Section("search-systems", "Another system", tables=(Table(columns, rows, title),))
