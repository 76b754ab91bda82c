"""Formulas that many places share, exact where they are hardest: rates near zero, levels near one."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
from matchbound.errors import named
from matchbound.planning.study import Predictive
from matchbound.stats.curve.influence import EffectiveRate, wilson_t
from matchbound.stats.intervals import normal_quantile, t_quantile, wilson, wilson_limits
from strategies import comparisons

Z = normal_quantile(0.025)


def literal_wilson(p: float, n: float, z: float) -> tuple[float, float]:
    """The paper's eq. 5 as printed, with 60 digits."""
    with localcontext() as context:
        context.prec = 60
        rate, trials, deviate = Decimal(p), Decimal(n), Decimal(z)
        square = deviate * deviate
        centre = (rate * trials + square / 2) / (trials + square)
        half = deviate * trials.sqrt() / (trials + square) * (rate * (1 - rate) + square / (4 * trials)).sqrt()
        return float(centre - half), float(centre + half)


@pytest.mark.parametrize(("p", "n"), [(1e-9, 75.0), (1e-12, 4e3), (3e-7, 25.0), (0.5, 2.0), (0.2, 1e12)])
def test_wilson_is_exact_in_all_its_places(p: float, n: float) -> None:
    low, high = literal_wilson(p, n, Z)
    variance = p * (1.0 - p) / n
    drawn = Predictive(np.array([p]), np.array([variance]), np.array([variance]), 1).wilson(0.025)
    t_low, t_high = literal_wilson(p, n, t_quantile(0.025, 30.0))
    made = {
        "intervals": (wilson(p, n, 0.025), (low, high)),
        "planning": ((float(drawn[0][0]), float(drawn[1][0])), (low, high)),
        "influence": (wilson_t(EffectiveRate(p, variance, n, 30.0), 0.025), (t_low, t_high)),
        "student": (wilson(p, n, 0.025, 30.0), (t_low, t_high)),
    }
    for place, (found, expected) in made.items():
        assert found == pytest.approx(expected, rel=1e-13, abs=0.0), place


@given(
    st.floats(1e-300, 1.0, exclude_max=True),
    st.floats(1e-3, 1e15),
    st.floats(1e-3, 8.0),
)
def test_wilson_against_the_printed_formula(p: float, n: float, z: float) -> None:
    low, high = wilson_limits(p, n, z)
    with localcontext() as context:
        context.prec = 700
        rate, trials, deviate = Decimal(p), Decimal(n), Decimal(z)
        square = deviate * deviate
        root = deviate * (trials * rate * (1 - rate) + square / 4).sqrt()
        expected = [float((rate * trials + square / 2 + sign * root) / (trials + square)) for sign in (-1, 1)]
    assert float(low) == pytest.approx(expected[0], rel=1e-12, abs=1e-307)
    assert float(high) == pytest.approx(expected[1], rel=1e-13)
    assert 0.0 <= low <= high <= 1.0


def test_wilson_at_the_ends() -> None:
    assert wilson(0.0, 10.0, 0.025)[0] == 0.0
    assert wilson(1.0, 10.0, 0.025)[1] == 1.0
    assert wilson(0.3, 0.0, 0.025) == (0.0, 1.0)
    assert wilson(0.3, 10.0, 0.5) == pytest.approx((0.3, 0.3))
    assert float(wilson_limits(0.3, 0.0, 0.0)[0]) == 0.3
    low, high = wilson(0.3, 10.0, 0.6)
    assert low > 0.3 > high


def test_t_quantile_keeps_its_digits_in_the_tail() -> None:
    # Student's t with one degree of freedom is Cauchy: the upper tail at x is arccot(x)/π
    for tail in (0.4, 0.025, 1e-6, 1e-12, 1e-17):
        assert t_quantile(tail, 1.0) == pytest.approx(1.0 / math.tan(math.pi * tail), rel=1e-9)
    assert t_quantile(0.025, 0.2) == t_quantile(0.025, 1.0)
    with pytest.raises(mb.UsageError):
        t_quantile(0.0, 3.0)


@pytest.mark.parametrize("name", ["naive-wilson", "Naive Wilson", "NAIVE_WILSON", " naivewilson ", "naive\u2011wilson"])
def test_names_are_found_however_they_are_written(name: str) -> None:
    assert named(name, ("wilson", "naive-wilson")) == "naive-wilson"


def test_names_that_are_not_found() -> None:
    for words, call in (
        ("one of wilson, vertex; got 'vertx'; did you mean 'vertex'", lambda: named("vertx", ("wilson", "vertex"))),
        ("variance must be one of a, b; got None", lambda: named(None, ("a", "b"), "variance")),
        ("use union", lambda: named("Wil_son", ("union",), hints={"wilson": "use union"})),
    ):
        with pytest.raises(mb.UsageError, match=words):
            call()


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_names_of_methods_and_variances_in_calls() -> None:
    rows = [(f"p{i}", f"p{j}", 0.05 * ((7 * i + 3 * j) % 20)) for i in range(8) for j in range(i + 1)]
    far, point = mb.evaluate(comparisons(rows), 0.6).far, mb.roc(comparisons(rows)).at_far(0.1)
    assert far.interval("Wilson") == far.interval("wilson")
    assert far.interval("Double or Nothing", rng=1, n_resamples=50).method == "double-or-nothing"
    assert far.interval("wilson", variance="Plug in") == far.interval("wilson")
    with pytest.raises(mb.UsageError, match=r"one of plug-in, .*fixed-sizes, .*vertex, .*; got 'best'"):
        far.interval("wilson", variance="best")
    with pytest.raises(mb.UsageError, match="method='union'"):
        point.interval("wilson")
    assert point.interval("Union").method == "union"


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
@pytest.mark.parametrize("level", [1e-320, 1.0 - 1e-18, float("nan"), "0.95", None])
def test_levels_without_a_tail(level: object) -> None:
    far = mb.evaluate(mb.Comparisons(list("aab"), list("aba"), [0.9, 0.1, 0.8]), 0.5).far
    with pytest.raises(mb.UsageError, match="level must lie between 0 and 1"):
        far.upper_bound(level)  # type: ignore[arg-type]
