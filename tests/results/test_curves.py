"""Curves, their points, intervals and bands: equal to slow twins where they are formulas, else simulated."""

from __future__ import annotations

import itertools
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import matchbound as mb
import naive_curves as naive
from cases import both_kinds, model
from conftest import golden_table
from matchbound.calls.evaluate import roc
from matchbound.counting.recount import OfComparisons, tally_comparisons
from matchbound.counting.sources import recount_of
from matchbound.counts.curve import curve_of_tally
from matchbound.results.number import Interval
from matchbound.results.roc import RocCurve
from matchbound.stats.curve import influence as curves_influence
from matchbound.stats.curve.bootstrap import curve_draws, curve_replicates, self_comparisons, step_reader
from matchbound.stats.curve.rates import _ratio_variance, area_terms
from matchbound.stats.curve.smooth import smooth_rates
from matchbound.stats.resampling import Scheme
from strategies import Row, comparisons, tables

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
GOLDEN = ("balanced", "unbalanced", "incomplete", "larger")


@given(tables())
def test_points_equal_the_naive_ones(rows: list[Row]) -> None:
    both_kinds(rows)
    curve = mb.roc(comparisons(rows))
    expected = naive.points(rows)
    assert [Fraction(int(x), curve.tally.n_impostor) for x in curve.tally.false_matches] == [p[0] for p in expected]
    assert [Fraction(int(e), curve.tally.n_genuine) for e in curve.tally.false_nonmatches] == [p[1] for p in expected]


@given(tables())
def test_variances_at_every_threshold_equal_the_naive_ones(rows: list[Row]) -> None:
    both_kinds(rows)
    curve = mb.roc(comparisons(rows))
    for k, threshold in enumerate(curve.thresholds):
        assert curve.far_variance[k] == pytest.approx(float(naive.far_variance(rows, threshold)), rel=1e-12, abs=1e-300)
        assert curve.frr_variance[k] == pytest.approx(float(naive.frr_variance(rows, threshold)), rel=1e-12, abs=1e-300)


@given(tables(), st.fractions(0, 1, max_denominator=40))
def test_readings_equal_the_naive_ones(rows: list[Row], target: Fraction) -> None:
    both_kinds(rows)
    curve = mb.roc(comparisons(rows))
    assert curve.at_far(float(target)).estimate == pytest.approx(float(naive.frr_at_far(rows, target)), abs=1e-14)
    assert curve.at_frr(float(target)).estimate == pytest.approx(float(naive.far_at_frr(rows, target)), abs=1e-14)
    assert curve.eer().estimate == pytest.approx(float(naive.eer(rows)), abs=1e-14)
    assert curve.auc().estimate == pytest.approx(float(naive.auc(rows)), abs=1e-14)
    if target > 0:
        found = curve.auc(float(target)).estimate
        assert found == pytest.approx(float(naive.partial_auc(rows, target)), abs=1e-12)


@given(tables(), st.booleans())
def test_an_operating_point_is_what_its_threshold_gives(rows: list[Row], distance: bool) -> None:
    both_kinds(rows)
    data = comparisons(rows, distance)
    curve = mb.roc(data)
    for point in (curve.at_far(0.2), curve.at_frr(0.2), curve.eer()):
        rates = mb.evaluate(data, point.threshold)
        assert (point.far, point.frr) == (rates.far.estimate, rates.frr.estimate)
    assert curve.at_far(0.2).far <= 0.2
    assert curve.at_frr(0.2).frr <= 0.2


@pytest.mark.parametrize("name", GOLDEN)
def test_every_threshold_equals_evaluate(name: str) -> None:
    data = golden_table(name)
    curve = mb.roc(data)
    some = np.unique(np.linspace(0, len(curve) - 1, 150).astype(int))
    rates = mb.evaluate(data, curve.thresholds[some])
    for k, at in zip(some, rates, strict=True):
        assert curve.far[k] == at.far.estimate
        assert curve.frr[k] == at.frr.estimate
        assert curve.far_variance[k] == pytest.approx(at.far.variance, rel=1e-12, abs=1e-300)
        assert curve.frr_variance[k] == pytest.approx(at.frr.variance, rel=1e-12, abs=1e-300)


def test_variances_survive_cancellation() -> None:
    """Two equal huge terms and a tiny rest: floating point alone would lose it, whole numbers do not."""
    n = 10**9
    x = np.array([n // 2, n // 2 + 1], dtype=np.int64)
    c = 4 * 10**18
    b = np.array([c // 2, c // 2], dtype=np.int64)
    a = np.array([c // 4 + 1, c // 4 + 1], dtype=np.int64)
    made = _ratio_variance(a, b, c, x, n, 4 * n * n)
    for k in range(2):
        p = Fraction(int(x[k]), n)
        exact = (int(a[k]) - 2 * p * int(b[k]) + p * p * c) / (4 * n * n)
        assert made[k] == pytest.approx(float(exact), rel=1e-12)
    assert made[0] == pytest.approx(1 / (4 * n * n), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_points_are_those_of_scikit_learn(seed: int) -> None:
    from sklearn.metrics import roc_auc_score, roc_curve

    rng = np.random.default_rng(seed)
    rows = int(rng.integers(200, 3000))
    a, b = rng.integers(0, 25, rows), rng.integers(0, 25, rows)
    score = np.round(rng.normal(size=rows) + (a == b), int(rng.integers(1, 6)))
    curve = mb.roc(mb.Comparisons(a, b, score))
    far, tpr, thresholds = roc_curve(a == b, score, drop_intermediate=False)
    np.testing.assert_array_equal(curve.far, far)
    np.testing.assert_allclose(1.0 - curve.frr, tpr, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(curve.thresholds[1:], thresholds[1:])
    assert curve.thresholds[0] > score.max()
    assert curve.auc().estimate == pytest.approx(roc_auc_score(a == b, score), abs=1e-13)
    part = roc_auc_score(a == b, score, max_fpr=0.1)  # McClish's correction undone
    area = (2.0 * part - 1.0) * (0.1 - 0.005) + 0.005
    assert curve.auc(0.1).estimate == pytest.approx(area / 0.1, abs=1e-12)


def test_distances_are_similarities_turned_round() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 25, 2000), rng.integers(0, 25, 2000)
    score = np.round(rng.normal(size=2000) - 2.0 * (a == b), 2)
    near, far = mb.roc(mb.Comparisons(a, b, score, distance=True)), mb.roc(mb.Comparisons(a, b, -score))
    np.testing.assert_array_equal(near.thresholds, -far.thresholds)
    np.testing.assert_array_equal(near.far_variance, far.far_variance)
    assert near.at_far(0.05).interval() == far.at_far(0.05).interval()
    assert near.eer().interval() == far.eer().interval()


def test_a_stepped_curve_equals_the_sorted_one_where_it_has_points() -> None:
    data = model(30, 4, seed=2).comparisons()
    whole = mb.roc(data)
    at = np.unique(np.concatenate([[0], np.linspace(0, len(whole) - 1, 400).astype(int)]))
    stepped = RocCurve(curve_of_tally(tally_comparisons(data, whole.thresholds[at], pairs=False)), recount_of(data))
    np.testing.assert_array_equal(stepped.far, whole.far[at])
    np.testing.assert_array_equal(stepped.frr, whole.frr[at])
    np.testing.assert_allclose(stepped.far_variance, whole.far_variance[at], rtol=1e-11, atol=1e-18)
    np.testing.assert_allclose(stepped.frr_variance, whole.frr_variance[at], rtol=1e-11, atol=1e-18)
    assert stepped.eer().estimate == pytest.approx(whole.eer().estimate, abs=0.01)
    wide, narrow = whole.eer().interval(), stepped.eer().interval()
    assert narrow.low == pytest.approx(wide.low, rel=0.1)
    assert narrow.high == pytest.approx(wide.high, rel=0.1)
    with pytest.raises(mb.DataError, match="needs every comparison"):
        stepped.eer().interval("vertex", rng=0)


@pytest.mark.parametrize(
    ("rows", "match"),
    [([("a", "b", 0.1)], "no genuine"), ([("a", "a", 0.1)], "no impostor")],
)
def test_a_curve_needs_both_kinds(rows: list[Row], match: str) -> None:
    with pytest.raises(mb.DataError, match=match):
        roc(comparisons(rows))


def test_wrong_arguments_are_named() -> None:
    curve = mb.roc(golden_table("larger"))
    with pytest.raises(mb.UsageError, match="data must be"):
        roc([1, 2])  # type: ignore[arg-type]
    with pytest.raises(mb.DataError, match="no comparisons"):
        roc(mb.Comparisons([], [], []))
    for call in (
        lambda: curve.at_far(1.5),
        lambda: curve.at_frr(-0.1),
        lambda: curve.auc(0.0),
        lambda: curve.at_far(0.1).interval("wilson"),
        lambda: curve.at_far(0.1).interval(level=95),
        lambda: curve.at_far(0.1).interval("union", level_frr=0.1),
        lambda: curve.at_far(0.1).interval("union", level_far=1.0),
        lambda: curve.at_far(0.1).interval("influence", level_far=0.1),
        lambda: curve.at_far(0.1).interval(smooth="kernel"),
        lambda: curve.eer().interval("union"),
        lambda: curve.eer().bootstrap(n_resamples=0),
        lambda: curve.eer().bootstrap("vertex", 10, 0, smooth="cubic"),  # type: ignore[arg-type]
        lambda: curve.band(far=[0.2, 0.1]),
        lambda: curve.band(method="vertex", smooth="cubic"),
        lambda: curve.band(smooth="kernel"),
        lambda: curve.band(simultaneous=True, method="vertex"),
        lambda: curve.plot(kind="pie"),  # type: ignore[arg-type]
    ):
        with pytest.raises(mb.UsageError):
            call()


TARGETS = (Fraction(0), Fraction(1, 10), Fraction(1, 3), Fraction(9, 10), Fraction(1))


@settings(max_examples=30)
@given(tables(max_rows=25), st.sampled_from(["vertex", "double-or-nothing", "subsets"]), st.integers(0, 1000))
def test_replicates_equal_the_naive_weighted_curve(rows: list[Row], method: str, seed: int) -> None:
    both_kinds(rows)
    tally = OfComparisons(comparisons(rows)).curve()
    try:
        (draw,) = curve_draws(tally, Scheme(method), 5, seed, lambda one: one, 1)
    except mb.DataError:
        assume(False)
    targets = np.array([float(t) for t in TARGETS])
    reader = step_reader(tally, Scheme(method), targets, targets[::-1])
    made = curve_replicates(tally, Scheme(method), 5, seed, reader)
    genuine, impostor = naive.split(rows)
    names = tally.identities.tolist()
    copies = self_comparisons(tally)
    for b in range(5):
        weight = {name: Fraction(w) for name, w in zip(names, draw.weights[b].tolist(), strict=True)}
        if method == "subsets":
            strangers = [weight[r[0]] + weight[r[1]] for r in impostor]
        else:
            strangers = [weight[r[0]] * weight[r[1]] for r in impostor]
        if method == "vertex":
            pairs = sum(
                weight[n] * (weight[n] - 1) / 2 * Fraction(c) for n, c in zip(names, copies.tolist(), strict=True)
            )
            strangers = [w + pairs / len(impostor) for w in strangers]
        curve = naive.weighted_points(rows, strangers, [weight[r[0]] for r in genuine])
        for k, target in enumerate(TARGETS):
            # a FAR that equals a target but for rounding may be read on either side of it
            near = min((abs(far - target) for far, _ in curve if far != target), default=Fraction(1))
            if near > Fraction(1, 10**9):
                assert made.frr[b, k] == pytest.approx(float(naive.read_points(curve, target)), abs=1e-12)
        crossing = next(k for k, (far, frr) in enumerate(curve) if far >= frr)
        (x0, y0), (x1, y1) = curve[crossing - 1], curve[crossing]
        expected = x0 + (x1 - x0) * (y0 - x0) / ((y0 - x0) + (x1 - y1))
        assert made.eer[b] == pytest.approx(float(expected), abs=1e-9)
        area = sum((x1 - x0) * (2 - y0 - y1) / 2 for (x0, y0), (x1, y1) in itertools.pairwise(curve))
        assert made.auc[b] == pytest.approx(float(area), abs=1e-12)


def test_replicates_do_not_depend_on_workers() -> None:
    curve = mb.roc(model(25, 3, seed=1))
    for method in ("vertex", "double-or-nothing"):
        one, two = (curve.band(method=method, n_resamples=250, rng=5, workers=w) for w in (1, 2))
        np.testing.assert_array_equal(one.low, two.low)
        draws = [curve.eer().bootstrap(method, 250, 5, workers=w).replicates for w in (1, 2)]
        np.testing.assert_array_equal(*draws)


def test_two_level_draws_each_copy_of_an_identity_from_its_own_comparisons() -> None:
    """At one threshold the curve's two-level replicates have the moments of the fixed-threshold ones."""
    data = model(20, 4, seed=4).comparisons()
    curve = mb.roc(data)
    point = curve.at_far(0.1)
    rates = mb.evaluate(data, point.threshold)
    steps, scheme = OfComparisons(data).curve(), Scheme("two-level")
    draws = curve_replicates(steps, scheme, 1500, 3, step_reader(steps, scheme, np.array([0.1]), np.array([0.2])))
    fixed = rates.frr.bootstrap("two-level", 4000, 0)
    # FRR@FAR moves with both rates; its spread is at least that of FRR at the fixed threshold less their overlap
    assert draws.frr.std() == pytest.approx(fixed.replicates.std(), rel=0.35)
    assert draws.frr.mean() == pytest.approx(point.estimate, abs=4 * fixed.replicates.std() / np.sqrt(20))


def test_draws_within_identities_are_uniform() -> None:
    from matchbound.kernels.sweep import draw_within

    counts = np.zeros(40, dtype=np.int32)
    starts, members = np.array([0, 10, 10, 40]), np.arange(40)[::-1].copy()
    for seed in range(2000):
        draw_within(np.array([2.0, 5.0, 1.0]), starts, members, np.uint64(seed), counts)
    assert counts[30:].sum() == 2000 * 20
    assert counts[:30].sum() == 2000 * 30
    for part, each in ((counts[30:], 4000.0), (counts[:30], 2000.0)):
        chi = float(((part - each) ** 2 / each).sum())
        assert chi < part.size - 1 + 5.0 * np.sqrt(2.0 * (part.size - 1))


@given(tables(min_identities=3))
def test_area_variance_equals_the_naive_one(rows: list[Row]) -> None:
    both_kinds(rows)
    tally = OfComparisons(comparisons(rows)).curve()
    terms, n, t = area_terms(tally, 1.0), tally.n_impostor, tally.n_genuine
    means = (
        float(-np.diff(tally.false_nonmatches, prepend=t) @ terms.genuine) / t,
        float(np.diff(tally.false_matches, prepend=0) @ terms.impostor) / n,
    )
    a, rho, square = tally.summed((terms.genuine - means[0]) / t, (terms.impostor - means[1]) / n)
    assert square is not None
    far_variance = float(rho @ rho) - square
    own, cross, far = naive.auc_variance(rows)
    assert float(a @ a) == pytest.approx(float(own), abs=1e-12)
    assert float(a @ rho) == pytest.approx(float(cross), abs=1e-12)
    assert far_variance == pytest.approx(float(far), abs=1e-12)


@given(tables(min_identities=3), st.sampled_from([0.1, 0.3, 0.5]), st.sampled_from([0.0, 0.1, 0.8]))
def test_union_equals_the_naive_one(rows: list[Row], target: float, level_far: float) -> None:
    both_kinds(rows)
    found = mb.roc(comparisons(rows)).at_far(target).interval("union", level_far=level_far)
    z = NormalDist().inv_cdf(0.975)
    z_far = NormalDist().inv_cdf((1.0 + level_far) / 2.0)
    low, high = naive.union(rows, target, z, z_far)
    assert found.low == pytest.approx(low, abs=1e-9)
    assert found.high == pytest.approx(high, abs=1e-9)


def test_influence_of_frr_at_far_is_its_derivative() -> None:
    """Take one identity out: FRR@FAR moves by about what the influence function says."""
    source = model(80, 6, seed=8, dimensions=24)
    data = source.comparisons()
    curve = mb.roc(data)
    point = curve.at_far(0.1)
    terms = curves_influence.point_influence(curve.tally, np.array([point.index]))
    influence = terms.frr[0] + terms.slope[0] * terms.far[0]
    moved = []
    for identity in range(80):
        kept = (data.a != identity) & (data.b != identity)
        rest = mb.roc(mb.Comparisons(data.a[kept], data.b[kept], data.score[kept], distance=True))
        moved.append(point.estimate - rest.at_far(0.1).estimate)
    assert np.corrcoef(influence, moved)[0, 1] > 0.9
    assert np.polyfit(influence, moved, 1)[0] == pytest.approx(1.0, abs=0.15)


def test_slope_is_that_of_a_known_curve() -> None:
    """Normal scores one apart: λ = φ(z_q)/φ(z_f) is known; 200,000 scores tell it within a few percent."""
    from scipy.special import ndtri

    rng = np.random.default_rng(0)
    genuine, impostor = rng.normal(1.5, 1.0, 100_000), rng.normal(0.0, 1.0, 200_000)
    a = np.concatenate([np.arange(100_000) % 500, rng.integers(0, 499, 200_000)])
    b = np.concatenate([np.arange(100_000) % 500, np.full(200_000, 499)])
    tally = OfComparisons(mb.Comparisons(a, b, np.concatenate([genuine, impostor]))).curve()
    for far in (0.001, 0.01, 0.1, 0.5):
        k = int(np.searchsorted(tally.false_matches, far * 200_000))
        threshold = -ndtri(far)
        expected = np.exp(-0.5 * ((threshold - 1.5) ** 2 - threshold**2))
        assert curves_influence.curve_slopes(tally, np.array([k]))[0] == pytest.approx(expected, rel=0.06)


@pytest.mark.parametrize("name", ["larger", "population"])
def test_intervals_hold_their_estimates_and_widen_with_the_level(name: str) -> None:
    curve = mb.roc(golden_table(name))
    for statistic in (curve.at_far(0.05), curve.at_frr(0.2), curve.eer(), curve.auc(), curve.auc(0.2)):
        for method in statistic.methods:
            options = {} if method in ("influence", "union") else {"n_resamples": 200, "rng": 1}
            inner, outer = (statistic.interval(method, level, **options) for level in (0.8, 0.99))  # type: ignore[arg-type]
            assert isinstance(inner, Interval)
            assert 0.0 <= outer.low <= inner.low <= inner.high <= outer.high <= 1.0
            if method in ("influence", "union"):
                assert inner.low <= statistic.estimate <= inner.high
        upper = statistic.interval(side="upper")
        assert upper.low == 0.0
        assert upper.high < statistic.interval().high
        assert statistic.variance > 0
        assert statistic.effective_n > 1


def test_perfect_separation_has_an_interval() -> None:
    rng = np.random.default_rng(0)
    a, b = np.triu_indices(60, 1)
    a, b = a // 2, b // 2
    curve = mb.roc(mb.Comparisons(a, b, (a == b) * 10.0 + rng.normal(size=a.size) * 0.1))
    for statistic in (curve.eer(), curve.at_frr(0.0)):
        found = statistic.interval()
        assert found.low == statistic.estimate == 0.0
        assert 0.0 < found.high < 0.4
    area = curve.auc().interval()
    assert area.high == 1.0
    assert 0.6 < area.low < 1.0


def test_few_errors_behind_a_threshold_are_said() -> None:
    curve = mb.roc(model(30, 3, seed=0))
    for method in ("auto", "influence"):
        with pytest.warns(mb.MatchboundWarning, match="rests on 0 false matches"):
            interval = curve.at_far(1e-6).interval(method)
        assert [note.code for note in interval.notes] == ["few-errors"]
    assert curve.at_far(0.1).notes == ()


@pytest.mark.parametrize("method", ["subsets", "two-level"])
def test_bootstraps_advised_against_say_so(method: str) -> None:
    curve = mb.roc(model(20, 3, seed=0))
    with pytest.warns(mb.MatchboundWarning, match="Use method='auto'"):
        curve.at_far(0.1).interval(method, n_resamples=100, rng=0)


@pytest.mark.parametrize("smooth", ["binormal", "log-normal", "kernel"])
def test_smoothed_curves_of_scores_that_follow_the_model(smooth: str) -> None:
    """Scores drawn from the model itself: FRR@FAR, EER and AUC come out at their true values (Monte Carlo ±3 s.e.)."""
    from scipy.special import ndtr, ndtri

    rng = np.random.default_rng(3)
    kin, strangers = rng.normal(2.0, 1.0, 20_000), rng.normal(0.0, 1.0, 60_000)
    score = np.concatenate([kin, strangers])
    if smooth == "log-normal":
        score = np.exp(score)
    a = np.concatenate([np.arange(20_000) % 100, rng.integers(0, 99, 60_000)])
    b = np.concatenate([np.arange(20_000) % 100, np.full(60_000, 99)])
    rates = smooth_rates(mb.roc(mb.Comparisons(a, b, score)).tally, smooth)  # type: ignore[arg-type]
    tolerance = 0.02 if smooth == "kernel" else 0.012
    for far in (0.01, 0.1, 0.4):
        truth = float(ndtr(-ndtri(far) - 2.0))
        frr = rates.frr_at(np.array([far]))[0]
        assert frr == pytest.approx(truth, abs=tolerance)
        assert rates.far_at(frr)[0] == pytest.approx(far, rel=0.02)
    assert rates.eer()[0] == pytest.approx(float(ndtr(-1.0)), abs=0.01)
    assert rates.auc()[0] == pytest.approx(float(ndtr(np.sqrt(2.0))), abs=0.005)


@pytest.mark.parametrize("smooth", ["binormal", "log-normal", "kernel"])
def test_smoothed_replicates_with_unit_weights_are_the_smoothed_curve(smooth: str) -> None:
    from matchbound.stats.curve import smooth as curves_smooth
    from matchbound.stats.curve.bootstrap import Draw

    curve = mb.roc(model(20, 4, seed=5))
    tally = curve.tally
    whole = smooth_rates(tally, smooth)  # type: ignore[arg-type]
    ones = Draw(np.ones((1, 20)), np.zeros(1), False, np.random.default_rng(0))
    impostor, genuine = curves_smooth._row_scores(tally, smooth)  # type: ignore[arg-type]
    if smooth == "kernel":
        grid = curves_smooth._Grid.of(genuine, impostor)
        made = grid.rates(*curves_smooth._weighted_histograms(tally, ones, grid, impostor, genuine))
        tolerance = 2e-3  # scores are rounded to cells in replicates
    else:
        made = curves_smooth._normal_rates(*curves_smooth._weighted_moments(tally, ones, impostor, genuine))
        tolerance = 1e-9
    for far in (0.01, 0.1, 0.3):
        assert made.frr_at(np.array([far]))[0, 0] == pytest.approx(whole.frr_at(np.array([far]))[0, 0], abs=tolerance)
    found = curve.at_far(0.1).interval("double-or-nothing", n_resamples=200, rng=0, smooth=smooth)  # type: ignore[arg-type]
    assert found.low < curve.at_far(0.1).smoothed(smooth) < found.high  # type: ignore[arg-type]
    assert found.method == f"double-or-nothing ({smooth})"
    with pytest.raises(mb.UsageError, match="smoothed curves go with"):
        curve.band(method="two-level", n_resamples=10, smooth=smooth)


def test_log_normal_needs_positive_scores() -> None:
    with pytest.raises(mb.DataError, match="above 0"):
        mb.roc(golden_table("balanced")).eer().smoothed("log-normal")


def test_self_comparisons_of_complete_and_incomplete_data() -> None:
    data = model(12, 3, seed=0).comparisons()
    np.testing.assert_array_equal(self_comparisons(OfComparisons(data).curve()), np.full(12, 9.0))
    part = OfComparisons(mb.Comparisons(data.a[::2], data.b[::2], data.score[::2])).curve()
    assert np.all(self_comparisons(part) < 9.0)


def test_band_equals_the_intervals_that_it_joins() -> None:
    curve = mb.roc(model(40, 4, seed=6))
    band = curve.band(far=[0.02, 0.1, 0.3])
    for k, far in enumerate(band.far):
        terms = curves_influence.point_influence(curve.tally, np.array([curve.at_far(far).index]))
        v = float(terms.variance(np.ones(1), terms.slope, False)[0])
        q = float(terms.frr_rate[0])
        assert band.frr[k] == q == curve.at_far(far).estimate
        assert v > 0
        assert band.high[k] - band.low[k] == pytest.approx(curve.at_far(far).interval("influence").width, rel=0.25)
    both = curve.band(simultaneous=True, rng=3)
    assert both.critical > curve.band().critical
    assert np.all(np.diff(both.low) <= 0)
    assert np.all(np.diff(both.high) <= 0)
    again = curve.band(simultaneous=True, rng=3)
    np.testing.assert_array_equal(both.high, again.high)
    assert np.all((both.low <= both.frr) & (both.frr <= both.high))


def test_sup_quantile_of_independent_directions() -> None:
    """Ten independent directions: the quantile of the largest of ten |normals| is Φ⁻¹((1 + 0.95^(1/10))/2) = 2.80."""
    from scipy.special import ndtri

    psi = np.eye(10) * np.arange(1.0, 11.0)[:, None]
    expected = float(ndtri((1.0 + 0.95**0.1) / 2.0))
    assert curves_influence._sup_quantile(psi, 0.95, 40_000, 0) == pytest.approx(expected, abs=0.03)


def test_threshold_for_meets_its_target() -> None:
    data = model(60, 4, seed=7).comparisons()
    curve = mb.roc(data)
    choice = curve.threshold_for(0.05, confidence=0.9)
    far = mb.evaluate(data, choice.threshold).far
    assert far.estimate == choice.far
    assert far.upper_bound(0.9) == pytest.approx(choice.far_upper, abs=1e-12)
    assert choice.far_upper <= 0.05
    more = curve.thresholds[curve.thresholds > choice.threshold][:200]  # more lenient distances
    assert all(rates.far.upper_bound(0.9) > 0.05 for rates in mb.evaluate(data, more))
    for method in ("wilson", "latent"):
        with pytest.raises(mb.DataError, match="no threshold of these data supports FAR ≤ 1e-07"):
            curve.threshold_for(1e-7, method=method)  # type: ignore[arg-type]
    with pytest.raises(mb.UsageError, match="method must be"):
        curve.threshold_for(0.05, method="wald")  # type: ignore[arg-type]


def simulated(rng: np.random.Generator) -> RocCurve:
    """30 identities with 4 instances, normal scores with a random effect a pair of identities: FRR@FAR is known."""
    first, second = np.triu_indices(120, 1)
    a, b = first // 4, second // 4
    effect = rng.normal(0.0, 0.45, 30)
    score = effect[a] + effect[b] + rng.normal(size=a.size)
    kin = np.sqrt(0.6) * rng.normal(0.0, 1.0, 30)[a] + np.sqrt(0.4) * rng.normal(size=a.size)
    score = np.where(a == b, 2.0 + kin, score)
    return mb.roc(mb.Comparisons(a, b, score))


def test_coverage_by_simulation() -> None:
    """150 data sets, level 0.9: coverage within 4 Monte Carlo standard errors (2.5 points each) below, none above 1."""
    from scipy.special import ndtr, ndtri

    scale = np.sqrt(1.0 + 2.0 * 0.45**2)
    frr = [float(ndtr(-ndtri(far) * scale - 2.0)) for far in (0.03, 0.2)]
    grid = np.linspace(-5.0, 5.0, 20001)
    gap = ndtr(-grid / scale) - ndtr(grid - 2.0)
    eer = float(ndtr(-grid[np.argmin(np.abs(gap))] / scale))
    auc = float(ndtr(2.0 / np.sqrt(1.0 + scale**2)))
    stretch = ndtr(np.linspace(ndtri(0.01), 0.0, 60))
    true_frr = ndtr(-ndtri(stretch) * scale - 2.0)
    hits = np.zeros(5)
    for number in range(150):
        curve = simulated(np.random.default_rng([1, number]))
        hits[0] += frr[0] in curve.at_far(0.03).interval("influence", level=0.9)
        hits[1] += frr[1] in curve.at_far(0.2).interval("influence", level=0.9)
        hits[2] += eer in curve.eer().interval("influence", level=0.9)
        hits[3] += auc in curve.auc().interval("influence", level=0.9)
        band = curve.band(0.9, simultaneous=True, far=stretch, n_resamples=500)
        hits[4] += np.all((band.low <= true_frr) & (true_frr <= band.high))
    coverage = hits / 150
    assert np.all(coverage > 0.9 - 4 * 0.0245), coverage


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_an_interval_at_no_false_accept_holds_its_estimate() -> None:
    for seed in range(3):
        curve = mb.roc(mb.demo_data(n_identities=40, seed=seed))
        point = curve.at_far(0.0)
        low, high = point.interval()
        assert low <= point.estimate <= high
