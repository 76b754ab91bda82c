"""What leaves the house, and what a command line may do to files: names, secrets, formulas, places, odd numbers."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from matchbound.cli import main

ROWS = [("a", "b", 0.1), ("a", "a", 0.9), ("b", "b", 0.4), ("a", "c", 0.6), ("c", "c", 0.7), ("b", "c", 0.2)]


def write(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("id_a,id_b,score\n" + "".join(f"{a},{b},{s}\n" for a, b, s in ROWS))
    return path


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    return write(tmp_path / "secret-project" / "scores.csv")


# ---- names and secrets


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        *((f"compare A B --threshold 0.5 --format {form}", "scores.csv") for form in ("json", "csv", "table")),
        ("report A --against B --format html", "2: scores.csv"),
        ("evaluate A --threshold 0.2 --format json --checkpoint HERE/run.ck", "scores.csv"),
    ],
)
def test_no_answer_tells_where_files_lie(
    command: str, shown: str, scores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two files of one name have numbers."""
    other = write(tmp_path / "other-client" / "scores.csv")
    words = command.replace("HERE", str(scores.parent)).split()
    assert main([{"A": str(scores), "B": str(other)}.get(word, word) for word in words]) == 0
    out, err = capsys.readouterr()
    assert shown in out or "--format csv" in command
    for hidden in ("secret-project", "other-client", str(tmp_path)):
        assert hidden not in out + err


# ---- labels that a fuzzer found


def test_a_command_is_not_told_of_the_files_of_an_earlier_one(
    scores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write(tmp_path / "gone.csv")
    assert main(["evaluate", str(other), "--threshold-from", "nowhere.csv"]) == 1  # after reading
    other.unlink()
    assert main(["evaluate", str(scores), "--threshold", "0.5", "-q"]) == 0, capsys.readouterr().err


# ---- formulas


def test_groups_named_like_formulas_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    identity = np.repeat([f"p{i}" for i in range(12)], 3)
    group = np.repeat(["=cmd|' /C calc'!A0", "@SUM(1)"], 18)
    np.savez(tmp_path / "x.npz", embeddings=rng.normal(size=(36, 4)), identity=identity, group=group)
    assert main(["groups", str(tmp_path / "x.npz"), "--threshold", "0.3", "--format", "csv", "-q"]) == 0
    for row in csv.reader(io.StringIO(capsys.readouterr().out)):
        for cell in row:
            assert cell[:1] not in ("=", "@")


def test_a_latex_table_of_such_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    identity = np.repeat([f"p{i}" for i in range(12)], 3)
    np.savez(
        tmp_path / "x.npz",
        embeddings=rng.normal(size=(36, 4)),
        identity=identity,
        group=np.repeat(["[2cm]", "*"], 18),
    )
    assert main(["report", str(tmp_path / "x.npz"), "--format", "latex", "-q", "--threshold", "0.3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    after_rows = [line for before, line in itertools.pairwise(lines) if before.endswith("\\\\")]
    assert any("2cm" in line for line in after_rows)
    assert not any(line.lstrip().startswith(("[", "*")) for line in after_rows)


# ---- places


def test_a_dash_is_standard_output(
    scores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["--output", "-"], ["-o", "-"], ["--output=-"]):
        assert main(["evaluate", str(scores), "--threshold", "0.5", "--format", "csv", "-q", *words]) == 0
        assert capsys.readouterr().out.startswith("metric,")
    assert [item.name for item in tmp_path.iterdir()] == ["secret-project"]


# ---- odd numbers


@pytest.mark.parametrize("target", ["5e-324", "2.5e-308"])
def test_a_target_below_all_rates_is_printed(target: str, scores: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(scores), "--far", target, "--format", "markdown", "-q"]) == 0
    assert target.partition("e")[2] in capsys.readouterr().out


def test_a_defect_is_one_line_and_its_own_exit_code(
    scores: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("lost at https://ann:pw@host/x?sig=1")

    monkeypatch.setattr("matchbound.calls.evaluate.evaluate", broken)
    assert main(["evaluate", str(scores), "--threshold", "0.5"]) == 70
    said = capsys.readouterr().err
    assert "defect of matchbound" in said
    assert "pw" not in said
    assert "Traceback" not in said


def test_notes_of_many_groups_take_few_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"p{i},p{j},{(i * 7 + j) % 10 / 10},g{i % 12},g{j % 12}" for i in range(144) for j in range(i, 144, 12)]
    (tmp_path / "s.csv").write_text("\n".join(["id_a,id_b,score,sex_a,sex_b", *rows]))
    words = ["groups", str(tmp_path / "s.csv"), "--group", "sex", "--threshold", "2", "--format", "json"]
    assert main(words) == 0
    answer, said = capsys.readouterr()
    assert len(json.loads(answer)["warnings"]) > 12
    assert 0 < len(said.splitlines()) < 10
