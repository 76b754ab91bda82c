"""Synthetic models and the truth about them."""

from __future__ import annotations

import numpy as np
import pytest

import matchbound as mb
import naive_lab
from matchbound.study import SyntheticModel
from matchbound.study.models import BINS, GENUINE_SIZE, LONGEST, population_of


def test_the_papers_model() -> None:
    data = SyntheticModel().sample(30, rng=3)
    assert data.vectors.shape == (150, 128)
    assert data.similarity == "euclidean"
    assert np.allclose(np.linalg.norm(data.vectors, axis=1), 1.0)
    assert data.instance_counts.tolist() == [5] * 30
    assert np.array_equal(data.vectors, SyntheticModel().sample(30, rng=3).vectors)
    assert not np.array_equal(data.vectors, SyntheticModel().sample(30, rng=4).vectors)


def test_noise_has_the_variance_it_is_given() -> None:
    """Two instances of a person have the cosine 2 / (2 + 5): E[β²] = 2 of each coordinate, and the noise has 5."""
    vectors = SyntheticModel(noise_variance=5.0, dimensions=4000, sizes=2).sample(50, rng=0).vectors
    cosine = (vectors[::2] * vectors[1::2]).sum(axis=1)
    assert cosine.mean() == pytest.approx(2 / 7, abs=5 * cosine.std() / np.sqrt(50))


def test_numbers_of_instances_from_a_list() -> None:
    counts = SyntheticModel(sizes=[1, 9], dimensions=2).sample(1000, rng=5).instance_counts
    assert set(counts.tolist()) == {1, 9}
    assert 400 < np.count_nonzero(counts == 9) < 600


def test_wolves_raise_far() -> None:
    """At the plain model's threshold, beyond Monte Carlo error."""
    plain = population_of(SyntheticModel(), 4000).meet("far", 0.01)
    wolves = population_of(SyntheticModel(wolf_share=0.1, wolf_strength=0.8), 4000)
    assert float(wolves.rates("far", plain.threshold)) > 0.01 + 0.003


def test_truth_agrees_with_another_population() -> None:
    """Rates at the thresholds of one population, measured in another: within 4 standard errors of the difference."""
    model = SyntheticModel()
    one, other = (population_of(model, n_identities=8000, seed=seed) for seed in (1, 2))
    for metric, rate in (("far", 1e-3), ("far", 1e-1), ("frr", 1e-2), ("frr", 1e-1)):
        true = one.meet(metric, rate)
        there = other.rates(true.metric, true.threshold)
        assert abs(float(there) - true.rate) < 4 * np.sqrt(2.0) * true.standard_error
        assert 0 < true.standard_error < 0.2 * true.rate


def test_population_counts_what_was_drawn() -> None:
    """The curve of a small population is the share of its distances below the threshold, to within one bin."""
    model = SyntheticModel(dimensions=8)
    found = population_of(model, n_identities=40, seed=7)
    impostor: list[float] = []
    genuine: list[float] = []
    for number in range(20):
        rng = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(number,)))
        one, _ = model.draw(2, rng, np.ones(2, dtype=np.int64), np.float32)
        other, _ = model.draw(2, rng, np.ones(2, dtype=np.int64), np.float32)
        impostor += [float(np.linalg.norm(x.astype(float) - y)) for x in one for y in other]
        own, _ = model.draw(2, rng, np.full(2, GENUINE_SIZE), np.float32)
        for person in own.reshape(2, GENUINE_SIZE, -1).astype(float):
            genuine += [
                float(np.linalg.norm(person[i] - person[j]))
                for i in range(GENUINE_SIZE)
                for j in range(i + 1, GENUINE_SIZE)
            ]
    step = LONGEST / BINS
    for threshold in (0.9, 1.1, 1.3, 1.5):
        low, high = (naive_lab.share_below(impostor, threshold + shift) for shift in (-step, step))
        assert low <= float(found.rates("far", threshold)) <= high
        low, high = (1 - naive_lab.share_below(genuine, threshold + shift) for shift in (step, -step))
        assert low - 1e-9 <= float(found.rates("frr", threshold)) <= high + 1e-9


def test_truth_does_not_depend_on_instances() -> None:
    assert population_of(SyntheticModel(sizes=5), 400) is population_of(SyntheticModel(sizes=[1, 3]), 400)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: SyntheticModel(noise_variance=0.0), "noise_variance"),
        (lambda: SyntheticModel(dimensions=0), "dimensions"),
        (lambda: SyntheticModel(sizes=0), "sizes"),
        (lambda: SyntheticModel(sizes=()), "sizes"),
        (lambda: SyntheticModel().sample(0), "n_identities"),
        (lambda: population_of(SyntheticModel(), 40).meet("far", 0.0), "strictly between"),
        (lambda: SyntheticModel(wolf_share=1.7), "wolf_share"),
        (lambda: SyntheticModel(wolf_strength=-1.0), "wolf_strength"),
    ],
)
def test_wrong_arguments(make, match: str) -> None:
    with pytest.raises(mb.UsageError, match=match):
        make()
