"""Contents of files for tests, and files with them."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet


def put(path: Path, content: bytes | str) -> Path:
    """A file with this content, and nothing changed in it."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def packed(path: Path, text: str, times: int, head: str = "") -> Path:
    """A gzip file of a text thousands of times."""
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as stream:
        stream.write(head)
        for _ in range(times // 1000):
            stream.write(text * 1000)
    return path


def npz_bytes(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def npy_bytes(array: Any, allow_pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=allow_pickle)
    return stream.getvalue()


def parquet_bytes(table: Any = None, *, row_group_size: int | None = None, **columns: Any) -> bytes:
    """A table, or the columns that are named."""
    stream = io.BytesIO()
    parquet.write_table(pa.table(columns) if table is None else table, stream, row_group_size)
    return stream.getvalue()
