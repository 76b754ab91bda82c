"""The float32 matrices whose product orders the comparisons, and how far the product can be off.

The *oriented value* of a comparison is a number that grows with similarity: the cosine; the dot product
times a power of four; minus half the squared distance, likewise scaled. It is a product of a row of `left`
and a row of `right`; for distances −‖x−y‖²/2 = x·y − ‖x‖²/2 − ‖y‖²/2 is the product of (x, 1, −‖x‖²/2) and
(y, −‖y‖²/2, 1), with the data centred so that little cancels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.threads import in_slices
from matchbound.data.embeddings import Similarity
from matchbound.scratch import room_for

Float32Array = NDArray[np.float32]

UNIT32 = 2.0**-24
SAMPLE_ROWS = 2048
TWO_STEPS = 2.0**500


@dataclass(frozen=True, eq=False)
class Factors:
    """Sorted rows as float32 factors of the oriented values.

    - left, right, float32, shape (n, w)
    - reach, shape (n,): the length of each sorted row (after centring and scaling), at most 1.
    - scale: the power of two by which vectors were multiplied.
    """

    left: Float32Array = field(repr=False)
    right: Float32Array = field(repr=False)
    reach: FloatArray = field(repr=False)
    scale: float
    similarity: Similarity

    @property
    def dimension(self) -> int:
        """How many columns are coordinates."""
        return int(self.left.shape[1]) - (2 if self.similarity == "euclidean" else 0)

    def values(self, thresholds: FloatArray) -> FloatArray:
        """Thresholds among oriented values, from thresholds among oriented scores (distances negated)."""
        if self.similarity == "cosine":
            return thresholds.astype(np.float64)
        with np.errstate(over="ignore", under="ignore"):
            scaled = thresholds * self.scale
            if self.similarity == "dot":
                return np.asarray(scaled * self.scale, dtype=np.float64)
            return np.where(thresholds > 0, np.inf, -(scaled * scaled) / 2)

    @property
    def underflow(self) -> float:
        """What products below the smallest float64 can take from a score, among oriented values."""
        if self.similarity == "cosine":
            return 0.0
        return float((self.left.shape[1] + 8) * (2.0**-1074 * self.scale) * self.scale)

    def band(self, reach_rows: float, reach_cols: float) -> float:
        """How far a product of rows and columns of at most these lengths can be from the oriented value.

        The error of a float32 sum of w products, in any order and with or without fused multiplication, is
        at most γ_w·Σ|x_k·y_k| with γ_w = w·u/(1 − w·u), u = 2⁻²⁴ (Higham, Accuracy and Stability of Numerical
        Algorithms, 2002, §3.1); rounding the factors to float32 adds 2u + u². Cauchy–Schwarz bounds the sum of
        absolute values. The last terms cover the float64 arithmetic (of the score and of the threshold) and underflow.
        """
        return rounding_band(self.left.shape[1], self.similarity, reach_rows, reach_cols) + self.underflow

    def fine_band(self, reach_rows: float, reach_cols: float) -> float:
        """The same for a product of the float32 factors that is summed in float64, and maybe rounded to float32."""
        summing = float(self.left.shape[1] * 2.0**-50)
        return rounding_band(1, self.similarity, reach_rows, reach_cols) + summing + self.underflow


def rounding_band(width: int, similarity: Similarity, reach_rows: float, reach_cols: float) -> float:
    """See `Factors.band`."""
    size = reach_rows * reach_cols
    if similarity == "euclidean":
        size = (reach_rows + reach_cols) ** 2 / 2
    gamma = width * UNIT32 / (1 - width * UNIT32)
    band: float = 1.01 * (gamma + 2 * UNIT32) * size + width * 2.0**-120
    return band


def scorable(vectors: NDArray[Any]) -> NDArray[Any]:
    """The same in a type that kernels know: float16 becomes float32."""
    if vectors.dtype != np.float16:
        return vectors
    wide = room_for((vectors.shape[0], vectors.shape[1]))
    wide[:] = vectors
    return wide


def make_factors(
    vectors: NDArray[Any],
    order: IntArray,
    lengths: FloatArray,
    scales: FloatArray,
    similarity: Similarity,
    workers: int | None = 1,
) -> Factors:
    """The factors of the sorted rows; vectors (maybe a memory map), lengths and scales are in the order of the data."""
    from matchbound.kernels.exact import frozen
    from matchbound.kernels.factors import fill_rows, largest_offset

    n, d = vectors.shape
    extra = 2 if similarity == "euclidean" else 0
    left = room_for((n, d + extra))
    right = room_for((n, d + extra)) if extra else left
    reach = np.empty(n)
    centre = np.zeros(d)
    factor = np.ones(n)
    if similarity == "cosine":
        with np.errstate(over="ignore"):
            factor = scales / lengths
        tiny = np.flatnonzero(~np.isfinite(factor))
        if tiny.size:  # rows of denormal numbers take more than one float to scale
            vectors = np.array(vectors, dtype=np.float64)
            vectors[tiny] *= TWO_STEPS
            factor[tiny] = scales[tiny] / TWO_STEPS / lengths[tiny]
    raw = frozen(vectors)
    if extra and n:
        centre = np.mean(raw[:: max(1, n // SAMPLE_ROWS)], axis=0, dtype=np.float64)
    scale = 1.0
    if similarity != "cosine":
        largest = largest_offset(raw, 0, n, centre)
        scale = 2.0 ** min(-float(np.frexp(largest * np.sqrt(d))[1]), 1020.0) if largest > 0 else 1.0
        factor = np.full(n, scale)
    sorted_rows = frozen(order)
    in_slices(
        lambda start, stop: fill_rows(
            raw, sorted_rows[start:stop], factor, centre, left[start:stop], right[start:stop], reach[start:stop]
        ),
        n,
        workers,
    )  # fmt: skip
    if similarity == "cosine":
        reach[:] = 1.0 + 1e-9
    return Factors(left, right, reach, scale, similarity)
