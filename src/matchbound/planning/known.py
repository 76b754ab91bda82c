"""What is known about dependence before a study: the latent model of a pilot, or the correlations that are assumed.

A plan takes its correlations, and their error, from the model that the interval itself uses: fitted to a pilot, or with
the assumed correlations of `LatentSettings` where there is none.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.planning.predictive import MOST_SHARED
from matchbound.stats.latent.fit import grouped
from matchbound.stats.latent.model import (
    DEFAULT,
    MOST,
    Clusters,
    Correlations,
    Design,
    LatentModel,
    LatentSettings,
    Metric,
)

FEWEST_IDENTITIES = 30
NOWHERE = 1e30
"""A score beyond all scores: a threshold there has no errors of one kind."""
MOST_EFFECT = 1e6
"""No design effect is larger than the number of comparisons of one person, and of all it is far smaller."""


@dataclass(frozen=True)
class Scenario:
    """Correlations that may be true, with a weight; the weights of a plan add up to 1.

    true
        (ρ_s, ρ_w) at the planned rate: what data are drawn with.
    pooled
        (ρ_s, ρ_w) that the study will show at rates where errors are plentiful: what its interval uses.
    """

    weight: float
    true: tuple[float, float]
    pooled: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Known:
    """Correlations of FAR or FRR: assumed, of a pilot, or such that a design effect comes true at every size.

    model
        The latent model that has them, with the error that it gives them.
    source
        In a few words.
    effect
        A design effect that was stated, or None.
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
        from scipy.special import ndtri

        model, far = self.model, self.model.metric == "far"
        if self.effect is not None:
            both = self._scaled(self.effect, rate, n_identities, instances)
            return (Scenario(1.0, both, both),)
        start = model.settings.pool(model.metric)[0]
        z = ndtri(np.array([rate or start, start]))
        (there, plentiful), (doubt, error) = model.correlation(z)
        pair = model.correlations.rho_pair
        # the study estimates its correlations from its own people, and its interval is as wide as they turn out
        own = balanced(model.metric, n_identities, instances, (plentiful, pair), settings=model.settings)
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
        worth = settings.assumed_people
        assumed = (settings.assumed_identity, settings.assumed_pair)
        seen = [
            (n_identities * rho + worth * prior) / (n_identities + worth)
            for rho, prior in zip(scenario.pooled, assumed, strict=True)
        ]
        return balanced(self.model.metric, n_identities, instances, (seen[0], seen[1]), settings=settings)


def balanced(
    metric: Metric,
    n_identities: int,
    instances: int,
    correlations: tuple[float, float],
    *,
    settings: LatentSettings = DEFAULT,
    shown_by: float = 0.0,
) -> LatentModel:
    """The latent model of all pairs of equally many instances of each identity, without data."""
    sizes = Clusters(np.array([float(instances)]), np.array([float(n_identities)]))
    return all_pairs(metric, sizes, correlations, settings=settings, shown_by=shown_by)


def all_pairs(
    metric: Metric,
    instances: Clusters,
    correlations: tuple[float, float],
    *,
    settings: LatentSettings = DEFAULT,
    shown_by: float = 0.0,
) -> LatentModel:
    """The latent model of all pairs of instances, without data.

    instances
        Numbers of instances, and how many identities have each.
    """
    size, people = instances.size, instances.count
    total, squares = float(people @ size), float(people @ size**2)
    if metric == "far":
        ordered, of_pairs = total**2 - squares, squares**2 - float(people @ size**4)
        of_people = float(people @ (size * (total - size)) ** 2)
        design = Design(ordered / 2.0, (of_pairs - ordered) / 2.0, of_people - of_pairs)
        pairs = np.outer(people, people) - np.diag(people)
        clusters = grouped(np.outer(size, size).reshape(-1), pairs.reshape(-1) / 2.0)
        identities = total**2 / squares
    else:
        own = size * (size - 1.0) / 2.0
        design = Design(float(people @ own), float(people @ own**2) - float(people @ own))
        clusters = grouped(own[own > 0.0], people[own > 0.0])
        identities = design.comparisons**2 / float(people @ own**2)
    nothing = np.empty(0)
    rho_identity = correlations[0] if design.sharing > 0.0 else 0.0
    rho_pair = correlations[1] if design.within > 0.0 else 0.0
    seen = Correlations(nothing, nothing, nothing, rho_identity, rho_pair, identities)
    return LatentModel(metric, design, clusters, identities, seen, settings=settings, shown_by=shown_by)


def design_effect(
    metric: Metric, rate: float, n_identities: int, instances: int, correlations: tuple[float, float]
) -> float:
    """Variance of the rate over that of independent comparisons, for all pairs of equally many instances."""
    model = balanced(metric, n_identities, instances, correlations)
    relative = float(model.variance(np.array([rate * model.comparisons]))[0])
    return relative * model.comparisons * rate / (1.0 - rate)


def known_from(metric: Metric, pilot: Any, effect: float | None, settings: LatentSettings = DEFAULT) -> Known:
    """What a user knows: nothing, a design effect, or a pilot in several forms."""
    if effect is not None:
        if not 1.0 <= effect < math.inf:
            raise UsageError(f"design_effect is 1 (independent comparisons) or more; got {effect!r}")
        if effect > MOST_EFFECT:
            raise UsageError(f"design_effect: {effect:g} is beyond all data; give at most {MOST_EFFECT:g}")
    if pilot is not None:
        if effect is not None:
            raise UsageError("give design_effect or pilot, not both")
        return _of_pilot(metric, pilot, settings)
    assumed = (settings.assumed_identity, settings.assumed_pair)
    model = balanced(metric, 10, 3, assumed, settings=settings, shown_by=settings.assumed_people)
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
        warnings.warn(
            Note(
                "few-identities",
                f"the pilot is worth {model.correlations.people:.0f} people's data on how errors are correlated, and "
                f"the assumed correlations count as much as {settings.assumed_people:g}: the plan rests on what is "
                "usual on other data. Add people to the pilot, or plan without it too and take the larger number",
            ),
            MatchboundWarning,
            stacklevel=4,
        )
    return Known(model, f"pilot of {people:.0f} identities")
