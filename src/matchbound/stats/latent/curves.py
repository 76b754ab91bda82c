"""A correlation as a smooth function of the rate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from matchbound.arraytypes import FloatArray

TRUSTED = 30.0
"""A rank of this many errors has full weight in a curve; smaller ranks weigh in proportion."""
FAR_POOL = (0.01, 0.5)
FRR_POOL = (0.02, 0.6)
NO_IDENTITY_DATA, NO_PAIR_DATA = 0.1, 0.3
"""Correlations assumed where the data are too few to show any: high ones of those seen on real data."""


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
