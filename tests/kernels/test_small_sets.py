"""Small sets of embeddings are counted without blocks: the counts are those of a loop and of the blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_allpairs import assert_equal, random_embeddings, some_thresholds

from matchbound.counting import small
from matchbound.counting.allpairs import tally_embeddings
from matchbound.counting.recount import recount_of, tally_source
from matchbound.counting.running import How
from matchbound.data.embeddings import Embeddings
from matchbound.errors import UsageError
from matchbound.results.latent import MOST_IDENTITIES, MOST_ROWS
from naive_scale import tally_by_loop


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 60),
    similarity=st.sampled_from(["cosine", "dot", "euclidean"]),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    count=st.sampled_from([1, 2, 50]),
    pairs=st.booleans(),
)
def test_counts_equal_a_loop(seed: int, n: int, similarity: Any, dtype: Any, count: int, pairs: bool) -> None:
    rng = np.random.default_rng(seed)
    data = random_embeddings(rng, similarity, dtype, n=n)
    thresholds = some_thresholds(rng, data, count)
    tally = small.tally_small(data, thresholds, pairs=pairs)
    np.testing.assert_array_equal(tally.thresholds, thresholds)
    assert_equal(tally, tally_by_loop(data, thresholds), pairs=pairs)


@pytest.mark.parametrize("count", [1, 30])
def test_both_sides_of_the_limit_agree(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    data = random_embeddings(np.random.default_rng(3), "cosine", np.float32, n=300)
    thresholds = some_thresholds(np.random.default_rng(4), data, count)
    told: list[tuple[int, int]] = []
    few = tally_source(data, thresholds, pairs=True, how=How(progress=lambda *at: told.append(at)))
    assert told == [(1, 1)]
    monkeypatch.setattr(small, "SMALL_COMPARISONS", 300 * 299 // 2 - 1)
    monkeypatch.setattr(small, "tally_small", None)
    many = tally_source(data, thresholds, pairs=True)
    for one, other in ((few, many), (few, tally_embeddings(data, thresholds, pairs=True))):
        np.testing.assert_array_equal(one.impostor.errors, other.impostor.errors)
        np.testing.assert_array_equal(one.genuine.errors, other.genuine.errors)
        np.testing.assert_array_equal(one.impostor.sum_nn, other.impostor.sum_nn)
        np.testing.assert_array_equal(one.impostor.sum_nm, other.impostor.sum_nm)


def test_vectors_that_were_changed_in_place_are_scored_again() -> None:
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(90, 8)).astype(np.float32)
    data = Embeddings(vectors, np.arange(90) // 3)
    before = small.tally_small(data, np.array([0.3]))
    vectors[:45] = vectors[0]
    after = small.tally_small(data, np.array([0.3]))
    fresh = small.tally_small(Embeddings(vectors.copy(), np.arange(90) // 3), np.array([0.3]))
    np.testing.assert_array_equal(after.impostor.errors, fresh.impostor.errors)
    assert before.impostor.errors.sum() < after.impostor.errors.sum()


def test_an_empty_set_and_nan() -> None:
    empty = Embeddings(np.empty((0, 3), dtype=np.float32), np.empty(0, dtype=np.int64))
    assert small.is_small(empty)
    tally = small.tally_small(empty, np.array([0.5]))
    assert tally.impostor.errors.shape == (1, 0)
    data = random_embeddings(np.random.default_rng(0), "dot", np.float32)
    with pytest.raises(UsageError, match="NaN"):
        small.tally_small(data, np.array([np.nan]))


@pytest.mark.parametrize("each", [1, 2, 3, 4, 40])
def test_the_part_of_a_large_set_that_a_model_counts_is_small(each: int) -> None:
    """So that the first evaluation of a large set does not wait for the kernels of many thresholds."""
    identity = np.arange(max(5000, 500 * each)) // each
    data = Embeddings(np.ones((identity.size, 1), dtype=np.float32), identity)
    part = recount_of(data).some(MOST_IDENTITIES, MOST_ROWS)
    assert isinstance(part.source, Embeddings)
    assert small.is_small(part.source)
