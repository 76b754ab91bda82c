"""Tables of numbers with intervals: the columns that records have, each written in the unit of its metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from matchbound.metrics import unit_of
from matchbound.show.numbers import (
    MINUS,
    count_text,
    level_text,
    p_text,
    percent,
    points,
    points_span,
    ratio_span,
    ratio_text,
    span,
    target_text,
    threshold_text,
)
from matchbound.show.records import Record
from matchbound.show.tables import Column, Kind, Table, as_table, table
from matchbound.show.terms import metric_name, say

if TYPE_CHECKING:
    from matchbound.results.description import Description
    from matchbound.results.searches import SearchCurve

# A longer table for people has so many rows of its beginning, and half as many of its end.
MOST_ROWS, FIRST_ROWS = 30, 12
# A single record with more fields than this is listed downwards.
WIDE = 9
DEFF = "deff: design effect, comparisons divided by the effective sample size."
# Fields in the unit of the record's metric.
OWN_UNIT = ("estimate", "low", "high", "upper", "target")
RATES = ("far", "frr", "far_upper", "rate_a", "rate_b", "fpir", "fnir", "cmc", "fpir_upper", "eer", "share")
COUNTS = ("errors", "comparisons", "identities", "matched", "n_identities", "n_resamples", "searches")
# How other fields are written; thresholds and the like are numbers in the units of the scores.
WRITERS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(RATES, percent),
    **dict.fromkeys(COUNTS, lambda value: count_text(int(value))),
    **dict.fromkeys(("variance", "far_variance", "frr_variance"), "{:.3g}".format),
    **dict.fromkeys(("ratio", "ratio_low", "ratio_high", "design_effect"), ratio_text),
    "p_value": p_text,
}


def value_text(metric: str, value: float | None) -> str:
    """A number in the notation of its metric; a dash for nothing."""
    if value is None or not math.isfinite(value):
        return "–"
    unit = unit_of(metric)
    if unit == "rate":
        return percent(value)
    if unit == "points":
        return f"{points(value)} points"
    return f"{value:.5f}" if unit == "area" else f"{value:.4f}" if unit == "cost" else f"{value:.3g}"


def span_text(metric: str, low: float, high: float) -> str:
    """An interval in the notation of its metric: 3.10–5.60%, 0.98765–0.99210."""
    return f"{value_text(metric, low)}–{value_text(metric, high)}" if unit_of(metric) != "rate" else span(low, high)


def name_text(record: Record) -> str:
    """What a number is called: "FRR at FAR 0.1%", "minDCF 0.01", "FNIR at FPIR 1%, rank 1"."""
    metric, name = str(record["metric"]), metric_name(str(record["metric"]))
    if metric == "fpir@size":
        return f"FPIR, {record['size']:,} enrolled"
    target = record.get("fpir") if "gallery" in record else record.get("target", record.get("prior"))
    if record.get("preset"):
        name = f"{name} {record['preset']}"
    elif target is not None:
        name = f"{name} {target_text(target) if '@' in metric else f'{target:.3g}'}"
    name = f"{name}, rank {record['rank']}" if record.get("rank") else name
    return f"{name} ({record['smooth']})" if record.get("smooth") else name


def is_difference(record: Record) -> bool:
    """Whether a record is of a difference of two rates, which is in percentage points."""
    return "rate_a" in record or record.get("what") == "gap" or str(record.get("metric", "")).startswith("difference")


def with_interval(record: Record) -> str:
    """A number, and its interval on a line beneath; a dash where there is no interval."""
    low, high = record["low"], record["high"]
    if low is None:
        return "–"
    limits = points_span(low, high) if is_difference(record) else span_text(str(record["metric"]), low, high)
    return f"{cell('estimate', record)}\n{limits}"


def counted(record: Record) -> str:
    """Errors of what was counted: 12 of 1,200."""
    errors, total = record.get("errors"), record.get("comparisons", record.get("searches"))
    return "–" if errors is None or not total else f"{count_text(errors)} of {count_text(total)}"


def differs(record: Record) -> bool:
    """Whether the interval of a difference leaves out 0."""
    return not record["low"] <= 0.0 <= record["high"]


def pair_name(record: Record) -> str:
    """The two that a difference is of: a − b."""
    one, two = ("group_a", "group_b") if "group_a" in record else ("a", "b")
    return f"{record[one]} {MINUS} {record[two]}"


def column(
    heading: str, field: str, write: Callable[[Any], str] | None = None, kind: Kind = "number", drop: int = 0
) -> Column:
    """The column of one field, written as its name says unless `write` writes it."""
    return Column(heading, kind, drop, lambda record: write(record.get(field)) if write else cell(field, record))


METRIC = column("metric", "metric", kind="text")
NAMED = Column("metric", cell=name_text)
PRIOR = column("prior", "prior", lambda prior: "–" if prior is None else f"{prior:.3g}")
THRESHOLD = column("threshold", "threshold")
LIMITS = tuple(column(field, field) for field in ("estimate", "low", "high"))
COUNTED = Column("errors", "number", 1, counted)
P_VALUE = column("p", "p_value")
RATIO = Column(
    "Ratio", "number", 3, lambda r: f"{ratio_text(r['ratio'])}\n{ratio_span(r['ratio_low'], r['ratio_high'])}"
)
DIFFERS = Column("Differs", "number", cell=lambda r: "yes" if differs(r) else "not shown")
RATE_COUNTS = column("errors", "errors"), column("comparisons", "comparisons"), column("deff", "design_effect", drop=1)


def number_table(records: Sequence[Record]) -> Table:
    """Numbers with their intervals, of comparisons or of searches: the columns are those that the records have."""
    searched, prior = any("gallery" in r for r in records), any("prior" in r for r in records)
    counts = searched or any(r.get("errors") is not None for r in records)
    rates = counts and not searched and not any("target" in r for r in records)
    columns = [METRIC, PRIOR] if prior else [NAMED]
    columns += [THRESHOLD, *LIMITS, *(RATE_COUNTS if rates else ())]
    if counts and not rates:
        columns.append(replace(COUNTED, heading="searches", drop=0) if searched else COUNTED)
    notes = [DEFF] if rates else []
    notes += ["prior: share of genuine comparisons."] if prior else []
    last = records[-1] if records else {}
    if "fte" in last:
        notes.append(f"Failure to enrol {percent(last['fte'])}, failure to acquire {percent(last['fta'])}.")
    if searched:
        notes.append(f"For a {last['target']} gallery; {count_text(last['gallery'])} people are enrolled.")
    return table(records, columns, note=intervals_note(records, " ".join(notes)))


def printed(records: Sequence[Record], *, distance: bool) -> list[Record]:
    """Records for a table: thresholds for an FPIR are rounded, to six digits, to where no more searches return anybody.

    They lie just beyond a score that must not be reached, so that rounding to the nearest would let it in.
    """

    def stricter(threshold: float) -> float:
        exact = Decimal(threshold)
        last = Decimal(1).scaleb(exact.adjusted() - 5)
        return float(exact.quantize(last, ROUND_FLOOR if distance else ROUND_CEILING))

    known = [r["metric"] == "fnir@fpir" and math.isfinite(r["threshold"] or math.inf) for r in records]
    return [r | {"threshold": stricter(r["threshold"])} if at else r for r, at in zip(records, known, strict=True)]


def intervals_note(records: Sequence[Record], also: str = "") -> str | None:
    """The level and the methods of the intervals; where there are several, what each was used for."""
    used: dict[str, dict[str, None]] = {}
    for r in records:
        if r["method"]:
            used.setdefault(str(r["method"]), {})[metric_name(str(r["metric"]))] = None
    level = next((r["level"] for r in records if r["level"]), None)
    if not used or level is None:
        return also or None
    first, *others = used
    methods = ", ".join([first, *(f"{method} ({', '.join(used[method])})" for method in others)])
    once = " Every identity counts once." if any(r.get("weighting") == "identities" for r in records) else ""
    return f"{level_text(level)} intervals, {methods}.{once}{' ' + also if also else ''}"


# Any records


def table_of_records(records: Sequence[Record], title: str | None = None) -> Table:
    """A table for people of any records: each field is written as its name says.

    The level and the method of intervals are said once, beneath; of many rows, the middle is left out.
    """
    note = None
    if all({"metric", "low", "level", "method"} <= set(record) for record in records):
        if "threshold" in records[0]:
            return number_table(records)
        note = intervals_note(records)
        records = [{k: v for k, v in record.items() if k not in ("level", "method")} for record in records]
    names = list(dict.fromkeys(key for record in records for key in record))
    shown = [name for name in names if any(record.get(name) is not None for record in records)]
    if len(records) == 1 and len(shown) > WIDE:
        facts = [(name.replace("_", " "), cell(name, records[0])) for name in shown]
        return replace(as_table(("", ""), facts, title), note=note)
    columns = [
        Column(name.replace("_", " "), _kind(name, records), 0 if name in (*OWN_UNIT, *RATES) else k,
               partial(cell, name))
        for k, name in enumerate(shown)
    ]  # fmt: skip
    kept: list[Record] = list(records)
    if len(records) > MOST_ROWS:
        note = f"{count_text(len(records))} rows, of which the middle is left out; to_frame() has them all."
        kept = [*records[:FIRST_ROWS], dict.fromkeys(shown, "…"), *records[-FIRST_ROWS // 2 :]]
    return table(kept, columns, title, note)


def _kind(name: str, records: Sequence[Record]) -> Kind:
    return "text" if any(isinstance(record.get(name), (str, bool, list, tuple)) for record in records) else "number"


def cell(name: str, record: Record) -> str:
    """A field of a record, written as its name and the metric of the record say."""
    value = record.get(name)
    if name == "metric" and isinstance(value, str) and " " not in value:
        return metric_name(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if name in OWN_UNIT:
            return points(value) if is_difference(record) else value_text(str(record.get("metric", "far")), value)
        if name in WRITERS:
            return WRITERS[name](value)
    return plain_text(value)


def plain_text(value: object) -> str:
    """Any value for people: yes or no, a count, six digits of a number, items with commas between them."""
    if value is None or value in ((), []):
        return "–"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(plain_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count_text(value)
    return threshold_text(value) if isinstance(value, float) else str(value)


# Single results


def description_rows(d: Description) -> list[tuple[str, str]]:
    """What the data are, as (what, value)."""
    rows = [
        ("kind", d.kind),
        ("identities", count_text(d.n_identities)),
        ("genuine comparisons", count_text(d.n_genuine)),
        ("impostor comparisons", count_text(d.n_impostor)),
    ]
    if d.n_instances is not None and d.instances_range is not None:
        low, middle, high = d.instances_range
        rows.append(("instances", f"{d.n_instances:,} ({low} to {high:,} per identity, median {middle:g})"))
        rows.append(("identities with one instance", count_text(d.n_single)))
    else:
        rows.append(("instances", "not named"))
    if d.dimensions is not None:
        rows.append(("vectors", f"{d.dimensions} dimensions, {d.dtype}, {d.similarity}"))
    else:
        complete = {True: "yes", False: "no", None: "unknown (instances are not named)"}[d.complete]
        rows += [("every pair compared", complete), ("identity pairs compared", percent(d.identity_pairs))]
    for name, scores in (("genuine scores", d.genuine_scores), ("impostor scores", d.impostor_scores)):
        if scores is not None:
            rows.append((name, f"{scores[0]:.6g} to {scores[2]:.6g}, median {scores[1]:.6g}"))
    return [*rows, ("a match is", "score <= threshold" if d.distance else "score >= threshold")]


def erring_table(metric: str, records: Sequence[Record], errors: int) -> Table:
    """The records of one kind of error, worst first; what is left out is said."""
    parts = ("identity", "instance") if any("instance_a" in r for r in records) else ("identity",)
    sides = [(part, side) for side in "ab" for part in parts]
    columns = [column("score", "score")]
    columns += [column(f"{x} {side}", f"{x}_{side}", str, "text", int(x == "instance")) for x, side in sides]
    note = f"All {count_text(errors)} errors, worst first." if errors else "No errors at this threshold."
    if len(records) < errors:
        note = f"The worst {count_text(len(records))} of {count_text(errors)} errors."
    return table(records, columns, say("False accepts" if metric == "far" else "False rejects"), note)


def hubs_table(threshold: float, hubs: Sequence[Record], half: int) -> Table:
    """The enrolled people (identity, hits, share) who receive most false hits; `half` of them receive half."""
    who = "1 enrolled person receives" if half == 1 else f"{count_text(half)} enrolled people receive"
    what = "half of the false hits of searches without a mate"
    return table_of_records(hubs, f"At threshold {threshold_text(threshold)}, {who} {what}")


def sizes_table(curve: SearchCurve) -> Table:
    """FPIR in galleries of other sizes."""
    columns = [column("enrolled", "size", kind="text"), column("FPIR", "fpir"), *LIMITS[1:]]
    return table(curve.to_records(), columns, f"FPIR at {curve.at}, with {level_text(curve.level)} intervals.")


def search_group_tables(records: Sequence[Record], gaps: Sequence[Record]) -> list[Table]:
    """Rates of groups of people searched for, and the gaps between groups in percentage points."""
    group = column("group", "group", kind="text")
    tables = [table(records, (group, NAMED, *LIMITS, replace(COUNTED, heading="searches")), "By group")]
    if gaps:
        note = f"{level_text(gaps[0]['level'])} intervals, each for its own pair of groups."
        columns = (Column("groups", cell=pair_name), METRIC, *LIMITS)
        tables.append(table(gaps, columns, "Gaps, in percentage points", note))
    return tables


def search_comparison_table(records: Sequence[Record], names: tuple[str, str]) -> Table:
    """Two systems on the same searches; differences in percentage points."""
    rates = column("A", "rate_a"), column("B", "rate_b")
    difference = replace(LIMITS[0], heading=f"A {MINUS} B, points")
    note = f"A is {names[0]}, B is {names[1]}; CMC is the share found, the others are errors."
    columns = (METRIC, *rates, difference, *LIMITS[1:], P_VALUE)
    return table(records, columns, "Two systems on the same searches", note)
