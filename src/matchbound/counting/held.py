"""What some blocks of a run have given: it knows which blocks those are, and merges with what others gave.

That is the only record of what was done. Two that share a block do not merge, one that was left half changed cannot be
used, and a run is complete when it holds every block once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, Self, TypeVar

from numpy.typing import NDArray

from matchbound.errors import MatchboundError


class Held(ABC):
    """What some blocks have given.

    blocks : set of int
        The blocks that are all in it, once each.
    sound : bool
        False while it is being changed, and for good when that was cut short.
    """

    blocks: set[int]
    sound: bool

    @abstractmethod
    def copy(self) -> Self:
        """The same, in arrays of its own."""

    @abstractmethod
    def join(self, other: Self, workers: int | None) -> None:
        """Take over what `other` holds; called by `add`, which has seen to it that the two share no block."""

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """All of it but the blocks, as arrays for a file."""

    def add(self, other: Self, workers: int | None = 1) -> None:
        """Add what other blocks have given; MatchboundError where a block is in both."""
        other.check()
        with self.taking(other.blocks):
            self.join(other, workers)

    @contextmanager
    def taking(self, blocks: Collection[int]) -> Iterator[None]:
        """Change it inside, by all that these blocks give; a change that is cut short spoils it.

        Raises
        ------
        MatchboundError
            Where one of the blocks is held already, or an earlier change was cut short.
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


class Worker(Protocol):
    """Adds what blocks give to a partial result of its own; used by one thread at a time.

    It is called through `count_block`, which writes down in that result which blocks it holds.
    """

    @property
    def partial(self) -> Held:
        """What its blocks gave so far."""

    def add(self, block: int) -> None:
        """Add what a block gives."""


def count_block(worker: Worker, block: int) -> None:
    """Count a block, and write down in what the worker holds that it is there."""
    with worker.partial.taking((block,)):
        worker.add(block)


H = TypeVar("H", bound=Held)


def merge(parts: Sequence[H]) -> H:
    """All of at least one, as a new one; MatchboundError where two of them share a block."""
    parts[0].check()
    total = parts[0].copy()
    for part in parts[1:]:
        total.add(part)
    return total
