"""A Parquet table in pieces that any process can read by itself: some row groups of one file each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matchbound.data.labels import Coded
from matchbound.errors import DataError
from matchbound.files.opening import MAX_BYTES, open_input
from matchbound.files.origin import Stamp
from matchbound.notes import Note
from matchbound.readers.parquet import batches, open_parquet, place
from matchbound.readers.roles import PairRoles
from matchbound.readers.scan import BATCH_ROWS, ScoreBatch, ScoreFile, parquet_files, roles_of_pairs, wanted_columns
from matchbound.readers.tables import Contradictions, Table, check_truths, distance_note

PIECE_ROWS = 1 << 22
"""Row groups of a file are read together up to so many rows."""


@dataclass
class Said:
    """What rows had to say beside their numbers: contradictions, and labels with spaces at their ends."""

    contradictions: Contradictions = field(default_factory=Contradictions)
    padded: dict[Note, None] = field(default_factory=dict)

    def add(self, other: Said) -> None:
        """What further rows said too."""
        self.contradictions.add(other.contradictions)
        self.padded.update(other.padded)


@dataclass(frozen=True)
class Piece:
    """Row groups `start` to `stop` − 1 of a file, by its number; they begin at row `row` of it and have `rows` rows."""

    file: int
    start: int
    stop: int
    row: int
    rows: int


@dataclass(frozen=True)
class TablePieces:
    """A table of comparisons in Parquet files, cut into pieces by its footers alone.

    files : tuple of str
        Absolute paths, the same for every process.
    stamps : tuple of (int, int)
        Size and time of the last change of each file.
    """

    files: tuple[str, ...]
    names: tuple[str, ...]
    stamps: tuple[tuple[int, int], ...]
    pieces: tuple[Piece, ...]
    roles: PairRoles
    id_a: str
    id_b: str
    text: tuple[str, ...]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(piece.rows for piece in self.pieces)

    def notes(self, said: Said, distance: bool | None) -> tuple[Note, ...]:
        """What a pass over all pieces found, as a pass of `scan` tells it."""
        chosen = [] if distance is not None or not self.roles.distance else [distance_note(self.roles.score)]
        return (*chosen, *self.roles.notes, *said.padded, *said.contradictions.notes())

    def labels(self, number: int) -> Iterator[tuple[Coded, Coded]]:
        """The labels of both sides of the rows of a piece, batch by batch."""
        for table in self._tables(number, [self.id_a, self.id_b]):
            yield table.coded(self.id_a), table.coded(self.id_b)

    def batches(self, number: int, said: Said) -> Iterator[ScoreBatch]:
        """The rows of a piece, batch by batch; what they had to say is added to `said`."""
        names, scores = wanted_columns(self.roles, self.id_a, self.id_b)
        for table in self._tables(number, [*names, *scores]):
            a, b = table.coded(self.id_a), table.coded(self.id_b)
            if self.roles.truths:
                said.contradictions.add(check_truths(table, self.roles, a, b))
            for name, column in ((self.id_a, a), (self.id_b, b)):
                said.padded.update(dict.fromkeys(column.notes(name)))
            yield ScoreBatch(a, b, table.numbers(self.roles.score))

    def _tables(self, number: int, columns: list[str]) -> Iterator[Table]:
        import pyarrow as pa

        piece = self.pieces[number]
        path, name = self.files[piece.file], self.names[piece.file]
        self._check(piece.file)
        seen = piece.row
        with open_parquet(open_input(path, MAX_BYTES), read_dictionary=list(self.text)) as file:
            for group in range(piece.start, piece.stop):
                for batch in batches(file, columns, BATCH_ROWS, group):
                    yield Table(name, pa.Table.from_batches([batch]), place(name, seen))
                    seen += batch.num_rows
        if seen != piece.row + piece.rows:
            raise DataError(f"{name} is damaged: {seen - piece.row} of {piece.rows} rows of a part are there")
        self._check(piece.file)

    def _check(self, file: int) -> None:
        """A DataError where a file is not the one that was cut into pieces."""
        try:
            stamp = Stamp.of(self.files[file])
        except OSError as error:
            raise DataError(
                f"{self.names[file]} cannot be read by a worker ({error.strerror or error}); workers must see the "
                "table under the same path"
            ) from None
        if (stamp.size, stamp.modified) != self.stamps[file]:
            raise DataError(
                f"{self.names[file]} changed while it was being used: what was counted is no longer what is in the "
                "file. Run this again when nothing writes to it"
            )


def pieces_of(table: ScoreFile) -> TablePieces | None:
    """The pieces of a table on disk; None where it has no rows, or is not in Parquet with labels of one plain kind."""
    files = parquet_files(table.path)
    sources = [open_input(file, MAX_BYTES) for file in ([table.path] if files is None else files)]
    if any(source.kind != "parquet" or source.path is None for source in sources):
        return None
    table.begin(tuple(source.origin for source in sources))
    found: tuple[PairRoles, str, str] | None = None
    kinds: set[str] = set()
    text: set[str] = set()
    pieces: list[Piece] = []
    for number, source in enumerate(sources):
        with open_parquet(source) as file:
            roles = roles_of_pairs(file.schema_arrow.names, source.name, table.columns, None)
            if found is not None and roles != found:
                raise DataError(f"{source.name}: its columns differ from those of {sources[0].name}")
            found = roles
            for name in roles[1:]:
                kinds.add(_kind(file.schema_arrow.field(name).type))
            labels = wanted_columns(*roles)[0]
            text.update(name for name in labels if _kind(file.schema_arrow.field(name).type) == "text")
            pieces += _cut(file.metadata, number)
    assert found is not None
    if len(kinds) != 1 or "" in kinds or not pieces:
        return None
    stamps = [source.origin.stamp for source in sources]
    return TablePieces(
        tuple(str(Path(str(source.path)).absolute()) for source in sources),
        tuple(source.name for source in sources),
        tuple((stamp.size, stamp.modified) for stamp in stamps if stamp is not None),
        tuple(pieces),
        found[0],
        found[1],
        found[2],
        tuple(sorted(text)),
    )


def _kind(kind: Any) -> str:
    """What a column of labels holds: text, whole numbers that int64 holds, or something that pieces cannot have."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    return "whole" if pa.types.is_integer(kind) and not pa.types.is_uint64(kind) else ""


def _cut(metadata: Any, file: int) -> list[Piece]:
    """Row groups in a row, up to `PIECE_ROWS` rows or one row group."""
    made: list[Piece] = []
    start, row, rows = 0, 0, 0
    for group in range(metadata.num_row_groups):
        more = metadata.row_group(group).num_rows
        if rows and rows + more > PIECE_ROWS:
            made.append(Piece(file, start, group, row, rows))
            start, row, rows = group, row + rows, 0
        rows += more
    if rows:
        made.append(Piece(file, start, metadata.num_row_groups, row, rows))
    return made
