"""Slow, literal twins of what `matchbound.planning` computes, for tests to compare with."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.special import ndtr, ndtri


def greedy_pairs(sizes: list[int], budget: int) -> list[tuple[int, int]]:
    """The paper's Algorithm 1 taken literally: least visited identities first, larger ones first among those."""
    visits = [0] * len(sizes)
    used: set[tuple[int, int]] = set()
    chosen = []
    while len(chosen) < budget:
        order = sorted(range(len(sizes)), key=lambda i: (visits[i], -sizes[i], i))
        pair = next((i, j) for i in order for j in order if i != j and (min(i, j), max(i, j)) not in used)
        used.add((min(pair), max(pair)))
        chosen.append(pair)
        visits[pair[0]] += 1
        visits[pair[1]] += 1
    return chosen


def overlap(pairs: list[tuple[int, int]]) -> int:
    """Σ b_ij·b_ik over i, j ≠ i, k ≠ i, j: literally."""
    count: dict[tuple[int, int], int] = {}
    for i, j in pairs:
        count[i, j] = count.get((i, j), 0) + 1
        count[j, i] = count.get((j, i), 0) + 1
    people = sorted({i for i, _ in count})
    return sum(
        count.get((i, j), 0) * count.get((i, k), 0)
        for i in people
        for j in people
        for k in people
        if i != j and i != k and j != k
    )


def least_overlap(n: int) -> list[int]:
    """The least overlap of any set of B different pairs of n identities, B = 0..n(n−1)/2, by trying all sets."""
    edges = list(combinations(range(n), 2))
    best = [10**9] * (len(edges) + 1)
    for mask in range(1 << len(edges)):
        degree = [0] * n
        for e, (i, j) in enumerate(edges):
            if mask >> e & 1:
                degree[i] += 1
                degree[j] += 1
        size = mask.bit_count()
        best[size] = min(best[size], sum(d * (d - 1) for d in degree))
    return best


def latent_table(p: float, n: int, instances: int, shared: float, same: float, rng: np.random.Generator) -> np.ndarray:
    """Errors of every identity pair under the latent model, comparison by comparison; symmetric, shape (n, n)."""
    effect = rng.standard_normal(n)
    table = np.zeros((n, n), dtype=np.int64)
    for i, j in combinations(range(n), 2):
        pair = np.sqrt(same - 2 * shared) * rng.standard_normal()
        noise = np.sqrt(1 - same) * rng.standard_normal(instances**2)
        latent = np.sqrt(shared) * (effect[i] + effect[j]) + pair + noise
        table[i, j] = table[j, i] = int((latent > -ndtri(p)).sum())
    return table


def both_err(p: float, rho: float, n: int = 400) -> float:
    """Φ2(z, z; ρ) as E_u[Φ((z + √ρ·u)/√(1−ρ))²], by the trapezoid rule."""
    u = np.linspace(-9.0, 9.0, 20 * n)
    weight = np.exp(-0.5 * u * u)
    value = ndtr((ndtri(p) + np.sqrt(rho) * u) / np.sqrt(1.0 - rho)) ** 2
    return float((weight * value).sum() / weight.sum())


def correlation_at(
    metric: str, rate: float, rho_s: float, rho_w: float, people: float, mates: float
) -> tuple[float, float]:
    """The correlation that rules the variance at a rate, and its error, by the formulas of the default interval.

    γ = 0.25 per probit below the pool (2% for FAR, 5% for FRR), κ = 4; `mates` is 1 + W/N.
    """
    from statistics import NormalDist

    depth = max(NormalDist().inv_cdf(0.02 if metric == "far" else 0.05) - NormalDist().inv_cdf(rate), 0.0)
    part = 1.0 - float(np.exp(-0.25 * depth))
    error = (4.0 / people) ** 0.5
    if metric == "far":
        rise, error = part * max(rho_w - rho_s, 0.0), error * (rho_s + rho_w / people)
        return rho_s + rise, (error**2 + rise**2) ** 0.5
    rise, error = part * (1.0 - rho_w), error * (1.0 - rho_w) * (rho_w + (1.0 - rho_w) / mates)
    return rho_w + rise, (error**2 + rise**2) ** 0.5
