"""ROC and DET curves: rates and variances at every threshold, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeGuard, overload

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import FloatArray
from matchbound.counting.curves import Asked, refined_curve
from matchbound.counting.recount import Recount
from matchbound.counts.curve import CurveTally, SteppedCurve
from matchbound.errors import UsageError
from matchbound.metrics import Home
from matchbound.notes import Note
from matchbound.results import bands, costs
from matchbound.results.bands import Band, ThresholdChoice
from matchbound.results.claims import Judged
from matchbound.results.costs import DetectionCost, LogCost
from matchbound.results.interval import check_rate, named, tail_of
from matchbound.results.latent import CurveModels
from matchbound.results.number import records_of
from matchbound.results.points import FEW_ERRORS, Auc, Eer, OperatingPoint
from matchbound.show.numbers import percent, target_text, threshold_text, typed_number
from matchbound.show.shown import Shown
from matchbound.show.terms import Terms, speaking
from matchbound.stats.curve.bootstrap import CURVE_BOOTSTRAPS
from matchbound.stats.curve.influence import band_limits
from matchbound.stats.curve.rates import (
    CurveVariances,
    area_terms,
    count_within,
    crossing,
    curve_variances,
    index_at_far,
    index_at_frr,
)
from matchbound.stats.resampling import seed_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.show.records import Library
    from matchbound.show.tables import Table


# Points by the names of PyEER: which rate is given, and its value.
POINTS: dict[str, tuple[str, float]] = {
    "FMR20": ("far", 0.05),
    "FMR100": ("far", 0.01),
    "FMR1000": ("far", 0.001),
    "ZeroFMR": ("far", 0.0),
    "ZeroFNMR": ("frr", 0.0),
}
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

        crossed = crossing(self.far, self.frr)
        rows = [(f"FRR at FAR {target_text(far)}", index_at_far(self.far, far)) for far in self._supported]
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

    @property
    def far_variance(self) -> FloatArray:
        """Plug-in variance of FAR at each threshold, shape (K,). It can be negative in small samples."""
        return self._variances.far

    @property
    def frr_variance(self) -> FloatArray:
        """Plug-in variance of FRR at each threshold, shape (K,)."""
        return self._variances.frr

    @cached_property
    def _variances(self) -> CurveVariances:
        return curve_variances(self.tally, self.tally.sums)

    def at(self, name: str) -> OperatingPoint:
        """A point by the name that other tools use.

        ``"FMR20"``, ``"FMR100"``, ``"FMR1000"`` (FRR at FAR 5%, 1%, 0.1%), ``"ZeroFMR"`` (FRR where no impostor
        comparison matches), ``"ZeroFNMR"`` (FAR where every genuine comparison matches); FMR is FAR, FNMR is FRR.

        Parameters
        ----------
        name
            Such as ``"FMR100"``, whatever the capitals.
        """
        given, rate = POINTS[named(name, tuple(POINTS), "name")]
        return self.at_far(rate) if given == "far" else self.at_frr(rate)

    def points(self) -> list[OperatingPoint | Eer]:
        """The numbers that are usually reported together: FRR at FAR 1e-2 … 1e-6 as the data support, ZeroFMR, and EER.

        A FAR is supported when at least one comparison would match there by chance: N·FAR ≥ 1.
        """
        supported = [far for far in FARS[1:] if far * self.tally.n_impostor >= 1.0]
        return [*[self.at_far(far) for far in supported], self.at("ZeroFMR"), self.eer()]

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

    @overload
    def at_frr(self, frr: float) -> OperatingPoint: ...
    @overload
    def at_frr(self, frr: Sequence[float]) -> list[OperatingPoint]: ...
    def at_frr(self, frr: float | Sequence[float]) -> OperatingPoint | list[OperatingPoint]:
        """FAR at the strictest threshold whose FRR is at most `frr`.

        Parameters
        ----------
        frr
            The target FRR, between 0 and 1; several give a list.
        """
        return [self.at_frr(each) for each in frr] if _are_several(frr) else self._at("frr", frr)

    def _at(self, given: Literal["far", "frr"], rate: Any) -> OperatingPoint:
        check_rate(rate, given, zero=True, one=True)
        exact = self.refined(far=[rate]) if given == "far" else self.refined(frr=[rate])
        k = index_at_far(exact.far, rate) if given == "far" else index_at_frr(exact.frr, rate)
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
        if not isinstance(curve, SteppedCurve):
            return self
        asked = Asked(
            tuple(count_within(rate, curve.n_impostor) for rate in far),
            tuple(count_within(rate, curve.n_genuine) for rate in frr),
            eer,
        )
        if asked not in self._refined:
            self._refined[asked] = replace(self, tally=refined_curve(curve, self.recount, asked))
        return self._refined[asked]

    def eer(self) -> Eer:
        """The equal error rate."""
        exact = self.refined(eer=True)
        crossed = crossing(exact.far, exact.frr)
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
        area = area_terms(self.tally, float(max_far)).estimate
        return Auc(self._models, area, index_at_far(self.far, max_far), float(max_far))

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
        far_range: tuple[float, float] | None = None,
        points: int = 200,
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
            The FARs, increasing; by default `points` of them over `far_range`, even on the probit scale.
        far_range
            By default from 10 matching impostor comparisons (100 for simultaneous bands) to FAR 0.5.
        method
            ``"influence"``: by influence functions, quick. Pointwise only: ``"latent"``, the default interval of
            `at_far` at some twenty FARs, joined by straight lines on the probit scale; and percentiles of bootstrap
            curves: ``"vertex"``, ``"double-or-nothing"``, ``"subsets"`` or ``"two-level"``.
        n_resamples, rng, points, workers
            Of the bootstraps, and at how many FARs.
        options
            What bootstraps take, such as ``smooth``; see `Number.bootstrap`.
        """
        tail_of(level, "two-sided")
        errors = bands.WHOLE_BAND_ERRORS if simultaneous else bands.BAND_ERRORS
        grid, seed = bands.curve_grid(self.tally, far, far_range, points, errors), seed_of(rng)
        method = named(method, ("influence", "latent", *CURVE_BOOTSTRAPS))
        if simultaneous and method != "influence":
            raise UsageError("simultaneous bands need method='influence'")
        if method in CURVE_BOOTSTRAPS:
            return bands.bootstrap_band(self.tally, grid, level, method, n_resamples, seed, options, workers)
        if options:
            raise UsageError(f"unknown option {sorted(options)[0]!r} for method {method!r}")
        if method == "latent":
            return bands.latent_band(self._models, grid, level)
        frr, low, high, critical = band_limits(self.tally, grid, level, simultaneous, n_resamples, seed)
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
        return bands.threshold_for(self, far, confidence, method)

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
        histogram = partial(figures.score_histogram, self.tally.counted, bins)
        kinds: dict[str, Callable[[], Axes]] = {
            "det": lambda: mpl.plot_det(self, ax=ax, band=band, level=level, labels=label, mark=mark),
            "roc": lambda: mpl.plot_roc(self, ax=ax, band=band, level=level, labels=label),
            "scores": lambda: draw(figures.scores_figure(histogram(), self.distance, threshold, log=log)),
        }
        if kind not in kinds:
            raise UsageError(f"kind must be one of {', '.join(kinds)}; got {kind!r}")
        with speaking(terms):
            return kinds[kind]()
