"""Pairs of rows of embeddings: the genuine ones, numbered; impostor ones, at random; and those that erred."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.data.embeddings import Embeddings

# Impostor pairs are ranked among this many rows at most.
EXACT_ROWS = 3000
SAMPLE = 2_000_000
Kind = Literal["impostor", "genuine"]


@dataclass(frozen=True, eq=False)
class GenuinePairs:
    """The genuine pairs of rows, numbered 0, 1, … from one identity to the next.

    - order, shape (n,): rows by identity.
    - starts, ends, shape (G,): where an identity begins in `order`; how many pairs it and those before it have.
    """

    order: IntArray = field(repr=False)
    starts: IntArray = field(repr=False)
    ends: IntArray = field(repr=False)

    @classmethod
    def of(cls, source: Embeddings) -> GenuinePairs:
        counts = source.instance_counts
        order = np.argsort(source.codes, kind="stable")
        return cls(order, np.cumsum(counts) - counts, np.cumsum(counts * (counts - 1) // 2))

    def __len__(self) -> int:
        return int(self.ends[-1]) if self.ends.size else 0

    def rows(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        """The two rows of the pairs with these numbers, shape of `numbers` each.

        Pair r of an identity joins its rows number low < high with r = high·(high − 1)/2 + low.
        """
        owner = np.searchsorted(self.ends, numbers, side="right")
        rank = numbers - np.concatenate([[0], self.ends])[owner]
        high = ((1.0 + np.sqrt(1.0 + 8.0 * rank)) / 2.0).astype(np.int64)
        high -= high * (high - 1) // 2 > rank  # the square root may be off by one
        high += (high + 1) * high // 2 <= rank
        low = rank - high * (high - 1) // 2
        return self.order[self.starts[owner] + low], self.order[self.starts[owner] + high]

    def sample(self, size: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """All pairs, or, where there are more than `size`, so many at random, each as likely as any other."""
        total = len(self)
        return self.rows(np.arange(total) if total <= size else np.sort(rng.integers(0, total, size)))


def impostor_pairs(source: Embeddings, size: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """All impostor pairs of rows, or those among `size` random pairs, where there are more pairs than that."""
    n = len(source)
    if n * (n - 1) // 2 <= size:
        first, second = source.pairs()
    else:
        first = rng.integers(0, n, size)
        second = rng.integers(0, n - 1, size)
        second += second >= first
    kept = source.codes[first] != source.codes[second]
    return first[kept], second[kept]


@dataclass(frozen=True, eq=False)
class ErringRows:
    """Comparisons on the wrong side of a threshold, worst first, shape (E,): two rows; of a table, one row twice."""

    first: IntArray = field(repr=False)
    second: IntArray = field(repr=False)
    score: FloatArray = field(repr=False)


def worst(first: IntArray, second: IntArray, score: FloatArray, metric: str, distance: bool, most: int) -> ErringRows:
    """The farthest on the wrong side first; ties in the order of the data."""
    up = (metric == "frr") != distance
    order = np.lexsort((second, first, score if up else -score))[:most]
    return ErringRows(first[order], second[order], score[order])
