"""Pictures of searches in a gallery, drawn from arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.show.numbers import level_text
from matchbound.show.plots import BLUE, GREY, _axes, _dress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOWEST = 1e-5


def plot_trade_off(
    fpir: FloatArray, fnir: FloatArray, low: FloatArray, high: FloatArray, level: float, ax: Axes | None = None
) -> Axes:
    """FNIR against FPIR, both on logarithmic axes."""
    ax = _axes(ax)
    band = f"{level_text(level)} band"
    ax.fill_between(fpir, np.maximum(low, LOWEST), high, color=BLUE, alpha=0.2, linewidth=0.0, label=band)
    ax.plot(fpir, np.maximum(fnir, LOWEST), color=BLUE, linewidth=1.4)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(max(LOWEST, 0.5 * float(np.maximum(low, LOWEST).min())), 1.0)
    _dress(ax, "FPIR", "FNIR", True)
    return ax


def plot_cmc(
    rank: IntArray, estimate: FloatArray, low: FloatArray, high: FloatArray, level: float, ax: Axes | None = None
) -> Axes:
    """The share of searches whose mate is within each rank."""
    ax = _axes(ax)
    ax.fill_between(rank, low, high, color=BLUE, alpha=0.2, linewidth=0.0, label=f"{level_text(level)} band")
    ax.plot(rank, estimate, color=BLUE, linewidth=1.4, marker="o", markersize=2.5)
    ax.set_xscale("log")
    ticks = [value for value in (1, 2, 5, 10, 20, 50, 100) if value <= int(rank[-1])]
    ax.set_xticks(ticks, [str(value) for value in ticks])
    ax.minorticks_off()
    ax.set_ylim(None, 1.001)
    _dress(ax, "rank", "CMC", True)
    return ax


def plot_sizes(
    size: IntArray,
    estimate: FloatArray,
    low: FloatArray,
    high: FloatArray,
    independent: FloatArray,
    searched: int,
    level: float,
    ax: Axes | None = None,
) -> Axes:
    """FPIR against the size of the gallery; the dotted curve takes hits for independent."""
    ax = _axes(ax)
    floor = max(LOWEST, 0.5 * float(estimate[estimate > 0.0].min(initial=1.0)))
    band = f"{level_text(level)} band"
    ax.fill_between(size, np.maximum(low, floor), high, color=BLUE, alpha=0.2, linewidth=0.0, label=band)
    ax.plot(size, np.maximum(estimate, floor), color=BLUE, linewidth=1.4)
    ax.plot(size, np.maximum(independent, floor), color=GREY, linewidth=1.0, linestyle=":", label="1 − (1 − FMR)ᴺ")
    ax.axvline(searched, color=GREY, linewidth=0.7)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ticks = [int(size[0]), searched, int(size[-1])]
    ax.set_xticks(ticks, [f"{value:,}" for value in ticks])
    ax.xaxis.minorticks_off()
    _dress(ax, "enrolled people", "FPIR", True)
    return ax
