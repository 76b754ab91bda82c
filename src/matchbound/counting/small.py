"""All pairs of a small set of embeddings: scored one by one and counted as a table, which needs little compiled."""

from __future__ import annotations

from dataclasses import replace

from matchbound.arraytypes import FloatArray
from matchbound.counting.partial import sorted_thresholds
from matchbound.counting.tables import tally_comparisons
from matchbound.counts.tally import AllPairs, Tally
from matchbound.data.embeddings import Embeddings

SMALL_COMPARISONS = 320_000
"""Up to this many, scoring them takes some milliseconds, and blocks would not save much of that."""


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
    made = tally_comparisons(source.comparisons(), given, pairs=pairs)
    return replace(made, impostor=replace(made.impostor, compared=AllPairs(source.instance_counts)))
