"""Candidate lists of searches, from here or elsewhere, matrices of scores, and the searches with and without a mate.

A *candidate* is an enrolled identity with its score against the probe; several templates of one identity have been
fused to one score. Scores are oriented: larger means more alike, so distances are negated. Where a list is shorter
than the arrays, it ends in candidates with holder −1 and score −∞.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.data.labels import as_labels
from matchbound.data.scores import check_finite
from matchbound.errors import DataError, UsageError
from matchbound.notes import Note, as_notes


class Reached(NamedTuple):
    """How many enrolled people reached a score in each search, shape (n,), and each hit, unless there are too many."""

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
class CandidateLists:
    """Searches with their candidate lists: those for a mate, or those without one.

    - people, shape (J,): labels of the people searched; for searches with a mate, of everybody enrolled.
    - enrolled, shape (J,): the position in the gallery of each person, −1 for people who are not enrolled.
    - person, shape (n,): who was searched for, positions in `people`.
    - row, shape (n,): the number of each search among all of them.
    - mate, holder, score, end: as for `Candidates`.
    """

    people: LabelArray = field(repr=False)
    enrolled: IntArray = field(repr=False)
    person: IntArray = field(repr=False)
    mate: FloatArray = field(repr=False)
    row: IntArray = field(repr=False)
    holder: IntArray = field(repr=False)
    score: FloatArray = field(repr=False)
    end: FloatArray = field(repr=False)

    @property
    def searches(self) -> int:
        return int(self.person.size)

    @property
    def rotating(self) -> bool:
        """Whether some people are enrolled: of searches without a mate, their own enrolment was left out."""
        return bool(np.any(self.enrolled >= 0))

    def of(self, people: Collection[Any]) -> CandidateLists:
        rows = np.array([label in people for label in self.people.tolist()], dtype=bool)[self.person]
        own = {name: getattr(self, name)[rows] for name in ("person", "mate", "row", "holder", "score", "end")}
        return replace(self, **own)

    def reaching(self, least: FloatArray, strict: bool) -> Reached:
        """Who reaches (or exceeds) the least score of each search; the lists hold all of them."""
        cut = least[:, None]
        probe, place = np.nonzero(self.score > cut if strict else self.score >= cut)
        hits = np.bincount(probe, minlength=self.searches).astype(np.int64)
        return Reached(hits, probe, self.holder[probe, place])


@dataclass(frozen=True, eq=False)
class SearchTally:
    """The best candidates of every search in a gallery.

    - gallery, shape (N,): labels of the enrolled people.
    - nonmated: searches of people who are not enrolled, or whose own enrolment was left out (a rotating protocol).
    - distance: whether scores are distances; oriented scores are then negated distances.
    - ranks: the largest rank that the lists can decide.
    - floor: candidates below this oriented score were not listed.
    - source: the data that the lists were made from; None where there are only the lists.
    """

    gallery: LabelArray = field(repr=False)
    nonmated: CandidateLists
    mated: CandidateLists
    distance: bool = False
    ranks: int = 1
    floor: float = -np.inf
    source: Scored | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
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
        if people and {*self.gallery.tolist(), *self.nonmated.people.tolist()}.isdisjoint(people):
            raise DataError(f"none of the {len(people)} people given is enrolled or searched for")

    def among(self, people: Collection[Any]) -> SearchTally:
        """The searches for some people only, in the same gallery."""
        chosen, nonmated = set(people), self.nonmated
        kept = np.array([label in chosen for label in nonmated.people.tolist()], dtype=bool)
        part = nonmated.of(chosen)
        return replace(
            self,
            nonmated=replace(
                part,
                people=part.people[kept],
                enrolled=part.enrolled[kept],
                person=(np.cumsum(kept) - 1)[part.person],
            ),
            mated=self.mated.of(chosen),
        )

    def reaching(self, threshold: float) -> Reached:
        """Who reaches an oriented threshold in the searches without a mate."""
        part = self.nonmated
        least = np.full(part.searches, threshold)
        if not np.any(part.end >= threshold):
            return part.reaching(least, False)
        return self._beyond(
            part.row,
            least,
            False,
            f"at threshold {-threshold if self.distance else threshold:g} some candidate lists end before the scores "
            "do: how many more people reach it is not known. Give longer lists, or a stricter threshold",
        )

    def ahead_of_mates(self) -> Reached:
        """The non-mates that are ahead of the mate in each search; all of them where the mate has no score."""
        part, lost = self.mated, np.isneginf(self.mated.mate)
        mate = np.where(lost, np.inf, part.mate)
        if np.any(part.end > mate) or (self.source is None and np.any(lost & np.isfinite(part.end))):
            reached = self._beyond(
                part.row,
                mate,
                True,
                "some mates are behind the end of their candidate list: CMC in another gallery needs the number of "
                "non-mates ahead of each mate. Give longer lists",
            )
        else:
            reached = part.reaching(mate, True)
        return reached._replace(hits=np.where(lost, self.size - 1, reached.hits))

    def _beyond(self, row: IntArray, least: FloatArray, strict: bool, why_not: str) -> Reached:
        """Who reaches the least score of some searches, from the data themselves."""
        if self.source is None:
            raise DataError(why_not)
        scored = row < self.source.searches
        wanted = np.full(self.source.searches, np.inf)
        wanted[row[scored]] = least[scored]
        reached = self.source.reached(wanted, strict)
        hits = np.zeros(row.size, dtype=np.int64)
        hits[scored] = reached.hits[row[scored]]
        if reached.probe is None:
            return Reached(hits, None, None)
        place = np.full(self.source.searches, -1, dtype=np.int64)
        place[row[scored]] = np.flatnonzero(scored)
        return Reached(hits, place[reached.probe], reached.holder)


ROWS_AT_ONCE = 1024
# Hits that are listed one by one; beyond this, only how many there are.
MOST_HITS = 50_000_000


@dataclass(frozen=True, eq=False)
class ScoreMatrix:
    """Scores of every probe with every template; what is behind the end of lists made from it.

    - scores, shape (n, m): as given; oriented by `sign`.
    - owner, shape (m,), and own, shape (n,): the enrolled person of each template and of each probe (or −1).
    """

    scores: NDArray[Any] = field(repr=False)
    owner: IntArray = field(repr=False)
    own: IntArray = field(repr=False)
    size: int
    sign: float
    fuse: Literal["max", "mean"]

    def fused(self, rows: slice | IntArray) -> FloatArray:
        """Oriented scores of some probes, one per enrolled person, −∞ for people without a template."""
        part = self.sign * np.asarray(self.scores[rows], dtype=np.float64)
        order = np.argsort(self.owner, kind="stable")
        people = self.owner[order]
        begins = np.flatnonzero(np.append(True, people[1:] != people[:-1]))
        out = np.full((part.shape[0], self.size), -np.inf)
        if self.fuse == "max":
            out[:, people[begins]] = np.maximum.reduceat(part[:, order], begins, axis=1)
        else:
            counts = np.diff(np.append(begins, people.size))
            out[:, people[begins]] = np.add.reduceat(part[:, order], begins, axis=1) / counts
        return out

    @property
    def searches(self) -> int:
        return int(self.own.size)

    def others(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """The mates' oriented scores of some probes, −∞ without one, and `fused` scores in which they are −∞."""
        part, own = self.fused(rows), self.own[rows]
        mated = np.flatnonzero(own >= 0)
        mate = np.full(rows.size, -np.inf)
        mate[mated] = part[mated, own[mated]]
        part[mated, own[mated]] = -np.inf
        return mate, part

    def reached(self, least: FloatArray, strict: bool) -> Reached:
        hits = np.zeros(self.searches, dtype=np.int64)
        pairs: list[IntArray] = [np.empty((2, 0), dtype=np.int64)]
        for start in range(0, self.searches, ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, self.searches))
            _, part = self.others(rows)
            cut = least[rows, None]
            found = np.stack(np.nonzero(part > cut if strict else part >= cut))
            hits[rows] = np.bincount(found[0], minlength=rows.size)
            found[0] += start
            pairs.append(found if hits.sum() <= MOST_HITS else found[:, :0])
        if hits.sum() > MOST_HITS:
            return Reached(hits, None, None)
        probe, holder = np.concatenate(pairs, axis=1)
        return Reached(hits, probe, holder)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidate lists of searches, as another system returned them; `matchbound.search` counts them.

    - gallery, shape (N,): the enrolled identities, sorted.
    - identity, shape (n,): whom each search shows.
    - own, shape (n,): the position of that person in the gallery, or −1.
    - mate, shape (n,): the oriented score of the mate; −∞ where it was not listed or there is none.
    - holder, score, shape (n, k): the other candidates, the best first; −1 and −∞ behind the end of a list.
    - end, shape (n,): nobody who was not listed has a larger oriented score; −∞ for lists that are complete.
    - listed, shape (n,): how many identities each search listed.
    - floor: oriented scores below this were not listed.
    - distance: whether small scores mean "same".
    - source: the data that the lists were made from, where there are more than the lists.

    See Also
    --------
    read_candidates, search

    Examples
    --------
    >>> import matchbound as mb
    >>> scores = [[0.9, 0.3, 0.1], [0.2, 0.4, 0.6]]
    >>> lists = mb.Candidates.from_matrix(scores, gallery=["ann", "bob", "eve"], identity=["ann", "bob"])
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
    listed: IntArray = field(repr=False)
    floor: float = -np.inf
    distance: bool = False
    source: Scored | None = field(default=None, repr=False)
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return int(self.own.size)

    @property
    def gallery_size(self) -> int:
        """N."""
        return int(self.gallery.size)

    def tally(self, rotating: bool) -> SearchTally:
        """The searches with a mate and those without.

        Parameters
        ----------
        rotating
            Whether searches of enrolled people count as searches without a mate too, their own enrolment left out.
        """
        mated = np.flatnonzero(self.own >= 0)
        rest = np.arange(len(self)) if rotating else np.flatnonzero(self.own < 0)
        people, person = np.unique(self.identity[rest], return_inverse=True)
        person = person.astype(np.int64).reshape(-1)
        enrolled = np.full(people.size, -1, dtype=np.int64)
        enrolled[person] = self.own[rest]
        unseen = mated[np.isfinite(self.end[mated]) & np.isneginf(self.mate[mated])]
        ranks = int(self.listed[unseen].min()) if unseen.size else self.gallery_size
        if self.source is not None and np.isfinite(self.end).any():
            ranks = min(ranks, self.score.shape[1] - 1)

        def lists(rows: IntArray) -> tuple[Any, ...]:
            return self.mate[rows], rows, self.holder[rows], self.score[rows], self.end[rows]

        everybody = np.arange(self.gallery_size)
        return SearchTally(
            self.gallery,
            CandidateLists(people, enrolled, person, *lists(rest)),
            CandidateLists(self.gallery, everybody, self.own[mated], *lists(mated)),
            self.distance,
            ranks,
            self.floor,
            self.source,
        )

    @classmethod
    def from_scores(
        cls,
        gallery: LabelArray,
        identity: LabelArray,
        own: IntArray,
        best: tuple[FloatArray, IntArray, FloatArray],
        distance: bool,
        source: Scored,
        notes: tuple[Note, ...] = (),
    ) -> Candidates:
        """Lists cut from the scores of every probe with everybody enrolled.

        Parameters
        ----------
        gallery, identity, own, best, distance, source, notes
            As for the class; `best` are (mate, holder, score), and failed searches come last.
        """
        mate, holder, score = best
        depth = score.shape[1]
        end = np.where(depth < gallery.size - (own >= 0), score[:, -1], -np.inf)
        listed = np.full(own.size, min(depth, gallery.size), dtype=np.int64)
        return cls(gallery, identity, own, mate, holder, score, end, listed, -np.inf, distance, source, notes)

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
        notes: Sequence[str] = (),
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
            The threshold below (for distances, above) which nobody was returned, where there was one.
        distance, notes
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
        bottom = -np.inf
        if floor is not None:
            bottom = sign * float(floor)
        elif np.any(lengths != longest) and oriented.size:
            bottom = float(oriented.min())
        least = np.full(own.size, np.inf)
        np.minimum.at(least, rows, oriented)

        order = np.lexsort((-oriented, rows))  # by search, the best first; ties stay in their order
        _, best = np.unique(rows[order] * people.size + holder[order], return_index=True)
        order = order[np.sort(best)]  # each identity once, with its best score
        rows, holder, oriented = rows[order], holder[order], oriented[order]
        listed = np.bincount(rows, minlength=own.size).astype(np.int64)
        cut = (lengths == longest) & (listed < people.size)
        end = np.where(cut & (lengths > 0), least, -np.inf)
        mated = holder == own[rows]
        mate = np.full(own.size, -np.inf)
        mate[rows[mated]] = oriented[mated]
        rows, holder, oriented = rows[~mated], holder[~mated], oriented[~mated]
        place = np.arange(rows.size) - np.searchsorted(rows, rows)
        others, scores = _empty_lists(own.size, max(2, longest))
        others[rows, place], scores[rows, place] = holder, oriented
        every_note = list(as_notes(notes))
        if np.any(cut):
            short = cut & np.isneginf(scores[:, 1])
            scores[short, 1] = end[short]
            text = (
                f"lists end at {longest} candidates of {people.size:,} enrolled people: ranks to {longest} and FPIR at "
                "any threshold can be counted; how many people reach a threshold, and so selectivity and other gallery "
                "sizes, only above the end of every list"
            )
            every_note.append(Note("short-lists", text))
        if np.isfinite(bottom):
            text = f"nobody beyond a score of {sign * bottom:g} was listed: thresholds beyond it are refused"
            every_note.append(Note("listed-from", text))
        return cls(people, shown, own, mate, others, scores, end, listed, bottom, distance, None, tuple(every_note))

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

    @classmethod
    def from_matrix(
        cls,
        scores: ArrayLike,
        *,
        gallery: ArrayLike,
        identity: ArrayLike,
        distance: bool = False,
        fuse: Literal["max", "mean"] = "max",
        candidates: int = 50,
    ) -> Candidates:
        """Lists from the scores of every probe with every template, shape (n, m), which may be a memory map.

        Parameters
        ----------
        scores, gallery, identity, distance
            As for `from_arrays`; scores have shape (n, m).
        fuse
            What several templates of one identity count as: their best score or their mean.
        candidates
            How many of each list are kept.
        """
        table = scores if isinstance(scores, np.ndarray) else np.asarray(scores, dtype=np.float64)
        templates, shown = as_labels(gallery, "gallery"), as_labels(identity, "identity")
        if table.ndim != 2 or table.dtype.kind not in "iuf":
            raise DataError(f"scores must be a matrix of numbers; got {table.dtype} of shape {table.shape}")
        if table.shape != (shown.size, templates.size):
            raise DataError(
                f"scores have shape {table.shape}; with {shown.size} probes and {templates.size} templates it must be "
                f"({shown.size}, {templates.size})"
            )
        if fuse not in ("max", "mean"):
            raise UsageError(f"fuse must be 'max' or 'mean'; got {fuse!r}")
        people, owner = np.unique(templates, return_inverse=True)
        own, owner = _positions(people, shown), owner.astype(np.int64).reshape(-1)
        matrix = ScoreMatrix(table, owner, own, int(people.size), -1.0 if distance else 1.0, fuse)
        depth = max(2, min(int(candidates) + 1, people.size))
        mate = np.empty(own.size)
        holder, score = _empty_lists(own.size, depth)
        for start in range(0, own.size, ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, own.size))
            bad = np.argwhere(~np.isfinite(np.asarray(table[rows], dtype=np.float64)))
            if bad.size:
                raise DataError(f"scores: row {start + bad[0, 0]}, column {bad[0, 1]} is not a finite number")
            mate[rows], part = matrix.others(rows)
            best = np.argsort(-part, axis=1, kind="stable")[:, :depth]
            score[rows, : best.shape[1]] = values = np.take_along_axis(part, best, axis=1)
            holder[rows, : best.shape[1]] = np.where(np.isneginf(values), -1, best)
        return cls.from_scores(people, shown, own, (mate, holder, score), distance, matrix)


def _positions(people: LabelArray, labels: LabelArray) -> IntArray:
    """Positions of labels in the gallery, −1 where they are not enrolled."""
    if not people.size:
        raise DataError("the gallery is empty: nobody is enrolled")
    if labels.size and (people.dtype.kind in "iu") != (labels.dtype.kind in "iu"):
        raise DataError("identities are whole numbers on one side and text on the other; write them alike")
    if not labels.size:
        return np.empty(0, dtype=np.int64)
    at = np.minimum(np.searchsorted(people, labels), people.size - 1)
    return np.where(people[at] == labels, at, -1).astype(np.int64)


def _empty_lists(n: int, depth: int) -> tuple[IntArray, FloatArray]:
    """Holders and scores of lists without candidates, shape (n, depth) each."""
    return np.full((n, depth), -1, dtype=np.int64), np.full((n, depth), -np.inf)
