"""Differences between systems as intervals on a line, in SVG; colours come from the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from matchbound.report.old_svg import RIGHT, Scale, even_ticks, linear, svg_element
from matchbound.report.systems import SystemRow, SystemsSection
from matchbound.report.systems_words import metric_name, place_name, points_span, row_name
from matchbound.show.numbers import MINUS, level_text, points

LEFT = 14
STEP = 46
"""Height of a row: its name, and its interval beneath."""
HEAD, FOOT = 30, 50
MOST_ROWS = 15
NAME_LENGTH = 20


def forest_svg(section: SystemsSection, level: float) -> str:
    """The differences A − B with their intervals; FRR and FAR on axes of their own.

    Of two systems, every row; of more, the pairs at the operating point of the verdict.
    """
    two = section.n_pairs == 1
    rows = section.rows if two else section.focus_rows
    accepts = [row for row in rows if row.metric == "far"]
    others = [row for row in rows if row.metric != "far"]
    if len(others) > MOST_ROWS:
        others = sorted(others, key=lambda row: -abs(row.estimate))[:MOST_ROWS]
    parts: list[str] = []
    top = 0.0
    for panel in (others, accepts):
        if panel:
            drawn, height = _panel(panel, top, two)
            parts += drawn
            top += height
    title = "Differences between the systems"
    if not two:
        title = f"Differences of {metric_name(rows[0])} at {place_name(rows[0])}"
    told = "; ".join(
        f"{_name(row, two)}: {points(row.estimate)}, {points_span(row)} points" for row in others + accepts
    )
    described = f"A minus B with {level_text(level)} intervals. {told}."
    return svg_element("forest", title, described, parts, round(top))


def _name(row: SystemRow, two: bool) -> str:
    return row_name(row) if two else f"{_short(row.a)} − {_short(row.b)}"


def _short(name: str) -> str:
    return name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"


def _panel(rows: Sequence[SystemRow], top: float, two: bool) -> tuple[list[str], float]:
    """Some rows over an axis of their own, and their height."""
    low, high = min(0.0, *(row.low for row in rows)), max(0.0, *(row.high for row in rows))
    pad = 0.05 * (high - low) or 1e-6
    x = Scale(linear, 100.0 * (low - pad), 100.0 * (high + pad), LEFT, RIGHT)
    bottom = top + HEAD + STEP * len(rows)
    zero = float(x(0.0))
    parts = []
    for value in even_ticks(x.low, x.high, 6):
        at = float(x(value))
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{top + HEAD - 6}" y2="{bottom}"/>')
        text = f"{value:.6g}".replace("-", MINUS) if abs(value) > 1e-12 else "0"
        parts.append(f'<text class="tick" x="{at}" y="{bottom + 18}" text-anchor="middle">{text}</text>')
    parts.append(f'<line class="axis" x1="{zero}" x2="{zero}" y1="{top + HEAD - 6}" y2="{bottom}"/>')
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{RIGHT}" y1="{bottom}" y2="{bottom}"/>')
    for side, text, at, anchor in (("A", "← A has fewer", LEFT, "start"), ("B", "B has fewer →", RIGHT, "end")):
        room = zero - LEFT if side == "A" else RIGHT - zero
        if room > 105.0:
            parts.append(f'<text class="tick" x="{at}" y="{top + 14}" text-anchor="{anchor}">{text}</text>')
    for place, row in enumerate(rows):
        base = top + HEAD + STEP * place
        parts += _row(row, x, base, _name(row, two))
    what = "FAR" if rows[0].metric == "far" else ("FRR and EER" if two else metric_name(rows[0]))
    label = f"{what}: A − B, percentage points"
    middle = (LEFT + RIGHT) / 2
    parts.append(f'<text class="label" x="{middle}" y="{bottom + 39}" text-anchor="middle">{label}</text>')
    return parts, HEAD + STEP * len(rows) + FOOT


def _row(row: SystemRow, x: Scale, base: float, name: str) -> list[str]:
    """The name, and beneath it the interval with its estimate: filled where 0 is outside, hollow where it is not."""
    line = base + 28
    low, high, at = (float(x(100.0 * value)) for value in (row.low, row.high, row.estimate))
    parts = [
        f'<text class="name" x="{LEFT}" y="{base + 13}">{escape(name)}</text>',
        f'<line class="mark" x1="{low}" x2="{high}" y1="{line}" y2="{line}"/>',
    ]
    parts += [f'<line class="mark" x1="{end}" x2="{end}" y1="{line - 5}" y2="{line + 5}"/>' for end in (low, high)]
    if row.differs:
        parts.append(f'<circle class="dot" cx="{at}" cy="{line}" r="5.5"/>')
    else:
        parts.append(f'<rect class="aim" x="{at - 4:.1f}" y="{line - 4}" width="8" height="8"/>')
    return parts
