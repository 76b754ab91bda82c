"""A Parquet table counted piece by piece, by threads or by a cluster: labels, then rows, then identity pairs.

A run has three steps. The first numbers the labels, and takes a sample of the scores where one is asked for. The second
reads each piece, counts its rows by identity, and leaves one word per impostor row (`pair_words`) in a file, parted by
identity pair. The third sorts a part of all files at a time and sums over its identity pairs. What a step holds knows
which pieces or parts are in it, so that a piece that a dead worker counted is counted again, and never twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.counting.checkpoint import fingerprint
from matchbound.counting.held import Held
from matchbound.counting.numbering import joined_labels
from matchbound.counting.pair_words import PairRows, WordBits, Words, part_of
from matchbound.counting.running import ANYHOW, How, Kind, run_all
from matchbound.counts.tally import GenuineTally, ImpostorTally, Tally
from matchbound.data.labels import Coded, label_bytes
from matchbound.errors import DataError, MatchboundError, UsageError
from matchbound.notes import Note
from matchbound.readers.pieces import Said, TablePieces, pieces_of
from matchbound.readers.scan import ScoreFile
from matchbound.readers.tables import Contradictions
from matchbound.scratch import shared_folder

SAMPLE = 4_000_000
"""Scores of either kind that are kept; up to so many, all of them."""
PART_WORDS = 12_000_000
"""About so many words are sorted together."""


@dataclass(eq=False)
class Sampled:
    """Numbers with random priorities, of which the `size` with the least ones are kept: a simple random sample."""

    size: int
    priority: FloatArray = field(default_factory=lambda: np.empty(0))
    value: FloatArray = field(default_factory=lambda: np.empty(0))
    total: int = 0

    def add(self, priority: FloatArray, value: FloatArray, total: int) -> None:
        """Take in more numbers, which stand for `total` of them."""
        self.priority = np.concatenate([self.priority, priority])
        self.value = np.concatenate([self.value, value])
        self.total += total
        if self.value.size > self.size:
            kept = np.argpartition(self.priority, self.size - 1)[: self.size]
            self.priority, self.value = self.priority[kept], self.value[kept]


@dataclass(eq=False)
class Survey(Held):
    """The labels of some pieces, sorted, and samples of their scores (large meaning "same") of both kinds."""

    labels: LabelArray = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)
    genuine: Sampled = field(default_factory=lambda: Sampled(SAMPLE), repr=False)
    impostor: Sampled = field(default_factory=lambda: Sampled(SAMPLE), repr=False)
    least: float = np.inf
    most: float = -np.inf
    blocks: set[int] = field(repr=False, default_factory=set)
    sound: bool = True

    def copy(self) -> Survey:
        """The same; what is joined to it later makes new arrays."""
        return replace(self, genuine=replace(self.genuine), impostor=replace(self.impostor), blocks=set(self.blocks))

    def join(self, other: Survey, workers: int | None) -> None:
        """Take over what `other` holds."""
        self.labels = joined_labels(self.labels, other.labels)
        for mine, theirs in ((self.genuine, other.genuine), (self.impostor, other.impostor)):
            mine.add(theirs.priority, theirs.value, theirs.total)
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)

    def state(self) -> dict[str, NDArray[Any]]:
        """A survey is short, and not written down."""
        return {}


@dataclass(frozen=True, eq=False)
class SurveyJob:
    """Finds the labels of a table, and a sample of its scores where `scores` says so."""

    table: TablePieces
    scores: bool
    distance: bool

    @property
    def n_blocks(self) -> int:
        """One for each piece."""
        return len(self.table.pieces)

    def worker(self) -> _Surveyor:
        """A new worker that holds nothing yet."""
        return _Surveyor(self)


class _Surveyor:
    def __init__(self, job: SurveyJob) -> None:
        self._job, self.partial = job, Survey()

    def add(self, block: int) -> None:
        """Look at a piece."""
        held, job = self.partial, self._job
        if not job.scores:
            for a, b in job.table.labels(block):
                held.labels = joined_labels(held.labels, *(np.unique(_used(side)) for side in (a, b)))
            return
        rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(block,)))
        for batch in job.table.batches(block, Said()):
            mine = joined_labels(*(np.unique(_used(side)) for side in (batch.a, batch.b)))
            held.labels = joined_labels(held.labels, mine)
            same = _places(mine, batch.a) == _places(mine, batch.b)
            similarity = -batch.score if job.distance else batch.score
            priority = rng.random(similarity.size)
            for kept, chosen in ((held.genuine, same), (held.impostor, ~same)):
                count = int(np.count_nonzero(chosen))
                kept.add(priority[chosen], similarity[chosen], count)
            held.least = min(held.least, float(similarity.min(initial=np.inf)))
            held.most = max(held.most, float(similarity.max(initial=-np.inf)))


@dataclass(eq=False)
class RowCounts(Held):
    """Rows of some pieces by identity and thresholds reached; int64 arrays, shapes (K + 1, G)."""

    genuine: IntArray = field(repr=False)
    impostor: IntArray = field(repr=False)
    said: Said = field(default_factory=Said, repr=False)
    blocks: set[int] = field(repr=False, default_factory=set)
    sound: bool = True

    @staticmethod
    def empty(shape: tuple[int, int]) -> RowCounts:
        """Nothing counted yet."""
        return RowCounts(np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64))

    @staticmethod
    def restore(state: Mapping[str, NDArray[Any]], blocks: set[int], shape: tuple[int, int]) -> RowCounts:
        """What `state` gave; DataError where it cannot be of this run."""
        whole = [state.get("genuine"), state.get("impostor")]
        if set(state) != {"genuine", "impostor", "said"} or any(
            part is None or part.shape != shape or part.dtype != np.int64 for part in whole
        ):
            raise DataError("counts of another shape")
        rows, strange, padded = json.loads(bytes(state["said"]))
        said = Said(Contradictions(rows, strange), dict.fromkeys(Note(code, text) for code, text in padded))
        return RowCounts(state["genuine"].copy(), state["impostor"].copy(), said, blocks)

    def copy(self) -> Self:
        """The same, in arrays of its own."""
        said = Said()
        said.add(self.said)
        return replace(
            self, genuine=self.genuine.copy(), impostor=self.impostor.copy(), said=said, blocks=set(self.blocks)
        )

    def join(self, other: Self, workers: int | None) -> None:
        """Take over what `other` holds."""
        self.genuine += other.genuine
        self.impostor += other.impostor
        self.said.add(other.said)

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it but the blocks, as arrays for a file."""
        told = self.said.contradictions
        text = json.dumps([told.rows, told.strange, [(note.code, note) for note in self.said.padded]]).encode()
        return {"genuine": self.genuine, "impostor": self.impostor, "said": np.frombuffer(text, dtype=np.uint8)}


@dataclass(frozen=True, eq=False)
class RowJob:
    """Counts the rows of pieces, and leaves their words in a folder that every worker sees; without one, no words."""

    table: TablePieces
    labels: LabelArray
    grid: FloatArray
    distance: bool
    part_bits: int
    folder: str
    mark: str

    def __reduce__(self) -> tuple[Any, ...]:
        return RowJob, tuple(vars(self).values())

    @property
    def n_blocks(self) -> int:
        """One for each piece."""
        return len(self.table.pieces)

    @property
    def shape(self) -> tuple[int, int]:
        """(K + 1, G)."""
        return self.grid.size + 1, int(self.labels.size)

    @property
    def bits(self) -> WordBits:
        """How words are made."""
        return WordBits.of(int(self.labels.size))

    def worker(self) -> _RowWorker:
        """A new worker that holds nothing yet."""
        return _RowWorker(self)


class _RowWorker:
    def __init__(self, job: RowJob) -> None:
        self._job, self.partial = job, RowCounts.empty(job.shape)

    def add(self, block: int) -> None:
        """Count a piece."""
        from matchbound.kernels.rows import book_rows

        job, held, said = self._job, self.partial, Said()
        sign, bits = -1.0 if job.distance else 1.0, job.bits
        words: list[Words] = [np.empty(0, dtype=np.uint64)]
        for batch in job.table.batches(block, said):
            a, b = _places(job.labels, batch.a), _places(job.labels, batch.b)
            score = np.ascontiguousarray(batch.score)
            for part in (a, b, score):
                part.setflags(write=False)  # as the arrays of `Comparisons` are: one compiled form serves both
            room: Words = np.empty(score.size, dtype=np.uint64)
            made = book_rows(a, b, score, sign, job.grid, (bits.code, bits.bins), (held.genuine, held.impostor), room)
            words += [room[:made]] if job.folder else []
        if job.folder:
            write_words(job.folder, job.mark, block, np.concatenate(words), bits, job.part_bits)
        held.said.add(said)


def write_words(folder: str, mark: str, block: int, words: Words, bits: WordBits, part_bits: int) -> None:
    """Leave the words of a piece in a file of its own, the words of each part together; whole or not at all."""
    part = part_of(bits.pairs(words), part_bits)
    order = np.argsort(part, kind="stable")
    edges = np.searchsorted(part[order], np.arange((1 << part_bits) + 1)).astype(np.int64)
    target = Path(folder, f"{mark}-{block}.words")
    try:
        file, beside = tempfile.mkstemp(prefix=".", suffix=".part", dir=folder)
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(edges.data)
                stream.write(words[order].data)
            os.replace(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
    except OSError as error:
        raise DataError(
            f"{folder}: no room for the pairs of the table, or a worker does not see this folder "
            f"({error.strerror or error}); name a large folder that all workers see in TMPDIR, or give a checkpoint "
            "in one"
        ) from None


def read_words(folder: str, mark: str, block: int, part: int, part_bits: int) -> Words:
    """The words of one part of a piece; DataError where the file is not whole."""
    target = Path(folder, f"{mark}-{block}.words")
    head = (1 << part_bits) + 1
    try:
        with open(target, "rb") as stream:
            edges = np.fromfile(stream, dtype=np.int64, count=head)
            if edges.size != head or os.fstat(stream.fileno()).st_size != 8 * (head + int(edges[-1])):
                raise DataError(f"{target} is not whole; delete the checkpoint and the folder beside it to start again")
            stream.seek(8 * (head + int(edges[part])))
            return np.fromfile(stream, dtype=np.uint64, count=int(edges[part + 1] - edges[part]))
    except OSError as error:
        raise DataError(
            f"{target} cannot be read ({error.strerror or error}); all workers must see this folder, and nobody may "
            "delete it while the table is counted"
        ) from None


@dataclass(eq=False)
class PairShare(Held):
    """The sums over identity pairs of some parts."""

    sums: PairRows = field(repr=False)
    blocks: set[int] = field(repr=False, default_factory=set)
    sound: bool = True

    def copy(self) -> Self:
        """The same, in arrays of its own."""
        return replace(self, sums=self.sums.copy(), blocks=set(self.blocks))

    def join(self, other: Self, workers: int | None) -> None:
        """Take over what `other` holds."""
        self.sums.join(other.sums)

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it but the blocks, as arrays for a file."""
        return self.sums.state()


@dataclass(frozen=True, eq=False)
class PairJob:
    """Sums over the identity pairs of parts, from the words that pieces left.

    reached : int64 array, shape (1 + L, G)
        Impostor rows of each identity, and those that reach the thresholds of `marks`.
    """

    folder: str
    mark: str
    pieces: int
    part_bits: int
    levels: int
    reached: IntArray
    marks: IntArray

    def __reduce__(self) -> tuple[Any, ...]:
        return PairJob, tuple(vars(self).values())

    @property
    def n_blocks(self) -> int:
        """One for each part."""
        return 1 << self.part_bits

    def empty(self) -> PairShare:
        """Nothing counted yet."""
        bits = WordBits.of(int(self.reached.shape[1]))
        return PairShare(PairRows(bits, self.levels, self.reached[0], self.reached[1:], self.marks))

    def worker(self) -> _PairWorker:
        """A new worker that holds nothing yet."""
        return _PairWorker(self)


class _PairWorker:
    def __init__(self, job: PairJob) -> None:
        self._job, self.partial = job, job.empty()

    def add(self, block: int) -> None:
        """Sum over a part."""
        job = self._job
        words = np.concatenate(
            [read_words(job.folder, job.mark, piece, block, job.part_bits) for piece in range(job.pieces)]
        )
        words.sort()
        self.partial.sums.add(words)


def survey_of(source: ScoreFile, table: TablePieces, scores: bool, how: How = ANYHOW) -> Survey:
    """The labels of a table, and samples of its scores where they are asked for; made once for each table."""
    made: Survey | None = source.memo.get("survey with scores", None if scores else source.memo.get("survey"))
    if made is None:
        distance = table.roles.distance if source.distance is None else source.distance
        kind = Kind(str, lambda state, blocks: Survey(), 0)
        plain = replace(how, checkpoint=None)
        made = run_all(SurveyJob(table, scores, distance), Survey, kind, plain)
        source.memo["survey with scores" if scores else "survey"] = made
    return made


def tally_pieces(
    source: ScoreFile, table: TablePieces, thresholds: FloatArray, marked: IntArray | None = None, how: How = ANYHOW
) -> Tally:
    """The tally of a table in pieces, with the sums of rows of n_ij and m_ij at the marked thresholds.

    Parameters
    ----------
    thresholds : float64 array, shape (K,)
        In any order, in the units of the scores.
    marked : int64 array, shape (L,)
        Positions of the thresholds at which rows are summed; None for no sums of rows.
    how
        Who counts. With a checkpoint, the words of pieces lie in a folder beside it, which all workers must see;
        without one, in a folder of their own in the folder for temporary files.
    """
    how.check()
    distance = table.roles.distance if source.distance is None else source.distance
    grid, place = np.unique(-thresholds if distance else thresholds, return_inverse=True)
    place = place.reshape(-1)
    part_bits = int(np.clip(np.ceil(np.log2(max(table.rows / PART_WORDS, 1.0))), 0, 12))
    pieces = len(table.pieces)
    steps = 2 * pieces + (1 << part_bits)
    labels = survey_of(source, table, False, _counted_from(how, 0, steps)).labels
    bits = WordBits.of(int(labels.size))
    if grid.size > bits.most:
        raise UsageError(
            f"{labels.size:,} identities are tallied at no more than {bits.most} thresholds at once; got {grid.size}"
        )
    mark = fingerprint("table", table.files, table.stamps, table.pieces, label_bytes(labels), grid, distance)[:32]
    chosen = np.empty(0, dtype=np.int64) if marked is None else place[marked]
    with _folder(how) as (folder, beside):
        job = RowJob(table, labels, grid, distance, part_bits, folder, mark)
        kind = Kind(lambda: mark, lambda state, blocks: RowCounts.restore(state, blocks, job.shape), 16 * grid.size)
        counts = run_all(job, lambda: RowCounts.empty(job.shape), kind, _counted_from(how, pieces, steps), keep=True)
        for side in (counts.genuine, counts.impostor):
            np.cumsum(side[::-1], axis=0, out=side[::-1])
        reached = np.ascontiguousarray(counts.impostor[np.concatenate([[0], chosen + 1])])
        pairs = PairJob(folder, mark, job.n_blocks, part_bits, grid.size, reached, chosen)
        told = fingerprint(mark, chosen)
        kind = Kind(lambda: told, lambda state, blocks: _restored(pairs, state, blocks), 16 * grid.size)
        shares = run_all(pairs, pairs.empty, kind, replace(_counted_from(how, 2 * pieces, steps), checkpoint=beside))
    sums = shares.sums
    if 2 * sums.words != int(counts.impostor[0].sum()):
        raise MatchboundError("the words of some pieces are not those that were counted; start again")
    source.ended(table.notes(counts.said, source.distance))
    made = Tally(
        labels,
        grid,
        distance,
        GenuineTally(counts.genuine[0].copy(), counts.genuine[0] - counts.genuine[1:]),
        ImpostorTally(
            counts.impostor[0].copy(), counts.impostor[1:], 2 * sums.squares, 2 * sums.sum_nm, 2 * sums.sum_nn
        ),
        None,
    ).take(place)
    rows = None if marked is None else sums.rows()
    return replace(made, thresholds=thresholds, impostor=replace(made.impostor, rows=rows))


def genuine_of_pieces(source: ScoreFile, table: TablePieces, thresholds: FloatArray, how: How = ANYHOW) -> Tally:
    """The genuine rows of a table in pieces; what the tally says of impostor ones means nothing."""
    distance = table.roles.distance if source.distance is None else source.distance
    grid, place = np.unique(-thresholds if distance else thresholds, return_inverse=True)
    labels = survey_of(source, table, False, how).labels
    job = RowJob(table, labels, grid, distance, 0, "", "")
    kind = Kind(str, lambda state, blocks: RowCounts.restore(state, blocks, job.shape), 0)
    counts = run_all(job, lambda: RowCounts.empty(job.shape), kind, replace(how, checkpoint=None)).genuine
    np.cumsum(counts[::-1], axis=0, out=counts[::-1])
    nothing = np.zeros(thresholds.size, dtype=np.int64)
    errors = (counts[0] - counts[1:])[place.reshape(-1)]
    impostor = ImpostorTally(np.zeros_like(counts[0]), np.zeros_like(errors), 0, nothing, nothing)
    return Tally(labels, thresholds, distance, GenuineTally(counts[0].copy(), errors), impostor, None)


def in_pieces(source: ScoreFile) -> TablePieces | None:
    """The pieces of a table on disk, found once; None where it has none. A DataError where its files have changed."""
    if "pieces" not in source.memo:
        source.memo["pieces"] = pieces_of(source)
    found: TablePieces | None = source.memo["pieces"]
    for origin in source.origin:
        origin.check()
    return found


def _restored(job: PairJob, state: Mapping[str, NDArray[Any]], blocks: set[int]) -> PairShare:
    made = job.empty()
    made.sums.restore(state)
    made.blocks = blocks
    return made


@contextlib.contextmanager
def _folder(how: How) -> Iterator[tuple[str, Path | None]]:
    """Where words are left until they are summed, and the checkpoint of the last step.

    With a checkpoint both lie beside it, and are removed with it when all is counted; otherwise in any case.
    """
    if how.checkpoint is None:
        with shared_folder() as folder:
            yield folder, None
        return
    checkpoint = Path(how.checkpoint)
    place, beside = checkpoint.with_name(f"{checkpoint.name}.words"), checkpoint.with_name(f"{checkpoint.name}.pairs")
    try:
        place.mkdir(exist_ok=True)
    except OSError as error:
        raise DataError(f"the checkpoint {checkpoint} cannot be written: {error.strerror or error}") from None
    yield str(place.absolute()), beside
    shutil.rmtree(place, ignore_errors=True)
    checkpoint.unlink(missing_ok=True)


def _counted_from(how: How, done: int, total: int) -> How:
    """The same, with progress told as a part of several steps."""
    told = how.progress
    if told is None:
        return how
    return replace(how, progress=lambda now, _: told(done + now, total))


def _used(column: Coded) -> LabelArray:
    """The labels that occur."""
    occurs = np.zeros(column.labels.size, dtype=np.bool_)
    occurs[column.codes] = True
    return column.labels[occurs]


def _places(labels: LabelArray, column: Coded) -> IntArray:
    """The number of each row's label among all labels, which are sorted, shape (n,)."""
    known = column.labels
    if labels.dtype.kind != known.dtype.kind:
        known = known.astype(labels.dtype)
    place = np.minimum(np.searchsorted(labels, known), labels.size - 1)
    strange = labels[place] != known
    if np.any(strange) and np.any(strange[column.codes]):
        raise DataError("the table changed while it was being used: it holds labels that it did not hold before")
    found: IntArray = place[column.codes].astype(np.int64, copy=False)
    return found
