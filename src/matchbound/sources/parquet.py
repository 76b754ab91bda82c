"""Parquet files: one, or several that make one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from matchbound.errors import DataError
from matchbound.sources.comparisons import Comparisons
from matchbound.sources.embeddings import Embeddings, Similarity
from matchbound.sources.files import MAX_BYTES, Input, open_input, plainly
from matchbound.sources.roles import PairRoles, find_roles
from matchbound.sources.tables import Table, build


def read_parquet(
    paths: Sequence[str | PathLike[str]],
    *,
    distance: bool | None = None,
    similarity: Similarity = "cosine",
    columns: Mapping[str, str] | None = None,
    group: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Comparisons | Embeddings:
    """Comparisons or embeddings from the needed columns of Parquet files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts: list[tuple[str, Any]] = []
    roles = None
    for path in paths:
        name = open_input(path).name
        try:
            with pa.OSFile(name) as raw:
                file = pq.ParquetFile(raw)
                found = find_roles(file.schema_arrow.names, name, columns=columns, group=group)
                if roles is not None and found != roles:
                    raise DataError(f"{name}: its columns differ from those of {parts[0][0]}")
                roles = found
                wanted = [
                    *roles.labels(),
                    *([roles.score] if isinstance(roles, PairRoles) else roles.features),
                ]
                if not isinstance(roles, PairRoles) and roles.embedding is not None:
                    wanted.append(roles.embedding)
                check_size(file, wanted, name, max_bytes)
                parts.append((name, file.read(columns=wanted)))
        except DataError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise DataError(
                f"{name}: not a Parquet file that can be read ({plainly(str(error).strip(), 200)}); write it again"
            ) from None
    assert roles is not None

    def where(row: int) -> str:
        for name, part in parts:
            if row < part.num_rows:
                return f"{name}, row {row}"
            row -= part.num_rows
        return f"row {row}"

    try:
        data = pa.concat_tables([part for _, part in parts], promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(
            f"{parts[0][0]} and the files beside it do not make one table ({plainly(error, 200)})"
        ) from None
    source = parts[0][0] if len(parts) == 1 else f"{len(parts)} files from {parts[0][0]}"
    return build(Table(source, data, where), roles, distance=distance, similarity=similarity)


def load_parquet_table(source: Input) -> Table:
    """All columns of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pa.OSFile(str(source.path)) as raw:
            file = pq.ParquetFile(raw)
            check_size(file, file.schema_arrow.names, source.name, source.max_bytes)
            data = file.read()
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{source.name}: not a Parquet file that can be read ({plainly(str(error).strip(), 200)}); write it again"
        ) from None
    return Table(source.name, data, lambda row: f"{source.name}, row {row}")


def check_size(file: Any, columns: Sequence[str], source: str, max_bytes: int = MAX_BYTES) -> None:
    """Refuse a Parquet file whose columns would fill the memory: a few bytes can stand for a billion rows.

    Only the number of rows is asked for: pyarrow ends the process where the metadata of a column are damaged.
    """
    wanted = set(columns)
    width = sum(max(getattr(field.type, "list_size", 1), 1) for field in file.schema_arrow if field.name in wanted)
    need = 8 * width * max(file.metadata.num_rows, 0)
    if need > max_bytes:
        raise DataError(
            f"{source}: unpacks to {need:,} bytes, more than {max_bytes:,}; if that is expected, give a larger "
            "max_bytes"
        )
