"""Plans: draws of what data will show, correlations and their doubt, the promise, rules of thumb, the command line."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

import matchbound as mb
import naive_plan
from conftest import run_json
from matchbound.cli import main
from matchbound.errors import MatchboundWarning, UsageError
from matchbound.planning.check import lowest_rates
from matchbound.planning.plan import identities_for, plan
from matchbound.planning.study import (
    NOWHERE,
    Draws,
    Study,
    Target,
    balanced,
    design_effect,
    known_from,
    n_comparisons,
    predictive,
)
from matchbound.stats.intervals import effective_n, wilson
from matchbound.stats.latent.fit import all_pairs, fit_far, fit_genuine
from matchbound.stats.latent.model import Clusters, LatentSettings, OwnVariance

MIDDLE = (0.06, 0.60)
"""(ρ_s, ρ_w) of a matcher."""


def latent_scores(n: int, instances: int, rho: tuple[float, float], rng: np.random.Generator) -> mb.Comparisons:
    """Impostor comparisons whose scores are the latent normals themselves."""
    first, second = np.triu_indices(n, k=1)
    effect = rng.standard_normal(n)
    pair = np.sqrt(rho[0]) * (effect[first] + effect[second])
    pair += np.sqrt(rho[1] - 2 * rho[0]) * rng.standard_normal(first.size)
    score = pair[:, None] + np.sqrt(1 - rho[1]) * rng.standard_normal((first.size, instances**2))
    a, b = (np.repeat(side, instances**2) for side in (first, second))
    return mb.Comparisons(a, b, score.reshape(-1))


def model_embeddings(size: int, instances: int, seed: int) -> mb.Embeddings:
    return mb.SyntheticModel(sizes=instances).sample(size, rng=seed)


@pytest.mark.parametrize(
    ("p", "n", "m", "rho"),
    [(0.05, 40, 2, (0.12, 0.75)), (0.1, 30, 5, (0.0, 0.0)), (0.02, 60, 1, MIDDLE), (0.3, 25, 3, MIDDLE)],
)
def test_draws_of_far_agree_with_simulated_data(p: float, n: int, m: int, rho: tuple[float, float]) -> None:
    """Quantiles of the interval's width and upper limit against 600 data sets that are simulated in full.

    The share of simulated widths below a predicted quantile has a Monte Carlo error of at most 2%.
    """
    rng = np.random.default_rng([3, n])
    seen = predictive("far", p, n, m, rho, n_draws=6000, rng=rng)
    low, high = seen.wilson(0.025)
    first, second = np.triu_indices(n, k=1)
    widths, uppers, own = [], [], []
    for _ in range(600):
        effect = rng.standard_normal(n)
        score = np.sqrt(rho[0]) * (effect[first] + effect[second]) + ndtri(p)
        score += np.sqrt(rho[1] - 2 * rho[0]) * rng.standard_normal(first.size)
        errors = rng.binomial(m * m, ndtr(score / np.sqrt(1 - rho[1])))
        estimate = errors.sum() / (m * m * first.size)
        d = errors - estimate * m * m
        r = np.bincount(first, d, n) + np.bincount(second, d, n)
        v = (4 * (r * r).sum() - 4 * (d * d).sum()) / (2.0 * m * m * first.size) ** 2
        limits = wilson(estimate, effective_n(estimate, v, n // 2), 0.025)
        widths.append(limits[1] - limits[0])
        uppers.append(limits[1])
        factor = n * (n - 1) / ((n - 2) * (n - 3))
        floor = 4 * (d * d).sum() / (2.0 * m * m * first.size) ** 2
        own.append(max(factor * v, floor) / estimate**2 if estimate else 0.0)
    for foreseen, drawn in ((high - low, widths), (high, uppers), (seen.relative, own)):
        for level in (0.5, 0.8, 0.95):
            below = np.mean(np.array(drawn) <= np.quantile(foreseen, level))
            assert below == pytest.approx(level, abs=0.07)


def test_draws_of_frr_have_the_moments_of_the_model() -> None:
    seen = predictive("frr", 0.05, 100, 5, (0.0, 0.35), n_draws=20_000, rng=np.random.default_rng(4))
    assert seen.estimate.mean() == pytest.approx(0.05, rel=0.02)
    effect = 1 + 9 * (naive_plan.both_err(0.05, 0.35) - 0.05**2) / (0.05 * 0.95)
    true = effect * 0.05 * 0.95 / 1000
    assert seen.estimate.var() == pytest.approx(true, rel=0.05)
    assert seen.variance.mean() == pytest.approx(true * 0.99, rel=0.02), "the plug-in is G/(G−1) low"
    assert seen.unbiased.mean() == pytest.approx(true, rel=0.02)


def test_wilson_of_draws_is_the_interval_of_the_results() -> None:
    seen = predictive("far", 0.003, 30, 1, (0.14, 0.75), n_draws=200, rng=np.random.default_rng(1))
    assert (seen.estimate == 0.0).any()
    alone = [wilson(p, effective_n(p, v, 15), 0.05) for p, v in zip(seen.estimate, seen.variance, strict=True)]
    np.testing.assert_allclose(np.transpose(seen.wilson(0.05)), alone)


@settings(max_examples=15)
@given(sizes=st.lists(st.integers(1, 4), min_size=3, max_size=6), seed=st.integers(0, 1000))
def test_the_model_of_all_pairs_is_that_of_a_fit(sizes: list[int], seed: int) -> None:
    """Design, clusters and effective identities are those of data with as many instances, complete and uneven."""
    rng = np.random.default_rng(seed)
    data = mb.Embeddings(rng.standard_normal((sum(sizes), 3)), np.repeat(np.arange(len(sizes)), sizes))
    counted = mb.tally(data, [0.0], pairs=True)
    instances = Clusters(*(part.astype(float) for part in np.unique(sizes, return_counts=True)))
    for metric in ("far", "frr"):
        if metric == "frr" and max(sizes) < 2:
            continue
        fitted = fit_far(counted) if metric == "far" else fit_genuine(counted.genuine)
        made = all_pairs(metric, instances, (0.1, 0.5))
        assert made.design == fitted.design
        assert made.effective_identities == pytest.approx(fitted.effective_identities)
        assert made.clusters.size.tolist() == fitted.clusters.size.tolist()
        assert made.clusters.count.tolist() == fitted.clusters.count.tolist()


def test_design_effect_is_the_variance_of_simulated_data() -> None:
    """Against 1,500 literal data sets: the Monte Carlo error of a variance is 4–6%."""
    rng = np.random.default_rng(2)
    n, m, rho = 10, 2, (0.1, 0.6)
    estimates = [naive_plan.latent_table(0.2, n, m, *rho, rng).sum() / (m * m * n * (n - 1)) for _ in range(1500)]
    alone = 0.2 * 0.8 / n_comparisons("far", n, m)
    assert np.var(estimates) / alone == pytest.approx(design_effect("far", 0.2, n, m, rho), rel=0.2)
    assert design_effect("far", 0.01, 50, 3, (0.0, 0.0)) == pytest.approx(1.0)
    assert design_effect("frr", 0.01, 50, 3, (0.0, 0.0)) == pytest.approx(1.0)


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("metric", ["far", "frr"])
def test_scenarios_have_the_moments_of_the_models_error(metric: Any, rate: float) -> None:
    """Three points with the mean and the variance of the correlation, by the formulas of the page on the interval."""
    data = latent_scores(60, 2, MIDDLE, np.random.default_rng(1)) if metric == "far" else model_embeddings(60, 5, 1)
    with np.errstate(all="ignore"):
        known = known_from(metric, data, None)
    model = known.model
    expected = naive_plan.correlation_at(
        metric, rate, model.correlations.rho_identity, model.correlations.rho_pair, model.effective_identities,
        1 + model.design.within / model.comparisons,
    )  # fmt: skip
    found = known.scenarios(rate, 100, 2)
    which = 0 if metric == "far" else 1
    weight = np.array([scenario.weight for scenario in found])
    true = np.array([scenario.true[which] for scenario in found])
    assert weight.sum() == pytest.approx(1.0)
    assert true[0] == pytest.approx(expected[0])
    if min(true) > 0.0 and max(true) < 0.49:
        assert np.sqrt(weight @ (true - true[0]) ** 2) == pytest.approx(expected[1])
    nothing = known_from(metric, None, None)
    seen = naive_plan.correlation_at(metric, rate, 0.1, 0.5, 10.0, 3.0 if metric == "frr" else 9.0)
    assert nothing.scenarios(rate, 100, 2)[0].true[which] == pytest.approx(min(seen[0], 0.49 if metric == "far" else 1))


def test_the_study_sees_its_own_correlations_and_the_assumed_ones() -> None:
    known = known_from("far", None, None, LatentSettings(assumed_identity=0.05, assumed_pair=0.3, assumed_people=7.0))
    scenario, *_ = known.scenarios(0.1, 50, 2)
    assert scenario.pooled == (0.05, 0.3)
    other = replace(scenario, pooled=(0.2, 0.6))
    seen = known.study(other, 50, 2).correlations
    assert seen.rho_identity == pytest.approx((50 * 0.2 + 7 * 0.05) / 57)
    assert seen.rho_pair == pytest.approx((50 * 0.6 + 7 * 0.3) / 57)


def test_limits_of_draws_are_those_of_the_model() -> None:
    """Each draw alone, with its own variance in the model, as `evaluate` has it."""
    model = balanced("far", 60, 2, MIDDLE)
    part = predictive("far", 0.01, 60, 2, MIDDLE, n_draws=20, rng=np.random.default_rng(5))
    target = Target("far", 0.01, "width", 0.02, 0.95, 0.95)
    low, high = Draws(target, ((part, model),)).limits(0.025)
    for k in range(20):
        x = float(part.estimate[k] * model.comparisons)
        own = OwnVariance(np.array([max(x, 1.0)]), np.array([part.relative[k]]))
        alone = replace(model, own=own).limits(x, 0.95)
        assert (low[k], high[k]) == pytest.approx((alone.low, alone.high), rel=2e-3, abs=1e-9)


@pytest.mark.parametrize("metric", ["far", "frr"])
def test_limits_of_draws_in_which_nearly_everything_errs(metric: Any) -> None:
    """A warning of numpy would reach the user, and a limit that is NaN would count as one that was missed."""
    study = Study(Target(metric, 0.9, "width", 0.5, 0.95, 0.95), known_from(metric, None, None), 3)
    low, high = study.draws(5, 200).limits(0.025)
    assert (low <= high).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
@pytest.mark.parametrize("asked", [{"far": 0.05, "width": 0.06}, {"far": 0.02, "upper": 0.05}])
def test_plan_keeps_its_promise(asked: dict[str, float]) -> None:
    """Data of the model at the planned size, through `evaluate`: 95% promised, Monte Carlo error 3%.

    On real data: docs/studies/plan-real.csv.
    """
    made = plan(**asked, settings=LatentSettings(assumed_identity=MIDDLE[0], assumed_pair=MIDDLE[1]))
    rng = np.random.default_rng(11)
    met = []
    for _ in range(60):
        data = latent_scores(made.n_identities, 2, MIDDLE, rng)
        rate = mb.evaluate(data, float(-ndtri(made.target.rate))).far
        width = rate.interval().high - rate.interval().low if "width" in asked else rate.upper_bound()
        met.append(width <= made.target.value)
    assert np.mean(met) >= 0.88


def test_plan_is_the_smallest_that_does() -> None:
    made = plan(far=0.01, width=0.02)
    assert made.expected.chance >= 0.95
    assert made.at(int(made.n_identities * 0.85)).chance < 0.95
    assert made.at(made.n_identities) == made.expected, "the same seed gives the same draws"
    assert made.method == "latent"


def test_more_dependence_needs_more_people() -> None:
    asked: dict[str, Any] = {"far": 0.01, "width": 0.01, "method": "wilson"}
    few, many = (plan(**asked, design_effect=effect) for effect in (1.0, 20.0))
    assert few.n_identities < many.n_identities
    assert few.expected.design_effect == pytest.approx(1.0)
    assert many.expected.effective_n * 20.0 == pytest.approx(many.comparisons, rel=0.01)
    weak = plan(**asked, settings=LatentSettings(assumed_identity=0.02))
    assert weak.n_identities < plan(**asked).n_identities


def test_the_chance_of_a_pilots_plan_is_the_average_over_what_may_be() -> None:
    known = known_from("far", latent_scores(40, 2, MIDDLE, np.random.default_rng(3)), None)
    target = Target("far", 0.01, "width", 0.02, 0.95, 0.95, method="wilson")
    study = Study(target, known, 2, seed=3)
    each = [Draws(target, (part,)).met() for part in study.draws(80).parts]
    mixed = study.chance(80)
    weights = [scenario.weight for scenario in study.scenarios(80)]
    assert mixed == pytest.approx(np.dot(weights, each), abs=2e-3)
    assert each[1] < mixed < each[2], "stronger correlations meet the goal less often"
    certain = replace(study, known=replace(known, model=replace(known.model, shown_by=math.inf)))
    assert study.smallest() > certain.smallest(), "a pilot's own uncertainty costs people"


def test_pilots_of_several_kinds() -> None:
    data = model_embeddings(60, 4, 9)
    rates = mb.evaluate(data, [1.1, 1.2])
    asked: dict[str, Any] = {"far": 0.05, "width": 0.05, "method": "wilson"}
    fitted = [known_from("far", pilot, None) for pilot in (data, data.comparisons(), rates[0], rates[0].far)]
    assert len({(one.model.correlations.rho_identity, one.model.correlations.rho_pair) for one in fitted}) == 1
    made = plan(**asked, pilot=data)
    assert made.study.known.source == "pilot of 60 identities"
    assert made.doubt > 0.0
    small = model_embeddings(12, 4, 9)
    with pytest.warns(MatchboundWarning) as caught:
        unsure = plan(**asked, pilot=small)
    assert [note.message.args[0].code for note in caught] == ["few-identities"]
    assert unsure.doubt > made.doubt
    with pytest.raises(UsageError, match="not both"):
        plan(**asked, pilot=data, design_effect=3.0)
    with pytest.raises(UsageError, match="far is planned"):
        plan(**asked, pilot=rates[0].frr)
    with pytest.raises(UsageError, match="got str"):
        plan(**asked, pilot="much")
    for wrong in (0.5, float("nan"), 1e308):
        with pytest.raises(UsageError, match="design_effect"):
            plan(**asked, design_effect=wrong)


def test_instances_buy_people_up_to_a_point() -> None:
    made = plan(frr=0.05, width=0.05, method="wilson")
    curve = made.cost_curve((2, 3, 5, 10))
    assert [row["instances"] for row in curve] == [2, 3, 5, 10]
    assert curve[0]["identities"] == made.n_identities
    assert (np.diff([row["identities"] for row in curve]) < 0).all()
    assert all(row["comparisons"] == n_comparisons("frr", row["identities"], row["instances"]) for row in curve)


def test_claims() -> None:
    made = plan(far=0.01, width=0.015, claim=0.03, method="wilson")
    assert made.claim_power == made.power(0.03)
    assert made.power(0.012) < made.power(0.02) <= made.power(0.03)
    only = plan(far=0.01, claim=0.03, method="wilson")
    assert only.target.goal == "upper"
    assert only.claim_power == pytest.approx(0.95, abs=0.02)
    assert plan(far=0.1, upper=0.2, level=0.1, power=0.5).n_identities == 4, "such a bound lies below the rate"


def test_rules_of_three_and_thirty() -> None:
    made = plan(far=1e-3, upper=2e-3)
    three, thirty = made.rules
    assert (three["comparisons"], thirty["comparisons"]) == (1500, 30_000)
    assert n_comparisons("far", three["identities"], 2) >= 1500 > n_comparisons("far", three["identities"] - 1, 2)
    assert three["chance"] < 0.05, "28 people cannot show it"
    assert three["identities"] < thirty["identities"] < made.n_identities


def test_174_people() -> None:
    """All comparisons of 174 people, in both orders, are 30,102: the rule of 3 gives 1e-4; only 87 share nobody."""
    clean = plan(far=0.0, upper=0.1).without_errors(174, instances=1)
    assert clean["independent"] == pytest.approx(3 / 15_051, rel=0.01), "in both orders each comparison counts twice"
    assert clean["disjoint"] == pytest.approx(1 - 0.05 ** (1 / 87))
    assert clean["independent"] <= clean["default"] < clean["disjoint"]
    assert clean["wilson"] == pytest.approx(wilson(0.0, 87, 0.05)[1])


def test_planning_for_no_error_at_all() -> None:
    made = plan(far=0.0, upper=0.05, method="wilson")
    assert wilson(0.0, made.n_identities // 2, 0.05)[1] <= 0.05
    assert wilson(0.0, (made.n_identities - 3) // 2, 0.05)[1] > 0.05
    assert made.expected.no_error == 1.0
    latent = plan(far=0.0, upper=0.01)
    assert latent.without_errors()["default"] <= 0.01
    assert latent.at(latent.n_identities - 2).chance < 0.95, "the correlations that may be count too"


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
@pytest.mark.parametrize(("people", "instances"), [(2, 1), (3, 2), (9, 2), (12, 2), (40, 3)])
def test_the_bound_without_errors_is_that_of_evaluate_on_decisions(people: int, instances: int) -> None:
    """Where the data do not show correlations, both use the assumed ones: one function answers both."""
    owner = np.repeat(np.arange(people), instances)
    first, second = np.triu_indices(owner.size, k=1)
    data = mb.Comparisons(
        owner[first], owner[second], np.zeros(first.size), instance_a=first.tolist(), instance_b=second.tolist()
    )
    lowest = lowest_rates(data, 0.95)
    for metric, threshold in (("far", 1.0), ("frr", -1.0)):
        if metric == "frr" and instances < 2:
            assert lowest["frr"] is None
            continue
        bound = getattr(mb.evaluate(data, threshold), metric).upper_bound()
        clean = plan(upper=0.5, **{metric: 0.0}).without_errors(people, instances)
        assert clean["default"] == pytest.approx(bound, rel=1e-9)
        assert lowest[metric] == bound
        assert bound >= clean["independent"]


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_check_does_not_promise_more_than_evaluate() -> None:
    """One person with most of the images: FRR rests on that person, in both."""
    rng = np.random.default_rng(0)
    sizes = [60, *[2] * 30]
    data = mb.Embeddings(rng.standard_normal((sum(sizes), 8)), np.repeat(np.arange(31), sizes))
    promised = lowest_rates(data, 0.95)
    for metric, threshold in (("far", NOWHERE), ("frr", -NOWHERE)):
        bound = getattr(mb.evaluate(data, threshold), metric).upper_bound()
        assert promised[metric] == pytest.approx(bound, rel=1e-6)
    assert promised["frr"] > 0.1
    single = mb.Embeddings(rng.standard_normal((6, 8)), np.arange(6))
    assert lowest_rates(single, 0.95)["frr"] is None


def test_identities_for_comparisons() -> None:
    for m in (1, 3):
        for wanted in (1, 10, 12_345):
            n = identities_for("far", wanted, m)
            assert n_comparisons("far", n, m) >= wanted
            assert n == 2 or n_comparisons("far", n - 1, m) < wanted
    assert identities_for("frr", 100, 3) == 34


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"width": 0.1}, "one of far and frr"),
        ({"far": 0.1, "frr": 0.1, "width": 0.1}, "one of far and frr"),
        ({"far": 0.1}, "one of width"),
        ({"far": 0.1, "width": 0.1, "upper": 0.2}, "one of width"),
        ({"far": 0.1, "upper": 0.05}, "upper must lie between"),
        ({"far": 1.5, "width": 0.1}, "far must lie between"),
        ({"far": "1%", "width": 0.1}, "far must lie between"),
        ({"far": 0.1, "width": 2.0}, "width"),
        ({"far": 0.1, "width": 0.1, "level": 95}, "level"),
        ({"far": 0.1, "width": 0.1, "power": 1.0}, "power"),
        ({"frr": 0.1, "width": 0.1, "instances": 1}, "2 to 100 per person"),
        ({"far": 0.1, "width": 0.1, "instances": 2.5}, "whole number"),
        ({"far": 0.1, "width": 0.1, "instances": 1000}, "1 to 100 per person"),
        ({"far": 0.1, "width": 0.1, "claim": 7}, "claim"),
        ({"far": 0.1, "width": 0.1, "method": "vertex"}, "vertex"),
    ],
)
def test_wrong_arguments(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan(**asked)


def test_pictures() -> None:
    made = plan(frr=0.05, width=0.2, method="wilson")
    left, right = made.plot()
    assert left.get_lines()[0].get_label() == "people"
    assert made.n_identities in right.get_lines()[0].get_xdata()


def test_command_plan(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The command and the function agree, and the text has the doubt that a pilot leaves."""
    pilot = model_embeddings(40, 3, 4)
    path = tmp_path / "pilot.npz"
    np.savez(path, embeddings=pilot.vectors, identity=pilot.codes)
    words = f"plan --far 0.05 --width 0.06 --pilot {path} --similarity euclidean --method wilson".split()
    first, *others = run_json(capsys, *words)["results"]
    made = plan(far=0.05, width=0.06, pilot=pilot, method="wilson")
    assert first["identities"] == made.n_identities
    assert first["correlation_doubt"] == pytest.approx(made.doubt)
    assert first["chance"] == pytest.approx(made.expected.chance)
    assert {record["what"] for record in others} == {"cost", "rule of 3", "rule of 30"}
    assert main([*words, "--plot", str(tmp_path / "plan.png")]) == 0
    assert "(pilot of 40 identities)" in " ".join(capsys.readouterr().out.split())
    assert (tmp_path / "plan.png").stat().st_size > 10_000


def test_command_protocol(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = model_embeddings(12, 3, 1)
    source, people, target = (str(tmp_path / name) for name in ("faces.npz", "people.csv", "protocol.csv"))
    np.savez(source, embeddings=data.vectors, identity=data.codes)
    (record,) = run_json(capsys, "protocol", source, "--budget", "30", "--output", target, "--scores")["results"]
    assert (record["comparisons"], record["fewest_visits"], record["most_visits"]) == (30, 5, 5)
    head, *lines = Path(target).read_text().splitlines()
    assert len(lines) == 30
    assert head.replace('"', "") == "id_a,instance_a,id_b,instance_b,score"
    assert main(["protocol", source, "--budget", "30", "--output", "protocol.txt"]) == 2
    Path(people).write_text("identity,instance\n" + "".join(f"p{i},img{k}\n" for i in range(6) for k in range(2)))
    assert main(["protocol", people, "--budget", "9", "--output", target]) == 0
    assert "img" in Path(target).read_text().splitlines()[1]
    assert main(["protocol", people, "--budget", "9", "--scores", "--output", target]) == 2
