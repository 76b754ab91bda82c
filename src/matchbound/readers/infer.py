"""Identities from labelled pairs: instances that genuine pairs join belong to one identity."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import BoolArray, IntArray, LabelArray
from matchbound.data.labels import as_text, distinct_integers, encode
from matchbound.errors import DataError, argument, plainly
from matchbound.notes import Note


def components(n: int, first: IntArray, second: IntArray) -> NDArray[np.int32]:
    """Connected components of a graph of n nodes: the smallest node of each node's component, shape (n,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(first.size, dtype=np.int8), (first, second)), shape=(n, n))
    label = connected_components(edges, directed=False)[1]
    root: NDArray[np.int32] = np.unique(label, return_index=True)[1].astype(np.int32)[label]
    return root


def infer_identities(
    names: LabelArray,
    first: IntArray,
    second: IntArray,
    genuine: BoolArray,
    where: Callable[[int], str],
    known: LabelArray | None = None,
) -> tuple[LabelArray, list[Note]]:
    """The identity of each instance: its known label, or the name of the first instance that it is joined to.

    With a note on what was inferred, unless every identity was known. Labels that contradict each other or the known
    identities are an error. `first` and `second` are positions in `names`, one of each for a pair; `known` has a text
    for each instance, empty where its identity is unknown.
    """
    n = names.shape[0]
    text = np.full(n, "", dtype=np.str_) if known is None else as_text(known)
    has = np.asarray(text != "", dtype=np.bool_)
    if known is not None:
        _check_known(names, text, has, first, second, genuine, where)
    labels, (code,) = encode(text[has])
    # a pair that is listed again joins nothing new, and there may be millions of them
    joins, _ = distinct_integers(first[genuine].astype(np.int64) * n + second[genuine])
    a, b = joins // n, joins % n
    root = components(n + labels.size, np.concatenate([a, np.flatnonzero(has)]), np.concatenate([b, n + code]))
    _check_one_label(labels, root[n:], where)
    clash = np.flatnonzero(~genuine & (root[first] == root[second]))
    if clash.size:
        at = int(clash[0])
        raise DataError(
            f"{where(at)}: the labels contradict each other: {plainly(names[first[at]])} and "
            f"{plainly(names[second[at]])} are labelled impostor, and genuine pairs join them to one identity "
            f"({clash.size} such pairs). Correct the labels, or give the identities"
        )
    label_of_root = np.full(n + labels.size, -1, dtype=np.int64)
    label_of_root[root[n:]] = np.arange(labels.size)
    owner = label_of_root[root[:n]]
    fallback = as_text(names)[np.minimum(root[:n], n - 1)]
    identity = np.where(owner >= 0, labels[owner], fallback) if labels.size else fallback
    if has.all():
        return identity, []
    joined = np.zeros(n, dtype=np.bool_)
    joined[a[a != b]] = joined[b[a != b]] = True
    inferred, alone = np.count_nonzero(label_of_root[np.unique(root[:n])] < 0), np.count_nonzero(~joined & ~has)
    part = f"the identities of {np.count_nonzero(~has)} of {n} instances" if has.any() else "identities"
    return identity, [
        Note(
            "inferred-identities",
            f"{part} were not given: {inferred} identities were inferred from the genuine pairs (instances that "
            f"genuine pairs join, directly or through others, count as one identity; {alone} instances that no genuine "
            "pair joins to another count as an identity each). A person whose genuine pairs are not all in the list "
            "may be split in two, and the intervals then come out too narrow. Columns id_a and id_b name identities; "
            f"for trial lists, {argument('map', 'FILE')} does (lines of sample and identity), or "
            f"{argument('identity_regex', ...)} (its first group, searched in the name of a sample)",
        )
    ]


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
    code = encode(text)[1][0].astype(np.int32)
    clash = np.flatnonzero(has[first] & has[second] & ((code[first] == code[second]) != genuine))
    if clash.size:
        at = int(clash[0])
        a, b = first[at], second[at]
        kind, relation = ("genuine", "differ") if genuine[at] else ("impostor", "are equal")
        raise DataError(
            f"{where(at)}: the pair is labelled {kind}, and the identities {plainly(text[a])} (of "
            f"{plainly(names[a])}) and {plainly(text[b])} (of {plainly(names[b])}) {relation} ({clash.size} such "
            "lines). Correct the labels or the identities"
        )


def _check_one_label(labels: LabelArray, root: NDArray[np.int32], where: Callable[[int], str]) -> None:
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
