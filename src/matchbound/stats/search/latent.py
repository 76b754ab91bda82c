"""The latent-correlation interval for rates of searches, with a gallery that is a sample too.

Errors are latent normals that cross a threshold, as for FRR (docs/explanation/latent.md): the clusters are the people
searched for, and ρ_w is the correlation of two searches of one person. A random gallery adds a relative variance

    V_gal(p) = N·(Φ₂(z, z; ρ_G) − f₁²)/p²,   f₁ = s₁(p)/N,  z = Φ⁻¹(f₁),

with s₁(p) the share of searches with exactly one hit and ρ_G the latent correlation of single hits on one enrolled
person (docs/explanation/identification.md derives it).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.stats.latent.curves import FRR_POOL, NO_PAIR_DATA, Curve, smooth
from matchbound.stats.latent.fit import FEWEST, N_RANKS, Products, correlations_at, grouped
from matchbound.stats.latent.model import Clusters, Design
from matchbound.stats.latent.probabilities import count_tail, excess, implied_correlation, solve_decreasing
from matchbound.stats.search.nonmated import HitCurve, HitMoments

GALLERY_GUARD = 0.6
"""γ: upper limits raise ρ_G by γ·ρ_w for each probit that the rate lies below GUARD_RATE."""
GUARD_RATE = 0.05
LOWEST, TOP = -9.0, 6.5
MOST = 0.99
FEW = 10.0
HUBS = 0.25
"""Above this pooled ρ_G the gallery, and not the searches, limits what can be said."""
FEWEST_RANKS = 8
"""With fewer usable thresholds than this, correlations cannot be seen, and there is no model."""


@dataclass(frozen=True, eq=False)
class GalleryPart:
    """What a random gallery adds.

    size
        N.
    rho : Curve
        ρ_G as a function of the probit rate of searches with a hit.
    z, single : float64 arrays, shape (K,)
        Probit rates in increasing order, and the share of hits that are single.
    """

    size: int
    rho: Curve
    z: FloatArray = field(repr=False)
    single: FloatArray = field(repr=False)

    def variance(self, z: FloatArray, raised: FloatArray) -> FloatArray:
        """N·(Φ₂ − f₁²) at probit rates z, with ρ_G raised by `raised`; an absolute variance."""
        from scipy.special import ndtr, ndtri

        share = np.interp(z, self.z, self.single) if self.z.size else np.ones(z.shape)
        one = np.clip(ndtr(z) * share / self.size, 1e-300, 0.5)
        rho = np.minimum(np.maximum(self.rho(z), 0.0) + raised, MOST)
        result: FloatArray = self.size * excess(ndtri(one), rho)
        return result


@dataclass(frozen=True, eq=False)
class SearchModel:
    """Correlations of errors of searches as functions of the rate; any number of limits follow.

    design, clusters
        Pairs of searches by whether they are of one person; people by how many searches they have.
    effective_people
        J_e = n²/Σn_j².
    pair : Curve
        ρ_w as a function of the probit rate.
    gallery
        What a random gallery adds; None where it is fixed.
    extra
        A further absolute variance of the rate (for FNIR and CMC: of those who take others' ranks).
    mirrored
        Whether the curves are functions of the rate of searches that did not err (rates above ½).
    """

    design: Design
    clusters: Clusters
    effective_people: float
    pair: Curve
    gallery: GalleryPart | None = None
    extra: float = 0.0
    mirrored: bool = False

    @property
    def searches(self) -> float:
        """n."""
        return float(self.design.comparisons)

    def deviate(self, tail: float) -> float:
        """The t quantile with J_e − 1 degrees of freedom and an upper tail of `tail`."""
        return t_deviate(self.effective_people, tail)

    def limits(self, errors: float, tail: float) -> tuple[float, float]:
        """Both limits for a rate of which `errors` errors were seen, each with the given tail."""
        deviate = self.deviate(tail)
        low, high = self.limit([errors, errors], deviate, [False, True])
        return float(low), float(high)

    def limit(self, errors: ArrayLike, deviate: ArrayLike, upper: ArrayLike) -> FloatArray:
        """Limits for many counts at once, each with its own tail Φ(−deviate); the arguments broadcast to shape (J,)."""
        x, d, up = np.broadcast_arrays(
            np.asarray(errors, dtype=np.float64), np.asarray(deviate, dtype=np.float64), np.asarray(upper, dtype=bool)
        )
        x, d, up = np.atleast_1d(x), np.atleast_1d(d), np.atleast_1d(up)
        result = np.empty(x.shape)
        flips = (x > self.searches / 2.0) != self.mirrored
        for chosen, model in ((~flips, self), (flips, self._flip())):
            if np.any(chosen):
                result[chosen] = model._solve(x[chosen], d[chosen], up[chosen])
        return result

    def erring(self, errors: float) -> float:
        """λ: how many people are expected to hold the errors."""
        x = self.searches - errors if self.mirrored else errors
        z = _probit(np.array([np.clip(max(x, 0.5) / self.searches, 0.0, 1.0 - 1e-12)]))
        return float(self.clusters.erring(z, min(float(self.pair(z)[0]), MOST))[0])

    def _flip(self) -> SearchModel:
        return replace(self, pair=self.pair.mirrored(), mirrored=not self.mirrored)

    def _solve(self, errors: FloatArray, deviate: FloatArray, upper: BoolArray) -> FloatArray:
        """Limits of the rate in which the curves are functions of z (of non-errors where mirrored), shape (J,)."""
        from scipy.special import ndtr, ndtri

        x = self.searches - errors if self.mirrored else errors
        up = ~upper if self.mirrored else upper
        z_hat = _probit(np.maximum(x, 0.5) / self.searches)

        def gap(z: FloatArray, entries: IntArray) -> FloatArray:
            tail = np.clip(self._tail(x[entries], z, up[entries]), 1e-300, 1.0 - 1e-16)
            signed: FloatArray = ndtri(tail) + deviate[entries]
            return np.where(up[entries], signed, -signed)

        near = np.where(up, z_hat - 0.1, z_hat + 0.1)
        guess = np.clip(near + np.where(up, 1.0, -1.0) * (0.2 + 0.2 * np.abs(deviate)), LOWEST, TOP)
        z = solve_decreasing(gap, near, guess, (LOWEST, TOP))
        rate = np.where(z >= TOP, 1.0, np.where(z <= LOWEST, 0.0, ndtr(z)))
        rate = np.where(~up & (x <= 0.0), 0.0, rate)
        return 1.0 - rate if self.mirrored else rate

    def _tail(self, errors: FloatArray, z: FloatArray, upper: BoolArray) -> FloatArray:
        """P(X ≤ errors) (for upper limits) or P(X ≥ errors), mid-P, at the probit rates z; shape (J,)."""
        from scipy.special import ndtr

        p, rest, n = ndtr(z), ndtr(-z), self.searches
        rho = np.minimum(self.pair(z), MOST)
        mates = float(self.design.within) / n
        effect = np.maximum(1.0 + mates * excess(z, rho) / (p * rest), 1.0)
        clump = effect
        spread = (effect - clump) * rest / (n * p) + self._beyond(z, rho, upper) / p**2
        return count_tail(errors / clump, n / clump, p, spread, upper)

    def _beyond(self, z: FloatArray, rho: FloatArray, upper: BoolArray) -> FloatArray:
        """The absolute variance that comes from the gallery, shape (J,)."""
        added = np.full(z.shape, self.extra)
        if self.gallery is None:
            return added
        rate = -z if self.mirrored else z
        depth = np.maximum(_probit(np.array(GUARD_RATE)) - rate, 0.0)
        raised = np.where(upper != self.mirrored, GALLERY_GUARD * rho * depth, 0.0)
        return added + self.gallery.variance(rate, raised)


def t_deviate(effective_people: float, tail: float) -> float:
    """The t quantile with J_e − 1 degrees of freedom (at least 1) and an upper tail of `tail`."""
    from scipy.special import stdtrit

    return -float(stdtrit(max(effective_people - 1.0, 1.0), tail))


def effective_people(searches_of: IntArray) -> float:
    """J_e = n²/Σn_j²: how many people with equally many searches would weigh as much."""
    squares = float(np.dot(searches_of, searches_of))
    return float(searches_of.sum()) ** 2 / squares if squares > 0.0 else 0.0


def rank_grid(searches: int, errors: int) -> IntArray:
    """Numbers of errors at whose thresholds correlations are estimated: sixty geometric steps, and `errors` itself.

    From 3 errors to 0.6 of the searches; from the other end where more than half of them err.
    """
    beyond = errors > searches / 2.0
    seen = searches - errors if beyond else errors
    last = FRR_POOL[1] * searches
    ranks = np.rint(np.geomspace(FEWEST, last, N_RANKS)) if last >= FEWEST else np.empty(0)
    grid = np.unique(np.append(ranks, seen).astype(np.int64))
    grid = grid[(grid > 0) & (grid < searches)]
    return np.unique(searches - grid) if beyond else grid


def fit_hits(curve: HitCurve, errors: int, size: int, *, random: bool) -> SearchModel | None:
    """The model of FPIR around a threshold at which `errors` searches had a hit; None where data show too little.

    size
        N, the enrolled people.
    random
        Whether the gallery is a sample.
    """
    n = curve.searches
    grid = rank_grid(n, errors)
    thresholds = curve.best[grid - 1]
    moments = curve.at(thresholds[np.isfinite(thresholds)])
    _, first = np.unique(moments.hits, return_index=True)
    moments = HitMoments(*(getattr(moments, name)[first] for name in HitMoments.__dataclass_fields__))
    p = moments.hits / float(n)
    squares = float(np.dot(curve.searches_of, curve.searches_of))
    within = moments.y_squares - 2.0 * p * moments.y_searches + p * p * squares
    mirrored = errors > n / 2.0
    model = _fit(curve.searches_of, moments.hits, within, mirrored)
    if model is None or not random:
        return model
    return replace(model, gallery=_gallery_part(curve, moments, size))


def fit_misses(person: IntArray, score: FloatArray, searches_of: IntArray, errors: int) -> SearchModel | None:
    """The model of a miss rate: a search errs where its score is below the threshold; None where data show too little.

    Parameters
    ----------
    person, score : arrays, shape (T,)
        Who was searched for, and the score that decides: the mate's score where the rank is met, else −∞ (FNIR); or
        the margin to the R-th best non-mate (CMC).
    searches_of : int64 array, shape (N,)
        m_i.
    """
    total = person.size
    order = np.argsort(score, kind="stable")
    ranked = score[order]
    grid = rank_grid(total, errors)
    # the count of errors at the threshold just above the grid's rank: every tied score errs with it
    counts = np.unique(np.searchsorted(ranked, ranked[grid - 1], side="right"))
    counts = counts[(counts > 0) & (counts < total)]
    running = _running_count(person[order])
    of_person = searches_of[person[order]]
    e_squares = np.concatenate([[0], np.cumsum(2 * running + 1)])[counts]
    e_searches = np.concatenate([[0], np.cumsum(of_person)])[counts]
    q = counts / float(total)
    squares = float(np.dot(searches_of, searches_of))
    within = e_squares - 2.0 * q * e_searches + q * q * squares
    return _fit(searches_of, counts, within, errors > total / 2.0)


def _running_count(key: IntArray) -> IntArray:
    """For each entry, how many earlier entries have the same key."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if key.size else np.empty(0, np.int64)
    lengths = np.diff(np.append(begins, key.size))
    out = np.empty(key.size, dtype=np.int64)
    out[order] = np.arange(key.size) - np.repeat(begins, lengths)
    return out


def _fit(searches_of: IntArray, counts: IntArray, within: FloatArray, mirrored: bool) -> SearchModel | None:
    """The model from Σ(e_i − q·m_i)² at several numbers of errors."""
    from scipy.special import ndtri

    total = float(searches_of.sum())
    squares = float(np.dot(searches_of, searches_of))
    pairs = squares - total
    design = Design(total, pairs)
    rate = counts / total
    seen = 1.0 - rate if mirrored else rate
    number = total - counts if mirrored else counts
    order = np.argsort(seen)
    kept = order[(number[order] >= 1) & (seen[order] <= FRR_POOL[1] + 0.01)]
    if kept.size < FEWEST_RANKS:
        return None
    chosen = Products(seen[kept], within[kept].astype(np.float64), np.zeros(kept.size))
    found = np.maximum(correlations_at(design, chosen)[1], 0.0)
    pair = smooth(ndtri(seen[kept]), found, number[kept].astype(np.float64), FRR_POOL, 1.0, NO_PAIR_DATA)
    sizes, count = np.unique(searches_of[searches_of > 0], return_counts=True)
    clusters = grouped(sizes.astype(np.float64), count.astype(np.float64))
    return SearchModel(design, clusters, effective_people(searches_of), pair, mirrored=mirrored)


def _gallery_part(curve: HitCurve, moments: HitMoments, size: int) -> GalleryPart:
    """ρ_G at each threshold, smoothed as ρ_w is.

    With B = n² − Σn_j² ordered pairs of searches of different people: c = (Σu² − Σd_jg²)/(N·B) is the mean product of
    single hits on one enrolled person, μ = ((Σu)² − Σu² − Σd_j² + Σd_jg²)/(N(N−1)·B) on two different ones, and
    Φ₂(z, z; ρ_G) = f₁²·c/max(μ, f₁²/4) with f₁ = Σu/(n·N).
    """
    from scipy.special import ndtri

    n = float(curve.searches)
    pairs = n * n - float(np.dot(curve.searches_of, curve.searches_of))
    u = moments.single.astype(np.float64)
    kept = (u >= 1.0) & (moments.hits < n)
    if size < 2 or not pairs > 0.0 or not np.any(kept):
        empty = np.empty(0)
        return GalleryPart(size, Curve(empty, empty, empty, 0.0), empty, empty)
    u, p = u[kept], moments.hits[kept] / n
    uu, dd, jj = (v[kept].astype(np.float64) for v in (moments.u_squares, moments.d_squares, moments.person_squares))
    one = u / (n * size)
    same = (uu - dd) / (size * pairs)
    different = (u * u - uu - jj + dd) / (size * (size - 1.0) * pairs)
    target = one * one * same / np.maximum(different, one * one / 4.0) - one * one
    rho = implied_correlation(ndtri(one), target)
    z = ndtri(p)
    return GalleryPart(size, smooth(z, rho, u, FRR_POOL, 1.0, 0.0), z, u / (p * n))


def _probit(rate: FloatArray) -> FloatArray:
    from scipy.special import ndtri

    result: FloatArray = ndtri(rate)
    return result
