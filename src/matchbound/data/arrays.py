"""Arrays of other libraries as numpy arrays: Arrow columns, without holding memory twice, and tensors.

None of these libraries is imported before it is needed.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.errors import DataError, plainly

# Memory is given back after each of so many columns, or after so many of them.
FEW_COLUMNS = 64


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
    columns: list[Any] = []
    names, waiting = data.column_names, data.columns[::-1]
    del data
    while waiting:
        column = waiting.pop()
        if pa.types.is_dictionary(column.type):
            column = column.unify_dictionaries()
        columns.append(column.combine_chunks())
        del column
        if len(names) <= FEW_COLUMNS or len(waiting) % FEW_COLUMNS == 0:
            pa.default_memory_pool().release_unused()
    return pa.table(columns, names=names)


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


def as_numpy(value: Any, name: str) -> Any:
    """A tensor, or a list of tensors, as numpy has it; anything else as it is.

    A tensor is taken off its graph and its device. Numbers of types that numpy does not have, such as bfloat16, become
    float32. A list of batches is one array, a list of tensors of one number each a list of numbers.
    """
    try:
        if _is_tensor(value):
            return _array(value)
        if isinstance(value, list | tuple) and value and all(_is_tensor(item) for item in value):
            arrays = [_array(item) for item in value]
            flat = all(array.ndim == 0 for array in arrays)
            return np.asarray(arrays) if flat else np.concatenate([np.atleast_1d(array) for array in arrays])
    except Exception as error:  # every library has errors of its own
        raise DataError(f"{name} cannot be turned into an array ({plainly(error, 200)})") from None
    return value


def _is_tensor(value: Any) -> bool:
    return not isinstance(value, np.ndarray | np.generic) and (hasattr(value, "detach") or hasattr(value, "__dlpack__"))


def _array(tensor: Any) -> Any:
    for step in ("detach", "cpu"):
        tensor = getattr(tensor, step)() if hasattr(tensor, step) else tensor
    if "bfloat16" in str(getattr(tensor, "dtype", "")):
        tensor = tensor.float() if hasattr(tensor, "float") else tensor.astype("float32")
    if hasattr(tensor, "numpy"):
        return np.asarray(tensor.numpy())
    return np.from_dlpack(tensor) if hasattr(tensor, "__dlpack__") else np.asarray(tensor)
