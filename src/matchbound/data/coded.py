"""Columns of labels that are encoded already: a few distinct labels, and small integers a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import IntArray, LabelArray
from matchbound.data.labels import encode, text_array


@dataclass(frozen=True)
class Coded:
    """A column of labels.

    Attributes
    ----------
    labels : array, shape (k,)
        Labels, text or integers; they may repeat, and some may not occur.
    codes : integer array, shape (n,)
        Positions in `labels`, one a row.
    """

    labels: LabelArray
    codes: NDArray[np.integer[Any]]

    def decoded(self) -> LabelArray:
        """The label of each row, shape (n,)."""
        if not self.labels.size:
            return np.empty(0, dtype=np.str_)
        return np.asarray(self.labels[self.codes])


def coded_texts(values: list[str], where: str) -> Coded:
    """A column from text in memory, by hashing; `where` is the file, for messages."""
    import pyarrow as pa

    return coded_column(pa.array(values, pa.string()), where)


def coded_column(column: Any, where: str) -> Coded:
    """A column from an Arrow array of text, by hashing; `where` is the file, for messages."""
    hashed = column.dictionary_encode()
    return Coded(text_array(hashed.dictionary.to_pylist(), where), values_of(hashed.indices))


def merge(*columns: Coded) -> tuple[LabelArray, tuple[IntArray, ...]]:
    """Columns against one sorted list of the labels that occur in any of them; the same as `encode` of the decoded.

    Returns
    -------
    labels : array, shape (G,)
        The distinct labels that occur, sorted.
    codes : tuple of int64 arrays
        Positions in `labels`, one array a column.
    """
    names, places = encode(*(column.labels for column in columns))
    used = np.zeros(names.size, dtype=np.bool_)
    for column, place in zip(columns, places, strict=True):
        occurs = np.zeros(place.size, dtype=np.bool_)
        occurs[column.codes] = True
        used[place[occurs]] = True
    new = np.cumsum(used, dtype=np.int64) - 1
    codes = tuple(
        (new[place])[column.codes] if column.codes.size else np.empty(0, np.int64)
        for column, place in zip(columns, places, strict=True)
    )
    return names[used], codes


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
