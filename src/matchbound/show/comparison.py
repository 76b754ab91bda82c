"""Systems on the same comparisons: records, and a section that begins with a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matchbound.show.figures import differences_figure
from matchbound.show.numbers import (
    MINUS,
    level_text,
    p_text,
    percent,
    points,
    points_span,
    ratio_span,
    ratio_text,
    target_text,
    threshold_text,
)
from matchbound.show.records import Record, weighted
from matchbound.show.records import number as _number
from matchbound.show.section import Section
from matchbound.show.tables import Column, Table
from matchbound.show.terms import metric_name

if TYPE_CHECKING:
    import numpy as np

    from matchbound.results.comparison import Comparison, Difference
    from matchbound.results.interval import Interval
    from matchbound.results.systems import SystemsTable

MOST_PAIRS = 6
"""Pairs of systems that a sentence lists by name; of more it tells the number."""
MOST_ROWS = 15


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
        records.append(difference_record(difference, names, interval, difference.p_value, comparison))
    return records


def systems_records(
    systems: SystemsTable,
    method: str = "auto",
    level: float = 0.95,
    *,
    rng: int = 0,
    metrics: Sequence[str] = ("far", "frr"),
) -> list[Record]:
    """FAR and FRR of all pairs of systems with simultaneous intervals."""
    records = []
    for metric in metrics:
        if any(_number(rate) is None for rate in systems.rates(metric).values()):
            continue
        for row in systems.differences(metric, level, method=method, rng=rng):
            comparison = systems.comparisons[row.a, row.b]
            records.append(difference_record(row.difference, (row.a, row.b), row.interval, row.p_value, comparison))
    return records


def difference_record(
    difference: Difference, names: tuple[str, str], interval: Interval, p_value: float, comparison: Comparison
) -> Record:
    """A difference of one number of two systems, A minus B."""
    ratio = difference.ratio_interval("auto", interval.level)
    at = comparison.target if difference.metric in ("frr@far", "far@frr") else None
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
        **({} if at is None else {"target": at}),
        **({"disagree": False} if any(note.code == "never-disagree" for note in difference.notes) else {}),
        **weighted(comparison.a.far),
    }


def comparison_section(records: Sequence[Record], focus: Sequence[Record] = ()) -> Section:
    """A verdict in one sentence or two, the differences as a figure and as a table.

    Where systems have equal FAR (or FRR), that rate has no row: it differs by nothing but ties.

    Parameters
    ----------
    focus
        The records of which the verdict speaks; by default those of the first number that can differ.
    """
    aimed = {"far@frr": "frr", "frr@far": "far"}
    fixed = {aimed[str(r["metric"])] for r in records if str(r["metric"]) in aimed}
    shown = [r for r in records if r["metric"] not in fixed or r.get("reading")]
    if not shown:
        return Section("systems", "")
    first = focus or [r for r in shown if place_name(r) == place_name(shown[0]) and r["metric"] == shown[0]["metric"]]
    many = len({(r["a"], r["b"]) for r in records}) > 1
    drawn = first if many else shown
    drawn = sorted(drawn, key=lambda r: -abs(r["estimate"]))[:MOST_ROWS] if len(drawn) > MOST_ROWS else drawn
    names = [f"{r['a']} {MINUS} {r['b']}" if many else row_name(r) for r in drawn]
    figures = [
        differences_figure(rows, [names[k] for k, r in enumerate(drawn) if (r["metric"] == "far") == far], key)
        for far, key in ((False, "differences"), (True, "differences-far"))
        for rows in [[r for r in drawn if (r["metric"] == "far") == far]]
        if rows
    ]
    lead = _about_many(first) if many else _about_two(first[0])
    return Section(
        "systems",
        "",
        lead,
        () if many else tuple(_at_thresholds(shown)),
        figures=tuple(figures),
        tables=(_table(shown, many),),
    )


def place_name(r: Mapping[str, Any]) -> str:
    """Where systems are compared: FAR 0.1%, the equal error rate, threshold 0.62."""
    if r["metric"] == "eer":
        return "the equal error rate"
    if r.get("target") is not None:
        return f"{metric_name(str(r['metric']).split('@')[1])} {target_text(r['target'])}"
    if r.get("reading"):
        return f"threshold {r['reading']}"
    one, two = (threshold_text(r[f"threshold_{system}"]) for system in "ab")
    return f"threshold {one}" if one == two else f"thresholds {one} and {two}"


def row_name(r: Mapping[str, Any]) -> str:
    """What is compared: FRR at FAR 0.1%."""
    return "EER" if r["metric"] == "eer" else f"{_metric(r)} at {place_name(r)}"


def _metric(r: Mapping[str, Any]) -> str:
    return metric_name(str(r["metric"]).split("@")[0])


def _differs(r: Mapping[str, Any]) -> bool:
    return not r["low"] <= 0.0 <= r["high"]


def _quoted(name: str) -> str:
    """A name within a sentence, in quotation marks where it could be taken for several words of it."""
    return f"“{name}”" if any(mark in name for mark in (",", ";", ":", " and ", " than ")) else name


def _opening(r: Mapping[str, Any]) -> str:
    return f"{'By' if r['metric'] == 'eer' else 'At'} {place_name(r)},"


def _better(r: Mapping[str, Any]) -> tuple[str, str]:
    """The system with the lower rate, and the other."""
    a, b = _quoted(str(r["a"])), _quoted(str(r["b"]))
    return (a, b) if r["estimate"] < 0.0 else (b, a)


def _p(value: float) -> str:
    shown = p_text(value)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def _about_two(r: Record) -> str:
    name, a, b = _metric(r), _quoted(str(r["a"])), _quoted(str(r["b"]))
    one, two = percent(r["rate_a"]), percent(r["rate_b"])
    furthest = points(max(abs(r["low"]), abs(r["high"])))
    told = f"{level_text(r['level'])} interval {points_span(r['low'], r['high'])}, {_p(r['p_value'])}"
    if r.get("disagree") is False:
        return (
            f"{_opening(r)} nothing in the data tells {a} and {b} apart: {name} is {one} and {two}. A difference of "
            f"{furthest} percentage points is still possible."
        )
    if _differs(r):
        better, worse = _better(r)
        mine, theirs = sorted((one, two), key=(one, two).index, reverse=r["estimate"] > 0.0)
        return (
            f"{_opening(r)} {better} is better: its {name} is {mine}, that of {worse} {theirs}. The difference "
            f"{a} {MINUS} {b} is {points(r['estimate'])} percentage points ({told})."
        )
    return (
        f"{_opening(r)} the data cannot tell {a} and {b} apart: {name} is {one} and {two}, a difference of "
        f"{points(r['estimate'])} percentage points ({told}). That does not make them equal: {furthest} points is "
        "possible too."
    )


def _at_thresholds(records: Sequence[Record]) -> list[str]:
    """For each threshold, which system has the lower FAR and which the lower FRR."""
    rows = [r for r in records if r.get("reading")]
    sentences = []
    for far, frr in zip(rows[::2], rows[1::2], strict=False):
        parts = []
        for r in (far, frr):
            rates = sorted((r["rate_a"], r["rate_b"]))
            parts.append(
                f"{_metric(r)} is lower for {_better(r)[0]} ({percent(rates[0])} against {percent(rates[1])})"
                if _differs(r)
                else f"{_metric(r)} cannot be told apart ({percent(r['rate_a'])} and {percent(r['rate_b'])})"
            )
        trade = ""
        if _differs(far) and _differs(frr) and _better(far) != _better(frr):
            trade = " One error is traded for the other, so this does not say which system is better; equal FAR does."
        sentences.append(f"At threshold {far['reading']}, {parts[0]}, and {parts[1]}.{trade}")
    return sentences


def _about_many(rows: Sequence[Record]) -> str:
    names = list(dict.fromkeys(str(name) for r in rows for name in (r["a"], r["b"])))
    sure = f"{level_text(rows[0]['level'])} intervals, simultaneous over {len(rows)} pairs"
    decided = [r for r in rows if _differs(r)]
    if not decided:
        return f"{_opening(rows[0])} the data cannot tell any two of the {len(names)} systems apart ({sure})."
    beaten = {name: [_better(r)[1] for r in decided if _better(r)[0] == _quoted(name)] for name in names}
    told = [f"lower for {_quoted(name)} than for {_listed(worse)}" for name, worse in beaten.items() if worse]
    sentence = f"{_opening(rows[0])} {_metric(rows[0])} is {'; '.join(told)} ({sure})."
    undecided = [f"{_quoted(str(r['a']))} and {_quoted(str(r['b']))}" for r in rows if not _differs(r)]
    if len(undecided) > MOST_PAIRS:
        return f"{sentence} The other {len(undecided)} pairs cannot be told apart."
    return sentence + (f" The data cannot tell apart {'; '.join(undecided)}." if undecided else "")


def _listed(words: Sequence[str]) -> str:
    """a; a and b; a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _table(records: Sequence[Record], many: bool) -> Table:
    first = records[0]
    one_place = many and len({place_name(r) for r in records}) == 1  # the sentence above names it
    columns = (
        Column("Number", "name"),
        *((Column("Pair, A − B", "name"),) if many else ()),
        Column("A" if many else str(first["a"]), "number", 2),
        Column("B" if many else str(first["b"]), "number", 1),
        Column("A − B, points" if many else "difference, percentage points", "number"),
        Column("ratio", "number", 3),
        Column("p", "number"),
        Column("differ", "number"),
    )
    rows = tuple(
        (
            _metric(r) if one_place else row_name(r),
            *((f"{r['a']} {MINUS} {r['b']}",) if many else ()),
            percent(r["rate_a"]),
            percent(r["rate_b"]),
            f"{points(r['estimate'])}\n{points_span(r['low'], r['high'])}",
            f"{ratio_text(r['ratio'])}\n{ratio_span(r['ratio_low'], r['ratio_high'])}",
            p_text(r["p_value"]),
            "yes" if _differs(r) else "cannot tell",
        )
        for r in records
    )
    used: dict[str, dict[str, None]] = {}
    for r in records:
        used.setdefault(str(r["method"]), {})[row_name(r) if not many else _metric(r)] = None
    methods = ", ".join(f"{method} ({', '.join(names)})" if len(used) > 1 else method for method, names in used.items())
    level = level_text(first["level"])
    note = f"{level} intervals, {methods}."
    if many:
        note = f"{level} intervals of differences, {methods}, simultaneous over all pairs; p is adjusted for all pairs."
    once = " Every identity counts once." if first.get("weighting") == "identities" else ""
    return Table(columns, rows, note=f"{note}{once}")
