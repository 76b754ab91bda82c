"""Tally a block of float32 scores at many thresholds when most comparisons reach one of them.

Then sorting hits does not pay: comparisons get their bins from the table of a grid, and identities are booked whole.
Three sums are kept by bin for the identity of the rows, side by side in one word: what its comparisons add to Σn², how
many they are, and the rows of the identities they are with. What each comparison of an identity pair adds to Σn² comes
from comparing its bin with the others of the pair, 32 at once; the bins of larger pairs are counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types

from matchbound.kernels.bits import bits_set, hits64, list_bits, lowest_bit
from matchbound.kernels.compiling import compiled, inlined
from matchbound.kernels.emit import (
    BIT,
    INDEX,
    SHORT,
    SINGLE,
    WHOLE,
    cgutils,
    emitted,
    every,
    load,
    number,
    place,
    splat,
    store,
)
from matchbound.kernels.exact import dot64
from matchbound.kernels.grid import CELLS, near_bin

LANES = 16
# Comparisons of an identity pair that are booked between two looks whether there are more.
AT_ONCE = 2


def _entries(builder: Any, table: Any, cells: Any) -> Any:
    """table[cells], LANES of them, as int16; one by one, which is no slower than AVX-512's instruction for it."""
    found = ir.Constant(ir.VectorType(SHORT, LANES), ir.Undefined)
    for lane in range(LANES):
        which = ir.Constant(WHOLE, lane)
        cell = builder.zext(builder.extract_element(cells, which), INDEX)
        found = builder.insert_element(found, load(builder, table, cell, SHORT), which)
    return found


@emitted(
    lambda product, table, bins, at, to, low, per_cell: types.uint64(
        product, table, bins, types.int64, types.int64, types.float32, types.float32
    )
)
def look64(
    builder: Any, _: Any, product: Any, table: Any, bins: Any, at: Any, to: Any, low: Any, per_cell: Any
) -> Any:  # fmt: skip
    """bins[to + k] = table[cell_of(product[at + k])], k = 0..63; bit k of the answer says whether it is negative.

    product : float32; table : int16, with one entry more than cells; bins : int16; all flat, nothing is checked.
    """
    floats, shorts = ir.VectorType(SINGLE, LANES), ir.VectorType(SHORT, LANES)
    least, most, one = (every(floats, value) for value in (-1.0, float(CELLS), 1.0))
    lows, scales = splat(builder, low, floats), splat(builder, per_cell, floats)
    negative = number(0)
    for k in range(0, 64, LANES):
        x = builder.fmul(builder.fsub(load(builder, product, builder.add(at, number(k)), floats), lows), scales)
        x = builder.select(builder.fcmp_ordered(">", x, least), x, least)
        x = builder.select(builder.fcmp_ordered("<", x, most), x, most)
        cells = builder.fptosi(builder.fadd(x, one), ir.VectorType(WHOLE, LANES))
        found = _entries(builder, table, cells)
        store(builder, found, bins, builder.add(to, number(k)))
        below = builder.icmp_signed("<", found, every(shorts, 0))
        part = builder.zext(builder.bitcast(below, ir.IntType(LANES)), INDEX)
        negative = builder.or_(negative, builder.shl(part, number(k)))
    return negative


MOST_COLS = 1024
# Of identities with at most so many rows, comparisons with the rows of a task fit 16 bits.
FEW_ROWS = 63
# A word of `packed` holds three sums over the comparisons of one identity with up to MOST_COLS rows, in pairs of
# at most 32 comparisons: Σn² ≤ 32²·MOST_COLS = 2²⁰, n ≤ 32·MOST_COLS = 2¹⁵ and ΣnM_j ≤ 32·MOST_COLS = 2¹⁵.
COUNT_BIT = 26
WEIGHT_BIT = 45
BIN = 0x7FFF


@emitted(
    lambda bins, at, n, packed, unit, columns, offset: types.void(
        bins, types.int64, types.int64, packed, types.int64, columns, types.int64
    )
)
def book32(
    builder: Any, _: Any, bins: Any, at: Any, n: Any, packed: Any, unit: Any, columns: Any, offset: Any
) -> None:  # fmt: skip
    """Book the n <= 32 comparisons of an identity pair with bins[at..]: all but those in bin 0.

    packed[b] += unit + 2·#{q: bin q is stricter than b, or the same and behind it} and columns[offset + b] += 1, b the
    bin of each. Bins are below 2048, so that 32·bin + lane fits 16 bits: these keys are all different, in the order of
    the bins.

    bins : int16; packed : int64; columns : uint16; all flat, 32 bins readable from `at` on, nothing is checked.
    """
    vector, word = ir.VectorType(SHORT, 32), WHOLE
    row = place(builder, bins, at, SHORT)
    zeros, one, none = every(vector, 0), number(1), ir.Constant(word, 0)
    asked = builder.trunc(builder.sub(builder.shl(one, n), one), word)
    block = builder.select(
        builder.bitcast(asked, ir.VectorType(BIT, 32)), load(builder, row, number(0), vector), zeros
    )  # fmt: skip
    keys = builder.or_(builder.shl(block, every(vector, 5)), ir.Constant(vector, list(range(32))))
    hits = builder.bitcast(builder.icmp_signed(">", block, zeros), word)
    left = cgutils.alloca_once_value(builder, hits)
    head, body, after = (builder.append_basic_block(name) for name in ("hits", "hit", "booked"))
    builder.branch(head)
    builder.position_at_end(head)
    bits = builder.load(left)
    builder.cbranch(builder.icmp_unsigned("!=", bits, none), body, after)
    builder.position_at_end(body)
    for _ in range(AT_ONCE):
        # Where no hit is left, this books one in bin 0, which does not count.
        lane = builder.zext(builder.cttz(bits, ir.Constant(BIT, 0)), INDEX)
        b = builder.zext(load(builder, row, lane, SHORT), INDEX)
        b = builder.select(builder.icmp_unsigned("!=", bits, none), b, number(0))
        key = builder.trunc(builder.or_(builder.shl(b, number(5)), lane), SHORT)
        above = builder.bitcast(builder.icmp_unsigned(">", keys, splat(builder, key, vector)), word)
        # Lanes that are not asked for, or in bin 0, have keys below 32 and are never above a hit.
        twice = builder.shl(builder.zext(builder.ctpop(above), INDEX), one)
        store(builder, builder.add(load(builder, packed, b, INDEX), builder.add(unit, twice)), packed, b)
        cell = builder.add(offset, b)
        store(builder, builder.add(load(builder, columns, cell, SHORT), ir.Constant(SHORT, 1)), columns, cell)
        bits = builder.and_(bits, builder.sub(bits, ir.Constant(word, 1)))
    builder.store(bits, left)
    builder.branch(head)
    builder.position_at_end(after)


@emitted(lambda bins, source, target: types.void(bins, types.int64, types.int64))
def _copy8(builder: Any, _: Any, bins: Any, source: Any, target: Any) -> None:
    """bins[target + q] = bins[source + q], q = 0..7; `bins` is a flat int16 array."""
    store(builder, load(builder, bins, source, ir.VectorType(SHORT, 8)), bins, target)


@emitted(lambda tally, at: types.uint64(tally, types.int64))
def _filled64(builder: Any, _: Any, tally: Any, at: Any) -> Any:
    """Bit k of the answer says whether tally[at + k] is not 0, k = 0..63; `tally` is a flat int32 array."""
    vector = ir.VectorType(WHOLE, 64)
    return builder.bitcast(builder.icmp_signed("!=", load(builder, tally, at, vector), every(vector, 0)), INDEX)


@inlined
def _book_identity(i: int, begin: int, tile: Any, data: Any, books: Any, sums: Any) -> None:
    """Book the comparisons of an identity of the rows with the identities of the columns from `begin` on."""
    sizes, bins, packed, columns, impostor = data.size, books.bins, books.packed, books.columns, sums.impostor
    cols, size, levels = tile.cols, data.size[i], packed.shape[0]
    side = begin
    if size > 1:
        side = size * (cols + 64)
        _lay_side_by_side(size, begin, side, tile, data, bins)
    c = begin
    j = data.owner[tile.col0 + begin] if begin < cols else 0
    while c < cols:
        width = sizes[j]
        n = width * size
        unit = 1 + (1 << COUNT_BIT) + (width << WEIGHT_BIT)
        offset = (j - books.base) * levels
        if n == 1:
            b = bins[side] & BIN
            packed[b] += unit
            columns[offset + b] += np.uint16(1)
        elif n <= 32 and levels <= 2048:
            book32(bins, side, n, packed, unit, columns, offset)
        else:
            _book_many(i, j, side, n, data, books, sums)
        side += n
        c += width
        j += 1
    unpack(packed, size, impostor[i], sums.moments[0], sums.moments[1])


@inlined
def _book_many(i: int, j: int, side: int, n: int, data: Any, books: Any, sums: Any) -> None:
    """Book the n comparisons of an identity pair by counting them by bin, and looking at bins 64 at a time."""
    impostor, moments, tally, bins = sums.impostor, sums.moments, books.tally, books.bins
    m = data.size[i] * data.size[j]
    for p in range(side, side + n):
        tally[bins[p] & BIN] += np.int32(1)
    stricter = n - np.int64(tally[0])
    tally[0] = 0
    for first in range(0, books.packed.shape[0], 64):
        word = _filled64(tally, first)
        while word != np.uint64(0):
            b = first + lowest_bit(word)
            word &= word - np.uint64(1)
            k = np.int64(tally[b])
            tally[b] = 0
            stricter -= k
            impostor[i, b - 1] += k
            impostor[j, b - 1] += k
            moments[0, b - 1] += k * (k + 2 * stricter)
            moments[1, b - 1] += k * m


@inlined
def unpack(packed: Any, size: int, matched: Any, squares: Any, products: Any) -> None:
    """Add the three sums of each bin of an identity to where they belong, and forget them."""
    packed[0] = 0
    words = packed[1:]
    for b in range(matched.shape[0]):
        word = words[b]
        words[b] = 0
        matched[b] += (word >> COUNT_BIT) & ((1 << (WEIGHT_BIT - COUNT_BIT)) - 1)
        squares[b] += word & ((1 << COUNT_BIT) - 1)
        products[b] += (word >> WEIGHT_BIT) * size


@inlined
def _lay_side_by_side(size: int, begin: int, to: int, tile: Any, data: Any, bins: Any) -> None:
    """Copy the bins of an identity to bins[to..], those of each identity of the columns together."""
    sizes, cols = data.size, tile.cols
    stride = cols + 64
    c = begin
    j = data.owner[tile.col0 + begin] if begin < cols else 0
    while c < cols:
        width = sizes[j]
        source = c
        for _ in range(size):
            _copy8(bins, source, to)
            for k in range(8, width, 8):
                _copy8(bins, source + k, to + k)
            source += stride
            to += width
        c += width
        j += 1


@compiled()
def add_columns(columns: Any, base: int, n_columns: int, impostor: Any) -> None:
    """Book what a task counted for the n_columns identities from `base` on, and forget it."""
    stride = impostor.shape[1] + 1
    for j in range(n_columns):
        matched, counted = impostor[base + j], columns[j * stride + 1 : (j + 1) * stride]
        for b in range(matched.shape[0]):
            matched[b] += counted[b]
            counted[b] = 0
        columns[j * stride] = 0


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
    g = row0
    while g < end:
        i = owner[g]
        for q in range(stop[i] - g):
            begin = g + q + 1 - col0 if tile.diagonal and g + q >= col0 else 0
            _bins_of_row(block, tile, data, grid, books, g + q, begin, q * stride)
        begin = 0
        if tile.diagonal:
            begin = min(max(stop[i] - col0, 0), cols)
            for q in range(stop[i] - g):
                for c in range(max(g + q + 1 - col0, 0), begin):
                    b = np.int64(bins[q * stride + c])
                    if b < n_levels:
                        genuine[i, b] += 1
        _book_identity(i, begin, tile, data, books, sums)
        g = stop[i]


@inlined
def _bins_of_row(block: Any, tile: Any, data: Any, grid: Any, books: Any, r: int, start: int, to: int) -> None:
    """The bins of row r and columns start..cols − 1 of a block, in books.bins[to..].

    Whole words of 64 are looked up. Where a cell of the table does not settle it, the threshold in it does; where a
    product is too close to that, or there are more, sums in float64 do, and at last the score.
    """
    product, values = block.product, grid.values
    at, col0, cols = (r - tile.row0) * block.stride + block.shift, tile.col0, tile.cols
    low, per_cell, table = np.float32(grid.low), np.float32(grid.per_cell), grid.table
    bins, listed = books.bins, books.found
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
        above = np.float64(product[at + k]) - values[min(t, last)]
        bins[to + k] = t + (above >= 0)
        listed[n] = (t << 32) + k
        n += t > last or abs(above) <= grid.band
    # Sums in float64 of all that are in doubt, and only then a look at each: curves of faces take 0.8 of the time.
    left, right, left_over = data.left, data.right, 0
    for h in range(n):
        k, t = listed[h] & 0xFFFFFFFF, listed[h] >> 32
        above = dot64(left, right, r, col0 + k, left.shape[1], 1.0, 1.0) - values[min(t, last)]
        bins[to + k] = t + (above >= 0)
        listed[left_over] = listed[h]
        left_over += t > last or abs(above) <= grid.fine
    for h in range(left_over):
        k = listed[h] & 0xFFFFFFFF
        bins[to + k] = near_bin(listed[h] >> 32, data, r, col0 + k, grid)
