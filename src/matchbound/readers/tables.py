"""From a table with named columns to Comparisons or Embeddings, whatever file the table came from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import BoolArray, FloatArray, LabelArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.data.labels import Coded, coded_labels, coded_values, merge, text_array
from matchbound.data.values import FAILED, check_finite, first_null, rejected_score, values_of
from matchbound.errors import DataError, MatchboundError, argument, plainly, shorten
from matchbound.files.opening import Input, opened_inputs
from matchbound.notes import Note
from matchbound.readers.infer import infer_identities
from matchbound.readers.options import Options
from matchbound.readers.roles import DECISIONS, PairRoles, RowRoles, Sides, plain

AGAIN = "drop the row or embed it again"
# Comparisons without identities that a packed file may hold, however small it is, and for each of its bytes.
UNSEEN_ROWS, UNSEEN_PER_BYTE = 2_000_000, 4

_GENUINE = "1 1.0 true t yes y target tgt genuine gen mated same match"
_IMPOSTOR = """
    0 0.0 -1 false f no n nontarget non-target non impostor imposter imp nonmated non-mated different nonmatch
    non-match
"""
# The words that files use for genuine (True) and impostor (False), in lower case.
GENUINE_WORDS = {word: True for word in _GENUINE.split()} | {word: False for word in _IMPOSTOR.split()}


def is_frame(value: object) -> bool:
    """Whether a value is a data frame: it speaks the Arrow PyCapsule interface, or can be collected to one.

    A single column (a series) speaks it too.
    """
    columns = hasattr(value, "__arrow_c_stream__") or hasattr(type(value), "columns")
    return columns and not hasattr(value, "to_frame")


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is one of floats or integers."""
    import pyarrow as pa

    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


class NotTruthError(DataError):
    """A column that should say genuine or impostor says something else."""

    def __init__(self, message: str, word: str) -> None:
        super().__init__(message)
        self.word = word


@dataclass
class Table:
    """An Arrow table with the means to say where a row came from.

    Attributes
    ----------
    source : str
        The name of the file or frame, for messages.
    data : pyarrow.Table
    place : callable or None
        From a row number (0, 1, …) to the place in the source, such as ``"scores.csv, line 17"``; by default the row
        counts from `start`.
    notes : tuple of Note
        What was taken where there was a choice.
    """

    source: str
    data: Any
    place: Callable[[int], str] | None = None
    notes: tuple[Note, ...] = ()
    start: int = 0

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.data.column_names)

    def need(self, name: str) -> str:
        """The name of a column that must be there."""
        if name not in self.names:
            has = ", ".join(plainly(column, 40) for column in self.names[:10])
            raise DataError(f"{self.source}: there is no column {name!r}; it has {has}")
        return name

    def where(self, row: int) -> str:
        """The place of a row in the source."""
        return f"{self.source}, row {self.start + row}" if self.place is None else self.place(row)

    def labels(self, name: str) -> LabelArray:
        """A column of labels as text or integers, shape (n,)."""
        return self.coded(name).decoded()

    def coded(self, name: str) -> Coded:
        """A column of labels, text or integers; missing and empty labels are an error that names the place."""
        import pyarrow as pa

        def subject(row: int) -> str:
            return f"{self.where(row)}: {name}"

        column = self.data.column(name)
        if column.null_count:
            raise DataError(f"{subject(first_null(column))} is missing; fill it in or drop the row")
        kind = column.type
        if is_number(kind):
            return coded_labels(values_of(column), name, subject)
        if pa.types.is_boolean(kind):
            return Coded(text_array(["False", "True"]), values_of(column.cast(pa.uint8())))
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise DataError(f"{self.source}: the column {name!r} holds {kind}; labels must be text or integers")
        if not pa.types.is_dictionary(kind):
            column = column.dictionary_encode()
        if column.num_chunks > 1:
            column = column.unify_dictionaries().combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], pa.string()).dictionary_encode()
        try:
            words = column.dictionary.to_pylist()
        except UnicodeDecodeError:
            raise DataError(f"{self.source}: the column {name!r} holds text that is not UTF-8") from None
        return coded_values(words, values_of(column.indices), subject)

    def both(self, sides: Sides | None) -> tuple[Coded, Coded] | None:
        """The columns of labels of either side; None where there are none."""
        return None if sides is None else (self.coded(sides[0]), self.coded(sides[1]))

    def keep(self, names: Sequence[str]) -> None:
        """Forget all other columns: what was made of them has the room."""
        self.data = self.data.select([name for name in self.names if name in names])

    def with_labels(self, **columns: Coded) -> Table:
        """This table with further columns of labels, which are known to be good."""
        import pyarrow as pa

        data = self.data
        for name, column in columns.items():
            coded = pa.DictionaryArray.from_arrays(pa.array(column.codes), pa.array(column.labels.tolist()))
            data = data.append_column(name, coded)
        return replace(self, data=data)

    def numbers(self, name: str, remedy: str = FAILED, *, may_miss: bool = False) -> FloatArray:
        """A column of finite numbers, shape (n,); `remedy` is what to do about one that is not.

        Missing numbers are NaN where they `may_miss`.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.data.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not is_number(column.type):
            try:
                column = column.cast(pa.float64())
            except MemoryError:
                raise
            except pa.ArrowException as error:
                wrong = re.search(r"parse string: '(.*)' as", str(error))
                if wrong is not None and pa.types.is_string(column.type):
                    row = int(pc.index(column, wrong[1]).as_py())
                    if row >= 0:
                        raise DataError(f"{self.where(row)}: {name} is {shorten(wrong[1])!r}, not a number") from None
                raise DataError(
                    f"{self.source}: the column {name!r} must hold numbers ({plainly(error, 200)})"
                ) from None
        if column.null_count and may_miss:
            column = column.cast(pa.float64()).fill_null(np.nan)
        elif column.null_count:
            raise DataError(f"{self.where(first_null(column))}: {name} is missing; {remedy}")
        values = values_of(column).astype(np.float64, copy=False)
        check_finite(values, lambda row: f"{self.where(row)}: {name} is", remedy, may_miss=may_miss)
        return values

    def kept(self, rows: BoolArray) -> Table:
        """Some of the rows; places are still those of the source."""
        import pyarrow as pa

        numbers = np.flatnonzero(rows)
        return Table(self.source, self.data.filter(pa.array(rows)), lambda row: self.where(int(numbers[row])))

    def truths(self, name: str) -> BoolArray:
        """A column that says genuine or impostor in any of the usual words, shape (n,)."""
        import pyarrow as pa

        if pa.types.is_boolean(self.data.column(name).type) and not self.data.column(name).null_count:
            return values_of(self.data.column(name).cast(pa.uint8())).astype(np.bool_)
        words, (codes,) = merge(self.coded(name))
        known = np.asarray([GENUINE_WORDS.get(str(word).lower(), -1) for word in words], dtype=np.int64)
        if known.size and known.min() < 0:
            row = int(np.flatnonzero(known[codes] < 0)[0])
            word = str(words[codes[row]])[:40]
            raise NotTruthError(
                f"{self.where(row)}: {name} is {word!r}; say 1 or 0, true or false, target or nontarget, genuine or "
                "impostor",
                word,
            )
        return known[codes].astype(np.bool_) if known.size else np.empty(0, dtype=np.bool_)


def from_table(table: Table, options: Options) -> Comparisons | Embeddings:
    """Comparisons or Embeddings from a table, by what its columns are called (see `find_roles`)."""
    return build(table, options.roles(table.names, table.source), options)


def build(table: Table, roles: PairRoles | RowRoles, options: Options) -> Comparisons | Embeddings:
    """Comparisons or Embeddings from a table whose columns are known."""
    if not table.data.num_rows:
        raise DataError(f"{table.source} holds no rows")
    if isinstance(roles, RowRoles):
        return build_embeddings(table, roles, options.kind(table.source))
    return build_comparisons(table, roles, options)


def build_comparisons(
    table: Table,
    roles: PairRoles,
    options: Options,
    *,
    score: FloatArray | None = None,
    identity: Callable[[str], str] | None = None,
) -> Comparisons:
    """Comparisons from a table; identities that are missing are inferred where labels allow it.

    `score` are scores from another file, NaN where a row has none; `identity` leads from the name of an instance to its
    identity, empty where it is not known.
    """
    small_is_same = roles.distance if options.distance is None else options.distance
    notes = [*table.notes]
    if score is None:
        score = table.numbers(roles.score, may_miss=options.missing != "error")
    table, score = settled(table, score, roles.score, small_is_same, options.missing, notes)
    if options.distance is None and roles.distance:
        notes.append(distance_note(roles.score))
    notes += roles.notes
    ids, groups, instances = table.both(roles.ids), table.both(roles.groups), None
    if roles.instances is not None:
        names, (first, second) = merge(*map(table.coded, roles.instances), narrow=True)
        instances = names, first, second
    cluster = None if roles.cluster is None else table.coded(roles.cluster)
    table.keep(roles.truths)
    if ids is not None and roles.ids is not None:
        identities, (a, b) = merge(*ids)
        notes += [note for column, name in zip(ids, roles.ids, strict=True) for note in column.notes(name)]
        contradictions = Contradictions()
        contradictions.look(table, roles, Coded(identities, a), Coded(identities, b))
        notes += contradictions.notes()
    elif roles.genuine is None:
        raise DataError(f"{table.source}: there are neither identities nor labels of genuine pairs")
    else:
        genuine = _stated(table, roles)
        table.keep(())
        if instances is None:
            if cluster is None:
                check_unseen(opened_inputs(), genuine.size)
            else:
                notes += cluster.notes(str(roles.cluster))
            return Comparisons.of_clusters(score, genuine, cluster, distance=small_is_same, notes=notes)
        known = None if identity is None else text_array([identity(str(name)).strip() for name in names])
        of_name, inferred = infer_identities(names, first, second, genuine, table.where, known)
        notes += inferred
        identities, (a, b) = merge(Coded(of_name, first), Coded(of_name, second))
    return Comparisons.from_codes(
        identities, a, b, score, distance=small_is_same, instances=instances, groups=groups, notes=notes
    )


def settled(
    table: Table, score: FloatArray, name: str, distance: bool, missing: str, notes: list[Note]
) -> tuple[Table, FloatArray]:
    """The rows that count and their scores; what becomes of scores that are missing is added to the notes."""
    there = ~np.isnan(score)
    if there.all():
        return table, score
    if not there.any():
        raise DataError(f"{table.source}: no row has a score in the column {name!r}")
    count = f"{np.count_nonzero(~there)} of {there.size} comparisons have no score"
    if missing == "drop":
        notes.append(Note("missing-scores", f"{count} and were left out ({argument('missing', 'drop')})"))
        return table.kept(there), score[there]
    worst = rejected_score(score[there], distance)
    rejected = f"{count} and count as rejected ({argument('missing', 'reject')}), with a score of {worst:g}"
    notes.append(Note("rejected-scores", f"{rejected}, beyond all others"))
    return table, np.where(there, score, worst)


def distance_note(score: str) -> Note:
    """The note on a column whose name says that it holds distances."""
    return Note("distance", f"the column {score!r} was read as a distance: small values mean the same identity")


def check_unseen(sources: Sequence[Input], rows: int) -> None:
    """Refuse packed files of so many comparisons without identities that counting them would fill the memory.

    Each of them counts as one or two identities of its own, which take some hundred bytes to count.
    """
    most = 0.0
    for source in sources:
        packed = source.gzipped or source.kind in ("parquet", "zip")
        bounded = packed and source.size is not None and source.usual_limit
        most += max(UNSEEN_ROWS, UNSEEN_PER_BYTE * (source.size or 0)) if bounded else float("inf")
    if sources and rows > most:
        source = sources[0]
        raise DataError(
            f"{source.name}: holds more than {most:,.0f} comparisons without identities in {source.size:,} bytes; if "
            f"that is expected, unpack it first or give {argument('max_bytes', source.max_bytes + 1)}"
        )


@dataclass
class Contradictions:
    """How often columns that may hold decisions contradict the identities, and columns that were not understood."""

    rows: Counter[str] = field(default_factory=Counter)
    strange: dict[str, str] = field(default_factory=dict)

    def look(self, table: Table, roles: PairRoles, left: Coded, right: Coded) -> None:
        """Columns that say genuine or impostor must agree with the identities of a row; the same in `read`, `scan`."""
        if not roles.truths:
            return
        _, (a, b) = merge(left, right)
        for name in roles.truths:
            decision = plain(name) in DECISIONS
            try:
                genuine = table.truths(name)
            except NotTruthError as error:
                if not decision and plain(name) != "label":
                    self.strange.setdefault(name, error.word)
                continue
            clash = np.flatnonzero((a == b) != genuine)
            if decision and clash.size:
                self.rows[name] += int(clash.size)
            elif clash.size:
                row = int(clash[0])
                kind, relation = ("genuine", "differ") if genuine[row] else ("impostor", "are equal")
                one, two = left.labels[left.codes[row]], right.labels[right.codes[row]]
                images = argument("columns.instance_a+instance_b", ...)
                raise DataError(
                    f"{table.where(row)}: {name} says {kind}, and the identities {plainly(one)} and {plainly(two)} "
                    f"{relation} ({clash.size} such rows); correct the labels or the identities. If these identities "
                    f"are names of images, give {images}; if {name} means something else, give "
                    f"{argument('columns.genuine', 'None')}"
                )

    def notes(self) -> list[Note]:
        """What was taken, in words."""
        return [
            Note(
                "decisions",
                f"the column {name!r} differs from the identities in {count} rows: it was taken for decisions of a "
                "system, and the identities say which comparisons are genuine",
            )
            for name, count in self.rows.items()
        ] + [
            Note("column-unused", f"the column {name!r} was not used: {word!r} says neither genuine nor impostor")
            for name, word in self.strange.items()
        ]


def _stated(table: Table, roles: PairRoles) -> BoolArray:
    """Which rows are genuine, as the columns say that are there; those that can be understood must agree."""
    assert roles.genuine is not None
    genuine = table.truths(roles.genuine)
    for name in roles.also:
        try:
            other = table.truths(name)
        except NotTruthError:
            continue
        clash = np.flatnonzero(other != genuine)
        if clash.size:
            raise DataError(
                f"{table.where(int(clash[0]))}: {roles.genuine} and {name} contradict each other ({clash.size} such "
                f"rows); say which tells genuine from impostor: {argument('columns.genuine', ...)}"
            )
    return genuine


def build_embeddings(
    table: Table, roles: RowRoles, similarity: Similarity, vectors: NDArray[Any] | None = None
) -> Embeddings:
    """Embeddings from a table with a column of lists, or with one column a feature; `vectors` where they are known."""
    array = vectors_of(table, roles) if vectors is None else vectors
    who = table.coded(roles.identity)
    identities, (codes,) = merge(who)
    column = roles.embedding or "the vector"
    return Embeddings.from_codes(
        array,
        identities,
        codes,
        similarity,
        group=None if roles.group is None else table.coded(roles.group),
        instance=None if roles.instance is None else table.coded(roles.instance),
        notes=[*table.notes, *roles.notes, *who.notes(roles.identity)],
        where=lambda row: f"{table.where(row)}: {column}",
    )


def vector_type(schema: Any, roles: RowRoles, source: str) -> np.dtype[Any]:
    """The type that keeps the numbers of a table as they are: float16, float32 or float64."""
    import pyarrow as pa

    if roles.embedding is None:
        small = all(pa.types.is_float32(schema.field(name).type) for name in roles.features)
        return np.dtype(np.float32 if small else np.float64)
    kind = schema.field(roles.embedding).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    number = getattr(kind, "value_type", kind)
    if number != kind and is_number(number):
        return np.dtype(f"f{number.bit_width // 8}" if pa.types.is_floating(number) else np.float64)
    raise DataError(f"{source}: the column {roles.embedding!r} holds {kind}; it must hold a list of numbers per row")


def vectors_of(table: Table, roles: RowRoles, width: int | None = None) -> NDArray[Any]:
    """The vectors of a table, shape (n, d), with `width` numbers where that is known; one piece of lists is no copy."""
    kind = vector_type(table.data.schema, roles, table.source)
    if roles.embedding is None:
        vectors = np.empty((table.data.num_rows, len(roles.features)), dtype=kind)
        for at, name in enumerate(roles.features):
            vectors[:, at] = table.numbers(name, AGAIN)
        return vectors
    name, start = roles.embedding, 0
    parts: list[NDArray[Any]] = []
    for chunk in table.data.column(name).chunks:
        if chunk.null_count:
            raise DataError(f"{table.where(start + first_null(chunk))}: {name} is missing; {AGAIN}")
        if not len(chunk):
            continue
        lengths = values_of(chunk.value_lengths())
        width = int(lengths[0]) if width is None else width
        odd = np.flatnonzero(lengths != width)
        if odd.size:
            place = table.where(start + int(odd[0]))
            raise DataError(f"{place}: {name} has {lengths[odd[0]]} numbers, and {width} in the rows before")
        values = chunk.flatten()
        if values.null_count:
            row = start + first_null(values) // max(width, 1)
            raise DataError(f"{table.where(row)}: {name} holds a missing number; {AGAIN}")
        parts.append(values_of(values).reshape(len(chunk), width))
        start += len(chunk)
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty((0, width or 0), dtype=kind), *parts])


@contextmanager
def named(name: str) -> Iterator[None]:
    """A DataError that names no file that was opened, as those of the data themselves, is told with the name of one."""
    try:
        yield
    except DataError as error:
        if error.marked.startswith((name, *(source.name for source in opened_inputs()))):
            raise
        raise DataError(f"{name}: {error.marked}") from None


@contextmanager
def readable(source: Input, what: str, *further: type[Exception]) -> Iterator[None]:
    """Errors of pyarrow and `further` ones become a DataError: `what`, such as "the Arrow data", cannot be read.

    Some libraries raise nearly any Exception where a file is damaged.
    """
    import pyarrow as pa

    try:
        yield
    except (MatchboundError, MemoryError):
        raise
    except (pa.ArrowException, OSError, ValueError, *further) as error:
        why = plainly(str(error).strip() or type(error).__name__, 200)
        raise DataError(f"{source.name}: {what} cannot be read, damaged or cut short ({why}); write it again") from None


def stacked(tables: Sequence[Table]) -> Table:
    """One table of the rows of several with the same columns."""
    import pyarrow as pa

    parts = [table.data for table in tables]
    starts = np.cumsum([0, *(part.num_rows for part in parts)])
    places = [replace(table, data=None) for table in tables]

    def where(row: int) -> str:
        at = int(np.searchsorted(starts, row, side="right")) - 1
        return places[at].where(row - int(starts[at]))

    try:
        data = pa.concat_tables(parts, promote_options="permissive")
    except MemoryError:
        raise
    except pa.ArrowException:
        try:
            data = pa.concat_tables(list(map(without_dictionaries, parts)), promote_options="permissive")
        except pa.ArrowException as error:
            why = plainly(error, 200)
            raise DataError(f"{tables[0].source} and the files beside it do not make one table ({why})") from None
    name = tables[0].source
    return Table(name if len(tables) == 1 else f"{len(tables)} files from {name}", data, where)


def without_dictionaries(data: Any) -> Any:
    """An Arrow table whose columns hold plain values."""
    import pyarrow as pa

    kinds = [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in data.schema]
    return data.cast(pa.schema(list(zip(data.column_names, kinds, strict=True))))


def once(table: Table, key: str, label: str, remedy: str = "") -> dict[str, str]:
    """The one label of each name in a column; a DataError, which ends with a remedy, where a name has two."""
    names, (name,) = merge(table.coded(key))
    labels, (stated,) = merge(table.coded(label))
    of_name = np.empty(names.size, dtype=np.int64)
    of_name[name[::-1]] = stated[::-1]  # the first label of a name stays
    other = np.flatnonzero(of_name[name] != stated)
    if other.size:
        row = int(other[0])
        who, here, before = map(plainly, (names[name[row]], labels[stated[row]], labels[of_name[name[row]]]))
        raise DataError(f"{table.where(row)}: {who} is {here} here and {before} before{remedy}")
    return {str(key): str(labels[at]) for key, at in zip(names.tolist(), of_name.tolist(), strict=True)}
