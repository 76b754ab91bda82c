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


@numba.njit(nogil=True, cache=True)
def weigh_by_identity(
    first: Any,
    second: Any,
    owner: Any,
    impostor_ends: Any,
    genuine_ends: Any,
    weight: Any,
    additive: bool,
    extra: float,
    matched: Any,
    accepted: Any,
) -> float:
    """Weight of the comparisons that match at each step, when identities have weights.

    An impostor comparison of {i, j} weighs W_i·W_j (additive: W_i + W_j) plus `extra`, a genuine one of i weighs W_i.
    Returns the area under the curve, not yet divided by the two totals.

    first, second : int64 arrays, shape (N,); owner : int64 array, shape (T,)
        Identities, strictest comparison first.
    impostor_ends, genuine_ends : int64 arrays, shape (K,)
        Comparisons of each kind that match at each step.
    weight : float64 array, shape (G,)
    matched, accepted : float64 arrays, shape (K,), written
    """
    sum_matched = 0.0
    sum_accepted = 0.0
    area = 0.0
    at = 0
    kin_at = 0
    for k in range(impostor_ends.size):
        rise = 0.0
        if additive:
            for c in range(at, impostor_ends[k]):
                rise += weight[first[c]] + weight[second[c]] + extra
        else:
            for c in range(at, impostor_ends[k]):
                rise += weight[first[c]] * weight[second[c]] + extra
        gain = 0.0
        for c in range(kin_at, genuine_ends[k]):
            gain += weight[owner[c]]
        at = impostor_ends[k]
        kin_at = genuine_ends[k]
        area += rise * (sum_accepted + 0.5 * gain)
        sum_matched += rise
        sum_accepted += gain
        matched[k] = sum_matched
        accepted[k] = sum_accepted
    return area


@numba.njit(nogil=True, cache=True)
def weigh_by_comparison(
    impostor: Any, genuine: Any, impostor_ends: Any, genuine_ends: Any, matched: Any, accepted: Any
) -> float:
    """The same when each comparison has its own weight.

    impostor, genuine : int64 arrays, shapes (N,) and (T,)
        How often each comparison counts, strictest first.
    """
    sum_matched = 0.0
    sum_accepted = 0.0
    area = 0.0
    at = 0
    kin_at = 0
    for k in range(impostor_ends.size):
        rise = 0.0
        for c in range(at, impostor_ends[k]):
            rise += impostor[c]
        gain = 0.0
        for c in range(kin_at, genuine_ends[k]):
            gain += genuine[c]
        at = impostor_ends[k]
        kin_at = genuine_ends[k]
        area += rise * (sum_accepted + 0.5 * gain)
        sum_matched += rise
        sum_accepted += gain
        matched[k] = sum_matched
        accepted[k] = sum_accepted
    return area


@numba.njit(nogil=True, cache=True)
def read_curve(matched: Any, accepted: Any, far_targets: Any, frr_targets: Any, frr_out: Any, far_out: Any) -> float:
    """FRR at FAR targets, FAR at FRR targets (both written) and EER (returned) of a weighted curve.

    matched, accepted : float64 arrays, shape (K,)
        Weight of the impostor and genuine comparisons that match at each step; the last step matches all.
    """
    last = matched.size - 1
    all_impostor = matched[last]
    all_genuine = accepted[last]
    slack = 1.0 + 1e-12
    for row in range(far_targets.size):
        limit = far_targets[row] * slack
        low, high = 0, last + 1
        while low < high:
            middle = (low + high) // 2
            if matched[middle] / all_impostor <= limit:
                low = middle + 1
            else:
                high = middle
        frr_out[row] = 1.0 - accepted[low - 1] / all_genuine
    for row in range(frr_targets.size):
        limit = frr_targets[row] * slack
        low, high = 0, last
        while low < high:
            middle = (low + high) // 2
            if 1.0 - accepted[middle] / all_genuine <= limit:
                high = middle
            else:
                low = middle + 1
        far_out[row] = matched[low] / all_impostor
    low, high = 0, last
    while low < high:
        middle = (low + high) // 2
        if matched[middle] / all_impostor >= 1.0 - accepted[middle] / all_genuine:
            high = middle
        else:
            low = middle + 1
    far = matched[low] / all_impostor
    frr = 1.0 - accepted[low] / all_genuine
    old_far = matched[low - 1] / all_impostor
    old_frr = 1.0 - accepted[low - 1] / all_genuine
    gap = old_frr - old_far
    moved = gap + far - frr
    if moved <= 0.0:
        return old_far
    return float(old_far + (far - old_far) * (gap / moved))


@numba.njit(nogil=True, cache=True)
def quadratic_totals(first: Any, second: Any, amount: Any, weights: Any, out: Any) -> None:
    """Σ W_i·W_j·amount over unordered pairs {i, j}, for each row of weights.

    first, second : int64 arrays, shape (P,); amount : float64 array, shape (P,)
    weights : float64 array, shape (B, G); out : float64 array, shape (B,), written
    """
    for b in range(weights.shape[0]):
        total = 0.0
        for p in range(first.size):
            total += weights[b, first[p]] * weights[b, second[p]] * amount[p]
        out[b] = total


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
            if additive:
                out[b, cell[c]] += weight[first[c]] + weight[second[c]] + extra[b]
            else:
                out[b, cell[c]] += weight[first[c]] * weight[second[c]] + extra[b]
