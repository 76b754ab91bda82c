"""Pairs of rows of embeddings: the genuine ones, numbered; impostor ones, at random; scores of blocks, and ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.counting.threads import one_blas_thread
from matchbound.data.embeddings import Embeddings

# Impostor pairs are ranked among this many rows at most.
EXACT_ROWS = 3000
SAMPLE = 2_000_000
BLOCK = 512
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


class BlockScores:
    """Scores of blocks of rows with all rows from their first on, by products of float32: right but for rounding."""

    def __init__(self, vectors: NDArray[Any], similarity: str) -> None:
        self.distance = similarity == "euclidean"
        if similarity == "cosine":  # lengths do not matter, and squares of long or short rows could not be held
            vectors = np.ldexp(vectors, -np.frexp(np.abs(vectors).max(axis=1, keepdims=True))[1])
        rows = np.asarray(vectors, dtype=np.float32)
        squares = np.einsum("ij,ij->i", rows, rows)
        reach = float(squares.max(initial=0.0))
        if similarity == "cosine":
            rows, reach = rows / np.sqrt(squares)[:, None], 1.0
        self._vectors, self._squares = rows, squares
        self._slack = 16.0 * (rows.shape[1] + 8) * float(np.finfo(rows.dtype).eps) * reach

    def block(self, start: int, stop: int) -> NDArray[np.float32]:
        """Scores of rows start..stop − 1 with all from `start` on, shape (stop − start, n − start)."""
        product: NDArray[np.float32] = self._vectors[start:stop] @ self._vectors[start:].T
        if not self.distance:
            return product
        product *= -2.0
        product += self._squares[start:stop, None]
        product += self._squares[start:]
        return np.sqrt(np.maximum(product, 0.0))

    def band(self, threshold: float) -> tuple[float, float]:
        """From which score of a block on, and up to which, rounding may have moved a score across a threshold.

        A sum of d products is off by at most d·u·Σ|x_k·y_k| (Higham, Accuracy and Stability of Numerical Algorithms,
        2002, §3.1). For distances that holds of their squares, so that the band is wider where they are small.
        """
        if not self.distance:
            return threshold - self._slack, threshold + self._slack
        square = threshold * threshold
        return float(np.sqrt(max(square - self._slack, 0.0))), float(np.sqrt(square + self._slack))


def impostor_products(source: Embeddings, rows: IntArray) -> NDArray[np.float32]:
    """Similarities of all impostor pairs among some rows, in single precision."""
    parts = [np.empty(0, dtype=np.float32)]
    scores = BlockScores(source.vectors[rows], source.similarity)
    for _, block, later in _impostor_blocks(scores, source.codes[rows]):
        parts.append(-block[later] if source.distance else block[later])
    return np.concatenate(parts)


def pairs_near(source: Embeddings, thresholds: FloatArray) -> tuple[IntArray, IntArray]:
    """Impostor pairs whose scores rounding may have moved across a threshold: rows (first, second)."""
    scores = BlockScores(source.vectors, source.similarity)
    bands = np.array(sorted(scores.band(float(t)) for t in thresholds))
    apart = bands[1:, 0] > np.maximum.accumulate(bands[:, 1])[:-1]
    starts = np.concatenate([[0], np.flatnonzero(apart) + 1])
    stops = np.maximum.reduceat(bands[:, 1], starts)
    edges = np.stack([bands[starts, 0], stops], axis=1).reshape(-1).astype(np.float32)
    firsts, seconds = [], []
    for start, block, later in _impostor_blocks(scores, source.codes):
        first, second = np.nonzero(later)
        inside = np.flatnonzero(np.searchsorted(edges, block[first, second]) % 2 == 1)
        firsts.append(first[inside] + start)
        seconds.append(second[inside] + start)
    return np.concatenate(firsts), np.concatenate(seconds)


def _impostor_blocks(scores: BlockScores, codes: IntArray) -> Iterator[tuple[int, NDArray[Any], BoolArray]]:
    """Blocks of rows from `start` on with all rows from there on: (start, scores, which are impostor pairs)."""
    for start in range(0, codes.size, BLOCK):
        with one_blas_thread():  # a block is so small that a second thread only gets in the way
            block = scores.block(start, start + BLOCK)
        later = np.arange(block.shape[0])[:, None] < np.arange(block.shape[1])
        yield start, block, later & (codes[start : start + BLOCK, None] != codes[start:])


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
