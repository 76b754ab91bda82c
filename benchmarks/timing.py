"""What the benchmarks share: timing a call, and a row of the table of ratios."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def best(call: Callable[[], Any], repeats: int = 7) -> float:
    """The shortest of several runs, after one that does not count."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def row(name: str, seconds: float, reference: str, reference_seconds: float, bar: str, ok: bool) -> dict[str, Any]:
    """One line of the table of ratios."""
    return {
        "name": name,
        "seconds": seconds,
        "reference": reference,
        "reference_seconds": reference_seconds,
        "ratio": seconds / reference_seconds,
        "bar": bar,
        "ok": bool(ok),
    }
