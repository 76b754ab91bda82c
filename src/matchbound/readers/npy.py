"""Arrays of ``.npy`` and ``.npz`` files: left on disk where they can be, read once where not; nothing is unpickled."""

from __future__ import annotations

import math
import struct
import zipfile
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from matchbound.errors import DataError, argument, plainly
from matchbound.files.mapping import map_array
from matchbound.files.opening import Input
from matchbound.readers.roles import repeated
from matchbound.scratch import room_for

MAP_BYTES = 1 << 20
"""Arrays beyond this stay on disk where the file allows it."""
PIECE_BYTES = 16 << 20
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_ENCRYPTED = 0x1


def load_npy(source: Input, *, mmap: bool = True) -> NDArray[Any]:
    """The array of an ``.npy`` file, left on disk where it can be."""
    if source.piped or source.gzipped:
        raise DataError(f"{source.name}: an .npy file must be a plain file")
    try:
        with source.open() as stream:
            header = _read_header(stream, source.max_bytes if source.size is None else source.size)
            if mmap and source.path is not None and header.bytes > MAP_BYTES:
                return header.map(source, stream.tell())
            return _read_numbers(stream, header)
    except DataError:
        raise
    except Exception as error:  # a damaged header makes numpy's parser raise nearly anything
        raise DataError(f"{source.name} {_reason(error)}") from None


def load_npz(source: Input) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` file, by name.

    A large array that `numpy.savez` stored as it is stays on disk, and its checksum is not looked at; compressed ones,
    and those of a file elsewhere, are read.
    """
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
            if not any(item.filename.endswith(".npy") for item in entries):
                raise DataError(f"{source.name} is a zip archive without arrays; give an .npz file, or unpack it")
            twice = repeated([item.filename for item in entries])
            if twice is not None:
                raise DataError(
                    f"{source.name}: the array {plainly(twice.removesuffix('.npy'))!r} is in the archive more than "
                    "once; write it again with one of them"
                )
            mapped = {item.filename for item in entries if _can_be_mapped(source, item)}
            total = sum(item.file_size for item in entries if item.filename not in mapped)
            if total > source.max_bytes:
                raise DataError(
                    f"{source.name}: unpacks to {total:,} bytes, more than {source.max_bytes:,}; if that is "
                    f"expected, give a larger {argument('max_bytes', ...)}"
                )
            arrays: dict[str, NDArray[Any]] = {}
            for item in entries:
                name = item.filename.removesuffix(".npy")
                if name == item.filename:
                    raise DataError(f"{source.name}: the entry {plainly(name)!r} is not an array")
                try:
                    if item.filename in mapped and source.path is not None:
                        arrays[name] = _map_member(source, item)
                    else:
                        arrays[name] = _read_member(archive, item)
                except DataError:
                    raise
                except Exception as error:  # as above
                    raise DataError(f"{source.name}: the array {name!r} {_reason(error)}") from None
            return arrays
    except DataError:
        raise
    except Exception as error:  # so does a damaged archive
        raise DataError(f"{source.name} {_reason(error)}") from None


class _PythonObjects(ValueError):
    """An array does not hold numbers or text but pickled objects."""


@dataclass(frozen=True)
class _Header:
    """What an array's header says."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def map(self, source: Input, begin: int) -> NDArray[Any]:
        """The numbers where they are on disk, read-only."""
        return map_array(source.origin, self.dtype, begin, self.shape, by_columns=self.by_columns)


def _read_header(stream: IO[bytes], size: int) -> _Header:
    """The header at the beginning of a stream of so many bytes; the numbers follow."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version in ((2, 0), (3, 0)):
        shape, by_columns, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f"version {version} of the format is not known")
    if dtype.hasobject:
        raise _PythonObjects
    header = _Header(tuple(int(n) for n in shape), bool(by_columns), dtype)
    if min(header.shape, default=0) < 0:
        raise ValueError(f"its shape is {header.shape}")
    if size - stream.tell() < header.bytes:
        raise ValueError(f"its header promises {header.bytes:,} bytes of numbers")
    return header


def _read_numbers(stream: Any, header: _Header) -> NDArray[Any]:
    """The numbers that follow a header, read piece by piece into an array that is made once."""
    shape = header.shape[::-1] if header.by_columns else header.shape
    array = room_for(shape, header.dtype)
    view = array.reshape(-1).view(np.uint8).data if header.bytes else memoryview(b"")
    done = 0
    while done < len(view):
        got = stream.readinto(view[done : done + PIECE_BYTES])
        if not got:
            raise ValueError(f"its header promises {header.bytes:,} bytes of numbers")
        done += got
    return array.T if header.by_columns else array


def _read_member(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(item) as stream:
        array = _read_numbers(stream, _read_header(stream, item.file_size))
        stream.read(1)  # at the end, the checksum is compared
        return array


def _can_be_mapped(source: Input, item: zipfile.ZipInfo) -> bool:
    return (
        source.path is not None
        and not source.gzipped
        and item.compress_type == zipfile.ZIP_STORED
        and item.file_size == item.compress_size
        and item.file_size > MAP_BYTES
        and not item.flag_bits & _ENCRYPTED
    )


def _map_member(source: Input, item: zipfile.ZipInfo) -> NDArray[Any]:
    """An array that an archive stores as it is, where it lies in the file."""
    assert source.path is not None
    with open(source.path, "rb") as stream:
        stream.seek(item.header_offset)
        mark, name_size, extra_size = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
        if mark != b"PK\x03\x04":
            raise ValueError("the archive does not have it where its directory says")
        stream.seek(name_size + extra_size, 1)
        begin = stream.tell()
        if begin + item.file_size > source.path.stat().st_size:
            raise ValueError("the file ends before it does")
        header = _read_header(stream, begin + item.file_size)
        if header.bytes <= MAP_BYTES:
            return _read_numbers(stream, header)
        return header.map(source, stream.tell())


def _reason(error: BaseException) -> str:
    if isinstance(error, _PythonObjects):
        return (
            "holds Python objects, which are never unpickled because that can run code; save labels as text or "
            "integers (np.asarray(labels, dtype=str)) and vectors as one float array"
        )
    return f"is damaged or cut short ({plainly(str(error).strip() or type(error).__name__, 200)}); write it again"
