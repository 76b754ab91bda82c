"""Latent-correlation intervals for FRR at a FAR, FAR at an FRR, and EER: two models, one budget for error.

The latent models of FAR and FRR (docs/explanation/latent.md) give limits for any number of errors at any tail. The two
uncertainties share one budget: for angles θ between 0° and 90°, FAR may err by sin θ of its t quantile while FRR errs
by r·sin θ + √(1−r²)·cos θ of its own, r the correlation of the two estimates. The limit is the worst over the angles.
No density of scores and no level for FAR is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.counts.curve import CurveTally
from matchbound.stats.budget import ANGLES
from matchbound.stats.curve.influence import frr_influence, point_influence
from matchbound.stats.curve.rates import crossed_at, point_at_far, point_at_frr
from matchbound.stats.latent import LatentModel
from matchbound.stats.normal import ndtr, ndtri

LEAST_RANK = 3
STEPS = 20
CLOSE = 0.005
"""Limits of the two rates meet when their probits are as near as this."""
MOST_CORRELATION = 0.7
SURE = 1e-12
"""Rates as near to 0 or 1 as this are 0 or 1."""


@dataclass(frozen=True, eq=False)
class LatentPair:
    """The latent models of both rates of one curve.

    correlation
        r, of the estimates of FAR and FRR.
    """

    far: LatentModel
    frr: LatentModel
    correlation: float

    def shares(self) -> tuple[FloatArray, FloatArray]:
        """How much of its t quantile each rate may err by, at each angle, when the first is the one that leads."""
        r = self.correlation
        leading = np.sin(ANGLES)
        return leading, np.maximum(r * leading + np.sqrt(1.0 - r * r) * np.cos(ANGLES), 0.0)


def estimate_correlation(curve: CurveTally, far_model: LatentModel, far: float, frr: float) -> float:
    """r: the correlation of the estimates of FAR and FRR, from what each identity adds to both.

    Measured where errors are plentiful (FAR in [.03, .3], FRR in [.1, .9]), scaled down to the share of FAR's variance
    that comes from identities at the rate asked for, and shrunk by what chance alone would give.
    """
    near_far, near_frr = float(np.clip(far, 0.03, 0.3)), float(np.clip(frr, 0.1, 0.9))
    at_far = point_influence(curve, np.array([point_at_far(curve, near_far)]))
    rho, plug_in = at_far.far[0], float(at_far.far_variance[0])
    a = frr_influence(curve, point_at_frr(curve, near_frr))
    variance = max(plug_in, float(rho @ rho) - plug_in) * float(a @ a)
    if variance <= 0.0:
        return 0.0
    scale = far_model.identity_share(far) / max(far_model.identity_share(near_far), 1e-12)
    found = float(a @ rho) / np.sqrt(variance) * np.sqrt(min(1.0, scale))
    if found == 0.0:
        return 0.0
    kept = max(0.0, 1.0 - 1.0 / (far_model.effective_identities * found * found))
    return float(np.clip(found * kept, -MOST_CORRELATION, MOST_CORRELATION))


def limits_at_far(
    curve: CurveTally, models: LatentPair, target: float, deviates: tuple[float, float]
) -> tuple[float, float]:
    """Limits for FRR at FAR = target; `deviates` are the t quantiles of FAR and FRR."""
    low, high = limits_at_fars(curve, [models], np.array([target]), deviates)
    return float(low[0]), float(high[0])


def limits_at_fars(
    curve: CurveTally, models: Sequence[LatentPair], targets: FloatArray, deviates: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Limits for FRR at many FARs at once, shape (P,) each; pairs of models may differ in their correlation only."""
    return _limits_at(
        models[0].far,
        models[0].frr,
        [pair.shares() for pair in models],
        curve.n_impostor,
        targets,
        deviates,
        lambda count: curve.false_nonmatches[_index_of_rank(curve, count)],
        np.array([curve.false_nonmatches[point_at_far(curve, float(target))] for target in targets]),
    )


def limits_at_frr(
    curve: CurveTally, models: LatentPair, target: float, deviates: tuple[float, float]
) -> tuple[float, float]:
    """Limits for FAR at FRR = target; `deviates` are the t quantiles of FAR and FRR."""

    def other(count: FloatArray) -> IntArray:
        missed = curve.false_nonmatches[::-1]
        reached = missed.size - np.searchsorted(missed, _whole(missed, count), side="right")
        return curve.false_matches[np.minimum(reached, curve.thresholds.size - 1)]

    own = curve.false_matches[[point_at_frr(curve, target)]]
    low, high = _limits_at(
        models.frr, models.far, [models.shares()], curve.n_genuine, np.array([target]), deviates[::-1], other, own
    )
    return float(low[0]), float(high[0])


def _limits_at(
    leading: LatentModel,
    other: LatentModel,
    shares: Sequence[tuple[FloatArray, FloatArray]],
    count: int,
    targets: FloatArray,
    deviates: tuple[float, float],
    errors_at: Callable[[FloatArray], IntArray],
    errors: NDArray[Any],
) -> tuple[FloatArray, FloatArray]:
    """Move the threshold by the leading rate's error, mirrored in probits, and take the other rate's limits there.

    `errors` are those of the other rate at the targets themselves: an extrapolated threshold does not move the lower
    limit above the estimate, nor the upper one below it. All targets, angles and sides are solved for together.
    """
    own, rest = (np.concatenate([pair[side] * deviates[side] for pair in shares]) for side in (0, 1))
    size = own.size
    own, rest, upper = np.tile(own, 2), np.tile(rest, 2), np.repeat([True, False], size)
    seen = np.tile(np.repeat(count * targets, ANGLES.size), 2)
    with np.errstate(invalid="ignore"):
        z = np.tile(np.repeat(ndtri(targets), ANGLES.size), 2)
        limit = np.clip(leading.limit(seen, own, upper), 1e-300, 1.0 - 1e-16)
        mirrored = np.where(np.isfinite(z), count * ndtr(2.0 * z - ndtri(limit)), 0.0)
    moved = np.where(upper, np.minimum(seen, mirrored), np.maximum(seen, mirrored))
    there, here = errors_at(moved), np.tile(np.repeat(errors, ANGLES.size), 2)
    found = other.limit(np.where(upper, np.maximum(there, here), np.minimum(there, here)), rest, upper)
    high, low = found.reshape(2, -1, ANGLES.size)
    return low.min(axis=1), high.max(axis=1)


def eer_limits(curve: CurveTally, models: LatentPair, deviates: tuple[float, float]) -> tuple[float, float]:
    """Limits for EER: at each angle the threshold where both rates' limits meet; the worst common value."""
    shares = models.shares()
    own, rest = shares[0] * deviates[0], shares[1] * deviates[1]
    met = _meeting(curve, models, np.tile(own, 2), np.tile(rest, 2), np.repeat([False, True], ANGLES.size))
    low, high = float(met[: ANGLES.size].min()), float(met[ANGLES.size :].max())
    return 0.0 if low <= 2.0 * SURE else low, 1.0 if high >= 1.0 - 2.0 * SURE else high


def _meeting(curve: CurveTally, models: LatentPair, own: FloatArray, rest: FloatArray, upper: BoolArray) -> FloatArray:
    """The common value of FAR's limit and FRR's limit where they meet, for each pair of deviates, shape (J,).

    FAR's limit rises along the curve and FRR's falls. Their difference in probits is nearly straight in the probit of
    FAR, so its zero is found by a few secant steps inside a shrinking bracket, beginning where the rates themselves
    are equal; the value is the mean, in probits, where the limits are nearest.
    """
    points, n = curve.thresholds.size, curve.n_impostor

    def z(k: IntArray) -> FloatArray:
        return ndtri((curve.false_matches[k] + 0.5) / (n + 1.0))

    def reaching(wanted: FloatArray) -> IntArray:
        """The first points whose probits of FAR are at least so large, without those of all points."""
        first, stop = np.zeros(wanted.size, dtype=np.int64), np.full(wanted.size, points)
        while np.any(first < stop):
            middle = (first + stop) // 2
            below = z(np.minimum(middle, points - 1)) < wanted
            first, stop = np.where(below & (first < stop), middle + 1, first), np.where(below, stop, middle)
        return first

    def ends(k: IntArray, entries: IntArray) -> tuple[FloatArray, FloatArray]:
        side, near = upper[entries], CLOSE / 20.0
        far = models.far.limit(curve.false_matches[k], own[entries], side, tolerance=near)
        frr = models.frr.limit(curve.false_nonmatches[k], rest[entries], side, tolerance=near)
        return ndtri(np.clip(far, SURE, 1.0 - SURE)), ndtri(np.clip(frr, SURE, 1.0 - SURE))

    size = own.size
    low, high = np.zeros(size, dtype=np.int64), np.full(size, points - 1)
    at = np.full(size, min(crossed_at(curve), points - 1))
    value, best = np.zeros(size), np.full(size, np.inf)
    slope, before, gap_before = np.full(size, 2.0), np.full(size, np.nan), np.zeros(size)
    left = np.arange(size)
    for _ in range(STEPS):
        here = at[left]
        far, frr = ends(here, left)
        gap = far - frr
        closer = np.abs(gap) < best[left]
        value[left[closer]], best[left[closer]] = (far + frr)[closer] / 2.0, np.abs(gap)[closer]
        low[left] = np.where(gap < 0.0, np.maximum(low[left], here), low[left])
        high[left] = np.where(gap >= 0.0, np.minimum(high[left], here), high[left])
        probit = z(here)
        moved = probit - before[left]
        known = np.isfinite(moved) & (np.abs(moved) > 1e-9)
        found = np.divide(gap - gap_before[left], moved, out=slope[left], where=known)
        slope[left] = np.where(found > 0.2, np.minimum(found, 20.0), slope[left])
        before[left], gap_before[left] = probit, gap
        aimed = reaching(probit - gap / slope[left])
        inside = (aimed > low[left]) & (aimed < high[left])
        at[left] = np.where(inside, aimed, np.clip((low[left] + high[left]) // 2, 0, points - 1))
        left = left[(best[left] >= CLOSE) & (high[left] - low[left] > 1)]
        if not left.size:
            break
    return ndtr(value)


def _index_of_rank(curve: CurveTally, count: FloatArray) -> IntArray:
    """The point with ⌊count⌋ false matches; below three, the point of a threshold extrapolated in the probit rate."""
    index = np.searchsorted(curve.false_matches, _whole(curve.false_matches, count), side="right") - 1
    rare = count < LEAST_RANK
    if not np.any(rare):
        return index
    n = curve.n_impostor
    last = int(max(30, 0.003 * n))
    at = np.unique(np.searchsorted(curve.false_matches, np.arange(LEAST_RANK, min(last, n - 1) + 1)))
    at = at[(at < curve.thresholds.size) & (curve.false_matches[np.minimum(at, curve.thresholds.size - 1)] < n)]
    if at.size < 3:
        return index
    z, s = ndtri(curve.false_matches[at] / n), curve.similarity[at]
    slope, level = np.polyfit(z, s, 1)
    wanted = level + slope * ndtri(np.maximum(count, 1e-12) / n)
    beyond = np.searchsorted(-curve.similarity, -wanted, side="right") - 1
    first = int(np.searchsorted(curve.false_matches, LEAST_RANK))
    return np.where(rare, np.clip(beyond, 0, first), index)


def _whole(errors: NDArray[Any], count: FloatArray) -> FloatArray:
    """⌊count⌋ where errors are whole numbers; shares of units need not be."""
    return count * (1.0 + 1e-12) if errors.dtype.kind == "f" else np.floor(count + 1e-9)
