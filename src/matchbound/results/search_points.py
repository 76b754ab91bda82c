"""Results that belong to another threshold or gallery than the one searched: FNIR at an FPIR, rates at other sizes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from matchbound.errors import DataError, MatchboundWarning
from matchbound.notes import Note
from matchbound.results.claims import Claimable
from matchbound.results.interval import Interval, Side, named, one_side, tail_of
from matchbound.results.search_rates import FEW_HOLDERS, FalsePositives, Misses, gallery_named
from matchbound.stats.search.mated import Ranked
from matchbound.stats.search.nonmated import HitCurve

if TYPE_CHECKING:
    from matchbound.stats.search.sizes import HitList

MODEL_REACH, WARN_REACH, LAST_REACH = 8.0, 4.0, 16.0
"""The model was studied to eight times the gallery; warnings begin at four times, and beyond sixteen there is none."""


@dataclass(frozen=True, eq=False, repr=False)
class FnirAtFpir(Claimable):
    """FNIR where the threshold is set for a given FPIR.

    target
        The FPIR.
    threshold
        Where it is met on these searches, in the units of the scores.
    fpir, fnir
        Both rates there.

    See Also
    --------
    Searches.fnir_at_fpir

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
    >>> round(found.fnir_at_fpir(0.1).estimate, 3)
    0.069
    """

    metric = "fnir@fpir"
    target: float
    threshold: float
    fpir: FalsePositives = field(repr=False)
    fnir: Misses = field(repr=False)
    curve: HitCurve = field(repr=False)
    ranked: Ranked = field(repr=False)

    def __repr__(self) -> str:
        return f"FnirAtFpir({self.estimate:.6g} at FPIR {self.target:g}, threshold {self.threshold:g})"

    @property
    def estimate(self) -> float:
        """FNIR at that threshold."""
        return self.fnir.estimate

    @property
    def rank(self) -> int | None:
        """R."""
        return self.fnir.rank

    @property
    def errors(self) -> int:
        """Searches that missed."""
        return self.fnir.errors

    @property
    def searches(self) -> int:
        """Searches of enrolled people."""
        return self.fnir.searches

    @property
    def n_identities(self) -> int:
        """Enrolled people who were searched for."""
        return self.fnir.n_identities

    def interval(
        self, method: str = "auto", level: float = 0.95, *, gallery: str = "random", side: Side = "two-sided"
    ) -> Interval:
        """A confidence interval that accounts for the estimated threshold.

        Parameters
        ----------
        method
            ``"latent"``: the latent models of FPIR and FNIR share one error budget. ``"union"``: FPIR's and FNIR's
            Wilson intervals, each at half the error; wide, for searches that the models cannot be fitted to.
            ``"auto"``: the first where it can be fitted.
        level
            The confidence level.
        gallery
            ``"random"``: enrolled people are a sample; ``"fixed"``: this gallery.
        side
            ``"two-sided"``, or ``"upper"`` / ``"lower"`` for a one-sided bound at the same level.
        """
        chosen = named(method, ("auto", "latent", "union"))
        kind = gallery_named(gallery)
        tail = tail_of(level, side)
        for rate in (self.fpir, self.fnir):
            rate._must_have_searches()
        notes: list[Note] = []
        hits = None if chosen == "union" else self.fpir._model(kind)
        misses = None if chosen == "union" else self.fnir._model("fixed")
        if hits is not None and misses is not None:
            from matchbound.stats.search.budget import limits_at_fpir

            ends = limits_at_fpir(
                self.curve.best,
                np.sort(self.ranked.crossing),
                hits,
                misses,
                self.target,
                (hits.deviate(tail), misses.deviate(tail)),
            )
            low, high = float(ends[0]), float(ends[1])
            made = "latent"
            expected = self.target * self.fpir.searches
            if expected < FEW_HOLDERS:
                notes.append(
                    Note(
                        "few-errors",
                        f"extrapolated: {expected:.2g} false positives are expected at this FPIR, and with 3 to 5 the "
                        "interval held the truth in 83 to 92% of simulated cases",
                    )
                )
        elif chosen == "latent":
            raise DataError("fnir@fpir: the latent models cannot be fitted to these searches; use method='union'")
        else:
            low, high = self._union(tail / 2.0, kind)
            made = "union"
            if chosen == "auto":
                notes.append(
                    Note(
                        "no-model",
                        "the latent models cannot be fitted to these searches; the interval is a union of two",
                    )
                )
        for note in notes:
            warnings.warn(note.about("FNIR@FPIR"), MatchboundWarning, stacklevel=2)
        return Interval(*one_side(low, high, side), level, made, side, tuple(notes))

    def _union(self, tail: float, gallery: str) -> tuple[float, float]:
        """FNIR's limits at the thresholds where FPIR's limits meet the target."""
        from dataclasses import replace

        from scipy.special import ndtri

        from matchbound.stats.search.budget import threshold_at

        low, high = self.fpir._wilson(tail, gallery_named(gallery))
        z = float(ndtri(self.target))
        ends = []
        for limit, place in ((low, 0), (high, 1)):
            moved = float(2.0 * z - ndtri(np.clip(limit, 1e-12, 1.0 - 1e-12)))
            from scipy.special import ndtr

            at = threshold_at(self.curve.best, float(np.clip(ndtr(moved), 0.0, 1.0)))
            rate = replace(self.fnir, oriented=at, errors=self.ranked.misses(at))
            ends.append(rate._wilson(tail, gallery_named(gallery))[place])
        return min(ends), max(ends)


@dataclass(frozen=True, eq=False, repr=False)
class RateAtSize(Claimable):
    """FPIR or CMC in a gallery of another size.

    metric
        ``"fpir@size"`` or ``"cmc@size"``.
    size
        N', the gallery asked about.
    threshold, rank
        Whichever the rate has.
    hits
        Who reached the threshold (CMC: who beat the mate) in the gallery searched.

    See Also
    --------
    Searches.at_gallery_size

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
    >>> larger = found.at_gallery_size(200, threshold=0.6)
    >>> round(found.fpir(threshold=0.6).estimate, 3), round(larger.estimate, 3)
    (0.041, 0.061)
    """

    metric: str
    size: int
    threshold: float | None
    rank: int | None
    hits: HitList = field(repr=False)
    deviate_people: float = field(repr=False)

    def __repr__(self) -> str:
        return f"RateAtSize({self.metric}={self.estimate:.6g}, {self.size:,} enrolled instead of {self.hits.size:,})"

    @property
    def searches(self) -> int:
        """Searches behind the rate."""
        return self.hits.searches

    @property
    def errors(self) -> int:
        """Searches with a hit (CMC: that miss) in the gallery searched."""
        return int(np.count_nonzero(self.hits.hits))

    @property
    def reach(self) -> float:
        """N'/N: how many times the gallery searched."""
        return self.size / self.hits.size

    @property
    def estimate(self) -> float:
        """The rate in a gallery of that size; NaN more than sixteen times beyond the gallery searched."""
        from matchbound.stats.search import sizes

        if self.reach > LAST_REACH:
            return float("nan")
        if self.reach <= 1.0:
            return self._seen(sizes.smaller(self.hits, self.size, 0.0).estimate)
        return self._seen(sizes.extrapolate(self.hits.mean_hits, self.hits.rate, self.hits.size, self.size))

    def interval(self, method: str = "auto", level: float = 0.95, *, side: Side = "two-sided") -> Interval:
        """A confidence interval; the enrolled people count as a sample.

        Parameters
        ----------
        method
            ``"auto"``: ``"u-statistic"`` for smaller galleries, ``"latent"`` (a probit-normal model) to eight times the
            gallery searched, ``"bound"`` beyond. ``"bound"``: a bracket without a model.
        level
            The confidence level.
        side
            ``"two-sided"``, or ``"upper"`` / ``"lower"`` for a one-sided bound at the same level.
        """
        from matchbound.stats.search import sizes
        from matchbound.stats.search.latent import t_deviate

        chosen = named(method, ("auto", "latent", "bound", "u-statistic"))
        deviate = t_deviate(self.deviate_people, tail_of(level, side))
        smaller = self.reach <= 1.0
        if chosen == "auto":
            chosen = "u-statistic" if smaller else "latent" if self.reach <= MODEL_REACH else "bound"
        if (chosen == "u-statistic") != smaller:
            where = "at most" if smaller else "more than"
            raise DataError(
                f"{self.metric}: method {chosen!r} is not for {where} the {self.hits.size:,} people enrolled"
            )
        if chosen == "latent" and self.reach > MODEL_REACH:
            raise DataError(
                f"{self.metric}: {self.hits.size:,} enrolled people say too little about {self.size:,}: the model "
                f"was studied to {MODEL_REACH:g} times the gallery. Enrol at least "
                f"{-(-self.size // int(MODEL_REACH)):,}, or use method='bound'"
            )
        if not self.errors:
            low, high, chosen = 0.0, self._without_hits(deviate), "wilson"
        elif chosen == "u-statistic":
            made = sizes.smaller(self.hits, self.size, deviate)
            low, high = made.low, made.high
        elif chosen == "latent":
            free = 1.0 if self.metric == "cmc@size" else WARN_REACH
            made = sizes.larger(self.hits, self.size, deviate, free)
            low, high = made.low, made.high
        else:
            made = sizes.bracket(self.hits, self.size, deviate)
            low, high = made.low, made.high if self.reach <= LAST_REACH else 1.0
            if self.reach > MODEL_REACH:  # a larger gallery cannot have a lower rate than the one searched
                spread = self.hits.variance(lambda h: (h >= 1.0).astype(np.float64))
                low = max(low, sizes.limits(self.hits.rate, spread, deviate)[0])
        notes = self.notes()
        for note in notes:
            warnings.warn(note.about(self.metric.upper()), MatchboundWarning, stacklevel=2)
        if self.metric == "cmc@size":
            low, high = 1.0 - high, 1.0 - low
        return Interval(*one_side(low, high, side), level, chosen, side, notes)

    def bracket(self, level: float = 0.95) -> Interval:
        """The interval without a model, to print beside the other; the same one for smaller galleries.

        Parameters
        ----------
        level
            The confidence level.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)
            return self.interval("auto" if self.reach <= 1.0 else "bound", level)

    def notes(self) -> tuple[Note, ...]:
        """What a reader must know."""
        found = []
        if self.reach > LAST_REACH:
            found.append(
                Note(
                    "far-beyond",
                    f"{self.hits.size:,} enrolled people say too little about {self.size:,}: there is no estimate, "
                    "and the interval is only a logical bound. Search a gallery of at least "
                    f"{-(-self.size // int(MODEL_REACH)):,}",
                )
            )
        elif self.reach > MODEL_REACH:
            found.append(
                Note(
                    "beyond-model",
                    f"{self.size:,} is {self.reach:.3g} times the gallery searched, and the model was studied to "
                    f"{MODEL_REACH:g} times: the interval is a bracket without a model",
                )
            )
        elif self.reach > WARN_REACH:
            found.append(
                Note(
                    "extrapolated",
                    f"{self.size:,} is {self.reach:.3g} times the gallery searched: beyond {WARN_REACH:g} times, the "
                    "model can be far off where a few people make most hits. Look at the bracket too",
                )
            )
        if self.hits.probe is None and self.errors:
            found.append(
                Note(
                    "hits-not-listed",
                    "there are too many hits to list, so the gallery's part of the variance is left out",
                )
            )
        return tuple(found)

    def _without_hits(self, deviate: float) -> float:
        """(N'/N)·U, U Wilson's upper limit at no hit among the people searched for."""
        from scipy.special import ndtr

        from matchbound.stats.intervals import wilson

        people = int(np.unique(self.hits.person).size)
        return min(1.0, self.reach * wilson(0.0, people, float(ndtr(-deviate)))[1])

    def _seen(self, rate: float) -> float:
        return 1.0 - rate if self.metric == "cmc@size" else rate
