"""Coverage of paired differences of two synthetic systems of equal accuracy, and the paper's Fig. 1.

Run as ``python studies/compare_coverage.py STUDY --replications 1000 --seed 8 --output FILE``, STUDY one of
``paired``, ``points``, ``figure1``. The model is the paper's (`compare_shared.draw`).
"""

from __future__ import annotations

import numpy as np
from compare_shared import FARS, SEEN, Row, run, share_of, systems, true_thresholds

from matchbound.calls.comparison import Where, compare, compare_points

Kept = dict[tuple[str, float, str], list[tuple[bool, float, float]]]


def coverages(kept: Kept) -> list[Row]:
    """One row per cell from (covered, width, width of the unpaired interval) of each replication."""
    made = []
    for (metric, rate, method), rows in kept.items():
        covered, width, unpaired = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
        made.append(
            {
                "metric": metric,
                "rate": rate,
                "method": method,
                **share_of(covered, "coverage"),
                "width_to_unpaired": width.mean() / unpaired.mean(),
                "narrowest": width.min(),
                "replications": covered.size,
            }
        )
    return made


def paired(replications: int, seed: int) -> list[Row]:
    """Two systems that share 7/8 of their coordinates: coverage of the difference, and width against unpaired."""
    grid = true_thresholds(8)
    chosen = [(metric, rate) for metric in ("far", "frr") for rate in grid[metric]]
    thresholds = [[grid[metric][rate]] * 2 for metric, rate in chosen]
    methods = ("auto", "dyadic", "latent")
    kept: Kept = {}
    for replication in range(replications):
        a, b = systems(np.random.default_rng([seed, replication]), 50, [0, 16])
        tables = compare_points([a, b], [Where(tuple(pair)) for pair in thresholds])
        for (metric, rate), table in zip(chosen, tables, strict=True):
            difference = getattr(table.comparisons["1", "2"], metric)
            for method in methods:
                interval = difference.interval(method)
                unpaired = 2.0 * 2.01 * np.sqrt(difference.sums.variance(1.0, 0.0) + difference.sums.variance(0.0, 1.0))
                row = (0.0 in interval, interval.width, unpaired)
                kept.setdefault((metric, rate, method), []).append(row)
    return coverages(kept)


def points(replications: int, seed: int) -> list[Row]:
    """The two systems of ``paired``: coverage of differences of FRR at equal FAR, and of EER."""
    kept: Kept = {}
    for replication in range(replications):
        a, b = systems(np.random.default_rng([seed, replication]), 50, [0, 16])
        for rate in FARS:
            made = compare(a, b, far=rate)
            numbers = [("frr@far", rate, made.frr)] + ([("eer", 0.0, made.eer)] if rate == FARS[0] else [])
            for metric, at, difference in numbers:
                interval = difference.interval()
                unpaired = 2.0 * 2.01 * np.sqrt(difference.sums.variance(1.0, 0.0) + difference.sums.variance(0.0, 1.0))
                kept.setdefault((metric, at, "auto"), []).append((0.0 in interval, interval.width, unpaired))
    return coverages(kept)


def figure1(replications: int, seed: int) -> list[Row]:
    """The paper's Fig. 1: two equal systems at FAR 0.1, 50 identities, 5 images each.

    "naive": comparisons taken for independent, as in a two-proportion z test. "intervals": naive Wilson
    intervals of the two systems do not overlap. "matchbound": the p-value of the paired difference is below
    0.05.
    """
    grid = true_thresholds()
    threshold = grid["far"][1e-1]
    found: dict[tuple[str, float, str], list[bool]] = {}
    for replication in range(replications):
        rng = np.random.default_rng([seed, replication])
        for name, offsets in (("correlated", [0, 16]), ("independent", [0, SEEN])):
            a, b = systems(rng, 50, offsets)
            made = compare(a, b, threshold=threshold)
            n, one, two = made.far.a.comparisons, made.far.rate_a, made.far.rate_b  # type: ignore[attr-defined]
            z = (one - two) / np.sqrt((one * (1 - one) + two * (1 - two)) / n)
            low, high = (rates.far.interval("naive-wilson") for rates in (made.a, made.b))
            apart = low.high < high.low or high.high < low.low
            found.setdefault(("far", 1e-1, f"naive, {name} systems"), []).append(abs(z) > 1.959964)
            found.setdefault(("far", 1e-1, f"intervals, {name} systems"), []).append(apart)
            found.setdefault(("far", 1e-1, f"matchbound, {name} systems"), []).append(made.far.p_value < 0.05)
    return [
        {
            "study": "figure1",
            "metric": metric,
            "rate": rate,
            "method": method,
            **share_of(hits, "rejected"),
            "replications": len(hits),
        }
        for (metric, rate, method), hits in found.items()
    ]


if __name__ == "__main__":
    run("compare_coverage.py", {"paired": paired, "points": points, "figure1": figure1}, __doc__)
