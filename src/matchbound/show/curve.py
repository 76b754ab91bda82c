"""Numbers of a curve as records and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matchbound.show.costs import name_text, value_text
from matchbound.show.records import Record
from matchbound.show.text import table

if TYPE_CHECKING:
    from matchbound.results.points import CurveStatistic


def curve_records(statistics: Sequence[CurveStatistic], method: str, level: float, **options: Any) -> list[Record]:
    """One record a number, with the fields of a rate and `target` (the FAR or FRR that was asked for).

    EER and AUC have no union rule; where it is asked for, theirs is by influence functions.
    """
    records: list[Record] = []
    for statistic in statistics:
        own = method if method in statistic.methods else "influence"
        interval = statistic.interval(own, level, **options)
        errors, comparisons = _counted(statistic)
        effective = statistic.effective_n
        records.append(
            {
                "metric": statistic.metric,
                "target": getattr(statistic, "target", None),
                "threshold": None if statistic.metric == "auc" else statistic.threshold,
                "estimate": statistic.estimate,
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
            }
        )
    return records


def curve_table(records: Sequence[Record], *, width: int = 80, colour: bool = False) -> str:
    """The same for people."""
    rows = []
    for r in records:
        shown = [value_text(str(r["metric"]), r[key]) for key in ("estimate", "low", "high")]
        counted = "–" if r["errors"] is None else f"{r['errors']:,} of {r['comparisons']:,}"
        at = "–" if r["threshold"] is None else f"{r['threshold']:.6g}"
        rows.append([name_text(r), at, *shown, counted])
    made = table(["metric", "threshold", "estimate", "low", "high", "errors"], rows, width=width, colour=colour)
    methods = list(dict.fromkeys(str(r["method"]) for r in records))
    return made + f"{100 * records[0]['level']:.5g}% intervals, {', '.join(methods)}.\n"


def _counted(statistic: CurveStatistic) -> tuple[int | None, int | None]:
    """(errors, comparisons) of the rate that the number is; None for EER and AUC."""
    curve, k = statistic.curve, statistic.index
    if statistic.metric == "frr@far":
        return int(curve.false_nonmatches[k]), curve.n_genuine
    if statistic.metric == "far@frr":
        return int(curve.false_matches[k]), curve.n_impostor
    return None, None
