"""Data into curves: every step of comparisons and of small sets of embeddings, chosen thresholds of large ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.counting.pairs import GenuinePairs, impostor_pairs
from matchbound.counts.curve import CurveTally, SortedCurve, both_kinds, curve_of_tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings

if TYPE_CHECKING:
    import os

    from matchbound.counting.executors import Executor, Progress

EXACT_COMPARISONS = 3_000_000
"""All pairs of embeddings are scored and sorted up to this many; beyond, the curve has `CURVE_POINTS` thresholds."""
CURVE_POINTS = 1500


def curve_of_comparisons(source: Comparisons) -> SortedCurve:
    """The curve of scored comparisons, with every step."""
    size = source.n_identities
    genuine = source.genuine
    n_genuine = int(np.count_nonzero(genuine))
    both_kinds(n_genuine, len(source) - n_genuine)
    similarity = source.similarity
    order = np.argsort(-similarity)
    ranked = similarity[order]
    ends = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), ranked.size - 1)
    accepted = np.cumsum(genuine[order], dtype=np.int64)[ends]
    matched = ends + 1 - accepted
    with np.errstate(over="ignore"):  # above the largest float there is infinity
        strictest = np.nextafter(ranked[0], np.inf)
    thresholds = np.concatenate([[strictest], ranked[ends]])
    both = np.bincount(source.a, minlength=size) + np.bincount(source.b, minlength=size)
    g = np.bincount(source.a[genuine], minlength=size).astype(np.int64)
    return SortedCurve(
        identities=source.identities,
        distance=source.distance,
        thresholds=-thresholds if source.distance else thresholds,
        false_matches=np.concatenate([[0], matched]),
        false_nonmatches=np.concatenate([[n_genuine], n_genuine - accepted]),
        genuine_comparisons=g,
        impostor_comparisons=both - 2 * g,
        instances=source.instance_counts,
        a=source.a,
        b=source.b,
        row_similarity=similarity,
        order=order,
    )


def curve_thresholds(source: Embeddings, points: int = CURVE_POINTS, sample: int = 2_000_000) -> FloatArray:
    """Thresholds for the curve of a large set, strictest first, shape (about `points`,).

    Half follow the impostor scores of a random sample of pairs, evenly in the probit of FAR with as many again in
    the tail; the others follow genuine scores. Chosen from a sample, counted exactly: the sample decides only where
    the curve has points. The same data always give the same thresholds.
    """
    rng = np.random.default_rng(np.random.SeedSequence(len(source)))
    sign = -1.0 if source.distance else 1.0
    strangers = np.sort(sign * source.score_pairs(*impostor_pairs(source, sample, rng)))[::-1]
    kin = np.sort(sign * source.score_pairs(*GenuinePairs.of(source).sample(sample // 4, rng)))[::-1]
    both_kinds(kin.size, strangers.size)
    tail = np.unique(np.geomspace(1, strangers.size, points // 2).astype(np.int64)) - 1
    body = np.linspace(0, kin.size - 1, points // 4).astype(np.int64)
    top = max(float(strangers[0]), float(kin[0]))
    spread = np.linspace(float(strangers[0]), top, max(points // 8, 2))
    ends = [_least_similarity(source), np.nextafter(top, np.inf)]
    grid = np.unique(np.concatenate([strangers[tail], kin[body], spread, ends]))[::-1]
    return sign * grid


def _least_similarity(source: Embeddings, block: int = 65536) -> float:
    """A similarity that no pair goes below: the threshold at which everything matches."""
    if source.similarity == "cosine":
        return -1.001
    squares = 0.0
    for start in range(0, len(source), block):
        part = source.settled[start : start + block]
        squares = max(squares, float(np.einsum("ij,ij->i", part, part, dtype=np.float64).max()))
    return -1.001 * squares if source.similarity == "dot" else -2.002 * np.sqrt(squares)


def scored_pairs(source: Embeddings) -> Comparisons | None:
    """All pairs of a small set, scored; None for a set with too many to be kept."""
    rows = len(source)
    return source.comparisons() if rows * (rows - 1) // 2 <= EXACT_COMPARISONS else None


def curve_of_embeddings(
    source: Embeddings,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
) -> CurveTally:
    """The curve of all pairs: every step of a small set, about `CURVE_POINTS` points of a large one."""
    scored = scored_pairs(source)
    if scored is not None:
        return curve_of_comparisons(scored)
    from matchbound.counting.allpairs import tally_embeddings

    return curve_of_tally(
        tally_embeddings(
            source,
            curve_thresholds(source),
            workers=workers,
            executor=executor,
            progress=progress,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )
    )
