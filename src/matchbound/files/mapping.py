"""Arrays that stay in their file: mapped, and read with care. A map of a file that is cut short ends the process."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from matchbound.errors import DataError
from matchbound.files.origin import Origin, Stamp
from matchbound.scratch import room_for

READ_BYTES = 4 << 30
"""Up to this size (and a quarter of the machine's memory) the array of a file is read before it is counted."""
SPARE_BYTES = 1 << 30
"""How much a private copy of a large file leaves free in the folder of temporary files."""
BLOCK_BYTES = 8 << 20
"""How much of a file is looked at together."""


class FileArray(np.memmap[Any, Any]):
    """A read-only map of an array in a file, which knows the file as it was when it was opened."""

    origin: Origin | None = None
    begin: int = 0
    by_columns: bool = False


def map_array(
    origin: Origin, dtype: np.dtype[Any], begin: int, shape: tuple[int, ...], *, by_columns: bool
) -> NDArray[Any]:
    """An array where it is in a file: it begins at byte `begin`."""
    assert origin.path is not None
    order: Literal["C", "F"] = "F" if by_columns else "C"
    made = FileArray(origin.path, dtype, mode="r", offset=begin, shape=shape, order=order)
    made.origin, made.begin, made.by_columns = origin, begin, by_columns
    return made


def blocks_of(array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Rows of an array, some at a time, with the number of the first; those of a file are read, not mapped."""
    rows = max(BLOCK_BYTES // max(array.itemsize * int(np.prod(array.shape[1:])), 1), 1)
    for start in range(0, array.shape[0], rows):
        yield start, _rows(array, start, min(start + rows, array.shape[0]))


def settled(array: NDArray[Any]) -> NDArray[Any]:
    """An array that nothing outside this process can change: what is in a file is read.

    Into memory, or, where it is large, into a temporary file without a name, which nobody else can cut short. Where the
    folder of temporary files has no room for it, the map of the file itself is used. A file that changed since it was
    opened is an error.
    """
    if not isinstance(array, FileArray) or array.origin is None:
        return array
    limit = _limit()
    shape = array.shape[::-1] if array.by_columns else array.shape
    if array.nbytes > limit and not _fits_on_disk(array.nbytes):
        array.origin.check()
        return array
    found = room_for(shape, array.dtype, in_memory=limit)
    _read_into(array, array.begin, found)
    found = found.T if array.by_columns else found
    found.setflags(write=False)
    return found


def check_unchanged(array: NDArray[Any]) -> None:
    """A DataError where an array is that of a file that has changed since it was opened."""
    if isinstance(array, FileArray) and array.origin is not None:
        array.origin.check()


def _rows(array: NDArray[Any], start: int, stop: int) -> NDArray[Any]:
    if not isinstance(array, FileArray) or array.origin is None:
        return array[start:stop]
    if array.by_columns:
        array.origin.check()
        return np.asarray(array[start:stop])
    found: NDArray[Any] = np.empty((stop - start, *array.shape[1:]), dtype=array.dtype)
    _read_into(array, array.begin + start * (array.nbytes // max(array.shape[0], 1)), found)
    return found


def _read_into(array: FileArray, begin: int, out: NDArray[Any]) -> None:
    """Bytes of the file from `begin` on, into an array; a DataError where the file is not what it was."""
    origin = array.origin
    assert origin is not None
    assert origin.path is not None
    view = out.reshape(-1).view(np.uint8).data
    done = 0
    try:
        with open(origin.path, "rb", buffering=0) as stream:
            if Stamp.of(stream.fileno()) != origin.stamp:
                origin.check()
            stream.seek(begin)
            while done < len(view):
                got = stream.readinto(view[done : done + (64 << 20)])
                if not got:
                    break
                done += got
    except OSError as error:
        raise DataError(f"{origin.name}: cannot be read ({error.strerror or error})") from None
    if done < len(view):
        raise DataError(f"{origin.name} was cut short while it was being used; write it again")


def _fits_on_disk(size: int) -> bool:
    """Whether the folder of temporary files has room for so many bytes, and some to spare."""
    try:
        return shutil.disk_usage(tempfile.gettempdir()).free > size + SPARE_BYTES
    except OSError:
        return False


def _limit() -> int:
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        memory = 4 * READ_BYTES
    return min(READ_BYTES, memory // 4)
