"""Slow, literal twins of the laboratory: distances one at a time, coverage counted one interval at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence


def rows_of(vectors: Sequence[Sequence[float]], owners: Sequence[int], similarity: str) -> list[tuple[str, str, float]]:
    """All comparisons as (identity, identity, score)."""
    rows = []
    for i in range(len(owners)):
        for j in range(i + 1, len(owners)):
            x, y = vectors[i], vectors[j]
            if similarity == "euclidean":
                score = math.sqrt(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))
            else:
                score = sum(a * b for a, b in zip(x, y, strict=True))
                if similarity == "cosine":
                    score /= math.sqrt(sum(a * a for a in x)) * math.sqrt(sum(b * b for b in y))
            rows.append((str(owners[i]), str(owners[j]), score))
    return rows


def coverage(intervals: Sequence[tuple[float, float]], truth: float) -> tuple[float, float, float]:
    """(covered, below the truth, above the truth) as shares."""
    covered = below = above = 0
    for low, high in intervals:
        if high < truth:
            below += 1
        elif low > truth:
            above += 1
        else:
            covered += 1
    total = len(intervals)
    return covered / total, below / total, above / total


def share_below(distances: Sequence[float], threshold: float) -> float:
    return sum(distance <= threshold for distance in distances) / len(distances)


def stretched_truth(errors: int, comparisons: int, truth: float, fraction: float) -> float:
    """The truth as far from the estimate as an unlimited population would put it, in log-odds."""
    here = math.log((errors + 0.5) / (comparisons - errors + 0.5))
    there = math.log(truth / (1.0 - truth))
    moved = here + (there - here) / math.sqrt(1.0 - fraction)
    return 1.0 / (1.0 + math.exp(-moved))
