"""Variances of error rates given the number of instances of each identity (the paper, end of §5.1).

The expectation of an identity's errors then depends on its size, so that identities are compared with identities of
their own size only: residuals are taken within strata of equal sizes. Strata with too few identities are pooled with
their neighbours in size. Within a stratum the mean is estimated from the same identities, which makes residuals too
small; sums of squares are therefore divided by what they keep on average: (n − 1)/n for n identities of equal size.
"""

from __future__ import annotations

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.counts.tally import AllPairs, GenuineTally, ImpostorTally

# Identities that a stratum must hold: for FRR, for FAR, and for drawing identities in exchange.
LEAST_FRR, LEAST_FAR, LEAST_DRAWN = 2, 4, 5


def pooled_sizes(sizes: IntArray, least: int) -> IntArray:
    """The stratum of each identity, shape (G,): equal sizes together, and neighbouring sizes until `least` are.

    Strata are numbered from the smallest size on. What is left over at the large end joins the stratum before it.
    """
    values, place, members = np.unique(sizes, return_inverse=True, return_counts=True)
    stratum = np.zeros(values.size, dtype=np.int64)
    number = held = 0
    for k, count in enumerate(members):
        stratum[k] = number
        held += int(count)
        if held >= least:
            number, held = number + 1, 0
    if held and number:
        stratum[stratum == number] = number - 1
    return stratum[place.reshape(-1)]


def kept_share(weights: FloatArray) -> float:
    """How much of Σ(w_i·u_i)² is left, on average, when independent u_i lose their weighted mean.

    Σw_i²(1 − 2w_i/W + S₂/W²)/S₂, W = Σw, S₂ = Σw²: (n − 1)/n for n equal weights; 0 for a single one.
    """
    total, squares = float(weights.sum()), float((weights**2).sum())
    if total <= 0.0:
        return 0.0
    return 1.0 - 2.0 * float((weights**3).sum()) / (total * squares) + squares / total**2


def frr_fixed_sizes(tally: GenuineTally, k: int) -> float:
    """Σ_s Σ_i (e_i − q_s·g_i)²/c_s over strata s of size, divided by T²; c_s is `kept_share` of the g_i.

    NaN where only one identity has genuine comparisons.
    """
    taking_part = tally.comparisons > 0
    g, e = tally.comparisons[taking_part].astype(np.float64), tally.errors[k][taking_part].astype(np.float64)
    stratum = pooled_sizes(tally.comparisons[taking_part], LEAST_FRR)
    total = 0.0
    for s in range(int(stratum.max(initial=-1)) + 1):
        own, wrong = g[stratum == s], e[stratum == s]
        kept = kept_share(own)
        if kept <= 1e-12:
            return float("nan")
        total += float(((wrong - wrong.sum() / own.sum() * own) ** 2).sum()) / kept
    return total / float(g.sum()) ** 2


def far_fixed_sizes(tally: ImpostorTally, k: int, sizes: IntArray) -> float:
    """Variance of the impostor rate given the M_i.

    With p_ab the rate between strata a and b, D_ij = n_ij − p_ab·m_ij, r_i = Σ_j D_ij. An impostor count is the sum of
    an effect of i, an effect of j, and a rest E_ij; given the sizes, Var(Σn) = 4·Σ Var(effect of i) + 2·Σ Var(E_ij)
    over ordered pairs. Rests are what D_ij keeps when the effects r are taken out of it; their part of Σr_i² is
    subtracted. Losses of degrees of freedom are made good cell by cell. With equal sizes this is the plug-in variance
    times its bias correction. NaN with fewer than four identities.
    """
    assert tally.erred is not None
    assert tally.compared is not None
    used = tally.comparisons > 0
    size, sizes = int(np.count_nonzero(used)), sizes[used]
    if size < LEAST_FAR:
        return float("nan")
    compared, erred = tally.compared.taken(used), tally.erred[k].taken(used)
    first, second = np.triu_indices(size, k=1) if isinstance(compared, AllPairs) else (compared.first, compared.second)
    m, n = (table.of_pairs(first, second, size).astype(np.float64) for table in (compared, erred))
    stratum = pooled_sizes(sizes, LEAST_FAR)
    members = np.bincount(stratum).astype(np.float64)
    count = members.size
    cell = np.minimum(stratum[first], stratum[second]) * count + np.maximum(stratum[first], stratum[second])

    def by_stratum(value: FloatArray) -> FloatArray:
        """Σ_j value_ij over the partners j of each stratum, shape (G, count)."""
        ends = ((first, second), (second, first))
        total = sum(np.bincount(one * count + stratum[two], value, size * count) for one, two in ends)
        return np.asarray(total, dtype=np.float64).reshape(size, count)

    made, wrong = (np.bincount(cell, value, count * count) for value in (m, n))
    d = n - np.divide(wrong, made, out=np.zeros_like(made), where=made > 0)[cell] * m
    rows, comparisons = by_stratum(d), by_stratum(m)
    # Between two strata the effect of i is r_i/m_i per comparison; within one, r_i holds its partners' effects too, and
    # with n identities the effect is (n − 1)/(n − 2) times that.
    effect = np.divide(rows, comparisons, out=np.zeros_like(rows), where=comparisons > 0)
    effect[np.arange(size), stratum] *= ((members - 1.0) / (members - 2.0))[stratum]
    rest = d - m * (effect[first, stratum[second]] + effect[second, stratum[first]])
    rests = np.bincount(cell, rest * rest, count * count).reshape(count, count)
    own, others = np.diag(rests), rests + np.triu(rests, 1).T
    variance = others * np.multiply.outer(members / (members - 1.0), members / (members - 1.0))
    np.fill_diagonal(variance, 2.0 * own * (members - 1.0) / (members - 3.0))  # both orders of each pair
    noise = variance * ((members - 1.0) / members)[:, None]
    np.fill_diagonal(noise, np.diag(variance) * (members - 2.0) / members)
    total = 2.0 * float(variance.sum())
    complete = first.size == size * (size - 1) // 2 and bool(np.all(m == sizes[first] * sizes[second]))
    for a in range(count):
        inside = stratum == a
        kept = _kept_of_rows(sizes, inside) if complete else kept_share(comparisons[inside].sum(axis=1))
        total += 4.0 * float((rows[inside].sum(axis=1) ** 2).sum() - noise[a].sum()) / kept
    return total / float(tally.comparisons.sum()) ** 2


def _kept_of_rows(sizes: IntArray, inside: BoolArray) -> float:
    """How much of Σ_i Var(effect of i) the r_i of a stratum keep when all pairs were compared.

    With U_i the effect of i per comparison, what i adds to the total is M_i(Γ − M_i)U_i, Γ = ΣM. Of it r_i keeps
    M_i(Γ − Γ_a)(U_i − Ū) from partners in other strata, Ū the mean weighted by M, and
    M_i(Γ_a − 2M_i)U_i + M_i·ΣMU − M_i(Γ_a − M_i)·2Σ_k M_k(Γ_a − M_k)U_k/(Γ_a² − ΣM²) from its own.
    """
    w = sizes[inside].astype(np.float64)
    whole, part = float(sizes.sum()), float(w.sum())
    between: FloatArray = np.diag(w) - np.outer(w, w) / part
    pairs = w * (part - w)
    within: FloatArray = np.diag(w * (part - 2.0 * w)) + np.outer(w, w) - np.outer(pairs, 2.0 * pairs) / pairs.sum()
    linear = (whole - part) * between + within
    return float((linear**2).sum()) / float(((w * (whole - w)) ** 2).sum())
