"""What leaves the house, and what a command line may do to files: names, secrets, formulas, places, odd numbers."""

from __future__ import annotations

import csv
import io
import itertools
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
from matchbound.cli import main
from matchbound.errors import DataError, UsageError, without_secrets
from matchbound.files.opening import Input, Remote, own_name, own_names
from matchbound.report.papers import latex_text
from matchbound.show.records import inert, is_formula, to_csv

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
    ("address", "shown"),
    [
        ("https://ann:pw@host/a/b.csv", "https://host/a/b.csv"),
        ("https://host/a/b.csv?sig=hidden&se=2030", "https://host/a/b.csv"),
        ("s3://AKIA:sec/ret@bucket/x.csv", "s3://bucket/x.csv"),
        ("simplecache::https://u:p%40w@host/x.csv?token=hidden#frag", "simplecache::https://host/x.csv"),
        ("abfs://c@account.dfs.core.windows.net/x.csv", "abfs://account.dfs.core.windows.net/x.csv"),
        ("/plain/path?x=1@y.csv", "/plain/path?x=1@y.csv"),
    ],
)
def test_addresses_lose_their_secrets(address: str, shown: str) -> None:
    assert without_secrets(address) == shown
    told = str(DataError(f"{address}: cannot be read (Client error for url '{address}')"))
    assert told == f"{shown}: cannot be read (Client error for url '{shown}')"
    assert str(UsageError(f"see {address}.")) in (f"see {shown}.", f"see {address}.")


@given(st.text(alphabet="abcXYZ019/+=%@:", min_size=1, max_size=30), st.text(alphabet="abc019/+=%&", min_size=1))
def test_no_password_and_no_query_is_ever_shown(password: str, query: str) -> None:
    hidden = f"{password}Q7Q"
    told = str(DataError(f"https://user:{hidden}@host/x.csv?sig={query}Z9Z: no such file"))
    assert "Q7Q" not in told
    assert "Z9Z" not in told
    assert "x.csv" in told


def test_own_names() -> None:
    assert own_name("/home/ann/clients/acme/scores.csv") == "scores.csv"
    assert own_name("https://u:p@host/runs/scores.csv?sig=x") == "scores.csv"
    assert own_name("s3://bucket/folder/") == "folder"
    assert own_name("-") == "standard input"
    assert own_names(["a/x.npz", "b/x.npz"]) == ["1: x.npz", "2: x.npz"]
    assert own_names(["a/x.npz", "b/y.npz"]) == ["x.npz", "y.npz"]


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


def test_objects_show_no_credentials_either(tmp_path: Path) -> None:
    table = mb.scan("https://ann:pw@host/scores.csv?sig=hidden")
    assert repr(table) == "ScoreFile('scores.csv', distance=None, group=None)"
    remote = Remote("https://ann:pw@host/x.csv", None, None, lambda: None)
    assert "pw" not in repr(remote)
    assert "pw" not in repr(Input("https://ann:pw@host/x.csv", None, b"pw", remote=remote))


# ---- labels that a fuzzer found


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_a_byte_order_mark_inside_a_file_is_part_of_a_label(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("id_a,id_b,score\n\ufeff0,b,0.1\nb,\ufeff0,0.2\n0,b,0.3\n", encoding="utf-8-sig")
    assert sorted(map(str, mb.read(file).identities)) == ["0", "b", "\ufeff0"]


def test_spans_of_time_are_labels_as_they_are_written() -> None:
    spans = np.array([1, 2, 2], dtype="m8[s]")
    assert mb.Comparisons(spans, spans[::-1], [0.1, 0.2, 0.3]).n_identities == 2


def test_a_command_is_not_told_of_the_files_of_an_earlier_one(
    scores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write(tmp_path / "gone.csv")
    assert main(["evaluate", str(other), "--threshold-from", "nowhere.csv"]) == 1  # after reading
    other.unlink()
    assert main(["evaluate", str(scores), "--threshold", "0.5", "-q"]) == 0, capsys.readouterr().err


# ---- formulas


@pytest.mark.parametrize("label", ["=HYPERLINK(1)", "@SUM(A1)", "+1+1", "-1+1", "\t=1", "'=1", "\uff1d1", " =1", "-x"])
def test_labels_that_a_spreadsheet_would_run(label: str) -> None:
    made = next(iter(csv.DictReader(io.StringIO(to_csv([{"group": label, "estimate": -0.5}])))))
    assert made["group"] == f"'{label}"
    assert made["estimate"] == "-0.5"


@given(st.text(max_size=12))
def test_cells_are_inert_and_can_be_told_apart(label: str) -> None:
    cell = inert(label)
    assert cell.startswith("'") or not is_formula(cell)
    assert (cell.removeprefix("'") if is_formula(label) else cell) == label


@pytest.mark.parametrize("number", ["-3", "+2.5", "-1e-5", "-.5", "a=b", "x", ""])
def test_numbers_and_plain_names_stay_as_they_are(number: str) -> None:
    assert inert(number) == number


def test_groups_named_like_formulas_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    identity = np.repeat([f"p{i}" for i in range(12)], 3)
    group = np.repeat(["=cmd|' /C calc'!A0", "@SUM(1)"], 18)
    np.savez(tmp_path / "x.npz", embeddings=rng.normal(size=(36, 4)), identity=identity, group=group)
    assert main(["groups", str(tmp_path / "x.npz"), "--threshold", "0.3", "--format", "csv", "-q"]) == 0
    for row in csv.reader(io.StringIO(capsys.readouterr().out)):
        for cell in row:
            assert cell[:1] not in ("=", "@")


def test_a_protocol_with_names_like_formulas_says_so(tmp_path: Path) -> None:
    protocol = mb.design_protocol(["=1", "=1", "b", "b", "c"], budget=4)
    with pytest.warns(mb.MatchboundWarning, match="formula"):
        protocol.write(tmp_path / "p.csv")
    assert "=1" in (tmp_path / "p.csv").read_text()  # names are data here, and stay as they are
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        protocol.write(tmp_path / "p.parquet")


@pytest.mark.parametrize("label", ["[2cm]", "*", "*[2cm]", "  [-9cm]"])
def test_latex_rows_that_begin_with_an_argument(label: str) -> None:
    made = latex_text(label)
    assert made[0] == "{"
    assert latex_text("a\x1b[31mb") == "a{[}31mb"


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


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_levels_without_a_tail_in_python() -> None:
    far = mb.evaluate(mb.Comparisons(*zip(*ROWS, strict=True)), 0.5).far
    for level in (1e-320, 1.0 - 1e-18, float("nan"), "0.95", None):
        with pytest.raises(mb.UsageError, match="level must lie between 0 and 1"):
            far.upper_bound(level)  # type: ignore[arg-type]


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


def test_a_message_is_one_line_whatever_a_column_is_called(tmp_path):
    table = pa.table({"\r\n": [None, "b"], "id_b": ["a", "b"], "score": [0.1, 0.2]})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(mb.DataError) as told:
        mb.read(tmp_path / "t.parquet", columns={"id_a": "\r\n", "id_b": "id_b"})
    assert str(told.value).splitlines() == [str(told.value)]
    assert r"row 0: \r\n is missing" in str(told.value)
    assert str(mb.DataError("a\u2028b\x1b[1m\u00a0é")) == "a\\u2028b\\x1b[1m\u00a0é"


def test_an_argument_is_not_the_fault_of_the_file(tmp_path):
    table = pa.table({"id_a": ["a", "b"], "id_b": ["a", "b"], "score": [0.1, 0.2]})
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("id_a,id_b,score\na,a,0.1\nb,b,0.2\n")
    for name in ("t.parquet", "t.csv"):
        with pytest.raises(mb.UsageError, match="identity_a") as told:
            mb.read(tmp_path / name, columns={"identity_a": "id_a"})
        assert "write it again" not in str(told.value)
