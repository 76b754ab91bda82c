"""Differences and ratios of two error rates on the same comparisons.

u·p_A − v·p_B is linear in comparisons: with D_ij = u(n^A_ij − p_A·m_ij) − v(n^B_ij − p_B·m_ij), r_i = Σ_j D_ij,
R = Σ r_i² and Q = Σ_{i≠j} D_ij² (ordered pairs) its variance is (4R − 2Q)/N2², the same as that of a rate. The
difference has u = v = 1, the logarithm of the ratio u = 1/p_A, v = 1/p_B. For genuine comparisons the variance is
Σ(u(e^A_i − q_A·g_i) − v(e^B_i − q_B·g_i))²/T².

The latent model of a difference says how much of the errors' correlation two systems have in common.

At thresholds of equal rate, the errors of systems A and B are latent normals that cross a threshold. Two
comparisons that share an identity (or an identity pair) have the correlations ρ_AA, ρ_BB within a system and
ρ_AB across systems; a comparison has the correlation ρ₀ with itself in the other system. What the systems
share cancels in the difference of their rates: with ρ̄ = (ρ_AA + ρ_BB)/2 and δ = ρ_AA + ρ_BB − 2ρ_AB, the
covariance of two differences is

    K = Φ₂(z_A, z_A; ρ̄) + Φ₂(z_B, z_B; ρ̄) − 2Φ₂(z_A, z_B; ρ̄ − δ/2) − (a − b)².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import ImpostorTally, JointTally, join
from matchbound.stats.dyadic import DyadicSums
from matchbound.stats.intervals import ndtri
from matchbound.stats.latent import fit
from matchbound.stats.latent.model import Design
from matchbound.stats.latent.probabilities import excess_of_two, implied_correlation, orthant
from matchbound.stats.variance import unit_tally

# Rates over which correlations are averaged; their curves are nowhere below the average.
POOLS = {"far": (0.01, 0.5), "frr": (0.02, 0.6)}
# Correlations assumed where the data are too few to show any: high ones of those seen on real data.
NO_IDENTITY_DATA, NO_PAIR_DATA = 0.1, 0.3
N_RANKS = 30
# Correlations of different comparisons are kept at or below this.
HIGHEST = 0.95


def rate_sums(joint: JointTally, metric: str, k: int, u: float = 1.0, v: float = 1.0) -> DyadicSums:
    """Residuals of u·(rate of A) − v·(rate of B) at the k-th thresholds, of FAR or FRR."""
    a, b = joint.a.part(metric), joint.b.part(metric)
    m = a.comparisons.astype(np.float64)
    n = a.total
    d = u * a.errors[k] - v * b.errors[k]
    shift = float(d.sum()) / (n * a.ends)
    moved, none = (d - shift * m) / n, np.zeros(m.size)
    if not (isinstance(a, ImpostorTally) and isinstance(b, ImpostorTally)):
        return DyadicSums(moved, none, 0.0)
    square = u * u * float(a.sum_nn[k]) + v * v * float(b.sum_nn[k]) - 2.0 * u * v * float(joint.sum_nn[k])
    cross = u * float(a.sum_nm[k]) - v * float(b.sum_nm[k])
    pairs = (square - 2.0 * shift * cross + shift * shift * float(a.sum_mm)) / 2.0
    return DyadicSums(none, moved, max(pairs, 0.0) / n**2)


def unit_joint(joint: JointTally) -> JointTally:
    """Two systems with units in place of comparisons: shares of errors, each identity pair and identity once.

    What is linear in comparisons is then linear in units. Numbers are float64.
    """
    one, two = (unit_tally(tally, range(joint.sum_nn.size)) for tally in (joint.a, joint.b))
    return replace(join(one, two), disagreements=joint.disagreements)


def t_tails(statistic: float, degrees: float) -> float:
    """P(|t| ≥ |statistic|)."""
    from scipy.special import stdtr

    return 2.0 * float(stdtr(max(degrees, 1.0), -abs(statistic)))


def softened(errors: float, comparisons: float) -> float:
    """(x + ½)/(N + 1): a rate that is neither 0 nor 1."""
    return (errors + 0.5) / (comparisons + 1.0)


def mover(a: float, limits_a: Iterable[float], b: float, limits_b: Iterable[float]) -> tuple[float, float]:
    """Limits of a − b from the limits of a and of b (MOVER; Zou & Donner 2008, §2)."""
    (low_a, high_a), (low_b, high_b) = limits_a, limits_b
    below = math.hypot(max(a - low_a, 0.0), max(high_b - b, 0.0))
    return a - b - below, a - b + math.hypot(max(high_a - a, 0.0), max(b - low_b, 0.0))


def mover_ratio(a: float, limits_a: Iterable[float], b: float, limits_b: Iterable[float]) -> tuple[float, float]:
    """Limits of a/b for independent a, b ≥ 0 (MOVER-R; Donner & Zou 2012, eq. 9); the upper one may be infinite."""
    (low_a, high_a), (low_b, high_b) = limits_a, limits_b

    def root(edge_a: float, edge_b: float) -> float:
        inside = (a * b) ** 2 - edge_a * edge_b * (2.0 * a - edge_a) * (2.0 * b - edge_b)
        return math.sqrt(max(inside, 0.0))

    below = a * b + root(low_a, high_b)
    low = low_a * (2.0 * a - low_a) / below if below > 0.0 else 0.0
    bottom = low_b * (2.0 * b - low_b)
    return low, (a * b + root(high_a, low_b)) / bottom if bottom > 0.0 else math.inf


def paired_ranks(comparisons: int, metric: str = "far", n_ranks: int = N_RANKS) -> IntArray:
    """Numbers of errors, the same for both systems, at which they are compared; increasing, about `n_ranks` of them."""
    ranks = fit.geometric_ranks(POOLS[metric][1] * comparisons, n_ranks)
    return ranks[(ranks > 0) & (ranks < comparisons)]


@dataclass(frozen=True, eq=False)
class DifferenceModel:
    """Variances of u·a − v·b for two rates a and b on the same comparisons.

    - identity, pair: ρ̄ of comparisons that share one identity (FAR only), and of one cluster, by probit rate.
    - identity_gap, pair_gap: δ, likewise; self_gap: δ₀ = 1 − ρ₀.
    """

    design: Design
    identity: fit.Curve
    pair: fit.Curve
    identity_gap: fit.Curve
    pair_gap: fit.Curve
    self_gap: fit.Curve

    def variance(self, a: float, b: float, u: float = 1.0, v: float = 1.0) -> float:
        """V_mod = [N·v₀ + ½WI·K_w + SH·K_s]/N², at least v₀/N; a and b strictly between 0 and 1.

        Where units are means of several comparisons, v₀ counts by `design.alone`.
        """
        z_a, z_b = float(ndtri(a)), float(ndtri(b))
        z = np.array([(z_a + z_b) / 2.0])
        n = float(self.design.comparisons)
        both = min(float(orthant(z_a, z_b, 1.0 - np.clip(self.self_gap(z)[0], 1e-6, 1.0))), a, b)
        own = u * u * a * (1.0 - a) + v * v * b * (1.0 - b) - 2.0 * u * v * (both - a * b)
        alone = n * own * self.design.alone
        total = alone
        for pairs, rho, gap in (
            (self.design.within, self.pair, self.pair_gap),
            (self.design.sharing, self.identity, self.identity_gap),
        ):
            if pairs > 0.0:
                correlation = min(float(rho(z)[0]), HIGHEST)
                across = max(correlation - float(gap(z)[0]) / 2.0, -HIGHEST)
                e = excess_of_two([z_a, z_b, z_a], [z_a, z_b, z_b], [correlation, correlation, across])
                total += pairs * float(u * u * e[0] + v * v * e[1] - 2.0 * u * v * e[2])
        return max(total, alone) / (n * n)


def fit_difference(joint: JointTally, both: IntArray, metric: str) -> DifferenceModel:
    """From tallies at thresholds of equal rate (`paired_ranks`); smoothed over the rate.

    - both, shape (K,): J: comparisons on which both systems err.
    """
    one, two = joint.a.part(metric), joint.b.part(metric)
    design = fit.design_of(one)
    n = float(design.comparisons)
    sums = fit.products_of(one), fit.products_of(two), fit.products_of(one, two, joint.sum_nn)
    a, b = sums[0].rate, sums[1].rate
    middle = (a + b) / 2.0
    usable = np.flatnonzero((a > 0.0) & (a < 1.0) & (b > 0.0) & (b < 1.0))
    kept = usable[np.unique(middle[usable], return_index=True)[1]]
    p = middle[kept]
    z = ndtri(p)
    selves = (n * a * (1.0 - a), n * b * (1.0 - b), both - n * a * b)

    def correlations(products: fit.Products, own: FloatArray) -> tuple[FloatArray, FloatArray]:
        return fit.correlations_at(design, products.at(kept, p), own[kept])

    aa, bb, ab = (correlations(*pair) for pair in zip(sums, selves, strict=True))
    same = implied_correlation(z, np.minimum(both[kept] / n, p - 0.5 / n) - p * p)

    def curve(values: FloatArray, otherwise: float) -> fit.Curve:
        return fit.smooth(z, values, p * n, POOLS[metric], otherwise)

    no_identity = NO_IDENTITY_DATA if metric == "far" else 0.0
    return DifferenceModel(
        design,
        identity=curve((aa[0] + bb[0]) / 2.0, no_identity),
        pair=curve((aa[1] + bb[1]) / 2.0, NO_PAIR_DATA),
        identity_gap=curve(aa[0] + bb[0] - 2.0 * ab[0], no_identity),
        pair_gap=curve(aa[1] + bb[1] - 2.0 * ab[1], NO_PAIR_DATA),
        self_gap=curve(1.0 - same, 0.5),
    )


# The latent model of the difference of FAR (``"far"``) or FRR (``"frr"``), fitted when first asked for.
Models = Callable[[str], DifferenceModel | None]


@dataclass(frozen=True, eq=False)
class JointSums:
    """A number of each of two systems on the same comparisons, as a combination of FRR and FAR at its threshold.

    To first order a number of system s is w_s·FRR_s + v_s·FAR_s with the threshold held fixed: FRR at a threshold has
    w = 1 and v = 0, FRR at a FAR w = 1 and v = λ (the slope of the curve), FAR at an FRR w = 1/λ and v = 1, EER
    w = 1/(1+λ) and v = λ/(1+λ).

    - joint, k: both systems, and the place of their thresholds in it; of comparisons, or of units
      (`unit_joint`).
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
        a, b = (softened(float(part.errors[self.k].sum()) / part.ends, one.total) for part in (one, two))
        return a, b

    def binomial(self, u: float = 1.0, v: float = 1.0, *, identities: bool = False) -> float:
        """The variance if comparisons (or only identities) were independent, of softened rates: never 0."""
        total = 0.0
        for kind, (one, two) in self.shares.items():
            (a, b), part = self.rates(kind), self.joint.a.part(kind)
            n = max(part.taking_part // part.ends, 1) if identities else part.total
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
