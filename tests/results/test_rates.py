"""Rates against golden tables and literal twins, what must not change them, and which comparisons erred."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchbound as mb
import naive
from conftest import golden_expected, golden_table
from matchbound import results
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


@st.composite
def embeddings(draw: st.DrawFn) -> mb.Embeddings:
    sizes = draw(st.lists(st.integers(1, 5), min_size=2, max_size=6))
    seed = draw(st.integers(0, 2**32 - 1))
    kind = draw(st.sampled_from(["f2", "f4", "f8"]))
    similarity = draw(st.sampled_from(["cosine", "dot", "euclidean"]))
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-2, 3, (sum(sizes), draw(st.integers(1, 9)))).astype(kind)
    vectors[~vectors.any(axis=1), 0] = 1
    order = rng.permutation(len(vectors))
    return mb.Embeddings(vectors[order], np.repeat(np.arange(len(sizes)), sizes)[order], similarity)


def _variance(rate: results.Rate, kind: str) -> float | str:
    """The variance, or why there is none."""
    try:
        return rate.variance_by(kind)
    except mb.DataError as error:
        return str(error)


@settings(max_examples=60)
@given(embeddings(), st.data())
def test_embeddings_equal_their_comparisons(data: mb.Embeddings, draw: st.DataObject) -> None:
    """Thresholds are drawn among the scores themselves, where one bit decides."""
    table = data.comparisons()
    grid = draw.draw(st.lists(st.sampled_from(sorted(set(table.score))), min_size=1, max_size=3))
    for one, two in zip(mb.evaluate(data, grid), mb.evaluate(table, grid), strict=True):
        for metric in ("far", "frr"):
            left, right = getattr(one, metric), getattr(two, metric)
            assert (left.errors, left.comparisons) == (right.errors, right.comparisons)
            if not left.comparisons:
                continue
            assert left.variance == right.variance
            assert left.interval() == right.interval()
            for kind in ("plug-in", "fixed-sizes"):
                assert _variance(left, kind) == _variance(right, kind)


@pytest.mark.parametrize("method", ["vertex", "double-or-nothing", "subsets", "two-level", "naive-bootstrap"])
def test_bootstraps_equal_too(method: str) -> None:
    data = mb.demo_data(n_identities=30)
    one, two = mb.evaluate(data, 0.45), mb.evaluate(data.comparisons(), 0.45)
    for metric in ("far", "frr"):
        left = getattr(one, metric).bootstrap(method, 250, rng=5).replicates
        right = getattr(two, metric).bootstrap(method, 250, rng=5).replicates
        assert np.array_equal(left, right)


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_scores_are_what_they_are_called(similarity: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((9, 13))
    data = mb.Embeddings(x, np.arange(9) // 3, similarity)  # type: ignore[arg-type]
    first, second = np.triu_indices(9, 1)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    target = {
        "cosine": (unit[first] * unit[second]).sum(axis=1),
        "dot": (x[first] * x[second]).sum(axis=1),
        "euclidean": np.linalg.norm(x[first] - x[second], axis=1),
    }[similarity]
    np.testing.assert_allclose(data.score_pairs(first, second), target, rtol=1e-13, atol=1e-13)
    assert np.array_equal(data.score_pairs(first, second), data.score_pairs(second, first))
    assert data.score_pairs([first[5]], [second[5]])[0] == data.score_pairs(first, second)[5]


def test_positions_outside_the_data_are_refused() -> None:
    data = mb.Embeddings(np.eye(3), list("abc"))
    with pytest.raises(mb.UsageError, match="second"):
        data.score_pairs([0], [3])
    with pytest.raises(mb.UsageError, match="first"):
        data.score_pairs([-1], [1])


def test_groups_belong_to_identities() -> None:
    data = mb.Embeddings(np.eye(4), list("baba"), group=list("yxyx"))
    assert list(data.identities) == ["a", "b"]
    assert data.group is not None
    assert list(data.group) == ["x", "y"]


@pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
def test_erring_comparisons_of_embeddings_are_those_of_the_table(similarity: str) -> None:
    faces = mb.demo_data(n_identities=40, seed=5)
    assert faces.instance is not None
    data = mb.Embeddings(faces.vectors, faces.identities[faces.codes], similarity, instance=faces.instance)  # type: ignore[arg-type]
    table = data.comparisons()
    threshold = 0.5 if similarity == "cosine" else 9.0
    for metric in ("far", "frr"):
        one, two = (getattr(mb.evaluate(source, threshold), metric) for source in (data, table))
        assert one.errors > 10
        mine, theirs = one.erring(), two.erring()
        assert len(mine) == one.errors == len(theirs)
        assert np.array_equal(mine.score, theirs.score)
        wrong = table.score <= threshold if table.distance else table.score >= threshold
        wrong = ~wrong & table.genuine if metric == "frr" else wrong & ~table.genuine
        assert sorted(np.flatnonzero(wrong).tolist()) == sorted(np.asarray(theirs.row).tolist())
        order = np.sort(table.score[wrong])
        lowest_first = (metric == "frr") != table.distance
        assert np.array_equal(theirs.score, order if lowest_first else order[::-1])
        names = {frozenset((r["instance_a"], r["instance_b"])) for r in mine}
        assert names == {frozenset((r["instance_a"], r["instance_b"])) for r in theirs}
        assert np.array_equal(one.erring(4).score, mine.score[:4])
        assert (metric == "frr") == all(r["identity_a"] == r["identity_b"] for r in mine)


def test_a_wrong_label_is_the_worst_error() -> None:
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(40), 4)
    vectors = rng.standard_normal((40, 32))[owner] + 0.5 * rng.standard_normal((160, 32))
    labels = owner.copy()
    labels[21] = 33
    worst = mb.evaluate(mb.Embeddings(vectors, labels), 0.5).far.erring(3)
    assert all(21 in (r["instance_a"], r["instance_b"]) for r in worst)


def test_erring_needs_the_comparisons(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("id_a,id_b,score\na,a,0.9\nb,b,0.8\na,b,0.6\n")
    with pytest.raises(mb.DataError, match="read instead of scan"):
        mb.evaluate(mb.scan(tmp_path / "scores.csv"), 0.5).far.erring()
    with pytest.raises(mb.UsageError, match="most"):
        mb.evaluate(mb.read(tmp_path / "scores.csv"), 0.5).far.erring(0)
