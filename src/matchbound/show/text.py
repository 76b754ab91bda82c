"""Tables of results for a terminal: plain characters, fitted to its width, colours only where somebody looks."""

from __future__ import annotations

from collections.abc import Sequence

from matchbound.show.numbers import count_text, design_text, percent, threshold_text
from matchbound.show.records import Record, intervals_note
from matchbound.show.tables import Column, Table, as_table
from matchbound.show.terms import metric_name

RATE_COLUMNS = (
    Column("metric"),
    Column("threshold", "number"),
    Column("estimate", "number"),
    Column("low", "number"),
    Column("high", "number"),
    Column("errors", "count"),
    Column("comparisons", "count"),
    Column("deff", "number", 1),
)
DEFF = "deff: design effect, comparisons divided by the effective sample size."


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str | None = None,
    width: int | None = None,
    colour: bool = False,
) -> str:
    """A table as text; cells are wrapped between words, and a number is never broken."""
    return as_table(headings, rows, title).text(width, colour)


def rates_tables(records: Sequence[Record]) -> list[Table]:
    """FAR and FRR with their intervals, for people."""
    rows = tuple(
        (
            metric_name(str(r["metric"])),
            threshold_text(r["threshold"]),
            percent(r["estimate"]),
            percent(r["low"]),
            percent(r["high"]),
            count_text(r["errors"]),
            count_text(r["comparisons"]),
            design_text(r["design_effect"]),
        )
        for r in records
    )
    return [Table(RATE_COLUMNS, rows, note=intervals_note(records, DEFF))]


def rates_table(records: Sequence[Record], *, width: int | None = None, colour: bool = False) -> str:
    """The same as text."""
    return rates_tables(records)[0].text(width, colour)
