"""Coverage and width of the latent-correlation interval on real and on made-up data, beside Wilson's.

    python studies/latent_coverage.py --data FOLDER --replications 400 --seed 22 --out docs/studies/latent-real.csv
    python studies/latent_coverage.py --synthetic --replications 1000 --seed 22 --out docs/studies/latent-synthetic.csv

Real data: a population is a whole set (faces: one of two random halves of the people with two images or more, at most
ten images each); a replication draws G people without replacement and at most ten instances of each. Thresholds have
the population's FAR and FRR as the truth. An interval promises to cover the rate of a population without end, and the
estimate varies less around that of a finite one: its deviation is therefore stretched by 1/√(1 − G/P) before the limits
are judged (on the log scale where the estimate is too high). Draws of instances need no such stretch, so that true
coverage is a little better than the table says. G is at most a third of the population.

Made-up data: the paper's model (five instances; "geometric": 1 + Geometric(1/3) instances); "wolves": latent scores
with a tenth of the people 0.45 standard deviations more similar to everybody; "heavy wolves": 0.9; "rare wolves": one
in twenty, 1.15, so that a third of the samples of twenty people have none.

A cell that is in the output already is not run again. Every replication is seeded on its own.
"""

from __future__ import annotations

import argparse
import csv
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from matchbound.counts.tally import AllPairs, GenuineTally, ImpostorTally, PairTable, Tally
from matchbound.stats.intervals import effective_n, wilson
from matchbound.stats.latent import LatentModel, fit_far, fit_frr, leave_out_ranks, rank_grid, settings_named
from matchbound.stats.variance import far_plug_in, frr_plug_in

Array = NDArray[Any]
FAR, FRR = (1e-3, 1e-2, 1e-1), (1e-2, 1e-1)
MOST = 10
SETS = {
    "faces-a": ("face_lfw_dlib.npz", (20, 50, 100)),
    "faces-b": ("face_lfw_dlib.npz", (20, 50, 100)),
    "drawings": ("char_omniglot_eval_cnn.npz", (20, 50, 100)),
    "texts": ("text_clinc150_minilm.npz", (20, 50)),
    "voices-etri": ("speaker_etri_tdnn.npz", (20, 50)),
    "voices-digits": ("speaker_audiomnist_resemblyzer.npz", (20,)),
}
MODELS = ("paper", "geometric", "wolves", "heavy-wolves", "rare-wolves")
WOLVES = {"wolves": (0.1, 0.45), "heavy-wolves": (0.1, 0.9), "rare-wolves": (0.05, 1.15)}
"""Share of the people, and by how many standard deviations they are more similar to everybody."""
FIELDS = ("data", "identities", "metric", "rate", "method", "replications", "coverage", "above", "below", "width")


class Population:
    """Vectors of a set, by person, and the thresholds at which its rates are the targets."""

    def __init__(self, name: str, folder: Path) -> None:
        stored = np.load(folder / SETS[name][0], allow_pickle=False)
        self.vectors = stored["embeddings"].astype(np.float32)
        self.distance = name.startswith("faces")
        if not self.distance:
            self.vectors /= np.linalg.norm(self.vectors, axis=1, keepdims=True)
        _, codes = np.unique(stored["identity"], return_inverse=True)
        people = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        if self.distance:
            rng = np.random.default_rng(123)
            people = [rng.permutation(rows)[:MOST] for rows in people if rows.size >= 2]
            order = rng.permutation(len(people))
            half = order[: order.size // 2] if name == "faces-a" else order[order.size // 2 :]
            people = [people[i] for i in half]
        self.people = people
        self.far, self.frr = self._thresholds()

    def _thresholds(self) -> tuple[Array, Array]:
        rows = np.concatenate(self.people)
        owner = np.repeat(np.arange(len(self.people)), [p.size for p in self.people])
        impostor, genuine = [], []
        for start in range(0, rows.size, 1000):
            scores = similarity(self.vectors[rows[start : start + 1000]], self.vectors[rows[start:]], self.distance)
            later = np.arange(scores.shape[0])[:, None] < np.arange(scores.shape[1])[None, :]
            same = owner[start : start + 1000][:, None] == owner[start:][None, :]
            impostor.append(scores[~same & later])
            genuine.append(scores[same & later])
        high, low = np.concatenate(impostor), np.concatenate(genuine)
        high.sort()
        low.sort()
        far = np.array([high[high.size - round(rate * high.size)] for rate in FAR])
        return far, np.array([low[round(rate * low.size)] for rate in FRR])

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Similarities of all pairs of instances of `size` people, and M_i."""
        chosen = [self.people[i] for i in rng.choice(len(self.people), size, replace=False)]
        rows = [r if r.size <= MOST else rng.choice(r, MOST, replace=False) for r in chosen]
        sample = self.vectors[np.concatenate(rows)]
        return similarity(sample, sample, self.distance), np.array([r.size for r in rows])


class Model:
    """Made-up people, and the thresholds at which their rates are the targets."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.people = None
        self.far, self.frr = self._wolf_thresholds() if name in WOLVES else self._thresholds()

    def _wolf_thresholds(self) -> tuple[Array, Array]:
        """From the law of the scores: normal, shifted by the number of wolves (0, 1 or 2) in a comparison."""
        impostor, genuine = np.sqrt(2 * 0.03 + 0.2 + 2 * 0.04 + 0.65), np.sqrt(0.3 + 2 * 0.04 + 0.65)

        def excess(t: float, rate: float) -> float:
            part, shift = WOLVES[self.name]
            shares = ((1.0 - part) ** 2, 2.0 * part * (1.0 - part), part**2)
            tails = [share * ndtr((k * shift - t) / impostor) for k, share in enumerate(shares)]
            return float(sum(tails)) - rate

        far = [brentq(excess, -10.0, 10.0, args=(rate,)) for rate in FAR]
        return np.array(far), 4.0 + genuine * ndtri(np.array(FRR))

    def _thresholds(self) -> tuple[Array, Array]:
        """From 20,000 people."""
        rng = np.random.default_rng(999)
        bins = 400_000
        counts = np.zeros((2, bins))
        for _ in range(40):
            scores, sizes = self.draw(500, rng)
            owner = np.repeat(np.arange(500), sizes)
            first, second = np.triu_indices(owner.size, 1)
            place = np.clip(((scores[first, second] + 1.0) * (bins / 2.0)).astype(np.int64), 0, bins - 1)
            same = owner[first] == owner[second]
            counts += [np.bincount(place[~same], minlength=bins), np.bincount(place[same], minlength=bins)]
        edges = np.linspace(-1.0, 1.0, bins + 1)
        above = np.cumsum(counts[0, ::-1])[::-1] / counts[0].sum()
        below = np.cumsum(counts[1]) / counts[1].sum()
        far = np.array([edges[np.argmin(np.abs(above - rate))] for rate in FAR])
        return far, np.array([edges[np.argmin(np.abs(below - rate)) + 1] for rate in FRR])

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Similarities of all pairs of instances of `size` people, and M_i."""
        sizes = 1 + rng.geometric(1.0 / 3.0, size) if self.name == "geometric" else np.full(size, 5)
        owner = np.repeat(np.arange(size), sizes)
        if self.name in WOLVES:
            part, shift = WOLVES[self.name]
            person = np.sqrt(0.03) * rng.standard_normal(size) + shift * (rng.random(size) < part)
            mean = person[:, None] + person + np.sqrt(0.2) * _symmetric(size, rng)
            mean[np.diag_indices(size)] = 4.0 + np.sqrt(0.3) * rng.standard_normal(size)
            instance = 0.2 * rng.standard_normal(owner.size)
            noise = np.sqrt(0.65) * _symmetric(owner.size, rng)
            return mean[owner][:, owner] + instance[:, None] + instance + noise, sizes
        vectors = rng.exponential(1.0, (size, 128))[owner] + np.sqrt(5.0) * rng.standard_normal((owner.size, 128))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors @ vectors.T, sizes


def _symmetric(size: int, rng: np.random.Generator) -> Array:
    upper = np.triu(rng.standard_normal((size, size)), 1)
    return upper + upper.T


def similarity(left: Array, right: Array, distance: bool) -> Array:
    """Cosine of unit rows, or minus the Euclidean distance."""
    products = left @ right.T
    if not distance:
        return products
    squares = np.einsum("ij,ij->i", left, left)[:, None] + np.einsum("ij,ij->i", right, right) - 2.0 * products
    return -np.sqrt(np.maximum(squares, 0.0))


def pair_errors(pairs: Array, scores: Array, count: int, thresholds: Array) -> Array:
    """n_ij at each threshold (increasing), shape (K, count); `pairs` numbers the identity pair of each comparison."""
    levels = thresholds.size
    reached = np.searchsorted(thresholds, scores, side="right")
    table = np.bincount(pairs * (levels + 1) + reached, minlength=count * (levels + 1)).reshape(count, -1)
    return np.ascontiguousarray(np.cumsum(table[:, :0:-1], axis=1)[:, ::-1].T)


def impostor_tally(n: Array, sizes: Array, thresholds: Array, keep: bool) -> Tally:
    """The tally of n_ij of all pairs of identities (in the order of triu_indices) at thresholds."""
    count, levels = sizes.size, thresholds.size
    first, second = np.triu_indices(count, 1)
    errors = np.array([np.bincount(first, row, count) + np.bincount(second, row, count) for row in n]).astype(np.int64)
    m = sizes[first] * sizes[second]
    erred = tuple(PairTable(first[row > 0], second[row > 0], row[row > 0]) for row in n) if keep else None
    impostor = ImpostorTally(
        sizes * (sizes.sum() - sizes),
        errors,
        2 * int((m * m).sum()),
        2 * (n @ m),
        2 * np.einsum("kp,kp->k", n, n),
        AllPairs(sizes),
        erred,
    )
    genuine = GenuineTally(sizes * (sizes - 1) // 2, np.zeros((levels, count), np.int64))
    return Tally(np.arange(count), thresholds, False, genuine, impostor, sizes)


def genuine_tally(owner: Array, scores: Array, sizes: Array, thresholds: Array) -> Tally:
    """Genuine comparisons at thresholds (increasing)."""
    levels, count = thresholds.size, sizes.size
    reached = np.searchsorted(thresholds, scores, side="right")
    table = np.bincount(owner * (levels + 1) + reached, minlength=count * (levels + 1)).reshape(count, -1)
    errors = np.cumsum(table, axis=1)[:, :-1].T
    nothing = np.zeros(levels, np.int64)
    impostor = ImpostorTally(np.zeros(count, np.int64), np.zeros((levels, count), np.int64), 0, nothing, nothing)
    genuine = GenuineTally(sizes * (sizes - 1) // 2, errors)
    return Tally(np.arange(count), thresholds, False, genuine, impostor, sizes)


def replicate(
    source: Population | Model, size: int, seed: int, number: int
) -> list[tuple[str, float, str, float, Any]]:
    """Intervals of one draw: (metric, rate, method, estimate, limits)."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    scores, sizes = source.draw(size, rng)
    owner = np.repeat(np.arange(size), sizes)
    first, second = np.triu_indices(owner.size, 1)
    all_scores, left, right = scores[first, second], owner[first], owner[second]
    same = left == right
    impostor, genuine = all_scores[~same], all_scores[same]
    index = np.zeros((size, size), np.int64)
    index[np.triu_indices(size, 1)] = np.arange(size * (size - 1) // 2)
    pairs = index[left[~same], right[~same]]
    ranked, total = np.sort(impostor)[::-1], impostor.size
    errors = [int((impostor >= t).sum()) for t in source.far]
    ranks = np.unique(np.concatenate([rank_grid(total, min(x, total // 2)) for x in errors]))
    grid, left_out = ranked[ranks - 1], ranked[leave_out_ranks(total, 0) - 1]
    thresholds = np.unique(np.concatenate([grid, left_out, source.far]))
    n = pair_errors(pairs, impostor, size * (size - 1) // 2, thresholds)

    def at_some(some: Array, keep: bool = False) -> Tally:
        place = np.searchsorted(thresholds, np.unique(some))
        return impostor_tally(n[place], sizes, thresholds[place], keep)

    tally, out, at = at_some(grid), at_some(left_out, keep=True), at_some(source.far)
    variances = [far_plug_in(at.impostor, len(FAR) - 1 - k) for k in range(len(FAR))]
    found = _intervals("far", FAR, errors, total, variances, size // 2, fit_far(tally, out, settings="default"))
    ranked, total = np.sort(genuine), genuine.size
    errors = [int((genuine < t).sum()) for t in source.frr]
    ranks = np.unique(np.concatenate([rank_grid(total, min(x, total // 2), "frr") for x in errors]))
    tally = genuine_tally(left[same], genuine, sizes, np.unique(ranked[ranks[ranks < total]]))
    at = genuine_tally(left[same], genuine, sizes, source.frr)
    variances = [frr_plug_in(at.genuine, k) for k in range(len(FRR))]
    model = fit_frr(tally, settings="default")
    return found + _intervals("frr", FRR, errors, total, variances, int((sizes > 1).sum()), model)


def _intervals(
    metric: str, rates: Any, errors: list[int], total: int, variances: list[float], floor: int, model: LatentModel
) -> list[tuple[str, float, str, float, Any]]:
    """Intervals at each rate; the settings differ only in what limits do with the fitted correlations."""
    rows: list[tuple[str, float, str, float, Any]] = []
    for rate, x, variance in zip(rates, errors, variances, strict=True):
        p = x / total
        rows.append((metric, rate, "wilson", p, wilson(p, effective_n(p, variance, floor), 0.025)))
    x = np.repeat(np.array(errors, dtype=float), 2)
    upper = np.tile([False, True], len(errors))
    for name in ("reference", "default"):
        same = replace(model, settings=settings_named(name))
        limits = same.limit(x, same.deviate(0.95), upper).reshape(-1, 2)
        for rate, count, pair in zip(rates, errors, limits, strict=True):
            rows.append((metric, rate, f"latent ({name})", count / total, tuple(pair)))
    return rows


def judged(estimate: float, truth: float, size: int, population: int | None) -> float:
    """The truth as an estimate from a population without end would have met it."""
    if population is None:
        return truth
    stretch = 1.0 / np.sqrt(1.0 - size / population)
    if estimate <= truth:
        return float(estimate + (truth - estimate) * stretch)
    return float(np.exp(np.log(estimate) + (np.log(truth) - np.log(estimate)) * stretch))


@lru_cache(maxsize=1)
def source_of(name: str, folder: Path | None) -> Population | Model:
    """The population or model of that name; the one last asked for is kept."""
    return Model(name) if folder is None else Population(name, folder)


def cell(name: str, size: int, folder: Path | None, replications: int, seed: int) -> list[dict[str, Any]]:
    """One data set and number of people: a row a metric, rate and method."""
    source = source_of(name, folder)
    population = None if source.people is None else len(source.people)
    seen: dict[tuple[str, float, str], list[tuple[bool, bool, float]]] = {}
    for number in range(replications):
        for metric, rate, method, estimate, (low, high) in replicate(source, size, seed, number):
            truth = judged(estimate, rate, size, population)
            seen.setdefault((metric, rate, method), []).append((truth > high, truth < low, (high - low) / rate))
    rows = []
    for (metric, rate, method), results in seen.items():
        above, below, width = np.mean(np.array(results, dtype=float), axis=0)
        numbers = {"coverage": 1.0 - above - below, "above": above, "below": below, "width": width}
        row = {"data": name, "identities": size, "metric": metric, "rate": rate, "method": method}
        rows.append(row | {"replications": replications} | {key: f"{value:.4f}" for key, value in numbers.items()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--synthetic", action="store_true", help="made-up data instead of real ones")
    parser.add_argument("--only", nargs="*", help="data sets or models, by name")
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--seed", type=int, default=22)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    folder = None if given.synthetic else given.data
    names = MODELS if given.synthetic else tuple(SETS)
    wanted = [(n, g) for n in names for g in ((20, 50, 100) if given.synthetic else SETS[n][1])]
    wanted = [pair for pair in wanted if not given.only or pair[0] in given.only]
    if not given.out.exists():
        kind = "--synthetic " if given.synthetic else ""
        command = f"python studies/latent_coverage.py {kind}--replications {given.replications} --seed {given.seed}"
        header = f"# {command}\n# above, below: the truth lay above or below the interval; width: mean, over the rate\n"
        given.out.write_text(header + ",".join(FIELDS) + "\n", encoding="utf-8")
    lines = given.out.read_text(encoding="utf-8").splitlines()
    done = {(row["data"], int(row["identities"])) for row in csv.DictReader(x for x in lines if not x.startswith("#"))}
    left = [pair for pair in wanted if pair not in done]
    with ProcessPoolExecutor(given.processes) as pool:
        jobs = [pool.submit(cell, n, g, folder, given.replications, given.seed) for n, g in left]
        for job in jobs:
            rows = job.result()
            with given.out.open("a", encoding="utf-8", newline="") as stream:
                csv.DictWriter(stream, FIELDS, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
