"""The float32 product of a block from packed columns, summed in an order that is known.

A BLAS packs its operands for every block and adds up in an order of its own. Here the columns are packed once
for all blocks, and sums run over CHUNK columns at a time, so a product goes through CHUNK + w/CHUNK roundings
instead of w, and fewer comparisons lie too close to a threshold to tell. Made for vectors of 16 floats; elsewhere
blocks are multiplied by the BLAS.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from matchbound.kernels import strips
from matchbound.kernels.emit import cgutils
from matchbound.kernels.strips import LANES, PANEL, ROWS, VECTORS, number

CHUNK = 32
FLOATS = strips.vector_of(ir.FloatType())


def wide_vectors() -> bool:
    """Whether this processor has the registers that strips are made for."""
    return strips.processor_has("avx512f")


def roundings(width: int) -> int:
    """How many roundings a product of two rows of `width` goes through at most."""
    return min(width, CHUNK) + -(-width // CHUNK)


@intrinsic
def _emit_products(
    typing: Any, rows: Any, panels: Any, out: Any,
    first: Any, last: Any, panel: Any, width: Any, to: Any, stride: Any,
) -> Any:  # fmt: skip
    """Products of ROWS rows from `first` on (`last` again where there are fewer) with the 64 columns of a panel.

    out[to + m·stride + c] = Σ_k rows[first + m]_k·columns[c]_k. Nothing is checked.

    rows : float32, flat, `width` a row; panels : float32, flat (see `matchbound.kernels.strips`); out : float32, flat
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, packed, result = (
            context.make_array(signature.args[k])(context, builder, args[k]).data for k in range(3)
        )  # fmt: skip
        first, last, panel, width, to, stride = args[3:]
        lines = [builder.gep(data, [builder.mul(p, width)]) for p in strips.places_of(builder, first, last)]
        columns = builder.gep(packed, [builder.mul(builder.mul(panel, width), number(PANEL))])
        fused = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(FLOATS, [FLOATS] * 3), f"llvm.fma.v{LANES}f32"
        )
        zero = ir.Constant(FLOATS, [0.0] * LANES)
        totals = [[cgutils.alloca_once(builder, FLOATS) for _ in range(VECTORS)] for _ in range(ROWS)]
        for total in (vector for row in totals for vector in row):
            builder.store(zero, total)
        with cgutils.for_range_slice(builder, number(0), width, number(CHUNK), ir.IntType(64)) as (begin, _):
            end = builder.add(begin, number(CHUNK))
            end = builder.select(builder.icmp_signed("<", end, width), end, width)
            sums = strips.emit_sums(
                builder, lines, columns, begin, end, [zero] * VECTORS,
                lambda old, one, several: builder.call(fused, [one, several, old]),
            )  # fmt: skip
            for row, line in zip(totals, sums, strict=True):
                for total, vector in zip(row, line, strict=True):
                    builder.store(builder.fadd(builder.load(total), vector), total)
        for m, row in enumerate(totals):
            for v, total in enumerate(row):
                at = builder.add(to, builder.add(builder.mul(stride, number(m)), number(v * LANES)))
                place = builder.bitcast(builder.gep(result, [at]), FLOATS.as_pointer())
                builder.store(builder.load(total), place, align=4)
        return context.get_dummy_value()

    return types.void(rows, panels, out, *[types.int64] * 6), generate


products_of_strip: Any = _emit_products


@numba.njit(nogil=True, cache=True)
def fill_product(rows: Any, panels: Any, width: int, tile: Any, stride: int, out: Any) -> None:
    """The products of a block, `stride` a row; the first column is the first one of the first panel.

    rows, panels : see `products_of_strip`
    out : float32, flat, shape (≥ (rows of the tile + ROWS − 1)·stride,)
        Where rows and columns overlap, products behind the diagonal may be left as they were.
    """
    row0, end = tile.row0, tile.row0 + tile.rows
    first_panel = tile.col0 // PANEL
    for w in range((tile.col0 + tile.cols - 1) // PANEL - first_panel + 1):
        panel = first_panel + w
        stop = min(end, (panel + 1) * PANEL) if tile.diagonal else end
        for g in range(row0, stop, ROWS):
            products_of_strip(rows, panels, out, g, end - 1, panel, width, (g - row0) * stride + PANEL * w, stride)


@numba.njit(nogil=True, cache=True)
def pack_columns(right: Any, start: int, stop: int, panels: Any) -> None:
    """Panels start..stop − 1 of the rows of `right`; columns that are missing are zeros.

    right : float32, shape (n, w); panels : float32, shape (panels, w, 64)
    """
    n, width = right.shape
    for p in range(start, stop):
        for c in range(PANEL):
            s = p * PANEL + c
            for k in range(width):
                panels[p, k, c] = right[s, k] if s < n else np.float32(0.0)
