"""Matches within bands of scores, and curves that are refined by them: the same as from counting every threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchbound as mb
from matchbound.counting import between, curves
from matchbound.counting.between import pairs_between
from matchbound.counting.recount import Recount
from matchbound.counting.running import How


def _data(seed: int, similarity: Any, tied: bool, rows: int = 70, dtype: Any = np.float32) -> mb.Embeddings:
    rng = np.random.default_rng(seed)
    identity = rng.integers(0, 12, rows)
    vectors = rng.normal(size=(12, 6))[identity] + 0.7 * rng.normal(size=(rows, 6))
    vectors = np.round(vectors) + 0.01 if tied else vectors
    return mb.Embeddings(vectors.astype(dtype), identity, similarity)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["cosine", "dot", "euclidean"]), st.booleans(), st.booleans())
def test_matches_in_bands_are_those_of_all_scores(seed: int, similarity: Any, tied: bool, double: bool) -> None:
    data = _data(seed, similarity, tied, dtype=np.float64 if double else np.float32)
    score = data.comparisons().score
    oriented = np.sort(-score if data.distance else score)
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.choice(oriented, (4, 2)), axis=1)
    found = pairs_between(data, ends, How(2))
    assert found is not None
    for low, high in ends:
        inside = oriented[(oriented >= low) & (oriented <= high)]
        asked = np.concatenate([[low, high], inside[::7], rng.uniform(low, high, 5)])
        np.testing.assert_array_equal(found.matches(asked), [np.count_nonzero(oriented >= t) for t in asked])


def test_thresholds_outside_all_bands_and_too_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    data = _data(1, "cosine", False)
    found = pairs_between(data, np.array([[0.1, 0.2], [0.5, 0.6]]), How(1))
    assert found is not None
    with pytest.raises(AssertionError, match="outside all bands"):
        found.matches(np.array([0.3]))
    monkeypatch.setattr(between, "MOST_LISTED", 10)
    assert pairs_between(data, np.array([[-1.0, 1.0]]), How(1)) is None
    monkeypatch.setattr(between, "MOST_BANDS", 1)
    assert pairs_between(data, np.array([[0.1, 0.1], [0.5, 0.5]]), How(1)) is None


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_a_curve_is_refined_alike_by_listing_and_by_counting(
    similarity: str, tied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "EXACT_COMPARISONS", 10)
    monkeypatch.setattr(curves, "CURVE_POINTS", 40)
    data = _data(5, similarity, tied, rows=400)
    edges = np.quantile(data.comparisons().score, [0.1, 0.5, 0.9])
    made, passes = [], []
    for few in (curves.FEW_BETWEEN, 300, -1):
        monkeypatch.setattr(curves, "FEW_BETWEEN", few)
        counted: list[int] = []
        original = Recount.tally

        def tally(
            self: Recount, thresholds: Any, *, pairs: bool = False, log: Any = counted, to: Any = original
        ) -> Any:
            log.append(np.size(thresholds))
            return to(self, thresholds, pairs=pairs)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Recount, "tally", tally)
            curve = mb.roc(data)
            made.append(curve.refined(far=[0.1, 0.01, 0.003], frr=[0.05], eer=True, beside=edges))
        passes.append(counted)
    assert len(passes[0]) <= 1 < len(passes[2]), "listing takes one pass at points of the curve"
    for other in made[1:]:
        for name in ("thresholds", "far", "frr", "far_variance", "frr_variance"):
            np.testing.assert_array_equal(getattr(made[0], name), getattr(other, name))
        for kind in ("genuine", "impostor"):
            np.testing.assert_array_equal(
                getattr(made[0].tally.tally, kind).errors,  # type: ignore[attr-defined]
                getattr(other.tally.tally, kind).errors,  # type: ignore[attr-defined]
            )
    ahead = made[0].recount.tally(edges)
    np.testing.assert_array_equal(ahead.impostor.errors, Recount(data).tally(edges).impostor.errors)
    np.testing.assert_array_equal(ahead.genuine.errors, Recount(data).tally(edges).genuine.errors)
