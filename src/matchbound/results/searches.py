"""Searches in a gallery (1:N): what `matchbound.search` returns, its curves, its groups, and two systems on them."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.data.candidates import Candidates
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.metrics import Home
from matchbound.notes import Note
from matchbound.results.claims import Judged
from matchbound.results.groups import SearchGroups
from matchbound.results.interval import check_number, check_rate, check_whole, tail_of
from matchbound.results.search_rates import (
    MODEL_REACH,
    FnirAtFpir,
    RateAtSize,
    SearchNumber,
    SearchRate,
    Selectivity,
    gallery_named,
)
from matchbound.show.shown import Shown
from matchbound.stats.gallery_sizes import HitList
from matchbound.stats.searches import Ranked, Unmated, at_rank, threshold_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.show.tables import Table

POINTS, FEWEST_HITS = 25, 3
MOST_RANKS = 20
CurveKind = Literal["trade-off", "cmc", "size"]
SIZES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0)


@dataclass(frozen=True)
class Hub(Shown):
    """An enrolled person who receives false hits: searches in which nobody else reached the threshold."""

    identity: Any
    hits: int
    share: float


@dataclass(frozen=True, eq=False)
class SearchCurve(Shown):
    """A rate of searches along FPIR, ranks or sizes of the gallery, with a pointwise band; arrays of shape (K,).

    `at` says what is the same all along. `independent`, along sizes, is 1 − (1 − FMR)^N, as if hits were independent:
    always too high.
    """

    kind: CurveKind
    metric: str
    at: str
    level: float
    searched: int
    x: FloatArray = field(repr=False)
    estimate: FloatArray = field(repr=False)
    low: FloatArray = field(repr=False)
    high: FloatArray = field(repr=False)
    independent: FloatArray | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return int(self.x.size)

    def to_records(self) -> list[dict[str, Any]]:
        along = {"trade-off": "fpir", "cmc": "rank", "size": "size"}[self.kind]
        columns = {along: self.x, self.metric: self.estimate, "low": self.low, "high": self.high}
        if self.independent is not None:
            columns["independent"] = self.independent
        values = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in values]


@dataclass(frozen=True, eq=False, repr=False)
class Searches(Judged, Shown):
    """Searches of a gallery, with every rate that is reported of them.

    `rotating`: searches for enrolled people count as searches without a mate too, their own enrolment left out.
    """

    lists: Candidates
    rotating: bool = False
    notes: tuple[Note, ...] = field(default=())
    group: Mapping[Any, Any] | None = field(default=None, repr=False)
    home: ClassVar[Home] = "searches"

    def __repr__(self) -> str:
        return (
            f"Searches({self.gallery_size:,} enrolled; {self.n_nonmated:,} searches without a mate, "
            f"{self.n_mated:,} with one)"
        )

    def to_records(self) -> list[dict[str, Any]]:
        """CMC at rank 1, and FNIR where FPIR is 10% and 1%, as far as there are searches for them."""
        numbers: list[SearchNumber] = [self.cmc(1)] if self.n_mated and self.lists.cmc_ranks else []
        if self.n_mated and self.n_nonmated:
            numbers += [self.fnir_at_fpir(rate) for rate in (0.1, 0.01) if rate * self.n_nonmated >= 1.0]
        rest = {"gallery": self.gallery_size, "mated": self.n_mated, "nonmated": self.n_nonmated}
        return [record for number in numbers for record in number.to_records()] or [rest]

    def _tables(self) -> list[Table]:
        from matchbound.show.columns import number_table, printed

        records = self.to_records()
        if "metric" not in records[0]:
            return list(super()._tables())
        text = (
            f"{self.gallery_size:,} people enrolled; {self.n_mated:,} searches with a mate and {self.n_nonmated:,} "
            f"without; 95% intervals for a random gallery."
        )
        return [replace(number_table(printed(records, distance=self.lists.distance)), note=text)]

    @property
    def gallery_size(self) -> int:
        """N, the enrolled people."""
        return int(self.lists.gallery.size)

    @property
    def n_nonmated(self) -> int:
        """Searches of people who are not enrolled (or whose own enrolment was left out)."""
        return len(self.nonmated)

    @property
    def n_mated(self) -> int:
        """Searches of enrolled people."""
        return len(self.mated)

    @cached_property
    def nonmated(self) -> Candidates:
        """The lists of searches without a mate."""
        return self.lists if self.rotating else self.lists.take(np.flatnonzero(self.lists.own < 0))

    @cached_property
    def mated(self) -> Candidates:
        """The lists of searches for enrolled people."""
        return self.lists.take(np.flatnonzero(self.lists.own >= 0))

    @property
    def best(self) -> FloatArray:
        """Best oriented scores of searches without a mate, descending."""
        return self._unmated.best

    def fpir(self, threshold: float) -> SearchRate:
        """False positive identification rate: the share of searches without a mate that return a candidate.

        FPIR(t) = #{non-mated searches with a candidate ≥ t} / #{non-mated searches}.

        Parameters
        ----------
        threshold
            The decision threshold, in the units of the scores.
        """
        return self._fpir_at(self.oriented(threshold))

    def fnir(self, threshold: float, rank: int = 1) -> SearchRate:
        """False negative identification rate: searches whose mate is below the threshold or not within the best R.

        FNIR(t, R) = #{mated searches with mate < t or rank > R} / #{mated searches}. A mate tied with a non-mate is
        ahead of it.

        Parameters
        ----------
        threshold, rank
            The mate must reach the threshold and be among this many best candidates.
        """
        return self._fnir_at(self.oriented(threshold), rank)

    def cmc(self, rank: int = 1) -> SearchRate:
        """Cumulative match characteristic: the share of mated searches whose mate is within the best R candidates.

        Parameters
        ----------
        rank
            As for `fnir`.
        """
        ranked = self.ranked(rank)
        if rank > self.lists.cmc_ranks:
            raise DataError(
                f"CMC at rank {rank} is not decided: the candidate lists end at a score, and some mates were not "
                "listed. Give longer lists, or ask for FNIR at a threshold; where searches without candidates failed, "
                "give floor=-inf"
            )
        return SearchRate("cmc", None, rank, ranked, -np.inf)

    def fnir_at_fpir(self, fpir: float, rank: int = 1) -> FnirAtFpir:
        """FNIR at the threshold where at most a share `fpir` of searches without a mate return a candidate.

        Parameters
        ----------
        fpir, rank
            The target FPIR, between 0 and 1; the rank as for `fnir`.
        """
        threshold = self.threshold_at_fpir(fpir)
        at = -threshold if self.lists.distance else threshold
        return FnirAtFpir(float(fpir), threshold, self._fpir_at(at), self._fnir_at(at, rank))

    def selectivity(self, threshold: float) -> Selectivity:
        """The mean number of enrolled people who reach a threshold in a search without a mate.

        Parameters
        ----------
        threshold
            As for `fpir`.
        """
        self.fpir(threshold)._must_be_defined()
        return Selectivity(float(threshold), self.hits(threshold))

    def at_gallery_size(self, size: int, threshold: float | None = None, *, rank: int | None = None) -> RateAtSize:
        """FPIR at a threshold, or CMC at rank 1, in a gallery of another size.

        Parameters
        ----------
        size
            N', how many people would be enrolled.
        threshold, rank
            For FPIR, or for CMC instead; only rank 1 can be carried to another size.
        """
        check_whole(size, "size")
        if (threshold is None) == (rank is None):
            raise UsageError("give a threshold for FPIR at another size, or rank=1 for CMC")
        if rank is not None and rank != 1:
            raise UsageError(f"only CMC at rank 1 can be extrapolated to another gallery size; got rank {rank}")
        if threshold is not None:
            self.fpir(threshold)._must_be_defined()
            return RateAtSize("fpir@size", int(size), float(threshold), None, self.hits(threshold))
        self.cmc(1)._must_be_defined()
        return RateAtSize("cmc@size", int(size), None, rank, self._beaten)

    def threshold_at_fpir(self, fpir: float) -> float:
        """The threshold at which at most a share `fpir` of searches without a mate return a candidate.

        Parameters
        ----------
        fpir
            As for `fnir_at_fpir`.
        """
        check_rate(fpir, "fpir", "0.01")
        self._fpir_at(np.inf)._must_be_defined()
        at = threshold_at(self.best, float(fpir))
        if at < self.lists.floor:
            raise DataError(f"the candidate lists end before an FPIR of {fpir:g} is reached; give longer lists")
        return self._written(at)

    def threshold_for(
        self, fpir: float, confidence: float = 0.95, *, gallery: str = "random", method: str = "auto"
    ) -> SearchRate:
        """FPIR at the most lenient threshold whose one-sided upper bound meets a target; `threshold` says where.

        Parameters
        ----------
        fpir, confidence
            The FPIR to stay below, and the level of its bound.
        gallery
            ``"random"``: enrolled people are a sample; ``"fixed"``: this gallery.
        method
            As for `Number.interval`. DataError where no threshold supports the claim.
        """
        check_rate(fpir, "fpir", "0.01")
        tail_of(confidence, "upper")
        kind = gallery_named(gallery)
        self._fpir_at(np.inf)._must_be_defined()

        def above(place: int) -> SearchRate:
            """FPIR at the threshold just above the best score at a place."""
            return replace(self._fpir_at(float(np.nextafter(self.best[place], np.inf))), gallery=kind)

        def bound(place: int) -> float:
            return above(place).upper_bound(confidence, method)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)
            places = range(min(int(fpir * self.n_nonmated), self.n_nonmated - 1) + 1)
            enough = bisect_right(places, fpir, key=bound)
            if not enough:
                raise DataError(
                    f"no threshold of these searches supports FPIR ≤ {fpir:g} with confidence {confidence:g}: with no "
                    f"hit at all the upper bound is {bound(0):.3g}, from {self.n_nonmated:,} searches of "
                    f"{above(0).n_identities:,} people. More people who are not enrolled are needed"
                )
        return above(enough - 1)

    def among(self, people: Collection[Any]) -> Searches:
        """The searches for some people only, in the same gallery.

        Parameters
        ----------
        people
            Identities to keep, text or whole numbers as in these searches.
            DataError where they are of the other kind, or nobody of them takes part.
        """
        self.lists.check_people(people)
        return replace(self, lists=self.lists.among(people))

    def by_group(self, threshold: float, rank: int = 1, *, group: Mapping[Any, Any] | None = None) -> SearchGroups:
        """FPIR, FNIR and CMC of groups of people searched for, all against the whole gallery.

        Parameters
        ----------
        group
            From identity (text or a whole number, as in these searches) to group; by default the groups of the probes.
        threshold, rank
            As for `fnir`.
        """
        known = self.group if group is None else group
        if not known:
            raise UsageError("the probes have no groups; give group={identity: group}")
        self.lists.check_people(known)
        self.oriented(threshold)
        members: dict[Any, set[Any]] = {}
        for person, name in known.items():
            members.setdefault(name, set()).add(person)
        parts = {name: replace(self, lists=self.lists.among(members[name])) for name in sorted(members, key=str)}
        return SearchGroups(parts, float(threshold), rank)

    def curve(
        self,
        kind: CurveKind = "trade-off",
        *,
        threshold: float | None = None,
        rank: int = 1,
        level: float = 0.95,
        gallery: str = "random",
    ) -> SearchCurve:
        """FNIR against FPIR, CMC to rank 20, or FPIR against the size of the gallery, with a pointwise band.

        Parameters
        ----------
        kind, threshold, rank
            ``"trade-off"``, from three false positives to one half, at a rank; ``"cmc"``; or ``"size"``, from a quarter
            to eight times the gallery searched, at a threshold.
        level, gallery
            As for `Number.interval` and `threshold_for`.
        """
        options: dict[str, Any] = {} if kind == "size" else {"gallery": gallery_named(gallery)}
        metric, at, independent = "fnir", f"rank {rank}", None
        x: Any
        numbers: list[Any]
        if kind == "trade-off":
            self._fpir_at(np.inf)._must_be_defined()
            x = np.geomspace(min(max(FEWEST_HITS / self.n_nonmated, 1e-6), 0.25), 0.5, POINTS)
            numbers = [self.fnir_at_fpir(float(target), rank) for target in x]
        elif kind == "cmc":
            metric, at = "cmc", "any threshold"
            x = np.arange(1, max(min(MOST_RANKS, self.lists.cmc_ranks, self.gallery_size), 1) + 1)
            numbers = [self.cmc(place) for place in x.tolist()]
        elif kind != "size":
            raise UsageError(f"kind must be 'trade-off', 'cmc' or 'size'; got {kind!r}")
        elif threshold is None:
            raise UsageError("FPIR against the size of the gallery is at a threshold; give threshold=")
        else:
            metric, at = "fpir", f"threshold {threshold:.6g}"
            x = np.unique([max(2, round(share * self.gallery_size)) for share in SIZES])
            first = self.at_gallery_size(int(x[0]), threshold)
            x = x[x <= MODEL_REACH * self.gallery_size]
            numbers = [replace(first, size=size) for size in x.tolist()]
            share = min(first.part.mean_hits / self.gallery_size, 1.0)
            independent = np.asarray(1.0 - (1.0 - share) ** x.astype(np.float64))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)
            low, high = np.array([tuple(number.interval(level=level, **options)) for number in numbers]).T
        estimates = np.array([number.estimate for number in numbers])
        return SearchCurve(kind, metric, at, level, self.gallery_size, x, estimates, low, high, independent)

    def plot(self, kind: CurveKind = "trade-off", *, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw a `curve`.

        Parameters
        ----------
        kind, options
            As for `curve`.
        ax
            Axes to draw on, by default new ones.
        """
        from matchbound.show.figures import search_figure
        from matchbound.show.mpl import draw

        return draw(search_figure(self.curve(kind, **options)), ax)

    def hubs(self, threshold: float, top: int = 10) -> tuple[Hub, ...]:
        """The enrolled people who receive the most false hits at a threshold, the first one most.

        Counted are searches without a mate in which one enrolled person alone reaches the threshold: those would be
        right if that person were not enrolled. One person under two names looks like a hub too.

        Parameters
        ----------
        threshold, top
            As for `fpir`; and how many people.
        """
        u = self._single_hits(threshold)
        order = np.argsort(-u, kind="stable")[:top]
        labels, total = self.lists.gallery[order].tolist(), max(int(u.sum()), 1)
        return tuple(Hub(label, int(u[g]), float(u[g]) / total) for label, g in zip(labels, order, strict=True) if u[g])

    def people_with_half(self, threshold: float) -> int:
        """How many enrolled people receive half of the false hits of `hubs`; 0 where there is none.

        Parameters
        ----------
        threshold
            As for `fpir`.
        """
        u = np.sort(self._single_hits(threshold))[::-1]
        return int(np.searchsorted(np.cumsum(u), u.sum() / 2.0) + 1) if u.sum() else 0

    def _single_hits(self, threshold: float) -> FloatArray:
        """u_g, shape (N,)."""
        _, holder = self._unmated.single_hits(self.oriented(threshold))
        return np.bincount(holder, minlength=self.gallery_size).astype(np.float64)

    def ranked(self, rank: int) -> Ranked:
        """The searches of enrolled people at a rank.

        Parameters
        ----------
        rank
            As for `fnir`.
        """
        check_whole(rank, "rank")
        if rank > self.lists.ranks:
            raise DataError(
                f"rank {rank} was asked for, and the candidate lists decide ranks to {self.lists.ranks}; keep more "
                f"candidates, as with search(…, candidates={rank})"
            )
        return self._at_rank(int(rank))

    @cached_property
    def _at_rank(self) -> Callable[[int], Ranked]:
        part, size = self.mated, self.gallery_size
        return cache(lambda rank: at_rank(part.own, part.mate, part.holder, part.score, size, rank))

    @cached_property
    def _unmated(self) -> Unmated:
        part = self.nonmated
        _, first, person = np.unique(part.identity, return_index=True, return_inverse=True)
        return Unmated(person.reshape(-1), part.own[first], part.holder, part.score, self.gallery_size)

    def hits(self, threshold: float) -> HitList:
        """Who reaches a threshold in the searches without a mate.

        Parameters
        ----------
        threshold
            As for `fpir`.
        """
        reached = self.nonmated.reaching(self.oriented(threshold))
        return HitList(self._unmated.person, self._unmated.people, *reached, self.gallery_size)

    @cached_property
    def _beaten(self) -> HitList:
        """The non-mates that are ahead of the mate in each search."""
        return HitList(self.mated.own, self.gallery_size, *self.mated.ahead_of_mates(), self.gallery_size)

    def _fpir_at(self, oriented: float) -> SearchRate:
        return SearchRate("fpir", self._written(oriented), None, self._unmated, oriented)

    def _fnir_at(self, oriented: float, rank: int) -> SearchRate:
        return SearchRate("fnir", self._written(oriented), rank, self.ranked(rank), oriented)

    def oriented(self, threshold: float) -> float:
        """A threshold as an oriented score, of which larger ones are more alike.

        Parameters
        ----------
        threshold
            In the units of the scores; one beyond which nobody was listed is an error.
        """
        number = check_number(threshold, "threshold", finite=True)
        oriented = -number if self.lists.distance else number
        if oriented < self.lists.floor:
            word = "above" if self.lists.distance else "below"
            raise DataError(
                f"the candidate lists hold nobody {word} {self._written(self.lists.floor):g}: rates at a threshold of "
                f"{number:g} cannot be counted from them"
            )
        return oriented

    def _written(self, oriented: float) -> float:
        return float(-oriented if self.lists.distance else oriented)
