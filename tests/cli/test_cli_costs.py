"""Costs, linkage, claims, ISO's terms and a laboratory's entries on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import DATA, golden_table, run_json
from matchbound.calls.evaluate import evaluate, roc
from matchbound.cli import main
from matchbound.cli.command import command_line
from matchbound.show.terms import say, speaking

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
FILE = str(DATA / "larger.csv")


def test_costs(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--far", "0.1", "--min-dcf", "0.01", "--min-dcf", "sre16", "--act-dcf", "0.05", "--cllr"]
    document = run_json(capsys, "roc", FILE, *options)
    rows = document["results"][3:]
    curve = roc(golden_table("larger"))
    expected = [
        curve.min_dcf(0.01),
        curve.min_dcf("sre16"),
        curve.actual_dcf(0.05),
        curve.cllr(),
        curve.min_cllr(),
    ]
    assert [row["metric"] for row in rows] == ["mindcf", "mindcf", "actdcf", "cllr", "mincllr"]
    for row, made in zip(rows, expected, strict=True):
        assert {"metric", "threshold", "level", "errors", "comparisons", "variance", "design_effect"} <= set(row)
        interval = made.interval()
        assert (row["estimate"], row["low"], row["high"]) == (made.estimate, interval.low, interval.high)
        assert row["method"] == interval.method != "auto"
        assert row["variance"] == made.variance
    assert rows[0]["target"] == 0.01
    assert rows[0]["threshold"] == curve.min_dcf(0.01).threshold
    assert rows[1]["preset"] == "sre16"


def test_log_t_is_a_method(capsys: pytest.CaptureFixture[str]) -> None:
    row = run_json(capsys, "roc", FILE, "--min-dcf", "0.05", "--method", "log-t")["results"][-1]
    assert row["method"] == "log-t"
    assert row["low"] == pytest.approx(0.6491732962444056)


def test_linkage(capsys: pytest.CaptureFixture[str]) -> None:
    document = run_json(capsys, "evaluate", FILE, "--threshold", "0.6", "--prior", "0.01", "--linkage")
    rates = evaluate(golden_table("larger"), 0.6)
    rows = {(row["metric"], row.get("prior")): row for row in document["results"]}
    assert [row["metric"] for row in document["results"]] == [
        "far",
        "frr",
        "precision",
        "precision",
        "f1",
        "f1",
        "recall",
    ]
    assert rows["precision", 0.01]["estimate"] == rates.precision(0.01).estimate
    assert rows["precision", 0.01]["high"] == rates.precision(0.01).interval().high
    assert rows["f1", rates.f1().prior]["low"] == rates.f1().interval().low
    assert rows["recall", None]["estimate"] == rates.recall().estimate
    assert main(["evaluate", FILE, "--threshold", "0.6", "--prior", "0.01"]) == 0
    assert "prior: share of genuine comparisons" in capsys.readouterr().out


def test_claims(capsys: pytest.CaptureFixture[str]) -> None:
    claims = ["--claim", "far<50%", "--claim", "frr@far=1e-2<99.9%"]
    document = run_json(capsys, "evaluate", FILE, "--threshold", "0.6", *claims)
    assert [row["verdict"] for row in document["claims"]] == ["shown", "shown"]
    far = evaluate(golden_table("larger"), 0.6).far
    assert document["claims"][0]["bound"] == far.upper_bound()
    assert document["claims"][0]["threshold"] == 0.6
    assert document["claims"][1]["bound"] == roc(golden_table("larger")).at_far(1e-2).interval(side="upper").high
    assert "frr@far" in [row["metric"] for row in document["results"]]


def test_a_claim_that_is_not_shown_is_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    document = run_json(
        capsys, "evaluate", FILE, "--threshold", "0.6", "--threshold", "0.9", "--claim", "far<1e-4", code=3
    )
    assert [row["verdict"] for row in document["claims"]] == ["refuted", "not shown"]
    assert main(["evaluate", FILE, "--threshold", "0.9", "--claim", "far<1e-4", "--quiet"]) == 3
    shown = capsys.readouterr()
    assert shown.out.startswith("NOT SHOWN: FAR below 0.01% at threshold 0.9. The one-sided upper bound")
    assert "Rule of 3: no error in 4,009 comparisons" in shown.out
    assert shown.err == ""
    assert main(["roc", FILE, "--claim", "eer<1%", "--quiet"]) == 3


def test_verdicts_stand_beside_a_table_of_commas(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", FILE, "--threshold", "0.5", "--claim", "far<1e-7", "--format", "csv"]
    assert main(words) == 3
    printed = capsys.readouterr()
    assert printed.out.startswith("metric,")
    assert "FAR below" in printed.err
    assert main([*words, "--quiet"]) == 3
    assert capsys.readouterr().err.startswith("REFUTED")  # the verdict is an answer


def test_claims_about_a_curve_need_no_threshold(capsys: pytest.CaptureFixture[str]) -> None:
    document = run_json(capsys, "evaluate", FILE, "--claim", "mindcf@prior=0.05<1.5", "--claim", "eer<50%")
    assert {row["metric"] for row in document["results"]} == {"mindcf", "eer"}


def test_terms(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", FILE, "--threshold", "0.6", "--terms", "iso", "--claim", "far<50%"]) == 0
    shown = capsys.readouterr().out
    assert "FMR" in shown
    assert "FNMR" in shown
    assert "FAR" not in shown
    assert "FRR" not in shown
    assert shown.startswith("SHOWN: FMR below 50%")
    assert main(["roc", FILE, "--far", "0.01", "--terms", "iso", "--quiet"]) == 0
    assert "FNMR at FMR 1%" in capsys.readouterr().out
    document = run_json(capsys, "roc", FILE, "--far", "0.01", "--terms", "iso")
    assert document["results"][0]["metric"] == "frr@far"


def test_terms_change_words_and_not_markup() -> None:
    assert say("FAR") == "FAR"
    with speaking("iso"):
        assert say("GFAR, FAR and FRRs of False accepts") == "GFAR, FMR and FNMRs of False matches"
        assert say("a false reject") == "a false non-match"


def test_a_laboratory(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    entries = ["--system", "Matcher 2.1", "--operator", "A. Person", "--test-id", "T-7", "--date", "2026-11-01"]
    made = run_json(capsys, "roc", FILE, *entries, "--note", "room=12 lx", "--note", "device = cam 3")["provenance"]
    assert made["laboratory"] == {
        "system": "Matcher 2.1",
        "operator": "A. Person",
        "test_id": "T-7",
        "date": "2026-11-01",
        "room": "12 lx",
        "device": "cam 3",
    }
    assert made["command"].startswith("matchbound roc larger.csv --system 'Matcher 2.1'")
    assert str(tmp_path.parent) not in made["command"]


def test_the_command_line_holds_no_folder() -> None:
    files = {"/secret/place/a.csv", "s3://bucket/k/b.csv", "https://me:word@host/x.csv?token=abc"}
    words = ["evaluate", "/secret/place/a.csv", "--output=/secret/x.json", "s3://bucket/k/b.csv", "--title", "A/B"]
    assert command_line(words, files) == "matchbound evaluate a.csv b.csv --title A/B"
    assert command_line([], files) is None
    words = ["roc", "a.csv", "--workers", "2", "--checkpoint=run.ck", "-q"]
    assert command_line(words, files) == "matchbound roc a.csv -q"
    words = ["roc", "https://me:word@host/x.csv?token=abc", "--option", "key=abc", "--option=key=abc"]
    hidden = command_line(words, files)
    assert hidden == "matchbound roc x.csv --option 'key=…' '--option=key=…'"
    assert command_line(["roc", "<stdin>"], files) == "matchbound roc -"


def test_scores_that_are_not_log_likelihood_ratios_are_noticed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "s.csv"
    for scale, noticed in ((0.1, True), (3.0, False)):
        rows = [f"p{i},p{j},{scale * ((i == j) * 4 - 2 + (i + j) % 3)}" for i in range(12) for j in range(i + 1)]
        path.write_text("id_a,id_b,score\n" + "\n".join(rows) + "\n")
        assert main(["roc", str(path), "--cllr", "--method", "influence"]) == 0
        assert ("natural log-likelihood ratios" in capsys.readouterr().err) == noticed


def test_claims_about_differences_and_groups(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["compare", FILE, FILE, "--threshold", "0.4", "--claim", "dfrr<50%", "--format", "json", "-q"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["passed"] is True
    assert document["claims"][0]["verdict"] == "shown"
    people = golden_table("larger").identities.tolist()
    table = tmp_path / "people.csv"
    table.write_text("identity,side\n" + "".join(f"{who},{'ab'[k % 2]}\n" for k, who in enumerate(people)))
    words = ["groups", FILE, "--people", str(table), "--group", "side", "--threshold", "0.4", "--format", "json", "-q"]
    assert main([*words, "--claim", "frr gap<0.01%"]) == 3
    assert json.loads(capsys.readouterr().out)["passed"] is False
