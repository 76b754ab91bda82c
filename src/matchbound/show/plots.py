"""Pictures: DET on probit axes, ROC with logarithmic FAR, score histograms, rates, differences and groups.

Numbers come from the results; nothing is computed here but where to draw. Sizes are chosen to stay readable in a paper
column (3.4 inches). Without `ax` a new figure is made through pyplot, so that a notebook shows it by itself;
``ax.figure.savefig(...)`` writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import MissingExtraError, UsageError
from matchbound.show.numbers import level_text, percent, points, target_text, threshold_text
from matchbound.show.records import Record
from matchbound.show.terms import metric_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.results.bands import Band
    from matchbound.results.roc import RocCurve

BandKind = Literal["pointwise", "simultaneous"]
Row = tuple[str, float, float, float]
COLUMN = (3.4, 2.9)
DRAWN_POINTS = 2000
BLUE, ORANGE, GREY = "#0b5cad", "#c4500a", "#666666"
CYCLE = (BLUE, ORANGE, "#117a5b", "#8c3f97", "#4d4d4d", "#b8860b")
"""Colours that people with colour-blindness tell apart, and each with a marker and a line of its own."""
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1)), (0, (8, 2)))
TICKS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99)
ROUND = (1e-6, 1e-4, 1e-2, 0.1, 0.4, 0.9)
"""Ticks that stay when there is no room for all."""
SMALL = 8.0


def plot_det(
    curves: RocCurve | Sequence[RocCurve],
    *,
    labels: str | Sequence[str] | None = None,
    ax: Axes | None = None,
    band: BandKind | None = "pointwise",
    level: float = 0.95,
    colors: str | Sequence[str] | None = None,
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
    colors
        Of the curves and, lighter, their bands; by default a cycle that is safe for colour-blind readers.
    mark
        Mark the equal error rate, with its value.

    Returns
    -------
    matplotlib.axes.Axes

    See Also
    --------
    plot_roc, plot_scores, RocCurve

    Examples
    --------
    >>> import matchbound as mb
    >>> a, b = mb.roc(mb.demo_data()), mb.roc(mb.demo_data(seed=8))
    >>> ax = mb.plot_det([a, b], labels=["first", "second"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['first, EER 0.901%', 'second, EER 1.57%']
    """
    from scipy.special import ndtri

    several, names, styles = _styled(curves, labels, colors)
    bands = [_band(curve, band, level) for curve in several]
    ax = _axes(ax)
    low, high = min(_lowest(curve) for curve in several), 0.5
    y_ends = _frr_ends(several, bands, low, high)

    def probit(rate: FloatArray, floor: float, ceiling: float) -> FloatArray:
        result: FloatArray = ndtri(np.clip(rate, floor, ceiling))
        return result

    for curve, made, name, (color, dash, marker) in zip(several, bands, names, styles, strict=True):
        x, y = _steps(curve)
        if made is not None:
            edges = (probit(made.low, *y_ends), probit(made.high, *y_ends))
            label = _name(made) if len(several) == 1 else None
            ax.fill_between(probit(made.far, low, high), *edges, color=color, alpha=0.2, linewidth=0.0, label=label)
        ax.plot(
            probit(x, low / 10.0, 0.999), probit(y, *y_ends), color=color, linewidth=1.4, linestyle=dash, label=name
        )
        if mark:
            rate = curve.eer().estimate
            at = float(ndtri(np.clip(rate, *y_ends)))
            told = f"EER {percent(rate)}"
            ax.plot([at], [at], marker=marker, markersize=4.5, color=color, linestyle="none", markeredgecolor="white")
            if len(several) == 1:
                ax.annotate(told, (at, at), (6, 4), textcoords="offset points", fontsize=SMALL - 1.0, color=color)
            else:
                ax.lines[-2].set_label(f"{name}, {told}" if name else told)
    if mark:
        corner = np.array([min(ndtri(low), ndtri(y_ends[0])), max(ndtri(high), ndtri(y_ends[1]))])
        ax.plot(corner, corner, color=GREY, linewidth=0.7, linestyle=":")
    for axis, ends in ((ax.xaxis, (low, high)), (ax.yaxis, y_ends)):
        ticks = _ticks(ndtri(np.array(ends)), 5.5 if axis is ax.xaxis else 10.0)
        axis.set_ticks(ndtri(np.array(ticks)), [target_text(tick) for tick in ticks])
    ax.set_xlim(ndtri(low), ndtri(high))
    ax.set_ylim(ndtri(y_ends[0]), ndtri(y_ends[1]))
    _dress(ax, "FAR", "FRR", any(names) or band is not None)
    return ax


def plot_roc(
    curves: RocCurve | Sequence[RocCurve],
    *,
    labels: str | Sequence[str] | None = None,
    ax: Axes | None = None,
    band: BandKind | None = "pointwise",
    level: float = 0.95,
    colors: str | Sequence[str] | None = None,
) -> Axes:
    """ROC curves, one or several: 1 − FRR against FAR on a logarithmic scale. Parameters as for `plot_det`.

    Parameters
    ----------
    curves, labels, ax, band, level, colors
        As in `plot_det`.

    Returns
    -------
    matplotlib.axes.Axes
        The picture.

    See Also
    --------
    plot_det, plot_scores

    Examples
    --------
    >>> import matchbound as mb
    >>> ax = mb.plot_roc(mb.roc(mb.demo_data()), labels="demo")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('FAR', '1 − FRR')
    """
    several, names, styles = _styled(curves, labels, colors)
    bands = [_band(curve, band, level) for curve in several]
    ax = _axes(ax)
    for curve, made, name, (color, dash, _) in zip(several, bands, names, styles, strict=True):
        x, y = _steps(curve)
        if made is not None:
            label = _name(made) if len(several) == 1 else None
            ax.fill_between(
                made.far, 1.0 - made.high, 1.0 - made.low, color=color, alpha=0.2, linewidth=0.0, label=label
            )
        drawn = x > 0.0
        ax.plot(x[drawn], 1.0 - y[drawn], color=color, linewidth=1.4, linestyle=dash, label=name)
    low = min(_lowest(curve) for curve in several)
    ax.set_xscale("log")
    ax.set_xlim(low, 1.0)
    decades = [10.0**k for k in range(int(np.ceil(np.log10(low) - 1e-9)), 1)]
    shown = decades[:: -(-len(decades) // 5)] if len(decades) > 5 else decades
    ax.set_xticks(shown, [target_text(rate) for rate in shown])
    ax.minorticks_off()
    ax.set_ylim(None, 1.0 + 0.01)
    ax.yaxis.set_major_formatter(lambda value, _: target_text(float(round(value, 9))) if value <= 1.0 else "")
    _dress(ax, "FAR", "1 − FRR", any(names) or band is not None)
    return ax


def plot_scores(
    curve: RocCurve, *, ax: Axes | None = None, bins: int = 60, threshold: float | None = None, log: bool = False
) -> Axes:
    """Histograms of genuine and impostor scores, each with area 1.

    Parameters
    ----------
    curve
        From `roc`.
    ax
        Axes to draw on; by default those of a new figure.
    bins
        Cells of the histograms.
    threshold
        Draw a line there.
    log
        Logarithmic height, for tails.

    Returns
    -------
    matplotlib.axes.Axes
        The picture.

    See Also
    --------
    plot_det, plot_roc

    Examples
    --------
    >>> import matchbound as mb
    >>> ax = mb.plot_scores(mb.roc(mb.demo_data()), threshold=0.6)
    >>> ax.get_xlabel()
    'similarity'
    """
    if bins < 2:
        raise UsageError(f"bins must be at least 2; got {bins!r}")
    ax = _axes(ax)
    sign = -1.0 if curve.distance else 1.0
    parts = (curve.tally.genuine_masses(), curve.tally.impostor_masses())
    values = [sign * np.asarray(part[0], dtype=np.float64) for part in parts]
    edges = np.linspace(min(v.min() for v in values), max(v.max() for v in values), bins + 1)
    for value, (_, count), color, name in zip(values, parts, (BLUE, ORANGE), ("genuine", "impostor"), strict=True):
        height, _ = np.histogram(value, bins=edges, weights=count, density=True)
        ax.stairs(height, edges, fill=True, color=color, alpha=0.35, label=name)
        ax.stairs(height, edges, color=color, linewidth=1.0)
    if threshold is not None:
        name = f"threshold {threshold_text(threshold)}"
        ax.axvline(threshold, color=GREY, linewidth=1.0, linestyle="--", label=name)
    if log:
        ax.set_yscale("log")
    _dress(ax, "distance" if curve.distance else "similarity", "density", False)
    ax.legend(fontsize=SMALL, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, columnspacing=1.2)
    ax.grid(False)
    return ax


def plot_rates(rows: Sequence[tuple[str, float, float, float, float]], level: float, *, ax: Axes | None = None) -> Axes:
    """FAR and FRR over thresholds with intervals; rows are (metric, threshold, estimate, low, high)."""
    ax = _axes(ax)
    for metric, color, marker in (("far", ORANGE, "s"), ("frr", BLUE, "o")):
        mine = np.array([row[1:] for row in rows if row[0] == metric], dtype=np.float64).reshape(-1, 4)
        if not mine.size:
            continue
        x, y, low, high = mine[np.argsort(mine[:, 0])].T
        ax.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0.0)
        ax.plot(x, y, color=color, linewidth=1.4, marker=marker, markersize=3.5, label=metric.upper())
    low = min((row[4] for row in rows if row[4] > 0.0), default=1e-3)
    least = min((row[2] for row in rows if row[2] > 0.0), default=low)
    ax.set_yscale("log")
    ax.set_ylim(least / 3.0, 1.0)
    _rate_axis(ax.yaxis, ax.get_ylim())
    _dress(ax, "threshold", f"rate, {level_text(level)} intervals", True)
    return ax


def plot_replicates(
    replicates: FloatArray,
    estimate: float,
    limits: tuple[float, float],
    level: float,
    *,
    ax: Axes | None = None,
    bins: int = 40,
) -> Axes:
    """A histogram of bootstrap replicates, with the estimate and an interval."""
    ax = _axes(ax)
    ax.hist(100.0 * replicates, bins=bins, color=BLUE, alpha=0.6)
    ax.axvline(100.0 * estimate, color=ORANGE, linewidth=1.4, label=f"estimate {percent(estimate)}")
    ax.axvspan(
        100.0 * limits[0], 100.0 * limits[1], color=GREY, alpha=0.18, lw=0, label=f"{level_text(level)} interval"
    )
    _dress(ax, "rate (%)", "replicates", True)
    return ax


def plot_differences(records: Sequence[Record], *, ax: Axes | None = None) -> Axes:
    """Differences A − B with their intervals, in percentage points; filled where 0 is left out."""
    if not records:
        raise UsageError("there are no differences to draw")
    ax = _axes(ax, 0.45 * len(records) + 1.1)
    names = []
    for place, record in enumerate(records):
        low, at, high = (100.0 * float(record[key]) for key in ("low", "estimate", "high"))
        sure = not low <= 0.0 <= high
        ax.plot([low, high], [place, place], color=BLUE, linewidth=1.6)
        ax.plot([at], [place], marker="o", color=BLUE, markerfacecolor=BLUE if sure else "white", markersize=5.5)
        metric = metric_name(str(record["metric"]))
        names.append(f"{metric}: {record['a']} − {record['b']}")
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.xaxis.set_major_formatter(lambda value, _: points(value / 100.0) if abs(value) < 1e-3 else f"{value:g}")
    _dress(ax, f"difference, percentage points ({level_text(records[0]['level'])} intervals)", "", False)
    return ax


def plot_groups(rows: Sequence[Row], overall: float, metric: str, level: float, *, ax: Axes | None = None) -> Axes:
    """A rate of each group with its interval; rows are (group, estimate, low, high), a line is the overall rate."""
    ax = _axes(ax, 0.36 * len(rows) + 1.1)
    for place, (_, estimate, low, high) in enumerate(rows):
        ax.plot([100.0 * low, 100.0 * high], [place, place], color=BLUE, linewidth=1.6)
        ax.plot([100.0 * estimate], [place], marker="o", color=BLUE, markersize=5.0)
    ax.axvline(100.0 * overall, color=GREY, linewidth=0.9, linestyle="--", label=f"all: {percent(overall)}")
    ax.set_yticks(range(len(rows)), [row[0] for row in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(left=0.0)
    _dress(ax, f"{metric} (%), {level_text(level)} intervals", "", True)
    return ax


def plot_matrix(groups: Sequence[str], rates: FloatArray, *, ax: Axes | None = None) -> Axes:
    """Impostor rates within (diagonal) and between groups, as a table with colours."""
    ax = _axes(ax, 0.5 * len(groups) + 1.4)
    shown = np.ma.masked_invalid(rates)
    ax.imshow(shown, cmap="Blues", vmin=0.0, aspect="auto")
    most = float(shown.max()) if shown.count() else 1.0
    for i in range(len(groups)):
        for j in range(len(groups)):
            rate = float(rates[i, j])
            color = "white" if np.isfinite(rate) and rate > 0.6 * most else "black"
            ax.text(j, i, percent(rate), ha="center", va="center", fontsize=SMALL, color=color)
    ax.set_xticks(range(len(groups)), list(groups))
    ax.set_yticks(range(len(groups)), list(groups))
    _dress(ax, "", "", False)
    ax.grid(False)
    ax.set_title("FAR within and between groups", fontsize=SMALL + 1.0)
    return ax


def new_axes(size: tuple[float, float] = COLUMN, *, pyplot: bool = True) -> Axes:
    """Axes of a new figure; through pyplot, so that notebooks show it, or of a figure that nothing else knows of."""
    try:
        if pyplot:
            import matplotlib.pyplot as plt

            return plt.subplots(figsize=size, dpi=150, layout="constrained")[1]
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plots need matplotlib: install matchbound[plots]") from error
    return Figure(figsize=size, dpi=150, layout="constrained").subplots()


def _axes(ax: Axes | None, height: float | None = None) -> Axes:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    return new_axes(COLUMN if height is None else (4.6, max(height, 1.5)))


def _styled(
    curves: RocCurve | Sequence[RocCurve], labels: str | Sequence[str] | None, colors: str | Sequence[str] | None
) -> tuple[list[RocCurve], list[str | None], list[tuple[str, Any, str]]]:
    """The curves, a name or None for each, and (colour, dashes, marker) of each."""
    several: list[Any] = list(curves) if isinstance(curves, (list, tuple)) else [curves]
    if not several:
        raise UsageError("there is no curve to draw")
    for curve in several:
        if not all(hasattr(curve, name) for name in ("far", "frr", "tally")):
            raise UsageError(f"curves must be results of matchbound.roc; got {type(curve).__name__}")
    names: list[str | None] = [None] * len(several)
    if labels is not None:
        names = [labels] if isinstance(labels, str) else list(labels)
    hues = [colors] if isinstance(colors, str) else list(colors or [])
    if len(names) != len(several):
        raise UsageError(f"labels must name each of the {len(several)} curves; got {len(names)}")
    if hues and len(hues) != len(several):
        raise UsageError(f"colors must hold one for each of the {len(several)} curves; got {len(hues)}")
    styles = []
    for k in range(len(several)):
        color = hues[k] if hues else CYCLE[k % len(CYCLE)]
        styles.append((color, DASHES[k % len(DASHES)], MARKERS[k % len(MARKERS)]))
    return several, names, styles


def _frr_ends(curves: Sequence[RocCurve], bands: Sequence[Band | None], low: float, high: float) -> tuple[float, float]:
    """The FRRs between which DET curves are drawn."""
    lowest, highest = 1.0, 0.0
    for curve, made in zip(curves, bands, strict=True):
        x, y = _steps(curve)
        inside = (x >= low) & (x <= high)
        n = curve.tally.n_genuine
        lowest = min(lowest, max(float(y[inside].min(initial=1.0)), 0.5 / n))
        highest = max(highest, min(float(y[inside].max(initial=0.0)), 1.0 - 0.5 / n))
        if made is not None:
            lowest = min(lowest, max(float(made.low.min()), 0.25 / n))
            highest = max(highest, min(float(made.high.max()), 1.0 - 0.25 / n))
    return min(lowest, 0.5) * 0.8, 1.0 - 0.8 * (1.0 - highest)


def _steps(curve: RocCurve) -> tuple[FloatArray, FloatArray]:
    """FAR and FRR of the curve, thinned to what a picture can show; no drawn point is invented."""
    x, y = curve.far, curve.frr
    if x.size <= DRAWN_POINTS:
        return x, y
    with np.errstate(divide="ignore"):
        along = np.log(np.maximum(x, 0.5 / curve.tally.n_impostor))
    grid = np.linspace(along[0], along[-1], DRAWN_POINTS // 2)
    kept = np.searchsorted(along, grid).clip(0, x.size - 1)
    fall = np.searchsorted(-y, np.linspace(-y[0], -y[-1], DRAWN_POINTS // 2)).clip(0, x.size - 1)
    at = np.unique(np.concatenate([kept, fall, [0, x.size - 1]]))
    return x[at], y[at]


def _lowest(curve: RocCurve) -> float:
    """The lowest FAR at which a curve is drawn: that of one impostor comparison that matches."""
    return float(min(1.0 / curve.tally.n_impostor, 0.1))


def _band(curve: RocCurve, kind: BandKind | None, level: float) -> Band | None:
    """The band of ``curve.band()``: it begins where enough impostor comparisons match."""
    if kind is None:
        return None
    if kind not in ("pointwise", "simultaneous"):
        raise UsageError(f"band must be 'pointwise', 'simultaneous' or None; got {kind!r}")
    return curve.band(level, simultaneous=kind == "simultaneous")


def _name(band: Band) -> str:
    kind = "simultaneous" if band.simultaneous else "pointwise"
    return f"{level_text(band.level)} {kind}"


def _ticks(ends: FloatArray, most: float) -> list[float]:
    """Round rates between two probits, no two nearer than a share of the axis."""
    from scipy.special import ndtri

    apart = float(ends[1] - ends[0]) / most
    kept: list[float] = []
    for tick in (*(t for t in TICKS if t in ROUND), *(t for t in TICKS if t not in ROUND)):
        at = float(ndtri(tick))
        inside = ends[0] - 1e-9 <= at <= ends[1] + 1e-9
        if inside and all(abs(at - float(ndtri(other))) >= apart for other in kept):
            kept.append(tick)
    return sorted(kept)


def _rate_axis(axis: Any, ends: tuple[float, float]) -> None:
    """Decades of a logarithmic axis, written as rates are."""
    decades = [10.0**k for k in range(int(np.ceil(np.log10(ends[0]) - 1e-9)), 1)]
    axis.set_ticks(decades, [target_text(rate) for rate in decades])
    axis.set_ticks([], minor=True)


def _dress(ax: Axes, x: str, y: str, legend: bool) -> None:
    ax.set_xlabel(x, fontsize=SMALL + 1.0)
    ax.set_ylabel(y, fontsize=SMALL + 1.0)
    ax.tick_params(labelsize=SMALL)
    ax.grid(True, linewidth=0.4, color="#dddddd")
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    handles: list[Any] = ax.get_legend_handles_labels()[0]
    if legend and handles:
        ax.legend(fontsize=SMALL, frameon=False)
