"""How many people to recruit, and how many instances of each, for an interval that is narrow enough.

The promise of a plan is about the data that will come: with probability `power` the interval that `evaluate`
will report is no wider than asked for, or its upper bound no higher. Half of all studies planned for the
*expected* width miss it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from matchbound.arraytypes import IntArray
from matchbound.errors import UsageError, argument
from matchbound.planning.goal import Expectation, Target, draws, expect, one_thread, smallest
from matchbound.planning.known import Known, known_from
from matchbound.planning.predictive import n_comparisons
from matchbound.planning.rules import Rule, ZeroErrors, rules_of_thumb, zero_errors
from matchbound.results.interval import check_level, check_rate, check_whole, named
from matchbound.show.shown import Shown
from matchbound.stats.latent.model import DEFAULT, LatentSettings, Metric

LEAST_RATE = 1e-15
"""The smallest rate, other than 0, that can be planned for."""


@dataclass(frozen=True, eq=False)
class CostCurve(Shown):
    """Ways to reach the same goal: fewer people with more instances each, or more people with fewer.

    instances, n_identities, recordings, comparisons : int64 arrays, shape (K,)
        M, G, G·M and all pairs.
    """

    instances: IntArray
    n_identities: IntArray
    recordings: IntArray
    comparisons: IntArray

    def to_records(self) -> list[dict[str, Any]]:
        """One record per number of instances."""
        names = ("instances", "n_identities", "recordings", "comparisons")
        columns = [getattr(self, name).tolist() for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def cheapest(self, per_identity: float, per_instance: float) -> int:
        """The place in the arrays that costs least, when a person and each of its instances have a price.

        Parameters
        ----------
        per_identity, per_instance
            What it costs to recruit a person, and to record one instance.
        """
        return int(np.argmin(per_identity * self.n_identities + per_instance * self.recordings))


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Shown):
    """The people and instances that a target needs, and what to expect of them.

    target
        What was asked for.
    n_identities, instances, comparisons
        People, instances of each, and all comparisons among them.
    correlation, doubt
        The correlation of errors that share a person at the expected rate (FAR: ρ_s, FRR: ρ_w), and its standard error:
        of a pilot, and of the rise that is allowed for at small rates. The chance is an average over it.
    source
        Where the correlations come from.
    expected
        What the data will show.
    rules
        The rule of 3 and the rule of 30 for comparison.
    clean
        The bounds after no error at all, at this size.
    claim, claim_power
        A rate that the bound is to stay below, and the probability that the upper bound at the target's level does;
        None where no claim was named.
    """

    target: Target
    n_identities: int
    instances: int
    comparisons: int
    correlation: float
    doubt: float
    source: str
    expected: Expectation
    rules: tuple[Rule, ...]
    clean: ZeroErrors
    claim: float | None
    claim_power: float | None
    known: Known = field(repr=False)
    seed: int = field(repr=False, default=0)

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

    def to_records(self) -> list[dict[str, Any]]:
        """What was asked for, the people that it takes, and what to expect of them."""
        target, expected = self.target, self.expected
        return [
            {
                "metric": target.metric,
                "rate": target.rate,
                "goal": target.goal,
                "value": target.value,
                "level": target.level,
                "power": target.power,
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
        """What another number of people, or of instances, would say.

        Parameters
        ----------
        n_identities
            How many people.
        instances
            Instances of each; by default those of the plan.
        """
        with one_thread():
            return expect(self.target, self.known, n_identities, instances or self.instances, self.seed)

    def power(self, claim: float, *, n_identities: int | None = None) -> float:
        """Probability that the upper bound at the target's level will lie below a claimed rate.

        Parameters
        ----------
        claim
            The rate that is to be undercut.
        n_identities
            How many people; by default those of the plan.
        """
        size = n_identities or self.n_identities
        target = replace(self.target, goal="upper", value=claim)
        with one_thread():
            return draws(target, self.known, size, self.instances, self.seed).met()

    def cost_curve(self, instances: Sequence[int] = (1, 2, 3, 5, 10)) -> CostCurve:
        """The people that the same goal needs with other numbers of instances.

        Parameters
        ----------
        instances
            Numbers of instances per person.
        """
        least = 2 if self.target.metric == "frr" else 1
        tried = np.array(sorted({m for m in (*instances, self.instances) if m >= least}), dtype=np.int64)
        with one_thread():
            sizes = [
                self.n_identities if m == self.instances else smallest(self.target, self.known, int(m), self.seed)
                for m in tried
            ]
        people = np.array(sizes, dtype=np.int64)
        pairs = [n_comparisons(self.target.metric, int(g), int(m)) for g, m in zip(people, tried, strict=True)]
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

    All pairs are compared, every person has equally many instances, and the interval is the default one of `evaluate`
    (`method` names another).

    Parameters
    ----------
    far, frr
        The rate that the system is thought to have; one of them. 0 stands for "no errors at all".
    width
        The two-sided interval at `level` is to be no wider than this (high − low); or
    upper
        the one-sided upper bound at `level` is to be no higher than this.
    power
        Probability with which the data that will be collected meet that goal.
    pilot
        Data that show how errors of comparisons that share people are correlated: `Comparisons`, `Embeddings`,
        `ErrorRates`, or a `Tally` at thresholds where 1–50% err; best with as many instances of each person as are
        planned. Its correlations have an error, and the chance that a plan promises is an average over it.
    design_effect
        In the place of a pilot: a design effect that is to hold at the planned size.
    settings
        The numbers of the default interval. Without a pilot its assumed correlations are planned with, which are high
        ones of those seen on real sets.
    method
        The interval that will be used: ``"auto"`` (the default interval, which is ``"latent"``) or ``"wilson"``.
    instances
        Instances of each person; `Plan.cost_curve` shows other numbers.
    claim
        A rate that the bound is to stay below; with neither `width` nor `upper` it is the goal.
    level
        The confidence of the interval or the bound that is planned for.
    rng
        Seed or generator of what is simulated.

    Returns
    -------
    Plan
        The people and instances that are needed, and what to expect of them.

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
    least = 2 if target.metric == "frr" else 1
    if not least <= instances <= 100:
        raise UsageError(
            f"{argument('instances')}: {target.metric.upper()} is planned with {least} to 100 per person; got "
            f"{instances}"
        )
    if claim is not None and not 0.0 < claim < 1.0:
        raise UsageError(f"claim must be a rate between 0 and 1; got {claim!r}")
    known = known_from(target.metric, pilot, design_effect, settings)
    seed = rng if isinstance(rng, int) else int(np.random.default_rng(rng).integers(2**31))
    with one_thread():
        size = smallest(target, known, int(instances), seed)
        expected = expect(target, known, size, int(instances), seed)
        rules = rules_of_thumb(target, known, int(instances), seed)
        clean = zero_errors(size, instances=instances, metric=target.metric, level=level, known=known)
    scenarios = known.scenarios(target.rate, size, int(instances))
    which = 0 if target.metric == "far" else 1
    rho = np.array([scenario.true[which] for scenario in scenarios])
    weight = np.array([scenario.weight for scenario in scenarios])
    made = Plan(
        target=target,
        n_identities=size,
        instances=int(instances),
        comparisons=n_comparisons(target.metric, size, int(instances)),
        correlation=float(rho[0]),
        doubt=float(np.sqrt(weight @ (rho - weight @ rho) ** 2)),
        source=known.source,
        expected=expected,
        rules=rules,
        clean=clean,
        claim=claim,
        claim_power=None,
        known=known,
        seed=seed,
    )
    return made if claim is None else replace(made, claim_power=made.power(claim))


def _target(
    far: float | None,
    frr: float | None,
    width: float | None,
    upper: float | None,
    level: float,
    power: float,
    claim: float | None,
) -> Target:
    """Check what was asked for."""
    if (far is None) == (frr is None):
        raise UsageError(
            f"give one of {argument('far')} and {argument('frr')}: the rate that the system is thought to have"
        )
    metric: Metric = "far" if far is not None else "frr"
    rate = far if far is not None else frr
    assert rate is not None
    if not (0.0 <= rate < 1.0) or 0.0 < rate < LEAST_RATE:
        raise UsageError(f"{metric} must be a rate below 1 and either 0 or at least {LEAST_RATE:g}; got {rate!r}")
    if width is None and upper is None:
        upper = claim
    if (width is None) == (upper is None):
        raise UsageError("give one of width (of the two-sided interval) and upper (the one-sided upper bound)")
    check_level(level)
    check_rate(power, "power", "0.8")
    if power > 0.999:
        raise UsageError(f"power can be planned up to 0.999; got {power!r}")
    if width is not None:
        check_rate(width, "width")
        return Target(metric, float(rate), "width", float(width), level, power)
    assert upper is not None
    if not rate < upper < 1.0:
        raise UsageError(
            f"{argument('upper')} must lie between the rate ({rate:g}) and 1: an upper bound below the assumed "
            "rate cannot be "
            f"reached; got {upper!r}"
        )
    return Target(metric, float(rate), "upper", float(upper), level, power)
