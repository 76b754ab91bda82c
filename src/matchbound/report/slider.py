"""What a slider moves over: both rates with their limits at a few hundred thresholds, and short decimals for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.curve import CurveTally
from matchbound.results.roc import RocCurve
from matchbound.show.section import Slider

if TYPE_CHECKING:
    from matchbound.report.page import Point

# Thresholds of the slider, with those that were asked for.
POINTS = 390
# The same where every person counts once: each limit is then solved for on its own.
PERSON_POINTS = 150
LIMITS = ("low", "high", "upper")


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
    own, counted = method if method in ("latent", "wilson") else "auto", curve.tally.counted
    numbers: dict[str, Any] = {"threshold": [*curve.thresholds[chosen], *(point.threshold for point in asked)]}
    for name, rates, errors in (
        ("far", curve.far, counted.false_matches),
        ("frr", curve.frr, counted.false_nonmatches),
    ):
        limits = curve.limits_at(chosen, name, level, method=own)  # type: ignore[arg-type]
        stated = [getattr(point, name) for point in asked]
        numbers[name] = [*rates[chosen], *(number.estimate for number in stated)]
        numbers[f"{name}_errors"] = [*errors[chosen], *(number.errors for number in stated)]
        for side in LIMITS:
            column = getattr(limits, side).copy()
            for index, point in aims.items() if name == "frr" else ():
                column[chosen == index] = getattr(point.frr, side)
            numbers[f"{name}_{side}"] = [*column, *(getattr(number, side) for number in stated)]
    readings = [*(reading_of(counted, int(k)) for k in chosen), *(point.reading for point in asked)]
    thresholds = np.array(numbers["threshold"])
    _, first = np.unique(thresholds[::-1], return_index=True)
    order = thresholds.size - 1 - first  # of two at one threshold, the one that was asked for
    numbers = {
        name: np.array(values, dtype=np.int64 if name.endswith("errors") else np.float64)[order]
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


def panel_points(far: FloatArray, frr: FloatArray, points: int, always: IntArray) -> IntArray:
    """Points of a curve for a slider, in increasing order, at most `points` and those of `always`.

    They follow both rates evenly on the probit scale, so that neither tail is jumped over.
    """
    from scipy.special import ndtr, ndtri

    half = max((points - always.size) // 2, 2)

    def spread(rates: FloatArray) -> FloatArray:
        inside = rates[(rates > 0.0) & (rates < 1.0)]
        if not inside.size:
            return np.array([0.5])
        targets: FloatArray = ndtr(np.linspace(ndtri(inside.min()), ndtri(inside.max()), half))
        return targets

    by_far = np.searchsorted(far, spread(far))
    by_frr = np.searchsorted(-frr, -spread(frr))
    chosen = np.concatenate([by_far, by_frr, always])
    return np.unique(np.clip(chosen, 0, far.size - 1)).astype(np.int64)


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


def reading_of_number(value: float) -> str:
    """The shortest decimal that is this number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))
