"""The comparisons that erred, by name: where a wrong label hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.counting.pairs import ErringRows
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.show.shown import Shown

if TYPE_CHECKING:
    from matchbound.show.tables import Table

SHOWN = 20
"""Comparisons that a printed list holds."""


@dataclass(frozen=True, eq=False, repr=False)
class Erring(Shown):
    """Comparisons on the wrong side of a threshold, worst first; arrays of shape (E,).

    metric
        ``"far"``: impostor comparisons that matched; ``"frr"``: genuine ones that did not.
    threshold
        Where the decision was made.
    errors
        How many erred in all; the list may hold fewer.
    identity_a, identity_b : arrays
        Who was compared with whom.
    instance_a, instance_b : arrays
        Which image, recording or record of theirs; row numbers of embeddings without names; None where a table of
        scores names no instances.
    row : int64 array or None
        The row of the table, counted from 0; None for embeddings.
    score : float64 array
        Of each comparison, as the data have it.
    """

    metric: str
    threshold: float
    errors: int
    identity_a: LabelArray = field(repr=False)
    identity_b: LabelArray = field(repr=False)
    instance_a: LabelArray | None = field(repr=False)
    instance_b: LabelArray | None = field(repr=False)
    row: IntArray | None = field(repr=False)
    score: FloatArray = field(repr=False)

    def __len__(self) -> int:
        return int(self.score.size)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_records())

    def __repr__(self) -> str:
        return f"Erring({self.metric}: {len(self)} of {self.errors} errors at threshold {self.threshold:g})"

    def to_records(self) -> list[dict[str, Any]]:
        """One record per comparison."""
        names = ("identity_a", "identity_b", "instance_a", "instance_b", "row", "score")
        lists = {name: getattr(self, name).tolist() for name in names if getattr(self, name) is not None}
        rows = zip(*lists.values(), strict=True)
        return [{"metric": self.metric, **dict(zip(lists, row, strict=True))} for row in rows]

    def _tables(self) -> list[Table]:
        from matchbound.show.columns import erring_table

        return [erring_table(self.metric, self.to_records()[:SHOWN], self.errors)]


def erring_of(
    source: Comparisons | Embeddings, metric: str, threshold: float, errors: int, found: ErringRows
) -> Erring:
    """The names of the comparisons found."""
    row, names = None, None
    if isinstance(source, Embeddings):
        places = found.first, found.second
        people = source.codes[found.first], source.codes[found.second]
        names = source.instance if source.instance is not None else np.arange(len(source))
    else:
        row = found.first
        people = source.a[row], source.b[row]
        if source.instances is not None and source.instance_a is not None and source.instance_b is not None:
            names, places = source.instances, (source.instance_a[row], source.instance_b[row])
    one, two = (source.identities[side] for side in people)
    first, second = (None, None) if names is None else (names[side] for side in places)
    return Erring(metric, threshold, errors, one, two, first, second, row, found.score)
