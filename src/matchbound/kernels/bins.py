"""Tally one block of comparisons at many thresholds: put each hit in a bin between thresholds, and book the bins.

Thresholds are sorted; a comparison in bin b matches at thresholds 0..b−1 and at no other. The tally holds
what each *bin* adds to the sums, so that one running sum at the end gives every threshold. The r-th
comparison of an identity pair to cross (r = 0, 1, …, counted from the strictest threshold) adds 2r + 1 to
Σn², as n² = 1 + 3 + … + (2n − 1).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from matchbound.kernels.booking import COUNT_BIT, WEIGHT_BIT, book_all, unpack
from matchbound.kernels.count import AT_ONCE, COLUMN, expect_genuine, list_block, values_of
from matchbound.kernels.grid import MANY, cell_of, exact_bin, fine_bin

SLOTS = 32
"""Bins of an identity pair that lie side by side; further ones are linked."""


@numba.njit(nogil=True, cache=True)
def bin_block(block: Any, tile: Any, data: Any, grid: Any, books: Any, sums: Any) -> None:
    """Tally a block at K thresholds; Block, Tile, Rows, Grid, Books, Sums.

    sums : column b of impostor is for bin b + 1, of genuine for bin b; moments are what bin b + 1 adds
    books.counts[1] events (i, j, b, comparisons of {i, j} in bin b + 1) are written, from the first on
    """
    books.counts[1] = 0
    if tile.diagonal:
        expect_genuine(tile, data, sums.genuine)
    n = list_block(block, tile, data.screened, books.found)
    n = _find_bins(block, tile, data, grid, books, n)
    if books.carry.shape[0] > 0:
        _book_large(tile, data, books, sums, n)
    else:
        _book(tile, data, books, sums, n)


@numba.njit(nogil=True, cache=True)
def _find_bins(block: Any, tile: Any, data: Any, grid: Any, books: Any, n_listed: int) -> int:
    """Keep the hits that reach a threshold, with their bins in books.level, and count them."""
    found, level, table, values = books.found, books.level, grid.table, grid.values
    low, per_cell, band = np.float32(grid.low), np.float32(grid.per_cell), grid.band
    row0, col0, last = tile.row0, tile.col0, grid.values.shape[0] - 1
    near = np.empty(AT_ONCE, dtype=np.float32)
    n = 0
    for start in range(0, n_listed, AT_ONCE):
        count = min(AT_ONCE, n_listed - start)
        values_of(block, tile, data, found, start, count, near)
        for h in range(count):
            v, hit = near[h], found[start + h]
            b: Any = np.int64(table[cell_of(v, low, per_cell)])
            if b < 0:
                above = np.float64(v) - values[min(-b - 1, last)]
                if b == MANY or abs(above) <= band:
                    r, c = row0 + (hit >> 32), col0 + (hit & COLUMN)
                    b = fine_bin(b, v, data.left, r, data.right, c, grid)
                    if b < 0:
                        b = exact_bin(data, r, c, grid.thresholds)
                else:
                    b = -b - 1 + (above > 0)
            found[n] = hit
            level[n] = b
            n += b > 0
    return n


@numba.njit(nogil=True, cache=True)
def _book(tile: Any, data: Any, books: Any, sums: Any, n: int) -> None:
    """Lay the bins of each identity pair side by side, and book each identity of the rows when it is complete."""
    owner, genuine = data.owner, sums.genuine
    found, level, slots, fill, touched = books.found, books.level, books.slots, books.fill, books.touched
    row0, col0 = tile.row0, tile.col0
    base, current = books.base, owner[row0]
    n_touched = 0
    for h in range(n):
        i, j = owner[row0 + (found[h] >> 32)], owner[col0 + (found[h] & COLUMN)]
        b = level[h]
        if i != current:
            _flush(current, n_touched, data, books, sums)
            n_touched = 0
            current = i
        if i == j:
            _match(genuine, i, b)
            continue
        j -= base
        k = fill[j]
        if k == 0:
            touched[n_touched] = j
            n_touched += 1
        fill[j] = k + 1
        if k < SLOTS:
            slots[j * SLOTS + k] = b
        else:
            books.link[h] = books.head[j]
            books.head[j] = h
    _flush(current, n_touched, data, books, sums)


@numba.njit(nogil=True, cache=True)
def _match(genuine: Any, i: int, b: int) -> None:
    """A genuine comparison that was taken for bin 0 is in bin b."""
    genuine[i, 0] -= 1
    if b < genuine.shape[1]:
        genuine[i, b] += 1


@numba.njit(nogil=True, cache=True)
def _flush(i: int, n_touched: int, data: Any, books: Any, sums: Any) -> None:
    """Book the comparisons of a finished identity i, and forget them."""
    size, slots, fill, touched, packed = data.size, books.slots, books.fill, books.touched, books.packed
    levels, base = packed.shape[0], books.base
    simple = sums.events.shape[0] == 0 and levels <= 2048
    for p in range(n_touched):
        j = touched[p]
        n = fill[j]
        fill[j] = 0
        if simple and n <= SLOTS:
            unit = 1 + (1 << COUNT_BIT) + (size[base + j] << WEIGHT_BIT)
            if n == 1:
                b = slots[j * SLOTS]
                packed[b] += unit
                books.columns[(j * levels) + b] += np.uint16(1)
            else:
                book_all(slots, j * SLOTS, n, packed, unit, books.columns, j * levels)
        else:
            _spread(j, n, books)
            _book_pair(i, base + j, data.size, books.tally, books, sums)
    if simple and n_touched:
        unpack(packed, size[i], sums.impostor[i], sums.moments[0], sums.moments[1])


@numba.njit(nogil=True, cache=True)
def _spread(j: int, n: int, books: Any) -> None:
    """Count the n comparisons with identity j by bin."""
    for k in range(min(n, SLOTS)):
        books.tally[books.slots[j * SLOTS + k] - 1] += 1
    if n > SLOTS:
        h = books.head[j]
        books.head[j] = -1
        while h >= 0:
            books.tally[books.level[h] - 1] += 1
            h = books.link[h]


@numba.njit(nogil=True, cache=True)
def _book_pair(i: int, j: int, size: Any, tally: Any, books: Any, sums: Any) -> None:
    """Book an identity pair whose comparisons were counted by bin, and zero the counts."""
    impostor, moments, events = sums.impostor, sums.moments, sums.events
    n_events, keep = books.counts[1], events.shape[0] > 0
    m = size[i] * size[j]
    crossed = 0
    for b in range(impostor.shape[1] - 1, -1, -1):
        n = tally[b]
        if n:
            tally[b] = 0
            impostor[i, b] += n
            impostor[j, b] += n
            moments[0, b] += n * (n + 2 * crossed)
            moments[1, b] += n * m
            crossed += n
            if keep:
                events[n_events, 0] = i
                events[n_events, 1] = j
                events[n_events, 2] = b
                events[n_events, 3] = n
                n_events += 1
    books.counts[1] = n_events


@numba.njit(nogil=True, cache=True)
def _book_large(tile: Any, data: Any, books: Any, sums: Any, n: int) -> None:
    """The same where an identity has more rows than a block: n_ij by bin is carried from block to block."""
    owner, found, level, carry = data.owner, books.found, books.level, books.carry
    i, base = owner[tile.row0], books.base
    for h in range(n):
        j = owner[tile.col0 + (found[h] & COLUMN)]
        if i == j:
            _match(sums.genuine, i, level[h])
        else:
            carry[j - base, level[h] - 1] += 1
    if tile.last:
        for j in range(carry.shape[0]):
            if base + j != i:
                _book_pair(i, base + j, data.size, carry[j], books, sums)
