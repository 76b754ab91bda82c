"""Columns of labels from Arrow arrays, and the numbers of Arrow columns."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.data.labels import Coded, Said, coded_values, merge

__all__ = ["Coded", "coded_column", "first_null", "give_back", "in_one_piece", "merge", "trim", "values_of"]

FEW_COLUMNS = 64
"""Memory is given back after each of so many columns, or after so many of them."""


def coded_column(column: Any, said: Said) -> Coded:
    """A column from an Arrow array of text, by hashing; `said` begins a message about a row."""
    hashed = column.dictionary_encode()
    return coded_values(hashed.dictionary.to_pylist(), values_of(hashed.indices), said)


def values_of(column: Any) -> NDArray[Any]:
    """The numbers of an Arrow column without missing values, shape (n,), without a copy where there is one chunk.

    Arrow's own conversion imports pandas where it is installed, which takes longer than reading most files.
    """
    import pyarrow as pa

    array = column
    if isinstance(column, pa.ChunkedArray):
        array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        return np.concatenate([values_of(chunk) for chunk in array.chunks])
    letter = "f" if pa.types.is_floating(array.type) else "i" if pa.types.is_signed_integer(array.type) else "u"
    kind = np.dtype(f"{letter}{array.type.bit_width // 8}")
    if not len(array):
        return np.empty(0, dtype=kind)
    return np.frombuffer(array.buffers()[1], dtype=kind)[array.offset : array.offset + len(array)]


def in_one_piece(held: list[Any]) -> Any:
    """An Arrow table whose columns are one chunk each, made column by column so that little is held twice.

    Parameters
    ----------
    held
        The table, alone in a list, from which it is taken: nobody else should hold it.
    """
    import pyarrow as pa

    data = held.pop()
    made: list[Any] = []
    names, waiting = data.column_names, data.columns[::-1]
    del data
    while waiting:
        column = waiting.pop()
        if pa.types.is_dictionary(column.type):
            column = column.unify_dictionaries()
        made.append(column.combine_chunks())
        del column
        if len(names) <= FEW_COLUMNS or len(waiting) % FEW_COLUMNS == 0:
            give_back()
    return pa.table(made, names=names)


def give_back() -> None:
    """Give memory that Arrow holds without need back to the system."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def trim() -> None:
    """Give back what the C library holds as well, where it can be asked to: many columns are many small objects."""
    give_back()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def first_null(column: Any) -> int:
    """The row of the first missing value of an Arrow column that has one."""
    import pyarrow.compute as pc

    return int(pc.index(pc.is_null(column), True).as_py())
