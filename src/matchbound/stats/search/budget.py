"""FNIR at a given FPIR: two models, one error budget.

The threshold is estimated too. As for FRR at a FAR (`matchbound.stats.curve.latent`), FPIR and FNIR share one budget:
for angles θ between 0° and 90°, FPIR may err by sin θ of its t quantile while FNIR errs by cos θ of its own (the people
searched for are different, so the two errors are taken as independent). The limit is the worst over the angles.
"""

from __future__ import annotations

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.stats.search.latent import SearchModel

ANGLES = np.linspace(0.0, np.pi / 2.0, 7)
LEAST_RANK = 3


def threshold_at(best: FloatArray, fpir: float) -> float:
    """The threshold at which at most a share `fpir` of searches has a hit.

    Hits are scores above the (⌊f·n⌋ + 1)-th largest best score; the threshold returned is the next number above it, so
    that a hit is ``score >= threshold``. best : float64 array, shape (n,), descending.
    """
    place = int(np.floor(fpir * best.size + 1e-9))
    if place >= best.size:
        return -np.inf
    return float(np.nextafter(best[place], np.inf))


def limits_at_fpir(
    best: FloatArray,
    crossing: FloatArray,
    hits: SearchModel,
    misses: SearchModel,
    fpir: FloatArray | float,
    deviates: tuple[float, float],
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper limits for FNIR at FPIRs, each of the shape of `fpir`, () or (K,).

    Parameters
    ----------
    best : float64 array, shape (n,)
        Best scores of searches without a mate, descending.
    crossing : float64 array, shape (T,)
        The mate's scores where the rank is met, else −∞; ascending.
    hits, misses
        The models of FPIR and FNIR.
    deviates
        Their t quantiles.
    """
    from scipy.special import ndtr, ndtri

    n, given = float(best.size), np.asarray(fpir, dtype=np.float64)
    targets, angles = (part.reshape(-1) for part in np.meshgrid(given.reshape(-1), ANGLES, indexing="ij"))
    own, rest = np.sin(angles) * deviates[0], np.cos(angles) * deviates[1]
    seen, z = n * targets, ndtri(targets)
    limits = []
    for upper in (True, False):
        reached = np.clip(hits.limit(seen, own, np.full(seen.size, upper)), 1e-300, 1.0 - 1e-16)
        mirrored = n * ndtr(2.0 * z - ndtri(reached))
        moved = np.minimum(seen, mirrored) if upper else np.maximum(seen, mirrored)
        errors = np.searchsorted(crossing, _score_of_rank(best, moved), side="left")
        limits.append(misses.limit(errors, rest, np.full(seen.size, upper)).reshape(-1, ANGLES.size))
    return limits[1].min(axis=1).reshape(given.shape), limits[0].max(axis=1).reshape(given.shape)


def _score_of_rank(best: FloatArray, count: FloatArray) -> FloatArray:
    """The threshold with ⌊count⌋ hits; below three, extrapolated linearly in the probit rate."""
    from scipy.special import ndtri

    n = best.size
    place = np.minimum(np.floor(count + 1e-9).astype(np.int64), n - 1)
    found = np.nextafter(best[place], np.inf)
    rare = count < LEAST_RANK
    if not np.any(rare):
        return found
    last = int(min(max(30, 0.003 * n), n - 1))
    rank = np.arange(LEAST_RANK, last + 1)
    score = best[rank - 1]
    rank, score = rank[np.isfinite(score)], score[np.isfinite(score)]
    if rank.size < 3:
        return found
    slope, level = np.polyfit(ndtri(rank / n), score, 1)
    wanted = level + slope * ndtri(np.maximum(count, 1e-12) / n)
    return np.where(rare, np.maximum(wanted, best[LEAST_RANK - 1]), found)
