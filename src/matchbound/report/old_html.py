"""The report as one self-contained page: styles, script, plots and data are inside, and nothing is fetched."""

from __future__ import annotations

import json
from typing import Any

from matchbound.report import old_svg as svg
from matchbound.report import systems_words as systems
from matchbound.report import words
from matchbound.report.forest import forest_svg
from matchbound.report.group_svg import groups_svg
from matchbound.report.page import Drivers, PanelRate, Report
from matchbound.report.search_page import section
from matchbound.report.systems_svg import systems_det
from matchbound.report.templating import HERE, content_policy, templates
from matchbound.show.numbers import level_text, p_text, percent, points, points_span, ratio_text, span


def to_html(report: Report) -> str:
    """The page."""
    environment = templates()
    from markupsafe import Markup

    style, script = (HERE / "old_style.css").read_text("utf-8"), (HERE / "old_report.js").read_text("utf-8")
    drawings = {
        "roc": svg.roc_drawing(report),
        "det": svg.det_drawing(report),
        "scores": svg.scores_drawing(report),
    }
    payload = _payload(report, {name: drawing.moves for name, drawing in drawings.items()})
    environment.filters["percent"] = percent
    environment.filters["p"] = p_text
    environment.filters["points"] = points
    environment.filters["ratio"] = ratio_text
    environment.filters["unbroken"] = unbroken
    shown = {key: values[report.panel.start] for key, values in payload["text"].items()}
    return environment.get_template("old_report.html.j2").render(
        report=report,
        words=words,
        policy=content_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        payload=Markup(safe_json(payload)),
        plots={name: Markup(drawing.svg) for name, drawing in drawings.items()},
        shown=shown,
        level=level_text(report.level),
        jumps=_jumps(report),
        points_span=points_span,
        columns=_columns(1 + len(report.costs) + sum(2 if point.target is None else 1 for point in report.points)),
        search=None if report.searches is None else section(report.searches, within=True),
        against=None if report.systems is None else systems,
        systems_plot=Markup(systems_det(report.systems.curves)) if report.systems and report.systems.curves else None,
        forest=None if report.systems is None else Markup(forest_svg(report.systems, report.level)),
        drivers=[_driver_table(item) for item in report.drivers],
        group_plots=[
            (metric, Markup(groups_svg(report.groups, metric, report.level)))
            for metric in ("far", "frr")
            if report.groups is not None and any(getattr(row, metric) is not None for row in report.groups.rows)
        ],
    )


def _columns(cards: int) -> int:
    """How many cards stand in a row, so that the last row is as full as can be."""
    if cards <= 5:
        return cards
    return min((5, 4, 3), key=lambda columns: (cards % columns == 1, -cards % columns, -columns))


def safe_json(value: Any) -> str:
    """JSON that cannot end the script element that holds it, nor be taken for markup."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def unbroken(text: str) -> str:
    """The same, with intervals and p-values that no line break divides."""
    return text.replace("–", "\u2060–\u2060").replace("p = ", "p\u00a0=\u00a0").replace("p <", "p\u00a0<")


def _payload(report: Report, moves: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    """What the slider moves over: numbers as they are, the same numbers as text, and pixels."""
    panel = report.panel
    numbers = {"threshold": panel.thresholds.tolist()}
    text: dict[str, list[str]] = {
        "threshold": list(panel.readings),
        "exact": [repr(value) for value in panel.thresholds.tolist()],
    }
    for name, rate in (("far", panel.far), ("frr", panel.frr)):
        numbers |= {
            name: rate.estimate.tolist(),
            f"{name}_low": rate.low.tolist(),
            f"{name}_high": rate.high.tolist(),
            f"{name}_upper": rate.upper.tolist(),
            f"{name}_errors": rate.errors.tolist(),
        }
        text |= _texts(name, rate)
    return {
        "start": panel.start,
        "numbers": numbers,
        "text": text,
        "moves": moves,
        "plot": {"left": svg.LEFT, "right": svg.RIGHT, "distance": report.description.distance},
    }


def _texts(name: str, rate: PanelRate) -> dict[str, list[str]]:
    limits = zip(rate.low.tolist(), rate.high.tolist(), strict=True)
    return {
        name: [percent(value) for value in rate.estimate.tolist()],
        f"{name}_interval": [span(low, high) for low, high in limits],
        f"{name}_upper": [percent(value) for value in rate.upper.tolist()],
        f"{name}_errors": [f"{value:,} of {rate.comparisons:,}" for value in rate.errors.tolist()],
    }


def _jumps(report: Report) -> list[tuple[str, int]]:
    """Buttons that set the slider: (name, place)."""
    thresholds = report.panel.thresholds
    made = [(words.point_name(point), int(abs(thresholds - point.threshold).argmin())) for point in report.points]
    return [(name[:1].upper() + name[1:], place) for name, place in made]


def _driver_table(drivers: Drivers) -> dict[str, Any]:
    """A table of contributors, with the width of each bar in whole percents of the largest."""
    largest = max((item.share for item in drivers.top), default=1.0)
    rows = [
        {
            "name": words.contributor_name(item.label, rank, drivers.metric),
            "labelled": item.label is not None,
            "share": f"{100 * item.share:.3g}%",
            "bar": round(100 * item.share / largest),
            "more": item.more,
            "counted": f"{item.errors:,} of {item.comparisons:,}",
            "without": percent(item.rate_without),
        }
        for rank, item in enumerate(drivers.top, start=1)
    ]
    return {"metric": drivers.metric, "sentence": words.driver_sentence(drivers), "rows": rows, "rate": drivers.rate}
