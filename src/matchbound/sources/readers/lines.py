"""Text files of columns without a header, as research tools write them: fields with their line numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matchbound.errors import DataError
from matchbound.sources.delimited import raise_unless_number
from matchbound.sources.files import Input, shorten
from matchbound.sources.labels import LabelArray, encode
from matchbound.sources.tables import GENUINE_WORDS


@dataclass(frozen=True)
class Fields:
    """The columns of a text file.

    Attributes
    ----------
    source : str
        The name of the file, for messages.
    columns : list of lists of str
        The fields, by column; all of length n.
    lines : list of int
        The line that each row stands on, length n.
    """

    source: str
    columns: list[list[str]]
    lines: list[int]

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, row: int) -> str:
        """The place of a row, such as ``"trials.txt, line 17"``."""
        return f"{self.source}, line {self.lines[row]}"

    def text(self, column: int) -> LabelArray:
        """A column as text, shape (n,)."""
        return np.asarray(self.columns[column], dtype=np.str_)

    def numbers(self, column: int, name: str = "the score") -> NDArray[np.float64]:
        """A column of finite numbers, shape (n,)."""
        fields = self.columns[column]
        try:
            values = np.asarray(fields, dtype=np.str_).astype(np.float64)
        except ValueError:
            values = np.asarray([np.nan])
        if not np.isfinite(values).all():
            values = np.asarray(
                [raise_unless_number(text, name, self.where(row)) for row, text in enumerate(fields)], np.float64
            )
        return values

    def truths(self, column: int) -> NDArray[np.bool_]:
        """A column that says genuine or impostor in any of the usual words, shape (n,)."""
        words, (codes,) = encode(self.text(column))
        known = np.asarray([GENUINE_WORDS.get(str(word).lower(), -1) for word in words], dtype=np.int64)
        bad = np.flatnonzero(known[codes] < 0)
        if bad.size:
            row = int(bad[0])
            raise DataError(
                f"{self.where(row)}: {shorten(self.columns[column][row])!r} is not a label; write target or "
                "nontarget, or 1 or 0"
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
        How many lines to leave out at the top.
    """
    if source.kind not in ("text", "empty"):
        raise DataError(f"{source.name} is not a text file; a line should be: {layout}")
    rows: list[list[str]] = []
    lines: list[int] = []
    width = 0
    for number, line in source.lines():
        if number <= skip or not line.strip():
            continue
        fields = line.split() if delimiter is None else [field.strip() for field in line.split(delimiter)]
        if not width:
            width = len(fields) if len(fields) in widths else 0
        if len(fields) != width or not all(fields):
            allowed = " or ".join(str(n) for n in ([width] if width else widths))
            raise DataError(
                f"{source.name}, line {number}: {len(fields)} columns where {allowed} are expected: "
                f"{shorten(line)!r}. A line should be: {layout}"
            )
        rows.append(fields)
        lines.append(number)
    if not rows:
        raise DataError(f"{source.name} is empty" if not skip else f"{source.name} has a header and no rows")
    return Fields(source.name, [list(column) for column in zip(*rows, strict=True)], lines)


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


def load_scores(source: Input, rows: int | None = None, of: str = "") -> NDArray[np.float64]:
    """One score a comparison, in order: from an ``.npy`` array, or text with one number a line."""
    if source.kind == "npy":
        from matchbound.sources.arrays import load_npy

        values = np.asarray(load_npy(source, mmap=False))
        if values.ndim == 2 and 1 in values.shape:
            values = values.reshape(-1)
        if values.ndim != 1 or values.dtype.kind not in "iuf":
            raise DataError(f"{source.name} holds {values.dtype} of shape {values.shape}; give one score a comparison")
        scores = values.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(scores))
        if bad.size:
            raise DataError(
                f"{source.name}, row {int(bad[0])}: the score is {scores[bad[0]]} ({bad.size} rows are not finite "
                "numbers); drop failed comparisons, or give them the score that the system would act on"
            )
    else:
        scores = read_fields(source, (1,), "one score").numbers(0)
    if rows is not None and scores.size != rows:
        raise DataError(f"{source.name} holds {scores.size} scores, and {of} has {rows} comparisons; they must agree")
    return scores
