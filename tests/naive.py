"""Slow, literal twins of the fixed-threshold formulas: sums over comparisons, one at a time.

A comparison is a tuple (identity, identity, score). Nothing here uses the package.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

Row = tuple[str, str, float]


def matches(score: float, threshold: float, distance: bool) -> bool:
    return score <= threshold if distance else score >= threshold


def impostor_outcomes(rows: list[Row], threshold: float, distance: bool = False) -> list[tuple[str, str, int]]:
    return [(a, b, int(matches(s, threshold, distance))) for a, b, s in rows if a != b]


def genuine_outcomes(rows: list[Row], threshold: float, distance: bool = False) -> list[tuple[str, int]]:
    return [(a, int(not matches(s, threshold, distance))) for a, b, s in rows if a == b]


def far(rows: list[Row], threshold: float, distance: bool = False) -> float:
    outcomes = impostor_outcomes(rows, threshold, distance)
    return sum(y for _, _, y in outcomes) / len(outcomes)


def frr(rows: list[Row], threshold: float, distance: bool = False) -> float:
    outcomes = genuine_outcomes(rows, threshold, distance)
    return sum(y for _, y in outcomes) / len(outcomes)


def far_variance(rows: list[Row], threshold: float, distance: bool = False) -> float:
    """The multiway-cluster form: products of residuals over all pairs of comparisons that share an identity."""
    outcomes = impostor_outcomes(rows, threshold, distance)
    p = sum(y for _, _, y in outcomes) / len(outcomes)
    total = 0.0
    for a, b, y in outcomes:
        for c, d, w in outcomes:
            if {a, b} & {c, d}:
                total += (y - p) * (w - p)
    return total / len(outcomes) ** 2


def frr_variance(rows: list[Row], threshold: float, distance: bool = False) -> float:
    outcomes = genuine_outcomes(rows, threshold, distance)
    q = sum(y for _, y in outcomes) / len(outcomes)
    total = 0.0
    for a, y in outcomes:
        for b, w in outcomes:
            if a == b:
                total += (y - q) * (w - q)
    return total / len(outcomes) ** 2


def frr_variance_delta(rows: list[Row], threshold: float) -> float:
    """The paper's three-term delta formula for unbalanced data, with plug-in moments."""
    g: Counter[str] = Counter()
    e: Counter[str] = Counter()
    for a, y in genuine_outcomes(rows, threshold):
        g[a] += 1
        e[a] += y
    size = len(g)
    mean_g, mean_e = sum(g.values()) / size, sum(e.values()) / size
    var_e = sum((e[i] - mean_e) ** 2 for i in g) / size
    var_g = sum((g[i] - mean_g) ** 2 for i in g) / size
    cov = sum((e[i] - mean_e) * (g[i] - mean_g) for i in g) / size
    scaled = var_e / mean_g**2 - 2 * mean_e * cov / mean_g**3 + mean_e**2 * var_g / mean_g**4
    return scaled / size


def far_variance_triple_loop(rows: list[Row], threshold: float) -> float:
    """The paper's plug-in for balanced complete data, in rates of identity pairs: O(G³), as printed."""
    errors: dict[tuple[str, str], list[int]] = defaultdict(list)
    for a, b, y in impostor_outcomes(rows, threshold):
        errors[a, b].append(y)
        errors[b, a].append(y)
    rate = {pair: sum(ys) / len(ys) for pair, ys in errors.items()}
    names = sorted({a for a, _ in rate})
    size = len(names)
    p = sum(rate.values()) / len(rate)
    var = sum((rate[i, j] - p) ** 2 for i, j in itertools.permutations(names, 2)) / (size * (size - 1))
    cov = sum((rate[i, j] - p) * (rate[i, k] - p) for i, j, k in itertools.permutations(names, 3)) / (
        size * (size - 1) * (size - 2)
    )
    return (2 / (size - 1) * var + 4 * (size - 2) / (size - 1) * cov) / size


def far_jackknife(rows: list[Row], threshold: float) -> float:
    """Delete each identity in turn and compute the rate anew; then the correction for pairs."""
    outcomes = impostor_outcomes(rows, threshold)
    p = sum(y for _, _, y in outcomes) / len(outcomes)
    names = {a for a, _, _ in outcomes} | {b for _, b, _ in outcomes}
    size = len(names)
    spread = 0.0
    for name in names:
        left = [y for a, b, y in outcomes if name not in (a, b)]
        spread += (sum(left) / len(left) - p) ** 2
    d: dict[frozenset[str], float] = defaultdict(float)
    for a, b, y in outcomes:
        d[frozenset((a, b))] += y - p
    q = 2 * sum(value**2 for value in d.values())
    return (size - 2) ** 2 / size**2 * spread - 2 * q / (2 * len(outcomes)) ** 2


def frr_jackknife(rows: list[Row], threshold: float) -> float:
    outcomes = genuine_outcomes(rows, threshold)
    q = sum(y for _, y in outcomes) / len(outcomes)
    names = {a for a, _ in outcomes}
    spread = 0.0
    for name in names:
        left = [y for a, y in outcomes if a != name]
        spread += (sum(left) / len(left) - q) ** 2
    return (len(names) - 1) ** 2 / len(names) ** 2 * spread


def frr_fixed_sizes(rows: list[Row], threshold: float, identities: list[str]) -> float:
    """Σ g_i² Var(Ȳ_i | g_i)/T², the variance taken among identities with equally many genuine comparisons."""
    g: Counter[str] = Counter({i: 0 for i in identities})
    e: Counter[str] = Counter({i: 0 for i in identities})
    for a, y in genuine_outcomes(rows, threshold):
        g[a] += 1
        e[a] += y
    total = 0.0
    for i in identities:
        if g[i] == 0:
            continue
        peers = [e[j] / g[j] for j in identities if g[j] == g[i]]
        mean = sum(peers) / len(peers)
        total += g[i] ** 2 * sum((x - mean) ** 2 for x in peers) / len(peers)
    return total / sum(g.values()) ** 2


def far_fixed_sizes(rows: list[Row], threshold: float, sizes: dict[str, int]) -> float:
    """Products of residuals over comparisons that share an identity, each centred at the rate of its pair of sizes."""
    outcomes = impostor_outcomes(rows, threshold)
    cells: dict[tuple[int, int], list[int]] = defaultdict(list)
    for a, b, y in outcomes:
        cells[tuple(sorted((sizes[a], sizes[b])))].append(y)  # type: ignore[index]
    rate = {cell: sum(ys) / len(ys) for cell, ys in cells.items()}

    def residual(a: str, b: str, y: int) -> float:
        return y - rate[tuple(sorted((sizes[a], sizes[b])))]  # type: ignore[index]

    total = 0.0
    for a, b, y in outcomes:
        for c, d, w in outcomes:
            if {a, b} & {c, d}:
                total += residual(a, b, y) * residual(c, d, w)
    return total / len(outcomes) ** 2


def pair_counts(rows: list[Row], threshold: float) -> tuple[dict[frozenset[str], int], dict[frozenset[str], int]]:
    """(m_ij, n_ij) by unordered pair."""
    m: dict[frozenset[str], int] = defaultdict(int)
    n: dict[frozenset[str], int] = defaultdict(int)
    for a, b, y in impostor_outcomes(rows, threshold):
        m[frozenset((a, b))] += 1
        n[frozenset((a, b))] += y
    return m, n


def subsets_far(rows: list[Row], threshold: float, drawn: list[str]) -> float | None:
    """Every comparison of every drawn identity, as often as it is drawn."""
    kept = [y for name in drawn for a, b, y in impostor_outcomes(rows, threshold) if name in (a, b)]
    return sum(kept) / len(kept) if kept else None


def vertex_far(rows: list[Row], threshold: float, drawn: list[str], own: dict[str, float]) -> float | None:
    """All comparisons among drawn identities; two copies of i stand for own[i] comparisons at the observed rate."""
    m, n = pair_counts(rows, threshold)
    p = far(rows, threshold)
    errors = comparisons = 0.0
    for x, y in itertools.combinations(range(len(drawn)), 2):
        i, j = drawn[x], drawn[y]
        if i == j:
            errors += own[i] * p
            comparisons += own[i]
        else:
            errors += n.get(frozenset((i, j)), 0)
            comparisons += m.get(frozenset((i, j)), 0)
    return errors / comparisons if comparisons else None


def weighted_far(rows: list[Row], threshold: float, weight: dict[str, float]) -> float | None:
    """Each comparison counts with the product of the weights of its identities."""
    errors = comparisons = 0.0
    for a, b, y in impostor_outcomes(rows, threshold):
        errors += weight[a] * weight[b] * y
        comparisons += weight[a] * weight[b]
    return errors / comparisons if comparisons else None


def weighted_frr(rows: list[Row], threshold: float, weight: dict[str, float]) -> float | None:
    errors = comparisons = 0.0
    for a, y in genuine_outcomes(rows, threshold):
        errors += weight[a] * y
        comparisons += weight[a]
    return errors / comparisons if comparisons else None
