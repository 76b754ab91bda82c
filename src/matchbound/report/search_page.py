"""A report about searches in a gallery: one self-contained page, or tables in Markdown."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from matchbound._version import __version__
from matchbound.calls.search_records import search_claim, search_records
from matchbound.errors import UsageError
from matchbound.notes import heard
from matchbound.report.pipes import table, text
from matchbound.report.search_numbers import HubRow, SearchReport
from matchbound.report.search_svg import band_svg
from matchbound.report.templating import HERE, content_policy, templates
from matchbound.report.words import MARKS, source_rows
from matchbound.results.claims import check_statement, parse_claim
from matchbound.results.search_comparison import compare_searches
from matchbound.results.searches import Searches
from matchbound.show.claims import required
from matchbound.show.numbers import level_text, p_text, percent, points, points_span, span
from matchbound.show.searches import search_name

DEFAULT_FPIR = (0.1, 0.01)
HUBS = 5
Row = tuple[str, ...]


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


def rate_rows(report: SearchReport) -> list[Row]:
    """(what, at, estimate, interval, counted, method) of every rate, as text."""
    rows: list[Row] = []
    for record in report.records:
        name = search_name(record)
        where = "–" if record["threshold"] is None else f"{record['threshold']:.6g}"
        limits = "–" if record["low"] is None else span(record["low"], record["high"])
        counted = "–" if record.get("errors") is None else f"{record['errors']:,} of {record['searches']:,}"
        rows.append((name, where, percent(record["estimate"]), limits, counted, record["method"] or "–"))
    return rows


HEADINGS = ("Rate", "Threshold", "Estimate", "Interval", "Errors", "Method")


def summary(report: SearchReport) -> str:
    """What was searched, in a sentence."""
    kind = "each probe's own identity left out" if report.rotating else "people who are not enrolled"
    return (
        f"{report.enrolled:,} people are enrolled. {report.mated:,} searches were made for enrolled people, and "
        f"{report.nonmated:,} without a mate ({kind}). Intervals ({level_text(report.level)}) are for a new gallery of "
        "the same size and new people searched for."
    )


def verdict_rows(report: SearchReport) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """(verdict, requirement, why, rules of thumb) of each claim."""
    at = "" if report.threshold is None else f" at threshold {report.threshold:g}"
    return [
        (
            claim.verdict,
            required(claim) + (at if claim.metric in ("fpir", "fnir") else ""),
            claim.reason,
            claim.rules,
        )
        for claim in report.judged
    ]


def group_rows(report: SearchReport) -> list[Row]:
    """(group, rate, estimate, interval, counted) as text."""
    if report.groups is None:
        return []
    return [
        (
            str(r["group"]),
            search_name(r),
            percent(r["estimate"]),
            "–" if r["low"] is None else span(r["low"], r["high"]),
            f"{r['errors']:,} of {r['searches']:,}",
        )
        for r in report.groups.to_records()
    ]


def gap_rows(report: SearchReport) -> list[Row]:
    """(groups, rate, points, interval, whether 0 is left out) as text."""
    if report.groups is None:
        return []
    return [
        (
            f"{r['group_a']} − {r['group_b']}",
            search_name(r),
            points(r["estimate"]),
            points_span(r["low"], r["high"]),
            "no" if r["low"] <= 0.0 <= r["high"] else "yes",
        )
        for r in report.groups.gap_records(report.level)
    ]


def comparison_cells(report: SearchReport) -> list[Row]:
    """(rate, A, B, points, interval, p) as text."""
    if report.comparison is None:
        return []
    return [
        (
            search_name(r),
            percent(r["rate_a"]),
            percent(r["rate_b"]),
            points(r["estimate"]),
            points_span(r["low"], r["high"]),
            p_text(r["p_value"]),
        )
        for r in report.comparison.to_records()
    ]


GROUP_HEADINGS = ("Group", "Rate", "Estimate", "Interval", "Errors")
GAP_HEADINGS = ("Groups", "Rate", "Points", "Interval", "Differs from 0")
PAIR_HEADINGS = ("Rate", "A", "B", "A − B, points", "Interval", "p")


def parts(report: SearchReport) -> list[tuple[str, str, Row, list[Row]]]:
    """(heading, what it is, headings, rows) of the tables for groups and for another system."""
    made: list[tuple[str, str, Row, list[Row]]] = []
    if report.groups is not None:
        told = (
            f"Groups of people searched for, at threshold {report.groups.threshold:g}, against the whole gallery. Each "
            "interval is for its group alone."
        )
        made.append(("Groups", told, GROUP_HEADINGS, group_rows(report)))
        if gap_rows(report):
            told = "Differences between groups in percentage points, each interval for its own pair."
            made.append(("Gaps between groups", told, GAP_HEADINGS, gap_rows(report)))
    if report.comparison is not None:
        told = "A is the system of this report, B the other, in the same searches. Differences in percentage points."
        made.append(("Another system", told, PAIR_HEADINGS, comparison_cells(report)))
    return made


def hub_rows(report: SearchReport) -> list[Row]:
    """(who, hits, share) as text."""
    return [
        (hub.label if hub.label is not None else f"enrolled person {place}", f"{hub.hits:,}", percent(hub.share))
        for place, hub in enumerate(report.hubs, start=1)
    ]


def hub_sentence(report: SearchReport) -> str:
    """How concentrated false hits are."""
    if not report.half:
        return "No search without a mate returned anybody at this threshold."
    people = "person receives" if report.half == 1 else "people receive"
    return f"{report.half:,} of {report.enrolled:,} enrolled {people} half of the false hits."


def to_markdown(report: SearchReport) -> str:
    """The tables."""
    return "\n".join([f"# {text(report.title)}", "", *markdown_lines(report)]).rstrip() + "\n"


def markdown_lines(report: SearchReport) -> list[str]:
    """The tables without a title."""
    lines = [summary(report), ""]
    for verdict, said, why, rules in verdict_rows(report):
        lines += [f"- **{text(verdict)}**: {text(said)}. {text(' '.join([why, *(f'{rule}.' for rule in rules)]))}", ""]
    lines += [table(HEADINGS, [[text(cell) for cell in row] for row in rate_rows(report)]), ""]
    if report.size is not None and report.threshold is not None:
        lines += [f"## FPIR in other galleries, threshold {report.threshold:.6g}", ""]
        rows = zip(report.size.size, report.size.estimate, report.size.low, report.size.high, strict=True)
        made = [[f"{size:,}", percent(float(rate)), span(float(low), float(high))] for size, rate, low, high in rows]
        lines += [table(("Enrolled", "FPIR", "Interval"), made), "", "## Hubs", "", hub_sentence(report), ""]
        if report.hubs:
            cells = [[text(cell) for cell in row] for row in hub_rows(report)]
            lines += [table(("Enrolled person", "False hits", "Share"), cells), ""]
    for heading, told, headings, cells_of in parts(report):
        lines += [f"## {heading}", "", text(told), "", table(headings, cells_of), ""]
    return [*lines, *(f"- {text(note)}" for note in report.notes)]


def to_html(report: SearchReport) -> str:
    """The page."""
    environment = templates()
    from markupsafe import Markup

    style = (HERE / "old_style.css").read_text("utf-8")
    return environment.get_template("search.html.j2").render(
        report=report,
        search=section(report),
        summary=summary(report),
        verdicts=verdict_rows(report),
        marks=MARKS,
        provenance=source_rows(report.provenance),
        level=level_text(report.level),
        policy=content_policy(style, ""),
        style=Markup(style),
    )


def section(report: SearchReport, within: bool = False) -> dict[str, Any]:
    """What the template of the rates, curves, groups and hubs needs.

    Parameters
    ----------
    within
        Whether they are part of a report about comparisons, where headings say that they are about searches.
    """
    from markupsafe import Markup

    return {
        "heading": "Searches in a gallery (1:N)" if within else "Rates",
        "told": summary(report) if within else "",
        "curves": "Curves of the searches" if within else "Curves",
        "prefix": "Searches: " if within else "",
        "threshold": report.threshold,
        "headings": HEADINGS,
        "rows": rate_rows(report),
        "hub_rows": hub_rows(report),
        "hub_sentence": hub_sentence(report),
        "parts": parts(report),
        "plots": [(title, told, Markup(svg)) for title, told, svg in _plots(report)],
    }


def _plots(report: SearchReport) -> list[tuple[str, str, str]]:
    level = level_text(report.level)
    made = []
    if report.trade_off is not None:
        curve = report.trade_off
        told = f"FNIR at rank {curve.rank} against FPIR, with a {level} pointwise band that counts the threshold too."
        svg = band_svg(
            "tradeoff", "FNIR against FPIR", told, curve.fpir, curve.fnir, curve.low, curve.high, ("FPIR", "FNIR")
        )
        made.append(("FNIR against FPIR", told, svg))
    if report.cmc is not None and report.cmc.rank.size > 1:
        ranks = report.cmc
        told = f"The share of searches whose mate is within each rank, with a {level} pointwise band."
        svg = band_svg(
            "cmc", "CMC", told, ranks.rank.astype(float), ranks.estimate, ranks.low, ranks.high, ("rank", "CMC"),
            log_y=False, counts=True,
        )  # fmt: skip
        made.append(("CMC", told, svg))
    if report.size is not None and report.threshold is not None:
        grown = report.size
        told = (
            f"FPIR at threshold {report.threshold:.6g} against the number of enrolled people, with a {level} pointwise "
            "band; dotted, 1 − (1 − FMR)ᴺ, which takes hits for independent and is too high."
        )
        svg = band_svg(
            "sizes", "FPIR against the size of the gallery", told, grown.size.astype(float), grown.estimate, grown.low,
            grown.high, ("enrolled people", "FPIR"), counts=True, other=grown.independent,
        )  # fmt: skip
        made.append(("FPIR in other galleries", told, svg))
    return made
