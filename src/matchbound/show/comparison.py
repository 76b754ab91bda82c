"""Comparisons of systems and groups as records and as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matchbound.show.numbers import count_text, level_text, p_text, percent, points
from matchbound.show.records import Record, weighted
from matchbound.show.records import number as _number
from matchbound.show.tables import Column, Table, joined
from matchbound.show.terms import metric_name

if TYPE_CHECKING:
    import numpy as np

    from matchbound.results.comparison import Comparison, Difference
    from matchbound.results.groups import GroupRates, GroupRow
    from matchbound.results.interval import Interval
    from matchbound.results.systems import SystemsTable


def comparison_records(
    comparison: Comparison,
    names: tuple[str, str],
    method: str = "auto",
    level: float = 0.95,
    *,
    n_resamples: int = 2000,
    rng: int | np.random.Generator | None = None,
) -> list[Record]:
    """FAR, FRR and EER of two systems: one record each, the difference being the first system minus the second."""
    records = []
    differences = list(comparison.differences)
    if len(differences) == 2:
        differences.append(comparison.eer)
    for difference in differences:
        chosen = method if method in difference.methods else "auto"
        interval = difference.interval(chosen, level, n_resamples=n_resamples, rng=rng)
        records.append(_difference_record(difference, names, interval, difference.p_value, comparison))
    return records


def systems_records(systems: SystemsTable, method: str = "auto", level: float = 0.95, *, rng: int = 0) -> list[Record]:
    """FAR and FRR of all pairs of systems with simultaneous intervals."""
    records = []
    for metric in ("far", "frr"):
        if any(_number(rate) is None for rate in systems.rates(metric).values()):
            continue
        for row in systems.differences(metric, level, method=method, rng=rng):
            comparison = systems.comparisons[row.a, row.b]
            records.append(_difference_record(row.difference, (row.a, row.b), row.interval, row.p_value, comparison))
    return records


def _difference_record(
    difference: Difference, names: tuple[str, str], interval: Interval, p_value: float, comparison: Comparison
) -> Record:
    ratio = difference.ratio_interval("auto", interval.level)
    return {
        "metric": difference.metric,
        "a": names[0],
        "b": names[1],
        "threshold_a": getattr(difference, "threshold_a", comparison.threshold[0]),
        "threshold_b": getattr(difference, "threshold_b", comparison.threshold[1]),
        "rate_a": _number(difference.rate_a),
        "rate_b": _number(difference.rate_b),
        "estimate": _number(difference.estimate),
        "low": _number(interval.low),
        "high": _number(interval.high),
        "level": interval.level,
        "method": interval.method,
        "ratio": _number(difference.ratio),
        "ratio_low": _number(ratio.low),
        "ratio_high": _number(ratio.high),
        "p_value": _number(p_value),
        "variance": _number(difference.variance),
        "matched": comparison.matched,
        "identities": comparison.n_identities,
        **weighted(comparison.a.far),
    }


def comparison_tables(records: Sequence[Record]) -> list[Table]:
    """The records as a table for people; differences are in percentage points."""
    many = len({(r["a"], r["b"]) for r in records}) > 1
    columns = (
        Column("metric"),
        *((Column("pair"),) if many else ()),
        Column("A", "number", 2),
        Column("B", "number", 1),
        Column("A − B, points", "number"),
        Column("low", "number"),
        Column("high", "number"),
        Column("p", "number"),
    )
    rows = tuple(
        (
            metric_name(str(r["metric"])),
            *((f"{r['a']} − {r['b']}",) if many else ()),
            percent(r["rate_a"]),
            percent(r["rate_b"]),
            points(r["estimate"]),
            points(r["low"]),
            points(r["high"]),
            p_text(r["p_value"]),
        )
        for r in records
    )
    if not records:
        return [Table(columns, rows)]
    first = records[0]
    level, methods = level_text(first["level"]), ", ".join(dict.fromkeys(str(r["method"]) for r in records))
    named = "" if (first["a"], first["b"]) == ("A", "B") else f"A is {first['a']}, B is {first['b']}; "
    note = f"{named}{level} intervals ({methods})."
    if many:
        note = f"{level} simultaneous intervals, which hold together ({methods}); p adjusted for all pairs."
    if first.get("weighting") == "identities":
        note += " Every identity counts once."
    return [Table(columns, rows, note=note)]


def comparison_text(records: Sequence[Record], *, width: int | None = None, colour: bool = False) -> str:
    """The same as text."""
    return joined(comparison_tables(records), width, colour)


def group_records(rates: GroupRates, method: str = "auto", level: float = 0.95) -> list[Record]:
    """Rates within groups, impostor rates between groups, and gaps: ``what`` tells which.

    The intervals of rates are by `method`, one at a time; those of gaps hold together over all pairs of groups.
    """
    records = []
    for group in rates.groups:
        for metric in ("far", "frr"):
            rate = getattr(rates[group], metric)
            interval = rate.interval(method, level) if rate.comparisons else None
            records.append(_group_record("within", metric, group, group, rate, interval))
    for i, one in enumerate(rates.groups):
        for two in rates.groups[i + 1 :]:
            cell = rates.between(one, two)
            if cell.comparisons:
                records.append(_group_record("between", "far", one, two, cell, cell.interval(level)))
    gap_method = method if method in ("auto", "latent", "wilson") else "auto"
    for metric in ("far", "frr"):
        for row in rates.gaps(metric, level, method=gap_method):  # type: ignore[arg-type]
            records.append(_gap_record(row, level))
    return records


def _group_record(what: str, metric: str, one: str, two: str, rate: object, interval: Interval | None) -> Record:
    return {
        "what": what,
        "metric": metric,
        "group_a": one,
        "group_b": two,
        "estimate": _number(getattr(rate, "estimate")),  # noqa: B009
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "level": None if interval is None else interval.level,
        "method": None if interval is None else interval.method,
        "errors": getattr(rate, "errors"),  # noqa: B009
        "comparisons": getattr(rate, "comparisons"),  # noqa: B009
        "identities": getattr(rate, "n_identities", None),
        "variance": _number(getattr(rate, "variance")),  # noqa: B009
        "ratio": None,
        "ratio_low": None,
        "ratio_high": None,
        "p_value": None,
    }


def _gap_record(row: GroupRow, level: float) -> Record:
    gap = row.gap
    ratio = gap.ratio_interval("auto", level)
    return {
        "what": "gap",
        "metric": gap.metric,
        "group_a": gap.group_a,
        "group_b": gap.group_b,
        "estimate": _number(gap.estimate),
        "low": row.interval.low,
        "high": row.interval.high,
        "level": level,
        "method": row.interval.method,
        "errors": None,
        "comparisons": None,
        "identities": None,
        "variance": _number(gap.variance),
        "ratio": _number(gap.ratio),
        "ratio_low": _number(ratio.low),
        "ratio_high": _number(ratio.high),
        "p_value": row.p_value,
    }


def group_tables(records: Sequence[Record]) -> list[Table]:
    """The records as three tables for people: within groups, between groups, gaps in percentage points."""
    tables = []
    for what, title in (
        ("within", "Within groups"),
        ("between", "Impostors between groups"),
        ("gap", "Gaps, in points"),
    ):
        chosen = [r for r in records if r["what"] == what]
        if not chosen:
            continue
        write = points if what == "gap" else percent
        columns = [Column("group"), Column("metric"), *(Column(name, "number") for name in ("estimate", "low", "high"))]
        columns += (
            [Column("p", "number")] if what == "gap" else [Column("errors", "count"), Column("comparisons", "count")]
        )
        rows = []
        for r in chosen:
            name = r["group_a"] if what == "within" else f"{r['group_a']} − {r['group_b']}"
            if what == "between":
                name = f"{r['group_a']}, {r['group_b']}"
            last = [p_text(r["p_value"])] if what == "gap" else [count_text(r["errors"]), count_text(r["comparisons"])]
            numbers = [write(r["estimate"]), write(r["low"]), write(r["high"])]
            rows.append((str(name), metric_name(str(r["metric"])), *numbers, *last))
        tables.append(Table(tuple(columns), tuple(rows), title))
    level = next((r["level"] for r in records if r["level"]), None)
    if level is not None and tables:
        together = " The intervals of gaps hold together." if any(r["what"] == "gap" for r in records) else ""
        last_table = tables.pop()
        note = f"{level_text(level)} intervals.{together}"
        tables.append(Table(last_table.columns, last_table.rows, last_table.title, note))
    return tables


def group_text(records: Sequence[Record], *, width: int | None = None, colour: bool = False) -> str:
    """The same as text."""
    return joined(group_tables(records), width, colour)
