"""Slow and literal twins of how pairs of rows are listed."""

from __future__ import annotations

from collections.abc import Sequence


def genuine_pairs_by_loop(codes: Sequence[int]) -> set[tuple[int, int]]:
    """All (i, j), i < j, with the same code."""
    n = len(codes)
    return {(i, j) for i in range(n) for j in range(i + 1, n) if codes[i] == codes[j]}
