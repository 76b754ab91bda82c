"""Tally the rows of a score table: book each row at the thresholds it reaches, and sum over the pairs of sorted words.

A word holds an identity pair and, in its last bits, the number of thresholds that a comparison misses
(`matchbound.counting.pair_words`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchbound.kernels.compiling import compiled


@compiled()
def merge_steps(genuine: Any, impostor: Any, thresholds: Any, matched: Any, missed: Any) -> int:
    """The steps of the curve of two sorted arrays, strictest first; returns how many there are.

    genuine, impostor : float64 arrays, shapes (T,) and (N,)
        Similarities of either kind, increasing.
    thresholds, matched, missed : arrays of at least T + N cells, written
        The distinct similarities, decreasing; impostor ones that are at least as large, and genuine ones that are
        smaller.
    """
    g, i = genuine.size, impostor.size
    step = 0
    while g > 0 or i > 0:
        if i == 0 or (g > 0 and genuine[g - 1] > impostor[i - 1]):
            value = genuine[g - 1]
        else:
            value = impostor[i - 1]
        while i > 0 and impostor[i - 1] == value:
            i -= 1
        while g > 0 and genuine[g - 1] == value:
            g -= 1
        thresholds[step] = value
        matched[step] = impostor.size - i
        missed[step] = g
        step += 1
    return step


@compiled()
def book_rows(a: Any, b: Any, score: Any, sign: float, grid: Any, bits: Any, tables: Any, words: Any) -> int:
    """Count rows by identity and thresholds reached, and write the words of impostor rows; returns how many.

    a, b : int64 arrays, shape (n,)
        The identities of each row.
    score : float64 array, shape (n,)
    sign : float
        −1 where small scores mean "same".
    grid : float64 array, shape (K,)
        Similarities, increasing.
    bits : (int, int)
        The bits of a word for an identity, and for missed thresholds.
    tables : (int64 array, int64 array), shapes (K + 1, G), added to
        Genuine and impostor rows that reach exactly so many thresholds, an impostor one at both of its identities.
    words : uint64 array, at least as long as there are impostor rows, written
    """
    genuine, impostor = tables
    code, bins = np.uint64(bits[0]), np.uint64(bits[1])
    levels = grid.size
    filled = 0
    for row in range(a.size):
        value = sign * score[row]
        reach, left = 0, levels
        while left > 0:
            half = (left + 1) >> 1
            reach += half if grid[reach + half - 1] <= value else 0
            left -= half
        i, j = a[row], b[row]
        if i == j:
            genuine[reach, i] += 1
        else:
            impostor[reach, i] += 1
            impostor[reach, j] += 1
            low, high = np.uint64(min(i, j)), np.uint64(max(i, j))
            words[filled] = (((low << code) | high) << bins) | np.uint64(levels - reach)
            filled += 1
    return filled


@compiled()
def sum_pairs(words: Any, bits: Any, marks: Any, compared: Any, erred: Any, by_bin: Any, rows: Any) -> int:
    """Sums over the identity pairs of sorted words; m_ij of each pair replaces the first words; returns how many pairs.

    words : uint64 array, shape (n,), written
        All words of each pair that occurs.
    bits : (int, int)
        As in `book_rows`.
    marks : int64 array, shape (L,)
        Thresholds at which the rows of n_ij are summed, by number.
    compared : float64 array, shape (G,)
        m_i.
    erred : float64 array, shape (G, L)
        S_i at the thresholds of `marks`.
    by_bin : int64 array, shape (2, K), added to
        What each threshold adds to Σn² and Σnm over unordered pairs.
    rows : float64 array, shape (G, 2 + 5·L), added to; not looked at where L = 0
        For each h: Σm_ih², Σm_ih·m_i, and for each mark Σm_ih·S_i, Σn_ih², Σn_ih·m_ih, Σn_ih·S_i, Σn_ih·m_i.
    """
    code, bins = np.uint64(bits[0]), np.uint64(bits[1])
    whose, missed = np.uint64((1 << bits[0]) - 1), np.uint64((1 << bits[1]) - 1)
    levels = by_bin.shape[1]
    n = np.zeros(marks.size)
    pairs = 0
    at = 0
    while at < words.size:
        pair = words[at] >> bins
        stop = at + 1
        while stop < words.size and words[stop] >> bins == pair:
            stop += 1
        size = stop - at
        for c in range(at, stop):
            reach = levels - np.int64(words[c] & missed)
            if reach == 0:  # and so do all that follow
                break
            by_bin[0, reach - 1] += 2 * (c - at) + 1
            by_bin[1, reach - 1] += size
            for k in range(marks.size):
                n[k] += reach > marks[k]
        if marks.size:
            i, j = np.int64(pair >> code), np.int64(pair & whose)
            m = float(size)
            rows[i, 0] += m * m
            rows[j, 0] += m * m
            rows[i, 1] += m * compared[j]
            rows[j, 1] += m * compared[i]
            for k in range(marks.size):
                to = 2 + 5 * k
                rows[i, to] += m * erred[j, k]
                rows[j, to] += m * erred[i, k]
                if n[k] > 0.0:
                    rows[i, to + 1] += n[k] * n[k]
                    rows[j, to + 1] += n[k] * n[k]
                    rows[i, to + 2] += n[k] * m
                    rows[j, to + 2] += n[k] * m
                    rows[i, to + 3] += n[k] * erred[j, k]
                    rows[j, to + 3] += n[k] * erred[i, k]
                    rows[i, to + 4] += n[k] * compared[j]
                    rows[j, to + 4] += n[k] * compared[i]
                    n[k] = 0.0
        words[pairs] = size
        pairs += 1
        at = stop
    return pairs
