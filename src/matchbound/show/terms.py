"""The words of standards: FMR and FNMR of ISO/IEC 19795-1 for people who read tables, plots and reports.

The library speaks of FAR and FRR throughout. Comparisons are what it counts, so that its FAR is the standard's false
match rate (FMR) and its FRR the standard's false non-match rate (FNMR); the standard keeps FAR and FRR for whole
transactions. GFAR, GFRR, FPIR and FNIR are the same in both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Terms = Literal["plain", "iso"]
_SPOKEN: ContextVar[Terms] = ContextVar("terms", default="plain")

_ISO = {
    "FAR": "FMR",
    "FRR": "FNMR",
    "FARs": "FMRs",
    "FRRs": "FNMRs",
    "false accept rate": "false match rate",
    "false accept rates": "false match rates",
    "false accept": "false match",
    "false accepts": "false matches",
    "false reject rate": "false non-match rate",
    "false reject rates": "false non-match rates",
    "false reject": "false non-match",
    "false rejects": "false non-matches",
    "False accept": "False match",
    "False reject": "False non-match",
    "False accepts": "False matches",
    "False rejects": "False non-matches",
}
_WORDS = re.compile(r"\b(" + "|".join(sorted(map(re.escape, _ISO), key=len, reverse=True)) + r")\b")
_MARKUP = re.compile(r"(<script\b.*?</script>|<style\b.*?</style>|<[^>]*>)", re.DOTALL)


def worded(text: str, terms: Terms = "plain") -> str:
    """Text for people in the terms asked for."""
    return text if terms == "plain" else _WORDS.sub(lambda found: _ISO[found[0]], text)


def worded_page(page: str, terms: Terms = "plain") -> str:
    """The same for HTML and SVG: only what is read changes, not tags, styles and scripts."""
    if terms == "plain":
        return page
    parts = _MARKUP.split(page)
    parts[::2] = [worded(part, terms) for part in parts[::2]]
    return "".join(parts)


def relabelled(ax: Axes, terms: Terms = "plain") -> Axes:
    """A picture in the terms asked for: its title, the labels of its axes, its legend and its notes."""
    if terms == "plain":
        return ax
    legend = ax.get_legend()
    texts = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts, *([] if legend is None else legend.get_texts())]
    for text in texts:
        text.set_text(worded(text.get_text(), terms))
    return ax


@contextmanager
def speaking(terms: Terms) -> Iterator[None]:
    """Headings made inside are in these terms."""
    token = _SPOKEN.set(terms)
    try:
        yield
    finally:
        _SPOKEN.reset(token)


def metric_name(metric: str) -> str:
    """A metric as a heading: ``"frr@far"`` is "FRR at FAR", or "FNMR at FMR" where ISO's terms are spoken."""
    names = {"mindcf": "minDCF", "actdcf": "actDCF", "cllr": "Cllr", "mincllr": "minCllr"}
    names |= {"precision": "precision", "recall": "recall", "f1": "F1"}
    return names.get(metric) or worded(metric.upper().replace("@", " at "), _SPOKEN.get())
