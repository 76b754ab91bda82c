"""Every compiled kernel has a literal twin, and both agree on what the library hands to it.

Small runs of the library call the kernels; each call is also made by the twin, on a copy of its arguments, and the
two are compared. A kernel without a twin, or one that no run calls, fails.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchbound as mb
import naive_kernels as naive
from matchbound.counting.allpairs import Sizes, tally_embeddings
from matchbound.counting.run import RunOptions
from matchbound.kernels import sweep
from matchbound.stats import resampling
from naive_scale import assert_is_loop

Check = Callable[[tuple[Any, ...], tuple[Any, ...], Any], None]
"""Given the arguments before a call, the same after it, and what it returned."""


def close(mine: Any, theirs: Any, rtol: float = 1e-11, atol: float = 1e-13) -> None:
    np.testing.assert_allclose(np.asarray(mine, dtype=np.float64), theirs, rtol=rtol, atol=atol)


def writes(twin: Callable[..., Any], place: int = -1) -> Check:
    """The kernel writes one array, which the twin returns."""
    return lambda before, after, _: close(after[place], twin(*before))


def returns(twin: Callable[..., Any]) -> Check:
    """The kernel returns a number, which the twin returns."""
    return lambda before, after, result: close(result, twin(*before))


def _read_curve(before: Any, after: Any, result: Any) -> None:
    frr, far, eer = naive.read_curve(*before)
    close(after[-1][0], frr)
    close(after[-1][1], far)
    close(result, eer)


def _pool(before: Any, after: Any, result: Any) -> None:
    blocks = naive.pool(*before)
    assert result == len(blocks)
    assert list(zip(*(part[:result].tolist() for part in after), strict=True)) == blocks


def _fill_rows(before: Any, after: Any, _: Any) -> None:
    left, right, reach = naive.fill_rows(*before)
    close(after[4], left, rtol=1e-6, atol=1e-7)
    close(after[5], right, rtol=1e-6, atol=1e-7)
    close(after[6], reach)
    assert (after[6] >= reach * (1.0 - 1e-15)).all(), "lengths are rounded up"


def _keep_best(before: Any, after: Any, _: Any) -> None:
    score, holder = naive.keep_best(*before)
    close(after[-1].score, score)
    np.testing.assert_array_equal(after[-1].holder, holder)


def _take_turns(before: Any, after: Any, _: Any) -> None:
    for mine, theirs in zip(after[5:7], naive.take_turns(*before), strict=True):
        np.testing.assert_array_equal(mine, theirs)


BY_CALL: dict[str, Check] = {
    "kernels.dense.share_of_hits": returns(naive.share_of_hits),
    "kernels.exact._score_pairs": writes(naive.score_pairs),
    "kernels.exact._squared_lengths": writes(naive.squared_lengths),
    "kernels.sweep.pool": _pool,
    "kernels.factors.fill_rows": _fill_rows,
    "kernels.factors.largest_offset": returns(naive.largest_offset),
    "kernels.sweep._add_forms": writes(naive.add_forms),
    "kernels.search.every_score": writes(naive.every_score),
    "kernels.search.keep_best": _keep_best,
    "kernels.search.mate_scores": writes(naive.mate_scores),
    "kernels.search.set_cuts": writes(naive.set_cuts),
    "kernels.sweep.cumulate_pairs": writes(naive.cumulate_pairs),
    "kernels.sweep.curve_area": returns(naive.curve_area),
    "kernels.sweep.draw_within": writes(naive.draw_within),
    "kernels.sweep.genuine_sums": writes(naive.genuine_sums),
    "kernels.sweep.impostor_sums": writes(naive.impostor_sums),
    "kernels.sweep.read_curve": _read_curve,
    "kernels.sweep.weighted_histogram": writes(naive.weighted_histogram),
    "planning.turns.take_turns": _take_turns,
}
"""Kernels whose every call is compared with the call of a twin."""

BY_RESULT = {
    "kernels.bins.bin_block": {"prune": "none", "share": 2.0, "count": 40},
    "kernels.count.count_block": {"prune": "none", "share": 2.0, "count": 1},
    "kernels.dense.add_columns": {"prune": "none", "share": -1.0, "count": 40},
    "kernels.dense.bin_dense_block": {"prune": "none", "share": -1.0, "count": 40},
}
"""Kernels that carry books from block to block: the whole tally is compared with `tally_by_loop`."""

IN_TEST_SCREEN = ["kernels.screen.fill_bits", "kernels.screen.round_rows"]
"""Kernels that are compared with a twin in `test_screen`, for every kind of processor."""


def all_kernels() -> set[str]:
    """Every function that numba compiles by itself; those that go into others are tested as parts of them."""
    found = set()
    for package in ("matchbound.kernels", "matchbound.planning"):
        folder = importlib.import_module(package)
        for info in pkgutil.iter_modules(folder.__path__):
            source = Path(str(folder.__path__[0]), f"{info.name}.py").read_text("utf-8")
            if "compiled" not in source:
                continue
            module = importlib.import_module(f"{package}.{info.name}")
            for name, value in vars(module).items():
                options = getattr(value, "targetoptions", None)
                if options is None or value.py_func.__module__ != module.__name__ or "inline" in options:
                    continue
                found.add(f"{module.__name__.removeprefix('matchbound.')}.{name}")
    return found


def test_every_kernel_has_a_twin() -> None:
    assert sorted([*BY_CALL, *BY_RESULT, *IN_TEST_SCREEN]) == sorted(all_kernels())
    assert len(all_kernels()) > 20, "they are found at all"


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, tuple):
        parts = [_copied(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


@contextmanager
def twins_beside(names: set[str]) -> Iterator[Counter[str]]:
    """Compare every call of some kernels with that of its twin; how many calls there were."""
    calls: Counter[str] = Counter()

    def beside(name: str, kernel: Any) -> Any:
        def both(*arguments: Any) -> Any:
            before = _copied(arguments)
            result = kernel(*arguments)
            calls[name] += 1
            if name in BY_CALL and calls[name] <= 40:
                BY_CALL[name](before, arguments, result)
            return result

        return both

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            home, _, own = f"matchbound.{name}".rpartition(".")
            module = importlib.import_module(home)
            patch.setattr(module, own, beside(name, getattr(module, own)))
        yield calls


def _table(seed: int, tied: bool) -> mb.Comparisons:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 9, (2, 120))
    score = rng.normal(size=120) + (a == b)
    return mb.Comparisons(a, b, np.round(score, 1) if tied else score)


def _curves() -> None:
    for seed, tied in ((1, False), (2, True)):
        curve = mb.roc(_table(seed, tied))
        point = curve.at_far(0.2)
        _ = curve.tally.sums, curve.auc().variance, point.interval("influence"), curve.min_cllr().estimate
        for method in ("vertex", "double-or-nothing", "two-level", "subsets"):
            curve.band(far=[0.1, 0.5], method=method, n_resamples=4, rng=seed)
        point.interval("vertex", n_resamples=4, rng=seed)
        curve.at_frr(0.2).interval("vertex", n_resamples=4, rng=seed)
        for model in ("binormal", "kernel"):
            point.interval("vertex", n_resamples=4, rng=seed, smooth=model)
        _ = mb.roc(_table(seed, tied), weighting="identities").tally.sums
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(resampling, "DENSE_IDENTITIES", 0)
            mb.evaluate(_table(seed, tied), 0.5).far.bootstrap("vertex", n_resamples=7, rng=seed)


def _embeddings(similarity: Any, n: int = 90, seed: int = 3) -> mb.Embeddings:
    rng = np.random.default_rng(seed)
    identity = rng.integers(0, 14, n)
    vectors = rng.normal(size=(14, 9))[identity] + 0.6 * rng.normal(size=(n, 9))
    return mb.Embeddings(vectors.astype(np.float32), identity, similarity)


def _searches() -> None:
    for similarity, fuse in (("cosine", "mean"), ("dot", "max"), ("euclidean", "max")):
        everybody = _embeddings(similarity, 160)
        names = everybody.identities[everybody.codes]
        gallery = mb.Embeddings(everybody.vectors[:80], names[:80], similarity)
        probes = mb.Embeddings(everybody.vectors[80:], names[80:], similarity)
        found = mb.search(gallery, probes, fuse, candidates=2, protocol="rotating", workers=1)
        found.hits(float(np.median(found.lists.score)) * (-1.0 if gallery.distance else 1.0))


def _protocols() -> None:
    mb.design_protocol(np.repeat(np.arange(5), [3, 2, 4, 1, 2]), budget=30, kind="impostor")


def _allpairs() -> None:
    for similarity in ("cosine", "dot", "euclidean"):
        data = _embeddings(similarity)
        middle = np.quantile(data.comparisons().score, [0.3, 0.7])
        for thresholds in (middle[:1], middle):
            tally_embeddings(data, thresholds, RunOptions(workers=1), prune="none")


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_kernels_equal_their_twins_on_what_the_library_gives_them() -> None:
    with twins_beside(set(BY_CALL)) as calls:
        _curves()
        _searches()
        _protocols()
        _allpairs()
    assert sorted(name for name in BY_CALL if not calls[name]) == [], "kernels that no run called"


@pytest.mark.parametrize("name", BY_RESULT)
def test_kernels_that_keep_books_tally_what_a_loop_tallies(name: str) -> None:
    how: dict[str, Any] = BY_RESULT[name]
    sizes = Sizes(dense_share=how["share"])
    for similarity in ("cosine", "euclidean"):
        data = _embeddings(similarity)
        thresholds = np.quantile(data.comparisons().score, np.linspace(0.2, 0.9, how["count"]))
        with twins_beside({name}) as calls:
            tally = tally_embeddings(data, thresholds, RunOptions(workers=1), prune=how["prune"], sizes=sizes)
        assert calls[name] > 0
        assert_is_loop(tally, data, thresholds, pairs=False)


def test_a_wrong_kernel_is_noticed() -> None:
    """One that is off by one in one place."""
    whole = np.arange(4)
    before = whole % 2, whole, np.ones(4, dtype=np.int64), whole + 1, np.zeros((2, 4), dtype=np.int64)
    after = _copied(before)
    sweep.genuine_sums(*after)
    BY_CALL["kernels.sweep.genuine_sums"](before, after, None)
    after[-1][1, -1] += 1
    with pytest.raises(AssertionError):
        BY_CALL["kernels.sweep.genuine_sums"](before, after, None)
