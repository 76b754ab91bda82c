"""How many pairs of embeddings match at any threshold within bands of scores, from one pass over all pairs.

What lies beyond a band is counted, and what lies in it is listed and scored: then every threshold in the band is
settled by a search among sorted scores. Rounding decides nothing, because bands are widened by what it can do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.held import Held
from matchbound.counting.job import AllPairsJob, make_job
from matchbound.counting.running import How, Kind, run_all
from matchbound.counting.workers import PieceWorker
from matchbound.data.embeddings import Embeddings

MOST_BANDS = 100
MOST_LISTED = 8_000_000
"""So many pairs are listed at most; where there are more, thresholds are counted instead."""


@dataclass(frozen=True, eq=False)
class Between:
    """The matches of all pairs at thresholds within bands.

    bands : float64 array, shape (B, 2)
        Similarities: the lower and the upper end of each band.
    beyond : int64 array, shape (B,)
        Pairs that are surely above each band.
    listed : tuple of B float64 arrays, sorted
        Similarities of the pairs in and around each band.
    """

    bands: FloatArray
    beyond: IntArray
    listed: tuple[FloatArray, ...] = field(repr=False)

    def matches(self, similarity: FloatArray) -> IntArray:
        """Pairs at least so similar, shape of `similarity`; each must lie in a band."""
        found = np.full(similarity.shape, -1, dtype=np.int64)
        for (low, high), beyond, scores in zip(self.bands, self.beyond, self.listed, strict=True):
            here = (similarity >= low) & (similarity <= high)
            found[here] = beyond + scores.size - np.searchsorted(scores, similarity[here], side="left")
        assert found.size == 0 or int(found.min()) >= 0, "a threshold outside all bands"
        return found


@dataclass(eq=False)
class ListedPairs(Held):
    """What some blocks gave.

    beyond : int64, shape (B,)
    pairs : list of int64 arrays, shape (3, n)
        Band, first and second row of the pairs, as positions among sorted rows.
    overflow : bool
        Whether there were too many to list.
    """

    beyond: IntArray
    pairs: list[IntArray]
    overflow: bool = False
    blocks: set[int] = field(default_factory=set)
    sound: bool = True

    def copy(self) -> ListedPairs:
        """The same, in an array of its own."""
        return ListedPairs(self.beyond.copy(), list(self.pairs), self.overflow, set(self.blocks), self.sound)

    def join(self, other: ListedPairs, workers: int | None) -> None:
        """Add what `other` holds."""
        self.beyond += other.beyond
        self.pairs += other.pairs
        self.overflow |= other.overflow

    def state(self) -> dict[str, NDArray[Any]]:
        """As arrays."""
        pairs = np.concatenate([np.empty((3, 0), dtype=np.int64), *self.pairs], axis=1)
        return {"beyond": self.beyond, "pairs": pairs}


@dataclass(frozen=True, eq=False)
class ListingJob:
    """All pairs of rows, and the bands in which they are listed (similarities, shape (B, 2))."""

    base: AllPairsJob
    bands: FloatArray

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return self.base.n_blocks

    def worker(self) -> ListingWorker:
        """A new worker that has listed nothing."""
        return ListingWorker(self)


class ListingWorker(PieceWorker):
    """Lists pairs block by block."""

    def __init__(self, job: ListingJob) -> None:
        super().__init__(job.base)
        self.partial = ListedPairs(np.zeros(job.bands.shape[0], dtype=np.int64), [])
        reach = max(self._reach)
        band = self._band(reach, reach)
        values = job.base.factors.values(job.bands.reshape(-1)).reshape(-1, 2)
        with np.errstate(over="ignore"):
            low, high = np.float32(values[:, 0] - band), np.float32(values[:, 1] + band)
        self._low, self._high = np.nextafter(low, np.float32(-np.inf)), np.nextafter(high, np.float32(np.inf))
        self._found = np.empty(2 * job.base.layout.piece_size + 64 * (self._low.size + 1), dtype=np.int64)
        self._listed = 0

    def add(self, block: int) -> None:
        """List a block; nothing more once there are too many."""
        from matchbound.kernels.between import BAND_BIT, list_between

        for first, second in self._job.layout.tasks_of(block):
            for piece in self._job.layout.pieces(first, second):
                if self.partial.overflow:
                    return
                tile = self._tile(piece, 0.0, 0.0)
                n = list_between(
                    self._block(piece, tile), tile, self._low, self._high, self.partial.beyond, self._found
                )
                self._listed += max(n, 0)
                if n < 0 or self._listed > MOST_LISTED:
                    self.partial.overflow = True
                    return
                hits = self._found[:n]
                rows = ((hits >> 32) & ((1 << (BAND_BIT - 32)) - 1)) + piece.row0
                self.partial.pairs.append(np.stack([hits >> BAND_BIT, rows, (hits & 0xFFFFFFFF) + piece.col0]))


def pairs_between(source: Embeddings, bands: FloatArray, how: How) -> Between | None:
    """The matches of all pairs at thresholds within bands of similarities; None where too many pairs lie in them.

    Parameters
    ----------
    bands
        Shape (B, 2): the lower and the upper end of each.
    how
        Threads of this machine; no executor and no checkpoint.
    """
    if bands.shape[0] > MOST_BANDS:
        return None
    job = ListingJob(make_job(source, np.unique(bands), False, "none", how.workers), bands)

    def empty() -> ListedPairs:
        return ListedPairs(np.zeros(bands.shape[0], dtype=np.int64), [])

    def never(*_: Any) -> Any:
        raise NotImplementedError

    found = run_all(job, empty, Kind(never, never, 0), How(how.workers))
    if found.overflow:
        return None
    band, first, second = found.state()["pairs"]
    order = job.base.layout.order
    scores = source.score_pairs(order[first], order[second])
    if source.distance:
        scores = -scores
    place = np.lexsort((scores, band))
    cuts = np.searchsorted(band[place], np.arange(1, bands.shape[0]))
    return Between(bands, found.beyond, tuple(np.split(scores[place], cuts)))
