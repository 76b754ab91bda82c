"""Rates of searches in a gallery: FPIR, FNIR, CMC and selectivity, with intervals as methods."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from matchbound.counts.searches import SearchTally
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.results.claims import Claimable
from matchbound.results.interval import Interval, Side, named, one_side, tail_of
from matchbound.show.numbers import percent
from matchbound.show.shown import Shown
from matchbound.stats.intervals import effective_n, wilson
from matchbound.stats.search.mated import MissVariances, Ranked, miss_variances
from matchbound.stats.search.nonmated import HitCurve, HitVariances, hit_variances, rotating_variance

if TYPE_CHECKING:
    from matchbound.stats.search.latent import SearchModel
    from matchbound.stats.search.sizes import HitList

Gallery = Literal["random", "fixed"]
METHODS = ("auto", "latent", "wilson", "naive-wilson")
FEW_PEOPLE = 30
FEW_HOLDERS = 10.0

NAIVE = Note(
    "advised-against",
    "naive-wilson treats searches as independent: people are searched for several times and all searches share one "
    "gallery. Its intervals held the truth in 57 to 95% of simulated cases at level 95%. Use method='auto'",
)


def gallery_named(gallery: str) -> Gallery:
    """``"random"`` or ``"fixed"``."""
    if gallery == "random":
        return "random"
    if gallery == "fixed":
        return "fixed"
    raise UsageError(f"gallery must be 'random' (enrolled people are a sample) or 'fixed'; got {gallery!r}")


@dataclass(frozen=True, eq=False, repr=False)
class SearchRate(Claimable):
    """A rate of searches; see `FalsePositives`, `Misses`.

    metric
        ``"fpir"``, ``"fnir"`` or ``"cmc"``.
    threshold
        In the units of the scores; None for CMC.
    rank
        None for FPIR.
    errors, searches
        Searches that erred, and all of their kind.
    n_identities
        People searched for.
    """

    metric: str
    threshold: float | None
    rank: int | None
    errors: int
    searches: int
    n_identities: int

    def __repr__(self) -> str:
        where = "" if self.threshold is None else f" at {self.threshold:g}"
        rank = "" if self.rank is None else f", rank {self.rank}"
        return f"SearchRate({self.metric}={self.estimate:.6g}, {self.errors}/{self.searches}{where}{rank})"

    def __str__(self) -> str:
        return f"{self.metric.upper()} {percent(self.estimate)} ({self.errors:,} of {self.searches:,} searches)"

    @property
    def estimate(self) -> float:
        """The rate: errors / searches, or for CMC one minus that; NaN without searches."""
        return self._seen(self.errors / self.searches) if self.searches else float("nan")

    def variance(self, gallery: str = "random") -> float:
        """Variance of the estimate.

        Parameters
        ----------
        gallery
            ``"random"``: the people searched for and the enrolled are both samples. ``"fixed"``: this gallery.
        """
        kind = gallery_named(gallery)
        return self._variance(kind) if self.searches else float("nan")

    def effective_n(self, gallery: str = "random") -> float:
        """N* = max(p(1−p)/V, J): how many independent searches would be as informative; J people were searched for."""
        if not self.searches:
            return float("nan")
        return effective_n(self.errors / self.searches, self.variance(gallery), self._floor(gallery_named(gallery)))

    def design_effect(self, gallery: str = "random") -> float:
        """Searches divided by the effective number of searches."""
        return self.searches / self.effective_n(gallery) if self.searches else float("nan")

    def interval(
        self, method: str = "auto", level: float = 0.95, *, gallery: str = "random", side: Side = "two-sided"
    ) -> Interval:
        """A confidence interval for the rate.

        Parameters
        ----------
        method
            ``"auto"``: ``"latent"`` where it can be fitted, else ``"wilson"``; and ``"wilson"`` for miss rates above
            one half. `Interval.method` says which.
            ``"latent"``: the latent-correlation model. ``"wilson"``: Wilson's form at the effective number of searches,
            with a t quantile. ``"naive-wilson"``: as if searches were independent; for comparison.
        level
            The confidence level.
        gallery
            ``"random"`` for claims about an algorithm: a new gallery of the same size and new people searched for.
            ``"fixed"`` for claims about one deployment: this gallery, new people searched for.
        side
            ``"two-sided"``, or ``"upper"`` / ``"lower"`` for a one-sided bound at the same level.
        """
        made = self._interval(named(method, METHODS), level, gallery_named(gallery), side)
        for note in made.notes:
            warnings.warn(note.about(self.metric.upper()), MatchboundWarning, stacklevel=2)
        return made

    def latent_model(self, gallery: str = "random") -> SearchModel:
        """The latent model fitted to these searches; see docs/explanation/identification.md."""
        self._must_have_searches()
        model = self._model(gallery_named(gallery))
        if model is None:
            raise DataError(f"{self.metric}: {self._why_no_model()}; use method='wilson'")
        return model

    def _interval(self, method: str, level: float, gallery: Gallery, side: Side) -> Interval:
        self._must_have_searches()
        tail = tail_of(level, side)
        notes: list[Note] = list(self._notes(gallery))
        if method == "naive-wilson":
            notes = [NAIVE]
            low, high = wilson(self.errors / self.searches, self.searches, tail)
        else:
            model = None
            if method == "latent" or (method == "auto" and not self._rather_wilson()):
                model = self._model(gallery)
            if method == "latent" and model is None:
                raise DataError(f"{self.metric}: {self._why_no_model()}; use method='wilson'")
            if model is not None:
                method = "latent"
                low, high = model.limits(self.errors, tail)
                notes += self._model_notes(model)
            else:
                if method == "auto" and not self._rather_wilson() and (why := self._why_no_model()):
                    notes.append(Note("no-model", f"{why}; the interval is Wilson's"))
                method = "wilson"
                low, high = self._wilson(tail, gallery)
        if self.metric == "cmc":
            low, high = 1.0 - high, 1.0 - low
        return Interval(*one_side(low, high, side), level, method, side, tuple(dict.fromkeys(notes)))

    def _wilson(self, tail: float, gallery: Gallery) -> tuple[float, float]:
        from scipy.special import ndtr

        from matchbound.stats.search.latent import t_deviate

        return wilson(
            self.errors / self.searches,
            self.effective_n(gallery),
            float(ndtr(-t_deviate(self.effective_identities, tail))),
        )

    def _must_have_searches(self) -> None:
        if not self.searches:
            raise DataError(self._missing())

    def _seen(self, rate: float) -> float:
        return 1.0 - rate if self.metric == "cmc" else rate

    def _few(self) -> list[Note]:
        if self.n_identities >= FEW_PEOPLE:
            return []
        return [
            Note(
                "few-identities",
                f"only {self.n_identities} people were searched for: coverage was not studied below {FEW_PEOPLE}",
            )
        ]

    # What the two kinds of searches do differently.

    @property
    def effective_identities(self) -> float:
        """J_e = n²/Σn_j²: people with equally many searches who would weigh as much."""
        raise NotImplementedError

    def _variance(self, gallery: Gallery) -> float:
        raise NotImplementedError

    def _floor(self, gallery: Gallery) -> float:
        return float(self.n_identities)

    def _model(self, gallery: Gallery) -> SearchModel | None:
        raise NotImplementedError

    def _rather_wilson(self) -> bool:
        """Whether Wilson's form is the better one however well the model fits."""
        return False

    def _why_no_model(self) -> str:
        return "too few distinct scores to estimate how errors are correlated"

    def _missing(self) -> str:
        raise NotImplementedError

    def _notes(self, gallery: Gallery) -> list[Note]:
        return self._few()

    def _model_notes(self, model: SearchModel) -> list[Note]:
        erring = model.erring(self.errors)
        if erring >= FEW_HOLDERS:
            return []
        return [
            Note(
                "few-erring",
                f"extrapolated: about {erring:.1f} people account for the errors at this threshold, so the interval "
                "relies on correlations estimated at larger rates",
            )
        ]


@dataclass(frozen=True, eq=False, repr=False)
class FalsePositives(SearchRate):
    """FPIR at a threshold: searches of people who are not enrolled that return somebody.

    See Also
    --------
    Searches.fpir

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
    >>> rate = found.fpir(threshold=0.6)
    >>> rate.errors, rate.searches
    (9, 220)
    """

    tally: SearchTally
    curve: HitCurve = field(repr=False)
    oriented: float

    @cached_property
    def variances(self) -> HitVariances:
        """The parts of the variance: people searched for, gallery, and what both count."""
        return hit_variances(self.curve, self.curve.at(self.oriented), self.tally.size)

    @property
    def rotating(self) -> bool:
        """Whether people are both searched for and enrolled, their own enrolment left out of the search."""
        return self.tally.nonmated.rotating

    @property
    def effective_identities(self) -> float:
        """J_e = n²/Σn_j²."""
        from matchbound.stats.search.latent import effective_people

        return effective_people(self.curve.searches_of)

    @cached_property
    def _crossed(self) -> float:
        found, probes = self.tally, self.tally.nonmated
        return rotating_variance(
            probes.person, probes.enrolled, probes.holder[:, 0], probes.score[:, 0], probes.score[:, 1],
            found.size, self.oriented,
        )[0]  # fmt: skip

    def _variance(self, gallery: Gallery) -> float:
        if gallery == "fixed":
            return float(self.variances.people)
        return self._crossed if self.rotating else float(self.variances.random)

    def _floor(self, gallery: Gallery) -> float:
        if self.rotating and gallery == "random":
            return float(max(self.n_identities // 2, 1))
        return float(self.n_identities)

    def _model(self, gallery: Gallery) -> SearchModel | None:
        from matchbound.stats.search.latent import fit_hits

        if self.rotating and gallery == "random":
            return None
        return fit_hits(self.curve, self.errors, self.tally.size, random=gallery == "random")

    def _why_no_model(self) -> str:
        if self.rotating:
            return "people are both enrolled and searched for, and the latent model has no form for that"
        return super()._why_no_model()

    def _missing(self) -> str:
        return (
            "every probe shows an enrolled person, so FPIR is not defined; add probes of people who are not enrolled, "
            "or search with protocol='rotating'"
        )

    def _model_notes(self, model: SearchModel) -> list[Note]:
        from matchbound.stats.search.latent import HUBS

        notes = super()._model_notes(model)
        if model.gallery is not None and model.gallery.rho.pooled > HUBS:
            notes.append(
                Note(
                    "hubs",
                    f"a few enrolled people receive most false hits (ρ_G = {model.gallery.rho.pooled:.2f}): the "
                    "gallery, not the number of searches, limits this claim. gallery='fixed' is about this gallery "
                    "alone; see hubs()",
                )
            )
        return notes


@dataclass(frozen=True, eq=False, repr=False)
class Misses(SearchRate):
    """FNIR at a threshold and rank, or CMC at a rank: searches of enrolled people whose mate is not returned.

    See Also
    --------
    Searches.fnir, Searches.cmc

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
    >>> round(found.fnir(threshold=0.6, rank=1).estimate, 3)
    0.135
    """

    ranked: Ranked = field(repr=False)
    oriented: float

    @cached_property
    def variances(self) -> MissVariances:
        """With the gallery fixed and random."""
        return miss_variances(self.ranked, self.oriented)

    @property
    def effective_identities(self) -> float:
        """J_e = T²/Σm_i²."""
        from matchbound.stats.search.latent import effective_people

        return effective_people(self.ranked.searches_of)

    def _variance(self, gallery: Gallery) -> float:
        return self.variances.fixed if gallery == "fixed" else self.variances.random

    def _model(self, gallery: Gallery) -> SearchModel | None:
        from matchbound.stats.search.latent import fit_misses

        ranked = self.ranked
        score = ranked.margin if self.metric == "cmc" else ranked.crossing
        model = fit_misses(ranked.person, score, ranked.searches_of, self.errors)
        if model is None or gallery == "fixed":
            return model
        return replace(model, extra=max(self.variances.random - self.variances.fixed, 0.0))

    def _rather_wilson(self) -> bool:
        """Where most searches miss, a few people hold the rest, and the latent interval covered only 91%."""
        return 2 * self.errors > self.searches

    def _missing(self) -> str:
        return (
            "no probe shows an enrolled person, so FNIR and CMC are not defined; are the identities of gallery and "
            "probes written alike?"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Selectivity(Shown):
    """SEL: the mean number of enrolled people who reach the threshold in a search without a mate, N·FMR.

    threshold
        In the units of the scores.
    hits
        Who reached it.

    See Also
    --------
    Searches.selectivity

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
    >>> round(found.selectivity(threshold=0.6).estimate, 3)
    0.091
    """

    metric = "selectivity"
    threshold: float
    hits: HitList = field(repr=False)

    def __repr__(self) -> str:
        return f"Selectivity({self.estimate:.6g} at {self.threshold:g})"

    @property
    def estimate(self) -> float:
        """Hits per search."""
        return self.hits.mean_hits

    @property
    def errors(self) -> int:
        """All hits."""
        return int(self.hits.hits.sum())

    @property
    def searches(self) -> int:
        """Searches without a mate."""
        return self.hits.searches

    def variance(self, gallery: str = "random") -> float:
        """Variance of the estimate.

        Parameters
        ----------
        gallery
            ``"random"``: enrolled people are a sample; ``"fixed"``: this gallery.
        """
        hits = self.hits if gallery_named(gallery) == "random" else replace(self.hits, probe=None, holder=None)
        return hits.variance(lambda h: h)

    def interval(self, level: float = 0.95, *, gallery: str = "random", side: Side = "two-sided") -> Interval:
        """An interval on the logarithm of the selectivity, with a t quantile; without a hit, from Wilson's bound.

        Parameters
        ----------
        level
            The confidence level.
        gallery
            ``"random"``: enrolled people are a sample; ``"fixed"``: this gallery.
        side
            ``"two-sided"``, or ``"upper"`` / ``"lower"`` for a one-sided bound at the same level.
        """
        from scipy.special import ndtr

        from matchbound.stats.search.latent import effective_people, t_deviate

        people = np.bincount(self.hits.person, minlength=self.hits.n_people)
        deviate = t_deviate(effective_people(people), tail_of(level, side))
        if not self.errors:
            high = self.hits.size * wilson(0.0, int(np.count_nonzero(people)), float(ndtr(-deviate)))[1]
            return Interval(*one_side(0.0, high, side, (0.0, math.inf)), level, "wilson", side)
        error = deviate * math.sqrt(max(self.variance(gallery), 0.0)) / self.estimate
        low, high = self.estimate * math.exp(-error), self.estimate * math.exp(error)
        return Interval(*one_side(low, high, side, (0.0, math.inf)), level, "log-t", side)

    def upper_bound(self, level: float = 0.95, *, gallery: str = "random") -> float:
        """The one-sided bound that the selectivity stays below with the given confidence.

        Parameters
        ----------
        level
            The confidence.
        gallery
            ``"random"``: enrolled people are a sample; ``"fixed"``: this gallery.
        """
        return self.interval(level, gallery=gallery, side="upper").high
