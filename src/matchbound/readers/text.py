"""Text files: one parser for tables with a header and for lists without one. A line that cannot be read is named."""

from __future__ import annotations

import codecs
import csv
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.values import in_one_piece, trim
from matchbound.errors import DataError, UsageError, argument, plainly, shorten
from matchbound.files.opening import MAX_LINE, Input
from matchbound.notes import Note
from matchbound.readers.options import Options
from matchbound.readers.roles import PairRoles, RowRoles, check_names
from matchbound.readers.tables import GENUINE_WORDS, Table, build, build_comparisons

_DELIMITERS = ("\t", ",", ";", "|")
# Columns of numbers that a text file may have: each takes kilobytes to read, however few the lines are.
MAX_COLUMNS = 20_000
# Memory is given back after each block of a table with more columns: they are many small objects.
WIDE = 64
# How much text is parsed at once.
BLOCK_BYTES = 8 << 20
# How a finite number is written.
NUMBER = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
# A table without a header that has more columns of numbers than this may be a matrix of scores.
MATRIX = 12
_COMMA = re.compile(r"^[+-]?\d+,\d+([eE][+-]?\d+)?$")
# Every character that `str.split` takes for white space within a line.
_WHITE = [chr(code).encode() for code in range(0x3001) if chr(code).isspace() and chr(code) != "\n"]


@dataclass(frozen=True)
class Layout:
    """How the lines of a text file are read.

    names : tuple of str
        All columns of the file, in order.
    labels, numbers : tuple of str
        The columns that are read: as dictionaries of text, and as float64.
    delimiter : str or None
        The character between columns; None for any white space.
    above : int
        How many lines stand above the first row.
    decimal : str
        The character before decimals.
    line : str
        For lists, which know no quotes: what a line should be, for messages. Empty for a table with a header.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    numbers: tuple[str, ...]
    delimiter: str | None
    above: int = 0
    decimal: str = "."
    line: str = ""

    def notes(self) -> tuple[Note, ...]:
        """What was taken where there was a choice."""
        return (Note("decimal-commas", "numbers were read with decimal commas"),) if self.decimal == "," else ()


def read_text(inputs: Sequence[Input], options: Options) -> Comparisons | Embeddings:
    """A delimited file with a header line, or lines of a score and a label without one."""
    source = inputs[0]
    line = source.first_text[:10_000]
    delimiter = next((mark for mark in (",", ";") if mark in line), None)
    fields = [field.lower() for field in split_line(line, delimiter)]
    holds = ["genuine" if field in GENUINE_WORDS else "score" if NUMBER.match(field) else "" for field in fields]
    if sorted(holds) != ["genuine", "score"] or options.columns or options.group or options.delimiter:
        return read_delimited(source, options)
    table = read_list(source, (" ".join(holds),), delimiter=delimiter)
    what = "label and score" if holds[0] == "genuine" else "score and label"
    table.notes = (Note("no-header", f"the file has no header: its lines were read as {what}"),)
    return build_comparisons(table, PairRoles("score", genuine="genuine"), options)


def read_delimited(source: Input, options: Options) -> Comparisons | Embeddings:
    """Comparisons or embeddings from a delimited file with a header line."""
    if options.delimiter is not None and len(options.delimiter) != 1:
        raise UsageError(f"delimiter must be one character; got {options.delimiter!r}")
    header = read_header(source, options.delimiter)
    roles = options.roles(header.names, source.name, hint(header))
    if isinstance(roles, RowRoles) and roles.embedding is not None:
        raise DataError(
            f"{source.name}: the column {roles.embedding!r} cannot hold lists in a text file; write one column per "
            "number (feature_0, feature_1, …), or use Parquet or .npz"
        )
    return build(text_table(source, table_layout(source, header, roles.labels(), roles.numbers())), roles, options)


def load_text_table(source: Input, numbers: Collection[str] = (), delimiter: str | None = None) -> Table:
    """All columns of a delimited file with a header: `numbers` are read as numbers and other columns as text."""
    header = read_header(source, delimiter)
    check_names(header.names, source.name)
    check_width(source.name, len(header.names))
    chosen = [name for name in header.names if name in numbers]
    rest = [name for name in header.names if name not in numbers]
    return text_table(source, table_layout(source, header, rest, chosen))


def read_list(source: Input, lines: Sequence[str], *, delimiter: str | None = None, headed: bool = False) -> Table:
    """The columns of a list, a text file without names of columns, or past a line of them.

    Parameters
    ----------
    lines
        What a line may be: names of columns with spaces between, such as ``"instance_a instance_b score"``. The one
        with as many columns as the first line is taken. ``score`` holds numbers, a name that begins with ``_`` is not
        read, and other columns hold labels.
    delimiter
        The character between columns; by default any run of white space.
    headed
        Whether to leave out the first line that is not blank.
    """
    expected = " or ".join(lines)
    if source.kind not in ("text", "empty"):
        raise DataError(f"{source.name} is not a text file; a line should be: {expected}")
    head = list(islice(source.filled_lines(), int(headed) + 1))
    if len(head) <= int(headed):
        raise DataError(f"{source.name} is empty" if not head else f"{source.name} has a header and no rows")
    number, line = head[int(headed)]
    width = len(split_line(line, delimiter))
    check_width(source.name, width)
    names = next((tuple(one.split()) for one in lines if len(one.split()) == width), None)
    if names is None:
        allowed = " or ".join(str(len(one.split())) for one in lines)
        raise DataError(
            f"{source.name}, line {number}: {width} columns where {allowed} are expected: {shorten(line)!r}. A line "
            f"should be: {expected}"
        )
    numbers = tuple(name for name in names if name == "score")
    labels = tuple(name for name in names if name != "score" and not name.startswith("_"))
    above = head[0][0] if headed else 0
    return text_table(source, Layout(names, labels, numbers, delimiter, above, line=" ".join(names)))


def text_table(source: Input, layout: Layout) -> Table:
    """The columns of a text file that are wanted; numbers may be missing."""
    parts = list(checked_blocks(source, layout))
    return Table(source.name, in_one_piece(parts), text_place(source, layout), layout.notes())


def text_place(source: Input, layout: Layout, start: int = 0) -> Callable[[int], str]:
    """Says on which line a row is, counted from the row `start`."""

    def where(row: int) -> str:
        with suppress(DataError, StopIteration):  # a line before it that cannot be taken apart is not the matter
            number, fields = next(islice(numbered_rows(source, layout), start + row, None))
            return _line(source, number, not fields[-1].strip())
        return f"{source.name}, row {start + row}"

    return where


def _line(source: Input, number: int, may_be_cut: bool) -> str:
    """The place of a line; of one that lacks something, with a question where the file ends without a line end."""
    with source.open() as stream:
        ends = may_be_cut and not next(islice(stream, number - 1, None), b"\n").endswith(b"\n")
    return f"{source.name}, line {number}{', where the file ends (is it cut short?)' if ends else ''}"


def checked_blocks(source: Input, layout: Layout) -> Iterator[Any]:
    """Arrow tables of the rows, one for each block, in order; a DataError names the first line that cannot be read."""
    import pyarrow as pa

    check_width(source.name, len(layout.numbers))
    rows, problem = 0, ""
    try:
        for text in _blocks(source, layout):
            if text.startswith(codecs.BOM_UTF8):
                text = codecs.BOM_UTF8 + text  # the parser drops one, and inside a file it is part of a label
            if text.strip():
                part = _parse(text, layout)
                rows += part.num_rows
                yield part
            if len(layout.names) > WIDE:
                trim()
    except MemoryError:
        raise
    except pa.ArrowException as error:  # which does not know its line
        problem = plainly(error, 200)
    if problem or not rows:
        diagnose(source, layout)
        raise DataError(f"{source.name}: {problem or 'there are no rows'}")


def _blocks(source: Input, layout: Layout) -> Iterator[bytes]:
    """The text below what stands above the rows, in pieces of whole lines."""
    import pyarrow as pa

    tidied = layout.line and layout.delimiter is not None
    size = max(BLOCK_BYTES // 8, 1) if tidied else BLOCK_BYTES  # Python's lines take much more room than their text
    with source.open() as stream:
        for _ in range(layout.above):
            stream.readline(MAX_LINE)
        begun = b"" if layout.above else stream.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
        while text := begun + stream.read(size):
            begun, end = b"", stream.readline(MAX_LINE)
            if len(end) == MAX_LINE:
                raise DataError(f"{source.name}: a line is longer than {MAX_LINE:,} bytes: not a table of text")
            text += end
            if layout.line:
                text = _tidied(text, layout.delimiter)
                if b"\r" in text:  # the parser would begin a new row there
                    raise pa.ArrowInvalid("there is a carriage return inside a line")
            elif not stream.peek(1):
                text = _without_empty_rows(text, layout.delimiter or ",")
            yield text


def _without_empty_rows(text: bytes, delimiter: str) -> bytes:
    """Lines without those at the end that hold nothing but delimiters, as spreadsheets write them."""
    end = text.find(b"\n", len(text.rstrip(b'\n\r \t"' + delimiter.encode())))
    return text if end < 0 else text[: end + 1]


def _tidied(text: bytes, delimiter: str | None) -> bytes:
    """Lines of a list without white space around fields, with one space between those that white space separates."""
    if delimiter is not None:
        lines = text.decode("utf-8", "surrogateescape").split("\n")
        fields = (delimiter.join(split_line(line, delimiter)) for line in lines if line.strip())
        return "\n".join(fields).encode("utf-8", "surrogateescape")
    for white in _WHITE:
        text = text.replace(white, b" ")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text.replace(b"\n ", b"\n").replace(b" \n", b"\n").strip(b" ")


def _parse(text: bytes, layout: Layout) -> Any:
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    words = pa.dictionary(pa.int32(), pa.string())
    kinds: dict[str, Any] = dict.fromkeys(layout.labels, words) | dict.fromkeys(layout.numbers, pa.float64())
    return pa_csv.read_csv(
        pa.BufferReader(text),
        read_options=pa_csv.ReadOptions(
            column_names=list(layout.names), use_threads=len(kinds) <= WIDE, block_size=len(text) + 1
        ),
        parse_options=pa_csv.ParseOptions(delimiter=layout.delimiter or " ", quote_char=False if layout.line else '"'),
        convert_options=pa_csv.ConvertOptions(
            column_types=kinds, include_columns=list(kinds), decimal_point=layout.decimal
        ),
    )


def check_width(source: str, columns: int) -> None:
    """Refuse so many columns of numbers that a line would cost more than it says."""
    if columns > MAX_COLUMNS:
        raise DataError(
            f"{source} has {columns:,} columns of numbers, more than {MAX_COLUMNS:,}; write vectors of that length as "
            ".npz or Parquet"
        )


def read_header(source: Input, delimiter: str | None = None) -> Layout:
    """The columns of a file with a header, the first line that is not blank; none of them is read yet.

    The delimiter is by default the one that the header uses most of tab, comma, semicolon and bar.
    """
    number, line = next(source.filled_lines(), (0, ""))
    where = f"{source.name}, line {number}"
    if not number:
        raise DataError(f"{source.name} is empty")
    if len(line) > 1_000_000:
        raise DataError(f"{where} is over a million characters long: not a table of text")
    if "\r" in line:
        raise DataError(f"{source.name} ends its lines with a carriage return alone; save it with usual line ends")
    if line.lower().startswith("sep="):
        raise DataError(f"{where}: {line!r} is a hint for Excel, not the names of the columns; delete it")
    delimiter = delimiter or max(_DELIMITERS, key=line.count)
    try:
        fields = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
    except csv.Error as error:
        raise DataError(f"{where}: not a header of column names ({error})") from None
    names = [name.strip() for name in fields]
    unnamed = [position for position, name in enumerate(names, start=1) if not name]
    if unnamed and unnamed != [1]:
        raise DataError(f"{where}: column {unnamed[-1]} has no name; is there a delimiter too many?")
    return Layout(tuple(name or "(index)" for name in names), (), (), delimiter, number)


def first_line(source: Input) -> str:
    """The first line that is not blank; an empty file is an error."""
    if source.kind not in ("text", "empty"):
        raise DataError(f"{source.name} is not a text file")
    for _, line in source.filled_lines():
        return line
    raise DataError(f"{source.name} is empty")


def split_line(line: str, delimiter: str | None) -> list[str]:
    """The fields of a line of a list."""
    return line.split() if delimiter is None else [field.strip() for field in line.split(delimiter)]


def table_layout(source: Input, header: Layout, labels: Sequence[str], numbers: Sequence[str]) -> Layout:
    """How some columns of a file with a header are read; its first rows show whether numbers have decimal commas."""
    layout = replace(header, labels=tuple(labels), numbers=tuple(numbers))
    if header.delimiter != ",":
        place = [header.names.index(name) for name in numbers]
        with suppress(DataError):  # what is wrong with a line is told when it is read
            seen = [row[at] for _, row in islice(numbered_rows(source, layout), 100) for at in place if at < len(row)]
            if any(_COMMA.match(text.strip()) for text in seen) and not any("." in text for text in seen):
                return replace(layout, decimal=",")
    return layout


def numbered_rows(source: Input, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """The rows as Python takes them apart, with the number of the line that each begins on."""
    if layout.line:
        for number, line in source.filled_lines():
            if number > layout.above:
                yield number, split_line(line, layout.delimiter)
        return
    taken: list[int] = []  # the lines of the row at hand: a quote may go over several

    def texts() -> Iterator[str]:
        for number, line in source.lines():
            if number > layout.above and line:
                taken.append(number)
                yield line

    try:
        for row in csv.reader(texts(), delimiter=layout.delimiter or ",", strict=True):
            yield taken[0], row
            taken.clear()
    except csv.Error as error:
        raise DataError(f"{source.name}, line {taken[0]}: {error}; is a quote not closed?") from None


def diagnose(source: Input, layout: Layout) -> None:
    """Find the first line that cannot be read, and say what is wrong with it."""
    import pyarrow.csv as pa_csv

    missing = set(pa_csv.ConvertOptions().null_values)
    between = layout.delimiter or " "
    begun = False
    place = {name: position for position, name in enumerate(layout.names)}
    expected = f"where {len(layout.names)} are expected" if layout.line else f"where the header has {len(place)}"
    remedy = f"A line should be: {layout.line}" if layout.line else "Correct or drop the line"
    for number, row in numbered_rows(source, layout):
        begun = True
        if len(row) > 1 and not any(field.strip() for field in row):
            raise DataError(f"{source.name}, line {number} holds no values; delete it")
        if len(row) != len(place):
            where = _line(source, number, len(row) < len(place))
            raise DataError(f"{where}: {len(row)} columns {expected}: {shorten(between.join(row))!r}. {remedy}")
        if layout.line and not all(row):
            raise DataError(f"{source.name}, line {number}: an empty field: {shorten(between.join(row))!r}. {remedy}")
        if layout.line and any("\r" in field for field in row):
            raise DataError(f"{source.name}, line {number}: there is a carriage return inside it; use usual line ends")
        for name in layout.numbers:
            text = row[place[name]].strip()
            problem = "" if text in missing else _number_problem(text, layout.decimal)
            if problem:
                where = _line(source, number, row[-1].strip() == text)
                raise DataError(f"{where}: {name} is {shorten(text)!r}{problem}")
    if not begun:
        raise DataError(f"{source.name} has a header and no rows" if layout.above else f"{source.name} is empty")


def _number_problem(text: str, decimal: str) -> str:
    """What keeps a text from being read as a number, for the end of a message; empty where nothing does."""
    if decimal == "," and "." in text:
        return ", and other rows have decimal commas; write one or the other"
    text = text.replace(decimal, ".")
    value = as_float(text)
    if NUMBER.match(text) or (value is not None and not math.isfinite(value)):
        return ""
    if value is not None:
        return "; write plain numbers"
    return ", not a number; write numbers with a decimal point" if _COMMA.match(text) else ", not a number"


def as_float(text: str) -> float | None:
    """What Python reads as a number, NaN and infinity among them; None for other text."""
    try:
        return float(text)
    except ValueError:
        return None


def hint(header: Layout) -> str:
    """A guess at what a file is whose header says nothing: the reader of another tool, or a table without a header."""
    names, known = header.names, {name.lower() for name in header.names}
    fields = names[0].split() if len(names) == 1 else []
    number = bool(fields) and NUMBER.match(fields[-1])
    if names[0].startswith(("#", "//", "%")):
        return ". The first line is a comment: delete it"
    if "unique_id" in known and known & {"cluster", "cluster_id", "entity_id"}:
        return f". It is a table of clusters: give {argument('read', 'predictions, clusters; splink')}"
    if len(names) > MATRIX and all(map(NUMBER.match, names[1:])):
        files = argument("read", "matrix, labels; matrix")
        return f". It may be a matrix of scores: write the numbers alone with numpy.save, and give {files}"
    if len(names) > 2 and any(map(NUMBER.match, names)):
        row = str(header.delimiter).join(("id_a", "id_b", "score"))
        return f". The first line looks like data, not like names of columns: put a line such as {row} above it"
    if len(fields) > 2 and {"score", "similarity", "id_a"} & {field.lower() for field in fields}:
        return ". There is one column only: separate columns by commas, semicolons, tabs or bars"
    if len(fields) == 3 and number:
        trials = argument("read", "trials, scores; kaldi")
        return f". It looks like a score file of Kaldi: give the trials as well, {trials}"
    if len(fields) == 4 and number and fields[0] in ("0", "1"):
        names_above = "genuine,instance_a,instance_b,score"
        return f". It looks like labels with scores: separate the columns by commas, and put {names_above} above them"
    if len(fields) in (4, 5) and number:
        return f". It looks like a {len(fields)}-column score file of bob: {argument('reader', f'bob{len(fields)}')}"
    if len(fields) == 1 and number:
        return f". It looks like a list of scores without identities: {argument('reader', 'pyeer')}"
    return ". Is the first line a title? The names of the columns come first" if len(names) == 1 else ""
