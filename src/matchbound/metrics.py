"""Every metric once: its name, the unit it is written in, and how it is read from a result.

Claims, the command line, tables and reports look metrics up here. To add a metric, give its value and its sums in
`stats`, its class in `results` and one entry below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# Rates are written in percent, differences of rates in percentage points, the others as plain numbers.
Unit = Literal["rate", "points", "ratio", "cost", "area"]
# What a metric is read from: rates at a threshold, a curve, searches, two systems, groups of people.
Home = Literal["rates", "curve", "searches", "comparison", "groups"]
# From a result and the settings of a claim (`given` among them) to the number.
Read = Callable[[Any, Mapping[str, Any]], Any]
HOMES: dict[Home, str] = {
    "rates": "rates at a threshold",
    "curve": "a curve",
    "searches": "searches",
    "comparison": "a comparison of two systems",
    "groups": "groups",
}


@dataclass(frozen=True)
class Metric:
    """One metric.

    name
        As in records and claims, such as ``"frr@far"``.
    title
        As in tables.
    read
        How it is read from each home.
    unit
        How it is written.
    aliases
        Other names that a claim may use.
    settings
        Settings that a claim may have: ``"precision@prior=0.01 > 0.9"``.
    """

    name: str
    title: str
    read: Mapping[Home, Read] = field(default_factory=dict)
    unit: Unit = "rate"
    aliases: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()


def _from(home: Home, name: str, *needed: str, optional: tuple[str, ...] = ()) -> dict[Home, Read]:
    """From an attribute of the result, or a method with what the claim says of these arguments."""

    def read(result: Any, asked: Mapping[str, Any]) -> Any:
        found = getattr(result, name)
        given = {key: asked[key] for key in optional if key in asked}
        return found(*(asked[key] for key in needed), **given) if callable(found) else found

    return {home: read}


def _with_failures(name: str) -> dict[Home, Read]:
    return {"rates": lambda rates, asked: getattr(rates.generalised(asked["failures"]), name)}


def _gap(rate: str) -> dict[Home, Read]:
    return {"groups": lambda groups, _: groups.largest_gap(rate)}


def _ratio(rate: str) -> dict[Home, Read]:
    return {
        "comparison": lambda both, _: getattr(both, rate).as_ratio(),
        "groups": lambda groups, _: groups.largest_ratio(rate),
    }


def _fpir_at_size(found: Any, asked: Mapping[str, Any]) -> Any:
    return found.at_gallery_size(int(asked["given"]), asked["threshold"])


def _cmc_at_size(found: Any, asked: Mapping[str, Any]) -> Any:
    return found.at_gallery_size(int(asked["given"]), rank=1)


_COSTS = ("prior", "cost_miss", "cost_false_accept")
_PRIOR, _RANK = ("prior",), ("rank",)
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("far", "FAR", _from("rates", "far"), aliases=("fmr",)),
        Metric("frr", "FRR", _from("rates", "frr"), aliases=("fnmr",)),
        Metric("precision", "precision", _from("rates", "precision", optional=_PRIOR), settings=_PRIOR),
        Metric("recall", "recall", _from("rates", "recall")),
        Metric("f1", "F1", _from("rates", "f1", optional=_PRIOR), settings=_PRIOR),
        Metric("hter", "HTER", _from("rates", "hter")),
        Metric("gfar", "GFAR", _with_failures("gfar")),
        Metric("gfrr", "GFRR", _with_failures("gfrr")),
        Metric("frr@far", "FRR at FAR", _from("curve", "at_far", "given"), aliases=("fnmr@fmr", "frr@fmr", "fnmr@far")),
        Metric("far@frr", "FAR at FRR", _from("curve", "at_frr", "given"), aliases=("fmr@fnmr", "far@fnmr", "fmr@frr")),
        Metric("eer", "EER", _from("curve", "eer")),
        Metric("auc", "AUC", _from("curve", "auc"), "area"),
        Metric("mindcf", "minDCF", _from("curve", "min_dcf", optional=_COSTS), "cost", settings=_COSTS),
        Metric("actdcf", "actDCF", _from("curve", "actual_dcf", optional=_COSTS), "cost", settings=_COSTS),
        Metric("cllr", "Cllr", _from("curve", "cllr"), "cost"),
        Metric("mincllr", "minCllr", _from("curve", "min_cllr"), "cost"),
        Metric("fpir", "FPIR", _from("searches", "fpir", "threshold")),
        Metric("fnir", "FNIR", _from("searches", "fnir", "threshold", optional=_RANK)),
        Metric("cmc", "CMC", _from("searches", "cmc", optional=_RANK)),
        Metric("fnir@fpir", "FNIR at FPIR", _from("searches", "fnir_at_fpir", "given", optional=_RANK)),
        Metric("fpir@size", "FPIR at size", {"searches": _fpir_at_size}),
        Metric("cmc@size", "CMC at size", {"searches": _cmc_at_size}),
        Metric("selectivity", "selectivity", _from("searches", "selectivity", "threshold"), "cost"),
        Metric("dfpir", "FPIR difference", _from("comparison", "fpir"), "points"),
        Metric("dfnir", "FNIR difference", _from("comparison", "fnir"), "points"),
        Metric("dcmc", "CMC difference", _from("comparison", "cmc"), "points"),
        Metric("dfar", "FAR difference", _from("comparison", "far"), "points", ("dfmr",)),
        Metric("dfrr", "FRR difference", _from("comparison", "frr"), "points", ("dfnmr",)),
        Metric("deer", "EER difference", _from("comparison", "eer"), "points"),
        Metric("far gap", "FAR gap", _gap("far"), "points", ("fmr gap",)),
        Metric("frr gap", "FRR gap", _gap("frr"), "points", ("fnmr gap",)),
        Metric("far ratio", "FAR ratio", _ratio("far"), "ratio", ("fmr ratio",)),
        Metric("frr ratio", "FRR ratio", _ratio("frr"), "ratio", ("fnmr ratio",)),
    )
}
# Names and aliases as a claim writes them, without spaces, and the metric each means.
NAMES: dict[str, str] = {
    word.replace(" ", ""): metric.name for metric in METRICS.values() for word in (metric.name, *metric.aliases)
}


def read_from(home: Home) -> tuple[str, ...]:
    """The names of the metrics that are read from a kind of result."""
    return tuple(metric.name for metric in METRICS.values() if home in metric.read)


def unit_of(metric: str) -> Unit:
    """The unit of a metric; a rate where it has no entry."""
    found = METRICS.get(metric)
    return "rate" if found is None else found.unit
