"""Who tallies the blocks of an all-pairs run: scores a piece, counts it while it is in cache, and forgets it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from matchbound.counting.layout import Layout, Piece
from matchbound.counting.partial import Partial

if TYPE_CHECKING:
    from matchbound.counting.job import AllPairsJob
    from matchbound.kernels.blocks import Block, Books, Sums, Tile
    from matchbound.kernels.grid import Grid

DENSE_SHARE = 0.05
"""Where a larger share of a block reaches a threshold, all its comparisons are binned at once: a thousand thresholds of
8,000 vectors then take 1.6 to 3.5 matrix products instead of 3.2 to 8.8."""
LOOKED_UP_SHARE = 0.3
"""Where a larger share of a block reaches a threshold, all of it is looked up in the table; elsewhere those that do."""
CELLS_IN_CACHE = 1 << 18
WORD = 64


class PieceWorker:
    """The products of pieces, in the memory of one thread."""

    def __init__(self, job: AllPairsJob) -> None:
        from matchbound.kernels.product import roundings

        layout = job.layout
        self._job = job
        self._rows = job.rows()
        self._values = job.factors.values(job.thresholds)
        screened = job.screen is not None
        room = _padded_size(layout)
        self._product = np.empty(0 if screened else room, dtype=np.float32)
        self._bits = np.empty(room // WORD if screened else 0, dtype=np.uint64)
        self._roundings = None if job.panels is None else roundings(job.factors.left.shape[1])
        self._left = job.factors.left.reshape(-1)
        self._reach = np.maximum.reduceat(job.factors.reach, layout.edges[:-1]).tolist()

    def _cut(self, first: int, second: int) -> tuple[float, float]:
        """The product below which a task's comparisons reach no threshold, and the band of its full products."""
        band = self._band(self._reach[first], self._reach[second])
        return _round_down(float(self._values[0]) - band), band

    def _band(self, rows: float, columns: float) -> float:
        """How far full products of rows and columns of at most these lengths can be off."""
        factors = self._job.factors
        if self._job.screen is None:
            return factors.band(rows, columns, self._roundings)
        return factors.brief_band(rows, columns)

    def _tile(self, piece: Piece, cut: float, band: float) -> Tile:
        from matchbound.kernels.blocks import Tile

        return Tile(piece.row0, piece.rows, piece.col0, piece.cols, piece.diagonal, piece.last, cut, band)

    def _padded(self, piece: Piece) -> Block:
        """The block of a piece in whole words, filled or to be filled."""
        from matchbound.kernels.blocks import Block

        shift = piece.col0 % WORD
        return Block(self._product, self._bits, WORD * -(-(shift + piece.cols) // WORD), shift)

    def _block(self, piece: Piece, tile: Tile) -> Block:
        from matchbound.kernels.blocks import Block
        from matchbound.kernels.product import fill_product
        from matchbound.kernels.screen import fill_bits

        job, block = self._job, self._padded(piece)
        if job.screen is not None:
            fill_bits(job.screen, tile, block.stride // WORD, self._bits)
            return block
        factors = job.factors
        if job.panels is not None:
            fill_product(self._left, job.panels, factors.left.shape[1], tile, block.stride, self._product)
            return block
        np.dot(
            factors.left[piece.row0 : piece.row0 + piece.rows],
            factors.right[piece.col0 : piece.col0 + piece.cols].T,
            out=self._product[: piece.rows * piece.cols].reshape(piece.rows, piece.cols),
        )
        return Block(self._product, self._bits, piece.cols, 0)


class AllPairsWorker(PieceWorker):
    """Tallies blocks at one or many thresholds."""

    def __init__(self, job: AllPairsJob) -> None:
        from matchbound.kernels.blocks import AT_ONCE

        super().__init__(job)
        layout, count = job.layout, job.thresholds.size
        self.partial = Partial.empty(job.n_identities, count)
        size, span, many = layout.piece_size, layout.span_rows, count > 1

        def scratch(length: int, used: bool, kind: DTypeLike = np.int64) -> NDArray[Any]:
            return np.zeros(length if used else 0, dtype=kind)

        self._found = scratch(size + 4, True)
        self._near = scratch(AT_ONCE, True, np.float32)
        self._touched = scratch(span, True)
        self._seen = scratch(span, True)
        self._events = np.empty((max(size, span * count) if job.pairs else 0, 4), dtype=np.int64)
        self._level, self._order = scratch(size + 4, many), scratch(size + 4, many)
        self._last = scratch(span, many) - 1
        self._bins = scratch(2 * (size + (span + 64) * 65), many, np.int16)
        self._packed = scratch(count + 1, many)
        self._tally = scratch(WORD * (count // WORD + 1), many, np.int32)
        self._columns = scratch((count + 1) * (layout.span_identities + 1), many, np.uint16)
        self._grid: Grid | None = None

    def add(self, block: int) -> None:
        """Tally a block."""
        for first, second in self._job.layout.tasks_of(block):
            cut, band = self._cut(first, second)
            if self._job.thresholds.size == 1:
                self._count(first, second, cut, band)
            else:
                self._bin(first, second, cut, band)

    def _sums(self) -> Sums:
        """Where kernels add to; the partial tally may be another one from block to block."""
        from matchbound.kernels.blocks import Sums

        return Sums(self.partial.impostor, self.partial.genuine, self.partial.moments, self._events)

    def _count(self, first: int, second: int, cut: float, band: float) -> None:
        from matchbound.kernels.blocks import Level, Marks
        from matchbound.kernels.count import count_block

        job, sums = self._job, self._sums()
        level = Level(float(self._values[0]), float(job.thresholds[0]))
        marks = Marks(self._seen, self._touched, np.zeros(2, dtype=np.int64), self._found, self._near)
        for piece in job.layout.pieces(first, second):
            tile = self._tile(piece, cut, band)
            count_block(self._block(piece, tile), tile, self._rows, level, marks, sums)
            self.partial.keep(self._events[: marks.counts[1]])

    def _bin(self, first: int, second: int, cut: float, band: float) -> None:
        from matchbound.kernels.bins import bin_block
        from matchbound.kernels.blocks import Books
        from matchbound.kernels.dense import MOST_COLS, add_columns, bin_dense_block, share_of_hits

        job, total, layout, sums = self._job, self.partial, self._job.layout, self._sums()
        grid = self._grid_of_all()
        large = layout.edges[first + 1] - layout.edges[first] > layout.span_rows
        owners = layout.owner[[layout.edges[second], layout.edges[second + 1] - 1]]
        n_columns = int(owners[1] - owners[0]) + 1
        carry = np.zeros((n_columns if large else 0, job.thresholds.size), dtype=np.int64)
        books = Books(
            self._found, self._level, self._order, self._near, self._seen, self._last, self._packed,
            self._tally, self._columns, carry, np.zeros(2, dtype=np.int64), self._bins,
            int(owners[0]), n_columns * (job.thresholds.size + 1) > CELLS_IN_CACHE,
        )  # fmt: skip
        may_be_dense = job.screen is None and not (
            large or job.pairs or job.thresholds.size >= 2**14 or layout.span_rows > MOST_COLS
        )
        pieces = list(layout.pieces(first, second))
        at = 0
        while at < len(pieces):
            piece = pieces[at]
            tile = self._tile(piece, cut, band)
            if may_be_dense and job.panels is not None:
                at += self._bin_dense_pieces(pieces[at:], tile, grid, books, sums)
                if at == len(pieces):
                    break
                piece = pieces[at]
                tile, block = self._tile(piece, cut, band), self._padded(piece)  # which is multiplied by now
            else:
                block = self._block(piece, tile)
                used = block.product[: piece.rows * block.stride]
                share = share_of_hits(used, np.float32(cut)) if may_be_dense else 0.0
                if share > DENSE_SHARE:
                    tile = tile._replace(cut=-np.inf) if share > LOOKED_UP_SHARE else tile
                    bin_dense_block(block, tile, self._rows, grid, books, sums)
                    at += 1
                    continue
            bin_block(block, tile, self._rows, grid, books, sums)
            total.keep(self._events[: books.counts[1]])
            at += 1
        if not large:
            add_columns(self._columns, int(owners[0]), n_columns, total.impostor)

    def _bin_dense_pieces(self, pieces: list[Piece], tile: Tile, grid: Grid, books: Books, sums: Sums) -> int:
        """Multiply and tally pieces up to one that is not dense, and count them; that one is multiplied too."""
        from matchbound.kernels.dense import bin_dense_pieces

        job, blocks = self._job, [self._padded(piece) for piece in pieces]
        places = [(p.row0, p.rows, p.col0, p.cols, b.stride) for p, b in zip(pieces, blocks, strict=True)]
        done: int = bin_dense_pieces(
            np.array(places, dtype=np.int64), (self._left, job.panels, job.factors.left.shape[1]),
            (DENSE_SHARE, LOOKED_UP_SHARE), blocks[0], tile, self._rows, grid, books, sums,
        )  # fmt: skip
        return done

    def _grid_of_all(self) -> Grid:
        """One grid for all tasks, with the bands of the longest rows."""
        if self._grid is None:
            from matchbound.kernels.grid import make_grid

            reach, factors = (max(self._reach),) * 2, self._job.factors
            bands = (self._band(*reach), factors.brief_band(*reach), factors.fine_band(*reach))
            self._grid = make_grid(self._values, self._job.thresholds, *bands)
        return self._grid


def _padded_size(layout: Layout) -> int:
    """The products, or bits, that the largest piece takes, with room for whole strips and panels."""
    from matchbound.kernels.screen import STRIP

    rows = layout.piece_size // layout.span_rows + STRIP
    return rows * (layout.span_rows // WORD + 2) * WORD


def _round_down(x: float) -> float:
    """The largest float32 that is at most x, as a float."""
    with np.errstate(over="ignore", under="ignore"):
        near = np.float32(x)
    if float(near) > x:
        near = np.nextafter(near, np.float32(-np.inf))
    return float(near)
