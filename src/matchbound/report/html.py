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

from matchbound.errors import MissingExtraError
from matchbound.report import svg
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
        payload = _payload(slider, {figure.key: svg.cursor_moves(figure) for figure in moving})
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
            draw=lambda figure: Markup(svg.draw(figure)),
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
        "plot": {"left": svg.LEFT, "right": svg.RIGHT, "distance": slider.distance},
    }


def _content_policy(style: str, script: str) -> str:
    """A content security policy under which only this style sheet and this script run, and nothing is fetched."""

    def digest(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    return (
        f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
