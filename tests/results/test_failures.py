"""Failures to enrol and to acquire, generalised rates, missing scores, and true pairs that were never compared."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import matchbound as mb
from cases import refused
from conftest import DATA, golden_table, run_json
from matchbound.cli import main
from matchbound.data.values import rejected_score, uncompared_pairs
from matchbound.stats.failures import gfar_limits, gfrr_limits, gfrr_of, gfrr_variance

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
FILE = str(DATA / "larger.csv")


def naive_gfrr(people: list[tuple[int, int, int, int, int]]) -> tuple[float, float]:
    """GFRR and its variance, sums written out: (enrolled, tries, acquired, errors, compared) of each person."""
    n = len(people)
    e = sum(1 - p[0] for p in people) / n
    tries, compared = sum(p[1] for p in people), sum(p[4] for p in people)
    f = 1 - sum(p[2] for p in people) / tries
    q = sum(p[3] for p in people) / compared
    total = 0.0
    for enrolled, own, got, errors, made in people:
        psi = -((1 - enrolled) - e) / (n * (1 - e)) + (got - (1 - f) * own) / ((1 - f) * tries)
        psi -= (errors - q * made) / ((1 - q) * compared)
        total += psi * psi
    rate = e + (1 - e) * f + (1 - e) * (1 - f) * q
    return rate, (1 - rate) ** 2 * total * n / (n - 1)


PERSON = st.tuples(st.integers(0, 1), st.integers(1, 4), st.integers(0, 4), st.integers(0, 5), st.integers(0, 5)).map(
    lambda p: (p[0], p[1], min(p[2], p[1]), min(p[3], p[4]), p[4])
)


@given(st.lists(PERSON, min_size=2, max_size=8))
def test_gfrr_equals_its_twin(people: list[tuple[int, int, int, int, int]]) -> None:
    compared, errors = sum(p[4] for p in people), sum(p[3] for p in people)
    assume(any(p[0] for p in people) and any(p[2] for p in people) and compared > errors)
    rate, variance = naive_gfrr(people)
    columns = np.array(people).T
    made = mb.Failures(np.arange(len(people)), columns[0] == 1, columns[1], columns[2])
    assert gfrr_of(made.fte, made.fta, errors / compared) == pytest.approx(rate)
    assert gfrr_variance(made, columns[3], columns[4]) == pytest.approx(variance, abs=1e-15)


def test_gfrr_covers_when_one_trait_is_behind_all_three() -> None:
    """150 people, 6 tries, a latent trait behind enrolment, acquisition and match: 93% to 97% of 1,500 samples."""
    rng = np.random.default_rng(9)
    big = rng.normal(size=2_000_000)

    def chances(trait: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return tuple(1.0 / (1.0 + np.exp(a - trait)) for a in (4.3, 4.0, 3.3))  # type: ignore[return-value]

    enrol, acquire, match = chances(big)
    e, weight = enrol.mean(), 1 - enrol
    f = (weight * acquire).mean() / weight.mean()
    q = (weight * (1 - acquire) * match).mean() / (weight * (1 - acquire)).mean()
    truth = gfrr_of(e, f, q)
    held, runs = 0, 1500
    for _ in range(runs):
        one, two, three = chances(rng.normal(size=150))
        enrolled = rng.random(150) > one
        tries = np.where(enrolled, 6, 0)
        acquired = rng.binomial(tries, 1 - two)
        errors = rng.binomial(acquired, three)
        made = mb.Failures(np.arange(150), enrolled, tries, acquired)
        estimate = gfrr_of(made.fte, made.fta, errors.sum() / acquired.sum())
        low, high = gfrr_limits(estimate, gfrr_variance(made, errors, acquired), 150, 0.025)
        held += low <= truth <= high
    assert 0.93 <= held / runs <= 0.97


def failures(data: mb.Comparisons) -> mb.Failures:
    """Everybody compared, five tries each of which some failed, and two people who could not be enrolled."""
    people = [*data.identities.tolist(), "zz1", "zz2"]
    count = len(people)
    enrolled = [True] * (count - 2) + [False] * 2
    acquired = [5 - (k % 4 == 0) for k in range(count - 2)] + [0, 0]
    return mb.Failures(people, enrolled, [5] * (count - 2) + [0, 0], acquired)


def test_generalised_rates() -> None:
    data = golden_table("larger")
    rates = mb.evaluate(data, 0.5)
    lost = failures(data)
    made = rates.generalised(lost)
    assert lost.fte == pytest.approx(2 / 27)
    assert lost.fta == pytest.approx(7 / 125)
    kept = (25 / 27) * (118 / 125)
    assert made.gfrr.estimate == pytest.approx(1 - kept * (1 - rates.frr.estimate))
    assert made.gfar.estimate == pytest.approx(kept * rates.far.estimate)
    for rate in (made.gfar, made.gfrr):
        both = rate.interval()
        assert both.low < rate.estimate < both.high
        assert both.low < rate.interval(side="lower").low < rate.interval(side="upper").high < both.high
        assert rate.variance > 0.0
        assert not rate.notes
    g, e = rates.frr.tally.genuine.comparisons, rates.frr.tally.genuine.errors[0]
    counts = [(int(e[k]), int(g[k])) if k < 25 else (0, 0) for k in range(27)]
    columns = (lost.enrolled.tolist(), lost.tries.tolist(), lost.acquired.tolist())
    table = [(int(yes), own, got, *pair) for yes, own, got, pair in zip(*columns, counts, strict=True)]
    assert made.gfrr.variance == pytest.approx(naive_gfrr(table)[1])
    assert made.gfrr.claim(below=0.99).verdict == "shown"


def test_gfar_limits_by_hand() -> None:
    """Nothing lost: FMR's own limits. With A, squares add on the log scale; no false match has an upper limit."""
    assert gfar_limits(0.01, (0.005, 0.03), 1.0, 0.0, 100, 0.025) == pytest.approx((0.005, 0.03))
    low, high = gfar_limits(0.01, (0.005, 0.03), 0.9, 0.04**2, 10_000, 0.025)
    own = 1.9602 * 0.04
    assert high == pytest.approx(0.9 * 0.01 * math.exp(math.hypot(math.log(3), own)), rel=1e-4)
    assert low == pytest.approx(0.9 * 0.01 * math.exp(-math.hypot(math.log(2), own)), rel=1e-4)
    low, high = gfar_limits(0.0, (0.0, 0.03), 0.9, 0.04**2, 10_000, 0.025)
    assert low == 0.0
    assert high == pytest.approx(0.9 * 0.03 * math.exp(own), rel=1e-4)


def test_nothing_failed_is_not_certain() -> None:
    rows = [(f"p{i}", f"p{i}", 1.0) for i in range(30) for _ in range(3)]
    rows += [(f"p{i}", f"p{j}", 0.0) for i in range(30) for j in range(i)]
    data = mb.Comparisons(*zip(*[(a, b, s) for a, b, s in rows], strict=True))
    made = mb.evaluate(data, 0.5).generalised(mb.Failures([f"p{i}" for i in range(30)])).gfrr
    assert made.estimate == 0.0
    assert made.interval().low == 0.0
    assert 0.05 < made.interval().high < 0.2


@pytest.mark.parametrize("method", ["auto", "wilson"])
@pytest.mark.parametrize("failed", [0, 3])
def test_gfrr_is_not_bounded_below_fnmr(method: str, failed: int) -> None:
    """Nor below what FNMR's own limit makes of the failures as they are: no claim about GFRR says more than FNMR."""
    rates = mb.evaluate(golden_table("larger"), 0.5)
    gfrr = rates.generalised(mb.Failures.from_counts(fta=(failed, 125), fte=(0, 27))).gfrr
    for level in (0.9, 0.99):
        own = rates.frr.interval(method, level).high
        assert gfrr.interval(method, level).high >= max(own, 1.0 - (1.0 - failed / 125) * (1.0 - own) - 1e-12)
        assert gfrr.upper_bound(level, method) >= rates.frr.upper_bound(level, method)


def test_the_method_of_the_command_holds_for_generalised_rates(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--threshold", "0.5", "--fta", "12/900", "--method", "wilson", "--claim", "gfar<50%"]
    made = run_json(capsys, "evaluate", FILE, *asked)
    assert [made["results"][2]["method"], made["claims"][0]["method"]] == ["wilson, MOVER", "wilson, MOVER"]


def test_totals_only_say_so() -> None:
    rates = mb.evaluate(golden_table("larger"), 0.5)
    made = rates.generalised(mb.Failures.from_counts(fta=(7, 125), fte=(2, 27))).gfrr
    assert made.estimate == rates.generalised(failures(golden_table("larger"))).gfrr.estimate
    assert "not known who failed" in made.interval().notes[0]
    assert made.interval().low < made.estimate < made.interval().high


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mb.Failures(["a", "a"]), "more than once"),
        (lambda: mb.Failures(["a"], [2]), "true and false"),
        (lambda: mb.Failures(["a"], None, [1], [2]), "more samples acquired"),
        (lambda: mb.Failures(["a"], None, [1]), "both tries"),
        (lambda: mb.Failures(["a"], None, [1.5], [1]), "whole numbers"),
        (lambda: mb.Failures(["a"], [1, 0]), "one entry per row"),
        (lambda: mb.Failures.from_counts(), "give fta"),
        (lambda: mb.Failures.from_counts(fta=(3, 2)), "fta must be"),
    ],
)
def test_refusals(make: object, message: str) -> None:
    with pytest.raises(mb.MatchboundError, match=message):
        make()  # type: ignore[operator]


def test_what_failed_cannot_be_written_over() -> None:
    made = mb.Failures(["a", "b"], [1, 0], [2, 0], [1, 0])
    for array in (made.identities, made.enrolled, made.tries, made.acquired):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


def test_somebody_compared_must_be_listed() -> None:
    with pytest.raises(mb.DataError, match="p01 was compared"):
        _ = mb.evaluate(golden_table("larger"), 0.5).generalised(mb.Failures(["p00"])).gfrr.variance


def test_people_without_enrolment_who_tried_or_were_compared_are_told_of() -> None:
    rates = mb.evaluate(golden_table("larger"), 0.5)
    people = rates.far.tally.identities
    enrolled = np.arange(people.size) > 0
    with pytest.warns(mb.MatchboundWarning, match=r"and 2 attempts of theirs in FTA as well; 1 of them were compared"):
        rates.generalised(mb.Failures(people, enrolled, 2 * np.ones(people.size, int), np.ones(people.size, int)))
    assert rates.generalised(failures(golden_table("larger"))).gfrr.notes == ()


def test_a_table_of_attempts(tmp_path: Path) -> None:
    path = tmp_path / "attempts.csv"
    path.write_text("Identity,acquired,enrolled\nann,1,yes\nann,0,yes\nbob,true,yes\ncy,,no\n")
    made = mb.read_failures(path)
    assert made.identities.tolist() == ["ann", "bob", "cy"]
    assert (made.fte_counts, made.fta_counts) == ((1, 3), (1, 3))
    path.write_text("identity,enrolled\nann,1\nbob,0\n")
    assert mb.read_failures(path).fte == 0.5
    for text, message in (
        ("identity,acquired\nann,maybe\n", "line 2: acquired is maybe"),
        ("name,acquired\nann,1\n", "no column 'identity'"),
        ("identity,score\nann,1\n", "a table of attempts has columns"),
        ("identity,acquired,enrolled\nann,1,1\nann,1,0\n", "some rows"),
        ("identity,enrolled\nann,\n", "enrolled is missing"),
    ):
        path.write_text(text)
        with pytest.raises(mb.DataError, match=message):
            mb.read_failures(path)


def test_on_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked = ["evaluate", FILE, "--threshold", "0.5"]
    rows = {r["metric"]: r for r in run_json(capsys, *asked, "--fta", "7/125", "--fte", "2/27", "-q")["results"]}
    made = mb.evaluate(golden_table("larger"), 0.5).generalised(mb.Failures.from_counts(fta=(7, 125), fte=(2, 27)))
    assert rows["gfrr"]["estimate"] == made.gfrr.estimate
    assert rows["gfar"]["high"] == made.gfar.interval().high
    assert rows["gfar"]["fta"] == pytest.approx(7 / 125)
    attempts = tmp_path / "attempts.csv"
    names = golden_table("larger").identities
    attempts.write_text("identity,acquired\n" + "".join(f"{name},1\n{name},{k % 2}\n" for k, name in enumerate(names)))
    rows = {r["metric"]: r for r in run_json(capsys, *asked, "--failures", str(attempts), "-q")["results"]}
    assert rows["gfrr"]["fta"] == pytest.approx(sum(k % 2 == 0 for k in range(len(names))) / (2 * len(names)))
    wrong = [["--claim", "gfrr<99%"], *(["--fta", bad] for bad in ("7", "9/7", "a/b", "1/0"))]
    for options in (*wrong, ["--fta", "1/2", "--failures", str(attempts)]):
        assert main([*asked, *options]) == 2


MISSING = "id_a,id_b,score\na,a,0.9\na,a,\na,b,0.2\nb,b,nan\na,b,\nb,b,0.7\n"


def test_missing_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(MISSING)
    dropped, rejected = (mb.read(path, missing=what) for what in ("drop", "reject"))
    assert (len(dropped), len(rejected)) == (3, 6)
    assert "3 of 6 comparisons have no score and were left out" in dropped.findings()[0]
    assert "3 of 6 comparisons have no score and count as rejected" in rejected.findings()[0]
    rates = mb.evaluate(rejected, 0.2)
    assert (rates.frr.errors, rates.frr.comparisons) == (2, 4)
    assert (rates.far.errors, rates.far.comparisons) == (1, 2)
    far = mb.evaluate(mb.read(path, missing="reject", distance=True), 0.9)
    assert (far.frr.errors, far.far.errors) == (2, 1)
    document = run_json(capsys, "evaluate", str(path), "--threshold", "0.2", "--missing", "reject")
    assert document["results"][1]["errors"] == 2
    assert document["provenance"]["parameters"]["missing"] == "reject"
    assert any("count as rejected" in text for text in document["warnings"])
    assert main(["evaluate", str(path), "--threshold", "0.2"]) == 1
    refused(mb.DataError, ("line 3: score is missing", lambda: mb.read(path)))
    refused(mb.UsageError, ("missing must be", lambda: mb.read(path, missing="guess")))
    path.write_text("id_a,id_b,score\na,a,\na,b,\n")
    refused(mb.DataError, ("no row has a score", lambda: mb.read(path, missing="reject")))


def test_missing_scores_elsewhere(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"id_a": ["a", "a", "b"], "id_b": ["a", "b", "b"], "score": [0.9, None, float("nan")]})
    assert len(mb.read(table, missing="drop")) == 1
    pq.write_table(table, tmp_path / "s.parquet")
    assert mb.evaluate(mb.read(tmp_path / "s.parquet", missing="reject"), 0.5).frr.errors == 1


def test_rejected_scores_lie_beyond_all() -> None:
    assert rejected_score(np.array([1.0, 3.0]), False) == -2.0
    assert rejected_score(np.array([1.0, 3.0]), True) == 6.0


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_pairs_that_were_not_compared(cluster: list[int], random: object) -> None:
    everything = [(i, j) for i in range(len(cluster)) for j in range(i + 1, len(cluster))]
    compared = [pair for pair in everything if random.random() < 0.5]  # type: ignore[attr-defined]
    expected = {(i, j) for i, j in everything if cluster[i] == cluster[j]} - set(compared)
    first, second = (np.array([p[k] for p in compared], dtype=np.int64) for k in (0, 1))
    made = uncompared_pairs(np.array(cluster), second, first)
    assert set(zip(*(side.tolist() for side in made), strict=True)) == expected
    assert len(made[0]) == len(expected)


def test_blocked_out_true_pairs_are_misses(tmp_path: Path) -> None:
    """Two clusters of three records: six true pairs, four of them proposed."""
    pairs, clusters = tmp_path / "pairs.csv", tmp_path / "clusters.csv"
    pairs.write_text("unique_id_l,unique_id_r,match_weight\n1,2,5\n1,3,4\n4,5,3\n4,6,-1\n1,4,-6\n2,5,4\n3,6,-8\n")
    clusters.write_text("unique_id,cluster\n1,a\n2,a\n3,a\n4,b\n5,b\n6,b\n")
    data = mb.read([pairs, clusters], reader="splink")
    rates = mb.evaluate(data, 0.0)
    assert (rates.frr.errors, rates.frr.comparisons) == (3, 6)
    assert (rates.far.errors, rates.far.comparisons) == (1, 3)
    assert rates.recall().estimate == 0.5
    assert "2 true pairs were not proposed by blocking" in data.findings()[0]
    assert len(mb.read([pairs, clusters], reader="splink", blocked="leave")) == 7
    cluster = {"1": "a", "2": "a", "3": "a", "4": "b", "5": "b", "6": "b"}
    header, *rows = [line.split(",") for line in pairs.read_text().split()]
    lines = [[*header, "cluster_l", "cluster_r"], *([*row, cluster[row[0]], cluster[row[1]]] for row in rows)]
    both = tmp_path / "both.csv"
    both.write_text("\n".join(map(",".join, lines)))
    same = mb.read(both)
    assert (same.score.tolist(), same.genuine.tolist()) == (data.score.tolist(), data.genuine.tolist())
    assert len(mb.read(both, reader="splink", blocked="leave")) == 7
    both.write_text("\n".join(map(",".join, [*lines, ["1", "6", "2", "b", "b"]])))
    refused(mb.DataError, ("record 1 has another cluster", lambda: mb.read(both)))
    for text, words in (
        ("unique_id,cluster\n1,a\n2,a\n3,a\n4,b\n5,b\n", "record 6 has no cluster"),
        ("unique_id,cluster\n1,a\n1,b\n", "more than once"),
        ("unique_id,name\n1,a\n", "column of clusters"),
    ):
        clusters.write_text(text)
        refused(mb.DataError, (words, lambda: mb.read([pairs, clusters], reader="splink")))


def test_scores_without_identities() -> None:
    rng = np.random.default_rng(4)
    own, other = rng.normal(2.0, 1.0, 200), rng.normal(-2.0, 1.0, 3000)
    data = mb.Comparisons.from_scores(own, other)
    assert data.anonymous
    assert not golden_table("larger").anonymous
    rates, curve = mb.evaluate(data, 0.0), mb.roc(data)
    assert rates.far.estimate == pytest.approx((other >= 0).mean())
    assert any("carry no identities" in text for text in rates.warnings)
    assert any("carry no identities" in text for text in curve.warnings)
    naive = rates.far.estimate * (1 - rates.far.estimate) / 3000
    assert rates.far.variance == pytest.approx(naive)
    for number in (curve.min_dcf(0.05), curve.actual_dcf(0.05), curve.cllr(), curve.min_cllr(), rates.precision(0.1)):
        made = number.interval()
        assert made.method.startswith("naive")
        assert made.low < number.estimate < made.high
    flipped = mb.Comparisons.from_scores(-own, -other, distance=True)
    assert mb.evaluate(flipped, 0.0).far.errors == rates.far.errors
    with pytest.raises(mb.DataError, match="score"):
        mb.Comparisons.from_scores([np.nan], [1.0])
