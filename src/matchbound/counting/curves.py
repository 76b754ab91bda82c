"""Data into curves, with every step or at chosen thresholds; and what a curve with every step can count again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.disk import TableOnDisk
from matchbound.counting.pairs import GenuinePairs, impostor_pairs
from matchbound.counting.recount import Kind, Recount, similarity_at
from matchbound.counting.running import ANYHOW, How
from matchbound.counts.curve import CurveTally, SortedCurve, SteppedCurve, both_kinds, curve_of_tally
from matchbound.counts.tally import Tally
from matchbound.counts.unit_curve import too_many_steps
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.readers.scan import ScoreFile

EXACT_COMPARISONS = 3_000_000
"""All pairs of embeddings are scored and sorted up to this many; beyond, the curve has `CURVE_POINTS` thresholds."""
MOST_STEPS = 10_000_000
"""The same where a curve with every step is needed; beyond, there is none."""
CURVE_POINTS = 1500
MOST_CELLS = 20_000_000
TABLE_CELLS = 40_000_000
REFINEMENTS = 8
"""Passes over the data, at most, that make the threshold of a target rate exact."""


def curve_of_comparisons(source: Comparisons) -> SortedCurve:
    """The curve of scored comparisons, with every step."""
    size = source.n_identities
    genuine = source.genuine
    n_genuine = int(np.count_nonzero(genuine))
    both_kinds(n_genuine, len(source) - n_genuine)
    similarity = source.similarity
    thresholds, matched, missed = steps_of(similarity[genuine], similarity[~genuine])
    if source.distance:
        np.negative(thresholds, out=thresholds)
    both = np.bincount(source.a, minlength=size) + np.bincount(source.b, minlength=size)
    g = np.bincount(source.a[genuine], minlength=size).astype(np.int64)
    return SortedCurve(
        identities=source.identities,
        distance=source.distance,
        thresholds=thresholds,
        false_matches=matched,
        false_nonmatches=missed,
        genuine_comparisons=g,
        impostor_comparisons=both - 2 * g,
        instances=source.instance_counts,
        a=source.a,
        b=source.b,
        row_similarity=similarity,
    )


def steps_of(genuine: FloatArray, impostor: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
    """The steps of a curve: similarities from one that nothing reaches on, false matches and false non-matches."""
    genuine.sort()
    impostor.sort()
    values = np.sort(np.concatenate([genuine, impostor]), kind="stable")[::-1]  # which merges what is in order
    values = values[np.append(True, values[1:] != values[:-1])]
    thresholds = np.append(_above(values[0]), values)
    matched = impostor.size - np.searchsorted(impostor, thresholds, side="left")
    return thresholds, matched, np.searchsorted(genuine, thresholds, side="left")


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
    return sign * _grid(genuine, impostor, points, _least_similarity(source), top)


def _grid(genuine: FloatArray, impostor: FloatArray, points: int, least: float, top: float) -> FloatArray:
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
        part = source.settled[start : start + block]
        squares = max(squares, float(np.einsum("ij,ij->i", part, part, dtype=np.float64).max()))
    return -1.001 * squares if source.similarity == "dot" else -2.002 * np.sqrt(squares)


def curve_of_embeddings(source: Embeddings, how: How = ANYHOW, *, every: bool = False) -> CurveTally:
    """The curve of all pairs: every step of a small set, about `CURVE_POINTS` points of a large one.

    Parameters
    ----------
    every
        Whether every step is needed; a set that is too large for it is then refused before it is counted.
    """
    rows = len(source)
    pairs = rows * (rows - 1) // 2
    if every and pairs > MOST_STEPS:
        raise too_many_steps(f"these embeddings make {pairs:,} comparisons, more than the {MOST_STEPS:,} that are kept")
    if every or pairs <= EXACT_COMPARISONS:
        return curve_of_comparisons(source.comparisons())
    from matchbound.counting.allpairs import tally_embeddings

    return curve_of_tally(tally_embeddings(source, curve_thresholds(source), **vars(how)))


def curve_of_table(source: ScoreFile, how: How = ANYHOW) -> SteppedCurve:
    """The curve of a table that stays on disk, in two passes: thresholds from a sample, then exact counts at each.

    There are about `CURVE_POINTS` thresholds, and fewer where identities are so many that the counts would not fit.
    """
    table = TableOnDisk(source, how)
    found = table.sample
    both_kinds(found.genuine.size, found.impostor.size)
    points = int(np.clip(TABLE_CELLS // max(found.identities, 1), 40, CURVE_POINTS))
    grid = _grid(found.genuine[::-1], found.impostor[::-1], points, *found.ends)
    return curve_of_tally(table.tally(-grid if table.distance else grid))


@dataclass(frozen=True, eq=False)
class Steps:
    """Points of a curve without the identities: arrays of shape (K,), from the strictest to the most lenient.

    totals
        Impostor and genuine comparisons.
    """

    similarity: FloatArray
    matched: IntArray
    missed: IntArray
    totals: tuple[int, int]

    def joined(self, similarity: FloatArray, matched: IntArray, missed: IntArray) -> Steps:
        """With other points, none of which is there already."""
        both = np.concatenate([self.similarity, similarity])
        order = np.argsort(-both, kind="stable")
        return Steps(
            both[order],
            np.concatenate([self.matched, matched])[order],
            np.concatenate([self.missed, missed])[order],
            self.totals,
        )

    def take(self, places: IntArray) -> Steps:
        """Some of the points."""
        return Steps(self.similarity[places], self.matched[places], self.missed[places], self.totals)


@dataclass(frozen=True)
class Asked:
    """Where a curve is to be exact.

    matches, nonmatches
        Numbers of false matches and of false non-matches whose thresholds are asked for.
    equal
        Whether the point where FAR and FRR are equal is asked for.
    """

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


def refined_curve(curve: SteppedCurve, recount: Recount, asked: Asked) -> SteppedCurve:
    """The curve with points added until what is asked for is exact.

    The threshold of a number of false matches is the most lenient one with at most so many; of false non-matches, the
    strictest one with at most so many. Between the two points of the curve where that changes, some hundred thresholds
    are counted, then as many between the two where it changes now, until at most one comparison lies between them, or
    no number does. The two points between which FAR passes FRR are found in the same way.

    Parameters
    ----------
    recount
        Counts the comparisons again.
    """
    points = int(np.clip(MOST_CELLS // max(curve.n_identities, 1), 16, 512))
    steps = Steps(curve.similarity, curve.false_matches, curve.false_nonmatches, (curve.n_impostor, curve.n_genuine))
    counted: list[Tally] = []
    for _ in range(REFINEMENTS):
        gaps = asked.gaps(steps)
        between = np.diff(steps.matched)[gaps] - np.diff(steps.missed)[gaps]
        unsettled = gaps[between > 1]
        grids = [_between(steps.similarity, int(k), points // unsettled.size + 2) for k in unsettled]
        added = np.unique(np.concatenate([np.empty(0), *grids]))
        if not added.size:
            break
        counted.append(recount.tally(-added if curve.distance else added))
        found = counted[-1].impostor.errors.sum(axis=1) // 2, counted[-1].genuine.errors.sum(axis=1)
        steps = steps.joined(added, *found)
        gaps = asked.gaps(steps)
        kept = ~np.isin(steps.similarity, added)
        kept[gaps] = kept[gaps + 1] = True  # of the new points, those beside what is asked for
        steps = steps.take(np.flatnonzero(kept))
    new = steps.similarity[~np.isin(steps.similarity, curve.similarity)]
    if not new.size:
        return curve
    wanted, whole = -new if curve.distance else new, curve.tally
    for tally in counted:
        whole = _with_rows(whole, tally.take(np.flatnonzero(np.isin(tally.thresholds, wanted))))
    return curve_of_tally(whole)


def _between(similarity: FloatArray, k: int, points: int) -> FloatArray:
    """Similarities strictly between two neighbouring points; none where no number lies between them."""
    high, low = float(similarity[k]), float(similarity[k + 1])
    grid = np.unique(np.linspace(low, high, points))
    return grid[(grid > low) & (grid < high)]


def _with_rows(one: Tally, two: Tally) -> Tally:
    """Two tallies of the same comparisons at different thresholds as one, from the strictest to the most lenient.

    The first is in this order already.
    """
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


@dataclass(frozen=True, eq=False)
class AlongCurve(Recount):
    """A `Recount` whose answers come from a curve with every step."""

    first: Recount | None = field(default=None, repr=False)
    curve: SortedCurve | None = field(default=None, repr=False)

    @staticmethod
    def of(recount: Recount, curve: SortedCurve) -> AlongCurve:
        """The same data, counted along their curve."""
        return AlongCurve(recount.source, recount.workers, recount.executor, recount, curve)

    @property
    def all_pairs(self) -> bool:
        """Whether every pair was compared."""
        return self._first.all_pairs

    @property
    def anonymous(self) -> bool:
        """Whether it is not known who was compared."""
        return self._first.anonymous

    @property
    def instance_counts(self) -> IntArray:
        """M_i of embeddings, shape (G,)."""
        return self._first.instance_counts

    def comparisons(self) -> Comparisons:
        """The comparisons one by one."""
        return self._first.comparisons()

    def some(self, people: int, rows: int) -> Recount:
        """The comparisons among some identities, taken at random."""
        return self._first.some(people, rows)

    def among(self, identities: IntArray) -> Recount:
        """The comparisons among some identities, given by their positions, sorted."""
        return self._first.among(identities)

    def tally(self, thresholds: FloatArray, *, pairs: bool = False) -> Tally:
        """The same comparisons at other thresholds."""
        return self._curve.recounted(np.asarray(thresholds, dtype=np.float64), pairs=pairs)

    def genuine(self, thresholds: FloatArray) -> Tally:
        """Genuine comparisons at other thresholds; what the tally says of impostor ones means nothing."""
        return self._curve.recounted(np.asarray(thresholds, dtype=np.float64), genuine=True)

    def thresholds_at(self, errors: IntArray, kind: Kind) -> FloatArray:
        """Thresholds at which about so many comparisons err, shape of `errors`."""
        curve, wanted = self._curve, np.asarray(errors, dtype=np.int64)
        size = curve.n_impostor if kind == "impostor" else curve.n_genuine

        def pick(at: IntArray) -> FloatArray:  # in increasing order, where points of the curve come strictest first
            if kind == "impostor":
                return curve.similarity[np.searchsorted(curve.false_matches, size - at)]
            missed = curve.false_nonmatches[::-1]
            return curve.similarity[missed.size - np.searchsorted(missed, at, side="right")]

        chosen = similarity_at(pick, size, wanted, kind)
        return -chosen if curve.distance else chosen

    @property
    def _first(self) -> Recount:
        assert self.first is not None
        return self.first

    @property
    def _curve(self) -> SortedCurve:
        assert self.curve is not None
        return self.curve
