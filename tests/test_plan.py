"""Planning: the latent model's formulas, pilots, the promise of a plan, rules of thumb, and what the user sees."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

import naive_plan
from matchbound.calls.evaluate import evaluate, tally
from matchbound.cli import main
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import MatchboundWarning, UsageError
from matchbound.planning.foresight import chance_of_none, foresee
from matchbound.planning.instances import _products
from matchbound.planning.latent_limits import planned
from matchbound.planning.latent_model import (
    INDEPENDENT,
    UNKNOWN,
    Dependence,
    correlation_for,
    design_effect,
    genuine_sharing,
    n_comparisons,
    variance,
)
from matchbound.planning.pilot import (
    MODEL_DOUBT,
    dependence_of_pilot,
    dependence_of_tally,
    genuine_correlation,
    impostor_correlations,
    weighed,
)
from matchbound.planning.plan import plan
from matchbound.planning.rules import identities_for, zero_errors
from matchbound.planning.search import Target, _first_guess, draw, smallest
from matchbound.stats.intervals import effective_n, wilson
from matchbound.stats.latent.probabilities import excess

MIDDLE = Dependence(0.06, 0.60, 0.35)


def table_of(n: int, m: int, rng: np.random.Generator, p: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Errors and comparisons of identity pairs, incomplete and unbalanced."""
    compared = rng.integers(0, m + 1, (n, n))
    compared = np.triu(compared, 1) + np.triu(compared, 1).T
    compared[0, 1] = compared[1, 0] = m
    errors = np.triu(rng.binomial(compared, p), 1)
    return errors + errors.T, compared


def comparisons_of(errors: np.ndarray, compared: np.ndarray) -> Comparisons:
    first, second, score = [], [], []
    for i, j in combinations(range(errors.shape[0]), 2):
        first += [i] * int(compared[i, j])
        second += [j] * int(compared[i, j])
        score += [1.0] * int(errors[i, j]) + [0.0] * int(compared[i, j] - errors[i, j])
    return Comparisons(first, second, score)


def model_embeddings(size: int, instances: int, rng: np.random.Generator) -> Embeddings:
    x = rng.exponential(1.0, (size, 1, 128)) + rng.normal(0.0, np.sqrt(5.0), (size, instances, 128))
    return Embeddings(x.reshape(-1, 128), np.repeat(np.arange(size), instances))


# ---- the latent model


def both_err(p: float, rho: float) -> float:
    """Φ₂(z, z; ρ), z = Φ⁻¹(p)."""
    return p**2 + float(excess(ndtri(p), rho))


@pytest.mark.parametrize("p", [1e-4, 1e-2, 0.2, 0.6])
@pytest.mark.parametrize("rho", [0.02, 0.12, 0.8])
def test_both_err_is_the_integral(p: float, rho: float) -> None:
    assert float(both_err(p, rho)) == pytest.approx(naive_plan.both_err(p, rho), rel=1e-6)
    assert correlation_for(p, float(both_err(p, rho))) == pytest.approx(rho, abs=1e-6)


def test_both_err_at_the_ends() -> None:
    assert float(both_err(0.1, 0.0)) == pytest.approx(0.01)
    assert correlation_for(0.1, 0.005) == 0.0


def test_variance_is_that_of_simulated_data() -> None:
    """Closed-form variance of FAR against 1,500 literal data sets: the Monte Carlo error of a variance is 4–6%."""
    rng = np.random.default_rng(2)
    n, m = 10, 2
    estimates = [naive_plan.latent_table(0.2, n, m, 0.1, 0.6, rng).sum() / (m * m * n * (n - 1)) for _ in range(1500)]
    known = Dependence(0.1, 0.6, 0.3)
    assert np.var(estimates) == pytest.approx(variance("far", 0.2, n, m, known), rel=0.2)
    assert np.mean(estimates) == pytest.approx(0.2, abs=4 * np.std(estimates) / np.sqrt(1500))
    g = 10
    own = rng.standard_normal((40_000, 20))
    errors = rng.binomial(g, ndtr((ndtri(0.1) + np.sqrt(0.3) * own) / np.sqrt(0.7)))
    assert np.var(errors.mean(axis=1) / g) == pytest.approx(variance("frr", 0.1, 20, 5, known), rel=0.05)


def test_design_effect_of_independent_comparisons_is_one() -> None:
    assert design_effect("far", 0.01, 50, 3, INDEPENDENT) == 1.0
    assert design_effect("frr", 0.01, 50, 3, INDEPENDENT) == 1.0
    assert design_effect("far", 0.01, 400, 3, UNKNOWN) > design_effect("far", 0.01, 100, 3, UNKNOWN)


@pytest.mark.parametrize("m", range(2, 9))
def test_share_of_genuine_comparisons_with_a_common_instance(m: int) -> None:
    edges = list(combinations(range(m), 2))
    pairs = list(combinations(edges, 2))
    share = sum(bool(set(x) & set(y)) for x, y in pairs) / len(pairs) if pairs else 0.0
    assert genuine_sharing(m) == pytest.approx(share)


# ---- pilots


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(4, 6), m=st.integers(2, 4))
def test_pilot_moments_are_those_of_written_out_comparisons(seed: int, n: int, m: int) -> None:
    errors, compared = table_of(n, m, np.random.default_rng(seed))
    counted = tally(comparisons_of(errors, compared), 0.5)
    p = errors.sum() / compared.sum()
    c_s, c_w, mu2 = naive_plan.impostor_moments(errors, compared)
    assume(0.0 < p < 1.0 and np.isfinite([c_s, c_w, mu2]).all())
    shared, same = impostor_correlations(counted.impostor, 0)
    assert shared == pytest.approx(correlation_for(p, p * p * (1 + c_s / max(p * p + mu2, p * p / 4))), abs=1e-6)
    assert same == pytest.approx(correlation_for(p, p * p + c_w), abs=1e-6)


def test_pilot_correlations_come_back() -> None:
    """A large latent data set gives its own correlations back."""
    rng = np.random.default_rng(5)
    n, m, p = 250, 4, 0.1
    effect = rng.standard_normal(n)
    first, second = np.triu_indices(n, k=1)
    score = np.sqrt(0.1) * (effect[first] + effect[second]) + np.sqrt(0.4) * rng.standard_normal(first.size)
    errors = np.zeros((n, n), dtype=np.int64)
    errors[first, second] = rng.binomial(m, ndtr((score + ndtri(p)) / np.sqrt(0.4)))
    counted = tally(comparisons_of(errors + errors.T, np.full((n, n), m)), 0.5)
    shared, same = impostor_correlations(counted.impostor, 0)
    assert shared == pytest.approx(0.1, abs=0.025)
    assert same == pytest.approx(0.6, abs=0.02)


def test_genuine_correlation_comes_back() -> None:
    rng = np.random.default_rng(6)
    n, g = 3000, 10
    own = rng.standard_normal(n)
    errors = rng.binomial(g, ndtr((ndtri(0.1) + np.sqrt(0.3) * own) / np.sqrt(0.7)))
    identity = np.repeat(np.arange(n), g)
    score = (np.tile(np.arange(g), n) >= np.repeat(errors, g)).astype(float)
    counted = tally(Comparisons(identity, identity, score), 0.5)
    assert genuine_correlation(counted.genuine, 0) == pytest.approx(0.3, abs=0.03)
    with pytest.warns(MatchboundWarning, match="dependence of FAR"):
        found = dependence_of_tally(counted)
    assert found.genuine == pytest.approx(0.3, abs=0.03)
    assert found.shared == UNKNOWN.at(1).shared


def test_pilot_with_five_instances_speaks_about_one_and_three() -> None:
    """Comparisons that share an instance are told apart, so ρ_s can be foretold for fewer instances a person."""
    rng = np.random.default_rng(7)
    known = dependence_of_pilot(model_embeddings(150, 5, rng))
    assert known.instance > 0.04
    few = dependence_of_pilot(model_embeddings(260, 3, rng)).at(3)
    assert known.at(3).shared == pytest.approx(few.shared, abs=0.012)
    assert known.at(1).shared > known.at(3).shared > known.at(5).shared > known.shared


@settings(max_examples=20, deadline=None)
@given(shown=st.floats(0.0, 0.4), people=st.integers(5, 2000))
def test_pilots_are_weighed_against_what_is_usual(shown: float, people: int) -> None:
    """The mean and the doubt are those of a posterior that is summed on a grid."""
    usual = 0.65 * 0.12
    known = Dependence(shown, 0.9, 0.3, "pilot", doubt=MODEL_DOUBT)
    found = weighed(known, people)
    noise = 7.0 * max(shown, usual) ** 2 / people + (0.6 / people) ** 2
    mean, variance = naive_plan.weighed_on_a_grid(shown, noise, usual, 0.25 * 0.12)
    assert found.at(2).shared == pytest.approx(mean, rel=1e-6)
    assert found.doubt == pytest.approx(np.sqrt(np.log(1.0 + variance / mean**2) + 0.0625), rel=1e-6)
    assert (found.genuine, found.genuine_doubt) == (0.3, 0.0), "what a pilot does not show stays as it is"
    own = weighed(replace(known, doubt=0.0, genuine=shown, genuine_doubt=MODEL_DOUBT), people)
    default = 0.45 + 0.22 * 2.0 / 3.0
    mean, variance = naive_plan.weighed_on_a_grid(shown, 0.34 / people, 0.65 * default, 0.25 * default)
    assert own.at(5).genuine == pytest.approx(mean, rel=1e-6)
    assert own.genuine_doubt == pytest.approx(np.sqrt(np.log(1.0 + variance / mean**2) + 0.0625), rel=1e-6)
    assert own.at(2).shared == shown


def test_small_pilots_are_read_with_caution() -> None:
    rng = np.random.default_rng(8)
    small = model_embeddings(12, 4, rng)
    with pytest.warns(MatchboundWarning, match="12 identities.*take the larger number"):
        made = plan(far=0.1, width=0.1, dependence=small)
    large = plan(far=0.1, width=0.1, dependence=model_embeddings(200, 4, rng))
    assert made.doubt > large.doubt > 0.25
    assert made.n_identities > large.n_identities


def test_possible_correlations_have_the_moments_of_the_doubt() -> None:
    known = Dependence(0.08, 0.7, 0.4, "pilot", 0.02, 0.1, doubt=0.4, genuine_doubt=0.2)
    for metric, doubt in (("far", 0.4), ("frr", 0.2)):
        found = known.possible(metric)  # type: ignore[arg-type]
        weight = np.array([w for w, _ in found])
        away = np.array(
            [np.log((d.shared if metric == "far" else d.genuine) / (0.08, 0.4)[metric == "frr"]) for _, d in found]
        )
        moments = [float(weight @ away**k) for k in range(6)]
        assert moments == pytest.approx([1.0, 0.0, doubt**2, 0.0, 3.0 * doubt**4, 0.0], abs=1e-12)
    assert [d.tail for _, d in known.possible("far")] == pytest.approx(
        [1.0, np.exp(0.4 * 3**0.5), np.exp(-0.4 * 3**0.5)]
    )
    assert MIDDLE.possible("far") == ((1.0, MIDDLE),)


def test_the_chance_of_a_pilots_plan_is_the_average_over_what_may_be() -> None:
    target = Target("far", 0.01, "width", 0.02, 0.95, 0.95, "latent")
    known = Dependence(0.08, 0.7, 0.4, "pilot", doubt=0.4)
    each = [(w, target.met(draw(target, d, 80, 2, 3, round(4000 * w)))) for w, d in known.possible("far")]
    mixed = target.met(draw(target, known, 80, 2, 3))
    assert mixed == pytest.approx(sum(w * chance for w, chance in each), abs=1e-3)
    assert each[1][1] < mixed < each[2][1], "stronger correlations meet the goal less often"
    certain, doubted = (smallest(target, d, 2, 0) for d in (replace(known, doubt=0.0), known))
    assert doubted > certain


def test_planned_data_show_the_correlations_with_the_assumed_ones_averaged_in() -> None:
    known = planned("far", 150, 2, Dependence(0.08, 0.7, 0.4)).model.correlations
    assert known.rho_identity == pytest.approx((150 * 0.08 + 10 * 0.1) / 160)
    assert known.rho_pair == pytest.approx((150 * 0.7 + 10 * 0.5) / 160)


def test_what_dependence_may_be() -> None:
    data = model_embeddings(60, 4, np.random.default_rng(9))
    series = evaluate(data, [0.15, 0.2, 0.25])
    asked = {"far": 0.05, "width": 0.05}
    sizes = {plan(**asked, dependence=x).n_identities for x in (series, series[0], series[0].far, series[0].far.tally)}
    assert len(sizes) == 1
    for wrong in ("much", 0.5, float("nan"), True, Dependence(0.6, 0.7, 0.1)):
        with pytest.raises(UsageError, match="dependence"):
            plan(**asked, dependence=wrong)


# ---- foresight


@pytest.mark.parametrize(
    ("p", "n", "m", "known"),
    [(0.05, 40, 2, UNKNOWN), (0.1, 30, 5, INDEPENDENT), (0.02, 60, 1, MIDDLE), (0.3, 25, 3, MIDDLE)],
)
def test_foresight_of_far_agrees_with_simulated_data(p: float, n: int, m: int, known: Dependence) -> None:
    """Quantiles of the interval's width and upper limit against 600 data sets that are simulated in full.

    The share of simulated widths below a foreseen quantile has a Monte Carlo error of at most 2%.
    """
    rng = np.random.default_rng([3, n])
    at = known.at(m)
    seen = foresee("far", p, n, m, at, n_draws=6000, rng=rng)
    low, high = seen.wilson(0.025)
    first, second = np.triu_indices(n, k=1)
    widths, uppers = [], []
    for _ in range(600):
        effect = rng.standard_normal(n)
        score = np.sqrt(at.shared) * (effect[first] + effect[second]) + ndtri(p)
        score += np.sqrt(at.same - 2 * at.shared) * rng.standard_normal(first.size)
        errors = rng.binomial(m * m, ndtr(score / np.sqrt(1 - at.same)))
        estimate = errors.sum() / (m * m * first.size)
        d = errors - estimate * m * m
        r = np.bincount(first, d, n) + np.bincount(second, d, n)
        v = (4 * (r * r).sum() - 4 * (d * d).sum()) / (2.0 * m * m * first.size) ** 2
        limits = wilson(estimate, effective_n(estimate, v, n // 2), 0.025)
        widths.append(limits[1] - limits[0])
        uppers.append(limits[1])
    for foreseen, drawn in ((high - low, widths), (high, uppers)):
        for level in (0.5, 0.8, 0.95):
            below = np.mean(np.array(drawn) <= np.quantile(foreseen, level))
            assert below == pytest.approx(level, abs=0.07)


def test_foresight_of_frr_has_the_moments_of_the_model() -> None:
    seen = foresee("frr", 0.05, 100, 5, MIDDLE, n_draws=20_000, rng=np.random.default_rng(4))
    assert seen.estimate.mean() == pytest.approx(0.05, rel=0.02)
    true = variance("frr", 0.05, 100, 5, MIDDLE)
    assert seen.estimate.var() == pytest.approx(true, rel=0.05)
    assert seen.variance.mean() == pytest.approx(true * 0.99, rel=0.02), "the plug-in is G/(G−1) low"


def test_wilson_of_draws_is_the_interval_of_the_results() -> None:
    seen = foresee("far", 0.003, 30, 1, UNKNOWN, n_draws=200, rng=np.random.default_rng(1))
    low, high = seen.wilson(0.05)
    assert (seen.estimate == 0.0).any()
    for k in range(200):
        p, v = float(seen.estimate[k]), float(seen.variance[k])
        assert (low[k], high[k]) == pytest.approx(wilson(p, effective_n(p, v, 15), 0.05))


def test_chance_of_none() -> None:
    none = chance_of_none("far", 20, 2, INDEPENDENT, rng=np.random.default_rng(0))
    assert none(1e-3) == pytest.approx((1 - 1e-3) ** n_comparisons("far", 20, 2), rel=1e-6)
    own = chance_of_none("frr", 20, 4, INDEPENDENT, rng=np.random.default_rng(0))
    assert own(1e-3) == pytest.approx((1 - 1e-3) ** n_comparisons("frr", 20, 4), rel=1e-6)
    together = chance_of_none("far", 20, 2, UNKNOWN.at(2), rng=np.random.default_rng(0))
    assert together(1e-3) > none(1e-3), "errors that come together leave more clean samples"
    rng = np.random.default_rng(1)
    clean = np.mean([not naive_plan.latent_table(0.02, 8, 1, 0.1, 0.7, rng).any() for _ in range(2000)])
    model = chance_of_none("far", 8, 1, Dependence(0.1, 0.7, 0.3), n_draws=4000, rng=rng)(0.02)
    assert model == pytest.approx(clean, abs=4 * np.sqrt(clean * (1 - clean) / 2000))


# ---- the promise


@pytest.mark.parametrize(
    "asked",
    [
        {"far": 0.05, "width": 0.06, "instances": 2},
        {"far": 0.02, "upper": 0.05, "instances": 3},
        {"frr": 0.05, "width": 0.05, "instances": 4},
    ],
)
def test_plan_keeps_its_promise(asked: dict[str, float]) -> None:
    """Data simulated at the planned size meet the goal in 95% of 400 cases, Monte Carlo error 1.1%.

    Twenty settings, 400 replications each: docs/studies/plan_check.csv.
    """
    made = plan(**asked, dependence=MIDDLE, method="wilson")  # type: ignore[arg-type]
    n, m, p = made.n_identities, made.instances, made.target.rate
    rng = np.random.default_rng([11, n])
    met = 0
    first, second = np.triu_indices(n, k=1)
    for _ in range(400):
        if made.target.metric == "far":
            effect = rng.standard_normal(n)
            score = np.sqrt(MIDDLE.shared) * (effect[first] + effect[second]) + ndtri(p)
            score += np.sqrt(MIDDLE.same - 2 * MIDDLE.shared) * rng.standard_normal(first.size)
            errors = rng.binomial(m * m, ndtr(score / np.sqrt(1 - MIDDLE.same)))
            estimate = errors.sum() / made.comparisons
            d = errors - estimate * m * m
            r = np.bincount(first, d, n) + np.bincount(second, d, n)
            v, floor = (r * r).sum() - (d * d).sum(), n // 2
        else:
            g = m * (m - 1) // 2
            own = np.sqrt(MIDDLE.genuine) * rng.standard_normal(n) + ndtri(p)
            errors = rng.binomial(g, ndtr(own / np.sqrt(1 - MIDDLE.genuine)))
            estimate = errors.sum() / made.comparisons
            v, floor = ((errors - estimate * g) ** 2).sum(), n
        size = effective_n(estimate, v / made.comparisons**2, floor)
        if made.target.goal == "width":
            low, high = wilson(estimate, size, 0.025)
            met += high - low <= made.target.value
        else:
            met += wilson(estimate, size, 0.05)[1] <= made.target.value
    assert 0.91 <= met / 400 <= 0.985


def test_plan_is_the_smallest_that_does() -> None:
    made = plan(far=0.01, width=0.02, dependence=MIDDLE)
    assert made.expected.chance >= 0.94
    assert made.at(int(made.n_identities * 0.85)).chance < 0.94
    assert made.at(made.n_identities) == made.expected


def test_same_seed_same_plan() -> None:
    one, two = (plan(far=0.01, width=0.02, rng=4) for _ in range(2))
    assert (one.n_identities, one.expected) == (two.n_identities, two.expected)
    assert plan(far=0.01, width=0.02, rng=np.random.default_rng(1)).n_identities == pytest.approx(
        one.n_identities, rel=0.1
    )


@pytest.mark.slow
def test_more_dependence_needs_more_people() -> None:
    asked = {"far": 0.01, "width": 0.01}
    independent, weak, unknown = (plan(**asked, dependence=x) for x in (INDEPENDENT, MIDDLE, None))
    assert independent.n_identities < weak.n_identities < unknown.n_identities
    effects = [plan(**asked, dependence=x) for x in (1.0, 5.0, 20.0)]
    assert [x.n_identities for x in effects] == sorted({x.n_identities for x in effects})
    assert effects[1].expected.design_effect == pytest.approx(5.0, rel=0.01)
    assert effects[2].expected.effective_n * 20.0 == pytest.approx(effects[2].comparisons, rel=0.01)


def test_instances_buy_people_up_to_a_point() -> None:
    made = plan(frr=0.05, width=0.05, dependence=MIDDLE)
    curve = made.cost_curve((2, 3, 5, 10))
    assert curve.instances.tolist() == [2, 3, 5, 10]
    assert (np.diff(curve.n_identities) < 0).all()
    assert np.array_equal(curve.recordings, curve.instances * curve.n_identities)
    assert curve.cheapest(per_identity=100.0, per_instance=0.0) == 3
    assert curve.cheapest(per_identity=0.0, per_instance=1.0) == int(np.argmin(curve.recordings))


def test_claims() -> None:
    made = plan(far=0.01, width=0.015, claim=0.03, dependence=MIDDLE)
    assert made.claim_power == made.power(0.03)
    assert made.power(0.012) < made.power(0.02) <= made.power(0.03)
    only = plan(far=0.01, claim=0.03, dependence=MIDDLE)
    assert only.target.goal == "upper"
    assert only.claim_power == pytest.approx(0.95, abs=0.02)


@pytest.mark.slow
def test_people_who_differ_strongly_are_warned_about() -> None:
    with pytest.warns(MatchboundWarning, match="differ strongly"):
        plan(far=0.05, width=0.2, dependence=Dependence(0.3, 0.8, 0.5))


# ---- rules of thumb and clean results


def test_rules_of_three_and_thirty() -> None:
    made = plan(far=1e-3, upper=2e-3)
    three, thirty = made.rules
    assert (three.comparisons, thirty.comparisons) == (1500, 30_000)
    assert n_comparisons("far", three.n_identities, 2) >= 1500 > n_comparisons("far", three.n_identities - 1, 2)
    assert three.chance < 0.05, "28 people cannot show it"
    assert three.n_identities < thirty.n_identities < made.n_identities


def test_174_people() -> None:
    """All comparisons of 174 people, in both orders, are 30,102: the rule of 3 says 1e-4; only 87 share nobody."""
    assert 174 * 173 == 30_102
    assert pytest.approx(1e-4, rel=0.01) == 3 / 30_102
    clean = zero_errors(174)
    assert clean.comparisons == 15_051, "in both orders the same comparison is counted twice"
    assert clean.independent == pytest.approx(3 / 15_051, rel=0.01)
    assert clean.disjoint == pytest.approx(1 - 0.05 ** (1 / 87))
    assert clean.independent < clean.modelled < clean.disjoint
    assert clean.wilson == pytest.approx(wilson(0.0, 87, 0.05)[1])
    strong = zero_errors(174, dependence=Dependence(0.3, 0.8, 0.5))
    assert strong.modelled > 1.5 * clean.modelled


def test_clean_results_of_independent_comparisons_follow_the_rule_of_three() -> None:
    clean = zero_errors(50, instances=2, dependence=INDEPENDENT)
    assert clean.modelled == pytest.approx(clean.independent, rel=0.01)
    own = zero_errors(300, instances=3, metric="frr", dependence=INDEPENDENT)
    assert own.modelled == pytest.approx(3 / 900, rel=0.02)
    assert own.disjoint == pytest.approx(3 / 300, rel=0.02)


def test_planning_for_no_error_at_all() -> None:
    made = plan(far=0.0, upper=0.05, method="wilson")
    assert wilson(0.0, made.n_identities // 2, 0.05)[1] <= 0.05
    assert wilson(0.0, (made.n_identities - 3) // 2, 0.05)[1] > 0.05
    assert made.expected.no_error == 1.0
    own = plan(frr=0.0, upper=0.05, method="wilson")
    assert wilson(0.0, own.n_identities, 0.05)[1] <= 0.05 < wilson(0.0, own.n_identities - 2, 0.05)[1]


def test_no_error_at_all_by_the_default_interval() -> None:
    """`plan`, `zero_errors` and the latent model of such data give one bound, never below that of the rule of 3."""
    made = plan(far=0.0, upper=0.01, instances=2)
    assert made.method == "latent"
    assert made.clean.default <= 0.01 < zero_errors(made.n_identities - 2, instances=2).default
    assert made.clean.default == zero_errors(made.n_identities, instances=2).default
    for people in (20, 100):
        clean = zero_errors(people, instances=1, dependence=INDEPENDENT)
        assert clean.default >= clean.independent * (1.0 - 1e-12)


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
@pytest.mark.parametrize("people", [3, 9, 12])
def test_no_error_at_all_of_one_comparison_per_person(people: int) -> None:
    """`zero_errors` says what `evaluate` says: nothing is shared, and so nothing is assumed."""
    owner = np.repeat(np.arange(people), 2)
    first, second = np.triu_indices(owner.size, k=1)
    score = np.random.default_rng(0).standard_normal(first.size)
    data = Comparisons(owner[first], owner[second], score, instance_a=first, instance_b=second)
    bound = evaluate(data, -99.0).frr.upper_bound()
    clean = zero_errors(people, instances=2, metric="frr")
    assert clean.default == pytest.approx(bound, rel=1e-9)
    assert bound >= clean.independent * (1.0 - 1e-12)


def test_planned_limits_are_those_of_the_model() -> None:
    """The limits read from the grid are within 3% of those that the model gives for the same errors and variance."""
    from dataclasses import replace

    from matchbound.planning.latent_limits import planned
    from matchbound.stats.latent.model import OwnVariance

    made = planned("far", 120, 2, MIDDLE)
    rng = np.random.default_rng(5)
    p = np.exp(rng.normal(np.log(0.01), 0.3, 12))
    v = p**2 * np.exp(rng.normal(np.log(0.05), 0.5, 12))
    low, high = made.limits(p, v, 0.025)
    wide = made._estimated(p * made.model.comparisons)
    for k in range(12):
        x = p[k] * made.model.comparisons
        own = OwnVariance(np.array([x]), np.array([v[k] * 120 * 119 / (118 * 117) / p[k] ** 2]))
        exact = replace(made.model, own=own).limit([x, x], made.model.deviate(0.95), [False, True])
        expected = np.exp(np.log(p[k]) + (np.log(exact) - np.log(p[k])) * wide[k])
        assert (low[k], high[k]) == pytest.approx(tuple(expected), rel=0.03)


def test_the_default_plan_asks_for_more_and_keeps_its_chance() -> None:
    careful, plain = plan(far=1e-3, upper=2.5e-3), plan(far=1e-3, upper=2.5e-3, method="wilson")
    assert careful.n_identities > plain.n_identities
    for made in (careful, plain):
        assert made.expected.chance >= made.target.power
    with pytest.raises(UsageError, match="not both"):
        plan(far=1e-3, upper=2e-3, pilot=MIDDLE, dependence=MIDDLE)


def test_identities_for_comparisons() -> None:
    for m in (1, 3):
        for wanted in (1, 10, 12_345):
            n = identities_for("far", wanted, m)
            assert n_comparisons("far", n, m) >= wanted
            assert n == 2 or n_comparisons("far", n - 1, m) < wanted
    assert identities_for("frr", 100, 3) == 34


# ---- arguments, pictures, command line


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"width": 0.1}, "one of far and frr"),
        ({"far": 0.1, "frr": 0.1, "width": 0.1}, "one of far and frr"),
        ({"far": 0.1}, "one of width"),
        ({"far": 0.1, "width": 0.1, "upper": 0.2}, "one of width"),
        ({"far": 0.1, "upper": 0.05}, "upper must lie between"),
        ({"far": 1.5, "width": 0.1}, "far must be a rate"),
        ({"far": 0.1, "width": 2.0}, "width"),
        ({"far": 0.1, "width": 0.1, "level": 95}, "level"),
        ({"far": 0.1, "width": 0.1, "power": 1.0}, "power"),
        ({"frr": 0.1, "width": 0.1, "instances": 1}, "instances must be at least 2"),
        ({"far": 0.1, "width": 0.1, "instances": 2.5}, "whole number"),
        ({"far": 0.1, "width": 0.1, "instances": 1000}, "up to 100"),
        ({"far": 0.1, "width": 0.1, "claim": 7}, "claim"),
    ],
)
def test_arguments(asked: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan(**asked)  # type: ignore[arg-type]


@pytest.mark.slow
def test_pictures() -> None:
    from matchbound.planning.plots import cost_figure

    made = plan(frr=0.1, width=0.1, dependence=MIDDLE)
    figure = cost_figure(made)
    left, right = figure.axes
    people = left.lines[0].get_xydata()
    curve = made.cost_curve()
    assert np.array_equal(people, np.column_stack([curve.instances, curve.n_identities]))
    assert right.lines[0].get_ydata()[-1] > right.lines[0].get_ydata()[0]


@pytest.mark.slow
def test_command_plan(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked = {"frr": 0.05, "width": 0.08, "instances": 3, "claim": 0.15}
    words = ["plan", "--frr", "0.05", "--width", "0.08", "--instances", "3", "--claim", "0.15"]
    assert main([*words, "--format", "json", "--plot", str(tmp_path / "plan.svg")]) == 0
    document = json.loads(capsys.readouterr().out)
    made = plan(**asked)
    assert document["results"][0]["identities"] == made.n_identities
    assert document["results"][0]["claim_power"] == made.claim_power
    assert [r["what"] for r in document["results"]][-2:] == ["rule of 3", "rule of 30"]
    assert (tmp_path / "plan.svg").read_text().lstrip().startswith("<?xml")
    assert main(words) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"people {made.n_identities} instances of each 3" in shown
    assert main(["plan", "--far", "0.1", "--width", "0.1", "--design-effect", "2", "--pilot", "x.csv"]) == 2
    assert "not both" in capsys.readouterr().err


def test_command_plan_from_a_pilot(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The command and the function agree, and the words say that the pilot's own uncertainty is in the plan."""
    pilot = model_embeddings(40, 3, np.random.default_rng(4))
    path = tmp_path / "pilot.npz"
    np.savez(path, embeddings=pilot.vectors, identity=pilot.identities[pilot.codes])
    asked = {"far": 0.05, "width": 0.06}
    words = ["plan", "--far", "0.05", "--width", "0.06", "--pilot", str(path)]
    assert main([*words, "--format", "json"]) == 0
    (first, *_) = json.loads(capsys.readouterr().out)["results"]
    made = plan(**asked, pilot=pilot)
    assert first["identities"] == made.n_identities
    assert first["correlation_doubt"] == pytest.approx(made.doubt)
    assert first["chance"] == pytest.approx(made.expected.chance)
    assert made.expected.chance >= 0.95
    assert plan(**asked, pilot=pilot).expected == made.expected, "the same answer twice"
    assert main(words) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "pilot of 40 identities, off by a factor of" in shown
    assert "The chance is an average over what the correlations may be" in shown


def test_command_protocol(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = model_embeddings(12, 3, np.random.default_rng(1))
    source = tmp_path / "faces.npz"
    np.savez(source, embeddings=data.vectors, identity=data.codes)
    target = tmp_path / "protocol.csv"
    words = ["protocol", str(source), "--budget", "30"]
    assert main([*words, "--output", str(target), "--scores", "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)["results"][0]
    assert (record["comparisons"], record["fewest_visits"], record["most_visits"]) == (30, 5, 5)
    lines = target.read_text().splitlines()
    assert len(lines) == 31
    assert lines[0].replace('"', "") == "id_a,instance_a,id_b,instance_b,score"
    assert main([*words, "--output", "protocol.txt"]) == 2
    assert "--output" in capsys.readouterr().err


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), sizes=st.lists(st.integers(1, 3), min_size=3, max_size=5))
def test_sharing_an_instance_is_told_from_sharing_a_person(seed: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    u, v = np.triu_indices(owner.size, k=1)
    kept = (owner[u] != owner[v]) & (rng.random(u.size) < 0.8)
    u, v = u[kept], v[kept]
    assume(u.size > 2)
    a, b, d = owner[u], owner[v], rng.normal(size=u.size)
    slow = naive_plan.products_by_sharing(a.tolist(), b.tolist(), u.tolist(), v.tolist(), d.tolist())
    both = np.tile(d, 2)
    near = _products(np.concatenate([u, v]), np.concatenate([b, a]), both, len(sizes))
    all_of = _products(np.concatenate([a, b]), np.concatenate([b, a]), both, len(sizes))
    assert near == pytest.approx(slow["instance"], abs=1e-9)
    assert (all_of[0] - near[0], all_of[1] - near[1]) == pytest.approx(slow["person"], abs=1e-9)


def test_one_person_with_many_instances_does_not_decide() -> None:
    """A pilot in which one person has 60 instances gives about the correlations of one in which nobody has."""
    rng = np.random.default_rng(12)
    even = model_embeddings(120, 4, rng)
    extra = rng.exponential(1.0, 128) + rng.normal(0.0, np.sqrt(5.0), (60, 128))
    uneven = Embeddings(np.concatenate([even.vectors, extra]), np.concatenate([even.codes, np.full(60, 999)]))
    one, two = dependence_of_pilot(even).at(4), dependence_of_pilot(uneven).at(4)
    assert two.shared == pytest.approx(one.shared, abs=0.015)
    assert two.genuine == pytest.approx(one.genuine, abs=0.1)
    listed = uneven.comparisons()
    three = dependence_of_pilot(listed).at(4)
    assert three.shared == pytest.approx(one.shared, abs=0.015)


@pytest.mark.slow
def test_command_line_from_a_list_of_people(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from matchbound.cli import main

    people = tmp_path / "people.csv"
    people.write_text("identity,instance\n" + "".join(f"p{i},img{k}\n" for i in range(6) for k in range(2)))
    target = tmp_path / "protocol.csv"
    assert main(["protocol", str(people), "--budget", "9", "--output", str(target)]) == 0
    assert "9" in capsys.readouterr().out
    lines = target.read_text().splitlines()
    assert len(lines) == 10
    assert "img" in lines[1]
    assert main(["protocol", str(people), "--budget", "9", "--scores", "--output", str(target)]) == 2
    assert "needs embeddings" in capsys.readouterr().err
    assert main(["plan", "--frr", "0.05", "--width", "0.2", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("what,metric,")
    assert main(["plan", "--far", "0.05"]) == 2


def test_a_design_effect_beyond_all_data_is_refused() -> None:
    with pytest.raises(UsageError, match=r"1e\+308 is beyond all data"):
        plan(far=0.1, upper=0.2, dependence=1e308)


@pytest.mark.parametrize("metric", ["far", "frr"])
def test_limits_of_draws_in_which_everything_errs(metric: Any) -> None:
    """A warning of numpy would reach the user, and a limit that is no number would count as one that was missed."""
    limits = planned(metric, 5, 3, Dependence(0.1, 0.4, 0.4, "test"))
    estimate = np.array([0.4, 0.9, 1.0])
    low, high = limits.limits(estimate, np.full(3, 0.01), 0.025)
    assert np.all(np.isfinite(low))
    assert np.all(np.isfinite(high))
    assert np.all((low <= estimate) & (estimate <= high))


def test_a_bound_that_anything_meets_needs_the_fewest_people() -> None:
    """A bound of low level lies below the rate; the search begins where it ends, not at the most people."""
    target = Target("far", 0.1, "upper", 0.2, 0.1, 0.5, "latent")
    assert _first_guess(target, UNKNOWN, 2) == 4


def test_a_plan_is_made_from_few_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    """How much a plan computes, not how long it takes: a design effect in the hundreds is no reason for seconds."""
    import scipy.special

    from matchbound.planning.search import smallest
    from matchbound.stats.latent import model, probabilities

    counts = {"tails": 0, "inverses": 0}
    tail, inverse = probabilities.count_tail, scipy.special.gammaincinv

    def counted_tail(errors: Any, *others: Any) -> Any:
        counts["tails"] += errors.size
        return tail(errors, *others)

    def counted_inverse(*arguments: Any) -> Any:
        counts["inverses"] += np.broadcast(*arguments).size
        return inverse(*arguments)

    monkeypatch.setattr(model, "count_tail", counted_tail)
    monkeypatch.setattr(scipy.special, "gammaincinv", counted_inverse)
    smallest.cache_clear()
    with pytest.warns(MatchboundWarning, match="differ strongly"):
        made = plan(far=0.1, upper=0.2, dependence=1000.0)
    assert made.expected.chance >= 0.95
    assert 0 < counts["tails"] < 6000
    assert counts["inverses"] < 25_000
