"""``matchbound coverage``: the experiments of the paper, and coverage studies of one's own."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from matchbound.cli import common
from matchbound.cli.options import Dask, Quiet, Resamples, Seed
from matchbound.errors import MissingExtraError, UsageError
from matchbound.results.interval import check_whole

if TYPE_CHECKING:
    from matchbound.study.runner import Cluster

Figure = Annotated[
    str,
    Parameter(help="fig1, fig2, fig3, fig4, fig5, width, roc, diverse, table; or synthetic for all without real data."),
]
Replications = Annotated[int | None, Parameter(help="Data sets; by default as many as the experiment has.")]
Folder = Annotated[str, Parameter(name=["--output", "-o"], help="Folder for the figure and its CSV.")]
Processes = Annotated[int, Parameter(help="Processes; the numbers do not depend on it.")]
DataFolder = Annotated[str | None, Parameter(name="--data", help="Folder with real data sets (fig5, roc, diverse).")]
Keep = Annotated[
    str | None, Parameter(help="Folder for populations and finished replications; a stopped run resumes from it.")
]
TruthIdentities = Annotated[int | None, Parameter(help="Size of the simulated population that sets thresholds.")]


def coverage(
    *,
    figure: Figure,
    replications: Replications = None,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    output: Folder = ".",
    workers: Processes = 1,
    data: DataFolder = None,
    dask: Dask = None,
    keep: Keep = None,
    truth_identities: TruthIdentities = None,
    quiet: Quiet = False,
) -> int:
    """Make an experiment of the paper again: a figure, and a CSV that says with which command and seed.

    Example: `matchbound coverage --figure fig3 --replications 1000 --workers 2 --output results`
    """
    from matchbound.study.figures import FIGURES, SYNTHETIC, TRUTH_IDENTITIES, Request, make_figure

    if figure not in (*FIGURES, "synthetic"):
        raise UsageError(f"--figure must be one of {', '.join((*FIGURES, 'synthetic'))}; got {figure}")
    for name, value in (("--replications", replications), ("--resamples", resamples), ("--workers", workers)):
        if value is not None:
            check_whole(value, name)
    with common.listening(quiet), _kept(keep) as kept, _bar(quiet) as progress, _cluster(dask) as cluster:
        request = Request(
            output=Path(output),
            replications=replications,
            seed=seed,
            n_resamples=resamples,
            workers=workers,
            data=None if data is None else Path(data),
            keep=kept,
            progress=progress,
            executor=cluster,
            truth_identities=TRUTH_IDENTITIES if truth_identities is None else truth_identities,
        )
        for name in SYNTHETIC if figure == "synthetic" else (figure,):
            for path in make_figure(name, request):
                sys.stdout.write(f"{path}\n")
                sys.stdout.flush()
    return 0


@contextmanager
def _kept(keep: str | None) -> Iterator[Path]:
    """The folder for finished work; without one, a folder that lasts as long as the run."""
    if keep is not None:
        yield Path(keep)
        return
    with tempfile.TemporaryDirectory(prefix="matchbound-") as folder:
        yield Path(folder)


@contextmanager
def _cluster(address: str | None) -> Iterator[Cluster | None]:
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("--dask needs dask.distributed: install matchbound[dask]") from None
    try:
        client = Client(address, timeout="10s")  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise UsageError(f"--dask {address}: no scheduler answers there ({error})") from None
    with client:
        yield client


@contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar with the time left, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("replications"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("replications", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield progress
