"""Whole tables, all columns, from CSV, TSV or Parquet."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from matchbound.errors import DataError
from matchbound.files.opening import Input, open_input
from matchbound.readers.frames import is_frame, load_frame
from matchbound.readers.parquet import load_parquet_table
from matchbound.readers.tables import Table
from matchbound.readers.text import load_text_table


def load_table(source: Input, numbers: Collection[str] | None = None, labels: Collection[str] = ()) -> Table:
    """All columns of a file; `numbers` and `labels` say how those of a text file are read."""
    if source.kind == "empty":
        raise DataError(f"{source.name} is empty")
    if source.kind == "text":
        table = load_text_table(source, numbers, labels)
    elif source.kind == "parquet" and not source.piped:
        table = load_parquet_table(source)
    else:
        raise DataError(f"{source.name} is not a table; give CSV, TSV or Parquet")
    if not table.data.num_rows:
        raise DataError(f"{source.name} has a header and no rows")
    return table


def table_of(data: Any) -> Table:
    """All columns of a data frame, or of a file, whose columns are then text."""
    return load_frame(data) if is_frame(data) else load_table(open_input(data), numbers=())
