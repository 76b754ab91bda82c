"""Pictures of plans and of what a protocol saves. Numbers come from `planning`; nothing is computed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.errors import MissingExtraError
from matchbound.planning.plan import CostCurve, Plan
from matchbound.show.mpl import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def cost_figure(plan: Plan, curve: CostCurve | None = None) -> Figure:
    """People against instances for the same goal, and how often the goal is met with fewer or more people."""
    figure = _figure(9.0, 3.8)
    left, right = figure.subplots(1, 2)
    plot_cost(left, plan.cost_curve() if curve is None else curve)
    plot_chance(right, plan)
    return figure


def plot_cost(ax: Axes | None, curve: CostCurve) -> Axes:
    """People, and recordings of all of them, against instances per person; on new axes where `ax` is None."""
    ax = new_axes() if ax is None else ax
    ax.plot(curve.instances, curve.n_identities, marker="o", color="#1b4965", label="people")
    ax.plot(curve.instances, curve.recordings, marker="s", color="#ca6702", label="people × instances")
    ax.set_xscale("log")
    ax.set_ylim(0.0, 1.08 * float(curve.recordings.max()))
    ax.set_xticks(list(curve.instances), [str(m) for m in curve.instances], minor=False)
    ax.minorticks_off()
    ax.set_xlabel("instances per person")
    ax.set_ylabel("needed")
    ax.legend(frameon=False)
    return ax


def plot_chance(ax: Axes | None, plan: Plan, factors: Sequence[float] = (0.25, 0.4, 0.6, 0.8, 1.0, 1.3, 1.7)) -> Axes:
    """Probability that the goal is met against the number of people, with the rules of thumb marked."""
    ax = new_axes() if ax is None else ax
    sizes = sorted({max(4, round(factor * plan.n_identities)) for factor in factors})
    ax.plot(sizes, [plan.at(size).chance for size in sizes], marker="o", color="#1b4965")
    ax.axhline(plan.target.power, color="#888888", linewidth=0.8, linestyle="--")
    ax.axvline(plan.n_identities, color="#888888", linewidth=0.8, linestyle="--")
    for rule in plan.rules:
        ax.plot([rule.n_identities], [rule.chance], marker="x", color="#ca6702", linestyle="none")
        ax.annotate(rule.name, (rule.n_identities, rule.chance), xytext=(4, 6), textcoords="offset points", fontsize=8)
    goal = "width" if plan.target.goal == "width" else "upper bound"
    ax.set_ylim(-0.03, 1.06)
    ax.set_xlabel(f"people, {plan.instances} instances each")
    ax.set_ylabel(f"chance that the {goal} is ≤ {plan.target.value:g}")
    return ax


def protocol_figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Variance of FAR under the protocol over that of other ways to spend a budget.

    The rows are those of docs/studies/protocol_pays.csv; the second largest FAR is drawn.
    """
    names = list(dict.fromkeys(str(row["data"]) for row in rows))
    figure = _figure(3.4 * len(names), 3.4)
    panels = np.atleast_1d(figure.subplots(1, len(names), sharey=True))
    styles = {"random": ("o", "#1b4965"), "blocks": ("s", "#ca6702"), "people": ("^", "#9b2226")}
    rate = sorted({float(row["far"]) for row in rows})[-2:][0]
    for ax, name in zip(panels, names, strict=True):
        mine = [row for row in rows if row["data"] == name and float(row["far"]) == rate]
        budgets = [int(row["budget"]) / int(row["identities"]) for row in mine]
        for way, (marker, colour) in styles.items():
            ax.plot(budgets, [float(row[f"ratio_to_{way}"]) for row in mine], marker=marker, color=colour, label=way)
        ax.axhline(1.0, color="#888888", linewidth=0.8, linestyle="--")
        ax.set_xscale("log")
        ax.set_xticks(budgets, [f"{b:g}" for b in budgets])
        ax.minorticks_off()
        ax.set_title(f"{name}, FAR {rate:g}", fontsize=10)
        ax.set_xlabel("comparisons per person")
    panels[0].set_ylim(0.0, 1.15)
    panels[0].set_ylabel("variance under the protocol ÷ other")
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def _figure(width: float, height: float) -> Figure:
    """A figure that needs no screen and leaves no state behind."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("plots need matplotlib: install matchbound[plots]") from None
    return Figure(figsize=(width, height), layout="constrained")
