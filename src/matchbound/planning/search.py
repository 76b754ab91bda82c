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
Draws = tuple[Foresight, ...]
"""Draws of what planned data will say, a part for each set of correlations that they may have."""

MOST_IDENTITIES = 10_000_000
TAIL_END = 1e-3
"""Below this rate people are thought to differ no more than at it."""
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

    def limits(self, parts: Draws, tail: float, *, lower: bool = True) -> tuple[FloatArray, FloatArray]:
        """Limits of each draw by the method that will be used."""
        found = [
            part.wilson(tail)
            if self.method == "wilson" or part.planned is None
            else part.planned.limits(part.estimate, part.variance, tail, lower=lower)
            for part in parts
        ]
        return np.concatenate([low for low, _ in found]), np.concatenate([high for _, high in found])

    def met(self, parts: Draws) -> float:
        """The share of draws that meet the goal."""
        if self.goal == "width":
            low, high = self.limits(parts, (1.0 - self.level) / 2.0)
            return float(np.mean(high - low <= self.value))
        return float(np.mean(self.limits(parts, 1.0 - self.level, lower=False)[1] <= self.value))


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
        told = stated.source == "stated" or target.rate == 0.0
        return known if told else known.in_tail(max(target.rate, TAIL_END))
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
) -> Draws:
    """Draws at a size, from the same seed at every size, so that a search over sizes sees a smooth function.

    Where correlations are in doubt, each of the sets that they may be has its share of the draws.
    """
    if not isinstance(stated, Dependence) or target.rate == 0.0:
        return (_draw(target, stated, n_identities, instances, seed, n_draws),)
    return tuple(
        _draw(target, known, n_identities, instances, seed, round(weight * n_draws))
        for weight, known in stated.possible(target.metric)
    )


def _draw(
    target: Target, stated: Dependence | float, n_identities: int, instances: int, seed: int, n_draws: int
) -> Foresight:
    known = dependence_at(target, stated, n_identities, instances)
    generator = np.random.default_rng(seed)
    made = foresee(target.metric, target.rate, n_identities, instances, known, n_draws=n_draws, rng=generator)
    if target.method == "wilson":
        return made
    if not isinstance(stated, Dependence):
        return replace(made, planned=planned(target.metric, n_identities, instances, known))
    return replace(made, planned=planned(target.metric, n_identities, instances, stated.at(instances)))


@lru_cache(maxsize=64)
def smallest(target: Target, stated: Dependence | float, instances: int, seed: int) -> int:
    """The fewest people with which the goal is met with the target's power, to 2% (Wilson: 0.25%).

    The probit of the chance is nearly linear in log G, so that a few sizes find it.
    """
    from scipy.special import ndtri

    least = 4
    wanted = float(ndtri(target.power))

    def gap(size: int) -> float:
        """How far the chance lies above the power, in probits."""
        chance = target.met(draw(target, stated, size, instances, seed, N_DRAWS // 2))
        away = float(ndtri(np.clip(chance, 1e-4, 1.0 - 1e-4))) - wanted
        return max(away, 0.0) if chance >= target.power else min(away, -1e-9)

    size = max(least, _first_guess(target, stated, instances))
    tried = {size: gap(size)}
    while True:
        good = min((n for n, above in tried.items() if above >= 0.0), default=0)
        bad = max((n for n, above in tried.items() if above < 0.0 and (not good or n < good)), default=0)
        room = max(1, max(good, bad) // (400 if target.method == "wilson" else 50))
        if good == least or (good and bad and good - bad <= room):
            return good
        size = _next_size(tried, good, bad, room, least)
        if size > MOST_IDENTITIES:
            raise UsageError(
                f"{target.goal}: {target.value:g} is not reached with {MOST_IDENTITIES:,} people and {instances} "
                "instances each; ask for less"
            )
        tried[size] = gap(size)


def _next_size(tried: dict[int, float], good: int, bad: int, room: int, least: int) -> int:
    """The next size to try, given the gaps of those tried: the smallest that is enough, and the largest below it."""
    if good and bad:
        if len(tried) > 12:
            return (good + bad) // 2
        # where the line between them meets the power, and on from there, away from what was tried last
        crossing = math.exp(math.log(bad) + math.log(good / bad) * tried[bad] / (tried[bad] - tried[good]))
        aim = crossing + (0.4 if next(reversed(tried)) == bad else -0.4) * room
        return min(max(round(aim), bad + 1), good - 1)
    size, step = good or bad, 1.4
    if len(tried) > 1:  # on along the line through the last two, and a little beyond
        (one, first), (two, second) = list(tried.items())[-2:]
        slope = (second - first) / math.log(two / one)
        step = min(max(math.exp(abs(second) / slope + 0.05), 1.1), 2.0) if slope > 0.1 else 2.0
    return max(least, int(size / step)) if good else int(size * step) + 1


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
    parts = draw(target, stated, n_identities, instances, seed)
    comparisons = parts[0].comparisons
    low, high = target.limits(parts, (1.0 - target.level) / 2.0)
    upper = target.limits(parts, 1.0 - target.level, lower=False)[1]
    effect, none = 1.0, 1.0
    if target.rate > 0.0:
        effect = design_effect(target.metric, target.rate, n_identities, instances, known)
        generator = np.random.default_rng(seed)
        none = chance_of_none(target.metric, n_identities, instances, known, rng=generator)(target.rate)
    return Expectation(
        n_identities,
        instances,
        comparisons,
        float(np.median(low)),
        float(np.median(high)),
        float(np.mean(high - low)),
        float(np.quantile(high - low, target.power)),
        float(np.median(upper)),
        float(np.quantile(upper, target.power)),
        target.met(parts),
        target.rate * comparisons,
        none,
        effect,
        comparisons / effect,
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
