"""The curves of all systems in one DET plot, in SVG; colours and dashes come from the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from matchbound.report.old_svg import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Scale,
    plot_axes,
    polyline,
    probit_ticks,
    svg_element,
    thinned,
)
from matchbound.report.systems import SystemCurve
from matchbound.show.numbers import percent, target_text

STYLES = 6
"""Lines that the style sheet tells apart."""
LEGEND = 24
NAME_LENGTH = 34
HEIGHT = 370


def systems_det(curves: Sequence[SystemCurve]) -> str:
    """FRR against FAR of every system, both on probit axes, with a legend that names their EER."""
    from scipy.special import ndtri

    low = min(max(min(float(c.far[c.far > 0.0].min(initial=0.05)) for c in curves), 1e-9), 0.05)
    low = float(10.0 ** np.floor(np.log10(low) + 1e-9))
    drawn = np.concatenate([c.frr[(c.far >= low) & (c.far <= 0.5)] for c in curves])
    least = float(drawn[drawn > 0.0].min(initial=0.05))
    y_low = float(10.0 ** np.floor(np.log10(max(least, 1e-7)) + 1e-9))
    x = Scale(ndtri, low, 0.5, LEFT, RIGHT)
    y = Scale(ndtri, min(y_low, 0.05), min(max(float(drawn.max(initial=0.5)), 0.5), 0.99), BOTTOM, TOP)
    parts = plot_axes(x, y, probit_ticks(x, 58.0), probit_ticks(y, 26.0), "FAR (probit)", "FRR (probit)")
    told = []
    for place, curve in enumerate(curves):
        shown = (curve.far >= x.low) & (curve.far <= x.high)
        line = thinned(x(curve.far[shown]), y(curve.frr[shown]))
        style = f"curve s{place % STYLES}"
        parts.append(f'<polyline class="{style}" points="{polyline(*line)}"/>')
        base = HEIGHT + 8 + LEGEND * place
        name = curve.name if len(curve.name) <= NAME_LENGTH else f"{curve.name[: NAME_LENGTH - 1]}…"
        parts.append(f'<line class="{style}" x1="{LEFT}" x2="{LEFT + 36}" y1="{base}" y2="{base}"/>')
        said = escape(f"{name}, EER {percent(curve.eer)}")
        parts.append(f'<text class="label" x="{LEFT + 46}" y="{base + 5}">{said}</text>')
        told.append(f"{curve.name}: EER {percent(curve.eer)}")
    described = f"FAR from {target_text(low)} to 50%. {'; '.join(told)}."
    return svg_element("systems-det", "DET curves of all systems", described, parts, HEIGHT + 12 + LEGEND * len(curves))
