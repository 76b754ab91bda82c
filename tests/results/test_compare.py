"""Two systems: every formula against its literal twin, and the promises that results make."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.special import ndtr

import matchbound as mb
import naive_compare as naive
from cases import refused
from matchbound.calls.comparison import Where, compare, compare_all, compare_points, shared_errors
from matchbound.counting.recount import tally_comparisons
from matchbound.counts.tally import JointTally, join
from matchbound.data.matching import match
from matchbound.stats import differences as stats
from matchbound.stats.intervals import t_quantile
from matchbound.stats.latent.fit import design_of
from strategies import tables

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


def joint_tally(a: mb.Comparisons, b: mb.Comparisons, one: np.ndarray, two: np.ndarray) -> JointTally:
    return join(tally_comparisons(a, one), tally_comparisons(b, two))


def two_systems(rows: list, seed: int) -> tuple[mb.Comparisons, mb.Comparisons]:
    rng = np.random.default_rng(seed)
    other = rng.integers(-4, 5, len(rows)) / 4.0
    ids = [r[0] for r in rows], [r[1] for r in rows]
    return mb.Comparisons(*ids, [r[2] for r in rows]), mb.Comparisons(*ids, other)


@given(tables(min_identities=3), st.integers(0, 2**31), st.sampled_from([-0.5, 0.0, 0.5]))
def test_variances_of_differences_are_sums_over_comparisons_that_share_people(rows: list, seed: int, at: float) -> None:
    a, b = two_systems(rows, seed)
    joint = joint_tally(a, b, np.array([at]), np.array([at + 0.25]))
    u, v = 1.3, 0.7
    kinds = (
        (~a.genuine, "far", True),
        (a.genuine, "frr", False),
    )
    for kind, metric, impostor in kinds:
        chosen = np.flatnonzero(kind)
        if not chosen.size:
            continue
        y_a = (a.score[chosen] >= at) == impostor
        y_b = (b.score[chosen] >= at + 0.25) == impostor
        w = naive.residuals(y_a.astype(float).tolist(), y_b.astype(float).tolist(), u, v)
        outcomes = [(rows[i][0], rows[i][1], x) for i, x in zip(chosen, w, strict=True)]
        sums = stats.rate_sums(joint, metric, 0, u, v)
        assert sums.variance == pytest.approx(naive.sum_over_sharing(outcomes), abs=1e-12)
        if impostor:
            assert sums.pair_square == pytest.approx(naive.sum_over_same_pair(outcomes), abs=1e-12)
        moved = sums.influence
        for i, name in enumerate(a.identities):
            assert moved[i] == pytest.approx(sum(x for p, q, x in outcomes if name in (p, q)), abs=1e-12)
        apart = {(rows[i][0], rows[i][1])[:: 1 if rows[i][0] < rows[i][1] else -1]: 0 for i in chosen}
        for i, x, y in zip(chosen, y_a, y_b, strict=True):
            apart[tuple(sorted(rows[i][:2]))] += int(x) - int(y)
        assert joint.apart(metric, 0) == sum(map(abs, apart.values()))


@given(tables(min_identities=4, max_rows=30), st.integers(0, 2**31))
def test_moments_across_systems(rows: list, seed: int) -> None:
    """The correlations of the model reproduce mean products over pairs of comparisons, one by one."""
    rows = [row for row in rows if row[0] != row[1]]
    if len(rows) < 3:
        return
    a, b = two_systems(rows, seed)
    joint = joint_tally(a, b, np.array([0.0]), np.array([0.25]))
    y_a, y_b = (a.score >= 0.0).astype(int).tolist(), (b.score >= 0.25).astype(int).tolist()
    within, sharing, disjoint, both = naive.moments([(r[0], r[1]) for r in rows], y_a, y_b)
    design = design_of(joint.a.impostor)
    p, q = np.mean(y_a), np.mean(y_b)
    one, two = joint.a.impostor, joint.b.impostor
    m = one.comparisons.astype(float)
    r = float(((one.errors[0] - p * m) * (two.errors[0] - q * m)).sum())
    pairs = float(joint.sum_nn[0] - p * two.sum_nm[0] - q * one.sum_nm[0] + p * q * one.sum_mm)
    assert list(shared_errors(a, b, np.array([0.0]), np.array([0.25]))) == [both]
    if design.within > 0:
        assert (pairs / 2 - (both - len(rows) * p * q)) / design.within == pytest.approx(within, abs=1e-10)
    if design.sharing > 0:
        assert (r - pairs) / design.sharing == pytest.approx(sharing, abs=1e-10)
    if design.disjoint > 0:
        assert -(r - pairs / 2) / design.disjoint == pytest.approx(disjoint, abs=1e-10)


@pytest.mark.parametrize(
    ("h", "k", "rho"), [(-1.0, -2.0, 0.3), (0.4, -1.2, 0.9), (-3.0, -2.9, 0.5), (1.0, 1.0, -0.4), (0.0, 0.0, 0.5)]
)
def test_orthants(h: float, k: float, rho: float) -> None:
    literal = naive.orthant(h, k, rho)
    assert float(stats.orthant(h, k, rho)) == pytest.approx(literal, rel=1e-5)
    product = naive.normal_cdf(h) * naive.normal_cdf(k)
    assert float(stats.excess_of_two(h, k, rho)) == pytest.approx(literal - product, rel=2e-4)


def test_orthants_of_equal_arguments() -> None:
    lost = scipy_stats.norm.pdf(2.0) * math.sqrt(1e-6 / math.pi)  # to first order in √(1−ρ)
    assert naive.normal_cdf(-2.0) - float(stats.orthant(-2.0, -2.0, 0.999999)) == pytest.approx(lost, rel=1e-3)


def _equal_systems(seed: int, identities: int = 30, apart: float = 0.5) -> tuple[mb.Embeddings, mb.Embeddings]:
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(identities), 4)
    shared = rng.standard_normal((identities, 24))[owner] + rng.standard_normal((owner.size, 24))
    made = [shared + apart * rng.standard_normal(shared.shape) for _ in range(2)]
    names = [f"x{i}" for i in range(owner.size)]
    return tuple(mb.Embeddings(vectors, owner, instance=names) for vectors in made)  # type: ignore[return-value]


def fitted_to(a: mb.Comparisons, b: mb.Comparisons, one: np.ndarray, two: np.ndarray) -> stats.DifferenceModel:
    impostors = (data.take(np.flatnonzero(~data.genuine)) for data in (a, b))
    return stats.fit_difference(joint_tally(a, b, one, two), shared_errors(*impostors, one, two), "far")


def test_the_model_is_its_formula() -> None:
    """V_mod = [N·v₀ + ½WI·K_w + SH·K_s]/N², with the correlations that it was fitted."""
    a, b = (system.comparisons() for system in _equal_systems(1))
    n = int(np.count_nonzero(~a.genuine))
    ranks = stats.paired_ranks(n)
    grids = [np.sort(system.score[~system.genuine])[::-1][ranks - 1] for system in (a, b)]
    fitted = fitted_to(a, b, *grids)
    p, q, u, v = 0.02, 0.03, 1.0, 1.5
    z_a, z_b = scipy_stats.norm.ppf([p, q])
    z = np.array([(z_a + z_b) / 2])

    def k_of(rho: float, gap: float) -> float:
        across = rho - gap / 2
        return (
            u * u * (naive.orthant(z_a, z_a, rho) - p * p)
            + v * v * (naive.orthant(z_b, z_b, rho) - q * q)
            - 2 * u * v * (naive.orthant(z_a, z_b, across) - p * q)
        )

    design = fitted.design
    own = u * u * p * (1 - p) + v * v * q * (1 - q)
    own -= 2 * u * v * (naive.orthant(z_a, z_b, 1 - float(fitted.self_gap(z)[0])) - p * q)
    total = n * own + float(design.within) * k_of(float(fitted.pair(z)[0]), float(fitted.pair_gap(z)[0]))
    total += float(design.sharing) * k_of(float(fitted.identity(z)[0]), float(fitted.identity_gap(z)[0]))
    assert fitted.variance(p, q, u, v) == pytest.approx(max(total, n * own) / n**2, rel=1e-3)
    for curve in (fitted.identity_gap, fitted.pair_gap, fitted.self_gap):
        assert 0.0 <= float(curve(z)[0]) < 1.5


def test_a_system_that_equals_itself_has_no_gap_in_the_model() -> None:
    a = _equal_systems(2)[0].comparisons()
    n = int(np.count_nonzero(~a.genuine))
    grid = np.sort(a.score[~a.genuine])[::-1][stats.paired_ranks(n) - 1]
    fitted = fitted_to(a, a, grid, grid)
    z = np.array([-2.0])
    assert float(fitted.identity_gap(z)[0]) == pytest.approx(0.0, abs=1e-6)
    assert float(fitted.pair_gap(z)[0]) == pytest.approx(0.0, abs=1e-6)
    assert 0.0 < fitted.variance(0.02, 0.02) < 1e-4


def test_fixed_thresholds() -> None:
    a, b = _equal_systems(3)
    made = compare(a, b, threshold=(0.5, 0.45))
    alone = mb.evaluate(a, 0.5), mb.evaluate(b, 0.45)
    for metric in ("far", "frr"):
        difference = getattr(made, metric)
        assert difference.rate_a == getattr(alone[0], metric).estimate
        assert difference.rate_b == getattr(alone[1], metric).estimate
        assert difference.estimate == difference.rate_a - difference.rate_b
        assert difference.ratio == difference.rate_a / difference.rate_b
        interval = difference.interval("dyadic")
        half = t_quantile(0.025, difference.freedom) * math.sqrt(difference.variance)
        assert interval.high == pytest.approx(difference.estimate + half)
        assert difference.interval("latent").width >= interval.width
        assert difference.ratio in difference.ratio_interval()
        parts = difference.interval("latent"), difference.interval("dyadic")
        lower, upper = parts if difference.estimate < 0 else parts[::-1]
        assert list(difference.interval()) == [lower.low, upper.high]
        assert (0.0 in difference.interval()) == (difference.p_value >= 0.05)
        inside = difference.interval("dyadic", level=1 - difference.p_value)
        assert min(abs(inside.low), abs(inside.high)) == pytest.approx(0.0, abs=1e-9)
    assert made.threshold == (0.5, 0.45)
    assert made.p_value == pytest.approx(min(1.0, 2 * min(made.far.p_value, made.frr.p_value)))
    assert made.matched == len(a)
    assert made.unmatched == (0, 0)


def test_several_thresholds_cost_one_pass() -> None:
    a, b = _equal_systems(3)
    pairs = (0.5, 0.45), (0.3, 0.3)
    several = compare_points([a, b], [Where(pair) for pair in pairs])
    for table, pair in zip(several, pairs, strict=True):
        made, single = table.comparisons["1", "2"], compare(a, b, threshold=pair)
        assert made.threshold == pair
        for metric in ("far", "frr"):
            assert getattr(made, metric).interval() == getattr(single, metric).interval()
            assert getattr(made, metric).p_value == getattr(single, metric).p_value


def test_swapping_the_systems_turns_the_answer_round() -> None:
    a, b = _equal_systems(4)
    one, two = compare(a, b, far=0.05), compare(b, a, far=0.05)
    for metric in ("far", "frr", "eer"):
        x, y = getattr(one, metric), getattr(two, metric)
        assert x.estimate == pytest.approx(-y.estimate)
        assert x.p_value == pytest.approx(y.p_value)
        assert x.interval().low == pytest.approx(-y.interval().high)
        assert x.ratio_interval("dyadic").low == pytest.approx(1 / y.ratio_interval("dyadic").high)


def test_bootstraps_share_their_draws() -> None:
    """The replicates of the difference are those of the two rates under the same weights: less spread."""
    made = compare(*_equal_systems(6, apart=0.2), threshold=0.5).far
    drawn = made.bootstrap("vertex", 400, rng=3)
    alone = [rate.bootstrap("vertex", 400, rng=3).replicates for rate in (made.a, made.b)]
    assert np.array_equal(drawn.replicates, alone[0] - alone[1])
    assert drawn.variance < 0.7 * (alone[0].var() + alone[1].var())
    sums = stats.rate_sums(made.sums.joint, "far", 0)
    closed_form = sums.variance + 2.0 * sums.pair_square  # (4R + 2Q)/N2², to first order in 1/G
    assert drawn.variance == pytest.approx(closed_form, rel=0.3)
    assert made.interval("vertex", n_resamples=400, rng=3) == made.interval("vertex", n_resamples=400, rng=3)
    assert drawn.interval(side="upper").low == -1.0


@pytest.mark.parametrize("metric", ["far", "frr"])
def test_identical_systems_never_get_an_interval_of_no_width(metric: str) -> None:
    a, _ = _equal_systems(7)
    for threshold in (0.4, 0.6, 0.99, -0.9):
        made = compare(a, a, threshold=threshold)
        difference = getattr(made, metric)
        assert difference.estimate == 0.0
        assert difference.p_value == 1.0
        for method in ("auto", "dyadic", "latent", "vertex"):
            interval = difference.interval(method, rng=0)
            assert interval.low < 0.0 < interval.high
        assert any("never disagree" in str(text) for text in difference.notes)


def test_no_error_in_either_system_takes_the_upper_limits() -> None:
    made = compare(*_equal_systems(8), threshold=0.999)
    assert made.far.rate_a == made.far.rate_b == 0.0
    interval = made.far.interval()
    assert interval.high == pytest.approx(made.a.far.interval("latent").high)
    assert interval.low == pytest.approx(-made.b.far.interval("latent").high)
    assert list(made.far.ratio_interval()) == [0.0, math.inf]


def test_at_equal_far_thresholds_are_those_of_the_curve() -> None:
    a, b = _equal_systems(9)
    made = compare(a, b, far=0.05)
    for rates in (made.a, made.b):
        assert rates.far.estimate <= 0.05
        assert rates.far.errors + 1 > 0.05 * rates.far.comparisons
    assert made.frr.rate_a == made.a.frr.estimate
    assert made.frr.metric == "frr@far"
    assert made.p_value == made.frr.p_value
    fixed = compare(a, b, threshold=made.threshold).frr
    assert made.frr.variance != pytest.approx(fixed.variance, rel=0.01)
    other = compare(a, b, frr=0.2)
    assert other.a.frr.estimate <= 0.2
    assert other.far.metric == "far@frr"
    assert other.p_value == other.far.p_value


def test_point_variance_is_the_sum_over_comparisons() -> None:
    """Before corrections, Var of FRR@FAR differences is a sum over pairs of comparisons that share people."""
    a, b = _equal_systems(10, identities=8)
    made = compare(a, b, far=0.1).frr
    tables_ = [system.comparisons() for system in (a, b)]
    genuine = tables_[0].genuine
    outcomes = []
    for row in range(len(tables_[0])):
        w = 0.0
        for sign, place, table, threshold in (
            (1, 0, tables_[0], made.a.threshold),
            (-1, 1, tables_[1], made.b.threshold),
        ):
            kind = genuine if genuine[row] else ~genuine
            erred = (table.score >= threshold) != genuine[row]
            share = made.sums.shares["frr" if genuine[row] else "far"][place]
            w += sign * share * (float(erred[row]) - float(erred[kind].mean())) / np.count_nonzero(kind)
        outcomes.append((str(tables_[0].a[row]), str(tables_[0].b[row]), w))
    literal = naive.sum_over_sharing(outcomes)
    assert made.sums.sums().variance == pytest.approx(literal, rel=1e-9)
    assert made.sums.variance() >= literal - 1e-15


def test_large_embeddings_give_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    import matchbound.calls.comparison as api

    a, b = _equal_systems(12)
    small = compare(a, b, threshold=0.5)
    monkeypatch.setattr(api, "EXACT_COMPARISONS", 10)
    large = compare(a, b, threshold=0.5)
    assert large.far.interval("latent") == small.far.interval("latent")
    assert large.frr.interval() == small.frr.interval()
    monkeypatch.setattr(api, "MODEL_COMPARISONS", 3000)
    part = compare(a, b, threshold=0.5).far.interval("latent")
    assert part != small.far.interval("latent")
    assert part.width == pytest.approx(small.far.interval("latent").width, rel=0.5)


def test_arguments() -> None:
    a, b = _equal_systems(13)
    far = compare(a, b, threshold=0.5).far
    table = compare_all([a, b], threshold=[0.5, 0.4])
    assert (table.names, len(table.differences("eer"))) == (("1", "2"), 1)
    refused(
        mb.UsageError,
        ("give one", lambda: compare(a, b)),
        ("give one", lambda: compare(a, b, threshold=0.5, far=0.1)),
        ("far must", lambda: compare(a, b, far=0.0)),
        ("far must", lambda: compare(a, b, far=1.5)),
        ("threshold", lambda: compare(a, b, threshold=(1, 2, 3))),
        ("threshold", lambda: compare(a, b, threshold="x")),  # type: ignore[arg-type]
        ("auto, dyadic, latent", lambda: far.interval("wilson")),
        ("method for a ratio", lambda: far.ratio_interval("vertex")),
        ("method", lambda: far.bootstrap("subsets")),
        ("at least two", lambda: compare_all([a], threshold=0.5)),
        ("data must be", lambda: compare(a, [1, 2], threshold=0.5)),  # type: ignore[arg-type]
        ("metric", lambda: table.differences("auc")),
        ("level", lambda: table.differences("far", level=2.0)),
    )


def test_one_kind_of_comparison_only() -> None:
    a = mb.Comparisons(["a", "b", "c"], ["b", "c", "a"], [0.1, 0.6, 0.3])
    made = compare(a, mb.Comparisons(["a", "b", "c"], ["b", "c", "a"], [0.7, 0.6, 0.3]), threshold=0.5)
    assert made.differences == (made.far,)
    assert math.isnan(made.frr.estimate)
    assert math.isnan(made.frr.p_value)
    assert made.p_value == made.far.p_value
    words = "no comparisons for FRR"
    refused(
        mb.DataError, (words, made.frr.interval), (words, made.frr.ratio_interval), ("both kinds", lambda: made.eer)
    )


def test_matching_leaves_the_arrays_of_others_writable() -> None:
    names = np.arange(12)
    rng = np.random.default_rng(0)
    systems = [mb.Embeddings(rng.standard_normal((12, 3)), names // 3, instance=names) for _ in range(2)]
    compare(*systems, threshold=0.5)
    names[0] = 99


@given(st.integers(0, 2**31))
def test_tiny_tables_get_intervals_with_width(seed: int) -> None:
    """Whatever is compared, limits are finite, hold the estimate, and differ."""
    rng = np.random.default_rng(seed)
    n, k = rng.integers(3, 25), rng.integers(2, 6)
    ids = rng.integers(0, k, n), rng.integers(0, k, n)
    a = mb.Comparisons(*ids, rng.integers(0, 5, n) / 4)
    b = mb.Comparisons(*ids, rng.integers(0, 5, n) / 4, distance=bool(rng.integers(2)))
    made = compare(a, b, threshold=rng.random(2))
    numbers = list(made.differences)
    if len(numbers) == 2:
        numbers += [made.eer, compare(a, b, far=0.3).frr, compare(a, b, frr=0.3).far]
    for difference in numbers:
        assert 0.0 <= difference.p_value <= 1.0
        for method in ("auto", "dyadic", "latent"):
            interval = difference.interval(method)
            assert -1.0 <= interval.low <= difference.estimate <= interval.high <= 1.0
            assert interval.width > 0.0
            ratio = difference.ratio_interval(method)
            assert 0.0 <= ratio.low <= ratio.high
            assert math.isnan(difference.ratio) or ratio.low <= difference.ratio <= ratio.high


# --- ratios ---------------------------------------------------------------------------------------------------------


@given(tables(min_identities=3), st.integers(0, 2**31), st.sampled_from([0.5, 0.8, 0.95]))
def test_a_ratio_leaves_out_1_when_the_difference_leaves_out_0(rows: list, seed: int, level: float) -> None:
    for difference in compare(*two_systems(rows, seed), threshold=(0.0, 0.25)).differences:
        if difference.rate_a == 0.0 and difference.rate_b == 0.0:
            continue
        for method in ("auto", "dyadic", "latent"):
            gap, ratio = difference.interval(method, level), difference.ratio_interval(method, level)
            # Where a limit is 0 to within rounding, the two may fall on different sides of it.
            if min(abs(gap.low), abs(gap.high)) < 1e-9:
                continue
            assert (0.0 in gap) == (1.0 in ratio), (method, gap, ratio)


def test_errors_of_one_identity_do_not_make_a_ratio_certain() -> None:
    """One error against three, all of the same person: the variance of the logarithm would be zero."""
    people = np.repeat(np.arange(30), 4)
    fails_a, fails_b = np.zeros(120, dtype=bool), np.zeros(120, dtype=bool)
    fails_a[0], fails_b[:3] = True, True
    a, b = (mb.Comparisons(people, people, 1.0 - fails) for fails in (fails_a, fails_b))
    frr = compare(a, b, threshold=0.5).frr
    ratio = frr.ratio_interval()
    assert frr.p_value > 0.3
    assert ratio.low < 0.1
    assert ratio.high > 1.0


@pytest.mark.parametrize(("shift", "least"), [(0.0, 0.93), (0.4, 0.92)])
def test_coverage_of_the_ratio(shift: float, least: float) -> None:
    """200 data sets of 40 people with 12 genuine comparisons each, FRR 7% and 7 or 14%.

    A coverage of 95% is seen with a standard error of 1.5 points; 2 (and 3) points below are allowed.
    """
    rng = np.random.default_rng(5)
    people = np.repeat(np.arange(40), 12)
    centre, spread = -1.65, 0.5
    # P(centre + spread·u + noise > 0) with u and the noise standard normal.
    truth = [float(ndtr((centre + s) / np.sqrt(1 + spread**2))) for s in (0.0, shift)]
    held = 0
    for _ in range(200):
        common = spread * rng.standard_normal(40)[people]
        fails = [centre + s + common + rng.standard_normal(people.size) > 0 for s in (0.0, shift)]
        a, b = (mb.Comparisons(people, people, 1.0 - f) for f in fails)
        held += truth[0] / truth[1] in compare(a, b, threshold=0.5).frr.ratio_interval()
    assert held / 200 >= least, held / 200


# --- several systems ---------------------------------------------------------------------------------------------


def test_all_pairs_of_systems() -> None:
    a, b = _equal_systems(14)
    rng = np.random.default_rng(0)
    worse = mb.Embeddings(
        a.vectors + 1.5 * rng.standard_normal(a.vectors.shape), a.identities[a.codes], instance=a.instance
    )
    table = compare_all({"a": a, "b": b, "worse": worse}, threshold=0.5)
    rows = table.differences("frr")
    assert [(row.a, row.b) for row in rows] == [("a", "b"), ("a", "worse"), ("b", "worse")]
    for row in rows:
        single = compare(*({"a": a, "b": b, "worse": worse}[name] for name in (row.a, row.b)), threshold=0.5).frr
        assert row.difference.estimate == single.estimate
        assert row.interval.width > single.interval("dyadic").width
        assert row.p_value >= single.p_value
    assert rows[1].p_value < 0.01


# --- matching ----------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**31), st.booleans())
def test_matching_finds_what_both_have(seed: int, shuffled: bool) -> None:
    rng = np.random.default_rng(seed)
    names = [(f"p{i}", f"x{k}") for i in range(3) for k in range(2)]
    tables_ = []
    for _ in range(2):
        pairs = [(names[i], names[j]) for i, j in rng.integers(0, 6, (8, 2))]
        tables_.append([(*x, *y) if rng.random() < 0.5 else (*y, *x) for x, y in pairs])
    expected = naive.common_keys(tables_[0], tables_[1])
    scores = [rng.random(8), rng.random(8)]
    systems = [
        mb.Comparisons(
            [r[0] for r in t], [r[2] for r in t], s, instance_a=[r[1] for r in t], instance_b=[r[3] for r in t]
        )
        for t, s in zip(tables_, scores, strict=True)
    ]
    if not expected:
        with pytest.raises(mb.DataError, match="in common"):
            match(systems)
        return
    found = match(systems)
    one, two = found.systems
    assert isinstance(one, mb.Comparisons)
    assert isinstance(two, mb.Comparisons)
    assert one.score.tolist() == [scores[0][i] for i, _ in expected]
    assert two.score.tolist() == [scores[1][j] for _, j in expected]
    assert [str(x) for x in one.identities[one.a]] == [tables_[0][i][0] for i, _ in expected]
    assert np.array_equal(one.a, two.a)
    assert found.unmatched == (8 - len(expected), 8 - len(expected))
    assert bool(found.notes) == (len(expected) < 8)
    assert one.instance_counts is not None
    assert one.instance_counts.sum() == len({x for i, _ in expected for x in (tables_[0][i][:2], tables_[0][i][2:])})


def test_matching_by_row_and_by_identity_pair() -> None:
    one = mb.Comparisons(["a", "b", "c"], ["b", "c", "a"], [1, 2, 3])
    two = mb.Comparisons(["b", "c", "a"], ["a", "b", "c"], [4, 5, 6])
    found = match([one, two])
    assert found.how == "row"
    assert found.systems[1].score.tolist() == [4, 5, 6]  # type: ignore[union-attr]
    assert "row n" in found.notes[0]
    three = mb.Comparisons(["c", "a"], ["a", "b"], [7, 8], distance=True)
    found = match([one, three])
    assert found.how == "identity pair"
    assert found.systems[0].score.tolist() == [1, 3]  # type: ignore[union-attr]
    assert found.systems[1].score.tolist() == [8, 7]  # type: ignore[union-attr]
    assert found.systems[1].distance
    assert found.unmatched == (1, 0)
    twice = mb.Comparisons(["a", "a"], ["b", "b"], [1, 2])
    refused(mb.DataError, ("system 2 compares an ident", lambda: match([one, twice])), ("two", lambda: match([one])))


def test_matching_of_embeddings() -> None:
    a, b = _equal_systems(15, identities=5)
    order = np.random.default_rng(0).permutation(len(b))[:12]
    part = mb.Embeddings(b.vectors[order], b.identities[b.codes[order]], instance=np.asarray(b.instance)[order])
    found = match([a, part])
    assert found.matched == 12
    assert found.unmatched == (8, 0)
    one, two = found.systems
    assert isinstance(one, mb.Embeddings)
    assert isinstance(two, mb.Embeddings)
    assert np.array_equal(two.vectors, b.vectors[np.sort(order)])
    assert np.array_equal(one.instance, two.instance)
    bare = [mb.Embeddings(s.vectors, s.identities[s.codes]) for s in (a, b)]
    assert match(bare).how == "row"
    others = (
        ("name no instances", bare[0], mb.Embeddings(b.vectors[:5], b.identities[b.codes[:5]])),
        ("no instance in common", a, mb.Embeddings(b.vectors, b.codes, instance=[f"y{i}" for i in range(len(b))])),
        ("row 1 has the identity and", a, mb.Embeddings(b.vectors[:2], ["q", "q"], instance=["x", "x"])),
    )
    refused(mb.DataError, *((words, lambda both=both: match([*both])) for words, *both in others))


def test_embeddings_are_scored_as_the_comparisons_say() -> None:
    a, b = _equal_systems(16, identities=5)
    table = b.comparisons()
    rows = np.arange(0, len(table), 3)
    part = mb.Comparisons(
        table.identities[table.a[rows]],
        table.identities[table.b[rows]],
        table.score[rows],
        instance_a=table.instances[table.instance_a[rows]],
        instance_b=table.instances[table.instance_b[rows]],
    )
    one, two = match([a, part]).systems
    assert np.array_equal(one.score, a.comparisons().score[rows])  # type: ignore[union-attr]
    assert np.array_equal(two.score, part.score)  # type: ignore[union-attr]
    with pytest.raises(mb.DataError, match="only by instance"):
        match([mb.Embeddings(a.vectors, a.identities[a.codes]), part])


# --- small functions ---------------------------------------------------------------------------------------------


def test_mover() -> None:
    low, high = stats.mover(0.3, (0.2, 0.45), 0.1, (0.05, 0.2))
    assert low == pytest.approx(0.2 - math.hypot(0.1, 0.1))
    assert high == pytest.approx(0.2 + math.hypot(0.15, 0.05))
    low, high = stats.mover_ratio(0.3, (0.2, 0.45), 0.1, (0.05, 0.2))
    ab = 0.3 * 0.1
    assert high == pytest.approx((ab + math.sqrt(ab**2 - 0.45 * 0.05 * 0.15 * 0.15)) / (0.05 * 0.15))
    assert low == pytest.approx(0.2 * 0.4 / (2 * ab))  # the upper limit of b is 2b: the root is ab
    assert stats.mover_ratio(0.3, (0.2, 0.4), 0.0, (0.0, 0.1))[1] == math.inf
    assert stats.mover_ratio(0.0, (0.0, 0.1), 0.2, (0.1, 0.3))[0] == 0.0


def test_one_threshold_for_different_scores_is_noted() -> None:
    faces = mb.demo_data(n_identities=30)
    labels = faces.identities[faces.codes]
    one = mb.Embeddings(faces.vectors, labels, instance=faces.instance)
    two = mb.Embeddings(faces.vectors, labels, "euclidean", instance=faces.instance)
    several = mb.compare_all({"a": one, "b": two, "c": one}, threshold=0.6)
    for warned, noted in (
        (mb.compare(one, two, threshold=0.6).warnings, True),
        (several.warnings, True),
        (mb.compare(one, two, threshold=(0.6, 8.0)).warnings, False),
        (mb.compare(one, two, far=0.1).warnings, False),
    ):
        assert ("one-threshold" in {note.code for note in warned}) == noted
    bare = mb.Embeddings(faces.vectors, labels)
    matched = next(note for note in mb.compare(bare, bare, far=0.1).warnings if note.code == "matched")
    assert matched.startswith("no instances are named")
