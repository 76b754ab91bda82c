"""Tally one block of comparisons at one threshold: list the hits, confirm them, and keep books only for those."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchbound.kernels.bits import hits64, list_bits
from matchbound.kernels.blocks import AT_ONCE, oriented64
from matchbound.kernels.compiling import compiled, inlined
from matchbound.kernels.exact import dot64

# A hit is row·2³² + column, both counted from the corner of the block.
COLUMN = (1 << 32) - 1


@compiled()
def count_block(block: Any, tile: Any, data: Any, level: Any, books: Any, sums: Any) -> None:
    """Tally a block at one threshold; Block, Tile, Rows, Level, Books, Sums.

    books.counts[1] events are written, from the first on; n_ij of an identity that is not complete stays in `books`,
    and in books.order which identities have one.
    """
    books.counts[1] = 0
    if tile.diagonal:
        expect_genuine(tile, data, sums.genuine)
    n = list_block(block, tile, data.screened, books.found)
    n = _confirm(block, tile, data, level, books, n)
    _book(tile, data, books, sums, n)


@inlined
def list_block(block: Any, tile: Any, screened: bool, found: Any) -> int:
    """Write the hits of a block to `found`, row by row, and count them; of a diagonal block, those behind the row.

    Whole words of 64 are looked at, and what is beside the columns of the tile is left out.
    """
    product, bits, cut, shift = block.product, block.bits, np.float32(tile.cut), block.shift
    every = ~np.uint64(0)
    last = (shift + tile.cols - 1) >> 6
    right = every >> np.uint64(63 - ((shift + tile.cols - 1) & 63))
    behind = shift + tile.row0 + 1 - tile.col0
    n = 0
    for r in range(tile.rows):
        at = r * block.stride
        c = behind + r if tile.diagonal and behind + r > shift else shift
        left = every << np.uint64(c & 63)
        for w in range(c >> 6, last + 1):
            word = bits[(at >> 6) + w] if screened else hits64(product, at + (w << 6), cut)
            word &= left
            left = every
            if w == last:
                word &= right
            n = list_bits(word, (r << 32) + (w << 6) - shift, n, found)
    return n


@inlined
def _confirm(block: Any, tile: Any, data: Any, level: Any, books: Any, n_listed: int) -> int:
    """Keep the hits that match, and count them; a few at a time, so that nothing waits for a decision."""
    sure, never = level.value + tile.band, level.value - tile.band
    row0, col0, found, values = tile.row0, tile.col0, books.found, books.values
    n = 0
    for start in range(0, n_listed, AT_ONCE):
        count = min(AT_ONCE, n_listed - start)
        values_of(block, tile, data, found, start, count, values)
        first = n
        kept = 0
        for h in range(count):
            v = values[h]
            found[n] = found[start + h]
            values[kept] = v
            kept += np.float64(v) >= never
            n = first + kept
        n = first
        for h in range(kept):
            hit = found[first + h]
            keep = True
            if np.float64(values[h]) < sure:
                keep = oriented64(data, row0 + (hit >> 32), col0 + (hit & COLUMN)) >= level.threshold
            found[n] = hit
            n += keep
    return n


@inlined
def values_of(block: Any, tile: Any, data: Any, found: Any, start: int, count: int, values: Any) -> None:
    """Products of found[start..start + count − 1]: those of the block, or taken now where it holds bits."""
    product, left, right = block.product, data.left, data.right
    width, row0, col0 = left.shape[1], tile.row0, tile.col0
    if data.screened:
        for h in range(count):
            hit = found[start + h]
            product64 = dot64(left, right, row0 + (hit >> 32), col0 + (hit & COLUMN), width, 1.0, 1.0)
            values[h] = np.float32(product64)
    else:
        for h in range(count):
            hit = found[start + h]
            values[h] = product[(hit >> 32) * block.stride + block.shift + (hit & COLUMN)]


@inlined
def expect_genuine(tile: Any, data: Any, genuine: Any) -> None:
    """Take every genuine comparison of a block for a failure; booking takes those that match back."""
    owner, stop = data.owner, data.stop
    begin, end = tile.col0, tile.col0 + tile.cols
    for g in range(tile.row0, tile.row0 + tile.rows):
        first = g + 1 if g + 1 > begin else begin
        last = stop[owner[g]] if stop[owner[g]] < end else end
        if last > first:
            genuine[owner[g], 0] += last - first


@inlined
def _book(tile: Any, data: Any, books: Any, sums: Any, n: int) -> None:
    """Count n matches by identity pair, and book each identity of the rows when it is complete."""
    owner, genuine = data.owner, sums.genuine
    seen, touched, found = books.seen, books.order, books.found
    row0, col0 = tile.row0, tile.col0
    base, current = owner[col0], owner[row0]
    n_touched = books.counts[0]
    for h in range(n + 1):
        i = current
        if h < n:
            i = owner[row0 + (found[h] >> 32)]
        elif tile.last or owner[row0 + tile.rows - 1] != current:
            i = -1
        if i != current:
            _flush(current, base, n_touched, data, books, sums)
            n_touched = 0
            current = i
        if h == n:
            break
        j = owner[col0 + (found[h] & COLUMN)]
        if i == j:
            genuine[i, 0] -= 1
            continue
        if seen[j - base] == 0:
            touched[n_touched] = j - base
            n_touched += 1
        seen[j - base] += 1
    books.counts[0] = n_touched


@inlined
def _flush(i: int, base: int, n_touched: int, data: Any, books: Any, sums: Any) -> None:
    """Book n_ij of a finished identity i, and forget it."""
    seen, touched, size = books.seen, books.order, data.size
    impostor, moments, events = sums.impostor, sums.moments, sums.events
    n_events, keep = books.counts[1], events.shape[0] > 0
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
            n_events = write_event(events, n_events, i, j, 0, n)
    impostor[i, 0] += total
    books.counts[1] = n_events


@inlined
def write_event(events: Any, at: int, i: int, j: int, b: int, n: int) -> int:
    """events[at] = (i, j, b, n); the place behind it."""
    events[at, 0] = i
    events[at, 1] = j
    events[at, 2] = b
    events[at, 3] = n
    return at + 1
