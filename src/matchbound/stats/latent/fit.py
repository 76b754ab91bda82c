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
from matchbound.counts.tally import AllPairs, GenuineTally, ImpostorTally, Part, Tally
from matchbound.errors import DataError
from matchbound.stats.dyadic import bias_factor, effective_number
from matchbound.stats.intervals import ndtri
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
# A rank of this many errors has full weight in a curve; smaller ranks weigh in proportion.
TRUSTED = 30.0


def rank_grid(comparisons: int, errors: int, metric: Metric = "far") -> IntArray:
    """Numbers of errors at whose thresholds correlations are estimated, increasing.

    About sixty in geometric steps from 3 errors to the end of the pool (half of the comparisons, 0.6 of them for FRR),
    and `errors` itself. When more than half of the comparisons err, the grid is counted from the other end.
    """
    beyond = errors > comparisons / 2.0
    ranks = geometric_ranks(DEFAULT.pool(metric)[1] * comparisons, N_RANKS)
    grid = np.unique(np.append(ranks, comparisons - errors if beyond else errors).astype(np.int64))
    grid = grid[(grid > 0) & (grid < comparisons)]
    return np.unique(comparisons - grid) if beyond else grid


def geometric_ranks(last: float, count: int) -> IntArray:
    """About `count` whole numbers in geometric steps from 3 to `last`; none where that is less."""
    ranks = np.rint(np.geomspace(FEWEST, last, count)) if last >= FEWEST else np.empty(0)
    return np.unique(ranks.astype(np.int64))


def fit_far(
    tally: Tally, whole: Tally | None = None, *, mirrored: bool = False, settings: LatentSettings = DEFAULT
) -> LatentModel:
    """The latent model of FAR.

    - tally: impostor comparisons at the thresholds of `rank_grid`; it must know m_ij (``impostor.compared``, or
      ``impostor.sizes``) unless `whole` does.
    - whole: all the data, at any threshold, where `tally` is of a random subset of identities: what was compared and
      the sample's variance come from it, and only the correlations from the subset.
    - mirrored: fit the rate of comparisons that did not err, for rates above ½.
    """
    every = tally if whole is None else whole
    shown_by, people = (effective_number(part.weights("far")) for part in (tally, every))
    return _fit("far", tally.impostor, shown_by, every.impostor, people, mirrored, settings)


def fit_genuine(part: GenuineTally, *, mirrored: bool = False, settings: LatentSettings = DEFAULT) -> LatentModel:
    """The latent model of a rate whose clusters are people, such as FRR, FPIR and FNIR; see `fit_far`.

    FRR's is fitted to genuine comparisons at the thresholds of ``rank_grid(…, "frr")``.
    """
    people = effective_number(part.comparisons)
    return _fit("frr", part, people, part, people, mirrored, settings)


def _fit(
    metric: Metric, part: Part, shown_by: float, every: Part, people: float, mirrored: bool, settings: LatentSettings
) -> LatentModel:
    """Correlations from `part`; what was compared and the sample's own variance from `every`."""
    design = design_of(every)
    if not design.comparisons > 0.0:
        raise DataError(f"{metric}: there are no {'impostor' if metric == 'far' else 'genuine'} comparisons")
    correlations = pooled(design_of(part), products_of(part), metric, shown_by, mirrored, settings)
    own = own_variance(metric, every, people, mirrored)
    return LatentModel(metric, design, clusters_of(every), people, correlations, own, settings, shown_by, mirrored)


def with_own_variance(model: LatentModel, part: Part) -> LatentModel:
    """The model with the sample's variance known at the thresholds of the same comparisons, counted again, as well."""
    own = own_variance(model.metric, part, model.effective_identities, model.mirrored)
    return replace(model, own=model.own.joined(own), other=model.other and with_own_variance(model.other, part))


def unit_design(rate: UnitRate) -> Design:
    """What units share: a unit is the mean of its comparisons, which are one cluster."""
    return Design(float(rate.units), (1.0 - rate.alone) * rate.units, rate.sharing, rate.alone)


def of_units(model: LatentModel, rates: Sequence[UnitRate]) -> LatentModel:
    """The model of a rate whose units are identity pairs or identities, with the correlations of a pooled rate.

    The variance of a unit that is the mean of m comparisons is p(1−p)/m + (1 − 1/m)·C_w; units never come in clumps.

    `rates` are those of units at the thresholds where the sample's own variance is known; `model` is of the pooled one.
    """
    rate = rates[0]
    units = float(rate.units)
    seen = np.array([1.0 - one.estimate if model.mirrored else one.estimate for one in rates])
    variance = np.array([one.without_bias() for one in rates])
    kept = (variance > 0.0) & (seen * units >= 1.0)
    return replace(
        model,
        design=unit_design(rate),
        clusters=Clusters(np.ones(1), np.array([units])),
        effective_identities=max(rate.identities, 1.0),
        own=OwnVariance.of(seen[kept] * units, variance[kept] / seen[kept] ** 2),
        other=model.other and of_units(model.other, rates),
    )


@dataclass(frozen=True, eq=False)
class Products:
    """Errors, and sums of (y − p)(y' − p) over pairs of comparisons; arrays of one shape.

    - within: over comparisons of one cluster, each with itself included: Q/2 for FAR, Σ(e_i − q·g_i)² for FRR.
    - sharing: over comparisons that share one identity: R − Q for FAR, 0 for FRR.
    """

    rate: FloatArray
    within: FloatArray
    sharing: FloatArray

    def at(self, places: IntArray, rate: FloatArray) -> Products:
        """The sums at some thresholds, taken to be at other rates."""
        return Products(rate, self.within[places], self.sharing[places])


def design_of(part: Part) -> Design:
    """The pairs of comparisons by what they share."""
    m = part.comparisons.astype(np.float64)
    total, squares = float(m.sum()), float(m @ m)
    if not isinstance(part, ImpostorTally):
        return Design(total, squares - total)
    of_pairs = float(part.sum_mm)
    return Design(total / 2.0, (of_pairs - total) / 2.0, squares - of_pairs)


def products_of(part: Part, other: Part | None = None, cross: FloatArray | IntArray | None = None) -> Products:
    """The moments of errors at each threshold, shape (K,); or with the errors of another system (y' is its).

    `cross` is Σ_{i≠j} n_ij·n'_ij, for impostor comparisons of two systems. The rate is that of the first.
    """
    two = part if other is None else other
    m = part.comparisons.astype(np.float64)
    s, w = part.errors.astype(np.float64), two.errors.astype(np.float64)
    p, q = s.sum(axis=1) / m.sum(), w.sum(axis=1) / m.sum()
    r = ((s - p[:, None] * m) * (w - q[:, None] * m)).sum(axis=1)
    if not (isinstance(part, ImpostorTally) and isinstance(two, ImpostorTally)):
        return Products(p, r, np.zeros_like(p))
    both = part.sum_nn if cross is None else cross
    pairs = both - p * two.sum_nm - q * part.sum_nm + p * q * float(part.sum_mm)
    return Products(p, np.asarray(pairs / 2.0, dtype=np.float64), np.asarray(r - pairs, dtype=np.float64))


def correlations_at(
    design: Design, products: Products, selves: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """(ρ̂_s, ρ̂_w): the correlations of latent normals that reproduce the moments at each rate.

    With the excess moments C = (mean product) − μ₂, ρ_w solves Φ₂(z, z; ρ_w) = p² + C_w, and ρ_s solves
    Φ₂(z, z; ρ_s) = p²(1 + C_s/max(p² + μ₂, p²/4)): the mean of two disjoint errors is p² + μ₂, and not p², in a sample
    whose rate is estimated from itself. Rates must lie strictly between 0 and 1. Where no two comparisons share an
    identity, or none are of the same cluster, the correlation is 0. `selves` are the products of comparisons with
    themselves, Np(1 − p) unless given.
    """
    p = np.asarray(products.rate, dtype=np.float64)
    z, mean = ndtri(p), (-products.sharing - products.within) / design.disjoint if design.disjoint > 0.0 else 0.0 * p
    identity = pair = np.zeros_like(p)
    if design.sharing > 0.0:
        shared = products.sharing / design.sharing - mean
        identity = implied_correlation(z, p * p * shared / np.maximum(p * p + mean, p * p / 4.0))
    if design.within > 0.0:
        own = design.comparisons * p * (1.0 - p) if selves is None else selves
        pair = implied_correlation(z, (products.within - own) / design.within - mean)
    return identity, pair


def pooled(
    design: Design, products: Products, metric: Metric, identities: float, mirrored: bool, settings: LatentSettings
) -> Correlations:
    """Correlations averaged over the pool with equal weights in probits, and the assumed ones averaged in.

    - identities: G_e: f·G_e people's worth of data speak, f the part of the pool that thresholds span, in probits.
    """
    first, last = settings.pool(metric)
    rate = 1.0 - products.rate if mirrored else products.rate
    count = np.rint(rate * design.comparisons)
    _, places = np.unique(count, return_index=True)
    kept = places[(count[places] >= 1.0) & (rate[places] <= last + 0.01) & (rate[places] < 1.0)]
    z = ndtri(rate[kept])
    identity, pair = correlations_at(design, products.at(kept, rate[kept]))
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
    return Correlations(rho_identity, averaged(pair, settings.assumed_pair, design.within), people)


def clusters_of(part: Part) -> Clusters:
    """What was compared, by size: identities by g_i; identity pairs by m_ij, where m_ij or their sizes were kept."""
    if not isinstance(part, ImpostorTally):
        sizes = part.comparisons[part.comparisons > 0].astype(np.float64)
        return grouped(sizes, np.ones(sizes.size))
    if part.sizes is not None:
        return grouped(*part.sizes.astype(np.float64))
    compared = part.compared
    assert compared is not None
    if isinstance(compared, AllPairs):
        instances = compared.instances[compared.instances > 0]
        return _all_pairs_of(*(n.astype(np.float64) for n in np.unique(instances, return_counts=True)))
    return grouped(compared.count.astype(np.float64), np.ones(compared.count.size))


def _all_pairs_of(size: FloatArray, people: FloatArray) -> Clusters:
    """Identity pairs by M_i·M_j, from numbers of instances and how many identities have each."""
    pairs = np.outer(people, people) - np.diag(people)
    return grouped(np.outer(size, size).reshape(-1), pairs.reshape(-1) / 2.0)


def grouped(size: FloatArray, count: FloatArray, most: int = 32) -> Clusters:
    """Clusters by distinct size; many sizes are spread over a geometric grid that keeps Σ count and Σ count·size."""
    distinct, inverse = np.unique(size, return_inverse=True)
    total = np.bincount(inverse.reshape(-1), weights=count, minlength=distinct.size).astype(np.float64)
    distinct, total = distinct[total > 0.0], total[total > 0.0]
    if distinct.size <= most:
        return Clusters(distinct, total)
    grid = np.geomspace(distinct[0], distinct[-1], most)
    grid[0], grid[-1] = distinct[0], distinct[-1]
    at = np.clip(np.searchsorted(grid, distinct, side="right") - 1, 0, most - 2)
    share = (distinct - grid[at]) / (grid[at + 1] - grid[at])
    spread = np.zeros(most)
    spread += np.bincount(at, total * (1.0 - share), most) + np.bincount(at + 1, total * share, most)
    return Clusters(grid[spread > 0.0], spread[spread > 0.0])


def all_pairs(
    metric: Metric,
    instances: Clusters,
    correlations: tuple[float, float],
    settings: LatentSettings = DEFAULT,
    shown_by: float = 0.0,
) -> LatentModel:
    """The latent model of all pairs, without data: numbers of instances, and how many identities have each."""
    size, people = instances.size, instances.count
    total, squares = float(people @ size), float(people @ size**2)
    if metric == "far":
        ordered, of_pairs = total**2 - squares, squares**2 - float(people @ size**4)
        of_people = float(people @ (size * (total - size)) ** 2)
        design = Design(ordered / 2.0, (of_pairs - ordered) / 2.0, of_people - of_pairs)
        clusters = _all_pairs_of(size, people)
        identities = total**2 / squares
    else:
        own = size * (size - 1.0) / 2.0
        design = Design(float(people @ own), float(people @ own**2) - float(people @ own))
        clusters = grouped(own[own > 0.0], people[own > 0.0])
        identities = design.comparisons**2 / float(people @ own**2)
    rho_identity = correlations[0] if design.sharing > 0.0 else 0.0
    rho_pair = correlations[1] if design.within > 0.0 else 0.0
    seen = Correlations(rho_identity, rho_pair, identities)
    return LatentModel(metric, design, clusters, identities, seen, settings=settings, shown_by=shown_by)


def own_variance(metric: Metric, part: Part, people: float, mirrored: bool) -> OwnVariance:
    """v̂ at each threshold, by increasing numbers of errors, each once, up to where the other side takes over.

    FAR: max(f_b(4R − 2Q), 2Q)/(2Np)² with f_b = G_e(G_e−1)/((G_e−2)(G_e−3)), 1 where G_e ≤ 3. FRR:
    G_e/(G_e−1)·Σ(e_i − q·g_i)²/(Tq)²; none where G_e is 1.
    """
    sums, far, total = products_of(part), metric == "far", float(part.comparisons.sum()) / part.ends
    within, factor = np.maximum(sums.within, 0.0), bias_factor(metric, people, 1.0 if far else 0.0)
    variance = np.maximum(factor * (sums.sharing + within), within if far else 0.0)
    count, first = np.unique(np.rint((1.0 - sums.rate if mirrored else sums.rate) * total), return_index=True)
    relative = variance[first] / np.maximum(count, 1.0) ** 2
    kept = (count >= 1.0) & (count <= BLENDED[1] * total + 1.0) & (relative > 1e-12)
    return OwnVariance(count[kept], relative[kept])


@dataclass(frozen=True, eq=False)
class Curve:
    """A latent correlation as a function of the probit rate z: the larger of a pooled value and a local average.

    - z, value, weight, shape (K,): increasing probit rates, the correlation at each, its weight Δz·min(k/30, 1).
    - pooled: the weighted average over the middle rates; the curve is nowhere below it, nor below 0.
    """

    z: FloatArray
    value: FloatArray
    weight: FloatArray
    pooled: float

    def __call__(self, z: FloatArray) -> FloatArray:
        """The correlation at probit rates z, the shape of z: averaged with a Gaussian kernel of one probit."""
        if not self.z.size:
            return np.full(np.shape(z), self.pooled)
        log_kernel = -0.5 * (np.asarray(z)[..., None] - self.z) ** 2
        kernel = self.weight * np.exp(log_kernel - log_kernel.max(axis=-1, keepdims=True))
        total = kernel.sum(axis=-1)
        local = np.divide(kernel @ self.value, total, out=np.full(total.shape, self.pooled), where=total > 0.0)
        return np.asarray(np.maximum(np.maximum(local, self.pooled), 0.0))


def smooth(z: FloatArray, value: FloatArray, errors: FloatArray, pool: tuple[float, float], fallback: float) -> Curve:
    """A curve through correlations estimated at several rates.

    - z, value, errors, shape (K,): probit rates in increasing order, correlations and numbers of errors.
    - pool: the rates over which the pooled value averages; it is `fallback` where no rate lies there.
    """
    spacing = np.gradient(z) if z.size > 1 else np.ones(z.size)
    weight = spacing * np.minimum(errors / TRUSTED, 1.0)
    inside = (z >= ndtri(pool[0]) - 1e-9) & (z <= ndtri(pool[1]) + 1e-9)
    if not np.any(weight[inside] > 0.0):
        inside = np.ones(z.size, dtype=bool)
    total = float(weight[inside].sum())
    average = float(weight[inside] @ value[inside]) / total if total > 0.0 else fallback
    return Curve(z, value, weight, average)
