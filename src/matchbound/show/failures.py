"""Generalised rates as records and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matchbound.show.numbers import percent
from matchbound.show.records import Record
from matchbound.show.text import table

if TYPE_CHECKING:
    from matchbound.results.error_rates import ErrorRates
    from matchbound.results.failures import GeneralisedRates


def generalised_records(rates: GeneralisedRates, level: float) -> list[Record]:
    """GFAR and GFRR with the fields of a rate, and FTE and FTA beside them."""
    records: list[Record] = []
    for rate in (rates.gfar, rates.gfrr):
        if not rate.rate.comparisons:
            continue
        interval = rate.interval(level=level)
        records.append(
            {
                "metric": rate.metric,
                "threshold": rate.threshold,
                "estimate": rate.estimate,
                "low": interval.low,
                "high": interval.high,
                "level": interval.level,
                "method": interval.method,
                "errors": None,
                "comparisons": None,
                "identities": rate.failures.people or rate.rate.n_identities,
                "variance": rate.variance,
                "effective_n": None,
                "design_effect": None,
                "fte": rate.fte,
                "fta": rate.fta,
            }
        )
    return records


def hter_record(rates: ErrorRates, level: float) -> Record:
    """The half total error rate with the fields of a rate."""
    made = rates.hter()
    interval = made.interval(level=level)
    return {
        "metric": made.metric,
        "threshold": made.threshold,
        "estimate": made.estimate,
        "low": interval.low,
        "high": interval.high,
        "level": interval.level,
        "method": interval.method,
        "errors": None,
        "comparisons": None,
        "identities": rates.n_identities,
        "variance": made.variance,
        "effective_n": None,
        "design_effect": None,
    }


def generalised_table(records: Sequence[Record], *, width: int | None = None, colour: bool = False) -> str:
    """The same for people."""
    rows = [
        [str(r["metric"]).upper(), f"{r['threshold']:.6g}", *[percent(r[k]) for k in ("estimate", "low", "high")]]
        for r in records
    ]
    made = table(["metric", "threshold", "estimate", "low", "high"], rows, width=width, colour=colour)
    said = f"{100 * records[0]['level']:.5g}% intervals."
    last = records[-1]
    if "fte" in last:
        said += f" Failure to enrol {percent(last['fte'])}, failure to acquire {percent(last['fta'])}."
    return made + f"{said}\n"
