"""Search a gallery: the best candidates of every probe, in one streamed pass.

Probes are cut into blocks. A block meets the whole gallery in pieces: products of rows rounded to bytes rule out nearly
every candidate, and what may be among the best is scored exactly in float64, so that the lists do not depend on blocks,
threads or rounding. Only the lists are kept.

The oriented value of a probe and a column is as in `matchbound.counting.factors`. Probes and columns are rounded and
ruled out as in `matchbound.counting.screen`, with u_x = h_x − max‖t·p‖·‖e‖ and u_y = h_y − max‖x‖·‖f‖. Of long vectors
the first `MOST_BYTES` coordinates are rounded to bytes, and the others belong to what rounding loses. (Bytes take a
third of the time of float32 products of a gallery that is kept in float32: 2,000 probes, 100,000 people, 256 numbers.)

A gallery is not copied: its bytes are kept, a quarter of float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.checkpoint import fingerprint
from matchbound.counting.factors import rounding_band, scorable
from matchbound.counting.run import Partial, RunOptions, run_all
from matchbound.counting.screen import Rounded, best_kind, best_step
from matchbound.counting.threads import in_slices
from matchbound.data.embeddings import BLOCK_ROWS, Embeddings, Similarity
from matchbound.scratch import room_for

if TYPE_CHECKING:
    from matchbound.kernels.search import Columns, Enrolled, Lists, Searched

Float32Array = NDArray[np.float32]
PIECE_COLUMNS = 1024
SAMPLE_COLUMNS = 1024
MOST_BYTES = 8192
# No step is finer, so that sums of products of bytes, and what is added to them, fit 32 bits.
FINEST_STEP = 2.0**-13
# No row is longer than this, after scaling and rounding to float32.
REACH = 1.0 + 1e-6
Fuse = Literal["max", "mean"]
# How many candidates of each search are kept by default.
DEPTH = 50
MOST_ROWS = 512
# A guess at the last place of a list aims at this many times as many candidates. Without a guess, lists fill with
# whoever comes first: 20,000 probes, 10,000 people and 128 numbers take twice the time.
GUESS = 2.5


class ByteGallery:
    """A gallery as bytes, which rule candidates out, and all that exact scores need.

    Columns stand for templates, or for people where scores of several templates are averaged.
    """

    def __init__(self, job: SearchJob) -> None:
        from matchbound.kernels.exact import CODES, frozen, row_lengths
        from matchbound.kernels.search import Enrolled, Searched

        self.similarity, self.mean = job.similarity, job.fuse == "mean"
        order = np.argsort(job.owner, kind="stable")
        owner = job.owner[order]
        begins = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
        start = np.append(begins if self.mean else np.arange(order.size), order.size).astype(np.int64)
        people = owner[begins] if self.mean else owner
        kind = CODES[job.similarity]
        lengths, scales = row_lengths(job.gallery, kind)
        self.enrolled: Enrolled = Enrolled(
            frozen(job.gallery), frozen(lengths), frozen(scales), frozen(people), frozen(order), frozen(start), kind,
            people.size > begins.size,
        )  # fmt: skip
        lengths, scales = row_lengths(job.probes, kind)
        self.probes: Searched = Searched(frozen(job.probes), frozen(lengths), frozen(scales), frozen(job.own))
        self.first_column = np.searchsorted(people, np.arange(job.size + 1)).astype(np.int64)
        self.columns = int(people.size)
        self.centre, self.scale = np.zeros(job.gallery.shape[1]), 1.0
        if self.similarity == "euclidean":
            step = max(1, job.gallery.shape[0] // 2048)
            self.centre = np.mean(job.gallery[::step], axis=0, dtype=np.float64)
        if self.similarity != "cosine":
            largest = max(_largest(job.gallery, self.centre), _largest(job.probes, self.centre))
            length = largest * np.sqrt(self.centre.size)
            self.scale = 2.0 ** min(-float(np.frexp(length)[1]), 1020.0) if largest > 0.0 else 1.0
        # Columns at even distances, from which the steps and `guess` are taken.
        places = np.linspace(0, self.columns - 1, min(SAMPLE_COLUMNS, self.columns)).astype(np.int64)
        self.sample, self.sample_half = self._columns(places)
        self._round()

    def _round(self) -> None:
        """Make the bytes of all columns."""
        from matchbound.kernels.screen import Portable, pack_panels

        self.kind = best_kind() or Portable
        head = np.ascontiguousarray(self.sample[:, :MOST_BYTES])
        self.step, self.row_step = (max(best_step(head, most), FINEST_STEP) for most in (127, self.kind.most))
        n, self.words, width = self.columns, -(-head.shape[1] // 4), self.kind.lanes * self.kind.vectors
        panels = room_for((-(-n // width), self.words, width, 4), np.uint8)
        length, offset, count = np.empty(n), np.empty(n), PIECE_COLUMNS // width

        def fill(start: int, stop: int) -> None:
            for piece in range(start, stop):
                places = np.arange(piece * PIECE_COLUMNS, min((piece + 1) * PIECE_COLUMNS, n))
                rows, half = self._columns(places)
                rounded = self._rounded(rows, self.step, 127)
                length[places], offset[places] = rounded.length, half - REACH * rounded.error
                some = panels[piece * count : piece * count + -(-places.size // width)]
                pack_panels(rounded.whole, 0, some.shape[0], self.kind.zero, some)

        in_slices(fill, -(-n // PIECE_COLUMNS), None, 1)
        self.panels, self.longest = panels.reshape(-1), max(float(length.max()) * (1 + 1e-6), REACH)
        self.starts = np.full(panels.shape[0] * width, -(2**30), dtype=np.int32)
        self.starts[:n] = -np.floor(offset / self.unit).astype(np.int64)

    @property
    def unit(self) -> float:
        """What one unit of a sum of bytes is worth among oriented values."""
        return self.step * self.row_step

    @cached_property
    def band(self) -> float:
        """How far rounding can put an oriented value off (`matchbound.counting.factors.Factors.band`)."""
        width = self.centre.size + (2 if self.similarity == "euclidean" else 0)
        under = 0.0 if self.similarity == "cosine" else float((width + 8) * (2.0**-1074 * self.scale) * self.scale)
        reach = 1.0 + 1e-9
        return 1.01 * rounding_band(width, self.similarity, reach, reach) + under

    def guess(self, places: IntArray, people: float) -> FloatArray:
        """For each probe an oriented value that about so many columns reach; −∞ in small galleries."""
        place = max(int(np.ceil(people * self.sample.shape[0] / self.columns)), 1)
        if self.columns < 4 * SAMPLE_COLUMNS or place > self.sample.shape[0] // 4:
            return np.full(places.size, -np.inf)
        rows, half = self._probes(places)
        values = rows @ self.sample.T - self.sample_half.astype(np.float32)
        values.partition(values.shape[1] - place, axis=1)
        return np.asarray(values[:, -place] - half)

    def passed(self, places: IntArray, lists: Lists) -> Iterator[Columns]:
        """The gallery piece by piece, with bits of the columns that may belong into the lists of some probes."""
        from matchbound.kernels.blocks import Tile
        from matchbound.kernels.screen import STRIP, WORD, fill_bits
        from matchbound.kernels.search import Columns, set_cuts

        screen, offset, shift = self._screen(places)
        n, bits = places.size, np.empty((places.size + STRIP) * (PIECE_COLUMNS // WORD), dtype=np.uint64)
        for at in range(0, self.columns, PIECE_COLUMNS):
            count = min(PIECE_COLUMNS, self.columns - at)
            words = -(-count // WORD)
            columns = Columns(bits, WORD * words, at, count, self.band, self.scale)
            set_cuts(lists, columns, self.enrolled.kind, offset, shift, 1.0 / self.unit, screen.cuts)
            fill_bits(screen, Tile(0, n, at, count, False, False, 0.0, 0.0), words, bits)
            yield columns

    def _screen(self, places: IntArray) -> tuple[Any, FloatArray, IntArray]:
        """A screen of probes with cuts still to be set; u in units, and what is added to cuts."""
        rows, half = self._probes(places)
        whole, error, _ = self._rounded(rows, self.row_step, self.kind.most)
        shift = self.kind.zero * whole.sum(axis=1, dtype=np.int64)
        cuts, width = np.empty(places.size, dtype=np.int32), self.kind.lanes * self.kind.vectors
        screen = self.kind(whole.reshape(-1), self.panels, self.starts, cuts, self.words, width)
        return screen, (half - self.longest * error) / self.unit, shift

    def _rounded(self, rows: Float32Array, step: float, most: int) -> Rounded:
        from matchbound.kernels.screen import round_rows

        head, tail = np.ascontiguousarray(rows[:, :MOST_BYTES]), rows[:, MOST_BYTES:]
        n = rows.shape[0]
        rounded = Rounded(np.empty((n, 4 * self.words), dtype=np.int8), np.empty(n), np.empty(n))
        round_rows(head, step, most, *rounded)
        beyond = np.linalg.norm(tail.astype(np.float64), axis=1)
        return rounded._replace(error=np.hypot(rounded.error, beyond) * (1 + 1e-9))

    def _probes(self, places: IntArray) -> tuple[Float32Array, FloatArray]:
        """Factors of probes."""
        return self._factors(self._unit(self.probes, places))

    def _columns(self, columns: IntArray) -> tuple[Float32Array, FloatArray]:
        """Factors of columns; of several templates, of their mean."""
        begins = self.enrolled.start[columns]
        counts = self.enrolled.start[columns + 1] - begins
        firsts = np.cumsum(counts) - counts
        places = np.repeat(begins - firsts, counts) + np.arange(int(counts.sum()))
        unit = self._unit(self.enrolled, self.enrolled.order[places])
        if self.mean:
            unit = np.add.reduceat(unit, firsts, axis=0) / counts[:, None]
        return self._factors(unit)

    def _unit(self, data: Enrolled | Searched, places: IntArray) -> FloatArray:
        """Rows scaled, and centred for distances, so that none is longer than 1."""
        wide = np.asarray(data.raw[places], dtype=np.float64)
        if self.similarity == "cosine":
            return np.asarray(wide * (data.scales[places] / data.lengths[places])[:, None])
        return np.asarray((wide - self.centre) * self.scale)

    def _factors(self, unit: FloatArray) -> tuple[Float32Array, FloatArray]:
        """Rows in float32, and h: half their squared lengths for distances, else 0."""
        euclidean = self.similarity == "euclidean"
        half = 0.5 * np.einsum("ij,ij->i", unit, unit) if euclidean else np.zeros(unit.shape[0])
        return unit.astype(np.float32), half


def _largest(rows: NDArray[Any], centre: FloatArray) -> float:
    largest = 0.0
    for start in range(0, rows.shape[0], BLOCK_ROWS):
        part = np.abs(np.asarray(rows[start : start + BLOCK_ROWS], dtype=np.float64) - centre)
        largest = max(largest, float(part.max(initial=0.0)))
    return largest


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

    def parts(self) -> tuple[Any, ...]:
        """All of it, in order."""
        return tuple(getattr(self, part.name) for part in fields(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """What goes to another process is the data; the rest is made there."""
        return SearchJob, self.parts()

    @property
    def n_blocks(self) -> int:
        return -(-int(self.probes.shape[0]) // self.rows)

    def worker(self) -> SearchWorker:
        return SearchWorker(self)

    @cached_property
    def prepared(self) -> ByteGallery:
        return ByteGallery(self)

    def every_score(self, searches: IntArray) -> FloatArray:
        """The oriented scores of some probes with everybody who is enrolled, shape (b, N); −∞ with their own."""
        from matchbound.kernels.search import every_score

        gallery, scores = self.prepared, np.empty((searches.size, self.size))

        def fill(start: int, stop: int) -> None:
            every_score(gallery.probes, gallery.enrolled, searches[start:stop], scores[start:stop])

        in_slices(fill, searches.size, None)
        return scores


# (mate, holder, score) of some probes, shapes (b,), (b, k), (b, k); see `matchbound.data.candidates`.
Best = tuple[FloatArray, IntArray, FloatArray]
NAMES = ("mate", "holder", "score")


@dataclass(eq=False)
class BestFound(Partial):
    """The best candidates by block of probes, `depth` of each."""

    depth: int
    parts: dict[int, Best] = field(default_factory=dict)

    def join(self, other: BestFound, workers: int | None) -> None:
        self.parts |= other.parts

    def lists(self) -> Best:
        """One after another, in the order of the blocks."""
        none = np.empty(0), np.empty((0, self.depth), dtype=np.int64), np.empty((0, self.depth))
        several = [none, *(self.parts[block] for block in sorted(self.parts))]
        mate, holder, score = (np.concatenate(part) for part in zip(*several, strict=True))
        return mate, holder, score

    def state(self) -> dict[str, NDArray[Any]]:
        return dict(zip(NAMES, self.lists(), strict=True))

    @staticmethod
    def restore(state: dict[str, NDArray[Any]], blocks: set[int], job: SearchJob) -> BestFound:
        """What `state` gave."""
        total, order = int(job.probes.shape[0]), sorted(blocks)
        ends = np.cumsum([min((block + 1) * job.rows, total) - block * job.rows for block in order], dtype=np.int64)
        lists = zip(*(np.split(state[name], ends[:-1]) for name in NAMES), strict=True)
        return BestFound(job.depth, dict(zip(order, lists, strict=False)), blocks=blocks)


class SearchWorker:
    """Searches with one block of probes at a time."""

    def __init__(self, job: SearchJob) -> None:
        self.partial = BestFound(job.depth)
        self._job, self._gallery = job, job.prepared

    def add(self, block: int) -> None:
        from matchbound.kernels.search import Lists, keep_best, mate_scores

        job, gallery = self._job, self._gallery
        short = places = np.arange(block * job.rows, min((block + 1) * job.rows, job.probes.shape[0]))
        mate = np.empty(places.size)
        mate_scores(gallery.probes, gallery.enrolled, gallery.first_column, int(places[0]), mate)
        score, holder = np.full((places.size, job.depth), -np.inf), np.full((places.size, job.depth), -1)
        enough = GUESS * job.depth * gallery.columns / job.size
        while short.size:  # lists that a guess leaves unfilled are made again with a lower one
            lists = Lists(np.full((short.size, job.depth), -np.inf), np.full((short.size, job.depth), -1),
                          gallery.guess(short, enough))  # fmt: skip
            for columns in gallery.passed(short, lists):
                keep_best(columns, gallery.probes, gallery.enrolled, short, lists)
            score[short - places[0]], holder[short - places[0]] = lists.score, lists.holder
            short = short[np.isneginf(lists.score[:, -1]) & (lists.least > -np.inf)]
            enough *= 4.0
        self.partial.parts[block] = (mate, holder, score)


def make_job(
    gallery: Embeddings, probes: Embeddings, owner: IntArray, own: IntArray, size: int, fuse: Fuse, depth: int
) -> SearchJob:
    """Prepare a run; see `SearchJob` for the arguments."""
    rows = int(np.clip(len(probes) // 32, 32, MOST_ROWS))
    return SearchJob(
        scorable(gallery.vectors), scorable(probes.vectors), owner, own, size, gallery.similarity, fuse, depth, rows
    )


def search_all(job: SearchJob, options: RunOptions) -> Best:
    """(mate, holder, score) of all probes."""
    found = run_all(
        job,
        options,
        lambda: fingerprint("search", *job.parts()),
        lambda state, blocks: BestFound.restore(state, blocks, job),
    )
    return found.lists()
