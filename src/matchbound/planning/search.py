"""Find the smallest study that meets a target, and say what a study of any size will show."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import UsageError
from matchbound.planning.foresight import Foresight, chance_of_none, foresee
from matchbound.planning.latent_limits import planned
from matchbound.planning.latent_model import UNKNOWN, Dependence, Metric, design_effect, variance
from matchbound.planning.rules import Rule, identities_for
from matchbound.show.shown import Shown

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
    method
        The interval that will be used: ``"latent"`` or ``"wilson"``.
    """

    metric: Metric
    rate: float
    goal: Goal
    value: float
    level: float
    power: float
    method: str = "wilson"

    def limits(self, foresight: Foresight, tail: float, *, lower: bool = True) -> tuple[FloatArray, FloatArray]:
        """Limits of each draw by the method that will be used."""
        if self.method == "wilson" or foresight.planned is None:
            return foresight.wilson(tail)
        return foresight.planned.limits(foresight.estimate, foresight.variance, tail, lower=lower)

    def met(self, foresight: Foresight) -> float:
        """The share of draws that meet the goal."""
        if self.goal == "width":
            low, high = self.limits(foresight, (1.0 - self.level) / 2.0)
            return float(np.mean(high - low <= self.value))
        return float(np.mean(self.limits(foresight, 1.0 - self.level, lower=False)[1] <= self.value))


@dataclass(frozen=True)
class Expectation(Shown):
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
        Comparisons divided by the effective sample size, and that size: as many independent comparisons.

    See Also
    --------
    Plan

    Examples
    --------
    >>> import matchbound as mb
    >>> made = mb.plan(frr=0.05, width=0.1, instances=3)
    >>> round(made.at(made.n_identities).chance, 2)
    0.95
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


@contextmanager
def one_thread() -> Iterator[None]:
    """The matrices here are so small that a second BLAS thread only gets in the way."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


def dependence_at(target: Target, stated: Dependence | float, n_identities: int, instances: int) -> Dependence:
    """The correlations at a size: those stated, or those that make a stated design effect come true there.

    A design effect says nothing about its parts, so the correlations keep the proportions of the cautious default.
    """
    if isinstance(stated, Dependence):
        known = stated.at(instances)
        return known.in_tail(target.rate) if target.method == "latent" and stated.source != "stated" else known
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


def draw(
    target: Target,
    stated: Dependence | float,
    n_identities: int,
    instances: int,
    seed: int,
    n_draws: int = N_DRAWS,
) -> Foresight:
    """Draws at a size, from the same seed at every size, so that a search over sizes sees a smooth function."""
    known = dependence_at(target, stated, n_identities, instances)
    generator = np.random.default_rng(seed)
    made = foresee(target.metric, target.rate, n_identities, instances, known, n_draws=n_draws, rng=generator)
    if target.method == "wilson":
        return made
    # the limits rest on what will be seen where errors are plentiful, the draws on the tail
    seen = stated.at(instances) if isinstance(stated, Dependence) else known
    return replace(made, planned=planned(target.metric, n_identities, instances, seen))


@lru_cache(maxsize=64)
def smallest(target: Target, stated: Dependence | float, instances: int, seed: int) -> int:
    """The fewest people with which the goal is met with the target's power."""
    least = 4

    def enough(size: int) -> bool:
        return target.met(draw(target, stated, size, instances, seed, N_DRAWS // 2)) >= target.power

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
    while good - bad > max(1, good // (400 if target.method == "wilson" else 100)):
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
        room = float(ndtri(target.level) + ndtri(target.power))
        if room <= 0.0:  # a bound that holds less than half of the time lies below the rate: anything may do
            return 4
        wanted = (target.value - target.rate) / room
    size = 4
    while size < MOST_IDENTITIES:
        known = dependence_at(target, stated, size, instances)
        if variance(target.metric, target.rate, size, instances, known) <= wanted * abs(wanted):
            break
        size = int(size * 1.25) + 1
    return size


def expect(target: Target, stated: Dependence | float, n_identities: int, instances: int, seed: int) -> Expectation:
    known = dependence_at(target, stated, n_identities, instances)
    foresight = draw(target, stated, n_identities, instances, seed)
    low, high = target.limits(foresight, (1.0 - target.level) / 2.0)
    upper = target.limits(foresight, 1.0 - target.level, lower=False)[1]
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


def rules_of_thumb(target: Target, stated: Dependence | float, instances: int, seed: int) -> tuple[Rule, ...]:
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
        chance = target.met(draw(target, stated, size, instances, seed))
        rules.append(Rule(name, comparisons, size, promise, chance))
    return tuple(rules)
