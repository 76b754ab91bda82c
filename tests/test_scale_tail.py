"""The tail holds exactly the comparisons that a loop finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchbound.counting.curves import curve_thresholds
from matchbound.counting.tail import score_quantiles, tail_embeddings
from matchbound.errors import UsageError
from test_scale_allpairs import random_embeddings


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 60),
    similarity=st.sampled_from(["cosine", "dot", "euclidean"]),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    prune=st.sampled_from(["none", "axes", "bytes"]),
)
def test_tail_equals_a_loop(seed: int, n: int, similarity: Any, dtype: Any, prune: Any) -> None:
    rng = np.random.default_rng(seed)
    data = random_embeddings(rng, similarity, dtype, n=n)
    rows = data.comparisons()
    at_least = float(rng.choice(rows.score))
    tail = tail_embeddings(data, at_least, prune=prune)
    reach = rows.score <= at_least if rows.distance else rows.score >= at_least
    kept = ~rows.genuine & reach
    expected = sorted(
        (s, min(i, j), max(i, j))
        for s, i, j in zip(rows.score[kept].tolist(), rows.a[kept].tolist(), rows.b[kept].tolist(), strict=True)
    )
    found = list(zip(tail.score.tolist(), tail.first.tolist(), tail.second.tolist(), strict=True))
    assert sorted(found) == expected
    assert tail.comparisons == int((~rows.genuine).sum())
    assert (np.diff(tail.score) * (1 if rows.distance else -1) >= 0).all()
    genuine = sorted(zip(rows.a[rows.genuine].tolist(), rows.score[rows.genuine].tolist(), strict=True))
    assert sorted(zip(tail.genuine.tolist(), tail.genuine_score.tolist(), strict=True)) == genuine


@pytest.mark.parametrize("rate", [1e-3, 0.03, 1.0])
def test_tail_by_rate_holds_at_least_that_share(rate: float) -> None:
    data = random_embeddings(np.random.default_rng(1), "euclidean", np.float32, n=1500)
    tail = tail_embeddings(data, rate=rate)
    assert rate * tail.comparisons <= tail.score.size <= (1.5 * rate + 0.02) * tail.comparisons


def test_tail_wants_one_of_two() -> None:
    data = random_embeddings(np.random.default_rng(1), "cosine", np.float32)
    with pytest.raises(UsageError, match="at_least or rate"):
        tail_embeddings(data)
    with pytest.raises(UsageError, match="rate"):
        tail_embeddings(data, rate=0.0)


def test_thresholds_for_a_curve_span_both_rates() -> None:
    data = random_embeddings(np.random.default_rng(2), "cosine", np.float32, n=300)
    thresholds = curve_thresholds(data, 200)
    rows = data.comparisons()
    assert (np.diff(thresholds) < 0).all()
    assert 100 <= thresholds.size <= 200
    far = np.array([(rows.score[~rows.genuine] >= t).mean() for t in thresholds])
    frr = np.array([(rows.score[rows.genuine] < t).mean() for t in thresholds])
    assert (far[0], frr[0], far[-1], frr[-1]) == (0.0, 1.0, 1.0, 0.0)
    assert np.abs(np.diff(frr)).max() < 0.05
    np.testing.assert_array_equal(thresholds, curve_thresholds(data, 200))


def test_quantiles_of_scores_are_reached_by_that_share() -> None:
    data = random_embeddings(np.random.default_rng(2), "cosine", np.float32, n=300)
    rows = data.comparisons()
    reached = (rows.score[~rows.genuine] >= score_quantiles(data, np.array([0.1]))[0]).mean()
    assert reached == pytest.approx(0.1, abs=0.01)
