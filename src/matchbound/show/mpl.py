"""Figures drawn by matplotlib, which is imported at use, and pictures of curves and models.

Sizes are chosen to stay readable in a paper column (3.4 inches). Without `ax` a new figure is made through pyplot, so
that a notebook shows it by itself; ``ax.figure.savefig(...)`` writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import MissingExtraError, UsageError
from matchbound.show.figures import Axis, Figure, Line, det_figure, roc_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.results import roc
    from matchbound.results.roc import RocCurve

BandKind = Literal["pointwise", "simultaneous"]

COLUMN = (3.4, 2.9)
SMALL = 8.0
BLUE, ORANGE, GREY = "#0b5cad", "#c4500a", "#666666"
# Colours that people with colour-blindness tell apart, and each with a marker and a line of its own.
CYCLE = (BLUE, ORANGE, "#117a5b", "#8c3f97", "#4d4d4d", "#b8860b", "#c2185b", "#00838f")
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1)), (0, (8, 2)))


def new_axes(size: tuple[float, float] = COLUMN, panels: int = 1, *, pyplot: bool = True) -> Any:
    """Axes of a new figure; through pyplot, so that notebooks show it, or of a figure that nothing else knows of.

    Of several panels side by side, an array of them.
    """
    options: dict[str, Any] = {"figsize": size, "dpi": 150, "layout": "constrained"}
    try:
        if pyplot:
            import matplotlib.pyplot as plt

            return plt.figure(**options).subplots(1, panels)
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise MissingExtraError("plots need matplotlib: install matchbound[plots]") from error
    return Canvas(**options).subplots(1, panels)


def draw_panels(figures: Sequence[Figure]) -> list[Axes]:
    """Figures side by side on one canvas, which notebooks show, with one legend below."""
    axes = list(new_axes((1.0 + 2.6 * len(figures), 3.4), len(figures)))
    for figure, ax in zip(figures, axes, strict=True):
        draw(figure, ax).set_title(figure.title, fontsize=SMALL + 1.0)
        if legend := ax.get_legend():
            legend.remove()
    handles = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
    axes[0].figure.legend(handles.values(), handles, loc="outside lower center", ncols=4, fontsize=SMALL, frameon=False)
    return axes


def draw(figure: Figure, ax: Axes | None = None) -> Axes:
    """The figure on axes, by default those of a new one."""
    if ax is None:
        ax = new_axes((4.6, max(0.4 * len(figure.rows) + 1.2, 1.6)) if figure.rows else COLUMN)
    x, y = figure.x, figure.y
    for band in figure.bands:
        color = CYCLE[band.series % len(CYCLE)]
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
        dashes = "--" if rule.style == "dashed" else "-"
        ax.axvline(float(_values(x, rule.x)), color=GREY, linewidth=0.9, linestyle=dashes, label=rule.label)
    if figure.rows:
        _draw_rows(ax, figure)
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
    color = CYCLE[line.series % len(CYCLE)]
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


def plot_det(
    curves: RocCurve | Sequence[RocCurve],
    *,
    labels: str | Sequence[str] | None = None,
    ax: Axes | None = None,
    band: BandKind | None = "pointwise",
    level: float = 0.95,
    mark: bool = True,
) -> Axes:
    """DET curves, one or several: FRR against FAR, both on probit scales.

    Parameters
    ----------
    curves
        From `roc`; several are drawn in distinct colours, lines and markers.
    labels
        Names for the legend, one per curve.
    ax
        Axes to draw on; by default those of a new figure.
    band
        ``"pointwise"``, ``"simultaneous"`` or None.
    level
        Coverage of the band.
    mark
        Mark the equal error rate, with its value.

    Returns
    -------
    matplotlib.axes.Axes

    See Also
    --------
    plot_roc, RocCurve

    Examples
    --------
    >>> import matchbound as mb
    >>> a, b = mb.roc(mb.demo_data()), mb.roc(mb.demo_data(seed=8))
    >>> ax = mb.plot_det([a, b], labels=["first", "second"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['first, EER 0.901%', 'second, EER 1.57%']
    """
    return draw(det_figure(*_several(curves, labels, band, level), mark), ax)


def plot_roc(
    curves: RocCurve | Sequence[RocCurve],
    *,
    labels: str | Sequence[str] | None = None,
    ax: Axes | None = None,
    band: BandKind | None = "pointwise",
    level: float = 0.95,
) -> Axes:
    """ROC curves, one or several: 1 − FRR against FAR on a logarithmic scale.

    Parameters
    ----------
    curves, labels, ax, band, level
        As in `plot_det`.

    Returns
    -------
    matplotlib.axes.Axes

    See Also
    --------
    plot_det

    Examples
    --------
    >>> import matchbound as mb
    >>> ax = mb.plot_roc(mb.roc(mb.demo_data()), labels="demo")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('FAR', '1 − FRR')
    """
    return draw(roc_figure(*_several(curves, labels, band, level)), ax)


def _several(
    curves: RocCurve | Sequence[RocCurve], labels: str | Sequence[str] | None, band: BandKind | None, level: float
) -> tuple[list[RocCurve], list[str | None], list[roc.Band | None]]:
    """The curves, and a name or None and a band or None for each."""
    several: list[Any] = list(curves) if isinstance(curves, (list, tuple)) else [curves]
    names: list[Any] = [labels] * len(several) if labels is None or isinstance(labels, str) else list(labels)
    if not several or not all(hasattr(curve, "band") for curve in several):
        raise UsageError(f"curves must be results of matchbound.roc, at least one; got {several!r:.60}")
    if len(names) != len(several) or (isinstance(labels, str) and len(several) > 1):
        raise UsageError(f"labels must name each of the {len(several)} curves; got {labels!r}")
    if band not in (None, "pointwise", "simultaneous"):
        raise UsageError(f"band must be 'pointwise', 'simultaneous' or None; got {band!r}")
    return several, names, [None if band is None else _band(curve, level, band == "simultaneous") for curve in several]


def _band(curve: RocCurve, level: float, simultaneous: bool) -> roc.Band:
    """The band of a picture: pointwise, the limits that `at_far` gives."""
    quick = simultaneous or curve.recount.anonymous
    return curve.band(level, simultaneous=simultaneous, method="influence" if quick else "latent")
