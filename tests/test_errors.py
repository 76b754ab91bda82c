"""Errors and names: one line, without secrets and without folders."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
from matchbound.errors import DataError, UsageError, without_secrets
from matchbound.files.opening import Input, Remote, own_name, own_names


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


def test_objects_show_no_credentials_either(tmp_path: Path) -> None:
    table = mb.scan("https://ann:pw@host/scores.csv?sig=hidden")
    assert repr(table) == "ScoreFile('scores.csv', distance=None, group=None)"
    remote = Remote("https://ann:pw@host/x.csv", None, None, lambda: None)
    assert "pw" not in repr(remote)
    assert "pw" not in repr(Input("https://ann:pw@host/x.csv", None, b"pw", remote=remote))


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
