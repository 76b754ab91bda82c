"""Searches in a gallery as records: what tables, JSON and CSV are made of."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.results.claims import Claim, Statement
from matchbound.results.interval import Interval
from matchbound.results.search_points import FnirAtFpir
from matchbound.results.search_rates import SearchRate
from matchbound.results.searches import Searches
from matchbound.show.records import Record, number


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
    """Every rate asked for with its interval, as plain records."""
    made = []
    for threshold in thresholds:
        made.append(_rate(found, found.fpir(threshold), method, level, target))
        for rank in ranks:
            made.append(_rate(found, found.fnir(threshold, rank), method, level, target))
    for rank in ranks:
        made.append(_rate(found, found.cmc(rank), method, level, target))
    for rate in fpirs:
        for rank in ranks:
            made.append(_at_fpir(found, rate, rank, method, level, target))
    for size in sizes:
        for threshold in thresholds:
            made.append(_at_size(found, size, threshold, level))
    return made


def _rate(found: Searches, rate: SearchRate, method: str, level: float, target: str) -> Record:
    interval = None
    if rate.searches:
        interval = rate.interval(method, level, gallery=target)
    else:
        _undefined(rate)
    return {
        **_common(rate.metric, rate.threshold, rate, interval, level),
        "rank": rate.rank,
        "errors": rate.errors,
        "searches": rate.searches,
        "identities": rate.n_identities,
        "gallery": found.gallery_size,
        "target": target,
        "variance": number(rate.variance(target)),
        "effective_n": number(rate.effective_n(target)),
        "design_effect": number(rate.design_effect(target)),
    }


def _at_fpir(found: Searches, fpir: float, rank: int, method: str, level: float, target: str) -> Record:
    point = None
    if found.n_nonmated and found.n_mated:
        point = found.fnir_at_fpir(fpir, rank)
    else:
        _undefined(found.fpir(0.0) if not found.n_nonmated else found.cmc(rank))
    how = method if method in ("auto", "latent") else "union"
    interval = None if point is None else point.interval(how, level, gallery=target)
    return {
        **_common("fnir@fpir", None if point is None else point.threshold, point, interval, level),
        "fpir": fpir,
        "rank": rank,
        "errors": None if point is None else point.errors,
        "searches": found.n_mated,
        "identities": None if point is None else point.n_identities,
        "gallery": found.gallery_size,
        "target": target,
    }


def _at_size(found: Searches, size: int, threshold: float, level: float) -> Record:
    if not found.n_nonmated:
        _undefined(found.fpir(threshold))
        return {**_common("fpir@size", threshold, None, None, level), "size": size, "gallery": found.gallery_size}
    try:
        rate = found.at_gallery_size(size, threshold)
    except DataError as error:
        warnings.warn(Note("not-countable", str(error)), MatchboundWarning, stacklevel=2)
        return {**_common("fpir@size", threshold, None, None, level), "size": size, "gallery": found.gallery_size}
    interval, beside = rate.interval(level=level), rate.bracket(level)
    return {
        **_common("fpir@size", threshold, rate, interval, level),
        "size": size,
        "errors": rate.errors,
        "searches": rate.searches,
        "gallery": found.gallery_size,
        "target": "random",
        "bracket_low": number(beside.low),
        "bracket_high": number(beside.high),
    }


def _common(metric: str, threshold: float | None, rate: Any, interval: Interval | None, level: float) -> Record:
    return {
        "metric": metric,
        "threshold": threshold,
        "estimate": None if rate is None else number(rate.estimate),
        "low": None if interval is None else number(interval.low),
        "high": None if interval is None else number(interval.high),
        "level": level,
        "method": None if interval is None else interval.method,
    }


def _undefined(rate: SearchRate) -> None:
    """Say why a rate is not defined."""
    try:
        rate.interval("wilson")
    except DataError as error:
        warnings.warn(Note("not-countable", str(error)), MatchboundWarning, stacklevel=3)


def search_claim(
    found: Searches,
    said: Statement,
    thresholds: Sequence[float],
    rank: int,
    *,
    level: float = 0.95,
    method: str = "auto",
    target: str = "random",
) -> Claim:
    """The verdict on a requirement about searches, at the one threshold given where it needs one."""
    if said.metric in ("fpir", "fnir") and len(thresholds) != 1:
        raise UsageError(f"the claim {said} is about one threshold; give --threshold once")
    rate: SearchRate | FnirAtFpir
    if said.metric == "fpir":
        rate = found.fpir(thresholds[0])
    elif said.metric == "fnir":
        rate = found.fnir(thresholds[0], rank)
    elif said.metric == "cmc":
        rate = found.cmc(rank)
    elif said.metric == "fnir@fpir" and said.given is not None:
        rate = found.fnir_at_fpir(said.given, rank)
        method = method if method in ("auto", "latent") else "union"
    else:
        raise UsageError(f"the claim {said} is not about searches; write fpir, fnir, cmc or fnir@fpir=RATE")
    return said.judge(rate, level=level, method=method, gallery=target)
