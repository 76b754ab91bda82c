"""The default interval: each part against its slow twin, the whole against the golden tables."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal

import matchbound as mb
import naive_latent as naive
from conftest import DATA, golden_table
from matchbound.counting.recount import rank_scores, tally_comparisons
from matchbound.counts.tally import AllPairs, GenuineTally
from matchbound.errors import DataError
from matchbound.results.roc import limits_at
from matchbound.stats.latent.fit import (
    clusters_of,
    correlations_at,
    design_of,
    fit_far,
    fit_genuine,
    products_of,
    rank_grid,
    with_own_variance,
)
from matchbound.stats.latent.model import Clusters, LatentModel, LatentSettings, OwnVariance
from matchbound.stats.latent.probabilities import count_tail, excess, implied_correlation, solve_decreasing
from strategies import comparisons, instance_comparisons, instance_tables, tables

GOLDEN = json.loads((DATA / "two_variances.json").read_text())


def model_of(source: mb.Comparisons, metric: str, errors: int) -> LatentModel:
    """The model fitted on the side of the scale on which `errors` lie."""
    genuine = int(source.genuine.sum())
    total = genuine if metric == "frr" else len(source) - genuine
    kind = "genuine" if metric == "frr" else "impostor"
    tally = tally_comparisons(source, rank_scores(source, rank_grid(total, errors, metric), kind), pairs=False)
    mirrored = errors > total / 2
    return fit_genuine(tally.genuine, mirrored=mirrored) if metric == "frr" else fit_far(tally, mirrored=mirrored)


def latent_scores(rng: np.random.Generator, sizes: list[int], identity: float, pair: float) -> mb.Comparisons:
    """All pairs of instances with latent normal scores; genuine ones correlate within a person by `pair`."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    first, second = np.triu_indices(owner.size, 1)
    person = rng.standard_normal(len(sizes))
    own = rng.standard_normal(len(sizes))
    couple = rng.standard_normal((len(sizes), len(sizes)))
    a, b = owner[first], owner[second]
    noise = np.sqrt(1.0 - pair) * rng.standard_normal(a.size)
    different = np.sqrt(identity) * (person[a] + person[b]) + np.sqrt(pair - 2.0 * identity) * couple[a, b] + noise
    same = 3.0 + np.sqrt(pair) * own[a] + noise
    names = np.arange(owner.size)
    return mb.Comparisons(a, b, np.where(a == b, same, different), instance_a=names[first], instance_b=names[second])


class TestMoments:
    @pytest.mark.parametrize("metric", ["far", "frr"])
    @given(tables(min_identities=3, max_rows=30), st.integers(-3, 4).map(lambda s: s / 4))
    def test_moments_equal_the_literal_sums(self, metric, rows, threshold):
        far = metric == "far"
        literal = [(a, b, (score >= threshold) == far) for a, b, score in rows if (a != b) == far]
        assume(literal)
        part = tally_comparisons(comparisons(rows), np.array([threshold])).part(metric)
        kinds = naive.pair_kinds(literal)
        design, products = design_of(part), products_of(part)
        assert design.comparisons == len(literal)
        for kind in ("within", "sharing", "disjoint"):
            assert getattr(design, kind) == pytest.approx(kinds[kind][0], abs=1e-9)
        assert products.within[0] == pytest.approx(kinds["within"][1], abs=1e-9)
        assert products.sharing[0] == pytest.approx(kinds["sharing"][1], abs=1e-9)

    @given(tables(min_identities=3, max_rows=30), st.sampled_from([-0.5, 0.0, 0.25, 0.5]))
    @example([("a", "b", 0.0)] * 7 + [("a", "b", -0.25)], 0.0)
    def test_correlations_equal_the_literal_ones(self, rows, threshold):
        literal = [(a, b, score >= threshold) for a, b, score in rows if a != b]
        if not 0 < sum(y for *_, y in literal) < len(literal):
            return
        tally = tally_comparisons(comparisons(rows), np.array([threshold])).impostor
        found = correlations_at(design_of(tally), products_of(tally))
        z = ndtri(sum(y for *_, y in literal) / len(literal))
        for rho, literal_rho in zip((found[0][0], found[1][0]), naive.correlations(literal), strict=True):
            if min(rho, literal_rho) > -0.5:
                assert rho == pytest.approx(literal_rho, abs=2e-4)
            else:  # far below 0 many correlations give one probability that both err; it is what counts
                both, literal_both = (
                    multivariate_normal.cdf([z, z], cov=[[1.0, r], [r, 1.0]], allow_singular=True)
                    for r in (rho, literal_rho)
                )
                assert both == pytest.approx(literal_both, abs=1e-6)

    @given(instance_tables(complete=True), st.sampled_from([-0.5, 0.0, 0.25]))
    def test_complete_data_need_no_table_of_pairs(self, rows, threshold):
        tally = tally_comparisons(instance_comparisons(rows), np.array([threshold]), pairs=True)
        assert tally.instances is not None
        short = replace(tally, impostor=replace(tally.impostor, compared=AllPairs(tally.instances)))
        written, compact = clusters_of(tally.impostor), clusters_of(short.impostor)
        np.testing.assert_array_equal(written.size, compact.size)
        np.testing.assert_array_equal(written.count, compact.count)

    def test_known_correlations_are_found(self):
        rng = np.random.default_rng(5)
        found = []
        for _ in range(12):
            source = latent_scores(rng, [3] * 40, identity=0.08, pair=0.5)
            known = model_of(source, "far", 100).correlations
            found.append((known.rho_identity, known.rho_pair))
        # the assumed 0.1 and 0.5 have a weight of 10 to 40; standard errors over twelve draws: about 0.006
        np.testing.assert_allclose(np.mean(found, axis=0), [0.8 * 0.08 + 0.2 * 0.1, 0.5], atol=0.02)


class TestOrthant:
    def test_excess_equals_owens_t(self):
        for z in (-4.0, -3.1, -2.0, -0.7, 0.0, 0.4):
            for rho in (-0.6, -0.1, 0.01, 0.2, 0.7, 0.95):
                exact = naive.both_below(z, rho) - ndtr(z) ** 2
                assert float(excess(z, rho)) == pytest.approx(exact, rel=1e-6, abs=1e-16)

    @given(st.floats(-4.0, 1.0), st.floats(-0.6, 0.98))
    def test_correlation_comes_back(self, z, rho):
        target = excess(z, rho)
        again = implied_correlation(z, target)
        assert float(excess(z, again)) == pytest.approx(float(target), rel=1e-6, abs=1e-7 * ndtr(z) ** 2)

    def test_impossible_moments_give_the_ends(self):
        assert implied_correlation(-2.0, np.array([1.0, -1.0])) == pytest.approx([0.999, -0.999])


class TestClusters:
    @settings(max_examples=30)
    @given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.floats(-3.5, 0.5), st.floats(0.02, 0.9))
    def test_erring_equals_adaptive_quadrature(self, sizes, z, rho):
        clusters = Clusters(np.array(sizes, dtype=float), np.ones(len(sizes)))
        found = clusters.erring(np.array([z]), rho)[0]
        assert found == pytest.approx(naive.erring(sizes, z, rho), rel=1e-5, abs=1e-9)

    def test_many_sizes_are_grouped_without_loss(self):
        rng = np.random.default_rng(1)
        sizes = rng.integers(1, 400, 300)
        tally = GenuineTally(sizes, np.zeros((1, 300), dtype=np.int64))
        grouped = clusters_of(tally)
        assert grouped.size.size <= 32
        assert grouped.count.sum() == pytest.approx(300)
        assert grouped.count @ grouped.size == pytest.approx(sizes.sum())
        exact = Clusters(sizes.astype(float), np.ones(300))
        for z, rho in ((-3.0, 0.3), (-2.0, 0.7), (-1.0, 0.1)):
            at = np.array([z]), rho
            assert grouped.erring(*at)[0] == pytest.approx(exact.erring(*at)[0], rel=0.01)


class TestCountTail:
    """Exact to 1e-6 (in fact 1e-8) against a sum in many short steps."""

    def check(self, x, n, p, spread, upper):
        found = count_tail(*(np.array([float(v)]) for v in (x, n, p, spread)), np.array([upper]))[0]
        assert found == pytest.approx(naive.count_tail(x, n, p, spread, upper), abs=1e-6)

    @settings(max_examples=80)
    @given(st.floats(0.3, 7.0), st.floats(-6.0, -0.001), st.floats(-1.2, 1.2), st.floats(-5.0, 2.0), st.booleans())
    @example(4.0, -2.0, 0.0, 0.5, True)
    def test_it_equals_many_nodes(self, log_n, log_share, log_ratio, log_spread, upper):
        n, share = 10.0**log_n, 10.0**log_share
        p = float(np.clip(share * 10.0**log_ratio, 1e-8, 0.97))
        self.check(n * share, n, p, 10.0**log_spread * (1.0 - p), upper)

    @settings(max_examples=80)
    @given(st.integers(0, 100), st.integers(1, 10**6), st.floats(0.5, 3.0), st.floats(-3.0, 3.0), st.booleans())
    def test_few_errors_with_a_wide_law_of_rates(self, x, others, spread, away, upper):
        n = float(x + others)
        self.check(x, n, float(np.clip(max(x, 0.5) / n * np.exp(away), 1e-8, 0.9)), spread, upper)

    def test_without_spread_it_is_the_binomial(self):
        from scipy.stats import binom

        found = count_tail(np.array([7.0]), np.array([400.0]), np.array([0.03]), np.array([0.0]), np.array([True]))[0]
        assert found == pytest.approx(binom.cdf(7, 400, 0.03) - 0.5 * binom.pmf(7, 400, 0.03), rel=1e-4)

    def test_both_tails_make_one(self):
        x = np.array([0.0, 0.02, 3.0, 80.0, 2e5])
        n, p, spread = x + 5e5, np.array([1e-6, 1e-4, 1e-5, 3e-4, 0.3]), np.array([3.0, 1.0, 0.1, 0.5, 0.01])
        both = [count_tail(x, n, p, spread, np.full(5, upper)) for upper in (True, False)]
        np.testing.assert_allclose(both[0][1:] + both[1][1:], 1.0, atol=1e-7)


class TestRoots:
    def test_few_steps_lead_to_a_root(self):
        calls = []

        def gap(z, entries):
            calls.append(entries.size)
            return 2.0 - z + 0.1 * np.sin(z)

        found = solve_decreasing(gap, np.full(3, -0.1), np.array([0.5, 1.0, 4.0]), (-9.0, 6.5), 1e-4)
        np.testing.assert_allclose(found - 0.1 * np.sin(found), 2.0, atol=2e-4)
        assert sum(calls) <= 18

    @given(st.lists(st.floats(-5.0, 5.0), min_size=1, max_size=5), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0))
    def test_roots_are_found_wherever_the_search_starts(self, roots, near, guess):
        wanted = np.array(roots)

        def gap(z, entries):
            return np.arctan(wanted[entries] - z) * (1.0 + 0.5 * np.tanh(z))

        found = solve_decreasing(gap, np.full(wanted.shape, near), np.full(wanted.shape, guess), (-6.0, 6.0))
        np.testing.assert_allclose(found, wanted, atol=5e-6)

    def test_no_root_gives_the_end(self):
        up = solve_decreasing(lambda z, _: 1.0 + 0.0 * z, np.array([0.0]), np.array([1.0]), (-6.0, 6.0))
        down = solve_decreasing(lambda z, _: -1.0 + 0.0 * z, np.array([0.0]), np.array([1.0]), (-6.0, 6.0))
        assert (up[0], down[0]) == (6.0, -6.0)


class TestGolden:
    @pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
    @pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row['file']}-{row['metric']}-{row['errors']}")
    def test_limits_are_those_of_the_reference(self, row):
        data, threshold = golden_table(row["file"].removesuffix(".csv")), row["threshold"]
        if row["decisions"]:
            data, threshold = data.with_fields(score=(data.score >= threshold).astype(float)), 0.5
        rate = getattr(mb.evaluate(data, threshold), row["metric"])
        made = rate.interval(level=row["level"], side=row["side"])
        assert (rate.errors, rate.comparisons, made.method) == (row["errors"], row["comparisons"], "latent")
        assert (made.low, made.high) == pytest.approx((row["low"], row["high"]), rel=1e-3)
        assert made.details["rho_pair"] == pytest.approx(row["rho_pair"], rel=1e-3)
        if row["metric"] == "far":
            assert made.details["rho_identity"] == pytest.approx(row["rho_identity"], rel=1e-3)
        assert made.details["effective_identities"] == pytest.approx(row["effective_identities"], rel=1e-12)


class TestTwin:
    """The whole of the interval against one that walks over pairs of comparisons."""

    @pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
    @settings(max_examples=10)
    @given(
        st.integers(0, 10**6), st.lists(st.integers(1, 3), min_size=3, max_size=5), st.floats(-2.0, 2.0),
        st.sampled_from(["far", "frr"]), st.sampled_from([0.6, 0.95]), st.booleans(),
    )  # fmt: skip
    def test_it_is_the_literal_interval(self, seed, sizes, threshold, metric, level, decided):
        source = latent_scores(np.random.default_rng(seed), sizes, identity=0.1, pair=0.4)
        threshold = threshold + (2.5 if metric == "frr" else 0.0)
        if decided:
            source, threshold = source.with_fields(score=(source.score >= threshold).astype(float)), 0.5
        kept = source.genuine == (metric == "frr")
        total = int(kept.sum())
        assume(total > 1)
        rate = getattr(mb.evaluate(source, threshold), metric)
        low, high = rate.interval(level=level)
        assume(not 0.39 < rate.estimate < 0.61)  # there fits from both sides are blended
        names = source.identities.astype(str)
        rows = [
            (names[a], names[b], s) for a, b, s in zip(source.a[kept], source.b[kept], source.score[kept], strict=True)
        ]
        ranks = rank_grid(total, total if rate.errors > total / 2 else 0, metric)
        grid = rank_scores(source, ranks, "genuine" if metric == "frr" else "impostor")
        weights = sizes if metric == "far" else [m * (m - 1) // 2 for m in sizes if m > 1]
        twin = naive.TwoVariances(metric, rows, threshold, grid.tolist(), weights)
        u = float(-ndtri((1.0 - level) / 2.0))
        assert (low, high) == pytest.approx((twin.limit(u, False), twin.limit(u, True)), rel=1e-4, abs=1e-7)


@pytest.fixture(scope="module")
def models() -> dict[str, LatentModel]:
    source = latent_scores(np.random.default_rng(3), [2, 3, 4, 5, 1] * 6, identity=0.05, pair=0.4)
    return {metric: model_of(source, metric, 10) for metric in ("far", "frr")}


class TestLimits:
    @pytest.mark.parametrize("metric", ["far", "frr"])
    def test_they_rise_with_errors_and_hold_the_estimate(self, models, metric):
        model = models[metric]
        n = model.comparisons
        errors = (0, 1, 2, 5, 10, 20, int(n / 2) - 1, n)
        made = [model.limits(float(x)) for x in errors]
        for one, two in itertools.pairwise(made):
            assert one.low < two.low
            assert one.high < two.high
        for x, one in zip(errors, made, strict=True):
            assert one.low <= x / n <= one.high
        assert made[0].low == 0.0 < made[0].high
        assert made[-1].low < 1.0 == made[-1].high

    def test_data_turned_round_give_limits_turned_round(self):
        source = latent_scores(np.random.default_rng(8), [3] * 15, identity=0.05, pair=0.4)
        other = source.with_fields(score=-source.score)
        n = len(source) - int(source.genuine.sum())
        for x in (5, n // 3):
            one, two = model_of(source, "far", n - x).limits(n - x), model_of(other, "far", x).limits(x)
            assert (one.low, one.high) == pytest.approx((1.0 - two.high, 1.0 - two.low), rel=1e-6)

    def test_levels_and_sides(self, models):
        made = {level: models["far"].limits(12, level=level) for level in (0.5, 0.8, 0.9, 0.99)}
        for one, two in itertools.pairwise(made.values()):
            assert two.low < one.low < one.high < two.high
        upper, lower = (models["far"].limits(12, level=0.95, side=side) for side in ("upper", "lower"))
        assert (upper.low, upper.high) == (lower.low, lower.high) == pytest.approx((made[0.9].low, made[0.9].high))

    def test_many_limits_at_once_equal_each_alone(self, models):
        model = models["far"]
        x, deviate = np.array([0.0, 3.5, 40.0, model.comparisons - 2.0]), np.array([1.0, 2.0, 0.5, 2.5])
        for upper in (True, False):
            together = model.limit(x, deviate, upper)
            alone = [model.limit(a, b, upper)[0] for a, b in zip(x, deviate, strict=True)]
            np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-12)

    def test_notes(self, models):
        model = models["far"]
        assert [note.code for note in model.limits(2).notes] == ["few-erring"]
        assert model.limits(0.2 * model.comparisons).notes == ()
        unsure = replace(model, correlations=replace(model.correlations, people=3.0))
        assert [note.code for note in unsure.limits(0.2 * model.comparisons).notes] == ["assumed-correlations"]


class TestOwnVariance:
    def test_it_is_known_exactly_where_it_was_counted_and_interpolated_between(self):
        own = OwnVariance(np.array([2.0, 50.0]), np.array([0.5, 0.04]))
        np.testing.assert_allclose(own.at(np.array([1.0, 2.0, 10.0, 50.0, 100.0])), [1.0, 0.5, np.sqrt(1.0 * 2.0) ** (
            2 * np.log(10 / 2) / np.log(50 / 2)) / 10, 0.04, 0.02], rtol=1e-12)  # fmt: skip
        joined = own.joined(OwnVariance(np.array([10.0, 50.0]), np.array([0.3, 0.05])))
        np.testing.assert_allclose(joined.at(np.array([2.0, 10.0, 50.0])), [0.5, 0.3, 0.05])

    def test_many_people_follow_their_own_variance(self):
        far = mb.evaluate(mb.SyntheticModel().sample(400, rng=5), 1.2).far
        assert far.interval().width == pytest.approx(far.interval("wilson").width, rel=0.25)


class TestFit:
    def test_grids(self):
        grid = rank_grid(10_000, 17)
        assert grid[0] == 3
        assert grid[-1] == 5000
        assert 17 in grid
        assert np.all(np.diff(grid) > 0)
        np.testing.assert_array_equal(rank_grid(10_000, 9_983), 10_000 - grid[::-1])
        assert rank_grid(1000, 0, "frr")[-1] == 600

    @pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
    def test_there_are_seven_numbers(self):
        assert len(vars(LatentSettings())) == 7
        far = mb.evaluate(mb.demo_data(), 0.6).far
        wide = far.interval(settings=LatentSettings(kurtosis=12.0))
        assert wide.high > far.interval().high

    @given(tables(min_identities=2, max_rows=20), st.integers(0, 20))
    def test_tiny_data_give_sane_limits(self, rows, errors):
        source = comparisons(rows)
        for metric in ("far", "frr"):
            total = int((source.genuine == (metric == "frr")).sum())
            if not total:
                continue
            x = min(errors, total)
            made = model_of(source, metric, x).limits(x)
            assert 0.0 <= made.low <= x / total <= made.high <= 1.0
            assert np.isfinite(made.details["erring_pairs"])

    def test_no_comparisons_is_an_error(self):
        genuine = mb.Comparisons(["a", "b"], ["a", "b"], [0.1, 0.2])
        tally = tally_comparisons(genuine, np.array([0.15]))
        with pytest.raises(DataError, match="impostor"):
            fit_far(tally)
        impostor = mb.Comparisons(["a"], ["b"], [0.1])
        with pytest.raises(DataError, match="genuine"):
            fit_genuine(tally_comparisons(impostor, np.array([0.15])).genuine)

    def test_a_subset_of_identities_gives_nearly_the_same(self):
        source = latent_scores(np.random.default_rng(4), [3] * 80, identity=0.06, pair=0.4)
        x = 300
        whole = model_of(source, "far", x)
        kept = (source.a < 60) & (source.b < 60)
        some = mb.Comparisons(source.a[kept], source.b[kept], source.score[kept])
        total = int((~some.genuine).sum())
        tally = tally_comparisons(some, rank_scores(some, rank_grid(total, 0)), pairs=False)
        at = tally_comparisons(source, rank_scores(source, np.array([x])))
        model = fit_far(tally, at)
        assert model.comparisons == whole.comparisons
        assert (model.effective_identities, model.shown_by) == (whole.effective_identities, 60.0)
        one, two = with_own_variance(whole, at.impostor).limits(x), model.limits(x)
        assert (two.low, two.high) == pytest.approx((one.low, one.high), rel=0.15)

    def test_it_covers_on_its_own_model(self):
        """Coverage at FAR 5% over 150 draws; three standard errors of 95% are 5 points."""
        rng = np.random.default_rng(11)
        threshold = float(ndtri(0.95))
        caught = []
        for _ in range(150):
            source = latent_scores(rng, [2] * 20, identity=0.1, pair=0.4)
            x = int(((source.score >= threshold) & ~source.genuine).sum())
            made = model_of(source, "far", x).limits(x)
            caught.append(made.low <= 0.05 <= made.high)
        assert np.mean(caught) >= 0.90


def errors_at(source, wanted, kind):
    """The comparisons of a kind that err at the thresholds for so many errors."""
    tally = tally_comparisons(source.comparisons(), rank_scores(source, wanted, kind))
    part = tally.part("far" if kind == "impostor" else "frr")
    return part.errors.sum(axis=1) // part.ends


@pytest.mark.parametrize("kind", ["impostor", "genuine"])
class TestRanks:
    @given(tables(min_identities=3, max_rows=40), st.booleans())
    def test_thresholds_have_the_errors_asked_for(self, kind, rows, distance):
        rng = np.random.default_rng(len(rows))
        source = comparisons([(a, b, float(rng.standard_normal())) for a, b, _ in rows], distance=distance)
        wanted = np.arange(1, int((source.genuine == (kind == "genuine")).sum()))
        assume(wanted.size)
        np.testing.assert_array_equal(errors_at(source, wanted, kind), wanted)

    @pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
    def test_embeddings_too(self, kind, similarity):
        rng = np.random.default_rng(2)
        source = mb.Embeddings(rng.standard_normal((60, 8)), rng.integers(0, 12, 60), similarity=similarity)
        wanted = np.array([1, 4, 20, 60])
        np.testing.assert_array_equal(errors_at(source, wanted, kind), wanted)

    def test_a_sample_is_near_and_seeded(self, kind):
        rng = np.random.default_rng(2)
        source = mb.Embeddings(rng.standard_normal((400, 8)), rng.integers(0, 20, 400))
        total = int((source.comparisons().genuine == (kind == "genuine")).sum())
        wanted = np.array([total // 50, total // 5, total // 2])
        exact = rank_scores(source, wanted, kind)
        near, again, other = (
            rank_scores(source, wanted, kind, rng=rng, most_rows=100, most_pairs=2000) for rng in (1, 1, 2)
        )
        np.testing.assert_array_equal(near, again)
        assert not np.array_equal(near, other)
        np.testing.assert_allclose(near, exact, atol=0.1)


class TestAroundOneHalf:
    """Fits from both sides of the scale go over into each other."""

    def test_both_sides_weigh_as_the_literal_rule_says(self):
        source = latent_scores(np.random.default_rng(5), [4] * 20, identity=0.1, pair=0.5)
        total = int(source.genuine.sum())
        low, high = (model_of(source, "frr", x) for x in (0, total))
        both = replace(low, other=high)
        for share in (0.3, 0.45, 0.5, 0.58, 0.7):
            x, d = share * total, 2.0
            for upper in (False, True):
                one, two = (replace(model, other=model).limit(x, d, upper)[0] for model in (low, high))
                far = min(max((share - 0.4) / 0.2, 0.0), 1.0)
                far = 3 * far**2 - 2 * far**3
                wanted = ndtr((1 - far) * ndtri(one) + far * ndtri(two))
                assert both.limit(x, d, upper)[0] == pytest.approx(wanted, rel=1e-6)
                assert replace(high, other=low).limit(x, d, upper)[0] == pytest.approx(wanted, rel=1e-6)

    def test_a_curve_has_no_step_where_half_of_the_comparisons_err(self):
        rng, people, images = np.random.default_rng(2), 25, 9
        owner = np.repeat(np.arange(people), images)
        first, second = np.triu_indices(owner.size, 1)
        noise = np.where(rng.random(people) < 0.3, 3.0, 0.3)[owner[first]] * rng.standard_normal(first.size)
        mated = rng.normal(3.0, 1.0, people)[owner[first]] + noise
        score = np.where(owner[first] == owner[second], mated, rng.standard_normal(first.size))
        source = mb.Comparisons(owner[first], owner[second], score, instance_a=first, instance_b=second)
        curve = mb.roc(source)
        points = np.flatnonzero((curve.frr > 0.47) & (curve.frr < 0.53))
        points = points[np.diff(curve.frr[points], prepend=1.0) < 0.0]
        model = curve.at_frr(0.5).latent_models().frr
        for upper in (True, False):
            limit = model.limit(curve.tally.false_nonmatches[points], 2.0, upper)
            steps = -np.diff(ndtri(limit)) / -np.diff(ndtri(curve.frr[points]))
            assert steps.min() > 0.0
            assert steps.max() < 2.0 * np.median(steps)
        made = limits_at(curve, points[::13], "frr", 0.95)
        for low, high, k in zip(made.low, made.high, points[::13], strict=True):
            rate = mb.evaluate(source, float(curve.thresholds[k])).frr
            assert tuple(rate.interval()) == pytest.approx((low, high), rel=1e-6)
