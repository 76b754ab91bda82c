"""Pairs of rows: each genuine pair once, impostor pairs evenly, block scores that know where rounding matters."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from matchbound.counting.pairs import GenuinePairs, impostor_pairs
from matchbound.data.embeddings import Embeddings
from naive_io import genuine_pairs_by_loop


def some_embeddings(seed: int, n: int, similarity: Any = "cosine", identities: int = 6) -> Embeddings:
    rng = np.random.default_rng(seed)
    return Embeddings(rng.standard_normal((n, 5)).astype(np.float32), rng.integers(0, identities, n), similarity)


@given(st.lists(st.integers(0, 5), min_size=0, max_size=40))
def test_genuine_pairs_equal_a_loop(identity: list[int]) -> None:
    source = Embeddings(np.ones((len(identity), 2)), np.asarray(identity, dtype=np.int64))
    pairs = GenuinePairs.of(source)
    first, second = pairs.sample(10**6, np.random.default_rng(0))
    found = [(min(i, j), max(i, j)) for i, j in zip(first.tolist(), second.tolist(), strict=True)]
    assert len(found) == len(set(found)) == len(pairs)
    assert set(found) == genuine_pairs_by_loop(source.codes.tolist())


def test_pairs_of_one_identity_with_very_many_rows() -> None:
    """The square root of numbers beyond 2^53 is not exact; the numbers of pairs around it still are."""
    n = 200_000_000
    pairs = GenuinePairs(np.arange(0), np.array([0]), np.array([n * (n - 1) // 2]))
    high = np.array([1, 2, 94_906_266, n - 1])
    for low in (np.zeros(4, dtype=np.int64), high - 1):
        object.__setattr__(pairs, "order", _Same())
        first, second = pairs.rows(high * (high - 1) // 2 + low)
        np.testing.assert_array_equal(first, low)
        np.testing.assert_array_equal(second, high)


class _Same:
    """An order of rows too long to hold: every row where it is."""

    def __getitem__(self, index: Any) -> Any:
        return index


def test_a_sample_of_genuine_pairs_is_even() -> None:
    """About 200,000 draws from 313 pairs: each is drawn as often as any other, within 5 standard errors."""
    source = Embeddings(np.ones((40, 2)), np.repeat([0, 1, 2, 3], [1, 3, 16, 20]))
    pairs, draws = GenuinePairs.of(source), 200_000
    assert len(pairs) == 3 + 120 + 190
    number = {pair: k for k, pair in enumerate(sorted(genuine_pairs_by_loop(source.codes.tolist())))}
    rng = np.random.default_rng(1)
    seen = np.zeros(len(pairs), dtype=np.int64)
    for _ in range(draws // 300):
        for i, j in zip(*(rows.tolist() for rows in pairs.sample(300, rng)), strict=True):
            seen[number[min(i, j), max(i, j)]] += 1
    expected = seen.sum() / len(pairs)
    assert np.abs(seen - expected).max() < 5 * np.sqrt(expected)


def test_impostor_pairs_are_all_of_them_or_a_sample() -> None:
    source = some_embeddings(3, 30)
    first, second = impostor_pairs(source, 435, np.random.default_rng(0))
    rows = source.comparisons()
    assert first.size == int((~rows.genuine).sum())
    assert np.all(source.codes[first] != source.codes[second])
    first, second = impostor_pairs(source, 434, np.random.default_rng(0))
    assert 300 < first.size < 434
    assert np.all(source.codes[first] != source.codes[second])
    again = impostor_pairs(source, 434, np.random.default_rng(0))
    np.testing.assert_array_equal(again[0], first)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 200), count=st.integers(0, 20))
def test_a_pair_has_the_same_score_whatever_is_asked_for_with_it(seed: int, n: int, count: int) -> None:
    """Few pairs of many rows and many of few: rows are looked up in two ways."""
    rng = np.random.default_rng(seed)
    source = some_embeddings(seed, n)
    first, second = rng.integers(0, n, (2, count))
    scores = source.score_pairs(first, second)
    each = [float(source.score_pairs(first[k : k + 1], second[k : k + 1])[0]) for k in range(count)]
    assert scores.tolist() == each
