"""Parquet files: one, or several that make one table; on disk or elsewhere."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.errors import DataError
from matchbound.files.opening import MAX_BYTES, MAX_RATIO, Input
from matchbound.readers.options import Options
from matchbound.readers.roles import PairRoles, RowRoles
from matchbound.readers.tables import (
    Table,
    build,
    build_embeddings,
    readable,
    stacked,
    vector_type,
    vectors_of,
    without_dictionaries,
)
from matchbound.scratch import room_for

# How the names of Parquet files end.
PARQUET = (".parquet", ".pq")
BATCH_BYTES = 8 << 20
BUFFER_BYTES = 1 << 16
# How long a vector is taken to be where only the vectors themselves say.
USUAL_WIDTH = 512


@contextmanager
def open_parquet(source: Input) -> Iterator[Any]:
    """A `pyarrow.parquet.ParquetFile` whose columns of text come as dictionaries: a few bytes may stand for long texts.

    What goes wrong while it is open is a DataError that names the file. A file on disk is read through small buffers.
    One elsewhere is read ahead, in few and large pieces.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    ahead = {"pre_buffer": True} if source.path is None else {"pre_buffer": False, "buffer_size": BUFFER_BYTES}
    with readable(source, "the Parquet data"), source.arrow() as raw:
        file = pq.ParquetFile(raw, **ahead)
        text = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
        yield pq.ParquetFile(raw, metadata=file.metadata, read_dictionary=text, **ahead) if text else file


def check_size(file: Any, columns: Sequence[str], source: Input) -> None:
    """Refuse a Parquet file that would fill the memory: a few bytes can stand for a billion rows, or for a long text.

    pyarrow is asked for numbers of rows and bytes of row groups only: it ends the process where the metadata of a
    column are damaged. A file may unpack to `MAX_RATIO` times its size.
    """
    wanted = set(columns)
    width = sum(max(getattr(field.type, "list_size", 1), 1) for field in file.schema_arrow if field.name in wanted)
    source.check_bytes(8 * width * max(file.metadata.num_rows, 0))
    groups = [file.metadata.row_group(at) for at in range(file.num_row_groups)]
    source.check_bytes(sum(g.total_byte_size for g in groups), max(source.max_bytes, MAX_RATIO * (source.size or 0)))
    if sum(g.num_rows for g in groups) != file.metadata.num_rows:
        raise DataError(f"{source.name} is damaged: its numbers of rows disagree")


def batches(file: Any, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Record batches of at most so many rows, one row group after the other."""
    for group in range(file.num_row_groups):
        yield from file.iter_batches(batch_size=rows, row_groups=[group], columns=list(columns), use_threads=False)


def load_parquet_table(source: Input) -> Table:
    """All columns of a Parquet file."""
    with open_parquet(source) as file:
        check_size(file, file.schema_arrow.names, source)
        return Table(source.name, file.read())


def read_parquet(sources: Sequence[Input], options: Options) -> Comparisons | Embeddings:
    """Comparisons or embeddings from the needed columns of Parquet files, which must have the same columns."""
    parts: list[Table] = []
    kinds: list[np.dtype[Any]] = []
    rows = 0
    roles: PairRoles | RowRoles | None = None
    for source in sources:
        with open_parquet(source) as file:
            before, roles = roles, options.roles(file.schema_arrow.names, source.name)
            if before is not None and roles != before:
                raise DataError(f"{source.name}: its columns differ from those of {sources[0].name}")
            if isinstance(roles, RowRoles):
                kinds.append(vector_type(file.schema_arrow, roles, source.name))
                check_size(file, roles.labels(), source)
                rows += file.metadata.num_rows
                continue
            wanted = [*roles.labels(), *roles.numbers()]
            check_size(file, wanted, source)
            parts.append(Table(source.name, file.read(columns=wanted)))
            source.check_bytes(parts[-1].data.nbytes)
    if isinstance(roles, RowRoles):
        return _read_embeddings(sources, roles, rows, np.result_type(*kinds), options.kind(sources[0].name))
    assert roles is not None
    table = stacked(parts)
    parts.clear()
    return build(table, roles, options)


def _read_embeddings(
    sources: Sequence[Input], roles: RowRoles, rows: int, dtype: np.dtype[Any], similarity: Similarity
) -> Embeddings:
    """Embeddings read batch by batch into one array of so many rows, so that memory holds the vectors and little else.

    An array beyond `matchbound.scratch.MEMORY_BYTES` is a temporary file.
    """
    import pyarrow as pa

    at_once = max(BATCH_BYTES // (8 * max(len(roles.features), USUAL_WIDTH)), 1)
    room = min(sum(source.max_bytes for source in sources), MAX_BYTES)
    array: NDArray[Any] | None = None
    labels, filled, names = [], 0, roles.labels()
    for source in sources:
        begin, parts = filled, []
        if roles.embedding is not None:
            _check_lists(source, roles.embedding, dtype.itemsize)
        with open_parquet(source) as file:
            for batch in batches(file, [*names, *roles.numbers()], at_once):
                table = Table(source.name, pa.Table.from_batches([batch]), start=filled - begin)
                vectors = vectors_of(table, roles, None if array is None else array.shape[1])
                if array is None:
                    source.check_bytes(rows * vectors.shape[1] * dtype.itemsize, room)
                    array = room_for((rows, vectors.shape[1]), dtype)
                if filled + batch.num_rows > rows:
                    raise DataError(f"{source.name} is damaged: it has more rows than it says")
                array[filled : filled + batch.num_rows] = vectors
                filled += batch.num_rows
                parts.append(without_dictionaries(table.data.select(names)))  # each batch would hold a copy of one
            empty = without_dictionaries(file.schema_arrow.empty_table().select(names))
            labels.append(Table(source.name, pa.concat_tables([empty, *parts])))
    whole = stacked(labels)
    if array is None:
        raise DataError(f"{whole.source} holds no rows")
    if filled < rows:
        raise DataError(f"{whole.source} is damaged: {filled} of {rows} rows are there")
    return build_embeddings(whole, roles, similarity, array)


def _check_lists(source: Input, column: str, width: int) -> None:
    """Refuse lists that would fill the memory: a run of a few bytes can stand for a billion numbers of `width` bytes.

    DuckDB is asked how many there are, because pyarrow ends the process where the metadata of a column are damaged.
    """
    if source.path is None:
        return
    import duckdb

    query = "select sum(num_values) from parquet_metadata(?) where starts_with(path_in_schema, ?)"
    try:
        with duckdb.connect() as connection:
            found = connection.execute(query, [glob.escape(str(source.path)), f"{column}, "]).fetchone()
    except duckdb.Error:  # pyarrow tells better what is wrong with it
        return
    source.check_bytes(width * int((found and found[0]) or 0))
