"""Searches in a gallery as a table."""

from __future__ import annotations

from collections.abc import Sequence

from matchbound.show.numbers import percent
from matchbound.show.records import Record
from matchbound.show.text import table


def searches_table(
    records: Sequence[Record],
    hubs: Sequence[tuple[float, Sequence[Sequence[str]], int]] = (),
    claims: Sequence[str] = (),
    *,
    width: int | None = None,
    colour: bool = False,
) -> str:
    """Rates of searches with their intervals, for people.

    hubs
        For each threshold: rows (identity, hits, share) and how many people receive half of the false hits.
    claims
        Verdicts in words.
    """
    rows = []
    for r in records:
        name = str(r["metric"]).upper()
        where = "" if r["threshold"] is None else f"{r['threshold']:.6g}"
        if r["metric"] == "fnir@fpir":
            name = f"FNIR@FPIR={r['fpir']:g}"
        if r["metric"] == "fpir@size":
            name = f"FPIR, {r['size']:,} enrolled"
        if r.get("rank"):
            name += f" rank {r['rank']}"
        errors = "–" if r.get("errors") is None else f"{r['errors']:,} of {r['searches']:,}"
        rows.append(
            [name, where, percent(r["estimate"]), percent(r["low"]), percent(r["high"]), errors, r["method"] or "–"]
        )
    headings = ["metric", "threshold", "estimate", "low", "high", "searches", "method"]
    text = table(headings, rows, width=width, colour=colour)
    level = records[0]["level"] if records else 0.95
    kind = records[0].get("target", "random") if records else "random"
    size = records[0]["gallery"] if records else 0
    text += f"{100 * level:.5g}% intervals for a {kind} gallery; {size:,} people are enrolled.\n"
    for threshold, people, half in hubs:
        if people:
            text += f"At threshold {threshold:g}, {half:,} enrolled people receive half of the false hits:\n"
            text += table(["identity", "hits", "share"], people)
    for line in claims:
        text += line + "\n"
    return text
