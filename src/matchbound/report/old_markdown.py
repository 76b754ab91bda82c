"""The report's tables in Markdown."""

from __future__ import annotations

from matchbound.report import systems_words as systems
from matchbound.report import words
from matchbound.report.page import Report
from matchbound.report.pipes import table, text
from matchbound.report.search_page import markdown_lines
from matchbound.show.numbers import level_text, p_text, percent, points


def to_markdown(report: Report) -> str:
    """Summary, operating points, groups, drivers, data and provenance."""
    level = level_text(report.level)
    parts = [f"# {text(report.title)}", text(words.headline(report)), *(text(line) for line in words.in_full(report))]
    if report.verdicts:
        lines = [
            f"- **{text(verdict)}**: {text(said)}. {text(' '.join([why, *(f'{rule}.' for rule in rules)]))}"
            for verdict, said, why, rules in words.verdict_lines(report)
        ]
        parts[1:1] = ["## Verdicts", "\n".join(lines)]
    if words.cautions(report):
        parts.append("\n".join(f"- {text(line)}" for line in words.cautions(report)))
    parts += [f"## Operating points ({level} intervals)", table(*points_table(report))]
    parts += ["## Numbers of the whole curve", table(*curve_table(report))]
    if report.groups is not None:
        parts += [f"## Groups at threshold {report.groups.reading}", table(*groups_table(report))]
        if report.groups.gaps:
            parts.append(table(*gaps_table(report)))
        if report.groups.between:
            parts.append(table(*between_table(report)))
        parts += [text(line) for line in (*words.range_sentences(report), *report.groups.notes)]
    if report.systems is not None:
        parts.append("## Other systems on the same comparisons")
        parts += [text(line) for line in systems.verdict(report.systems, report.level)]
        parts += [table(*systems.systems_table(report.systems)), text(systems.caption(report.systems, report.level))]
        parts += [table(("What", ""), systems.facts(report.systems))]
        parts += [text(line) for line in report.systems.notes]
    if report.searches is not None:
        parts += ["## Searches in a gallery (1:N)", "\n".join(markdown_lines(report.searches)).rstrip()]
    parts.append("## Which identities drive the uncertainty")
    for drivers in report.drivers:
        rows = [
            (
                words.contributor_name(item.label, rank, drivers.metric),
                f"{100 * item.share:.3g}%",
                f"{item.errors:,} of {item.comparisons:,}",
                percent(item.rate_without),
            )
            for rank, item in enumerate(drivers.top, start=1)
        ]
        name = drivers.metric.upper()
        parts.append(text(words.driver_sentence(drivers)))
        if rows:
            parts.append(table(("Identity", "Share of variance", "Errors", f"{name} without it"), rows))
    if report.per_person:
        parts += ["## Every person counted once", *(text(line) for line in words.per_person_sentences(report))]
    if report.suspects:
        parts.append("## The worst errors, by name")
        rows = [(s.metric.upper(), f"{s.score:.6g}", s.first, s.second) for s in report.suspects]
        parts.append(table(("Error", "Score", "One side", "Other side"), rows))
    parts += ["## Data", table(("What", ""), words.description_rows(report.description))]
    parts += ["## Provenance", table(("What", ""), words.provenance_rows(report))]
    return "\n\n".join(parts) + "\n"


Table = tuple[tuple[str, ...], list[tuple[str, ...]]]


def points_table(report: Report) -> Table:
    """Headings and rows of the operating points."""
    level = level_text(report.level)
    headings = ("Operating point", "Threshold", "FAR", f"FAR {level}", "FAR below", "FRR", f"FRR {level}", "FRR below")
    rows = [
        (
            words.point_name(point),
            point.reading,
            words.value_text(point.far),
            words.span_text(point.far),
            percent(point.far.upper),
            words.value_text(point.frr),
            words.span_text(point.frr),
            percent(point.frr.upper),
        )
        for point in report.points
    ]
    return headings, list(rows)


def verdicts_table(report: Report) -> Table:
    """Headings and rows of the claims."""
    rows: list[tuple[str, ...]] = [(said, verdict, why) for verdict, said, why, _ in words.verdict_lines(report)]
    return ("Claim", "Verdict", "Why"), rows


def curve_table(report: Report) -> Table:
    """Headings and rows of EER, AUC and costs."""
    headings = ("Number", "Threshold", "Estimate", level_text(report.level), "Below")
    eer, auc = report.eer, report.auc
    return headings, [
        ("EER", report.eer_reading, words.value_text(eer), words.span_text(eer), percent(eer.upper)),
        ("AUC", "–", words.value_text(auc), words.span_text(auc), "–"),
        *[(cost.name, "–", *words.cost_text(cost), "–") for cost in report.costs],
    ]


def groups_table(report: Report) -> Table:
    """Headings and rows of the groups."""
    assert report.groups is not None
    level = level_text(report.level)
    rows = []
    for row in report.groups.rows:
        cells = [words.group_name(row), f"{row.n_identities:,}"]
        for claim in (row.far, row.frr):
            cells += ["–", "–"] if claim is None else [words.value_text(claim), words.span_text(claim)]
        rows.append(tuple(cells))
    return ("Group", "Identities", "FAR", f"FAR {level}", "FRR", f"FRR {level}"), rows


def between_table(report: Report) -> Table:
    """Headings and rows of the impostor rates between groups."""
    assert report.groups is not None
    rows = [
        (f"{row.first}, {row.second}", words.value_text(row.far), words.span_text(row.far), words.counted(row.far))
        for row in report.groups.between
    ]
    return ("Between groups", "FAR", level_text(report.level), "False accepts"), list(rows)


def gaps_table(report: Report) -> Table:
    """Headings and rows of the differences between groups."""
    assert report.groups is not None
    rows = [
        (
            f"{gap.metric.upper()}: {gap.first} − {gap.second}",
            points(gap.estimate),
            points(gap.low),
            points(gap.high),
            p_text(gap.p_value),
        )
        for gap in report.groups.gaps
    ]
    return ("Difference", "Points", "Low", "High", "p"), list(rows)
