"""The all-pairs engine counts exactly what a loop over float64 scores counts."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchbound import scratch as room_module
from matchbound.counting import allpairs as allpairs_module
from matchbound.counting.allpairs import Sizes, tally_embeddings
from matchbound.counting.pairs import impostor_pairs
from matchbound.counting.recount import OfScoredEmbeddings
from matchbound.counting.run import RunOptions
from matchbound.counting.screen import COSTS, screen_that_pays
from matchbound.data.embeddings import Embeddings
from matchbound.kernels.screen import SCREENS, Screen
from naive_scale import assert_is_loop, assert_same

SCREENED = [kind.__name__.lower() for kind in SCREENS if kind.available()]
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


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


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 70),
    similarity=st.sampled_from(["cosine", "dot", "euclidean"]),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    count=st.sampled_from([1, 2, 50]),
    pairs=st.booleans(),
    workers=st.sampled_from([1, 2]),
    span=st.sampled_from([4, 16, 1024]),
    prune=st.sampled_from(["none", *SCREENED, "one by one"]),
)
def test_counts_equal_a_loop(
    seed: int, n: int, similarity: Any, dtype: Any, count: int, pairs: bool, workers: int, span: int, prune: Any
) -> None:
    rng = np.random.default_rng(seed)
    data = random_embeddings(rng, similarity, dtype, n=n)
    thresholds = some_thresholds(rng, data, count)
    options, sizes = RunOptions(workers=workers), Sizes(span, max(span // 4, 2))
    if prune == "one by one":
        tally = OfScoredEmbeddings(data, options).tally(thresholds, pairs=pairs)
    else:
        tally = tally_embeddings(data, thresholds, options, pairs=pairs, prune=prune, sizes=sizes)
    assert_is_loop(tally, data, thresholds, pairs=pairs)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    similarity=st.sampled_from(["cosine", "euclidean"]),
    sizes=st.lists(st.sampled_from([1, 1, 2, 3, 5, 20, 70]), min_size=2, max_size=8),
)
def test_dense_blocks_equal_a_loop(seed: int, similarity: Any, sizes: list[int]) -> None:
    """Pairs of 1 to 4,900 comparisons, all thresholds reached by many; one threshold is there twice."""
    rng = np.random.default_rng(seed)
    identity = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    data = Embeddings(np.round(rng.standard_normal((identity.size, 4)), 1) + 0.05, identity, similarity)
    scores = np.sort(data.comparisons().score)
    lowest = int(rng.integers(0, 10))
    every = np.unique(np.concatenate([scores[:: max(1, scores.size // 30)], [scores[0] - 1.0, scores[-1] + 1.0]]))
    thresholds = np.concatenate([every[lowest:], every[lowest : lowest + 1]])
    sizes = Sizes(span_rows=128, dense_share=-1.0)
    tally = tally_embeddings(data, thresholds, RunOptions(workers=1), prune="none", sizes=sizes)
    assert_is_loop(tally, data, thresholds, pairs=False)


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
def test_a_few_thresholds_twice_among_many(similarity: Any, step: int) -> None:
    """Those that are in order are counted as they are; the counts are those of a loop."""
    rng = np.random.default_rng(11)
    data = random_embeddings(rng, similarity, np.float32, n=80)
    scores = np.unique(data.comparisons().score)
    thresholds = np.sort(np.append(rng.choice(scores, size=100, replace=False), scores[[5, 5, 40]]))[::step]
    tally = tally_embeddings(data, thresholds, RunOptions(workers=1), pairs=True)
    assert tally.impostor.errors.base is not None, "no copy"
    assert_is_loop(tally, data, thresholds, pairs=True)
    mixed = rng.permutation(thresholds)
    assert_is_loop(tally_embeddings(data, mixed, RunOptions(workers=1)), data, mixed, pairs=False)


def test_dense_blocks_at_more_thresholds_than_fit_a_key() -> None:
    """More than 2,048 of them: pairs with up to 32 comparisons are booked in another way."""
    rng = np.random.default_rng(12)
    data = Embeddings(
        rng.standard_normal((60, 4)), np.repeat(np.arange(16), [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 9, 1, 1, 2, 8, 9])
    )
    thresholds = np.sort(rng.uniform(-1, 1, 2100))
    tally = tally_embeddings(data, thresholds, RunOptions(workers=1), prune="none", sizes=Sizes(dense_share=-1.0))
    few = rng.choice(thresholds.size, 40, replace=False)
    assert_is_loop(tally.take(few), data, thresholds[few], pairs=False)


def test_rounding_never_decides() -> None:
    """Wide vectors, every threshold a score, neighbours of scores among them: float32 could not tell."""
    rng = np.random.default_rng(8)
    for similarity in ("cosine", "dot", "euclidean"):
        vectors = rng.standard_normal((60, 700)) + 3.0
        data = Embeddings(vectors, rng.integers(0, 15, size=60), similarity)
        picked = rng.choice(data.comparisons().score, size=12, replace=False)
        thresholds = np.concatenate([picked, np.nextafter(picked, -np.inf), np.nextafter(picked, np.inf)])
        for chosen in (thresholds, thresholds[:1], thresholds[12:13], thresholds[24:25]):
            for prune in ("none", *SCREENED):
                assert_is_loop(tally_embeddings(data, chosen, pairs=True, prune=prune), data, chosen, pairs=True)


@pytest.mark.parametrize("scale", [1e-30, 1e-160, 1e30, 1e150])
@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_vectors_of_any_size(scale: float, similarity: Any) -> None:
    rng = np.random.default_rng(9)
    vectors = scale * (rng.standard_normal((40, 6)) + 1.0)
    vectors[:5] *= 1e-3
    data = Embeddings(vectors, rng.integers(0, 10, size=40), similarity)
    thresholds = rng.choice(data.comparisons().score, size=5)
    assert_is_loop(tally_embeddings(data, thresholds), data, thresholds, pairs=False)
    assert_is_loop(tally_embeddings(data, thresholds[:1]), data, thresholds[:1], pairs=False)


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors_of_the_smallest_numbers(dtype: Any, similarity: Any) -> None:
    """Products underflow, and the band is wider than all values: every score is taken one by one."""
    rng = np.random.default_rng(14)
    vectors = (rng.integers(1, 9, (30, 5)) * np.finfo(dtype).smallest_subnormal).astype(dtype)
    data = Embeddings(vectors, rng.integers(0, 8, size=30), similarity)
    thresholds = np.unique(rng.choice(data.comparisons().score, size=6))
    for chosen in (thresholds, thresholds[:1]):
        assert_is_loop(tally_embeddings(data, chosen), data, chosen, pairs=False)


@pytest.mark.parametrize("prune", ["none", *SCREENED])
@pytest.mark.parametrize("count", [1, 9])
def test_an_identity_with_half_of_all_rows(count: int, prune: Any) -> None:
    rng = np.random.default_rng(10)
    identity = np.where(rng.random(300) < 0.5, 0, rng.integers(1, 50, size=300))
    vectors = rng.standard_normal((50, 8))[identity] + rng.standard_normal((300, 8))
    data = Embeddings(vectors.astype(np.float32), identity)
    scores = data.comparisons().score
    thresholds = np.quantile(scores, np.linspace(0.02, 0.999, count)) if count > 1 else np.array([0.9])
    tally = tally_embeddings(data, thresholds, pairs=True, prune=prune, sizes=Sizes(70, 24, 45))
    assert_is_loop(tally, data, thresholds, pairs=True)


def structured(n: int, d: int, seed: int, decay: float = 1.0) -> Embeddings:
    """Vectors near a subspace, as real embeddings are."""
    rng = np.random.default_rng(seed)
    spread = np.arange(1, d + 1) ** -decay
    identity = rng.integers(0, n // 4, size=n)
    vectors = (rng.standard_normal((n // 4, d))[identity] + 0.5 * rng.standard_normal((n, d))) * spread
    return Embeddings(vectors.astype(np.float32), identity)


def score_quantiles(source: Embeddings, rates: Any) -> Any:
    """Scores that about these shares of the impostor comparisons reach; from a fixed sample."""
    scores = source.score_pairs(*impostor_pairs(source, 1_000_000, np.random.default_rng(0)))
    found = np.quantile(-scores if source.distance else scores, 1.0 - rates)
    return -found if source.distance else found


def screen_of(data: Embeddings, threshold: Any, **how: Any) -> Screen | None:
    """A screen of all pairs, where it pays; the threshold is among oriented scores."""
    factors = allpairs_module.make_job(data, threshold, False, prune="none").factors
    return screen_that_pays(factors, float(factors.values(threshold)[0]), 0.001, **how)


@pytest.mark.parametrize("kind", [kind for kind in SCREENS if kind.available()])
@pytest.mark.parametrize(("similarity", "decay"), [("cosine", 1.0), ("euclidean", 0.3)])
def test_a_screen_pays_on_structured_data_and_changes_nothing(
    similarity: Any, decay: float, kind: type[Screen]
) -> None:
    base = structured(5000, 64, 11, decay)
    data = Embeddings(base.vectors, base.codes, similarity)
    threshold = score_quantiles(data, np.array([1e-3]))
    assert screen_of(data, -threshold if data.distance else threshold, kind=kind) is not None
    plain = tally_embeddings(data, threshold, pairs=True, prune="none")
    path: Any = kind.__name__.lower()
    pruned = tally_embeddings(data, threshold, pairs=True, prune=path)
    assert_same(plain, pruned)


@pytest.mark.parametrize(
    ("fast", "far", "screened"), [(False, 1e-3, False), (True, 1e-3, True), (True, 0.5, False)]
)  # fmt: skip
def test_a_screen_is_left_where_it_would_not_pay(fast: bool, far: float, screened: bool) -> None:
    """Where bytes are no faster than floats, and where most comparisons match."""
    costs = COSTS if fast else COSTS._replace(byte=2 * COSTS.column)
    rng = np.random.default_rng(12)
    data = Embeddings(rng.standard_normal((5000, 64)).astype(np.float32), rng.integers(0, 900, size=5000))
    screen = screen_of(data, score_quantiles(data, np.array([far])), costs=costs)
    assert (screen is not None) == screened


def test_memory_maps_and_large_factors(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = structured(700, 16, 13)
    np.save(tmp_path / "vectors.npy", data.vectors)
    mapped = Embeddings(np.load(tmp_path / "vectors.npy", mmap_mode="r"), data.identities[data.codes])
    expected = tally_embeddings(data, np.array([0.5]), prune="none")
    monkeypatch.setattr(room_module, "MEMORY_BYTES", 0)
    for prune in ("none", *SCREENED):
        tally = tally_embeddings(mapped, np.array([0.5]), prune=prune)
        assert_same(tally, expected)


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_to_compare(n: int) -> None:
    tally = tally_embeddings(Embeddings(np.ones((n, 3)), np.arange(n)), np.array([0.5, 0.1]), pairs=True)
    assert tally.impostor.errors.shape == (2, n)
    assert tally.impostor.sum_nn.tolist() == [0, 0]


def errors_in_float64(data: Embeddings, threshold: float) -> tuple[Any, Any]:
    """False accepts and false rejects by identity, from a float64 product of all rows, 1,000 at a time.

    What lies within 1e-9 of the threshold is scored again, pair by pair.
    """
    vectors = np.asarray(data.vectors, dtype=np.float64)
    if data.distance:
        half = np.square(vectors).sum(axis=1) / 2
        level = -(threshold**2) / 2
    else:
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        half, level = np.zeros(len(vectors)), threshold
    accepted = np.zeros(data.n_identities, dtype=np.int64)
    rejected = np.zeros(data.n_identities, dtype=np.int64)
    for start in range(0, len(data), 1000):
        rows = np.arange(start, min(start + 1000, len(data)))
        above = vectors[rows] @ vectors[start:].T - half[rows, None] - half[None, start:] - level
        matched = above >= 0
        first, second = np.nonzero(np.abs(above) < 1e-9)
        scores = data.score_pairs(rows[first], start + second)
        matched[first, second] = scores <= threshold if data.distance else scores >= threshold
        later = np.arange(start, len(data))[None, :] > rows[:, None]
        same = data.codes[rows][:, None] == data.codes[None, start:]
        a, b = np.nonzero(later & ~same & matched)
        accepted += np.bincount(data.codes[np.concatenate([rows[a], start + b])], minlength=accepted.size)
        a, b = np.nonzero(later & same & ~matched)
        rejected += np.bincount(data.codes[rows[a]], minlength=rejected.size)
    return accepted, rejected


@cache
def brute_force(name: str, similarity: Any) -> tuple[Embeddings, Any, Any, Any]:
    """Real data, a threshold at FAR 1e-3, and the errors there by identity."""
    with np.load(SHARED / f"{name}.npz", allow_pickle=False) as stored:
        data = Embeddings(stored["embeddings"], stored["identity"], similarity)
    threshold = score_quantiles(data, np.array([1e-3]))
    return data, threshold, *errors_in_float64(data, float(threshold[0]))


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("prune", SCREENED)
@pytest.mark.parametrize(
    ("name", "similarity"), [("face_lfw_dlib", "euclidean"), ("text_clinc150_minilm", "cosine")]
)  # fmt: skip
def test_real_data_equal_brute_force(name: str, similarity: Any, prune: Any) -> None:
    if not (SHARED / f"{name}.npz").exists():
        pytest.skip("the shared data are not here")
    data, threshold, accepted, rejected = brute_force(name, similarity)
    tally = tally_embeddings(data, threshold, prune=prune)
    assert accepted.sum() > 10_000
    np.testing.assert_array_equal(tally.impostor.errors[0], accepted)
    np.testing.assert_array_equal(tally.genuine.errors[0], rejected)
