"""How many people to recruit, and how many instances of each, for an interval that is narrow enough.

The promise of a plan is about the data that will come: with probability `power` the interval that `evaluate` will
report is no wider than asked for, or its upper bound no higher. Half of all plans for the *expected* width miss it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from matchbound.arraytypes import IntArray
from matchbound.errors import MatchboundError, UsageError, argument
from matchbound.planning.predictive import n_comparisons
from matchbound.planning.study import LEAST_IDENTITIES, Expectation, Known, Study, Target, known_from
from matchbound.results.claims import Claim
from matchbound.results.interval import check_level, check_rate, check_whole, named
from matchbound.show.numbers import percent
from matchbound.show.shown import Shown
from matchbound.stats.intervals import wilson
from matchbound.stats.latent import DEFAULT, LatentSettings, Metric

# The smallest rate, other than 0, that can be planned for.
LEAST_RATE = 1e-15


@dataclass(frozen=True, eq=False)
class CostCurve(Shown):
    """Ways to reach the same goal, shape (K,): fewer people with more instances each, or more people with fewer."""

    instances: IntArray
    n_identities: IntArray
    recordings: IntArray
    comparisons: IntArray

    def to_records(self) -> list[dict[str, Any]]:
        columns = {name: getattr(self, name).tolist() for name in self.__dataclass_fields__}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def cheapest(self, per_identity: float, per_instance: float) -> int:
        """The place in the arrays that costs least, when to recruit a person and to record an instance have a price."""
        return int(np.argmin(per_identity * self.n_identities + per_instance * self.recordings))


@dataclass(frozen=True)
class Rule(Shown):
    """A rule of thumb as it would be used: comparisons it asks for, as if they were independent.

    Rule of 3: no error in N independent comparisons shows a rate below 3/N at 95%. Rule of 30: with 30 errors the rate
    is known to ±30% at 90% (both in Mansfield & Wayman, "Best Practices in Testing and Reporting Performance of
    Biometric Devices"). All comparisons among G people are G(G−1)/2 comparisons, and not as many independent ones.

    `n_identities` are people whose comparisons, all of them, are so many; `chance` is how often these people would meet
    the plan's target, dependence being accounted for.
    """

    name: str
    comparisons: int
    n_identities: int
    promise: str
    chance: float


@dataclass(frozen=True)
class ZeroErrors(Shown):
    """What no false accept (or reject) at all would show: upper bounds on the rate at `level`.

    `independent`: as if all comparisons were independent, 1 − (1−level)^(1/N), the rule of 3. `default`:
    ``upper_bound()`` of data with these correlations, the latent limit, never below `independent`. `disjoint`: from
    comparisons that share nobody alone (⌊G/2⌋ impostor pairs, or one genuine comparison of each identity), right
    whatever the dependence. `wilson`: Wilson's limit at ⌊G/2⌋ (FRR: G) effective comparisons.
    """

    metric: Metric
    n_identities: int
    instances: int
    comparisons: int
    level: float
    independent: float
    default: float
    disjoint: float
    wilson: float


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Shown):
    """The people and instances that a target needs, and what to expect of them.

    `correlation` is that of errors that share a person at the expected rate (FAR: ρ_s, FRR: ρ_w), `doubt` its standard
    error: of a pilot, and of the rise that is allowed for at small rates. The chance is an average over it. `clean` has
    the bounds after no error at all, at this size; `claim_power` is the probability that the upper bound at the
    target's level stays below `claim`, None where none was named.
    """

    target: Target
    n_identities: int
    instances: int
    comparisons: int
    correlation: float
    doubt: float
    expected: Expectation
    rules: tuple[Rule, ...]
    clean: ZeroErrors
    claim: float | None
    claim_power: float | None
    study: Study = field(repr=False)

    @property
    def method(self) -> str:
        """The interval that the plan is for: ``"latent"`` or ``"wilson"``."""
        return self.target.method

    @property
    def source(self) -> str:
        """Where the correlations come from."""
        return self.study.known.source

    def __repr__(self) -> str:
        target = self.target
        people = f"{self.n_identities:,} people, {self.instances} instances each"
        return (
            f"Plan({people}: {target.metric} {target.rate:g}, {target.goal} {target.value:g} at level {target.level:g})"
        )

    def to_records(self) -> list[dict[str, Any]]:
        """What was asked for, the people that it takes, and what to expect of them."""
        asked, expected = asdict(self.target), self.expected
        asked.pop("method")
        return [
            {
                **asked,
                "n_identities": self.n_identities,
                "instances": self.instances,
                "comparisons": self.comparisons,
                "chance": expected.chance,
                "expected_errors": expected.errors,
                "expected_low": expected.low,
                "expected_high": expected.high,
                "expected_upper": expected.upper,
            }
        ]

    def at(self, n_identities: int, instances: int | None = None) -> Expectation:
        """What another number of people, or of instances, would say; by default as many instances as in the plan."""
        return replace(self.study, instances=instances or self.instances).expect(n_identities)

    def power(self, claim: float, *, n_identities: int | None = None) -> float:
        """Probability that the upper bound at the target's level will lie below a claimed rate."""
        return _power(self.study, claim, n_identities or self.n_identities)

    def cost_curve(self, instances: Sequence[int] = (1, 2, 3, 5, 10)) -> CostCurve:
        """The people that the same goal needs with other numbers of instances per person."""
        sizes = {self.instances: self.n_identities}
        for m in instances:
            if m not in sizes and m >= _least_instances(self.target.metric):
                sizes[int(m)] = replace(self.study, instances=int(m)).smallest()
        tried, people = np.array(sorted(sizes.items()), dtype=np.int64).T
        pairs = [n_comparisons(self.target.metric, g, m) for m, g in sorted(sizes.items())]
        return CostCurve(tried, people, people * tried, np.array(pairs, dtype=np.int64))


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
    design_protocol, zero_errors

    Examples
    --------
    >>> import matchbound as mb
    >>> study = mb.plan(far=1e-3, upper=2e-3)
    >>> study.n_identities, study.rules[0].n_identities
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
    if claim is not None and not 0.0 < claim < 1.0:
        raise UsageError(f"claim must be a rate between 0 and 1; got {claim!r}")
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
        clean=zero_errors(size, instances=instances, metric=target.metric, level=level, known=known),
        claim=claim,
        claim_power=None if claim is None else _power(study, claim, size),
        study=study,
    )


def _least_instances(metric: Metric) -> int:
    return 2 if metric == "frr" else 1


def _power(study: Study, claim: float, n_identities: int) -> float:
    return replace(study, target=replace(study.target, goal="upper", value=claim)).chance(n_identities)


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
    if not (0.0 <= rate < 1.0) or 0.0 < rate < LEAST_RATE:
        raise UsageError(f"{metric} must be a rate below 1 and either 0 or at least {LEAST_RATE:g}; got {rate!r}")
    upper = claim if width is None and upper is None else upper
    check_level(level)
    check_rate(power, "power", "0.8")
    if power > 0.999:
        raise UsageError(f"power can be planned up to 0.999; got {power!r}")
    if width is not None and upper is None:
        return Target(metric, float(rate), "width", check_rate(width, "width"), level, power)
    if width is not None or upper is None:
        raise UsageError("give one of width (of the two-sided interval) and upper (the one-sided upper bound)")
    if not rate < upper < 1.0:
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


def zero_errors(
    n_identities: int,
    *,
    instances: int = 1,
    metric: Metric = "far",
    level: float = 0.95,
    known: Known | None = None,
) -> ZeroErrors:
    """Upper bounds on a rate after a test without errors: by the rule of 3, and with dependence accounted for.

    Parameters
    ----------
    n_identities, instances
        People who take part, and instances of each.
    metric, level
        ``"far"`` or ``"frr"``, and the confidence of the bounds.
    known
        How errors are correlated, as a plan knows it; by default the assumed correlations.

    Returns
    -------
    ZeroErrors
        The bounds, from the most cautious to the rule of 3.

    See Also
    --------
    plan

    Examples
    --------
    All comparisons of 174 people with one record each, in both orders, are 174·173 = 30,102, and 3/30,102 is
    1e-4. Only half of them are different comparisons, and only 87 share nobody:

    >>> from matchbound.planning.plan import zero_errors
    >>> clean = zero_errors(174)
    >>> clean.comparisons, round(clean.disjoint, 3)
    (15051, 0.034)
    """
    check_level(level)
    least = _least_instances(metric)
    if n_identities < 2 or instances < least:
        raise UsageError(f"{metric} needs at least 2 identities with {least} instances each")
    known = known_from(metric, None, None) if known is None else known
    model = known.study(known.scenarios(0.0, n_identities, instances)[0], n_identities, instances)
    comparisons = n_comparisons(metric, n_identities, instances)
    apart = disjoint_comparisons(metric, n_identities)
    return ZeroErrors(
        metric=metric,
        n_identities=n_identities,
        instances=instances,
        comparisons=comparisons,
        level=level,
        independent=exact_bound(comparisons, level),
        default=float(model.limit(0.0, model.deviate(level, "upper"), True)[0]),
        disjoint=exact_bound(apart, level),
        wilson=wilson(0.0, apart, 1.0 - level)[1],
    )


def disjoint_comparisons(metric: str, n_identities: int) -> int:
    """Comparisons that share nobody: one per two identities (FAR) or per identity (FRR)."""
    return n_identities // 2 if metric == "far" else n_identities


def exact_bound(comparisons: int, level: float) -> float:
    """The upper bound on a rate after no error in so many independent comparisons."""
    return -math.expm1(math.log1p(-level) / comparisons)


def _rules_of_thumb(study: Study) -> tuple[Rule, ...]:
    """The rule of 3 for the bound (or the rate) and the rule of 30 for the rate, with what they are worth here."""
    target = study.target
    bound = target.value if target.goal == "upper" else target.rate
    asked = (
        ("rule of 3", 3.0, bound, f"no error shows a rate below {bound:g} at 95%"),
        ("rule of 30", 30.0, target.rate, "30 errors give the rate to ±30% at 90%"),
    )
    rules = []
    for name, errors, rate, promise in asked:
        if rate > 0.0:
            comparisons = math.ceil(errors / rate - 1e-9)
            size = max(identities_for(target.metric, comparisons, study.instances), LEAST_IDENTITIES)
            rules.append(Rule(name, comparisons, size, promise, study.chance(size)))
    return tuple(rules)


def plan_for(
    claim: Claim, pilot: Any = None, *, instances: int = 2, rng: int | np.random.Generator | None = 0, **options: Any
) -> Plan:
    """How many people would show a claim about FAR or FRR, if the rate is what was seen.

    Parameters
    ----------
    claim
        About ``far`` or ``frr`` below a target that the estimate meets.
    pilot, instances, rng, options
        As for `plan`; the data at hand may be the pilot.

    Raises
    ------
    UsageError
        When the claim is about something else, or when the estimate itself does not meet the target: no sample size is
        expected to show it.

    Returns
    -------
    Plan

    See Also
    --------
    plan, Claim

    Examples
    --------
    >>> import matchbound as mb
    >>> claim = mb.evaluate(mb.demo_data(), threshold=0.6).far.claim(below=1e-9)
    >>> claim.verdict
    'refuted'
    """
    if claim.metric not in ("far", "frr") or claim.relation != "<":
        raise UsageError(f"plan_for plans claims that far or frr is below a target; this one is {claim.statement!r}")
    if claim.estimate >= claim.target:
        raise UsageError(
            f"{claim.statement}: the estimate is {claim.estimate:g}, so that no sample is expected to show it"
        )
    rate: dict[str, Any] = {claim.metric: claim.estimate}
    return plan(**rate, upper=claim.target, level=claim.level, pilot=pilot, instances=instances, rng=rng, **options)


def people_for(claim: Claim, pilot: Any = None, instances: int = 2) -> str | None:
    """One sentence with the number of people, or None where there is nothing to plan or it cannot be planned."""
    if claim.verdict != "not shown":
        return None
    try:
        study = plan_for(claim, pilot, instances=instances)
    except MatchboundError:
        return None
    return (
        f"Plan: {study.n_identities:,} people with {study.instances} instances each would show it with probability "
        f"{study.target.power:g} if the rate is {percent(claim.estimate)}"
    )
