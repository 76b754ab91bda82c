"""Costs: minDCF and minCllr with their default intervals against one stable argsort of the same scores."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from bench_curves import scores
from timing import best, row

MOST = 8.0


def run(quick: bool = False) -> list[dict[str, Any]]:
    """2,000 genuine and 497,500 impostor scores of 200 identities, from the arrays to the intervals."""
    import matchbound as mb

    warnings.simplefilter("ignore", mb.MatchboundWarning)
    made = scores()
    score = made["score"]
    argsort = best(lambda: np.argsort(score, kind="stable"))
    data = mb.Comparisons(made["a"], made["b"], score)

    def both() -> None:
        curve = mb.roc(data)
        curve.min_dcf(0.01).interval()
        curve.min_cllr().interval()

    def quickly() -> None:
        curve = mb.roc(data)
        curve.min_dcf(0.01).interval("log-t")
        curve.min_cllr().interval("log-t")

    rows = []
    for name, call in (("auto", both), ("log-t", quickly)):
        seconds = best(call, 3)
        told = f"minDCF and minCllr with intervals ({name}), 499,500 scores"
        rows.append(row(told, seconds, "stable argsort", argsort, f"≤ {MOST:g}×", seconds <= MOST * argsort))
    return rows
