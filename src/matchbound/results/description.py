"""What a data set holds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.data.values import question
from matchbound.notes import Note
from matchbound.readers.read import Readable, Source, in_memory
from matchbound.results.rates import few_identities, uneven_identities
from matchbound.show.shown import Shown

if TYPE_CHECKING:
    from matchbound.show.tables import Table


@dataclass(frozen=True, kw_only=True)
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
    n_instances: int | None = None
    instances_range: tuple[int, float, int] | None = None
    n_single: int | None = None
    complete: bool | None
    identity_pairs: float
    genuine_scores: tuple[float, float, float] | None = None
    impostor_scores: tuple[float, float, float] | None = None
    dimensions: int | None = None
    dtype: str | None = None
    similarity: str | None = None
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
    findings, details = list(data.findings()), data.details()
    if details["complete"] is False:
        text = "not every pair of instances was compared: the data are treated as incomplete"
        findings.append(Note("incomplete", text))
    genuine, impostor = details.get("genuine_scores"), details.get("impostor_scores")
    asked = question(data.distance)
    known = {note.code for note in findings}
    if genuine and impostor and (genuine[1] > impostor[1]) == data.distance and asked.code not in known:
        findings.append(asked)
    for kind, metric, count in (("genuine", "FRR", data.n_genuine), ("impostor", "FAR", data.n_impostor)):
        if count == 0:
            findings.append(Note("no-comparisons", f"no {kind} comparisons: {metric} is not defined"))
    findings += few_identities(data.n_identities)
    for metric, each in zip(("far", "frr"), reversed(data.comparisons_by_identity), strict=True):
        findings += uneven_identities(metric, each)
    sizes = data.instance_counts
    if sizes is not None:
        details |= {"n_instances": int(sizes.sum()), "n_single": int(np.count_nonzero(sizes == 1))}
        if sizes.size:
            details["instances_range"] = int(sizes.min()), float(np.median(sizes)), int(sizes.max())
    return Description(
        kind=data.kind,
        n_identities=data.n_identities,
        n_genuine=data.n_genuine,
        n_impostor=data.n_impostor,
        distance=data.distance,
        findings=tuple(findings),
        **details,
    )
