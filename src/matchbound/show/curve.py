"""Numbers as a table."""

from __future__ import annotations

from collections.abc import Sequence

from matchbound.show.costs import name_text, value_text
from matchbound.show.numbers import count_text, threshold_text
from matchbound.show.records import Record, intervals_note
from matchbound.show.tables import Column, Table


def curve_tables(records: Sequence[Record]) -> list[Table]:
    """Records of numbers as a table."""
    rows = []
    for r in records:
        numbers = [value_text(str(r["metric"]), r[key]) for key in ("estimate", "low", "high")]
        counted = "–" if r["errors"] is None else f"{count_text(r['errors'])} of {count_text(r['comparisons'])}"
        rows.append((name_text(r), threshold_text(r["threshold"]), *numbers, counted))
    columns = (
        Column("metric"),
        *(Column(name, "number") for name in ("threshold", "estimate", "low", "high")),
        Column("errors", "count", 1),
    )
    return [Table(columns, tuple(rows), note=intervals_note(records))]


def curve_table(records: Sequence[Record], *, width: int | None = None, colour: bool = False) -> str:
    """The same as text."""
    return curve_tables(records)[0].text(width, colour)
