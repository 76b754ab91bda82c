"""The sections of a report, in the order in which they are read: sentences, cards, figures and tables of results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.report.method import method_facts
from matchbound.show.columns import description_rows, name_text, span_text, value_text
from matchbound.show.differences import comparison_section, group_section
from matchbound.show.figure import Figure, Mark
from matchbound.show.figures import det_figure, roc_figure, scores_figure
from matchbound.show.numbers import count_text, fixed, level_text, percent, target_text
from matchbound.show.section import Card, Document, Section, sentence_of, verdict_of
from matchbound.show.tables import Column, Table
from matchbound.show.terms import Terms, say, speaking

if TYPE_CHECKING:
    from matchbound.report.page import Drivers, Point, Report, Stated

ALIKE = 1.1
"""Rates within this factor of each other are called about the same."""
FEW_DRIVERS = 3
OFTEN = 0.2
"""A rate above this is told in percent and not as "1 in n"."""
LABORATORY = {"system": "System", "operator": "Operator", "test_id": "Test", "date": "Date"}


def document(report: Report, terms: Terms = "plain") -> Document:
    """The report in the terms asked for."""
    with speaking(terms):
        made = [
            _summary(report),
            _explore(report),
            _points(report),
            _groups(report),
            _systems(report),
            *report.searches,
            _drivers(report),
            _suspects(report),
            Section(
                "data",
                "The data",
                facts=tuple((sentence_of(what)[:-1], value) for what, value in description_rows(report.description)),
            ),
            Section("method", "How the numbers were made", facts=tuple(method_facts(report))),
            Section("provenance", "Provenance", facts=tuple(source_rows(report.provenance))),
        ]
        sections = tuple(section for section in made if section is not None)
    laboratory = dict(report.provenance.get("laboratory") or {})
    d = report.description
    about = [(name, str(laboratory[key])) for key, name in LABORATORY.items() if laboratory.get(key)]
    counts = f"{count_text(d.n_genuine)} genuine, {count_text(d.n_impostor)} impostor"
    about += [("People", count_text(d.n_identities)), ("Comparisons", counts)]
    return Document(
        title=report.title,
        sections=sections,
        eyebrow=f"Error rates with {level_text(report.level)} intervals",
        about=tuple(about),
        running=str(laboratory.get("system") or report.title),
        version=str(report.provenance.get("version", "")),
        source="; ".join(f"{name} {value}" for name, value in source_rows(report.provenance)),
    )


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
    if rate.without_error:
        most = f"; it may be {odds(worst)}" if worst else ""
        return f"No {who} was {happens} in {count_text(rate.comparisons)} comparisons{most}."
    if rate.estimate > OFTEN or (worst or 0.0) > OFTEN:
        return f"About {percent(rate.estimate)} of {who}s are {happens}; it may be {percent(worst)}."
    if rate.estimate <= 0.0:
        return f"No {who} was {happens}; it may be {odds(worst)}."
    return f"About {odds(rate.estimate)} {who}s is {happens}; it may be {odds(worst)}."


def odds(rate: float | None) -> str:
    """A rate as 1 in 1,070: three digits."""
    if not rate or not math.isfinite(rate):
        return "unknown"
    times = 1.0 / rate
    return f"1 in {times:.1f}" if times < 10.0 else f"1 in {float(f'{times:.3g}'):,.0f}"


def _cards(report: Report) -> list[Card]:
    """Both rates at the focus, FRR at the other points, EER and costs."""
    stated: list[tuple[str, Stated]] = []
    for place, point in enumerate(report.points):
        if point.target is None or place == report.focus:
            stated.append((f"{say('FAR')} at threshold {point.reading}", point.far))
        at = f"threshold {point.reading}" if point.target is None else f"{say('FAR')} {target_text(point.target)}"
        stated.append((f"{say('FRR')} at {at}", point.frr))
        if place == report.focus:
            stated += [(x.metric.upper(), x) for x in (point.gfar, point.gfrr) if x is not None]
    stated.append(("Equal error rate", report.eer))
    stated += [(_name(cost), cost) for cost in report.costs]
    limits = [x for _, s in stated for x in (s.low, s.estimate, s.high) if x > 0.0 and math.isfinite(x)]
    low = 10.0 ** math.floor(math.log10(min(limits, default=0.01)))
    high = max([*limits, 1.0])
    return [_card(what, s, low, high) for what, s in stated]


def _card(what: str, stated: Stated, low: float, high: float) -> Card:
    """A number with its interval on a logarithmic bar that all cards share; no error at all is a bound, not 0%."""
    places = [
        min(max(math.log10(max(x, low) / low) / math.log10(high / low), 0.0), 1.0)
        for x in (stated.low, stated.estimate, stated.high)
    ]
    bar = (places[0], places[1], places[2])
    if stated.without_error:
        return Card(what, f"<\u00a0{percent(stated.upper)}", f"no error in {count_text(stated.comparisons)}", bar)
    return Card(what, value_text(stated.metric, stated.estimate), _span(stated), bar)


def _cautions(report: Report) -> list[str]:
    """What a reader must keep in mind: the warnings, and where a rate rests on very few identities."""
    notes = [say(note) for note in report.warnings]
    for drivers in report.drivers:
        n = drivers.rate.n_identities
        if 0 < drivers.half <= FEW_DRIVERS < n:
            notes.append(
                f"half of the uncertainty of {say(drivers.rate.metric.upper())} comes from {drivers.half} of "
                f"{count_text(n)} people: its interval rests on very few people, and a different sample of people "
                "could change it a lot"
            )
    return notes


# Curves and points


def _explore(report: Report) -> Section:
    slider, points, curve = report.slider, report.points, report.curve
    far, frr, level = say("FAR"), say("FRR"), level_text(report.level)
    numbers = slider.numbers
    cross = {
        "x": numbers["far"], "left": numbers["far_low"], "right": numbers["far_high"],
        "y": numbers["frr"], "top": numbers["frr_high"], "bottom": numbers["frr_low"],
    }  # fmt: skip
    flipped = cross | {name: 1.0 - cross[name] for name in ("y", "top", "bottom")}
    begins = report.band.far[0] if report.band.far.size else math.nan
    count = round(float(begins) * slider.totals[0]) if math.isfinite(begins) else 0
    stops = (
        f"The band begins at {far} {percent(float(begins))}, where {count_text(count)} impostor comparisons match; "
        "below, too few do to bound it."
    )
    det = replace(
        det_figure([curve], [None], [report.band], mark=False),
        title="DET",
        marks=tuple(Mark(point.far.estimate, point.frr.estimate) for point in points),
        caption=f"The same on probit axes, on which normal scores give a straight line. Lower and to the left is "
        f"better. {stops}",
    )
    roc = replace(
        roc_figure([curve], [None], [report.band]),
        title="ROC",
        marks=tuple(Mark(point.far.estimate, 1.0 - point.frr.estimate) for point in points),
        caption=f"Line: estimate. Shaded: {level} pointwise limits for {frr} at each {far}. Squares: operating "
        "points. Cross: this threshold with both its intervals.",
    )
    outside = report.histogram.outside
    beyond = f" {count_text(outside)} comparisons lie beyond the ends." if outside else ""
    scores = replace(
        scores_figure(report.histogram, slider.distance),
        caption="Each histogram has area 1. Impostor scores are dashed, genuine ones solid; the dark parts are errors "
        f"at this threshold.{beyond}",
    )
    figures = (
        _moving(scores, {"x": numbers["threshold"]}, slider.start),
        _moving(roc, flipped, slider.start),
        _moving(det, cross, slider.start),
    )
    names = [_point_name(point) for point in points]
    jumps = tuple((sentence_of(name)[:-1], place) for name, (_, place) in zip(names, slider.jumps, strict=True))
    told = (
        f"Intervals are for a threshold fixed beforehand; at the {far}s of the table, those of {frr} account for the "
        "estimated threshold."
    )
    return Section(
        "explore", "At any threshold", sentences=(told,), slider=replace(slider, jumps=jumps), figures=figures
    )


def _moving(figure: Figure, cursor: Mapping[str, Any], start: int) -> Figure:
    """The figure with the marker of the slider; a curve alone needs no legend."""
    lines = tuple(replace(line, label=None) for line in figure.lines)
    bands = tuple(replace(band, label=None) for band in figure.bands)
    return replace(figure, lines=lines, bands=bands, cursor={k: np.asarray(v) for k, v in cursor.items()}, start=start)


def _point_name(point: Point) -> str:
    """FAR 0.1%, or threshold 0.62."""
    return f"threshold {point.reading}" if point.target is None else f"{say('FAR')} {target_text(point.target)}"


def _points(report: Report) -> Section:
    level, far, frr = level_text(report.level), say("FAR"), say("FRR")
    columns = (
        Column("Point"),
        Column("Threshold", "number"),
        Column(far, "number"),
        Column(f"{far} below", "number"),
        Column(say("False accepts"), "count", 2),
        Column(frr, "number"),
        Column(f"{frr} below", "number"),
        Column(say("False rejects"), "count", 1),
    )
    rows = []
    for place, point in enumerate(report.points):
        mark = " ●" if place == report.focus else ""
        cells = [sentence_of(_point_name(point))[:-1] + mark, point.reading]
        for rate in (point.far, point.frr):
            cells += [f"{percent(rate.estimate)}\n{_span(rate)}", percent(rate.upper)]
            cells.append(f"{count_text(rate.errors)} of {count_text(rate.comparisons)}")
        rows.append(tuple(cells))
    title = (
        f"{level} intervals beneath each estimate; “below” is a one-sided bound with confidence {level}. "
        "● is the point of the summary."
    )
    tables = [Table(columns, tuple(rows), title)]
    generalised = [(p, rate) for p in report.points for rate in (p.gfar, p.gfrr) if rate is not None]
    if generalised:
        tables.append(_generalised(generalised, level))
    whole = [("Equal error rate", report.eer), ("Area under the ROC curve", report.auc)]
    whole += [(_name(cost), cost) for cost in report.costs]
    listed = tuple(
        (
            name,
            _threshold(s) if s.metric == "eer" else "–",
            value_text(s.metric, s.estimate),
            _span(s),
            value_text(s.metric, s.upper) if s.metric == "eer" else "–",
        )
        for name, s in whole
    )
    tables.append(Table(_number_columns(level), listed, "Numbers of the whole curve."))
    return Section("points", "Operating points", tables=tuple(tables))


def _number_columns(level: str) -> tuple[Column, ...]:
    return (
        Column("Number"),
        *(Column(name, "number") for name in ("Threshold", "Estimate", f"{level} interval", "Below")),
    )


def _generalised(rates: Sequence[tuple[Point, Stated]], level: str) -> Table:
    rows = tuple(
        (rate.metric.upper(), point.reading, percent(rate.estimate), _span(rate), percent(rate.upper))
        for point, rate in rates
    )
    number: Any = rates[0][1].number
    note = f"Failure to enrol {percent(number.fte)}, failure to acquire {percent(number.fta)}."
    return Table(_number_columns(level), rows, "With failures to enrol and to acquire, for a single attempt.", note)


def _threshold(stated: Stated) -> str:
    from matchbound.report.slider import reading_of

    number: Any = stated.number
    return reading_of(number.curve, number.index)


def _name(stated: Stated) -> str:
    return name_text(stated.number.record(None))


def _span(stated: Stated) -> str:
    return span_text(stated.metric, stated.low, stated.high)


# Groups and systems


def _groups(report: Report) -> Section | None:
    if report.groups is None:
        return None
    section = group_section(report.groups, report.group_records)
    grey = " Grey: too few people to compare." if report.groups.too_small else ""
    caption = f"Estimates with {level_text(report.level)} intervals, each for its group alone.{grey}"
    figures = tuple(replace(figure, caption=caption) for figure in section.figures)
    return replace(section, title="Groups", figures=figures, notes=tuple(say(note) for note in report.groups.warnings))


def _systems(report: Report) -> Section | None:
    if report.systems is None:
        return None
    systems = report.systems
    focus = [r for r in systems.records if r.get("target") == systems.focus]
    section = comparison_section(systems.records, focus)
    caption = "A dot where the interval leaves out 0, a hollow square where the data cannot tell."
    figures = [replace(figure, caption=caption) for figure in section.figures]
    det = det_figure(systems.curves, systems.names, [None] * len(systems.curves))
    told = "; ".join(
        f"{name}: EER {percent(c.eer().estimate)}" for name, c in zip(systems.names, systems.curves, strict=True)
    )
    caption = "Each system on its own comparisons. Lower and to the left is better."
    described = f"{det.description} {told}."
    figures.append(replace(det, key="systems-det", description=described, marks=(), caption=caption))
    return replace(
        section, title="Other systems on the same comparisons", figures=tuple(figures), facts=systems.facts,
        notes=tuple(say(note) for note in systems.notes),
    )  # fmt: skip


# People


def _drivers(report: Report) -> Section:
    sentence = (
        f"At {_point_name(report.points[report.focus])}: people who are mistaken for others, and people who are not "
        "recognised as themselves. A person with many comparisons and few errors counts too. Look at these first: a "
        "wrong label among them changes the numbers most."
    )
    titles = (f"{say('FAR')}: accepted as others", f"{say('FRR')}: rejected as themselves")
    parts = [_driver_part(drivers, title) for drivers, title in zip(report.drivers, titles, strict=True)]
    sentences = [sentence, *(_per_person(*pair, level_text(report.level)) for pair in report.per_person)]
    return Section("drivers", "Which people drive the uncertainty", sentences=tuple(sentences), parts=tuple(parts))


def _driver_part(drivers: Drivers, title: str) -> Section:
    name, rate = say(drivers.rate.metric.upper()), drivers.rate
    key = f"drivers-{rate.metric}"
    if not drivers.top:
        sentence = f"No person differs from the others in {name} here, so none stands out."
        return Section(key, title, sentences=(sentence,))
    letter = "A" if rate.metric == "far" else "R"
    columns = (
        Column("Person"),
        Column("Share of variance", "number"),
        Column("Errors", "number"),
        Column(f"{name} without", "number"),
    )
    rows = tuple(
        (
            person.label if person.label is not None else f"person\u00a0{letter}{rank}",
            f"{100 * person.share:.3g}%",
            f"{count_text(person.errors)} of {count_text(person.comparisons)}\n"
            f"{'more' if person.more else 'fewer'} than expected",
            percent(person.rate_without),
        )
        for rank, person in enumerate(drivers.top, start=1)
    )
    largest = max(person.share for person in drivers.top)
    n = count_text(rate.n_identities)
    few = f"One of {n} people makes" if drivers.half == 1 else f"{count_text(drivers.half)} of {n} people make"
    sentence = (
        f"{few} half of the uncertainty of {name}. The {len(drivers.top)} largest together make "
        f"{100 * drivers.top_share:.0f}% of it."
    )
    told = (
        f"Overall {name} is {percent(rate.estimate)}; “without” is the rate when the person is left out; “expected” is "
        "the person's share of the comparisons times the overall rate."
    )
    bars = tuple(person.share / largest for person in drivers.top)
    return Section(key, title, sentences=(sentence,), tables=(Table(columns, rows, told, bars=bars),))


def _per_person(pooled: Stated, once: Stated, level: str) -> str:
    """A rate with every identity counted once, whether that differs from the pooled rate, and why."""
    rate: Any = pooled.number
    unit = "person" if rate.metric == "frr" else "pair of people"
    sentence = (
        f"With every {unit} counted once, {say(rate.metric.upper())} is {percent(once.estimate)}, {level} interval "
        f"{_span(once)}; pooled over comparisons it is {percent(pooled.estimate)}"
    )
    low, high = sorted((pooled.estimate, once.estimate))
    if high <= ALIKE * low or high == 0.0:
        return f"{sentence}, about the same."
    part = rate.tally.impostor if rate.metric == "far" else rate.tally.genuine
    errors, comparisons = part.errors[rate.index], part.comparisons
    order = np.argsort(-comparisons, kind="stable")[: int(np.count_nonzero(comparisons))]
    top, rest = order[: max(order.size // 10, 1)], order[max(order.size // 10, 1) :]
    share = f"{100 * comparisons[top].sum() / comparisons.sum():.0f}%"
    one = top.size == 1
    what = f"{'has' if one else 'have'} {share} of the places in them"
    if rate.metric == "frr":
        what = f"{'makes' if one else 'make'} {share} of them"
    sentence += (
        f". They differ because people do not weigh the same when comparisons are pooled: "
        f"{'the person' if one else f'the {count_text(top.size)} people'} with most comparisons {what}, and "
        f"{percent(errors[top].sum() / comparisons[top].sum())} of those are errors"
    )
    left = comparisons[rest].sum()
    return sentence + (f", against {percent(errors[rest].sum() / left)} of the other people's." if left else ".")


def _suspects(report: Report) -> Section | None:
    if not report.suspects:
        return None
    parts = []
    for metric, title in (("far", say("False accepts")), ("frr", say("False rejects"))):
        rows = tuple(
            (fixed(r["score"], 6) if r["score"] else "0", *(_side(r, side) for side in "ab"))
            for r in report.suspects
            if r["metric"] == metric
        )
        columns = (Column("Score", "number"), Column("One side"), Column("Other side"))
        parts.append(Section(f"suspects-{metric}", title, tables=(Table(columns, rows, f"{title}, worst first."),)))
    sentence = (
        "Listed on request, to check their labels: a wrong label makes the worst errors. This part of the report names "
        "people; share it with care."
    )
    return Section("suspects", "The worst errors, by name", sentences=(sentence,), parts=tuple(parts))


def _side(record: Mapping[str, Any], side: str) -> str:
    instance = record.get(f"instance_{side}")
    return str(record[f"identity_{side}"]) + ("" if instance is None else f" / {instance}")


# Where it comes from


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
"""What the parameters of a report are called where their names do not say it."""


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
