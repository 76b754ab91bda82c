"""Numbers for people: the one formatter of rates."""

from __future__ import annotations

import math


def percent(value: float | None) -> str:
    """A rate for people: 4.2%, 0.031%, 1.2e-05%; a dash for nothing."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0.0:
        return "0%"
    shown = 100.0 * value
    if abs(shown) < 1e-3:
        return f"{shown:.1e}%"
    return f"{shown:.3g}%" if abs(shown) < 99.95 else f"{shown:.5g}%"
