"""The golden tables: known answers to the last digit, from Python."""

from __future__ import annotations

import numpy as np
import pytest

import matchbound as mb
from conftest import golden_expected, golden_table

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")

EXPECTED = golden_expected()
CASES = [(name, case["threshold"]) for name, cases in EXPECTED.items() for case in cases]
DRAWN = 20_000


def expected(name: str, threshold: float) -> dict:
    return next(case for case in EXPECTED[name] if case["threshold"] == threshold)


def close(value: float, target: float) -> bool:
    """Relative difference of 1e-9 at most; limits at 0 carry rounding of the order of 1e-17."""
    return abs(value - target) <= 1e-9 * abs(target) + 1e-15


@pytest.mark.parametrize(("name", "threshold"), CASES)
@pytest.mark.parametrize("metric", ["far", "frr"])
def test_fixed_threshold_values(name: str, threshold: float, metric: str) -> None:
    target = expected(name, threshold)[metric]
    rate = getattr(mb.evaluate(golden_table(name), threshold), metric)
    assert (rate.errors, rate.comparisons) == (target["errors"], target["comparisons"])
    assert rate.tally.n_identities == expected(name, threshold)["identities"]
    for field in ("estimate", "variance", "effective_n"):
        assert close(getattr(rate, field), target[field]), field
    for method in ("wilson", "wald", "naive-wilson"):
        for level, limits in target[method].items():
            made = rate.interval(method, float(level))
            assert close(made.low, limits[0]), (method, level)
            assert close(made.high, limits[1]), (method, level)


@pytest.mark.parametrize("name", list(EXPECTED))
def test_a_series_of_thresholds_equals_one_at_a_time(name: str) -> None:
    thresholds = [case["threshold"] for case in EXPECTED[name]]
    data = golden_table(name)
    for threshold, rates in zip(thresholds, mb.evaluate(data, thresholds), strict=True):
        alone = mb.evaluate(data, threshold)
        for metric in ("far", "frr"):
            one, other = getattr(rates, metric), getattr(alone, metric)
            assert (one.errors, one.variance, one.interval()) == (
                other.errors,
                other.variance,
                other.interval(),
            )


BOOTSTRAPPED = [
    (name, case["threshold"], method)
    for name, cases in EXPECTED.items()
    for case in cases
    for method in case.get("bootstrap", {})
]


@pytest.mark.parametrize(("name", "threshold", "method"), BOOTSTRAPPED)
@pytest.mark.parametrize("metric", ["far", "frr"])
def test_bootstrap_moments_agree_with_enumeration(name: str, threshold: float, method: str, metric: str) -> None:
    """Mean and variance of 20,000 replicates within 4 Monte Carlo standard errors of the enumerated ones."""
    target = expected(name, threshold)["bootstrap"][method][metric]
    rate = getattr(mb.evaluate(golden_table(name), threshold), metric)
    drawn = rate.bootstrap(method, DRAWN, rng=20_240).replicates
    error_of_mean = np.sqrt(target["variance"] / DRAWN)
    fourth = float(((drawn - drawn.mean()) ** 4).mean())
    error_of_variance = np.sqrt(max(fourth - drawn.var() ** 2, 0.0) / DRAWN)
    assert abs(drawn.mean() - target["mean"]) <= 4 * error_of_mean + 1e-12
    assert abs(drawn.var(ddof=1) - target["variance"]) <= 4 * error_of_variance + 1e-12
    assert np.unique(np.round(drawn, 12)).size <= target["support"]
