"""Detection costs and Cllr: values, influences of comparisons, and t limits on the log and logit scales.

Notation: π is the prior of a genuine comparison, C_m the cost of a miss (false reject), C_f that of a false accept.
With m = min(πC_m, (1−π)C_f), the normalised detection cost of decisions at a threshold is

    DCF = α·FRR + β·FAR,    α = πC_m/m,    β = (1−π)C_f/m,

so that 1 is the cost of the better of "accept everything" and "reject everything". For scores l that are natural
log-likelihood ratios,

    Cllr = ½·mean over genuine of log₂(1 + e^−l) + ½·mean over impostor of log₂(1 + e^l)

(Brümmer & du Preez 2006). minDCF is the least DCF over thresholds; minCllr the Cllr of the best increasing map of the
scores, which pooling adjacent violators finds. Each of them is, to first order, a sum of one residual per comparison;
their variance is the dyadic one of `matchbound.stats.dyadic`. At a minimum the threshold, or the map, may be held
fixed (envelope theorem).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray

LOG2 = math.log(2.0)


@dataclass(frozen=True)
class CostWeights:
    """Prior π of a genuine comparison, between 0 and 1, costs C_m and C_f above 0, and what follows from them."""

    prior: float
    cost_miss: float = 1.0
    cost_false_accept: float = 1.0

    @property
    def _least(self) -> float:
        return min(self.prior * self.cost_miss, (1.0 - self.prior) * self.cost_false_accept)

    @property
    def miss(self) -> float:
        """α, the weight of FRR."""
        return self.prior * self.cost_miss / self._least

    @property
    def false_accept(self) -> float:
        """β, the weight of FAR."""
        return (1.0 - self.prior) * self.cost_false_accept / self._least

    @property
    def log_odds(self) -> float:
        """log(C_f(1−π)/(C_m·π)): the threshold of the best decision when scores are log-likelihood ratios."""
        return math.log(self.cost_false_accept * (1.0 - self.prior)) - math.log(self.cost_miss * self.prior)


def detection_costs(far: FloatArray, frr: FloatArray, weights: CostWeights) -> FloatArray:
    """DCF at each point of a curve, shape (K,)."""
    return np.asarray(weights.miss * frr + weights.false_accept * far)


def cheapest(far: FloatArray, frr: FloatArray, weights: CostWeights) -> int:
    """The point of the least DCF; the strictest one where several are alike to 1e-12."""
    cost = detection_costs(far, frr, weights)
    return int(np.flatnonzero(cost <= cost.min() + 1e-12)[0])


def log_losses(llr: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log₂(1 + e^−l) and log₂(1 + e^l): what a genuine and an impostor comparison of log-likelihood ratio l lose."""
    return np.logaddexp(0.0, -llr) / LOG2, np.logaddexp(0.0, llr) / LOG2


def cllr_of_masses(
    llr: FloatArray, genuine: IntArray | FloatArray, impostor: IntArray | FloatArray
) -> tuple[float, float, float]:
    """(Cllr, mean genuine loss, mean impostor loss), where so many comparisons have each log-likelihood ratio.

    Infinite ratios lose nothing where they are right: a cell without comparisons of a kind adds nothing to its mean.
    """
    lost = log_losses(llr)
    means = []
    for loss, count in zip(lost, (genuine, impostor), strict=True):
        held = count > 0
        means.append(float(loss[held] @ count[held]) / float(count.sum()))
    return (means[0] + means[1]) / 2.0, means[0], means[1]


@dataclass(frozen=True, eq=False)
class Calibration:
    """The best increasing map of scores to log-likelihood ratios, constant on blocks of cells.

    - ends, shape (B,): the cell after the last one of each block, cells in order of increasing score.
    - genuine, impostor, shape (B,): comparisons of either kind in each block.
    - llr, shape (B,): log((genuine/T)/(impostor/N)), strictly increasing; −∞ or ∞ for a block of one kind.
    """

    ends: IntArray
    genuine: FloatArray
    impostor: FloatArray
    llr: FloatArray


def capped(llr: FloatArray, genuine: FloatArray, impostor: FloatArray) -> FloatArray:
    """Finite log-likelihood ratios: within ±min(log(2·min(T, N)), largest finite one + log 2), shape (B,)."""
    finite = np.abs(llr[np.isfinite(llr)])
    largest = float(finite.max()) + LOG2 if finite.size else math.inf
    most = min(math.log(2.0 * min(float(genuine.sum()), float(impostor.sum()))), largest)
    return np.clip(llr, -most, most)


def calibrate(genuine: FloatArray | IntArray, impostor: FloatArray | IntArray) -> Calibration:
    """Pool adjacent violators: comparisons (or weights) in each cell, scores increasing, no cell empty; shape (K,)."""
    from matchbound.kernels.sweep import pool

    runs = _runs(genuine, impostor)
    g, n = (np.add.reduceat(count, runs).astype(np.float64) for count in (genuine, impostor))
    ends = np.empty(runs.size, dtype=np.int64)
    blocks = pool(g, n, ends)
    g, n = g[:blocks], n[:blocks]
    with np.errstate(divide="ignore"):
        llr = np.log(g / g.sum()) - np.log(n / n.sum())
    return Calibration(np.append(runs, genuine.size)[ends[:blocks]], g, n, llr)


def _runs(genuine: FloatArray | IntArray, impostor: FloatArray | IntArray) -> IntArray:
    """Where runs of cells of one kind begin; pooling never splits them, and there are few."""
    kind = np.where(impostor == 0, 1, np.where(genuine == 0, 2, 3))
    new = (kind[1:] != kind[:-1]) | (kind[1:] == 3)
    return np.concatenate([[0], np.flatnonzero(new) + 1]) if kind.size else np.empty(0, dtype=np.int64)


def log_t(estimate: float, variance: float, quantile: float) -> tuple[float, float]:
    """estimate·exp(±t·sd/estimate), for an estimate above 0."""
    half = quantile * math.sqrt(variance) / estimate
    return estimate * math.exp(-half), estimate * math.exp(half)


def logit_t(estimate: float, variance: float, quantile: float) -> tuple[float, float]:
    """Limits with `variance` of the logit of the estimate, which lies above 0 and below 1."""
    centre = math.log(estimate) - math.log1p(-estimate)
    half = quantile * math.sqrt(variance)
    return 1.0 / (1.0 + math.exp(-(centre - half))), 1.0 / (1.0 + math.exp(-(centre + half)))
