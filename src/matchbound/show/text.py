"""Tables for a terminal: 80 columns, plain characters, colours only on a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence

from matchbound.show.numbers import percent
from matchbound.show.records import Record
from matchbound.show.terms import metric_name


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str | None = None,
    width: int = 80,
    colour: bool = False,
) -> str:
    """A table as text; the first column is flush left, numbers are flush right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(
        box=box.SIMPLE_HEAD,
        title=None if title is None else Text(title),
        title_justify="left",
        pad_edge=False,
    )
    for place, heading in enumerate(headings):
        made.add_column(Text(heading), justify="left" if place == 0 else "right", overflow="fold")
    for row in rows:
        made.add_row(*[Text(cell) for cell in row])
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=colour, no_color=not colour, highlight=False).print(made)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n") + "\n"


def rates_table(records: Sequence[Record], *, width: int = 80, colour: bool = False) -> str:
    """FAR and FRR with their intervals, for people."""
    method = next((r["method"] for r in records if r["method"]), None)
    level = next((r["level"] for r in records if r["level"]), None)
    headings = ["metric", "threshold", "estimate", "low", "high", "errors", "comparisons", "deff"]
    rows = [
        [
            metric_name(str(r["metric"])),
            f"{r['threshold']:.6g}",
            percent(r["estimate"]),
            percent(r["low"]),
            percent(r["high"]),
            f"{r['errors']:,}",
            f"{r['comparisons']:,}",
            "–" if r["design_effect"] is None else f"{r['design_effect']:.3g}",
        ]
        for r in records
    ]
    made = table(headings, rows, width=width, colour=colour)
    if method is None or level is None:
        return made
    return made + f"{100 * level:.5g}% intervals, {method}. deff: comparisons that tell as much as one alone.\n"
