"""Tensors of other libraries as numpy arrays, by what they can do: none of these libraries is imported here."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchbound.errors import DataError, plainly


def as_numpy(value: Any, name: str) -> Any:
    """A tensor, or a list of tensors, as numpy has it; anything else as it is.

    A tensor is taken off its graph and its device. Numbers of types that numpy does not have, such as bfloat16, become
    float32. A list of batches is one array, a list of tensors of one number each a list of numbers.

    Parameters
    ----------
    value
        What was given.
    name
        What messages call it.
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
