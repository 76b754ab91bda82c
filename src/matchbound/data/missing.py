"""Comparisons without a score: what stands for them, and which true pairs were never compared."""

from __future__ import annotations

from typing import Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.errors import UsageError

Missing = Literal["error", "reject", "drop"]
MISSING: tuple[Missing, ...] = ("error", "reject", "drop")


def check_missing(missing: str) -> None:
    """Refuse a word that says nothing about missing scores."""
    if missing not in MISSING:
        raise UsageError(f"missing must be one of {', '.join(MISSING)}; got {missing!r}")


def rejected_score(score: FloatArray, distance: bool) -> float:
    """A score that is rejected at every threshold that the scores reach: beyond the worst of them by their span + 1."""
    low, high = (float(score.min()), float(score.max())) if score.size else (0.0, 0.0)
    span = high - low + 1.0
    return high + span if distance else low - span


def uncompared_pairs(cluster: IntArray, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs of records of one cluster that were not compared.

    Parameters
    ----------
    cluster : int64 array, shape (R,)
        The cluster of each record.
    first, second : int64 arrays, shape (n,)
        The records of each comparison.

    Returns
    -------
    (first, second) : int64 arrays, shape (k,)
        first < second.
    """
    order = np.argsort(cluster, kind="stable")
    sizes = np.bincount(cluster)
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    left, right = [], []
    for size in np.unique(sizes[sizes > 1]):
        one, two = np.triu_indices(int(size), 1)
        of_size = start[sizes == size]
        left.append((of_size[:, None] + one).reshape(-1))
        right.append((of_size[:, None] + two).reshape(-1))
    if not left:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    a, b = order[np.concatenate(left)], order[np.concatenate(right)]
    a, b = np.minimum(a, b), np.maximum(a, b)
    width = np.int64(cluster.size)
    compared = np.unique(np.minimum(first, second) * width + np.maximum(first, second))
    keys = a * width + b
    at = np.minimum(np.searchsorted(compared, keys), max(compared.size - 1, 0))
    new = compared[at] != keys if compared.size else np.ones(keys.size, dtype=np.bool_)
    return a[new].astype(np.int64), b[new].astype(np.int64)
