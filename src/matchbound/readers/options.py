"""What a caller says of a file besides its name: one set of options, of which each reader takes some."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from matchbound.data.comparisons import REPEATS, Repeats
from matchbound.data.embeddings import SIMILARITIES, Similarity
from matchbound.data.values import MISSING, Missing
from matchbound.errors import DataError, UsageError, argument
from matchbound.files.opening import Input
from matchbound.readers.roles import PairRoles, RowRoles, find_roles

Labels = Input | str | os.PathLike[str] | ArrayLike
# What any reader takes; `read` itself settles `repeats`.
ALWAYS = ("distance", "similarity", "repeats", "max_bytes")
_TEXTS = ("group", "delimiter", "identity_regex", "score", "truth", "unique_id")
_CHOICES = {"similarity": SIMILARITIES, "repeats": (None, *REPEATS), "missing": MISSING, "blocked": ("miss", "leave")}


@dataclass(frozen=True)
class Options:
    """Options of `matchbound.read` and of the readers, which explain their own; see `READERS` for which takes which."""

    distance: bool | None = None
    similarity: Similarity = "cosine"
    repeats: Repeats | None = None
    max_bytes: int | None = None
    columns: Mapping[str, str | None] | None = None
    group: str | None = None
    missing: Missing = "error"
    delimiter: str | None = None
    labels: Labels | None = None
    column_labels: Labels | None = None
    map: str | os.PathLike[str] | Mapping[str, str] | None = None
    identity_regex: str | None = None
    score: str | None = None
    truth: str | None = None
    unique_id: str = "unique_id"
    blocked: str = "miss"

    def roles(self, names: Sequence[str], source: str, hint: str = "") -> PairRoles | RowRoles:
        """What the columns of a table are; `hint` is added to the error where they are not known."""
        try:
            return find_roles(names, source, columns=self.columns, group=self.group)
        except DataError as error:
            raise type(error)(f"{error.marked}{hint}") from None

    def kind(self, source: str) -> Similarity:
        """How embeddings are scored, which `distance` must not contradict."""
        if self.distance is not None and self.distance != (self.similarity == "euclidean"):
            raise UsageError(
                f"{source} holds embeddings, which are scored by {argument('similarity', self.similarity)}; use "
                f"{argument('similarity', 'euclidean')} for distances, and leave out distance"
            )
        return self.similarity


def options_of(what: str, takes: str, given: Mapping[str, Any]) -> Options:
    """The options of a reader, `what` in messages, that takes those named in a text; others are a UsageError."""
    for name, value in given.items():
        if name not in (*ALWAYS, *takes.split()):
            raise UsageError(f"{what} takes no option {name!r}; it takes {', '.join(takes.split()) or 'none'}")
        if name in _CHOICES and value not in _CHOICES[name]:
            allowed = ", ".join(word for word in _CHOICES[name] if word)
            raise UsageError(f"{name} must be one of {allowed}; got {value!r}")
        if name in _TEXTS and not isinstance(value, str | None):
            raise UsageError(f"{name} must be text; got {value!r}")
        if isinstance(value, Mapping) and name not in ("columns", "map"):
            raise UsageError(f"{name} takes one value; got {value!r}")
    return Options(**given)
