"""All pairs of a set of embeddings, scored block by block, tallied while in cache, and forgotten."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.counting.checkpoint import Checkpoint, fingerprint
from matchbound.counting.executors import Executor, LocalExecutor, Progress
from matchbound.counting.job import AllPairsJob, Pruning, make_job
from matchbound.counting.partial import Partial, finish, merge, sums_may_wrap
from matchbound.counting.signals import HeldSignals
from matchbound.counting.watch import SNAPSHOT_SECONDS, RunWatch, check_every
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
    checkpoint_every: float = SNAPSHOT_SECONDS,
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
        Threads on this machine; by default one per core. The result does not depend on it.
    progress
        Called as ``progress(done, total)`` from this thread after each block.
    executor
        Who runs the blocks; by default ``LocalExecutor(workers)``.
    checkpoint
        A file to write the state of the run to, and to resume from.
    checkpoint_every
        Seconds between two states that are written.
    prune
        How to rule comparisons out before they are scored; see `matchbound.counting.job.make_job`.
    """
    given = np.array(thresholds, dtype=np.float64).reshape(-1)
    if np.isnan(given).any():
        raise UsageError("thresholds holds NaN; a threshold must be a number")
    distinct, place = np.unique(-given if source.distance else given, return_inverse=True)
    kept = pairs or sums_may_wrap(source.instance_counts)  # sums of exact numbers per pair cannot wrap around
    job = make_job(source, distinct, kept, prune, workers)
    partial = run_job(
        source,
        job,
        "tally",
        workers=workers,
        progress=progress,
        executor=executor,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
    return finish(
        partial,
        source.identities,
        source.instance_counts,
        given,
        place.astype(np.int64).reshape(-1),
        source.distance,
        kept,
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
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = SNAPSHOT_SECONDS,
) -> Partial:
    """Run all blocks of a job, from a checkpoint where there is one; `purpose` tells checkpoints apart.

    Ctrl-C and SIGTERM wait until the blocks that were begun are counted and written down.
    """
    if executor is not None and workers is not None:
        raise UsageError("give workers or executor, not both")
    every = check_every(checkpoint_every)
    base: AllPairsJob = getattr(job, "base", job)
    with HeldSignals() as signals:
        watch = RunWatch(job.n_blocks, progress, every=every, signals=signals)
        if checkpoint is not None:
            shape = (base.n_identities, base.thresholds.size)
            watch.checkpoint = Checkpoint(_place(checkpoint), _mark(source, base, purpose))
            watch.checkpoint.prepare(16 * shape[0] * shape[1])
            watch = replace(watch, before=watch.checkpoint.load(job.n_blocks, shape))
        signals.deliver()
        held = set() if watch.before is None else watch.before.blocks
        blocks = [block for block in range(job.n_blocks) if block not in held]
        parts = [] if watch.before is None else [watch.before]
        if blocks:
            parts.append((executor or LocalExecutor(workers)).run(job, blocks, watch))
        if not parts:
            parts = [Partial.empty(base.n_identities, base.thresholds.size)]
        total = parts[0] if len(parts) == 1 else merge(parts)
        total.check_complete(job.n_blocks)
        if watch.checkpoint is not None:
            watch.checkpoint.remove()
    return total


def _place(path: str | os.PathLike[str]) -> Path:
    name = os.fspath(path)
    if not name or "\0" in name:
        raise UsageError(f"checkpoint must be the name of a file; got {name!r}")
    return Path(name)


def _mark(source: Embeddings, job: AllPairsJob, purpose: str) -> str:
    """Which run a checkpoint belongs to."""
    return fingerprint(
        purpose, source.vectors, source.codes, source.identities.astype(np.str_), source.similarity, job.thresholds,
        job.pairs, job.layout.block_edges, job.layout.edges,
    )  # fmt: skip
