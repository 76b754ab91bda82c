"""Curves with every step, thresholds for the others, and points added to these where something is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.pairs import GenuinePairs, impostor_pairs
from matchbound.counts.curve import CurveTally, SortedCurve, SteppedCurve, both_kinds, curve_of_tally
from matchbound.counts.tally import Tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings

if TYPE_CHECKING:
    from matchbound.counting.recount import Recount

CURVE_POINTS = 1500
MOST_CELLS = 20_000_000
# Passes over the data, at most, that make the threshold of a target rate exact.
REFINEMENTS = 8


def sorted_curve_of(source: Comparisons, genuine: FloatArray, impostor: FloatArray) -> SortedCurve:
    """The curve of scored comparisons with every step, from the similarities of both kinds, increasing."""
    both_kinds(genuine.size, impostor.size)
    size, same = source.n_identities, source.genuine
    values = np.sort(np.concatenate([genuine, impostor]), kind="stable")[::-1]  # which merges what is in order
    values = values[np.append(True, values[1:] != values[:-1])]
    thresholds = np.append(_above(values[0]), values)
    matched = impostor.size - np.searchsorted(impostor, thresholds, side="left")
    both = np.bincount(source.a, minlength=size) + np.bincount(source.b, minlength=size)
    g = np.bincount(source.a[same], minlength=size).astype(np.int64)
    return SortedCurve(
        identities=source.identities,
        distance=source.distance,
        thresholds=-thresholds if source.distance else thresholds,
        false_matches=matched,
        false_nonmatches=np.searchsorted(genuine, thresholds, side="left"),
        genuine_comparisons=g,
        impostor_comparisons=both - 2 * g,
        instances=source.instance_counts,
        a=source.a,
        b=source.b,
        row_similarity=source.similarity,
    )


def _above(largest: float) -> float:
    """A similarity that nothing reaches; above the largest float there is infinity."""
    with np.errstate(over="ignore"):
        return float(np.nextafter(largest, np.inf))


def curve_thresholds(source: Embeddings, points: int = CURVE_POINTS, sample: int = 200_000) -> FloatArray:
    """Thresholds for the curve of a large set, strictest first, shape (about `points`,).

    Half follow the impostor scores of a random sample of pairs, evenly in the probit of FAR with as many again in
    the tail; the others follow genuine scores. Chosen from a sample, counted exactly: the sample decides only where
    the curve has points. The same data always give the same thresholds.
    """
    rng = np.random.default_rng(np.random.SeedSequence(len(source)))
    sign = -1.0 if source.distance else 1.0
    impostor = np.sort(sign * source.score_pairs(*impostor_pairs(source, sample, rng)))[::-1]
    genuine = np.sort(sign * source.score_pairs(*GenuinePairs.of(source).sample(sample // 2, rng)))[::-1]
    both_kinds(genuine.size, impostor.size)
    top = max(float(impostor[0]), float(genuine[0]))
    return sign * threshold_grid(genuine, impostor, points, _least_similarity(source), top)


def threshold_grid(genuine: FloatArray, impostor: FloatArray, points: int, least: float, top: float) -> FloatArray:
    """About so many similarities from samples of both kinds, all strictest first; and `least`, and one above `top`."""
    tail = np.unique(np.geomspace(1, impostor.size, points // 2).astype(np.int64)) - 1
    body = np.linspace(0, genuine.size - 1, points // 4).astype(np.int64)
    spread = np.linspace(float(impostor[0]), top, max(points // 8, 2))
    ends = [least, np.nextafter(top, np.inf)]
    return np.unique(np.concatenate([impostor[tail], genuine[body], spread, ends]))[::-1]


def _least_similarity(source: Embeddings, block: int = 65536) -> float:
    """A similarity that no pair goes below: the threshold at which everything matches."""
    if source.similarity == "cosine":
        return -1.001
    squares = 0.0
    for start in range(0, len(source), block):
        part = source.vectors[start : start + block]
        squares = max(squares, float(np.einsum("ij,ij->i", part, part, dtype=np.float64).max()))
    return -1.001 * squares if source.similarity == "dot" else -2.002 * np.sqrt(squares)


@dataclass(frozen=True, eq=False)
class Steps:
    """Points of a curve without the identities, strictest first, shape (K,); `totals` are impostor and genuine."""

    similarity: FloatArray
    matched: IntArray
    missed: IntArray
    totals: tuple[int, int]

    def joined(self, asked: Asked, similarity: FloatArray, matched: IntArray, missed: IntArray) -> Steps:
        """With those of other points, none of which is there already, that lie beside what is asked for."""
        both = np.concatenate([self.similarity, similarity])
        order = np.argsort(-both, kind="stable")
        counts = np.concatenate([self.matched, matched])[order], np.concatenate([self.missed, missed])[order]
        whole = Steps(both[order], *counts, self.totals)
        gaps = asked.gaps(whole)
        kept = order < self.similarity.size
        kept[gaps] = kept[gaps + 1] = True
        return Steps(whole.similarity[kept], whole.matched[kept], whole.missed[kept], self.totals)


@dataclass(frozen=True)
class Asked:
    """Where a curve is to be exact: numbers of false matches and of false non-matches, and whether at FAR = FRR."""

    matches: tuple[int, ...] = ()
    nonmatches: tuple[int, ...] = ()
    equal: bool = False

    def gaps(self, steps: Steps) -> IntArray:
        """The points of the curve that lie just before what is asked for; another point follows each."""
        matched, missed = steps.matched, steps.missed
        found = [int(np.searchsorted(matched, wanted, side="right")) - 1 for wanted in self.matches]
        found += [int(np.searchsorted(-missed, -wanted, side="left")) - 1 for wanted in self.nonmatches]
        if self.equal:
            impostor, genuine = steps.totals
            found.append(int(np.searchsorted(matched / impostor - missed / genuine, 0.0)) - 1)
        gaps = np.unique(np.array(found, dtype=np.int64))
        return gaps[(gaps >= 0) & (gaps + 1 < matched.size)]


def refined_curve(curve: CurveTally, recount: Recount, asked: Asked) -> CurveTally:
    """The curve with points added until what is asked for is exact.

    The threshold of a number of false matches is the most lenient one with at most so many; of false non-matches, the
    strictest one with at most so many. Between the two points of the curve where that changes, some hundred thresholds
    are counted, then as many between the two where it changes now, until at most one comparison lies between them, or
    no number does. The two points between which FAR passes FRR are found in the same way.
    """
    assert isinstance(curve, SteppedCurve)
    steps = Steps(curve.similarity, curve.false_matches, curve.false_nonmatches, (curve.n_impostor, curve.n_genuine))
    scored = _with_every_score(steps, recount, asked)
    counted: list[Tally] = []
    if scored is None:
        points = int(np.clip(MOST_CELLS // max(curve.n_identities, 1), 16, 512))
        for _ in range(REFINEMENTS):
            gaps = asked.gaps(steps)
            between = np.diff(steps.matched)[gaps] - np.diff(steps.missed)[gaps]
            unsettled = gaps[between > 1]
            grids = [_between(steps.similarity, int(k), points // unsettled.size + 2) for k in unsettled]
            added = np.unique(np.concatenate([np.empty(0), *grids]))
            if not added.size:
                break
            tally = recount.tally(-added if curve.distance else added)
            counted.append(tally)
            steps = steps.joined(asked, added, tally.impostor.errors.sum(axis=1) // 2, tally.genuine.errors.sum(axis=1))
    else:
        steps = scored
    new = steps.similarity[~np.isin(steps.similarity, curve.similarity)]
    if not new.size:
        return curve
    wanted, whole = -new if curve.distance else new, curve.tally
    for tally in counted or [recount.tally(wanted)]:
        whole = _with_rows(whole, tally.take(np.flatnonzero(np.isin(tally.thresholds, wanted))))
    return curve_of_tally(whole)


def _with_every_score(steps: Steps, recount: Recount, asked: Asked) -> Steps | None:
    """The points and those that the scores between them give; None where such scores are not easily had."""
    gaps = asked.gaps(steps)
    scores = recount.scores_between(steps.similarity[gaps + 1], steps.similarity[gaps])
    if scores is None:
        return None
    order = np.argsort(-scores[0], kind="stable")
    similarity, impostor, genuine = scores[0][order], scores[1][order], scores[2][order]
    before = np.searchsorted(-steps.similarity, -similarity) - 1  # the stricter of the two points around each score
    first = np.searchsorted(before, before)
    matched, accepted = (np.cumsum(part) - (np.cumsum(part) - part)[first] for part in (impostor, genuine))
    return steps.joined(asked, similarity, steps.matched[before] + matched, steps.missed[before] - accepted)


def _between(similarity: FloatArray, k: int, points: int) -> FloatArray:
    """Similarities strictly between two neighbouring points; none where no number lies between them."""
    high, low = float(similarity[k]), float(similarity[k + 1])
    grid = np.unique(np.linspace(low, high, points))
    return grid[(grid > low) & (grid < high)]


def _with_rows(one: Tally, two: Tally) -> Tally:
    """Two tallies of the same comparisons as one, from the strictest threshold to the most lenient, as the first is."""
    thresholds = np.concatenate([one.thresholds, two.thresholds])
    order = np.argsort(thresholds if one.distance else -thresholds, kind="stable")
    of_two = order >= one.thresholds.size
    place = order[of_two] - one.thresholds.size

    def laid(a: IntArray, b: IntArray) -> IntArray:
        out = np.empty((order.size, *a.shape[1:]), dtype=a.dtype)
        out[~of_two], out[of_two] = a, b[place]
        return out

    return replace(
        one,
        thresholds=thresholds[order],
        genuine=replace(one.genuine, errors=laid(one.genuine.errors, two.genuine.errors)),
        impostor=replace(
            one.impostor,
            errors=laid(one.impostor.errors, two.impostor.errors),
            sum_nm=laid(one.impostor.sum_nm, two.impostor.sum_nm),
            sum_nn=laid(one.impostor.sum_nn, two.impostor.sum_nn),
            erred=None,
        ),
    )
