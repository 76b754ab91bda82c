"""Tally one block of float32 scores: scan it for hits, and keep books only for those.

A block holds products of `rows` sorted rows of embeddings with `cols` others; "sorted" is by identity. A
product approximates the *oriented value* of a comparison (large means same) to within a known band, or bounds
it from above; or there are no products, only bits that say which comparisons are worth one. Whatever lies
closer to a threshold than the band is scored again by `matchbound.kernels.exact.score64`, so that rounding
never decides an error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from matchbound.kernels.dots import dot32
from matchbound.kernels.exact import EUCLIDEAN, score64
from matchbound.kernels.scan import list_hits, list_hits_of_bits

Array = NDArray[Any]

PLAIN, BOUNDED, COARSE = 0, 1, 2
"""What a block holds: products, upper bounds of them, or bits."""


class Rows(NamedTuple):
    """The sorted rows of a data set, as the kernels see them.

    owner : int64, shape (n,). The identity of each sorted row.
    stop : int64, shape (G,). One past the last sorted row of each identity.
    size : int64, shape (G,). M_i.
    order : int64, shape (n,). Where each sorted row is in `raw`.
    raw : float32 or float64, shape (n, d). The vectors as they were given.
    lengths, scales : float64, shape (n,). What `score64` needs, in the order of `raw`.
    left, right : float32, shape (n, w). left[r]·right[c] approximates the oriented value; sorted.
    stage_left, stage_right : float32, shape (n, s). Where blocks hold bounds, their product tightens one.
    kind : int. Which score.
    mode : int. What blocks hold; bounds and bits are to be finished with `left` and `right`.
    """

    owner: Array
    stop: Array
    size: Array
    order: Array
    raw: Array
    lengths: Array
    scales: Array
    left: Array
    right: Array
    stage_left: Array
    stage_right: Array
    kind: int
    mode: int


class Tile(NamedTuple):
    """Where a block lies: sorted rows row0.. by sorted columns col0.., and the float32 cut below which it is quiet."""

    row0: int
    rows: int
    col0: int
    cols: int
    diagonal: bool
    last: bool
    cut: float
    band: float


class Block(NamedTuple):
    """The products or bits of a tile; one of the two is empty.

    product : float32, flat; bits : uint64, flat, 64 to a word
    stride, shift : int
        Product, or bit, r·stride + shift + c is that of row r and column c.
    """

    product: Array
    bits: Array
    stride: int
    shift: int


@numba.njit(nogil=True, cache=True)
def oriented64(order: Any, raw: Any, lengths: Any, scales: Any, r: int, c: int, kind: int) -> float:
    """The canonical score of two sorted rows, with large meaning same.

    (Arrays come one by one, because taking them from a tuple costs two atomic counts each.)
    """
    score: float = score64(raw, lengths, scales, order[r], order[c], kind)
    return -score if kind == EUCLIDEAN else score


@numba.njit(nogil=True, cache=True)
def count_block(
    block: Any,
    tile: Any,
    data: Any,
    value: float,
    threshold: float,
    seen: Any,
    touched: Any,
    n_touched: int,
    impostor: Any,
    genuine: Any,
    moments: Any,
    events: Any,
    n_events: int,
    keep: bool,
) -> tuple[int, int]:
    """Tally a block at one threshold.

    Parameters
    ----------
    block : Block
    value, threshold : float64
        The threshold among oriented values and among oriented scores.
    seen : int64, shape (≥ identities of the columns,); touched : int64, same shape
        n_ij of the identity that is being scanned, and which j have one; carried from block to block.
    impostor, genuine : int64, shape (G, 1)
        Matching impostor and failing genuine comparisons by identity; added to.
    moments : int64, shape (2, 1)
        Σn² and Σnm over unordered pairs; added to.
    events : int64, shape (E, 4)
        (i, j, bin, n) of the identity pairs with errors, when `keep`.

    Returns
    -------
    n_touched, n_events
    """
    owner, size, left, right, mode = data.owner, data.size, data.left, data.right, data.mode
    stage_left, stage_right = data.stage_left, data.stage_right
    width, stage = left.shape[1], stage_left.shape[1]
    product, bits = block.product, block.bits
    order, raw, lengths, scales, kind = data.order, data.raw, data.lengths, data.scales, data.kind
    row0, col0, cols, diagonal = tile.row0, tile.col0, tile.cols, tile.diagonal
    cut = np.float32(tile.cut)
    sure, never = value + tile.band, value - tile.band
    base = owner[col0]
    current = owner[row0]
    found = np.empty(cols + 4, dtype=np.int64)
    for r in range(tile.rows):
        g = row0 + r
        i = owner[g]
        if i != current:
            n_events = _flush_counts(
                current, base, size, seen, touched, n_touched, impostor, moments, events, n_events, keep
            )
            n_touched = 0
            current = i
        at = r * block.stride + block.shift
        begin = 0
        if diagonal:
            begin = min(max(data.stop[i] - col0, 0), cols)
            genuine[i, 0] += _count_failures(
                block, r, max(g + 1 - col0, 0), begin, cut, g, col0, data, value, tile.band, threshold
            )
        if mode == COARSE:
            n_found = list_hits_of_bits(bits, at, begin, cols, found)
        else:
            n_found = list_hits(product, at, begin, cols, cut, found)
        if mode == BOUNDED:
            n_listed, n_found = n_found, 0
            for h in range(n_listed):
                k = found[h]
                found[n_found] = k
                n_found += product[at + k] + dot32(stage_left, stage_right, g, col0 + k, stage) >= cut
        for h in range(n_found):
            k = found[h]
            if mode == PLAIN:
                v = np.float64(product[at + k])
            else:
                v = np.float64(dot32(left, right, g, col0 + k, width))
            if v < sure and (v < never or oriented64(order, raw, lengths, scales, g, col0 + k, kind) < threshold):
                continue
            j = owner[col0 + k] - base
            if seen[j] == 0:
                touched[n_touched] = j
                n_touched += 1
            seen[j] += 1
    if tile.last:
        n_events = _flush_counts(
            current, base, size, seen, touched, n_touched, impostor, moments, events, n_events, keep
        )
        n_touched = 0
    return n_touched, n_events


@numba.njit(nogil=True, cache=True)
def _count_failures(
    block: Any,
    r: int,
    start: int,
    stop: int,
    cut: Any,
    g: int,
    col0: int,
    data: Any,
    value: float,
    band: float,
    threshold: float,
) -> int:
    """Genuine comparisons of row r, in columns start..stop − 1, that do not match."""
    product, bits, left, right, mode = block.product, block.bits, data.left, data.right, data.mode
    order, raw, lengths, scales, kind = data.order, data.raw, data.lengths, data.scales, data.kind
    width, at = left.shape[1], r * block.stride + block.shift
    sure, never = value + band, value - band
    failed = 0
    for c in range(start, stop):
        if mode == COARSE:
            if not bits[(at + c) >> 6] >> np.uint64((at + c) & 63) & np.uint64(1):
                failed += 1
                continue
        elif product[at + c] < cut:
            failed += 1
            continue
        if mode == PLAIN:
            v = np.float64(product[at + c])
        else:
            v = np.float64(dot32(left, right, g, col0 + c, width))
        if v < sure and (v < never or oriented64(order, raw, lengths, scales, g, col0 + c, kind) < threshold):
            failed += 1
    return failed


@numba.njit(nogil=True, cache=True)
def _flush_counts(
    i: int,
    base: int,
    size: Any,
    seen: Any,
    touched: Any,
    n_touched: int,
    impostor: Any,
    moments: Any,
    events: Any,
    n_events: int,
    keep: bool,
) -> int:
    """Book n_ij of a finished identity i, and forget it."""
    total = 0
    for p in range(n_touched):
        j = touched[p]
        n = seen[j]
        seen[j] = 0
        j += base
        total += n
        impostor[j, 0] += n
        moments[0, 0] += n * n
        moments[1, 0] += n * size[i] * size[j]
        if keep:
            events[n_events, 0] = i
            events[n_events, 1] = j
            events[n_events, 2] = 0
            events[n_events, 3] = n
            n_events += 1
    impostor[i, 0] += total
    return n_events
