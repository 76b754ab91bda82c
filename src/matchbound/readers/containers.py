"""Whole tables from whatever holds them: data frames, Arrow IPC, JSON lines, Parquet and text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any

import numpy as np

from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.labels import is_missing
from matchbound.errors import DataError, MatchboundError, UsageError, plainly
from matchbound.files.opening import Input, open_input
from matchbound.readers.options import Options
from matchbound.readers.parquet import load_parquet_table
from matchbound.readers.tables import Table, from_table, is_frame, readable
from matchbound.readers.text import load_text_table

# The first four bytes of a compressed frame, as a number.
LZ4, ZSTANDARD = 0x184D2204, 0xFD2FB528
# Bytes beyond which Arrow cannot make room for a buffer.
LARGEST_BUFFER = 1 << 40


def table_of(data: Any) -> Table:
    """All columns of a data frame, or of a file; those of a text file are then text."""
    if not is_frame(data):
        return load_table(open_input(data))
    table = load_frame(data)
    if not table.names:
        raise DataError(f"{table.source} has no columns")
    return table


def read_table(inputs: Sequence[Input], options: Options) -> Comparisons | Embeddings:
    """Comparisons or embeddings from a table in Arrow IPC or JSON lines."""
    return from_table(load_table(inputs[0]), options)


def load_table(source: Input, numbers: Collection[str] = ()) -> Table:
    """All columns of a file; `numbers` are those of a text file that are not text."""
    loaders = {"json": load_json_lines, "parquet": load_parquet_table, "arrow": load_arrow}
    if source.kind == "empty":
        raise DataError(f"{source.name} is empty")
    if source.kind not in ("text", *loaders):
        raise DataError(f"{source.name} is not a table; give CSV, TSV or Parquet (save a workbook as CSV)")
    table = load_text_table(source, numbers) if source.kind == "text" else loaders[source.kind](source)
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

    with readable(source, "the Arrow data"):
        with source.arrow() as raw:
            content = raw.read_buffer()  # so that a length in it that is wrong reserves no memory
        if content[:6].to_pybytes() == b"ARROW1":
            pa.ipc.open_file(content)  # an error where the end of the file is not there
            content = content[8:]
        bodies = [message.body for message in pa.ipc.MessageReader.open_stream(content) if message.body is not None]
        source.check_bytes(sum(map(_unpacked_bytes, bodies)), max(source.max_bytes, source.size or 0))
        data = pa.ipc.open_stream(content).read_all()
        data.validate(full=True)  # offsets that lead out of a buffer would end the process
        return Table(source.name, data)


def _unpacked_bytes(body: Any) -> int:
    """How many bytes the body of an Arrow IPC message takes in memory, at the most.

    Buffers begin at multiples of eight bytes, and a compressed one is its size and a frame of LZ4 or Zstandard. What
    only looks like one, in other data, has a size that no buffer has.
    """
    words = np.frombuffer(body, dtype="<i8", count=body.size // 8)
    begins = words.view("<u4")[2::2]
    sizes = words[:-1][(begins == LZ4) | (begins == ZSTANDARD)]
    return int(body.size + sizes[(sizes > 0) & (sizes < LARGEST_BUFFER)].sum())


def load_json_lines(source: Input) -> Table:
    """The table of lines that are JSON objects, each with the same keys."""
    import pyarrow.json as pa_json

    def where(row: int) -> str:
        return f"{source.name}, line {next(islice(source.filled_lines(), row, None), (0, ''))[0]}"

    with readable(source, "the JSON lines"), source.open() as stream:
        data = pa_json.read_json(stream, read_options=pa_json.ReadOptions(block_size=8 << 20))
    return Table(source.name, data, where)
