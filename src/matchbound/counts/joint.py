"""Joint tallies: the errors of two systems on the same comparisons, and the errors that they share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from matchbound.arraytypes import IntArray
from matchbound.counts.tally import Tally
from matchbound.errors import DataError


@dataclass(frozen=True, eq=False)
class JointTally:
    """Two systems at K pairs of thresholds; the comparisons are the same.

    - a, b: each with its own K thresholds, the same identities and the same m_ij and g_i; pairs kept.
    - sum_nn, shape (K,): Σ_{i≠j} n^A_ij·n^B_ij over ordered pairs.
    - both_impostor, both_genuine, shape (K,): J: comparisons on which both systems err.
    """

    a: Tally
    b: Tally
    sum_nn: IntArray
    both_impostor: IntArray
    both_genuine: IntArray

    @property
    def n_identities(self) -> int:
        return self.a.n_identities

    def at(self, k: int) -> JointTally:
        return JointTally(
            _alone(self.a, k),
            _alone(self.b, k),
            self.sum_nn[k : k + 1],
            self.both_impostor[k : k + 1],
            self.both_genuine[k : k + 1],
        )


def join(a: Tally, b: Tally, both_impostor: IntArray, both_genuine: IntArray) -> JointTally:
    """Put two tallies with pairs of the same comparisons together."""
    if a.impostor.erred is None or b.impostor.erred is None:
        raise DataError("a joint tally needs the errors of each identity pair; tally with pairs=True")
    size = a.n_identities
    cross = [
        2 * int((one.count * one.look_up(two, size)).sum())
        for one, two in zip(a.impostor.erred, b.impostor.erred, strict=True)
    ]
    return JointTally(a, b, np.array(cross, dtype=np.int64), both_impostor, both_genuine)


def _alone(tally: Tally, k: int) -> Tally:
    one, impostor = slice(k, k + 1), tally.impostor
    return replace(
        tally,
        thresholds=tally.thresholds[one],
        genuine=replace(tally.genuine, errors=tally.genuine.errors[one]),
        impostor=replace(
            impostor,
            errors=impostor.errors[one],
            sum_nm=impostor.sum_nm[one],
            sum_nn=impostor.sum_nn[one],
            erred=None if impostor.erred is None else impostor.erred[one],
        ),
    )
