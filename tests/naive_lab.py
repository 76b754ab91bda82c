"""Slow, literal twins of coverage studies: shares and coverage counted one at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence


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
