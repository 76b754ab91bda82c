"""Other systems on the same comparisons, beside the one that a report is about."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from matchbound.calls.comparison import Where, compare_points
from matchbound.calls.evaluate import roc
from matchbound.counting.recount import Source
from matchbound.counting.run import RunOptions
from matchbound.counting.sources import AnySource
from matchbound.errors import MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.readers.read import in_memory
from matchbound.report.page import Settings, Systems, best_supported
from matchbound.results.comparison import SystemsTable
from matchbound.show.differences import comparison_records
from matchbound.show.numbers import count_text

Against = AnySource | Mapping[str, AnySource] | Sequence[AnySource]
OWN_NAME = "this system"
FALLBACK_FAR = 0.1
# Notes that other parts of the report are about.
ELSEWHERE = ("matched", "one-instance")
MATCHES = {
    "row": "row: no instances are named, so row n of one system was matched with row n of the others",
    "identity pair": "identity pair: no instances are named, and no pair of identities occurs twice",
}


def named_systems(data: Source, name: str | None, against: Against) -> dict[str, Source]:
    """The systems by name, the report's own first.

    Parameters
    ----------
    name
        Of the report's own system; "this system" where it is None.
    against
        One other system, several in a sequence, or by name.
    """
    own = name or OWN_NAME
    if isinstance(against, Mapping):
        others = {str(key): source for key, source in against.items()}
    else:
        several: Sequence[Any] = against if isinstance(against, (list, tuple)) else [against]
        names = [f"system {k + 2}" for k in range(len(several))] if len(several) > 1 else ["the other system"]
        others = dict(zip(names, several, strict=False))
    if not others:
        raise UsageError("against holds no system; leave it out, or give at least one")
    if own in others:
        raise UsageError(f"against names a system {own!r}, which is the name of the report's own; give name=")
    return {own: data} | {key: in_memory(source) for key, source in others.items()}


def compare_systems(
    systems: Mapping[str, Source],
    targets: Sequence[float],
    thresholds: Sequence[float],
    settings: Settings,
    known: Sequence[str] = (),
) -> Systems:
    """Compare systems at equal FARs, at EER and at thresholds, with intervals.

    Parameters
    ----------
    systems
        By name, the report's own first.
    targets, thresholds
        FARs and thresholds; a threshold is that of all systems.
    known
        Notes that the report has already.
    """
    sources, weighting, engine = list(systems.values()), settings.weighting, settings.engine
    notes: list[Note] = []
    if thresholds and len({source.distance for source in sources}) > 1:
        text = "some scores are distances and some are not, so the systems are not compared at one threshold"
        notes.append(Note("mixed-scores", text))
        thresholds = ()
    aims = [far for far in targets if 0.0 < far < 1.0] or [FALLBACK_FAR]
    points = [*(Where(far=far) for far in aims), *(Where(threshold=value) for value in thresholds)]
    tables = compare_points(systems, points, weighting, RunOptions(**engine))
    wanted = [*(("frr", table) for table in tables[: len(aims)]), ("eer", tables[0])]
    wanted += [(metric, table) for table in tables[len(aims) :] for metric in ("far", "frr")]
    records = [
        record
        for metric, table in wanted
        for record in comparison_records(table, settings.method, settings.level, metrics=(metric,), **settings.drawing)
    ]
    notes += [note for table in tables for note in table.warnings if note.code not in ELSEWHERE and note not in known]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchboundWarning)  # what there is to say is said of the system already
        curves = tuple(roc(source, weighting=weighting, workers=engine["workers"]) for source in sources)
    unit = "instances" if {source.unit for source in sources} == {"instances"} else "comparisons"
    fewest = [
        (far, min(rate.errors for c in table.comparisons.values() for one in (c.a, c.b) for rate in (one.far, one.frr)))
        for far, table in zip(aims, tables, strict=False)
    ]
    return Systems(
        names=tuple(systems),
        records=tuple(records),
        focus=aims[best_supported(fewest)],
        facts=tuple(_facts(tables[0], unit)),
        notes=tuple(dict.fromkeys(notes)),
        curves=curves,
    )


def _facts(table: SystemsTable, unit: str) -> list[tuple[str, str]]:
    """What was compared with what, as (what, value)."""
    left: dict[str, int] = {}
    for (a, b), comparison in table.comparisons.items():
        left[a], left[b] = comparison.unmatched
    names, first = table.names, next(iter(table.comparisons.values()))
    rows = [("A, which this report is about", names[0]), ("B", names[1])]
    if len(names) > 2:
        rows = [("Systems", ", ".join(names)), ("This report is about", names[0])]
    compared = f"{count_text(first.matched)} {unit} of {count_text(first.n_identities)} identities"
    more = [f"{count_text(left[name])} of {name}" for name in names if left[name]]
    return [
        *rows,
        ("Compared on", compared + (", all pairs" if unit == "instances" else "")),
        ("Matched by", MATCHES.get(first.matched_by, first.matched_by)),
        ("Left out", f"{', '.join(more)}: another system lacks them" if more else "nothing"),
    ]
