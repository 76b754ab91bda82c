"""The latent-correlation interval: each part against its slow twin, the whole against the golden tables."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal

import matchbound as mb
import naive_latent as naive
from conftest import DATA, golden_table
from matchbound.counting.recount import rank_scores
from matchbound.counting.tables import tally_comparisons
from matchbound.counts.tally import AllPairs, Tally
from matchbound.errors import DataError, UsageError
from matchbound.stats.latent import (
    LatentModel,
    LatentSettings,
    fit_far,
    fit_frr,
    leave_out_ranks,
    rank_grid,
    settings_named,
)
from matchbound.stats.latent.fit import (
    correlations,
    genuine_clusters,
    genuine_design,
    genuine_products,
    impostor_clusters,
    impostor_design,
    impostor_products,
    smooth,
    without_each,
)
from matchbound.stats.latent.model import Clusters, Curve
from matchbound.stats.latent.probabilities import (
    GAMMA_NODES,
    _tail_by_parts,
    count_tail,
    excess,
    gamma_quantiles,
    implied_correlation,
    legendre,
    solve_decreasing,
)
from strategies import comparisons, instance_comparisons, instance_tables, tables

GOLDEN = json.loads((DATA / "latent.json").read_text())


def model_of(
    source: mb.Comparisons, metric: str, errors: int, settings: str | LatentSettings = "default"
) -> LatentModel:
    genuine = int(source.genuine.sum())
    if metric == "frr":
        grid = rank_scores(source, rank_grid(genuine, errors, "frr"), "genuine")
        return fit_frr(tally_comparisons(source, grid, pairs=False), errors=errors, settings=settings)
    total = len(source) - genuine
    tally = tally_comparisons(source, rank_scores(source, rank_grid(total, errors)), pairs=False)
    out = tally_comparisons(source, rank_scores(source, leave_out_ranks(total, errors)), pairs=True)
    return fit_far(tally, out, errors=errors, settings=settings)


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
    @given(tables(min_identities=3, max_rows=30), st.integers(-3, 4).map(lambda s: s / 4))
    def test_impostor_moments_equal_the_literal_sums(self, rows, threshold):
        source = comparisons(rows)
        literal = [(a, b, score >= threshold) for a, b, score in rows if a != b]
        if not literal:
            return
        tally = tally_comparisons(source, np.array([threshold])).impostor
        kinds = naive.pair_kinds(literal)
        design, products = impostor_design(tally), impostor_products(tally)
        assert float(design.comparisons) == len(literal)
        for kind in ("within", "sharing", "disjoint"):
            assert float(getattr(design, kind)) == pytest.approx(kinds[kind][0], abs=1e-9)
        assert products.within[0] == pytest.approx(kinds["within"][1], abs=1e-9)
        assert products.sharing[0] == pytest.approx(kinds["sharing"][1], abs=1e-9)

    @given(tables(max_rows=30), st.integers(-3, 4).map(lambda s: s / 4))
    def test_genuine_moments_equal_the_literal_sums(self, rows, threshold):
        literal = [(a, b, score < threshold) for a, b, score in rows if a == b]
        if not literal:
            return
        tally = tally_comparisons(comparisons(rows), np.array([threshold])).genuine
        kinds = naive.pair_kinds(literal)
        design, products = genuine_design(tally), genuine_products(tally)
        assert kinds["sharing"][0] == 0
        assert float(design.within) == kinds["within"][0]
        assert float(design.disjoint) == kinds["disjoint"][0]
        assert products.within[0] == pytest.approx(kinds["within"][1], abs=1e-9)

    @given(tables(min_identities=3, max_rows=30), st.sampled_from([-0.5, 0.0, 0.25, 0.5]))
    @example([("a", "b", 0.0)] * 7 + [("a", "b", -0.25)], 0.0)
    def test_correlations_equal_the_literal_ones(self, rows, threshold):
        literal = [(a, b, score >= threshold) for a, b, score in rows if a != b]
        if not 0 < sum(y for *_, y in literal) < len(literal):
            return
        tally = tally_comparisons(comparisons(rows), np.array([threshold])).impostor
        found = correlations(impostor_design(tally), impostor_products(tally))
        z = ndtri(sum(y for *_, y in literal) / len(literal))
        for rho, literal_rho in zip((found.identity[0], found.pair[0]), naive.correlations(literal), strict=True):
            if min(rho, literal_rho) > -0.5:
                assert rho == pytest.approx(literal_rho, abs=2e-4)
            else:  # far below 0 many correlations give one probability that both err; it is what counts
                both, literal_both = (
                    multivariate_normal.cdf([z, z], cov=[[1.0, r], [r, 1.0]], allow_singular=True)
                    for r in (rho, literal_rho)
                )
                assert both == pytest.approx(literal_both, abs=1e-6)

    @given(instance_tables(complete=False), st.sampled_from([-0.5, 0.0, 0.25]))
    def test_leaving_out_equals_dropping_rows(self, rows, threshold):
        source = instance_comparisons(rows) if rows else None
        if source is None:
            return
        tally = tally_comparisons(source, np.array([threshold]), pairs=True)
        design, products = without_each(tally, 0)
        for place, name in enumerate(source.identities):
            left = [(a, b, score >= threshold) for a, _, b, _, score in rows if a != b and str(name) not in (a, b)]
            if not left:
                assert design.comparisons[place] == 0
                continue
            kinds = naive.pair_kinds(left)
            assert design.comparisons[place] == len(left)
            for kind in ("within", "sharing", "disjoint"):
                assert getattr(design, kind)[place] == pytest.approx(kinds[kind][0], abs=1e-9)
            assert products.rate[place] == pytest.approx(sum(y for *_, y in left) / len(left))
            assert products.within[place] == pytest.approx(kinds["within"][1], abs=1e-9)
            assert products.sharing[place] == pytest.approx(kinds["sharing"][1], abs=1e-9)

    @given(instance_tables(complete=True), st.sampled_from([-0.5, 0.0, 0.25]))
    def test_complete_data_need_no_table_of_pairs(self, rows, threshold):
        tally = tally_comparisons(instance_comparisons(rows), np.array([threshold]), pairs=True)
        assert tally.instances is not None
        short = replace(tally, impostor=replace(tally.impostor, compared=AllPairs(tally.instances)))
        for one, two in zip(without_each(tally, 0), without_each(short, 0), strict=True):
            for name in vars(one):
                np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-9)
        written, compact = impostor_clusters(tally.impostor), impostor_clusters(short.impostor)
        np.testing.assert_array_equal(written.size, compact.size)
        np.testing.assert_array_equal(written.count, compact.count)

    def test_known_correlations_are_found(self):
        rng = np.random.default_rng(5)
        found = []
        for _ in range(12):
            source = latent_scores(rng, [3] * 40, identity=0.08, pair=0.5)
            model = model_of(source, "far", 100)
            found.append((model.identity.pooled, model.pair.pooled))
        # standard errors over draws: about 0.02 and 0.02 each, over twelve 0.006
        np.testing.assert_allclose(np.mean(found, axis=0), [0.08, 0.5], atol=0.025)


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
        assert float(implied_correlation(-2.0, 1.0)) == pytest.approx(0.999)
        assert float(implied_correlation(-2.0, -1.0)) == pytest.approx(-0.999)


class TestClusters:
    @settings(max_examples=30)
    @given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.floats(-3.5, 0.5), st.floats(0.02, 0.9))
    def test_erring_equals_adaptive_quadrature(self, sizes, z, rho):
        clusters = Clusters(np.array(sizes, dtype=float), np.ones(len(sizes)))
        found = clusters.erring(np.array([z]), np.array([rho]))[0]
        assert found == pytest.approx(naive.erring(sizes, z, rho), rel=1e-5, abs=1e-9)

    def test_many_sizes_are_grouped_without_loss(self):
        rng = np.random.default_rng(1)
        sizes = rng.integers(1, 400, 300)
        tally = mb.counts.tally.GenuineTally(sizes, np.zeros((1, 300), dtype=np.int64))
        grouped = genuine_clusters(tally)
        assert grouped.size.size <= 32
        assert grouped.count.sum() == pytest.approx(300)
        assert grouped.count @ grouped.size == pytest.approx(sizes.sum())
        exact = Clusters(sizes.astype(float), np.ones(300))
        for z, rho in ((-3.0, 0.3), (-2.0, 0.7), (-1.0, 0.1)):
            at = np.array([z]), np.array([rho])
            assert grouped.erring(*at)[0] == pytest.approx(exact.erring(*at)[0], rel=0.01)


class TestInversion:
    @pytest.mark.parametrize(
        ("x", "n", "p", "spread"),
        [
            (0, 500, 0.002, 0.5),
            (3, 2000, 0.004, 2.0),
            (40, 3000, 0.01, 0.05),
            (300, 900, 0.4, 0.02),
            (250, 40000, 0.005, 1.0),
        ],
    )
    @pytest.mark.parametrize("upper", [True, False])
    def test_tail_equals_adaptive_quadrature(self, x, n, p, spread, upper):
        found = count_tail(*(np.array([float(v)]) for v in (x, n, p, spread)), np.array([upper]))[0]
        assert found == pytest.approx(naive.count_tail(x, n, p, spread, upper), rel=2e-4, abs=1e-7)

    @settings(max_examples=25, deadline=None)
    @given(st.integers(101, 3000), st.integers(101, 10**6), st.floats(1e-5, 2.0), st.floats(-3.0, 3.0), st.booleans())
    def test_tail_of_many_errors_equals_an_integral_in_short_steps(self, x, others, scale, away, upper):
        centre = np.log(x / others) + away * np.hypot(scale, np.sqrt(1.0 / x + 1.0 / others))
        found = _tail_by_parts(*(np.array([float(v)]) for v in (x, x + others, centre, scale)), np.array([upper]))[0]
        assert found == pytest.approx(naive.many_tail(x, x + others, centre, scale, upper), rel=1e-8, abs=1e-9)

    @pytest.mark.parametrize(
        ("x", "n", "p", "spread"), [(0, 500, 0.02, 0.5), (40, 3000, 0.01, 0.05), (250, 40000, 0.005, 1.0)]
    )
    @pytest.mark.parametrize("upper", [True, False])
    def test_gamma_tail_equals_its_sum_written_out(self, x, n, p, spread, upper):
        arguments = (np.array([float(v)]) for v in (x, n, p, spread))
        found = count_tail(*arguments, np.array([upper]), np.ones(1))[0]
        expected = naive.gamma_count_tail(x, n, p, spread, upper, GAMMA_NODES)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)

    @given(st.lists(st.floats(-3.0, 14.0), min_size=1, max_size=4))
    @settings(max_examples=40)
    def test_gamma_quantiles(self, logarithms):
        shape = np.exp(np.array(logarithms))
        found = gamma_quantiles(shape)
        nodes = legendre(GAMMA_NODES)[0]
        for k in (0, 17, 48, 95):
            expected = [naive.gamma_quantile(float(a), float(nodes[k])) for a in shape]
            np.testing.assert_allclose(found[:, k], expected, rtol=1e-7, atol=1e-290)

    def test_few_steps_lead_to_a_root(self):
        calls = []

        def gap(z, entries):
            calls.append(entries.size)
            return 2.0 - z + 0.1 * np.sin(z)

        found = solve_decreasing(gap, np.full(3, -0.1), np.array([0.5, 1.0, 4.0]), (-9.0, 6.5), 1e-4)
        np.testing.assert_allclose(found - 0.1 * np.sin(found), 2.0, atol=2e-4)
        assert sum(calls) <= 18

    def test_without_spread_it_is_the_binomial(self):
        from scipy.stats import binom

        found = count_tail(np.array([7.0]), np.array([400.0]), np.array([0.03]), np.array([0.0]), np.array([True]))[0]
        assert found == pytest.approx(binom.cdf(7, 400, 0.03) - 0.5 * binom.pmf(7, 400, 0.03), rel=1e-4)

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


class TestCurve:
    def test_it_is_the_larger_of_pooled_and_local(self):
        z = np.linspace(-3.0, 0.0, 40)
        curve = smooth(z, np.where(z < -2.0, 0.3, 0.1), np.full(40, 100.0), (0.01, 0.5), 1.0, 0.0)
        inside = (z >= ndtri(0.01) - 1e-9) & (z <= 1e-9)
        weight = np.gradient(z)
        assert curve.pooled == pytest.approx((weight * curve.value)[inside].sum() / weight[inside].sum())
        assert curve(np.array([0.0]))[0] == pytest.approx(curve.pooled)
        assert 0.2 < curve(np.array([-3.0]))[0] < 0.3

    def test_few_errors_weigh_less(self):
        z = np.array([-3.0, -2.0, -1.0])
        curve = smooth(z, np.zeros(3), np.array([3.0, 30.0, 300.0]), (0.01, 0.5), 1.0, 0.0)
        np.testing.assert_allclose(curve.weight, [0.1, 1.0, 1.0])

    def test_nothing_known_gives_the_fallback(self):
        nothing = np.empty(0)
        assert smooth(nothing, nothing, nothing, (0.01, 0.5), 1.0, 0.25)(np.array([-2.0]))[0] == 0.25

    def test_mirrored(self):
        curve = Curve(np.array([-2.0, -1.0]), np.array([0.3, 0.1]), np.ones(2), 0.05)
        assert curve.mirrored()(np.array([1.5]))[0] == pytest.approx(curve(np.array([-1.5]))[0])


class TestGolden:
    @pytest.mark.parametrize("name", sorted(GOLDEN))
    def test_limits_within_two_percent(self, name):
        source = golden_table(name)
        for expected in GOLDEN[name]:
            x = expected["errors"]
            cases = {"reference": (expected["low"], expected["high"])}
            if "light_guard" in expected:
                cases["light"] = tuple(expected["light_guard"])
            for constants, (low, high) in cases.items():
                model = model_of(source, expected["metric"], x, constants)
                made = model.limits(x)
                assert model.comparisons == expected["comparisons"]
                assert made.low == pytest.approx(low, rel=0.02)
                assert made.high == pytest.approx(high, rel=0.02)
                assert made.effective_identities == pytest.approx(expected["effective_identities"], rel=1e-12)
            made = model_of(source, expected["metric"], x, "reference").limits(x)
            assert made.rho_pair == pytest.approx(expected["rho_pair"], rel=0.04)
            if expected["metric"] == "far":
                assert made.rho_identity == pytest.approx(expected["rho_identity"], rel=0.02)
                assert made.beta == pytest.approx(expected["beta"], rel=1e-4)
                if x:
                    assert made.erring_pairs == pytest.approx(expected["erring_pairs"], rel=0.02)

    def test_the_public_call_gives_the_same(self):
        expected = GOLDEN["population"][0]
        rates = mb.evaluate(golden_table("population"), threshold=expected["threshold"])
        made = rates.far.interval(method="latent", settings="reference")
        assert (made.low, made.high) == pytest.approx((expected["low"], expected["high"]), rel=0.02)


@pytest.fixture(scope="module")
def models() -> dict[str, LatentModel]:
    source = latent_scores(np.random.default_rng(3), [2, 3, 4, 5, 1] * 6, identity=0.05, pair=0.4)
    return {metric: model_of(source, metric, 10) for metric in ("far", "frr")}


class TestLimits:
    @pytest.mark.parametrize("metric", ["far", "frr"])
    def test_they_rise_with_errors_and_hold_the_estimate(self, models, metric):
        model = models[metric]
        n = model.comparisons
        made = [model.limits(float(x)) for x in (0, 1, 2, 5, 10, 20, int(n / 2) - 1)]
        for one, two in itertools.pairwise(made):
            assert one.low < two.low
            assert one.high < two.high
        for x, one in zip((0, 1, 2, 5, 10, 20, int(n / 2) - 1), made, strict=True):
            assert one.low <= x / n <= one.high
        assert made[0].low == 0.0
        assert made[0].high > 0.0

    @pytest.mark.parametrize("metric", ["far", "frr"])
    def test_every_error_is_the_mirror_of_none(self, models, metric):
        model = models[metric]
        n = model.comparisons
        flipped = replace(
            model, identity=model.identity.mirrored(), pair=model.pair.mirrored(), mirrored=not model.mirrored
        )
        for x in (0.0, 4.0, n / 4):
            one, two = model.limits(x), flipped.limits(x)
            assert (one.low, one.high) == (two.low, two.high)
            direct = replace(flipped, mirrored=False).limits(n - x if n - x < n / 2 else x)
            assert 0.0 <= direct.low <= direct.high <= 1.0
        assert model.limits(n).high == 1.0
        assert 0.0 < model.limits(n).low < 1.0

    def test_data_turned_round_give_limits_turned_round(self):
        source = latent_scores(np.random.default_rng(8), [3] * 15, identity=0.05, pair=0.4)
        other = mb.Comparisons(
            source.identities[source.a],
            source.identities[source.b],
            -source.score,
            instance_a=source.instance_a,
            instance_b=source.instance_b,
        )
        n = len(source) - int(source.genuine.sum())
        for x in (5, n // 3):
            one, two = model_of(source, "far", n - x).limits(n - x), model_of(other, "far", x).limits(x)
            assert (one.low, one.high) == pytest.approx((1.0 - two.high, 1.0 - two.low), rel=1e-6)

    def test_one_sided_limits_are_those_of_a_wider_level(self, models):
        model = models["far"]
        both = model.limits(12, level=0.90)
        assert model.limits(12, level=0.95, side="upper").high == pytest.approx(both.high)
        assert model.limits(12, level=0.95, side="lower").low == pytest.approx(both.low)
        assert model.limits(12, side="upper").low == 0.0
        assert model.limits(12, side="lower").high == 1.0

    def test_wider_levels_are_wider(self, models):
        made = [models["far"].limits(12, level=level) for level in (0.5, 0.8, 0.95, 0.99)]
        for one, two in itertools.pairwise(made):
            assert two.low < one.low
            assert one.high < two.high

    def test_many_limits_at_once_equal_each_alone(self, models):
        model = models["far"]
        x, deviate = np.array([0.0, 3.5, 40.0, model.comparisons - 2.0]), np.array([1.0, 2.0, 0.5, 2.5])
        for upper in (True, False):
            together = model.limit(x, deviate, upper)
            alone = [model.limit(a, b, upper)[0] for a, b in zip(x, deviate, strict=True)]
            np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-12)

    def test_the_limit_solves_its_equation(self, models):
        model = models["far"]
        deviate = model.deviate(0.95)
        for x in (2.0, 30.0):
            low, high = model.limit([x, x], deviate, [False, True])
            z_hat = ndtri(np.array([x / model.comparisons] * 2))
            tails = model._tail(np.array([x, x]), ndtri(np.array([low, high])), z_hat, np.array([False, True]))
            lower = model._lower_deviate(np.array([deviate]))[0]
            assert lower < deviate
            np.testing.assert_allclose(tails, ndtr([-lower, -deviate]), rtol=1e-4)

    def test_the_reference_differs_from_other_guards_only_in_the_tail(self, models):
        model = replace(models["far"], settings=settings_named("guarded"))
        n = model.comparisons
        other = replace(model, settings=settings_named("reference"))
        assert model.limits(0.2 * n) == other.limits(0.2 * n)
        assert model.limits(1).high != other.limits(1).high

    def test_notes(self, models):
        model = models["far"]
        told = [note for note in model.limits(2).notes if note.code == "few-erring"]
        assert len(told) == 1
        assert "more people" in told[0].text
        assert model.limits(0.2 * model.comparisons).notes == ()
        risky = replace(model, identity=replace(model.identity, pooled=0.2))
        assert [note.code for note in risky.limits(0.2 * model.comparisons).notes] == ["strong-correlation"]


class TestSides:
    """What upper and lower limits do differently."""

    @given(
        st.integers(2, 400),
        st.floats(0.1, 1.0),
        st.sampled_from([0.5, 0.8, 0.95, 0.99]),
        st.sampled_from([0.25, 0.5, 1]),
    )
    def test_degrees_of_freedom_equal_the_literal_ones(self, models, people, share, level, freedom):
        constants = LatentSettings(freedom=freedom)
        model = replace(models["far"], people=people, effective_identities=share * people, settings=constants)
        upper, lower = naive.t_deviates(people, share * people, level, freedom)
        assert model.deviate(level) == pytest.approx(upper, rel=1e-6)
        assert model._lower_deviate(np.array([upper]))[0] == pytest.approx(lower, rel=1e-6)
        assert model._lower_deviate(np.zeros(1))[0] == pytest.approx(0.0, abs=1e-12)

    @given(st.floats(0.0, 0.5), st.floats(1e-4, 0.5), st.floats(0.0, 0.5), st.floats(0.0, 1.0))
    def test_the_slope_raises_the_correlation_as_the_literal_rule(self, models, slope, rate, rho, weight):
        found = models["far"]._rise(np.array([slope]), ndtri(np.array([rate])), np.array([rho]), np.array([weight]))[0]
        assert found == pytest.approx(naive.raised_by(slope, rate, rho, weight), abs=1e-12)

    def test_few_people_cannot_show_that_nothing_is_shared(self):
        source = latent_scores(np.random.default_rng(8), [3] * 14, identity=0.0, pair=0.3)
        model = model_of(source, "far", 20)
        model = replace(model, identity=replace(model.identity, value=0.0 * model.identity.value, pooled=0.0))
        z, none = ndtri(np.array([0.05, 0.2])), np.zeros(2)
        rho = np.full(2, 0.3)
        np.testing.assert_allclose(model._raised(z, none, rho), 0.7 / 14)
        np.testing.assert_allclose(model._raised(z, none, rho, 0.5), 0.35 / 14)
        bare = replace(model, settings=replace(model.settings, least_identity=0.0))
        x = 0.1 * model.comparisons
        assert bare.limits(x).high < model.limits(x).high
        assert bare.limits(x).low == model.limits(x).low

    @pytest.mark.parametrize("erring", [1, 2, 5])
    def test_the_errors_of_few_people_are_few_clumps(self, erring):
        """Each of `erring` people fails all: lower limits take the errors for as many clumps as the rule says."""
        people, images = 30, 5
        first, second = np.triu_indices(images, 1)
        owner = np.repeat(np.arange(people), first.size)
        score = np.random.default_rng(3).normal(3.0, 1.0, owner.size)
        score[owner < erring] -= 20.0
        source = mb.Comparisons(
            owner,
            owner,
            score,
            instance_a=owner * images + np.tile(first, people),
            instance_b=owner * images + np.tile(second, people),
        )
        x = erring * first.size
        model = model_of(source, "frr", x)
        clump = naive.clump_seen([first.size if i < erring else 0 for i in range(people)], [first.size] * people, 5.0)
        assert model._clump_seen(np.array([float(x)]))[0] == pytest.approx(clump, rel=1e-9)
        assert model._clump_seen(np.array([0.0]))[0] == 0.0
        if erring == 1:  # one person in thirty: a mid-P bound of one clump, and not of ten
            low = model.limits(x).low * people
            assert 0.03 < low < 0.09
        bare = replace(model, settings=replace(model.settings, erring_fade=0.0))
        ratio = model.limits(x).low / bare.limits(x).low
        assert ratio < (0.6 if erring == 1 else 1.03)
        assert model.limits(x).high == bare.limits(x).high


class TestFit:
    def test_settings_by_name(self):
        assert settings_named("reference").identity_guard == 1.0
        own = LatentSettings(guard_rate=0.02)
        assert settings_named(own) is own
        with pytest.raises(UsageError, match="reference"):
            settings_named("best")

    def test_grids(self):
        grid = rank_grid(10_000, 17)
        assert grid[0] == 3
        assert grid[-1] == 5000
        assert 17 in grid
        assert np.all(np.diff(grid) > 0)
        np.testing.assert_array_equal(rank_grid(10_000, 9_983), 10_000 - grid[::-1])
        np.testing.assert_array_equal(leave_out_ranks(1000, 0), [10, 20, 40, 80, 150, 250, 400])
        np.testing.assert_array_equal(leave_out_ranks(1000, 990), [600, 750, 850, 920, 960, 980, 990])
        assert rank_grid(1000, 0, "frr")[-1] == 600

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
            assert np.isfinite(made.erring_pairs)

    def test_no_comparisons_is_an_error(self):
        genuine = mb.Comparisons(["a", "b"], ["a", "b"], [0.1, 0.2])
        tally = tally_comparisons(genuine, np.array([0.15]))
        with pytest.raises(DataError, match="impostor"):
            fit_far(tally)
        impostor = mb.Comparisons(["a"], ["b"], [0.1])
        with pytest.raises(DataError, match="genuine"):
            fit_frr(tally_comparisons(impostor, np.array([0.15])))

    def test_a_subset_of_identities_gives_nearly_the_same(self):
        source = latent_scores(np.random.default_rng(4), [3] * 80, identity=0.06, pair=0.4)
        x = 300
        whole = model_of(source, "far", x)
        kept = (source.a < 60) & (source.b < 60)
        some = mb.Comparisons(source.a[kept], source.b[kept], source.score[kept])
        total = int((~some.genuine).sum())
        seen = round(x * total / whole.comparisons)
        tally = tally_comparisons(some, rank_scores(some, rank_grid(total, seen)), pairs=False)
        out = tally_comparisons(some, rank_scores(some, leave_out_ranks(total, seen)), pairs=True)
        model = fit_far(tally, out, whole=tally_comparisons(source, np.array([2.0])), errors=x)
        assert model.comparisons == whole.comparisons
        assert model.effective_identities == whole.effective_identities
        one, two = whole.limits(x), model.limits(x)
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


class TestRanks:
    @given(tables(min_identities=3, max_rows=40), st.booleans())
    def test_thresholds_have_the_errors_asked_for(self, rows, distance):
        rng = np.random.default_rng(len(rows))
        spread = [(a, b, float(rng.standard_normal())) for a, b, _ in rows]
        source = comparisons(spread, distance=distance)
        genuine = int(source.genuine.sum())
        for kind, total in (("impostor", len(rows) - genuine), ("genuine", genuine)):
            if total < 2:
                continue
            wanted = np.arange(1, total)
            tally = tally_comparisons(source, rank_scores(source, wanted, kind))
            part = tally.impostor if kind == "impostor" else tally.genuine
            found = part.errors.sum(axis=1) // (2 if kind == "impostor" else 1)
            np.testing.assert_array_equal(found, wanted)

    @pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
    @pytest.mark.parametrize("kind", ["impostor", "genuine"])
    def test_embeddings_too(self, similarity, kind):
        rng = np.random.default_rng(2)
        source = mb.Embeddings(rng.standard_normal((60, 8)), rng.integers(0, 12, 60), similarity=similarity)
        wanted = np.array([1, 4, 20, 60])
        tally = tally_comparisons(source.comparisons(), rank_scores(source, wanted, kind))
        part = tally.impostor if kind == "impostor" else tally.genuine
        np.testing.assert_array_equal(part.errors.sum(axis=1) // (2 if kind == "impostor" else 1), wanted)

    @pytest.mark.parametrize("kind", ["impostor", "genuine"])
    def test_a_sample_is_near_and_seeded(self, monkeypatch, kind):
        from matchbound.counting import recount

        rng = np.random.default_rng(2)
        source = mb.Embeddings(rng.standard_normal((400, 8)), rng.integers(0, 20, 400))
        total = int((source.comparisons().genuine == (kind == "genuine")).sum())
        wanted = np.array([total // 50, total // 5, total // 2])
        exact = rank_scores(source, wanted, kind)
        monkeypatch.setattr(recount, "EXACT_ROWS", 100)
        monkeypatch.setattr(recount, "SAMPLE", 2000)
        near = rank_scores(source, wanted, kind, rng=1)
        np.testing.assert_array_equal(near, rank_scores(source, wanted, kind, rng=1))
        assert not np.array_equal(near, rank_scores(source, wanted, kind, rng=2))
        np.testing.assert_allclose(near, exact, atol=0.1)


def test_a_tally_without_pairs_has_no_slope():
    source = latent_scores(np.random.default_rng(3), [3] * 12, identity=0.05, pair=0.4)
    tally: Tally = tally_comparisons(source, rank_scores(source, rank_grid(594, 20)), pairs=True)
    assert fit_far(replace(tally, impostor=replace(tally.impostor, erred=None))).beta == 0.0
    assert fit_far(tally).beta >= 0.0


def test_the_plot_shows_both_curves(models):
    from matchbound.show.figures import plot_correlations

    axes = plot_correlations(models["far"])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "same identity pair",
        "one identity in common",
    ]
    drawn = axes.get_lines()[1].get_ydata()
    assert np.min(drawn) == pytest.approx(models["far"].identity.pooled)
    assert len(plot_correlations(models["frr"]).get_lines()) == 1


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
                one, two = (naive_side(model, x, d, upper) for model in (low, high))
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
        made = curve.limits_at(points, "frr")
        for limit in (made.low, made.high):
            steps = -np.diff(ndtri(limit)) / -np.diff(ndtri(curve.frr[points]))
            assert steps.min() > 0.0
            assert steps.max() < 2.0 * np.median(steps)
        at = points.size // 2
        rate = mb.evaluate(source, float(curve.thresholds[points[at]])).frr
        assert tuple(rate.interval()) == pytest.approx((made.low[at], made.high[at]), rel=1e-6)


def naive_side(model: LatentModel, errors: float, deviate: float, upper: bool) -> float:
    """The limit of one fit alone, on whichever side of ½ the rate is."""
    return float(model._solve(np.array([errors]), np.array([deviate]), np.array([upper]))[0])
