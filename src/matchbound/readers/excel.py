"""Excel workbooks: one sheet with a header row, read by openpyxl where it is installed."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from typing import Any

from matchbound.data.labels import is_missing
from matchbound.errors import DataError, MissingExtraError, argument, plainly, shorten
from matchbound.files.opening import Input, default_limit
from matchbound.readers.roles import repeated
from matchbound.readers.tables import Table

SMALL_SHEET, SHEET_RATIO = 16 * 2**20, 20
"""Bytes that a workbook may unpack to, however small it is, and for each of its bytes: a cell takes microseconds."""

MAX_EMPTY = 10_000_000
"""Empty cells that the rows of a sheet may have, in all."""


def is_workbook(source: Input) -> bool:
    """Whether a zip archive is an Excel workbook."""
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except Exception:  # a damaged archive may raise nearly anything, and its own reader says what is wrong with it
        return False


def load_workbook(source: Input, sheet: str | None = None) -> Table:
    """The table of a sheet, by default the first; its first row names the columns."""
    import pyarrow as pa

    names, rows, start = _cells(source, sheet)
    twice = repeated(names)
    if twice is not None:
        raise DataError(f"{source.name}: the column {shorten(twice)!r} occurs more than once; rename or drop one")
    columns = {name: _column([row[at] for row in rows]) for at, name in enumerate(names)}
    return Table(source.name, pa.table(columns), lambda row: f"{source.name}, row {start + row}")


def _column(values: list[Any]) -> Any:
    """An Arrow column: of numbers where all cells are numbers or missing, of text where not."""
    import pyarrow as pa

    filled = [None if is_missing(value) else value for value in values]
    kinds = {type(value) for value in filled} - {type(None)}
    if kinds == {int} and max(map(abs, filter(None, filled)), default=0) < 2**63:
        return pa.array(filled, pa.int64())
    if kinds <= {int, float} and kinds:
        return pa.array([None if value is None else float(value) for value in filled], pa.float64())
    whole = (int(value) if isinstance(value, float) and value.is_integer() else value for value in filled)
    return pa.array([None if value is None else str(value) for value in whole], pa.string())


def _cells(source: Input, sheet: str | None) -> tuple[list[str], list[tuple[Any, ...]], int]:
    """The names of the columns, the rows below them, and the number of the first of these rows."""
    try:
        import openpyxl  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise MissingExtraError(
            f"{source.name} is an Excel workbook: save the sheet as CSV, or install openpyxl "
            "(pip install 'matchbound[excel]')"
        ) from None
    try:
        with source.open() as stream:
            _check_size(source, stream)
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            if sheet is not None and sheet not in book.sheetnames:
                has = ", ".join(repr(shorten(name)) for name in book.sheetnames)
                raise DataError(f"{source.name}: there is no sheet {sheet!r}; it has {has}")
            cells = _filled(source, book[sheet or book.sheetnames[0]].iter_rows(values_only=True))
    except DataError:
        raise
    except Exception as error:  # as above
        raise DataError(
            f"{source.name} is not a workbook that can be read ({plainly(error, 200)}); save the sheet as CSV"
        ) from None
    filled = [at for at, row in enumerate(cells) if any(not _is_blank(value) for value in row)]
    if not filled:
        raise DataError(f"{source.name}: the sheet is empty")
    head = cells[filled[0]]
    width = max(at + 1 for at, value in enumerate(head) if not is_missing(value))
    names = ["" if is_missing(value) else str(value).strip() for value in head[:width]]
    if "" in names:
        raise DataError(f"{source.name}, row {filled[0] + 1}: column {names.index('') + 1} has no name")
    last = filled[-1]
    rows = [(*row[:width], *(None,) * (width - len(row))) for row in cells[filled[0] + 1 : last + 1]]
    return names, rows, filled[0] + 2


def _filled(source: Input, rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """The rows without the empty cells at their ends; a cell far to the right or below must not fill the memory."""
    made: list[tuple[Any, ...]] = []
    empty = 0
    for row in rows:
        width = len(row)
        if row and row[-1] is None:
            width = next((at + 1 for at in range(width - 1, -1, -1) if row[at] is not None), 0)
        empty += row.count(None)
        if empty > MAX_EMPTY:
            raise DataError(
                f"{source.name}: more than {MAX_EMPTY:,} cells of the sheet are empty; delete the cells far to the "
                "right of the table, or save the sheet as CSV"
            )
        made.append(tuple(row[:width]))
    return made


def _is_blank(value: Any) -> bool:
    return is_missing(value) or (isinstance(value, str) and not value.strip())


def other_sheets(source: Input, sheet: str | None) -> str:
    """What else a workbook holds, where no sheet was chosen."""
    import openpyxl  # type: ignore[import-untyped,unused-ignore]

    with source.open() as stream:
        names = openpyxl.load_workbook(stream, read_only=True).sheetnames
    if sheet is not None or len(names) < 2:
        return ""
    others = " or ".join(argument("sheet", shorten(name)) for name in names[1:6])
    return f". This is the sheet {shorten(names[0])!r}; another one is chosen with {others}"


def _check_size(source: Input, stream: Any) -> None:
    with zipfile.ZipFile(stream) as archive:
        total = sum(item.file_size for item in archive.infolist())
    most = source.max_bytes
    if source.size is not None and most == default_limit(source.size):
        most = max(SMALL_SHEET, SHEET_RATIO * source.size)
    if total > most:
        raise DataError(
            f"{source.name}: unpacks to {total:,} bytes, more than {most:,}; if that is expected, save the sheet as "
            f"CSV or give {argument('max_bytes', max(total, source.max_bytes + 1))}"
        )
    stream.seek(0)
