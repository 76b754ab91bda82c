"""Plans and protocols, for people and for programs."""

from __future__ import annotations

from matchbound.planning.plan import CostCurve, Plan
from matchbound.planning.protocol import Protocol
from matchbound.show.numbers import level_text, percent, points
from matchbound.show.records import Record
from matchbound.show.tables import table_text as table


def protocol_record(protocol: Protocol, path: str) -> Record:
    """What a protocol holds, in one record."""
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
    """The record as a small table."""
    rows = [
        (f"{record['kind']} comparisons", f"{record['comparisons']:,}"),
        ("identities", f"{record['identities']:,}"),
        ("comparisons of an identity", f"{record['fewest_visits']:,} to {record['most_visits']:,}"),
        ("written to", str(record["file"])),
    ]
    return table(("", ""), rows, width=width, colour=colour)


def plan_records(plan: Plan, curve: CostCurve) -> list[Record]:
    """One record for the plan, and one for each point of its cost curve and each rule of thumb."""
    target, expected, clean = plan.target, plan.expected, plan.clean
    (own,) = plan.to_records()
    records: list[Record] = [
        {
            "what": "plan",
            **{"identities" if name == "n_identities" else name: value for name, value in own.items()},
            "chance_of_no_error": expected.no_error,
            "width_most": expected.width_most,
            "upper_most": expected.upper_most,
            "design_effect": expected.design_effect,
            "effective_n": expected.effective_n,
            "claim": plan.claim,
            "claim_power": plan.claim_power,
            "no_error_independent": clean.independent,
            "no_error_default": clean.default,
            "no_error_wilson": clean.wilson,
            "no_error_disjoint": clean.disjoint,
            "correlation": plan.correlation,
            "correlation_doubt": plan.doubt,
            "dependence": plan.source,
        }
    ]
    for row in curve.to_records():
        cost = {"instances": row["instances"], "identities": row["n_identities"], "comparisons": row["comparisons"]}
        records.append({"what": "cost", "metric": target.metric, **cost})
    for rule in plan.rules:
        size = {"instances": plan.instances, "identities": rule.n_identities, "comparisons": rule.comparisons}
        records.append({"what": rule.name, "metric": target.metric, **size, "chance": rule.chance})
    return records


def plan_text(plan: Plan, curve: CostCurve, *, width: int | None = None, colour: bool = False) -> str:
    """The plan as tables and sentences."""
    target, expected, clean = plan.target, plan.expected, plan.clean
    name = target.metric.upper()
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
    if plan.claim is not None and plan.claim_power is not None:
        rows.append((f"power to show {name} below {percent(plan.claim)}", percent(plan.claim_power)))
    parts = [
        f"Goal: {wanted}, where {name} is {percent(target.rate)}, with probability {level_text(target.power)}.\n",
        table(("", ""), rows, width=width, colour=colour),
        table(
            ("instances of each", "people", "recordings", "comparisons"),
            [tuple(f"{value:,}" for value in row.values()) for row in curve.to_records()],
            title="The same goal with",
            width=width,
            colour=colour,
        ),
    ]
    if plan.rules:
        parts.append(
            table(
                ("rule of thumb", "comparisons", "people", "meets the goal"),
                [(r.name, f"{r.comparisons:,}", f"{r.n_identities:,}", percent(r.chance)) for r in plan.rules],
                width=width,
                colour=colour,
            )
        )
    parts.append(
        f"No error at all would show {name} below {percent(clean.independent)} if comparisons were independent;\n"
        f"upper_bound() then gives {percent(clean.default)}, and comparisons that share nobody show\n"
        f"{percent(clean.disjoint)} whatever the dependence.\n"
        f"Correlation of errors that share a person: {plan.correlation:.3f}, give or take {plan.doubt:.3f} "
        f"({plan.source}).\n"
        "The chance is an average over what it may be.\n"
    )
    return "\n".join(parts)
