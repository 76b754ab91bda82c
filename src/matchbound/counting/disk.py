"""Tables of comparisons that stay on disk: DuckDB reads and sorts them, and spills what does not fit in memory.

One query, of the identity pair and the bucket of the score of every row, in order, gives the words of a tally at all
thresholds (`matchbound.counts.cells`); to sort them is faster than to group them unless thresholds are few and rows
of a pair many. Local Parquet files with plain labels are read by DuckDB itself; text, addresses and
labels of unusual kinds go through the readers of this package, batch by batch. What a label is, and which rows are
refused, is for those readers to say in either case: a table that DuckDB finds something strange in is read by them,
and their error names the row.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.counting.executors import LocalExecutor
from matchbound.counting.held import Held
from matchbound.counting.running import ANYHOW, How, Kind, run_all
from matchbound.counting.threads import available_cores
from matchbound.counts.cells import WORK_CELLS, Cells, cells_of_words, check_words, tally_of_cells
from matchbound.counts.tally import Tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.labels import Coded, as_text, coded_values, merge
from matchbound.errors import DataError, MatchboundError, UsageError
from matchbound.files.names import own_name
from matchbound.notes import Note
from matchbound.readers.plain_parquet import PlainParquet, plain_parquet
from matchbound.readers.scan import ScoreFile, scan_scores
from matchbound.readers.tables import distance_note
from matchbound.scratch import shared_folder

MEMORY = "2GB"
"""What DuckDB may hold in memory; the rest goes to the folder for temporary files."""
SAMPLE = 4_000_000
"""Scores of either kind that are kept; up to so many, all of them."""
MOST_ROWS = 20_000_000
"""A part of the identities is read into memory up to so many comparisons."""


class StrangeTableError(MatchboundError):
    """A table holds something that only the readers of this package can name."""


@dataclass(frozen=True, eq=False)
class ScoreSample:
    """Similarities of a table, sorted: all of them, or a sample that is the same whenever it is taken.

    genuine, impostor : float64 arrays
    totals : (int, int)
        Genuine and impostor comparisons.
    ends : (float, float)
        The least and the largest of all similarities.
    identities : int
    """

    genuine: FloatArray
    impostor: FloatArray
    totals: tuple[int, int]
    ends: tuple[float, float]
    identities: int


@dataclass(frozen=True, eq=False)
class TableOnDisk:
    """A table that is counted where it lies.

    source
        The table, as `scan` gave it.
    how
        How many threads count, or which cluster: there, every worker counts files of its own.
    """

    source: ScoreFile
    how: How = ANYHOW

    @cached_property
    def plain(self) -> PlainParquet | None:
        """The table as DuckDB may read it by itself."""
        self._check_unchanged()
        return plain_parquet(self.source)

    @cached_property
    def distance(self) -> bool:
        """Whether small scores mean "same"."""
        if self.source.distance is not None:
            return self.source.distance
        return self.plain.roles.distance if self.plain is not None else scan_scores(self.source).distance

    def tally(self, thresholds: FloatArray, *, pairs: bool = False, genuine: bool = False) -> Tally:
        """The tally at thresholds in any order, in the units of the scores.

        Parameters
        ----------
        pairs
            Keep m_ij, and n_ij at each threshold. Their size is the number of identity pairs.
        genuine
            Count genuine comparisons only; what the tally says of impostor ones means nothing then.
        """
        given = np.array(thresholds, dtype=np.float64).reshape(-1)
        if np.isnan(given).any():
            raise UsageError("thresholds holds NaN; a threshold must be a number")
        self.how.check()
        if self.how.checkpoint is not None:
            raise UsageError("a table on disk is counted without a checkpoint; leave checkpoint out")
        grid, place = np.unique(-given if self.distance else given, return_inverse=True)
        on_cluster = not (genuine or self.how.executor is None or isinstance(self.how.executor, LocalExecutor))
        with self._connected() as connection:
            if on_cluster and self.plain is not None:
                rows, chunks = self._counted_elsewhere(connection, self.plain, grid)
            else:
                rows = self._rows(connection)
                chunks = rows.cells(grid, genuine)
            self._tell(1)
            made = tally_of_cells(chunks, rows.labels, given, place.reshape(-1), self.distance, pairs=pairs)
            self._tell(2)
        return made

    @cached_property
    def sample(self) -> ScoreSample:
        """Similarities of both kinds, as many as are kept; taken once."""
        with self._connected() as connection:
            return self._rows(connection).sample()

    def among(self, identities: LabelArray) -> Comparisons:
        """The comparisons of some identities with each other, in memory."""
        with self._connected() as connection:
            rows = self._rows(connection)
            chosen = np.flatnonzero(np.isin(as_text(rows.labels), as_text(identities)))
            a, b, similarity = rows.among(chosen)
        if similarity.size > MOST_ROWS:
            raise DataError(
                f"{own_name(self.source.path)}: a part of the identities has more than {MOST_ROWS:,} comparisons"
            )
        score = -similarity if self.distance else similarity
        return Comparisons(rows.labels[a], rows.labels[b], score, distance=self.distance)

    @cached_property
    def _names(self) -> _Names:
        """The labels of Parquet files, found once."""
        assert self.plain is not None
        with connected(self._threads) as connection:
            return _names_of(connection, self.plain)

    @property
    def _threads(self) -> int | None:
        executor = self.how.executor
        return executor.workers if isinstance(executor, LocalExecutor) else self.how.workers

    def _tell(self, step: int) -> None:
        if self.how.progress is not None:
            self.how.progress(step, 2)

    def _rows(self, connection: Any) -> _Rows:
        if self.plain is None:
            return _rows_of_batches(connection, self.source, self.distance)
        rows = _rows_of_parquet(connection, self.plain, self.distance, self._names)
        roles = self.plain.roles
        chosen = [] if self.source.distance is not None or not roles.distance else [distance_note(roles.score)]
        self.source.ended((*chosen, *roles.notes, *rows.notes))
        return rows

    def _counted_elsewhere(
        self, connection: Any, plain: PlainParquet, grid: FloatArray
    ) -> tuple[_Rows, Iterator[Cells]]:
        """The cells of files that the workers of a cluster counted, each by itself."""
        job = FilesJob(plain, self.distance, grid)
        kind = Kind(str, lambda state, blocks: FileCells(), 0)  # it has no checkpoint
        counted = run_all(job, FileCells, kind, self.how).files
        labels = np.unique(np.concatenate([part.labels for part in counted if part.labels.size] or [np.empty(0)]))
        width = check_words(labels.size, grid.size)
        connection.execute("create temp table parts (w bigint, n bigint)")
        for part in counted:
            first, second = np.divmod(part.cells.pair, max(part.labels.size, 1))
            place = np.searchsorted(labels, part.labels).astype(np.int64)
            words = (place[first] * np.int64(labels.size) + place[second]) * width + grid.size - part.cells.reach
            _insert(connection, "parts", w=words, n=part.cells.times)
        whole = "select w, sum(n)::bigint as n from parts group by w order by w"

        def chunks() -> Iterator[Cells]:
            for batch in connection.sql(whole).to_arrow_reader(WORK_CELLS):
                words, times = (batch.column(at).to_numpy() for at in range(2))
                yield cells_of_words(words, width, times)

        return _Rows(connection, labels, sum(plain.rows)), chunks()

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        """A connection to DuckDB; errors that it or a strange table gives name the file, and the row where they can."""
        import duckdb

        self._check_unchanged()
        with connected(self._threads) as connection:
            try:
                yield connection
            except (duckdb.Error, StrangeTableError) as error:
                self._check_unchanged()
                for _ in scan_scores(self.source).batches:
                    pass  # what is wrong with a row is an error here that names it
                raise DataError(
                    f"{own_name(self.source.path)} cannot be counted ({type(error).__name__}); if the folder for "
                    f"temporary files, {tempfile.gettempdir()}, is full, name a larger one in TMPDIR"
                ) from None
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        """A DataError where a file is not what it was when it was first read."""
        for origin in self.source.origin:
            replace(origin, name=own_name(origin.name)).check()


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a table in a connection: `coded` (a, b, s, row), with numbers for labels."""

    connection: Any
    labels: LabelArray
    total: int
    notes: tuple[Note, ...] = ()

    def cells(self, grid: FloatArray, genuine: bool = False) -> Iterator[Cells]:
        """The cells of all rows, or of genuine ones, in order, some at a time."""
        size = int(self.labels.size)
        width, total = check_words(size, grid.size), 0
        batches = self.connection.sql(
            f"select (least(a, b) * {size} + greatest(a, b)) * {width} + {_missed(grid)} as w from coded "
            f"{'where a = b' if genuine else ''} order by w nulls first"
        )
        for batch in batches.to_arrow_reader(WORK_CELLS):
            words = batch.column(0)
            if words.null_count:
                raise StrangeTableError("a score that is missing or not finite")
            total += len(words)
            yield cells_of_words(words.to_numpy(), width)
        if total != self.total and not genuine:
            raise StrangeTableError("rows that have no labels")

    def sample(self) -> ScoreSample:
        """Similarities of both kinds: all up to `SAMPLE`, or those of rows whose number has a small hash."""
        found = {True: (0, np.inf, -np.inf), False: (0, np.inf, -np.inf)}
        ask = "select a = b, count(*), min(s), max(s) from coded group by 1"
        for same, count, least, most in self.connection.sql(ask).fetchall():
            found[same] = count, least, most
        kept = {}
        for same, (count, _, _) in found.items():
            share = int(2**64 * min(1.0, SAMPLE / max(count, 1)))
            chosen = "" if share >= 2**64 else f"and hash(row) < {share}::ubigint"
            values = self.connection.sql(f"select s from coded where (a = b) = {same} {chosen}").fetchnumpy()["s"]
            kept[same] = np.sort(np.asarray(values, dtype=np.float64))
        least, most = (end(found[same][at] for same in found) for at, end in ((1, min), (2, max)))
        totals = found[True][0], found[False][0]
        return ScoreSample(kept[True], kept[False], totals, (least, most), int(self.labels.size))

    def among(self, chosen: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Both identities and the similarity of the rows among some identities, one more than may be held at most."""
        self.connection.execute("create temp table chosen (c bigint)")
        _insert(self.connection, "chosen", c=chosen)
        rows = self.connection.sql(
            "select a, b, s from coded where a in (select c from chosen) and b in (select c from chosen) "
            f"limit {MOST_ROWS + 1}"
        ).fetchnumpy()
        a, b, s = (np.asarray(rows[name]) for name in "abs")
        return a.astype(np.int64), b.astype(np.int64), s.astype(np.float64)


@contextlib.contextmanager
def connected(threads: int | None) -> Iterator[Any]:
    """A connection to DuckDB within limits, with a folder of its own for what does not fit in memory."""
    import duckdb

    with shared_folder() as folder:
        limits: dict[str, Any] = {
            "threads": threads or available_cores(),
            "memory_limit": MEMORY,
            "temp_directory": folder,
        }
        with duckdb.connect(config={**limits, "preserve_insertion_order": False}) as connection:
            yield connection


@dataclass(frozen=True, eq=False)
class _Names:
    """Raw labels as a table has them, the number of each, and the labels with these numbers, sorted."""

    values: list[Any] = field(repr=False)
    codes: IntArray = field(repr=False)
    labels: LabelArray = field(repr=False)
    notes: tuple[Note, ...] = ()


def _raw_parquet(connection: Any, plain: PlainParquet, distance: bool) -> str:
    """Make `raw` of Parquet files that DuckDB reads by itself; the kind of its labels."""
    kind, sign = "bigint" if plain.whole else "varchar", "-" if distance else ""
    id_a, id_b, score = (_quoted(name, '"') for name in (plain.id_a, plain.id_b, plain.roles.score))
    files = ", ".join(_quoted(file, "'") for file in plain.files)
    connection.execute(
        f"create temp view raw as select {id_a}::{kind} as x, {id_b}::{kind} as y, {sign}({score}::double) as s, "
        f"file_row_number as row from read_parquet([{files}], hive_partitioning = false, file_row_number = true)"
    )
    return kind


def _names_of(connection: Any, plain: PlainParquet) -> _Names:
    """The labels of Parquet files, by the rule of `matchbound.data.labels`."""
    _raw_parquet(connection, plain, False)
    values = connection.sql("select x from raw union select y from raw").to_arrow_table().column(0).to_pylist()
    if None in values:
        raise StrangeTableError("a missing label")
    try:
        found = coded_values(values, np.arange(len(values)), lambda row: "")
    except DataError:
        raise StrangeTableError("a label that is refused") from None
    labels, (codes,) = merge(found)
    return _Names(values, codes, labels, tuple(found.notes(f"{plain.id_a} and {plain.id_b}")))


def _rows_of_parquet(connection: Any, plain: PlainParquet, distance: bool, names: _Names) -> _Rows:
    """The rows of Parquet files that DuckDB reads by itself."""
    kind, labels = _raw_parquet(connection, plain, distance), names.labels
    low = int(labels[0]) if plain.whole and labels.size else 0
    if plain.whole and labels.size and int(labels[-1]) - low == labels.size - 1:  # numbers without gaps
        connection.execute(f"create temp view coded as select x - {low} as a, y - {low} as b, s, row from raw")
    else:
        _name(connection, kind, names.values, names.codes)
    return _Rows(connection, labels, sum(plain.rows), names.notes)


def _rows_of_batches(connection: Any, source: ScoreFile, distance: bool) -> _Rows:
    """The rows of any other table, as the readers of this package give them."""
    import pyarrow as pa

    numbers: dict[Any, int] = {}
    total = 0

    def numbered(column: Coded) -> IntArray:
        occurs = np.zeros(column.labels.size, dtype=np.bool_)
        occurs[column.codes] = True
        place = np.zeros(column.labels.size, dtype=np.int64)
        words = column.labels[occurs].tolist()
        place[occurs] = np.fromiter((numbers.setdefault(word, len(numbers)) for word in words), np.int64, len(words))
        found: IntArray = place[column.codes]
        return found

    connection.execute("create temp table raw (x bigint, y bigint, s double, row bigint)")
    for batch in scan_scores(source).batches:
        size = batch.score.size
        similarity = -batch.score if distance else batch.score
        row = np.arange(total, total + size)
        _insert(connection, "raw", x=numbered(batch.a), y=numbered(batch.b), s=similarity, row=row)
        total += size
    found = coded_values(list(numbers), np.arange(len(numbers)), lambda row: "")
    labels, (codes,) = merge(found)
    _name(connection, "bigint", pa.array(range(len(numbers)), pa.int64()), codes)
    return _Rows(connection, labels, total)


def _name(connection: Any, kind: str, values: Any, codes: IntArray) -> None:
    """Make `coded` from `raw`, whose labels are values with these codes."""
    connection.execute(f"create temp table names (label {kind}, code bigint)")
    _insert(connection, "names", label=values, code=codes)
    connection.execute(
        "create temp view coded as select i.code as a, j.code as b, s, row from raw "
        "join names i on x = i.label join names j on y = j.label"
    )


def _insert(connection: Any, table: str, **columns: Any) -> None:
    import pyarrow as pa

    connection.register("incoming", pa.table(columns))
    connection.execute(f"insert into {table} select * from incoming")
    connection.unregister("incoming")


def _missed(grid: FloatArray) -> str:
    """SQL for how many of the increasing thresholds a similarity s misses, by halving; null where s is not finite."""

    def between(low: int, high: int) -> str:
        if low == high:
            return str(grid.size - low)
        middle = (low + high) // 2
        below, above = between(low, middle), between(middle + 1, high)
        return f"case when s < '{float(grid[middle])!r}'::double then {below} else {above} end"

    return f"(case when isfinite(s) then {between(0, int(grid.size))} end)"


def _quoted(name: str, mark: str) -> str:
    return f"{mark}{name.replace(mark, 2 * mark)}{mark}"


@dataclass(frozen=True, eq=False)
class CountedFile:
    """The cells of one file, by labels of its own."""

    labels: LabelArray = field(repr=False)
    cells: Cells = field(repr=False)


@dataclass(eq=False)
class FileCells(Held):
    """The cells of some files."""

    files: list[CountedFile] = field(default_factory=list, repr=False)
    blocks: set[int] = field(default_factory=set, repr=False)
    sound: bool = True

    def copy(self) -> FileCells:
        """The same, in a list of its own."""
        return FileCells(list(self.files), set(self.blocks), self.sound)

    def join(self, other: FileCells, workers: int | None) -> None:
        """Take over what `other` holds."""
        self.files += other.files

    def state(self) -> dict[str, NDArray[Any]]:
        """Tables have no checkpoint."""
        return {}


@dataclass(frozen=True, eq=False)
class FilesJob:
    """Counts files by themselves; a block is one file, which every worker must see under the same path."""

    plain: PlainParquet
    distance: bool
    grid: FloatArray

    @property
    def n_blocks(self) -> int:
        """One for each file."""
        return len(self.plain.files)

    def worker(self) -> _FileWorker:
        """A new worker that holds nothing yet."""
        return _FileWorker(self)


class _FileWorker:
    def __init__(self, job: FilesJob) -> None:
        self._job, self.partial = job, FileCells()

    def add(self, block: int) -> None:
        """Count a file."""
        import duckdb

        job = self._job
        one = slice(block, block + 1)
        plain = replace(job.plain, files=job.plain.files[one], origins=job.plain.origins[one], rows=job.plain.rows[one])
        self._check(plain)
        with connected(1) as connection:
            try:
                with connection.cursor() as other:
                    names = _names_of(other, plain)
                rows = _rows_of_parquet(connection, plain, job.distance, names)
                chunks = list(rows.cells(job.grid))
            except duckdb.Error as error:
                self._check(plain)
                raise StrangeTableError(type(error).__name__) from None
        none = np.empty(0, dtype=np.int64)
        cells = Cells(*(np.concatenate([none, *(chunk[at] for chunk in chunks)]) for at in range(3)))
        self._check(plain)
        self.partial.files.append(CountedFile(rows.labels, cells))

    def _check(self, plain: PlainParquet) -> None:
        """A DataError where the file is not the one that was opened."""
        origin, name = plain.origins[0], own_name(plain.files[0])
        try:
            found = os.stat(plain.files[0])
        except OSError as error:
            raise DataError(
                f"{name} cannot be read by a worker ({error.strerror or error}); workers must see the table under the "
                "same path"
            ) from None
        stamp = origin.stamp
        if stamp is not None and (found.st_size, found.st_mtime_ns) != (stamp.size, stamp.modified):
            raise DataError(
                f"{name} changed while it was being used: what was counted is no longer what is in the file. Run this "
                "again when nothing writes to it"
            )
