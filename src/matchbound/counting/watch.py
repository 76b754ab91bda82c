"""Follow a run: progress for the caller, checkpoints for the next run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from matchbound.counting.checkpoint import Checkpoint
from matchbound.counting.executors import Progress
from matchbound.counting.partial import Partial, merge

SNAPSHOT_SECONDS = 30.0


@dataclass(eq=False)
class RunWatch:
    """Tells `progress` about blocks as they are done, and the checkpoint about the state now and then.

    before
        What an earlier run had counted, of the blocks that are `done` from the start.
    """

    done_blocks: NDArray[np.bool_]
    progress: Progress | None = None
    checkpoint: Checkpoint | None = None
    before: Partial | None = None
    every: float = SNAPSHOT_SECONDS
    _last: float = field(default_factory=time.monotonic)
    _count: int = 0

    def __post_init__(self) -> None:
        self._count = int(self.done_blocks.sum())

    def done(self, block: int) -> None:
        """A block is done."""
        self._count += 1
        if self.progress is not None:
            self.progress(self._count, self.done_blocks.size)

    def wants_snapshot(self) -> bool:
        """Whether it is time to write the state down."""
        return self.checkpoint is not None and time.monotonic() - self._last >= self.every

    def snapshot(self, partials: Sequence[Partial], blocks: Sequence[int]) -> None:
        """Write down what was counted before and in this run."""
        if self.checkpoint is None:
            return
        done = self.done_blocks.copy()
        done[list(blocks)] = True
        known = [] if self.before is None else [self.before]
        self.checkpoint.save(merge([*known, *partials]), done)
        self._last = time.monotonic()
