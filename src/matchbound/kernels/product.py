"""The float32 product of a block from packed columns, summed in an order that is known.

A BLAS packs its operands for every block and adds up in an order of its own. Here the columns are packed once
for all blocks, and sums run over CHUNK columns at a time, so a product goes through CHUNK + w/CHUNK roundings
instead of w, and fewer comparisons lie too close to a threshold to tell. Made for vectors of 16 floats; elsewhere
blocks are multiplied by the BLAS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from matchbound.kernels.compiling import compiled
from matchbound.kernels.emit import INDEX, SINGLE, call, cgutils, data_of, load, number, processor_has, splat, store

CHUNK = 32
ROWS = 6
LANES = 16
VECTORS = 4
PANEL = LANES * VECTORS
FLOATS = ir.VectorType(SINGLE, LANES)
Sums = list[list[Any]]
"""For each row of a strip, its vectors of sums."""


def wide_vectors() -> bool:
    """Whether this processor has the registers that strips are made for."""
    return processor_has("avx512f")


def roundings(width: int) -> int:
    """How many roundings a product of two rows of `width` goes through at most."""
    return min(width, CHUNK) + -(-width // CHUNK)


def _places_of(builder: Any, first: Any, last: Any) -> list[Any]:
    """The rows of a strip: first, first + 1, …, and `last` again where there are no more."""
    places = []
    for m in range(ROWS):
        here = builder.add(first, number(m))
        places.append(builder.select(builder.icmp_signed("<", here, last), here, last))
    return places


def _emit_sums(
    builder: Any,
    lines: list[Any],
    columns: Any,
    begin: Any,
    end: Any,
    starts: list[Any],
    accumulate: Callable[[Any, Any, Any], Any],
) -> Sums:
    """Loop over k = begin..end − 1, at least once, and leave the builder behind the loop.

    lines
        A pointer to the numbers of each row of the strip.
    columns
        A pointer to the panel.
    starts
        The vectors that the sums of each row start from.
    accumulate
        Gives the new sums from the old, a vector of one number of a row, and a vector of columns.
    """
    before = builder.block
    loop, after = builder.append_basic_block("step"), builder.append_basic_block("summed")
    builder.branch(loop)
    builder.position_at_end(loop)
    k = builder.phi(INDEX)
    k.add_incoming(begin, before)
    sums = [[builder.phi(starts[v].type) for v in range(VECTORS)] for _ in range(ROWS)]
    at = builder.mul(k, number(PANEL))
    packed = [load(builder, columns, builder.add(at, number(v * LANES)), FLOATS) for v in range(VECTORS)]
    totals: Sums = []
    for m in range(ROWS):
        one = splat(builder, load(builder, lines[m], k, SINGLE), FLOATS)
        totals.append([accumulate(sums[m][v], one, packed[v]) for v in range(VECTORS)])
    following = builder.add(k, number(1))
    k.add_incoming(following, loop)
    for m in range(ROWS):
        for v in range(VECTORS):
            sums[m][v].add_incoming(starts[v], before)
            sums[m][v].add_incoming(totals[m][v], loop)
    builder.cbranch(builder.icmp_signed("<", following, end), loop, after)
    builder.position_at_end(after)
    return totals


class Operands(NamedTuple):
    """Arrays of a product, flat and float32: `width` numbers per row; panels; results, `stride` per row."""

    rows: NDArray[np.float32]
    panels: NDArray[np.float32]
    out: NDArray[np.float32]
    width: int
    stride: int


@intrinsic
def _emit_products(typing: Any, operands: Any, first: Any, last: Any, panel: Any, to: Any) -> Any:
    """Products of ROWS rows from `first` on (`last` again where there are fewer) with the 64 columns of a panel.

    out[to + m·stride + c] = Σ_k rows[first + m]_k·columns[c]_k. Nothing is checked.

    In a panel the k-th numbers of its columns are side by side.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds, parts = signature.args[0].types, cgutils.unpack_tuple(builder, args[0])
        data, packed, result = (data_of(context, builder, kinds[k], parts[k]) for k in range(3))
        width, stride = parts[3:]
        first, last, panel, to = args[1:]
        begins = [builder.mul(p, width) for p in _places_of(builder, first, last)]
        lines = [builder.gep(data, [begin], source_etype=SINGLE) for begin in begins]
        column0 = builder.mul(builder.mul(panel, width), number(PANEL))
        columns = builder.gep(packed, [column0], source_etype=SINGLE)
        zero = ir.Constant(FLOATS, [0.0] * LANES)
        totals = [[cgutils.alloca_once(builder, FLOATS) for _ in range(VECTORS)] for _ in range(ROWS)]
        for total in (vector for row in totals for vector in row):
            builder.store(zero, total)
        with cgutils.for_range_slice(builder, number(0), width, number(CHUNK), ir.IntType(64)) as (begin, _):
            end = builder.add(begin, number(CHUNK))
            end = builder.select(builder.icmp_signed("<", end, width), end, width)
            sums = _emit_sums(
                builder, lines, columns, begin, end, [zero] * VECTORS,
                lambda old, one, several: call(builder, f"llvm.fma.v{LANES}f32", FLOATS, one, several, old),
            )  # fmt: skip
            for row, line in zip(totals, sums, strict=True):
                for total, vector in zip(row, line, strict=True):
                    builder.store(builder.fadd(builder.load(total), vector), total)
        for m, row in enumerate(totals):
            for v, total in enumerate(row):
                at = builder.add(to, builder.add(builder.mul(stride, number(m)), number(v * LANES)))
                store(builder, builder.load(total), result, at)
        return context.get_dummy_value()

    return types.void(operands, *[types.int64] * 4), generate


products_of_strip: Any = _emit_products


@compiled()
def fill_product(rows: Any, panels: Any, width: int, tile: Any, stride: int, out: Any) -> None:
    """The products of a block, `stride` a row; the first column is the first one of the first panel.

    rows, panels : see `Operands`
    out : float32, flat, shape (≥ (rows of the tile + ROWS − 1)·stride,)
        Where rows and columns overlap, products behind the diagonal may be left as they were.
    """
    operands = Operands(rows, panels, out, width, stride)
    row0, end = tile.row0, tile.row0 + tile.rows
    first_panel = tile.col0 // PANEL
    for w in range((tile.col0 + tile.cols - 1) // PANEL - first_panel + 1):
        panel = first_panel + w
        stop = min(end, (panel + 1) * PANEL) if tile.diagonal else end
        for g in range(row0, stop, ROWS):
            products_of_strip(operands, g, end - 1, panel, (g - row0) * stride + PANEL * w)


def pack_columns(right: NDArray[np.float32], start: int, stop: int, panels: NDArray[np.float32]) -> None:
    """Panels start..stop − 1 of the rows of `right`; columns that are missing are zeros.

    right : float32, shape (n, w); panels : float32, shape (panels, w, 64)
    """
    rows, packed = right[start * PANEL : stop * PANEL], panels[start:stop]
    whole, rest = divmod(rows.shape[0], PANEL)
    packed[:whole] = rows[: whole * PANEL].reshape(whole, PANEL, rows.shape[1]).transpose(0, 2, 1)
    if whole < packed.shape[0]:
        packed[whole:] = 0.0
        packed[whole, :, :rest] = rows[whole * PANEL :].T
