"""False negative identification rate and CMC: misses, their variances, and who causes them.

Of enrolled person i, m_i searches were made and e_i missed; T = Σm_i, q = Σe_i/T. w_g is the number of misses that g
alone causes: the mate reaches the threshold, falls short of the R-th best non-mate, and would not without g.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Ranked:
    """Searches of enrolled people, as they look at one rank R.

    person : int64 array, shape (T,)
        Who was searched for, positions in the gallery.
    crossing : float64 array, shape (T,)
        s*: the mate's score where it is within rank R, else −∞. The search misses where s* < threshold.
    margin : float64 array, shape (T,)
        Mate minus R-th best non-mate; negative where the rank is missed. −∞ where the mate can have no rank.
    blamed : int64 array, shape (B,)
        Searches that miss the rank and would not if any one of their R best non-mates were not enrolled.
    blamed_mate : float64 array, shape (B,)
        The mate's scores there.
    blamed_holder : int64 array, shape (B, R)
        Those R non-mates.
    searches_of : int64 array, shape (N,)
        m_i.
    """

    person: IntArray = field(repr=False)
    crossing: FloatArray = field(repr=False)
    margin: FloatArray = field(repr=False)
    blamed: IntArray = field(repr=False)
    blamed_mate: FloatArray = field(repr=False)
    blamed_holder: IntArray = field(repr=False)
    searches_of: IntArray = field(repr=False)

    @property
    def searches(self) -> int:
        """T."""
        return int(self.person.size)

    @property
    def people(self) -> int:
        """How many enrolled people were searched for."""
        return int(np.count_nonzero(self.searches_of))

    def misses(self, threshold: float) -> int:
        """How many searches miss at a threshold; −∞ asks for the rank alone."""
        return int(np.count_nonzero(self._missed(threshold)))

    def misses_of(self, threshold: float) -> FloatArray:
        """e_i, shape (N,)."""
        missed = self.person[self._missed(threshold)]
        return np.bincount(missed, minlength=self.searches_of.size).astype(np.float64)

    def _missed(self, threshold: float) -> BoolArray:
        missed: BoolArray = (self.crossing < threshold) | np.isneginf(self.crossing)
        return missed


def at_rank(person: IntArray, mate: FloatArray, holder: IntArray, score: FloatArray, size: int, rank: int) -> Ranked:
    """The searches at rank R; a mate tied with a non-mate is ahead of it.

    Parameters
    ----------
    holder, score : arrays, shape (T, ≥ R + 1)
        The best non-mates, the best one first; with fewer than R + 1 columns there are no more non-mates.
    """
    rest = score.shape[1]
    nth = score[:, rank - 1] if rank <= rest else np.full(mate.size, -np.inf)
    following = score[:, rank] if rank < rest else np.full(mate.size, -np.inf)
    within = (mate > -np.inf) & (nth <= mate)
    with np.errstate(invalid="ignore"):
        margin = np.where(mate > -np.inf, np.where(np.isneginf(nth), np.inf, mate - nth), -np.inf)
    blamed = np.flatnonzero((mate > -np.inf) & ~within & (following <= mate))
    return Ranked(
        person,
        np.where(within, mate, -np.inf),
        margin,
        blamed,
        mate[blamed],
        holder[blamed, :rank],
        np.bincount(person, minlength=size).astype(np.int64),
    )


@dataclass(frozen=True)
class MissVariances:
    """The variance of FNIR: with the gallery's part of the ranks fixed, and random; and W = Σw_g."""

    fixed: float
    random: float
    alone: int


def miss_variances(ranked: Ranked, threshold: float) -> MissVariances:
    """Variances of the miss rate at a threshold (−∞ for CMC).

    With a_i = (e_i − q·m_i)/T and b_g = (w_g − W/N)/T: fixed V = J/(J−1)·Σa_i²; random V =
    max(J/(J−1)·Σ_i(a_i + b_i)² − Σ_ig d_ig²/T², fixed), d_ig the w's of i's searches by g.
    """
    total, size, people = float(ranked.searches), ranked.searches_of.size, ranked.people
    errors = ranked.misses_of(threshold)
    q = errors.sum() / total
    a = (errors - q * ranked.searches_of) / total
    factor = people / (people - 1.0) if people > 1 else float("nan")
    fixed = factor * float(a @ a)
    counted = ranked.blamed_mate >= threshold
    holders = ranked.blamed_holder[counted]
    if not holders.size:
        return MissVariances(fixed, fixed, 0)
    w = np.bincount(holders.reshape(-1), minlength=size).astype(np.float64)
    b = (w - w.sum() / size) / total
    searched = np.repeat(ranked.person[ranked.blamed[counted]], holders.shape[1])
    _, count = np.unique(searched * np.int64(size) + holders.reshape(-1), return_counts=True)
    both = factor * float((a + b) @ (a + b)) - float((count.astype(np.float64) ** 2).sum()) / total**2
    return MissVariances(fixed, max(both, fixed), int(w.sum()))
