"""Embeddings larger than memory: Parquet in batches, arrays of .npz files, temporary files."""

from __future__ import annotations

import errno
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchbound as mb
from matchbound import scratch as room
from matchbound.counting.allpairs import tally_embeddings
from matchbound.errors import DataError, UsageError
from matchbound.files.opening import open_input
from matchbound.readers import arrays
from matchbound.readers.read import in_memory

WHO = ["a", "a", "b", "c", "b"]
VECTORS = np.arange(1.0, 16.0).reshape(5, 3)
LAYOUTS = ("list", "large list", "fixed", "features")


def columns(vectors: Any, layout: str, kind: Any) -> dict[str, Any]:
    """Vectors as the columns of a table."""
    numbers = pa.array(np.ascontiguousarray(vectors).reshape(-1)).cast(kind)
    width = vectors.shape[1]
    if layout == "features":
        return {f"feature_{k}": pa.array(vectors[:, k]).cast(kind) for k in range(width)}
    if layout == "fixed":
        return {"embedding": pa.FixedSizeListArray.from_arrays(numbers, width)}
    offsets = np.arange(0, vectors.size + 1, width)
    if layout == "list":
        return {"embedding": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), numbers)}
    return {"embedding": pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), numbers)}


def read_embeddings(path: Any, **options: Any) -> mb.Embeddings:
    found = mb.read(path, **options)
    assert isinstance(found, mb.Embeddings)
    return found


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.lists(st.integers(0, 40), min_size=1, max_size=3).filter(lambda sizes: sum(sizes) > 0),
    width=st.integers(1, 9),
    layout=st.sampled_from(LAYOUTS),
    kind=st.sampled_from([pa.float16(), pa.float32(), pa.float64(), pa.int16()]),
    labels=st.sampled_from(["text", "integers", "dictionary"]),
    group_rows=st.integers(1, 50),
)
def test_parquet_in_batches_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    rows: list[int],
    width: int,
    layout: str,
    kind: Any,
    labels: str,
    group_rows: int,
) -> None:
    rng = np.random.default_rng(seed)
    total = sum(rows)
    vectors = rng.integers(1, 100, size=(total, width))
    who = rng.integers(0, 9, size=total)
    names: Any = pa.array(who) if labels == "integers" else pa.array([f"p{k}" for k in who])
    if labels == "dictionary":
        names = names.dictionary_encode()
    table = pa.table(
        {
            "identity": names,
            **columns(vectors, layout, kind),
            "image": [f"i{k}" for k in range(total)],
            "group": [f"g{k % 2}" for k in who],
        }
    )
    folder = tmp_path_factory.mktemp("embeddings")
    paths, start = [], 0
    for part, size in enumerate(rows):
        paths.append(folder / f"{part}.parquet")
        pq.write_table(table.slice(start, size), paths[-1], row_group_size=group_rows)
        start += size
    found = read_embeddings(paths)
    np.testing.assert_array_equal(found.vectors, vectors)
    kept = {pa.float16(): np.float16, pa.float32(): np.float32}.get(kind, np.float64)
    if layout == "features" and kind == pa.float16():
        kept = np.float64
    assert found.vectors.dtype == kept
    expected = who.tolist() if labels == "integers" else [f"p{k}" for k in who]
    assert found.identities[found.codes].tolist() == expected
    assert found.identities.tolist() == sorted(set(expected))
    assert found.instance.tolist() == [f"i{k}" for k in range(total)]
    assert found.group[found.codes].tolist() == [f"g{k % 2}" for k in who]


def broken_tables() -> dict[str, tuple[list[dict[str, Any]], str]]:
    """Tables that cannot be used, as two files each, and what the message says."""
    good = {"identity": WHO, "embedding": VECTORS.tolist()}
    lists = VECTORS.tolist()
    wide = {"identity": WHO, **columns(VECTORS, "features", pa.float64())}

    def with_row(row: int, value: Any) -> dict[str, Any]:
        return {"identity": WHO, "embedding": [value if k == row else v for k, v in enumerate(lists)]}

    return {
        "ragged": ([good, with_row(3, [1.0, 2.0])], r"2\.parquet, row 3: embedding has 2 numbers, and 3"),
        "ragged files": (
            [good, {"identity": WHO, "embedding": [[1.0]] * 5}],
            r"2\.parquet, row 0: embedding has 1 numbers, and 3",
        ),
        "null": ([good, with_row(4, None)], r"2\.parquet, row 4: embedding is missing"),
        "null inside": ([good, with_row(2, [1.0, None, 3.0])], r"2\.parquet, row 2: embedding holds a missing number"),
        "nan": ([good, with_row(1, [1.0, np.nan, 3.0])], r"2\.parquet, row 1: embedding holds NaN or infinity"),
        "infinite": ([with_row(1, [1.0, -np.inf, 3.0]), good], r"1\.parquet, row 1: embedding holds NaN or infinity"),
        "zeros": ([good, with_row(0, [0.0, 0.0, 0.0])], r"2\.parquet, row 0: embedding is all zeros"),
        "empty lists": (
            [{"identity": WHO, "embedding": pa.array([[]] * 5, pa.list_(pa.float64()))}] * 2,
            r"vectors must have shape",
        ),
        "text": ([good | {"embedding": list("abcde")}] * 2, r"1\.parquet: the column 'embedding' holds string"),
        "feature nan": (
            [wide, wide | {"feature_1": [1.0, 2.0, np.nan, 4.0, 5.0]}],
            r"2\.parquet, row 2: feature_1 is nan; drop the row or embed it again",
        ),
        "feature null": (
            [wide, wide | {"feature_2": [1.0, 2.0, 3.0, None, 5.0]}],
            r"2\.parquet, row 3: feature_2 is missing; drop the row",
        ),
        "feature missing": (
            [{k: v for k, v in wide.items() if k != "feature_1"}] * 2,
            r"1\.parquet: the feature columns are not numbered without gaps",
        ),
        "other columns": ([good, wide], r"2\.parquet: its columns differ from those of .*1\.parquet"),
        "no identity": ([{"embedding": lists}] * 2, r"1\.parquet: the columns 'embedding' are not recognised"),
        "identity null": (
            [good, good | {"identity": ["a", None, "b", "c", "b"]}],
            r"2\.parquet, row 1: identity is missing",
        ),
        "no rows": (
            [{k: pa.array(v).slice(0, 0) for k, v in good.items()}] * 2,
            r"2 files from .*1\.parquet holds no rows",
        ),
    }


BROKEN = broken_tables()


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_named_by_file_row_and_column(name: str, tmp_path: Path) -> None:
    tables, match = BROKEN[name]
    for part, made in enumerate(tables, start=1):
        pq.write_table(pa.table(made), tmp_path / f"{part}.parquet", row_group_size=2)
    with pytest.raises(DataError, match=match) as caught:
        mb.read([tmp_path / "1.parquet", tmp_path / "2.parquet"])
    assert "\n" not in str(caught.value)


def test_a_few_bytes_that_stand_for_many_vectors(tmp_path: Path) -> None:
    same = pa.array([[0.5] * 500] * 2000, pa.list_(pa.float32()))
    pq.write_table(pa.table({"identity": np.arange(2000), "embedding": same}), tmp_path / "e.parquet")
    assert (tmp_path / "e.parquet").stat().st_size < 200_000
    with pytest.raises(DataError, match="unpacks to at least 4,000,000 bytes, more than 3,999,999"):
        mb.read(tmp_path / "e.parquet", max_bytes=3_999_999)
    with pytest.raises(DataError, match="more than 3,999,999"):
        mb.read(tmp_path, max_bytes="3999999")
    assert len(read_embeddings(tmp_path / "e.parquet", max_bytes=4_000_000)) == 2000
    for wrong in ("many", 0, -1, 2.5):
        with pytest.raises(UsageError, match="max_bytes"):
            mb.read(tmp_path / "e.parquet", max_bytes=wrong)


MEASURE = """
import sys, numpy as np, pyarrow, pyarrow.parquet, pyarrow.compute
from pathlib import Path
import matchbound as mb
def kilobytes(what):
    return int(Path("/proc/self/status").read_text().split(what)[1].split()[0])
for path in sys.argv[1:]:
    mb.read(path + ".small")
    Path("/proc/self/clear_refs").write_text("5")
    start = kilobytes("VmRSS:")
    data = mb.read(path)
    print(kilobytes("VmHWM:") - start, data.vectors.nbytes // 1024, float(data.vectors[-1].sum(dtype=float)))
    data = None
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured the Linux way")
def test_memory_holds_the_vectors_and_little_else(tmp_path: Path) -> None:
    """60,000 × 256 float32 (59 MiB) in 12 row groups of 4.9 MiB; read at once they took four times the vectors.

    Allowed beyond the vectors: one row group, and 72 MiB for the libraries, the labels and what allocators keep.
    """
    rng = np.random.default_rng(0)
    groups, rows, width = 12, 5_000, 256
    vectors = rng.standard_normal((groups * rows, width), dtype=np.float32)
    who = [f"person-{k // 3}" for k in range(groups * rows)]
    paths = [tmp_path / f"{layout}.parquet" for layout in ("list", "features")]
    for path in paths:
        table = pa.table({"identity": who, **columns(vectors, path.stem, pa.float32())})
        pq.write_table(table, path, row_group_size=rows, use_dictionary=False)
        pq.write_table(table.slice(0, 10), f"{path}.small")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *map(str, paths)], capture_output=True, text=True, timeout=120, check=True
    )
    for line in done.stdout.splitlines():
        peak, vectors_kib, seen = line.split()
        assert float(seen) == float(vectors[-1].sum(dtype=float))
        assert int(vectors_kib) == vectors.nbytes // 1024
        assert int(peak) <= int(vectors_kib) + int(vectors_kib) // groups + 72 * 1024
    assert len(done.stdout.splitlines()) == len(paths)


# --- arrays of .npz files ---


def big(rows: int = 3000, width: int = 100) -> Any:
    return np.random.default_rng(1).standard_normal((rows, width)).astype(np.float32)


def mapped(array: Any) -> bool:
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("on_disk", [False, True])
def test_counts_are_those_of_the_array_in_memory(
    save: Any, order: Any, on_disk: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An array beyond `MEMORY_BYTES` goes to a temporary file."""
    vectors, who = np.asarray(big(), order=order), np.arange(3000) // 3
    save(tmp_path / "e.npz", identity=who, embeddings=vectors)
    if on_disk:
        monkeypatch.setattr(room, "MEMORY_BYTES", 100_000)
    found = read_embeddings(tmp_path / "e.npz")
    assert mapped(found.vectors) == on_disk
    np.testing.assert_array_equal(found.vectors, vectors)
    assert found.repeated == 0
    expected = tally_embeddings(mb.Embeddings(vectors, who), np.array([0.2]))
    tally = tally_embeddings(found, np.array([0.2]))
    np.testing.assert_array_equal(tally.impostor.errors, expected.impostor.errors)
    np.testing.assert_array_equal(tally.genuine.errors, expected.genuine.errors)


def test_only_what_is_unpacked_counts_against_the_limit(tmp_path: Path) -> None:
    vectors = big()
    np.savez(tmp_path / "e.npz", embeddings=vectors, identity=np.arange(3000))
    assert len(read_embeddings(tmp_path / "e.npz", max_bytes=100_000)) == 3000
    np.savez_compressed(tmp_path / "e.npz", embeddings=vectors, identity=np.arange(3000))
    with pytest.raises(DataError, match="unpacks to"):
        mb.read(tmp_path / "e.npz", max_bytes=100_000)


def member_at(path: Path, name: str) -> tuple[int, int]:
    """Where an entry of an archive begins, and its data."""
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo(f"{name}.npy").header_offset
    name_size, extra = struct.unpack("<HH", path.read_bytes()[start + 26 : start + 30])
    return start, start + 30 + name_size + extra


@pytest.mark.parametrize("damage", ["end", "middle", "mark", "magic", "shape"])
def test_a_damaged_archive_is_named(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "e.npz"
    np.savez(path, identity=np.arange(3000), embeddings=big())
    content = bytearray(path.read_bytes())
    start, data = member_at(path, "embeddings")
    what = "the array 'embeddings' cannot be read, damaged or cut short"
    if damage == "end":
        content, what = content[:-1000], "damaged or cut short"
    elif damage == "middle":  # the directory stays, the bytes before it are fewer than it says
        del content[data + 1000 : data + 900_000]
        what = "damaged or cut short"
    elif damage == "mark":
        content[start : start + 4] = b"XXXX"
    elif damage == "magic":
        content[data : data + 6] = b"NUMPYX"
    else:
        content = bytearray(bytes(content).replace(b"(3000, 100)", b"(9999, 100)", 1))
    path.write_bytes(content)
    with pytest.raises(DataError, match=what) as caught:
        mb.read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@given(
    shape=st.lists(st.integers(0, 4), min_size=0, max_size=3).map(tuple),
    kind=st.sampled_from(["<f4", ">f8", "<i2", "?", "<U3", "S2", "<f2"]),
    order=st.sampled_from(["C", "F"]),
    compressed=st.booleans(),
)
def test_any_array_is_read_as_numpy_reads_it(
    tmp_path_factory: pytest.TempPathFactory, shape: Any, kind: str, order: Any, compressed: bool
) -> None:
    array = np.asarray(np.arange(int(np.prod(shape))).reshape(shape).astype(kind), order=order)
    folder = tmp_path_factory.mktemp("arrays")
    np.save(folder / "a.npy", array)
    (np.savez_compressed if compressed else np.savez)(folder / "a.npz", a=array, b=array.T)
    one = arrays.load_npy(open_input(folder / "a.npy"))
    two = arrays.load_npz(open_input(folder / "a.npz"))
    for found, expected in ((one, array), (two["a"], array), (two["b"], array.T)):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


# --- room, and rows that repeat ---


def test_a_full_disk_is_an_error_and_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, start: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(room, "MEMORY_BYTES", 0)
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(DataError, match=r"no room for 24 bytes in .*No space left.*TMPDIR"):
        room.room_for((2, 3))


@pytest.mark.parametrize("n", [97, 101, 128, 130])
def test_rows_that_repeat_are_found_wherever_they_are(n: int) -> None:
    """A matrix product may sum the last rows in another order than the first, and then equal rows are not equal."""
    rng = np.random.default_rng(n)
    for width in (33, 64, 127):
        vectors = rng.standard_normal((n, width)).astype(np.float32)
        vectors[-3:] = vectors[0]
        assert mb.Embeddings(vectors, np.arange(n)).repeated == 3


def test_a_scanned_folder_is_read_where_memory_is_needed(tmp_path: Path) -> None:
    table = pa.table({"id_a": ["a", "b", "c"], "id_b": ["a", "c", "c"], "score": [0.9, 0.2, 0.8]})
    for name in ("1.parquet", "2.parquet"):
        pq.write_table(table, tmp_path / name)
    assert len(in_memory(mb.scan(tmp_path))) == 6
