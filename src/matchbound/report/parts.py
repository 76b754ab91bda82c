"""Parts of a report that are read from a curve: the slider's panel, the picture, who drives the uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from matchbound.arraytypes import IntArray
from matchbound.counts.curve import CurveTally, SortedCurve
from matchbound.counts.tally import Tally
from matchbound.report.page import (
    Contributor,
    CurvePicture,
    Drivers,
    Panel,
    PanelRate,
    PerPerson,
    ReportedNumber,
    counted_curve,
    reading_of,
    reading_of_number,
)
from matchbound.results.error_rates import ErrorRates
from matchbound.results.rates import Rate
from matchbound.results.roc import RocCurve
from matchbound.results.weighted import IdentityRate
from matchbound.results.weighted_curve import IdentityCurve
from matchbound.show.histogram import panel_points
from matchbound.stats.contributions import contributions

PANEL_POINTS = 390
"""Thresholds of the slider, with those that were asked for."""
PERSON_POINTS = 150
"""The same where every person counts once: each limit is then solved for on its own."""
TOP = 8
"""How many identities are listed."""


def tally_at(curve: CurveTally, points: IntArray) -> Tally:
    """The tally of comparisons at some points of a curve, numbered in increasing order."""
    return counted_curve(curve).tally_at(points)


def curve_panel(
    curve: RocCurve,
    level: float,
    always: IntArray,
    extra: Sequence[ErrorRates],
    start: float,
    points: int | None = None,
    *,
    method: str = "auto",
    aims: Mapping[int, ReportedNumber] | None = None,
) -> Panel:
    """Both rates with their limits at a few hundred thresholds: what `evaluate` gives at each of them.

    Parameters
    ----------
    always : int64 array
        Points of the curve that must be among them.
    extra
        Rates at thresholds that are not points of the curve.
    start
        The threshold at which the slider begins.
    method
        Of the report; the slider has ``"auto"`` for methods that it does not know.
    aims
        What the page says of FRR at points of the curve that stand for a FAR: the interval there accounts for the
        estimated threshold too, and the slider shows the same.
    """
    if points is None:
        points = PERSON_POINTS if isinstance(curve, IdentityCurve) else PANEL_POINTS
    chosen = panel_points(curve.far, curve.frr, points - len(extra), always)
    inner = counted_curve(curve.tally)
    own = method if method in ("latent", "wilson") else "auto"
    rates = [
        _panel_rate(curve, chosen, "far", level, own),
        _aimed(_panel_rate(curve, chosen, "frr", level, own), chosen, aims or {}),
    ]
    thresholds = curve.thresholds[chosen]
    readings = [reading_of(inner, int(k)) for k in chosen]
    if extra:
        thresholds = np.concatenate([thresholds, [item.threshold for item in extra]])
        readings += [reading_of_number(item.threshold) for item in extra]
        rates[0] = _with_rates(rates[0], [item.far for item in extra], level, own)
        rates[1] = _with_rates(rates[1], [item.frr for item in extra], level, own)
    _, first = np.unique(thresholds[::-1], return_index=True)
    order = thresholds.size - 1 - first  # of two at one threshold, the one that was asked for
    thresholds = thresholds[order]
    return Panel(
        thresholds=thresholds,
        readings=tuple(readings[k] for k in order),
        far=_panel_rate_in_order(rates[0], order),
        frr=_panel_rate_in_order(rates[1], order),
        exact=isinstance(inner, SortedCurve),
        start=int(np.abs(thresholds - start).argmin()),
    )


def curve_picture(curve: RocCurve, level: float, latent: bool = False) -> CurvePicture:
    """The curve and its pointwise band, for drawing: by the method of the operating points beside it."""
    band = curve.band(level, method="latent" if latent else "influence")
    return CurvePicture(curve.far, curve.frr, band.far, band.low, band.high)


def _panel_rate(
    curve: RocCurve, points: IntArray, metric: Literal["far", "frr"], level: float, method: str
) -> PanelRate:
    far = metric == "far"
    counted = counted_curve(curve.tally)
    errors = (counted.false_matches if far else counted.false_nonmatches)[points]
    total = counted.n_impostor if far else counted.n_genuine
    limits = curve.limits_at(points, metric, level, method=method)
    estimate = (curve.far if far else curve.frr)[points]
    return PanelRate(total, errors, estimate, limits.low, limits.high, limits.upper)


def _aimed(panel: PanelRate, points: IntArray, aims: Mapping[int, ReportedNumber]) -> PanelRate:
    """The panel with what the page says at some points in the place of the limits at a fixed threshold."""
    low, high, upper = panel.low.copy(), panel.high.copy(), panel.upper.copy()
    for point, claim in aims.items():
        here = points == point
        low[here], high[here] = claim.low, claim.high
        if claim.upper is not None:
            upper[here] = claim.upper
    return PanelRate(panel.comparisons, panel.errors, panel.estimate, low, high, upper)


def _with_rates(panel: PanelRate, rates: Sequence[Rate], level: float, method: str) -> PanelRate:
    made = [rate.interval(method, level) for rate in rates]
    return PanelRate(
        panel.comparisons,
        np.concatenate([panel.errors, [rate.errors for rate in rates]]),
        np.concatenate([panel.estimate, [rate.estimate for rate in rates]]),
        np.concatenate([panel.low, [interval.low for interval in made]]),
        np.concatenate([panel.high, [interval.high for interval in made]]),
        np.concatenate([panel.upper, [rate.upper_bound(level, method) for rate in rates]]),
    )


def _panel_rate_in_order(rate: PanelRate, order: IntArray) -> PanelRate:
    return PanelRate(
        rate.comparisons, rate.errors[order], rate.estimate[order], rate.low[order], rate.high[order], rate.upper[order]
    )


def drivers_of(rate: Rate, show_labels: bool) -> Drivers:
    part = rate.tally.impostor if rate.metric == "far" else rate.tally.genuine
    errors, comparisons = part.errors[rate.index], part.comparisons
    if isinstance(rate, IdentityRate):
        unit = rate.unit
        units: Any = unit.excess + unit.estimate * unit.partners, unit.partners  # shares of errors, and units
    else:
        units = errors, comparisons
    found = contributions(*units, shared=rate.metric == "far")
    top = found.largest(TOP)
    return Drivers(
        metric=rate.metric,
        threshold=rate.threshold,
        rate=rate.estimate,
        top=tuple(
            Contributor(
                label=str(rate.tally.identities[i]) if show_labels else None,
                share=float(found.share[i]),
                more=bool(found.excess[i] > 0.0),
                errors=int(errors[i]),
                comparisons=int(comparisons[i]),
                rate_without=float(found.rate_without[i]),
            )
            for i in top
        ),
        top_share=float(found.share[top].sum()),
        half=found.how_many_make(0.5),
        n_identities=rate.n_identities,
    )


def per_person(pooled: ReportedNumber, once: ReportedNumber, errors: IntArray, comparisons: IntArray) -> PerPerson:
    """A rate beside the one in which every identity counts once, and what the identities with most comparisons do."""
    order = np.argsort(-comparisons, kind="stable")[: int(np.count_nonzero(comparisons))]
    heavy = max(order.size // 10, 1)
    top, rest = order[:heavy], order[heavy:]
    left = float(comparisons[rest].sum())
    return PerPerson(
        metric="far" if pooled.metric == "far" else "frr",
        pooled=pooled,
        per_person=once,
        heavy=heavy,
        heavy_share=float(comparisons[top].sum() / comparisons.sum()),
        heavy_rate=float(errors[top].sum() / comparisons[top].sum()),
        rest_rate=float(errors[rest].sum()) / left if left else None,
    )
