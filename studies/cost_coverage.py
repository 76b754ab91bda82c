"""Coverage and width of intervals for detection costs, Cllr, precision and F1, on real and on made-up people.

    python studies/cost_coverage.py --data FOLDER --replications 300 --seed 31 --out docs/studies/costs-coverage.csv

Populations: "faces": LFW, the half of the people (two images or more, at most ten each) that no setting was chosen on;
"voices": AudioMNIST's 60 speakers, ten recordings each; "paper": 1,500 people of the paper's model, five instances
each. Scores are mapped once, on the population, by an affine logistic fit, and so are log-likelihood ratios of a fixed
system. A replication draws G people without replacement. The truth is that of the whole population.

An interval promises to cover the value of a population without end, and the estimate varies less around that of a
finite one: its deviation is stretched by 1/√(1 − G/P), on the log scale (precision and F1: logit), before the limits
are judged. Every replication is seeded on its own; a cell that is in the output already is not run again.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import matchbound as mb

Array = NDArray[Any]
MOST = 10
SIZES = {"faces": 50, "voices": 25, "paper": 50}
FILES = {"faces": "face_lfw_dlib.npz", "voices": "speaker_audiomnist_resemblyzer.npz"}
PRIORS = (0.01, 0.05)
FARS = (2e-3, 1e-2)
LINKAGE_PRIOR = 0.01
FIELDS = ("data", "identities", "metric", "at", "method", "replications", "coverage", "above", "below", "width")


class Population:
    """Vectors by person, and the map from scores to log-likelihood ratios."""

    def __init__(self, name: str, folder: Path | None) -> None:
        rng = np.random.default_rng(123)
        self.distance = name == "faces"
        if name == "paper":
            data = mb.SyntheticModel().sample(1500, rng=77)
            self.vectors = np.asarray(data.vectors, dtype=np.float32)
            people = np.split(np.arange(len(data)), 1500)
        else:
            assert folder is not None
            stored = np.load(folder / FILES[name], allow_pickle=False)
            self.vectors = stored["embeddings"].astype(np.float32)
            _, codes = np.unique(stored["identity"], return_inverse=True)
            people = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
            people = [rng.permutation(rows)[:MOST] for rows in people if rows.size >= 2]
            if name == "faces":
                order = rng.permutation(len(people))
                people = [people[i] for i in order[order.size // 2 :]]
        if not self.distance:
            self.vectors /= np.linalg.norm(self.vectors, axis=1, keepdims=True)
        self.people = people
        own, other = self._scores()
        self.slope, self.shift = logistic_fit(own, other)
        self.truth = true_values(self.slope * own + self.shift, self.slope * other + self.shift)

    def _similarity(self, left: Array, right: Array) -> Array:
        products = left @ right.T
        if not self.distance:
            return products
        squares = np.einsum("ij,ij->i", left, left)[:, None] + np.einsum("ij,ij->i", right, right) - 2.0 * products
        return -np.sqrt(np.maximum(squares, 0.0))

    def _scores(self) -> tuple[Array, Array]:
        rows = np.concatenate(self.people)
        owner = np.repeat(np.arange(len(self.people)), [p.size for p in self.people])
        own, other = [], []
        for start in range(0, rows.size, 1000):
            scores = self._similarity(self.vectors[rows[start : start + 1000]], self.vectors[rows[start:]])
            later = np.arange(scores.shape[0])[:, None] < np.arange(scores.shape[1])[None, :]
            same = owner[start : start + 1000][:, None] == owner[start:][None, :]
            other.append(scores[~same & later])
            own.append(scores[same & later])
        return np.sort(np.concatenate(own).astype(np.float64)), np.sort(np.concatenate(other).astype(np.float64))

    def draw(self, size: int, rng: np.random.Generator) -> mb.Comparisons:
        chosen = [self.people[i] for i in rng.choice(len(self.people), size, replace=False)]
        rows, owner = np.concatenate(chosen), np.repeat(np.arange(size), [p.size for p in chosen])
        first, second = np.triu_indices(rows.size, 1)
        score = self._similarity(self.vectors[rows], self.vectors[rows])[first, second].astype(np.float64)
        place = np.arange(rows.size)
        return mb.Comparisons(
            owner[first],
            owner[second],
            self.slope * score + self.shift,
            instance_a=place[first],
            instance_b=place[second],
        )


def logistic_fit(own: Array, other: Array) -> tuple[float, float]:
    """Slope and shift that minimise Cllr, by Newton's method on histograms of 4,000 cells."""
    edges = np.linspace(min(own[0], other[0]), max(own[-1], other[-1]), 4001)
    x = (edges[1:] + edges[:-1]) / 2.0
    g, n = np.histogram(own, edges)[0] / own.size, np.histogram(other, edges)[0] / other.size
    centre, scale = float(x.mean()), float(x.std())
    z = (x - centre) / scale
    beta = np.zeros(2)
    for _ in range(100):
        p = 1.0 / (1.0 + np.exp(-(beta[0] * z + beta[1])))
        gradient = np.array([((n * p - g * (1 - p)) * z).sum(), (n * p - g * (1 - p)).sum()])
        w = (g + n) * p * (1 - p)
        hessian = np.array([[(w * z * z).sum(), (w * z).sum()], [(w * z).sum(), w.sum()]]) + 1e-12 * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        beta -= np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-10:
            break
    return float(beta[0] / scale), float(beta[1] - beta[0] * centre / scale)


def true_values(own: Array, other: Array) -> dict[tuple[str, float], float]:
    """Every number of the population, from sorted log-likelihood ratios; no function of the package is used."""
    made: dict[tuple[str, float], float] = {}
    t, n = own.size, other.size
    cuts = np.concatenate([own, [np.inf]])
    frr = np.searchsorted(own, cuts, side="left") / t
    far = 1.0 - np.searchsorted(other, cuts, side="left") / n
    for prior in PRIORS:
        made["mindcf", prior] = float((prior * frr + (1 - prior) * far).min()) / min(prior, 1 - prior)
        eta = np.log((1 - prior) / prior)
        miss, false = np.searchsorted(own, eta, side="left") / t, 1 - np.searchsorted(other, eta, side="left") / n
        made["actdcf", prior] = (prior * miss + (1 - prior) * false) / min(prior, 1 - prior)
    made["cllr", 0.0] = float(np.logaddexp(0, -own).mean() + np.logaddexp(0, other).mean()) / (2 * np.log(2))
    from sklearn.isotonic import IsotonicRegression

    below = np.searchsorted(other, np.unique(own), side="left")
    cells = np.diff(np.concatenate([[0], below, [n]]))
    count = np.bincount(np.searchsorted(np.unique(own), own))
    y = np.ravel(np.column_stack([np.zeros(count.size), np.ones(count.size)]))
    w = np.ravel(np.column_stack([cells[:-1], count])).astype(float)
    y, w = np.append(y, 0.0), np.append(w, float(cells[-1]))
    kept = w > 0
    y, w = y[kept], w[kept]
    share = IsotonicRegression().fit_transform(np.arange(y.size), y, sample_weight=w)
    with np.errstate(divide="ignore"):
        llr = np.log(share) - np.log1p(-share) - np.log(t / n)
    loss = np.where(y == 1.0, np.logaddexp(0, -llr) / t, np.logaddexp(0, llr) / n)
    made["mincllr", 0.0] = float((loss * w).sum()) / (2 * np.log(2))
    for rate in FARS:
        cut = other[n - round(rate * n)]
        made["threshold", rate] = float(cut)
        miss, false = np.searchsorted(own, cut, side="left") / t, 1 - np.searchsorted(other, cut, side="left") / n
        hits, wrong = LINKAGE_PRIOR * (1 - miss), (1 - LINKAGE_PRIOR) * false
        made["precision", rate] = hits / (hits + wrong)
        made["f1", rate] = 2 * hits / (2 * hits + wrong + LINKAGE_PRIOR * miss)
    return made


@lru_cache(maxsize=1)
def population(name: str, folder: str | None) -> Population:
    return Population(name, None if folder is None else Path(folder))


def replication(task: tuple[str, str | None, int, int]) -> dict[tuple[str, float, str], tuple[float, float, float]]:
    """(estimate, low, high) of every number and method for one sample."""
    name, folder, seed, number = task
    whole = population(name, folder)
    data = whole.draw(SIZES[name], np.random.default_rng([seed, number]))
    made: dict[tuple[str, float, str], tuple[float, float, float]] = {}

    def keep(metric: str, at: float, number: Any, quick: str) -> None:
        for method in ("auto", quick):
            try:
                limits = number.interval(method)
            except mb.DataError:
                made[metric, at, method] = (number.estimate, number.estimate, number.estimate)
                continue
            made[metric, at, method] = (number.estimate, limits.low, limits.high)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        curve = mb.roc(data)
        for prior in PRIORS:
            keep("mindcf", prior, curve.min_dcf(prior), "log-t")
            keep("actdcf", prior, curve.actual_dcf(prior), "log-t")
        keep("cllr", 0.0, curve.cllr(), "log-t")
        keep("mincllr", 0.0, curve.min_cllr(), "log-t")
        for rate in FARS:
            rates = mb.evaluate(data, whole.truth["threshold", rate])
            keep("precision", rate, rates.precision(LINKAGE_PRIOR), "logit-t")
            keep("f1", rate, rates.f1(LINKAGE_PRIOR), "logit-t")
    return made


def stretched(estimate: float, limits: tuple[float, float], truth: float, factor: float, logit: bool) -> Array:
    """Limits moved by what a stretched deviation of the estimate adds."""

    def forward(value: float) -> float:
        value = min(max(value, 1e-12), 1 - 1e-12) if logit else max(value, 1e-12)
        return float(np.log(value) - (np.log1p(-value) if logit else 0.0))

    moved = np.array([forward(v) for v in limits]) + (factor - 1.0) * (forward(estimate) - forward(truth))
    return 1.0 / (1.0 + np.exp(-moved)) if logit else np.exp(moved)


def summary(
    name: str, found: list[dict[tuple[str, float, str], tuple[float, float, float]]], whole: Population
) -> list[dict[str, Any]]:
    factor = 1.0 / np.sqrt(1.0 - SIZES[name] / len(whole.people))
    rows = []
    for metric, at, method in found[0]:
        truth = whole.truth[metric, at]
        above = below = 0
        widths = []
        for made in found:
            estimate, low, high = made[metric, at, method]
            logit = metric in ("precision", "f1")
            edge = (low, high) if estimate in (0.0, 1.0) else stretched(estimate, (low, high), truth, factor, logit)
            above += bool(truth > edge[1])
            below += bool(truth < edge[0])
            widths.append(high - low)
        count = len(found)
        rows.append(
            {
                "data": name,
                "identities": SIZES[name],
                "metric": metric,
                "at": at or "",
                "method": method,
                "replications": count,
                "coverage": f"{1 - (above + below) / count:.4f}",
                "above": f"{above / count:.4f}",
                "below": f"{below / count:.4f}",
                "width": f"{np.mean(widths) / truth:.4f}",
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=str, default=None)
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=list(SIZES))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = []
    if options.out.exists():
        with open(options.out) as stream:
            rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    for name in options.only:
        if any(row["data"] == name for row in rows):
            continue
        start = time.perf_counter()
        tasks = [(name, options.data, options.seed, number) for number in range(options.replications)]
        run: Callable[..., Any] = replication
        with ProcessPoolExecutor(options.workers) as pool:
            found = list(pool.map(run, tasks, chunksize=5))
        rows += summary(name, found, population(name, options.data))
        sys.stderr.write(f"{name}: {time.perf_counter() - start:.0f} s\n")
        write(options.out, rows, f"--replications {options.replications} --seed {options.seed}")


def write(path: Path, rows: list[dict[str, Any]], told: str) -> None:
    with open(path, "w", newline="") as stream:
        stream.write(f"# python studies/cost_coverage.py --data FOLDER {told}\n")
        stream.write(
            "# at: prior (costs) or FAR of the threshold (precision, F1, at prior 0.01); width: mean, over the truth\n"
        )
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
