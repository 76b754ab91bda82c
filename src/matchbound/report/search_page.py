"""A report about searches in a gallery: one self-contained page, or tables in Markdown."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matchbound._version import __version__
from matchbound.calls.search_records import search_records
from matchbound.errors import MatchboundWarning, MissingExtraError, UsageError
from matchbound.report.html import _policy
from matchbound.report.markdown import table, text
from matchbound.report.search_svg import band_svg
from matchbound.results.search_curves import CmcCurve, SizeCurve, TradeOff
from matchbound.results.searches import Searches
from matchbound.show.numbers import level_text, percent, span
from matchbound.show.records import Record

HERE = Path(__file__).resolve().parent
DEFAULT_FPIR = (0.1, 0.01)
HUBS = 5
Row = tuple[str, ...]


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
    notes: tuple[str, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)


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
) -> SearchReport:
    """Gather everything that a page says about searches; see `write_report`."""
    if not (found.n_nonmated or found.n_mated):
        raise UsageError("there are no searches to report")
    both = bool(found.n_nonmated and found.n_mated)
    targets = _several(fpir, DEFAULT_FPIR if both else ())
    cuts = _several(threshold, ())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        at = cuts[0] if cuts else None
        if at is None and found.n_nonmated:
            at = found._written(_middle(found, targets))
        records = search_records(found, cuts or ([at] if at is not None else []), targets, list(ranks), [], level=level)
        trade_off = found.trade_off(ranks[0], level) if both else None
        cmc = found.cmc_curve(level=level) if found.n_mated else None
        size = found.size_curve(at, level=level) if at is not None else None
    hubs: tuple[HubRow, ...] = ()
    if at is not None:
        hubs = tuple(
            HubRow(str(hub.identity) if show_labels else None, hub.hits, hub.share) for hub in found.hubs(at, HUBS)
        )
    told = [str(item.message) for item in caught if issubclass(item.category, MatchboundWarning)]
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
        tuple(dict.fromkeys([*found.notes, *told])),
        {"version": __version__, **(provenance or {})},
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
        name = str(record["metric"]).upper()
        if record["metric"] == "fnir@fpir":
            name = f"FNIR at FPIR {percent(record['fpir'])}"
        if record.get("rank"):
            name += f", rank {record['rank']}"
        where = "" if record["threshold"] is None else f"{record['threshold']:.6g}"
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
    lines = [f"# {text(report.title)}", "", summary(report), ""]
    lines += [table(HEADINGS, [[text(cell) for cell in row] for row in rate_rows(report)]), ""]
    if report.size is not None and report.threshold is not None:
        lines += [f"## FPIR in other galleries, threshold {report.threshold:.6g}", ""]
        rows = zip(report.size.size, report.size.estimate, report.size.low, report.size.high, strict=True)
        made = [[f"{size:,}", percent(float(rate)), span(float(low), float(high))] for size, rate, low, high in rows]
        lines += [table(("Enrolled", "FPIR", "Interval"), made), "", "## Hubs", "", hub_sentence(report), ""]
        if report.hubs:
            cells = [[text(cell) for cell in row] for row in hub_rows(report)]
            lines += [table(("Enrolled person", "False hits", "Share"), cells), ""]
    lines += [f"- {text(note)}" for note in report.notes]
    return "\n".join(lines).rstrip() + "\n"


def to_html(report: SearchReport) -> str:
    """The page."""
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError:
        raise MissingExtraError("the HTML report needs jinja2; install matchbound[report]") from None
    style = (HERE / "style.css").read_text("utf-8")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("search.html.j2").render(
        report=report,
        summary=summary(report),
        headings=HEADINGS,
        rows=rate_rows(report),
        hub_rows=hub_rows(report),
        hub_sentence=hub_sentence(report),
        level=level_text(report.level),
        policy=_policy(style, ""),
        style=Markup(style),
        plots=[(title, told, Markup(svg)) for title, told, svg in _plots(report)],
    )


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
