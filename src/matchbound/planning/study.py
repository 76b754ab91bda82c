"""A study that does not exist yet: what is known about dependence, what a size will show, and the smallest that does.

A plan takes its correlations, and their error, from the model that the interval itself uses: fitted to a pilot, or with
the assumed correlations of `LatentSettings` where there is none.

The width of an interval is random, because the rate and its variance are. A plan that aims at the expected width is
missed half of the time; a plan needs the distribution. Simulating the comparisons themselves would cost G² a draw.
Instead identities are put into bins of their latent effect, whose counts are multinomial; given the bins, the erring
pairs, their sizes and their coincidences are drawn at once, so that a draw costs the same for any number of them.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.show.shown import Shown
from matchbound.stats.dyadic import bias_factor
from matchbound.stats.intervals import ndtri, normal_quantile, wilson_limits
from matchbound.stats.latent.fit import all_pairs
from matchbound.stats.latent.model import DEFAULT, MOST, Clusters, LatentModel, LatentSettings, Metric

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
# Bins of an identity's effect, over ±5 standard deviations.
NODES = 41
# ρ_s of two effects that add up to a pair's is below one half.
MOST_SHARED = 0.49


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
    from matchbound.stats.latent.fit import fit_far, fit_genuine

    if getattr(pilot, "kind", None) in ("comparisons", "embeddings"):
        # where nothing errs: the model is fitted at thresholds of its own, from the side of errors
        threshold = NOWHERE if (metric == "far") != pilot.distance else -NOWHERE
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)
            pilot = getattr(evaluate(pilot, threshold), metric)
    if isinstance(pilot, Tally):
        model = fit_far(pilot, settings=settings) if metric == "far" else fit_genuine(pilot.genuine, settings=settings)
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

    def power(self, claim: float, n_identities: int) -> float:
        """The chance that the upper bound lies below a claimed rate."""
        return replace(self, target=replace(self.target, goal="upper", value=claim)).chance(n_identities)

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


def n_comparisons(metric: Metric, n_identities: int, instances: int) -> int:
    """All pairs: M²·G(G−1)/2 impostor, G·M(M−1)/2 genuine comparisons."""
    if metric == "far":
        return instances * instances * n_identities * (n_identities - 1) // 2
    return n_identities * instances * (instances - 1) // 2


@dataclass(frozen=True, eq=False)
class Predictive:
    """Draws of what planned data will show; float64 arrays, shape (n_draws,).

    `variance` is the plug-in (4R − 2Q)/N2², or Σ(e − qg)²/T², which can be ≤ 0; `unbiased` that of the default
    interval, without bias and with its floor; `floor` the least effective number of comparisons of Wilson's interval.
    """

    estimate: FloatArray
    variance: FloatArray
    unbiased: FloatArray
    floor: int

    @property
    def relative(self) -> FloatArray:
        """The unbiased variance over the squared rate; of comparisons that did not err, where most do."""
        smaller = np.maximum(np.minimum(self.estimate, 1.0 - self.estimate), 1e-150)
        return np.where(self.estimate > 0.0, self.unbiased / smaller**2, 0.0)

    def wilson(self, tail: float) -> tuple[FloatArray, FloatArray]:
        """Wilson's limits of each draw, shapes (n_draws,); see `matchbound.stats.intervals`."""
        p, v = self.estimate, self.variance
        spread = p * (1.0 - p)
        usable = (v > 0.0) & (spread > 0.0)
        n = np.where(usable, np.maximum(spread / np.where(usable, v, 1.0), self.floor), float(self.floor))
        return wilson_limits(p, n, normal_quantile(tail))


def predictive(
    metric: Metric,
    p: float,
    n_identities: int,
    instances: int,
    correlations: tuple[float, float],
    *,
    n_draws: int,
    rng: np.random.Generator,
) -> Predictive:
    """Draws for all pairs of equally many instances; `correlations` are (ρ_s, ρ_w) at p, ρ_s not used for FRR."""
    if p == 0.0:
        nothing = np.zeros(n_draws)
        return Predictive(nothing, nothing, nothing, n_identities // 2 if metric == "far" else n_identities)
    if metric == "far":
        return _far(p, n_identities, instances, correlations, n_draws, rng)
    # identities are independent: the count of each is a binomial with a Gaussian effect, and so its law is known
    g = instances * (instances - 1) // 2
    total = n_comparisons("frr", n_identities, instances)
    law = _count_law(g, np.zeros(1), p, 0.0, correlations[1])[0]
    size, square, share = _grouped(np.arange(1, g + 1), law[1:])
    counts = rng.multinomial(n_identities, np.append(share, max(1.0 - share.sum(), 0.0)), size=n_draws)[:, :-1]
    estimate = counts @ size / total
    variance = (counts @ square - estimate * estimate * g * g * n_identities) / float(total) ** 2
    variance = np.where(variance > 1e-12 * estimate * estimate, variance, 0.0)
    return Predictive(estimate, variance, bias_factor("frr", n_identities) * variance, n_identities)


def _far(
    p: float, n_identities: int, instances: int, rho: tuple[float, float], n_draws: int, rng: np.random.Generator
) -> Predictive:
    size_g, m = n_identities, instances * instances
    shared = min(rho[0], MOST_SHARED)
    weight, mean, within, any_error, sizes, squares, share = _pair_law(p, m, shared, max(rho[1], 2.0 * shared))
    size_1, size_2 = float(share @ sizes), float(share @ squares)
    count = rng.multinomial(size_g, weight, size=n_draws).astype(np.float64)

    expected, expected_within, expected_pairs = (
        np.maximum(_over_pairs(count, x), 1e-12) for x in (mean, within, any_error)
    )
    of_identity = count @ mean - np.diag(mean)  # E[S_i] of a member of each bin
    of_squares = count @ (mean * mean) - np.diag(mean) ** 2
    sum_2 = (count * of_identity**2).sum(axis=1)
    sum_3 = (count * of_identity**3).sum(axis=1)
    expected_shared = np.maximum(sum_2 - (count * of_squares).sum(axis=1), 0.0)

    n_pairs = size_g * (size_g - 1) // 2
    erring = rng.binomial(n_pairs, np.clip(expected_pairs / n_pairs, 0.0, 1.0))
    sized = rng.multinomial(erring, share)
    errors = sized @ sizes * (expected / (expected_pairs * size_1))
    excess = size_2 - size_1
    pairs_within = np.zeros(n_draws)
    if excess > 1e-12:
        pairs_within = sized @ (squares - sizes) * (expected_within / (expected_pairs * excess))
    spread = float(weight @ (within + mean - mean * mean) @ weight) / float(weight @ mean @ weight)
    coincidences = _coincidences(errors, expected, expected_shared, sum_2, sum_3, spread, rng)

    comparisons = n_comparisons("far", size_g, instances)
    estimate = errors / comparisons
    n2 = 2.0 * comparisons
    a2 = 2.0 * (errors + pairs_within)
    r = coincidences + a2 - size_g * (m * (size_g - 1.0) * estimate) ** 2
    q = a2 - estimate**2 * m * n2
    unbiased = np.maximum(bias_factor("far", size_g, 1.0) * (4.0 * r - 2.0 * q), 2.0 * q)
    return Predictive(np.minimum(estimate, 1.0), (4.0 * r - 2.0 * q) / n2**2, unbiased / n2**2, size_g // 2)


class _PairLaw(NamedTuple):
    """The law of the errors n of one identity pair, given the bins of its two identities; K bins.

    `weight`, shape (K,), is the probability of each bin; `mean`, `within` and `any_error`, shape (K, K), are E[n],
    E[n(n−1)] and P(n > 0). `sizes`, `squares` and `share`, shape (C,), are of groups of n > 0 over all pairs: mean n,
    mean n², probability given n > 0.
    """

    weight: FloatArray
    mean: FloatArray
    within: FloatArray
    any_error: FloatArray
    sizes: FloatArray
    squares: FloatArray
    share: FloatArray


@lru_cache(maxsize=16)
def _pair_law(p: float, m: int, shared: float, same: float) -> _PairLaw:
    node = np.linspace(-5.0, 5.0, NODES)
    weight = np.exp(-0.5 * node * node)
    weight /= weight.sum()
    sums = 2.0 * node[0] + np.arange(2 * NODES - 1) * (node[1] - node[0])  # every value of x_k + x_l
    law = _count_law(m, sums, p, shared, same)
    number = np.arange(m + 1)
    index = np.arange(NODES)[:, None] + np.arange(NODES)[None, :]
    together = np.bincount(index.reshape(-1), weights=np.outer(weight, weight).reshape(-1), minlength=sums.size)
    sizes, squares, share = _grouped(number[1:], together @ law[:, 1:])
    mean, within, any_error = law @ number, law @ (number * (number - 1)), law[:, 1:].sum(axis=1)
    return _PairLaw(weight, mean[index], within[index], any_error[index], sizes, squares, share / share.sum())


def _over_pairs(count: FloatArray, matrix: FloatArray) -> FloatArray:
    """Σ over unordered identity pairs of a symmetric function of their bins, shape (n_draws,)."""
    return np.asarray(0.5 * (np.einsum("dk,dk->d", count @ matrix, count) - count @ np.diag(matrix)))


def _coincidences(
    errors: FloatArray,
    expected: FloatArray,
    expected_shared: FloatArray,
    sum_2: FloatArray,
    sum_3: FloatArray,
    spread: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Ordered pairs of errors that share one identity, Σ_i Σ_{j≠k} n_ij·n_ik, given the bins and the errors.

    `spread` is the variance of the errors of a pair over their mean. The coincidences grow with x(x − spread), x
    being the errors. The rest of their noise: chance differences between identities of the same effect (a gamma factor
    with the variance of ΣS_i² that the total does not explain), and the fact that they come in whole clumps (a Poisson
    number of them).
    """
    level = expected_shared * np.maximum(errors * (errors - spread), 0.0) / expected**2
    uneven = np.clip(4.0 * spread * (sum_3 / np.maximum(sum_2, 1e-100) ** 2 - 0.5 / expected), 1e-9, 1e6)
    level = level * rng.gamma(1.0 / uneven, uneven)
    unit = 2.0 * spread * spread
    return np.asarray(unit * rng.poisson(np.minimum(level / unit, 1e15)))


def _count_law(m: int, sums: FloatArray, p: float, shared: float, same: float) -> FloatArray:
    """Law of the errors among m comparisons of one pair given the sum of its identities' effects; shape (S, m + 1).

    The latent score is √ρ_s·(x_i + x_j) + √(ρ_w − 2ρ_s)·c + √(1 − ρ_w)·noise, c ~ N(0, 1) of the pair.
    """
    from scipy.special import gammaln, log_ndtr

    own = same - 2.0 * shared
    c = np.linspace(-6.0, 6.0, 97) if own > 1e-9 else np.zeros(1)
    c_weight = np.exp(-0.5 * c * c)
    c_weight /= c_weight.sum()
    shift = np.sqrt(shared) * sums[:, None] + np.sqrt(max(own, 0.0)) * c[None, :]
    score = (float(ndtri(p)) + shift) / np.sqrt(max(1.0 - same, 1e-6))
    k = np.arange(m + 1)
    choose = gammaln(m + 1) - gammaln(k + 1) - gammaln(m - k + 1)
    log_yes, log_no = log_ndtr(score), log_ndtr(-score)
    law: FloatArray = np.empty((sums.size, m + 1))
    for row in range(sums.size):  # one row at a time keeps the working set small
        log_law = choose[:, None] + k[:, None] * log_yes[row] + (m - k)[:, None] * log_no[row]
        law[row] = np.exp(log_law) @ c_weight
    return law


def _grouped(number: IntArray, share: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Join numbers above 12 into geometric groups with their mean and mean square: (mean, mean square, share)."""
    ends = [*range(1, 13)]
    while ends[-1] < number[-1]:
        ends.append(int(np.ceil(ends[-1] * 1.15)))
    group = np.searchsorted(np.array(ends), number)
    total: FloatArray = np.bincount(group, weights=share).astype(np.float64)
    used = total > 0.0
    mean = np.bincount(group, weights=share * number)[used] / total[used]
    square = np.bincount(group, weights=share * number.astype(np.float64) ** 2)[used] / total[used]
    return mean, square, total[used]
