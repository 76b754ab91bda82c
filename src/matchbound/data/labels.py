"""Encode identity and instance labels of any kind as small integers, once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import IntArray, LabelArray
from matchbound.errors import DataError

LARGEST_FLOAT_LABEL = 2.0**53
"""Beyond this, different whole numbers are the same float, and two people could be taken for one."""


MAX_LABEL = 10_000
"""Characters that a label may have: in an array of text the longest label decides how much room every one takes."""


def text_array(words: Sequence[str], where: str) -> LabelArray:
    """Words as an array, shape (n,); a DataError where one of them is no label but a whole text."""
    if max(map(len, words), default=0) > MAX_LABEL:
        raise DataError(f"{where}: a label is longer than {MAX_LABEL:,} characters; is a quote or a line end missing?")
    return np.asarray(words, dtype=np.str_)


def as_labels(values: ArrayLike, name: str) -> LabelArray:
    """One-dimensional array of labels, all strings or all integers.

    Missing labels (``None``, NaN, empty strings) are an error that names the row, because a comparison
    of nobody cannot be attributed to anybody.
    """
    if isinstance(values, (list, tuple)) and values and all(isinstance(value, str) for value in values):
        values = text_array([str(value) for value in values], name)
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"{name} must be one-dimensional, one label a row; it has shape {array.shape}")
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        return _whole_numbers(array, name)
    if array.dtype.kind == "S":
        try:
            text = np.char.decode(array, "utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{name} holds bytes that are not UTF-8 text; decode the labels first") from None
    elif array.dtype.kind == "U":
        text = array.astype(np.str_)
    elif array.dtype.kind == "T" or array.dtype.kind == "O":
        text = _text_of_objects(array, name)
        if text.dtype.kind in "iu":
            return text
    else:
        raise DataError(f"{name} holds values of type {array.dtype}; labels must be strings or integers")
    _must_be_text(text, name)
    empty = np.flatnonzero(np.char.str_len(text) == 0)
    if empty.size:
        raise DataError(
            f"{name}: the label in row {int(empty[0])} is empty ({empty.size} such rows); fill it in or drop the row"
        )
    return text


def _must_be_text(text: LabelArray, name: str) -> None:
    """Half of a surrogate pair is no character: it could be written neither to a page nor to a file."""
    if text.size and text.dtype.itemsize:
        points = np.ascontiguousarray(text).view(np.uint32).reshape(text.size, -1)
        bad = np.flatnonzero(((points >= 0xD800) & (points <= 0xDFFF)).any(axis=1))
        if bad.size:
            raise DataError(f"{name}: the label in row {int(bad[0])} is not valid Unicode text; decode it as UTF-8")


def _whole_numbers(array: LabelArray, name: str) -> LabelArray:
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise DataError(
            f"{name}: the label in row {int(bad[0])} is missing or infinite ({bad.size} such rows); "
            "fill it in or drop the row"
        )
    with np.errstate(over="ignore"):
        wide = array.astype(np.float64)
    odd = np.flatnonzero((wide != np.round(wide)) | (np.abs(wide) > LARGEST_FLOAT_LABEL))
    if odd.size:
        row = int(odd[0])
        raise DataError(f"{name}: row {row} holds {array[row]}; labels must be strings or whole numbers up to 2^53")
    return wide.astype(np.int64)


def _text_of_objects(array: LabelArray, name: str) -> LabelArray:
    """Labels from an object array: all integers stay integers, anything else becomes text."""
    values = array.tolist()
    for row, value in enumerate(values):
        if value is None or value != value:
            raise DataError(f"{name}: the label in row {row} is missing; fill it in or drop the row")
    if values and all(isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in values):
        return np.asarray(values, dtype=np.int64)
    return text_array([str(v) for v in values], name)


def encode(*columns: LabelArray) -> tuple[LabelArray, tuple[IntArray, ...]]:
    """Encode columns against one sorted list of distinct labels.

    Returns
    -------
    labels : array, shape (G,)
        The distinct labels, sorted, so that the order of rows does not matter.
    codes : tuple of int64 arrays
        One array a column, each with the shape of its column: ``labels[codes]`` gives the column back.
    """
    kinds = {"i" if column.dtype.kind in "iu" else "U" for column in columns if column.size}
    if len(kinds) > 1:
        columns = tuple(column.astype(np.str_) for column in columns)
    stacked = np.concatenate(columns) if len(columns) > 1 else columns[0]
    labels, inverse = np.unique(stacked, return_inverse=True)
    inverse = inverse.astype(np.int64, copy=False).reshape(-1)
    edges = np.cumsum([column.size for column in columns])[:-1]
    return labels, tuple(np.split(inverse, edges))
