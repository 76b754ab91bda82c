"""Tables in other containers, which pyarrow reads: Arrow IPC and JSON lines."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from matchbound.errors import DataError, MatchboundError, plainly
from matchbound.files.opening import Input
from matchbound.readers.parquet import check_bytes
from matchbound.readers.tables import Table


def load_arrow(source: Input) -> Table:
    """The table of an Arrow IPC file or stream (Feather among them)."""
    import pyarrow as pa

    def load() -> Any:
        with source.arrow() as raw:
            head = raw.read(6)
            raw.seek(0)
            reader = pa.ipc.open_file(raw) if head == b"ARROW1" else pa.ipc.open_stream(raw)
            numbered = (reader.get_batch(k) for k in range(reader.num_record_batches)) if head == b"ARROW1" else reader
            batches, size = [], 0
            for batch in numbered:
                size += batch.nbytes
                check_bytes(size, source.name, max(source.max_bytes, source.size or 0))
                batches.append(batch)
            return pa.Table.from_batches(batches, reader.schema)

    return Table(source.name, _checked(source, "an Arrow IPC file", load), lambda row: f"{source.name}, row {row}")


def load_json_lines(source: Input) -> Table:
    """The table of lines that are JSON objects, each with the same keys."""
    import pyarrow.json as pa_json

    def load() -> Any:
        source.check_unpacked()
        with source.open() as stream:
            return pa_json.read_json(stream, read_options=pa_json.ReadOptions(block_size=8 << 20))

    def where(row: int) -> str:
        return f"{source.name}, line {next(islice(source.filled_lines(), row, None), (0, ''))[0]}"

    return Table(source.name, _checked(source, "a file of JSON lines", load), where)


def is_json_lines(source: Input) -> bool:
    """Whether the first line that is not blank is a JSON object."""
    line = next((text.strip() for _, text in islice(source.lines(), 20) if text.strip()), "")
    return line.startswith("{") and line.endswith("}")


def _checked(source: Input, what: str, load: Callable[[], Any]) -> Any:
    """An Arrow table; what goes wrong with it is a DataError that names the file."""
    import pyarrow as pa

    try:
        return load()
    except (MatchboundError, MemoryError):
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{source.name}: not {what} that can be read ({plainly(error, 200)}); write it again") from None
