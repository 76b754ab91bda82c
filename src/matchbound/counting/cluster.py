"""Run blocks on a `dask.distributed` cluster: the same block function, tallies merged in a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matchbound.counting.partial import Partial, merge
from matchbound.counting.threads import one_blas_thread
from matchbound.errors import MatchboundError, MissingExtraError

if TYPE_CHECKING:
    from matchbound.counting.executors import Job, Watch

CHUNKS_PER_THREAD = 8
LAST = 0.2
SMALLER = 4
FAN_IN = 4
ATTEMPTS = 3


def run_on(client: Any, job: Job, blocks: Sequence[int], watch: Watch) -> Partial:
    """Tally the blocks on the cluster of a ``distributed.Client``, or of the scheduler at an address."""
    try:
        import distributed
    except ImportError:
        raise MissingExtraError("Dask is not installed; pip install 'matchbound[dask]'") from None
    if isinstance(client, str):
        connect: Any = distributed.Client
        with connect(client) as opened:
            return _Run(opened, job, blocks, watch).result()
    return _Run(client, job, blocks, watch).result()


def run_blocks(job: Job, blocks: Sequence[int]) -> Partial:
    """What a task of the cluster does."""
    one_blas_thread()  # from now on: a limit that ended with this task would end under the tasks of other threads
    worker = job.worker()
    for block in blocks:
        worker.add(block)
    return worker.partial


def merge_all(partials: Sequence[Partial]) -> Partial:
    """What a task of the cluster does to merge."""
    return merge(partials)


class _Run:
    """One job on one cluster."""

    def __init__(self, client: Any, job: Job, blocks: Sequence[int], watch: Watch) -> None:
        self._client = client
        self._job = job
        self._todo = list(blocks)
        self._watch = watch
        self._finished: dict[int, None] = {}
        self._kept: list[Partial] = []

    def result(self) -> Partial:
        for attempt in range(ATTEMPTS):
            try:
                return merge([*self._kept, self._attempt()])
            except Exception as error:
                lost = type(error).__name__ in {"CancelledError", "FutureCancelledError", "FuturesCancelledError"}
                if not lost or attempt == ATTEMPTS - 1:
                    raise
        raise MatchboundError("the cluster lost the data of the run again and again")

    def _attempt(self) -> Partial:
        """Submit what is left; raises where the cluster lost the data that were sent to it."""
        import distributed

        as_completed: Any = distributed.as_completed

        threads = max(1, sum(self._client.nthreads().values()))
        remote = self._client.scatter(self._job, broadcast=True, hash=False)
        chunks = _split(self._todo, CHUNKS_PER_THREAD * threads)
        covers = {self._client.submit(run_blocks, remote, chunk, pure=False, retries=2): chunk for chunk in chunks}
        roots: list[Any] = []
        counted: list[int] = []
        for future in as_completed(list(covers)):
            chunk = covers.pop(future)
            if future.status != "finished":
                future.result()
            counted += chunk
            roots.append(future)
            if len(roots) >= FAN_IN * FAN_IN:
                roots = self._shorter(roots)
            fresh = [block for block in chunk if block not in self._finished]
            for block in fresh:
                self._watch.done(block)
            self._finished |= dict.fromkeys(fresh)
            if self._watch.wants_snapshot():
                partial = self._root(roots).result()
                self._kept.append(partial)
                self._todo = [block for block in self._todo if block not in set(counted)]
                self._watch.snapshot(self._kept, list(self._finished))
                roots, counted = [], []
        if not roots:
            return self._kept.pop()
        result: Partial = self._root(roots).result()
        return result

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
