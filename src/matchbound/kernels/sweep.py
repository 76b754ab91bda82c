"""One pass over comparisons sorted from the strictest threshold to the most lenient one.

Comparisons come in the order in which they start to match. When an impostor comparison of {i, j} crosses, S_i and
S_j grow by one, and so do the ordered sums ΣS², ΣSm, Σn² and Σnm by amounts known at once: the variance of FAR at
every threshold costs one pass. The bootstraps walk the same order with weights of identities, and take quadratic forms
of these weights on tables of identity pairs. Calibration pools neighbouring cells of the order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.kernels.compiling import compiled, inlined

# Resampling weights of so many replicates are multiplied at once.
REPLICATES = 128
EXACT32 = 2.0**24


@compiled()
def impostor_sums(first: Any, second: Any, pair: Any, m: Any, pair_m: Any, worth: Any, ends: Any, out: Any) -> None:
    """Running sums over ordered identity pairs at the end of each step.

    first, second : int64 arrays, shape (N,)
        The identities of each impostor comparison, strictest first.
    pair : int64 array, shape (N,)
        The number of the identity pair, in 0..P−1.
    m, pair_m : int64 arrays, shapes (G,) and (P,)
        What the comparisons of an identity and of a pair are worth in all.
    worth : array, shape (N,), of the type of `out`
        What each comparison adds to n_ij, S_i and S_j: 1 where comparisons are the units.
    ends : int64 array, shape (K,)
        Impostor comparisons that match at each step, never decreasing.
    out : int64 or float64 array, shape (4, K)
        ΣS², ΣSm, Σn², Σnm.
    """
    s = np.zeros(m.size, out.dtype)
    n = np.zeros(pair_m.size, out.dtype)
    ss = out.dtype.type(0)
    sm = out.dtype.type(0)
    nn = out.dtype.type(0)
    nm = out.dtype.type(0)
    at = 0
    for k in range(ends.size):
        for c in range(at, ends[k]):
            i, j, p, w = first[c], second[c], pair[c], worth[c]
            ss += 2 * w * (s[i] + s[j] + w)
            sm += w * (m[i] + m[j])
            nn += 2 * w * (2 * n[p] + w)
            nm += 2 * w * pair_m[p]
            s[i] += w
            s[j] += w
            n[p] += w
        at = ends[k]
        out[0, k] = ss
        out[1, k] = sm
        out[2, k] = nn
        out[3, k] = nm


@compiled()
def genuine_sums(owner: Any, g: Any, worth: Any, ends: Any, out: Any) -> None:
    """Running sums over identities at the end of each step, of genuine comparisons that match.

    owner : int64 array, shape (T,)
        The identity of each genuine comparison, strictest first.
    g : int64 array, shape (G,)
        What the genuine comparisons of an identity are worth in all.
    worth : array, shape (T,), of the type of `out`
        What each comparison adds to h, the matches of its identity.
    ends : int64 array, shape (K,)
        Genuine comparisons that match at each step, never decreasing.
    out : int64 or float64 array, shape (2, K)
        Σh², Σhg.
    """
    h = np.zeros(g.size, out.dtype)
    hh = out.dtype.type(0)
    hg = out.dtype.type(0)
    at = 0
    for k in range(ends.size):
        for c in range(at, ends[k]):
            i, w = owner[c], worth[c]
            hh += w * (2 * h[i] + w)
            hg += w * g[i]
            h[i] += w
        at = ends[k]
        out[0, k] = hh
        out[1, k] = hg


@compiled()
def cumulate_pairs(first: Any, second: Any, weight: Any, additive: bool, out: Any) -> None:
    """Running weight of impostor comparisons: {i, j} weighs W_i·W_j (additive: W_i + W_j).

    first, second : integer arrays, shape (N,), strictest comparison first
    weight : float64 array, shape (G,)
    out : float64 array, shape (N + 1,), written; out[c] is the weight of the first c comparisons
    """
    total = 0.0
    out[0] = 0.0
    for c in range(first.size):
        total += _weight_of_pair(weight, first[c], second[c], additive)
        out[c + 1] = total


@inlined
def _weight_of_pair(weight: Any, i: int, j: int, additive: bool) -> float:
    if additive:
        return float(weight[i] + weight[j])
    return float(weight[i] * weight[j])


@compiled()
def read_curve(
    matched: Any, extra: float, accepted: Any, ends: Any, kin_ends: Any, targets: Any, out: Any
) -> float:  # fmt: skip
    """FRR at FAR targets, FAR at FRR targets (both written) and EER (returned) of a weighted curve.

    matched : float64 array, shape (N + 1,); accepted : float64 array, shape (T + 1,)
        Running weights of impostor and genuine comparisons, strictest first.
    extra : float
        What each impostor comparison weighs on top.
    ends, kin_ends : int64 arrays, shape (K,)
        Impostor and genuine comparisons that match at each step; the last step matches all.
    targets, out : pairs of float64 arrays
        Targets of FAR and of FRR, and the FRR and the FAR there.
    """
    (far_targets, frr_targets), (frr_out, far_out) = targets, out
    last, curve = ends.size - 1, (matched, extra, accepted, ends, kin_ends)
    slack = 1.0 + 1e-12
    for row in range(far_targets.size):
        k = _first_step(curve, 0, last + 1, FAR_ABOVE, far_targets[row] * slack) - 1
        frr_out[row] = _rates_at(curve, k)[1]
    for row in range(frr_targets.size):
        k = _first_step(curve, 0, last, FRR_WITHIN, frr_targets[row] * slack)
        far_out[row] = _rates_at(curve, k)[0]
    k = _first_step(curve, 1, last, FAR_PASSED, 0.0)
    far, frr = _rates_at(curve, k)
    old_far, old_frr = _rates_at(curve, k - 1)
    gap = old_frr - old_far
    moved = gap + far - frr
    if moved <= 0.0:
        return float(old_far)
    return float(old_far + (far - old_far) * (gap / moved))


FAR_ABOVE, FRR_WITHIN, FAR_PASSED = 0, 1, 2


@inlined
def _first_step(curve: Any, low: int, high: int, asked: int, limit: float) -> int:
    """The first step from `low` on where FAR is above a limit, FRR within one, or FAR not below FRR; else `high`."""
    while low < high:
        middle = (low + high) // 2
        far, frr = _rates_at(curve, middle)
        if far > limit if asked == FAR_ABOVE else frr <= limit if asked == FRR_WITHIN else far >= frr:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def _rates_at(curve: Any, k: int) -> tuple[float, float]:
    """FAR and FRR at step k of a curve (matched, extra, accepted, ends, kin_ends)."""
    matched, extra, accepted, ends, kin_ends = curve
    far = (matched[ends[k]] + extra * ends[k]) / (matched[matched.size - 1] + extra * (matched.size - 1))
    return far, 1.0 - accepted[kin_ends[k]] / accepted[accepted.size - 1]


@compiled()
def curve_area(matched: Any, extra: float, accepted: Any, above: Any, upto: Any) -> float:
    """Area under a weighted curve: each genuine comparison beats the impostors below it, and half of the tied ones.

    above, upto : int64 arrays, shape (T,)
        Impostor comparisons with a stricter score than each genuine one, and with one at least as strict.
    """
    total = matched[matched.size - 1] + extra * (matched.size - 1)
    area = 0.0
    for g in range(above.size):
        before = matched[above[g]] + extra * above[g]
        tied = matched[upto[g]] + extra * upto[g]
        area += (accepted[g + 1] - accepted[g]) * (1.0 - 0.5 * (before + tied) / total)
    return area / float(accepted[accepted.size - 1])


def quadratic_forms(weights: NDArray[Any], first: IntArray, second: IntArray, amount: NDArray[Any]) -> FloatArray:
    """Σ_{i≠j} W_i·W_j·n_ij over ordered pairs of identities, for each row of weights, shape (B,).

    It is exact where weights and amounts are whole numbers and the form is below 2**53.

    weights : shape (B, G)
    first, second : int64 arrays, amount : int64 or float64 array, shape (P,)
        n_ij of unordered pairs; fastest when sorted by `first`, as a `PairTable` is.
    """
    # Replicates are the inner loop: weights are transposed, 128 replicates at a time, so that each pair costs one
    # multiplication and addition of short vectors. These are float32 where that is exact: whole numbers, and partial
    # sums that are put away in float64 before they reach 2²⁴.
    forms = np.zeros(weights.shape[0])
    if not first.size:
        return forms
    most = float(amount.max())
    for start in range(0, forms.size, REPLICATES):
        rows = np.asarray(weights[start : start + REPLICATES])
        largest = float(np.abs(rows).max())
        whole = amount.dtype.kind in "iu" and (rows.dtype.kind in "iub" or bool((rows == np.rint(rows)).all()))
        short = whole and largest * most < EXACT32
        columns = np.ascontiguousarray(rows.T, dtype=np.float32 if short else np.float64)
        room = EXACT32 / max(largest, 1.0) if short else np.inf
        _add_forms(columns, first, second, amount, room, forms[start : start + REPLICATES])
    return forms


@compiled()
def _add_forms(columns: Any, first: Any, second: Any, amount: Any, room: float, forms: Any) -> None:
    """forms[b] += 2·Σ_p amount·W_first·W_second; `room` is the sum of amounts that a partial sum can hold exactly."""
    n_pairs = first.shape[0]
    n_replicates = columns.shape[1]
    running = np.zeros(n_replicates, dtype=columns.dtype)
    p = 0
    while p < n_pairs:
        i = first[p]
        held = 0.0
        while p < n_pairs and first[p] == i:
            n = amount[p]
            if held > 0.0 and held + n > room:
                break
            held += n
            j = second[p]
            factor = running.dtype.type(n)
            for b in range(n_replicates):
                running[b] += factor * columns[j, b]
            p += 1
        for b in range(n_replicates):
            forms[b] += 2.0 * np.float64(running[b]) * np.float64(columns[i, b])
            running[b] = 0


@compiled()
def draw_within(weight: Any, starts: Any, members: Any, seed: Any, counts: Any) -> None:
    """For each copy of each identity draw as many of its comparisons as it has, with replacement.

    weight : float64 array, shape (G,)
        Copies of each identity.
    starts : int64 array, shape (G + 1,)
        The comparisons of identity i are members[starts[i]:starts[i + 1]].
    seed : uint64
        State of the generator (SplitMix64; Steele, Lea & Flood 2014).
    counts : int32 array, shape (N,)
        How often each comparison was drawn (added to).
    """
    state = np.uint64(seed)
    for i in range(weight.size):
        low = starts[i]
        size = np.uint64(starts[i + 1] - low)
        if size == 0:
            continue
        for _ in range(int(weight[i]) * int(size)):
            state += np.uint64(0x9E3779B97F4A7C15)
            z = state
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z = z ^ (z >> np.uint64(31))
            pick = ((z >> np.uint64(32)) * size) >> np.uint64(32)
            counts[members[low + np.int64(pick)]] += 1


@compiled()
def weighted_histogram(first: Any, second: Any, cell: Any, weights: Any, additive: bool, extra: Any, out: Any) -> None:
    """Σ of the weights of the comparisons in each cell, for each replicate.

    first, second, cell : int64 arrays, shape (N,)
    weights : float64 array, shape (B, G)
    extra : float64 array, shape (B,)
    out : float64 array, shape (B, C), added to
    """
    for b in range(weights.shape[0]):
        weight = weights[b]
        for c in range(first.size):
            out[b, cell[c]] += _weight_of_pair(weight, first[c], second[c], additive) + extra[b]


@compiled()
def pool(genuine: Any, impostor: Any, ends: Any) -> int:
    """Pool adjacent violators: merge neighbouring cells until the share of genuine comparisons strictly increases.

    A cell joins the block before it where genuine/(genuine + impostor) does not increase. Counts are float64, exact up
    to 2**53.

    genuine, impostor : float64 arrays, shape (K,)
        Comparisons in each cell, scores increasing; overwritten: the first B entries become the blocks' counts.
    ends : int64 array, shape (K,)
        Written: the first B entries become the cell after the last one of each block.

    B, the number of blocks, is returned.
    """
    top = -1
    for k in range(genuine.size):
        g, n = genuine[k], impostor[k]
        top += 1
        genuine[top], impostor[top], ends[top] = g, n, k + 1
        while top > 0 and genuine[top - 1] * impostor[top] >= genuine[top] * impostor[top - 1]:
            genuine[top - 1] += genuine[top]
            impostor[top - 1] += impostor[top]
            ends[top - 1] = ends[top]
            top -= 1
    return top + 1
