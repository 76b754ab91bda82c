"""The words of a report: numbers and sentences, the same on a page, in Markdown and in LaTeX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matchbound.report.page import (
    Drivers,
    PerPerson,
    Report,
    ReportedCost,
    ReportedGroup,
    ReportedNumber,
    ReportedPoint,
)
from matchbound.report.systems_words import verdict
from matchbound.results.description import Description
from matchbound.show import description as shown
from matchbound.show.claims import required
from matchbound.show.numbers import MINUS, area_text, level_text, percent, ratio_text, span, target_text, times_text


def value_text(claim: ReportedNumber) -> str:
    """The estimate: a percentage, or a number of five digits for an area."""
    return area_text(claim.estimate) if claim.metric == "auc" else percent(claim.estimate)


def span_text(claim: ReportedNumber) -> str:
    """The interval of a claim."""
    return f"{area_text(claim.low)}–{area_text(claim.high)}" if claim.metric == "auc" else span(claim.low, claim.high)


def counted(claim: ReportedNumber) -> str:
    """212 of 1,671."""
    return "–" if claim.errors is None or claim.comparisons is None else f"{claim.errors:,} of {claim.comparisons:,}"


def point_name(point: ReportedPoint) -> str:
    """FAR 0.1%, or threshold 0.62."""
    return f"threshold {point.reading}" if point.target is None else f"FAR {target_text(point.target)}"


def headline(report: Report) -> str:
    """The summary in one sentence or two."""
    point = report.points[report.focus]
    level = level_text(report.level)
    if point.target is not None and none_erred(point.frr):
        return f"At FAR {target_text(point.target)}, {said_of(point.frr, level)}."
    if point.target is not None:
        claim = point.frr
        return (
            f"FRR at FAR {target_text(point.target)} is {percent(claim.estimate)}, {level} interval {span_text(claim)}"
            f"{_naive(claim)}."
        )
    second = said_of(point.frr, level)
    return f"At threshold {point.reading}, {said_of(point.far, level)}. {second[:1].upper()}{second[1:]}."


def none_erred(claim: ReportedNumber) -> bool:
    """Whether a rate is one of no error at all."""
    return claim.errors == 0 and bool(claim.comparisons) and claim.upper is not None


def card(claim: ReportedNumber) -> tuple[str, str]:
    """The number on a card and the line beneath it; no error at all is a bound, not 0%."""
    if none_erred(claim):
        return f"<\u00a0{percent(claim.upper)}", f"no error in {claim.comparisons:,}"
    return value_text(claim), span_text(claim)


def said_of(claim: ReportedNumber, level: str) -> str:
    """A rate in a sentence: "FAR is 1.08%, 95% interval …", or that there was no error and what that shows."""
    name = "FRR" if claim.metric.startswith("frr") else claim.metric.upper()
    if none_erred(claim):
        kind = "false accept" if claim.metric == "far" else "false reject"
        return (
            f"there was no {kind} in {claim.comparisons:,} comparisons; {name} is below {percent(claim.upper)} with "
            f"{level} confidence"
        )
    return f"{name} is {percent(claim.estimate)}, {level} interval {span_text(claim)}{_naive(claim)}"


def _naive(claim: ReportedNumber) -> str:
    if claim.naive_ratio is None or claim.naive_ratio < 1.05:
        return ""
    return f"; a naive interval would be {times_text(claim.naive_ratio)} times too narrow"


def in_full(report: Report) -> list[str]:
    """What the headline rests on, in a few plain sentences."""
    d, point = report.description, report.points[report.focus]
    match = "at most" if d.distance else "at least"
    told = [
        f"The data hold {d.n_genuine:,} genuine and {d.n_impostor:,} impostor comparisons of {d.n_identities:,} "
        f"identities. Two instances match when their score is {match} the threshold.",
    ]
    if report.weighting == "identities":
        told.append("Every person counts once: FRR is a mean over people, FAR a mean over pairs of people.")
    if point.target is not None:
        told.append(
            f"FAR {target_text(point.target)} is reached at threshold {point.reading}. With that threshold fixed, "
            f"FAR is {percent(point.far.estimate)}, {level_text(report.level)} interval "
            f"{span_text(point.far)}{_naive(point.far)}."
        )
    told.append(
        f"The equal error rate is {percent(report.eer.estimate)}, {level_text(report.level)} interval "
        f"{span_text(report.eer)}."
    )
    if report.systems is not None:
        told.append(verdict(report.systems, report.level)[0])
    return told


FEW_DRIVERS = 3


def cautions(report: Report) -> list[str]:
    """What a reader must keep in mind: the warnings, and where a rate hangs on very few identities."""
    told: list[str] = list(report.warnings)
    for drivers in report.drivers:
        if 0 < drivers.half <= FEW_DRIVERS < drivers.n_identities:
            told.append(
                f"half of the uncertainty of {drivers.metric.upper()} comes from {drivers.half} of "
                f"{drivers.n_identities:,} identities: its interval rests on very few people, and other people could "
                "move it far"
            )
    return told


ALIKE = 1.1
"""Rates within this factor of each other are called about the same."""


def per_person_sentences(report: Report) -> list[str]:
    """Each rate with every identity counted once, whether that differs from the pooled rate, and why."""
    return [_per_person(item, level_text(report.level)) for item in report.per_person]


def _per_person(item: PerPerson, level: str) -> str:
    name, pooled, once = item.metric.upper(), item.pooled.estimate, item.per_person.estimate
    unit = "person" if item.metric == "frr" else "pair of people"
    told = (
        f"With every {unit} counted once, {name} is {percent(once)}, {level} interval {span_text(item.per_person)}; "
        f"pooled over comparisons it is {percent(pooled)}"
    )
    low, high = sorted((pooled, once))
    if high <= ALIKE * low or high == 0.0:
        return f"{told}, about the same."
    one = item.heavy == 1
    people = "the person" if one else f"the {item.heavy:,} people"
    what = f"{'make' if not one else 'makes'} {100 * item.heavy_share:.0f}% of them"
    if item.metric == "far":
        what = f"{'has' if one else 'have'} {100 * item.heavy_share:.0f}% of the places in them"
    told += (
        f". They differ because people do not weigh the same when comparisons are pooled: {people} with most "
        f"comparisons {what}, and {percent(item.heavy_rate)} of those err"
    )
    if item.rest_rate is not None:
        told += f", against {percent(item.rest_rate)} of the other people's"
    return f"{told}."


def group_name(row: ReportedGroup) -> str:
    """A group, and whether it is too small to be compared."""
    return row.name if row.compared else f"{row.name} (too few to compare)"


def range_sentences(report: Report) -> list[str]:
    """From the best group to the worst, one sentence per rate."""
    assert report.groups is not None
    told = []
    for item in report.groups.ranges:
        high = "" if item.high is None else f" to {ratio_text(item.high)}"
        low = f"{'above ' if item.high is None else ''}{ratio_text(item.low)}"
        ratio = "" if item.ratio is None else f", {ratio_text(item.ratio)} times as high"
        told.append(
            f"{item.metric.upper()} is highest in {item.worst} ({percent(item.rate_worst)}) and lowest in {item.best} "
            f"({percent(item.rate_best)}){ratio}; {level_text(report.level)} interval of the ratio, which accounts for "
            f"the choice of these two as the extremes: {low}{high}."
        )
    return told


def driver_sentence(drivers: Drivers) -> str:
    """How few identities make the uncertainty of a rate."""
    name = drivers.metric.upper()
    if not drivers.top:
        return f"No identity differs from the others in {name} here, so none stands out."
    few = f"{drivers.half:,} of {drivers.n_identities:,} identities make"
    if drivers.half == 1:
        few = f"One of {drivers.n_identities:,} identities makes"
    return (
        f"{few} half of the uncertainty of {name}. The {len(drivers.top)} largest together make "
        f"{100 * drivers.top_share:.0f}% of it."
    )


def description_rows(d: Description) -> list[tuple[str, str]]:
    """What the data are, as (what, value)."""
    signs = {"score <= threshold": "score ≤ threshold", "score >= threshold": "score ≥ threshold"}
    return [(f"{what[:1].upper()}{what[1:]}", signs.get(value, value)) for what, value in shown.description_rows(d)]


def method_notes(report: Report) -> list[tuple[str, str]]:
    """How the numbers were made, as (heading, text)."""
    level = level_text(report.level)
    methods = list(dict.fromkeys(claim.method for point in report.points for claim in (point.far, point.frr)))
    notes = [
        ("Rates", _rates(report)),
        (
            "Why not count comparisons",
            "Comparisons that share an identity err together. An interval that takes them for independent is too "
            "narrow, often several times. Here the variance counts every pair of comparisons that share an identity "
            "(Fogliato, Patil and Perona, Confidence Intervals for Error Rates in 1:1 Matching Tasks, 2024).",
        ),
        (
            "At a fixed threshold",
            _fixed(report),
        ),
        (
            "At a target FAR, EER, AUC",
            "The threshold comes from the same data, so the interval accounts for it too. The slider shows the same "
            "interval at the thresholds of the table.",
        ),
        (
            "Methods used here",
            f"{', '.join(methods)} for operating points; {report.eer.method} for EER, {report.auc.method} for AUC"
            f"{_cost_methods(report)}.",
        ),
        (
            "Bands",
            f"Pointwise: each covers FRR at its own FAR with level {level}. A whole curve lies within the band less "
            "often.",
        ),
        (
            "One-sided bounds",
            f"“Below” columns: the rate lies below the bound with confidence {level}. A rate of zero errors is not "
            "zero; it is below its bound.",
        ),
        (
            "What no method can see",
            "Identities that are not in the sample. With few identities, rare errors, or a few identities that make "
            "most errors, intervals cover less often than promised. The section on identities shows how near these "
            "data are to that.",
        ),
    ]
    if any(method.startswith("latent") for method in methods):
        told = (
            "An error is modelled as a latent Gaussian that crosses a threshold; how comparisons that share an "
            "identity go together is learned where errors are plentiful and carried to where they are rare. Made for "
            "few identities and rare errors, where the other intervals cover too little."
        )
        notes.insert(4, ("The latent interval", told))
    if report.systems is not None:
        told = (
            "All systems met the same people, so that they share most of their luck; the variance of a difference "
            "counts every pair of comparisons, of either system, that share an identity. At equal FAR and at EER the "
            "threshold of each system is estimated, and that is counted."
        )
        if report.systems.n_pairs > 1:
            told += " One critical value serves all pairs of systems at an operating point (max-t)."
        notes.insert(len(notes) - 1, ("Differences between systems", told))
    return notes


def _rates(report: Report) -> str:
    """What the rates are."""
    if report.weighting == "identities":
        return (
            "Every person counts once. FRR is the mean over people of the share of a person's genuine comparisons that "
            "do not match; FAR is the mean over pairs of people of the share of their comparisons that match. Counts "
            "of errors are of comparisons."
        )
    return (
        "FAR is the share of impostor comparisons that match, FRR the share of genuine comparisons that do not. "
        "Each pools all comparisons, so an identity weighs by how many it takes part in."
    )


def _cost_methods(report: Report) -> str:
    found = ", ".join(dict.fromkeys(cost.method for cost in report.costs))
    return f", {found} for costs" if found else ""


def _fixed(report: Report) -> str:
    """How intervals at a fixed threshold are made, with Wilson's beside them."""
    wilson = (
        f"Wilson's interval at the effective number of comparisons, p(1{MINUS}p) divided by the variance and never "
        "below the number of disjoint identity pairs (FAR) or of identities (FRR)"
    )
    claim = report.points[report.focus].far
    if claim.wilson is None or not claim.method.startswith("latent"):
        return wilson + "."
    low, high = claim.wilson
    return (
        "The latent interval, described below, in the table, on the cards and on the slider. Beside it, "
        f"{wilson}: FAR {percent(low)} to {percent(high)} at the first operating point shown. Where that is narrower, "
        "it is because the variance that it uses is estimated from the few people who made errors, and most samples "
        "miss some of those who would."
    )


def verdict_lines(report: Report) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """(verdict, requirement, why, rules of thumb beside it) of each claim."""
    made: list[tuple[str, str, str, tuple[str, ...]]] = []
    for item in report.verdicts:
        at = "" if item.threshold is None else f" at threshold {item.threshold:g}"
        made.append((item.claim.verdict, f"{required(item.claim)}{at}", item.claim.reason, item.claim.rules))
    return made


MARKS = {"shown": "✓", "not shown": "?", "refuted": "✗"}
"""The sign of each verdict, beside its word."""


def cost_text(cost: ReportedCost) -> tuple[str, str]:
    """A cost and its interval: 0.7529, 0.6856–0.8482."""
    return f"{cost.estimate:.4f}", f"{cost.low:.4f}–{cost.high:.4f}"


PARAMETERS = {
    "files": "Files",
    "far": "FARs asked for",
    "threshold": "Thresholds asked for",
    "method": "Interval method asked for",
    "level": "Confidence level",
    "resamples": "Bootstrap replicates",
    "distance": "Scores are distances",
    "similarity": "Similarity",
    "reader": "Reader",
    "group": "Groups from",
    "people": "Table of people",
    "gallery": "Gallery",
    "probes": "Probes",
    "fpir": "FPIRs asked for",
    "rank": "Ranks",
    "gallery_size": "Gallery sizes asked for",
    "fuse": "Several templates become one by",
    "target": "Intervals are for a gallery that is",
    "keep": "Candidates kept per search",
    "protocol": "Protocol",
    "against": "Compared with",
    "systems": "Systems",
    "claim": "Claims",
    "claims": "Claims",
    "min_dcf": "Detection costs at",
    "missing": "Missing scores",
    "repeats": "Repeated comparisons",
    "weighting": "Rates are means over",
}
"""What the parameters of a report are called; others keep their names."""
LABORATORY = {"system": "System", "operator": "Operator", "test_id": "Test", "date": "Date"}


def provenance_rows(report: Report) -> list[tuple[str, str]]:
    """What made the report, as (what, value)."""
    return source_rows(report.provenance)


def source_rows(source: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What made a page, as (what, value)."""
    rows = [(LABORATORY.get(key, key), str(value)) for key, value in (source.get("laboratory") or {}).items()]
    rows.append(("Made by", f"matchbound {source.get('version', '–')}"))
    if source.get("command"):
        rows.append(("Command", str(source["command"])))
    parameters = dict(source.get("parameters") or {})
    for key, value in parameters.items():
        if key == "verb":
            continue
        rates = key in ("far", "fpir") and isinstance(value, (list, tuple))
        shown = ", ".join(target_text(rate) for rate in value) if rates else _plain(value)
        rows.append((PARAMETERS.get(str(key), str(key)), level_text(value) if key == "level" else shown))
    if source.get("seed") is not None:
        rows.append(("Seed", str(source["seed"])))
    digest = source.get("input")
    rows.append(("Digest of the input", _plain(digest) if digest else "not hashed"))
    return rows


def _plain(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join("not hashed" if item is None else _plain(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def contributor_name(label: str | None, rank: int, metric: str) -> str:
    """Its label, or a number that says nothing about who it is."""
    if label is not None:
        return label
    return f"identity\u00a0{'A' if metric == 'far' else 'R'}{rank}"
