"""What a file is called in results that are shared: its own name, never where it lies or how it is opened."""

from __future__ import annotations

import os
from collections.abc import Sequence

from matchbound.errors import without_secrets

STANDARD_INPUT = "standard input"


def own_name(place: str | os.PathLike[str]) -> str:
    """The last part of a path or an address, without query, user or password; ``standard input`` for ``-``.

    Examples
    --------
    >>> own_name("s3://key:secret@bucket/runs/scores.csv?versionId=7")
    'scores.csv'
    """
    text = os.fspath(place)
    if text in ("-", "<stdin>"):
        return STANDARD_INPUT
    bare = without_secrets(text).rstrip("/")
    name = bare.rpartition("/")[2]
    return name if name not in ("", ".", "..") else "data"


def own_names(places: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Own names, numbered where two are alike: ``1: scores.csv``, ``2: scores.csv``."""
    names = [own_name(place) for place in places]
    if len(set(names)) == len(names):
        return names
    return [f"{number}: {name}" for number, name in enumerate(names, start=1)]
