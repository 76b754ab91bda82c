"""The paper's union rule for FRR at a FAR, and the choice of its level for FAR by simulation on the sample.

Section "Pointwise intervals for ROC curves" of Fogliato, Patil & Perona (2024): an interval for FAR at `level_far`
gives two thresholds; the intervals for FRR at these two thresholds are joined. The authors' program and figures use
α_FAR = 0.1, a `level_far` of 0.9. FAR takes steps, and its limits mostly fall between two: the thresholds are rounded
outwards, so that every threshold whose FAR lies within the limits is between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.curve import CurveSums, CurveTally, SortedCurve
from matchbound.stats.curve.rates import SLACK, curve_variances, index_at_far
from matchbound.stats.intervals import effective_n, wald, wilson
from matchbound.stats.resampling import block_rng

# The level of FAR's interval, 1 − α_FAR, in the authors' program.
LEVEL_FAR = 0.9
# Levels for FAR among which the calibration chooses.
LEVELS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True, eq=False)
class RatesAndVariances:
    """A curve as far as the union rule needs it; variances are worked out where they are asked for.

    - far, frr, shape (K,)
    - far_floor, frr_floor: least effective numbers of trials.
    - base: whose intervals are joined: ``"wilson"`` or ``"wald"``.
    """

    far: FloatArray
    frr: FloatArray
    sums: CurveSums
    n_impostor: int
    n_genuine: int
    far_floor: float
    frr_floor: float
    base: str = "wilson"

    def interval(self, metric: str, k: int, tail: float) -> tuple[float, float]:
        """Wilson's (or Wald's) limits for FAR or FRR at point k."""
        part = self.sums.take(np.array([k]))
        rejected = self.n_genuine - part.accepted_total
        variances = curve_variances(part, part.errors_total, self.n_impostor, rejected, self.n_genuine)
        estimate, variance, floor = float(self.far[k]), float(variances.far[0]), self.far_floor
        if metric == "frr":
            estimate, variance, floor = float(self.frr[k]), float(variances.frr[0]), self.frr_floor
        if self.base == "wald":
            return wald(estimate, variance, min(tail, 0.5))
        return wilson(estimate, effective_n(estimate, variance, floor), min(tail, 0.5))


def rates_and_variances(curve: CurveTally, base: str = "wilson") -> RatesAndVariances:
    """The curve of the data themselves."""
    return RatesAndVariances(
        curve.false_matches / curve.n_impostor,
        curve.false_nonmatches / curve.n_genuine,
        curve.sums,
        curve.n_impostor,
        curve.n_genuine,
        float(np.count_nonzero(curve.impostor_comparisons) // 2),
        float(np.count_nonzero(curve.genuine_comparisons)),
        base,
    )


def union_limits(
    curve: RatesAndVariances, target: float, tail: float, tail_given: float, given: str = "far"
) -> tuple[float, float]:
    """Limits for FRR at FAR = target: FRR intervals at both ends of FAR's interval, joined; or with roles exchanged."""
    rates = curve.far if given == "far" else curve.frr[::-1]  # never decreasing

    def limits(metric: str, at: int, tail: float) -> tuple[float, float]:
        return curve.interval(metric, at if given == "far" else rates.size - 1 - at, tail)

    low, high = limits(given, index_at_far(rates, target), tail_given)
    reached = min(int(np.searchsorted(rates, high / SLACK, side="left")), rates.size - 1)
    ends = (index_at_far(rates, low), max(index_at_far(rates, high), reached))
    lows, highs = zip(*(limits("frr" if given == "far" else "far", end, tail) for end in ends), strict=True)
    return min(lows), max(highs)


@dataclass(frozen=True, eq=False)
class Calibration:
    """What a simulation on the sample says about levels for FAR.

    - levels, coverage, width, shape (L,): levels tried; how often the rule covered the sample's own FRR@FAR.
    - level_far: the smallest level that covered as often as asked, or the largest tried where none did (`reached`).
    """

    levels: FloatArray
    coverage: FloatArray
    width: FloatArray
    level_far: float
    reached: bool


def calibrate_level_far(curve: SortedCurve, target: float, level: float, n_simulations: int, seed: int) -> Calibration:
    """Choose FAR's level: draw identities with replacement, as if the sample were the population.

    Each simulated sample has as many identities as the data; copies of one identity count as different identities that
    were not compared with each other. The sample's own FRR@FAR plays the truth.
    """
    frr = curve.false_nonmatches / curve.n_genuine
    truth = float(frr[index_at_far(curve.false_matches / curve.n_impostor, target)])
    levels = np.array(LEVELS)
    hits, width, samples = np.zeros(levels.size), np.zeros(levels.size), 0
    for number in range(n_simulations):
        rng = block_rng(seed, number)
        copies = np.bincount(rng.integers(0, curve.n_identities, curve.n_identities), minlength=curve.n_identities)
        drawn = _drawn_curve(curve, copies.astype(np.int64))
        if drawn is None:
            continue
        samples += 1
        for row, level_far in enumerate(levels):
            low, high = union_limits(drawn, target, (1.0 - level) / 2.0, (1.0 - level_far) / 2.0)
            hits[row] += low <= truth <= high
            width[row] += high - low
    samples = max(samples, 1)
    good = np.flatnonzero(hits / samples >= level)
    chosen = float(levels[good[0]]) if good.size else float(levels[-1])
    return Calibration(levels, hits / samples, width / samples, chosen, bool(good.size))


def _drawn_curve(curve: SortedCurve, copies: IntArray) -> RatesAndVariances | None:
    """The curve of a sample with so many copies of each identity; None where one kind of comparison is missing."""
    sums = curve.weighted_sums(copies)
    n = sums.errors_total
    t = int(copies @ curve.genuine_comparisons)
    if int(n[-1]) == 0 or t == 0:
        return None
    size = int(copies[curve.impostor_comparisons > 0].sum())
    return RatesAndVariances(
        n / n[-1],
        1.0 - sums.accepted_total / t,
        sums,
        int(n[-1]),
        t,
        float(max(size // 2, 1)),
        float(copies[curve.genuine_comparisons > 0].sum()),
    )
