"""Slow, literal twins of the curve code: loops over comparisons, exact fractions, one threshold at a time.

A table is a list of (identity, identity, similarity) rows; matches are ``similarity >= threshold``.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from statistics import NormalDist

Row = tuple[str, str, float]


def split(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """(genuine, impostor) rows."""
    return [r for r in rows if r[0] == r[1]], [r for r in rows if r[0] != r[1]]


def points(rows: list[Row]) -> list[tuple[Fraction, Fraction]]:
    """(FAR, FRR) with nothing matching, then at each distinct score from high to low."""
    genuine, impostor = split(rows)
    made = [(Fraction(0), Fraction(1))]
    for t in sorted({r[2] for r in rows}, reverse=True):
        far = Fraction(sum(r[2] >= t for r in impostor), len(impostor))
        made.append((far, Fraction(sum(r[2] < t for r in genuine), len(genuine))))
    return made


def far_variance(rows: list[Row], threshold: float) -> Fraction:
    """(4R − 2Q)/N2², by summing over ordered pairs of identities."""
    _, impostor = split(rows)
    names = sorted({name for r in rows for name in r[:2]})
    n2 = 2 * len(impostor)
    p = Fraction(sum(r[2] >= threshold for r in impostor), len(impostor))
    big_r, big_q = Fraction(0), Fraction(0)
    for i in names:
        row_sum = Fraction(0)
        for j in names:
            if i == j:
                continue
            between = [r for r in impostor if {r[0], r[1]} == {i, j}]
            d = sum(r[2] >= threshold for r in between) - p * len(between)
            row_sum += d
            big_q += d * d
        big_r += row_sum * row_sum
    return (4 * big_r - 2 * big_q) / n2**2


def frr_variance(rows: list[Row], threshold: float) -> Fraction:
    """Σ(e_i − q·g_i)²/T²."""
    genuine, _ = split(rows)
    q = Fraction(sum(r[2] < threshold for r in genuine), len(genuine))
    total = Fraction(0)
    for i in {r[0] for r in genuine}:
        own = [r for r in genuine if r[0] == i]
        total += (sum(r[2] < threshold for r in own) - q * len(own)) ** 2
    return total / len(genuine) ** 2


def frr_at_far(rows: list[Row], target: Fraction) -> Fraction:
    """FRR of the last point whose FAR is at most the target."""
    return [frr for far, frr in points(rows) if far <= target][-1]


def far_at_frr(rows: list[Row], target: Fraction) -> Fraction:
    """FAR of the first point whose FRR is at most the target."""
    return next(far for far, frr in points(rows) if frr <= target)


def eer(rows: list[Row]) -> Fraction:
    """Where the line through the points meets FAR = FRR."""
    for (x0, y0), (x1, y1) in itertools.pairwise(points(rows)):
        if x1 >= y1:
            return x0 + (x1 - x0) * ((y0 - x0) / ((y0 - x0) + (x1 - y1)))
    raise AssertionError("the last point has FAR 1 and FRR 0")


def auc(rows: list[Row]) -> Fraction:
    """Share of (genuine, impostor) pairs in which the genuine score is higher; a tie counts half."""
    genuine, impostor = split(rows)
    wins = sum(Fraction(2 * (g[2] > i[2]) + (g[2] == i[2]), 2) for g in genuine for i in impostor)
    return wins / (len(genuine) * len(impostor))


def partial_auc(rows: list[Row], max_far: Fraction) -> Fraction:
    """Area under the line through (FAR, 1 − FRR) up to max_far, divided by max_far."""
    area = Fraction(0)
    for (x0, y0), (x1, y1) in itertools.pairwise(points(rows)):
        if x0 >= max_far or x1 == x0:
            continue
        end = min(x1, max_far)
        y_end = y0 + (y1 - y0) * (end - x0) / (x1 - x0)
        area += (end - x0) * (2 - y0 - y_end) / 2
    return area / max_far


def weighted_points(
    rows: list[Row], impostor_weight: list[Fraction], genuine_weight: list[Fraction]
) -> list[tuple[Fraction, Fraction]]:
    """`points` when comparison k of each kind weighs as given."""
    genuine, impostor = split(rows)
    made = [(Fraction(0), Fraction(1))]
    all_impostor, all_genuine = sum(impostor_weight), sum(genuine_weight)
    for t in sorted({r[2] for r in rows}, reverse=True):
        matched = sum(w for r, w in zip(impostor, impostor_weight, strict=True) if r[2] >= t)
        rejected = sum(w for r, w in zip(genuine, genuine_weight, strict=True) if r[2] < t)
        made.append((Fraction(matched, all_impostor), Fraction(rejected, all_genuine)))
    return made


def read_points(curve: list[tuple[Fraction, Fraction]], target: Fraction) -> Fraction:
    """FRR of the last point whose FAR is at most the target."""
    return [frr for far, frr in curve if far <= target][-1]


def auc_variance(rows: list[Row]) -> tuple[Fraction, Fraction, Fraction]:
    """(Σa², Σaρ, (4R − 2Q)/N2²) for the AUC: each comparison's own share of it, centred, summed by who takes part."""
    genuine, impostor = split(rows)
    names = sorted({name for r in rows for name in r[:2]})
    t, n = len(genuine), len(impostor)

    def win(g: float, i: float) -> Fraction:
        return Fraction(2 * (g > i) + (g == i), 2)

    kin = [sum(win(g[2], i[2]) for i in impostor) / n for g in genuine]
    strangers = [sum(win(g[2], i[2]) for g in genuine) / t for i in impostor]
    mean = sum(kin) / t
    a = {i: sum((v - mean for v, g in zip(kin, genuine, strict=True) if g[0] == i), Fraction(0)) / t for i in names}
    d: dict[tuple[str, str], Fraction] = {}
    for value, row in zip(strangers, impostor, strict=True):
        for key in ((row[0], row[1]), (row[1], row[0])):
            d[key] = d.get(key, Fraction(0)) + value - mean
    r = {i: sum((v for (k, _), v in d.items() if k == i), Fraction(0)) for i in names}
    own = sum((x * x for x in a.values()), Fraction(0))
    cross = sum((a[i] * 2 * r[i] / (2 * n) for i in names), Fraction(0))
    big_r = sum((x * x for x in r.values()), Fraction(0))
    big_q = sum((x * x for x in d.values()), Fraction(0))
    return own, cross, (4 * big_r - 2 * big_q) / (2 * n) ** 2


def wilson(estimate: float, variance: float, floor: float, z: float) -> tuple[float, float]:
    """Wilson's limits as the roots of (p̂ − p)² = z²·p(1−p)/n."""
    n = estimate * (1 - estimate) / variance if variance > 0 and 0 < estimate < 1 else floor
    n = max(n, floor)
    if n == 0:
        return (0.0, 1.0) if z else (estimate, estimate)
    a, b, c = 1 + z * z / n, -2 * estimate - z * z / n, estimate * estimate
    root = math.sqrt(max(b * b - 4 * a * c, 0.0))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def union(rows: list[Row], target: float, z: float, z_far: float) -> tuple[float, float]:
    """FRR's limits at the points at both ends of FAR's limits, joined."""
    genuine, impostor = split(rows)
    thresholds = [math.inf, *sorted({r[2] for r in rows}, reverse=True)]
    curve = points(rows)
    taking_part = len({name for r in impostor for name in r[:2]})

    def last_at_most(rate: float) -> int:
        return max(k for k, (far, _) in enumerate(curve) if far <= rate * (1 + 1e-12))

    def first_at_least(rate: float) -> int:
        return min((k for k, (far, _) in enumerate(curve) if far * (1 + 1e-12) >= rate), default=len(curve) - 1)

    k = last_at_most(target)
    low, high = wilson(float(curve[k][0]), float(far_variance(rows, thresholds[k])), taking_part // 2, z_far)
    limits = []
    for end in (last_at_most(max(low, 0.0)), max(last_at_most(high), first_at_least(high))):
        q, v = float(curve[end][1]), float(frr_variance(rows, thresholds[end]))
        limits.append(wilson(q, v, len({r[0] for r in genuine}), z))
    return max(min(pair[0] for pair in limits), 0.0), min(max(pair[1] for pair in limits), 1.0)


def latent_frr_at_far(far_model, frr_model, r, curve, n, target, deviates):  # type: ignore[no-untyped-def]
    """Both limits for FRR at a FAR, one angle at a time; `curve` is a list of (false matches, false non-matches)."""
    normal = NormalDist()
    z = normal.inv_cdf(target)
    lows, highs = [], []
    for step in range(7):
        theta = step * math.pi / 12
        own = deviates[0] * math.sin(theta)
        rest = deviates[1] * max(0.0, r * math.sin(theta) + math.sqrt(1 - r * r) * math.cos(theta))
        upper = float(far_model.limit(n * target, own, True)[0])
        lower = float(far_model.limit(n * target, own, False)[0])
        strict = min(n * target, n * normal.cdf(2 * z - normal.inv_cdf(upper)))
        lenient = max(n * target, n * normal.cdf(2 * z - normal.inv_cdf(lower)))
        e_strict = [e for x, e in curve if x <= math.floor(strict + 1e-9)][-1]
        e_lenient = [e for x, e in curve if x <= math.floor(lenient + 1e-9)][-1]
        highs.append(float(frr_model.limit(e_strict, rest, True)[0]))
        lows.append(float(frr_model.limit(e_lenient, rest, False)[0]))
    return min(lows), max(highs)


def latent_eer(far_model, frr_model, r, curve, deviates):  # type: ignore[no-untyped-def]
    """Both limits for EER: at each angle walk until FAR's limit is at least FRR's; the middle of that step."""
    found = []
    for upper in (False, True):
        values = []
        for step in range(7):
            theta = step * math.pi / 12
            own = deviates[0] * math.sin(theta)
            rest = deviates[1] * max(0.0, r * math.sin(theta) + math.sqrt(1 - r * r) * math.cos(theta))
            far = far_model.limit([x for x, _ in curve], own, upper)
            frr = frr_model.limit([e for _, e in curve], rest, upper)
            k = next(k for k in range(len(curve)) if far[k] >= frr[k])
            values.append(float(far[k - 1] + frr[k - 1] + far[k] + frr[k]) / 4)
        found.append(max(values) if upper else min(values))
    return found[0], found[1]
