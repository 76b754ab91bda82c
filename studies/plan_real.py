"""Does a plan keep its promise on real data? People drawn from a real set at the size that a plan asks for.

    python studies/plan_real.py --data FOLDER --half b --replications 200 --pilots 12 --seed 9 --out plan-real.csv

A plan promises that with probability 0.95 the upper bound (or the width of the interval) will be what was asked for, if
the system has the rate that was said. Here it has: the threshold is the one at which the half of the set has that rate.
Halves are random halves of the people; planning was designed on half a, and half b is reported (``--half whole`` takes
everybody). Plans are made with nothing known, and from pilots of 40 and 100 people, each drawn anew.

Whether a sample keeps the promise depends on the plan through its number of people only. So plans are made first, and
then samples are drawn on a ladder of sizes that reaches from the smallest plan to the largest, in steps of 1.25.
The share of samples of a size that keep the promise is read between the steps in log G, and ``met`` is its mean over
the plans. Plans of more than half of the people are judged at half of them: their share is ``beyond``. ``printed`` is
the chance that the first plan of a row printed.

The half stands for everybody, and samples without replacement vary less than they would: the logarithms of bounds and
widths of a size, and of the numbers of people that pilots ask for, are spread out around their mean by 1/√(1 − G/P).

Faces: two images of each person, the same ones always; other sets: instances drawn anew from at most ten per person.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from real_sets import SETS

import matchbound as mb
from matchbound.planning.plan import Plan
from matchbound.planning.study import known_from

Array = NDArray[Any]
NAMES = {"voices": "speakers"}
PILOTS = (40, 100)
MOST = 10
STEP = 1.25


@dataclass(frozen=True)
class Asked:
    """A goal."""

    data: str
    metric: str
    rate: float
    goal: str
    value: float
    instances: int

    @property
    def arguments(self) -> dict[str, Any]:
        return {self.metric: self.rate, self.goal: self.value, "instances": self.instances}


ASKED = (
    Asked("faces", "far", 1e-3, "upper", 3e-3, 2),
    Asked("faces", "far", 1e-2, "width", 1e-2, 2),
    Asked("faces", "far", 1e-1, "width", 6e-2, 2),
    Asked("faces", "frr", 5e-2, "upper", 1e-1, 2),
    Asked("drawings", "far", 1e-3, "upper", 6e-3, 2),
    Asked("drawings", "far", 1e-2, "width", 1.6e-2, 2),
    Asked("drawings", "frr", 1e-1, "width", 1e-1, 5),
    Asked("texts", "far", 1e-1, "width", 2e-1, 2),
    Asked("texts", "far", 1e-2, "upper", 6e-2, 2),
    Asked("texts", "frr", 1e-1, "upper", 2.8e-1, 5),
    Asked("voices", "far", 1e-1, "width", 1.6e-1, 2),
    Asked("voices", "far", 1e-2, "upper", 4e-2, 2),
    Asked("voices", "frr", 1e-1, "upper", 2.4e-1, 5),
)
WHOLE = (
    Asked("faces", "far", 1e-3, "upper", 2.5e-3, 2),
    Asked("faces", "far", 1e-2, "width", 1e-2, 2),
    Asked("drawings", "far", 1e-2, "width", 1e-2, 2),
)
"""The goals that were tried first, on whole sets."""
FIELDS = (
    "data", "half", "metric", "rate", "goal", "value", "instances", "method", "known", "identities", "fewest", "most",
    "promised", "printed", "met", "error", "beyond", "replications", "pilots",
)  # fmt: skip


class People:
    """The people of a half of a set, and samples of them."""

    def __init__(self, name: str, half: str, folder: Path) -> None:
        stored = np.load(folder / SETS[NAMES.get(name, name)].file, allow_pickle=False)
        self.distance = name == "faces"
        self.vectors = stored["embeddings"].astype(np.float32)
        if not self.distance:
            self.vectors /= np.linalg.norm(self.vectors, axis=1, keepdims=True)
        _, codes = np.unique(stored["identity"], return_inverse=True)
        rng = np.random.default_rng(123)
        people = [np.flatnonzero(codes == person) for person in range(codes.max() + 1)]
        kept = 2 if self.distance else MOST
        people = [rng.permutation(rows)[:kept] for rows in people if rows.size >= kept]
        order = rng.permutation(len(people))
        middle = order.size // 2
        chosen = {"a": order[:middle], "b": order[middle:], "whole": order}[half]
        self.rows = np.stack([people[i] for i in chosen])
        self.size = len(self.rows)

    def threshold(self, metric: str, rate: float) -> float:
        """The similarity at which the half has a rate."""
        whole = self.draw(self.size, self.rows.shape[1], np.random.default_rng(0)).comparisons()
        scores = whole.similarity[whole.genuine == (metric == "frr")]
        return float(np.quantile(scores, rate if metric == "frr" else 1.0 - rate))

    def draw(self, people: int, instances: int, rng: np.random.Generator) -> mb.Embeddings:
        """A sample without replacement, with so many instances of each."""
        chosen = self.rows[rng.choice(self.size, people, replace=False)]
        rows = rng.permuted(chosen, axis=1)[:, :instances].reshape(-1)
        kind = "euclidean" if self.distance else "cosine"
        return mb.Embeddings(self.vectors[rows], np.repeat(np.arange(people), instances), similarity=kind)

    def ladder(self, fewest: float, most: float) -> list[int]:
        """Sizes that reach from one to another, none above half of the people."""
        top = min(int(np.ceil(most)), self.size // 2)
        start = min(int(fewest), top)
        steps = int(np.ceil(np.log(top / start) / np.log(STEP))) + 1
        return np.unique(np.rint(np.geomspace(start, top, steps)).astype(int)).tolist()


def outcomes(
    people: People, asked: Asked, size: int, threshold: float, rng: np.random.Generator, methods: Sequence[str]
) -> dict[str, float]:
    """The logarithm of the bound or the width that a sample gives, by each method."""
    sample = people.draw(size, asked.instances, rng)
    rates = mb.evaluate(sample, -threshold if people.distance else threshold, workers=1)
    rate = rates.far if asked.metric == "far" else rates.frr
    found = {}
    for method in methods:
        value = rate.upper_bound(method=method) if asked.goal == "upper" else rate.interval(method=method).width
        found[method] = float(np.log(value))
    return found


def stretched(values: Array, share: float) -> Array:
    """Spread out around the mean, as values of a population without end would be."""
    spread: Array = values.mean() + (values - values.mean()) / np.sqrt(1.0 - share)
    return spread


def climb(
    people: People, asked: Asked, sizes: list[int], replications: int, seed: int, methods: Sequence[str]
) -> dict[str, Array]:
    """The share of samples that meet the goal on each step of a ladder, by method."""
    threshold = people.threshold(asked.metric, asked.rate)
    met: dict[str, list[float]] = {method: [] for method in methods}
    for size in sizes:
        rng = np.random.default_rng([seed, size])
        found = [outcomes(people, asked, size, threshold, rng, methods) for _ in range(replications)]
        for method, shares in met.items():
            values = stretched(np.array([one[method] for one in found]), size / people.size)
            shares.append(float(np.mean(values <= np.log(asked.value))))
    return {method: np.array(shares) for method, shares in met.items()}


def planned(people: People, asked: Asked, method: str, pilot: int | None, pilots: int, seed: int) -> tuple[Plan, Array]:
    """The first plan, and the numbers of people that plans ask for, spread out."""
    sizes = []
    for number in range(pilots if pilot else 1):
        rng = np.random.default_rng([seed, number, pilot or 0])
        known = people.draw(pilot, asked.instances, rng) if pilot else None
        if number == 0:
            first = mb.plan(**asked.arguments, pilot=known, method=method)
            sizes.append(first.n_identities)
        else:
            study = replace(first.study, known=known_from(first.target.metric, known, None))
            sizes.append(study.smallest())
    wanted = np.log(sizes)
    return first, np.exp(stretched(wanted, pilot / people.size) if pilot else wanted)


def row_of(first: Plan, sizes: Array, steps: list[int], met: Array, replications: int) -> dict[str, Any]:
    """What was asked for, and how often it was met."""
    each = np.interp(np.log(sizes), np.log(steps), met)
    error = np.sqrt(each.mean() * (1.0 - each.mean()) / replications + each.var() / each.size)
    return {
        "identities": round(float(sizes.mean())),
        "fewest": round(float(sizes.min())),
        "most": round(float(sizes.max())),
        "promised": first.target.power,
        "printed": f"{first.expected.chance:.4f}",
        "met": f"{each.mean():.4f}",
        "error": f"{error:.4f}",
        "beyond": f"{np.mean(sizes > steps[-1]):.2f}",
        "replications": replications,
        "pilots": sizes.size if sizes.size > 1 else 0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--half", choices=("a", "b", "whole"), default="b")
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--pilots", type=int, default=12)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--methods", nargs="+", default=["auto", "wilson"])
    parser.add_argument("--far", type=float, nargs="+", help="only goals for these FARs")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    sets: dict[str, People] = {}
    goals = WHOLE if given.half == "whole" else ASKED
    for asked in (
        goals if given.far is None else [goal for goal in goals if goal.metric == "far" and goal.rate in given.far]
    ):
        if asked.data not in sets:
            sets[asked.data] = People(asked.data, given.half, given.data)
        people = sets[asked.data]
        described = {name: getattr(asked, name) for name in ("data", "metric", "rate", "goal", "value", "instances")}
        made = {
            (method, pilot): planned(people, asked, method, pilot, given.pilots, given.seed)
            for method in given.methods
            for pilot in (None, *PILOTS)
            if pilot is None or pilot <= 0.6 * people.size
        }
        every = np.concatenate([sizes for _, sizes in made.values()])
        steps = people.ladder(every.min(), every.max())
        met = climb(people, asked, steps, given.replications, given.seed, given.methods)
        for (method, pilot), (first, sizes) in made.items():
            known = {"method": method, "known": f"pilots of {pilot}" if pilot else "nothing"}
            row = row_of(first, sizes, steps, met[method], given.replications)
            rows.append({**described, "half": given.half, **known, **row})
            print(rows[-1], flush=True)  # noqa: T201
        with given.out.open("w", encoding="utf-8", newline="") as stream:
            command = f"--half {given.half} --replications {given.replications} --pilots {given.pilots}"
            command += f" --methods {' '.join(given.methods)}"
            command += "" if given.far is None else f" --far {' '.join(f'{rate:g}' for rate in given.far)}"
            stream.write(f"# python studies/plan_real.py --data FOLDER {command} --seed {given.seed}\n")
            stream.write("# error: Monte Carlo error of met; beyond: plans larger than half of the people\n")
            writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
