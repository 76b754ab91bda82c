"""``matchbound roc``: what the curve gives, in the layout of the contract, and pictures."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from conftest import DATA, golden_table, run_json
from matchbound.calls.evaluate import roc
from matchbound.cli import main

FILE = str(DATA / "larger.csv")


@pytest.mark.filterwarnings("ignore:the threshold for FRR")
def test_the_numbers_are_those_of_the_curve(capsys: pytest.CaptureFixture[str]) -> None:
    document = run_json(capsys, "roc", FILE, "--far", "0.1", "--far", "0.01", "--frr", "0.05", "--level", "0.9")
    curve = roc(golden_table("larger"))
    expected = [curve.at_far(0.1), curve.at_far(0.01), curve.at_frr(0.05), curve.eer(), curve.auc()]
    assert [row["metric"] for row in document["results"]] == ["frr@far", "frr@far", "far@frr", "eer", "auc"]
    assert [row["target"] for row in document["results"]] == [0.1, 0.01, 0.05, None, None]
    for row, point in zip(document["results"], expected, strict=True):
        assert {"metric", "threshold", "level", "errors", "comparisons", "variance", "design_effect"} <= set(row)
        interval = point.interval(level=0.9)
        assert (row["estimate"], row["low"], row["high"]) == (point.estimate, interval.low, interval.high)
        method = "influence" if row["metric"] == "auc" else "latent"
        assert (row["level"], row["method"], row["identities"]) == (0.9, method, curve.n_identities)
        assert row["effective_n"] == point.effective_n
        assert row["threshold"] == (None if row["metric"] == "auc" else point.threshold)
    first = document["results"][0]
    assert first["errors"] / first["comparisons"] == first["estimate"]
    assert first["design_effect"] == pytest.approx(first["comparisons"] / first["effective_n"])
    assert document["provenance"]["parameters"]["far"] == [0.1, 0.01]


@pytest.mark.parametrize("method", ["union", "latent", "vertex", "double-or-nothing"])
def test_methods(capsys: pytest.CaptureFixture[str], method: str) -> None:
    document = run_json(
        capsys, "roc", FILE, "--far", "0.1", "--method", method, "--resamples", "200", "--seed", "4", "--quiet"
    )
    curve = roc(golden_table("larger"))
    interval = curve.at_far(0.1).interval(method, n_resamples=200, rng=4)
    row, eer = document["results"][0], document["results"][1]
    assert (row["low"], row["high"], row["method"]) == (interval.low, interval.high, method)
    assert eer["method"] == ("latent" if method == "union" else method)


def test_default_targets_and_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roc", FILE]) == 0
    shown = capsys.readouterr()
    assert "FRR at FAR 0.1%" in shown.out
    assert "EER" in shown.out
    assert "95% intervals, latent, influence" in shown.out
    assert max(len(line) for line in shown.out.splitlines()) <= 80
    assert main(["roc", FILE, "--frr", "0.1", "--format", "csv", "-q"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["metric"] for row in rows] == ["far@frr", "eer", "auc"]
    assert rows[2]["threshold"] == ""


@pytest.mark.parametrize(
    ("name", "kind", "magic"),
    [("a.png", "det", b"\x89PNG"), ("b.svg", "roc", b"<?xml"), ("c.pdf", "scores", b"%PDF")],
)
def test_pictures(tmp_path: Path, name: str, kind: str, magic: bytes) -> None:
    command = ["roc", FILE, "-q", "--output", str(tmp_path / "table.txt"), "--kind", kind, "--plot"]
    assert main([*command, str(tmp_path / name)]) == 0
    made = (tmp_path / name).read_bytes()
    assert made.startswith(magic)
    assert main([*command, str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes() == made


def test_a_reader_with_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = DATA / "readers" / "kaldi"
    command = [str(folder / "trials"), str(folder / "scores"), "--reader", "kaldi"]
    command += ["--option", f"map={folder / 'utt2spk'}", "--quiet"]
    document = run_json(capsys, "roc", *command)
    assert document["results"][-1]["metric"] == "auc"
    assert document["provenance"]["parameters"]["reader"] == "kaldi"
    assert main(["report", *command, "-o", str(tmp_path / "report.md")]) == 0
    assert "| Reader | kaldi |" in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize("model", ["binormal", "kernel"])
def test_a_smoothed_interval_stands_beside_the_smoothed_estimate(
    capsys: pytest.CaptureFixture[str], model: str
) -> None:
    words = (FILE, "--far", "0.01", "--method", "double-or-nothing", "--smooth", model, "--resamples", "200", "--quiet")
    rows = run_json(capsys, "roc", *words)["results"]
    curve = roc(golden_table("larger"))
    assert rows[0]["estimate"] == pytest.approx(curve.at_far(0.01).smoothed(model))  # type: ignore[arg-type]
    assert rows[0]["empirical_estimate"] == curve.at_far(0.01).estimate
    for row in rows:
        assert (row["smooth"], row["method"]) == (model, f"double-or-nothing ({model})")
        assert row["low"] <= row["estimate"] <= row["high"]
    assert main(["roc", *words]) == 0
    assert f"FRR at FAR 1% ({model})" in capsys.readouterr().out


def test_the_union_rule_takes_the_level_of_the_authors(capsys: pytest.CaptureFixture[str]) -> None:
    words = (FILE, "--far", "0.05", "--method", "union", "--quiet")
    default, named = run_json(capsys, "roc", *words), run_json(capsys, "roc", *words, "--level-far", "0.9")
    assert default["results"] == named["results"]
    half = run_json(capsys, "roc", *words, "--level-far", "0.5")["results"][0]
    interval = roc(golden_table("larger")).at_far(0.05).interval("union", level_far=0.5)
    assert tuple(interval) == (half["low"], half["high"])


def test_fmr_and_fnmr_are_far_and_frr_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    answers = []
    for far, frr in (("--far", "--frr"), ("--fmr", "--fnmr")):
        assert main(["roc", FILE, far, "5%", frr, "0.1", "--method", "influence", "--format", "csv", "-q"]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    assert main(["plan", "--fmr", "0.01", "--upper", "0.03", "--method", "wilson", "--terms", "iso"]) == 0
    shown = capsys.readouterr().out
    assert "FMR" in shown
    assert "FAR" not in shown
