"""Histograms of the scores behind a curve, and the points of a curve that a picture shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.curve import CurveTally, SortedCurve
from matchbound.counts.tally import Tally

OUTSIDE = 2e-4
"""Share of a kind of comparison that a histogram may leave out at either end."""
OUTPOST = 0.4
"""A score at an end that lies farther from the next than this share of the whole range is left out of a picture."""
MANY = 20
"""Scores that differ, below which none is far from all others."""


@dataclass(frozen=True, eq=False)
class Histogram:
    """Scores by kind.

    edges : float64 array, shape (B + 1,)
        Increasing, in the units of the scores. Bins may differ in width.
    genuine, impostor : int64 arrays, shape (B,)
    outside : int
        Comparisons beyond the edges.
    """

    edges: FloatArray
    genuine: IntArray
    impostor: IntArray
    outside: int


def without_outposts(scores: FloatArray) -> tuple[int, int]:
    """First and last of increasing scores to show: a single one far from all others is left out.

    Such is the score that stands for pairs that were never compared.
    """
    first, last = 0, scores.size - 1
    whole = float(scores[-1] - scores[0])
    if scores.size >= MANY and whole > 0.0:
        first += int(scores[1] - scores[0] > OUTPOST * whole)
        last -= int(scores[-1] - scores[-2] > OUTPOST * whole)
    return first, last


def histogram_edges(curve: CurveTally, bins: int = 64) -> FloatArray:
    """Even edges, in the units of the scores, that leave out at most `OUTSIDE` of either kind at either end.

    Two where all scores are alike.
    """
    low, high = _ends(curve, *_below(curve))[1]
    if high - low <= 1e-9 * max(abs(high), 1e-300):  # one score, or scores all alike
        reach = max(abs(high), 1.0) / 2.0
        return np.array([high - reach, high + reach])
    return np.linspace(low, high, bins + 1)


def score_histogram(curve: CurveTally, bins: int = 64, count: Callable[[FloatArray], Tally] | None = None) -> Histogram:
    """Exact counts of scores between edges.

    A curve with every step is counted between even edges. Of a curve with some points, the comparisons are counted
    once more; without `count`, edges are at the points nearest to even ones, because only there the counts are known.

    Parameters
    ----------
    count
        Counts the comparisons at thresholds.
    """
    score, below, total = _below(curve)
    edges = histogram_edges(curve, bins)
    if edges.size == 2 and bins > 1:
        return Histogram(edges, total[0], total[1], 0)
    if isinstance(curve, SortedCurve):
        right = np.searchsorted(score, edges, side="right") - 1
        place = right if curve.distance else np.searchsorted(score, edges, side="left")
        place[0], place[-1] = _ends(curve, score, below, total)[0]
    elif count is not None:
        tally = count(edges)
        matched = np.stack([curve.n_genuine - tally.genuine.errors.sum(axis=1), tally.impostor.errors.sum(axis=1) // 2])
        counts = np.diff(matched if curve.distance else total - matched, axis=1)
        return Histogram(edges, counts[0].astype(np.int64), counts[1].astype(np.int64), int(total.sum() - counts.sum()))
    else:
        place = np.unique(np.abs(score[:, None] - edges[None, :]).argmin(axis=0))
        edges = score[place]
    counts = np.diff(below[:, np.clip(place, 0, score.size - 1)], axis=1)
    outside = int(total.sum()) - int(counts.sum())
    return Histogram(edges, counts[0].astype(np.int64), counts[1].astype(np.int64), outside)


def panel_points(far: FloatArray, frr: FloatArray, points: int, always: IntArray) -> IntArray:
    """Points of a curve for a slider, in increasing order, at most `points` and those of `always`.

    They follow both rates evenly on the probit scale, so that neither tail is jumped over.
    """
    from scipy.special import ndtr, ndtri

    half = max((points - always.size) // 2, 2)

    def spread(rates: FloatArray) -> FloatArray:
        inside = rates[(rates > 0.0) & (rates < 1.0)]
        if not inside.size:
            return np.array([0.5])
        targets: FloatArray = ndtr(np.linspace(ndtri(inside.min()), ndtri(inside.max()), half))
        return targets

    by_far = np.searchsorted(far, spread(far))
    by_frr = np.searchsorted(-frr, -spread(frr))
    chosen = np.concatenate([by_far, by_frr, always])
    return np.unique(np.clip(chosen, 0, far.size - 1)).astype(np.int64)


def _below(curve: CurveTally) -> tuple[FloatArray, IntArray, IntArray]:
    """Scores in increasing order, how many genuine and impostor comparisons lie below each, and all of them."""
    score = curve.thresholds if curve.distance else curve.thresholds[::-1]
    matched = np.stack([curve.n_genuine - curve.false_nonmatches, curve.false_matches])
    total = np.array([[curve.n_genuine], [curve.n_impostor]])
    return score, matched if curve.distance else (total - matched)[:, ::-1], total


def _ends(
    curve: CurveTally, score: FloatArray, below: IntArray, total: IntArray
) -> tuple[tuple[int, int], tuple[float, float]]:
    """The points of the curve between which a histogram lies, and its ends in the units of the scores."""
    low = np.count_nonzero(below <= OUTSIDE * total, axis=1) - 1
    high = score.size - np.count_nonzero(below >= (1.0 - OUTSIDE) * total, axis=1)
    first, last = max(int(low.min()), 0), min(int(high.max()), score.size - 1)
    ends = [float(score[first]), float(score[last])]
    scores = score[1:] if curve.distance else score[:-1]  # the strictest threshold is not a score
    inner = without_outposts(scores)
    if inner[0] > 0 and scores[inner[0]] > ends[0]:
        first, ends[0] = inner[0], float(scores[inner[0]])
    if inner[1] < scores.size - 1 and scores[inner[1]] < ends[1]:
        last, ends[1] = inner[1] + 1, float(scores[inner[1]])
    return (first, last), (ends[0], ends[1])
