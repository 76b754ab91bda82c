"""What data in memory have in common, whether they hold scores or vectors, and attributes of their identities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from matchbound.arraytypes import BoolArray, IntArray, LabelArray
from matchbound.data.labels import Coded, as_text, label_mapping, merge, text_array
from matchbound.errors import DataError, UsageError, argument
from matchbound.files.origin import Origin
from matchbound.notes import Note

if TYPE_CHECKING:
    from matchbound.data.comparisons import Comparisons

JOIN = " & "


class Source(ABC):
    """Data in memory that can be counted: `Comparisons` or `Embeddings`. Sources are never changed.

    - kind: ``"comparisons"`` or ``"embeddings"``.
    - unit: what a row is, in the plural: ``"comparisons"`` or ``"instances"``.
    """

    kind: ClassVar[Literal["comparisons", "embeddings"]]
    unit: ClassVar[str]
    identities: LabelArray
    group: LabelArray | None
    notes: tuple[Note, ...]
    origin: tuple[Origin, ...]

    @classmethod
    def from_fields(cls, **fields: Any) -> Self:
        """Data of all their fields, which are known to be good: nothing is checked or encoded."""
        source = object.__new__(cls)
        source._set(fields)
        return source

    def with_fields(self, **changes: Any) -> Self:
        """The same data with some fields changed, which are known to be good: nothing is checked or encoded."""
        names = type(self).__dataclass_fields__  # type: ignore[attr-defined]
        return self.from_fields(**{**{name: getattr(self, name) for name in names}, **changes})

    def _set(self, fields: dict[str, Any]) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def n_identities(self) -> int:
        """How many identities occur."""
        return int(self.identities.size)

    @property
    @abstractmethod
    def instance_counts(self) -> IntArray | None:
        """M_i, the instances of each identity that occur, shape (G,); None when instances are unknown."""

    @property
    @abstractmethod
    def n_genuine(self) -> int:
        """How many genuine comparisons there are."""

    @property
    @abstractmethod
    def n_impostor(self) -> int:
        """How many impostor comparisons there are."""

    @property
    @abstractmethod
    def comparisons_by_identity(self) -> tuple[IntArray, IntArray]:
        """Genuine and impostor comparisons that each identity takes part in, shape (G,) each."""

    @property
    @abstractmethod
    def arrays(self) -> tuple[np.ndarray[Any, Any], ...]:
        """The numbers that decide every answer, for digests."""

    @abstractmethod
    def findings(self) -> tuple[Note, ...]:
        """What a careful reader would want to know about these data before trusting a number."""

    @abstractmethod
    def comparisons(self) -> Comparisons:
        """Every comparison with its score; all pairs, for embeddings."""

    @abstractmethod
    def take(self, rows: IntArray) -> Self:
        """Some rows; identities that no longer occur are gone."""

    @abstractmethod
    def _rows_among(self, kept: BoolArray) -> BoolArray:
        """Which rows concern only the identities that are kept."""

    def among(self, identities: IntArray) -> Self:
        """The rows that concern only the given identities, by their positions: comparisons join two of them."""
        kept = np.zeros(self.n_identities, dtype=np.bool_)
        kept[identities] = True
        return self.take(np.flatnonzero(self._rows_among(kept)))

    def group_of_rows(self, column: Any, name: str, remedy: str) -> LabelArray:
        """The group of each identity from one label per row; a UsageError where a row has two identities."""
        raise UsageError(f"{name}: a column cannot say which side of a comparison it is about; {remedy}")

    def identity_labels(self, attribute: Any, name: str = "group") -> LabelArray:
        """The attribute of each identity as text, shape (G,).

        - attribute: None, for the group that the data carry; a mapping from identity to label; for embeddings, a column
          (one label per row, never per identity); a tuple of these, for intersections such as ``"f & old"``.
        """
        if isinstance(attribute, tuple):
            if not attribute:
                raise UsageError(f"{name} is an empty tuple; name at least one attribute")
            columns = [self.identity_labels(one, name).tolist() for one in attribute]
            return text_array([JOIN.join(words) for words in zip(*columns, strict=True)])
        if attribute is None:
            if self.group is None:
                raise DataError(
                    f"the data name no {name}: give {argument(name)} (a column of the file) or {argument('people')} (a "
                    "table of people)"
                )
            return as_text(self.group)
        if isinstance(attribute, Mapping):
            return self._mapped(attribute, name)
        remedy = (
            f"give {argument(name)} as a mapping from identity to label, or {argument('people')}, a table of people"
        )
        return as_text(self.group_of_rows(attribute, name, remedy))

    def _mapped(self, attribute: Mapping[Any, Any], name: str) -> LabelArray:
        """The label that a mapping gives each identity; those of other identities are not looked at."""
        people = as_text(self.identities).tolist()
        wanted = set(people)
        labels = label_mapping({key: value for key, value in attribute.items() if str(key).strip() in wanted}, name)
        for identity in people:
            if identity not in labels:
                raise DataError(f"{name}: identity {identity} is not in the mapping; give every identity a label")
        return text_array([labels[identity] for identity in people])


def group_of_identity(identities: LabelArray, codes: IntArray, group: Coded) -> LabelArray:
    """The group of each identity, shape (G,), from one stated on each row; statements that differ are an error."""
    labels, (stated,) = merge(group)
    of_identity = np.full(identities.size, -1, dtype=np.int64)
    of_identity[codes] = stated
    clash = np.flatnonzero(of_identity[codes] != stated)
    if clash.size:
        who = codes[clash[0]]
        raise DataError(
            f"group: identity {identities[who]!s} is in group {labels[stated[clash[0]]]!s} in one row and in group "
            f"{labels[of_identity[who]]!s} in another; a group belongs to an identity"
        )
    result: LabelArray = labels[of_identity] if labels.size else np.empty(0, dtype=np.str_)
    return result
