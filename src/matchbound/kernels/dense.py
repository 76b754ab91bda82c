"""Tally a block of float32 scores at many thresholds when most comparisons reach one of them.

Then lists of hits do not pay: every comparison gets its bin, the bins of an identity pair lie side by side,
and what each adds to Σn² comes from comparing it with the others, 32 at a time.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from matchbound.kernels.grid import MANY, cell_of, exact_bin, fine_bin, widen
from matchbound.kernels.scan import hits64, lowest_bit

FEW = 128


@intrinsic
def _emit_reached32(typing: Any, bins: Any, offset: Any, value: Any, lanes: Any) -> Any:
    """#{q: bins[offset + q] > value} + #{q: bins[offset + q] >= value}, q among the set bits of `lanes`.

    `bins` is a flat int16 array with at least 32 elements from `offset` on; nothing is checked.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        vector = ir.VectorType(ir.IntType(16), 32)
        at = builder.gep(array.data, [args[1]])
        block = builder.load(builder.bitcast(at, vector.as_pointer()), align=2)
        undefined = ir.Constant(vector, ir.Undefined)
        seed = builder.insert_element(undefined, args[2], ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), 32), [0] * 32)
        every = builder.shuffle_vector(seed, undefined, zeros)
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


@intrinsic
def _emit_negative64(typing: Any, bins: Any, offset: Any) -> Any:
    """Bit q of the answer says whether bins[offset + q] < 0, for q = 0..63; `bins` is a flat int16 array."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        vector = ir.VectorType(ir.IntType(16), 64)
        at = builder.gep(array.data, [args[1]])
        block = builder.load(builder.bitcast(at, vector.as_pointer()), align=2)
        zeros = ir.Constant(vector, [0] * 64)
        return builder.bitcast(builder.icmp_signed("<", block, zeros), ir.IntType(64))

    return types.uint64(bins, types.int64), generate


_negative64: Any = _emit_negative64


@numba.njit(nogil=True, cache=True)
def share_of_hits(product: Any, cut: Any) -> float:
    """The share of a block that reaches the cut, from every eighth word of it."""
    n = product.shape[0]
    seen = 0
    hits = 0
    c = 0
    while c + 64 <= n:
        word = hits64(product, c, cut)
        while word != np.uint64(0):
            word &= word - np.uint64(1)
            hits += 1
        seen += 64
        c += 512
    return hits / seen if seen else 0.0


@numba.njit(nogil=True, cache=True)
def bin_dense_block(
    product: Any,
    tile: Any,
    data: Any,
    grid: Any,
    row: Any,
    bins: Any,
    packed: Any,
    tally: Any,
    impostor: Any,
    genuine: Any,
    moments: Any,
) -> None:
    """Tally a block at K thresholds, K < 2¹⁴; identities are whole, and blocks hold no bounds.

    Parameters
    ----------
    product : float32, flat, rows·cols
    grid : Grid
        The K thresholds.
    row : float64, shape (1, w); scratch
    bins : int16, shape (≥ (rows of an identity + 1)·(cols + 64) + FEW,); scratch
    packed, tally : int64, shape (K + 1,), zeros
    impostor, genuine, moments : see `matchbound.kernels.bins.bin_block`
    """
    owner, stop, sizes, left = data.owner, data.stop, data.size, data.left
    row0, col0, cols = tile.row0, tile.col0, tile.cols
    n_levels = grid.values.shape[0]
    stride = cols + 64
    end = row0 + tile.rows
    g = row0
    while g < end:
        i = owner[g]
        size = stop[i] - g
        begin = 0
        if tile.diagonal:
            begin = min(max(stop[i] - col0, 0), cols)
        for q in range(size):
            r = g + q
            widen(left, r, row)
            start = max(r + 1 - col0, 0) if tile.diagonal else 0
            _bins_of_row(product, (r - row0) * cols, start, cols, r, col0, data, grid, row, bins, q * stride)
            for c in range(start, begin):
                b = np.int64(bins[q * stride + c])
                if b < n_levels:
                    genuine[i, b] += 1
        _book_identity(i, size, begin, cols, stride, col0, owner, stop, sizes, bins, packed, tally, impostor, moments)
        g += size
    for level in range(1, n_levels + 1):
        moments[0, level - 1] += packed[level] & 0xFFFFFFFF
        moments[1, level - 1] += packed[level] >> 32
        packed[level] = 0
    packed[0] = 0


@numba.njit(nogil=True, cache=True)
def _bins_of_row(
    product: Any,
    at: int,
    start: int,
    cols: int,
    r: int,
    col0: int,
    data: Any,
    grid: Any,
    row: Any,
    bins: Any,
    to: int,
) -> None:
    """bins[to + c] = the bin of product[at + c], c = start..cols − 1."""
    table, values, thresholds, right = grid.table, grid.values, grid.thresholds, data.right
    low, per_cell, band, fine = np.float32(grid.low), np.float32(grid.per_cell), grid.band, grid.fine
    for c in range(start, cols):
        bins[to + c] = max(table[cell_of(product[at + c], low, per_cell)], -32768)
    c = start
    while c < cols:
        word = _negative64(bins, to + c)
        if cols - c < 64:
            word &= (np.uint64(1) << np.uint64(cols - c)) - np.uint64(1)
        while word != np.uint64(0):
            k = c + lowest_bit(word)
            word &= word - np.uint64(1)
            b: Any = np.int64(bins[to + k])
            v = product[at + k]
            if b != -32768:
                above = np.float64(v) - values[-b - 1]
                if above >= band:
                    bins[to + k] = -b
                    continue
                if above < -band:
                    bins[to + k] = -b - 1
                    continue
            else:
                b = MANY
            b = fine_bin(b, v, row, right, col0 + k, values, band, fine)
            if b < 0:
                b = exact_bin(r, col0 + k, data, thresholds)
            bins[to + k] = b
        c += 64


@numba.njit(nogil=True, cache=True)
def _book_identity(
    i: int,
    size: int,
    begin: int,
    cols: int,
    stride: int,
    col0: int,
    owner: Any,
    stop: Any,
    sizes: Any,
    bins: Any,
    packed: Any,
    tally: Any,
    impostor: Any,
    moments: Any,
) -> None:
    """Book the comparisons of an identity with the identities of the columns from `begin` on.

    What a bin adds to Σn² (low half) and Σnm (high half) goes to `packed` while it is small enough.
    """
    side = size * stride
    c = begin
    while c < cols:
        j = owner[col0 + c]
        width = stop[j] - (col0 + c)
        n = width * size
        if n <= FEW:
            p = side
            for q in range(size):
                for k in range(q * stride + c, q * stride + c + width):
                    bins[p] = bins[k]
                    p += 1
            whole = n // 32
            rest = np.uint32((np.uint64(1) << np.uint64(n % 32)) - np.uint64(1))
            for p in range(side, side + n):
                b = bins[p]
                step = _reached32(bins, side + 32 * whole, b, rest)
                for w in range(whole):
                    step += _reached32(bins, side + 32 * w, b, np.uint32(0xFFFFFFFF))
                packed[b] += step + (n << 32)
                if b > 0:
                    impostor[i, b - 1] += 1
                    impostor[j, b - 1] += 1
        else:
            for q in range(size):
                for k in range(q * stride + c, q * stride + c + width):
                    tally[bins[k]] += 1
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
        c += width
