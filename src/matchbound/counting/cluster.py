"""Run blocks on a `dask.distributed` cluster: the same block function, tallies merged in a tree.

What was counted is what the process that asked for it holds; whatever the cluster loses is counted again. The arrays
of a job are sent to each worker process once, and serve every later job of the same executor that has them.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from matchbound.counting.checkpoint import fingerprint
from matchbound.counting.run import P, Partial, count_block, merge
from matchbound.counting.threads import one_blas_thread
from matchbound.errors import MatchboundError, MissingExtraError, plainly

if TYPE_CHECKING:
    from matchbound.counting.run import Job, RunWatch

CHUNKS_PER_THREAD = 16
FAN_IN = 4
ATTEMPTS = 5
LARGE_BYTES = 1 << 16
# How many arrays an executor leaves on the cluster for the next job.
MOST_SENT = 8
# How long a scheduler has to answer.
CONNECT_SECONDS = 4
POLL_SECONDS = 0.2
# How long a run that is stopped waits for what workers have counted already.
STOP_SECONDS = 20.0


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
    # Arrays that are on the cluster, by digest.
    _sent: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def run(self, job: Job[P], blocks: Sequence[int], watch: RunWatch) -> P:
        """Tally the blocks on the cluster.

        Parameters
        ----------
        job, blocks, watch
            As for `matchbound.counting.run.Executor.run`.
        """
        with connected(self.client) as opened:
            sent = self._sent if opened is self.client else {}
            partial: P = _Run(opened, job, blocks, watch, sent).result()
        return partial


@contextlib.contextmanager
def connected(client: Any) -> Iterator[Any]:
    """A client: the one that is given, or one that is opened for an address and closed at the end."""
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("Dask is not installed; pip install 'matchbound[dask]'") from None
    if not isinstance(client, str):
        yield client
        return
    # What a client of our own writes to the logs when its scheduler is gone, the error of the run says.
    levels = {name: logging.getLogger(name).level for name in ("distributed", "distributed.client")}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    opened: Any = None
    try:
        try:
            opened = Client(client, timeout=CONNECT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise MatchboundError(f"no scheduler answers at {client} ({plainly(error, 200)})") from None
        yield opened
    finally:
        if opened is not None:
            with contextlib.suppress(TimeoutError, OSError):
                opened.close(timeout=5)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


class SentJob:
    """A job on its way: what makes it, and its small parts. Each process that gets it makes the job once."""

    def __init__(self, make: Any, parts: tuple[Any, ...], places: tuple[int, ...]) -> None:
        self._sent = make, parts, places
        self._lock = threading.Lock()
        self._job: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return SentJob, self._sent

    @staticmethod
    def of(job: Any) -> tuple[SentJob, list[NDArray[Any]]]:
        """A job by what it says of how it travels (``__reduce__``), without its large arrays; and these."""
        make, parts = job.__reduce__()
        places = tuple(
            at for at, part in enumerate(parts) if isinstance(part, np.ndarray) and part.nbytes >= LARGE_BYTES
        )
        kept = tuple(None if at in places else part for at, part in enumerate(parts))
        return SentJob(make, kept, places), [np.ascontiguousarray(parts[at]) for at in places]

    def job(self, arrays: Sequence[NDArray[Any]]) -> Any:
        """The job with its large arrays put back, made by the first task that asks."""
        make, parts, places = self._sent
        with self._lock:
            if self._job is None:
                large = dict(zip(places, arrays, strict=True))
                self._job = make(*(large.get(at, part) for at, part in enumerate(parts)))
            return self._job


def run_blocks(sent: SentJob, arrays: Sequence[NDArray[Any]], blocks: Sequence[int], n_blocks: int) -> Partial:
    """What a task of the cluster does."""
    one_blas_thread()  # from now on: a limit that ended with this task would end under the tasks of other threads
    job = sent.job(arrays)
    if job.n_blocks != n_blocks:
        raise MatchboundError("a worker cuts the comparisons into other blocks; install one version everywhere")
    worker = job.worker()
    for block in blocks:
        count_block(worker, block)
    partial: Partial = worker.partial
    return partial


class _LostError(Exception):
    """The cluster has lost data or results of the run."""


class _Run:
    """One job on one cluster."""

    def __init__(
        self, client: Any, job: Job[Any], blocks: Sequence[int], watch: RunWatch, sent: dict[str, Any]
    ) -> None:
        self._client = client
        self._job, self._arrays = SentJob.of(job)
        self._names = [fingerprint(array) for array in self._arrays]
        self._sent = sent
        self._n_blocks = job.n_blocks
        self._blocks = list(blocks)
        self._watch = watch
        self._held: Any = None
        self._roots: list[Any] = []
        self._shown: set[int] = set()

    def result(self) -> Any:
        try:
            for _ in range(ATTEMPTS):
                todo = self._todo()
                if not todo:
                    break
                with contextlib.suppress(_LostError):
                    self._attempt(todo)
            if self._held is None or self._todo():
                raise MatchboundError("the cluster lost the data of the run again and again")
            return self._held
        except BaseException as error:
            try:
                if isinstance(error, KeyboardInterrupt) and self._client.status == "running":
                    with contextlib.suppress(Exception):
                        self._collect(STOP_SECONDS)
            finally:
                self._watch.snapshot(self._sound(), last=True)
            raise
        finally:
            self._roots = []

    def _todo(self) -> list[int]:
        held = set() if self._held is None else self._held.blocks
        return [block for block in self._blocks if block not in held]

    def _sound(self) -> list[Partial]:
        return [self._held] if self._held is not None and self._held.sound else []

    def _attempt(self, todo: Sequence[int]) -> None:
        """Submit the blocks that are not held and take in what they count; _LostError where the cluster lost some."""
        reports: SimpleQueue[Any] = SimpleQueue()
        self._roots = []
        with self._reachable():
            with self._watch.signals.at_once():
                threads = max(1, sum(self._client.nthreads().values()))
                sent = self._client.scatter(self._job, broadcast=True, hash=False)
                arrays = [self._on_cluster(k) for k in range(len(self._arrays))]
            covers = {}
            count = min(CHUNKS_PER_THREAD * threads, len(todo))
            for chunk in (list(todo[first::count]) for first in range(count)):  # with early and late blocks in each
                future = self._client.submit(run_blocks, sent, arrays, chunk, self._n_blocks, pure=False, retries=2)
                covers[future.key] = chunk
                self._roots.append(future)
            waiting, self._roots = self._roots, []
            for future in waiting:
                future.add_done_callback(reports.put)
            while covers:
                self._watch.signals.deliver()
                try:
                    future = reports.get(timeout=POLL_SECONDS)
                except Empty:
                    continue
                if future.status in ("error", "cancelled"):
                    future.result(timeout=STOP_SECONDS)  # raises what went wrong there
                chunk = covers.pop(future.key)
                self._roots.append(future)
                if len(self._roots) >= FAN_IN * FAN_IN:
                    self._roots = self._shorter(self._roots)
                fresh = set(chunk) - self._shown
                self._shown |= fresh
                self._watch.done(len(fresh))
                if self._watch.wants_snapshot():
                    self._collect()
                    self._watch.snapshot(self._sound())
            self._collect()

    def _on_cluster(self, k: int) -> Any:
        """The k-th array of the job, which is sent unless it is there."""
        name = self._names[k]
        there = self._sent.pop(name, None)
        if there is None or there.status != "finished":
            there = self._client.scatter(self._arrays[k], broadcast=True, hash=False)
        self._sent[name] = there  # the last one used is the last one
        while len(self._sent) > max(MOST_SENT, len(self._names)):
            self._sent.pop(next(iter(self._sent)))
        return there

    def _collect(self, timeout: float | None = None) -> None:
        """Fetch what finished tasks have counted, merged there, and add it to what this process holds."""
        if not self._roots:
            return
        while len(self._roots) > 1:
            self._roots = self._shorter(self._roots)
        with self._watch.signals.at_once():
            partial = self._roots[0].result(timeout=timeout)
        if self._held is None:
            self._held = merge([partial])  # what comes from a worker may be shared with it, or read-only
        else:
            self._held.add(partial)
        self._roots = []

    @contextlib.contextmanager
    def _reachable(self) -> Iterator[None]:
        """Turn what goes wrong on a cluster into _LostError, or into one clear error."""
        try:
            yield
        except MatchboundError:
            raise
        except Exception as error:
            if self._client.status != "running":
                raise MatchboundError(
                    "the connection to the Dask scheduler was lost; with a checkpoint, the same call goes on from there"
                ) from error
            if isinstance(error, CancelledError):
                self._sent.clear()
                raise _LostError from error
            if type(error).__name__ == "KilledWorker":
                raise MatchboundError(
                    "workers of the cluster died again and again while they counted; give them more memory"
                ) from error
            raise MatchboundError(
                f"the cluster cannot count these data ({type(error).__name__}: {plainly(error, 200)})"
            ) from error

    def _shorter(self, roots: Sequence[Any]) -> list[Any]:
        groups = (list(roots[at : at + FAN_IN]) for at in range(0, len(roots), FAN_IN))
        return [self._client.submit(merge, group, pure=False, retries=2) for group in groups]
