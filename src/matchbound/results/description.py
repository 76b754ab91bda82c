"""What a data set holds, and which of its comparisons erred, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.counting.pairs import ErringRows
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.values import question
from matchbound.notes import Note
from matchbound.readers.read import Readable, Source, in_memory
from matchbound.results.interval import few_identities, uneven_identities
from matchbound.show.shown import Shown

if TYPE_CHECKING:
    from matchbound.show.tables import Table


@dataclass(frozen=True)
class Description(Shown):
    """The size and shape of a data set.

    What is unknown is None: numbers of instances (`instances_range`: fewest, median and most of an identity;
    `n_single`: identities with one) where comparisons do not name them, scores (lowest, median, highest) of embeddings.
    `complete`: every pair of instances was compared once. `identity_pairs` is the share of identity pairs that were
    compared at all. `distance`: small scores mean "same". `findings` stand in the way of a good answer.
    """

    kind: str
    n_identities: int
    n_genuine: int
    n_impostor: int
    n_instances: int | None
    instances_range: tuple[int, float, int] | None
    n_single: int | None
    complete: bool | None
    identity_pairs: float
    genuine_scores: tuple[float, float, float] | None
    impostor_scores: tuple[float, float, float] | None
    dimensions: int | None
    dtype: str | None
    similarity: str | None
    distance: bool
    findings: tuple[Note, ...]

    def to_records(self) -> list[dict[str, Any]]:
        """One record with every field but the findings."""
        record = asdict(self)
        record.pop("findings")
        return [record]

    def _tables(self) -> list[Table]:
        from matchbound.show.columns import description_rows
        from matchbound.show.tables import as_table

        return [as_table(("", ""), description_rows(self))]


Summary = tuple[float, float, float] | None


def describe(data: Source | Readable) -> Description:
    """Describe a data set.

    Parameters
    ----------
    data
        The data, or what `read` takes.

    Returns
    -------
    Description

    See Also
    --------
    read

    Examples
    --------
    >>> import matchbound as mb
    >>> mb.describe(mb.demo_data()).n_identities
    150
    """
    data = in_memory(data)
    findings = list(data.findings())
    sizes = data.instance_counts
    n = data.n_identities
    complete: bool | None = True
    share = 1.0 if n > 1 else 0.0
    scores: tuple[Summary, Summary] = (None, None)
    vectors = getattr(data, "vectors", None)
    if isinstance(data, Comparisons):
        share = _share_of_pairs(data)
        complete = _complete(data)
        scores = (_summary(data.score[data.genuine]), _summary(data.score[~data.genuine]))
        if complete is False:
            text = "not every pair of instances was compared: the data are treated as incomplete"
            findings.append(Note("incomplete", text))
        if scores[0] and scores[1] and (scores[0][1] > scores[1][1]) == data.distance:
            asked = question(data.distance)
            findings += [asked] if asked not in findings else []
    for kind, metric, count in (("genuine", "FRR", data.n_genuine), ("impostor", "FAR", data.n_impostor)):
        if count == 0:
            findings.append(Note("no-comparisons", f"no {kind} comparisons: {metric} is not defined"))
    findings += few_identities(n)
    for metric, each in zip(("far", "frr"), reversed(data.comparisons_by_identity), strict=True):
        findings += uneven_identities(metric, each)
    spread = None
    if sizes is not None and n:
        spread = int(sizes.min()), float(np.median(sizes)), int(sizes.max())
    return Description(
        kind=data.kind,
        n_identities=n,
        n_genuine=data.n_genuine,
        n_impostor=data.n_impostor,
        n_instances=None if sizes is None else int(sizes.sum()),
        instances_range=spread,
        n_single=None if sizes is None else int(np.count_nonzero(sizes == 1)),
        complete=complete,
        identity_pairs=share,
        genuine_scores=scores[0],
        impostor_scores=scores[1],
        dimensions=None if vectors is None else vectors.shape[1],
        dtype=None if vectors is None else str(vectors.dtype),
        similarity=None if vectors is None else str(data.similarity),
        distance=data.distance,
        findings=tuple(findings),
    )


def _share_of_pairs(data: Comparisons) -> float:
    n = data.n_identities
    if n < 2:
        return 0.0
    rows = ~data.genuine
    low, high = np.minimum(data.a[rows], data.b[rows]), np.maximum(data.a[rows], data.b[rows])
    keys = np.sort(low * np.int64(n) + high)  # np.unique hashes, which takes ten times as long
    return float(np.count_nonzero(np.diff(keys, prepend=-1)) / (n * (n - 1) / 2))


def _complete(data: Comparisons) -> bool | None:
    sizes = data.instance_counts
    if sizes is None:
        return None
    rows = int(sizes.sum())
    return not data.repeated and not data.with_itself and len(data) == rows * (rows - 1) // 2


def _summary(scores: FloatArray) -> Summary:
    return (float(scores.min()), float(np.median(scores)), float(scores.max())) if scores.size else None


# Comparisons that a printed list holds.
SHOWN = 20


@dataclass(frozen=True, eq=False, repr=False)
class Erring(Shown):
    """Comparisons on the wrong side of a threshold, worst first; arrays of shape (E,).

    There are `errors` in all; the list may hold fewer. Instances are row numbers where embeddings have no names, and
    None where a table of scores names none. `row` is that of the table, counted from 0; None for embeddings.
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
