"""Count again from a curve: its comparisons are in order already, so that nothing is sorted a second time."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.ranks import similarity_at
from matchbound.counting.recount import Recount
from matchbound.counts.curve import SortedCurve
from matchbound.counts.tally import GenuineTally, ImpostorTally, PairTable, Tally


@dataclass(frozen=True, eq=False)
class AlongCurve(Recount):
    """A `Recount` whose answers come from a curve with every step; what it remembers is shared with the first one."""

    curve: SortedCurve | None = field(default=None, repr=False)

    @staticmethod
    def of(recount: Recount, curve: SortedCurve) -> AlongCurve:
        """The same data, counted along their curve."""
        memo: dict[Hashable, Any] = recount.memo
        return AlongCurve(recount.source, recount.workers, recount.executor, memo, curve)

    def tally(self, thresholds: FloatArray, *, pairs: bool = False) -> Tally:
        """The same comparisons at other thresholds."""
        curve = self._curve
        points, place = np.unique(self._points(thresholds), return_inverse=True)
        made = curve.tally_at(points)
        number, table = curve.pairs
        erred: tuple[PairTable, ...] | None = None
        if pairs:
            tables = []
            for matched in curve.false_matches[points]:
                count = np.bincount(number[: int(matched)], minlength=table.count.size)
                kept = np.flatnonzero(count)
                tables.append(PairTable(table.first[kept], table.second[kept], count[kept].astype(np.int64)))
            erred = tuple(tables[k] for k in place.reshape(-1))
        impostor = ImpostorTally(
            made.impostor.comparisons,
            made.impostor.errors[place],
            made.impostor.sum_mm,
            made.impostor.sum_nm[place],
            made.impostor.sum_nn[place],
            table,
            erred,
        )
        genuine = GenuineTally(made.genuine.comparisons, made.genuine.errors[place])
        return replace(made, thresholds=np.asarray(thresholds), genuine=genuine, impostor=impostor)

    def genuine(self, thresholds: FloatArray) -> Tally:
        """Genuine comparisons at other thresholds; what the tally says of impostor ones means nothing."""
        curve = self._curve
        points, place = np.unique(self._points(thresholds), return_inverse=True)
        accepted = np.zeros((points.size, curve.n_identities), dtype=np.int64)
        before = 0
        for row, now in enumerate(curve.genuine_matches[points]):
            accepted[row] = np.bincount(curve.owner[before : int(now)], minlength=curve.n_identities)
            before = int(now)
        errors = curve.genuine_comparisons - np.cumsum(accepted, axis=0)
        nothing = np.zeros(place.size, dtype=np.int64)
        return Tally(
            curve.identities,
            np.asarray(thresholds),
            curve.distance,
            GenuineTally(curve.genuine_comparisons, errors[place]),
            ImpostorTally(
                np.zeros(curve.n_identities, dtype=np.int64),
                np.zeros((place.size, curve.n_identities), dtype=np.int64),
                0,
                nothing,
                nothing,
            ),
            curve.instances,
        )

    def thresholds_at(self, errors: IntArray, kind: Literal["impostor", "genuine"]) -> FloatArray:
        """Thresholds at which about so many comparisons err, shape of `errors`."""
        curve, wanted = self._curve, np.asarray(errors, dtype=np.int64)
        rows = curve.impostor_rows if kind == "impostor" else curve.genuine_rows
        last = rows.size - 1  # rows come strictest first
        chosen = similarity_at(lambda at: curve.row_similarity[rows[last - at]], rows.size, wanted, kind)
        return -chosen if curve.distance else chosen

    def settled(self, thresholds: FloatArray, errors: IntArray, counted: IntArray) -> FloatArray:
        """The thresholds as they are: those of a curve are exact, ties apart."""
        return thresholds

    @property
    def _curve(self) -> SortedCurve:
        assert self.curve is not None
        return self.curve

    def _points(self, thresholds: FloatArray) -> IntArray:
        """The points of the curve with the decisions of each threshold."""
        similarity = -np.asarray(thresholds) if self._curve.distance else np.asarray(thresholds)
        found = np.searchsorted(-self._curve.similarity, -similarity, side="right") - 1
        return np.maximum(found, 0)
