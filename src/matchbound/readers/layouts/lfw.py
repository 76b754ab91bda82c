"""LFW's pairs.txt with one score per pair."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Sequence

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.labels import Coded, coded_values, merge
from matchbound.errors import DataError, UsageError, shorten
from matchbound.files.opening import Input, open_input
from matchbound.readers.layouts.trials import load_scores
from matchbound.readers.tables import named


def read_lfw(
    inputs: Sequence[Input], *, distance: bool | None = None, scores: str | os.PathLike[str] | None = None
) -> Comparisons:
    """``name n1 n2`` (one person) or ``name1 n1 name2 n2`` (two), in the order of the scores.

    The first line holds the number of folds and of pairs a fold and kind (``10 300``), or of pairs of each
    kind. Scores: text with one number per line, or an ``.npy`` array.
    """
    files = [*inputs, *([open_input(scores)] if scores is not None else [])]
    if len(files) != 2:
        raise UsageError("reader 'lfw' takes pairs.txt and a file of scores, one per pair and in its order")
    source = files[0]
    if source.kind not in ("text", "empty"):
        raise DataError(f"{source.name} is not a text file; give pairs.txt")
    columns = [_Growing() for _ in range(4)]
    rows = 0
    header: list[int] = []
    for number, line in source.filled_lines():
        fields = line.split("\t") if "\t" in line else line.split()
        fields = [field.strip() for field in fields]
        if not rows and not header and len(fields) <= 2 and all(_is_count(field) for field in fields):
            header = [int(field) for field in fields]
            continue
        where = f"{source.name}, line {number}"
        if len(fields) == 3:
            fields.insert(2, fields[0])
        if len(fields) != 4 or not all(fields):
            raise DataError(f"{where}: {shorten(line)!r} is neither 'name n1 n2' nor 'name1 n1 name2 n2'")
        if not (fields[1].isdigit() and fields[3].isdigit()):
            raise DataError(f"{where}: image numbers must be whole numbers: {shorten(line)!r}")
        rows += 1
        for column, field in zip(columns, fields, strict=True):
            column.append(field)
    if not rows:
        raise DataError(f"{source.name} is empty" if not header else f"{source.name} has a header and no pairs")
    promised = 2 * math.prod(header) if header else rows
    if promised != rows:
        raise DataError(f"{source.name}: the first line promises {promised} pairs, and there are {rows}")
    score = load_scores(files[1], rows, source.name)
    return named(source.name, lambda: _comparisons(columns, score, bool(distance)))


class _Growing:
    """A column of words that grows: a position in a table for each row."""

    def __init__(self) -> None:
        self._table: dict[str, int] = {}
        self._codes = array("i")

    def append(self, word: str) -> None:
        """Add a row."""
        self._codes.append(self._table.setdefault(word, len(self._table)))

    def coded(self, name: str) -> Coded:
        """The column as labels; `name` is what messages call it."""
        codes, self._codes = np.frombuffer(self._codes, dtype=np.int32), array("i")
        return coded_values(list(self._table), codes, lambda row: f"{name}: the label in row {row}")


def _comparisons(columns: list[_Growing], score: FloatArray, distance: bool) -> Comparisons:
    identities, (a, b) = merge(columns[0].coded("identity_a"), columns[2].coded("identity_b"))
    names, (i, j) = merge(columns[1].coded("instance_a"), columns[3].coded("instance_b"), narrow=True)
    return Comparisons.from_codes(identities, a, b, score, distance=distance, names=names, instance_a=i, instance_b=j)


READERS = {"lfw": read_lfw}


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
