"""Number labels as they appear, batch after batch: a batch costs what its own labels cost, however many are known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import IntArray, LabelArray
from matchbound.data.labels import Coded

Hashes = NDArray[np.uint64]
KINDS = "iUO"


class Numbering:
    """Labels, text or int64, and the number of each, in the order in which they were first met.

    Labels are found by a hash of 64 bits, and every label that is found is compared with the one that has the number.
    """

    def __init__(self) -> None:
        self._labels: LabelArray = np.empty(0, dtype=np.int64)
        self._size = 0
        self._seed = 0
        self._hashes: Hashes = np.empty(0, dtype=np.uint64)
        self._numbers: IntArray = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return self._size

    def of(self, column: Coded) -> IntArray:
        """The number of each row of a column, shape (n,); labels that are new get the next numbers."""
        occurs = np.zeros(column.labels.size, dtype=np.bool_)
        occurs[column.codes] = True
        labels = column.labels[occurs]
        if not self._size:
            self._labels = labels[:0]
        mine, theirs = _kind(self._labels), _kind(labels)
        if KINDS.index(theirs) > KINDS.index(mine):
            self._restart(self._labels[: self._size].astype(np.str_).astype(theirs))
        elif mine != theirs:
            labels = labels.astype(np.str_).astype(mine)
        numbers = np.zeros(column.labels.size, dtype=np.int64)
        numbers[occurs] = self._find(labels)
        found: IntArray = numbers[column.codes]
        return found

    def sorted_labels(self) -> tuple[LabelArray, IntArray]:
        """The labels in their order, and the number of each; shapes (G,)."""
        labels = self._labels[: self._size]
        order = np.argsort(labels, kind="stable").astype(np.int64)
        return labels[order], order

    def _find(self, labels: LabelArray) -> IntArray:
        if not labels.size:
            return np.empty(0, dtype=np.int64)
        hashes = hash_labels(labels, self._seed)
        order = np.argsort(hashes)
        hashes, labels = hashes[order], labels[order]
        at = np.searchsorted(self._hashes, hashes)
        known = np.zeros(hashes.size, dtype=np.bool_)
        inside = at < self._hashes.size
        known[inside] = self._hashes[at[inside]] == hashes[inside]
        numbers = np.empty(hashes.size, dtype=np.int64)
        numbers[known] = self._numbers[at[known]]
        fresh = np.flatnonzero(~known)
        if fresh.size:
            first = np.append(True, hashes[fresh][1:] != hashes[fresh][:-1])
            numbers[fresh] = self._size + np.cumsum(first) - 1
            chosen = fresh[first]
            self._keep(labels[chosen])
            self._hashes = np.insert(self._hashes, at[chosen], hashes[chosen])
            self._numbers = np.insert(self._numbers, at[chosen], numbers[chosen])
        if not np.array_equal(self._labels[numbers], labels):  # two labels with one hash
            self._seed += 1
            self._restart(self._labels[: self._size])
            return self._find(labels)[np.argsort(order)]
        back = np.empty(order.size, dtype=np.int64)
        back[order] = numbers
        return back

    def _keep(self, labels: LabelArray) -> None:
        kind = np.result_type(self._labels, labels)
        size = self._size + labels.size
        if size > self._labels.size or kind != self._labels.dtype:
            wide = np.empty(max(size, 2 * self._labels.size), dtype=kind)
            wide[: self._size] = self._labels[: self._size]
            self._labels = wide
        self._labels[self._size : size] = labels
        self._size = size

    def _restart(self, labels: LabelArray) -> None:
        """Hash all labels again; they keep their numbers."""
        self._labels, self._size = labels, int(labels.size)
        hashes = hash_labels(labels, self._seed)
        self._numbers = np.argsort(hashes).astype(np.int64)
        self._hashes = hashes[self._numbers]


def joined_labels(*columns: LabelArray) -> LabelArray:
    """The sorted union of sorted labels; numbers stand for their digits beside text."""
    filled = [labels for labels in columns if labels.size]
    if not filled:
        return columns[0]
    kind = max((_kind(labels) for labels in filled), key=KINDS.index)
    alike = [labels if _kind(labels) == kind else labels.astype(np.str_).astype(kind) for labels in filled]
    return np.asarray(np.unique(np.concatenate(alike)))


def _kind(labels: LabelArray) -> str:
    """How labels are hashed: numbers, text of fixed width or strings, each of which can stand for those before it."""
    return "i" if labels.dtype.kind in "iu" else labels.dtype.kind


def hash_labels(labels: LabelArray, seed: int = 0) -> Hashes:
    """A hash of each label, shape (k,); that of a text does not depend on how wide the array is."""
    start = np.uint64((0x9E3779B97F4A7C15 * (seed + 1)) % 2**64)
    with np.errstate(over="ignore"):
        if labels.dtype.kind == "O":
            words: list[Any] = labels.tolist()
            return _mixed(np.array([hash((seed, word)) for word in words], dtype=np.int64).view(np.uint64))
        if labels.dtype.kind in "iu":
            return _mixed(labels.astype(np.int64).view(np.uint64) + start)
        points = np.ascontiguousarray(labels).view(np.uint32).reshape(labels.size, -1)
        total = np.full(labels.size, start)
        for column in points.T:
            total = np.where(column != 0, (total ^ column) * np.uint64(0x100000001B3), total)
        return _mixed(total)


def _mixed(values: Hashes) -> Hashes:
    """Every bit of a value spread over all bits (the last steps of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)))
