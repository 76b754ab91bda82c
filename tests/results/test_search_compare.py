"""Two systems on the same searches, and groups of people."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import matchbound as mb
from cases import best_first, search_tables
from matchbound import results
from matchbound.stats.searches import Unmated, at_rank

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


@given(search_tables(), st.integers(0, 10_000))
def test_a_difference_from_nothing_is_the_rate(given_table: tuple[np.ndarray, np.ndarray, float], seed: int) -> None:
    """Against a system that never errs, the variance of the difference is that of the rate."""
    table, person, threshold = given_table
    size = table.shape[1]
    searches = Unmated(person, np.full(int(person.max()) + 1, -1), *best_first(table), size)
    sums, nothing = searches.sums(threshold), searches.sums(np.inf)
    own = np.random.default_rng(seed).integers(0, size, table.shape[0])
    own[:2] = 0, 1
    rows = np.arange(own.size)
    mate = table[rows, own]
    others = table.copy()
    others[rows, own] = -np.inf
    misses = at_rank(own, mate, *best_first(others), size, 1).sums(threshold)
    sure = at_rank(own, np.full(own.size, 99.0), *best_first(others), size, 1).sums(threshold)
    for one, two in ((sums, nothing), (misses, sure)):
        for gallery in ("random", "fixed"):
            np.testing.assert_allclose((one - two).variance(gallery), one.variance(gallery), atol=1e-12)
            assert (one - one).variance(gallery) == 0.0


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
    assert list(groups) == ["old", "young"]
    assert sum(part.fpir(0.7).errors for part in groups.values()) == found.fpir(0.7).errors
    assert sum(part.n_nonmated for part in groups.values()) == found.n_nonmated
    assert sum(part.fnir(0.7, 2).errors for part in groups.values()) == found.fnir(0.7, 2).errors
    old = {person for person in range(240) if person % 3 == 0}
    assert found.among(old).cmc(2).errors == groups["old"].cmc(2).errors
    gap = groups.gap("fpir", "old", "young")
    assert gap.estimate == groups["old"].fpir(0.7).estimate - groups["young"].fpir(0.7).estimate
    low, high = gap.interval()
    assert low < gap.estimate < high
    assert gap.claim(below=0.999).verdict == "shown"
    assert groups.rate("fpir", "old").interval().level == 0.95
    with pytest.raises(mb.UsageError, match="no group 'middle'"):
        groups["middle"]
    with pytest.raises(mb.UsageError, match="no groups"):
        results.Searches(found.lists).by_group(0.7)
