"""Costs and linkage measures for people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matchbound.metrics import unit_of
from matchbound.show.numbers import area_text, level_text, percent, points, target_text
from matchbound.show.records import Record
from matchbound.show.terms import metric_name
from matchbound.show.text import table


def value_text(metric: str, value: float | None) -> str:
    """A number in the notation of its metric; a dash for nothing."""
    if value is None or not math.isfinite(value):
        return "–"
    unit = unit_of(metric)
    if unit == "rate":
        return percent(value)
    if unit == "points":
        return f"{points(value)} points"
    return area_text(value) if unit == "area" else f"{value:.4f}" if unit == "cost" else f"{value:.3g}"


def name_text(record: Record) -> str:
    """What a number is called in a table: "FRR at FAR 0.1%", "minDCF 0.01"."""
    name = metric_name(str(record["metric"]))
    if record.get("preset"):
        return f"{name} {record['preset']}"
    if record.get("smooth"):
        return f"{name_text({**record, 'smooth': None})} ({record['smooth']})"
    target = record.get("target", record.get("prior"))
    if target is None:
        return name
    return f"{name} {target_text(target) if '@' in record['metric'] else f'{target:.3g}'}"


def linkage_table(records: Sequence[Record], *, width: int | None = None, colour: bool = False) -> str:
    """Precision, F1 and recall for people; the prior is beside every number that depends on it."""
    rows = [
        [
            metric_name(str(r["metric"])),
            "–" if r["prior"] is None else f"{r['prior']:.3g}",
            f"{r['threshold']:.6g}",
            *[percent(r[key]) for key in ("estimate", "low", "high")],
        ]
        for r in records
    ]
    made = table(["metric", "prior", "threshold", "estimate", "low", "high"], rows, width=width, colour=colour)
    methods = ", ".join(dict.fromkeys(str(r["method"]) for r in records if r["method"]))
    return made + f"{level_text(records[0]['level'])} intervals, {methods}. prior: share of genuine comparisons.\n"
