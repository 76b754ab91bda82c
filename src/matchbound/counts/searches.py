"""What one pass over the searches of a gallery keeps: the best candidates of each search.

A *candidate* is an enrolled identity with its score against the probe; several templates of one identity have been
fused to one score. Scores are oriented: larger means more alike, so distances are negated. Where a list is shorter
than the arrays, it ends in candidates with holder −1 and score −∞.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.errors import DataError


class Reached(NamedTuple):
    """Who reached a score in which searches.

    hits : int64 array, shape (n,)
        How many enrolled people did.
    probe, holder : int64 arrays, shape (H,), or None
        One by one; None where there are too many to list.
    """

    hits: IntArray
    probe: IntArray | None
    holder: IntArray | None


class Scored(Protocol):
    """The data that lists were made from: goes beyond the end of a list."""

    @property
    def searches(self) -> int:
        """How many searches have scores; failed ones, which come after these, have none."""

    def reached(self, least: FloatArray, strict: bool) -> Reached:
        """Enrolled people, the mate left out, who reach (or exceed) the least oriented score of each search."""


@dataclass(frozen=True, eq=False)
class NonMated:
    """Searches of people who are not enrolled, or whose own enrolment was left out.

    people : array, shape (J,)
        Labels of the people searched.
    person : int64 array, shape (n,)
        Who was searched for, positions in `people`.
    enrolled : int64 array, shape (J,)
        The position in the gallery of each person, −1 for people who are not enrolled. Where one is not −1, the
        protocol is rotating: that person's own enrolment was left out of the search.
    row : int64 array, shape (n,)
        The number of each search among all of them.
    holder, score : int64 and float64 arrays, shape (n, k)
        Positions in the gallery of the best candidates, the best one first, and their oriented scores.
    end : float64 array, shape (n,)
        Nobody behind the end of a list has a larger oriented score; −∞ for complete lists.
    """

    people: LabelArray = field(repr=False)
    person: IntArray = field(repr=False)
    enrolled: IntArray = field(repr=False)
    row: IntArray = field(repr=False)
    holder: IntArray = field(repr=False)
    score: FloatArray = field(repr=False)
    end: FloatArray = field(repr=False)

    @property
    def searches(self) -> int:
        """n."""
        return int(self.person.size)

    @property
    def rotating(self) -> bool:
        """Whether some people are both searched for and enrolled."""
        return bool(np.any(self.enrolled >= 0))


@dataclass(frozen=True, eq=False)
class Mated:
    """Searches of people who are enrolled.

    person : int64 array, shape (T,)
        Who was searched for, positions in the gallery.
    mate : float64 array, shape (T,)
        The oriented score of the mate; −∞ where there is none, or where it is behind the end of the list.
    row, holder, score, end
        The candidates that are not the mate, as in `NonMated`.
    """

    person: IntArray = field(repr=False)
    mate: FloatArray = field(repr=False)
    row: IntArray = field(repr=False)
    holder: IntArray = field(repr=False)
    score: FloatArray = field(repr=False)
    end: FloatArray = field(repr=False)

    @property
    def searches(self) -> int:
        """T."""
        return int(self.person.size)


@dataclass(frozen=True, eq=False)
class SearchTally:
    """The best candidates of every search in a gallery.

    gallery : array, shape (N,)
        Labels of the enrolled people.
    distance : bool
        Whether scores are distances; oriented scores are then negated distances.
    ranks : int
        The largest rank that the lists can decide.
    floor : float
        Candidates below this oriented score were not listed.
    source
        The data that the lists were made from; None where there are only the lists.
    """

    gallery: LabelArray = field(repr=False)
    nonmated: NonMated
    mated: Mated
    distance: bool = False
    ranks: int = 1
    floor: float = -np.inf
    source: Scored | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """N."""
        return int(self.gallery.size)

    def check_people(self, people: Collection[Any]) -> None:
        """Raise DataError where people are not named as these searches name them, or none of them takes part."""
        numbers = self.gallery.dtype.kind in "iu"
        for person in people:
            if isinstance(person, str) == numbers:
                given, own = ("text", "whole numbers") if numbers else ("a number", "text")
                raise DataError(
                    f"{person!r} is {given}, and the identities of these searches are {own}; name people as they do"
                )
        known = {*self.gallery.tolist(), *self.nonmated.people.tolist()}
        if people and known.isdisjoint(people):
            raise DataError(f"none of the {len(people)} people given is enrolled or searched for")

    def among(self, people: Collection[Any]) -> SearchTally:
        """The searches for some people only, in the same gallery."""
        chosen, searched, mated = set(people), self.nonmated, self.mated
        kept = np.array([label in chosen for label in searched.people.tolist()], dtype=bool)
        enrolled = np.array([label in chosen for label in self.gallery.tolist()], dtype=bool)
        rows, own = kept[searched.person], enrolled[mated.person]
        place = np.cumsum(kept) - 1

        def part(of: Any, some: Any) -> list[Any]:
            return [getattr(of, name)[some] for name in ("row", "holder", "score", "end")]

        return replace(
            self,
            nonmated=NonMated(
                searched.people[kept], place[searched.person[rows]], searched.enrolled[kept], *part(searched, rows)
            ),
            mated=Mated(mated.person[own], mated.mate[own], *part(mated, own)),
        )

    def reaching(self, threshold: float) -> Reached:
        """Who reaches an oriented threshold in the searches without a mate."""
        part = self.nonmated
        if np.any(part.end >= threshold):
            return self._beyond(
                part.row,
                np.full(part.searches, threshold),
                False,
                f"at threshold {-threshold if self.distance else threshold:g} some candidate lists end before the "
                "scores do: how many more people reach it is not known. Give longer lists, or a stricter threshold",
            )
        return _listed(part, np.full(part.searches, threshold), False)

    def ahead_of_mates(self) -> Reached:
        """The non-mates that are ahead of the mate in each search; all of them where the mate has no score."""
        part, lost = self.mated, np.isneginf(self.mated.mate)
        mate = np.where(lost, np.inf, part.mate)
        if np.any(part.end > mate) or (self.source is None and np.any(lost & np.isfinite(part.end))):
            found = self._beyond(
                part.row,
                mate,
                True,
                "some mates are behind the end of their candidate list: CMC in another gallery needs the number of "
                "non-mates ahead of each mate. Give longer lists",
            )
        else:
            found = _listed(part, mate, True)
        return found._replace(hits=np.where(lost, self.size - 1, found.hits))

    def _beyond(self, row: IntArray, least: FloatArray, strict: bool, why_not: str) -> Reached:
        """Who reaches the least score of some searches, from the data themselves."""
        if self.source is None:
            raise DataError(why_not)
        known = row < self.source.searches
        wanted = np.full(self.source.searches, np.inf)
        wanted[row[known]] = least[known]
        found = self.source.reached(wanted, strict)
        hits = np.zeros(row.size, dtype=np.int64)
        hits[known] = found.hits[row[known]]
        if found.probe is None:
            return Reached(hits, None, None)
        place = np.full(self.source.searches, -1, dtype=np.int64)
        place[row[known]] = np.flatnonzero(known)
        return Reached(hits, place[found.probe], found.holder)


def _listed(part: NonMated | Mated, least: FloatArray, strict: bool) -> Reached:
    """Who reaches the least score of each search, from lists that hold all of them."""
    score = part.score
    probe, place = np.nonzero(score > least[:, None] if strict else score >= least[:, None])
    hits = np.bincount(probe, minlength=part.searches).astype(np.int64)
    return Reached(hits, probe, part.holder[probe, place])
