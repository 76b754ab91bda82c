"""Precision, recall and F1 along a curve, and costs against the prior: what pictures of them show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.curve import CurveTally
from matchbound.results.interval import check_prior
from matchbound.results.latent_pair import CurveModels
from matchbound.show.shown import Shown
from matchbound.stats.budget import banded_limits
from matchbound.stats.curve.rates import crossing
from matchbound.stats.linkage import f1_of, precision_of

POINTS = 80


@dataclass(frozen=True, eq=False)
class Along:
    """A number at each of P thresholds with pointwise limits; float64 arrays, shape (P,) each."""

    estimate: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class LinkageCurve(Shown):
    """Precision, recall and F1 against the threshold.

    thresholds : float64 array, shape (P,)
        Strictest first, in the units of the scores.
    precision, recall, f1
        With pointwise limits from the latent models of FAR and FRR.
    prior
        The share of genuine comparisons that precision and F1 are for.
    level
        The confidence level at each threshold by itself.
    method
        How the limits were made.
    """

    thresholds: FloatArray
    precision: Along
    recall: Along
    f1: Along
    prior: float
    level: float
    method: str


def linkage_curve(
    curve: CurveTally, models: CurveModels, prior: float | None, level: float, points: int = POINTS
) -> LinkageCurve:
    """Precision, recall and F1 at thresholds spread over genuine scores and over the tail of impostor scores."""
    share = curve.n_genuine / (curve.n_genuine + curve.n_impostor) if prior is None else check_prior(prior)
    k = _spread(curve, points)
    matched, missed = curve.false_matches[k].astype(np.float64), curve.false_nonmatches[k].astype(np.float64)
    far, frr = matched / curve.n_impostor, missed / curve.n_genuine
    at = crossing(curve.false_matches / curve.n_impostor, curve.false_nonmatches / curve.n_genuine).index
    fit = models.at(at)

    def along(value: FloatArray) -> Along:
        return Along(value, value.copy(), value.copy())

    precision, recall, f1 = along(precision_of(far, frr, share)), along(1.0 - frr), along(f1_of(far, frr, share))
    most = frr > 0.5  # the model of FRR is one of matches where most comparisons err, as for a single threshold
    for part, own in ((~most, fit), (most, models.at(int(k[most][-1])) if most.any() else fit)):
        if not part.any():
            continue
        tables = own.tables(level, "two-sided")
        x, e = matched[part], missed[part]
        limits = (
            (precision, banded_limits(tables, x, e, lambda p, q: precision_of(p, q, share), rising=False)),
            (recall, (1.0 - tables.frr[1].at(e)[-1], 1.0 - tables.frr[0].at(e)[-1])),
            (f1, banded_limits(tables, x, e, lambda p, q: f1_of(p, q, share), rising=False)),
        )
        for band, (low, high) in limits:
            band.low[part] = np.minimum(low, band.estimate[part])
            band.high[part] = np.maximum(high, band.estimate[part])
    method = fit.method
    return LinkageCurve(curve.thresholds[k], precision, recall, f1, share, level, method)


def _spread(curve: CurveTally, points: int) -> IntArray:
    """Points of a curve at which something matches: even in genuine scores, geometric in impostor ones."""
    by_recall = np.searchsorted(-curve.false_nonmatches, -np.linspace(curve.n_genuine - 1, 0, points // 2))
    by_tail = np.searchsorted(curve.false_matches, np.geomspace(1.0, max(curve.n_impostor / 2.0, 1.0), points // 2))
    found: IntArray = np.unique(np.concatenate([by_recall, by_tail]))
    return found[(found > 0) & (found < curve.thresholds.size)]
