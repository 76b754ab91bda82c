"""The curve of rates in which every identity counts once: units are identity pairs and identities, not comparisons."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.curve import CurveSums, CurveTally, SortedCurve, running_sums
from matchbound.counts.tally import GenuineTally, ImpostorTally, Tally
from matchbound.errors import DataError, argument


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

    def summed(self, genuine: FloatArray, impostor: FloatArray) -> tuple[FloatArray, FloatArray, float | None]:
        """The same with each comparison weighing 1/g_i or 1/m_ij."""
        return self.pooled.summed(genuine, impostor, (self.genuine_weights, self.impostor_weights))

    @property
    def trials(self) -> tuple[int, int]:
        """Impostor and genuine comparisons behind the units."""
        return self.pooled.trials

    def tally_at(self, points: IntArray) -> Tally:
        """Σ_j y_ij and y_i of each identity at some of the thresholds, with the sums of pairs; float64."""
        curve, size, sums = self.pooled, self.n_identities, self.sums.take(points)
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
            ImpostorTally(self.impostor_comparisons, matched, sums.pair_mm, sums.nm, sums.nn),  # type: ignore[arg-type]
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


def sorted_curve(curve: CurveTally) -> SortedCurve:
    """The curve, where it has every step."""
    if not isinstance(curve, SortedCurve):
        points, made = curve.thresholds.size, curve.n_impostor
        raise too_many_steps(f"this one has {points:,} points of {made:,} impostor comparisons")
    return curve


def unit_curve(curve: SortedCurve) -> UnitCurve:
    """The same thresholds with every identity pair and every identity counted once."""
    number, table = curve.pairs
    size = curve.n_identities
    present = curve.genuine_comparisons > 0
    genuine_weights = (1.0 / np.maximum(curve.genuine_comparisons, 1))[curve.owner]
    impostor_weights = (1.0 / table.count)[number]
    matched = _running(impostor_weights, curve.false_matches)
    people = int(np.count_nonzero(present))
    missed = np.clip(people - _running(genuine_weights, curve.genuine_matches), 0.0, people)
    missed[curve.false_nonmatches == 0] = 0.0
    matched[curve.false_matches == curve.n_impostor] = table.count.size
    partners = np.bincount(table.first, minlength=size) + np.bincount(table.second, minlength=size)
    return UnitCurve(
        identities=curve.identities,
        distance=curve.distance,
        thresholds=curve.thresholds,
        false_matches=matched,  # type: ignore[arg-type]
        false_nonmatches=missed,  # type: ignore[arg-type]
        genuine_comparisons=present.astype(np.int64),
        impostor_comparisons=partners.astype(np.int64),
        instances=None,
        pooled=curve,
        genuine_weights=genuine_weights,
        impostor_weights=impostor_weights,
    )


def _running(amount: FloatArray, stops: IntArray) -> FloatArray:
    """Σ of the first `stops` amounts, the shape of `stops`."""
    result: FloatArray = np.concatenate([[0.0], np.cumsum(amount)])[stops]
    return result
