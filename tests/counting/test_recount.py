"""Thresholds for numbers of errors are exact; small sets of embeddings are scored one by one, and counted anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import matchbound as mb
from matchbound.counting.recount import OfEmbeddings, OfScoredEmbeddings
from matchbound.counting.run import RunOptions
from matchbound.counting.sources import recount_of
from matchbound.results.latent import MOST_IDENTITIES, MOST_ROWS, CurveModels

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


def crowded(similarity: str, seed: int) -> mb.Embeddings:
    """Embeddings whose scores are so close together that single precision puts many pairs in the wrong order."""
    rng = np.random.default_rng(seed)
    vectors = 1.0 + 0.003 * rng.standard_normal((120, 16))
    return mb.Embeddings(vectors, np.arange(120) // 3, similarity=similarity)


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_thresholds_have_the_errors_wanted(similarity: str) -> None:
    data = crowded(similarity, 1)
    recount = OfEmbeddings(data)
    total = 120 * 119 // 2 - 120
    wanted = np.unique(np.rint(np.geomspace(3, total / 2, 40)).astype(np.int64))
    counted = recount.tally(recount.thresholds_at(wanted, "impostor")).impostor.errors.sum(axis=1) // 2
    assert np.array_equal(counted, wanted)


def test_ties_are_those_along_a_curve() -> None:
    data = crowded("cosine", 2)
    doubled = mb.Embeddings(np.repeat(data.vectors, 2, axis=0), np.repeat(data.codes, 2), similarity="cosine")
    along = mb.roc(doubled).recount
    wanted = np.array([5, 17, 201, 4001])
    assert np.array_equal(
        OfEmbeddings(doubled).thresholds_at(wanted, "impostor"), along.thresholds_at(wanted, "impostor")
    )


def test_a_fit_from_all_pairs_is_the_fit_from_a_curve() -> None:
    data = crowded("cosine", 3)
    curve = mb.roc(data)
    rates = mb.evaluate(data, float(curve.thresholds[50])).far
    one, two = (
        replace(rates, recount=OfEmbeddings(data)).latent_model(),
        CurveModels(curve.tally, curve.recount).at(50).far,
    )
    assert one.correlations == two.correlations
    known = np.isin(one.own.errors, two.own.errors)
    assert known.sum() >= one.own.errors.size - 1
    assert np.array_equal(one.own.relative[known], two.own.relative)


def test_a_small_set_is_one_step() -> None:
    reports: list[tuple[int, int]] = []
    data = crowded("cosine", 3)
    recount_of(data).tally(np.array([0.5]), options=RunOptions(progress=lambda *at: reports.append(at)))
    assert reports == [(1, 1)]


def test_vectors_that_were_changed_in_place_are_scored_again() -> None:
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(90, 8)).astype(np.float32)
    data = mb.Embeddings(vectors, np.arange(90) // 3)
    before = mb.tally(data, 0.3).impostor.wrong(0)
    vectors[:45] = vectors[0]
    after = mb.tally(data, 0.3).impostor.wrong(0)
    assert before < after == mb.tally(mb.Embeddings(vectors.copy(), np.arange(90) // 3), 0.3).impostor.wrong(0)


def test_an_empty_set_and_nan() -> None:
    empty = mb.Embeddings(np.empty((0, 3), dtype=np.float32), np.empty(0, dtype=np.int64))
    assert recount_of(empty).tally(np.array([0.5])).impostor.errors.shape == (1, 0)
    with pytest.raises(mb.UsageError, match="NaN"):
        recount_of(crowded("dot", 0)).tally(np.array([np.nan]))


@pytest.mark.parametrize("each", [1, 2, 3, 4, 40])
def test_the_part_of_a_large_set_that_a_model_counts_is_small(each: int) -> None:
    """So that the first evaluation of a large set does not wait for the kernels of many thresholds."""
    identity = np.arange(max(5000, 500 * each)) // each
    data = mb.Embeddings(np.ones((identity.size, 1), dtype=np.float32), identity)
    assert isinstance(recount_of(data).some(MOST_IDENTITIES, MOST_ROWS), OfScoredEmbeddings)
