"""Identities from labelled pairs: instances that genuine pairs join belong to one identity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import BoolArray, IntArray, LabelArray
from matchbound.data.labels import as_text, encode
from matchbound.errors import DataError, plainly
from matchbound.notes import Note

PIECE_ROWS = 1 << 20
"""How many pairs are looked at together."""


@dataclass(frozen=True)
class Inferred:
    """Identities of instances, known or inferred from genuine pairs.

    Attributes
    ----------
    identity : array, shape (instances,)
        The identity of each instance: its known label, or the name of the first instance that it is joined to.
    n_identities : int
        How many identities there are.
    n_inferred : int
        How many of them carry no known label.
    n_alone : int
        Instances without a known identity that no genuine pair joins to another: an identity each.
    n_unknown : int
        Instances without a known identity.
    """

    identity: LabelArray
    n_identities: int
    n_inferred: int
    n_alone: int
    n_unknown: int

    def notes(self, what: str = "instances") -> list[Note]:
        """What was inferred, in words; empty when every identity was known."""
        if not self.n_unknown:
            return []
        given = "identities were not given"
        if self.n_unknown < self.identity.size:
            given = f"the identities of {self.n_unknown} of {self.identity.size} {what} were not given"
        return [
            Note(
                "inferred-identities",
                f"{given}: {self.n_inferred} identities were inferred from the genuine pairs ({what} that genuine "
                f"pairs join, directly or through others, count as one identity; {self.n_alone} {what} that no genuine "
                "pair joins to another count as an identity each). A person whose genuine pairs are not all in the "
                "list may be split in two, and the intervals then come out too narrow",
            )
        ]


def components(n: int, first: IntArray, second: IntArray) -> IntArray:
    """Connected components of a graph: the smallest node of each node's component, shape (n,).

    Every node points at a smaller node of its component; edges lower the pointers and pointers are
    followed to their ends, until no edge joins two components.
    """
    return _components(n, [(first, second, None)])


def _components(n: int, edges: Sequence[tuple[IntArray, IntArray, BoolArray | None]]) -> IntArray:
    """The same, of edges in several parts, of which only some may count; they are looked at some at a time."""
    parent = np.arange(n, dtype=np.int64)
    while True:
        joined = False
        for first, second, counts in edges:
            for rows in _pieces(first.size):
                a, b = first[rows], second[rows]
                if counts is not None:
                    a, b = a[counts[rows]], b[counts[rows]]
                a, b = parent[a], parent[b]
                low, high = np.minimum(a, b), np.maximum(a, b)
                apart = low != high
                if apart.any():
                    joined = True
                    np.minimum.at(parent, high[apart], low[apart])
        if not joined:
            return parent
        while True:
            shorter = parent[parent]
            if np.array_equal(shorter, parent):
                break
            parent = shorter


def _pieces(size: int) -> Iterator[slice]:
    """Rows 0 to size − 1, some at a time."""
    return (slice(at, at + PIECE_ROWS) for at in range(0, size, PIECE_ROWS))


def _clashes(size: int, wrong: Callable[[slice], BoolArray]) -> tuple[int, int]:
    """How many rows are wrong, and the first of them (or -1)."""
    count, first = 0, -1
    for rows in _pieces(size):
        found = np.flatnonzero(wrong(rows))
        if found.size and not count:
            first = rows.start + int(found[0])
        count += int(found.size)
    return count, first


def infer_identities(
    names: LabelArray,
    first: IntArray,
    second: IntArray,
    genuine: BoolArray,
    where: Callable[[int], str],
    known: LabelArray | None = None,
) -> Inferred:
    """Identities of instances from pairs that are labelled genuine or impostor.

    Parameters
    ----------
    names
        The instances, shape (instances,).
    first, second
        Positions in `names` of the two instances of each pair, shape (n,).
    genuine
        Whether each pair shows one identity, shape (n,).
    where
        From a pair's position to its place in the source, for messages.
    known
        The identity of each instance as text, empty where it is unknown, shape (instances,).

    Raises
    ------
    DataError
        The labels contradict each other or the known identities.
    """
    n = names.shape[0]
    text = np.full(n, "", dtype=np.str_) if known is None else as_text(known)
    has = np.asarray(text != "", dtype=np.bool_)
    if known is not None:
        _check_known(names, text, has, first, second, genuine, where)
    labels, (code,) = encode(text[has])
    sure = np.flatnonzero(has)
    root = _components(n + labels.size, [(first, second, genuine), (sure, n + code, None)])
    _check_one_label(labels, root[n:], where)
    clashes, at = _clashes(first.size, lambda rows: ~genuine[rows] & (root[first[rows]] == root[second[rows]]))
    if clashes:
        raise DataError(
            f"{where(at)}: the labels contradict each other: {plainly(names[first[at]])} and "
            f"{plainly(names[second[at]])} are labelled impostor, and genuine pairs join them to one identity "
            f"({clashes} such pairs). Correct the labels, or give the identities"
        )
    label_of_root = np.full(n + labels.size, -1, dtype=np.int64)
    label_of_root[root[n:]] = np.arange(labels.size)
    owner = label_of_root[root[:n]]
    fallback = as_text(names)[np.minimum(root[:n], n - 1)]
    identity = np.where(owner >= 0, labels[owner], fallback) if labels.size else fallback
    joined = np.zeros(n, dtype=np.bool_)
    for rows in _pieces(first.size):
        apart = genuine[rows] & (first[rows] != second[rows])
        joined[first[rows][apart]] = True
        joined[second[rows][apart]] = True
    roots = np.unique(root[:n])
    return Inferred(
        identity,
        int(roots.size),
        int(np.count_nonzero(label_of_root[roots] < 0)),
        int(np.count_nonzero(~joined & ~has)),
        int(np.count_nonzero(~has)),
    )


def _check_known(
    names: LabelArray,
    text: LabelArray,
    has: BoolArray,
    first: IntArray,
    second: IntArray,
    genuine: BoolArray,
    where: Callable[[int], str],
) -> None:
    """Known identities on both sides of a pair must agree with its label."""
    _, (code,) = encode(text)

    def wrong(rows: slice) -> BoolArray:
        a, b = first[rows], second[rows]
        return np.asarray(has[a] & has[b] & ((code[a] == code[b]) != genuine[rows]))

    clashes, at = _clashes(first.size, wrong)
    if clashes:
        a, b = first[at], second[at]
        said, seen = ("genuine", "differ") if genuine[at] else ("impostor", "are equal")
        raise DataError(
            f"{where(at)}: the pair is labelled {said}, and the identities {plainly(text[a])} (of "
            f"{plainly(names[a])}) and {plainly(text[b])} (of {plainly(names[b])}) {seen} ({clashes} such lines). "
            "Correct the labels or the identities"
        )


def _check_one_label(labels: LabelArray, root: IntArray, where: Callable[[int], str]) -> None:
    """No chain of genuine pairs may join two known identities."""
    order = np.argsort(root, kind="stable")
    same = np.flatnonzero(root[order[1:]] == root[order[:-1]])
    if same.size:
        a, b = labels[order[same[0]]], labels[order[same[0] + 1]]
        source = where(0).partition(", line")[0]
        raise DataError(
            f"{source}: the labels contradict the identities: a chain of genuine pairs joins identity {plainly(a)} "
            f"and identity {plainly(b)}. Correct the labels or the identities"
        )
