"""Bootstrap curves: draw identities, walk the sorted comparisons with their weights, read the curve.

Vertical averaging: each replicate gives FRR at the same FARs. Read by the same rule as the curve of the data: FRR at
the most lenient threshold whose FAR is at most the target. Replicates are made in blocks, seeded by block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.counts.curve import SortedCurve
from matchbound.stats.resampling import Scheme, copies_compared, in_blocks, instance_counts, usable_draws

CURVE_BOOTSTRAPS = ("vertex", "double-or-nothing", "subsets", "two-level")

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class CurveReplicates:
    """B replicates: FRR at L FARs, shape (B, L), FAR at M FRRs, shape (B, M), EER and AUC, shape (B,)."""

    frr: FloatArray
    far: FloatArray
    eer: FloatArray
    auc: FloatArray


@dataclass(frozen=True, eq=False)
class Draw:
    """Weights of one block of replicates.

    - weights, shape (B, G)
    - extra, shape (B,): what each impostor comparison weighs on top: copies of one identity (the paper's swap).
    - additive: whether an impostor comparison weighs W_i + W_j instead of W_i·W_j.
    - rng: for draws within identities.
    """

    weights: FloatArray
    extra: FloatArray
    additive: bool
    rng: np.random.Generator


# What makes curves of a block of draws and reads them.
Reader = Callable[[Draw], CurveReplicates]


def curve_replicates(
    curve: SortedCurve, scheme: Scheme, n_resamples: int, seed: int, read: Reader, workers: int = 1
) -> CurveReplicates:
    """Bootstrap curves, read by `step_reader` or by that of a smooth model."""
    parts = curve_draws(curve, scheme, n_resamples, seed, read, workers)
    columns = ([getattr(part, name) for part in parts] for name in ("frr", "far", "eer", "auc"))
    return CurveReplicates(*map(np.concatenate, columns))


def curve_draws(
    curve: SortedCurve, scheme: Scheme, n_resamples: int, seed: int, work: Callable[[Draw], T], workers: int
) -> list[T]:
    """Run `work` on each block of draws, in order; a draw that leaves FAR or FRR without comparisons is drawn again."""
    copies = self_comparisons(curve) if scheme.method == "vertex" else np.zeros(curve.n_identities)
    additive, size = scheme.method in ("subsets", "two-level"), curve.n_identities
    _ = (curve.compact, curve.owner, curve.genuine_matches, curve.genuine_ranks, curve.pairs)  # before threads ask

    def read(weights: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, BoolArray]:
        extra = (weights * (weights - 1.0)) @ copies / (2.0 * curve.n_impostor)
        totals = impostor_totals(curve, Draw(weights, extra, additive, rng))
        usable = (totals > 0.0) & (weights @ curve.genuine_comparisons > 0.0)
        return np.column_stack([weights, extra]), usable

    def one(rows: int, rng: np.random.Generator) -> T:
        drawn = usable_draws(scheme, size, rows, rng, read, "Use method='influence'")
        return work(Draw(np.ascontiguousarray(drawn[:, :size]), drawn[:, size].copy(), additive, rng))

    return in_blocks(one, n_resamples, seed, workers)


def self_comparisons(curve: SortedCurve) -> FloatArray:
    """Comparisons that two copies of an identity stand for, shape (G,)."""
    sizes = instance_counts(curve.instances, curve.genuine_comparisons)
    return copies_compared(curve.pairs[1], curve.impostor_comparisons, sizes)


def impostor_totals(curve: SortedCurve, draw: Draw, value: FloatArray | None = None) -> FloatArray:
    """Σ of the weights of all impostor comparisons, times a value of each (strictest first) if given; shape (B,)."""
    from matchbound.kernels.sweep import quadratic_forms

    size, (number, table) = curve.n_identities, curve.pairs
    if draw.additive:
        if value is None:
            return draw.weights @ curve.impostor_comparisons.astype(np.float64)
        return np.asarray(
            draw.weights @ (np.bincount(curve.first, value, size) + np.bincount(curve.second, value, size))
        )
    amount = table.count if value is None else np.bincount(number, value, table.count.size)
    totals = quadratic_forms(draw.weights, table.first, table.second, amount) / 2.0
    return np.asarray(totals + draw.extra * float(curve.n_impostor if value is None else value.sum()))


def step_reader(curve: SortedCurve, scheme: Scheme, far_targets: FloatArray, frr_targets: FloatArray) -> Reader:
    """Walk the curve of each replicate, and read it at FAR and FRR targets, shapes (L,) and (M,)."""
    from matchbound.kernels.sweep import cumulate_pairs, curve_area, draw_within, read_curve

    groups = [_members(curve, impostor) for impostor in (True, False)] if scheme.method == "two-level" else []

    def read(draw: Draw) -> CurveReplicates:
        rows = draw.weights.shape[0]
        frr, far = np.empty((rows, far_targets.size)), np.empty((rows, frr_targets.size))
        eer, auc = np.empty(rows), np.empty(rows)
        matched, accepted = np.zeros(curve.n_impostor + 1), np.zeros(curve.n_genuine + 1)
        seeds = draw.rng.integers(0, 2**64, (rows, len(groups)), dtype=np.uint64)
        for b in range(rows):
            weight, extra = draw.weights[b], float(draw.extra[b])
            for (starts, members), seed, out in zip(groups, seeds[b], (matched, accepted), strict=False):
                counts = np.zeros(out.size - 1, dtype=np.int32)
                draw_within(weight, starts, members, seed, counts)
                np.cumsum(counts, out=out[1:])
            if not groups:
                cumulate_pairs(*curve.compact, weight, draw.additive, matched)
                np.cumsum(weight[curve.owner], out=accepted[1:])
            steps, places = (curve.false_matches, curve.genuine_matches), (frr[b], far[b])
            eer[b] = read_curve(matched, extra, accepted, *steps, (far_targets, frr_targets), places)
            auc[b] = curve_area(matched, extra, accepted, *curve.genuine_ranks)
        return CurveReplicates(frr, far, eer, auc)

    return read


def _members(curve: SortedCurve, impostor: bool) -> tuple[IntArray, NDArray[Any]]:
    """(starts, members): the ranks of the comparisons of each identity, one after another."""
    size = curve.n_identities
    owners = np.concatenate([curve.first, curve.second]) if impostor else curve.owner
    ranks = np.tile(np.arange(curve.n_impostor), 2) if impostor else np.arange(curve.n_genuine)
    order = np.argsort(owners, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=size))])
    return starts.astype(np.int64), ranks[order].astype(np.int32 if ranks.size < 2**31 else np.int64)
