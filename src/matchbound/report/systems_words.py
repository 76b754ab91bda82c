"""The words and tables of the section on other systems."""

from __future__ import annotations

from collections.abc import Sequence

from matchbound.report.systems import SystemRow, SystemsSection
from matchbound.show import numbers
from matchbound.show.numbers import level_text, p_text, percent, points, ratio_text, target_text

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
MOST_PAIRS = 6
"""Pairs of systems that a sentence lists by name; of more it tells the number."""
MATCHES = {
    "row": "row: no instances are named, so row n of one system was matched with row n of the others",
    "identity pair": "identity pair: no instances are named, and no pair of identities occurs twice",
}


def place_name(row: SystemRow) -> str:
    """Where the systems are compared: FAR 0.1%, the equal error rate, threshold 0.62."""
    if row.target is not None:
        return f"FAR {target_text(row.target)}"
    return "the equal error rate" if row.reading is None else f"threshold {row.reading}"


def row_name(row: SystemRow) -> str:
    """What is compared: FRR at FAR 0.1%."""
    return "Equal error rate" if row.metric == "eer" else f"{metric_name(row)} at {place_name(row)}"


def metric_name(row: SystemRow) -> str:
    """FAR, FRR or EER."""
    return {"frr@far": "FRR", "eer": "EER"}.get(row.metric, row.metric.upper())


def said(name: str | None) -> str:
    """The name of a system within a sentence, in quotation marks where it could be taken for several words of it."""
    text = str(name)
    return f"“{text}”" if any(mark in text for mark in (",", ";", ":", " and ", " than ")) else text


def points_span(row: SystemRow) -> str:
    """The interval of a difference: −4.70 to 0.130."""
    return numbers.points_span(row.low, row.high)


def ratio_span(low: float | None, high: float | None) -> str:
    """The interval of a ratio."""
    if low is None:
        return "not known"
    return f"above {ratio_text(low)}" if high is None else f"{ratio_text(low)} to {ratio_text(high)}"


def verdict(section: SystemsSection, level: float) -> list[str]:
    """What the data say about the systems, in sentences; the first is about equal FAR."""
    rows = section.focus_rows
    if section.n_pairs > 1:
        return [_about_many(section, rows, level)]
    return [_about_two(rows[0], level), *_at_thresholds(section)]


def _about_two(row: SystemRow, level: float) -> str:
    name, a, b = metric_name(row), said(row.a), said(row.b)
    opening = f"{'By' if row.metric == 'eer' else 'At'} {place_name(row)},"
    one, two = percent(row.rate_a), percent(row.rate_b)
    told = f"{level_text(level)} interval {points_span(row)}, {_p(row.p_value)}"
    if not row.disagree:
        return (
            f"{opening} nothing in the data tells {a} and {b} apart: {name} is {one} and {two}. A difference "
            f"of {points(row.furthest)} points would still fit."
        )
    if row.differs:
        mine, theirs = (one, two) if row.better == row.a else (two, one)
        return (
            f"{opening} {said(row.better)} is better: its {name} is {mine}, that of {said(row.worse)} {theirs}. "
            f"The difference {a} − {b} is {points(row.estimate)} points ({told})."
        )
    return (
        f"{opening} the data cannot tell {a} and {b} apart: {name} is {one} and {two}, a difference of "
        f"{points(row.estimate)} points ({told}). That does not make them equal: {points(row.furthest)} points would "
        "fit as well."
    )


def _at_thresholds(section: SystemsSection) -> list[str]:
    """For each threshold, which system has the lower FAR and which the lower FRR."""
    told = []
    rows = section.threshold_rows
    for far, frr in zip(rows[::2], rows[1::2], strict=True):
        parts = [_lower(row) for row in (far, frr)]
        trade = ""
        if far.better is not None and frr.better is not None and far.better != frr.better:
            trade = " One error is traded for the other, so this does not say which system is better; equal FAR does."
        told.append(f"At threshold {far.reading}, {parts[0]}, and {parts[1]}.{trade}")
    return told


def _lower(row: SystemRow) -> str:
    name, one, two = metric_name(row), percent(row.rate_a), percent(row.rate_b)
    if row.better is None:
        return f"{name} cannot be told apart ({one} and {two})"
    mine, theirs = (one, two) if row.better == row.a else (two, one)
    return f"{name} is lower for {said(row.better)} ({mine} against {theirs})"


def _about_many(section: SystemsSection, rows: Sequence[SystemRow], level: float) -> str:
    name = metric_name(rows[0])
    opening = "By" if rows[0].metric == "eer" else "At"
    where = f"{opening} {place_name(rows[0])},"
    sure = f"{level_text(level)} intervals that hold for all {section.n_pairs} pairs at once"
    decided = [row for row in rows if row.differs]
    open_pairs = [f"{said(row.a)} and {said(row.b)}" for row in rows if not row.differs]
    if not decided:
        return f"{where} the data cannot tell any two of the {len(section.names)} systems apart ({sure})."
    beaten = {better: [said(row.worse) for row in decided if row.better == better] for better in section.names}
    told = [f"lower for {said(better)} than for {_listed(worse)}" for better, worse in beaten.items() if worse]
    sentence = f"{where} {name} is {'; '.join(told)} ({sure})."
    if len(open_pairs) > MOST_PAIRS:
        return f"{sentence} The other {len(open_pairs)} pairs cannot be told apart."
    return sentence + (f" The data cannot tell apart {'; '.join(open_pairs)}." if open_pairs else "")


def _listed(words: Sequence[str]) -> str:
    """a; a and b; a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _p(value: float) -> str:
    shown = p_text(value)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def facts(section: SystemsSection) -> list[tuple[str, str]]:
    """What was compared with what, as (what, value)."""
    names = section.names
    if len(names) == 2:
        rows = [("A, which this report is about", names[0]), ("B", names[1])]
    else:
        rows = [("Systems", ", ".join(names)), ("This report is about", names[0])]
    what = f"{section.matched:,} {section.unit} of {section.n_identities:,} identities"
    rows.append(("Compared on", what + (", all pairs" if section.unit == "instances" else "")))
    rows.append(("Matched by", MATCHES.get(section.matched_by, section.matched_by)))
    left = [f"{count:,} of {name}" for name, count in zip(names, section.unmatched, strict=True) if count]
    rows.append(("Left out", f"{', '.join(left)}: another system lacks them" if left else "nothing"))
    return rows


def caption(section: SystemsSection, level: float) -> str:
    """How to read the table."""
    shown = level_text(level)
    if section.n_pairs == 1:
        return (
            f"A is {section.names[0]}, B is {section.names[1]}. {shown} intervals beneath the estimates and p, each "
            "for one row by itself. “Differ” goes by the difference; the interval of the ratio is made on the log "
            "scale and may say otherwise where errors are few."
        )
    return (
        f"At each operating point, {shown} intervals of the differences hold for all {section.n_pairs} pairs of "
        "systems at once, and p is adjusted for them; those of ratios hold one by one."
    )


def systems_table(section: SystemsSection) -> Table:
    """Headings and rows for Markdown and LaTeX."""
    many = section.n_pairs > 1
    headings = ("Number", *(("A − B",) if many else ()), "A", "B", "Difference, points", "Interval", "A / B", "p")
    rows = [
        (
            row_name(row),
            *((f"{row.a} − {row.b}",) if many else ()),
            percent(row.rate_a),
            percent(row.rate_b),
            points(row.estimate),
            points_span(row),
            f"{ratio_text(row.ratio)} ({ratio_span(row.ratio_low, row.ratio_high)})",
            p_text(row.p_value),
        )
        for row in section.rows
    ]
    return headings, rows
