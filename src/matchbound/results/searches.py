"""Searches in a gallery (1:N): what `matchbound.search` returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from matchbound.counts.searches import SearchTally
from matchbound.errors import DataError, UsageError
from matchbound.notes import Note
from matchbound.results.interval import check_number, check_rate, check_whole, tail_of
from matchbound.results.search_points import FnirAtFpir, RateAtSize
from matchbound.results.search_rates import FalsePositives, Misses, Selectivity, gallery_named
from matchbound.show.shown import Shown
from matchbound.stats.search.mated import Ranked, at_rank
from matchbound.stats.search.nonmated import HitCurve, hit_curve

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from matplotlib.axes import Axes

    from matchbound.counting.search_tally import Further
    from matchbound.results.search_comparison import SearchGroups
    from matchbound.results.search_curves import CmcCurve, SizeCurve, TradeOff
    from matchbound.show.tables import Table
    from matchbound.stats.search.sizes import HitList


@dataclass(frozen=True)
class Hub(Shown):
    """An enrolled person who receives false hits.

    identity
        Who.
    hits
        Searches in which this person alone reached the threshold.
    share
        Of all such searches.

    See Also
    --------
    Searches.hubs

    Examples
    --------
    >>> import matchbound as mb
    >>> import numpy as np
    >>> faces = mb.demo_data()
    >>> first = np.unique(faces.codes, return_index=True)[1][:100]
    >>> rest = np.setdiff1d(np.arange(len(faces)), first)
    >>> names = faces.identities[faces.codes]
    >>> gallery = mb.Embeddings(faces.vectors[first], names[first])
    >>> found = mb.search(gallery, mb.Embeddings(faces.vectors[rest], names[rest]))
    >>> hub = found.hubs(threshold=0.5)[0]
    >>> hub.hits, round(hub.share, 3)
    (4, 0.286)
    """

    identity: Any
    hits: int
    share: float


@dataclass(frozen=True)
class SearchThreshold(Shown):
    """A threshold chosen for an FPIR.

    threshold
        In the units of the scores.
    target, confidence
        What was asked for.
    fpir, fpir_upper
        FPIR there, and its one-sided upper bound.
    method
        Of the bound.

    See Also
    --------
    Searches.threshold_for

    Examples
    --------
    >>> import matchbound as mb
    >>> import numpy as np
    >>> faces = mb.demo_data()
    >>> first = np.unique(faces.codes, return_index=True)[1][:100]
    >>> rest = np.setdiff1d(np.arange(len(faces)), first)
    >>> names = faces.identities[faces.codes]
    >>> gallery = mb.Embeddings(faces.vectors[first], names[first])
    >>> found = mb.search(gallery, mb.Embeddings(faces.vectors[rest], names[rest]))
    >>> chosen = found.threshold_for(fpir=0.2)
    >>> round(chosen.threshold, 2), round(chosen.fpir, 2)
    (0.53, 0.1)
    """

    threshold: float
    target: float
    confidence: float
    fpir: float
    fpir_upper: float
    method: str


@dataclass(frozen=True, eq=False, repr=False)
class Searches(Shown):
    """Searches of a gallery, with every rate that is reported of them.

    tally
        The best candidates of each search.
    behind
        Goes back to the data where a list is too short; None where there are only the lists.
    group
        The group of each person searched for, where probes have groups.
    notes
        What a reader must know about these searches.

    See Also
    --------
    search

    Examples
    --------
    >>> import matchbound as mb
    >>> faces = mb.demo_data()
    >>> import numpy as np
    >>> first = np.unique(faces.codes, return_index=True)[1][:100]
    >>> rest = np.setdiff1d(np.arange(len(faces)), first)
    >>> names = faces.identities[faces.codes]
    >>> gallery = mb.Embeddings(faces.vectors[first], names[first])
    >>> probes = mb.Embeddings(faces.vectors[rest], names[rest])
    >>> found = mb.search(gallery, probes)
    >>> round(found.cmc(rank=1).estimate, 3)
    0.978
    """

    tally: SearchTally
    behind: Further | None = field(default=None, repr=False)
    notes: tuple[Note, ...] = field(default=())
    group: Mapping[Any, Any] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return (
            f"Searches({self.gallery_size:,} enrolled; {self.n_nonmated:,} searches without a mate, "
            f"{self.n_mated:,} with one)"
        )

    def to_records(self) -> list[dict[str, Any]]:
        """CMC at rank 1, and FNIR where FPIR is 10% and 1%, as far as there are searches for them."""
        found: list[Shown] = [self.cmc(1)] if self.n_mated else []
        if self.n_mated and self.n_nonmated:
            found += [self.fnir_at_fpir(rate) for rate in (0.1, 0.01) if rate * self.n_nonmated >= 1.0]
        said = {"gallery": self.gallery_size}
        return [{**record, **said} for rate in found for record in rate.to_records()] or [
            {**said, "mated": self.n_mated, "nonmated": self.n_nonmated}
        ]

    def _tables(self) -> list[Table]:
        from matchbound.show.searches import searches_rows

        records = self.to_records()
        if "metric" not in records[0]:
            return list(super()._tables())
        told = (
            f"{self.gallery_size:,} people enrolled; {self.n_mated:,} searches with a mate and {self.n_nonmated:,} "
            f"without; 95% intervals for a random gallery."
        )
        return [replace(searches_rows(records), note=told)]

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

    def fpir(self, threshold: float) -> FalsePositives:
        """False positive identification rate: the share of searches without a mate that return a candidate.

        FPIR(t) = #{non-mated searches with a candidate ≥ t} / #{non-mated searches}.

        Parameters
        ----------
        threshold
            The decision threshold, in the units of the scores.
        """
        oriented = self._oriented(threshold)
        people = int(np.count_nonzero(self.curve.searches_of))
        hits = int(self.curve.at(oriented).hits)
        return FalsePositives(
            "fpir", float(threshold), None, hits, self.n_nonmated, people, self.tally, self.curve, oriented
        )

    def fnir(self, threshold: float, rank: int = 1) -> Misses:
        """False negative identification rate: searches whose mate is below the threshold or not within the best R.

        FNIR(t, R) = #{mated searches with mate < t or rank > R} / #{mated searches}. A mate tied with a non-mate is
        ahead of it.

        Parameters
        ----------
        threshold
            The decision threshold, in the units of the scores.
        rank
            The mate must be among this many best candidates.
        """
        oriented = self._oriented(threshold)
        ranked = self.ranked(rank)
        return Misses(
            "fnir", float(threshold), rank, ranked.misses(oriented), ranked.searches, ranked.people, ranked, oriented
        )

    def cmc(self, rank: int = 1) -> Misses:
        """Cumulative match characteristic: the share of mated searches whose mate is within the best R candidates.

        Parameters
        ----------
        rank
            The mate must be among this many best candidates.
        """
        ranked = self.ranked(rank)
        return Misses("cmc", None, rank, ranked.misses(-np.inf), ranked.searches, ranked.people, ranked, -np.inf)

    def fnir_at_fpir(self, fpir: float, rank: int = 1) -> FnirAtFpir:
        """FNIR at the threshold where at most a share `fpir` of searches without a mate return a candidate.

        Parameters
        ----------
        fpir
            The target FPIR, between 0 and 1.
        rank
            The mate must be among this many best candidates.
        """
        from matchbound.stats.search.budget import threshold_at

        check_rate(fpir, "fpir", "0.01")
        if not self.n_nonmated:
            self.fpir(0.0)._must_have_searches()
        oriented = threshold_at(self.curve.best, float(fpir))
        threshold = self._written(oriented)
        return FnirAtFpir(
            float(fpir),
            threshold,
            self._fpir_at(oriented),
            self._fnir_at(oriented, rank),
            self.curve,
            self.ranked(rank),
        )

    def selectivity(self, threshold: float) -> Selectivity:
        """SEL: the mean number of enrolled people who reach the threshold in a search without a mate.

        Parameters
        ----------
        threshold
            The decision threshold, in the units of the scores.
        """
        return Selectivity(float(threshold), self.hits(threshold))

    def at_gallery_size(self, size: int, threshold: float | None = None, *, rank: int | None = None) -> RateAtSize:
        """FPIR at a threshold, or CMC at rank 1, in a gallery of another size.

        Parameters
        ----------
        size
            N', how many people would be enrolled.
        threshold
            For FPIR.
        rank
            For CMC instead; only rank 1 can be carried to another size.
        """
        from matchbound.stats.search.latent import effective_people

        check_whole(size, "size")
        if (threshold is None) == (rank is None):
            raise UsageError("give a threshold for FPIR at another size, or rank=1 for CMC")
        if rank is not None and rank != 1:
            raise UsageError(f"only CMC at rank 1 can be extrapolated to another gallery size; got rank {rank}")
        if threshold is not None:
            self.fpir(threshold)._must_have_searches()
            hits, people = self.hits(threshold), self.curve.searches_of
        else:
            self.cmc(1)._must_have_searches()
            hits, people = self._beaten, self.ranked(1).searches_of
        metric = "fpir@size" if rank is None else "cmc@size"
        where = None if threshold is None else float(threshold)
        return RateAtSize(metric, int(size), where, rank, hits, effective_people(people))

    def threshold_for(
        self, fpir: float, confidence: float = 0.95, *, gallery: str = "random", method: str = "auto"
    ) -> SearchThreshold:
        """The most lenient threshold whose one-sided upper bound on FPIR meets a target.

        Parameters
        ----------
        fpir
            The FPIR to stay below.
        confidence
            With which it does.
        gallery
            ``"random"``: enrolled people are a sample; ``"fixed"``: this gallery.
        method
            Of the upper bound; see `FalsePositives.interval`.

        Raises
        ------
        DataError
            When no threshold of these searches supports the claim.
        """
        check_rate(fpir, "fpir", "0.01")
        tail_of(confidence, "upper")
        gallery_named(gallery)
        low, high = 0, min(int(np.floor(fpir * self.n_nonmated)), self.n_nonmated - 1)
        best: tuple[FalsePositives, float, str] | None = None
        bound = float("nan")
        while low <= high:
            middle = (low + high) // 2
            rate = self._fpir_at(float(np.nextafter(self.curve.best[middle], np.inf)))
            made = rate._interval(method, confidence, gallery_named(gallery), "upper")
            if middle == 0:
                bound = made.high
            if made.high <= fpir:
                best, low = (rate, made.high, made.method), middle + 1
            else:
                high = middle - 1
        if best is None:
            raise DataError(
                f"no threshold of these searches supports FPIR ≤ {fpir:g} with confidence {confidence:g}: with no hit "
                f"at all the upper bound is {bound:.3g}, from {self.n_nonmated:,} searches of "
                f"{int(np.count_nonzero(self.curve.searches_of)):,} people. More people who are not enrolled are needed"
            )
        rate, upper, used = best
        assert rate.threshold is not None
        return SearchThreshold(rate.threshold, float(fpir), float(confidence), rate.estimate, upper, used)

    def among(self, people: Collection[Any]) -> Searches:
        """The searches for some people only, in the same gallery.

        Parameters
        ----------
        people
            Identities to keep, text or whole numbers as in these searches.

        Raises
        ------
        DataError
            Where they are of the other kind, or nobody of them takes part.
        """
        self.tally.check_people(people)
        return replace(self, tally=self.tally.among(people), behind=None)

    def by_group(self, threshold: float, rank: int = 1, *, group: Mapping[Any, Any] | None = None) -> SearchGroups:
        """FPIR, FNIR and CMC of groups of people searched for, all against the whole gallery.

        Parameters
        ----------
        group
            From identity (text or a whole number, as in these searches) to group; by default the groups of the probes.
        threshold
            The decision threshold, in the units of the scores.
        rank
            The mate must be among this many best candidates.
        """
        from matchbound.results.search_comparison import by_group

        known = self.group if group is None else group
        if not known:
            raise UsageError("the probes have no groups; give group={identity: group}")
        self.tally.check_people(known)
        return by_group(replace(self, group=known), threshold, rank)

    def trade_off(self, rank: int = 1, level: float = 0.95, *, gallery: str = "random") -> TradeOff:
        """FNIR against FPIR with a pointwise band that accounts for the estimated thresholds.

        Parameters
        ----------
        rank
            The mate must be among this many best candidates.
        level
            Of the band.
        gallery
            ``"random"``: enrolled people are a sample; ``"fixed"``: this gallery.
        """
        from matchbound.results.search_curves import trade_off

        self._must_have_both()
        return trade_off(self, rank, level, gallery_named(gallery))

    def cmc_curve(self, ranks: int = 20, level: float = 0.95, *, gallery: str = "random") -> CmcCurve:
        """CMC to a rank, with a pointwise band.

        Parameters
        ----------
        ranks
            Up to which rank.
        level
            Of the band.
        gallery
            ``"random"``: enrolled people are a sample; ``"fixed"``: this gallery.
        """
        from matchbound.results.search_curves import cmc_curve

        self.cmc(1)._must_have_searches()
        return cmc_curve(self, min(ranks, self.tally.ranks, self.gallery_size), level, gallery_named(gallery))

    def size_curve(self, threshold: float, sizes: Sequence[int] | None = None, level: float = 0.95) -> SizeCurve:
        """FPIR at a threshold against the size of the gallery, to eight times the one searched, with a band.

        Parameters
        ----------
        threshold
            The decision threshold, in the units of the scores.
        sizes
            Numbers of enrolled people.
        level
            Of the band.
        """
        from matchbound.results.search_curves import size_curve

        return size_curve(self, threshold, sizes, level)

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
        kind
            ``"trade-off"``, ``"cmc"`` or ``"size"``.
        threshold, rank
            At which it is drawn.
        level
            Of the band.
        gallery
            ``"random"``: enrolled people are a sample; ``"fixed"``: this gallery.
        ax
            Axes to draw on; by default a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from matchbound.show import search_plots
        from matchbound.show.mpl import draw

        if kind == "trade-off":
            return draw(search_plots.trade_off_figure(self.trade_off(rank, level, gallery=gallery), level), ax)
        if kind == "cmc":
            return draw(search_plots.cmc_figure(self.cmc_curve(level=level, gallery=gallery), level), ax)
        if kind != "size":
            raise UsageError(f"kind must be 'trade-off', 'cmc' or 'size'; got {kind!r}")
        if threshold is None:
            raise UsageError("a plot of FPIR against the size of the gallery is at a threshold; give threshold=")
        grown = self.size_curve(threshold, level=level)
        return draw(search_plots.sizes_figure(grown, self.gallery_size, level), ax)

    def hubs(self, threshold: float, top: int = 10) -> tuple[Hub, ...]:
        """The enrolled people who receive the most false hits at a threshold, the first one most.

        Counted are searches without a mate in which one enrolled person alone reaches the threshold: those would be
        right if that person were not enrolled. One person under two names looks like a hub too.

        Parameters
        ----------
        threshold
            The decision threshold, in the units of the scores.
        top
            How many, most hits first.
        """
        searched, oriented = self.tally.nonmated, self._oriented(threshold)
        alone = (searched.score[:, 0] >= oriented) & (searched.score[:, 1] < oriented)
        u = np.bincount(searched.holder[alone, 0], minlength=self.tally.size)
        order = np.argsort(-u, kind="stable")[:top]
        total = max(int(u.sum()), 1)
        return tuple(Hub(self._label(int(g)), int(u[g]), float(u[g]) / total) for g in order if u[g])

    def people_with_half(self, threshold: float) -> int:
        """How many enrolled people receive half of the false hits of `hubs`; 0 where there is none.

        Parameters
        ----------
        threshold
            The decision threshold, in the units of the scores.
        """
        searched, oriented = self.tally.nonmated, self._oriented(threshold)
        alone = (searched.score[:, 0] >= oriented) & (searched.score[:, 1] < oriented)
        u = -np.sort(-np.bincount(searched.holder[alone, 0], minlength=self.tally.size))
        total = int(u.sum())
        return int(np.searchsorted(np.cumsum(u), total / 2.0) + 1) if total else 0

    @cached_property
    def curve(self) -> HitCurve:
        """FPIR's moments at every threshold (oriented scores)."""
        searched = self.tally.nonmated
        return hit_curve(
            searched.person, searched.people.size, searched.holder[:, 0], searched.score[:, 0], searched.score[:, 1]
        )

    def ranked(self, rank: int) -> Ranked:
        """The searches of enrolled people at a rank.

        Parameters
        ----------
        rank
            The mate must be among this many best candidates.
        """
        check_whole(rank, "rank")
        if rank > self.tally.ranks:
            raise DataError(
                f"rank {rank} was asked for, and the candidate lists decide ranks to {self.tally.ranks}; keep more "
                f"candidates, as with search(…, candidates={rank})"
            )
        return self._at_rank(int(rank))

    @cached_property
    def _at_rank(self) -> Callable[[int], Ranked]:
        mated = self.tally.mated

        @lru_cache(maxsize=64)
        def made(rank: int) -> Ranked:
            return at_rank(mated.person, mated.mate, mated.holder, mated.score, self.tally.size, rank)

        return made

    def hits(self, threshold: float) -> HitList:
        """Who reaches a threshold in the searches without a mate.

        Parameters
        ----------
        threshold
            The decision threshold, in the units of the scores.
        """
        from matchbound.stats.search.sizes import HitList

        searched, oriented = self.tally.nonmated, self._oriented(threshold)
        people = int(searched.people.size)
        self._above_floor(oriented)
        size = self.tally.size
        if np.any(searched.end >= oriented):
            if self.behind is None:
                raise DataError(
                    f"at threshold {threshold:g} some candidate lists end before the scores do: how many more people "
                    "reach it is not known. Give longer lists, or a stricter threshold"
                )
            found = self.behind.hits(oriented)
            return HitList(searched.person, people, found.hits, found.probe, found.holder, size)
        probe, place = np.nonzero(searched.score >= oriented)
        counts = np.bincount(probe, minlength=searched.searches).astype(np.int64)
        return HitList(searched.person, people, counts, probe, searched.holder[probe, place], size)

    @cached_property
    def _beaten(self) -> HitList:
        """The non-mates that are ahead of the mate in each search."""
        from matchbound.stats.search.sizes import HitList

        mated, size = self.tally.mated, self.tally.size
        lost = np.isneginf(mated.mate)
        mate = np.where(lost, np.inf, mated.mate)
        full = bool(np.any(mated.end > mate))
        unknown = bool(np.any(lost & np.isfinite(mated.end)))
        if self.behind is None and (full or unknown):
            raise DataError(
                "some mates are behind the end of their candidate list: CMC in another gallery needs the number of "
                "non-mates ahead of each mate. Give longer lists"
            )
        if full and self.behind is not None:
            found = self.behind.beaten()
            counts, probe, holder = found.hits, found.probe, found.holder
        else:
            probe, place = np.nonzero(mated.score > mate[:, None])
            counts = np.bincount(probe, minlength=mated.searches).astype(np.int64)
            holder = mated.holder[probe, place]
        counts = np.where(lost, size - 1, counts)
        return HitList(mated.person, size, counts, probe, holder, size)

    def _must_have_both(self) -> None:
        for rate in (self._fpir_at(0.0), self.cmc(1)):
            rate._must_have_searches()

    def _fpir_at(self, oriented: float) -> FalsePositives:
        people = int(np.count_nonzero(self.curve.searches_of))
        hits = int(self.curve.at(oriented).hits)
        return FalsePositives(
            "fpir", self._written(oriented), None, hits, self.n_nonmated, people, self.tally, self.curve, oriented
        )

    def _fnir_at(self, oriented: float, rank: int) -> Misses:
        ranked = self.ranked(rank)
        misses = ranked.misses(oriented)
        return Misses("fnir", self._written(oriented), rank, misses, ranked.searches, ranked.people, ranked, oriented)

    def _oriented(self, threshold: float) -> float:
        number = check_number(threshold, "threshold", finite=True)
        oriented = -number if self.tally.distance else number
        self._above_floor(oriented)
        return oriented

    def _above_floor(self, oriented: float) -> None:
        if oriented < self.tally.floor:
            word = "above" if self.tally.distance else "below"
            raise DataError(
                f"the candidate lists hold nobody {word} {self._written(self.tally.floor):g}: rates at a threshold of "
                f"{self._written(oriented):g} cannot be counted from them"
            )

    def _written(self, oriented: float) -> float:
        return float(-oriented if self.tally.distance else oriented)

    def _label(self, position: int) -> Any:
        value = self.tally.gallery[position] if position < self.tally.gallery.size else position
        return value.item() if hasattr(value, "item") else value
