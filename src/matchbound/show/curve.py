"""Numbers of a curve as records and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matchbound.show.costs import name_text, value_text
from matchbound.show.numbers import count_text, threshold_text
from matchbound.show.records import Record, intervals_note, weighted
from matchbound.show.tables import Column, Table

if TYPE_CHECKING:
    from matchbound.results.points import CurveStatistic


def curve_records(
    statistics: Sequence[CurveStatistic], method: str | None = None, level: float = 0.95, **options: Any
) -> list[Record]:
    """One record per number, with the fields of a rate and `target` (the FAR or FRR that was asked for).

    EER and AUC have no union rule; where it is asked for, theirs is by influence functions.
    """
    records: list[Record] = []
    for statistic in statistics:
        own = "auto" if method is None or method not in statistic.methods else method
        interval = statistic.interval(own, level, **_of_method(options, own, statistic.metric))
        smooth = options.get("smooth")
        errors, comparisons = statistic.counts
        effective = statistic.effective_n
        records.append(
            {
                "metric": statistic.metric,
                "target": getattr(statistic, "target", None),
                "threshold": None if statistic.metric == "auc" else statistic.threshold,
                "estimate": statistic.estimate if smooth is None else statistic.smoothed(smooth),
                "low": interval.low,
                "high": interval.high,
                "level": interval.level,
                "method": interval.method,
                "errors": errors,
                "comparisons": comparisons,
                "identities": statistic.curve.n_identities,
                "variance": statistic.variance,
                "effective_n": effective,
                "design_effect": None if comparisons is None or not effective else comparisons / effective,
                **weighted(statistic),
                **({} if smooth is None else {"smooth": smooth, "empirical_estimate": statistic.estimate}),
            }
        )
    return records


def _of_method(options: dict[str, Any], method: str, metric: str) -> dict[str, Any]:
    """The options that a method takes: `level_far` belongs to the union rule, for FAR at an FRR as `level_frr`."""
    made = {name: value for name, value in options.items() if name != "level_far"}
    if method == "union" and "level_far" in options:
        made["level_far" if metric == "frr@far" else "level_frr"] = options["level_far"]
    return made


def curve_tables(records: Sequence[Record]) -> list[Table]:
    """The same for people."""
    rows = []
    for r in records:
        numbers = [value_text(str(r["metric"]), r[key]) for key in ("estimate", "low", "high")]
        counted = "–" if r["errors"] is None else f"{count_text(r['errors'])} of {count_text(r['comparisons'])}"
        rows.append((name_text(r), threshold_text(r["threshold"]), *numbers, counted))
    columns = (
        Column("metric"),
        *(Column(name, "number") for name in ("threshold", "estimate", "low", "high")),
        Column("errors", "count", 1),
    )
    return [Table(columns, tuple(rows), note=intervals_note(records))]


def curve_table(records: Sequence[Record], *, width: int | None = None, colour: bool = False) -> str:
    """The same as text."""
    return curve_tables(records)[0].text(width, colour)
