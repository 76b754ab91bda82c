"""Simultaneous intervals by max-t: one critical value for many linear statistics of the same identities."""

from __future__ import annotations

from collections.abc import Sequence

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
    scale = np.sqrt((influence * influence).sum(axis=1))
    rows = influence[scale > 0.0] / scale[scale > 0.0, None]
    if not rows.size:
        from scipy.special import ndtri

        return float(ndtri((1.0 + level) / 2.0))
    seed = seed_of(rng)
    tops = []
    for block in range(-(-n_resamples // BLOCK)):
        drawn = block_rng(seed, block).standard_normal((min(BLOCK, n_resamples - block * BLOCK), rows.shape[1]))
        tops.append(np.abs(drawn @ rows.T).max(axis=1))
    return float(np.quantile(np.concatenate(tops), level, method="weibull"))


def adjusted_level(critical: float) -> float:
    """The level whose normal quantile is the critical value: 2Φ(c) − 1."""
    from scipy.special import ndtr

    return float(2.0 * ndtr(critical) - 1.0)


def differences_of_pairs(influence: FloatArray) -> tuple[Sequence[tuple[int, int]], FloatArray]:
    """All pairs (s, t), s < t, and ψ_s − ψ_t, shape (S(S−1)/2, G)."""
    size = influence.shape[0]
    pairs = [(s, t) for s in range(size) for t in range(s + 1, size)]
    rows = np.array([influence[s] - influence[t] for s, t in pairs]).reshape(len(pairs), influence.shape[1])
    return pairs, rows
