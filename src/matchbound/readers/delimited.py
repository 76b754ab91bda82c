"""CSV and TSV: parsed by pyarrow; a line that cannot be read is found again and named."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.data.coded import FEW_COLUMNS, in_one_piece, trim, values_of
from matchbound.data.comparisons import FAILED, Comparisons, check_finite
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.data.missing import check_missing
from matchbound.errors import DataError, UsageError, plainly, shorten
from matchbound.files.opening import BLANKS, Input
from matchbound.readers.blocks import TextLayout, text_blocks
from matchbound.readers.roles import PairRoles, RowRoles, find_roles, repeated
from matchbound.readers.tables import Table, build, build_embeddings, check_similarity, most_unseen, too_many_unseen
from matchbound.readers.vectors import AGAIN

_DELIMITERS = ("\t", ",", ";", "|")
MAX_COLUMNS = 20_000
"""Columns of numbers that a text file may have: each takes kilobytes to read, however few the lines are."""
NUMBER = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
"""How a finite number is written."""
_COMMA = re.compile(r"^[+-]?\d+,\d+([eE][+-]?\d+)?$")


def read_delimited(
    source: Input,
    *,
    distance: bool | None = None,
    similarity: Similarity = "cosine",
    columns: Mapping[str, str] | None = None,
    group: str | None = None,
    delimiter: str | None = None,
    missing: str = "error",
) -> Comparisons | Embeddings:
    """Comparisons or embeddings from a delimited file with a header line.

    Parameters
    ----------
    source
        The file.
    distance, similarity
        As in `matchbound.read`.
    columns, group
        As in `matchbound.readers.roles.find_roles`.
    delimiter
        The character between columns; by default the one that the header uses most of tab, comma,
        semicolon and bar.
    """
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise UsageError(f"delimiter must be one character; got {delimiter!r}")
    at, header = read_header(source)
    names, delimiter = split_header(header, source.name, delimiter)
    try:
        roles = find_roles(names, source.name, columns=columns, group=group)
    except DataError as error:
        raise DataError(f"{error}{hint(header, names, delimiter)}") from None
    if isinstance(roles, RowRoles) and roles.embedding is not None:
        raise DataError(
            f"{source.name}: the column {roles.embedding!r} cannot hold lists in a text file; write one column per "
            "number (feature_0, feature_1, …), or use Parquet or .npz"
        )
    numbers = (roles.score,) if isinstance(roles, PairRoles) else roles.features
    check_width(source.name, len(numbers))
    check_missing(missing)
    allowed = missing != "error" and isinstance(roles, PairRoles)
    nobody = isinstance(roles, PairRoles) and roles.id_a is None and roles.instance_a is None
    most = most_unseen(source) if nobody else math.inf
    labels = roles.labels()
    if isinstance(roles, RowRoles) and not set(labels) & set(numbers):
        kept = list(dict.fromkeys(labels))
        parts, layout, where = _read(
            source,
            names,
            labels,
            numbers,
            delimiter,
            at,
            keep=lambda part: (_matrix(part, len(numbers)), part.select(kept)),
        )
        vectors, data = _vectors(parts, numbers, where)
        table = Table(source.name, data, where, layout.notes())
        return build_embeddings(table, roles, check_similarity(source.name, distance, similarity), vectors)
    table = _parse(source, names, labels, numbers, delimiter, at, may_miss=allowed, most=most)
    return build(table, roles, distance=distance, similarity=similarity, missing=missing)


def check_width(source: str, columns: int) -> None:
    """Refuse so many columns of numbers that a line would cost more than it says."""
    if columns > MAX_COLUMNS:
        raise DataError(
            f"{source} has {columns:,} columns of numbers, more than {MAX_COLUMNS:,}; write vectors of that length as "
            ".npz or Parquet"
        )


def read_header(source: Input) -> tuple[int, str]:
    """The first line that is not blank, with its number."""
    for number, line in source.lines(skipping=BLANKS):
        if len(line) > 1_000_000:
            raise DataError(f"{source.name}, line {number} is over a million characters long: not a table of text")
        if "\r" in line:
            raise DataError(f"{source.name} ends its lines with a carriage return alone; save it with usual line ends")
        if line.strip():
            return number, line
    raise DataError(f"{source.name} is empty")


def split_header(header: str, source: str, delimiter: str | None = None) -> tuple[list[str], str]:
    """The column names of a header line, and the character between them."""
    if delimiter is None:
        delimiter = max(_DELIMITERS, key=header.count)
    try:
        fields = next(csv.reader([header], delimiter=delimiter, skipinitialspace=True))
    except csv.Error as error:
        raise DataError(f"{source}, line 1: not a header of column names ({error})") from None
    names = [name.strip() for name in fields]
    unnamed = [position for position, name in enumerate(names, start=1) if not name]
    if unnamed and unnamed != [1]:
        raise DataError(f"{source}, line 1: column {unnamed[-1]} has no name; is there a delimiter too many?")
    return [name or "(index)" for name in names], delimiter


def load_text_table(
    source: Input, numbers: Collection[str] | None = None, labels: Collection[str] = (), delimiter: str | None = None
) -> Table:
    """All columns of a delimited file with a header.

    `numbers` are read as numbers and other columns as text; without it, the columns that hold a number in
    the first row and are not among `labels` are numbers.
    """
    at, header = read_header(source)
    names, delimiter = split_header(header, source.name, delimiter)
    twice = repeated(names)
    if twice is not None:
        raise DataError(f"{source.name}: the column {shorten(twice)!r} occurs more than once; rename or drop one")
    if numbers is None:
        first = next(_rows(source, delimiter, at), (0, []))[1]
        numbers = [n for n, text in zip(names, first, strict=False) if n not in labels and NUMBER.match(text.strip())]
    check_width(source.name, len(names))
    wanted = set(numbers)
    chosen = tuple(name for name in names if name in wanted)
    return _parse(source, names, tuple(n for n in names if n not in wanted), chosen, delimiter, at)


def _read(
    source: Input,
    names: list[str],
    labels: tuple[str, ...],
    numbers: tuple[str, ...],
    delimiter: str,
    header_at: int,
    may_miss: bool = False,
    most: float = math.inf,
    keep: Callable[[Any], Any] = lambda part: part,
) -> tuple[list[Any], TextLayout, Callable[[int], str]]:
    """What is kept of the rows of a file, block by block; how they were read; and where each row stands."""
    import pyarrow as pa

    layout = find_layout(source, names, labels, numbers, delimiter, header_at)

    def where(row: int) -> str:
        with suppress(DataError):  # a line before it that cannot be taken apart is not what this is about
            for seen, (number, _) in enumerate(_rows(source, delimiter, header_at)):
                if seen == row:
                    return f"{source.name}, line {number}"
        return f"{source.name}, row {row}"

    problem, rows = "", 0
    parts: list[Any] = []
    try:
        for part in text_blocks(source, layout):
            if not may_miss and any(part.column(name).null_count for name in numbers):
                problem = "a number is missing"
                break
            parts.append(keep(part))
            rows += part.num_rows
            if len(names) > FEW_COLUMNS:
                del part
                trim()
            if rows > most:
                raise too_many_unseen(source, most)
    except MemoryError:
        raise
    except pa.ArrowException as error:
        problem = plainly(error, 200)
    if problem or not parts:
        diagnose(source, names, numbers, layout)
        raise DataError(f"{source.name}: {problem or 'there are no rows'}")
    return parts, layout, where


def _parse(
    source: Input,
    names: list[str],
    labels: tuple[str, ...],
    numbers: tuple[str, ...],
    delimiter: str,
    header_at: int,
    may_miss: bool = False,
    most: float = math.inf,
) -> Table:
    import pyarrow as pa

    parts, layout, where = _read(source, names, labels, numbers, delimiter, header_at, may_miss, most)
    pieces = [pa.concat_tables(parts)]
    parts.clear()
    return Table(source.name, in_one_piece(pieces), where, layout.notes())


def _matrix(part: Any, width: int) -> FloatArray:
    """The last columns of an Arrow table, which hold numbers, shape (n, width)."""
    made = np.empty((part.num_rows, width))
    for k, column in enumerate(part.columns[part.num_columns - width :]):
        made[:, k] = values_of(column)
    return made


def _vectors(parts: list[Any], numbers: tuple[str, ...], where: Callable[[int], str]) -> tuple[FloatArray, Any]:
    """Vectors of shape (n, d), and a table of the labels, of parts that are gone as they are used."""
    import pyarrow as pa

    vectors = np.empty((sum(len(matrix) for matrix, _ in parts), len(numbers)))
    pieces = [pa.concat_tables([rest for _, rest in parts])]
    begin = 0
    parts.reverse()
    while parts:
        matrix, _ = parts.pop()
        vectors[begin : begin + len(matrix)] = matrix
        begin += len(matrix)
        del matrix
    wrong = np.zeros(len(numbers), dtype=np.bool_)
    for begin in range(0, len(vectors), 256):
        wrong |= ~np.isfinite(vectors[begin : begin + 256]).all(axis=0)
    if wrong.any():
        k = int(np.argmax(wrong))
        check_finite(vectors[:, k], lambda row: f"{where(row)}: {numbers[k]} is", AGAIN)
    return vectors, in_one_piece(pieces)


def find_layout(
    source: Input, names: Sequence[str], labels: Sequence[str], numbers: Sequence[str], delimiter: str, header_at: int
) -> TextLayout:
    """How a file is read; whether its numbers have decimal commas is told by its first rows."""
    decimal = "."
    if delimiter != ",":
        place = [names.index(name) for name in numbers]
        with suppress(DataError):  # what is wrong with a line is told when it is read
            seen = [
                row[at] for _, row in islice(_rows(source, delimiter, header_at), 100) for at in place if at < len(row)
            ]
            if any(_COMMA.match(text.strip()) for text in seen) and not any("." in text for text in seen):
                decimal = ","
    return TextLayout(tuple(names), tuple(labels), tuple(numbers), delimiter, header_at, decimal)


def _rows(source: Input, delimiter: str, header_at: int) -> Iterator[tuple[int, list[str]]]:
    """The rows after the header, with the number of the line that each begins on."""
    lines = source.lines(skipping=b"\r\n")
    last = [header_at]

    def texts() -> Iterator[str]:
        for number, line in lines:
            if number > header_at and line:
                last.append(number)
                yield line

    reader = csv.reader(texts(), delimiter=delimiter, strict=True)
    done = 1
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(
                f"{source.name}, line {last[min(done, len(last) - 1)]}: {error}; is a quote not closed?"
            ) from None
        yield last[min(done, len(last) - 1)], row
        done = len(last)


def diagnose(source: Input, names: Sequence[str], numbers: Sequence[str], layout: TextLayout) -> None:
    """Find the first line that cannot be read, and say what is wrong with it."""
    delimiter = layout.delimiter
    begun = False
    place = {name: position for position, name in enumerate(names)}
    positions = [(place[name], name) for name in numbers]
    for number, row in _rows(source, delimiter, layout.header_at):
        begun = True
        if len(row) > 1 and not any(field.strip() for field in row):
            raise DataError(f"{source.name}, line {number} holds no values; delete it")
        if len(row) != len(names):
            raise DataError(
                f"{source.name}, line {number}: {len(row)} columns where the header has {len(names)}: "
                f"{shorten(delimiter.join(row))!r}. Correct or drop the line"
            )
        for position, name in positions:
            raise_unless_number(row[position], name, f"{source.name}, line {number}", layout.decimal)
    if not begun:
        raise DataError(f"{source.name} has a header and no rows")


def raise_unless_number(text: str, name: str, where: str, decimal: str = ".") -> float:
    """A finite number from text, or a DataError that says what stands there instead."""
    text = text.strip()
    if decimal == ",":
        if "." in text:
            raise DataError(
                f"{where}: {name} is {shorten(text)!r}, and other rows have decimal commas; write one or the other"
            )
        text = text.replace(",", ".")
    if NUMBER.match(text):
        value = float(text)
        if math.isfinite(value):
            return value
        raise DataError(f"{where}: {name} is {text}, too large for a number")
    if not text:
        raise DataError(f"{where}: {name} is missing; {FAILED}")
    loose = _as_float(text)
    if loose is not None and math.isfinite(loose):
        raise DataError(f"{where}: {name} is {shorten(text)!r}; write plain numbers")
    if loose is None and text.lower() not in ("na", "n/a", "#n/a", "null", "none"):
        remedy = "; write numbers with a decimal point" if _COMMA.match(text) else ""
        raise DataError(f"{where}: {name} is {shorten(text)!r}, not a number{remedy}")
    raise DataError(f"{where}: {name} is {shorten(text)}, not a finite number; {FAILED}")


def _as_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def hint(header: str, names: Sequence[str] = (), delimiter: str = ",") -> str:
    """A guess at what a file is whose header says nothing: the reader of another tool, or a table without a header."""
    known = {name.strip().lower() for name in names}
    if known & {"match_weight", "match_probability"}:
        return ". They look like predictions of Splink: give read([predictions, clusters], reader='splink')"
    if "unique_id" in known and known & {"cluster", "cluster_id", "entity_id"}:
        return ". It is a table of clusters: give read([predictions, clusters], reader='splink')"
    if len(names) > 2 and any(NUMBER.match(name) for name in names):
        return (
            ". The first line looks like data, not like names of columns: put a line such as "
            f"{delimiter.join(('id_a', 'id_b', 'score'))} above it"
        )
    fields = header.split()
    if (
        len(names) == 1
        and len(fields) > 2
        and any(field.lower() in ("score", "similarity", "id_a") for field in fields)
    ):
        return ". There is one column only: separate columns by commas, semicolons, tabs or bars"
    if len(fields) == 3 and fields[2].lower() in ("target", "nontarget"):
        return ". It looks like a Kaldi trial list: reader='kaldi'"
    if len(fields) == 3 and fields[0] in ("0", "1") and "/" in fields[1]:
        return ". It looks like a VoxCeleb trial list: reader='voxceleb'"
    if len(fields) == 3 and NUMBER.match(fields[2]):
        return ". It looks like a score file of Kaldi: give the trials as well, read([trials, scores], reader='kaldi')"
    if len(fields) in (4, 5) and NUMBER.match(fields[-1]):
        return f". It looks like a {len(fields)}-column score file of bob: reader='bob{len(fields)}'"
    if len(fields) == 1 and NUMBER.match(fields[0]):
        return ". It looks like a list of scores without identities: reader='pyeer'"
    return ". Is the first line a title? The names of the columns come first" if len(names) == 1 else ""
