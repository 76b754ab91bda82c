"""False positive identification rate: moments and variances, at every threshold from one sort.

Of person j, n_j probes were searched and y_j of them found a candidate; n = Σn_j, p = Σy_j/n. A search is a *single
hit* of enrolled person g where g alone reaches the threshold; d_jg is the number of single hits of j's probes on g,
u_g = Σ_j d_jg, d_j = Σ_g d_jg. Taking g out of the gallery changes exactly its single hits, p − p_(−g) = u_g/n, so
the best two candidates of each search are all that the gallery's part of the variance needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class HitMoments:
    """Sums over searches without a mate at some thresholds; int64 arrays of one shape.

    hits, single
        Σy and Σu.
    y_squares, y_searches
        Σ_j y_j² and Σ_j y_j·n_j.
    u_squares, d_squares, person_squares
        Σ_g u_g², Σ_jg d_jg² and Σ_j d_j².
    """

    hits: IntArray
    single: IntArray
    y_squares: IntArray
    y_searches: IntArray
    u_squares: IntArray
    d_squares: IntArray
    person_squares: IntArray


@dataclass(frozen=True, eq=False)
class HitCurve:
    """The moments at every threshold.

    scores : float64 array, shape (2n,)
        Best and second-best scores of all searches, descending.
    steps : HitMoments of arrays of shape (2n + 1,)
        The moments once the first k of these scores reach the threshold.
    best : float64 array, shape (n,)
        Best scores, descending.
    searches_of : int64 array, shape (J,)
        n_j.
    """

    scores: FloatArray = field(repr=False)
    steps: HitMoments = field(repr=False)
    best: FloatArray = field(repr=False)
    searches_of: IntArray = field(repr=False)

    @property
    def searches(self) -> int:
        """n."""
        return int(self.best.size)

    def at(self, thresholds: FloatArray | float) -> HitMoments:
        """The moments at some thresholds, arrays of their shape; a hit is ``score >= threshold``."""
        place = np.searchsorted(-self.scores, -np.asarray(thresholds, dtype=np.float64), side="right")
        steps = self.steps
        return HitMoments(
            steps.hits[place],
            steps.single[place],
            steps.y_squares[place],
            steps.y_searches[place],
            steps.u_squares[place],
            steps.d_squares[place],
            steps.person_squares[place],
        )


def hit_curve(person: IntArray, n_people: int, holder: IntArray, best: FloatArray, second: FloatArray) -> HitCurve:
    """Moments at every threshold, from one sort of the 2n best and second-best scores.

    When the threshold falls past the best score of a probe of j held by g: Σy² grows by 2y_j + 1, Σy·n by n_j, Σu² by
    2u_g + 1, Σd² by 2d_jg + 1; past its second-best score the single hit is one no more: Σu² changes by 1 − 2u_g, Σd²
    by 1 − 2d_jg.

    Parameters
    ----------
    person, holder : int64 arrays, shape (n,)
        Who was searched for (0..n_people − 1), and who holds the best score.
    best, second : float64 arrays, shape (n,)
        Oriented scores; −∞ where there is no candidate.
    """
    n = person.size
    searches_of: IntArray = np.bincount(person, minlength=n_people).astype(np.int64)
    scores = np.concatenate([best, second])
    order = np.argsort(-scores, kind="stable")
    probe = np.concatenate([np.arange(n), np.arange(n)])[order]
    first = order < n
    sign = np.where(first, 1, -1).astype(np.int64)
    own, held = person[probe], holder[probe]
    pair = own * np.int64(max(int(holder.max(initial=0)) + 1, 1)) + held
    y_before = _running(own, first.astype(np.int64))
    y_squares = np.where(first, 2 * y_before + 1, 0)
    single = _grown(sign)

    def squares(key: IntArray) -> IntArray:
        """Σ(count per key)² after each event, shape (2n + 1,)."""
        return _grown(2 * sign * _running(key, sign) + 1)

    steps = HitMoments(
        _grown(first.astype(np.int64)),
        single,
        _grown(y_squares),
        _grown(np.where(first, searches_of[own], 0)),
        squares(held),
        squares(pair),
        squares(own),
    )
    return HitCurve(scores[order], steps, -np.sort(-best), searches_of)


def _grown(change: IntArray) -> IntArray:
    """Running sums with the zero that they start from."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(change)])


def _running(key: IntArray, value: IntArray) -> IntArray:
    """For each event, the sum of the values of earlier events with the same key."""
    order = np.argsort(key, kind="stable")
    sorted_key, sorted_value = key[order], value[order]
    total = np.cumsum(sorted_value) - sorted_value
    begins = np.flatnonzero(np.append(True, sorted_key[1:] != sorted_key[:-1])) if key.size else np.empty(0, np.int64)
    lengths = np.diff(np.append(begins, key.size))
    out = np.empty(key.size, dtype=np.int64)
    out[order] = total - np.repeat(total[begins], lengths)
    return out


@dataclass(frozen=True, eq=False)
class HitVariances:
    """The parts of the variance of FPIR; arrays of one shape.

    people
        V_P, of the people searched for: all of it where the gallery is fixed.
    gallery
        V_G, of the people enrolled.
    overlap
        V_PG, counted by both.
    """

    people: FloatArray
    gallery: FloatArray
    overlap: FloatArray

    @property
    def random(self) -> FloatArray:
        """V_P + max(0, V_G − V_PG): both the people searched for and the enrolled are samples."""
        result: FloatArray = self.people + np.maximum(self.gallery - self.overlap, 0.0)
        return result


def hit_variances(curve: HitCurve, moments: HitMoments, size: int) -> HitVariances:
    """V_P = J/(J−1)·Σ(y_j − p·n_j)²/n², V_G = [Σu² − (Σu)²/N]/n² and V_PG = (1 − 1/N)·Σd²/n².

    V_G is the infinitesimal jackknife over the N enrolled people, V_PG what the sum of both counts twice, as in
    two-way clustering (Cameron, Gelbach & Miller 2011, doi:10.1198/jbes.2010.07136, §2). V_P is NaN with one person.
    """
    n = float(curve.searches)
    p = moments.hits / n
    squares = float(np.dot(curve.searches_of, curve.searches_of))
    apart = moments.y_squares - 2.0 * p * moments.y_searches + p * p * squares
    people = int(np.count_nonzero(curve.searches_of))
    factor = people / (people - 1.0) if people > 1 else np.nan
    return HitVariances(
        factor * np.maximum(apart, 0.0) / n**2,
        (moments.u_squares - np.asarray(moments.single, dtype=np.float64) ** 2 / size) / n**2,
        (1.0 - 1.0 / size) * np.asarray(moments.d_squares, dtype=np.float64) / n**2,
    )


def rotating_variance(
    person: IntArray,
    enrolled: IntArray,
    holder: IntArray,
    best: FloatArray,
    second: FloatArray,
    size: int,
    threshold: float,
) -> tuple[float, float]:
    """(V, V_P) where people are both searched for and enrolled: add a person's two influences before squaring.

    With A_i = (y_i − p·n_i)/n and U_i = (u_i − ū)/n, V = max(N/(N−1)·Σ(A_i + U_i)² − V_PG, V_P). Those who are only
    searched for have no U and those who are only enrolled no A.

    Parameters
    ----------
    enrolled : int64 array, shape (J,)
        Position of each person in the gallery, or −1.
    """
    n = float(person.size)
    people = enrolled.size
    hit = best >= threshold
    alone = hit & (second < threshold)
    searches = np.bincount(person, minlength=people).astype(np.float64)
    y = np.bincount(person[hit], minlength=people).astype(np.float64)
    u = np.bincount(holder[alone], minlength=size).astype(np.float64)
    p = float(hit.sum()) / n
    a, b = (y - p * searches) / n, (u - u.sum() / size) / n
    both = b.copy()
    known = enrolled >= 0
    np.add.at(both, enrolled[known], a[known])
    total = float(both @ both) + float(a[~known] @ a[~known])
    _, count = np.unique(person[alone] * np.int64(size) + holder[alone], return_counts=True)
    overlap = (1.0 - 1.0 / size) * float((count.astype(np.float64) ** 2).sum()) / n**2
    taking_part = int(np.count_nonzero(searches))
    own = taking_part / (taking_part - 1.0) * float(a @ a) if taking_part > 1 else float("nan")
    return max(size / (size - 1.0) * total - overlap, own) if size > 1 else float("nan"), own
