"""Tally score tables that are larger than memory: batch by batch, pairs sorted in parts on disk.

A row becomes one 64-bit word, of the identity pair and the number of thresholds it misses. Words are put in
parts by identity pair; a sorted part holds all comparisons of its pairs side by side, strictest crossing
first, and gives their share of every sum. Memory depends on the number of identities and on the size of a
part, not on the number of rows.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import IO, Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.executors import Progress
from matchbound.counting.numbering import Numbering
from matchbound.counting.pair_words import PairSums, WordBits, Words, part_of
from matchbound.counting.threads import available_cores
from matchbound.counts.tally import GenuineTally, ImpostorTally, PairTable, Tally
from matchbound.errors import DataError, UsageError
from matchbound.readers.scan import ScoreBatch, ScoreFile, scan_scores

BITS = WordBits(code=24, bins=16)
PART_ROWS = 8_000_000
PART_BITS = 6
PARTS = 1 << PART_BITS
AT_ONCE = 1 << 17
PUT_TOGETHER = 2
"""Rows that are looked at together, and how many times as many go to the files of the parts together."""
MOST_SORTERS = 4
FEW_LEVELS = 4
"""Thresholds up to which scores are compared with each of them instead of being looked up."""
KEPT_SCORES = 4_000_000


def tally_score_table(
    path: str | os.PathLike[str] | ScoreFile,
    thresholds: FloatArray,
    *,
    columns: Mapping[str, str | None] | None = None,
    distance: bool | None = None,
    pairs: bool = False,
    progress: Progress | None = None,
) -> Tally:
    """Tally a Parquet, CSV or TSV table of comparisons without holding its rows in memory.

    Parameters
    ----------
    path
        The file, an address that fsspec understands, or a table from `scan`.
    thresholds
        Shape (K,), in any order, in the units of the scores.
    columns
        Which column plays which part, where the names do not say (see `matchbound.read`).
    distance
        Whether small scores mean "same"; by default what the name of the score column says.
    pairs
        Keep m_ij, and n_ij at each threshold. Their size is the number of identity pairs.
    progress
        Called as ``progress(done, total)`` with rows (total 0: unknown).
    """
    given = np.array(thresholds, dtype=np.float64).reshape(-1)
    if np.isnan(given).any():
        raise UsageError("thresholds holds NaN; a threshold must be a number")
    table = scan_scores(path, columns=columns)
    is_distance = table.distance if distance is None else distance
    grid, place = np.unique(-given if is_distance else given, return_inverse=True)
    if grid.size >= 2**BITS.bins:
        raise UsageError(f"a table is tallied at no more than {2**BITS.bins - 1} thresholds at once; got {grid.size}")
    rows = 0
    with _Parts() as parts:
        counts = _Counts(grid, parts)
        for batch in table.batches:
            counts.add(batch, is_distance, table.source)
            rows += batch.score.size
            if progress is not None:
                progress(rows, table.rows)
        return counts.finish(given, place.astype(np.int64).reshape(-1), is_distance, pairs)


def similarities_of_kind(
    source: ScoreFile, kind: Literal["impostor", "genuine"], rng: int | np.random.Generator | None = 0
) -> tuple[FloatArray, int, bool]:
    """The scores of a kind with large meaning "same", sorted; of how many; and whether small ones meant "same".

    All of them up to `KEPT_SCORES`; of more, a seeded random sample.
    """
    table = scan_scores(source.path, columns=source.columns)
    is_distance = table.distance if source.distance is None else source.distance
    numbers, kept = Numbering(), _Reservoir(KEPT_SCORES, np.random.default_rng(rng))
    for batch in table.batches:
        same = numbers.of(batch.a) == numbers.of(batch.b)
        scores = np.asarray(batch.score[same if kind == "genuine" else ~same], dtype=np.float64)
        kept.add(-scores if is_distance else scores)
    scores = kept.taken()
    if not scores.size:
        raise DataError(f"{table.source}: there are no {kind} comparisons")
    return scores, kept.total, is_distance


@dataclass(frozen=True, eq=False)
class ScoreSample:
    """Scores of a table with large meaning "same", as many as fit, in random parts of the whole; sorted.

    genuine, impostor : float64 arrays
    least, most : float
        Of all scores.
    identities : int
        How many there are.
    distance : bool
        Whether small scores meant "same".
    """

    genuine: FloatArray
    impostor: FloatArray
    least: float
    most: float
    identities: int
    distance: bool


def sample_scores(source: ScoreFile, size: int, progress: Progress | None = None) -> ScoreSample:
    """A sample of at most `size` scores of each kind, from one pass over a table; the same table, the same sample."""
    table = scan_scores(source)
    is_distance = table.distance if source.distance is None else source.distance
    numbers, rng = Numbering(), np.random.default_rng(0)
    kinds = _Reservoir(size, rng), _Reservoir(size, rng)
    least, most, rows = np.inf, -np.inf, 0
    for batch in table.batches:
        same = numbers.of(batch.a) == numbers.of(batch.b)
        scores = np.asarray(-batch.score if is_distance else batch.score, dtype=np.float64)
        for kind, chosen in zip(kinds, (same, ~same), strict=True):
            kind.add(scores[chosen])
        least, most = min(least, float(scores.min(initial=np.inf))), max(most, float(scores.max(initial=-np.inf)))
        rows += scores.size
        if progress is not None:
            progress(rows, table.rows)
    return ScoreSample(kinds[0].taken(), kinds[1].taken(), least, most, len(numbers), is_distance)


class _Reservoir:
    """Numbers of which each is kept with the same chance, halved whenever there are too many."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self._size, self._rng = size, rng
        self._kept: list[FloatArray] = []
        self._share = 1.0
        self.total = 0

    def add(self, values: FloatArray) -> None:
        self.total += values.size
        self._kept.append(values if self._share == 1.0 else values[self._rng.random(values.size) < self._share])
        while sum(part.size for part in self._kept) > self._size:
            self._kept = [part[self._rng.random(part.size) < 0.5] for part in self._kept]
            self._share /= 2.0

    def taken(self) -> FloatArray:
        """What was kept, sorted."""
        return np.sort(np.concatenate([np.empty(0), *self._kept]))


@dataclass(eq=False)
class _Counts:
    """Running sums; identities are numbered as they appear, and put in order at the end."""

    grid: FloatArray
    parts: _Parts
    numbers: Numbering = field(default_factory=Numbering)
    genuine: IntArray = field(init=False)
    impostor: IntArray = field(init=False)
    held: list[Words] = field(default_factory=list)
    n_held: int = 0

    def __post_init__(self) -> None:
        self.genuine = np.zeros((0, self.grid.size + 1), dtype=np.int64)
        self.impostor = np.zeros((0, self.grid.size + 1), dtype=np.int64)

    def add(self, batch: ScoreBatch, distance: bool, source: str) -> None:
        """Count a batch of rows."""
        a, b = self.numbers.of(batch.a), self.numbers.of(batch.b)
        if len(self.numbers) > 2**BITS.code:
            raise DataError(f"{source}: more than {2**BITS.code:,} identities; split the table by identities")
        self._grow()
        for start in range(0, a.size, AT_ONCE):  # pieces, so that what is made on the way stays in the cache
            some = slice(start, start + AT_ONCE)
            score = batch.score[some]
            self._add(a[some], b[some], _reached(self.grid, -score if distance else score))
        if self.n_held > PART_ROWS:
            self._spill()

    def _add(self, a: IntArray, b: IntArray, reach: IntArray) -> None:
        same = a == b
        width = self.grid.size + 1
        np.add.at(self.genuine.reshape(-1), a[same] * width + reach[same], 1)
        other = np.flatnonzero(~same)
        a, b, reach = a[other], b[other], reach[other]
        np.add.at(self.impostor.reshape(-1), a * width + reach, 1)
        np.add.at(self.impostor.reshape(-1), b * width + reach, 1)
        words = BITS.words(a, b, self.grid.size - reach)
        self.held.append(words)
        self.n_held += words.size

    def _grow(self) -> None:
        size, had = len(self.numbers), self.genuine.shape[0]
        if size > had:
            for name in ("genuine", "impostor"):
                wide = np.zeros((max(size, 2 * had), self.grid.size + 1), dtype=np.int64)
                wide[:had] = getattr(self, name)
                setattr(self, name, wide)

    def _spill(self) -> None:
        """Put the held words in the files of their parts."""
        held, self.held, self.n_held = self.held, [], 0
        for start in range(0, len(held), PUT_TOGETHER):
            self.parts.put(np.concatenate(held[start : start + PUT_TOGETHER]))

    def _sorted_parts(self) -> Iterator[Words]:
        """Sorted words, all of an identity pair together."""
        spilled = self.parts.used
        if spilled:
            self._spill()
        if not spilled:
            words = np.concatenate([np.empty(0, dtype=np.uint64), *self.held])
            self.held = []
            words.sort()
            yield words
            return
        workers = min(available_cores(), MOST_SORTERS)
        with ThreadPoolExecutor(workers) as pool:  # sorting needs no interpreter: some parts ahead, in order
            ahead = deque(pool.submit(self.parts.take_sorted, at) for at in range(workers))
            for at in range(workers, PARTS + workers):
                words = ahead.popleft().result()
                if at < PARTS:
                    ahead.append(pool.submit(self.parts.take_sorted, at))
                yield words

    def finish(self, thresholds: FloatArray, place: IntArray, distance: bool, pairs: bool) -> Tally:
        """Sort the pairs, and put identities and thresholds in order."""
        size, levels = len(self.numbers), self.grid.size
        labels, order = self.numbers.sorted_labels()
        rank = np.empty(size, dtype=np.int64)
        rank[order] = np.arange(size)
        sums = PairSums(BITS, levels, compared=pairs, erred=pairs)
        for words in self._sorted_parts():
            sums.add(words)
        genuine, impostor = self.genuine[order], self.impostor[order]
        matched = np.cumsum(impostor[:, :0:-1], axis=1)[:, ::-1].T[place]
        failed = np.cumsum(genuine[:, :-1], axis=1).T[place] if levels else np.empty((0, size), dtype=np.int64)

        def ranked(first: IntArray, second: IntArray, count: IntArray) -> PairTable:
            return PairTable.of(rank[first], rank[second], count, size)

        erred = [ranked(*sums.erred(level)) for level in range(levels)] if pairs else []  # each is given once
        return Tally(
            labels,
            thresholds,
            distance,
            GenuineTally(genuine.sum(axis=1), np.ascontiguousarray(failed)),
            ImpostorTally(
                impostor.sum(axis=1),
                np.ascontiguousarray(matched),
                2 * sums.squares,
                2 * sums.sum_nm[place],
                2 * sums.sum_nn[place],
                ranked(*sums.compared()) if pairs else None,
                tuple(erred[at] for at in place.tolist()) if pairs else None,
            ),
            None,
        )


def _reached(grid: FloatArray, scores: FloatArray) -> IntArray:
    """How many of the sorted thresholds each score reaches, shape (n,)."""
    if grid.size > FEW_LEVELS:
        return np.searchsorted(grid, scores, side="right").astype(np.int64, copy=False)
    reached = np.zeros(scores.size, dtype=np.int64)
    for threshold in grid:
        reached += scores >= threshold
    return reached


class _Parts:
    """Words on disk, in parts by identity pair. The files have no name, so that not even a kill leaves one behind."""

    def __init__(self) -> None:
        self._files: dict[int, IO[bytes]] = {}
        self._open = contextlib.ExitStack()
        self.used = False

    def __enter__(self) -> _Parts:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def put(self, words: Words) -> None:
        """Add words to the files of their parts."""
        self.used = True
        part = part_of(BITS.pairs(words), PART_BITS).astype(np.uint8)
        order = np.argsort(part, kind="stable")
        words, part = words[order], part[order]
        edges = np.searchsorted(part, np.arange(PARTS + 1))
        try:
            for at in np.flatnonzero(np.diff(edges)).tolist():
                if at not in self._files:
                    file = tempfile.TemporaryFile(prefix="matchbound-")  # noqa: SIM115 - closed with all of them
                    self._files[at] = self._open.enter_context(file)
                self._files[at].write(words[edges[at] : edges[at + 1]].data)
        except OSError as error:
            raise DataError(
                f"{tempfile.gettempdir()}: no room for the pairs of the table ({error.strerror or error}); name a "
                "larger folder in TMPDIR"
            ) from None

    def take_sorted(self, at: int) -> Words:
        """The words of a part, sorted; the part is gone from the disk then."""
        words = self.take(at)
        words.sort()
        return words

    def take(self, at: int) -> Words:
        """The words of a part, which is gone from the disk then."""
        file = self._files.pop(at, None)
        if file is None:
            return np.empty(0, dtype=np.uint64)
        with file:
            file.seek(0)
            return np.fromfile(file, dtype=np.uint64)
