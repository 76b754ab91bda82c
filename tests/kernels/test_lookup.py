"""Looking values up in the table of a grid."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from matchbound.kernels import dense
from matchbound.kernels.grid import CELLS, cell_of, make_grid


@numba.njit
def look(product: Any, table: Any, bins: Any, at: int, to: int, low: Any, per_cell: Any) -> Any:
    return dense.look64(product, table, bins, at, to, low, per_cell)


def test_64_values_at_once() -> None:
    """Values between, at, and far beyond the ends of the grid; every entry a number of its own."""
    rng = np.random.default_rng(6)
    grid = make_grid(np.linspace(-0.3, 0.4, 50), np.linspace(-0.3, 0.4, 50), 1e-6, 1e-7)
    low, per_cell = np.float32(grid.low), np.float32(grid.per_cell)
    table = rng.integers(-32768, 32767, CELLS + 3).astype(np.int16)
    product = rng.uniform(-0.5, 0.6, 80).astype(np.float32)
    product[7:12] = [low, -np.inf, np.inf, 1e30, -1e30]
    bins = np.full(90, 99, dtype=np.int16)
    word = int(look(product, table, bins, 5, 11, low, per_cell))
    expected = np.array([table[cell_of(v, low, per_cell)] for v in product[5:69]])
    np.testing.assert_array_equal(bins[11:75], expected)
    assert (bins[:11] == 99).all()
    assert (bins[75:] == 99).all()
    assert [bool(word >> k & 1) for k in range(64)] == (expected < 0).tolist()


def test_the_last_cell_is_within_the_table() -> None:
    grid = make_grid(np.array([0.0, 0.1]), np.array([0.0, 0.1]), 1e-6, 1e-7)
    last = cell_of(np.float32(9.0), np.float32(grid.low), np.float32(grid.per_cell))
    assert last == CELLS + 1
    assert grid.table.size == last + 2
    assert grid.table[last] == 2


def test_a_threshold_far_from_the_others_does_not_widen_the_cells() -> None:
    """Beyond the grid one threshold is near, and it is looked at; everywhere else the bins are those of a search."""
    values = np.array([-0.9, *np.linspace(0.1, 0.2, 40), 0.8])
    grid = make_grid(values, values, 1e-6, 1e-7)
    assert grid.low > 0.09
    assert grid.low + CELLS / grid.per_cell < 0.21
    low, per_cell = np.float32(grid.low), np.float32(grid.per_cell)
    for v in np.linspace(-1.0, 1.0, 4001).astype(np.float32):
        entry = int(grid.table[cell_of(v, low, per_cell)])
        expected = int(np.searchsorted(values, float(v), side="right"))
        assert entry == expected if entry >= 0 else expected in (-1 - entry, -entry)
