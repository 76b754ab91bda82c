"""Comparisons that erred, as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from matchbound.show.numbers import count_text, threshold_text
from matchbound.show.records import Record
from matchbound.show.tables import Column, Table

NAMES = {"far": "False accepts", "frr": "False rejects"}


def erring_table(metric: str, records: Sequence[Record], listed: int, errors: int) -> Table:
    """The records of one kind of error, worst first; what is left out is said."""
    instances = any("instance_a" in r for r in records)
    columns = [Column("score", "number"), Column("identity a"), *([Column("instance a", drop=1)] if instances else [])]
    columns += [Column("identity b"), *([Column("instance b", drop=1)] if instances else [])]
    rows = []
    for r in records:
        named = [
            [str(r[f"identity_{side}"]), *([str(r.get(f"instance_{side}", "–"))] if instances else [])] for side in "ab"
        ]
        rows.append((threshold_text(r["score"]), *named[0], *named[1]))
    shown = len(records)
    note = f"All {count_text(errors)} errors, worst first."
    if shown < errors:
        note = f"The worst {count_text(shown)} of {count_text(errors)} errors."
    if not errors:
        note = "No errors at this threshold."
    return Table(tuple(columns), tuple(rows), NAMES[metric], note)
