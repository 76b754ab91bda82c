"""Curves: every point, variance and reading equals its slow twin; ties and steps follow the stated rule."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
import naive_curves as naive
from cases import both_kinds, model, quiet
from conftest import golden_table
from matchbound.calls.evaluate import roc
from matchbound.counting.recount import tally_comparisons
from matchbound.counting.sources import recount_of
from matchbound.counts.curve import curve_of_tally
from matchbound.results.roc import RocCurve
from matchbound.stats.curve.rates import _ratio_variance
from strategies import Row, comparisons, tables

GOLDEN = ("balanced", "unbalanced", "incomplete", "larger")


@given(tables())
def test_points_equal_the_naive_ones(rows: list[Row]) -> None:
    both_kinds(rows)
    curve = quiet(comparisons(rows))
    expected = naive.points(rows)
    assert [Fraction(int(x), curve.tally.n_impostor) for x in curve.tally.false_matches] == [p[0] for p in expected]
    assert [Fraction(int(e), curve.tally.n_genuine) for e in curve.tally.false_nonmatches] == [p[1] for p in expected]


@given(tables())
def test_variances_at_every_threshold_equal_the_naive_ones(rows: list[Row]) -> None:
    both_kinds(rows)
    curve = quiet(comparisons(rows))
    for k, threshold in enumerate(curve.thresholds):
        assert curve.far_variance[k] == pytest.approx(float(naive.far_variance(rows, threshold)), rel=1e-12, abs=1e-300)
        assert curve.frr_variance[k] == pytest.approx(float(naive.frr_variance(rows, threshold)), rel=1e-12, abs=1e-300)


@given(tables(), st.fractions(0, 1, max_denominator=40))
def test_readings_equal_the_naive_ones(rows: list[Row], target: Fraction) -> None:
    both_kinds(rows)
    curve = quiet(comparisons(rows))
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
    curve = quiet(data)
    for point in (curve.at_far(0.2), curve.at_frr(0.2), curve.eer()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mb.MatchboundWarning)
            rates = mb.evaluate(data, point.threshold)
        assert (point.far, point.frr) == (rates.far.estimate, rates.frr.estimate)
    assert curve.at_far(0.2).far <= 0.2
    assert curve.at_frr(0.2).frr <= 0.2


@pytest.mark.parametrize("name", GOLDEN)
def test_every_threshold_equals_evaluate(name: str) -> None:
    data = golden_table(name)
    curve = quiet(data)
    some = np.unique(np.linspace(0, len(curve) - 1, 150).astype(int))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.MatchboundWarning)
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
    curve = quiet(mb.Comparisons(a, b, score))
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
    near, far = quiet(mb.Comparisons(a, b, score, distance=True)), quiet(mb.Comparisons(a, b, -score))
    np.testing.assert_array_equal(near.thresholds, -far.thresholds)
    np.testing.assert_array_equal(near.far_variance, far.far_variance)
    assert near.at_far(0.05).interval() == far.at_far(0.05).interval()
    assert near.eer().interval() == far.eer().interval()


def test_a_stepped_curve_equals_the_sorted_one_where_it_has_points() -> None:
    data = model(30, 4, seed=2).comparisons()
    whole = quiet(data)
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


def test_large_embeddings_have_fewer_points_each_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    import matchbound.counting.recount as engine

    source = model(40, 4, seed=3)
    whole = quiet(source)
    monkeypatch.setattr(engine, "EXACT_COMPARISONS", 1000)
    few = quiet(source)
    assert 300 < len(few) < len(whole)
    assert (few.far[0], few.frr[0], few.far[-1], few.frr[-1]) == (0.0, 1.0, 1.0, 0.0)
    assert np.all(np.diff(few.thresholds) > 0)
    for k in range(0, len(few), 25):
        last = int(np.flatnonzero(whole.thresholds <= few.thresholds[k])[-1])
        assert (whole.far[last], whole.frr[last]) == (few.far[k], few.frr[k])
        assert few.far_variance[k] == pytest.approx(whole.far_variance[last], rel=1e-11, abs=1e-18)
    assert few.at_far(0.01).estimate == pytest.approx(whole.at_far(0.01).estimate, abs=0.02)


def test_genuine_pairs_are_found_once_each() -> None:
    from matchbound.counting.pairs import GenuinePairs

    source = mb.Embeddings(np.random.default_rng(0).normal(size=(40, 3)), np.repeat([0, 1, 2, 3], [1, 3, 16, 20]))
    first, second = GenuinePairs.of(source).sample(10**6, np.random.default_rng(0))
    assert first.size == 3 + 120 + 190
    assert np.all(source.codes[first] == source.codes[second])
    assert len({frozenset(pair) for pair in zip(first.tolist(), second.tolist(), strict=True)}) == first.size


@pytest.mark.parametrize(
    ("rows", "match"),
    [([("a", "b", 0.1)], "no genuine"), ([("a", "a", 0.1)], "no impostor")],
)
def test_a_curve_needs_both_kinds(rows: list[Row], match: str) -> None:
    with pytest.raises(mb.DataError, match=match):
        roc(comparisons(rows))


def test_wrong_arguments_are_named() -> None:
    curve = quiet(golden_table("larger"))
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
