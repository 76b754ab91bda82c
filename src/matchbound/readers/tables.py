"""From a table with named columns to Comparisons or Embeddings, whatever file the table came from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import BoolArray, FloatArray, LabelArray
from matchbound.data.arrays import first_null, values_of
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.data.labels import Coded, coded_labels, coded_values, merge, text_array
from matchbound.data.scores import FAILED, check_finite, check_missing, rejected_score
from matchbound.errors import DataError, UsageError, argument, plainly, shorten
from matchbound.files.opening import Input, default_limit
from matchbound.notes import Note
from matchbound.readers.infer import infer_identities
from matchbound.readers.roles import DECISIONS, PairRoles, RowRoles, find_roles, plain
from matchbound.readers.vectors import AGAIN as AGAIN
from matchbound.readers.vectors import vectors_of

T = TypeVar("T")

UNSEEN_ROWS, UNSEEN_PER_BYTE = 2_000_000, 4
"""Comparisons without identities that a packed file may hold, however small it is, and for each of its bytes."""

_GENUINE = "1 1.0 true t yes y target tgt genuine gen mated same match"
_IMPOSTOR = """
    0 0.0 -1 false f no n nontarget non-target non impostor imposter imp nonmated non-mated different nonmatch
    non-match
"""
GENUINE_WORDS = {word: True for word in _GENUINE.split()} | {word: False for word in _IMPOSTOR.split()}
"""The words that files use for genuine (True) and impostor (False), in lower case."""


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
    where : callable
        From a row number (0, 1, …) to the place in the source, such as ``"scores.csv, line 17"``.
    notes : tuple of str
        What was taken where there was a choice.
    """

    source: str
    data: Any
    where: Callable[[int], str]
    notes: tuple[Note, ...] = ()

    def labels(self, name: str) -> LabelArray:
        """A column of labels as text or integers, shape (n,)."""
        return self.coded(name).decoded()

    def coded(self, name: str) -> Coded:
        """A column of labels, text or integers; missing and empty labels are an error that names the place."""
        import pyarrow as pa

        def said(row: int) -> str:
            return f"{self.where(row)}: {name}"

        column = self.data.column(name)
        if column.null_count:
            raise DataError(f"{said(first_null(column))} is missing; fill it in or drop the row")
        kind = column.type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return coded_labels(values_of(column), name, said)
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
        return coded_values(words, values_of(column.indices), said)

    def keep(self, names: Sequence[str]) -> None:
        """Forget all other columns: what was made of them has the room."""
        self.data = self.data.select([name for name in self.data.column_names if name in names])

    def with_labels(self, **columns: Coded) -> Table:
        """This table with further columns of labels, which are known to be good."""
        import pyarrow as pa

        data = self.data
        for name, column in columns.items():
            made = pa.DictionaryArray.from_arrays(pa.array(column.codes), pa.array(column.labels.tolist()))
            data = data.append_column(name, made)
        return replace(self, data=data)

    def numbers(self, name: str, remedy: str = FAILED) -> FloatArray:
        """A column of finite numbers, shape (n,); `remedy` is what to do about one that is not."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.data.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
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
        if column.null_count:
            row = first_null(column)
            raise DataError(f"{self.where(row)}: {name} is missing; {remedy}")
        values = values_of(column).astype(np.float64, copy=False)
        check_finite(values, lambda row: f"{self.where(row)}: {name} is", remedy)
        return values

    def without_missing(self, name: str) -> tuple[Table, BoolArray]:
        """This table with numbers that are missing (empty or NaN) as 0, and which rows they are in."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.data.column(name)
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            return self, np.zeros(self.data.num_rows, dtype=np.bool_)
        absent = pc.is_null(column, nan_is_null=True)
        filled = pc.if_else(absent, pa.scalar(0, column.type), column)
        place = self.data.column_names.index(name)
        lost = np.asarray(absent.combine_chunks().to_numpy(zero_copy_only=False), dtype=np.bool_)
        return Table(self.source, self.data.set_column(place, name, filled), self.where), lost

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


def from_table(
    table: Table,
    *,
    distance: bool | None = None,
    similarity: Similarity = "cosine",
    columns: Mapping[str, str] | None = None,
    group: str | None = None,
    missing: str = "error",
) -> Comparisons | Embeddings:
    """Comparisons or Embeddings from a table, by what its columns are called (see `find_roles`)."""
    roles = find_roles(table.data.column_names, table.source, columns=columns, group=group)
    return build(table, roles, distance=distance, similarity=similarity, missing=missing)


def build(
    table: Table,
    roles: PairRoles | RowRoles,
    *,
    distance: bool | None = None,
    similarity: Similarity = "cosine",
    missing: str = "error",
) -> Comparisons | Embeddings:
    """Comparisons or Embeddings from a table whose columns are known."""
    check_missing(missing)
    if not table.data.num_rows:
        raise DataError(f"{table.source} holds no rows")
    if isinstance(roles, RowRoles):
        return build_embeddings(table, roles, check_similarity(table.source, distance, similarity))
    return build_comparisons(table, roles, distance, missing)


def check_similarity(source: str, distance: bool | None, similarity: Similarity) -> Similarity:
    """Embeddings are scored here: `distance` must not contradict `similarity`."""
    if distance is not None and distance != (similarity == "euclidean"):
        raise UsageError(
            f"{source} holds embeddings, which are scored by {argument('similarity', similarity)}; use "
            f"{argument('similarity', 'euclidean')} "
            "for distances, and leave out distance"
        )
    return similarity


def build_comparisons(
    table: Table,
    roles: PairRoles,
    distance: bool | None,
    missing: str = "error",
    *,
    score: FloatArray | None = None,
    identity: Callable[[str], str] | None = None,
) -> Comparisons:
    """Comparisons from a table; identities that are missing are inferred where labels allow it.

    Parameters
    ----------
    score
        The scores, where they come from another file, shape (n,).
    identity
        From the name of an instance to its identity, empty where it is not known, for tables without identities.
    """
    small_is_same = roles.distance if distance is None else distance
    notes: list[Note] = [*table.notes]
    if score is None:
        table, score = _scores(table, roles.score, small_is_same, missing, notes)
    if distance is None and roles.distance:
        notes.append(distance_note(roles.score))
    notes += roles.notes
    sides = (roles.id_a, roles.id_b, roles.group_a, roles.group_b)
    columns = {name: table.coded(name) for name in sides if name is not None}
    names: LabelArray | None = None
    first = second = None
    if roles.instance_a is not None and roles.instance_b is not None:
        names, (first, second) = merge(table.coded(roles.instance_a), table.coded(roles.instance_b), narrow=True)
    table.keep(roles.truths)
    if roles.id_a is not None and roles.id_b is not None:
        left, right = columns[roles.id_a], columns[roles.id_b]
        identities, (a, b) = merge(left, right)
        notes += [*left.notes(roles.id_a), *right.notes(roles.id_b)]
        notes += check_truths(table, roles, Coded(identities, a), Coded(identities, b)).notes()
    elif roles.genuine is None:
        raise DataError(f"{table.source}: there are neither identities nor labels of genuine pairs")
    else:
        genuine = _stated(table, roles)
        table.keep(())
        if names is None or first is None or second is None:
            return Comparisons.of_nobody(score, genuine, distance=small_is_same, notes=notes)
        known = None if identity is None else text_array([identity(str(name)).strip() for name in names])
        inferred = infer_identities(names, first, second, genuine, table.where, known)
        notes += inferred.notes()
        identities, (a, b) = merge(Coded(inferred.identity, first), Coded(inferred.identity, second))
    return named(
        table.source,
        lambda: Comparisons.from_codes(
            identities,
            a,
            b,
            score,
            distance=small_is_same,
            names=names,
            instance_a=first,
            instance_b=second,
            group_a=columns.get(roles.group_a or ""),
            group_b=columns.get(roles.group_b or ""),
            notes=notes,
        ),
    )


def _scores(table: Table, name: str, distance: bool, missing: str, notes: list[Note]) -> tuple[Table, FloatArray]:
    """The scores, and the table of the rows that have one; what becomes of missing ones is added to the notes."""
    if missing == "error":
        return table, table.numbers(name)
    whole, lost = table.without_missing(name)
    count = int(np.count_nonzero(lost))
    if not count:
        return table, table.numbers(name)
    if missing == "drop" or count == lost.size:
        if count == lost.size:
            raise DataError(f"{table.source}: no row has a score in the column {name!r}")
        notes.append(
            Note(
                "missing-scores",
                f"{count} of {lost.size} comparisons have no score and were left out ({argument('missing', 'drop')})",
            )
        )
        rest = whole.kept(~lost)
        return rest, rest.numbers(name)
    score = whole.numbers(name).copy()
    score[lost] = rejected_score(score[~lost], distance)
    notes.append(
        Note(
            "missing-scores",
            f"{count} of {lost.size} comparisons have no score and count as rejected "
            f"({argument('missing', 'reject')}), with a score "
            f"of {score[lost][0]:g}, beyond all others",
        )
    )
    return whole, score


def distance_note(score: str) -> Note:
    """The note on a column whose name says that it holds distances."""
    return Note("distance", f"the column {score!r} was read as a distance: small values mean the same identity")


def most_unseen(source: Input) -> float:
    """How many comparisons without identities a file may hold that is packed, unless the caller gave `max_bytes`.

    Each of them counts as one or two identities of its own, which take some hundred bytes to count.
    """
    packed = source.gzipped or source.kind in ("parquet", "zip")
    if source.size is None or not packed or source.max_bytes != default_limit(source.size):
        return float("inf")
    return max(UNSEEN_ROWS, UNSEEN_PER_BYTE * source.size)


def too_many_unseen(source: Input, most: float) -> DataError:
    """The error for a packed file that holds more comparisons without identities than it may."""
    return DataError(
        f"{source.name}: holds more than {most:,.0f} comparisons without identities in {source.size:,} bytes; if that "
        f"is expected, unpack it first or give {argument('max_bytes', source.max_bytes + 1)}"
    )


def check_unseen(sources: Sequence[Input], rows: int) -> None:
    """Refuse a packed file of so many comparisons without identities that counting them would fill the memory."""
    most = sum(most_unseen(source) for source in sources)
    if sources and rows > most:
        raise too_many_unseen(sources[0], most)


@dataclass
class Contradictions:
    """How often columns that may hold decisions contradict the identities, and columns that were not understood."""

    rows: dict[str, int] = field(default_factory=dict)
    strange: dict[str, str] = field(default_factory=dict)

    def add(self, other: Contradictions) -> None:
        """Count those of further rows too."""
        for name, count in other.rows.items():
            self.rows[name] = self.rows.get(name, 0) + count
        for name, word in other.strange.items():
            self.strange.setdefault(name, word)

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


def check_truths(table: Table, roles: PairRoles, left: Coded, right: Coded) -> Contradictions:
    """Columns that say genuine or impostor must agree with the identities of a row; the same in `read` and `scan`."""
    found = Contradictions()
    same: BoolArray | None = None
    for name in roles.truths:
        try:
            genuine = table.truths(name)
        except NotTruthError as error:
            if plain(name) not in (*DECISIONS, "label"):
                found.strange[name] = error.word
            continue
        if same is None:
            _, (a, b) = merge(left, right)
            same = a == b
        clash = np.flatnonzero(same != genuine)
        if not clash.size:
            continue
        if plain(name) in DECISIONS:
            found.rows[name] = int(clash.size)
            continue
        row = int(clash[0])
        said, seen = ("genuine", "differ") if genuine[row] else ("impostor", "are equal")
        one, two = left.labels[left.codes[row]], right.labels[right.codes[row]]
        raise DataError(
            f"{table.where(row)}: {name} says {said}, and the identities {plainly(one)} and {plainly(two)} {seen} "
            f"({clash.size} such rows); correct the labels or the identities, or, if {name} means something else, give "
            f"{argument('columns.genuine', 'None')}"
        )
    return found


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
    found = vectors_of(table, roles) if vectors is None else vectors
    who = table.coded(roles.identity)
    identities, (codes,) = merge(who)
    column = roles.embedding or "the vector"
    return named(
        table.source,
        lambda: Embeddings.from_codes(
            found,
            identities,
            codes,
            similarity,
            group=None if roles.group is None else table.coded(roles.group),
            instance=None if roles.instance is None else table.coded(roles.instance),
            notes=[*table.notes, *roles.notes, *who.notes(roles.identity)],
            where=lambda row: f"{table.where(row)}: {column}",
        ),
    )


def named(source: str, make: Callable[[], T]) -> T:
    """Run a constructor; a DataError from it is told with the name of the source."""
    try:
        return make()
    except DataError as error:
        message = str(error)
        raise DataError(message if message.startswith(source) else f"{source}: {message}") from None


def once(who: Coded, label: Coded, said: Callable[[int, str, str, str], str]) -> dict[str, str]:
    """The one label of each name; a DataError where a name has two, in the words of `said(row, name, here, before)`."""
    names, (name,) = merge(who)
    labels, (stated,) = merge(label)
    of_name = np.empty(names.size, dtype=np.int64)
    of_name[name[::-1]] = stated[::-1]  # the first label of a name stays
    other = np.flatnonzero(of_name[name] != stated)
    if other.size:
        row = int(other[0])
        words = (names[name[row]], labels[stated[row]], labels[of_name[name[row]]])
        raise DataError(said(row, *(plainly(word) for word in words)))
    return {str(key): str(labels[at]) for key, at in zip(names.tolist(), of_name.tolist(), strict=True)}
