"""Searches in a gallery as tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from matchbound.show.figure import Band, Figure, Line, Rule, even_axis, log_axis
from matchbound.show.numbers import MINUS, level_text, p_text, percent, points, target_text, threshold_text
from matchbound.show.records import Record, intervals_note
from matchbound.show.tables import Column, Table
from matchbound.show.terms import metric_name

if TYPE_CHECKING:
    from matchbound.results.searches import SearchCurve

LOWEST = 1e-5


def _table(
    headings: Sequence[str],
    words: int,
    rows: Sequence[tuple[str, ...]],
    title: str | None = None,
    note: str | None = None,
) -> Table:
    """A table whose first columns hold words, the others numbers."""
    columns = tuple(Column(name, "text" if k < words else "number") for k, name in enumerate(headings))
    return Table(columns, tuple(rows), title, note)


def searches_rows(records: Sequence[Record]) -> Table:
    """Rates of searches with their intervals."""
    rows = [(search_name(r), threshold_text(r.get("threshold")), *_limits(r), _counted(r)) for r in records]
    note = None
    if records and "target" in records[0]:
        how = (intervals_note(records) or "Intervals.").rstrip(".")
        note = f"{how}, for a {records[0]['target']} gallery; {records[0]['gallery']:,} people are enrolled."
    return _table(("metric", "threshold", "estimate", "low", "high", "searches"), 1, rows, note=note)


def search_name(record: Record) -> str:
    """What a rate of searches is called: "FNIR at FPIR 1%, rank 1"."""
    name = metric_name(str(record["metric"]))
    if record["metric"] == "fnir@fpir" and "fpir" in record:
        name = f"{name} {target_text(record['fpir'])}"
    if record["metric"] == "fpir@size":
        name = f"FPIR, {record['size']:,} enrolled"
    return f"{name}, rank {record['rank']}" if record.get("rank") else name


def hubs_table(threshold: float, people: Sequence[tuple[str, int, float]], half: int) -> Table:
    """The enrolled people, with hits and share, who receive most false hits; `half` of them receive half."""
    rows = [(name, f"{hits:,}", percent(share)) for name, hits, share in people]
    title = f"At threshold {threshold:g}, {half:,} enrolled people receive half of the false hits"
    return _table(("identity", "hits", "share"), 1, rows, title)


def sizes_rows(curve: SearchCurve) -> Table:
    """FPIR in galleries of other sizes."""
    rows = [(f"{r['size']:,}", percent(r["fpir"]), percent(r["low"]), percent(r["high"])) for r in curve.to_records()]
    title = f"FPIR at {curve.at}, with {level_text(curve.level)} intervals."
    return _table(("enrolled", "FPIR", "low", "high"), 1, rows, title)


def groups_tables(records: Sequence[Record], gaps: Sequence[Record]) -> list[Table]:
    """Rates of groups of people searched for, and the gaps between groups in percentage points."""
    rows = [(str(r["group"]), search_name(r), *_limits(r), _counted(r)) for r in records]
    tables = [_table(("group", "metric", "estimate", "low", "high", "searches"), 2, rows, "By group")]
    if gaps:
        cells = [(f"{r['group_a']} {MINUS} {r['group_b']}", metric_name(str(r["metric"])), *_points(r)) for r in gaps]
        note = f"{level_text(gaps[0]['level'])} intervals, each for its own pair of groups."
        tables.append(
            _table(("groups", "metric", "estimate", "low", "high"), 2, cells, "Gaps, in percentage points", note)
        )
    return tables


def comparison_rows(records: Sequence[Record], names: tuple[str, str]) -> Table:
    """Two systems on the same searches; differences in percentage points."""
    rows = [
        (metric_name(str(r["metric"])), percent(r["rate_a"]), percent(r["rate_b"]), *_points(r), p_text(r["p_value"]))
        for r in records
    ]
    headings = ("metric", "A", "B", f"A {MINUS} B, points", "low", "high", "p")
    note = f"A is {names[0]}, B is {names[1]}; CMC is the share found, the others are errors."
    return _table(headings, 1, rows, "Two systems on the same searches", note)


def _limits(record: Record) -> tuple[str, str, str]:
    return percent(record["estimate"]), percent(record["low"]), percent(record["high"])


def _points(record: Record) -> tuple[str, str, str]:
    return points(record["estimate"]), points(record["low"]), points(record["high"])


def _counted(record: Record) -> str:
    return "–" if record.get("errors") is None else f"{record['errors']:,} of {record['searches']:,}"


def curve_figure(curve: SearchCurve) -> Figure:
    """A curve of searches with its band; x is logarithmic."""
    x, band = curve.x.astype(np.float64), f"{level_text(curve.level)} band"
    naive = f"1 {MINUS} (1 {MINUS} FMR)ᴺ"
    key, title, label, what = {
        "fpir": ("tradeoff", "FNIR against FPIR", "FPIR", f"FNIR at {curve.at} against FPIR"),
        "rank": ("cmc", "CMC", "rank", "The share of searches whose mate is within each rank"),
        "size": ("sizes", "FPIR in other galleries", "enrolled people", f"FPIR at {curve.at} against enrolled people"),
    }[curve.along]
    caption = f"{what}, with a {level_text(curve.level)} pointwise band"
    caption += {
        "fpir": " that accounts for the estimated threshold.",
        "rank": ".",
        "size": f"; dotted, {naive}, which takes hits for independent and is too high.",
    }[curve.along]
    shown = curve.estimate[curve.estimate > 0.0]
    floor = max(
        LOWEST, 0.5 * float((curve.low[curve.low > LOWEST] if curve.along == "fpir" else shown).min(initial=1.0))
    )
    if curve.along == "rank":
        floor = float(np.floor(20.0 * max(float(curve.low.min()) - 0.02, 0.0)) / 20.0)
        up = even_axis("CMC", floor, 1.001)
    else:
        up = log_axis(curve.metric.upper(), floor, 1.0)
    lines = [Line(x, np.maximum(curve.estimate, floor), style="step" if curve.along == "rank" else "curve")]
    if curve.independent is not None:
        lines.append(Line(x, np.maximum(curve.independent, floor), naive, style="dotted"))
    return Figure(
        key, title,
        log_axis(label, float(x[0]), max(float(x[-1]), 1.1 * float(x[0])), counts=curve.along != "fpir"), up,
        caption, caption, (Band(x, np.maximum(curve.low, floor), curve.high, band),), tuple(lines),
        rules=(Rule(float(curve.searched), None, "zero"),) if curve.along == "size" else (),
    )  # fmt: skip
