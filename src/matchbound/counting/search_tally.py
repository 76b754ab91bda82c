"""Searches with a mate and without one, from lists; and the way back to the data where a list is too short."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.counting.search import MOST_HITS, MOST_ROWS, Reached, SearchJob, reached
from matchbound.counts.searches import Mated, NonMated, SearchTally
from matchbound.data.candidates import ScoreMatrix


class Further(Protocol):
    """Goes back to the data for what is behind the end of the lists."""

    def hits(self, threshold: float) -> Reached:
        """Who reaches an oriented threshold in the searches without a mate."""

    def beaten(self) -> Reached:
        """Which non-mates are ahead of the mate in the searches with one."""


@dataclass(frozen=True, eq=False)
class Behind:
    """What is behind the end of the lists; where to look for it is for its two kinds to say.

    nonmated, mated : int64 arrays, shapes (n,) and (T,)
        The row of each search, −1 for searches that failed.
    mate : float64 array, shape (T,)
    """

    nonmated: IntArray = field(repr=False)
    mated: IntArray = field(repr=False)
    mate: FloatArray = field(repr=False)

    def hits(self, threshold: float) -> Reached:
        """Who reaches an oriented threshold in the searches without a mate."""
        return self._of(self.nonmated, np.full(self.nonmated.size, threshold), False)

    def beaten(self) -> Reached:
        """Which non-mates are ahead of the mate in the searches with one; where there is no mate, none are listed."""
        return self._of(self.mated, np.where(np.isneginf(self.mate), np.inf, self.mate), True)

    def _of(self, rows: IntArray, least: FloatArray, strict: bool) -> Reached:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class BehindMatrix(Behind):
    """Looks in a matrix of scores."""

    matrix: ScoreMatrix

    def _of(self, rows: IntArray, least: FloatArray, strict: bool) -> Reached:
        counts = np.zeros(rows.size, dtype=np.int64)
        probes, holders, total = [], [], 0
        for start in range(0, rows.size, MOST_ROWS):
            part = rows[start : start + MOST_ROWS]
            table = self.matrix.fused(part)
            own = self.matrix.own[part]
            table[np.flatnonzero(own >= 0), own[own >= 0]] = -np.inf
            cut = least[start : start + MOST_ROWS, None]
            probe, holder = np.nonzero((table > cut) if strict else (table >= cut))
            counts[start : start + part.size] = np.bincount(probe, minlength=part.size)
            total += probe.size
            if total <= MOST_HITS:
                probes.append(probe + start)
                holders.append(holder)
        if total > MOST_HITS:
            return Reached(counts, None, None)
        none = np.empty(0, dtype=np.int64)
        return Reached(counts, np.concatenate([none, *probes]), np.concatenate([none, *holders]))


@dataclass(frozen=True, eq=False)
class BehindJob(Behind):
    """Goes back to the data."""

    job: SearchJob

    def _of(self, rows: IntArray, least: FloatArray, strict: bool) -> Reached:
        known = rows >= 0
        wanted = np.full(self.job.probes.shape[0], np.inf)
        wanted[rows[known]] = least[known]
        found = reached(self.job, wanted, strict)
        counts = np.zeros(rows.size, dtype=np.int64)
        counts[known] = found.hits[rows[known]]
        if found.probe is None or found.holder is None:
            return Reached(counts, None, None)
        place = np.full(self.job.probes.shape[0], -1, dtype=np.int64)
        place[rows[known]] = np.flatnonzero(known)
        return Reached(counts, place[found.probe], found.holder)


def assemble(
    gallery: LabelArray,
    size: int,
    labels: LabelArray,
    own: IntArray,
    mate: FloatArray,
    holder: IntArray,
    score: FloatArray,
    *,
    rotating: bool,
    distance: bool,
    end: FloatArray | None = None,
    ranks: int | None = None,
    floor: float = -np.inf,
) -> SearchTally:
    """Divide searches into those with a mate and those without.

    Parameters
    ----------
    labels : array, shape (n,)
        Whom each probe shows.
    own : int64 array, shape (n,)
        The position of that person in the gallery, or −1.
    mate, holder, score
        Of each probe, without its own enrolment among the candidates.
    rotating
        Whether searches of enrolled people count as searches without a mate too, their own enrolment left out.
    end
        See `matchbound.counts.searches.NonMated`; by default lists are as long as they are deep, complete where that
        is the gallery.
    ranks
        The largest rank that the lists can decide; by default one less than they are deep, or any.
    """
    depth = score.shape[1]
    if end is None:
        end = np.where(depth < size - (own >= 0), score[:, -1], -np.inf)
    if ranks is None:
        ranks = depth - 1 if np.any(np.isfinite(end)) else max(size, 1)
    mated = own >= 0
    chosen = np.ones(own.size, dtype=bool) if rotating else ~mated
    people, person = np.unique(labels[chosen], return_inverse=True)
    enrolled = np.full(people.size, -1, dtype=np.int64)
    person = person.astype(np.int64).reshape(-1)
    enrolled[person] = own[chosen]
    return SearchTally(
        gallery,
        size,
        NonMated(people, person, enrolled, holder[chosen], score[chosen], end[chosen]),
        Mated(own[mated], mate[mated], holder[mated], score[mated], end[mated]),
        distance,
        ranks,
        floor,
    )
