"""The section of a report that sets groups of people side by side."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, Literal

from matchbound.calls.groups import by_group
from matchbound.counting.executors import Executor
from matchbound.counting.recount import Source
from matchbound.errors import MatchboundWarning
from matchbound.report.page import (
    GroupCross,
    GroupRange,
    GroupSection,
    ReportedGap,
    ReportedGroup,
    ReportedNumber,
    ReportedPoint,
)
from matchbound.results.groups import GroupRates
from matchbound.results.rates import Rate

CROSSES = 10
"""How many pairs of groups are listed with their impostor rate, the highest first."""
GAPS = 5
"""How many differences between groups are listed for each rate, the largest first."""
Metric = Literal["far", "frr"]


def group_section(
    data: Source,
    point: ReportedPoint,
    group: Any,
    claim: Callable[[Rate], ReportedNumber],
    *,
    level: float,
    n_resamples: int,
    rng: int,
    workers: int | None,
    executor: Executor | None,
    known: Sequence[str],
    weighting: str = "comparisons",
) -> GroupSection:
    """Rates by group at an operating point, the largest gaps, and the range from best to worst group.

    Parameters
    ----------
    group
        As in `by_group`.
    claim
        States a rate as the report does.
    known
        What the report says already.
    weighting
        As in `by_group`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchboundWarning)  # they are in `warnings` of the result
        engine: dict[str, Any] = {"workers": workers, "executor": executor}
        rates = by_group(data, point.threshold, group=group, weighting=weighting, **engine)
        rows = []
        for name in rates.groups:
            far, frr = (claim(rate) if rate.comparisons else None for rate in (rates[name].far, rates[name].frr))
            rows.append(ReportedGroup(name, rates[name].n_identities, far, frr, name in rates.compared))
        gaps: list[ReportedGap] = []
        ranges: list[GroupRange] = []
        for metric in ("far", "frr"):
            found = _gaps(rates, metric, level, n_resamples, rng)
            gaps += found[:GAPS]
            ranges += _range(rates, metric, level) if found else []
        between = _between(rates, level)
    notes = tuple(note for note in rates.warnings if note not in known and note.code != "one-instance")
    overall = (rates.overall.far.estimate, rates.overall.frr.estimate)
    return GroupSection(
        point.threshold, point.reading, tuple(rows), tuple(gaps), tuple(ranges), tuple(between), overall, notes
    )


def _between(rates: GroupRates, level: float) -> list[GroupCross]:
    """Impostor rates between groups, the highest first."""
    made = []
    for one, two in combinations(rates.groups, 2):
        cell = rates.between(one, two)
        if not cell.comparisons:
            continue
        limits, upper = cell.interval(level), cell.interval(level, side="upper").high
        claim = ReportedNumber(
            "far", cell.estimate, limits.low, limits.high, upper, limits.method, cell.errors, cell.comparisons
        )
        made.append(GroupCross(one, two, claim))
    return sorted(made, key=lambda row: -row.far.estimate)[:CROSSES]


def _gaps(rates: GroupRates, metric: Metric, level: float, n_resamples: int, rng: int) -> list[ReportedGap]:
    """Gaps between groups, the largest first; with more than one pair of groups, limits that hold for all."""
    large = [name for name in rates.compared if getattr(rates[name], metric).comparisons]
    if len(large) == 2:
        gap = rates.gap(metric, large[0], large[1])
        found = [(gap, gap.interval(level=level), gap.p_value)]
    else:
        made = rates.gaps(metric, level, n_resamples=n_resamples, rng=rng)
        found = sorted([(row.gap, row.interval, row.p_value) for row in made], key=lambda row: -abs(row[0].estimate))
    return [
        ReportedGap(metric, gap.group_a, gap.group_b, gap.estimate, limits.low, limits.high, len(found), p_value)
        for gap, limits, p_value in found
    ]


def _range(rates: GroupRates, metric: Metric, level: float) -> list[GroupRange]:
    """The highest rate of a group over the lowest; nothing where no group has an error."""
    worst = rates.worst_to_best(metric, level).gap
    if worst.rate_a <= 0.0:
        return []
    limits = rates.ratio_of_worst_to_best(metric, level)
    ratio, high = (float(value) if math.isfinite(value) else None for value in (worst.ratio, limits.high))
    return [GroupRange(metric, worst.group_a, worst.group_b, worst.rate_a, worst.rate_b, ratio, limits.low, high)]
