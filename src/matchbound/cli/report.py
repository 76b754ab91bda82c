"""``matchbound report``: one page, or tables for a paper, about a data set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from matchbound.cli import common
from matchbound.cli.common import (
    Checkpoint,
    Dask,
    Distance,
    Files,
    Level,
    Method,
    Output,
    Quiet,
    Reader,
    ReaderOption,
    Resamples,
    Seed,
    Similarity,
    Threshold,
    Workers,
)
from matchbound.errors import UsageError
from matchbound.results.methods import named
from matchbound.results.rates import METHODS

Targets = Annotated[
    list[float] | None,
    Parameter(help="FAR at which FRR is reported; repeat it for several.", negative_iterable=""),
]
ReportFormat = Annotated[
    Literal["html", "markdown", "latex"] | None,
    Parameter(name="--format", help="html, markdown or latex; by default from the ending of the output, else html."),
]
Title = Annotated[str | None, Parameter(help="Title of the report.")]
AgainstFiles = Annotated[
    list[str] | None,
    Parameter(
        help="Scores or embeddings of another system on the same comparisons, to compare; repeat it for several.",
        negative_iterable="",
    ),
]
ShowLabels = Annotated[bool, Parameter(help="Name the identities that drive the uncertainty.", negative="")]


def report(
    *files: Files,
    far: Targets = None,
    threshold: Threshold = None,
    method: Method = "auto",
    level: Level = 0.95,
    resamples: Resamples = 2000,
    seed: Seed = 0,
    title: Title = None,
    show_labels: ShowLabels = False,
    against: AgainstFiles = None,
    distance: Distance = False,
    similarity: Similarity = "cosine",
    reader: Reader = None,
    option: ReaderOption = None,
    format: ReportFormat = None,
    output: Output = None,
    workers: Workers = None,
    dask: Dask = None,
    checkpoint: Checkpoint = None,
    quiet: Quiet = False,
) -> int:
    """Write a report: a self-contained page with curves, tables and a threshold slider, or tables for a paper.

    Example: `matchbound report scores.csv --against other.csv --output report.html`
    """
    from matchbound.files.writing import write_atomically
    from matchbound.report import render
    from matchbound.report.make import SUFFIXES, make_report

    method = named(method, METHODS, "--method")
    if not 0.0 < level < 1.0:
        raise UsageError(f"--level must lie between 0 and 1, such as 0.95; got {level}")
    chosen = format or SUFFIXES.get(Path(output or "").suffix.lower(), "html")
    with common.listening(quiet):
        data = common.load(files, reader=reader, distance=distance, similarity=similarity, option=option)
        others = [
            common.load_or_scan([path], reader=reader, distance=distance, similarity=similarity, option=option)
            for path in against or ()
        ]
        names = common.system_names([files[-1], *(against or ())])
        source = common.provenance(
            [*files, *(against or ())],
            seed,
            {
                "verb": "report",
                "far": far or None,
                "threshold": threshold or None,
                "method": method,
                "level": level,
                "resamples": resamples,
                "distance": data.distance,
                "similarity": common.similarity_of(data),
                "reader": reader,
                "against": names[1:] or None,
            },
        )
        with common.running(dask, quiet) as (executor, progress):
            made = make_report(
                data,
                far=far or None,
                threshold=threshold or None,
                level=level,
                method=method,
                title=title,
                show_labels=show_labels,
                against=dict(zip(names[1:], others, strict=True)) if others else None,
                name=names[0],
                workers=workers,
                executor=executor,
                progress=progress,
                checkpoint=checkpoint,
                rng=seed,
                n_resamples=resamples,
                provenance=source,
            )
        content = render(made, chosen)
    if output is None:
        sys.stdout.write(content)
        sys.stdout.flush()
    else:
        write_atomically(output, content)
    return 0
