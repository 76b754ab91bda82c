"""Synthetic models and the truth about them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import matchbound as mb
import naive_lab
from matchbound.study import Geometric, SyntheticModel, Zoo
from matchbound.study.models import BINS, CENTRES, GENUINE_SIZE, LONGEST, population_of


def test_the_papers_model() -> None:
    data = SyntheticModel().sample(30, rng=3)
    assert data.vectors.shape == (150, 128)
    assert data.similarity == "euclidean"
    assert np.allclose(np.linalg.norm(data.vectors, axis=1), 1.0)
    assert data.instance_counts.tolist() == [5] * 30
    assert np.array_equal(data.vectors, SyntheticModel().sample(30, rng=3).vectors)
    assert not np.array_equal(data.vectors, SyntheticModel().sample(30, rng=4).vectors)


@pytest.mark.parametrize("centres", CENTRES)
def test_centres_have_mean_and_variance_one(centres: str) -> None:
    drawn = SyntheticModel(centres=centres)._centres((200_000,), np.random.default_rng(1))  # type: ignore[arg-type]
    fourth = float(((drawn - drawn.mean()) ** 4).mean())
    assert abs(drawn.mean() - 1.0) < 5 / np.sqrt(drawn.size)
    assert abs(drawn.var() - 1.0) < 5 * np.sqrt(fourth / drawn.size)


def test_noise_has_the_variance_it_is_given() -> None:
    model = SyntheticModel(noise_variance=5.0, dimensions=64, sizes=2)
    centres, scale = model._people(1000, np.random.default_rng(0), np.float64)
    assert centres.shape == (1000, 64)
    assert np.allclose(scale**2, 5.0)


def test_laws_of_the_number_of_instances() -> None:
    rng = np.random.default_rng(5)
    geometric = Geometric(mean=4.0, least=2).draw(50_000, rng)
    assert geometric.min() == 2
    assert abs(geometric.mean() - 4.0) < 5 * np.sqrt(6.0 / 50_000)  # variance of the law: 2·3
    assert Geometric(mean=4.0, most=6).draw(1000, rng).max() == 6
    listed = SyntheticModel(sizes=(1, 9)).draw_sizes(1000, rng)
    assert set(listed.tolist()) == {1, 9}
    assert 400 < np.count_nonzero(listed == 9) < 600
    assert SyntheticModel(sizes=[2, 3]).sizes == (2, 3)  # type: ignore[arg-type]


def test_the_zoo_does_what_its_names_say() -> None:
    """At the plain model's thresholds wolves and lambs raise FAR, and goats FRR, beyond Monte Carlo error."""
    plain = SyntheticModel()
    truth = plain.truth(far=[0.01], frr=[0.01], n_identities=4000)
    (far,), (frr,) = truth.far, truth.frr
    for zoo, metric, threshold in (
        (Zoo(wolf_share=0.1, wolf_strength=0.8), "far", far.threshold),
        (Zoo(lamb_share=0.2, lamb_strength=0.8), "far", far.threshold),
        (Zoo(goat_share=0.1, goat_strength=0.5), "frr", frr.threshold),
    ):
        there = population_of(SyntheticModel(zoo=zoo), n_identities=4000)
        assert float(there.rates(metric, threshold)) > 0.01 + 0.003
    unlike = population_of(SyntheticModel(zoo=Zoo(goat_share=0.1, goat_strength=0.5)), n_identities=4000)
    assert float(unlike.rates("far", far.threshold)) < 0.011


def test_truth_agrees_with_another_population() -> None:
    """Rates at the thresholds of one population, measured in another: within 4 standard errors of the difference."""
    model = SyntheticModel()
    truth = population_of(model, n_identities=8000, seed=1).truth((1e-3, 1e-1), (1e-2, 1e-1))
    other = population_of(model, n_identities=8000, seed=2)
    for true in (*truth.far, *truth.frr):
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


def test_truth_does_not_depend_on_instances_and_is_cached(tmp_path: Path) -> None:
    first = SyntheticModel(sizes=5).truth(far=[0.1], n_identities=400, cache=tmp_path)
    files = list(tmp_path.iterdir())
    assert len(files) == 1
    stamp = files[0].stat().st_mtime_ns
    assert SyntheticModel(sizes=Geometric(3.0)).truth(far=[0.1], n_identities=400, cache=tmp_path) == first
    assert files[0].stat().st_mtime_ns == stamp
    assert SyntheticModel().truth(far=[0.1], n_identities=400) == first


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: SyntheticModel(centres="cauchy"), "centres"),
        (lambda: SyntheticModel(noise_variance=0.0), "noise_variance"),
        (lambda: SyntheticModel(dimensions=0), "dimensions"),
        (lambda: SyntheticModel(sizes=0), "sizes"),
        (lambda: SyntheticModel(sizes=()), "sizes"),
        (lambda: SyntheticModel().sample(0), "n_identities"),
        (lambda: SyntheticModel().truth(far=[0.0], n_identities=40), "strictly between"),
        (lambda: Zoo(wolf_share=0.7, goat_share=0.6), "shares"),
        (lambda: Zoo(lamb_strength=2.0), "lamb_strength"),
        (lambda: Zoo(goat_strength=-1.0), "goat_strength"),
        (lambda: Geometric(0.5), "least"),
        (lambda: Geometric(3.0, least=2, most=1), "most"),
    ],
)
def test_wrong_arguments(make, match: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(mb.UsageError, match=match):
        make()
