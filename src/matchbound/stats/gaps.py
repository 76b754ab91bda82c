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

Impostor rates within groups and between them are cells. Let S_ih = Σ_{j in h} n_ij and m_ih = Σ_{j in h} m_ij. The rate
of the cell {g, h} is p = Σn/Σm over the identity pairs with one member in g and the other in h; D_ij = n_ij − p·m_ij
there, and identity i in g moves it by ψ_i = (S_ih − p·m_ih)/N, N the comparisons of the cell. Its variance is
Σψ_i² − ΣD_ij²/N² (each pair once): the dyadic variance for g = h, the one of two sets of different people for g ≠ h.
Cells have no pair in common, so that the variance of a difference of two cells is Σ(ψ_i − ψ'_i)² less both of the
latter sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.counts.tally import AllPairs, PairTable, Tally
from matchbound.stats.dyadic import DyadicSums, bias_factor, bipartite_variance, effective_number
from matchbound.stats.variance import UnitRate

Values = FloatArray | float
# From differences or ratios that may be true to t statistics and their degrees of freedom.
Statistic = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
# A group of this many effective identities has an equal say with both groups together on its own correlations.
TRUSTED = 50.0
# An identity is never taken to leave less than this share of a group's comparisons to the others.
LEAST_REST = 0.05
# Limits are sought on grids of so many points, each within a step of the last: to 64⁻⁷ of the range.
STEPS, ROUNDS = 64, 7


@dataclass(frozen=True, eq=False)
class GroupMoments:
    """One rate of one group, or of many draws of one: arrays of one shape, or numbers.

    - rate: p, between 0 and 1.
    - comparisons: N (units where every identity counts once).
    - people: G_e, effective identities.
    - personal: N² times the variance from comparisons that share one identity, without bias; it may be negative.
    - clustered: N² times the rest: Σ D_ij² over identity pairs, or Σ(e_i − q·g_i)² without bias.
    - sharing, alone, mates: s, a and w.
    - least: the smallest variance: that of one error.
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
        return self.rate * (1.0 - self.rate)

    @property
    def freedom(self) -> FloatArray:
        return np.maximum(self.people - 1.0, 1.0)

    def columns(self, chosen: IntArray) -> GroupMoments:
        """Some of the groups of draws of shape (B, H), in the order given."""
        shape = self.rate.shape
        return GroupMoments(*(np.broadcast_to(getattr(self, f.name), shape)[:, chosen] for f in fields(self)))


def group_moments(
    rate: Values,
    units: Values,
    people: Values,
    squares: Values,
    sharing: Values,
    clustered: Values,
    r: Values | None = None,
    alone: float = 1.0,
) -> GroupMoments:
    """The moments of FAR (with R = Σr_i², `clustered` its Q/2) or of FRR (without).

    - squares: Σm_i² or Σg_i²: of the units that identities take part in.
    - alone: as for `matchbound.stats.variance.UnitRate`.
    """
    # without bias; 1 where there are too few people for a correction
    factor = np.vectorize(bias_factor, otypes=[np.float64])("far", people, 1.0)
    personal = 0.0 if r is None else factor * (r - clustered) - clustered
    mates = (squares - sharing) / (1.0 if r is None else 2.0) - alone * units
    values = (rate, units, people, personal, clustered, sharing, alone * units, mates, (alone / units) ** 2)
    return GroupMoments(*(np.asarray(value, dtype=np.float64) for value in values))


def moments(rate: UnitRate) -> GroupMoments:
    """Of a rate: of comparisons, of identity pairs (FAR) or of identities (FRR)."""
    squares, far = float(rate.partners @ rate.partners), rate.metric == "far"
    clustered = rate.within if far else float(without_leverage(rate.excess, rate.partners / rate.units).sum())
    r = float(rate.excess @ rate.excess) if far else None
    return group_moments(rate.estimate, rate.units, rate.identities, squares, rate.sharing, clustered, r, rate.alone)


def without_leverage(residual: FloatArray, share: FloatArray) -> FloatArray:
    """Squares of residuals e_i − q·g_i, made up for what an identity with the share h of the comparisons pulls q.

    Divided by (1 − h)^(1 + min(1, 2h)): without bias for equal identities, as if it had been left out (the jackknife)
    for one that makes half of the comparisons.
    """
    rest = np.maximum(1.0 - share, LEAST_REST)
    return np.asarray(residual**2 / rest ** (1.0 + np.minimum(1.0, 2.0 * share)))


def gap_statistic(
    a: GroupMoments, b: GroupMoments, shift: FloatArray | float = 0.0, ratio: FloatArray | float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """(p_a − θ·p_b − δ over its standard error under the hypothesis that this is 0, degrees of freedom).

    0 where no comparison of either group erred, or every one. `shift` is δ and `ratio` θ.
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
    return np.asarray(np.maximum(total / group.comparisons**2, group.least))


def difference_limits(a: GroupMoments, b: GroupMoments, tail: float) -> tuple[float, float]:
    """The differences that are not rejected with this tail on either side; 0 is one exactly when its test says so."""
    return _limits(lambda shift: gap_statistic(a, b, shift), tail, float(a.rate - b.rate), 0.0, (-1.0, 1.0))


def ratio_limits(a: GroupMoments, b: GroupMoments, tail: float) -> tuple[float, float]:
    """The ratios p_a/p_b that are not rejected; 1 is one exactly when the difference 0 is. (0, ∞) without errors."""
    total = float(a.rate + b.rate)
    if total <= 0.0:
        return 0.0, float("inf")

    def at(place: FloatArray) -> tuple[FloatArray, FloatArray]:
        inside = np.clip(place, 1e-12, 1.0 - 1e-12)
        return gap_statistic(a, b, 0.0, inside / (1.0 - inside))

    low, high = _limits(at, tail, float(a.rate) / total, 0.5, (0.0, 1.0))
    return low / (1.0 - low), high / (1.0 - high) if high < 1.0 else float("inf")


def _limits(
    statistic: Statistic, tail: float, estimate: float, equal: float, ends: tuple[float, float]
) -> tuple[float, float]:
    """Where what is not rejected ends on either side of the estimate."""
    from scipy.special import stdtr

    def accepted(values: FloatArray) -> BoolArray:
        value, freedom = statistic(values)
        return np.asarray(stdtr(freedom, -np.abs(value)) > tail)

    low = _farthest(accepted, estimate, equal if estimate > equal else estimate, ends[0])
    return low, _farthest(accepted, estimate, equal if estimate < equal else estimate, ends[1])


def decided(
    equal: float, tested: tuple[float, float], combined: tuple[float, float], apart: tuple[float, float]
) -> tuple[float, float]:
    """Combined limits of a gap, which leave out `equal` exactly when the tested ones do.

    Where both leave it out, the limit nearer to it; where only one does, that of the test. With few errors that one may
    lie absurdly far away: it goes no farther than `apart`, from the limit of one rate to the opposite limit of the
    other, which combined limits never reach.
    """
    low, high = combined
    near_low, near_high = max(tested[0], min(apart[0], equal)), min(tested[1], max(apart[1], equal))
    if low > equal or near_low > equal:
        low = near_low if not low > equal else min(low, near_low)
    if high < equal or near_high < equal:
        high = near_high if not high < equal else max(high, near_high)
    return low, high


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
    return np.asarray(np.where(known, above / np.where(known, below, 1.0), otherwise))


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Impostor comparisons, or units of them, by identity and group, at one threshold.

    - group, shape (G,): in 0..H−1.
    - errors, comparisons, shape (G, H): S_ih and m_ih.
    - sum_nn, sum_nm, sum_mm, shape (H, H): Σn_ij², Σn_ij·m_ij and Σm_ij² over the identity pairs of each cell, each
      pair once; symmetric.
    - counted: the same of the comparisons behind units.
    """

    group: IntArray
    errors: FloatArray
    comparisons: FloatArray
    sum_nn: FloatArray
    sum_nm: FloatArray
    sum_mm: FloatArray
    counted: GroupSums | None = None

    def totals(self, g: int, h: int) -> tuple[float, float]:
        """Errors and comparisons of the cell {g, h}."""
        members, ends = self.group == g, 2.0 if g == h else 1.0
        return float(self.errors[members, h].sum()) / ends, float(self.comparisons[members, h].sum()) / ends


def group_sums(tally: Tally, group: IntArray, n_groups: int) -> GroupSums:
    """Sum a tally with pairs, of comparisons or units, over groups of identities at its first threshold."""
    impostor = tally.impostor
    assert impostor.erred is not None
    assert impostor.compared is not None
    size, compared, erred = tally.n_identities, impostor.compared, impostor.erred[0]

    def by_group(table: PairTable) -> FloatArray:
        there = np.bincount(table.first * np.int64(n_groups) + group[table.second], table.count, size * n_groups)
        back = np.bincount(table.second * np.int64(n_groups) + group[table.first], table.count, size * n_groups)
        return np.asarray(there + back, dtype=np.float64).reshape(size, n_groups)

    def by_cell(table: PairTable, times: NDArray[Any]) -> FloatArray:
        one, two = group[table.first], group[table.second]
        key, value = np.minimum(one, two) * np.int64(n_groups) + np.maximum(one, two), 1.0 * table.count * times
        cell = np.bincount(key, value, n_groups * n_groups).reshape(n_groups, n_groups)
        return np.asarray(cell + np.triu(cell, 1).T, dtype=np.float64)

    if isinstance(compared, AllPairs):
        sizes = compared.instances.astype(np.float64)
        total, squares, fourths = (np.bincount(group, sizes**power, n_groups) for power in (1, 2, 4))
        comparisons = sizes[:, None] * total[None, :]
        comparisons[np.arange(size), group] -= sizes**2
        sum_mm = np.multiply.outer(squares, squares)
        sum_mm[np.diag_indices(n_groups)] = (squares**2 - fourths) / 2.0
    else:
        comparisons, sum_mm = by_group(compared), by_cell(compared, compared.count)
    sum_nm = by_cell(erred, compared.of_pairs(erred.first, erred.second, size))
    return GroupSums(group, by_group(erred), comparisons, by_cell(erred, erred.count), sum_nm, sum_mm)


@dataclass(frozen=True, eq=False)
class CellRate:
    """The impostor rate of one cell, between groups g and h (or within one).

    - estimate: NaN without comparisons.
    - influence, shape (G,): ψ_i; 0 for identities of other groups.
    - pair_square: ΣD_ij²/N², each pair once: the floor of the variance.
    - variance: corrected for the bias of the plug-in.
    - sizes: effective identities on either side (the same twice within a group).
    """

    errors: int
    comparisons: int
    estimate: float
    influence: FloatArray
    pair_square: float
    variance: float
    sizes: tuple[float, float]


def cell_rate(sums: GroupSums, g: int, h: int) -> CellRate:
    """The rate of the cell {g, h} with its variance."""
    members, (errors, comparisons) = sums.group == g, sums.totals(g, h)
    if comparisons <= 0.0:
        return CellRate(0, 0, float("nan"), np.zeros(members.size), 0.0, float("nan"), (0.0, 0.0))
    s, m = np.where(members, sums.errors[:, h], 0.0), np.where(members, sums.comparisons[:, h], 0.0)
    p = errors / comparisons
    rows = (s - p * m) / comparisons
    square = sums.sum_nn[g, h] - 2.0 * p * sums.sum_nm[g, h] + p * p * sums.sum_mm[g, h]
    pair_square = max(float(square), 0.0) / comparisons**2
    size_rows = effective_number(m)
    if g == h:
        variance = DyadicSums(np.zeros(rows.size), rows, pair_square).corrected(size_rows)
        influence, sizes = rows, (size_rows, size_rows)
    else:
        others = sums.group == h
        w = np.where(others, sums.comparisons[:, g], 0.0)
        columns = (np.where(others, sums.errors[:, g], 0.0) - p * w) / comparisons
        size_columns = effective_number(w)
        variance = bipartite_variance(rows, columns, pair_square, size_rows, size_columns)
        influence, sizes = rows + columns, (size_rows, size_columns)
    counts = (sums.counted or sums).totals(g, h)
    return CellRate(round(counts[0]), round(counts[1]), p, influence, pair_square, max(variance, pair_square), sizes)


def difference_of_cells(one: CellRate, two: CellRate) -> float:
    """Variance of the difference of two rates that may share identities, not below what their pairs say alone."""
    plain = float(((one.influence - two.influence) ** 2).sum())
    separate = float((one.influence**2).sum() + (two.influence**2).sum())
    shared = plain - separate
    return max(one.variance + two.variance + shared, one.pair_square + two.pair_square)


def welch(variances: tuple[float, float], freedoms: tuple[float, float]) -> float:
    """Satterthwaite's degrees of freedom of the sum of two independent variances."""
    total = sum(variances)
    if total <= 0.0:
        return max(min(freedoms), 1.0)
    below = sum(v * v / max(f, 1.0) for v, f in zip(variances, freedoms, strict=True))
    return max(total * total / below, 1.0) if below > 0.0 else max(min(freedoms), 1.0)
