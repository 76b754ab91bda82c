"""Room for arrays that may be larger than memory."""

from __future__ import annotations

import errno
import math
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from matchbound.errors import DataError

MEMORY_BYTES = 4 << 30
"""Arrays beyond this go to a temporary file."""


def room_for(shape: tuple[int, ...], dtype: DTypeLike = np.float32, in_memory: int | None = None) -> NDArray[Any]:
    """An array to fill: in memory, or in a temporary file that is gone when the array is, where it is large.

    Parameters
    ----------
    in_memory
        Up to so many bytes it is in memory; by default `MEMORY_BYTES`.
    """
    kind = np.dtype(dtype)
    need = math.prod(shape) * kind.itemsize
    if need <= (MEMORY_BYTES if in_memory is None else in_memory) or not need:
        return np.empty(shape, dtype=kind)
    with tempfile.TemporaryFile(prefix="matchbound-") as stream:
        try:
            _reserve(stream.fileno(), need)
            return np.asarray(np.memmap(stream, dtype=kind, mode="w+", shape=shape))
        except OSError as error:
            raise DataError(
                f"no room for {need:,} bytes in {tempfile.gettempdir()} ({error.strerror or error}); set TMPDIR to a "
                "folder on a larger disk"
            ) from None


def _reserve(file: int, size: int) -> None:
    """Take the room on disk now: a disk that fills up while a map is written to ends the process."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # not every file system can
                raise
