"""Slow, literal twins of the latent-correlation interval's parts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from scipy import integrate, optimize, stats
from scipy.special import owens_t

Row = tuple[str, str, bool]
"""A comparison: two identities, and whether it erred."""


def pair_kinds(rows: Sequence[Row]) -> dict[str, tuple[int, float]]:
    """Over ordered pairs of comparisons, by what they share: how many different ones, and the sum of (y − p)(y' − p).

    ``"within"`` counts pairs of different comparisons of one cluster, and its sum takes in each one with itself.
    """
    rate = sum(y for *_, y in rows) / len(rows)
    found = {"within": (0, 0.0), "sharing": (0, 0.0), "disjoint": (0, 0.0)}
    for (i, one), (j, two) in itertools.product(enumerate(rows), repeat=2):
        left, right = {one[0], one[1]}, {two[0], two[1]}
        if left == right:
            kind = "within"
        else:
            kind = "sharing" if left & right else "disjoint"
        count, total = found[kind]
        found[kind] = (count + (i != j), total + (one[2] - rate) * (two[2] - rate))
    return found


def both_below(z: float, rho: float) -> float:
    """Φ₂(z, z; ρ) by Owen's T."""
    return float(stats.norm.cdf(z) - 2.0 * owens_t(z, math.sqrt((1.0 - rho) / (1.0 + rho))))


def correlation_of(z: float, target: float) -> float:
    """ρ with Φ₂(z, z; ρ) = target; ±0.999 beyond."""

    def gap(rho: float) -> float:
        return both_below(z, rho) - target

    if gap(-0.999) >= 0.0:
        return -0.999
    if gap(0.999) <= 0.0:
        return 0.999
    return float(optimize.brentq(gap, -0.999, 0.999, xtol=1e-12))


def correlations(rows: Sequence[Row]) -> tuple[float, float]:
    """(ρ_s, ρ_w) of comparisons at one threshold, 0 where no comparisons share what it takes."""
    p = sum(y for *_, y in rows) / len(rows)
    kinds = pair_kinds(rows)
    z = float(stats.norm.ppf(p))
    count, total = kinds["disjoint"]
    mean = total / count if count else 0.0
    identity = pair = 0.0
    count, total = kinds["sharing"]
    if count:
        shared = total / count - mean
        identity = correlation_of(z, p * p * (1.0 + shared / max(p * p + mean, p * p / 4.0)))
    count, total = kinds["within"]
    if count:
        same = (total - len(rows) * p * (1.0 - p)) / count - mean
        pair = correlation_of(z, p * p + same)
    return identity, pair


def erring(sizes: Sequence[int], z: float, rho: float) -> float:
    """λ: Σ over clusters of the probability of at least one error, by adaptive quadrature."""

    def spared(size: int) -> float:
        def inside(u: float) -> float:
            chance = math.erfc((z - math.sqrt(rho) * u) / math.sqrt(1.0 - rho) / math.sqrt(2.0)) / 2.0
            return chance**size * math.exp(-u * u / 2.0) / math.sqrt(2.0 * math.pi)

        return float(integrate.quad(inside, -9.0, 9.0, epsabs=1e-12, limit=200)[0])

    return sum(1.0 - spared(size) for size in sizes)


def count_tail(x: int, n: int, p: float, spread: float, upper: bool) -> float:
    """Mid-P of x in n, the odds of the rate log-normal with mean rate p and log-variance log(1 + V/(1−p)²)."""
    scale = math.sqrt(math.log1p(spread / (1.0 - p) ** 2))

    def mean_over_u(inside: object) -> float:
        return float(integrate.quad(lambda u: inside(u) * stats.norm.pdf(u), -9, 9, limit=400, epsabs=1e-13)[0])  # type: ignore[operator]

    def rate(a: float, u: float) -> float:
        return 1.0 / (1.0 + math.exp(-a - scale * u))

    centre = optimize.brentq(lambda a: mean_over_u(lambda u: rate(a, u)) - p, -40.0, 40.0, xtol=1e-13)

    def tail(u: float) -> float:
        binomial = stats.binom(n, rate(centre, u))
        half = 0.5 * binomial.pmf(x)
        return float(binomial.cdf(x) - half if upper else binomial.sf(x) + half)

    return mean_over_u(tail)


def gamma_quantile(shape: float, probability: float) -> float:
    """The quantile of a gamma variable with mean 1."""
    return float(stats.gamma.ppf(probability, shape, scale=1.0 / shape))


def many_tail(x: int, n: int, centre: float, scale: float, upper: bool) -> float:
    """Mid-P of x in n, the log-odds of the rate normal: in steps that are shorter than the range where it changes."""
    middle = (math.log(x / (n - x)) - centre) / scale
    width = math.sqrt(1.0 / x + 1.0 / (n - x)) / scale
    cuts = [*np.arange(-8.5, 9.0, 0.5), *(middle + width * np.linspace(-12.0, 12.0, 25))]
    inside, inner = np.polynomial.legendre.leggauss(20)
    total = 0.0
    for low, high in itertools.pairwise(np.unique(np.clip(cuts, -8.5, 8.5))):
        u = (low + high) / 2.0 + (high - low) / 2.0 * inside
        p = 1.0 / (1.0 + np.exp(-centre - scale * u))
        half = 0.5 * stats.binom.pmf(x, n, p)
        tail = stats.binom.cdf(x, n, p) - half if upper else stats.binom.sf(x, n, p) + half
        total += (high - low) / 2.0 * float(inner @ (tail * stats.norm.pdf(u)))
    return total


def gamma_count_tail(x: int, n: int, p: float, spread: float, upper: bool, nodes: int) -> float:
    """Mid-P of x in n, the rate a gamma variable with mean p and relative variance V, at Gauss–Legendre nodes."""
    total = 0.0
    for at, weight in zip(*np.polynomial.legendre.leggauss(nodes), strict=True):
        rate = min(p * gamma_quantile(1.0 / spread, (at + 1.0) / 2.0), 1.0 - 1e-12)
        binomial = stats.binom(n, rate)
        half = 0.5 * binomial.pmf(x)
        total += weight / 2.0 * float(binomial.cdf(x) - half if upper else binomial.sf(x) + half)
    return total


def pair_means(n: dict, m: dict) -> tuple[float, float]:
    """FAR as a mean over identity pairs, and its plug-in variance; n and m by unordered pair."""
    y = {pair: n.get(pair, 0) / m[pair] for pair in m}
    p = sum(y.values()) / len(y)
    people = sorted({person for pair in m for person in pair})
    r = {i: sum(value - p for pair, value in y.items() if i in pair) for i in people}
    big_r = sum(value**2 for value in r.values())
    big_q = 2 * sum((value - p) ** 2 for value in y.values())
    return p, (4 * big_r - 2 * big_q) / (2 * len(y)) ** 2


def identity_means(e: list[int], g: list[int]) -> tuple[float, float]:
    """FRR as a mean over identities, and its plug-in variance."""
    y = [a / b for a, b in zip(e, g, strict=True) if b]
    q = sum(y) / len(y)
    return q, sum((value - q) ** 2 for value in y) / len(y) ** 2


def own_far_variance(n: dict, m: dict, factor: float) -> tuple[float, float]:
    """v̂ = max(f(4R − 2Q), 2Q)/(N2·p)² and Σ(r_i² − R/G)²/R², literally."""
    ordered = 2 * sum(m.values())
    p = 2 * sum(n.values()) / ordered
    d = {pair: n.get(pair, 0) - p * m[pair] for pair in m}
    people = sorted({person for pair in m for person in pair})
    r2 = [sum(value for pair, value in d.items() if i in pair) ** 2 for i in people]
    big_r, big_q = sum(r2), 2 * sum(value**2 for value in d.values())
    relative = max(factor * (4 * big_r - 2 * big_q), 2 * big_q) / (ordered * p) ** 2
    return relative, sum((value - big_r / len(r2)) ** 2 for value in r2) / big_r**2 if big_r else math.inf


def far_variance_without_each(n: dict, m: dict) -> list[float]:
    """max(0, 4R − 2Q)/N2² of the data without each identity in turn."""
    people = sorted({person for pair in m for person in pair})
    found = []
    for left in people:
        kept = {pair: m[pair] for pair in m if left not in pair}
        ordered = 2 * sum(kept.values())
        p = 2 * sum(n.get(pair, 0) for pair in kept) / ordered
        d = {pair: n.get(pair, 0) - p * kept[pair] for pair in kept}
        big_r = sum(sum(v for pair, v in d.items() if i in pair) ** 2 for i in people if i != left)
        big_q = 2 * sum(v**2 for v in d.values())
        found.append(max(0.0, 4 * big_r - 2 * big_q) / ordered**2)
    return found


def t_deviates(people: int, effective: float, level: float, share: float) -> tuple[float, float]:
    """t quantiles of upper and of lower limits: max(share·(G − 1), 6) and G − 1 degrees of freedom, at most G_e − 1."""
    tail = (1 - level) / 2
    made = []
    for part in (share, 1.0):
        freedom = part * (people - 1)
        freedom = max(freedom, 6)
        freedom = min(freedom, effective - 1)
        made.append(-float(stats.t.ppf(tail, max(freedom, 1))))
    return made[0], made[1]


def raised_by(slope: float, rate: float, rho: float, weight: float) -> float:
    """How much ρ_s rises: by 1.25 of the slope, fading over one probit below a rate of 1.5%, within bounds."""
    below = max(stats.norm.ppf(0.015) - stats.norm.ppf(rate), 0)
    wanted = slope * (1 + 0.25 * (1 - below if below < 1 else 0))
    most = rho if rho > weight * slope else weight * slope
    return wanted if wanted < most else most


def clump_seen(errors: Sequence[int], comparisons: Sequence[int], fade: float) -> float:
    """Errors of a clump, from how many people the sample's relative variance stands for."""
    total, wrong = sum(comparisons), sum(errors)
    rate = wrong / total
    effective = total**2 / sum(g * g for g in comparisons)
    squares = sum((e - rate * g) ** 2 for e, g in zip(errors, comparisons, strict=True))
    variance = squares / total**2 * effective / (effective - 1)
    people = max(rate**2 / variance, 1.0)
    return wrong / (people * (1 + (people - 1) / fade))
