"""Slow, literal twins of what a report counts: one comparison at a time, nothing from the package."""

from __future__ import annotations

from dataclasses import dataclass

from naive import genuine_outcomes, impostor_outcomes

Row = tuple[str, str, float]


@dataclass
class Part:
    """What one identity adds: its errors, comparisons, excess, and the rate of the data without it."""

    errors: int
    comparisons: int
    excess: float
    rate_without: float | None


def parts(rows: list[Row], threshold: float, metric: str, distance: bool = False) -> dict[str, Part]:
    """By identity: r_i as a sum of residuals over its comparisons; the rate without it by leaving rows out."""
    if metric == "far":
        outcomes = [({a, b}, y) for a, b, y in impostor_outcomes(rows, threshold, distance)]
    else:
        outcomes = [({a}, y) for a, y in genuine_outcomes(rows, threshold, distance)]
    rate = sum(y for _, y in outcomes) / len(outcomes)
    found = {}
    for name in sorted({who for a, b, _ in rows for who in (a, b)}):
        own = [y for who, y in outcomes if name in who]
        others = [y for who, y in outcomes if name not in who]
        excess = sum(y - rate for y in own)
        found[name] = Part(sum(own), len(own), excess, sum(others) / len(others) if others else None)
    return found


def histogram(scores: list[float], edges: list[float], distance: bool) -> list[int]:
    """Scores between edges; an edge belongs to the bin above it, or below it for distances."""
    counts = [0] * (len(edges) - 1)
    for score in scores:
        for k in range(len(counts)):
            low, high = edges[k], edges[k + 1]
            if (low < score <= high) if distance else (low <= score < high):
                counts[k] += 1
    return counts


def shared_rows(one: list, two: list) -> list[tuple[str, str, float, float]]:
    """Comparisons that two systems both made: identities, and the score of each system, larger meaning "same"."""
    scores = dict(two)
    return [(f"p{key[0][0]}", f"p{key[1][0]}", score, scores[key]) for key, score in one if key in scores]


def rates_at(rows: list[Row], threshold: float) -> tuple[float, float]:
    """(FAR, FRR) at a threshold."""
    impostor = [score >= threshold for a, b, score in rows if a != b]
    genuine = [score < threshold for a, b, score in rows if a == b]
    return sum(impostor) / len(impostor), sum(genuine) / len(genuine)


def frr_at_far(rows: list[Row], target: float) -> float:
    """The lowest FRR at a threshold whose FAR is no larger than the target."""
    candidates = [rates_at(rows, threshold) for threshold in {score for _, _, score in rows} | {float("inf")}]
    return min(frr for far, frr in candidates if far <= target)
