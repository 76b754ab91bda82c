"""Reports: gather everything that a page says about a data set, and write it."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from matchbound._version import __version__
from matchbound.api import evaluate, roc
from matchbound.engine.recount import Recount, Source
from matchbound.engine.tally import IntArray
from matchbound.errors import MatchboundWarning, UsageError
from matchbound.results.description import describe
from matchbound.results.error_rates import ErrorRates, error_rates
from matchbound.results.interval import tail_of
from matchbound.results.points import CurveStatistic
from matchbound.results.rates import METHODS, Rate
from matchbound.results.report import (
    Claim,
    GroupGap,
    GroupRow,
    GroupSection,
    Report,
    ReportedPoint,
    reading_of,
    reading_of_number,
)
from matchbound.results.report_parts import curve_panel, curve_picture, drivers_of, tally_at
from matchbound.results.roc import RocCurve
from matchbound.sources.comparisons import Comparisons
from matchbound.stats.intervals import wilson
from matchbound.stats.panels import score_histogram

if TYPE_CHECKING:
    from matchbound.results.groups import GroupRates

DEFAULT_FAR = (1e-1, 1e-2, 1e-3)
FEW_ERRORS = 10
GAPS = 5
"""How many differences between groups are listed for each rate, the largest first."""
HASHED_BYTES = 2**30
Format = Literal["html", "markdown", "latex"]
SUFFIXES: dict[str, Format] = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".tex": "latex",
}


def write_report(
    path: str | os.PathLike[str],
    data: Source,
    *,
    format: Format | None = None,
    far: Sequence[float] | float | None = None,
    threshold: Sequence[float] | float | None = None,
    level: float = 0.95,
    method: str = "wilson",
    title: str | None = None,
    show_labels: bool = False,
    group: Any = None,
    workers: int | None = None,
    rng: int = 0,
    n_resamples: int = 2000,
    provenance: Mapping[str, Any] | None = None,
) -> Report:
    """Write a report about a data set: one self-contained page, or tables for a paper.

    Parameters
    ----------
    path
        Where to; written whole or not at all.
    data
        `Comparisons`, or `Embeddings` of which all pairs are compared.
    format
        ``"html"``, ``"markdown"`` or ``"latex"``; by default from the ending of the path, else HTML.
    far, threshold, level, method, title, show_labels, group, workers, rng, n_resamples, provenance
        See `make_report`.

    Returns
    -------
    Report
        What it says.

    Examples
    --------
    >>> import matchbound as mb
    >>> report = mb.write_report("report.html", mb.demo_data(), far=[1e-1, 1e-2])  # doctest: +SKIP
    """
    from matchbound.views.files import write_atomically
    from matchbound.views.report import render

    chosen = format or SUFFIXES.get(Path(path).suffix.lower(), "html")
    report = make_report(
        data,
        far=far,
        threshold=threshold,
        level=level,
        method=method,
        title=title,
        show_labels=show_labels,
        group=group,
        workers=workers,
        rng=rng,
        n_resamples=n_resamples,
        provenance=provenance,
    )
    write_atomically(path, render(report, chosen))
    return report


def make_report(
    data: Source,
    *,
    far: Sequence[float] | float | None = None,
    threshold: Sequence[float] | float | None = None,
    level: float = 0.95,
    method: str = "wilson",
    title: str | None = None,
    show_labels: bool = False,
    group: Any = None,
    workers: int | None = None,
    rng: int = 0,
    n_resamples: int = 2000,
    provenance: Mapping[str, Any] | None = None,
) -> Report:
    """Everything that a report says, from one pass over the data (two where thresholds are given).

    Parameters
    ----------
    data
        `Comparisons`, or `Embeddings` of which all pairs are compared.
    far
        FARs at which FRR is reported; by default those of 0.1, 0.01 and 0.001 that the data can support.
    threshold
        Thresholds at which both rates are reported.
    level
        Confidence level of every interval and bound.
    method
        Of the intervals in the table of operating points. The slider's are Wilson's.
    title
        By default "Matching accuracy report".
    show_labels
        Name the identities that drive the uncertainty; by default they have numbers only.
    group
        For the section on groups, as in `by_group`; by default the group that the data carry, if any.
    workers
        Threads for embeddings.
    rng, n_resamples
        For bootstraps.
    provenance
        What made the report; by default version, parameters and the digest of the data.
    """
    tail_of(level, "two-sided")
    if method not in METHODS:
        raise UsageError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    asked = _numbers("threshold", threshold)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        curve = roc(data, workers=workers)
        made = _Maker(data, curve, level, method, workers, rng, n_resamples)
        report = made.report(
            _targets(far, curve),
            asked,
            title or "Matching accuracy report",
            show_labels,
            group,
            provenance or _provenance(data, far, asked, level, method, rng),
        )
    said = [str(item.message) for item in caught if issubclass(item.category, MatchboundWarning)]
    notes = tuple(dict.fromkeys([*said, *report.warnings]))
    for text in notes:
        warnings.warn(text, MatchboundWarning, stacklevel=2)
    for item in caught:
        if not issubclass(item.category, MatchboundWarning):
            warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)
    object.__setattr__(report, "warnings", notes)
    return report


class _Maker:
    """The steps from a curve to a report; they share the data and the settings."""

    def __init__(
        self,
        data: Source,
        curve: RocCurve,
        level: float,
        method: str,
        workers: int | None,
        rng: int,
        n_resamples: int,
    ) -> None:
        self.data, self.curve, self.level, self.method = data, curve, level, method
        self.workers, self.rng, self.n_resamples = workers, rng, n_resamples

    def report(
        self,
        targets: Sequence[float],
        asked: Sequence[float],
        title: str,
        show_labels: bool,
        group: Any,
        provenance: Mapping[str, Any],
    ) -> Report:
        """All of it."""
        curve = self.curve
        aims = [curve.at_far(target) for target in targets]
        at_aims = self._rates_at(np.unique(np.array([aim.index for aim in aims], dtype=np.int64)))
        series = list(evaluate(self.data, list(asked), workers=self.workers)) if asked else []
        points = [self._asked_point(rates) for rates in series]
        points += [self._aimed_point(aim, at_aims[aim.index]) for aim in aims]
        focus = 0 if asked else _best_supported(points)
        eer = curve.eer()
        always = np.unique(np.array([0, len(curve) - 1, eer.index, *(aim.index for aim in aims)], dtype=np.int64))
        focus_rates = series[0] if asked else at_aims[aims[focus].index]
        description = describe(self.data)
        return Report(
            title=title,
            level=self.level,
            description=description,
            points=tuple(points),
            focus=focus,
            eer=self._statistic(eer),
            eer_reading=reading_of(curve.tally, eer.index),
            auc=self._statistic(curve.auc()),
            panel=curve_panel(curve, self.level, always, series, points[focus].threshold),
            picture=curve_picture(curve, self.level),
            histogram=score_histogram(curve.tally),
            drivers=tuple(drivers_of(rate, show_labels) for rate in (focus_rates.far, focus_rates.frr)),
            groups=self._groups(points[focus], group),
            warnings=tuple(dict.fromkeys([*description.findings, *focus_rates.warnings])),
            provenance=provenance,
        )

    def _rates_at(self, points: IntArray) -> dict[int, ErrorRates]:
        """Error rates at points of the curve."""
        again = Recount(self.data, self.workers)
        made = error_rates(tally_at(self.curve.tally, points), self.data.findings(), again)
        return dict(zip(points.tolist(), made, strict=True))

    def _asked_point(self, rates: ErrorRates) -> ReportedPoint:
        reading = reading_of_number(rates.threshold)
        return ReportedPoint(None, rates.threshold, reading, self._rate(rates.far), self._rate(rates.frr))

    def _aimed_point(self, aim: CurveStatistic, rates: ErrorRates) -> ReportedPoint:
        target = float(getattr(aim, "target"))  # noqa: B009
        reading = reading_of(self.curve.tally, aim.index)
        return ReportedPoint(target, aim.threshold, reading, self._rate(rates.far), self._statistic(aim))

    def _rate(self, rate: Rate) -> Claim:
        """A rate at a fixed threshold."""
        made = rate.interval(self.method, self.level, n_resamples=self.n_resamples, rng=self.rng)
        bound = rate.interval(self.method, self.level, side="upper", n_resamples=self.n_resamples, rng=self.rng)
        return Claim(
            metric=rate.metric,
            estimate=rate.estimate,
            low=made.low,
            high=made.high,
            upper=bound.high,
            method=made.method,
            errors=rate.errors,
            comparisons=rate.comparisons,
            naive_ratio=_times_naive(made.width, rate.estimate, rate.comparisons, self.level),
        )

    def _statistic(self, statistic: CurveStatistic) -> Claim:
        """A number read from the curve."""
        method = self.method if self.method in statistic.methods else "influence"
        options: dict[str, Any] = {"n_resamples": self.n_resamples, "rng": self.rng}
        made = statistic.interval(method, self.level, **options)
        area = statistic.metric == "auc"
        upper = None if area else statistic.interval(method, self.level, side="upper", **options).high
        errors = comparisons = ratio = None
        if statistic.metric == "frr@far":
            errors = int(statistic.curve.false_nonmatches[statistic.index])
            comparisons = statistic.curve.n_genuine
            ratio = _times_naive(made.width, statistic.estimate, comparisons, self.level)
        return Claim(
            statistic.metric, statistic.estimate, made.low, made.high, upper, made.method, errors, comparisons, ratio
        )

    def _groups(self, point: ReportedPoint, group: Any) -> GroupSection | None:
        """Rates by group at a threshold, and the largest gaps; None without groups."""
        if group is None and self.data.group is None:
            return None
        from matchbound.api_groups import by_group

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)  # they are in `warnings` of the result
            rates = by_group(self.data, point.threshold, group=group, workers=self.workers)
            rows = []
            for name in rates.groups:
                both = [self._rate(rate) if rate.comparisons else None for rate in (rates[name].far, rates[name].frr)]
                rows.append(GroupRow(name, rates[name].n_identities, both[0], both[1]))
            gaps = [*self._gaps(rates, "far"), *self._gaps(rates, "frr")]
        notes = tuple(text for text in rates.warnings if text not in self.curve.warnings and "one instance" not in text)
        return GroupSection(point.threshold, point.reading, tuple(rows), tuple(gaps), notes)

    def _gaps(self, rates: GroupRates, metric: Literal["far", "frr"]) -> list[GroupGap]:
        """The largest gaps between groups; with more than one pair of groups, limits that hold for all."""
        large = [name for name in rates.compared if getattr(rates[name], metric).comparisons]
        if len(large) == 2:
            gap = rates.gap(metric, large[0], large[1])
            found = [(gap, gap.interval(level=self.level))]
        else:
            made = rates.gaps(metric, self.level, n_resamples=self.n_resamples, rng=self.rng)
            found = sorted([(row.gap, row.interval) for row in made], key=lambda pair: -abs(pair[0].estimate))
        return [
            GroupGap(metric, gap.group_a, gap.group_b, gap.estimate, interval.low, interval.high, len(found))
            for gap, interval in found[:GAPS]
        ]


def _times_naive(width: float, estimate: float, comparisons: int, level: float) -> float | None:
    """How many times wider an interval is than Wilson's for independent comparisons."""
    low, high = wilson(estimate, comparisons, (1.0 - level) / 2.0)
    return width / (high - low) if high > low else None


def _best_supported(points: Sequence[ReportedPoint]) -> int:
    """The point of the lowest FAR that rests on enough errors of both kinds; else the one of the highest FAR."""
    for k in sorted(range(len(points)), key=lambda k: points[k].far.estimate):
        if min(points[k].far.errors or 0, points[k].frr.errors or 0) >= FEW_ERRORS:
            return k
    return max(range(len(points)), key=lambda k: points[k].far.estimate)


def _targets(far: Sequence[float] | float | None, curve: RocCurve) -> list[float]:
    if far is None:
        supported = [f for f in DEFAULT_FAR if f * curve.tally.n_impostor >= FEW_ERRORS]
        return supported or [DEFAULT_FAR[0]]
    given = _numbers("far", far)
    if not given:
        raise UsageError("far holds no rates; leave it out for the usual ones")
    return sorted(set(given), reverse=True)


def _numbers(name: str, values: Sequence[float] | float | None) -> list[float]:
    if values is None:
        return []
    try:
        found = np.array(values, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be a number or a sequence of numbers; got {values!r}") from None
    if not np.isfinite(found).all():
        raise UsageError(f"{name} must hold finite numbers; got {values!r}")
    return list(dict.fromkeys(found.tolist()))


def _provenance(
    data: Source, far: Sequence[float] | float | None, asked: Sequence[float], level: float, method: str, rng: int
) -> dict[str, Any]:
    parameters: dict[str, Any] = {"far": far if far is None else _numbers("far", far), "threshold": list(asked) or None}
    parameters |= {"level": level, "method": method, "distance": data.distance}
    return {
        "version": __version__,
        "parameters": {key: value for key, value in parameters.items() if value is not None},
        "seed": rng,
        "input": data_digest(data),
    }


def data_digest(data: Source) -> str | None:
    """``"sha256:…"`` of identities and scores or vectors, as they are in memory; None above a gigabyte."""
    arrays = (
        (data.identities[data.a], data.identities[data.b], data.score)
        if isinstance(data, Comparisons)
        else (
            data.identities[data.codes],
            data.vectors,
        )
    )
    if sum(array.nbytes for array in arrays) > HASHED_BYTES:
        return None
    total = hashlib.sha256()
    for array in arrays:
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return f"sha256:{total.hexdigest()}"
