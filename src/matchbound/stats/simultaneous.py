"""Simultaneous intervals by max-t: one critical value for many linear statistics of the same identities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matchbound.stats.resampling import block_rng, seed_of

FloatArray = NDArray[np.float64]

BLOCK = 1000


def max_t(
    influence: FloatArray, level: float = 0.95, *, n_resamples: int = 10_000, rng: int | np.random.Generator | None = 0
) -> float:
    """c: the `level` quantile of max_s |Σ_i ξ_i·ψ_si|/√Σ_i ψ_si², ξ_i standard normal for each identity.

    Parameters
    ----------
    influence : float64 array, shape (S, G)
        ψ_si, what identity i adds to statistic s. Statistics that nobody moves are left out.
    """
    tops = _tops(influence, n_resamples, seed_of(rng))
    if not tops.size:
        from scipy.special import ndtri

        return float(ndtri((1.0 + level) / 2.0))
    return float(np.quantile(tops, level, method="weibull"))


def max_t_p_values(
    influence: FloatArray,
    statistics: FloatArray,
    *,
    n_resamples: int = 10_000,
    rng: int | np.random.Generator | None = 0,
) -> FloatArray:
    """For each statistic (on the normal scale) the chance that the largest of all is as large, shape (S,)."""
    tops = _tops(influence, n_resamples, seed_of(rng))
    if not tops.size:
        return np.ones(statistics.shape)
    beyond = tops.size - np.searchsorted(np.sort(tops), np.abs(statistics), side="left")
    result: FloatArray = ((beyond + 1.0) / (tops.size + 1.0)).astype(np.float64)
    return result


def _tops(influence: FloatArray, n_resamples: int, seed: int) -> FloatArray:
    """Replicates of the largest studentised statistic, shape (n_resamples,); empty where nothing moves."""
    scale = np.sqrt((influence * influence).sum(axis=1))
    rows = influence[scale > 0.0] / scale[scale > 0.0, None]
    if not rows.size:
        return np.empty(0)
    tops = []
    for block in range(-(-n_resamples // BLOCK)):
        drawn = block_rng(seed, block).standard_normal((min(BLOCK, n_resamples - block * BLOCK), rows.shape[1]))
        tops.append(np.abs(drawn @ rows.T).max(axis=1))
    return np.concatenate(tops)


def adjusted_level(critical: float) -> float:
    """The level whose normal quantile is the critical value: 2Φ(c) − 1."""
    from scipy.special import ndtr

    return float(2.0 * ndtr(critical) - 1.0)
