"""A data set's description, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from matchbound.show.numbers import percent
from matchbound.show.records import Record
from matchbound.show.tables import Table, as_table

if TYPE_CHECKING:
    from matchbound.results.description import Description


def description_records(description: Description) -> list[Record]:
    """One record with every field but the findings, which are warnings."""
    record = asdict(description)
    record.pop("findings")
    return [record]


def description_rows(d: Description) -> list[tuple[str, str]]:
    """What the data are, as (what, value)."""
    rows = [
        ("kind", d.kind),
        ("identities", f"{d.n_identities:,}"),
        ("genuine comparisons", f"{d.n_genuine:,}"),
        ("impostor comparisons", f"{d.n_impostor:,}"),
    ]
    if d.n_instances is not None and d.instances_range is not None:
        low, middle, high = d.instances_range
        rows.append(("instances", f"{d.n_instances:,} ({low} to {high:,} per identity, median {middle:g})"))
        rows.append(("identities with one instance", f"{d.n_single:,}"))
    else:
        rows.append(("instances", "not named"))
    if d.dimensions is not None:
        rows.append(("vectors", f"{d.dimensions} dimensions, {d.dtype}, {d.similarity}"))
    else:
        told = {True: "yes", False: "no", None: "unknown (instances are not named)"}[d.complete]
        rows.append(("every pair compared", told))
        rows.append(("identity pairs compared", percent(d.identity_pairs)))
    for name, scores in (("genuine scores", d.genuine_scores), ("impostor scores", d.impostor_scores)):
        if scores is not None:
            rows.append((name, f"{scores[0]:.6g} to {scores[2]:.6g}, median {scores[1]:.6g}"))
    rows.append(("a match is", "score <= threshold" if d.distance else "score >= threshold"))
    return rows


def description_table(description: Description) -> Table:
    """The description as a small table."""
    return as_table(("", ""), description_rows(description))


def description_text(description: Description, *, width: int | None = None, colour: bool = False) -> str:
    """The same as text."""
    return description_table(description).text(width, colour)
