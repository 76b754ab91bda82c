"""All pairs of a set of embeddings, scored block by block, tallied while in cache, and forgotten."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from matchbound.engine.checkpoint import Checkpoint, fingerprint
from matchbound.engine.coarse import Coarse, coarse_that_pays
from matchbound.engine.executors import Executor, LocalExecutor, Progress, one_blas_thread
from matchbound.engine.factors import Factors, make_factors, room_for
from matchbound.engine.layout import PIECE_ROWS, Layout, Piece, lay_out
from matchbound.engine.partial import Partial, finish, merge
from matchbound.engine.pruning import Bounds, bounds_that_pay
from matchbound.engine.tally import FloatArray, Tally
from matchbound.engine.watch import RunWatch
from matchbound.errors import UsageError
from matchbound.sources.embeddings import Embeddings

if TYPE_CHECKING:
    from matchbound.kernels.blocks import Block, Rows, Tile
    from matchbound.kernels.grid import Grid

DENSE_SHARE = 0.04
COARSE_PIECE_ROWS = 1024
Pruning = Literal["axes", "bytes", "none"]


def tally_embeddings(
    source: Embeddings,
    thresholds: FloatArray,
    *,
    pairs: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    prune: Pruning | None = None,
) -> Tally:
    """Tally every pair of rows at every threshold; the counts are those of the float64 scores, exactly.

    Parameters
    ----------
    source
        The embeddings.
    thresholds
        Shape (K,), in any order; the tally has them in this order.
    pairs
        Whether to keep n_ij, the errors of each pair of identities, at each threshold.
    workers
        Threads on this machine; by default one a core. The result does not depend on it.
    progress
        Called as ``progress(done, total)`` from this thread after each block.
    executor
        Who runs the blocks; by default ``LocalExecutor(workers)``.
    checkpoint
        A file to write the state of the run to, and to resume from.
    prune
        How to rule comparisons out before they are scored; see `make_job`.
    """
    given = np.array(thresholds, dtype=np.float64).reshape(-1)
    if np.isnan(given).any():
        raise UsageError("thresholds holds NaN; a threshold must be a number")
    distinct, place = np.unique(-given if source.distance else given, return_inverse=True)
    job = make_job(source, distinct, pairs, prune)
    partial = run_job(
        source, job, "tally", workers=workers, progress=progress, executor=executor, checkpoint=checkpoint
    )
    return finish(
        partial,
        source.identities,
        source.instance_counts,
        given,
        place.astype(np.int64).reshape(-1),
        source.distance,
        pairs,
    )


def run_job(
    source: Embeddings,
    job: AllPairsJob | Any,
    purpose: str,
    *,
    workers: int | None,
    progress: Progress | None,
    executor: Executor | None,
    checkpoint: str | os.PathLike[str] | None,
) -> Partial:
    """Run all blocks of a job, from a checkpoint where there is one; `purpose` tells checkpoints apart."""
    if executor is not None and workers is not None:
        raise UsageError("give workers or executor, not both")
    base: AllPairsJob = getattr(job, "base", job)
    watch = _watch(source, base, purpose, progress, checkpoint)
    blocks = np.flatnonzero(~watch.done_blocks).tolist()
    parts = [] if watch.before is None else [watch.before]
    if blocks:
        parts.append((executor or LocalExecutor(workers)).run(job, blocks, watch))
    if watch.checkpoint is not None:
        watch.checkpoint.remove()
    if len(parts) == 1:
        return parts[0]
    return merge(parts) if parts else Partial.empty(base.n_identities, base.thresholds.size)


def _watch(
    source: Embeddings,
    job: AllPairsJob,
    purpose: str,
    progress: Progress | None,
    path: str | os.PathLike[str] | None,
) -> RunWatch:
    """A watch that goes on from what an earlier run left in the checkpoint."""
    fresh = np.zeros(job.n_blocks, dtype=np.bool_)
    if path is None:
        return RunWatch(fresh, progress)
    mark = fingerprint(
        purpose, source.vectors, source.codes, source.identities.astype(np.str_), source.similarity, job.thresholds,
        job.pairs, job.layout.block_edges, job.layout.edges,
    )  # fmt: skip
    checkpoint = Checkpoint(Path(path), mark)
    before, done = checkpoint.load(job.n_blocks) or (None, fresh)
    return RunWatch(done, progress, checkpoint, before)


@dataclass(frozen=True, eq=False)
class AllPairsJob:
    """All that a worker needs to tally any block of a run.

    thresholds : float64, shape (K,)
        Distinct thresholds among oriented scores, ascending.
    raw : float32 or float64, shape (n, d)
    lengths, scales : float64, shape (n,)
    """

    layout: Layout
    factors: Factors
    bounds: Bounds | Coarse | None
    thresholds: FloatArray
    raw: NDArray[Any] = field(repr=False)
    lengths: FloatArray = field(repr=False)
    scales: FloatArray = field(repr=False)
    n_identities: int
    pairs: bool

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return self.layout.n_blocks if self.thresholds.size else 0

    def worker(self) -> AllPairsWorker:
        """A new worker with an empty partial tally."""
        return AllPairsWorker(self)

    def rows(self) -> Rows:
        """The data as the kernels see them."""
        from matchbound.kernels.blocks import BOUNDED, COARSE, PLAIN, Rows
        from matchbound.kernels.exact import CODES, frozen

        layout, factors, bounds = self.layout, self.factors, self.bounds
        none = np.empty((0, 0), dtype=np.float32)
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
            frozen(bounds.stage_left if isinstance(bounds, Bounds) else none),
            frozen(bounds.stage_right if isinstance(bounds, Bounds) else none),
            CODES[factors.similarity],
            PLAIN if bounds is None else BOUNDED if isinstance(bounds, Bounds) else COARSE,
        )


def make_job(source: Embeddings, thresholds: FloatArray, pairs: bool, prune: Pruning | None = None) -> AllPairsJob:
    """Prepare a run at distinct thresholds among oriented scores, ascending.

    prune
        Whether to rule comparisons out by a bound from their first principal axes (``"axes"``), by products of
        their rows rounded to bytes (``"bytes"``) or not at all (``"none"``); by default what is cheapest
        according to a sample of the data. The counts are the same.
    """
    with one_blas_thread():
        return _make_job(source, thresholds, pairs, prune)


def _make_job(source: Embeddings, thresholds: FloatArray, pairs: bool, prune: Pruning | None) -> AllPairsJob:
    from matchbound.kernels.exact import CODES, row_lengths

    raw = source.vectors
    if raw.dtype == np.float16:
        wide = room_for((raw.shape[0], raw.shape[1]))
        wide[:] = raw
        raw = wide
    lengths, scales = row_lengths(raw, CODES[source.similarity])
    one = thresholds.size == 1
    layout = lay_out(source.codes, source.n_identities, piece_rows=PIECE_ROWS if one else PIECE_ROWS // 2)
    factors = make_factors(raw, layout.order, lengths, scales, source.similarity)
    bounds = _choose_bounds(source, factors, thresholds, prune)
    if isinstance(bounds, Coarse):
        layout = replace(layout, piece_rows=COARSE_PIECE_ROWS)
    return AllPairsJob(layout, factors, bounds, thresholds, raw, lengths, scales, source.n_identities, pairs)


def _choose_bounds(
    source: Embeddings, factors: Factors, thresholds: FloatArray, prune: Pruning | None
) -> Bounds | Coarse | None:
    if not thresholds.size or prune == "none":
        return None
    sizes = source.instance_counts.astype(np.float64)
    genuine_share = float((sizes * (sizes - 1)).sum()) / max(1.0, len(source) * (len(source) - 1.0))
    lowest = float(factors.values(thresholds)[0])
    found: Bounds | Coarse | None = None
    if prune != "axes":
        found = coarse_that_pays(factors, lowest, genuine_share, force=prune is not None)
    if found is None and prune != "bytes":
        found = bounds_that_pay(factors, lowest, genuine_share, force=prune is not None)
    return found


class PieceWorker:
    """One thread's partial tally, and the products of pieces."""

    def __init__(self, job: AllPairsJob, n_thresholds: int) -> None:
        layout = job.layout
        self.partial = Partial.empty(job.n_identities, n_thresholds)
        self._job = job
        self._rows = job.rows()
        self._values = job.factors.values(job.thresholds)
        coarse = isinstance(job.bounds, Coarse)
        self._product = np.empty(0 if coarse else layout.piece_size, dtype=np.float32)
        self._bits = np.empty(_bits_of(layout) if coarse else 0, dtype=np.uint64)
        self._reach = np.maximum.reduceat(job.factors.reach, layout.edges[:-1]).tolist()

    def _cut(self, first: int, second: int) -> tuple[float, float]:
        """The product below which a task's comparisons reach no threshold, and the band of its full products."""
        job = self._job
        lengths = self._reach[first], self._reach[second]
        band = job.factors.band(*lengths)
        room = job.bounds.allowance(*lengths) if isinstance(job.bounds, Bounds) else band
        return _round_down(float(self._values[0]) - room), band

    def _tile(self, piece: Piece, cut: float, band: float) -> Tile:
        from matchbound.kernels.blocks import Tile

        return Tile(piece.row0, piece.rows, piece.col0, piece.cols, piece.diagonal, piece.last, cut, band)

    def _block(self, piece: Piece, tile: Tile) -> Block:
        from matchbound.kernels.blocks import Block
        from matchbound.kernels.coarse import PANEL, fill_bits

        bounds, shift = self._job.bounds, piece.col0 % PANEL
        if isinstance(bounds, Coarse):
            words = -(-(shift + piece.cols) // PANEL)
            fill_bits(bounds.rows, bounds.panels, bounds.starts, bounds.cuts, bounds.steps, tile, words, self._bits)
            return Block(self._product, self._bits, words, shift)
        factors = bounds or self._job.factors
        flat = self._product[: piece.rows * piece.cols]
        np.dot(
            factors.left[piece.row0 : piece.row0 + piece.rows],
            factors.right[piece.col0 : piece.col0 + piece.cols].T,
            out=flat.reshape(piece.rows, piece.cols),
        )
        return Block(flat, self._bits, 0, 0)


class AllPairsWorker(PieceWorker):
    """Tallies blocks at one or many thresholds."""

    def __init__(self, job: AllPairsJob) -> None:
        super().__init__(job, job.thresholds.size)
        layout, count = job.layout, job.thresholds.size
        size, many = layout.piece_size, count > 1
        self._touched = np.empty(layout.span_rows, dtype=np.int64)
        self._seen = np.full(layout.span_rows, -1 if many else 0, dtype=np.int64)
        self._events = np.empty((max(size, layout.span_rows * count) if job.pairs else 0, 4), dtype=np.int64)
        self._link = np.empty(size if many else 0, dtype=np.int64)
        self._level = np.empty(size if many else 0, dtype=np.int64)
        self._bins = np.zeros(2 * (size + (layout.span_rows + 64) * 65) if many else 0, dtype=np.int16)
        self._packed = np.zeros(count + 1, dtype=np.int64)
        self._levels = np.zeros(count + 1, dtype=np.int64)
        self._columns = np.zeros((count + 1) * layout.span_identities if many else 0, dtype=np.uint16)
        self._row = np.empty((1, job.factors.left.shape[1]))
        self._grid: Grid | None = None

    def add(self, block: int) -> None:
        """Tally a block."""
        for first, second in self._job.layout.tasks_of(block):
            cut, band = self._cut(first, second)
            if self._job.thresholds.size == 1:
                self._count(first, second, cut, band)
            else:
                self._bin(first, second, cut, band)

    def _count(self, first: int, second: int, cut: float, band: float) -> None:
        from matchbound.kernels.blocks import count_block

        job, total = self._job, self.partial
        n_touched = 0
        for piece in job.layout.pieces(first, second):
            tile = self._tile(piece, cut, band)
            n_touched, n_events = count_block(
                self._block(piece, tile), tile, self._rows, float(self._values[0]), float(job.thresholds[0]),
                self._seen, self._touched, n_touched, total.impostor, total.genuine, total.moments,
                self._events, 0, job.pairs,
            )  # fmt: skip
            total.keep(self._events[:n_events])

    def _bin(self, first: int, second: int, cut: float, band: float) -> None:
        from matchbound.kernels.bins import bin_block
        from matchbound.kernels.dense import MOST_COLS, add_columns, bin_dense_block, share_of_hits

        job, total, layout = self._job, self.partial, self._job.layout
        grid = self._grid_for(band, first, second)
        large = layout.edges[first + 1] - layout.edges[first] > layout.span_rows
        n_columns = 0
        if large:
            owners = layout.owner[layout.edges[second] : layout.edges[second + 1]]
            n_columns = int(owners[-1] - owners[0]) + 1
        carry = np.zeros((n_columns, job.thresholds.size), dtype=np.int64)
        n_dense = 0
        may_be_dense = job.bounds is None and not (
            large or job.pairs or job.thresholds.size >= 2**14 or layout.span_rows > MOST_COLS
        )
        base = int(layout.owner[layout.edges[second]])
        for piece in layout.pieces(first, second):
            tile = self._tile(piece, cut, band)
            block = self._block(piece, tile)
            if may_be_dense and share_of_hits(block.product, np.float32(cut)) > DENSE_SHARE:
                bin_dense_block(
                    block.product, tile, self._rows, grid, self._row, self._bins, self._packed, self._levels,
                    base, self._columns, total.impostor, total.genuine, total.moments,
                )  # fmt: skip
                n_dense += 1
                continue
            n_events = bin_block(
                block, tile, self._rows, grid, self._row, self._seen, self._touched, self._link, self._level,
                carry, total.impostor, total.genuine, total.moments, self._events, 0, job.pairs,
            )  # fmt: skip
            total.keep(self._events[:n_events])
        if n_dense:
            add_columns(self._columns, base, int(layout.owner[layout.edges[second + 1] - 1]) + 1 - base, total.impostor)

    def _grid_for(self, band: float, first: int, second: int) -> Grid:
        if self._grid is None or self._grid.band != band:
            from matchbound.kernels.grid import make_grid

            reach = self._reach[first], self._reach[second]
            factors = self._job.factors
            self._grid = make_grid(
                self._values, self._job.thresholds, band, factors.brief_band(*reach), factors.fine_band(*reach)
            )
        return self._grid


def _bits_of(layout: Layout) -> int:
    """The words of bits that the largest piece takes."""
    from matchbound.kernels.coarse import PANEL, ROWS

    rows = layout.piece_size // layout.span_rows + ROWS
    return rows * (layout.span_rows // PANEL + 2)


def _round_down(x: float) -> float:
    """The largest float32 that is at most x, as a float."""
    with np.errstate(over="ignore", under="ignore"):
        near = np.float32(x)
    if float(near) > x:
        near = np.nextafter(near, np.float32(-np.inf))
    return float(near)
