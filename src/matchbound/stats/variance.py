"""Variances of error rates whose comparisons share identities.

The impostor rate p = Σn/Σm is a ratio of sums over identity pairs. With D_ij = n_ij − p·m_ij, r_i = Σ_j D_ij,
R = Σ r_i² and Q = Σ_{i≠j} D_ij² (ordered pairs), its variance is (4R − 2Q)/N2², N2 = Σ_{i≠j} m_ij: the paper's
plug-in (Fogliato, Patil & Perona 2024, eq. 9) and, on balanced data, its jackknife (Proposition 3). The
genuine rate q = Σe/Σg is a ratio of sums over identities: R = Σ(e_i − q·g_i)², variance R/T² (eq. 6; unbalanced, the
three-term delta formula).

A rate may also be a mean over units: of y_ij = n_ij/m_ij over the identity pairs that were compared (FAR), or of
y_i = e_i/g_i over identities (FRR). Its variance is that of a pooled rate with one "comparison" per unit.

Sums of whole numbers are kept whole until the last division: what cancels, cancels exactly, so that a variance of zero
is zero and never ±1e-20.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import AllPairs, GenuineTally, ImpostorTally, Part, Tally, exact_dot, pair_moments
from matchbound.stats.dyadic import DyadicSums, bias_factor, effective_number


def residual_sums(part: Part, k: int) -> tuple[Any, Any]:
    """(R, Q) at threshold k; exact for whole numbers. Q is 0 for genuine comparisons."""
    errors, comparisons = part.errors[k], part.comparisons
    p: Any = errors.sum() / comparisons.sum()
    if errors.dtype.kind == "f":  # shares of units are no whole numbers
        excess = errors - p * comparisons
        r = float(excess @ excess)
    else:
        p = Fraction(int(errors.sum()), int(comparisons.sum()))
        r = exact_dot(errors, errors) - 2 * p * exact_dot(errors, comparisons)
        r += p * p * exact_dot(comparisons, comparisons)
    if not isinstance(part, ImpostorTally):
        return r, 0 * r
    number = float if errors.dtype.kind == "f" else int
    return r, number(part.sum_nn[k]) - 2 * p * number(part.sum_nm[k]) + p * p * number(part.sum_mm)


def plug_in(part: Part, k: int) -> float:
    """(4R − 2Q)/N2² for FAR, R/T² for FRR, at threshold k. FAR's can be negative in small samples."""
    r, q = residual_sums(part, k)
    total = part.comparisons.sum()
    return float((part.ends**2 * r - 2 * q) / (total if total.dtype.kind == "f" else int(total)) ** 2)


def jackknife(part: Part, k: int) -> float:
    """Delete-one-identity jackknife, with its correction for pairs (the paper's eq. 10).

    (G−2)²/G² · Σ_i (p_{−i} − p)² − 2Q/N2² for FAR, (G−1)²/G² · Σ(q_{−i} − q)² for FRR, over identities with
    comparisons. FAR's equals the plug-in when all identities have equally many. Undefined (NaN) where an identity takes
    part in every comparison.
    """
    comparisons, errors = part.comparisons[part.comparisons > 0], part.errors[k][part.comparisons > 0]
    left = comparisons.sum() / part.ends - comparisons
    if np.any(left <= 0):
        return math.nan
    size, total = float(comparisons.size), float(comparisons.sum())
    spread = float(((_excess(errors, comparisons) / left) ** 2).sum())
    return (size - part.ends) ** 2 / size**2 * spread - float(2 * residual_sums(part, k)[1]) / total**2


def _excess(errors: IntArray, comparisons: IntArray) -> FloatArray:
    """n_i − p·m_i with p = Σn/Σm, rounded once, shape (G,): near p = 1 the difference of floats would be noise.

    A rate without identity i differs from p by minus this, over the comparisons that are left.
    """
    total, wrong = int(comparisons.sum()), int(errors.sum())
    if float(total) * float(comparisons.max(initial=0)) < 2.0**62:
        return np.asarray((errors * total - wrong * comparisons) / float(total))
    exact = errors.astype(object) * total - wrong * comparisons.astype(object)
    return np.asarray([float(Fraction(value, total)) for value in exact], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class UnitRate:
    """A rate whose units are comparisons, identity pairs (FAR) or identities (FRR).

    - estimate, variance: the mean of the units, and its plug-in variance.
    - alone: mean of 1/m over the units: the part of a unit's variance that independent comparisons would leave.
    - sharing: ordered pairs of units that share one identity (0 for FRR).
    - partners, shape (G,): units that an identity takes part in.
    - excess, shape (G,): r_i, or e_i − q·g_i.
    - within: Q/2, or Σ(e_i − q·g_i)²: the sum of squared deviations of identity pairs or identities.
    - identities: how many equal identities weigh as much; where every identity counts once, those that take part.
    """

    metric: str
    units: int
    estimate: float
    variance: float
    alone: float
    sharing: float
    partners: FloatArray
    excess: FloatArray
    within: float
    identities: float

    @property
    def sums(self) -> DyadicSums:
        """The residuals of the rate by identity."""
        moved, none = self.excess / self.units, np.zeros(self.excess.size)
        if self.metric == "frr":
            return DyadicSums(moved, none, 0.0)
        return DyadicSums(none, moved, self.within / self.units**2)

    def without_bias(self) -> float:
        """Without the bias of the plug-in, FAR's not below what pairs say alone; 0 with too few identities."""
        factor = bias_factor(self.metric, self.identities)
        return max(self.variance * factor, self.sums.pair_square) if np.isfinite(factor) else 0.0


def pooled_rate(tally: Tally, metric: str, k: int) -> UnitRate:
    """A pooled rate at threshold k: its units are comparisons."""
    return rate_of_part(tally.part(metric), k, effective_number(tally.weights(metric)))


def unit_rate(part: Part, k: int) -> UnitRate:
    """The mean over identity pairs (FAR; the tally must have kept them) or over identities (FRR) at threshold k."""
    units, alone = units_of(part, [k])
    return rate_of_part(units, 0, float(units.taking_part), alone)


def rate_of_part(part: Part, k: int, identities: float, alone: float = 1.0) -> UnitRate:
    """The rate of comparisons or units of one kind, with their effective number of identities."""
    made, metric = part.comparisons.astype(np.float64), "far" if part.ends == 2 else "frr"
    if not part.total:
        return UnitRate(metric, 0, math.nan, math.nan, 1.0, 0.0, np.zeros(made.size), np.zeros(made.size), 0.0, 0.0)
    p = float(part.errors[k].sum() / part.comparisons.sum())
    r, q = residual_sums(part, k)
    within, sharing = float(r), 0.0
    if isinstance(part, ImpostorTally):
        within, sharing = float(q) / 2.0, float(made @ made) - float(part.sum_mm)
    whole = part.errors.dtype.kind != "f"
    excess = _excess(part.errors[k], part.comparisons) if whole else part.errors[k] - p * made
    return UnitRate(metric, part.total, p, plug_in(part, k), alone, sharing, made, excess, within, identities)


def unit_tally(tally: Tally, places: Sequence[int]) -> Tally:
    """The tally of units at some thresholds: y_ij = n_ij/m_ij and y_i = e_i/g_i in the place of counts, float64."""
    impostor, genuine = (units_of(part, places)[0] for part in (tally.impostor, tally.genuine))
    sides: dict[str, Any] = {"impostor": impostor, "genuine": genuine}
    return replace(tally, thresholds=tally.thresholds[list(places)], **sides, instances=None)


def units_of(part: Part, places: Sequence[int]) -> tuple[Part, float]:
    """Units of comparisons at some thresholds, as counts of one kind that are shares, and the mean of 1/m over them."""
    if not isinstance(part, ImpostorTally):
        present, errors = part.comparisons > 0, part.errors[list(places)]
        y = np.divide(errors, part.comparisons, out=np.zeros(errors.shape), where=present)
        genuine = GenuineTally(present.astype(np.float64), y)
        return genuine, float((1.0 / part.comparisons[present]).mean()) if present.any() else 0.0
    size, compared = int(part.comparisons.size), part.compared
    assert compared is not None
    assert part.erred is not None
    if isinstance(compared, AllPairs):
        one_over = 1.0 / compared.instances[compared.instances > 0]
        reciprocal = (float(one_over.sum()) ** 2 - float((one_over**2).sum())) / 2.0
    else:
        reciprocal = float((1.0 / compared.count).sum())
    tables, units = [part.erred[k] for k in places], compared.units()
    shares = tuple(replace(t, count=t.count / compared.of_pairs(t.first, t.second, size)) for t in tables)
    partners: NDArray[Any] = units.by_identity(size).astype(np.float64)
    errors = np.array([table.by_identity(size) for table in shares])
    impostor = ImpostorTally(partners, errors, *pair_moments(units, shares, size), units, shares)
    return impostor, reciprocal / max(float(partners.sum()) / 2.0, 1.0)


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each of G identities adds to the variance of a rate; arrays of shape (G,).

    The plug-in variances are sums over identities: R = Σr_i² for FRR, and for FAR the leading part of 4R − 2Q.

    - excess: errors beyond what the overall rate would give: r_i.
    - share: r_i²/R; they add up to 1, or are all 0 where no identity differs from the others.
    - rate_without: the rate of the data without the identity; NaN where nothing is left.
    """

    excess: FloatArray
    share: FloatArray
    rate_without: FloatArray

    def largest(self, count: int) -> IntArray:
        """Positions of the identities with the largest shares, largest first; none without a share."""
        order = np.argsort(-self.share, kind="stable")[:count]
        return order[self.share[order] > 0.0]

    def how_many_make(self, part: float) -> int:
        """The fewest identities whose shares add up to `part`; 0 where there are no shares."""
        ranked = np.cumsum(np.sort(self.share)[::-1])
        if not ranked.size or ranked[-1] <= 0.0:
            return 0
        return min(int(np.searchsorted(ranked, part * (1.0 - 1e-12))) + 1, int(ranked.size))


def contributions(rate: UnitRate) -> Contributions:
    """Shares of the variance by identity."""
    squares, left = rate.excess**2, rate.units - rate.partners
    moved = np.divide(rate.excess, left, out=np.full(left.size, np.nan), where=left > 0.0)
    return Contributions(rate.excess, squares / max(float(squares.sum()), 1e-300), rate.estimate - moved)
