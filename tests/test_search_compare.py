"""Two systems on the same searches, and groups of people."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import matchbound as mb
from matchbound import results
from matchbound.stats.search import mated, nonmated, paired
from test_search import best_first, tables

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


@given(tables(), st.integers(0, 10_000))
def test_a_difference_from_nothing_is_the_rate(given_table: tuple[np.ndarray, np.ndarray, float], seed: int) -> None:
    """Against a system that never errs, the variance of the difference is that of the rate."""
    table, person, threshold = given_table
    people, size = int(person.max()) + 1, table.shape[1]
    holder, score = best_first(table)
    searches = (person, people, holder[:, 0], score[:, 0], score[:, 1])
    parts = paired.hit_parts(*searches, size, threshold)
    nothing = paired.hit_parts(*searches, size, np.inf)
    curve = nonmated.hit_curve(*searches)
    expected = nonmated.hit_variances(curve, curve.at(threshold), size)
    for random, wanted in ((True, expected.random), (False, expected.people)):
        found = paired.hit_difference_variance(parts, nothing, random=random)
        np.testing.assert_allclose(found, wanted, atol=1e-12)
        assert paired.hit_difference_variance(parts, parts, random=random) == 0.0
    own = np.random.default_rng(seed).integers(0, size, table.shape[0])
    own[:2] = 0, 1
    rows = np.arange(own.size)
    mate = table[rows, own]
    others = table.copy()
    others[rows, own] = -np.inf
    ranked = mated.at_rank(own, mate, *best_first(others), size, 1)
    sure = mated.at_rank(own, np.full(own.size, 99.0), *best_first(others), size, 1)
    wanted_misses = mated.miss_variances(ranked, threshold)
    one, two = paired.miss_parts(ranked, threshold), paired.miss_parts(sure, threshold)
    for random, wanted in ((True, wanted_misses.random), (False, wanted_misses.fixed)):
        found = paired.miss_difference_variance(one, two, ranked.people, random=random)
        np.testing.assert_allclose(found, wanted, atol=1e-12)


def system(noise: float, seed: int = 0, people: int = 240) -> results.Searches:
    centres = np.random.default_rng(7).standard_normal((people, 10))
    rng = np.random.default_rng(seed)

    def photographs(who: np.ndarray) -> mb.Embeddings:
        group = np.where(who % 3 == 0, "old", "young")
        return mb.Embeddings(centres[who] + noise * rng.standard_normal((who.size, 10)), who, group=group)

    return mb.search(photographs(np.arange(people // 2)), photographs(np.repeat(np.arange(people), 3)))


@pytest.fixture(scope="module")
def two() -> tuple[results.Searches, results.Searches]:
    return system(0.4), system(0.6, seed=1)


def test_a_better_system_is_seen(two: tuple[results.Searches, results.Searches]) -> None:
    good, poor = two
    made = mb.compare_searches(good, poor, fpir=0.1, threshold=(0.75, 0.7))
    for difference in (made.fnir, made.cmc, made.fnir_at_fpir):
        assert difference is not None
        assert difference.p_value < 0.01
        assert difference.estimate not in (made.fpir, 0.0)
    assert made.fnir_at_fpir is not None
    assert made.fnir_at_fpir.estimate == good.fnir_at_fpir(0.1).estimate - poor.fnir_at_fpir(0.1).estimate
    assert made.fnir_at_fpir.interval().high < 0.0
    assert made.cmc is not None
    assert made.cmc.interval().low > 0.0
    assert made.fpir is not None
    assert made.fpir.estimate == good.fpir(0.75).estimate - poor.fpir(0.7).estimate


def test_a_system_equals_itself(two: tuple[results.Searches, results.Searches]) -> None:
    made = mb.compare_searches(two[0], two[0], threshold=0.7)
    for difference in (made.fpir, made.fnir, made.cmc, made.fnir_at_fpir):
        assert difference is not None
        assert (difference.estimate, difference.p_value) == (0.0, 1.0)
        assert difference.interval().low < 0.0 < difference.interval().high


def test_equal_systems_differ_by_chance_only() -> None:
    """Type-I error of the paired test at 5%, 60 pairs of equal systems; three standard errors are 8.4 points."""
    found = [mb.compare_searches(system(0.5, 2 * k, 120), system(0.5, 2 * k + 1, 120), fpir=0.1) for k in range(60)]
    rejected = np.mean([made.fnir_at_fpir.p_value < 0.05 for made in found])  # type: ignore[union-attr]
    assert rejected <= 0.05 + 0.085


def test_other_searches_are_refused(two: tuple[results.Searches, results.Searches]) -> None:
    with pytest.raises(mb.DataError, match="different people enrolled"):
        mb.compare_searches(two[0], system(0.4, people=120))
    with pytest.raises(mb.DataError, match="different probes"):
        mb.compare_searches(two[0], two[0].among(range(200)))


def test_groups_are_parts_of_the_searches(two: tuple[results.Searches, results.Searches]) -> None:
    found = two[0]
    groups = found.by_group(0.7, rank=2)
    assert [group.name for group in groups] == ["old", "young"]
    rates = [group.fpir for group in groups]
    assert sum(rate.errors for rate in rates if rate) == found.fpir(0.7).errors
    assert sum(rate.searches for rate in rates if rate) == found.n_nonmated
    assert sum(group.fnir.errors for group in groups if group.fnir) == found.fnir(0.7, 2).errors
    assert groups["old"].cmc is not None
    old = {person for person in range(240) if person % 3 == 0}
    assert found.among(old).cmc(2).errors == groups["old"].cmc.errors
    gap = groups.gap("fpir", "old", "young")
    assert rates[0] is not None
    assert rates[1] is not None
    assert gap.low < rates[0].estimate - rates[1].estimate < gap.high
    with pytest.raises(mb.DataError, match="no group 'middle'"):
        groups["middle"]
    with pytest.raises(mb.UsageError, match="no groups"):
        results.Searches(found.tally).by_group(0.7)
