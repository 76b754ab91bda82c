"""Match the comparisons of several systems: the same instances, or the same rows; and say what had no match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import IntArray, LabelArray
from matchbound.data.comparisons import Comparisons, Source
from matchbound.data.embeddings import Embeddings
from matchbound.data.labels import Coded, as_text, encode, merge
from matchbound.data.values import pair_keys
from matchbound.errors import DataError, UsageError
from matchbound.notes import Note

System = Comparisons | Embeddings


@dataclass(frozen=True, eq=False)
class Matched:
    """Systems on the same comparisons, in the same order, with the same identities; all of one kind.

    - unmatched: how many comparisons (or instances, for embeddings) each system had besides.
    - how: what they were matched by, in words.
    """

    systems: tuple[Comparisons, ...] | tuple[Embeddings, ...]
    unmatched: tuple[int, ...]
    how: str

    @property
    def matched(self) -> int:
        """Comparisons (or instances, for embeddings) that all systems have."""
        return len(self.systems[0])

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know about the match; empty when everything matched by name."""
        left = [f"{count} of system {place + 1}" for place, count in enumerate(self.unmatched) if count]
        if left:
            text = (
                f"{self.matched} {self.systems[0].unit} were matched by {self.how}; left out because another system "
                f"lacks them: {', '.join(left)}"
            )
        elif self.how == "row":
            text = "no instances are named: row n of one system was matched with row n of the others"
        else:
            return ()
        return (Note("matched", text),)


def match(systems: Sequence[System]) -> Matched:
    """Bring systems to their common comparisons.

    Comparisons are matched by the unordered pair of instances that they join, a repeated pair by its order of
    appearance. Without names of instances they are matched row by row where the identities of every row agree, or by
    identity pair where no pair occurs twice. Embeddings are matched by instance, or row by row. Embeddings and
    comparisons together: the embeddings are compared as the comparisons say.
    """
    if len(systems) < 2:
        raise DataError("there is nothing to match: give at least two systems")
    for source in systems:
        if not isinstance(source, Source):
            raise UsageError(
                f"systems must be Comparisons or Embeddings (see matchbound.read); got {type(source).__name__}"
            )
    tables = [source for source in systems if source.kind == "comparisons"]
    if tables:
        return _match_tables([s if s.kind == "comparisons" else _score_as(s, tables[0]) for s in systems])
    return _match_embeddings([source for source in systems if source.kind == "embeddings"])


def _match_embeddings(systems: list[Embeddings]) -> Matched:
    if any(source.instance is None for source in systems):
        _, codes = merge(*(Coded(as_text(source.identities), source.codes) for source in systems))
        if any(not np.array_equal(codes[0], other) for other in codes[1:]):
            raise DataError(
                "the embeddings name no instances and their identities differ from row to row; give instance= to each "
                "system so that they can be matched"
            )
        rows, how = [np.arange(len(systems[0]))] * len(systems), "row"
    else:
        rows, how = _common(_instance_keys(systems), "instance"), "identity and instance"
    return _matched(
        systems, rows, how, lambda s, kept: {"vectors": s.vectors[kept], "similarity": s.similarity, "notes": s.notes}
    )


def _matched(
    systems: Sequence[Any], rows: list[IntArray], how: str, own: Callable[[Any, IntArray], dict[str, Any]]
) -> Matched:
    """Some rows of each system; all share the fields of the first but for their `own`."""
    base = systems[0]  # which may be a large map of a file: it stays as it is where all its rows matched
    if not np.array_equal(rows[0], np.arange(len(base))):
        base = base.take(rows[0])
    others = [base.with_fields(**own(other, kept)) for other, kept in zip(systems[1:], rows[1:], strict=True)]
    return Matched((base, *others), tuple(len(source) - len(base) for source in systems), how)


def _instance_keys(systems: Sequence[Embeddings]) -> list[IntArray]:
    """A number for each row of each system: the same for the same identity and name of an instance."""
    keys = _named_pairs([(source.identities, source.codes, source.instance) for source in systems])
    for key in keys:
        _, first = np.unique(key, return_index=True)
        if first.size < key.size:
            row = int(np.setdiff1d(np.arange(key.size), first)[0])
            raise DataError(
                f"instance: row {row} has the identity and the name of an earlier row; names must differ to be matched"
            )
    return keys


def _named_pairs(columns: Sequence[tuple[LabelArray, IntArray, LabelArray | None]]) -> list[IntArray]:
    """A number for each identity and name of an instance, from the identities, codes and names of each system."""
    _, owners = merge(*(Coded(as_text(identities), codes) for identities, codes, _ in columns))
    labels, names = encode(*(as_text(names) for _, _, names in columns if names is not None))
    return [owner * np.int64(max(labels.size, 1)) + name for owner, name in zip(owners, names, strict=True)]


def _score_as(source: Embeddings, table: Comparisons) -> Comparisons:
    """The comparisons of a table that the embeddings can make, scored by them."""
    if source.instance is None or table.instances is None or table.instance_a is None or table.instance_b is None:
        raise DataError(
            "embeddings can be matched with comparisons only by instance; give instance= to the embeddings and "
            "instance_a=, instance_b= to the comparisons"
        )
    _instance_keys([source])
    names, wanted = _named_pairs(
        [(source.identities, source.codes, source.instance), (table.identities, table.owners, table.instances)]
    )
    _, rows, instances = np.intersect1d(names, wanted, assume_unique=True, return_indices=True)
    row = np.full(wanted.size, -1, dtype=np.int64)
    row[instances] = rows
    kept = np.flatnonzero((row[table.instance_a] >= 0) & (row[table.instance_b] >= 0))
    if not kept.size:
        raise DataError("no comparison joins two instances that the embeddings have; check how instances are named")
    score = source.score_pairs(row[table.instance_a[kept]], row[table.instance_b[kept]])
    return table.take(kept).with_fields(score=score, distance=source.distance)


def _match_tables(systems: list[Comparisons]) -> Matched:
    first = systems[0]
    named = all(source.instances is not None for source in systems)
    keys = _comparison_keys(systems, named)
    how = "instance" if named else "row"
    if all(np.array_equal(keys[0], other) for other in keys[1:]):
        rows = [np.arange(len(first))] * len(systems)
    elif named:
        rows = _common(_by_occurrence(keys), "comparison")
    else:
        how = "identity pair"
        for place, key in enumerate(keys):
            if np.unique(key).size < key.size:
                raise DataError(
                    f"system {place + 1} compares an identity pair more than once and names no instances, so its "
                    "comparisons cannot be matched; give instance_a= and instance_b= to every system"
                )
        rows = _common(keys, how)
    return _matched(systems, rows, how, lambda s, kept: {"score": s.score[kept], "distance": s.distance})


def _comparison_keys(systems: list[Comparisons], named: bool) -> list[IntArray]:
    """A number for each pair of instances, or of identities where instances are not named; the same in all systems."""
    if named:
        names = _named_pairs([(source.identities, source.owners, source.instances) for source in systems])
    else:
        names = [as_text(source.identities) for source in systems]
    labels, codes = encode(*names)
    sides = [(s.instance_a, s.instance_b) if named else (s.a, s.b) for s in systems]
    return [pair_keys(code[one], code[two], labels.size) for code, (one, two) in zip(codes, sides, strict=True)]


def _by_occurrence(keys: list[IntArray]) -> list[IntArray]:
    """Tell the second time that a key occurs from the first."""
    _, codes = encode(*keys)
    most = max(code.size for code in codes)
    for code in codes:
        order = np.argsort(code, kind="stable")
        ordered = code[order]
        code *= most
        code[order] += np.arange(code.size) - np.searchsorted(ordered, ordered)
    return list(codes)


def _common(keys: Sequence[NDArray[np.generic]], what: str) -> list[IntArray]:
    """Rows of each system that hold the keys which all of them have, in the order of the first."""
    shared = reduce(np.intersect1d, keys)
    if not shared.size:
        raise DataError(f"the systems have no {what} in common; check how identities and instances are named")
    rows = []
    for key in keys:
        order = np.argsort(key, kind="stable")
        rows.append(order[np.searchsorted(key[order], shared)])
    place = np.argsort(rows[0], kind="stable")
    return [row[place] for row in rows]
