"""Pictures of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchbound.errors import MissingExtraError
from matchbound.planning.plan import CostCurve, Plan
from matchbound.show.mpl import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FACTORS = (0.25, 0.4, 0.6, 0.8, 1.0, 1.3, 1.7)
"""Sizes at which the chance is drawn, as multiples of the plan's."""


def cost_figure(plan: Plan, curve: CostCurve | None = None) -> Figure:
    """People against instances for the same goal, and how often the goal is met with fewer or more people."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("plots need matplotlib: install matchbound[plots]") from None
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_cost(left, plan.cost_curve() if curve is None else curve)
    plot_chance(right, plan)
    return figure


def plot_cost(ax: Axes | None, curve: CostCurve) -> Axes:
    """People, and recordings of all of them, against instances per person; on new axes where `ax` is None."""
    ax = new_axes() if ax is None else ax
    ax.plot(curve.instances, curve.n_identities, marker="o", color="#1b4965", label="people")
    ax.plot(curve.instances, curve.recordings, marker="s", color="#ca6702", label="people × instances")
    ax.set(xscale="log", xlabel="instances per person", ylabel="needed")
    ax.set_ylim(0.0, 1.08 * float(curve.recordings.max()))
    ax.set_xticks(list(curve.instances), [str(m) for m in curve.instances], minor=False)
    ax.minorticks_off()
    ax.legend(frameon=False)
    return ax


def plot_chance(ax: Axes | None, plan: Plan) -> Axes:
    """Probability that the goal is met against the number of people, with the rules of thumb marked."""
    ax = new_axes() if ax is None else ax
    sizes = sorted({max(4, round(factor * plan.n_identities)) for factor in FACTORS})
    ax.plot(sizes, [plan.at(size).chance for size in sizes], marker="o", color="#1b4965")
    ax.axhline(plan.target.power, color="#888888", linewidth=0.8, linestyle="--")
    ax.axvline(plan.n_identities, color="#888888", linewidth=0.8, linestyle="--")
    for rule in plan.rules:
        place = (rule.n_identities, rule.chance)
        ax.plot(*place, marker="x", color="#ca6702", linestyle="none")
        ax.annotate(rule.name, place, xytext=(4, 6), textcoords="offset points", fontsize=8)
    goal = "width" if plan.target.goal == "width" else "upper bound"
    ax.set(ylim=(-0.03, 1.06), xlabel=f"people, {plan.instances} instances each")
    ax.set_ylabel(f"chance that the {goal} is ≤ {plan.target.value:g}")
    return ax
