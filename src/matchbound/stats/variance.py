"""Variances of error rates whose comparisons share identities.

The impostor rate p = Σn/Σm is a ratio of sums over identity pairs. With D_ij = n_ij − p·m_ij, r_i = Σ_j D_ij,
R = Σ r_i² and Q = Σ_{i≠j} D_ij² (ordered pairs), its variance is (4R − 2Q)/N2², N2 = Σ_{i≠j} m_ij: the paper's
plug-in (Fogliato, Patil & Perona 2024, eq. 9) and, on balanced data, its jackknife (Proposition 3). The
genuine rate q = Σe/Σg is a ratio of sums over identities, with variance Σ(e_i − q·g_i)²/T².

The sums are whole numbers, and they are kept whole until the last division: what cancels, cancels exactly, so
that a variance of zero is zero and never ±1e-20.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import AllPairs, GenuineTally, ImpostorTally, PairTable


def whole_sum(*factors: IntArray) -> int:
    """Σ of a product of arrays of whole numbers, exact however large."""
    largest = float(factors[0].size)
    for factor in factors:
        largest *= max(float(np.abs(factor).max(initial=0)), 1.0)
    if largest < 2.0**62:
        product = factors[0].astype(np.int64)
        for factor in factors[1:]:
            product = product * factor
        return int(product.sum())
    total = factors[0].astype(object)
    for factor in factors[1:]:
        total = total * factor.astype(object)
    return int(total.sum())


def impostor_sums(tally: ImpostorTally, k: int) -> tuple[Fraction, Fraction]:
    """(R, Q) at threshold k, exact."""
    errors = tally.errors[k]
    n2 = int(tally.comparisons.sum())
    p = Fraction(int(errors.sum()), n2)
    r = (
        whole_sum(errors, errors)
        - 2 * p * whole_sum(errors, tally.comparisons)
        + p * p * whole_sum(tally.comparisons, tally.comparisons)
    )
    q = int(tally.sum_nn[k]) - 2 * p * int(tally.sum_nm[k]) + p * p * tally.sum_mm
    return r, q


def far_plug_in(tally: ImpostorTally, k: int) -> float:
    """(4R − 2Q)/N2² at threshold k. It can be negative in small samples."""
    r, q = impostor_sums(tally, k)
    return float((4 * r - 2 * q) / int(tally.comparisons.sum()) ** 2)


def far_jackknife(tally: ImpostorTally, k: int) -> float:
    """Delete-one-identity jackknife with its correction for pairs (the paper's eq. 10).

    (G−2)²/G² · Σ_i (p_{−i} − p)² − 2Q/N2². Equal to the plug-in when all identities have equally many
    comparisons; an identity without which no comparison is left makes it undefined (NaN).
    """
    _, q = impostor_sums(tally, k)
    taking_part = tally.comparisons > 0
    m, s = tally.comparisons[taking_part], tally.errors[k][taking_part]
    n = float(m.sum()) / 2.0
    size = float(m.size)
    left = n - m
    if np.any(left <= 0):
        return float("nan")
    spread = float(((_excess(s, m) / left) ** 2).sum())
    return (size - 2.0) ** 2 / size**2 * spread - float(2 * q) / float((2.0 * n) ** 2)


def _excess(errors: IntArray, comparisons: IntArray) -> FloatArray:
    """n_i − p·m_i with p = Σn/Σm, rounded once, shape (G,): near p = 1 the difference of floats would be noise.

    A rate without identity i differs from p by minus this, over the comparisons that are left.
    """
    total, wrong = int(comparisons.sum()), int(errors.sum())
    if float(total) * float(comparisons.max(initial=0)) < 2.0**62:
        return np.asarray((errors * total - wrong * comparisons) / float(total))
    exact = errors.astype(object) * total - wrong * comparisons.astype(object)
    return np.asarray([float(Fraction(value, total)) for value in exact], dtype=np.float64)


def pair_columns(tally: ImpostorTally, k: int) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """(m, n, first, second) over all identity pairs that were compared, shape (P,) each."""
    assert tally.erred is not None
    assert tally.compared is not None
    size = int(tally.comparisons.size)
    compared = tally.compared
    if isinstance(compared, AllPairs):
        first, second = np.triu_indices(size, k=1)
        compared = PairTable(first, second, compared.instances[first] * compared.instances[second])
    erred = compared.look_up(tally.erred[k], size)
    return compared.count.astype(np.float64), erred.astype(np.float64), compared.first, compared.second


def frr_plug_in(tally: GenuineTally, k: int) -> float:
    """Σ(e_i − q·g_i)²/T² at threshold k (the paper's eq. 6; unbalanced, its three-term delta formula)."""
    total = int(tally.comparisons.sum())
    q = Fraction(int(tally.errors[k].sum()), total)
    value = (
        whole_sum(tally.errors[k], tally.errors[k])
        - 2 * q * whole_sum(tally.errors[k], tally.comparisons)
        + q * q * whole_sum(tally.comparisons, tally.comparisons)
    )
    return float(value / total**2)


def frr_jackknife(tally: GenuineTally, k: int) -> float:
    """(G−1)²/G² · Σ(q_{−i} − q)², over identities with genuine comparisons; NaN with only one of them."""
    taking_part = tally.comparisons > 0
    g, e = tally.comparisons[taking_part], tally.errors[k][taking_part]
    size = float(g.size)
    if size < 2:
        return float("nan")
    change = _excess(e, g) / (float(g.sum()) - g)
    return float((size - 1.0) ** 2 / size**2 * (change**2).sum())


def effective_identities(sizes: IntArray) -> float:
    """(Σw)²/Σw²: how many equal identities weigh as much as these (0 for none)."""
    weights = sizes.astype(np.float64)
    squares = float((weights * weights).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def far_bias_factor(identities: float) -> float:
    """G(G−1)/((G−2)(G−3)): what the plug-in variance of FAR lacks on average; infinite for G ≤ 3."""
    if identities <= 3.0:
        return float("inf")
    return identities * (identities - 1.0) / ((identities - 2.0) * (identities - 3.0))


def frr_bias_factor(identities: float) -> float:
    """G/(G−1): what the plug-in variance of FRR lacks on average; infinite for G ≤ 1."""
    return identities / (identities - 1.0) if identities > 1.0 else float("inf")
