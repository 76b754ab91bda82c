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
from matchbound.calls.evaluate import evaluate, roc
from matchbound.calls.provenance import provenance_of
from matchbound.counting.recount import Source
from matchbound.counts.curve import SortedCurve
from matchbound.data.failures import Failures
from matchbound.errors import MatchboundWarning, UsageError
from matchbound.metrics import METRICS
from matchbound.notes import heard
from matchbound.readers.read import in_memory
from matchbound.report.page import Contributor, Drivers, Point, Report, Stated
from matchbound.report.slider import counted_curve, make_slider, reading_of, reading_of_number
from matchbound.results.claims import judge_all, parse_claim
from matchbound.results.description import describe
from matchbound.results.error_rates import ErrorRates, error_rates
from matchbound.results.interval import named, tail_of
from matchbound.results.number import Number
from matchbound.results.rates import WEIGHTINGS, Rate
from matchbound.results.roc import RocCurve
from matchbound.results.searches import Searches
from matchbound.show.histogram import score_histogram
from matchbound.show.records import Record
from matchbound.show.section import Document, Section
from matchbound.show.terms import Terms
from matchbound.stats.variance import contributions

if TYPE_CHECKING:
    from matchbound.counting.run import Executor, Progress
    from matchbound.report.systems import Against

DEFAULT_FAR = (1e-1, 1e-2, 1e-3)
FEW_ERRORS = 10
TOP = 8
"""How many identities are listed among those that drive the uncertainty."""
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
) -> Report | Document:
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
        What it says; for searches, its sections.

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
        from matchbound.report.searches import search_document

        if options.get("far") is not None:
            raise UsageError("searches have FPIR, not FAR; name a threshold, or leave far out")
        document = search_document(data, **options)
        write_atomically(path, render(document, chosen, terms))
        return document
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
    if weighting == "identities" and failures is not None:
        raise UsageError("GFAR and GFRR are of pooled comparisons: leave out the failures, or the weighting")
    asked = _numbers("threshold", threshold)
    statements = [(text, parse_claim(text)) for text in claims]
    if any("rates" in METRICS[statement.metric].read for _, statement in statements) and not asked:
        raise UsageError("a claim about a rate at a threshold needs a threshold")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        systems = None if against is None else _named_systems(data, name, against)
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
        gather = _Gather(data, curve, level, method, engine, rng, n_resamples, weighting)
        report = gather.report(
            _targets(far, curve), series, title or "Matching accuracy report", show_labels, suspects, failures,
            provenance or provenance_of(parameters, rng, [data] if systems is None else list(systems.values())),
        )  # fmt: skip
        costs: list[Number] = [curve.min_dcf(prior) for prior in min_dcf]
        costs += [curve.cllr()] if cllr and not curve.distance else []
        costs += [curve.min_cllr()] if cllr else []
        report = replace(
            report,
            costs=tuple(gather.stated(cost) for cost in costs),
            verdicts=tuple(judge_all(statements, series, curve, level=level, failures=failures)),
            searches=_of_searches(searches, level, show_labels),
        )
        if group is not None or data.group is not None:
            report = gather.with_groups(report, group)
        if systems is not None:
            from matchbound.report.systems import compare_systems

            thresholds, settings = [rates.threshold for rates in series], gather.settings
            aims = [point.target for point in report.points if point.target is not None]
            report = replace(report, systems=compare_systems(systems, aims, thresholds, method=method, **settings))
    notes = tuple(dict.fromkeys([*heard(caught), *report.warnings]))
    for note in notes:
        warnings.warn(note, MatchboundWarning, stacklevel=2)
    for item in caught:
        if not issubclass(item.category, MatchboundWarning):
            warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)
    return replace(report, warnings=notes)


class _Gather:
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
        self.data, self.curve, self.level, self.method = data, curve, level, method
        self.engine, self.rng, self.n_resamples, self.weighting = engine, rng, n_resamples, weighting

    def report(
        self,
        targets: Sequence[float],
        series: Sequence[ErrorRates],
        title: str,
        show_labels: bool,
        suspects: int,
        failures: Failures | None,
        provenance: Mapping[str, Any],
    ) -> Report:
        """What is read from the curve and from the rates at thresholds."""
        # Once for all, so that points are numbered alike everywhere.
        self.curve = curve = self.curve.refined(far=targets, eer=True)
        aims = [curve.at_far(target) for target in targets]
        at_aims = self._rates_at(np.unique(np.array([aim.index for aim in aims], dtype=np.int64)))
        points = [self._point(rates, rates.frr, failures=failures) for rates in series]
        points += [
            self._point(at_aims[aim.index], aim, target, failures) for aim, target in zip(aims, targets, strict=True)
        ]
        focus = 0 if series else _best_supported(points)
        rates = series[0] if series else at_aims[aims[focus].index]
        eer = curve.eer()
        slider = make_slider(curve, self.level, self.method, points, focus, eer.index)
        latent = any(point.frr.method == "latent" for point in points if point.target is not None)
        description = describe(self.data)
        return Report(
            title=title,
            level=self.level,
            description=description,
            curve=curve,
            points=tuple(points),
            focus=focus,
            eer=self.stated(eer),
            auc=self.stated(curve.auc()),
            slider=slider,
            band=curve.band(self.level, method="latent" if latent else "influence"),
            histogram=score_histogram(
                counted_curve(curve.tally), count=curve.recount.tally if curve.recount.all_pairs else None
            ),
            drivers=tuple(_drivers(rate, show_labels) for rate in (rates.far, rates.frr)),
            per_person=tuple(self._per_person(rates)),
            suspects=tuple(r for rate in (rates.far, rates.frr) if suspects for r in _erring(rate, suspects)),
            warnings=tuple(dict.fromkeys([*description.findings, *rates.warnings])),
            provenance=provenance,
            weighting=self.weighting,
        )

    def with_groups(self, report: Report, group: Any) -> Report:
        """The report with rates by group at the threshold of its summary."""
        from matchbound.calls.groups import by_group
        from matchbound.show.differences import group_records

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)  # they are in `warnings` of the result
            at = report.points[report.focus].threshold
            rates = by_group(self.data, at, group=group, weighting=self.weighting, **self.engine)
            method = self.method if self.method in ("latent", "wilson", "wald") else "auto"
            records = group_records(rates, method, self.level, n_resamples=self.n_resamples, rng=self.rng)
        notes = tuple(
            note for note in rates.warnings if note not in self.curve.warnings and note.code != "one-instance"
        )
        return replace(report, groups=replace(rates, warnings=notes), group_records=tuple(records))

    @property
    def settings(self) -> dict[str, Any]:
        """What the comparison of systems needs to know."""
        drawing = {"n_resamples": self.n_resamples, "rng": self.rng}
        own = {"level": self.level, "known": self.curve.warnings, "weighting": self.weighting}
        return {**drawing, **self.engine, **own}

    def stated(self, number: Number, rate: Rate | None = None) -> Stated:
        """A number with the intervals of the page; a method that it does not have is answered by its default.

        Parameters
        ----------
        rate
            The rate at a fixed threshold that the number is about, if any: its counts are shown.
        """
        method = self.method if self.method in number.methods else "auto"
        options: dict[str, Any] = {"n_resamples": self.n_resamples, "rng": self.rng} if method != "auto" else {}
        interval = number.interval(method, self.level, **options)
        upper = None
        if number.metric != "auc":
            upper = number.interval(method, self.level, side="upper", **options).high
        if rate is None:
            return Stated(number, interval.low, interval.high, upper, interval.method)
        ratio = None
        if "naive-wilson" in rate.methods:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MatchboundWarning)  # it is not shown, only how much wider ours is
                naive = rate.interval("naive-wilson", self.level).width
            ratio = interval.width / naive if naive > 0.0 else None
        return Stated(number, interval.low, interval.high, upper, interval.method, rate.errors, rate.comparisons, ratio)

    def _point(
        self, rates: ErrorRates, frr: Number, target: float | None = None, failures: Failures | None = None
    ) -> Point:
        reading = reading_of_number(rates.threshold)
        if target is not None:
            reading = reading_of(self.curve.tally, getattr(frr, "index"))  # noqa: B009
        both = self.stated(rates.far, rates.far), self.stated(frr, rates.frr)
        point = Point(target, rates.threshold, reading, *both)
        if failures is None:
            return point
        general = rates.generalised(failures)
        return replace(point, gfar=self.stated(general.gfar), gfrr=self.stated(general.gfrr))

    def _rates_at(self, points: IntArray) -> dict[int, ErrorRates]:
        """Error rates at points of the curve."""
        tally = counted_curve(self.curve.tally).tally_at(points)
        rates = error_rates(tally, self.data.findings(), self.curve.recount, self.weighting)
        return dict(zip(points.tolist(), rates, strict=True))

    def _per_person(self, rates: ErrorRates) -> list[tuple[Stated, Stated]]:
        """Both rates with every identity counted once; FAR only where the comparisons are in order already."""
        focused = self.curve.recount.tally(np.array([rates.threshold]), pairs=True)
        by_person = error_rates(focused, (), self.curve.recount, "identities")[0]
        if self.weighting == "identities":
            rates = error_rates(focused, (), self.curve.recount)[0]
        pairs = []
        for pooled, rate in ((rates.far, by_person.far), (rates.frr, by_person.frr)):
            part = pooled.tally.impostor if pooled.metric == "far" else pooled.tally.genuine
            counts = part.comparisons[part.comparisons > 0]
            known = pooled.metric == "frr" or isinstance(counted_curve(self.curve.tally), SortedCurve)
            if pooled.comparisons and known and np.any(counts != counts[0]):
                pairs.append((self.stated(pooled, pooled), self.stated(rate, rate)))
        return pairs


def _drivers(rate: Rate, show_labels: bool) -> Drivers:
    """Which identities make the variance of a rate."""
    part = rate.tally.impostor if rate.metric == "far" else rate.tally.genuine
    errors, comparisons = part.errors[rate.index], part.comparisons
    units: Any = errors, comparisons
    if rate.weighting == "identities":
        unit = rate.unit
        units = unit.excess + unit.estimate * unit.partners, unit.partners  # shares of errors, and units
    found = contributions(*units, shared=rate.metric == "far")
    top = found.largest(TOP)
    listed = tuple(
        Contributor(
            label=str(rate.tally.identities[i]) if show_labels else None,
            share=float(found.share[i]),
            more=bool(found.excess[i] > 0.0),
            errors=int(errors[i]),
            comparisons=int(comparisons[i]),
            rate_without=float(found.rate_without[i]),
        )
        for i in top
    )
    return Drivers(rate, listed, float(found.share[top].sum()), found.how_many_make(0.5))


def _erring(rate: Rate, most: int) -> list[Record]:
    """The worst errors of a kind, by name."""
    return [{"metric": rate.metric, **record} for record in rate.erring(most).to_records()]


def _of_searches(found: Searches | None, level: float, show_labels: bool) -> tuple[Section, ...]:
    """Sections about searches in a gallery."""
    if found is None:
        return ()
    from matchbound.report.searches import search_sections

    return search_sections(found, level=level, show_labels=show_labels)


def _named_systems(data: Source, name: str | None, against: Against) -> dict[str, Source]:
    from matchbound.report.systems import named_systems

    return named_systems(data, name, against)


def _best_supported(points: Sequence[Point]) -> int:
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
