"""Generalised rates as a table."""

from __future__ import annotations

from collections.abc import Sequence

from matchbound.show.numbers import percent
from matchbound.show.records import Record
from matchbound.show.text import table


def generalised_table(records: Sequence[Record], *, width: int | None = None, colour: bool = False) -> str:
    """GFAR, GFRR and HTER for people."""
    rows = [
        [str(r["metric"]).upper(), f"{r['threshold']:.6g}", *[percent(r[k]) for k in ("estimate", "low", "high")]]
        for r in records
    ]
    made = table(["metric", "threshold", "estimate", "low", "high"], rows, width=width, colour=colour)
    said = f"{100 * records[0]['level']:.5g}% intervals."
    last = records[-1]
    if "fte" in last:
        said += f" Failure to enrol {percent(last['fte'])}, failure to acquire {percent(last['fta'])}."
    return made + f"{said}\n"
