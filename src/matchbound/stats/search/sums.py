"""Sums over searches, clustered by the person searched for and by the enrolled people who make a search err.

A rate of searches is the mean of a value of each search, such as 1 where it returns somebody. Leaving an enrolled
person out of the gallery changes the value of some searches by a known *gain*: FPIR loses the searches in which that
person alone reaches the threshold, FNIR the misses that this person alone causes. Of person j searched for and
enrolled person g,

    A_j = Σ_x∈j (value_x − mean)/n,   U_g = (u_g − ū)/n with u_g = Σ_x gain_xg,   d_jg = Σ_x∈j gain_xg/n,

and the variance of the rate is that of two-way clustering (Cameron, Gelbach & Miller 2011,
doi:10.1198/jbes.2010.07136, §2): V_P + max(0, V_G − V_PG), V_P = J/(J−1)·ΣA², V_G = ΣU², V_PG = Σd². Where people are
both searched for and enrolled, their two parts are added before they are squared.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class SearchSums:
    """What people add to a rate of searches, or to the difference of two such rates.

    own : float64 array, shape (J,)
        A_j of the people searched for.
    holders : float64 array, shape (N,)
        U_g of the enrolled people.
    key, both : arrays, shape (D,)
        j·N + g by increasing key, and d_jg.
    place : int64 array, shape (J,)
        Where each person searched for stands among the enrolled, −1 elsewhere.
    people : int
        How many people have searches.
    crossed : int or None
        G of the factor G/(G−1) where people are both searched for and enrolled; None where nobody is.
    share : float
        By which V_PG is multiplied: 1 − 1/N for FPIR.
    """

    own: FloatArray = field(repr=False)
    holders: FloatArray = field(repr=False)
    key: IntArray = field(repr=False)
    both: FloatArray = field(repr=False)
    place: IntArray = field(repr=False)
    people: int
    crossed: int | None = None
    share: float = 1.0

    @property
    def searched(self) -> float:
        """V_P: the variance where the gallery is fixed; NaN with one person."""
        return _unbiased(self.people) * float(self.own @ self.own)

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
        return max(_unbiased(self.crossed) * total - self.overlap, self.searched)

    def __sub__(self, other: SearchSums) -> SearchSums:
        """The sums of the difference of two rates of the same searches."""
        key, inverse = np.unique(np.concatenate([self.key, other.key]), return_inverse=True)
        both = np.bincount(inverse.reshape(-1), np.concatenate([self.both, -other.both]), key.size)
        return replace(
            self,
            own=self.own - other.own,
            holders=self.holders - other.holders,
            key=key.astype(np.int64),
            both=both.astype(np.float64),
        )


def _unbiased(groups: float) -> float:
    """G/(G−1), NaN for one group."""
    return groups / (groups - 1.0) if groups > 1 else float("nan")


def search_sums(
    person: IntArray,
    value: FloatArray | BoolArray,
    changed: tuple[IntArray, IntArray, FloatArray],
    place: IntArray,
    size: int,
    *,
    crossed: int | None = None,
    share: float = 1.0,
) -> SearchSums:
    """The sums of the mean of `value`.

    Parameters
    ----------
    person, value : arrays, shape (n,)
        Who was searched for, positions in `place`, and the value of the search.
    changed : (search, holder, gain), arrays of shape (C,)
        What the value of a search loses where an enrolled person is left out.
    place, crossed, share
        See `SearchSums`.
    size
        N.
    """
    n, (search, holder, gain) = float(person.size), changed
    searches = np.bincount(person, minlength=place.size)
    values = np.asarray(value, dtype=np.float64)
    own = np.bincount(person, values, place.size) - float(values.sum()) / n * searches
    u = np.bincount(holder, gain, size).astype(np.float64)
    key, inverse = np.unique(person[search] * np.int64(size) + holder, return_inverse=True)
    both = np.bincount(inverse.reshape(-1), gain, key.size).astype(np.float64)
    people = int(np.count_nonzero(searches))
    return SearchSums(own / n, (u - u.sum() / size) / n, key, both / n, place, people, crossed, share)


class Decided(Protocol):
    """Searches of one kind: which of them err at a threshold, and what people add to that."""

    person: IntArray
    size: int

    @property
    def people(self) -> int:
        """How many people there may be; `person` holds their positions."""

    def erred(self, threshold: float) -> BoolArray:
        """Which searches err, shape (n,)."""

    def sums(self, threshold: float) -> SearchSums:
        """The sums of the share that err."""


@dataclass(frozen=True, eq=False)
class Unmated:
    """Searches without a mate, which err where they return somebody.

    person : int64 array, shape (n,)
        Who was searched for.
    enrolled : int64 array, shape (J,)
        Position in the gallery of each person, −1 for those who are not enrolled. Where one is, their own enrolment
        was left out of their searches (rotating protocol).
    holder, score : arrays, shape (n, ≥ 2)
        The best candidates, the best one first.
    size : int
        N.
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

    def erred(self, threshold: float) -> BoolArray:
        """Which searches return somebody."""
        returned: BoolArray = self.score[:, 0] >= threshold
        return returned

    def sums(self, threshold: float) -> SearchSums:
        """The sums of FPIR: a search with one candidate at or above the threshold is a *single hit* of that one."""
        alone = np.flatnonzero(self.erred(threshold) & (self.score[:, 1] < threshold))
        changed = alone, self.holder[alone, 0], np.ones(alone.size)
        crossed, share = self.size if self.rotating else None, 1.0 - 1.0 / self.size
        return search_sums(
            self.person, self.erred(threshold), changed, self.enrolled, self.size, crossed=crossed, share=share
        )


@dataclass(frozen=True, eq=False)
class Ranked:
    """Searches of enrolled people at one rank R, which err where the mate is not within it or below the threshold.

    person : int64 array, shape (T,)
        Who was searched for, positions in the gallery.
    crossing : float64 array, shape (T,)
        The mate's score where it is within rank R, else −∞. The search misses where it is below the threshold.
    margin : float64 array, shape (T,)
        Mate minus R-th best non-mate; negative where the rank is missed. −∞ where the mate can have no rank.
    blamed : int64 array, shape (B,)
        Searches that miss the rank and would not if any one of their R best non-mates were not enrolled.
    mate : float64 array, shape (B,); holder : int64 array, shape (B, R)
        The mate's scores there, and those R non-mates.
    size : int
        N.
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
        """N."""
        return self.size

    def erred(self, threshold: float) -> BoolArray:
        """Which searches miss at a threshold; −∞ asks for the rank alone."""
        missed: BoolArray = (self.crossing < threshold) | np.isneginf(self.crossing)
        return missed

    def sums(self, threshold: float) -> SearchSums:
        """The sums of FNIR; enrolled person g alone causes w_g misses of others."""
        counted = self.mate >= threshold
        holder = self.holder[counted]
        changed = np.repeat(self.blamed[counted], holder.shape[1]), holder.reshape(-1), np.ones(holder.size)
        crossed = int(np.unique(self.person).size)
        return search_sums(
            self.person, self.erred(threshold), changed, np.arange(self.size), self.size, crossed=crossed
        )


def at_rank(person: IntArray, mate: FloatArray, holder: IntArray, score: FloatArray, size: int, rank: int) -> Ranked:
    """The searches at rank R; a mate tied with a non-mate is ahead of it.

    Parameters
    ----------
    holder, score : arrays, shape (T, ≥ R + 1)
        The best non-mates, the best one first; with fewer than R + 1 columns there are no more non-mates.
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
