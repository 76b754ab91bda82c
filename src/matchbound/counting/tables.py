"""Tally a table of scored comparisons at one or many thresholds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import GenuineTally, ImpostorTally, PairTable, Tally
from matchbound.data.comparisons import Comparisons

DENSE_CELLS, MOST_CELLS = 8, 20_000_000
"""Identity pairs by threshold are counted in a dense table of up to so many cells per comparison, and in all."""


def tally_comparisons(source: Comparisons, thresholds: FloatArray, *, pairs: bool = True) -> Tally:
    """Count errors by identity and by identity pair at each threshold.

    Where identity pairs have several comparisons each, a dense table holds n_ij by threshold. Elsewhere
    one sort puts the comparisons of an identity pair side by side, in the order in which they cross the thresholds; the
    r-th crossing of a pair (r = 0, 1, …) adds (r+1)² − r² = 2r + 1 to n_ij², so that the second moments at all K
    thresholds come from one pass over the comparisons.

    Parameters
    ----------
    source
        The comparisons.
    thresholds : float64 array, shape (K,)
        In any order, in the units of the scores.
    pairs
        Keep n_ij at each threshold (and m_ij), as bootstraps that draw identities need.
    """
    grid, place = np.unique(-thresholds if source.distance else thresholds, return_inverse=True)
    crossed = np.searchsorted(grid, source.similarity, side="right")
    genuine = _genuine(source, crossed, grid.size)
    impostor = _impostor(source, crossed, grid.size, pairs)
    place = place.reshape(-1)
    return Tally(
        identities=source.identities,
        thresholds=thresholds,
        distance=source.distance,
        instances=source.instance_counts,
        genuine=GenuineTally(genuine.comparisons, genuine.errors[place]),
        impostor=ImpostorTally(
            impostor.comparisons,
            impostor.errors[place],
            impostor.sum_mm,
            impostor.sum_nm[place],
            impostor.sum_nn[place],
            impostor.compared,
            None if impostor.erred is None else tuple(impostor.erred[k] for k in place),
        ),
    )


def _genuine(source: Comparisons, crossed: IntArray, size: int) -> GenuineTally:
    """A genuine comparison that reached `crossed` thresholds errs at the rest of them."""
    rows = np.flatnonzero(source.genuine)
    owner = source.a[rows]
    reached = _count_by(owner, crossed[rows], source.n_identities, size)
    total = np.bincount(owner, minlength=source.n_identities).astype(np.int64)
    return GenuineTally(total, total[None, :] - reached)


def _impostor(source: Comparisons, crossed: IntArray, size: int, pairs: bool) -> ImpostorTally:
    """An impostor comparison that reached `crossed` thresholds errs at each of them."""
    rows = np.flatnonzero(~source.genuine)
    n_identities = source.n_identities
    low = np.minimum(source.a[rows], source.b[rows])
    high = np.maximum(source.a[rows], source.b[rows])
    reach = crossed[rows]
    keys = low * np.int64(n_identities) + high
    if n_identities**2 <= min(DENSE_CELLS * rows.size, MOST_CELLS):
        made = np.bincount(keys, minlength=n_identities**2)
        present = np.flatnonzero(made)
        if present.size * (size + 1) <= min(DENSE_CELLS * rows.size, MOST_CELLS):
            number = (np.cumsum(made > 0) - 1)[keys]
            compared = PairTable(present // n_identities, present % n_identities, made[present].astype(np.int64))
            return _impostor_dense(compared, _count_by(number, reach, present.size, size), n_identities, pairs)
    order = np.lexsort((-reach, keys))
    keys, reach = keys[order], reach[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    sizes = np.diff(starts, append=keys.size)
    compared = PairTable(keys[starts] // n_identities, keys[starts] % n_identities, sizes.astype(np.int64))
    rank = np.arange(keys.size) - np.repeat(starts, sizes)
    both = np.concatenate([low, high])
    return ImpostorTally(
        comparisons=np.bincount(both, minlength=n_identities).astype(np.int64),
        errors=_count_by(both, np.tile(crossed[rows], 2), n_identities, size),
        sum_mm=2 * int((sizes.astype(object) ** 2).sum()) if sizes.size else 0,
        sum_nm=2 * _reached(reach, np.repeat(sizes, sizes), size),
        sum_nn=2 * _reached(reach, 2 * rank + 1, size),
        compared=compared,
        erred=_pair_errors(compared, starts, reach, size) if pairs else None,
    )


def _impostor_dense(compared: PairTable, n: IntArray, n_identities: int, pairs: bool) -> ImpostorTally:
    """The same from n_ij at each threshold, shape (K, P)."""

    def by_identity(counts: IntArray) -> IntArray:
        one = np.bincount(compared.first, counts, n_identities)
        return (one + np.bincount(compared.second, counts, n_identities)).astype(np.int64)

    size = n.shape[0]
    tables = []
    for row in n if pairs else ():
        erring = np.flatnonzero(row)
        tables.append(PairTable(compared.first[erring], compared.second[erring], row[erring]))
    return ImpostorTally(
        comparisons=by_identity(compared.count),
        errors=np.array([by_identity(row) for row in n], dtype=np.int64).reshape(size, n_identities),
        sum_mm=2
        * sum(int(m) ** 2 * int(k) for m, k in zip(*np.unique(compared.count, return_counts=True), strict=True)),
        sum_nm=2 * (n @ compared.count),
        sum_nn=2 * np.einsum("kp,kp->k", n, n),
        compared=compared,
        erred=tuple(tables) if pairs else None,
    )


def _pair_errors(compared: PairTable, starts: IntArray, reach: IntArray, size: int) -> tuple[PairTable, ...]:
    """n_ij at each threshold: of each pair's comparisons, those that reached beyond it."""
    tables = []
    for k in range(size):
        count = np.add.reduceat((reach > k).astype(np.int64), starts) if starts.size else starts
        erring = np.flatnonzero(count)
        tables.append(PairTable(compared.first[erring], compared.second[erring], count[erring]))
    return tuple(tables)


def _count_by(owner: IntArray, reach: IntArray, n_identities: int, size: int) -> IntArray:
    """How many comparisons of each owner reached each of `size` thresholds, shape (size, G)."""
    flat = np.bincount(owner * np.int64(size + 1) + reach, minlength=n_identities * (size + 1))
    table = flat.reshape(n_identities, size + 1)[:, 1:]
    return np.ascontiguousarray(np.cumsum(table[:, ::-1], axis=1)[:, ::-1].T).astype(np.int64)


def _reached(reach: IntArray, amount: NDArray[np.int64], size: int) -> IntArray:
    """Σ of `amount` over the comparisons that reached each of `size` thresholds, shape (size,)."""
    order = np.argsort(reach, kind="stable")
    running = np.concatenate([[0], np.cumsum(amount[order], dtype=np.int64)])
    below = np.searchsorted(reach[order], np.arange(size), side="right")
    result: IntArray = running[-1] - running[below]
    return result
