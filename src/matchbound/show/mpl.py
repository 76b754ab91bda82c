"""Figures drawn by matplotlib, which is imported at use.

Sizes are chosen to stay readable in a paper column (3.4 inches). Without `ax` a new figure is made through pyplot, so
that a notebook shows it by itself; ``ax.figure.savefig(...)`` writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import MissingExtraError
from matchbound.show.figure import Axis, Figure, Line
from matchbound.show.numbers import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMN = (3.4, 2.9)
SMALL = 8.0
BLUE, ORANGE, GREY = "#0b5cad", "#c4500a", "#666666"
CYCLE = (BLUE, ORANGE, "#117a5b", "#8c3f97", "#4d4d4d", "#b8860b")
"""Colours that people with colour-blindness tell apart, and each with a marker and a line of its own."""
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1)), (0, (8, 2)))


def new_axes(size: tuple[float, float] = COLUMN, *, pyplot: bool = True) -> Axes:
    """Axes of a new figure; through pyplot, so that notebooks show it, or of a figure that nothing else knows of."""
    try:
        if pyplot:
            import matplotlib.pyplot as plt

            return plt.subplots(figsize=size, dpi=150, layout="constrained")[1]
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise MissingExtraError("plots need matplotlib: install matchbound[plots]") from error
    return Canvas(figsize=size, dpi=150, layout="constrained").subplots()


def draw_panels(figures: Sequence[Figure]) -> list[Axes]:
    """Figures side by side on one canvas that nothing else knows of, with one legend below."""
    try:
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise MissingExtraError("plots need matplotlib: install matchbound[plots]") from error
    canvas = Canvas(figsize=(1.0 + 2.6 * len(figures), 3.4), dpi=150, layout="constrained")
    axes = list(canvas.subplots(1, len(figures), squeeze=False)[0])
    for figure, ax in zip(figures, axes, strict=True):
        draw(figure, ax).set_title(figure.title, fontsize=SMALL + 1.0)
        ax.get_legend().remove()
    handles = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
    canvas.legend(handles.values(), handles, loc="outside lower center", ncols=4, fontsize=SMALL, frameon=False)
    return axes


def draw(figure: Figure, ax: Axes | None = None) -> Axes:
    """The figure on axes, by default those of a new one."""
    listed = len(figure.rows) or (0 if figure.cells is None else len(figure.cells[0]))
    if ax is None:
        ax = new_axes((4.6, max(0.4 * listed + 1.2, 1.6)) if listed else COLUMN)
    x, y = figure.x, figure.y
    if figure.cells is not None:
        _draw_cells(ax, *figure.cells)
    for band in figure.bands:
        color = band.color or CYCLE[band.series % len(CYCLE)]
        edges = (_values(y, band.low), _values(y, band.high))
        ax.fill_between(_values(x, band.x), *edges, color=color, alpha=0.2, linewidth=0.0, label=band.label)
    for line in figure.lines:
        ax.plot(_values(x, line.x, line), _values(y, line.y), label=line.label, **_style(line))
    for bars in figure.bars:
        color = CYCLE[bars.series % len(CYCLE)]
        ax.stairs(bars.heights, bars.edges, fill=True, color=color, alpha=0.35, label=bars.label)
        ax.stairs(bars.heights, bars.edges, color=color, linewidth=1.0)
    for mark in figure.marks:
        series = mark.series or 0
        color, marker = CYCLE[series % len(CYCLE)], MARKERS[series % len(MARKERS)]
        at = float(_values(x, mark.x)), float(_values(y, mark.y))
        ax.plot(*([v] for v in at), marker=marker, markersize=4.5, color=color, ls="none", markeredgecolor="white")
        if mark.text:
            ax.annotate(mark.text, at, (6, 4), textcoords="offset points", fontsize=SMALL - 1.0, color=color)
    for rule in figure.rules:
        color, width = (ORANGE, 1.4) if rule.style == "strong" else (GREY, 0.9)
        dashes = "--" if rule.style == "dashed" else "-"
        ax.axvline(float(_values(x, rule.x)), color=color, linewidth=width, linestyle=dashes, label=rule.label)
    if figure.rows:
        _draw_rows(ax, figure)
    if figure.cells is None:
        _dress(ax, figure)
    return ax


def _values(axis: Axis | None, values: FloatArray | float, line: Line | None = None) -> FloatArray:
    """Values for matplotlib: its own logarithmic scale, but probits are placed here."""
    if axis is None or axis.scale != "probit":
        return np.asarray(values)
    if line is not None and line.style != "guide":  # a curve leaves the picture at its ends, and does not run along it
        return Axis(axis.label, axis.low / 10.0, 0.999, "probit").transform(values)
    return axis.transform(values)


def _style(line: Line) -> dict[str, Any]:
    color = line.color or CYCLE[line.series % len(CYCLE)]
    if line.style == "curve":
        return {"color": color, "linewidth": 1.4, "linestyle": DASHES[line.series % len(DASHES)]}
    if line.style == "step":
        return {"color": color, "linewidth": 1.4, "marker": MARKERS[line.series % len(MARKERS)], "markersize": 3.5}
    return {"color": GREY, "linewidth": 0.7 if line.style == "guide" else 1.0, "linestyle": ":"}


def _draw_rows(ax: Axes, figure: Figure) -> None:
    for place, row in enumerate(figure.rows):
        color = GREY if row.faint else BLUE
        ax.plot([row.low, row.high], [place, place], color=color, linewidth=1.0 if row.faint else 1.6)
        ax.plot([row.estimate], [place], marker="o", color=color, mfc=color if row.sure else "white", markersize=5.5)
    ax.set_yticks(
        range(len(figure.rows)), [f"{row.name} ({row.beside})" if row.beside else row.name for row in figure.rows]
    )
    ax.set_ylim(len(figure.rows) - 0.5, -0.5)


def _draw_cells(ax: Axes, names: Any, values: FloatArray) -> None:
    shown = np.ma.masked_invalid(values)
    ax.imshow(shown, cmap="Blues", vmin=0.0, aspect="auto")
    most = float(shown.max()) if shown.count() else 1.0
    for (i, j), value in np.ndenumerate(values):
        color = "white" if np.isfinite(value) and value > 0.6 * most else "black"
        ax.text(j, i, percent(float(value)), ha="center", va="center", fontsize=SMALL, color=color)
    ax.set_xticks(range(len(names)), list(names))
    ax.set_yticks(range(len(names)), list(names))
    ax.tick_params(labelsize=SMALL)


def _dress(ax: Axes, figure: Figure) -> None:
    for name, axis in (("x", figure.x), ("y", figure.y)):
        if axis is None:
            continue
        if axis.scale == "log":
            getattr(ax, f"set_{name}scale")("log")
        ends = axis.transform(np.array([axis.low, axis.high])) if axis.scale == "probit" else (axis.low, axis.high)
        getattr(ax, f"set_{name}lim")(*(float(end) for end in ends))
        if axis.ticks:
            ticks = axis.labelled(0.023 if name == "x" else 0.0, 0.08)
            places = [float(_values(axis, value)) for value, _ in ticks]
            side = getattr(ax, f"{name}axis")
            side.set_ticks(places, [text for _, text in ticks])
            side.set_ticks([], minor=True)
    ax.set_xlabel(figure.x.label, fontsize=SMALL + 1.0)
    ax.set_ylabel("" if figure.y is None else figure.y.label, fontsize=SMALL + 1.0)
    ax.tick_params(labelsize=SMALL)
    ax.grid(False)
    if not figure.bars:
        ax.grid(True, linewidth=0.4, color="#dddddd")
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if ax.get_legend_handles_labels()[0]:
        above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3, "columnspacing": 1.2}
        ax.legend(fontsize=SMALL, frameon=False, **(above if figure.bars else {}))
