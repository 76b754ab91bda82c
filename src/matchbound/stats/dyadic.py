"""The variance of a statistic that is linear in comparisons which share identities.

A statistic is Σ_x w_x + constant, one residual w_x per comparison x. Comparisons that have no identity (or other unit)
in common are independent, so its variance is estimated by Σ w_x·w_y over all pairs (x, y) that have one (Aronow, Samii
& Assenova 2015, eq. 3). With u_x the units of a comparison (one or two), that sum is Σ_u (Σ_{x∋u} w_x)² −
Σ_{u<v} (Σ_{x={u,v}} w_x)²: comparisons of the same two units are counted twice in the first sum. For a false accept
rate it is the paper's (4R − 2Q)/N2².
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class DyadicSums:
    """What the residuals of a statistic add up to.

    - own, shape (U,): Σ of the residuals of the comparisons within each unit (genuine comparisons of an identity).
    - shared, shape (U,): Σ of the residuals of the comparisons of each unit with others; a comparison counts at both.
    - pair_square: Σ_{u<v} (Σ of the residuals of {u, v})².
    """

    own: FloatArray
    shared: FloatArray
    pair_square: float

    @property
    def influence(self) -> FloatArray:
        """What each unit adds to the statistic, shape (U,)."""
        return self.own + self.shared

    @property
    def variance(self) -> float:
        """The plug-in; it can be negative in small samples."""
        return float(self.influence @ self.influence) - self.pair_square

    @property
    def floor(self) -> float:
        """The variance if comparisons had nothing in common beyond those of the same two units (or of one unit).

        A negative covariance of `own` and `shared` is poorly estimated, and is not believed below this.
        """
        return self.pair_square + float(self.own @ self.own)

    def corrected(self, units: float, *, floored: bool = True) -> float:
        """The variance without the bias of the plug-in, and not below its floor, for an effective number of units."""
        own, cross, between = bias_factors(units)
        value = own * float(self.own @ self.own) + 2.0 * cross * float(self.own @ self.shared)
        pairs = between * (float(self.shared @ self.shared) - self.pair_square)
        return max(value + max(pairs, self.pair_square), self.floor) if floored else value + pairs

    def __mul__(self, factor: float) -> DyadicSums:
        return DyadicSums(self.own * factor, self.shared * factor, self.pair_square * factor * factor)

    def plus(self, other: DyadicSums, pair_product: float = 0.0) -> DyadicSums:
        """Sums of the sum of two statistics; `pair_product` is Σ_{u<v} of the product of both residuals of {u, v}."""
        square = self.pair_square + 2.0 * pair_product + other.pair_square
        return DyadicSums(self.own + other.own, self.shared + other.shared, max(square, 0.0))


def bias_factor(metric: str, identities: float, otherwise: float = math.inf) -> float:
    """What the plug-in variance lacks on average: G(G−1)/((G−2)(G−3)) for FAR, G/(G−1) for FRR.

    `otherwise` where there are too few identities for a correction: three or fewer for FAR, one for FRR.
    """
    g = identities
    if metric == "far":
        return g * (g - 1.0) / ((g - 2.0) * (g - 3.0)) if g > 3.0 else otherwise
    return g / (g - 1.0) if g > 1.0 else otherwise


def bias_factors(units: float) -> tuple[float, float, float]:
    """What Σown², Σown·shared and Σshared² − Σpairs² lack on average as estimates of variance, as factors.

    Those of FRR, G/(G−2) and those of FAR, with G the effective number of units, at least 4.
    """
    g = max(units, 4.0)
    return bias_factor("frr", g), g / (g - 2.0), bias_factor("far", g)


def effective_number(weights: FloatArray | IntArray) -> float:
    """(Σw)²/Σw²: how many equal units weigh as much as these (0 for none)."""
    values = weights.astype(np.float64)
    squares = float(values @ values)
    return float(values.sum()) ** 2 / squares if squares > 0.0 else 0.0


def dyadic_sums(residual: FloatArray, unit_a: IntArray, unit_b: IntArray, n_units: int) -> DyadicSums:
    """Sums by unit and pair of units; all of shape (n,), a comparison within a unit has the same unit twice."""
    within = unit_a == unit_b
    own: FloatArray = np.bincount(unit_a[within], weights=residual[within], minlength=n_units).astype(np.float64)
    between = ~within
    one, two, w = unit_a[between], unit_b[between], residual[between]
    shared = (np.bincount(one, w, n_units) + np.bincount(two, w, n_units)).astype(np.float64)
    keys = np.minimum(one, two) * np.int64(max(n_units, 1)) + np.maximum(one, two)
    _, pair = np.unique(keys, return_inverse=True)
    by_pair = np.bincount(pair.reshape(-1), weights=w)
    return DyadicSums(own, shared, float(by_pair @ by_pair))


def bipartite_variance(
    rows: FloatArray, columns: FloatArray, pair_square: float, row_size: float, column_size: float
) -> float:
    """Variance of a mean over comparisons of two sets of different people, without the bias of the plug-in.

    With D_ij the residuals of probe i and gallery person j, r_i and c_j their sums, the plug-in is Σr² + Σc²
    − ΣD². For n probes and k gallery people, each compared with each, residuals are centred by the grand
    mean; analysis of variance of the two-way layout gives n/(n−1)·Σr² + k/(k−1)·Σc² − nk/((n−1)(k−1))·(ΣD² −
    Σr²/k − Σc²/n), which is unbiased (Owen 2007, §4).

    - rows, columns, pair_square: r_i, c_j and ΣD_ij², each comparison divided by the number of all.
    - row_size, column_size: n and k, or effective numbers in unbalanced data. A side with one person says nothing about
      people, and its factor is 1.
    """
    r, c = float(rows @ rows), float(columns @ columns)
    n = row_size if row_size > 1.0 else np.inf
    k = column_size if column_size > 1.0 else np.inf
    up_n, up_k = 1.0 / (1.0 - 1.0 / n), 1.0 / (1.0 - 1.0 / k)
    return up_n * r + up_k * c - up_n * up_k * (pair_square - r / k - c / n)
