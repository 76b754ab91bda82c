"""The all-pairs engine counts exactly what a loop over float64 scores counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchbound.engine import allpairs as allpairs_module
from matchbound.engine import layout as layout_module
from matchbound.engine.allpairs import tally_embeddings
from matchbound.engine.tally import AllPairs, Tally
from matchbound.errors import UsageError
from matchbound.sources.embeddings import Embeddings
from naive_scale import tally_by_loop


def assert_equal(tally: Tally, expected: dict[str, Any], *, pairs: bool) -> None:
    np.testing.assert_array_equal(tally.genuine.comparisons, expected["genuine_comparisons"])
    np.testing.assert_array_equal(tally.genuine.errors, expected["genuine_errors"])
    np.testing.assert_array_equal(tally.impostor.comparisons, expected["impostor_comparisons"])
    np.testing.assert_array_equal(tally.impostor.errors, expected["impostor_errors"])
    assert tally.impostor.sum_mm == expected["sum_mm"]
    assert tally.impostor.sum_nm.tolist() == expected["sum_nm"]
    assert tally.impostor.sum_nn.tolist() == expected["sum_nn"]
    assert isinstance(tally.impostor.compared, AllPairs)
    if not pairs:
        assert tally.impostor.erred is None
        return
    assert tally.impostor.erred is not None
    for table, naive in zip(tally.impostor.erred, expected["erred"], strict=True):
        keys = sorted(naive)
        assert list(zip(table.first.tolist(), table.second.tolist(), strict=True)) == keys
        assert table.count.tolist() == [naive[key] for key in keys]


def random_embeddings(rng: np.random.Generator, similarity: Any, dtype: Any, n: int = 60, d: int = 5) -> Embeddings:
    """Clustered, unbalanced data with repeated rows, on a coarse grid so that scores tie."""
    identity = rng.geometric(0.15, size=n) % max(2, n // 4)
    centre = rng.standard_normal((n, d))
    vectors = np.round(centre[identity] + 0.7 * rng.standard_normal((n, d)), 1) + 0.1
    if n > 5:
        vectors[rng.integers(n, size=3)] = vectors[rng.integers(n, size=3)]
    vectors[~vectors.any(axis=1)] = 1
    return Embeddings(vectors.astype(dtype), [f"p{k}" for k in identity], similarity)


def some_thresholds(rng: np.random.Generator, data: Embeddings, count: int) -> Any:
    """Thresholds on scores, between them and outside their range, in no order and some twice."""
    scores = data.comparisons().score
    picked = rng.choice(scores, size=count)
    outside = [scores.min() - 1.0, scores.max() + 1.0, -1e300, 1e300]
    between = rng.uniform(scores.min(), scores.max(), size=count)
    return rng.choice(np.concatenate([picked, picked, between, outside]), size=count)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 70),
    similarity=st.sampled_from(["cosine", "dot", "euclidean"]),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    count=st.sampled_from([1, 2, 50]),
    pairs=st.booleans(),
    workers=st.sampled_from([1, 2]),
    span=st.sampled_from([4, 16, 1024]),
    prune=st.booleans(),
)
def test_counts_equal_a_loop(
    seed: int, n: int, similarity: Any, dtype: Any, count: int, pairs: bool, workers: int, span: int, prune: bool
) -> None:
    rng = np.random.default_rng(seed)
    data = random_embeddings(rng, similarity, dtype, n=n)
    thresholds = some_thresholds(rng, data, count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout_module.lay_out, "__defaults__", (span, layout_module.PIECE_ROWS))
        patch.setattr(allpairs_module, "PIECE_ROWS", max(span // 4, 2))
        tally = tally_embeddings(data, thresholds, pairs=pairs, workers=workers, prune=prune)
    np.testing.assert_array_equal(tally.thresholds, thresholds)
    assert_equal(tally, tally_by_loop(data, thresholds), pairs=pairs)


def test_nan_threshold_is_refused() -> None:
    data = random_embeddings(np.random.default_rng(0), "cosine", np.float32)
    with pytest.raises(UsageError, match="NaN"):
        tally_embeddings(data, np.array([0.5, np.nan]))
