"""The latent interval: after the tally against a sort in the same run, and the whole call against a matrix product."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from bench_scale import bare_product, synthetic, threshold_at
from timing import best, row

import matchbound as mb
from matchbound.counting.allpairs import make_job


def run(quick: bool = False) -> list[dict[str, Any]]:
    """All rows."""
    warnings.simplefilter("ignore")
    return [_after_the_tally(), _whole_call()]


def _after_the_tally() -> dict[str, Any]:
    """One FAR interval of 50 identities × 5, once its tallies are there; the reference is a sort of as many numbers."""
    from matchbound.stats.latent.fit import fit_far, rank_grid

    data = synthetic(250, 128)
    far = mb.evaluate(data, float(threshold_at(data, 1e-2)[0])).far
    assert far.recount is not None
    ranks = rank_grid(far.comparisons, far.errors)
    tally = far.recount.tally(far.recount.thresholds_at(ranks, "impostor"))

    def ours() -> None:
        fit_far(tally).limits(far.errors, 0.95, "two-sided")

    numbers = np.random.default_rng(0).standard_normal(100_000)
    seconds = best(ours, 15)
    reference = best(lambda: np.sort(numbers), 15)
    return row(
        "one latent interval after the tally, 50 identities",
        seconds,
        "a sort of 100,000 floats",
        reference,
        "≤ 10 ms",
        seconds <= 0.010,
    )


def _whole_call() -> dict[str, Any]:
    """4,000 identities × 5: all pairs, one threshold, the latent interval of FAR."""
    data = synthetic(20_000, 128)
    grid = threshold_at(data, 1e-3)
    job = make_job(data, grid, False, prune="none")

    def ours() -> None:
        mb.evaluate(data, float(grid[0])).far.interval("latent")

    seconds, reference = best(ours, 3), best(lambda: bare_product(job), 3)
    return row(
        "evaluate and one latent interval, 4,000 identities × 5",
        seconds,
        "bare float32 product",
        reference,
        "≤ 3.5",
        seconds / reference <= 3.5,
    )
