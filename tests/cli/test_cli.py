"""The command line: golden values through it, formats, exit codes, and what goes where."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conftest import DATA, golden_expected, run_json
from matchbound.cli import main
from matchbound.cli.app import VERBS, build

EXPECTED = golden_expected()


@pytest.mark.parametrize("name", list(EXPECTED))
@pytest.mark.parametrize(("method", "level"), [("wilson", "0.9"), ("wald", "0.99"), ("naive-wilson", "0.95")])
def test_golden_values_through_the_command_line(
    capsys: pytest.CaptureFixture[str], name: str, method: str, level: str
) -> None:
    asked = [f"--threshold={case['threshold']}" for case in EXPECTED[name]]
    document = run_json(capsys, "evaluate", str(DATA / f"{name}.csv"), *asked, "--method", method, "--level", level)
    rows = iter(document["results"])
    for case in EXPECTED[name]:
        for metric in ("far", "frr"):
            target = case[metric]
            low, high = target[method][level]
            assert next(rows) == {
                "metric": metric,
                "threshold": case["threshold"],
                "method": method,
                "level": float(level),
                "errors": target["errors"],
                "comparisons": target["comparisons"],
                "identities": case["identities"],
                "low": pytest.approx(low, rel=1e-9, abs=1e-15),
                "high": pytest.approx(high, rel=1e-9, abs=1e-15),
                "design_effect": pytest.approx(target["comparisons"] / target["effective_n"], rel=1e-9),
                **{k: pytest.approx(target[k], rel=1e-9, abs=1e-15) for k in ("estimate", "variance", "effective_n")},
            }


def test_json_holds_warnings_and_provenance(capsys: pytest.CaptureFixture[str]) -> None:
    document = run_json(
        capsys, "evaluate", str(DATA / "balanced.csv"), "--threshold", "0.3", "--method", "naive-wilson"
    )
    assert any("naive-wilson" in text for text in document["warnings"])
    assert any("only 6 identities" in text for text in document["warnings"])
    source = document["provenance"]
    assert source["input"].startswith("sha256:")
    assert source["seed"] == 0
    assert source["parameters"]["method"] == "naive-wilson"
    assert source["version"]


def test_same_seed_same_output(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", str(DATA / "larger.csv"), "--threshold", "0.4", "--method", "vertex", "--resamples", "300"]
    first = run_json(capsys, *command, "--seed", "3")
    again = run_json(capsys, *command, "--seed", "3")
    other = run_json(capsys, *command, "--seed", "4")
    assert first["results"] == again["results"]
    assert first["results"] != other["results"]


def test_csv_and_table(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", str(DATA / "larger.csv"), "--threshold", "0.4"]
    assert main([*command, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["metric"] for row in rows] == ["far", "frr"]
    assert float(rows[0]["low"]) < float(rows[0]["estimate"]) < float(rows[0]["high"])
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "FAR" in shown.out
    assert "95% intervals, latent" in shown.out
    assert max(len(line) for line in shown.out.splitlines()) <= 80
    assert "\x1b[" not in shown.out
    assert "warning: " in shown.err
    assert main([*command, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_output_goes_to_a_file_whole_or_not_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "answer.json"
    command = ["evaluate", str(DATA / "larger.csv"), "--threshold", "0.4", "--format", "json"]
    assert main([*command, "--output", str(target)]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(target.read_text())["results"]
    for ending, begins in ((".json", "{"), (".csv", "metric,"), (".txt", "metric ")):  # the ending is the format
        assert main([*command[:-2], "-qo", str(target.with_suffix(ending))]) == 0
        assert target.with_suffix(ending).read_text().startswith(begins)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".csv", ".json", ".txt"]


def test_a_rate_without_comparisons_is_null(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("id_a,id_b,score\na,b,0.5\nb,c,0.1\n")
    document = run_json(capsys, "evaluate", str(path), "--threshold", "0.3")
    row = document["results"][1]
    assert row["metric"] == "frr"
    assert row["estimate"] is row["low"] is row["high"] is row["variance"] is None
    assert any("FRR is not defined" in text for text in document["warnings"])


def test_check_describes_tables_and_embeddings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(DATA / "incomplete.csv")]) == 0
    shown = capsys.readouterr().out
    assert "identities" in shown
    assert "107" in shown
    document = run_json(capsys, "check", str(DATA / "unbalanced.csv"))
    row = document["results"][0]
    assert (row["n_identities"], row["n_genuine"], row["n_impostor"], row["n_single"]) == (6, 20, 100, 2)
    assert row["complete"] is True
    path = tmp_path / "faces.npz"
    rng = np.random.default_rng(0)
    np.savez(path, embeddings=rng.standard_normal((12, 8)).astype("f4"), identity=np.repeat(list("abcd"), 3))
    row = run_json(capsys, "check", str(path))["results"][0]
    assert (row["kind"], row["n_genuine"], row["n_impostor"], row["dimensions"]) == ("embeddings", 12, 54, 8)


def test_check_takes_rows_without_identities_for_comparisons_and_not_for_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("y_true,y_score\n" + "1,0.9\n0,0.2\n" * 20)
    row = run_json(capsys, "check", str(path))["results"][0]
    assert row["lowest_frr"] == pytest.approx(1 - 0.05 ** (1 / 20))
    assert row["surest_far"] is row["surest_frr"] is None
    assert main(["check", str(path)]) == 0
    assert "people" not in capsys.readouterr().out.partition("What to look at")[0]


def test_check_notices_a_distance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "distances.csv"
    path.write_text("id_a,id_b,score\na,a,0.1\na,a,0.2\na,b,0.9\nb,c,0.8\n")
    assert any("--distance" in text for text in run_json(capsys, "check", str(path))["warnings"])
    assert not any("--distance" in text for text in run_json(capsys, "check", str(path), "--distance")["warnings"])


def test_a_real_process_and_standard_input() -> None:
    text = (DATA / "balanced.csv").read_text()
    done = subprocess.run(
        [sys.executable, "-m", "matchbound", "evaluate", "-", "--threshold", "-0.753262", "--format", "json"],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["results"][0]["errors"] == 135
    piped = json.loads(done.stdout)["provenance"]["input"]
    import hashlib

    assert piped == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_an_example_and_every_option_is_explained(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert f"Example: matchbound {verb}" in capsys.readouterr().out
    for argument in build(verb)[verb].assemble_argument_collection(parse_docstring=True):
        assert argument.children or argument.parameter.help, argument.name
    shared = {"--dask", "--checkpoint"} if verb in ("evaluate", "roc", "report") else set()
    assert shared <= {argument.name for argument in build(verb)[verb].assemble_argument_collection()}


def test_help_is_in_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--help"]) == 0
    text = capsys.readouterr().out
    parts = ["Parameters", "Reading the files", "Long runs", "Output", "For a laboratory", "Example:"]
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
    assert "default: False" not in text


def test_reader_options_reach_the_reader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("left;right;value\na;b;0.5\nb;c;0.1\na;a;0.9\n")
    command = ["evaluate", str(path), "--threshold", "0.3"]
    named = ["columns.id_a=left", "columns.id_b=right", "columns.score=value", "delimiter=;"]
    given = [word for option in named for word in ("--option", option)]
    document = run_json(capsys, *command, *given)
    assert [row["errors"] for row in document["results"]] == [1, 0]


@pytest.mark.parametrize("verb", ["check", "evaluate --threshold 0.5"])
def test_an_option_that_the_verb_lacks_is_named_with_a_verb_that_has_it(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    owner = np.repeat(np.arange(31), [60, *[2] * 30])
    path = tmp_path / "uneven.npz"
    np.savez(path, embeddings=np.random.default_rng(0).normal(size=(owner.size, 8)), identity=owner)
    assert main([*verb.split(), str(path)]) == 0
    shown = capsys.readouterr()
    (told, *_) = re.findall(r"\(--weighting identities([^)]*)\)", " ".join((shown.out + shown.err).split()))
    assert told == ("" if "evaluate" in verb else " of matchbound evaluate")
