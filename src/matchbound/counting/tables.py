"""Tally a table of scored comparisons that is in memory, at one or many thresholds."""

from __future__ import annotations

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.counts.cells import cells_of_rows, tally_of_cells
from matchbound.counts.tally import Tally
from matchbound.data.comparisons import Comparisons


def tally_comparisons(
    source: Comparisons,
    thresholds: FloatArray,
    *,
    pairs: bool = True,
    compared: bool = True,
) -> Tally:
    """Count errors by identity and by identity pair at each threshold.

    In addition to the tally itself, counting takes eight bytes per comparison (`matchbound.counts.cells`).

    Parameters
    ----------
    source
        The comparisons.
    thresholds : float64 array, shape (K,)
        In any order, in the units of the scores.
    pairs
        Keep n_ij at each threshold (and m_ij), as bootstraps that draw identities need.
    compared
        Keep m_ij in any case.
    """
    grid, place = np.unique(-thresholds if source.distance else thresholds, return_inverse=True)
    return tally_of_cells(
        cells_of_rows(source.a, source.b, source.similarity, grid, source.n_identities),
        source.identities, thresholds, place.reshape(-1), source.distance,
        instances=source.instance_counts, pairs=pairs, compared=compared,
    )  # fmt: skip
