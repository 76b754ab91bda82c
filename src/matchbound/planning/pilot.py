"""Read the dependence of comparisons off a pilot: the moments of its tallies, turned into latent correlations."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import GenuineTally, ImpostorTally, Tally
from matchbound.data.subsets import among, take, take_embeddings
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.planning.latent_model import UNKNOWN, Dependence, Metric
from matchbound.stats.latent.fit import (
    Products,
    correlations_at,
    genuine_design,
    genuine_products,
    impostor_design,
    impostor_products,
)

if TYPE_CHECKING:
    from matchbound.data.comparisons import Comparisons
    from matchbound.data.embeddings import Embeddings

FEWEST_ERRORS = 10
"""A threshold with fewer errors says nothing about how errors go together."""
FEWEST_IDENTITIES = 30
USUAL, USUAL_SPREAD = 0.65, 0.25
"""What is usual, and how far sets differ from it, in parts of the cautious default."""
MODEL_DOUBT = 0.25
"""The doubt that is left however large the pilot is: real data are no draws from the model."""
REFERENCE, GENUINE_REFERENCE = 2, 5
"""Instances per person at which a pilot is weighed against what is usual."""
MOST_EFFECT = 1e6
"""No design effect is larger than the number of comparisons of one person, and of all it is far smaller."""
PILOT_RATES = (0.3, 0.15, 0.07, 0.03, 0.015)
"""The rates at which a pilot is tallied: errors are plentiful there, and correlations hardly change with the rate."""


def dependence_of_tally(tally: Tally, metric: Metric | None = None) -> Dependence:
    """Latent correlations of a pilot, averaged over the thresholds where errors are plentiful (rates of 1–50%).

    Where the pilot has none, all thresholds with ten errors are used; where there is none of those either,
    the cautious default stands in and a warning says so, of `metric` only where one is named.
    """
    if tally.n_identities < FEWEST_IDENTITIES:
        warnings.warn(
            Note(
                "few-identities",
                f"the pilot has {tally.n_identities} identities: fewer than {FEWEST_IDENTITIES} hardly show how "
                "strongly people differ, and the plan rests mostly on what is usual on other data. Add people to the "
                "pilot, or plan without it too and take the larger number",
            ),
            MatchboundWarning,
            stacklevel=3,
        )
    shared = same = genuine = None
    impostor = _usable(tally.impostor.errors.sum(axis=1) / 2.0, tally.impostor.comparisons.sum() / 2.0, 0.01, 0.5)
    if impostor.size:
        found = np.array([impostor_correlations(tally.impostor, int(k)) for k in impostor])
        shared, same = float(found[:, 0].mean()), float(found[:, 1].mean())
    own = _usable(tally.genuine.errors.sum(axis=1), tally.genuine.comparisons.sum(), 0.02, 0.6)
    if own.size:
        genuine = float(np.mean([genuine_correlation(tally.genuine, int(k)) for k in own]))
    missing = [name for name, value in (("FAR", shared), ("FRR", genuine)) if value is None]
    missing = [name for name in missing if metric is None or name == metric.upper()]
    if missing:
        warnings.warn(
            Note(
                "few-errors",
                f"the pilot has too few errors at its thresholds to show the dependence of {' and '.join(missing)}; a "
                "cautious default stands in. Tally it at thresholds where 1–50% of the comparisons err",
            ),
            MatchboundWarning,
            stacklevel=3,
        )
    shared = UNKNOWN.at(1).shared if shared is None else shared
    same = UNKNOWN.same if same is None else max(same, 2.0 * shared)
    genuine = UNKNOWN.at(3).genuine if genuine is None else genuine
    repeated = float(genuine_design(tally.genuine).within) > 0.0
    return Dependence(
        shared,
        min(same, 0.999),
        genuine,
        f"pilot of {tally.n_identities} identities",
        doubt=MODEL_DOUBT if impostor.size else 0.0,
        genuine_doubt=MODEL_DOUBT if own.size and repeated else 0.0,
    )


def dependence_of_pilot(
    data: Comparisons | Embeddings, metric: Metric | None = None, *, rng: int | np.random.Generator | None = 0
) -> Dependence:
    """Latent correlations of pilot data, averaged over thresholds where 1.5–30% of the comparisons err.

    With instances known, comparisons that share an instance are told from comparisons that share a person
    only, so that the plan may have more or fewer instances per person than the pilot. Of embeddings this is
    done on 800 rows, of people taken at random; all else uses all of the pilot.
    """
    from matchbound.calls.evaluate import tally
    from matchbound.data.comparisons import Comparisons
    from matchbound.planning.instances import split_by_instance

    generator = np.random.default_rng(rng)
    data = _evened(data, generator)
    scored = data if isinstance(data, Comparisons) else _some_people(data, generator)
    parts = [scored.similarity[~scored.genuine], scored.similarity[scored.genuine]]
    rates = np.array(PILOT_RATES)
    levels = [np.quantile(part, level) for part, level in zip(parts, (1.0 - rates, rates), strict=True) if part.size]
    grid = np.unique(np.concatenate(levels))
    known = dependence_of_tally(tally(data, -grid if scored.distance else grid, pairs=False), metric)
    return split_by_instance(known, scored, levels)


def impostor_correlations(tally: ImpostorTally, k: int) -> tuple[float, float]:
    """(ρ_s, ρ_w) at threshold k, by the moments of `matchbound.stats.latent.fit.correlations_at`, and none below 0.

    Without repeated pairs ρ_w is not seen, and the cautious default stands in.
    """
    design, products = impostor_design(tally), impostor_products(tally)
    identity, pair = correlations_at(design, Products(products.rate[k], products.within[k], products.sharing[k]))
    same = max(float(pair), 0.0) if design.within > 0.0 else UNKNOWN.same
    return max(float(identity), 0.0), same


def genuine_correlation(tally: GenuineTally, k: int) -> float:
    """Latent correlation of genuine comparisons of one identity at threshold k; see `impostor_correlations`.

    Where no identity has two genuine comparisons the cautious default stands in.
    """
    design, products = genuine_design(tally), genuine_products(tally)
    if not design.within > 0.0:
        return UNKNOWN.at(3).genuine
    _, pair = correlations_at(design, Products(products.rate[k], products.within[k], products.sharing[k]))
    return max(float(pair), 0.0)


def weighed(known: Dependence, n_identities: int) -> Dependence:
    """What a pilot of G people shows, weighed against what is usual, with the doubt that is left.

    A correlation r that a pilot shows has a sampling variance of about 7·r₁²/G + (0.6/G)² (FAR, r₁ the larger of r and
    the usual value) or 0.34/G (FRR). Usual are 0.65 of the cautious default, give or take 0.25 of it, and the two are
    weighed by their precision. What remains uncertain, and what no model gets right, is the doubt over which a plan
    averages. Where the pilot shows nothing (a doubt of 0) the cautious default stays as it is.
    """
    if known.doubt > 0.0:
        shown, usual = known.at(REFERENCE).shared, UNKNOWN.at(REFERENCE).shared
        noise = 7.0 * max(shown, USUAL * usual) ** 2 / n_identities + (0.6 / n_identities) ** 2
        weight, doubt = _weighed(shown, noise, usual)
        shared = (1.0 - weight) * known.shared + weight * USUAL * UNKNOWN.shared
        instance = (1.0 - weight) * known.instance + weight * USUAL * UNKNOWN.instance
        same = min(max(known.same, 2.0 * shared), 0.999)
        known = replace(known, shared=shared, same=same, instance=instance, doubt=doubt)
    if known.genuine_doubt > 0.0:
        shown, usual = known.at(GENUINE_REFERENCE).genuine, UNKNOWN.at(GENUINE_REFERENCE).genuine
        weight, doubt = _weighed(shown, 0.34 / n_identities, usual)
        genuine = (1.0 - weight) * known.genuine + weight * USUAL * UNKNOWN.genuine
        instance = (1.0 - weight) * known.genuine_instance + weight * USUAL * UNKNOWN.genuine_instance
        known = replace(known, genuine=genuine, genuine_instance=instance, genuine_doubt=doubt)
    return known


def _weighed(shown: float, noise: float, default: float) -> tuple[float, float]:
    """The weight of what is usual, and the doubt: √(log(1 + v/m²) + MODEL_DOUBT²), m and v of what was weighed."""
    prior = (USUAL_SPREAD * default) ** 2
    weight = noise / (noise + prior)
    mean = (1.0 - weight) * shown + weight * USUAL * default
    return weight, float(np.sqrt(np.log1p(weight * prior / mean**2) + MODEL_DOUBT**2))


def as_dependence(value: Any, metric: Metric | None = None) -> Dependence | float:
    """What a user may say about dependence: nothing, a `Dependence`, a design effect, or a pilot in several forms.

    What a pilot lacks is said of `metric` only, where one is named.
    """
    from matchbound.data.comparisons import Comparisons
    from matchbound.data.embeddings import Embeddings
    from matchbound.results.error_rates import ErrorRates, ErrorRatesSeries
    from matchbound.results.rates import Rate

    if value is None:
        return UNKNOWN
    if isinstance(value, Dependence):
        if not (0.0 <= value.shared <= 0.49 and 0.0 <= value.same <= 0.999 and 0.0 <= value.genuine <= 0.999):
            raise UsageError(f"dependence: correlations lie between 0 and 0.999, and shared below 0.5; got {value}")
        return value
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        if not 1.0 <= float(value) < float("inf"):
            raise UsageError(f"dependence: a design effect is 1 (independent) or more; got {value!r}")
        if value > MOST_EFFECT:
            raise UsageError(
                f"dependence: a design effect of {value:g} is beyond all data; give at most {MOST_EFFECT:g}"
            )
        return float(value)
    if isinstance(value, (Comparisons, Embeddings)):
        return weighed(dependence_of_pilot(value, metric), value.n_identities)
    if isinstance(value, ErrorRatesSeries) and len(value):
        value = value[0]
    if isinstance(value, ErrorRates):
        value = value.far
    tally = value.tally if isinstance(value, Rate) else value
    if isinstance(tally, Tally):
        return weighed(dependence_of_tally(tally, metric), tally.n_identities)
    raise UsageError(
        "dependence must be None (unknown), a design effect, a Dependence, or a pilot (Tally, ErrorRates, Comparisons "
        f"or Embeddings); got {type(value).__name__}"
    )


def _usable(errors: FloatArray, comparisons: float, low: float, high: float) -> IntArray:
    """Thresholds with enough errors and a rate in [low, high]; failing that, with enough errors and a rate below 1."""
    if comparisons <= 0:
        return np.empty(0, dtype=np.int64)
    rate = errors / comparisons
    enough = (errors >= FEWEST_ERRORS) & (rate < 0.9)
    best = enough & (rate >= low * 0.99) & (rate <= high)
    return np.flatnonzero(best if best.any() else enough)


def _evened(data: Comparisons | Embeddings, rng: np.random.Generator, most: int = 5) -> Comparisons | Embeddings:
    """The data with at most `most` instances per person, at random, where the largest have more than twice the mean."""
    from matchbound.data.embeddings import Embeddings

    sizes = data.instance_counts
    if sizes is None or sizes.max() <= max(2.0 * sizes.mean(), most):
        return data
    if isinstance(data, Embeddings):
        rows = np.sort(_some_of_each(data.codes, most, rng))
        return take_embeddings(data, rows)
    assert data.instance_a is not None
    assert data.instance_b is not None
    owner = np.zeros(int(max(data.instance_a.max(), data.instance_b.max())) + 1, dtype=np.int64)
    owner[data.instance_a], owner[data.instance_b] = data.a, data.b
    chosen = np.zeros(owner.size, dtype=bool)
    chosen[_some_of_each(owner, most, rng)] = True
    kept = chosen[data.instance_a] & chosen[data.instance_b]
    return take(data, np.flatnonzero(kept))


def _some_of_each(owner: IntArray, most: int, rng: np.random.Generator) -> IntArray:
    """Places of at most `most` of each owner's things, at random."""
    order = np.lexsort((rng.permutation(owner.size), owner))
    ranked = owner[order]
    start = np.searchsorted(ranked, ranked)
    return order[np.arange(owner.size) - start < most]


def _some_people(data: Embeddings, rng: np.random.Generator, most: int = 800) -> Comparisons:
    """All comparisons among as many people, taken at random, as `most` rows hold."""
    from matchbound.data.embeddings import Embeddings

    if data.n_identities < 2:
        raise DataError("a pilot needs at least two identities")
    people = rng.permutation(data.n_identities)
    chosen = people[: max(2, int(np.searchsorted(np.cumsum(data.instance_counts[people]), most, side="right")))]
    part = among(data, np.sort(chosen))
    assert isinstance(part, Embeddings)
    return part.comparisons()
