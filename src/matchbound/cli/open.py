"""``matchbound open``: the report in a browser, from a page on this machine."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from matchbound.cli import STDIN
from matchbound.cli import options as opt
from matchbound.cli.command import RUN, Run, about, read_claims
from matchbound.cli.report import report
from matchbound.counting.run import Job, LocalExecutor, P, RunWatch
from matchbound.errors import DataError, MatchboundError, MatchboundWarning, UsageError, spelled
from matchbound.files.opening import is_address, local_path
from matchbound.show.section import verdict_of
from matchbound.show.terms import speaking

if TYPE_CHECKING:
    from matchbound.counting.run import Progress
    from matchbound.report.local import Made, Settings

# arguments of Python functions, and what the page calls them
FIELDS = {
    "reader": "Format",
    "missing": "Comparisons without a score:",
    "similarity": "Similarity",
    "distance": "“Scores are distances”",
    "group": "“Columns with groups”",
    "people": "“Table of people”",
    "far": "“FARs to report FRR at”",
    "threshold": "“Thresholds”",
}


def open(
    *files: opt.Files,
    threshold: opt.Thresholds = None,
    far: opt.Fars = None,
    group: opt.Groups = None,
    claim: opt.ClaimTexts = None,
    title: opt.Title = None,
    reading: opt.Reading = opt.READING,
    seed: opt.Seed = 0,
    port: Annotated[int, Parameter(validator=Number(gte=0, lte=65535))] = 0,
    no_browser: bool = False,
    quiet: opt.Quiet = False,
) -> None:
    """Show the report in a browser. The page also takes a dropped file, thresholds, requirements and groups.

    The page is served to this machine only, at an address with a secret word in it, and sends nothing anywhere. Ctrl-C
    ends it.

    Args:
        port: Port on 127.0.0.1; by default a free one.
        no_browser: Print the address and open no browser.
    """
    import webbrowser

    from matchbound.report.local import LocalPage, Settings

    for name in files:
        if name != STDIN and not is_address(name) and not Path(local_path(name)).exists():
            raise DataError(f"{name}: no such file")
    read_claims(claim, "rates", "curve", "groups")
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
    for name in ("SIGHUP", "SIGQUIT"):  # what was dropped must not outlive the page; nohup ignores the first
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is signal.SIG_DFL:
            signal.signal(getattr(signal, name), signal.default_int_handler)
    with LocalPage(partial(make_page, reading, seed), files, settings, port) as page, suppress(KeyboardInterrupt):
        sys.stdout.write(f"{page.address}\n")  # from here on, an interrupt is the way to end
        sys.stdout.flush()
        if not quiet:
            sys.stderr.write("The report is at the address above, on this machine only. Ctrl-C ends it.\n")
        if not no_browser:
            webbrowser.open(page.once)
        page.serve()


def make_page(
    reading: opt.Reading, seed: int, files: Mapping[str, Sequence[str]], settings: Settings, progress: Progress
) -> Made:
    """The report of the files and settings that the page holds."""
    from matchbound.report.local import Made

    if about("rates", read_claims(settings.claim, "rates", "curve", "groups")) and not settings.threshold:
        raise UsageError("a requirement on rates at a threshold needs a threshold")
    chosen: dict[str, Any] = {name: list(getattr(settings, name)) for name in ("far", "threshold", "group", "claim")}
    chosen |= {"people": next(iter(files.get("people", ())), None), "title": settings.title or None}
    paths = [*files["file"], *files.get("second", ())]
    reading = replace(
        reading,
        distance=settings.distance,
        similarity=settings.similarity or "cosine",  # type: ignore[arg-type]
        reader=settings.reader or None,
        missing=settings.missing or "error",  # type: ignore[arg-type]
        option=[*(reading.option or ()), *(f"columns.{pair}" for pair in settings.columns)] or None,
    )
    RUN.set(Run(arguments={"verb": "open", "files": paths, "seed": seed, "quiet": True, **chosen}))
    terms: Any = "iso" if settings.iso else "plain"
    page, running = opt.Page(output="report.html", terms=terms), _Watched(progress=progress)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)  # the report has its notes
            outcome = report(
                *paths, reading=reading, running=running, page=page, interval=opt.Interval(seed=seed), **chosen
            )
    except MatchboundError as error:
        raise type(error)(in_page_words(error)) from None
    with speaking(terms):
        verdicts = [verdict_of(claim, at) for claim, at in outcome.claims]
    shown = [{"claim": one.requirement, "verdict": one.verdict, "reason": one.reason} for one in verdicts]
    return Made(outcome.document or "", shown)


@dataclass(frozen=True, kw_only=True)
class _WatchedThreads(LocalExecutor):
    """Threads that tell the page of every pass over the data, and stop where it raises."""

    progress: Progress

    def run(self, job: Job[P], blocks: Sequence[int], watch: RunWatch) -> P:
        self.progress(0, watch.n_blocks)
        return super().run(job, blocks, replace(watch, progress=self.progress))


@dataclass(frozen=True, kw_only=True)
class _Watched(opt.Running):
    """Work that the page watches."""

    progress: Progress

    @contextmanager
    def started(self) -> Iterator[dict[str, Any]]:
        """The arguments of a library call that counts."""
        yield {"progress": self.progress, "executor": _WatchedThreads(progress=self.progress)}


def in_page_words(text: object) -> str:
    """A message with the arguments of Python functions written as the fields of the page."""
    return spelled(getattr(text, "marked", str(text)), _as_field)


def _as_field(name: str, value: str) -> str:
    given = "" if value in ("None", "True") else value
    table, _, keys = name.partition(".")
    if table == "columns" and keys:
        return " ".join(f"Columns {key}={given}" for key in keys.split("+"))
    if name == "read":
        files, _, reader = value.partition("; ")
        return f"both files ({files}) and the Format {reader}"
    return f"{FIELDS[name]} {given}".rstrip() if name in FIELDS else f"{name}={given} on the command line"
