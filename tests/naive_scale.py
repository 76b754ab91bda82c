"""Slow, literal twins of the all-pairs engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchbound.counts.tally import AllPairs, PairTable, Tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings


def tally_by_loop(data: Embeddings | Comparisons, thresholds: Any) -> dict[str, Any]:
    """Every sum of a tally, comparison by comparison, in Python integers."""
    rows = data.comparisons() if isinstance(data, Embeddings) else data
    size = rows.n_identities
    made: dict[tuple[int, int], int] = {}
    genuine_made = np.zeros(size, dtype=np.int64)
    for i, j in zip(rows.a.tolist(), rows.b.tolist(), strict=True):
        if i == j:
            genuine_made[i] += 1
        else:
            key = (min(i, j), max(i, j))
            made[key] = made.get(key, 0) + 1
    levels = list(thresholds)
    genuine = np.zeros((len(levels), size), dtype=np.int64)
    impostor = np.zeros((len(levels), size), dtype=np.int64)
    erred: list[dict[tuple[int, int], int]] = []
    for k, threshold in enumerate(levels):
        matched = rows.score <= threshold if rows.distance else rows.score >= threshold
        table: dict[tuple[int, int], int] = {}
        for i, j, match in zip(rows.a.tolist(), rows.b.tolist(), matched.tolist(), strict=True):
            if i == j:
                genuine[k, i] += not match
            elif match:
                impostor[k, i] += 1
                impostor[k, j] += 1
                key = (min(i, j), max(i, j))
                table[key] = table.get(key, 0) + 1
        erred.append(table)
    return {
        "genuine_comparisons": genuine_made,
        "genuine_errors": genuine,
        "impostor_comparisons": np.array(
            [sum(m for key, m in made.items() if i in key) for i in range(size)], dtype=np.int64
        ),
        "impostor_errors": impostor,
        "sum_mm": 2 * sum(m * m for m in made.values()),
        "sum_nm": [2 * sum(n * made[key] for key, n in table.items()) for table in erred],
        "sum_nn": [2 * sum(n * n for n in table.values()) for table in erred],
        "erred": erred,
        "compared": made,
    }


def quadratic_form_by_loop(weights: Any, first: Any, second: Any, count: Any) -> Any:
    """Σ_{i≠j} W_i·W_j·n_ij over ordered pairs, one pair at a time."""
    total = 0
    for i, j, n in zip(first.tolist(), second.tolist(), count.tolist(), strict=True):
        total += 2 * n * weights[i] * weights[j]
    return total


def bits_by_loop(rows: Any, columns: Any, starts: Any, cuts: Any) -> Any:
    """Which rows and columns of whole numbers reach the cut of the row, shape (rows, columns)."""
    passed = np.zeros((len(rows), len(columns)), dtype=bool)
    for r, row in enumerate(rows.tolist()):
        for c, column in enumerate(columns.tolist()):
            total = int(starts[c]) + sum(x * y for x, y in zip(row, column, strict=True))
            passed[r, c] = total >= int(cuts[r])
    return passed


def rounded_by_loop(z: Any, step: float, most: int, near: Any) -> tuple[Any, Any, Any]:
    """Whole multiples of a step, ‖z − step·q‖ and ‖step·q‖; halves go where `near` has them."""
    whole = np.zeros(z.shape, dtype=np.int64)
    for s in range(z.shape[0]):
        for c in range(z.shape[1]):
            exact = float(z[s, c]) / step
            candidates = [q for q in (int(np.floor(exact)), int(np.ceil(exact))) if abs(q - exact) < 0.5 + 1e-4]
            q = int(near[s, c]) if int(near[s, c]) in candidates else candidates[0]
            whole[s, c] = min(max(q, -most), most)
    wide = z.astype(np.float64)
    lost = np.sqrt(((wide - step * whole) ** 2).sum(axis=1))
    return whole, lost, step * np.sqrt((whole**2).sum(axis=1))


def assert_same(one: Tally, two: Tally) -> None:
    """Two tallies have the same numbers; pairs are compared where both have them."""
    assert one.identities.tolist() == two.identities.tolist()
    assert one.thresholds.tolist() == two.thresholds.tolist()
    for side in ("genuine", "impostor"):
        for name in ("comparisons", "errors"):
            np.testing.assert_array_equal(getattr(getattr(one, side), name), getattr(getattr(two, side), name))
    for name in ("sum_mm", "sum_nm", "sum_nn"):
        np.testing.assert_array_equal(getattr(one.impostor, name), getattr(two.impostor, name))
    if one.impostor.erred is not None and two.impostor.erred is not None:
        assert [_counts(table) for table in one.impostor.erred] == [_counts(table) for table in two.impostor.erred]


def assert_is_loop(tally: Tally, data: Embeddings | Comparisons, thresholds: Any, pairs: bool) -> None:
    """Every number of a tally is that of a loop over the comparisons."""
    expected = tally_by_loop(data, thresholds)
    np.testing.assert_array_equal(tally.thresholds, thresholds)
    assert tally.identities.tolist() == data.identities.tolist()
    np.testing.assert_array_equal(tally.genuine.comparisons, expected["genuine_comparisons"])
    np.testing.assert_array_equal(tally.genuine.errors, expected["genuine_errors"])
    np.testing.assert_array_equal(tally.impostor.comparisons, expected["impostor_comparisons"])
    np.testing.assert_array_equal(tally.impostor.errors, expected["impostor_errors"])
    assert tally.impostor.sum_mm == expected["sum_mm"]
    assert tally.impostor.sum_nm.tolist() == expected["sum_nm"]
    assert tally.impostor.sum_nn.tolist() == expected["sum_nn"]
    compared, erred = tally.impostor.compared, tally.impostor.erred
    assert isinstance(compared, AllPairs) == isinstance(data, Embeddings)
    if isinstance(compared, PairTable):
        assert _counts(compared) == sorted(expected["compared"].items())
    if pairs:
        assert compared is not None
        assert erred is not None
        assert [_counts(table) for table in erred] == [sorted(table.items()) for table in expected["erred"]]


def _counts(table: PairTable) -> list[tuple[tuple[int, int], int]]:
    pairs = zip(table.first.tolist(), table.second.tolist(), strict=True)
    return list(zip(pairs, table.count.tolist(), strict=True))
