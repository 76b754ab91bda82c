"""What a report says: every number is what the library gives, on any data."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import matchbound as mb
import naive_report
from matchbound.calls.evaluate import roc
from matchbound.counts.tally import GenuineTally
from matchbound.report import render
from matchbound.report.make import data_digest, make_report
from matchbound.report.page import Report
from matchbound.show.figures import score_histogram, spread_points
from matchbound.stats.variance import Contributions, contributions, rate_of_part
from strategies import comparisons, tables

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


@pytest.fixture(scope="module")
def demo() -> mb.Embeddings:
    return mb.demo_data()


@pytest.fixture(scope="module")
def report(demo: mb.Embeddings) -> Report:
    return make_report(demo, far=[1e-1, 1e-2, 1e-3], threshold=0.62)


# Contributions


@pytest.mark.parametrize("metric", ["far", "frr"])
@given(rows=tables(), distance=st.booleans())
def test_contributions_equal_their_naive_twin(metric: str, rows: list, distance: bool) -> None:
    assume(any((a != b) == (metric == "far") for a, b, _ in rows))
    data = comparisons(rows, distance)
    counted = mb.tally(data, [0.1])
    part = counted.impostor if metric == "far" else counted.genuine
    found = contributions(rate_of_part(part, 0, 1.0))
    expected = naive_report.parts(rows, 0.1, metric, distance)
    total = sum(item.excess**2 for item in expected.values())
    for i, name in enumerate(counted.identities):
        twin = expected[str(name)]
        assert (part.errors[0, i], part.comparisons[i]) == (twin.errors, twin.comparisons)
        assert found.excess[i] == pytest.approx(twin.excess, abs=1e-12)
        assert found.share[i] == pytest.approx(twin.excess**2 / total if total > 1e-20 else 0.0, abs=1e-9)
        if twin.rate_without is None:
            assert math.isnan(found.rate_without[i])
        else:
            assert found.rate_without[i] == pytest.approx(twin.rate_without, abs=1e-12)


def test_the_shares_of_frr_make_its_variance(report: Report, demo: mb.Embeddings) -> None:
    rate = mb.evaluate(demo, 0.62).frr
    found = contributions(rate.unit)
    assert (found.excess**2).sum() / rate.comparisons**2 == pytest.approx(rate.variance, rel=1e-12)
    assert found.share.sum() == pytest.approx(1.0)
    assert np.array_equal(report.drivers[1][1].share, found.share)


def test_how_few_make_half() -> None:
    def of(errors: list[int], comparisons: list[int]) -> Contributions:
        return contributions(rate_of_part(GenuineTally(np.array(comparisons), np.array([errors])), 0, 4.0))

    found = of([9, 0, 0, 0], [10, 10, 10, 10])
    assert found.how_many_make(0.5) == 1
    assert found.largest(2)[0] == 0
    assert found.how_many_make(1.0) == 4
    even = of([1, 1], [5, 5])
    assert even.how_many_make(0.5) == 0
    assert even.largest(3).size == 0


# Histograms


@given(rows=tables(max_rows=60), distance=st.booleans())
def test_histograms_of_a_curve_with_every_step_are_exact(rows: list, distance: bool) -> None:
    assume(any(a != b for a, b, _ in rows) and any(a == b for a, b, _ in rows))
    curve = roc(comparisons(rows, distance))
    made = score_histogram(curve.tally, curve.recount.tally, bins=5)
    assume(made.outside == 0)  # a score far from all others is left out
    for kind, counts in (("genuine", made.genuine), ("impostor", made.impostor)):
        scores = [s for a, b, s in rows if (a == b) == (kind == "genuine")]
        assert counts.sum() == len(scores)
        if made.edges.size > 2:
            edges = made.edges.tolist()
            # the ends are put where the curve's ends are, an ulp beyond the scores
            edges[-1], edges[0] = max(edges[-1], max(scores) + 1e-9), min(edges[0], min(scores) - 1e-9)
            assert counts.tolist() == naive_report.histogram(scores, edges, distance)
    assert made.outside == 0


# The slider


def check_slider(data: mb.Comparisons | mb.Embeddings, report: Report, picks: np.ndarray) -> None:
    """The slider at some of its points against `evaluate`, by the threshold and by its reading."""
    slider = report.slider
    numbers = slider.numbers
    thresholds = numbers["threshold"][picks].tolist()
    readings = [float(slider.readings[k]) for k in picks] if slider.exact else thresholds
    aimed = [point.threshold for point in report.points if point.target is not None]
    for k, rates, again in zip(picks, mb.evaluate(data, thresholds), mb.evaluate(data, readings), strict=True):
        assert (again.far.errors, again.frr.errors) == (rates.far.errors, rates.frr.errors)
        for rate, total in zip((rates.far, rates.frr), slider.totals, strict=True):
            name = rate.metric
            assert (rate.errors, rate.comparisons) == (numbers[f"{name}_errors"][k], total)
            assert numbers[name][k] == rate.estimate
            if name == "frr" and numbers["threshold"][k] in aimed:
                continue  # there the page accounts for the estimated threshold
            interval = rate.interval(level=report.level)
            assert numbers[f"{name}_low"][k] == pytest.approx(interval.low, rel=1e-9, abs=1e-15)
            assert numbers[f"{name}_high"][k] == pytest.approx(interval.high, rel=1e-9)
            assert numbers[f"{name}_upper"][k] == pytest.approx(rate.upper_bound(report.level), rel=1e-9)


def test_the_slider_is_what_evaluate_gives(demo: mb.Embeddings, report: Report) -> None:
    assert 200 < len(report.slider) <= 400
    assert np.all(np.diff(report.slider.numbers["threshold"]) > 0)
    check_slider(demo, report, np.arange(0, len(report.slider), 11))
    assert report.slider.readings[report.slider.start] == "0.62"
    for point in report.points:  # the slider shows what the table says
        (k,) = np.flatnonzero(report.slider.numbers["threshold"] == point.threshold)
        for name, stated in (("far", point.far), ("frr", point.frr)):
            limits = [report.slider.numbers[f"{name}_{side}"][k] for side in ("low", "high")]
            assert limits == pytest.approx([stated.low, stated.high], rel=1e-6)
            assert stated.method == "latent"


@settings(max_examples=20)
@given(rows=tables(min_identities=3, max_rows=60), distance=st.booleans())
def test_the_slider_of_any_table_is_what_evaluate_gives(rows: list, distance: bool) -> None:
    assume(any(a != b for a, b, _ in rows) and any(a == b for a, b, _ in rows))
    data = comparisons(rows, distance)
    made = make_report(data, far=0.3, level=0.9)
    check_slider(data, made, np.arange(len(made.slider)))  # all at once: the latent model is fitted to all of them


def test_spread_points_reach_into_both_tails() -> None:
    far = np.linspace(0.0, 1.0, 100_001) ** 3
    frr = 1.0 - np.linspace(0.0, 1.0, 100_001)
    chosen = spread_points(far, frr, 300, np.array([17, 4000]))
    assert chosen.size <= 302
    assert {17, 4000} <= set(chosen.tolist())
    assert np.count_nonzero((far[chosen] > 0) & (far[chosen] < 1e-6)) > 30
    assert np.count_nonzero((frr[chosen] > 0) & (frr[chosen] < 1e-3)) > 10


# Operating points and the rest


def test_operating_points_are_those_of_the_curve(demo: mb.Embeddings, report: Report) -> None:
    curve = roc(demo)
    assert [point.target for point in report.points] == [None, 1e-1, 1e-2, 1e-3]
    rates = mb.evaluate(demo, 0.62)
    asked = report.points[0]
    for claim, rate in ((asked.far, rates.far), (asked.frr, rates.frr)):
        interval = rate.interval()
        assert (claim.estimate, claim.low, claim.high) == (rate.estimate, interval.low, interval.high)
        assert claim.upper == rate.upper_bound()
        with pytest.warns(mb.MatchboundWarning):
            naive = rate.interval("naive-wilson")
        assert claim.naive_ratio == pytest.approx(interval.width / naive.width, rel=1e-12)
    for point in report.points[1:]:
        assert point.target is not None
        aim = curve.at_far(point.target)
        assert point.threshold == aim.threshold
        assert (point.frr.estimate, point.frr.low, point.frr.high) == (aim.estimate, *aim.interval())
        assert point.frr.upper == aim.interval(side="upper").high
        fixed = mb.evaluate(demo, float(point.reading))
        assert point.far.errors == fixed.far.errors
        assert point.frr.errors == fixed.frr.errors
    assert (report.eer.low, report.eer.high) == tuple(curve.eer().interval())
    assert (report.auc.low, report.auc.high) == tuple(curve.auc().interval())


def test_the_focus_is_what_was_asked_or_what_the_data_support(demo: mb.Embeddings, report: Report) -> None:
    assert report.focus == 0
    assert report.drivers[0][0].threshold == 0.62
    supported = make_report(demo, far=[1e-1, 1e-2, 1e-3, 1e-6])
    point = supported.points[supported.focus]
    assert point.target == 1e-3
    assert min(point.far.errors or 0, point.frr.errors or 0) >= 10


def test_default_targets_are_those_that_the_data_support() -> None:
    small = mb.demo_data(n_identities=25, seed=1)
    assert [point.target for point in make_report(small).points] == [0.1, 0.01]


@pytest.mark.parametrize("method", ["vertex", "latent"])
def test_another_method_and_level(method: str) -> None:
    demo, drawn = mb.demo_data(n_identities=40), {"n_resamples": 200, "rng": 3}
    made = make_report(demo, threshold=0.62, far=1e-2, method=method, level=0.9, **drawn)  # type: ignore[arg-type]
    interval = mb.evaluate(demo, 0.62).far.interval(method, 0.9, **(drawn if method == "vertex" else {}))
    assert (made.points[0].far.low, made.points[0].far.high) == (interval.low, interval.high)
    assert made.points[1].frr.method == method
    section = next(section for section in made.document().sections if section.key == "method")
    assert method in dict(section.facts)["Methods used here"]


def test_groups(demo: mb.Embeddings, report: Report) -> None:
    assert list(report.group_records) == mb.by_group(demo, 0.62).to_records()
    rows = demo.codes < 25
    assert make_report(mb.Embeddings(demo.vectors[rows], demo.codes[rows])).groups is None


def test_labels_are_hidden_unless_asked_for(demo: mb.Embeddings, report: Report) -> None:
    def people(made: Report) -> list[str]:
        drivers = next(section for section in made.document().sections if section.key == "drivers")
        return [row[0] for part in drivers.parts for table in part.tables for row in table.rows]

    assert people(report) == [f"person\u00a0{letter}{rank}" for letter in "AR" for rank in range(1, 9)]
    shown = people(replace(report, show_labels=True))
    assert set(shown) <= set(demo.identities.tolist())
    assert shown[0] == str(demo.identities[report.drivers[0][1].share.argmax()])


def test_warnings_are_said_and_kept() -> None:
    data = mb.demo_data(n_identities=12, seed=2)
    with pytest.warns(mb.MatchboundWarning, match="only 12 identities"):
        made = make_report(data)
    assert any("only 12 identities" in text for text in made.warnings)
    assert len(made.warnings) == len(set(made.warnings))


def test_provenance_knows_the_data(demo: mb.Embeddings, report: Report) -> None:
    assert report.provenance["version"] == mb.__version__
    assert report.provenance["input"] == data_digest(demo)
    assert report.provenance["parameters"]["threshold"] == [0.62]
    assert data_digest(mb.demo_data(seed=8)) != data_digest(demo)


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([("a", "b", 0.1), ("a", "c", 0.2), ("a", "a", 0.9), ("b", "b", 0.8)], "perfect separation"),
        ([("a", "b", 0.5), ("a", "c", 0.5), ("a", "a", 0.5), ("b", "b", 0.5)], "one score"),
        ([("a", "b", 0.9), ("a", "a", 0.1)], "always wrong"),
        ([("a", "b", 1e-30), ("b", "c", 2e-30), ("a", "a", 3e-30)], "tiny scores"),
        ([("a", "b", -1e12), ("b", "c", 1e12), ("a", "a", 3.0)], "huge scores"),
    ],
)
def test_awkward_data_still_make_a_report(rows: list, what: str) -> None:
    made = make_report(comparisons(rows))
    for form in ("html", "markdown", "latex"):
        assert not re.search(r"\b(nan|inf|infinity)\b", render(made, form), re.IGNORECASE), what
    assert made.points[0].far.comparisons == sum(a != b for a, b, _ in rows)


def test_wrong_arguments() -> None:
    demo = mb.demo_data(n_identities=25)
    for options, match in (
        ({"method": "magic"}, "method"),
        ({"far": "low"}, "far"),
        ({"threshold": [math.nan]}, "finite"),
        ({"far": []}, "far holds no rates"),
        ({"far": 2.0}, "between 0 and 1"),
        ({"level": 95}, "level"),
    ):
        with pytest.raises(mb.UsageError, match=match):
            make_report(demo, **options)  # type: ignore[arg-type]
    with pytest.raises(mb.DataError, match="no genuine"):
        make_report(comparisons([("a", "b", 0.1)]))


def test_scores_that_stand_in_for_others_do_not_stretch_the_histogram() -> None:
    rng = np.random.default_rng(2)
    who = rng.integers(0, 20, (3000, 2))
    score = rng.normal(np.where(who[:, 0] == who[:, 1], 2.0, 0.0), 1.0)
    score[:200] = -1e6  # pairs that were never compared
    for sign, distance in ((1.0, False), (-1.0, True)):
        curve = roc(mb.Comparisons(who[:, 0], who[:, 1], sign * score, distance=distance))
        made = score_histogram(curve.tally, curve.recount.tally)
        assert np.abs(made.edges).max() < 10.0
        assert 200 <= made.outside <= 203
        assert made.genuine.sum() + made.impostor.sum() + made.outside == 3000


def test_the_report_of_a_large_set_reads_its_points_where_the_curve_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matchbound.counting.recount.EXACT_COMPARISONS", 10)
    demo = mb.demo_data(n_identities=60)
    data = mb.Embeddings(demo.vectors, demo.identities[demo.codes], "euclidean", instance=demo.instance)
    curve = mb.roc(data)
    report = mb.make_report(data, far=[0.1, 0.01], threshold=0.912345678)
    assert report.slider.numbers["threshold"][report.slider.start] == 0.912345678
    assert not report.slider.exact
    check_slider(data, report, np.arange(len(report.slider)))
    for point, far in zip(report.points[1:], (0.1, 0.01), strict=True):
        aim = curve.at_far(far)
        for threshold in (point.threshold, aim.threshold):  # between two scores, any threshold is as good
            assert point.far.errors == mb.evaluate(data, threshold).far.errors
        assert point.far.estimate == aim.far <= far
        assert point.frr.estimate == aim.estimate
    edges, scores = report.histogram.edges, data.comparisons()
    assert np.ptp(np.diff(edges)) < 1e-9  # even bins: no shelf at either end
    for kind, counts in ((scores.genuine, report.histogram.genuine), (~scores.genuine, report.histogram.impostor)):
        assert counts.tolist() == naive_report.histogram(scores.score[kind].tolist(), edges.tolist(), True)
