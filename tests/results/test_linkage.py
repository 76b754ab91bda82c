"""Precision, recall, F1 and HTER: golden values, literal twins, limits; thresholds from a development set."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
import naive_costs as naive
from conftest import DATA, golden_table, run_json
from matchbound.cli import main
from strategies import Row, comparisons, tables

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")

EXPECTED = json.loads((DATA / "metrics.json").read_text())["linkage"]


def close(value: float, target: float) -> bool:
    return abs(value - target) <= 1e-9 * abs(target)


@pytest.mark.parametrize("prior", [None, 0.01])
def test_golden(prior: float | None) -> None:
    target = EXPECTED["sample" if prior is None else str(prior)]
    rates = mb.evaluate(golden_table("larger"), EXPECTED["threshold"])
    assert close(rates.recall().estimate, target["recall"])
    for name in ("precision", "f1"):
        made = getattr(rates, name)(prior)
        assert close(made.estimate, target[name])
        assert close(made.logit_variance, target[f"V_logit_{name}"])
        assert close(made.variance, target[f"V_logit_{name}"] * (target[name] * (1 - target[name])) ** 2)
        limits = made.interval("logit-t")
        assert close(limits.low, target[f"{name}_logit_t"][0])
        assert close(limits.high, target[f"{name}_logit_t"][1])
        best = made.interval()
        assert best.method.startswith("latent")
        assert prior or (best.low <= limits.low and best.high >= limits.high), "the share is sampled too"
        assert best.low < made.estimate < best.high
        assert made.prior == (prior or pytest.approx(177 / 4186))


@given(tables(min_identities=3, max_rows=30), st.sampled_from([None, 0.01, 0.4]))
def test_measures_equal_their_twins(rows: list[Row], prior: float | None) -> None:
    rows = [*rows, ("p0", "p0", 1.0), ("p0", "p1", 1.0)]
    rates = mb.evaluate(comparisons(rows), 0.25)
    values = naive.linkage(rows, 0.25, prior)
    variances = naive.linkage_variances(rows, 0.25, prior)
    for name, value, variance in zip(("precision", "f1"), values, variances, strict=True):
        made = getattr(rates, name)(prior)
        assert made.estimate == pytest.approx(value, rel=1e-12)
        assert made.logit_variance == pytest.approx(variance, rel=1e-8, abs=1e-12)


def test_the_samples_own_share_is_sampled_too() -> None:
    """Of predictions cut at a threshold every impostor pair matches: the share is all that varies, and it does."""
    data = golden_table("larger")
    kept = data.take(np.flatnonzero(data.score >= 0.5))
    precision = mb.evaluate(kept, 0.5).precision()
    people = kept.n_identities
    weights = np.random.default_rng(0).multinomial(people, np.full(people, 1.0 / people), 2000).astype(float)
    worth = np.where(kept.genuine, weights[:, kept.a], weights[:, kept.a] * weights[:, kept.b])
    low, high = np.quantile(worth[:, kept.genuine].sum(axis=1) / worth.sum(axis=1), [0.025, 0.975])
    interval = precision.interval()
    assert interval.low < low
    assert high < interval.high < high + 0.05
    assert precision.interval("latent").width < 0.15 * (high - low)


def test_recall_mirrors_frr() -> None:
    rates = mb.evaluate(golden_table("larger"), 0.6)
    recall, frr = rates.recall().interval(), rates.frr.interval()
    assert (recall.low, recall.high) == (1.0 - frr.high, 1.0 - frr.low)
    assert rates.recall().interval(side="lower").low == pytest.approx(1.0 - rates.frr.upper_bound())
    assert rates.recall().variance == rates.frr.variance


def test_no_false_match_is_not_perfect_precision() -> None:
    rates = mb.evaluate(golden_table("larger"), 0.81)
    assert rates.far.errors == 0
    assert rates.frr.errors < rates.frr.comparisons
    made = rates.precision(0.01)
    assert made.estimate == 1.0
    limits = made.interval()
    assert limits.high == 1.0
    assert limits.low < 0.999
    with pytest.raises(mb.DataError, match="no finite value"):
        made.interval("logit-t")
    assert math.isnan(made.variance)


def test_nothing_matches() -> None:
    rates = mb.evaluate(golden_table("larger"), 2.0)
    assert math.isnan(rates.precision().estimate)
    with pytest.raises(mb.DataError, match="nothing matches"):
        rates.precision().interval()
    assert rates.f1().estimate == 0.0
    assert rates.f1().interval().high > 0.0


def test_the_prior_is_said() -> None:
    rates = mb.evaluate(golden_table("larger"), 0.6)
    assert "prior=0.01" in repr(rates.precision(0.01))
    assert rates.precision(0.01).label == "precision@prior=0.01"
    assert "Give a prior" in rates.precision().interval().notes[0]
    assert not rates.precision(0.01).interval().notes
    for prior in (0.0, 1.0, 2.0, "x"):
        with pytest.raises(mb.UsageError, match="prior must lie"):
            rates.precision(prior)  # type: ignore[arg-type]


def test_limits_move_with_the_prior() -> None:
    rates = mb.evaluate(golden_table("larger"), 0.6)
    low, high = (rates.precision(prior) for prior in (0.01, 0.1))
    assert low.estimate < high.estimate
    for method in ("auto", "logit-t"):
        assert low.interval(method).low < high.interval(method).low
        assert low.interval(method).high < high.interval(method).high


def test_f1_without_wrong_decisions() -> None:
    rows = [(f"p{i}", f"p{i}", 1.0 + k) for i in range(12) for k in range(3)]
    rows += [(f"p{i}", f"p{j}", -1.0 - j) for i in range(12) for j in range(i)]
    made = mb.evaluate(comparisons(rows), 0.0).f1(0.1)
    assert made.estimate == 1.0
    assert np.isclose(made.interval().high, 1.0)
    assert made.interval().low < 1.0


FILE, DEV = str(DATA / "larger.csv"), str(DATA / "balanced.csv")


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [
        ("eer", lambda curve: curve.eer().threshold),
        ("min-hter", lambda curve: curve.min_dcf(0.5).threshold),
        ("far=0.05", lambda curve: curve.at_far(0.05).threshold),
        ("FRR = 5%", lambda curve: curve.at_frr(0.05).threshold),
    ],
)
def test_criteria(criterion: str, expected: object) -> None:
    dev, data = golden_table("balanced"), golden_table("larger")
    rates = mb.evaluate(data, threshold_from=dev, criterion=criterion)
    assert rates.threshold == expected(mb.roc(dev))  # type: ignore[operator]
    assert rates.far.errors == mb.evaluate(data, rates.threshold).far.errors


@pytest.mark.parametrize("criterion", ["x", "far", "far=x", "eer=1"])
def test_bad_criteria(criterion: str) -> None:
    with pytest.raises(mb.UsageError, match="criterion"):
        mb.evaluate(golden_table("larger"), threshold_from=golden_table("balanced"), criterion=criterion)


@given(tables(min_identities=3, max_rows=30))
def test_hter_equals_its_twin(rows: list[Row]) -> None:
    """Half of a detection cost at prior ½, and its variance a quarter."""
    rows = [*rows, ("p0", "p0", 0.5), ("p0", "p1", 0.0)]
    made = mb.evaluate(comparisons(rows), 0.25).hter()
    assert made.estimate == pytest.approx(naive.cost(rows, 0.25, 0.5) / 2)
    assert made.variance == pytest.approx(naive.cost_variance(rows, 0.25, 0.5) / 4, abs=1e-15)


def test_hter_intervals() -> None:
    rates = mb.evaluate(golden_table("larger"), 0.5)
    made = rates.hter()
    for method in ("auto", "latent", "log-t"):
        limits = made.interval(method)
        assert limits.low < made.estimate < limits.high
    assert made.interval().low < made.interval(side="lower").low
    assert rates.claim("hter < 99%").verdict == "shown"
    few = mb.Comparisons(list("aabbccab"), list("aabbccbc"), [1.0, 0.9, 0.8, 0.9, 0.7, 0.9, 0.1, 0.2])
    perfect = mb.evaluate(few, 0.5).hter()
    assert perfect.estimate == 0.0
    assert perfect.interval().high > 0.1
    with pytest.raises(mb.DataError, match="no width"):
        perfect.interval("log-t")


def test_the_usual_points() -> None:
    data = golden_table("larger")
    curve = mb.roc(data)
    points = curve.points()
    assert [point.label for point in points] == ["frr@far=0.01", "frr@far=0.001", "frr@far=0", "eer"]
    assert points[2].far == 0.0
    assert points[2].estimate == pytest.approx(np.mean(data.score[data.genuine] < 0.804563))
    for point in points:
        made = point.interval()
        assert made.low <= point.estimate <= made.high
        assert made.width > 0.0


def test_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--threshold-from", DEV, "--criterion", "far=0.05", "--claim", "hter<99%", "-q"]
    document = run_json(capsys, "evaluate", FILE, *options)
    threshold = mb.roc(golden_table("balanced")).at_far(0.05).threshold
    assert [row["metric"] for row in document["results"]] == ["far", "frr", "hter"]
    assert document["results"][0]["threshold"] == threshold
    assert document["provenance"]["parameters"]["threshold_from"] == "balanced.csv"
    assert main(["evaluate", FILE, "--threshold", "1", "--threshold-from", DEV]) == 2
    rows = run_json(capsys, "roc", FILE, "--points", "-q")["results"]
    assert [row["target"] for row in rows[:3]] == [0.01, 0.001, 0.0]


def test_sre08(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """EER, minDCF at 0.01 and 0.001 with intervals from one command; minDCF is the minimum of scikit-learn's curve."""
    import pyarrow.parquet as pq

    metrics = pytest.importorskip("sklearn.metrics")
    file = shared_data / "scores_nist_sre08_tno.parquet"
    found = run_json(capsys, "roc", str(file), "--min-dcf", "0.01", "--min-dcf", "0.001", "-q")["results"]
    rows = {(row["metric"], row["target"]): row for row in found}
    table = pq.read_table(file)
    far, tpr, _ = metrics.roc_curve(np.array(table["genuine"]), np.array(table["score"]), drop_intermediate=False)
    for prior in (0.01, 0.001):
        row = rows["mindcf", prior]
        assert row["estimate"] == pytest.approx(float((prior * (1 - tpr) + (1 - prior) * far).min()) / prior, rel=1e-12)
        assert row["low"] < row["estimate"] < row["high"] <= 1.0
    assert rows["eer", None]["estimate"] == pytest.approx(0.0565, abs=1e-3)


def test_people_of_both_sets_are_counted_in_a_warning() -> None:
    data = mb.demo_data(n_identities=30)
    some = data.among(np.arange(10))
    with pytest.warns(mb.MatchboundWarning) as caught:
        mb.evaluate(data, threshold_from=some)
    (note,) = (item.message.args[0] for item in caught if item.message.args[0].code == "threshold-from-same-people")
    assert str(note).startswith("10 people are in both sets")
    others = data.among(np.arange(10, 30))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mb.evaluate(others, threshold_from=some)
    assert "both sets" not in str([item.message for item in told])
