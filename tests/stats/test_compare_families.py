"""Families of differences: critical values and p-values that hold together, against literal twins and enumeration."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

import matchbound as mb
import naive_compare as naive
from matchbound.calls.comparison import compare, compare_all
from matchbound.calls.groups import by_group
from matchbound.counting.recount import tally_comparisons
from matchbound.counts.tally import JointTally, join
from matchbound.stats import families
from matchbound.stats.families import Largest, adjusted_level, gaussian_largest, normal_scores, scores_of
from strategies import comparisons, tables

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


@given(st.lists(st.integers(0, 8), min_size=1, max_size=60), st.floats(-5.0, 5.0), st.sampled_from(LEVELS))
def test_p_values_count_ties_half_and_the_critical_value_agrees(draws: list[int], value: float, level: float) -> None:
    largest = Largest.of(np.array(draws) / 2.0)
    whole = [draw / 2.0 for draw in draws]
    for m in (round(value, 7), round(value * 2.0) / 2.0, 0.0, 4.0, 9.0):
        assert largest.p_values(np.array([m]))[0] == pytest.approx(naive.mid_p(whole, abs(m)))
        if 0.5 / (len(draws) + 1) <= 1.0 - level:
            beyond = abs(m) > largest.critical(level)
            assert beyond == (naive.mid_p(whole, abs(m)) <= 1.0 - level + 1e-12)


def test_no_draws() -> None:
    nothing = gaussian_largest(np.zeros((2, 3)))
    assert nothing.critical(0.95) == 0.0
    assert list(nothing.p_values(np.array([0.0, 3.0]))) == [1.0, 1.0]


def test_normal_draws_of_independent_and_of_equal_statistics() -> None:
    z = scipy_stats.norm.ppf
    independent = gaussian_largest(np.eye(4), n_resamples=40_000)
    assert independent.critical(0.95) == pytest.approx(z((1 + 0.95 ** (1 / 4)) / 2), abs=0.03)
    equal = gaussian_largest(np.ones((4, 3)), n_resamples=40_000)
    assert equal.critical(0.95) == pytest.approx(z(0.975), abs=0.03)
    assert adjusted_level(z(0.975)) == pytest.approx(0.95)
    p = independent.p_values(np.array([0.0, 1.959964, -2.5, 9.0]))
    assert p[0] == pytest.approx(1.0, abs=1e-4)
    assert p[1] == pytest.approx(1 - 0.95**4, abs=0.01)
    assert p[2] == pytest.approx(1 - (1 - 2 * scipy_stats.norm.sf(2.5)) ** 4, abs=0.01)
    assert p[3] < 1e-4


def test_normal_draws_do_not_depend_on_rounding() -> None:
    """28 gaps of 8 groups have 7 equal eigenvalues; roots of their correlations must not turn with the last digit."""
    rng = np.random.default_rng(0)
    moved = np.kron(np.eye(8), rng.standard_normal(5))
    one, two = np.triu_indices(8, 1)
    rows = moved[one] - moved[two]
    again = rows * (1.0 + 1e-15 * rng.standard_normal(rows.shape))
    made = [gaussian_largest(each, n_resamples=500).tops for each in (rows, again)]
    assert made[0] == pytest.approx(made[1], abs=1e-5)


def test_scores_have_the_tail_of_students_t() -> None:
    for t, freedom in ((0.0, 5.0), (2.3, 7.5), (-4.0, 49.0), (1.0, 0.2)):
        expected = naive.t_score(t, 1.0, freedom)
        assert normal_scores(np.array([t]), freedom)[0] == pytest.approx(expected, abs=1e-9)
    assert scores_of(np.array([1.0, math.nan, 0.05])) == pytest.approx([0.0, 0.0, 1.959964], abs=1e-6)


def three_systems(rows: list, seed: int) -> tuple[list[mb.Comparisons], list[JointTally]]:
    """The rows with three columns of scores, and the joint tallies of all pairs at threshold 0."""
    rng = np.random.default_rng(seed)
    ids = [r[0] for r in rows], [r[1] for r in rows]
    made = [mb.Comparisons(*ids, rng.integers(-4, 5, len(rows)) / 4.0) for _ in range(3)]
    zero = np.array([0.0])
    return made, [join(a, b) for a, b in itertools.combinations((tally_comparisons(one, zero) for one in made), 2)]


def outcomes(systems: list[mb.Comparisons], rows: list, genuine: bool) -> list[list[tuple[str, str, int]]]:
    """y_A − y_B of each comparison, for each pair of systems."""
    found = []
    for a, b in itertools.combinations(systems, 2):
        differ = (a.score >= 0.0).astype(int) - (b.score >= 0.0).astype(int)
        sign = -1 if genuine else 1
        found.append(
            [(r[0], r[1], sign * int(y)) for r, y in zip(rows, differ, strict=True) if (r[0] == r[1]) == genuine]
        )
    return found


def net(each: list[tuple[str, str, int]]) -> dict[frozenset[str], int]:
    """What the outcomes of each pair of identities (or identity) add up to, where that is not 0."""
    total: dict[frozenset[str], int] = {}
    for a, b, y in each:
        total[frozenset((a, b))] = total.get(frozenset((a, b)), 0) + y
    return {pair: value for pair, value in total.items() if value}


@pytest.mark.parametrize("metric", ["far", "frr"])
@given(tables(min_identities=3), st.integers(0, 2**31))
def test_differences_with_signs(metric: str, rows: list, seed: int) -> None:
    genuine = metric == "frr"
    systems, joints = three_systems(rows, seed)
    literal = outcomes(systems, rows, genuine)
    assume(literal[0])
    terms = families.sign_terms(joints, metric)
    assume(terms)
    differ = [net(each) for each in literal]
    assert np.count_nonzero(terms.d) == sum(map(len, differ))
    names = [str(name) for name in systems[0].identities]
    active = sorted({names.index(name) for each in differ for pair in each for name in pair})
    signs = np.where(np.random.default_rng(seed).random((4, terms.m.size)) < 0.5, -1.0, 1.0)
    for drawn, top in zip(signs, terms.largest(signs, 1.3, 4.0), strict=True):
        sign = {frozenset(pair): 1.0 for pair in itertools.combinations_with_replacement(names, 2)}
        for i, j, value in zip(terms.first, terms.second, drawn, strict=True):
            sign[frozenset((names[active[i]], names[active[j]]))] = float(value)
        each = [naive.flipped_difference(one, sign, 1.3) for one in literal]
        expected = max(naive.t_score(d, v if v > 1e-13 else 0.0, 4.0) for d, v in each)
        assert top == pytest.approx(expected, abs=1e-6)


def genuine_terms(d: np.ndarray, g: np.ndarray, total: float, squares: float) -> families.SignTerms:
    place = np.arange(g.size)
    return families.SignTerms(place, place, d, g, g, total, squares, 0.0)


def test_random_signs_against_all_signs() -> None:
    """Six people: the 64 patterns of signs, each as likely as any other."""
    rng = np.random.default_rng(3)
    d = rng.integers(-2, 3, (3, 6)).astype(float)
    d[:, 0] = 1.0, 2.0, 1.0
    terms = genuine_terms(d, np.full(6, 10.0), 100.0, 1000.0)
    every = np.array(list(itertools.product((-1.0, 1.0), repeat=6)))
    exact = Largest.of(terms.largest(every, 1.0, 9.0))
    drawn = families.flipped(terms, 1.0, 9.0, n_resamples=20_000)
    at = np.unique(exact.tops)
    share = np.array([naive.mid_p(list(exact.tops), float(value)) * 65 / 64 - 0.5 / 64 for value in at])
    assert drawn.p_values(at) == pytest.approx(share, abs=0.015)


def test_signs_of_pairs_that_share_an_identity_go_together() -> None:
    """corr(sign(ξ_1 + ξ_2), sign(ξ_1 + ξ_3)) = 1/3 and 0 for disjoint pairs: seen in sums of two differences."""
    ones = np.ones(2)
    for other, expected in (((0, 2), 2.0 / 3.0), ((2, 3), 0.5)):
        terms = families.SignTerms(
            np.array([0, other[0]]), np.array([1, other[1]]), np.ones((1, 2)), ones, 100.0 * ones, 5e5, 1e8, 5e5
        )
        drawn = families.flipped(terms, 1.0, 50.0, n_resamples=20_000)
        assert np.mean(drawn.tops > 1e-6) == pytest.approx(expected, abs=0.02)


@given(tables(min_identities=3), st.integers(0, 2**31), st.sampled_from(LEVELS), st.sampled_from(["auto", "dyadic"]))
def test_intervals_of_systems_say_what_p_values_say(rows: list, seed: int, level: float, method: str) -> None:
    systems, _ = three_systems(rows, seed)
    table = compare_all(systems, threshold=0.0)
    for metric in ("far", "frr"):
        if any(math.isnan(getattr(each, metric).estimate) for each in table.comparisons.values()):
            continue
        for row in table.differences(metric, level, method=method, n_resamples=199):
            assert row.p_value >= row.difference.p_value
            alone = row.difference.interval(method, level)
            assert row.interval.low <= alone.low + 1e-12
            assert row.interval.high >= alone.high - 1e-12
            if not row.difference.notes and abs(row.p_value - (1.0 - level)) > 1e-9:
                assert (0.0 not in row.interval) == (row.p_value < 1.0 - level)


def test_a_family_of_one_is_the_difference_alone() -> None:
    rng = np.random.default_rng(5)
    vectors = rng.standard_normal((60, 8)) + np.repeat(2.0 * rng.standard_normal((20, 8)), 3, axis=0)
    owner = np.repeat(np.arange(20), 3)
    a = mb.Embeddings(vectors, owner)
    b = mb.Embeddings(vectors[:, :6], owner)
    (row,) = compare_all([a, b], threshold=0.6).differences("far")
    alone = compare(a, b, threshold=0.6).far
    assert list(row.interval) == pytest.approx(list(alone.interval()))
    assert row.p_value == alone.p_value


def test_many_terms_leave_it_to_the_normal_approximation() -> None:
    """Systems that differ at more than 10,000 people."""
    people = np.arange(24_000)
    rng = np.random.default_rng(1)
    systems = [mb.Comparisons(people, people, rng.integers(0, 2, people.size).astype(float)) for _ in range(3)]
    rows = compare_all(systems, threshold=0.5).differences("frr")
    assert families.sign_terms([row.difference.sums.joint for row in rows], "frr") is None
    gaussian = gaussian_largest(np.array([row.difference.influence for row in rows]))
    alone = np.array([row.difference.p_value for row in rows])
    assert [row.p_value for row in rows] == pytest.approx(np.maximum(gaussian.p_values(scores_of(alone)), alone))


def test_dealing_people_anew_against_all_deals() -> None:
    """Six people in groups of 2, 2 and 2: all 720 orders, each as likely as any other."""
    people = [(0, 3), (1, 3), (0, 1), (2, 4), (3, 6), (0, 2)]
    exact = [round(naive.largest_genuine_gap(order, [2, 2, 2]), 7) for order in itertools.permutations(people)]
    group = np.array([0, 0, 1, 1, 2, 2])
    e, g = (np.array(column, dtype=float) for column in zip(*people, strict=True))
    drawn = families.permuted_frr(group, e, g, n_resamples=20_000)
    assert set(drawn.tops.tolist()) <= set(exact)
    at = np.unique(exact)
    share = [np.mean([(top > value) + 0.5 * (top == value) for top in exact]) for value in at]
    assert drawn.p_values(at) == pytest.approx(np.array(share), abs=0.015)


@given(tables(min_identities=4, max_rows=60), st.lists(st.sampled_from("xy"), min_size=6, max_size=6))
def test_what_errors_within_groups_have_in_common(rows: list, labels: list[str]) -> None:
    data = comparisons(rows)
    group = {f"p{i}": labels[i] for i in range(6)}
    names = sorted(set(labels))
    whole = tally_comparisons(data, np.array([0.0]))
    parts = [whole.among(np.array([group[str(i)] == name for i in data.identities])).impostor for name in names]
    cells = [naive.cell_outcomes([(a, b, int(s >= 0.0)) for a, b, s in rows], group, g, g) for g in names]
    chosen = [k for k, cell in enumerate(cells) if cell]
    assume(chosen)
    within = families.within_groups([parts[k] for k in chosen], np.ones(len(chosen)))
    assert within.spread == pytest.approx(naive.shared_excess([cells[k] for k in chosen]), abs=1e-9)
    assert sorted(within.clumps.tolist()) == sorted(count for k in chosen for count in net(cells[k]).values())
    assert within.comparisons.sum() == 2 * sum(len(cells[k]) for k in chosen)


def uneven(spread: float = 0.0) -> families.Within:
    return families.Within(
        group=np.array([0, 0, 0, 1, 1, 1, 1]),
        comparisons=np.array([4.0, 6.0, 6.0, 9.0, 3.0, 6.0, 6.0]),
        pair_squares=np.array([22.0, 30.0]),
        people=np.array([2.9, 3.7]),
        clumps=np.array([1.0, 1.0, 3.0]),
        spread=spread,
    )


def test_where_clumps_fall() -> None:
    within = uneven()
    s, nn = families.throw(within, np.random.default_rng(0), 20_000)
    assert s.sum(axis=1) == pytest.approx(10.0)
    total = np.array([8.0, 12.0])
    assert s[:, :3].sum(axis=1).mean() == pytest.approx(10.0 * total[0] / total.sum(), abs=0.1)
    for part, mass in ((slice(0, 3), 0.4), (slice(3, 7), 0.6)):
        m = within.comparisons[part].tolist()
        chance = naive.chances_of_pairs(m, [1.0] * len(m))
        expected = [5.0 * mass * sum(p for pair, p in chance.items() if i in pair) for i in range(len(m))]
        assert s[:, part].mean(axis=0) == pytest.approx(np.array(expected), abs=0.07)
    assert nn.sum(axis=1).min() == 11.0
    assert nn.sum(axis=1).max() == 25.0


def test_propensities_make_people_who_err_together() -> None:
    """With κ = 0.5 two clumps in a group of many meet at one person 1.5 times as often as with κ = 0."""
    met = {}
    for spread in (0.0, 0.5):
        group, people = np.repeat([0, 1], 200), np.full(2, 200.0)
        within = families.Within(group, np.full(400, 199.0), np.full(2, 19900.0), people, np.ones(60), spread)
        s, _ = families.throw(within, np.random.default_rng(1), 2000)
        met[spread] = float((s * (s - 1.0)).sum(axis=1).mean())
    assert met[0.5] / met[0.0] == pytest.approx(1.5, abs=0.1)


def test_the_largest_gap_of_thrown_clumps() -> None:
    within, rng = uneven(), np.random.default_rng(2)
    for _ in range(20):
        groups, s, nn = [], np.zeros(7), np.zeros(2)
        for g, part in enumerate((range(3), range(3, 7))):
            members = list(part)
            pairs = list(itertools.combinations(range(len(members)), 2))
            hits = {frozenset(pairs[k]): int(rng.integers(1, 4)) for k in rng.choice(len(pairs), 2, replace=False)}
            for pair, count in hits.items():
                nn[g] += count * count
                for i in pair:
                    s[members[i]] += count
            m = within.comparisons[members].tolist()
            people = float(within.people[g])
            factor = people * (people - 1) / ((people - 2) * (people - 3)) if people > 3 else 1.0
            groups.append(naive.thrown_group(hits, m, float(within.pair_squares[g]), people, factor))
        found = families.largest_gap(families.thrown_moments(within, s[None, :], nn[None, :]))
        assert found[0] == pytest.approx(naive.largest_gap(groups), abs=1e-9)


def test_clumps_fall_only_where_they_are_few() -> None:
    assert not uneven().few
    roomy = families.Within(
        np.repeat([0, 1], 30), np.full(60, 29.0), np.full(2, 435.0), np.full(2, 30.0), np.ones(40), 0.0
    )
    assert roomy.few
    for clumps in (250, families.MOST_CLUMPS + 1):
        assert not replace(roomy, clumps=np.ones(clumps)).few


def four_groups(seed: int, identities: int = 60) -> mb.Embeddings:
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(identities), rng.integers(2, 5, identities))
    vectors = 1.5 * rng.standard_normal((identities, 10))[owner] + rng.standard_normal((owner.size, 10))
    return mb.Embeddings(vectors, owner, group=np.array(["a", "b", "c", "d"])[owner % 4])


@pytest.mark.parametrize("threshold", [0.2, 0.6, 0.75, 0.9])
def test_intervals_of_groups_say_what_p_values_say(threshold: float) -> None:
    for seed in range(2):
        rates = by_group(four_groups(seed), threshold=threshold)
        for metric, level in itertools.product(("far", "frr"), (0.5, 0.9)):
            for row in rates.gaps(metric, level, n_resamples=199):  # type: ignore[arg-type]
                assert row.p_value >= row.gap.p_value
                assert row.interval.width >= row.gap.interval("auto", level).width - 1e-12
                if not row.gap.notes:
                    assert (0.0 not in row.interval) == (row.p_value < 1.0 - level)


def test_the_thrown_statistic_of_the_data_is_that_of_the_gaps() -> None:
    """Errors where they fell: balanced data, for which Q has no approximation."""
    rng = np.random.default_rng(7)
    owner = np.repeat(np.arange(48), 3)
    data = mb.Embeddings(rng.standard_normal((144, 6)), owner, group=np.array(["a", "b", "c"])[owner % 3])
    rates = by_group(data, threshold=0.9)
    parts = [rates[name].far.tally.impostor for name in "abc"]
    within = families.within_groups(parts, np.full(3, 16.0))
    assert within.few
    s = np.concatenate([part.errors[0] for part in parts]).astype(float)
    nn = np.array([float(part.sum_nn[0]) / 2.0 for part in parts])
    found = families.largest_gap(families.thrown_moments(within, s[None, :], nn[None, :]))[0]
    scores = scores_of(np.array([row.gap.p_value for row in rates.gaps("far", n_resamples=99)]))
    assert found == pytest.approx(max(scores), abs=1e-6)


def test_equal_groups_with_a_handful_of_errors() -> None:
    """Six groups of 20 people, 3 errors a group: 5% of 500 samples has a Monte Carlo error of 1%."""
    rng = np.random.default_rng(11)
    group = np.repeat(np.arange(6), 20)
    hits, normal = [], []
    for _ in range(500):
        e = rng.binomial(5, rng.beta(0.15, 4.85, 120)).astype(float)
        g = np.full(120, 5.0)
        rate = np.bincount(group, e) / 100.0
        top = families.largest_gap(families.permuted_moments(group, e[None, :], g[None, :]))[0]
        null = families.permuted_frr(group, e, g, n_resamples=300)
        hits.append(null.p_values(np.array([top]))[0] <= 0.05)
        moved = np.where(group == np.arange(6)[:, None], e - rate[group] * g, 0.0)
        one, two = np.triu_indices(6, k=1)
        normal.append(top > gaussian_largest(moved[one] - moved[two], n_resamples=500).critical(0.95))
    assert 0.025 <= np.mean(hits) <= 0.075
    assert np.mean(normal) <= 0.02


def test_equal_systems_with_a_handful_of_errors() -> None:
    """Four systems on 60 people, about 8 errors each, of which they share half: 500 samples, Monte Carlo error 1%."""
    rng = np.random.default_rng(12)
    pairs = list(itertools.combinations(range(4), 2))
    hits = []
    for _ in range(500):
        shared = rng.random((60, 5)) < rng.beta(0.3, 15.0, 60)[:, None]
        kept = rng.random((4, 60, 5)) < 0.5
        e = (shared & kept).sum(axis=2) + rng.binomial(5, 0.02, (4, 60))
        d = np.array([e[a] - e[b] for a, b in pairs], dtype=float)
        d = d[:, np.any(d != 0.0, axis=0)]
        terms = genuine_terms(d, np.full(d.shape[1], 5.0), 300.0, 1500.0)
        top = terms.largest(np.ones((1, d.shape[1])), 60.0 / 59.0, 59.0)
        hits.append(families.flipped(terms, 60.0 / 59.0, 59.0, n_resamples=300).p_values(top)[0] <= 0.05)
    assert 0.025 <= np.mean(hits) <= 0.075
