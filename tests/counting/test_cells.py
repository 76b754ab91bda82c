"""Comparisons sorted into cells give the tally of a loop over them: of tables in memory, and along curves."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchbound as mb
import naive_curves
from matchbound.counting.recount import OfComparisons, tally_comparisons
from matchbound.counts.cells import Cells, whole_pairs
from naive_scale import assert_is_loop, tally_by_loop
from strategies import Row, comparisons, tables

LEVELS = st.lists(st.integers(-5, 5).map(lambda s: s / 4), max_size=6)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(0, 200),
    identities=st.sampled_from([1, 2, 3, 12]),
    distance=st.booleans(),
    levels=st.integers(0, 9),
    pairs=st.booleans(),
)
def test_tables_in_memory_equal_a_loop(
    seed: int, rows: int, identities: int, distance: bool, levels: int, pairs: bool
) -> None:
    """At thresholds in any order, some of them twice, on scores with ties."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, identities, size=(2, rows))
    score = np.round(rng.normal(size=rows), 1)
    thresholds = rng.choice(np.append(score, [-9.0, 9.0, 0.05]), size=levels)
    source = mb.Comparisons(a, b, score, distance=distance)
    assert_is_loop(tally_comparisons(source, thresholds, pairs=pairs), source, thresholds, pairs)


@given(tables(max_rows=60), LEVELS, st.booleans())
def test_sizes_of_pairs_equal_loops(rows: list[Row], levels: list[float], distance: bool) -> None:
    source = comparisons(rows, distance)
    sizes = tally_comparisons(source, np.array(levels), pairs=False).impostor.sizes
    made = Counter(tally_by_loop(source, levels)["compared"].values())
    assert sizes is not None
    assert dict(zip(*sizes.tolist(), strict=True)) == made
    assert sizes[0].tolist() == sorted(made)


@given(tables(), st.booleans())
def test_sums_at_points_of_a_curve_are_those_of_all_steps(rows: list[Row], distance: bool) -> None:
    source = comparisons(rows, distance)
    if source.genuine.all() or not source.genuine.any():
        return
    curve = OfComparisons(source).curve()
    points = np.arange(curve.thresholds.size)
    alone, sums = curve.tally_at(points), curve.sums
    impostor, genuine = alone.impostor, alone.genuine
    np.testing.assert_array_equal(sums.ss, (impostor.errors**2).sum(axis=1))
    np.testing.assert_array_equal(sums.sm, impostor.errors @ impostor.comparisons)
    np.testing.assert_array_equal((sums.nn, sums.nm), (impostor.sum_nn, impostor.sum_nm))
    np.testing.assert_array_equal(sums.ee, (genuine.errors**2).sum(axis=1))
    np.testing.assert_array_equal(sums.eg, genuine.errors @ genuine.comparisons)
    squares = [float(each @ each) for each in (impostor.comparisons, genuine.comparisons)]
    assert [sums.mm, sums.pair_mm, sums.gg] == [squares[0], impostor.sum_mm, squares[1]]


@given(tables())
def test_steps_are_those_of_loops(rows: list[Row]) -> None:
    genuine, impostor = (np.array([r[2] for r in kind]) for kind in naive_curves.split(rows))
    if not genuine.size or not impostor.size:
        return
    curve = OfComparisons(comparisons(rows)).curve()
    points = [(float(far), float(frr)) for far, frr in naive_curves.points(rows)]
    assert list(zip(curve.far.tolist(), curve.frr.tolist(), strict=True)) == points
    assert curve.thresholds[1:].tolist() == sorted({r[2] for r in rows}, reverse=True)
    assert curve.thresholds[0] > curve.thresholds[1]


def test_scores_at_the_ends_of_floats_make_steps() -> None:
    most = np.finfo(np.float64).max
    curve = OfComparisons(mb.Comparisons([0] * 5, [0, 0, 1, 1, 1], [most, 0.0, -0.0, -most, most])).curve()
    assert curve.thresholds.tolist() == [np.inf, most, 0.0, -most]
    assert curve.false_matches.tolist() == [0, 1, 2, 3]
    assert curve.false_nonmatches.tolist() == [2, 1, 0, 0]


@given(st.lists(st.integers(0, 5), max_size=40).map(sorted), st.lists(st.integers(0, 40), max_size=6).map(sorted))
def test_chunks_are_cut_between_pairs(pairs: list[int], cuts: list[int]) -> None:
    """Wherever the cells were cut before, also where a pair fills several chunks."""
    pair = np.array(pairs, dtype=np.int64)
    whole = Cells(pair, np.arange(pair.size), np.ones(pair.size, dtype=np.int64))
    chunks = list(whole_pairs(Cells(*parts) for parts in zip(*(np.split(part, cuts) for part in whole), strict=True)))
    for at in range(3):
        np.testing.assert_array_equal(np.concatenate([np.empty(0), *(chunk[at] for chunk in chunks)]), whole[at])
    seen: list[Any] = [set(chunk.pair.tolist()) for chunk in chunks]
    assert sum(map(len, seen)) == len(set(pairs))


def test_more_thresholds_than_whole_numbers_have_room_for_are_refused() -> None:
    data = mb.Comparisons.from_codes(np.arange(2_000_000_000 // 1000), *np.zeros((2, 1), dtype=np.int64), np.ones(1))
    with pytest.raises(mb.UsageError, match="thresholds at once"):
        tally_comparisons(data, np.arange(3_000_000.0))
