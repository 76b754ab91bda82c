"""Does a plan keep its promise on real data? People drawn from a real set at the size that a plan asks for.

    python studies/plan_real.py --data FOLDER --replications 200 --seed 9 --out docs/studies/plan-real.csv

A plan promises that with probability 0.95 the upper bound (or the width of the interval) will be what was asked for, if
the system has the rate that was said. Here it has: the threshold is the one at which the whole set has that rate, with
two instances of each person. Plans are made with the cautious default, and from pilots of 40 people, each drawn anew
from the set (20 pilots). ``met`` is the share of samples that keep the promise. The whole set stands for everybody, and
samples without replacement vary less than they would: the logarithms of bounds and widths are spread out around their
mean by 1/√(1 − G/P) before they are judged. No sample is larger than half of the set, whatever the plan asks for.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from default_coverage import FILES, similarity

import matchbound as mb

PILOTS, PILOT = 20, 40
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("faces", {"far": 1e-3, "upper": 2.5e-3}),
    ("faces", {"far": 1e-2, "width": 1e-2}),
    ("drawings", {"far": 1e-2, "width": 1e-2}),
)
FIELDS = (
    "data",
    "metric",
    "rate",
    "goal",
    "value",
    "known",
    "identities",
    "promised",
    "printed",
    "met",
    "replications",
)


class People:
    """Two instances of each person of a set, and the threshold of a rate."""

    def __init__(self, name: str, folder: Path) -> None:
        stored = np.load(folder / FILES[name], allow_pickle=False)
        self.distance = name == "faces"
        vectors = stored["embeddings"].astype(np.float32)
        if not self.distance:
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        _, codes = np.unique(stored["identity"], return_inverse=True)
        rng = np.random.default_rng(123)
        rows = [np.flatnonzero(codes == person) for person in range(codes.max() + 1)]
        kept = np.concatenate([rng.permutation(own)[:2] for own in rows if own.size >= 2])
        self.vectors = vectors[kept]
        self.size = kept.size // 2

    def threshold(self, metric: str, rate: float) -> float:
        """A similarity."""
        found = []
        for start in range(0, len(self.vectors), 500):
            scores = similarity(self.vectors[start : start + 500], self.vectors[start:], self.distance)
            first, second = np.indices(scores.shape)
            same = (start + first) // 2 == (start + second) // 2
            found.append(scores[(first < second) & (same == (metric == "frr"))])
        scores = np.concatenate(found)
        return float(np.quantile(scores, rate if metric == "frr" else 1.0 - rate))

    def draw(self, people: int, rng: np.random.Generator) -> mb.Embeddings:
        chosen = rng.choice(self.size, people, replace=False)
        rows = np.stack([2 * chosen, 2 * chosen + 1], axis=1).reshape(-1)
        kind = "euclidean" if self.distance else "cosine"
        return mb.Embeddings(self.vectors[rows], np.repeat(np.arange(people), 2), similarity=kind)


def outcome(people: People, plan: mb.Plan, size: int, threshold: float, rng: np.random.Generator) -> float:
    """The bound or the width that a sample gives."""
    rates = mb.evaluate(people.draw(size, rng), -threshold if people.distance else threshold, workers=1)
    rate = getattr(rates, plan.target.metric)
    return float(rate.upper_bound() if plan.target.goal == "upper" else rate.interval().width)


def check(people: People, asked: dict[str, Any], piloted: bool, replications: int, seed: int) -> dict[str, Any]:
    metric = "far" if "far" in asked else "frr"
    threshold = people.threshold(metric, asked[metric])
    values, kept = [], []
    plans = []
    for number in range(PILOTS if piloted else 1):
        rng = np.random.default_rng([seed, number, int(piloted)])
        plan = mb.plan(**asked, instances=2, pilot=people.draw(PILOT, rng) if piloted else None)
        plans.append(plan)
        size = min(plan.n_identities, people.size // 2)
        each = replications // (PILOTS if piloted else 1)
        values.append(np.log([outcome(people, plan, size, threshold, rng) for _ in range(each)]))
        kept.append(np.full(each, size / people.size))
    every = np.concatenate(values)
    spread = every.mean() + (every - every.mean()) * (1.0 - np.concatenate(kept)) ** -0.5
    met = np.mean(spread <= np.log(plan.target.value))
    return {
        "metric": metric,
        "rate": asked[metric],
        "goal": plan.target.goal,
        "value": plan.target.value,
        "known": f"pilots of {PILOT}" if piloted else "nothing",
        "identities": round(float(np.mean([p.n_identities for p in plans]))),
        "promised": plan.target.power,
        "printed": f"{min(p.expected.chance for p in plans):.4f}",
        "met": f"{met:.4f}",
        "replications": every.size,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    sets: dict[str, People] = {}
    for name, asked in ASKED:
        if name not in sets:
            sets[name] = People(name, given.data)
        for piloted in (False, True):
            rows.append({"data": name, **check(sets[name], asked, piloted, given.replications, given.seed)})
            with given.out.open("w", encoding="utf-8", newline="") as stream:
                command = f"--data FOLDER --replications {given.replications} --seed {given.seed}"
                stream.write(f"# python studies/plan_real.py {command}\n")
                stream.write("# printed: the lowest chance that a plan printed\n")
                writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            print(rows[-1], flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
