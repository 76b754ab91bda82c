"""What is wanted of a study, what a study of any size will show, and the smallest study that meets the goal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import UsageError
from matchbound.planning.known import Known, design_effect
from matchbound.planning.predictive import Predictive, n_comparisons, predictive
from matchbound.show.shown import Shown
from matchbound.stats.latent.model import LatentModel, Metric

Goal = Literal["width", "upper"]

MOST_IDENTITIES = 10_000_000
LEAST_IDENTITIES = 4
N_DRAWS = 1000
"""Draws behind each size that is tried, and behind what a plan reports."""
TOLERANCE = 1e-4
"""Of limits of single draws, in probits."""


@dataclass(frozen=True)
class Target:
    """What is wanted of the data: the rate that is expected, and the interval that is to come out.

    metric, rate
        ``"far"`` or ``"frr"``, and the value that it is thought to have.
    goal, value
        ``"width"``: the two-sided interval at `level` is no wider than `value`; ``"upper"``: the one-sided upper bound
        at `level` is no higher than `value`.
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
    method: str = "latent"


@dataclass(frozen=True)
class Expectation(Shown):
    """What data of a given size will show.

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
        Probability that there is none.
    design_effect, effective_n
        Comparisons divided by the effective sample size, and that size: as many independent comparisons.
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
class StudyDraws:
    """Draws of a study of one size: for each scenario, what data will show and the model that their interval uses."""

    target: Target
    parts: tuple[tuple[Predictive, LatentModel], ...]

    def limits(self, tail: float, *, lower: bool = True) -> tuple[FloatArray, FloatArray]:
        """Limits of every draw by the method that will be used; lower ones are 0 where they are not wanted."""
        found = [self._limits(part, model, tail, lower) for part, model in self.parts]
        return np.concatenate([low for low, _ in found]), np.concatenate([high for _, high in found])

    def _limits(self, part: Predictive, model: LatentModel, tail: float, lower: bool) -> tuple[FloatArray, FloatArray]:
        if self.target.method == "wilson":
            return part.wilson(tail)
        errors, deviate = part.estimate * model.comparisons, model.deviate(1.0 - tail, "upper")
        if not errors.any():  # every draw is the same
            high = model.limit(0.0, deviate, True)
            return np.zeros_like(errors), np.broadcast_to(high, errors.shape)
        high = model.limit(errors, deviate, True, relative=part.relative, tolerance=TOLERANCE)
        if not lower:
            return np.zeros_like(high), high
        return model.limit(errors, deviate, False, relative=part.relative, tolerance=TOLERANCE), high

    def met(self) -> float:
        """The share of draws that meet the goal."""
        target = self.target
        if target.goal == "width":
            low, high = self.limits((1.0 - target.level) / 2.0)
            return float(np.mean(high - low <= target.value))
        return float(np.mean(self.limits(1.0 - target.level, lower=False)[1] <= target.value))


def draws(
    target: Target, known: Known, n_identities: int, instances: int, seed: int, n_draws: int = N_DRAWS
) -> StudyDraws:
    """Draws at a size, from the same seed at every size, so that a search over sizes sees a smooth function.

    Each scenario has its share of the draws.
    """
    parts = []
    for scenario in known.scenarios(target.rate, n_identities, instances):
        part = predictive(
            target.metric,
            target.rate,
            n_identities,
            instances,
            scenario.true,
            n_draws=round(scenario.weight * n_draws),
            rng=np.random.default_rng(seed),
        )
        parts.append((part, known.study(scenario, n_identities, instances)))
    return StudyDraws(target, tuple(parts))


def expect(target: Target, known: Known, n_identities: int, instances: int, seed: int) -> Expectation:
    """What a study of a size will show."""
    drawn = draws(target, known, n_identities, instances, seed)
    low, high = drawn.limits((1.0 - target.level) / 2.0)
    upper = drawn.limits(1.0 - target.level, lower=False)[1]
    comparisons = n_comparisons(target.metric, n_identities, instances)
    effect = 1.0
    if target.rate > 0.0:
        central = known.scenarios(target.rate, n_identities, instances)[0]
        effect = design_effect(target.metric, target.rate, n_identities, instances, central.true)
    estimates = np.concatenate([part.estimate for part, _ in drawn.parts])
    return Expectation(
        n_identities=n_identities,
        instances=instances,
        comparisons=comparisons,
        low=float(np.median(low)),
        high=float(np.median(high)),
        width=float(np.mean(high - low)),
        width_most=float(np.quantile(high - low, target.power)),
        upper=float(np.median(upper)),
        upper_most=float(np.quantile(upper, target.power)),
        chance=drawn.met(),
        errors=target.rate * comparisons,
        no_error=float(np.mean(estimates == 0.0)),
        design_effect=effect,
        effective_n=comparisons / effect,
    )


def smallest(target: Target, known: Known, instances: int, seed: int) -> int:
    """The fewest people with which the goal is met with the target's power, to 2%.

    The probit of the chance is nearly linear in log G, so that a few sizes find it.
    """
    from scipy.special import ndtri

    wanted = float(ndtri(target.power))

    def gap(size: int) -> float:
        """How far the chance lies above the power, in probits."""
        chance = draws(target, known, size, instances, seed).met()
        away = float(ndtri(np.clip(chance, 1e-4, 1.0 - 1e-4))) - wanted
        return max(away, 0.0) if chance >= target.power else min(away, -1e-9)

    size = _first_guess(target, known, instances)
    tried = {size: gap(size)}
    while True:
        good = min((n for n, above in tried.items() if above >= 0.0), default=0)
        bad = max((n for n, above in tried.items() if above < 0.0 and (not good or n < good)), default=0)
        room = max(1, max(good, bad) // 50)
        if good == LEAST_IDENTITIES or (good and bad and good - bad <= room):
            return good
        size = _next_size(tried, good, bad, room)
        if size > MOST_IDENTITIES:
            raise UsageError(
                f"{target.goal}: {target.value:g} is not reached with {MOST_IDENTITIES:,} people and {instances} "
                "instances each; ask for less"
            )
        tried[size] = gap(size)


def _next_size(tried: dict[int, float], good: int, bad: int, room: int) -> int:
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
    return max(LEAST_IDENTITIES, int(size / step)) if good else int(size * step) + 1


def _first_guess(target: Target, known: Known, instances: int) -> int:
    """Where to start looking: the goal at the expected number of errors, without a margin, by doubling."""
    size = LEAST_IDENTITIES
    tail = (1.0 - target.level) / (2.0 if target.goal == "width" else 1.0)
    certain = replace(known, model=replace(known.model, shown_by=math.inf))
    while size < MOST_IDENTITIES:
        scenario = certain.scenarios(target.rate, size, instances)[0]
        model = certain.study(scenario, size, instances)
        errors, deviate = target.rate * model.comparisons, model.deviate(1.0 - tail, "upper")
        high = float(model.limit(errors, deviate, True)[0])
        low = float(model.limit(errors, deviate, False)[0]) if target.goal == "width" else 0.0
        if high - low <= target.value:
            break
        size = int(size * 1.5) + 1
    return min(size, MOST_IDENTITIES)


@contextmanager
def one_thread() -> Iterator[None]:
    """The matrices of a plan are so small that a second BLAS thread only gets in the way."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield
