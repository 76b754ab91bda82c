"""Coverage of FRR's default interval where people are uneven: in numbers of images, or in how often they are rejected.

    python studies/frr_people.py --data FOLDER --replications 400 --seed 71 --out frr-people.csv

"lfw": 400 people of LFW with all of their images (2 to 530; a person of M images has M(M − 1)/2 genuine comparisons);
the truth is the FRR of all 1,680 people with two images or more, and the deviation of an estimate is stretched by
1/√(1 − 400/1680), as in default_coverage.py. Made-up people have scores μ_i + noise: "power-law" (80 people with 2 to
60 images, P(M) ∝ M^−1.5), "even" (50 people, five images each), "goats" (4% of them worse and with twice
the noise), "heavy" (people differ by Student's t with three degrees of freedom), "labels" (one image in a hundred is of
somebody else). The true rate is that of 20,000 people.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np

import matchbound as mb

SETS = {"lfw": 400, "power-law": 80, "even": 50, "goats": 50, "heavy": 50, "labels": 50}
TARGETS = {"lfw": (0.01, 0.16)}
FIELDS = ("data", "identities", "rate", "level", "method", "replications", "coverage", "above", "below", "width")


def lfw(folder: Path) -> list[np.ndarray]:
    """Genuine similarities of each person."""
    stored = np.load(folder / "face_lfw_dlib.npz", allow_pickle=False)
    vectors = stored["embeddings"].astype(np.float32)
    _, codes = np.unique(stored["identity"], return_inverse=True)
    people = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    found = []
    for rows in people:
        if rows.size >= 2:
            own = vectors[rows]
            squares = np.einsum("ij,ij->i", own, own)
            distance = np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * own @ own.T, 0.0))
            found.append(-distance[np.triu_indices(rows.size, 1)].astype(np.float64))
    return found


def made_up(name: str, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Genuine similarities of people who do not exist."""
    images = np.full(size, 5)
    if name == "power-law":
        sizes = np.arange(2, 61)
        images = rng.choice(sizes, size, p=sizes**-1.5 / (sizes**-1.5).sum())
    mean = rng.standard_normal(size) * 0.6
    if name == "heavy":
        mean = 0.5 * rng.standard_t(3.0, size)
    noise = np.where(rng.random(size) < 0.04, 2.0, 1.0) if name == "goats" else np.ones(size)
    found = []
    for i in range(size):
        image = rng.standard_normal(images[i]) * 0.6 * noise[i]
        first, second = np.triu_indices(images[i], 1)
        score = mean[i] * (3.0 * (noise[i] > 1.0) * -0.5 + 1.0) - 1.2 * (noise[i] > 1.0)
        score = score + image[first] + image[second] + 0.5 * rng.standard_normal(first.size)
        if name == "labels":
            wrong = rng.random(images[i]) < 0.01
            score = np.where(wrong[first] ^ wrong[second], score - 5.0, score)
        found.append(score)
    return found


def data_of(people: list[np.ndarray]) -> mb.Comparisons:
    """Genuine comparisons of people, and as many impostor ones as a table must have."""
    owner = np.repeat(np.arange(len(people)), [p.size for p in people])
    score = np.concatenate(people)
    ring = np.arange(len(people))
    return mb.Comparisons(
        np.concatenate([owner, ring]),
        np.concatenate([owner, np.roll(ring, 1)]),
        np.concatenate([score, np.full(ring.size, score.min() - 1.0)]),
    )


def judged(estimate: float, truth: float, share: float) -> float:
    """The truth as an estimate from a population without end would have met it."""
    if share == 0.0 or estimate <= 0.0:
        return truth
    stretch = 1.0 / np.sqrt(1.0 - share)
    if estimate <= truth:
        return float(estimate + (truth - estimate) * stretch)
    return float(np.exp(np.log(estimate) + (np.log(truth) - np.log(estimate)) * stretch))


def main() -> None:
    """Run every set, and write one row for each rate and method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=None)
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--seed", type=int, default=71)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, size in SETS.items():
        if given.only and name not in given.only:
            continue
        everybody = lfw(given.data) if name == "lfw" else made_up(name, 20_000, np.random.default_rng(1))
        pool = np.sort(np.concatenate(everybody))
        targets = TARGETS.get(name, (0.01, 0.1))
        thresholds = np.array([pool[round(rate * pool.size)] for rate in targets])
        truths = np.searchsorted(pool, thresholds) / pool.size
        share = size / len(everybody) if name == "lfw" else 0.0
        found: dict[tuple[float, str], list[tuple[float, float, float]]] = {}
        for number in range(given.replications):
            rng = np.random.default_rng(np.random.SeedSequence(given.seed, spawn_key=(number,)))
            if name == "lfw":
                people = [everybody[i] for i in rng.choice(len(everybody), size, replace=False)]
            else:
                people = made_up(name, size, rng)
            series = mb.evaluate(data_of(people), thresholds)
            for target, rates in zip(targets, series, strict=True):
                for method, interval in (
                    ("default", rates.frr.interval()),
                    ("default, upper bound", rates.frr.interval(side="upper")),
                ):
                    found.setdefault((target, method), []).append((rates.frr.estimate, interval.low, interval.high))
        for (target, method), items in found.items():
            truth = float(truths[targets.index(target)])
            at = [judged(p, truth, share) for p, _, _ in items]
            above = np.mean([t > high for t, (_, _, high) in zip(at, items, strict=True)])
            below = np.mean([t < low for t, (_, low, _) in zip(at, items, strict=True)])
            width = np.mean([high - low for _, low, high in items])
            numbers = (f"{1 - above - below:.4f}", f"{above:.4f}", f"{below:.4f}", f"{width:.4f}")
            rows.append((name, size, target, 0.95, method, len(items), *numbers))
            print(*rows[-1], flush=True)  # noqa: T201
    with given.out.open("w", newline="") as stream:
        stream.write(f"# python studies/frr_people.py --replications {given.replications} --seed {given.seed}\n")
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
