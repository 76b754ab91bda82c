"""Searches in a gallery (1:N): what `matchbound.search` returns, its curves, its groups, and two systems on them."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.data.candidates import SearchTally
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.metrics import Home
from matchbound.notes import Note
from matchbound.results.claims import Judged
from matchbound.results.groups import SearchGroups
from matchbound.results.interval import check_number, check_rate, check_whole, tail_of
from matchbound.results.number import CannotFit
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
SIZES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0)


@dataclass(frozen=True)
class Hub(Shown):
    """An enrolled person who receives false hits: searches in which nobody else reached the threshold."""

    identity: Any
    hits: int
    share: float


@dataclass(frozen=True, eq=False)
class SearchCurve(Shown):
    """A rate of searches along something, with a pointwise band; arrays of shape (K,).

    `along` and `metric` are ``"fpir"`` and ``"fnir"`` (a trade-off), ``"rank"`` and ``"cmc"``, or ``"size"`` and
    ``"fpir"``; `at` says what is the same all along. `independent`, along sizes, is 1 − (1 − FMR)^N, as if hits were
    independent: always too high.
    """

    along: Literal["fpir", "rank", "size"]
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
        columns = {self.along: self.x, self.metric: self.estimate, "low": self.low, "high": self.high}
        if self.independent is not None:
            columns["independent"] = self.independent
        values = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in values]


@dataclass(frozen=True, eq=False, repr=False)
class Searches(Judged, Shown):
    """Searches of a gallery, with every rate that is reported of them."""

    tally: SearchTally
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
        numbers: list[SearchNumber] = [self.cmc(1)] if self.n_mated else []
        if self.n_mated and self.n_nonmated:
            numbers += [self.fnir_at_fpir(rate) for rate in (0.1, 0.01) if rate * self.n_nonmated >= 1.0]
        rest = {"gallery": self.gallery_size, "mated": self.n_mated, "nonmated": self.n_nonmated}
        return [record for number in numbers for record in number.to_records()] or [rest]

    def _tables(self) -> list[Table]:
        from matchbound.show.columns import number_table

        records = self.to_records()
        if "metric" not in records[0]:
            return list(super()._tables())
        text = (
            f"{self.gallery_size:,} people enrolled; {self.n_mated:,} searches with a mate and {self.n_nonmated:,} "
            f"without; 95% intervals for a random gallery."
        )
        return [replace(number_table(records), note=text)]

    @property
    def gallery_size(self) -> int:
        """N, the enrolled people."""
        return self.tally.size

    @property
    def n_nonmated(self) -> int:
        """Searches of people who are not enrolled (or whose own enrolment was left out)."""
        return self.tally.nonmated.searches

    @property
    def n_mated(self) -> int:
        """Searches of enrolled people."""
        return self.tally.mated.searches

    @property
    def rotating(self) -> bool:
        """Whether people are both searched for and enrolled in the searches behind FPIR."""
        return self.tally.nonmated.rotating

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
        return SearchRate("cmc", None, rank, self.ranked(rank), -np.inf)

    def fnir_at_fpir(self, fpir: float, rank: int = 1) -> FnirAtFpir:
        """FNIR at the threshold where at most a share `fpir` of searches without a mate return a candidate.

        Parameters
        ----------
        fpir, rank
            The target FPIR, between 0 and 1; the rank as for `fnir`.
        """
        threshold = self.threshold_at_fpir(fpir)
        at = -threshold if self.tally.distance else threshold
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
        return self._written(threshold_at(self.best, float(fpir)))

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
        self.tally.check_people(people)
        return replace(self, tally=self.tally.among(people))

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
        self.tally.check_people(known)
        self.oriented(threshold)
        members: dict[Any, set[Any]] = {}
        for person, name in known.items():
            members.setdefault(name, set()).add(person)
        parts = {name: replace(self, tally=self.tally.among(members[name])) for name in sorted(members, key=str)}
        return SearchGroups(parts, float(threshold), rank)

    def trade_off(self, rank: int = 1, level: float = 0.95, *, gallery: str = "random") -> SearchCurve:
        """FNIR against FPIR, from three false positives to one half, with a band that accounts for the thresholds.

        Parameters
        ----------
        rank, level, gallery
            As for `fnir`, `Number.interval` and `threshold_for`.
        """
        for rate in (self._fpir_at(np.inf), self.cmc(1)):
            rate._must_be_defined()
        targets = np.geomspace(min(max(FEWEST_HITS / self.n_nonmated, 1e-6), 0.25), 0.5, POINTS)
        points = [self.fnir_at_fpir(float(target), rank) for target in targets]
        kind = gallery_named(gallery)
        try:
            limits = points[POINTS // 2].along(targets, tail_of(level, "two-sided"), kind)
        except CannotFit:
            return self._curve("fpir", f"rank {rank}", targets, points, level, gallery=kind)
        estimates = np.array([point.estimate for point in points])
        return SearchCurve("fpir", "fnir", f"rank {rank}", level, self.gallery_size, targets, estimates, *limits)

    def cmc_curve(self, ranks: int = 20, level: float = 0.95, *, gallery: str = "random") -> SearchCurve:
        """CMC to a rank, with a pointwise band.

        Parameters
        ----------
        ranks, level, gallery
            Up to which rank; the others as for `trade_off`.
        """
        last = min(ranks, self.tally.ranks, self.gallery_size)
        places = np.arange(1, last + 1)
        if last > MOST_RANKS:
            places = np.unique(np.round(np.geomspace(1, last, POINTS)).astype(np.int64))
        rates = [self.cmc(int(place)) for place in places]
        return self._curve("rank", "any threshold", places, rates, level, gallery=gallery_named(gallery))

    def size_curve(self, threshold: float, sizes: Sequence[int] | None = None, level: float = 0.95) -> SearchCurve:
        """FPIR at a threshold against the size of the gallery, to eight times the one searched, with a band.

        Parameters
        ----------
        threshold, level
            As for `fpir` and `Number.interval`.
        sizes
            Numbers of enrolled people; by default from a quarter of the gallery searched.
        """
        base = self.gallery_size
        chosen = sorted({max(2, round(share * base)) for share in SIZES} if sizes is None else {int(s) for s in sizes})
        first = self.at_gallery_size(chosen[0], threshold)
        kept = np.array([size for size in chosen if size <= MODEL_REACH * base], dtype=np.int64)
        rates = [replace(first, size=int(size)) for size in kept]
        curve = self._curve("size", f"threshold {threshold:.6g}", kept, rates, level)
        independent = 1.0 - (1.0 - min(first.part.mean_hits / base, 1.0)) ** kept.astype(np.float64)
        return replace(curve, independent=np.asarray(independent))

    def plot(
        self,
        kind: Literal["trade-off", "cmc", "size"] = "trade-off",
        *,
        threshold: float | None = None,
        rank: int = 1,
        level: float = 0.95,
        gallery: str = "random",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw FNIR against FPIR, the CMC, or FPIR against the size of the gallery (at a threshold).

        Parameters
        ----------
        kind, threshold, rank
            What to draw, and where.
        level, gallery, ax
            As for `trade_off`; by default on a new figure.
        """
        from matchbound.show.figures import search_figure
        from matchbound.show.mpl import draw

        if kind == "trade-off":
            curve = self.trade_off(rank, level, gallery=gallery)
        elif kind == "cmc":
            curve = self.cmc_curve(level=level, gallery=gallery)
        elif kind != "size":
            raise UsageError(f"kind must be 'trade-off', 'cmc' or 'size'; got {kind!r}")
        elif threshold is None:
            raise UsageError("a plot of FPIR against the size of the gallery is at a threshold; give threshold=")
        else:
            curve = self.size_curve(threshold, level=level)
        return draw(search_figure(curve), ax)

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
        labels, total = self.tally.gallery[order].tolist(), max(int(u.sum()), 1)
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
        part, oriented = self.tally.nonmated, self.oriented(threshold)
        alone = (part.score[:, 0] >= oriented) & (part.score[:, 1] < oriented)
        return np.bincount(part.holder[alone, 0], minlength=self.tally.size).astype(np.float64)

    def ranked(self, rank: int) -> Ranked:
        """The searches of enrolled people at a rank.

        Parameters
        ----------
        rank
            As for `fnir`.
        """
        check_whole(rank, "rank")
        if rank > self.tally.ranks:
            raise DataError(
                f"rank {rank} was asked for, and the candidate lists decide ranks to {self.tally.ranks}; keep more "
                f"candidates, as with search(…, candidates={rank})"
            )
        if rank not in self._ranked:
            part = self.tally.mated
            self._ranked[rank] = at_rank(part.person, part.mate, part.holder, part.score, self.tally.size, int(rank))
        return self._ranked[rank]

    @cached_property
    def _ranked(self) -> dict[int, Ranked]:
        return {}

    @cached_property
    def _unmated(self) -> Unmated:
        part = self.tally.nonmated
        return Unmated(part.person, part.enrolled, part.holder, part.score, self.tally.size)

    def hits(self, threshold: float) -> HitList:
        """Who reaches a threshold in the searches without a mate.

        Parameters
        ----------
        threshold
            As for `fpir`.
        """
        part, reached = self.tally.nonmated, self.tally.reaching(self.oriented(threshold))
        return HitList(part.person, int(part.people.size), *reached, self.tally.size)

    @cached_property
    def _beaten(self) -> HitList:
        """The non-mates that are ahead of the mate in each search."""
        return HitList(self.tally.mated.person, self.tally.size, *self.tally.ahead_of_mates(), self.tally.size)

    def _curve(
        self, along: Any, at: str, x: Any, numbers: Sequence[SearchNumber], level: float, **options: Any
    ) -> SearchCurve:
        """Numbers along something, each with its own interval."""
        for number in numbers[:1]:
            number._must_be_defined()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)
            rows = [(number.estimate, *number.interval(level=level, **options)) for number in numbers]
        metric = {"fpir": "fnir", "rank": "cmc", "size": "fpir"}[along]
        return SearchCurve(along, metric, at, level, self.gallery_size, x, *np.array(rows, dtype=np.float64).T)

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
        oriented = -number if self.tally.distance else number
        if oriented < self.tally.floor:
            word = "above" if self.tally.distance else "below"
            raise DataError(
                f"the candidate lists hold nobody {word} {self._written(self.tally.floor):g}: rates at a threshold of "
                f"{number:g} cannot be counted from them"
            )
        return oriented

    def _written(self, oriented: float) -> float:
        return float(-oriented if self.tally.distance else oriented)
