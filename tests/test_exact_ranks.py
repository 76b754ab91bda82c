"""Thresholds for numbers of errors are exact, and tables are counted the same with and without a sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
from matchbound.counting import tables as counted_tables
from matchbound.counting.curves import AlongCurve
from matchbound.counting.recount import Recount, rank_scores, settle_ranks
from matchbound.counting.tables import tally_comparisons
from matchbound.counts.tally import PairTable
from matchbound.results.latent_pair import CurveModels
from strategies import comparisons, tables

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


def crowded(similarity: str, seed: int) -> mb.Embeddings:
    """Embeddings whose scores are so close together that single precision puts many pairs in the wrong order."""
    rng = np.random.default_rng(seed)
    vectors = 1.0 + 0.003 * rng.standard_normal((120, 16))
    return mb.Embeddings(vectors, np.arange(120) // 3, similarity=similarity)


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_settled_thresholds_have_the_errors_wanted(similarity: str) -> None:
    data = crowded(similarity, 1)
    recount = Recount(data)
    total = 120 * 119 // 2 - 120
    wanted = np.unique(np.rint(np.geomspace(3, total / 2, 40)).astype(np.int64))
    first = rank_scores(data, wanted)
    counted = recount.tally(first).impostor.errors.sum(axis=1) // 2
    if similarity != "euclidean":
        assert np.any(counted != wanted)
    settled = settle_ranks(data, first, wanted, counted)
    again = recount.tally(settled).impostor.errors.sum(axis=1) // 2
    assert np.array_equal(again, wanted)
    assert np.array_equal(settled[counted == wanted], first[counted == wanted])


def test_ties_are_settled_as_along_a_curve() -> None:
    data = crowded("cosine", 2)
    doubled = mb.Embeddings(np.repeat(data.vectors, 2, axis=0), np.repeat(data.codes, 2), similarity="cosine")
    curve = mb.roc(doubled)
    along = AlongCurve.of(curve.recount, curve.tally)
    wanted = np.array([5, 17, 201, 4001])
    recount = Recount(doubled)
    first = recount.thresholds_at(wanted, "impostor")
    counted = recount.tally(first).impostor.errors.sum(axis=1) // 2
    settled = recount.settled(first, wanted, counted)
    target = along.tally(along.thresholds_at(wanted, "impostor")).impostor.errors
    assert np.array_equal(recount.tally(settled).impostor.errors, target)
    assert np.array_equal(along.settled(first, wanted, counted), first)


def test_a_fit_from_all_pairs_is_the_fit_from_a_curve() -> None:
    data = crowded("cosine", 3)
    curve = mb.roc(data)
    rates = mb.evaluate(data, float(curve.thresholds[50]))
    one, two = rates.far.latent_model(), CurveModels(curve.tally, curve.recount).at(50).far
    assert np.array_equal(one.correlations.z, two.correlations.z)
    assert np.array_equal(one.correlations.identity, two.correlations.identity)
    known = np.isin(one.own.errors, two.own.errors)
    assert known.sum() >= one.own.errors.size - 1
    assert np.array_equal(one.own.relative[known], two.own.relative)


@given(tables(), st.lists(st.integers(-5, 5).map(lambda s: s / 4), min_size=1, max_size=4), st.booleans())
def test_the_dense_table_counts_as_the_sort_does(rows: list, thresholds: list[float], distance: bool) -> None:
    data, grid = comparisons(rows, distance), np.array(thresholds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counted_tables, "DENSE_CELLS", 1000)
        dense = tally_comparisons(data, grid).impostor
        patch.setattr(counted_tables, "DENSE_CELLS", 0)
        sorted_ = tally_comparisons(data, grid).impostor
    for name in ("comparisons", "errors", "sum_mm", "sum_nm", "sum_nn"):
        one, two = getattr(dense, name), getattr(sorted_, name)
        assert np.array_equal(one, two), name
        assert np.asarray(one).dtype == np.asarray(two).dtype, name
    assert dense.erred is not None
    assert sorted_.erred is not None
    for left, right in zip((dense.compared, *dense.erred), (sorted_.compared, *sorted_.erred), strict=True):
        assert isinstance(left, PairTable)
        assert isinstance(right, PairTable)
        for name in ("first", "second", "count"):
            assert np.array_equal(getattr(left, name), getattr(right, name)), name
            assert getattr(left, name).dtype == getattr(right, name).dtype, name
