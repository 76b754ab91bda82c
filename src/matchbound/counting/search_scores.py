"""What rules candidates out: products of probes and pieces of a gallery, as floats or as bytes.

The oriented value of a probe and a column is as in `matchbound.counting.factors`. Its product in float32 is at most
`band` away. Where the processor multiplies bytes, probes and columns are rounded to whole multiples of steps s and t,
and Cauchy–Schwarz bounds what that loses: with x = s·q + e and y = t·p + f, x·y = s·t·q·p + e·(t·p) + x·f. With
h = ‖x‖²/2 for distances and 0 otherwise, u_x = h_x − max‖t·p‖·‖e‖ and u_y = h_y − max‖x‖·‖f‖, the value reaches v only
if q·p − ⌊u_y/(s·t)⌋ ≥ ⌊(v + u_x)/(s·t)⌋, a test on whole numbers.

A gallery is not copied: floats are made piece by piece, again for each block of probes; bytes are kept, a quarter of
float32.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.factors import rounding_band
from matchbound.counting.screen import best_kind, best_step
from matchbound.counting.threads import in_slices
from matchbound.data.embeddings import BLOCK_ROWS, Similarity
from matchbound.scratch import room_for

if TYPE_CHECKING:
    from matchbound.kernels.screen import Screen
    from matchbound.kernels.search import Enrolled, Searched

Float32Array = NDArray[np.float32]
PIECE_COLUMNS = 1024
SAMPLE_COLUMNS = 1024
FEWEST_FOR_BYTES = 1024
MOST_DIMENSIONS = 8192
LARGEST = 2.0**28
REACH = 1.0 + 1e-6
"""No row is longer than this, after scaling and rounding to float32."""


class Scores:
    """Products of probes and pieces of a gallery, and how far they can be below the exact values.

    Parameters
    ----------
    gallery, probes : float32 or float64 arrays, shapes (m, d) and (n, d)
    owner : int64 array, shape (m,)
        The enrolled person of each template, 0..size − 1.
    own : int64 array, shape (n,)
        The enrolled person whom each probe shows, or −1.
    mean
        Whether scores of several templates are averaged: columns are then people, else templates.
    """

    def __init__(
        self,
        gallery: NDArray[Any],
        probes: NDArray[Any],
        owner: IntArray,
        own: IntArray,
        size: int,
        similarity: Similarity,
        mean: bool,
    ) -> None:
        from matchbound.kernels.exact import CODES, frozen, row_lengths
        from matchbound.kernels.search import Enrolled, Searched

        kind = CODES[similarity]
        order = np.argsort(owner, kind="stable")
        sorted_owner = owner[order]
        begins = np.flatnonzero(np.append(True, sorted_owner[1:] != sorted_owner[:-1]))
        start = np.append(begins if mean else np.arange(order.size), order.size).astype(np.int64)
        people = sorted_owner[begins] if mean else sorted_owner
        self.similarity = similarity
        self.columns = int(people.size)
        lengths, scales = row_lengths(gallery, kind)
        self.enrolled: Enrolled = Enrolled(
            frozen(gallery), frozen(lengths), frozen(scales), frozen(people), frozen(order), frozen(start), kind,
            people.size > begins.size,
        )  # fmt: skip
        lengths, scales = row_lengths(probes, kind)
        self.probes: Searched = Searched(frozen(probes), frozen(lengths), frozen(scales), frozen(own))
        self.first_column = np.searchsorted(people, np.arange(size + 1)).astype(np.int64)
        self.centre = np.zeros(gallery.shape[1])
        self.scale = 1.0
        if similarity == "euclidean":
            step = max(1, gallery.shape[0] // 2048)
            self.centre = np.mean(gallery[::step], axis=0, dtype=np.float64)
        if similarity != "cosine":
            largest = max(_largest(gallery, self.centre), _largest(probes, self.centre))
            length = largest * np.sqrt(gallery.shape[1])
            self.scale = 2.0 ** min(-float(np.frexp(length)[1]), 1020.0) if largest > 0.0 else 1.0

    @cached_property
    def band(self) -> float:
        """How far a product can be from the oriented value (`matchbound.counting.factors.Factors.band`)."""
        width = self.enrolled.raw.shape[1] + (2 if self.similarity == "euclidean" else 0)
        under = 0.0 if self.similarity == "cosine" else float((width + 8) * (2.0**-1074 * self.scale) * self.scale)
        reach = 1.0 + 1e-9
        return 1.01 * rounding_band(width, self.similarity, reach, reach) + under

    def rows(self, start: int, stop: int) -> Float32Array:
        """Factors of probes, float32, shape (b, w)."""
        probes, part = self.probes, slice(start, stop)
        return self._finished(self._unit(probes.raw[part], probes.lengths[part], probes.scales[part]), False)

    def piece(self, columns: IntArray | slice) -> Float32Array:
        """Factors of columns, float32, shape (c, w)."""
        enrolled = self.enrolled
        begins, ends = enrolled.start[:-1][columns], enrolled.start[1:][columns]
        if bool(np.all(ends - begins == 1)):
            at = enrolled.order[begins]
            place: Any = at
            if at.size and int(at[-1] - at[0]) == at.size - 1 and bool(np.all(at[1:] > at[:-1])):
                place = slice(int(at[0]), int(at[-1]) + 1)
            return self._finished(
                self._unit(enrolled.raw[place], enrolled.lengths[place], enrolled.scales[place]), True
            )
        counts = ends - begins
        firsts = np.cumsum(counts) - counts
        at = enrolled.order[np.repeat(begins - firsts, counts) + np.arange(int(counts.sum()))]
        unit = self._unit(enrolled.raw[at], enrolled.lengths[at], enrolled.scales[at])
        return self._finished(np.add.reduceat(unit, firsts, axis=0) / counts[:, None], True)

    def product(self, rows: Float32Array, start: int, stop: int) -> Float32Array:
        """Oriented values of some probes and columns start..stop − 1, flat, (stop − start) per row."""
        product: Float32Array = np.dot(rows, self.piece(slice(start, stop)).T)
        return product.reshape(-1)

    @cached_property
    def _sample(self) -> Float32Array:
        """Columns at even distances."""
        return self.piece(np.linspace(0, self.columns - 1, min(SAMPLE_COLUMNS, self.columns)).astype(np.int64))

    def guess(self, rows: Float32Array, people: float) -> FloatArray:
        """For each probe an oriented value that about so many columns reach; −∞ in small galleries."""
        from matchbound.kernels.search import nth_largest

        sample = self._sample
        place = int(np.ceil(people * sample.shape[0] / self.columns))
        if self.columns < 4 * SAMPLE_COLUMNS or place > sample.shape[0] // 4:
            return np.full(rows.shape[0], -np.inf)
        out = np.empty(rows.shape[0])
        nth_largest(np.dot(rows, sample.T), max(place, 1), out)
        return out

    @cached_property
    def bytes(self) -> Bytes | None:
        """The columns as bytes, where this processor multiplies them and the gallery is large enough."""
        d = self.enrolled.raw.shape[1]
        if self.columns < FEWEST_FOR_BYTES or not 4 <= d <= MOST_DIMENSIONS or best_kind() is None:
            return None
        return make_bytes(self)

    def _unit(self, rows: NDArray[Any], lengths: FloatArray, scales: FloatArray) -> FloatArray:
        wide = np.asarray(rows, dtype=np.float64)
        if self.similarity == "cosine":
            return np.asarray(wide * (scales[:, None] / lengths[:, None]))
        return np.asarray((wide - self.centre) * self.scale)

    def _finished(self, rows: FloatArray, right: bool) -> Float32Array:
        """For distances −‖x−y‖²/2 is the product of (x, 1, −‖x‖²/2) and (y, −‖y‖²/2, 1)."""
        if self.similarity != "euclidean":
            return rows.astype(np.float32)
        half = -0.5 * np.einsum("ij,ij->i", rows, rows)
        ends = [half, np.ones(half.size)] if right else [np.ones(half.size), half]
        return np.column_stack([rows, *ends]).astype(np.float32)


def _largest(rows: NDArray[Any], centre: FloatArray) -> float:
    largest = 0.0
    for start in range(0, rows.shape[0], BLOCK_ROWS):
        part = np.abs(np.asarray(rows[start : start + BLOCK_ROWS], dtype=np.float64) - centre)
        largest = max(largest, float(part.max(initial=0.0)))
    return largest


@dataclass(frozen=True, eq=False)
class Bytes:
    """Columns as bytes, for screens of probes.

    kind : which instructions
    panels : uint8, flat; starts : int32, flat
        See `matchbound.kernels.screen.Screen`.
    step, row_step : float
        t and s, the steps of columns and of probes.
    longest : float
        The largest ‖t·p‖ of all columns.
    steps : int
        Words of four bytes per row.
    """

    kind: type[Screen]
    panels: NDArray[np.uint8] = field(repr=False)
    starts: NDArray[np.int32] = field(repr=False)
    step: float
    row_step: float
    longest: float
    steps: int

    @property
    def unit(self) -> float:
        """What one unit of a sum is worth among oriented values."""
        return self.step * self.row_step

    def screen(self, rows: Float32Array, d: int) -> tuple[Screen, FloatArray, IntArray]:
        """A screen of probes with cuts still to be set; u in units, rounded down, and what is added to cuts."""
        from matchbound.kernels.screen import BIAS, SAFE_CHUNK, round_rows, sum_chunks

        n, kind = rows.shape[0], self.kind
        whole = np.empty((n, 4 * self.steps), dtype=np.int8)
        error, length, square = np.empty(n), np.empty(n), np.empty(n)
        round_rows(np.ascontiguousarray(rows[:, :d]), self.row_step, kind.most, whole, error, length, square)
        offset = -max(self.longest, REACH) * error
        if rows.shape[1] > d:
            offset = offset - rows[:, d + 1].astype(np.float64)
        begins, chunk = np.empty(0, dtype=np.int16), self.steps
        if kind.wraps:
            chunk = min(SAFE_CHUNK, self.steps)
            sums = np.empty((n, -(-self.steps // chunk), 2), dtype=np.int64)
            sum_chunks(whole, 0, n, chunk, sums, np.empty_like(sums))
            begins = (-128 * sums - BIAS).astype(np.int16).reshape(-1)
            shift = np.full(n, -2 * BIAS * sums.shape[1])
        else:
            shift = kind.zero * whole.sum(axis=1, dtype=np.int64)
        cuts = np.empty(n, dtype=np.int32)
        made = kind(
            whole.reshape(-1), self.panels, self.starts, cuts, begins, self.steps, chunk, kind.lanes * kind.vectors
        )
        return made, offset / self.unit, shift


def make_bytes(scores: Scores, workers: int | None = None) -> Bytes | None:
    """The columns of a gallery as bytes; None where the numbers would not fit 32 bits."""
    from matchbound.kernels.screen import pack_panels, round_rows

    kind = best_kind()
    d, n = scores.enrolled.raw.shape[1], scores.columns
    sample = np.ascontiguousarray(scores._sample[:, :d])
    if kind is None or not sample.any():
        return None
    step = best_step(sample, 127)
    row_step = step if kind.most == 127 else best_step(sample, kind.most)
    words, width = -(-d // 4), kind.lanes * kind.vectors
    panels = room_for((-(-n // width), words, width, 4), np.uint8)
    error, length, square, half = np.empty(n), np.empty(n), np.empty(n), np.zeros(n)
    count = PIECE_COLUMNS // width

    def fill(start: int, stop: int) -> None:
        for first in range(start, stop):
            part = slice(first * PIECE_COLUMNS, min((first + 1) * PIECE_COLUMNS, n))
            rows = scores.piece(part)
            whole = np.empty((rows.shape[0], 4 * words), dtype=np.int8)
            round_rows(np.ascontiguousarray(rows[:, :d]), step, 127, whole, error[part], length[part], square[part])
            if rows.shape[1] > d:
                half[part] = -rows[:, d].astype(np.float64)
            some = panels[first * count : first * count + -(-rows.shape[0] // width)]
            pack_panels(whole, 0, some.shape[0], kind.zero, some)

    in_slices(fill, -(-n // PIECE_COLUMNS), workers, 1)
    offset = (half - REACH * error) / (step * row_step)
    if not np.abs(offset).max() < LARGEST:
        return None
    starts = np.full(panels.shape[0] * width, -(2**30), dtype=np.int32)
    starts[:n] = -np.floor(offset).astype(np.int64)
    return Bytes(kind, panels.reshape(-1), starts, step, row_step, float(length.max()) * (1 + 1e-6), words)
