"""What the footer of a Parquet file says of its columns, read here: pyarrow ends the process where one is damaged.

The footer and the header of each page are structures of Thrift's compact protocol: fields with a number and a type.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

MARK = b"PAR1"
MOST_FOOTER = 64 << 20


@dataclass(frozen=True)
class Chunk:
    """A part of a column: its first name, how many values it holds, and where it lies."""

    column: str
    values: int
    nested: bool
    packed: int
    unpacked: int
    start: int


class _Compact:
    """Reads structures of the compact protocol from bytes; a field is known by its number."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def structure(self) -> dict[int, Any]:
        found: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._whole()
            found[number] = self._value(head & 15)
        return found

    def _byte(self) -> int:
        value = self.data[self.at]
        self.at += 1
        return value

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError("a number without end")

    def _whole(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _bytes(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError("a text that is longer than the file")
        self.at += size
        return self.data[self.at - size : self.at]

    def _value(self, kind: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._whole()
        if kind == 7:
            return struct.unpack("<d", self._bytes(8))[0]
        if kind == 8:
            return self._bytes(self._varint())
        if kind in (9, 10):
            head = self._byte()
            size = self._varint() if head >> 4 == 15 else head >> 4
            item = head & 15
            return [self._byte() if item in (1, 2) else self._value(item) for _ in range(size)]
        if kind == 12:
            return self.structure()
        raise ValueError(f"a field of type {kind}")


def chunks(file: Any, size: int) -> list[Chunk]:
    """The parts of all columns; nothing where the footer cannot be read, which pyarrow tells better.

    Parameters
    ----------
    file
        Binary, open for reading.
    size
        Of the file, in bytes.
    """
    try:
        file.seek(max(size - 8, 0))
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != MARK or length > min(size - 8, MOST_FOOTER):
            return []
        file.seek(size - 8 - length)
        footer = _Compact(file.read(length)).structure()
        return [_chunk(column[3]) for group in footer[4] for column in group[1]]
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, OSError, RecursionError):
        return []


def _chunk(told: dict[int, Any]) -> Chunk:
    path = [bytes(name).decode("utf-8", "replace") for name in told[3]]
    starts = [int(told[field]) for field in (9, 11) if field in told]
    return Chunk(path[0], int(told[5]), len(path) > 1, int(told[7]), int(told[6]), min(starts))


def values_in_lists(parts: Sequence[Chunk]) -> int:
    """How many values the columns of lists hold."""
    return sum(part.values for part in parts if part.nested)


def largest_page(file: Any, part: Chunk) -> int:
    """How many bytes the largest page of a part unpacks to, by what the pages say; what cannot be read counts as 0."""
    return max(_pages(file, part), default=0)


def _pages(file: Any, part: Chunk) -> Iterator[int]:
    at, end = part.start, part.start + part.packed
    try:
        while at < end:
            file.seek(at)
            reader = _Compact(file.read(4096))
            page = reader.structure()
            yield int(page[2])
            at += reader.at + max(int(page[3]), 0)
    except (IndexError, KeyError, TypeError, ValueError, OSError, RecursionError):
        return
