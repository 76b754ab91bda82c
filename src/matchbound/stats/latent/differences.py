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
from matchbound.stats.latent.curves import FAR_POOL, FRR_POOL, NO_IDENTITY_DATA, NO_PAIR_DATA, Curve, smooth
from matchbound.stats.latent.fit import Products, correlations_at, genuine_design, impostor_design
from matchbound.stats.latent.model import Design
from matchbound.stats.latent.probabilities import excess_of_two, implied_correlation, orthant

N_RANKS = 30
FEWEST = 3
HIGHEST = 0.95
"""Correlations of different comparisons are kept at or below this."""


def paired_ranks(comparisons: int, metric: str = "far", n_ranks: int = N_RANKS) -> IntArray:
    """Numbers of errors, the same for both systems, at which they are compared; increasing, about `n_ranks` of them."""
    last = (FAR_POOL if metric == "far" else FRR_POOL)[1] * comparisons
    if last < FEWEST:
        return np.empty(0, dtype=np.int64)
    ranks = np.unique(np.rint(np.geomspace(FEWEST, last, n_ranks)).astype(np.int64))
    return ranks[(ranks > 0) & (ranks < comparisons)]


@dataclass(frozen=True, eq=False)
class DifferenceModel:
    """Variances of u·a − v·b for two rates a and b on the same comparisons.

    design
        Pairs of comparisons by what they share.
    identity, pair : Curve
        ρ̄ of comparisons that share one identity (FAR only), and of comparisons of one cluster, by probit rate.
    identity_gap, pair_gap : Curve
        δ, likewise.
    self_gap : Curve
        δ₀ = 1 − ρ₀.
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
        from scipy.special import ndtri

        z_a, z_b = float(ndtri(a)), float(ndtri(b))
        z = np.array([(z_a + z_b) / 2.0])
        n = float(self.design.comparisons)
        both = float(orthant(z_a, z_b, 1.0 - np.clip(self.self_gap(z)[0], 1e-6, 1.0)))
        both = min(both, min(a, b))
        own = u * u * a * (1.0 - a) + v * v * b * (1.0 - b) - 2.0 * u * v * (both - a * b)
        alone = n * own * self.design.alone
        total = alone
        total += float(self.design.within) * _covariance(z_a, z_b, u, v, self.pair(z)[0], self.pair_gap(z)[0])
        if float(self.design.sharing) > 0.0:
            shared = _covariance(z_a, z_b, u, v, self.identity(z)[0], self.identity_gap(z)[0])
            total += float(self.design.sharing) * shared
        return max(total, alone) / (n * n)


def _covariance(z_a: float, z_b: float, u: float, v: float, rho: float, gap: float) -> float:
    """K: the covariance of u·y_A − v·y_B of two comparisons."""
    rho = min(float(rho), HIGHEST)
    across = max(rho - float(gap) / 2.0, -HIGHEST)
    e = excess_of_two([z_a, z_b, z_a], [z_a, z_b, z_b], [rho, rho, across])
    return float(u * u * e[0] + v * v * e[1] - 2.0 * u * v * e[2])


def fit_far_difference(joint: JointTally) -> DifferenceModel:
    """From joint tallies at thresholds of equal rate (`paired_ranks`)."""
    one, two = joint.a.impostor, joint.b.impostor
    design = impostor_design(one)
    m = one.comparisons.astype(np.float64)
    products = []
    for left, right, cross in (
        (one, one, one.sum_nn),
        (two, two, two.sum_nn),
        (one, two, joint.sum_nn),
    ):
        s, w = left.errors.astype(np.float64), right.errors.astype(np.float64)
        p, q = s.sum(axis=1) / m.sum(), w.sum(axis=1) / m.sum()
        r = ((s - p[:, None] * m) * (w - q[:, None] * m)).sum(axis=1)
        pairs = cross - p * right.sum_nm - q * left.sum_nm + p * q * float(one.sum_mm)
        products.append((p, q, pairs / 2.0, r - pairs))
    return _fit(design, products, joint.both_impostor.astype(np.float64), FAR_POOL, NO_IDENTITY_DATA)


def fit_frr_difference(joint: JointTally) -> DifferenceModel:
    """The same for genuine comparisons; nothing is shared but the identity itself."""
    one, two = joint.a.genuine, joint.b.genuine
    g = one.comparisons.astype(np.float64)
    products = []
    for left, right in ((one, one), (two, two), (one, two)):
        e, f = left.errors.astype(np.float64), right.errors.astype(np.float64)
        p, q = e.sum(axis=1) / g.sum(), f.sum(axis=1) / g.sum()
        inside = ((e - p[:, None] * g) * (f - q[:, None] * g)).sum(axis=1)
        products.append((p, q, inside, np.zeros_like(p)))
    return _fit(genuine_design(one), products, joint.both_genuine.astype(np.float64), FRR_POOL, 0.0)


def _fit(
    design: Design,
    products: list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]],
    both: FloatArray,
    pool: tuple[float, float],
    fallback: float,
) -> DifferenceModel:
    """Correlations at each rank, smoothed over the rate as in the latent interval."""
    from scipy.special import ndtri

    n = float(design.comparisons)
    rate_a, rate_b = products[0][0], products[1][0]
    usable = np.flatnonzero((rate_a > 0.0) & (rate_a < 1.0) & (rate_b > 0.0) & (rate_b < 1.0))
    middle = (rate_a + rate_b) / 2.0
    _, distinct = np.unique(middle[usable], return_index=True)
    kept = usable[distinct]
    p = middle[kept]
    z = np.asarray(ndtri(p), dtype=np.float64)
    selves = (n * rate_a * (1.0 - rate_a), n * rate_b * (1.0 - rate_b), both - n * rate_a * rate_b)
    identity, pair = [], []
    for (_, _, within, sharing), own in zip(products, selves, strict=True):
        identity.append(correlations_at(design, Products(p, within[kept], sharing[kept]))[0])
        pair.append(_pair_correlation(design, z, within[kept], sharing[kept], own[kept]))
    least = 1.0 / n
    rho_self = implied_correlation(z, np.minimum(both[kept] / n, p - least / 2.0) - p * p)
    count = p * n

    def curve(values: FloatArray, otherwise: float) -> Curve:
        return smooth(z, values, count, pool, 1.0, otherwise)

    return DifferenceModel(
        design,
        identity=curve((identity[0] + identity[1]) / 2.0, fallback),
        pair=curve((pair[0] + pair[1]) / 2.0, NO_PAIR_DATA),
        identity_gap=curve(identity[0] + identity[1] - 2.0 * identity[2], fallback),
        pair_gap=curve(pair[0] + pair[1] - 2.0 * pair[2], NO_PAIR_DATA),
        self_gap=curve(1.0 - rho_self, 0.5),
    )


def _pair_correlation(
    design: Design, z: FloatArray, within: FloatArray, sharing: FloatArray, own: FloatArray
) -> FloatArray:
    """ρ_w from C_w = (Σ over pairs of comparisons of one cluster)/(their number) − μ₂."""
    pairs, disjoint = float(design.within), float(design.disjoint)
    if not pairs > 0.0:
        return np.zeros_like(z)
    mean = (-sharing - within) / disjoint if disjoint > 0.0 else np.zeros_like(z)
    return implied_correlation(z, (within - own) / pairs - mean)
