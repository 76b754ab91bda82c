"""Files behind an address are read as files on disk are."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import matchbound as mb
from filecontents import npy_bytes, npz_bytes, parquet_bytes
from matchbound.cli import main
from matchbound.counting.sources import recount_of
from matchbound.errors import DataError, MissingExtraError
from matchbound.files import opening
from matchbound.files.opening import Remote, file_digest, find_remote, is_address

fsspec = pytest.importorskip("fsspec")

Put = Callable[[str, bytes], str]


@pytest.fixture
def put() -> Iterator[Put]:
    """Writes bytes to a name in memory; the address comes back."""
    store = fsspec.filesystem("memory")

    def write(name: str, content: bytes) -> str:
        store.pipe(f"/matchbound-test/{name}", content)
        return f"memory://matchbound-test/{name}"

    yield write
    store.rm("/matchbound-test", recursive=True)


def scores(rows: int = 300, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 12, size=(2, rows))
    return pa.table(
        {"id_a": [f"p{k}" for k in a], "id_b": [f"p{k}" for k in b], "score": np.round(rng.normal(size=rows), 2)}
    )


def table_bytes(table: Any, kind: str) -> bytes:
    if kind == "parquet":
        return parquet_bytes(table, row_group_size=50)
    between = "\t" if kind.startswith("tsv") else ","
    rows = [table.column_names, *zip(*table.to_pydict().values(), strict=True)]
    content = "\n".join(between.join(map(str, row)) for row in rows).encode()
    return gzip.compress(content) if kind.endswith("gz") else content


def same_comparisons(one: mb.Comparisons | mb.Embeddings, two: mb.Comparisons | mb.Embeddings) -> None:
    assert isinstance(one, mb.Comparisons)
    assert isinstance(two, mb.Comparisons)
    assert one.identities.tolist() == two.identities.tolist()
    for name in ("a", "b", "score"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


VECTORS = np.arange(1.0, 13.0, dtype=np.float32).reshape(4, 3)
WHO = ["a", "a", "b", "c"]


def same_vectors(found: mb.Comparisons | mb.Embeddings, vectors: Any = VECTORS, who: Any = WHO) -> None:
    np.testing.assert_array_equal(found.vectors, vectors)
    assert found.vectors.dtype == vectors.dtype
    assert found.identities[found.codes].tolist() == who


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "parquet"])
def test_score_tables(kind: str, put: Put, tmp_path: Path) -> None:
    content = table_bytes(scores(), kind)
    address = put(f"scores.{kind}", content)
    (tmp_path / f"scores.{kind}").write_bytes(content)
    here = mb.read(tmp_path / f"scores.{kind}")
    same_comparisons(mb.read(address), here)
    same_comparisons(mb.read(f"file://{tmp_path}/scores.{kind}"), here)
    whole, batches = (recount_of(source).tally(np.array([0.5])) for source in (here, mb.scan(address)))
    np.testing.assert_array_equal(whole.genuine.errors, batches.genuine.errors)
    np.testing.assert_array_equal(whole.impostor.errors, batches.impostor.errors)
    assert whole.impostor.sum_nn.tolist() == batches.impostor.sum_nn.tolist()


def test_embeddings(put: Put) -> None:
    same_vectors(mb.read(put("e.npz", npz_bytes(embeddings=VECTORS, identity=WHO))))
    labels = put("names.txt", "\n".join(WHO).encode())
    array = put("e.npy", npy_bytes(VECTORS))
    same_vectors(mb.read(array, labels=labels))
    same_vectors(mb.read([array, labels]))
    same_vectors(mb.read(array, labels=WHO))
    same_vectors(mb.read(put("by-columns.npy", npy_bytes(np.asfortranarray(VECTORS))), labels=WHO))
    with pytest.raises(DataError, match=r"memory://.*e\.npy has no labels; give labels=FILE .*\.npy\)\.$"):
        mb.read(array)
    table = pa.table({"identity": WHO, "embedding": VECTORS.tolist()}).cast(
        pa.schema([("identity", pa.string()), ("embedding", pa.list_(pa.float32()))])
    )
    same_vectors(mb.read(put("e.parquet", table_bytes(table, "parquet"))))
    features = pa.table({"identity": WHO, **{f"feature_{k}": VECTORS[:, k] for k in range(3)}})
    same_vectors(mb.read(put("f.parquet", table_bytes(features, "parquet"))))


def test_a_directory_of_parquet_files(put: Put) -> None:
    for part, rows in enumerate((slice(0, 3), slice(3, 4))):
        table = pa.table({"identity": WHO[rows], "embedding": VECTORS[rows].tolist()})
        put(f"parts/{part}.parquet", table_bytes(table, "parquet"))
    same_vectors(mb.read("memory://matchbound-test/parts"), VECTORS.astype(np.float64))
    assert file_digest("memory://matchbound-test/parts").startswith("sha256:")
    put("others/readme.md", b"hello")
    with pytest.raises(DataError, match="directory of embeddings holds Parquet files"):
        mb.read("memory://matchbound-test/others")
    with pytest.raises(DataError, match="is a directory"):
        mb.evaluate(mb.scan("memory://matchbound-test/parts"), 0.5)


def test_readers_of_other_tools(put: Put) -> None:
    trials = put("trials", b"spk1-a spk1-b target\nspk1-a spk2-a nontarget\n")
    values = put("scores", b"spk1-a spk2-a -3.1\nspk1-a spk1-b 4.2\n")
    found = mb.read([trials, values], reader="kaldi", identity_regex=r"^(\w+)-")
    assert found.score.tolist() == [4.2, -3.1]
    matrix = put("m.npy", npy_bytes(np.array([[1.0, 0.2, 0.3], [0.2, 1.0, 0.4], [0.3, 0.4, 1.0]])))
    found = mb.read([matrix, put("labels.txt", b"a\na\nb\n")], reader="matrix")
    assert found.score.tolist() == [0.2, 0.3, 0.4]


def test_the_command_line(put: Put, tmp_path: Path, capsys: Any) -> None:
    content = table_bytes(scores(2000), "parquet")
    (tmp_path / "scores.parquet").write_bytes(content)
    address = put("scores.parquet", content)
    answers = []
    for name in (str(tmp_path / "scores.parquet"), address):
        assert main(["evaluate", name, "--threshold", "0.5", "--format", "json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0]["results"] == answers[1]["results"]
    assert answers[0]["provenance"]["input"] == answers[1]["provenance"]["input"]
    assert main(["evaluate", "memory://matchbound-test/none.csv", "--threshold", "0.5"]) == 1
    assert capsys.readouterr().err.endswith("memory://matchbound-test/none.csv: no such file\n")


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("cut.parquet", table_bytes(scores(), "parquet")[:-30], "the Parquet data cannot be read"),
        ("cut.npy", npy_bytes(VECTORS)[:-8], "cut short .its header promises 48 bytes"),
        ("bad.csv", b"id_a,id_b,score\na,b,0.5\na,b,high\n", r"line 3: score is 'high'"),
        ("cut.csv", gzip.compress(b"id_a,id_b,score\na,b,0.5\n" * 99, mtime=0)[:-9], "gzip data are damaged"),
    ],
)
def test_damage_is_told_with_the_address(name: str, content: bytes, match: str, put: Put) -> None:
    address = put(name, content)
    with pytest.raises(DataError, match=match) as caught:
        mb.read(address, **({"labels": WHO} if name.endswith("npy") else {}))
    assert str(caught.value).startswith(address)


def test_addresses_are_told_from_paths() -> None:
    for text in ("s3://b/c", "memory://x", "simplecache::https://host/x.csv", "zip://a.csv::s3://b/c.zip"):
        assert is_address(text)
    for path in ("scores.csv", "-", "file:///tmp/x.csv", "C:\\x.csv", "C://x.csv", "a::b.csv", Path("s3://b/c"), 3):
        assert not is_address(path)


class Broken(io.BytesIO):
    """A file whose server goes away."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() >= 1 << 16:
            raise RuntimeError("the connection\nwas lost")
        return super().read(size)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_connection_that_is_lost(kind: str, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    content = table_bytes(scores(20_000), kind)
    address = put(f"scores.{kind}", content)

    def found(name: str) -> Remote:
        looked = find_remote(name)
        return Remote(looked.address, looked.size, looked.files, lambda: Broken(content))

    monkeypatch.setattr(opening, "find_remote", found)
    for call in (lambda: mb.read(address), lambda: mb.evaluate(mb.scan(address), 0.5)):
        with pytest.raises(DataError, match=r"the connection.*was lost") as caught:
            call()
        assert str(caught.value).startswith(address)
        assert "\n" not in str(caught.value)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    fsspec.register_implementation("absent", "no_such_package.AbsentFileSystem", errtxt="Install absentfs")
    with pytest.raises(MissingExtraError, match=r"^absent://x\.csv needs a package .*Install absentfs"):
        mb.read("absent://x.csv")
    assert main(["evaluate", "absent://x.csv", "--threshold", "0.5"]) != 0
    assert "Install absentfs" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingExtraError, match=r"fsspec is not installed: pip install 'matchbound\[remote\]'"):
        mb.read("memory://x.csv")
    with pytest.raises(MissingExtraError, match="fsspec"):
        mb.evaluate(mb.scan("memory://x.csv"), 0.5)
