"""Read a score table batch by batch, in memory that does not depend on its length."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.data.labels import Coded, as_text
from matchbound.errors import DataError, argument, plainly
from matchbound.files.names import own_name
from matchbound.files.opening import MAX_BYTES, Input, is_address, local_path, open_input
from matchbound.files.origin import Origin
from matchbound.notes import Note
from matchbound.readers.parquet import batches, check_size, open_parquet, place
from matchbound.readers.roles import PairRoles, find_roles
from matchbound.readers.tables import Contradictions, Table, check_truths, distance_note
from matchbound.readers.text import checked_blocks, read_header, split_header, table_layout

T = TypeVar("T")

BATCH_ROWS = 1 << 20
BATCH_BYTES = 32 << 20


@dataclass(frozen=True, eq=False)
class ScoreBatch:
    """Some rows of a score table: the identities of both sides, and the scores, shape (rows,)."""

    a: Coded
    b: Coded
    score: FloatArray


@dataclass(frozen=True, eq=False)
class ScoreScan:
    """A score table that is read while it is used.

    rows : int
        How many rows there are; 0 where that is not known before reading.
    distance : bool
        Whether the name of the score column says that small scores mean "same".
    """

    source: str
    rows: int
    distance: bool
    batches: Iterator[ScoreBatch] = field(repr=False)


@dataclass(frozen=True)
class ScoreFile:
    """A table of comparisons that stays in its file and is read batch by batch whenever it is counted.

    path
        Parquet, CSV or TSV, an address that fsspec understands, or a folder of Parquet files that make one table.
    distance
        Whether small scores mean "same"; None for what the name of the score column says.
    columns
        Which column plays which part, where the names do not say.
    group
        The column with the group of identities: ``"sex"`` finds ``sex_a`` and ``sex_b``; None for one named so.
    """

    path: str
    distance: bool | None = None
    columns: Mapping[str, str | None] | None = None
    group: str | None = None
    _seen: _Seen = field(default_factory=lambda: _Seen(), repr=False, compare=False)

    def __repr__(self) -> str:
        return f"ScoreFile({own_name(self.path)!r}, distance={self.distance}, group={self.group!r})"

    def findings(self) -> tuple[Note, ...]:
        """What reading in batches cannot see, and what the last pass over the table found."""
        return (
            Note(
                "in-batches",
                "the table was read in batches: repeated comparisons and numbers of instances were not looked at",
            ),
            *self._seen.notes,
        )

    def begin(self, origins: tuple[Origin, ...]) -> None:
        """A pass over the table begins; a DataError where its files have changed.

        Parameters
        ----------
        origins
            The files as they are now.
        """
        self._seen.begin(origins)

    def ended(self, notes: tuple[Note, ...]) -> None:
        """A pass over the table ended.

        Parameters
        ----------
        notes
            What it found.
        """
        self._seen.notes = notes

    @property
    def memo(self) -> dict[str, Any]:
        """What was made of this table once, and is good while its files stay as they are."""
        return self._seen.memo

    @property
    def origin(self) -> tuple[Origin, ...]:
        """The file, or those of a folder, as they were when they were first read; empty before that."""
        return self._seen.origins


@dataclass(eq=False)
class _Seen:
    """What passes over a table have seen: the file as it was in the first of them, and notes."""

    origins: tuple[Origin, ...] = ()
    notes: tuple[Note, ...] = ()
    memo: dict[str, Any] = field(default_factory=dict)

    def begin(self, origins: tuple[Origin, ...]) -> None:
        """A further pass begins: the files must be those that were read before."""
        for origin in self.origins:
            origin.check()
        if self.origins and len(origins) != len(self.origins):
            raise DataError(f"{len(origins)} files where {len(self.origins)} were read before; write the folder again")
        self.origins = self.origins or origins


def scan(
    path: str | os.PathLike[str],
    *,
    distance: bool | None = None,
    columns: Mapping[str, str | None] | None = None,
    group: str | None = None,
) -> ScoreFile:
    """A score table too large for memory, for `evaluate`, `roc` and `by_group`: nothing is read until it is counted.

    With ``executor=mb.DaskExecutor(…)``, `evaluate`, `tally` and `roc` let every worker count Parquet files of its own.
    What needs comparisons matched or one by one (`compare`, reports) reads the table into
    memory.

    Parameters
    ----------
    path
        Parquet, CSV or TSV with two identity columns and a score; a file, an address that fsspec understands, or a
        folder of Parquet files that make one table.
    distance, columns, group
        As in `read`.

    Returns
    -------
    ScoreFile
        A table that is counted where it lies.

    See Also
    --------
    read

    Examples
    --------
    >>> import matchbound as mb
    >>> from pathlib import Path
    >>> _ = Path("scores.csv").write_text("identity_a,identity_b,score\\nann,ann,0.9\\nann,bob,0.2\\nbob,eve,0.7\\n")
    >>> rates = mb.evaluate(mb.scan("scores.csv"), 0.5)
    >>> rates.far.errors, rates.far.comparisons
    (1, 2)
    """
    return ScoreFile(os.fspath(path), distance, columns, group)


def scan_scores(
    path: str | os.PathLike[str] | ScoreFile, *, columns: Mapping[str, str | None] | None = None
) -> ScoreScan:
    """Open a Parquet, CSV or TSV table of comparisons, in a file or at an address, for reading in batches."""
    source = path if isinstance(path, ScoreFile) else ScoreFile(os.fspath(path), columns=columns)
    found = _open(source, None)
    roles = found.roles
    said = Contradictions()
    padded: dict[Note, None] = {}

    def scored(table: Table) -> ScoreBatch:
        a, b = table.coded(found.id_a), table.coded(found.id_b)
        if roles.truths:
            said.add(check_truths(table, roles, a, b))
        for name, column in ((found.id_a, a), (found.id_b, b)):
            padded.update(dict.fromkeys(column.notes(name)))
        return ScoreBatch(a, b, table.numbers(roles.score))

    def told() -> Iterator[ScoreBatch]:
        yield from _decoded(found, scored)
        chosen = [] if source.distance is not None or not roles.distance else [distance_note(roles.score)]
        source._seen.notes = (*chosen, *roles.notes, *padded, *said.notes())

    return ScoreScan(found.name, found.rows, roles.distance, told())


def scan_groups(source: ScoreFile, group: str | None = None) -> dict[str, str]:
    """The group of each identity of a table, by one pass over it; contradictions are an error.

    Parameters
    ----------
    group
        The column; by default that of the source, else one named group.
    """
    found = _open(source, group or source.group, groups=True)
    roles = found.roles
    if roles.group_a is None or roles.group_b is None:
        raise DataError(
            f"{found.name}: the table names no group: it has no columns group_a and group_b. Give "
            f"{argument('group')} (a column) or {argument('people')} (a table of people)"
        )
    sides = (found.id_a, roles.group_a), (found.id_b, roles.group_b)

    def stated(table: Table) -> list[tuple[str, str]]:
        return [pair for identity, label in sides for pair in _distinct(table.coded(identity), table.coded(label))]

    known: dict[str, str] = {}
    for pairs in _decoded(found, stated):
        for identity, label in pairs:
            if known.setdefault(identity, label) != label:
                raise DataError(
                    f"{found.name}: identity {identity} is in group {known[identity]} in one row and in group {label} "
                    "in another; a group belongs to an identity"
                )
    return known


def _distinct(one: Coded, two: Coded) -> list[tuple[str, str]]:
    """The pairs of labels that occur side by side in two columns, each once."""
    width = np.int64(max(two.labels.size, 1))
    keys = np.unique(one.codes.astype(np.int64) * width + two.codes)
    who, what = as_text(one.labels), as_text(two.labels)
    return [(str(who[key // width]), str(what[key % width])) for key in keys]


@dataclass(frozen=True, eq=False)
class _Opened:
    """A table of comparisons that is open: what its columns are, and batches of its rows."""

    name: str
    rows: int
    roles: PairRoles
    id_a: str
    id_b: str
    origin: Origin
    batches: Iterator[Any] = field(repr=False)
    parts: tuple[_Opened, ...] = ()


def _open(table: ScoreFile, group: str | None, *, groups: bool = False) -> _Opened:
    """Open a table for its identities and scores, or for its identities and groups."""
    files = parquet_files(table.path)
    if files is None:
        source = open_input(table.path, MAX_BYTES)
        table._seen.begin((source.origin,))
        return _open_file(source, table, group, groups)
    sources = [open_input(file, MAX_BYTES) for file in files]
    table._seen.begin(tuple(source.origin for source in sources))
    parts = [_open_file(source, table, group, groups) for source in sources]
    for part in parts:
        if part.roles != parts[0].roles:
            raise DataError(f"{part.name}: its columns differ from those of {parts[0].name}")
    return replace(parts[0], rows=sum(part.rows for part in parts), parts=tuple(parts))


def parquet_files(path: str) -> list[str] | None:
    """The Parquet files of a folder, in order; None for anything else."""
    where = Path(local_path(path))
    if is_address(path) or path == "-" or "\0" in path or not where.is_dir():
        return None
    found = sorted(
        str(file)
        for file in where.rglob("*")
        if file.suffix in (".parquet", ".pq") and not file.name.startswith((".", "_"))
    )
    if not found:
        raise DataError(f"{path} is a folder without Parquet files; a table on disk is one file, or Parquet files")
    return found


def _open_file(source: Input, table: ScoreFile, group: str | None, groups: bool) -> _Opened:
    if source.kind == "parquet" and not source.piped:
        return _open_parquet(source, table.columns, group, groups)
    if source.kind == "text":
        return _open_text(source, table.columns, group, groups)
    raise DataError(f"{source.name} holds no table of scores; give Parquet, CSV or TSV")


def roles_of_pairs(
    names: list[str], source: str, columns: Mapping[str, str | None] | None, group: str | None
) -> tuple[PairRoles, str, str]:
    """The parts that columns play, and the two columns of identities; a DataError where there are none."""
    roles = find_roles(names, source, columns=columns, group=group)
    if not isinstance(roles, PairRoles) or roles.id_a is None or roles.id_b is None:
        raise DataError(f"{source}: a table is read in batches when it has two identity columns and a score")
    return roles, roles.id_a, roles.id_b


def wanted_columns(roles: PairRoles, id_a: str, id_b: str, groups: bool = False) -> tuple[list[str], list[str]]:
    """The columns that hold labels, and those that hold numbers."""
    if not groups:
        return list(dict.fromkeys((id_a, id_b, *roles.truths))), [roles.score]
    return list(dict.fromkeys(name for name in (id_a, id_b, roles.group_a, roles.group_b) if name is not None)), []


def _open_parquet(source: Input, columns: Mapping[str, str | None] | None, group: str | None, groups: bool) -> _Opened:
    import pyarrow as pa

    with open_parquet(source) as file:
        roles, id_a, id_b = roles_of_pairs(file.schema_arrow.names, source.name, columns, group)
        labels, numbers = wanted_columns(roles, id_a, id_b, groups)
        text = [at for at in labels if pa.types.is_string(file.schema_arrow.field(at).type)]
        rows = file.metadata.num_rows
        check_size(file, (), source.name, source.max_bytes, source.size)

    def found() -> Iterator[Any]:
        with open_parquet(source, read_dictionary=text) as file:
            yield from batches(file, [*labels, *numbers], BATCH_ROWS)

    return _Opened(source.name, rows, roles, id_a, id_b, source.origin, found())


def _open_text(source: Input, columns: Mapping[str, str | None] | None, group: str | None, groups: bool) -> _Opened:
    at, header = read_header(source)
    names, delimiter = split_header(header, source.name)
    roles, id_a, id_b = roles_of_pairs(names, source.name, columns, group)
    labels, numbers = wanted_columns(roles, id_a, id_b, groups)
    layout = table_layout(source, names, labels, numbers, delimiter, at)
    roles = replace(roles, notes=(*roles.notes, *layout.notes()))
    return _Opened(source.name, 0, roles, id_a, id_b, source.origin, checked_blocks(source, layout))


def _decoded(found: _Opened, convert: Callable[[Table], T]) -> Iterator[T]:
    """What is made of each batch; rows are counted for messages."""
    import pyarrow as pa

    if found.parts:
        for part in found.parts:
            yield from _decoded(part, convert)
        return
    seen = 0
    try:
        for batch in found.batches:
            data = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
            yield convert(Table(found.name, data, place(found.name, seen)))
            seen += batch.num_rows
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{found.name}, after row {seen}: {plainly(error, 200)}") from None
    found.origin.check()
