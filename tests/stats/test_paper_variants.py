"""Variants that the paper names beside its main methods: each against its literal form or an exact enumeration."""

from __future__ import annotations

import itertools
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
from conftest import golden_table, run_json
from matchbound.cli import main
from matchbound.planning.protocol import score_protocol
from matchbound.results.number import Draws
from matchbound.stats.fixed_sizes import kept_share, pooled_sizes
from matchbound.stats.intervals import agresti_coull, jeffreys, normal_quantile
from matchbound.stats.resampling import Scheme, identity_weights

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


def balanced(seed: int, size: int = 5, instances: int = 2) -> mb.Embeddings:
    rng = np.random.default_rng(seed)
    return mb.Embeddings(rng.normal(size=(size * instances, 3)), np.repeat(np.arange(size), instances))


def errors_of(data: mb.Embeddings, threshold: float) -> np.ndarray:
    """Rates of each identity pair, shape (G, G), by direct counting; the diagonal is FRR of each identity."""
    listed = data.comparisons()
    size = data.n_identities
    wrong, count = np.zeros((size, size)), np.zeros((size, size))
    for a, b, s in zip(listed.a, listed.b, listed.score, strict=True):
        erred = s < threshold if a == b else s >= threshold
        for i, j in {(a, b), (b, a)}:
            wrong[i, j] += erred
            count[i, j] += 1
    return wrong / count


@pytest.mark.parametrize("draws", [3, 4, 5])
def test_vertex_with_fewer_draws_by_enumeration(draws: int) -> None:
    """Mean and variance over all 5^K draws are those of the closed form, for K = G, G − 1, G − 2."""
    data = balanced(3)
    y = errors_of(data, 0.3)
    size = len(y)
    p = (y.sum() - np.trace(y)) / (size * (size - 1))
    values = []
    for drawn in itertools.product(range(size), repeat=draws):
        total = sum(p if i == j else y[i, j] for a, i in enumerate(drawn) for b, j in enumerate(drawn) if a != b)
        values.append(total / (draws * (draws - 1)))
    d = y - p
    np.fill_diagonal(d, 0.0)
    r, q = (d.sum(axis=1) ** 2).sum(), (d**2).sum()
    closed = 2 * q / (size**2 * draws * (draws - 1)) + 4 * (draws - 2) * r / (size**3 * draws * (draws - 1))
    assert np.mean(values) == pytest.approx(p)
    assert np.var(values) == pytest.approx(closed)
    if draws == size - 1:
        far = mb.evaluate(data, 0.3).far
        made = far.bootstrap("vertex", 20_000, rng=1, correction="drop-one").replicates
        assert made.mean() == pytest.approx(p, abs=4 * math.sqrt(closed / 20_000))
        assert made.var() == pytest.approx(closed, rel=0.06)
        assert set(np.round(made, 9)) <= set(np.round(values, 9))


def test_frr_variance_is_unbiased_with_one_draw_fewer_and_by_rescaling() -> None:
    """Over all draws: (G−1)/G² times the sample variance as printed (Prop. 4), 1/G times it with either remedy."""
    y = np.array([0.0, 0.5, 0.2, 0.9])
    size = y.size
    unbiased = y.var(ddof=1) / size
    for draws, target in ((size, unbiased * (size - 1) / size), (size - 1, unbiased)):
        means = [np.mean([y[i] for i in drawn]) for drawn in itertools.product(range(size), repeat=draws)]
        assert np.var(means) == pytest.approx(target)
    weights = identity_weights(Scheme("subsets", drop_one=True), 4, 50, np.random.default_rng(0))
    assert np.all(weights.sum(axis=1) == 3)
    rescaled = Draws("subsets", 10, options={"correction": "rescale"}).scheme(np.ones(4, dtype=int))
    assert unbiased * (size - 1) / size / rescaled.tau == pytest.approx(unbiased)


def test_rescaling_moves_replicates_away_from_the_estimate() -> None:
    frr = mb.evaluate(golden_table("larger"), 0.401334).frr
    plain, moved = frr.bootstrap("vertex", 999, rng=2), frr.bootstrap("vertex", 999, rng=2, correction="Rescale")
    size = frr.tally.n_identities
    assert moved.variance == pytest.approx(plain.variance * size / (size - 1))
    for before, after in zip(plain.interval(), moved.interval(), strict=True):
        far_off = (before - frr.estimate) * math.sqrt(size / (size - 1))
        assert after - frr.estimate == pytest.approx(far_off)


@given(st.integers(0, 60), st.integers(1, 60), st.sampled_from([0.025, 0.05, 0.3]))
def test_agresti_coull_adds_pseudo_trials(errors: int, extra: int, tail: float) -> None:
    n, z = errors + extra, normal_quantile(tail)
    centre = (errors + z * z / 2) / (n + z * z)
    half = z * math.sqrt(centre * (1 - centre) / (n + z * z))
    low, high = agresti_coull(errors / n, n, tail)
    assert low == pytest.approx(max(centre - half, 0.0), abs=1e-14)
    assert high == pytest.approx(min(centre + half, 1.0))


def test_jeffreys_limits_are_quantiles_of_the_posterior() -> None:
    from scipy.integrate import quad

    low, high = jeffreys(0.15, 20.0, 0.025)
    whole = math.gamma(3.5) * math.gamma(17.5) / math.gamma(21.0)
    for limit, share in ((low, 0.025), (high, 0.975)):
        assert quad(lambda x: x**2.5 * (1 - x) ** 16.5 / whole, 0, limit)[0] == pytest.approx(share, abs=1e-9)
    assert jeffreys(0.0, 20.0, 0.025)[0] == 0.0
    assert jeffreys(1.0, 20.0, 0.025)[1] == 1.0
    assert jeffreys(0.0, 20.0, 0.025)[1] == pytest.approx(1.0 - jeffreys(1.0, 20.0, 0.025)[0])


@pytest.mark.parametrize(("method", "rule"), [("Agresti-Coull", agresti_coull), ("jeffreys", jeffreys)])
def test_they_take_the_effective_number_of_comparisons(method: str, rule) -> None:  # type: ignore[no-untyped-def]
    rates = mb.evaluate(golden_table("larger"), 0.401334)
    for rate in (rates.far, rates.frr):
        made = rate.interval(method)
        assert tuple(made) == pytest.approx(rule(rate.estimate, rate.effective_n, 0.025))
        assert made.method == method.lower()
        assert rate.estimate in made
        assert rate.interval(method, side="upper").high == pytest.approx(rule(rate.estimate, rate.effective_n, 0.05)[1])
        wide = rate.interval(method, variance="bias-corrected")
        assert wide.width > made.width


@pytest.mark.parametrize("level_far", [0.1, 0.95])
def test_the_union_rule_with_wald(level_far: float) -> None:
    data = balanced(8, size=10, instances=3)
    curve = mb.roc(data)
    point = curve.at_far(0.1)
    made = point.interval("union", base="wald", level_far=level_far)
    assert made.method == "union (wald)"
    # literally: Wald's interval of FAR at the threshold, then Wald's intervals of FRR at its ends
    inside = mb.evaluate(data, point.threshold).far.interval("wald", level_far)
    far = np.asarray(curve.far)
    last = int(np.flatnonzero(far <= inside.high * (1 + 1e-12))[-1])
    ends = (int(np.flatnonzero(far <= inside.low * (1 + 1e-12))[-1]), last if far[last] >= inside.high else last + 1)
    limits = []
    for k in ends:
        rate = mb.evaluate(data, float(curve.thresholds[k])).frr
        limits.append(tuple(rate.interval("wald")) if np.isfinite(curve.thresholds[k]) else (1.0, 1.0))
    assert made.low == pytest.approx(min(low for low, _ in limits))
    assert made.high == pytest.approx(max(high for _, high in limits))
    with pytest.raises(mb.UsageError, match="base"):
        point.interval("union", base="agresti-coull")


def test_options_of_curve_bootstraps() -> None:
    curve = mb.roc(balanced(2, size=12, instances=3))
    point = curve.at_far(0.1)
    narrow = point.bootstrap("double-or-nothing", 400, rng=1, tau=0.25)
    assert narrow.tau == 0.25
    assert narrow.variance == pytest.approx(point.bootstrap("double-or-nothing", 400, rng=1).variance, rel=0.8)
    assert point.interval("vertex", rng=1, n_resamples=50, fixed_sizes=True).method == "vertex"
    with pytest.raises(mb.UsageError, match="unknown option 'tua'"):
        point.interval("vertex", tua=2.0)
    with pytest.raises(mb.UsageError, match="tau"):
        curve.band(method="double-or-nothing", n_resamples=5, tau=0.5)
    assert curve.band(method="vertex", n_resamples=50, correction="drop-one").low.shape == (200,)


def test_neighbouring_sizes_are_pooled() -> None:
    assert list(pooled_sizes(np.array([5, 2, 2, 3, 9, 2]), 2)) == [1, 0, 0, 1, 1, 0]
    assert list(pooled_sizes(np.array([1, 2, 3]), 5)) == [0, 0, 0]
    assert list(pooled_sizes(np.array([4, 4, 7, 7]), 2)) == [0, 0, 1, 1]
    assert kept_share(np.ones(4)) == pytest.approx(0.75)
    assert kept_share(np.ones(1)) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_with_equal_sizes_it_is_the_bias_corrected_plug_in(seed: int) -> None:
    rates = mb.evaluate(balanced(seed, size=8, instances=3), 0.3)
    for rate in (rates.far, rates.frr):
        assert rate.variance_by("fixed-sizes") == pytest.approx(rate.variance_by("bias-corrected"), rel=1e-9)


def test_all_sizes_different_still_have_a_width() -> None:
    rng = np.random.default_rng(0)
    sizes = np.arange(2, 12)
    rates = mb.evaluate(mb.Embeddings(rng.normal(size=(sizes.sum(), 3)), np.repeat(np.arange(10), sizes)), 0.2)
    for rate in (rates.far, rates.frr):
        assert rate.variance_by("fixed-sizes") > 0.0
        assert rate.interval(variance="fixed-sizes", method="wald").width > 0.0
        assert rate.bootstrap("vertex", 200, rng=0, fixed_sizes=True).interval().width > 0.0


@pytest.mark.slow
def test_fixed_sizes_are_unbiased_for_geometric_sizes() -> None:
    """1,200 data sets of the same sizes: the mean variance estimate against the variance of the estimates.

    The Monte Carlo error of the ratio is about 4.5%; the plug-in variances come out 17 to 30% low here.
    """
    rng = np.random.default_rng(4)
    sizes = np.minimum(1 + np.random.default_rng(5).geometric(0.35, 16), 9)
    identity = np.repeat(np.arange(sizes.size), sizes)
    estimates, fixed, plug_in = [], [], []
    for _ in range(1200):
        centre = rng.exponential(1.0, (sizes.size, 8))
        rates = mb.evaluate(mb.Embeddings(centre[identity] + rng.normal(0, 1.2, (identity.size, 8)), identity), 0.6)
        estimates.append([rates.far.estimate, rates.frr.estimate])
        fixed.append([rates.far.variance_by("fixed-sizes"), rates.frr.variance_by("fixed-sizes")])
        plug_in.append([rates.far.variance, rates.frr.variance])
    true = np.var(estimates, axis=0, ddof=1)
    assert np.mean(fixed, axis=0) / true == pytest.approx([1.0, 1.0], abs=0.13)
    assert np.all(np.mean(plug_in, axis=0) / true < 0.9)


@pytest.mark.filterwarnings("default::matchbound.MatchboundWarning")
@pytest.mark.parametrize("method", ["vertex", "double-or-nothing"])
def test_bootstraps_on_protocol_data_say_that_they_overstate(method: str) -> None:
    rng = np.random.default_rng(0)
    data = mb.Embeddings(rng.normal(size=(60, 4)), np.repeat(np.arange(30), 2))
    protocol = mb.design_protocol(np.repeat(np.arange(30), 2), budget=60)
    listed = score_protocol(protocol, data)
    far = mb.evaluate(listed, 0.2).far
    with pytest.warns(mb.MatchboundWarning) as caught:
        far.bootstrap(method, 20, rng=0)
    assert "overstated" in [one.message.args[0].code for one in caught]
    with warnings.catch_warnings():
        warnings.simplefilter("error", mb.MatchboundWarning)
        mb.evaluate(data, 0.2).far.bootstrap(method, 20, rng=0)


def test_variance_and_its_options_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(tmp_path / "x.npz")
    rng = np.random.default_rng(0)
    centre = np.repeat(rng.exponential(1.0, (12, 6)), 3, axis=0)
    np.savez(data, embeddings=centre + rng.normal(0, 0.4, (36, 6)) + 2.0, identity=np.repeat(np.arange(12), 3))
    words = ("evaluate", data, "--threshold", "0.9", "-q", "--method", "wilson")
    plain, other = (run_json(capsys, *words, "--variance", kind) for kind in ("plug-in", "Bias_Corrected"))
    assert other["results"][0]["high"] > plain["results"][0]["high"]
    assert main([*words[:4], "--variance", "best"]) == 2
    assert main(["roc", data, "--far", "0.1", "--method", "influence", "--smooth", "kernel"]) == 2
    assert main(["roc", data, "--far", "0.1", "--method", "influence", "--level-far", "0.5"]) == 2
