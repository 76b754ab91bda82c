"""How often a claim about a difference or a gap is falsely shown when the truth is exactly its target.

``python studies/claims_at_margin.py --data ../shared/data/face_lfw_dlib.npz`` draws people from the faces (all people
of the file are the population, so that the true values are known): two systems on the same faces, and two groups of
people of the same population. A claim "below the true value" is false, and may be shown in 5% of the samples. Writes
``docs/studies/claims-margin.csv``.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np

import matchbound as mb

OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "studies" / "claims-margin.csv"


def population(path: str, least: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and identities of the people with at least so many images, capped."""
    held = np.load(path)
    vectors, identity = held["embeddings"], held["identity"]
    rows = []
    for person in np.unique(identity):
        own = np.flatnonzero(identity == person)
        if own.size >= least:
            rows.append(own[:most])
    chosen = np.concatenate(rows)
    _, codes = np.unique(identity[chosen], return_inverse=True)
    return vectors[chosen].astype(np.float64), codes


def take(vectors: np.ndarray, codes: np.ndarray, people: np.ndarray) -> mb.Embeddings:
    """The embeddings of some people."""
    rows = np.flatnonzero(np.isin(codes, people))
    return mb.Embeddings(vectors[rows], codes[rows], instance=rows, similarity="euclidean")


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    warnings.simplefilter("ignore", mb.MatchboundWarning)
    vectors, codes = population(args.data, 4, 6)
    noisy = vectors + 0.03 * np.random.default_rng(0).normal(size=vectors.shape)
    everybody = np.unique(codes)
    whole = [take(one, codes, everybody) for one in (vectors, noisy)]
    curves = [mb.roc(one) for one in whole]
    thresholds = tuple(curve.at_far(0.01).threshold for curve in curves)
    at = [mb.evaluate(one, cut) for one, cut in zip(whole, thresholds, strict=True)]
    truth = {m: float(getattr(at[1], m)) - float(getattr(at[0], m)) for m in ("far", "frr")}
    ratio = {m: float(getattr(at[1], m)) / float(getattr(at[0], m)) for m in ("far", "frr")}
    shown: dict[tuple[str, int], list[bool]] = {}

    def count(what: str, size: int, claim: mb.results.Claim) -> None:
        shown.setdefault((what, size), []).append(claim.shown)

    for size in (50, 200):
        rng = np.random.default_rng([args.seed, size])
        for _ in range(args.replications):
            people = rng.choice(everybody, size, replace=False)
            both = [take(one, codes, people) for one in (noisy, vectors)]
            compared = mb.compare(*both, threshold=thresholds[::-1])
            for m in ("far", "frr"):
                difference = getattr(compared, m)
                count(f"difference of {m} below the truth", size, difference.claim(below=truth[m]))
                count(f"difference of {m} above the truth", size, difference.claim(above=truth[m]))
                count(f"ratio of {m} below the truth", size, difference.as_ratio().claim(below=ratio[m]))
    for size in (12, 60):
        rng = np.random.default_rng([args.seed, 1000 + size])
        for _ in range(args.replications):
            people = rng.choice(everybody, 2 * size, replace=False)
            group = {int(p): ("one" if k < size else "two") for k, p in enumerate(people)}
            rates = mb.by_group(take(vectors, codes, people), thresholds[0], group=group)
            for m in ("far", "frr"):
                gap = rates.gap(m, "one", "two")
                count(f"gap of {m} below 0", size, gap.claim(below=0.0))
                if gap.rate_b > 0:
                    count(f"ratio of groups' {m} below 1", size, gap.as_ratio().claim(below=1.0))
    with args.output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["claim", "people", "replications", "falsely_shown", "standard_error"])
        for (what, size), verdicts in shown.items():
            share = float(np.mean(verdicts))
            error = float(np.sqrt(max(share * (1 - share), 0.05 * 0.95) / len(verdicts)))
            writer.writerow([what, size, len(verdicts), f"{share:.4f}", f"{error:.4f}"])


if __name__ == "__main__":
    main()
