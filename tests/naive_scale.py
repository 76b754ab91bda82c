"""Slow, literal twins of the all-pairs engine."""

from __future__ import annotations

from typing import Any

import numpy as np

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
