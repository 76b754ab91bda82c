"""Delimited text in blocks of whole lines: parsed by pyarrow in threads, labels hashed block by block, in order."""

from __future__ import annotations

import codecs
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any, TypeVar

from matchbound.errors import DataError
from matchbound.files.opening import MAX_LINE, Input, report_progress
from matchbound.notes import Note

T = TypeVar("T")

BLOCK_BYTES = 8 << 20
"""How much text is parsed at once."""
WIDE = 1000
"""Tables of more columns are parsed a block at a time: each column of a block takes kilobytes."""
SLACK_BYTES = 1 << 16
"""Room beyond that for the part of a line that a piece before it ended with."""


@dataclass(frozen=True)
class TextLayout:
    """How the lines of a delimited file are read.

    Attributes
    ----------
    names : tuple of str
        All columns of the file, in order.
    labels, numbers : tuple of str
        The columns that are read: as dictionaries of text, and as float64.
    delimiter, decimal : str
        The character between columns, and that before decimals.
    header_at : int
        The number of the header's line, from 1.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    numbers: tuple[str, ...]
    delimiter: str
    header_at: int
    decimal: str = "."

    def notes(self) -> tuple[Note, ...]:
        """What was taken where there was a choice."""
        return (Note("decimal-commas", "numbers were read with decimal commas"),) if self.decimal == "," else ()


class LongLineError(DataError):
    """A line is too long for a table of text."""


def text_blocks(source: Input, layout: TextLayout) -> Iterator[Any]:
    """Arrow tables of the rows after the header, one for each block, in order.

    What pyarrow cannot parse is an `ArrowException` that does not know its line: see `matchbound.readers.delimited`.
    """
    most = 1 if len(layout.labels) + len(layout.numbers) > WIDE else 8
    return each_block(source, layout.header_at, lambda block: _parse(block, layout), layout.delimiter, most)


def each_block(
    source: Input,
    above: int,
    parse: Callable[[memoryview], T],
    delimiter: str | None = None,
    most: int = 8,
) -> Iterator[T]:
    """What is made of each block of whole lines, in order; some blocks are parsed at once, in threads.

    Parameters
    ----------
    above
        How many lines at the top are left out.
    parse
        From a block to what is made of it; the block is gone afterwards.
    delimiter
        Rows at the end that hold nothing but this are left out; by default every row is kept.
    most
        How many threads there may be.
    """
    source.check_unpacked()
    workers = max(min(os.cpu_count() or 1, most, 2 if source.gzipped else 8), 1)  # unpacking keeps two busy at most
    total = source.size if not source.gzipped else 0
    done = 0
    with source.open() as stream, ThreadPoolExecutor(workers) as pool:
        for _ in range(above):
            stream.readline(MAX_LINE)
        waiting: deque[tuple[memoryview, Future[T]]] = deque()
        spare: list[bytearray] = []

        def parsed() -> T:
            nonlocal done
            block, first = waiting.popleft()
            made = first.result()
            done += len(block)
            report_progress(done, total or 0)
            spare.append(block.obj)  # type: ignore[arg-type]
            return made

        try:
            for number, block in enumerate(_whole_lines(stream, source.name, delimiter, spare)):
                marked = number > 0 or above > 0
                waiting.append((block, pool.submit(parse, _kept_mark(block) if marked else block)))
                if len(waiting) > workers:
                    yield parsed()
            while waiting:
                yield parsed()
        finally:
            for _, future in waiting:
                future.cancel()


def _last_row(room: bytearray, filled: int, delimiter: str) -> int:
    """Where the last row ends that holds something."""
    empty = f' \r\t"{delimiter}'.encode()
    while filled:
        begin = room.rfind(b"\n", 0, filled - 1) + 1
        if bytes(room[begin:filled]).strip(b"\n").strip(empty):
            break
        filled = begin
    return filled


def _whole_lines(
    stream: IO[bytes], name: str, delimiter: str | None = ",", spare: list[bytearray] | None = None
) -> Iterator[memoryview]:
    """The rest of a stream in pieces that end with a line; each is read once and copied nowhere.

    Parameters
    ----------
    delimiter
        Rows at the end that hold nothing but delimiters, as spreadsheets write them, are left out; None to keep them.
    spare
        Memory of pieces that nobody looks at any more, to be used again: new memory costs as much as reading.
    """
    spare = [] if spare is None else spare
    rest = b""
    while True:
        size = len(rest) + BLOCK_BYTES
        room = next((spare.pop(at) for at, old in enumerate(spare) if len(old) >= size), None) or bytearray(
            size + SLACK_BYTES
        )
        room[: len(rest)] = rest
        filled = len(rest) + _fill(stream, memoryview(room)[len(rest) : size])
        if filled < size:
            filled = filled if delimiter is None else _last_row(room, filled, delimiter)
            if not _is_blank(memoryview(room)[:filled]):
                yield memoryview(room)[:filled]
            return
        cut = room.rfind(b"\n", len(rest), filled) + 1
        if not cut and filled > MAX_LINE:
            raise LongLineError(f"{name}: a line is longer than {MAX_LINE:,} bytes: not a table of text")
        if cut and not _is_blank(memoryview(room)[:cut]):
            yield memoryview(room)[:cut]
        rest = bytes(memoryview(room)[cut:filled])


def _kept_mark(block: memoryview) -> memoryview:
    """The block for a parser that drops a byte order mark at its start: inside a file it is part of a label."""
    return memoryview(codecs.BOM_UTF8 + bytes(block)) if bytes(block[:3]) == codecs.BOM_UTF8 else block


def _is_blank(block: memoryview) -> bool:
    return not block or (bytes(block[:64]).isspace() and bytes(block).isspace())


def _fill(stream: IO[bytes], room: memoryview) -> int:
    """Read until there is no room left or nothing more to read; how much was read."""
    done = 0
    while done < len(room):
        got = stream.readinto(room[done:])  # type: ignore[attr-defined]
        if not got:
            break
        done += got
    return done


def _parse(block: memoryview, layout: TextLayout) -> Any:
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    kinds: dict[str, Any] = dict.fromkeys(layout.labels, pa.string()) | dict.fromkeys(layout.numbers, pa.float64())
    data = pa_csv.read_csv(
        pa.BufferReader(pa.py_buffer(block)),
        read_options=pa_csv.ReadOptions(
            column_names=list(layout.names), use_threads=False, block_size=max(len(block) + 1, 1)
        ),
        parse_options=pa_csv.ParseOptions(delimiter=layout.delimiter),
        convert_options=pa_csv.ConvertOptions(
            column_types=kinds, include_columns=list(kinds), decimal_point=layout.decimal
        ),
    )
    labels = set(layout.labels)
    columns = [
        column.combine_chunks().dictionary_encode() if name in labels else column
        for name, column in zip(kinds, data.itercolumns(), strict=True)  # by place: a wide table has many names
    ]
    return pa.table(columns, names=list(kinds))
