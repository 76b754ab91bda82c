"""Costs and linkage measures as records; numbers that are no rates for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matchbound.notes import PARTIAL_LABELS
from matchbound.show.numbers import area_text, level_text, percent, target_text
from matchbound.show.records import Record, number_record
from matchbound.show.terms import metric_name
from matchbound.show.text import table

if TYPE_CHECKING:
    from matchbound.results.costs import CostStatistic
    from matchbound.results.error_rates import ErrorRates

PLAIN = ("auc", "mindcf", "actdcf", "cllr", "mincllr")
"""Metrics that are not written in percent."""


def value_text(metric: str, value: float | None) -> str:
    """A number in the notation of its metric: costs and areas plain, rates in percent; a dash for nothing."""
    if metric not in PLAIN:
        return percent(value)
    if value is None or not math.isfinite(value):
        return "–"
    return area_text(value) if metric == "auc" else f"{value:.4f}"


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


def cost_records(statistics: Sequence[CostStatistic], method: str, level: float) -> list[Record]:
    """One record per cost, with the fields of a point of a curve; `target` is the prior.

    A method that costs do not have is answered by their own default.
    """
    records: list[Record] = []
    for statistic in statistics:
        interval = statistic.interval(method if method in statistic.methods else "auto", level)
        made = number_record(statistic, interval, statistic.curve.n_identities)
        records.append({"metric": statistic.metric, "target": getattr(statistic, "target", None), **made})
        if getattr(statistic, "preset", None):
            records[-1]["preset"] = getattr(statistic, "preset", None)
    return records


def linkage_records(
    rates: ErrorRates, priors: Sequence[float | None], method: str, level: float, **options: Any
) -> list[Record]:
    """Precision and F1 at each prior, and recall, with the fields of a rate and `prior`; nothing for a missing kind.

    Where labels cover a part of the scored pairs, precision alone: the warnings say why.
    """
    if not (rates.far.comparisons and rates.frr.comparisons):
        return []
    records: list[Record] = []
    partial = any(note.code == PARTIAL_LABELS for note in rates.warnings)
    made = [rates.precision(prior) for prior in priors] + [rates.f1(prior) for prior in priors if not partial]
    for measure in made:
        interval = None if math.isnan(measure.estimate) else measure.interval(level=level)
        records.append({**number_record(measure, interval, rates.n_identities), "prior": measure.prior})
    if partial:
        return records
    recall = rates.recall()
    interval = recall.interval(method, level, **options)
    return [*records, {**number_record(recall, interval, rates.n_identities), "prior": None}]


def linkage_record(number: Any) -> Record:
    """A number at a threshold (precision, F1, recall, HTER, GFAR, GFRR) with its default interval."""
    interval = None if math.isnan(number.estimate) else number.interval(level=0.95)
    return {
        "metric": number.metric,
        "threshold": number.threshold,
        "prior": getattr(number, "prior", None),
        "estimate": number.estimate,
        "low": getattr(interval, "low", None),
        "high": getattr(interval, "high", None),
        "level": getattr(interval, "level", None),
        "method": getattr(interval, "method", None),
        "variance": number.variance,
    }


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
