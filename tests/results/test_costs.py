"""Detection costs, Cllr and mean losses: golden values, literal twins, exhaustive searches, limits, coverage."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import matchbound as mb
import naive_compare
import naive_costs as naive
from conftest import DATA, golden_table
from matchbound import results
from matchbound.calls.losses import mean_loss
from matchbound.results.costs import PRESETS
from matchbound.stats import losses
from matchbound.stats.budget import ANGLES, RateModels, integrated_limits
from matchbound.stats.costs import calibrate, capped
from matchbound.stats.dyadic import dyadic_sums
from strategies import Row, comparisons, tables

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")

EXPECTED = json.loads((DATA / "metrics.json").read_text())
PRIORS = (0.01, 0.05)


def close(value: float, target: float) -> bool:
    return abs(value - target) <= 1e-9 * abs(target) + 1e-15


def as_ratios(data: mb.Comparisons) -> mb.Comparisons:
    """The golden table on the scale that its costs were made on."""
    return mb.Comparisons(data.identities[data.a], data.identities[data.b], 12.0 * (data.score - 0.45))


@pytest.fixture(scope="module")
def curves() -> tuple[results.RocCurve, results.RocCurve]:
    data = golden_table("larger")
    return mb.roc(data), mb.roc(as_ratios(data))


def golden_cases() -> list[tuple[str, float | None]]:
    return [(name, prior) for name in ("minDCF", "actDCF") for prior in PRIORS] + [("Cllr", None), ("minCllr", None)]


@pytest.mark.parametrize(("name", "prior"), golden_cases())
def test_golden(name: str, prior: float | None, curves: tuple[results.RocCurve, results.RocCurve]) -> None:
    target = EXPECTED[name if prior is None else f"{name}@{prior}"]
    plain, ratios = curves
    made = {
        "minDCF": lambda: plain.min_dcf(prior),
        "actDCF": lambda: ratios.actual_dcf(prior),
        "Cllr": ratios.cllr,
        "minCllr": plain.min_cllr,
    }[name]()
    assert close(made.estimate, target["value"])
    assert close(made.variance, target["variance"])
    limits = made.interval("log-t")
    assert close(limits.low, target["log_t"][0])
    assert close(limits.high, target["log_t"][1])
    assert close(made.effective_identities, EXPECTED["effective_identities"])
    if "threshold" in target:
        assert made.threshold == target["threshold"]
    if "threshold_llr" in target:
        assert close(made.threshold, target["threshold_llr"])
    best = made.interval()
    assert best.low <= made.estimate <= best.high
    assert best.width > 0.0


@given(tables(max_rows=24), st.sampled_from([0.01, 0.3, 0.5, 0.9]), st.sampled_from([0.5, 1.0, 10.0]))
def test_costs_equal_their_twins(rows: list[Row], prior: float, miss: float) -> None:
    rows = [*rows, ("p0", "p0", 0.5), ("p0", "p1", 0.0)]
    curve = mb.roc(comparisons(rows))
    assert curve.min_dcf(prior, miss).estimate == pytest.approx(naive.min_cost(rows, prior, miss), rel=1e-12)
    least = curve.min_dcf(prior)
    assert least.variance == pytest.approx(naive.cost_variance(rows, least.threshold, prior), rel=1e-9, abs=1e-15)
    actual = curve.actual_dcf(prior)
    assert actual.threshold == pytest.approx(math.log((1 - prior) / prior))
    assert actual.estimate == pytest.approx(naive.cost(rows, actual.threshold, prior), rel=1e-12)
    assert actual.variance == pytest.approx(naive.cost_variance(rows, actual.threshold, prior), rel=1e-9, abs=1e-15)


@given(tables(max_rows=24))
def test_cllr_equals_its_twin(rows: list[Row]) -> None:
    rows = [*rows, ("p0", "p0", 0.5), ("p0", "p1", 0.0)]
    made = mb.roc(comparisons(rows)).cllr()
    assert made.estimate == pytest.approx(naive.cllr([(a == b, s) for a, b, s in rows]), rel=1e-12)
    assert made.variance == pytest.approx(naive.cllr_variance(rows), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_minima_equal_an_exhaustive_search(seed: int) -> None:
    """Every threshold, and every way to cut nine distinct scores into blocks."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(20, 60))
    rows = [(f"p{a}", f"p{b}", float(rng.integers(0, 9) + 2 * (a == b))) for a, b in rng.integers(0, 4, (size, 2))]
    curve = mb.roc(comparisons(rows))
    assert curve.min_cllr().estimate == pytest.approx(naive.min_cllr(rows), abs=1e-12)
    for prior in (0.01, 0.2, 0.6):
        assert curve.min_dcf(prior).estimate == pytest.approx(naive.min_cost(rows, prior), abs=1e-12)


def test_values_equal_those_of_scikit_learn() -> None:
    """minDCF from its ROC curve with every step, minCllr from its isotonic regression."""
    isotonic = pytest.importorskip("sklearn.isotonic")
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(3)
    genuine = rng.random(3000) < 0.2
    score = np.round(rng.normal(size=3000) + 1.5 * genuine, 2)
    people = rng.integers(0, 40, 3000)
    other = np.where(genuine, people, (people + rng.integers(1, 40, 3000)) % 40)
    curve = mb.roc(mb.Comparisons(people, other, score))
    far, tpr, _ = metrics.roc_curve(genuine, score, drop_intermediate=False)
    for prior in (0.01, 0.1):
        expected = float((prior * (1 - tpr) + (1 - prior) * far).min()) / min(prior, 1 - prior)
        assert curve.min_dcf(prior).estimate == pytest.approx(expected, rel=1e-12)
    share = isotonic.IsotonicRegression().fit_transform(score, genuine.astype(float))
    with np.errstate(divide="ignore"):
        llr = np.log(share) - np.log1p(-share) - math.log(genuine.sum() / (~genuine).sum())
    own, rest = np.logaddexp(0, -llr[genuine]), np.logaddexp(0, llr[~genuine])
    assert curve.min_cllr().estimate == pytest.approx((own.mean() + rest.mean()) / 2 / math.log(2), rel=1e-9)


def test_values_equal_those_of_llreval_and_lir() -> None:
    """Cllr and minCllr as llreval 0.0.3 and lir 1.3.1 give them for these scores, and Cllr as bob.measure 6.1.1."""
    known = [
        (0.3971168923769748, 0.29641448369319207),
        (0.4061933222574168, 0.3013599932772188),
        (0.3220054445693685, 0.1941059244837314),
        (0.43438541034878114, 0.3562638877534196),
        (0.3513580405531109, 0.24061788448705193),
    ]
    rng = np.random.default_rng(3)
    for k, (cllr, smallest) in enumerate(known):  # with and without ties
        genuine = np.round(rng.normal(2.0, 1.5, 60), 2 if k % 2 else 6)
        impostor = np.round(rng.normal(-2.0, 1.5, 700), 2 if k % 2 else 6)
        curve = mb.roc(mb.Comparisons.from_scores(genuine, impostor))
        assert curve.cllr().estimate == pytest.approx(cllr, rel=1e-13)
        assert curve.min_cllr().estimate == pytest.approx(smallest, rel=1e-13)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_calibration_increases_and_keeps_counts(cells: list[tuple[int, int]]) -> None:
    cells = [cell for cell in cells if sum(cell)]
    assume(any(g for g, _ in cells) and any(n for _, n in cells))
    genuine, impostor = (np.array(column) for column in zip(*cells, strict=True))
    made = calibrate(genuine, impostor)
    assert np.all(np.diff(made.llr) > 0.0)
    assert made.ends[-1] == len(cells)
    starts = np.concatenate([[0], made.ends[:-1]])
    assert np.array_equal(np.add.reduceat(genuine, starts), made.genuine)
    assert np.array_equal(np.add.reduceat(impostor, starts), made.impostor)
    assert np.all(np.isfinite(capped(made.llr, made.genuine, made.impostor)))


def test_reject_everything_is_not_certain() -> None:
    """minDCF = 1: no influence, and still an interval with a width; log-t refuses."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 12, (2, 400))
    made = mb.roc(mb.Comparisons(a, b, rng.normal(size=400) - 2.0 * (a == b))).min_dcf(0.01)
    assert made.estimate == 1.0
    limits = made.interval()
    assert limits.high == 1.0
    assert limits.low < 1.0
    assert "rejects everything" in made.notes[0]
    with pytest.raises(mb.DataError, match="has no width"):
        made.interval("log-t")


def test_no_error_at_all_has_an_upper_limit() -> None:
    rows = [(f"p{i}", f"p{i}", 5.0 + k) for i in range(12) for k in range(3)]
    rows += [(f"p{i}", f"p{j}", -5.0 - i / 20 - j) for i in range(12) for j in range(i)]
    curve = mb.roc(comparisons(rows))
    for made in (curve.min_dcf(0.05), curve.actual_dcf(0.05), curve.cllr(), curve.min_cllr()):
        limits = made.interval()
        assert 0.0 <= limits.low <= made.estimate < limits.high
    assert curve.min_dcf(0.05).estimate == 0.0
    assert curve.min_cllr().estimate == 0.0
    with pytest.raises(mb.DataError, match="has no width"):
        curve.min_dcf(0.05).interval("log-t")


class Shifted:
    """Limits that are easy to compute by hand: rates moved by a share of the deviate on the logit scale."""

    def __init__(self, comparisons: float, u: float) -> None:
        self.comparisons, self.u = comparisons, u

    def deviate(self, level: float, side: str) -> float:
        return self.u

    def limit(self, errors: np.ndarray, deviate: np.ndarray, upper: np.ndarray) -> np.ndarray:
        rate = (np.asarray(errors, dtype=float) + 0.5) / (self.comparisons + 1.0)
        moved = np.log(rate / (1.0 - rate)) + np.where(upper, 0.3, -0.3) * np.asarray(deviate)
        return 1.0 / (1.0 + np.exp(-moved))


@pytest.mark.parametrize("deviate", [1.5, 3.0])
def test_integrated_limits_equal_a_fine_sum(deviate: float) -> None:
    """Tables of limits at a few counts and deviates are as good as limits found one by one: within 1%."""
    rng = np.random.default_rng(5)
    own, other = np.sort(rng.normal(3.0, 2.0, 300)), np.sort(rng.normal(-3.0, 2.0, 5000))
    far, frr = Shifted(5000, deviate), Shifted(300, deviate)
    llr, genuine = np.concatenate([own, other]), np.repeat([1.0, 0.0], [300, 5000])
    order = np.argsort(llr)
    tables = RateModels(far, frr).tables(0.95, "two-sided")  # type: ignore[arg-type]
    low, high = integrated_limits(tables, llr[order], genuine[order], 1.0 - genuine[order])
    for upper, made in ((False, low), (True, high)):
        values = []
        for angle in ANGLES:
            parts = 0.0
            for model, count, ends, share, sign in (
                (far, lambda at: 5000 - np.searchsorted(other, at), (-10.0, other[-1] + 2.0), np.sin(angle), 1.0),
                (frr, lambda at: np.searchsorted(own, at), (own[0] - 2.0, 10.0), np.cos(angle), -1.0),
            ):
                place = np.linspace(*ends, 20_001)
                place = (place[1:] + place[:-1]) / 2.0
                rate = model.limit(count(place), share * deviate, np.array(upper))
                parts += float((rate / (1.0 + np.exp(-sign * place))).sum()) * (ends[1] - ends[0]) / 20_000
            values.append(parts / (2.0 * math.log(2.0)))
        assert made == pytest.approx(max(values) if upper else min(values), rel=0.01)


def test_presets() -> None:
    """SRE08's cost is 10·0.01 for a miss and 0.99 for a false accept; two priors are averaged."""
    curve = mb.roc(golden_table("larger"))
    weights = PRESETS["sre08"][0]
    assert weights.miss == pytest.approx(1.0)
    assert weights.false_accept == pytest.approx(9.9)
    assert curve.min_dcf("SRE08").estimate == curve.min_dcf(0.01, 10.0).estimate
    both = curve.min_dcf("sre21")
    assert both.estimate == pytest.approx((curve.min_dcf(0.01).estimate + curve.min_dcf(0.05).estimate) / 2)
    assert both.interval().low < both.estimate < both.interval().high
    for name in PRESETS:
        assert curve.min_dcf(name).label == f"mindcf({name})"


def test_two_priors_share_identities() -> None:
    """The variance of the mean of two costs is that of the mean of their residuals."""
    curve = mb.roc(golden_table("larger"))
    both, one, two = curve.min_dcf("sre21"), curve.min_dcf(0.01), curve.min_dcf(0.05)
    spread = [math.sqrt(x.variance) for x in (one, two)]
    assert both.variance <= (sum(spread) / 2) ** 2 * (1 + 1e-9)
    assert both.variance >= ((spread[0] - spread[1]) / 2) ** 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.min_dcf(0.0), "prior must lie between"),
        (lambda c: c.min_dcf(1.5), "prior must lie between"),
        (lambda c: c.min_dcf(5e-324), "more than 1e15 times the other"),
        (lambda c: c.actual_dcf(1e-10, cost_false_accept=1e9), "more than 1e15 times the other"),
        (lambda c: c.min_dcf("sre99"), "sre08"),
        (lambda c: c.min_dcf("sre08", 2.0), "sets the costs too"),
        (lambda c: c.min_dcf(0.1, -1.0), "cost_miss must be"),
        (lambda c: c.min_dcf(0.1, 1.0, math.inf), "cost_false_accept must be"),
        (lambda c: c.min_dcf(0.1).interval("wald"), "method must be"),
        (lambda c: c.min_dcf(0.1).interval(level=2.0), "level must"),
    ],
)
def test_refusals(call: object, message: str) -> None:
    with pytest.raises(mb.UsageError, match=message):
        call(mb.roc(golden_table("balanced")))  # type: ignore[operator]


def test_distances_are_no_ratios() -> None:
    data = golden_table("balanced")
    curve = mb.roc(mb.Comparisons(data.identities[data.a], data.identities[data.b], 1.0 - data.score, distance=True))
    for call in (curve.cllr, curve.actual_dcf):
        with pytest.raises(mb.UsageError, match="distances"):
            call()
    plain = mb.roc(data)
    assert curve.min_dcf(0.1).estimate == plain.min_dcf(0.1).estimate
    assert curve.min_cllr().estimate == pytest.approx(plain.min_cllr().estimate, rel=1e-12)


def test_a_curve_without_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 1,500 points, costs are those of the whole curve within what they say, and so are their intervals."""
    from matchbound.counting import recount as curve_points

    rng = np.random.default_rng(8)
    centre = rng.normal(size=(30, 12))
    vectors = (np.repeat(centre, 5, axis=0) + 0.7 * rng.normal(size=(150, 12))).astype(np.float32)
    data = mb.Embeddings(vectors, np.repeat(np.arange(30), 5), similarity="dot")
    exact = mb.roc(data)
    monkeypatch.setattr(curve_points, "EXACT_COMPARISONS", 10)
    stepped = mb.roc(data)
    assert stepped.thresholds.size < exact.thresholds.size / 5
    for name in ("min_dcf", "actual_dcf", "cllr", "min_cllr"):
        one, two = getattr(exact, name)(), getattr(stepped, name)()
        assert two.estimate == pytest.approx(one.estimate, rel=0.01), name
        assert two.variance == pytest.approx(one.variance, rel=0.05), name
        for a, b in zip(one.interval(), two.interval(), strict=True):
            assert b == pytest.approx(a, rel=0.05), name
    assert exact.actual_dcf().estimate == stepped.actual_dcf().estimate


def test_decisions_and_few_identities_have_the_default_limits() -> None:
    """Limits that have a width: what the data cannot show is assumed."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 30, (2, 3000))
    decisions = mb.Comparisons(a, b, ((rng.random(3000) < np.where(a == b, 0.9, 0.05)) * 4.0 - 2.0))
    few = mb.Comparisons(a % 6, b % 6, rng.normal(size=3000) + 3.0 * (a % 6 == b % 6))
    for data in (decisions, few):
        curve = mb.roc(data)
        for number in (curve.min_dcf(0.1), curve.actual_dcf(0.1), curve.cllr(), curve.min_cllr()):
            made = number.interval()
            assert made.low < number.estimate < made.high
            assert made.method in ("latent", "latent+log-t")
        measure = mb.evaluate(data, 0.5).precision(0.1)
        assert measure.interval().method == "latent"
        assert measure.interval().low < measure.estimate < measure.interval().high


def test_an_invented_score_is_no_log_likelihood_ratio() -> None:
    """Comparisons without a score that count as rejected make errors, and no Cllr."""
    table = {"id_a": list("aabbc"), "id_b": list("abbca"), "score": [2.0, -1.0, 3.0, -2.0, None]}
    data = mb.read(pd.DataFrame(table), missing="reject")
    with pytest.raises(mb.DataError, match="missing='drop'"):
        mb.roc(data).cllr()
    with pytest.raises(mb.DataError, match="missing='drop'"):
        mean_loss(data, "cllr")
    assert 0.0 <= mb.roc(data).min_dcf(0.1).estimate <= 1.0


def square(score: np.ndarray, genuine: np.ndarray) -> np.ndarray:
    return (score - 0.3 * genuine) ** 2


@given(tables(min_identities=3), st.sampled_from([None, 0.0, 0.2, 1.0]))
def test_variance_is_a_sum_over_comparisons_that_share_people(rows: list, prior: float | None) -> None:
    data = comparisons(rows)
    kin, strangers = int(data.genuine.sum()), int((~data.genuine).sum())
    value = square(data.score, data.genuine)
    if prior is not None and ((prior > 0 and not kin) or (prior < 1 and not strangers)):
        with pytest.raises(mb.DataError, match="prior"):
            losses.loss_terms(value, data.genuine, prior)
        return
    terms = losses.loss_terms(value, data.genuine, prior)
    everyone = {f"p{i}": 1.0 for i in range(6)}
    plain = [(a, b, float(v)) for (a, b, _), v in zip(rows, value, strict=True)]
    assert terms.estimate == pytest.approx(naive_compare.weighted_mean_loss(plain, everyone, prior))
    assert terms.residual.sum() == pytest.approx(0.0, abs=1e-12)
    outcomes = []
    for a, b, v in plain:
        if prior is None:
            w = (v - terms.estimate) / len(plain)
        elif a == b:
            w = prior * (v - terms.genuine_mean) / kin
        else:
            w = (1 - prior) * (v - terms.impostor_mean) / strangers
        outcomes.append((a, b, w))
    sums = dyadic_sums(terms.residual, data.a, data.b, data.n_identities)
    assert sums.variance == pytest.approx(naive_compare.sum_over_sharing(outcomes), abs=1e-12)


def test_known_losses() -> None:
    score, genuine = np.array([2.0, -1.0]), np.array([True, False])
    assert losses.cllr(score, genuine) == pytest.approx([math.log2(1 + math.exp(-2)), math.log2(1 + math.exp(-1))])
    p = np.array([0.9, 0.2])
    assert losses.brier(p, genuine) == pytest.approx([0.01, 0.04])
    assert losses.cross_entropy(p, genuine) == pytest.approx([-math.log(0.9), -math.log(0.8)])
    for loss in (losses.brier, losses.cross_entropy):
        with pytest.raises(mb.DataError, match="probabilities"):
            loss(score, genuine)
    with pytest.raises(mb.DataError, match="infinite"):
        losses.cross_entropy(np.array([0.0]), np.array([True]))


@pytest.mark.parametrize("distance", [False, True])
def test_detection_cost_is_the_weighted_sum_of_the_rates(distance: bool) -> None:
    table = mb.demo_data(40).comparisons()
    data = mb.Comparisons(table.a, table.b, -table.score if distance else table.score, distance=distance)
    threshold = -0.5 if distance else 0.5
    rates = mb.evaluate(data, threshold)
    loss = losses.detection_cost(threshold, cost_reject=2.0, cost_accept=10.0, distance=distance)
    cost = mean_loss(data, loss, prior=0.05)
    assert cost.estimate == pytest.approx(0.05 * 2.0 * rates.frr.estimate + 0.95 * 10.0 * rates.far.estimate)
    assert cost.genuine == pytest.approx(2.0 * rates.frr.estimate)
    only = mean_loss(data, losses.detection_cost(threshold, distance=distance), prior=0.0)
    assert only.estimate == pytest.approx(rates.far.estimate)
    assert only.variance == pytest.approx(rates.far.variance_by("bias-corrected"), rel=0.1)


def test_cllr_takes_equal_priors_and_stays_within_what_a_loss_can_be() -> None:
    cost = mean_loss(mb.demo_data(30), "cllr")
    assert cost.prior == 0.5
    assert cost.estimate == pytest.approx((cost.genuine + cost.impostor) / 2)
    assert (cost.interval(side="upper").low, cost.interval(side="lower").high) == (0.0, math.inf)


def test_intervals_of_a_loss_cover() -> None:
    """Cllr of 40 people with effects of their own; 300 draws, Monte Carlo error 1.3%."""
    rng = np.random.default_rng(9)
    people = 40
    first, second = np.triu_indices(2 * people, k=1)
    owner = np.arange(2 * people) // 2
    a, b = owner[first], owner[second]
    genuine = a == b

    def sample() -> mb.Comparisons:
        effect = rng.standard_normal(people)
        noise = rng.standard_normal(first.size)
        return mb.Comparisons(a, b, np.where(genuine, 1.5, -1.5) + 0.6 * (effect[a] + effect[b]) + noise)

    spread = np.where(genuine, 0.6 * 2.0, 0.6 * math.sqrt(2.0))
    x = np.linspace(-9, 9, 4001)
    density = np.exp(-0.5 * x * x) / np.exp(-0.5 * x * x).sum()
    truth = 0.0
    for kin, mean in ((True, 1.5), (False, -1.5)):
        scale = math.sqrt(1.0 + spread[genuine == kin][0] ** 2)
        truth += 0.5 * float(density @ losses.cllr(mean + scale * x, np.full(x.size, kin)))
    covered = [truth in mean_loss(sample(), "cllr").interval() for _ in range(300)]
    assert 0.92 < np.mean(covered) < 0.98


def test_arguments() -> None:
    data = mb.demo_data(40)
    for loss in ("hinge", lambda s, g: s[:2]):
        with pytest.raises(mb.UsageError, match="loss must"):
            mean_loss(data, loss)  # type: ignore[arg-type]
    with pytest.raises(mb.DataError, match="must be finite"):
        mean_loss(data, lambda s, g: s * np.inf)
    with pytest.raises(mb.UsageError, match="prior"):
        mean_loss(data, "cllr", prior=2.0)
    with pytest.raises(mb.UsageError, match="auto, t;"):
        mean_loss(data, "cllr").interval("subsets")
    negative = mean_loss(data, lambda s, g: s - 10.0)
    assert negative.interval().low < 0.0


def test_a_file_is_read(tmp_path: Path) -> None:
    table = tmp_path / "scores.csv"
    rows = ["identity_a,identity_b,score", "a,a,0.9", "b,b,0.4", "c,c,0.8", "a,b,0.6", "a,c,0.2", "b,c,0.3"]
    table.write_text("\n".join(rows) + "\n")
    expected = mean_loss(mb.read(table), "brier").estimate
    assert mean_loss(str(table), "brier").estimate == mean_loss(mb.scan(table), "brier").estimate == expected
