"""Book the comparisons of an identity with others, from their bins laid side by side.

What each comparison of an identity pair adds to Σn² comes from comparing its bin with the others, 32 at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from matchbound.kernels.bits import bits_set
from matchbound.kernels.compiling import compiled, inlined
from matchbound.kernels.emit import INDEX, SHORT, cgutils, data_of, load, number, splat, store

FEW = 128
MOST_COLS = 1024
# A word of `packed` holds three sums over the comparisons of one identity with up to MOST_COLS rows, in pairs of
# at most FEW comparisons: Σn² ≤ FEW²·MOST_COLS = 2²⁴, n ≤ FEW·MOST_COLS = 2¹⁷ and ΣnM_j ≤ FEW·MOST_COLS = 2¹⁷.
COUNT_BIT = 26
WEIGHT_BIT = 45


@intrinsic
def _emit_reached32(typing: Any, bins: Any, offset: Any, value: Any, lanes: Any) -> Any:
    """#{q: bins[offset + q] > value} + #{q: bins[offset + q] >= value}, q among the set bits of `lanes`.

    `bins` is a flat int16 array with at least 32 elements from `offset` on; nothing is checked.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(SHORT, 32)
        block = load(builder, data_of(context, builder, signature.args[0], args[0]), args[1], vector)
        every = splat(builder, args[2], vector)
        words = [
            builder.and_(builder.bitcast(builder.icmp_signed(op, block, every), ir.IntType(32)), args[3])
            for op in (">", ">=")
        ]
        both = builder.or_(
            builder.shl(builder.zext(words[0], ir.IntType(64)), ir.Constant(ir.IntType(64), 32)),
            builder.zext(words[1], ir.IntType(64)),
        )
        return builder.ctpop(both)

    return types.int64(bins, types.int64, types.int16, types.uint32), generate


_reached32: Any = _emit_reached32


def _load_pair(context: Any, builder: Any, signature: Any, args: Any) -> tuple[Any, Any]:
    """The pointer to bins[at], and the vector of the first n of 32 bins from there, the others −1."""
    vector = ir.VectorType(SHORT, 32)
    at = builder.gep(data_of(context, builder, signature.args[0], args[0]), [args[1]], source_etype=SHORT)
    block = load(builder, at, number(0), vector)
    one = ir.Constant(ir.IntType(64), 1)
    word = builder.trunc(builder.sub(builder.shl(one, args[2]), one), ir.IntType(32))
    lanes = builder.bitcast(word, ir.VectorType(ir.IntType(1), 32))
    return at, builder.select(lanes, block, ir.Constant(vector, [-1] * 32))


def _keys_of(builder: Any, block: Any) -> Any:
    """32·bin + lane for each lane with a bin and 0 for the others: all different, in the order of the bins."""
    vector = block.type
    shifted = builder.shl(block, ir.Constant(vector, [5] * 32))
    keys = builder.or_(shifted, ir.Constant(vector, list(range(32))))
    zeros = ir.Constant(vector, [0] * 32)
    return builder.select(builder.icmp_signed(">=", block, zeros), keys, zeros)


def _book_one(context: Any, builder: Any, signature: Any, args: Any, at: Any, keys: Any, p: Any) -> None:
    """packed[b] += unit + 2·#{q: keys[q] > keys[p]} and columns[offset + b] += 1, where b = at[p]."""
    packed, columns = (data_of(context, builder, signature.args[k], args[k]) for k in (3, 5))
    whole = INDEX
    b = builder.zext(load(builder, at, p, SHORT), whole)
    key = builder.trunc(builder.or_(builder.shl(b, ir.Constant(whole, 5)), p), ir.IntType(16))
    every = splat(builder, key, keys.type)
    above = builder.bitcast(builder.icmp_unsigned(">", keys, every), ir.IntType(32))
    twice = builder.shl(builder.zext(builder.ctpop(above), whole), ir.Constant(whole, 1))
    store(builder, builder.add(load(builder, packed, b, INDEX), builder.add(args[4], twice)), packed, b)
    place = builder.add(args[6], b)
    store(builder, builder.add(load(builder, columns, place, SHORT), ir.Constant(SHORT, 1)), columns, place)


@intrinsic
def _emit_book_all(typing: Any, bins: Any, at: Any, n: Any, packed: Any, unit: Any, columns: Any, offset: Any) -> Any:
    """Book the n <= 32 comparisons of an identity pair with bins[at..]; see `_book_one`.

    bins : int16; packed : int64; columns : uint16; all flat, 32 bins readable from `at` on, nothing is checked.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, block = _load_pair(context, builder, signature, args)
        keys = _keys_of(builder, block)
        with cgutils.for_range(builder, args[2]) as loop:
            _book_one(context, builder, signature, args, pointer, keys, loop.index)
        return context.get_dummy_value()

    whole = types.int64
    return types.void(bins, whole, whole, packed, whole, columns, whole), generate


book_all: Any = _emit_book_all


@intrinsic
def _emit_book_hits(
    typing: Any, bins: Any, at: Any, n: Any, packed: Any, unit: Any, columns: Any, offset: Any, word: Any
) -> Any:
    """The same for the comparisons whose bits are set in `word` only."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, block = _load_pair(context, builder, signature, args)
        keys = _keys_of(builder, block)
        left = cgutils.alloca_once_value(builder, args[7])
        head = builder.append_basic_block("hits")
        body = builder.append_basic_block("hit")
        after = builder.append_basic_block("booked")
        builder.branch(head)
        builder.position_at_end(head)
        bits = builder.load(left)
        zero, one = ir.Constant(bits.type, 0), ir.Constant(bits.type, 1)
        builder.cbranch(builder.icmp_unsigned("!=", bits, zero), body, after)
        builder.position_at_end(body)
        builder.store(builder.and_(bits, builder.sub(bits, one)), left)
        place = builder.cttz(bits, ir.Constant(ir.IntType(1), 1))
        _book_one(context, builder, signature, args, pointer, keys, place)
        builder.branch(head)
        builder.position_at_end(after)
        return context.get_dummy_value()

    whole = types.int64
    return types.void(bins, whole, whole, packed, whole, columns, whole, types.uint64), generate


_book_hits: Any = _emit_book_hits


@intrinsic
def _emit_positive32(typing: Any, bins: Any, at: Any, n: Any) -> Any:
    """Bit q of the answer says whether bins[at + q] > 0, for q < n <= 32; `bins` is a flat int16 array."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, block = _load_pair(context, builder, signature, args)
        word = builder.icmp_signed(">", block, ir.Constant(block.type, [0] * 32))
        return builder.zext(builder.bitcast(word, ir.IntType(32)), ir.IntType(64))

    return types.uint64(bins, types.int64, types.int64), generate


_positive32: Any = _emit_positive32


@intrinsic
def _emit_copy8(typing: Any, bins: Any, source: Any, target: Any) -> Any:
    """bins[target + q] = bins[source + q], q = 0..7; `bins` is a flat int16 array."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = data_of(context, builder, signature.args[0], args[0])
        store(builder, load(builder, data, args[1], ir.VectorType(SHORT, 8)), data, args[2])
        return context.get_dummy_value()

    return types.void(bins, types.int64, types.int64), generate


_copy8: Any = _emit_copy8


@inlined
def book_identity(i: int, begin: int, tile: Any, data: Any, books: Any, sums: Any) -> None:
    """Book the comparisons of an identity with the identities of the columns from `begin` on, from books.bins."""
    owner, stop, sizes = data.owner, data.stop, data.size
    bins, packed, columns, impostor = books.bins, books.packed, books.columns, sums.impostor
    col0, cols, size, stride = tile.col0, tile.cols, data.size[i], tile.cols + 64
    base, levels = books.base, packed.shape[0]
    side = begin
    if size > 1:
        side = size * stride
        _lay_side_by_side(i, begin, tile, data, bins)
    c = begin
    while c < cols:
        j = owner[col0 + c]
        width = stop[j] - (col0 + c)
        n = width * size
        unit = 1 + (1 << COUNT_BIT) + (width << WEIGHT_BIT)
        offset = (j - base) * levels
        if n == 1:
            b = bins[side]
            packed[b] += unit
            columns[offset + b] += np.uint16(1)
        elif n <= 32 and levels <= 2048:
            word = _positive32(bins, side, n)
            if 2 * bits_set(word) > n:
                book_all(bins, side, n, packed, unit, columns, offset)
            else:
                _book_hits(bins, side, n, packed, unit, columns, offset, word)
        elif n <= FEW:
            whole = n // 32
            rest = np.uint32((np.uint64(1) << np.uint64(n % 32)) - np.uint64(1))
            for p in range(side, side + n):
                b = bins[p]
                if b > 0:
                    step = _reached32(bins, side + 32 * whole, b, rest)
                    for w in range(whole):
                        step += _reached32(bins, side + 32 * w, b, np.uint32(0xFFFFFFFF))
                    packed[b] += unit - 1 + step
                    impostor[j, b - 1] += 1
        else:
            _book_many(i, j, side, n, sizes, books, sums)
        side += n
        c += width
    unpack(packed, size, sums.impostor[i], sums.moments[0], sums.moments[1])


@inlined
def _book_many(i: int, j: int, side: int, n: int, sizes: Any, books: Any, sums: Any) -> None:
    """Book n comparisons of an identity pair by counting them by bin."""
    impostor, moments, tally, bins = sums.impostor, sums.moments, books.tally, books.bins
    for p in range(side, side + n):
        tally[bins[p]] += 1
    crossed = 0
    for b in range(tally.shape[0] - 1, 0, -1):
        k = tally[b]
        if k:
            impostor[i, b - 1] += k
            impostor[j, b - 1] += k
            moments[0, b - 1] += k * (k + 2 * crossed)
            moments[1, b - 1] += k * sizes[i] * sizes[j]
            crossed += k
            tally[b] = 0
    tally[0] = 0


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
def _lay_side_by_side(i: int, begin: int, tile: Any, data: Any, bins: Any) -> None:
    """Copy the bins of an identity behind them, those of each identity of the columns together."""
    owner, stop, col0, cols, size = data.owner, data.stop, tile.col0, tile.cols, data.size[i]
    stride = cols + 64
    to = size * stride
    c = begin
    while c < cols:
        width = stop[owner[col0 + c]] - (col0 + c)
        at = c
        if width <= 8:
            for _ in range(size):
                _copy8(bins, at, to)
                at += stride
                to += width
        else:
            for _ in range(size):
                for k in range(0, width, 8):
                    _copy8(bins, at + k, to + k)
                at += stride
                to += width
        c += width


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
