"""Limits of a number that depends on FAR and FRR, from the latent limits of both: one budget of error for the two.

For angles θ between 0° and 90°, FAR may err by sin θ of its t quantile while FRR errs by cos θ of its own. The limit is
the worst over the angles. A model is anything with ``limit(errors, deviate, upper)``: the limit of a rate of which so
many errors were seen, with a tail of Φ(−deviate).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import FloatArray
from matchbound.stats.normal import ndtr, ndtri

ANGLES = np.linspace(0.0, np.pi / 2.0, 7)
SHARES = np.linspace(0.0, 1.0, 3)
"""Shares of a deviate at which limits are found; a polynomial through their probits, nearly straight, gives others."""
COUNTS = 12
"""Numbers of errors at which limits are found; others are interpolated on the probit scale."""
NODES = 400


class RateLimits(Protocol):
    """A model of one rate that gives limits for any number of errors."""

    @property
    def comparisons(self) -> float:
        """How many comparisons there are."""

    def limit(self, errors: ArrayLike, deviate: ArrayLike, upper: ArrayLike) -> FloatArray:
        """Limits, with a tail of Φ(−deviate)."""


@dataclass(frozen=True)
class Operating:
    """Errors at one threshold: `matched` impostor comparisons that match, `missed` genuine ones that do not."""

    matched: float
    missed: float


def shared_limits(
    far: RateLimits,
    frr: RateLimits,
    points: Sequence[Operating],
    deviates: tuple[float, float],
    value: Callable[[FloatArray, FloatArray], FloatArray],
    *,
    rising: bool = True,
) -> tuple[float, float]:
    """Limits of value(FAR, FRR), which rises (or falls) with both rates.

    Parameters
    ----------
    points
        The thresholds that the number depends on, P of them.
    deviates
        The t quantiles of FAR and of FRR.
    value
        From rates of shape (P, angles) to numbers of shape (angles,).
    """
    matched, missed = (np.array([getattr(point, kind) for point in points]) for kind in ("matched", "missed"))
    ends = []
    for upper in (False, True):
        p = _over_shares(_at_shares(far, matched, deviates[0], upper), np.sin(ANGLES))
        q = _over_shares(_at_shares(frr, missed, deviates[1], upper), np.cos(ANGLES))
        ends.append(value(p.T, q.T))
    low, high = _worst(ends, rising)
    return float(low), float(high)


def _at_shares(model: RateLimits, errors: FloatArray, deviate: float, upper: bool) -> FloatArray:
    """Limits for numbers of errors at `SHARES` of the deviate, shape (shares, errors)."""
    x, d = np.tile(errors, SHARES.size), np.repeat(SHARES * deviate, errors.size)
    return model.limit(x, d, np.full(x.size, upper)).reshape(SHARES.size, errors.size)


def _over_shares(limits: FloatArray, shares: FloatArray) -> FloatArray:
    """From limits at `SHARES` of a deviate those at others, shape (shares, errors)."""
    through = np.polyfit(SHARES, ndtri(np.clip(limits, 1e-15, 1.0 - 1e-15)), SHARES.size - 1)
    rates = ndtr(np.vander(shares, SHARES.size) @ through)
    rates = np.where(limits.max(axis=0) <= 0.0, 0.0, rates)
    return np.where(limits.min(axis=0) >= 1.0, 1.0, rates)


def _worst(ends: Sequence[FloatArray], rising: bool) -> tuple[FloatArray, FloatArray]:
    """Limits of a number from its values at the lower and at the upper limits of both rates, by angle."""
    low, high = ends if rising else ends[::-1]
    return low.min(axis=0), high.max(axis=0)


@dataclass(frozen=True, eq=False)
class LimitTable:
    """Limits of one rate for every number of errors, at a few deviates, upper or lower.

    counts : float64 array, shape (C,)
        Numbers of errors, increasing from 0 to all comparisons.
    probits : float64 array, shape (D, C)
        Probits of the limits.
    """

    comparisons: float
    counts: FloatArray
    probits: FloatArray

    def at(self, errors: FloatArray) -> FloatArray:
        """Limits for numbers of errors, shape (D, n): interpolated in probits between the counts, exact at them."""
        places = _probit_of_count(self.counts, self.comparisons)
        wanted = _probit_of_count(errors, self.comparisons)
        return ndtr(np.array([np.interp(wanted, places, row) for row in self.probits]))


def limit_table(model: RateLimits, deviate: float, upper: bool) -> LimitTable:
    """Limits at 0, all, and about `COUNTS` numbers of errors between, even in probits, at `SHARES` of the deviate."""
    n = model.comparisons
    end = float(ndtri(min(1.0 / n, 0.25)))
    inner = np.rint(ndtr(np.linspace(end, -end, COUNTS)) * n)
    counts = np.unique(np.concatenate([[0.0], np.clip(inner, 0.0, n), [n]]))
    return LimitTable(n, counts, ndtri(np.clip(_at_shares(model, counts, deviate, upper), 1e-15, 1.0 - 1e-15)))


def _probit_of_count(errors: FloatArray, n: float) -> FloatArray:
    return ndtri((errors + 0.3) / (n + 0.6))


@dataclass(frozen=True, eq=False)
class Steps:
    """How many comparisons of one kind have a log-likelihood ratio of at least (below) each of some values.

    llr : float64 array, shape (B,)
        Increasing, finite.
    count : float64 array, shape (B,)
        Comparisons that have each.
    """

    llr: FloatArray
    count: FloatArray

    def at_least(self, place: FloatArray) -> FloatArray:
        """Comparisons with a ratio of at least `place`."""
        below = np.concatenate([[0.0], np.cumsum(self.count)])
        return np.asarray(below[-1] - below[np.searchsorted(self.llr, place, side="left")])

    def below(self, place: FloatArray) -> FloatArray:
        """Comparisons with a ratio below `place`."""
        return np.asarray(self.count.sum() - self.at_least(place))


@dataclass(frozen=True, eq=False)
class BudgetTables:
    """Limits of both rates for every number of errors, each as (lower, upper), at shares of one pair of deviates."""

    far: tuple[LimitTable, LimitTable]
    frr: tuple[LimitTable, LimitTable]


def budget_tables(far: RateLimits, frr: RateLimits, deviates: tuple[float, float]) -> BudgetTables:
    """The tables that `integrated_limits` reads; `deviates` are the t quantiles of FAR and of FRR."""
    far_tables, frr_tables = (
        (limit_table(model, deviate, False), limit_table(model, deviate, True))
        for model, deviate in ((far, deviates[0]), (frr, deviates[1]))
    )
    return BudgetTables(far_tables, frr_tables)


def integrated_limits(
    tables: BudgetTables, genuine: Steps, impostor: Steps, *, reach: float = 10.0, margin: float = 2.0
) -> tuple[float, float]:
    """Limits of Cllr = (1/2ln2)·[∫FAR(τ)σ(τ)dτ + ∫FRR(τ)σ(−τ)dτ], σ the logistic function.

    The latent limits of FAR and FRR at one deviate each stand for the rates at every τ, and share the budget by angles.
    FAR's integral runs from −reach to the largest impostor ratio + margin and FRR's from the smallest genuine ratio −
    margin to reach: the upper limit with no error seen does not fall with τ, so that it must end near the extreme
    scores.
    """
    ends = []
    spans = (-reach, float(impostor.llr[-1]) + margin), (float(genuine.llr[0]) - margin, reach)
    for upper in (0, 1):
        own = _part(tables.far[upper], impostor.at_least, spans[0], 1.0)
        rest = _part(tables.frr[upper], genuine.below, spans[1], -1.0)
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


def banded_limits(
    tables: BudgetTables,
    matched: FloatArray,
    missed: FloatArray,
    value: Callable[[FloatArray, FloatArray], FloatArray],
    *,
    rising: bool = True,
) -> tuple[FloatArray, FloatArray]:
    """Limits of value(FAR, FRR) at many thresholds, each by itself, shape (P,) each.

    Parameters
    ----------
    matched, missed : float64 arrays, shape (P,)
        False matches and false non-matches at each threshold.
    value
        From rates of shape (angles, P) to numbers of that shape; it rises (or falls) with both rates.
    """
    ends = [
        value(_over_shares(far.at(matched), np.sin(ANGLES)), _over_shares(frr.at(missed), np.cos(ANGLES)))
        for far, frr in zip(tables.far, tables.frr, strict=True)
    ]
    return _worst(ends, rising)
