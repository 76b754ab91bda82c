"""Reports: gather everything that a page says about a data set, and write it."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from matchbound._version import __version__
from matchbound.calls.evaluate import evaluate, roc
from matchbound.counting.recount import Source
from matchbound.data.failures import Failures
from matchbound.data.labels import label_bytes
from matchbound.errors import MatchboundWarning, UsageError, argument, named
from matchbound.metrics import METRICS
from matchbound.notes import heard
from matchbound.readers.read import in_memory
from matchbound.report.page import (
    FEW_ERRORS,
    Point,
    Report,
    Settings,
    Stated,
    best_supported,
    make_slider,
    number_list,
    reading_of,
)
from matchbound.report.searches import search_document, search_sections
from matchbound.report.systems import Against, compare_systems, named_systems
from matchbound.results.claims import judge_all, parse_claim
from matchbound.results.description import describe
from matchbound.results.number import Number, tail_of
from matchbound.results.rates import WEIGHTINGS, ErrorRates, Rate, error_rates
from matchbound.results.roc import RocCurve
from matchbound.results.searches import Searches
from matchbound.show.figures import score_histogram
from matchbound.show.section import Document
from matchbound.show.terms import Terms
from matchbound.stats.variance import contributions

if TYPE_CHECKING:
    from matchbound.counting.run import Executor, Progress
    from matchbound.results.groups import GroupRates
    from matchbound.show.records import Record

DEFAULT_FAR = (1e-1, 1e-2, 1e-3)
# Data in memory beyond this size get no digest.
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
        All that `make_report` takes. For `Searches`: ``fpir``, ``threshold``, ``ranks``, ``level``, ``title``,
        ``show_labels``, ``claims``, ``group``, ``against`` and ``provenance``.

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

    if not isinstance(path, (str, os.PathLike)):
        raise UsageError(f"write_report takes the file to write first, then the data; got {type(path).__name__} first")
    chosen = format or format_of(path)
    if isinstance(data, Searches):
        if options.get("far") is not None:
            raise UsageError("searches have FPIR, not FAR; name a threshold, or leave far out")
        document = search_document(data, **options)
        write_atomically(path, render(document, chosen, terms))
        return document
    report = make_report(data, **options)
    write_atomically(path, render(report, chosen, terms))
    return report


def format_of(path: str | os.PathLike[str]) -> Format:
    """The format that the ending of a file means."""
    ending = Path(path).suffix.lower()
    if ending not in ("", *SUFFIXES):
        raise UsageError(f"a report is written as {', '.join(SUFFIXES)}; got {ending} (print the page for a PDF)")
    return SUFFIXES.get(ending, "html")


def make_report(
    data: Source,
    *,
    far: Sequence[float] | float | None = None,
    threshold: Sequence[float] | float | None = None,
    level: float = 0.95,
    method: str = "auto",
    title: str | None = None,
    show_labels: bool = False,
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
    group
        For the section on groups, as in `by_group`; by default the group that the data carry, if any.
    against
        Other systems on the same comparisons, for a section that compares them: one, several in a sequence, or by name
        (``{"vendor B": data}``). They are compared at the report's FARs, at its thresholds, and at EER.
    name
        What to call the system that the report is about, beside others.
    workers, executor, progress, checkpoint, checkpoint_every
        As for `evaluate`; a checkpoint saves the curve, which takes longest.
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
    method, weighting = named(method, Rate.methods), named(weighting, WEIGHTINGS, "weighting")
    if failures is not None and not isinstance(failures, Failures):
        raise UsageError(f"failures must be Failures, as Failures.from_counts makes them; got {failures!r:.60}")
    if weighting == "identities" and failures is not None:
        raise UsageError("GFAR and GFRR are of pooled comparisons: leave out the failures, or the weighting")
    asked, grouped = number_list("threshold", threshold), group is not None or data.group is not None
    claims = [claims] if isinstance(claims, str) else claims
    statements = [(text, parse_claim(text)) for text in claims]
    of_groups = [item for item in statements if "groups" in METRICS[item[1].metric].read]
    if any("rates" in METRICS[statement.metric].read for _, statement in statements) and not asked:
        raise UsageError("a claim about a rate at a threshold needs a threshold")
    if of_groups and not grouped:
        raise UsageError(f"claim {of_groups[0][0]!r} is about groups; give {argument('group')}")
    engine: dict[str, Any] = {"workers": workers, "executor": executor}
    saving: dict[str, Any] = {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every}
    settings = Settings(level, method, weighting, {"n_resamples": n_resamples, "rng": rng}, engine)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        systems = {} if against is None else named_systems(data, name, against)
        series = list(evaluate(data, asked, weighting=weighting, progress=progress, **engine)) if asked else []
        curve = roc(data, weighting=weighting, progress=progress, **saving, **engine)
        targets = _targets(far, curve)
        curve = curve.refined(far=targets, eer=True)  # once for all, so that points are numbered alike everywhere
        points, rates, focus = _points(curve, targets, series, settings, failures)
        costs: list[Number] = [curve.min_dcf(prior) for prior in min_dcf]
        costs += [curve.cllr()] if cllr and not curve.distance else []
        costs += [curve.min_cllr()] if cllr else []
        eer = curve.eer()
        latent = any(point.frr.method == "latent" for point in points if point.target is not None)
        own = None if method == "auto" else method
        general = [item[1] for item in statements if item not in of_groups]
        verdicts = judge_all(general, series, curve, level=level, method=own, failures=failures, **settings.drawing)
        groups, group_records = (
            _groups(data, group, points[focus].threshold, settings, curve) if grouped else (None, ())
        )
        if groups is not None:
            verdicts += [(groups.claim(text, level=level), groups.threshold) for text, _ in of_groups]
        if provenance is None:
            digests = [data_digest(source) for source in systems.values() or [data]]
            parameters = {
                "far": None if far is None else number_list("far", far),
                "threshold": asked or None,
                "level": level,
                "method": method,
                "distance": data.distance,
                "systems": list(systems) or None,
                "claims": list(claims) or None,
                "weighting": None if weighting == "comparisons" else weighting,
            }
            provenance = {"version": __version__, "seed": rng, "input": digests if systems else digests[0]}
            provenance |= {"parameters": {key: value for key, value in parameters.items() if value is not None}}
        of_people = (rates.far, rates.frr) if not data.without_identities else ()
        report = Report(
            title=title or "Matching accuracy report",
            level=level,
            description=describe(data),
            curve=curve,
            points=tuple(points),
            focus=focus,
            eer=settings.stated(eer, reading=reading_of(curve.tally, eer.index)),
            auc=settings.stated(curve.auc()),
            slider=make_slider(curve, level, method, points, focus, eer.index),
            band=curve.band(level, method="latent" if latent else "influence"),
            histogram=score_histogram(curve.tally.counted, curve.recount.tally),
            drivers=tuple((rate, contributions(rate.unit)) for rate in of_people),
            provenance=provenance,
            show_labels=show_labels,
            costs=tuple(settings.stated(cost, reading=_cost_reading(cost)) for cost in costs),
            verdicts=tuple(verdicts),
            groups=groups,
            group_records=group_records,
            systems=compare_systems(systems, targets, asked, settings, curve.warnings) if systems else None,
            searches=search_sections(searches, level=level, show_labels=show_labels) if searches else (),
            weighting=weighting,
        )
    notes = tuple(dict.fromkeys([*heard(caught), *report.description.findings, *rates.warnings]))
    for note in notes:
        warnings.warn(note, MatchboundWarning, stacklevel=2)
    for item in caught:
        if not issubclass(item.category, MatchboundWarning):
            warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)
    return replace(report, warnings=notes)


def _points(
    curve: RocCurve,
    targets: Sequence[float],
    series: Sequence[ErrorRates],
    settings: Settings,
    failures: Failures | None,
) -> tuple[list[Point], ErrorRates, int]:
    """Points at thresholds and at target FARs; the rates of the one that the summary speaks of, and its place."""
    aims = curve.at_far(targets)
    tally = curve.tally.counted.tally_at(np.array([aim.index for aim in aims], dtype=np.int64))
    at_aims = error_rates(tally, curve.recount.source.findings(), curve.recount, settings.weighting)
    places: list[tuple[ErrorRates, Number, float | None, str]] = [
        *((rates, rates.frr, None, repr(rates.threshold).removesuffix(".0")) for rates in series),
        *(
            (rates, aim, target, reading_of(curve.tally, aim.index))
            for rates, aim, target in zip(at_aims, aims, targets, strict=True)
        ),
    ]
    points = []
    for rates, frr, target, reading in places:
        both = settings.stated(rates.far, rates.far), settings.stated(frr, rates.frr)
        general = rates.generalised(failures) if failures is not None else None
        failed: tuple[Stated, ...] = ()
        if general is not None:
            gfrr = replace(general.gfrr, point=None if target is None else frr)
            failed = settings.stated(general.gfar), settings.stated(gfrr)
        points.append(Point(target, rates.threshold, reading, *both, *failed))
    errors = [(point.far.errors or 0, point.frr.errors or 0) for point in points]
    if all(min(both) < FEW_ERRORS for both in errors):
        errors = [(accepts, accepts) for accepts, _ in errors]  # an FRR of few errors has its bound
    fewest = [(point.far.estimate, min(both)) for point, both in zip(points, errors, strict=True)]
    focus = 0 if series else best_supported(fewest)
    return points, places[focus][0], focus


def _groups(
    data: Source, group: Any, threshold: float, settings: Settings, curve: RocCurve
) -> tuple[GroupRates, tuple[Record, ...]]:
    """Rates by group at the threshold of the summary, and their records."""
    from matchbound.calls.groups import by_group
    from matchbound.show.differences import group_records

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchboundWarning)  # they are in `warnings` of the result
        rates = by_group(data, threshold, group=group, weighting=settings.weighting, **settings.engine)
        method = settings.method if settings.method in ("latent", "wilson", "wald") else "auto"
        records = group_records(rates, method, settings.level, **settings.drawing)
    notes = [note for note in rates.warnings if note not in curve.warnings and note.code != "one-instance"]
    return replace(rates, warnings=tuple(notes)), tuple(records)


def _cost_reading(cost: Number) -> str:
    """A short decimal for the threshold at which a detection cost is least."""
    return f"{cost.record(None)['threshold']:.6g}" if cost.metric == "mindcf" else "–"


def _targets(far: Sequence[float] | float | None, curve: RocCurve) -> list[float]:
    if far is None:
        supported = [f for f in DEFAULT_FAR if f * curve.tally.n_impostor >= FEW_ERRORS]
        return supported or [DEFAULT_FAR[0]]
    given = number_list("far", far)
    if not given:
        raise UsageError("far holds no rates; leave it out for the usual ones")
    return sorted(set(given), reverse=True)


def data_digest(data: Source) -> str | None:
    """``"sha256:…"`` of identities and scores or vectors, as they were counted; None above a gigabyte."""
    numbers = data.arrays
    if sum(array.nbytes for array in numbers) > HASHED_BYTES:
        return None
    total = hashlib.sha256()
    total.update(label_bytes(data.identities).tobytes())
    for array in numbers:
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return f"sha256:{total.hexdigest()}"
