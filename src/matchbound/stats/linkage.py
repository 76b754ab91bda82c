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
from matchbound.stats.dyadic import DyadicSums


@dataclass(frozen=True, eq=False)
class LinkageCounts:
    """Decisions at one threshold by identity.

    - misses, genuine, shape (G,): e_i of g_i genuine comparisons that did not match.
    - matched, impostor, shape (G,): S_i of m_i impostor comparisons that matched; one counts at both of its identities.
    - partners, shape (G,): with how many other identities each was compared.
    - nn, nm, mm: Σ n_ij², Σ n_ij·m_ij and Σ m_ij² over unordered pairs of identities.
    """

    misses: IntArray
    genuine: IntArray
    matched: IntArray
    impostor: IntArray
    partners: IntArray
    nn: float
    nm: float
    mm: float

    @property
    def total(self) -> float:
        """T."""
        return float(self.genuine.sum())

    @property
    def impostor_total(self) -> float:
        """N."""
        return float(self.impostor.sum()) / 2.0

    @property
    def missed(self) -> float:
        """FN."""
        return float(self.misses.sum())

    @property
    def false_matches(self) -> float:
        """FP."""
        return float(self.matched.sum()) / 2.0

    @property
    def hits(self) -> float:
        """TP."""
        return self.total - self.missed

    @property
    def prevalence(self) -> float:
        """T/(T + N), the share of genuine comparisons."""
        return self.total / (self.total + self.impostor_total)


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


def precision_sums(counts: LinkageCounts, by_sample: bool) -> DyadicSums:
    """Residuals of logit precision by identity; TP, FP > 0; `by_sample`: at the sample's prevalence, itself random."""
    hits, false = counts.hits, counts.false_matches
    own = _centred(counts.genuine - counts.misses, counts.genuine, by_sample) / hits
    shared, square = _between(counts, by_sample)
    return DyadicSums(own, -shared / false, square / false**2)


def f1_sums(counts: LinkageCounts, prior: float | None) -> DyadicSums:
    """Residuals of the logit of F1 by identity, at a prior or (None) at the sample's prevalence; TP and FP + FN > 0."""
    by_sample = prior is None
    weight_g = 1.0 if prior is None else prior / counts.total
    weight_i = 1.0 if prior is None else (1.0 - prior) / counts.impostor_total
    wrong = weight_i * counts.false_matches + weight_g * counts.missed
    own = _centred(counts.genuine - counts.misses, counts.genuine, by_sample) / counts.hits
    own = own - weight_g * _centred(counts.misses, counts.genuine, by_sample) / wrong
    shared, square = _between(counts, by_sample)
    scale = weight_i / wrong
    return DyadicSums(own, -scale * shared, scale**2 * square)


def half_sums(counts: LinkageCounts) -> DyadicSums:
    """Residuals of (FAR + FRR)/2 by identity."""
    own = _centred(counts.misses, counts.genuine, False) / (2.0 * counts.total)
    shared, square = _between(counts, False)
    scale = 1.0 / (2.0 * counts.impostor_total)
    return DyadicSums(own, scale * shared, scale**2 * max(square, 0.0))


def _centred(count: IntArray, comparisons: IntArray, by_sample: bool) -> FloatArray:
    """Counts of genuine comparisons by identity, less what is expected, shape (G,)."""
    total = float(count.sum())
    if by_sample:
        return np.where(comparisons > 0, count - total / count.size, 0.0)
    return np.asarray(count - total / float(comparisons.sum()) * comparisons)


def _between(counts: LinkageCounts, by_sample: bool) -> tuple[FloatArray, float]:
    """(S_i less what is expected, Σ_{i<j} of the square of n_ij less what is expected)."""
    false, size = counts.false_matches, counts.matched.size
    if by_sample:
        mean = false / (size * (size - 1) / 2.0)
        compared = float(counts.partners.sum()) / 2.0
        return counts.matched - mean * counts.partners, counts.nn - 2.0 * mean * false + mean * mean * compared
    p = false / counts.impostor_total
    return counts.matched - p * counts.impostor, counts.nn - 2.0 * p * counts.nm + p * p * counts.mm
