"""Tally a block of float32 scores at many thresholds when most comparisons reach one of them.

Then lists of hits do not pay: every comparison gets its bin, and `matchbound.kernels.booking` books whole
identities.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchbound.kernels.bits import bits_set, hits64, list_bits
from matchbound.kernels.booking import book_identity
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

    books.bins : int16, shape (≥ 2·(rows of an identity)·(cols + 64) + 64,)
    """
    owner, stop, bins, genuine = data.owner, data.stop, books.bins, sums.genuine
    row0, col0, cols = tile.row0, tile.col0, tile.cols
    n_levels = grid.thresholds.shape[0]
    stride = cols + 64
    listed = np.empty(cols + 4, dtype=np.int64)
    end = row0 + tile.rows
    g = row0
    while g < end:
        i = owner[g]
        begin = min(max(stop[i] - col0, 0), cols) if tile.diagonal else 0
        for q in range(stop[i] - g):
            start = max(g + q + 1 - col0, 0) if tile.diagonal else 0
            _bins_of_row(block, tile, data, grid, bins[q * stride :], listed, g + q, start)
            for c in range(start, begin):
                b = np.int64(bins[q * stride + c])
                if b < n_levels:
                    genuine[i, b] += 1
        book_identity(i, begin, tile, data, books, sums)
        g = stop[i]


@inlined
def _bins_of_row(
    block: Any, tile: Any, data: Any, grid: Any, bins: Any, open_cases: Any, r: int, start: int
) -> None:  # fmt: skip
    """bins[c] = the bin of row r and column c of a block, c = start..cols − 1.

    open_cases : int64, shape (≥ cols + 4,); scratch
    """
    product, values, left, right = block.product, grid.values, data.left, data.right
    at, col0 = (r - tile.row0) * block.stride + block.shift, tile.col0
    n_open = _first_look(product, at, start, tile.cols, grid, bins, open_cases)
    n = 0
    last = grid.thresholds.shape[0] - 1
    for h in range(n_open):
        k = open_cases[h]
        t = -1 - np.int64(bins[k])
        many = t > last
        above = np.float64(product[at + k]) - values[min(t, last)]
        bins[k] = t + (above >= 0)
        open_cases[n] = k | (t << 32)
        n += many or abs(above) <= grid.band
    for h in range(n):
        k, t = open_cases[h] & 0xFFFFFFFF, open_cases[h] >> 32
        if t <= last:
            above = np.float64(dot32(left, right, r, col0 + k, left.shape[1])) - values[t]
            bins[k] = t + (above >= 0)
            if abs(above) > grid.brief:
                continue
        entry = MANY if t > last else -1 - t
        b = fine_bin(entry, product[at + k], left, r, right, col0 + k, grid)
        if b < 0:
            b = exact_bin(data, r, col0 + k, grid.thresholds)
        bins[k] = b


@inlined
def _first_look(
    product: Any, at: int, start: int, cols: int, grid: Any, bins: Any, open_cases: Any
) -> int:  # fmt: skip
    """bins[c] = the entry of product[at + c] in the table; list the c where it is negative, and count them.

    Whole words of 64 are looked up, and what is behind column cols − 1 is not counted.
    """
    low, per_cell, table = np.float32(grid.low), np.float32(grid.per_cell), grid.short
    n = 0
    c = start
    while c < cols:
        word = look64(product, table, bins, at + c, c, low, per_cell)
        if cols - c < 64:
            word &= (np.uint64(1) << np.uint64(cols - c)) - np.uint64(1)
        n = list_bits(word, c, n, open_cases)
        c += 64
    return n
