"""Pictures as data, and those of results: DET and ROC curves, scores, rates, differences, groups and linkage.

Nothing is computed here but what to draw. `matchbound.show.mpl` draws a figure with matplotlib, and a report as SVG.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.curve import CurveTally
from matchbound.counts.tally import Tally
from matchbound.errors import UsageError
from matchbound.show.numbers import MINUS, level_text, percent, points, points_span, span, target_text, threshold_text
from matchbound.show.records import Record
from matchbound.show.terms import metric_name, say

if TYPE_CHECKING:
    from matchbound.results import roc
    from matchbound.results.groups import GroupRates
    from matchbound.results.roc import RocCurve
    from matchbound.results.searches import SearchCurve

ScaleName = Literal["linear", "log", "probit"]
Tick = tuple[float, str]
# Ticks of a probit axis: every power of ten first, because the first ones get their labels first.
PROBITS = (*(10.0**k for k in range(-9, 0)), 0.02, 0.05, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999)


@dataclass(frozen=True)
class Axis:
    """One axis: values outside its ends are drawn on them.

    ticks
        (value, text); the most important first, because a drawer leaves out the text of one that has no room.
    """

    label: str
    low: float
    high: float
    scale: ScaleName = "linear"
    ticks: tuple[Tick, ...] = ()

    def transform(self, values: FloatArray | float) -> FloatArray:
        """Values, put between the ends, on the scale of the axis."""
        kept = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        if self.scale == "linear":
            return kept
        if self.scale == "log":
            return np.asarray(np.log10(kept))
        from scipy.special import ndtri

        return np.asarray(ndtri(kept))

    def place(self, values: FloatArray | float) -> FloatArray:
        """Where values stand: 0 at the low end, 1 at the high one."""
        low, high = self.transform(np.array([self.low, self.high]))
        return np.asarray((self.transform(values) - low) / (high - low))

    def holds(self, value: float) -> bool:
        """Whether a value lies between the ends."""
        return self.low <= value <= self.high

    def labelled(self, letter: float, least: float = 0.0) -> list[Tick]:
        """Every tick, with an empty text where there is no room for it.

        Parameters
        ----------
        letter
            Width of a letter as a share of the axis; 0 where labels stand one above the other.
        least
            The least distance between two labels, as a share of the axis.
        """
        placed: list[tuple[float, float]] = []
        shown = []
        for value, text in self.ticks:
            at, half = float(self.place(value)), max(0.5 * letter * (len(text) + 1), 0.5 * least)
            free = all(abs(at - other) >= half + width for other, width in placed)
            if free:
                placed.append((at, half))
            shown.append((value, text if free else ""))
        return shown


@dataclass(frozen=True, eq=False)
class Line:
    """A curve; float64 arrays of one shape.

    style
        ``"curve"``, ``"step"`` (dots joined), ``"dotted"`` or ``"guide"``.
    series
        Which colour and dashes.
    """

    x: FloatArray
    y: FloatArray
    label: str | None = None
    series: int = 0
    style: Literal["curve", "step", "dotted", "guide"] = "curve"


@dataclass(frozen=True, eq=False)
class Band:
    """The area between two curves; float64 arrays of one shape."""

    x: FloatArray
    low: FloatArray
    high: FloatArray
    label: str | None = None
    series: int = 0


@dataclass(frozen=True, eq=False)
class Bars:
    """A histogram: edges of shape (B + 1,), heights of shape (B,)."""

    edges: FloatArray
    heights: FloatArray
    label: str
    series: int = 0


@dataclass(frozen=True)
class Mark:
    """A point with an optional text beside it; a hollow square unless `series` names a curve."""

    x: float
    y: float
    text: str | None = None
    series: int | None = None


@dataclass(frozen=True)
class Row:
    """An interval in a list: `beside` stands behind its name, `sure` fills its mark, `faint` draws it in grey."""

    name: str
    low: float
    estimate: float
    high: float
    beside: str = ""
    sure: bool = True
    faint: bool = False


@dataclass(frozen=True)
class Rule:
    """A line across the picture at a value of x, with a name for the legend."""

    x: float
    label: str | None = None
    style: Literal["zero", "dashed"] = "dashed"


@dataclass(frozen=True, eq=False)
class Figure:
    """A picture.

    key
        A short name: identifiers in a page begin with it.
    description
        What the picture shows, for people who do not see it.
    caption
        A sentence beneath it.
    y
        None for a list of intervals (`rows`), which stand beneath each other.
    cursor
        Where a marker stands at each place of a slider: x, left, right, y, top, bottom; shape (P,) each.
    start
        The place at which it begins.
    low_matches
        Whether comparisons on the left of the marker match, as those of distances do.
    """

    key: str
    title: str
    x: Axis
    y: Axis | None
    description: str = ""
    caption: str = ""
    bands: tuple[Band, ...] = ()
    lines: tuple[Line, ...] = ()
    bars: tuple[Bars, ...] = ()
    marks: tuple[Mark, ...] = ()
    rows: tuple[Row, ...] = ()
    rules: tuple[Rule, ...] = ()
    cursor: Mapping[str, FloatArray] = field(default_factory=dict)
    start: int = 0
    low_matches: bool = False


def probit_axis(label: str, low: float, high: float) -> Axis:
    """An axis of rates on which normal scores give straight lines, with a tick at every power of ten."""
    ticks = tuple((v, target_text(v)) for v in PROBITS if low * 0.999 <= v <= high * 1.001)
    return Axis(label, low, high, "probit", ticks)


def log_axis(label: str, low: float, high: float, *, counts: bool = False) -> Axis:
    """A logarithmic axis of rates, or of counts, with a tick at every power of ten."""
    powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    values = [10.0**k for k in powers]
    if len(values) < 3:  # too few powers of ten to read from
        values += [lead * 10.0**k for k in range(powers.start - 1, powers.stop + 1) for lead in (2.0, 5.0)]
    write = (lambda v: f"{v:,.0f}") if counts else target_text
    return Axis(label, low, high, "log", tuple((v, write(v)) for v in values if low * 0.999 <= v <= high * 1.001))


def even_axis(
    label: str, low: float, high: float, about: int = 6, write: Callable[[float], str] = "{:.6g}".format
) -> Axis:
    """A linear axis with about `about` round ticks."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * lead for lead in (1, 2, 2.5, 5, 10) if power * lead >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [0.0 if k == 0 else k * step for k in range(first, last + 1)]
    return Axis(label, low, high, "linear", tuple((value, write(value).replace("-", "\u2212")) for value in values))


# Pictures of results


DRAWN_POINTS = 1200
# The lowest rate of searches that is drawn.
LOWEST = 1e-5
# Share of a kind of comparison that a histogram may leave out at either end.
OUTSIDE = 2e-4
# A score at an end that lies farther from the next than this share of the whole range is left out of a picture.
OUTPOST = 0.4
# Scores that differ, below which none is far from all others.
MANY = 20
# Rows that a list of intervals has at most.
MOST_ROWS = 20
# Rates of groups that differ by more than this factor are drawn on a logarithmic axis.
FAR_AWAY = 30.0


@dataclass(frozen=True, eq=False)
class Histogram:
    """Scores by kind.

    edges : float64 array, shape (B + 1,)
        Increasing, in the units of the scores. Bins may differ in width.
    genuine, impostor : int64 arrays, shape (B,)
    outside : int
        Comparisons beyond the edges.
    """

    edges: FloatArray
    genuine: IntArray
    impostor: IntArray
    outside: int


def without_outposts(scores: FloatArray) -> tuple[int, int]:
    """First and last of increasing scores to show: a single one far from all others is left out.

    Such is the score that stands for pairs that were never compared.
    """
    first, last = 0, scores.size - 1
    whole = float(scores[-1] - scores[0])
    if scores.size >= MANY and whole > 0.0:
        first += int(scores[1] - scores[0] > OUTPOST * whole)
        last -= int(scores[-1] - scores[-2] > OUTPOST * whole)
    return first, last


def score_histogram(curve: CurveTally, count: Callable[[FloatArray], Tally], bins: int = 64) -> Histogram:
    """Exact counts of scores between even edges, which leave out at most `OUTSIDE` of either kind at either end.

    Parameters
    ----------
    curve
        Of the comparisons.
    count
        Counts the comparisons at thresholds.
    bins
        How many.
    """
    if bins < 2:
        raise UsageError(f"bins must be at least 2; got {bins!r}")
    total = np.array([[curve.n_genuine], [curve.n_impostor]])
    low, high = _score_ends(curve, total)
    if high - low <= 1e-9 * max(abs(high), 1e-300):  # one score, or scores all alike
        reach = max(abs(high), 1.0) / 2.0
        return Histogram(np.array([high - reach, high + reach]), total[0], total[1], 0)
    edges = np.linspace(low, high, bins + 1)
    tally = count(edges)
    matched = np.stack([curve.n_genuine - tally.genuine.errors.sum(axis=1), tally.impostor.errors.sum(axis=1) // 2])
    genuine, impostor = np.abs(np.diff(matched, axis=1)).astype(np.int64)
    return Histogram(edges, genuine, impostor, int(total.sum() - genuine.sum() - impostor.sum()))


def _score_ends(curve: CurveTally, total: IntArray) -> tuple[float, float]:
    """The scores between which a histogram lies; `total` counts the comparisons of each kind, shape (2, 1)."""
    matched = np.stack([curve.n_genuine - curve.false_nonmatches, curve.false_matches])
    score = curve.thresholds if curve.distance else curve.thresholds[::-1]
    below = matched if curve.distance else (total - matched)[:, ::-1]
    low = np.count_nonzero(below <= OUTSIDE * total, axis=1) - 1
    high = score.size - np.count_nonzero(below >= (1.0 - OUTSIDE) * total, axis=1)
    scores = score[1:] if curve.distance else score[:-1]  # the strictest threshold is not a score
    first, last = without_outposts(scores)
    ends = score[max(int(low.min()), 0)], score[min(int(high.max()), score.size - 1)]
    lowest = np.nextafter(scores[first], -np.inf) if first > 0 else -np.inf
    highest = np.nextafter(scores[last], np.inf) if last < scores.size - 1 else np.inf
    return max(float(ends[0]), float(lowest)), min(float(ends[1]), float(highest))


def det_figure(
    curves: Sequence[RocCurve],
    names: Sequence[str | None],
    bands: Sequence[roc.Band | None],
    mark: bool = True,
) -> Figure:
    """FRR against FAR on probit axes; the equal error rate is marked, or stands in the legend of several curves."""
    low, high = min(_lowest(curve) for curve in curves), 0.5
    ends = _frr_ends(curves, bands, low, high)
    lines, marks = [], []
    for k, (curve, name) in enumerate(zip(curves, names, strict=True)):
        if mark:
            rate = curve.eer().estimate
            text = f"EER {percent(rate)}"
            if len(curves) > 1:
                name = f"{name}, {text}" if name else text
            marks.append(Mark(rate, rate, text if len(curves) == 1 else None, k))
        lines.append(Line(*drawn_points(curve), name, k))
    if mark:
        corner = np.array([max(low, ends[0]), min(high, ends[1])])  # within both axes, or it would bend
        lines.append(Line(corner, corner, style="guide"))
    return Figure(
        "det",
        "DET curve" if len(curves) == 1 else "DET curves",
        probit_axis(say("FAR"), low, high),
        probit_axis(say("FRR"), *ends),
        f"{say('FAR')} from {target_text(low)} to 50%.",
        bands=_bands(bands),
        lines=tuple(lines),
        marks=tuple(marks),
    )


def roc_figure(
    curves: Sequence[RocCurve],
    names: Sequence[str | None],
    bands: Sequence[roc.Band | None],
) -> Figure:
    """1 − FRR against FAR on a logarithmic axis."""
    low = min(_lowest(curve) for curve in curves)
    worst = max((float(band.high.max(initial=0.0)) for band in bands if band is not None), default=0.0)
    lines = []
    for k, (curve, name) in enumerate(zip(curves, names, strict=True)):
        far, frr = drawn_points(curve)
        shown = far > 0.0
        lines.append(Line(far[shown], 1.0 - frr[shown], name, k))
        worst = max(worst, float(frr[shown].max(initial=0.0)))
    floor = min(max(math.floor((1.0 - worst) * 10.0 - 1e-9) / 10.0, 0.0), 0.9)
    y = even_axis(f"1 {MINUS} {say('FRR')}", floor, 1.0, 5, write=lambda value: target_text(round(value, 9)))
    described = f"{say('FAR')} from {target_text(low)} to 100%."
    x = log_axis(say("FAR"), low, 1.0)
    return Figure("roc", "ROC curve", x, y, described, bands=_bands(bands, True), lines=tuple(lines))


def scores_figure(made: Histogram, distance: bool, threshold: float | None = None, *, log: bool = False) -> Figure:
    """Histograms of genuine and impostor scores, each with area 1, and a line at a threshold."""
    width = np.diff(made.edges)
    bars = tuple(
        Bars(made.edges, counts / max(int(counts.sum()), 1) / width, name, series)
        for series, (name, counts) in enumerate((("genuine", made.genuine), ("impostor", made.impostor)))
    )
    heights = np.concatenate([bar.heights for bar in bars])
    top, least = float(heights.max()) or 1.0, float(heights[heights > 0.0].min(initial=1.0))
    y = log_axis("density", least / 2.0, 2.0 * top) if log else Axis("density", 0.0, 1.12 * top)
    x = even_axis("distance" if distance else "similarity", float(made.edges[0]), float(made.edges[-1]))
    rules = () if threshold is None else (Rule(threshold, f"threshold {threshold_text(threshold)}"),)
    described = (
        f"Histogram of scores from {made.edges[0]:.4g} to {made.edges[-1]:.4g}: {made.genuine.sum():,} genuine and "
        f"{made.impostor.sum():,} impostor comparisons."
    )
    return Figure("scores", "Scores", x, y, described, bars=bars, rules=rules, low_matches=distance)


def differences_figure(records: Sequence[Record], names: Sequence[str] = (), key: str = "differences") -> Figure:
    """Differences A − B with their intervals, in percentage points; filled where 0 is left out.

    names
        Of the rows; by default the metric and the two systems.
    """
    if not records:
        raise UsageError("there are no differences to draw")
    shown = names or [f"{metric_name(str(r['metric']))}: {r['a']} {MINUS} {r['b']}" for r in records]
    rows = [
        Row(name, 100.0 * r["low"], 100.0 * r["estimate"], 100.0 * r["high"], sure=not r["low"] <= 0.0 <= r["high"])
        for name, r in zip(shown, records, strict=True)
    ]
    low, high = min(0.0, *(row.low for row in rows)), max(0.0, *(row.high for row in rows))
    pad = 0.05 * (high - low) or 1e-4
    level = level_text(records[0]["level"])
    x = even_axis(f"difference, percentage points ({level} intervals)", low - pad, high + pad)
    told = "; ".join(
        f"{name}: {points(r['estimate'])}, {points_span(r['low'], r['high'])} points"
        for name, r in zip(shown, records, strict=True)
    )
    described = f"A minus B with {level} intervals. {told}."
    metrics = {metric_name(str(r["metric"])) for r in records}
    title = "Differences" if len(metrics) > 1 else f"Differences in {metrics.pop()}"
    caption = "A dot where the interval leaves out 0, a hollow square where the data cannot tell."
    return Figure(key, title, x, None, described, caption, rows=tuple(rows), rules=(Rule(0.0, None, "zero"),))


def groups_figure(rates: GroupRates, metric: str, limits: Mapping[str, Iterable[float]], level: float) -> Figure:
    """A rate of each group with its interval, whose ends `limits` holds by group.

    Small groups are grey and do not stretch the axis, which is logarithmic where groups are far apart.
    """
    overall = float(getattr(rates.overall, metric).estimate)
    rows = []
    for group, (low, high) in limits.items():
        estimate, people = float(getattr(rates[group], metric).estimate), rates[group].n_identities
        rows.append(Row(group, low, estimate, high, f"n = {people:,}", faint=group not in rates.compared))
    if len(rows) > MOST_ROWS:
        rows = sorted(rows, key=lambda row: (row.faint, -row.estimate))[:MOST_ROWS]
    trusted = [row for row in rows if not row.faint] or rows
    top = max(overall, *(row.high for row in trusted)) or 1e-6
    least = min((value for row in trusted for value in (row.low, row.estimate) if value > 0.0), default=top)
    name = metric_name(metric)
    label = f"{name}, {level_text(level)} intervals"
    axis = even_axis(label, 0.0, min(1.05 * top, 1.0), write=target_text)
    if top > FAR_AWAY * least:
        axis = log_axis(label, max(least, 1e-4 * top) / 1.2, min(1.2 * top, 1.0))
    dashed = Rule(max(overall, axis.low), f"all: {percent(overall)}")
    told = "; ".join(f"{row.name}: {percent(row.estimate)}, {span(row.low, row.high)}" for row in rows)
    described, grey = f"With {level_text(level)} intervals. {told}.", " Grey: too few people to compare."
    caption = (
        f"Estimates with {level_text(level)} intervals, each for its group alone.{grey if rates.too_small else ''}"
    )
    title, drawn = f"{name} by group", tuple(rows)
    return Figure(f"groups-{metric}", title, axis, None, described, caption, rows=drawn, rules=(dashed,))


def search_figure(curve: SearchCurve) -> Figure:
    """A curve of searches with its band; x is logarithmic."""
    x, band = curve.x.astype(np.float64), f"{level_text(curve.level)} band"
    naive = f"1 {MINUS} (1 {MINUS} FMR)ᴺ"
    too_high = f"; dotted, {naive}, which takes hits for independent and is too high"
    accounted = " that accounts for the estimated threshold"
    key, title, label, what, ending = {
        "trade-off": ("tradeoff", "FNIR against FPIR", "FPIR", f"FNIR at {curve.at} against FPIR", accounted),
        "cmc": ("cmc", "CMC", "rank", "The share of searches whose mate is within each rank", ""),
        "size": ("sizes", "FPIR in other galleries", "enrolled people", f"FPIR at {curve.at} against enrolled people",
                 too_high),
    }[curve.kind]  # fmt: skip
    caption = f"{what}, with a {level_text(curve.level)} pointwise band{ending}."
    shown = curve.estimate[curve.estimate > 0.0]
    floor = max(
        LOWEST, 0.5 * float((curve.low[curve.low > LOWEST] if curve.kind == "trade-off" else shown).min(initial=1.0))
    )
    if curve.kind == "cmc":
        floor = float(np.floor(20.0 * max(float(curve.low.min()) - 0.02, 0.0)) / 20.0)
        up = even_axis("CMC", floor, 1.001)
    else:
        up = log_axis(curve.metric.upper(), floor, 1.0)
    lines = [Line(x, np.maximum(curve.estimate, floor), style="step" if curve.kind == "cmc" else "curve")]
    if curve.independent is not None:
        lines.append(Line(x, np.maximum(curve.independent, floor), naive, style="dotted"))
    return Figure(
        key, title,
        log_axis(label, float(x[0]), max(float(x[-1]), 1.1 * float(x[0])), counts=curve.kind != "trade-off"), up,
        caption, caption, (Band(x, np.maximum(curve.low, floor), curve.high, band),), tuple(lines),
        rules=(Rule(float(curve.searched), None, "zero"),) if curve.kind == "size" else (),
    )  # fmt: skip


def drawn_points(curve: RocCurve) -> tuple[FloatArray, FloatArray]:
    """FAR and FRR of the curve, thinned to what a picture can show; no drawn point is invented."""
    if len(curve) <= DRAWN_POINTS:
        return curve.far, curve.frr
    at = spread_points(curve.far, curve.frr, DRAWN_POINTS, np.array([0, len(curve) - 1]))
    return curve.far[at], curve.frr[at]


def spread_points(far: FloatArray, frr: FloatArray, points: int, always: IntArray) -> IntArray:
    """Points of a curve in increasing order, at most `points` and those of `always`.

    They follow both rates evenly on the probit scale, so that neither tail is jumped over.
    """
    from scipy.special import ndtr, ndtri

    half = max((points - always.size) // 2, 2)
    chosen = [always]
    for rates, sign in ((far, 1.0), (frr, -1.0)):
        inside = rates[(rates > 0.0) & (rates < 1.0)]
        low, high = (ndtri(inside.min()), ndtri(inside.max())) if inside.size else (0.0, 0.0)
        aims = ndtr(np.linspace(low, high, half))
        chosen.append(np.searchsorted(sign * rates, np.sort(sign * aims)))
    return np.unique(np.clip(np.concatenate(chosen), 0, far.size - 1)).astype(np.int64)


def _bands(made: Sequence[roc.Band | None], flip: bool = False) -> tuple[Band, ...]:
    drawn = []
    for k, band in enumerate(made):
        if band is None:
            continue
        kind = "simultaneous" if band.simultaneous else "pointwise"
        label = f"{level_text(band.level)} {kind}" if len(made) == 1 else None
        low, high = (1.0 - band.high, 1.0 - band.low) if flip else (band.low, band.high)
        drawn.append(Band(band.far, low, high, label, k))
    return tuple(drawn)


def _lowest(curve: RocCurve) -> float:
    """The lowest FAR at which a curve is drawn: that of one impostor comparison that matches."""
    return float(min(1.0 / curve.tally.n_impostor, 0.1))


def _frr_ends(
    curves: Sequence[RocCurve], bands: Sequence[roc.Band | None], low: float, high: float
) -> tuple[float, float]:
    """The FRRs between which DET curves are drawn: those of all curves and bands, and not nearer to 0 or 1 than half
    an error, or a quarter for a band.
    """
    ends = []
    for curve, band in zip(curves, bands, strict=True):
        x, y = drawn_points(curve)
        spans = [(0.5, y[(x >= low) & (x <= high)])]
        spans += [] if band is None else [(0.25, np.append(band.low, band.high))]
        for share, rates in spans:
            nearest = share / curve.tally.n_genuine
            ends += [float(rate) for rate in np.clip(rates, nearest, 1.0 - nearest)]
    return min([*ends, 0.5]) * 0.8, 1.0 - 0.8 * (1.0 - max(ends, default=0.0))
