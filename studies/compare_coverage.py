"""Coverage and error rates of comparisons between systems and groups, on synthetic systems of equal accuracy.

Run as ``python studies/compare_coverage.py STUDY --replications 1000 --seed 8 --output
docs/studies/compare-STUDY.csv``, STUDY one of ``paired``, ``points``, ``systems``, ``groups``, ``figure1``.
The model is the paper's (§5.1): instance k of identity i is β_i + ε_ik, β exponential, ε normal with variance
5, scaled to length 1, compared by Euclidean distance. A system sees 128 of the coordinates; systems that see
different ones are equally good, and correlated by the coordinates that they share.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import matchbound as mb
from matchbound.api_compare import compare, compare_all
from matchbound.api_groups import by_group

SEEN, INSTANCES = 128, 5
FARS, FRRS = (1e-3, 1e-2, 1e-1), (1e-2, 1e-1)
FloatArray = NDArray[np.float64]


def draw(rng: np.random.Generator, identities: int, offsets: list[int]) -> list[FloatArray]:
    """Vectors of each system, shape (identities·5, 128): the coordinates from its offset on."""
    width = SEEN + max(offsets)
    beta = rng.exponential(size=(identities, width))
    x = np.repeat(beta, INSTANCES, axis=0) + rng.normal(0.0, np.sqrt(5.0), (identities * INSTANCES, width))
    views = [x[:, start : start + SEEN] for start in offsets]
    return [view / np.linalg.norm(view, axis=1, keepdims=True) for view in views]


def systems(rng: np.random.Generator, identities: int, offsets: list[int]) -> list[mb.Comparisons]:
    """All pairs of instances, scored by each system."""
    rows = identities * INSTANCES
    first, second = np.triu_indices(rows, k=1)
    owner = np.arange(rows) // INSTANCES
    made = []
    for view in draw(rng, identities, offsets):
        squares = np.maximum(2.0 - 2.0 * (view @ view.T), 0.0)
        score = np.sqrt(squares[first, second])
        made.append(mb.Comparisons(owner[first], owner[second], score, distance=True))
    return made


def true_thresholds(samples: int = 40) -> dict[str, dict[float, float]]:
    """Thresholds at which a system has each rate, from 40 samples of 200 identities."""
    rng = np.random.default_rng(20240)
    impostor, genuine = [], []
    for _ in range(samples):
        data = systems(rng, 200, [0])[0]
        impostor.append(data.score[~data.genuine].astype(np.float32))
        genuine.append(data.score[data.genuine])
    strangers, kin = np.concatenate(impostor), np.concatenate(genuine)
    return {
        "far": {rate: float(np.quantile(strangers, rate)) for rate in FARS},
        "frr": {rate: float(np.quantile(kin, 1.0 - rate)) for rate in FRRS},
    }


def coverages(kept: dict[tuple[str, float, str], list[tuple[bool, float, float]]]) -> list[dict[str, object]]:
    """One row a cell from (covered, width, width of the unpaired interval) of each replication."""
    made = []
    for (metric, rate, method), rows in kept.items():
        covered, width, unpaired = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
        made.append(
            {
                "metric": metric,
                "rate": rate,
                "method": method,
                "coverage": covered.mean(),
                "monte_carlo_error": np.sqrt(covered.mean() * (1 - covered.mean()) / covered.size),
                "width_to_unpaired": width.mean() / unpaired.mean(),
                "narrowest": width.min(),
                "replications": covered.size,
            }
        )
    return made


def paired(replications: int, seed: int) -> list[dict[str, object]]:
    """Two systems that share 7/8 of their coordinates: coverage of the difference, and width against unpaired.

    Every method in each fifth replication, the first two in all.
    """
    grid = true_thresholds()
    cells = [(metric, rate) for metric in ("far", "frr") for rate in grid[metric]]
    methods = ("auto", "dyadic", "latent")
    kept: dict[tuple[str, float, str], list[tuple[bool, float, float]]] = {}
    for replication in range(replications):
        a, b = systems(np.random.default_rng([seed, replication]), 50, [0, 16])
        for metric, rate in cells:
            difference = getattr(compare(a, b, threshold=grid[metric][rate]), metric)
            for method in methods if replication % 5 == 0 else methods[:2]:
                interval = difference.interval(method)
                unpaired = 2.0 * 2.01 * np.sqrt(difference.unpaired_variance)
                row = (0.0 in interval, interval.width, unpaired)
                kept.setdefault((metric, rate, method), []).append(row)
    return coverages(kept)


def points(replications: int, seed: int) -> list[dict[str, object]]:
    """The two systems of ``paired``: coverage of differences of FRR at equal FAR, and of EER."""
    kept: dict[tuple[str, float, str], list[tuple[bool, float, float]]] = {}
    for replication in range(replications):
        a, b = systems(np.random.default_rng([seed, replication]), 50, [0, 16])
        for rate in FARS:
            made = compare(a, b, far=rate)
            numbers = [("frr@far", rate, made.frr)] + ([("eer", float("nan"), made.eer)] if rate == FARS[0] else [])
            for metric, at, difference in numbers:
                interval = difference.interval()
                unpaired = 2.0 * 2.01 * np.sqrt(difference.unpaired_variance)
                kept.setdefault((metric, at, "auto"), []).append((0.0 in interval, interval.width, unpaired))
    return coverages(kept)


def rejections(name: str, found: dict[tuple[str, float, str], list[bool]]) -> list[dict[str, object]]:
    made = []
    for (metric, rate, method), hits in found.items():
        share = float(np.mean(hits))
        made.append(
            {
                "study": name,
                "metric": metric,
                "rate": rate,
                "method": method,
                "rejected": share,
                "monte_carlo_error": np.sqrt(share * (1 - share) / len(hits)),
                "replications": len(hits),
            }
        )
    return made


def many_systems(replications: int, seed: int) -> list[dict[str, object]]:
    """Five equal systems, all ten pairs: how often any simultaneous interval excludes 0."""
    grid = true_thresholds()
    found: dict[tuple[str, float, str], list[bool]] = {}
    for replication in range(replications):
        made = systems(np.random.default_rng([seed, replication]), 50, [0, 8, 16, 24, 32])
        for metric in ("far", "frr"):
            for rate, threshold in grid[metric].items():
                rows = compare_all(made, threshold=threshold).differences(metric, method="dyadic", n_resamples=4000)
                hit = any(0.0 not in row.interval for row in rows)
                found.setdefault((metric, rate, "max-t"), []).append(hit)
    return rejections("systems", found)


def many_groups(replications: int, seed: int) -> list[dict[str, object]]:
    """Eight equal groups of 25 identities, all 28 pairs: how often any simultaneous interval excludes 0."""
    grid = true_thresholds()
    owner = np.arange(200 * INSTANCES) // INSTANCES
    group = np.array([f"g{k}" for k in range(8)])[owner // 25]
    found: dict[tuple[str, float, str], list[bool]] = {}
    for replication in range(replications):
        view = draw(np.random.default_rng([seed, replication]), 200, [0])[0]
        data = mb.Embeddings(view, owner, "euclidean", group=group)
        for metric in ("far", "frr"):
            for rate, threshold in grid[metric].items():
                rates = by_group(data, threshold, workers=1)
                for method in ("dyadic", "wilson"):
                    rows = rates.gaps(metric, method=method, n_resamples=4000)
                    hit = any(0.0 not in row.interval for row in rows)
                    found.setdefault((metric, rate, method), []).append(hit)
    return rejections("groups", found)


def figure1(replications: int, seed: int) -> list[dict[str, object]]:
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
    return rejections("figure1", found)


STUDIES: dict[str, Callable[[int, int], list[dict[str, object]]]] = {
    "paired": paired,
    "points": points,
    "systems": many_systems,
    "groups": many_groups,
    "figure1": figure1,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", mb.MatchboundWarning)
    rows = STUDIES[options.study](options.replications, options.seed)
    stream = io.StringIO()
    target = f" --output {options.output}" if options.output else ""
    stream.write(
        f"# python studies/compare_coverage.py {options.study} --replications {options.replications} "
        f"--seed {options.seed}{target}\n"
    )
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})

    if options.output is None:
        sys.stdout.write(stream.getvalue())
    else:
        options.output.write_text(stream.getvalue(), encoding="utf-8")


if __name__ == "__main__":
    main()
