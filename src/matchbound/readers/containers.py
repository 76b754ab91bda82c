"""Whole tables from whatever holds them: data frames, Arrow IPC, JSON lines, Parquet and text."""

from __future__ import annotations

import struct
from collections.abc import Collection
from itertools import islice
from typing import Any

from matchbound.data.labels import is_missing
from matchbound.errors import DataError, MatchboundError, UsageError, plainly
from matchbound.files.opening import Input, open_input
from matchbound.readers.parquet import load_parquet_table
from matchbound.readers.tables import Table, is_frame, readable
from matchbound.readers.text import load_text_table


def table_of(data: Any) -> Table:
    """All columns of a data frame, or of a file; those of a text file are then text."""
    if not is_frame(data):
        return load_table(open_input(data))
    table = load_frame(data)
    if not table.names:
        raise DataError(f"{table.source} has no columns")
    return table


def load_table(source: Input, numbers: Collection[str] = ()) -> Table:
    """All columns of a file; `numbers` are those of a text file that are not text."""
    if source.kind == "empty":
        raise DataError(f"{source.name} is empty")
    if source.kind == "text":
        table = load_text_table(source, numbers)
    elif source.kind == "json":
        table = load_json_lines(source)
    elif source.kind == "parquet" and not source.piped:
        table = load_parquet_table(source)
    elif source.kind == "arrow" and not source.piped:
        table = load_arrow(source)
    else:
        raise DataError(f"{source.name} is not a table; give CSV, TSV or Parquet (save a workbook as CSV)")
    if not table.names:
        raise DataError(f"{source.name} has no columns")
    if not table.data.num_rows:
        raise DataError(f"{source.name} has a header and no rows")
    return table


def load_frame(frame: Any) -> Table:
    """The table of a pandas, polars or pyarrow frame, or of any that speaks Arrow."""
    import pyarrow as pa

    try:
        data = _arrow(frame)
    except (MatchboundError, MemoryError):
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"the frame cannot be turned into columns ({plainly(error, 200)})") from None
    return Table(f"{type(frame).__module__.partition('.')[0]} frame", data)


def _arrow(frame: Any) -> Any:
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    if type(frame).__module__.partition(".")[0] == "pandas":
        try:
            return pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowException, OverflowError):  # objects of several kinds become text, as labels are
            mixed = [name for name, kind in frame.dtypes.items() if kind == object]  # noqa: E721
            texts = {name: [None if is_missing(value) else str(value) for value in frame[name]] for name in mixed}
            return pa.Table.from_pandas(frame.assign(**texts), preserve_index=False)
    if not hasattr(frame, "__arrow_c_stream__") and hasattr(frame, "collect"):
        frame = frame.collect()  # a frame that was not computed yet
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    raise UsageError(
        f"{type(frame).__module__}.{type(frame).__name__} does not speak the Arrow interface; give a pandas, polars or "
        "pyarrow frame"
    )


def load_arrow(source: Input) -> Table:
    """The table of an Arrow IPC file or stream (Feather among them).

    A file is read as the stream that it holds, after a look at the sizes of all messages: unpacking a compressed one
    takes all its memory at once.
    """
    import pyarrow as pa

    with readable(source, "an Arrow IPC file", struct.error):
        with source.arrow() as raw:
            content = raw.read_buffer()  # so that a length in it that is wrong reserves no memory
        if content[:6].to_pybytes() == b"ARROW1":
            pa.ipc.open_file(content)  # an error where the end of the file is not there
            content = content[8:]
        messages = pa.ipc.MessageReader.open_stream(content)
        source.check_bytes(sum(map(_unpacked_bytes, messages)), max(source.max_bytes, source.size or 0))
        data = pa.ipc.open_stream(content).read_all()
        data.validate(full=True)  # offsets that lead out of a buffer would end the process
        return Table(source.name, data)


def _unpacked_bytes(message: Any) -> int:
    """How many bytes the body of an Arrow IPC message unpacks to.

    A compressed buffer begins with its size. Where buffers are is in the metadata, a flatbuffer: a table begins with
    the distance back to its list of fields, which holds the place of each field from the table's beginning.
    """
    data = memoryview(message.metadata)
    body = memoryview(message.body) if message.body is not None else memoryview(b"")

    def field(table: int, number: int) -> int:
        fields = table - struct.unpack_from("<i", data, table)[0]
        place = 4 + 2 * number
        inside = place < struct.unpack_from("<H", data, fields)[0]
        offset = struct.unpack_from("<H", data, fields + place)[0] if inside else 0
        return table + offset if offset else 0

    def follow(place: int) -> int:
        return int(place + struct.unpack_from("<I", data, place)[0])

    if message.type not in ("record batch", "dictionary"):
        return 0
    batch = follow(field(follow(0), 2))
    if message.type == "dictionary":
        batch = follow(field(batch, 1))
    if not field(batch, 3) or not field(batch, 2):
        return body.nbytes
    buffers, total = follow(field(batch, 2)), 0
    for number in range(struct.unpack_from("<I", data, buffers)[0]):
        offset, length = struct.unpack_from("<qq", data, buffers + 4 + 16 * number)
        size = struct.unpack_from("<q", body, offset)[0] if length else 0
        total += length if size < 0 else size
    return total


def load_json_lines(source: Input) -> Table:
    """The table of lines that are JSON objects, each with the same keys."""
    import pyarrow.json as pa_json

    def where(row: int) -> str:
        return f"{source.name}, line {next(islice(source.filled_lines(), row, None), (0, ''))[0]}"

    with readable(source, "a file of JSON lines"), source.open() as stream:
        data = pa_json.read_json(stream, read_options=pa_json.ReadOptions(block_size=8 << 20))
    return Table(source.name, data, where)
