"""Keep the best candidates of searches: exact scores for whatever a float product cannot rule out.

Columns stand for what is enrolled: a template each, or (where scores of a person's templates are averaged) a person
each. The exact score of a column is the mean of the scores of its templates, each summed in float64 in the one order
that `matchbound.kernels.exact` fixes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from matchbound.kernels.emit import INDEX, cgutils, splat
from matchbound.kernels.exact import COSINE, EUCLIDEAN


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
    """

    raw: Any
    lengths: Any
    scales: Any
    owner: Any
    order: Any
    start: Any
    kind: int


class Searched(NamedTuple):
    """The probes: raw, lengths and scales as in `Enrolled`; own : int64, shape (n,), the person enrolled or −1."""

    raw: Any
    lengths: Any
    scales: Any
    own: Any


def _emit_between(
    context: Any, builder: Any, signature: Any, args: Any, lanes: int, scaled: bool
) -> Any:  # fmt: skip
    """Σ_k of products or squared differences of a row of one array and a row of another, as `kernels.exact` sums."""
    left, right = (context.make_array(signature.args[k])(context, builder, args[k]).data for k in range(2))
    i, j, width = args[2:5]
    wide = ir.DoubleType()

    def pointer(rows: Any, row: Any, k: Any) -> Any:
        return builder.gep(rows, [builder.add(builder.mul(row, width), k)])

    def widened(value: Any, kind: Any) -> Any:
        return value if value.type == kind else builder.fpext(value, kind)

    def several(rows: Any, row: Any, k: Any) -> Any:
        place = builder.bitcast(pointer(rows, row, k), ir.VectorType(rows.type.pointee, lanes).as_pointer())
        return widened(builder.load(place, align=4), ir.VectorType(wide, lanes))

    def one(rows: Any, row: Any, k: Any) -> Any:
        return widened(builder.load(pointer(rows, row, k)), wide)

    def term(x: Any, y: Any) -> Any:
        if not scaled:
            apart = builder.fsub(x, y)
            return builder.fmul(apart, apart)

        def by(value: Any, scale: Any) -> Any:
            return builder.fmul(value, scale if value.type == scale.type else splat(builder, scale, value.type))

        return builder.fmul(by(x, args[5]), by(y, args[6]))

    sums = cgutils.alloca_once(builder, ir.VectorType(wide, lanes))
    builder.store(ir.Constant(ir.VectorType(wide, lanes), [0.0] * lanes), sums)
    step = ir.Constant(INDEX, lanes)
    whole = builder.sub(width, builder.srem(width, step))
    with cgutils.for_range_slice(builder, ir.Constant(INDEX, 0), whole, step, INDEX) as (k, _):
        builder.store(builder.fadd(builder.load(sums), term(several(left, i, k), several(right, j, k))), sums)
    first = cgutils.alloca_once(builder, wide)
    total = builder.load(sums)
    parts = [builder.extract_element(total, ir.Constant(ir.IntType(32), q)) for q in range(lanes)]
    builder.store(parts[0], first)
    with cgutils.for_range_slice(builder, whole, width, ir.Constant(INDEX, 1), INDEX) as (k, _):
        builder.store(builder.fadd(builder.load(first), term(one(left, i, k), one(right, j, k))), first)
    parts[0] = builder.load(first)
    while len(parts) > 1:
        parts = [builder.fadd(x, y) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


@intrinsic
def _emit_dot_between(
    typing: Any, left: Any, right: Any, i: Any, j: Any, width: Any, scale_i: Any, scale_j: Any
) -> Any:  # fmt: skip
    """Σ (x_k·scale_i)·(y_k·scale_j) of row i of one C-contiguous array and row j of another."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _emit_between(context, builder, signature, args, 8, True)

    whole, real = types.int64, types.float64
    return real(left, right, whole, whole, whole, real, real), generate


@intrinsic
def _emit_squares_between(typing: Any, left: Any, right: Any, i: Any, j: Any, width: Any) -> Any:
    """Σ (x_k − y_k)² of row i of one C-contiguous array and row j of another."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _emit_between(context, builder, signature, args, 4, False)

    whole = types.int64
    return types.float64(left, right, whole, whole, whole), generate


dot_between: Any = _emit_dot_between
squares_between: Any = _emit_squares_between


@numba.njit(nogil=True, cache=True)
def template_score(probes: Any, enrolled: Any, i: int, j: int) -> float:
    """The oriented score of probe i and template j (a row of `enrolled.raw`)."""
    width = probes.raw.shape[1]
    if enrolled.kind == EUCLIDEAN:
        return -float(np.sqrt(squares_between(probes.raw, enrolled.raw, i, j, width)))
    product: float = dot_between(probes.raw, enrolled.raw, i, j, width, probes.scales[i], enrolled.scales[j])
    if enrolled.kind == COSINE:
        product /= probes.lengths[i] * enrolled.lengths[j]
    return product


@numba.njit(nogil=True, cache=True)
def column_score(probes: Any, enrolled: Any, i: int, column: int) -> float:
    """The oriented score of probe i and a column: the mean over its templates, added up in their order."""
    begin, end = enrolled.start[column], enrolled.start[column + 1]
    total: float = template_score(probes, enrolled, i, enrolled.order[begin])
    if end == begin + 1:
        return total
    for at in range(begin + 1, end):
        total += template_score(probes, enrolled, i, enrolled.order[at])
    return total / float(end - begin)


@numba.njit(nogil=True, cache=True)
def mate_scores(probes: Any, enrolled: Any, first_column: Any, row0: int, out: Any) -> None:
    """The fused score of each probe from `row0` on with its own enrolment, −∞ without one.

    first_column : int64, shape (N + 1,)
        Where the columns of each enrolled person begin.
    """
    for r in range(out.shape[0]):
        own = probes.own[row0 + r]
        best = -np.inf
        if own >= 0:
            for column in range(first_column[own], first_column[own + 1]):
                score = column_score(probes, enrolled, row0 + r, column)
                best = score if score > best else best
        out[r] = best


@numba.njit(nogil=True, cache=True)
def value_of(score: float, scale: float, kind: int) -> float:
    """The oriented value (see `matchbound.counting.factors`) of an oriented score."""
    if kind == COSINE:
        return score
    scaled = score * scale
    if kind == EUCLIDEAN:
        return -scaled * scaled / 2.0
    return scaled * scale


@numba.njit(nogil=True, cache=True)
def insert(score: Any, holder: Any, value: float, owner: int, shared: bool) -> None:
    """Put a candidate into a list in descending order, behind those with the same score; the last one falls out.

    score, holder : shape (k,)
    shared : whether the person may have other columns, of which only the best counts.
    """
    last = score.shape[0] - 1
    if value <= score[last]:
        return
    if shared:
        for at in range(last + 1):
            if holder[at] == owner:
                if score[at] >= value:
                    return
                last = at
                break
    while last > 0 and score[last - 1] < value:
        score[last] = score[last - 1]
        holder[last] = holder[last - 1]
        last -= 1
    score[last] = value
    holder[last] = owner


@numba.njit(nogil=True, cache=True)
def keep_best(
    product: Any, band: float, scale: float, probes: Any, enrolled: Any, row0: int, col0: int, score: Any, holder: Any
) -> None:
    """Add the candidates of some columns to the lists of some probes.

    product : float32, shape (B, c)
        Oriented values of probes row0.. and columns col0.., each at most `band` below the exact one.
    score, holder : shape (B, k)
        The lists so far; −∞ and −1 where they are not full.
    """
    rows, columns = product.shape
    last = score.shape[1] - 1
    shared = enrolled.owner.shape[0] > 0 and enrolled.owner[-1] + 1 < enrolled.owner.shape[0]
    for r in range(rows):
        i = row0 + r
        own = probes.own[i]
        worst = score[r, last]
        cut = np.float32(-np.inf) if worst == -np.inf else _below(value_of(worst, scale, enrolled.kind) - band)
        for c in range(columns):
            if product[r, c] < cut:
                continue
            owner = enrolled.owner[col0 + c]
            if owner == own:
                continue
            insert(score[r], holder[r], column_score(probes, enrolled, i, col0 + c), owner, shared)
            if score[r, last] > worst:
                worst = score[r, last]
                cut = _below(value_of(worst, scale, enrolled.kind) - band)


@numba.njit(nogil=True, cache=True)
def _below(x: float) -> Any:
    """A float32 that is at most x."""
    near = np.float32(x)
    if near > x:
        near = np.nextafter(near, np.float32(-np.inf))
    return near


@numba.njit(nogil=True, cache=True)
def list_hits(
    product: Any, band: float, scale: float, probes: Any, enrolled: Any, row0: int, col0: int, least: Any, strict: bool,
    out: Any, found: int,
) -> int:  # fmt: skip
    """Columns that reach the least score of each probe, written as (probe, column) into `out`; how many there are.

    least : float64, shape (B,)
        Oriented scores that a hit reaches, or exceeds where `strict`.
    out : int64, shape (H, 2)
        What does not fit is counted and not written; `found` is where to begin.
    """
    rows, columns = product.shape
    for r in range(rows):
        i = row0 + r
        own = probes.own[i]
        cut = np.float32(-np.inf)
        if least[r] > -np.inf:
            cut = _below(value_of(least[r], scale, enrolled.kind) - band)
        for c in range(columns):
            if product[r, c] < cut or enrolled.owner[col0 + c] == own:
                continue
            score = column_score(probes, enrolled, i, col0 + c)
            if score > least[r] or (score == least[r] and not strict):
                if found < out.shape[0]:
                    out[found, 0] = i
                    out[found, 1] = enrolled.owner[col0 + c]
                found += 1
    return found
