"""Generalised rates as records and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matchbound.show.numbers import percent
from matchbound.show.records import Record, number_record
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
        people = rate.failures.people or rate.rate.n_identities
        records.append({**number_record(rate, interval, people), "fte": rate.fte, "fta": rate.fta})
    return records


def hter_record(rates: ErrorRates, level: float) -> Record:
    """The half total error rate with the fields of a rate."""
    made = rates.hter()
    return number_record(made, made.interval(level=level), rates.n_identities)


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
