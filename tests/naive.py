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


def pooled(sizes: dict[str, int], least: int) -> list[list[str]]:
    """Identities by size, from the smallest on, neighbouring sizes together until there are enough."""
    strata: list[list[str]] = []
    held: list[str] = []
    for value in sorted(set(sizes.values())):
        held += [name for name in sizes if sizes[name] == value]
        if len(held) >= least:
            strata.append(held)
            held = []
    if held and strata:
        strata[-1] += held
    elif held:
        strata.append(held)
    return strata


def kept(weights: list[float]) -> float:
    """Σ_i Σ_k (how much of u_k is left in w_i(u_i − ū))², over Σw²; ū is the weighted mean."""
    total = sum(weights)
    left = 0.0
    for i, w in enumerate(weights):
        for k, v in enumerate(weights):
            left += (w * ((i == k) - v / total)) ** 2
    return left / sum(w * w for w in weights)


def frr_fixed_sizes(rows: list[Row], threshold: float, identities: list[str]) -> float | None:
    """Squared residuals within strata of equal (or neighbouring) g_i, made good for the estimated mean."""
    g: Counter[str] = Counter()
    e: Counter[str] = Counter()
    for a, y in genuine_outcomes(rows, threshold):
        g[a] += 1
        e[a] += y
    if len(g) < 2:
        return None
    total = 0.0
    for stratum in pooled(dict(g), 2):
        rate = sum(e[i] for i in stratum) / sum(g[i] for i in stratum)
        total += sum((e[i] - rate * g[i]) ** 2 for i in stratum) / kept([float(g[i]) for i in stratum])
    return total / sum(g.values()) ** 2


def far_fixed_sizes(rows: list[Row], threshold: float, sizes: dict[str, int], complete: bool) -> float | None:
    """Effects of identities and rests of pairs, cell of strata by cell of strata, with loops over everything."""
    m, n = pair_counts(rows, threshold)
    present = {name: sizes[name] for name in sizes if any(name in pair for pair in m)}
    if len(present) < 4:
        return None
    strata = pooled(present, 4)
    place = {name: s for s, stratum in enumerate(strata) for name in stratum}
    ordered = [(i, j) for pair in m for i, j in (tuple(pair), tuple(pair)[::-1])]

    def cell(i: str, j: str) -> frozenset[int]:
        return frozenset((place[i], place[j]))

    compared: dict[frozenset[int], float] = defaultdict(float)
    wrong: dict[frozenset[int], float] = defaultdict(float)
    for i, j in ordered:
        compared[cell(i, j)] += m[frozenset((i, j))]
        wrong[cell(i, j)] += n[frozenset((i, j))]
    d = {
        (i, j): n[frozenset((i, j))] - wrong[cell(i, j)] / compared[cell(i, j)] * m[frozenset((i, j))]
        for i, j in ordered
    }
    r: dict[tuple[str, int], float] = defaultdict(float)
    own: dict[tuple[str, int], float] = defaultdict(float)
    for i, j in ordered:
        r[i, place[j]] += d[i, j]
        own[i, place[j]] += m[frozenset((i, j))]

    def effect(i: str, b: int) -> float:
        size = len(strata[b])
        return r[i, b] / own[i, b] * ((size - 1) / (size - 2) if place[i] == b else 1.0)

    rests: dict[tuple[int, int], float] = defaultdict(float)
    for i, j in ordered:
        rest = d[i, j] - m[frozenset((i, j))] * (effect(i, place[j]) + effect(j, place[i]))
        rests[place[i], place[j]] += rest**2
    everybody = sum(present.values())
    total = 0.0
    for a, stratum in enumerate(strata):
        size, noise = len(stratum), 0.0
        for b, others in enumerate(strata):
            if a == b:
                spread = rests[a, a] * (size - 1) / (size - 3)
                noise += (size - 2) / size * spread
            else:
                spread = rests[a, b] * size * len(others) / ((size - 1) * (len(others) - 1))
                noise += (size - 1) / size * spread
            total += 2 * spread
        squares = sum(sum(r[i, b] for b in range(len(strata))) ** 2 for i in stratum)
        if complete:
            part = sum(present[i] for i in stratum)
            pairs = {i: present[i] * (part - present[i]) for i in stratum}
            left = whole = 0.0
            for i in stratum:
                whole += (present[i] * (everybody - present[i])) ** 2
                for k in stratum:
                    between = present[i] * (everybody - part) * ((i == k) - present[k] / part)
                    within = present[i] * present[k] + (i == k) * present[i] * (part - 2 * present[i])
                    within -= pairs[i] * 2 * pairs[k] / sum(pairs.values())
                    left += (between + within) ** 2
            share = left / whole
        else:
            share = kept([sum(own[i, b] for b in range(len(strata))) for i in stratum])
        total += 4 * (squares - noise) / share
    return total / (2 * sum(m.values())) ** 2


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
