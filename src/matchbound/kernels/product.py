"""Float32 products: the factors of sorted rows, products of blocks from packed columns, and products of two rows.

All are summed in an order that is known, for the bounds on their error. A BLAS packs its operands for every block and
adds up in an order of its own. Here the columns are packed once for all blocks, and sums run over CHUNK columns at a
time, so a product goes through CHUNK + w/CHUNK roundings instead of w, and fewer comparisons lie too close to a
threshold to tell. Made for vectors of 16 floats; elsewhere blocks are multiplied by the BLAS.

Products of two rows are intrinsics because a slice of an array inside a hot loop costs two atomic reference counts,
which is more than the product of two short rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from matchbound.kernels.compiling import compiled, inlined
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
    return processor_has("avx512f") and not processor_has("prefer-256-bit")


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
    multiply(rows, panels, width, tile, stride, out)


@inlined
def multiply(rows: Any, panels: Any, width: int, tile: Any, stride: int, out: Any) -> None:
    """`fill_product`, for other kernels."""
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


FLAGS = ("contract",)
"""Products may be fused with additions; the order of additions stays as written, for the bounds on their error."""


def _sum_of_products(context: Any, builder: Any, signature: Any, args: Any, lanes: int, wide: Any) -> Any:
    """Σ_k x[i·n + k]·y[j·n + k], k < n, summed in `wide` with two vectors of `lanes` running sums."""
    n = args[4]
    x, y = (
        builder.gep(
            data_of(context, builder, signature.args[k], args[k]), [builder.mul(args[k + 2], n)], source_etype=SINGLE
        )
        for k in range(2)
    )
    vector = ir.VectorType(wide, lanes)

    def several(pointer: Any, at: Any) -> Any:
        block = load(builder, pointer, at, ir.VectorType(SINGLE, lanes))
        return block if wide == SINGLE else builder.fpext(block, vector)

    def one(pointer: Any, at: Any) -> Any:
        value = load(builder, pointer, at, SINGLE)
        return value if wide == SINGLE else builder.fpext(value, wide)

    zero = ir.Constant(vector, [0.0] * lanes)
    sums = [cgutils.alloca_once_value(builder, zero) for _ in range(2)]
    step = ir.Constant(INDEX, 2 * lanes)
    whole = builder.sub(n, builder.srem(n, step))
    with cgutils.for_range_slice(builder, ir.Constant(INDEX, 0), whole, step, INDEX) as (at, _):
        for half, total in enumerate(sums):
            here = builder.add(at, ir.Constant(INDEX, half * lanes))
            product = builder.fmul(several(x, here), several(y, here), flags=FLAGS)
            builder.store(builder.fadd(builder.load(total), product, flags=FLAGS), total)
    both = builder.fadd(builder.load(sums[0]), builder.load(sums[1]), flags=FLAGS)
    while lanes > 1:
        lanes //= 2
        parts = [
            builder.shuffle_vector(both, both, ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(index)))
            for index in (range(lanes), range(lanes, 2 * lanes))
        ]
        both = builder.fadd(parts[0], parts[1], flags=FLAGS)
    result = cgutils.alloca_once_value(builder, builder.extract_element(both, ir.Constant(ir.IntType(32), 0)))
    with cgutils.for_range_slice(builder, whole, n, ir.Constant(INDEX, 1), INDEX) as (at, _):
        product = builder.fmul(one(x, at), one(y, at), flags=FLAGS)
        builder.store(builder.fadd(builder.load(result), product, flags=FLAGS), result)
    return builder.load(result)


@intrinsic
def _emit_dot32(typing: Any, x: Any, y: Any, i: Any, j: Any, n: Any) -> Any:
    """x[i]·y[j] in float32, of C-contiguous float32 arrays with rows of n; nothing is checked."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _sum_of_products(context, builder, signature, args, 16, ir.FloatType())

    return types.float32(x, y, types.int64, types.int64, types.int64), generate


dot32: Any = _emit_dot32


@intrinsic
def _emit_dot_wide(typing: Any, x: Any, y: Any, i: Any, j: Any, n: Any) -> Any:
    """x[i]·y[j] summed in float64, of C-contiguous float32 arrays with rows of n."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _sum_of_products(context, builder, signature, args, 8, ir.DoubleType())

    return types.float64(x, y, types.int64, types.int64, types.int64), generate


dot_wide: Any = _emit_dot_wide


@compiled(fastmath=True)
def largest_offset(raw: Any, start: int, stop: int, centre: Any) -> float:
    """The largest |x_k − centre_k| of rows start..stop − 1."""
    largest = 0.0
    for r in range(start, stop):
        row = raw[r]
        for k in range(row.shape[0]):
            offset = abs(np.float64(row[k]) - centre[k])
            largest = offset if offset > largest else largest
    return largest


@compiled(fastmath={"reassoc", "contract"})
def fill_rows(raw: Any, order: Any, factor: Any, centre: Any, left: Any, right: Any, reach: Any) -> None:
    """The factors of rows `order` of `raw`.

    left[s] = (raw[order[s]] − centre)·factor[order[s]], and where there are two columns more, followed by (1, −‖x‖²/2),
    in `right` by (−‖x‖²/2, 1); reach[s] = ‖x‖, rounded up.
    """
    d = raw.shape[1]
    half = left.shape[1] > d
    for s in range(order.shape[0]):
        r = order[s]
        by = factor[r]
        squares = 0.0
        row, out = raw[r], left[s]
        for k in range(d):
            x = (np.float64(row[k]) - centre[k]) * by
            squares += x * x
            out[k] = np.float32(x)
        reach[s] = np.sqrt(squares) * (1.0 + 1e-12)
        if half:
            for k in range(d):
                right[s, k] = left[s, k]
            left[s, d] = np.float32(1.0)
            left[s, d + 1] = np.float32(-squares / 2)
            right[s, d] = np.float32(-squares / 2)
            right[s, d + 1] = np.float32(1.0)
