"""What kernels that are written instruction by instruction share."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils as untyped_cgutils

cgutils: Any = untyped_cgutils
INDEX, WHOLE = ir.IntType(64), ir.IntType(32)


def splat(builder: Any, value: Any, kind: Any) -> Any:
    """A vector of the type `kind` that is the same number all over."""
    undefined = ir.Constant(kind, ir.Undefined)
    seed = builder.insert_element(undefined, value, ir.Constant(WHOLE, 0))
    lanes = ir.Constant(ir.VectorType(WHOLE, kind.count), [0] * kind.count)
    return builder.shuffle_vector(seed, undefined, lanes)
