"""Who drives the uncertainty: what each identity adds to the variance of a rate.

The plug-in variances are sums over identities: Σa_i² with a_i = e_i − q·g_i for FRR, and, for FAR, 4R − 2Q whose
leading part is R = Σr_i² with r_i = S_i − p·m_i. The share of identity i is r_i²/Σr_i² (or a_i²/Σa_i²).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each of G identities adds to the variance of a rate; arrays of shape (G,).

    errors, comparisons
        Of the identity: e_i and g_i, or S_i and m_i (an impostor comparison counts at both of its identities).
    excess
        Errors beyond what the overall rate would give: r_i or a_i.
    share
        Of the sum of squared excesses; they add up to 1, or are all 0 where no identity differs from the others.
    rate_without
        The rate of the data without the identity; NaN where nothing is left.
    rate
        The overall rate.
    """

    errors: IntArray
    comparisons: IntArray
    excess: FloatArray
    share: FloatArray
    rate_without: FloatArray
    rate: float

    def largest(self, count: int) -> IntArray:
        """Positions of the identities with the largest shares, largest first; none without a share."""
        order = np.argsort(-self.share, kind="stable")[:count]
        return order[self.share[order] > 0.0]

    def how_many_make(self, part: float) -> int:
        """The fewest identities whose shares add up to `part`; 0 where there are no shares."""
        ranked = np.cumsum(np.sort(self.share)[::-1])
        if not ranked.size or ranked[-1] <= 0.0:
            return 0
        return min(int(np.searchsorted(ranked, part * (1.0 - 1e-12))) + 1, int(ranked.size))


def contributions(errors: IntArray, comparisons: IntArray, *, shared: bool) -> Contributions:
    """Shares of the variance by identity.

    Parameters
    ----------
    errors, comparisons : int64 arrays, shape (G,)
    shared
        Whether each comparison is counted at two identities (impostor comparisons), so that it goes with either.
    """
    total, wrong = float(comparisons.sum()), float(errors.sum())
    rate = wrong / total if total else float("nan")
    excess = errors - (rate * comparisons if total else 0.0)
    squares = excess * excess
    everything = float(squares.sum())
    share = squares / everything if everything > 0.0 else np.zeros_like(squares)
    each = 2.0 if shared else 1.0
    left = total / each - comparisons
    remaining = wrong / each - errors
    without = np.divide(remaining, left, out=np.full(left.size, np.nan), where=left > 0.0)
    return Contributions(errors, comparisons, np.asarray(excess, dtype=np.float64), share, without, rate)
