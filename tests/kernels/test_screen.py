"""The screen: kernels add up what a loop adds up, and the test on whole numbers never rules a match out."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from llvmlite import binding, ir  # type: ignore[import-untyped]

from matchbound.counting.factors import Factors, make_factors
from matchbound.counting.screen import LARGEST, screen_that_pays
from matchbound.kernels.blocks import Tile
from matchbound.kernels.emit import INDEX, POINTER
from matchbound.kernels.exact import CODES, row_lengths
from matchbound.kernels.screen import (
    SCREENS,
    STRIP,
    Avx2,
    NeonDot,
    Screen,
    Vnni256,
    Vnni512,
    emit_strip,
    fill_bits,
    pack_panels,
    round_rows,
)
from naive_scale import bits_by_loop, rounded_by_loop

KINDS = [kind for kind in SCREENS if kind.available()]


def flags_of(screen: Screen, tile: Tile) -> Any:
    """Which comparisons of a tile pass, shape (rows, cols)."""
    shift = tile.col0 % 64
    words = -(-(shift + tile.cols) // 64)
    bits = np.zeros((tile.rows + STRIP) * words, dtype=np.uint64)
    fill_bits(screen, tile, words, bits)
    flags = np.unpackbits(
        bits[: tile.rows * words].view(np.uint8).reshape(tile.rows, 8 * words), axis=1, bitorder="little"
    )
    return flags[:, shift : shift + tile.cols].astype(bool)


def screen_of(kind: type[Screen], rows: Any, columns: Any, starts: Any, cuts: Any) -> Screen:
    """A screen from whole numbers, shape (n, 4·steps)."""
    steps = rows.shape[1] // 4
    width = kind.lanes * kind.vectors
    panels = np.empty((-(-len(columns) // width), steps, width, 4), dtype=np.uint8)
    pack_panels(columns, 0, len(panels), kind.zero, panels)
    padded = np.full(len(panels) * width, -(2**30), dtype=np.int32)
    padded[: len(columns)] = starts
    level = np.array(cuts, dtype=np.int64) + kind.zero * rows.sum(axis=1, dtype=np.int64)
    return kind(rows.reshape(-1), panels.reshape(-1), padded, level.astype(np.int32), steps, width)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 90), steps=st.integers(1, 12), data=st.data())
def test_bits_are_those_of_a_loop(kind: type[Screen], seed: int, n: int, steps: int, data: st.DataObject) -> None:
    """Anywhere among the rows; numbers of every size, the largest among them."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-kind.most, kind.most + 1, (n, 4 * steps), dtype=np.int8)
    columns = rng.integers(-127, 128, (n, 4 * steps), dtype=np.int8)
    rows[0], columns[-1], columns[0] = kind.most, 127, -127
    starts = rng.integers(-(2**20), 2**20, n)
    cuts = rng.integers(-(2**20), 2**20, n)
    row0, col0 = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    tile = Tile(row0, n - row0, col0, n - col0, False, True, 0.0, 0.0)
    found = flags_of(screen_of(kind, rows, columns, starts, cuts), tile)
    np.testing.assert_array_equal(found, bits_by_loop(rows, columns, starts, cuts)[row0:, col0:])


@pytest.mark.parametrize(
    ("kind", "triple", "processor", "instruction", "count"),
    [
        (Vnni256, "x86_64-unknown-linux-gnu", "alderlake", r"\{vex\}\s+vpdpbusd\s+%ymm", 12),
        (Vnni512, "x86_64-unknown-linux-gnu", "icelake-server", r"vpdpbusd\s+.*%zmm", 24),
        (Avx2, "x86_64-unknown-linux-gnu", "haswell", r"vpmaddubsw\s+%ymm", 12),
        (NeonDot, "aarch64-unknown-linux-gnu", "neoverse-n1", r"sdot\s", 24),
        (NeonDot, "arm64-apple-macosx", "apple-m1", r"sdot\.4s\s", 24),
    ],
)
def test_the_machine_code_of_other_processors(
    kind: type[Screen], triple: str, processor: str, instruction: str, count: int
) -> None:
    """One instruction for each vector of each row in the loop over words, whether or not this processor has it."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    module = ir.Module()
    module.triple = triple
    arguments = [POINTER] * 5 + [INDEX] * 6
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), arguments), "strip")
    builder = ir.IRBuilder(function.append_basic_block())
    emit_strip(builder, kind, list(function.args[:5]), list(function.args[5:]))
    builder.ret_void()
    machine = binding.Target.from_triple(triple).create_target_machine(cpu=processor, opt=3)
    code = machine.emit_assembly(binding.parse_assembly(str(module)))
    assert len(re.findall(instruction, code)) == count == STRIP * kind.vectors
    assert kind is Vnni512 or "zmm" not in code


@pytest.mark.parametrize("kind", KINDS)
def test_where_rows_and_columns_overlap_those_behind_the_row_are_there(kind: type[Screen]) -> None:
    rng = np.random.default_rng(4)
    rows = rng.integers(-9, 10, (300, 8), dtype=np.int8)
    zeros = np.zeros(300, dtype=np.int64)
    screen = screen_of(kind, rows, rows, zeros, zeros)
    found = flags_of(screen, Tile(10, 250, 10, 250, True, True, 0.0, 0.0))
    upper = np.triu_indices(250)
    np.testing.assert_array_equal(found[upper], bits_by_loop(rows, rows, zeros, zeros)[10:260, 10:260][upper])


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 9), k=st.integers(1, 30), most=st.sampled_from([63, 127]))
def test_rounding_is_that_of_a_loop(seed: int, n: int, k: int, most: int) -> None:
    """Errors and lengths are rounded up."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, k)).astype(np.float32)
    step = float(rng.uniform(0.005, 0.05))
    whole = np.full((n, -(-k // 4) * 4), 99, dtype=np.int8)
    error, length = np.empty(n), np.empty(n)
    round_rows(z, step, most, whole, error, length)
    numbers, lost, long = rounded_by_loop(z, step, most, whole[:, :k])
    np.testing.assert_array_equal(whole[:, :k], numbers)
    assert not whole[:, k:].any()
    assert (error >= lost).all()
    assert (error <= lost * (1 + 1e-8)).all()
    assert (length >= long).all()
    assert (length <= long * (1 + 1e-8)).all()


def factors_of(vectors: Any, similarity: Any) -> Factors:
    lengths, scales = row_lengths(vectors, CODES[similarity])
    return make_factors(vectors, np.arange(len(vectors)), lengths, scales, similarity)


def oriented_values(factors: Factors) -> Any:
    return factors.left.astype(np.float64) @ factors.right.astype(np.float64).T


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    similarity=st.sampled_from(["cosine", "dot", "euclidean"]),
    n=st.integers(2, 150),
    d=st.integers(1, 70),
    spread=st.sampled_from([0.0, 1.0, 3.0]),
)
@example(seed=1, similarity="euclidean", n=120, d=64, spread=3.0)
def test_what_can_reach_a_threshold_passes(
    kind: type[Screen], seed: int, similarity: Any, n: int, d: int, spread: float
) -> None:
    """Rows of very different lengths, with single large numbers that do not fit a byte."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, d)) * np.exp(spread * rng.standard_normal((n, 1)))
    vectors[rng.integers(n), rng.integers(d)] *= 50
    factors = factors_of(vectors, similarity)
    values = oriented_values(factors)
    value = float(rng.choice(values.reshape(-1)))
    screen = screen_that_pays(factors, value, 0.0, costs=None, kind=kind)
    assert screen is not None
    assert screen.steps == -(-d // 4)
    found = flags_of(screen, Tile(0, n, 0, n, False, True, 0.0, 0.0))
    assert found[values >= value].all()


@pytest.mark.parametrize("kind", KINDS)
def test_few_pass_beyond_those_that_match(kind: type[Screen]) -> None:
    rng = np.random.default_rng(4)
    vectors = rng.standard_normal((2000, 96))
    factors = factors_of(vectors.astype(np.float32), "cosine")
    values = oriented_values(factors)[np.triu_indices(2000, k=1)]
    value = float(np.quantile(values, 0.999))
    screen = screen_that_pays(factors, value, 0.0, costs=None, kind=kind)
    assert screen is not None
    passed = int(flags_of(screen, Tile(0, 1000, 1000, 1000, False, True, 0.0, 0.0)).sum())
    assert 900 < passed < 4000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [-np.inf, np.inf, -1e300, 1e300])
def test_thresholds_beyond_all_values(kind: type[Screen], value: float) -> None:
    rng = np.random.default_rng(5)
    screen = screen_that_pays(factors_of(rng.standard_normal((70, 9)), "dot"), value, 0.0, costs=None, kind=kind)
    assert screen is not None
    found = flags_of(screen, Tile(0, 70, 0, 70, False, True, 0.0, 0.0))
    assert found.all() if value < 0 else not found.any()


def test_numbers_that_do_not_fit_are_refused() -> None:
    """A sample of nearly nothing makes a step so small that other rows are beyond counting in it."""
    order = np.random.default_rng(0).permutation(600)
    vectors = np.full((600, 4), 1e-12)
    vectors[order[-1]] = 1.0
    left = vectors.astype(np.float32)
    factors = Factors(left, left, np.linalg.norm(vectors, axis=1), 1.0, "dot")
    assert screen_that_pays(factors, 0.5, 0.0, costs=None) is None
    assert 1e-24 * LARGEST < 1
