"""What the sample itself says about the variance of its rate, and how far that is to be trusted.

The model's variance comes from correlations that are pooled over rates, so that it is steady where errors are few. The
sample's own variance has no model in it, and is poor where a few people make most errors: it is low exactly in the
samples that missed those people. As people become many, it is the better of the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.counts.tally import GenuineTally, ImpostorTally, Tally
from matchbound.stats.latent.moments import LeaveOneOut
from matchbound.stats.variance import far_bias_factor, frr_bias_factor


@dataclass(frozen=True, eq=False)
class OwnVariance:
    """The sample's relative variance of the rate at several numbers of errors; float64 arrays, shape (K,).

    errors
        Increasing, each with at least one error.
    relative
        v̂: the variance estimated without bias, over the squared rate.
    noise
        The squared coefficient of variation of v̂, as far as the sample shows it.
    mirrored
        Whether errors are counted from the other side of the scale (comparisons that did not err).
    """

    errors: FloatArray
    relative: FloatArray
    noise: FloatArray
    mirrored: bool = False

    def at(self, errors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """v̂ and its noise at any numbers of errors, between known ones linear in logarithms; NaN where none is known.

        Beyond the known ones v̂·errors and the noise stay as they are at the last one.
        """
        if not self.errors.size:
            nothing = np.full(np.shape(errors), np.nan)
            return nothing, nothing
        place = np.log(np.maximum(errors, 0.5))
        known = np.log(self.errors)
        effect = np.log(self.relative * self.errors)
        relative = np.exp(np.interp(place, known, effect) - place)
        return relative, np.interp(place, known, self.noise)


def far_own_variance(tally: ImpostorTally, mirrored: bool, identities: float) -> OwnVariance:
    """v̂ = max(f(4R − 2Q), 2Q)/(N2·p)² at each threshold, f the bias correction for G_e identities.

    Its noise is what the identities' own parts of R differ by: Σ(r_i² − R/G)²/R².
    """
    m, s = tally.comparisons.astype(np.float64), tally.errors.astype(np.float64)
    ordered = m.sum()
    p = s.sum(axis=1) / ordered
    moved = s - p[:, None] * m
    parts = moved**2
    r = parts.sum(axis=1)
    q = np.maximum(tally.sum_nn - 2.0 * p * tally.sum_nm + p * p * float(tally.sum_mm), 0.0)
    factor = far_bias_factor(identities)
    factor = factor if np.isfinite(factor) else 1.0
    variance = np.maximum(factor * (4.0 * r - 2.0 * q), 2.0 * q) / ordered**2
    taking_part = max(int(np.count_nonzero(m)), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = (parts**2).sum(axis=1) / r**2 - 1.0 / taking_part
    return _known(p, ordered / 2.0, variance, noise, mirrored)


def frr_own_variance(tally: GenuineTally, mirrored: bool, identities: float) -> OwnVariance:
    """v̂ = Σa²/T²·G_e/(G_e − 1)/q², a_i = e_i − q·g_i; its noise Σa⁴/(Σa²)² − 1/G."""
    g, e = tally.comparisons.astype(np.float64), tally.errors.astype(np.float64)
    total = g.sum()
    q = e.sum(axis=1) / total
    squares = (e - q[:, None] * g) ** 2
    spread = squares.sum(axis=1)
    factor = frr_bias_factor(identities)
    factor = factor if np.isfinite(factor) else 1.0
    taking_part = max(int(np.count_nonzero(g)), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = (squares**2).sum(axis=1) / spread**2 - 1.0 / taking_part
    return _known(q, total, factor * spread / total**2, noise, mirrored)


def with_jackknife(own: OwnVariance, tally: Tally, mirrored: bool, without: LeaveOneOut | None = None) -> OwnVariance:
    """The same with noise at least (G−1)/G·Σ(V_h − V̄)²/V̂² over samples that each leave one identity h out.

    V_h = max(0, 4R − 2Q)/N2² without h, and V̂ = max(4R − 2Q, 2Q)/N2². Known at the thresholds of `tally`, which must
    have kept its pairs, and in between linear.
    """
    if not tally.has_pairs or not own.errors.size:
        return own
    without = without or LeaveOneOut(tally)
    taking_part = tally.impostor.comparisons > 0
    size = int(np.count_nonzero(taking_part))
    total = float(tally.impostor.comparisons.sum()) / 2.0
    known, noise = [], []
    for k in range(tally.thresholds.size):
        wrong = float(tally.impostor.errors[k].sum()) / 2.0
        seen = total - wrong if mirrored else wrong
        if not 1.0 <= seen <= total / 2.0 + 1.0:
            continue
        design, products = without.at(k)
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.maximum(0.0, products.sharing + products.within) / design.comparisons**2
        left = left[taking_part]
        s, m = tally.impostor.errors[k].astype(np.float64), tally.impostor.comparisons.astype(np.float64)
        p = wrong / total
        r = float(((s - p * m) ** 2).sum())
        q = float(tally.impostor.sum_nn[k] - 2.0 * p * tally.impostor.sum_nm[k]) + p * p * float(tally.impostor.sum_mm)
        whole = max(4.0 * r - 2.0 * q, 2.0 * q) / (4.0 * total**2)
        if whole > 0.0 and np.all(np.isfinite(left)):
            known.append(seen)
            noise.append((size - 1.0) / size * float(((left - left.mean()) ** 2).sum()) / whole**2)
    if not known:
        return own
    order = np.argsort(known)
    jack = np.interp(np.log(own.errors), np.log(np.array(known)[order]), np.array(noise)[order])
    return OwnVariance(own.errors, own.relative, np.maximum(own.noise, jack), own.mirrored)


def _known(rate: FloatArray, total: float, variance: FloatArray, noise: FloatArray, mirrored: bool) -> OwnVariance:
    """What is known, by increasing numbers of errors, each once, at rates of at most one half."""
    count = np.rint((1.0 - rate if mirrored else rate) * total)
    count, first = np.unique(count, return_index=True)
    kept = (count >= 1.0) & (count <= total / 2.0 + 1.0) & (variance[first] > 0.0) & np.isfinite(noise[first])
    count, variance, noise = count[kept], variance[first][kept], noise[first][kept]
    return OwnVariance(count, variance / (count / total) ** 2, np.maximum(noise, 0.0), mirrored)
