"""Which comparisons of a block can reach a threshold at all, from products of 8-bit numbers.

Rows are rounded to whole multiples of one step, −127..127. Processors that multiply bytes do several times as many
of them as of floats at once, and the sums are whole numbers, exact. Each column starts from a number of its own
and each row has a cut of its own (`matchbound.counting.coarse` says which), so a sum that reaches the cut is the
whole test; what comes out is one bit a comparison.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from matchbound.kernels import strips
from matchbound.kernels.emit import WHOLE, cgutils
from matchbound.kernels.strips import LANES, PANEL, ROWS, VECTORS, number

WHOLES = strips.vector_of(WHOLE)


def multiplies_bytes() -> bool:
    """Whether this processor has an instruction for sums of products of bytes, 64 at once."""
    return strips.processor_has("avx512vnni")


def _add_products(builder: Any, sums: Any, unsigned: Any, signed: Any, native: bool) -> Any:
    """sums[l] + Σ_q unsigned[4l + q]·signed[4l + q], q = 0..3; the bytes come as vectors of 32-bit words."""
    if native:
        kind = ir.FunctionType(WHOLES, [WHOLES] * 3)
        name = f"llvm.x86.avx512.vpdpbusd.{32 * LANES}"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [sums, unsigned, signed])

    def every(value: int) -> Any:
        return ir.Constant(WHOLES, [value] * LANES)

    for at in range(0, 32, 8):
        left = builder.and_(builder.lshr(unsigned, every(at)), every(255))
        right = builder.ashr(builder.shl(signed, every(24 - at)), every(24))
        sums = builder.add(sums, builder.mul(left, right))
    return sums


def _emit(context: Any, builder: Any, signature: Any, args: Any, native: bool) -> Any:
    """See `_emit_bits`."""
    rows, panels, starts, cuts, bits = (
        context.make_array(signature.args[k])(context, builder, args[k]).data for k in range(5)
    )
    first, last, panel, steps, to, words = args[5:]
    places = strips.places_of(builder, first, last)
    begin = builder.mul(panel, number(PANEL))
    totals = strips.emit_sums(
        builder,
        [builder.gep(rows, [builder.mul(place, steps)]) for place in places],
        builder.gep(panels, [builder.mul(builder.mul(panel, steps), number(PANEL))]),
        number(0),
        steps,
        [strips.load(builder, starts, builder.add(begin, number(v * LANES))) for v in range(VECTORS)],
        lambda old, one, several: _add_products(builder, old, one, several, native),
    )
    out = builder.bitcast(builder.gep(bits, [to]), ir.IntType(LANES).as_pointer())
    for m in range(ROWS):
        cut = strips.spread(builder, builder.load(builder.gep(cuts, [places[m]])))
        row = builder.gep(out, [builder.mul(builder.mul(words, number(VECTORS)), number(m))])
        for v in range(VECTORS):
            reached = builder.bitcast(builder.icmp_signed(">=", totals[m][v], cut), ir.IntType(LANES))
            builder.store(reached, builder.gep(row, [number(v)]))
    return context.get_dummy_value()


def _signature(arrays: tuple[Any, ...]) -> Any:
    return types.void(*arrays, *[types.int64] * 6)


@intrinsic
def _emit_bits(
    typing: Any, rows: Any, panels: Any, starts: Any, cuts: Any, bits: Any,
    first: Any, last: Any, panel: Any, steps: Any, to: Any, words: Any,
) -> Any:  # fmt: skip
    """Bits of ROWS rows from `first` on (`last` again where there are fewer) with the 64 columns of a panel.

    Bit c of bits[to + m·words] says whether starts[64·panel + c] + Σ_k rows[first + m]_k·columns[c]_k reaches
    cuts[first + m]. Nothing is checked.

    rows : uint32, flat, `steps` words a row of four unsigned bytes each
    panels : uint32, flat, words of four signed bytes each (see `matchbound.kernels.strips`)
    starts, cuts : int32, flat
    bits : uint64, flat
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _emit(context, builder, signature, args, multiplies_bytes())

    return _signature((rows, panels, starts, cuts, bits)), generate


@intrinsic
def _emit_bits_anywhere(
    typing: Any, rows: Any, panels: Any, starts: Any, cuts: Any, bits: Any,
    first: Any, last: Any, panel: Any, steps: Any, to: Any, words: Any,
) -> Any:  # fmt: skip
    """The same without the instruction for bytes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _emit(context, builder, signature, args, False)

    return _signature((rows, panels, starts, cuts, bits)), generate


bits_of_strip: Any = _emit_bits
bits_of_strip_anywhere: Any = _emit_bits_anywhere


@numba.njit(nogil=True, cache=True)
def fill_bits(rows: Any, panels: Any, starts: Any, cuts: Any, steps: int, tile: Any, words: int, bits: Any) -> None:
    """The bits of a block, `words` words a row; the first bit is that of the first column of the first panel.

    rows, panels, starts, cuts : see `bits_of_strip`
    bits : uint64, flat, shape (≥ (rows of the tile + ROWS − 1)·words,)
        Where rows and columns overlap, bits behind the diagonal may be left as they were.
    """
    row0, end = tile.row0, tile.row0 + tile.rows
    first_panel = tile.col0 // PANEL
    for w in range((tile.col0 + tile.cols - 1) // PANEL - first_panel + 1):
        panel = first_panel + w
        stop = min(end, (panel + 1) * PANEL) if tile.diagonal else end
        for g in range(row0, stop, ROWS):
            bits_of_strip(rows, panels, starts, cuts, bits, g, end - 1, panel, steps, (g - row0) * words + w, words)


@numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def round_rows(left: Any, d: int, start: int, stop: int, step: float, rows: Any, error: Any, length: Any) -> None:
    """Rows start..stop − 1 in steps, as unsigned bytes (128 is zero).

    rows : uint8, shape (n, ≥ d)
    error, length : float64, shape (n,)
        ‖x − step·q‖ and ‖step·q‖, rounded up.
    """
    per_step = np.float32(1.0 / step)
    for s in range(start, stop):
        line, out = left[s], rows[s]
        squares = 0.0
        wholes = np.int64(0)
        for k in range(d):
            q = np.float32(np.rint(line[k] * per_step))
            q = min(max(q, np.float32(-127.0)), np.float32(127.0))
            rest = np.float64(line[k]) - step * np.float64(q)
            squares += rest * rest
            whole = np.int32(q)
            wholes += whole * whole
            out[k] = np.uint8(whole + 128)
        for k in range(d, out.shape[0]):
            out[k] = 128
        error[s] = np.sqrt(squares) * (1 + 1e-9)
        length[s] = step * np.sqrt(np.float64(wholes)) * (1 + 1e-9)


@numba.njit(nogil=True, cache=True)
def pack_panels(rows: Any, start: int, stop: int, panels: Any, sums: Any) -> None:
    """Panels start..stop − 1 of the columns, from rows of four bytes a word; see `bits_of_strip`.

    rows : uint32, shape (n, steps)
    panels : uint32, shape (panels, steps, 64)
    sums : int64, shape (n,)
        Filled with Σ_k q_k of each row.
    """
    n, steps = rows.shape
    for p in range(start, stop):
        for c in range(PANEL):
            s = p * PANEL + c
            if s >= n:
                for k in range(steps):
                    panels[p, k, c] = 0
                continue
            total = np.int64(0)
            for k in range(steps):
                word = rows[s, k]
                total += (word & 255) + ((word >> 8) & 255) + ((word >> 16) & 255) + (word >> 24)
                panels[p, k, c] = word ^ np.uint32(0x80808080)
            sums[s] = total - 4 * 128 * steps
