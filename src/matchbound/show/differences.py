"""Systems on the same comparisons, and groups of people: records, and sections that begin with a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Literal

from matchbound.show.columns import (
    COUNTED,
    DIFFERS,
    P_VALUE,
    RATIO,
    column,
    counted,
    differs,
    intervals_note,
    pair_name,
    with_interval,
)
from matchbound.show.figures import differences_figure, groups_figure
from matchbound.show.numbers import (
    MINUS,
    count_text,
    level_text,
    p_text,
    percent,
    points,
    points_span,
    target_text,
    threshold_text,
)
from matchbound.show.records import Record, number, weighted
from matchbound.show.section import Section, Verdict
from matchbound.show.tables import Column, Table, table
from matchbound.show.terms import metric_name, say

if TYPE_CHECKING:
    from matchbound.results.comparison import FamilyRow, SystemsTable
    from matchbound.results.groups import GroupRates
    from matchbound.show.figures import Figure

MOST_ROWS = 15
# Differences between groups that are listed for each rate, the largest first, unless all are asked for.
GAPS = 5
METRICS: tuple[Literal["far", "frr"], ...] = ("far", "frr")
GROUP_FIELDS = (
    "what", "metric", "group_a", "group_b", "estimate", "low", "high", "level", "method", "errors", "comparisons",
    "identities", "variance", "ratio", "ratio_low", "ratio_high", "p_value",
)  # fmt: skip
# Methods that have simultaneous intervals.
SIMULTANEOUS = ("auto", "dyadic", "latent")


# Records


def comparison_records(
    systems: SystemsTable,
    method: str = "auto",
    level: float = 0.95,
    *,
    metrics: Sequence[str] | None = None,
    **drawn: Any,
) -> list[Record]:
    """FAR and FRR of pairs of systems, and EER of two systems alone (or `metrics`), each the first minus the second.

    Of several pairs, intervals and p-values are simultaneous. A method that a number does not have is answered by its
    default; `drawn` are ``n_resamples`` of bootstraps and ``rng``.
    """
    first, *others = systems.comparisons.values()
    if metrics is None:
        defined = [difference.metric.split("@")[0] for difference in first.differences]
        metrics = defined if others or len(defined) < 2 else [*defined, "eer"]
    drawn = {"rng": drawn.get("rng", 0)} if others else drawn
    records = []
    for metric in metrics:
        known = SIMULTANEOUS if others else getattr(first, metric).methods
        for row in systems.differences(metric, level, method=method if method in known else "auto", **drawn):
            difference: Any = row.difference
            comparison = systems.comparisons[row.a, row.b]
            places = {f"threshold_{side}": getattr(difference, side).threshold for side in "ab"}
            record = {"metric": difference.metric, "a": row.a, "b": row.b, **places, **_of_row(row)}
            record |= {"metric": difference.metric, "matched": comparison.matched}
            record |= {"identities": comparison.n_identities, **weighted(comparison.a.far)}
            records.append(record | ({"target": comparison.target} if "@" in difference.metric else {}))
    return records


def _of_row(row: FamilyRow) -> Record:
    """A difference or gap with its interval, its p-value and its ratio."""
    ratio = row.difference.as_ratio()
    limits = ratio.interval("auto", row.interval.level)
    own = {"ratio": ratio.estimate, "ratio_low": limits.low, "ratio_high": limits.high, "p_value": row.p_value}
    return row.difference.record(row.interval) | {key: number(value) for key, value in own.items()}


def group_records(rates: GroupRates, method: str = "auto", level: float = 0.95, **drawn: Any) -> list[Record]:
    """Rates within groups, impostor rates between groups, and gaps: ``what`` tells which.

    The intervals of rates are by `method`, one at a time; those of gaps are simultaneous over all pairs of groups, with
    critical values drawn by the ``rng`` among `drawn`.
    """

    def of(what: str, metric: str, pair: tuple[str, str], record: Record) -> Record:
        own = {**record, "what": what, "metric": metric, "group_a": pair[0], "group_b": pair[1]}
        return {key: own.get(key) for key in GROUP_FIELDS}

    records = []
    for group, metric in product(rates.groups, METRICS):
        rate = rates.rate(metric, group)
        interval = rate.interval(method, level) if rate.comparisons else None
        records.append(of("within", metric, (group, group), {**rate.record(interval), "identities": rate.n_identities}))
    for pair in combinations(rates.groups, 2):
        cell = rates.between(*pair)
        if cell.comparisons:
            records.append(of("between", "far", pair, cell.record(cell.interval("auto", level))))
    gap_method = method if method in ("auto", "latent", "wilson") else "auto"
    for metric in METRICS:
        rows = rates.gaps(metric, level, method=gap_method, rng=drawn.get("rng", 0))
        records += [of("gap", metric, (row.a, row.b), _of_row(row)) for row in rows]
    return records


# Systems


def comparison_section(records: Sequence[Record], focus: Sequence[Record] = ()) -> Section:
    """A verdict in a sentence or two, the differences as a figure and as a table.

    Where systems have equal FAR (or FRR), that rate has no row: it differs by nothing but ties.

    Parameters
    ----------
    focus
        The records of which the verdict speaks; by default those of the first number that can differ.
    """
    shown = without_fixed(records)
    if not shown:
        return Section("systems", "")
    first = focus or [r for r in shown if row_name(r) == row_name(shown[0])]
    many = len({(r["a"], r["b"]) for r in records}) > 1
    frr = _frr_at(first[0], shown)
    drawn = [*first, *frr] if many else shown
    drawn = sorted(drawn, key=lambda r: -abs(r["estimate"]))[:MOST_ROWS] if len(drawn) > MOST_ROWS else drawn
    figures = [
        differences_figure(rows, [pair_name(r) if many else row_name(r) for r in rows], key)
        for far, key in ((False, "differences"), (True, "differences-far"))
        if (rows := [r for r in drawn if (r["metric"] == "far") == far])
    ]
    return Section("systems", "", _lead(first, frr), figures=tuple(figures), tables=(_systems_table(shown, many),))


def without_fixed(records: Sequence[Record]) -> list[Record]:
    """The records but those of a rate that was set equal for all systems."""
    at = ("a", "b", "threshold_a", "threshold_b")
    fixed = {(r["metric"].partition("@")[2], *(r[key] for key in at)) for r in records if "@" in r["metric"]}
    return [r for r in records if (r["metric"], *(r[key] for key in at)) not in fixed]


def place_name(r: Mapping[str, Any]) -> str:
    """Where systems are compared: FAR 0.1%, the equal error rate, threshold 0.62."""
    if r["metric"] == "eer":
        return "the equal error rate"
    if r.get("target") is not None:
        return f"{metric_name(str(r['metric']).split('@')[1])} {target_text(r['target'])}"
    one, two = (threshold_text(r[f"threshold_{system}"]) for system in "ab")
    return f"threshold {one}" if one == two else f"thresholds {one} and {two}"


def row_name(r: Mapping[str, Any]) -> str:
    """What is compared: FRR at FAR 0.1%."""
    return "EER" if r["metric"] == "eer" else f"{_metric(r)} at {place_name(r)}"


def _metric(r: Mapping[str, Any]) -> str:
    return metric_name(str(r["metric"]).split("@")[0])


def _evidence(r: Mapping[str, Any], among: str = "") -> str:
    """Of a difference: its size, its interval, and its p-value."""
    limits = f"{level_text(r['level'])} interval {points_span(r['low'], r['high'])}{among}"
    return f"{points(r['estimate'])} percentage points ({limits}, {_p_value(r)})"


def _p_value(r: Mapping[str, Any]) -> str:
    shown = p_text(r["p_value"])
    return f"p {shown}" if shown[0] == "<" else f"p = {shown}"


def _frr_at(first: Record, records: Sequence[Record]) -> list[Record]:
    """The records of FRR at the thresholds where the first one is a FAR; none where a rate was set."""
    if first["metric"] != "far" or first.get("target") is not None:
        return []
    return [r for r in records if r["metric"] == "frr" and place_name(r) == place_name(first)]


def _lead(first: Sequence[Record], frr: Sequence[Record]) -> str:
    """Which system has the lower rate, or that the data cannot tell.

    At thresholds both rates are told: one of the two makes no system better.
    """
    opening = f"{'By' if first[0]['metric'] == 'eer' else 'At'} {place_name(first[0])},"
    if len(first) == 1 and not frr:
        return f"{opening} {_about_two(first[0])}"
    clauses, ways = [], []
    for rows in filter(None, (first, frr)):
        lower: dict[str, list[str]] = {}
        for r in filter(differs, rows):
            better, worse = _ordered(r)
            lower.setdefault(better[0], []).append(f"{worse[0]} ({better[1]} against {worse[1]}, {_p_value(r)})")
        ways.append({(_ordered(r)[0][0], _ordered(r)[1][0]) for r in filter(differs, rows)})
        told = "; ".join(f"lower for {name} than for {' and '.join(others)}" for name, others in lower.items())
        undecided = "cannot be told apart" + (" for any pair" if len(rows) > 1 else "")
        clauses.append(f"{_metric(rows[0])} {f'is {told}' if told else undecided}")
    among = f" ({level_text(first[0]['level'])} intervals, simultaneous over {len(first)} pairs)"
    traded = len(ways) > 1 and any((worse, better) in ways[1] for better, worse in ways[0])
    trade = " One error is traded for the other: equal FAR tells which system is better." if traded else ""
    return f"{opening} {', and '.join(clauses)}{among if len(first) > 1 else ''}.{say(trade)}"


def _ordered(r: Mapping[str, Any]) -> tuple[tuple[str, str], tuple[str, str]]:
    """Name and rate of the system with the lower rate, and of the other."""
    one, two = ((r[side], percent(r[f"rate_{side}"])) for side in "ab")
    return (one, two) if r["estimate"] < 0.0 else (two, one)


def _about_two(r: Record) -> str:
    (better, lower), (worse, higher) = _ordered(r)
    name, evidence = _metric(r), _evidence(r)
    if differs(r):
        difference = f"The difference {pair_name(r)} is {evidence}."
        return f"{better} is better: its {name} is {lower}, that of {worse} {higher}. {difference}"
    furthest = points(max(abs(r["low"]), abs(r["high"])))
    rates = f"{name} is {percent(r['rate_a'])} and {percent(r['rate_b'])}, a difference of {evidence}"
    unknown = f"That does not make them equal: {furthest} points is possible too."
    return f"the data cannot tell {r['a']} and {r['b']} apart: {rates}. {unknown}"


def _systems_table(records: Sequence[Record], many: bool) -> Table:
    first = records[0]
    one_place = many and len({place_name(r) for r in records}) == 1  # the sentence above names it
    columns = [Column("Number", "name", cell=_metric if one_place else row_name)]
    columns += [Column(f"Pair, A {MINUS} B", "name", cell=pair_name)] if many else []
    columns += [
        column("A" if many else str(first["a"]), "rate_a", percent, drop=1),
        column("B" if many else str(first["b"]), "rate_b", percent, drop=1),
        Column(f"A {MINUS} B, points" if many else "Difference, points", "number", cell=with_interval),
        RATIO,
        P_VALUE,
        DIFFERS,
    ]
    also = "Intervals and p-values are simultaneous over all pairs, those of ratios one by one." if many else ""
    return table(records, columns, note=intervals_note(records, also))


# Groups


def group_section(rates: GroupRates, records: Sequence[Record], *, everything: bool = False) -> Section:
    """A verdict per rate, people per group, rates within groups and the largest gaps.

    Parameters
    ----------
    records
        Of `group_records`.
    everything
        Whether all gaps and the rates between groups are listed too.
    """
    within, gaps, between = ([r for r in records if r["what"] == what] for what in ("within", "gap", "between"))
    level = next((level_text(r["level"]) for r in records if r["level"]), "")
    compared = [m for m in METRICS if any(r["metric"] == m and r["comparisons"] for r in within)]
    tables = [_within_table(rates, within, level)]
    listed = [r for metric in METRICS for r in _largest(gaps, metric)[: None if everything else GAPS]]
    if listed:
        tables.append(_gaps_table(listed, len(gaps), level))
    if everything and between:
        groups = Column("Groups", "name", cell=lambda r: f"{r['group_a']}, {r['group_b']}")
        rate = Column(say("FAR"), "number", cell=with_interval)
        title = f"{say('FAR')} of impostor comparisons between two groups, with {level} intervals."
        between.sort(key=lambda r: -(r["estimate"] or 0.0))
        tables.append(table(between, (groups, rate, replace(COUNTED, heading=say("False accepts"))), title))
    return Section(
        "groups",
        "",
        f"At threshold {threshold_text(rates.threshold)}; {count_text(rates.overall.n_identities)} people in "
        f"{len(rates.groups)} groups.",
        verdicts=tuple(_verdict(rates, metric, gaps) for metric in compared),
        figures=tuple(_figure(rates, within, metric) for metric in compared),
        tables=tuple(tables),
    )


def _largest(gaps: Sequence[Record], metric: str) -> list[Record]:
    """The gaps of a rate, the largest first, each from the higher rate to the lower."""
    own = [r if r["estimate"] >= 0.0 else _turned(r) for r in gaps if r["metric"] == metric]
    return sorted(own, key=lambda r: -r["estimate"])


def _turned(r: Record) -> Record:
    """The same gap the other way round."""
    over = {"ratio": r["ratio"], "ratio_low": r["ratio_high"], "ratio_high": r["ratio_low"]}
    inverse = {name: 1.0 / value if value else None for name, value in over.items()}
    inverse["ratio_low"] = inverse["ratio_low"] or 0.0  # nothing is known of the upper limit of the inverse
    turned = {"estimate": -r["estimate"], "low": -r["high"], "high": -r["low"]}
    return {**r, "group_a": r["group_b"], "group_b": r["group_a"], **turned, **inverse}


def _verdict(rates: GroupRates, metric: str, gaps: Sequence[Record]) -> Verdict:
    """Whether a rate is shown to differ between groups, and what gap these people could have shown."""
    question, own = f"{metric_name(metric)} differs between groups", _largest(gaps, metric)
    if not own:
        people = ", ".join(f"{group}: {rates[group].n_identities}" for group in rates.groups)
        return Verdict("too few people", question, f"Fewer than two groups have enough people to compare ({people}).")
    top = next((r for r in own if differs(r)), own[0])
    # The reach of the interval from its estimate is about the gap that would just have been shown.
    reach = min(top["estimate"] - top["low"], top["high"] - top["estimate"])
    evidence = _evidence(top, f", simultaneous over {len(own)} pairs" if len(own) > 1 else "")
    if differs(top):
        return Verdict("shown", question, f"{pair_name(top)} is {evidence}.")
    could = f"These people could have shown a gap of about {points(reach)} points."
    return Verdict(
        "cannot tell", question, f"The largest gap, {pair_name(top)}, is {evidence}, which may be chance. {could}"
    )


def _within_table(rates: GroupRates, within: Sequence[Record], level: str) -> Table:
    """One row per group, with both of its rates."""
    far, frr = ({r["group_a"]: r for r in within if r["metric"] == metric} for metric in METRICS)

    def people(group: str) -> str:
        few = "\ntoo few to compare" if group in rates.too_small else ""
        return f"{count_text(rates[group].n_identities)}{few}"

    columns = (
        Column("Group", "name"),
        Column("People", "number", cell=people),
        Column(say("FAR"), "number", cell=lambda group: with_interval(far[group])),
        Column(say("False accepts"), "number", 2, lambda group: counted(far[group])),
        Column(say("FRR"), "number", cell=lambda group: with_interval(frr[group])),
        Column(say("False rejects"), "number", 1, lambda group: counted(frr[group])),
    )
    title = f"Rates within groups, with {level} intervals, each for its group alone. {say('FAR')} is of comparisons"
    return table(rates.groups, columns, f"{title} inside the group.")


def _gaps_table(listed: Sequence[Record], among: int, level: str) -> Table:
    columns = (
        Column("Rate", cell=_metric),
        Column("Groups", "name", cell=pair_name),
        Column("Gap, percentage points", "number", cell=with_interval),
        RATIO,
        P_VALUE,
        DIFFERS,
    )
    many = among > len({r["metric"] for r in listed})
    opening = "Gaps between groups" if among <= len(listed) else "The largest gaps between groups"
    simultaneous = f"All gap intervals hold simultaneously ({level}); those of ratios one by one"
    return table(listed, columns, f"{opening}. {simultaneous if many else f'{level} intervals'}.")


def _figure(rates: GroupRates, within: Sequence[Record], metric: str) -> Figure:
    own = [r for r in within if r["metric"] == metric and r["low"] is not None]
    return groups_figure(rates, metric, {r["group_a"]: (r["low"], r["high"]) for r in own}, own[0]["level"])
