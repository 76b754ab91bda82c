"""Names that people type: found whatever the capitals, spaces, hyphens or underscores, or refused with the choices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from matchbound.errors import UsageError


def folded(name: str) -> str:
    """The name without capitals, spaces, hyphens and underscores: ``"Naive_Wilson"`` is ``"naivewilson"``."""
    return re.sub(r"[\s_\-\u2010-\u2015]+", "", name).casefold()


def named(name: object, choices: Sequence[str], what: str = "method", hints: Mapping[str, str] | None = None) -> str:
    """The choice that a name means.

    Parameters
    ----------
    name
        What was asked for; ``"Double or Nothing"`` means ``"double-or-nothing"``.
    choices
        The names as they are written in results.
    what
        What the argument is called, such as ``"method"``, ``"variance"`` or ``"--method"``.
    hints
        What to say about names that belong somewhere else: ``{"wilson": "for a curve, use method='union'"}``.

    Raises
    ------
    UsageError
        When no choice is meant; the message lists all of them, and first the nearest.

    Examples
    --------
    >>> named("Naive_Wilson", ("wilson", "naive-wilson"))
    'naive-wilson'
    """
    if name in choices:
        return str(name)
    if not isinstance(name, str):
        raise UsageError(f"{what} must be one of {', '.join(choices)}; got {name!r}")
    by_key = {folded(choice): choice for choice in choices}
    key = folded(name)
    if key in by_key:
        return by_key[key]
    told = {folded(other): hint for other, hint in (hints or {}).items()}
    shown = name if len(name) <= 60 else f"{name[:60]}…"
    said = f"{what} must be one of {', '.join(choices)}; got {shown!r}"
    if key in told:
        raise UsageError(f"{said}: {told[key]}")
    near = get_close_matches(key, by_key, n=1, cutoff=0.75)
    raise UsageError(f"{said}; did you mean {by_key[near[0]]!r}?" if near else said)
