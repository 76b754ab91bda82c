"""How many people to search for, to show that FPIR is small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from matchbound.errors import DataError, UsageError, argument
from matchbound.results.interval import check_level, check_whole
from matchbound.show.numbers import percent
from matchbound.show.shown import Shown
from matchbound.stats.intervals import normal_quantile
from matchbound.stats.latent.fit import Curve
from matchbound.stats.latent.model import Clusters, Correlations, Design, LatentModel
from matchbound.stats.searches import GalleryVariance, fit_searches, gallery_variance

if TYPE_CHECKING:
    from matchbound.results.searches import Searches

# Latent correlations without a pilot: of two searches of one person, and of single hits on one enrolled person.
SAME_PERSON, SAME_ENROLLED = 0.3, 0.1
MOST_PEOPLE = 100_000_000


@dataclass(frozen=True)
class SearchPlan(Shown):
    """The people that a bound on FPIR needs.

    `people` who are not enrolled are searched for, and `hits` of the searches are expected to return somebody. `bound`
    is the upper bound at exactly that many hits: about half of such tests show less. `people_without_hits` show the
    same bound where no search returns anybody. `same_person` and `same_enrolled` are the latent correlations assumed.
    """

    fpir: float
    upper: float
    level: float
    gallery: int
    people: int
    probes_per_person: int
    searches: int
    hits: float
    bound: float
    people_without_hits: int
    same_person: float
    same_enrolled: float

    def __str__(self) -> str:
        return (
            f"To show FPIR ≤ {percent(self.upper)} with {100 * self.level:g}% confidence where it is "
            f"{percent(self.fpir)}, with {self.gallery:,} enrolled:\n"
            f"search for {self.people:,} people who are not enrolled, {self.probes_per_person} probes each "
            f"({self.searches:,} searches, {self.hits:.0f} hits expected);\n"
            f"{self.people_without_hits:,} people are enough if no search returns anybody."
        )


def plan_search(
    fpir: float,
    upper: float,
    gallery: int,
    *,
    probes_per_person: int = 1,
    level: float = 0.95,
    pilot: Searches | None = None,
) -> SearchPlan:
    """How many people to search for, so that the upper bound on FPIR meets a target.

    The bound is that of the latent model with a random gallery, at the number of hits expected.

    Parameters
    ----------
    fpir, gallery
        FPIR that is expected at the threshold, and how many people are enrolled.
    upper, level
        What the one-sided bound at this level must not exceed.
    probes_per_person
        How many searches are made for each person.
    pilot
        `Searches` to take the correlations from; without it they are values common in real data.

    Raises
    ------
    DataError
        Where no number of people is enough: the gallery's own part of the variance is too large.

    See Also
    --------
    plan, search

    Returns
    -------
    SearchPlan

    Examples
    --------
    >>> import matchbound as mb
    >>> made = mb.plan_search(fpir=0.001, upper=0.002, gallery=10_000)
    >>> made.people, made.people_without_hits
    (14176, 1497)
    """
    check_level(level)
    for name, value in (("fpir", fpir), ("upper", upper)):
        if not 0.0 < float(value) < 0.5:
            raise UsageError(f"{name} must lie between 0 and one half; got {value!r}")
    if not fpir < upper:
        raise UsageError(f"{argument('upper')} must be larger than the FPIR expected; got {upper:g} and {fpir:g}")
    for name, count, least in (("gallery", gallery, 2), ("probes_per_person", probes_per_person, 1)):
        check_whole(count, name, least)
    person, enrolled = _correlations(pilot)

    def bound(people: int, rate: float) -> float:
        model = _model(people, int(probes_per_person), int(gallery), person, enrolled)
        return float(model.limit(rate * model.comparisons, normal_quantile(1.0 - level), True)[0])

    people = _smallest(lambda count: bound(count, fpir) <= upper)
    if people is None:
        raise DataError(
            f"no number of people shows FPIR ≤ {upper:g}: a gallery of {gallery:,} itself varies too much (ρ = "
            f"{enrolled:.2g} of hits on one enrolled person). Enrol more people in the test, or ask for less"
        )
    none = _smallest(lambda count: bound(count, 0.0) <= upper)
    searches = people * int(probes_per_person)
    return SearchPlan(
        float(fpir), float(upper), float(level), int(gallery), people, int(probes_per_person), searches,
        fpir * searches, bound(people, fpir), people if none is None else none, person, enrolled,
    )  # fmt: skip


def _smallest(enough: Callable[[int], bool]) -> int | None:
    """The smallest number of people that is enough, by doubling and halving; None where none is."""
    high = 4
    while not enough(high):
        high *= 2
        if high > MOST_PEOPLE:
            return None
    low = high // 2
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _correlations(pilot: Searches | None) -> tuple[float, float]:
    """ρ of two searches of one person and of single hits on one enrolled person."""
    if pilot is None:
        return SAME_PERSON, SAME_ENROLLED
    part = pilot.tally.nonmated
    if not part.searches:
        raise DataError("the pilot has no searches of people who are not enrolled to plan from")
    model = fit_searches(part.person, part.people.size, -part.score[:, 0])
    varied = gallery_variance(part.person, part.holder, part.score, pilot.gallery_size)
    return model.correlations.rho_pair, max(varied.rho.pooled, 0.0)


def _model(people: int, probes: int, gallery: int, person: float, enrolled: float) -> LatentModel:
    """The latent model of a test that has not been made."""
    n, none = float(people * probes), np.empty(0)
    clusters = Clusters(np.array([float(probes)]), np.array([float(people)]))
    correlations = Correlations.of(0.0, person, float(people))
    model = LatentModel("frr", Design(n, n * (probes - 1.0)), clusters, float(people), correlations)
    return GalleryVariance(gallery, Curve(none, none, none, enrolled), none, none).added_to(model)
