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
from matchbound.kernels.emit import INDEX, SINGLE, WHOLE, cgutils, data_of, every, load, number

# Products may be fused with additions; the order of additions stays as written, for the bounds on their error.
FLAGS = ("contract",)
LANES = 16


@intrinsic
def _emit_dot32(typing: Any, x: Any, y: Any, i: Any, j: Any, n: Any) -> Any:
    """Σ_k x[i, k]·y[j, k], k < n, of C-contiguous float32 arrays with rows of n, by two vectors of 16 running sums."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        sides = [
            (data_of(context, builder, kind, array), builder.mul(row, args[4]))
            for kind, array, row in zip(signature.args[:2], args[:2], args[2:4], strict=True)
        ]

        def product(at: Any, kind: Any) -> Any:
            x, y = (load(builder, rows, builder.add(start, at), kind) for rows, start in sides)
            return builder.fmul(x, y, flags=FLAGS)

        def add(total: Any, at: Any, kind: Any) -> None:
            builder.store(builder.fadd(builder.load(total), product(at, kind), flags=FLAGS), total)

        vector, step = ir.VectorType(SINGLE, LANES), number(2 * LANES)
        sums = [cgutils.alloca_once_value(builder, every(vector, 0.0)) for _ in range(2)]
        whole = builder.sub(args[4], builder.srem(args[4], step))
        with cgutils.for_range_slice(builder, number(0), whole, step, INDEX) as (at, _):
            for half, total in enumerate(sums):
                add(total, builder.add(at, number(half * LANES)), vector)
        both, lanes = builder.fadd(*(builder.load(total) for total in sums), flags=FLAGS), LANES
        while lanes > 1:
            lanes //= 2
            halves = (
                builder.shuffle_vector(both, both, ir.Constant(ir.VectorType(WHOLE, lanes), list(index)))
                for index in (range(lanes), range(lanes, 2 * lanes))
            )
            both = builder.fadd(*halves, flags=FLAGS)
        result = cgutils.alloca_once_value(builder, builder.extract_element(both, ir.Constant(WHOLE, 0)))
        with cgutils.for_range_slice(builder, whole, args[4], number(1), INDEX) as (at, _):
            add(result, at, SINGLE)
        return builder.load(result)

    return types.float32(x, y, types.int64, types.int64, types.int64), generate


dot32: Any = _emit_dot32


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
