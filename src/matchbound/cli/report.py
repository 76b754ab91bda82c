"""``matchbound report``: one page, or tables for a paper, about a data set."""

from __future__ import annotations

import sys
from dataclasses import replace

from matchbound.cli import options as opt
from matchbound.cli.command import Outcome, in_options, provenance, read_claims, with_plans
from matchbound.cli.evaluate import Method
from matchbound.errors import UsageError
from matchbound.files.opening import own_names
from matchbound.notes import Note


def report(
    *files: opt.Files,
    far: opt.Fars = None,
    threshold: opt.Thresholds = None,
    claim: opt.ClaimTexts = None,
    method: Method = "auto",
    interval: opt.Interval = opt.INTERVAL,
    group: opt.Groups = None,
    people: opt.People = None,
    against: list[str] | None = None,
    gallery: str | None = None,
    probes: str | None = None,
    failures: opt.FailureOptions = opt.NO_FAILURES,
    min_dcf: opt.MinDcf = None,
    cllr: opt.Cllr = False,
    show_labels: bool = False,
    title: opt.Title = None,
    reading: opt.Reading = opt.READING,
    running: opt.Running = opt.RUNNING,
    page: opt.Page = opt.PAGE,
    laboratory: opt.Laboratory = opt.NO_ENTRIES,
) -> Outcome:
    """Write a report: a self-contained page with curves, tables and a threshold slider, or tables for a paper.

    Args:
        against: Scores or embeddings of another system on the same comparisons; repeatable.
        gallery: Embeddings of enrolled people, for a section about searches.
        probes: Embeddings to search the --gallery with.
        show_labels: Name the identities that drive the uncertainty.
    """
    from matchbound.calls.searching import search
    from matchbound.readers.read import in_memory
    from matchbound.report import render
    from matchbound.report.make import format_of, make_report

    failed = failures.load()
    read_claims(claim, "rates", "curve", "groups", failures=failed)
    form = page.format or format_of(page.output or "")
    if (gallery is None) != (probes is None):
        raise UsageError("searches need both: give --gallery and --probes")
    if page.output is None and form == "html" and sys.stdout.isatty():
        raise UsageError("the report is a page for a browser: give --output report.html, or matchbound open")
    data, attribute = reading.load_with_groups(files, group, people)
    names = own_names([files[-1], *(against or ())])
    trials = files[:1] if reading.reader in opt.WITH_TRIALS and len(files) > 1 else ()
    systems = zip(names[1:], against or (), strict=True)
    others = {name: reading.load_or_scan([*trials, path]) for name, path in systems}
    searches = None
    if gallery is not None and probes is not None:
        enrolled = reading.load_embeddings("gallery", [gallery])
        searches = search(enrolled, reading.load_embeddings("probes", [probes]), workers=running.workers)
    data = in_memory(data)
    if (group or people) and attribute is None and data.group is None:
        raise UsageError("the data name nobody, so that there are no groups: leave out --group")
    with running.started() as how:
        made = make_report(
            data,
            far=far or None,
            threshold=threshold or None,
            level=interval.level,
            method=method,
            title=title,
            show_labels=show_labels,
            group=attribute,
            name=names[0],
            against=others or None,
            provenance=provenance(),
            claims=claim or (),
            failures=failed,
            min_dcf=min_dcf or (),
            cllr=cllr,
            searches=searches,
            weighting=interval.weighting,
            **interval.drawing,
            **how,
        )
    made = replace(made, verdicts=tuple(with_plans(list(made.verdicts), data)))
    typed = made.reworded(lambda notes: tuple(Note(note.code, in_options(note)) for note in notes))
    return Outcome(document=render(typed, form, page.terms), claims=made.verdicts)
