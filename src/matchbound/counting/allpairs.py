"""All pairs of a set of embeddings, scored block by block, tallied while in cache, and forgotten."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.counting.checkpoint import Checkpoint, fingerprint
from matchbound.counting.executors import Executor, LocalExecutor, Progress
from matchbound.counting.job import AllPairsJob, Pruning, make_job
from matchbound.counting.partial import Partial, finish, merge
from matchbound.counting.watch import RunWatch
from matchbound.counts.tally import Tally
from matchbound.data.embeddings import Embeddings
from matchbound.errors import UsageError


def tally_embeddings(
    source: Embeddings,
    thresholds: FloatArray,
    *,
    pairs: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    prune: Pruning | None = None,
) -> Tally:
    """Tally every pair of rows at every threshold; the counts are those of the float64 scores, exactly.

    Parameters
    ----------
    source
        The embeddings.
    thresholds
        Shape (K,), in any order; the tally has them in this order.
    pairs
        Whether to keep n_ij, the errors of each pair of identities, at each threshold.
    workers
        Threads on this machine; by default one a core. The result does not depend on it.
    progress
        Called as ``progress(done, total)`` from this thread after each block.
    executor
        Who runs the blocks; by default ``LocalExecutor(workers)``.
    checkpoint
        A file to write the state of the run to, and to resume from.
    prune
        How to rule comparisons out before they are scored; see `matchbound.counting.job.make_job`.
    """
    given = np.array(thresholds, dtype=np.float64).reshape(-1)
    if np.isnan(given).any():
        raise UsageError("thresholds holds NaN; a threshold must be a number")
    distinct, place = np.unique(-given if source.distance else given, return_inverse=True)
    job = make_job(source, distinct, pairs, prune, workers)
    partial = run_job(
        source, job, "tally", workers=workers, progress=progress, executor=executor, checkpoint=checkpoint
    )
    return finish(
        partial,
        source.identities,
        source.instance_counts,
        given,
        place.astype(np.int64).reshape(-1),
        source.distance,
        pairs,
        workers,
    )


def run_job(
    source: Embeddings,
    job: AllPairsJob | Any,
    purpose: str,
    *,
    workers: int | None,
    progress: Progress | None,
    executor: Executor | None,
    checkpoint: str | os.PathLike[str] | None,
) -> Partial:
    """Run all blocks of a job, from a checkpoint where there is one; `purpose` tells checkpoints apart."""
    if executor is not None and workers is not None:
        raise UsageError("give workers or executor, not both")
    base: AllPairsJob = getattr(job, "base", job)
    watch = _watch(source, base, purpose, progress, checkpoint)
    blocks = np.flatnonzero(~watch.done_blocks).tolist()
    parts = [] if watch.before is None else [watch.before]
    if blocks:
        parts.append((executor or LocalExecutor(workers)).run(job, blocks, watch))
    if watch.checkpoint is not None:
        watch.checkpoint.remove()
    if len(parts) == 1:
        return parts[0]
    return merge(parts) if parts else Partial.empty(base.n_identities, base.thresholds.size)


def _watch(
    source: Embeddings,
    job: AllPairsJob,
    purpose: str,
    progress: Progress | None,
    path: str | os.PathLike[str] | None,
) -> RunWatch:
    """A watch that goes on from what an earlier run left in the checkpoint."""
    fresh = np.zeros(job.n_blocks, dtype=np.bool_)
    if path is None:
        return RunWatch(fresh, progress)
    mark = fingerprint(
        purpose, source.vectors, source.codes, source.identities.astype(np.str_), source.similarity, job.thresholds,
        job.pairs, job.layout.block_edges, job.layout.edges,
    )  # fmt: skip
    checkpoint = Checkpoint(Path(path), mark)
    before, done = checkpoint.load(job.n_blocks) or (None, fresh)
    return RunWatch(done, progress, checkpoint, before)
