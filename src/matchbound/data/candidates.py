"""Candidate lists of searches, from here or elsewhere.

A *candidate* is an enrolled identity with its score against the probe; several templates of one identity have been
fused to one score. Scores are oriented: larger means more alike, so distances are negated. Where a list is shorter
than the arrays, it ends in candidates with holder −1 and score −∞.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import BoolArray, FloatArray, IntArray, LabelArray
from matchbound.data.labels import as_labels
from matchbound.data.values import check_finite
from matchbound.errors import DataError, UsageError
from matchbound.notes import Note

# Lists that end too early are completed where this takes at most so many scores and gives at most so many hits.
MOST_SCORES, MOST_HITS = 2_000_000_000, 50_000_000
# So many scores are held at a time.
SCORES_AT_ONCE = 1 << 24


class Reached(NamedTuple):
    """How many enrolled people reached a score in each search, shape (n,), and each hit: its search and its person."""

    hits: IntArray
    probe: IntArray
    holder: IntArray


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidate lists of searches, as another system returned them; `matchbound.search` counts them.

    - gallery, shape (N,): the enrolled identities, sorted.
    - identity, shape (n,): whom each search shows.
    - own, shape (n,): the position of that person in the gallery, or −1.
    - mate, shape (n,): the oriented score of the mate; −∞ where it was not listed or there is none.
    - holder, score, shape (n, k): the other candidates, the best first; −1 and −∞ behind the end of a list.
    - end, shape (n,): nobody who was not listed has a larger oriented score; −∞ for lists that are complete.
    - ranks: the largest rank that the lists can decide.
    - floor: oriented scores below this were not listed.
    - distance: whether small scores mean "same".
    - row, shape (n,), and scores: which search is which in the data, and the oriented scores of some searches there
      with everybody, where the lists were made from data that are at hand.

    See Also
    --------
    read_candidates, search

    Examples
    --------
    >>> import matchbound as mb
    >>> lists = mb.Candidates.from_lists(
    ...     [0, 0, 1, 1], ["ann", "bob", "bob", "eve"], [0.9, 0.3, 0.4, 0.6],
    ...     identity=["ann", "bob"], gallery=["ann", "bob", "eve"],
    ... )
    >>> len(lists), lists.gallery_size, lists.mate.tolist()
    (2, 3, [0.9, 0.4])
    """

    gallery: LabelArray = field(repr=False)
    identity: LabelArray = field(repr=False)
    own: IntArray = field(repr=False)
    mate: FloatArray = field(repr=False)
    holder: IntArray = field(repr=False)
    score: FloatArray = field(repr=False)
    end: FloatArray = field(repr=False)
    ranks: int
    floor: float = -np.inf
    distance: bool = False
    notes: tuple[Note, ...] = ()
    row: IntArray | None = field(default=None, repr=False)
    scores: Callable[[IntArray], FloatArray] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return int(self.own.size)

    @property
    def gallery_size(self) -> int:
        """N."""
        return int(self.gallery.size)

    @property
    def cmc_ranks(self) -> int:
        """The largest rank that the lists decide without a threshold.

        Where lists end at a score, a mate that was not listed may have any rank beyond the end of its list.
        """
        lost = (self.own >= 0) & np.isneginf(self.mate)
        if not (np.isfinite(self.floor) and lost.any()):
            return self.ranks
        return min(self.ranks, int(np.count_nonzero(self.holder[lost] >= 0, axis=1).min()))

    def take(self, rows: IntArray) -> Candidates:
        """Some of the searches.

        Parameters
        ----------
        rows
            Their places, ascending.
        """
        each = ("identity", "own", "mate", "holder", "score", "end", *(() if self.row is None else ("row",)))
        return replace(self, **{name: getattr(self, name)[rows] for name in each})

    def among(self, people: Collection[Any]) -> Candidates:
        """The searches for some people only, in the same gallery.

        Parameters
        ----------
        people
            Their identities.
        """
        chosen = set(people)
        return self.take(np.flatnonzero([label in chosen for label in self.identity.tolist()]))

    def check_people(self, people: Collection[Any]) -> None:
        """Raise DataError where people are not named as these searches name them, or none of them takes part.

        Parameters
        ----------
        people
            As for `among`.
        """
        numbers = self.gallery.dtype.kind in "iu"
        for person in people:
            if isinstance(person, str) == numbers:
                given, own = ("text", "whole numbers") if numbers else ("a number", "text")
                raise DataError(
                    f"{person!r} is {given}, and the identities of these searches are {own}; name people as they do"
                )
        if people and {*self.gallery.tolist(), *self.identity.tolist()}.isdisjoint(people):
            raise DataError(f"none of the {len(people)} people given is enrolled or searched for")

    def reaching(self, threshold: float) -> Reached:
        """Who reaches an oriented threshold in each search.

        Parameters
        ----------
        threshold
            DataError where some lists end before it.
        """
        at = -threshold if self.distance else threshold
        return self._reached(
            np.full(len(self), threshold),
            self.end >= threshold,
            f"at threshold {at:g} some candidate lists end before the scores do: how many more people reach it is "
            "not known. Give longer lists, as with search(…, candidates=1000), or a stricter threshold",
        )

    def ahead_of_mates(self) -> Reached:
        """The non-mates that are ahead of the mate in each search; all of them where the mate has no score."""
        lost = np.isneginf(self.mate)
        mate = np.where(lost, np.inf, self.mate)
        short = self.end > mate
        if self.scores is None:  # a mate that was not listed may have a score after all
            short |= lost & np.isfinite(np.maximum(self.end, self.floor))
        ahead = self._reached(
            np.nextafter(mate, np.inf),
            short,
            "some mates are behind the end of their candidate list: CMC in another gallery needs the number of "
            f"non-mates ahead of each mate. Give longer lists, as with search(…, candidates={self.gallery_size})",
        )
        return ahead._replace(hits=np.where(lost, self.gallery_size - 1, ahead.hits))

    def _reached(self, least: FloatArray, short: BoolArray, why_not: str) -> Reached:
        """Who reaches the least score of each search; of lists that are too short, by the data they were made from."""
        probe, place = np.nonzero(self.score >= np.where(short, np.inf, least)[:, None])
        probes, holders = [probe], [self.holder[probe, place]]
        rows = np.flatnonzero(short)
        if rows.size:
            if self.scores is None or self.row is None or rows.size * self.gallery_size > MOST_SCORES:
                raise DataError(why_not)
            step = max(SCORES_AT_ONCE // self.gallery_size, 1)
            for some in np.split(rows, range(step, rows.size, step)):
                probe, person = np.nonzero(self.scores(self.row[some]) >= least[some, None])
                probes.append(some[probe])
                holders.append(person)
                if sum(part.size for part in holders) > MOST_HITS:
                    raise DataError(why_not)
        probe, holder = np.concatenate(probes), np.concatenate(holders)
        return Reached(np.bincount(probe, minlength=len(self)).astype(np.int64), probe, holder)

    @classmethod
    def from_lists(
        cls,
        search: ArrayLike,
        candidate: ArrayLike,
        score: ArrayLike,
        *,
        identity: ArrayLike,
        gallery: ArrayLike,
        distance: bool = False,
        floor: float | None = None,
    ) -> Candidates:
        """Lists from rows (search, candidate, score), in any order.

        Parameters
        ----------
        search, candidate, score : arrays, shape (rows,)
            The number of each row's search, 0..n − 1, the enrolled identity returned and its score. Several templates
            of one identity become the best of them.
        identity : array, shape (n,)
            Whom each search shows; searches that returned nobody have no rows.
        gallery : array
            All enrolled identities, also those who were never returned.
        floor
            The threshold below (for distances, above) which nobody was returned; by default, where lists differ in
            length, the last score listed. −∞ (∞) says that there was none, and that searches without candidates failed.
        distance
            As for the class.
        """
        people = np.unique(as_labels(gallery, "gallery"))
        shown = as_labels(identity, "identity")
        own = _positions(people, shown)
        returned = as_labels(candidate, "candidate") if np.size(candidate) else people[:0]
        holder = _positions(people, returned)
        unknown = np.flatnonzero(holder < 0)
        if unknown.size:
            raise DataError(
                f"row {unknown[0]}: {returned[unknown[0]]} was returned and is not in the gallery ({unknown.size} such "
                "rows); give all enrolled identities"
            )
        values = np.asarray(score, dtype=np.float64).reshape(-1)
        check_finite(values, lambda row: f"row {row}: the score is")
        rows = np.asarray(search, dtype=np.int64).reshape(-1)
        if rows.size and not (int(rows.min()) >= 0 and int(rows.max()) < own.size):
            raise UsageError(f"search must hold numbers from 0 to {own.size - 1}")
        sign = -1.0 if distance else 1.0
        oriented = sign * values
        lengths = np.bincount(rows, minlength=own.size)
        longest = int(lengths.max(initial=0))
        bottom = -np.inf if floor is None else sign * float(floor)
        if floor is None and np.any(lengths != longest) and oriented.size:
            bottom = float(oriented.min())
        least = np.full(own.size, np.inf)
        np.minimum.at(least, rows, oriented)

        order = np.lexsort((-oriented, rows))  # by search, the best first; ties stay in their order
        _, best = np.unique(rows[order] * people.size + holder[order], return_index=True)
        order = order[np.sort(best)]  # each identity once, with its best score
        rows, holder, oriented = rows[order], holder[order], oriented[order]
        listed = np.bincount(rows, minlength=own.size)
        cut = (lengths == longest) & (listed < people.size)
        end = np.where(cut & (lengths > 0), least, -np.inf)
        mated = holder == own[rows]
        mate = np.full(own.size, -np.inf)
        mate[rows[mated]] = oriented[mated]
        rows, holder, oriented = rows[~mated], holder[~mated], oriented[~mated]
        place = np.arange(rows.size) - np.searchsorted(rows, rows)
        shape = own.size, max(2, longest)
        others, scores = np.full(shape, -1, dtype=np.int64), np.full(shape, -np.inf)
        others[rows, place], scores[rows, place] = holder, oriented
        lost = np.isfinite(end) & (own >= 0) & np.isneginf(mate)
        ranks = int(listed[lost].min()) if lost.any() else int(people.size)
        notes: list[Note] = []
        short = cut & np.isneginf(scores[:, 1])
        scores[short, 1] = end[short]
        if np.any(cut) and not np.isfinite(bottom):
            text = (
                f"lists end at {longest} candidates of {people.size:,} enrolled people: ranks to {longest} and FPIR at "
                "any threshold can be counted; how many people reach a threshold, and so selectivity and other gallery "
                "sizes, only above the end of every list"
            )
            notes.append(Note("short-lists", text))
        if np.isfinite(bottom):
            text = (
                f"nobody beyond a score of {sign * bottom:g} was listed: thresholds beyond it are refused, and so are "
                "CMC at ranks that lists without the mate do not reach, and other gallery sizes where lists end early"
            )
            notes.append(Note("listed-from", text))
        return cls(people, shown, own, mate, others, scores, end, ranks, bottom, distance, tuple(notes))

    @classmethod
    def from_arrays(
        cls,
        indices: ArrayLike,
        scores: ArrayLike,
        *,
        gallery: ArrayLike,
        identity: ArrayLike,
        distance: bool = False,
    ) -> Candidates:
        """Lists as FAISS, hnswlib and other indexes return them: one row per search, the k nearest templates in it.

        Parameters
        ----------
        indices : whole numbers, shape (n, k)
            Row numbers of templates; −1 where there are fewer.
        scores : shape (n, k)
        gallery : array, shape (m,)
            The identity of each template.
        identity, distance
            As for the class; ``IndexFlatL2`` gives distances.
        """
        places, values = np.asarray(indices), np.asarray(scores, dtype=np.float64)
        if places.ndim != 2 or places.shape != values.shape or places.dtype.kind not in "iu":
            raise DataError(
                f"indices and scores must be arrays of one shape (searches, k), indices whole numbers; got "
                f"{places.shape} of {places.dtype} and {values.shape}"
            )
        templates = as_labels(gallery, "gallery")
        known = places >= 0
        if known.any() and int(places.max()) >= templates.size:
            raise DataError(f"indices hold {int(places.max())}, and the gallery has {templates.size} templates")
        row = np.nonzero(known)[0]
        return cls.from_lists(
            row, templates[places[known]], values[known], identity=identity, gallery=templates, distance=distance
        )


def _positions(people: LabelArray, labels: LabelArray) -> IntArray:
    """Positions of labels in the gallery, −1 where they are not enrolled."""
    if not people.size:
        raise DataError("the gallery is empty: nobody is enrolled")
    if not labels.size:
        return np.empty(0, dtype=np.int64)
    if (people.dtype.kind in "iu") != (labels.dtype.kind in "iu"):
        raise DataError("identities are whole numbers on one side and text on the other; write them alike")
    at = np.minimum(np.searchsorted(people, labels), people.size - 1)
    return np.where(people[at] == labels, at, -1).astype(np.int64)
