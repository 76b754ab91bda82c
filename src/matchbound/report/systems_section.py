"""The section of a report that sets other systems beside the one it is about."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from matchbound.calls.comparison import Where, compare_points
from matchbound.calls.roc import roc
from matchbound.counting.executors import Executor
from matchbound.counting.recount import AnySource, Source
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.readers.loading import in_memory
from matchbound.readers.scan import ScoreFile
from matchbound.report.page import reading_of_number
from matchbound.report.systems import SystemCurve, SystemRow, SystemsSection, finite
from matchbound.results.comparison import Comparison, Difference
from matchbound.results.interval import Interval
from matchbound.results.systems import SystemsTable
from matchbound.show.histogram import panel_points

Against = AnySource | Mapping[str, AnySource] | Sequence[AnySource]
KINDS = Comparisons | Embeddings | ScoreFile
OWN_NAME = "this system"
FALLBACK_FAR = 0.1
FEW_ERRORS = 10
CURVE_POINTS = 600
PAIRED_METHODS = ("auto", "dyadic", "latent")
"""Methods that have simultaneous intervals."""
SAID_ELSEWHERE = ("matched", "one-instance")
"""Notes that other parts of the report are about."""


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
    elif isinstance(against, Sequence):
        many = len(against) > 1
        others = {f"system {k + 2}" if many else "the other system": source for k, source in enumerate(against)}
    else:
        others = {"the other system": against}
    if not others:
        raise UsageError("against holds no system; leave it out, or give at least one")
    strange = [type(source).__name__ for source in others.values() if not isinstance(source, KINDS)]
    if strange:
        raise UsageError(f"against must hold Comparisons or Embeddings (see matchbound.read); got {strange[0]}")
    if own in others:
        raise UsageError(f"against names a system {own!r}, which is the name of the report's own; give name=")
    return {own: data} | {key: in_memory(source) for key, source in others.items()}


def systems_section(
    systems: Mapping[str, Source],
    targets: Sequence[float],
    thresholds: Sequence[float],
    *,
    level: float,
    method: str,
    n_resamples: int,
    rng: int,
    workers: int | None,
    executor: Executor | None,
    known: Sequence[str] = (),
    weighting: str = "comparisons",
) -> SystemsSection:
    """Compare systems at equal FARs, at EER and at thresholds, with intervals.

    Parameters
    ----------
    systems
        By name, the report's own first.
    targets, thresholds
        FARs and thresholds; a threshold is that of all systems.
    method
        Used where differences have it; else their default.
    known
        What the report says already.
    weighting
        As in `compare`.
    """
    sources = list(systems.values())
    notes: list[Note] = []
    if thresholds and len({source.distance for source in sources}) > 1:
        notes.append(
            Note(
                "mixed-scores",
                "some scores are distances and some are not, so the systems are not compared at one threshold",
            )
        )
        thresholds = ()
    aims = [far for far in targets if 0.0 < far < 1.0] or [FALLBACK_FAR]
    points = [*(Where(far=far) for far in aims), *(Where(threshold=value) for value in thresholds)]
    tables = compare_points(systems, points, workers=workers, executor=executor, weighting=weighting)
    options: dict[str, Any] = {"level": level, "method": method, "n_resamples": n_resamples, "rng": rng}
    rows: list[SystemRow] = []
    for table, where in zip(tables[: len(aims)], points, strict=False):
        rows += _rows(table, "frr", where, **options)
    rows += _rows(tables[0], "eer", Where(far=aims[0]), **options)
    for table, where in zip(tables[len(aims) :], points[len(aims) :], strict=True):
        rows += [*_rows(table, "far", where, **options), *_rows(table, "frr", where, **options)]
    first = next(iter(tables[0].comparisons.values()))
    told = [
        note for table in tables for note in table.warnings if note.code not in SAID_ELSEWHERE and note not in known
    ]
    return SystemsSection(
        names=tuple(systems),
        rows=tuple(rows),
        focus=_best_supported(aims, tables),
        matched=first.matched,
        unmatched=_unmatched(tables[0]),
        unit="instances" if all(isinstance(source, Embeddings) for source in sources) else "comparisons",
        matched_by=first.matched_by,
        n_identities=first.n_identities,
        notes=tuple(dict.fromkeys([*notes, *told])),
        curves=tuple(_curve(name, source, workers, weighting) for name, source in systems.items()),
    )


def _curve(name: str, source: Source, workers: int | None, weighting: str) -> SystemCurve:
    """The curve of a system, with as many points as a drawing can show."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchboundWarning)  # what there is to say is said of the system already
        curve = roc(source, weighting=weighting, workers=workers)
    chosen = panel_points(curve.far, curve.frr, CURVE_POINTS, np.array([0, len(curve) - 1]))
    return SystemCurve(name, curve.far[chosen], curve.frr[chosen], curve.eer().estimate)


def _rows(
    table: SystemsTable,
    name: Literal["far", "frr", "eer"],
    where: Where,
    *,
    level: float,
    method: str,
    n_resamples: int,
    rng: int,
) -> list[SystemRow]:
    """One number of all pairs of systems: simultaneous intervals for more than one pair."""
    found: list[tuple[tuple[str, str], Difference, Interval, float]] = []
    if len(table.comparisons) == 1:
        pair, comparison = next(iter(table.comparisons.items()))
        difference: Difference = getattr(comparison, name)
        chosen = method if method in difference.methods else "auto"
        interval = difference.interval(chosen, level, n_resamples=n_resamples, rng=rng)
        found.append((pair, difference, interval, difference.p_value))
    else:
        chosen = method if method in PAIRED_METHODS else "auto"
        for row in table.differences(name, level, method=chosen, rng=rng):
            found.append(((row.a, row.b), row.difference, row.interval, row.p_value))
    return [_row(where, pair, difference, interval, p, level) for pair, difference, interval, p in found]


def _row(
    where: Where, pair: tuple[str, str], difference: Difference, interval: Interval, p_value: float, level: float
) -> SystemRow:
    ratio = difference.ratio_interval("auto", level)
    known = finite(difference.ratio) is not None or difference.rate_a > 0.0
    metric: Any = difference.metric
    fixed = metric in ("far", "frr")
    return SystemRow(
        metric=metric,
        target=where.far if metric == "frr@far" else None,
        reading=reading_of_number(float(where.threshold)) if fixed and isinstance(where.threshold, float) else None,
        a=pair[0],
        b=pair[1],
        rate_a=difference.rate_a,
        rate_b=difference.rate_b,
        estimate=difference.estimate,
        low=interval.low,
        high=interval.high,
        ratio=finite(difference.ratio),
        ratio_low=ratio.low if known else None,
        ratio_high=finite(ratio.high) if known else None,
        p_value=p_value,
        method=interval.method,
        disagree=all(note.code != "never-disagree" for note in difference.notes),
    )


def _best_supported(aims: Sequence[float], tables: Sequence[SystemsTable]) -> float:
    """The lowest FAR at which every system has enough errors of both kinds; else the highest."""

    def fewest(comparison: Comparison) -> int:
        return min(rate.errors for one in (comparison.a, comparison.b) for rate in (one.far, one.frr))

    for far, table in sorted(zip(aims, tables, strict=False), key=lambda pair: pair[0]):
        if all(fewest(comparison) >= FEW_ERRORS for comparison in table.comparisons.values()):
            return far
    return max(aims)


def _unmatched(table: SystemsTable) -> tuple[int, ...]:
    """What each system had besides the common comparisons."""
    left: dict[str, int] = {}
    for (a, b), comparison in table.comparisons.items():
        left[a], left[b] = comparison.unmatched
    return tuple(left[name] for name in table.names)
