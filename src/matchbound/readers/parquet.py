"""Parquet files: one, or several that make one table; on disk or elsewhere."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.errors import DataError, MatchboundError, argument, plainly
from matchbound.files.opening import MAX_BYTES, MAX_RATIO, Input
from matchbound.readers.roles import PairRoles, RowRoles, find_roles
from matchbound.readers.tables import Table, build, build_embeddings, check_similarity
from matchbound.readers.vectors import fill_vectors, vector_type, vector_width
from matchbound.scratch import room_for

BATCH_BYTES = 8 << 20
BUFFER_BYTES = 1 << 16
USUAL_WIDTH = 512
"""How long a vector is taken to be where only the vectors themselves say."""


def read_parquet(
    sources: Sequence[Input],
    *,
    distance: bool | None = None,
    similarity: Similarity = "cosine",
    columns: Mapping[str, str] | None = None,
    group: str | None = None,
    missing: str = "error",
) -> Comparisons | Embeddings:
    """Comparisons or embeddings from the needed columns of Parquet files."""
    survey = _survey(sources, columns, group)
    roles = survey.roles
    if isinstance(roles, RowRoles):
        kind = check_similarity(_called(sources), distance, similarity)
        room = min(sum(source.max_bytes for source in sources), MAX_BYTES)
        return _read_embeddings(sources, roles, _Vectors(survey.rows, survey.dtype, room), kind)
    wanted = [*roles.labels(), roles.score]
    parts = []
    for source in sources:
        with open_parquet(source, read_dictionary=survey.text) as file:
            check_size(file, wanted, source.name, source.max_bytes, source.size)
            part = file.read(columns=wanted)
            check_bytes(part.nbytes, source.name, source.max_bytes)
            parts.append(part)
    table = _together(sources, parts)
    del part
    parts.clear()
    return build(table, roles, distance=distance, similarity=similarity, missing=missing)


def load_parquet_table(source: Input) -> Table:
    """All columns of a Parquet file."""
    with open_parquet(source) as file:
        check_size(file, file.schema_arrow.names, source.name, source.max_bytes, source.size)
        return _together([source], [file.read()])


@contextmanager
def open_parquet(source: Input, **options: Any) -> Iterator[Any]:
    """A `pyarrow.parquet.ParquetFile`; what goes wrong while it is open is a DataError that names the file.

    A file on disk is read through small buffers. One elsewhere is read ahead, in few and large pieces.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    ahead = {"pre_buffer": True} if source.path is None else {"pre_buffer": False, "buffer_size": BUFFER_BYTES}
    try:
        with source.arrow() as raw:
            yield pq.ParquetFile(raw, **ahead, **options)
    except MatchboundError:
        raise
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{source.name}: not a Parquet file that can be read ({plainly(str(error).strip(), 200)}); write it again"
        ) from None


def batches(file: Any, columns: Sequence[str], rows: int, only: int | None = None) -> Iterator[Any]:
    """Record batches of at most so many rows, one row group after the other, or of one of them."""
    for group in range(file.num_row_groups) if only is None else (only,):
        yield from file.iter_batches(batch_size=rows, row_groups=[group], columns=list(columns), use_threads=False)


def place(name: str, start: int) -> Callable[[int], str]:
    """Says where a row of a batch is in the file."""
    return lambda row: f"{name}, row {start + row}"


def check_size(
    file: Any, columns: Sequence[str], source: str, max_bytes: int = MAX_BYTES, size: int | None = None
) -> None:
    """Refuse a Parquet file that would fill the memory: a few bytes can stand for a billion rows, or for a long text.

    pyarrow is asked for numbers of rows and bytes of row groups only: it ends the process where the metadata of a
    column are damaged.

    Parameters
    ----------
    file, columns
        The file, and what will be read of it.
    source
        What messages call it.
    max_bytes
        How much it may unpack to.
    size
        Bytes in the file: it may unpack to `MAX_RATIO` times as much.
    """
    wanted = set(columns)
    width = sum(max(getattr(field.type, "list_size", 1), 1) for field in file.schema_arrow if field.name in wanted)
    check_bytes(8 * width * max(file.metadata.num_rows, 0), source, max_bytes)
    groups = (file.metadata.row_group(at) for at in range(file.num_row_groups))
    check_bytes(sum(group.total_byte_size for group in groups), source, max(max_bytes, MAX_RATIO * (size or 0)))


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
    check_bytes(width * int((found and found[0]) or 0), source.name, source.max_bytes)


def check_bytes(need: int, source: str, max_bytes: int) -> None:
    """Refuse a file that unpacks to more bytes than it may."""
    if need > max_bytes:
        raise DataError(
            f"{source}: unpacks to {need:,} bytes, more than {max_bytes:,}; if that is expected, give a larger "
            f"{argument('max_bytes', ...)}"
        )


@dataclass(frozen=True)
class _Survey:
    """What the footers of some files say.

    rows : int
        Of all files together.
    dtype : numpy.dtype or None
        The smallest type that holds the vectors of every file, where they hold vectors.
    text : list of str
        The columns of labels that hold text in every file.
    """

    roles: PairRoles | RowRoles
    rows: int
    dtype: np.dtype[Any] | None
    text: list[str]


def _survey(sources: Sequence[Input], columns: Mapping[str, str] | None, group: str | None) -> _Survey:
    """What the columns are, the same in every file, and how many rows there are."""
    import pyarrow as pa

    roles: PairRoles | RowRoles | None = None
    rows = 0
    kinds: list[np.dtype[Any]] = []
    texts: list[set[str]] = []
    for source in sources:
        with open_parquet(source) as file:
            found = find_roles(file.schema_arrow.names, source.name, columns=columns, group=group)
            if isinstance(found, RowRoles):
                kinds.append(vector_type(file.schema_arrow, found, source.name))
            kind_of = {field.name: field.type for field in file.schema_arrow}
            texts.append({name for name in found.labels() if pa.types.is_string(kind_of[name])})
            groups = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
            if sum(groups) != file.metadata.num_rows:
                raise DataError(f"{source.name}: not a Parquet file that can be read (its numbers of rows disagree)")
            rows += sum(groups)
        if roles is not None and found != roles:
            raise DataError(f"{source.name}: its columns differ from those of {sources[0].name}")
        roles = found
    assert roles is not None
    text = sorted(set.intersection(*texts))
    return _Survey(roles, rows, np.result_type(*kinds) if kinds else None, text)


def _together(sources: Sequence[Input], parts: Sequence[Any]) -> Table:
    """One table from one table per file."""
    import pyarrow as pa

    sizes = [part.num_rows for part in parts]

    def where(row: int) -> str:
        for source, size in zip(sources, sizes, strict=True):
            if row < size:
                return f"{source.name}, row {row}"
            row -= size
        return f"row {row}"

    try:
        data = pa.concat_tables(parts, promote_options="permissive")
    except MemoryError:
        raise
    except pa.ArrowException as error:
        raise DataError(
            f"{sources[0].name} and the files beside it do not make one table ({plainly(error, 200)})"
        ) from None
    return Table(_called(sources), data, where)


def _called(sources: Sequence[Input]) -> str:
    return sources[0].name if len(sources) == 1 else f"{len(sources)} files from {sources[0].name}"


def _read_embeddings(
    sources: Sequence[Input], roles: RowRoles, vectors: _Vectors, similarity: Similarity
) -> Embeddings:
    """Embeddings read batch by batch into one array, so that memory holds the vectors and little else.

    An array beyond `matchbound.scratch.MEMORY_BYTES` is a temporary file.
    """
    parts = []
    for source in sources:
        with open_parquet(source) as file:
            parts.append(vectors.add(source, file, roles))
    if not vectors.filled:
        raise DataError(f"{_called(sources)} holds no rows")
    if vectors.filled < vectors.rows:
        raise DataError(f"{_called(sources)} is damaged: {vectors.filled} of {vectors.rows} rows are there")
    return build_embeddings(_together(sources, parts), roles, similarity, vectors.array)


class _Vectors:
    """An array that is made when the first vector shows how long vectors are, and filled batch by batch."""

    def __init__(self, rows: int, dtype: np.dtype[Any] | None, max_bytes: int) -> None:
        self.rows, self.filled, self._max_bytes = rows, 0, max_bytes
        self.array: NDArray[Any] = np.empty((0, 0), dtype=dtype)

    def add(self, source: Input, file: Any, roles: RowRoles) -> Any:
        """Take the vectors of a file; its labels come back, as a table."""
        import pyarrow as pa

        features = [roles.embedding] if roles.embedding is not None else roles.features
        names = roles.labels()
        at_once = max(BATCH_BYTES // (8 * max(len(features), USUAL_WIDTH)), 1)
        before, labels = self.filled, []
        check_size(file, names, source.name, source.max_bytes, source.size)
        if roles.embedding is not None:
            _check_lists(source, roles.embedding, self.array.dtype.itemsize)
        for batch in batches(file, [*names, *features], at_once):
            table = Table(source.name, pa.Table.from_batches([batch]), place(source.name, self.filled - before))
            if not self.filled:
                self._make(vector_width(table, roles), source)
            if self.filled + batch.num_rows > self.rows:
                raise DataError(f"{source.name} is damaged: it has more rows than it says")
            fill_vectors(table, roles, self.array[self.filled : self.filled + batch.num_rows])
            self.filled += batch.num_rows
            labels.append(_columns(table.data, names))
        return pa.concat_tables(labels) if labels else _columns(file.schema_arrow.empty_table(), names)

    def _make(self, width: int, source: Input) -> None:
        check_bytes(self.rows * width * self.array.dtype.itemsize, source.name, self._max_bytes)
        self.array = room_for((self.rows, width), self.array.dtype)


def _columns(data: Any, names: Sequence[str]) -> Any:
    """Some columns of a table, without dictionaries, of which every batch would hold a copy."""
    import pyarrow as pa

    found = [data.column(name) for name in names]
    plain = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in found]
    return pa.table(plain, names=list(names))
