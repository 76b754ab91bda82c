"""One body of intervals, bounds, claims and records for every number; verdicts are right as often as they promise."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import matchbound as mb
from conftest import golden_table
from matchbound.metrics import METRICS, NAMES, read_from
from matchbound.notes import Note
from matchbound.planning.plan import with_plan
from matchbound.results.claims import Claim, Relation, decide, parse_claim
from matchbound.results.number import Ask, CannotFit, Interval, Limits, Number, Rule


@pytest.fixture(scope="module")
def faces() -> mb.Embeddings:
    return mb.demo_data(n_identities=60)


def numbers(faces: mb.Embeddings) -> list[Number]:
    rates, curve = mb.evaluate(faces, 0.55), mb.roc(faces)
    failures = mb.Failures.from_counts(fte=(2, 60), fta=(5, 300))
    both = rates.generalised(failures)
    other = mb.Embeddings(faces.vectors[:, :48], faces.identities[faces.codes])
    compared = mb.compare(faces, other, threshold=0.55)
    half = np.where(np.arange(faces.n_identities) % 2, "odd", "even")
    groups = mb.by_group(faces, 0.55, group=half[faces.codes])
    return [
        rates.far, rates.frr, rates.precision(), rates.f1(0.1), rates.recall(), rates.hter(), both.gfar, both.gfrr,
        curve.at_far(0.01), curve.at_frr(0.1), curve.eer(), curve.auc(), curve.min_dcf(), curve.min_cllr(),
        compared.far, compared.frr, compared.eer, compared.frr.as_ratio(), groups.gap("frr", "even", "odd"),
        groups.gap("frr", "even", "odd").as_ratio(), groups.between("even", "odd"), groups.largest_gap("frr"),
        groups.largest_ratio("frr"), mb.mean_loss(faces, lambda score, genuine: (score >= 0.55) != genuine),
    ]  # fmt: skip


def test_every_number_has_bounds_claims_and_records(faces: mb.Embeddings) -> None:
    for number in numbers(faces):
        interval = number.interval()
        assert interval.low <= float(number) <= interval.high, number
        assert number.upper_bound(0.975) == pytest.approx(interval.high, rel=1e-9), number
        assert number.lower_bound(0.975) == pytest.approx(interval.low, rel=1e-9, abs=1e-12), number
        assert interval.method != "auto"
        narrower = number.interval(0.8)
        assert narrower.level == 0.8
        assert interval.low <= narrower.low <= narrower.high <= interval.high, number
        (record,) = number.to_records()
        assert (record["estimate"], record["low"], record["high"]) == (number.estimate, *interval)
        assert json.loads(json.dumps(number.to_dict()))["method"] == interval.method
        assert f"{number:.3f}" == f"{number.estimate:.3f}"
        if math.isfinite(interval.high) and number.ends[0] < interval.high < number.ends[1]:
            assert number.claim(below=min(number.upper_bound() + 1e-9, number.ends[1] - 1e-9)).verdict == "shown"
            assert number.claim(below=number.upper_bound() - 1e-6).verdict != "shown"


class Coin(Number):
    """A number whose first rule fits only some data."""

    metric = "coin"
    estimate = 0.5
    notes = (Note("coin", "a coin"),)

    def __init__(self, fits: bool) -> None:
        self.fits = fits

    def _fitted(self, ask: Ask) -> Limits:
        if not self.fits:
            raise CannotFit(Note("edge", "it stands on its edge"))
        return Limits(0.5 - ask.tail, 0.5 + ask.tail)

    rules = (
        Rule("fitted", _fitted, frozenset({"bias"})),
        Rule("plain", lambda coin, ask: Limits(0.1, 0.9)),
    )
    defaults = ("fitted", "plain")


def test_auto_is_the_first_rule_that_fits_and_says_why() -> None:
    assert Coin(True).interval().method == "fitted"
    fallen = Coin(False).interval()
    assert fallen.method == "plain"
    assert [note.code for note in fallen.notes] == ["coin", "edge"]
    with pytest.raises(mb.DataError, match="edge"):
        Coin(False).interval("fitted")


@pytest.mark.parametrize(
    ("method", "options"), [("plain", {"bias": 1}), ("auto", {"colour": 1}), ("tossed", {}), ("fitted", {"tau": 1})]
)
def test_a_method_or_option_that_is_not_there_is_named(method: str, options: dict[str, Any]) -> None:
    with pytest.raises(mb.UsageError, match=next(iter(options), "tossed")):
        Coin(True).interval(method, **options)


def test_an_error_of_a_rule_is_not_taken_for_data_that_do_not_fit() -> None:
    class Broken(Coin):
        rules = (Rule("fitted", lambda coin, ask: 1 / 0), Coin.rules[1])  # type: ignore[arg-type,return-value]

    with pytest.raises(ZeroDivisionError):
        Broken(True).interval()


def test_the_table_of_metrics_reads_every_number(faces: mb.Embeddings) -> None:
    rates, curve = mb.evaluate(faces, 0.55), mb.roc(faces)
    failures = mb.Failures.from_counts(fte=(2, 60), fta=(5, 300))
    given = {"frr@far": "frr@far=0.01", "far@frr": "far@frr=0.1", "cllr": None, "actdcf": None}
    for name in read_from("rates"):
        assert rates.claim(f"{name} < 0.99", failures=failures).metric == name
    for name in read_from("curve"):
        if given.get(name, name) is not None:
            assert curve.claim(f"{given.get(name, name)} < 0.99").metric == name
    assert set(NAMES.values()) == set(METRICS)


def test_claims_about_differences_and_gaps(faces: mb.Embeddings) -> None:
    other = mb.Embeddings(faces.vectors[:, :48], faces.identities[faces.codes])
    compared = mb.compare(faces, other, threshold=0.55)
    claim = compared.claim("dfrr < 0.2%")
    assert claim.target == 0.002
    assert claim.bound == compared.frr.upper_bound()
    assert compared.frr.claim(above=-0.5).verdict == "shown"
    assert compared.claim("frr ratio < 10").verdict == "shown"
    half = np.where(np.arange(faces.n_identities) % 2, "odd", "even")
    groups = mb.by_group(faces, 0.55, group=half[faces.codes])
    uppers = [groups.gap("frr", *pair).upper_bound() for pair in (("even", "odd"), ("odd", "even"))]
    assert groups.claim("frr gap < 50%").bound == max(uppers)
    assert groups.claim("frr ratio < 100").verdict == "shown"
    with pytest.raises(mb.UsageError, match="groups take"):
        groups.claim("far < 1%")


pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


@pytest.mark.parametrize(
    ("text", "metric", "relation", "target", "given", "options"),
    [
        ("far<1e-3", "far", "<", 1e-3, None, {}),
        ("FMR <= 0.1%", "far", "<", 1e-3, None, {}),
        ("frr@far=1e-3 < 5%", "frr@far", "<", 0.05, 1e-3, {}),
        ("fnmr@fmr = 0.1% ≤ 0.05", "frr@far", "<", 0.05, 1e-3, {}),
        ("frr@fmr=1% < 20%", "frr@far", "<", 0.2, 0.01, {}),
        ("fmr@frr=1% < 20%", "far@frr", "<", 0.2, 0.01, {}),
        ("mindcf@prior=0.01<0.3", "mindcf", "<", 0.3, None, {"prior": 0.01}),
        ("precision@prior=0.01 > 0.9", "precision", ">", 0.9, None, {"prior": 0.01}),
        ("fnir@fpir=0.01@rank=1 < 2%", "fnir@fpir", "<", 0.02, 0.01, {"rank": 1.0}),
        ("auc ≥ 0.99", "auc", ">", 0.99, None, {}),
    ],
)
def test_reading(
    text: str, metric: str, relation: str, target: float, given: float | None, options: dict[str, float]
) -> None:
    said = parse_claim(text)
    assert (said.metric, said.relation, said.given, dict(said.options)) == (metric, relation, given, options)
    assert said.target == pytest.approx(target)
    assert parse_claim(str(said)) == said


@pytest.mark.parametrize("text", ["", "far", "far<", "far<x", "far<nan", "far<inf", "foo<1", "frr@far<1", "a<b<c"])
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(mb.UsageError, match="claim"):
        parse_claim(text)


def decided(estimate: float, bounds: tuple[float, float], target: float, relation: Relation = "<") -> Claim:
    number = SimpleNamespace(label="x", entry="far", estimate=estimate)
    sides = (Interval(*bounds, 0.95, "exact", side) for side in ("lower", "upper"))  # type: ignore[arg-type]
    return decide(number, *sides, relation, target)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bounds", "relation", "target", "verdict", "bound"),
    [
        ((0.01, 0.03), "<", 0.05, "shown", 0.03),
        ((0.01, 0.05), "<", 0.05, "shown", 0.05),
        ((0.01, 0.06), "<", 0.05, "not shown", 0.06),
        ((0.055, 0.06), "<", 0.05, "refuted", 0.055),
        ((0.91, 0.97), ">", 0.9, "shown", 0.91),
        ((0.85, 0.97), ">", 0.9, "not shown", 0.85),
        ((0.80, 0.89), ">", 0.9, "refuted", 0.89),
    ],
)
def test_verdicts(bounds: tuple[float, float], relation: Relation, target: float, verdict: str, bound: float) -> None:
    made = decided(sum(bounds) / 2, bounds, target, relation)
    assert made.ratio == pytest.approx(bound / target)
    assert (made.verdict, made.bound) == (verdict, bound)
    assert bool(made) == made.shown == (verdict == "shown")
    assert verdict in str(made)
    assert (made.more_identities is None) == (verdict != "not shown")


def test_what_would_settle_it() -> None:
    """On the log scale the bound is three times as far from the estimate as the target: nine times the identities."""
    made = decided(0.01, (0.001, 0.08), 0.02)
    assert made.more_identities == pytest.approx(9.0)
    assert decided(0.03, (0.01, 0.08), 0.02).more_identities == math.inf
    assert decided(0.0, (0.0, 0.08), 0.02).more_identities == pytest.approx(4.0)


def test_of_results() -> None:
    data = golden_table("larger")
    rates, curve = mb.evaluate(data, 0.6), mb.roc(data)
    upper = rates.far.upper_bound(0.95)
    assert rates.far.claim(below=rates.far.lower_bound(0.95) * 0.9).verdict == "refuted"
    assert rates.far.claim(below=upper, level=0.99).verdict == "not shown"
    assert rates.claim(f"far < {upper!r}").verdict == "shown"
    assert rates.claim("precision@prior=0.01 > 0.001").verdict == "shown"
    assert rates.claim("recall > 0.999").verdict == "refuted"
    assert curve.claim("frr@far=1e-2 < 0.999").bound == curve.at_far(1e-2).interval(side="upper").high
    assert curve.claim("mindcf@prior=0.05 < 0.1").verdict == "refuted"
    assert curve.claim("auc > 0.5").verdict == "shown"


def test_what_a_result_knows_nothing_of() -> None:
    data = golden_table("balanced")
    with pytest.raises(mb.UsageError, match="claims about a curve take"):
        mb.roc(data).claim("far < 0.5")
    with pytest.raises(mb.UsageError, match="claims about"):
        mb.evaluate(data, 0.5).claim("eer < 0.5")
    with pytest.raises(mb.UsageError, match="no setting"):
        mb.roc(data).claim("eer@rank=1 < 0.5")
    far = mb.evaluate(data, 0.5).far
    for target in ({}, {"below": "far<1%"}, {"above": math.inf}, {"below": None, "above": [0.1]}):
        with pytest.raises(mb.UsageError):
            far.claim(**target)


def test_rules_of_thumb_are_beside_it() -> None:
    rates = mb.evaluate(golden_table("larger"), 0.9)
    assert rates.far.errors == 0
    rules = rates.far.claim(below=1e-3).rules
    assert rules[0].startswith("Rule of 3: no error in 4,009 comparisons")
    assert "assumes independent comparisons" in rules[0]
    assert rules[1].startswith("Rule of 30")
    assert not mb.roc(golden_table("larger")).eer().claim(below=0.5).rules


def test_a_true_target_is_rarely_refuted_and_a_false_one_rarely_shown() -> None:
    """A rate exactly at the target is shown, or refuted, in about 5% of samples each: 200 samples, 4 standard errors.

    Comparisons share no one here, so that the rate of wrong verdicts is that of a binomial bound.
    """
    rng = np.random.default_rng(11)
    shown = refuted = 0
    for _ in range(200):
        wrong = rng.random(300) < 0.1
        people = np.arange(300)
        one, two = np.concatenate([people, people]), np.concatenate([people + 1000, people])
        data = mb.Comparisons(one, two, np.concatenate([wrong, np.ones(300)]))
        made = mb.evaluate(data, 0.5).far.claim(below=0.1, method="wilson")
        shown += made.verdict == "shown"
        refuted += made.verdict == "refuted"
    error = math.sqrt(0.05 * 0.95 / 200)
    assert shown / 200 < 0.05 + 4 * error
    assert refuted / 200 < 0.05 + 4 * error
    assert shown + refuted > 0


def test_the_sample_that_would_settle_it() -> None:
    """One number says how many people would settle a claim: that of the plan, where there is one."""
    data = golden_table("larger")
    claim = mb.evaluate(data, 0.7).far.claim(below=0.004)
    assert claim.verdict == "not shown"
    assert "times as many identities" in claim.reason
    planned, made = with_plan(claim, data), mb.plan(far=claim.estimate, upper=0.004, pilot=data)
    assert f"{made.n_identities:,} people" in planned.rules[-1]
    assert "times as many" not in planned.reason
    assert planned.verdict == claim.verdict
    for other in (mb.evaluate(data, 0.5).far.claim(below=1e-3), mb.roc(data).eer().claim(below=0.3)):
        assert with_plan(other, data) is other, "no sample is expected to show it"


def test_targets_in_python_are_rates_too() -> None:
    rates = mb.evaluate(mb.demo_data(n_identities=30), 0.6)
    with pytest.raises(mb.UsageError, match="write 5% for 5 percent"):
        rates.far.claim(below=5)
    assert mb.roc(mb.demo_data(n_identities=30)).min_dcf(0.01).claim(below=1.5).shown  # a cost is no rate
