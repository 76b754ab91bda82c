"""Tables of comparisons that stay on disk: DuckDB reads them, and sorts and spills what does not fit in memory.

Local Parquet files with plain labels are read by DuckDB itself; text, addresses and labels of unusual kinds go through
the readers of this package, batch by batch. What a label is, and which rows are refused, is for those readers to say in
either case: a table that DuckDB finds something strange in is read by them, and their error names the row. The identity
pair and the similarity of every row come back in batches, and are counted as comparisons in memory are
(`matchbound.counts.cells`).
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.counting.curves import CURVE_POINTS, threshold_grid
from matchbound.counting.pairs import ErringRows, Kind
from matchbound.counting.recount import Metric, OfComparisons, Recount, similarity_at
from matchbound.counting.run import LocalExecutor, Partial, RunOptions, run_all
from matchbound.counting.threads import available_cores
from matchbound.counts.cells import (
    WORK_CELLS,
    Cells,
    cells_of_chunks,
    cells_of_words,
    check_words,
    is_dense,
    sorted_thresholds,
    tally_of_cells,
    tally_of_rows,
    words_of,
)
from matchbound.counts.curve import SteppedCurve, both_kinds, curve_of_tally, too_many_steps
from matchbound.counts.tally import Tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.labels import Coded, coded_values, merge
from matchbound.errors import DataError, MatchboundError, UsageError
from matchbound.files.opening import Origin, Stamp, own_name
from matchbound.notes import Note
from matchbound.readers.scan import PlainParquet, ScoreFile, holds_distances, plain_parquet, scan_scores
from matchbound.readers.tables import distance_note
from matchbound.scratch import shared_folder

# A part of the identities is read into memory up to so many comparisons.
MOST_ROWS = 20_000_000
BATCH_ROWS = 1 << 22
TABLE_CELLS = 40_000_000


class Limits(NamedTuple):
    """How much is held in memory; exact counts do not depend on it.

    - memory: by DuckDB; the rest goes to the folder for temporary files.
    - sample: scores of either kind that are kept; up to so many, all of them.
    - words: rows that are sorted in memory, eight bytes each; more are sorted by DuckDB, which spills.
    - points: of a curve, before any are added where it is to be exact.
    """

    memory: str = "2GB"
    sample: int = 4_000_000
    words: int = 1 << 26
    points: int = CURVE_POINTS


LIMITS = Limits()


class StrangeTableError(MatchboundError):
    """A table holds something that only the readers of this package can name."""


@dataclass(frozen=True, eq=False)
class ScoreSample:
    """Similarities of a table, increasing: all of them, or a sample that is the same whenever it is taken.

    `owner` is the identity of each genuine one; `totals` (genuine, impostor) and `ends` (least, largest) are of all.
    """

    genuine: FloatArray
    impostor: FloatArray
    owner: IntArray
    totals: tuple[int, int]
    ends: tuple[float, float]


@dataclass(frozen=True, eq=False)
class TableOnDisk(Recount):
    """A table that is counted where it lies; on a cluster, every worker counts files of its own."""

    source: ScoreFile
    limits: Limits = LIMITS

    @cached_property
    def plain(self) -> PlainParquet | None:
        """The table as DuckDB may read it by itself."""
        self._check_unchanged()
        return plain_parquet(self.source)

    @cached_property
    def distance(self) -> bool:
        return holds_distances(self.source)

    def tally(self, thresholds: FloatArray, *, pairs: bool | None = False, options: RunOptions | None = None) -> Tally:
        """The tally at any thresholds; the size of pairs is the number of identity pairs."""
        return self._tally(thresholds, bool(pairs), options or self.options)

    def genuine(self, thresholds: FloatArray) -> Tally:
        sample = self.sample
        if sample.genuine.size < sample.totals[0]:
            return self._tally(thresholds, False, self.options, genuine=True)
        return tally_of_rows(sample.owner, sample.owner, sample.genuine, thresholds, self._names.labels, self.distance)

    def _tally(self, thresholds: FloatArray, pairs: bool, options: RunOptions, genuine: bool = False) -> Tally:
        given, grid, place = sorted_thresholds(thresholds, self.distance)
        options.check()
        if options.checkpoint is not None:
            raise UsageError("a table on disk is counted without a checkpoint; leave checkpoint out")
        report = options.progress or (lambda done, total: None)
        on_cluster = not (genuine or options.executor is None or isinstance(options.executor, LocalExecutor))
        with self._connected() as connection:
            if on_cluster and self.plain is not None:
                labels, chunks = self._counted_elsewhere(connection, self.plain, grid, options)
            else:
                rows = self._rows(connection)
                labels, chunks = rows.labels, rows.cells(grid, genuine, self.limits.words)
            report(1, 2)
            tally = tally_of_cells(chunks, labels, given, place, self.distance, pairs=pairs)
            report(2, 2)
        return tally

    def thresholds_at(self, errors: IntArray, kind: Kind) -> FloatArray:
        """Thresholds at which about so many comparisons err, from the sample, shape of `errors`."""
        sample = self.sample
        chosen = similarity_at(getattr(sample, kind), errors, kind, sample.totals[kind == "impostor"])
        return -chosen if self.distance else chosen

    def for_curve(self, every: bool = False) -> Recount:
        """The same; there is no curve with every step."""
        if every:
            raise too_many_steps("this table stays on disk (read it, where it fits)")
        return self

    def curve(self, options: RunOptions | None = None) -> SteppedCurve:
        """The curve in two passes: thresholds from a sample, then exact counts at each.

        There are fewer thresholds where identities are so many that the counts would not fit.
        """
        sample = self.sample
        both_kinds(sample.genuine.size, sample.impostor.size)
        points = int(np.clip(TABLE_CELLS // max(self._names.labels.size, 1), 40, self.limits.points))
        grid = threshold_grid(sample.genuine[::-1], sample.impostor[::-1], points, *sample.ends)
        return curve_of_tally(self.tally(-grid if self.distance else grid, options=options))

    @cached_property
    def sample(self) -> ScoreSample:
        """Similarities of both kinds, as many as are kept; taken once."""
        with self._connected() as connection:
            return self._rows(connection).sample(self.limits.sample)

    def scores_between(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
        ranges = zip(low.tolist(), high.tolist(), strict=True)
        inside = " or ".join(f"(s > '{one!r}'::double and s < '{two!r}'::double)" for one, two in ranges)
        with self._connected() as connection:
            self._rows(connection)
            found = connection.sql(
                "select s, count(*) filter (a != b) as impostor, count(*) filter (a = b) as genuine from coded "
                f"where {inside or 'false'} group by s"
            ).fetchnumpy()
        return np.asarray(found["s"]), np.asarray(found["impostor"]), np.asarray(found["genuine"])

    def comparisons(self) -> Comparisons:
        """A DataError: they are not in memory."""
        raise DataError(f"{self.source!r}: this looks at single comparisons; read the table into memory")

    def erring(self, threshold: float, metric: Metric, errors: int, most: int) -> ErringRows:
        """A DataError: they are not in memory."""
        raise DataError(f"{self.source.path}: listing errors needs the table in memory; use read instead of scan")

    def among(self, identities: IntArray) -> Recount:
        """The comparisons among some identities, which are read into memory when they are first asked for."""
        return PartOfTable(self, identities)

    def read_among(self, identities: IntArray) -> Comparisons:
        with self._connected() as connection:
            rows = self._rows(connection)
            a, b, similarity = rows.among(identities)
        if similarity.size > MOST_ROWS:
            raise DataError(
                f"{own_name(self.source.path)}: a part of the identities has more than {MOST_ROWS:,} comparisons"
            )
        score = -similarity if self.distance else similarity
        return Comparisons(rows.labels[a], rows.labels[b], score, distance=self.distance)

    @cached_property
    def _names(self) -> _Names:
        if self.plain is None:
            with self._connected() as connection:
                return _Names([], np.empty(0, dtype=np.int64), self._rows(connection).labels)
        with connected(self._threads, self.limits.memory) as connection:
            return _names_of(connection, self.plain)

    @property
    def _threads(self) -> int | None:
        executor = self.options.executor
        return executor.workers if isinstance(executor, LocalExecutor) else self.options.workers

    def _rows(self, connection: Any) -> _Rows:
        if self.plain is None:
            return _rows_of_batches(connection, self.source, self.distance)
        rows = _rows_of_parquet(connection, self.plain, self.distance, self._names)
        roles = self.plain.roles
        chosen = [] if self.source.distance is not None or not roles.distance else [distance_note(roles.score)]
        self.source.ended((*chosen, *roles.notes, *rows.notes))
        return rows

    def _counted_elsewhere(
        self, connection: Any, plain: PlainParquet, grid: FloatArray, options: RunOptions
    ) -> tuple[LabelArray, Iterator[Cells]]:
        """The cells of files that the workers of a cluster counted, each by itself, and the labels of all."""
        counted = run_all(FilesJob(plain, self.distance, grid), options).files
        labels = np.unique(np.concatenate([own for own, _ in counted if own.size] or [np.empty(0)]))
        width = check_words(labels.size, grid.size)

        def words() -> Iterator[tuple[IntArray, IntArray]]:
            for own, cells in counted:
                first, second = np.divmod(cells.pair, max(own.size, 1))
                place = np.searchsorted(labels, own).astype(np.int64)
                pair = place[first] * np.int64(labels.size) + place[second]
                yield pair * width + grid.size - cells.reach, cells.times

        return labels, sorted_cells(connection, words(), width)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        """A connection to DuckDB; errors that it or a strange table gives name the file, and the row where they can."""
        import duckdb

        self._check_unchanged()
        with connected(self._threads, self.limits.memory) as connection:
            try:
                yield connection
            except (duckdb.Error, StrangeTableError) as error:
                self._check_unchanged()
                for _ in scan_scores(self.source):
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


class PartOfTable(OfComparisons):
    """The comparisons among some identities of a table on disk; they are read into memory when first asked for."""

    def __init__(self, table: TableOnDisk, identities: IntArray) -> None:
        object.__setattr__(self, "options", table.options)
        object.__setattr__(self, "_part", (table, identities))

    @cached_property
    def source(self) -> Comparisons:  # type: ignore[override]
        table, identities = self._part  # type: ignore[attr-defined]
        comparisons: Comparisons = table.read_among(identities)
        return comparisons


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a table in a connection: `coded` (a, b, s, row), with numbers for labels."""

    connection: Any
    labels: LabelArray
    total: int
    notes: tuple[Note, ...] = ()

    def cells(self, grid: FloatArray, genuine: bool = False, most_words: int = LIMITS.words) -> Iterator[Cells]:
        """The cells of all rows, or of genuine ones, in order, some at a time; `most_words` are sorted in memory."""
        size, width = int(self.labels.size), check_words(int(self.labels.size), grid.size)
        words = self._words(grid, genuine)
        if self.total <= most_words or is_dense(size, grid.size, self.total):
            return cells_of_chunks(words, size, grid.size, self.total)
        return sorted_cells(self.connection, ((some, np.ones_like(some)) for some in words), width)

    def _words(self, grid: FloatArray, genuine: bool) -> Iterator[IntArray]:
        """The words of the rows, in any order, some at a time."""
        size, total = int(self.labels.size), 0
        batches = self.connection.sql(
            f"select case when a <= b then a * {size} + b else b * {size} + a end as pair, s from coded "
            f"{'where a = b' if genuine else ''}"
        )
        for batch in batches.to_arrow_reader(BATCH_ROWS):
            pair, similarity = batch.columns
            if pair.null_count or similarity.null_count or not np.isfinite(similarity.to_numpy()).all():
                raise StrangeTableError("a label that is missing, or a score that is missing or not finite")
            total += len(batch)
            yield words_of(pair.to_numpy().copy(), similarity.to_numpy(), grid)
        if total != self.total and not genuine:
            raise StrangeTableError("rows that have no labels")

    def sample(self, most: int) -> ScoreSample:
        """Similarities of both kinds: all up to `most`, or those of rows whose number has a small hash."""
        ask = "select count(*) filter (a = b), count(*) filter (a != b), min(s), max(s) from coded"
        genuine, impostor, least, largest = self.connection.sql(ask).fetchall()[0]
        kept = [
            "true" if count <= most else f"hash(row) < {int(2**64 * (most / count))}::ubigint"
            for count in (genuine, impostor)
        ]
        rows = self.connection.sql(
            "select case when a = b then a else -1 end as owner, s from coded "
            f"where case when a = b then {kept[0]} else {kept[1]} end"
        ).fetchnumpy()
        owner, similarity = np.asarray(rows["owner"], dtype=np.int64), np.asarray(rows["s"], dtype=np.float64)
        same = np.flatnonzero(owner >= 0)
        order = same[np.lexsort((owner[same], similarity[same]))]
        ends = (np.inf, -np.inf) if least is None else (least, largest)
        return ScoreSample(similarity[order], np.sort(similarity[owner < 0]), owner[order], (genuine, impostor), ends)

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


def sorted_cells(connection: Any, words: Iterator[tuple[IntArray, IntArray]], width: int) -> Iterator[Cells]:
    """The cells of words and how often each occurs, in any order, sorted by DuckDB."""
    connection.execute("create table words (w bigint, n bigint)")
    with connection.cursor() as other:  # the first may be reading the rows that words come from
        for some, times in words:
            _insert(other, "words", w=some, n=times)
    for batch in connection.sql("select w, n from words order by w").to_arrow_reader(WORK_CELLS):
        yield cells_of_words(batch.column(0).to_numpy(), width, batch.column(1).to_numpy())


@contextlib.contextmanager
def connected(threads: int | None, memory: str = LIMITS.memory) -> Iterator[Any]:
    """A connection to DuckDB within limits, with a folder of its own for what does not fit in memory."""
    import duckdb

    with shared_folder() as folder:
        limits: dict[str, Any] = {
            "threads": threads or available_cores(),
            "memory_limit": memory,
            "temp_directory": folder,
        }
        with duckdb.connect(config={**limits, "preserve_insertion_order": False}) as connection:
            connection.execute("set enable_progress_bar = false")  # it is written to standard output, between answers
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
        f"create or replace temp view raw as select {id_a}::{kind} as x, {id_b}::{kind} as y, "
        f"{sign}({score}::double) as s, file_row_number as row "
        f"from read_parquet([{files}], hive_partitioning = false, file_row_number = true)"
    )
    return kind


def _names_of(connection: Any, plain: PlainParquet) -> _Names:
    """The labels of Parquet files, by the rule of `matchbound.data.labels`."""
    _raw_parquet(connection, plain, False)
    values = connection.sql("select x from raw union select y from raw").to_arrow_table().column(0).to_pylist()
    if None in values:
        raise StrangeTableError("a missing label")
    try:
        return _numbered(values, f"{plain.id_a} and {plain.id_b}")
    except DataError:
        raise StrangeTableError("a label that is refused") from None


def _numbered(values: list[Any], name: str = "") -> _Names:
    found = coded_values(values, np.arange(len(values)), lambda row: "")
    labels, (codes,) = merge(found)
    return _Names(values, codes, labels, tuple(found.notes(name)))


def _rows_of_parquet(connection: Any, plain: PlainParquet, distance: bool, names: _Names) -> _Rows:
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
    for batch in scan_scores(source):
        size = batch.score.size
        similarity = -batch.score if distance else batch.score
        row = np.arange(total, total + size)
        _insert(connection, "raw", x=numbered(batch.a), y=numbered(batch.b), s=similarity, row=row)
        total += size
    names = _numbered(list(numbers))
    _name(connection, "bigint", pa.array(range(len(numbers)), pa.int64()), names.codes)
    return _Rows(connection, names.labels, total)


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


def _quoted(name: str, mark: str) -> str:
    return f"{mark}{name.replace(mark, 2 * mark)}{mark}"


@dataclass(eq=False)
class FileCells(Partial):
    """The labels and the cells of each of some files; in the cells are the places of these labels."""

    files: list[tuple[LabelArray, Cells]] = field(default_factory=list, repr=False)

    def join(self, other: FileCells, workers: int | None) -> None:
        self.files += other.files


@dataclass(frozen=True, eq=False)
class FilesJob:
    """Counts files by themselves; a block is one file, which every worker must see under the same path."""

    plain: PlainParquet
    distance: bool
    grid: FloatArray

    @property
    def n_blocks(self) -> int:
        return len(self.plain.files)

    def worker(self) -> _FileWorker:
        return _FileWorker(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return FilesJob, (self.plain, self.distance, self.grid)


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
                rows = _rows_of_parquet(connection, plain, job.distance, _names_of(connection, plain))
                chunks = list(rows.cells(job.grid))
            except duckdb.Error as error:
                self._check(plain)
                raise StrangeTableError(type(error).__name__) from None
        none = np.empty(0, dtype=np.int64)
        cells = Cells(*(np.concatenate([none, *(chunk[at] for chunk in chunks)]) for at in range(3)))
        self._check(plain)
        self.partial.files.append((rows.labels, cells))

    def _check(self, plain: PlainParquet) -> None:
        """A DataError where the file is not the one that was opened; another machine may number it in another way."""
        (file,), before = plain.files, plain.origins[0].stamp
        try:
            now = Stamp.of(file)
        except OSError as error:
            raise DataError(
                f"{own_name(file)} cannot be read by a worker ({error.strerror or error}); workers must see the table "
                "under the same path"
            ) from None
        if before is not None:
            Origin(file, Path(file), now._replace(size=before.size, modified=before.modified)).check()
