"""The latent model of rates of searches: that of FRR, with the gallery as a further source of variance.

The clusters are the people searched for (docs/explanation/latent.md). Where the enrolled people are a sample too, FPIR
has a further variance

    V_gal(p) = N·(Φ₂(z, z; ρ_G) − f₁²),   f₁ = s₁(p)/N,  z = Φ⁻¹(f₁),

with s₁(p) the share of searches with exactly one hit and ρ_G the latent correlation of single hits on one enrolled
person (docs/explanation/identification.md derives it); FNIR and CMC have that of misses which one person causes.
FNIR at an FPIR depends on two rates, which share one budget of error as FRR at a FAR does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.counts.tally import GenuineTally
from matchbound.stats.budget import ANGLES
from matchbound.stats.latent import LatentModel, fit_genuine, genuine_variance, rank_grid
from matchbound.stats.latent.curves import Curve, smooth
from matchbound.stats.latent.probabilities import excess, implied_correlation

GALLERY_TAIL = 0.6
"""γ: upper limits raise ρ_G by γ·ρ_w for each probit that the rate lies below TAIL_RATE."""
TAIL_RATE = 0.05
POOL = (0.02, 0.6)
"""FPIRs over which ρ_G is averaged; it is nowhere below that average."""
HUBS = 0.25
"""Above this ρ_G the gallery, and not the searches, limits what can be said."""
MOST = 0.99
LEAST_RANK = 3


def fit_searches(person: IntArray, people: int, key: FloatArray, errors: int) -> LatentModel:
    """The model of a rate of searches, of which those with the smallest keys err first; both sides of the scale.

    Parameters
    ----------
    person, key : arrays, shape (n,)
        Who was searched for, 0..people − 1, and what decides.
    errors
        How many err at the threshold in question.
    """
    n, order = int(person.size), np.argsort(key, kind="stable")
    ranked, searches = key[order], np.bincount(person, minlength=people).astype(np.int64)

    def tally(counts: IntArray) -> GenuineTally:
        counts = np.unique(counts[(counts > 0) & (counts < n)])
        erred = [np.bincount(person[order[:count]], minlength=people) for count in counts]
        return GenuineTally(searches, np.array(erred, dtype=np.int64).reshape(counts.size, people))

    sides = []
    for mirrored in (False, True):
        grid = rank_grid(n, n if mirrored else 0, "frr")
        model = fit_genuine(tally(np.searchsorted(ranked, ranked[grid - 1], side="right")), mirrored=mirrored)
        own = model.own.joined(genuine_variance(tally(np.array([errors])), mirrored))
        sides.append(_careful(replace(model, own=own)))
    few, many = sides
    return replace(many, other=few) if errors > n / 2.0 else replace(few, other=many)


def _careful(model: LatentModel) -> LatentModel:
    """The model with correlations that the assumed ones raise and never lower."""
    seen, assumed = model.correlations, model.settings.assumed_people
    if not seen.people > 0.0:
        return model
    shown = (seen.rho_pair * (seen.people + assumed) - model.settings.assumed_pair * assumed) / seen.people
    return replace(model, correlations=replace(seen, rho_pair=max(seen.rho_pair, shown)))


@dataclass(frozen=True, eq=False)
class GalleryVariance:
    """What a random gallery adds to the variance of FPIR.

    size
        N.
    rho : Curve
        ρ_G as a function of the probit of FPIR.
    z, single : float64 arrays, shape (K,)
        Probits of FPIR in increasing order, and the share of hits that are single.
    """

    size: int
    rho: Curve
    z: FloatArray = field(repr=False)
    single: FloatArray = field(repr=False)

    def added_to(self, model: LatentModel) -> LatentModel:
        """The model with this variance; for upper limits of FPIR, ρ_G is raised in the tail."""
        from scipy.special import ndtr, ndtri

        def beyond(z: FloatArray, upper: BoolArray) -> FloatArray:
            rate = -z if model.mirrored else z
            share = np.interp(rate, self.z, self.single) if self.z.size else np.ones(rate.shape)
            one = np.clip(ndtr(rate) * share / self.size, 1e-300, 0.5)
            depth = np.where(upper != model.mirrored, np.maximum(float(ndtri(TAIL_RATE)) - rate, 0.0), 0.0)
            rho = np.minimum(self.rho(rate) + GALLERY_TAIL * model.correlations.rho_pair * depth, MOST)
            result: FloatArray = self.size * excess(ndtri(one), rho)
            return result

        return replace(model, beyond=beyond, other=model.other and self.added_to(model.other))


def with_holders(model: LatentModel, variance: float) -> LatentModel:
    """The model of FNIR or CMC with the variance of those who take others' ranks."""

    def beyond(z: FloatArray, _: BoolArray) -> FloatArray:
        return np.full(z.shape, variance)

    return replace(model, beyond=beyond, other=model.other and replace(model.other, beyond=beyond))


def gallery_variance(person: IntArray, holder: IntArray, score: FloatArray, size: int) -> GalleryVariance:
    """ρ_G from single hits at the thresholds of `rank_grid`; see `matchbound.stats.search.sums.hit_sums`.

    With B = n² − Σn_j² ordered pairs of searches of different people: c = (Σu² − Σd_jg²)/(N·B) is the mean product of
    single hits on one enrolled person, μ = ((Σu)² − Σu² − Σd_j² + Σd_jg²)/(N(N−1)·B) on two different ones, and
    Φ₂(z, z; ρ_G) = f₁²·c/max(μ, f₁²/4) with f₁ = Σu/(n·N).
    """
    from scipy.special import ndtri

    n, best = float(person.size), np.sort(score[:, 0])[::-1]
    searches = np.bincount(person).astype(np.float64)
    pairs = n * n - float(searches @ searches)
    _, cell = np.unique(person * np.int64(size) + holder[:, 0], return_inverse=True)
    rows = []
    for threshold in np.unique(best[rank_grid(int(n), 0, "frr") - 1])[::-1]:
        hit = score[:, 0] >= threshold
        alone = np.flatnonzero(hit & (score[:, 1] < threshold)) if threshold > -np.inf else np.empty(0, np.int64)
        if alone.size and size > 1 and pairs > 0.0 and np.count_nonzero(hit) < n:
            parts = (np.bincount(key[alone]).astype(np.float64) for key in (holder[:, 0], cell.reshape(-1), person))
            rows.append((np.count_nonzero(hit), alone.size, *(float(part @ part) for part in parts)))
    hits, u, uu, dd, jj = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    one = u / (n * size)
    same = (uu - dd) / (size * pairs) if rows else one
    different = (u * u - uu - jj + dd) / (size * (size - 1.0) * pairs) if rows else one
    rho = implied_correlation(ndtri(one), one * one * (same / np.maximum(different, one * one / 4.0) - 1.0))
    z = np.asarray(ndtri(hits / n))
    return GalleryVariance(size, smooth(z, rho, u, POOL, 1.0, 0.0), z, u / hits)


def threshold_at(best: FloatArray, fpir: float) -> float:
    """The threshold at which at most a share `fpir` of searches has a hit.

    Hits are scores above the (⌊f·n⌋ + 1)-th largest best score; the threshold returned is the next number above it, so
    that a hit is ``score >= threshold``. best : float64 array, shape (n,), descending.
    """
    place = int(np.floor(fpir * best.size + 1e-9))
    return -np.inf if place >= best.size else float(np.nextafter(best[place], np.inf))


def limits_at_fpir(
    best: FloatArray,
    crossing: FloatArray,
    hits: LatentModel,
    misses: LatentModel,
    fpir: FloatArray | float,
    deviates: tuple[float, float],
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper limits for FNIR at FPIRs, each of the shape of `fpir`, () or (K,).

    FPIR may err by sin θ of its t quantile while FNIR errs by cos θ of its own (the people searched for are different,
    so the two errors are taken as independent). The limit is the worst over the angles.

    Parameters
    ----------
    best : float64 array, shape (n,)
        Best scores of searches without a mate, descending.
    crossing : float64 array, shape (T,)
        The mate's scores where the rank is met, else −∞; ascending.
    hits, misses
        The models of FPIR and FNIR.
    deviates
        Their t quantiles.
    """
    from scipy.special import ndtr, ndtri

    n, given = float(best.size), np.asarray(fpir, dtype=np.float64)
    targets, angles = (part.reshape(-1) for part in np.meshgrid(given.reshape(-1), ANGLES, indexing="ij"))
    own, rest = np.sin(angles) * deviates[0], np.cos(angles) * deviates[1]
    seen, z = n * targets, ndtri(targets)
    limits = []
    for upper in (True, False):
        reached = np.clip(hits.limit(seen, own, upper), 1e-300, 1.0 - 1e-16)
        mirrored = n * ndtr(2.0 * z - ndtri(reached))
        moved = np.minimum(seen, mirrored) if upper else np.maximum(seen, mirrored)
        errors = np.searchsorted(crossing, _score_of_rank(best, moved), side="left")
        limits.append(misses.limit(errors, rest, upper).reshape(-1, ANGLES.size))
    return limits[1].min(axis=1).reshape(given.shape), limits[0].max(axis=1).reshape(given.shape)


def _score_of_rank(best: FloatArray, count: FloatArray) -> FloatArray:
    """The threshold with ⌊count⌋ hits; below three, extrapolated linearly in the probit rate."""
    from scipy.special import ndtri

    n = best.size
    place = np.minimum(np.floor(count + 1e-9).astype(np.int64), n - 1)
    found = np.nextafter(best[place], np.inf)
    rank = np.arange(LEAST_RANK, int(min(max(30, 0.003 * n), n - 1)) + 1)
    rank = rank[np.isfinite(best[rank - 1])]
    if rank.size < 3 or not np.any(count < LEAST_RANK):
        return found
    slope, level = np.polyfit(ndtri(rank / n), best[rank - 1], 1)
    wanted = level + slope * ndtri(np.maximum(count, 1e-12) / n)
    return np.where(count < LEAST_RANK, np.maximum(wanted, best[LEAST_RANK - 1]), found)


def slope_at(best: FloatArray, crossing: FloatArray, fpir: float) -> float:
    """dFNIR/dFPIR at an FPIR, from a straight line in probits between half and twice the FPIR; at most 0.

    best : best scores of searches without a mate, descending; crossing : deciding scores of misses, ascending
    """
    from scipy.special import ndtri

    n, total = best.size, crossing.size
    rates = np.geomspace(max(fpir / 2.0, 1.0 / n), min(fpir * 2.0, 0.9), 9)
    cut = best[np.minimum(np.floor(rates * n + 1e-9).astype(np.int64), n - 1)]
    missed = np.clip(np.searchsorted(crossing, np.nextafter(cut, np.inf)), 0.5, total - 0.5) / total
    x, y = ndtri(rates), ndtri(missed)
    if not np.ptp(x) > 0.0:
        return 0.0
    line = float(np.polyfit(x, y, 1)[0])
    z_x, z_y = float(ndtri(fpir)), float(np.interp(ndtri(fpir), x, y))
    return min(0.0, line * float(np.exp(0.5 * (z_x**2 - z_y**2))))
