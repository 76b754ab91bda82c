"""What the largest gap between several groups would be if the groups were equal.

FRR: under the null, identities (e_i with g_i) are reassigned to groups at random. Studentised gaps make that right to
first order even where groups differ in more than their rates (Chung & Romano 2013).

FAR: identities cannot be reassigned, because it is not known how often they would match members of another group:
impostor rates between groups differ from those within. Instead, under the null, error clusters (the n_ij errors of one
identity pair) are reassigned at random at the pooled rate, to two identities drawn in proportion to their comparisons
times a propensity: log-normal, mean 1, with the variance κ that errors sharing one identity have within groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.stats.families.critical import Largest, Rng, largest_of, normal_scores
from matchbound.stats.gaps import GroupMoments, finite_factor, gap_statistic, without_leverage
from matchbound.stats.group_differences import GroupSums

MOST_PEOPLE = 2_000
"""Beyond, the normal approximation serves, which is instant."""
MOST_CLUMPS = 500
SPARSE = 0.25
"""Clumps fall independently only where they are few: at most this share of the identity pairs."""


@dataclass(frozen=True, eq=False)
class Within:
    """Impostor comparisons within H groups, and the errors among them.

    group : int64 array, shape (U,)
        The group of each identity, in 0..H−1, increasing.
    comparisons : float64 array, shape (U,)
        m_i within the group.
    pair_squares : float64 array, shape (H,)
        Σm_ij², each pair once.
    people : float64 array, shape (H,)
        G_e.
    clumps : float64 array, shape (E,)
        n_ij > 0 of all groups.
    spread
        κ.
    """

    group: IntArray
    comparisons: FloatArray
    pair_squares: FloatArray
    people: FloatArray
    clumps: FloatArray
    spread: float

    @property
    def few(self) -> bool:
        """Whether clumps are few enough to fall independently."""
        n = np.bincount(self.group, self.comparisons) / 2.0
        pairs = float((n * n / self.pair_squares).sum())
        return self.clumps.size <= min(MOST_CLUMPS, SPARSE * pairs) and self.group.size <= MOST_PEOPLE


def within_groups(sums: GroupSums, chosen: list[int], people: FloatArray) -> Within:
    """What `thrown_far` needs of some of the groups, all of which have impostor comparisons.

    Parameters
    ----------
    people : float64 array, shape (H,)
        Effective identities of each chosen group.
    """
    places = [np.flatnonzero((sums.group == g) & (sums.comparisons[:, g] > 0.0)) for g in chosen]
    m = [sums.comparisons[place, g] for place, g in zip(places, chosen, strict=True)]
    at = np.array(chosen)
    return Within(
        np.repeat(np.arange(len(chosen)), [x.size for x in m]),
        np.concatenate(m),
        sums.sum_mm[at, at],
        people,
        np.concatenate([sums.clumps[g] for g in chosen]).astype(np.float64),
        _spread(sums, chosen),
    )


def _spread(sums: GroupSums, chosen: list[int]) -> float:
    """κ: mean product of two residuals that share one identity over p², pooled over groups; not below 0."""
    at = np.array(chosen)
    s = [np.where(sums.group == g, sums.errors[:, g], 0.0) for g in chosen]
    m = [np.where(sums.group == g, sums.comparisons[:, g], 0.0) for g in chosen]
    p = sum(float(x.sum()) for x in s) / sum(float(x.sum()) for x in m)
    if p <= 0.0:
        return 0.0
    r = sum(float(((x - p * y) ** 2).sum()) for x, y in zip(s, m, strict=True))
    cells = sums.sum_nn[at, at] - 2.0 * p * sums.sum_nm[at, at] + p * p * sums.sum_mm[at, at]
    sharing = sum(float(y @ y) for y in m) - 2.0 * float(sums.sum_mm[at, at].sum())
    return max((r - 2.0 * float(cells.sum())) / sharing / p**2, 0.0) if sharing > 0.0 else 0.0


def thrown_far(within: Within, *, n_resamples: int = 10_000, rng: Rng = 0) -> Largest:
    """Draws of the largest studentised gap of FAR under the null: error clusters are reassigned to groups at random."""

    def draw(rng: np.random.Generator, size: int) -> FloatArray:
        return largest_far(within, *throw(within, rng, size))

    return largest_of(draw, n_resamples, rng)


def throw(within: Within, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
    """Let the clumps fall: S_i, shape (size, U), and Σn_ij² of each group, shape (size, H).

    A clump falls on group h with probability ∝ N_h·Σ_{i≠j} m_i·m_j·w_i·w_j / Σ_{i≠j} m_i·m_j, and there on {i, j}
    with probability ∝ m_i·m_j·w_i·w_j.
    """
    m, group, people, clumps = within.comparisons, within.group, within.group.size, within.clumps
    n2, squares = np.bincount(group, m), np.bincount(group, m * m)
    starts = np.searchsorted(group, np.arange(n2.size))
    stops = np.append(starts[1:], people)
    share = m * np.sqrt(n2 / (n2 * n2 - squares))[group]
    weight = share * np.exp(np.sqrt(np.log1p(within.spread)) * rng.standard_normal((size, people)))
    mass = np.add.reduceat(weight, starts, axis=1)
    ends = np.cumsum(weight.reshape(-1))
    below = (ends.reshape(size, people) - weight)[:, starts]
    row = np.repeat(np.arange(size), clumps.size)
    target = _choose(rng, mass**2 - np.add.reduceat(weight**2, starts, axis=1), clumps.size).reshape(-1)
    count = rng.permuted(np.broadcast_to(clumps, (size, clumps.size)), axis=1).reshape(-1)

    def pick(at: IntArray) -> IntArray:
        who, where = row[at], target[at]
        found = np.searchsorted(ends, below[who, where] + rng.random(at.size) * mass[who, where], side="right")
        result: IntArray = np.clip(found, who * people + starts[where], who * people + stops[where] - 1)
        return result

    every = np.arange(row.size)
    one, two = pick(every), pick(every)
    while (again := np.flatnonzero(one == two)).size:
        one[again], two[again] = pick(again), pick(again)
    all_people = np.int64(size * people)
    key, inverse = np.unique(np.minimum(one, two) * all_people + np.maximum(one, two), return_inverse=True)
    hits = np.bincount(inverse.reshape(-1), count, minlength=key.size)
    one, two = key // all_people, key % all_people
    s: FloatArray = (np.bincount(one, hits, all_people) + np.bincount(two, hits, all_people)).astype(np.float64)
    cell = one // people * n2.size + group[one % people]
    nn: FloatArray = np.bincount(cell, hits * hits, size * n2.size).astype(np.float64)
    return s.reshape(size, people), nn.reshape(size, n2.size)


def largest_far(within: Within, s: FloatArray, nn: FloatArray) -> FloatArray:
    """The largest gap of each draw, shape (B,), from S_i, shape (B, U), and Σn_ij² of each group, shape (B, H)."""
    return _largest_gap(thrown_moments(within, s, nn))


def thrown_moments(within: Within, s: FloatArray, nn: FloatArray) -> GroupMoments:
    """What the test of a gap needs of each draw and group, arrays that broadcast to shape (B, H).

    Q = Σn_ij² − p²·Σm_ij²: errors meet pairs in proportion to m_ij.
    """
    m, group = within.comparisons, within.group
    n2, squares = np.bincount(group, m), np.bincount(group, m * m)
    starts = np.searchsorted(group, np.arange(n2.size))
    n = n2 / 2.0
    p = np.add.reduceat(s, starts, axis=1) / n2
    r = np.add.reduceat(s * s, starts, axis=1) - 2.0 * p * np.add.reduceat(s * m, starts, axis=1) + p * p * squares
    q = np.maximum(nn - p * p * within.pair_squares, 0.0)
    factor = np.array([finite_factor(people) for people in within.people])
    return GroupMoments(
        rate=p,
        comparisons=n,
        people=within.people,
        personal=factor * (r - q) - q,
        clustered=q,
        sharing=squares - 2.0 * within.pair_squares,
        alone=n,
        mates=within.pair_squares - n,
        least=1.0 / n**2,
    )


def permuted_frr(
    group: IntArray, errors: FloatArray, comparisons: FloatArray, *, n_resamples: int = 10_000, rng: Rng = 0
) -> Largest:
    """Draws of the largest studentised gap of FRR when people are dealt to the groups anew.

    Each group keeps its number of people; effective identities are T²/Σg².

    Parameters
    ----------
    group : int64 array, shape (U,)
        The group of each identity, in 0..H−1, increasing.
    errors, comparisons : float64 arrays, shape (U,)
        e_i and g_i > 0.
    """

    def draw(rng: np.random.Generator, size: int) -> FloatArray:
        order = rng.permuted(np.broadcast_to(np.arange(group.size), (size, group.size)), axis=1)
        return _largest_gap(permuted_moments(group, errors[order], comparisons[order]))

    return largest_of(draw, n_resamples, rng)


def permuted_moments(group: IntArray, errors: FloatArray, comparisons: FloatArray) -> GroupMoments:
    """What the test of a gap needs of each draw and group, shape (B, H), from e_i and g_i, shape (B, U)."""
    starts = np.searchsorted(group, np.arange(int(group[-1]) + 1))
    x, total, squares = (np.add.reduceat(v, starts, axis=1) for v in (errors, comparisons, comparisons**2))
    q = x / total
    left = without_leverage(errors - q[:, group] * comparisons, comparisons / total[:, group])
    return GroupMoments(
        rate=q,
        comparisons=total,
        people=total * total / squares,
        personal=np.zeros_like(q),
        clustered=np.add.reduceat(left, starts, axis=1),
        sharing=np.zeros_like(q),
        alone=total,
        mates=squares - total,
        least=1.0 / total**2,
    )


def _choose(rng: np.random.Generator, weights: FloatArray, count: int) -> IntArray:
    """`count` columns of each row, drawn in proportion to the weights, shape (rows, count)."""
    ends = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    drawn = rng.random((weights.shape[0], count))
    result: IntArray = (drawn[:, :, None] >= ends[:, None, :-1]).sum(axis=2)
    return result


def _largest_gap(drawn: GroupMoments) -> FloatArray:
    """The largest gap over all pairs of groups on the normal scale, (B, H) → (B,)."""
    one, two = np.triu_indices(drawn.rate.shape[1], k=1)
    statistic, freedom = gap_statistic(drawn.columns(one), drawn.columns(two))
    result: FloatArray = normal_scores(statistic, freedom).max(axis=1)
    return result
