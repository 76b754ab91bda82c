"""Quadratic forms of resampling weights on a sparse table of identity pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.kernels.compiling import compiled

REPLICATES = 128
EXACT32 = 2.0**24


def quadratic_forms(weights: NDArray[Any], first: IntArray, second: IntArray, count: IntArray) -> FloatArray:
    """Σ_{i≠j} W_i·W_j·n_ij over ordered pairs of identities, for each row of weights.

    Parameters
    ----------
    weights : shape (B, G)
        Resampling weights of the identities, one row per replicate.
    first, second, count : int64 arrays, shape (P,)
        n_ij of unordered pairs; fastest when sorted by `first`, as a `PairTable` is.

    Returns
    -------
    forms : float64 array, shape (B,)
        Exact where the weights are whole numbers and the form is below 2**53.

    Notes
    -----
    Replicates are the inner loop: weights are transposed, 128 replicates at a time, so that each pair costs
    one multiplication and addition of short vectors. These are float32 where that is exact: whole weights,
    and partial sums that are put away in float64 before they reach 2²⁴.
    """
    n_replicates = weights.shape[0]
    forms = np.zeros(n_replicates)
    if not first.size:
        return forms
    largest_count = float(count.max())
    for start in range(0, n_replicates, REPLICATES):
        rows = np.asarray(weights[start : start + REPLICATES])
        largest = float(np.abs(rows).max())
        whole = rows.dtype.kind in "iub" or bool((rows == np.rint(rows)).all())
        short = whole and largest * largest_count < EXACT32
        columns = np.ascontiguousarray(rows.T, dtype=np.float32 if short else np.float64)
        room = EXACT32 / max(largest, 1.0) if short else np.inf
        _add_forms(columns, first, second, count, room, forms[start : start + REPLICATES])
    return forms


@compiled()
def _add_forms(columns: Any, first: Any, second: Any, count: Any, room: float, forms: Any) -> None:
    """forms[b] += 2·Σ_p count·W_first·W_second; `room` is the sum of counts that a partial sum can hold exactly."""
    n_pairs = first.shape[0]
    n_replicates = columns.shape[1]
    running = np.zeros(n_replicates, dtype=columns.dtype)
    p = 0
    while p < n_pairs:
        i = first[p]
        held = 0.0
        while p < n_pairs and first[p] == i:
            n = count[p]
            if held > 0.0 and held + n > room:
                break
            held += n
            j = second[p]
            factor = running.dtype.type(n)
            for b in range(n_replicates):
                running[b] += factor * columns[j, b]
            p += 1
        for b in range(n_replicates):
            forms[b] += 2.0 * np.float64(running[b]) * np.float64(columns[i, b])
            running[b] = 0
