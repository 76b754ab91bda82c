"""``matchbound open``: the report in a browser, from a page on this machine."""

from __future__ import annotations

import re
import signal
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from matchbound.cli import messages
from matchbound.cli.claims import ClaimOption, needs_threshold, read_claims
from matchbound.cli.command import provenance
from matchbound.cli.options import Files, GroupColumns, Quiet, Seed, Threshold, at_least
from matchbound.cli.reading import READING, Reading
from matchbound.cli.report import Targets, Title, grouped, in_options
from matchbound.data.embeddings import SIMILARITIES
from matchbound.data.missing import MISSING
from matchbound.errors import MatchboundError, MatchboundWarning, UsageError, without_secrets
from matchbound.notes import heard
from matchbound.readers.read import READERS
from matchbound.show.claims import required
from matchbound.show.terms import worded

if TYPE_CHECKING:
    from matchbound.counting.executors import Progress
    from matchbound.report.local.work import Made, Make, Settings

Port = Annotated[int, Parameter(help="Port on 127.0.0.1; by default a free one.", validator=at_least(0, 65535))]
NoBrowser = Annotated[bool, Parameter(help="Print the address and open no browser.", negative="", show_default=False)]
CHOICES: dict[str, list[str]] = {"reader": list(READERS), "similarity": list(SIMILARITIES), "missing": list(MISSING)}
LABELS = {
    "--reader": "Format",
    "--missing": "Comparisons without a score:",
    "--similarity": "Similarity",
    "--distance": "“Scores are distances”",
    "--group COLUMN": "a column in “Columns with groups”",
    "--group": "Columns with groups",
    "--people FILE": "“Table of people”",
    "--people": "“Table of people”",
    "--far": "“FARs to report FRR at”",
    "--threshold": "“Thresholds”",
    "--option": "on the command line --option",
    "name the reader": "choose the Format",
}
"""Options of the command line, and what the page calls them."""


def open(
    *files: Files,
    threshold: Threshold = None,
    far: Targets = None,
    group: GroupColumns = None,
    claim: ClaimOption = None,
    title: Title = None,
    reading: Reading = READING,
    seed: Seed = 0,
    port: Port = 0,
    no_browser: NoBrowser = False,
    quiet: Quiet = False,
) -> int:
    """Show the report in a browser. The page also takes a dropped file, thresholds, requirements and groups.

    The page is served to this machine only, at an address with a secret word in it, and sends nothing anywhere. Ctrl-C
    ends it.

    Example: `matchbound open scores.csv --threshold 0.5`
    """
    import webbrowser

    from matchbound.data.example_files import audit_file
    from matchbound.report.local.server import LocalPage
    from matchbound.report.local.work import Settings, Work

    read_claims(claim, "rates", "curve")
    settings = Settings(
        threshold=tuple(threshold or ()),
        far=tuple(far or ()),
        group=tuple(group or ()),
        claim=tuple(claim or ()),
        title=title or "",
        reader=reading.reader or "",
        similarity=reading.similarity,
        missing=reading.missing,
        distance=reading.distance,
    )
    work = Work(maker(reading, seed), files, settings)
    for name in ("SIGHUP", "SIGQUIT"):  # what was dropped must not outlive the page; nohup ignores the first
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is signal.SIG_DFL:
            signal.signal(getattr(signal, name), signal.default_int_handler)
    with LocalPage(work, port, audit_file, CHOICES) as page, suppress(KeyboardInterrupt):
        sys.stdout.write(f"{page.address}\n")  # from here on, an interrupt is the way to end
        sys.stdout.flush()
        if not quiet:
            sys.stderr.write("The report is at the address above, on this machine only. Ctrl-C ends it.\n")
        if not no_browser:
            webbrowser.open(page.once)
        page.serve()
    return 0


def maker(reading: Reading, seed: int) -> Make:
    """What makes a report of the files and settings that the page holds."""

    def make(files: Mapping[str, Sequence[str]], settings: Settings, progress: Progress) -> Made:
        from matchbound.report import render
        from matchbound.report.local.work import Made

        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", MatchboundWarning)
                report = _report(files, settings, progress, reading, seed)
        except MatchboundError as error:
            raise type(error)(in_page_words(error)) from None
        terms: Any = "iso" if settings.iso else "plain"
        verdicts = [
            {
                "claim": required(claim) + ("" if at is None else f" at threshold {at:g}"),
                "verdict": claim.verdict,
                "reason": claim.reason,
            }
            for claim, at in report.verdicts
        ]
        verdicts = [{name: worded(text, terms) for name, text in item.items()} for item in verdicts]
        notes = [without_secrets(in_page_words(note)) for note in heard(caught)]
        return Made(render(in_options(report), "html", terms), verdicts, notes)

    return make


def _report(
    files: Mapping[str, Sequence[str]], settings: Settings, progress: Progress, reading: Reading, seed: int
) -> Any:
    from matchbound.report.make import make_report

    if needs_threshold(read_claims(settings.claim, "rates", "curve")) and not settings.threshold:
        raise UsageError("a requirement on rates at a threshold needs a threshold")
    chosen: dict[str, Any] = {
        "distance": settings.distance,
        "similarity": settings.similarity or "cosine",
        "reader": settings.reader or None,
        "missing": settings.missing or "error",
        "option": [*(reading.option or ()), *(f"columns.{pair}" for pair in settings.columns)] or None,
    }
    own = replace(reading, **chosen)
    paths = [*files["file"], *files.get("second", ())]
    people = next(iter(files.get("people", ())), None)
    data, attribute = grouped(paths, list(settings.group) or None, own, people)
    taken = {name: list(getattr(settings, name)) for name in ("far", "threshold", "group", "claim")}
    inputs = [*paths, *([] if people is None else [people])]
    return make_report(
        data,
        far=settings.far or None,
        threshold=settings.threshold or None,
        group=attribute,
        claims=settings.claim,
        title=settings.title or None,
        progress=progress,
        rng=seed,
        provenance=provenance(inputs, files=paths, people=people, **taken, seed=seed, **own.taken(data)),
    )


def in_page_words(text: object) -> str:
    """A message with the arguments of Python functions written as the fields of the page."""
    words = re.sub(r"--option columns\.(\w+)=(\S*)", r"Columns \1=\2", messages.in_options(text))
    return re.sub("|".join(map(re.escape, LABELS)), lambda found: LABELS[found[0]], words)
