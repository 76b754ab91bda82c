"""Simultaneous intervals by max-t: one critical value for many studentised differences.

The critical value is a quantile of the largest of them in a world in which nothing differs. That world is made
from the data: by signs of differences (`matchbound.stats.families.systems`), by exchanging people between groups
(`matchbound.stats.families.groups`), or, where errors are many, by a normal approximation (`gaussian_largest`).
Statistics are on the normal scale: the normal deviate with the tail of the t statistic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.stats.resampling import block_rng, seed_of

Rng = int | np.random.Generator | None

BLOCK = 500
DECIMALS = 7
"""Statistics that agree to this many decimals are tied."""
TIE = 0.75 * 10.0**-DECIMALS


@dataclass(frozen=True, eq=False)
class Largest:
    """Draws of the largest of several statistics in a world in which nothing differs.

    With few errors the largest takes few values, and a test that rejects only beyond the quantile may never
    reject. Ties therefore count half (mid-P; Lancaster 1961): of B draws, mid(m) = (#{> m} + ½#{= m} + ½)/(B + 1).

    tops : float64 array, shape (B,)
        Increasing; rounded, so that ties are ties.
    """

    tops: FloatArray

    @staticmethod
    def of(draws: FloatArray) -> Largest:
        """From draws in any order."""
        return Largest(np.sort(np.round(draws, DECIMALS)))

    def p_values(self, statistics: FloatArray) -> FloatArray:
        """mid(|s|) of each statistic, shape (S,); 1 where there are no draws."""
        if not self.tops.size:
            return np.ones(statistics.shape)
        at = np.round(np.abs(statistics), DECIMALS)
        beyond = self.tops.size - np.searchsorted(self.tops, at, side="right")
        reached = self.tops.size - np.searchsorted(self.tops, at, side="left")
        result: FloatArray = ((beyond + reached + 1.0) / 2.0 / (self.tops.size + 1.0)).astype(np.float64)
        return result

    def critical(self, level: float) -> float:
        """c: a statistic lies beyond it exactly when its p-value is at most 1 − level; 0 without draws.

        At the resolution of the draws: a level above 1 − 1/(2B) gets the largest of them.
        """
        if not self.tops.size:
            return 0.0
        size = self.tops.size
        allowed = (1.0 - level) * (size + 1.0) * (1.0 + 1e-12)
        values, count = np.unique(self.tops, return_counts=True)
        above = size - np.cumsum(count)
        k = int(np.argmax(above + 0.5 <= allowed)) if allowed >= 0.5 else values.size - 1
        rejects_itself = above[k] + 0.5 * count[k] + 0.5 <= allowed
        return float(values[k]) + (-TIE if rejects_itself else TIE)


def largest_of(draw: Callable[[np.random.Generator, int], FloatArray], n_resamples: int, rng: Rng) -> Largest:
    """Collect draws in blocks: ``draw(rng, size)`` gives `size` of them, each block has its own seed."""
    seed = seed_of(rng)
    tops = [
        draw(block_rng(seed, block), min(BLOCK, n_resamples - block * BLOCK))
        for block in range(-(-n_resamples // BLOCK))
    ]
    return Largest.of(np.concatenate(tops) if tops else np.empty(0))


def gaussian_largest(influence: FloatArray, *, n_resamples: int = 10_000, rng: Rng = 0) -> Largest:
    """max_s |Σ_i ξ_i·ψ_si|/√Σ_i ψ_si² with ξ_i standard normal for each identity.

    These sums are normal with the correlations of the rows of ψ, and are drawn as such, by the symmetric root of the
    correlations (any other would depend on rounding where eigenvalues are equal).

    Parameters
    ----------
    influence : float64 array, shape (S, G)
        ψ_si, what identity i adds to statistic s. Statistics that nobody moves are left out.
    """
    scale = np.sqrt((influence * influence).sum(axis=1))
    rows = influence[scale > 0.0] / scale[scale > 0.0, None]
    if not rows.size:
        return Largest(np.empty(0))
    values, vectors = np.linalg.eigh(rows @ rows.T)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T

    def draw(rng: np.random.Generator, size: int) -> FloatArray:
        drawn: FloatArray = np.abs(rng.standard_normal((size, root.shape[0])) @ root).max(axis=1)
        return drawn

    return largest_of(draw, n_resamples, rng)


def normal_scores(statistics: FloatArray, freedom: FloatArray | float) -> FloatArray:
    """Normal deviates ≥ 0 with the tails of t statistics."""
    from scipy.special import ndtri, stdtr

    tail = stdtr(np.maximum(freedom, 1.0), -np.abs(statistics))
    result: FloatArray = -np.asarray(ndtri(np.maximum(tail, 1e-300)), dtype=np.float64)
    return result


def adjusted_level(critical: float) -> float:
    """The level whose normal quantile is the critical value: 2Φ(c) − 1."""
    from scipy.special import ndtr

    return float(2.0 * ndtr(critical) - 1.0)
