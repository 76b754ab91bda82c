"""Thresholds for numbers of errors are exact, and tables are counted the same with and without a sort."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import matchbound as mb
from matchbound.counting.recount import OfEmbeddings
from matchbound.results.latent import CurveModels

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
