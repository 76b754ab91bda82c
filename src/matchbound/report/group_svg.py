"""Rates of groups as intervals on a line, in SVG; colours come from the style sheet."""

from __future__ import annotations

from html import escape

from matchbound.report.old_svg import RIGHT, Scale, even_ticks, linear, svg_element
from matchbound.report.page import GroupSection
from matchbound.show.numbers import level_text, percent, span

LEFT = 14
STEP = 42
"""Height of a group: its name, and its interval beneath."""
HEAD, FOOT = 12, 50
MOST = 20
NAME_LENGTH = 34


def groups_svg(section: GroupSection, metric: str, level: float) -> str:
    """FAR or FRR of each group with its interval; a dashed line is the rate of all data."""
    rows = [(row.name, getattr(row, metric)) for row in section.rows if getattr(row, metric) is not None]
    if len(rows) > MOST:
        rows = sorted(rows, key=lambda row: -row[1].estimate)[:MOST]
    overall = section.overall[0 if metric == "far" else 1]
    most = max([overall, *(claim.high for _, claim in rows)]) or 1e-6
    x = Scale(linear, 0.0, 105.0 * most, LEFT, RIGHT)
    bottom = HEAD + STEP * len(rows)
    parts = []
    for value in even_ticks(0.0, x.high, 5):
        at = float(x(value))
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{HEAD}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{at}" y="{bottom + 18}" text-anchor="middle">{value:.6g}%</text>')
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{RIGHT}" y1="{bottom}" y2="{bottom}"/>')
    zero = float(x(100.0 * overall))
    parts.append(f'<line class="limit" x1="{zero}" x2="{zero}" y1="{HEAD}" y2="{bottom}"/>')
    for place, (name, claim) in enumerate(rows):
        base = HEAD + STEP * place
        low, high, at = (float(x(100.0 * value)) for value in (claim.low, claim.high, claim.estimate))
        short = name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"
        parts.append(f'<text class="name" x="{LEFT}" y="{base + 14}">{escape(short)}</text>')
        parts.append(f'<line class="mark" x1="{low}" x2="{high}" y1="{base + 28}" y2="{base + 28}"/>')
        for end in (low, high):
            parts.append(f'<line class="mark" x1="{end}" x2="{end}" y1="{base + 23}" y2="{base + 33}"/>')
        parts.append(f'<circle class="dot" cx="{at}" cy="{base + 28}" r="5.5"/>')
    label = f"{metric.upper()}, dashed: all data, {percent(overall)}"
    middle = (LEFT + RIGHT) / 2
    parts.append(f'<text class="label" x="{middle}" y="{bottom + 39}" text-anchor="middle">{escape(label)}</text>')
    told = "; ".join(f"{name}: {percent(claim.estimate)}, {span(claim.low, claim.high)}" for name, claim in rows)
    title = f"{metric.upper()} by group"
    return svg_element(f"groups-{metric}", title, f"With {level_text(level)} intervals. {told}.", parts, bottom + FOOT)
