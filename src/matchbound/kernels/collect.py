"""Collect the impostor comparisons of a block that reach a score, with their exact scores."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from matchbound.kernels.blocks import BOUNDED, COARSE, PLAIN, oriented64
from matchbound.kernels.dots import dot32
from matchbound.kernels.scan import hits_of_bits, hits_of_row, lowest_bit


@numba.njit(nogil=True, cache=True)
def collect_block(
    block: Any, tile: Any, data: Any, value: float, threshold: float, first: Any, second: Any, score: Any
) -> int:
    """The comparisons of a block whose oriented score is at least `threshold`.

    Parameters
    ----------
    block : Block
    value, threshold : float64
        The threshold among oriented values and among oriented scores.
    first, second : int64, shape (≥ rows·cols,); score : float64, same shape
        Filled with the identities and the oriented scores.

    Returns
    -------
    found : int
    """
    owner, stop, mode, product, bits = data.owner, data.stop, data.mode, block.product, block.bits
    left, right, stage_left, stage_right = data.left, data.right, data.stage_left, data.stage_right
    width, stage = left.shape[1], stage_left.shape[1]
    order, raw, lengths, scales, kind = data.order, data.raw, data.lengths, data.scales, data.kind
    row0, col0, cols = tile.row0, tile.col0, tile.cols
    cut = np.float32(tile.cut)
    never = value - tile.band
    found = 0
    for r in range(tile.rows):
        g = row0 + r
        i = owner[g]
        at = r * block.stride + block.shift
        c = 0
        if tile.diagonal:
            c = min(max(stop[i] - col0, 0), cols)
        while c < cols:
            if mode == COARSE:
                word = hits_of_bits(bits, at + c, at + cols)
            else:
                word = hits_of_row(product, at, c, cols, cut)
            while word != np.uint64(0):
                k = c + lowest_bit(word)
                word &= word - np.uint64(1)
                if mode == BOUNDED and product[at + k] + dot32(stage_left, stage_right, g, col0 + k, stage) < cut:
                    continue
                if mode != PLAIN and dot32(left, right, g, col0 + k, width) < never:
                    continue
                exact = oriented64(order, raw, lengths, scales, g, col0 + k, kind)
                if exact >= threshold:
                    first[found] = i
                    second[found] = owner[col0 + k]
                    score[found] = exact
                    found += 1
            c += 64
    return found
