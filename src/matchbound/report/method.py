"""How the numbers of a report were made, in plain words, and from what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matchbound.show.numbers import MINUS, level_text, span, target_text, times_text
from matchbound.show.terms import say

if TYPE_CHECKING:
    from matchbound.report.page import Report

LABORATORY = {"system": "System", "operator": "Operator", "test_id": "Test", "date": "Date"}
# What the parameters of a report are called where their names do not say it.
PARAMETERS = {
    "far": "FARs asked for",
    "threshold": "Thresholds asked for",
    "method": "Interval method asked for",
    "level": "Confidence level",
    "resamples": "Bootstrap replicates",
    "distance": "Scores are distances",
    "group": "Groups from",
    "people": "Table of people",
    "fpir": "FPIRs asked for",
    "gallery_size": "Gallery sizes asked for",
    "fuse": "Template fusion",
    "target": "Intervals are for a gallery that is",
    "keep": "Candidates kept per search",
    "against": "Compared with",
    "claim": "Claims",
    "fta": "Failures to acquire",
    "fte": "Failures to enrol",
    "failures": "Table of attempts",
    "min_dcf": "Detection costs at",
    "missing": "Missing scores",
    "repeats": "Repeated comparisons",
    "weighting": "Rates are means over",
}
WILSON = (
    f"Wilson's interval at the effective number of comparisons, p(1{MINUS}p) divided by the variance and never below "
    "the number of disjoint identity pairs ({far}) or of identities ({frr})"
)
RATES = (
    "{far} ({accept} rate) is the share of impostor comparisons that match, {frr} ({reject} rate) the share of genuine "
    "comparisons that do not. Each pools all comparisons, so an identity weighs by how many it takes part in."
)
RATES_PER_PERSON = (
    "Every person counts once. {frr} is the mean over people of the share of a person's genuine comparisons that do "
    "not match; {far} is the mean over pairs of people of the share of their comparisons that match. Counts of errors "
    "are of comparisons."
)
DEPENDENCE = (
    "Errors of comparisons that share an identity are correlated. An interval that takes them for independent is too "
    "narrow, often several times. Here the variance accounts for every pair of comparisons that share an identity "
    "(Fogliato, Patil and Perona, Confidence Intervals for Error Rates in 1:1 Matching Tasks, 2024)."
)
FIXED = (
    "The latent interval, in the table, on the cards and on the slider. For comparison, {wilson}: {far} {limits} at "
    "the operating point of the summary. Where that is narrower, its variance is estimated from the few people who "
    "made errors, and most samples miss some of those who would."
)
LATENT = (
    "An error is modelled as a latent Gaussian variable that crosses a threshold. The correlation of comparisons that "
    "share an identity is estimated where errors are plentiful and used where they are rare. It is made for few "
    "identities and rare errors, where the other intervals cover too little."
)
AT_TARGET = (
    "The threshold is estimated from the same data, and the interval accounts for that. The slider shows the same "
    "interval at the thresholds of the table."
)
BANDS = (
    "Pointwise: each covers {frr} at its own {far} with level {level}. A whole curve lies within the band less often."
)
BOUNDS = (
    "“Below” columns: the rate lies below the bound with confidence {level}. A rate without errors is not zero; it is "
    "below its bound."
)
SYSTEMS = (
    "All systems were tested on the same people, so their errors are correlated; the variance of a difference accounts "
    "for every pair of comparisons, of either system, that share an identity. At equal {far} and at EER the interval "
    "accounts for the estimated threshold of each system. “Differs” goes by the difference; the interval of the ratio "
    "is made on the log scale and may say otherwise where errors are few."
)
UNSEEN = (
    "Identities that are not in the sample. With few identities, rare errors, or a few identities that make most "
    "errors, intervals cover less often than their level. The section on people shows how close these data are to that."
)


def method_facts(report: Report) -> list[tuple[str, str]]:
    """(heading, text) of every part of the method that the report used."""
    level, far, frr = level_text(report.level), say("FAR"), say("FRR")
    point = report.points[report.focus]
    methods = list(dict.fromkeys(number.method for p in report.points for number in (p.far, p.frr)))
    dependence, fixed, systems = DEPENDENCE, f"{WILSON}.", SYSTEMS
    narrow = [
        f"{times_text(number.naive_ratio)} times too narrow for {name}"
        for name, number in ((far, point.far), (frr, point.frr))
        if number.naive_ratio is not None and number.naive_ratio >= 1.05
    ]
    if narrow:
        dependence += f" On these data a naive interval is {' and '.join(narrow)}."
    words = {"far": far, "frr": frr, "level": level, "accept": say("false accept"), "reject": say("false reject")}
    if point.far.method.startswith("latent"):
        interval = point.far.number.interval("wilson", report.level)
        fixed = FIXED.replace("{wilson}", WILSON).replace("{limits}", span(interval.low, interval.high))
    if report.systems is not None and len(report.systems.names) > 2:
        systems += " One critical value serves all pairs of systems at an operating point (max-t)."
    costs = ", ".join(dict.fromkeys(cost.method for cost in report.costs))
    used = f"{', '.join(methods)} for operating points; {report.eer.method} for EER, {report.auc.method} for AUC"
    facts = [
        ("Rates", RATES_PER_PERSON if report.weighting == "identities" else RATES),
        ("Comparisons that share a person", dependence),
        ("At a fixed threshold", fixed),
        ("The latent interval", LATENT if any(method.startswith("latent") for method in methods) else ""),
        ("At a target {far}, EER, AUC", AT_TARGET),
        ("Methods used here", f"{used}{f', {costs} for costs' if costs else ''}."),
        ("Bands", BANDS),
        ("One-sided bounds", BOUNDS),
        ("Differences between systems", systems if report.systems is not None else ""),
        ("What no method can see", UNSEEN),
    ]
    return [(heading.format(**words), text.format(**words)) for heading, text in facts if text]


def source_rows(source: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What made a page, as (what, value)."""
    rows = [(LABORATORY.get(key, key), str(value)) for key, value in (source.get("laboratory") or {}).items()]
    rows.append(("Made by", f"matchbound {source.get('version', '–')}"))
    if source.get("command"):
        rows.append(("Command", str(source["command"])))
    for key, value in dict(source.get("parameters") or {}).items():
        if key == "verb" or value is None:
            continue
        rates = key in ("far", "fpir") and isinstance(value, (list, tuple))
        shown = ", ".join(target_text(rate) for rate in value) if rates else _plain(value)
        name = PARAMETERS.get(str(key)) or str(key).replace("_", " ").capitalize()
        rows.append((say(name), level_text(value) if key == "level" else shown))
    if source.get("seed") is not None:
        rows.append(("Seed", str(source["seed"])))
    digest = source.get("input")
    return [*rows, ("Digest of the input", _plain(digest) if digest else "not hashed")]


def _plain(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join("not hashed" if item is None else _plain(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
