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


def impostor_moments(table: np.ndarray, compared: np.ndarray) -> tuple[float, float, float]:
    """(C_s, C_w, μ2): mean products of centred errors by identities shared: one, two, none; NaN without such.

    Every comparison is written out; those of a pair are errors first, as only sums matter.
    """
    n = table.shape[0]
    first, second, error = [], [], []
    for i, j in combinations(range(n), 2):
        for c in range(compared[i, j]):
            first.append(i)
            second.append(j)
            error.append(1.0 if c < table[i, j] else 0.0)
    d = np.array(error) - np.mean(error)
    a, b = np.array(first), np.array(second)
    sums = {0: 0.0, 1: 0.0, 2: 0.0}
    number = {0: 0, 1: 0, 2: 0}
    for x in range(d.size):
        for y in range(d.size):
            if x != y:
                common = len({a[x], b[x]} & {a[y], b[y]})
                sums[common] += d[x] * d[y]
                number[common] += 1
    mean = {k: sums[k] / number[k] if number[k] else float("nan") for k in sums}
    return mean[1] - mean[0], mean[2] - mean[0], mean[0]


def both_err(p: float, rho: float, n: int = 400) -> float:
    """Φ2(z, z; ρ) as E_u[Φ((z + √ρ·u)/√(1−ρ))²], by the trapezoid rule."""
    u = np.linspace(-9.0, 9.0, 20 * n)
    weight = np.exp(-0.5 * u * u)
    value = ndtr((ndtri(p) + np.sqrt(rho) * u) / np.sqrt(1.0 - rho)) ** 2
    return float((weight * value).sum() / weight.sum())


def products_by_sharing(
    a: list[int], b: list[int], u: list[int], v: list[int], d: list[float]
) -> dict[str, tuple[float, int]]:
    """Σ of products and number of ordered pairs of comparisons that share one identity: by an instance, or not."""
    found = {"instance": [0.0, 0], "person": [0.0, 0]}
    for x in range(len(d)):
        for y in range(len(d)):
            if x != y and len({a[x], b[x]} & {a[y], b[y]}) == 1:
                kind = "instance" if {u[x], v[x]} & {u[y], v[y]} else "person"
                found[kind][0] += d[x] * d[y]
                found[kind][1] += 1
    return {kind: (float(total), int(count)) for kind, (total, count) in found.items()}


def weighed_on_a_grid(shown: float, noise: float, usual: float, spread: float) -> tuple[float, float]:
    """Mean and variance of a correlation after a pilot: a normal prior times a normal likelihood, summed on a grid."""
    width = 12.0 * max(noise**0.5, spread)
    grid = [min(shown, usual) - width + k * (abs(shown - usual) + 2.0 * width) / 40_000 for k in range(40_001)]
    total = first = second = 0.0
    for r in grid:
        density = float(np.exp(-0.5 * (r - usual) ** 2 / spread**2 - 0.5 * (r - shown) ** 2 / noise))
        total += density
        first += density * r
        second += density * r * r
    return first / total, second / total - (first / total) ** 2


def tail_correlations(rate: float, shared: float, same: float) -> tuple[float, float]:
    """(ρ_s, ρ_w) at a rate below 1.5%: ρ_s + 0.2·ρ_w·d, and 1 − ρ_w shrinks by exp(−d/4), d in probits."""
    from statistics import NormalDist

    d = NormalDist().inv_cdf(0.015) - NormalDist().inv_cdf(rate)
    if d <= 0.0:
        return shared, max(same, 2.0 * shared)
    raised = min(shared + 0.2 * same * d, 0.49)
    return raised, max(1.0 - (1.0 - same) * float(np.exp(-d / 4.0)), min(2.0 * raised, 0.99), 2.0 * raised)
