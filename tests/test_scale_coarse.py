"""Rows as bytes: the kernel adds up what a loop adds up, and the test on whole numbers never rules a match out."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchbound.counting.coarse import coarse_that_pays
from matchbound.counting.factors import Factors, make_factors
from matchbound.kernels import coarse as kernels
from matchbound.kernels.blocks import Tile
from matchbound.kernels.exact import CODES, row_lengths
from matchbound.kernels.scan import hits_of_bits, list_hits_of_bits
from matchbound.kernels.strips import PANEL, ROWS


@numba.njit
def native(rows: Any, panels: Any, starts: Any, cuts: Any, steps: int, bits: Any) -> None:
    kernels.bits_of_strip(rows, panels, starts, cuts, bits, 0, cuts.shape[0] - 1, 1, steps, 0, 1)


@numba.njit
def anywhere(rows: Any, panels: Any, starts: Any, cuts: Any, steps: int, bits: Any) -> None:
    kernels.bits_of_strip_anywhere(rows, panels, starts, cuts, bits, 0, cuts.shape[0] - 1, 1, steps, 0, 1)


@pytest.mark.parametrize("strip", [native, anywhere])
@pytest.mark.parametrize("n_rows", [1, 4, 6])
def test_strips_of_bits(strip: Any, n_rows: int) -> None:
    """Bytes of every size, the largest among them; rows that are missing repeat the last."""
    rng = np.random.default_rng(3)
    steps = 5
    rows = rng.integers(0, 256, (n_rows, 4 * steps), dtype=np.uint8)
    columns = rng.integers(-127, 128, (128, 4 * steps), dtype=np.int8)
    rows[0], columns[64], columns[65] = 255, 127, -127
    starts = rng.integers(-(2**20), 2**20, 128, dtype=np.int32)
    sums = rows.astype(np.int64) @ columns[64:].T.astype(np.int64) + starts[64:]
    cuts = np.median(sums, axis=1).astype(np.int32)
    cuts[-1] = sums[-1].max()
    words = columns.view(np.uint32).reshape(2, 64, steps)
    panels = np.ascontiguousarray(words.transpose(0, 2, 1)).reshape(-1)
    bits = np.zeros(ROWS, dtype=np.uint64)
    strip(rows.view(np.uint32).reshape(-1), panels, starts, cuts, steps, bits)
    found = np.unpackbits(bits.view(np.uint8).reshape(ROWS, 8), axis=1, bitorder="little")
    clamped = np.minimum(np.arange(ROWS), n_rows - 1)
    np.testing.assert_array_equal(found.astype(bool), (sums >= cuts[:, None])[clamped])


@settings(max_examples=60, deadline=None)
@given(bits=st.lists(st.booleans(), min_size=1, max_size=300), data=st.data())
def test_bits_are_read_from_anywhere(bits: list[bool], data: st.DataObject) -> None:
    packed = np.packbits(np.array([*bits, *[True] * (-len(bits) % 64)], dtype=bool), bitorder="little")
    words = packed.view(np.uint64)
    first = data.draw(st.integers(0, len(bits) - 1))
    stop = data.draw(st.integers(first + 1, len(bits)))
    word = int(hits_of_bits(words, first, stop))
    assert [bool(word >> k & 1) for k in range(64)] == (bits[first:stop] + [False] * 64)[:64]
    shift = data.draw(st.integers(0, first))
    found = np.empty(stop, dtype=np.int64)
    count = list_hits_of_bits(words, shift, first - shift, stop - shift, found)
    assert found[:count].tolist() == [c - shift for c in range(first, stop) if bits[c]]


def factors_of(vectors: Any, similarity: Any) -> Factors:
    lengths, scales = row_lengths(vectors, CODES[similarity])
    return make_factors(vectors, np.arange(len(vectors)), lengths, scales, similarity)


def oriented_values(factors: Factors) -> Any:
    return factors.left.astype(np.float64) @ factors.right.astype(np.float64).T


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    similarity=st.sampled_from(["cosine", "dot", "euclidean"]),
    n=st.integers(2, 150),
    d=st.integers(1, 40),
    spread=st.sampled_from([0.0, 1.0, 3.0]),
)
def test_what_can_reach_a_threshold_keeps_its_bit(seed: int, similarity: Any, n: int, d: int, spread: float) -> None:
    """Rows of very different lengths, with single large numbers that do not fit a byte."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, d)) * np.exp(spread * rng.standard_normal((n, 1)))
    vectors[rng.integers(n), rng.integers(d)] *= 50
    factors = factors_of(vectors, similarity)
    values = oriented_values(factors)
    value = float(rng.choice(values.reshape(-1)))
    coarse = coarse_that_pays(factors, value, 0.0, force=True)
    assert coarse is not None
    tile = Tile(0, n, 0, n, False, True, 0.0, 0.0)
    words = -(-n // PANEL)
    bits = np.zeros((n + ROWS) * words, dtype=np.uint64)
    kernels.fill_bits(coarse.rows, coarse.panels, coarse.starts, coarse.cuts, coarse.steps, tile, words, bits)
    flags = np.unpackbits(bits[: n * words].view(np.uint8).reshape(n, 8 * words), axis=1, bitorder="little")
    assert flags[:, :n][values >= value].all()


def test_few_pass_beyond_those_that_match() -> None:
    rng = np.random.default_rng(4)
    factors = factors_of(rng.standard_normal((2000, 96)).astype(np.float32), "cosine")
    values = oriented_values(factors)[np.triu_indices(2000, k=1)]
    value = float(np.quantile(values, 0.999))
    coarse = coarse_that_pays(factors, value, 0.0, force=True)
    assert coarse is not None
    tile = Tile(0, 1000, 1000, 1000, False, True, 0.0, 0.0)
    words = 17
    bits = np.zeros((1000 + ROWS) * words, dtype=np.uint64)
    kernels.fill_bits(coarse.rows, coarse.panels, coarse.starts, coarse.cuts, coarse.steps, tile, words, bits)
    shift = 1000 % PANEL
    passed = sum(
        list_hits_of_bits(bits, 64 * r * words + shift, 0, 1000, np.empty(1000, dtype=np.int64)) for r in range(1000)
    )
    assert 900 < passed < 2500


@pytest.mark.parametrize("value", [-np.inf, np.inf, -1e300, 1e300])
def test_thresholds_beyond_all_values(value: float) -> None:
    rng = np.random.default_rng(5)
    coarse = coarse_that_pays(factors_of(rng.standard_normal((70, 9)), "dot"), value, 0.0, force=True)
    assert coarse is not None
    bits = np.zeros(2 * (70 + ROWS), dtype=np.uint64)
    tile = Tile(0, 70, 0, 70, False, True, 0.0, 0.0)
    kernels.fill_bits(coarse.rows, coarse.panels, coarse.starts, coarse.cuts, coarse.steps, tile, 2, bits)
    found = [list_hits_of_bits(bits, 128 * r, 0, 70, np.empty(70, dtype=np.int64)) for r in range(70)]
    assert found == [70 if value < 0 else 0] * 70


def test_numbers_that_do_not_fit_are_refused() -> None:
    """A sample of nearly nothing makes a step so small that other rows are beyond counting in it."""
    order = np.random.default_rng(0).permutation(600)
    vectors = np.full((600, 4), 1e-12)
    vectors[order[-1]] = 1.0
    left = vectors.astype(np.float32)
    factors = Factors(left, left, np.linalg.norm(vectors, axis=1), 1.0, "dot")
    assert coarse_that_pays(factors, 0.5, 0.0, force=True) is None
