"""The sections of a report, in the order in which they are read: sentences, cards, figures and tables of results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from matchbound.show.columns import (
    counted,
    description_rows,
    name_text,
    plain_text,
    span_text,
    value_text,
    with_interval,
)
from matchbound.show.differences import comparison_section, group_section
from matchbound.show.figures import Mark, det_figure, roc_figure, scores_figure
from matchbound.show.numbers import MINUS, count_text, level_text, percent, ratio_text, span, target_text
from matchbound.show.section import Card, Document, Section, verdict_of
from matchbound.show.tables import Column, Table, table
from matchbound.show.terms import say

if TYPE_CHECKING:
    from matchbound.report.page import Point, Report, Stated, Systems
    from matchbound.results.groups import GroupRates
    from matchbound.results.rates import Rate
    from matchbound.show.records import Record
    from matchbound.stats.variance import Contributions

# So few people are a caution; so many of those who drive the uncertainty are listed.
FEW_DRIVERS, TOP = 3, 8
# A rate above this is told in percent and not as "1 in n".
OFTEN = 0.2


def document(report: Report) -> Document:
    """The report, in the terms that are spoken."""
    facts = tuple((capital(what), value) for what, value in description_rows(report.description))
    named, groups = bool(report.drivers), report.groups
    sections = [
        _summary(report),
        _explore(report),
        _points(report),
        *([] if groups is None else [_groups(groups, report.group_records)]),
        *([] if report.systems is None else [_systems(report, report.systems)]),
        *report.searches,
        *([_drivers(report)] if named else []),
        Section("data", "The data", facts=facts),
        Section("method", "How the numbers were made", facts=tuple(method_facts(report))),
    ]
    d = report.description
    comparisons = f"{count_text(d.n_genuine)} genuine, {count_text(d.n_impostor)} impostor"
    about = [*([("People", count_text(d.n_identities))] if named else []), ("Comparisons", comparisons)]
    eyebrow = f"Error rates with {level_text(report.level)} intervals"
    return with_source(report.title, sections, report.provenance, eyebrow, about)


def with_source(
    title: str,
    sections: Sequence[Section],
    source: Mapping[str, Any],
    eyebrow: str,
    about: Sequence[tuple[str, str]] = (),
) -> Document:
    """Sections with what made them, at their end and in the head of the page."""
    rows, laboratory = source_rows(source), dict(source.get("laboratory") or {})
    entries = [(name, str(laboratory[key])) for key, name in LABORATORY.items() if laboratory.get(key)]
    return Document(
        title,
        (*sections, Section("provenance", "Provenance", facts=tuple(rows))),
        eyebrow,
        (*entries, *about),
        running=str(laboratory.get("system") or title),
        version=str(source.get("version", "")),
        source="; ".join(f"{name} {value}" for name, value in rows),
    )


def capital(text: str) -> str:
    """The same with a capital."""
    return f"{text[:1].upper()}{text[1:]}"


# The head


def _summary(report: Report) -> Section:
    point = report.points[report.focus]
    match = "at most" if report.description.distance else "at least"
    where = f"threshold {point.reading}"
    if point.target is not None:
        where += f", where {say('FAR')} is {target_text(point.target)} on these data"
    sentences = [
        f"At {where}: two instances match when their score is {match} the threshold. {say('FAR')} is the share of "
        f"comparisons of different people that match, {say('FRR')} that of one person with himself or herself that do "
        "not.",
    ]
    if report.weighting == "identities":
        sentences.append(
            f"Every person counts once: {say('FRR')} is a mean over people, {say('FAR')} a mean over pairs of people."
        )
    return Section(
        "summary",
        "",
        f"{risk(point.far, 'impostor', 'accepted')} {risk(point.frr, 'genuine attempt', 'rejected')}",
        tuple(sentences),
        verdicts=tuple(verdict_of(claim, threshold) for claim, threshold in report.verdicts),
        cards=tuple(_cards(report)),
        notes=tuple(_cautions(report)),
    )


def risk(rate: Stated, who: str, happens: str) -> str:
    """A rate as a risk: "About 1 in 1,070 impostors is accepted; it may be 1 in 160."."""
    worst = rate.upper if rate.without_error else rate.high
    if rate.without_error or rate.estimate <= 0.0:
        among = f" in {count_text(rate.comparisons)} comparisons" if rate.without_error else ""
        return f"No {who} was {happens}{among}; it may be {odds(worst)}."
    if rate.estimate > OFTEN or (worst or 0.0) > OFTEN:
        return f"About {percent(rate.estimate)} of {who}s are {happens}; it may be {percent(worst)}."
    return f"About {odds(rate.estimate)} {who}s is {happens}; it may be {odds(worst)}."


def odds(rate: float | None) -> str:
    """A rate as 1 in 1,070: three digits."""
    if not rate or not math.isfinite(rate):
        return "unknown"
    times = 1.0 / rate
    return f"1 in {times:.1f}" if times < 10.0 else f"1 in {float(f'{times:.3g}'):,.0f}"


def _cards(report: Report) -> list[Card]:
    """Both rates at the focus, FRR at the other points, EER and costs; the bars have one logarithmic scale."""
    stated: list[tuple[str, Stated]] = []
    for place, point in enumerate(report.points):
        if point.target is None or place == report.focus:
            stated.append((f"{say('FAR')} at threshold {point.reading}", point.far))
        stated.append((f"{say('FRR')} at {_point_name(point)}", point.frr))
        if place == report.focus:
            failed = [rate for rate in (point.gfar, point.gfrr) if rate is not None]
            stated += [(f"{rate.metric.upper()} at threshold {point.reading}", rate) for rate in failed]
    stated += [("Equal error rate", report.eer), *((name_text(cost.record), cost) for cost in report.costs)]
    limits = [x for _, s in stated for x in (s.low, s.estimate, s.high) if x > 0.0 and math.isfinite(x)]
    low = 10.0 ** math.floor(math.log10(min(limits, default=0.01)))
    scale = math.log10(max([*limits, 1.0]) / low)
    cards = []
    for what, s in stated:
        first, at, last = (math.log10(max(x, low) / low) / scale for x in (s.low, s.estimate, s.high))
        value, under = value_text(s.metric, s.estimate), _span(s)
        if s.without_error:  # a bound, not 0%
            value, under = f"<\u00a0{percent(s.upper)}", f"no error in {count_text(s.comparisons)}"
        cards.append(Card(what, value, under, (first, at, last)))
    return cards


def _cautions(report: Report) -> list[str]:
    """What a reader must keep in mind: the warnings, and where a rate rests on very few identities."""
    notes = [say(note) for note in report.warnings]
    for rate, parts in report.drivers:
        half = parts.how_many_make(0.5)
        if 0 < half <= FEW_DRIVERS < rate.n_identities:
            notes.append(
                f"half of the uncertainty of {say(rate.metric.upper())} comes from {half} of "
                f"{count_text(rate.n_identities)} people: its interval rests on very few people, and a different "
                "sample of people could change it a lot"
            )
    return notes


# Curves and points


def _explore(report: Report) -> Section:
    slider, points, band, names = report.slider, report.points, [report.band], [None]
    far, frr, level, numbers = say("FAR"), say("FRR"), level_text(report.level), report.slider.numbers
    cross = {
        "x": numbers["far"], "left": numbers["far_low"], "right": numbers["far_high"],
        "y": numbers["frr"], "top": numbers["frr_high"], "bottom": numbers["frr_low"],
    }  # fmt: skip
    stops = outside = ""
    if report.band.far.size:
        begins = float(report.band.far[0])
        stops = (
            f" The band begins at {far} {percent(begins)}, where {count_text(round(begins * slider.totals[0]))} "
            "impostor comparisons match; below, too few do to bound it."
        )
    if report.histogram.outside:
        some = "1 comparison lies" if report.histogram.outside == 1 else f"{report.histogram.outside:,} comparisons lie"
        outside = f" {some} beyond the ends."
    scores = replace(
        scores_figure(report.histogram, slider.distance),
        caption="Each histogram has area 1. Impostor scores are dashed, genuine ones solid; the dark parts are errors "
        f"at this threshold.{outside}",
        cursor={"x": numbers["threshold"]},
    )
    roc = replace(
        roc_figure([report.curve], names, band),
        title="ROC",
        marks=tuple(Mark(point.far.estimate, 1.0 - point.frr.estimate) for point in points),
        caption=f"Line: estimate. Shaded: {level} pointwise limits for {frr} at each {far}. Squares: operating "
        "points. Cross: this threshold with both its intervals.",
        cursor=cross | {name: 1.0 - cross[name] for name in ("y", "top", "bottom")},
    )
    det = replace(
        det_figure([report.curve], names, band, mark=False),
        title="DET",
        marks=tuple(Mark(point.far.estimate, point.frr.estimate) for point in points),
        caption="The same on probit axes, on which normal scores give a straight line. Lower and to the left is "
        f"better. A whole curve lies within the band less often than at each {far}.{stops}",
        cursor=cross,
    )
    jumps = [(capital(_point_name(point)), place) for point, (_, place) in zip(points, slider.jumps, strict=True)]
    sentence = (
        f"Intervals are for a threshold fixed beforehand; at the {far}s of the table, those of {frr} account for the "
        "estimated threshold, as does that of EER."
    )
    return Section(
        "explore",
        "At any threshold",
        sentences=(sentence,),
        slider=replace(slider, jumps=tuple(jumps)),
        figures=tuple(replace(figure, start=slider.start) for figure in (scores, roc, det)),
    )


def _point_name(point: Point) -> str:
    """FAR 0.1%, or threshold 0.62."""
    return f"threshold {point.reading}" if point.target is None else f"{say('FAR')} {target_text(point.target)}"


def _points(report: Report) -> Section:
    level, focus, far = level_text(report.level), report.points[report.focus], say("FAR")

    def of(metric: str, write: Callable[[Record], str]) -> Callable[[Point], str]:
        return lambda point: write(getattr(point, metric).record)

    columns = [
        Column("Point", cell=lambda point: capital(_point_name(point)) + (" ●" if point is focus else "")),
        Column("Threshold", "number", cell=lambda point: point.reading),
    ]
    for metric, errors, drop in (("far", "False accepts", 2), ("frr", "False rejects", 1)):
        name = say(metric.upper())
        columns += [
            Column(name, "number", cell=of(metric, with_interval)),
            Column(f"{name} below", "number", cell=of(metric, lambda record: percent(record["upper"]))),
            Column(say(errors), "number", drop, of(metric, counted)),
        ]
    title = (
        f"{level} intervals beneath each estimate; “below” is a one-sided bound with confidence {level}, also of a "
        "rate without errors. ● is the point of the summary."
    )
    tables = [table(report.points, columns, title)]
    failed = [(g.metric.upper(), p.reading, g) for p in report.points for g in (p.gfar, p.gfrr) if g is not None]
    if failed:
        number: Any = failed[0][2].number
        note = f"Failure to enrol {percent(number.fte)}, failure to acquire {percent(number.fta)}."
        if any(point.target is not None for point in report.points):
            note += f" At a given {far}, GFRR accounts for the estimated threshold; GFAR takes it as given."
        title = "With failures to enrol and to acquire, for a single attempt."
        tables.append(replace(_numbers(failed, level, title), note=note))
    whole = [
        ("Equal error rate", report.eer.reading, report.eer),
        ("Area under the ROC curve", "–", report.auc),
        *((name_text(cost.record), cost.reading, cost) for cost in report.costs),
    ]
    tables.append(_numbers(whole, level, "Numbers of the whole curve."))
    return Section("points", "Operating points", tables=tuple(tables))


BOUNDED = ("gfar", "gfrr", "eer")


def _numbers(rows: Sequence[tuple[str, str, Stated]], level: str, title: str) -> Table:
    """Numbers by name and threshold; costs and areas have no bound of their own."""
    columns = (
        Column("Number", cell=lambda row: row[0]),
        Column("Threshold", "number", cell=lambda row: row[1]),
        Column("Estimate", "number", cell=lambda row: value_text(row[2].metric, row[2].estimate)),
        Column(f"{level} interval", "number", cell=lambda row: _span(row[2])),
        Column("Below", "number", cell=lambda row: percent(row[2].upper) if row[2].metric in BOUNDED else "–"),
    )
    return table(rows, columns, title)


def _span(stated: Stated) -> str:
    return span_text(stated.metric, stated.low, stated.high)


# Groups and systems


def _groups(groups: GroupRates, records: Sequence[Record]) -> Section:
    return replace(group_section(groups, records), title="Groups", notes=tuple(map(say, groups.warnings)))


def _systems(report: Report, systems: Systems) -> Section:
    point = report.points[report.focus]
    focus = [r for r in systems.records if r["metric"] == "far" and r["threshold_a"] == point.threshold]
    if point.target is not None or not focus:  # some scores may be distances: then there is no common threshold
        focus = [r for r in systems.records if r.get("target") == systems.focus]
    section = comparison_section(systems.records, focus)
    det = det_figure(systems.curves, systems.names, [None] * len(systems.curves))
    rates = [f"{name}: EER {percent(c.eer().estimate)}" for name, c in zip(systems.names, systems.curves, strict=True)]
    described = f"{det.description} {'; '.join(rates)}."
    caption = "Each system on its own comparisons. Lower and to the left is better."
    figures = *section.figures, replace(det, key="systems-det", description=described, marks=(), caption=caption)
    title, notes = "Other systems on the same comparisons", tuple(map(say, systems.notes))
    return replace(section, title=title, figures=figures, facts=systems.facts, notes=notes)


# People


def _drivers(report: Report) -> Section:
    sentence = (
        f"At {_point_name(report.points[report.focus])}: people who are mistaken for others, and people who are not "
        "recognised as themselves. A person with many comparisons and few errors counts too. Look at these first: a "
        "wrong label among them changes the numbers most."
    )
    parts = [_driver_part(rate, parts, report.show_labels) for rate, parts in report.drivers]
    return Section("drivers", "Which people drive the uncertainty", sentences=(sentence,), parts=tuple(parts))


def _driver_part(rate: Rate, parts: Contributions, show_labels: bool) -> Section:
    name, far, top = say(rate.metric.upper()), rate.metric == "far", parts.largest(TOP)
    key, title = f"drivers-{rate.metric}", f"{name}: {'accepted as others' if far else 'rejected as themselves'}"
    if not top.size:
        return Section(
            key, title, sentences=(f"No person differs from the others in {name} here, so none stands out.",)
        )
    tally, half, n = rate.tally.part(rate.metric), parts.how_many_make(0.5), count_text(rate.n_identities)
    people = {
        i: str(rate.tally.identities[i]) if show_labels else f"person\u00a0{'A' if far else 'R'}{rank}"
        for rank, i in enumerate(top.tolist(), start=1)
    }

    def errors(i: int) -> str:
        of = f"{count_text(int(tally.errors[rate.index][i]))} of {count_text(int(tally.comparisons[i]))}"
        return f"{of}\n{'more' if parts.excess[i] > 0.0 else 'fewer'} than expected"

    columns = (
        Column("Person", cell=lambda i: people[i]),
        Column("Share of variance", "number", cell=lambda i: percent(float(parts.share[i]))),
        Column("Errors", "number", cell=errors),
        Column(f"{name} without", "number", cell=lambda i: percent(float(parts.rate_without[i]))),
    )
    caption = (
        f"Overall {name} is {percent(rate.estimate)}; “without” is the rate when the person is left out; “expected” is "
        "the person's share of the comparisons times the overall rate."
    )
    few = f"One of {n} people makes" if half == 1 else f"{count_text(half)} of {n} people make"
    sentence = (
        f"{few} half of the uncertainty of {name}. The {top.size} largest together make "
        f"{100 * parts.share[top].sum():.0f}% of it."
    )
    listed = replace(table(people, columns, caption), bars=tuple((parts.share[top] / parts.share[top[0]]).tolist()))
    return Section(key, title, sentences=(sentence,), tables=(listed,))


# How the numbers were made


LABORATORY = {"system": "System", "operator": "Operator", "test_id": "Test", "date": "Date"}
# What the parameters of a report are called where their names do not say it.
PARAMETERS = {
    "far": "FARs asked for",
    "threshold": "Thresholds asked for",
    "method": "Interval method asked for",
    "distance": "Scores are distances",
    "against": "Compared with",
    "fpir": "FPIRs asked for",
    "target": "Intervals are for a gallery that is",
    "fta": "Failures to acquire",
    "fte": "Failures to enrol",
    "min_dcf": "Detection costs at",
    "weighting": "Rates are means over",
}
RATES = (
    "FAR (false accept rate) is the share of impostor comparisons that match, FRR (false reject rate) the share of "
    "genuine comparisons that do not. Each pools all comparisons, so an identity weighs by how many it takes part in."
)
RATES_PER_PERSON = (
    "Every person counts once. FRR is the mean over people of the share of a person's genuine comparisons that do "
    "not match; FAR is the mean over pairs of people of the share of their comparisons that match. Counts of errors "
    "are of comparisons."
)
DEPENDENCE = (
    "Errors of comparisons that share an identity are correlated. An interval that takes them for independent is too "
    "narrow, often several times. Here the variance accounts for every pair of comparisons that share an identity "
    "(Fogliato, Patil and Perona, Confidence Intervals for Error Rates in 1:1 Matching Tasks, 2024)."
)
WILSON = (
    f"Wilson's interval at the effective number of comparisons, p(1{MINUS}p) divided by the variance and never below "
    "the number of disjoint identity pairs (FAR) or of identities (FRR)"
)
# Where the latent interval is used; {} is the other one of FAR at the point of the summary.
FIXED = (
    f"The latent interval, in the table, on the cards and on the slider. For comparison, {WILSON}: FAR {{}} at the "
    "operating point of the summary. Where that is narrower, its variance is estimated from the few people who made "
    "errors, and most samples miss some of those who would."
)
LATENT = (
    "An error is modelled as a latent Gaussian variable that crosses a threshold. The correlation of comparisons that "
    "share an identity is estimated where errors are plentiful and used where they are rare. It is made for few "
    "identities and rare errors, where the other intervals cover too little."
)
SYSTEMS = (
    "All systems were tested on the same people, so their errors are correlated; the variance of a difference accounts "
    "for every pair of comparisons, of either system, that share an identity. At equal FAR and at EER the interval "
    "accounts for the estimated threshold of each system. “Differs” goes by the difference; the interval of the ratio "
    "is made on the log scale and may say otherwise where errors are few."
)
FAMILY = " One critical value serves all pairs of systems at an operating point (max-t)."
UNSEEN = (
    "Identities that are not in the sample. With few identities, rare errors, or a few identities that make most "
    "errors, intervals cover less often than their level. The section on people shows how close these data are to that."
)


def method_facts(report: Report) -> list[tuple[str, str]]:
    """(heading, text) of every part of the method that the report used."""
    point = report.points[report.focus]
    methods = list(dict.fromkeys(number.method for p in report.points for number in (p.far, p.frr)))
    costs = ", ".join(dict.fromkeys(cost.method for cost in report.costs))
    used = f"{', '.join(methods)} for operating points; {report.eer.method} for EER, {report.auc.method} for AUC"
    narrow = " and ".join(
        f"{ratio_text(number.naive_ratio)} times too narrow for {number.metric.split('@')[0].upper()}"
        for number in (point.far, point.frr)
        if number.naive_ratio is not None and number.naive_ratio >= 1.05
    )
    fixed = f"{WILSON}."
    if point.far.method.startswith("latent"):
        interval = point.far.number.interval("wilson", report.level)
        fixed = FIXED.format(span(interval.low, interval.high))
    facts = {
        "Rates": RATES_PER_PERSON if report.weighting == "identities" else RATES,
        "Comparisons that share a person": DEPENDENCE
        + (f" On these data a naive interval is {narrow}." if narrow else ""),
        "At a fixed threshold": fixed,
        "The latent interval": LATENT if any(method.startswith("latent") for method in methods) else "",
        "Methods used here": f"{used}{f', {costs} for costs' if costs else ''}.",
        "Differences between systems": "",
        "What no method can see": UNSEEN,
    }
    if report.systems is not None:
        facts["Differences between systems"] = SYSTEMS + (FAMILY if len(report.systems.names) > 2 else "")
    return [(heading, say(text)) for heading, text in facts.items() if text]


def source_rows(source: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What made a page, as (what, value)."""
    rows = [(LABORATORY.get(key, key), str(value)) for key, value in (source.get("laboratory") or {}).items()]
    rows.append(("Made by", f"matchbound {source.get('version', '–')}"))
    rows += [("Command", str(source["command"]))] if source.get("command") else []
    for key, value in dict(source.get("parameters") or {}).items():
        if key == "verb" or value is None:
            continue
        if key in ("far", "fpir") and isinstance(value, (list, tuple)):
            shown = ", ".join(map(target_text, value))
        else:
            shown = level_text(value) if key == "level" else plain_text(value)
        rows.append((say(PARAMETERS.get(key) or key.replace("_", " ").capitalize()), shown))
    rows += [("Seed", str(source["seed"]))] if source.get("seed") is not None else []
    return [*rows, ("Digest of the input", plain_text(source["input"]) if source.get("input") else "not hashed")]
