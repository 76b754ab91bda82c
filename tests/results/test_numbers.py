"""Numerical care: estimates, variances and intervals against exact rational arithmetic, where numbers are extreme."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
from matchbound.counting.partial import PartialTally, finish
from matchbound.counts.tally import (
    AllPairs,
    GenuineTally,
    ImpostorTally,
    PairTable,
    Tally,
    exact_dot,
    of_ordered_pairs,
    pair_moments,
)
from matchbound.results.rates import Rate
from matchbound.stats.intervals import effective_n, wald

Pairs = dict[tuple[int, int], tuple[int, int]]
"""Impostor comparisons and errors of each pair of identities."""
RATES = [1e-9, 1e-6, 1e-3, 0.5, 1 - 1e-3, 1 - 1e-6, 1 - 1e-9]


def tally_of(pairs: Pairs, genuine: list[tuple[int, int]]) -> Tally:
    """A tally from counts alone, so that it may stand for more comparisons than any machine could make."""
    size = len(genuine)
    first = np.array([i for i, _ in pairs], dtype=np.int64)
    second = np.array([j for _, j in pairs], dtype=np.int64)
    m = np.array([made for made, _ in pairs.values()], dtype=np.int64)
    n = np.array([erred for _, erred in pairs.values()], dtype=np.int64)
    order = np.lexsort((second, first))
    kept = order[n[order] > 0]
    compared, erred = (PairTable(first[at], second[at], count[at]) for at, count in ((order, m), (kept, n)))
    sum_mm, sum_nm, sum_nn = pair_moments(compared, (erred,), size)

    def by_identity(count: Any) -> Any:
        total = np.zeros(size, dtype=np.int64)
        np.add.at(total, first, count)
        np.add.at(total, second, count)
        return total

    return Tally(
        np.arange(size),
        np.zeros(1),
        False,
        GenuineTally(np.array([g for g, _ in genuine]), np.array([[e for _, e in genuine]])),
        ImpostorTally(by_identity(m), by_identity(n)[None], sum_mm, sum_nm, sum_nn, compared, (erred,)),
    )


def rate(tally: Tally, metric: Literal["far", "frr"]) -> Rate:
    return Rate(metric, 0.0, tally, 0)


def exact_far(pairs: Pairs, size: int) -> tuple[Fraction, Fraction]:
    """(p, Var) of the paper's eq. 9, term by term in fractions."""
    p = Fraction(sum(n for _, n in pairs.values()), sum(m for m, _ in pairs.values()))
    d = {key: n - p * m for key, (m, n) in pairs.items()}
    r = [sum((value for key, value in d.items() if i in key), Fraction(0)) for i in range(size)]
    total = 2 * sum(m for m, _ in pairs.values())
    return p, (4 * sum(x * x for x in r) - 4 * sum(x * x for x in d.values())) / Fraction(total) ** 2


def exact_frr(genuine: list[tuple[int, int]]) -> tuple[Fraction, Fraction]:
    """(q, Var) of the paper's eq. 6 in fractions."""
    total = sum(g for g, _ in genuine)
    q = Fraction(sum(e for _, e in genuine), total)
    return q, sum((e - q * g) ** 2 for g, e in genuine) / Fraction(total) ** 2


def exact_far_jackknife(pairs: Pairs, size: int) -> Fraction:
    """Eq. 12 in fractions: leave each identity out in turn."""
    p, _ = exact_far(pairs, size)
    spread = Fraction(0)
    for i in range(size):
        left = [counts for key, counts in pairs.items() if i not in key]
        spread += (Fraction(sum(n for _, n in left), sum(m for m, _ in left)) - p) ** 2
    total = 2 * sum(m for m, _ in pairs.values())
    q = 2 * sum((n - p * m) ** 2 for m, n in pairs.values())
    return Fraction((size - 2) ** 2, size**2) * spread - 2 * q / Fraction(total) ** 2


def exact_wilson(p: Fraction, n: Fraction, tail: float) -> tuple[Fraction, Fraction]:
    """Eq. 7 with a square root of 200 bits."""
    z = Fraction(-NormalDist().inv_cdf(tail))
    inside = n * p * (1 - p) + z * z / 4
    scale = 1 << 400
    root = Fraction(math.isqrt(inside.numerator * scale * scale // inside.denominator), scale)
    return (n * p + z * z / 2 - z * root) / (n + z * z), (n * p + z * z / 2 + z * root) / (n + z * z)


def close(found: float, true: Fraction, relative: float, absolute: float = 0.0) -> None:
    assert math.isfinite(found)
    assert abs(Fraction(found) - true) <= Fraction(relative) * abs(true) + Fraction(absolute), (found, float(true))


def scattered(value: float, size: int, each: int, seed: int = 0) -> Pairs:
    """All pairs of `size` identities, `each` comparisons a pair, errors that differ from pair to pair."""
    rng = np.random.default_rng(seed)
    pairs = {}
    for key in combinations(range(size), 2):
        weight = float(rng.uniform(0.2, 1.8))
        errors = round(weight * value * each) if value <= 0.5 else each - round(weight * (1 - value) * each)
        pairs[key] = (each, min(max(errors, 0), each))
    return pairs


# --- rates from 1e-9 to 1 - 1e-9, with 10^12 comparisons and more ---


@pytest.mark.parametrize("value", RATES)
def test_far_of_a_trillion_comparisons(value: float) -> None:
    size, each = 12, 2 * 10**10
    pairs = scattered(value, size, each)
    far = rate(tally_of(pairs, [(1, 0)] * size), "far")
    p, var = exact_far(pairs, size)
    assert far.comparisons == 66 * each > 10**12
    assert far.errors == sum(n for _, n in pairs.values())
    assert far.estimate == float(p)
    close(far.variance, var, 1e-15)
    close(far.variance_by("jackknife"), exact_far_jackknife(pairs, size), 1e-13)
    # 1 − p is known to 2^-53 only, which near p = 1 is the precision of all that depends on it
    slack = 1e-12 + 2.0**-52 / min(value, 1 - value)
    close(far.effective_n, max(p * (1 - p) / var, Fraction(size // 2)), slack)
    low, high = far.interval("wilson")
    true = exact_wilson(p, Fraction(far.effective_n), 0.025)
    close(low, true[0], 1e-12)
    close(1.0 - high, 1 - true[1], 1e-12 + 2.0**-51 / min(value, 1 - value))
    assert 0.0 < low < far.estimate < high < 1.0


@pytest.mark.parametrize("value", RATES)
def test_frr_of_a_trillion_comparisons(value: float) -> None:
    rng = np.random.default_rng(1)
    genuine = []
    for _ in range(30):
        made = int(rng.integers(3 * 10**10, 9 * 10**10))
        wrong = float(rng.uniform(0.1, 1.9)) * min(value, 1 - value)
        errors = round(wrong * made)
        genuine.append((made, errors if value <= 0.5 else made - errors))
    frr = rate(tally_of({(0, 1): (1, 0)}, genuine), "frr")
    q, var = exact_frr(genuine)
    assert frr.comparisons > 10**12
    assert frr.estimate == float(q)
    close(frr.variance, var, 1e-15)
    total, wrong = sum(g for g, _ in genuine), sum(e for _, e in genuine)
    spread = sum((Fraction(wrong - e, total - g) - q) ** 2 for g, e in genuine)
    close(frr.variance_by("jackknife"), Fraction(29**2, 30**2) * spread, 1e-13)
    low, high = frr.interval("wilson")
    true = exact_wilson(q, Fraction(frr.effective_n), 0.025)
    close(low, true[0], 1e-12)
    close(1.0 - high, 1 - true[1], 1e-12 + 2.0**-51 / min(value, 1 - value))


def test_one_pair_with_a_trillion_comparisons() -> None:
    """n·m of one pair is 10^24, beyond int64: the sums must not wrap around."""
    pairs = {(0, 1): (10**12, 10**12 - 3), (0, 2): (10**12, 5), (1, 2): (10, 0), (2, 3): (7, 1)}
    tally = tally_of(pairs, [(1, 0)] * 4)
    assert int(tally.impostor.sum_nn[0]) == 2 * sum(n * n for _, n in pairs.values()) > 2**63
    assert int(tally.impostor.sum_nm[0]) == 2 * sum(n * m for m, n in pairs.values())
    far = rate(tally, "far")
    p, var = exact_far(pairs, 4)
    assert far.estimate == float(p)
    close(far.variance, var, 1e-15)
    assert 0.0 <= far.interval().low < far.estimate < far.interval().high <= 1.0


def test_all_pairs_of_two_identities_with_a_million_instances_each() -> None:
    """Running sums of a block-wise count are int64; where they may have wrapped, pairs are asked for instead."""
    instances = np.array([10**6, 10**6, 3], dtype=np.int64)
    partial = PartialTally.empty(3, 1)
    partial.impostor[:] = [[10**12 - 1], [10**12 - 1], [0]]
    source = SimpleNamespace(identities=np.arange(3), instance_counts=instances, distance=False)
    grid, place = np.zeros(1), np.zeros(1, dtype=np.int64)
    with pytest.raises(mb.DataError, match="pairs=True"):
        finish(partial, source, grid, place, False)
    partial.keys, partial.bins, partial.counts = [np.array([1])], [np.array([1])], [np.array([10**12 - 1])]
    tally = finish(partial, source, grid, place, True)
    n, m = 10**12 - 1, 10**12
    assert int(tally.impostor.sum_nn[0]) == 2 * n * n
    assert int(tally.impostor.sum_nm[0]) == 2 * n * m
    assert tally.impostor.sum_mm == 2 * (m * m + 2 * (3 * 10**6) ** 2)
    pairs = {(0, 1): (m, n), (0, 2): (3 * 10**6, 0), (1, 2): (3 * 10**6, 0)}
    close(rate(tally, "far").variance, exact_far(pairs, 3)[1], 1e-15)


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=6), st.integers(0, 2**62))
def test_exact_sums(values: list[int], factor: int) -> None:
    a, b = np.array(values), np.full(len(values), factor)
    assert exact_dot(a, b) == sum(value * factor for value in values)
    kept = of_ordered_pairs([value * 2 for value in values])
    assert [int(value) for value in kept] == [value * 4 for value in values]
    assert kept.dtype == (np.int64 if max(values) < 2**61 else object)


# --- shapes of data ---


def random_pairs(draw: Any, size: int) -> Pairs:
    pairs: Pairs = {}
    for key in combinations(range(size), 2):
        made = draw(st.integers(0, 10**9))
        if made:
            pairs[key] = (made, draw(st.integers(0, made)))
    return pairs or {(0, 1): (1, 0)}


@given(st.data())
def test_any_counts_against_fractions(data: st.DataObject) -> None:
    """Unbalanced and incomplete, with identities that take no part."""
    size = data.draw(st.integers(2, 6))
    pairs = random_pairs(data.draw, size)
    genuine = [
        (g, data.draw(st.integers(0, g)))
        for g in data.draw(st.lists(st.integers(1, 10**9), min_size=size, max_size=size))
    ]
    tally = tally_of(pairs, genuine)
    p, var = exact_far(pairs, size)
    far = rate(tally, "far")
    assert far.estimate == float(p)
    close(far.variance, var, 1e-15)
    q, frr_var = exact_frr(genuine)
    frr = rate(tally, "frr")
    assert frr.estimate == float(q)
    close(frr.variance, frr_var, 1e-15)
    for each in (far, frr):
        low, high = each.interval("wilson")
        assert 0.0 <= low <= each.estimate <= high <= 1.0
        assert math.isfinite(each.effective_n)
        assert each.effective_n >= each.floor


@pytest.mark.parametrize("errors", [0, 1, 4, 9])
def test_two_identities(errors: int) -> None:
    """One pair of people is one observation: nothing is known of how pairs differ, and the floor of one trial holds."""
    far = rate(tally_of({(0, 1): (9, errors)}, [(1, 0)] * 2), "far")
    assert (far.estimate, far.variance, far.effective_n) == (errors / 9, 0.0, 1.0)


@pytest.mark.filterwarnings("ignore::matchbound.errors.MatchboundWarning")
def test_duplicated_embeddings() -> None:
    """Everybody twice, to the last bit: every impostor error counts four times, and the variance is the same."""
    once = np.random.default_rng(7).standard_normal((15, 4)).astype(np.float32)
    doubled = mb.Embeddings(np.repeat(once, 2, axis=0), np.repeat(np.arange(15), 2))
    twice, single = mb.evaluate(doubled, 0.3), mb.evaluate(mb.Embeddings(once, np.arange(15)), 0.3)
    assert twice.far.errors == 4 * single.far.errors > 0
    assert (twice.far.variance, twice.frr.errors, doubled.repeated) == (single.far.variance, 0, 15)
    assert "repeated" in [note.code for note in twice.warnings]


# --- scores and vectors of any size ---


def exact_cosine(x: Any, y: Any) -> float:
    """By fractions, with a square root of 400 bits."""
    a, b = [Fraction(float(v)) for v in x], [Fraction(float(v)) for v in y]
    dot = sum(s * t for s, t in zip(a, b, strict=True))
    square = sum(s * s for s in a) * sum(t * t for t in b)
    ratio = dot * dot / square
    scale = 1 << 400
    root = Fraction(math.isqrt(ratio.numerator * scale * scale // ratio.denominator), scale)
    return float(root) if dot >= 0 else -float(root)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e3, 1e-30, 1e30, 1e-160, 1e150, 5e-324, 1e-310])
def test_cosine_against_fractions(dtype: type, scale: float) -> None:
    rng = np.random.default_rng(8)
    with np.errstate(all="ignore"):
        vectors = (np.rint(rng.standard_normal((8, 5)) * 50) * scale).astype(dtype)
    if not np.isfinite(vectors).all() or not np.any(vectors, axis=1).all():
        assert dtype is not np.float64
        with pytest.raises(mb.DataError, match=r"infinity|all zeros"):  # the type cannot hold such numbers
            mb.Embeddings(vectors, np.arange(8) // 2)
        return
    data = mb.Embeddings(vectors, np.arange(8) // 2)
    first, second = np.triu_indices(8, 1)
    found = data.score_pairs(first, second)
    true = np.array([exact_cosine(vectors[i], vectors[j]) for i, j in zip(first, second, strict=True)])
    assert np.abs(found - true).max() <= 8 * 2.0**-53
    assert (np.abs(found) <= 1.0 + 2.0**-52).all()


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("scale", [5e-324, 1e-320, 1e-310, 1e-300, 1e140])
def test_all_pairs_of_vectors_of_any_size(scale: float, similarity: Any) -> None:
    """Denormal rows once scaled to infinity, which ended the process."""
    rng = np.random.default_rng(12)
    vectors = np.rint(rng.standard_normal((30, 5)) * 50) * scale
    data = mb.Embeddings(vectors, np.arange(30) // 3, similarity=similarity)
    table = data.comparisons()
    grid = np.quantile(table.score, [0.0, 0.1, 0.5, 0.9, 1.0])
    found, true = mb.tally(data, grid), mb.tally(table, grid)
    assert found.impostor.errors.tolist() == true.impostor.errors.tolist()
    assert found.genuine.errors.tolist() == true.genuine.errors.tolist()


def test_vectors_that_overflow_are_refused() -> None:
    with pytest.raises(mb.DataError, match="row 1 has a squared length that overflows"):
        mb.Embeddings(np.array([[1.0, 0.0], [1e160, 1e160]]), [0, 1])


def test_float16_and_its_float64_twin_agree() -> None:
    rng = np.random.default_rng(9)
    who = np.arange(60) // 3
    vectors = (rng.standard_normal((20, 6))[who] + rng.standard_normal((60, 6))).astype(np.float16)
    for similarity in ("cosine", "dot", "euclidean"):
        half, double = (mb.Embeddings(v, who, similarity=similarity) for v in (vectors, vectors.astype(np.float64)))
        scores = np.unique(double.comparisons().score)
        grid = scores[:: scores.size // 40]  # thresholds that are scores: a last bit decides
        left, right = mb.tally(half, grid), mb.tally(double, grid)
        assert left.impostor.errors.tolist() == right.impostor.errors.tolist(), similarity
        assert left.genuine.errors.tolist() == right.genuine.errors.tolist(), similarity


SCORES = {
    "huge": [1.7e308, 1.6e308, -1.7e308, 1.7976931348623157e308],
    "denormal": [5e-324, 1e-323, 0.0, 2e-310],
    "mixed": [1e300, 1e-300, -1e300, 0.0],
    "one ulp apart": [1.0, 1.0 + 2.0**-52, 1.0 - 2.0**-53, 1.0],
    "signed zeros": [0.0, -0.0, 0.0, -0.0],
}


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("distance", [False, True])
def test_scores_of_any_size(kind: str, distance: bool) -> None:
    """Errors are counted by comparing floats, nothing else: no difference of two scores can overflow or vanish."""
    rng = np.random.default_rng(10)
    n = 200
    score = rng.choice(SCORES[kind], n)
    a, b = rng.integers(0, 12, n), rng.integers(0, 12, n)
    data = mb.Comparisons(a, b, score, distance=distance)
    for threshold in SCORES[kind]:
        matched = score <= threshold if distance else score >= threshold
        tally = mb.tally(data, threshold)
        assert int(tally.impostor.errors.sum()) == 2 * int((matched & (a != b)).sum())
        assert int(tally.genuine.errors.sum()) == int((~matched & (a == b)).sum())


@pytest.mark.filterwarnings("ignore::matchbound.errors.MatchboundWarning")
@pytest.mark.parametrize("kind", ["huge", "denormal", "mixed", "one ulp apart"])
def test_curves_of_scores_of_any_size(kind: str) -> None:
    rng = np.random.default_rng(11)
    n = 400
    score = rng.choice(SCORES[kind], n)
    a, b = rng.integers(0, 12, n), rng.integers(0, 12, n)
    curve = mb.roc(mb.Comparisons(a, b, score))
    genuine, impostor = score[a == b], score[a != b]
    auc = Fraction(0)
    for g in genuine:
        auc += int((impostor < g).sum()) + Fraction(int((impostor == g).sum()), 2)
    found = curve.auc()
    assert found.estimate == pytest.approx(float(auc / (genuine.size * impostor.size)), rel=1e-12)
    low, high = found.interval()
    assert 0.0 <= low <= found.estimate <= high <= 1.0
    point = curve.at_far(0.3)
    assert 0.0 <= point.estimate <= 1.0
    assert all(math.isfinite(limit) for limit in point.interval())


# --- the interval formulas by themselves ---


@pytest.mark.parametrize("estimate", RATES)
def test_wald_and_effective_n_at_the_ends(estimate: float) -> None:
    low, high = wald(estimate, 1e-20, 0.025)
    assert 0.0 <= low <= estimate <= high <= 1.0
    assert wald(estimate, -1e-20, 0.025) == (estimate, estimate)
    assert effective_n(estimate, 0.0, 7) == 7.0
    assert effective_n(estimate, -1.0, 7) == 7.0
    spread = Fraction(estimate) * (1 - Fraction(estimate))
    close(effective_n(estimate, 1e-30, 7), spread / Fraction(1e-30), 1e-15)


def test_counts_of_all_pairs_are_exact() -> None:
    """Σm² of a million identities with a thousand instances each: 10^24 and more, in Python's own numbers."""
    instances = np.full(10**5, 10**4, dtype=np.int64)
    sum_mm, _, _ = pair_moments(AllPairs(instances), (), instances.size)
    assert sum_mm == 10**5 * (10**5 - 1) * 10**16
