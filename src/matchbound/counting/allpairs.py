"""All pairs of a set of embeddings, scored block by block, tallied while in cache, and forgotten."""

from __future__ import annotations

import os
from typing import Any

from matchbound.arraytypes import FloatArray
from matchbound.counting.checkpoint import fingerprint
from matchbound.counting.executors import Executor, Progress
from matchbound.counting.job import AllPairsJob, Pruning, make_job
from matchbound.counting.partial import Partial, finish, sorted_thresholds, sums_may_wrap
from matchbound.counting.running import SNAPSHOT_SECONDS, How, Kind, run_all
from matchbound.counts.tally import Tally
from matchbound.data.embeddings import Embeddings
from matchbound.data.labels import label_bytes


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
    given, distinct, place = sorted_thresholds(thresholds, source.distance)
    kept = pairs or sums_may_wrap(source.instance_counts)  # sums of exact numbers per pair cannot wrap around
    job = make_job(source, distinct, kept, prune, workers)
    partial = run_job(source, job, "tally", How(workers, executor, progress, checkpoint, checkpoint_every))
    return finish(
        partial,
        source.identities,
        source.instance_counts,
        given,
        place,
        source.distance,
        kept,
        workers,
    )


def run_job(source: Embeddings, job: AllPairsJob | Any, purpose: str, how: How) -> Partial:
    """Run all blocks of a job, from a checkpoint where there is one; `purpose` tells checkpoints apart."""
    base: AllPairsJob = getattr(job, "base", job)
    shape = (base.n_identities, base.thresholds.size)

    def mark() -> str:
        return fingerprint(
            purpose, source.settled, source.codes, base.layout.order, label_bytes(source.identities), source.similarity,
            base.thresholds, base.pairs, base.layout.block_edges, base.layout.edges,
        )  # fmt: skip

    kind = Kind(mark, lambda state, blocks: Partial.restore(state, blocks, shape), 16 * shape[0] * shape[1])
    return run_all(job, lambda: Partial.empty(*shape), kind, how)
