"""The latent model of searches is that of FRR, and what a random gallery adds is what brute force finds."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy.special import ndtri
from scipy.stats import t

import matchbound as mb
import naive_latent
from cases import best_first, search_tables
from conftest import DATA
from matchbound import results
from matchbound.stats import searches as rates
from matchbound.stats.latent.fit import Curve
from matchbound.stats.latent.model import LatentModel
from matchbound.stats.latent.probabilities import excess

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


@pytest.fixture(scope="module")
def found() -> results.Searches:
    folder = DATA / "search"
    return mb.search(mb.read(folder / "search-gallery.npz"), mb.read(folder / "search-probes.npz"))


def as_genuine(person: np.ndarray, score: np.ndarray) -> mb.Comparisons:
    """Every search as a genuine comparison of the person searched for, and one impostor comparison."""
    names = [*(f"p{i}" for i in person), "q0"]
    rest = [*names[:-1], "q1"]
    first, second = [f"a{x}" for x in range(len(names))], [f"b{x}" for x in range(len(names))]
    return mb.Comparisons(names, rest, np.append(score, -9.0), instance_a=first, instance_b=second)


@pytest.mark.parametrize("threshold", [0.686836, 0.647488, 0.58635])
def test_fpir_of_a_fixed_gallery_is_an_frr(found: results.Searches, threshold: float) -> None:
    genuine = as_genuine(found.nonmated.identity, -found.nonmated.score[:, 0])
    frr = mb.evaluate(genuine, float(np.nextafter(-threshold, np.inf))).frr
    fpir = found.fpir(threshold)
    assert (frr.errors, frr.comparisons) == (fpir.errors, fpir.searches)
    np.testing.assert_allclose(tuple(fpir.interval(gallery="fixed")), tuple(frr.interval()), rtol=1e-6)
    upper = fpir.upper_bound(0.9, gallery="fixed"), frr.upper_bound(0.9)
    np.testing.assert_allclose(*upper, rtol=1e-6)


@pytest.mark.parametrize("threshold", [0.686836, 0.58635])
def test_fnir_is_an_frr_with_a_t_quantile(found: results.Searches, threshold: float) -> None:
    ranked, fnir = found.ranked(1), found.fnir(threshold)
    score = np.where(np.isneginf(ranked.crossing), -5.0, ranked.crossing)
    frr = mb.evaluate(as_genuine(ranked.person, score), threshold).frr
    assert frr.errors == fnir.errors
    model = frr.latent_model()
    people, rho = model.correlations.people, model.correlations.rho_pair
    seen = (rho * (people + 10.0) - 0.5 * 10.0) / people  # before 0.5 of ten people was averaged in
    model = replace(model, correlations=replace(model.correlations, rho_pair=max(rho, seen)))
    limits = model.limit(frr.errors, t.ppf(0.975, fnir.freedom), [False, True])
    np.testing.assert_allclose(tuple(fnir.interval(gallery="fixed")), limits, rtol=1e-6)
    wide = fnir.interval()
    assert wide.low <= fnir.interval(gallery="fixed").low
    assert wide.high >= fnir.interval(gallery="fixed").high


@given(search_tables())
def test_single_hits_on_one_person_are_correlated_as_brute_force_finds(
    given_table: tuple[np.ndarray, np.ndarray, float],
) -> None:
    """ρ_G from the mean products of single hits of different people on one enrolled person and on two."""
    table, person, _ = given_table
    n, size = table.shape
    holder, score = best_first(table)
    made = rates.gallery_variance(person, holder, score, size)
    counts = rates.rank_grid(n, 0, "frr")
    rows, never = [], False
    for threshold in sorted({float(np.sort(score[:, 0])[::-1][c - 1]) for c in counts}, reverse=True):
        single = (table >= threshold) & ((table >= threshold).sum(axis=1) == 1)[:, None]
        hits = int((table >= threshold).any(axis=1).sum())
        others = [(x, y) for x, y in product(range(n), repeat=2) if person[x] != person[y]]
        if not single.any() or hits == n or not others:
            continue
        same = np.mean([single[x, g] * single[y, g] for x, y in others for g in range(size)])
        apart = [
            single[x, g] * single[y, h] for x, y in others for g, h in product(range(size), repeat=2) if g != h
        ]  # fmt: skip
        one = single.sum() / (n * size)
        target = one**2 * same / max(float(np.mean(apart)), one**2 / 4.0)
        never |= same == 0.0  # then every correlation near −1 is as good as another
        rows.append(
            (float(ndtri(hits / n)), naive_latent.correlation_of(float(ndtri(one)), target), single.sum(), hits)
        )
    if not rows:
        assert made.rho.pooled == 0.0
        return
    z, rho, u, hits = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    np.testing.assert_allclose(made.z, z)
    np.testing.assert_allclose(made.single, u / hits)
    weight = (np.gradient(z) if z.size > 1 else np.ones(1)) * np.minimum(u / 30.0, 1.0)
    inside = (z >= ndtri(0.02)) & (z <= ndtri(0.6) + 1e-9)
    weight = weight * inside if inside.any() else weight
    assert never or made.rho.pooled == pytest.approx(float(weight @ rho) / float(weight.sum()), abs=1e-5)


@pytest.fixture(scope="module")
def model() -> LatentModel:
    return rates.fit_searches(np.repeat(np.arange(40), 5), 40, np.random.default_rng(0).standard_normal(200))


@given(rate=st.floats(0.001, 0.4), rho=st.floats(0.0, 0.4), size=st.integers(2, 1000))
def test_a_random_gallery_adds_the_variance_of_its_people(
    model: LatentModel, rate: float, rho: float, size: int
) -> None:
    """N·(Φ₂(z, z; ρ_G) − f₁²), with ρ_G raised in the tail for upper limits; limits never come nearer."""
    none = np.empty(0)
    added = rates.GalleryVariance(size, Curve(none, none, none, rho), none, none).added_to(model)
    z = float(ndtri(rate))
    one = rate / size
    assert added.beyond is not None
    for upper in (True, False):
        more = 0.6 * model.correlations.rho_pair * max(float(ndtri(0.05)) - z, 0.0) if upper else 0.0
        wanted = size * (naive_latent.both_below(float(ndtri(one)), min(rho + more, 0.99)) - one**2)
        got = float(added.beyond(np.array([z]), np.array([upper]))[0])
        assert got == pytest.approx(wanted, rel=1e-3, abs=1e-9)
    assert math.isclose(float(excess(np.array([ndtri(one)]), np.array([0.0]))[0]), 0.0, abs_tol=1e-12)
    assert added.limit(20, 1.96, True)[0] >= model.limit(20, 1.96, True)[0] - 1e-12
    assert added.limit(20, 1.96, False)[0] <= model.limit(20, 1.96, False)[0] + 1e-12
