"""Reports: gather everything that a page says about a data set, and write it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from matchbound.arraytypes import IntArray
from matchbound.calls.evaluate import evaluate
from matchbound.calls.provenance import provenance_of
from matchbound.calls.roc import roc
from matchbound.counting.recount import Source
from matchbound.counts.curve import CurveTally, SortedCurve, SteppedCurve
from matchbound.data.failures import Failures
from matchbound.errors import MatchboundWarning, UsageError
from matchbound.metrics import METRICS
from matchbound.notes import heard
from matchbound.readers.loading import in_memory
from matchbound.report.page import (
    GroupSection,
    PerPerson,
    Report,
    ReportedCost,
    ReportedNumber,
    ReportedPoint,
    Suspect,
    Verdict,
    counted_curve,
    reading_of,
    reading_of_number,
)
from matchbound.report.parts import curve_panel, curve_picture, drivers_of, per_person, tally_at
from matchbound.results.claims import check_statement, judge_all, parse_claim
from matchbound.results.costs import CostStatistic
from matchbound.results.description import describe
from matchbound.results.error_rates import ErrorRates, error_rates
from matchbound.results.interval import named, tail_of
from matchbound.results.number import records_of
from matchbound.results.points import CurveStatistic
from matchbound.results.rates import Rate
from matchbound.results.roc import RocCurve
from matchbound.results.searches import Searches
from matchbound.results.weighted import WEIGHTINGS, IdentityRate
from matchbound.show.costs import name_text
from matchbound.show.histogram import histogram_edges, score_histogram
from matchbound.show.terms import Terms
from matchbound.stats.intervals import wilson

if TYPE_CHECKING:
    from matchbound.counting.executors import Executor, Progress
    from matchbound.report.search_numbers import SearchReport
    from matchbound.report.systems import SystemsSection
    from matchbound.report.systems_section import Against

DEFAULT_FAR = (1e-1, 1e-2, 1e-3)
FEW_ERRORS = 10
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
    data: Source | Searches,
    *,
    format: Format | None = None,
    terms: Terms = "plain",
    **options: Any,
) -> Report | SearchReport:
    """Write a report about a data set: one self-contained page, or tables for a paper.

    Parameters
    ----------
    path
        The file to write; it appears whole or not at all.
    data
        `Comparisons`, or `Embeddings` of which all pairs are compared. Or `Searches`, for a page about searches in a
        gallery: FNIR against FPIR, CMC, FPIR against the size of the gallery, and hubs; with `group` (a mapping from
        identity to group), `against` (the `Searches` of another system) and `claims`, these too.
    format
        ``"html"``, ``"markdown"`` or ``"latex"``; by default from the ending of the path, else HTML.
    terms
        ``"iso"`` writes FMR and FNMR.
    options
        What the report says and how the data are counted, all that `make_report` takes: ``far``, ``threshold``,
        ``level``, ``method``, ``title``, ``show_labels``, ``suspects``, ``group``, ``against``, ``name``, ``claims``,
        ``failures``, ``min_dcf``, ``cllr``, ``searches``, ``rng``, ``n_resamples``, ``provenance``, ``workers``,
        ``executor``, ``progress``, ``checkpoint``, ``checkpoint_every`` and ``weighting``. For `Searches`: ``fpir``,
        ``threshold``, ``ranks``, ``level``, ``title``, ``show_labels``, ``claims``, ``group``, ``against``
        and ``provenance``.

    Returns
    -------
    Report
        What it says; `SearchReport` for searches.

    See Also
    --------
    make_report

    Examples
    --------
    >>> import matchbound as mb
    >>> report = mb.write_report("report.html", mb.demo_data(n_identities=40), far=0.01)
    >>> [round(point.frr.estimate, 4) for point in report.points]
    [0.0017]
    """
    from matchbound.files.writing import write_atomically
    from matchbound.report import render

    chosen = format or SUFFIXES.get(Path(path).suffix.lower(), "html")
    if isinstance(data, Searches):
        from matchbound.report import search_page

        if options.get("far") is not None:
            raise UsageError("searches have FPIR, not FAR; name a threshold, or leave far out")
        if chosen == "latex":
            raise UsageError("a report about searches is HTML or Markdown")
        found = search_page.make_search_report(data, **options)
        write_atomically(path, search_page.to_html(found) if chosen == "html" else search_page.to_markdown(found))
        return found
    report = make_report(data, **options)
    write_atomically(path, render(report, chosen, terms))
    return report


def make_report(
    data: Source,
    *,
    far: Sequence[float] | float | None = None,
    threshold: Sequence[float] | float | None = None,
    level: float = 0.95,
    method: str = "auto",
    title: str | None = None,
    show_labels: bool = False,
    suspects: int = 0,
    group: Any = None,
    against: Against | None = None,
    name: str | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    rng: int = 0,
    n_resamples: int = 2000,
    provenance: Mapping[str, Any] | None = None,
    claims: Sequence[str] = (),
    failures: Failures | None = None,
    min_dcf: Sequence[float | str] = (),
    cllr: bool = False,
    searches: Searches | None = None,
    weighting: str = "comparisons",
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
        Of all intervals on the page.
    title
        By default "Matching accuracy report".
    show_labels
        Name the identities that drive the uncertainty; by default they have numbers only.
    suspects
        How many of the worst errors of either kind to list with the names of identities and instances, so that wrong
        labels are found; none by default.
    group
        For the section on groups, as in `by_group`; by default the group that the data carry, if any.
    against
        Other systems on the same comparisons, for a section that compares them: one, several in a sequence, or by name
        (``{"vendor B": data}``). They are compared at the report's FARs, at its thresholds, and at EER.
    name
        What to call the system that the report is about, beside others.
    workers, executor, progress, checkpoint, checkpoint_every
        How large sets of embeddings are counted: see `evaluate`. The curve, which takes longest, is what a checkpoint
        saves.
    rng, n_resamples
        For bootstraps.
    provenance
        What made the report; by default version, parameters and the digest of the data.
    claims
        Requirements to judge, such as ``"frr@far=1e-3 < 5%"``; one about a rate at a threshold is judged at each of
        the thresholds. The verdicts come first.
    failures
        Failures to enrol and to acquire, for claims about GFAR and GFRR.
    min_dcf
        Priors, or names of evaluations, at which the least detection cost is reported.
    cllr
        Whether minCllr is reported (and Cllr, where scores are not distances: they must be log-likelihood ratios).
    searches
        Searches in a gallery (`matchbound.search`), for a section about identification.
    weighting
        ``"comparisons"``, or ``"identities"``: every number, interval and picture of the page is that of rates in which
        every person counts once, as in `evaluate`; there are no costs then, and the curve must have every step.

    Returns
    -------
    Report
        What a page says, for `write_report` or a renderer of your own.

    See Also
    --------
    write_report

    Examples
    --------
    >>> import matchbound as mb
    >>> report = mb.make_report(mb.demo_data(n_identities=40), far=1e-2)
    >>> round(report.eer.estimate, 3)
    0.004
    """
    tail_of(level, "two-sided")
    data = in_memory(data)
    method = named(method, Rate.methods)
    weighting = named(weighting, WEIGHTINGS, "weighting")
    if weighting == "identities" and (len(min_dcf) or cllr):
        raise UsageError("costs and Cllr are of pooled comparisons: leave out min_dcf and cllr, or the weighting")
    asked = _numbers("threshold", threshold)
    said = [(text, parse_claim(text)) for text in claims]
    if any("rates" in METRICS[claim.metric].read for _, claim in said) and not asked:
        raise UsageError("a claim about a rate at a threshold needs a threshold")
    for text, statement in said:
        check_statement(statement, text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        systems = None if against is None else _systems(data, name, against)
        engine: dict[str, Any] = {"workers": workers, "executor": executor}
        series = list(evaluate(data, asked, weighting=weighting, progress=progress, **engine)) if asked else []
        saving: dict[str, Any] = {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every}
        curve = roc(data, weighting=weighting, progress=progress, **saving, **engine)
        parameters = {
            "far": None if far is None else _numbers("far", far),
            "threshold": asked or None,
            "level": level,
            "method": method,
            "distance": data.distance,
            "systems": None if systems is None else list(systems),
            "claims": list(claims) or None,
            "weighting": None if weighting == "comparisons" else weighting,
        }
        made = _Maker(data, curve, level, method, engine, rng, n_resamples, weighting)
        judged = judge_all(said, series, curve, level=level, failures=failures)
        verdicts = tuple(Verdict(claim, at) for claim, at in judged)
        costs = _costs(curve, min_dcf, cllr, level)
        report = made.report(
            _targets(far, curve),
            series,
            title or "Matching accuracy report",
            show_labels,
            suspects,
            group,
            systems,
            provenance or provenance_of(parameters, rng, [data] if systems is None else list(systems.values())),
        )
    notes = tuple(dict.fromkeys([*heard(caught), *report.warnings]))
    for note in notes:
        warnings.warn(note, MatchboundWarning, stacklevel=2)
    for item in caught:
        if not issubclass(item.category, MatchboundWarning):
            warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)
    return replace(
        report, warnings=notes, verdicts=verdicts, costs=costs, searches=_of_searches(searches, level, show_labels)
    )


def _of_searches(found: Searches | None, level: float, show_labels: bool) -> SearchReport | None:
    if found is None:
        return None
    from matchbound.report.search_page import make_search_report

    return make_search_report(found, level=level, show_labels=show_labels)


def _costs(curve: RocCurve, priors: Sequence[float | str], cllr: bool, level: float) -> tuple[ReportedCost, ...]:
    """Detection costs and Cllr with their default intervals."""
    numbers: list[CostStatistic] = [curve.min_dcf(prior) for prior in priors]
    numbers += [curve.cllr()] if cllr and not curve.distance else []
    numbers += [curve.min_cllr()] if cllr else []
    return tuple(
        ReportedCost(name_text(record), record["estimate"], record["low"], record["high"], record["method"])
        for record in records_of(numbers, "auto", level)
    )


class _Maker:
    """The steps from a curve to a report; they share the data and the settings."""

    def __init__(
        self,
        data: Source,
        curve: RocCurve,
        level: float,
        method: str,
        engine: Mapping[str, Any],
        rng: int,
        n_resamples: int,
        weighting: str,
    ) -> None:
        self.weighting = weighting
        self.data, self.curve, self.level, self.method = data, curve, level, method
        self.engine, self.rng, self.n_resamples = engine, rng, n_resamples

    def report(
        self,
        targets: Sequence[float],
        series: Sequence[ErrorRates],
        title: str,
        show_labels: bool,
        suspects: int,
        group: Any,
        systems: Mapping[str, Source] | None,
        provenance: Mapping[str, Any],
    ) -> Report:
        """All of it."""
        again = self.curve.recount.all_pairs and isinstance(self.curve.tally, SteppedCurve)
        edges = histogram_edges(self.curve.tally) if again else None
        # Once for all, so that points are numbered alike everywhere; the histogram is counted in the same pass.
        self.curve = curve = self.curve.refined(far=targets, eer=True, beside=edges)
        aims = [curve.at_far(target) for target in targets]
        at_aims = self._rates_at(np.unique(np.array([aim.index for aim in aims], dtype=np.int64)))
        aimed = [self._aimed_point(aim, at_aims[aim.index]) for aim in aims]
        points = [*(self._asked_point(rates) for rates in series), *aimed]
        claims = {aim.index: point.frr for aim, point in zip(aims, aimed, strict=True)}
        focus = 0 if series else _best_supported(points)
        eer = curve.eer()
        always = np.unique(np.array([0, len(curve) - 1, eer.index, *(aim.index for aim in aims)], dtype=np.int64))
        focus_rates = series[0] if series else at_aims[aims[focus].index]
        description = describe(self.data)
        recounted = curve.recount.tally if curve.recount.all_pairs else None
        return Report(
            title=title,
            level=self.level,
            description=description,
            points=tuple(points),
            focus=focus,
            eer=self._statistic(eer),
            eer_reading=reading_of(curve.tally, eer.index),
            auc=self._statistic(curve.auc()),
            panel=curve_panel(
                curve, self.level, always, series, points[focus].threshold, method=self.method, aims=claims
            ),
            picture=curve_picture(curve, self.level, any(point.frr.method == "latent" for point in aimed)),
            histogram=score_histogram(counted_curve(curve.tally), count=recounted),
            drivers=tuple(drivers_of(rate, show_labels) for rate in (focus_rates.far, focus_rates.frr)),
            groups=self._groups(points[focus], group),
            systems=None if systems is None else self._against(systems, targets, [rates.threshold for rates in series]),
            suspects=tuple(self._suspects(focus_rates, suspects)),
            warnings=tuple(dict.fromkeys([*description.findings, *focus_rates.warnings])),
            provenance=provenance,
            per_person=tuple(self._per_person(focus_rates)),
            weighting=self.weighting,
        )

    def _rates_at(self, points: IntArray) -> dict[int, ErrorRates]:
        """Error rates at points of the curve."""
        tally = tally_at(self.curve.tally, points)
        made = error_rates(tally, self.data.findings(), self.curve.recount, self.weighting)
        return dict(zip(points.tolist(), made, strict=True))

    def _asked_point(self, rates: ErrorRates) -> ReportedPoint:
        reading = reading_of_number(rates.threshold)
        return ReportedPoint(None, rates.threshold, reading, self._rate(rates.far), self._rate(rates.frr))

    def _aimed_point(self, aim: CurveStatistic, rates: ErrorRates) -> ReportedPoint:
        target = float(getattr(aim, "target"))  # noqa: B009
        reading = reading_of(self.curve.tally, aim.index)
        return ReportedPoint(target, aim.threshold, reading, self._rate(rates.far), self._statistic(aim))

    def _rate(self, rate: Rate) -> ReportedNumber:
        """A rate at a fixed threshold."""
        method = self.method if self.method in rate.methods else "auto"
        made = rate.interval(method, self.level, n_resamples=self.n_resamples, rng=self.rng)
        bound = rate.interval(method, self.level, side="upper", n_resamples=self.n_resamples, rng=self.rng)
        beside = rate.interval("wilson", self.level)
        return ReportedNumber(
            metric=rate.metric,
            estimate=rate.estimate,
            low=made.low,
            high=made.high,
            upper=bound.high,
            method=made.method,
            errors=rate.errors,
            comparisons=rate.comparisons,
            naive_ratio=_times_naive(made.width, rate.estimate, _independent(rate), self.level),
            wilson=(beside.low, beside.high),
        )

    def _statistic(self, statistic: CurveStatistic) -> ReportedNumber:
        """A number read from the curve."""
        method = self.method if self.method in statistic.methods else "auto"
        options: dict[str, Any] = {"n_resamples": self.n_resamples, "rng": self.rng}
        made = statistic.interval(method, self.level, **options)
        area = statistic.metric == "auc"
        upper = None if area else statistic.interval(method, self.level, side="upper", **options).high
        errors = comparisons = ratio = None
        if statistic.metric == "frr@far":
            counted = counted_curve(statistic.curve)
            errors = int(counted.false_nonmatches[statistic.index])
            comparisons = counted.n_genuine
            ratio = _times_naive(made.width, statistic.estimate, self._independent_genuine(counted), self.level)
        return ReportedNumber(
            statistic.metric, statistic.estimate, made.low, made.high, upper, made.method, errors, comparisons, ratio
        )

    def _independent_genuine(self, curve: CurveTally) -> float:
        """How many genuine comparisons there would be, were they independent and of equal weight."""
        each = curve.genuine_comparisons[curve.genuine_comparisons > 0]
        return each.size**2 / float((1.0 / each).sum()) if self.weighting == "identities" else float(each.sum())

    def _per_person(self, rates: ErrorRates) -> list[PerPerson]:
        """Both rates with every identity counted once; FAR only where the comparisons are in order already."""
        made = []
        focused = self.curve.recount.tally(np.array([rates.threshold]), pairs=True)
        by_person = error_rates(focused, (), self.curve.recount, "identities")[0]
        if self.weighting == "identities":
            rates = error_rates(focused, (), self.curve.recount)[0]
        for pooled, rate in ((rates.far, by_person.far), (rates.frr, by_person.frr)):
            part = pooled.tally.impostor if pooled.metric == "far" else pooled.tally.genuine
            counts = part.comparisons[part.comparisons > 0]
            known = pooled.metric == "frr" or isinstance(counted_curve(self.curve.tally), SortedCurve)
            if not pooled.comparisons or not known or np.all(counts == counts[0]):
                continue
            made.append(per_person(self._rate(pooled), self._rate(rate), part.errors[pooled.index], part.comparisons))
        return made

    def _suspects(self, rates: ErrorRates, most: int) -> list[Suspect]:
        """The worst errors of either kind, by name."""
        made: list[Suspect] = []
        for rate in (rates.far, rates.frr) if most else ():
            for r in rate.erring(most).to_records():
                sides = [
                    str(r[f"identity_{side}"]) + (f" / {r[f'instance_{side}']}" if f"instance_{side}" in r else "")
                    for side in "ab"
                ]
                made.append(Suspect(rate.metric, sides[0], sides[1], float(r["score"])))
        return made

    def _groups(self, point: ReportedPoint, group: Any) -> GroupSection | None:
        """Rates by group at a threshold, and the largest gaps; None without groups."""
        if group is None and self.data.group is None:
            return None
        from matchbound.report.group_section import group_section

        return group_section(self.data, point, group, self._rate, **self._settings)

    def _against(
        self, systems: Mapping[str, Source], targets: Sequence[float], thresholds: Sequence[float]
    ) -> SystemsSection:
        """Other systems on the same comparisons."""
        from matchbound.report.systems_section import systems_section

        return systems_section(systems, targets, thresholds, method=self.method, **self._settings)

    @property
    def _settings(self) -> dict[str, Any]:
        """What the sections on groups and systems need to know."""
        return {
            "level": self.level,
            "n_resamples": self.n_resamples,
            "rng": self.rng,
            **self.engine,
            "known": self.curve.warnings,
            "weighting": self.weighting,
        }


def _systems(data: Source, name: str | None, against: Against) -> dict[str, Source]:
    from matchbound.report.systems_section import named_systems

    return named_systems(data, name, against)


def _independent(rate: Rate) -> float:
    """How many independent comparisons of equal weight a rate is, where comparisons are taken for independent."""
    return rate.unit.units / rate.unit.alone if isinstance(rate, IdentityRate) else rate.comparisons


def _times_naive(width: float, estimate: float, comparisons: float, level: float) -> float | None:
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
