"""Every identity counts once: curves, comparisons, groups, reports and commands."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import matchbound as mb
from cases import refused
from matchbound.cli import main
from matchbound.report import render
from matchbound.results.roc import limits_at
from strategies import comparisons, tables

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
ONCE = "identities"


def people(seed: int, sizes: list[int], noise: float = 1.0, dimensions: int = 8) -> mb.Embeddings:
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(len(sizes)), sizes)
    vectors = rng.standard_normal((len(sizes), dimensions))[who] + noise * rng.standard_normal((who.size, dimensions))
    return mb.Embeddings(vectors, who, instance=np.arange(who.size).astype(str))


def both_kinds(rows: list) -> bool:
    return any(a != b for a, b, _ in rows) and any(a == b for a, b, _ in rows)


def shares(rows: list, threshold: float, pairs: bool) -> dict:
    """Share of errors of each identity pair (or identity), literally."""
    made: dict = {}
    for a, b, score in rows:
        if (a != b) == pairs:
            made.setdefault(frozenset((a, b)), []).append(score >= threshold if pairs else score < threshold)
    return {key: float(np.mean(errors)) for key, errors in made.items()}


def dyadic(d: dict) -> float:
    """(4R − 2Q)/N2² of what each identity pair adds, literally."""
    mean = sum(d.values()) / len(d)
    r: dict = {}
    for pair, value in d.items():
        for person in pair:
            r[person] = r.get(person, 0.0) + value - mean
    q = 2.0 * sum((value - mean) ** 2 for value in d.values())
    return (4.0 * sum(v * v for v in r.values()) - 2.0 * q) / (2.0 * len(d)) ** 2


@given(tables(min_identities=3))
def test_a_curve_has_the_rates_and_variances_of_evaluate(rows: list) -> None:
    assume(both_kinds(rows))
    data = comparisons(rows)
    curve = mb.roc(data, weighting=ONCE)
    for k, rates in enumerate(mb.evaluate(data, curve.thresholds[1:].tolist(), weighting=ONCE), start=1):
        assert curve.far[k] == pytest.approx(rates.far.estimate, abs=1e-12)
        assert curve.frr[k] == pytest.approx(rates.frr.estimate, abs=1e-12)
        assert curve.far_variance[k] == pytest.approx(rates.far.variance, abs=1e-12)
        assert curve.frr_variance[k] == pytest.approx(rates.frr.variance, abs=1e-12)
        literal = shares(rows, float(curve.thresholds[k]), True)
        assert curve.far[k] == pytest.approx(np.mean(list(literal.values())), abs=1e-12)
        assert curve.far_variance[k] == pytest.approx(dyadic(literal), abs=1e-12)


def test_with_equal_sizes_both_weightings_are_one() -> None:
    """Where all identities have equally many instances every weight is the same."""
    a, b = people(1, [3] * 30), people(2, [3] * 30)
    group = np.where(np.arange(30) % 2, "odd", "even")[a.codes]

    def numbers(weighting: str) -> tuple[list[Any], list[Any]]:
        rates, curve = mb.evaluate(a, 0.5, weighting=weighting), mb.roc(a, weighting=weighting)
        both = mb.compare(a, b, threshold=0.6, weighting=weighting)
        groups = mb.by_group(a, 0.6, group=group, weighting=weighting)
        exact = [rates.far, rates.frr, rates.precision(0.1), rates.f1(0.1), rates.hter(), both.far, both.frr]
        exact += [curve.auc(), curve.min_dcf(0.1), curve.actual_dcf(0.4), curve.min_cllr(), curve.cllr()]
        exact += [groups.gap(metric, "even", "odd") for metric in ("far", "frr")]  # type: ignore[arg-type]
        # numbers read from curves know the slope a little differently: 0.5 is added to counts of units
        return exact, [both.eer, curve.at_far(0.05), curve.eer()]

    for pooled, once, near in zip(numbers("comparisons"), numbers(ONCE), (1e-6, 0.1), strict=True):
        for one, two in zip(pooled, once, strict=True):
            assert two.estimate == pytest.approx(one.estimate, rel=1e-9, abs=1e-12), one.label
            assert two.variance == pytest.approx(one.variance, rel=near), one.label
            assert two.estimate in two.interval(), one.label
    curves = mb.roc(a), mb.roc(a, weighting=ONCE)
    for metric in ("far", "frr", "far_variance", "frr_variance"):
        assert np.allclose(*(getattr(curve, metric) for curve in curves), rtol=1e-9, atol=1e-13)
    first, second = (mb.by_group(a, 0.6, group=group, weighting=w) for w in ("comparisons", ONCE))
    assert np.allclose(first.matrix, second.matrix)
    cells = ("even", "even"), ("even", "odd")
    assert tuple(first.cross_gap(*cells)) == pytest.approx(tuple(second.cross_gap(*cells)))


@given(tables(min_identities=4), st.integers(0, 2**31), st.integers(-2, 2).map(lambda s: s / 4))
def test_a_difference_is_the_literal_one(rows: list, seed: int, threshold: float) -> None:
    assume(both_kinds(rows))
    rng = np.random.default_rng(seed)
    others = [(a, b, float(rng.integers(-4, 5)) / 4) for a, b, _ in rows]
    made = mb.compare(comparisons(rows), comparisons(others), threshold=threshold, weighting=ONCE)
    for metric, pairs in (("far", True), ("frr", False)):
        one, two = shares(rows, threshold, pairs), shares(others, threshold, pairs)
        d = {key: one[key] - two[key] for key in one}
        difference = getattr(made, metric)
        assert difference.estimate == pytest.approx(np.mean(list(d.values())), abs=1e-12)
        sums = difference.sums.sums()
        mean = np.mean(list(d.values()))
        literal = dyadic(d) if pairs else sum((v - mean) ** 2 for v in d.values()) / len(d) ** 2
        assert sums.variance == pytest.approx(literal, abs=1e-12)


def test_gaps_of_groups_are_those_of_their_own_rates() -> None:
    data = people(3, [2, 3, 4, 5, 6] * 6)
    group = np.where(np.arange(30) % 2, "odd", "even")
    rates = mb.by_group(data, 0.6, group=group[data.codes], weighting=ONCE)
    for metric in ("far", "frr"):
        parts = [getattr(rates[g], metric) for g in ("even", "odd")]
        assert all(part.weighting == ONCE for part in parts)
        gap = rates.gap(metric, "even", "odd")
        assert gap.estimate == pytest.approx(parts[0].estimate - parts[1].estimate)
        assert gap.variance == pytest.approx(sum(part.variance_by("bias-corrected") for part in parts), rel=1e-9)
        low, high = gap.interval()
        assert low < gap.estimate < high
    cross = rates.between("even", "odd")
    whole = mb.by_group(data, 0.6, group=group[data.codes]).between("even", "odd")
    assert (cross.errors, cross.comparisons) == (whole.errors, whole.comparisons)
    assert cross.estimate != whole.estimate
    assert len(rates.gaps("far")) == 1


def test_a_person_with_many_images_weighs_once() -> None:
    data = people(5, [40] + [2] * 24, noise=0.8)
    pooled, once = mb.roc(data), mb.roc(data, weighting=ONCE)
    alone = mb.evaluate(data, 0.6, weighting=ONCE).frr.estimate
    assert once.frr[once.thresholds >= 0.6][-1] == pytest.approx(alone)
    assert abs(pooled.frr[pooled.thresholds >= 0.6][-1] - alone) > 0.01
    interval = once.at_far(0.05).interval()
    assert interval.method == "latent"
    assert interval.low <= once.at_far(0.05).estimate <= interval.high
    assert once.at_far(0.05).far <= 0.05
    assert once.eer().interval().width > 0.0


def test_what_is_of_pooled_comparisons_is_refused() -> None:
    a, b = people(1, [3, 2] * 8), people(2, [3, 2] * 8)
    curve = mb.roc(a, weighting=ONCE)
    assert curve.weighting == ONCE
    far = mb.compare(a, b, threshold=0.5, weighting=ONCE).far
    calls = (
        lambda: curve.band(method="vertex"),
        lambda: curve.threshold_for(0.1),
        curve.eer().bootstrap,
        far.bootstrap,
    )
    refused(mb.UsageError, *(("pooled", call) for call in calls))
    refused(mb.UsageError, ("weighting", lambda: mb.roc(a, weighting="persons")))


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = people(5, [2, 3, 4, 5, 6] * 5)
    group = np.where(np.arange(25) % 2, "odd", "even")[data.codes]
    path = tmp_path / "people.npz"
    np.savez(path, embeddings=data.vectors, identity=data.codes, group=group)
    told = {}
    for verb, options in (
        ("roc", ["--far", "0.05"]),
        ("groups", ["--threshold", "0.6"]),
        ("compare", [str(path), "--threshold", "0.6"]),
    ):
        assert main([verb, str(path), *options, "--weighting", ONCE, "--format", "json", "--quiet"]) == 0
        told[verb] = json.loads(capsys.readouterr().out)
        assert told[verb]["provenance"]["parameters"]["weighting"] == ONCE
    point = mb.roc(data, weighting=ONCE).at_far(0.05)
    assert told["roc"]["results"][0]["estimate"] == pytest.approx(point.estimate)
    assert told["roc"]["results"][0]["weighting"] == ONCE
    frr = next(r for r in told["groups"]["results"] if r["metric"] == "frr")
    rates = mb.by_group(data, 0.6, group=group, weighting=ONCE)
    assert frr["estimate"] == pytest.approx(rates[frr.get("group", "even")].frr.estimate)
    assert told["compare"]["results"][0]["weighting"] == ONCE


def test_limits_along_a_curve_are_those_of_evaluate() -> None:
    data = people(3, [7] + [2, 3] * 10, noise=0.8)
    curve = mb.roc(data, weighting=ONCE)
    points = np.unique(np.linspace(0, len(curve) - 1, 40).astype(int))  # more than are counted at once
    for metric in ("far", "frr"):
        for method in ("auto", "wilson"):
            made = limits_at(curve, points, metric, 0.9, method)
            for k in (0, 7, 20, points.size - 1):
                rate = getattr(mb.evaluate(data, curve.thresholds[points[k]], weighting=ONCE), metric)
                expected = rate.interval(method, 0.9)
                assert (made.low[k], made.high[k]) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-12)
                assert made.upper[k] == pytest.approx(rate.upper_bound(0.9, method), rel=1e-9)


LARGE = people(5, [40] + [2] * 24, noise=0.8)
OTHER = people(6, [40] + [2] * 24, noise=0.8)
GROUPS = {name: "ab"[k % 2] for k, name in enumerate(LARGE.identities)}


@pytest.fixture(scope="module")
def report() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mb.make_report(LARGE, threshold=0.6, far=[0.1], group=GROUPS, against=OTHER, weighting=ONCE)


class TestAReportOfPeople:
    """``make_report(weighting="identities")``: one answer per page, and it is that of the weighting."""

    def test_every_number_is_that_of_evaluate_and_roc(self, report: Any) -> None:
        rates = mb.evaluate(LARGE, 0.6, weighting=ONCE)
        asked, aimed = report.points
        for number, rate in ((asked.far, rates.far), (asked.frr, rates.frr)):
            limits = rate.interval()
            assert number.estimate == pytest.approx(rate.estimate, rel=1e-12)
            assert (number.low, number.high) == pytest.approx((limits.low, limits.high), rel=1e-9)
            assert (number.errors, number.comparisons) == (rate.errors, rate.comparisons)
        at = mb.roc(LARGE, weighting=ONCE).at_far(0.1)
        assert aimed.frr.estimate == pytest.approx(at.estimate, rel=1e-12)
        assert aimed.frr.high == pytest.approx(at.interval().high, rel=1e-9)
        assert (aimed.frr.errors, aimed.frr.comparisons) == at.counts
        k, numbers = report.slider.start, report.slider.numbers
        assert numbers["far"][k] == pytest.approx(rates.far.estimate, rel=1e-12)
        assert numbers["frr_high"][k] == pytest.approx(rates.frr.interval().high, rel=1e-9)
        assert numbers["far_errors"][k] == rates.far.errors
        pooled = mb.make_report(LARGE, threshold=0.6, far=[0.1])
        assert abs(pooled.points[0].frr.estimate - rates.frr.estimate) > 0.01  # the two differ on these data
        assert report.histogram.impostor.tolist() == pooled.histogram.impostor.tolist()

    def test_drivers_are_people_with_equal_weights(self, report: Any) -> None:
        rate = mb.evaluate(LARGE, 0.6, weighting=ONCE).frr
        errors, made = rate.tally.genuine.errors[0], rate.tally.genuine.comparisons
        excess = errors[made > 0] / made[made > 0] - rate.estimate
        shown, parts = report.drivers[1]
        assert parts.share[made > 0] == pytest.approx(excess**2 / (excess**2).sum(), rel=1e-9)
        assert shown.estimate == pytest.approx(rate.estimate)

    def test_sections_follow_and_the_page_says_so(self, report: Any) -> None:
        groups = mb.by_group(LARGE, 0.6, group=GROUPS, weighting=ONCE)
        both = mb.compare(LARGE, OTHER, threshold=0.6, weighting=ONCE)
        assert report.groups is not None
        within = [r for r in report.group_records if r["what"] == "within" and r["metric"] == "frr"]
        assert [r["estimate"] for r in within] == pytest.approx([groups[name].frr.estimate for name in groups.groups])
        assert report.systems is not None
        row = next(r for r in report.systems.records if r["metric"] == "frr" and r["threshold_a"] == 0.6)
        assert (row["estimate"], row["low"]) == pytest.approx((both.frr.estimate, both.frr.interval().low), rel=1e-9)
        for form in ("html", "markdown"):
            assert "Every person counts once" in render(report, form)
        assert report.provenance["parameters"]["weighting"] == ONCE

    def test_failures_are_refused_before_anything_is_counted(self) -> None:
        with pytest.raises(mb.UsageError, match="pooled"):
            mb.make_report(LARGE, failures=mb.Failures.from_counts(fte=(1, 30)), weighting=ONCE)
        with pytest.raises(mb.UsageError, match="weighting"):
            mb.make_report(LARGE, weighting="persons")


def test_a_curve_of_people_that_cannot_have_every_step_is_refused_before_counting(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("matchbound.counting.recount.MOST_STEPS", 100)
    with pytest.raises(mb.DataError, match=r"make 861 comparisons, more than the 100.*evaluate"):
        mb.roc(people(1, [2] * 21), weighting=ONCE)
    monkeypatch.setattr("matchbound.counting.recount.EXACT_COMPARISONS", 100)
    monkeypatch.setattr("matchbound.counting.recount.MOST_STEPS", 1000)
    data = people(1, [2] * 21)
    assert len(mb.roc(data, weighting=ONCE)) == len(mb.roc(data.comparisons()))
    table = tmp_path / "scores.csv"
    table.write_text("identity_a,identity_b,score\na,a,1\na,b,0\nb,b,1\n")
    with pytest.raises(mb.DataError, match="stays on disk"):
        mb.roc(mb.scan(table), weighting=ONCE)


@given(tables(min_identities=4), st.integers(-2, 2).map(lambda s: s / 4))
def test_costs_and_linkage_by_identity_are_made_of_its_rates(rows: list, threshold: float) -> None:
    assume(both_kinds(rows))
    far = np.mean(list(shares(rows, threshold, True).values()))
    frr = np.mean(list(shares(rows, threshold, False).values()))
    rates = mb.evaluate(comparisons(rows), threshold, weighting=ONCE)
    assert rates.hter().estimate == pytest.approx((far + frr) / 2)
    if far > 0 or frr < 1:
        assert rates.precision(0.2).estimate == pytest.approx(0.2 * (1 - frr) / (0.2 * (1 - frr) + 0.8 * far))
    cuts = [-9.0, *(row[2] for row in rows), 9.0]
    by_cut = [
        (np.mean(list(shares(rows, t, True).values())), np.mean(list(shares(rows, t, False).values()))) for t in cuts
    ]
    least = min((0.3 * q + 0.7 * p) / 0.3 for p, q in by_cut)
    assert mb.roc(comparisons(rows), weighting=ONCE).min_dcf(0.3).estimate == pytest.approx(least)
