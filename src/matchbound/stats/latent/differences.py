"""The latent model of a difference: how much of the errors' correlation two systems have in common.

At thresholds of equal rate, the errors of systems A and B are latent normals that cross a threshold. Two
comparisons that share an identity (or an identity pair) have the correlations ρ_AA, ρ_BB within a system and
ρ_AB across systems; a comparison has the correlation ρ₀ with itself in the other system. What the systems
share cancels in the difference of their rates: with ρ̄ = (ρ_AA + ρ_BB)/2 and δ = ρ_AA + ρ_BB − 2ρ_AB, the
covariance of two differences is

    K = Φ₂(z_A, z_A; ρ̄) + Φ₂(z_B, z_B; ρ̄) − 2Φ₂(z_A, z_B; ρ̄ − δ/2) − (a − b)².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.joint import JointTally
from matchbound.stats.intervals import ndtri
from matchbound.stats.latent.fit import (
    Curve,
    Products,
    correlations_at,
    design_of,
    geometric_ranks,
    products_of,
    smooth,
)
from matchbound.stats.latent.model import Design
from matchbound.stats.latent.probabilities import excess_of_two, implied_correlation, orthant

# Rates over which correlations are averaged; their curves are nowhere below the average.
POOLS = {"far": (0.01, 0.5), "frr": (0.02, 0.6)}
# Correlations assumed where the data are too few to show any: high ones of those seen on real data.
NO_IDENTITY_DATA, NO_PAIR_DATA = 0.1, 0.3
N_RANKS = 30
# Correlations of different comparisons are kept at or below this.
HIGHEST = 0.95


def paired_ranks(comparisons: int, metric: str = "far", n_ranks: int = N_RANKS) -> IntArray:
    """Numbers of errors, the same for both systems, at which they are compared; increasing, about `n_ranks` of them."""
    ranks = geometric_ranks(POOLS[metric][1] * comparisons, n_ranks)
    return ranks[(ranks > 0) & (ranks < comparisons)]


@dataclass(frozen=True, eq=False)
class DifferenceModel:
    """Variances of u·a − v·b for two rates a and b on the same comparisons.

    - identity, pair: ρ̄ of comparisons that share one identity (FAR only), and of one cluster, by probit rate.
    - identity_gap, pair_gap: δ, likewise; self_gap: δ₀ = 1 − ρ₀.
    """

    design: Design
    identity: Curve
    pair: Curve
    identity_gap: Curve
    pair_gap: Curve
    self_gap: Curve

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
    design = design_of(one)
    n = float(design.comparisons)
    sums = products_of(one), products_of(two), products_of(one, two, joint.sum_nn)
    a, b = sums[0].rate, sums[1].rate
    middle = (a + b) / 2.0
    usable = np.flatnonzero((a > 0.0) & (a < 1.0) & (b > 0.0) & (b < 1.0))
    kept = usable[np.unique(middle[usable], return_index=True)[1]]
    p = middle[kept]
    z = ndtri(p)
    selves = (n * a * (1.0 - a), n * b * (1.0 - b), both - n * a * b)

    def correlations(products: Products, own: FloatArray) -> tuple[FloatArray, FloatArray]:
        return correlations_at(design, products.at(kept, p), own[kept])

    aa, bb, ab = (correlations(*pair) for pair in zip(sums, selves, strict=True))
    same = implied_correlation(z, np.minimum(both[kept] / n, p - 0.5 / n) - p * p)

    def curve(values: FloatArray, otherwise: float) -> Curve:
        return smooth(z, values, p * n, POOLS[metric], otherwise)

    no_identity = NO_IDENTITY_DATA if metric == "far" else 0.0
    return DifferenceModel(
        design,
        identity=curve((aa[0] + bb[0]) / 2.0, no_identity),
        pair=curve((aa[1] + bb[1]) / 2.0, NO_PAIR_DATA),
        identity_gap=curve(aa[0] + bb[0] - 2.0 * ab[0], no_identity),
        pair_gap=curve(aa[1] + bb[1] - 2.0 * ab[1], NO_PAIR_DATA),
        self_gap=curve(1.0 - same, 0.5),
    )
