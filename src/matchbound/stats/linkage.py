"""Precision, recall and F1 of decisions at a threshold: values at a prior, and influences by identity.

TP of T genuine comparisons match, FN do not; FP of N impostor comparisons match. With weights c_g and c_i of genuine
and impostor comparisons, precision = c_g·TP/(c_g·TP + c_i·FP) and F1 = 2c_g·TP/(2c_g·TP + c_i·FP + c_g·FN). At the
prevalence of the sample both weights are 1; at a prior π they are π/T and (1−π)/N. Hence

    logit precision = log(c_g·TP) − log(c_i·FP),    logit F1 = log(2c_g·TP) − log(c_i·FP + c_g·FN).

A residual of a comparison is what it adds to the logit. At a prior, counts are centred by the rates (T and N count as
given); at the sample's prevalence by their means over all identities and all pairs of identities (T and N are part of
what was sampled). Residuals belong to comparisons: identities and pairs without any have none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import Tally
from matchbound.stats.dyadic import DyadicSums


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decisions about comparisons, or units of them, at the k-th threshold of a tally."""

    tally: Tally
    k: int

    @property
    def missed(self) -> float:
        """FN."""
        return float(self.tally.genuine.errors[self.k].sum())

    @property
    def false_matches(self) -> float:
        """FP."""
        return float(self.tally.impostor.errors[self.k].sum()) / 2.0

    @property
    def hits(self) -> float:
        """TP."""
        return self.tally.genuine.total - self.missed

    @property
    def prevalence(self) -> float:
        """T/(T + N), the share of genuine comparisons."""
        return self.tally.genuine.total / (self.tally.genuine.total + self.tally.impostor.total)


def precision_of(far: FloatArray | float, frr: FloatArray | float, prior: float) -> FloatArray:
    """π·(1−FRR)/(π·(1−FRR) + (1−π)·FAR); NaN where nothing matches."""
    true, false = prior * (1.0 - np.asarray(frr)), (1.0 - prior) * np.asarray(far)
    total = true + false
    return np.asarray(np.divide(true, total, out=np.full(np.shape(total), np.nan), where=total > 0.0))


def f1_of(far: FloatArray | float, frr: FloatArray | float, prior: float) -> FloatArray:
    """2π(1−FRR)/(2π(1−FRR) + (1−π)FAR + π·FRR); 0 where no genuine comparison matches."""
    true, false = prior * (1.0 - np.asarray(frr)), (1.0 - prior) * np.asarray(far)
    wrong = false + prior * np.asarray(frr)
    return np.asarray(2.0 * true / (2.0 * true + wrong))


def precision_sums(counts: Decisions, prior: float | None) -> DyadicSums:
    """Residuals of logit precision by identity, at a prior or (None) at the sample's prevalence; TP and FP > 0."""
    found, _, between = _residuals(counts, prior is None)
    return (found * (1.0 / counts.hits)).plus(between * (-1.0 / counts.false_matches))


def f1_sums(counts: Decisions, prior: float | None) -> DyadicSums:
    """Residuals of the logit of F1 by identity, at a prior or (None) at the sample's prevalence; TP and FP + FN > 0."""
    weight_g = 1.0 if prior is None else prior / counts.tally.genuine.total
    weight_i = 1.0 if prior is None else (1.0 - prior) / counts.tally.impostor.total
    wrong = weight_i * counts.false_matches + weight_g * counts.missed
    found, missed, between = _residuals(counts, prior is None)
    return (found * (1.0 / counts.hits)).plus(missed * (-weight_g / wrong)).plus(between * (-weight_i / wrong))


def _residuals(counts: Decisions, by_sample: bool) -> tuple[DyadicSums, DyadicSums, DyadicSums]:
    """Of the numbers of hits, of misses and of false matches: counts less what is expected of each."""
    genuine, impostor, k = counts.tally.genuine, counts.tally.impostor, counts.k
    g, misses, matched, false = genuine.comparisons, genuine.errors[k], impostor.errors[k], counts.false_matches
    none = np.zeros(g.size)
    if by_sample:
        own = [np.where(g > 0, count - float(count.sum()) / g.size, 0.0) for count in (g - misses, misses)]
        made = _partners(counts.tally)
        p, expected = false / (g.size * (g.size - 1) / 2.0), (2.0 * false, float(made.sum()))
    else:
        own = [count - float(count.sum()) / float(g.sum()) * g for count in (g - misses, misses)]
        made, p, expected = impostor.comparisons, false / impostor.total, (impostor.sum_nm[k], impostor.sum_mm)
    square = (float(impostor.sum_nn[k]) - 2.0 * p * float(expected[0]) + p * p * float(expected[1])) / 2.0
    return DyadicSums(own[0], none, 0.0), DyadicSums(own[1], none, 0.0), DyadicSums(none, matched - p * made, square)


def _partners(tally: Tally) -> IntArray:
    """With how many other identities each was compared; where pairs were not kept, with all that take part."""
    if tally.impostor.compared is not None:
        return tally.impostor.compared.units().by_identity(tally.n_identities)
    taking_part = tally.impostor.comparisons > 0
    return np.where(taking_part, np.count_nonzero(taking_part) - 1, 0).astype(np.int64)
