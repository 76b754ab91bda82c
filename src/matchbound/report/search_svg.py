"""Plots of searches as SVG, drawn with classes only: colours come from the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.report.old_svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, Scale, linear, svg_element
from matchbound.show.numbers import target_text


def _log(values: FloatArray) -> FloatArray:
    result: FloatArray = np.log10(values)
    return result


def band_svg(
    name: str,
    title: str,
    told: str,
    x: FloatArray,
    estimate: FloatArray,
    low: FloatArray,
    high: FloatArray,
    labels: tuple[str, str],
    *,
    log_y: bool = True,
    counts: bool = False,
    other: FloatArray | None = None,
) -> str:
    """A curve with its band; x is logarithmic.

    counts
        Whether x holds whole numbers, such as ranks or people, and not rates.
    other
        A second curve, without a band.
    """
    floor = 10.0 ** np.floor(np.log10(max(float(estimate[estimate > 0.0].min(initial=0.1)) / 3.0, 1e-9)))
    bottom = float(floor) if log_y else float(np.floor(20.0 * max(float(low.min()) - 0.02, 0.0)) / 20.0)
    across = Scale(_log, float(x[0]), float(x[-1]) * (1.0 if x[-1] > x[0] else 1.1), LEFT, RIGHT)
    up = Scale(_log if log_y else linear, bottom, 1.0, BOTTOM, TOP)
    parts = [*_grid(across, _decades(across, counts), counts, True), *_grid(up, _y_ticks(bottom, log_y), False, False)]
    parts += _names(labels)
    edge = across(x)
    over, under = up(high), up(low)
    around = _points(np.concatenate([edge, edge[::-1]]), np.concatenate([over, under[::-1]]))
    parts.append(f'<polygon class="band" points="{around}"/>')
    parts += [f'<polyline class="limit" points="{_points(edge, side)}"/>' for side in (over, under)]
    if other is not None:
        parts.append(f'<polyline class="naive" points="{_points(edge, up(other))}"/>')
    parts.append(f'<polyline class="curve" points="{_points(edge, up(estimate))}"/>')
    return svg_element(name, title, told, parts)


def _decades(scale: Scale, counts: bool) -> list[float]:
    leads = (1.0, 2.0, 5.0) if scale.high / scale.low < 300.0 else (1.0,)
    ticks = [lead * 10.0**power for power in range(-9, 10) for lead in leads]
    inside = [tick for tick in ticks if scale.low * 0.999 <= tick <= scale.high * 1.001]
    return [tick for tick in inside if not counts or tick >= 1.0]


def _y_ticks(bottom: float, log_y: bool) -> list[float]:
    if log_y:
        return [10.0**power for power in range(round(np.log10(bottom)), 1)]
    return [float(value) for value in np.linspace(bottom, 1.0, 5)]


def _grid(scale: Scale, ticks: Sequence[float], counts: bool, across: bool) -> list[str]:
    parts = []
    for value in ticks:
        at = float(scale(value))
        text = escape(f"{value:,.0f}" if counts else target_text(value))
        if across:
            parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{TOP}" y2="{BOTTOM}"/>')
            parts.append(f'<text class="tick" x="{at}" y="{BOTTOM + 19}" text-anchor="middle">{text}</text>')
        else:
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{at}" y2="{at}"/>')
            parts.append(f'<text class="tick" x="{LEFT - 8}" y="{at + 4.5:.1f}" text-anchor="end">{text}</text>')
    return parts


def _names(labels: tuple[str, str]) -> list[str]:
    middle, centre = (LEFT + RIGHT) / 2, (TOP + BOTTOM) / 2
    return [
        f'<line class="axis" x1="{LEFT}" x2="{RIGHT}" y1="{BOTTOM}" y2="{BOTTOM}"/>',
        f'<text class="label" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(labels[0])}</text>',
        f'<text class="label" transform="translate(13 {centre}) rotate(-90)" text-anchor="middle">'
        f"{escape(labels[1])}</text>",
    ]


def _points(x: FloatArray, y: FloatArray) -> str:
    return " ".join(f"{a:g},{b:g}" for a, b in zip(x, y, strict=True))
