"""How errors go together: moments of pairs of comparisons by what they share, and the correlations they imply.

Two different comparisons are of the same identity pair ("within"), share one identity ("sharing"), or none
("disjoint"); genuine comparisons are of the same identity ("within") or of two ("disjoint"). With y = 1 for an error,
p the rate of errors and Σ over ordered pairs of comparisons, the sums of (y − p)(y' − p) of these kinds and of each
comparison with itself add up to zero. The mean product of disjoint comparisons, μ₂, is therefore below zero, and
subtracting it from the others removes most of the noise that they have in common.

Sums here run over comparisons: with D_ij = n_ij − p·m_ij, r_i = Σ_j D_ij, R = Σ r_i² and Q = Σ_{i≠j} D_ij², the sum
over pairs of the same identity pair (each comparison with itself included) is Q/2, over sharing ones R − Q.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import AllPairs, GenuineTally, ImpostorTally, PairTable, Tally
from matchbound.stats.latent.orthant import implied_correlation

SPARSE_PAIRS = 1_000_000
"""From so many identity pairs on, sums over the rows of their table are products of a sparse matrix."""


@dataclass(frozen=True, eq=False)
class Design:
    """How many ordered pairs of different comparisons share what; scalars, or arrays of one shape.

    comparisons
        N (or T): comparisons.
    within
        Pairs of comparisons of one cluster: the same identity pair (FAR) or the same identity (FRR).
    sharing
        Pairs that share exactly one identity: Σ_i (m_i² − Σ_j m_ij²) for FAR, 0 for FRR.
    disjoint
        Pairs that share none.
    alone
        The variance of one unit over p(1−p) where nothing is correlated: 1, or less where a unit is a mean of
        several comparisons.
    """

    comparisons: FloatArray
    within: FloatArray
    sharing: FloatArray
    disjoint: FloatArray
    alone: FloatArray | float = 1.0


@dataclass(frozen=True, eq=False)
class Products:
    """Errors, and sums of (y − p)(y' − p) over pairs of comparisons; arrays of one shape.

    rate
        p.
    within
        Over comparisons of one cluster, each with itself included: Q/2 for FAR, Σ(e_i − q·g_i)² for FRR.
    sharing
        Over comparisons that share one identity: R − Q for FAR, 0 for FRR.
    """

    rate: FloatArray
    within: FloatArray
    sharing: FloatArray


@dataclass(frozen=True, eq=False)
class Correlations:
    """Latent correlations that reproduce the moments; arrays of one shape.

    identity
        ρ_s, of two comparisons that share one identity (0 for FRR).
    pair
        ρ_w, of two comparisons of one cluster.
    """

    identity: FloatArray
    pair: FloatArray


def impostor_design(tally: ImpostorTally) -> Design:
    """The pairs of impostor comparisons by what they share; scalars."""
    m = tally.comparisons.astype(np.float64)
    ordered, squares = float(m.sum()), float(tally.sum_mm)
    sharing = float(m @ m) - squares
    return _design(ordered / 2.0, (squares - ordered) / 2.0, sharing)


def genuine_design(tally: GenuineTally) -> Design:
    """The pairs of genuine comparisons by what they share; scalars."""
    g = tally.comparisons.astype(np.float64)
    return _design(float(g.sum()), float(g @ g) - float(g.sum()), 0.0)


def _design(comparisons: float, within: float, sharing: float) -> Design:
    disjoint = comparisons * (comparisons - 1.0) - within - sharing
    return Design(*(np.asarray(v) for v in (comparisons, within, sharing, max(disjoint, 0.0))))


def impostor_products(tally: ImpostorTally) -> Products:
    """The moments of impostor errors at each threshold, shape (K,)."""
    m = tally.comparisons.astype(np.float64)
    s = tally.errors.astype(np.float64)
    p = s.sum(axis=1) / m.sum()
    r = ((s - p[:, None] * m) ** 2).sum(axis=1)
    q = tally.sum_nn - 2.0 * p * tally.sum_nm + p * p * float(tally.sum_mm)
    return Products(p, q / 2.0, r - q)


def genuine_products(tally: GenuineTally) -> Products:
    """The moments of genuine errors at each threshold, shape (K,)."""
    g = tally.comparisons.astype(np.float64)
    e = tally.errors.astype(np.float64)
    q = e.sum(axis=1) / g.sum()
    return Products(q, ((e - q[:, None] * g) ** 2).sum(axis=1), np.zeros_like(q))


def correlations(design: Design, products: Products) -> Correlations:
    """Solve each moment for the correlation of the latent normals.

    With the excess moments C = (mean product) − μ₂, ρ_w solves Φ₂(z, z; ρ_w) = p² + C_w, and ρ_s solves
    Φ₂(z, z; ρ_s) = p²(1 + C_s/max(p² + μ₂, p²/4)): the mean of two disjoint errors is p² + μ₂, and not p², in a sample
    whose rate is estimated from itself. Rates must lie strictly between 0 and 1. Where no two comparisons share an
    identity, or none are of the same cluster, the correlation is 0.
    """
    from scipy.special import ndtri

    p = products.rate
    mean = _mean_disjoint(design, products)
    pair = _ratio(products.within - design.comparisons * p * (1.0 - p), design.within) - mean
    rho = np.where(design.within > 0.0, implied_correlation(ndtri(p), pair), 0.0)
    return Correlations(identity_correlation(design, products), rho)


def identity_correlation(design: Design, products: Products) -> FloatArray:
    """ρ_s alone; see `correlations`."""
    from scipy.special import ndtri

    p = products.rate
    if not np.any(design.sharing > 0.0):
        return np.zeros_like(p)
    mean = _mean_disjoint(design, products)
    shared = _ratio(products.sharing, design.sharing) - mean
    target = p * p * shared / np.maximum(p * p + mean, p * p / 4.0)
    return np.where(design.sharing > 0.0, implied_correlation(ndtri(p), target), 0.0)


def _mean_disjoint(design: Design, products: Products) -> FloatArray:
    """μ₂: the mean of (y − p)(y' − p) over comparisons that share no identity."""
    return _ratio(-products.sharing - products.within, design.disjoint)


def _ratio(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """top / bottom, 0 where there is nothing at the bottom."""
    top, bottom = np.broadcast_arrays(top, bottom)
    return np.divide(top, bottom, out=np.zeros(top.shape), where=bottom > 0.0)


def without_each(tally: Tally, k: int) -> tuple[Design, Products]:
    """Design and moments of impostor errors at threshold k with each identity left out; see `LeaveOneOut`."""
    return LeaveOneOut(tally).at(k)


class LeaveOneOut:
    """Design and moments of impostor errors with each identity left out, arrays of shape (G,).

    All of it in one pass over the identity pairs. Leaving out h takes row and column h from every sum: with
    S_i = Σ_j n_ij and m_i = Σ_j m_ij, Σ_{i≠h}(S_i − n_ih)² = ΣS² − S_h² − 2Σ_i S_i·n_ih + Σ_i n_ih², and so on for the
    products with m.
    The tally must have kept its pairs. An identity without comparisons has the moments of all the data. What does not
    depend on the threshold is worked out once, and so is what is asked for twice.
    """

    def __init__(self, tally: Tally) -> None:
        self._impostor, self._size = tally.impostor, tally.n_identities
        self._known: dict[int, tuple[Design, Products]] = {}

    def at(self, k: int) -> tuple[Design, Products]:
        """At the k-th threshold of the tally."""
        if k not in self._known:
            self._known[k] = self._found(k)
        return self._known[k]

    @cached_property
    def _compared(self) -> _Rows:
        compared = self._impostor.compared
        assert isinstance(compared, PairTable)
        return _Rows(compared, compared.count.astype(np.float64), self._size)

    @cached_property
    def _without_errors(self) -> tuple[FloatArray, FloatArray]:
        """Σ_i m_ih² and Σ_i m_ih·m_i for each h."""
        compared, m = self._impostor.compared, self._impostor.comparisons.astype(np.float64)
        if isinstance(compared, AllPairs):
            sizes = compared.instances.astype(np.float64)
            return sizes**2 * (float(sizes @ sizes) - sizes**2), sizes * (float(sizes @ m) - sizes * m)
        return self._compared.of(self._compared.values**2), self._compared.times(m)

    def _found(self, k: int) -> tuple[Design, Products]:
        impostor = self._impostor
        assert impostor.erred is not None
        assert impostor.compared is not None
        m, s = impostor.comparisons.astype(np.float64), impostor.errors[k].astype(np.float64)
        erred, compared = impostor.erred[k], impostor.compared
        wrong_pairs = _Rows(erred, erred.count.astype(np.float64), self._size)
        n = wrong_pairs.values
        nn, ns, nm_i = wrong_pairs.of(n * n), wrong_pairs.times(s), wrong_pairs.times(m)
        mm, mm_i = self._without_errors
        if isinstance(compared, AllPairs):
            sizes = compared.instances.astype(np.float64)
            ms = sizes * (float(sizes @ s) - sizes * s)
            both = n * compared.look_up_in(erred)
        else:
            ms = self._compared.times(s)
            both = n * self._compared.at(erred)
        nm = wrong_pairs.of(both)
        ordered, wrong = float(m.sum()) - 2.0 * m, float(s.sum()) - 2.0 * s
        p = _ratio(wrong, ordered)
        sum_ss = float(s @ s) - s * s - 2.0 * ns + nn
        sum_sm = float(s @ m) - s * m - ms - nm_i + nm
        sum_mm = float(m @ m) - m * m - 2.0 * mm_i + mm
        pair_nn = float(impostor.sum_nn[k]) - 2.0 * nn
        pair_nm = float(impostor.sum_nm[k]) - 2.0 * nm
        pair_mm = float(impostor.sum_mm) - 2.0 * mm
        q = pair_nn - 2.0 * p * pair_nm + p * p * pair_mm
        r = sum_ss - 2.0 * p * sum_sm + p * p * sum_mm
        within = np.maximum((pair_mm - ordered) / 2.0, 0.0)
        sharing = np.maximum(sum_mm - pair_mm, 0.0)
        total = ordered / 2.0
        disjoint = np.maximum(total * (total - 1.0) - within - sharing, 0.0)
        return Design(total, within, sharing, disjoint), Products(p, q / 2.0, r - q)


class _Rows:
    """Sums over the rows of a symmetric table of identity pairs, shape (G,)."""

    def __init__(self, table: PairTable, values: FloatArray, size: int) -> None:
        self.values = values
        self._table, self._size = table, size

    def of(self, values: FloatArray) -> FloatArray:
        """Σ_i values_ih for each h."""
        first, second = self._table.first, self._table.second
        both = np.bincount(first, values, self._size) + np.bincount(second, values, self._size)
        return both.astype(np.float64)

    def times(self, partner: FloatArray) -> FloatArray:
        """Σ_i value_ih·partner_i for each h."""
        if self._matrix is not None:
            return np.asarray(self._matrix @ partner + self._matrix.T @ partner, dtype=np.float64)
        first, second = self._table.first, self._table.second
        right, left = self.values * partner[second], self.values * partner[first]
        both = np.bincount(first, right, self._size) + np.bincount(second, left, self._size)
        return both.astype(np.float64)

    def at(self, other: PairTable) -> IntArray:
        """The counts of the pairs of another table, 0 where there are none."""
        found = np.searchsorted(self._keys, other.first * np.int64(self._size) + other.second)
        if not self._keys.size:
            return np.zeros(other.first.size, dtype=np.int64)
        found[found == self._keys.size] = 0
        there = self._keys[found] == other.first * np.int64(self._size) + other.second
        return np.where(there, self._table.count[found], 0)

    @cached_property
    def _keys(self) -> IntArray:
        return self._table.first * np.int64(self._size) + self._table.second

    @cached_property
    def _matrix(self) -> Any:
        """The upper half as a sparse matrix, where it is large: its product is many times as fast. Else None."""
        if self._table.first.size < SPARSE_PAIRS:
            return None
        from scipy.sparse import csr_array

        starts = np.searchsorted(self._table.first, np.arange(self._size + 1))
        return csr_array((self.values, self._table.second, starts), shape=(self._size, self._size))
