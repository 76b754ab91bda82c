"""Differences of rates of searches: two systems on the same searches, and two groups of people in one system's."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from matchbound.errors import DataError
from matchbound.metrics import Home
from matchbound.results.claims import Judged
from matchbound.results.comparison import Difference
from matchbound.results.interval import Interval
from matchbound.results.number import Ask, Limits, Rule
from matchbound.results.search_rates import Gallery, SearchNumber, SearchRate, gallery_named
from matchbound.show.shown import Shown
from matchbound.stats.differences import mover
from matchbound.stats.group_differences import welch
from matchbound.stats.intervals import t_quantile, wilson
from matchbound.stats.search.rates import slope_at

if TYPE_CHECKING:
    from matchbound.results.searches import Searches
    from matchbound.show.tables import Table


def _influence(difference: SearchDifference, ask: Ask) -> Limits:
    """± t standard errors; where nobody tells the two apart, the most that no discordant person can exclude."""
    half, method = t_quantile(ask.tail, difference.freedom) * math.sqrt(max(difference.spread, 0.0)), None
    if not half > 0.0:
        half, method = wilson(0.0, difference.people, ask.tail, difference.freedom)[1], "wilson"
    return Limits(max(difference.estimate - half, -1.0), min(difference.estimate + half, 1.0), method)


def _mover(gap: SearchGap, ask: Ask) -> Limits:
    """The limits of both rates, combined.

    The groups share the gallery, whose part of their errors partly cancels in the difference: the interval is then
    wider than it need be.
    """
    one, two = (rate.interval(level=ask.two_sided_level) for rate in (gap.a, gap.b))
    low, high = mover(gap.rate_a, (one.low, one.high), gap.rate_b, (two.low, two.high))
    return Limits(low, high, notes=tuple(dict.fromkeys((*one.notes, *two.notes))))


@dataclass(frozen=True, eq=False, repr=False)
class SearchDifference(Difference):
    """How much larger a rate of searches is in the first system (or group) than in the second.

    spread
        Its variance.
    people
        Searched for.
    """

    spread: float = field(kw_only=True)
    people: int = field(kw_only=True)
    rules: ClassVar[tuple[Rule, ...]] = (Rule("influence", _influence),)
    defaults: ClassVar[tuple[str, ...]] = ("influence",)

    def record(self, interval: Interval | None) -> dict[str, Any]:
        """The difference with the limits of an interval; `metric` is that of the rates."""
        return {**super().record(interval), "metric": self.metric}

    @property
    def _never_differ(self) -> bool:
        return not self.spread > 0.0

    def _variance(self, method: str) -> float:
        return self.spread


@dataclass(frozen=True, eq=False, repr=False)
class SearchGap(SearchDifference):
    """A rate of one group of people searched for minus that of another.

    group_a, group_b
        Names of the groups.
    a, b
        The rates.
    """

    group_a: str = field(kw_only=True)
    group_b: str = field(kw_only=True)
    a: SearchRate = field(kw_only=True)
    b: SearchRate = field(kw_only=True)
    rules: ClassVar[tuple[Rule, ...]] = (Rule("mover", _mover),)
    defaults: ClassVar[tuple[str, ...]] = ("mover",)

    def record(self, interval: Interval | None) -> dict[str, Any]:
        """The gap with the limits of an interval."""
        return {**super().record(interval), "group_a": self.group_a, "group_b": self.group_b}


def gap_between(a: SearchRate, b: SearchRate, first: str, second: str) -> SearchGap:
    """The gap between the rates of two groups."""
    variances = a.variance(), b.variance()
    freedom = welch(variances, (a.freedom, b.freedom))
    return SearchGap(
        a.metric, a.estimate, b.estimate, freedom, spread=sum(variances), people=a.n_identities + b.n_identities,
        group_a=first, group_b=second, a=a, b=b,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class SearchComparison(Judged, Shown):
    """Two systems on the same searches.

    fpir, fnir, cmc
        Differences at a threshold of each system; None where they are not defined. CMC is at a rank alone.
    fnir_at_fpir
        Difference of FNIR where both have the target FPIR, the thresholds estimated; None without a target.
    """

    fpir: SearchDifference | None
    fnir: SearchDifference | None
    cmc: SearchDifference | None
    fnir_at_fpir: SearchDifference | None
    home: ClassVar[Home] = "comparison"

    def to_records(self) -> list[dict[str, Any]]:
        """The differences with their intervals and p-values."""
        numbers = (self.fpir, self.fnir, self.cmc, self.fnir_at_fpir)
        return [record for number in numbers if number is not None for record in number.to_records()]

    def _tables(self) -> list[Table]:
        from matchbound.show.columns import search_comparison_table

        return [search_comparison_table(self.to_records(), ("the first", "the second"))]


def compare_searches(
    a: Searches,
    b: Searches,
    *,
    fpir: float | None = 0.01,
    threshold: float | tuple[float, float] | None = None,
    rank: int = 1,
    gallery: str = "random",
) -> SearchComparison:
    """Compare two systems that made the same searches in the same gallery.

    Parameters
    ----------
    a, b
        From `search`: the same enrolled people, and the same probes in the same order.
    fpir
        Compare FNIR where both systems have this FPIR.
    threshold
        Compare FPIR and FNIR at this threshold, or at one threshold for each system.
    rank
        For FNIR and CMC.
    gallery
        ``"random"`` or ``"fixed"``, as for intervals.

    Raises
    ------
    DataError
        When the searches are not the same.

    Returns
    -------
    SearchComparison
        The differences, with intervals.

    See Also
    --------
    search, compare

    Examples
    --------
    >>> import numpy as np
    >>> import matchbound as mb
    >>> rng = np.random.default_rng(0)
    >>> people = rng.standard_normal((200, 8))
    >>> def system(noise):
    ...     def photographs(who):
    ...         return mb.Embeddings(people[who] + noise * rng.standard_normal((len(who), 8)), who)
    ...     return mb.search(photographs(np.arange(100)), photographs(np.repeat(np.arange(200), 3)))
    >>> better = mb.compare_searches(system(0.2), system(0.5), fpir=0.1).fnir_at_fpir
    >>> round(better.estimate, 2), better.p_value < 0.05
    (-0.69, True)
    """
    _check_same(a, b)
    kind = gallery_named(gallery)
    cuts = threshold if isinstance(threshold, tuple) else (threshold, threshold)
    differences: dict[str, SearchDifference | None] = dict.fromkeys(("fpir", "fnir", "cmc", "fnir_at_fpir"))
    if cuts[0] is not None and cuts[1] is not None:
        if a.n_nonmated:
            differences["fpir"] = _paired(a.fpir(cuts[0]), b.fpir(cuts[1]), kind)
        if a.n_mated:
            differences["fnir"] = _paired(a.fnir(cuts[0], rank), b.fnir(cuts[1], rank), kind)
    if a.n_mated:
        differences["cmc"] = _paired(a.cmc(rank), b.cmc(rank), kind)
        if fpir is not None and a.n_nonmated:
            differences["fnir_at_fpir"] = _at_fpir(a, b, fpir, rank)
    return SearchComparison(**differences)


def _paired(a: SearchRate, b: SearchRate, gallery: Gallery) -> SearchDifference:
    """What each person adds to both rates, subtracted before squaring."""
    return _difference(a, b, (a.sums - b.sums).variance(gallery), a)


def _difference(a: SearchNumber, b: SearchNumber, spread: float, of: SearchRate) -> SearchDifference:
    return SearchDifference(a.metric, a.estimate, b.estimate, of.freedom, spread=spread, people=of.n_identities)


def _at_fpir(a: Searches, b: Searches, fpir: float, rank: int) -> SearchDifference:
    """FNIR at one FPIR, the thresholds estimated: each rate moves by λ = dFNIR/dFPIR < 0 times its FPIR.

    Enrolled person g adds a_g + b_g − λ·U_g, person j searched for without a mate −λ·A_j.
    """
    points, systems = [found.fnir_at_fpir(fpir, rank) for found in (a, b)], []
    for point in points:
        slope = slope_at(point.best, point.crossing, fpir)
        misses, hits = point.fnir.sums, point.fpir.sums
        own = misses.own + misses.holders - slope * hits.holders
        systems.append((replace(misses, own=own), replace(hits, own=slope * hits.own)))
    spread = sum((one - two).searched for one, two in zip(*systems, strict=True))
    return _difference(points[0], points[1], spread, points[0].fnir)


def _check_same(a: Searches, b: Searches) -> None:
    """Raise unless two systems made the same searches."""
    first, second = a.tally, b.tally
    if not np.array_equal(first.gallery, second.gallery):
        raise DataError("the two systems have different people enrolled; compare them on one gallery")
    same = np.array_equal(first.mated.person, second.mated.person) and np.array_equal(
        first.nonmated.people[first.nonmated.person], second.nonmated.people[second.nonmated.person]
    )
    if not same:
        raise DataError("the two systems were searched with different probes; give the same probes in the same order")
