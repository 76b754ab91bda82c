"""Statistics of rates of searches: sums over people and holders, their variance, and the latent model.

A rate of searches is the mean of a value of each search, such as 1 where it returns somebody. Leaving an enrolled
person out of the gallery changes the value of some searches by a known *gain*: FPIR loses the searches in which that
person alone reaches the threshold, FNIR the misses that this person alone causes. Of person j searched for and
enrolled person g,

    A_j = Σ_x∈j (value_x − mean)/n,   U_g = (u_g − ū)/n with u_g = Σ_x gain_xg,   d_jg = Σ_x∈j gain_xg/n,

and the variance of the rate is that of two-way clustering (Cameron, Gelbach & Miller 2011,
doi:10.1198/jbes.2010.07136, §2): V_P + max(0, V_G − V_PG), V_P = J/(J−1)·ΣA², V_G = ΣU², V_PG = Σd². Where people are
both searched for and enrolled, their two parts are added before they are squared.

The latent model is that of FRR, with the people searched for as clusters (docs/explanation/latent.md). Where the
enrolled people are a sample too, FPIR has a further variance

    V_gal(p) = N·(Φ₂(z, z; ρ_G) − f₁²),   f₁ = s₁(p)/N,  z = Φ⁻¹(f₁),

with s₁(p) the share of searches with exactly one hit and ρ_G the latent correlation of single hits on one enrolled
person (docs/explanation/identification.md derives it); FNIR and CMC have that of misses which one person causes.
FNIR against FPIR is a curve as FRR against FAR is (`curve_of_searches`), and its two rates share one budget of error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.counts.curve import CurveTally
from matchbound.counts.tally import GenuineTally
from matchbound.stats.dyadic import bias_factor
from matchbound.stats.intervals import ndtr, ndtri
from matchbound.stats.latent.fit import Curve, fit_genuine, rank_grid, smooth, with_own_variance
from matchbound.stats.latent.model import LatentModel
from matchbound.stats.latent.probabilities import excess, implied_correlation


@dataclass(frozen=True, eq=False)
class SearchSums:
    """What people add to a rate of searches, or to the difference of two such rates.

    - own, shape (J,): A_j of the people searched for.
    - holders, shape (N,): U_g of the enrolled people.
    - key, gain, shape (C,): j·N + g, and what they add to d_jg.
    - place, shape (J,): where each person searched for stands among the enrolled, −1 elsewhere.
    - people: how many people have searches.
    - crossed: G of the factor G/(G−1) where people are both searched for and enrolled; None where nobody is.
    - share: by which V_PG is multiplied: 1 − 1/N for FPIR.
    """

    own: FloatArray = field(repr=False)
    holders: FloatArray = field(repr=False)
    key: IntArray = field(repr=False)
    gain: FloatArray = field(repr=False)
    place: IntArray = field(repr=False)
    people: int
    crossed: int | None = None
    share: float = 1.0

    @cached_property
    def both(self) -> FloatArray:
        """d_jg where anything changes, by increasing j·N + g, shape (D,)."""
        _, pair = np.unique(self.key, return_inverse=True)
        return np.bincount(pair.reshape(-1), self.gain).astype(np.float64)

    @property
    def searched(self) -> float:
        """V_P: the variance where the gallery is fixed; NaN with one person."""
        return bias_factor("frr", self.people, math.nan) * float(self.own @ self.own)

    @property
    def gallery(self) -> float:
        """V_G, the infinitesimal jackknife over the enrolled people."""
        return float(self.holders @ self.holders)

    @property
    def overlap(self) -> float:
        """V_PG, what the sum of both counts twice."""
        return self.share * float(self.both @ self.both)

    def variance(self, gallery: str = "random") -> float:
        """The variance of the rate: ``"fixed"``, this gallery; ``"random"``, the enrolled people are a sample too."""
        if gallery == "fixed":
            return self.searched
        if self.crossed is None:
            return self.searched + max(0.0, self.gallery - self.overlap)
        joined, alone = self.holders.copy(), self.place < 0
        np.add.at(joined, self.place[~alone], self.own[~alone])
        total = float(joined @ joined) + float(self.own[alone] @ self.own[alone])
        return max(bias_factor("frr", self.crossed, math.nan) * total - self.overlap, self.searched)

    def __sub__(self, other: SearchSums) -> SearchSums:
        key, gain = np.concatenate([self.key, other.key]), np.concatenate([self.gain, -other.gain])
        return replace(self, own=self.own - other.own, holders=self.holders - other.holders, key=key, gain=gain)


# (search, holder, gain), shape (C,) each: what a search loses where an enrolled person is left out.
Changed = tuple[IntArray, IntArray, FloatArray]


def search_sums(
    person: IntArray, value: FloatArray | BoolArray, changed: Changed, place: IntArray, size: int
) -> SearchSums:
    """The sums of the mean of `value`, where nobody is both searched for and enrolled.

    - person, value, shape (n,): who was searched for, positions in `place`, and the value of the search.
    - size: N; place: see `SearchSums`.
    """
    n, (search, holder, gain) = float(person.size), changed
    searches = np.bincount(person, minlength=place.size)
    values = np.asarray(value, dtype=np.float64)
    own = np.bincount(person, values, place.size) - float(values.sum()) / n * searches
    u = np.bincount(holder, gain, size).astype(np.float64)
    key, people = person[search] * np.int64(size) + holder, int(np.count_nonzero(searches))
    return SearchSums(own / n, (u - u.sum() / size) / n, key, gain / n, place, people)


@dataclass(frozen=True, eq=False)
class Unmated:
    """Searches without a mate, which err where they return somebody.

    - person, shape (n,): who was searched for.
    - enrolled, shape (J,): position in the gallery of each person, −1 for those who are not enrolled. Where one is,
      their own enrolment was left out of their searches (rotating protocol).
    - holder, score, shape (n, ≥ 2): the best candidates, the best one first.
    - size: N.
    """

    person: IntArray = field(repr=False)
    enrolled: IntArray = field(repr=False)
    holder: IntArray = field(repr=False)
    score: FloatArray = field(repr=False)
    size: int

    @property
    def people(self) -> int:
        """J."""
        return int(self.enrolled.size)

    @property
    def rotating(self) -> bool:
        """Whether people are both searched for and enrolled."""
        return bool(np.any(self.enrolled >= 0))

    @cached_property
    def model(self) -> LatentModel:
        """The latent model of FPIR with this gallery."""
        return fit_searches(self.person, self.people, -self.score[:, 0])

    @cached_property
    def best(self) -> FloatArray:
        """The best scores, descending."""
        return np.sort(self.score[:, 0])[::-1]

    @cached_property
    def gallery(self) -> GalleryVariance:
        """What a random gallery adds to the variance of FPIR."""
        return gallery_variance(self.person, self.holder, self.score, self.size)

    def erred(self, threshold: float) -> BoolArray:
        """Which searches return somebody."""
        return np.asarray(self.score[:, 0] >= threshold)

    def single_hits(self, threshold: float) -> tuple[IntArray, IntArray]:
        """Searches with one candidate at or above the threshold, and who that is."""
        alone = np.flatnonzero(self.erred(threshold) & (self.score[:, 1] < threshold))
        return alone, self.holder[alone, 0]

    def sums(self, threshold: float) -> SearchSums:
        """The sums of FPIR, which loses the single hits of whoever is left out."""
        alone, holder = self.single_hits(threshold)
        changed = alone, holder, np.ones(alone.size)
        sums = search_sums(self.person, self.erred(threshold), changed, self.enrolled, self.size)
        return replace(sums, crossed=self.size if self.rotating else None, share=1.0 - 1.0 / self.size)


@dataclass(frozen=True, eq=False)
class Ranked:
    """Searches of enrolled people at one rank R, which err where the mate is not within it or below the threshold.

    - person, shape (T,): who was searched for, positions in the gallery.
    - crossing, shape (T,): the mate's score where it is within rank R, else −∞; a miss where it is below the threshold.
    - margin, shape (T,): mate minus R-th best non-mate; negative where the rank is missed, −∞ for mates without a rank.
    - blamed, shape (B,): searches that miss the rank and would not if any one of their R best non-mates were left out.
    - mate, shape (B,), and holder, shape (B, R): the mate's scores there, and those R non-mates.
    - size: N.
    """

    person: IntArray = field(repr=False)
    crossing: FloatArray = field(repr=False)
    margin: FloatArray = field(repr=False)
    blamed: IntArray = field(repr=False)
    mate: FloatArray = field(repr=False)
    holder: IntArray = field(repr=False)
    size: int

    @property
    def people(self) -> int:
        return self.size

    @cached_property
    def model(self) -> LatentModel:
        """The latent model of FNIR."""
        return fit_searches(self.person, self.people, self.crossing)

    @cached_property
    def ordered(self) -> FloatArray:
        """The deciding scores, ascending."""
        return np.sort(self.crossing)

    @cached_property
    def margin_model(self) -> LatentModel:
        """The latent model of CMC: a rate that has no threshold borrows from neighbouring margins."""
        return fit_searches(self.person, self.people, self.margin)

    def erred(self, threshold: float) -> BoolArray:
        """Which searches miss at a threshold; −∞ asks for the rank alone."""
        return np.asarray((self.crossing < threshold) | np.isneginf(self.crossing))

    def sums(self, threshold: float) -> SearchSums:
        """The sums of FNIR; enrolled person g alone causes w_g misses of others."""
        counted = self.mate >= threshold
        holder = self.holder[counted]
        changed = np.repeat(self.blamed[counted], holder.shape[1]), holder.reshape(-1), np.ones(holder.size)
        sums = search_sums(self.person, self.erred(threshold), changed, np.arange(self.size), self.size)
        return replace(sums, crossed=sums.people)


def at_rank(person: IntArray, mate: FloatArray, holder: IntArray, score: FloatArray, size: int, rank: int) -> Ranked:
    """The searches at rank R; a mate tied with a non-mate is ahead of it.

    - holder, score, shape (T, ≥ R + 1): the best non-mates, the best first; with fewer columns there are no more.
    """
    rest, none = score.shape[1], np.full(mate.size, -np.inf)
    nth = score[:, rank - 1] if rank <= rest else none
    following = score[:, rank] if rank < rest else none
    known = mate > -np.inf
    within = known & (nth <= mate)
    with np.errstate(invalid="ignore"):
        margin = np.where(known, np.where(np.isneginf(nth), np.inf, mate - nth), -np.inf)
    blamed = np.flatnonzero(known & ~within & (following <= mate))
    crossing = np.where(within, mate, -np.inf)
    return Ranked(person, crossing, margin, blamed, mate[blamed], holder[blamed, :rank], size)


# γ: upper limits raise ρ_G by γ·ρ_w for each probit that the rate lies below TAIL_RATE.
GALLERY_TAIL = 0.6
TAIL_RATE = 0.05
# FPIRs over which ρ_G is averaged; it is nowhere below that average.
POOL = (0.02, 0.6)
# Above this ρ_G the gallery, and not the searches, limits what can be said.
HUBS = 0.25
MOST = 0.99


def fit_searches(person: IntArray, people: int, key: FloatArray) -> LatentModel:
    """The model of a rate of searches by person, those with the smallest keys err first; both sides of the scale."""
    n, order = int(person.size), np.argsort(key, kind="stable")
    ranked, searches = key[order], np.bincount(person, minlength=people).astype(np.int64)
    sides = []
    for mirrored in (False, True):
        grid = rank_grid(n, n if mirrored else 0, "frr")
        counts = np.unique(np.searchsorted(ranked, ranked[grid - 1], side="right"))
        erred = [np.bincount(person[order[:count]], minlength=people) for count in counts[counts < n]]
        tally = GenuineTally(searches, np.array(erred, dtype=np.int64).reshape(-1, people))
        sides.append(_careful(fit_genuine(tally, mirrored=mirrored)))
    return replace(sides[0], other=sides[1])


def at_errors(model: LatentModel, person: IntArray, people: int, erred: BoolArray) -> LatentModel:
    """The model with the sample's own variance known where these searches err."""
    if not 0 < np.count_nonzero(erred) < erred.size:
        return model
    searches, errors = (np.bincount(each, minlength=people).astype(np.int64) for each in (person, person[erred]))
    return with_own_variance(model, GenuineTally(searches, errors[None]))


def _careful(model: LatentModel) -> LatentModel:
    """The model with correlations that the assumed ones raise and never lower."""
    seen, assumed = model.correlations, model.settings.assumed_people
    if not seen.people > 0.0:
        return model
    shown = (seen.rho_pair * (seen.people + assumed) - model.settings.assumed_pair * assumed) / seen.people
    return replace(model, correlations=replace(seen, rho_pair=max(seen.rho_pair, shown)))


@dataclass(frozen=True, eq=False)
class GalleryVariance:
    """What a random gallery adds to the variance of FPIR: ρ_G as a function of its probit.

    `single` is the share of hits that are single, at increasing probits z of FPIR; shape (K,) each.
    """

    size: int
    rho: Curve
    z: FloatArray = field(repr=False)
    single: FloatArray = field(repr=False)

    def added_to(self, model: LatentModel) -> LatentModel:
        """The model with this variance; for upper limits of FPIR, ρ_G is raised in the tail."""

        def beyond(z: FloatArray, upper: BoolArray) -> FloatArray:
            rate = -z if model.mirrored else z
            share = np.interp(rate, self.z, self.single) if self.z.size else np.ones(rate.shape)
            one = np.clip(ndtr(rate) * share / self.size, 1e-300, 0.5)
            depth = np.where(upper != model.mirrored, np.maximum(float(ndtri(TAIL_RATE)) - rate, 0.0), 0.0)
            rho = np.minimum(self.rho(rate) + GALLERY_TAIL * model.correlations.rho_pair * depth, MOST)
            return np.asarray(self.size * excess(ndtri(one), rho))

        return replace(model, beyond=beyond, other=model.other and self.added_to(model.other))


def with_holders(model: LatentModel, variance: float) -> LatentModel:
    """The model of FNIR or CMC with the variance of those who take others' ranks."""

    def beyond(z: FloatArray, _: BoolArray) -> FloatArray:
        return np.full(z.shape, variance)

    return replace(model, beyond=beyond, other=model.other and replace(model.other, beyond=beyond))


def gallery_variance(person: IntArray, holder: IntArray, score: FloatArray, size: int) -> GalleryVariance:
    """ρ_G from single hits at the thresholds of `rank_grid`; see `Unmated.sums`.

    With B = n² − Σn_j² ordered pairs of searches of different people: c = (Σu² − Σd_jg²)/(N·B) is the mean product of
    single hits on one enrolled person, μ = ((Σu)² − Σu² − Σd_j² + Σd_jg²)/(N(N−1)·B) on two different ones, and
    Φ₂(z, z; ρ_G) = f₁²·c/max(μ, f₁²/4) with f₁ = Σu/(n·N).
    """
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
    z = ndtri(hits / n)
    return GalleryVariance(size, smooth(z, rho, u, POOL, 0.0), z, u / hits)


def threshold_at(best: FloatArray, fpir: float) -> float:
    """The threshold at which at most a share `fpir` of searches has a hit, from best scores, descending.

    It is the next number above the (⌊f·n⌋ + 1)-th largest best score, so that a hit is ``score >= threshold``.
    """
    place = int(np.floor(fpir * best.size + 1e-9))
    return -np.inf if place >= best.size else float(np.nextafter(best[place], np.inf))


def curve_of_searches(best: FloatArray, crossing: FloatArray) -> CurveTally:
    """FNIR against FPIR as a curve of FRR against FAR; who was searched for is left out.

    - best, shape (n,): best scores of searches without a mate, descending.
    - crossing, shape (T,): the mate's scores where the rank is met, else −∞; ascending.
    """
    scores = np.unique(np.concatenate([best, crossing]))[::-1]
    scores = scores[np.isfinite(scores)]
    thresholds = np.append(np.inf, scores)
    hits = np.searchsorted(-best, -thresholds, side="right")
    none, misses = np.empty(0, dtype=np.int64), np.searchsorted(crossing, thresholds)
    return CurveTally(none, False, thresholds, hits, misses, np.array([crossing.size]), np.array([2 * best.size]), None)


def slope_at(best: FloatArray, crossing: FloatArray, fpir: float) -> float:
    """dFNIR/dFPIR at an FPIR, at most 0: a line in probits from half to twice it; best descends, crossing ascends."""
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
