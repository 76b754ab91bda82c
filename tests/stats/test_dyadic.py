"""Other units than identities: clusters, crossed clusters, and probes against a gallery of other people."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
import naive_compare as naive
from matchbound.calls.losses import unit_rates
from matchbound.stats.dyadic import (
    bipartite_sums,
    bipartite_variance,
    crossed_variance,
    dyadic_sums,
)

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")

UNITS = st.lists(st.tuples(*[st.integers(0, 4)] * 4, st.integers(-3, 3)), min_size=1, max_size=40)


@given(UNITS)
def test_dyadic_and_crossed_variances_are_sums_over_pairs_of_comparisons(rows: list[tuple[int, ...]]) -> None:
    a, b, c, d = (np.array([row[k] for row in rows]) for k in range(4))
    w = np.array([float(row[4]) for row in rows])
    plain = dyadic_sums(w, a, b, 5)
    outcomes = [(str(x), str(y), v) for x, y, v in zip(a, b, w, strict=True)]
    assert plain.variance == pytest.approx(naive.sum_over_sharing(outcomes), abs=1e-9)
    assert plain.floor == pytest.approx(naive.sum_over_same_pair(outcomes), abs=1e-9)
    assert plain.corrected(50.0) >= plain.floor
    crossed = [(str(x), str(y), f"c{p}", f"c{q}", v) for x, y, p, q, v in zip(a, b, c, d, w, strict=True)]
    assert crossed_variance(w, a, b, c, d) == pytest.approx(naive.sum_over_crossed(crossed), abs=1e-9)


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**31))
def test_bipartite_variance_is_the_analysis_of_variance(n: int, k: int, seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal((n, k))
    row, column = (index.reshape(-1) for index in np.meshgrid(np.arange(n), np.arange(k), indexing="ij"))
    residual = ((values - values.mean()) / values.size).reshape(-1)
    r, c, square = bipartite_sums(residual, row, column, n, k)
    assert bipartite_variance(r, c, square, n, k) == pytest.approx(naive.bipartite_anova(values.tolist()), abs=1e-12)
    plug_in = bipartite_variance(r, c, square, 1e15, 1e15)
    outcomes = [(f"r{i}", f"c{j}", w) for i, j, w in zip(row, column, residual, strict=True)]
    assert plug_in == pytest.approx(naive.sum_over_sharing(outcomes), abs=1e-9)


def _bipartite(rng: np.random.Generator, probes: int, gallery: int) -> mb.Comparisons:
    """Scores with effects of the probe, of the gallery person and of their pair, several comparisons a pair."""
    i, j = (index.reshape(-1) for index in np.meshgrid(np.arange(probes), np.arange(gallery), indexing="ij"))
    i, j = np.repeat(i, 2), np.repeat(j, 2)
    score = rng.standard_normal(probes)[i] + 0.7 * rng.standard_normal(gallery)[j] + rng.standard_normal(i.size)
    return mb.Comparisons([f"probe{x}" for x in i], [f"person{x}" for x in j], score)


def test_bipartite_rates_cover() -> None:
    """Probes and gallery of other people, 25 and 40: 95% intervals cover 92.5–97.5% of 400 draws (error 1.1%)."""
    rng = np.random.default_rng(11)
    total = np.sqrt(1.0 + 0.49 + 1.0)
    from scipy.stats import norm

    threshold = float(norm.isf(0.1) * total)
    covered, naive_covered, variances, estimates = [], [], [], []
    for _ in range(400):
        rates = unit_rates(_bipartite(rng, 25, 40), threshold)
        assert rates.unit == "probe and gallery"
        covered.append(0.1 in rates.far.interval())
        estimates.append(rates.far.estimate)
        variances.append(rates.far.variance)
        half = 1.96 * np.sqrt(0.1 * 0.9 / rates.far.comparisons)
        naive_covered.append(abs(rates.far.estimate - 0.1) < half)
    assert 0.925 < np.mean(covered) < 0.975
    assert np.mean(naive_covered) < 0.6
    assert np.mean(variances) == pytest.approx(np.var(estimates), rel=0.25)


def test_clustered_rates_cover_where_identities_alone_do_not() -> None:
    """Families of four whose members score alike: units are families; 300 draws, Monte Carlo error 1.3%."""
    from scipy.stats import norm

    rng = np.random.default_rng(12)
    families, members = 25, 4
    people = families * members
    family = {str(i): f"f{i // members}" for i in range(people)}
    first, second = np.triu_indices(people, k=1)
    kept = first // members != second // members
    first, second = first[kept], second[kept]
    threshold = float(norm.isf(0.15) * np.sqrt(1.0 + 0.5 + 1.0))
    covered, alone = [], []
    for _ in range(300):
        effect = np.repeat(np.sqrt(0.5) * rng.standard_normal(families), members) + 0.5 * rng.standard_normal(people)
        score = effect[first] + effect[second] + rng.standard_normal(first.size)
        data = mb.Comparisons(first.astype(str), second.astype(str), score)
        covered.append(0.15 in unit_rates(data, threshold, cluster=family, bipartite=False).far.interval())
        alone.append(0.15 in unit_rates(data, threshold, bipartite=False).far.interval())
    assert 0.92 < np.mean(covered) < 0.98
    assert np.mean(alone) < 0.85


def _random_table(seed: int, rows: int = 60) -> mb.Comparisons:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 12, rows), rng.integers(0, 12, rows)
    return mb.Comparisons([f"p{i:02d}" for i in a], [f"p{i:02d}" for i in b], rng.standard_normal(rows))


def test_units_that_are_identities_give_the_usual_rates() -> None:
    data = _random_table(1, 400)
    usual = mb.evaluate(data, 0.3)
    made = unit_rates(data, 0.3)
    same = unit_rates(data, 0.3, cluster={str(i): str(i) for i in data.identities})
    for metric in ("far", "frr"):
        one, two = getattr(made, metric), getattr(same, metric)
        assert one.estimate == getattr(usual, metric).estimate
        assert one.variance == two.variance
        assert one.effective_n == two.effective_n
        assert one.design_effect == pytest.approx(one.comparisons / one.effective_n)
    assert made.unit == "identity"
    assert same.unit == "cluster"


def test_clusters_within_identities() -> None:
    """Days that cut across people: comparisons are dependent when they share a person or a day."""
    data = _random_table(2, 300)
    rng = np.random.default_rng(3)
    days = [[f"day{x}" for x in rng.integers(0, 8, len(data))] for _ in range(2)]
    both = unit_rates(data, 0.3, cluster=days)
    assert both.unit == "identity or cluster"
    replaced = unit_rates(data, 0.3, cluster=days, keep_identity=False)
    assert replaced.unit == "cluster"
    assert replaced.far.n_units == 8
    assert both.far.variance != replaced.far.variance
    family = {str(i): f"f{k // 2}" for k, i in enumerate(data.identities)}
    columns = [[family[str(i)] for i in data.identities[side]] for side in (data.a, data.b)]
    one, two = unit_rates(data, 0.3, cluster=columns).far, unit_rates(data, 0.3, cluster=family).far
    assert (one.variance, one.n_units) == (two.variance, two.n_units)


def test_embeddings_with_clusters() -> None:
    rng = np.random.default_rng(4)
    owner = np.repeat(np.arange(20), 3)
    data = mb.Embeddings(rng.standard_normal((60, 5)), owner)
    made = unit_rates(data, 0.5, cluster=owner // 2)
    assert made.far.n_units == 10
    assert made.unit == "cluster"
    named = unit_rates(data, 0.5, cluster={i: i // 2 for i in range(20)})
    assert (made.far.variance, made.frr.variance) == (named.far.variance, named.frr.variance)
    by_row = unit_rates(data, 0.5, cluster=np.arange(60) % 7)
    assert by_row.unit == "identity or cluster"
    assert made.far.interval(level=0.99).width > made.far.interval().width
    assert made.far.interval(side="upper").low == 0.0


def test_arguments() -> None:
    data = _random_table(5)
    with pytest.raises(mb.DataError, match="on both sides"):
        unit_rates(data, 0.3, bipartite=True)
    with pytest.raises(mb.DataError, match="labels per side"):
        unit_rates(data, 0.3, cluster=[["x"], ["y"]])
    with pytest.raises(mb.UsageError, match="threshold"):
        unit_rates(data, float("nan"))
    with pytest.raises(mb.UsageError, match="Comparisons or Embeddings"):
        unit_rates([1], 0.3)  # type: ignore[arg-type]
    with pytest.raises(mb.DataError, match="no comparisons"):
        unit_rates(mb.Comparisons([], [], []), 0.3)
    pairs = list(itertools.product(["a", "b"], ["x", "y"]))
    rates = unit_rates(mb.Comparisons([p[0] for p in pairs], [p[1] for p in pairs], [1, 2, 3, 4]), 2.5)
    assert rates.frr.comparisons == 0
    with pytest.raises(mb.DataError, match="FRR"):
        rates.frr.interval()


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
