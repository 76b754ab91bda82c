"""ROC and DET curves: rates at every threshold, and what is asked of them: points, costs, bands, limits, thresholds."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeGuard, overload

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.curves import Asked, refined_curve
from matchbound.counting.recount import Recount
from matchbound.counts.curve import CurveTally
from matchbound.errors import DataError, MatchboundWarning, UsageError, argument, check_rate, named
from matchbound.metrics import Home
from matchbound.notes import Note
from matchbound.results import costs, latent
from matchbound.results.claims import Judged
from matchbound.results.costs import DetectionCost, LogCost
from matchbound.results.latent import CurveModels
from matchbound.results.number import ADVISED_AGAINST, Draws, records_of, tail_of
from matchbound.results.points import FEW_ERRORS, NONE, Auc, Eer, OperatingPoint, latent_limits, replicates
from matchbound.results.rates import Metric, error_rates
from matchbound.show.numbers import percent, target_text, threshold_text, typed_number
from matchbound.show.shown import Shown
from matchbound.show.terms import Terms, speaking
from matchbound.stats.curve import rates as stats
from matchbound.stats.curve.bootstrap import CURVE_BOOTSTRAPS
from matchbound.stats.curve.influence import band_grid, band_limits
from matchbound.stats.dyadic import bias_factor, effective_number
from matchbound.stats.intervals import effective_trials, fallback_wilson, normal_quantile, wilson_limits
from matchbound.stats.resampling import seed_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.show.records import Library
    from matchbound.show.tables import Table

# A band begins where so many impostor comparisons match: pointwise, simultaneous.
BAND_ERRORS, WHOLE_BAND_ERRORS = 10, 100
BAND_POINTS = 200
# FARs at which a latent band is computed.
LATENT_POINTS = 20
# Limits as near to 0 or 1 as this are 0 or 1.
SURE = 1e-12
METHODS = ("auto", "latent", "wilson")
# Thresholds at which identity pairs are counted together.
AT_ONCE = 32
# Up to so many points the sample's own variance is counted; at more it is read between points all along the curve.
FEW_POINTS = 1000


@dataclass(frozen=True, eq=False)
class Band(Shown):
    """Limits for FRR at a grid of FARs, increasing; float64 arrays, shape (L,).

    `level` is that of each FAR by itself or, where `simultaneous`, of all together; limits are `critical` standard
    errors off.
    """

    far: FloatArray = field(repr=False)
    frr: FloatArray = field(repr=False)
    low: FloatArray = field(repr=False)
    high: FloatArray = field(repr=False)
    level: float
    simultaneous: bool
    critical: float

    def to_records(self) -> list[dict[str, Any]]:
        columns = (self.far.tolist(), self.frr.tolist(), self.low.tolist(), self.high.tolist())
        return [dict(zip(("far", "frr", "low", "high"), row, strict=True)) for row in zip(*columns, strict=True)]


def latent_band(models: CurveModels, grid: FloatArray, level: float) -> Band:
    """The latent interval of FRR at some FARs of a grid; between them straight on the probit scale."""
    from scipy.special import ndtr, ndtri

    far, frr = models.curve.far, models.curve.frr
    every = np.array([stats.index_at_far(far, target) for target in grid])
    some = np.linspace(0, grid.size - 1, min(LATENT_POINTS, grid.size)).round().astype(np.int64)
    index = np.unique(every[some])
    low_at, high_at = latent_limits([OperatingPoint(models, frr[k], int(k), far[k], "far") for k in index], level)

    def probit(rates: ArrayLike) -> FloatArray:
        result: FloatArray = ndtri(np.clip(rates, SURE, 1.0 - SURE))
        return result

    def along(limits: FloatArray) -> FloatArray:
        value = ndtr(np.interp(probit(grid), probit(far[index]), probit(limits)))
        result: FloatArray = np.where(value <= 2 * SURE, 0.0, np.where(value >= 1.0 - 2 * SURE, 1.0, value))
        return result

    low, high, here = along(low_at), along(high_at), frr[every]
    critical = normal_quantile((1.0 - level) / 2.0)
    return Band(grid, here, np.minimum(low, here), np.maximum(high, here), level, False, critical)


def bootstrap_band(curve: CurveTally, grid: FloatArray, level: float, draws: Draws) -> Band:
    """Percentile limits at each FAR of the grid, at which every replicate is read (vertical averaging)."""
    scheme, drawn = replicates(curve, draws, grid, NONE)
    if scheme.tau != 1.0:
        raise UsageError("tau is not available for whole curves; use the bootstrap of a point such as at_far(…)")
    if draws.method in ADVISED_AGAINST:
        warnings.warn(ADVISED_AGAINST[draws.method], MatchboundWarning, stacklevel=3)
    tail = tail_of(level, "two-sided")
    low, high = np.quantile(drawn.frr, [tail, 1.0 - tail], axis=0, method="weibull")
    frr = np.array([curve.frr[stats.index_at_far(curve.far, target)] for target in grid])
    return Band(grid, frr, low, high, level, False, normal_quantile(tail))


def band_fars(curve: CurveTally, far: ArrayLike | None, errors: int) -> FloatArray:
    """The FARs of a band: those given, or `BAND_POINTS` from so many false matches to 0.5, even on the probit scale."""
    if far is None:
        return band_grid(min(errors / curve.n_impostor, 0.25), 0.5, BAND_POINTS)
    grid = np.array(far, dtype=np.float64).reshape(-1)
    if not grid.size or np.any(np.diff(grid) <= 0.0) or grid[0] < 0.0 or grid[-1] > 1.0:
        raise UsageError("far must hold increasing rates between 0 and 1")
    return grid


@dataclass(frozen=True)
class ThresholdChoice(Shown):
    """The most lenient threshold whose one-sided upper bound on FAR, `far_upper`, meets the target."""

    threshold: float
    target: float
    confidence: float
    far: float
    far_upper: float
    frr: float
    method: str = "wilson"


class RateLimits(NamedTuple):
    """Intervals of FAR or FRR at P fixed thresholds, shape (P,); `upper` is one-sided, at the same level."""

    low: FloatArray
    high: FloatArray
    upper: FloatArray
    method: str


def limits_at(curve: RocCurve, points: IntArray, metric: Metric, level: float, method: str = "auto") -> RateLimits:
    """Limits of a rate at points of the curve: those that the rate has at each threshold, all solved together."""
    method = named(method, METHODS)
    if curve.weighting == "identities":
        return _unit_limits(curve, points, metric, level, method)
    tails = tail_of(level, "two-sided"), tail_of(level, "upper")
    fallback = method == "auto" and latent.why_not(curve.recount) is not None
    if method == "wilson" or fallback:
        both, one = (_wilson_at(curve, points, metric, tail, fallback) for tail in tails)
        return RateLimits(both[0], both[1], one[1], "wilson")
    from matchbound.stats.latent.model import BLENDED

    part, tally = curve.tally.part(metric), curve.tally
    counts, first, place = np.unique(part.errors[points], return_index=True, return_inverse=True)
    along = tally.tally_at(np.sort(points[first])) if counts.size <= FEW_POINTS else curve._models.along
    some = bool(np.any(counts < BLENDED[1] * part.total))
    across = some and bool(np.any(counts > BLENDED[0] * part.total))
    model = latent.fit(metric, along, 0 if some else part.total, curve.recount, both=across)
    t, one_sided = model.deviate(level), model.deviate(level, "upper")
    deviates, upper = np.repeat([t, t, one_sided], counts.size), np.repeat([False, True, True], counts.size)
    limits = model.limit(np.tile(counts, 3), deviates, upper).reshape(3, -1)[:, place.reshape(-1)]
    return RateLimits(limits[0], limits[1], limits[2], "latent")


def _unit_limits(curve: RocCurve, points: IntArray, metric: str, level: float, method: str) -> RateLimits:
    """The limits of rates in which every identity counts once: those of `evaluate` at each threshold."""
    limits, used = np.empty((3, points.size)), method
    for start in range(0, points.size, AT_ONCE):
        part = points[start : start + AT_ONCE]
        counted = curve.recount.tally(curve.thresholds[part], pairs=metric == "far")
        for k, rates in enumerate(error_rates(counted, (), curve.recount, "identities"), start):
            rate = getattr(rates, metric)
            both = rate.interval(method, level)
            limits[:, k] = both.low, both.high, rate.upper_bound(level, method)
            used = both.method
    return RateLimits(limits[0], limits[1], limits[2], used)


def _wilson_at(
    curve: RocCurve, points: IntArray, metric: Metric, tail: float, fallback: bool
) -> tuple[FloatArray, FloatArray]:
    """Wilson's limits at points of the curve: as printed, or those of the default where identities are unknown."""
    part, estimate = curve.tally.part(metric), getattr(curve, metric)[points]
    variance = getattr(curve, f"{metric}_variance")[points]
    if not fallback:
        trials = effective_trials(estimate, variance, part.floor)
        return wilson_limits(estimate, trials, normal_quantile(tail))
    identities = effective_number(part.weights)
    spread = variance * bias_factor(metric, identities, 0.0)
    return fallback_wilson(estimate, spread, part.floor, part.total, tail, identities - 1.0)


def threshold_for(curve: RocCurve, far: float, confidence: float, method: str) -> ThresholdChoice:
    """The most lenient threshold whose upper bound on FAR meets a target."""
    if curve.weighting == "identities":
        pooled = argument("weighting", "comparisons")
        raise UsageError(f"a threshold with a guarantee is of pooled comparisons; use {pooled}")
    check_rate(far, "far", zero=True, one=True)
    tail = tail_of(confidence, "upper")
    chosen = named(method, METHODS)
    fallback = chosen == "auto" and latent.why_not(curve.recount) is not None
    if chosen == "wilson" or fallback:
        chosen, upper = "wilson", _wilson_at(curve, np.arange(len(curve)), "far", tail, fallback)[1]
        good = np.flatnonzero(upper <= far)
        k = int(good[-1]) if good.size else int(np.argmin(upper))
        bound = float(upper[k])
    else:
        chosen, (k, bound) = "latent", _latent_choice(curve, far, confidence)
    if bound > far:
        matches = int(curve.tally.false_matches[k])
        raise DataError(
            f"no threshold of these data supports FAR ≤ {far:g} with confidence {confidence:g}: the lowest upper "
            f"bound is {bound:.3g}, at threshold {curve.thresholds[k]:g} with {matches:,} "
            f"false match{'' if matches == 1 else 'es'} among {curve.tally.n_impostor} comparisons of "
            f"{curve.n_identities} identities. More identities are needed"
        )
    at = float(curve.thresholds[k])
    return ThresholdChoice(at, float(far), float(confidence), float(curve.far[k]), bound, float(curve.frr[k]), chosen)


def _latent_choice(curve: RocCurve, far: float, confidence: float) -> tuple[int, float]:
    """The last point whose latent upper bound is at most `far` (the first point where none is), and its bound."""
    stop = stats.index_at_far(curve.far, far) + 1
    counts, first = np.unique(curve.tally.false_matches[:stop], return_index=True)
    last = np.append(first[1:], stop) - 1  # the most lenient point of each count

    @cache
    def bound(place: int) -> float:
        """That of a rate at the threshold, with the sample's variance counted there."""
        model = latent.fit("far", curve.tally.tally_at(last[[place]]), int(counts[place]), curve.recount)
        return float(model.limit(float(counts[place]), model.deviate(confidence, "upper"), True)[0])

    place = max(bisect_right(range(counts.size), far, key=bound) - 1, 0)
    return int(last[place]), bound(place)


FARS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
COLUMNS = ("far", "frr", "far_variance", "frr_variance")


def _are_several(rates: Any) -> TypeGuard[Sequence[float]]:
    """Whether rates are a list or an array, and not one number or what a caller took for one."""
    return isinstance(rates, (list, tuple, np.ndarray)) and np.ndim(rates) > 0


@dataclass(frozen=True, eq=False, repr=False)
class RocCurve(Judged, Shown):
    """FAR and FRR at every threshold, from the strictest to the most lenient.

    Rates at a target are those of a threshold that exists: FRR at FAR f is that of the most lenient threshold whose FAR
    is at most f. EER is where the straight line between neighbouring points crosses FAR = FRR.
    """

    home: ClassVar[Home] = "curve"
    tally: CurveTally
    recount: Recount
    warnings: tuple[Note, ...] = ()
    _refined: dict[Asked, RocCurve] = field(default_factory=dict, init=False, repr=False)

    def __repr__(self) -> str:
        units = f"{self.tally.n_genuine} genuine and {self.tally.n_impostor} impostor comparisons"
        if self.weighting == "identities":
            units = f"{self.tally.n_genuine} identities and {self.tally.n_impostor} identity pairs counted once"
        return f"RocCurve({self.thresholds.size} thresholds, {units} of {self.n_identities} identities)"

    def __len__(self) -> int:
        return int(self.thresholds.size)

    def to_records(self) -> list[dict[str, Any]]:
        """FRR at FARs of 10%, 1%, … that the data can support, EER and AUC, each with its default interval."""
        return records_of([*(self.at_far(far) for far in self._supported), self.eer(), self.auc()])

    def to_frame(self, library: Library | None = None) -> Any:
        """The whole curve as a data frame: threshold, FAR, FRR and their variances, one row per threshold.

        Parameters
        ----------
        library
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``. By default the first of them that the program has imported
            already, else the first that is installed.
        """
        from matchbound.show.records import frame_of_columns

        columns = {"threshold": self.thresholds, **{name: getattr(self, name) for name in COLUMNS}}
        return frame_of_columns(columns, library)

    def _tables(self) -> list[Table]:
        """Estimates read from the curve as it is: to print one computes no interval and counts nothing again."""
        from matchbound.show.tables import as_table

        crossed = stats.crossing(self.far, self.frr)
        rows = [(f"FRR at FAR {target_text(far)}", stats.index_at_far(self.far, far)) for far in self._supported]
        listed = [(name, threshold_text(self.thresholds[k]), percent(float(self.frr[k]))) for name, k in rows]
        listed.append(("EER", threshold_text(self.thresholds[crossed.index]), percent(crossed.estimate)))
        table = as_table(("metric", "threshold", "estimate"), listed, repr(self))
        return [replace(table, note="Estimates only; to_records() adds intervals.")]

    @property
    def _supported(self) -> list[float]:
        return [far for far in FARS if far * self.tally.n_impostor >= FEW_ERRORS]

    @property
    def weighting(self) -> str:
        """What counts once: ``"comparisons"``, or ``"identities"``; see `evaluate`."""
        return self.tally.weighting

    @property
    def n_identities(self) -> int:
        """How many identities there are."""
        return self.tally.n_identities

    @property
    def distance(self) -> bool:
        """Whether a match is ``score <= threshold``."""
        return self.tally.distance

    @property
    def thresholds(self) -> FloatArray:
        """Thresholds in the units of the scores, strictest first, shape (K,). The first one matches nothing."""
        return self.tally.thresholds

    @property
    def far(self) -> FloatArray:
        """FAR at each threshold, never decreasing, shape (K,)."""
        return self.tally.far

    @property
    def frr(self) -> FloatArray:
        """FRR at each threshold, never increasing, shape (K,)."""
        return self.tally.frr

    # The same, in the words of ISO/IEC 19795-1.
    fmr, fnmr = far, frr

    @cached_property
    def far_variance(self) -> FloatArray:
        """Plug-in variance of FAR at each threshold, shape (K,). It can be negative in small samples."""
        return stats.curve_variance(self.tally, "far")

    @cached_property
    def frr_variance(self) -> FloatArray:
        """Plug-in variance of FRR at each threshold, shape (K,)."""
        return stats.curve_variance(self.tally, "frr")

    def points(self) -> list[OperatingPoint | Eer]:
        """What is usually reported together: FRR at FAR 1e-2 … 1e-6 as the data support, at FAR 0, and EER.

        A FAR is supported when at least one comparison would match there by chance: N·FAR ≥ 1.
        """
        supported = [far for far in FARS[1:] if far * self.tally.n_impostor >= 1.0]
        return [*[self.at_far(far) for far in supported], self.at_far(0.0), self.eer()]

    def threshold_at(self, criterion: str = "eer") -> float:
        """The threshold at which this curve meets a criterion, to be used on other people.

        Parameters
        ----------
        criterion
            ``"eer"``, ``"min-hter"``, ``"far=0.001"`` (the most lenient threshold with at most this FAR) or
            ``"frr=0.05"`` (the strictest with at most this FRR).
        """
        name, equals, word = "".join(criterion.lower().split()).partition("=")
        if name not in ("eer", "min-hter", "far", "frr") or bool(equals) != (name in ("far", "frr")):
            raise UsageError(f"criterion must be eer, min-hter, far=RATE or frr=RATE; got {criterion!r}")
        try:
            rate = typed_number(word) if word else 0.0
        except ValueError:
            raise UsageError(f"criterion {criterion!r}: {word!r} is not a rate") from None
        if name == "eer":
            return self.eer().threshold
        if name == "min-hter":
            return self.min_dcf(0.5).threshold
        return self.at_far(rate).threshold if name == "far" else self.at_frr(rate).threshold

    @overload
    def at_far(self, far: float) -> OperatingPoint: ...
    @overload
    def at_far(self, far: Sequence[float]) -> list[OperatingPoint]: ...
    def at_far(self, far: float | Sequence[float]) -> OperatingPoint | list[OperatingPoint]:
        """FRR at the most lenient threshold whose FAR is at most `far`.

        Parameters
        ----------
        far
            The target FAR, between 0 and 1; several give a list.
        """
        return [self.at_far(each) for each in far] if _are_several(far) else self._at("far", far)

    def at_frr(self, frr: float) -> OperatingPoint:
        """FAR at the strictest threshold whose FRR is at most `frr`.

        Parameters
        ----------
        frr
            The target FRR, between 0 and 1.
        """
        return self._at("frr", frr)

    def _at(self, given: Literal["far", "frr"], rate: Any) -> OperatingPoint:
        check_rate(rate, given, zero=True, one=True)
        exact = self.refined(far=[rate]) if given == "far" else self.refined(frr=[rate])
        k = stats.index_at_far(exact.far, rate) if given == "far" else stats.index_at_frr(exact.frr, rate)
        other = exact.tally.part("frr" if given == "far" else "far")
        return OperatingPoint(exact._models, float(other.errors[k] / other.total), k, float(rate), given)

    def refined(self, far: Sequence[float] = (), frr: Sequence[float] = (), *, eer: bool = False) -> RocCurve:
        """The curve with points added so that the thresholds of these rates, or the equal error rate, are exact.

        A curve with every step is returned as it is. Otherwise each threshold takes two passes or so over the data;
        asking for all of them at once costs no more than asking for one.

        Parameters
        ----------
        far, frr, eer
            Rates whose thresholds, and whether the equal error rate, are to be exact.
        """
        curve = self.tally
        if curve.every_step:
            return self
        asked = Asked(
            tuple(stats.count_within(rate, curve.n_impostor) for rate in far),
            tuple(stats.count_within(rate, curve.n_genuine) for rate in frr),
            eer,
        )
        if asked not in self._refined:
            self._refined[asked] = replace(self, tally=refined_curve(curve, self.recount, asked))
        return self._refined[asked]

    def eer(self) -> Eer:
        """The equal error rate."""
        exact = self.refined(eer=True)
        crossed = stats.crossing(exact.far, exact.frr)
        return Eer(exact._models, crossed.estimate, crossed.index)

    def auc(self, max_far: float = 1.0) -> Auc:
        """The area under the ROC curve, or its part up to a FAR divided by that FAR.

        Parameters
        ----------
        max_far
            Up to which FAR.
        """
        if not 0.0 < max_far <= 1.0:
            raise UsageError(f"max_far must lie above 0 and be at most 1; got {max_far!r}")
        area = stats.area_terms(self.tally, float(max_far)).estimate
        return Auc(self._models, area, stats.index_at_far(self.far, max_far), float(max_far))

    def min_dcf(
        self, prior: float | str = 0.01, cost_miss: float = 1.0, cost_false_accept: float = 1.0
    ) -> DetectionCost:
        """The least normalised detection cost over thresholds.

        With m = min(π·C_m, (1−π)·C_f) it is min over t of (π·C_m·FRR(t) + (1−π)·C_f·FAR(t))/m: at most 1, the cost of
        the better of "accept everything" and "reject everything".

        Parameters
        ----------
        prior
            π, the prior of a genuine comparison; or the name of an evaluation, which sets the costs too, such as
            ``"sre16"`` or ``"voxsrc"``: see `matchbound.results.costs.PRESETS`.
        cost_miss, cost_false_accept
            C_m and C_f.
        """
        return costs.detection_cost(self._models, "mindcf", prior, cost_miss, cost_false_accept)

    def actual_dcf(
        self, prior: float | str = 0.01, cost_miss: float = 1.0, cost_false_accept: float = 1.0
    ) -> DetectionCost:
        """The normalised detection cost at the threshold log(C_f(1−π)/(C_m·π)), for scores that are natural log-LRs.

        Parameters
        ----------
        prior, cost_miss, cost_false_accept
            As for `min_dcf`.
        """
        return costs.detection_cost(self._models, "actdcf", prior, cost_miss, cost_false_accept)

    def cllr(self) -> LogCost:
        """Cllr in bits: ½·mean log₂(1 + e^−l) over genuine + ½·mean log₂(1 + e^l) over impostor comparisons.

        The scores l must be natural log-likelihood ratios (Brümmer & du Preez 2006).
        """
        return costs.cllr(self._models)

    def min_cllr(self) -> LogCost:
        """Cllr after the best increasing map of the scores, by pooling adjacent violators; only their order matters."""
        return costs.min_cllr(self._models)

    @cached_property
    def _models(self) -> CurveModels:
        return CurveModels(self.tally, self.recount)

    def band(
        self,
        level: float = 0.95,
        simultaneous: bool = False,
        *,
        far: ArrayLike | None = None,
        method: str = "influence",
        n_resamples: int = 2000,
        rng: int | np.random.Generator | None = 0,
        workers: int = 1,
        **options: Any,
    ) -> Band:
        """Limits for FRR along the curve.

        Parameters
        ----------
        level, simultaneous
            The confidence level at each FAR by itself, or of the whole stretch (sup-t, multiplier bootstrap).
        far
            The FARs, increasing; by default 200, from 10 matching impostor comparisons (100 for simultaneous bands) to
            FAR 0.5, even on the probit scale.
        method
            ``"influence"``: by influence functions, quick. Pointwise only: ``"latent"``, the default interval of
            `at_far` at some twenty FARs, joined by straight lines on the probit scale; and percentiles of bootstrap
            curves: ``"vertex"``, ``"double-or-nothing"``, ``"subsets"`` or ``"two-level"``.
        n_resamples, rng, workers
            Of the bootstraps.
        options
            What bootstraps take, such as ``smooth``; see `Number.bootstrap`.
        """
        tail_of(level, "two-sided")
        grid = band_fars(self.tally, far, WHOLE_BAND_ERRORS if simultaneous else BAND_ERRORS)
        method = named(method, ("influence", "latent", *CURVE_BOOTSTRAPS))
        if simultaneous and method != "influence":
            raise UsageError("simultaneous bands need method='influence'")
        if method in CURVE_BOOTSTRAPS:
            return bootstrap_band(self.tally, grid, level, Draws(method, n_resamples, rng, workers, options))
        if options:
            raise UsageError(f"unknown option {sorted(options)[0]!r} for method {method!r}")
        if method == "latent":
            return latent_band(self._models, grid, level)
        frr, low, high, critical = band_limits(self.tally, grid, level, simultaneous, n_resamples, seed_of(rng))
        return Band(grid, frr, low, high, level, simultaneous, critical)

    def threshold_for(
        self, far: float, confidence: float = 0.95, *, method: Literal["auto", "latent", "wilson"] = "auto"
    ) -> ThresholdChoice:
        """The most lenient threshold whose one-sided upper bound on FAR meets a target.

        Parameters
        ----------
        far, confidence
            The target, and the level of the bound.
        method
            The bound is that of ``evaluate(...).far.upper_bound(confidence, method)``: ``"auto"`` (the default),
            ``"latent"``, which keeps its promise where a few identities make most errors, or ``"wilson"``.
            DataError where no threshold supports the claim.
        """
        return threshold_for(self, far, confidence, method)

    def plot(
        self,
        kind: str = "det",
        ax: Axes | None = None,
        *,
        terms: Terms = "plain",
        band: Literal["pointwise", "simultaneous"] | None = "pointwise",
        level: float = 0.95,
        label: str | None = None,
        mark: bool = True,
        bins: int = 60,
        threshold: float | None = None,
        log: bool = False,
    ) -> Axes:
        """Draw the curve, or the scores behind it. `plot_det` draws several curves in one picture.

        Parameters
        ----------
        kind
            ``"det"``: FRR against FAR on probit axes; ``"roc"``: 1 − FRR against FAR on a logarithmic axis;
            ``"scores"``: histograms of genuine and impostor scores.
        ax
            Axes to draw on; by default those of a new figure, which a notebook shows by itself.
        terms
            ``"iso"`` writes FMR and FNMR.
        band, level
            ``"pointwise"``, ``"simultaneous"`` or None (DET and ROC), and its coverage.
        label, mark
            Name in the legend; whether to mark the equal error rate (DET).
        bins, threshold, log
            Cells of the histograms, where to draw a line, and a logarithmic height (scores).
        """
        from matchbound.show import figures, mpl

        draw = partial(mpl.draw, ax=ax)
        histogram = partial(figures.score_histogram, self.tally.counted, self.recount.tally, bins)
        kinds: dict[str, Callable[[], Axes]] = {
            "det": lambda: mpl.plot_det(self, ax=ax, band=band, level=level, labels=label, mark=mark),
            "roc": lambda: mpl.plot_roc(self, ax=ax, band=band, level=level, labels=label),
            "scores": lambda: draw(figures.scores_figure(histogram(), self.distance, threshold, log=log)),
        }
        if kind not in kinds:
            raise UsageError(f"kind must be one of {', '.join(kinds)}; got {kind!r}")
        with speaking(terms):
            return kinds[kind]()
