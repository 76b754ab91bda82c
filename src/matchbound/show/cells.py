"""Text in the cells of a table that a spreadsheet may open: a label must never become a formula."""

from __future__ import annotations

import re
from typing import Any

_FORMULA = re.compile(r"'*\s*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may take the text for a formula: it begins with = + - or @ and is not a number."""
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None


def inert(value: Any) -> Any:
    """A cell that a spreadsheet shows as it is: before text that begins like a formula stands a single quote.

    Examples
    --------
    >>> inert("=1+1"), inert("-3"), inert(-3.0)
    ("'=1+1", '-3', -3.0)
    """
    return f"'{value}" if isinstance(value, str) and is_formula(value) else value
