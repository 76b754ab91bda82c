"""The gap of a rate between two groups of people: a test, and the limits that it gives.

The groups' own variances mislead where a group is small: one without errors has a variance near 0, and the difference
over its own standard error finds gaps that are not there. So the variance is that of the hypothesis, as in a score
test: would the rates found be a surprise if the true ones differed by δ (or had the ratio θ)? With pq = p(1 − p), the
rate of a group has the variance

    v(p) = [s·κ·pq² + pq·(a + ρ·w)]/N²

at p, where s counts the ordered pairs of its comparisons that share one identity, w those of the same identity pair
(FRR: of the same identity), and a = N. κ and ρ are moments of the errors, pooled over both groups in proportion to
their effective identities G_e; a group's own moments count beside them with the weight G_e/(G_e + 50) (one person in
fifty may make all errors). The rates of the hypothesis are those nearest to the estimates, weighed by G_e as well.
Student's t has Satterthwaite's degrees of freedom of both variances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.counts.tally import GenuineTally, ImpostorTally
from matchbound.stats.dyadic import bias_factor
from matchbound.stats.variance import UnitRate, residual_sums

TRUSTED = 50.0
"""A group of this many effective identities has an equal say with both groups together on its own correlations."""
LEAST_REST = 0.05
"""An identity is never taken to leave less than this share of a group's comparisons to the others."""
STEPS, ROUNDS = 64, 7
"""Limits are sought on grids of so many points, each within a step of the last: to 64⁻⁷ of the range."""


@dataclass(frozen=True, eq=False)
class GroupMoments:
    """One rate of one group, or of many draws of one: arrays of one shape, or numbers.

    rate
        p, between 0 and 1.
    comparisons
        N (units where every identity counts once).
    people
        G_e, effective identities.
    personal
        N² times the part of the variance that comes from comparisons that share one identity, without bias; it may be
        negative.
    clustered
        N² times the rest: Σ D_ij² over identity pairs, or Σ(e_i − q·g_i)² without bias.
    sharing, alone, mates
        s, a and w.
    least
        The smallest variance: that of one error.
    """

    rate: FloatArray
    comparisons: FloatArray
    people: FloatArray
    personal: FloatArray
    clustered: FloatArray
    sharing: FloatArray
    alone: FloatArray
    mates: FloatArray
    least: FloatArray

    @property
    def spread(self) -> FloatArray:
        """p(1 − p)."""
        return self.rate * (1.0 - self.rate)

    @property
    def freedom(self) -> FloatArray:
        """G_e − 1, at least 1."""
        return np.maximum(self.people - 1.0, 1.0)

    def columns(self, chosen: IntArray) -> GroupMoments:
        """Some of the groups of draws of shape (B, H), in the order given."""
        shape = self.rate.shape
        return GroupMoments(*(np.broadcast_to(getattr(self, f.name), shape)[:, chosen] for f in fields(self)))


def _moments(**values: object) -> GroupMoments:
    return GroupMoments(**{name: np.asarray(value, dtype=np.float64) for name, value in values.items()})


def far_moments(tally: ImpostorTally, k: int, people: float) -> GroupMoments:
    """Of FAR at threshold k; `people` are its effective identities."""
    r, q = (float(v) for v in residual_sums(tally, k))
    m = tally.comparisons.astype(np.float64)
    n, squares = float(m.sum()) / 2.0, float(tally.sum_mm) / 2.0
    factor = finite_factor(people)
    return _moments(
        rate=float(tally.errors[k].sum()) / (2.0 * n),
        comparisons=n,
        people=people,
        personal=factor * (r - q / 2.0) - q / 2.0,
        clustered=q / 2.0,
        sharing=float(m @ m) - 2.0 * squares,
        alone=n,
        mates=squares - n,
        least=1.0 / n**2,
    )


def frr_moments(tally: GenuineTally, k: int, people: float) -> GroupMoments:
    """Of FRR at threshold k."""
    e, g = tally.errors[k].astype(np.float64), tally.comparisons.astype(np.float64)
    total, squares, wrong = float(g.sum()), float(g @ g), float(e.sum())
    residual = (e * total - wrong * g) / total  # of whole numbers: 0 where it is 0
    return _moments(
        rate=wrong / total,
        comparisons=total,
        people=people,
        personal=0.0,
        clustered=float(without_leverage(residual, g / total).sum()),
        sharing=0.0,
        alone=total,
        mates=squares - total,
        least=1.0 / total**2,
    )


def unit_moments(rate: UnitRate, metric: str) -> GroupMoments:
    """Of a rate in which every identity pair (FAR) or every identity (FRR) counts once."""
    units, people = float(rate.units), float(rate.people)
    share = np.full(rate.excess.shape, 1.0 / units)
    squares = float((rate.excess**2).sum())
    far = metric == "far"
    clustered = rate.within if far else float(without_leverage(rate.excess, share).sum())
    return _moments(
        rate=rate.estimate,
        comparisons=units,
        people=people,
        personal=finite_factor(people) * (squares - rate.within) - rate.within if far else 0.0,
        clustered=clustered,
        sharing=rate.sharing,
        alone=rate.alone * units,
        mates=(1.0 - rate.alone) * units,
        least=(rate.alone / units) ** 2,
    )


def without_leverage(residual: FloatArray, share: FloatArray) -> FloatArray:
    """Squares of residuals e_i − q·g_i, made up for what an identity with the share h of the comparisons pulls q.

    Divided by (1 − h)^(1 + min(1, 2h)): without bias for equal identities, as if it had been left out (the jackknife)
    for one that makes half of the comparisons.
    """
    rest = np.maximum(1.0 - share, LEAST_REST)
    result: FloatArray = residual**2 / rest ** (1.0 + np.minimum(1.0, 2.0 * share))
    return result


def gap_statistic(
    a: GroupMoments, b: GroupMoments, shift: FloatArray | float = 0.0, ratio: FloatArray | float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """(p_a − θ·p_b − δ over its standard error under the hypothesis that this is 0, degrees of freedom).

    0 where no comparison of either group erred, or every one.

    Parameters
    ----------
    shift, ratio
        δ and θ.
    """
    kappa, rho = _correlations(a, b)
    off = a.rate - ratio * b.rate - shift
    step = off / (1.0 / a.people + ratio**2 / b.people)
    least, most = np.maximum(0.0, -shift / ratio), np.minimum(1.0, (1.0 - shift) / ratio)
    two = np.clip(b.rate + ratio * step / b.people, least, np.maximum(most, least))
    one = np.clip(shift + ratio * two, 0.0, 1.0)
    v, w = _variance(a, one, kappa[0], rho[0]), ratio**2 * _variance(b, two, kappa[1], rho[1])
    known = (a.spread + b.spread > 0.0) | (a.rate != b.rate)
    freedom = (v + w) ** 2 / (v**2 / a.freedom + w**2 / b.freedom)
    return np.where(known, off / np.sqrt(v + w), 0.0), np.maximum(freedom, 1.0)


def _correlations(
    a: GroupMoments, b: GroupMoments
) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """(κ of a and of b), (ρ of a and of b)."""
    both = (a, b)
    personal = [group.people * _ratio(group.personal, group.sharing, 0.0) for group in both]
    shared = [np.where(group.sharing > 0.0, group.people, 0.0) * group.spread**2 for group in both]
    excess = [group.people * _ratio(group.clustered - group.alone * group.spread, group.mates, 0.0) for group in both]
    room = [np.where(group.mates > 0.0, group.people, 0.0) * group.spread for group in both]
    kappa = _ratio(np.maximum(personal[0] + personal[1], 0.0), shared[0] + shared[1], 0.0)
    rho = np.clip(_ratio(excess[0] + excess[1], room[0] + room[1], 1.0), 0.0, 1.0)
    rho = np.where(a.clustered + b.clustered > 0.0, rho, 1.0)
    kappas, rhos = [], []
    for k, group in enumerate(both):
        trust = np.where(group.clustered > 0.0, group.people / (group.people + TRUSTED), 0.0)
        own = _ratio(np.maximum(personal[k], 0.0), shared[k], kappa)
        kappas.append(kappa + trust * (own - kappa))
        own = np.clip(_ratio(excess[k], room[k], rho), 0.0, 1.0)
        rhos.append(rho + trust * (own - rho))
    return (kappas[0], kappas[1]), (rhos[0], rhos[1])


def _variance(group: GroupMoments, rate: FloatArray, kappa: FloatArray, rho: FloatArray) -> FloatArray:
    """v(p)."""
    spread = rate * (1.0 - rate)
    total = group.sharing * kappa * spread**2 + spread * (group.alone + rho * group.mates)
    result: FloatArray = np.maximum(total / group.comparisons**2, group.least)
    return result


def difference_limits(a: GroupMoments, b: GroupMoments, tail: float) -> tuple[float, float]:
    """The differences that are not rejected with this tail on either side; 0 is one exactly when its test says so."""
    d = float(a.rate - b.rate)

    def accepted(shift: FloatArray) -> BoolArray:
        return _accepted(*gap_statistic(a, b, shift), tail)

    low = _farthest(accepted, d, 0.0, -1.0) if d > 0.0 else _farthest(accepted, d, d, -1.0)
    high = _farthest(accepted, d, 0.0, 1.0) if d < 0.0 else _farthest(accepted, d, d, 1.0)
    return low, high


def ratio_limits(a: GroupMoments, b: GroupMoments, tail: float) -> tuple[float, float]:
    """The ratios p_a/p_b that are not rejected; 1 is one exactly when the difference 0 is. (0, ∞) without errors.

    They are sought as θ/(1 + θ).
    """
    total = float(a.rate + b.rate)
    if total <= 0.0:
        return 0.0, float("inf")
    d = float(a.rate) / total

    def accepted(place: FloatArray) -> BoolArray:
        inside = np.clip(place, 1e-12, 1.0 - 1e-12)
        return _accepted(*gap_statistic(a, b, 0.0, inside / (1.0 - inside)), tail)

    low = _farthest(accepted, d, 0.5, 0.0) if d > 0.5 else _farthest(accepted, d, d, 0.0)
    high = _farthest(accepted, d, 0.5, 1.0) if d < 0.5 else _farthest(accepted, d, d, 1.0)
    return low / (1.0 - low), high / (1.0 - high) if high < 1.0 else float("inf")


def decided(equal: float, tested: tuple[float, float], combined: tuple[float, float]) -> tuple[float, float]:
    """Combined limits of a gap, which leave out `equal` exactly when the tested ones do.

    Where both leave it out, the limit nearer to it; where only one does, that of the test.
    """
    (low, high), (near_low, near_high) = combined, tested
    if low > equal or near_low > equal:
        low = near_low if not low > equal else min(low, near_low)
    if high < equal or near_high < equal:
        high = near_high if not high < equal else max(high, near_high)
    return low, high


def _accepted(statistic: FloatArray, freedom: FloatArray, tail: float) -> BoolArray:
    from scipy.special import stdtr

    result: BoolArray = stdtr(freedom, -np.abs(statistic)) > tail
    return result


def _farthest(accepted: Callable[[FloatArray], BoolArray], start: float, middle: float, end: float) -> float:
    """Where what is accepted ends between the start (accepted) and the end; the test at the middle decides its side."""
    if middle != start and not accepted(np.array([middle]))[0]:
        near, far = start, middle
    else:
        near, far = middle, end
        if accepted(np.array([end]))[0]:
            return end
    for _ in range(ROUNDS):
        grid = np.linspace(near, far, STEPS + 1)
        held = accepted(grid)
        held[0], held[-1] = True, False
        last = int(np.flatnonzero(held)[-1])
        near, far = float(grid[last]), float(grid[last + 1])
    return near


def _ratio(above: FloatArray, below: FloatArray, otherwise: FloatArray | float) -> FloatArray:
    known = below > 0.0
    result: FloatArray = np.where(known, above / np.where(known, below, 1.0), otherwise)
    return result


def finite_factor(people: float) -> float:
    """The correction of FAR's variance for bias; 1 where there are too few people for one."""
    return bias_factor("far", people, 1.0)
