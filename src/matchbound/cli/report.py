"""``matchbound report``: one page, or tables for a paper, about a data set."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from matchbound.cli import common
from matchbound.cli.claims import ClaimOption, check_failures, exit_code, read_claims
from matchbound.cli.costs import CllrOption, MinDcf, read_priors
from matchbound.cli.failures import NO_FAILURES, FailureOptions
from matchbound.cli.groups import People
from matchbound.cli.laboratory import LABORATORY, Laboratory
from matchbound.cli.options import (
    OUTPUT,
    READING,
    RUNNING,
    Files,
    Level,
    Method,
    Output,
    Quiet,
    Reading,
    Resamples,
    Running,
    Seed,
    TermsOption,
    Threshold,
    Weighting,
    at_least,
    check_rates,
    write_out,
    wrote,
)
from matchbound.cli.spoken import spoken
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import UsageError
from matchbound.files.names import own_names
from matchbound.results.interval import named
from matchbound.results.rates import Rate
from matchbound.show.claims import claim_lines
from matchbound.show.terms import worded

if TYPE_CHECKING:
    from matchbound.report.page import Report

Targets = Annotated[
    list[float] | None,
    Parameter(help="FAR at which FRR is reported; repeat it for several.", negative_iterable=""),
]
ReportFormat = Annotated[
    Literal["html", "markdown", "latex"] | None,
    Parameter(name="--format", help="By default from the ending of the output, else html.", group=OUTPUT),
]
Title = Annotated[str | None, Parameter(help="Title of the report.")]
AgainstFiles = Annotated[
    list[str] | None,
    Parameter(
        help="Scores or embeddings of another system on the same comparisons, to compare; repeat it for several.",
        negative_iterable="",
    ),
]
Group = Annotated[
    list[str] | None,
    Parameter(help="Column with the group of each person; repeat it for intersections.", negative_iterable=""),
]
Suspects = Annotated[
    int,
    Parameter(help="List this many of the worst errors by name, to check their labels.", validator=at_least(0, 1000)),
]
GalleryOption = Annotated[
    str | None, Parameter(help="Embeddings of enrolled people, for a section about searches; with --probes.")
]
ProbesOption = Annotated[str | None, Parameter(help="Embeddings to search the --gallery with.")]
ShowLabels = Annotated[
    bool,
    Parameter(
        help="Name the identities that drive the uncertainty.",
        negative="",
        show_default=False,
    ),
]


def report(
    *files: Files,
    far: Targets = None,
    threshold: Threshold = None,
    method: Method = "auto",
    level: Level = 0.95,
    weighting: Weighting = "comparisons",
    resamples: Resamples = 2000,
    seed: Seed = 0,
    title: Title = None,
    show_labels: ShowLabels = False,
    group: Group = None,
    people: People = None,
    suspects: Suspects = 0,
    against: AgainstFiles = None,
    gallery: GalleryOption = None,
    probes: ProbesOption = None,
    reading: Reading = READING,
    running: Running = RUNNING,
    format: ReportFormat = None,
    output: Output = None,
    claim: ClaimOption = None,
    failures: FailureOptions = NO_FAILURES,
    min_dcf: MinDcf = None,
    cllr: CllrOption = False,
    terms: TermsOption = "plain",
    laboratory: Laboratory = LABORATORY,
    quiet: Quiet = False,
) -> int:
    """Write a report: a self-contained page with curves, tables and a threshold slider, or tables for a paper.

    Example: `matchbound report scores.csv --claim "frr@far=1e-3<5%" --output report.html`
    """
    from matchbound.report import render
    from matchbound.report.make import SUFFIXES, make_report

    claims = read_claims(claim)
    failures.check()
    check_rates("--far", far)
    priors = read_priors("--min-dcf", min_dcf)
    method = named(method, Rate.methods, "--method")
    chosen = format or SUFFIXES.get(Path(output or "").suffix.lower(), "html")
    if weighting == "identities" and (priors or cllr):
        raise UsageError("costs and Cllr are of pooled comparisons: leave out --min-dcf and --cllr, or --weighting")
    if (gallery is None) != (probes is None):
        raise UsageError("searches need both: give --gallery and --probes")
    if output is None and chosen == "html" and sys.stdout.isatty():
        raise UsageError("the report is a page for a browser: give --output report.html, or matchbound open")
    with common.listening(quiet):
        failed = failures.load()
        check_failures(claims, failed)
        data, attribute = grouped(files, group, reading, people)
        others = [reading.load_or_scan([path]) for path in against or ()]
        names = common.system_names([files[-1], *(against or ())])
        source = common.provenance(
            [*files, *(against or ()), *(path for path in (people, gallery, probes) if path is not None)],
            seed,
            {
                "verb": "report",
                "files": own_names(files),
                "far": far or None,
                "threshold": threshold or None,
                "method": method,
                "level": level,
                "resamples": resamples,
                **reading.parameters(data, data.distance),
                "group": group or None,
                "people": people,
                "gallery": gallery,
                "probes": probes,
                "against": names[1:] or None,
                "claim": claim or None,
                "fta": failures.fta,
                "fte": failures.fte,
                "failures": failures.failures,
                "min_dcf": min_dcf or None,
                "weighting": None if weighting == "comparisons" else weighting,
            },
            laboratory,
        )
        with running.started(quiet) as how:
            found = None
            if gallery is not None and probes is not None:
                from matchbound.calls.searching import search
                from matchbound.cli.identify import load_embeddings

                enrolled, searched = (
                    load_embeddings(reading, name, [path]) for name, path in (("gallery", gallery), ("probes", probes))
                )
                found = search(enrolled, searched, workers=running.workers)
            made = make_report(
                data,
                far=far or None,
                threshold=threshold or None,
                level=level,
                method=method,
                title=title,
                show_labels=show_labels,
                group=attribute,
                suspects=suspects,
                against=dict(zip(names[1:], others, strict=True)) if others else None,
                name=names[0],
                rng=seed,
                n_resamples=resamples,
                provenance=source,
                claims=claim or (),
                failures=failed,
                min_dcf=priors,
                cllr=cllr,
                searches=found,
                weighting=weighting,
                **how,
            )
            made = in_options(made)
        content = render(made, chosen, terms)
    write_out(content, output)
    if output is not None:
        wrote(output, quiet)
    judged = [(verdict.claim, verdict.threshold) for verdict in made.verdicts]
    if not quiet and judged:
        sys.stderr.write(worded(claim_lines(judged), terms))
    return exit_code(judged)


def in_options(made: Report) -> Report:
    """The report with advice in the words of the command line."""
    groups = made.groups and replace(made.groups, notes=spoken(made.groups.notes))
    return replace(made, warnings=spoken(made.warnings), groups=groups)


def grouped(
    files: Sequence[str], columns: list[str] | None, reading: Reading, people: str | None = None
) -> tuple[Comparisons | Embeddings, Any]:
    """The data in memory, and the group of each identity where several columns make it."""
    from matchbound.cli.groups import load_with_groups
    from matchbound.readers.loading import in_memory

    if not columns and people is None:
        return reading.load(files), None
    data, attribute = load_with_groups(files, columns, reading, people)
    return in_memory(data), attribute
