"""Commands in surroundings that are not as usual: closed streams, odd places, odd settings, too little memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from matchbound.cli import main

TABLE = "id_a,id_b,score\n" + "".join(f"p{i % 7},p{i % 5},{i % 10 / 10}\n" for i in range(200))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    path.write_text(TABLE)
    return path


def shell(words: str, table: Path, **settings: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command line, with ``matchbound evaluate`` for M."""
    command = words.replace("M", f"{sys.executable} -m matchbound evaluate scores.csv --threshold 0.5", 1)
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=table.parent,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_closed_streams_and_odd_places(table: Path) -> None:
    code, wanted, _ = shell("M", table)
    assert code == 0
    assert "FAR" in wanted
    assert shell("M 2>&-", table)[:2] == (0, wanted)
    code, _, said = shell("M >&-", table)
    assert code == 1
    assert "standard output" in said
    assert shell("M --output there.txt >&- 2>&-", table)[0] == 0
    assert (table.parent / "there.txt").read_text() == wanted
    assert shell("M --output /dev/stdout | cat", table)[:2] == (0, wanted)
    assert main(["evaluate", str(table), "--threshold", "0.5", "-q", "--output", "/dev/null"]) == 0


@pytest.mark.parametrize("columns", ["0", "-3", "x", "1"])
def test_a_terminal_that_does_not_know_its_width(
    columns: str, table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ([str(table), "--threshold", "0.5"], ["--help"]):
        monkeypatch.setenv("COLUMNS", columns)
        assert main(["evaluate", *words]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) > 40


@pytest.mark.parametrize(
    ("name", "value"), [("NUMBA_NUM_THREADS", "0"), ("NUMBA_NUM_THREADS", "many"), ("NUMBA_DISABLE_JIT", "1")]
)
def test_settings_with_which_nothing_can_be_counted(name: str, value: str, table: Path) -> None:
    command = f"{sys.executable} -m matchbound roc scores.csv"
    code, _, said = shell(command, table, **{name: value})
    assert code == 2
    assert name in said


def test_too_little_memory_is_reported_as_that(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def read_csv(*arguments: Any, **options: Any) -> Any:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr(pyarrow.csv, "read_csv", read_csv)
    assert main(["evaluate", str(table), "--threshold", "0.5"]) == 1
    assert "not enough memory" in capsys.readouterr().err


def test_a_scheduler_that_does_not_answer(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed")
    begun = time.monotonic()
    assert main(["evaluate", str(table), "--threshold", "0.5", "--dask", "tcp://127.0.0.1:1"]) == 1
    assert time.monotonic() - begun < 12
    assert "no scheduler answers" in capsys.readouterr().err
