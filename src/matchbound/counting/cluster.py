"""Run blocks on a `dask.distributed` cluster: the same block function, tallies merged in a tree.

What was counted is what the process that asked for it holds; whatever the cluster loses is counted again.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from matchbound.counting.held import Held, count_block, merge
from matchbound.counting.threads import one_blas_thread
from matchbound.errors import MatchboundError, MissingExtraError, plainly

if TYPE_CHECKING:
    from matchbound.counting.executors import Job, Watch

CHUNKS_PER_THREAD = 8
LAST = 0.2
SMALLER = 4
FAN_IN = 4
ATTEMPTS = 5
POLL_SECONDS = 0.2
STOP_SECONDS = 20.0
"""How long a run that is stopped waits for what workers have counted already."""


def run_on(client: Any, job: Job, blocks: Sequence[int], watch: Watch) -> Held:
    """Tally the blocks on the cluster of a ``distributed.Client``, or of the scheduler at an address."""
    with connected(client) as opened:
        return _Run(opened, job, blocks, watch).result()


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
    try:
        opened = Client(client, timeout=20, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise MatchboundError(f"no scheduler answers at {client} ({plainly(error, 200)})") from None
    try:
        yield opened
    finally:
        close(opened)


def close(client: Any) -> None:
    """Close a client; one whose scheduler is gone would log what it tried in vain."""
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]
    logs = [logging.getLogger(name) for name in names] if client.status != "running" else []
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL + 1)
    try:
        with contextlib.suppress(TimeoutError, OSError):
            client.close(timeout=5)
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


def run_blocks(job: Job, blocks: Sequence[int], n_blocks: int) -> Held:
    """What a task of the cluster does."""
    one_blas_thread()  # from now on: a limit that ended with this task would end under the tasks of other threads
    if job.n_blocks != n_blocks:
        raise MatchboundError("a worker cuts the comparisons into other blocks; install one version everywhere")
    worker = job.worker()
    for block in blocks:
        count_block(worker, block)
    return worker.partial


def merge_all(partials: Sequence[Held]) -> Held:
    """What a task of the cluster does to merge."""
    return merge(partials)


class _LostError(Exception):
    """The cluster has lost data or results of the run."""


class _Run:
    """One job on one cluster."""

    def __init__(self, client: Any, job: Job, blocks: Sequence[int], watch: Watch) -> None:
        self._client = client
        self._job = job
        self._blocks = list(blocks)
        self._watch = watch
        self._held: Any = None
        self._roots: list[Any] = []
        self._shown: set[int] = set()

    def result(self) -> Held:
        try:
            for _ in range(ATTEMPTS):
                todo = self._todo()
                if not todo:
                    break
                with contextlib.suppress(_LostError):
                    self._attempt(todo)
            if self._held is None or self._todo():
                raise MatchboundError("the cluster lost the data of the run again and again")
            held: Held = self._held
            return held
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

    def _sound(self) -> list[Held]:
        return [self._held] if self._held is not None and self._held.sound else []

    def _attempt(self, todo: Sequence[int]) -> None:
        """Submit the blocks that are not held and take in what they count; _LostError where the cluster lost some."""
        reports: SimpleQueue[Any] = SimpleQueue()
        self._roots = []
        with self._reachable():
            with self._watch.signals.at_once():
                threads = max(1, sum(self._client.nthreads().values()))
                remote = self._client.scatter(self._job, broadcast=True, hash=False)
            covers = {}
            for chunk in _split(todo, CHUNKS_PER_THREAD * threads):
                future = self._client.submit(run_blocks, remote, chunk, self._job.n_blocks, pure=False, retries=2)
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

    def _collect(self, timeout: float | None = None) -> None:
        """Fetch what finished tasks have counted, merged there, and add it to what this process holds."""
        if not self._roots:
            return
        root = self._root(self._roots)
        with self._watch.signals.at_once():
            partial = root.result(timeout=timeout)
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
        return [self._client.submit(merge_all, group, pure=False, retries=2) for group in groups]

    def _root(self, roots: Sequence[Any]) -> Any:
        while len(roots) > 1:
            roots = self._shorter(roots)
        return roots[0]


def _split(blocks: Sequence[int], count: int) -> list[list[int]]:
    """About `count` chunks, each with blocks of every kind.

    The last fifth is in smaller ones, so that workers end together.
    """
    n = len(blocks)
    stride = max(1, min(SMALLER * count, n))
    mixed = [block for first in range(stride) for block in blocks[first::stride]]
    chunks = []
    at = 0
    while at < n:
        share = count if at < (1 - LAST) * n else SMALLER * count
        size = max(1, n // share)
        chunks.append(mixed[at : at + size])
        at += size
    return chunks
