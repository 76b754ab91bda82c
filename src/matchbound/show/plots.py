"""Pictures of curves: DET on probit axes, ROC with logarithmic FAR, score histograms, with bands.

Numbers come from the results; nothing is computed here but where to draw. Sizes are chosen to stay readable in a paper
column (3.4 inches). Without `ax` a new figure is made that belongs to no window; ``ax.figure.savefig(...)`` writes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.results.roc import Band, RocCurve

BandKind = Literal["pointwise", "simultaneous"]
COLUMN = (3.4, 2.9)
DRAWN_POINTS = 2000
BLUE, ORANGE, GREY = "#0b5cad", "#c4500a", "#666666"
TICKS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99)
ROUND = (1e-6, 1e-4, 1e-2, 0.1, 0.4, 0.9)
"""Ticks that stay when there is no room for all."""
SMALL = 8.0


def plot_det(
    curve: RocCurve,
    *,
    ax: Axes | None = None,
    band: BandKind | None = "pointwise",
    level: float = 0.95,
    label: str | None = None,
    color: str = BLUE,
    mark: bool = True,
) -> Axes:
    """DET curve: FRR against FAR, both on probit scales.

    Parameters
    ----------
    curve
    ax
        Axes to draw on; by default new ones.
    band
        ``"pointwise"``, ``"simultaneous"`` or None.
    level
        Coverage of the band.
    label
        For the legend; a legend is drawn when there is one.
    color
        Of the curve and, lighter, its band.
    mark
        Mark the equal error rate.
    """
    from scipy.special import ndtri

    ax = _axes(ax)
    x, y = _steps(curve)
    low, high = _limits(curve)
    inside = (x >= low) & (x <= high)
    y_low = float(max(y[inside].min(initial=1.0), 0.5 / curve.tally.n_genuine))
    y_high = float(min(y[inside].max(initial=0.0), 1.0 - 0.5 / curve.tally.n_genuine))
    made = _band(curve, band, level, (low, high))
    if made is not None:
        y_low = float(min(y_low, max(made.low.min(), 0.25 / curve.tally.n_genuine)))
        y_high = float(max(y_high, min(made.high.max(), 1.0 - 0.25 / curve.tally.n_genuine)))

    def probit(rate: FloatArray, floor: float, ceiling: float) -> FloatArray:
        result: FloatArray = ndtri(np.clip(rate, floor, ceiling))
        return result

    y_ends = (min(y_low, 0.5) * 0.8, 1.0 - 0.8 * (1.0 - y_high))
    if made is not None:
        edges = (probit(made.low, *y_ends), probit(made.high, *y_ends))
        ax.fill_between(probit(made.far, low, high), *edges, color=color, alpha=0.22, linewidth=0.0, label=_name(made))
    ax.plot(probit(x, low / 10.0, 0.999), probit(y, *y_ends), color=color, linewidth=1.4, label=label)
    if mark:
        eer = ndtri(np.clip(curve.eer().estimate, *y_ends))
        ax.plot([eer], [eer], marker="o", markersize=4.0, color=color, linestyle="none")
        corner = np.array([min(ndtri(low), ndtri(y_ends[0])), max(ndtri(high), ndtri(y_ends[1]))])
        ax.plot(corner, corner, color=GREY, linewidth=0.7, linestyle=":")
    for axis, ends in ((ax.xaxis, (low, high)), (ax.yaxis, y_ends)):
        ticks = _ticks(ndtri(np.array(ends)), 7.0 if axis is ax.xaxis else 10.0)
        axis.set_ticks(ndtri(np.array(ticks)), [_percent(tick) for tick in ticks])
    ax.set_xlim(ndtri(low), ndtri(high))
    ax.set_ylim(ndtri(y_ends[0]), ndtri(y_ends[1]))
    _dress(ax, "FAR", "FRR", label is not None or made is not None)
    return ax


def plot_roc(
    curve: RocCurve,
    *,
    ax: Axes | None = None,
    band: BandKind | None = "pointwise",
    level: float = 0.95,
    label: str | None = None,
    color: str = BLUE,
) -> Axes:
    """ROC curve: 1 − FRR against FAR on a logarithmic scale. Parameters as for `plot_det`."""
    ax = _axes(ax)
    x, y = _steps(curve)
    low, high = _limits(curve)
    made = _band(curve, band, level, (low, high))
    if made is not None:
        ax.fill_between(
            made.far, 1.0 - made.high, 1.0 - made.low, color=color, alpha=0.22, linewidth=0.0, label=_name(made)
        )
    drawn = x > 0.0
    ax.plot(x[drawn], 1.0 - y[drawn], color=color, linewidth=1.4, label=label)
    ax.set_xscale("log")
    ax.set_xlim(low, 1.0)
    ax.set_ylim(None, 1.0 + 0.01)
    _dress(ax, "FAR", "1 − FRR", label is not None or made is not None)
    return ax


def plot_scores(
    curve: RocCurve, *, ax: Axes | None = None, bins: int = 60, threshold: float | None = None, log: bool = False
) -> Axes:
    """Histograms of genuine and impostor scores, each with area 1.

    Parameters
    ----------
    bins
        Cells of the histograms.
    threshold
        Draw a line there.
    log
        Logarithmic height, for tails.
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
        ax.axvline(threshold, color=GREY, linewidth=1.0, linestyle="--", label=f"threshold {threshold:.4g}")
    if log:
        ax.set_yscale("log")
    _dress(ax, "distance" if curve.distance else "similarity", "density", True)
    ax.grid(False)
    return ax


def _axes(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure that no window knows."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plots need matplotlib: install matchbound[plots]") from error
    return Figure(figsize=COLUMN, dpi=200, layout="constrained").subplots()


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


def _limits(curve: RocCurve) -> tuple[float, float]:
    """FARs between which a curve is drawn: from one impostor comparison that matches to 0.5."""
    return min(1.0 / curve.tally.n_impostor, 0.1), 0.5


def _band(curve: RocCurve, kind: BandKind | None, level: float, ends: tuple[float, float]) -> Band | None:
    if kind is None:
        return None
    if kind not in ("pointwise", "simultaneous"):
        raise UsageError(f"band must be 'pointwise', 'simultaneous' or None; got {kind!r}")
    if kind == "simultaneous":
        return curve.band(level, simultaneous=True)
    low = min(3.0 / curve.tally.n_impostor, ends[1] / 2.0)
    return curve.band(level, far_range=(low, ends[1]))


def _name(band: Band) -> str:
    kind = "simultaneous" if band.simultaneous else "pointwise"
    return f"{100.0 * band.level:g}% {kind}"


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


def _percent(rate: float) -> str:
    """A rate as a short tick label: 0.1% and more in percent, less as a power of ten."""
    if rate < 1e-3:
        return f"$10^{{{round(np.log10(rate))}}}$"
    return f"{100.0 * rate:g}%"


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
