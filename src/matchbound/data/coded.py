"""Columns of labels from Arrow arrays, and the numbers of Arrow columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.data.labels import Coded, Said, coded_values, merge

__all__ = ["Coded", "coded_column", "first_null", "merge", "values_of"]


def coded_column(column: Any, said: Said) -> Coded:
    """A column from an Arrow array of text, by hashing; `said` begins a message about a row."""
    hashed = column.dictionary_encode()
    return coded_values(hashed.dictionary.to_pylist(), values_of(hashed.indices), said)


def values_of(column: Any) -> NDArray[Any]:
    """The numbers of an Arrow column without missing values, shape (n,), without a copy where there is one chunk.

    Arrow's own conversion imports pandas where it is installed, which takes longer than reading most files.
    """
    import pyarrow as pa

    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        return np.concatenate([values_of(chunk) for chunk in array.chunks])
    letter = "f" if pa.types.is_floating(array.type) else "i" if pa.types.is_signed_integer(array.type) else "u"
    kind = np.dtype(f"{letter}{array.type.bit_width // 8}")
    if not len(array):
        return np.empty(0, dtype=kind)
    return np.frombuffer(array.buffers()[1], dtype=kind)[array.offset : array.offset + len(array)]


def first_null(column: Any) -> int:
    """The row of the first missing value of an Arrow column that has one."""
    import pyarrow.compute as pc

    return int(pc.index(pc.is_null(column), True).as_py())
