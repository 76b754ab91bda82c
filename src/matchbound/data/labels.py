"""Labels of identities, instances and groups: one rule for what a label is, and columns of them as codes and a table.

The rule, on every path (files, frames, arrays, mappings):

- A label is text, or a whole number. Spaces at either end are not part of it. It holds no NUL and at most `MAX_LABEL`
  characters.
- Whole numbers are compared as numbers where all labels are whole numbers that int64 holds; otherwise every number
  stands for its digits, so that ``7`` and ``"7"`` are one label and ``2**53`` and ``2**53 + 1`` are two. A float is a
  label where it is whole and small enough for its type to hold every whole number (below 2^53 for float64).
- ``True`` and ``False`` are text, and so are dates. Bytes are UTF-8 text.
- A missing value (``None``, NaN, NA, NaT, a null, empty text) is no label: it is an error that names the row.
"""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import IntArray, LabelArray
from matchbound.data.values import as_numpy
from matchbound.errors import DataError
from matchbound.notes import Note

# Characters that a label may have: beyond this, it is no label but a whole text.
MAX_LABEL = 10_000

# Up to this many characters, labels are kept in arrays of fixed width; beyond it, one long label must not make every
# other one as long, and they are kept as an array of strings.
FIXED_WIDTH = 64

# Whole numbers within so many of each other are told apart by a table with a place for each: ten times as fast as
# sorting, for columns of millions of rows.
SPAN = 1 << 22

LARGEST, SMALLEST = 2**63 - 1, -(2**63)

# Words, in lower case, that files write for a value that is missing; as labels they are kept, and told.
MISSING_WORDS = frozenset(("na", "n/a", "#n/a", "<na>", "nan", "none", "null"))

# From a row number to the beginning of a message about the label in it.
Place = Callable[[int], str]


@dataclass(frozen=True)
class Coded:
    """A column of labels.

    - labels, shape (k,): labels, text or int64; they may repeat, and some may not occur.
    - codes, shape (n,): positions in `labels`, one per row.
    - padded: labels that occur both with and without spaces at their ends, which were dropped.
    """

    labels: LabelArray
    codes: NDArray[np.integer[Any]]
    padded: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.codes.size)

    def decoded(self) -> LabelArray:
        """The label of each row, shape (n,)."""
        if not self.labels.size:
            return np.empty(0, dtype=np.str_)
        return np.asarray(self.labels[self.codes])

    def renamed(self, name: Callable[[str], str]) -> Coded:
        """The same column with labels that are made of these."""
        return Coded(text_array([name(word) for word in as_text(self.labels).tolist()]), self.codes)

    def joined(self, other: Coded, name: Callable[[str, str], str]) -> Coded:
        """A column with labels that are made of those of two columns."""
        width = max(other.labels.size, 1)
        pairs, codes = distinct_integers(self.codes.astype(np.int64) * width + other.codes)
        one, two = as_text(self.labels).tolist(), as_text(other.labels).tolist()
        return Coded(text_array([name(one[pair // width], two[pair % width]) for pair in pairs.tolist()]), codes)

    def notes(self, name: str) -> list[Note]:
        """What was done to the labels of a column, in words."""
        if not self.padded:
            return []
        text = (
            f"{name}: {len(self.padded)} labels, such as {self.padded[0][:40]!r}, are written with spaces at their "
            "ends in some rows and without in others; they were taken for the same"
        )
        return [Note("padded-labels", text)]


def text_array(words: Sequence[str]) -> LabelArray:
    """Words as an array, shape (n,): of fixed width where they are short, of strings where one is long."""
    if max(map(len, words), default=0) <= FIXED_WIDTH:
        return np.asarray(words, dtype=np.str_)
    return np.fromiter(words, dtype=np.object_, count=len(words))


def as_text(labels: LabelArray) -> LabelArray:
    """Labels as text: numbers become their digits, text stays as it is."""
    return labels.astype(np.str_) if labels.dtype.kind in "iub" else labels


def label_bytes(labels: LabelArray) -> NDArray[np.uint8]:
    """Labels as bytes for a digest, shape (any,): the same for the same labels, however they are kept."""
    texts = [word.encode() for word in as_text(labels).tolist()]
    return np.frombuffer(b"".join(f"{len(text)}:".encode() + text for text in texts), dtype=np.uint8)


def coded_values(values: Sequence[Any], codes: NDArray[np.integer[Any]], place: Place) -> Coded:
    """A column from distinct raw values and positions in them; values that do not occur are not looked at."""
    occurs = np.zeros(len(values), dtype=np.bool_)
    occurs[codes] = True
    if not occurs.all():
        values = [value for value, used in zip(values, occurs.tolist(), strict=True) if used]
        codes = (np.cumsum(occurs, dtype=np.int32) - 1)[codes]

    def refuse(at: int, problem: str, *, alone: bool = False, **facts: Any) -> None:
        """A DataError about a label (not named if `alone`); `problem` may hold {more}, {verb} and facts."""
        rows = np.flatnonzero(codes == at)
        row = int(rows[0])
        subject = place(row)
        verb = "holds" if subject.endswith(f"row {row}") else "is"  # a row holds a value, a column is one
        more = f" ({rows.size} such rows)" if rows.size > 1 else ""
        subject = f"{subject.rpartition(':')[0]}:" if alone else subject
        raise DataError(f"{subject} {problem.format(more=more, verb=verb, **facts)}")

    words = list(values)
    if set(map(type, words)) - {str}:
        for at, value in enumerate(words):
            words[at] = _label(value, lambda problem, at=at, **facts: refuse(at, problem, **facts))
        if all(isinstance(word, int) and SMALLEST <= word <= LARGEST for word in words):
            return Coded(np.asarray(words, dtype=np.int64), codes)
        words = [str(word) for word in words]
    _check_text(words, refuse)
    stripped = [word.strip() for word in words]
    if not all(stripped):
        refuse(stripped.index(""), "is empty{more}; fill it in or drop the row")
    padded = [] if stripped == words else [word for word, count in Counter(stripped).items() if count > 1]
    return Coded(text_array(stripped), codes, tuple(padded))


def _check_text(words: Sequence[str], refuse: Callable[..., None]) -> None:
    """Text that can be written to a page and to a file: no NUL, no half of a surrogate pair, no whole book."""
    for at, word in enumerate(words):
        if len(word) > MAX_LABEL:
            problem = "a label is longer than {most:,} characters{more}; is a quote or a line end missing?"
            refuse(at, problem, most=MAX_LABEL, alone=True)
        if "\0" in word:
            refuse(at, "holds a NUL character{more}; labels are plain text")
        if not word.isascii():
            try:
                word.encode()
            except UnicodeEncodeError:
                refuse(at, "is not valid Unicode text{more}; decode it as UTF-8")


def is_missing(value: object) -> bool:
    """Whether a value stands for "not there": None, NaN, NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, numbers.Number) and not isinstance(value, complex) and bool(value != value)


def _label(value: Any, refuse: Callable[..., None]) -> int | str:
    if isinstance(value, str):
        return str(value)
    if is_missing(value):
        refuse("is missing{more}; fill it in or drop the row")
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            refuse("holds bytes that are not UTF-8 text; decode the labels first")
    if isinstance(value, bool | np.bool_ | np.timedelta64):  # numpy calls a span of time an integer
        return str(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, complex | np.complexfloating):
        refuse("is {value}; labels must be strings or whole numbers", value=value)
    if isinstance(value, numbers.Number):
        digits = np.finfo(value.dtype).nmant + 1 if isinstance(value, np.floating) else 53
        try:
            whole = int(value)  # type: ignore[call-overload]
        except (OverflowError, ValueError):
            refuse("is missing or infinite{more}; fill it in or drop the row")
        rounded = isinstance(value, float | np.floating) and abs(whole) >= 2**digits
        if whole != value or rounded:
            problem = "{verb} {value}; labels must be strings or whole numbers up to 2^{digits}"
            refuse(problem, value=value, digits=digits)
        return int(whole)
    if isinstance(value, Iterable):
        kind = type(value).__name__
        refuse("is a {kind}, and labels must be one-dimensional: one label per row", kind=kind)
    return str(value)


def coded_labels(values: Coded | ArrayLike, name: str, place: Place | None = None) -> Coded:
    """A column of labels from an array or a sequence, by the one rule; `name` is what messages call it."""
    if isinstance(values, Coded):
        return values
    place = place or (lambda row: f"{name}: the label in row {row}")
    values = as_numpy(values, name)
    if not isinstance(values, list | tuple):
        array = np.asarray(values)
        if array.ndim != 1:
            raise DataError(f"{name} must be one-dimensional, one label per row; it has shape {array.shape}")
        kind = array.dtype.kind
        if kind in "iu" and not _beyond(array):
            return Coded(*distinct_integers(array))
        if kind == "f":
            whole, codes = np.unique(array, return_inverse=True)
            return coded_values(list(whole), codes, place)
        if kind == "U":  # one by one: as a list of Python strings, a long column takes several times as much room
            codes, distinct = _numbered(map(str, array), array.size)
            return coded_values(distinct, codes, place)
        values = list(array) if kind in "Mm" else array.tolist()
    kinds = set(map(type, values))
    if len(kinds) <= 1 and kinds <= {str, int, bytes, np.int64}:
        codes, distinct = _numbered(values, len(values))
        return coded_values(distinct, codes, place)
    codes, _ = _numbered(map(_key, values), len(values))
    first = np.unique(codes, return_index=True)[1].tolist()
    return coded_values([values[row] for row in first], codes, place)


def _numbered(keys: Iterable[Any], count: int) -> tuple[IntArray, list[Any]]:
    """The number of each of `count` keys, in the order in which they first occur, and the keys in that order."""
    table: dict[Any, int] = {}
    codes = np.fromiter((table.setdefault(key, len(table)) for key in keys), dtype=np.int64, count=count)
    return codes, list(table)


def _key(value: Any) -> tuple[type, Any]:
    """What tells a value from others; what cannot be hashed is no label, and is told apart from everything."""
    try:
        hash(value)
    except TypeError:
        return type(value), id(value)
    return type(value), None if is_missing(value) else value


def distinct_integers(values: NDArray[Any]) -> tuple[IntArray, NDArray[np.integer[Any]]]:
    """The distinct values of integers that int64 holds, sorted, and the position of each value in them."""
    wide = values.astype(np.int64, copy=False)
    if not wide.size:
        return wide, wide
    low, high = int(wide.min()), int(wide.max())
    if high - low < SPAN:
        occurs = np.zeros(high - low + 1, dtype=np.bool_)
        codes = wide - low if low else wide
        occurs[codes] = True
        return np.flatnonzero(occurs) + low, (np.cumsum(occurs, dtype=np.int32) - 1)[codes]
    labels, inverse = np.unique(wide, return_inverse=True)
    return labels, inverse.reshape(-1)


def as_labels(values: ArrayLike, name: str) -> LabelArray:
    """One-dimensional array of labels, all text or all int64, by the rule of this module."""
    return coded_labels(values, name).decoded()


def label_mapping(mapping: Mapping[Any, Any], name: str) -> dict[str, str]:
    """A mapping from label to label, both by the one rule; numbers stand for their digits."""
    keys = as_text(coded_labels(list(mapping), f"{name} (the keys of the mapping)").decoded()).tolist()
    column = coded_labels(list(mapping.values()), name, lambda row: f"{name}: the label of {keys[row]}")
    known: dict[str, str] = {}
    for key, value in zip(keys, as_text(column.decoded()).tolist(), strict=True):
        if known.setdefault(key, value) != value:
            raise DataError(f"{name}: the mapping names {key} twice, with different labels; keep one")
    return known


def encode(*columns: LabelArray) -> tuple[LabelArray, tuple[IntArray, ...]]:
    """The distinct labels of clean columns, sorted, and int64 codes: ``labels[codes]`` gives each column back."""
    edges = np.cumsum([column.size for column in columns])[:-1]
    filled = [column for column in columns if column.size]
    if all(column.dtype.kind in "iu" and not _beyond(column) for column in filled):
        stacked = np.concatenate([np.empty(0, dtype=np.int64), *(c.astype(np.int64, copy=False) for c in filled)])
        labels, inverse = distinct_integers(stacked)
    else:
        labels, inverse = np.unique(np.concatenate([as_text(column) for column in filled]), return_inverse=True)
    return labels, tuple(np.split(inverse.astype(np.int64, copy=False).reshape(-1), edges))


def _beyond(column: LabelArray) -> bool:
    """Whether a column of numbers holds one that int64 does not."""
    return column.dtype == np.uint64 and column.size > 0 and int(column.max()) > LARGEST


def merge(*columns: Coded, narrow: bool = False) -> tuple[LabelArray, tuple[IntArray, ...]]:
    """`encode` of the decoded columns, one table for all; with `narrow`, codes are int32, for use for a short time."""
    names, places = encode(*(column.labels for column in columns))
    used = np.zeros(names.size, dtype=np.bool_)
    for column, place in zip(columns, places, strict=True):
        occurs = np.zeros(place.size, dtype=np.bool_)
        occurs[column.codes] = True
        used[place[occurs]] = True
    new: NDArray[Any] = np.cumsum(used, dtype=np.int32 if narrow and names.size < 2**31 else np.int64) - 1
    codes = tuple(new[place][column.codes] for column, place in zip(columns, places, strict=True))
    return names[used], codes


def label_notes(labels: LabelArray, what: str) -> list[Note]:
    """Notes on distinct labels that may stand for a missing value, or for one and the same: they stay as they are."""
    if labels.dtype.kind in "iu":
        return []
    texts, notes = labels.tolist(), []
    words = [word for word in texts if len(word) <= 9 and word.lower() in MISSING_WORDS]
    if words:
        text = (
            f"{what} are named {', '.join(repr(word) for word in words[:3])}, which was read as a name like any other; "
            "if it stands for a missing value, drop those rows"
        )
        notes.append(Note("missing-words", text))
    alike: dict[str, str] = {}
    pairs = [(first, word) for word in texts if (first := alike.setdefault(_folded(word), word)) != word]
    if pairs:
        text = (
            f"{what} are named {pairs[0][0][:40]!r} and {pairs[0][1][:40]!r}, which count as different ({len(pairs)} "
            "such names): if they are one, write them the same way"
        )
        notes.append(Note("alike-labels", text))
    return notes


def _folded(word: str) -> str:
    """A label without what a spreadsheet or a program may change of it: capitals, leading zeros, and ".0"."""
    word = word.casefold()
    whole = word.removesuffix(".0")
    return (whole.lstrip("0") or "0") if whole.isdigit() else word
