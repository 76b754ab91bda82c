"""Embeddings and the comparisons made from them agree exactly, in every number and every bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchbound as mb
from matchbound import results

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


@st.composite
def embeddings(draw: st.DrawFn) -> mb.Embeddings:
    sizes = draw(st.lists(st.integers(1, 5), min_size=2, max_size=6))
    seed = draw(st.integers(0, 2**32 - 1))
    kind = draw(st.sampled_from(["f2", "f4", "f8"]))
    similarity = draw(st.sampled_from(["cosine", "dot", "euclidean"]))
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-2, 3, (sum(sizes), draw(st.integers(1, 9)))).astype(kind)
    vectors[~vectors.any(axis=1), 0] = 1
    order = rng.permutation(len(vectors))
    return mb.Embeddings(vectors[order], np.repeat(np.arange(len(sizes)), sizes)[order], similarity)


def _variance(rate: results.Rate, kind: str) -> float | str:
    """The variance, or why there is none."""
    try:
        return rate.variance_by(kind)
    except mb.DataError as error:
        return str(error)


@settings(max_examples=60)
@given(embeddings(), st.data())
def test_embeddings_equal_their_comparisons(data: mb.Embeddings, draw: st.DataObject) -> None:
    """Thresholds are drawn among the scores themselves, where one bit decides."""
    table = data.comparisons()
    grid = draw.draw(st.lists(st.sampled_from(sorted(set(table.score))), min_size=1, max_size=3))
    for one, two in zip(mb.evaluate(data, grid), mb.evaluate(table, grid), strict=True):
        for metric in ("far", "frr"):
            left, right = getattr(one, metric), getattr(two, metric)
            assert (left.errors, left.comparisons) == (right.errors, right.comparisons)
            if not left.comparisons:
                continue
            assert left.variance == right.variance
            assert left.interval() == right.interval()
            for kind in ("plug-in", "fixed-sizes"):
                assert _variance(left, kind) == _variance(right, kind)


@pytest.mark.parametrize("method", ["vertex", "double-or-nothing", "subsets", "two-level", "naive-bootstrap"])
def test_bootstraps_equal_too(method: str) -> None:
    data = mb.demo_data(n_identities=30)
    one, two = mb.evaluate(data, 0.45), mb.evaluate(data.comparisons(), 0.45)
    for metric in ("far", "frr"):
        left = getattr(one, metric).bootstrap(method, 250, rng=5).replicates
        right = getattr(two, metric).bootstrap(method, 250, rng=5).replicates
        assert np.array_equal(left, right)


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_scores_are_what_they_are_called(similarity: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((9, 13))
    data = mb.Embeddings(x, np.arange(9) // 3, similarity)  # type: ignore[arg-type]
    first, second = np.triu_indices(9, 1)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    target = {
        "cosine": (unit[first] * unit[second]).sum(axis=1),
        "dot": (x[first] * x[second]).sum(axis=1),
        "euclidean": np.linalg.norm(x[first] - x[second], axis=1),
    }[similarity]
    np.testing.assert_allclose(data.score_pairs(first, second), target, rtol=1e-13, atol=1e-13)
    assert np.array_equal(data.score_pairs(first, second), data.score_pairs(second, first))
    assert data.score_pairs([first[5]], [second[5]])[0] == data.score_pairs(first, second)[5]


def test_positions_outside_the_data_are_refused() -> None:
    data = mb.Embeddings(np.eye(3), list("abc"))
    with pytest.raises(mb.UsageError, match="second"):
        data.score_pairs([0], [3])
    with pytest.raises(mb.UsageError, match="first"):
        data.score_pairs([-1], [1])


def test_groups_belong_to_identities() -> None:
    data = mb.Embeddings(np.eye(4), list("baba"), group=list("yxyx"))
    assert list(data.identities) == ["a", "b"]
    assert data.group is not None
    assert list(data.group) == ["x", "y"]
