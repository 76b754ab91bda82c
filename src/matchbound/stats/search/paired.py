"""Differences of two systems on the same searches: what each person adds to both, subtracted before squaring.

The parts are those of `matchbound.stats.search.nonmated` and `mated`: A_j = (y_j − p·n_j)/n of the people searched for
without a mate, U_g = (u_g − ū)/n of the enrolled people, a_i and b_g of misses. Of two systems, every part is the
difference, and the same sums of squares are the variance of the difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.stats.search.mated import Ranked

SPAN = 2.0
"""The slope of FNIR on FPIR is taken between target/SPAN and target·SPAN."""


@dataclass(frozen=True, eq=False)
class HitParts:
    """What people add to FPIR.

    people : float64 array, shape (J,); gallery : float64 array, shape (N,)
        A_j and U_g.
    key, count : arrays, shape (D,)
        j·N + g and d_jg/n of single hits, by increasing key.
    """

    people: FloatArray = field(repr=False)
    gallery: FloatArray = field(repr=False)
    key: IntArray = field(repr=False)
    count: FloatArray = field(repr=False)


@dataclass(frozen=True, eq=False)
class MissParts:
    """What enrolled people add to a miss rate: a_i, b_g, both of shape (N,), and d_ig/T by i·N + g."""

    own: FloatArray = field(repr=False)
    others: FloatArray = field(repr=False)
    key: IntArray = field(repr=False)
    count: FloatArray = field(repr=False)


def hit_parts(
    person: IntArray, n_people: int, holder: IntArray, best: FloatArray, second: FloatArray, size: int, threshold: float
) -> HitParts:
    """The parts of FPIR at an oriented threshold."""
    n = float(person.size)
    hit = best >= threshold
    alone = hit & (second < threshold)
    searches = np.bincount(person, minlength=n_people)
    y = np.bincount(person[hit], minlength=n_people)
    u = np.bincount(holder[alone], minlength=size).astype(np.float64)
    key, count = np.unique(person[alone] * np.int64(size) + holder[alone], return_counts=True)
    p = float(hit.sum()) / n
    return HitParts((y - p * searches) / n, (u - u.sum() / size) / n, key.astype(np.int64), count / n)


def miss_parts(ranked: Ranked, threshold: float) -> MissParts:
    """The parts of a miss rate at an oriented threshold."""
    total, size = float(ranked.searches), ranked.searches_of.size
    errors = ranked.misses_of(threshold)
    own = (errors - errors.sum() / total * ranked.searches_of) / total
    counted = ranked.blamed_mate >= threshold
    holders = ranked.blamed_holder[counted]
    w = np.bincount(holders.reshape(-1), minlength=size).astype(np.float64)
    searched = np.repeat(ranked.person[ranked.blamed[counted]], holders.shape[1])
    key, count = np.unique(searched * np.int64(size) + holders.reshape(-1), return_counts=True)
    return MissParts(own, (w - w.sum() / size) / total, key.astype(np.int64), count / total)


def hit_difference_variance(one: HitParts, other: HitParts, *, random: bool) -> float:
    """V of FPIR's difference: V_P, and with a random gallery V_P + max(0, V_G − V_PG), of the differences."""
    people, gallery = one.people - other.people, one.gallery - other.gallery
    count, size = people.size, gallery.size
    own = count / (count - 1.0) * float(people @ people) if count > 1 else float("nan")
    if not random:
        return own
    shared = (1.0 - 1.0 / size) * _squares(one.key, one.count, other.key, other.count)
    return own + max(0.0, float(gallery @ gallery) - shared)


def miss_difference_variance(one: MissParts, other: MissParts, people: int, *, random: bool) -> float:
    """V of a miss rate's difference, as in `matchbound.stats.search.mated.miss_variances`."""
    own = one.own - other.own
    factor = people / (people - 1.0) if people > 1 else float("nan")
    fixed = factor * float(own @ own)
    if not random:
        return fixed
    both = own + one.others - other.others
    shared = _squares(one.key, one.count, other.key, other.count)
    return max(factor * float(both @ both) - shared, fixed)


def point_difference_variance(
    hits: tuple[HitParts, HitParts], misses: tuple[MissParts, MissParts], slopes: tuple[float, float], people: int
) -> float:
    """V of the difference of FNIR at one FPIR, the thresholds estimated: each rate moves by λ times its FPIR.

    Enrolled person g adds a_g + b_g − λ·U_g, person j searched for without a mate −λ·A_j; λ = dFNIR/dFPIR of each
    system, below 0.
    """

    def enrolled(k: int) -> FloatArray:
        return misses[k].own + misses[k].others - slopes[k] * hits[k].gallery

    apart = enrolled(0) - enrolled(1)
    outside = slopes[0] * hits[0].people - slopes[1] * hits[1].people
    j = outside.size
    first = j / (j - 1.0) * float(outside @ outside) if j > 1 else float("nan")
    return first + (people / (people - 1.0) * float(apart @ apart) if people > 1 else float("nan"))


def slope_at(best: FloatArray, crossing: FloatArray, fpir: float) -> float:
    """dFNIR/dFPIR at an FPIR, from a straight line in probits between half and twice the FPIR; at most 0.

    best : best scores of searches without a mate, descending; crossing : deciding scores of misses, ascending
    """
    from scipy.special import ndtri

    n, total = best.size, crossing.size
    rates = np.geomspace(max(fpir / SPAN, 1.0 / n), min(fpir * SPAN, 0.9), 9)
    cut = best[np.minimum(np.floor(rates * n + 1e-9).astype(np.int64), n - 1)]
    missed = np.clip(np.searchsorted(crossing, np.nextafter(cut, np.inf)), 0.5, total - 0.5) / total
    x, y = ndtri(rates), ndtri(missed)
    spread = float(((x - x.mean()) ** 2).sum())
    if spread <= 0.0:
        return 0.0
    line = float(((x - x.mean()) * (y - y.mean())).sum()) / spread
    z_x, z_y = float(ndtri(fpir)), float(np.interp(ndtri(fpir), x, y))
    return min(0.0, line * float(np.exp(0.5 * (z_x**2 - z_y**2))))


def _squares(key: IntArray, count: FloatArray, other_key: IntArray, other_count: FloatArray) -> float:
    """Σ(one − other)² of two sparse tables."""
    joined, inverse = np.unique(np.concatenate([key, other_key]), return_inverse=True)
    values = np.concatenate([count, -other_count])
    apart = np.bincount(inverse.reshape(-1), values, joined.size) if joined.size else np.zeros(0)
    return float(apart @ apart)
