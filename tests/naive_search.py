"""Slow, literal twins of the statistics of searches: one search, one enrolled person, one subset at a time."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def fused(scores: np.ndarray, owner: np.ndarray, size: int, fuse: str) -> np.ndarray:
    """One score per probe and enrolled person, from one per probe and template."""
    out = np.full((scores.shape[0], size), -np.inf)
    for i in range(scores.shape[0]):
        for g in range(size):
            mine = [float(scores[i, t]) for t in range(owner.size) if owner[t] == g]
            if mine:
                out[i, g] = max(mine) if fuse == "max" else sum(mine) / len(mine)
    return out


def fpir(table: np.ndarray, threshold: float, without: int | None = None) -> float:
    """The share of rows with a score at or above the threshold, one enrolled person left out."""
    hits = 0
    for row in table:
        kept = [s for g, s in enumerate(row) if g != without]
        hits += any(s >= threshold for s in kept)
    return hits / len(table)


def single_hits(table: np.ndarray, person: np.ndarray, threshold: float) -> dict[tuple[int, int], int]:
    """d_jg: searches of person j in which g alone reaches the threshold."""
    found: dict[tuple[int, int], int] = {}
    for j, row in zip(person, table, strict=True):
        reached = [g for g, s in enumerate(row) if s >= threshold]
        if len(reached) == 1:
            found[int(j), reached[0]] = found.get((int(j), reached[0]), 0) + 1
    return found


def fpir_variances(table: np.ndarray, person: np.ndarray, threshold: float) -> tuple[float, float, float]:
    """(V_P, V_G, V_PG), the gallery's part by really leaving one enrolled person out at a time."""
    n, size = table.shape
    p = fpir(table, threshold)
    people = sorted(set(person.tolist()))
    total = 0.0
    for j in people:
        rows = table[person == j]
        y = sum(bool((row >= threshold).any()) for row in rows)
        total += (y - p * len(rows)) ** 2
    own = len(people) / (len(people) - 1) * total / n**2
    drops = [p - fpir(table, threshold, g) for g in range(size)]
    gallery = sum((d - sum(drops) / size) ** 2 for d in drops)
    overlap = (1 - 1 / size) * sum(d * d for d in single_hits(table, person, threshold).values()) / n**2
    return own, gallery, overlap


def rotating_variance(table: np.ndarray, own: np.ndarray, threshold: float) -> float:
    """One person's two influences added before squaring; row x leaves out column own[x]."""
    n, size = table.shape
    left = table.copy()
    left[np.arange(n), own] = -np.inf
    p = fpir(left, threshold)
    d = single_hits(left, own, threshold)
    u = [sum(count for (_, g), count in d.items() if g == i) for i in range(size)]
    total, searched = 0.0, 0.0
    for i in range(size):
        rows = left[own == i]
        a = (sum(bool((row >= threshold).any()) for row in rows) - p * len(rows)) / n
        total += (a + (u[i] - sum(u) / size) / n) ** 2
        searched += a * a
    people = len(set(own.tolist()))
    overlap = (1 - 1 / size) * sum(c * c for c in d.values()) / n**2
    return max(size / (size - 1) * total - overlap, people / (people - 1) * searched)


def missed(row: np.ndarray, own: int, threshold: float, rank: int, without: int | None = None) -> bool:
    """Whether the mate is below the threshold or has at least `rank` better non-mates."""
    better = sum(1 for g, s in enumerate(row) if g not in (own, without) and s > row[own])
    return bool(row[own] < threshold or better >= rank)


def misses(table: np.ndarray, own: np.ndarray, threshold: float, rank: int, without: int | None = None) -> list[bool]:
    """One answer per search."""
    return [missed(row, int(i), threshold, rank, without) for i, row in zip(own, table, strict=True)]


def fnir_variances(table: np.ndarray, own: np.ndarray, threshold: float, rank: int) -> tuple[float, float, int]:
    """(fixed, random, W): w_g by really taking g out of the gallery, one search at a time."""
    total, size = table.shape
    wrong = misses(table, own, threshold, rank)
    q = sum(wrong) / total
    w = np.zeros(size)
    squares: dict[tuple[int, int], int] = {}
    for g in range(size):
        for x, after in enumerate(misses(table, own, threshold, rank, without=g)):
            if g != own[x] and wrong[x] and not after:
                w[g] += 1
                squares[int(own[x]), g] = squares.get((int(own[x]), g), 0) + 1
    a = np.array([sum(wrong[x] - q for x in range(total) if own[x] == i) for i in range(size)]) / total
    people = len(set(own.tolist()))
    fixed = people / (people - 1) * sum(a**2)
    both = people / (people - 1) * sum((a + (w - w.mean()) / total) ** 2)
    return fixed, max(both - sum(c * c for c in squares.values()) / total**2, fixed), int(w.sum())


def fpir_of_subsets(table: np.ndarray, threshold: float, size: int) -> float:
    """The mean FPIR over every gallery of `size` of the enrolled people."""
    rates = [fpir(table[:, list(chosen)], threshold) for chosen in combinations(range(table.shape[1]), size)]
    return sum(rates) / len(rates)


def mean_variance(values_at, table: np.ndarray, person: np.ndarray, threshold: float) -> float:
    """Variance of the mean of φ(h_x), the gallery's part by taking one hit at a time away."""
    n, size = table.shape
    h = [(int((row >= threshold).sum())) for row in table]
    mean = sum(values_at(x) for x in h) / n
    people = sorted(set(person.tolist()))
    own = sum(
        sum(values_at(h[x]) - mean for x in range(n) if person[x] == j) ** 2 for j in people
    ) * len(people) / (len(people) - 1) / n**2  # fmt: skip
    gain: dict[tuple[int, int], float] = {}
    for x, row in enumerate(table):
        for g in range(size):
            if row[g] >= threshold:
                key = int(person[x]), g
                gain[key] = gain.get(key, 0.0) + values_at(h[x]) - values_at(h[x] - 1)
    u = [sum(v for (_, g), v in gain.items() if g == at) for at in range(size)]
    gallery = sum(v * v for v in u) - sum(u) ** 2 / size
    return own + max(0.0, gallery - sum(v * v for v in gain.values())) / n**2
