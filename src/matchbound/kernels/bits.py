"""Compare 64 scores with a threshold at once, as one word of bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from matchbound.kernels.compiling import inlined
from matchbound.kernels.emit import SINGLE, data_of, load, splat


@intrinsic
def _emit_hits64(typing: Any, scores: Any, offset: Any, threshold: Any) -> Any:
    """Bit b of the answer says whether ``scores[offset + b] >= threshold``, for b = 0..63.

    `scores` is a flat float32 array with at least 64 elements from `offset` on; nothing is checked.
    """
    if not (isinstance(scores, types.Array) and scores.dtype == types.float32 and scores.ndim == 1):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(SINGLE, 64)
        block = load(builder, data_of(context, builder, signature.args[0], args[0]), args[1], vector)
        every = splat(builder, args[2], vector)
        return builder.bitcast(builder.fcmp_ordered(">=", block, every), ir.IntType(64))

    return types.uint64(scores, types.int64, types.float32), generate


hits64: Any = _emit_hits64


@intrinsic
def _emit_lowest_bit(typing: Any, word: Any) -> Any:
    """The position of the lowest bit that is set; 64 where none is."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


lowest_bit: Any = _emit_lowest_bit


@intrinsic
def _emit_bits_set(typing: Any, word: Any) -> Any:
    """How many bits are set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


bits_set: Any = _emit_bits_set


@inlined
def list_hits_of_bits(bits: Any, bit: int, start: int, cols: int, tag: int, n: int, found: Any) -> int:
    """Write tag + c of the columns c = start..cols − 1 with bit number bit + c set to found[n..], and count on.

    bits : uint64, flat; found : int64
    """
    first, stop = bit + start, bit + cols
    if first >= stop:
        return n
    w, last = first >> 6, (stop - 1) >> 6
    word = bits[w] & (~np.uint64(0) << np.uint64(first & 63))
    while True:
        if w == last:
            word &= ~np.uint64(0) >> np.uint64(63 - ((stop - 1) & 63))
        while word != np.uint64(0):
            found[n] = tag + (w << 6) + lowest_bit(word) - bit
            word &= word - np.uint64(1)
            n += 1
        if w == last:
            return n
        w += 1
        word = bits[w]


@inlined
def list_bits(word: Any, c: int, n: int, found: Any) -> int:
    """Write c + the places of the bits of a word to found[n..], and count on.

    found : int64, with room for three more
        Four are written at a time, whether or not there are as many: a loop that ends where the bits of a word end is
        guessed wrong nearly every time.
    """
    after: int = n + bits_set(word)
    while n < after:
        for k in range(4):
            found[n + k] = c + lowest_bit(word)
            word &= word - np.uint64(1)
        n += 4
    return after
