"""Protocols as files: write a list of comparisons to score, and read one back."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from matchbound.arraytypes import IntArray, LabelArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.labels import as_text, encode
from matchbound.errors import DataError, MatchboundWarning, UsageError, plainly, shorten
from matchbound.files.opening import open_input
from matchbound.files.writing import whole_file
from matchbound.notes import Note
from matchbound.readers.containers import load_table
from matchbound.readers.roles import check_names
from matchbound.readers.tables import Table
from matchbound.show.records import is_formula

if TYPE_CHECKING:
    from matchbound.planning.protocol import Protocol

COLUMNS = ("id_a", "instance_a", "id_b", "instance_b")
_ROWS = 1 << 18
_IDENTITY = ("identity", "id", "subject", "subject_id", "person", "person_id", "speaker", "speaker_id", "label")
_INSTANCE = ("instance", "instance_id", "image", "file", "filename", "path", "recording", "utterance", "sample")


def write_protocol(
    protocol: Protocol,
    path: str | os.PathLike[str],
    scores: Comparisons | None = None,
    *,
    format: Literal["csv", "parquet"] | None = None,
) -> Path:
    """Write a protocol as CSV or Parquet, by the ending of the name unless `format` says which.

    Columns id_a, instance_a, id_b, instance_b, and with `scores` (see `score_protocol`) a column score, which makes the
    file one that `matchbound.read` takes. An instance without a name goes by its row, from 0. The file appears whole.
    """
    from pyarrow import csv, parquet

    target = Path(path)
    chosen = format or target.suffix.lower().removeprefix(".")
    if chosen not in ("csv", "parquet"):
        raise UsageError(
            f"{target}: a protocol is written as .csv or .parquet; got the ending {target.suffix or 'none'!r}"
        )
    if scores is not None and len(scores) != len(protocol):
        raise UsageError(f"scores has {len(scores)} comparisons and the protocol {len(protocol)}; they must agree")
    if chosen == "csv":
        _warn_of_formulas(protocol, target)
    with whole_file(target) as place:
        batches = _batches(protocol, scores)
        head = next(batches)
        if chosen == "csv":
            writer = csv.CSVWriter(place, head.schema, write_options=csv.WriteOptions(quoting_style="needed"))
        else:
            writer = parquet.ParquetWriter(place, head.schema)
        with writer:
            writer.write_batch(head)
            for batch in batches:
                writer.write_batch(batch)
    return target


def _warn_of_formulas(protocol: Protocol, target: Path) -> None:
    """Names stay as they are, because the file is matched with data; a warning says that some look like formulas."""
    labels = (label for names in (protocol.identity, protocol.instance) if names is not None for label in set(names))
    formula = next((str(label) for label in labels if is_formula(str(label))), None)
    if formula is not None:
        text = (
            f"{target.name}: a spreadsheet would take the name {shorten(formula)!r} for a formula; open the file with "
            "programs only, or write .parquet"
        )
        warnings.warn(Note("formula", text), MatchboundWarning, stacklevel=3)


def _batches(protocol: Protocol, scores: Comparisons | None) -> Iterator[Any]:
    """Record batches of the file, so that a long protocol is never held as text."""
    import pyarrow as pa

    identity = pa.array(protocol.identity)
    instance = pa.array(np.arange(protocol.identity.size) if protocol.instance is None else protocol.instance)
    for start in range(0, len(protocol), _ROWS):
        rows = slice(start, start + _ROWS)
        sides = [names.take(pa.array(side[rows])) for side in (protocol.first, protocol.second)
                 for names in (identity, instance)]  # fmt: skip
        columns = dict(zip(COLUMNS, sides, strict=True))
        if scores is not None:
            columns["distance" if scores.distance else "score"] = pa.array(scores.score[rows])
        yield pa.RecordBatch.from_pydict(columns)


def _load(path: str | os.PathLike[str]) -> Table:
    table = load_table(open_input(path))
    check_names(table.names, table.source)
    return table


def read_rows(path: str | os.PathLike[str], embeddings: Embeddings) -> tuple[IntArray, IntArray]:
    """The two rows of embeddings that each line of a protocol file joins, shapes (n,)."""
    table = _load(path)
    missing = [name for name in COLUMNS if name not in table.data.column_names]
    if missing:
        raise DataError(f"{table.source}: column {missing[0]} is missing; a protocol has columns {', '.join(COLUMNS)}")
    shown = embeddings.identities[embeddings.codes]
    sides = []
    for side in ("a", "b"):
        identity, instance = table.labels(f"id_{side}"), table.labels(f"instance_{side}")
        rows = _rows_of(instance, identity, embeddings, f"{table.source}, column instance_{side}")
        differs = np.flatnonzero(as_text(shown[rows]) != as_text(identity))
        if differs.size:
            at = int(differs[0])
            raise DataError(
                f"{table.where(at)}: instance {plainly(instance[at])} belongs to {plainly(identity[at])} in the "
                f"protocol and to {plainly(shown[rows[at]])} in the embeddings"
            )
        sides.append(rows)
    return sides[0], sides[1]


def _rows_of(instance: LabelArray, identity: LabelArray, embeddings: Embeddings, where: str) -> IntArray:
    """Row numbers of instances, shape (B,)."""
    if embeddings.instance is None:
        try:
            rows = instance.astype(np.int64)
        except ValueError:
            raise DataError(
                f"{where}: the embeddings do not name their rows, so instances must be row numbers"
            ) from None
        bad = np.flatnonzero((rows < 0) | (rows >= len(embeddings)))
        if bad.size:
            at = int(bad[0])
            raise DataError(f"{where}, row {at}: there is no row {rows[at]} in {len(embeddings)} embeddings")
        return rows
    # names need be unique only within an identity
    _, (own, wanted) = encode(as_text(embeddings.identities[embeddings.codes]), as_text(identity))
    names, (named, called) = encode(as_text(embeddings.instance), as_text(instance))
    known, asked = own * np.int64(names.size) + named, wanted * np.int64(names.size) + called
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known[order], asked), known.size - 1)
    rows = order[place].astype(np.int64)
    bad = np.flatnonzero(known[rows] != asked)
    if bad.size:
        row = int(bad[0])
        raise DataError(
            f"{where}, row {row}: the embeddings have no instance {plainly(instance[row])} of {plainly(identity[row])}"
        )
    return rows


@dataclass(frozen=True, eq=False)
class Instances:
    """A list of instances without vectors or scores: who each shows and, where named, what it is called; shape (n,)."""

    identity: LabelArray
    instance: LabelArray | None


def read_instances(path: str | os.PathLike[str]) -> Instances | None:
    """A CSV or Parquet list of instances (columns identity and, optionally, instance), or None where it is not one.

    A table with a column besides these may hold scores or vectors, and is left to `matchbound.read`.
    """
    if Path(path).suffix.lower() not in (".csv", ".parquet") or not Path(path).is_file():
        return None
    table = _load(path)
    names = {name.strip().lower(): name for name in table.data.column_names}
    identity = next((names[name] for name in _IDENTITY if name in names), None)
    instance = next((names[name] for name in _INSTANCE if name in names), None)
    if identity is None or len(names) > (1 if instance is None else 2):
        return None
    return Instances(table.labels(identity), None if instance is None else table.labels(instance))
