"""Slow, literal twins of costs, Cllr, precision and F1: one comparison at a time. Nothing here uses the package.

A comparison is a tuple (identity, identity, score); a large score means "same".
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable

Row = tuple[str, str, float]


def cost(rows: list[Row], threshold: float, prior: float, miss: float = 1.0, false: float = 1.0) -> float:
    """The normalised detection cost, decisions counted one by one."""
    genuine = [s for a, b, s in rows if a == b]
    impostor = [s for a, b, s in rows if a != b]
    frr = sum(s < threshold for s in genuine) / len(genuine)
    far = sum(s >= threshold for s in impostor) / len(impostor)
    paid = prior * miss * frr + (1 - prior) * false * far
    return paid / min(prior * miss, (1 - prior) * false)


def min_cost(rows: list[Row], prior: float, miss: float = 1.0, false: float = 1.0) -> float:
    """By trying every threshold that makes a difference."""
    scores = sorted({s for _, _, s in rows})
    return min(cost(rows, t, prior, miss, false) for t in [*scores, scores[-1] + 1])


def cllr(pairs: list[tuple[bool, float]]) -> float:
    """Of (genuine?, log-likelihood ratio)."""
    own = [math.log2(1 + math.exp(-x)) if x > -math.inf else math.inf for g, x in pairs if g]
    other = [math.log2(1 + math.exp(x)) if x < math.inf else math.inf for g, x in pairs if not g]
    return (sum(own) / len(own) + sum(other) / len(other)) / 2


def min_cllr(rows: list[Row]) -> float:
    """The least Cllr over all ways to cut the distinct scores into blocks that have one ratio each.

    Ratios are those of counts, log((genuine/T)/(impostor/N)). Every one of the 2^(K−1) cuts is tried; a cut whose
    ratios do not increase is no map of the scores and is left out.
    """
    scores = sorted({s for _, _, s in rows})
    total = sum(a == b for a, b, _ in rows)
    others = len(rows) - total
    best = math.inf
    for cuts in itertools.product([False, True], repeat=len(scores) - 1):
        block = dict(zip(scores, itertools.accumulate([0, *map(int, cuts)]), strict=True))
        g: dict[int, int] = defaultdict(int)
        n: dict[int, int] = defaultdict(int)
        for a, b, s in rows:
            (g if a == b else n)[block[s]] += 1
        ratio = [
            -math.inf if not g[k] else math.inf if not n[k] else math.log(g[k] / total) - math.log(n[k] / others)
            for k in range(max(block.values()) + 1)
        ]
        if all(one < two for one, two in itertools.pairwise(ratio)):
            best = min(best, cllr([(a == b, ratio[block[s]]) for a, b, s in rows]))
    return best


def dyadic_variance(rows: list[Row], residual: Callable[[Row], float], size: float) -> float:
    """The variance of a sum of residuals with small-sample factors, each part as its own double sum."""
    own = pairs = cross = between = 0.0
    for x in rows:
        for y in rows:
            w = residual(x) * residual(y)
            one, two = {x[0], x[1]}, {y[0], y[1]}
            if len(one) == len(two) == 1:
                own += w * (one == two)
            elif len(one) == len(two) == 2:
                pairs += w * (one == two)
                between += w * len(one & two) if one != two else 2 * w
            else:
                cross += w * bool(one & two)
    g = max(size, 4.0)
    value = own * g / (g - 1) + cross * g / (g - 2)
    value += max((between - pairs) * g * (g - 1) / ((g - 2) * (g - 3)), pairs)
    return max(value, own + pairs)


def effective(rows: list[Row]) -> float:
    """T²/Σg²."""
    g: dict[str, int] = defaultdict(int)
    for a, b, _ in rows:
        g[a] += a == b
    return sum(g.values()) ** 2 / sum(n * n for n in g.values())


def cost_variance(rows: list[Row], threshold: float, prior: float) -> float:
    least = min(prior, 1 - prior)
    total = sum(a == b for a, b, _ in rows)
    others = len(rows) - total
    q = sum(a == b and s < threshold for a, b, s in rows) / total
    p = sum(a != b and s >= threshold for a, b, s in rows) / others

    def residual(row: Row) -> float:
        a, b, s = row
        if a == b:
            return prior / least * ((s < threshold) - q) / total
        return (1 - prior) / least * ((s >= threshold) - p) / others

    return dyadic_variance(rows, residual, effective(rows))


def cllr_variance(rows: list[Row]) -> float:
    total = sum(a == b for a, b, _ in rows)
    others = len(rows) - total

    def loss(row: Row) -> float:
        a, b, s = row
        return math.log2(1 + math.exp(-s if a == b else s))

    means = {
        True: sum(loss(r) for r in rows if r[0] == r[1]) / total,
        False: sum(loss(r) for r in rows if r[0] != r[1]) / others,
    }

    def residual(row: Row) -> float:
        same = row[0] == row[1]
        return (loss(row) - means[same]) / (2 * (total if same else others))

    return dyadic_variance(rows, residual, effective(rows))


def linkage(rows: list[Row], threshold: float, prior: float | None) -> tuple[float, float]:
    """(precision, F1) from weighted counts."""
    total = sum(a == b for a, b, _ in rows)
    others = len(rows) - total
    own, other = (1.0, 1.0) if prior is None else (prior / total, (1 - prior) / others)
    hits = own * sum(a == b and s >= threshold for a, b, s in rows)
    false = other * sum(a != b and s >= threshold for a, b, s in rows)
    missed = own * total - hits
    return hits / (hits + false), 2 * hits / (2 * hits + false + missed)


def linkage_variances(rows: list[Row], threshold: float, prior: float | None) -> tuple[float, float]:
    """Variances of the logits of precision and F1, one residual per comparison."""
    people = sorted({i for a, b, _ in rows for i in (a, b)})
    g: dict[str, int] = defaultdict(int)
    m: dict[frozenset[str], int] = defaultdict(int)
    for a, b, _ in rows:
        g[a] += a == b
        m[frozenset((a, b))] += a != b
    total = sum(g.values())
    others = len(rows) - total
    hits = sum(a == b and s >= threshold for a, b, s in rows)
    false = sum(a != b and s >= threshold for a, b, s in rows)
    missed = total - hits
    own, other = (1.0, 1.0) if prior is None else (prior / total, (1 - prior) / others)
    wrong = other * false + own * missed
    pairs = len(people) * (len(people) - 1) / 2

    def expected(a: str, b: str, count: float) -> float:
        """What is taken off one comparison's count."""
        if prior is not None:
            return count / (total if a == b else others)
        return count / (len(people) * g[a]) if a == b else count / (pairs * m[frozenset((a, b))])

    def precision(row: Row) -> float:
        a, b, s = row
        match = s >= threshold
        if a == b:
            return (match - expected(a, b, hits)) / hits
        return -(match - expected(a, b, false)) / false

    def f1(row: Row) -> float:
        a, b, s = row
        match = s >= threshold
        if a == b:
            return (match - expected(a, b, hits)) / hits - own * ((not match) - expected(a, b, missed)) / wrong
        return -other * (match - expected(a, b, false)) / wrong

    size = effective(rows)
    return dyadic_variance(rows, precision, size), dyadic_variance(rows, f1, size)
