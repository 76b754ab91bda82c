"""All that a worker needs to tally any block of an all-pairs run."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray
from matchbound.counting.factors import Factors, make_factors
from matchbound.counting.layout import PIECE_ROWS, Layout, lay_out
from matchbound.counting.screen import COSTS, screen_that_pays
from matchbound.counting.threads import in_slices, one_blas_thread
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.scratch import room_for

if TYPE_CHECKING:
    from matchbound.counting.workers import AllPairsWorker
    from matchbound.kernels.blocks import Rows
    from matchbound.kernels.screen import Screen

SCREENED_PIECE_ROWS = 1024
Pruning = Literal["none", "best", "vnni512", "vnni256", "avx2", "neondot", "portable"]
"""Whether to screen comparisons (`matchbound.counting.screen`), and with which instructions."""


@dataclass(frozen=True, eq=False)
class AllPairsJob:
    """All that a worker needs to tally any block of a run.

    thresholds : float64, shape (K,)
        Thresholds among oriented scores, ascending.
    panels : float32, flat, or None
        The right factors packed for `matchbound.kernels.product`, where there is no screen.
    raw : float32 or float64, shape (n, d)
    lengths, scales : float64, shape (n,)
    """

    layout: Layout
    factors: Factors
    screen: Screen | None = field(repr=False)
    panels: NDArray[np.float32] | None = field(repr=False)
    thresholds: FloatArray
    raw: NDArray[Any] = field(repr=False)
    lengths: FloatArray = field(repr=False)
    scales: FloatArray = field(repr=False)
    n_identities: int
    pairs: bool
    prune: Pruning | None

    def __reduce__(self) -> tuple[Any, ...]:
        """What goes to another process is the data; the rest is made there, as its processor likes it."""
        codes = np.empty_like(self.layout.owner)
        codes[self.layout.order] = self.layout.owner
        similarity = self.factors.similarity
        return SentJob, (self.raw, codes, self.n_identities, similarity, self.thresholds, self.pairs, self.prune)

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return self.layout.n_blocks if self.thresholds.size else 0

    def worker(self) -> AllPairsWorker:
        """A new worker with an empty partial tally."""
        from matchbound.counting.workers import AllPairsWorker

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


class SentJob:
    """A job as it arrives in another process; it becomes one when it is first asked for anything."""

    def __init__(self, *parts: Any) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        self._made: AllPairsJob | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return SentJob, self._parts

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        with self._lock:
            if self._made is None:
                self._made = prepare_job(*self._parts)
        return getattr(self._made, name)


def make_job(
    source: Embeddings,
    thresholds: FloatArray,
    pairs: bool,
    prune: Pruning | None = None,
    workers: int | None = None,
) -> AllPairsJob:
    """Prepare a run at thresholds among oriented scores, ascending.

    prune
        Whether to rule comparisons out by products of their rows rounded to bytes: not at all (``"none"``), with the
        best instructions of this processor (``"best"``) or with others by name; by default what is cheapest according
        to a sample of the data. The counts are the same.
    workers
        Threads to prepare with; by default one per core.
    """
    raw = source.settled
    if raw.dtype == np.float16:
        wide = room_for((raw.shape[0], raw.shape[1]))
        wide[:] = raw
        raw = wide
    return prepare_job(raw, source.codes, source.n_identities, source.similarity, thresholds, pairs, prune, workers)


def prepare_job(
    raw: NDArray[Any],
    codes: NDArray[np.int64],
    n_identities: int,
    similarity: Similarity,
    thresholds: FloatArray,
    pairs: bool,
    prune: Pruning | None,
    workers: int | None = 1,
) -> AllPairsJob:
    """The same from vectors, shape (n, d), and the identity of each, shape (n,)."""
    from matchbound.kernels.exact import CODES, row_lengths

    with one_blas_thread():
        lengths, scales = row_lengths(raw, CODES[similarity])
        one = thresholds.size == 1
        layout = lay_out(codes, n_identities, piece_rows=PIECE_ROWS if one else PIECE_ROWS * 3 // 4)
        factors = make_factors(raw, layout.order, lengths, scales, similarity, workers)
        screen = _choose_screen(layout, factors, thresholds, prune, workers)
        panels = None
        if screen is not None:
            layout = replace(layout, piece_rows=SCREENED_PIECE_ROWS)
        else:
            panels = _pack(factors.right, workers)
    return AllPairsJob(layout, factors, screen, panels, thresholds, raw, lengths, scales, n_identities, pairs, prune)


def _choose_screen(
    layout: Layout,
    factors: Factors,
    thresholds: FloatArray,
    prune: Pruning | None,
    workers: int | None,
) -> Screen | None:
    """A screen where it pays, or where one is asked for."""
    if not thresholds.size or prune == "none":
        return None
    sizes, n = np.diff(layout.start).astype(np.float64), layout.owner.size
    genuine_share = float((sizes * (sizes - 1)).sum()) / max(1.0, n * (n - 1.0))
    lowest = float(factors.values(thresholds)[0])
    kind = None
    if prune not in (None, "best"):
        from matchbound.kernels.screen import SCREENS

        kind = next(kind for kind in SCREENS if kind.__name__.lower() == prune)
    costs = COSTS if prune is None else None
    return screen_that_pays(factors, lowest, genuine_share, costs=costs, workers=workers, kind=kind)


def _pack(right: NDArray[np.float32], workers: int | None) -> NDArray[np.float32] | None:
    """Columns packed for the kernel that multiplies, where this processor has one."""
    from matchbound.kernels.product import PANEL, pack_columns, wide_vectors

    if not wide_vectors() or not right.size:
        return None
    panels: NDArray[np.float32] = room_for((-(-right.shape[0] // PANEL), right.shape[1], PANEL))
    in_slices(lambda start, stop: pack_columns(right, start, stop, panels), panels.shape[0], workers, 32)
    return panels.reshape(-1)
