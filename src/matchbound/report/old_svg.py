"""The report's plots as SVG, drawn with classes only: colours, light or dark, come from the style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray
from matchbound.report.page import CurvePicture, Panel, Report
from matchbound.show.numbers import level_text, percent, target_text

WIDTH, HEIGHT = 480, 370
LEFT, RIGHT, TOP, BOTTOM = 68, 466, 16, 316
PROBIT_TICKS = (
    *(lead * 10.0**power for power in range(-9, -2) for lead in (1,)),
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999),
)

Transform = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Scale:
    """From values to pixels, through a transform; values beyond the ends are put on them."""

    transform: Transform
    low: float
    high: float
    start: float
    end: float

    def __call__(self, values: FloatArray | float) -> FloatArray:
        """Pixels, rounded to a tenth, shape of the values."""
        kept = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        ends = self.transform(np.array([self.low, self.high]))
        share = (self.transform(kept) - ends[0]) / (ends[1] - ends[0])
        pixels: FloatArray = np.round(self.start + share * (self.end - self.start), 1)
        return pixels


@dataclass(frozen=True)
class Drawing:
    """A plot and where its marker stands at each point of the panel.

    svg
        The element.
    moves
        Pixels by name, each a list of P numbers.
    """

    svg: str
    moves: dict[str, list[float]] = field(repr=False)


def roc_drawing(report: Report) -> Drawing:
    """1 − FRR against FAR on a logarithmic axis."""
    picture = report.picture
    low = lowest_far(picture)
    x = Scale(np.log10, low, 1.0, LEFT, RIGHT)
    shown = picture.far >= low
    worst = max(float(picture.frr[shown].max(initial=0.0)), float(picture.band_high.max(initial=0.0)))
    floor = max(math.floor((1.0 - worst) * 10.0 - 1e-9) / 10.0, 0.0)
    y = Scale(linear, min(floor, 0.9), 1.0, BOTTOM, TOP)
    decades = [10.0**k for k in range(round(math.log10(low)), 1)]
    step = -(-len(decades) // 6)
    xticks = [(value, target_text(value)) for value in decades[::-1][::step]]
    yticks = [(value, target_text(round(value, 9))) for value in even_ticks(y.low, y.high, 5)]
    return _curve(
        report, x, y, xticks, yticks, "roc", "FAR (logarithmic)", f"1 {chr(0x2212)} FRR", lambda frr: 1.0 - frr
    )


def det_drawing(report: Report) -> Drawing:
    """FRR against FAR, both on probit axes."""
    from scipy.special import ndtri

    picture = report.picture
    low = lowest_far(picture)
    x = Scale(ndtri, low, 0.5, LEFT, RIGHT)
    shown = (picture.far >= low) & (picture.far <= 0.5)
    drawn = np.concatenate([picture.frr[shown], picture.band_low, picture.band_high])
    floor = 0.3 / report.panel.frr.comparisons
    least = max(10.0 ** math.floor(math.log10(max(float(drawn[drawn > 0.0].min(initial=0.05)), floor))), 1e-7)
    worst = max(float(picture.frr[shown].max(initial=0.0)), 0.4)
    y = Scale(ndtri, min(least, 0.05), min(max(worst, 0.5), 0.99), BOTTOM, TOP)
    return _curve(
        report,
        x,
        y,
        probit_ticks(x, 58.0),
        probit_ticks(y, 26.0),
        "det",
        "FAR (probit)",
        "FRR (probit)",
        lambda frr: frr,
    )


def scores_drawing(report: Report) -> Drawing:
    """Histograms of genuine and impostor scores, each with area 1."""
    histogram, panel = report.histogram, report.panel
    edges = histogram.edges
    width = np.diff(edges)
    x = Scale(linear, float(edges[0]), float(edges[-1]), LEFT, RIGHT)
    heights = {}
    for name, counts in (("genuine", histogram.genuine), ("impostor", histogram.impostor)):
        heights[name] = counts / max(int(counts.sum()), 1) / width
    top = max(float(height.max(initial=0.0)) for height in heights.values()) or 1.0
    y = Scale(linear, 0.0, 1.12 * top, BOTTOM, TOP)
    parts = [_clips("scores")]
    parts += plot_axes(
        x, y, [(v, f"{v:.3g}") for v in even_ticks(x.low, x.high, 6)], [], "Score", "Share of comparisons"
    )
    for name, height in heights.items():
        error = "far" if name == "impostor" else "frr"
        outline = _steps(x(edges), y(height))
        parts.append(f'<path class="{name} area" d="{outline}Z"/>')
        parts.append(f'<path class="{name} wrong" clip-path="url(#scores-{error})" d="{outline}Z"/>')
        parts.append(f'<path class="{name} line" d="{_line(x(edges), y(height), height > 0.0)}"/>')
    at = x(panel.thresholds)
    here = at[panel.start]
    parts.append(f'<line class="mark" id="scores-v" x1="{here}" x2="{here}" y1="{TOP}" y2="{BOTTOM}"/>')
    parts += _peak_names(x, y, edges, heights)
    told = (
        f"Histogram of scores from {edges[0]:.4g} to {edges[-1]:.4g}: {panel.frr.comparisons:,} genuine and "
        f"{panel.far.comparisons:,} impostor comparisons. A line marks the threshold."
    )
    svg = svg_element("scores", "Scores of genuine and impostor comparisons", told, parts)
    return Drawing(_with_clips(svg, float(here), report.description.distance), {"x": at.tolist()})


def _curve(
    report: Report,
    x: Scale,
    y: Scale,
    xticks: Sequence[tuple[float, str]],
    yticks: Sequence[tuple[float, str]],
    name: str,
    xlabel: str,
    ylabel: str,
    of_frr: Transform,
) -> Drawing:
    picture, panel = report.picture, report.panel
    inside = picture.band_far >= x.low
    edge = x(picture.band_far[inside])
    upper, lower = y(of_frr(picture.band_high[inside])), y(of_frr(picture.band_low[inside]))
    shown = (picture.far >= x.low) & (picture.far <= x.high)
    line = thinned(x(picture.far[shown]), y(of_frr(picture.frr[shown])))
    around = polyline(np.concatenate([edge, edge[::-1]]), np.concatenate([upper, lower[::-1]]))
    parts = plot_axes(x, y, xticks, yticks, xlabel, ylabel)
    parts.append(f'<polygon class="band" points="{around}"/>')
    parts += [f'<polyline class="limit" points="{polyline(edge, side)}"/>' for side in (upper, lower)]
    parts.append(f'<polyline class="curve" points="{polyline(*line)}"/>')
    for point in report.points:
        shown_y = float(of_frr(np.array(point.frr.estimate)))
        if not (x.low <= point.far.estimate <= x.high and y.low <= shown_y <= y.high):
            continue
        px, py = float(x(point.far.estimate)), float(y(of_frr(np.array(point.frr.estimate))))
        parts.append(f'<rect class="aim" x="{px - 3.5:.1f}" y="{py - 3.5:.1f}" width="7" height="7"/>')
    moves = _marker_moves(panel, x, y, of_frr)
    parts += _marker(name, moves, panel.start)
    a, b = panel.far.estimate, panel.frr.estimate
    told = (
        f"FAR from {target_text(x.low)} to {target_text(x.high)}, with a {level_text(report.level)} pointwise band. "
        f"The marker begins at FAR {percent(float(a[panel.start]))}, FRR {percent(float(b[panel.start]))}."
    )
    title = "ROC curve" if name == "roc" else "DET curve"
    return Drawing(svg_element(name, title, told, parts), moves)


def _marker_moves(
    panel: Panel, x: Scale, y: Scale, of_frr: Callable[[FloatArray], FloatArray]
) -> dict[str, list[float]]:
    return {
        "x": x(panel.far.estimate).tolist(),
        "left": x(panel.far.low).tolist(),
        "right": x(panel.far.high).tolist(),
        "y": y(of_frr(panel.frr.estimate)).tolist(),
        "top": y(of_frr(panel.frr.high)).tolist(),
        "bottom": y(of_frr(panel.frr.low)).tolist(),
    }


def _marker(name: str, moves: dict[str, list[float]], k: int) -> list[str]:
    at = {key: values[k] for key, values in moves.items()}
    return [
        f'<line class="mark" id="{name}-h" x1="{at["left"]}" x2="{at["right"]}" y1="{at["y"]}" y2="{at["y"]}"/>',
        f'<line class="mark" id="{name}-v" x1="{at["x"]}" x2="{at["x"]}" y1="{at["top"]}" y2="{at["bottom"]}"/>',
        f'<circle class="dot" id="{name}-dot" cx="{at["x"]}" cy="{at["y"]}" r="5.5"/>',
    ]


def plot_axes(
    x: Scale,
    y: Scale,
    xticks: Sequence[tuple[float, str]],
    yticks: Sequence[tuple[float, str]],
    xlabel: str,
    ylabel: str,
) -> list[str]:
    parts = []
    for value, text in xticks:
        at = float(x(value))
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{TOP}" y2="{BOTTOM}"/>')
        anchor = 'dx="12" text-anchor="end"' if at > RIGHT - 8 else 'text-anchor="middle"'
        parts.append(f'<text class="tick" x="{at}" y="{BOTTOM + 19}" {anchor}>{escape(text)}</text>')
    for value, text in yticks:
        at = float(y(value))
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{at + 4.5:.1f}" text-anchor="end">{escape(text)}</text>')
    middle, centre = (LEFT + RIGHT) / 2, (TOP + BOTTOM) / 2
    side = 13 if yticks else 46
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{RIGHT}" y1="{BOTTOM}" y2="{BOTTOM}"/>')
    parts.append(f'<text class="label" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(xlabel)}</text>')
    parts.append(
        f'<text class="label" transform="translate({side} {centre}) rotate(-90)" text-anchor="middle">'
        f"{escape(ylabel)}</text>"
    )
    return parts


def svg_element(name: str, title: str, told: str, parts: Sequence[str], height: int = HEIGHT) -> str:
    """A picture with its title and description."""
    return (
        f'<svg id="{name}" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(told)}</desc>'
        f"{''.join(parts)}</svg>"
    )


def _clips(name: str) -> str:
    """Where errors lie: impostors on the side that matches, genuine ones on the other; moved with the threshold."""
    rect = f'<rect id="{name}-{{0}}-rect" y="{TOP}" height="{BOTTOM - TOP}" {{0}}-place/>'
    made = "".join(f'<clipPath id="{name}-{rate}">{rect.format(rate)}</clipPath>' for rate in ("far", "frr"))
    return f"<defs>{made}</defs>"


def _with_clips(svg: str, at: float, distance: bool) -> str:
    before, after = f'x="{LEFT}" width="{at - LEFT:.1f}"', f'x="{at}" width="{RIGHT - at:.1f}"'
    far, frr = (before, after) if distance else (after, before)
    return svg.replace("far-place", far).replace("frr-place", frr)


def _peak_names(x: Scale, y: Scale, edges: FloatArray, heights: dict[str, FloatArray]) -> list[str]:
    """The name of each histogram above its peak, moved apart where the peaks are close."""
    centre = (edges[1:] + edges[:-1]) / 2.0
    places = {}
    for name, height in heights.items():
        k = int(height.argmax())
        places[name] = [float(x(centre[k])), float(y(height[k])) - 7.0]
    first, second = sorted(places, key=lambda name: places[name][0])
    if places[second][0] - places[first][0] < 90.0:
        middle = (places[first][0] + places[second][0]) / 2.0
        places[first][0], places[second][0] = middle - 45.0, middle + 45.0
    parts = []
    for name, (px, py) in places.items():
        px = min(max(px, LEFT + 36.0), RIGHT - 36.0)
        parts.append(
            f'<text class="{name} name" x="{px:.1f}" y="{max(py, TOP + 4.0):.1f}" text-anchor="middle">{name}</text>'
        )
    return parts


def _steps(x: FloatArray, y: FloatArray) -> str:
    """The outline of a histogram, from the base line and back to it."""
    path = [f"M{x[0]:g} {BOTTOM}"]
    for k, height in enumerate(y):
        path.append(f"V{height:g}H{x[k + 1]:g}")
    return "".join(path) + f"V{BOTTOM}"


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


def polyline(x: FloatArray, y: FloatArray) -> str:
    return " ".join(f"{a:g},{b:g}" for a, b in zip(x, y, strict=True))


def thinned(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Without points that fall on the pixel before them or in the middle of a straight stretch."""
    if x.size < 3:
        return x, y
    moved = np.ones(x.size, dtype=bool)
    cell = np.round(np.stack([x, y]))
    moved[1:-1] = np.any(cell[:, 1:-1] != cell[:, :-2], axis=0)
    return x[moved], y[moved]


def lowest_far(picture: CurvePicture) -> float:
    """The decade in which the band begins."""
    first = float(picture.band_far[0]) if picture.band_far.size else 1e-3
    return float(10.0 ** math.floor(math.log10(min(max(first, 1e-9), 0.05)) + 1e-9))


def linear(values: FloatArray) -> FloatArray:
    """The values themselves."""
    return values


def even_ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers between two, about so many."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * lead for lead in (1, 2, 2.5, 5, 10) if power * lead >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def probit_ticks(scale: Scale, apart: float) -> list[tuple[float, str]]:
    ticks: list[tuple[float, str]] = []
    at = None
    for value in PROBIT_TICKS:
        if not scale.low * 0.999 <= value <= scale.high * 1.001:
            continue
        pixel = float(scale(value))
        if at is None or abs(pixel - at) >= apart:
            ticks.append((value, target_text(value)))
            at = pixel
    return ticks
