"""Tally a block of float32 scores at many thresholds when most comparisons reach one of them.

Then lists of hits do not pay: every comparison gets its bin, and `matchbound.kernels.booking` books whole
identities.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchbound.kernels.bits import bits_set, hits64, list_bits
from matchbound.kernels.booking import book_identity, count_columns
from matchbound.kernels.compiling import compiled, inlined
from matchbound.kernels.dots import dot32
from matchbound.kernels.grid import MANY, exact_bin, fine_bin
from matchbound.kernels.lookup import look64


@compiled()
def share_of_hits(product: Any, cut: Any) -> float:
    """The share of a block that reaches the cut, from every eighth word of it."""
    n = product.shape[0]
    seen = 0
    hits = 0
    c = 0
    while c + 64 <= n:
        hits += bits_set(hits64(product, c, cut))
        seen += 64
        c += 512
    return hits / seen if seen else 0.0


@compiled()
def bin_dense_block(block: Any, tile: Any, data: Any, grid: Any, books: Any, sums: Any) -> None:
    """Tally a block of products at K thresholds, K < 2¹⁴; its identities are whole. Arguments as of `bin_block`.

    books.bins : int16, shape (≥ (rows of the block + rows of an identity)·(cols + 64) + 64,)
    """
    owner, stop, bins, genuine = data.owner, data.stop, books.bins, sums.genuine
    row0, col0, cols = tile.row0, tile.col0, tile.cols
    n_levels = grid.thresholds.shape[0]
    stride = cols + 64
    end = row0 + tile.rows
    for r in range(row0, end):
        begin = r + 1 - col0 if tile.diagonal and r >= col0 else 0
        _bins_of_row(block, tile, data, grid, books, r, begin)
    g = row0
    while g < end:
        i = owner[g]
        at = (g - row0) * stride
        begin = 0
        if tile.diagonal:
            begin = min(max(stop[i] - col0, 0), cols)
            for q in range(stop[i] - g):
                for c in range(max(g + q + 1 - col0, 0), begin):
                    b = np.int64(bins[at + q * stride + c])
                    if b < n_levels:
                        genuine[i, b] += 1
        book_identity(i, at, begin, tile, data, books, sums)
        g = stop[i]
    if books.by_column:
        count_columns(tile, data, books, sums.impostor)


@inlined
def _bins_of_row(block: Any, tile: Any, data: Any, grid: Any, books: Any, r: int, start: int) -> None:
    """The bins of row r and columns start..cols − 1 of a block, in books.bins.

    Whole words of 64 are looked up. Where a cell of the table does not settle it, the threshold in it does; where a
    product is too close to that, or there are more, sums in float64 do, and at last the score.
    """
    product, values, left, right = block.product, grid.values, data.left, data.right
    at, col0, cols = (r - tile.row0) * block.stride + block.shift, tile.col0, tile.cols
    low, per_cell, table = np.float32(grid.low), np.float32(grid.per_cell), grid.short
    bins, to, listed = books.bins, (r - tile.row0) * (cols + 64), books.found
    n_open = 0
    for c in range(start, cols, 64):
        word = look64(product, table, bins, at + c, to + c, low, per_cell)
        if cols - c < 64:
            word &= (np.uint64(1) << np.uint64(cols - c)) - np.uint64(1)
        n_open = list_bits(word, c, n_open, listed)
    n = 0
    last = grid.thresholds.shape[0] - 1
    for h in range(n_open):
        k = listed[h]
        t = -1 - np.int64(bins[to + k])
        many = t > last
        above = np.float64(product[at + k]) - values[min(t, last)]
        bins[to + k] = t + (above >= 0)
        listed[n] = k | (t << 32)
        n += many or abs(above) <= grid.band
    for h in range(n):
        k, t = listed[h] & 0xFFFFFFFF, listed[h] >> 32
        if t <= last:
            above = np.float64(dot32(left, right, r, col0 + k, left.shape[1])) - values[t]
            bins[to + k] = t + (above >= 0)
            if abs(above) > grid.brief:
                continue
        entry = MANY if t > last else -1 - t
        b = fine_bin(entry, product[at + k], left, r, right, col0 + k, grid)
        if b < 0:
            b = exact_bin(data, r, col0 + k, grid.thresholds)
        bins[to + k] = b
