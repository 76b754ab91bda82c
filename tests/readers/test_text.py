"""Delimited text in blocks: the same rows however it is cut, decimal commas, progress, and files without a header."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchbound as mb
from filecontents import put
from matchbound.cli import main
from matchbound.readers import text as text_reader
from matchbound.readers.scan import scan_scores

names = st.sampled_from(["ann", "eve", "Zoë 李", "b;c", "x" * 70])
rows = st.lists(st.tuples(names, names, st.integers(-999, 999)), min_size=1, max_size=30)


@given(rows, st.integers(40, 400), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_blocks_give_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, int]],
    size: int,
    end: str,
    blank: bool,
    closed: bool,
) -> None:
    lines = [f"{a},{b},{score / 8}" for a, b, score in rows]
    text = (end * 2 if blank else end).join(["id_a,id_b,score", *lines]) + (end if closed else "")
    path = put(tmp_path_factory.mktemp("text") / "s.csv", text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_reader, "BLOCK_BYTES", size)
        found = mb.read(path)
        batches = list(scan_scores(mb.scan(path)))
    assert found.score.tolist() == [score / 8 for _, _, score in rows]
    assert found.identities[found.a].tolist() == [a for a, _, _ in rows]
    assert found.identities[found.b].tolist() == [b for _, b, _ in rows]
    assert [score for batch in batches for score in batch.score.tolist()] == found.score.tolist()
    assert [name for batch in batches for name in batch.a.decoded().tolist()] == [a for a, _, _ in rows]


def test_an_error_names_its_line(tmp_path: Path) -> None:
    for bad, why in (
        ("a,b,x", "score is 'x'"),
        ("a,b", "2 columns"),
        ("a,b,", "score is missing"),
        (",b,1", "id_a is empty"),
    ):
        path = put(tmp_path / "s.csv", "id_a,id_b,score\n" + "ann,eve,0.5\n" * 500 + f"{bad}\n")
        with pytest.raises(mb.DataError, match=f"line 502: {why}"):
            mb.read(path)
    scan = mb.scan(put(tmp_path / "s.csv", "id_a,id_b,score\n" + "ann,eve,0.5\n" * 800_000 + "a,b,x\n"))
    with pytest.raises(mb.DataError, match="line 800002: score is 'x'"):  # in a later block
        mb.evaluate(scan, 0.5)


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_decimal_commas(delimiter: str, tmp_path: Path) -> None:
    text = "id_a;id_b;score\na;b;0,25\na;a;-1,5e-1\nb;b;3\n".replace(";", delimiter)
    path = put(tmp_path / "s.csv", text)
    found = mb.read(path)
    assert found.score.tolist() == [0.25, -0.15, 3.0]
    assert any("decimal commas" in note for note in found.findings())
    scan = mb.scan(path)
    assert mb.evaluate(scan, 0.2).far.errors == 1
    assert any("decimal commas" in note for note in scan.findings())
    mixed = text + ("b;a;0,75\n" * 100 + "b;a;0.5\n").replace(";", delimiter)
    with pytest.raises(mb.DataError, match=r"line 105: score is '0\.5', and other rows have decimal commas"):
        mb.read(put(path, mixed))
    vectors = put(tmp_path / "e.csv", "identity;feature_0;feature_1\na;0,5;1\nb;1;0,5\n".replace(";", delimiter))
    data = mb.read(vectors)
    assert data.vectors.tolist() == [[0.5, 1.0], [1.0, 0.5]]


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_files_and_frames_are_read_where_data_are_expected(tmp_path: Path) -> None:
    import pyarrow as pa

    rng = np.random.default_rng(0)
    who, whom, score = rng.integers(0, 40, 500), rng.integers(0, 40, 500), rng.standard_normal(500)
    columns: dict[str, Any] = {"id_a": who, "id_b": whom, "score": score, "group_a": who % 2, "group_b": whom % 2}
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path = put(tmp_path / "s.csv", "\n".join([",".join(columns), *lines]))
    data = mb.read(path)
    for source in (path, str(path), pa.table(columns)):
        assert mb.evaluate(source, 0.5).far.errors == mb.evaluate(data, 0.5).far.errors
        assert mb.roc(source).eer().estimate == mb.roc(data).eer().estimate
        assert mb.by_group(source, 0.5).groups == ("0", "1")
        assert mb.compare(source, path, threshold=(0.5, 0.5)).matched == 500
    with pytest.raises(mb.UsageError, match="data must be Comparisons or Embeddings"):
        mb.evaluate(3, 0.5)  # type: ignore[call-overload]
    with pytest.raises(mb.DataError, match="no such file"):
        mb.evaluate("none.csv", 0.5)


WITH_INSTANCES = "id_a,instance_a,id_b,instance_b,score\nann,1,ann,2,0.9\nann,1,eve,1,0.2\neve,1,eve,2,0.7\n"


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
@pytest.mark.parametrize("tail", ["\n\n", ",,,,\n,,,,\n", "\n , ,,,\r\n", ',,,,""\n', ",,,,"])
def test_blank_rows_at_the_end(tail: str, tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(WITH_INSTANCES + tail)
    assert mb.read(path).score.tolist() == [0.9, 0.2, 0.7]
    assert mb.evaluate(mb.scan(path), 0.5).far.comparisons == 1


# --- files without a header ---


@pytest.mark.parametrize("between", [" ", "\t", ","])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_scores_and_labels_without_a_header(between: str, order: tuple[int, int], tmp_path: Path) -> None:
    rows = [("0.5", "target"), ("-1.25", "nontarget"), ("1", "target")]
    path = put(tmp_path / "s", "".join(between.join([row[order[0]], row[order[1]]]) + "\n" for row in rows))
    found = mb.read(path)
    assert found.score.tolist() == [0.5, -1.25, 1.0]
    assert found.genuine.tolist() == [True, False, True]
    assert any("no header" in note for note in found.findings())


def test_scores_of_wespeaker(tmp_path: Path) -> None:
    text = "id1/a.wav id1/b.wav 0.71 target\nid1/a.wav id2/c.wav 0.02 nontarget\n"
    found = mb.read(put(tmp_path / "vox.score", text))
    assert found.score.tolist() == [0.71, 0.02]
    assert found.genuine.tolist() == [True, False]
    assert any("reader='kaldi'" in note for note in found.findings())
    with pytest.raises(mb.DataError, match="are not recognised"):
        mb.read(put(tmp_path / "other", "1 1\n0 1\n"))


def test_messages_speak_of_options_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two = put(tmp_path / "two.csv", "Score,score,id_a,id_b\n1,2,a,b\n")
    assert main(["check", str(two)]) == 1
    assert "give --option columns.score=…" in capsys.readouterr().err
    clash = put(tmp_path / "clash.csv", "id_a,id_b,score,genuine\na,b,1,1\n")
    assert main(["check", str(clash)]) == 1
    assert "give --option columns.genuine=" in capsys.readouterr().err
    assert main(["check", str(clash), "--option", "columns.genuine="]) == 0
    capsys.readouterr()
    trials = put(tmp_path / "trials", "a b target\n")
    assert main(["check", str(trials), "--reader", "kaldi"]) == 1
    assert "give both files (trials, scores) and --reader kaldi" in capsys.readouterr().err
