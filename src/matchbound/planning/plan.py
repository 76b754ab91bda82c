"""How many people to recruit, and how many instances of each, for an interval that is narrow enough.

The promise of a plan is about the data that will come: with probability `power` the interval that `evaluate`
will report is no wider than asked for, or its upper bound no higher. Half of all studies planned for the
*expected* width miss it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from matchbound.errors import MatchboundWarning, UsageError
from matchbound.planning.foresight import Foresight, chance_of_none, foresee
from matchbound.planning.latent_model import (
    UNKNOWN,
    Dependence,
    Metric,
    design_effect,
    n_comparisons,
    variance,
)
from matchbound.planning.rules import Rule, ZeroErrors, identities_for, zero_errors

IntArray = NDArray[np.int64]
Goal = Literal["width", "upper"]

MOST_IDENTITIES = 10_000_000
N_DRAWS = 4000
"""Draws behind what a plan reports; the search for its size takes half of them."""


@dataclass(frozen=True)
class Target:
    """What is wanted of the data: the rate that is expected, and the interval that is to come out.

    metric, rate
        ``"far"`` or ``"frr"``, and the value that it is thought to have.
    goal, value
        ``"width"``: the two-sided interval at `level` is no wider than `value`; ``"upper"``: the one-sided
        upper bound at `level` is no higher than `value`.
    power
        The probability with which the data meet the goal.
    """

    metric: Metric
    rate: float
    goal: Goal
    value: float
    level: float
    power: float

    def met(self, foresight: Foresight) -> float:
        """The share of draws that meet the goal."""
        if self.goal == "width":
            low, high = foresight.wilson((1.0 - self.level) / 2.0)
            return float(np.mean(high - low <= self.value))
        return float(np.mean(foresight.wilson(1.0 - self.level)[1] <= self.value))


@dataclass(frozen=True)
class Expectation:
    """What data of a given size will say.

    low, high
        Medians of the limits of the two-sided interval at the plan's level.
    width, width_most
        Mean width, and the width that is not exceeded with the plan's power.
    upper, upper_most
        Median of the one-sided upper bound, and the bound that is not exceeded with the plan's power.
    chance
        Probability that the plan's goal is met.
    errors
        Expected number of errors.
    no_error
        Probability that there is none, in which case the bound rests on the number of people alone.
    design_effect, effective_n
        Comparisons that tell as much as one independent one, and how many independent ones all of them amount to.
    """

    n_identities: int
    instances: int
    comparisons: int
    low: float
    high: float
    width: float
    width_most: float
    upper: float
    upper_most: float
    chance: float
    errors: float
    no_error: float
    design_effect: float
    effective_n: float


@dataclass(frozen=True, eq=False)
class CostCurve:
    """Ways to reach the same goal: fewer people with more instances each, or more people with fewer.

    instances, n_identities, recordings, comparisons : int64 arrays, shape (K,)
        M, G, G·M and all pairs.
    """

    instances: IntArray
    n_identities: IntArray
    recordings: IntArray
    comparisons: IntArray

    def cheapest(self, per_identity: float, per_instance: float) -> int:
        """The place in the arrays that costs least, when a person and each of its instances have a price."""
        return int(np.argmin(per_identity * self.n_identities + per_instance * self.recordings))


@dataclass(frozen=True, eq=False)
class Plan:
    """The people and instances that a target needs, and what to expect of them.

    target
        What was asked for.
    n_identities, instances, comparisons
        People, instances of each, and all comparisons among them.
    dependence
        The correlations that were assumed, at this size.
    expected
        What the data will say.
    rules
        The rule of 3 and the rule of 30 beside it.
    clean
        What no error at all would show at this size.
    claim, claim_power
        A rate that is to be undercut, and the probability that the upper bound at the target's level does it; None
        where no claim was named.
    """

    target: Target
    n_identities: int
    instances: int
    comparisons: int
    dependence: Dependence
    expected: Expectation
    rules: tuple[Rule, ...]
    clean: ZeroErrors
    claim: float | None
    claim_power: float | None
    stated: Dependence | float = field(repr=False, default=UNKNOWN)
    seed: int = field(repr=False, default=0)

    def at(self, n_identities: int, instances: int | None = None) -> Expectation:
        """What another number of people, or of instances, would say."""
        with _one_thread():
            return _expect(self.target, self.stated, n_identities, instances or self.instances, self.seed)

    def power(self, claim: float, *, n_identities: int | None = None) -> float:
        """Probability that the upper bound at the target's level will lie below a claimed rate."""
        size = n_identities or self.n_identities
        with _one_thread():
            foresight = _draw(self.target, self.stated, size, self.instances, self.seed)
        return replace(self.target, goal="upper", value=claim).met(foresight)

    def cost_curve(self, instances: Sequence[int] = (1, 2, 3, 5, 10)) -> CostCurve:
        """The people that the same goal needs with other numbers of instances."""
        least = 2 if self.target.metric == "frr" else 1
        tried = np.array(sorted({m for m in (*instances, self.instances) if m >= least}), dtype=np.int64)
        with _one_thread():
            people = np.array([_smallest(self.target, self.stated, int(m), self.seed) for m in tried], dtype=np.int64)
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
    dependence: Any = None,
    instances: int = 2,
    claim: float | None = None,
    rng: int | np.random.Generator | None = 0,
) -> Plan:
    """How many people a study needs so that its interval will be narrow enough, or its bound low enough.

    All pairs are compared, every person has equally many instances, and the interval is `evaluate`'s Wilson interval.

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
    dependence
        What is known about comparisons that share people. ``None``: nothing, and a cautious default stands
        in. A number: a design effect that is to hold at the planned size. A `Dependence`: latent
        correlations. A pilot: its `Tally`, `ErrorRates` (of thresholds where 1–50% err), `Comparisons` or
        `Embeddings`.
    instances
        Instances of each person; `Plan.cost_curve` shows other numbers.
    claim
        A rate that is to be undercut; with neither `width` nor `upper` it is the goal.

    Examples
    --------
    >>> import matchbound as mb
    >>> study = mb.plan(far=1e-3, upper=2e-3)
    >>> study.n_identities > study.rules[0].n_identities
    True
    """
    from matchbound.planning.pilot import as_dependence

    target = _target(far, frr, width, upper, level, power, claim)
    if isinstance(instances, bool) or not isinstance(instances, (int, np.integer)):
        raise UsageError(f"instances must be a whole number; got {instances!r}")
    least = 2 if target.metric == "frr" else 1
    if instances < least:
        raise UsageError(f"instances must be at least {least} for {target.metric.upper()}; got {instances}")
    if instances > 100:
        raise UsageError(f"instances: plans go up to 100 instances a person; got {instances}")
    if claim is not None and not 0.0 < claim < 1.0:
        raise UsageError(f"claim must be a rate between 0 and 1; got {claim!r}")
    stated = as_dependence(dependence)
    seed = rng if isinstance(rng, int) else int(np.random.default_rng(rng).integers(2**31))
    with _one_thread():
        made = _made(target, stated, int(instances), claim, seed)
    if made.dependence.shared > 0.15 and target.metric == "far":
        warnings.warn(
            f"people differ strongly (shared correlation {made.dependence.shared:.2f}): a few of them make most "
            "false accepts, and a sample that misses them looks better than the truth. Take more people than planned",
            MatchboundWarning,
            stacklevel=2,
        )
    return made if claim is None else replace(made, claim_power=made.power(claim))


def _made(target: Target, stated: Dependence | float, instances: int, claim: float | None, seed: int) -> Plan:
    """The plan for a target that was checked."""
    size = _smallest(target, stated, instances, seed)
    known = _at_size(target, stated, size, instances)
    return Plan(
        target,
        size,
        instances,
        n_comparisons(target.metric, size, instances),
        known,
        _expect(target, stated, size, instances, seed),
        _rules(target, stated, instances, seed),
        zero_errors(size, instances=instances, metric=target.metric, level=target.level, dependence=known, rng=seed),
        claim,
        None,
        stated,
        seed,
    )


@contextmanager
def _one_thread() -> Iterator[None]:
    """The matrices here are so small that a second BLAS thread only gets in the way."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


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
        raise UsageError("give one of far and frr: the rate that the system is thought to have")
    metric: Metric = "far" if far is not None else "frr"
    rate = far if far is not None else frr
    assert rate is not None
    if not 0.0 <= rate < 1.0:
        raise UsageError(f"{metric} must be a rate, at least 0 and below 1; got {rate!r}")
    if width is None and upper is None:
        upper = claim
    if (width is None) == (upper is None):
        raise UsageError("give one of width (of the two-sided interval) and upper (the one-sided upper bound)")
    for name, value in (("level", level), ("power", power)):
        if not 0.0 < value < 1.0:
            raise UsageError(f"{name} must lie between 0 and 1, such as 0.95; got {value!r}")
    if power > 0.999:
        raise UsageError(f"power can be planned up to 0.999; got {power!r}")
    if width is not None:
        if not 0.0 < width < 1.0:
            raise UsageError(f"width must lie between 0 and 1; got {width!r}")
        return Target(metric, float(rate), "width", float(width), level, power)
    assert upper is not None
    if not rate < upper < 1.0:
        raise UsageError(
            f"upper must lie between the rate ({rate:g}) and 1: a bound below the truth is not to be had; got {upper!r}"
        )
    return Target(metric, float(rate), "upper", float(upper), level, power)


def _at_size(target: Target, stated: Dependence | float, n_identities: int, instances: int) -> Dependence:
    """The correlations at a size: those stated, or those that make a stated design effect come true there.

    A design effect says nothing about its parts, so the correlations keep the proportions of the cautious default.
    """
    if isinstance(stated, Dependence):
        return stated.at(instances)
    if stated <= 1.0 or target.rate == 0.0:
        return Dependence(0.0, 0.0, 0.0, f"design effect {stated:g}")

    usual = UNKNOWN.at(instances)

    def scaled(factor: float) -> Dependence:
        shared, own = min(factor * usual.shared, 0.49), min(factor * usual.genuine, 0.999)
        same = min(max(factor * usual.same, 2.0 * shared), 0.99)
        return Dependence(shared, same, own, f"design effect {stated:g}")

    low, high = 0.0, 4.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        if design_effect(target.metric, target.rate, n_identities, instances, scaled(middle)) < stated:
            low = middle
        else:
            high = middle
    return scaled(high)


def _draw(
    target: Target,
    stated: Dependence | float,
    n_identities: int,
    instances: int,
    seed: int,
    n_draws: int = N_DRAWS,
) -> Foresight:
    """Draws at a size, from the same seed at every size, so that a search over sizes sees a smooth function."""
    known = _at_size(target, stated, n_identities, instances)
    generator = np.random.default_rng(seed)
    return foresee(target.metric, target.rate, n_identities, instances, known, n_draws=n_draws, rng=generator)


def _smallest(target: Target, stated: Dependence | float, instances: int, seed: int) -> int:
    """The fewest people with which the goal is met with the target's power."""
    least = 4

    def enough(size: int) -> bool:
        return target.met(_draw(target, stated, size, instances, seed, N_DRAWS // 2)) >= target.power

    size = max(least, _first_guess(target, stated, instances))
    if enough(size):
        good = size
        bad = max(least, int(good / 1.4))
        while bad > least and enough(bad):
            good, bad = bad, max(least, int(bad / 1.4))
        if bad == least and enough(bad):
            return least
    else:
        bad, good = size, int(size * 1.4) + 1
        while not enough(good):
            bad, good = good, int(good * 1.4) + 1
            if good > MOST_IDENTITIES:
                raise UsageError(
                    f"{target.goal}: {target.value:g} is not reached with {MOST_IDENTITIES:,} people and {instances} "
                    "instances each; ask for less"
                )
    while good - bad > max(1, good // 400):
        middle = (good + bad) // 2
        if enough(middle):
            good = middle
        else:
            bad = middle
    return good


def _first_guess(target: Target, stated: Dependence | float, instances: int) -> int:
    """Where to start looking: the normal approximation with the model's variance, by doubling."""
    from scipy.special import ndtri

    if target.rate == 0.0:
        z2 = float(ndtri(target.level if target.goal == "upper" else (1.0 + target.level) / 2.0)) ** 2
        return math.ceil((2.0 if target.metric == "far" else 1.0) * z2 * (1.0 / target.value - 1.0))
    if target.goal == "width":
        wanted = target.value / (2.0 * float(ndtri((1.0 + target.level) / 2.0)))
    else:
        wanted = (target.value - target.rate) / float(ndtri(target.level) + ndtri(target.power))
    size = 4
    while size < MOST_IDENTITIES:
        known = _at_size(target, stated, size, instances)
        if variance(target.metric, target.rate, size, instances, known) <= wanted * abs(wanted):
            break
        size = int(size * 1.25) + 1
    return size


def _expect(target: Target, stated: Dependence | float, n_identities: int, instances: int, seed: int) -> Expectation:
    known = _at_size(target, stated, n_identities, instances)
    foresight = _draw(target, stated, n_identities, instances, seed)
    low, high = foresight.wilson((1.0 - target.level) / 2.0)
    upper = foresight.wilson(1.0 - target.level)[1]
    effect, none = 1.0, 1.0
    if target.rate > 0.0:
        effect = design_effect(target.metric, target.rate, n_identities, instances, known)
        generator = np.random.default_rng(seed)
        none = chance_of_none(target.metric, n_identities, instances, known, rng=generator)(target.rate)
    return Expectation(
        n_identities,
        instances,
        foresight.comparisons,
        float(np.median(low)),
        float(np.median(high)),
        float(np.mean(high - low)),
        float(np.quantile(high - low, target.power)),
        float(np.median(upper)),
        float(np.quantile(upper, target.power)),
        target.met(foresight),
        target.rate * foresight.comparisons,
        none,
        effect,
        foresight.comparisons / effect,
    )


def _rules(target: Target, stated: Dependence | float, instances: int, seed: int) -> tuple[Rule, ...]:
    """The rule of 3 for the bound (or the rate) and the rule of 30 for the rate, with what they are worth here."""
    asked: list[tuple[str, float, str]] = []
    bound = target.value if target.goal == "upper" else target.rate
    if bound > 0.0:
        asked.append(("rule of 3", 3.0 / bound, f"no error shows a rate below {bound:g} at 95%"))
    if target.rate > 0.0:
        asked.append(("rule of 30", 30.0 / target.rate, "30 errors give the rate to ±30% at 90%"))
    rules = []
    for name, wanted, promise in asked:
        comparisons = math.ceil(wanted - 1e-9)
        size = max(identities_for(target.metric, comparisons, instances), 4)
        chance = target.met(_draw(target, stated, size, instances, seed))
        rules.append(Rule(name, comparisons, size, promise, chance))
    return tuple(rules)
