"""Read a score table batch by batch, in memory that does not depend on its length."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.errors import DataError, MissingExtraError
from matchbound.sources.coded import Coded
from matchbound.sources.delimited import read_header, split_header
from matchbound.sources.files import Input, open_input, plainly
from matchbound.sources.roles import PairRoles, find_roles
from matchbound.sources.tables import Table

BATCH_ROWS = 1 << 20
BATCH_BYTES = 32 << 20


@dataclass(frozen=True, eq=False)
class ScoreBatch:
    """Some rows of a score table: the identities of both sides, and the scores, shape (rows,)."""

    a: Coded
    b: Coded
    score: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ScoreScan:
    """A score table that is read while it is used.

    rows : int
        How many rows there are; 0 where that is not known before reading.
    distance : bool
        Whether the name of the score column says that small scores mean "same".
    """

    source: str
    rows: int
    distance: bool
    batches: Iterator[ScoreBatch] = field(repr=False)


@dataclass(frozen=True)
class ScoreFile:
    """A table of comparisons that stays in its file and is read batch by batch whenever it is counted.

    path
        Parquet, CSV or TSV, or an address that fsspec understands.
    distance
        Whether small scores mean "same"; None for what the name of the score column says.
    columns
        Which column plays which part, where the names do not say.
    """

    path: str
    distance: bool | None = None
    columns: Mapping[str, str] | None = None

    def findings(self) -> tuple[str, ...]:
        """What reading in batches cannot see."""
        return ("the table was read in batches: repeated comparisons and numbers of instances were not looked at",)


def scan(
    path: str | os.PathLike[str], *, distance: bool | None = None, columns: Mapping[str, str] | None = None
) -> ScoreFile:
    """A score table too large for memory, for `evaluate`: nothing is read until it is counted.

    Parameters
    ----------
    path
        Parquet, CSV or TSV with two identity columns and a score; or an address that fsspec understands (Parquet).
    distance, columns
        As in `read`.
    """
    return ScoreFile(os.fspath(path), distance, columns)


def scan_scores(path: str | os.PathLike[str], *, columns: Mapping[str, str] | None = None) -> ScoreScan:
    """Open a Parquet, CSV or TSV table of comparisons for reading in batches; fsspec addresses work too."""
    where = os.fspath(path)
    if "://" in where:
        return _scan_parquet(where, _remote(where), columns)
    source = open_input(path)
    if source.kind == "parquet":
        return _scan_parquet(source.name, str(source.path), columns)
    if source.kind == "text":
        return _scan_text(source, columns)
    raise DataError(f"{source.name} holds no table of scores; give Parquet, CSV or TSV")


def _remote(address: str) -> Any:
    try:
        import fsspec
    except ImportError:
        raise MissingExtraError(f"fsspec is not installed, and {address} needs it; pip install fsspec") from None
    try:
        return fsspec.open(address, "rb").open()
    except (OSError, ValueError) as error:
        raise DataError(f"{address}: cannot be read ({plainly(error, 200)})") from None


def _pair_roles(names: list[str], source: str, columns: Mapping[str, str] | None) -> tuple[PairRoles, str, str]:
    roles = find_roles(names, source, columns=columns)
    if not isinstance(roles, PairRoles) or roles.id_a is None or roles.id_b is None:
        raise DataError(f"{source}: a table is read in batches when it has two identity columns and a score")
    return roles, roles.id_a, roles.id_b


def _scan_parquet(name: str, file: Any, columns: Mapping[str, str] | None) -> ScoreScan:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        opened = pq.ParquetFile(file)
        roles, id_a, id_b = _pair_roles(opened.schema_arrow.names, name, columns)
        text = [at for at in (id_a, id_b) if pa.types.is_string(opened.schema_arrow.field(at).type)]
        if text:
            opened = pq.ParquetFile(file, read_dictionary=text)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{name}: not a Parquet file that can be read ({plainly(error, 200)})") from None

    def batches() -> Iterator[Any]:
        yield from opened.iter_batches(batch_size=BATCH_ROWS, columns=[id_a, id_b, roles.score])

    return ScoreScan(
        name, opened.metadata.num_rows, roles.distance, _decoded(name, "row", batches(), roles, id_a, id_b)
    )


def _scan_text(source: Input, columns: Mapping[str, str] | None) -> ScoreScan:
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    at, header = read_header(source)
    names, delimiter = split_header(header, source.name)
    roles, id_a, id_b = _pair_roles(names, source.name, columns)
    kinds = {id_a: pa.string(), id_b: pa.string(), roles.score: pa.float64()}

    def batches() -> Iterator[Any]:
        with source.open() as stream:
            reader = pa_csv.open_csv(
                stream,
                read_options=pa_csv.ReadOptions(column_names=names, skip_rows=at, block_size=BATCH_BYTES),
                parse_options=pa_csv.ParseOptions(delimiter=delimiter),
                convert_options=pa_csv.ConvertOptions(column_types=kinds, include_columns=list(kinds)),
            )
            yield from reader

    return ScoreScan(source.name, 0, roles.distance, _decoded(source.name, "row", batches(), roles, id_a, id_b))


def _place(name: str, unit: str, start: int) -> Callable[[int], str]:
    """Says where a row of a batch is in the file."""
    return lambda row: f"{name}, {unit} {start + row}"


def _decoded(
    name: str, unit: str, batches: Iterator[Any], roles: PairRoles, id_a: str, id_b: str
) -> Iterator[ScoreBatch]:
    import pyarrow as pa

    seen = 0
    try:
        for batch in batches:
            table = Table(name, pa.Table.from_batches([batch]), _place(name, unit, seen))
            yield ScoreBatch(table.coded(id_a), table.coded(id_b), table.numbers(roles.score))
            seen += batch.num_rows
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{name}, after {unit} {seen}: {plainly(error, 200)}") from None
