"""How the numbers of a report were made, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchbound.show.numbers import MINUS, level_text, span, times_text
from matchbound.show.terms import say

if TYPE_CHECKING:
    from matchbound.report.page import Report

WILSON = (
    f"Wilson's interval at the effective number of comparisons, p(1{MINUS}p) divided by the variance and never below "
    "the number of disjoint identity pairs ({far}) or of identities ({frr})"
)


def method_facts(report: Report) -> list[tuple[str, str]]:
    """(heading, text) of every part of the method that the report used."""
    level, far, frr = level_text(report.level), say("FAR"), say("FRR")
    stated = [number for point in report.points for number in (point.far, point.frr)]
    methods = list(dict.fromkeys(number.method for number in stated))
    latent = any(method.startswith("latent") for method in methods)
    facts = [
        ("Rates", _rates(report, far, frr)),
        ("Comparisons that share a person", _dependence(report, far, frr)),
        ("At a fixed threshold", _fixed(report, far, frr)),
    ]
    if latent:
        facts.append(
            (
                "The latent interval",
                "An error is modelled as a latent Gaussian variable that crosses a threshold. The correlation of "
                "comparisons that share an identity is estimated where errors are plentiful and used where they are "
                "rare. It is made for few identities and rare errors, where the other intervals cover too little.",
            )
        )
    costs = ", ".join(dict.fromkeys(cost.method for cost in report.costs))
    facts += [
        (
            f"At a target {far}, EER, AUC",
            "The threshold is estimated from the same data, and the interval accounts for that. The slider shows the "
            "same interval at the thresholds of the table.",
        ),
        (
            "Methods used here",
            f"{', '.join(methods)} for operating points; {report.eer.method} for EER, {report.auc.method} for AUC"
            f"{f', {costs} for costs' if costs else ''}.",
        ),
        (
            "Bands",
            f"Pointwise: each covers {frr} at its own {far} with level {level}. A whole curve lies within the band "
            "less often.",
        ),
        (
            "One-sided bounds",
            f"“Below” columns: the rate lies below the bound with confidence {level}. A rate without errors is not "
            "zero; it is below its bound.",
        ),
    ]
    if report.systems is not None:
        told = (
            "All systems were tested on the same people, so their errors are correlated; the variance of a difference "
            f"accounts for every pair of comparisons, of either system, that share an identity. At equal {far} and at "
            "EER the interval accounts for the estimated threshold of each system. “Differ” goes by the difference; "
            "the interval of the ratio is made on the log scale and may say otherwise where errors are few."
        )
        if len(report.systems.names) > 2:
            told += " One critical value serves all pairs of systems at an operating point (max-t)."
        facts.append(("Differences between systems", told))
    facts.append(
        (
            "What no method can see",
            "Identities that are not in the sample. With few identities, rare errors, or a few identities that make "
            "most errors, intervals cover less often than their level. The section on people shows how close these "
            "data are to that.",
        )
    )
    return facts


def _rates(report: Report, far: str, frr: str) -> str:
    if report.weighting == "identities":
        return (
            f"Every person counts once. {frr} is the mean over people of the share of a person's genuine comparisons "
            f"that do not match; {far} is the mean over pairs of people of the share of their comparisons that match. "
            "Counts of errors are of comparisons."
        )
    return (
        f"{far} ({say('false accept')} rate) is the share of impostor comparisons that match, {frr} "
        f"({say('false reject')} rate) the share of genuine comparisons that do not. Each pools all comparisons, so an "
        "identity weighs by how many it takes part in."
    )


def _dependence(report: Report, far: str, frr: str) -> str:
    """Why comparisons are not counted as independent, and what that would have done here."""
    point = report.points[report.focus]
    told = (
        "Errors of comparisons that share an identity are correlated. An interval that takes them for independent is "
        "too narrow, often several times. Here the variance accounts for every pair of comparisons that share an "
        "identity (Fogliato, Patil and Perona, Confidence Intervals for Error Rates in 1:1 Matching Tasks, 2024)."
    )
    ratios = [
        f"{times_text(number.naive_ratio)} times too narrow for {name}"
        for name, number in ((far, point.far), (frr, point.frr))
        if number.naive_ratio is not None and number.naive_ratio >= 1.05
    ]
    return f"{told} On these data a naive interval is {' and '.join(ratios)}." if ratios else told


def _fixed(report: Report, far: str, frr: str) -> str:
    """How intervals at a fixed threshold are made, with Wilson's in addition."""
    wilson = WILSON.format(far=far, frr=frr)
    stated = report.points[report.focus].far
    if not stated.method.startswith("latent"):
        return f"{wilson}."
    interval = stated.number.interval("wilson", report.level)
    return (
        f"The latent interval, in the table, on the cards and on the slider. For comparison, {wilson}: {far} "
        f"{span(interval.low, interval.high)} at the operating point of the summary. Where that is narrower, its "
        "variance is estimated from the few people who made errors, and most samples miss some of those who would."
    )
