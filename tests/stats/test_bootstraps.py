"""Bootstraps: literal replicates, enumerated moments, closed forms, seeds, options."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import matchbound as mb
import naive
from conftest import golden_table
from matchbound.stats.intervals import effective_n, wilson
from matchbound.stats.resampling import (
    BLOCK,
    BOOTSTRAPS,
    Scheme,
    block_rng,
    copies_compared,
    identity_weights,
    instance_counts,
)  # fmt: skip
from matchbound.stats.variance import residual_sums
from strategies import comparisons, instance_comparisons, instance_tables, tables

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")

thresholds = st.integers(-5, 5).map(lambda s: s / 4)


def first_weights(method: str, size: int, rows: int, seed: int) -> np.ndarray:
    return identity_weights(Scheme(method), size, rows, block_rng(seed, 0))


def copies_of(data: mb.Comparisons) -> np.ndarray:
    """Comparisons that two copies of each identity stand for in a vertex draw."""
    tally = mb.tally(data, 0.0)
    sizes = instance_counts(tally.instances, tally.genuine.comparisons)
    return copies_compared(tally.impostor.compared, tally.impostor.comparisons, sizes)


def literal(
    metric: str, method: str, rows: list, threshold: float, weight: dict, drawn: list, own: dict
) -> float | None:
    """The rate of one replicate, by walking over the comparisons."""
    if metric == "frr":
        return naive.weighted_frr(rows, threshold, weight)
    if method == "subsets":
        return naive.subsets_far(rows, threshold, drawn)
    if method == "vertex":
        return naive.vertex_far(rows, threshold, drawn, own)
    return naive.weighted_far(rows, threshold, weight)


@settings(max_examples=40)
@given(
    tables(min_identities=3),
    thresholds,
    st.sampled_from(["subsets", "vertex", "double-or-nothing"]),
    st.integers(0, 99),
)
def test_replicates_equal_their_literal_twins(rows: list, threshold: float, method: str, seed: int) -> None:
    """The first draw of each row that has comparisons left is the replicate that a literal bootstrap would give."""
    data = comparisons(rows)
    names = [str(name) for name in data.identities]
    rates = mb.evaluate(data, threshold)
    weights = first_weights(method, len(names), 20, seed)
    own = dict.fromkeys(names, 0.0)
    if rates.far.comparisons and method == "vertex":
        own = dict(zip(names, copies_of(data), strict=True))
    for metric in ("far", "frr"):
        rate = getattr(rates, metric)
        if not rate.comparisons:
            continue
        try:
            made = rate.bootstrap(method, 20, rng=seed).replicates
        except mb.DataError:
            assert rate.comparisons
            continue
        for row in range(20):
            weight = dict(zip(names, weights[row], strict=True))
            drawn = [name for name in names for _ in range(int(weight[name]))]
            target = literal(metric, method, rows, threshold, weight, drawn, own)
            if target is None:
                break  # this row was drawn again, and the rows after it come from a stream that moved on
            assert made[row] == pytest.approx(target, abs=1e-12)


def five_identities() -> list:
    rng = np.random.default_rng(3)
    sizes = [1, 2, 3, 2, 1]
    who = np.repeat(np.arange(5), sizes)
    return [
        (f"p{who[i]}", f"x{i}", f"p{who[j]}", f"x{j}", float(rng.standard_normal()))
        for i, j in itertools.combinations(range(who.size), 2)
    ]


@pytest.mark.parametrize("method", ["subsets", "vertex", "double-or-nothing"])
@pytest.mark.parametrize("metric", ["far", "frr"])
def test_every_weight_of_five_identities_enumerated(method: str, metric: str) -> None:
    """Mean and variance over all possible draws, against 40,000 replicates, within 4 Monte Carlo standard errors."""
    rows = five_identities()
    data = instance_comparisons(rows)
    plain = [(r[0], r[2], r[4]) for r in rows]
    names = [str(name) for name in data.identities]
    own = {name: float(size) ** 2 for name, size in zip(names, data.instance_counts, strict=True)}
    values = []
    if method == "double-or-nothing":
        draws = [dict(zip(names, draw, strict=True)) for draw in itertools.product((0.0, 2.0), repeat=5)]
    else:
        every = itertools.product(names, repeat=5)
        draws = [{name: float(drawn.count(name)) for name in names} for drawn in every]
    for weight in draws:
        drawn = [name for name in names for _ in range(int(weight[name]))]
        values.append(literal(metric, method, plain, 0.2, weight, drawn, own))
    values = [value for value in values if value is not None]
    made = getattr(mb.evaluate(data, 0.2), metric).bootstrap(method, 40_000, rng=8).replicates
    mean, variance = float(np.mean(values)), float(np.var(values))
    fourth = float(np.mean((np.array(values) - mean) ** 4))
    assert abs(made.mean() - mean) < 4 * np.sqrt(variance / made.size)
    assert abs(made.var() - variance) < 4 * np.sqrt((fourth - variance**2) / made.size)


@pytest.mark.parametrize("method", ["subsets", "vertex"])
def test_closed_forms_of_replicate_variances(method: str) -> None:
    far, g = mb.evaluate(golden_table("balanced"), 0.321154).far, 6
    r, q = (float(value) / 81 for value in residual_sums(far.tally.impostor, 0))  # of rates of identity pairs
    closed = {
        "subsets": r / (g**2 * (g - 1) ** 2),
        "vertex": 2 * q / (g**3 * (g - 1)) + 4 * (g - 2) * r / (g**4 * (g - 1)),
    }[method]
    made = far.bootstrap(method, 60_000, rng=5).replicates
    fourth = float(((made - made.mean()) ** 4).mean())
    assert abs(made.var() - closed) < 4 * np.sqrt((fourth - made.var() ** 2) / made.size)


@pytest.mark.parametrize("method", BOOTSTRAPS)
@pytest.mark.parametrize("metric", ["far", "frr"])
def test_same_seed_same_replicates_on_any_number_of_workers(method: str, metric: str) -> None:
    rate = getattr(mb.evaluate(golden_table("larger"), 0.401334), metric)
    one = rate.bootstrap(method, 3 * BLOCK + 7, rng=12, workers=1).replicates
    two = rate.bootstrap(method, 3 * BLOCK + 7, rng=12, workers=2).replicates
    other = rate.bootstrap(method, 3 * BLOCK + 7, rng=13).replicates
    more = rate.bootstrap(method, 6 * BLOCK, rng=12).replicates
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
    assert np.array_equal(one[: 3 * BLOCK], more[: 3 * BLOCK])


@pytest.mark.parametrize("size", [50, 2200])  # pairs of many identities are taken one by one
def test_replicates_of_few_and_of_many_identities(size: int) -> None:
    rng = np.random.default_rng(0)
    far = mb.evaluate(mb.Comparisons(*rng.integers(0, size, (2, 4 * size)), rng.standard_normal(4 * size)), 1.0).far
    weights = first_weights("double-or-nothing", far.tally.n_identities, 20, 4)
    tables = far.tally.impostor.erred[0], far.tally.impostor.compared
    wrong, made = (np.array([(w[t.first] * w[t.second]) @ t.count for w in weights]) for t in tables)
    assert far.bootstrap("double-or-nothing", 20, rng=4).replicates == pytest.approx(wrong / made, rel=1e-12)


def test_other_levels_cost_no_resampling_and_nest() -> None:
    boot = mb.evaluate(golden_table("larger"), 0.401334).far.bootstrap("vertex", 1999, rng=7)
    limits = [boot.interval(level) for level in (0.5, 0.8, 0.9, 0.95, 0.99)]
    for inner, outer in itertools.pairwise(limits):
        assert outer.low <= inner.low <= inner.high <= outer.high
    ordered = np.sort(boot.replicates)
    assert boot.interval(0.95).low == pytest.approx(ordered[49], abs=1e-15)  # (B+1)·0.025 = 50
    assert boot.interval(0.95).high == pytest.approx(ordered[1949], abs=1e-15)
    assert boot.interval(0.95, side="upper").high == pytest.approx(ordered[1899], abs=1e-15)
    assert boot.interval(0.95, side="upper").low == 0.0


def test_too_few_replicates_are_noted() -> None:
    made = mb.evaluate(golden_table("larger"), 0.401334).far.interval("vertex", 0.999, n_resamples=100, rng=1)
    assert [note.code for note in made.notes] == ["few-replicates"]


def test_any_variance_feeds_wilson() -> None:
    far = mb.evaluate(golden_table("larger"), 0.401334).far
    boot = far.bootstrap("vertex", 800, rng=2)
    made = far.interval("wilson", variance="vertex", n_resamples=800, rng=2)
    trials = effective_n(far.estimate, boot.variance, far.floor)
    assert tuple(made) == wilson(far.estimate, trials, (1.0 - 0.95) / 2.0)
    wide = far.interval("wilson", variance="bias-corrected")
    assert wide.width > far.interval("wilson").width


@pytest.mark.parametrize(
    ("options", "tau"),
    [
        ({}, 1.0),
        ({"tau": 0.25}, 0.25),
        ({"weights": lambda rng, shape: rng.exponential(1.0, shape)}, 1.0),
        ({"weights": lambda rng, shape: rng.gamma(4.0, 0.25, shape), "tau": 0.25}, 0.25),
    ],
)
def test_weights_of_any_variance(options: dict, tau: float) -> None:
    """Divided by τ, the replicates' variance is (4R + 2τQ)/N2² up to terms of order 1/G: 8% for 600 identities."""
    far = mb.evaluate(mb.demo_data(n_identities=600), 0.4).far
    made = far.bootstrap("double-or-nothing", 8000, rng=1, **options)
    r, q = residual_sums(far.tally.impostor, 0)
    linear = float(4 * r + 2 * tau * q) / float(far.tally.impostor.comparisons.sum()) ** 2
    assert made.variance == pytest.approx(linear, rel=0.08)
    assert made.interval(0.9).width == pytest.approx(2 * 1.645 * np.sqrt(linear), rel=0.08)


def test_fixed_sizes_draw_only_among_equals() -> None:
    strata = np.array([0, 0, 1, 1, 1, 2])
    weights = identity_weights(Scheme("vertex", strata=strata), 6, 200, np.random.default_rng(0))
    assert np.all(weights[:, :2].sum(axis=1) == 2)
    assert np.all(weights[:, 2:5].sum(axis=1) == 3)
    assert np.all(weights[:, 5] == 1)
    far = mb.evaluate(golden_table("larger"), 0.401334).far
    assert far.bootstrap("vertex", 50, rng=0, fixed_sizes=True).replicates.std() > 0


@given(instance_tables(complete=False))
def test_incomplete_data_never_swap_in_more_than_was_compared(rows: list) -> None:
    assume(any(r[0] != r[2] for r in rows))
    data = instance_comparisons(rows)
    assert np.all(copies_of(data) <= data.instance_counts.astype(float) ** 2)


def test_a_star_has_no_comparison_left_for_some_bootstraps() -> None:
    """One identity in every comparison: draws without it are drawn again; replicates stay defined."""
    rows = [("hub", f"p{i}", float(i % 2)) for i in range(6)]
    far = mb.evaluate(comparisons(rows), 0.5).far
    for method in BOOTSTRAPS:
        assert np.isfinite(far.bootstrap(method, 300, rng=0).replicates).all()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        ({"method": "bootstrap"}, "method"),
        ({"n_resamples": 0}, "n_resamples"),
        ({"rng": -1}, "rng"),
        ({"rng": "seed"}, "rng"),
        ({"tau": 2.0}, "tau"),
        ({"method": "double-or-nothing", "tau": 0.0}, "tau"),
        ({"method": "double-or-nothing", "tau": np.inf}, "tau"),
        ({"method": "double-or-nothing", "fixed_sizes": True}, "fixed_sizes"),
        ({"method": "double-or-nothing", "correction": "rescale"}, "correction"),
        ({"correction": "twice"}, "correction must be one of none, drop-one, rescale"),
    ],
)
def test_wrong_arguments_are_named(call: dict, match: str) -> None:
    far = mb.evaluate(golden_table("balanced"), 0.3).far
    with pytest.raises(mb.UsageError, match=match):
        far.bootstrap(**call)
