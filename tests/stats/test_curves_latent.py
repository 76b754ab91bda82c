"""Latent intervals of FRR@FAR and EER: equal to a walk over angles and points, defined at the edges."""

from __future__ import annotations

import numpy as np
import pytest

import matchbound as mb
import naive_curves as naive
from cases import quiet
from conftest import golden_table
from matchbound.results.roc import RocCurve
from matchbound.stats import budget
from matchbound.stats.curve.influence import point_influence

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


@pytest.fixture(scope="module", params=["population", "population-wolves"])
def curve(request: pytest.FixtureRequest) -> RocCurve:
    return quiet(golden_table(request.param))


def test_frr_at_far_equals_the_naive_walk(curve: RocCurve) -> None:
    point = curve.at_far(0.02)
    pair = point.latent_models()
    deviates = (pair.far.deviate(0.95), pair.frr.deviate(0.95))
    steps = list(zip(curve.tally.false_matches.tolist(), curve.tally.false_nonmatches.tolist(), strict=True))
    low, high = naive.latent_frr_at_far(
        pair.far, pair.frr, pair.correlation, steps, curve.tally.n_impostor, 0.02, deviates
    )
    found = point.interval("latent")
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-5)
    assert found.low < point.estimate < found.high
    assert found.method == "latent"


def test_eer_equals_the_naive_walk(curve: RocCurve) -> None:
    found = curve.eer()
    pair = found.latent_models()
    deviates = (pair.far.deviate(0.9), pair.frr.deviate(0.9))
    near = [int(np.searchsorted(curve.far, found.far * factor)) for factor in np.geomspace(0.6, 1.7, 28)]
    steps = [(int(curve.tally.false_matches[k]), int(curve.tally.false_nonmatches[k])) for k in near]
    low, high = naive.latent_eer(pair.far, pair.frr, pair.correlation, steps, deviates)
    made = found.interval("latent", 0.9)
    assert (made.low, made.high) == pytest.approx((low, high), rel=0.02)
    assert made.low < found.estimate < made.high


def test_far_at_frr_and_one_sided_limits(curve: RocCurve) -> None:
    point = curve.at_frr(0.2)
    inner, outer = point.interval("latent", 0.8), point.interval("latent", 0.99)
    assert 0.0 < outer.low < inner.low < point.estimate < inner.high < outer.high < 1.0
    upper = point.interval("latent", 0.9, side="upper")
    assert upper.low == 0.0
    assert upper.high == pytest.approx(inner.high, rel=1e-6)


def test_correlation_is_that_of_the_influences(curve: RocCurve) -> None:
    pair = curve.at_far(0.1).latent_models()
    far, frr = 0.1, 0.3
    k, h = curve.at_far(far).index, curve.at_frr(frr).index
    rho = point_influence(curve.tally, np.array([k])).far[0]
    a = point_influence(curve.tally, np.array([h])).frr[0]
    v = curve.far_variance[k]
    raw = float(a @ rho) / np.sqrt(max(v, float(rho @ rho) - v) * float(a @ a))
    kept = max(0.0, 1.0 - 1.0 / (pair.far.effective_identities * raw**2))
    expected = float(np.clip(raw * kept, -0.7, 0.7))
    assert budget.estimate_correlation(curve.tally, pair.far, far, frr) == pytest.approx(expected, abs=1e-12)


def test_targets_below_one_error_are_extrapolated(curve: RocCurve) -> None:
    point = curve.at_far(1e-5)
    made = point.interval("latent")
    assert 0.0 <= made.low <= point.estimate <= made.high <= 1.0
    assert made.notes
    index = budget._index_of_rank(curve.tally, np.array([2.0, 3.0, 50.0, 50.9]))
    assert list(curve.tally.false_matches[index[1:]]) == [3, 50, 50]
    assert index[0] <= index[1]


def test_areas_have_no_latent_interval(curve: RocCurve) -> None:
    with pytest.raises(mb.UsageError, match="method"):
        curve.auc().interval("latent")
    with pytest.raises(mb.UsageError, match="level_far"):
        curve.eer().interval("latent", level_far=0.1)


def test_latent_intervals_neither_order_nor_sum_every_comparison() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 60, size=(2, 20_000))
    curve = mb.roc(mb.Comparisons(a, b, rng.normal(size=a.size) + 2.0 * (a == b)))
    assert [number.interval().method for number in (curve.eer(), curve.at_far(0.05))] == ["latent"] * 2
    assert not {"sums", "order"} & vars(curve.tally).keys()
