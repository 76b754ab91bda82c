"""``matchbound open``: the report in a browser, from a page on this machine."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from matchbound.cli.claims import ClaimOption, needs_threshold, read_claims
from matchbound.cli.command import provenance
from matchbound.cli.options import Files, GroupColumns, Quiet, Seed, Threshold, at_least
from matchbound.cli.reading import READING, Reading
from matchbound.cli.report import Targets, Title, grouped, in_options
from matchbound.errors import MatchboundWarning, UsageError, without_secrets
from matchbound.notes import heard
from matchbound.show.claims import required

if TYPE_CHECKING:
    from matchbound.counting.executors import Progress
    from matchbound.report.local.work import Made, Make, Settings

Port = Annotated[int, Parameter(help="Port on 127.0.0.1; by default a free one.", validator=at_least(0, 65535))]
NoBrowser = Annotated[
    bool,
    Parameter(
        help="Print the address and open no browser.",
        negative="",
        show_default=False,
    ),
]


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

    from matchbound.report.local.server import LocalPage
    from matchbound.report.local.work import Settings, Work

    read_claims(claim, "rates", "curve")
    settings = Settings(
        tuple(threshold or ()),
        tuple(far or ()),
        tuple(group or ()),
        tuple(claim or ()),
        reading.distance,
        title,
    )
    with LocalPage(Work(maker(reading, seed), files, settings), port) as page, suppress(KeyboardInterrupt):
        sys.stdout.write(f"{page.address}\n")  # from here on, being told to stop is the way to end
        sys.stdout.flush()
        if not quiet:
            sys.stderr.write("The report is at the address above, on this machine only. Ctrl-C ends it.\n")
        if not no_browser:
            webbrowser.open(page.address)
        page.serve()
    return 0


def maker(reading: Reading, seed: int) -> Make:
    """What makes a report of the files and settings that the page holds."""
    from dataclasses import replace

    def make(files: Sequence[str], settings: Settings, progress: Progress) -> Made:
        from matchbound.report import render
        from matchbound.report.local.work import Made
        from matchbound.report.make import make_report

        claims = read_claims(settings.claim, "rates", "curve")
        if needs_threshold(claims) and not settings.threshold:
            raise UsageError("a requirement on rates at a threshold needs a threshold")
        own = replace(reading, distance=settings.distance)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", MatchboundWarning)
            data, attribute = grouped(files, list(settings.group) or None, own)
            taken = {
                "files": list(files),
                "far": list(settings.far),
                "threshold": list(settings.threshold),
                "group": list(settings.group),
                "claim": list(settings.claim),
                "seed": seed,
                **own.taken(data),
            }
            report = make_report(
                data,
                far=settings.far or None,
                threshold=settings.threshold or None,
                group=attribute,
                claims=settings.claim,
                title=settings.title,
                progress=progress,
                rng=seed,
                provenance=provenance(files, **taken),
            )
        said = [
            {
                "claim": required(item.claim) + ("" if item.threshold is None else f" at threshold {item.threshold:g}"),
                "verdict": item.claim.verdict,
                "reason": item.claim.reason,
            }
            for item in report.verdicts
        ]
        report = in_options(report)
        return Made(render(report), said, [without_secrets(note) for note in heard(caught)])

    return make
