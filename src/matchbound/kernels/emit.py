"""What kernels that are written instruction by instruction share: vectors, pointers without a type, features."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, update_wrapper
from inspect import Signature
from inspect import signature as signature_of
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils as untyped_cgutils
from numba.core import types
from numba.extending import intrinsic

cgutils: Any = untyped_cgutils
INDEX, WHOLE, SHORT, BYTE, BIT = (ir.IntType(width) for width in (64, 32, 16, 8, 1))
SINGLE, DOUBLE = ir.FloatType(), ir.DoubleType()
POINTER = ir.PointerType()


def emitted(signature: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function that writes the instructions of a call by a kernel.

    It is given the builder, numba's types of the arguments, and the arguments: of an array the pointer to its first
    element, of a tuple the list of its parts. It returns the value of the call, or None. `signature` gives numba's
    signature from the types of the arguments.
    """

    def decorate(emit: Callable[..., Any]) -> Any:
        def typed(typing: Any, *kinds: Any) -> Any:
            return signature(*kinds), generate

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            parts = [_plain(context, builder, kind, arg) for kind, arg in zip(signature.args, args, strict=True)]
            value = emit(builder, signature.args, *parts)
            return context.get_dummy_value() if value is None else value

        update_wrapper(typed, emit)
        typed.__signature__ = Signature(list(signature_of(emit).parameters.values())[1:])  # type: ignore[attr-defined]
        return intrinsic(typed)

    return decorate


def _plain(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.NamedTuple):
        parts = cgutils.unpack_tuple(builder, value)
        return [_plain(context, builder, own, part) for own, part in zip(kind.types, parts, strict=True)]
    if isinstance(kind, types.Array):
        typed = context.make_array(kind)(context, builder, value).data
        return builder.inttoptr(builder.ptrtoint(typed, INDEX), POINTER)
    return value


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


def every(kind: Any, value: float) -> Any:
    """A constant vector of the type `kind`."""
    return ir.Constant(kind, [value] * kind.count)


def splat(builder: Any, value: Any, kind: Any) -> Any:
    """A vector of the type `kind` that is the same number all over."""
    undefined = ir.Constant(kind, ir.Undefined)
    seed = builder.insert_element(undefined, value, ir.Constant(WHOLE, 0))
    lanes = ir.Constant(ir.VectorType(WHOLE, kind.count), [0] * kind.count)
    return builder.shuffle_vector(seed, undefined, lanes)


def place(builder: Any, pointer: Any, at: Any, element: Any) -> Any:
    """The pointer to element number `at`."""
    return builder.gep(pointer, [at], source_etype=element)


def load(builder: Any, pointer: Any, at: Any, kind: Any) -> Any:
    """One number, or the vector of numbers that begins with number `at`; nothing has to be aligned."""
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    return builder.load(place(builder, pointer, at, element), typ=kind, align=_alignment(element))


def store(builder: Any, value: Any, pointer: Any, at: Any) -> None:
    """The opposite of `load`."""
    kind = value.type
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    builder.store(value, place(builder, pointer, at, element), align=_alignment(element))


def call(builder: Any, name: str, kind: Any, *args: Any) -> Any:
    """An instruction by the name that LLVM gives it."""
    signature = ir.FunctionType(kind, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), list(args))


def _alignment(element: Any) -> int:
    """Mapped files may begin anywhere that a float32 may."""
    return 4 if element in (SINGLE, DOUBLE) else min(4, max(1, int(element.width) // 8))
