"""The variance of comparisons that share units: sums over pairs of comparisons, and two-way analysis of variance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_compare as naive
from matchbound.stats.dyadic import bipartite_variance, dyadic_sums

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")

UNITS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(-3, 3)), min_size=1, max_size=40)


@given(UNITS)
def test_dyadic_variances_are_sums_over_pairs_of_comparisons(rows: list[tuple[int, ...]]) -> None:
    a, b, w = (np.array([float(row[k]) if k == 2 else row[k] for row in rows]) for k in range(3))
    plain = dyadic_sums(w, a, b, 5)
    outcomes = [(str(x), str(y), v) for x, y, v in zip(a, b, w, strict=True)]
    assert plain.variance == pytest.approx(naive.sum_over_sharing(outcomes), abs=1e-9)
    assert plain.floor == pytest.approx(naive.sum_over_same_pair(outcomes), abs=1e-9)
    assert plain.corrected(50.0) >= plain.floor


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**31))
def test_bipartite_variance_is_the_analysis_of_variance(n: int, k: int, seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal((n, k))
    row, column = (index.reshape(-1) for index in np.meshgrid(np.arange(n), np.arange(k), indexing="ij"))
    residual = ((values - values.mean()) / values.size).reshape(-1)
    r, c = (np.bincount(side, residual) for side in (row, column))
    square = float(residual @ residual)
    assert bipartite_variance(r, c, square, n, k) == pytest.approx(naive.bipartite_anova(values.tolist()), abs=1e-12)
    plug_in = bipartite_variance(r, c, square, 1e15, 1e15)
    outcomes = [(f"r{i}", f"c{j}", w) for i, j, w in zip(row, column, residual, strict=True)]
    assert plug_in == pytest.approx(naive.sum_over_sharing(outcomes), abs=1e-9)


@given(UNITS, st.integers(0, 2**31))
def test_sums_add_and_scale_as_the_residuals_do(rows: list[tuple[int, ...]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (np.array([row[k] for row in rows]) for k in (0, 1))
    one, two = rng.normal(size=(2, len(rows)))
    sums = [dyadic_sums(w, a, b, 5) for w in (one, two, 2.0 * one - 3.0 * two)]
    pairs: dict[tuple[int, int], list[float]] = {}
    for i, j, x, y in zip(a, b, one, two, strict=True):
        if i != j:
            total = pairs.setdefault((min(i, j), max(i, j)), [0.0, 0.0])
            total[0] += x
            total[1] += y
    product = sum(x * y for x, y in pairs.values())
    made = (sums[0] * 2.0).plus(sums[1] * -3.0, -6.0 * product)
    assert made.variance == pytest.approx(sums[2].variance, abs=1e-9)
    assert made.pair_square == pytest.approx(sums[2].pair_square, abs=1e-9)
    assert made.corrected(20.0) == pytest.approx(sums[2].corrected(20.0), abs=1e-9)
    assert made.corrected(20.0) >= made.floor - 1e-12
