"""All pairs of a small set of embeddings: scored one by one and counted as a table, which needs little compiled."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.counting.partial import sorted_thresholds
from matchbound.counting.tables import tally_comparisons
from matchbound.counts.tally import AllPairs, Tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings

SMALL_COMPARISONS = 320_000
"""Up to this many, no kernel of blocks is needed: on a fresh installation the first rates with intervals of the example
take 1.4 s instead of 13 s, most of it compiling. Once kernels are kept, blocks are faster from some 300 rows on.
The 800 rows of a large set from which a latent model takes its correlations have so many pairs."""


def is_small(source: Embeddings) -> bool:
    """Whether a set is small enough."""
    rows = len(source)
    return rows * (rows - 1) // 2 <= SMALL_COMPARISONS


def tally_small(source: Embeddings, thresholds: FloatArray, *, pairs: bool = False) -> Tally:
    """Tally every pair of rows at every threshold, as `matchbound.counting.allpairs.tally_embeddings` does.

    Parameters
    ----------
    source
        The embeddings.
    thresholds
        Shape (K,), in any order; the tally has them in this order.
    pairs
        Whether to keep n_ij, the errors of each pair of identities, at each threshold.
    """
    given = sorted_thresholds(thresholds, source.distance)[0]
    made = tally_comparisons(_scored(source), given, pairs=pairs)
    return replace(made, impostor=replace(made.impostor, compared=AllPairs(source.instance_counts)))


_SCORED: WeakKeyDictionary[Embeddings, tuple[bytes, Comparisons]] = WeakKeyDictionary()
"""Pairs of small sets that were counted, for as long as the set is there: an interval counts them again."""


def _scored(source: Embeddings) -> Comparisons:
    """All pairs, scored once for the same vectors: an array that was changed in place is scored again."""
    content = hashlib.blake2b(np.ascontiguousarray(source.vectors).data, digest_size=16)
    content.update(np.ascontiguousarray(source.codes).data)
    known = _SCORED.get(source)
    if known is None or known[0] != content.digest():
        known = _SCORED[source] = content.digest(), source.comparisons()
    return known[1]
