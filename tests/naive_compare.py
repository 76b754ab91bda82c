"""Slow, literal twins of the formulas for systems, groups, losses and clusters: sums over pairs of comparisons.

Nothing here uses the package.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

Outcome = tuple[str, str, float]
"""Two units and a residual."""


def sum_over_sharing(outcomes: Sequence[Outcome]) -> float:
    """Σ w_x·w_y over all pairs of comparisons that have a unit in common."""
    total = 0.0
    for a, b, w in outcomes:
        for c, d, v in outcomes:
            if {a, b} & {c, d}:
                total += w * v
    return total


def sum_over_same_pair(outcomes: Sequence[Outcome]) -> float:
    """Σ w_x·w_y over all pairs of comparisons of the same two units."""
    return sum(w * v for a, b, w in outcomes for c, d, v in outcomes if {a, b} == {c, d})


def residuals(first: Sequence[float], second: Sequence[float], u: float, v: float) -> list[float]:
    """u·(y_A − mean)/n − v·(y_B − mean)/n of each comparison."""
    n = len(first)
    mean_a, mean_b = sum(first) / n, sum(second) / n
    return [(u * (x - mean_a) - v * (y - mean_b)) / n for x, y in zip(first, second, strict=True)]


def bipartite_anova(values: Sequence[Sequence[float]]) -> float:
    """Variance of the mean of a complete two-way table: mean squares of rows, columns and what is left."""
    n, k = len(values), len(values[0])
    grand = sum(map(sum, values)) / (n * k)
    rows = [sum(row) / k for row in values]
    columns = [sum(values[i][j] for i in range(n)) / n for j in range(k)]
    ms_rows = sum((x - grand) ** 2 for x in rows) / (n - 1)
    ms_columns = sum((x - grand) ** 2 for x in columns) / (k - 1)
    left = sum((values[i][j] - rows[i] - columns[j] + grand) ** 2 for i in range(n) for j in range(k))
    return ms_rows / n + ms_columns / k - left / ((n - 1) * (k - 1)) / (n * k)


def moments(
    pairs: Sequence[tuple[str, str]], first: Sequence[int], second: Sequence[int]
) -> tuple[float, float, float, float]:
    """Mean products of (y − p_A)(y' − p_B): same pair, sharing one identity, disjoint; and errors of both."""
    n = len(pairs)
    p, q = sum(first) / n, sum(second) / n
    sums: dict[str, float] = defaultdict(float)
    count: dict[str, int] = defaultdict(int)
    for x, y in ((x, y) for x in range(n) for y in range(n) if x != y):
        shared = len(set(pairs[x]) & set(pairs[y]))
        kind = ("disjoint", "sharing", "within")[shared]
        sums[kind] += (first[x] - p) * (second[y] - q)
        count[kind] += 1

    def mean(kind: str) -> float:
        return sums[kind] / count[kind] if count[kind] else 0.0

    both = sum(x * y for x, y in zip(first, second, strict=True))
    return mean("within"), mean("sharing"), mean("disjoint"), both


def normal_cdf(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def orthant(h: float, k: float, rho: float, steps: int = 20000) -> float:
    """Φ₂(h, k; ρ) = ∫_{−∞}^h φ(x)·Φ((k − ρx)/√(1−ρ²)) dx, by the midpoint rule."""
    low, spare = -9.0, math.sqrt(1.0 - rho * rho)
    width = (h - low) / steps
    total = 0.0
    for step in range(steps):
        x = low + (step + 0.5) * width
        total += math.exp(-0.5 * x * x) * normal_cdf((k - rho * x) / spare)
    return total * width / math.sqrt(2.0 * math.pi)


def cell_outcomes(
    rows: Sequence[tuple[str, str, int]], group: dict[str, str], g: str, h: str
) -> list[tuple[str, str, int]]:
    """Impostor comparisons with one side in g and the other in h."""
    return [row for row in rows if row[0] != row[1] and sorted((group[row[0]], group[row[1]])) == sorted((g, h))]


def common_keys(
    first: Sequence[tuple[str, str, str, str]], second: Sequence[tuple[str, str, str, str]]
) -> list[tuple[int, int]]:
    """Rows of two tables (id, instance, id, instance) that compare the same instances, the k-th time with the k-th."""
    left = list(range(len(second)))
    found = []
    for i, row in enumerate(first):
        key = {row[:2], row[2:]}
        for j in left:
            if {second[j][:2], second[j][2:]} == key:
                found.append((i, j))
                left.remove(j)
                break
    return found


def weighted_mean_loss(
    rows: Sequence[tuple[str, str, float]], weight: dict[str, float], prior: float | None
) -> float | None:
    """Each comparison counts with the product of its identities' weights; a genuine one with its identity's."""
    top = {True: 0.0, False: 0.0}
    bottom = {True: 0.0, False: 0.0}
    for a, b, value in rows:
        w = weight[a] if a == b else weight[a] * weight[b]
        top[a == b] += w * value
        bottom[a == b] += w
    if prior is None:
        return sum(top.values()) / sum(bottom.values()) if sum(bottom.values()) else None
    if (prior > 0 and not bottom[True]) or (prior < 1 and not bottom[False]):
        return None
    own = top[True] / bottom[True] if bottom[True] else 0.0
    other = top[False] / bottom[False] if bottom[False] else 0.0
    return prior * own + (1.0 - prior) * other


def mid_p(draws: Sequence[float], value: float) -> float:
    """Draws beyond a value count one, draws equal to it half, and the value itself half."""
    score = 0.5
    for drawn in draws:
        score += 1.0 if drawn > value else 0.5 if drawn == value else 0.0
    return score / (len(draws) + 1)


def t_score(estimate: float, variance: float, freedom: float) -> float:
    """The normal deviate with the tail of |estimate|/√variance under Student's t."""
    from scipy import stats

    if variance <= 0.0:
        return 0.0
    return float(stats.norm.isf(stats.t.sf(abs(estimate) / math.sqrt(variance), max(freedom, 1.0))))


def flipped_difference(
    rows: Sequence[tuple[str, str, int]], sign: dict[frozenset[str], float], factor: float
) -> tuple[float, float]:
    """Mean of outcomes (y_A − y_B) with the signs of their identity pairs, and its variance by pairs of comparisons."""
    turned = [(a, b, sign[frozenset((a, b))] * y) for a, b, y in rows]
    mean = sum(y for _, _, y in turned) / len(turned)
    terms = [(a, b, (y - mean) / len(turned)) for a, b, y in turned]
    return mean, max(factor * sum_over_sharing(terms), sum_over_same_pair(terms))


Moments = dict[str, float]
"""What `gap` needs of a group: rate, comparisons, people, personal, clustered, sharing, alone, mates."""


def impostor_moments(rows: Sequence[tuple[str, str, int]], people: float, factor: float) -> Moments:
    """Of outcomes of impostor comparisons of one group, by pairs of comparisons."""
    n = len(rows)
    p = Fraction(int(sum(y for _, _, y in rows)), n)  # so that a sum that is 0 is 0
    left = [(a, b, y - p) for a, b, y in rows]
    clustered = float(sum_over_same_pair(left))
    sharing = mates = 0
    for x, (a, b, _) in enumerate(rows):
        for z, (c, d, _) in enumerate(rows):
            common = len({a, b} & {c, d})
            sharing += common == 1
            mates += common == 2 and x != z
    return {
        "rate": float(p),
        "comparisons": n,
        "people": people,
        "personal": factor * float(sum_over_sharing(left)) - clustered,
        "clustered": clustered,
        "sharing": sharing,
        "alone": n,
        "mates": mates,
    }


def genuine_moments(members: Sequence[tuple[int, int]]) -> Moments:
    """Of people (errors, comparisons); who makes half of the comparisons counts as if it had been left out of q."""
    members = [(int(e), int(g)) for e, g in members]
    total = sum(g for _, g in members)
    q = Fraction(sum(e for e, _ in members), total)  # so that a residual that is 0 is 0
    clustered = 0.0
    for e, g in members:
        share = g / total
        clustered += float((e - q * g) ** 2) / max(1.0 - share, 0.05) ** (1.0 + min(1.0, 2.0 * share))
    squares = sum(g * g for _, g in members)
    people, mates = total**2 / squares, squares - total
    nothing = {"personal": 0.0, "sharing": 0.0}
    return {
        "rate": float(q),
        "comparisons": total,
        "people": people,
        "clustered": clustered,
        "alone": total,
        "mates": mates,
        **nothing,
    }


def gap(a: Moments, b: Moments, shift: float = 0.0, ratio: float = 1.0) -> tuple[float, float]:
    """(p_a − θ·p_b − δ over its standard error at the rates nearest to the estimates for which it is 0, freedom)."""
    both = (a, b)
    if a["rate"] == b["rate"] and a["rate"] in (0.0, 1.0):
        return 0.0, 1.0
    personal = shared = excess = room = 0.0
    own_kappa: list[float | None] = []
    own_rho: list[float | None] = []
    for one in both:
        pq = one["rate"] * (1.0 - one["rate"])
        kappa_of = rho_of = None
        if one["sharing"] > 0:
            personal += one["people"] * one["personal"] / one["sharing"]
            shared += one["people"] * pq * pq
            kappa_of = max(one["personal"], 0.0) / one["sharing"] / pq**2 if pq > 0.0 else None
        if one["mates"] > 0:
            extra = (one["clustered"] - one["alone"] * pq) / one["mates"]
            excess += one["people"] * extra
            room += one["people"] * pq
            rho_of = min(max(extra / pq, 0.0), 1.0) if pq > 0.0 else None
        own_kappa.append(kappa_of)
        own_rho.append(rho_of)
    kappa = max(personal, 0.0) / shared if shared > 0.0 else 0.0
    rho = min(max(excess / room, 0.0), 1.0) if room > 0.0 and a["clustered"] + b["clustered"] > 0.0 else 1.0
    off = a["rate"] - ratio * b["rate"] - shift
    pull = off / (1.0 / a["people"] + ratio * ratio / b["people"])
    at_b = b["rate"] + ratio * pull / b["people"]
    at_b = min(max(at_b, 0.0, -shift / ratio), max(min(1.0, (1.0 - shift) / ratio), 0.0, -shift / ratio))
    at_a = min(max(shift + ratio * at_b, 0.0), 1.0)
    parts = []
    for one, p, times, k, r in zip(both, (at_a, at_b), (1.0, ratio * ratio), own_kappa, own_rho, strict=True):
        trust = one["people"] / (one["people"] + 50.0) if one["clustered"] > 0.0 else 0.0
        mine = kappa if k is None else (1.0 - trust) * kappa + trust * k
        corr = rho if r is None else (1.0 - trust) * rho + trust * r
        pq = p * (1.0 - p)
        total = one["sharing"] * mine * pq * pq + pq * (one["alone"] + corr * one["mates"])
        n = one["comparisons"]
        parts.append((times * max(total / n**2, 1.0 / n**2), max(one["people"] - 1.0, 1.0)))
    (v, f), (w, g) = parts
    return off / math.sqrt(v + w), max((v + w) ** 2 / (v * v / f + w * w / g), 1.0)


def largest_genuine_gap(people: Sequence[tuple[int, int]], sizes: Sequence[int]) -> float:
    """People (errors, comparisons) stand in line and fill the groups one after the other."""
    groups, start = [], 0
    for size in sizes:
        groups.append(genuine_moments(people[start : start + size]))
        start += size
    return largest_gap(groups)


def largest_gap(groups: Sequence[Moments]) -> float:
    """Over all pairs of groups, on the normal scale."""
    top = 0.0
    for one, two in combinations(groups, 2):
        statistic, freedom = gap(one, two)
        top = max(top, t_score(statistic, 1.0, freedom))
    return top


def thrown_group(
    hits: dict[frozenset[int], int], m: Sequence[float], pair_squares: float, people: float, factor: float
) -> Moments:
    """A group whose identity pairs have these errors, which meet pairs in proportion to their comparisons."""
    n = sum(m) / 2
    p = sum(hits.values()) / n
    r = sum((sum(count for pair, count in hits.items() if i in pair) - p * m[i]) ** 2 for i in range(len(m)))
    q = max(sum(count * count for count in hits.values()) - p * p * pair_squares, 0.0)
    return {
        "rate": p,
        "comparisons": n,
        "people": people,
        "personal": factor * (r - q) - q,
        "clustered": q,
        "sharing": sum(x * x for x in m) - 2.0 * pair_squares,
        "alone": n,
        "mates": pair_squares - n,
    }


def shared_excess(cells: Sequence[Sequence[tuple[str, str, int]]]) -> float:
    """κ: the mean product of residuals of two comparisons (ordered) that share one identity, over the rate squared."""
    everything = [y for cell in cells for _, _, y in cell]
    p = sum(everything) / len(everything)
    total, count = 0.0, 0
    for cell in cells:
        for x, (a, b, y) in enumerate(cell):
            for z, (c, d, w) in enumerate(cell):
                if x != z and len({a, b} & {c, d}) == 1:
                    total += (y - p) * (w - p)
                    count += 1
    return max(total / count / p**2, 0.0) if count and p > 0.0 else 0.0


def chances_of_pairs(m: Sequence[float], w: Sequence[float]) -> dict[frozenset[int], float]:
    """Where a clump falls within a group: in proportion to m_i·m_j·w_i·w_j."""
    mass = {frozenset((i, j)): m[i] * m[j] * w[i] * w[j] for i, j in combinations(range(len(m)), 2)}
    whole = sum(mass.values())
    return {pair: one / whole for pair, one in mass.items()}
