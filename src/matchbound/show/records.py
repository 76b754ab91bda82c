"""Results as plain records: what tables, JSON and CSV are made of."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from matchbound.metrics import unit_of
from matchbound.show.cells import inert
from matchbound.show.numbers import (
    area_text,
    count_text,
    design_text,
    level_text,
    p_text,
    percent,
    points,
    ratio_text,
    span,
    target_text,
    threshold_text,
)
from matchbound.show.tables import Column, Kind, Table, as_table
from matchbound.show.terms import metric_name

Record = dict[str, Any]

RATES = (
    "estimate", "low", "high", "upper", "far", "frr", "far_upper", "rate_a", "rate_b", "target",
    "fpir", "fnir", "cmc", "fpir_upper", "eer", "share",
)  # fmt: skip
MOST_ROWS, FIRST_ROWS = 30, 12
"""A longer table for people has so many rows of its beginning, and half as many of its end."""
WIDE = 9
"""A single record with more fields than this is listed downwards."""
DEFF = "deff: design effect, comparisons divided by the effective sample size."
PLAIN_TYPES = (str, bool, int, float, np.generic)
NUMBERS = ("variance", "far_variance", "frr_variance")
COUNTS = ("errors", "comparisons", "identities", "matched", "n_identities", "n_resamples", "searches")


def weighted(result: Any) -> Record:
    """What counts once, where that is not every comparison."""
    weighting = getattr(result, "weighting", "comparisons")
    return {} if weighting == "comparisons" else {"weighting": weighting}


def record_of(result: Any) -> Record:
    """The record of a result that says nothing of its own: its plain fields."""
    found = {item.name: getattr(result, item.name) for item in fields(result)}
    plain = {name: value for name, value in found.items() if value is None or isinstance(value, PLAIN_TYPES)}
    return plain if any(value is not None for value in plain.values()) else {"result": repr(result)}


def table_of_records(records: Sequence[Record], title: str | None = None) -> Table:
    """A table for people of any records: each field is written as its name says.

    The level and the method of intervals are said once, beneath; of many rows, the middle is left out.
    """
    note = None
    if all({"metric", "level", "method"} <= set(record) for record in records):
        note = intervals_note(records)
        records = [{k: v for k, v in record.items() if k not in ("level", "method")} for record in records]
    names = list(dict.fromkeys(key for record in records for key in record))
    shown = [name for name in names if any(record.get(name) is not None for record in records)]
    if len(records) == 1 and len(shown) > WIDE:
        facts = [(name.replace("_", " "), _cell(name, records[0][name], _writer(records[0]))) for name in shown]
        return replace(as_table(("", ""), facts, title), note=note)
    columns = tuple(
        Column(name.replace("_", " "), _kind(name, records), 0 if name in RATES else k) for k, name in enumerate(shown)
    )
    if len(records) > MOST_ROWS:
        note = f"{count_text(len(records))} rows, of which the middle is left out; to_frame() has them all."
        kept: list[Record | None] = [*records[:FIRST_ROWS], None, *records[-FIRST_ROWS // 2 :]]
    else:
        kept = list(records)
    rows = tuple(
        tuple("…" if record is None else _cell(name, record.get(name), _writer(record)) for name in shown)
        for record in kept
    )
    return Table(columns, rows, title, note=note)


def intervals_note(records: Sequence[Record], also: str = "") -> str | None:
    """The level and the methods of the intervals; where there are several, what each was used for."""
    used: dict[str, dict[str, None]] = {}
    for r in records:
        if r["method"]:
            used.setdefault(str(r["method"]), {})[metric_name(str(r["metric"]))] = None
    level = next((r["level"] for r in records if r["level"]), None)
    if not used or level is None:
        return None
    first, *others = used
    made = ", ".join([first, *(f"{method} ({', '.join(used[method])})" for method in others)])
    once = " Every identity counts once." if any(r.get("weighting") == "identities" for r in records) else ""
    return f"{level_text(level)} intervals, {made}.{once}{' ' + also if also else ''}"


def _kind(name: str, records: Sequence[Record]) -> Kind:
    if name in COUNTS:
        return "count"
    return "text" if any(isinstance(record.get(name), (str, bool, list, tuple)) for record in records) else "number"


def _writer(record: Record) -> Callable[[float | None], str]:
    """How the numbers of a record are written: rates, differences of rates, or neither."""
    metric = str(record.get("metric", "far"))
    if metric.startswith("difference") or "rate_a" in record:
        return points
    return percent if unit_of(metric) == "rate" else lambda value: f"{value:.5g}"


def _cell(name: str, value: Any, write: Callable[[float | None], str]) -> str:
    if name == "metric" and isinstance(value, str) and " " not in value:
        return metric_name(value)
    if value is None or isinstance(value, str):
        return "–" if value is None else value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(str(item) for item in value) or "–"
    if name in COUNTS:
        return count_text(int(value))
    if name == "p_value":
        return p_text(value)
    if name.startswith("ratio"):
        return ratio_text(value)
    if name in RATES:
        return write(value) if name in ("estimate", "low", "high", "upper", "target") else percent(value)
    return f"{value:.3g}" if name in NUMBERS else threshold_text(float(value))


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


def span_text(metric: str, low: float, high: float) -> str:
    """An interval in the notation of its metric: 3.10–5.60%, 0.98765–0.99210."""
    return f"{value_text(metric, low)}–{value_text(metric, high)}" if unit_of(metric) != "rate" else span(low, high)


def number_table(records: Sequence[Record]) -> Table:
    """Numbers with their intervals: the columns are those of the fields that the records have."""
    counted = any(r.get("errors") is not None for r in records)
    rates = counted and not any("target" in r for r in records)
    prior = any("prior" in r for r in records)
    columns = [Column("metric"), *([Column("prior", "number")] if prior else [])]
    columns += [Column(name, "number") for name in ("threshold", "estimate", "low", "high")]
    if rates:
        columns += [Column("errors", "count"), Column("comparisons", "count"), Column("deff", "number", 1)]
    elif counted:
        columns.append(Column("errors", "count", 1))
    rows = []
    for r in records:
        cells = [metric_name(str(r["metric"])) if prior else name_text(r)]
        cells += ["–" if r.get("prior") is None else f"{r['prior']:.3g}"] if prior else []
        cells.append(threshold_text(r["threshold"]))
        cells += [value_text(str(r["metric"]), r[key]) for key in ("estimate", "low", "high")]
        if rates:
            cells += [count_text(r["errors"]), count_text(r["comparisons"]), design_text(r["design_effect"])]
        elif counted:
            known = r["errors"] is not None
            cells.append(f"{count_text(r['errors'])} of {count_text(r['comparisons'])}" if known else "–")
        rows.append(tuple(cells))
    notes = [DEFF] if rates else []
    notes += ["prior: share of genuine comparisons."] if prior else []
    last = records[-1] if records else {}
    if "fte" in last:
        notes.append(f"Failure to enrol {percent(last['fte'])}, failure to acquire {percent(last['fta'])}.")
    return Table(tuple(columns), tuple(rows), note=intervals_note(records, " ".join(notes)))


def to_json(
    results: Sequence[Record],
    warnings: Sequence[str],
    provenance: Mapping[str, Any],
    *,
    also: Mapping[str, Any] | None = None,
) -> str:
    """A document that a strict parser takes: NaN and infinity become null, and labels are escaped.

    also
        Further parts of it, such as claims; empty ones are left out, False is not.
    """
    document: Record = {"results": list(results), "warnings": list(warnings), "provenance": dict(provenance)}
    document |= {key: part for key, part in (also or {}).items() if part or part is False}
    return json.dumps(cleaned(document), indent=1, allow_nan=False) + "\n"


def to_csv(results: Sequence[Record], fields: Sequence[str] | None = None) -> str:
    """Comma-separated values with a header; None is an empty field, and no label is a formula."""
    names = list(fields) if fields is not None else list(dict.fromkeys(key for row in results for key in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in cleaned(list(results)):
        writer.writerow({key: "" if value is None else inert(value) for key, value in row.items()})
    return out.getvalue()


def number(value: float | None) -> float | None:
    """The number, or None where it is not one."""
    return None if value is None or not math.isfinite(value) else float(value)


def cleaned(value: Any) -> Any:
    """The same in types that JSON knows; numbers that it has no name for are None."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return {str(key): cleaned(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return cleaned(value.tolist())
    if isinstance(value, (list, tuple)):
        return [cleaned(item) for item in value]
    return value if value is None or isinstance(value, (str, bool, int)) else str(value)
