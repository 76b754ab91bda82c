"""Searches in a gallery (1:N): what `matchbound.search` returns, its rates as numbers, and its curves.

FPIR, FNIR, CMC, selectivity, FNIR at an FPIR and rates in galleries of other sizes are numbers about searches.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.data.candidates import Candidates
from matchbound.data.labels import label_notes
from matchbound.errors import DataError, MatchboundWarning, UsageError, check_number, check_rate, check_whole
from matchbound.metrics import Home
from matchbound.notes import Note
from matchbound.results.claims import Judged
from matchbound.results.groups import SearchGroups
from matchbound.results.number import Ask, CannotFit, Interval, Limits, Number, Rule, tail_of
from matchbound.show.numbers import percent
from matchbound.show.shown import Shown
from matchbound.stats import gallery_sizes as sizes
from matchbound.stats import searches as stats
from matchbound.stats.budget import RateModels, point_limits
from matchbound.stats.dyadic import effective_number
from matchbound.stats.gallery_sizes import HitList
from matchbound.stats.intervals import effective_n, ndtr, ndtri, normal_quantile, t_quantile, wilson

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.show.tables import Table
    from matchbound.stats.latent.model import LatentModel

Gallery = Literal["random", "fixed"]
GALLERY = frozenset({"gallery"})
FEW_PEOPLE = 15
FEW_ERRORS = 10.0
# The model was studied to eight times the gallery; warnings begin at four times, and beyond sixteen there is none.
MODEL_REACH, WARN_REACH, LAST_REACH = 8.0, 4.0, 16.0
NAIVE = Note(
    "advised-against",
    "naive-wilson treats searches as independent: people are searched for several times and all searches share one "
    "gallery. Its intervals held the truth in 57 to 95% of simulated cases at level 95%. Use method='auto'",
)
NO_FPIR = (
    "every probe shows an enrolled person, so FPIR is not defined; add probes of people who are not enrolled, or "
    "search with protocol='rotating'"
)
NO_FNIR = (
    "no probe shows an enrolled person, so FNIR and CMC are not defined; are the identities of gallery and probes "
    "written alike?"
)


def gallery_named(gallery: str) -> Gallery:
    if gallery not in ("random", "fixed"):
        raise UsageError(f"gallery must be 'random' (enrolled people are a sample) or 'fixed'; got {gallery!r}")
    return "random" if gallery == "random" else "fixed"


class SearchNumber(Number):
    """A number about searches; `interval`, `variance` and claims take ``gallery="random"`` or ``"fixed"``.

    ``"random"`` is for claims about an algorithm: a new gallery of the same size and new people searched for.
    ``"fixed"`` is for claims about one deployment: this gallery, new people searched for.
    """

    if TYPE_CHECKING:
        gallery: Gallery

        @property
        def part(self) -> Any: ...

    def __repr__(self) -> str:
        fields = ", ".join(f"{key}={value}" for key, value in SearchNumber._fields(self).items() if value is not None)
        return f"{type(self).__name__}({self.label}: {self.estimate:.6g}, {fields})"

    @property
    def searches(self) -> int:
        """All searches of their kind."""
        return int(self.part.person.size)

    @cached_property
    def n_identities(self) -> int:
        """People searched for."""
        return int(np.unique(self.part.person).size)

    @property
    def gallery_size(self) -> int:
        """N."""
        return int(self.part.size)

    @cached_property
    def freedom(self) -> float:
        """J_e − 1, with J_e = n²/Σn_j² people with equally many searches who would weigh as much."""
        return effective_number(np.bincount(self.part.person)) - 1.0

    def _of(self, ask: Ask) -> Gallery:
        return gallery_named(ask.options.get("gallery", self.gallery))

    def _without_hits(self, ask: Ask) -> float:
        """Wilson's upper limit at no hit among the people searched for."""
        return wilson(0.0, self.n_identities, ask.tail, self.freedom)[1]

    def _limits(self, low: float, high: float, method: str | None = None, notes: tuple[Note, ...] = ()) -> Limits:
        """Limits of the rate of errors, as those of this number: CMC is one minus that."""
        ends = (1.0 - high, 1.0 - low) if self.metric.startswith("cmc") else (low, high)
        return Limits(*ends, method, notes)

    def _fields(self) -> dict[str, Any]:
        names = {"threshold": "threshold", "rank": "rank", "errors": "errors", "searches": "searches"}
        names |= {"identities": "n_identities", "gallery": "gallery_size", "target": "gallery", "size": "size"}
        return {key: getattr(self, name) for key, name in names.items() if hasattr(self, name)}


def _latent(rate: SearchRate, ask: Ask) -> Limits:
    gallery = rate._of(ask)
    model = rate.latent_model(gallery)
    low, high = model.limit(rate.errors, rate.deviate(ask.tail), np.array([False, True]))
    notes = model.limits(rate.errors, ask.level, ask.side).notes
    if gallery == "random" and rate.metric == "fpir" and rate.part.gallery.rho.pooled > stats.HUBS:
        text = (
            f"a few enrolled people receive most false hits (ρ_G = {rate.part.gallery.rho.pooled:.2f}): the "
            "gallery, not the number of searches, limits this claim. gallery='fixed' is about this gallery alone; see "
            "hubs()"
        )
        notes = (*notes, Note("hubs", text))
    return rate._limits(low, high, notes=notes)


def _wilson(rate: SearchRate, ask: Ask) -> Limits:
    """Wilson's form at the effective number of searches, with a t quantile."""
    trials = rate.effective_n(rate._of(ask))
    return rate._limits(*wilson(rate.errors / rate.searches, trials, ask.tail, rate.freedom))


def _naive_wilson(rate: SearchRate, ask: Ask) -> Limits:
    return rate._limits(*wilson(rate.errors / rate.searches, rate.searches, ask.tail), notes=(NAIVE,))


@dataclass(frozen=True, eq=False, repr=False)
class SearchRate(SearchNumber):
    """FPIR, FNIR or CMC.

    ``"fpir"``: searches of people who are not enrolled that return somebody. ``"fnir"``: searches of enrolled people
    whose mate is not returned. ``"cmc"``: those whose mate is within the best candidates, whatever the score. `gallery`
    is the default target of intervals and variances.
    """

    metric: str
    threshold: float | None
    rank: int | None
    part: Any = field(repr=False)
    oriented: float
    gallery: Gallery = "random"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("latent", _latent, GALLERY, warns=True),
        Rule("wilson", _wilson, GALLERY, warns=True),
        Rule("naive-wilson", _naive_wilson, GALLERY, warns=True),
    )
    defaults: ClassVar[tuple[str, ...]] = ("latent", "wilson")

    def __str__(self) -> str:
        return f"{self.metric.upper()} {percent(self.estimate)} ({self.errors:,} of {self.searches:,} searches)"

    @cached_property
    def errors(self) -> int:
        return int(np.count_nonzero(self.part.erred(self.oriented)))

    @property
    def estimate(self) -> float:
        """The rate: errors / searches, or for CMC one minus that; NaN without searches."""
        rate = self.errors / self.searches if self.searches else float("nan")
        return 1.0 - rate if self.metric == "cmc" else rate

    @cached_property
    def sums(self) -> stats.SearchSums:
        """What people add to the rate of errors."""
        sums: stats.SearchSums = self.part.sums(self.oriented)
        return sums

    def variance(self, gallery: str | None = None) -> float:
        """Variance of the estimate, for a gallery that is ``"random"`` or ``"fixed"``; NaN without searches."""
        kind = gallery_named(gallery or self.gallery)
        return self.sums.variance(kind) if self.searches else float("nan")

    def effective_n(self, gallery: str | None = None) -> float:
        """N* = max(p(1−p)/V, J): how many independent searches would be as informative; J people were searched for.

        Where people are both searched for and enrolled, and the gallery is random, the floor is ⌊J/2⌋.
        """
        if not self.searches:
            return float("nan")
        crossed = self._rotating and gallery_named(gallery or self.gallery) == "random"
        floor = max(self.n_identities // 2, 1) if crossed else self.n_identities
        return effective_n(self.errors / self.searches, self.variance(gallery), float(floor))

    def design_effect(self, gallery: str | None = None) -> float:
        """Searches divided by the effective number of searches."""
        return self.searches / self.effective_n(gallery) if self.searches else float("nan")

    def latent_model(self, gallery: str = "random") -> LatentModel:
        """The latent model fitted to these searches; see docs/explanation/identification.md."""
        self._must_be_defined()
        part, random = self.part, gallery_named(gallery) == "random"
        if random and self._rotating:
            text = "people are both enrolled and searched for, and the latent model has no form for that; use 'wilson'"
            raise CannotFit(Note("no-model", text))
        fitted = part.margin_model if self.metric == "cmc" else part.model
        model = stats.at_errors(fitted, part.person, part.people, part.erred(self.oriented))
        if random and self.metric == "fpir":
            return part.gallery.added_to(model)  # type: ignore[no-any-return]
        more = self.variance("random") - self.variance("fixed") if random else 0.0
        return stats.with_holders(model, more) if more > 0.0 else model

    def deviate(self, tail: float) -> float:
        """The quantile that the latent limits are read at: Student's t for FNIR and CMC, the normal one for FPIR."""
        return normal_quantile(tail) if self.metric == "fpir" else t_quantile(tail, self.freedom)

    @property
    def notes(self) -> tuple[Note, ...]:
        if self.n_identities >= FEW_PEOPLE or not self.searches:
            return ()
        text = f"only {self.n_identities} people were searched for: coverage was not studied below {FEW_PEOPLE}"
        return (Note("few-identities", text),)

    @property
    def _rotating(self) -> bool:
        return self.metric == "fpir" and bool(self.part.rotating)

    def _fields(self) -> dict[str, Any]:
        return {
            **super()._fields(),
            "variance": self.variance(),
            "effective_n": self.effective_n(),
            "design_effect": self.design_effect(),
        }

    def _defined(self) -> bool:
        return self.searches > 0

    def _must_be_defined(self) -> None:
        if not self.searches:
            raise DataError(NO_FPIR if self.metric == "fpir" else NO_FNIR)


def _budget(point: FnirAtFpir, ask: Ask) -> Limits:
    """The latent models of FPIR and FNIR share one error budget.

    The people searched for are different, so that the errors of both rates are taken as independent.
    """
    pair = RateModels(point.fpir.latent_model(point._of(ask)), point.fnir.latent_model("fixed"))
    deviates = point.fpir.deviate(ask.tail), point.fnir.deviate(ask.tail)
    (low,), (high,) = point_limits(stats.curve_of_searches(*point.scores), [pair], np.array([point.target]), deviates)
    expected = point.target * point.fpir.searches
    text = (
        f"extrapolated: {expected:.2g} false positives are expected at this FPIR, and with 3 to 5 the interval held "
        "the truth in 83 to 92% of simulated cases"
    )
    notes = (Note("few-errors", text),) if expected < FEW_ERRORS else ()
    return Limits(float(low), float(high), notes=notes)


def _union(point: FnirAtFpir, ask: Ask) -> Limits:
    """FNIR's Wilson limits at the thresholds where FPIR's meet the target, each at half the error; wide."""
    half = replace(ask, tail=ask.tail / 2.0)
    fpir, ends = _wilson(point.fpir, half), []
    for limit, name in ((fpir.low, "low"), (fpir.high, "high")):
        moved = ndtr(2.0 * ndtri(point.target) - ndtri(np.clip(limit, 1e-12, 1.0 - 1e-12)))
        at = stats.threshold_at(point.scores[0], float(moved))
        ends.append(getattr(_wilson(replace(point.fnir, oriented=at), half), name))
    return Limits(min(ends), max(ends))


@dataclass(frozen=True, eq=False, repr=False)
class FnirAtFpir(SearchNumber):
    """FNIR where the threshold is set for a given FPIR, `target`; its interval accounts for the estimated threshold."""

    target: float
    threshold: float
    fpir: SearchRate = field(repr=False)
    fnir: SearchRate = field(repr=False)
    gallery: Gallery = "random"
    metric: ClassVar[str] = "fnir@fpir"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("latent", _budget, GALLERY, warns=True),
        Rule("union", _union, GALLERY, warns=True),
    )
    defaults: ClassVar[tuple[str, ...]] = ("latent", "union")

    @property
    def part(self) -> Any:
        return self.fnir.part

    @property
    def label(self) -> str:
        return f"fnir@fpir={self.target:g}"

    @property
    def scores(self) -> tuple[FloatArray, FloatArray]:
        """What decides about false positives, descending, and about misses, ascending."""
        return self.fpir.part.best, self.fnir.part.ordered

    @property
    def estimate(self) -> float:
        return self.fnir.estimate

    def _fields(self) -> dict[str, Any]:
        own = SearchNumber._fields(self.fnir)
        return {**own, "threshold": self.threshold, "target": self.gallery, "fpir": self.target}

    def _tables(self) -> list[Table]:
        from matchbound.show.columns import number_table, printed

        return [number_table(printed(self.to_records(), distance=self.threshold != self.fpir.oriented))]

    def _must_be_defined(self) -> None:
        for rate in (self.fpir, self.fnir):
            rate._must_be_defined()


def _log_t(number: Selectivity, ask: Ask) -> Limits:
    """On the logarithm, with a t quantile; without a hit, from Wilson's bound."""
    if not number.errors:
        return Limits(0.0, number.gallery_size * number._without_hits(ask), "wilson")
    error = (
        t_quantile(ask.tail, number.freedom) * math.sqrt(max(number.variance(number._of(ask)), 0.0)) / number.estimate
    )
    return Limits(number.estimate * math.exp(-error), number.estimate * math.exp(error))


@dataclass(frozen=True, eq=False, repr=False)
class Selectivity(SearchNumber):
    """SEL: the mean number of enrolled people who reach the threshold in a search without a mate, N·FMR."""

    threshold: float
    part: HitList = field(repr=False)
    gallery: Gallery = "random"
    metric: ClassVar[str] = "selectivity"
    rules: ClassVar[tuple[Rule, ...]] = (Rule("log-t", _log_t, GALLERY),)
    defaults: ClassVar[tuple[str, ...]] = ("log-t",)

    @property
    def ends(self) -> tuple[float, float]:
        return (0.0, math.inf)

    @property
    def estimate(self) -> float:
        """Hits per search."""
        return self.part.mean_hits

    @property
    def errors(self) -> int:
        """All hits."""
        return int(self.part.hits.sum())

    def variance(self, gallery: str | None = None) -> float:
        """Variance of the estimate, for a gallery that is ``"random"`` or ``"fixed"``."""
        return self.part.variance(lambda h: h, gallery_named(gallery or self.gallery))


def _at_size(limits: Callable[[RateAtSize, float], tuple[float, float]], smaller: bool) -> Callable[..., Limits]:
    """A rule for smaller, or for larger galleries than the one searched."""

    def rule(rate: RateAtSize, ask: Ask) -> Limits:
        if smaller != (rate.reach <= 1.0):
            where = "more than" if smaller else "at most"
            raise DataError(f"{rate.metric}: this method is not for {where} the {rate.part.size:,} people enrolled")
        if rate.errors:
            (low, high), name = limits(rate, t_quantile(ask.tail, rate.freedom)), None
        else:
            low, high, name = 0.0, min(1.0, rate.reach * rate._without_hits(ask)), "wilson"
        return rate._limits(low, high, name)

    return rule


def _u_statistic(rate: RateAtSize, deviate: float) -> tuple[float, float]:
    estimate, phi = sizes.smaller(rate.part, rate.size)
    return sizes.limits(estimate, rate.part.variance(phi), deviate)


def _probit_normal(rate: RateAtSize, deviate: float) -> tuple[float, float]:
    if rate.reach > MODEL_REACH:
        raise DataError(
            f"{rate.metric}: {rate.part.size:,} enrolled people say too little about {rate.size:,}: the model was "
            f"studied to {MODEL_REACH:g} times the gallery. Enrol at least {-(-rate.size // int(MODEL_REACH)):,}, or "
            "use method='bound'"
        )
    return sizes.larger(rate.part, rate.size, deviate, 1.0 if rate.metric == "cmc@size" else WARN_REACH)


def _bracket(rate: RateAtSize, deviate: float) -> tuple[float, float]:
    low, high = sizes.bracket(rate.part, rate.size, deviate)
    if rate.reach > MODEL_REACH:  # all that is sure: a larger gallery cannot have a lower rate than the one searched
        spread = rate.part.variance(lambda h: (h >= 1.0).astype(np.float64))
        low = sizes.limits(rate.part.rate, spread, deviate)[0]
    return low, high if rate.reach <= LAST_REACH else 1.0


@dataclass(frozen=True, eq=False, repr=False)
class RateAtSize(SearchNumber):
    """FPIR or CMC in a gallery of another size; the enrolled people count as a sample.

    By ``"auto"`` smaller galleries have a ``"u-statistic"``, larger ones to eight times the gallery searched
    ``"latent"`` (a probit-normal model), and those beyond ``"bound"``: a bracket without a model.

    `part` is who reached the threshold (CMC: who beat the mate) in the gallery searched.
    """

    metric: str
    size: int
    threshold: float | None
    rank: int | None
    part: HitList = field(repr=False)
    gallery: Gallery = "random"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("u-statistic", _at_size(_u_statistic, True), warns=True),
        Rule("latent", _at_size(_probit_normal, False), warns=True),
        Rule("bound", _at_size(_bracket, False), warns=True),
    )

    @property
    def errors(self) -> int:
        """Searches with a hit (CMC: that miss) in the gallery searched."""
        return int(np.count_nonzero(self.part.hits))

    @property
    def reach(self) -> float:
        """N'/N: how many times the gallery searched."""
        return self.size / self.part.size

    @property
    def estimate(self) -> float:
        """The rate in a gallery of that size; NaN more than sixteen times beyond the gallery searched."""
        hits = self.part
        if self.reach > LAST_REACH:
            return float("nan")
        if self.reach <= 1.0:
            rate = sizes.smaller(hits, self.size)[0]
        else:
            rate = sizes.extrapolate(hits.mean_hits, hits.rate, hits.size, self.size)
        return 1.0 - rate if self.metric == "cmc@size" else rate

    @property
    def notes(self) -> tuple[Note, ...]:
        if self.reach > LAST_REACH:
            enough = f"{-(-self.size // int(MODEL_REACH)):,}"
            code = "far-beyond"
            text = (
                f"{self.part.size:,} enrolled people say too little about {self.size:,}: there is no estimate, and the "
                f"interval is only a logical bound. Search a gallery of at least {enough}"
            )
        elif self.reach > MODEL_REACH:
            code = "beyond-model"
            text = (
                f"{self.size:,} is {self.reach:.3g} times the gallery searched, and the model was studied to "
                f"{MODEL_REACH:g} times: the interval is a bracket without a model"
            )
        elif self.reach > WARN_REACH:
            code = "extrapolated"
            text = (
                f"{self.size:,} is {self.reach:.3g} times the gallery searched: beyond {WARN_REACH:g} times, the model "
                "can be far off where a few people make most hits. Look at the bracket too"
            )
        else:
            return ()
        return (Note(code, text),)

    def record(self, interval: Interval | None) -> dict[str, Any]:
        """The rate with the limits of an interval and of the bracket without a model."""
        record = super().record(interval)
        if interval is not None:
            bracket = self._rule("u-statistic" if self.reach <= 1.0 else "bound")
            limits = bracket.limits(self, Ask(tail_of(interval.level, "two-sided"), interval.level, "two-sided"))
            record |= {"bracket_low": limits.low, "bracket_high": limits.high}
        return record

    def _chosen(self, method: str, options: Mapping[str, Any]) -> str:
        if method != "auto":
            return method
        return "u-statistic" if self.reach <= 1.0 else "latent" if self.reach <= MODEL_REACH else "bound"


POINTS, FEWEST_HITS = 25, 3
MOST_RANKS = 20
CurveKind = Literal["trade-off", "cmc", "size"]
SIZES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0)


@dataclass(frozen=True)
class Hub(Shown):
    """An enrolled person, the searches without a mate that return them, and their share of all such false hits."""

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
        at = stats.threshold_at(self.best, float(fpir))
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
        if group is not None:
            for note in label_notes(np.unique([str(name) for name in group.values()]), "some groups"):
                warnings.warn(note, MatchboundWarning, stacklevel=2)
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

        Counted is everybody who reaches the threshold in a search without a mate, so one search may count for several
        people. One person under two names looks like a hub too.

        Parameters
        ----------
        threshold, top
            As for `hits`; and how many people.
        """
        u = self.hits(threshold).received
        order = np.argsort(-u, kind="stable")[:top]
        labels, total = self.lists.gallery[order].tolist(), max(int(u.sum()), 1)
        return tuple(Hub(label, int(u[g]), float(u[g]) / total) for label, g in zip(labels, order, strict=True) if u[g])

    def people_with_half(self, threshold: float) -> int:
        """How many enrolled people receive half of the false hits of `hubs`; 0 where there is none.

        Parameters
        ----------
        threshold
            As for `hits`.
        """
        u = np.sort(self.hits(threshold).received)[::-1]
        return int(np.searchsorted(np.cumsum(u), u.sum() / 2.0) + 1) if u.sum() else 0

    def ranked(self, rank: int) -> stats.Ranked:
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
    def _at_rank(self) -> Callable[[int], stats.Ranked]:
        part, size = self.mated, self.gallery_size
        return cache(lambda rank: stats.at_rank(part.own, part.mate, part.holder, part.score, size, rank))

    @cached_property
    def _unmated(self) -> stats.Unmated:
        part = self.nonmated
        _, first, person = np.unique(part.identity, return_index=True, return_inverse=True)
        return stats.Unmated(person.reshape(-1), part.own[first], part.holder, part.score, self.gallery_size)

    def hits(self, threshold: float) -> HitList:
        """Who reaches a threshold in the searches without a mate.

        Parameters
        ----------
        threshold
            As for `fpir`; DataError where candidate lists end before it.
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
