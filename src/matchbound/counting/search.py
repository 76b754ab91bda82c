"""Search a gallery: the best candidates of every probe, in one streamed pass.

Probes are cut into blocks. A block reads the whole gallery in pieces, as a float32 product that rules out nearly every
candidate; what may be among the best is scored exactly in float64, so that the lists do not depend on blocks, threads
or the order of the sums of the product. Only the lists are kept.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.checkpoint import fingerprint
from matchbound.counting.held import Held
from matchbound.counting.running import SNAPSHOT_SECONDS, How, Kind, run_all
from matchbound.counting.search_scores import PIECE_COLUMNS, Bytes, Scores
from matchbound.counting.threads import available_cores, one_blas_thread
from matchbound.counts.searches import Reached
from matchbound.data.candidates import MOST_HITS
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.errors import DataError
from matchbound.scratch import room_for

if TYPE_CHECKING:
    from matchbound.counting.executors import Executor, Progress

Fuse = Literal["max", "mean"]
DEPTH = 50
"""How many candidates of each search are kept by default."""
MOST_ROWS = 512
GUESS = 2.5
"""A guess at the last place of a list aims at this many times as many candidates."""


@dataclass(frozen=True, eq=False)
class SearchJob:
    """All that a worker needs to search with any block of probes.

    gallery, probes : float32 or float64 arrays, shapes (m, d) and (n, d)
    owner : int64 array, shape (m,)
        The enrolled person of each template, 0..size − 1.
    own : int64 array, shape (n,)
        The enrolled person whom each probe shows, or −1. That person is no candidate of the probe.
    size : int
        N.
    fuse : {"max", "mean"}
        How scores of several templates of one person become one.
    depth : int
        How many candidates are kept.
    rows : int
        Probes per block.
    """

    gallery: NDArray[Any] = field(repr=False)
    probes: NDArray[Any] = field(repr=False)
    owner: IntArray = field(repr=False)
    own: IntArray = field(repr=False)
    size: int
    similarity: Similarity
    fuse: Fuse
    depth: int
    rows: int

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return -(-int(self.probes.shape[0]) // self.rows)

    def worker(self) -> SearchWorker:
        """A new worker with nothing found yet."""
        return SearchWorker(self)

    @cached_property
    def scores(self) -> Scores:
        """What all workers of one process share."""
        mean = self.fuse == "mean"
        return Scores(self.gallery, self.probes, self.owner, self.own, self.size, self.similarity, mean)

    @property
    def searches(self) -> int:
        """n."""
        return int(self.probes.shape[0])

    def reached(self, least: FloatArray, strict: bool, workers: int | None = None) -> Reached:
        """Enrolled people, the mate left out, who reach (or exceed) the least score of each probe, shape (n,)."""
        from matchbound.kernels.search import Columns, list_hits

        scores, hits = self.scores, np.zeros(self.searches, dtype=np.int64)

        def block(start: int) -> IntArray:
            stop = min(start + MOST_ROWS, self.searches)
            rows = scores.rows(start, stop)
            found: list[IntArray] = [np.empty((0, 2), dtype=np.int64)]
            for at in range(0, scores.columns, PIECE_COLUMNS):
                end = min(at + PIECE_COLUMNS, scores.columns)
                columns = Columns(scores.product(rows, at, end), end - at, at, end - at, scores.band, scores.scale)
                count, room = 4096, found[0]
                while count > room.shape[0]:
                    room = np.empty((count, 2), dtype=np.int64)
                    count = list_hits(
                        columns, scores.probes, scores.enrolled, start, least[start:stop], strict, room, 0
                    )
                found.append(room[:count].copy())
            pairs = np.concatenate(found)
            return np.unique(pairs, axis=0) if scores.enrolled.shared else pairs

        lists: list[IntArray] = []
        with one_blas_thread(), ThreadPoolExecutor(workers or available_cores()) as pool:
            for pairs in pool.map(block, range(0, self.searches, MOST_ROWS)):
                hits += np.bincount(pairs[:, 0], minlength=hits.size)
                lists.append(pairs if hits.sum() <= MOST_HITS else pairs[:0])
        if hits.sum() > MOST_HITS:
            return Reached(hits, None, None)
        probe, holder = np.concatenate([np.empty((0, 2), dtype=np.int64), *lists]).T
        return Reached(hits, probe, holder)

    def __reduce__(self) -> tuple[Any, ...]:
        """What goes to another process is the data; the rest is made there."""
        data = (self.gallery, self.probes, self.owner, self.own)
        return SearchJob, (*data, self.size, self.similarity, self.fuse, self.depth, self.rows)


@dataclass(eq=False)
class Found(Held):
    """The lists of some blocks of probes.

    parts : dict from block to (mate, holder, score)
        Arrays of shapes (b,), (b, k) and (b, k); see `matchbound.counts.searches`.
    """

    parts: dict[int, tuple[FloatArray, IntArray, FloatArray]] = field(default_factory=dict)
    blocks: set[int] = field(default_factory=set)
    sound: bool = True

    def copy(self) -> Found:
        """The same; the lists themselves never change."""
        return Found(dict(self.parts), set(self.blocks), self.sound)

    def join(self, other: Found, workers: int | None) -> None:
        """Take over what other blocks found."""
        self.parts |= other.parts

    def state(self) -> dict[str, NDArray[Any]]:
        """The lists of its blocks, one after another in the order of the blocks."""
        parts = [self.parts[block] for block in sorted(self.parts)]
        if not parts:
            return {}
        mate, holder, score = (np.concatenate([part[k] for part in parts]) for k in range(3))
        return {"mate": mate, "holder": holder, "score": score}

    @staticmethod
    def restore(state: dict[str, NDArray[Any]], blocks: set[int], job: SearchJob) -> Found:
        """What `state` gave; DataError where it cannot be of this run."""
        n = job.probes.shape[0]
        sizes = {block: min((block + 1) * job.rows, n) - block * job.rows for block in sorted(blocks)}
        total = sum(sizes.values())
        if not total and not state:
            return Found()
        shapes = {"mate": (total,), "holder": (total, job.depth), "score": (total, job.depth)}
        kinds = {"mate": np.float64, "holder": np.int64, "score": np.float64}
        if {name: part.shape for name, part in state.items()} != shapes:
            raise DataError("its lists have other lengths")
        if any(state[name].dtype != kind for name, kind in kinds.items()) or state["holder"].max() >= job.size:
            raise DataError("its lists are of another gallery")
        ends = np.cumsum(list(sizes.values()))
        lists = [np.split(state[name], ends[:-1]) for name in shapes]
        return Found(dict(zip(sizes, zip(*lists, strict=True), strict=True)), blocks)


class SearchWorker:
    """Searches with one block of probes at a time."""

    def __init__(self, job: SearchJob) -> None:
        self.partial = Found()
        self._job = job
        self._scores = job.scores

    def add(self, block: int) -> None:
        """Search with the probes of a block."""
        from matchbound.kernels.search import mate_scores

        job, scores = self._job, self._scores
        start = block * job.rows
        stop = min(start + job.rows, job.probes.shape[0])
        mate = np.empty(stop - start)
        mate_scores(scores.probes, scores.enrolled, scores.first_column, start, mate)
        score = np.full((stop - start, job.depth), -np.inf)
        holder = np.full(score.shape, -1, dtype=np.int64)
        rows, short = scores.rows(start, stop), np.arange(stop - start)
        enough = GUESS * job.depth * scores.columns / job.size
        while short.size:  # lists that a guess leaves unfilled are made again with a lower one
            least = scores.guess(rows[short], enough)
            part, holders = np.full((short.size, job.depth), -np.inf), np.full((short.size, job.depth), -1)
            self._search(rows[short], start + short, least, part, holders)
            score[short], holder[short] = part, holders
            short = short[np.isneginf(part[:, -1]) & (least > -np.inf)]
            enough *= 4.0
        self.partial.parts[block] = (mate, holder, score)

    def _search(
        self, rows: NDArray[np.float32], places: IntArray, least: FloatArray, score: FloatArray, holder: IntArray
    ) -> None:
        """Fill the lists of some probes, whose factors are given."""
        from matchbound.kernels.search import Columns, Lists, keep_best

        scores = self._scores
        coarse = scores.bytes
        if coarse is not None:
            self._search_bytes(coarse, rows, places, least, score, holder)
            return
        for at in range(0, scores.columns, PIECE_COLUMNS):
            end = min(at + PIECE_COLUMNS, scores.columns)
            columns = Columns(scores.product(rows, at, end), end - at, at, end - at, scores.band, scores.scale)
            keep_best(columns, scores.probes, scores.enrolled, places, Lists(score, holder, least))

    def _search_bytes(
        self,
        coarse: Bytes,
        rows: NDArray[np.float32],
        places: IntArray,
        least: FloatArray,
        score: FloatArray,
        holder: IntArray,
    ) -> None:
        from matchbound.kernels.blocks import Tile
        from matchbound.kernels.screen import STRIP, WORD, fill_bits
        from matchbound.kernels.search import Columns, Lists, keep_best_of_bits, set_cuts

        scores, n = self._scores, rows.shape[0]
        screen, offset, shift = coarse.screen(rows, scores.enrolled.raw.shape[1])
        bits = np.empty((n + STRIP) * (PIECE_COLUMNS // WORD), dtype=np.uint64)
        kind, lists = scores.enrolled.kind, Lists(score, holder, least)
        for at in range(0, scores.columns, PIECE_COLUMNS):
            count = min(PIECE_COLUMNS, scores.columns - at)
            wide = -(-count // WORD)
            columns = Columns(bits, WORD * wide, at, count, scores.band, scores.scale)
            set_cuts(lists, columns, kind, offset, shift, 1.0 / coarse.unit, screen.cuts)
            tile = Tile(0, n, at, count, False, False, 0.0, 0.0)
            fill_bits(screen, tile, wide, bits)
            keep_best_of_bits(columns, scores.probes, scores.enrolled, places, lists)


def make_job(
    gallery: Embeddings, probes: Embeddings, owner: IntArray, own: IntArray, size: int, fuse: Fuse, depth: int
) -> SearchJob:
    """Prepare a run; see `SearchJob` for the arguments."""
    n = len(probes)
    rows = int(np.clip(n // 32, 32, MOST_ROWS))
    return SearchJob(
        _scorable(gallery.settled), _scorable(probes.settled), owner, own, size, gallery.similarity, fuse, depth, rows
    )


def _scorable(vectors: NDArray[Any]) -> NDArray[Any]:
    if vectors.dtype != np.float16:
        return vectors
    wide = room_for((vectors.shape[0], vectors.shape[1]))
    wide[:] = vectors
    return wide


def search_all(
    job: SearchJob,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = SNAPSHOT_SECONDS,
) -> tuple[FloatArray, IntArray, FloatArray]:
    """(mate, holder, score) of all probes, shapes (n,), (n, k) and (n, k); see `matchbound.counts.searches`."""
    kind = Kind(
        lambda: fingerprint(
            "search",
            job.gallery,
            job.probes,
            job.owner,
            job.own,
            job.size,
            job.similarity,
            job.fuse,
            job.depth,
            job.rows,
        ),
        lambda state, blocks: Found.restore(state, blocks, job),
        8 * job.probes.shape[0] * (2 * job.depth + 1),
    )
    found = run_all(job, Found, kind, How(workers, executor, progress, checkpoint, checkpoint_every))
    parts = [found.parts[block] for block in range(job.n_blocks)]
    none = (np.empty(0), np.empty((0, job.depth), dtype=np.int64), np.empty((0, job.depth)))
    mate, holder, score = (np.concatenate([none[k], *(part[k] for part in parts)]) for k in range(3))
    return mate, holder, score
