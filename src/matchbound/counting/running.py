"""Run all blocks of a job: from a checkpoint where there is one, to the end or until somebody stops it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from matchbound.counting.checkpoint import Checkpoint
from matchbound.counting.executors import Executor, Job, LocalExecutor, Progress
from matchbound.counting.held import Held, merge
from matchbound.counting.signals import HeldSignals
from matchbound.counting.watch import RunWatch, check_every
from matchbound.errors import UsageError

H = TypeVar("H", bound=Held)
SNAPSHOT_SECONDS = 30.0


@dataclass(frozen=True)
class How:
    """Who runs the blocks, and who is told: the arguments that every call that counts has in common.

    workers
        Threads on this machine; by default one per core. The result does not depend on it.
    executor
        Who runs the blocks, such as `DaskExecutor`; by default ``LocalExecutor(workers)``.
    progress
        Called as ``progress(done, total)`` after each block, from the thread that made the call.
    checkpoint
        A file to write the state of the run to, and to resume from.
    checkpoint_every
        Seconds between two states that are written.
    """

    workers: int | None = None
    executor: Executor | None = None
    progress: Progress | None = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: float = SNAPSHOT_SECONDS

    def check(self) -> None:
        """Raise UsageError where the arguments do not go together."""
        if self.executor is not None and self.workers is not None:
            raise UsageError("give workers or executor, not both")
        check_every(self.checkpoint_every)
        if self.checkpoint is not None:
            _place(self.checkpoint)


ANYHOW = How()
"""Threads on this machine, and nobody is told."""


@dataclass(frozen=True)
class Kind:
    """What a checkpoint must know of a run.

    mark
        Gives a digest of the data and of everything that the blocks depend on; asked only where there is a checkpoint.
    restore
        Makes what a run holds of the arrays of a file and the blocks; DataError where they are not those of this run.
    size
        Bytes that a checkpoint takes at least.
    """

    mark: Callable[[], str]
    restore: Callable[[dict[str, NDArray[Any]], set[int]], Any]
    size: int


def run_all(job: Job, empty: Callable[[], H], kind: Kind, how: How, keep: bool = False) -> H:
    """What all blocks of a job give, each counted once; with `keep`, the checkpoint stays, and holds all of it.

    Ctrl-C and SIGTERM wait until the blocks that were begun are counted and written down.
    """
    how.check()
    with HeldSignals() as signals:
        checkpoint, before = None, None
        if how.checkpoint is not None:
            checkpoint = Checkpoint(_place(how.checkpoint), kind.mark())
            checkpoint.prepare(kind.size)
            before = checkpoint.load(job.n_blocks, kind.restore)
        signals.deliver()
        watch = RunWatch(job.n_blocks, how.progress, checkpoint, before, how.checkpoint_every, signals)
        held = set() if before is None else before.blocks
        blocks = [block for block in range(job.n_blocks) if block not in held]
        parts: list[Any] = [] if before is None else [before]
        if blocks:
            parts.append((how.executor or LocalExecutor(how.workers)).run(job, blocks, watch))
        total: H = empty() if not parts else parts[0] if len(parts) == 1 else merge(parts)
        total.check_complete(job.n_blocks)
        if checkpoint is not None and not keep:
            checkpoint.remove()
        elif checkpoint is not None and blocks:
            checkpoint.save(total)
    return total


def _place(path: str | os.PathLike[str]) -> Path:
    name = os.fspath(path)
    if not isinstance(name, str) or not name or "\0" in name:
        raise UsageError(f"checkpoint must be the name of a file; got {name!r}")
    return Path(name)
