"""Curve tallies: what a set of comparisons says at every threshold that makes a difference.

The thresholds of a curve run from the strictest to the most lenient. The first matches nothing; each further one
is a score that occurs in the data, so that between two of them nothing changes. A set too large to sort is
tallied at some thresholds instead (`SteppedCurve`): its points are fewer, and each is exact. Where every identity
counts once, units are identity pairs and identities, not comparisons (`UnitCurve`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.counts.cells import tally_of_rows
from matchbound.counts.tally import GenuineTally, ImpostorTally, PairTable, Tally
from matchbound.errors import DataError, UsageError, argument


@dataclass(frozen=True, eq=False)
class CurveSums:
    """The sums behind the variances at K thresholds, shape (K,) each; whole numbers where comparisons are the units.

    - ss, sm, nn, nm: ΣS_i², ΣS_i·m_i, Σn_ij², Σn_ij·m_ij (ordered pairs).
    - ee, eg: Σe_i², Σe_i·g_i.
    - mm, pair_mm, gg: Σm_i², Σm_ij² (ordered pairs), Σg_i²: the same at all thresholds.
    """

    ss: IntArray
    sm: IntArray
    nn: IntArray
    nm: IntArray
    ee: IntArray
    eg: IntArray
    mm: int
    pair_mm: int
    gg: int


@dataclass(frozen=True, eq=False)
class CurvePart:
    """The comparisons of one kind along a curve.

    - errors, shape (K,): those that erred at each threshold.
    - comparisons, weights, shape (G,): comparisons that each identity takes part in, and what it weighs in the rate.
    - ends: at how many identities a comparison counts.
    """

    errors: IntArray
    comparisons: IntArray
    weights: IntArray
    ends: int

    @property
    def total(self) -> int:
        return int(self.comparisons.sum()) // self.ends

    @property
    def floor(self) -> int:
        """The comparisons that nobody shares: ⌊G/2⌋ pairs, or G identities."""
        return int(np.count_nonzero(self.comparisons)) // self.ends


@dataclass(frozen=True, eq=False)
class CurveTally:
    """Errors at K thresholds from the strictest to the most lenient.

    - thresholds, shape (K,): in the units of the scores; of a `distance`, a match is ``score <= threshold``.
    - false_matches, false_nonmatches, shape (K,): impostor comparisons that match, genuine ones that do not.
    - genuine_comparisons, impostor_comparisons, shape (G,): g_i and m_i.
    """

    identities: LabelArray = field(repr=False)
    distance: bool
    thresholds: FloatArray
    false_matches: IntArray
    false_nonmatches: IntArray
    genuine_comparisons: IntArray
    impostor_comparisons: IntArray
    instances: IntArray | None
    # What counts once: ``"comparisons"`` or ``"identities"``.
    weighting: ClassVar[str] = "comparisons"
    # Whether every threshold that makes a difference is a point of the curve.
    every_step: ClassVar[bool] = True

    @property
    def counted(self) -> CurveTally:
        """The curve with comparisons as its units; its points are the same."""
        return self

    @property
    def n_identities(self) -> int:
        return int(self.identities.size)

    @cached_property
    def n_impostor(self) -> int:
        """N, the impostor comparisons."""
        return int(self.impostor_comparisons.sum()) // 2

    @cached_property
    def n_genuine(self) -> int:
        """T, the genuine comparisons."""
        return int(self.genuine_comparisons.sum())

    @cached_property
    def far(self) -> FloatArray:
        """FAR at each threshold, never decreasing, shape (K,)."""
        return self.false_matches / self.n_impostor

    @cached_property
    def frr(self) -> FloatArray:
        """FRR at each threshold, never increasing, shape (K,)."""
        return self.false_nonmatches / self.n_genuine

    def part(self, metric: str) -> CurvePart:
        """The comparisons (units) of one kind: ``"far"`` or ``"frr"``."""
        if metric == "frr":
            return CurvePart(self.false_nonmatches, self.genuine_comparisons, self.genuine_comparisons, 1)
        sizes = made = self.impostor_comparisons
        if self.instances is not None:
            sizes = np.where(made > 0, self.instances, 0)
        return CurvePart(self.false_matches, made, sizes, 2)

    @cached_property
    def similarity(self) -> FloatArray:
        """The thresholds with large meaning "same", decreasing, shape (K,)."""
        return -self.thresholds if self.distance else self.thresholds

    @cached_property
    def sums(self) -> CurveSums:
        """The sums behind the variances at every threshold, of a curve with every step."""
        raise NotImplementedError

    def tally_at(self, points: IntArray) -> Tally:
        """The tally at some of the thresholds, by their numbers in increasing order."""
        raise NotImplementedError

    def with_rows(self) -> SortedCurve:
        """The curve with every comparison, which drawing identities needs."""
        raise DataError(
            f"this needs every comparison, and this curve has {self.thresholds.size} points of {self.n_impostor} "
            "impostor comparisons. Use method='influence' or 'union', or a random subset of identities"
        )

    def summed(self, genuine: FloatArray, impostor: FloatArray) -> tuple[FloatArray, FloatArray, float | None]:
        """Sums of what comparisons are worth that begin to match at each point of the curve.

        From the worth of a genuine and of an impostor comparison at each point, shape (K,) each: Σ over the genuine
        comparisons of each identity and over its impostor comparisons, shape (G,) each, and Σ_{i<j} (Σ over the
        comparisons of {i, j})², None where pairs are not known.
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class SortedCurve(CurveTally):
    """A curve with every step, from the identities and the similarity of each comparison, shape (n,) each."""

    a: IntArray = field(repr=False)
    b: IntArray = field(repr=False)
    row_similarity: FloatArray = field(repr=False)

    def with_rows(self) -> SortedCurve:
        return self

    @cached_property
    def order(self) -> NDArray[Any]:
        """Comparisons, strictest first, shape (n,); the order among equal scores means nothing."""
        order = np.argsort(-self.row_similarity)
        return order.astype(np.uint32) if order.size < 2**32 else order

    @cached_property
    def impostor_rows(self) -> IntArray:
        """Rows of impostor comparisons, strictest first, shape (N,)."""
        return np.asarray(self.order[(self.a != self.b)[self.order]], dtype=np.int64)

    @cached_property
    def genuine_rows(self) -> IntArray:
        """Rows of genuine comparisons, strictest first, shape (T,)."""
        return np.asarray(self.order[(self.a == self.b)[self.order]], dtype=np.int64)

    @cached_property
    def first(self) -> IntArray:
        """One identity of each impostor comparison, strictest first, shape (N,)."""
        return self.a[self.impostor_rows]

    @cached_property
    def second(self) -> IntArray:
        """The other identity of each impostor comparison, shape (N,)."""
        return self.b[self.impostor_rows]

    @cached_property
    def owner(self) -> IntArray:
        """The identity of each genuine comparison, strictest first, shape (T,)."""
        return self.a[self.genuine_rows]

    @cached_property
    def genuine_matches(self) -> IntArray:
        """Genuine comparisons that match at each threshold, shape (K,)."""
        return self.n_genuine - self.false_nonmatches

    @cached_property
    def compact(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """`first` and `second` in as few bytes as they need, for passes that read them again and again."""
        small = np.uint16 if self.n_identities <= 2**16 else np.uint32
        return self.first.astype(small), self.second.astype(small)

    @cached_property
    def genuine_ranks(self) -> tuple[IntArray, IntArray]:
        """Impostor comparisons stricter than each genuine one, and at least as strict; shapes (T,)."""
        step = np.searchsorted(self.genuine_matches, np.arange(self.n_genuine), side="right")
        return self.false_matches[step - 1], self.false_matches[step]

    @cached_property
    def pairs(self) -> tuple[IntArray, PairTable]:
        """The number of the identity pair of each impostor comparison, shape (N,), and m_ij."""
        size = np.int64(self.n_identities)
        keys = np.minimum(self.first, self.second) * size + np.maximum(self.first, self.second)
        if size * size <= max(4_000_000, 4 * keys.size):
            count = np.bincount(keys, minlength=int(size * size))
            distinct = np.flatnonzero(count)
            place = np.zeros(count.size, dtype=np.int64)
            place[distinct] = np.arange(distinct.size)
            number, count = place[keys], count[distinct]
        else:
            distinct, number, count = np.unique(keys, return_inverse=True, return_counts=True)
        table = PairTable(distinct // size, distinct % size, count.astype(np.int64))
        return number.reshape(-1), table

    @cached_property
    def sums(self) -> CurveSums:
        """The sums behind the variances at every threshold, from one pass over the comparisons."""
        _, table = self.pairs
        return running_sums(
            self, np.broadcast_to(1, self.n_impostor), np.broadcast_to(1, self.n_genuine), self, table.count
        )

    def tally_at(self, points: IntArray) -> Tally:
        thresholds = self.thresholds[points]
        tally = tally_of_rows(self.a, self.b, self.row_similarity, thresholds, self.identities, self.distance)
        return replace(tally, instances=self.instances)

    def summed(
        self, genuine: FloatArray, impostor: FloatArray, weights: tuple[FloatArray, FloatArray] | None = None
    ) -> tuple[FloatArray, FloatArray, float | None]:
        """As for any curve; `weights` are those of each genuine and of each impostor comparison, strictest first."""
        inside = np.repeat(genuine, np.diff(self.genuine_matches, prepend=0))
        between = np.repeat(impostor, np.diff(self.false_matches, prepend=0))
        if weights is not None:
            inside, between = inside * weights[0], between * weights[1]
        size, (number, table) = self.n_identities, self.pairs
        own: FloatArray = np.bincount(self.owner, inside, size).astype(np.float64)
        pair = np.bincount(number, between, table.count.size)
        shared = (np.bincount(table.first, pair, size) + np.bincount(table.second, pair, size)).astype(np.float64)
        return own, shared, float(pair @ pair)


def running_sums(
    rows: SortedCurve,
    impostor_weights: NDArray[Any],
    genuine_weights: NDArray[Any],
    units: CurveTally,
    pair_units: NDArray[Any],
) -> CurveSums:
    """The sums at every threshold of comparisons that weigh something each, strictest first.

    `units` says what identities are compared with, and `pair_units`, shape (P,), what an identity pair is worth in all.
    """
    from matchbound.kernels.sweep import genuine_sums, impostor_sums

    m, g = units.impostor_comparisons, units.genuine_comparisons
    between = np.zeros((4, rows.thresholds.size), dtype=impostor_weights.dtype)
    number, _ = rows.pairs
    impostor_sums(rows.first, rows.second, number, m, pair_units, impostor_weights, rows.false_matches, between)
    inside = np.zeros((2, rows.thresholds.size), dtype=genuine_weights.dtype)
    genuine_sums(rows.owner, g, genuine_weights, rows.genuine_matches, inside)
    ss, sm, nn, nm = between
    hh, hg = inside
    gg = int(g @ g)
    return CurveSums(ss, sm, nn, nm, gg - 2 * hg + hh, gg - hg, int(m @ m), 2 * int(pair_units @ pair_units), gg)


@dataclass(frozen=True, eq=False)
class SteppedCurve(CurveTally):
    """A curve at the thresholds of a tally, from the strictest to the most lenient, for data too large to sort."""

    tally: Tally = field(repr=False)
    every_step: ClassVar[bool] = False

    def summed(self, genuine: FloatArray, impostor: FloatArray) -> tuple[FloatArray, FloatArray, float | None]:
        """From the errors by identity at each threshold, summed by parts."""
        falls = [-np.diff(worth, append=0.0) for worth in (genuine, impostor)]
        g = self.genuine_comparisons
        own: FloatArray = falls[0].sum() * g - falls[0] @ self.tally.genuine.errors
        return own, falls[1] @ self.tally.impostor.errors, None

    def tally_at(self, points: IntArray) -> Tally:
        return self.tally.take(points)


def curve_of_tally(tally: Tally) -> SteppedCurve:
    """The curve at the thresholds of a tally, which run from the strictest to the most lenient."""
    genuine, impostor = tally.genuine, tally.impostor
    both_kinds(int(genuine.comparisons.sum()), int(impostor.comparisons.sum()))
    errors = impostor.errors.sum(axis=1) // 2, genuine.errors.sum(axis=1)
    made = genuine.comparisons, impostor.comparisons
    return SteppedCurve(
        tally.identities, tally.distance, tally.thresholds, *errors, *made, tally.instances, tally=tally
    )


def both_kinds(genuine: int, impostor: int) -> None:
    if genuine == 0 or impostor == 0:
        missing = "genuine comparisons (of two instances of one identity)"
        if impostor == 0:
            missing = "impostor comparisons (of two different identities)"
        raise DataError(f"a curve needs both kinds of comparison, and the data hold no {missing}")


@dataclass(frozen=True, eq=False)
class UnitCurve(CurveTally):
    """A curve whose errors are shares of units: y_ij = n_ij/m_ij of identity pairs, y_i = e_i/g_i of identities.

    Its "comparisons" are units: `false_matches` is Σ y_ij over the identity pairs, `false_nonmatches` is Σ y_i over the
    identities with genuine comparisons, float64. FAR and FRR are these over the numbers of units.

    - pooled: the curve with every step that it was made from; the points are the same.
    - genuine_weights, impostor_weights, shapes (T,), (N,): 1/g_i and 1/m_ij of each comparison, strictest first.
    """

    pooled: SortedCurve = field(repr=False)
    genuine_weights: FloatArray = field(repr=False)
    impostor_weights: FloatArray = field(repr=False)
    weighting: ClassVar[str] = "identities"

    @property
    def counted(self) -> CurveTally:
        return self.pooled

    def with_rows(self) -> SortedCurve:
        raise UsageError(f"bootstraps are of pooled rates; use {argument('weighting', 'comparisons')}")

    def summed(self, genuine: FloatArray, impostor: FloatArray) -> tuple[FloatArray, FloatArray, float | None]:
        """The same with each comparison weighing 1/g_i or 1/m_ij."""
        return self.pooled.summed(genuine, impostor, (self.genuine_weights, self.impostor_weights))

    def tally_at(self, points: IntArray) -> Tally:
        """Σ_j y_ij and y_i of each identity at some of the thresholds, with the sums of pairs; float64."""
        curve, size, sums = self.pooled, self.n_identities, self.sums
        matched, accepted = np.zeros((2, points.size, size))
        for row, k in enumerate(points):
            stop, reached = int(curve.false_matches[k]), int(curve.genuine_matches[k])
            weight = self.impostor_weights[:stop]
            matched[row] = np.bincount(curve.first[:stop], weight, size) + np.bincount(
                curve.second[:stop], weight, size
            )
            accepted[row] = np.bincount(curve.owner[:reached], self.genuine_weights[:reached], size)
        shares: dict[str, Any] = {"errors": np.maximum(self.genuine_comparisons - accepted, 0.0)}
        return Tally(
            self.identities,
            self.thresholds[points],
            self.distance,
            GenuineTally(self.genuine_comparisons, **shares),
            ImpostorTally(self.impostor_comparisons, matched, sums.pair_mm, sums.nm[points], sums.nn[points]),  # type: ignore[arg-type]
        )

    @cached_property
    def sums(self) -> CurveSums:
        """A comparison of {i, j} adds 1/m_ij to y_ij, and a pair is worth 1 in all, as an identity is."""
        pairs = np.broadcast_to(1, self.pooled.pairs[1].count.size)
        return running_sums(self.pooled, self.impostor_weights, self.genuine_weights, self, pairs)


def too_many_steps(why: str) -> DataError:
    """What to say of data whose curve cannot have every step."""
    return DataError(
        f"with {argument('weighting', 'identities')} a curve needs every comparison in memory, and {why}. Ask at "
        "thresholds (evaluate), or take fewer identities"
    )


def unit_curve(curve: SortedCurve) -> UnitCurve:
    """The same thresholds with every identity pair and every identity counted once."""
    number, table = curve.pairs
    present = curve.genuine_comparisons > 0
    genuine_weights = (1.0 / np.maximum(curve.genuine_comparisons, 1))[curve.owner]
    impostor_weights = (1.0 / table.count)[number]
    matched = _running(impostor_weights, curve.false_matches)
    people = int(np.count_nonzero(present))
    missed = np.clip(people - _running(genuine_weights, curve.genuine_matches), 0.0, people)
    missed[curve.false_nonmatches == 0] = 0.0
    matched[curve.false_matches == curve.n_impostor] = table.count.size
    return UnitCurve(
        identities=curve.identities,
        distance=curve.distance,
        thresholds=curve.thresholds,
        false_matches=matched,  # type: ignore[arg-type]
        false_nonmatches=missed,  # type: ignore[arg-type]
        genuine_comparisons=present.astype(np.int64),
        impostor_comparisons=table.units().by_identity(curve.n_identities),
        instances=None,
        pooled=curve,
        genuine_weights=genuine_weights,
        impostor_weights=impostor_weights,
    )


def _running(amount: FloatArray, stops: IntArray) -> FloatArray:
    """Σ of the first `stops` amounts, the shape of `stops`."""
    return np.asarray(np.concatenate([[0.0], np.cumsum(amount)])[stops])
