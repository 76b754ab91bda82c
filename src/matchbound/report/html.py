"""A report as one self-contained page: styles, script, plots and data are inside, and nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
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
    templates = _of_report()
    from markupsafe import Markup

    sections = list(_walk(document.sections))
    slider = next((section.slider for section in sections if section.slider is not None), None)
    moving = [figure for section in sections for figure in section.figures if figure.cursor]
    style = (HERE / "style.css").read_text("utf-8").replace('"RUNNING"', _css_text(document.running or document.title))
    script = (HERE / "report.js").read_text("utf-8") if slider is not None else ""
    payload = None
    if slider is not None:
        payload = _payload(slider, {figure.key: cursor_moves(figure) for figure in moving})
    return templates.get_template("report.html.j2").render(
        document=document,
        policy=_content_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        payload=None if payload is None else Markup(safe_json(payload)),
        shown={} if payload is None else {key: values[payload["start"]] for key, values in payload["text"].items()},
    )


def _walk(sections: Sequence[Section]) -> Iterator[Section]:
    for section in sections:
        yield section
        yield from _walk(section.parts)


def environment(folder: Path) -> Environment:
    """Templates of a folder; everything that is put into one is escaped."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError("a page needs jinja2; install matchbound[report]") from None
    loader, undefined = jinja2.FileSystemLoader(folder), jinja2.StrictUndefined
    return jinja2.Environment(loader=loader, autoescape=True, undefined=undefined, trim_blocks=True, lstrip_blocks=True)


@cache
def _of_report() -> Environment:
    """Made once, because it keeps the templates that it compiled."""
    made = environment(HERE)
    from markupsafe import Markup

    made.filters |= {
        **{"unbroken": unbroken, "sentence": sentence_of, "columns": columns, "shortened": shortened},
        "short": "{:g}".format,
        "px": lambda value, axis, left=LEFT: float(pixels(axis, value, left)),
        "py": lambda value, axis: float(pixels(axis, value, BOTTOM, TOP)),
        "style": lambda line: "naive" if line.style == "dotted" else f"curve s{line.series % STYLES}",
    }
    made.globals |= {**LAYOUT, "trace": trace, "bar_paths": bar_paths, "bar_names": bar_names}
    made.globals |= {
        "marker_at": lambda figure: {name: at[figure.start] for name, at in cursor_moves(figure).items()},
        **{"draw": lambda figure: Markup(draw(figure)), "marks": MARKS, "say": say, "level_text": level_text},
    }
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


# Figures as SVG: `figure.svg.j2` draws them


WIDTH, HEIGHT = 480, 370
LEFT, RIGHT, TOP, BOTTOM = 68, 466, 16, 316
# Lines that the style sheet tells apart.
STYLES = 6
NAME_LENGTH = 40
KINDS = ("genuine", "impostor")
LAYOUT = {
    **{"WIDTH": WIDTH, "HEIGHT": HEIGHT, "LEFT": LEFT, "RIGHT": RIGHT, "TOP": TOP, "BOTTOM": BOTTOM, "KINDS": KINDS},
    # The left end of a list of intervals; heights of a row of it (its name, and its interval beneath), and above and
    # beneath all of them; the height of a line of a legend; the width of a letter of a tick's label.
    **{"EDGE": 14, "STEP": 42, "HEAD": 12, "FOOT": 50, "LEGEND": 24, "LETTER": 8.4},
}


def draw(figure: Figure) -> str:
    """The picture, with its title and description."""
    return str(getattr(_of_report().get_template("figure.svg.j2").module, "picture")(figure))  # noqa: B009


def pixels(axis: Axis, values: FloatArray | float, start: float = LEFT, end: float = RIGHT) -> FloatArray:
    """Where values stand, rounded to a tenth."""
    return np.asarray(np.round(start + axis.place(values) * (end - start), 1))


def cursor_moves(figure: Figure) -> dict[str, list[float]]:
    """Pixels of the marker at each place of a slider, by name."""
    ends = {"x": (LEFT, RIGHT), "y": (BOTTOM, TOP)}
    sides = {"x": ("x", "left", "right"), "y": ("y", "top", "bottom")}
    moves = {}
    for side, names in sides.items():
        for name in (name for name in names if name in figure.cursor):
            moves[name] = pixels(getattr(figure, side), figure.cursor[name], *ends[side]).tolist()
    return moves


def trace(figure: Figure, x: FloatArray, *sides: FloatArray) -> str:
    """Points of a curve within the ends of the axis; with two sides, around the area between them."""
    assert figure.y is not None
    inside = (x >= figure.x.low) & (x <= figure.x.high)
    across = pixels(figure.x, x[inside])
    ups = [pixels(figure.y, side[inside], BOTTOM, TOP) for side in sides]
    corners = [(across, ups[0]), *((across[::-1], up[::-1]) for up in ups[1:])]
    return " ".join(f"{a:g},{b:g}" for xs, ys in corners for a, b in zip(xs, ys, strict=True))


def bar_paths(figure: Figure, bars: Bars) -> tuple[str, str]:
    """The outline of a histogram, and the line on top of it, which does not run along the base between scores."""
    assert figure.y is not None
    edges, heights = pixels(figure.x, bars.edges), pixels(figure.y, bars.heights, BOTTOM, TOP)
    steps = [f"V{height:g}H{end:g}" for height, end in zip(heights, edges[1:], strict=True)]
    line, before = "", False
    for k, filled in enumerate([*(bars.heights > 0.0), False]):
        if filled:
            line += f"{'' if before else f'M{edges[k]:g} {BOTTOM}'}{steps[k]}"
        elif before:
            line += f"V{BOTTOM}"
        before = filled
    return f"M{edges[0]:g} {BOTTOM}{''.join(steps)}V{BOTTOM}Z", line


def bar_names(figure: Figure) -> list[tuple[str, float, float, str, str]]:
    """Kind, place and name of each histogram, above its peak: of the left one the end, of the right one the start."""
    peaks = sorted((float(pixels(figure.x, b.edges[int(b.heights.argmax())])), b.series, b) for b in figure.bars)
    names = []
    for (at, series, bars), (anchor, shift) in zip(peaks, (("end", 24), ("start", -12)), strict=False):
        up = max(float(pixels(figure.y, bars.heights.max(), BOTTOM, TOP)) - 7.0, TOP + 4.0) if figure.y else 0.0
        names.append((KINDS[series % 2], min(max(at + shift, LEFT + 70), RIGHT - 70), up, bars.label, anchor))
    return names


def shortened(name: str) -> str:
    """A long name without its middle: names of groups often differ in their ends."""
    half = NAME_LENGTH // 2
    return name if len(name) <= NAME_LENGTH else f"{name[:half]}…{name[-half:]}"
