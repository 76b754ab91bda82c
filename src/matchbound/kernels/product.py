"""Float32 products of two rows, summed in a known order for the bounds on their error, and the factors of sorted rows.

Products are intrinsics because a slice of an array inside a hot loop costs two atomic reference counts, which is more
than the product of two short rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from matchbound.kernels.compiling import compiled
from matchbound.kernels.emit import INDEX, SINGLE, cgutils, data_of, load

# Products may be fused with additions; the order of additions stays as written, for the bounds on their error.
FLAGS = ("contract",)


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
