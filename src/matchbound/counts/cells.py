"""One road from scored comparisons to a tally: cells of an identity pair and a number of thresholds reached.

A comparison becomes one word, a whole number of its pair and the thresholds it misses. Sorted words have the
comparisons of a pair together, strictest first, and equal ones make a cell: how many of a pair reach exactly so many
thresholds. Of c comparisons that cross together after r of their pair did, n_ij² grows by (r + c)² − r², so that the
second moments at all K thresholds come from one pass. Tables in memory and on disk differ in who sorts their words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.counts.tally import GenuineTally, ImpostorTally, PairTable, Tally, exact_dot
from matchbound.errors import UsageError

# How many cells are looked at together: what is made of them on the way takes some hundred bytes each.
WORK_CELLS = 1 << 20
# Words are counted in a table of all cells where there are at most so many cells for a comparison, and so many in all;
# elsewhere they are sorted. Of 20 million comparisons and 41 million cells, that takes 0.25 s instead of 1.8 s.
DENSE, MOST_DENSE = 4, 1 << 26
# Up to so many thresholds, comparing scores with each of them is four times as fast as a search among them.
FEW_LEVELS = 4


class Cells(NamedTuple):
    """Comparisons by identity pair and thresholds reached; int64 arrays, shape (c,).

    - pair: i·G + j with i ≤ j; i = j for genuine comparisons. Increasing.
    - reach: thresholds reached, decreasing within a pair; a cell may come in parts.
    - times: how many comparisons.
    """

    pair: IntArray
    reach: IntArray
    times: IntArray


def sorted_thresholds(thresholds: FloatArray, distance: bool) -> tuple[FloatArray, FloatArray, IntArray]:
    """Thresholds as given, shape (K',); the distinct ones among oriented scores, ascending; where each of them is."""
    given = np.array(thresholds, dtype=np.float64).reshape(-1)
    if np.isnan(given).any():
        raise UsageError("thresholds holds NaN; a threshold must be a number")
    distinct, place = np.unique(-given if distance else given, return_inverse=True)
    return given, distinct, place.astype(np.int64).reshape(-1)


def check_words(size: int, levels: int) -> int:
    """K + 1, by which pairs are multiplied; a UsageError where words of so many identities would not fit 64 bits."""
    if size * size * (levels + 1) >= 2**63:
        raise UsageError(f"{size:,} identities are tallied at no more than {2**63 // size**2 - 1} thresholds at once")
    return levels + 1


def cells_of_words(words: IntArray, width: int, times: IntArray | None = None) -> Cells:
    """The cells of sorted words ``pair·width + missed``, each of which stands for one comparison or for `times`."""
    if times is None:
        first = np.flatnonzero(np.append(True, words[1:] != words[:-1])) if words.size else words
        words, times = words[first], np.diff(np.append(first, words.size))
    pair, missed = np.divmod(words, width)
    return Cells(pair, width - 1 - missed, times)


def reached(grid: FloatArray, similarity: FloatArray) -> IntArray:
    """How many of the increasing thresholds each similarity reaches, shape (n,)."""
    if grid.size > FEW_LEVELS:
        return np.searchsorted(grid, similarity, side="right").astype(np.int64, copy=False)
    found = np.zeros(similarity.size, dtype=np.int64)
    for threshold in grid:
        found += similarity >= threshold
    return found


def words_of(pair: IntArray, similarity: FloatArray, grid: FloatArray) -> IntArray:
    """The words of comparisons of pairs i·G + j, i ≤ j, at increasing thresholds; `pair` is overwritten."""
    pair *= grid.size + 1
    pair += grid.size - reached(grid, similarity)
    return pair


def is_dense(size: int, levels: int, total: int) -> bool:
    """Whether so many comparisons are counted in a table of all cells, instead of sorted."""
    return size * size * (levels + 1) <= min(MOST_DENSE, DENSE * total)


def cells_of_chunks(chunks: Iterable[IntArray], size: int, levels: int, total: int) -> Iterator[Cells]:
    """The cells of `total` words in any order, which come some at a time."""
    width = check_words(size, levels)
    if is_dense(size, levels, total):
        table = np.zeros(size * size * width, dtype=np.int64)
        for words in chunks:
            table += np.bincount(words, minlength=table.size)
        for start in range(0, table.size, WORK_CELLS):
            part = table[start : start + WORK_CELLS]
            filled = np.flatnonzero(part)
            yield cells_of_words(filled + start, width, part[filled])
        return
    words, stop = np.empty(total, dtype=np.int64), 0
    for chunk in chunks:
        words[stop : stop + chunk.size] = chunk
        stop += chunk.size
    words[:stop].sort()
    for start in range(0, stop, WORK_CELLS):
        yield cells_of_words(words[start : min(start + WORK_CELLS, stop)], width)


def cells_of_rows(a: IntArray, b: IntArray, similarity: FloatArray, grid: FloatArray, size: int) -> Iterator[Cells]:
    """Comparisons as cells, in order, some at a time; `grid` are the K distinct thresholds, increasing."""
    check_words(size, grid.size)
    at_once = MOST_DENSE // 4 if is_dense(size, grid.size, a.size) else WORK_CELLS

    def chunks() -> Iterator[IntArray]:
        for start in range(0, a.size, at_once):
            rows = slice(start, start + at_once)
            pair = np.minimum(a[rows], b[rows]) * np.int64(size) + np.maximum(a[rows], b[rows])
            yield words_of(pair, similarity[rows], grid)

    return cells_of_chunks(chunks(), size, grid.size, int(a.size))


def tally_of_rows(
    a: IntArray,
    b: IntArray,
    similarity: FloatArray,
    thresholds: FloatArray,
    identities: LabelArray,
    distance: bool,
    *,
    pairs: bool = False,
    compared: bool = False,
) -> Tally:
    """The tally of comparisons in memory; arguments as of `cells_of_rows` and `tally_of_cells`."""
    given, grid, place = sorted_thresholds(thresholds, distance)
    cells = cells_of_rows(a, b, similarity, grid, int(identities.size))
    return tally_of_cells(cells, identities, given, place, distance, pairs=pairs, compared=compared)


def tally_of_cells(
    chunks: Iterable[Cells],
    identities: LabelArray,
    thresholds: FloatArray,
    place: IntArray,
    distance: bool,
    *,
    pairs: bool = False,
    compared: bool = False,
) -> Tally:
    """The tally of comparisons that were sorted into cells.

    - thresholds, shape (K,): as the user wrote them.
    - place, shape (K,): which of the distinct ones, from lax to strict, each of them is.
    - pairs, compared: whether to keep n_ij at each threshold and m_ij; whether to keep m_ij.
    """
    levels = int(place.max(initial=-1)) + 1
    check_words(int(identities.size), levels)
    sums = _Sums(int(identities.size), levels, compared or pairs, pairs)
    for cells in whole_pairs(chunks):
        sums.add(cells)

    def at(values: IntArray) -> IntArray:
        in_order = np.array_equal(place, np.arange(levels))
        return values if in_order else values[place]

    erred = [_table(parts, sums.size) for parts in sums.erred]
    for each in (sums.tables, sums.by_level[:, :, None]):  # of exactly so many thresholds → of at least so many
        np.cumsum(each[:, ::-1], axis=1, out=each[:, ::-1])
    (genuine, impostor), (sum_nn, sum_nm) = sums.tables, sums.by_level[:, 1:]
    moments = 2 * sums.squares, at(2 * sum_nm), at(2 * sum_nn)
    m_ij = _table(sums.compared, sums.size) if compared or pairs else None
    n_ij = tuple(erred[k] for k in place.tolist()) if pairs else None
    sizes = np.array(sorted(sums.sizes.items()), dtype=np.int64).reshape(-1, 2).T
    within = GenuineTally(genuine[0].copy(), at(genuine[0] - genuine[1:]))
    between = ImpostorTally(impostor[0].copy(), at(impostor[1:]), *moments, m_ij, n_ij, sizes)
    return Tally(identities, thresholds, distance, within, between)


def whole_pairs(chunks: Iterable[Cells]) -> Iterator[Cells]:
    """The same cells, cut between identity pairs."""
    rest: Cells | None = None
    for chunk in chunks:
        joined = chunk if rest is None else Cells(*(np.concatenate(both) for both in zip(rest, chunk, strict=True)))
        cut = int(np.searchsorted(joined.pair, joined.pair[-1])) if joined.pair.size else 0
        if cut:
            yield Cells(*(part[:cut] for part in joined))
        rest = Cells(*(part[cut:] for part in joined))
    if rest is not None and rest.pair.size:
        yield rest


class _Sums:
    """Running sums over cells.

    - tables, shape (2, K + 1, G): genuine and impostor comparisons that reach 0, 1, …, K thresholds, by identity.
    - by_level, shape (2, K + 1): what reaching so many thresholds adds to Σn² and Σnm over unordered pairs.
    """

    def __init__(self, size: int, levels: int, compared: bool, erred: bool) -> None:
        self.size = size
        self.squares = 0
        self.sizes: Counter[int] = Counter()
        self.compared: list[tuple[IntArray, IntArray]] = []
        self.erred: list[list[tuple[IntArray, IntArray]]] = [[] for _ in range(levels if erred else 0)]
        self._compared = compared
        self.tables = np.zeros((2, levels + 1, size), dtype=np.int64)
        self.by_level = np.zeros((2, levels + 1), dtype=np.int64)

    def add(self, cells: Cells) -> None:
        """Count cells, whole pairs of them."""
        first, second = np.divmod(cells.pair, self.size)
        same = first == second
        self._book(0, first[same], cells.reach[same], cells.times[same])
        other = np.flatnonzero(~same)
        if not other.size:
            return
        pair, reach, count, first, second = (part[other] for part in (*cells, first, second))
        self._book(1, first, reach, count)
        self._book(1, second, reach, count)
        starts = np.flatnonzero(np.append(True, pair[1:] != pair[:-1]))
        made = np.add.reduceat(count, starts)
        self.squares += exact_dot(made, made)
        self.sizes.update(dict(zip(*(part.tolist() for part in np.unique(made, return_counts=True)), strict=True)))
        owner = np.repeat(np.arange(starts.size), np.diff(np.append(starts, pair.size)))
        after = np.cumsum(count)
        before = after - count
        before -= before[starts][owner]
        np.add.at(self.by_level[0], reach, count * (2 * before + count))
        np.add.at(self.by_level[1], reach, count * made[owner])
        if self._compared:
            self.compared.append((pair[starts], made))
        for level, kept in enumerate(self.erred):
            hit = reach > level
            if not hit.any():
                break
            pair, reach, count = pair[hit], reach[hit], count[hit]
            starts = np.flatnonzero(np.append(True, pair[1:] != pair[:-1]))
            kept.append((pair[starts], np.add.reduceat(count, starts)))

    def _book(self, side: int, owner: IntArray, reach: IntArray, count: IntArray) -> None:
        np.add.at(self.tables[side].reshape(-1), reach * np.int64(self.size) + owner, count)


def _table(parts: list[tuple[IntArray, IntArray]], size: int) -> PairTable:
    """Pairs and their counts, in order, as a table."""
    none = np.empty(0, dtype=np.int64)
    pair, count = (np.concatenate([none, *(part[at] for part in parts)]) for at in (0, 1))
    return PairTable(pair // max(size, 1), pair % max(size, 1), count)
