"""Simultaneous intervals by max-t: one critical value for many studentised differences.

The critical value is a quantile of the largest of them in a world in which nothing differs, drawn from the data, or by
a normal approximation (`gaussian_largest`) where errors are many. Statistics are on the normal scale: the normal
deviate with the tail of the t statistic.

Systems: equal systems may trade places. At one identity (FRR) the differences of all pairs of systems, e^A_i − e^B_i,
are then as likely as their negatives; at one identity pair (FAR) so are n^A_ij − n^B_ij. Each draw gives every identity
a standard normal ξ_i and the signs sign(ξ_i) and sign(ξ_i + ξ_j), the same for all systems: what the systems have in
common stays, and pairs that share an identity stay dependent (their signs have correlation 1/3). Every draw is
studentised anew, so that it has the short tails of few errors.

Groups, FRR: identities (e_i with g_i) are reassigned to groups at random. Studentised gaps make that right to first
order even where groups differ in more than their rates (Chung & Romano 2013).

Groups, FAR: identities cannot be reassigned, because it is not known how often they would match members of another
group: impostor rates between groups differ from those within. Instead error clusters (the n_ij errors of one identity
pair) are reassigned at random at the pooled rate, to two identities drawn in proportion to their comparisons times a
propensity: log-normal, mean 1, with the variance κ that errors sharing one identity have within groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import ImpostorTally, JointTally, PairTable, Part
from matchbound.stats.gaps import GroupMoments, gap_statistic, group_moments, without_leverage
from matchbound.stats.intervals import ndtr, ndtri
from matchbound.stats.resampling import in_blocks, seed_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Rng = int | np.random.Generator | None

BLOCK = 500
# Statistics that agree to this many decimals are tied.
DECIMALS = 7
TIE = 0.75 * 10.0**-DECIMALS


@dataclass(frozen=True, eq=False)
class Largest:
    """Draws of the largest of several statistics in a world in which nothing differs.

    With few errors the largest takes few values, and a test that rejects only beyond the quantile may never
    reject. Ties therefore count half (mid-P; Lancaster 1961): of B draws, mid(m) = (#{> m} + ½#{= m} + ½)/(B + 1).

    - tops, shape (B,): increasing; rounded, so that ties are ties.
    """

    tops: FloatArray

    @staticmethod
    def of(draws: FloatArray) -> Largest:
        return Largest(np.sort(np.round(draws, DECIMALS)))

    def p_values(self, statistics: FloatArray) -> FloatArray:
        """mid(|s|) of each statistic, shape (S,); 1 where there are no draws."""
        if not self.tops.size:
            return np.ones(statistics.shape)
        at = np.round(np.abs(statistics), DECIMALS)
        beyond = self.tops.size - np.searchsorted(self.tops, at, side="right")
        reached = self.tops.size - np.searchsorted(self.tops, at, side="left")
        return np.asarray(((beyond + reached + 1.0) / 2.0 / (self.tops.size + 1.0)).astype(np.float64))

    def critical(self, level: float) -> float:
        """c: a statistic lies beyond it exactly when its p-value is at most 1 − level; 0 without draws.

        At the resolution of the draws: a level above 1 − 1/(2B) gets the largest of them.
        """
        if not self.tops.size:
            return 0.0
        size = self.tops.size
        allowed = (1.0 - level) * (size + 1.0) * (1.0 + 1e-12)
        values, count = np.unique(self.tops, return_counts=True)
        above = size - np.cumsum(count)
        k = int(np.argmax(above + 0.5 <= allowed)) if allowed >= 0.5 else values.size - 1
        rejects_itself = above[k] + 0.5 * count[k] + 0.5 <= allowed
        return float(values[k]) + (-TIE if rejects_itself else TIE)


def largest_of(draw: Callable[[int, np.random.Generator], FloatArray], n_resamples: int, rng: Rng) -> Largest:
    """Collect draws in blocks: ``draw(size, rng)`` gives `size` of them, each block has its own seed."""
    return Largest.of(np.concatenate([np.empty(0), *in_blocks(draw, n_resamples, seed_of(rng), size=BLOCK)]))


def gaussian_largest(influence: FloatArray, *, n_resamples: int = 10_000, rng: Rng = 0) -> Largest:
    """max_s |Σ_i ξ_i·ψ_si|/√Σ_i ψ_si² with ξ_i standard normal for each identity.

    These sums are normal with the correlations of the rows of ψ, and are drawn as such, by the symmetric root of the
    correlations (any other would depend on rounding where eigenvalues are equal).

    - influence, shape (S, G): ψ_si, what identity i adds to statistic s. Statistics that nobody moves are left out.
    """
    scale = np.sqrt((influence * influence).sum(axis=1))
    rows = influence[scale > 0.0] / scale[scale > 0.0, None]
    if not rows.size:
        return Largest(np.empty(0))
    values, vectors = np.linalg.eigh(rows @ rows.T)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T

    def draw(size: int, rng: np.random.Generator) -> FloatArray:
        return np.asarray(np.abs(rng.standard_normal((size, root.shape[0])) @ root).max(axis=1))

    return largest_of(draw, n_resamples, rng)


def normal_scores(statistics: FloatArray, freedom: FloatArray | float) -> FloatArray:
    """Normal deviates ≥ 0 with the tails of t statistics."""
    from scipy.special import stdtr

    return -ndtri(np.maximum(stdtr(np.maximum(freedom, 1.0), -np.abs(statistics)), 1e-300))


def scores_of(p_values: FloatArray) -> FloatArray:
    """Normal deviates ≥ 0 with these two-sided tails; 0 for 1 and for an unknown p-value."""
    with np.errstate(invalid="ignore"):
        return np.where(p_values < 1.0, -ndtri(np.maximum(p_values, 1e-300) / 2.0), 0.0)


def adjusted_level(critical: float) -> float:
    """The level whose normal quantile is the critical value: 2Φ(c) − 1."""
    return float(2.0 * ndtr(critical) - 1.0)


# Differences that are not 0, over all pairs of systems: beyond, the normal approximation is as good and faster.
MOST_TERMS = 10_000
# A variance below this share of the plain sum of squares is rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class SignTerms:
    """Differences of errors of S pairs of systems, identity by identity (FRR) or identity pair by pair (FAR).

    - first, second, shape (E,): the identities at which any systems differ, in 0..A−1; the same twice for FRR.
    - d, shape (S, E): e^A_i − e^B_i or n^A_ij − n^B_ij.
    - m, ends, shape (E,): m_ij, and m_i + m_j; for FRR both g_i.
    - total, squares, pair_squares: N, Σm_i² and Σ_{i<j} m_ij² over all identities; T, Σg_i² and 0 for FRR.
    """

    first: IntArray
    second: IntArray
    d: FloatArray
    m: FloatArray
    ends: FloatArray
    total: float
    squares: float
    pair_squares: float

    @property
    def identities(self) -> int:
        """A."""
        return int(max(self.first.max(initial=-1), self.second.max(initial=-1))) + 1

    @cached_property
    def incidence(self) -> list[csr_array]:
        """For each pair of systems the table of d_ij by identity and identity pair, shape (A, E)."""
        from scipy.sparse import csr_array

        tables = []
        for row in self.d:
            at = np.flatnonzero(row)
            places = np.concatenate([self.first[at], self.second[at]]), np.concatenate([at, at])
            values = np.concatenate([row[at], row[at]])
            tables.append(csr_array((values, places), shape=(self.identities, row.size)))
        return tables

    def largest(self, signs: FloatArray, factor: float, freedom: float) -> FloatArray:
        """The largest statistic with given signs, shape (B, E) → (B,), on the normal scale.

        FRR: d* = Σε_i·d_i/T has the variance factor·Σ(ε_i·d_i − d*·g_i)²/T². FAR: D*_ij = η_ij·d_ij − d*·m_ij has
        max(factor·(R − Q), Q)/N², Q over unordered pairs. A difference that cannot vary counts as 0.
        """
        d, genuine = self.d, np.array_equal(self.first, self.second)
        plain = (d * d).sum(axis=1)
        value = (signs @ d.T) / self.total
        squared = value * value
        rows, q = plain, np.zeros(())
        if not genuine:
            columns = np.ascontiguousarray(signs.T)
            rows = np.stack([((one @ columns) ** 2).sum(axis=0) for one in self.incidence], axis=1)
            q = plain - 2.0 * value * (signs @ (d * self.m).T) + squared * self.pair_squares
        r = rows - 2.0 * value * (signs @ (d * self.ends).T) + squared * self.squares
        variance = np.maximum(factor * (r - q), q)
        known = variance > ROUNDING * plain
        ratio = np.where(known, self.total * np.abs(value) / np.sqrt(np.where(known, variance, 1.0)), 0.0)
        return normal_scores(ratio.max(axis=1), freedom)


def sign_terms(joints: Sequence[JointTally], metric: str, k: int = 0) -> SignTerms | None:
    """From the joint tallies of all pairs of systems on the same comparisons, at the k-th thresholds.

    None where the systems differ nowhere, or at more than `MOST_TERMS` places.
    """
    size, part = np.int64(joints[0].n_identities), joints[0].a.part(metric)
    keys, values = [], []
    for joint in joints:
        one, two = (_erred(tally.part(metric), k) for tally in (joint.a, joint.b))
        if one.count.size + two.count.size > 4 * MOST_TERMS:
            return None
        both = np.concatenate([table.first * size + table.second for table in (one, two)])
        key, place = np.unique(both, return_inverse=True)
        value = np.bincount(place.reshape(-1), np.concatenate([one.count, -two.count]), key.size)
        keys.append(key[value != 0.0])
        values.append(value[value != 0.0])
    if not 0 < sum(key.size for key in keys) <= MOST_TERMS:
        return None
    union = np.unique(np.concatenate(keys))
    d = np.zeros((len(joints), union.size))
    for row, key, value in zip(d, keys, values, strict=True):
        row[np.searchsorted(union, key)] = value
    first, second = union // size, union % size
    renamed = np.unique(np.concatenate([first, second]), return_inverse=True)[1].astype(np.int64).reshape(2, -1)
    m_i = part.comparisons.astype(np.float64)
    m, ends, pair_squares = m_i[first], m_i[first], 0.0
    if isinstance(part, ImpostorTally):
        assert part.compared is not None
        m = part.compared.of_pairs(first, second, int(size)).astype(np.float64)
        ends, pair_squares = m_i[first] + m_i[second], float(part.sum_mm) / 2.0
    return SignTerms(renamed[0], renamed[1], d, m, ends, float(m_i.sum()) / part.ends, float(m_i @ m_i), pair_squares)


def _erred(part: Part, k: int) -> PairTable:
    """The errors at the k-th threshold by identity pair; genuine ones as those of an identity with itself."""
    if isinstance(part, ImpostorTally):
        assert part.erred is not None
        return part.erred[k]
    own = np.flatnonzero(part.errors[k])
    return PairTable(own, own, part.errors[k][own])


def flipped(terms: SignTerms, factor: float, freedom: float, *, n_resamples: int = 10_000, rng: Rng = 0) -> Largest:
    """Draws of the largest studentised difference when the differences at each place have a random sign."""

    def draw(size: int, rng: np.random.Generator) -> FloatArray:
        xi = rng.standard_normal((size, terms.identities))
        signs = np.where(xi[:, terms.first] + xi[:, terms.second] < 0.0, -1.0, 1.0)
        return terms.largest(signs, factor, freedom)

    return largest_of(draw, n_resamples, rng)


# Beyond, the normal approximation serves, which is instant.
MOST_PEOPLE = 2_000
MOST_CLUMPS = 500
# Clumps fall independently only where they are few: at most this share of the identity pairs.
SPARSE = 0.25


@dataclass(frozen=True, eq=False)
class Within:
    """Impostor comparisons within H groups, and the errors among them.

    - group, shape (U,): the group of each identity, in 0..H−1, increasing.
    - comparisons, shape (U,): m_i within the group.
    - pair_squares, shape (H,): Σm_ij², each pair once.
    - people, shape (H,): G_e.
    - clumps, shape (E,): n_ij > 0 of all groups.
    - spread: κ.
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


def within_groups(parts: Sequence[ImpostorTally], people: FloatArray) -> Within:
    """From the impostor comparisons of each group, at one threshold, with pairs.

    κ is the mean product of two residuals that share one identity over p², pooled over groups; not below 0.

    `people` are the effective identities of each group, shape (H,).
    """
    m = [part.comparisons.astype(np.float64) for part in parts]
    s = [part.errors[0].astype(np.float64) for part in parts]
    nn, nm, mm = (
        np.array([float(value) for value in values])
        for values in zip(*((part.sum_nn[0], part.sum_nm[0], part.sum_mm) for part in parts), strict=True)
    )
    p, spread = sum(x.sum() for x in s) / sum(x.sum() for x in m), 0.0
    sharing = sum(float(x @ x) for x in m) - float(mm.sum())
    if p > 0.0 and sharing > 0.0:
        r = sum(float(((x - p * y) ** 2).sum()) for x, y in zip(s, m, strict=True))
        spread = max((r - float((nn - 2.0 * p * nm + p * p * mm).sum())) / sharing / p**2, 0.0)
    present = [x[x > 0.0] for x in m]
    clumps = [part.erred[0].count for part in parts if part.erred is not None]
    group, clump = np.repeat(np.arange(len(m)), [x.size for x in present]), np.concatenate(clumps).astype(np.float64)
    return Within(group, np.concatenate(present), mm / 2.0, people, clump, spread)


def thrown_far(within: Within, *, n_resamples: int = 10_000, rng: Rng = 0) -> Largest | None:
    """Draws of the largest studentised gap of FAR under the null: error clusters are reassigned to groups at random.

    None where there are no clusters, or too many to fall independently.
    """
    if not (within.clumps.size and within.few):
        return None

    def draw(size: int, rng: np.random.Generator) -> FloatArray:
        return largest_gap(thrown_moments(within, *throw(within, rng, size)))

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
        return np.asarray(np.clip(found, who * people + starts[where], who * people + stops[where] - 1))

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


def thrown_moments(within: Within, s: FloatArray, nn: FloatArray) -> GroupMoments:
    """What the test of a gap needs of each draw and group, arrays that broadcast to shape (B, H).

    Q = Σn_ij² − p²·Σm_ij²: errors meet pairs in proportion to m_ij.
    """
    m, group = within.comparisons, within.group
    n2, squares = (np.bincount(group, weights).astype(np.float64) for weights in (m, m * m))
    starts = np.searchsorted(group, np.arange(n2.size))
    n = n2 / 2.0
    p = np.add.reduceat(s, starts, axis=1) / n2
    r = np.add.reduceat(s * s, starts, axis=1) - 2.0 * p * np.add.reduceat(s * m, starts, axis=1) + p * p * squares
    q = np.maximum(nn - p * p * within.pair_squares, 0.0)
    return group_moments(p, n, within.people, squares, squares - 2.0 * within.pair_squares, q, r)


def permuted_frr(
    group: IntArray, errors: FloatArray, comparisons: FloatArray, *, n_resamples: int = 10_000, rng: Rng = 0
) -> Largest | None:
    """Draws of the largest studentised gap of FRR under the null: identities are permuted between groups.

    Each group keeps its number of people; effective identities are T²/Σg². None where people are too many.

    - group, errors, comparisons, shape (U,): the group of each identity as for `Within`, e_i and g_i.
    """
    kept = comparisons > 0
    if np.count_nonzero(kept) > MOST_PEOPLE:
        return None
    group, errors, comparisons = group[kept], errors[kept].astype(np.float64), comparisons[kept].astype(np.float64)

    def draw(size: int, rng: np.random.Generator) -> FloatArray:
        order = rng.permuted(np.broadcast_to(np.arange(group.size), (size, group.size)), axis=1)
        return largest_gap(permuted_moments(group, errors[order], comparisons[order]))

    return largest_of(draw, n_resamples, rng)


def permuted_moments(group: IntArray, errors: FloatArray, comparisons: FloatArray) -> GroupMoments:
    """What the test of a gap needs of each draw and group, shape (B, H), from e_i and g_i, shape (B, U)."""
    starts = np.searchsorted(group, np.arange(int(group[-1]) + 1))
    x, total, squares = (np.add.reduceat(v, starts, axis=1) for v in (errors, comparisons, comparisons**2))
    q = x / total
    left = without_leverage(errors - q[:, group] * comparisons, comparisons / total[:, group])
    return group_moments(q, total, total * total / squares, squares, 0.0, np.add.reduceat(left, starts, axis=1))


def _choose(rng: np.random.Generator, weights: FloatArray, count: int) -> IntArray:
    """`count` columns of each row, drawn in proportion to the weights, shape (rows, count)."""
    ends = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    drawn = rng.random((weights.shape[0], count))
    return np.asarray((drawn[:, :, None] >= ends[:, None, :-1]).sum(axis=2))


def largest_gap(drawn: GroupMoments) -> FloatArray:
    """The largest gap over all pairs of groups on the normal scale, (B, H) → (B,)."""
    one, two = np.triu_indices(drawn.rate.shape[1], k=1)
    statistic, freedom = gap_statistic(drawn.columns(one), drawn.columns(two))
    return np.asarray(normal_scores(statistic, freedom).max(axis=1))
