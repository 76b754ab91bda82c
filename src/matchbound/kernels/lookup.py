"""Look 64 values up in the table of a grid at once."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from matchbound.kernels.emit import (
    BIT,
    INDEX,
    SHORT,
    SINGLE,
    WHOLE,
    call,
    data_of,
    load,
    number,
    processor_has,
    splat,
    store,
)
from matchbound.kernels.grid import CELLS

LANES = 16


def _entries(builder: Any, table: Any, cells: Any, native: bool) -> Any:
    """table[cells], LANES of them, as int16."""
    shorts = ir.VectorType(SHORT, LANES)
    if native:
        # There is no instruction for int16: whole words are fetched, of which each entry is the lower half.
        wholes, flags = ir.VectorType(WHOLE, LANES), ir.VectorType(BIT, LANES)
        every, nothing = ir.Constant(flags, [1] * LANES), ir.Constant(wholes, [0] * LANES)
        name = "llvm.x86.avx512.mask.gather.dpi.512"
        found = call(builder, name, wholes, nothing, table, cells, every, ir.Constant(WHOLE, 2))
        return builder.trunc(found, shorts)
    found = ir.Constant(shorts, ir.Undefined)
    for lane in range(LANES):
        place = ir.Constant(WHOLE, lane)
        cell = builder.zext(builder.extract_element(cells, place), INDEX)
        found = builder.insert_element(found, load(builder, table, cell, SHORT), place)
    return found


def _emit(context: Any, builder: Any, signature: Any, args: Any, native: bool) -> Any:
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
        found = _entries(builder, table, cells, native)
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
        return _emit(context, builder, signature, args, processor_has("avx512f"))

    return _signature(product, table, bins), generate


@intrinsic
def _emit_look64_anywhere(
    typing: Any, product: Any, table: Any, bins: Any, at: Any, to: Any, low: Any, per_cell: Any
) -> Any:  # fmt: skip
    """The same without an instruction that gathers."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _emit(context, builder, signature, args, False)

    return _signature(product, table, bins), generate


look64: Any = _emit_look64
look64_anywhere: Any = _emit_look64_anywhere
