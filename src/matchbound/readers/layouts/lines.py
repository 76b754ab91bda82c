"""Text files of columns without a header, as research tools write them: fields with their line numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray
from matchbound.data.coded import coded_column, values_of
from matchbound.data.comparisons import check_finite
from matchbound.data.labels import Coded, merge
from matchbound.errors import DataError, shorten
from matchbound.files.opening import Input
from matchbound.readers.delimited import NUMBER, raise_unless_number
from matchbound.readers.tables import GENUINE_WORDS


@dataclass(frozen=True)
class Fields:
    """The columns of a text file without a header, or past it.

    Attributes
    ----------
    source : Input
        The file.
    columns : list of pyarrow string arrays
        The fields, by column; all of length n.
    skip : int
        How many lines that are not blank stand above the first row.
    """

    source: Input
    columns: list[Any]
    skip: int

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.columns)

    def where(self, row: int) -> str:
        """The place of a row, such as ``"trials.txt, line 17"``."""
        filled = (number for number, line in self.source.lines() if line.strip())
        return f"{self.source.name}, line {next(islice(filled, row + self.skip, None))}"

    def texts(self, column: int) -> list[str]:
        """A column as text, length n."""
        found: list[str] = self.columns[column].to_pylist()
        return found

    def first(self, column: int) -> str:
        """The first field of a column."""
        return str(self.columns[column][0].as_py())

    def coded(self, column: int) -> Coded:
        """A column as labels."""
        return coded_column(self.columns[column], lambda row: f"{self.where(row)}: a name")

    def numbers(self, column: int, name: str = "the score") -> FloatArray:
        """A column of finite numbers, shape (n,)."""
        import pyarrow as pa

        try:
            values = values_of(self.columns[column].cast(pa.float64()))
        except pa.ArrowInvalid:
            values = np.asarray([np.nan])
        if np.isfinite(values).all():
            return values
        exact = np.empty(len(self))
        for row, text in enumerate(self.texts(column)):
            where = "" if NUMBER.match(text) and math.isfinite(float(text)) else self.where(row)
            exact[row] = raise_unless_number(text, name, where)
        return exact

    def truths(self, column: int) -> BoolArray:
        """A column that says genuine or impostor in any of the usual words, shape (n,)."""
        words, (codes,) = merge(self.coded(column))
        known = np.asarray([GENUINE_WORDS.get(str(word).lower(), -1) for word in words], dtype=np.int64)
        bad = np.flatnonzero(known[codes] < 0)
        if bad.size:
            row = int(bad[0])
            raise DataError(
                f"{self.where(row)}: {shorten(str(words[codes[row]]))!r} is not a label; write target or nontarget, "
                "or 1 or 0"
            )
        return np.asarray(known[codes], dtype=np.bool_)


def read_fields(
    source: Input, widths: Sequence[int], layout: str, *, delimiter: str | None = None, skip: int = 0
) -> Fields:
    """The fields of every line that is not blank; every line must have as many as the first.

    Parameters
    ----------
    source
        The file.
    widths
        How many fields a line may have.
    layout
        What a line looks like, for messages.
    delimiter
        The character between fields; by default any run of spaces and tabs.
    skip
        How many lines that are not blank to leave out at the top.
    """
    if source.kind not in ("text", "empty"):
        raise DataError(f"{source.name} is not a text file; a line should be: {layout}")
    columns = _quickly(source, widths, delimiter, skip)
    if columns is None:
        columns = _line_by_line(source, widths, layout, delimiter, skip)
    return Fields(source, columns, skip)


WHITE = "".join(rf"\x{{{code:x}}}" for code in range(0x3001) if chr(code).isspace())
"""Every character that Python takes for white space, for a regular expression of pyarrow."""


def _split(line: str, delimiter: str | None) -> list[str]:
    return line.split() if delimiter is None else [field.strip() for field in line.split(delimiter)]


def _quickly(source: Input, widths: Sequence[int], delimiter: str | None, skip: int) -> list[Any] | None:
    """The columns by pyarrow, where the file is as regular as most are; None where it is not."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    head = list(islice(source.lines(), skip + 1))
    if len(head) <= skip or not all(line.strip() for _, line in head):
        return None
    line = head[-1][1]
    width = len(_split(line, delimiter))
    between = delimiter or ("\t" if "\t" in line else " ")
    if width not in widths or len(line.split(between)) != width:
        return None
    names = [str(k) for k in range(width)]
    try:
        with source.open() as stream:
            watched = _Watched(stream)
            table = pa_csv.read_csv(
                watched,
                read_options=pa_csv.ReadOptions(column_names=names, skip_rows=skip),
                parse_options=pa_csv.ParseOptions(delimiter=between, quote_char=False),
                convert_options=pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
            )
    except pa.ArrowException:
        return None
    if watched.lone_return:  # a new line to pyarrow, and white space in the middle of one to `Input.lines`
        return None
    columns = [table.column(name).combine_chunks() for name in names]
    if any(isinstance(column, pa.ChunkedArray) for column in columns) or not table.num_rows:
        return None
    return columns if all(_tidy(column) for column in columns) else None


class _Watched:
    """A stream that knows whether a carriage return without a line feed went through it."""

    closed = False

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._open = False  # the last byte was a carriage return
        self.lone_return = False

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        part = self._stream.read(size)
        if self._open and not part.startswith(b"\n"):
            self.lone_return = True
        self._open = part.endswith(b"\r")
        if part.count(b"\r") - self._open != part.count(b"\r\n"):
            self.lone_return = True
        return part


def _tidy(column: Any) -> bool:
    """Whether no field is empty or holds white space, as `str.split` and `str.strip` see it."""
    import pyarrow.compute as pc

    return not pc.any(pc.match_substring_regex(column, rf"^$|[{WHITE}]")).as_py()


def _line_by_line(source: Input, widths: Sequence[int], layout: str, delimiter: str | None, skip: int) -> list[Any]:
    """The columns of any file, with the first line that cannot be read named."""
    import pyarrow as pa

    rows: list[list[str]] = []
    width = above = 0
    for number, line in source.lines():
        if not line.strip():
            continue
        if above < skip:
            above += 1
            continue
        fields = _split(line, delimiter)
        if not width:
            width = len(fields) if len(fields) in widths else 0
        if len(fields) != width or not all(fields):
            allowed = " or ".join(str(n) for n in ([width] if width else widths))
            what = f"{len(fields)} columns where {allowed} are expected" if all(fields) else "an empty field"
            raise DataError(f"{source.name}, line {number}: {what}: {shorten(line)!r}. A line should be: {layout}")
        rows.append(fields)
    if not rows:
        raise DataError(f"{source.name} is empty" if not above else f"{source.name} has a header and no rows")
    return [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]


def first_line(source: Input) -> str:
    """The first line that is not blank; an empty file is an error."""
    if source.kind not in ("text", "empty"):
        raise DataError(f"{source.name} is not a text file")
    for _, line in source.lines():
        if line.strip():
            return line
    raise DataError(f"{source.name} is empty")


def is_number(text: str) -> bool:
    """Whether text is a number, NaN and infinity among them."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def load_scores(source: Input, rows: int | None = None, of: str = "") -> FloatArray:
    """One score per comparison, in order: from an ``.npy`` array, or text with one number per line."""
    if source.kind == "npy":
        from matchbound.readers.npy import load_npy

        values = np.asarray(load_npy(source, mmap=False))
        if values.ndim == 2 and 1 in values.shape:
            values = values.reshape(-1)
        if values.ndim != 1 or values.dtype.kind not in "iuf":
            raise DataError(
                f"{source.name} holds {values.dtype} of shape {values.shape}; give one score per comparison"
            )
        scores = values.astype(np.float64)
        check_finite(scores, lambda row: f"{source.name}, row {row}: the score is")
    else:
        scores = read_fields(source, (1,), "one score").numbers(0)
    if rows is not None and scores.size != rows:
        raise DataError(f"{source.name} holds {scores.size} scores, and {of} has {rows} comparisons; they must agree")
    return scores
