"""Tally one block of comparisons at many thresholds: put each hit in a bin between thresholds, and book the bins.

Thresholds are sorted; a comparison in bin b matches at thresholds 0..b−1 and at no other. The tally holds
what each *bin* adds to the sums, so that one running sum at the end gives every threshold. The r-th
comparison of an identity pair to cross (r = 0, 1, …, counted from the strictest threshold) adds 2r + 1 to
Σn², as n² = 1 + 3 + … + (2n − 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchbound.kernels.blocks import AT_ONCE
from matchbound.kernels.compiling import compiled, inlined
from matchbound.kernels.count import COLUMN, expect_genuine, list_block, values_of, write_event
from matchbound.kernels.dense import FEW_ROWS
from matchbound.kernels.grid import cell_of, near_bin


@compiled()
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


@inlined
def _find_bins(block: Any, tile: Any, data: Any, grid: Any, books: Any, n_listed: int) -> int:
    """Keep the hits that reach a threshold, with their bins in books.level, and count them."""
    found, level, table, values, last = books.found, books.level, grid.table, grid.values, grid.thresholds.shape[0] - 1
    near, low, per_cell, band = books.values, np.float32(grid.low), np.float32(grid.per_cell), grid.band
    n = 0
    for start in range(0, n_listed, AT_ONCE):
        count = min(AT_ONCE, n_listed - start)
        values_of(block, tile, data, found, start, count, near)
        for h in range(count):
            v, hit = near[h], found[start + h]
            b: Any = np.int64(table[cell_of(v, low, per_cell)])
            if b < 0:
                t = -1 - b
                above = np.float64(v) - values[min(t, last)]
                b = t + (above >= 0.0)
                if t > last or abs(above) <= band:
                    b = near_bin(t, data, tile.row0 + (hit >> 32), tile.col0 + (hit & COLUMN), grid)
            found[n] = hit
            level[n] = b
            n += b > 0
    return n


@inlined
def _book(tile: Any, data: Any, books: Any, sums: Any, n: int) -> None:
    """Book the hits of each identity of the rows; they come row by row."""
    owner, found = data.owner, books.found
    start = 0
    for h in range(n + 1):
        if h == n or owner[tile.row0 + (found[h] >> 32)] != owner[tile.row0 + (found[start] >> 32)]:
            if h > start:
                i = owner[tile.row0 + (found[start] >> 32)]
                _sort_by_bin(start, h, books, sums.impostor[i])
                _book_identity(start, h, tile, data, books, sums)
            start = h


@inlined
def _sort_by_bin(start: int, end: int, books: Any, matched: Any) -> None:
    """books.order[start..end − 1] = column·2³² + bin of the hits, from the strictest bin on.

    matched : int64, shape (K,). Those of bin b + 1 are added to matched[b].
    """
    found, level, order, count = books.found, books.level, books.order, books.tally
    for h in range(start, end):
        count[level[h]] += np.int32(1)
    at = start
    for b in range(matched.shape[0], 0, -1):
        here = count[b]
        matched[b - 1] += here
        count[b] = np.int32(at)
        at += here
    for h in range(start, end):
        b = level[h]
        order[count[b]] = ((found[h] & COLUMN) << 32) + b
        count[b] += np.int32(1)
    count[:] = 0


@inlined
def _book_identity(start: int, end: int, tile: Any, data: Any, books: Any, sums: Any) -> None:
    """Book the comparisons of an identity, the strictest first: the (r + 1)-th of a pair adds 2r + 1 to Σn²."""
    owner, size, order, crossed = data.owner, data.size, books.order, books.seen
    columns, base, levels = books.columns, books.base, books.packed.shape[0]
    impostor, squares, products = sums.impostor, sums.moments[0], sums.moments[1]
    i = owner[tile.row0 + (books.found[start] >> 32)]
    for h in range(start, end):
        j, b = owner[tile.col0 + (order[h] >> 32)], order[h] & COLUMN
        if j == i:
            _match(sums.genuine, i, b)
            impostor[i, b - 1] -= 1
            continue
        r = crossed[j - base]
        crossed[j - base] = r + 1
        squares[b - 1] += 2 * r + 1
        products[b - 1] += size[i] * size[j]
        if size[j] <= FEW_ROWS:
            columns[(j - base) * levels + b] += np.uint16(1)
        else:
            impostor[j, b - 1] += 1
    if sums.events.shape[0] > 0:
        _keep(i, start, end, tile, data, books, sums.events)
    for h in range(start, end):
        crossed[owner[tile.col0 + (order[h] >> 32)] - base] = 0


@inlined
def _keep(i: int, start: int, end: int, tile: Any, data: Any, books: Any, events: Any) -> None:
    """Write (i, j, b, comparisons of {i, j} in bin b + 1) of the hits of an identity, sorted by bin."""
    owner, order, last = data.owner, books.order, books.last
    n = books.counts[1]
    for h in range(start, end):
        j, b = owner[tile.col0 + (order[h] >> 32)], order[h] & COLUMN
        if j == i:
            continue
        at = last[j - books.base]
        if at >= 0 and events[at, 2] == b - 1:
            events[at, 3] += 1
            continue
        last[j - books.base] = n
        n = write_event(events, n, i, j, b - 1, 1)
    for h in range(start, end):
        last[max(owner[tile.col0 + (order[h] >> 32)] - books.base, 0)] = -1
    books.counts[1] = n


@inlined
def _match(genuine: Any, i: int, b: int) -> None:
    """A genuine comparison that was taken for bin 0 is in bin b."""
    genuine[i, 0] -= 1
    if b < genuine.shape[1]:
        genuine[i, b] += 1


@inlined
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
                n_events = write_event(events, n_events, i, j, b, n)
    books.counts[1] = n_events


@inlined
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
