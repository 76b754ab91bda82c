"""Limits of a number that depends on FAR and FRR, from the latent limits of both: one budget of error for the two.

For angles θ between 0° and 90°, FAR may err by sin θ of its deviate while FRR errs by cos θ of its own, or, for rates
read from a curve, by r·sin θ + √(1−r²)·cos θ, r the correlation of the two estimates. The limit is the worst over the
angles. A model gives ``limit(errors, deviate, upper)``, the limit of a rate of which so many errors were seen, with a
tail of Φ(−deviate). No density of scores and no level for FAR is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.counts.curve import CurveTally
from matchbound.stats.curve.influence import point_influence
from matchbound.stats.curve.rates import index_at_far, index_at_frr
from matchbound.stats.intervals import ndtr, ndtri, normal_quantile, wilson_limits

if TYPE_CHECKING:
    from matchbound.stats.latent.model import LatentModel, Side

ANGLES = np.linspace(0.0, np.pi / 2.0, 7)
# Shares of a deviate at which limits are found; a polynomial through their probits, nearly straight, gives others.
SHARES = np.linspace(0.0, 1.0, 3)
# Numbers of errors at which limits are found; others are interpolated on the probit scale.
COUNTS = 12
NODES = 400
# Log-likelihood ratios over which rates are integrated, and how far beyond the extreme ones.
REACH, MARGIN = 10.0, 2.0
LEAST_RANK = 3
STEPS = 20
# Limits of the two rates meet when their probits are as near as this.
CLOSE = 0.005
MOST_CORRELATION = 0.7
# Rates as near to 0 or 1 as this are 0 or 1.
SURE = 1e-12


@dataclass(frozen=True)
class Independent:
    """A rate of independent comparisons, with Wilson's limits, where identities are unknown."""

    comparisons: float

    def deviate(self, level: float, side: Side = "two-sided") -> float:
        """The normal quantile with a tail of 1 − level, or half of it for a two-sided interval."""
        return normal_quantile((1.0 - level) / (2.0 if side == "two-sided" else 1.0))

    def limit(self, errors: ArrayLike, deviate: ArrayLike, upper: ArrayLike, *, tolerance: float = 0.0) -> FloatArray:
        """Limits for many counts at once, each with its own tail Φ(−deviate); they are exact to any tolerance."""
        rate = np.asarray(errors, dtype=np.float64) / self.comparisons
        low, high = wilson_limits(rate, self.comparisons, deviate)
        return np.where(upper, high, low)


@dataclass(frozen=True, eq=False)
class RateModels:
    """The models of FAR and FRR around one threshold; `correlation` is r, of the estimates of a curve's rates."""

    far: LatentModel | Independent
    frr: LatentModel | Independent
    correlation: float = 0.0
    _tables: dict[tuple[float, Side], Tables] = field(default_factory=dict, repr=False)

    @property
    def method(self) -> str:
        return "naive" if isinstance(self.far, Independent) else "latent"

    def deviates(self, level: float, side: Side = "two-sided") -> tuple[float, float]:
        """u for FAR and for FRR."""
        return self.far.deviate(level, side), self.frr.deviate(level, side)

    def tables(self, level: float, side: Side) -> Tables:
        """Limits of both rates for every number of errors; made once."""
        if (level, side) not in self._tables:
            far, frr = self.deviates(level, side)
            sides = [(_limit_table(self.far, far, up), _limit_table(self.frr, frr, up)) for up in (False, True)]
            self._tables[level, side] = sides
        return self._tables[level, side]

    def shares(self) -> tuple[FloatArray, FloatArray]:
        """How much of its t quantile each rate may err by, at each angle, when the first is the one that leads."""
        r, leading = self.correlation, np.sin(ANGLES)
        return leading, np.maximum(r * leading + np.sqrt(1.0 - r * r) * np.cos(ANGLES), 0.0)


def shared_limits(
    models: RateModels,
    errors: tuple[FloatArray, FloatArray],
    deviates: tuple[float, float],
    value: Callable[[FloatArray, FloatArray], FloatArray],
    *,
    rising: bool = True,
) -> tuple[float, float]:
    """Limits of value(FAR, FRR), which rises (or falls) with both rates at P thresholds: the worst over the angles.

    `deviates` (t quantiles) and `errors`, shape (P,), are of FAR and of FRR. `value` goes from rates of shape
    (P, angles) to numbers of shape (angles,).
    """
    ends = []
    for upper in (False, True):
        far = _at_shares(models.far, errors[0], deviates[0], upper)
        frr = _at_shares(models.frr, errors[1], deviates[1], upper)
        ends.append(value(_over_shares(far, np.sin(ANGLES)).T, _over_shares(frr, np.cos(ANGLES)).T))
    low, high = ends if rising else ends[::-1]
    return float(low.min()), float(high.max())


def _at_shares(model: LatentModel | Independent, errors: FloatArray, deviate: float, upper: bool) -> FloatArray:
    """Limits for numbers of errors at `SHARES` of the deviate, shape (shares, errors)."""
    x, d = np.tile(errors, SHARES.size), np.repeat(SHARES * deviate, errors.size)
    return model.limit(x, d, np.full(x.size, upper)).reshape(SHARES.size, errors.size)


def _over_shares(limits: FloatArray, shares: FloatArray) -> FloatArray:
    """From limits at `SHARES` of a deviate those at others, shape (shares, errors)."""
    through = np.polyfit(SHARES, ndtri(np.clip(limits, 1e-15, 1.0 - 1e-15)), SHARES.size - 1)
    rates = ndtr(np.vander(shares, SHARES.size) @ through)
    rates = np.where(limits.max(axis=0) <= 0.0, 0.0, rates)
    return np.where(limits.min(axis=0) >= 1.0, 1.0, rates)


@dataclass(frozen=True, eq=False)
class LimitTable:
    """Limits (`probits`, shape (D, C)) for C increasing numbers of errors, 0 to all, at D deviates, on one side."""

    comparisons: float
    counts: FloatArray
    probits: FloatArray

    def at(self, errors: FloatArray) -> FloatArray:
        """Limits for numbers of errors, shape (D, n): interpolated in probits between the counts, exact at them."""
        places = _probit_of_count(self.counts, self.comparisons)
        wanted = _probit_of_count(errors, self.comparisons)
        return ndtr(np.array([np.interp(wanted, places, row) for row in self.probits]))


# Of FAR and of FRR: with lower limits, and with upper ones.
Tables = list[tuple[LimitTable, LimitTable]]


def _limit_table(model: LatentModel | Independent, deviate: float, upper: bool) -> LimitTable:
    """Limits at 0, all, and about `COUNTS` numbers of errors between, even in probits, at `SHARES` of the deviate."""
    n = model.comparisons
    end = float(ndtri(min(1.0 / n, 0.25)))
    inner = np.rint(ndtr(np.linspace(end, -end, COUNTS)) * n)
    counts = np.unique(np.concatenate([[0.0], np.clip(inner, 0.0, n), [n]]))
    return LimitTable(n, counts, ndtri(np.clip(_at_shares(model, counts, deviate, upper), 1e-15, 1.0 - 1e-15)))


def _probit_of_count(errors: FloatArray, n: float) -> FloatArray:
    return ndtri((errors + 0.3) / (n + 0.6))


def integrated_limits(
    tables: Tables, llr: FloatArray, genuine: FloatArray, impostor: FloatArray
) -> tuple[float, float]:
    """Limits of Cllr = (1/2ln2)·[∫FAR(τ)σ(τ)dτ + ∫FRR(τ)σ(−τ)dτ], σ the logistic function.

    `genuine` and `impostor` comparisons have each of the finite, increasing log-likelihood ratios; shape (B,) each. The
    latent limits of FAR and FRR at one deviate each stand for the rates at every τ, and share the budget by angles.
    FAR's integral runs from −REACH to the largest impostor ratio + MARGIN and FRR's from the smallest genuine ratio −
    MARGIN to REACH: the upper limit with no error seen does not fall with τ, so that it must end near the extreme
    scores.
    """

    def below(count: FloatArray, place: FloatArray) -> FloatArray:
        return np.concatenate([[0.0], np.cumsum(count)])[np.searchsorted(llr, place, side="left")]

    spans = (-REACH, float(llr[impostor > 0][-1]) + MARGIN), (float(llr[genuine > 0][0]) - MARGIN, REACH)
    ends = []
    for far, frr in tables:
        own = _part(far, lambda place: impostor.sum() - below(impostor, place), spans[0], 1.0)
        rest = _part(frr, lambda place: below(genuine, place), spans[1], -1.0)
        ends.append(np.exp(np.polyval(own, np.sin(ANGLES))) + np.exp(np.polyval(rest, np.cos(ANGLES))))
    scale = 2.0 * np.log(2.0)
    return float(ends[0].min()) / scale, float(ends[1].max()) / scale


def _part(
    table: LimitTable, errors_at: Callable[[FloatArray], FloatArray], span: tuple[float, float], sign: float
) -> FloatArray:
    """The logarithm of one integral as a polynomial in the share of the deviate; coefficients of `np.polyval`."""
    low, high = span
    if not high > low:
        return np.array([-np.inf])
    edges = np.linspace(low, high, NODES + 1)
    middle = (edges[1:] + edges[:-1]) / 2.0
    weight = np.diff(np.logaddexp(0.0, sign * edges)) * sign
    value = table.at(errors_at(middle)) @ weight
    return np.polyfit(SHARES, np.log(np.maximum(value, 1e-300)), SHARES.size - 1)


def estimate_correlation(curve: CurveTally, far_model: LatentModel, far: float, frr: float) -> float:
    """r: the correlation of the estimates of FAR and FRR, from what each identity adds to both.

    Measured where errors are plentiful (FAR in [.03, .3], FRR in [.1, .9]), scaled down to the share of FAR's variance
    that comes from identities at the rate asked for, and shrunk by what chance alone would give.
    """
    near_far, near_frr = float(np.clip(far, 0.03, 0.3)), float(np.clip(frr, 0.1, 0.9))
    points = np.array([index_at_far(curve.far, near_far), index_at_frr(curve.frr, near_frr)])
    in_order = np.sort(points)
    at_far, at_frr = np.searchsorted(in_order, points)
    terms = point_influence(curve, in_order)
    rho, plug_in, a = terms.far[at_far], float(terms.far_variance[at_far]), terms.frr[at_frr]
    variance = max(plug_in, float(rho @ rho) - plug_in) * float(a @ a)
    if variance <= 0.0:
        return 0.0
    scale = far_model.identity_share(far) / max(far_model.identity_share(near_far), 1e-12)
    found = float(a @ rho) / np.sqrt(variance) * np.sqrt(min(1.0, scale))
    if found == 0.0:
        return 0.0
    kept = max(0.0, 1.0 - 1.0 / (far_model.effective_identities * found * found))
    return float(np.clip(found * kept, -MOST_CORRELATION, MOST_CORRELATION))


def point_limits(
    curve: CurveTally,
    models: Sequence[RateModels],
    targets: FloatArray,
    deviates: tuple[float, float],
    given: str = "far",
) -> tuple[FloatArray, FloatArray]:
    """Limits for FRR at many FARs at once, or for FAR at FRRs (`given` is ``"frr"``), shape (P,) each.

    The threshold moves by the leading rate's error, mirrored in probits, and the other rate's limits there are taken.
    An extrapolated threshold does not move the lower limit above the estimate, nor the upper one below it. All targets,
    angles and sides are solved for together. Pairs of models, one per target, may differ in their correlation only.
    """
    if given == "far":
        leading, other, count = models[0].far, models[0].frr, curve.n_impostor
        errors = np.array([curve.false_nonmatches[index_at_far(curve.far, target)] for target in targets])
    else:
        leading, other, count, deviates = models[0].frr, models[0].far, curve.n_genuine, deviates[::-1]
        errors = np.array([curve.false_matches[index_at_frr(curve.frr, target)] for target in targets])
    shares = [pair.shares() for pair in models]
    own, rest = (np.concatenate([share[side] * deviates[side] for share in shares]) for side in (0, 1))
    own, rest, upper = np.tile(own, 2), np.tile(rest, 2), np.repeat([True, False], own.size)
    seen, z, here = (np.tile(np.repeat(each, ANGLES.size), 2) for each in (count * targets, ndtri(targets), errors))
    with np.errstate(invalid="ignore"):
        limit = np.clip(leading.limit(seen, own, upper), 1e-300, 1.0 - 1e-16)
        mirrored = np.where(np.isfinite(z), count * ndtr(2.0 * z - ndtri(limit)), 0.0)
    moved = np.where(upper, np.minimum(seen, mirrored), np.maximum(seen, mirrored))
    if given == "far":
        there = curve.false_nonmatches[_index_of_rank(curve, moved)]
    else:
        missed = curve.false_nonmatches[::-1]
        reached = missed.size - np.searchsorted(missed, _whole(missed, moved), side="right")
        there = curve.false_matches[np.minimum(reached, curve.thresholds.size - 1)]
    limits = other.limit(np.where(upper, np.maximum(there, here), np.minimum(there, here)), rest, upper)
    high, low = limits.reshape(2, -1, ANGLES.size)
    return low.min(axis=1), high.max(axis=1)


def eer_limits(curve: CurveTally, models: RateModels, deviates: tuple[float, float]) -> tuple[float, float]:
    """Limits for EER: at each angle the threshold where both rates' limits meet; the worst common value."""
    shares = models.shares()
    own, rest = shares[0] * deviates[0], shares[1] * deviates[1]
    met = _meeting(curve, models, np.tile(own, 2), np.tile(rest, 2), np.repeat([False, True], ANGLES.size))
    low, high = float(met[: ANGLES.size].min()), float(met[ANGLES.size :].max())
    return 0.0 if low <= 2.0 * SURE else low, 1.0 if high >= 1.0 - 2.0 * SURE else high


def _meeting(curve: CurveTally, models: RateModels, own: FloatArray, rest: FloatArray, upper: BoolArray) -> FloatArray:
    """The common value of FAR's limit and FRR's limit where they meet, for each pair of deviates, shape (J,).

    FAR's limit rises along the curve and FRR's falls. Their difference in probits is nearly straight in the probit of
    FAR, so its zero is found by a few secant steps inside a shrinking bracket, beginning where the rates themselves
    are equal; the value is the mean, in probits, where the limits are nearest.
    """
    points, n = curve.thresholds.size, curve.n_impostor

    def z(k: IntArray) -> FloatArray:
        return ndtri((curve.false_matches[k] + 0.5) / (n + 1.0))

    def ends(k: IntArray, entries: IntArray) -> tuple[FloatArray, FloatArray]:
        side, near = upper[entries], CLOSE / 20.0
        far = models.far.limit(curve.false_matches[k], own[entries], side, tolerance=near)
        frr = models.frr.limit(curve.false_nonmatches[k], rest[entries], side, tolerance=near)
        return ndtri(np.clip(far, SURE, 1.0 - SURE)), ndtri(np.clip(frr, SURE, 1.0 - SURE))

    size = own.size
    low, high = np.zeros(size, dtype=np.int64), np.full(size, points - 1)
    at = np.full(size, int(np.argmax(curve.far >= curve.frr)))
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
        aimed = np.searchsorted(curve.false_matches, ndtr(probit - gap / slope[left]) * (n + 1.0) - 0.5)
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
