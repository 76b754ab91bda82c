"""Groups of people side by side: records, and a section that begins with a verdict per rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matchbound.show.figures import groups_figure
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
    threshold_text,
)
from matchbound.show.records import Record
from matchbound.show.records import number as _number
from matchbound.show.section import Section, Verdict
from matchbound.show.tables import Column, Table
from matchbound.show.terms import metric_name, say

if TYPE_CHECKING:
    from matchbound.results.groups import GroupRates

GAPS = 5
"""Differences between groups that are listed for each rate, the largest first, unless all are asked for."""
METRICS = ("far", "frr")


def group_records(rates: GroupRates, method: str = "auto", level: float = 0.95, **drawn: Any) -> list[Record]:
    """Rates within groups, impostor rates between groups, and gaps: ``what`` tells which.

    The intervals of rates are by `method`, one at a time; those of gaps are simultaneous over all pairs of groups.
    """
    records = []
    for group in rates.groups:
        for metric in METRICS:
            rate = getattr(rates[group], metric)
            interval = rate.interval(method, level) if rate.comparisons else None
            records.append(_group_record("within", metric, group, group, rate, interval))
    for i, one in enumerate(rates.groups):
        for two in rates.groups[i + 1 :]:
            cell = rates.between(one, two)
            if cell.comparisons:
                records.append(_group_record("between", "far", one, two, cell, cell.interval(level)))
    gap_method = method if method in ("auto", "latent", "wilson") else "auto"
    for metric in METRICS:
        for row in rates.gaps(metric, level, method=gap_method, **drawn):  # type: ignore[arg-type]
            gap, ratio = row.gap, row.gap.ratio_interval("auto", level)
            record = _group_record("gap", metric, gap.group_a, gap.group_b, gap, row.interval)
            record |= {"level": level, "ratio": _number(gap.ratio), "p_value": row.p_value}
            records.append(record | {"ratio_low": _number(ratio.low), "ratio_high": _number(ratio.high)})
    return records


def _group_record(what: str, metric: str, one: str, two: str, rate: Any, interval: Any) -> Record:
    counted = what != "gap"
    return {
        "what": what,
        "metric": metric,
        "group_a": one,
        "group_b": two,
        "estimate": _number(rate.estimate),
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "level": None if interval is None else interval.level,
        "method": None if interval is None else interval.method,
        "errors": rate.errors if counted else None,
        "comparisons": rate.comparisons if counted else None,
        "identities": getattr(rate, "n_identities", None) if counted else None,
        "variance": _number(rate.variance),
        "ratio": None,
        "ratio_low": None,
        "ratio_high": None,
        "p_value": None,
    }


def group_section(rates: GroupRates, records: Sequence[Record], *, everything: bool = False) -> Section:
    """A verdict per rate, people per group, rates within groups and the largest gaps.

    Parameters
    ----------
    records
        Of `group_records`.
    everything
        Whether all gaps and the rates between groups are listed too.
    """
    within, gaps = ([r for r in records if r["what"] == what] for what in ("within", "gap"))
    level = next((level_text(r["level"]) for r in records if r["level"]), "")
    verdicts = tuple(_verdict(rates, metric, gaps, level) for metric in METRICS if _compared(within, metric))
    tables = [_within(rates, within, level)]
    listed = [r for metric in METRICS for r in _largest(gaps, metric)[: None if everything else GAPS]]
    if listed:
        tables.append(_gaps(listed, len(gaps), level))
    between = sorted((r for r in records if r["what"] == "between"), key=lambda r: -(r["estimate"] or 0.0))
    if everything and between:
        tables.append(_between(between, level))
    return Section(
        "groups",
        "",
        f"At threshold {threshold_text(rates.threshold)}; {count_text(rates.overall.n_identities)} people in "
        f"{len(rates.groups)} groups.",
        verdicts=verdicts,
        figures=tuple(_figure(rates, within, metric) for metric in METRICS if _compared(within, metric)),
        tables=tuple(tables),
    )


def _compared(within: Sequence[Record], metric: str) -> bool:
    return any(r["metric"] == metric and r["comparisons"] for r in within)


def _largest(gaps: Sequence[Record], metric: str) -> list[Record]:
    """The gaps of a rate, the largest first, each from the higher rate to the lower."""
    mine = [r if r["estimate"] >= 0.0 else _turned(r) for r in gaps if r["metric"] == metric]
    return sorted(mine, key=lambda r: -r["estimate"])


def _turned(r: Record) -> Record:
    """The same gap the other way round."""
    over = {"ratio": r["ratio"], "ratio_low": r["ratio_high"], "ratio_high": r["ratio_low"]}
    inverse = {name: 1.0 / value if value else None for name, value in over.items()}
    inverse["ratio_low"] = inverse["ratio_low"] or 0.0  # nothing is known of the upper limit of the inverse
    turned = {"estimate": -r["estimate"], "low": -r["high"], "high": -r["low"]}
    return {**r, "group_a": r["group_b"], "group_b": r["group_a"], **turned, **inverse}


def _verdict(rates: GroupRates, metric: str, gaps: Sequence[Record], level: str) -> Verdict:
    """Whether a rate is shown to differ between groups, and what gap these people could have shown."""
    name, mine = metric_name(metric), _largest(gaps, metric)
    question = f"{name} differs between groups"
    if not mine:
        people = ", ".join(f"{group}: {rates[group].n_identities}" for group in rates.groups)
        return Verdict("too few people", question, f"Fewer than two groups have enough people to compare ({people}).")
    top = next((r for r in mine if not r["low"] <= 0.0 <= r["high"]), mine[0])
    # The reach of the interval from its estimate is about the gap that would just have been shown.
    reach = min(top["estimate"] - top["low"], top["high"] - top["estimate"])
    among = f", simultaneous over {len(mine)} pairs" if len(mine) > 1 else ""
    pair = f"{top['group_a']} {MINUS} {top['group_b']}"
    told = (
        f"{points(top['estimate'])} percentage points ({level} interval {points_span(top['low'], top['high'])}{among}; "
        f"p {_equals(top['p_value'])})"
    )
    if not top["low"] <= 0.0 <= top["high"]:
        return Verdict("shown", question, f"{pair} is {told}.")
    could = f"These people could have shown a gap of about {points(reach)} points."
    return Verdict("cannot tell", question, f"The largest gap, {pair}, is {told}, which may be chance. {could}")


def _equals(value: float) -> str:
    shown = p_text(value)
    return shown if shown.startswith("<") else f"= {shown}"


def _within(rates: GroupRates, within: Sequence[Record], level: str) -> Table:
    columns = (
        Column("Group", "name"),
        Column("People", "number"),
        Column(say("FAR"), "number"),
        Column(say("False accepts"), "count", 2),
        Column(say("FRR"), "number"),
        Column(say("False rejects"), "count", 1),
    )
    rows = []
    for group in rates.groups:
        small = "\ntoo few to compare" if group in rates.too_small else ""
        cells = [group, f"{count_text(rates[group].n_identities)}{small}"]
        for r in (r for r in within if r["group_a"] == group):
            known = r["comparisons"] and r["low"] is not None
            cells.append(f"{percent(r['estimate'])}\n{span(r['low'], r['high'])}" if known else "–")
            cells.append(f"{count_text(r['errors'])} of {count_text(r['comparisons'])}" if known else "–")
        rows.append(tuple(cells))
    told = f"Rates within groups, with {level} intervals, each for its group alone"
    return Table(columns, tuple(rows), f"{told}. {say('FAR')} is of comparisons inside the group.")


def _gaps(listed: Sequence[Record], among: int, level: str) -> Table:
    columns = (
        Column("Rate"),
        Column("Groups", "name"),
        Column("Gap, percentage points", "number"),
        Column("Ratio", "number", 2),
        Column("p", "number", 1),
        Column("Differs", "number"),
    )
    rows = tuple(
        (
            metric_name(str(r["metric"])),
            f"{r['group_a']} {MINUS} {r['group_b']}",
            f"{points(r['estimate'])}\n{points_span(r['low'], r['high'])}",
            f"{ratio_text(r['ratio'])}\n{ratio_span(r['ratio_low'], r['ratio_high'])}",
            p_text(r["p_value"]),
            "not shown" if r["low"] <= 0.0 <= r["high"] else "yes",
        )
        for r in listed
    )
    many = among > len({r["metric"] for r in listed})
    opening = "Gaps between groups" if among <= len(listed) else "The largest gaps between groups"
    told = (
        f"All gap intervals hold simultaneously ({level}); those of ratios one by one" if many else f"{level} intervals"
    )
    return Table(columns, rows, f"{opening}. {told}.")


def _between(between: Sequence[Record], level: str) -> Table:
    columns = (Column("Groups", "name"), Column(say("FAR"), "number"), Column(say("False accepts"), "count", 1))
    rows = tuple(
        (
            f"{r['group_a']}, {r['group_b']}",
            f"{percent(r['estimate'])}\n{span(r['low'], r['high'])}",
            f"{count_text(r['errors'])} of {count_text(r['comparisons'])}",
        )
        for r in between
    )
    return Table(columns, rows, f"{say('FAR')} of impostor comparisons between two groups, with {level} intervals.")


def _figure(rates: GroupRates, within: Sequence[Record], metric: str) -> Any:
    rows = [
        (
            str(r["group_a"]), r["estimate"], r["low"], r["high"],
            rates[r["group_a"]].n_identities, r["group_a"] in rates.compared,
        )
        for r in within
        if r["metric"] == metric and r["low"] is not None
    ]  # fmt: skip
    level = next(r["level"] for r in within if r["level"])
    return groups_figure(rows, getattr(rates.overall, metric).estimate, metric, level)
