"""Small sets of embeddings are counted without blocks; that they are counted right is in test_allpairs."""

from __future__ import annotations

import numpy as np
import pytest
from test_allpairs import random_embeddings

import matchbound as mb
from matchbound.counting.recount import OfScoredEmbeddings
from matchbound.counting.run import RunOptions
from matchbound.counting.sources import recount_of
from matchbound.data.embeddings import Embeddings
from matchbound.errors import UsageError
from matchbound.results.latent import MOST_IDENTITIES, MOST_ROWS


def test_a_small_set_is_one_step() -> None:
    reports: list[tuple[int, int]] = []
    data = random_embeddings(np.random.default_rng(3), "cosine", np.float32, n=300)
    recount_of(data).tally(np.array([0.5]), options=RunOptions(progress=lambda *at: reports.append(at)))
    assert reports == [(1, 1)]


def test_vectors_that_were_changed_in_place_are_scored_again() -> None:
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(90, 8)).astype(np.float32)
    data = Embeddings(vectors, np.arange(90) // 3)
    before = mb.tally(data, 0.3).impostor.wrong(0)
    vectors[:45] = vectors[0]
    after = mb.tally(data, 0.3).impostor.wrong(0)
    assert before < after == mb.tally(Embeddings(vectors.copy(), np.arange(90) // 3), 0.3).impostor.wrong(0)


def test_an_empty_set_and_nan() -> None:
    empty = Embeddings(np.empty((0, 3), dtype=np.float32), np.empty(0, dtype=np.int64))
    assert recount_of(empty).tally(np.array([0.5])).impostor.errors.shape == (1, 0)
    data = random_embeddings(np.random.default_rng(0), "dot", np.float32)
    with pytest.raises(UsageError, match="NaN"):
        recount_of(data).tally(np.array([np.nan]))


@pytest.mark.parametrize("each", [1, 2, 3, 4, 40])
def test_the_part_of_a_large_set_that_a_model_counts_is_small(each: int) -> None:
    """So that the first evaluation of a large set does not wait for the kernels of many thresholds."""
    identity = np.arange(max(5000, 500 * each)) // each
    data = Embeddings(np.ones((identity.size, 1), dtype=np.float32), identity)
    assert isinstance(recount_of(data).some(MOST_IDENTITIES, MOST_ROWS), OfScoredEmbeddings)
