"""Results as plain records: what tables, JSON and CSV are made of."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matchbound.show.cells import inert
from matchbound.show.numbers import percent

if TYPE_CHECKING:
    from matchbound.results.interval import Interval
    from matchbound.results.rates import Rate

Record = dict[str, Any]

__all__ = ["RATE_FIELDS", "Record", "number", "p_text", "percent", "rate_record", "to_csv", "to_json"]

RATE_FIELDS = (
    "metric",
    "threshold",
    "estimate",
    "low",
    "high",
    "level",
    "method",
    "errors",
    "comparisons",
    "identities",
    "variance",
    "effective_n",
    "design_effect",
)


def rate_record(rate: Rate, interval: Interval | None) -> Record:
    """One rate with its interval; without comparisons there is neither, and the fields are None."""
    return {
        "metric": rate.metric,
        "threshold": rate.threshold,
        "estimate": number(rate.estimate),
        "low": None if interval is None else number(interval.low),
        "high": None if interval is None else number(interval.high),
        "level": None if interval is None else interval.level,
        "method": None if interval is None else interval.method,
        "errors": rate.errors,
        "comparisons": rate.comparisons,
        "identities": rate.tally.n_identities,
        "variance": number(rate.variance),
        "effective_n": number(rate.effective_n),
        "design_effect": number(rate.design_effect),
    }


def p_text(value: float | None) -> str:
    """A p-value for people: 0.034, <0.001; a dash for nothing."""
    if value is None or not math.isfinite(value):
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def to_json(
    results: Sequence[Record],
    warnings: Sequence[str],
    provenance: Mapping[str, Any],
    *,
    claims: Sequence[Record] = (),
) -> str:
    """A document that a strict parser takes: NaN and infinity become null, and labels are escaped."""
    document: Record = {"results": list(results), "warnings": list(warnings), "provenance": dict(provenance)}
    if claims:
        document["claims"] = list(claims)
    return json.dumps(_clean(document), indent=1, allow_nan=False) + "\n"


def to_csv(results: Sequence[Record], fields: Sequence[str] | None = None) -> str:
    """Comma-separated values with a header; None is an empty field, and no label is a formula."""
    names = list(fields) if fields is not None else list(dict.fromkeys(key for row in results for key in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in _clean(list(results)):
        writer.writerow({key: "" if value is None else inert(value) for key, value in row.items()})
    return out.getvalue()


def number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _clean(value: Any) -> Any:
    """The same with numbers that JSON has no name for set to None."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return {str(key): _clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(item) for item in value]
    return value
