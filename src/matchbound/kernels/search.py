"""Keep the best candidates of searches: exact scores for whatever products of bytes cannot rule out.

Columns stand for what is enrolled: a template each, or (where scores of a person's templates are averaged) a person
each. The exact score of a column is the mean of the scores of its templates, each summed in float64 in the one order
that `matchbound.kernels.exact` fixes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchbound.kernels.bits import list_bits
from matchbound.kernels.compiling import compiled, inlined
from matchbound.kernels.exact import COSINE, EUCLIDEAN, dot64, squares64


class Enrolled(NamedTuple):
    """What is enrolled, as the kernels see it.

    raw : float32 or float64, shape (m, d)
    lengths, scales : float64, shape (m,)
        As `matchbound.kernels.exact.row_lengths` gives them.
    owner : int64, shape (C,)
        The enrolled person of each column, ascending.
    order : int64, shape (m,)
        Rows of `raw`, by column.
    start : int64, shape (C + 1,)
        Where the templates of each column begin in `order`.
    kind : int
        0, 1, 2 for cosine, dot product, Euclidean distance.
    shared : bool
        Whether a person has several columns, of which only the best counts.
    """

    raw: Any
    lengths: Any
    scales: Any
    owner: Any
    order: Any
    start: Any
    kind: int
    shared: bool


class Searched(NamedTuple):
    """The probes: raw, lengths and scales as in `Enrolled`; own : int64, shape (n,), the person enrolled or −1."""

    raw: Any
    lengths: Any
    scales: Any
    own: Any


class Columns(NamedTuple):
    """Some columns, and which of them are worth a score.

    bits : uint64, flat. One per probe and column.
    stride : int. Bits per probe.
    first, width : int. The first column, and how many there are.
    band, scale : float. How far rounding can put oriented values off; see `matchbound.counting.factors`.
    """

    bits: Any
    stride: int
    first: int
    width: int
    band: float
    scale: float


class Lists(NamedTuple):
    """Candidates of some probes.

    score, holder : shape (B, k)
        The lists so far; −∞ and −1 where they are not full.
    least : float64, shape (B,)
        Candidates below this oriented value are left out.
    """

    score: Any
    holder: Any
    least: Any


@inlined
def scaled_row(probes: Any, i: int, x: Any) -> None:
    """Probe i times its scale, in float64, as row 0 of x, shape (1, d)."""
    for k in range(x.shape[1]):
        x[0, k] = np.float64(probes.raw[i, k]) * probes.scales[i]


@inlined
def column_score(x: Any, length: float, enrolled: Any, column: int) -> float:
    """The oriented score of a probe (`scaled_row`) and a column: the mean over its templates, added in their order."""
    begin, end = enrolled.start[column], enrolled.start[column + 1]
    width = x.shape[1]
    total = 0.0
    for at in range(begin, end):
        j = enrolled.order[at]
        if enrolled.kind == EUCLIDEAN:
            score = -np.sqrt(squares64(x, enrolled.raw, 0, j, width))
        else:
            if enrolled.scales[j] == 1.0:  # what is multiplied by one stays as it is
                score = dot64(x, enrolled.raw, 0, j, width, 1.0, 1.0)
            else:
                score = dot64(x, enrolled.raw, 0, j, width, 1.0, enrolled.scales[j])
            if enrolled.kind == COSINE:
                score /= length * enrolled.lengths[j]
        total = score if at == begin else total + score
    return total if end == begin + 1 else total / float(end - begin)


@compiled()
def mate_scores(probes: Any, enrolled: Any, first_column: Any, row0: int, out: Any) -> None:
    """The fused score of each probe from `row0` on with its own enrolment, −∞ without one.

    first_column : int64, shape (N + 1,)
        Where the columns of each enrolled person begin.
    """
    x = np.empty((1, probes.raw.shape[1]))
    for r in range(out.shape[0]):
        own = probes.own[row0 + r]
        best = -np.inf
        if own >= 0:
            scaled_row(probes, row0 + r, x)
            for column in range(first_column[own], first_column[own + 1]):
                score = column_score(x, probes.lengths[row0 + r], enrolled, column)
                best = score if score > best else best
        out[r] = best


@inlined
def value_of(score: float, scale: float, kind: int) -> float:
    """The oriented value (see `matchbound.counting.factors`) of an oriented score."""
    if kind == COSINE:
        return score
    scaled = score * scale
    if kind == EUCLIDEAN:
        return -scaled * scaled / 2.0
    return scaled * scale


@inlined
def insert(score: Any, holder: Any, r: int, value: float, owner: int, shared: bool) -> None:
    """Put a candidate into list r in descending order, behind those with the same score; the last one falls out.

    score, holder : shape (B, k)
    shared : whether the person may have other columns, of which only the best counts.
    """
    last = score.shape[1] - 1
    if value <= score[r, last]:
        return
    if shared:
        for at in range(last + 1):
            if holder[r, at] == owner:
                if score[r, at] >= value:
                    return
                last = at
                break
    while last > 0 and score[r, last - 1] < value:
        score[r, last] = score[r, last - 1]
        holder[r, last] = holder[r, last - 1]
        last -= 1
    score[r, last] = value
    holder[r, last] = owner


@compiled()
def set_cuts(lists: Any, columns: Any, kind: int, offset: Any, shift: Any, per_unit: float, cuts: Any) -> None:
    """The whole numbers that products of bytes must reach, one per row; see `matchbound.counting.search`.

    offset : float64, shape (B,), u in units; shift : int64, shape (B,), added to the cuts; per_unit : 1/(s·t);
    cuts : int32, shape (B,)
    """
    score, least = lists.score, lists.least
    last = score.shape[1] - 1
    for r in range(cuts.shape[0]):
        value = least[r]
        if score[r, last] > -np.inf:
            value = max(value_of(score[r, last], columns.scale, kind), value)
        value -= columns.band
        cut = np.floor(value * per_unit + offset[r]) - 1.0 if value > -np.inf else -(2.0**29)
        cuts[r] = np.int32(min(max(cut, -(2.0**29)), 2.0**29) + shift[r])


@compiled()
def keep_best(columns: Any, probes: Any, enrolled: Any, at: Any, lists: Any) -> None:
    """Add the candidates of some columns to the lists of the probes `at`, shape (B,); Columns, Lists."""
    width, col0, scale = columns.width, columns.first, columns.scale
    score, holder, least = lists.score, lists.holder, lists.least
    found = np.empty(width + 4, dtype=np.int64)
    values = np.empty(width + 4)
    kind, last = enrolled.kind, score.shape[1] - 1
    x = np.empty((1, probes.raw.shape[1]))
    for r in range(score.shape[0]):
        i = at[r]
        own, length = probes.own[i], probes.lengths[i]
        scaled_row(probes, i, x)
        count = 0
        for c in range(0, width, 64):
            word = columns.bits[(r * columns.stride + c) >> 6]
            if width - c < 64:
                word &= (np.uint64(1) << np.uint64(width - c)) - np.uint64(1)
            count = list_bits(word, c, count, found)
        for k in range(count):  # all of them first: nothing in one score waits for another
            values[k] = column_score(x, length, enrolled, col0 + found[k])
        for k in range(count):
            owner = enrolled.owner[col0 + found[k]]
            if values[k] > score[r, last] and owner != own and value_of(values[k], scale, kind) >= least[r]:
                insert(score, holder, r, values[k], owner, enrolled.shared)


@compiled()
def every_score(probes: Any, enrolled: Any, at: Any, out: Any) -> None:
    """The fused score of the probes `at`, shape (B,), with each enrolled person, shape (B, N); −∞ with their own."""
    x = np.empty((1, probes.raw.shape[1]))
    for r in range(at.shape[0]):
        own, length = probes.own[at[r]], probes.lengths[at[r]]
        scaled_row(probes, at[r], x)
        out[r] = -np.inf
        for column in range(enrolled.owner.shape[0]):
            person = enrolled.owner[column]
            if person != own:
                out[r, person] = max(out[r, person], column_score(x, length, enrolled, column))
