"""Impostor comparisons as one 64-bit word each, and the sums over identity pairs that sorted words give.

A word holds the identity pair and, in its last bits, the number of thresholds that the comparison misses. Sorted words
have the comparisons of a pair side by side, strictest crossing first. Of c comparisons that cross together after r of
their pair did, n_ij² grows by (r + c)² − r², so that the second moments at all K thresholds come from one pass. Equal
words are counted together: a pair that is compared a million times takes no more room than its crossings.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import IntArray
from matchbound.counts.tally import RowSums
from matchbound.errors import DataError

Words = NDArray[np.uint64]

WORD_BITS = 64
WORK_ROWS = 1 << 20
"""How many words are looked at together."""


@dataclass(frozen=True)
class WordBits:
    """How the 64 bits of a word are used: twice `code` bits for the identities, and `bins` for missed thresholds."""

    code: int
    bins: int

    @staticmethod
    def of(n_identities: int) -> WordBits:
        """As few bits as will do for the identities, and the rest for thresholds."""
        code = max(n_identities - 1, 1).bit_length()
        return WordBits(code, WORD_BITS - 2 * code)

    @property
    def most(self) -> int:
        """How many thresholds there are bits for."""
        return (1 << max(self.bins, 1)) - 1

    def words(self, a: IntArray, b: IntArray, missed: IntArray) -> Words:
        """The words of comparisons of identities a ≠ b, in either order, that miss so many thresholds."""
        made = np.minimum(a, b).astype(np.uint64)
        made <<= np.uint64(self.code)
        made |= np.maximum(a, b).astype(np.uint64)
        made <<= np.uint64(self.bins)
        made |= missed.astype(np.uint64)
        return made

    def pairs(self, words: Words) -> Words:
        """The identity pair of each word, as a number."""
        return words >> np.uint64(self.bins)

    def identities(self, pairs: Words) -> tuple[IntArray, IntArray]:
        """The two identities of each pair, the smaller one first."""
        low = pairs & np.uint64(2**self.code - 1)
        return (pairs >> np.uint64(self.code)).astype(np.int64), low.astype(np.int64)

    def missed(self, words: Words) -> IntArray:
        """How many thresholds each word misses."""
        return (words & np.uint64(2**self.bins - 1)).astype(np.int64)


class _ByBin:
    """What each threshold adds to Σn² and Σnm, shape (2, K)."""

    _by_bin: IntArray

    @property
    def sum_nn(self) -> IntArray:
        """Σ n_ij² at each threshold, shape (K,)."""
        return np.cumsum(self._by_bin[0, ::-1])[::-1]

    @property
    def sum_nm(self) -> IntArray:
        """Σ n_ij·m_ij at each threshold, shape (K,)."""
        return np.cumsum(self._by_bin[1, ::-1])[::-1]


class PairSums(_ByBin):
    """Σm², and what each threshold adds to Σn² and Σnm, over unordered pairs.

    Parameters
    ----------
    levels
        K, the number of thresholds.
    compared, erred
        Keep m_ij, and n_ij at each threshold.
    """

    def __init__(self, bits: WordBits, levels: int, *, compared: bool, erred: bool) -> None:
        self.squares = 0
        self._by_bin = np.zeros((2, levels), dtype=np.int64)
        self._bits, self._levels = bits, levels
        self._compared: list[tuple[Words, IntArray]] | None = [] if compared else None
        self._erred: list[list[tuple[Words, IntArray]]] | None = [[] for _ in range(levels)] if erred else None

    def add(self, words: Words) -> None:
        """Count sorted words; every word of their pairs must be among them."""
        for distinct, count in _whole_pairs(_runs(words), self._bits):
            self._count(distinct, count)

    def compared(self) -> tuple[IntArray, IntArray, IntArray]:
        """The identities of each pair and m_ij, in the order of the words; they are given once."""
        assert self._compared is not None
        return self._table(self._compared)

    def erred(self, level: int) -> tuple[IntArray, IntArray, IntArray]:
        """The identities of each pair with an error at a threshold, and n_ij, in the order of the words; once."""
        assert self._erred is not None
        return self._table(self._erred[level])

    def _table(self, kept: list[tuple[Words, IntArray]]) -> tuple[IntArray, IntArray, IntArray]:
        size = sum(pairs.size for pairs, _ in kept)
        first, second, count = (np.empty(size, dtype=np.int64) for _ in range(3))
        while kept:  # from the end, so that what was moved is given back
            pairs, made = kept.pop()
            rows = slice(size - pairs.size, size)
            first[rows], second[rows] = self._bits.identities(pairs)
            count[rows] = made
            size -= pairs.size
        return first, second, count

    def _count(self, words: Words, count: IntArray) -> None:
        """Distinct words, whole pairs of them, and how often each occurs."""
        pairs = self._bits.pairs(words)
        starts = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1]))
        sizes = np.add.reduceat(count, starts)
        most = float(sizes.max())
        squares = sizes * sizes if most * most * sizes.size < 2.0**62 else sizes.astype(object) ** 2
        self.squares += int(squares.sum())
        reach = self._levels - self._bits.missed(words)
        hit = np.flatnonzero(reach)  # the first words of a pair, so that all words before them in the pair are hits
        owner = np.searchsorted(starts, hit, side="right") - 1
        after = np.cumsum(count)
        made = count[hit]
        before = (after[hit] - made) - (after[starts] - count[starts])[owner]
        np.add.at(self._by_bin[0], reach[hit] - 1, made * (2 * before + made))
        np.add.at(self._by_bin[1], reach[hit] - 1, made * sizes[owner])
        if self._compared is not None:
            self._compared.append((pairs[starts], sizes))
        for level, kept in enumerate(self._erred or ()):
            found = np.add.reduceat(np.where(reach > level, count, 0), starts)
            erring = np.flatnonzero(found)
            if erring.size:
                kept.append((pairs[starts[erring]], found[erring]))


class PairRows(_ByBin):
    """The same sums by a compiled kernel, and what the rows of m_ij and n_ij sum to at some thresholds.

    Parameters
    ----------
    levels
        K, the number of thresholds.
    compared : int64 array, shape (G,)
        Impostor comparisons of each identity.
    erred : int64 array, shape (L, G)
        Those that reach the thresholds of `marks`.
    marks : int64 array, shape (L,)
        At which of the K thresholds rows are summed.
    """

    def __init__(self, bits: WordBits, levels: int, compared: IntArray, erred: IntArray, marks: IntArray) -> None:
        self._bits, self._marks = (bits.code, bits.bins), marks
        self._by_bin = np.zeros((2, levels), dtype=np.int64)
        self._compared = compared.astype(np.float64)
        self._erred = np.ascontiguousarray(erred.T, dtype=np.float64)
        self._rows = np.zeros((compared.size, 2 + 5 * marks.size))
        self._sizes: dict[int, int] = {}

    @staticmethod
    def of(bits: WordBits, reached: IntArray, marks: IntArray) -> PairRows:
        """From the impostor comparisons of each identity that reached at least 0, 1, …, K thresholds, (K + 1, G)."""
        return PairRows(bits, reached.shape[0] - 1, reached[0], reached[1:][marks], marks)

    def copy(self) -> PairRows:
        """The same, in arrays of its own."""
        made = copy.copy(self)
        made._by_bin, made._rows, made._sizes = self._by_bin.copy(), self._rows.copy(), dict(self._sizes)
        return made

    def join(self, other: PairRows) -> None:
        """Add the sums over other pairs of the same table."""
        self._by_bin += other._by_bin
        self._rows += other._rows
        for size, count in other._sizes.items():
            self._sizes[size] = self._sizes.get(size, 0) + count

    def state(self) -> dict[str, NDArray[Any]]:
        """The sums, as arrays for a file."""
        sizes = np.array(sorted(self._sizes.items()), dtype=np.int64).reshape(-1, 2)
        return {"by_bin": self._by_bin, "rows": self._rows, "sizes": sizes}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave; DataError where it cannot be of this run."""
        mine = self.state()
        if set(state) != set(mine) or any(state[name].dtype != mine[name].dtype for name in mine):
            raise DataError("sums of another kind")
        if any(state[name].shape != mine[name].shape for name in ("by_bin", "rows")) or state["sizes"].shape[1:] != (
            2,
        ):
            raise DataError("sums of another shape")
        self._by_bin, self._rows = state["by_bin"].copy(), state["rows"].copy()
        self._sizes = dict(state["sizes"].tolist())

    @property
    def words(self) -> int:
        """How many words were summed."""
        return sum(size * pairs for size, pairs in self._sizes.items())

    @property
    def squares(self) -> int:
        """Σ m_ij² over unordered pairs."""
        return sum(size * size * pairs for size, pairs in self._sizes.items())

    def add(self, words: Words) -> None:
        """Count sorted words, which are gone then; every word of their pairs must be among them."""
        from matchbound.kernels.rows import sum_pairs

        pairs = sum_pairs(words, self._bits, self._marks, self._compared, self._erred, self._by_bin, self._rows)
        sizes = words[:pairs].view(np.int64)
        if int(sizes.max(initial=0)) <= max(pairs, 1_000_000):
            times = np.bincount(sizes)
            sizes = np.flatnonzero(times)
            times = times[sizes]
        else:
            sizes, times = np.unique(sizes, return_counts=True)
        for size, count in zip(sizes.tolist(), times.tolist(), strict=True):
            self._sizes[size] = self._sizes.get(size, 0) + count

    def rows(self) -> RowSums:
        """What the rows sum to at the marked thresholds."""
        ms, nn, nm, ns, nm_i = (np.ascontiguousarray(self._rows[:, 2 + at :: 5].T) for at in range(5))
        mm, mm_i = self._rows[:, 0].copy(), self._rows[:, 1].copy()
        sizes = sorted(self._sizes)
        counted = np.array(sizes, dtype=np.int64), np.array([self._sizes[size] for size in sizes], dtype=np.int64)
        return RowSums(mm, mm_i, ms, nn, nm, ns, nm_i, *counted)


def part_of(pairs: Words, bits: int) -> NDArray[np.uint16]:
    """Which of 2^bits parts an identity pair belongs to: a hash, so that parts are of like size."""
    if not bits:
        return np.zeros(pairs.size, dtype=np.uint16)
    with np.errstate(over="ignore"):
        mixed = pairs * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(WORD_BITS - bits)).astype(np.uint16)


def _runs(words: Words) -> Iterator[tuple[Words, IntArray]]:
    """The distinct words of sorted ones and how often each occurs, some at a time; a word may come twice in a row."""
    for start in range(0, words.size, WORK_ROWS):
        part = words[start : start + WORK_ROWS]
        first = np.flatnonzero(np.append(True, part[1:] != part[:-1]))
        yield part[first], np.diff(np.append(first, part.size))


def _whole_pairs(runs: Iterable[tuple[Words, IntArray]], bits: WordBits) -> Iterator[tuple[Words, IntArray]]:
    """The same runs, cut between identity pairs; a word that came twice in a row comes once."""
    words, count = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    for more, times in runs:
        if words.size and words[-1] == more[0]:
            times[0] += count[-1]
            words, count = words[:-1], count[:-1]
        words, count = np.concatenate([words, more]), np.concatenate([count, times])
        pairs = bits.pairs(words)
        cut = int(np.searchsorted(pairs, pairs[-1]))
        if cut:
            yield words[:cut], count[:cut]
        words, count = words[cut:], count[cut:]
    if words.size:
        yield words, count
