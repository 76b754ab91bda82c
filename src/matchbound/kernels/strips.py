"""Sums of products of a strip of rows with a panel of 64 columns, kept in registers: what code to emit for them.

Columns are packed in panels: for each panel, for each k, the k-th numbers of its 64 columns side by side. A strip is
of six rows, so that 24 vectors of 16 sums and what they are made from fill the 32 vector registers that the widest
processors have. `matchbound.kernels.product` does this with floats and `matchbound.kernels.coarse` with bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]

from matchbound.kernels.emit import INDEX, splat

ROWS = 6
LANES = 16
VECTORS = 4
PANEL = LANES * VECTORS

Sums = list[list[Any]]
"""For each row of a strip, its vectors of sums."""


@cache
def processor_has(feature: str) -> bool:
    """Whether code is compiled for a processor with a feature, by the name that LLVM gives it."""
    from numba.core.registry import cpu_target

    target: Any = cpu_target.target_context
    features: str = target.codegen().magic_tuple()[2]
    return f"+{feature}" in features.split(",")


def number(value: int) -> Any:
    """A 64-bit whole number."""
    return ir.Constant(INDEX, value)


def vector_of(lane: Any) -> Any:
    """The type of a vector of sums."""
    return ir.VectorType(lane, LANES)


def spread(builder: Any, value: Any) -> Any:
    """A vector of LANES times the same number."""
    return splat(builder, value, vector_of(value.type))


def load(builder: Any, pointer: Any, at: Any) -> Any:
    """The vector that begins with pointer[at]."""
    kind = vector_of(pointer.type.pointee).as_pointer()
    return builder.load(builder.bitcast(builder.gep(pointer, [at]), kind), align=4)


def places_of(builder: Any, first: Any, last: Any) -> list[Any]:
    """The rows of a strip: first, first + 1, …, and `last` again where there are no more."""
    places = []
    for m in range(ROWS):
        here = builder.add(first, number(m))
        places.append(builder.select(builder.icmp_signed("<", here, last), here, last))
    return places


def emit_sums(
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
    packed = [load(builder, columns, builder.add(at, number(v * LANES))) for v in range(VECTORS)]
    totals: Sums = []
    for m in range(ROWS):
        one = spread(builder, builder.load(builder.gep(lines[m], [k])))
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
