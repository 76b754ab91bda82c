"""Large tables of comparisons: compiled kernels against loops, and tallies with sums of rows instead of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
import naive_curves
from matchbound.counting import tables as counting
from matchbound.counting.curves import steps_of, steps_of_many
from matchbound.counting.pair_words import PairRows, WordBits
from matchbound.stats.latent import fit
from naive_scale import row_sums_by_loop, tally_by_loop
from strategies import Row, comparisons, tables

LEVELS = st.lists(st.integers(-5, 5).map(lambda s: s / 4), min_size=1, max_size=6)


@given(tables(max_rows=60), LEVELS, st.booleans(), st.data())
def test_one_pass_equals_loops(rows: list[Row], levels: list[float], distance: bool, data: st.DataObject) -> None:
    """At thresholds in any order, some of them twice, with rows summed at any of them."""
    source = comparisons(rows, distance)
    thresholds = np.array(levels)
    marked = np.array(data.draw(st.lists(st.integers(0, len(levels) - 1), max_size=4)), dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "MANY_ROWS", data.draw(st.sampled_from([0, 1000])))
        made = counting.tally_rows(source, thresholds, marked)
    naive, found = tally_by_loop(source, levels), made.impostor
    np.testing.assert_array_equal(made.genuine.comparisons, naive["genuine_comparisons"])
    np.testing.assert_array_equal(made.genuine.errors, naive["genuine_errors"])
    np.testing.assert_array_equal(found.comparisons, naive["impostor_comparisons"])
    np.testing.assert_array_equal(found.errors, naive["impostor_errors"])
    assert found.sum_mm == naive["sum_mm"]
    assert found.sum_nm.tolist() == naive["sum_nm"]
    assert found.sum_nn.tolist() == naive["sum_nn"]
    sums = row_sums_by_loop(source, thresholds[marked])
    assert found.rows is not None
    for name in ("ms", "nn", "nm", "ns", "nm_i", "sizes", "pairs", *(("mm", "mm_i") if marked.size else ())):
        np.testing.assert_array_equal(getattr(found.rows, name), sums[name])


@given(tables(min_identities=3, max_rows=60), LEVELS)
def test_identities_are_left_out_by_sums_of_rows_as_by_pairs(rows: list[Row], levels: list[float]) -> None:
    source, thresholds = comparisons(rows), np.array(levels)
    kept = counting.tally_comparisons(source, thresholds, pairs=True)
    summed = counting.tally_rows(source, thresholds, np.arange(thresholds.size))
    assert not summed.has_pairs
    for k in range(thresholds.size):
        for one, two in zip(fit.without_each(kept, k), fit.without_each(summed, k), strict=True):
            for name in vars(one):
                np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    one, two = fit.impostor_clusters(kept.impostor), fit.impostor_clusters(summed.impostor)
    np.testing.assert_array_equal(one.size, two.size)
    np.testing.assert_array_equal(one.count, two.count)


def test_words_are_summed_in_parts_as_at_once() -> None:
    rng = np.random.default_rng(3)
    bits, levels, size = WordBits.of(9), 5, 9
    a, b = rng.integers(0, size, (2, 400))
    a, b = a[a != b], b[a != b]
    missed = rng.integers(0, levels + 1, a.size)
    reached = np.array([np.bincount(np.concatenate([a, b])[np.tile(levels - missed >= k, 2)], minlength=size)
                        for k in range(levels + 1)])  # fmt: skip
    words = np.sort(bits.words(a, b, missed))
    whole, parts = PairRows.of(bits, reached, np.array([1, 3])), PairRows.of(bits, reached, np.array([1, 3]))
    cut = int(np.searchsorted(bits.pairs(words), bits.pairs(words)[150]))
    for part in (words[:cut].copy(), words[cut:].copy()):
        parts.add(part)
    whole.add(words)
    assert (whole.squares, whole.sum_nn.tolist(), whole.sum_nm.tolist()) == (
        parts.squares,
        parts.sum_nn.tolist(),
        parts.sum_nm.tolist(),
    )
    for name, values in vars(whole.rows()).items():
        np.testing.assert_array_equal(values, getattr(parts.rows(), name))


@given(tables())
def test_steps_by_either_way_are_those_of_loops(rows: list[Row]) -> None:
    genuine, impostor = (np.array([r[2] for r in kind]) for kind in naive_curves.split(rows))
    if not genuine.size or not impostor.size:
        return
    for steps in (steps_of, steps_of_many):
        thresholds, matched, missed = steps(genuine.copy(), impostor.copy())
        made = zip((matched / impostor.size).tolist(), (missed / genuine.size).tolist(), strict=True)
        assert list(made) == [(float(far), float(frr)) for far, frr in naive_curves.points(rows)]
        assert thresholds[1:].tolist() == sorted({r[2] for r in rows}, reverse=True)
        assert thresholds[0] > thresholds[1]


def test_scores_at_the_ends_of_floats_make_steps() -> None:
    most = np.finfo(np.float64).max
    for steps in (steps_of, steps_of_many):
        thresholds, matched, missed = steps(np.array([most, 0.0]), np.array([-0.0, -most, most]))
        assert thresholds.tolist() == [np.inf, most, 0.0, -most]
        assert matched.tolist() == [0, 1, 2, 3]
        assert missed.tolist() == [2, 1, 0, 0]


def test_more_thresholds_than_a_word_has_bits_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WordBits, "of", staticmethod(lambda size: WordBits(2, 2)))
    data = mb.Comparisons(["a", "b", "a"], ["b", "c", "a"], [1.0, 2.0, 3.0])
    with pytest.raises(mb.UsageError, match="no more than 3 thresholds"):
        counting.tally_rows(data, np.arange(4.0), np.array([0]))
