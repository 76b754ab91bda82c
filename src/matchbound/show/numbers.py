"""How numbers are written: the one formatter of tables, pages, plots and messages.

A rate is a percentage with its trailing zeros, ``0.0938%`` or ``5.00%``; below 0.001% it has two digits, ``0.00033%``,
and below 1e-8 it is a plain number, ``3.3e-9``. A percent sign and an exponent never stand together. A difference of
rates is in percentage points.
"""

from __future__ import annotations

import math

MINUS = "\u2212"
DASH = "–"
# A rate below this is written with an exponent and without a percent sign.
TINY = 1e-8
# A rate below this has two digits, others three.
LOW = 1e-5


def typed_number(word: str) -> float:
    """A number as people type it: ``"0.1%"`` is 0.001; a ValueError where it is none."""
    return float(word[:-1]) / 100.0 if word.endswith("%") else float(word)


def percent(value: float | None) -> str:
    """A rate: 4.20%, 0.0310%, 0.00033%, 3.3e-9; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return DASH
    if value == 0.0:
        return "0%"
    size = abs(value)
    if size < TINY:
        return _exponent(value)
    if 0.999 < size < 1.0:
        rest = _decimals(100.0 * (1.0 - size), 2)
        return f"{100.0 * value:.{min(rest, 14)}f}%"
    if size == 1.0:
        return f"{100.0 * value:.0f}%"
    return f"{fixed(100.0 * value, 2 if size < LOW else 3)}%"


def span(low: float, high: float) -> str:
    """An interval of a rate: 3.10–5.60%; both signs where the two are written differently."""
    left, right = percent(low), percent(high)
    if left.endswith("%") and right.endswith("%"):
        left = left[:-1]
    return f"{left}–{right}"


def points(value: float | None) -> str:
    """A difference of rates in percentage points, without the unit: −2.30."""
    if value is None or not math.isfinite(value):
        return DASH
    if value == 0.0:
        return "0"
    size = abs(value)
    shown = fixed(100.0 * size, 2 if size < LOW else 3) if size >= TINY else _exponent(100.0 * size)
    return f"{MINUS if value < 0.0 else ''}{shown}"


def points_span(low: float, high: float) -> str:
    """An interval of a difference: −4.70 to 0.130."""
    return f"{points(low)} to {points(high)}"


def level_text(level: float) -> str:
    """A confidence level: 95%, 99.9%."""
    return f"{100.0 * level:.5g}%"


def target_text(rate: float) -> str:
    """A rate that was asked for, as it was asked: 0.1%, 5%, 1e-9."""
    if rate == 0.0:
        return "0%"
    if abs(rate) < TINY:
        mantissa, exponent = f"{rate:.6e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    shown = f"{100.0 * rate:.{_decimals(100.0 * rate, 7)}f}"
    return f"{shown.rstrip('0').rstrip('.') if '.' in shown else shown}%"


def p_text(value: float | None) -> str:
    """A p-value: 0.034, <0.001; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return DASH
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def ratio_text(value: float | None) -> str:
    """A ratio, a design effect, how many times: 0.630, 12.0, 30,300; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return DASH
    if value == 0.0:
        return "0"
    if abs(value) < 1e-3 or abs(value) >= 1e9:
        return _exponent(value)
    return fixed(value, 3) if abs(value) < 999.5 else f"{float(f'{value:.3g}'):,.0f}"


def ratio_span(low: float | None, high: float | None) -> str:
    """An interval of a ratio; limits that are not known, or infinite, are None."""
    if low is None:
        return "unknown"
    return f"above {ratio_text(low)}" if high is None else f"{ratio_text(low)} to {ratio_text(high)}"


def count_text(value: int | None) -> str:
    """A count: 86,937,845."""
    return DASH if value is None else f"{value:,}"


def threshold_text(value: float | None) -> str:
    """A threshold, in the units of the scores: six digits, but all of one that rounding would put on another score.

    0.30000000000000004 is not 0.3, which scores with few decimals may have.
    """
    if value is None:
        return DASH
    text = f"{value:.6g}"
    return repr(float(value)) if 0.0 < abs(float(text) - value) < 1e-12 * abs(value) else text


def fixed(value: float, digits: int) -> str:
    """A number with so many significant digits, written out, with its trailing zeros."""
    return f"{value:.{_decimals(value, digits)}f}"


def _decimals(value: float, digits: int) -> int:
    """How many decimals so many significant digits take, after rounding."""
    exponent = int(f"{value:.{digits - 1}e}".split("e")[1])
    return max(digits - 1 - exponent, 0)


def _exponent(value: float) -> str:
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa.replace('-', MINUS)}e{int(exponent)}"
