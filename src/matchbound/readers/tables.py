"""From a table with named columns to Comparisons or Embeddings, whatever file the table came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import IntArray, LabelArray
from matchbound.data.coded import Coded, first_null, merge, values_of
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.data.finite import FAILED, check_finite
from matchbound.data.labels import LARGEST_FLOAT_LABEL, text_array
from matchbound.errors import DataError, UsageError, plainly
from matchbound.readers.infer import infer_identities
from matchbound.readers.roles import SURELY_GENUINE, PairRoles, RowRoles, find_roles, plain
from matchbound.readers.vectors import vectors_of

T = TypeVar("T")

_GENUINE = "1 1.0 true t yes y target tgt genuine gen mated same match"
_IMPOSTOR = """
    0 0.0 -1 false f no n nontarget non-target non impostor imposter imp nonmated non-mated different nonmatch
    non-match
"""
GENUINE_WORDS = {word: True for word in _GENUINE.split()} | {word: False for word in _IMPOSTOR.split()}
"""The words that files use for genuine (True) and impostor (False), in lower case."""

UNSEEN = (
    "the comparisons carry no identities: each is taken as a unit of its own, so the dependence of comparisons that "
    "share a person cannot be seen, and every interval is as narrow as if no two comparisons shared anybody. Give "
    "identities to get intervals that can be trusted"
)


@dataclass(frozen=True)
class Table:
    """An Arrow table with the means to say where a row came from.

    Attributes
    ----------
    source : str
        The name of the file or frame, for messages.
    data : pyarrow.Table
    where : callable
        From a row number (0, 1, …) to the place in the source, such as ``"scores.csv, line 17"``.
    """

    source: str
    data: Any
    where: Callable[[int], str]

    def labels(self, name: str) -> LabelArray:
        """A column of labels as text or integers, shape (n,)."""
        return self.coded(name).decoded()

    def coded(self, name: str) -> Coded:
        """A column of labels, text or integers; missing and empty labels are an error that names the place."""
        import pyarrow as pa

        column = self.data.column(name)
        if column.null_count:
            row = first_null(column)
            raise DataError(f"{self.where(row)}: {name} is missing; fill it in or drop the row")
        kind = column.type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            numbers = values_of(column) if pa.types.is_integer(kind) else self._whole(column, name)
            return Coded(*_distinct(numbers))
        if pa.types.is_nested(kind) or pa.types.is_binary(kind):
            raise DataError(f"{self.source}: the column {name!r} holds {kind}; labels must be text or integers")
        if not pa.types.is_dictionary(kind):
            if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view"):
                column = column.cast(pa.string())
            column = column.dictionary_encode()
        column = column.unify_dictionaries().combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], pa.string()).dictionary_encode()
        codes = values_of(column.indices)
        if pa.types.is_integer(column.dictionary.type):
            return Coded(values_of(column.dictionary), codes)
        try:
            words = ["" if word is None else str(word).strip() for word in column.dictionary.to_pylist()]
        except UnicodeDecodeError:
            raise DataError(f"{self.source}: the column {name!r} holds text that is not UTF-8") from None
        for position, word in enumerate(words):
            if not word:
                empty = np.flatnonzero(codes == position)
                if empty.size:
                    raise DataError(f"{self.where(int(empty[0]))}: {name} is empty; fill it in or drop the row")
        return Coded(text_array(words, f"{self.source}, column {plainly(name)}"), codes)

    def _whole(self, column: Any, name: str) -> LabelArray:
        values = values_of(column).astype(np.float64)
        bad = np.flatnonzero(~(np.abs(values) <= LARGEST_FLOAT_LABEL) | (values != np.round(values)))
        if bad.size:
            row = int(bad[0])
            raise DataError(
                f"{self.where(row)}: {name} is {values[row]}; labels must be text or whole numbers up to 2^53"
            )
        return values.astype(np.int64)

    def numbers(self, name: str, remedy: str = FAILED) -> NDArray[np.float64]:
        """A column of finite numbers, shape (n,); `remedy` is what to do about one that is not."""
        import pyarrow as pa

        column = self.data.column(name)
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            try:
                column = column.cast(pa.float64())
            except pa.ArrowException as error:
                raise DataError(
                    f"{self.source}: the column {name!r} must hold numbers ({plainly(error, 200)})"
                ) from None
        if column.null_count:
            row = first_null(column)
            raise DataError(f"{self.where(row)}: {name} is missing; {remedy}")
        values = values_of(column).astype(np.float64)
        check_finite(values, lambda row: f"{self.where(row)}: {name} is", remedy)
        return values

    def truths(self, name: str) -> NDArray[np.bool_]:
        """A column that says genuine or impostor in any of the usual words, shape (n,)."""
        import pyarrow as pa

        if pa.types.is_boolean(self.data.column(name).type) and not self.data.column(name).null_count:
            return values_of(self.data.column(name).cast(pa.uint8())).astype(np.bool_)
        words, (codes,) = merge(self.coded(name))
        known = np.asarray([GENUINE_WORDS.get(str(word).lower(), -1) for word in words], dtype=np.int64)
        if known.size and known.min() < 0:
            row = int(np.flatnonzero(known[codes] < 0)[0])
            raise DataError(
                f"{self.where(row)}: {name} is {str(words[codes[row]])[:40]!r}; say 1 or 0, true or false, target or "
                "nontarget, genuine or impostor"
            )
        return known[codes].astype(np.bool_) if known.size else np.empty(0, dtype=np.bool_)


def from_table(
    table: Table,
    *,
    distance: bool | None = None,
    similarity: Similarity = "cosine",
    columns: Mapping[str, str] | None = None,
    group: str | None = None,
) -> Comparisons | Embeddings:
    """Comparisons or Embeddings from a table, by what its columns are called (see `find_roles`)."""
    roles = find_roles(table.data.column_names, table.source, columns=columns, group=group)
    return build(table, roles, distance=distance, similarity=similarity)


def build(
    table: Table,
    roles: PairRoles | RowRoles,
    *,
    distance: bool | None = None,
    similarity: Similarity = "cosine",
) -> Comparisons | Embeddings:
    """Comparisons or Embeddings from a table whose columns are known."""
    if not table.data.num_rows:
        raise DataError(f"{table.source} holds no rows")
    if isinstance(roles, RowRoles):
        return build_embeddings(table, roles, check_similarity(table.source, distance, similarity))
    return build_comparisons(table, roles, distance)


def check_similarity(source: str, distance: bool | None, similarity: Similarity) -> Similarity:
    """Embeddings are scored here: `distance` must not contradict `similarity`."""
    if distance is not None and distance != (similarity == "euclidean"):
        raise UsageError(
            f"{source} holds embeddings, which are scored by similarity={similarity!r}; use similarity='euclidean' "
            "for distances, and leave out distance"
        )
    return similarity


def build_comparisons(table: Table, roles: PairRoles, distance: bool | None) -> Comparisons:
    """Comparisons from a table; identities that are missing are inferred where labels allow it."""
    score = table.numbers(roles.score)
    small_is_same = roles.distance if distance is None else distance
    notes: list[str] = []
    if distance is None and roles.distance:
        notes.append(f"the column {roles.score!r} was read as a distance: small values mean the same identity")
    genuine = None if roles.genuine is None else _genuine(table, roles)
    names: LabelArray | None = None
    first = second = None
    if roles.instance_a is not None and roles.instance_b is not None:
        names, (first, second) = merge(table.coded(roles.instance_a), table.coded(roles.instance_b))
    if roles.id_a is not None and roles.id_b is not None:
        identities, (a, b) = merge(table.coded(roles.id_a), table.coded(roles.id_b))
        if genuine is not None:
            _agree(table, roles, identities, a, b, genuine)
    elif genuine is None:
        raise DataError(f"{table.source}: there are neither identities nor labels of genuine pairs")
    elif names is not None and first is not None and second is not None:
        inferred = infer_identities(names, first, second, genuine, table.where)
        notes += inferred.notes()
        identities, (a, b) = merge(Coded(inferred.identity, first), Coded(inferred.identity, second))
    else:
        return unseen(score, genuine, small_is_same, notes)
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
            group_a=None if roles.group_a is None else table.labels(roles.group_a),
            group_b=None if roles.group_b is None else table.labels(roles.group_b),
            notes=notes,
        ),
    )


def unseen(
    score: NDArray[np.float64], genuine: NDArray[np.bool_], distance: bool, notes: list[str] | None = None
) -> Comparisons:
    """Comparisons of nobody known: a genuine one is an identity of its own, an impostor one two."""
    n = score.shape[0]
    first = np.arange(n, dtype=np.int64)
    second = np.where(genuine, first, first + n)
    return Comparisons(first, second, score, distance=distance, notes=[*(notes or []), UNSEEN])


def _genuine(table: Table, roles: PairRoles) -> NDArray[np.bool_] | None:
    """The labels of a table; with identities given, a column that may mean something else is passed over."""
    assert roles.genuine is not None
    if roles.id_a is None:
        return table.truths(roles.genuine)
    if plain(roles.genuine) not in SURELY_GENUINE:
        return None
    try:
        return table.truths(roles.genuine)
    except DataError:
        return None


def _agree(
    table: Table, roles: PairRoles, identities: LabelArray, a: IntArray, b: IntArray, genuine: NDArray[np.bool_]
) -> None:
    clash = np.flatnonzero((a == b) != genuine)
    if clash.size:
        row = int(clash[0])
        said, seen = ("genuine", "differ") if genuine[row] else ("impostor", "are equal")
        raise DataError(
            f"{table.where(row)}: {roles.genuine} says {said}, and the identities {plainly(identities[a[row]])} and "
            f"{plainly(identities[b[row]])} {seen} ({clash.size} such rows); correct the labels, or drop the column "
            f"{roles.genuine}"
        )


def build_embeddings(
    table: Table, roles: RowRoles, similarity: Similarity, vectors: NDArray[Any] | None = None
) -> Embeddings:
    """Embeddings from a table with a column of lists, or with one column a feature; `vectors` where they are known."""
    found = vectors_of(table, roles) if vectors is None else vectors
    identities, (codes,) = merge(table.coded(roles.identity))
    column = roles.embedding or "the vector"
    return named(
        table.source,
        lambda: Embeddings.from_codes(
            found,
            identities,
            codes,
            similarity,
            group=None if roles.group is None else table.labels(roles.group),
            instance=None if roles.instance is None else table.labels(roles.instance),
            where=lambda row: f"{table.where(row)}: {column}",
        ),
    )


def _distinct(values: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    labels, codes = np.unique(values, return_inverse=True)
    return labels, codes.astype(np.int64, copy=False).reshape(-1)


def named(source: str, make: Callable[[], T]) -> T:
    """Run a constructor; a DataError from it is told with the name of the source."""
    try:
        return make()
    except DataError as error:
        message = str(error)
        raise DataError(message if message.startswith(source) else f"{source}: {message}") from None
