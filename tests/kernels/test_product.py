"""Products of blocks from packed columns: within the bound of their error, and counts that do not depend on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchbound.counting import allpairs as job_module
from matchbound.counting.allpairs import tally_embeddings
from matchbound.data.embeddings import Embeddings
from matchbound.kernels import product as kernels
from matchbound.kernels.blocks import Tile
from matchbound.kernels.product import PANEL, ROWS


def block_of(left: Any, right: Any, tile: Tile) -> Any:
    """The products of a tile, shape (rows, cols), by the kernel."""
    panels = np.empty((-(-len(right) // PANEL), right.shape[1], PANEL), dtype=np.float32)
    kernels.pack_columns(right, 0, len(panels), panels)
    shift = tile.col0 % PANEL
    stride = -(-(shift + tile.cols) // PANEL) * PANEL
    out = np.full((tile.rows + ROWS) * stride, np.nan, dtype=np.float32)
    kernels.fill_product(left.reshape(-1), panels.reshape(-1), left.shape[1], tile, stride, out)
    return out[: tile.rows * stride].reshape(tile.rows, stride)[:, shift : shift + tile.cols]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), width=st.integers(1, 140), data=st.data())
def test_products_are_within_their_bound(seed: int, width: int, data: st.DataObject) -> None:
    """|error| ≤ γ_r·Σ|x_k·y_k|, r = roundings(width), at any place among the rows."""
    rng = np.random.default_rng(seed)
    n = data.draw(st.integers(2, 200))
    left = rng.standard_normal((n, width)).astype(np.float32)
    right = (rng.standard_normal((n, width)) * 10.0 ** rng.integers(-3, 3, (n, 1))).astype(np.float32)
    row0, col0 = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    rows, cols = data.draw(st.integers(1, n - row0)), data.draw(st.integers(1, n - col0))
    found = block_of(left, right, Tile(row0, rows, col0, cols, False, True, 0.0, 0.0))
    x, y = left[row0 : row0 + rows].astype(np.float64), right[col0 : col0 + cols].astype(np.float64)
    count = kernels.roundings(width) * 2.0**-24
    bound = count / (1 - count) * (np.abs(x) @ np.abs(y).T) * (1 + 1e-6)
    assert (np.abs(found - x @ y.T) <= bound).all()


def test_where_rows_and_columns_overlap_those_behind_the_row_are_there() -> None:
    rng = np.random.default_rng(1)
    left = rng.standard_normal((300, 7)).astype(np.float32)
    found = block_of(left, left, Tile(10, 250, 10, 250, True, True, 0.0, 0.0))
    upper = np.triu_indices(250)
    np.testing.assert_allclose(found[upper], (left[10:260] @ left[10:260].T)[upper], rtol=1e-4, atol=1e-5)


def test_a_sum_in_one_go_would_break_the_bound() -> None:
    """The order matters: 1 + many small numbers, added one by one to the 1, are lost; in chunks they are not."""
    width = 1024
    left = np.ones((ROWS, width), dtype=np.float32)
    right = np.full((PANEL, width), 2.0**-25, dtype=np.float32)
    right[:, 0] = 1.0
    exact = 1 + (width - 1) * 2.0**-25
    in_one_go = np.float32(1.0)
    for x in right[0, 1:]:
        in_one_go += x
    bound = kernels.roundings(width) * 2.0**-24 * exact
    assert abs(in_one_go - exact) > 2 * 2.0**-24
    found = block_of(left, right, Tile(0, ROWS, 0, PANEL, False, True, 0.0, 0.0))
    assert (np.abs(found - exact) < min(bound, abs(in_one_go - exact))).all()


@pytest.mark.parametrize("count", [1, 60])
def test_the_same_counts_with_a_blas(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    identity = rng.integers(0, 60, 400)
    vectors = rng.standard_normal((60, 20))[identity] + rng.standard_normal((400, 20))
    data = Embeddings(vectors.astype(np.float32), identity)
    thresholds = np.quantile(data.comparisons().score, np.linspace(0.3, 0.99, count))
    tallies = []
    for packed in (True, False):
        monkeypatch.setattr(kernels, "wide_vectors", lambda packed=packed: packed)
        job = job_module.make_job(data, np.unique(thresholds), False, "none")
        assert (job.panels is not None) == packed
        tallies.append(tally_embeddings(data, thresholds, prune="none"))
    np.testing.assert_array_equal(tallies[0].impostor.errors, tallies[1].impostor.errors)
    np.testing.assert_array_equal(tallies[0].genuine.errors, tallies[1].genuine.errors)
    assert tallies[0].impostor.sum_nn.tolist() == tallies[1].impostor.sum_nn.tolist()
