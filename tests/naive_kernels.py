"""Slow, literal twins of compiled kernels: the same arguments in, what they should have written out.

A twin takes the arguments as they were before the call and returns what the kernel must leave behind. Twins share no
code with the package; what an array holds is said where the kernel is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

COSINE, DOT, EUCLIDEAN = 0, 1, 2


def impostor_sums(first: Any, second: Any, pair: Any, m: Any, pair_m: Any, worth: Any, ends: Any, out: Any) -> Any:
    """ΣS², ΣSm, Σn², Σnm at each step, counted from the beginning every time."""
    made = np.zeros((4, len(ends)), dtype=out.dtype)
    for k, end in enumerate(ends.tolist()):
        s, n = {}, {}
        rows = zip(first[:end].tolist(), second[:end].tolist(), pair[:end].tolist(), worth[:end].tolist(), strict=True)
        for i, j, p, w in rows:
            s[i] = s.get(i, 0) + w
            s[j] = s.get(j, 0) + w
            n[p] = n.get(p, 0) + w
        made[0, k] = sum(s[i] ** 2 for i in s)
        made[1, k] = sum(s[i] * int(m[i]) for i in s)
        made[2, k] = sum(2 * n[p] ** 2 for p in n)
        made[3, k] = sum(2 * n[p] * int(pair_m[p]) for p in n)
    return made


def genuine_sums(owner: Any, g: Any, worth: Any, ends: Any, out: Any) -> Any:
    """Σh², Σhg at each step."""
    made = np.zeros((2, len(ends)), dtype=out.dtype)
    for k, end in enumerate(ends.tolist()):
        for i in range(len(g)):
            h = worth[:end][owner[:end] == i].sum()
            made[:, k] += np.array([h * h, h * int(g[i])])
    return made


def _weights(first: Any, second: Any, weight: Any, additive: bool) -> list[float]:
    each = zip(first.tolist(), second.tolist(), strict=True)
    return [weight[i] + weight[j] if additive else weight[i] * weight[j] for i, j in each]


def cumulate_pairs(first: Any, second: Any, weight: Any, additive: bool, _: Any) -> Any:
    """The weight of the first c comparisons, c = 0..N."""
    each = _weights(first, second, weight, additive)
    return np.array([math.fsum(each[:c]) for c in range(len(each) + 1)])


def _curve(matched: Any, extra: float, accepted: Any, ends: Any, own_ends: Any) -> list[tuple[float, float]]:
    total = matched[-1] + extra * (len(matched) - 1)
    return [
        ((matched[e] + extra * e) / total, 1.0 - accepted[o] / accepted[-1])
        for e, o in zip(ends, own_ends, strict=True)
    ]


def read_curve(matched: Any, extra: float, accepted: Any, ends: Any, own_ends: Any, targets: Any, _: Any) -> Any:
    """(FRR at FAR targets, FAR at FRR targets, EER), by looking at every step in turn."""
    curve = _curve(matched, extra, accepted, ends.tolist(), own_ends.tolist())
    frr = [[q for p, q in curve if p <= target * (1.0 + 1e-12)][-1] for target in targets[0]]
    far = [next(p for p, q in curve if q <= target * (1.0 + 1e-12)) for target in targets[1]]
    at = next((k for k, (p, q) in enumerate(curve) if k > 0 and p >= q), len(curve) - 1)
    (p0, q0), (p1, q1) = curve[at - 1], curve[at]
    moved = (q0 - p0) + (p1 - q1)
    return np.array(frr), np.array(far), p0 if moved <= 0.0 else p0 + (p1 - p0) * (q0 - p0) / moved


def curve_area(matched: Any, extra: float, accepted: Any, above: Any, upto: Any) -> float:
    """The weight of pairs of a genuine and an impostor comparison in the right order, ties half, of all such pairs."""
    impostor = [matched[c + 1] - matched[c] + extra for c in range(len(matched) - 1)]
    won = 0.0
    for g, (a, u) in enumerate(zip(above.tolist(), upto.tolist(), strict=True)):
        won += (accepted[g + 1] - accepted[g]) * (math.fsum(impostor[u:]) + 0.5 * math.fsum(impostor[a:u]))
    return won / (accepted[-1] * math.fsum(impostor))


def draw_within(weight: Any, starts: Any, members: Any, seed: Any, counts: Any) -> Any:
    """SplitMix64 in Python's integers; the high half of each number picks a comparison."""
    made, state = counts.copy(), int(seed)
    for i, copies in enumerate(weight.tolist()):
        own = members[starts[i] : starts[i + 1]]
        for _ in range(int(copies) * len(own)):
            state = (state + 0x9E3779B97F4A7C15) % 2**64
            z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
            z ^= z >> 31
            made[own[((z >> 32) * len(own)) >> 32]] += 1
    return made


def weighted_histogram(first: Any, second: Any, cell: Any, weights: Any, additive: bool, extra: Any, out: Any) -> Any:
    """What was there, and the weights of the comparisons of each cell."""
    made = out.copy()
    for b, row in enumerate(weights):
        for c, weight in zip(cell.tolist(), _weights(first, second, row, additive), strict=True):
            made[b, c] += weight + extra[b]
    return made


def pool(genuine: Any, impostor: Any, _: Any) -> list[tuple[float, float, int]]:
    """(genuine, impostor, end) of each block: any two neighbours that do not increase are joined, until none are."""
    blocks = [(g, n, k + 1) for k, (g, n) in enumerate(zip(genuine.tolist(), impostor.tolist(), strict=True))]
    while True:
        share = [g / (g + n) for g, n, _ in blocks]
        at = next((k for k in range(len(blocks) - 1) if share[k] >= share[k + 1]), None)
        if at is None:
            return blocks
        (g, n, _), (h, o, end) = blocks[at], blocks[at + 1]
        blocks[at : at + 2] = [(g + h, n + o, end)]


def score(x: Any, y: Any, kind: int) -> float:
    """Cosine, dot product or Euclidean distance of two vectors, with exact sums."""
    x, y = [float(v) for v in x], [float(v) for v in y]
    if kind == EUCLIDEAN:
        return math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(x, y, strict=True)))
    product = math.fsum(a * b for a, b in zip(x, y, strict=True))
    if kind == DOT:
        return product
    return product / math.sqrt(math.fsum(a * a for a in x) * math.fsum(b * b for b in y))


def score_pairs(vectors: Any, _lengths: Any, _scales: Any, first: Any, second: Any, kind: int, _: Any) -> Any:
    """The score of each pair of rows."""
    return np.array([score(vectors[i], vectors[j], kind) for i, j in zip(first.tolist(), second.tolist(), strict=True)])


def squared_lengths(vectors: Any, _: Any) -> Any:
    """‖x‖² of each row."""
    return np.array([math.fsum(float(v) ** 2 for v in row) for row in vectors])


def add_forms(columns: Any, first: Any, second: Any, count: Any, _room: float, forms: Any) -> Any:
    """What was there, and 2·Σ n_ij·W_i·W_j."""
    each = list(zip(first.tolist(), second.tolist(), count.tolist(), strict=True))
    wide = columns.astype(np.float64)
    return forms + np.array([2.0 * math.fsum(n * w[i] * w[j] for i, j, n in each) for w in wide.T])


def share_of_hits(product: Any, cut: Any) -> float:
    """The share of numbers that reach the cut, among those in every eighth whole word of 64."""
    seen = [x for at in range(0, len(product), 512) if at + 64 <= len(product) for x in product[at : at + 64].tolist()]
    return sum(x >= float(cut) for x in seen) / len(seen) if seen else 0.0


def largest_offset(raw: Any, start: int, stop: int, centre: Any) -> float:
    """The largest |x_k − centre_k|."""
    return max((abs(float(x) - c) for row in raw[start:stop] for x, c in zip(row, centre, strict=True)), default=0.0)


def fill_rows(raw: Any, order: Any, factor: Any, centre: Any, left: Any, _right: Any, _reach: Any) -> Any:
    """(left, right, lengths) of rows that are centred and scaled; both sides are one, or two columns wider each."""
    d = raw.shape[1]
    wide = np.array([[(float(raw[r, k]) - centre[k]) * factor[r] for k in range(d)] for r in order.tolist()])
    squares = np.array([math.fsum(row * row) for row in wide])
    if left.shape[1] == d:
        return wide, wide, np.sqrt(squares)
    ones = np.ones(len(squares))
    return (
        np.column_stack([wide, ones, -squares / 2.0]),
        np.column_stack([wide, -squares / 2.0, ones]),
        np.sqrt(squares),
    )


def _column_score(probes: Any, i: int, enrolled: Any, column: int) -> float:
    """The oriented score of a probe and a column: the mean over its templates."""
    rows = enrolled.order[enrolled.start[column] : enrolled.start[column + 1]]
    found = [score(probes.raw[i], enrolled.raw[j], enrolled.kind) for j in rows]
    mean = math.fsum(found) / len(found)
    return -mean if enrolled.kind == EUCLIDEAN else mean


def _value(oriented: float, scale: float, kind: int) -> float:
    """The oriented value of an oriented score: the cosine, the product, minus half the squared distance; scaled."""
    if kind == COSINE:
        return oriented
    return oriented * scale * scale if kind == DOT else -((oriented * scale) ** 2) / 2.0


def mate_scores(probes: Any, enrolled: Any, _first_column: Any, row0: int, out: Any) -> Any:
    """The best score of each probe with a column of its own person; −∞ without one."""
    made = []
    for i in range(row0, row0 + len(out)):
        own = [c for c, owner in enumerate(enrolled.owner.tolist()) if probes.own[i] >= 0 and owner == probes.own[i]]
        made.append(max((_column_score(probes, i, enrolled, c) for c in own), default=-math.inf))
    return np.array(made)


def keep_best(columns: Any, probes: Any, enrolled: Any, at: Any, lists: Any) -> Any:
    """The k best people of each list and of all columns, without the probe's own; (scores, holders)."""
    scores, holders = lists.score.copy(), lists.holder.copy()
    for r, i in enumerate(at.tolist()):
        best = {int(h): float(s) for h, s in zip(holders[r], scores[r], strict=True) if h >= 0}
        for c in range(columns.first, columns.first + columns.width):
            owner, found = int(enrolled.owner[c]), _column_score(probes, i, enrolled, c)
            if owner != probes.own[i] and _value(found, columns.scale, enrolled.kind) >= lists.least[r]:
                best[owner] = max(best.get(owner, -math.inf), found)
        ranked = sorted(best.items(), key=lambda item: -item[1])[: scores.shape[1]]
        scores[r], holders[r] = -np.inf, -1
        for place, (owner, found) in enumerate(ranked):
            scores[r, place], holders[r, place] = found, owner
    return scores, holders


def set_cuts(lists: Any, columns: Any, kind: int, offset: Any, shift: Any, per_unit: float, cuts: Any) -> Any:
    """Whole numbers just below what the last of each list, or the least value, is worth."""
    made = []
    for r in range(len(cuts)):
        worst = float(lists.score[r, -1])
        value = float(lists.least[r])
        if worst > -math.inf:
            value = max(value, _value(worst, columns.scale, kind))
        value -= columns.band
        cut = -(2**29) if value == -math.inf else math.floor(value * per_unit + offset[r]) - 1
        made.append(min(max(cut, -(2**29)), 2**29) + int(shift[r]))
    return np.array(made)


def every_score(probes: Any, enrolled: Any, at: Any, out: Any) -> Any:
    """The best score of each probe with every enrolled person but its own."""
    made = np.full(out.shape, -math.inf)
    for r, i in enumerate(at.tolist()):
        for c, owner in enumerate(enrolled.owner.tolist()):
            if owner != probes.own[i]:
                made[r, owner] = max(made[r, owner], _column_score(probes, i, enrolled, c))
    return made


def take_turns(which: Any, a: Any, b: Any, size: Any, start: Any, first: Any, second: Any, done: int) -> Any:
    """The instances of each comparison: of those not yet compared, the first pair that was visited least."""
    one, two = first.copy(), second.copy()
    made: list[tuple[int, int]] = list(zip(one[:done].tolist(), two[:done].tolist(), strict=True))
    for c in range(done, len(which)):
        i, j = int(a[which[c]]), int(b[which[c]])
        visits = [x for pair in made for x in pair]
        choices = [
            (visits.count(x) + visits.count(y), x, y)
            for x in range(start[i], start[i] + size[i])
            for y in range(start[j], start[j] + size[j])
            if (x, y) not in made
        ]
        _, one[c], two[c] = min(choices)
        made.append((int(one[c]), int(two[c])))
    return one, two
