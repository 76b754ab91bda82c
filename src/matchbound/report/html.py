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

from matchbound.arraytypes import FloatArray
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
    parts, height = _rows(figure) if figure.y is None else _plane(figure, figure.y)
    name = escape(figure.key)
    return (
        f'<svg id="{name}" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(figure.title)}</title>'
        f'<desc id="{name}-desc">{escape(figure.description)}</desc>{"".join(parts)}</svg>'
    )


def pixels(axis: Axis, values: FloatArray | float, start: float = LEFT, end: float = RIGHT) -> FloatArray:
    """Where values stand, rounded to a tenth."""
    return np.asarray(np.round(start + axis.place(values) * (end - start), 1))


def cursor_moves(figure: Figure) -> dict[str, list[float]]:
    """Pixels of the marker at each place of a slider, by name."""
    moves = {}
    for axis, names, ends in (
        (figure.x, ("x", "left", "right"), (LEFT, RIGHT)),
        (figure.y, ("y", "top", "bottom"), (BOTTOM, TOP)),
    ):
        for name in names:
            if axis is not None and name in figure.cursor:
                moves[name] = pixels(axis, figure.cursor[name], *ends).tolist()
    return moves


def _plane(figure: Figure, y: Axis) -> tuple[list[str], float]:
    x = figure.x
    parts = _y_ticks(y) + _x_ticks(x, LEFT, TOP, BOTTOM)
    parts.append(_text("label", (LEFT + RIGHT) / 2, HEIGHT - 8, x.label, MIDDLE))
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
    for line in (line for line in figure.lines if line.style != "guide"):
        inside = (line.x >= x.low) & (line.x <= x.high)
        style = "naive" if line.style == "dotted" else f"curve s{line.series % STYLES}"
        points = _points(pixels(x, line.x[inside]), pixels(y, line.y[inside], BOTTOM, TOP))
        parts.append(f'<polyline class="{style}" points="{points}"/>')
        names += [(style, line.label)] if line.label else []
    for mark in figure.marks:
        if x.holds(mark.x) and y.holds(mark.y):
            parts.append(_square(float(pixels(x, mark.x)), float(pixels(y, mark.y, BOTTOM, TOP)), 3.5))
    for place, (style, name) in enumerate(names):
        base = HEIGHT + 8 + LEGEND * place
        parts += [_line(style, LEFT, LEFT + 36, base, base), _text("label", LEFT + 46, base + 5, _short(name))]
    parts += [*_bar_names(figure, y), *_cursor(figure)]
    return parts, HEIGHT + (12 + LEGEND * len(names) if names else 0)


def _rows(figure: Figure) -> tuple[list[str], float]:
    x, bottom = figure.x, HEAD + STEP * len(figure.rows)
    parts = _x_ticks(x, EDGE, HEAD, bottom)
    for rule in figure.rules:
        at = float(pixels(x, rule.x, EDGE))
        parts.append(_line("axis" if rule.style == "zero" else "limit", at, at, HEAD, bottom))
    for place, row in enumerate(figure.rows):
        base, line, faint = HEAD + STEP * place, HEAD + STEP * place + 28, " faint" if row.faint else ""
        low, at, high = (float(pixels(x, value, EDGE)) for value in (row.low, row.estimate, row.high))
        beside = f'<tspan class="tick" dx="8">{escape(row.beside)}</tspan>' if row.beside else ""
        parts.append(_text(f"name{faint}", EDGE, base + 14, _short(row.name), inside=beside))
        parts.append(_line(f"mark{faint}", low, high, line, line))
        parts += [_line(f"mark{faint}", end, end, line - 5, line + 5) for end in (low, high)]
        dot = f'<circle class="dot{faint}" cx="{at}" cy="{line}" r="5.5"/>'
        parts.append(dot if row.sure else _square(at, line, 4.0))
    dashed = next((f"; dashed: {rule.label}" for rule in figure.rules if rule.label), "")
    parts.append(_text("label", (EDGE + RIGHT) / 2, bottom + 39, f"{x.label}{dashed}", MIDDLE))
    return parts, bottom + FOOT


def _y_ticks(y: Axis) -> list[str]:
    """The name of the vertical axis, its ticks and a line across from each."""
    turn = f'transform="translate({13 if y.ticks else 46} {(TOP + BOTTOM) / 2}) rotate(-90)" {MIDDLE}'
    parts = [_text("label", 0, 0, y.label, turn)]
    for value, text in y.labelled(0.0, 17.0 / (BOTTOM - TOP)):
        at = float(pixels(y, value, BOTTOM, TOP))
        parts += [_line("grid", LEFT, RIGHT, at, at), _text("tick", LEFT - 8, at + 4.5, text, 'text-anchor="end"')]
    return parts


def _x_ticks(x: Axis, left: float, top: float, bottom: float) -> list[str]:
    """The horizontal axis, its ticks and a line up from each."""
    parts = [_line("axis", left, RIGHT, bottom, bottom)]
    for value, text in x.labelled(LETTER / (RIGHT - left)):
        at = float(pixels(x, value, left))
        anchor = 'dx="12" text-anchor="end"' if at > RIGHT - 8 else MIDDLE
        parts += [_line("grid", at, at, top, bottom), _text("tick", at, bottom + 19, text, anchor)]
    return parts


def _bars(figure: Figure, bars: Bars, y: Axis) -> list[str]:
    """A histogram; the part that errs at the slider's threshold is dark."""
    edges, heights = pixels(figure.x, bars.edges), pixels(y, bars.heights, BOTTOM, TOP)
    kind = KINDS[bars.series % 2]
    outline = f"M{edges[0]:g} {BOTTOM}" + "".join(f"V{h:g}H{edges[k + 1]:g}" for k, h in enumerate(heights))
    parts = [f'<path class="{kind} area" d="{outline}V{BOTTOM}Z"/>']
    if figure.cursor:
        clip = f"{figure.key}-{'far' if kind == 'impostor' else 'frr'}"
        parts.append(f'<path class="{kind} wrong" clip-path="url(#{clip})" d="{outline}V{BOTTOM}Z"/>')
    path, before = "", False
    for k, filled in enumerate([*(bars.heights > 0.0), False]):  # nothing runs along the base line between scores
        if filled:
            path += f"{'' if before else f'M{edges[k]:g} {BOTTOM}'}V{heights[k]:g}H{edges[k + 1]:g}"
        elif before:
            path += f"V{BOTTOM}"
        before = filled
    return [*parts, f'<path class="{kind} line" d="{path}"/>']


def _bar_names(figure: Figure, y: Axis) -> list[str]:
    """The name of each histogram above its peak: of the left one the end stands there, of the right one the start."""
    peaks = sorted((float(pixels(figure.x, b.edges[int(b.heights.argmax())])), b.series, b) for b in figure.bars)
    parts = []
    for (at, series, bars), (anchor, shift) in zip(peaks, (("end", 24), ("start", -12)), strict=False):
        up = max(float(pixels(y, bars.heights.max(), BOTTOM, TOP)) - 7.0, TOP + 4.0)
        place = min(max(at + shift, LEFT + 70), RIGHT - 70)
        parts.append(_text(f"{KINDS[series % 2]} name", place, up, bars.label, f'text-anchor="{anchor}"'))
    return parts


def _cursor(figure: Figure) -> list[str]:
    """The marker of a slider: a cross with both intervals, or a line across a histogram."""
    if not figure.cursor:
        return []
    name, at = figure.key, {key: values[figure.start] for key, values in cursor_moves(figure).items()}
    x = at["x"]
    if "y" in at:
        return [
            _line("mark", at["left"], at["right"], at["y"], at["y"], f"{name}-h"),
            _line("mark", x, x, at["top"], at["bottom"], f"{name}-v"),
            f'<circle class="dot" id="{name}-dot" cx="{x}" cy="{at["y"]}" r="5.5"/>',
        ]
    sides = [(LEFT, x - LEFT), (x, RIGHT - x)]
    clips = "".join(
        f'<clipPath id="{name}-{rate}"><rect id="{name}-{rate}-rect" x="{start:g}" width="{width:.1f}" y="{TOP}" '
        f'height="{BOTTOM - TOP}"/></clipPath>'
        for rate, (start, width) in zip(("far", "frr"), sides if figure.low_matches else sides[::-1], strict=True)
    )
    return [f"<defs>{clips}</defs>", _line("mark", x, x, TOP, BOTTOM, f"{name}-v")]


MIDDLE = 'text-anchor="middle"'
KINDS = ("genuine", "impostor")


def _line(style: str, x1: float, x2: float, y1: float, y2: float, name: str = "") -> str:
    own = f' id="{name}"' if name else ""
    return f'<line class="{style}"{own} x1="{x1:g}" x2="{x2:g}" y1="{y1:g}" y2="{y2:g}"/>'


def _text(style: str, x: float, y: float, text: str, how: str = "", inside: str = "") -> str:
    return f'<text class="{style}" x="{x:g}" y="{y:g}" {how}>{escape(text)}{inside}</text>'


def _square(x: float, y: float, half: float) -> str:
    return f'<rect class="aim" x="{x - half:g}" y="{y - half:g}" width="{2 * half:g}" height="{2 * half:g}"/>'


def _short(name: str) -> str:
    """A long name without its middle: names of groups often differ in their ends."""
    half = NAME_LENGTH // 2
    return name if len(name) <= NAME_LENGTH else f"{name[:half]}…{name[-half:]}"


def _points(x: FloatArray, y: FloatArray) -> str:
    return " ".join(f"{a:g},{b:g}" for a, b in zip(x, y, strict=True))
