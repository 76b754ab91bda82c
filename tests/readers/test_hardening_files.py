"""Damaged and hostile files that fuzzing found, limits on what a file may unpack to, and no pickle anywhere."""

from __future__ import annotations

import gzip
import io
import pickle
import re
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import matchbound as mb
from filecontents import put
from matchbound.counting.checkpoint import Checkpoint
from matchbound.counting.partial import PartialTally
from matchbound.readers.scan import scan_scores

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "matchbound"


def refused(match: str, *arguments: Any, **options: Any) -> str:
    with pytest.raises(mb.DataError, match=match) as caught:
        mb.read(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- no pickle ---


def test_the_source_never_unpickles() -> None:
    banned = re.compile(
        r"\bimport (pickle|cPickle|dill|cloudpickle|joblib|shelve|marshal)\b|allow_pickle=True|\bpickle\."
    )
    for file in SOURCE.rglob("*.py"):
        assert not banned.search(file.read_text(encoding="utf-8")), file
    loads = [line for f in SOURCE.rglob("*.py") for line in f.read_text("utf-8").splitlines() if "np.load(" in line]
    assert loads
    assert all("allow_pickle=False" in line for line in loads)


class Trap:
    """Unpickling this writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    trap = np.empty(2, dtype=object)
    trap[:] = [Trap(sprung), Trap(sprung)]
    refused("never opened because it can run code", put(tmp_path / "a.pkl", pickle.dumps(trap)))
    np.save(tmp_path / "b.npy", trap, allow_pickle=True)
    refused("never unpickled", tmp_path / "b.npy")
    np.savez(tmp_path / "c.npz", embeddings=np.eye(2), identity=trap)
    refused("never unpickled", tmp_path / "c.npz")
    np.save(tmp_path / "d.npy", np.eye(2))
    refused("never unpickled", [tmp_path / "d.npy", tmp_path / "b.npy"])
    np.savez(tmp_path / "e.npz", fingerprint=trap)
    with pytest.raises(mb.DataError, match="not a checkpoint"):
        Checkpoint(tmp_path / "e.npz", "mark").load(PartialTally.restore)
    assert not sprung.exists()
    pickle.loads(pickle.dumps(Trap(sprung)))
    assert sprung.exists(), "the trap would have sprung"


# --- bombs ---


def test_gzip_of_one_endless_line(tmp_path: Path) -> None:
    """A line is given up after 64 MiB, whatever the file may unpack to."""
    with gzip.open(tmp_path / "bomb", "wb", compresslevel=1) as stream:
        for _ in range(80):
            stream.write(b"x" * 2**20)
    for reader in (None, "pyeer"):
        refused(
            "line 1 is longer than 67,108,864 bytes",
            [tmp_path / "bomb"] * (2 if reader else 1) if reader else tmp_path / "bomb",
            reader=reader,
            max_bytes=2**30,
        )


def test_an_archive_that_lies_about_its_sizes(tmp_path: Path) -> None:
    """The directory of the zip says a few bytes: no more than that is ever unpacked."""
    head = (
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000, 3), }".ljust(117)
        + b"\n"
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("embeddings.npy", head + bytes(8_000_000))
        archive.writestr("identity.npy", head)
    content = bytearray(out.getvalue())
    size = (len(head) + 8_000_000).to_bytes(4, "little")
    at = bytes(content).rindex(size)
    content[at : at + 4] = (200).to_bytes(4, "little")
    refused("damaged or cut short", put(tmp_path / "lie.npz", bytes(content)), max_bytes=10_000)


def test_parquet_bomb(tmp_path: Path) -> None:
    """A dictionary and a run length: some kilobytes stand for millions of rows."""
    rows = 3_000_000
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int8)), pa.array(["a"]))
    table = pa.table({"id_a": same, "id_b": same, "score": np.zeros(rows)})
    parquet.write_table(table, tmp_path / "bomb.parquet", compression="zstd")
    assert (tmp_path / "bomb.parquet").stat().st_size < 100_000
    said = refused(
        "unpacks to at least 72,000,000 bytes, more than 50,000,000", tmp_path / "bomb.parquet", max_bytes=50_000_000
    )
    assert "larger max_bytes" in said
    refused("more than 5,000", [tmp_path / "bomb.parquet"] * 2, max_bytes=5_000)
    refused("more than 5,000", tmp_path / "bomb.parquet", reader="splink", max_bytes=5_000)


# --- what fuzzing found ---


def test_wide_headers_take_no_time(tmp_path: Path) -> None:
    """Names were counted with list.count: a header of 100,000 columns took minutes."""
    wide = ",".join(f"c{k}" for k in range(100_000))
    refused("not recognised", put(tmp_path / "wide.csv", f"{wide}\n1\n"))
    refused("'c7' occurs more than once", put(tmp_path / "twice.csv", f"{wide},c7\n1\n"), reader="splink")


@pytest.mark.parametrize("dtype", ["<f16", "<c16", ">f8", "|V4", "<M8[s]"])
def test_arrays_of_comparisons_of_any_type(dtype: str, tmp_path: Path) -> None:
    score = np.ones(3).astype(dtype) if dtype != "|V4" else np.zeros(3, dtype)
    np.savez(tmp_path / "a.npz", id_a=["a", "a", "b"], id_b=["a", "b", "c"], score=score)
    if dtype == ">f8":
        data = mb.read(tmp_path / "a.npz")
        assert data.score.tolist() == [1.0, 1.0, 1.0]
    else:
        refused("'score'", tmp_path / "a.npz")


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">f2"])
def test_big_endian_embeddings(dtype: str) -> None:
    vectors = np.random.default_rng(0).standard_normal((20, 4)).astype(dtype)
    who = np.arange(20) // 2
    swapped, native = mb.Embeddings(vectors, who), mb.Embeddings(vectors.astype(vectors.dtype.newbyteorder("=")), who)
    found, wanted = mb.tally(swapped, 0.3), mb.tally(native, 0.3)
    assert found.impostor.errors.tolist() == wanted.impostor.errors.tolist()
    assert found.genuine.errors.tolist() == wanted.genuine.errors.tolist()
    assert found.impostor.errors.sum() > 0


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (np.asarray([2.0**54, 1.0]), "row 0 holds"),
        (np.asarray([b"\xff", b"a"]), "identity: the label in row 0 holds bytes that are not UTF-8"),
        (["a", "b\ud800"], "row 1 is not valid Unicode"),
        (["a", "b" * 20_000], "identity: a label is longer"),
    ],
)
def test_labels_that_are_none(labels: Any, match: str) -> None:
    with pytest.raises(mb.DataError, match=match):
        mb.Embeddings(np.eye(2), labels)


def test_labels_that_are_floats_too_large_to_tell_apart() -> None:
    """Beyond 2^53 different people were one float, and beyond 2^63 all of them were one integer."""
    table = pa.table({"id_a": [1.0, 1e300], "id_b": [2.0, 2.0], "score": [0.1, 0.2]})
    refused("row 1: id_a is 1e\\+300", table)


def test_ijb_metadata_that_the_csv_module_refuses(tmp_path: Path) -> None:
    pairs, scores = put(tmp_path / "pairs.csv", "1,2\n"), put(tmp_path / "scores.txt", "0.5\n")
    known = put(tmp_path / "known.csv", "TEMPLATE_ID,SUBJECT_ID\n1,a\r2,b\n")
    assert mb.read([pairs, scores, known], reader="ijb").identities.tolist() == ["a", "b"]
    put(known, f"TEMPLATE_ID,SUBJECT_ID\n1,{'x' * 200_000}\n")
    refused("a label is longer than 10,000 characters", [pairs, scores, known], reader="ijb")


@pytest.mark.parametrize(
    ("reader", "contents"),
    [
        (None, ["id_a,id_b,score\na,b,1\n{},b,2\n"]),
        ("kaldi", ["a b target\na {} nontarget\n", "a b 1\na {} 2\n"]),
        ("lfw", ["{}\t1\t2\n", "0.5\n"]),
        ("sre", ["a,{},a,target\n", "a {} a 0.5\n"]),
    ],
)
def test_a_text_in_the_place_of_a_label(reader: str | None, contents: list[str], tmp_path: Path) -> None:
    """One label of two million characters made every label take eight megabytes."""
    paths = [put(tmp_path / f"f{k}", content.format("x" * 200_000)) for k, content in enumerate(contents)]
    refused("longer than 10,000 characters", paths if reader else paths[0], reader=reader)


def test_column_metadata_that_end_the_process() -> None:
    """pyarrow aborts when the metadata of a damaged column are asked for; reading the file is an error as it should."""
    path = Path(__file__).resolve().parents[1] / "data" / "hardening" / "histogram.parquet"
    script = f"""
import matchbound as mb
try:
    mb.read({str(path)!r})
except mb.DataError as error:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    whole, none = np.zeros((2, 3), dtype=np.int64), np.empty(0, dtype=np.int64)
    state = Checkpoint(tmp_path / "state.npz", "mark")
    state.save(PartialTally(whole, whole, whole, [none], [none], [none], blocks={1, 3}))
    assert [item.name for item in tmp_path.iterdir()] == ["state.npz"]
    content = bytearray((tmp_path / "state.npz").read_bytes())
    rng = np.random.default_rng(3)
    for _ in range(60):
        bad = content.copy()
        for at in rng.integers(len(bad), size=3):
            bad[at] = int(rng.integers(256))
        put(tmp_path / "state.npz", bytes(bad))
        with suppress(mb.DataError):
            state.load(PartialTally.restore)
    np.savez(tmp_path / "state.npz", fingerprint=np.asarray("mark"))
    with pytest.raises(mb.DataError, match=r"state\.npz is not a checkpoint"):
        state.load(PartialTally.restore)


def test_column_names_that_are_not_text(tmp_path: Path) -> None:
    """Bytes of a name inside a Parquet footer that are not UTF-8."""
    table = pa.table({"id_a": ["a", "b"], "id_b": ["b", "b"], "score": [0.1, 0.2], "remark": ["x", "y"]})
    parquet.write_table(table, tmp_path / "good.parquet", store_schema=False)
    content = (tmp_path / "good.parquet").read_bytes()
    assert b"remark" in content
    path = put(tmp_path / "bad.parquet", content.replace(b"remark", b"rem\xcbrk"))
    refused("the Parquet data cannot be read", path)
    with pytest.raises(mb.DataError, match="the Parquet data cannot be read"):
        next(scan_scores(mb.scan(path)))


def test_a_damaged_study_is_named(tmp_path: Path) -> None:
    """Not a zip archive, and one whose compressed data are broken."""
    np.savez_compressed(tmp_path / "broken.npz", fingerprint=np.zeros(2000))
    content = bytearray((tmp_path / "broken.npz").read_bytes())
    content[60:75] = b"\xff" * 15
    put(tmp_path / "broken.npz", bytes(content))
    put(tmp_path / "text.npz", "PK\x03\x04 no archive")
    for name in ("broken.npz", "text.npz"):
        with pytest.raises(mb.DataError, match=name):
            mb.coverage_study(
                mb.SyntheticModel(),
                replications=1,
                G=5,
                methods=["wilson"],
                resume=tmp_path / name,
                rng=0,
                truth_identities=400,
            )
