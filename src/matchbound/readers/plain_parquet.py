"""Tables of comparisons that another engine can read by itself: local Parquet files with labels of one plain kind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matchbound.errors import DataError
from matchbound.files.opening import MAX_BYTES, open_input
from matchbound.files.origin import Origin
from matchbound.readers.parquet import check_size, open_parquet
from matchbound.readers.roles import PairRoles
from matchbound.readers.scan import ScoreFile, parquet_files, roles_of_pairs

GLOB = frozenset("*?[")
"""Characters that an engine may take for a pattern of names."""


@dataclass(frozen=True)
class PlainParquet:
    """What the footers of local Parquet files say of a table of comparisons.

    files : tuple of str
        Absolute paths, the same for every process.
    rows : tuple of int
        How many rows each file has.
    whole : bool
        Whether labels are whole numbers that int64 holds; else they are text.
    """

    files: tuple[str, ...]
    origins: tuple[Origin, ...]
    rows: tuple[int, ...]
    roles: PairRoles
    id_a: str
    id_b: str
    whole: bool


def plain_parquet(table: ScoreFile) -> PlainParquet | None:
    """A table on disk as another engine may read it; None where only the readers of this package know its rules.

    Those are text, addresses, labels of mixed or unusual kinds, scores that are not plain numbers, and columns that
    say which rows are genuine.
    """
    files = parquet_files(table.path)
    sources = [open_input(file, MAX_BYTES) for file in ([table.path] if files is None else files)]
    if any(source.kind != "parquet" or source.path is None or GLOB & set(str(source.path)) for source in sources):
        return None
    table.begin(tuple(source.origin for source in sources))
    found: tuple[PairRoles, str, str] | None = None
    kinds: set[str] = set()
    rows: list[int] = []
    for source in sources:
        with open_parquet(source) as file:
            schema = file.schema_arrow
            roles = roles_of_pairs(schema.names, source.name, table.columns, None)
            if found is not None and roles != found:
                raise DataError(f"{source.name}: its columns differ from those of {sources[0].name}")
            found = roles
            if len({name.lower() for name in schema.names}) < len(schema.names):
                return None  # an engine that ignores case could take one column for another
            kinds.update(_kind(schema.field(name).type) for name in roles[1:])
            if _kind(schema.field(roles[0].score).type) not in ("whole", "float"):
                return None
            check_size(file, (), source.name, source.max_bytes, source.size)
            rows.append(int(file.metadata.num_rows))
    assert found is not None
    if kinds not in ({"text"}, {"whole"}) or found[0].truths:
        return None
    paths = tuple(str(Path(str(source.path)).absolute()) for source in sources)
    return PlainParquet(paths, tuple(s.origin for s in sources), tuple(rows), *found, kinds == {"whole"})


def _kind(kind: Any) -> str:
    """What a column holds: text, whole numbers that int64 holds, floats of 32 or 64 bits, or something else."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return "float"
    return "whole" if pa.types.is_integer(kind) and not pa.types.is_uint64(kind) else ""
