"""What one pass over the searches of a gallery keeps: the best candidates of each search.

A *candidate* is an enrolled identity with its score against the probe; several templates of one identity have been
fused to one score. Scores are oriented: larger means more alike, so distances are negated. Where a list is shorter
than the arrays, it ends in candidates with holder −1 and score −∞.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.errors import DataError


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
    holder : int64 array, shape (n, k)
        Positions in the gallery of the best candidates, the best one first.
    score : float64 array, shape (n, k)
        Their oriented scores.
    end : float64 array, shape (n,)
        Nobody behind the end of a list has a larger oriented score; −∞ for complete lists.
    """

    people: LabelArray = field(repr=False)
    person: IntArray = field(repr=False)
    enrolled: IntArray = field(repr=False)
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
        The oriented score of the person's own enrolment; −∞ where it cannot be among the candidates.
    holder, score, end : arrays, shapes (T, k), (T, k) and (T,)
        The best candidates that are not the mate, as in `NonMated`.
    """

    person: IntArray = field(repr=False)
    mate: FloatArray = field(repr=False)
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
    size : int
        N, which may exceed the labels that are known.
    distance : bool
        Whether scores are distances; oriented scores are then negated distances.
    ranks : int
        The largest rank that the lists can decide.
    floor : float
        Candidates below this oriented score were not listed.
    """

    gallery: LabelArray = field(repr=False)
    size: int
    nonmated: NonMated
    mated: Mated
    distance: bool = False
    ranks: int = 1
    floor: float = -np.inf

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
        of_person = np.array([label in chosen for label in searched.people.tolist()], dtype=bool)
        enrolled = np.array([label in chosen for label in self.gallery.tolist()], dtype=bool)
        enrolled = np.append(enrolled, np.zeros(max(self.size - enrolled.size, 0), dtype=bool))
        rows, own = of_person[searched.person], enrolled[mated.person]
        place = np.cumsum(of_person) - 1
        part = NonMated(
            searched.people[of_person],
            place[searched.person[rows]].astype(np.int64),
            searched.enrolled[of_person],
            searched.holder[rows],
            searched.score[rows],
            searched.end[rows],
        )
        rest = Mated(mated.person[own], mated.mate[own], mated.holder[own], mated.score[own], mated.end[own])
        return replace(self, nonmated=part, mated=rest)
