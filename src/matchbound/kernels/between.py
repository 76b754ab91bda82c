"""List the comparisons of a block whose products lie between two values, and count those beyond."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchbound.kernels.bits import bits_set, hits64, list_bits
from matchbound.kernels.compiling import compiled

BAND_BIT = 56
"""A hit is band·2⁵⁶ + row·2³² + column, the last two counted from the corner of the block."""


@compiled()
def list_between(block: Any, tile: Any, low: Any, high: Any, beyond: Any, found: Any) -> int:
    """Write the hits of every band to `found`, and count them; of a diagonal block, those behind the row.

    Bands are looked at one by one: a product that lies in two of them is listed twice. −1 where there may not be room.

    block, tile : Block (with products), Tile
    low, high : float32, shape (B,), B < 128
        A product x is in a band where low <= x < high.
    beyond : int64, shape (B,). Products x >= high are added.
    found : int64
    """
    product, shift = block.product, block.shift
    every = ~np.uint64(0)
    last = (shift + tile.cols - 1) >> 6
    right = every >> np.uint64(63 - ((shift + tile.cols - 1) & 63))
    behind = shift + tile.row0 + 1 - tile.col0
    room = found.shape[0] - 64 * low.shape[0] - 4
    n = 0
    for r in range(tile.rows):
        at = r * block.stride
        c = behind + r if tile.diagonal and behind + r > shift else shift
        mask = every << np.uint64(c & 63)
        for w in range(c >> 6, last + 1):
            if w == last:
                mask &= right
            if n > room:
                return -1
            for b in range(low.shape[0]):
                above = hits64(product, at + (w << 6), high[b]) & mask
                inside = hits64(product, at + (w << 6), low[b]) & mask & ~above
                beyond[b] += bits_set(above)
                if inside != np.uint64(0):
                    n = list_bits(inside, (b << BAND_BIT) + (r << 32) + (w << 6) - shift, n, found)
            mask = every
    return n
