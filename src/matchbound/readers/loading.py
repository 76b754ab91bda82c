"""Tables that stay on disk, read into memory for what needs all of their rows at once."""

from __future__ import annotations

import os
from typing import Protocol, cast

from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError
from matchbound.files.opening import open_input
from matchbound.readers.read import read
from matchbound.readers.scan import ScoreFile


class Frame(Protocol):
    """A data frame that speaks the Arrow interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A stream of its rows."""


Readable = str | os.PathLike[str] | Frame
"""What `read` takes: the path or address of a file, or a data frame."""
Source = Comparisons | Embeddings | ScoreFile

ROW_BYTES = 80
"""Memory that a row takes at the least: identities, instances and the score, and as much again to match them."""
LINE_BYTES = 200
"""A line of text is taken to be no longer than this."""


def as_source(data: Source | Readable) -> Source:
    """Data as they are, and a file or a data frame as `read` reads it; what is neither, the caller will refuse."""
    if isinstance(data, Comparisons | Embeddings | ScoreFile):
        return data
    from matchbound.readers.frames import is_frame

    return read(data) if isinstance(data, str | os.PathLike) or is_frame(data) else cast("Source", data)


def in_memory(source: Source | Readable) -> Comparisons | Embeddings:
    """The same data in memory; a table that stays on disk is read, unless it cannot fit."""
    source = as_source(source)
    if not isinstance(source, ScoreFile):
        return source
    need, room = ROW_BYTES * least_rows(source.path), physical_memory()
    if need > room:
        raise DataError(
            f"{source.path}: this needs the whole table in memory, at least {need / 1e9:.3g} GB, and the machine has "
            f"{room / 1e9:.3g} GB; take a part of the identities, or count the table with evaluate"
        )
    return read(source.path, distance=source.distance, columns=source.columns, group=source.group)


def least_rows(path: str) -> int:
    """How many rows a table has at the least, without reading it; 0 where that cannot be known."""
    source = open_input(path)
    if source.path is None:
        return 0
    if source.kind != "parquet":
        return source.path.stat().st_size // LINE_BYTES
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(str(source.path)).num_rows)
    except (pa.ArrowException, OSError):
        return 0  # reading it will say what is wrong


def physical_memory() -> float:
    """Bytes of memory of this machine; infinite where the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")
