"""Searches in a gallery: exact lists, literal twins, the golden table; two systems and groups of people."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import matchbound as mb
import naive_search
from cases import best_first, refused, search_tables
from conftest import DATA
from matchbound import results
from matchbound.counting import search as counting
from matchbound.counting.run import RunOptions
from matchbound.stats import gallery_sizes as sizes
from matchbound.stats import searches as rates
from matchbound.stats.searches import Unmated, at_rank

GOLDEN = DATA / "search"
pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


def golden() -> dict[str, Any]:
    with open(GOLDEN / "identify.json") as stream:
        read: dict[str, Any] = json.load(stream)
    return read["fuse"]


@pytest.fixture(scope="module")
def golden_searches() -> dict[str, results.Searches]:
    gallery, probes = mb.read(GOLDEN / "search-gallery.npz"), mb.read(GOLDEN / "search-probes.npz")
    return {fuse: mb.search(gallery, probes, fuse=fuse) for fuse in ("max", "mean")}


def near(found: Any, wanted: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=tolerance, atol=1e-12)


@pytest.mark.parametrize("fuse", ["max", "mean"])
def test_golden_counts_variances_and_wilson(golden_searches: dict[str, results.Searches], fuse: str) -> None:
    found, expected = golden_searches[fuse], golden()[fuse]
    assert found.gallery_size == expected["gallery"]
    assert (found.n_nonmated, found.n_mated) == (expected["nonmated"], expected["mated"])
    for row in expected["thresholds"]:
        rate, wanted = found.fpir(row["threshold"]), row["fpir"]
        assert rate.errors == wanted["hits"]
        assert rate.n_identities == expected["nonmated_identities"]
        near(rate.estimate, wanted["estimate"])
        near(rate.variance("fixed"), wanted["variance_fixed"])
        near(rate.variance(), wanted["variance_random"])
        near(rate.sums.gallery, wanted["variance_gallery"])
        near(rate.sums.overlap, wanted["variance_overlap"])
        for gallery in ("fixed", "random"):
            near(tuple(rate.interval("wilson", gallery=gallery)), wanted[f"wilson_{gallery}"])
        for rank in (1, 5):
            miss, told = found.fnir(row["threshold"], rank), row["fnir"][str(rank)]
            assert miss.errors == told["misses"]
            assert round(miss.sums.both.sum() * miss.searches) == told["alone"]
            near([miss.estimate, miss.variance("fixed"), miss.variance()],
                 [told["estimate"], told["variance_fixed"], told["variance_random"]])  # fmt: skip
    for rank in (1, 5):
        rate, told = found.cmc(rank), expected["cmc"][str(rank)]
        near(1.0 - rate.estimate, told["miss_rate"])
        near([rate.variance("fixed"), rate.variance()], [told["variance_fixed"], told["variance_random"]])


@pytest.mark.parametrize("fuse", ["max", "mean"])
def test_golden_latent_and_sizes(golden_searches: dict[str, results.Searches], fuse: str) -> None:
    found, expected = golden_searches[fuse], golden()[fuse]
    names = {"ustat": "u-statistic", "latent": "latent", "bound": "bound"}
    for row in expected["thresholds"]:
        for gallery in ("fixed", "random"):
            made = found.fpir(row["threshold"]).interval(gallery=gallery)
            assert made.method == "latent"
            near(tuple(made), row["fpir"][f"latent_{gallery}"], 1e-4)
        for size, told in row["sizes"].items():
            rate = found.at_gallery_size(int(size), row["threshold"])
            for name, (estimate, low, high) in told.items():
                if name != "bound":
                    near(rate.estimate, estimate, 1e-6)
                near(tuple(rate.interval(names[name])), (low, high), 0.02)
    for target, told in expected["fnir_at_fpir"].items():
        point = found.fnir_at_fpir(float(target))
        near(point.estimate, told["estimate"])
        near(tuple(point.interval()), told["latent_random"], 1e-4)


@given(search_tables())
def test_fpir_sums_at_every_threshold(given_table: tuple[np.ndarray, np.ndarray, float]) -> None:
    table, person, _ = given_table
    holder, score = best_first(table)
    nobody = np.full(int(person.max()) + 1, -1)
    for threshold in np.unique(np.append(table, [0.5, 3.5])):
        found = rates.Unmated(person, nobody, holder, score, table.shape[1]).sums(float(threshold))
        single = naive_search.single_hits(table, person, threshold)
        near(found.both * person.size, [single[key] for key in sorted(single)])
        wanted = naive_search.fpir_variances(table, person, threshold)
        near([found.searched, found.gallery, found.overlap], wanted, 1e-9)
        near(found.variance("fixed"), wanted[0])
        near(found.variance(), wanted[0] + max(0.0, wanted[1] - wanted[2]))


@given(search_tables(), st.integers(0, 10_000))
def test_rotating_variance(given_table: tuple[np.ndarray, np.ndarray, float], seed: int) -> None:
    table, _, threshold = given_table
    own = np.random.default_rng(seed).integers(0, table.shape[1], table.shape[0])
    own[:2] = 0, 1
    left = table.copy()
    left[np.arange(own.size), own] = -np.inf
    holder, score = best_first(left)
    people, person = np.unique(own, return_inverse=True)
    found = rates.Unmated(person, people, holder, score, table.shape[1]).sums(threshold)
    near(found.variance(), naive_search.rotating_variance(table, own, threshold))


@given(search_tables(), st.integers(0, 10_000), st.integers(1, 3))
def test_misses_and_who_causes_them(given_table: tuple[np.ndarray, np.ndarray, float], seed: int, rank: int) -> None:
    table, _, threshold = given_table
    own = np.random.default_rng(seed).integers(0, table.shape[1], table.shape[0])
    own[:2] = 0, 1
    rows = np.arange(own.size)
    mate = table[rows, own]
    others = table.copy()
    others[rows, own] = -np.inf
    holder, score = best_first(others)
    ranked = rates.at_rank(own, mate, holder, score, table.shape[1], rank)
    for cut in (threshold, -np.inf):
        assert np.count_nonzero(ranked.erred(cut)) == sum(naive_search.misses(table, own, cut, rank))
        found = ranked.sums(cut)
        fixed, random, alone = naive_search.fnir_variances(table, own, cut, rank)
        near(found.both.sum() * own.size, alone)
        near([found.variance("fixed"), found.variance()], [fixed, random])


@given(search_tables(), st.data())
def test_smaller_galleries_are_means_over_subsets(
    given_table: tuple[np.ndarray, np.ndarray, float], data: st.DataObject
) -> None:
    table, person, threshold = given_table
    size = data.draw(st.integers(1, table.shape[1]))
    reached = table >= threshold
    probe, holder = np.nonzero(reached)
    hits = sizes.HitList(person, int(person.max()) + 1, reached.sum(axis=1), probe, holder, table.shape[1])
    estimate, phi = sizes.smaller(hits, size)
    near(estimate, naive_search.fpir_of_subsets(table, threshold, size))
    low, high = sizes.limits(estimate, hits.variance(phi), 1.96)
    assert low <= estimate <= high

    def of_one(h: int) -> float:
        return float(phi(np.array([float(h)]))[0])

    near(hits.variance(phi), naive_search.mean_variance(of_one, table, person, threshold), 1e-8)


@pytest.mark.parametrize("rho", [0.0, 0.05, 0.4])
def test_the_model_recovers_its_own_larger_galleries(rho: float) -> None:
    """FPIR(N') from h̄ and FPIR(N) of a probit-normal population, whose FPIR at any size is an integral."""
    rate = {n: sizes._hit_rate(0.001, rho, n) for n in (100, 400)}
    near(sizes.extrapolate(0.1, rate[100], 100, 400), rate[400], 1e-6)
    assert rate[400] <= 1.0 - (1.0 - 0.001) ** 400 + 1e-12


@pytest.mark.parametrize("fuse", ["max", "mean"])
@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
@settings(max_examples=6)
@given(st.integers(0, 10_000))
def test_lists_are_those_of_exact_scores(similarity: Any, fuse: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, m, n, size = int(rng.integers(1, 40)), int(rng.integers(40, 200)), int(rng.integers(1, 90)), 40
    kinds = (np.float32, np.float64) if seed % 2 else (np.float32, np.float32)
    vectors = (
        np.round(rng.standard_normal((m, d)) + 0.01, 1).astype(kinds[0]),
        rng.standard_normal((n, d)).astype(kinds[1]),
    )
    vectors[1][: n // 3] = vectors[0][rng.integers(0, m, n // 3)] + 0.5
    for rows in vectors:
        rows[~np.any(rows, axis=1)] = 1.0
    owner = np.append(np.arange(size), rng.integers(0, size, m - size))
    _compare_lists(similarity, fuse, vectors, owner, rng.integers(-1, size, n), size)


@pytest.mark.parametrize(("similarity", "fuse"), [("cosine", "max"), ("dot", "mean"), ("euclidean", "max")])
def test_a_guess_at_the_last_place_may_be_too_high(similarity: Any, fuse: Any) -> None:
    """Of 5,000 people, those from whom guesses are taken are more like the probes than the others."""
    rng = np.random.default_rng(5)
    gallery, probes = rng.standard_normal((5000, 6)), rng.standard_normal((20, 6)) + 9.0
    sample = np.linspace(0, 4999, 1024).astype(int)
    gallery[sample[::30]] += 9.0
    _compare_lists(similarity, fuse, (gallery, probes), np.arange(5000), rng.integers(-1, 5000, 20), 5000, depth=40)


def test_vectors_of_many_numbers_are_searched_exactly() -> None:
    """Those beyond the first 8,192 are not among the bytes."""
    rng = np.random.default_rng(6)
    gallery, probes = rng.standard_normal((70, 9000)), rng.standard_normal((9, 9000))
    probes[:4, 8500:] = gallery[:4, 8500:] = 5.0 * gallery[:4, 8500:]
    _compare_lists("dot", "max", (gallery, probes), np.arange(70), rng.integers(-1, 70, 9), 70)


def _compare_lists(
    similarity: Any, fuse: Any, vectors: Any, owner: np.ndarray, own: np.ndarray, size: int, depth: int = 4
) -> None:
    (m, _), (n, _) = (v.shape for v in vectors)
    gallery, probes = (mb.Embeddings(v, np.arange(len(v)), similarity) for v in vectors)
    job = counting.make_job(gallery, probes, owner, own, size, fuse, depth)
    mate, holder, score = counting.search_all(job, RunOptions(2))
    both = mb.Embeddings(np.concatenate([v.astype(np.float64) for v in vectors]), np.arange(m + n), similarity)
    first, second = np.meshgrid(np.arange(m), m + np.arange(n))
    exact = both.score_pairs(first.reshape(-1), second.reshape(-1)).reshape(n, m)
    table = -exact if similarity == "euclidean" else exact
    if size < m:  # people with several templates
        table = naive_search.fused(table, owner, size, fuse)
    assert np.array_equal(mate, [table[x, g] if g >= 0 else -np.inf for x, g in enumerate(own)])
    table[np.flatnonzero(own >= 0), own[own >= 0]] = -np.inf
    order, ranked = best_first(table)
    assert np.array_equal(score, ranked[:, :depth])
    assert np.array_equal(holder, order[:, :depth])
    assert np.array_equal(job.every_score(np.arange(n)), table)


# --- failed enrolments beside several templates, and labels of two kinds ---------------------------------------------


def two_templates_each() -> tuple[mb.Embeddings, mb.Embeddings]:
    gallery = mb.Embeddings([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], ["ann", "ann", "bob", "bob"])
    return gallery, mb.Embeddings([[0.9, 0.2]], ["bob"])


@pytest.mark.parametrize("missing", [None, ["Aa", "Ab"], ["za", "zb"], ["b", "c"]])
def test_a_person_stands_once_in_a_list_whoever_failed_to_enrol(missing: list[str] | None) -> None:
    gallery, probes = two_templates_each()
    found = mb.search(gallery, probes, failed_enrolments=missing)
    assert found.cmc(rank=2).estimate == 1.0
    holders = found.mated.holder[0]
    assert np.unique(holders[holders >= 0]).size == np.count_nonzero(holders >= 0)


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(0, 30), st.sampled_from(["max", "mean"]),
    st.sampled_from([1, 3, 40]),
)  # fmt: skip
def test_failed_enrolments_add_nobody_to_a_list(
    seed: int, copies: int, failed: int, fuse: Any, candidates: int
) -> None:
    """They count as enrolled people without a template: the lists are those without them."""
    rng = np.random.default_rng(seed)
    who = rng.choice(40, 4, replace=False)
    missing = rng.choice(np.setdiff1d(np.arange(40), who), failed, replace=False)
    gallery = mb.Embeddings(rng.standard_normal((4 * copies, 4)), np.repeat(who, copies))
    probes = mb.Embeddings(rng.standard_normal((9, 4)), rng.choice(who, 9))
    alone = mb.search(gallery, probes, fuse, candidates=candidates)
    beside = mb.search(gallery, probes, fuse, candidates=candidates, failed_enrolments=missing)
    for rank in range(1, min(candidates, 4) + 1):
        assert beside.cmc(rank).errors == alone.cmc(rank).errors
    for threshold in (-0.5, 0.0, 0.5):
        assert np.array_equal(beside.hits(threshold).hits, alone.hits(threshold).hits)
        assert beside.fpir(threshold).errors == alone.fpir(threshold).errors


def test_groups_and_people_of_another_kind_than_the_labels_are_an_error() -> None:
    rng = np.random.default_rng(4)
    gallery = mb.Embeddings(rng.standard_normal((30, 8)), np.arange(30))
    found = mb.search(gallery, mb.Embeddings(rng.standard_normal((60, 8)), np.arange(60)))
    words = {str(person): "odd" if person % 2 else "even" for person in range(60)}
    texts = mb.search(*two_templates_each())
    refused(
        mb.DataError,
        ("'0' is text, and the identities of these searches are whole", lambda: found.by_group(0.2, group=words)),
        ("'7' is text", lambda: found.among(["7", "8"])),
        ("none of the 2 people", lambda: found.among([1000, 1001])),
        ("none of the 1 people", lambda: found.by_group(0.2, group={1000: "odd"})),
        ("7 is a number, and the identities of these searches are text", lambda: texts.among([7])),
    )
    groups = found.by_group(0.2, group={int(k): v for k, v in words.items()})
    assert [part.n_mated for part in groups.values()] == [15, 15]


def test_groups_of_probes_follow_labels_that_become_text() -> None:
    """The gallery has a person called "guest", so that whole numbers of probes stand for their digits."""
    rng = np.random.default_rng(5)
    gallery = mb.Embeddings(rng.standard_normal((31, 8)), [*map(str, range(30)), "guest"])
    probes = mb.Embeddings(rng.standard_normal((60, 8)), np.arange(60), group=np.arange(60) % 2)
    found = mb.search(gallery, probes)
    assert [(part.n_nonmated, part.n_mated) for part in found.by_group(0.2).values()] == [(15, 15), (15, 15)]


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
