"""What a report says: the results behind it, each with the interval that the page shows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.counts.curve import CurveTally
from matchbound.errors import MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.results.roc import limits_at
from matchbound.show.figures import spread_points
from matchbound.show.records import Record
from matchbound.show.section import Document, Section, Slider

if TYPE_CHECKING:
    from matchbound.results.claims import Claim
    from matchbound.results.description import Description
    from matchbound.results.groups import GroupRates
    from matchbound.results.number import Number
    from matchbound.results.rates import Rate
    from matchbound.results.roc import RocCurve
    from matchbound.show.figures import Histogram
    from matchbound.stats.variance import Contributions

# Fewer errors do not support an operating point that nobody asked for.
FEW_ERRORS = 10


@dataclass(frozen=True)
class Stated:
    """A number with the interval that a report states.

    low, high
        Two-sided limits at the report's level.
    upper
        One-sided upper bound at the same level; None where larger is better.
    errors, comparisons
        What was counted; None for numbers that are not counts.
    naive_ratio
        How many times wider the interval is than one that takes the comparisons for independent; None where that
        has no meaning.
    reading
        A short decimal for the threshold of a number of the whole curve.
    """

    number: Number = field(repr=False)
    low: float
    high: float
    upper: float | None
    method: str
    errors: int | None = None
    comparisons: int | None = None
    naive_ratio: float | None = None
    reading: str = "–"

    @property
    def metric(self) -> str:
        """Such as ``"far"`` or ``"frr@far"``."""
        return self.number.metric

    @property
    def estimate(self) -> float:
        """Its value."""
        return self.number.estimate

    @property
    def without_error(self) -> bool:
        """Whether it is a rate of no error at all."""
        return self.errors == 0 and bool(self.comparisons) and self.upper is not None

    @property
    def record(self) -> Record:
        """For the columns of a table."""
        return {**self.number.record(None), **vars(self)}


@dataclass(frozen=True)
class Settings:
    """How every number of a page is counted and bounded.

    drawing
        ``n_resamples`` and ``rng`` of bootstraps.
    engine
        ``workers`` and ``executor``.
    """

    level: float
    method: str
    weighting: str
    drawing: Mapping[str, Any]
    engine: Mapping[str, Any]

    def stated(self, number: Number, rate: Rate | None = None, reading: str = "–") -> Stated:
        """A number with the intervals of the page; a method that it does not have is answered by its default.

        Parameters
        ----------
        rate
            The rate at a fixed threshold that the number is about, if any: its counts are shown.
        """
        method = self.method if self.method in number.methods else "auto"
        options = self.drawing if method != "auto" else {}
        interval = number.interval(method, self.level, **options)
        upper = None if number.metric == "auc" else number.upper_bound(self.level, method, **options)
        stated = Stated(number, interval.low, interval.high, upper, interval.method, reading=reading)
        if rate is None:
            return stated
        ratio = None
        if "naive-wilson" in rate.methods:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MatchboundWarning)  # it is not shown, only how much wider ours is
                naive = rate.interval("naive-wilson", self.level).width
            ratio = interval.width / naive if naive > 0.0 else None
        return replace(stated, errors=rate.errors, comparisons=rate.comparisons, naive_ratio=ratio)


@dataclass(frozen=True)
class Point:
    """An operating point.

    target
        The FAR that was asked for; None where the threshold was.
    reading
        A short decimal for the threshold; see `Slider`.
    far, frr
        FAR at the threshold as a fixed one; FRR likewise, or, for a target FAR, FRR at that FAR, whose interval
        accounts for the estimated threshold.
    """

    target: float | None
    threshold: float
    reading: str
    far: Stated
    frr: Stated
    gfar: Stated | None = None
    gfrr: Stated | None = None


@dataclass(frozen=True, eq=False)
class Systems:
    """Other systems on the same comparisons.

    names
        The report's own system first.
    records
        FRR at equal FARs, then EER, then rates at thresholds, of all pairs of systems; see `comparison_records`.
    focus
        The FAR of which the verdict speaks.
    facts
        What was compared with what, as (what, value).
    curves
        The curve of each system on its own comparisons.
    """

    names: tuple[str, ...]
    records: tuple[Record, ...]
    focus: float
    facts: tuple[tuple[str, str], ...]
    notes: tuple[Note, ...]
    curves: tuple[RocCurve, ...] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that a report says.

    curve
        The curve of the page, refined at its operating points.
    points
        Operating points: thresholds that were asked for, then target FARs.
    focus
        Which of them the summary speaks of.
    slider, band, histogram
        Behind the slider and the plots.
    drivers
        Who drives the uncertainty: FAR and FRR at the focus, and what each identity adds to the variance; empty where
        the data name no people.
    costs
        Detection costs and Cllr; empty unless they were asked for.
    verdicts
        (claim, threshold) of each claim; the threshold is None for a claim about the curve.
    group_records
        Rates and gaps of groups with the intervals of the page.
    searches
        Sections about searches in a gallery.
    warnings
        What a reader must keep in mind.
    provenance
        Version, parameters, seed, and the digest of the input.
    weighting
        What the rates of the page are means over: ``"comparisons"``, or ``"identities"``.
    """

    title: str
    level: float
    description: Description
    curve: RocCurve
    points: tuple[Point, ...]
    focus: int
    eer: Stated
    auc: Stated
    slider: Slider
    band: Any
    histogram: Histogram
    drivers: tuple[tuple[Rate, Contributions], ...]
    provenance: Mapping[str, Any]
    show_labels: bool = False
    costs: tuple[Stated, ...] = ()
    verdicts: tuple[tuple[Claim, float | None], ...] = ()
    groups: GroupRates | None = None
    group_records: tuple[Record, ...] = ()
    systems: Systems | None = None
    searches: tuple[Section, ...] = ()
    warnings: tuple[Note, ...] = ()
    weighting: str = "comparisons"

    def __repr__(self) -> str:
        people = f"{self.description.n_identities:,} identities"
        return f"Report({self.title!r}: {len(self.points)} operating points of {people}; write_report writes it)"

    def document(self) -> Document:
        """The report as sections."""
        from matchbound.report.sections import document

        return document(self)

    def reworded(self, words: Callable[[Sequence[Note]], tuple[Note, ...]]) -> Report:
        """The same with its notes put in other words, as a command line does."""
        groups = self.groups and replace(self.groups, warnings=words(self.groups.warnings))
        return replace(self, warnings=words(self.warnings), groups=groups)


def best_supported(candidates: Sequence[tuple[float, int]]) -> int:
    """The place of the lowest FAR that rests on enough errors, of (FAR, fewest errors); else of the highest FAR."""
    enough = [place for place, (_, errors) in enumerate(candidates) if errors >= FEW_ERRORS]
    if enough:
        return min(enough, key=lambda place: candidates[place][0])
    return max(range(len(candidates)), key=lambda place: candidates[place][0])


def number_list(name: str, values: Sequence[float] | float | None) -> list[float]:
    """What was given for a parameter, each number once; empty for None."""
    if values is None:
        return []
    try:
        numbers = np.array(values, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be a number or a sequence of numbers; got {values!r}") from None
    if not np.isfinite(numbers).all():
        raise UsageError(f"{name} must hold finite numbers; got {values!r}")
    return list(dict.fromkeys(numbers.tolist()))


# The slider


# Thresholds of the slider, with those that were asked for.
POINTS = 390
# The same where every person counts once: each limit is then solved for on its own.
PERSON_POINTS = 150


def make_slider(curve: RocCurve, level: float, method: str, points: Sequence[Point], focus: int, eer: int) -> Slider:
    """Both rates with their limits at a few hundred thresholds: what `evaluate` gives at each of them.

    At the points of the page they are those of the page: at a target FAR, FRR accounts for the estimated threshold.

    Parameters
    ----------
    method
        Of the page; the slider has ``"auto"`` for methods that it does not know.
    eer
        The point of the curve that is nearest to the equal error rate.
    """
    counted, most = curve.tally.counted, PERSON_POINTS if curve.weighting == "identities" else POINTS
    aims = [int(getattr(point.frr.number, "index")) for point in points if point.target is not None]  # noqa: B009
    always = np.unique(np.array([0, len(curve) - 1, eer, *aims], dtype=np.int64))
    chosen = spread_points(curve.far, curve.frr, most - len(points), always)
    own = np.array([point.threshold for point in points])
    other = ~np.isin(curve.thresholds[chosen], own)
    thresholds = np.append(curve.thresholds[chosen[other]], own)
    order = np.argsort(thresholds, kind="stable")
    places = np.argsort(order)[-len(points) :].tolist()
    readings = [*(reading_of(counted, int(k)) for k in chosen[other]), *(point.reading for point in points)]
    numbers: dict[str, Any] = {"threshold": thresholds[order]}
    method = method if method in ("latent", "wilson") else "auto"
    for name, errors in (("far", counted.false_matches), ("frr", counted.false_nonmatches)):
        limits = limits_at(curve, chosen, name, level, method)  # type: ignore[arg-type]
        rows = {"estimate": getattr(curve, name)[chosen], "errors": errors[chosen]}
        rows |= {side: getattr(limits, side) for side in ("low", "high", "upper")}
        for key, values in rows.items():
            column = np.append(values[other], [getattr(getattr(point, name), key) for point in points])
            numbers[name if key == "estimate" else f"{name}_{key}"] = column[order]
    return Slider(
        numbers=numbers,
        readings=tuple(readings[k] for k in order),
        exact=counted.every_step,
        start=places[focus],
        level=level,
        totals=(counted.n_impostor, counted.n_genuine),
        distance=curve.distance,
        jumps=tuple(("", place) for place in places),
    )


def reading_of(curve: CurveTally, index: int, digits: int = 6) -> str:
    """A short decimal for the threshold of a point of a curve.

    For a curve with every step: the one with fewest digits (at least four) that lies where the decisions are the same,
    between this score and the next. Else the threshold to six digits.
    """
    curve = curve.counted
    exact = float(curve.thresholds[index])
    if not curve.every_step:
        return f"{exact:.{digits}g}"
    following = float(curve.thresholds[index + 1]) if index + 1 < curve.thresholds.size else None
    sign = 1.0 if curve.distance else -1.0
    for count in range(4, 18):
        text = f"{exact:.{count}g}"
        value = float(text)
        if sign * exact <= sign * value and (following is None or sign * value < sign * following):
            return text
    return repr(exact)
