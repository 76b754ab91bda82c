"""Tally a table of scored comparisons at one or many thresholds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting import pair_words
from matchbound.counting.pair_words import PairRows, PairSums, WordBits, Words
from matchbound.counts.tally import GenuineTally, ImpostorTally, PairTable, Tally
from matchbound.data.comparisons import Comparisons
from matchbound.errors import UsageError

DENSE_ROWS, DENSE_CELLS, MOST_CELLS = 2_000_000, 4, 20_000_000
"""Up to so many comparisons n_ij is counted in a dense table, of so many cells per comparison and in all."""
MANY_ROWS = 1_000_000
"""More comparisons than this are counted by compiled kernels, and thresholds along their curve by themselves, without
the sums at every step."""


def tally_comparisons(
    source: Comparisons, thresholds: FloatArray, *, pairs: bool = True, compared: bool = True
) -> Tally:
    """Count errors by identity and by identity pair at each threshold.

    Where a table is small and its identity pairs have several comparisons each, a dense table holds n_ij by threshold.
    Elsewhere rows are looked at some at a time. An impostor comparison becomes one 64-bit word, of its identity pair
    and the thresholds it misses; one sort of the words gives the second moments at all K thresholds (`pair_words`).
    Beside the tally itself, counting takes the memory of the words: eight bytes per impostor comparison.

    Parameters
    ----------
    source
        The comparisons.
    thresholds : float64 array, shape (K,)
        In any order, in the units of the scores.
    pairs
        Keep n_ij at each threshold (and m_ij), as bootstraps that draw identities need.
    compared
        Keep m_ij in any case.
    """
    grid, place = np.unique(-thresholds if source.distance else thresholds, return_inverse=True)
    place = place.reshape(-1)
    tally = _counted_densely(source, grid, pairs)
    if tally is None:
        bits = WordBits.of(source.n_identities)
        starts = range(0, max(grid.size, 1), bits.most)
        tally = at_all([_counted(source, grid[at : at + bits.most], bits, pairs, compared or pairs) for at in starts])
    impostor, genuine = tally.impostor, tally.genuine
    in_order = np.array_equal(place, np.arange(grid.size))
    return replace(
        tally,
        thresholds=thresholds,
        genuine=genuine if in_order else GenuineTally(genuine.comparisons, genuine.errors[place]),
        impostor=impostor
        if in_order
        else replace(
            impostor,
            errors=impostor.errors[place],
            sum_nm=impostor.sum_nm[place],
            sum_nn=impostor.sum_nn[place],
            erred=None if impostor.erred is None else tuple(impostor.erred[k] for k in place),
        ),
    )


def tally_rows(source: Comparisons, thresholds: FloatArray, marked: IntArray) -> Tally:
    """Count many comparisons at many thresholds in one pass, with the sums of rows of n_ij and m_ij at some of them.

    Parameters
    ----------
    thresholds : float64 array, shape (K,)
        In any order, in the units of the scores.
    marked : int64 array, shape (L,)
        Positions of the thresholds at which rows are summed (``impostor.rows``, in this order).
    """
    grid, place = np.unique(-thresholds if source.distance else thresholds, return_inverse=True)
    place = place.reshape(-1)
    bits = WordBits.of(source.n_identities)
    if grid.size > bits.most:
        raise UsageError(
            f"{source.n_identities:,} identities are tallied at no more than {bits.most} thresholds at once"
        )
    genuine, impostor, words = _by_identity(source, grid, bits)
    words.sort()
    sums = PairRows.of(bits, impostor, place[marked])
    sums.add(words)
    made = Tally(
        identities=source.identities,
        thresholds=grid,
        distance=source.distance,
        instances=source.instance_counts,
        genuine=_genuine(genuine),
        impostor=ImpostorTally(impostor[0], impostor[1:], 2 * sums.squares, 2 * sums.sum_nm, 2 * sums.sum_nn),
    ).take(place)
    return replace(made, thresholds=thresholds, impostor=replace(made.impostor, rows=sums.rows()))


def _counted_densely(source: Comparisons, grid: FloatArray, pairs: bool) -> Tally | None:
    """The tally at thresholds that rise in similarity, from n_ij at each of them; None where that is no gain."""
    size, cells = source.n_identities, min(DENSE_CELLS * len(source), MOST_CELLS)
    if len(source) > DENSE_ROWS or size**2 > cells:
        return None
    reach = np.searchsorted(grid, -source.score if source.distance else source.score, side="right")
    impostors = np.flatnonzero(~source.genuine)
    a, b = source.a[impostors], source.b[impostors]
    keys = np.minimum(a, b) * np.int64(size) + np.maximum(a, b)
    made = np.bincount(keys, minlength=size**2)
    present = np.flatnonzero(made)
    if present.size * (grid.size + 1) > cells:
        return None
    compared = PairTable(present // size, present % size, made[present].astype(np.int64))
    number = (np.cumsum(made > 0) - 1)[keys]
    n = _reached(number, reach[impostors], present.size, grid.size)[1:]
    own = np.flatnonzero(source.genuine)
    g = _reached(source.a[own], reach[own], size, grid.size)
    tables = []
    for row in n if pairs else ():
        erring = np.flatnonzero(row)
        tables.append(PairTable(compared.first[erring], compared.second[erring], row[erring]))

    def by_identity(counts: IntArray) -> IntArray:
        one = np.bincount(compared.first, counts, size)
        return (one + np.bincount(compared.second, counts, size)).astype(np.int64)

    times = zip(*np.unique(compared.count, return_counts=True), strict=True)
    return Tally(
        identities=source.identities,
        thresholds=grid,
        distance=source.distance,
        instances=source.instance_counts,
        genuine=GenuineTally(g[0].copy(), g[0] - g[1:]),
        impostor=ImpostorTally(
            comparisons=by_identity(compared.count),
            errors=np.array([by_identity(row) for row in n], dtype=np.int64).reshape(grid.size, size),
            sum_mm=2 * sum(int(m) ** 2 * int(k) for m, k in times),
            sum_nm=2 * (n @ compared.count),
            sum_nn=2 * np.einsum("kp,kp->k", n, n),
            compared=compared,
            erred=tuple(tables) if pairs else None,
        ),
    )


def _reached(owner: IntArray, reach: IntArray, owners: int, size: int) -> IntArray:
    """How many comparisons of each owner reached at least 0, 1, …, `size` thresholds, shape (size + 1, owners)."""
    table = np.bincount(reach * np.int64(owners) + owner, minlength=owners * (size + 1)).reshape(size + 1, owners)
    return np.cumsum(table[::-1], axis=0)[::-1]


def _counted(source: Comparisons, grid: FloatArray, bits: WordBits, pairs: bool, compared: bool) -> Tally:
    """The tally at thresholds that rise in similarity, so few that a word has bits for them."""
    genuine, impostor, words = _by_identity(source, grid, bits)
    words.sort()
    sums = PairSums(bits, grid.size, compared=compared, erred=pairs)
    sums.add(words)
    del words
    return Tally(
        identities=source.identities,
        thresholds=grid,
        distance=source.distance,
        instances=source.instance_counts,
        genuine=_genuine(genuine),
        impostor=ImpostorTally(
            impostor[0],
            impostor[1:],
            2 * sums.squares,
            2 * sums.sum_nm,
            2 * sums.sum_nn,
            PairTable(*sums.compared()) if compared else None,
            tuple(PairTable(*sums.erred(level)) for level in range(grid.size)) if pairs else None,
        ),
    )


def _genuine(reached: IntArray) -> GenuineTally:
    """The genuine side, of those that reached 0, 1, …, K thresholds, shape (K + 1, G), in the same memory."""
    np.subtract(reached[0], reached[1:], out=reached[1:])
    return GenuineTally(reached[0], reached[1:])


def _by_identity(source: Comparisons, grid: FloatArray, bits: WordBits) -> tuple[IntArray, IntArray, Words]:
    """Comparisons of each identity that reached at least 0, 1, …, K thresholds, genuine and impostor; and the words.

    Shapes (K + 1, G), (K + 1, G) and (impostor comparisons,).
    """
    genuine, impostor = (np.zeros((grid.size + 1, source.n_identities), dtype=np.int64) for _ in range(2))
    words: Words = np.empty(len(source) - int(np.count_nonzero(source.genuine)), dtype=np.uint64)
    if len(source) > MANY_ROWS:
        from matchbound.kernels.rows import book_rows

        sign = -1.0 if source.distance else 1.0
        book_rows(source.a, source.b, source.score, sign, grid, (bits.code, bits.bins), (genuine, impostor), words)
    else:
        _book_in_parts(source, grid, bits, genuine, impostor, words)
    for table in (genuine, impostor):
        np.cumsum(table[::-1], axis=0, out=table[::-1])  # in place
    return genuine, impostor, words


def _book_in_parts(
    source: Comparisons, grid: FloatArray, bits: WordBits, genuine: IntArray, impostor: IntArray, words: Words
) -> None:
    """Count comparisons that reached exactly 0, 1, …, K thresholds, and write the words."""
    filled = 0
    for start in range(0, len(source), pair_words.WORK_ROWS):
        rows = slice(start, start + pair_words.WORK_ROWS)
        a, b, score = source.a[rows], source.b[rows], source.score[rows]
        reach = np.searchsorted(grid, -score if source.distance else score, side="right")
        same = source.genuine[rows]
        _count_in(genuine, a[same], reach[same])
        a, b, reach = a[~same], b[~same], reach[~same]
        _count_in(impostor, a, reach)
        _count_in(impostor, b, reach)
        words[filled : filled + a.size] = bits.words(a, b, grid.size - reach)
        filled += a.size


def _count_in(table: IntArray, owner: IntArray, reach: IntArray) -> None:
    """Count comparisons that reached so many thresholds, at the identities that own them."""
    at = reach * np.int64(table.shape[1]) + owner
    if table.size <= 4 * at.size:
        table.reshape(-1)[:] += np.bincount(at, minlength=table.size)
    else:
        np.add.at(table.reshape(-1), at, 1)


def at_all(parts: list[Tally]) -> Tally:
    """Tallies of the same comparisons at different thresholds, as one."""
    first = parts[0]
    if len(parts) == 1:
        return first
    erred = [part.impostor.erred for part in parts]
    return replace(
        first,
        thresholds=np.concatenate([part.thresholds for part in parts]),
        genuine=replace(first.genuine, errors=np.concatenate([part.genuine.errors for part in parts])),
        impostor=replace(
            first.impostor,
            errors=np.concatenate([part.impostor.errors for part in parts]),
            sum_nm=np.concatenate([part.impostor.sum_nm for part in parts]),
            sum_nn=np.concatenate([part.impostor.sum_nn for part in parts]),
            erred=None if erred[0] is None else tuple(table for tables in erred for table in tables or ()),
        ),
    )
