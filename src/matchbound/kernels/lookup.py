"""Look 64 values up in the table of a grid at once."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from matchbound.kernels.emit import (
    INDEX,
    SHORT,
    SINGLE,
    WHOLE,
    data_of,
    load,
    number,
    splat,
    store,
)
from matchbound.kernels.grid import CELLS

LANES = 16


def _entries(builder: Any, table: Any, cells: Any) -> Any:
    """table[cells], LANES of them, as int16; one by one, which is no slower than AVX-512's instruction for it."""
    found = ir.Constant(ir.VectorType(SHORT, LANES), ir.Undefined)
    for lane in range(LANES):
        place = ir.Constant(WHOLE, lane)
        cell = builder.zext(builder.extract_element(cells, place), INDEX)
        found = builder.insert_element(found, load(builder, table, cell, SHORT), place)
    return found


def _emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """See `_emit_look64`."""
    product, table, bins = (data_of(context, builder, signature.args[k], args[k]) for k in range(3))
    at, to, low, per_cell = args[3:]
    floats, shorts, word = ir.VectorType(SINGLE, LANES), ir.VectorType(SHORT, LANES), INDEX

    def every(value: float) -> Any:
        return ir.Constant(floats, [value] * LANES)

    lows, scales = splat(builder, low, floats), splat(builder, per_cell, floats)
    negative = ir.Constant(word, 0)
    for k in range(0, 64, LANES):
        x = builder.fmul(builder.fsub(load(builder, product, builder.add(at, number(k)), floats), lows), scales)
        x = builder.select(builder.fcmp_ordered(">", x, every(-1.0)), x, every(-1.0))
        x = builder.select(builder.fcmp_ordered("<", x, every(float(CELLS))), x, every(float(CELLS)))
        cells = builder.fptosi(builder.fadd(x, every(1.0)), ir.VectorType(WHOLE, LANES))
        found = _entries(builder, table, cells)
        store(builder, found, bins, builder.add(to, number(k)))
        below = builder.icmp_signed("<", found, ir.Constant(shorts, [0] * LANES))
        part = builder.zext(builder.bitcast(below, ir.IntType(LANES)), word)
        negative = builder.or_(negative, builder.shl(part, ir.Constant(word, k)))
    return negative


def _signature(product: Any, table: Any, bins: Any) -> Any:
    whole, single = types.int64, types.float32
    return types.uint64(product, table, bins, whole, whole, single, single)


@intrinsic
def _emit_look64(
    typing: Any, product: Any, table: Any, bins: Any, at: Any, to: Any, low: Any, per_cell: Any
) -> Any:  # fmt: skip
    """bins[to + k] = table[cell_of(product[at + k])], k = 0..63; bit k of the answer says whether it is negative.

    product : float32; table : int16, with one entry more than cells; bins : int16; all flat, nothing is checked.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _emit(context, builder, signature, args)

    return _signature(product, table, bins), generate


look64: Any = _emit_look64
