"""Fit the latent model to tallies at several thresholds: moments of errors, correlations, the sample's own variance.

Two different comparisons are of the same identity pair ("within"), share one identity ("sharing"), or none
("disjoint"); genuine comparisons are of the same identity ("within") or of two ("disjoint"). With y = 1 for an error,
p the rate of errors and Σ over ordered pairs of comparisons, the sums of (y − p)(y' − p) of these kinds and of each
comparison with itself add up to zero. The mean product of disjoint comparisons, μ₂, is therefore below zero, and
subtracting it from the others removes most of the noise that they have in common.

Sums here run over comparisons: with D_ij = n_ij − p·m_ij, r_i = Σ_j D_ij, R = Σ r_i² and Q = Σ_{i≠j} D_ij², the sum
over pairs of the same identity pair (each comparison with itself included) is Q/2, over sharing ones R − Q.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import AllPairs, GenuineTally, ImpostorTally, Tally
from matchbound.errors import DataError
from matchbound.stats.dyadic import bias_factor, effective_number
from matchbound.stats.latent.model import (
    BLENDED,
    DEFAULT,
    Clusters,
    Correlations,
    Design,
    LatentModel,
    LatentSettings,
    Metric,
    OwnVariance,
)
from matchbound.stats.latent.probabilities import implied_correlation
from matchbound.stats.variance import UnitRate

N_RANKS = 60
FEWEST = 3


def rank_grid(comparisons: int, errors: int, metric: Metric = "far") -> IntArray:
    """Numbers of errors at whose thresholds correlations are estimated, increasing.

    About sixty in geometric steps from 3 errors to the end of the pool (half of the comparisons, 0.6 of them for FRR),
    and `errors` itself. When more than half of the comparisons err, the grid is counted from the other end.
    """
    beyond = errors > comparisons / 2.0
    seen = comparisons - errors if beyond else errors
    last = DEFAULT.pool(metric)[1] * comparisons
    ranks = np.rint(np.geomspace(FEWEST, last, N_RANKS)) if last >= FEWEST else np.empty(0)
    grid = np.unique(np.append(ranks, seen).astype(np.int64))
    grid = grid[(grid > 0) & (grid < comparisons)]
    return np.unique(comparisons - grid) if beyond else grid


def fit_far(
    tally: Tally, whole: Tally | None = None, *, mirrored: bool = False, settings: LatentSettings = DEFAULT
) -> LatentModel:
    """The latent model of FAR.

    Parameters
    ----------
    tally
        Impostor comparisons at the thresholds of `rank_grid`; it must know m_ij (``impostor.compared``, or
        ``impostor.sizes``) unless `whole` does.
    whole
        All the data, at any threshold, where `tally` is of a random subset of identities: what was compared and the
        sample's variance come from it, and only the correlations from the subset.
    mirrored
        Fit the rate of comparisons that did not err, for rates above ½.
    """
    every = tally if whole is None else whole
    design = impostor_design(every.impostor)
    if not design.comparisons > 0.0:
        raise DataError("far: there are no impostor comparisons")
    shown_by = _effective(tally)
    return LatentModel(
        "far",
        design,
        impostor_clusters(every.impostor),
        _effective(every),
        pooled(impostor_design(tally.impostor), impostor_products(tally.impostor), "far", shown_by, mirrored, settings),
        own_variance("far", every, mirrored),
        settings,
        shown_by,
        mirrored,
    )


def fit_frr(tally: Tally, *, mirrored: bool = False, settings: LatentSettings = DEFAULT) -> LatentModel:
    """The latent model of FRR, from genuine comparisons at the thresholds of ``rank_grid(…, "frr")``; see `fit_far`."""
    return fit_genuine(tally.genuine, mirrored=mirrored, settings=settings)


def fit_genuine(tally: GenuineTally, *, mirrored: bool = False, settings: LatentSettings = DEFAULT) -> LatentModel:
    """The latent model of a rate whose clusters are people, such as FRR, FPIR and FNIR."""
    design = genuine_design(tally)
    if not design.comparisons > 0.0:
        raise DataError("frr: there are no genuine comparisons")
    identities = effective_number(tally.comparisons)
    return LatentModel(
        "frr",
        design,
        genuine_clusters(tally),
        identities,
        pooled(design, genuine_products(tally), "frr", identities, mirrored, settings),
        genuine_variance(tally, mirrored),
        settings,
        identities,
        mirrored,
    )


def _effective(tally: Tally) -> float:
    """G_e of impostor comparisons: from instances, or where they are unknown from comparisons."""
    return effective_number(tally.weights("far"))


def with_own_variance(model: LatentModel, tally: Tally) -> LatentModel:
    """The model with the sample's variance known at the thresholds of a tally of the same comparisons as well."""
    own = model.own.joined(own_variance(model.metric, tally, model.mirrored))
    return replace(model, own=own, other=model.other and with_own_variance(model.other, tally))


def unit_design(rate: UnitRate) -> Design:
    """What units share: a unit is the mean of its comparisons, which are one cluster."""
    return Design(float(rate.units), (1.0 - rate.alone) * rate.units, rate.sharing, rate.alone)


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
    units = float(rate.units)
    known: dict[float, float] = {}
    for one in rates:
        seen = 1.0 - one.estimate if model.mirrored else one.estimate
        variance = one.without_bias(model.metric)
        if variance > 0.0 and seen * units >= 1.0:
            known[seen * units] = variance / seen**2
    errors = np.array(sorted(known))
    return replace(
        model,
        design=unit_design(rate),
        clusters=Clusters(np.ones(1), np.array([units])),
        effective_identities=float(max(rate.people, 1)),
        own=OwnVariance(errors, np.array([known[x] for x in errors.tolist()])),
        other=model.other and of_units(model.other, rates),
    )


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


def impostor_design(tally: ImpostorTally) -> Design:
    """The pairs of impostor comparisons by what they share."""
    m = tally.comparisons.astype(np.float64)
    ordered, squares = float(m.sum()), float(tally.sum_mm)
    return Design(ordered / 2.0, (squares - ordered) / 2.0, float(m @ m) - squares)


def genuine_design(tally: GenuineTally) -> Design:
    """The pairs of genuine comparisons by what they share."""
    g = tally.comparisons.astype(np.float64)
    return Design(float(g.sum()), float(g @ g) - float(g.sum()))


def impostor_products(tally: ImpostorTally) -> Products:
    """The moments of impostor errors at each threshold, shape (K,)."""
    m = tally.comparisons.astype(np.float64)
    s = tally.errors.astype(np.float64)
    p = s.sum(axis=1) / m.sum()
    r = ((s - p[:, None] * m) ** 2).sum(axis=1)
    q = tally.sum_nn - 2.0 * p * tally.sum_nm + p * p * float(tally.sum_mm)
    return Products(p, np.asarray(q / 2.0, dtype=np.float64), np.asarray(r - q, dtype=np.float64))


def genuine_products(tally: GenuineTally) -> Products:
    """The moments of genuine errors at each threshold, shape (K,)."""
    g = tally.comparisons.astype(np.float64)
    e = tally.errors.astype(np.float64)
    q = e.sum(axis=1) / g.sum()
    return Products(q, ((e - q[:, None] * g) ** 2).sum(axis=1), np.zeros_like(q))


def correlations_at(design: Design, products: Products) -> tuple[FloatArray, FloatArray]:
    """(ρ̂_s, ρ̂_w): the correlations of latent normals that reproduce the moments at each rate.

    With the excess moments C = (mean product) − μ₂, ρ_w solves Φ₂(z, z; ρ_w) = p² + C_w, and ρ_s solves
    Φ₂(z, z; ρ_s) = p²(1 + C_s/max(p² + μ₂, p²/4)): the mean of two disjoint errors is p² + μ₂, and not p², in a sample
    whose rate is estimated from itself. Rates must lie strictly between 0 and 1. Where no two comparisons share an
    identity, or none are of the same cluster, the correlation is 0.
    """
    from scipy.special import ndtri

    p = np.asarray(products.rate, dtype=np.float64)
    z, mean = ndtri(p), (-products.sharing - products.within) / design.disjoint if design.disjoint > 0.0 else 0.0 * p
    identity = pair = np.zeros_like(p)
    if design.sharing > 0.0:
        shared = products.sharing / design.sharing - mean
        identity = implied_correlation(z, p * p * shared / np.maximum(p * p + mean, p * p / 4.0))
    if design.within > 0.0:
        own = design.comparisons * p * (1.0 - p)
        pair = implied_correlation(z, (products.within - own) / design.within - mean)
    return identity, pair


def pooled(
    design: Design, products: Products, metric: Metric, identities: float, mirrored: bool, settings: LatentSettings
) -> Correlations:
    """Correlations averaged over the pool with equal weights in probits, and the assumed ones averaged in.

    identities
        G_e: f·G_e people's worth of data speak, f being the part of the pool, in probits, that thresholds span.
    """
    from scipy.special import ndtri

    first, last = settings.pool(metric)
    rate = 1.0 - products.rate if mirrored else products.rate
    count = np.rint(rate * design.comparisons)
    _, places = np.unique(count, return_index=True)
    kept = places[(count[places] >= 1.0) & (rate[places] <= last + 0.01) & (rate[places] < 1.0)]
    z = np.asarray(ndtri(rate[kept]), dtype=np.float64)
    identity, pair = correlations_at(design, Products(rate[kept], products.within[kept], products.sharing[kept]))
    pair = np.maximum(pair, 0.0)
    ends = float(ndtri(first)), float(ndtri(last))
    within = np.clip(z, *ends)
    people = identities * (float(within[-1] - within[0]) / (ends[1] - ends[0]) if z.size else 0.0)
    steps = np.gradient(z) if z.size > 1 else np.ones(z.size)
    inside = (z >= ends[0] - 1e-9) & (z <= ends[1] + 1e-9)
    steps = np.where(inside, steps, 0.0) if np.any(inside) else steps

    def averaged(values: FloatArray, assumed: float, pairs: float) -> float:
        if not pairs > 0.0:
            return 0.0
        if not values.size:
            return assumed
        seen = max(float(steps @ values) / float(steps.sum()), 0.0)
        return (people * seen + settings.assumed_people * assumed) / (people + settings.assumed_people)

    rho_identity = averaged(identity, settings.assumed_identity, design.sharing)
    return Correlations(z, identity, pair, rho_identity, averaged(pair, settings.assumed_pair, design.within), people)


def impostor_clusters(tally: ImpostorTally) -> Clusters:
    """The identity pairs that were compared, by m_ij; the tally must have kept m_ij, or how many have each."""
    if tally.sizes is not None:
        return grouped(tally.sizes.sizes.astype(np.float64), tally.sizes.pairs.astype(np.float64))
    compared = tally.compared
    assert compared is not None
    if isinstance(compared, AllPairs):
        sizes, members = np.unique(compared.instances[compared.instances > 0], return_counts=True)
        products = np.multiply.outer(sizes, sizes).astype(np.float64)
        pairs = np.multiply.outer(members, members).astype(np.float64)
        pairs[np.diag_indices(sizes.size)] -= members
        return grouped(products.reshape(-1), pairs.reshape(-1) / 2.0)
    return grouped(compared.count.astype(np.float64), np.ones(compared.count.size))


def genuine_clusters(tally: GenuineTally) -> Clusters:
    """The identities with genuine comparisons, by g_i."""
    sizes: IntArray = tally.comparisons[tally.comparisons > 0]
    return grouped(sizes.astype(np.float64), np.ones(sizes.size))


def grouped(size: FloatArray, count: FloatArray, most: int = 32) -> Clusters:
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


def all_pairs(
    metric: Metric,
    instances: Clusters,
    correlations: tuple[float, float],
    settings: LatentSettings = DEFAULT,
    shown_by: float = 0.0,
) -> LatentModel:
    """The latent model of all pairs of instances, without data.

    instances
        Numbers of instances, and how many identities have each.
    """
    size, people = instances.size, instances.count
    total, squares = float(people @ size), float(people @ size**2)
    if metric == "far":
        ordered, of_pairs = total**2 - squares, squares**2 - float(people @ size**4)
        of_people = float(people @ (size * (total - size)) ** 2)
        design = Design(ordered / 2.0, (of_pairs - ordered) / 2.0, of_people - of_pairs)
        pairs = np.outer(people, people) - np.diag(people)
        clusters = grouped(np.outer(size, size).reshape(-1), pairs.reshape(-1) / 2.0)
        identities = total**2 / squares
    else:
        own = size * (size - 1.0) / 2.0
        design = Design(float(people @ own), float(people @ own**2) - float(people @ own))
        clusters = grouped(own[own > 0.0], people[own > 0.0])
        identities = design.comparisons**2 / float(people @ own**2)
    nothing = np.empty(0)
    rho_identity = correlations[0] if design.sharing > 0.0 else 0.0
    rho_pair = correlations[1] if design.within > 0.0 else 0.0
    seen = Correlations(nothing, nothing, nothing, rho_identity, rho_pair, identities)
    return LatentModel(metric, design, clusters, identities, seen, settings=settings, shown_by=shown_by)


def own_variance(metric: Metric, tally: Tally, mirrored: bool) -> OwnVariance:
    """v̂ at each threshold, by increasing numbers of errors, each once, up to where the other side takes over.

    FAR: max(f_b(4R − 2Q), 2Q)/(2Np)² with f_b = G_e(G_e−1)/((G_e−2)(G_e−3)), 1 where G_e ≤ 3. FRR:
    see `genuine_variance`.
    """
    if metric == "frr":
        return genuine_variance(tally.genuine, mirrored)
    part, factor = impostor_products(tally.impostor), bias_factor("far", _effective(tally), 1.0)
    q = 2.0 * np.maximum(part.within, 0.0)
    variance = np.maximum(factor * (4.0 * part.sharing + 2.0 * q), 2.0 * q) / 4.0
    return _relative(part.rate, variance, float(tally.impostor.comparisons.sum()) / 2.0, mirrored)


def genuine_variance(tally: GenuineTally, mirrored: bool) -> OwnVariance:
    """v̂ of a rate whose clusters are people: G_e/(G_e−1)·Σ(e_i − q·g_i)²/(Tq)²; none where G_e is 1."""
    part, factor = genuine_products(tally), bias_factor("frr", effective_number(tally.comparisons), 0.0)
    return _relative(part.rate, factor * part.within, float(tally.comparisons.sum()), mirrored)


def _relative(rate: FloatArray, variance: FloatArray, total: float, mirrored: bool) -> OwnVariance:
    """Variances of numbers of errors at several rates, over the squared numbers."""
    count, first = np.unique(np.rint((1.0 - rate if mirrored else rate) * total), return_index=True)
    relative = variance[first] / np.maximum(count, 1.0) ** 2
    kept = (count >= 1.0) & (count <= BLENDED[1] * total + 1.0) & (relative > 1e-12)
    return OwnVariance(count[kept], relative[kept])
