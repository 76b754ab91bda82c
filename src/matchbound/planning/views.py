"""Plans and protocols as records, as text and as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchbound.errors import MissingExtraError
from matchbound.planning.plan import CostCurve, Plan
from matchbound.planning.protocol import Protocol
from matchbound.show.mpl import new_axes
from matchbound.show.numbers import level_text, percent, points
from matchbound.show.records import Record
from matchbound.show.tables import as_table
from matchbound.show.terms import metric_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Sizes at which the chance is drawn, as multiples of the plan's.
FACTORS = (0.25, 0.4, 0.6, 0.8, 1.0, 1.3, 1.7)


def protocol_record(protocol: Protocol, path: str) -> Record:
    visits = protocol.visits
    return {
        "kind": protocol.kind,
        "comparisons": len(protocol),
        "identities": protocol.n_identities,
        "fewest_visits": int(visits.min()),
        "most_visits": int(visits.max()),
        "file": path,
    }


def protocol_text(record: Record, *, width: int | None = None, colour: bool = False) -> str:
    rows = [
        (f"{record['kind']} comparisons", f"{record['comparisons']:,}"),
        ("identities", f"{record['identities']:,}"),
        ("comparisons of an identity", f"{record['fewest_visits']:,} to {record['most_visits']:,}"),
        ("written to", str(record["file"])),
    ]
    return as_table(("", ""), rows).text(width, colour)


def plan_records(plan: Plan, curve: CostCurve) -> list[Record]:
    """One record for the plan, and one for each point of its cost curve and each rule of thumb."""
    expected, clean = plan.expected, plan.clean
    (own,) = plan.to_records()
    head: Record = {
        "what": "plan",
        **{"identities" if name == "n_identities" else name: value for name, value in own.items()},
        "chance_of_no_error": expected.no_error,
        **{name: getattr(expected, name) for name in ("width_most", "upper_most", "design_effect", "effective_n")},
        "claim": plan.claim,
        "claim_power": plan.claim_power,
        **{f"no_error_{name}": getattr(clean, name) for name in ("independent", "default", "wilson", "disjoint")},
        "correlation": plan.correlation,
        "correlation_doubt": plan.doubt,
        "dependence": plan.source,
    }

    def size(what: str, instances: int, identities: int, comparisons: int) -> Record:
        size = {"instances": instances, "identities": identities, "comparisons": comparisons}
        return {"what": what, "metric": plan.target.metric, **size}

    costs = [size("cost", row["instances"], row["n_identities"], row["comparisons"]) for row in curve.to_records()]
    rules = [
        {**size(rule.name, plan.instances, rule.n_identities, rule.comparisons), "chance": rule.chance}
        for rule in plan.rules
    ]
    return [head, *costs, *rules]


def plan_text(plan: Plan, curve: CostCurve, *, width: int | None = None, colour: bool = False) -> str:
    target, expected, clean = plan.target, plan.expected, plan.clean
    name = metric_name(target.metric)
    wanted = f"{level_text(target.level)} interval of at most {points(target.value)} points"
    if target.goal == "upper":
        wanted = f"{level_text(target.level)} upper bound of {percent(target.value)} or less"
    rows = [
        ("people", f"{plan.n_identities:,}"),
        ("instances of each", f"{plan.instances:,}"),
        ("comparisons, all pairs", f"{plan.comparisons:,}"),
        ("planned for the interval", plan.method),
        ("chance to meet the goal", f"about {100 * expected.chance:.0f}%"),
        ("errors to expect", f"{expected.errors:.4g}"),
        ("typical interval", f"{percent(expected.low)} to {percent(expected.high)}"),
        ("typical upper bound", percent(expected.upper)),
        ("design effect", f"{expected.design_effect:.3g}"),
    ]
    if plan.claim is not None:
        rows.append((f"power to show {name} below {percent(plan.claim)}", percent(plan.claim_power)))
    costs = [tuple(f"{value:,}" for value in row.values()) for row in curve.to_records()]
    rules = [(r.name, f"{r.comparisons:,}", f"{r.n_identities:,}", percent(r.chance)) for r in plan.rules]
    tables = (
        as_table(("instances of each", "people", "recordings", "comparisons"), costs, "The same goal with"),
        as_table(("rule of thumb", "comparisons", "people", "meets the goal"), rules),
    )
    parts = [
        f"Goal: {wanted}, where {name} is {percent(target.rate)}, with probability {level_text(target.power)}.\n",
        as_table(("", ""), rows).text(width, colour),
        *(table.text(width, colour) for table in tables if table.rows),
        f"No error at all would show {name} below {percent(clean.independent)} if comparisons were independent;\n"
        f"the upper bound would be {percent(clean.default)}, and comparisons that share nobody show\n"
        f"{percent(clean.disjoint)} whatever the dependence.\n"
        f"Correlation of errors that share a person: {plan.correlation:.3f}, give or take {plan.doubt:.3f} "
        f"({plan.source}).\n"
        "The chance is an average over what it may be.\n",
    ]
    return "\n".join(parts)


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
    ax.plot(sizes, [plan.study.chance(size) for size in sizes], marker="o", color="#1b4965")
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
