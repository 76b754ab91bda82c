"""Quadratic forms on pair tables equal a loop in Python integers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from matchbound.kernels.sweep import quadratic_forms
from naive_scale import quadratic_form_by_loop


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(2, 30),
    rows=st.sampled_from([1, 7, 128, 131]),
    largest=st.sampled_from([1, 3, 1000, 2**20, 2**30]),
    weights_of=st.sampled_from(["double", "multinomial", "integers"]),
)
def test_forms_of_whole_weights_are_exact(seed: int, size: int, rows: int, largest: int, weights_of: str) -> None:
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(size, k=1)
    kept = rng.random(first.size) < 0.5
    first, second = first[kept], second[kept]
    count = rng.integers(1, largest + 1, size=first.size)
    if weights_of == "double":
        weights = 2.0 * rng.integers(0, 2, size=(rows, size))
    else:
        weights = rng.multinomial(size, np.full(size, 1 / size), size=rows)
        weights = weights.astype(np.float64) if weights_of == "multinomial" else weights
    expected = [quadratic_form_by_loop(row, first, second, count) for row in weights.astype(int).tolist()]
    assert quadratic_forms(weights, first, second, count).tolist() == expected


def test_forms_of_other_weights_are_close() -> None:
    rng = np.random.default_rng(5)
    first, second = np.triu_indices(40, k=1)
    count = rng.integers(1, 9, size=first.size)
    weights = rng.exponential(size=(10, 40))
    expected = [quadratic_form_by_loop(row, first, second, count) for row in weights.tolist()]
    np.testing.assert_allclose(quadratic_forms(weights, first, second, count), expected, rtol=1e-13)


def test_no_pairs_give_zero() -> None:
    none = np.empty(0, dtype=np.int64)
    assert quadratic_forms(np.ones((3, 4)), none, none, none).tolist() == [0, 0, 0]
