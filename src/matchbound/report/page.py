"""What a report says, as plain values: every number that a page or a table shows is here, and none is made later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.curve import CurveTally, SortedCurve
from matchbound.counts.unit_curve import UnitCurve
from matchbound.notes import Note
from matchbound.report.search_numbers import SearchReport
from matchbound.report.systems import SystemsSection
from matchbound.results import claims as results_claims
from matchbound.results.description import Description
from matchbound.show.histogram import Histogram


@dataclass(frozen=True)
class ReportedNumber:
    """A number with its interval, as a report states it.

    metric
        ``"far"``, ``"frr"``, ``"frr@far"``, ``"eer"`` or ``"auc"``.
    low, high
        Two-sided limits at the report's level.
    upper
        One-sided upper bound at the same level; None for AUC.
    method
        How the limits were made.
    errors, comparisons
        What was counted; None for EER and AUC.
    naive_ratio
        How many times wider the interval is than one that takes the comparisons for independent; None where that
        has no meaning.
    wilson
        Wilson's two-sided limits, for a rate at a fixed threshold.
    """

    metric: str
    estimate: float
    low: float
    high: float
    upper: float | None
    method: str
    errors: int | None = None
    comparisons: int | None = None
    naive_ratio: float | None = None
    wilson: tuple[float, float] | None = None


@dataclass(frozen=True)
class ReportedPoint:
    """An operating point.

    target
        The FAR that was asked for; None where the threshold was.
    threshold
        Where the decision is made.
    reading
        A short decimal for the threshold; see `Panel`.
    far, frr
        FAR at the threshold as a fixed one; FRR likewise, or, for a target FAR, FRR at that FAR, whose interval counts
        the uncertainty of the threshold too.
    """

    target: float | None
    threshold: float
    reading: str
    far: ReportedNumber
    frr: ReportedNumber


@dataclass(frozen=True, eq=False)
class PanelRate:
    """A rate at the P thresholds of a panel, with the intervals of the report's method; arrays of shape (P,)."""

    comparisons: int
    errors: IntArray
    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class Panel:
    """Both rates at P thresholds, in increasing order of the threshold: what a slider moves over.

    thresholds : float64 array, shape (P,)
    readings
        The thresholds as short decimals.
    exact
        Whether a reading makes the same decisions on these data as the threshold itself, as for a curve with every
        step; else readings are thresholds to six digits.
    start
        Where the slider begins.
    """

    thresholds: FloatArray
    readings: tuple[str, ...]
    far: PanelRate
    frr: PanelRate
    exact: bool
    start: int

    def __len__(self) -> int:
        return len(self.readings)


@dataclass(frozen=True, eq=False)
class CurvePicture:
    """The curve and its pointwise band; float64 arrays.

    far, frr : shape (K,)
        From the strictest threshold to the most lenient.
    band_far, band_low, band_high : shape (L,)
        Limits for FRR at given FARs.
    """

    far: FloatArray = field(repr=False)
    frr: FloatArray = field(repr=False)
    band_far: FloatArray = field(repr=False)
    band_low: FloatArray = field(repr=False)
    band_high: FloatArray = field(repr=False)


@dataclass(frozen=True)
class Contributor:
    """An identity and its part in the variance of a rate.

    label
        Who, or None where labels are not to be shown.
    share
        Of the variance, by r_i²/Σr_i².
    more
        Whether it errs more than the overall rate would have it, or less.
    rate_without
        The overall rate without this identity.
    """

    label: str | None
    share: float
    more: bool
    errors: int
    comparisons: int
    rate_without: float


@dataclass(frozen=True)
class Drivers:
    """Which identities drive the uncertainty of a rate.

    threshold, rate
        Where, and the rate there.
    top
        The largest contributors.
    top_share
        What they add up to.
    half
        How few identities make half of it.
    n_identities
        Identities that take part.
    """

    metric: Literal["far", "frr"]
    threshold: float
    rate: float
    top: tuple[Contributor, ...]
    top_share: float
    half: int
    n_identities: int


@dataclass(frozen=True)
class ReportedGroup:
    """Rates of one group at the report's threshold; None where there is nothing to compare.

    compared
        Whether the group is large enough to be set beside others.
    """

    name: str
    n_identities: int
    far: ReportedNumber | None
    frr: ReportedNumber | None
    compared: bool = True


@dataclass(frozen=True)
class ReportedGap:
    """A rate of one group minus that of another.

    low, high
        Limits that hold for all pairs of groups at once.
    among
        How many pairs of groups there are.
    p_value
        Of "the rates are equal", adjusted for all pairs.
    """

    metric: str
    first: str
    second: str
    estimate: float
    low: float
    high: float
    among: int
    p_value: float


@dataclass(frozen=True)
class GroupCross:
    """The impostor rate of comparisons between two groups."""

    first: str
    second: str
    far: ReportedNumber


@dataclass(frozen=True)
class GroupRange:
    """The group with the highest rate over the one with the lowest.

    ratio, low, high
        With limits that hold whichever groups the data had shown to be these two; None where there is no number.
    """

    metric: str
    worst: str
    best: str
    rate_worst: float
    rate_best: float
    ratio: float | None
    low: float
    high: float | None


@dataclass(frozen=True)
class GroupSection:
    """Rates by group.

    threshold
        At which they were taken.
    rows
        Each group by itself.
    gaps
        Differences between groups.
    ranges
        From best to worst group, of each rate.
    between
        Impostor rates between groups, the highest first.
    overall
        FAR and FRR of all data at the threshold.
    notes
        Groups too small to say anything about, and the like.
    """

    threshold: float
    reading: str
    rows: tuple[ReportedGroup, ...]
    gaps: tuple[ReportedGap, ...]
    ranges: tuple[GroupRange, ...]
    between: tuple[GroupCross, ...]
    overall: tuple[float, float]
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class PerPerson:
    """A rate in which every identity counts once, beside the pooled one.

    pooled, per_person
        The two, at the same threshold.
    heavy, heavy_share
        How many identities have the most comparisons (a tenth of all), and their share of the comparisons.
    heavy_rate, rest_rate
        The pooled rate of these, and of the others; None where there are no others.
    """

    metric: Literal["far", "frr"]
    pooled: ReportedNumber
    per_person: ReportedNumber
    heavy: int
    heavy_share: float
    heavy_rate: float
    rest_rate: float | None


@dataclass(frozen=True)
class Suspect:
    """A comparison that erred, by name: shown only where that was asked for."""

    metric: Literal["far", "frr"]
    first: str
    second: str
    score: float


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that a report says.

    title, level
        As asked for.
    description
        What the data are.
    points
        Operating points: thresholds that were asked for, then target FARs.
    focus
        Which of them the summary speaks of.
    eer, auc
        With intervals.
    eer_reading
        The threshold nearest to EER.
    panel, picture, histogram
        For the slider and the plots.
    drivers
        Who drives the uncertainty, of FAR and of FRR.
    groups
        Rates by group, or None.
    systems
        Other systems on the same comparisons, or None.
    suspects
        The worst errors by name; empty unless they were asked for.
    warnings
        What a reader must keep in mind.
    provenance
        Version, parameters, seed, and the digest of the input.
    verdicts
        Claims and whether the data show them; empty unless they were made.
    costs
        Detection costs and Cllr; empty unless they were asked for.
    per_person
        The rates at the focus with every identity counted once; empty where all identities have as many comparisons.
    weighting
        What the rates of the page are means over: ``"comparisons"``, or ``"identities"``.

    See Also
    --------
    make_report, write_report

    Examples
    --------
    >>> import matchbound as mb
    >>> report = mb.make_report(mb.demo_data(n_identities=40), far=1e-2)
    >>> report.level, [round(point.frr.estimate, 4) for point in report.points]
    (0.95, [0.0017])
    """

    title: str
    level: float
    description: Description
    points: tuple[ReportedPoint, ...]
    focus: int
    eer: ReportedNumber
    eer_reading: str
    auc: ReportedNumber
    panel: Panel
    picture: CurvePicture
    histogram: Histogram
    drivers: tuple[Drivers, ...]
    groups: GroupSection | None
    systems: SystemsSection | None
    suspects: tuple[Suspect, ...]
    warnings: tuple[Note, ...]
    provenance: Mapping[str, Any]
    verdicts: tuple[Verdict, ...] = ()
    costs: tuple[ReportedCost, ...] = ()
    per_person: tuple[PerPerson, ...] = ()
    searches: SearchReport | None = None
    weighting: str = "comparisons"

    def __repr__(self) -> str:
        people = f"{self.description.n_identities:,} identities"
        return f"Report({self.title!r}: {len(self.points)} operating points of {people}; write_report writes it)"


@dataclass(frozen=True)
class Verdict:
    """A claim that was made of the system, and whether the data show it.

    claim
        The requirement and its verdict.
    threshold
        Where it was judged; None for a claim about the whole curve.
    """

    claim: results_claims.Claim
    threshold: float | None = None


@dataclass(frozen=True)
class ReportedCost:
    """A detection cost or Cllr with its interval.

    name
        What it is called, such as "minDCF 0.01".
    """

    name: str
    estimate: float
    low: float
    high: float
    method: str


def counted_curve(curve: CurveTally) -> CurveTally:
    """The curve of comparisons behind a curve of identities; any other is itself."""
    return curve.pooled if isinstance(curve, UnitCurve) else curve


def reading_of(curve: CurveTally, index: int, digits: int = 6) -> str:
    """A short decimal for the threshold of a point of a curve.

    For a curve with every step: the one with fewest digits (at least four) that lies where the decisions are the same,
    between this score and the next. Else the threshold to six digits.
    """
    curve = counted_curve(curve)
    exact = float(curve.thresholds[index])
    if not isinstance(curve, SortedCurve):
        return f"{exact:.{digits}g}"
    following = float(curve.thresholds[index + 1]) if index + 1 < curve.thresholds.size else None
    for count in range(4, 18):
        text = f"{exact:.{count}g}"
        value = float(text)
        if curve.distance:
            same = exact <= value and (following is None or value < following)
        else:
            same = value <= exact and (following is None or value > following)
        if same:
            return text
    return repr(exact)


def reading_of_number(value: float) -> str:
    """The shortest decimal that is this number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))
