"""How many people to recruit, and how many instances of each, for an interval that is narrow enough.

The promise of a plan is about the data that will come: with probability `power` the interval that `evaluate` will
report is no wider than asked for, or its upper bound no higher. Half of all plans for the *expected* width miss it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.errors import MatchboundError, UsageError, argument, check_level, check_rate, check_whole, named
from matchbound.planning.study import LEAST_IDENTITIES, Expectation, Study, Target, known_from, n_comparisons
from matchbound.results.claims import Claim
from matchbound.show.figures import Axis, Figure, Line, Mark, Rule, even_axis, log_axis
from matchbound.show.mpl import draw_panels
from matchbound.show.numbers import level_text, percent, points
from matchbound.show.records import Record
from matchbound.show.section import Section
from matchbound.show.shown import Shown
from matchbound.show.tables import as_table
from matchbound.show.terms import metric_name
from matchbound.stats.intervals import wilson
from matchbound.stats.latent.model import DEFAULT, LatentSettings, Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.counting.sources import AnySource

# Sizes at which the chance is drawn, as multiples of the plan's.
FACTORS = (0.25, 0.4, 0.6, 0.8, 1.0, 1.3, 1.7)
# The smallest rate, other than 0, that can be planned for.
LEAST_RATE = 1e-15
# Comparisons up to which data are a pilot of the study that would settle a claim.
MOST_PILOT = 2_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Shown):
    """The people and instances that a target needs, and what to expect of them.

    `correlation` is that of errors that share a person at the expected rate (FAR: ρ_s, FRR: ρ_w), `doubt` its standard
    error: of a pilot, and of the rise that is allowed for at small rates. The chance is an average over it. `rules` are
    rules of thumb as records: the comparisons that one asks for as if they were independent, the people whose
    comparisons, all of them, are as many, and the chance that these people meet the goal, dependence being accounted
    for. `claim_power` is the probability that the upper bound at the target's level stays below `claim`, None where
    none was named.
    """

    target: Target
    n_identities: int
    instances: int
    comparisons: int
    correlation: float
    doubt: float
    expected: Expectation
    rules: tuple[Record, ...]
    claim: float | None
    claim_power: float | None
    study: Study = field(repr=False)

    @property
    def method(self) -> str:
        """The interval that the plan is for: ``"latent"`` or ``"wilson"``."""
        return self.target.method

    def __repr__(self) -> str:
        target = self.target
        people = f"{self.n_identities:,} people, {self.instances} instances each"
        return (
            f"Plan({people}: {target.metric} {target.rate:g}, {target.goal} {target.value:g} at level {target.level:g})"
        )

    def at(self, n_identities: int, instances: int | None = None) -> Expectation:
        """What another number of people, or of instances, would say; by default as many instances as in the plan."""
        return replace(self.study, instances=instances or self.instances).expect(n_identities)

    def power(self, claim: float, *, n_identities: int | None = None) -> float:
        """Probability that the upper bound at the target's level will lie below a claimed rate."""
        return self.study.power(claim, n_identities or self.n_identities)

    def without_errors(self, n_identities: int | None = None, instances: int | None = None) -> dict[str, float]:
        """Upper bounds on the rate if not one comparison errs, by default at the planned size.

        ``"independent"``: as if all comparisons were independent, 1 − (1−level)^(1/N), the rule of 3. ``"default"``:
        ``upper_bound()`` of data with these correlations, the latent limit, never below the first. ``"wilson"``:
        Wilson's limit at ⌊G/2⌋ (FRR: G) effective comparisons. ``"disjoint"``: from comparisons that share nobody alone
        (⌊G/2⌋ impostor pairs, or one genuine comparison of each identity), right whatever the dependence.
        """
        people, m = n_identities or self.n_identities, instances or self.instances
        known, metric, level = self.study.known, self.target.metric, self.target.level
        model = known.study(known.scenarios(0.0, people, m)[0], people, m)
        apart = disjoint_comparisons(metric, people)
        return {
            "independent": exact_bound(n_comparisons(metric, people, m), level),
            "default": float(model.limit(0.0, model.deviate(level, "upper"), True)[0]),
            "wilson": wilson(0.0, apart, 1.0 - level)[1],
            "disjoint": exact_bound(apart, level),
        }

    def cost_curve(self, instances: Sequence[int] = (1, 2, 3, 5, 10)) -> list[Record]:
        """Ways to reach the same goal: fewer people with more instances each, or more people with fewer."""
        metric, least = self.target.metric, _least_instances(self.target.metric)
        sizes = {m: replace(self.study, instances=m).smallest() for m in instances if least <= m != self.instances}
        every = sorted({**sizes, self.instances: self.n_identities}.items())
        return [_size_record("cost", metric, m, g, n_comparisons(metric, g, m)) for m, g in every]

    def to_records(self, costs: Sequence[Record] = ()) -> list[Record]:
        """One record for the plan, one for each of the `costs` (its cost curve) and one for each rule of thumb."""
        asked, expected = asdict(self.target), self.expected
        asked.pop("method")
        head: Record = {
            "what": "plan",
            **asked,
            "identities": self.n_identities,
            "instances": self.instances,
            "comparisons": self.comparisons,
            "chance": expected.chance,
            "expected_errors": expected.errors,
            **{f"expected_{name}": getattr(expected, name) for name in ("low", "high", "upper")},
            "chance_of_no_error": expected.no_error,
            **{name: getattr(expected, name) for name in ("width_most", "upper_most", "design_effect", "effective_n")},
            "claim": self.claim,
            "claim_power": self.claim_power,
            **{f"no_error_{name}": bound for name, bound in self.without_errors().items()},
            "correlation": self.correlation,
            "correlation_doubt": self.doubt,
            "dependence": self.study.known.source,
        }
        return [head, *costs, *self.rules]

    def _section(self, costs: Sequence[Record] = ()) -> Section:
        """The plan, with its cost curve and the rules of thumb."""
        target, expected, clean = self.target, self.expected, self.without_errors()
        name = metric_name(target.metric)
        wanted = f"{level_text(target.level)} interval of at most {points(target.value)} points"
        if target.goal == "upper":
            wanted = f"{level_text(target.level)} upper bound of {percent(target.value)} or less"
        rows = [
            ("people", f"{self.n_identities:,}"),
            ("instances of each", f"{self.instances:,}"),
            ("comparisons, all pairs", f"{self.comparisons:,}"),
            ("planned for the interval", self.method),
            ("chance to meet the goal", f"about {100 * expected.chance:.0f}%"),
            ("errors to expect", f"{expected.errors:,.0f}" if expected.errors >= 10.0 else f"{expected.errors:.3g}"),
            ("typical interval", f"{percent(expected.low)} to {percent(expected.high)}"),
            ("typical upper bound", percent(expected.upper)),
            ("design effect", f"{expected.design_effect:.3g}"),
        ]
        if self.claim is not None:
            rows.append((f"power to show {name} below {percent(self.claim)}", percent(self.claim_power)))
        ways = []
        for row in costs:
            m, people = row["instances"], row["identities"]
            ways.append(tuple(f"{n:,}" for n in (m, people, m * people, row["comparisons"])))
        rules = [(r["what"], f"{r['comparisons']:,}", f"{r['identities']:,}", percent(r["chance"])) for r in self.rules]
        tables = (
            as_table(("", ""), rows),
            as_table(("instances of each", "people", "recordings", "comparisons"), ways, "The same goal with"),
            as_table(("rule of thumb", "comparisons", "people", "meets the goal"), rules),
        )
        after = (
            f"No error at all would show {name} below {percent(clean['independent'])} if comparisons were independent; "
            f"the upper bound would be {percent(clean['default'])}, and comparisons that share nobody show "
            f"{percent(clean['disjoint'])} whatever the dependence.",
            f"Correlation of errors that share a person: {self.correlation:.3f}, give or take {self.doubt:.3f} "
            f"({self.study.known.source}). The chance is an average over what it may be.",
        )
        return Section(
            "plan",
            "",
            f"Goal: {wanted}, where {name} is {percent(target.rate)}, with probability {level_text(target.power)}.",
            tables=tuple(table for table in tables if table.rows),
            parts=(Section("correlation", "", sentences=after),),
        )

    def plot(self, costs: Sequence[Record] | None = None) -> Sequence[Axes]:
        """People against instances for the same goal, and how often the goal is met with fewer or more people."""
        ways = self.cost_curve() if costs is None else costs
        each, people = (np.array([row[name] for row in ways], dtype=float) for name in ("instances", "identities"))
        recordings = each * people
        ticks = tuple((m, f"{m:g}") for m in each)
        cost = Figure(
            "cost",
            "The same goal with",
            Axis("instances per person", 0.9 * each[0], 1.1 * each[-1], "log", ticks),
            even_axis("needed", 0.0, 1.08 * recordings.max()),
            lines=(Line(each, people, "people", 0, "step"), Line(each, recordings, "people × instances", 1, "step")),
        )
        sizes = np.array(sorted({max(4, round(factor * self.n_identities)) for factor in FACTORS}), dtype=float)
        chance = Figure(
            "chance",
            f"Chance that the {self.target.goal} is ≤ {self.target.value:g}",
            log_axis(f"people, {self.instances} instances each", sizes[0], sizes[-1], counts=True),
            even_axis("chance", 0.0, 1.05),
            lines=(
                Line(sizes, np.array([self.study.chance(int(size)) for size in sizes]), style="step"),
                Line(sizes, np.full(sizes.size, self.target.power), style="dotted"),
            ),
            marks=tuple(Mark(rule["identities"], rule["chance"], rule["what"]) for rule in self.rules),
            rules=(Rule(self.n_identities),),
        )
        return draw_panels([cost, chance])


def plan(
    *,
    far: float | None = None,
    frr: float | None = None,
    width: float | None = None,
    upper: float | None = None,
    level: float = 0.95,
    power: float = 0.95,
    pilot: Any = None,
    design_effect: float | None = None,
    settings: LatentSettings = DEFAULT,
    method: str = "auto",
    instances: int = 2,
    claim: float | None = None,
    rng: int | np.random.Generator | None = 0,
) -> Plan:
    """How many people a study needs so that its interval will be narrow enough, or its bound low enough.

    All pairs are compared, every person has equally many instances, and the interval is that of `evaluate`.

    Parameters
    ----------
    far, frr
        The rate that the system is thought to have; one of them. 0 stands for "no errors at all".
    level, width, upper, power
        The two-sided interval at `level` is to be no wider than `width` (high − low), or the one-sided upper bound no
        higher than `upper`, with the probability `power` over the data that will be collected.
    pilot
        Data that show how errors of comparisons that share people are correlated: `Comparisons`, `Embeddings`,
        `ErrorRates`, or a `Tally` at thresholds where 1–50% err; best with as many instances of each person as are
        planned. Its correlations have an error, and the chance that a plan promises is an average over it.
    design_effect
        In the place of a pilot: a design effect that is to hold at the planned size.
    settings
        The numbers of the default interval. Without a pilot its assumed correlations are planned with, which are
        high ones of those seen on real sets.
    method
        The interval that will be used: ``"auto"`` (the default interval, which is ``"latent"``) or ``"wilson"``.
    instances
        Instances of each person; `Plan.cost_curve` shows other numbers.
    claim
        A rate that the bound is to stay below; with neither `width` nor `upper` it is the goal.
    rng
        Seed or generator of what is simulated.

    Returns
    -------
    Plan

    See Also
    --------
    design_protocol

    Examples
    --------
    >>> import matchbound as mb
    >>> study = mb.plan(far=1e-3, upper=2e-3)
    >>> study.n_identities, study.rules[0]["identities"]
    (1165, 28)
    """
    chosen = named(method, ("auto", "latent", "wilson"))
    target = _target(far, frr, width, upper, level, power, claim)
    target = replace(target, method="latent" if chosen == "auto" else chosen)
    check_whole(instances, "instances")
    least = _least_instances(target.metric)
    if not least <= instances <= 100:
        raise UsageError(
            f"{argument('instances')}: {target.metric.upper()} is planned with {least} to 100 per person; got "
            f"{instances}"
        )
    if claim is not None:
        check_rate(claim, "claim")
    known = known_from(target.metric, pilot, design_effect, settings)
    seed = rng if isinstance(rng, int) else int(np.random.default_rng(rng).integers(2**31))
    study = Study(target, known, int(instances), seed)
    size = study.smallest()
    scenarios = study.scenarios(size)
    rho = np.array([scenario.true[target.metric != "far"] for scenario in scenarios])
    weight = np.array([scenario.weight for scenario in scenarios])
    return Plan(
        target=target,
        n_identities=size,
        instances=int(instances),
        comparisons=study.comparisons(size),
        correlation=float(rho[0]),
        doubt=float(np.sqrt(weight @ (rho - weight @ rho) ** 2)),
        expected=study.expect(size),
        rules=_rules_of_thumb(study),
        claim=claim,
        claim_power=None if claim is None else study.power(claim, size),
        study=study,
    )


def _least_instances(metric: Metric) -> int:
    return 2 if metric == "frr" else 1


def _target(
    far: float | None,
    frr: float | None,
    width: float | None,
    upper: float | None,
    level: float,
    power: float,
    claim: float | None,
) -> Target:
    rate = frr if far is None else far
    if rate is None or (far is not None and frr is not None):
        raise UsageError(
            f"give one of {argument('far')} and {argument('frr')}: the rate that the system is thought to have"
        )
    metric: Metric = "frr" if far is None else "far"
    check_rate(rate, metric, zero=True)
    if 0.0 < rate < LEAST_RATE:
        raise UsageError(f"{metric} must be either 0 or at least {LEAST_RATE:g}; got {rate!r}")
    upper = claim if width is None and upper is None else upper
    check_level(level)
    check_rate(power, "power", "0.8")
    if power > 0.999:
        raise UsageError(f"power can be planned up to 0.999; got {power!r}")
    if width is not None and upper is None:
        return Target(metric, float(rate), "width", check_rate(width, "width"), level, power)
    if width is not None or upper is None:
        choice = f"{argument('width')} (of the two-sided interval) and {argument('upper')} (the one-sided upper bound)"
        raise UsageError(f"give one of {choice}")
    if not rate < check_rate(upper, "upper"):
        raise UsageError(
            f"{argument('upper')} must lie between the rate ({rate:g}) and 1: an upper bound below the assumed "
            f"rate cannot be reached; got {upper!r}"
        )
    return Target(metric, float(rate), "upper", float(upper), level, power)


def identities_for(metric: Metric, comparisons: int, instances: int) -> int:
    """The fewest people whose comparisons, all pairs, are at least so many."""
    if metric == "frr":
        return max(2, -(-comparisons // n_comparisons("frr", 1, instances)))
    guess = max(2, int(math.sqrt(2.0 * comparisons) / instances))
    while n_comparisons("far", guess, instances) < comparisons:
        guess += 1
    return guess


def disjoint_comparisons(metric: str, n_identities: int) -> int:
    """Comparisons that share nobody: one per two identities (FAR) or per identity (FRR)."""
    return n_identities // 2 if metric == "far" else n_identities


def exact_bound(comparisons: int, level: float) -> float:
    """The upper bound on a rate after no error in so many independent comparisons."""
    return -math.expm1(math.log1p(-level) / comparisons)


def _rules_of_thumb(study: Study) -> tuple[Record, ...]:
    """What rules of thumb ask for, and what that is worth here.

    Rule of 3: no error in N independent comparisons shows a rate below 3/N at 95%. Rule of 30: with 30 errors the rate
    is known to ±30% at 90% (both in Mansfield & Wayman, "Best Practices in Testing and Reporting Performance of
    Biometric Devices"). All comparisons among G people are G(G−1)/2 comparisons, and not as many independent ones.
    """
    target = study.target
    bound = target.value if target.goal == "upper" else target.rate
    rules = []
    for name, errors, rate in (("rule of 3", 3.0, bound), ("rule of 30", 30.0, target.rate)):
        if rate > 0.0:
            comparisons = math.ceil(errors / rate - 1e-9)
            size = max(identities_for(target.metric, comparisons, study.instances), LEAST_IDENTITIES)
            record = _size_record(name, target.metric, study.instances, size, comparisons)
            rules.append({**record, "chance": study.chance(size)})
    return tuple(rules)


def _size_record(what: str, metric: str, instances: int, identities: int, comparisons: int) -> Record:
    sizes = {"instances": instances, "identities": identities, "comparisons": comparisons}
    return {"what": what, "metric": metric, **sizes}


def with_plan(claim: Claim, data: AnySource) -> Claim:
    """An open claim with the people that would show it, if the rate is what was seen, among its rules.

    Claims that FAR or FRR is below a target which the estimate meets can be planned; the data at hand are the pilot.
    The plan takes the place of the factor `more_identities`, as it accounts for correlated errors.
    """
    below = claim.metric in ("far", "frr") and claim.relation == "<" and claim.estimate < claim.target
    if claim.verdict != "not shown" or not below:
        return claim
    if data.kind != "comparisons" or data.anonymous or len(data) > MOST_PILOT:
        return claim
    rate: dict[str, Any] = {claim.metric: claim.estimate}
    try:
        study = plan(**rate, upper=claim.target, level=claim.level, pilot=data)
    except MatchboundError:
        return claim
    people = (
        f"Plan: {study.n_identities:,} people with {study.instances} instances each would show it with probability "
        f"{study.target.power:g} if the rate is {percent(claim.estimate)}"
    )
    return replace(claim, rules=(*claim.rules, people), more_identities=None)
