"""A study that does not exist yet: what is known about dependence, what a size will show, and the smallest that does.

A plan takes its correlations, and their error, from the model that the interval itself uses: fitted to a pilot, or with
the assumed correlations of `LatentSettings` where there is none.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from matchbound.arraytypes import FloatArray
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.planning.predictive import MOST_SHARED, Predictive, n_comparisons, predictive
from matchbound.show.shown import Shown
from matchbound.stats.intervals import ndtri
from matchbound.stats.latent import DEFAULT, MOST, Clusters, LatentModel, LatentSettings, Metric, all_pairs

FEWEST_IDENTITIES = 30
LEAST_IDENTITIES, MOST_IDENTITIES = 4, 10_000_000
# A score beyond all scores: a threshold there has no errors of one kind.
NOWHERE = 1e30
# No design effect is larger than the number of comparisons of one person, and of all it is far smaller.
MOST_EFFECT = 1e6
# Draws behind each size that is tried, and behind what a plan reports.
N_DRAWS = 1000
# Of limits of single draws, in probits.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Target:
    """What is wanted of the data: the rate that is expected, and the interval that is to come out.

    The goal ``"width"``: the two-sided interval at `level` is no wider than `value`; ``"upper"``: the one-sided upper
    bound at `level` is no higher than `value`. The data meet it with probability `power`.
    """

    metric: Metric
    rate: float
    goal: Literal["width", "upper"]
    value: float
    level: float
    power: float
    method: str = "latent"


@dataclass(frozen=True)
class Expectation(Shown):
    """What data of a given size will show.

    `low`, `high` and `upper` are medians, `width` is a mean; `width_most` and `upper_most` are not exceeded with the
    plan's power. `chance` is the probability that the plan's goal is met, and `no_error` that of a test without errors.
    `effective_n` independent comparisons would say as much; `design_effect` is the comparisons divided by it.
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


@dataclass(frozen=True)
class Scenario:
    """Correlations that may be true, with a weight; the weights of a plan add up to 1.

    `true` are (ρ_s, ρ_w) at the planned rate, with which data are drawn; `pooled` those that the study will show at
    rates where errors are plentiful, which its interval uses.
    """

    weight: float
    true: tuple[float, float]
    pooled: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Known:
    """Correlations of FAR or FRR: assumed, of a pilot, or such that a design effect comes true at every size.

    `model` has them, with the error that it gives them; `effect` is a design effect that was stated, or None.
    """

    model: LatentModel
    source: str
    effect: float | None = None

    def scenarios(self, rate: float, n_identities: int, instances: int) -> tuple[Scenario, ...]:
        """What the correlations may be at a rate, by three points of a normal law.

        The points lie at 0 and ±√3 standard errors with weights 2/3 and 1/6 each: they have the first five moments of
        the normal law (Gauss and Hermite). The error is that of the model: of correlations estimated from as many
        people as the pilot has (the assumed ones are worth `assumed_people`) and, at rates below the pool, of the rise
        that the model allows for.
        """
        model, far = self.model, self.model.metric == "far"
        if self.effect is not None:
            both = self._scaled(self.effect, rate, n_identities, instances)
            return (Scenario(1.0, both, both),)
        start = model.settings.pool(model.metric)[0]
        z = ndtri([rate or start, start])
        (there, plentiful), (doubt, error) = model.correlation(z)
        pair = model.correlations.rho_pair
        # the study estimates its correlations from its own people, and its interval is as wide as they turn out
        own = balanced(model.metric, n_identities, instances, (plentiful, pair), model.settings)
        seen = math.hypot(error, own.correlation(z)[1][1])

        def at(center: float, away: float) -> tuple[float, float]:
            rho = min(max(center + away, 0.0), MOST_SHARED if far else MOST)
            return (rho, max(pair, 2.0 * rho)) if far else (0.0, rho)

        root = math.sqrt(3.0)
        return tuple(
            Scenario(weight, at(there, step * doubt), at(plentiful, step * seen))
            for weight, step in ((2.0 / 3.0, 0.0), (1.0 / 6.0, root), (1.0 / 6.0, -root))
        )

    def _scaled(self, effect: float, rate: float, n_identities: int, instances: int) -> tuple[float, float]:
        """Correlations in the proportions of the assumed ones, such that a design effect comes true at a size."""
        if effect <= 1.0 or rate == 0.0:
            return 0.0, 0.0
        metric, assumed = self.model.metric, self.model.correlations

        def scaled(factor: float) -> tuple[float, float]:
            shared = min(factor * assumed.rho_identity, MOST_SHARED)
            return shared, min(max(factor * assumed.rho_pair, 2.0 * shared), MOST)

        low, high = 0.0, 4.0
        for _ in range(30):
            middle = 0.5 * (low + high)
            reached = design_effect(metric, rate, n_identities, instances, scaled(middle)) >= effect
            low, high = (low, middle) if reached else (middle, high)
        return scaled(high)

    def study(self, scenario: Scenario, n_identities: int, instances: int) -> LatentModel:
        """The model that the interval of a planned study will use: its own correlations, the assumed ones averaged in.

        The study's own variance is not in it; `LatentModel.limit` takes that with each draw.
        """
        settings = self.model.settings
        own, assumed = n_identities, settings.assumed_people
        seen = (
            (own * scenario.pooled[0] + assumed * settings.assumed_identity) / (own + assumed),
            (own * scenario.pooled[1] + assumed * settings.assumed_pair) / (own + assumed),
        )
        return balanced(self.model.metric, n_identities, instances, seen, settings)


def balanced(
    metric: Metric,
    n_identities: int,
    instances: int,
    correlations: tuple[float, float],
    settings: LatentSettings = DEFAULT,
    shown_by: float = 0.0,
) -> LatentModel:
    """The latent model of all pairs of equally many instances of each identity, without data."""
    sizes = Clusters(np.array([float(instances)]), np.array([float(n_identities)]))
    return all_pairs(metric, sizes, correlations, settings, shown_by)


def design_effect(
    metric: Metric, rate: float, n_identities: int, instances: int, correlations: tuple[float, float]
) -> float:
    """Variance of the rate over that of independent comparisons, for all pairs of equally many instances."""
    model = balanced(metric, n_identities, instances, correlations)
    relative = float(model.variance(np.array([rate * model.comparisons]))[0])
    return relative * model.comparisons * rate / (1.0 - rate)


def known_from(metric: Metric, pilot: Any, effect: float | None, settings: LatentSettings = DEFAULT) -> Known:
    """What a user knows: nothing, a design effect, or a pilot in several forms."""
    if effect is not None and not 1.0 <= effect <= MOST_EFFECT:
        raise UsageError(
            f"design_effect is 1 (independent comparisons) or more, and at most {MOST_EFFECT:g}; got {effect!r}"
        )
    if pilot is not None:
        if effect is not None:
            raise UsageError("give design_effect or pilot, not both")
        return _of_pilot(metric, pilot, settings)
    assumed = (settings.assumed_identity, settings.assumed_pair)
    model = balanced(metric, 10, 3, assumed, settings, shown_by=settings.assumed_people)
    return Known(model, "assumed" if effect is None else f"design effect {effect:g}", effect)


def _of_pilot(metric: Metric, pilot: Any, settings: LatentSettings) -> Known:
    from matchbound.calls.evaluate import evaluate
    from matchbound.counts.tally import Tally
    from matchbound.data.comparisons import Comparisons
    from matchbound.data.embeddings import Embeddings
    from matchbound.stats.latent import fit_far, fit_frr

    if isinstance(pilot, (Comparisons, Embeddings)):
        # where nothing errs: the model is fitted at thresholds of its own, from the side of errors
        threshold = NOWHERE if (metric == "far") != pilot.distance else -NOWHERE
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)
            pilot = getattr(evaluate(pilot, threshold), metric)
    if isinstance(pilot, Tally):
        model = fit_far(pilot, settings=settings) if metric == "far" else fit_frr(pilot, settings=settings)
    else:
        rate = pilot if hasattr(pilot, "latent_model") else getattr(pilot, metric, None)
        if rate is None or not hasattr(rate, "latent_model"):
            raise UsageError(
                "pilot must be Comparisons, Embeddings, ErrorRates or a Tally at thresholds where 1–50% of the "
                f"comparisons err; got {type(pilot).__name__}"
            )
        model = rate.latent_model(settings)
    if model.metric != metric:
        raise UsageError(f"pilot: the rate given is {model.metric}, and {metric} is planned")
    people = model.effective_identities
    if people < 2.0:
        raise DataError("a pilot needs at least two identities")
    if people < FEWEST_IDENTITIES or model.correlations.people < settings.assumed_people:
        text = (
            f"the pilot is worth {model.correlations.people:.0f} people's data on how errors are correlated, and the "
            f"assumed correlations count as much as {settings.assumed_people:g}: the plan rests on what is usual on "
            "other data. Add people to the pilot, or plan without it too and take the larger number"
        )
        warnings.warn(Note("few-identities", text), MatchboundWarning, stacklevel=4)
    return Known(model, f"pilot of {people:.0f} identities")


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of a study of one size: for each scenario, what data will show and the model that their interval uses."""

    target: Target
    parts: tuple[tuple[Predictive, LatentModel], ...]

    def limits(self, tail: float, *, lower: bool = True) -> tuple[FloatArray, FloatArray]:
        """Limits of every draw by the method that will be used; lower ones are 0 where they are not wanted."""
        ends = [self._limits(part, model, tail, lower) for part, model in self.parts]
        low, high = (np.concatenate(side) for side in zip(*ends, strict=True))
        return low, high

    def _limits(self, part: Predictive, model: LatentModel, tail: float, lower: bool) -> tuple[FloatArray, FloatArray]:
        if self.target.method == "wilson":
            return part.wilson(tail)
        errors, deviate = part.estimate * model.comparisons, model.deviate(1.0 - tail, "upper")
        if not errors.any():  # every draw is the same
            return np.zeros_like(errors), np.broadcast_to(model.limit(0.0, deviate, True), errors.shape)

        def limit(upper: bool) -> FloatArray:
            return model.limit(errors, deviate, upper, relative=part.relative, tolerance=TOLERANCE)

        return limit(False) if lower else np.zeros_like(errors), limit(True)

    def met(self) -> float:
        wide = self.target.goal == "width"
        low, high = self.limits((1.0 - self.target.level) / (2.0 if wide else 1.0), lower=wide)
        return float(np.mean((high - low if wide else high) <= self.target.value))


@dataclass(frozen=True, eq=False)
class Study:
    """A planned study of any size; the seed is always the same, so that a search over sizes sees a smooth function."""

    target: Target
    known: Known
    instances: int
    seed: int = 0

    def comparisons(self, n_identities: int) -> int:
        return n_comparisons(self.target.metric, n_identities, self.instances)

    def scenarios(self, n_identities: int) -> tuple[Scenario, ...]:
        """What the correlations may be; the central one first."""
        return self.known.scenarios(self.target.rate, n_identities, self.instances)

    def draws(self, n_identities: int, n_draws: int = N_DRAWS) -> Draws:
        """What data of a size may show; each scenario has its share of the draws."""
        metric, rate = self.target.metric, self.target.rate
        parts = []
        for scenario in self.scenarios(n_identities):
            count, rng = round(scenario.weight * n_draws), np.random.default_rng(self.seed)
            part = predictive(metric, rate, n_identities, self.instances, scenario.true, n_draws=count, rng=rng)
            parts.append((part, self.known.study(scenario, n_identities, self.instances)))
        return Draws(self.target, tuple(parts))

    def chance(self, n_identities: int) -> float:
        with threadpool_limits(1):  # a second BLAS thread only gets in the way of matrices as small as these
            return self.draws(n_identities).met()

    def expect(self, n_identities: int) -> Expectation:
        target, comparisons, effect = self.target, self.comparisons(n_identities), 1.0
        with threadpool_limits(1):
            drawn = self.draws(n_identities)
            low, high = drawn.limits((1.0 - target.level) / 2.0)
            upper = drawn.limits(1.0 - target.level, lower=False)[1]
            chance = drawn.met()
        if target.rate > 0.0:
            central = self.scenarios(n_identities)[0].true
            effect = design_effect(target.metric, target.rate, n_identities, self.instances, central)
        estimates = np.concatenate([part.estimate for part, _ in drawn.parts])
        return Expectation(
            n_identities=n_identities,
            instances=self.instances,
            comparisons=comparisons,
            low=float(np.median(low)),
            high=float(np.median(high)),
            width=float(np.mean(high - low)),
            width_most=float(np.quantile(high - low, target.power)),
            upper=float(np.median(upper)),
            upper_most=float(np.quantile(upper, target.power)),
            chance=chance,
            errors=target.rate * comparisons,
            no_error=float(np.mean(estimates == 0.0)),
            design_effect=effect,
            effective_n=comparisons / effect,
        )

    def smallest(self) -> int:
        """The fewest people with which the goal is met with the target's power, to 2%.

        The probit of the chance is nearly linear in log G, so that a few sizes find it.
        """
        target, wanted = self.target, float(ndtri(self.target.power))

        def gap(size: int) -> float:
            """How far the chance lies above the power, in probits."""
            chance = self.chance(size)
            away = float(ndtri(np.clip(chance, 1e-4, 1.0 - 1e-4))) - wanted
            return max(away, 0.0) if chance >= target.power else min(away, -1e-9)

        size = self._first_guess()
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
                    f"{target.goal}: {target.value:g} is not reached with {MOST_IDENTITIES:,} people and "
                    f"{self.instances} instances each; ask for less"
                )
            tried[size] = gap(size)

    def _first_guess(self) -> int:
        """Where to start looking: the goal at the expected number of errors, without a margin, by doubling."""
        target, size = self.target, LEAST_IDENTITIES
        tail = (1.0 - target.level) / (2.0 if target.goal == "width" else 1.0)
        certain = replace(self.known, model=replace(self.known.model, shown_by=math.inf))
        while size < MOST_IDENTITIES:
            scenario = certain.scenarios(target.rate, size, self.instances)[0]
            model = certain.study(scenario, size, self.instances)
            ends = [False, True] if target.goal == "width" else [True]
            limits = model.limit(target.rate * model.comparisons, model.deviate(1.0 - tail, "upper"), ends)
            if limits[-1] - (limits[0] if target.goal == "width" else 0.0) <= target.value:
                break
            size = int(size * 1.5) + 1
        return min(size, MOST_IDENTITIES)


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
