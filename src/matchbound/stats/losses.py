"""Mean losses of scored comparisons: any function of score and label.

The mean over genuine and the mean over impostor comparisons are weighed by a prior, π·mean_genuine +
(1−π)·mean_impostor, or all comparisons count alike. Either way the statistic is a sum of residuals over
comparisons, one per comparison: π(l − mean_genuine)/T or (1−π)(l − mean_impostor)/N, and its variance is the
dyadic one of `matchbound.stats.dyadic`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray
from matchbound.errors import DataError

# ``loss(score, genuine)`` gives one number per comparison; both arrays have shape (n,).
Loss = Callable[[FloatArray, BoolArray], FloatArray]


def cross_entropy(score: FloatArray, genuine: BoolArray) -> FloatArray:
    """−log of the probability given to what is true; the score is the probability of "same", above 0 and below 1."""
    p = _probability(score, "cross-entropy")
    if np.any((p <= 0.0) & genuine) or np.any((p >= 1.0) & ~genuine):
        raise DataError(
            "cross-entropy is infinite where a score of 0 or 1 is wrong; keep scores between 1e-6 and 1 − 1e-6"
        )
    return np.asarray(-np.log(np.where(genuine, p, 1.0 - p)))


def brier(score: FloatArray, genuine: BoolArray) -> FloatArray:
    """(score − label)²; the score is the probability of "same"."""
    return np.asarray((_probability(score, "brier") - genuine) ** 2)


def cllr(score: FloatArray, genuine: BoolArray) -> FloatArray:
    """log₂(1 + 1/LR) for genuine and log₂(1 + LR) for impostor comparisons; the score is the natural logarithm of LR.

    With a prior of ½ its mean is Cllr (Brümmer & du Preez 2006, §5).
    """
    signed = np.where(genuine, -score, score)
    return np.asarray(np.logaddexp(0.0, signed) / np.log(2.0))


def detection_cost(
    threshold: float, *, cost_reject: float = 1.0, cost_accept: float = 1.0, distance: bool = False
) -> Loss:
    """The loss whose mean at a prior π is the detection cost π·C_reject·FRR + (1−π)·C_accept·FAR."""

    def loss(score: FloatArray, genuine: BoolArray) -> FloatArray:
        match = score <= threshold if distance else score >= threshold
        return np.where(genuine, cost_reject * ~match, cost_accept * match).astype(np.float64)

    return loss


# Losses by name, each with the prior that goes with it (None: all comparisons count alike).
LOSSES: dict[str, tuple[Loss, float | None]] = {
    "cllr": (cllr, 0.5),
    "cross-entropy": (cross_entropy, None),
    "brier": (brier, None),
}


def _probability(score: FloatArray, name: str) -> FloatArray:
    if score.size and not (float(score.min()) >= 0.0 and float(score.max()) <= 1.0):
        raise DataError(f'{name} takes scores that are probabilities of "same", between 0 and 1; these go outside')
    return score


@dataclass(frozen=True, eq=False)
class LossTerms:
    """A mean loss and what each comparison adds to it.

    estimate
    - residual, shape (n,): they sum to 0.
    - genuine_mean, impostor_mean: NaN where there is no comparison of the kind.
    """

    estimate: float
    residual: FloatArray
    genuine_mean: float
    impostor_mean: float


def loss_terms(value: FloatArray, genuine: BoolArray, prior: float | None) -> LossTerms:
    """The mean of `value` (shape (n,)) over comparisons, weighed by the prior of genuine ones."""
    n_genuine, n_impostor = int(np.count_nonzero(genuine)), int(np.count_nonzero(~genuine))
    own = float(value[genuine].mean()) if n_genuine else float("nan")
    other = float(value[~genuine].mean()) if n_impostor else float("nan")
    if prior is None:
        estimate = float(value.mean())
        return LossTerms(estimate, (value - estimate) / value.size, own, other)
    if (prior > 0.0 and not n_genuine) or (prior < 1.0 and not n_impostor):
        raise DataError(f"a prior of {prior:g} needs genuine and impostor comparisons, and the data lack one kind")
    estimate = (prior * own if prior > 0.0 else 0.0) + ((1.0 - prior) * other if prior < 1.0 else 0.0)
    residual = np.zeros(value.size)
    if n_genuine:
        residual[genuine] = prior * (value[genuine] - own) / n_genuine
    if n_impostor:
        residual[~genuine] = (1.0 - prior) * (value[~genuine] - other) / n_impostor
    return LossTerms(estimate, residual, own, other)
