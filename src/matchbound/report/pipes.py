"""Text and tables as Markdown writes them."""

from __future__ import annotations

from collections.abc import Sequence

SPECIAL = "\\`*_{}[]<>|#~$"


def text(value: str) -> str:
    """Plain text that Markdown leaves as it is, on one line."""
    flat = " ".join(value.split())
    return "".join("\\" + c if c in SPECIAL else c for c in flat)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A pipe table; the first column is flush left, the others flush right."""
    marks = ["---", *["---:"] * (len(headings) - 1)]
    lines = [[text(cell) for cell in headings], marks, *[[text(cell) for cell in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
