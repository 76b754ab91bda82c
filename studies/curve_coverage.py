"""Coverage of the intervals for curves on the paper's synthetic model.

    python studies/curve_coverage.py --replications 1000 --seed 7 --out docs/studies/curves-coverage.csv

Model (Fogliato, Patil & Perona 2024, §6.1): identity i has β_i with 128 independent Exp(1) entries; its M = 5 instances
are β_i + N(0, 5·I), normalised to length 1; scores are Euclidean distances between all pairs of G = 50 identities. The
true curve comes from a simulated population: `--populations` sets of 14,000 identities for impostor distances (98
million pairs each) and 300,000 identities with two instances each for genuine ones. Its error, the standard error over
populations, is stated in the table's header.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound import Comparisons, DataError, MatchboundWarning
from matchbound.calls.evaluate import roc
from matchbound.results.roc import RocCurve
from matchbound.stats.curve.influence import band_grid

FloatArray = NDArray[np.float64]
DIMENSIONS, IDENTITIES, INSTANCES, NOISE = 128, 50, 5, 5.0
TARGETS = (1e-3, 1e-2, 1e-1)
CELLS = 200_000
LEVEL = 0.95
BAND = np.geomspace(1e-2, 0.5, 120)


@dataclass(frozen=True)
class Population:
    """The true curve on a grid of distances, and how well it is known.

    far, frr : float64 arrays, shape (CELLS,)
    frr_error : standard errors of FRR at TARGETS, then of EER
    """

    far: FloatArray
    frr: FloatArray
    frr_error: FloatArray

    def frr_at(self, target: float) -> float:
        return float(np.interp(target, self.far, self.frr))

    def far_of(self, distance: float) -> float:
        return float(np.interp(distance, (np.arange(CELLS) + 1) * (2.0 / CELLS), self.far))

    @property
    def eer(self) -> float:
        return equal_rate(self.far, self.frr)

    @property
    def auc(self) -> float:
        return float(np.trapezoid(1.0 - self.frr, self.far))


def equal_rate(far: FloatArray, frr: FloatArray) -> float:
    k = int(np.argmax(far >= frr))
    return float((far[k] + frr[k]) / 2.0)


def instances(rng: np.random.Generator, identities: int, each: int) -> FloatArray:
    """Unit vectors, shape (identities, each, DIMENSIONS)."""
    centre = rng.exponential(size=(identities, 1, DIMENSIONS))
    drawn = centre + rng.normal(scale=np.sqrt(NOISE), size=(identities, each, DIMENSIONS))
    result: FloatArray = drawn / np.linalg.norm(drawn, axis=2, keepdims=True)
    return result


def histogram(distances: FloatArray) -> NDArray[np.int64]:
    cell = np.minimum((distances * (CELLS / 2.0)).astype(np.int64), CELLS - 1)
    return np.bincount(cell.reshape(-1), minlength=CELLS)


def impostor_counts(rng: np.random.Generator, identities: int = 14_000, block: int = 2_000) -> NDArray[np.int64]:
    vectors = instances(rng, identities, 1)[:, 0].astype(np.float32)
    total = np.zeros(CELLS, dtype=np.int64)
    for start in range(0, identities, block):
        for other in range(start, identities, block):
            inner = vectors[start : start + block] @ vectors[other : other + block].T
            distance = np.sqrt(np.maximum(2.0 - 2.0 * inner, 0.0))
            total += histogram(distance[np.triu_indices(block, 1)] if start == other else distance)
    return total


def genuine_counts(rng: np.random.Generator, identities: int = 300_000, block: int = 20_000) -> NDArray[np.int64]:
    total = np.zeros(CELLS, dtype=np.int64)
    for _ in range(0, identities, block):
        pair = instances(rng, block, 2)
        total += histogram(np.linalg.norm(pair[:, 0] - pair[:, 1], axis=1))
    return total


def population(seed: int, sets: int) -> Population:
    impostor, genuine, each = np.zeros(CELLS), np.zeros(CELLS), []
    for number in range(sets):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1, number)))
        one, two = impostor_counts(rng), genuine_counts(rng)
        impostor += one
        genuine += two
        far, frr = np.cumsum(one) / one.sum(), 1.0 - np.cumsum(two) / two.sum()
        each.append([*(np.interp(t, far, frr) for t in TARGETS), equal_rate(far, frr)])
    error = np.std(each, axis=0, ddof=1) / np.sqrt(sets) if sets > 1 else np.full(len(TARGETS) + 1, np.nan)
    return Population(np.cumsum(impostor) / impostor.sum(), 1.0 - np.cumsum(genuine) / genuine.sum(), error)


def sample(rng: np.random.Generator) -> RocCurve:
    """The curve of one simulated data set."""
    vectors = instances(rng, IDENTITIES, INSTANCES).reshape(-1, DIMENSIONS)
    first, second = np.triu_indices(vectors.shape[0], 1)
    distance = np.sqrt(np.maximum(2.0 - 2.0 * (vectors @ vectors.T)[first, second], 0.0))
    return roc(Comparisons(first // INSTANCES, second // INSTANCES, distance, distance=True))


class Table:
    """Hits and widths by row of the result."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str, str], list[tuple[bool, float]]] = {}

    def add(self, metric: str, at: str, method: str, covered: bool, width: float) -> None:
        self.rows.setdefault((metric, at, method), []).append((covered, width))

    def lines(self) -> list[str]:
        made = ["metric,at,method,coverage,standard_error,mean_width,replications"]
        for (metric, at, method), values in self.rows.items():
            data = np.array(values, dtype=float)
            coverage = float(data[:, 0].mean())
            error = float(np.sqrt(coverage * (1.0 - coverage) / len(values)))
            width = float(data[:, 1].mean())
            made.append(f"{metric},{at},{method},{coverage:.4f},{error:.4f},{width:.5f},{len(values)}")
        return made


def measure(curve: RocCurve, truth: Population, table: Table, resamples: int, seed: int, slow: bool) -> None:
    """All intervals of one data set against the truth; what takes long only where `slow`."""
    for target in TARGETS:
        point, value, at = curve.at_far(target), truth.frr_at(target), f"{target:g}"
        for method, options in (("influence", {}), ("union", {"level_far": 0.1})):
            found = point.interval(method, LEVEL, **options)  # type: ignore[arg-type]
            table.add("frr@far", at, method, value in found, found.width)
    draws: dict[str, dict[str, Any]] = {"vertex": {}, "double-or-nothing": {}}
    if resamples:
        draws["double-or-nothing binormal"] = {"smooth": "binormal"}
        for name, options in draws.items():
            made = curve.band(
                LEVEL, far=list(TARGETS), method=name.split()[0], n_resamples=resamples, rng=seed, **options
            )
            for k, target in enumerate(TARGETS):
                covered = bool(made.low[k] <= truth.frr_at(target) <= made.high[k])
                table.add("frr@far", f"{target:g}", name, covered, float(made.high[k] - made.low[k]))
    for metric, statistic, value in (("eer", curve.eer(), truth.eer), ("auc", curve.auc(), truth.auc)):
        found = statistic.interval("influence", LEVEL)
        table.add(metric, "", "influence", value in found, found.width)
    true_frr = np.interp(BAND, truth.far, truth.frr)
    for name, options in (
        ("simultaneous on [0.01;0.5]", {"far": band_grid(1e-2, 0.5, 200)}),
        ("simultaneous from 100 errors to 0.5", {}),
    ):
        band = curve.band(LEVEL, simultaneous=True, **options)  # type: ignore[arg-type]
        low, high = (np.interp(BAND, band.far, limits) for limits in (band.low, band.high))
        held = bool(np.all((low <= true_frr) & (true_frr <= high)))
        table.add("curve", "0.01-0.5", name, held, float((band.high - band.low).mean()))
    for target in TARGETS:
        for rule in ("wilson", "latent") if slow else ("wilson",):
            try:
                choice = curve.threshold_for(target, LEVEL, method=rule)  # type: ignore[arg-type]
            except DataError:
                continue
            table.add("threshold_for", f"{target:g}", rule, truth.far_of(choice.threshold) <= target, choice.frr)


def main() -> int:
    parser = argparse.ArgumentParser(description="Coverage of curve intervals on the paper's synthetic model.")
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--populations", type=int, default=20)
    parser.add_argument("--resamples", type=int, default=400, help="bootstrap replicates; 0 leaves bootstraps out")
    parser.add_argument("--slow", type=int, default=250, help="replications that also get the latent threshold rule")
    parser.add_argument("--out", default="docs/studies/curves-coverage.csv")
    options = parser.parse_args()
    truth = population(options.seed, options.populations)
    table = Table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchboundWarning)
        for number in range(options.replications):
            rng = np.random.default_rng(np.random.SeedSequence(options.seed, spawn_key=(2, number)))
            measure(sample(rng), truth, table, options.resamples, options.seed, number < options.slow)
    header = [
        f"# python studies/curve_coverage.py --replications {options.replications} --seed {options.seed} "
        f"--populations {options.populations} --resamples {options.resamples}",
        f"# paper's synthetic model, G={IDENTITIES}, M={INSTANCES}, level {LEVEL}; one population for all replications",
        "# true FRR at FAR "
        + ", ".join(f"{t:g}: {truth.frr_at(t):.5f} ± {e:.5f}" for t, e in zip(TARGETS, truth.frr_error, strict=False))
        + f"; EER {truth.eer:.5f} ± {truth.frr_error[-1]:.5f}; AUC {truth.auc:.5f}",
        "# union: level_far 0.1. curve: share of samples whose band holds the whole true curve. threshold_for: share",
        "# of chosen thresholds whose true FAR meets the target with confidence 0.95; mean_width there is the mean FRR",
    ]
    target = Path(options.out)
    temporary = target.with_suffix(".tmp")
    temporary.write_text("\n".join([*header, *table.lines()]) + "\n")
    temporary.replace(target)
    sys.stdout.write("\n".join(table.lines()) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
