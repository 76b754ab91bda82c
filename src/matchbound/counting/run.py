"""Run all blocks of a job: on threads of this process or a cluster, from a checkpoint where there is one.

A `Partial` knows which blocks it holds, and that is the only record of what was done. Two that share a block do not
merge, one that was left half changed cannot be used, and a run is complete when it holds every block once.
"""

from __future__ import annotations

import copy
import math
import os
import signal
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from types import FrameType, TracebackType
from typing import Any, Protocol, Self, TypedDict, TypeVar

from numpy.typing import NDArray

from matchbound.counting.checkpoint import Checkpoint, Restore
from matchbound.counting.threads import available_cores, one_blas_thread
from matchbound.errors import DataError, MatchboundError, MatchboundWarning, UsageError
from matchbound.notes import Note

SNAPSHOT_SECONDS = 30.0
# A snapshot is followed by at least this many times as long without one.
SHARE = 4.0


@dataclass(eq=False, kw_only=True)
class Partial(ABC):
    """What some blocks have given, each once; not `sound` while it is being changed, or when that was cut short."""

    blocks: set[int] = field(default_factory=set, repr=False)
    sound: bool = True

    @abstractmethod
    def join(self, other: Self, workers: int | None) -> None:
        """Take over what `other` holds; called by `add`, which has seen to it that the two share no block."""

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it but the blocks, as arrays for a checkpoint, where runs of its kind have one."""
        raise NotImplementedError

    def add(self, other: Self, workers: int | None = 1) -> None:
        """Add what other blocks have given; MatchboundError where a block is in both."""
        other.check()
        with self.taking(other.blocks):
            self.join(other, workers)

    @contextmanager
    def taking(self, blocks: Collection[int]) -> Iterator[None]:
        """Change it inside, by all that these blocks give; a change that is cut short spoils it.

        Raises MatchboundError where one of the blocks is held already, or an earlier change was cut short.
        """
        self.check()
        shared = self.blocks.intersection(blocks)
        if shared:
            raise MatchboundError(f"block {min(shared)} of the comparisons would be counted twice; nothing was added")
        self.sound = False
        yield
        self.blocks.update(blocks)
        self.sound = True

    def check(self) -> None:
        """Raise MatchboundError where a change was cut short."""
        if not self.sound:
            raise MatchboundError("the counts of some blocks are incomplete; they cannot be used")

    def check_complete(self, n_blocks: int) -> None:
        """Raise MatchboundError unless it holds blocks 0 to n_blocks − 1 and no other."""
        self.check()
        missing = set(range(n_blocks)) - self.blocks
        if missing or len(self.blocks) != n_blocks:
            raise MatchboundError(
                f"{len(missing):,} of {n_blocks:,} blocks of the comparisons were not counted; run it again"
            )


P = TypeVar("P", bound=Partial)
Made = TypeVar("Made", bound=Partial, covariant=True)


def merge(parts: Sequence[P]) -> P:
    """All of at least one, as a new one; MatchboundError where two of them share a block."""
    parts[0].check()
    total = copy.deepcopy(parts[0])
    for part in parts[1:]:
        total.add(part)
    return total


class Worker(Protocol[Made]):
    """Adds what blocks give to a partial result of its own; used by one thread at a time, through `count_block`."""

    @property
    def partial(self) -> Made:
        """What its blocks gave so far."""

    def add(self, block: int) -> None:
        """Add what a block gives."""


def count_block(worker: Worker[Partial], block: int) -> None:
    """Count a block, and write down in what the worker holds that it is there."""
    with worker.partial.taking((block,)):
        worker.add(block)


class Job(Protocol[Made]):
    """A run cut into blocks that any worker can do in any order."""

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""

    def worker(self) -> Worker[Made]:
        """A new worker that holds nothing yet."""


class Progress(Protocol):
    """Called from the main thread with the number of blocks done and the number of blocks."""

    def __call__(self, done: int, total: int) -> None: ...


class Executor(Protocol):
    """Runs blocks of a job and merges what they counted."""

    def run(self, job: Job[P], blocks: Sequence[int], watch: RunWatch) -> P:
        """Tally the blocks; `watch` is told about each one that is done.

        Where it ends in an exception, what was counted until then goes to ``watch.snapshot`` first.
        """


class HeldSignals:
    """While this is open, handlers of Ctrl-C and SIGTERM that are Python functions wait until `deliver` is called.

    A handler that raises (as Python's own does for Ctrl-C) then raises out of `deliver`, where the caller can stop in
    good order: between blocks, never in the middle of an addition or of a file. Signals that nobody delivered are
    delivered at the end, unless an exception is on its way already. Signals reach Python in the main thread only; in
    any other thread this does nothing.
    """

    def __init__(self) -> None:
        self._before: dict[int, Callable[[int, FrameType | None], object]] = {}
        self._waiting: list[int] = []
        self._holding = False

    def __enter__(self) -> HeldSignals:
        if threading.current_thread() is threading.main_thread():
            self._holding = True
            try:
                for number in (signal.SIGINT, signal.SIGTERM):
                    handler = signal.getsignal(number)
                    if callable(handler):
                        self._before[number] = handler
                        signal.signal(number, self._take)
            except BaseException:  # a signal that was not held yet
                self._restore()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()
        if kind is None:
            self.deliver()

    def _restore(self) -> None:
        """Put the handlers back, that of Ctrl-C last: it may raise as soon as it is there."""
        try:
            for number in reversed(self._before):
                signal.signal(number, self._before[number])
        finally:
            self._holding = False  # a handler that could not be put back passes signals on

    def deliver(self) -> None:
        """Hand the signals that arrived to the handlers that were there before; these may raise."""
        while self._waiting:
            number = self._waiting.pop(0)
            self._before[number](number, None)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside, signals are not held: for waits that may be long and that may be given up at any point."""
        was, self._holding = self._holding, False
        try:
            self.deliver()
            yield
        finally:
            self._holding = was

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self._holding:
            self._waiting.append(number)
        else:
            self._before[number](number, frame)


@dataclass(eq=False)
class RunWatch:
    """Follows a run from the thread that started it: progress for the caller, checkpoints for the next run.

    - before: what an earlier run had counted.
    - every: seconds between snapshots; 0 for one after each block.
    """

    n_blocks: int
    progress: Progress | None = None
    checkpoint: Checkpoint | None = None
    before: Partial | None = None
    every: float = SNAPSHOT_SECONDS
    signals: HeldSignals = field(default_factory=HeldSignals)

    def __post_init__(self) -> None:
        self._done = 0 if self.before is None else len(self.before.blocks)
        self._next = time.monotonic() + self.every

    def done(self, blocks: int) -> None:
        for _ in range(blocks):
            self._done += 1
            if self.progress is not None:
                self.progress(self._done, self.n_blocks)

    def wants_snapshot(self) -> bool:
        return self.checkpoint is not None and time.monotonic() >= self._next

    def snapshot(self, parts: Sequence[Partial], *, last: bool = False) -> None:
        """Write down what was counted before and in this run.

        Where that cannot be done any more, the run goes on and warns; the last snapshot of a run raises instead.
        """
        counted = [*([] if self.before is None else [self.before]), *parts]
        if self.checkpoint is None or not counted:
            return
        began = time.monotonic()
        try:
            self.checkpoint.save(merge(counted))
        except DataError as error:
            if last:
                raise
            warnings.warn(Note("no-checkpoint", f"{error}; the run goes on without"), MatchboundWarning, stacklevel=2)
        now = time.monotonic()
        self._next = now + max(self.every, SHARE * (now - began))


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

    def run(self, job: Job[P], blocks: Sequence[int], watch: RunWatch) -> P:
        """Tally the blocks on this machine.

        Parameters
        ----------
        job, blocks, watch
            As for `Executor.run`.
        """
        count = max(1, min(self.workers or available_cores(), len(blocks)))
        workers = [job.worker() for _ in range(count)]
        partials = [worker.partial for worker in workers]
        todo, halted = iter(blocks), threading.Event()
        counted: SimpleQueue[bool] = SimpleQueue()  # True for each block, and False for each worker that ends

        def work(worker: Worker[Partial]) -> None:
            """Count blocks until there are no more or all are told to halt; signals never reach this thread."""
            try:
                for block in todo:
                    count_block(worker, block)
                    counted.put(True)
                    if halted.is_set():
                        return
            except BaseException:
                halted.set()
                raise

        left = len(blocks)
        with one_blas_thread(), ThreadPoolExecutor(count, thread_name_prefix="matchbound") as pool:
            try:
                while left:
                    halted.clear()
                    tasks = [pool.submit(work, worker) for worker in workers]
                    for task in tasks:
                        task.add_done_callback(lambda _: counted.put(False))
                    running = count
                    while running:
                        if counted.get():
                            left -= 1
                            watch.done(1)
                        else:
                            running -= 1
                        watch.signals.deliver()
                        if watch.wants_snapshot():
                            halted.set()
                    for task in tasks:
                        task.result()
                    if watch.wants_snapshot():
                        watch.snapshot(partials)
            except BaseException:
                halted.set()
                pool.shutdown()
                watch.snapshot([partial for partial in partials if partial.sound], last=True)
                raise
        total, *others = partials
        for partial in others:
            total.add(partial, count)
        return total


class RunArguments(TypedDict, total=False):
    """`RunOptions` as the keywords of a call."""

    workers: int | None
    executor: Executor | None
    progress: Progress | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: float


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
        if hasattr(self.executor, "submit"):
            kind = type(self.executor).__name__
            raise UsageError(f"executor must be one of matchbound's, such as DaskExecutor(client); got {kind}")
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


def _checkpoint_path(path: str | os.PathLike[str]) -> Path:
    name = os.fspath(path)
    if not isinstance(name, str) or not name or "\0" in name:
        raise UsageError(f"checkpoint must be the name of a file; got {name!r}")
    return Path(name)


def run_all(
    job: Job[P], options: RunOptions, mark: Callable[[], str] | None = None, restore: Restore[P] | None = None
) -> P:
    """What all blocks of a job give, each counted once.

    Ctrl-C and SIGTERM wait until the blocks that were begun are counted and written down.

    - mark: a digest of the data and of all that the blocks depend on; a job without it has no checkpoint.
    - restore: a partial result from the arrays of a checkpoint and the blocks.
    """
    options.check()
    with HeldSignals() as signals:
        checkpoint, before = None, None
        if options.checkpoint is not None and mark is not None and restore is not None:
            checkpoint = Checkpoint(_checkpoint_path(options.checkpoint), mark())
            before = checkpoint.load(restore)
            checkpoint.save(before or job.worker().partial)  # now, not after hours, an error says that it cannot be
        signals.deliver()
        watch = RunWatch(job.n_blocks, options.progress, checkpoint, before, options.checkpoint_every, signals)
        counted = set() if before is None else before.blocks
        blocks = [block for block in range(job.n_blocks) if block not in counted]
        parts = [] if before is None else [before]
        if blocks or before is None:
            parts.append(options.runner().run(job, blocks, watch) if blocks else job.worker().partial)
        total = parts[0] if len(parts) == 1 else merge(parts)
        total.check_complete(job.n_blocks)
        if checkpoint is not None:
            checkpoint.remove()
    return total
