"""Who runs the blocks of a job: threads of this process, or a cluster."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Protocol

from matchbound.counting.partial import Partial
from matchbound.counting.threads import available_cores, one_blas_thread
from matchbound.errors import UsageError


class Progress(Protocol):
    """Called from the main thread with the number of blocks done and the number of blocks."""

    def __call__(self, done: int, total: int) -> None: ...


class Worker(Protocol):
    """Adds blocks to a partial tally of its own; used by one thread at a time."""

    partial: Partial

    def add(self, block: int) -> None:
        """Tally a block."""


class Job(Protocol):
    """A run cut into blocks that any worker can do in any order."""

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""

    def worker(self) -> Worker:
        """A new worker with an empty partial tally."""


class Executor(Protocol):
    """Runs blocks of a job and merges what they counted."""

    def run(self, job: Job, blocks: Sequence[int], watch: Watch) -> Partial:
        """Tally the blocks; `watch` is told about each one that is done."""


class Watch(Protocol):
    """Follows a run from the main thread."""

    def done(self, block: int) -> None:
        """A block is done."""

    def wants_snapshot(self) -> bool:
        """Whether the run should stop for a moment to be written down."""

    def snapshot(self, partials: Sequence[Partial], blocks: Sequence[int]) -> None:
        """Write down what the blocks done so far in this run have counted."""


@dataclass(frozen=True)
class LocalExecutor:
    """Threads of this process, one BLAS thread each.

    workers
        How many; by default one a core that this process may use.
    """

    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"workers must be at least 1; got {self.workers}")

    def run(self, job: Job, blocks: Sequence[int], watch: Watch) -> Partial:
        """Tally the blocks on this machine."""
        count = max(1, min(self.workers or available_cores(), len(blocks)))
        with one_blas_thread():
            return _run_in_threads(job, blocks, count, watch)


@dataclass(frozen=True)
class DaskExecutor:
    """A `dask.distributed` cluster; a worker that dies costs time and nothing else.

    client
        A ``distributed.Client``, or the address of a scheduler.
    """

    client: Any

    def run(self, job: Job, blocks: Sequence[int], watch: Watch) -> Partial:
        """Tally the blocks on the cluster."""
        from matchbound.counting.cluster import run_on

        return run_on(self.client, job, blocks, watch)


class _Crew:
    """Threads that take blocks from a list until it is empty, they are stopped or one of them fails."""

    def __init__(self, job: Job, blocks: Sequence[int], count: int) -> None:
        self.workers = [job.worker() for _ in range(count)]
        self.reports: SimpleQueue[int | BaseException] = SimpleQueue()
        self._todo = iter(blocks)
        self._lock = threading.Lock()
        self._stopped = False
        self._gate = threading.Event()
        self._gate.set()
        self._busy = 0
        self._idle = threading.Condition(self._lock)
        self._threads = [
            threading.Thread(target=self._work, args=(worker,), name=f"matchbound-{at}", daemon=True)
            for at, worker in enumerate(self.workers)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let every thread finish its block and end."""
        with self._lock:
            self._stopped = True
        self._gate.set()
        for thread in self._threads:
            thread.join()

    def pause(self) -> None:
        """Wait until every block that was begun is done; begin no other."""
        self._gate.clear()
        with self._idle:
            while self._busy:
                self._idle.wait()

    def resume(self) -> None:
        self._gate.set()

    def _work(self, worker: Worker) -> None:
        while True:
            self._gate.wait()
            with self._lock:
                if not self._gate.is_set():
                    continue
                block = None if self._stopped else next(self._todo, None)
                if block is None:
                    return
                self._busy += 1
            report: int | BaseException = block
            try:
                worker.add(block)
            except BaseException as error:
                report = error
            self.reports.put(report)
            with self._idle:
                self._busy -= 1
                self._idle.notify_all()


def _run_in_threads(job: Job, blocks: Sequence[int], count: int, watch: Watch) -> Partial:
    crew = _Crew(job, blocks, count)
    finished: list[int] = []

    def take(report: int | BaseException) -> None:
        if isinstance(report, BaseException):
            raise report
        finished.append(report)
        watch.done(report)

    crew.start()
    try:
        while len(finished) < len(blocks):
            take(crew.reports.get())
            if watch.wants_snapshot():
                crew.pause()
                while not crew.reports.empty():
                    take(crew.reports.get())
                watch.snapshot([worker.partial for worker in crew.workers], finished)
                crew.resume()
    except KeyboardInterrupt:
        crew.stop()
        while not crew.reports.empty():
            report = crew.reports.get()
            if isinstance(report, BaseException):
                raise
            finished.append(report)
        watch.snapshot([worker.partial for worker in crew.workers], finished)
        raise
    finally:
        crew.stop()
    total, *others = [worker.partial for worker in crew.workers]
    for partial in others:
        total.add(partial, count)
    return total
