"""Correlations as functions of the rate, and the clusters that errors come in."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import AllPairs, GenuineTally, ImpostorTally

TRUSTED = 30.0
"""A rank of this many errors has full weight in a curve; smaller ranks weigh in proportion."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A latent correlation as a function of the probit rate z: the larger of a pooled value and a local average.

    z, value, weight : float64 arrays, shape (K,)
        Probit rates in increasing order, the correlation estimated at each, and its weight Δz·min(k/30, 1).
    pooled
        The weighted average over the middle rates; the curve is nowhere below it, nor below 0.
    bandwidth
        Standard deviation of the Gaussian kernel in z.
    """

    z: FloatArray
    value: FloatArray
    weight: FloatArray
    pooled: float
    bandwidth: float = 1.0

    def __call__(self, z: FloatArray) -> FloatArray:
        """The correlation at probit rates z, the shape of z."""
        if not self.z.size:
            return np.full(np.shape(z), self.pooled)
        log_kernel = -0.5 * ((np.asarray(z)[..., None] - self.z) / self.bandwidth) ** 2
        kernel = self.weight * np.exp(log_kernel - log_kernel.max(axis=-1, keepdims=True))
        total = kernel.sum(axis=-1)
        local = np.divide(kernel @ self.value, total, out=np.full(total.shape, self.pooled), where=total > 0.0)
        result: FloatArray = np.maximum(np.maximum(local, self.pooled), 0.0)
        return result

    def mirrored(self) -> Curve:
        """The same curve as a function of the probit rate of comparisons that did not err."""
        return replace(self, z=-self.z[::-1], value=self.value[::-1], weight=self.weight[::-1])


def smooth(
    z: FloatArray, value: FloatArray, errors: FloatArray, pool: tuple[float, float], bandwidth: float, fallback: float
) -> Curve:
    """A curve through correlations estimated at several rates.

    Parameters
    ----------
    z, value, errors : float64 arrays, shape (K,)
        Probit rates in increasing order, correlations and numbers of errors.
    pool
        The rates over which the pooled value averages.
    fallback
        The pooled value where no rate lies in that range.
    """
    from scipy.special import ndtri

    spacing = np.gradient(z) if z.size > 1 else np.ones(z.size)
    weight = spacing * np.minimum(errors / TRUSTED, 1.0)
    low, high = float(ndtri(pool[0])) - 1e-9, float(ndtri(pool[1])) + 1e-9
    inside = (z >= low) & (z <= high)
    if not np.any(weight[inside] > 0.0):
        inside = np.ones(z.size, dtype=bool)
    total = float(weight[inside].sum())
    pooled = float(weight[inside] @ value[inside]) / total if total > 0.0 else fallback
    return Curve(z, value, weight, pooled, bandwidth)


@dataclass(frozen=True, eq=False)
class Clusters:
    """Sizes of clusters (identity pairs for FAR, identities for FRR) and how many clusters have each.

    size, count : float64 arrays, shape (U,)
    """

    size: FloatArray
    count: FloatArray

    def erring(self, z: FloatArray, rho: FloatArray) -> FloatArray:
        """λ: the expected number of clusters with at least one error, the shape of z.

        Given its own u ~ N(0, 1), each comparison of a cluster errs with probability Φ((z − √ρ·u)/√(1−ρ)) on its
        own, so that a cluster of m errs with probability 1 − E_u(1 − Φ(…))^m. The mean over u is a trapezoidal sum.
        """
        from scipy.special import log_ndtr

        u = np.linspace(-8.0, 8.0, 129)
        density = np.exp(-0.5 * u * u)
        density /= density.sum()
        spare = np.sqrt(1.0 - rho)
        spared = log_ndtr(-(z[..., None] - np.sqrt(rho)[..., None] * u) / spare[..., None])
        erring = -np.expm1(spared[..., None, :] * self.size[:, None])
        result: FloatArray = (erring @ density) @ self.count
        return result


def impostor_clusters(tally: ImpostorTally) -> Clusters:
    """The identity pairs that were compared, by m_ij; the tally must have kept m_ij."""
    compared = tally.compared
    assert compared is not None
    if isinstance(compared, AllPairs):
        sizes, members = np.unique(compared.instances[compared.instances > 0], return_counts=True)
        products = np.multiply.outer(sizes, sizes).astype(np.float64)
        pairs = np.multiply.outer(members, members).astype(np.float64)
        pairs[np.diag_indices(sizes.size)] -= members
        return _grouped(products.reshape(-1), pairs.reshape(-1) / 2.0)
    most = int(compared.count.max(initial=0))
    if most > compared.count.size + 1_000_000:
        return _grouped(compared.count.astype(np.float64), np.ones(compared.count.size))
    times = np.bincount(compared.count)
    sizes = np.flatnonzero(times)
    return _grouped(sizes.astype(np.float64), times[sizes].astype(np.float64))


def genuine_clusters(tally: GenuineTally) -> Clusters:
    """The identities with genuine comparisons, by g_i."""
    sizes: IntArray = tally.comparisons[tally.comparisons > 0]
    return _grouped(sizes.astype(np.float64), np.ones(sizes.size))


def _grouped(size: FloatArray, count: FloatArray, most: int = 32) -> Clusters:
    """Clusters by distinct size; many sizes are spread over a geometric grid that keeps Σ count and Σ count·size."""
    distinct, inverse = np.unique(size, return_inverse=True)
    total: FloatArray = np.bincount(inverse.reshape(-1), weights=count, minlength=distinct.size).astype(np.float64)
    distinct, total = distinct[total > 0.0], total[total > 0.0]
    if distinct.size <= most:
        return Clusters(distinct, total)
    grid = np.geomspace(distinct[0], distinct[-1], most)
    grid[0], grid[-1] = distinct[0], distinct[-1]
    at = np.clip(np.searchsorted(grid, distinct, side="right") - 1, 0, most - 2)
    share = (distinct - grid[at]) / (grid[at + 1] - grid[at])
    left, right = np.bincount(at, total * (1.0 - share), most), np.bincount(at + 1, total * share, most)
    spread: FloatArray = (left + right).astype(np.float64)
    return Clusters(grid[spread > 0.0], spread[spread > 0.0])
