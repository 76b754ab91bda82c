"""Differences and ratios of two error rates on the same comparisons.

u·p_A − v·p_B is linear in comparisons: with D_ij = u(n^A_ij − p_A·m_ij) − v(n^B_ij − p_B·m_ij), r_i = Σ_j D_ij,
R = Σ r_i² and Q = Σ_{i≠j} D_ij² (ordered pairs) its variance is (4R − 2Q)/N2², the same as that of a rate. The
difference has u = v = 1, the logarithm of the ratio u = 1/p_A, v = 1/p_B. For genuine comparisons the variance is
Σ(u(e^A_i − q_A·g_i) − v(e^B_i − q_B·g_i))²/T².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from matchbound.counts.joint import JointTally
from matchbound.counts.tally import ImpostorTally
from matchbound.stats.dyadic import DyadicSums
from matchbound.stats.latent.differences import DifferenceModel

# The latent model of the difference of FAR (``"far"``) or FRR (``"frr"``), fitted when first asked for.
Models = Callable[[str], DifferenceModel | None]


def rate_sums(joint: JointTally, metric: str, k: int, u: float = 1.0, v: float = 1.0) -> DyadicSums:
    """Residuals of u·(rate of A) − v·(rate of B) at the k-th thresholds, of FAR or FRR."""
    a, b = joint.a.part(metric), joint.b.part(metric)
    m = a.comparisons.astype(np.float64)
    n = float(m.sum()) / a.ends
    d = u * a.errors[k] - v * b.errors[k]
    shift = float(d.sum()) / float(m.sum())
    moved, none = (d - shift * m) / n, np.zeros(m.size)
    if not (isinstance(a, ImpostorTally) and isinstance(b, ImpostorTally)):
        return DyadicSums(moved, none, 0.0)
    square = u * u * float(a.sum_nn[k]) + v * v * float(b.sum_nn[k]) - 2.0 * u * v * float(joint.sum_nn[k])
    cross = u * float(a.sum_nm[k]) - v * float(b.sum_nm[k])
    pairs = (square - 2.0 * shift * cross + shift * shift * float(a.sum_mm)) / 2.0
    return DyadicSums(none, moved, max(pairs, 0.0) / n**2)


def t_tails(statistic: float, degrees: float) -> float:
    """P(|t| ≥ |statistic|)."""
    from scipy.special import stdtr

    return 2.0 * float(stdtr(max(degrees, 1.0), -abs(statistic)))


def softened(errors: float, comparisons: float) -> float:
    """(x + ½)/(N + 1): a rate that is neither 0 nor 1."""
    return (errors + 0.5) / (comparisons + 1.0)


def mover(
    a: float, limits_a: tuple[float, float], b: float, limits_b: tuple[float, float], correlation: float = 0.0
) -> tuple[float, float]:
    """Limits of a − b from the limits of a and of b (MOVER; Zou & Donner 2008, §2)."""
    below_a, above_a = max(a - limits_a[0], 0.0), max(limits_a[1] - a, 0.0)
    below_b, above_b = max(b - limits_b[0], 0.0), max(limits_b[1] - b, 0.0)
    low = below_a**2 + above_b**2 - 2.0 * correlation * below_a * above_b
    high = above_a**2 + below_b**2 - 2.0 * correlation * above_a * below_b
    return a - b - math.sqrt(max(low, 0.0)), a - b + math.sqrt(max(high, 0.0))


def mover_ratio(
    a: float, limits_a: tuple[float, float], b: float, limits_b: tuple[float, float]
) -> tuple[float, float]:
    """Limits of a/b for independent a, b ≥ 0 (MOVER-R; Donner & Zou 2012, eq. 9); the upper one may be infinite."""
    (low_a, high_a), (low_b, high_b) = limits_a, limits_b

    def root(edge_a: float, edge_b: float) -> float:
        inside = (a * b) ** 2 - edge_a * edge_b * (2.0 * a - edge_a) * (2.0 * b - edge_b)
        return math.sqrt(max(inside, 0.0))

    below = a * b + root(low_a, high_b)
    low = low_a * (2.0 * a - low_a) / below if below > 0.0 else 0.0
    bottom = low_b * (2.0 * b - low_b)
    return low, (a * b + root(high_a, low_b)) / bottom if bottom > 0.0 else math.inf


@dataclass(frozen=True, eq=False)
class JointSums:
    """A number of each of two systems on the same comparisons, as a combination of FRR and FAR at its threshold.

    To first order a number of system s is w_s·FRR_s + v_s·FAR_s with the threshold held fixed: FRR at a threshold has
    w = 1 and v = 0, FRR at a FAR w = 1 and v = λ (the slope of the curve), FAR at an FRR w = 1/λ and v = 1, EER
    w = 1/(1+λ) and v = λ/(1+λ).

    - joint, k: both systems, and the place of their thresholds in it; of comparisons, or of units
      (`matchbound.stats.variance.unit_joint`).
    - shares (mapping of "frr" and "far" to (w_A, w_B) and (v_A, v_B)): kinds of errors that do not count are left out.
    - identities: effective number of identities.
    """

    joint: JointTally
    k: int
    shares: Mapping[str, tuple[float, float]]
    identities: float

    def rates(self, kind: str) -> tuple[float, float]:
        """Softened rates of A and of B, neither 0 nor 1."""
        one, two = self.joint.a.part(kind), self.joint.b.part(kind)
        total = float(one.comparisons.sum()) / one.ends
        a, b = (softened(float(part.errors[self.k].sum()) / part.ends, total) for part in (one, two))
        return a, b

    def binomial(self, u: float = 1.0, v: float = 1.0, *, identities: bool = False) -> float:
        """The variance if comparisons (or only identities) were independent, of softened rates: never 0."""
        total = 0.0
        for kind, (one, two) in self.shares.items():
            (a, b), part = self.rates(kind), self.joint.a.part(kind)
            n = (
                max(float(part.taking_part // part.ends), 1.0)
                if identities
                else float(part.comparisons.sum()) / part.ends
            )
            total += ((u * one) ** 2 * a * (1.0 - a) + (v * two) ** 2 * b * (1.0 - b)) / n
        return total

    def sums(self, u: float = 1.0, v: float = 1.0) -> DyadicSums:
        """Residuals of u·(number of A) − v·(number of B)."""
        parts = [rate_sums(self.joint, kind, self.k, u * one, v * two) for kind, (one, two) in self.shares.items()]
        return reduce(DyadicSums.plus, parts)

    def variance(self, u: float = 1.0, v: float = 1.0) -> float:
        """Of u·(number of A) − v·(number of B), without bias."""
        return self.sums(u, v).corrected(self.identities)

    def modelled(self, models: Models, u: float = 1.0, v: float = 1.0) -> float:
        """The same by the latent models; where one cannot be fitted, as if only identities were independent."""
        total = 0.0
        for kind, (one, two) in self.shares.items():
            model = models(kind)
            if model is None:
                return self.binomial(u, v, identities=True)
            total += model.variance(*self.rates(kind), u * one, v * two)
        return total
