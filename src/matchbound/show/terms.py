"""The words of standards: FMR and FNMR of ISO/IEC 19795-1 for people who read tables, plots and reports.

The library speaks of FAR and FRR throughout. Comparisons are what it counts, so that its FAR is the standard's false
match rate (FMR) and its FRR the standard's false non-match rate (FNMR); the standard keeps FAR and FRR for whole
transactions. GFAR, GFRR, FPIR and FNIR are the same in both. A view asks `say` for its own words while it is made;
names of people, groups and files are never touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from matchbound.metrics import METRICS

Terms = Literal["plain", "iso"]
_SPOKEN: ContextVar[Terms] = ContextVar("terms", default="plain")
_WORDS = re.compile(r"\b(FAR|FRR|([Ff])alse (accept|reject))(s?)\b")


def _in_iso(match: re.Match[str]) -> str:
    whole, letter, event, plural = match.groups()
    if letter:
        return f"{letter}alse {'match' if event == 'accept' else 'non-match'}{'es' if plural else ''}"
    return f"{'FMR' if whole == 'FAR' else 'FNMR'}{plural}"


def say(text: str) -> str:
    """Text of the library's own, in the terms that are spoken."""
    return text if _SPOKEN.get() == "plain" else _WORDS.sub(_in_iso, text)


@contextmanager
def speaking(terms: Terms) -> Iterator[None]:
    """What is made inside is in these terms."""
    token = _SPOKEN.set(terms)
    try:
        yield
    finally:
        _SPOKEN.reset(token)


def metric_name(metric: str) -> str:
    """A metric as a heading: ``"frr@far"`` is "FRR at FAR", or "FNMR at FMR" where ISO's terms are spoken."""
    entry = METRICS.get(metric)
    return say(metric.upper().replace("@", " at ") if entry is None else entry.title)
