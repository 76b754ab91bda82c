"""Score tables that stay in their files: read batch by batch, in memory that does not depend on their length."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.data.labels import Coded, as_text
from matchbound.errors import DataError, argument, plainly
from matchbound.files.opening import MAX_BYTES, Input, Origin, files_below, is_address, open_input, own_name
from matchbound.notes import Note
from matchbound.readers.parquet import PARQUET, batches, check_size, open_parquet
from matchbound.readers.roles import PairRoles, Sides, find_roles
from matchbound.readers.tables import Contradictions, Table, distance_note
from matchbound.readers.text import Layout, checked_blocks, read_header, table_layout, text_place

BATCH_ROWS = 1 << 20
# Characters that an engine may take for a pattern of names.
GLOB = frozenset("*?[")


@dataclass(frozen=True)
class ScoreFile:
    """A table of comparisons that stays in its file and is read batch by batch whenever it is counted.

    `scan` makes it and explains the fields.
    """

    path: str
    distance: bool | None = None
    columns: Mapping[str, str | None] | None = None
    group: str | None = None
    _seen: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    kind: ClassVar[Literal["table"]] = "table"

    def __repr__(self) -> str:
        return f"ScoreFile({own_name(self.path)!r}, distance={self.distance}, group={self.group!r})"

    @property
    def origin(self) -> tuple[Origin, ...]:
        """The file, or those of a folder, as they were when they were first read; empty before that."""
        return tuple(self._seen.get("origins", ()))

    def findings(self) -> tuple[Note, ...]:
        """What reading in batches cannot see, and what the last pass over the table found."""
        return (
            Note(
                "in-batches",
                "the table was read in batches: repeated comparisons and numbers of instances were not looked at",
            ),
            *self._seen.get("notes", ()),
        )

    def ended(self, notes: Sequence[Note]) -> None:
        """A pass over the table ended that found these `notes`."""
        self._seen["notes"] = tuple(notes)

    def inputs(self) -> list[Input]:
        """The files, which must be those that were read before."""
        files = None if is_address(self.path) else files_below(self.path)
        tables = [self.path] if files is None else [file for file in files if file.endswith(PARQUET)]
        if not tables:
            raise DataError(f"{self.path} is a folder without Parquet files; a table on disk is one file, or those")
        sources = [open_input(table, MAX_BYTES) for table in tables]
        for origin in self.origin:
            origin.check()
        if self.origin and len(sources) != len(self.origin):
            raise DataError(f"{len(sources)} files where {len(self.origin)} were read before; write the folder again")
        self._seen.setdefault("origins", tuple(source.origin for source in sources))
        return sources


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


@dataclass(frozen=True, eq=False)
class ScoreBatch:
    """Some rows of a score table: the identities of both sides, and the scores, shape (rows,)."""

    a: Coded
    b: Coded
    score: FloatArray


def scan_scores(source: ScoreFile) -> Iterator[ScoreBatch]:
    """The rows of a table of comparisons, batch by batch."""
    parts = _open(source)
    roles, (id_a, id_b) = parts[0].roles, parts[0].ids
    contradictions = Contradictions()
    notes: dict[Note, None] = {}
    for part in parts:
        for table in part.tables((id_a, id_b, *roles.truths), (roles.score,)):
            a, b = table.coded(id_a), table.coded(id_b)
            contradictions.look(table, roles, a, b)
            notes.update(dict.fromkeys([*table.notes, *a.notes(id_a), *b.notes(id_b)]))
            yield ScoreBatch(a, b, table.numbers(roles.score))
    chosen = [distance_note(roles.score)] if source.distance is None and roles.distance else []
    source.ended([*chosen, *roles.notes, *notes, *contradictions.notes()])


def holds_distances(source: ScoreFile) -> bool:
    """Whether small scores mean "same": as the caller says, or the name of the score column."""
    return _open(source)[0].roles.distance if source.distance is None else source.distance


def scan_groups(source: ScoreFile, group: str | None = None) -> dict[str, str]:
    """The group of each identity of a table, by one pass over it; contradictions are an error.

    The column is `group`, else that of the source, else one named group.
    """
    parts = _open(source, group or source.group)
    name, roles = parts[0].source.name, parts[0].roles
    if roles.groups is None:
        raise DataError(
            f"{name}: the table names no group: it has no columns group_a and group_b. Give "
            f"{argument('group')} (a column) or {argument('people')} (a table of people)"
        )
    sides = tuple(zip(parts[0].ids, roles.groups, strict=True))
    known: dict[str, str] = {}
    for table in (table for part in parts for table in part.tables([name for side in sides for name in side])):
        for identity, label in (pair for a, b in sides for pair in _distinct(table.coded(a), table.coded(b))):
            if known.setdefault(identity, label) != label:
                raise DataError(
                    f"{name}: identity {identity} is in group {known[identity]} in one row and in group {label} "
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
class _Part:
    """One file of a table of comparisons: what its columns are, and batches of its rows."""

    source: Input
    roles: PairRoles
    ids: Sides
    header: Layout | None = None
    schema: Any = None
    rows: int = 0

    def tables(self, labels: Sequence[str], numbers: Sequence[str] = ()) -> Iterator[Table]:
        """Some columns of the rows, batch by batch; the file must not change meanwhile."""
        import pyarrow as pa

        done, name, labels = 0, self.source.name, list(dict.fromkeys(labels))
        try:
            if self.header is None:
                with open_parquet(self.source) as file:
                    for batch in batches(file, [*labels, *numbers], BATCH_ROWS):
                        yield Table(name, pa.Table.from_batches([batch]), start=done)
                        done += batch.num_rows
            else:
                layout = table_layout(self.source, self.header, labels, numbers)
                for block in checked_blocks(self.source, layout):
                    yield Table(name, block, text_place(self.source, layout, done), layout.notes())
                    done += block.num_rows
        except MemoryError:
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DataError(f"{name}, after row {done}: {plainly(error, 200)}") from None
        self.source.origin.check()


def _open(table: ScoreFile, group: str | None = None) -> list[_Part]:
    """The files of a table, whose columns must be the same."""
    parts: list[_Part] = []
    for source in table.inputs():
        found: dict[str, Any] = {}
        if source.kind == "parquet":
            with open_parquet(source) as file:
                names = file.schema_arrow.names
                check_size(file, (), source)
                found = {"schema": file.schema_arrow, "rows": int(file.metadata.num_rows)}
        elif source.kind == "text":
            found["header"] = read_header(source)
            names = found["header"].names
        else:
            raise DataError(f"{source.name} holds no table of scores; give Parquet, CSV or TSV")
        roles = find_roles(names, source.name, columns=table.columns, group=group)
        if not isinstance(roles, PairRoles) or roles.ids is None:
            raise DataError(f"{source.name}: a table is read in batches when it has two identity columns and a score")
        if parts and roles != parts[0].roles:
            raise DataError(f"{source.name}: its columns differ from those of {parts[0].source.name}")
        parts.append(_Part(source, roles, roles.ids, **found))
    return parts


@dataclass(frozen=True)
class PlainParquet:
    """A table of comparisons that another engine can read by itself: local Parquet files with plain labels.

    files : tuple of str
        Absolute paths, the same for every process.
    rows : tuple of int
        How many rows each file has.
    whole : bool
        Whether labels are whole numbers that int64 holds; else they are text.
    """

    files: tuple[str, ...]
    origins: tuple[Origin, ...]
    rows: tuple[int, ...]
    roles: PairRoles
    id_a: str
    id_b: str
    whole: bool


def plain_parquet(table: ScoreFile) -> PlainParquet | None:
    """A table on disk as another engine may read it; None where only the readers of this package know its rules.

    Those are text, addresses, labels of mixed or unusual kinds, scores that are not plain numbers, and columns that
    say which rows are genuine.
    """
    parts = _open(table)
    if any(part.schema is None or part.source.path is None or GLOB & set(str(part.source.path)) for part in parts):
        return None
    roles, ids = parts[0].roles, parts[0].ids
    kinds = {_kind(part.schema.field(name).type) for part in parts for name in ids}
    scores = {_kind(part.schema.field(roles.score).type) for part in parts}
    # an engine that ignores case could take one column for another
    alike = any(len({name.lower() for name in part.schema.names}) < len(part.schema.names) for part in parts)
    if alike or not scores <= {"whole", "float"} or kinds not in ({"text"}, {"whole"}) or roles.truths:
        return None
    paths = tuple(str(Path(str(part.source.path)).absolute()) for part in parts)
    origins, rows = tuple(part.source.origin for part in parts), tuple(part.rows for part in parts)
    return PlainParquet(paths, origins, rows, roles, *ids, kinds == {"whole"})


def _kind(kind: Any) -> str:
    """What a column holds: text, whole numbers that int64 holds, floats of 32 or 64 bits, or something else."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return "float"
    return "whole" if pa.types.is_integer(kind) and not pa.types.is_uint64(kind) else ""
