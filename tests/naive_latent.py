"""Slow, literal twins of the latent-correlation interval's parts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy import integrate, optimize, stats
from scipy.special import betainc, betaincc, betaln, expit, owens_t

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


def count_tail(x: float, n: float, p: float, spread: float, upper: bool) -> float:
    """Mid-P of x in n, the odds of the rate log-normal with mean rate p and log-variance log(1 + V/(1−p)²).

    Summed at 20 Gauss nodes in each of many short steps: of u, and of the width in which the tail of a binomial falls.
    """
    scale = max(math.sqrt(math.log1p(spread / (1.0 - p) ** 2)), 1e-5)
    inside, inner = np.polynomial.legendre.leggauss(20)

    def mean(values: object, cuts: np.ndarray) -> float:
        total = 0.0
        for low, high in itertools.pairwise(np.unique(np.clip(cuts, -8.5, 8.5))):
            u = (low + high) / 2.0 + (high - low) / 2.0 * inside
            total += (high - low) / 2.0 * float(inner @ (values(u) * stats.norm.pdf(u)))  # type: ignore[operator]
        return total

    even = np.arange(-8.5, 9.0, 0.25)
    start = math.log(p / (1.0 - p))
    centre = optimize.brentq(lambda a: mean(lambda u: expit(a + scale * u), even) - p, start - 60.0, start + 60.0)
    middle = (math.log(max(x, 0.5) / max(n - x, 0.5)) - centre) / scale
    width = math.sqrt(1.0 / max(x, 0.3) + 1.0 / max(n - x, 0.3)) / scale

    def tail(u: np.ndarray) -> np.ndarray:
        rate = expit(centre + scale * u)
        log_chance = -betaln(x + 1.0, n - x + 1.0) - math.log1p(n)
        log_chance = (
            log_chance - x * np.logaddexp(0.0, -centre - scale * u) - (n - x) * np.logaddexp(0, centre + scale * u)
        )
        half = 0.5 * np.exp(log_chance)
        return betaincc(x + 1.0, n - x, rate) - half if upper else betainc(x + 1.0, n - x, rate) + half

    return mean(tail, np.concatenate([even, middle + width * np.linspace(-14.0, 14.0, 57)]))


class TwoVariances:
    """The interval of docs/explanation/latent.md, step by step, from rows of one kind of comparison.

    rows are (identity, identity, score) with an error where ``errs(score, threshold)``; all of different identities
    (FAR) or all of the same (FRR).
    """

    KAPPA, GAMMA, WORTH = 4.0, 0.25, 10.0
    POOL: ClassVar = {"far": (0.02, 0.5), "frr": (0.05, 0.6)}

    def __init__(
        self,
        metric: str,
        rows: Sequence[tuple[str, str, float]],
        at: float,
        grid: Sequence[float],
        sizes: Sequence[int],
    ) -> None:
        self.metric, far = metric, metric == "far"

        def erring(threshold: float) -> list[Row]:
            return [(a, b, (score >= threshold) == far) for a, b, score in rows]

        here = erring(at)
        self.errors, self.n = sum(y for *_, y in here), len(rows)
        self.mirrored = self.errors > self.n / 2
        if self.mirrored:
            self.errors = self.n - self.errors
        kinds = pair_kinds(here)
        self.within, self.sharing = kinds["within"][0], kinds["sharing"][0]
        self.g_e = sum(sizes) ** 2 / sum(size**2 for size in sizes)
        self.clusters: dict[tuple[str, str], int] = {}
        for a, b, _ in rows:
            pair = (min(a, b), max(a, b))
            self.clusters[pair] = self.clusters.get(pair, 0) + 1
        # 1. correlations
        seen: dict[int, tuple[float, float, float]] = {}
        for threshold in grid:
            marked = [(a, b, y != self.mirrored) for a, b, y in erring(threshold)]
            x = sum(y for *_, y in marked)
            if 1 <= x < self.n and x / self.n <= self.POOL[metric][1] + 0.01:
                rho_s, rho_w = correlations(marked)
                seen[x] = (stats.norm.ppf(x / self.n), rho_s, max(rho_w, 0.0))
        points = [seen[x] for x in sorted(seen)]
        first, last = (stats.norm.ppf(p) for p in self.POOL[metric])
        steps = np.gradient([z for z, *_ in points]) if len(points) > 1 else np.ones(len(points))
        inside = [first - 1e-9 <= z <= last + 1e-9 for z, *_ in points]
        if not any(inside):
            inside = [True] * len(points)
        span = [min(max(z, first), last) for z, *_ in points]
        self.people = self.g_e * ((max(span) - min(span)) / (last - first) if points else 0.0)

        def averaged(k: int, assumed: float) -> float:
            if not points:
                return assumed
            kept = [(step, point[k]) for step, point, good in zip(steps, points, inside, strict=True) if good]
            mean = max(sum(step * value for step, value in kept) / sum(step for step, _ in kept), 0.0)
            return (self.people * mean + self.WORTH * assumed) / (self.people + self.WORTH)

        self.rho_s = averaged(1, 0.1) if self.sharing else 0.0
        self.rho_w = min(averaged(2, 0.5), 0.98) if self.within else 0.0
        # 3. the sample's own variance
        own = kinds["within"][1] + kinds["sharing"][1]  # R − Q/2 for FAR
        if far:
            big_q = 2.0 * kinds["within"][1]
            g = self.g_e
            factor = g * (g - 1) / ((g - 2) * (g - 3)) if g > 3 else 1.0
            variance = max(factor * 4.0 * own, 2.0 * big_q) / 4.0
        else:
            variance = self.g_e / (self.g_e - 1) * own if self.g_e > 1 else 0.0
        self.own = variance / self.errors**2 if self.errors else 0.0

    def parts(self, z: float, rho_s: float, rho_w: float) -> tuple[float, float, float]:
        """V, D, and (1 − p)/(Np)."""
        p = stats.norm.cdf(z)

        def excess(rho: float) -> float:
            return both_below(z, min(rho, 0.98)) - p * p

        shared = self.sharing * excess(rho_s) / (self.n * p) ** 2
        return shared, 1 + self.within / self.n * excess(rho_w) / (p * (1 - p)), (1 - p) / (self.n * p)

    def model(self, z: float) -> tuple[float, float, float]:
        """T with its allowance, D with it, and t."""
        depth = max(stats.norm.ppf(self.POOL[self.metric][0]) - z, 0.0)
        share, error = 1 - math.exp(-self.GAMMA * depth), math.sqrt(self.KAPPA / self.g_e)
        if self.metric == "far":
            a = share * max(self.rho_w - self.rho_s, 0.0)
            e = error * (self.rho_s + self.rho_w / self.g_e)
            shared, d, one = self.parts(z, self.rho_s + a, self.rho_w)
            more = self.parts(z, self.rho_s + a + math.hypot(e, a), self.rho_w)[0] + d * one
        else:
            a = share * (1 - self.rho_w)
            e = error * (1 - self.rho_w) * (self.rho_w + (1 - self.rho_w) / (1 + self.within / self.n))
            shared, d, one = self.parts(z, 0.0, self.rho_w + a)
            more = self.parts(z, 0.0, self.rho_w + a + math.hypot(e, a))[1] * one
        total = shared + d * one
        return total, d, max(math.log(more / total), 1e-6)

    def tail(self, z: float, u: float, upper: bool) -> float:
        """4. and 5.: both variances together, and how likely so few (many) errors are."""
        model, d, t = self.model(z)
        log_v, sigma = math.log(model), t
        if self.errors >= 1 and self.own > 0.0:
            z_hat = stats.norm.ppf(self.errors / self.n)
            shared, effect, one = self.parts(z_hat, self.rho_s, self.rho_w)
            s2 = math.log(1 + 2 / self.g_e + self.KAPPA * shared + effect * one)
            off = math.log(self.own) + s2 / 2 - math.log(self.model(z_hat)[0])
            w = s2 / max(s2 + t * t, max(off, 0.0) ** 2)
            if off < 0.0 and not upper:
                wider = min(max(off**2 - t * t, s2), 9 * s2)
                w = wider / (wider + t * t)
            log_v, sigma = log_v + (1 - w) * off, w * t + (1 - w) * math.sqrt(s2)
        total = math.exp(log_v + (u * sigma if upper else 0.0))
        p = stats.norm.cdf(z)
        one = (1 - p) / (self.n * p)
        clump = d
        if self.metric == "far":
            clump = min(max(self.n * p / erring(list(self.clusters.values()), z, self.rho_w), 1.0), d)
        clump = min(max(clump, 1.0), max(total / one, 1.0))
        return count_tail(self.errors / clump, self.n / clump, p, max(total - clump * one, 0.0), upper)

    def limit(self, u: float, upper: bool) -> float:
        """The rate at which so few (many) errors have the probability Φ(−u)."""
        upper = upper != self.mirrored
        tail = stats.norm.cdf(-u)
        if not upper and self.errors == 0:
            rate = 0.0
        else:
            rate = stats.norm.cdf(optimize.brentq(lambda z: self.tail(z, u, upper) - tail, -8.0, 5.0, xtol=1e-7))
        if upper and self.errors == 0:
            rate = max(rate, 1 - tail ** (1 / self.n))
        return float(1 - rate if self.mirrored else rate)
