"""Pictures of costs and of linkage: error against the prior, precision against recall, and against the threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from matchbound.show.numbers import level_text
from matchbound.show.plots import BLUE, CYCLE, GREY, SMALL, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.arraytypes import FloatArray
    from matchbound.results.linkage_curve import LinkageCurve

REACH = 7.0
"""Log odds of the prior from −REACH to REACH."""


def plot_costs(made: dict[str, FloatArray], ax: Axes | None = None, *, label: str | None = None) -> Axes:
    """The probability of error against the log odds of the prior: actual, least, and without any system (APE plot).

    Parameters
    ----------
    made
        ``log_odds``, ``minimum``, ``default`` and, where scores are log-likelihood ratios, ``actual``; shape (n,) each.
    """
    ax = new_axes() if ax is None else ax
    x = made["log_odds"]
    name = "" if label is None else f"{label}: "
    if "actual" in made:
        ax.plot(x, made["actual"], color=CYCLE[1], linewidth=1.4, label=f"{name}actual")
    ax.plot(x, made["minimum"], color=BLUE, linewidth=1.4, label=f"{name}least over thresholds")
    ax.plot(x, made["default"], color=GREY, linewidth=1.0, linestyle=":", label="always the same decision")
    ax.set_xlabel("log odds of the prior", fontsize=SMALL)
    ax.set_ylabel("probability of error", fontsize=SMALL)
    top = float(np.max([made["minimum"].max(), made.get("actual", made["minimum"]).max()]))
    ax.set_ylim(0.0, min(1.25 * top, 0.55) if top > 0.0 else 0.5)
    ax.tick_params(labelsize=SMALL - 1.0)
    ax.legend(fontsize=SMALL - 1.0, frameon=False)
    return ax


def plot_precision_recall(made: LinkageCurve, ax: Axes | None = None, *, label: str | None = None) -> Axes:
    """Precision against recall with the pointwise band of precision; the prior is in the label of the axis."""
    ax = new_axes() if ax is None else ax
    order = np.argsort(made.recall.estimate, kind="stable")
    x = made.recall.estimate[order]
    told = f"{level_text(made.level)} pointwise, {made.method}"
    ax.fill_between(x, made.precision.low[order], made.precision.high[order], color=BLUE, alpha=0.2, lw=0.0, label=told)
    ax.plot(x, made.precision.estimate[order], color=BLUE, linewidth=1.4, label=label)
    ax.set_xlabel("recall", fontsize=SMALL)
    ax.set_ylabel(f"precision at prior {made.prior:.3g}", fontsize=SMALL)
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, 1.02)
    ax.tick_params(labelsize=SMALL - 1.0)
    ax.legend(fontsize=SMALL - 1.0, frameon=False)
    return ax


OUTPOST = 0.4
"""A threshold at an end that lies farther from the next than this share of the whole range is left out of a picture."""


def _without_outposts(thresholds: FloatArray) -> tuple[float, float]:
    """The range to show: without a single score far from all others, such as that of pairs that were never compared."""
    low, high = float(thresholds[0]), float(thresholds[-1])
    if thresholds.size > 3 and high > low:
        low = float(thresholds[1]) if thresholds[1] - low > OUTPOST * (high - low) else low
        high = float(thresholds[-2]) if high - thresholds[-2] > OUTPOST * (high - low) else high
    edge = 0.03 * (high - low) or 0.5
    return low - edge, high + edge


def plot_thresholds(made: LinkageCurve, ax: Axes | None = None) -> Axes:
    """Precision, recall and F1 against the threshold, each with its pointwise band."""
    ax = new_axes() if ax is None else ax
    for name, along, color in zip(
        (f"precision (prior {made.prior:.3g})", "recall", "F1"),
        (made.precision, made.recall, made.f1),
        CYCLE,
        strict=False,
    ):
        ax.fill_between(made.thresholds, along.low, along.high, color=color, alpha=0.18, linewidth=0.0)
        ax.plot(made.thresholds, along.estimate, color=color, linewidth=1.4, label=name)
    ax.set_xlim(*_without_outposts(np.sort(made.thresholds)))
    ax.set_xlabel("threshold", fontsize=SMALL)
    ax.set_ylabel(f"with {level_text(made.level)} bands ({made.method})", fontsize=SMALL)
    ax.set_ylim(0.0, 1.02)
    ax.tick_params(labelsize=SMALL - 1.0)
    ax.legend(fontsize=SMALL - 1.0, frameon=False)
    return ax
