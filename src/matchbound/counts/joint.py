"""Joint tallies: the errors of two systems on the same comparisons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import IntArray
from matchbound.counts.tally import Tally
from matchbound.errors import DataError


@dataclass(frozen=True, eq=False)
class JointTally:
    """Two systems at K pairs of thresholds; the comparisons are the same.

    - a, b: each with its own K thresholds, the same identities and the same m_ij and g_i; pairs kept.
    - sum_nn, shape (K,): Σ_{i≠j} n^A_ij·n^B_ij over ordered pairs.
    """

    a: Tally
    b: Tally
    sum_nn: IntArray

    @property
    def n_identities(self) -> int:
        return self.a.n_identities

    def apart(self, metric: str, k: int) -> int:
        """Errors of one system that the other does not balance: Σ|n^A_ij − n^B_ij| over pairs, or Σ|e^A_i − e^B_i|."""
        if metric == "frr":
            return int(np.abs(self.a.genuine.errors[k] - self.b.genuine.errors[k]).sum())
        assert self.a.impostor.erred is not None
        assert self.b.impostor.erred is not None
        one, two = self.a.impostor.erred[k], self.b.impostor.erred[k]
        both = np.minimum(one.count, one.look_up(two, self.n_identities)).sum()
        return int(one.count.sum() + two.count.sum() - 2 * both)


def join(a: Tally, b: Tally) -> JointTally:
    """Put two tallies with pairs of the same comparisons together."""
    if a.impostor.erred is None or b.impostor.erred is None:
        raise DataError("a joint tally needs the errors of each identity pair; tally with pairs=True")
    size = a.n_identities
    cross = [
        2 * int((one.count * one.look_up(two, size)).sum())
        for one, two in zip(a.impostor.erred, b.impostor.erred, strict=True)
    ]
    return JointTally(a, b, np.array(cross, dtype=np.int64))
