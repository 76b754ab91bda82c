"""A report as one self-contained page: styles, script, plots and data are inside, and nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray
from matchbound.errors import MissingExtraError
from matchbound.show.figures import Axis, Bars, Figure
from matchbound.show.numbers import level_text, percent, span
from matchbound.show.section import MARKS, Document, Section, Slider, sentence_of
from matchbound.show.terms import say

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).resolve().parent
# Where a line break would divide an interval, a p-value or odds.
UNBROKEN = re.compile(r"(?<=\d)\s?–\s?(?=[\d−])|(?<=p) (?=[=<])|(?<=[=<]) (?=\d)|(?<=1 in) (?=\d)|(?<=\b1) (?=in \d)")


def to_html(document: Document) -> str:
    """The page."""
    try:
        import jinja2  # noqa: F401
        from markupsafe import Markup
    except ImportError:
        raise MissingExtraError("the HTML report needs jinja2; install matchbound[report]") from None
    sections = list(_walk(document.sections))
    slider = next((section.slider for section in sections if section.slider is not None), None)
    moving = [figure for section in sections for figure in section.figures if figure.cursor]
    style = (HERE / "style.css").read_text("utf-8").replace('"RUNNING"', _css_text(document.running or document.title))
    script = (HERE / "report.js").read_text("utf-8") if slider is not None else ""
    payload = None
    if slider is not None:
        payload = _payload(slider, {figure.key: cursor_moves(figure) for figure in moving})
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            document=document,
            policy=_content_policy(style, script),
            style=Markup(style),
            script=Markup(script),
            payload=None if payload is None else Markup(safe_json(payload)),
            shown={} if payload is None else {key: values[payload["start"]] for key, values in payload["text"].items()},
            draw=lambda figure: Markup(draw(figure)),
            marks=MARKS,
            say=say,
            level_text=level_text,
        )
    )


def _walk(sections: Sequence[Section]) -> Iterator[Section]:
    for section in sections:
        yield section
        yield from _walk(section.parts)


@cache
def _environment() -> Environment:
    """Made once, because it keeps the templates that it compiled; everything that is put into one is escaped."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"unbroken": unbroken, "sentence": sentence_of, "columns": columns}
    return made


def columns(cards: int) -> int:
    """How many cards stand in a row, so that the last row is as full as can be."""
    if cards <= 5:
        return cards
    return min((5, 4, 3), key=lambda columns: (cards % columns == 1, -cards % columns, -columns))


def unbroken(text: str) -> str:
    """The same, with intervals, p-values and odds that no line break divides."""
    return UNBROKEN.sub(lambda found: "\u2060–\u2060" if "–" in found[0] else "\u00a0", text)


def safe_json(value: Any) -> str:
    """JSON that cannot end the script element that holds it, nor be taken for markup."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _css_text(text: str) -> str:
    """A string of a style sheet that holds the text and nothing else: all but letters and digits are escaped."""
    return '"' + "".join(c if c.isascii() and c.isalnum() else f"\\{ord(c):06x}" for c in text[:80]) + '"'


def _payload(slider: Slider, moves: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    """What the slider moves over: numbers as they are, the same numbers as text, and pixels."""
    numbers = {name: values.tolist() for name, values in slider.numbers.items()}
    text: dict[str, list[str]] = {
        "threshold": list(slider.readings),
        "exact": [repr(value) for value in numbers["threshold"]],
    }
    for name, total in zip(("far", "frr"), slider.totals, strict=True):
        limits = zip(numbers[f"{name}_low"], numbers[f"{name}_high"], strict=True)
        text |= {
            name: [percent(value) for value in numbers[name]],
            f"{name}_interval": [span(low, high) for low, high in limits],
            f"{name}_upper": [percent(value) for value in numbers[f"{name}_upper"]],
            f"{name}_errors": [f"{value:,} of {total:,}" for value in numbers[f"{name}_errors"]],
        }
    return {
        "start": slider.start,
        "numbers": numbers,
        "text": text,
        "moves": moves,
        "names": [say("FAR"), say("FRR")],
        "plot": {"left": LEFT, "right": RIGHT, "distance": slider.distance},
    }


def _content_policy(style: str, script: str) -> str:
    """A content security policy under which only this style sheet and this script run, and nothing is fetched."""

    def digest(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    return (
        f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


# Figures as SVG, drawn with classes only: colours, light or dark, come from the style sheet


WIDTH, HEIGHT = 480, 370
LEFT, RIGHT, TOP, BOTTOM = 68, 466, 16, 316
# The left end of a list of intervals.
EDGE = 14
# Heights of a row of a list of intervals (its name, and its interval beneath), and above and beneath all of them.
STEP, HEAD, FOOT = 42, 12, 50
LEGEND = 24
# Lines that the style sheet tells apart.
STYLES = 6
NAME_LENGTH = 40
# Width of a letter of a tick's label.
LETTER = 8.4


def draw(figure: Figure) -> str:
    """The picture, with its title and description."""
    return _rows(figure) if figure.y is None else _plane(figure, figure.y)


def pixels(axis: Axis, values: FloatArray | float, start: float = LEFT, end: float = RIGHT) -> FloatArray:
    """Where values stand, rounded to a tenth."""
    return np.asarray(np.round(start + axis.place(values) * (end - start), 1))


def cursor_moves(figure: Figure) -> dict[str, list[float]]:
    """Pixels of the marker at each place of a slider, by name."""
    across, up = ("x", "left", "right"), ("y", "top", "bottom")
    moves = {name: pixels(figure.x, figure.cursor[name]).tolist() for name in across if name in figure.cursor}
    if figure.y is not None:
        moves |= {
            name: pixels(figure.y, figure.cursor[name], BOTTOM, TOP).tolist() for name in up if name in figure.cursor
        }
    return moves


def _plane(figure: Figure, y: Axis) -> str:
    x = figure.x
    parts = _grid(x, y)
    for band in figure.bands:
        inside = (band.x >= x.low) & (band.x <= x.high)
        edge = pixels(x, band.x[inside])
        upper, lower = (pixels(y, side[inside], BOTTOM, TOP) for side in (band.high, band.low))
        around = _points(np.concatenate([edge, edge[::-1]]), np.concatenate([upper, lower[::-1]]))
        parts.append(f'<polygon class="band" points="{around}"/>')
        parts += [f'<polyline class="limit" points="{_points(edge, side)}"/>' for side in (upper, lower)]
    for bars in figure.bars:
        parts += _bars(figure, bars, y)
    names = []
    for line in figure.lines:
        if line.style == "guide":
            continue
        inside = (line.x >= x.low) & (line.x <= x.high)
        place = _thinned(pixels(x, line.x[inside]), pixels(y, line.y[inside], BOTTOM, TOP))
        style = "naive" if line.style == "dotted" else f"curve s{line.series % STYLES}"
        parts.append(f'<polyline class="{style}" points="{_points(*place)}"/>')
        names += [(style, line.label)] if line.label else []
    for mark in figure.marks:
        if x.holds(mark.x) and y.holds(mark.y):
            at, up = float(pixels(x, mark.x)), float(pixels(y, mark.y, BOTTOM, TOP))
            parts.append(f'<rect class="aim" x="{at - 3.5:.1f}" y="{up - 3.5:.1f}" width="7" height="7"/>')
    parts += _bar_names(figure, y) if figure.bars else _legend(names)
    parts += _cursor(figure)
    return _element(figure, parts, HEIGHT + (12 + LEGEND * len(names) if names else 0))


def _rows(figure: Figure) -> str:
    x, bottom = figure.x, HEAD + STEP * len(figure.rows)
    parts = _ticks(x, EDGE, HEAD, bottom)
    for rule in figure.rules:
        at = float(pixels(x, rule.x, EDGE))
        style = "axis" if rule.style == "zero" else "limit"
        parts.append(f'<line class="{style}" x1="{at}" x2="{at}" y1="{HEAD}" y2="{bottom}"/>')
    for place, row in enumerate(figure.rows):
        base, line = HEAD + STEP * place, HEAD + STEP * place + 28
        low, at, high = (float(pixels(x, value, EDGE)) for value in (row.low, row.estimate, row.high))
        faint = " faint" if row.faint else ""
        beside = f'<tspan class="tick" dx="8">{escape(row.beside)}</tspan>' if row.beside else ""
        name = f'<text class="name{faint}" x="{EDGE}" y="{base + 14}">{escape(_short(row.name))}{beside}</text>'
        parts.append(name)
        parts.append(f'<line class="mark{faint}" x1="{low}" x2="{high}" y1="{line}" y2="{line}"/>')
        parts += [
            f'<line class="mark{faint}" x1="{end}" x2="{end}" y1="{line - 5}" y2="{line + 5}"/>' for end in (low, high)
        ]
        if row.sure:
            parts.append(f'<circle class="dot{faint}" cx="{at}" cy="{line}" r="5.5"/>')
        else:
            parts.append(f'<rect class="aim" x="{at - 4:.1f}" y="{line - 4}" width="8" height="8"/>')
    dashed = next((f"; dashed: {rule.label}" for rule in figure.rules if rule.label), "")
    parts.append(_label(f"{x.label}{dashed}", (EDGE + RIGHT) / 2, bottom + 39))
    return _element(figure, parts, bottom + FOOT)


def _grid(x: Axis, y: Axis) -> list[str]:
    parts = []
    for value, text in y.labelled(0.0, 17.0 / (BOTTOM - TOP)):
        at = float(pixels(y, value, BOTTOM, TOP))
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{at + 4.5:.1f}" text-anchor="end">{escape(text)}</text>')
    parts += [*_ticks(x, LEFT, TOP, BOTTOM), _label(x.label, (LEFT + RIGHT) / 2, HEIGHT - 8)]
    turned = f"translate({13 if y.ticks else 46} {(TOP + BOTTOM) / 2}) rotate(-90)"
    parts.append(f'<text class="label" transform="{turned}" text-anchor="middle">{escape(y.label)}</text>')
    return parts


def _ticks(x: Axis, left: float, top: float, bottom: float) -> list[str]:
    """The horizontal axis, its ticks and a line up from each."""
    parts = []
    for value, text in x.labelled(LETTER / (RIGHT - left)):
        at = float(pixels(x, value, left))
        anchor = 'dx="12" text-anchor="end"' if at > RIGHT - 8 else 'text-anchor="middle"'
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{top}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{at}" y="{bottom + 19}" {anchor}>{escape(text)}</text>')
    return [*parts, f'<line class="axis" x1="{left}" x2="{RIGHT}" y1="{bottom}" y2="{bottom}"/>']


def _label(text: str, x: float, y: float) -> str:
    return f'<text class="label" x="{x}" y="{y}" text-anchor="middle">{escape(text)}</text>'


def _bars(figure: Figure, bars: Bars, y: Axis) -> list[str]:
    """A histogram; the part that errs at the slider's threshold is dark."""
    edges, heights = pixels(figure.x, bars.edges), pixels(y, bars.heights, BOTTOM, TOP)
    kind = ("genuine", "impostor")[bars.series % 2]
    outline = f"M{edges[0]:g} {BOTTOM}" + "".join(f"V{h:g}H{edges[k + 1]:g}" for k, h in enumerate(heights))
    parts = [f'<path class="{kind} area" d="{outline}V{BOTTOM}Z"/>']
    if figure.cursor:
        clip = f"{figure.key}-{'far' if kind == 'impostor' else 'frr'}"
        parts.append(f'<path class="{kind} wrong" clip-path="url(#{clip})" d="{outline}V{BOTTOM}Z"/>')
    parts.append(f'<path class="{kind} line" d="{_line(edges, heights, bars.heights > 0.0)}"/>')
    return parts


def _line(x: FloatArray, y: FloatArray, filled: BoolArray) -> str:
    """The outline where there are scores; nothing runs along the base line where there are none."""
    path, before = [], False
    for k, height in enumerate(y):
        if filled[k]:
            path.append(f"{'' if before else f'M{x[k]:g} {BOTTOM}'}V{height:g}H{x[k + 1]:g}")
        elif before:
            path.append(f"V{BOTTOM}")
        before = bool(filled[k])
    return "".join(path) + (f"V{BOTTOM}" if before else "")


def _bar_names(figure: Figure, y: Axis) -> list[str]:
    """The name of each histogram above its peak, moved apart where the peaks are close."""
    places = []
    for bars in figure.bars:
        k = int(bars.heights.argmax())
        at = float(pixels(figure.x, float(bars.edges[k : k + 2].mean())))
        places.append([at, float(pixels(y, bars.heights[k], BOTTOM, TOP)) - 7.0])
    order = sorted(range(len(places)), key=lambda k: places[k][0])
    if len(order) == 2 and places[order[1]][0] - places[order[0]][0] < 90.0:
        middle = (places[0][0] + places[1][0]) / 2.0
        places[order[0]][0], places[order[1]][0] = middle - 45.0, middle + 45.0
    parts = []
    for bars, (at, up) in zip(figure.bars, places, strict=True):
        kind, x = ("genuine", "impostor")[bars.series % 2], min(max(at, LEFT + 36.0), RIGHT - 36.0)
        place = f'x="{x:.1f}" y="{max(up, TOP + 4.0):.1f}" text-anchor="middle"'
        parts.append(f'<text class="{kind} name" {place}>{escape(bars.label)}</text>')
    return parts


def _legend(names: Sequence[tuple[str, str]]) -> list[str]:
    parts = []
    for place, (style, name) in enumerate(names):
        base = HEIGHT + 8 + LEGEND * place
        parts.append(f'<line class="{style}" x1="{LEFT}" x2="{LEFT + 36}" y1="{base}" y2="{base}"/>')
        parts.append(f'<text class="label" x="{LEFT + 46}" y="{base + 5}">{escape(_short(name))}</text>')
    return parts


def _cursor(figure: Figure) -> list[str]:
    """The marker of a slider: a cross with both intervals, or a line across a histogram."""
    if not figure.cursor:
        return []
    name, at = figure.key, {key: values[figure.start] for key, values in cursor_moves(figure).items()}
    if "y" not in at:
        x = at["x"]
        sides = {"far": (x, RIGHT - x), "frr": (LEFT, x - LEFT)}
        if figure.low_matches:
            sides = {"far": sides["frr"], "frr": sides["far"]}
        clips = "".join(
            f'<clipPath id="{name}-{rate}"><rect id="{name}-{rate}-rect" x="{start:g}" width="{width:.1f}" y="{TOP}" '
            f'height="{BOTTOM - TOP}"/></clipPath>'
            for rate, (start, width) in sides.items()
        )
        line = f'<line class="mark" id="{name}-v" x1="{x}" x2="{x}" y1="{TOP}" y2="{BOTTOM}"/>'
        return [f"<defs>{clips}</defs>", line]
    return [
        f'<line class="mark" id="{name}-h" x1="{at["left"]}" x2="{at["right"]}" y1="{at["y"]}" y2="{at["y"]}"/>',
        f'<line class="mark" id="{name}-v" x1="{at["x"]}" x2="{at["x"]}" y1="{at["top"]}" y2="{at["bottom"]}"/>',
        f'<circle class="dot" id="{name}-dot" cx="{at["x"]}" cy="{at["y"]}" r="5.5"/>',
    ]


def _element(figure: Figure, parts: Sequence[str], height: float) -> str:
    name = escape(figure.key)
    return (
        f'<svg id="{name}" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(figure.title)}</title>'
        f'<desc id="{name}-desc">{escape(figure.description)}</desc>{"".join(parts)}</svg>'
    )


def _short(name: str) -> str:
    return name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"


def _points(x: FloatArray, y: FloatArray) -> str:
    return " ".join(f"{a:g},{b:g}" for a, b in zip(x, y, strict=True))


def _thinned(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Without points that fall on the pixel before them."""
    if x.size < 3:
        return x, y
    moved = np.ones(x.size, dtype=bool)
    cell = np.round(np.stack([x, y]))
    moved[1:-1] = np.any(cell[:, 1:-1] != cell[:, :-2], axis=0)
    return x[moved], y[moved]
