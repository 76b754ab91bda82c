"""A picture as data: axes, lines, bands, bars and rows; `matchbound.show.mpl` and `matchbound.report.html` draw it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.show.numbers import target_text

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
