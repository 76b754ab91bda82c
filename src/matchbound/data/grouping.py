"""Attributes that belong to identities."""

from __future__ import annotations

import numpy as np

from matchbound.arraytypes import IntArray, LabelArray
from matchbound.errors import DataError


def group_of_identity(identities: LabelArray, codes: IntArray, group: LabelArray) -> LabelArray:
    """The group of each identity, shape (G,), from a group stated on each row.

    A group belongs to an identity, not to an image of it: two statements that differ are an error.
    """
    order = np.argsort(codes, kind="stable")
    sorted_codes, sorted_group = codes[order], group[order]
    clash = np.flatnonzero((sorted_codes[1:] == sorted_codes[:-1]) & (sorted_group[1:] != sorted_group[:-1]))
    if clash.size:
        at = int(clash[0])
        raise DataError(
            f"group: identity {identities[sorted_codes[at]]!s} is in group {sorted_group[at]!s} in one row and in "
            f"group {sorted_group[at + 1]!s} in another; a group belongs to an identity"
        )
    first = np.searchsorted(sorted_codes, np.arange(identities.size))
    result: LabelArray = sorted_group[first]
    return result
