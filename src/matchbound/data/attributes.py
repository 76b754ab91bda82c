"""Attributes of identities or instances, as people state them: columns, mappings, several at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from matchbound.arraytypes import IntArray, LabelArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.grouping import group_of_identity
from matchbound.data.labels import as_text, coded_labels, encode, label_mapping, merge, text_array
from matchbound.errors import DataError, UsageError, argument

Source = Comparisons | Embeddings
JOIN = " & "


def identity_labels(source: Source, attribute: Any, name: str = "group") -> LabelArray:
    """The attribute of each identity as text, shape (G,).

    Parameters
    ----------
    attribute
        None: the group that the data carry. A mapping from identity to label. For embeddings, a column: one label per
        row, never per identity. A tuple of these: their intersections, such as ``"f & old"``.
    """
    if isinstance(attribute, tuple):
        if not attribute:
            raise UsageError(f"{name} is an empty tuple; name at least one attribute")
        columns = [identity_labels(source, one, name).tolist() for one in attribute]
        return text_array([JOIN.join(words) for words in zip(*columns, strict=True)])
    if attribute is None:
        if source.group is None:
            raise DataError(
                f"the data name no {name}: give {argument(name)} (a column of the file) or {argument('people')} (a "
                "table of people)"
            )
        return as_text(source.group)
    if isinstance(attribute, Mapping):
        return _mapped(source, attribute, name)
    mapping = f"give {argument(name)} as a mapping from identity to label, or {argument('people')}, a table of people"
    if isinstance(source, Comparisons):
        raise UsageError(f"{name}: a column cannot say which side of a comparison it is about; {mapping}")
    column = coded_labels(attribute, name)
    if len(column) != len(source):
        raise DataError(
            f"{name} has {len(column)} labels and the data have {len(source)} rows; a column holds one label per row. "
            f"For labels of identities, {mapping}"
        )
    return as_text(group_of_identity(source.identities, source.codes, column))


def _mapped(source: Source, attribute: Mapping[Any, Any], name: str) -> LabelArray:
    """The label that a mapping gives each identity; those of other identities are not looked at."""
    who = as_text(source.identities).tolist()
    wanted = set(who)
    about = {key: value for key, value in attribute.items() if str(key).strip() in wanted}
    known = label_mapping(about, name)
    missing = next((identity for identity in who if identity not in known), None)
    if missing is not None:
        raise DataError(f"{name}: identity {missing} is not in the mapping; give every identity a label")
    return text_array([known[identity] for identity in who])


def comparison_units(source: Comparisons, attribute: Any, name: str = "cluster") -> tuple[IntArray, IntArray, bool]:
    """The unit on either side of each comparison, shape (n,) each, and whether each identity has one unit only.

    Parameters
    ----------
    attribute
        A mapping, as for `identity_labels`; or a list of two columns with one label per comparison, for its two sides.
    """
    if isinstance(attribute, list) and len(attribute) == 2:
        columns = [coded_labels(column, name) for column in attribute]
        for column in columns:
            if len(column) != len(source):
                raise DataError(f"{name} has {len(column)} labels per side and there are {len(source)} comparisons")
        _, (a, b) = merge(*columns)
        return a, b, _nested(source, a, b)
    _, (codes,) = encode(identity_labels(source, attribute, name))
    return codes[source.a], codes[source.b], True


def _nested(source: Comparisons, a: IntArray, b: IntArray) -> bool:
    """Whether no identity has two units."""
    identity, unit = np.concatenate([source.a, source.b]), np.concatenate([a, b])
    pairs = np.unique(identity * np.int64(int(unit.max(initial=0)) + 1) + unit)
    return bool(pairs.size == np.unique(identity).size)
