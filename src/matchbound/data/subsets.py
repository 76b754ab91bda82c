"""A part of the data: some rows, or the comparisons among some identities."""

from __future__ import annotations

import numpy as np

from matchbound.arraytypes import IntArray, LabelArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.grouping import group_of_identity
from matchbound.data.labels import Coded, merge

Source = Comparisons | Embeddings


def among(source: Source, identities: IntArray) -> Source:
    """The part of the data that concerns only the given identities, by their positions; all of them are kept.

    The rows that are left, in their order: embeddings of these identities, or comparisons that join two of them.
    Identities of which nothing is left are gone.
    """
    kept = np.zeros(source.n_identities, dtype=np.bool_)
    kept[identities] = True
    if isinstance(source, Embeddings):
        return take_embeddings(source, np.flatnonzero(kept[source.codes]))
    return take(source, np.flatnonzero(kept[source.a] & kept[source.b]))


def take(source: Comparisons, rows: IntArray) -> Comparisons:
    """Some rows of a table of comparisons; identities and instances that no longer occur are gone."""
    identities, a, b = _compact(source.identities, source.a[rows], source.b[rows])
    instances, one, two = source.instances, source.instance_a, source.instance_b
    if instances is not None and one is not None and two is not None:
        instances, one, two = _compact(instances, one[rows], two[rows])
    group = None
    if source.group is not None:
        group = _compact(source.group, source.a[rows], source.b[rows])[0]
    return source.with_fields(
        identities=identities,
        a=a,
        b=b,
        score=source.score[rows],
        instances=instances,
        instance_a=one,
        instance_b=two,
        group=group,
    )


def take_embeddings(source: Embeddings, rows: IntArray, identity: Coded | None = None) -> Embeddings:
    """Some rows of a set of embeddings, with other identities where they are given (one for each of `rows`)."""
    group = None if source.group is None else Coded(source.group, source.codes[rows])
    identities, (codes,) = merge(Coded(source.identities, source.codes[rows]) if identity is None else identity)
    made = source.with_fields(
        vectors=source.settled[rows],
        identities=identities,
        codes=codes,
        instance=None if source.instance is None else source.instance[rows],
    )
    if group is None:
        return made
    return made.with_fields(group=group_of_identity(identities, codes, group))


def _compact(labels: LabelArray, one: IntArray, two: IntArray) -> tuple[LabelArray, IntArray, IntArray]:
    """Drop labels that no code uses, and number the rest anew."""
    occurs = np.zeros(labels.size, dtype=np.bool_)
    occurs[one] = True
    occurs[two] = True
    new = np.cumsum(occurs, dtype=np.int64) - 1
    return labels[occurs], new[one], new[two]
