"""Tally a block of float32 scores at many thresholds when most comparisons reach one of them.

Then lists of hits do not pay: every comparison gets its bin, the bins of an identity pair lie side by side,
and what each adds to Σn² comes from comparing it with the others, 32 at a time.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from matchbound.kernels.grid import exact_bin, fine_bin, quick_bin, widen
from matchbound.kernels.scan import hits64

FEW = 128


@intrinsic
def _reached32(typing: Any, bins: Any, offset: Any, value: Any, lanes: Any) -> Any:  # type: ignore[no-untyped-def]
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
    tally: Any,
    impostor: Any,
    genuine: Any,
    moments: Any,
) -> None:
    """Tally a block at K thresholds, K < 2¹⁵; identities are whole, and blocks hold no bounds.

    Parameters
    ----------
    product : float32, flat, rows·cols
    grid : Grid
        The K thresholds.
    row : float64, shape (w,); scratch
    bins : int16, shape (≥ rows of an identity·cols + 32,); scratch
    tally : int64, shape (K + 1,), zeros
    impostor, genuine, moments : see `matchbound.kernels.bins.bin_block`
    """
    owner, stop, sizes, left, right = data.owner, data.stop, data.size, data.left, data.right
    row0, col0, cols = tile.row0, tile.col0, tile.cols
    table, values, thresholds = grid.table, grid.values, grid.thresholds
    low, per_cell, band, fine = np.float32(grid.low), np.float32(grid.per_cell), grid.band, grid.fine
    n_levels = values.shape[0]
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
            at = (r - row0) * cols
            widen(left[r], row)
            if tile.diagonal:
                for c in range(max(r + 1 - col0, 0), begin):
                    v = product[at + c]
                    b = quick_bin(v, low, per_cell, table, values, band)
                    if b < 0:
                        b = fine_bin(b, v, row, right, col0 + c, values, band, fine)
                        if b < 0:
                            b = exact_bin(r, col0 + c, data, thresholds)
                    if b < n_levels:
                        genuine[i, b] += 1
            for c in range(begin, cols):
                v = product[at + c]
                b = quick_bin(v, low, per_cell, table, values, band)
                if b < 0:
                    b = fine_bin(b, v, row, right, col0 + c, values, band, fine)
                    if b < 0:
                        b = exact_bin(r, col0 + c, data, thresholds)
                bins[c * size + q] = b
        c = begin
        while c < cols:
            j = owner[col0 + c]
            width = stop[j] - (col0 + c)
            _book_bins(i, j, sizes[i] * sizes[j], bins, c * size, width * size, tally, impostor, moments)
            c += width
        g += size


@numba.njit(nogil=True, cache=True, inline="always")
def _book_bins(
    i: int, j: int, m: int, bins: Any, start: int, n: int, tally: Any, impostor: Any, moments: Any
) -> None:
    """Book the n comparisons of an identity pair from their bins."""
    if n <= FEW:
        whole = n // 32
        rest = np.uint32((np.uint64(1) << np.uint64(n % 32)) - np.uint64(1))
        for p in range(start, start + n):
            b = bins[p]
            if b > 0:
                step = _reached32(bins, start + 32 * whole, b, rest)
                for w in range(whole):
                    step += _reached32(bins, start + 32 * w, b, np.uint32(0xFFFFFFFF))
                at = np.int64(b) - 1
                impostor[i, at] += 1
                impostor[j, at] += 1
                moments[0, at] += step
                moments[1, at] += m
        return
    for p in range(start, start + n):
        tally[bins[p]] += 1
    crossed = 0
    for b in range(tally.shape[0] - 1, 0, -1):
        k = tally[b]
        if k:
            impostor[i, b - 1] += k
            impostor[j, b - 1] += k
            moments[0, b - 1] += k * (k + 2 * crossed)
            moments[1, b - 1] += k * m
            crossed += k
    tally[:] = 0
