"""Lists without a header, read block by block: the same as line by line, and never all text at once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import matchbound as mb
from filecontents import packed, put
from matchbound.data.values import FAILED
from matchbound.errors import spelled
from matchbound.files.opening import Input
from matchbound.readers import infer, text
from matchbound.readers.layouts import lists
from matchbound.readers.options import Options
from matchbound.readers.read import is_trial_list
from naive_readers import components_by_search, fields_by_line, map_by_line

WORDS = ("a", "b", "target", "0", "1", "-2.5", "+3", "1e400", "nan", "é", "x" * 40, '"q', "", "\ufeff", "n\0l")
BETWEEN = (" ", " ", " ", "  ", "\t", ",", ", ", "\xa0", "\x1c", "\r")
ENDS = ("\n", "\n", "\n", "\r\n", "\r", "\n\n", " \n", "\n \r\n", "\u2003\n", "")


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    """Lists that are mostly regular, with anything in them that makes lines and fields hard to see."""
    width = draw(st.integers(1, 4))
    words, between, ends = (draw(st.lists(st.sampled_from(x), min_size=1, max_size=4)) for x in (WORDS, BETWEEN, ENDS))
    made = draw(st.sampled_from(["", "", "\ufeff", "\n", "a b\n"]))
    for _ in range(draw(st.integers(0, 12))):
        fields = [draw(st.sampled_from(words)) for _ in range(width + draw(st.sampled_from([0] * 15 + [1])))]
        made += draw(st.sampled_from(between)).join(fields) + draw(st.sampled_from(ends))
    raw = made.encode()
    return raw + draw(st.sampled_from([b"", b"", b"", b"\xff", b"a"]))


def told(call: Any) -> Any:
    """What a call gives, or the message of its error."""
    try:
        return call()
    except mb.DataError as error:
        return str(error)


LINES = ("one", "one two", "one two three", "one two three four")


@settings(max_examples=150, deadline=None)
@given(
    contents(),
    st.sampled_from([(1,), (2,), (3, 4), (2, 3)]),
    st.sampled_from([None, ","]),
    st.booleans(),
    st.sampled_from([1, 7, 30, 1 << 20]),
    st.booleans(),
)
def test_blocks_are_the_same_as_lines(
    raw: bytes, widths: tuple[int, ...], delimiter: str | None, headed: bool, size: int, scored: bool
) -> None:
    """The columns of a list are those that Python finds line by line, or the same line is refused."""
    source = Input("list.txt", None, raw)
    if told(lambda: source.kind) not in ("text", "empty"):
        return
    layouts = [LINES[width - 1].split() for width in widths]
    layouts = [[*names[:-1], "score"] if scored else names for names in layouts]

    def found() -> list[list[Any]]:
        table = text.read_list(source, [" ".join(x) for x in layouts], delimiter=delimiter, headed=headed)
        names = [name for name in table.data.column_names if name != "score"]
        columns = [table.coded(name).decoded().astype(str).tolist() for name in names]
        columns += [table.numbers("score").tolist()] if scored else []
        places = [table.where(row) for row in range(table.data.num_rows)]
        return [places, *columns]

    def expected() -> list[list[Any]]:
        places, rows = fields_by_line(raw, "list.txt", widths, delimiter, int(headed), scored)
        columns: list[list[Any]] = [[row[k] for row in rows] for k in range(len(rows[0]))]
        if scored:
            columns[-1] = [float(word) for word in columns[-1]]
        for column in columns[: len(columns) - scored]:
            for place, word in zip(places, column, strict=True):
                if "\0" in word:
                    raise mb.DataError(f"{place}: NUL")
        for place, number in zip(places, columns[-1] if scored else [], strict=False):
            if not np.isfinite(number):
                raise mb.DataError(f"{place}: score is missing or infinite")
        return [places, *columns]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", size)
        assert place_or_value(found) == place_or_value(expected)


def place_or_value(call: Any) -> Any:
    """What a call gives, or the place that the message of its error begins with."""
    made = told(call)
    return re.findall(r"^list.txt(?:, line \d+)?", made) if isinstance(made, str) else made


def test_components_are_found_by_walking() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        n = int(rng.integers(1, 30))
        first, second = rng.integers(0, n, (2, int(rng.integers(0, 40))))
        edges = list(zip(first.tolist(), second.tolist(), strict=True))
        assert infer.components(n, first, second).tolist() == components_by_search(n, edges)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")), min_size=1, max_size=12))
def test_a_map_is_that_of_its_lines(rows: list[tuple[str, str]]) -> None:
    source = Input("map", None, "".join(f"{a} {b}\n" for a, b in rows).encode())
    assert told(lambda: lists.read_map(source)) == told(lambda: map_by_line(rows, "map"))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from("12")), min_size=1, max_size=8),
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy")), min_size=1, max_size=8),
)
def test_scores_are_joined_by_name(scores: list[tuple[str, str, str]], wanted: list[tuple[str, str]]) -> None:
    """A pair with two scores is an error, then a trial without one, each with its line."""
    listed = Input("scores", None, "".join(f"{a} {b} {s}\n" for a, b, s in scores).encode())
    keys = Input("trials", None, "".join(f"{a} {b} n\n" for a, b in wanted).encode())
    known: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for line, (a, b, score) in enumerate(scores, start=1):
        known.setdefault((a, b), []).append((line, score))
    expected: Any = None
    for (a, b), found in sorted(known.items()):
        other = [line for line, score in found if score != found[0][1]]
        if other:
            expected = f"scores, line {other[0]}: {a} {b} has another score in an earlier line; keep one"
            break
    lost = [(line, pair) for line, pair in enumerate(wanted, start=1) if pair not in known]
    if expected is None and lost:
        line, (a, b) = lost[0]
        expected = (
            f"trials, line {line}: no score for {a} {b} in scores ({len(lost)} of {len(wanted)} trials have none); "
            f"{spelled(FAILED)}"
        )
    if expected is None:
        expected = [float(known[pair][0][1]) for pair in wanted]
    assert told(lambda: lists.read_kaldi([keys, listed], Options()).score.tolist()) == expected


@pytest.mark.parametrize("missing", ["error", "reject"])
def test_scores_with_the_names_in_the_other_order_are_not_missing(missing: str, tmp_path: Path) -> None:
    (tmp_path / "trials").write_text("1 p/a p/b\n0 p/a q/c\n1 q/c q/d\n")
    (tmp_path / "scores").write_text("p/a p/b 0.9\nq/c p/a 0.1\nq/d q/c 0.8\n")
    with pytest.raises(mb.DataError, match=r"line 2: .*scores has q/c p/a, in the other order \(2 of 3 trials\)"):
        mb.read([tmp_path / "trials", tmp_path / "scores"], reader="voxceleb", missing=missing)


def test_sides_of_segments(tmp_path: Path) -> None:
    """Sides differ in case only, in a key of several blocks; the names are those of the first lines."""
    (tmp_path / "key").write_text("m,s,A,target\nm,s,b,nontarget\nn,t,a,target\nm,s,a,target\n")
    (tmp_path / "scores").write_text("m,s,a,1\nm,s,B,2\nn,t,A,3\n")
    read = mb.read([tmp_path / "key", tmp_path / "scores"], reader="sre")
    assert read.score.tolist() == [1.0, 2.0, 3.0, 1.0]
    assert sorted(read.instances.tolist()) == ["model:m", "model:n", "segment:s-a", "segment:s-b", "segment:t-a"]


def test_a_packed_list_without_identities_is_bounded(tmp_path: Path) -> None:
    """It took 8 GB to count 56 million scores from 110 KB."""
    said = "more than 2,000,000 comparisons without identities in .* unpack it first or give max_bytes=33554433"
    with pytest.raises(mb.DataError, match=said):
        mb.read(packed(tmp_path / "labelled.gz", "y 3\nn 2\n", 1_100_000))
    table = packed(tmp_path / "table.csv.gz", "1,3\n0,2\n", 1_100_000, "genuine,score\n")
    with pytest.raises(mb.DataError, match=said):
        mb.read(table)
    assert len(mb.read(table, max_bytes=33554433)) == 2_200_000
    columns = {"genuine": np.arange(2_050_000) % 2 == 0, "score": np.ones(2_050_000)}
    parquet.write_table(pa.table(columns), tmp_path / "table.parquet")
    with pytest.raises(mb.DataError, match=r"table.parquet: holds more than 2,000,000 comparisons without"):
        mb.read(tmp_path / "table.parquet")
    assert len(mb.read(packed(tmp_path / "known.gz", "a a 3 y\na b 2 n\n", 1_100_000), reader="kaldi")) == 2_200_000


def test_labels_beside_an_array_are_not_read_without_end(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((3, 2)))
    with pytest.raises(mb.DataError, match=r"labels.gz holds 200000 labels, and .*x.npy has 3 rows; they must agree"):
        mb.read(tmp_path / "x.npy", labels=packed(tmp_path / "labels.gz", "a\n", 200_000))
    (tmp_path / "named.txt").write_text('identity\n"a"\nb\nb\n\n\n')
    assert mb.read(tmp_path / "x.npy", labels=tmp_path / "named.txt").identities.tolist() == ["a", "b"]
    (tmp_path / "gap.txt").write_text("a\n\nb\n")
    with pytest.raises(mb.DataError, match=r"gap.txt holds 2 labels"):
        mb.read(tmp_path / "x.npy", labels=tmp_path / "gap.txt")


def test_a_wide_table_takes_time_by_its_columns(tmp_path: Path) -> None:
    """Columns were taken out of the table one by one: 15,000 of them took minutes, and 8,000 half a minute."""
    import time

    names, row = ",".join(f"f{k}" for k in range(8_000)), "1," * 7_999
    (tmp_path / "x.csv").write_text(f"identity,{names}\n" + f"a,{row}1\nb,{row}0\n" * 3)
    begun = time.process_time()
    assert mb.read(tmp_path / "x.csv").vectors.shape == (6, 8_000)
    assert time.process_time() - begun < 3


KALDI = "a b target\nc d target\na d nontarget\nc b nontarget\n"
VOX = "1 p/1.wav p/2.wav\n0 p/1.wav q/1.wav\n1 q/1.wav q/2.wav\n0 q/2.wav p/2.wav\n"


@pytest.mark.parametrize(
    ("trials", "scores"),
    [
        (KALDI, "a b 0.9\na d 0.2\nc b 0.1\n"),  # a trial without a score
        (KALDI, "a b 0.9\nc d nan\na d 0.2\nc b 0.1\n"),
        (KALDI, "0.9\nnan\n0.2\n0.1\n"),
        ("a b target 0.9\nc d target NA\na d nontarget 0.2\nc b nontarget 0.1\n", ""),
    ],
)
def test_missing_scores_of_trials(trials: str, scores: str, tmp_path: Path) -> None:
    files = [put(tmp_path / name, text) for name, text in (("trials", trials), ("scores", scores)) if text]
    with pytest.raises(mb.DataError, match="missing='reject'"):
        mb.read(files, reader="kaldi")
    assert mb.read(files, reader="kaldi", missing="drop").score.tolist() == [0.9, 0.2, 0.1]
    rejected = mb.read(files, reader="kaldi", missing="reject")
    assert rejected.score[1] < 0.1
    assert [note.code for note in rejected.findings()].count("rejected-scores") == 1


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
@pytest.mark.parametrize(
    ("reader", "trials", "scores"),
    [
        ("kaldi", KALDI, "a b 0.9\nc d 0.8\na d 0.2\nc b 0.1\n"),
        ("kaldi", "a b 1\nc d 1\na d 0\nc b 0\n", "a b 0.9\nc d 0.8\na d 0.2\nc b 0.1\n"),
        ("voxceleb", VOX, "p/1.wav p/2.wav 0.9\np/1.wav q/1.wav 0.1\nq/1.wav q/2.wav 0.8\nq/2.wav p/2.wav 0.2\n"),
    ],
)
def test_trials_and_scores_in_either_order(reader: str, trials: str, scores: str, tmp_path: Path) -> None:
    files = [str(put(tmp_path / "trials", trials)), str(put(tmp_path / "scores", scores))]
    rates = [mb.evaluate(mb.read(order, reader=reader), 0.5) for order in (files, files[::-1])]
    assert [(one.far.errors, one.frr.errors, one.far.comparisons) for one in rates] == [(0, 0, 2)] * 2
    assert mb.evaluate(files, 0.5).far.comparisons == 2
    assert is_trial_list(*files)
    assert not is_trial_list(*files[::-1])
    assert not is_trial_list(str(tmp_path), files[1])
    with pytest.raises(mb.DataError, match="as the trials and as the scores"):
        mb.read([files[0], files[0]], reader=reader)
