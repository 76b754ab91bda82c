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
        columns: dict[str, Any] = {"identity_a": self.identity_a, "identity_b": self.identity_b}
        if self.instance_a is not None and self.instance_b is not None:
            columns |= {"instance_a": self.instance_a, "instance_b": self.instance_b}
        if self.row is not None:
            columns["row"] = self.row
        columns["score"] = self.score
        lists = {name: np.asarray(values).tolist() for name, values in columns.items()}
        return [
            {"metric": self.metric, **{name: values[k] for name, values in lists.items()}} for k in range(len(self))
        ]

    def _tables(self) -> list[Table]:
        from matchbound.show.columns import erring_table

        return [erring_table(self.metric, self.to_records()[:SHOWN], self.errors)]


def erring_of(
    source: Comparisons | Embeddings, metric: str, threshold: float, errors: int, found: ErringRows
) -> Erring:
    """The names of the comparisons found."""
    if isinstance(source, Embeddings):
        names = source.instance if source.instance is not None else np.arange(len(source))
        return Erring(
            metric,
            threshold,
            errors,
            source.identities[source.codes[found.first]],
            source.identities[source.codes[found.second]],
            names[found.first],
            names[found.second],
            None,
            found.score,
        )
    rows = found.first
    named = source.instances is not None and source.instance_a is not None and source.instance_b is not None
    return Erring(
        metric,
        threshold,
        errors,
        source.identities[source.a[rows]],
        source.identities[source.b[rows]],
        source.instances[source.instance_a[rows]] if named else None,  # type: ignore[index]
        source.instances[source.instance_b[rows]] if named else None,  # type: ignore[index]
        rows,
        found.score,
    )
