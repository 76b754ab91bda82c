"""All pairs of a set of embeddings, scored block by block, tallied while in cache, and forgotten.

Rows are sorted by identity and cut into *spans* of whole identities. A *task* is a pair of spans, and all
comparisons of two identities belong to one task, so n_ij is complete when its task is. An identity with
more rows than a span holds gets a span of its own, which is then worked through in pieces. A *block* is a
run of tasks: the unit of progress, of checkpoints and of what is sent to a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.checkpoint import fingerprint
from matchbound.counting.factors import Factors, make_factors, scorable
from matchbound.counting.partial import PartialTally, finish, sums_may_wrap
from matchbound.counting.run import RunOptions, run_all
from matchbound.counting.screen import COSTS, FEWEST_ROWS, screen_that_pays
from matchbound.counting.threads import one_blas_thread
from matchbound.counts.cells import sorted_thresholds
from matchbound.counts.tally import Tally
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.data.labels import label_bytes

if TYPE_CHECKING:
    from matchbound.kernels.blocks import Block, Rows, Tile
    from matchbound.kernels.grid import Grid
    from matchbound.kernels.screen import Screen

WORD = 64
MAX_BLOCKS = 2048
TASKS_PER_BLOCK = 4


class Sizes(NamedTuple):
    """How all pairs are cut, and what is counted in which way. The counts do not depend on it.

    - span_rows: rows of a span; piece_rows, screened_piece_rows: rows of a piece, without and with a screen.
    - dense_share: where a larger share of a block reaches a threshold, all its comparisons are binned at once: a
      thousand thresholds of 6,000 to 20,000 vectors then take 1.9 to 4.8 matrix products instead of 4.5 to 10.5.
    """

    span_rows: int = 1024
    piece_rows: int = 256
    screened_piece_rows: int = 1024
    dense_share: float = 0.05


SIZES = Sizes()


class Piece(NamedTuple):
    """A rectangle of comparisons that is multiplied out and tallied at once.

    - row0, rows, col0, cols: positions among the sorted rows.
    - diagonal: whether rows and columns overlap, so that only columns behind the row count.
    - last: whether the identity of the last row is complete after this piece.
    """

    row0: int
    rows: int
    col0: int
    cols: int
    diagonal: bool
    last: bool


@dataclass(frozen=True, eq=False)
class Layout:
    """Sorted rows, spans and blocks of a data set.

    - order, shape (n,): the row of the data at each sorted position (stable within an identity).
    - owner, shape (n,): the identity at each sorted position.
    - start, shape (G + 1,): the first sorted position of each identity, and n.
    - edges, shape (spans + 1,): the first sorted position of each span, and n.
    - tasks, shape (tasks, 2): pairs of spans; the first is the one that gives the rows of the products.
    - block_edges, shape (blocks + 1,): the first task of each block.
    """

    order: IntArray = field(repr=False)
    owner: IntArray = field(repr=False)
    start: IntArray = field(repr=False)
    edges: IntArray = field(repr=False)
    tasks: IntArray = field(repr=False)
    block_edges: IntArray = field(repr=False)
    span_rows: int
    piece_rows: int

    @property
    def n_blocks(self) -> int:
        return int(self.block_edges.size - 1)

    @property
    def piece_size(self) -> int:
        """The most comparisons that a piece holds."""
        sizes = np.diff(self.start)
        small = sizes[sizes <= self.span_rows]
        rows = max(self.piece_rows, int(small.max()) if small.size else 0)
        return rows * self.span_rows

    @property
    def span_identities(self) -> int:
        """The most identities that a span holds."""
        if not self.owner.size:
            return 0
        return int((self.owner[self.edges[1:] - 1] - self.owner[self.edges[:-1]]).max()) + 1

    def tasks_of(self, block: int) -> Iterator[tuple[int, int]]:
        yield from self.tasks[self.block_edges[block] : self.block_edges[block + 1]].tolist()

    def pieces(self, first: int, second: int) -> Iterator[Piece]:
        """The pieces of a task, in the order in which a kernel must see them."""
        row0, row1 = int(self.edges[first]), int(self.edges[first + 1])
        col0, col1 = int(self.edges[second]), int(self.edges[second + 1])
        diagonal = first == second
        large = row1 - row0 > self.span_rows
        for r0, r1 in self._row_pieces[first]:
            from_col = r0 if diagonal else col0
            for c0 in range(from_col, col1, self.span_rows):
                c1 = min(c0 + self.span_rows, col1)
                last = not large or (r1 == row1 and c1 == col1)
                yield Piece(r0, r1 - r0, c0, c1 - c0, diagonal, last)

    @cached_property
    def _row_pieces(self) -> list[list[tuple[int, int]]]:
        """The rows of the pieces of each span: whole identities, except in the span of a large one."""
        found = []
        for row0, row1 in pairwise(self.edges.tolist()):
            large = row1 - row0 > self.span_rows
            cuts = [row0]
            while cuts[-1] < row1:
                end = min(cuts[-1] + self.piece_rows, row1)
                if not large and end < row1:
                    at = int(np.searchsorted(self.start, end, side="right"))
                    end = int(self.start[at - 1]) if self.start[at - 1] > cuts[-1] else int(self.start[at])
                cuts.append(end)
            found.append(list(pairwise(cuts)))
        return found


def lay_out(codes: IntArray, n_identities: int, span_rows: int, piece_rows: int) -> Layout:
    """Cut all pairs of rows into blocks; depends on the identities only, never on the workers."""
    order = np.argsort(codes, kind="stable").astype(np.int64)
    owner = np.ascontiguousarray(codes[order])
    start = np.searchsorted(owner, np.arange(n_identities + 1)).astype(np.int64)
    edges = _span_edges(start, span_rows)
    sizes = np.diff(edges)
    n_spans = sizes.size
    column, row = np.tril_indices(n_spans)
    swap = (sizes[column] > span_rows) & (sizes[row] <= span_rows)
    tasks = np.stack([np.where(swap, column, row), np.where(swap, row, column)], axis=1).astype(np.int64)
    per_block = max(TASKS_PER_BLOCK, -(-tasks.shape[0] // MAX_BLOCKS))
    if tasks.shape[0] < 16 * per_block:
        per_block = 1
    block_edges = np.append(np.arange(0, tasks.shape[0], per_block), tasks.shape[0]).astype(np.int64)
    return Layout(order, owner, start, edges, tasks, block_edges, span_rows, piece_rows)


def _span_edges(start: IntArray, span_rows: int) -> IntArray:
    """Greedy spans of whole identities with at most span_rows rows; a larger identity is alone in its span."""
    n = int(start[-1])
    edges = [0]
    while edges[-1] < n:
        here = edges[-1]
        reach = int(np.searchsorted(start, here + span_rows, side="right")) - 1
        end = int(start[reach])
        if end <= here:
            end = int(start[np.searchsorted(start, here, side="right")])
        edges.append(end)
    return np.array(edges, dtype=np.int64)


# Whether to screen comparisons (`matchbound.counting.screen`), and with which instructions.
Pruning = Literal["none", "best", "vnni512", "vnni256", "avx2", "neondot", "portable"]


def tally_embeddings(
    source: Embeddings,
    thresholds: FloatArray,
    options: RunOptions | None = None,
    *,
    pairs: bool = False,
    prune: Pruning | None = None,
    sizes: Sizes = SIZES,
) -> Tally:
    """Tally every pair of rows at every threshold; the counts are those of the float64 scores, exactly.

    - thresholds, shape (K,): in any order, which the tally keeps.
    - pairs: whether to keep n_ij, the errors of each pair of identities, at each threshold.
    - prune: how to rule comparisons out before they are scored; see `make_job`.
    """
    options = options or RunOptions()
    given, distinct, place = sorted_thresholds(thresholds, source.distance)
    kept = pairs or sums_may_wrap(source.instance_counts)  # sums of exact numbers per pair cannot wrap around
    job = make_job(source, distinct, kept, prune, options.workers, sizes)

    def mark() -> str:
        return fingerprint(
            "tally", source.vectors, source.codes, job.layout.order, label_bytes(source.identities), source.similarity,
            job.thresholds, job.pairs, job.layout.block_edges, job.layout.edges,
        )  # fmt: skip

    partial = run_all(job, options, mark, PartialTally.restore)
    return finish(partial, source, given, place, kept, options.workers)


@dataclass(frozen=True, eq=False)
class AllPairsJob:
    """All that a worker needs to tally any block of a run; thresholds are among oriented scores, ascending."""

    layout: Layout
    factors: Factors
    screen: Screen | None = field(repr=False)
    thresholds: FloatArray
    raw: NDArray[Any] = field(repr=False)
    lengths: FloatArray = field(repr=False)
    scales: FloatArray = field(repr=False)
    n_identities: int
    pairs: bool
    prune: Pruning | None
    sizes: Sizes = SIZES

    def __reduce__(self) -> tuple[Any, ...]:
        """What goes to another process is the data; the rest is made there, as its processor likes it."""
        codes = np.empty_like(self.layout.owner)
        codes[self.layout.order] = self.layout.owner
        data = self.raw, codes, self.n_identities, self.factors.similarity
        return make_sent_job, (*data, self.thresholds, self.pairs, self.prune, 1, self.sizes)

    @property
    def n_blocks(self) -> int:
        return self.layout.n_blocks if self.thresholds.size else 0

    def worker(self) -> AllPairsWorker:
        return AllPairsWorker(self)

    def rows(self) -> Rows:
        """The data as the kernels see them."""
        from matchbound.kernels.blocks import Rows
        from matchbound.kernels.exact import CODES, frozen

        layout, factors = self.layout, self.factors
        return Rows(
            frozen(layout.owner),
            frozen(layout.start[1:]),
            frozen(np.diff(layout.start)),
            frozen(layout.order),
            frozen(self.raw),
            frozen(self.lengths),
            frozen(self.scales),
            frozen(factors.left),
            frozen(factors.right),
            CODES[factors.similarity],
            self.screen is not None,
        )


def make_job(
    source: Embeddings,
    thresholds: FloatArray,
    pairs: bool,
    prune: Pruning | None = None,
    workers: int | None = None,
    sizes: Sizes = SIZES,
) -> AllPairsJob:
    """Prepare a run at thresholds among oriented scores, ascending.

    - prune: whether to rule comparisons out by products of their rows rounded to bytes: not at all (``"none"``), with
      the best instructions of this processor (``"best"``) or with others by name; by default what is cheapest according
      to a sample of the data. The counts are the same.
    """
    from matchbound.kernels.exact import CODES, row_lengths

    raw, similarity = scorable(source.vectors), source.similarity
    with one_blas_thread():
        lengths, scales = row_lengths(raw, CODES[similarity])
        rows = sizes.piece_rows if thresholds.size == 1 else sizes.piece_rows * 3 // 4
        layout = lay_out(source.codes, source.n_identities, sizes.span_rows, rows)
        factors = make_factors(raw, layout.order, lengths, scales, similarity, workers)
        screen = _choose_screen(layout, factors, thresholds, prune, workers)
        if screen is not None:
            layout = replace(layout, piece_rows=sizes.screened_piece_rows)
    return AllPairsJob(
        layout, factors, screen, thresholds, raw, lengths, scales, source.n_identities, pairs, prune, sizes
    )


def make_sent_job(
    raw: NDArray[Any], codes: IntArray, n_identities: int, similarity: Similarity, *options: Any
) -> AllPairsJob:  # fmt: skip
    """The same from vectors, shape (n, d), and the identity of each, shape (n,); options as of `make_job`."""
    return make_job(Embeddings.from_codes(raw, np.arange(n_identities), codes, similarity), *options)


def _choose_screen(
    layout: Layout, factors: Factors, thresholds: FloatArray, prune: Pruning | None, workers: int | None
) -> Screen | None:
    """A screen where it pays, or where one is asked for."""
    from matchbound.kernels.screen import SCREENS

    if not thresholds.size or prune == "none":
        return None
    sizes, n = np.diff(layout.start).astype(np.float64), layout.owner.size
    genuine_share = float((sizes * (sizes - 1)).sum()) / max(1.0, n * (n - 1.0))
    lowest = float(factors.values(thresholds)[0])
    kind = next((kind for kind in SCREENS if kind.__name__.lower() == prune), None)
    costs = COSTS if prune is None else None
    return screen_that_pays(factors, lowest, genuine_share, costs=costs, workers=workers, kind=kind)


class AllPairsWorker:
    """Tallies blocks at one or many thresholds: scores a piece, counts it while it is in cache, and forgets it."""

    def __init__(self, job: AllPairsJob) -> None:
        from matchbound.kernels.blocks import AT_ONCE

        layout, count = job.layout, job.thresholds.size
        size, span, many = layout.piece_size, layout.span_rows, count > 1
        screened, room = job.screen is not None, _padded_size(layout)

        def scratch(length: int, used: bool = True, kind: DTypeLike = np.int64) -> NDArray[Any]:
            return np.zeros(length if used else 0, dtype=kind)

        self.partial = PartialTally.empty(job.n_identities, count)
        self._job = job
        self._rows = job.rows()
        self._values = job.factors.values(job.thresholds)
        self._product = np.empty(0 if screened else room, dtype=np.float32)
        self._bits = np.empty(room // WORD if screened else 0, dtype=np.uint64)
        self._reach = np.maximum.reduceat(job.factors.reach, layout.edges[:-1]).tolist()
        self._found = scratch(size + 4)
        self._near = scratch(AT_ONCE, kind=np.float32)
        self._seen = scratch(span)
        self._events = np.empty((max(size, span * count) if job.pairs else 0, 4), dtype=np.int64)
        self._level, self._order = scratch(size + 4, many), scratch(size + 4 if many else span)
        self._last = scratch(span, many) - 1
        self._bins = scratch(2 * (size + (span + 64) * 65), many, np.int16)
        self._packed = scratch(count + 1, many)
        self._tally = scratch(WORD * (count // WORD + 1), many, np.int32)
        self._columns = scratch((count + 1) * (layout.span_identities + 1), many, np.uint16)

    def add(self, block: int) -> None:
        for first, second in self._job.layout.tasks_of(block):
            self._add_task(first, second)

    def _add_task(self, first: int, second: int) -> None:
        from matchbound.kernels.bins import bin_block
        from matchbound.kernels.blocks import Books, Level, Sums, Tile
        from matchbound.kernels.count import count_block
        from matchbound.kernels.dense import MOST_COLS, add_columns, bin_dense_block, share_of_hits
        from matchbound.kernels.grid import MOST_SHORT

        job, total, layout, count = self._job, self.partial, self._job.layout, self._job.thresholds.size
        sums = Sums(total.impostor, total.genuine, total.moments, self._events)  # the partial may change between blocks
        cut, band = self._cut(first, second)
        large = layout.edges[first + 1] - layout.edges[first] > layout.span_rows
        owners = layout.owner[[layout.edges[second], layout.edges[second + 1] - 1]]
        n_columns = int(owners[1] - owners[0]) + 1
        carry = np.zeros((n_columns if large else 0, count), dtype=np.int64)
        books = Books(
            self._found, self._level, self._order, self._near, self._seen, self._last, self._packed,
            self._tally, self._columns, carry, np.zeros(2, dtype=np.int64), self._bins, int(owners[0]),
        )  # fmt: skip
        level = Level(float(self._values[0]), float(job.thresholds[0]))
        may_be_dense = job.screen is None and not (
            large or job.pairs or count >= MOST_SHORT or layout.span_rows > MOST_COLS
        )
        for piece in layout.pieces(first, second):
            tile = Tile(*piece, cut, band)
            block = self._block(piece, tile)
            used = block.product[: piece.rows * block.stride]
            # One threshold has a smaller kernel: a first use compiles in 4 s with it, and in 10 s with that of many.
            if count == 1:
                count_block(block, tile, self._rows, level, books, sums)
            elif may_be_dense and share_of_hits(used, np.float32(cut)) > job.sizes.dense_share:
                bin_dense_block(block, tile, self._rows, self._grid, books, sums)
            else:
                bin_block(block, tile, self._rows, self._grid, books, sums)
            total.keep(self._events[: books.counts[1]])
        if count > 1 and not large:
            add_columns(self._columns, int(owners[0]), n_columns, total.impostor)

    @cached_property
    def _grid(self) -> Grid:
        """One grid for all tasks, with the bands of the longest rows."""
        from matchbound.kernels.grid import make_grid

        reach = (max(self._reach),) * 2
        return make_grid(self._values, self._job.thresholds, self._band(*reach), self._job.factors.fine_band(*reach))

    def _cut(self, first: int, second: int) -> tuple[float, float]:
        """The product below which a task's comparisons reach no threshold, and the band of its full products."""
        band = self._band(self._reach[first], self._reach[second])
        return _round_down(float(self._values[0]) - band), band

    def _band(self, rows: float, columns: float) -> float:
        """How far full products of rows and columns of at most these lengths can be off."""
        factors = self._job.factors
        if self._job.screen is None:
            return factors.band(rows, columns)
        return factors.fine_band(rows, columns)

    def _block(self, piece: Piece, tile: Tile) -> Block:
        """The products of a piece, or the bits of a screen in whole words."""
        from matchbound.kernels.blocks import Block
        from matchbound.kernels.screen import fill_bits

        job, factors = self._job, self._job.factors
        if job.screen is None:
            np.dot(
                factors.left[piece.row0 : piece.row0 + piece.rows],
                factors.right[piece.col0 : piece.col0 + piece.cols].T,
                out=self._product[: piece.rows * piece.cols].reshape(piece.rows, piece.cols),
            )
            return Block(self._product, self._bits, piece.cols, 0)
        shift = piece.col0 % WORD
        words = -(-(shift + piece.cols) // WORD)
        fill_bits(job.screen, tile, words, self._bits)
        return Block(self._product, self._bits, WORD * words, shift)


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


def warm() -> None:
    """Count made data on every path that evaluations and curves of embeddings take, so that kernels are compiled."""
    rng = np.random.default_rng(0)
    identity = np.arange(FEWEST_ROWS + 4) // 2
    vectors = rng.standard_normal((identity.size, 16))
    many, options = np.linspace(-0.9, 0.9, 20), RunOptions(workers=1)
    ways: tuple[Pruning | None, ...] = (None, "none", "best")
    for dtype in (np.float32, np.float64):
        data = Embeddings(vectors.astype(dtype), identity)
        Embeddings(data.vectors[:100], identity[:100]).comparisons()
        for prune in ways:
            tally_embeddings(data, many[-1:], options, prune=prune)
        tally_embeddings(data, many, options, prune="none")
        tally_embeddings(data, many[-3:], options, pairs=True, prune="best")
        tally_embeddings(Embeddings(data.vectors, identity, "euclidean"), np.array([2.0]), options)
