"""Errors by group: sums of a tally over groups of identities, within groups and between them.

Let S_ih = Σ_{j in h} n_ij and m_ih = Σ_{j in h} m_ij. The rate of the cell {g, h} is p = Σn/Σm over the
identity pairs with one member in g and the other in h; D_ij = n_ij − p·m_ij there, and identity i in g moves
it by ψ_i = (S_ih − p·m_ih)/N, N the comparisons of the cell. Its variance is Σψ_i² − ΣD_ij²/N² (each pair
once): the dyadic variance for g = h, the one of two sets of different people for g ≠ h. Cells have no pair in
common, so that the variance of a difference of two cells is Σ(ψ_i − ψ'_i)² less both of the latter sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import AllPairs, Tally
from matchbound.stats.dyadic import DyadicSums, bipartite_variance, effective_number


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Impostor comparisons by identity and group, at one threshold.

    group : int64 array, shape (G,)
        The group of each identity, in 0..H−1.
    errors, comparisons : float64 arrays, shape (G, H)
        S_ih and m_ih.
    sum_nn, sum_nm, sum_mm : float64 arrays, shape (H, H)
        Σn_ij², Σn_ij·m_ij and Σm_ij² over the identity pairs of each cell, each pair once; symmetric.
    clumps : tuple of H int64 arrays
        n_ij > 0 of the identity pairs within each group; empty where units are counted.
    counts : (errors, comparisons), float64 arrays, shape (H, H), or None
        Where the sums are of units (shares n_ij/m_ij of identity pairs): the comparisons themselves.
    """

    group: IntArray
    errors: FloatArray
    comparisons: FloatArray
    sum_nn: FloatArray
    sum_nm: FloatArray
    sum_mm: FloatArray
    clumps: tuple[IntArray, ...]
    counts: tuple[FloatArray, FloatArray] | None = None

    @property
    def n_groups(self) -> int:
        """H."""
        return int(self.errors.shape[1])


def group_sums(tally: Tally, group: IntArray, n_groups: int, k: int = 0, *, units: bool = False) -> GroupSums:
    """Sum a tally with pairs over groups of identities at threshold k.

    With `units` every identity pair counts once: n_ij/m_ij takes the place of n_ij, and 1 that of m_ij.
    """
    impostor = tally.impostor
    assert impostor.erred is not None
    assert impostor.compared is not None
    size, compared = tally.n_identities, impostor.compared
    erred = impostor.erred[k]
    n = erred.count.astype(np.float64)

    def by_group(first: IntArray, second: IntArray, value: FloatArray) -> FloatArray:
        there = np.bincount(first * np.int64(n_groups) + group[second], value, size * n_groups)
        back = np.bincount(second * np.int64(n_groups) + group[first], value, size * n_groups)
        result: FloatArray = (there + back).astype(np.float64).reshape(size, n_groups)
        return result

    def by_cell(first: IntArray, second: IntArray, value: FloatArray) -> FloatArray:
        low, high = np.minimum(group[first], group[second]), np.maximum(group[first], group[second])
        cell = np.bincount(low * np.int64(n_groups) + high, value, n_groups * n_groups).reshape(n_groups, n_groups)
        result: FloatArray = (cell + np.triu(cell, 1).T).astype(np.float64)
        return result

    counts = None
    if units:
        whole = group_sums(tally, group, n_groups, k)
        counts = _cells(whole.errors, group, n_groups), _cells(whole.comparisons, group, n_groups)
    if isinstance(compared, AllPairs):
        m_of_errors = compared.look_up_in(erred).astype(np.float64)
        sizes = (compared.instances > 0 if units else compared.instances).astype(np.float64)
        total = np.bincount(group, sizes, n_groups)
        squares = np.bincount(group, sizes**2, n_groups)
        fourths = np.bincount(group, sizes**4, n_groups)
        comparisons = sizes[:, None] * total[None, :]
        comparisons[np.arange(size), group] -= sizes**2
        sum_mm = np.multiply.outer(squares, squares)
        sum_mm[np.diag_indices(n_groups)] = (squares**2 - fourths) / 2.0
    else:
        m_of_errors = erred.look_up(compared, size).astype(np.float64)
        made = np.ones(compared.count.size) if units else compared.count.astype(np.float64)
        comparisons = by_group(compared.first, compared.second, made)
        sum_mm = by_cell(compared.first, compared.second, made * made)
    if units:
        n, m_of_errors = n / m_of_errors, np.ones(n.size)
    inside = np.where(group[erred.first] == group[erred.second], group[erred.first], -1)
    return GroupSums(
        group,
        by_group(erred.first, erred.second, n),
        comparisons,
        by_cell(erred.first, erred.second, n * n),
        by_cell(erred.first, erred.second, n * m_of_errors),
        sum_mm,
        tuple(erred.count[(inside == g) & (not units)] for g in range(n_groups)),
        counts,
    )


def _cells(by_identity: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
    """Sums over cells from sums by identity and group, shape (H, H), each comparison once."""
    result: FloatArray = np.array([by_identity[group == g].sum(axis=0) for g in range(n_groups)])
    result[np.diag_indices(n_groups)] /= 2.0
    return result


@dataclass(frozen=True, eq=False)
class CellRate:
    """The impostor rate of one cell, between groups g and h (or within one).

    estimate
        NaN without comparisons.
    influence : float64 array, shape (G,)
        ψ_i; 0 for identities of other groups.
    pair_square
        ΣD_ij²/N², each pair once: the floor of the variance.
    variance
        Corrected for the bias of the plug-in.
    sizes
        Effective identities on either side (the same twice within a group).
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
    members = sums.group == g
    s, m = np.where(members, sums.errors[:, h], 0.0), np.where(members, sums.comparisons[:, h], 0.0)
    errors, comparisons = float(s.sum()), float(m.sum())
    if g == h:
        errors, comparisons = errors / 2.0, comparisons / 2.0
    if comparisons <= 0.0:
        return CellRate(0, 0, float("nan"), np.zeros(s.size), 0.0, float("nan"), (0.0, 0.0))
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
    if sums.counts is not None:
        errors, comparisons = float(sums.counts[0][g, h]), float(sums.counts[1][g, h])
    return CellRate(round(errors), round(comparisons), p, influence, pair_square, max(variance, pair_square), sizes)


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
