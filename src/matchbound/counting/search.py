"""Search a gallery: the best candidates of every probe, in one streamed pass.

Probes are cut into blocks. A block reads the whole gallery in pieces, as a float32 product that rules out nearly every
candidate; what may be among the best is scored exactly in float64, so that the lists do not depend on blocks, threads
or the order of the sums of the product. Only the lists are kept.

The oriented value of a probe and a column is as in `matchbound.counting.factors`. Its product in float32 is at most
`band` away. On processors with 8-bit dot-product instructions, probes and columns are rounded and ruled out as in
`matchbound.counting.screen`, with u_x = h_x − max‖t·p‖·‖e‖ and u_y = h_y − max‖x‖·‖f‖.

A gallery is not copied: floats are made piece by piece, again for each block of probes; bytes are kept, a quarter of
float32.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.checkpoint import fingerprint
from matchbound.counting.executors import Resume, RunOptions, run_all
from matchbound.counting.factors import rounding_band
from matchbound.counting.run import Partial
from matchbound.counting.screen import best_kind, best_step
from matchbound.counting.threads import available_cores, in_slices, one_blas_thread
from matchbound.data.candidates import MOST_HITS, Reached
from matchbound.data.embeddings import BLOCK_ROWS, Embeddings, Similarity
from matchbound.errors import DataError
from matchbound.scratch import room_for

if TYPE_CHECKING:
    from matchbound.kernels.screen import Screen
    from matchbound.kernels.search import Enrolled, Searched


Float32Array = NDArray[np.float32]
PIECE_COLUMNS = 1024
SAMPLE_COLUMNS = 1024
FEWEST_FOR_BYTES = 1024
MOST_DIMENSIONS = 8192
LARGEST = 2.0**28
# No row is longer than this, after scaling and rounding to float32.
REACH = 1.0 + 1e-6


class Scores:
    """Products of probes and pieces of a gallery, and how far they can be below the exact values.

    `gallery`, `probes`, `owner` and `own` are as for `SearchJob`.

    - mean: whether scores of several templates are averaged: columns are then people, else templates.
    """

    def __init__(
        self,
        gallery: NDArray[Any],
        probes: NDArray[Any],
        owner: IntArray,
        own: IntArray,
        size: int,
        similarity: Similarity,
        mean: bool,
    ) -> None:
        from matchbound.kernels.exact import CODES, frozen, row_lengths
        from matchbound.kernels.search import Enrolled, Searched

        kind = CODES[similarity]
        order = np.argsort(owner, kind="stable")
        sorted_owner = owner[order]
        begins = np.flatnonzero(np.append(True, sorted_owner[1:] != sorted_owner[:-1]))
        start = np.append(begins if mean else np.arange(order.size), order.size).astype(np.int64)
        people = sorted_owner[begins] if mean else sorted_owner
        self.similarity = similarity
        self.columns = int(people.size)
        lengths, scales = row_lengths(gallery, kind)
        self.enrolled: Enrolled = Enrolled(
            frozen(gallery), frozen(lengths), frozen(scales), frozen(people), frozen(order), frozen(start), kind,
            people.size > begins.size,
        )  # fmt: skip
        lengths, scales = row_lengths(probes, kind)
        self.probes: Searched = Searched(frozen(probes), frozen(lengths), frozen(scales), frozen(own))
        self.first_column = np.searchsorted(people, np.arange(size + 1)).astype(np.int64)
        self.centre = np.zeros(gallery.shape[1])
        self.scale = 1.0
        if similarity == "euclidean":
            step = max(1, gallery.shape[0] // 2048)
            self.centre = np.mean(gallery[::step], axis=0, dtype=np.float64)
        if similarity != "cosine":
            largest = max(_largest(gallery, self.centre), _largest(probes, self.centre))
            length = largest * np.sqrt(gallery.shape[1])
            self.scale = 2.0 ** min(-float(np.frexp(length)[1]), 1020.0) if largest > 0.0 else 1.0

    @cached_property
    def band(self) -> float:
        """How far a product can be from the oriented value (`matchbound.counting.factors.Factors.band`)."""
        width = self.enrolled.raw.shape[1] + (2 if self.similarity == "euclidean" else 0)
        under = 0.0 if self.similarity == "cosine" else float((width + 8) * (2.0**-1074 * self.scale) * self.scale)
        reach = 1.0 + 1e-9
        return 1.01 * rounding_band(width, self.similarity, reach, reach) + under

    def rows(self, start: int, stop: int) -> Float32Array:
        """Factors of probes, float32, shape (b, w)."""
        probes, part = self.probes, slice(start, stop)
        return self._finished(self._unit(probes.raw[part], probes.lengths[part], probes.scales[part]), False)

    def piece(self, columns: IntArray | slice) -> Float32Array:
        """Factors of columns, float32, shape (c, w)."""
        enrolled = self.enrolled
        begins, ends = enrolled.start[:-1][columns], enrolled.start[1:][columns]
        if bool(np.all(ends - begins == 1)):
            at = enrolled.order[begins]
            place: Any = at
            if at.size and int(at[-1] - at[0]) == at.size - 1 and bool(np.all(at[1:] > at[:-1])):
                place = slice(int(at[0]), int(at[-1]) + 1)
            return self._finished(
                self._unit(enrolled.raw[place], enrolled.lengths[place], enrolled.scales[place]), True
            )
        counts = ends - begins
        firsts = np.cumsum(counts) - counts
        at = enrolled.order[np.repeat(begins - firsts, counts) + np.arange(int(counts.sum()))]
        unit = self._unit(enrolled.raw[at], enrolled.lengths[at], enrolled.scales[at])
        return self._finished(np.add.reduceat(unit, firsts, axis=0) / counts[:, None], True)

    def product(self, rows: Float32Array, start: int, stop: int) -> Float32Array:
        """Oriented values of some probes and columns start..stop − 1, flat, (stop − start) per row."""
        product: Float32Array = np.dot(rows, self.piece(slice(start, stop)).T)
        return product.reshape(-1)

    @cached_property
    def _sample(self) -> Float32Array:
        """Columns at even distances."""
        return self.piece(np.linspace(0, self.columns - 1, min(SAMPLE_COLUMNS, self.columns)).astype(np.int64))

    def guess(self, rows: Float32Array, people: float) -> FloatArray:
        """For each probe an oriented value that about so many columns reach; −∞ in small galleries."""
        from matchbound.kernels.search import nth_largest

        sample = self._sample
        place = int(np.ceil(people * sample.shape[0] / self.columns))
        if self.columns < 4 * SAMPLE_COLUMNS or place > sample.shape[0] // 4:
            return np.full(rows.shape[0], -np.inf)
        out = np.empty(rows.shape[0])
        nth_largest(np.dot(rows, sample.T), max(place, 1), out)
        return out

    @cached_property
    def bytes(self) -> Bytes | None:
        """The columns as bytes, where this processor multiplies them and the gallery is large enough."""
        d = self.enrolled.raw.shape[1]
        if self.columns < FEWEST_FOR_BYTES or not 4 <= d <= MOST_DIMENSIONS or best_kind() is None:
            return None
        return make_bytes(self)

    def _unit(self, rows: NDArray[Any], lengths: FloatArray, scales: FloatArray) -> FloatArray:
        wide = np.asarray(rows, dtype=np.float64)
        if self.similarity == "cosine":
            return np.asarray(wide * (scales[:, None] / lengths[:, None]))
        return np.asarray((wide - self.centre) * self.scale)

    def _finished(self, rows: FloatArray, right: bool) -> Float32Array:
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


@dataclass(frozen=True, eq=False)
class Bytes:
    """Columns as bytes, for screens of probes.

    - kind: which instructions; panels (uint8, flat), starts (int32, flat): see `matchbound.kernels.screen.Screen`.
    - step, row_step: t and s, the steps of columns and of probes.
    - longest: the largest ‖t·p‖ of all columns.
    - steps: words of four bytes per row.
    """

    kind: type[Screen]
    panels: NDArray[np.uint8] = field(repr=False)
    starts: NDArray[np.int32] = field(repr=False)
    step: float
    row_step: float
    longest: float
    steps: int

    @property
    def unit(self) -> float:
        """What one unit of a sum is worth among oriented values."""
        return self.step * self.row_step

    def screen(self, rows: Float32Array, d: int) -> tuple[Screen, FloatArray, IntArray]:
        """A screen of probes with cuts still to be set; u in units, rounded down, and what is added to cuts."""
        from matchbound.kernels.screen import BIAS, SAFE_CHUNK, round_rows, sum_chunks

        n, kind = rows.shape[0], self.kind
        whole = np.empty((n, 4 * self.steps), dtype=np.int8)
        error, length, square = np.empty(n), np.empty(n), np.empty(n)
        round_rows(np.ascontiguousarray(rows[:, :d]), self.row_step, kind.most, whole, error, length, square)
        offset = -max(self.longest, REACH) * error
        if rows.shape[1] > d:
            offset = offset - rows[:, d + 1].astype(np.float64)
        begins, chunk = np.empty(0, dtype=np.int16), self.steps
        if kind.wraps:
            chunk = min(SAFE_CHUNK, self.steps)
            sums = np.empty((n, -(-self.steps // chunk), 2), dtype=np.int64)
            sum_chunks(whole, 0, n, chunk, sums, np.empty_like(sums))
            begins = (-128 * sums - BIAS).astype(np.int16).reshape(-1)
            shift = np.full(n, -2 * BIAS * sums.shape[1])
        else:
            shift = kind.zero * whole.sum(axis=1, dtype=np.int64)
        cuts = np.empty(n, dtype=np.int32)
        made = kind(
            whole.reshape(-1), self.panels, self.starts, cuts, begins, self.steps, chunk, kind.lanes * kind.vectors
        )
        return made, offset / self.unit, shift


def make_bytes(scores: Scores, workers: int | None = None) -> Bytes | None:
    """The columns of a gallery as bytes; None where the numbers would not fit 32 bits."""
    from matchbound.kernels.screen import pack_panels, round_rows

    kind = best_kind()
    d, n = scores.enrolled.raw.shape[1], scores.columns
    sample = np.ascontiguousarray(scores._sample[:, :d])
    if kind is None or not sample.any():
        return None
    step = best_step(sample, 127)
    row_step = step if kind.most == 127 else best_step(sample, kind.most)
    words, width = -(-d // 4), kind.lanes * kind.vectors
    panels = room_for((-(-n // width), words, width, 4), np.uint8)
    error, length, square, half = np.empty(n), np.empty(n), np.empty(n), np.zeros(n)
    count = PIECE_COLUMNS // width

    def fill(start: int, stop: int) -> None:
        for first in range(start, stop):
            part = slice(first * PIECE_COLUMNS, min((first + 1) * PIECE_COLUMNS, n))
            rows = scores.piece(part)
            whole = np.empty((rows.shape[0], 4 * words), dtype=np.int8)
            round_rows(np.ascontiguousarray(rows[:, :d]), step, 127, whole, error[part], length[part], square[part])
            if rows.shape[1] > d:
                half[part] = -rows[:, d].astype(np.float64)
            some = panels[first * count : first * count + -(-rows.shape[0] // width)]
            pack_panels(whole, 0, some.shape[0], kind.zero, some)

    in_slices(fill, -(-n // PIECE_COLUMNS), workers, 1)
    offset = (half - REACH * error) / (step * row_step)
    if not np.abs(offset).max() < LARGEST:
        return None
    starts = np.full(panels.shape[0] * width, -(2**30), dtype=np.int32)
    starts[:n] = -np.floor(offset).astype(np.int64)
    return Bytes(kind, panels.reshape(-1), starts, step, row_step, float(length.max()) * (1 + 1e-6), words)


Fuse = Literal["max", "mean"]
# How many candidates of each search are kept by default.
DEPTH = 50
MOST_ROWS = 512
# A guess at the last place of a list aims at this many times as many candidates.
GUESS = 2.5


@dataclass(frozen=True, eq=False)
class SearchJob:
    """All that a worker needs to search with any block of probes.

    - gallery, probes, float32 or float64, shapes (m, d) and (n, d)
    - owner, shape (m,): the enrolled person of each template, 0..size − 1.
    - own, shape (n,): the enrolled person whom each probe shows, or −1. That person is not a candidate of the probe.
    - fuse: how scores of several templates of one person become one.
    - size: N; depth: how many candidates are kept; rows: probes per block.
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
        return -(-int(self.probes.shape[0]) // self.rows)

    def worker(self) -> SearchWorker:
        return SearchWorker(self)

    @cached_property
    def scores(self) -> Scores:
        mean = self.fuse == "mean"
        return Scores(self.gallery, self.probes, self.owner, self.own, self.size, self.similarity, mean)

    @property
    def searches(self) -> int:
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
class Found(Partial):
    """By block of probes (mate, holder, score), shapes (b,), (b, k), (b, k); see `matchbound.data.candidates`."""

    parts: dict[int, tuple[FloatArray, IntArray, FloatArray]] = field(default_factory=dict)
    blocks: set[int] = field(default_factory=set)
    sound: bool = True

    def copy(self) -> Found:
        """The same; the lists themselves never change."""
        return Found(dict(self.parts), set(self.blocks), self.sound)

    def join(self, other: Found, workers: int | None) -> None:
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
        _scorable(gallery.vectors), _scorable(probes.vectors), owner, own, size, gallery.similarity, fuse, depth, rows
    )


def _scorable(vectors: NDArray[Any]) -> NDArray[Any]:
    if vectors.dtype != np.float16:
        return vectors
    wide = room_for((vectors.shape[0], vectors.shape[1]))
    wide[:] = vectors
    return wide


def search_all(job: SearchJob, options: RunOptions) -> tuple[FloatArray, IntArray, FloatArray]:
    """(mate, holder, score) of all probes, shapes (n,), (n, k) and (n, k); see `matchbound.data.candidates`."""

    def mark() -> str:
        return fingerprint(
            "search", job.gallery, job.probes, job.owner, job.own,
            job.size, job.similarity, job.fuse, job.depth, job.rows,
        )  # fmt: skip

    size = 8 * job.probes.shape[0] * (2 * job.depth + 1)
    found = run_all(job, Found, options, Resume(mark, lambda state, blocks: Found.restore(state, blocks, job), size))
    parts = [found.parts[block] for block in range(job.n_blocks)]
    none = (np.empty(0), np.empty((0, job.depth), dtype=np.int64), np.empty((0, job.depth)))
    mate, holder, score = (np.concatenate([none[k], *(part[k] for part in parts)]) for k in range(3))
    return mate, holder, score
