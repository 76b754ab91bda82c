"""Tally one block of float32 scores at many thresholds: put each hit in a bin between thresholds.

Thresholds are sorted; a comparison in bin b matches at thresholds 0..b−1 and at no other. The tally holds
what each *bin* adds to the sums, so that one running sum at the end gives every threshold. The r-th
comparison of an identity pair to cross (r = 0, 1, …, counted from the strictest threshold) adds 2r + 1 to
Σn², as n² = 1 + 3 + … + (2n − 1).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from matchbound.kernels.bits import hits_of_bits, hits_of_row, lowest_bit
from matchbound.kernels.dots import dot32
from matchbound.kernels.grid import MANY, cell_of, exact_bin, fine_bin


@numba.njit(nogil=True, cache=True)
def bin_block(
    block: Any,
    tile: Any,
    data: Any,
    grid: Any,
    head: Any,
    touched: Any,
    link: Any,
    level: Any,
    carry: Any,
    impostor: Any,
    genuine: Any,
    moments: Any,
    events: Any,
    n_events: int,
    keep: bool,
) -> int:
    """Tally a block at K thresholds.

    Parameters
    ----------
    block : Block
    grid : Grid
        The K thresholds.
    head, touched : int64, shape (≥ identities of the columns,)
        The last hit of each j (−1: none) and which j have one; scratch.
    link, level : int64, shape (≥ rows·cols,)
        The hit before this one of the same j, and the bin of the hit; scratch.
    carry : int64, shape (identities of the columns, K), or (0, K)
        Where an identity is scanned in more than one block, its n_ij by bin, carried from block to block.
    impostor, genuine : int64, shape (G, K)
        Column b: impostor comparisons of bin b + 1, genuine comparisons of bin b; added to.
    moments : int64, shape (2, K)
        What bin b + 1 adds to Σn² and Σnm over unordered pairs.
    events : int64, shape (E, 4)
        (i, j, b, comparisons of {i, j} in bin b + 1), when `keep`.

    Returns
    -------
    n_events
    """
    owner, screened, product, bits = data.owner, data.screened, block.product, block.bits
    left, right = data.left, data.right
    width = left.shape[1]
    row0, col0, cols = tile.row0, tile.col0, tile.cols
    table, values, thresholds = grid.table, grid.values, grid.thresholds
    low, per_cell, band, fine = np.float32(grid.low), np.float32(grid.per_cell), grid.band, grid.fine
    cut = np.float32(tile.cut)
    n_levels = values.shape[0]
    base = owner[col0]
    current = owner[row0]
    n_touched = 0
    n_hits = 0
    carried = carry.shape[0] > 0
    tally = np.zeros(n_levels, dtype=np.int64)
    for r in range(tile.rows):
        g = row0 + r
        i = owner[g]
        if i != current:
            n_events = _flush_bins(
                current,
                base,
                data.size,
                head,
                touched,
                n_touched,
                link,
                level,
                tally,
                impostor,
                moments,
                events,
                n_events,
                keep,
            )
            n_touched = 0
            n_hits = 0
            current = i
        at = r * block.stride + block.shift
        begin = 0
        if tile.diagonal:
            begin = min(max(data.stop[i] - col0, 0), cols)
            for c in range(max(g + 1 - col0, 0), begin):
                b: Any = np.int64(0)
                if screened:
                    hit = hits_of_bits(bits, at + c, at + c + 1) != np.uint64(0)
                else:
                    hit = product[at + c] >= cut
                if hit:
                    v = dot32(left, right, g, col0 + c, width) if screened else product[at + c]
                    b = np.int64(table[cell_of(v, low, per_cell)])
                    if b < 0:
                        b = fine_bin(b, v, left, g, right, col0 + c, values, band, fine)
                        if b < 0:
                            b = exact_bin(data, g, col0 + c, thresholds)
                if b < n_levels:
                    genuine[i, b] += 1
        c = begin
        while c < cols:
            if screened:
                word = hits_of_bits(bits, at + c, at + cols)
            else:
                word = hits_of_row(product, at, c, cols, cut)
            while word != np.uint64(0):
                k = c + lowest_bit(word)
                word &= word - np.uint64(1)
                v = dot32(left, right, g, col0 + k, width) if screened else product[at + k]
                b = np.int64(table[cell_of(v, low, per_cell)])
                if b < 0:
                    above = 0.0
                    if b != MANY:
                        above = np.float64(v) - values[-b - 1]
                    if above >= band:
                        b = -b
                    elif above < -band:
                        b = -b - 1
                    else:
                        b = fine_bin(b, v, left, g, right, col0 + k, values, band, fine)
                        if b < 0:
                            b = exact_bin(data, g, col0 + k, thresholds)
                if b > 0:
                    j = owner[col0 + k] - base
                    if carried:
                        carry[j, b - 1] += 1
                    else:
                        if head[j] < 0:
                            touched[n_touched] = j
                            n_touched += 1
                        link[n_hits] = head[j]
                        level[n_hits] = b - 1
                        head[j] = n_hits
                        n_hits += 1
            c += 64
    if carried:
        if tile.last:
            for j in range(carry.shape[0]):
                n_events = _book(current, base + j, data.size, carry[j], impostor, moments, events, n_events, keep)
        return n_events
    return _flush_bins(
        current,
        base,
        data.size,
        head,
        touched,
        n_touched,
        link,
        level,
        tally,
        impostor,
        moments,
        events,
        n_events,
        keep,
    )


@numba.njit(nogil=True, cache=True)
def _flush_bins(
    i: int,
    base: int,
    size: Any,
    head: Any,
    touched: Any,
    n_touched: int,
    link: Any,
    level: Any,
    tally: Any,
    impostor: Any,
    moments: Any,
    events: Any,
    n_events: int,
    keep: bool,
) -> int:
    """Book the hits of a finished identity i, and forget them."""
    few = np.empty(32, dtype=np.int64)
    for p in range(n_touched):
        j = touched[p]
        hit = head[j]
        head[j] = -1
        n = 0
        while hit >= 0 and n < 32:
            b = level[hit]
            q = n
            while q > 0 and few[q - 1] < b:
                few[q] = few[q - 1]
                q -= 1
            few[q] = b
            n += 1
            hit = link[hit]
        j += base
        if hit < 0:
            m = size[i] * size[j]
            for r in range(n):
                b = few[r]
                impostor[i, b] += 1
                impostor[j, b] += 1
                moments[0, b] += 2 * r + 1
                moments[1, b] += m
                if keep:
                    if r > 0 and few[r - 1] == b:
                        events[n_events - 1, 3] += 1
                    else:
                        events[n_events, 0] = i
                        events[n_events, 1] = j
                        events[n_events, 2] = b
                        events[n_events, 3] = 1
                        n_events += 1
        else:
            for q in range(n):
                tally[few[q]] += 1
            while hit >= 0:
                tally[level[hit]] += 1
                hit = link[hit]
            n_events = _book(i, j, size, tally, impostor, moments, events, n_events, keep)
    return n_events


@numba.njit(nogil=True, cache=True)
def _book(
    i: int, j: int, size: Any, tally: Any, impostor: Any, moments: Any, events: Any, n_events: int, keep: bool
) -> int:
    """Book an identity pair whose comparisons were counted by bin, and zero the counts."""
    m = size[i] * size[j]
    crossed = 0
    for b in range(tally.shape[0] - 1, -1, -1):
        n = tally[b]
        if n:
            tally[b] = 0
            impostor[i, b] += n
            impostor[j, b] += n
            moments[0, b] += n * (n + 2 * crossed)
            moments[1, b] += n * m
            crossed += n
            if keep:
                events[n_events, 0] = i
                events[n_events, 1] = j
                events[n_events, 2] = b
                events[n_events, 3] = n
                n_events += 1
    return n_events
