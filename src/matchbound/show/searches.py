"""Searches in a gallery as a table."""

from __future__ import annotations

from collections.abc import Sequence

from matchbound.show.numbers import level_text, p_text, percent, points, target_text, threshold_text
from matchbound.show.records import Record, intervals_note
from matchbound.show.tables import LEAST, Column, Table, joined, terminal_width, wrapped
from matchbound.show.tables import table_text as table
from matchbound.show.terms import metric_name

COLUMNS = (
    Column("metric"),
    Column("threshold", "number"),
    Column("estimate", "number"),
    Column("low", "number"),
    Column("high", "number"),
    Column("searches", "number"),
)


def searches_table(
    records: Sequence[Record],
    hubs: Sequence[tuple[float, Sequence[Sequence[str]], int]] = (),
    extra: Sequence[Table] = (),
    *,
    width: int | None = None,
    colour: bool = False,
) -> str:
    """Rates of searches with their intervals, for people.

    hubs
        For each threshold: rows (identity, hits, share) and how many people receive half of the false hits.
    extra
        Further tables: groups, another system.
    """
    text = joined([searches_rows(records)], width, colour)
    kind = records[0].get("target", "random") if records else "random"
    size = records[0]["gallery"] if records else 0
    how = (intervals_note(records) or "Intervals.").rstrip(".")
    told = f"{how}, for a {kind} gallery; {size:,} people are enrolled."
    text += "\n".join(wrapped(told, max(terminal_width() if width is None else width, LEAST))) + "\n"
    for threshold, people, half in hubs:
        if people:
            text += f"At threshold {threshold:g}, {half:,} enrolled people receive half of the false hits:\n"
            text += table(["identity", "hits", "share"], people, width=width, colour=colour)
    if extra:
        text += "\n" + joined(extra, width, colour)
    return text


def searches_rows(records: Sequence[Record]) -> Table:
    """The rates themselves."""
    rows = tuple(
        (
            search_name(r),
            threshold_text(r.get("threshold")),
            percent(r["estimate"]),
            percent(r["low"]),
            percent(r["high"]),
            "–" if r.get("errors") is None else f"{r['errors']:,} of {r['searches']:,}",
        )
        for r in records
    )
    return Table(COLUMNS, rows)


def search_name(record: Record) -> str:
    """What a rate of searches is called: "FNIR at FPIR 1%, rank 1"."""
    name = metric_name(str(record["metric"]))
    if record["metric"] == "fnir@fpir":
        given = record.get("fpir", record.get("target"))
        name = f"{name} {target_text(given)}" if isinstance(given, float) else name
    if record["metric"] == "fpir@size":
        name = f"FPIR, {record['size']:,} enrolled"
    return f"{name}, rank {record['rank']}" if record.get("rank") else name


def groups_table(records: Sequence[Record], gaps: Sequence[Record]) -> list[Table]:
    """Rates of groups of people searched for, and the gaps between groups in points."""
    rows = tuple(
        (
            str(r["group"]),
            search_name(r),
            percent(r["estimate"]),
            percent(r["low"]),
            percent(r["high"]),
            f"{r['errors']:,} of {r['searches']:,}",
        )
        for r in records
    )
    headings = ("group", "metric", "estimate", "low", "high", "searches")
    made = [Table(tuple(Column(h, "text" if k < 2 else "number") for k, h in enumerate(headings)), rows, "By group")]
    if gaps:
        cells = tuple((f"{r['group_a']} − {r['group_b']}", metric_name(str(r["metric"])), *_differing(r)) for r in gaps)
        columns = tuple(Column(h, "text" if k < 2 else "number") for k, h in enumerate(("groups", *headings[1:5])))
        note = f"{level_text(gaps[0]['level'])} intervals, each for its own pair of groups."
        made.append(Table(columns, cells, "Gaps, in points", note))
    return made


def comparison_rows(records: Sequence[Record], names: tuple[str, str]) -> Table:
    """Two systems on the same searches; differences in points."""
    rows = tuple(
        (
            metric_name(str(r["metric"])),
            percent(r["rate_a"]),
            percent(r["rate_b"]),
            *_differing(r),
            p_text(r["p_value"]),
        )
        for r in records
    )
    headings = ("metric", "A", "B", "A − B, points", "low", "high", "p")
    columns = tuple(Column(h, "text" if k == 0 else "number") for k, h in enumerate(headings))
    note = f"A is {names[0]}, B is {names[1]}; CMC is the share found, the others are errors."
    return Table(columns, rows, "Two systems on the same searches", note)


def _differing(record: Record) -> tuple[str, str, str]:
    return points(record["estimate"]), points(record["low"]), points(record["high"])
