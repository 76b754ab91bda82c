"""Run all blocks of a job: on threads of this process or a cluster, from a checkpoint where there is one."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from numpy.typing import NDArray

from matchbound.counting.checkpoint import Checkpoint
from matchbound.counting.run import (
    SNAPSHOT_SECONDS,
    Executor,
    HeldSignals,
    Job,
    P,
    Partial,
    Progress,
    RunWatch,
    Worker,
    count_block,
    merge,
)
from matchbound.counting.threads import available_cores, one_blas_thread
from matchbound.errors import UsageError


@dataclass(frozen=True)
class LocalExecutor:
    """Threads of this process, one BLAS thread each.

    workers
        How many; by default one per core that this process may use.

    See Also
    --------
    DaskExecutor, evaluate

    Examples
    --------
    >>> import matchbound as mb
    >>> rates = mb.evaluate(mb.demo_data(), 0.6, executor=mb.LocalExecutor(1))
    >>> rates.far.errors
    189
    """

    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"workers must be at least 1; got {self.workers}")

    def run(self, job: Job, blocks: Sequence[int], watch: RunWatch) -> Partial:
        """Tally the blocks on this machine.

        Parameters
        ----------
        job, blocks, watch
            As for `matchbound.counting.run.Executor.run`.
        """
        count = max(1, min(self.workers or available_cores(), len(blocks)))
        with one_blas_thread():
            return _run_in_threads(job, blocks, count, watch)


@dataclass(frozen=True)
class DaskExecutor:
    """A `dask.distributed` cluster; a worker that dies costs time and nothing else.

    The data are sent to each worker process once, and stay there for the next call while the executor lives (of an
    address, for the one call).

    client
        A ``distributed.Client``, or the address of a scheduler.

    See Also
    --------
    LocalExecutor, evaluate

    Examples
    --------
    >>> import matchbound as mb
    >>> from distributed import Client, LocalCluster  # doctest: +SKIP
    >>> client = Client(LocalCluster(n_workers=2))  # doctest: +SKIP
    >>> mb.evaluate(mb.demo_data(), 0.6, executor=mb.DaskExecutor(client))  # doctest: +SKIP
    """

    client: Any
    _sent: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def run(self, job: Job, blocks: Sequence[int], watch: RunWatch) -> Partial:
        """Tally the blocks on the cluster.

        Parameters
        ----------
        job, blocks, watch
            As for `matchbound.counting.run.Executor.run`.
        """
        from matchbound.counting.cluster import run_on

        return run_on(self.client, job, blocks, watch, self._sent)


class _Crew:
    """Workers that take blocks from one list, each in a thread of its own, for as long as they are let.

    Threads never see signals, so that a block is counted whole or, where counting it fails, not at all. What is done is
    written in what the workers hold alone; `reports` serves to show progress and to wait.
    """

    def __init__(self, job: Job, blocks: Sequence[int], count: int) -> None:
        self.workers = [job.worker() for _ in range(count)]
        self.reports: SimpleQueue[int | None] = SimpleQueue()
        self.todo = deque(blocks)
        self._halted = False

    def start(self, pool: ThreadPoolExecutor) -> list[Future[None]]:
        """Let every worker take blocks; each puts None when it ends."""
        self._halted = False
        tasks = [pool.submit(self._work, worker) for worker in self.workers]
        for task in tasks:
            task.add_done_callback(lambda _: self.reports.put(None))
        return tasks

    def halt(self) -> None:
        """Let every worker finish its block and end."""
        self._halted = True

    def _work(self, worker: Worker) -> None:
        try:
            while self.todo and not self._halted:
                try:
                    block = self.todo.popleft()
                except IndexError:  # another worker was faster
                    return
                count_block(worker, block)
                self.reports.put(block)
        except BaseException:
            self._halted = True
            raise


def _run_in_threads(job: Job, blocks: Sequence[int], count: int, watch: RunWatch) -> Partial:
    crew = _Crew(job, blocks, count)
    partials = [worker.partial for worker in crew.workers]
    with ThreadPoolExecutor(count, thread_name_prefix="matchbound") as pool:
        try:
            while crew.todo:
                _until_all_end(crew, crew.start(pool), watch)
                if watch.wants_snapshot():
                    watch.snapshot(partials)
        except BaseException:
            crew.halt()
            pool.shutdown()
            watch.snapshot([partial for partial in partials if partial.sound], last=True)
            raise
    total, *others = partials
    for partial in others:
        total.add(partial, count)
    return total


def _until_all_end(crew: _Crew, tasks: Sequence[Future[None]], watch: RunWatch) -> None:
    """Wait until the workers have no more blocks, or are halted because it is time for a snapshot."""
    running = len(tasks)
    while running:
        if crew.reports.get() is None:
            running -= 1
        else:
            watch.done(1)
        watch.signals.deliver()
        if watch.wants_snapshot():
            crew.halt()
    for task in tasks:
        task.result()


@dataclass(frozen=True)
class RunOptions:
    """The arguments that every call that counts has in common.

    - workers: threads on this machine; by default one per core. The result does not depend on it.
    - executor: who runs the blocks, such as `DaskExecutor`; by default ``LocalExecutor(workers)``.
    - progress: called as ``progress(done, total)`` after each block, from the thread that made the call.
    - checkpoint: a file to write the state of the run to, and to resume from.
    - checkpoint_every: seconds between checkpoints.
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
        try:
            every = float(self.checkpoint_every)
        except (TypeError, ValueError):
            every = math.nan
        if not 0.0 <= every < math.inf:
            raise UsageError(f"checkpoint_every must be a number of seconds, 0 or more; got {self.checkpoint_every!r}")
        if self.checkpoint is not None:
            _checkpoint_path(self.checkpoint)
        self.runner()

    def runner(self) -> Executor:
        return self.executor or LocalExecutor(self.workers)

    def quietly(self) -> RunOptions:
        """The same for a further run, which reports nothing and has no checkpoint."""
        return replace(self, progress=None, checkpoint=None)


def _checkpoint_path(path: str | os.PathLike[str]) -> Path:
    name = os.fspath(path)
    if not isinstance(name, str) or not name or "\0" in name:
        raise UsageError(f"checkpoint must be the name of a file; got {name!r}")
    return Path(name)


@dataclass(frozen=True)
class Resume:
    """What a checkpoint must know of a run.

    - mark: a digest of the data and of all that the blocks depend on; asked only where there is a checkpoint.
    - restore: a partial result from the arrays of a file and the blocks; DataError where they are not of this run.
    - size: bytes that a checkpoint takes at least.
    """

    mark: Callable[[], str]
    restore: Callable[[dict[str, NDArray[Any]], set[int]], Any]
    size: int


def run_all(job: Job, empty: Callable[[], P], options: RunOptions, resume: Resume | None = None) -> P:
    """What all blocks of a job give, each counted once; a job without `resume` has no checkpoint.

    Ctrl-C and SIGTERM wait until the blocks that were begun are counted and written down.
    """
    options.check()
    with HeldSignals() as signals:
        checkpoint, before = None, None
        if options.checkpoint is not None and resume is not None:
            checkpoint = Checkpoint(_checkpoint_path(options.checkpoint), resume.mark())
            checkpoint.prepare(resume.size)
            before = checkpoint.load(job.n_blocks, resume.restore)
        signals.deliver()
        watch = RunWatch(job.n_blocks, options.progress, checkpoint, before, options.checkpoint_every, signals)
        counted = set() if before is None else before.blocks
        blocks = [block for block in range(job.n_blocks) if block not in counted]
        parts: list[Any] = [] if before is None else [before]
        if blocks:
            parts.append(options.runner().run(job, blocks, watch))
        total: P = empty() if not parts else parts[0] if len(parts) == 1 else merge(parts)
        total.check_complete(job.n_blocks)
        if checkpoint is not None:
            checkpoint.remove()
    return total
