"""Attributes that belong to identities."""

from __future__ import annotations

import numpy as np

from matchbound.arraytypes import IntArray, LabelArray
from matchbound.data.labels import Coded, merge
from matchbound.errors import DataError


def group_of_identity(identities: LabelArray, codes: IntArray, group: Coded) -> LabelArray:
    """The group of each identity, shape (G,), from a group stated on each row.

    A group belongs to an identity, not to an image of it: two statements that differ are an error.

    Parameters
    ----------
    codes
        The identity of each row, shape (n,); every identity occurs.
    group
        The group of each row.
    """
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
