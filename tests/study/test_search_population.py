"""The population that coverage studies of searches draw from."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import matchbound as mb
import naive_search
from matchbound.errors import DataError

sys.path.append(str(Path(__file__).resolve().parents[2] / "studies"))

from search_population import SearchPopulation, search_population, stretched


@pytest.fixture(scope="module")
def population() -> SearchPopulation:
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(7), [1, 2, 1, 3, 1, 2, 1])
    scores = np.round(rng.standard_normal((owner.size, 7)), 1).astype(np.float32)
    scores[np.arange(owner.size), owner] += np.float32(1.0)
    return SearchPopulation(scores, owner)


def test_truths_are_means_over_all_galleries(population: SearchPopulation) -> None:
    """FPIR of probes of people outside, and misses of people inside, over every gallery of three."""
    table, owner = population.scores.astype(np.float64), population.owner
    hits: list[list[float]] = [[] for _ in owner]
    lost: list[list[float]] = [[] for _ in owner]
    for gallery in combinations(range(7), 3):
        for x, own in enumerate(owner):
            row = table[x, list(gallery)]
            if own not in gallery:
                hits[x].append(float((row >= np.float32(0.4)).any()))
            else:
                lost[x].append(float(naive_search.missed(row, gallery.index(int(own)), float(np.float32(0.4)), 1)))
    assert population.fpir(0.4, 3) == pytest.approx(np.mean([np.mean(part) for part in hits]))
    assert population.miss_rate(0.4, 1, 3) == pytest.approx(np.mean([np.mean(part) for part in lost]))
    cut = population.threshold(0.5, 3)
    assert (
        population.fpir(cut, 3) <= 0.5 < population.fpir(float(np.nextafter(np.float32(cut), -np.float32(9))), 3) + 0.2
    )


def test_a_draw_is_a_search(population: SearchPopulation) -> None:
    found, gallery = population.draw(np.random.default_rng(1), 3, 4)
    assert found.gallery_size == 3
    assert found.n_mated == int(np.isin(population.owner, gallery).sum())
    assert np.unique(found.nonmated.identity).size == 4
    rotating = population.draw_rotating(np.random.default_rng(2), 4)
    assert rotating.rotating
    assert rotating.n_nonmated == rotating.n_mated
    outside = np.flatnonzero(~np.isin(population.owner, gallery))
    share = naive_search.fpir(population.scores[np.ix_(outside, gallery)].astype(np.float64), float(np.float32(0.4)))
    assert population.fixed_fpir(gallery, 0.4) == pytest.approx(share)


def test_populations_of_embeddings() -> None:
    data = mb.SyntheticModel(noise_variance=1.0, sizes=(1, 3, 9)).sample(60, rng=0)
    whole = search_population(data, seed=0, most=4)
    halves = [search_population(data, seed=0, most=4, part=part) for part in (0, 1)]
    able = int((data.instance_counts >= 2).sum())
    assert whole.people == able == sum(half.people for half in halves)
    assert np.bincount(whole.owner).max() == 3
    assert whole.mate.mean() > whole.others.mean()
    with pytest.raises(DataError, match="two instances"):
        search_population(mb.SyntheticModel(sizes=1).sample(20, rng=0), seed=0)


def test_a_finite_population_is_stretched() -> None:
    moved = stretched(np.array([0.2, 0.1, 0.1]), np.array([0.1, 0.2, 0.0]), 1.5)
    np.testing.assert_allclose(moved, [0.25, 0.2 * 0.5**1.5, 0.15])
