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


def _costs(name: str) -> Read:
    return lambda curve, asked: getattr(curve, name)(**asked)


def _at_prior(name: str) -> Read:
    return lambda rates, asked: getattr(rates, name)(asked.get("prior"))


def _gap(rate: str) -> dict[Home, Read]:
    return {"groups": lambda groups, _: groups.largest_gap(rate)}


def _ratio(rate: str) -> dict[Home, Read]:
    return {
        "comparison": lambda both, _: getattr(both, rate).as_ratio(),
        "groups": lambda groups, _: groups.largest_ratio(rate),
    }


_BOTH = (("far", "fmr"), ("frr", "fnmr"))
_COSTS = ("prior", "cost_miss", "cost_false_accept")
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("far", "FAR", {"rates": lambda rates, _: rates.far}, aliases=("fmr",)),
        Metric("frr", "FRR", {"rates": lambda rates, _: rates.frr}, aliases=("fnmr",)),
        Metric("precision", "precision", {"rates": _at_prior("precision")}, settings=("prior",)),
        Metric("recall", "recall", {"rates": lambda rates, _: rates.recall()}),
        Metric("f1", "F1", {"rates": _at_prior("f1")}, settings=("prior",)),
        Metric("hter", "HTER", {"rates": lambda rates, _: rates.hter()}),
        Metric("gfar", "GFAR", {"rates": lambda rates, asked: rates.generalised(asked["failures"]).gfar}),
        Metric("gfrr", "GFRR", {"rates": lambda rates, asked: rates.generalised(asked["failures"]).gfrr}),
        Metric(
            "frr@far", "FRR at FAR", {"curve": lambda curve, asked: curve.at_far(asked["given"])}, "rate", ("fnmr@fmr",)
        ),
        Metric(
            "far@frr", "FAR at FRR", {"curve": lambda curve, asked: curve.at_frr(asked["given"])}, "rate", ("fmr@fnmr",)
        ),
        Metric("eer", "EER", {"curve": lambda curve, _: curve.eer()}),
        Metric("auc", "AUC", {"curve": lambda curve, _: curve.auc()}, "area"),
        Metric("mindcf", "minDCF", {"curve": _costs("min_dcf")}, "cost", settings=_COSTS),
        Metric("actdcf", "actDCF", {"curve": _costs("actual_dcf")}, "cost", settings=_COSTS),
        Metric("cllr", "Cllr", {"curve": lambda curve, _: curve.cllr()}, "cost"),
        Metric("mincllr", "minCllr", {"curve": lambda curve, _: curve.min_cllr()}, "cost"),
        *(
            Metric(name, title, {"searches": read})
            for name, title, read in (
                ("fpir", "FPIR", lambda found, asked: found.fpir(asked["threshold"])),
                ("fnir", "FNIR", lambda found, asked: found.fnir(asked["threshold"], asked.get("rank", 1))),
                ("cmc", "CMC", lambda found, asked: found.cmc(asked.get("rank", 1))),
                (
                    "fnir@fpir",
                    "FNIR at FPIR",
                    lambda found, asked: found.fnir_at_fpir(asked["given"], asked.get("rank", 1)),
                ),
                (
                    "fpir@size",
                    "FPIR at size",
                    lambda found, asked: found.at_gallery_size(int(asked["given"]), asked["threshold"]),
                ),
                ("cmc@size", "CMC at size", lambda found, asked: found.at_gallery_size(int(asked["given"]), rank=1)),
            )
        ),
        Metric(
            "selectivity",
            "selectivity",
            {"searches": lambda found, asked: found.selectivity(asked["threshold"])},
            "cost",
        ),
        Metric("dfpir", "FPIR difference", {"comparison": lambda both, _: both.fpir}, "points"),
        Metric("dfnir", "FNIR difference", {"comparison": lambda both, _: both.fnir}, "points"),
        Metric("dcmc", "CMC difference", {"comparison": lambda both, _: both.cmc}, "points"),
        Metric("dfar", "FAR difference", {"comparison": lambda both, _: both.far}, "points", ("dfmr",)),
        Metric("dfrr", "FRR difference", {"comparison": lambda both, _: both.frr}, "points", ("dfnmr",)),
        Metric("deer", "EER difference", {"comparison": lambda both, _: both.eer}, "points"),
        *(Metric(f"{rate} gap", f"{rate.upper()} gap", _gap(rate), "points", (f"{iso} gap",)) for rate, iso in _BOTH),
        *(
            Metric(f"{rate} ratio", f"{rate.upper()} ratio", _ratio(rate), "ratio", (f"{iso} ratio",))
            for rate, iso in _BOTH
        ),
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
