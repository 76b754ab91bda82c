"""Variances of error rates given the number of instances of each identity (the paper, end of §5.1).

The expectation of an identity's errors then depends on its size, so that identities are compared with identities of
their own size only: residuals are taken within strata of equal sizes. Strata with too few identities are pooled with
their neighbours in size. Within a stratum the mean is estimated from the same identities, which makes residuals too
small; sums of squares are therefore divided by what they keep on average: (n − 1)/n for n identities of equal size.
"""

from __future__ import annotations

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.counts.tally import GenuineTally, ImpostorTally
from matchbound.stats.variance import pair_columns

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
    m, n, first, second = pair_columns(tally, k)
    taking_part = tally.comparisons > 0
    stratum = np.full(sizes.size, -1)
    stratum[taking_part] = pooled_sizes(sizes[taking_part], LEAST_FAR)
    count = int(stratum.max(initial=-1)) + 1
    if int(np.count_nonzero(taking_part)) < LEAST_FAR:
        return float("nan")
    low = np.minimum(stratum[first], stratum[second])
    high = np.maximum(stratum[first], stratum[second])
    cell = low * count + high
    cell_m = np.bincount(cell, weights=m, minlength=count * count)
    cell_n = np.bincount(cell, weights=n, minlength=count * count)
    rate = np.divide(cell_n, cell_m, out=np.zeros_like(cell_n), where=cell_m > 0)
    d = n - rate[cell] * m
    members = np.bincount(stratum[taking_part], minlength=count).astype(np.float64)
    rows, compared = _by_stratum(d, first, second, stratum, count), _by_stratum(m, first, second, stratum, count)
    rest = _rests(d, m, first, second, stratum, rows, compared)
    rests = np.bincount(cell, weights=rest * rest, minlength=count * count).reshape(count, count)
    everybody = float(members.sum())
    complete = first.size == everybody * (everybody - 1.0) / 2.0 and bool(np.all(m == sizes[first] * sizes[second]))
    total = 0.0
    for a in range(count):
        inside = stratum == a
        size = members[a]
        r = rows[inside].sum(axis=1)
        noise = 0.0
        for b in range(count):
            cell_rests = rests[min(a, b), max(a, b)]
            if b == a:  # symmetric: both orders of each pair
                variance = 2.0 * cell_rests * (size - 1.0) / (size - 3.0)
                noise += (size - 2.0) / size * variance
            else:
                variance = cell_rests * size * members[b] / ((size - 1.0) * (members[b] - 1.0))
                noise += (size - 1.0) / size * variance
            total += 2.0 * variance
        kept = _kept_of_rows(sizes, inside, taking_part) if complete else kept_share(compared[inside].sum(axis=1))
        total += 4.0 * (float((r * r).sum()) - noise) / kept
    return total / float(tally.comparisons.sum()) ** 2


def _by_stratum(value: FloatArray, first: IntArray, second: IntArray, stratum: IntArray, count: int) -> FloatArray:
    """Σ_j value_ij over the partners j of each stratum, shape (G, count)."""
    size = stratum.size
    summed = np.bincount(first * count + stratum[second], weights=value, minlength=size * count).astype(np.float64)
    summed = summed + np.bincount(second * count + stratum[first], weights=value, minlength=size * count)
    return summed.reshape(size, count)


def _rests(
    d: FloatArray,
    m: FloatArray,
    first: IntArray,
    second: IntArray,
    stratum: IntArray,
    rows: FloatArray,
    compared: FloatArray,
) -> FloatArray:
    """D_ij without the effects of i and j, shape (P,).

    Between two strata the effect of i is r_i/m_i per comparison; within one, r_i holds its partners' effects too, and
    with n identities the effect is (n − 1)/(n − 2) times that.
    """
    members = np.bincount(stratum[stratum >= 0], minlength=rows.shape[1]).astype(np.float64)
    effect = np.divide(rows, compared, out=np.zeros_like(rows), where=compared > 0)
    own = np.flatnonzero(stratum >= 0)
    inner = members[stratum[own]]
    effect[own, stratum[own]] *= np.where(inner > 2, (inner - 1.0) / np.maximum(inner - 2.0, 1.0), 0.0)
    return np.asarray(d - m * (effect[first, stratum[second]] + effect[second, stratum[first]]))


def _kept_of_rows(sizes: IntArray, inside: BoolArray, taking_part: BoolArray) -> float:
    """How much of Σ_i Var(effect of i) the r_i of a stratum keep when all pairs were compared.

    With U_i the effect of i per comparison, what i adds to the total is M_i(Γ − M_i)U_i, Γ = ΣM. Of it r_i keeps
    M_i(Γ − Γ_a)(U_i − Ū) from partners in other strata, Ū the mean weighted by M, and
    M_i(Γ_a − 2M_i)U_i + M_i·ΣMU − M_i(Γ_a − M_i)·2Σ_k M_k(Γ_a − M_k)U_k/(Γ_a² − ΣM²) from its own.
    """
    w = sizes[inside].astype(np.float64)
    whole, part = float(sizes[taking_part].sum()), float(w.sum())
    between: FloatArray = np.diag(w) - np.outer(w, w) / part
    pairs = w * (part - w)
    within: FloatArray = np.diag(w * (part - 2.0 * w)) + np.outer(w, w) - np.outer(pairs, 2.0 * pairs) / pairs.sum()
    linear = (whole - part) * between + within
    return float((linear**2).sum()) / float(((w * (whole - w)) ** 2).sum())
