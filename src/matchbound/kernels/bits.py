"""Compare 64 scores with a threshold at once, as one word of bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types

from matchbound.kernels.compiling import inlined
from matchbound.kernels.emit import BIT, INDEX, SINGLE, emitted, load, splat


@emitted(lambda scores, offset, threshold: types.uint64(scores, types.int64, types.float32))
def hits64(builder: Any, _: Any, scores: Any, offset: Any, threshold: Any) -> Any:
    """Bit b of the answer says whether ``scores[offset + b] >= threshold``, for b = 0..63.

    `scores` is a flat float32 array with at least 64 elements from `offset` on; nothing is checked.
    """
    vector = ir.VectorType(SINGLE, 64)
    reached = builder.fcmp_ordered(">=", load(builder, scores, offset, vector), splat(builder, threshold, vector))
    return builder.bitcast(reached, INDEX)


@emitted(lambda word: types.int64(types.uint64))
def lowest_bit(builder: Any, _: Any, word: Any) -> Any:
    """The position of the lowest bit that is set; 64 where none is."""
    return builder.cttz(word, ir.Constant(BIT, 0))


@emitted(lambda word: types.int64(types.uint64))
def bits_set(builder: Any, _: Any, word: Any) -> Any:
    """How many bits are set."""
    return builder.ctpop(word)


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
