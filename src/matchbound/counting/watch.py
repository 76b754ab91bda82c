"""Follow a run: progress for the caller, checkpoints for the next run."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

from matchbound.counting.checkpoint import Checkpoint
from matchbound.counting.executors import Progress
from matchbound.counting.held import Held, merge
from matchbound.counting.signals import HeldSignals
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.notes import Note

SHARE = 4.0
"""A snapshot is followed by at least so many times as long without one."""


@dataclass(eq=False)
class RunWatch:
    """Tells `progress` about blocks as they are done, and the checkpoint about the state now and then.

    before
        What an earlier run had counted.
    every
        Seconds between snapshots; 0 for one after each block.
    """

    n_blocks: int
    progress: Progress | None = None
    checkpoint: Checkpoint | None = None
    before: Held | None = None
    every: float = 30.0
    signals: HeldSignals = field(default_factory=HeldSignals)

    def __post_init__(self) -> None:
        self._done = 0 if self.before is None else len(self.before.blocks)
        self._next = time.monotonic() + self.every

    def done(self, blocks: int) -> None:
        """So many more blocks are done."""
        for _ in range(blocks):
            self._done += 1
            if self.progress is not None:
                self.progress(self._done, self.n_blocks)

    def wants_snapshot(self) -> bool:
        """Whether it is time to write the state down."""
        return self.checkpoint is not None and time.monotonic() >= self._next

    def snapshot(self, parts: Sequence[Held], *, last: bool = False) -> None:
        """Write down what was counted before and in this run.

        Where that cannot be done any more, the run goes on and warns; the last snapshot of a run raises instead.
        """
        known = [*([] if self.before is None else [self.before]), *parts]
        if self.checkpoint is None or not known:
            return
        began = time.monotonic()
        try:
            self.checkpoint.save(merge(known))
        except DataError as error:
            if last:
                raise
            warnings.warn(Note("no-checkpoint", f"{error}; the run goes on without"), MatchboundWarning, stacklevel=2)
        now = time.monotonic()
        self._next = now + max(self.every, SHARE * (now - began))


def check_every(seconds: float) -> float:
    """The seconds between snapshots, as a number that can be that."""
    try:
        every = float(seconds)
    except (TypeError, ValueError):
        every = math.nan
    if not 0.0 <= every < math.inf:
        raise UsageError(f"checkpoint_every must be a number of seconds, 0 or more; got {seconds!r}")
    return every
