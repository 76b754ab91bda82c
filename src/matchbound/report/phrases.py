"""Short phrases that every section of a report uses."""

from __future__ import annotations

import math

MINUS = "\u2212"


def level_text(level: float) -> str:
    """95%."""
    return f"{100 * level:.5g}%"


def target_text(rate: float) -> str:
    """A target rate: 1e-3, 5e-4, 0.25."""
    if rate <= 0.0:
        return "0"
    exponent = math.floor(math.log10(rate) + 1e-9)
    lead = rate / 10.0**exponent
    if exponent <= -1 and abs(lead - round(lead)) < 1e-9:
        return f"{round(lead)}e{exponent}"
    return f"{rate:g}"
