"""One pass over comparisons sorted from the strictest threshold to the most lenient one.

Comparisons come in the order in which they start to match. When an impostor comparison of {i, j} crosses, S_i and
S_j grow by one, and so do the ordered sums ΣS², ΣSm, Σn² and Σnm by amounts known at once: the variance of FAR at
every threshold costs one pass. The bootstraps walk the same order with weights of identities.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def impostor_sums(
    first: Any, second: Any, pair: Any, m: Any, pair_m: Any, weight: Any, ends: Any, out: Any
) -> None:
    """Running sums over ordered identity pairs at the end of each step.

    Identity i stands for weight[i] copies (1 for the data themselves), which are never compared with each other.

    first, second : int64 arrays, shape (N,)
        The identities of each impostor comparison, strictest first.
    pair : int64 array, shape (N,)
        The number of the identity pair, in 0..P−1.
    m, pair_m : int64 arrays, shapes (G,) and (P,)
        Comparisons of a copy of identity i (weighted), and of one copy of each side of a pair (not weighted).
    weight : int64 array, shape (G,)
    ends : int64 array, shape (K,)
        Impostor comparisons that match at each step, never decreasing.
    out : int64 array, shape (5, K)
        Σn/2 (unordered errors), ΣS², ΣSm, Σn², Σnm.
    """
    s = np.zeros(m.size, np.int64)
    n = np.zeros(pair_m.size, np.int64)
    total = np.int64(0)
    ss = np.int64(0)
    sm = np.int64(0)
    nn = np.int64(0)
    nm = np.int64(0)
    at = 0
    for k in range(ends.size):
        for c in range(at, ends[k]):
            i, j, p = first[c], second[c], pair[c]
            wi, wj = weight[i], weight[j]
            both = wi * wj
            if both == 0:
                continue
            total += both
            ss += both * (2 * s[i] + wj) + both * (2 * s[j] + wi)
            sm += both * (m[i] + m[j])
            nn += 2 * both * (2 * n[p] + 1)
            nm += 2 * both * pair_m[p]
            s[i] += wj
            s[j] += wi
            n[p] += 1
        at = ends[k]
        out[0, k] = total
        out[1, k] = ss
        out[2, k] = sm
        out[3, k] = nn
        out[4, k] = nm


@numba.njit(nogil=True, cache=True)
def genuine_sums(owner: Any, g: Any, weight: Any, ends: Any, out: Any) -> None:
    """Running sums over identities at the end of each step, of genuine comparisons that match.

    owner : int64 array, shape (T,)
        The identity of each genuine comparison, strictest first.
    g, weight : int64 arrays, shape (G,)
        Genuine comparisons of a copy of identity i, and its copies.
    ends : int64 array, shape (K,)
        Genuine comparisons that match at each step, never decreasing.
    out : int64 array, shape (3, K)
        Σh, Σh², Σhg, h the matches of one identity.
    """
    h = np.zeros(g.size, np.int64)
    total = np.int64(0)
    hh = np.int64(0)
    hg = np.int64(0)
    at = 0
    for k in range(ends.size):
        for c in range(at, ends[k]):
            i = owner[c]
            total += weight[i]
            hh += weight[i] * (2 * h[i] + 1)
            hg += weight[i] * g[i]
            h[i] += 1
        at = ends[k]
        out[0, k] = total
        out[1, k] = hh
        out[2, k] = hg


@numba.njit(nogil=True, cache=True, inline="always")
def _weight(weight: Any, i: int, j: int, additive: bool) -> float:
    if additive:
        return weight[i] + weight[j]
    return weight[i] * weight[j]


@numba.njit(nogil=True, cache=True)
def replicate_curves(
    first: Any,
    second: Any,
    owner: Any,
    impostor_ends: Any,
    genuine_ends: Any,
    weights: Any,
    additive: bool,
    impostor_total: Any,
    genuine_total: Any,
    extra: Any,
    far_targets: Any,
    frr_targets: Any,
    frr_out: Any,
    far_out: Any,
    eer_out: Any,
    auc_out: Any,
) -> None:
    """FRR at FAR targets, FAR at FRR targets, EER and AUC of each replicate's weighted curve.

    A comparison of {i, j} weighs W_i·W_j (additive: W_i + W_j) plus `extra`, a genuine one of i weighs W_i.

    impostor_ends, genuine_ends : int64 arrays, shape (K,)
        Comparisons of each kind that match at each step.
    weights : float64 array, shape (B, G)
    impostor_total, genuine_total, extra : float64 arrays, shape (B,)
        Σ of the weights of all comparisons, and what each impostor comparison weighs on top.
    far_targets, frr_targets : float64 arrays, shapes (L,) and (M,)
        Increasing and decreasing.
    frr_out, far_out : float64 arrays, shapes (B, L) and (B, M)
    eer_out, auc_out : float64 arrays, shape (B,)
    """
    steps = impostor_ends.size
    slack = 1.0 + 1e-12
    for b in range(weights.shape[0]):
        weight = weights[b]
        more = extra[b]
        all_impostor = impostor_total[b]
        all_genuine = genuine_total[b]
        matched = 0.0
        accepted = 0.0
        at = 0
        gat = 0
        target = 0
        reverse = 0
        old_far = 0.0
        old_frr = 1.0
        area = 0.0
        crossed = False
        while reverse < frr_targets.size and old_frr <= frr_targets[reverse] * slack:
            far_out[b, reverse] = old_far
            reverse += 1
        for k in range(steps):
            for c in range(at, impostor_ends[k]):
                matched += _weight(weight, first[c], second[c], additive) + more
            at = impostor_ends[k]
            for c in range(gat, genuine_ends[k]):
                accepted += weight[owner[c]]
            gat = genuine_ends[k]
            far = matched / all_impostor
            frr = 1.0 - accepted / all_genuine
            while target < far_targets.size and far > far_targets[target] * slack:
                frr_out[b, target] = old_frr
                target += 1
            while reverse < frr_targets.size and frr <= frr_targets[reverse] * slack:
                far_out[b, reverse] = far
                reverse += 1
            if not crossed and far >= frr:
                crossed = True
                gap = old_frr - old_far
                moved = gap + far - frr
                eer_out[b] = old_far + (far - old_far) * (gap / moved if moved > 0.0 else 0.0)
            area += (far - old_far) * (2.0 - frr - old_frr) * 0.5
            old_far = far
            old_frr = frr
        for left in range(target, far_targets.size):
            frr_out[b, left] = old_frr
        for left in range(reverse, frr_targets.size):
            far_out[b, left] = old_far
        auc_out[b] = area


@numba.njit(nogil=True, cache=True)
def draw_within(weight: Any, starts: Any, members: Any, rng: Any, counts: Any) -> int:
    """For each copy of each identity draw as many of its comparisons as it has, with replacement.

    weight : float64 array, shape (G,)
        Copies of each identity.
    starts : int64 array, shape (G + 1,)
        The comparisons of identity i are members[starts[i]:starts[i + 1]].
    counts : int64 array, shape (N,)
        How often each comparison was drawn (added to). Returns how many draws were made.
    """
    drawn = 0
    for i in range(weight.size):
        low = starts[i]
        size = starts[i + 1] - low
        if size == 0:
            continue
        for _ in range(int(weight[i]) * size):
            counts[members[low + int(rng.random() * size)]] += 1
        drawn += int(weight[i]) * size
    return drawn


@numba.njit(nogil=True, cache=True)
def weighted_histogram(
    first: Any, second: Any, cell: Any, weights: Any, additive: bool, extra: Any, out: Any
) -> None:
    """Σ of the weights of the comparisons in each cell, for each replicate.

    first, second, cell : int64 arrays, shape (N,)
    weights : float64 array, shape (B, G)
    extra : float64 array, shape (B,)
    out : float64 array, shape (B, C), added to
    """
    for b in range(weights.shape[0]):
        weight = weights[b]
        for c in range(first.size):
            out[b, cell[c]] += _weight(weight, first[c], second[c], additive) + extra[b]
