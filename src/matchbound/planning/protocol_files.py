"""Protocols as files: write a list of comparisons to score, and read one back."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from matchbound.arraytypes import IntArray, LabelArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.labels import as_labels, as_text, encode, text_array
from matchbound.errors import DataError, MatchboundWarning, UsageError, plainly, shorten
from matchbound.files.opening import MAX_BYTES, open_input
from matchbound.files.writing import whole_file
from matchbound.notes import Note
from matchbound.readers.parquet import check_size
from matchbound.readers.roles import repeated
from matchbound.show.cells import is_formula

if TYPE_CHECKING:
    from matchbound.planning.protocol import Protocol

COLUMNS = ("id_a", "instance_a", "id_b", "instance_b")
_ROWS = 1 << 18


def write_protocol(
    protocol: Protocol,
    path: str | os.PathLike[str],
    scores: Comparisons | None = None,
    *,
    format: Literal["csv", "parquet"] | None = None,
) -> Path:
    """Write a protocol as CSV or Parquet, by the ending of the name unless `format` says which.

    Columns id_a, instance_a, id_b, instance_b, and with `scores` (see `score_protocol`) a column score, which
    makes the file one that `matchbound.read` takes. An instance without a name goes by its row number, from
    0. The file appears whole or not at all.
    """
    target = Path(path)
    chosen = format or target.suffix.lower().removeprefix(".")
    if chosen not in ("csv", "parquet"):
        raise UsageError(
            f"{target}: a protocol is written as .csv or .parquet; got the ending {target.suffix or 'none'!r}"
        )
    if scores is not None and len(scores) != len(protocol):
        raise UsageError(f"scores has {len(scores)} comparisons and the protocol {len(protocol)}; they must agree")
    write = _csv if chosen == "csv" else _parquet
    if chosen == "csv":
        _tell_formulas(protocol, target)
    with whole_file(target) as place:
        write(place, _batches(protocol, scores))
    return target


def _tell_formulas(protocol: Protocol, target: Path) -> None:
    """Names must stay as they are, because the file is matched with data; that some look like formulas is said."""
    for names in (protocol.identity, protocol.instance):
        labels = () if names is None else np.unique(names)
        found = next((str(name) for name in labels if is_formula(str(name))), None)
        if found is not None:
            warnings.warn(
                Note(
                    "formula",
                    f"{target.name}: a spreadsheet would take the name {shorten(found)!r} for a formula; open the file "
                    "with programs only, or write .parquet",
                ),
                MatchboundWarning,
                stacklevel=3,
            )
            return


def read_rows(path: str | os.PathLike[str], embeddings: Embeddings) -> tuple[IntArray, IntArray]:
    """The two rows of embeddings that each line of a protocol file joins, shapes (n,)."""
    target = Path(path)
    table = _read_table(target)
    missing = [name for name in COLUMNS if name not in table]
    if missing:
        raise DataError(f"{target}: column {missing[0]} is missing; a protocol has columns {', '.join(COLUMNS)}")
    shown = embeddings.identities[embeddings.codes]
    sides = []
    for side in ("a", "b"):
        rows = _rows_of(
            table[f"instance_{side}"], table[f"id_{side}"], embeddings, shown, f"{target}, column instance_{side}"
        )
        differs = np.flatnonzero(as_text(shown[rows]) != as_text(table[f"id_{side}"]))
        if differs.size:
            at = int(differs[0])
            raise DataError(
                f"{target}, row {at}: instance {plainly(table[f'instance_{side}'][at])} belongs to "
                f"{plainly(table[f'id_{side}'][at])} in the protocol and to {plainly(shown[rows[at]])} in the "
                "embeddings"
            )
        sides.append(rows)
    return sides[0], sides[1]


@dataclass(frozen=True, eq=False)
class Instances:
    """A list of instances without vectors or scores: who each shows and, where named, what it is called; shape (n,)."""

    identity: LabelArray
    instance: LabelArray | None


_IDENTITY = ("identity", "id", "subject", "subject_id", "person", "person_id", "speaker", "speaker_id", "label")
_INSTANCE = ("instance", "instance_id", "image", "file", "filename", "path", "recording", "utterance", "sample")


def read_instances(path: str | os.PathLike[str]) -> Instances | None:
    """A CSV or Parquet list of instances (columns identity and, optionally, instance), or None where it is not one.

    A table with a column besides these may hold scores or vectors, and is left to `matchbound.read`.
    """
    target = Path(path)
    if target.suffix.lower() not in (".csv", ".parquet") or not target.is_file():
        return None
    table = _load(target, None)
    names = {name.strip().lower(): name for name in table.column_names}
    identity = next((names[name] for name in _IDENTITY if name in names), None)
    instance = next((names[name] for name in _INSTANCE if name in names), None)
    if identity is None or len(names) > (1 if instance is None else 2):
        return None

    def labels(name: str) -> LabelArray:
        return as_labels(_values(table.column(name), name, target), f"{target}, column {plainly(name)}")

    return Instances(labels(identity), None if instance is None else labels(instance))


def _rows_of(
    instance: LabelArray, identity: LabelArray, embeddings: Embeddings, shown: LabelArray, where: str
) -> IntArray:
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
    _, (own, wanted) = encode(as_text(shown), as_text(identity))
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


def _read_table(path: Path) -> dict[str, LabelArray]:
    """The columns of a protocol file."""
    table = _load(path, COLUMNS)
    found: dict[str, LabelArray] = {}
    for name in table.column_names:
        column = table.column(name)
        if column.null_count:
            raise DataError(f"{path}: column {plainly(name)} has {column.null_count} empty cells")
        if name in COLUMNS:
            found[name] = _values(column, name, path)
    return found


def _load(path: Path, text: Sequence[str] | None) -> Any:
    """A CSV or Parquet file as an Arrow table; in CSV the columns of `text`, or all, are read as text."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    try:
        if path.suffix.lower() == ".parquet":
            with pa.OSFile(str(path)) as raw:
                file = pq.ParquetFile(raw)
                check_size(file, file.schema_arrow.names, open_input(path, MAX_BYTES))
                table = file.read()
        else:
            if text is None:
                with csv.open_csv(path) as stream:
                    text = stream.schema.names
            options = csv.ConvertOptions(column_types={name: pa.string() for name in text})
            table = csv.read_csv(path, convert_options=options)
        twice = repeated(table.column_names)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: cannot be read ({plainly(str(error).strip(), 200)})") from None
    if twice is not None:
        raise DataError(f"{path}: the column {shorten(twice)!r} occurs more than once; rename or drop one")
    return table


def _values(column: Any, name: str, path: Path) -> LabelArray:
    """The labels of a column of text or whole numbers, shape (n,)."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)):
        raise DataError(f"{path}: the column {shorten(name)!r} holds {kind}; it must hold text or whole numbers")
    try:
        values = column.to_pylist()
    except UnicodeDecodeError:
        raise DataError(f"{path}: the column {name!r} holds text that is not UTF-8") from None
    if pa.types.is_integer(kind):
        return np.asarray(values)
    return np.fromiter(values, dtype=np.object_, count=len(values)) if None in values else text_array(values)


def _batches(protocol: Protocol, scores: Comparisons | None) -> Iterator[Any]:
    """Record batches of the file, so that a long protocol is never held as text."""
    import pyarrow as pa

    names: LabelArray = np.arange(protocol.identity.size) if protocol.instance is None else protocol.instance
    identity = pa.array(protocol.identity)
    instance = pa.array(names)
    for start in range(0, len(protocol), _ROWS):
        first = pa.array(protocol.first[start : start + _ROWS])
        second = pa.array(protocol.second[start : start + _ROWS])
        columns = [identity.take(first), instance.take(first), identity.take(second), instance.take(second)]
        header = list(COLUMNS)
        if scores is not None:
            header.append("distance" if scores.distance else "score")
            columns.append(pa.array(scores.score[start : start + _ROWS]))
        yield pa.RecordBatch.from_arrays(columns, names=header)


def _csv(path: Path, batches: Iterator[Any]) -> None:
    from pyarrow import csv

    head = next(batches)
    with csv.CSVWriter(path, head.schema, write_options=csv.WriteOptions(quoting_style="needed")) as writer:
        writer.write_batch(head)
        for batch in batches:
            writer.write_batch(batch)


def _parquet(path: Path, batches: Iterator[Any]) -> None:
    import pyarrow.parquet as pq

    head = next(batches)
    with pq.ParquetWriter(path, head.schema) as writer:
        writer.write_batch(head)
        for batch in batches:
            writer.write_batch(batch)
