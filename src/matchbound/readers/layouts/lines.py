"""Text files of columns without a header, as research tools write them: fields with their line numbers."""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import BoolArray, FloatArray
from matchbound.data.coded import give_back, values_of
from matchbound.data.comparisons import check_finite
from matchbound.data.labels import Coded, coded_values, taken
from matchbound.errors import DataError, shorten
from matchbound.files.opening import Input
from matchbound.readers.blocks import LongLineError, each_block
from matchbound.readers.delimited import NUMBER, check_width, raise_unless_number
from matchbound.readers.tables import GENUINE_WORDS, too_many_unseen


class Fields:
    """The columns of a text file without a header, or past it.

    Labels are held as positions in tables of strings, block by block, and scores as numbers; the text of the file is
    never held as a whole. A column is taken once: whoever asks for it has it then.

    Parameters
    ----------
    place
        Where the rows stand.
    first
        The fields of the first row.
    parts
        The columns of each block, which are moved out of the list.
    """

    def __init__(self, place: Place, first: list[str], parts: list[list[_Part]]) -> None:
        self.source, self.where = place.source, place
        self._first = first
        self._size = sum(len(part[0]) for part in parts)
        self._columns: list[list[_Part]] = [[part[k] for part in parts] for k in range(len(first))]
        parts.clear()

    def __len__(self) -> int:
        return self._size

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self._first)

    def first(self, column: int) -> str:
        """The first field of a column."""
        return self._first[column]

    def hashed(self, column: int) -> tuple[list[str], NDArray[np.int32]]:
        """The distinct fields of a column, as they first occur, and the position of each row's field in them."""
        parts, self._columns[column] = self._columns[column], []
        sizes = [len(part.words) for part in parts]
        held, tables = [part.values for part in parts], [part.words for part in parts]
        parts.clear()  # what is no longer needed goes at once, here and below
        words, place = _distinct(tables)
        codes = np.empty(self._size, dtype=np.int32)
        filled = begun = 0
        for at, size in enumerate(sizes):
            rows = held[at].size
            codes[filled : filled + rows] = taken(place[begun : begun + size], held[at])
            filled, begun = filled + rows, begun + size
            held[at] = _EMPTY.values
        return words, codes

    def coded(self, column: int, name: Callable[[str], str] = str) -> Coded:
        """A column as labels, each called by a name that is made of the field."""
        words, codes = self.hashed(column)
        return coded_values([name(word) for word in words], codes, lambda row: f"{self.where(row)}: a name")

    def numbers(self, column: int, name: str = "the score") -> FloatArray:
        """A column of finite numbers, shape (n,)."""
        parts, self._columns[column] = self._columns[column], []
        values = np.empty(self._size)
        filled = 0
        for at, part in enumerate(parts):
            if part.wrong is not None:
                row, text = part.wrong
                raise_unless_number(text, name, self.where(filled + row))
            values[filled : filled + len(part)] = part.values
            filled += len(part)
            parts[at] = _EMPTY
        return values

    def truths(self, column: int) -> BoolArray:
        """A column that says genuine or impostor in any of the usual words, shape (n,)."""
        found = self.coded(column)
        known = np.asarray([GENUINE_WORDS.get(str(word).lower(), -1) for word in found.labels], dtype=np.int8)
        stated = taken(known, found.codes)
        if known.min(initial=0) < 0:
            row = int(np.flatnonzero(stated < 0)[0])
            raise DataError(
                f"{self.where(row)}: {shorten(str(found.labels[found.codes[row]]))!r} is not a label; write target or "
                "nontarget, or 1 or 0"
            )
        return stated.astype(np.bool_)


@dataclass(frozen=True)
class Place:
    """Where the rows of a text file stand, such as ``"trials.txt, line 17"``; it holds none of them.

    Attributes
    ----------
    source : Input
        The file.
    skip : int
        How many lines that are not blank stand above the first row.
    """

    source: Input
    skip: int = 0

    def __call__(self, row: int) -> str:
        number, _ = next(islice(self.source.filled_lines(), row + self.skip, None))
        return f"{self.source.name}, line {number}"


@dataclass(frozen=True)
class _Part:
    """A column of some rows: positions in a table of words, or numbers.

    Attributes
    ----------
    values : array, shape (n,)
        Positions in `words`, int32; or numbers, float64.
    words : pyarrow string array or None
        The distinct fields, where the column does not hold numbers.
    wrong : (int, str) or None
        The first row whose field is not a number, and the field.
    """

    values: NDArray[Any]
    words: Any = None
    wrong: tuple[int, str] | None = None

    def __len__(self) -> int:
        return int(self.values.size)


_EMPTY = _Part(np.empty(0))


def _distinct(tables: list[Any]) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct words of Arrow tables, which are moved out of the list, as they first occur; and where each is."""
    import pyarrow as pa

    size = sum(map(len, tables))
    tables.reverse()
    if size <= FEW_WORDS:
        known: dict[str, int] = {}
        place = np.empty(size, dtype=np.int32)
        filled = 0
        while tables:
            for word in tables.pop().to_pylist():
                place[filled] = known.setdefault(word, len(known))
                filled += 1
        return list(known), place
    joined = [pa.concat_arrays([table.cast(pa.large_string()) for table in reversed(tables)])]
    tables.clear()
    hashed = joined.pop().dictionary_encode()
    return hashed.dictionary.to_pylist(), values_of(hashed.indices).astype(np.int32)


def no_numbers(_: list[str]) -> tuple[int, ...]:
    """No column holds numbers, whatever the first row is."""
    return ()


def read_fields(
    source: Input,
    widths: Sequence[int],
    layout: str,
    *,
    delimiter: str | None = None,
    skip: int = 0,
    numbers: Callable[[list[str]], Sequence[int]] = no_numbers,
    most: float = math.inf,
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
    numbers
        From the fields of the first row to the columns that hold numbers.
    most
        How many rows there may be, where their identities are not known.
    """
    if source.kind not in ("text", "empty"):
        raise DataError(f"{source.name} is not a text file; a line should be: {layout}")
    head = list(islice(source.filled_lines(), skip + 1))
    first = _split(head[skip][1], delimiter) if len(head) > skip else []
    parts: list[list[_Part]] = []
    rows = 0
    if len(first) in widths:
        check_width(source.name, len(first))
        between = delimiter or ("\t" if "\t" in head[skip][1] else " ")
        parser = _Parser(len(first), delimiter, between, tuple(numbers(first)))
        try:
            for made in each_block(source, head[skip - 1][0] if skip else 0, parser.parts):
                parts += made
                rows += sum(len(part[0]) for part in made)
                if rows > most:
                    raise too_many_unseen(source, most)
            give_back()
        except (_IrregularError, LongLineError):
            parts.clear()
    if not parts:
        _explain(source, widths, layout, delimiter, skip)
    return Fields(Place(source, skip), first, parts)


WHITE = "".join(rf"\x{{{code:x}}}" for code in range(0x3001) if chr(code).isspace())
"""Every character that Python takes for white space, for a regular expression of pyarrow."""
FEW_WORDS = 1 << 20
"""Up to so many words are told apart by Python, and more by pyarrow, which takes less room for each."""
SLOW_BYTES = 1 << 20
"""How much text is taken apart by Python at once."""


def _split(line: str, delimiter: str | None) -> list[str]:
    return line.split() if delimiter is None else [field.strip() for field in line.split(delimiter)]


class _IrregularError(Exception):
    """A line cannot be read."""


@dataclass(frozen=True)
class _Parser:
    """Takes blocks of lines apart: by pyarrow where they are as regular as most are, line by line where not."""

    width: int
    delimiter: str | None
    between: str
    numbers: tuple[int, ...]

    def parts(self, block: memoryview) -> list[list[_Part]]:
        """The columns of the rows of a block, some rows at a time."""
        text = bytes(block)
        made = self._quickly(text)
        return list(self._line_by_line(text.removeprefix(codecs.BOM_UTF8))) if made is None else [made]

    def _quickly(self, text: bytes) -> list[_Part] | None:
        """By pyarrow; None where it would not see the lines and fields that Python sees."""
        import pyarrow as pa
        import pyarrow.csv as pa_csv

        if text.count(b"\r") != text.count(b"\r\n"):  # a new line to pyarrow, and white space to Python
            return None
        names = [str(k) for k in range(self.width)]
        try:
            table = pa_csv.read_csv(
                pa.BufferReader(text),
                read_options=pa_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(text) + 1),
                parse_options=pa_csv.ParseOptions(delimiter=self.between, quote_char=False),
                convert_options=pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
            )
        except pa.ArrowException:
            return None
        plain = text.isascii() and not any(text.count(mark) for mark in _WHITE_BYTES if mark != self.between.encode())
        made: list[_Part] = []
        for k, column in enumerate(table.itercolumns()):
            fields = column.combine_chunks()
            if isinstance(fields, pa.ChunkedArray):
                return None
            part = _numbers(fields) if k in self.numbers else _hashed(fields)
            told = fields if part.words is None else part.words
            if not (plain and (part.words is None) and part.wrong is None) and not _tidy(told):
                return None
            made.append(part)
        return made

    def _line_by_line(self, text: bytes) -> Iterator[list[_Part]]:
        import pyarrow as pa

        begin = 0
        while begin < len(text):
            end = text.rfind(b"\n", begin, begin + SLOW_BYTES) + 1 or text.find(b"\n", begin) + 1 or len(text)
            rows: list[list[str]] = []
            try:
                lines = text[begin:end].decode("utf-8").split("\n")
            except UnicodeDecodeError:
                raise _IrregularError from None
            for line in lines:
                if not line.strip():
                    continue
                fields = _split(line.rstrip("\r"), self.delimiter)
                if len(fields) != self.width or not all(fields):
                    raise _IrregularError
                rows.append(fields)
            if rows:
                columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
                yield [_numbers(c) if k in self.numbers else _hashed(c) for k, c in enumerate(columns)]
            begin = end


_WHITE_BYTES = (b" ", b"\t", b"\v", b"\f", b"\x1c", b"\x1d", b"\x1e", b"\x1f")


def _hashed(fields: Any) -> _Part:
    """A column of words."""
    hashed = fields.dictionary_encode()
    return _Part(values_of(hashed.indices).astype(np.int32), hashed.dictionary)


def _numbers(fields: Any) -> _Part:
    """A column of finite numbers, or the first field that is none."""
    import pyarrow as pa

    try:
        values = values_of(fields.cast(pa.float64()))
        if np.isfinite(values).all():
            return _Part(values.copy())
    except pa.ArrowInvalid:
        pass
    exact = np.empty(len(fields))
    for row, text in enumerate(fields.to_pylist()):
        if not NUMBER.match(text) or not math.isfinite(float(text)):
            return _Part(exact, wrong=(row, text))
        exact[row] = float(text)
    return _Part(exact)


def _tidy(column: Any) -> bool:
    """Whether no field is empty or holds white space, as `str.split` and `str.strip` see it."""
    import pyarrow.compute as pc

    return not pc.any(pc.match_substring_regex(column, rf"^$|[{WHITE}]")).as_py()


def _explain(source: Input, widths: Sequence[int], layout: str, delimiter: str | None, skip: int) -> NoReturn:
    """Name the first line that cannot be read."""
    width = above = 0
    for number, line in source.filled_lines():
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
    if width:
        raise DataError(f"{source.name} changed while it was being read; read it again")
    raise DataError(f"{source.name} is empty" if not above else f"{source.name} has a header and no rows")


def first_line(source: Input) -> str:
    """The first line that is not blank; an empty file is an error."""
    if source.kind not in ("text", "empty"):
        raise DataError(f"{source.name} is not a text file")
    for _, line in source.filled_lines():
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
        scores = read_fields(source, (1,), "one score", numbers=lambda _: (0,)).numbers(0)
    if rows is not None and scores.size != rows:
        raise DataError(f"{source.name} holds {scores.size} scores, and {of} has {rows} comparisons; they must agree")
    return scores
