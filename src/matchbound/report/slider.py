"""What a slider moves over: both rates with their limits at a few hundred thresholds, and short decimals for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.counts.curve import CurveTally
from matchbound.results.roc import RocCurve
from matchbound.show.histogram import panel_points
from matchbound.show.section import Slider

if TYPE_CHECKING:
    from matchbound.report.page import Point, Stated

POINTS = 390
"""Thresholds of the slider, with those that were asked for."""
PERSON_POINTS = 150
"""The same where every person counts once: each limit is then solved for on its own."""


def make_slider(curve: RocCurve, level: float, method: str, points: Sequence[Point], focus: int, eer: int) -> Slider:
    """Both rates with their limits at a few hundred thresholds: what `evaluate` gives at each of them.

    At points that stand for a FAR, FRR has the limits of the page, which account for the estimated threshold.

    Parameters
    ----------
    method
        Of the page; the slider has ``"auto"`` for methods that it does not know.
    eer
        The point of the curve that is nearest to the equal error rate.
    """
    aims = {int(getattr(point.frr.number, "index")): point for point in points if point.target is not None}  # noqa: B009
    asked = [point for point in points if point.target is None]
    most = PERSON_POINTS if curve.weighting == "identities" else POINTS
    always = np.unique(np.array([0, len(curve) - 1, eer, *aims], dtype=np.int64))
    chosen = panel_points(curve.far, curve.frr, most - len(asked), always)
    own, counted = method if method in ("latent", "wilson") else "auto", counted_curve(curve.tally)
    numbers: dict[str, Any] = {"threshold": curve.thresholds[chosen]}
    for name, rates, errors in (
        ("far", curve.far, counted.false_matches),
        ("frr", curve.frr, counted.false_nonmatches),
    ):
        limits = curve.limits_at(chosen, name, level, method=own)  # type: ignore[arg-type]
        columns = (rates[chosen], limits.low, limits.high, limits.upper, errors[chosen])
        numbers |= dict(zip(_names(name), (column.copy() for column in columns), strict=True))
    for index, point in aims.items():
        _state(numbers, "frr", chosen == index, point.frr)
    readings = [reading_of(counted, int(k)) for k in chosen]
    for point in asked:
        row: dict[str, Any] = {"threshold": point.threshold}
        for name, stated in (("far", point.far), ("frr", point.frr)):
            values = (stated.estimate, stated.low, stated.high, stated.upper, stated.errors)
            row |= dict(zip(_names(name), values, strict=True))
        numbers = {name: np.append(values, row[name]) for name, values in numbers.items()}
        readings.append(point.reading)
    thresholds: FloatArray = numbers["threshold"]
    _, first = np.unique(thresholds[::-1], return_index=True)
    order = thresholds.size - 1 - first  # of two at one threshold, the one that was asked for
    numbers = {
        name: values[order].astype(np.int64 if name.endswith("errors") else np.float64)
        for name, values in numbers.items()
    }
    places = [int(np.abs(numbers["threshold"] - point.threshold).argmin()) for point in points]
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


def _names(rate: str) -> list[str]:
    return [rate, *(f"{rate}_{what}" for what in ("low", "high", "upper", "errors"))]


def _state(numbers: dict[str, Any], rate: str, here: Any, stated: Stated) -> None:
    for what, value in (("low", stated.low), ("high", stated.high), ("upper", stated.upper)):
        numbers[f"{rate}_{what}"][here] = value


def counted_curve(curve: CurveTally) -> CurveTally:
    """The curve of comparisons behind a curve of identities; any other is itself."""
    return curve.counted


def reading_of(curve: CurveTally, index: int, digits: int = 6) -> str:
    """A short decimal for the threshold of a point of a curve.

    For a curve with every step: the one with fewest digits (at least four) that lies where the decisions are the same,
    between this score and the next. Else the threshold to six digits.
    """
    curve = counted_curve(curve)
    exact = float(curve.thresholds[index])
    if not curve.every_step:
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
