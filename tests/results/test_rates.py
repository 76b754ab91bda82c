"""Estimates and variances against literal twins, and what must not change them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
import naive
from matchbound.results.rates import Rate
from strategies import comparisons, instance_comparisons, instance_tables, tables

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")

thresholds = st.integers(-5, 5).map(lambda s: s / 4)


def near(value: float, target: float) -> bool:
    return abs(value - target) <= 1e-12 + 1e-10 * abs(target)


@given(tables(), thresholds, st.booleans())
def test_rates_and_plug_in_variances_equal_the_literal_sums(rows: list, threshold: float, distance: bool) -> None:
    rates = mb.evaluate(comparisons(rows, distance), threshold)
    if rates.far.comparisons:
        assert near(rates.far.estimate, naive.far(rows, threshold, distance))
        assert near(rates.far.variance, naive.far_variance(rows, threshold, distance))
    else:
        assert np.isnan(rates.far.estimate)
    if rates.frr.comparisons:
        assert near(rates.frr.estimate, naive.frr(rows, threshold, distance))
        assert near(rates.frr.variance, naive.frr_variance(rows, threshold, distance))
        if not distance:
            assert near(rates.frr.variance, naive.frr_variance_delta(rows, threshold))


@given(tables(min_identities=3), thresholds)
def test_jackknives_equal_recomputing_without_each_identity(rows: list, threshold: float) -> None:
    rates = mb.evaluate(comparisons(rows), threshold)
    try:
        target = naive.far_jackknife(rows, threshold)
    except ZeroDivisionError:
        if rates.far.comparisons:
            with pytest.raises(mb.DataError):
                rates.far.variance_by("jackknife")
    else:
        assert near(rates.far.variance_by("jackknife"), target)
    if rates.frr.n_identities > 1:
        assert near(rates.frr.variance_by("jackknife"), naive.frr_jackknife(rows, threshold))


def balanced(seed: int, identities: int = 6, instances: int = 3) -> list:
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(identities), instances)
    first, second = np.triu_indices(who.size, 1)
    lift = rng.standard_normal(identities)
    scores = rng.standard_normal(first.size) + lift[who[first]] + lift[who[second]]
    return [(f"p{who[i]}", f"p{who[j]}", float(s)) for i, j, s in zip(first, second, scores, strict=True)]


@pytest.mark.parametrize("seed", range(5))
def test_balanced_data_reproduce_the_papers_formulas(seed: int) -> None:
    rows = balanced(seed)
    rates = mb.evaluate(comparisons(rows), 0.5)
    assert near(rates.far.variance, naive.far_variance_triple_loop(rows, 0.5))
    assert near(rates.far.variance_by("jackknife"), rates.far.variance)  # Proposition 3
    assert near(rates.frr.variance_by("jackknife"), rates.frr.variance)


@given(instance_tables(), thresholds)
def test_fixed_sizes_equal_the_literal_sums(rows: list, threshold: float) -> None:
    data = instance_comparisons(rows)
    sizes = {str(name): int(count) for name, count in zip(data.identities, data.instance_counts, strict=True)}
    plain = [(r[0], r[2], r[4]) for r in rows]
    rates = mb.evaluate(data, threshold)
    m, _ = naive.pair_counts(plain, threshold)
    names = {name for pair in m for name in pair}
    complete = len(m) == len(names) * (len(names) - 1) // 2
    complete &= all(count == np.prod([sizes[name] for name in pair]) for pair, count in m.items())
    target = naive.far_fixed_sizes(plain, threshold, sizes, bool(complete))
    if target is None:
        with pytest.raises(mb.DataError, match="at least 4 identities"):
            rates.far.variance_by("fixed-sizes")
    else:
        assert near(rates.far.variance_by("fixed-sizes"), target)
    if rates.frr.comparisons:
        target = naive.frr_fixed_sizes(plain, threshold, sorted(sizes))
        if target is None:
            with pytest.raises(mb.DataError, match="at least 2 identities"):
                rates.frr.variance_by("fixed-sizes")
        else:
            assert near(rates.frr.variance_by("fixed-sizes"), target)


def test_bias_correction_repairs_the_plug_in_on_average() -> None:
    """4,000 samples of 8 identities with additive identity effects: the mean corrected variance is that of p."""
    rng = np.random.default_rng(11)
    first, second = np.triu_indices(8, 1)
    estimates, plug_in, corrected = [], [], []
    for _ in range(4000):
        lift = rng.standard_normal(8)
        scores = rng.standard_normal(first.size) + lift[first] + lift[second]
        far = mb.evaluate(mb.Comparisons(first, second, scores), 0.0).far
        estimates.append(far.estimate)
        plug_in.append(far.variance)
        corrected.append(far.variance_by("bias-corrected"))
    truth = np.var(estimates, ddof=1)
    error = np.hypot(truth * np.sqrt(2 / 4000), np.std(corrected) / np.sqrt(4000))
    assert abs(np.mean(corrected) - truth) < 4 * error
    assert np.mean(plug_in) < truth - 4 * error


@given(tables(), thresholds, st.randoms(use_true_random=False))
def test_order_labels_and_sides_do_not_matter(rows: list, threshold: float, random: object) -> None:
    base = mb.evaluate(comparisons(rows), threshold)
    intervals = {rate.metric: rate.interval() for rate in (base.far, base.frr) if rate.comparisons}
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    swapped = [(b, a, s) if random.random() < 0.5 else (a, b, s) for a, b, s in rows]  # type: ignore[attr-defined]
    names = {f"p{i}": name for i, name in enumerate(["zeta", "ä", "<b>", "9", "a b", "Ω"])}
    renamed = [(names[a], names[b], s) for a, b, s in rows]
    numbered = mb.Comparisons([int(a[1:]) for a, _, _ in rows], [int(b[1:]) for _, b, _ in rows], [s for *_, s in rows])
    for other in (comparisons(shuffled), comparisons(swapped), comparisons(renamed), numbered):
        again = mb.evaluate(other, threshold)
        for metric in ("far", "frr"):
            one, two = getattr(base, metric), getattr(again, metric)
            assert (one.errors, one.comparisons, one.n_identities) == (
                two.errors,
                two.comparisons,
                two.n_identities,
            )
            if one.comparisons:
                assert one.variance == two.variance
                expected, interval = intervals[metric], two.interval()
                assert interval.method == expected.method
                # sums over identities are rounded in another order
                assert tuple(interval) == pytest.approx(tuple(expected), rel=1e-12, abs=1e-15)


@given(
    tables(),
    thresholds,
    st.sampled_from(["wilson", "wald", "naive-wilson"]),
    st.floats(0.01, 0.99),
    st.floats(0.0, 0.999),
)
def test_a_higher_level_never_gives_a_narrower_interval(
    rows: list, threshold: float, method: str, level: float, raise_by: float
) -> None:
    rates = mb.evaluate(comparisons(rows), threshold)
    higher = level + (1 - level) * raise_by
    for rate in (rates.far, rates.frr):
        if rate.comparisons:
            inner, outer = rate.interval(method, level), rate.interval(method, higher)
            assert outer.low <= inner.low + 1e-15
            assert outer.high >= inner.high - 1e-15
            assert 0.0 <= inner.low <= rate.estimate + 1e-15
            assert rate.estimate - 1e-15 <= inner.high <= 1.0


@given(tables(), thresholds)
def test_one_sided_bounds_are_two_sided_limits_at_twice_the_tail(rows: list, threshold: float) -> None:
    rates = mb.evaluate(comparisons(rows), threshold)
    for rate in (rates.far, rates.frr):
        if rate.comparisons:
            for method in ("wilson", "wald"):
                both = rate.interval(method, 0.90)
                assert near(rate.upper_bound(0.95, method), both.high)
                assert near(rate.lower_bound(0.95, method), both.low)
                assert rate.interval(method, 0.95, side="upper").low == 0.0
                assert rate.interval(method, 0.95, side="lower").high == 1.0


def test_exact_arithmetic_keeps_a_zero_variance_at_zero() -> None:
    """Every identity pair errs in exactly a third of its comparisons: the residuals cancel to the last bit."""
    rows = [(f"p{i}", f"p{j}", s) for i in range(7) for j in range(i) for s in (1.0, 0.0, 0.0)]
    far = mb.evaluate(comparisons(rows), 0.5).far
    assert far.estimate == 1 / 3
    assert far.variance == 0.0
    assert far.effective_n == far.floor == 3


def test_effective_n_and_design_effect_are_on_every_rate() -> None:
    rates = mb.evaluate(mb.demo_data(), 0.6)
    for rate in (rates.far, rates.frr):
        assert isinstance(rate, Rate)
        assert rate.effective_n == pytest.approx(rate.estimate * (1 - rate.estimate) / rate.variance)
        assert rate.design_effect == pytest.approx(rate.comparisons / rate.effective_n)
    assert rates.far.design_effect > 5
