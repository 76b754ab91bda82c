"""Who runs the blocks of a job: threads of this process, or a cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Protocol

from matchbound.counting.held import Held, Worker, count_block
from matchbound.counting.signals import HeldSignals
from matchbound.counting.threads import available_cores, one_blas_thread
from matchbound.errors import UsageError


class Progress(Protocol):
    """Called from the main thread with the number of blocks done and the number of blocks."""

    def __call__(self, done: int, total: int) -> None: ...


class Job(Protocol):
    """A run cut into blocks that any worker can do in any order."""

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""

    def worker(self) -> Worker:
        """A new worker that holds nothing yet."""


class Executor(Protocol):
    """Runs blocks of a job and merges what they counted."""

    def run(self, job: Job, blocks: Sequence[int], watch: Watch) -> Held:
        """Tally the blocks; `watch` is told about each one that is done.

        Where it ends in an exception, what was counted until then goes to ``watch.snapshot`` first.
        """


class Watch(Protocol):
    """Follows a run from the thread that started it."""

    signals: HeldSignals

    def done(self, blocks: int) -> None:
        """So many more blocks are done."""

    def wants_snapshot(self) -> bool:
        """Whether the run should stop for a moment to be written down."""

    def snapshot(self, parts: Sequence[Held], *, last: bool = False) -> None:
        """Write down what was counted so far in this run; the parts say which blocks that is."""


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

    def run(self, job: Job, blocks: Sequence[int], watch: Watch) -> Held:
        """Tally the blocks on this machine.

        Parameters
        ----------
        job
            What to count.
        blocks
            Numbers of the blocks.
        watch
            Who is told when a block is done.
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

    def run(self, job: Job, blocks: Sequence[int], watch: Watch) -> Held:
        """Tally the blocks on the cluster.

        Parameters
        ----------
        job
            What to count.
        blocks
            Numbers of the blocks.
        watch
            Who is told when a block is done.
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


def _run_in_threads(job: Job, blocks: Sequence[int], count: int, watch: Watch) -> Held:
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


def _until_all_end(crew: _Crew, tasks: Sequence[Future[None]], watch: Watch) -> None:
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
