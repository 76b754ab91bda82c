"""Files made from nothing: tables, arrays and archives of any shape and type, many of them nonsense."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
from mutate import WORDS, Rng

COLUMNS = [
    *("id_a", "id_b", "score", "distance", "instance_a", "instance_b", "identity", "label", "genuine", "group"),
    *("group_a", "group_b", "embedding", "feature_0", "feature_1", "feature_2", "feature_9", "unique_id_l"),
    *("unique_id_r", "match_weight", "match_probability", "clerical_match_score", "cluster_l", "cluster_r"),
    *("bio_ref_subject_id", "probe_subject_id", "subject", "", "id", "x", "y", "similarity", "0", "1", "target"),
]
USUAL = ["id_a", "id_b", "score"], ["identity", "feature_0", "feature_1"], ["identity", "embedding"]


def pick(rng: Rng, choices: Any) -> Any:
    """One of the choices."""
    return choices[int(rng.integers(len(choices)))]


def names(rng: Rng) -> list[str]:
    """Column names: a usual set, with some added, dropped or doubled."""
    chosen = [*pick(rng, USUAL)] if rng.random() < 0.8 else []
    chosen += [pick(rng, COLUMNS) for _ in range(int(rng.integers(0, 4)))]
    if rng.random() < 0.1:
        chosen.append(pick(rng, WORDS))
    rng.shuffle(chosen)
    return chosen or ["id_a"]


def text_table(rng: Rng) -> bytes:
    """A delimited file."""
    header = names(rng)
    between = pick(rng, [",", ",", "\t", ";", "|", " "])
    lines = [between.join(header)]
    for _ in range(int(rng.integers(0, 8))):
        width = len(header) + (int(rng.integers(-1, 2)) if rng.random() < 0.1 else 0)
        lines.append(between.join(_cell(rng) for _ in range(width)))
    return ("\n".join(lines) + pick(rng, ["", "\n", "\n\n"])).encode("utf-8", "replace")


def _cell(rng: Rng) -> str:
    dice = rng.random()
    if dice < 0.45:
        return pick(rng, ["a", "b", "c", "1", "2"])
    if dice < 0.9:
        return repr(round(float(rng.standard_normal()), 3))
    return f'"{pick(rng, WORDS)}"' if dice < 0.93 else str(pick(rng, WORDS))


def json_tree(rng: Rng) -> bytes:
    """Dictionaries of dictionaries of numbers, or something else in JSON."""

    def value(depth: int) -> Any:
        dice = rng.random()
        if depth < 2 and dice < 0.85:
            keys = [pick(rng, ["a", "b", "c", "a", *WORDS]) for _ in range(int(rng.integers(0, 4)))]
            return {key: value(depth + 1) for key in keys}
        if dice < 0.9:
            return [pick(rng, [0.5, 1, -1.5, 10**18, 1e308]) for _ in range(int(rng.integers(0, 4)))]
        return pick(rng, [None, True, "text", float("nan"), float("inf"), 10**400, 1, [[1]], {}, -0.0])

    return json.dumps(value(0)).encode()


DTYPES = [
    *("<f8", "<f8", "<f4", "<f2", ">f8", "<f16", "<c16", "<i8", "<i4", "|i1", "<u8", "|b1", "<U3", "<U1", "|S2"),
    *("<M8[s]", "<m8[s]", "|V4", "|O", "<i2", "<U0"),
]


def array(rng: Rng, rows: int | None = None, *, allow_objects: bool = True) -> np.ndarray[Any, Any]:
    """An array of any type and shape; `rows` fixes its length most of the time."""
    dtype = np.dtype(pick(rng, DTYPES))
    if dtype.hasobject and not allow_objects:
        dtype = np.dtype("<f8")
    n = rows if rows is not None and rng.random() < 0.9 else int(rng.integers(0, 6))
    shape = pick(rng, [(n,), (n,), (n, 3), (n, 3), (n, 0), (), (n, 2, 2), (n, n)])
    count = int(np.prod(shape))
    if dtype.kind in "US":
        values = np.asarray([pick(rng, ["a", "b", "", "é", "1"]) for _ in range(count)], dtype="<U3")
        made = np.char.encode(values, "utf-8").astype(dtype) if dtype.kind == "S" else values.astype(dtype)
    elif dtype.kind == "O":
        made = np.asarray([pick(rng, [None, "a", 1, 0.5]) for _ in range(count)], dtype=object)
    elif dtype.kind == "V":
        made = np.zeros(count, dtype)
    else:
        with np.errstate(all="ignore"):
            numbers = rng.standard_normal(count) * pick(rng, [1.0, 1.0, 1.0, 1e300, 1e-310, 1e4, 0.0])
            if rng.random() < 0.1 and count:
                numbers[int(rng.integers(count))] = pick(rng, [np.nan, np.inf, -np.inf])
            made = (
                np.nan_to_num(numbers).clip(-100, 100).astype(dtype) if dtype.kind in "iumMb" else numbers.astype(dtype)
            )
    made = made.reshape(shape)
    return np.asfortranarray(made) if rng.random() < 0.2 and made.ndim else made


def npy(rng: Rng) -> bytes:
    """An ``.npy`` file, sometimes with a header that does not tell the truth."""
    out = io.BytesIO()
    np.save(
        out, rng.standard_normal((4, pick(rng, [3, 4]))) if rng.random() < 0.5 else array(rng, 4), allow_pickle=True
    )
    content = out.getvalue()
    if rng.random() < 0.3:
        shape = pick(
            rng, ["(4, 3)", "(10**9, 512)", "(1000000000, 512)", "(-1, 3)", "(4, 3, )", "()", "(0, 3)", "[4, 3]"]
        )
        kind = pick(rng, ["'<f8'", "'|O'", "'<U9999999'", "[('a', '<f8')]", "'<f4'", "''", "'<x9'", "__import__('os')"])
        head = f"{{'descr': {kind}, 'fortran_order': {pick(rng, ['False', 'True', '1'])}, 'shape': {shape}, }}"
        head = head + " " * (-(len(head) + 11) % 64) + "\n"
        body = content[128:]
        content = (
            b"\x93NUMPY" + bytes([int(rng.integers(0, 5)), 0]) + len(head).to_bytes(2, "little") + head.encode() + body
        )
    return content


def npz(rng: Rng) -> bytes:
    """An ``.npz`` file with arrays that agree in length more often than not."""
    rows = int(rng.integers(0, 7))
    if rng.random() < 0.4:
        return _usual_npz(rng, rows + 2)
    arrays = {
        pick(rng, [*COLUMNS, "embeddings", "a/b", "arr_0"]): array(rng, rows) for _ in range(int(rng.integers(0, 3)))
    }
    if rng.random() < 0.8:
        arrays |= {"embeddings": array(rng, rows), "identity": array(rng, rows)}
    if rng.random() < 0.3:
        arrays |= {name: array(rng, rows) for name in ("id_a", "id_b", "score")}
    out = io.BytesIO()
    (np.savez_compressed if rng.random() < 0.5 else np.savez)(out, **{name or "_": a for name, a in arrays.items()})
    return out.getvalue()


def _usual_npz(rng: Rng, rows: int) -> bytes:
    """An ``.npz`` file of embeddings with at most one array that is out of the ordinary."""
    arrays: dict[str, Any] = {
        "embeddings": rng.standard_normal((rows, 3)).astype(pick(rng, ["<f8", "<f4", "<f2", ">f4"])),
        "identity": np.asarray([pick(rng, ["a", "b", "c"]) for _ in range(rows)]),
    }
    if rng.random() < 0.5:
        arrays[pick(rng, ["embeddings", "identity", "group", "instance"])] = array(rng, rows)
    out = io.BytesIO()
    (np.savez_compressed if rng.random() < 0.5 else np.savez)(out, **arrays)
    return out.getvalue()


def parquet(rng: Rng) -> bytes:
    """A Parquet file with columns of any type."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = int(rng.integers(0, 7))
    columns = {name: _column(rng, name, rows) for name in names(rng)}
    out = io.BytesIO()
    compression = pick(rng, ["snappy", "none", "zstd", "gzip"])
    pq.write_table(pa.table(columns), out, compression=compression, row_group_size=int(rng.integers(1, 8)))
    return out.getvalue()


def _column(rng: Rng, name: str, rows: int) -> Any:
    import pyarrow as pa

    text = [pick(rng, ["a", "b", "c", "é", "x" * 50]) for _ in range(rows)]
    number = rng.standard_normal(rows)
    vectors = [[float(v) for v in rng.standard_normal(3)] for _ in range(rows)]
    whole = [int(v) for v in rng.integers(0, 3, rows)]
    usual = {"score": number, "feature_0": number, "feature_1": number, "embedding": vectors}.get(name, text)
    if rng.random() < 0.7:
        made = pa.array(usual)
    else:
        ragged = [vector[: int(rng.integers(1, 4))] for vector in vectors]
        kinds = [
            lambda: pa.array(text, pa.large_string()),
            lambda: pa.array(text).dictionary_encode(),
            lambda: pa.array([t.encode() for t in text], pa.binary()),
            lambda: pa.array(whole, pick(rng, [pa.int8(), pa.uint8(), pa.int32(), pa.uint64(), pa.int64()])),
            lambda: pa.array(whole, pa.int64()).dictionary_encode(),
            lambda: pa.array([bool(v) for v in whole], pa.bool_()),
            lambda: pa.nulls(rows),
            lambda: pa.array(number, pa.float32()),
            lambda: pa.array(number.astype(np.float16), pa.float16()),
            lambda: pa.array(vectors, pa.list_(pa.float32(), 3)),
            lambda: pa.array(vectors, pa.large_list(pa.float64())),
            lambda: pa.array(ragged, pa.list_(pa.float64())),
            lambda: pa.array([[str(v) for v in vector] for vector in vectors], pa.list_(pa.string())),
            lambda: pa.array([{"a": v} for v in whole], pa.struct([("a", pa.int64())])),
            lambda: pa.array(whole, pa.timestamp("s")),
            lambda: pa.array(whole, pa.date32()),
            lambda: pa.array(whole, pa.decimal128(10, 2)),
            lambda: pa.array(whole, pa.duration("s")),
            lambda: pa.array([str(v) for v in number]),
            lambda: pa.array([float("nan")] * rows),
            lambda: pa.array([2**64 - 1 - v for v in whole], pa.uint64()),
        ]
        made = pick(rng, kinds)()
    if rng.random() < 0.08 and rows and not pa.types.is_null(made.type):
        mask = np.zeros(rows, dtype=bool)
        mask[int(rng.integers(rows))] = True
        made = pa.chunked_array([made.take(pa.array([None if m else k for k, m in enumerate(mask)], pa.int64()))])
    return made
