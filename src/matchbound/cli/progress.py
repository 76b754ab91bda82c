"""Progress on a terminal, and the cluster that does the work."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

COMMAND: ContextVar[tuple[str, ...]] = ContextVar("COMMAND", default=())
"""The words of the command line that is running."""
LONG_BYTES = 64 << 20
"""Reading a file shorter than this shows no progress."""


def quiet() -> bool:
    """Whether nothing but the answer and errors is wanted."""
    return bool({"-q", "--quiet"} & set(COMMAND.get()))


def wrote(path: str) -> None:
    """Name on stderr a file that was written in addition to the answer."""
    if not quiet():
        sys.stderr.write(f"wrote {path}\n")


@contextmanager
def executor(dask: str | None) -> Iterator[Any]:
    """The cluster at an address; None for this machine."""
    if dask is None:
        yield None
        return
    from matchbound.counting.cluster import connected
    from matchbound.counting.executors import DaskExecutor

    with connected(dask) as client:
        yield DaskExecutor(client)


@contextmanager
def reading_bar() -> Iterator[Any]:
    """A progress bar for reading a long file; it is made when the file turns out to be long."""
    with ExitStack() as stack:
        shown: list[Any] = []

        def progress(done: int, total: int) -> None:
            if not shown and max(done, total) >= LONG_BYTES:
                shown.append(stack.enter_context(bar("reading")))
            if shown and shown[0] is not None:
                shown[0](done, total)

        yield progress


@contextmanager
def bar(what: str = "comparing") -> Iterator[Any]:
    """A progress bar with rate and time left, on a terminal only."""
    from matchbound import kernels  # late: it looks at the environment, and what is wrong there is an error of the run

    kernels.tell_of_compiling = kernels.tell_of_compiling and not quiet()
    if quiet() or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    shown = (TextColumn("{task.percentage:>3.0f}%"), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    with Progress(TextColumn(what), BarColumn(), *shown, console=Console(stderr=True), transient=True) as drawn:
        task = drawn.add_task(what, total=None, rate="")

        def progress(done: int, total: int) -> None:
            speed = drawn.tasks[0].speed
            drawn.update(task, completed=done, total=total or None, rate=f"{speed:,.3g}/s" if speed else "")

        yield progress
