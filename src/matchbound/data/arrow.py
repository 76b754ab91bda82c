"""Arrow columns as numpy arrays, and tables in one piece, with little memory held twice."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEW_COLUMNS = 64
"""Memory is given back after each of so many columns, or after so many of them."""


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


def in_one_piece(parts: list[Any]) -> Any:
    """One Arrow table, of one chunk per column, of tables that are moved out of a list; nobody else may hold them."""
    import pyarrow as pa

    data = pa.concat_tables(parts)
    parts.clear()
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
            pa.default_memory_pool().release_unused()
    return pa.table(made, names=names)


def trim() -> None:
    """Give memory that Arrow and the C library hold without need back to the system, where they can be asked to."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def first_null(column: Any) -> int:
    """The row of the first missing value of an Arrow column that has one."""
    import pyarrow.compute as pc

    return int(pc.index(pc.is_null(column), True).as_py())
