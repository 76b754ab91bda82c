"""Sums of residuals over people and over pairs of people along a curve: what the variances of costs are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.counts.curve import CurveTally
from matchbound.results.latent_pair import CurveModels
from matchbound.stats.dyadic import DyadicSums

SAMPLED_IDENTITIES = 200
"""Of a curve without every step, identities whose pairs are scored again for the part of a variance by pairs."""


def pair_square(curve: CurveTally, points: Sequence[int], weights: Sequence[float]) -> float:
    """Σ_{i<j} (Σ_k w_k·(n_ij − p·m_ij))², n_ij and p those of point k.

    A curve without every step knows only the squares of single points; of several, it gives the largest value that the
    sum can have.
    """
    if curve.every_step:
        worth = np.zeros(curve.thresholds.size)
        for k, weight in zip(points, weights, strict=True):
            worth += weight * ((np.arange(worth.size) <= k) - float(curve.false_matches[k]) / curve.n_impostor)
        square = curve.summed(np.zeros(worth.size), worth)[2]
        assert square is not None
        return square
    sums, root = curve.sums, 0.0
    for k, weight in zip(points, weights, strict=True):
        p = float(curve.false_matches[k]) / curve.n_impostor
        square = (float(sums.nn[k]) - 2.0 * p * float(sums.nm[k]) + p * p * float(sums.pair_mm)) / 2.0
        root += weight * math.sqrt(max(square, 0.0))
    return root**2


def residual_sums(curve: CurveTally, models: CurveModels, genuine: FloatArray, impostor: FloatArray) -> DyadicSums:
    """Sums of residuals that depend on the point of the curve at which a comparison begins to match.

    Parameters
    ----------
    genuine, impostor : float64 arrays, shape (K,)
        The residual of a genuine or impostor comparison at each point.
    """
    own, shared, square = curve.summed(genuine, impostor)
    return DyadicSums(own, shared, _sampled_square(curve, models, impostor) if square is None else square)


def _sampled_square(curve: CurveTally, models: CurveModels, residual: FloatArray) -> float:
    """Σ_{i<j} of squared residuals by pair, from the pairs among a random part of the identities, scaled up."""
    taking_part = np.flatnonzero(curve.impostor_comparisons)
    count = min(SAMPLED_IDENTITIES, taking_part.size)
    chosen = np.sort(np.random.default_rng(0).choice(taking_part, count, replace=False))
    part = models.recount.among(chosen).comparisons()
    rows = np.flatnonzero(~part.genuine)
    k = np.searchsorted(-curve.similarity, -part.similarity[rows], side="left")
    each = residual[np.minimum(k, residual.size - 1)]
    keys = np.minimum(part.a[rows], part.b[rows]) * part.n_identities + np.maximum(part.a[rows], part.b[rows])
    total = np.bincount(keys, each, part.n_identities**2)
    scale = taking_part.size * (taking_part.size - 1) / (count * (count - 1))
    return float(total @ total) * scale
