"""Vectors from the columns of a table: a column of lists, or one column per number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from matchbound.data.arrays import first_null, values_of
from matchbound.errors import DataError
from matchbound.readers.roles import RowRoles

if TYPE_CHECKING:
    from matchbound.readers.tables import Table

AGAIN = "drop the row or embed it again"


def vectors_of(table: Table, roles: RowRoles) -> NDArray[Any]:
    """The vectors of a table, shape (n, d); those of one piece of lists are not copied."""
    kind = vector_type(table.data.schema, roles, table.source)
    if roles.embedding is None:
        vectors = np.empty((table.data.num_rows, len(roles.features)), dtype=kind)
        fill_vectors(table, roles, vectors)
        return vectors
    width = vector_width(table, roles)
    parts = [part for _, part in _lists(table, roles.embedding, width)]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty((0, width), dtype=kind), *parts])


def fill_vectors(table: Table, roles: RowRoles, out: NDArray[Any]) -> None:
    """Write the vectors of a table into rows that wait for them, shape (n, d)."""
    if roles.embedding is None:
        for at, name in enumerate(roles.features):
            out[:, at] = table.numbers(name, AGAIN)
        return
    for start, part in _lists(table, roles.embedding, out.shape[1]):
        out[start : start + part.shape[0]] = part


def vector_type(schema: Any, roles: RowRoles, source: str) -> np.dtype[Any]:
    """The type that keeps the numbers of a table as they are: float16, float32 or float64."""
    import pyarrow as pa

    if roles.embedding is None:
        small = all(pa.types.is_float32(schema.field(name).type) for name in roles.features)
        return np.dtype(np.float32 if small else np.float64)
    kind = schema.field(roles.embedding).type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if is_list and pa.types.is_floating(kind.value_type):
        return np.dtype(f"f{kind.value_type.bit_width // 8}")
    if is_list and pa.types.is_integer(kind.value_type):
        return np.dtype(np.float64)
    raise DataError(f"{source}: the column {roles.embedding!r} holds {kind}; it must hold a list of numbers per row")


def vector_width(table: Table, roles: RowRoles) -> int:
    """How many numbers the first vector of a table has."""
    if roles.embedding is None:
        return len(roles.features)
    column = table.data.column(roles.embedding)
    fixed = getattr(column.type, "list_size", None)
    if fixed is not None:
        return int(fixed)
    first = next((value for value in column if value.is_valid), None)
    return 0 if first is None else len(first)


def _lists(table: Table, name: str, width: int) -> list[tuple[int, NDArray[Any]]]:
    """The pieces of a column of lists: where each begins, and its vectors, shape (rows, width)."""
    parts = []
    start = 0
    for chunk in table.data.column(name).chunks:
        if chunk.null_count:
            row = start + first_null(chunk)
            raise DataError(f"{table.where(row)}: {name} is missing; {AGAIN}")
        if not len(chunk):
            continue
        lengths = values_of(chunk.value_lengths())
        odd = np.flatnonzero(lengths != width)
        if odd.size:
            row = start + int(odd[0])
            raise DataError(f"{table.where(row)}: {name} has {lengths[odd[0]]} numbers, and {width} in the rows before")
        values = chunk.flatten()
        if values.null_count:
            row = start + first_null(values) // max(width, 1)
            raise DataError(f"{table.where(row)}: {name} holds a missing number; {AGAIN}")
        parts.append((start, values_of(values).reshape(len(chunk), width)))
        start += len(chunk)
    return parts
