"""Fit the latent model to tallies at several thresholds: moments of errors, correlations, the sample's own variance.

Two different comparisons are of the same identity pair ("within"), share one identity ("sharing"), or none
("disjoint"); genuine comparisons are of the same identity ("within") or of two ("disjoint"). With y = 1 for an error,
p the rate of errors and Σ over ordered pairs of comparisons, the sums of (y − p)(y' − p) of these kinds and of each
comparison with itself add up to zero. The mean product of disjoint comparisons, μ₂, is therefore below zero, and
subtracting it from the others removes most of the noise that they have in common.

Sums here run over comparisons: with D_ij = n_ij − p·m_ij, r_i = Σ_j D_ij, R = Σ r_i² and Q = Σ_{i≠j} D_ij², the sum
over pairs of the same identity pair (each comparison with itself included) is Q/2, over sharing ones R − Q.

The model's variance comes from correlations that are pooled over rates, so that it is steady where errors are few. The
sample's own variance has no model in it, and is poor where a few people make most errors: it is low exactly in the
samples that missed those people. As people become many, it is the better of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import AllPairs, GenuineTally, ImpostorTally, PairTable, Tally
from matchbound.errors import DataError
from matchbound.stats.latent.model import (
    Clusters,
    Curve,
    Design,
    LatentModel,
    LatentSettings,
    OwnVariance,
    settings_named,
)
from matchbound.stats.latent.probabilities import implied_correlation
from matchbound.stats.variance import effective_identities, far_bias_factor, frr_bias_factor
from matchbound.stats.weighting import UnitRate

SPARSE_PAIRS = 1_000_000
"""From so many identity pairs on, sums over the rows of their table are products of a sparse matrix."""

N_RANKS = 60
FEWEST = 3
FAR_POOL = (0.01, 0.5)
FRR_POOL = (0.02, 0.6)
LEAVE_OUT_RATES = (0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4)
MIDDLE = slice(1, 5)
NO_IDENTITY_DATA, NO_PAIR_DATA = 0.1, 0.3
"""Correlations assumed where the data are too few to show any: high ones of those seen on real data."""
TRUSTED = 30.0
"""A rank of this many errors has full weight in a curve; smaller ranks weigh in proportion."""


def rank_grid(comparisons: int, errors: int, metric: str = "far") -> IntArray:
    """Numbers of errors at whose thresholds correlations are estimated, increasing.

    About sixty in geometric steps from 3 errors to half of the comparisons (0.6 of them for FRR), and `errors` itself.
    When more than half of the comparisons err, the grid is counted from the other end.
    """
    beyond = errors > comparisons / 2.0
    seen = comparisons - errors if beyond else errors
    last = (FAR_POOL if metric == "far" else FRR_POOL)[1] * comparisons
    ranks = np.rint(np.geomspace(FEWEST, last, N_RANKS)) if last >= FEWEST else np.empty(0)
    grid = np.unique(np.append(ranks, seen).astype(np.int64))
    grid = grid[(grid > 0) & (grid < comparisons)]
    return np.unique(comparisons - grid) if beyond else grid


def leave_out_ranks(comparisons: int, errors: int) -> IntArray:
    """Numbers of errors at whose thresholds identities are left out in turn, shape (≤ 7,)."""
    ranks = np.unique(np.rint(np.array(LEAVE_OUT_RATES) * comparisons).astype(np.int64))
    ranks = ranks[ranks >= FEWEST]
    return comparisons - ranks[::-1] if errors > comparisons / 2.0 else ranks


def fit_far(
    tally: Tally,
    leave_out: Tally | None = None,
    whole: Tally | None = None,
    *,
    errors: int | None = None,
    settings: str | LatentSettings = "default",
) -> LatentModel:
    """The latent model of FAR.

    Parameters
    ----------
    tally
        Impostor comparisons at the thresholds of `rank_grid`; it must know m_ij (``impostor.compared``, or
        ``impostor.rows``).
    leave_out
        At the thresholds of `leave_out_ranks`, with pairs kept, or sums of their rows; by default `tally`, at its
        nearest thresholds.
    whole
        All the data, at any threshold, where the first two are of a random subset of identities: what was compared is
        counted from it, and only the correlations from the subset.
    errors
        Of `whole` (or `tally`) at the threshold of interest; only whether more than half of them err matters.
    settings
        ``"default"``, ``"reference"``, ``"light"`` or `LatentSettings`.
    """
    constants = settings_named(settings)
    whole = tally if whole is None else whole
    design = impostor_design(whole.impostor)
    if not design.comparisons > 0.0:
        raise DataError("far: there are no impostor comparisons")
    mirrored = errors is not None and errors > float(design.comparisons) / 2.0
    sample = impostor_design(tally.impostor)
    products = impostor_products(tally.impostor)
    curves = _curves(sample, products, mirrored, FAR_POOL, constants)
    sizes = whole.instances
    taking_part = whole.impostor.comparisons > 0
    identities = effective_identities(whole.impostor.comparisons if sizes is None else np.where(taking_part, sizes, 0))
    left_out = tally if leave_out is None else leave_out
    own = far_own_variance(whole.impostor, mirrored, identities)
    left = LeaveOneOut(left_out)
    if whole is tally:
        own = with_jackknife(own, left_out, mirrored, left)
    return LatentModel(
        metric="far",
        design=design,
        clusters=impostor_clusters(whole.impostor),
        effective_identities=identities,
        identity=smooth(
            curves.z, curves.found.identity, curves.errors, FAR_POOL, constants.bandwidth, NO_IDENTITY_DATA
        ),
        pair=smooth(
            curves.z, np.maximum(curves.found.pair, 0.0), curves.errors, FAR_POOL, constants.bandwidth, NO_PAIR_DATA
        ),
        beta=_slope(left_out, left, mirrored, constants),
        settings=constants,
        mirrored=mirrored,
        own=own,
        people=int(np.count_nonzero(taking_part)),
    )


def with_own_variance(model: LatentModel, tally: Tally) -> LatentModel:
    """The model of FAR with the sample's own variance taken from a tally of all the data, at its thresholds."""
    own = far_own_variance(tally.impostor, model.mirrored, model.effective_identities)
    return replace(model, own=own, other=model.other and with_own_variance(model.other, tally))


def unit_design(rate: UnitRate) -> Design:
    """What units share: a unit is the mean of its comparisons, which are one cluster."""
    units = float(rate.units)
    return Design(
        np.asarray(units),
        np.asarray((1.0 - rate.alone) * units),
        np.asarray(rate.sharing),
        np.asarray(max(units * (units - 1.0) - rate.sharing, 0.0)),
        rate.alone,
    )


def of_units(model: LatentModel, rates: Sequence[UnitRate]) -> LatentModel:
    """The model of a rate whose units are identity pairs or identities, with the correlations of a pooled rate.

    The variance of a unit that is the mean of m comparisons is p(1−p)/m + (1 − 1/m)·C_w; units never come in clumps.

    Parameters
    ----------
    model
        Of the pooled rate.
    rates
        The rate of units at one or more thresholds: where the sample's own variance is known.
    """
    rate = rates[0]
    units, people = float(rate.units), max(rate.people, 1)
    known: dict[float, tuple[float, float]] = {}
    for one in rates:
        squares = one.excess**2
        total, variance = float(squares.sum()), one.without_bias(model.metric)
        seen = 1.0 - one.estimate if model.mirrored else one.estimate
        if variance > 0.0 and seen * units >= 1.0 and total > 0.0:
            noise = max(float((squares**2).sum()) / total**2 - 1.0 / people, 0.0)
            known[seen * units] = variance / seen**2, noise
    own = None
    if known:
        errors = sorted(known)
        relative, noise_there = np.array([known[x] for x in errors]).T
        own = OwnVariance(np.array(errors), relative, noise_there, model.mirrored)
    return replace(
        model,
        design=unit_design(rate),
        clusters=Clusters(np.ones(1), np.array([units])),
        effective_identities=float(people),
        own=own,
        people=people,
        other=model.other and of_units(model.other, rates),
    )


def fit_frr(tally: Tally, *, errors: int | None = None, settings: str | LatentSettings = "default") -> LatentModel:
    """The latent model of FRR, from genuine comparisons at the thresholds of ``rank_grid(…, "frr")``; see `fit_far`."""
    constants = settings_named(settings)
    design = genuine_design(tally.genuine)
    if not design.comparisons > 0.0:
        raise DataError("frr: there are no genuine comparisons")
    mirrored = errors is not None and errors > float(design.comparisons) / 2.0
    curves = _curves(design, genuine_products(tally.genuine), mirrored, FRR_POOL, constants)
    pair = smooth(
        curves.z, np.maximum(curves.found.pair, 0.0), curves.errors, FRR_POOL, constants.bandwidth, NO_PAIR_DATA
    )
    identities = effective_identities(tally.genuine.comparisons)
    return LatentModel(
        metric="frr",
        design=design,
        clusters=genuine_clusters(tally.genuine),
        effective_identities=identities,
        identity=smooth(curves.z, curves.found.identity, curves.errors, FRR_POOL, constants.bandwidth, 0.0),
        pair=pair,
        beta=0.0,
        settings=constants,
        mirrored=mirrored,
        own=frr_own_variance(tally.genuine, mirrored, identities),
        people=int(np.count_nonzero(tally.genuine.comparisons)),
    )


class _Points:
    """Correlations at distinct rates in increasing order, seen from the side on which errors are the fewer."""

    def __init__(self, z: FloatArray, errors: FloatArray, found: Correlations) -> None:
        self.z, self.errors, self.found = z, errors, found


def _curves(
    design: Design, products: Products, mirrored: bool, pool: tuple[float, float], settings: LatentSettings
) -> _Points:
    from scipy.special import ndtri

    rate = 1.0 - products.rate if mirrored else products.rate
    count = np.rint(rate * float(design.comparisons))
    _, first = np.unique(count, return_index=True)
    kept = first[(count[first] >= 1) & (rate[first] <= pool[1] + 0.01)]
    chosen = Products(rate[kept], products.within[kept], products.sharing[kept])
    return _Points(ndtri(rate[kept]), count[kept], correlations(design, chosen))


def _slope(tally: Tally, left: LeaveOneOut, mirrored: bool, settings: LatentSettings) -> float:
    """β: the slope of the mean ρ_s on the mean probit rate over samples that each leave one identity out."""
    from scipy.special import ndtri

    if not left.possible or not tally.thresholds.size:
        return 0.0
    taking_part = tally.impostor.comparisons > 0
    total = float(tally.impostor.comparisons.sum())
    rates = tally.impostor.errors.sum(axis=1) / total
    rates = 1.0 - rates if mirrored else rates
    designs, moments, middle = [], [], []
    for place, rate in enumerate(LEAVE_OUT_RATES):
        k = int(np.argmin(np.abs(rates - rate)))
        if abs(rates[k] - rate) > 0.15 * rate or rates[k] * total / 2.0 < FEWEST:
            continue
        design, products = left.at(k)
        p = 1.0 - products.rate if mirrored else products.rate
        if np.any(taking_part & ((design.comparisons <= 0.0) | (p <= 0.0) | (p >= 1.0))):
            continue
        designs.append([design.comparisons, design.within, design.sharing, design.disjoint])
        moments.append([p, products.within, products.sharing])
        middle.append(MIDDLE.start <= place < MIDDLE.stop)
    if not any(middle):
        return 0.0
    without = Design(*np.array(designs)[:, :, taking_part].transpose(1, 0, 2))
    seen = Products(*np.array(moments)[:, :, taking_part].transpose(1, 0, 2))
    rho, probit = identity_correlation(without, seen), ndtri(seen.rate[np.array(middle)])
    x, y = probit.mean(axis=0), rho.mean(axis=0)
    spread = float(((x - x.mean()) ** 2).sum())
    if spread <= 0.0:
        return 0.0
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread
    return float(np.clip(slope, 0.0, settings.slope_limit))


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
    The tally must have kept its pairs, or the sums of their rows. An identity without comparisons has the moments of
    all the data. What does not depend on the threshold is worked out once, and so is what is asked for twice.
    """

    def __init__(self, tally: Tally) -> None:
        self._impostor, self._size = tally.impostor, tally.n_identities
        self.possible = tally.has_pairs or tally.impostor.rows is not None
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
        if self._impostor.rows is not None:
            return self._impostor.rows.mm, self._impostor.rows.mm_i
        if isinstance(compared, AllPairs):
            sizes = compared.instances.astype(np.float64)
            return sizes**2 * (float(sizes @ sizes) - sizes**2), sizes * (float(sizes @ m) - sizes * m)
        return self._compared.of(self._compared.values**2), self._compared.times(m)

    def _sums(self, k: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Σ_i m_ih·S_i, Σ_i n_ih², Σ_i n_ih·m_ih, Σ_i n_ih·S_i and Σ_i n_ih·m_i for each h."""
        impostor = self._impostor
        if impostor.rows is not None:
            rows = impostor.rows
            return rows.ms[k], rows.nn[k], rows.nm[k], rows.ns[k], rows.nm_i[k]
        assert impostor.erred is not None
        assert impostor.compared is not None
        m, s = impostor.comparisons.astype(np.float64), impostor.errors[k].astype(np.float64)
        erred, compared = impostor.erred[k], impostor.compared
        wrong_pairs = _Rows(erred, erred.count.astype(np.float64), self._size)
        n = wrong_pairs.values
        nn, ns, nm_i = wrong_pairs.of(n * n), wrong_pairs.times(s), wrong_pairs.times(m)
        if isinstance(compared, AllPairs):
            sizes = compared.instances.astype(np.float64)
            ms = sizes * (float(sizes @ s) - sizes * s)
            both = n * compared.look_up_in(erred)
        else:
            ms = self._compared.times(s)
            both = n * self._compared.at(erred)
        return ms, nn, wrong_pairs.of(both), ns, nm_i

    def _found(self, k: int) -> tuple[Design, Products]:
        impostor = self._impostor
        m, s = impostor.comparisons.astype(np.float64), impostor.errors[k].astype(np.float64)
        mm, mm_i = self._without_errors
        ms, nn, nm, ns, nm_i = self._sums(k)
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


def smooth(
    z: FloatArray, value: FloatArray, errors: FloatArray, pool: tuple[float, float], bandwidth: float, fallback: float
) -> Curve:
    """A curve through correlations estimated at several rates.

    Parameters
    ----------
    z, value, errors : float64 arrays, shape (K,)
        Probit rates in increasing order, correlations and numbers of errors.
    pool
        The rates over which the pooled value averages.
    fallback
        The pooled value where no rate lies in that range.
    """
    from scipy.special import ndtri

    spacing = np.gradient(z) if z.size > 1 else np.ones(z.size)
    weight = spacing * np.minimum(errors / TRUSTED, 1.0)
    low, high = float(ndtri(pool[0])) - 1e-9, float(ndtri(pool[1])) + 1e-9
    inside = (z >= low) & (z <= high)
    if not np.any(weight[inside] > 0.0):
        inside = np.ones(z.size, dtype=bool)
    total = float(weight[inside].sum())
    pooled = float(weight[inside] @ value[inside]) / total if total > 0.0 else fallback
    return Curve(z, value, weight, pooled, bandwidth)


def impostor_clusters(tally: ImpostorTally) -> Clusters:
    """The identity pairs that were compared, by m_ij; the tally must have kept m_ij, or how many have each."""
    if tally.rows is not None:
        return _grouped(tally.rows.sizes.astype(np.float64), tally.rows.pairs.astype(np.float64))
    compared = tally.compared
    assert compared is not None
    if isinstance(compared, AllPairs):
        sizes, members = np.unique(compared.instances[compared.instances > 0], return_counts=True)
        products = np.multiply.outer(sizes, sizes).astype(np.float64)
        pairs = np.multiply.outer(members, members).astype(np.float64)
        pairs[np.diag_indices(sizes.size)] -= members
        return _grouped(products.reshape(-1), pairs.reshape(-1) / 2.0)
    most = int(compared.count.max(initial=0))
    if most > compared.count.size + 1_000_000:
        return _grouped(compared.count.astype(np.float64), np.ones(compared.count.size))
    times = np.bincount(compared.count)
    sizes = np.flatnonzero(times)
    return _grouped(sizes.astype(np.float64), times[sizes].astype(np.float64))


def genuine_clusters(tally: GenuineTally) -> Clusters:
    """The identities with genuine comparisons, by g_i."""
    sizes: IntArray = tally.comparisons[tally.comparisons > 0]
    return _grouped(sizes.astype(np.float64), np.ones(sizes.size))


def _grouped(size: FloatArray, count: FloatArray, most: int = 32) -> Clusters:
    """Clusters by distinct size; many sizes are spread over a geometric grid that keeps Σ count and Σ count·size."""
    distinct, inverse = np.unique(size, return_inverse=True)
    total: FloatArray = np.bincount(inverse.reshape(-1), weights=count, minlength=distinct.size).astype(np.float64)
    distinct, total = distinct[total > 0.0], total[total > 0.0]
    if distinct.size <= most:
        return Clusters(distinct, total)
    grid = np.geomspace(distinct[0], distinct[-1], most)
    grid[0], grid[-1] = distinct[0], distinct[-1]
    at = np.clip(np.searchsorted(grid, distinct, side="right") - 1, 0, most - 2)
    share = (distinct - grid[at]) / (grid[at + 1] - grid[at])
    left, right = np.bincount(at, total * (1.0 - share), most), np.bincount(at + 1, total * share, most)
    spread: FloatArray = (left + right).astype(np.float64)
    return Clusters(grid[spread > 0.0], spread[spread > 0.0])


def far_own_variance(tally: ImpostorTally, mirrored: bool, identities: float) -> OwnVariance:
    """v̂ = max(f(4R − 2Q), 2Q)/(N2·p)² at each threshold, f the bias correction for G_e identities.

    Its noise is what the identities' own parts of R differ by: Σ(r_i² − R/G)²/R².
    """
    m, s = tally.comparisons.astype(np.float64), tally.errors.astype(np.float64)
    ordered = m.sum()
    p = s.sum(axis=1) / ordered
    moved = s - p[:, None] * m
    parts = moved**2
    r = parts.sum(axis=1)
    q = np.maximum(tally.sum_nn - 2.0 * p * tally.sum_nm + p * p * float(tally.sum_mm), 0.0)
    factor = far_bias_factor(identities)
    factor = factor if np.isfinite(factor) else 1.0
    variance = np.maximum(factor * (4.0 * r - 2.0 * q), 2.0 * q) / ordered**2
    taking_part = max(int(np.count_nonzero(m)), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = (parts**2).sum(axis=1) / r**2 - 1.0 / taking_part
    return _known(p, ordered / 2.0, variance, noise, mirrored)


def frr_own_variance(tally: GenuineTally, mirrored: bool, identities: float) -> OwnVariance:
    """v̂ = Σa²/T²·G_e/(G_e − 1)/q², a_i = e_i − q·g_i; its noise Σa⁴/(Σa²)² − 1/G."""
    g, e = tally.comparisons.astype(np.float64), tally.errors.astype(np.float64)
    total = g.sum()
    q = e.sum(axis=1) / total
    squares = (e - q[:, None] * g) ** 2
    spread = squares.sum(axis=1)
    factor = frr_bias_factor(identities)
    factor = factor if np.isfinite(factor) else 1.0
    taking_part = max(int(np.count_nonzero(g)), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = (squares**2).sum(axis=1) / spread**2 - 1.0 / taking_part
    return _known(q, total, factor * spread / total**2, noise, mirrored)


def with_jackknife(own: OwnVariance, tally: Tally, mirrored: bool, without: LeaveOneOut | None = None) -> OwnVariance:
    """The same with noise at least (G−1)/G·Σ(V_h − V̄)²/V̂² over samples that each leave one identity h out.

    V_h = max(0, 4R − 2Q)/N2² without h, and V̂ = max(4R − 2Q, 2Q)/N2². Known at the thresholds of `tally`, which must
    have kept its pairs or the sums of their rows, and in between linear.
    """
    without = without or LeaveOneOut(tally)
    if not without.possible or not own.errors.size:
        return own
    taking_part = tally.impostor.comparisons > 0
    size = int(np.count_nonzero(taking_part))
    total = float(tally.impostor.comparisons.sum()) / 2.0
    known, noise = [], []
    for k in range(tally.thresholds.size):
        wrong = float(tally.impostor.errors[k].sum()) / 2.0
        seen = total - wrong if mirrored else wrong
        if not 1.0 <= seen <= total / 2.0 + 1.0:
            continue
        design, products = without.at(k)
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.maximum(0.0, products.sharing + products.within) / design.comparisons**2
        left = left[taking_part]
        s, m = tally.impostor.errors[k].astype(np.float64), tally.impostor.comparisons.astype(np.float64)
        p = wrong / total
        r = float(((s - p * m) ** 2).sum())
        q = float(tally.impostor.sum_nn[k] - 2.0 * p * tally.impostor.sum_nm[k]) + p * p * float(tally.impostor.sum_mm)
        whole = max(4.0 * r - 2.0 * q, 2.0 * q) / (4.0 * total**2)
        if whole > 0.0 and np.all(np.isfinite(left)):
            known.append(seen)
            noise.append((size - 1.0) / size * float(((left - left.mean()) ** 2).sum()) / whole**2)
    if not known:
        return own
    order = np.argsort(known)
    jack = np.interp(np.log(own.errors), np.log(np.array(known)[order]), np.array(noise)[order])
    return OwnVariance(own.errors, own.relative, np.maximum(own.noise, jack), own.mirrored)


def _known(rate: FloatArray, total: float, variance: FloatArray, noise: FloatArray, mirrored: bool) -> OwnVariance:
    """What is known, by increasing numbers of errors, each once, at rates of at most one half."""
    count = np.rint((1.0 - rate if mirrored else rate) * total)
    count, first = np.unique(count, return_index=True)
    kept = (count >= 1.0) & (count <= total / 2.0 + 1.0) & (variance[first] > 0.0) & np.isfinite(noise[first])
    count, variance, noise = count[kept], variance[first][kept], noise[first][kept]
    return OwnVariance(count, variance / (count / total) ** 2, np.maximum(noise, 0.0), mirrored)
