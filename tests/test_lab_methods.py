"""The fast counts and intervals of studies are those of the package."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchbound as mb
import naive
import naive_lab
from matchbound.results.rates import Rate
from matchbound.stats.resampling import Scheme, far_replicates, frr_replicates
from matchbound.study.methods import (
    FAST,
    ByRate,
    Draws,
    latent_method,
    method_named,
    two_level_method,
    vertex_replicates,
    weighted_replicates,
)
from matchbound.study.samples import Cell, Sample

LEVELS = np.array([0.8, 0.95])


def some_sample(seed: int, similarity: str = "euclidean", least: int = 1, count: int = 6) -> Sample:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(least, 5, count).astype(np.int64)
    if (sizes == 1).all():
        sizes[0] = 2
    centres = np.repeat(rng.standard_normal((count, 4)), sizes, axis=0)
    vectors = centres + rng.standard_normal((int(sizes.sum()), 4))
    low, high = (0.7, 2.5) if similarity == "euclidean" else (-0.2, 0.6)
    cells = (
        Cell("far", 0.1, float(rng.uniform(low, high)), 0.1),
        Cell("frr", 0.1, float(rng.uniform(low, high)), 0.1),
        Cell("far", 0.2, float(rng.uniform(low, high)), 0.2),
        Cell("frr", 0.3, float(rng.uniform(low, high)), 0.3),
    )
    return Sample(vectors, sizes, similarity, cells)  # type: ignore[arg-type]


def draws_of(seed: int, sample: Sample, n_resamples: int = 199) -> Draws:
    return Draws(np.random.SeedSequence(seed, spawn_key=(0,)), n_resamples, sample.n_identities)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), similarity=st.sampled_from(["euclidean", "cosine", "dot"]))
def test_counts_are_those_of_the_engine(seed: int, similarity: str) -> None:
    sample = some_sample(seed, similarity)
    thresholds = np.random.default_rng(seed).uniform(-1.0, 3.0, 5)
    mine, theirs = sample.tally(thresholds, pairs=True), mb.tally(sample.embeddings(), thresholds, pairs=True)
    for part, names in (("genuine", ("comparisons", "errors")), ("impostor", ("comparisons", "errors"))):
        for name in names:
            assert np.array_equal(getattr(getattr(mine, part), name), getattr(getattr(theirs, part), name))
    assert mine.impostor.sum_mm == theirs.impostor.sum_mm
    assert np.array_equal(mine.impostor.sum_nm, theirs.impostor.sum_nm)
    assert np.array_equal(mine.impostor.sum_nn, theirs.impostor.sum_nn)
    for left, right in zip(mine.impostor.erred, theirs.impostor.erred, strict=True):  # type: ignore[arg-type]
        for name in ("first", "second", "count"):
            assert np.array_equal(getattr(left, name), getattr(right, name))
    rows = naive_lab.rows_of(sample.vectors, np.repeat(np.arange(6), sample.sizes), similarity)  # type: ignore[arg-type]
    for k, threshold in enumerate(thresholds):
        errors = sum(y for _, _, y in naive.impostor_outcomes(rows, threshold, sample.distance))
        assert errors == mine.impostor.errors[k].sum() // 2


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_parametric_limits_are_those_of_the_rates(seed: int) -> None:
    sample = some_sample(seed)
    for name in ("wilson", "wald", "naive-wilson"):
        limits = FAST[name](sample, LEVELS, draws_of(seed, sample))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mb.MatchboundWarning)
            expected = ByRate(name)(sample, LEVELS, draws_of(seed, sample))
        assert np.allclose(limits, expected, rtol=1e-12, atol=1e-15, equal_nan=True)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_replicates_are_the_literal_ones(seed: int) -> None:
    sample = some_sample(seed)
    owners = np.repeat(np.arange(6), sample.sizes)
    rows = naive_lab.rows_of(sample.vectors, owners, "euclidean")  # type: ignore[arg-type]
    rows = [(a, b, -s) for a, b, s in rows]
    draws = draws_of(seed, sample, 5)
    vertex = vertex_replicates(draws.multinomial, sample.pair_errors, sample.sizes)
    double = draws.with_comparisons(draws.double, "double-or-nothing", lambda w: (w > 0).sum(axis=1) - 1.0)
    doubled = weighted_replicates(double, sample.pair_errors, sample.sizes)
    own = {str(i): float(size) ** 2 for i, size in enumerate(sample.sizes)}
    for k, c in enumerate(sample.far_cells):
        threshold = -sample.cells[c].threshold
        for b, weights in enumerate(draws.multinomial):
            drawn = [str(i) for i, times in enumerate(weights) for _ in range(int(times))]
            assert vertex[k, b] == pytest.approx(naive.vertex_far(rows, threshold, drawn, own))
        for b, weights in enumerate(double):
            weight = {str(i): float(w) for i, w in enumerate(weights)}
            assert doubled[k, b] == pytest.approx(naive.weighted_far(rows, threshold, weight))


@pytest.mark.parametrize("name", ["subsets", "two-level", "vertex", "double-or-nothing"])
def test_bootstraps_have_the_law_of_the_package(name: str) -> None:
    """Limits of 20,000 replicates agree with the package's own, within 4 standard errors of the difference."""
    sample = some_sample(11, least=2, count=12)
    big = 20_000
    limits = FAST[name](sample, np.array([0.8]), draws_of(1, sample, big))
    for c, cell in enumerate(sample.cells):
        far = cell.metric == "far"
        k = (sample.far_cells if far else sample.frr_cells).index(c)
        if far:
            own = sample.sizes.astype(float) ** 2
            made = far_replicates(sample.far_tally.impostor, k, Scheme(name), big, 9, self_comparisons=own)
        else:
            made = frr_replicates(sample.frr_tally.genuine, k, Scheme(name), big, 9)
        for limit, share in zip(limits[c, 0], (0.1, 0.9), strict=True):
            slack = 4 * np.sqrt(2 * 0.1 * 0.9 / big)
            at_most, below = np.mean(made <= limit + 1e-12), np.mean(made < limit - 1e-12)
            assert below - slack <= share <= at_most + slack


def test_two_levels_have_the_variance_of_both() -> None:
    """Var* of FRR: between identities plus binomial within (half of it when both orders are there).

    Exactly in expectation; 5 standard errors allowed.
    """
    sample = some_sample(4, least=4, count=12)
    genuine = sample.frr_tally.genuine
    from matchbound.study.methods import _two_levels

    made = _two_levels(draws_of(2, sample, 40_000), genuine.errors, genuine.comparisons, 1)
    g = genuine.comparisons.astype(float)
    assert np.ptp(g) == 0
    doubled = _two_levels(draws_of(2, sample, 40_000), 2 * genuine.errors, 2 * genuine.comparisons, 1)
    shared = _two_levels(draws_of(2, sample, 40_000), genuine.errors, genuine.comparisons, 1, True)
    for k, errors in enumerate(genuine.errors):
        rate = errors / g
        between = rate.var() / g.size
        within = float((rate * (1 - rate) / g).mean()) / g.size
        assert made[k].var() == pytest.approx(between + within, rel=5 * np.sqrt(3 / 40_000))
        assert doubled[k].var() == pytest.approx(between + within / 2, rel=5 * np.sqrt(3 / 40_000))
        twice = 2 - 1 / g.size  # E[W²] of a multinomial weight
        assert shared[k].var() == pytest.approx(between + twice * within, rel=5 * np.sqrt(3 / 40_000))


def test_methods_do_not_disturb_one_another() -> None:
    sample = some_sample(5)
    together = draws_of(3, sample)
    for name in ("vertex", "two-level", "double-or-nothing", "subsets"):
        alone = FAST[name](sample, LEVELS, draws_of(3, sample))
        assert np.array_equal(FAST[name](sample, LEVELS, together), alone)


def test_draws_without_comparisons_are_drawn_again() -> None:
    sample = some_sample(8, count=2, least=2)
    limits = FAST["double-or-nothing"](sample, LEVELS, draws_of(1, sample, 500))
    assert np.isfinite(limits).all()
    draws = draws_of(1, sample, 500)
    assert (draws.double.sum(axis=1) == 0).any()
    kept = draws.with_comparisons(draws.double, "double-or-nothing", lambda w: w.sum(axis=1))
    assert (kept.sum(axis=1) > 0).all()


def test_rates_without_comparisons_have_no_limits() -> None:
    vectors = np.random.default_rng(0).standard_normal((4, 3))
    sample = Sample(vectors, np.ones(4, dtype=np.int64), "euclidean", (Cell("frr", 0.1, 1.0, 0.1),))
    for name in ("wilson", "vertex", "two-level", "double-or-nothing", "latent"):
        assert np.isnan(FAST[name](sample, LEVELS, draws_of(0, sample))).all()


def test_latent_limits_are_those_of_the_package() -> None:
    """One model for all cells against one for each cell, which adds the cell's own rank to the grid: within 2%."""
    from matchbound.study.models import SyntheticModel

    model = SyntheticModel()
    cells = tuple(
        Cell(t.metric, t.rate, t.threshold, t.rate)  # type: ignore[arg-type]
        for part in [model.truth(far=[0.01, 0.1], frr=[0.1], n_identities=4000)]
        for t in (*part.far, *part.frr)
    )
    vectors, sizes = model.draw(40, np.random.default_rng(2))
    sample = Sample(vectors, sizes, "euclidean", cells)
    limits = latent_method(sample, LEVELS, draws_of(0, sample))
    assert (limits[..., 0] < limits[..., 1]).all()
    far = mb.evaluate(sample.embeddings(), [cell.threshold for cell in cells])
    for c, cell in enumerate(cells):
        rate: Rate = getattr(far[c], cell.metric)
        for k, level in enumerate(LEVELS):
            expected = rate.interval("latent", float(level))
            assert limits[c, k] == pytest.approx([expected.low, expected.high], rel=0.02)


def test_names() -> None:
    assert method_named("wilson") is FAST["wilson"]
    assert method_named("naive-bootstrap") == ByRate("naive-bootstrap")
    with pytest.raises(mb.UsageError, match="methods"):
        method_named("magic")
    sample = some_sample(2)
    limits = method_named("naive-bootstrap")(sample, LEVELS, draws_of(0, sample))
    assert np.isfinite(limits[list(sample.far_cells)]).all()
    assert two_level_method(sample, LEVELS, draws_of(0, sample)).shape == limits.shape
