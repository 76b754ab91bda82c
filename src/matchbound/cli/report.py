"""``matchbound report``: one page, or tables for a paper, about a data set."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from matchbound.cli import options as opt
from matchbound.cli.claims import ClaimOption, check_failures, read_claims
from matchbound.cli.command import NOT_SHOWN, in_notes, provenance, write_out
from matchbound.cli.evaluate import Method
from matchbound.cli.progress import quiet as is_quiet
from matchbound.cli.progress import wrote
from matchbound.cli.reading import READING, Reading
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import UsageError
from matchbound.files.origin import own_names
from matchbound.show.claims import claim_lines
from matchbound.show.terms import worded

if TYPE_CHECKING:
    from matchbound.report.page import Report

Targets = Annotated[
    list[float] | None, opt.several("FAR at which FRR is reported; repeat it for several.", alias="--fmr")
]
ReportFormat = Annotated[
    Literal["html", "markdown", "latex"] | None,
    Parameter(name="--format", help="By default from the ending of the output, else html.", group=opt.OUTPUT),
]
Title = Annotated[str | None, Parameter(help="Title of the report.")]
Against = Annotated[
    list[str] | None, opt.several("Scores or embeddings of another system on the same comparisons; repeatable.")
]
Suspects = Annotated[
    int, Parameter(help="List this many of the worst errors by name, to check.", validator=opt.at_least(0, 1000))
]
Gallery = Annotated[str | None, Parameter(help="Embeddings of enrolled people, for a section about searches.")]
Probes = Annotated[str | None, Parameter(help="Embeddings to search the --gallery with.")]
ShowLabels = Annotated[bool, opt.flag("Name the identities that drive the uncertainty.")]


def report(
    *files: opt.Files,
    far: Targets = None,
    threshold: opt.Threshold = None,
    claim: ClaimOption = None,
    method: Method = "auto",
    level: opt.Level = 0.95,
    weighting: opt.Weighting = "comparisons",
    group: opt.GroupColumns = None,
    people: opt.People = None,
    against: Against = None,
    gallery: Gallery = None,
    probes: Probes = None,
    failures: opt.FailureOptions = opt.NO_FAILURES,
    min_dcf: opt.MinDcf = None,
    cllr: opt.Cllr = False,
    suspects: Suspects = 0,
    show_labels: ShowLabels = False,
    title: Title = None,
    resamples: opt.Resamples = 2000,
    seed: opt.Seed = 0,
    reading: Reading = READING,
    running: opt.Running = opt.RUNNING,
    format: ReportFormat = None,
    output: opt.Output = None,
    terms: opt.TermsOption = "plain",
    laboratory: opt.Laboratory = opt.LABORATORY,
    quiet: opt.Quiet = False,
) -> int:
    """Write a report: a self-contained page with curves, tables and a threshold slider, or tables for a paper.

    Example: `matchbound report scores.csv --claim "frr@far=1e-3<5%" --output report.html`
    """
    from matchbound.calls.searching import search
    from matchbound.report import render
    from matchbound.report.make import SUFFIXES, make_report

    claims = read_claims(claim, "rates", "curve")
    opt.check_rates("--far", far)
    priors = opt.read_priors("--min-dcf", min_dcf)
    form = format or SUFFIXES.get(Path(output or "").suffix.lower(), "html")
    if (gallery is None) != (probes is None):
        raise UsageError("searches need both: give --gallery and --probes")
    if output is None and form == "html" and sys.stdout.isatty():
        raise UsageError("the report is a page for a browser: give --output report.html, or matchbound open")
    failed = failures.load()
    check_failures(claims, failed)
    data, attribute = grouped(files, group, reading, people)
    others = [reading.load_or_scan([path]) for path in against or ()]
    names = own_names([files[-1], *(against or ())])
    found = None
    if gallery is not None and probes is not None:
        pair = [reading.load_embeddings(*each) for each in (("gallery", [gallery]), ("probes", [probes]))]
        found = search(pair[0], pair[1], workers=running.workers)
    inputs = [*files, *(against or ()), *(path for path in (people, gallery, probes) if path is not None)]
    with running.started() as how:
        made = make_report(
            data, far=far or None, threshold=threshold or None, level=level, method=method, title=title,
            show_labels=show_labels, group=attribute, suspects=suspects, name=names[0],
            against=dict(zip(names[1:], others, strict=True)) if others else None,
            rng=seed, n_resamples=resamples, provenance=provenance(inputs, **reading.taken(data)), claims=claim or (),
            failures=failed, min_dcf=priors, cllr=cllr, searches=found, weighting=weighting, **how,
        )  # fmt: skip
    write_out(render(in_options(made), form, terms), output)
    if output is not None:
        wrote(output)
    judged = list(made.verdicts)
    if not is_quiet() and judged:
        sys.stderr.write(worded(claim_lines(judged), terms))
    return 0 if all(claim.shown for claim, _ in judged) else NOT_SHOWN


def in_options(made: Report) -> Report:
    """The report with advice in the words of the command line."""
    return made.reworded(in_notes)


def grouped(
    files: Sequence[str], columns: list[str] | None, reading: Reading, people: str | None = None
) -> tuple[Comparisons | Embeddings, Any]:
    """The data in memory, and the group of each identity where several columns make it."""
    from matchbound.readers.read import in_memory

    if not columns and people is None:
        return reading.load(files), None
    data, attribute = reading.load_with_groups(files, columns, people)
    return in_memory(data), attribute
