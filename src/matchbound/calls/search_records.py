"""Numbers about searches as records, and verdicts on them: what tables, JSON and reports are made of."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from matchbound.errors import DataError, MatchboundWarning
from matchbound.metrics import METRICS
from matchbound.notes import Note
from matchbound.results.claims import Claim, Statement
from matchbound.results.interval import limits_record
from matchbound.results.number import Number
from matchbound.results.search_rates import RateAtSize, SearchNumber, gallery_named
from matchbound.results.searches import Searches
from matchbound.show.records import Record


def search_records(
    found: Searches,
    thresholds: Sequence[float],
    fpirs: Sequence[float],
    ranks: Sequence[int],
    sizes: Sequence[int],
    *,
    method: str = "auto",
    level: float = 0.95,
    target: str = "random",
) -> list[Record]:
    """Every rate asked for with its interval, as plain records; without limits, and with a warning, where undefined."""
    asked: list[dict[str, Any]] = []
    for at in thresholds:
        asked += [{"metric": "fpir", "threshold": at}]
        asked += [{"metric": "fnir", "threshold": at, "rank": rank} for rank in ranks]
    asked += [{"metric": "cmc", "rank": rank} for rank in ranks]
    asked += [{"metric": "fnir@fpir", "given": rate, "fpir": rate, "rank": rank} for rate in fpirs for rank in ranks]
    asked += [{"metric": "fpir@size", "given": n, "size": n, "threshold": at} for n in sizes for at in thresholds]
    return [_record(found, each, method, level, target) for each in asked]


def _record(found: Searches, asked: dict[str, Any], method: str, level: float, target: str) -> Record:
    try:
        number: SearchNumber = METRICS[asked["metric"]].read["searches"](found, asked)
        number._must_be_defined()
    except DataError as error:
        warnings.warn(Note("not-countable", str(error)), MatchboundWarning, stacklevel=3)
        nothing = {"threshold": None, "estimate": None, **limits_record(None), "level": level}
        return {**nothing, "gallery": found.gallery_size, "target": target, **asked}
    if not isinstance(number, RateAtSize):
        number = replace(number, gallery=gallery_named(target))  # type: ignore[type-var]
    return number.record(number.interval(_method(number, method), level))


def _method(number: Number, method: str) -> str:
    """The method asked for, where the number has it, or the one that comes nearest."""
    if method in number.methods:
        return method
    return "union" if "union" in number.methods else "auto"


def search_claim(
    found: Searches,
    statement: Statement,
    thresholds: Sequence[float],
    rank: int,
    *,
    level: float = 0.95,
    method: str = "auto",
    target: str = "random",
) -> Claim:
    """The verdict on a requirement about searches, at the one threshold given where it needs one."""
    at = {"threshold": thresholds[0]} if len(thresholds) == 1 else {}
    number = found.claimed(statement, rank=rank, **at)
    options = {"gallery": target} if not isinstance(number, RateAtSize) else {}
    return statement.judge(number, level=level, method=_method(number, method), **options)
