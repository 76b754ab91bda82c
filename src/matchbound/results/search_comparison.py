"""Two systems on the same searches, and groups of people in one system's searches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.errors import DataError
from matchbound.results.interval import Interval, Side, one_side, tail_of
from matchbound.results.search_rates import FalsePositives, Misses, gallery_named
from matchbound.show.shown import Shown
from matchbound.stats.intervals import wilson

if TYPE_CHECKING:
    from matchbound.results.searches import Searches
    from matchbound.show.tables import Table
    from matchbound.stats.search.paired import HitParts, MissParts


@dataclass(frozen=True)
class SearchDifference:
    """How much larger a rate is in the first system (or group) than in the second.

    metric
        ``"fpir"``, ``"fnir"``, ``"cmc"`` or ``"fnir@fpir"``.
    rate_a, rate_b
        The two rates.
    variance
        Of the difference.
    effective_identities
        People, for the t quantile.
    n_identities
        People searched for.
    """

    metric: str
    rate_a: float
    rate_b: float
    variance: float
    effective_identities: float
    n_identities: int
    limits_a: tuple[float, float] | None = field(default=None, repr=False)
    limits_b: tuple[float, float] | None = field(default=None, repr=False)

    @property
    def estimate(self) -> float:
        """a − b."""
        return self.rate_a - self.rate_b

    def interval(self, level: float = 0.95, *, side: Side = "two-sided") -> Interval:
        """A t interval for the difference; where no person tells the two apart, what no discordant person can show."""
        from scipy.special import ndtr

        from matchbound.stats.search.latent import t_deviate

        deviate = t_deviate(self.effective_identities, tail_of(level, side))
        half, method = deviate * math.sqrt(max(self.variance, 0.0)), "influence"
        if not half > 0.0:
            half, method = wilson(0.0, self.n_identities, float(ndtr(-deviate)))[1], "wilson"
        low, high = max(self.estimate - half, -1.0), min(self.estimate + half, 1.0)
        return Interval(*one_side(low, high, side, (-1.0, 1.0)), level, method, side)

    @property
    def p_value(self) -> float:
        """Two-sided, of no difference."""
        from scipy.special import stdtr

        if not self.variance > 0.0:
            return 1.0
        score = abs(self.estimate) / math.sqrt(self.variance)
        return float(2.0 * stdtr(max(self.effective_identities - 1.0, 1.0), -score))


@dataclass(frozen=True, eq=False)
class SearchComparison(Shown):
    """Two systems on the same searches.

    fpir, fnir, cmc
        Differences at a threshold of each system; None where they are not defined. CMC is at a rank alone.
    fnir_at_fpir
        Difference of FNIR where both have the target FPIR, the thresholds estimated; None without a target.

    See Also
    --------
    compare_searches

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
    >>> made = mb.compare_searches(found, found, threshold=0.6)
    >>> made.fnir.rate_a == made.fnir.rate_b, made.fnir.estimate
    (True, 0.0)
    """

    fpir: SearchDifference | None
    fnir: SearchDifference | None
    cmc: SearchDifference | None
    fnir_at_fpir: SearchDifference | None

    def to_records(self) -> list[dict[str, Any]]:
        """The differences with their intervals and p-values."""
        made = [each for each in (self.fpir, self.fnir, self.cmc, self.fnir_at_fpir) if each is not None]
        return [
            {
                "metric": each.metric,
                "rate_a": each.rate_a,
                "rate_b": each.rate_b,
                "estimate": each.estimate,
                "low": each.interval().low,
                "high": each.interval().high,
                "p_value": each.p_value,
            }
            for each in made
        ]

    def _tables(self) -> list[Table]:
        from matchbound.show.searches import comparison_rows

        return [comparison_rows(self.to_records(), ("the first", "the second"))]


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
    from matchbound.stats.search import paired
    from matchbound.stats.search.latent import effective_people

    _same(a, b)
    random = gallery_named(gallery) == "random"
    cuts = None
    if threshold is not None:
        given = (threshold, threshold) if isinstance(threshold, (int, float)) else tuple(threshold)
        cuts = a._oriented(given[0]), b._oriented(given[1])
    ranks = (a.ranked(rank), b.ranked(rank)) if a.n_mated else None
    mated = effective_people(ranks[0].searches_of) if ranks else 0.0

    def hits(at: tuple[float, float]) -> tuple[HitParts, HitParts]:
        return _hits(a, at[0]), _hits(b, at[1])

    def misses(at: tuple[float, float]) -> tuple[MissParts, MissParts]:
        assert ranks is not None
        return paired.miss_parts(ranks[0], at[0]), paired.miss_parts(ranks[1], at[1])

    def missed(metric: str, at: tuple[float, float], variance: float) -> SearchDifference:
        assert ranks is not None
        rates = [found.misses(cut) / found.searches for found, cut in zip(ranks, at, strict=True)]
        if metric == "cmc":
            rates = [1.0 - rate for rate in rates]
        return SearchDifference(metric, rates[0], rates[1], variance, mated, ranks[0].people)

    made: dict[str, SearchDifference | None] = dict.fromkeys(("fpir", "fnir", "cmc", "fnir_at_fpir"))
    if cuts is not None and a.n_nonmated:
        rates = a._fpir_at(cuts[0]), b._fpir_at(cuts[1])
        variance = paired.hit_difference_variance(*hits(cuts), random=random)
        people = effective_people(a.curve.searches_of)
        made["fpir"] = SearchDifference(
            "fpir", rates[0].estimate, rates[1].estimate, variance, people, rates[0].n_identities
        )
    if ranks is not None:
        none = (-np.inf, -np.inf)
        count = ranks[0].people
        made["cmc"] = missed("cmc", none, paired.miss_difference_variance(*misses(none), count, random=random))
        if cuts is not None:
            variance = paired.miss_difference_variance(*misses(cuts), count, random=random)
            made["fnir"] = missed("fnir", cuts, variance)
        if fpir is not None and a.n_nonmated:
            points = a.fnir_at_fpir(fpir, rank), b.fnir_at_fpir(fpir, rank)
            at = points[0].fnir.oriented, points[1].fnir.oriented
            slopes = [paired.slope_at(found.curve.best, np.sort(found.ranked(rank).crossing), fpir) for found in (a, b)]
            variance = paired.point_difference_variance(hits(at), misses(at), (slopes[0], slopes[1]), count)
            made["fnir_at_fpir"] = missed("fnir@fpir", at, variance)
    return SearchComparison(made["fpir"], made["fnir"], made["cmc"], made["fnir_at_fpir"])


def _hits(found: Searches, threshold: float) -> HitParts:
    from matchbound.stats.search.paired import hit_parts

    searched = found.tally.nonmated
    return hit_parts(
        searched.person, searched.people.size, searched.holder[:, 0], searched.score[:, 0], searched.score[:, 1],
        found.tally.size, threshold,
    )  # fmt: skip


def _same(a: Searches, b: Searches) -> None:
    """Whether two systems made the same searches."""
    first, second = a.tally, b.tally
    if first.size != second.size or not np.array_equal(first.gallery, second.gallery):
        raise DataError("the two systems have different people enrolled; compare them on one gallery")
    same = np.array_equal(first.mated.person, second.mated.person) and np.array_equal(
        first.nonmated.people[first.nonmated.person], second.nonmated.people[second.nonmated.person]
    )
    if not same:
        raise DataError("the two systems were searched with different probes; give the same probes in the same order")


@dataclass(frozen=True, eq=False)
class SearchGroup:
    """The rates of one group of people; None where the group has no searches of that kind.

    fpir
        Of people of the group who are not enrolled, against the whole gallery.
    fnir, cmc
        Of enrolled people of the group.
    """

    name: Any
    fpir: FalsePositives | None = field(repr=False)
    fnir: Misses | None = field(repr=False)
    cmc: Misses | None = field(repr=False)


@dataclass(frozen=True, eq=False)
class SearchGroups(Shown):
    """Rates by group at a threshold; iterate over it, or index it by the name of a group.

    See Also
    --------
    Searches.by_group

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
    >>> group = {name: "odd" if at % 2 else "even" for at, name in enumerate(faces.identities)}
    >>> rates = found.by_group(0.6, group=group)
    >>> [(part.name, part.fnir.errors, part.fnir.searches) for part in rates]
    [('even', 16, 146), ('odd', 27, 172)]
    """

    threshold: float
    rank: int
    groups: tuple[SearchGroup, ...]

    def to_records(self) -> list[dict[str, Any]]:
        """The rates of each group with their intervals."""
        return [
            {"group": group.name, **record}
            for group in self.groups
            for rate in (group.fpir, group.fnir, group.cmc)
            if rate is not None
            for record in rate.to_records()
        ]

    def gap_records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """The gaps between all pairs of groups with their intervals; see `gap`.

        Parameters
        ----------
        level
            The confidence level.
        """
        made = []
        for metric in ("fpir", "fnir", "cmc"):
            known = [group for group in self.groups if getattr(group, metric) is not None]
            for one, two in combinations(known, 2):
                interval = self.gap(metric, one.name, two.name, level)
                made.append(
                    {
                        "metric": metric,
                        "group_a": one.name,
                        "group_b": two.name,
                        "estimate": getattr(one, metric).estimate - getattr(two, metric).estimate,
                        "low": interval.low,
                        "high": interval.high,
                        "level": level,
                        "method": interval.method,
                    }
                )
        return made

    def _tables(self) -> list[Table]:
        from matchbound.show.searches import groups_table

        return groups_table(self.to_records(), self.gap_records())

    def __iter__(self) -> Iterator[SearchGroup]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, name: Any) -> SearchGroup:
        for group in self.groups:
            if group.name == name:
                return group
        raise DataError(f"there is no group {name!r}; there are {', '.join(str(group.name) for group in self.groups)}")

    def gap(self, metric: str, first: Any, second: Any, level: float = 0.95) -> Interval:
        """An interval for the difference of a rate between two groups: their limits combined (MOVER).

        The groups share the gallery, whose part of their errors partly cancels in the difference: the interval is then
        wider than it need be.

        Parameters
        ----------
        metric
            ``"fpir"``, ``"fnir"`` or ``"cmc"``.
        first, second
            Names of groups.
        level
            The confidence level.
        """
        rates = [getattr(self[name], metric) for name in (first, second)]
        if any(rate is None for rate in rates):
            raise DataError(f"{metric} is not defined in both of {first!r} and {second!r}")
        p, q = (rate.estimate for rate in rates)
        one, two = (rate._interval("auto", level, "random", "two-sided") for rate in rates)
        low = p - q - math.hypot(p - one.low, two.high - q)
        high = p - q + math.hypot(one.high - p, q - two.low)
        return Interval(low, high, level, "mover", notes=tuple(dict.fromkeys([*one.notes, *two.notes])))


def by_group(found: Searches, threshold: float, rank: int) -> SearchGroups:
    """See `Searches.by_group`."""
    made = []
    for name in sorted({group for group in (found.group or {}).values()}, key=str):
        chosen = {person for person, group in (found.group or {}).items() if group == name}
        part = replace(found, tally=found.tally.among(chosen), behind=None)
        fpir = part.fpir(threshold) if part.n_nonmated else None
        fnir, cmc = (part.fnir(threshold, rank), part.cmc(rank)) if part.n_mated else (None, None)
        made.append(SearchGroup(name, fpir, fnir, cmc))
    return SearchGroups(float(threshold), rank, tuple(made))
