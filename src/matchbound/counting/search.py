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
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.counting.checkpoint import fingerprint
from matchbound.counting.factors import rounding_band
from matchbound.counting.held import Held
from matchbound.counting.running import SNAPSHOT_SECONDS, How, Kind, run_all
from matchbound.counting.threads import available_cores, one_blas_thread
from matchbound.counts.searches import Mated, NonMated, SearchTally
from matchbound.data.candidates import ScoreMatrix
from matchbound.data.embeddings import BLOCK_ROWS, Embeddings, Similarity
from matchbound.errors import DataError
from matchbound.scratch import room_for

if TYPE_CHECKING:
    from matchbound.counting.executors import Executor, Progress
    from matchbound.kernels.search import Enrolled, Searched

Fuse = Literal["max", "mean"]
DEPTH = 50
"""How many candidates of each search are kept by default."""
PIECE_COLUMNS = 2048
MOST_ROWS = 512
MOST_HITS = 50_000_000
"""Hits that are listed one by one; beyond this, only how many there are."""


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
        return Scores(self)

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
            raise DataError("lists of other lengths")
        if any(state[name].dtype != kind for name, kind in kinds.items()) or state["holder"].max() >= job.size:
            raise DataError("lists of other things")
        ends = np.cumsum(list(sizes.values()))
        lists = [np.split(state[name], ends[:-1]) for name in shapes]
        return Found(dict(zip(sizes, zip(*lists, strict=True), strict=True)), blocks)


class Scores:
    """Float32 products of probes and pieces of a gallery, and how far they can be below the exact values."""

    def __init__(self, job: SearchJob) -> None:
        from matchbound.kernels.exact import CODES, frozen, row_lengths
        from matchbound.kernels.search import Enrolled, Searched

        kind = CODES[job.similarity]
        order = np.argsort(job.owner, kind="stable")
        sorted_owner = job.owner[order]
        begins = np.flatnonzero(np.append(True, sorted_owner[1:] != sorted_owner[:-1]))
        mean = job.fuse == "mean"
        start = np.append(begins if mean else np.arange(order.size), order.size).astype(np.int64)
        owner = sorted_owner[begins] if mean else sorted_owner
        self.similarity = job.similarity
        self.columns = int(owner.size)
        lengths, scales = row_lengths(job.gallery, kind)
        self.enrolled: Enrolled = Enrolled(
            frozen(job.gallery), frozen(lengths), frozen(scales), frozen(owner), frozen(order), frozen(start), kind
        )
        lengths, scales = row_lengths(job.probes, kind)
        self.probes: Searched = Searched(frozen(job.probes), frozen(lengths), frozen(scales), frozen(job.own))
        self.first_column = np.searchsorted(owner, np.arange(job.size + 1)).astype(np.int64)
        self.centre = np.zeros(job.gallery.shape[1])
        self.scale = 1.0
        if job.similarity == "euclidean":
            step = max(1, job.gallery.shape[0] // 2048)
            self.centre = np.mean(job.gallery[::step], axis=0, dtype=np.float64)
        if job.similarity != "cosine":
            largest = max(_largest(job.gallery, self.centre), _largest(job.probes, self.centre))
            length = largest * np.sqrt(job.gallery.shape[1])
            self.scale = 2.0 ** min(-float(np.frexp(length)[1]), 1020.0) if largest > 0.0 else 1.0

    def band(self) -> float:
        """How far a product can be from the oriented value (`matchbound.counting.factors.Factors.band`)."""
        width = self.enrolled.raw.shape[1] + (2 if self.similarity == "euclidean" else 0)
        under = 0.0 if self.similarity == "cosine" else float((width + 8) * (2.0**-1074 * self.scale) * self.scale)
        reach = 1.0 + 1e-9
        return 1.01 * rounding_band(width, self.similarity, reach, reach) + under

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        """Factors of probes, float32, shape (b, w)."""
        return self._factors(
            self.probes.raw[start:stop], self.probes.lengths[start:stop], self.probes.scales[start:stop]
        )

    def piece(self, start: int, stop: int) -> NDArray[np.float32]:
        """Factors of columns, float32, shape (c, w)."""
        enrolled = self.enrolled
        begins = enrolled.start[start : stop + 1]
        at = enrolled.order[begins[0] : begins[-1]]
        ordered = at.size and int(at[-1] - at[0]) == at.size - 1 and bool(np.all(at[1:] > at[:-1]))
        at_rows: Any = slice(int(at[0]), int(at[-1]) + 1) if ordered else at
        rows, lengths, scales = enrolled.raw[at_rows], enrolled.lengths[at_rows], enrolled.scales[at_rows]
        if begins.size - 1 == at.size:
            return self._factors(rows, lengths, scales, right=True)
        unit = self._unit(rows, lengths, scales)
        mean = np.add.reduceat(unit, begins[:-1] - begins[0], axis=0) / np.diff(begins)[:, None]
        return self._finished(mean, True)

    def _unit(self, rows: NDArray[Any], lengths: FloatArray, scales: FloatArray) -> FloatArray:
        wide = np.asarray(rows, dtype=np.float64)
        if self.similarity == "cosine":
            return np.asarray(wide * scales[:, None] / lengths[:, None])
        return np.asarray((wide - self.centre) * self.scale)

    def _factors(
        self, rows: NDArray[Any], lengths: FloatArray, scales: FloatArray, right: bool = False
    ) -> NDArray[np.float32]:
        return self._finished(self._unit(rows, lengths, scales), right)

    def _finished(self, rows: FloatArray, right: bool) -> NDArray[np.float32]:
        """For distances −‖x−y‖²/2 is the product of (x, 1, −‖x‖²/2) and (y, −‖y‖²/2, 1)."""
        if self.similarity != "euclidean":
            return rows.astype(np.float32)
        half = -0.5 * np.einsum("ij,ij->i", rows, rows)
        ends = [half, np.ones(half.size)] if right else [np.ones(half.size), half]
        return np.column_stack([rows, *ends]).astype(np.float32)


def _largest(rows: NDArray[Any], centre: FloatArray) -> float:
    largest = 0.0
    for start in range(0, rows.shape[0], BLOCK_ROWS):
        part = np.abs(np.asarray(rows[start : start + BLOCK_ROWS], dtype=np.float64) - centre)
        largest = max(largest, float(part.max(initial=0.0)))
    return largest


class SearchWorker:
    """Searches with one block of probes at a time."""

    def __init__(self, job: SearchJob) -> None:
        self.partial = Found()
        self._job = job
        self._scores = job.scores

    def add(self, block: int) -> None:
        """Search with the probes of a block."""
        from matchbound.kernels.search import keep_best, mate_scores

        job, scores = self._job, self._scores
        start = block * job.rows
        stop = min(start + job.rows, job.probes.shape[0])
        mate = np.empty(stop - start)
        mate_scores(scores.probes, scores.enrolled, scores.first_column, start, mate)
        score = np.full((stop - start, job.depth), -np.inf)
        holder = np.full(score.shape, -1, dtype=np.int64)
        rows, band = scores.rows(start, stop), scores.band()
        for at in range(0, scores.columns, PIECE_COLUMNS):
            product = np.dot(rows, scores.piece(at, min(at + PIECE_COLUMNS, scores.columns)).T)
            keep_best(product, band, scores.scale, scores.probes, scores.enrolled, start, at, score, holder)
        self.partial.parts[block] = (mate, holder, score)


def make_job(
    gallery: Embeddings, probes: Embeddings, owner: IntArray, own: IntArray, size: int, fuse: Fuse, depth: int
) -> SearchJob:
    """Prepare a run; see `SearchJob` for the arguments."""
    n = len(probes)
    rows = int(np.clip(n // (8 * available_cores()), 32, MOST_ROWS))
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


@dataclass(frozen=True, eq=False)
class Reached:
    """Who reached a score in which searches.

    hits : int64 array, shape (n,)
        How many enrolled people did.
    probe, holder : int64 arrays, shape (H,), or None
        One by one; None where there are too many to list.
    """

    hits: IntArray = field(repr=False)
    probe: IntArray | None = field(repr=False)
    holder: IntArray | None = field(repr=False)


def reached(job: SearchJob, least: FloatArray, strict: bool = False, workers: int | None = None) -> Reached:
    """Enrolled people, other than the probe's own, who reach (or exceed) the least score of each probe, shape (n,)."""
    from matchbound.kernels.search import list_hits

    scores = job.scores
    n = job.probes.shape[0]
    counts = np.zeros(n, dtype=np.int64)
    lists: list[IntArray] = []
    total = 0

    def block(start: int, stop: int) -> IntArray:
        rows, band = scores.rows(start, stop), scores.band()
        found: list[IntArray] = []
        for at in range(0, scores.columns, PIECE_COLUMNS):
            product = np.dot(rows, scores.piece(at, min(at + PIECE_COLUMNS, scores.columns)).T)
            room = np.empty((4096, 2), dtype=np.int64)
            while True:
                count = list_hits(
                    product, band, scores.scale, scores.probes, scores.enrolled, start, at, least[start:stop], strict,
                    room, 0,
                )  # fmt: skip
                if count <= room.shape[0]:
                    break
                room = np.empty((count, 2), dtype=np.int64)
            found.append(room[:count].copy())
        pairs = np.concatenate(found) if found else np.empty((0, 2), dtype=np.int64)
        return np.unique(pairs, axis=0) if job.owner.size > job.size else pairs

    with one_blas_thread(), ThreadPoolExecutor(workers or available_cores()) as pool:
        starts = range(0, n, MOST_ROWS)
        for pairs in pool.map(lambda start: block(start, min(start + MOST_ROWS, n)), starts):
            counts += np.bincount(pairs[:, 0], minlength=n)
            total += pairs.shape[0]
            if total <= MOST_HITS:
                lists.append(pairs)
    if total > MOST_HITS:
        return Reached(counts, None, None)
    pairs = np.concatenate(lists) if lists else np.empty((0, 2), dtype=np.int64)
    return Reached(counts, pairs[:, 0], pairs[:, 1])


class Further(Protocol):
    """Goes back to the data for what is behind the end of the lists."""

    def hits(self, threshold: float) -> Reached:
        """Who reaches an oriented threshold in the searches without a mate."""

    def beaten(self) -> Reached:
        """Which non-mates are ahead of the mate in the searches with one."""


@dataclass(frozen=True, eq=False)
class BehindMatrix:
    """The same for a matrix of scores.

    nonmated, mated : int64 arrays
        The row of each search.
    """

    matrix: ScoreMatrix
    nonmated: IntArray = field(repr=False)
    mated: IntArray = field(repr=False)
    mate: FloatArray = field(repr=False)

    def hits(self, threshold: float) -> Reached:
        """Who reaches an oriented threshold in the searches without a mate."""
        return self._of(self.nonmated, np.full(self.nonmated.size, threshold), False)

    def beaten(self) -> Reached:
        """Which non-mates are ahead of the mate in the searches with one."""
        return self._of(self.mated, np.where(np.isneginf(self.mate), np.inf, self.mate), True)

    def _of(self, rows: IntArray, least: FloatArray, strict: bool) -> Reached:
        counts = np.zeros(rows.size, dtype=np.int64)
        probes, holders, total = [], [], 0
        for start in range(0, rows.size, MOST_ROWS):
            part = rows[start : start + MOST_ROWS]
            table = self.matrix.fused(part)
            own = self.matrix.own[part]
            table[np.flatnonzero(own >= 0), own[own >= 0]] = -np.inf
            cut = least[start : start + MOST_ROWS, None]
            probe, holder = np.nonzero((table > cut) if strict else (table >= cut))
            counts[start : start + part.size] = np.bincount(probe, minlength=part.size)
            total += probe.size
            if total <= MOST_HITS:
                probes.append(probe + start)
                holders.append(holder)
        if total > MOST_HITS:
            return Reached(counts, None, None)
        none = np.empty(0, dtype=np.int64)
        return Reached(counts, np.concatenate([none, *probes]), np.concatenate([none, *holders]))


@dataclass(frozen=True, eq=False)
class Behind:
    """Goes back to the data for what is behind the end of the lists.

    nonmated, mated : int64 arrays, shapes (n,) and (T,)
        The probe of each search, −1 for searches that failed.
    mate : float64 array, shape (T,)
    """

    job: SearchJob
    nonmated: IntArray = field(repr=False)
    mated: IntArray = field(repr=False)
    mate: FloatArray = field(repr=False)

    def hits(self, threshold: float) -> Reached:
        """Who reaches an oriented threshold in the searches without a mate."""
        return self._of(self.nonmated, np.full(self.nonmated.size, threshold), False)

    def beaten(self) -> Reached:
        """Which non-mates are ahead of the mate in the searches with one; where there is no mate, none are listed."""
        return self._of(self.mated, np.where(np.isneginf(self.mate), np.inf, self.mate), True)

    def _of(self, rows: IntArray, least: FloatArray, strict: bool) -> Reached:
        known = rows >= 0
        wanted = np.full(self.job.probes.shape[0], np.inf)
        wanted[rows[known]] = least[known]
        found = reached(self.job, wanted, strict)
        counts = np.zeros(rows.size, dtype=np.int64)
        counts[known] = found.hits[rows[known]]
        if found.probe is None or found.holder is None:
            return Reached(counts, None, None)
        place = np.full(self.job.probes.shape[0], -1, dtype=np.int64)
        place[rows[known]] = np.flatnonzero(known)
        return Reached(counts, place[found.probe], found.holder)


def assemble(
    gallery: LabelArray,
    size: int,
    labels: LabelArray,
    own: IntArray,
    mate: FloatArray,
    holder: IntArray,
    score: FloatArray,
    *,
    rotating: bool,
    distance: bool,
    end: FloatArray | None = None,
    ranks: int | None = None,
    floor: float = -np.inf,
) -> SearchTally:
    """Divide searches into those with a mate and those without.

    Parameters
    ----------
    labels : array, shape (n,)
        Whom each probe shows.
    own : int64 array, shape (n,)
        The position of that person in the gallery, or −1.
    mate, holder, score
        Of each probe, without its own enrolment among the candidates.
    rotating
        Whether searches of enrolled people count as searches without a mate too, their own enrolment left out.
    end
        See `matchbound.counts.searches.NonMated`; by default lists are as long as they are deep, complete where that
        is the gallery.
    ranks
        The largest rank that the lists can decide; by default one less than they are deep, or any.
    """
    depth = score.shape[1]
    if end is None:
        end = np.where(depth < size - (own >= 0), score[:, -1], -np.inf)
    if ranks is None:
        ranks = depth - 1 if np.any(np.isfinite(end)) else max(size, 1)
    mated = own >= 0
    chosen = np.ones(own.size, dtype=bool) if rotating else ~mated
    people, person = np.unique(labels[chosen], return_inverse=True)
    enrolled = np.full(people.size, -1, dtype=np.int64)
    person = person.astype(np.int64).reshape(-1)
    enrolled[person] = own[chosen]
    return SearchTally(
        gallery,
        size,
        NonMated(people, person, enrolled, holder[chosen], score[chosen], end[chosen]),
        Mated(own[mated], mate[mated], holder[mated], score[mated], end[mated]),
        distance,
        ranks,
        floor,
    )
