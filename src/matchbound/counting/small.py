"""All pairs of a small set of embeddings: scored one by one and sorted, which needs next to nothing compiled."""

from __future__ import annotations

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.partial import Partial, finish, sorted_thresholds
from matchbound.counts.tally import Tally
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
    given, distinct, place = sorted_thresholds(thresholds, source.distance)
    first, second = source.pairs()
    scores = source.score_pairs(first, second)
    bins = np.searchsorted(distinct, -scores if source.distance else scores, side="right")
    partial = _booked(source, source.codes[first], source.codes[second], bins, distinct.size)
    return finish(partial, source.identities, source.instance_counts, given, place, source.distance, pairs)


def _booked(source: Embeddings, first: IntArray, second: IntArray, bins: IntArray, levels: int) -> Partial:
    """What comparisons of identities `first` and `second` add, each in a bin between thresholds."""
    size, instances = source.n_identities, source.instance_counts
    partial = Partial.empty(size, levels)
    genuine = first == second
    erred = genuine & (bins < levels)
    partial.genuine += _counted(first[erred], bins[erred], size, levels)
    erred = ~genuine & (bins > 0)
    low, high = np.minimum(first, second)[erred], np.maximum(first, second)[erred]
    above = bins[erred] - 1
    partial.impostor += _counted(low, above, size, levels) + _counted(high, above, size, levels)
    # By pair, the strictest bin first: n comparisons after r others of the pair add (r + n)² − r² to its n².
    cells, count = np.unique((low * size + high) * levels + (levels - 1 - above), return_counts=True)
    key, bin_ = cells // levels, levels - 1 - cells % levels
    total = np.cumsum(count)
    begins = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if key.size else np.empty(0, dtype=np.int64)
    lengths = np.diff(np.append(begins, key.size))
    before = total - count - np.repeat((total - count)[begins], lengths)
    i, j = key // size, key % size
    np.add.at(partial.moments[0], bin_, count * (count + 2 * before))
    np.add.at(partial.moments[1], bin_, count * instances[i] * instances[j])
    partial.keep(np.column_stack([i, j, bin_, count]))
    return partial


def _counted(identity: IntArray, bins: IntArray, size: int, levels: int) -> IntArray:
    """How many comparisons each identity has in each bin, shape (size, levels)."""
    return np.bincount(identity * levels + bins, minlength=size * levels).reshape(size, levels).astype(np.int64)
