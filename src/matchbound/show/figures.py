"""Figures made from results: DET and ROC curves, scores, rates, differences, groups, costs and linkage.

Nothing is computed here but what to draw. `matchbound.show.mpl` draws a figure with matplotlib, and a report as SVG.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import UsageError
from matchbound.show.figure import Axis, Band, Bars, Figure, Line, Mark, Row, Rule, even_axis, log_axis, probit_axis
from matchbound.show.histogram import score_histogram, without_outposts
from matchbound.show.mpl import draw
from matchbound.show.numbers import MINUS, level_text, percent, points, points_span, span, target_text, threshold_text
from matchbound.show.records import Record
from matchbound.show.terms import metric_name, say

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.results import bands
    from matchbound.results.linkage import LinkageCurve
    from matchbound.results.roc import RocCurve
    from matchbound.results.searches import SearchCurve
    from matchbound.show.histogram import Histogram
    from matchbound.stats.latent import LatentModel

BandKind = Literal["pointwise", "simultaneous"]
DRAWN_POINTS = 2000
LOWEST = 1e-5
"""The lowest rate of searches that is drawn."""
MOST_ROWS = 20
"""Rows that a list of intervals has at most."""
FAR_AWAY = 30.0
"""Rates of groups that differ by more than this factor are drawn on a logarithmic axis."""


def plot_det(
    curves: RocCurve | Sequence[RocCurve],
    *,
    labels: str | Sequence[str] | None = None,
    ax: Axes | None = None,
    band: BandKind | None = "pointwise",
    level: float = 0.95,
    colors: str | Sequence[str] | None = None,
    mark: bool = True,
) -> Axes:
    """DET curves, one or several: FRR against FAR, both on probit scales.

    Parameters
    ----------
    curves
        From `roc`; several are drawn in distinct colours, lines and markers.
    labels
        Names for the legend, one per curve.
    ax
        Axes to draw on; by default those of a new figure.
    band
        ``"pointwise"``, ``"simultaneous"`` or None.
    level
        Coverage of the band.
    colors
        Of the curves and, lighter, their bands; by default a cycle that is safe for colour-blind readers.
    mark
        Mark the equal error rate, with its value.

    Returns
    -------
    matplotlib.axes.Axes

    See Also
    --------
    plot_roc, RocCurve

    Examples
    --------
    >>> import matchbound as mb
    >>> a, b = mb.roc(mb.demo_data()), mb.roc(mb.demo_data(seed=8))
    >>> ax = mb.plot_det([a, b], labels=["first", "second"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['first, EER 0.901%', 'second, EER 1.57%']
    """
    several, names, hues = _several(curves, labels, colors)
    return draw(det_figure(several, names, [_band(curve, band, level) for curve in several], hues, mark), ax)


def plot_roc(
    curves: RocCurve | Sequence[RocCurve],
    *,
    labels: str | Sequence[str] | None = None,
    ax: Axes | None = None,
    band: BandKind | None = "pointwise",
    level: float = 0.95,
    colors: str | Sequence[str] | None = None,
) -> Axes:
    """ROC curves, one or several: 1 − FRR against FAR on a logarithmic scale. Parameters as for `plot_det`.

    Parameters
    ----------
    curves, labels, ax, band, level, colors
        As in `plot_det`.

    Returns
    -------
    matplotlib.axes.Axes
        The picture.

    See Also
    --------
    plot_det

    Examples
    --------
    >>> import matchbound as mb
    >>> ax = mb.plot_roc(mb.roc(mb.demo_data()), labels="demo")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('FAR', '1 − FRR')
    """
    several, names, hues = _several(curves, labels, colors)
    return draw(roc_figure(several, names, [_band(curve, band, level) for curve in several], hues), ax)


def plot_scores(
    curve: RocCurve, *, ax: Axes | None = None, bins: int = 60, threshold: float | None = None, log: bool = False
) -> Axes:
    """Histograms of genuine and impostor scores, each with area 1.

    Parameters
    ----------
    curve
        From `roc`.
    ax
        Axes to draw on; by default those of a new figure.
    bins
        Cells of the histograms.
    threshold
        Draw a line there.
    log
        Logarithmic height, for tails.

    Returns
    -------
    matplotlib.axes.Axes
        The picture.

    See Also
    --------
    plot_det, plot_roc

    Examples
    --------
    >>> import matchbound as mb
    >>> ax = plot_scores(mb.roc(mb.demo_data()), threshold=0.6)
    >>> ax.get_xlabel()
    'similarity'
    """
    if bins < 2:
        raise UsageError(f"bins must be at least 2; got {bins!r}")
    tally: Any = curve.tally
    made = score_histogram(getattr(tally, "pooled", tally), bins)
    rules = () if threshold is None else (Rule(threshold, f"threshold {threshold_text(threshold)}"),)
    return draw(scores_figure(made, curve.distance, rules, log=log), ax)


def plot_correlations(model: LatentModel, *, ax: Axes | None = None) -> Axes:
    """Latent correlations over the error rate: dots at each threshold, lines the averages in use.

    Parameters
    ----------
    model
        From ``rates.far.latent_model()`` or ``rates.frr.latent_model()``.
    ax
        Axes to draw on; by default new ones.

    Returns
    -------
    matplotlib.axes.Axes
        The picture.

    See Also
    --------
    Interval

    Examples
    --------
    >>> import matchbound as mb
    >>> model = mb.evaluate(mb.demo_data(), 0.6).far.latent_model()
    >>> axes = plot_correlations(model)
    >>> axes.get_xlabel()
    'false accept rate'
    """
    from scipy.special import ndtr, ndtri

    sign, far = -1.0 if model.mirrored else 1.0, model.metric == "far"
    seen, pool = model.correlations, np.asarray(ndtri(model.settings.pool(model.metric)))
    shown = [(seen.pair, seen.rho_pair, "same identity pair" if far else "same identity", 1)]
    shown += [(seen.identity, seen.rho_identity, "one identity in common", 0)] if far else []
    lines, marks = [], []
    for values, average, label, series in shown:
        lines.append(Line(ndtr(sign * pool), np.full(2, average), label, series))
        marks += [
            Mark(float(ndtr(sign * at)), float(np.clip(value, 0.0, 1.0)), series=series)
            for at, value in zip(seen.z, values, strict=True)
        ]
    rates = ndtr(sign * np.concatenate([pool, seen.z]))
    name = say("false accept" if far else "false reject") + " rate"
    x = even_axis(name, 0.0, 1.0) if model.mirrored else log_axis(name, float(rates.min()), float(rates.max()))
    y = even_axis("latent correlation of errors", 0.0, 1.0)
    return draw(Figure("correlations", "Latent correlations", x, y, lines=tuple(lines), marks=tuple(marks)), ax)


def det_figure(
    curves: Sequence[RocCurve],
    names: Sequence[str | None],
    bands: Sequence[bands.Band | None],
    colors: Sequence[str | None] = (),
    mark: bool = True,
) -> Figure:
    """FRR against FAR on probit axes; the equal error rate is marked, or stands in the legend of several curves."""
    low, high = min(_lowest(curve) for curve in curves), 0.5
    ends = _frr_ends(curves, bands, low, high)
    x, y = probit_axis(say("FAR"), low, high), probit_axis(say("FRR"), *ends)
    lines, marks = [], []
    for k, (curve, name) in enumerate(zip(curves, names, strict=True)):
        rate = curve.eer().estimate if mark else math.nan
        told = f"EER {percent(rate)}" if mark else None
        if len(curves) > 1 and told:
            name, told = f"{name}, {told}" if name else told, None
        lines.append(Line(*drawn_points(curve), name, k, color=colors[k] if colors else None))
        marks += [Mark(rate, rate, told, k)] if mark else []
    if mark:
        corner = np.array([min(low, ends[0]), max(high, ends[1])])
        lines.append(Line(corner, corner, style="guide"))
    described = f"{say('FAR')} from {target_text(low)} to 50%."
    return Figure(
        "det", "DET curve" if len(curves) == 1 else "DET curves", x, y, described,
        bands=_bands(bands, colors), lines=tuple(lines), marks=tuple(marks),
    )  # fmt: skip


def roc_figure(
    curves: Sequence[RocCurve],
    names: Sequence[str | None],
    bands: Sequence[bands.Band | None],
    colors: Sequence[str | None] = (),
) -> Figure:
    """1 − FRR against FAR on a logarithmic axis."""
    low = min(_lowest(curve) for curve in curves)
    worst, lines = 0.0, []
    for k, (curve, name) in enumerate(zip(curves, names, strict=True)):
        far, frr = drawn_points(curve)
        shown = far > 0.0
        lines.append(Line(far[shown], 1.0 - frr[shown], name, k, color=colors[k] if colors else None))
        worst = max(worst, float(frr[shown].max(initial=0.0)))
    for band in bands:
        worst = max(worst, 0.0 if band is None else float(band.high.max(initial=0.0)))
    floor = min(max(math.floor((1.0 - worst) * 10.0 - 1e-9) / 10.0, 0.0), 0.9)
    y = even_axis(f"1 {MINUS} {say('FRR')}", floor, 1.0, 5)
    y = Axis(y.label, floor, 1.0, "linear", tuple((v, target_text(round(v, 9))) for v, _ in y.ticks))
    x = log_axis(say("FAR"), low, 1.0)
    described = f"{say('FAR')} from {target_text(low)} to 100%."
    return Figure("roc", "ROC curve", x, y, described, bands=_bands(bands, colors, True), lines=tuple(lines))


def scores_figure(made: Histogram, distance: bool, rules: Sequence[Rule] = (), *, log: bool = False) -> Figure:
    """Histograms of genuine and impostor scores, each with area 1."""
    width = np.diff(made.edges)
    bars = tuple(
        Bars(made.edges, counts / max(int(counts.sum()), 1) / width, name, series)
        for series, (name, counts) in enumerate((("genuine", made.genuine), ("impostor", made.impostor)))
    )
    heights = np.concatenate([bar.heights for bar in bars])
    top, least = float(heights.max()) or 1.0, float(heights[heights > 0.0].min(initial=1.0))
    y = log_axis("density", least / 2.0, 2.0 * top) if log else Axis("density", 0.0, 1.12 * top)
    x = even_axis("distance" if distance else "similarity", float(made.edges[0]), float(made.edges[-1]))
    described = (
        f"Histogram of scores from {made.edges[0]:.4g} to {made.edges[-1]:.4g}: {made.genuine.sum():,} genuine and "
        f"{made.impostor.sum():,} impostor comparisons."
    )
    return Figure("scores", "Scores", x, y, described, bars=bars, rules=tuple(rules), low_matches=distance)


def rates_figure(rows: Sequence[tuple[str, float, float, float, float]], level: float) -> Figure:
    """FAR and FRR over thresholds with intervals; rows are (metric, threshold, estimate, low, high)."""
    lines, bands = [], []
    for series, metric in enumerate(("frr", "far")):
        mine = np.array([row[1:] for row in rows if row[0] == metric], dtype=np.float64).reshape(-1, 4)
        if mine.size:
            x, estimate, low, high = mine[np.argsort(mine[:, 0])].T
            bands.append(Band(x, low, high, series=series))
            lines.append(Line(x, estimate, metric_name(metric), series, "step"))
    least = min((row[2] for row in rows if row[2] > 0.0), default=1e-3)
    at = [row[1] for row in rows]
    edge = 0.05 * (max(at) - min(at)) or 0.5
    x_axis = even_axis("threshold", min(at) - edge, max(at) + edge)
    y_axis = log_axis(f"rate, {level_text(level)} intervals", least / 3.0, 1.0)
    return Figure("rates", "Rates", x_axis, y_axis, bands=tuple(bands), lines=tuple(lines))


def replicates_figure(
    replicates: FloatArray, estimate: float, limits: tuple[float, float], level: float, bins: int = 40
) -> Figure:
    """A histogram of bootstrap replicates, with the estimate and an interval."""
    counts, edges = np.histogram(100.0 * replicates, bins=bins)
    top = 1.08 * float(counts.max())
    ends = np.array([100.0 * limits[0], 100.0 * limits[1]])
    band = Band(ends, np.zeros(2), np.full(2, top), f"{level_text(level)} interval", 4)
    rule = Rule(100.0 * estimate, f"estimate {percent(estimate)}", "strong")
    low, high = min(float(edges[0]), float(ends[0])), max(float(edges[-1]), float(ends[1]))
    bars = Bars(edges, counts.astype(np.float64), "replicates")
    x, y = even_axis("rate (%)", low, high), even_axis("replicates", 0.0, top)
    return Figure("replicates", "Bootstrap replicates", x, y, bands=(band,), bars=(bars,), rules=(rule,))


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
    return Figure(key, "Differences", x, None, described, rows=tuple(rows), rules=(Rule(0.0, None, "zero"),))


def groups_figure(
    rows: Sequence[tuple[str, float, float, float, int, bool]], overall: float, metric: str, level: float
) -> Figure:
    """A rate of each group with its interval; rows are (group, estimate, low, high, people, large enough to compare).

    Small groups are grey and do not stretch the axis, which is logarithmic where groups are far apart.
    """
    if len(rows) > MOST_ROWS:
        rows = sorted(rows, key=lambda row: (not row[5], -row[1]))[:MOST_ROWS]
    trusted = [row for row in rows if row[5]] or list(rows)
    top = max(overall, *(row[3] for row in trusted)) or 1e-6
    least = min((value for row in trusted for value in (row[2], row[1]) if value > 0.0), default=top)
    name, dashed = metric_name(metric), Rule(100.0 * overall, f"all: {percent(overall)}")
    label, scale = f"{name}, {level_text(level)} intervals", 100.0
    axis = even_axis(label, 0.0, min(105.0 * top, 100.0), suffix="%")
    if top > FAR_AWAY * least:
        axis, scale = log_axis(label, max(least, 1e-4 * top) / 1.2, min(1.2 * top, 1.0)), 1.0
        dashed = Rule(max(overall, axis.low), dashed.label)
    drawn = [
        Row(group, scale * low, scale * estimate, scale * high, f"n = {people:,}", faint=not large)
        for group, estimate, low, high, people, large in rows
    ]
    told = "; ".join(f"{row[0]}: {percent(row[1])}, {span(row[2], row[3])}" for row in rows)
    described = f"With {level_text(level)} intervals. {told}."
    return Figure(f"groups-{metric}", f"{name} by group", axis, None, described, rows=tuple(drawn), rules=(dashed,))


def matrix_figure(groups: Sequence[str], rates: FloatArray) -> Figure:
    """Impostor rates within (diagonal) and between groups, as a table with colours."""
    return Figure("matrix", say("FAR within and between groups"), Axis("", 0.0, 1.0), None, cells=(groups, rates))


def costs_figure(made: dict[str, FloatArray], label: str | None = None) -> Figure:
    """The probability of error against the log odds of the prior: actual, least, and without any system (APE plot).

    made
        ``log_odds``, ``minimum``, ``default`` and, where scores are log-likelihood ratios, ``actual``; shape (n,) each.
    """
    x, name = made["log_odds"], "" if label is None else f"{label}: "
    lines = [Line(x, made["actual"], f"{name}actual", 1)] if "actual" in made else []
    lines.append(Line(x, made["minimum"], f"{name}least over thresholds"))
    lines.append(Line(x, made["default"], "always the same decision", style="dotted"))
    top = float(np.max([made["minimum"].max(), made.get("actual", made["minimum"]).max()]))
    y = even_axis("probability of error", 0.0, min(1.25 * top, 0.55) if top > 0.0 else 0.5)
    x_axis = even_axis("log odds of the prior", float(x[0]), float(x[-1]))
    return Figure("costs", "Costs", x_axis, y, lines=tuple(lines))


def precision_recall_figure(made: LinkageCurve, label: str | None = None) -> Figure:
    """Precision against recall with the pointwise band of precision; the prior is in the label of the axis."""
    order = np.argsort(made.recall.estimate, kind="stable")
    x, along = made.recall.estimate[order], made.precision
    band = Band(x, along.low[order], along.high[order], f"{level_text(made.level)} pointwise, {made.method}")
    axes = even_axis("recall", 0.0, 1.0), even_axis(f"precision at prior {made.prior:.3g}", 0.0, 1.02)
    return Figure("precision-recall", "Precision and recall", *axes, bands=(band,),
                  lines=(Line(x, along.estimate[order], label),))  # fmt: skip


def thresholds_figure(made: LinkageCurve) -> Figure:
    """Precision, recall and F1 against the threshold, each with its pointwise band."""
    kinds = ((f"precision (prior {made.prior:.3g})", made.precision), ("recall", made.recall), ("F1", made.f1))
    lines = tuple(Line(made.thresholds, along.estimate, name, k) for k, (name, along) in enumerate(kinds))
    bands = tuple(Band(made.thresholds, along.low, along.high, series=k) for k, (_, along) in enumerate(kinds))
    scores = np.sort(made.thresholds)
    low, high = (float(scores[k]) for k in without_outposts(scores))
    edge = 0.03 * (high - low) or 0.5
    y = even_axis(f"with {level_text(made.level)} bands ({made.method})", 0.0, 1.02)
    return Figure("thresholds", "Along the threshold", even_axis("threshold", low - edge, high + edge), y,
                  bands=bands, lines=lines)  # fmt: skip


def search_figure(curve: SearchCurve) -> Figure:
    """A curve of searches with its band; x is logarithmic."""
    x, band = curve.x.astype(np.float64), f"{level_text(curve.level)} band"
    naive = f"1 {MINUS} (1 {MINUS} FMR)ᴺ"
    key, title, label, what = {
        "fpir": ("tradeoff", "FNIR against FPIR", "FPIR", f"FNIR at {curve.at} against FPIR"),
        "rank": ("cmc", "CMC", "rank", "The share of searches whose mate is within each rank"),
        "size": ("sizes", "FPIR in other galleries", "enrolled people", f"FPIR at {curve.at} against enrolled people"),
    }[curve.along]
    caption = f"{what}, with a {level_text(curve.level)} pointwise band"
    caption += {
        "fpir": " that accounts for the estimated threshold.",
        "rank": ".",
        "size": f"; dotted, {naive}, which takes hits for independent and is too high.",
    }[curve.along]
    shown = curve.estimate[curve.estimate > 0.0]
    floor = max(
        LOWEST, 0.5 * float((curve.low[curve.low > LOWEST] if curve.along == "fpir" else shown).min(initial=1.0))
    )
    if curve.along == "rank":
        floor = float(np.floor(20.0 * max(float(curve.low.min()) - 0.02, 0.0)) / 20.0)
        up = even_axis("CMC", floor, 1.001)
    else:
        up = log_axis(curve.metric.upper(), floor, 1.0)
    lines = [Line(x, np.maximum(curve.estimate, floor), style="step" if curve.along == "rank" else "curve")]
    if curve.independent is not None:
        lines.append(Line(x, np.maximum(curve.independent, floor), naive, style="dotted"))
    return Figure(
        key, title,
        log_axis(label, float(x[0]), max(float(x[-1]), 1.1 * float(x[0])), counts=curve.along != "fpir"), up,
        caption, caption, (Band(x, np.maximum(curve.low, floor), curve.high, band),), tuple(lines),
        rules=(Rule(float(curve.searched), None, "zero"),) if curve.along == "size" else (),
    )  # fmt: skip


def drawn_points(curve: RocCurve) -> tuple[FloatArray, FloatArray]:
    """FAR and FRR of the curve, thinned to what a picture can show; no drawn point is invented."""
    x, y = curve.far, curve.frr
    if x.size <= DRAWN_POINTS:
        return x, y
    with np.errstate(divide="ignore"):
        along = np.log(np.maximum(x, 0.5 / curve.tally.n_impostor))
    grid = np.linspace(along[0], along[-1], DRAWN_POINTS // 2)
    kept = np.searchsorted(along, grid).clip(0, x.size - 1)
    fall = np.searchsorted(-y, np.linspace(-y[0], -y[-1], DRAWN_POINTS // 2)).clip(0, x.size - 1)
    at = np.unique(np.concatenate([kept, fall, [0, x.size - 1]]))
    return x[at], y[at]


def _several(
    curves: RocCurve | Sequence[RocCurve], labels: str | Sequence[str] | None, colors: str | Sequence[str] | None
) -> tuple[list[RocCurve], list[str | None], list[str | None]]:
    """The curves, a name or None for each, and a colour for each or nothing."""
    several: list[Any] = list(curves) if isinstance(curves, (list, tuple)) else [curves]
    if not several:
        raise UsageError("there is no curve to draw")
    for curve in several:
        if not all(hasattr(curve, name) for name in ("far", "frr", "tally")):
            raise UsageError(f"curves must be results of matchbound.roc; got {type(curve).__name__}")
    names: list[str | None] = [None] * len(several)
    if labels is not None:
        names = [labels] if isinstance(labels, str) else list(labels)
    hues: list[str | None] = [colors] if isinstance(colors, str) else list(colors or [])
    if len(names) != len(several):
        raise UsageError(f"labels must name each of the {len(several)} curves; got {len(names)}")
    if hues and len(hues) != len(several):
        raise UsageError(f"colors must hold one for each of the {len(several)} curves; got {len(hues)}")
    return several, names, hues


def _band(curve: RocCurve, kind: BandKind | None, level: float) -> bands.Band | None:
    """The band of ``curve.band()``: it begins where enough impostor comparisons match."""
    if kind is None:
        return None
    if kind not in ("pointwise", "simultaneous"):
        raise UsageError(f"band must be 'pointwise', 'simultaneous' or None; got {kind!r}")
    return curve.band(level, simultaneous=kind == "simultaneous")


def _bands(made: Sequence[bands.Band | None], colors: Sequence[str | None], flip: bool = False) -> tuple[Band, ...]:
    drawn = []
    for k, band in enumerate(made):
        if band is None:
            continue
        kind = "simultaneous" if band.simultaneous else "pointwise"
        label = f"{level_text(band.level)} {kind}" if len(made) == 1 else None
        low, high = (1.0 - band.high, 1.0 - band.low) if flip else (band.low, band.high)
        drawn.append(Band(band.far, low, high, label, k, colors[k] if colors else None))
    return tuple(drawn)


def _lowest(curve: RocCurve) -> float:
    """The lowest FAR at which a curve is drawn: that of one impostor comparison that matches."""
    return float(min(1.0 / curve.tally.n_impostor, 0.1))


def _frr_ends(
    curves: Sequence[RocCurve], bands: Sequence[bands.Band | None], low: float, high: float
) -> tuple[float, float]:
    """The FRRs between which DET curves are drawn."""
    lowest, highest = 1.0, 0.0
    for curve, band in zip(curves, bands, strict=True):
        x, y = drawn_points(curve)
        inside = (x >= low) & (x <= high)
        n = curve.tally.n_genuine
        lowest = min(lowest, max(float(y[inside].min(initial=1.0)), 0.5 / n))
        highest = max(highest, min(float(y[inside].max(initial=0.0)), 1.0 - 0.5 / n))
        if band is not None:
            lowest = min(lowest, max(float(band.low.min()), 0.25 / n))
            highest = max(highest, min(float(band.high.max()), 1.0 - 0.25 / n))
    return min(lowest, 0.5) * 0.8, 1.0 - 0.8 * (1.0 - highest)
