"""A digest is that of what was counted: a file that changes meanwhile is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import matchbound as mb
from matchbound.cli import command as running
from matchbound.cli import main
from matchbound.files.opening import file_digest, open_input, watching
from matchbound.readers import text as text_reader
from matchbound.readers.scan import scan_scores
from matchbound.report.make import data_digest

ROWS = 3000


def vectors() -> Any:
    return np.random.default_rng(0).standard_normal((ROWS, 100)).astype(np.float32)


def embeddings(path: Path) -> Path:
    np.savez(path, embeddings=vectors(), identity=np.arange(ROWS) // 2)
    return path


def scores(path: Path, score: float = 0.5) -> Path:
    rows = "".join(f"p{k},p{k % 7},{score}\n" for k in range(40))
    path.write_text(f"id_a,id_b,score\n{rows}")
    return path


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().replace(b"0.5", b"0.7"))
    os.replace(other, path)


def appended(path: Path) -> None:
    with open(path, "ab") as stream:
        stream.write(b"x,y,0.9\n")


def removed(path: Path) -> None:
    path.unlink()


CHANGES = pytest.mark.parametrize("change", [replaced, appended, removed])


@CHANGES
@pytest.mark.parametrize("verb", ["evaluate", "check"])
def test_the_digest_is_of_what_was_counted(
    verb: str,
    change: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The digest was taken after the run: a file that was replaced meanwhile got the new digest beside old counts."""
    path = scores(tmp_path / "s.csv")
    command = [verb, str(path), *(["--threshold", "0.6"] if verb == "evaluate" else []), "--format", "json"]
    wanted = file_digest(path)
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["provenance"]["input"] == wanted
    before = running.provenance

    def later(*arguments: Any, **options: Any) -> Any:
        change(path)
        return before(*arguments, **options)

    monkeypatch.setattr(running, "provenance", later)
    assert main(command) == 1
    out, err = capsys.readouterr()
    assert not out
    assert "s.csv" in err
    assert "while it was being used" in err


@CHANGES
def test_a_table_on_disk_that_changes_between_passes(change: Callable[[Path], None], tmp_path: Path) -> None:
    table = mb.scan(scores(tmp_path / "s.csv"))
    with pytest.warns(mb.MatchboundWarning):
        mb.evaluate(table, 0.6)
    assert [origin.path for origin in table.origin] == [tmp_path / "s.csv"]
    change(tmp_path / "s.csv")
    with pytest.raises(mb.DataError, match=r"changed while|is gone|no such file"):
        mb.evaluate(table, 0.6)


def test_a_table_on_disk_that_changes_during_a_pass(tmp_path: Path) -> None:
    who = [f"p{k}" for k in range(50)]
    path = tmp_path / "s.parquet"
    parquet.write_table(pa.table({"id_a": who, "id_b": who, "score": np.full(50, 0.5)}), path, row_group_size=10)
    batches = scan_scores(mb.scan(path))
    next(batches)
    os.utime(path)
    with pytest.raises(mb.DataError, match="changed while"):
        list(batches)


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = scores(tmp_path / "s.csv")
    before = text_reader.build

    def later(*arguments: Any, **options: Any) -> Any:
        appended(path)
        return before(*arguments, **options)

    monkeypatch.setattr(text_reader, "build", later)
    with pytest.raises(mb.DataError, match="changed while"):
        mb.read(path)


def test_data_know_where_they_came_from(tmp_path: Path) -> None:
    path, labels = tmp_path / "e.npy", tmp_path / "labels.txt"
    np.save(path, np.ones((3, 2)))
    labels.write_text("a\nb\nc\n")
    data = mb.read(path)
    assert [origin.path for origin in data.origin] == [path, labels]
    assert mb.Embeddings(np.eye(2), [1, 2]).origin == ()
    with watching() as opened:
        open_input(path)
    assert [source.name for source in opened] == [str(path)]
    open_input(labels)
    assert len(opened) == 1


@pytest.mark.parametrize("name", ["e.npz", "e.npy"])
def test_arrays_are_those_that_were_read(name: str, tmp_path: Path) -> None:
    """Whatever becomes of the file: a mapped one that was cut short ended the process."""
    path = tmp_path / name
    if name == "e.npz":
        embeddings(path)
    else:
        np.save(path, vectors())
        np.save(tmp_path / "labels.npy", np.arange(ROWS) // 2)
    data = mb.read(path)
    assert isinstance(data, mb.Embeddings)
    os.truncate(path, 200_000)
    np.testing.assert_array_equal(data.vectors, vectors())
    with pytest.raises(mb.DataError, match="changed while"):
        data.origin[0].check()


def test_digests_of_data_do_not_depend_on_where_they_are(tmp_path: Path) -> None:
    data = mb.read(embeddings(tmp_path / "e.npz"))
    assert isinstance(data, mb.Embeddings)
    assert data_digest(data) == data_digest(mb.Embeddings(vectors(), np.arange(ROWS) // 2))
    names = [f"p{k}" for k in range(30)]
    long = mb.Comparisons(names, [*names[:-1], "z" * 500], np.arange(30.0))
    assert data_digest(long) == data_digest(mb.Comparisons(names, [*names[:-1], "z" * 500], np.arange(30.0)))
