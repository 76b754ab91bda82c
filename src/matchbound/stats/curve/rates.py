"""Points of a curve: variances at every threshold, FRR at a FAR, EER, AUC.

One rule for steps and ties. A curve is the line through its points, one point a distinct score, from the strictest
threshold to the most lenient. Rates *at* a target are those of a threshold that exists: FRR at FAR f is read at the
most lenient threshold whose FAR is at most f, FAR at FRR f at the strictest threshold whose FRR is at most f. Only
EER and areas use the line between points: EER is where it crosses FAR = FRR, and a genuine score tied with an
impostor's counts half in the area, as everywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.curve import CurveTally
from matchbound.stats.variance import plug_in

# A rate is "at most f" when it is at most f times this: 3/10 is at most 0.3, however it was rounded.
SLACK = 1.0 + 1e-12


@dataclass(frozen=True)
class Crossing:
    """Where the curve crosses FAR = FRR: the equal error rate, and the point of the curve nearest to the crossing."""

    estimate: float
    index: int


def curve_variance(curve: CurveTally, metric: str) -> FloatArray:
    """Plug-in variances of FAR or FRR at every threshold, shape (K,). FAR's can be negative in small samples.

    FAR: (4R − 2Q)/N2² with R = ΣS² − 2pΣSm + p²Σm_i² and Q = Σn² − 2pΣnm + p²Σm_ij². FRR: Σ(e_i − q·g_i)²/T².
    """
    if not curve.every_step:
        part = curve.tally_at(np.arange(curve.thresholds.size)).part(metric)
        return np.array([plug_in(part, k) for k in range(curve.thresholds.size)])
    sums, n, t = curve.sums, curve.n_impostor, curve.n_genuine
    if metric == "frr":
        return _ratio_variance(sums.ee, sums.eg, sums.gg, curve.false_nonmatches, t, t**2)
    a, b = _combine(4, sums.ss, -2, sums.nn), _combine(4, sums.sm, -2, sums.nm)
    return _ratio_variance(a, b, 4 * sums.mm - 2 * sums.pair_mm, curve.false_matches, n, 4 * n**2)


def _combine(u: int, x: IntArray, v: int, y: IntArray) -> NDArray[Any]:
    """u·x + v·y, as Python integers where int64 could overflow."""
    if max(int(x.max(initial=0)), int(y.max(initial=0))) >= 2**59:
        x, y = x.astype(object), y.astype(object)
    return np.asarray(u * x + v * y)


def _ratio_variance(a: NDArray[Any], b: NDArray[Any], c: int, x: IntArray, n: int, scale: int) -> FloatArray:
    """(a − 2pb + p²c)/scale with p = x/n, to about 1e-12 of itself, shape (K,).

    Extended precision, and whole numbers where the terms cancel so far that it would not do.
    """
    p = x.astype(np.longdouble) / n
    first, middle, last = a.astype(np.longdouble), 2 * p * b.astype(np.longdouble), p * p * np.longdouble(c)
    value = first - middle + last
    largest = np.maximum(np.maximum(np.abs(first), np.abs(middle)), np.abs(last))
    result: FloatArray = (value / np.longdouble(scale)).astype(np.float64)
    if x.dtype.kind == "f":  # shares of units are no whole numbers
        return result
    lost = np.flatnonzero(np.abs(value) < largest * (8.0 * np.finfo(np.longdouble).eps / 1e-12))
    for k in lost:
        errors = int(x[k])
        whole = int(a[k]) * n * n - 2 * errors * n * int(b[k]) + errors * errors * c
        result[k] = whole / (n * n * scale)
    return result


def count_within(rate: float, comparisons: int) -> int:
    """The largest number of errors whose rate is at most `rate`, with the slack of `index_at_far`."""
    return int(np.floor(rate * SLACK * comparisons))


def index_at_far(far: FloatArray, target: float) -> int:
    """The most lenient point whose FAR is at most the target. `far` never decreases and begins at 0."""
    return int(np.searchsorted(far, target * SLACK, side="right")) - 1


def index_at_frr(frr: FloatArray, target: float) -> int:
    """The strictest point whose FRR is at most the target. `frr` never increases and ends at 0."""
    return min(int(np.searchsorted(-frr, -target * SLACK, side="left")), frr.size - 1)


def crossing(far: FloatArray, frr: FloatArray) -> Crossing:
    """EER: where the line through the points crosses FAR = FRR."""
    gap = far - frr
    k = int(np.argmax(gap >= 0.0))
    before, after = -gap[k - 1], gap[k]
    share = before / (before + after) if before + after > 0.0 else 0.0
    estimate = float(far[k - 1] + (far[k] - far[k - 1]) * share)
    return Crossing(estimate, k if after < before else k - 1)


@dataclass(frozen=True, eq=False)
class AreaTerms:
    """The area under the curve up to a FAR, and what each comparison adds to it.

    - estimate: ∫ (1 − FRR) dFAR over [0, max_far], divided by max_far: the mean true match rate there.
    - genuine, impostor, shape (K,): what a comparison that starts to match at each point contributes.
    """

    estimate: float
    genuine: FloatArray
    impostor: FloatArray


def area_terms(curve: CurveTally, max_far: float) -> AreaTerms:
    """Terms whose means make the area, per comparison.

    A genuine score s adds the impostor share between it and the threshold of `max_far`, (max_far − FAR(s))₊, a tie
    half; an impostor score c above that threshold adds TPR(c) − TPR(threshold) (the threshold moves with the data,
    which is what the second term accounts for). With max_far = 1 this is the area under the whole curve, the
    Mann–Whitney statistic.
    """
    n, t = curve.n_impostor, curve.n_genuine
    far = curve.false_matches / n
    tpr = 1.0 - curve.false_nonmatches / t
    before, tpr_before = np.concatenate([[0.0], far[:-1]]), np.concatenate([[0.0], tpr[:-1]])
    rise = far - before
    inside = np.clip(max_far - before, 0.0, rise)
    share = np.divide(inside, rise, out=np.zeros_like(rise), where=rise > 0.0)
    genuine = np.maximum(max_far - far, 0.0) + np.where(far <= max_far, rise / 2.0, inside * share / 2.0)
    edge = np.interp(max_far * SLACK, far, tpr)  # the highest one where the line is upright
    middle = tpr_before + (tpr - tpr_before) * share / 2.0
    impostor = share * (middle - edge)
    counts = np.diff(t - curve.false_nonmatches, prepend=0)
    return AreaTerms(float(counts @ genuine) / t / max_far, genuine / max_far, impostor / max_far)
