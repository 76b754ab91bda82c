"""Coverage and width of the default interval, through the library, on real and on made-up data.

    python studies/default_coverage.py --data FOLDER --replications 400 --seed 44 --state real.jsonl --out real.csv
    python studies/default_coverage.py --models --seed 44 --state models.jsonl --out models.csv
    python studies/default_coverage.py --data FOLDER --curves --seed 44 --state curves.jsonl --out curves.csv

A replication draws G people, makes a data set of them, and calls `evaluate` (with ``--curves``: `roc`). Methods:
"default" (what a user gets without asking), "decisions" (the same where scores are not known, only whether they match),
"wilson" (as the paper prints it), and "true" (Wilson's formula with the true variance of the estimate, which nobody
has: what could be had at best).

Real data: the people of each set are split in two random halves, a and b; the constants of the method were chosen on
halves a, and half b is reported. A replication draws G people of a half without replacement and at most ten instances
of each. "digits" is a set that no choice was made on, and is not halved (``--half whole``). The truth is the rate of
the half. An interval promises to cover the rate of a population without end, and the estimate varies less around that
of a finite one: its deviation is stretched by 1/√(1 − G/P) before the limits are judged (on the log scale where the
estimate is too high). G is at most 36% of the half.

Made-up data have five instances per person: "paper" (the paper's model), "geometric" (1 + Geometric(1/3) instances),
"wolves" and "rare-wolves" (a tenth of the people 0.9, a twentieth 1.15 standard deviations more similar to everybody),
"goats" (4% of the people with twice the noise), "hubs" (people differ in how near they are to the middle of the
space), "sessions" (two sessions per person, recorded under four kinds of conditions), "families" (people recruited in
pairs that look alike). Thresholds are those at which data sets of that size have the target rates on average, over
8,000 people.

Every replication is seeded on its own and written to ``--state`` when it is done: a run can be stopped at any moment
and resumed, and the table always holds what is there (its column of replications says how many).
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import matchbound as mb
from matchbound.stats.intervals import wilson
from matchbound.stats.latent.model import Correlations, LatentModel

Array = NDArray[Any]
FAR, FRR = (1e-3, 1e-2, 1e-1), (1e-2, 1e-1)
MOST = 10
FILES = {
    "faces": "face_lfw_dlib.npz",
    "drawings": "char_omniglot_eval_cnn.npz",
    "texts": "text_clinc150_minilm.npz",
    "voices": "speaker_etri_tdnn.npz",
    "digits": "speaker_audiomnist_resemblyzer.npz",
}
REAL = {"faces": (20, 50, 100, 300), "drawings": (20, 50, 100), "texts": (20, 25), "voices": (20, 25)}
WHOLE = {"digits": (20,)}
"""A set that no choice was made on: all 60 people of it are the population."""
MODELS = {
    "paper": (50,),
    "geometric": (50,),
    "wolves": (50, 100),
    "rare-wolves": (50,),
    "goats": (20, 50, 100),
    "hubs": (50,),
    "sessions": (50,),
    "families": (50,),
}
WOLVES = {"wolves": (0.1, 0.9), "rare-wolves": (0.05, 1.15)}
LEVELS = (0.8, 0.9, 0.99)
FIELDS = (
    "data",
    "identities",
    "metric",
    "rate",
    "level",
    "method",
    "replications",
    "coverage",
    "above",
    "below",
    "width",
    "width_to_true",
)


def similarity(left: Array, right: Array, distance: bool) -> Array:
    """Cosine of unit rows, or minus the Euclidean distance."""
    products = left @ right.T
    if not distance:
        return products
    squares = np.einsum("ij,ij->i", left, left)[:, None] + np.einsum("ij,ij->i", right, right) - 2.0 * products
    return -np.sqrt(np.maximum(squares, 0.0))


class Half:
    """One half of the people of a set, and the thresholds at which its rates are the targets."""

    def __init__(self, name: str, half: str, folder: Path) -> None:
        stored = np.load(folder / FILES[name], allow_pickle=False)
        self.vectors = stored["embeddings"].astype(np.float32)
        self.distance = name == "faces"
        if not self.distance:
            self.vectors /= np.linalg.norm(self.vectors, axis=1, keepdims=True)
        _, codes = np.unique(stored["identity"], return_inverse=True)
        people = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        rng = np.random.default_rng(123)
        if self.distance:
            people = [rng.permutation(rows)[:MOST] for rows in people if rows.size >= 2]
        order = rng.permutation(len(people))
        middle = order.size // 2
        chosen = {"a": order[:middle], "b": order[middle:], "whole": order}[half]
        self.people = [people[i] for i in chosen]
        self.size: int | None = len(self.people)
        self.impostor, self.genuine = self._scores()
        count = self.impostor.size
        self.far = np.array([self.impostor[count - round(rate * count)] for rate in FAR])
        self.frr = np.array([self.genuine[round(rate * self.genuine.size)] for rate in FRR])

    def _scores(self) -> tuple[Array, Array]:
        rows = np.concatenate(self.people)
        owner = np.repeat(np.arange(len(self.people)), [p.size for p in self.people])
        impostor, genuine = [], []
        for start in range(0, rows.size, 1000):
            scores = similarity(self.vectors[rows[start : start + 1000]], self.vectors[rows[start:]], self.distance)
            later = np.arange(scores.shape[0])[:, None] < np.arange(scores.shape[1])[None, :]
            same = owner[start : start + 1000][:, None] == owner[start:][None, :]
            impostor.append(scores[~same & later])
            genuine.append(scores[same & later])
        return np.sort(np.concatenate(impostor)), np.sort(np.concatenate(genuine))

    def far_at(self, threshold: float) -> float:
        """FAR of the half at a threshold (a similarity)."""
        return 1.0 - float(np.searchsorted(self.impostor, threshold, side="left")) / self.impostor.size

    def frr_at(self, threshold: float) -> float:
        """FRR of the half at a threshold (a similarity)."""
        return float(np.searchsorted(self.genuine, threshold, side="left")) / self.genuine.size

    def eer(self) -> float:
        """The equal error rate of the half."""
        t = np.quantile(self.genuine, np.linspace(0.0, 0.5, 20001))
        gap = [abs(self.far_at(v) - self.frr_at(v)) for v in t[::40]]
        near = int(np.argmin(gap)) * 40
        fine = t[max(near - 40, 0) : near + 41]
        best = min(fine, key=lambda v: abs(self.far_at(v) - self.frr_at(v)))
        return (self.far_at(best) + self.frr_at(best)) / 2.0

    def draw(self, size: int, rng: np.random.Generator) -> mb.Comparisons:
        """A data set of some people: all comparisons."""
        chosen = [self.people[i] for i in rng.choice(len(self.people), size, replace=False)]
        rows = [r if r.size <= MOST else rng.choice(r, MOST, replace=False) for r in chosen]
        names = np.repeat(np.arange(size), [r.size for r in rows])
        kind = "euclidean" if self.distance else "cosine"
        return mb.Embeddings(self.vectors[np.concatenate(rows)], names, similarity=kind).comparisons()


class Model:
    """Made-up people, and the thresholds at which data sets of one size have the target rates on average."""

    distance = False

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size: int | None = None
        self.conditions = 0.5 * np.random.default_rng(77).standard_normal((4, 64))
        rng = np.random.default_rng(999)
        bins, low, high = 400_000, -8.0, 12.0
        counts = np.zeros((2, bins))
        for _ in range(8_000 // size):
            scores, sizes = self.scores(size, rng)
            owner = np.repeat(np.arange(size), sizes)
            first, second = np.triu_indices(owner.size, 1)
            place = ((scores[first, second] - low) * (bins / (high - low))).astype(np.int64)
            place, same = np.clip(place, 0, bins - 1), owner[first] == owner[second]
            counts += [np.bincount(place[~same], minlength=bins), np.bincount(place[same], minlength=bins)]
        edges = np.linspace(low, high, bins + 1)
        above = np.cumsum(counts[0, ::-1])[::-1] / counts[0].sum()
        below = np.cumsum(counts[1]) / counts[1].sum()
        self.far = np.array([edges[np.argmin(np.abs(above - rate))] for rate in FAR])
        self.frr = np.array([edges[np.argmin(np.abs(below - rate)) + 1] for rate in FRR])

    def draw(self, size: int, rng: np.random.Generator) -> mb.Comparisons:
        """A data set of some people: all comparisons."""
        scores, sizes = self.scores(size, rng)
        owner = np.repeat(np.arange(size), sizes)
        first, second = np.triu_indices(owner.size, 1)
        return mb.Comparisons(owner[first], owner[second], scores[first, second], instance_a=first, instance_b=second)

    def scores(self, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Similarities of all pairs of instances of `size` people, and M_i."""
        name = self.name
        sizes = 1 + rng.geometric(1.0 / 3.0, size) if name == "geometric" else np.full(size, 5)
        owner = np.repeat(np.arange(size), sizes)
        if name in WOLVES:
            share, shift = WOLVES[name]
            person = np.sqrt(0.03) * rng.standard_normal(size) + shift * (rng.random(size) < share)
            mean = person[:, None] + person + np.sqrt(0.2) * symmetric(size, rng)
            mean[np.diag_indices(size)] = 4.0 + np.sqrt(0.3) * rng.standard_normal(size)
            instance = 0.2 * rng.standard_normal(owner.size)
            noise = np.sqrt(0.65) * symmetric(owner.size, rng)
            return mean[owner][:, owner] + instance[:, None] + instance + noise, sizes
        if name in ("paper", "geometric", "goats"):
            scale = np.sqrt(5.0) * (1.0 + (rng.random(size) < (0.04 if name == "goats" else 0.0)))
            vectors = rng.exponential(1.0, (size, 128))[owner]
            vectors += scale[owner, None] * rng.standard_normal((owner.size, 128))
        elif name == "hubs":
            centres = rng.standard_normal((size, 32)) + rng.exponential(0.45, (size, 1))
            vectors = centres[owner] + rng.standard_normal((owner.size, 32))
        elif name == "families":
            shared = rng.standard_normal(((size + 1) // 2, 64))[np.arange(size) // 2]
            centres = np.sqrt(0.6) * shared + np.sqrt(0.4) * rng.standard_normal((size, 64))
            vectors = centres[owner] + rng.standard_normal((owner.size, 64))
        else:
            session = np.tile([0, 0, 0, 1, 1], size) + 2 * owner
            kind = self.conditions[rng.integers(0, 4, 2 * size)]
            vectors = (
                rng.standard_normal((size, 64))[owner] + (0.9 * rng.standard_normal((2 * size, 64)) + kind)[session]
            )
            vectors += 0.5 * rng.standard_normal((owner.size, 64))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors @ vectors.T, sizes


def symmetric(size: int, rng: np.random.Generator) -> Array:
    """Standard normals, the same for (i, j) and (j, i)."""
    upper = np.triu(rng.standard_normal((size, size)), 1)
    return upper + upper.T


Row = tuple[str, float, float, str, float, float, float]
"""Metric, rate, level, method, estimate, low, high."""


def rates_of(source: Half | Model, size: int, rng: np.random.Generator, check: bool = False) -> list[Row]:
    """Intervals of one draw at fixed thresholds; `check` compares them with those of `Rate.interval`."""
    data = source.draw(size, rng)
    asked = np.concatenate([source.far, source.frr])
    series = mb.evaluate(data, -asked if source.distance else asked)
    levels = (0.95, *LEVELS) if 50 <= size <= 100 and isinstance(source, Half) else (0.95,)
    made: list[Row] = []
    for metric, targets in (("far", FAR), ("frr", FRR)):
        rates = [getattr(series[k + (0 if metric == "far" else len(FAR))], metric) for k in range(len(targets))]
        fitted = rates[0].latent_model()
        errors = np.array([rate.errors for rate in rates])
        low, high = limits(fitted, errors, (*levels, 0.9))  # a one-sided bound at 95% is the upper limit at 90%
        bound = high[-1]
        assumed = replace(fitted, correlations=without_data(fitted))
        decided = limits(assumed, errors, (0.95,))
        for k, (target, rate) in enumerate(zip(targets, rates, strict=True)):
            p = rate.estimate
            for j, level in enumerate(levels):
                made.append((metric, target, level, "default", p, float(low[j, k]), float(high[j, k])))
            made.append((metric, target, 0.95, "default, upper bound", p, 0.0, float(bound[k])))
            made.append((metric, target, 0.95, "wilson", p, *rate.interval("wilson")))
            made.append((metric, target, 0.95, "decisions", p, float(decided[0][0, k]), float(decided[1][0, k])))
            if check:
                assert np.allclose(tuple(rate.interval()), (low[0, k], high[0, k]), rtol=1e-3)
                assert np.isclose(rate.upper_bound(), bound[k], rtol=1e-3)
    return made


def without_data(model: LatentModel) -> Correlations:
    """The correlations that are assumed where every comparison is a decision."""
    known, numbers = model.correlations, model.settings
    return replace(
        known,
        rho_identity=numbers.assumed_identity if model.design.sharing else 0.0,
        rho_pair=numbers.assumed_pair if model.design.within else 0.0,
        people=0.0,
    )


def limits(model: LatentModel, errors: Array, levels: tuple[float, ...]) -> tuple[Array, Array]:
    """Limits for some numbers of errors at some levels, shapes (levels, errors), in one go."""
    count = errors.size * len(levels)
    x = np.tile(errors, len(levels))
    deviate = np.repeat([model.deviate(level) for level in levels], errors.size)
    found = model.limit(np.tile(x, 2), np.tile(deviate, 2), np.repeat([False, True], count), tolerance=1e-4)
    return found[:count].reshape(len(levels), -1), found[count:].reshape(len(levels), -1)


def points_of(source: Half, size: int, rng: np.random.Generator) -> list[Row]:
    """Intervals of one draw for FRR at a FAR and EER, and whether chosen thresholds keep their promise."""
    curve = mb.roc(source.draw(size, rng))
    made: list[Row] = []
    for target in FAR:
        point = curve.at_far(target)
        made.append(("frr@far", target, 0.95, "default", point.estimate, *point.interval()))
        made.append(("frr@far", target, 0.95, "influence", point.estimate, *point.interval("influence")))
    eer = curve.eer()
    made.append(("eer", 0.0, 0.95, "default", eer.estimate, *eer.interval()))
    made.append(("eer", 0.0, 0.95, "influence", eer.estimate, *eer.interval("influence")))
    for method in ("auto", "wilson"):
        for target in (1e-2, 1e-1):
            try:
                chosen = curve.threshold_for(target, method=method)
            except mb.DataError:
                continue
            there = source.far_at(-chosen.threshold if source.distance else chosen.threshold)
            name = "default" if method == "auto" else method
            made.append(("threshold_for", target, 0.95, name, chosen.far, 0.0, float(there <= target)))
    return made


def judged(estimate: float, truth: float, size: int, population: int | None) -> float:
    """The truth as an estimate from a population without end would have met it."""
    if population is None or estimate <= 0.0:
        return truth
    stretch = 1.0 / np.sqrt(1.0 - size / population)
    if estimate <= truth:
        return float(estimate + (truth - estimate) * stretch)
    return float(np.exp(np.log(estimate) + (np.log(truth) - np.log(estimate)) * stretch))


def replication(source: Half | Model, size: int, number: int, seed: int, curves: bool) -> list[Row]:
    """Intervals of one draw, seeded on its own."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    if curves:
        assert isinstance(source, Half)
        return points_of(source, size, rng)
    return rates_of(source, size, rng, check=number == 0)


def table_rows(source: Half | Model, name: str, size: int, found: list[list[Row]]) -> list[dict[str, Any]]:
    """Rows of the table for one set and one number of people, from what its replications gave."""
    rows: dict[tuple[str, float, float, str], list[tuple[float, float, float]]] = {}
    for one in found:
        for metric, target, level, method, *numbers in one:
            rows.setdefault((metric, target, level, method), []).append((numbers[0], numbers[1], numbers[2]))
    truths: dict[tuple[str, float], float] = {}
    if isinstance(source, Half) and any(metric == "eer" for metric, *_ in rows):
        truths = {("frr@far", target): source.frr_at(float(source.far[k])) for k, target in enumerate(FAR)}
        truths["eer", 0.0] = source.eer()
    widths: dict[tuple[str, float, float], float] = {}
    shrunk = 1.0 - (size / source.size if source.size else 0.0)
    for metric, target, level, method in list(rows):
        if method == "default" and metric in ("far", "frr"):
            seen = np.array([estimate for estimate, _, _ in rows[metric, target, level, method]])
            variance = max(float(np.mean((seen - target) ** 2)) / shrunk, 1e-300)
            limits = [wilson(p, target * (1.0 - target) / variance, (1.0 - level) / 2.0) for p in seen]
            rows[metric, target, level, "true"] = [(p, *pair) for p, pair in zip(seen, limits, strict=True)]
            widths[metric, target, level] = float(np.mean([high - low for low, high in limits]))
    made = []
    for (metric, target, level, method), items in rows.items():
        truth = truths.get((metric, target), target)
        if metric == "threshold_for":
            below, above = 0.0, 1.0 - float(np.mean([met for _, _, met in items]))
            width = float("nan")
        else:
            at = [judged(estimate, truth, size, source.size) for estimate, _, _ in items]
            above = float(np.mean([t > high for t, (_, _, high) in zip(at, items, strict=True)]))
            below = float(np.mean([t < low for t, (_, low, _) in zip(at, items, strict=True)]))
            width = float(np.mean([high - low for _, low, high in items]))
        best = widths.get((metric, target, level))
        made.append(
            {
                "data": name,
                "identities": size,
                "metric": metric,
                "rate": target,
                "level": level,
                "method": method,
                "replications": len(items),
                "coverage": f"{1.0 - above - below:.4f}",
                "above": f"{above:.4f}",
                "below": f"{below:.4f}",
                "width": "" if np.isnan(width) else f"{width / max(truth, 1e-12):.4f}",
                "width_to_true": f"{width / best:.3f}" if best and "bound" not in method else "",
            }
        )
    return made


class State:
    """What was done: one line per replication, so that a study can be stopped at any moment and resumed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[tuple[str, int], dict[int, list[Row]]] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            with contextlib.suppress(json.JSONDecodeError):  # the last line of a run that was killed
                label, size, number, rows = json.loads(line)
                self.found.setdefault((label, size), {})[number] = [tuple(row) for row in rows]

    def add(self, label: str, size: int, number: int, rows: list[Row]) -> None:
        self.found.setdefault((label, size), {})[number] = rows
        with self.path.open("a") as stream:
            stream.write(json.dumps([label, size, number, rows]) + "\n")


def pooled(rows: list[dict[str, Any]], earlier: Path) -> list[dict[str, Any]]:
    """Rows with those of an earlier table, weighted by replications; widths are over the pooled width of "true"."""
    keys = ("data", "identities", "metric", "rate", "level", "method")
    lines = [line for line in earlier.read_text().splitlines() if not line.startswith("#")]
    before = {tuple(str(row[k]) for k in keys): row for row in csv.DictReader(lines)}
    made = {}
    for row in rows:
        key = tuple(str(row[k]) for k in keys)
        old = before.pop(key, None)
        made[key] = dict(row)
        if old is not None:
            one, two = int(old["replications"]), int(row["replications"])
            made[key]["replications"] = one + two
            for name in ("coverage", "above", "below", "width"):
                if row[name] != "":
                    made[key][name] = f"{(one * float(old[name]) + two * float(row[name])) / (one + two):.4f}"
    made |= {key: dict(row) for key, row in before.items()}
    for key, row in made.items():
        best = made.get((*key[:5], "true"))
        if best is not None and row["width_to_true"]:
            row["width_to_true"] = f"{float(row['width']) / float(best['width']):.3f}"
    return list(made.values())


def write_table(
    path: Path, head: str, sources: dict[tuple[str, int], Half | Model], state: State, earlier: Path | None = None
) -> None:
    """The table of what is there, in the order of the cells."""
    rows: list[dict[str, Any]] = []
    for (label, size), source in sources.items():
        done = state.found.get((label, size), {})
        if done:
            rows += table_rows(source, label, size, [done[number] for number in sorted(done)])
    rows = rows if earlier is None else pooled(rows, earlier)
    with path.open("w", newline="") as stream:
        stream.write(head)
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Run what is missing, a few replications of every cell in turn, and write the table after each round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--half", default="b", choices=("a", "b", "whole"))
    parser.add_argument("--models", action="store_true")
    parser.add_argument("--curves", action="store_true")
    parser.add_argument("--only", nargs="*", default=None, help="sets or models to run")
    parser.add_argument("--least", type=int, default=0, help="the smallest number of people")
    parser.add_argument("--most", type=int, default=300, help="the largest number of people")
    parser.add_argument("--first", type=int, default=0, help="the number of the first replication")
    parser.add_argument("--replications", type=int, default=400, help="the number of the last one, plus one")
    parser.add_argument("--pool", type=Path, help="a table of replications before the first, to be pooled with")
    parser.add_argument("--round", type=int, default=20, help="replications of a cell before the next cell's turn")
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("--state", type=Path, required=True, help="what was done, to be resumed")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    kind = "--models" if given.models else f"--half {given.half}" + (" --curves" if given.curves else "")
    command = f"python studies/default_coverage.py {kind} --replications {given.replications} --seed {given.seed}"
    head = f"# {command}\n# above, below: the truth lay above or below; width: mean, over the true rate\n"
    warnings.simplefilter("ignore")
    state = State(given.state)
    sources: dict[tuple[str, int], Half | Model] = {}
    real = WHOLE if given.half == "whole" else REAL
    for name, sizes in (MODELS if given.models else real).items():
        half: Half | None = None
        for size in sizes:
            if (given.only and name not in given.only) or not given.least <= size <= given.most:
                continue
            if given.models:
                sources[name, size] = Model(name, size)
                continue
            half = half or Half(name, given.half, given.data)
            sources[f"{name}-{given.half}", size] = half
    for start in range(given.first, given.replications, given.round):
        for (label, size), source in sources.items():
            done = state.found.get((label, size), {})
            for number in range(start, min(start + given.round, given.replications)):
                if number not in done:
                    state.add(label, size, number, replication(source, size, number, given.seed, given.curves))
        write_table(given.out, head, sources, state, given.pool)
        print(start + given.round, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
