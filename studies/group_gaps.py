"""Gaps between two groups on real data: how often equal groups are found to differ, coverage, power.

    python studies/group_gaps.py --data FOLDER --half b --replications 300 --seed 77 --out docs/studies/group-gaps.csv
    python studies/group_gaps.py --data FOLDER --half b --levels --replications 600 --seed 78 --out FILE

The people of each set are split in two random halves; the constants of the method were chosen on halves a (seed 5),
and half b is reported. A replication draws people of a half, at most ten images of each face and five instances of
anything else ("faces, uncapped": all images, at most 150; people with one image too), and deals them to two groups.
Kinds of gaps:

- ``equal``: both groups at the threshold at which the half has the target rate, so that the true gap is 0;
- ``a × 3``, ``b × 3``: the first or the second group at the threshold at which the half has three times the rate, as if
  its scores were shifted;
- ``f − m``: groups by sex at the threshold of the target rate; the true gap is that of the half.

Methods: "auto" (what a user gets; ``rejected``: the interval leaves out 0, which is when p ≤ 0.05), "dyadic" (the
groups' own standard errors), "mover" (the default limits of both rates, combined), and each group's own interval, where
``coverage`` is that of both together (`GroupRates.intervals`, Šidák's level): "own, auto" and "own, wilson".

Two samples without replacement from one half differ as much as two from a population without end when the gap is 0;
where it is not, and for each group's own rate, deviations of the estimate are stretched by 1/√(1 − share of the
variance that the finite half takes away) before limits are judged (a group's own rate that is too high: on the log
scale).
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from default_coverage import FILES, MOST, similarity
from numpy.typing import NDArray

import matchbound as mb
from matchbound.counts.tally import GenuineTally, ImpostorTally
from matchbound.results.rates import Rate
from matchbound.stats.differences import mover, t_tails
from matchbound.stats.dyadic import bias_factor, effective_number
from matchbound.stats.gaps import (
    GroupMoments,
    decided,
    difference_limits,
    gap_statistic,
    moments,
    welch,
)
from matchbound.stats.intervals import t_quantile
from matchbound.stats.variance import rate_of_part

Array = NDArray[Any]
FAR, FRR = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1), (1e-2, 3e-2, 1e-1, 3e-1)
CELLS = (("far", 1e-3), ("far", 1e-2), ("far", 1e-1), ("frr", 1e-2), ("frr", 1e-1))
SIZES = {
    "faces": ((12, 60), (10, 10), (50, 50)),
    "drawings": ((12, 60),),
    "texts": ((7, 30),),
    "voices": ((12, 36),),
    "faces, uncapped": ((20, 80),),
    "faces, f − m": ((12, 60),),
}
LEVELS = {"faces": ((10, 10), (7, 40), (12, 60), (25, 25))}
"""Where only how often a gap is found is asked."""
ONE, BOTH = 0.95, 0.95**0.5
FEWER = 5
OWN = 100
"""In so many replications each group's own interval is judged as well."""
FIELDS = ("data", "people", "gap", "metric", "rate", "method", "replications", "rejected", "coverage", "width")


class Half:
    """One half of the people of a set: vectors, thresholds, and what each person adds to each rate."""

    def __init__(self, name: str, half: str, folder: Path) -> None:
        file, _, attribute = name.partition(", ")
        stored = np.load(folder / FILES[file], allow_pickle=False)
        self.vectors = stored["embeddings"].astype(np.float32)
        self.distance = file == "faces"
        if not self.distance:
            self.vectors /= np.linalg.norm(self.vectors, axis=1, keepdims=True)
        _, codes = np.unique(stored["identity"], return_inverse=True)
        people = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        rng = np.random.default_rng(123)
        if attribute == "uncapped":
            order = rng.permutation(len(people))
            chosen = order[: order.size // 2] if half == "a" else order[order.size // 2 :]
            kept = [people[i] for i in chosen if people[i].size <= 150]
            self.people = [kept[i] for i in rng.permutation(len(kept))[:1500]]
        else:
            if self.distance:
                people = [rng.permutation(rows)[:MOST] for rows in people if rows.size >= 2]
            order = rng.permutation(len(people))
            chosen = order[: order.size // 2] if half == "a" else order[order.size // 2 :]
            self.people = [people[i] for i in chosen]
        self.most = 150 if attribute == "uncapped" else MOST if self.distance else FEWER
        self.sides: tuple[Array, Array] | None = None
        if attribute == "f − m":
            first = np.array([stored["group"][rows[0]] for rows in self.people]) == "f"
            self.sides = np.flatnonzero(first), np.flatnonzero(~first)
        self._count()

    def _count(self) -> None:
        """Thresholds of the target rates; by person (a row each): errors with others and with oneself, and trials."""
        rows = np.concatenate(self.people)
        sizes = np.array([p.size for p in self.people])
        owner = np.repeat(np.arange(sizes.size), sizes)
        strangers, kin = [], []
        for scores, same, later in self._blocks(rows, owner):
            strangers.append(scores[~same & later])
            kin.append(scores[same & later])
        impostor, genuine = np.sort(np.concatenate(strangers)), np.sort(np.concatenate(kin))
        self.far = np.array([impostor[impostor.size - round(rate * impostor.size)] for rate in FAR])
        self.frr = np.array([genuine[round(rate * genuine.size)] for rate in FRR])
        del strangers, impostor
        side = np.zeros(sizes.size, dtype=np.int64)
        if self.sides is not None:
            side[self.sides[1]] = 1
        self.side = side
        self.errors = {"far": np.zeros((len(FAR), sizes.size)), "frr": np.zeros((len(FRR), sizes.size))}
        self.trials = {"far": np.zeros(sizes.size), "frr": sizes * (sizes - 1) / 1.0}
        start = 0
        for scores, same, _ in self._blocks(rows, owner, whole=True):
            mine = owner[start : start + scores.shape[0]]
            inside = ~same & (side[mine][:, None] == side[owner][None, :])
            np.add.at(self.trials["far"], mine, inside.sum(axis=1))
            for k, t in enumerate(self.far):
                np.add.at(self.errors["far"][k], mine, ((scores >= t) & inside).sum(axis=1))
            for k, t in enumerate(self.frr):
                np.add.at(self.errors["frr"][k], mine, ((scores < t) & same).sum(axis=1))
            start += scores.shape[0]
        for k, t in enumerate(self.frr):  # an instance with itself is no comparison
            self.errors["frr"][k] -= sizes * float(self._self_scores() < t)

    def _self_scores(self) -> float:
        return 0.0 if self.distance else 1.0

    def _blocks(self, rows: Array, owner: Array, whole: bool = False) -> Iterator[tuple[Array, Array, Array]]:
        for start in range(0, rows.size, 500):
            stop = min(start + 500, rows.size)
            others = slice(0, None) if whole else slice(start, None)
            scores = similarity(self.vectors[rows[start:stop]], self.vectors[rows[others]], self.distance)
            same = owner[start:stop][:, None] == owner[others][None, :]
            later = np.arange(scores.shape[0])[:, None] < np.arange(scores.shape[1])[None, :]
            yield scores, same, later

    def rate(self, metric: str, k: int, side: int | None) -> float:
        """The true rate: of everybody, or of one side of an attribute."""
        among = slice(None) if side is None else self.side == side
        return float(self.errors[metric][k, among].sum() / self.trials[metric][among].sum())

    def moved(self, metric: str, k: int, side: int | None) -> Array:
        """What each person adds to the rate, relative to a mean of as many people."""
        among = slice(None) if side is None else self.side == side
        e, m = self.errors[metric][k, among], self.trials[metric][among]
        value: Array = (e - e.sum() / m.sum() * m) / m.mean() * (2.0 if metric == "far" else 1.0)
        return value

    def stretch(self, metric: str, k: int, j: int, sizes: tuple[int, int]) -> tuple[float, float, float]:
        """1/√(1 − what the finite half takes away): of the gap, and of each group's rate."""
        both = self.sides is not None
        one, two = self.moved(metric, k, 0 if both else None), self.moved(metric, j, 1 if both else None)
        v, w = one.var() / sizes[0], two.var() / sizes[1]
        own = (1.0 - sizes[0] / one.size) ** -0.5, (1.0 - sizes[1] / two.size) ** -0.5
        if both:
            left = (v / own[0] ** 2 + w / own[1] ** 2) / (v + w)
        else:
            left = 1.0 - (one - two).var() / one.size / (v + w)
        return left**-0.5, *own

    def draw(self, sizes: tuple[int, int], rng: np.random.Generator) -> list[mb.Comparisons]:
        """All comparisons within each of two groups."""
        if self.sides is None:
            chosen = rng.choice(len(self.people), sum(sizes), replace=False)
            groups = [chosen[: sizes[0]], chosen[sizes[0] :]]
        else:
            groups = [rng.choice(side, size, replace=False) for side, size in zip(self.sides, sizes, strict=True)]
        made = []
        for group in groups:
            rows = [self.people[i] for i in group]
            rows = [r if r.size <= self.most else rng.choice(r, self.most, replace=False) for r in rows]
            names = np.repeat(np.arange(group.size), [r.size for r in rows])
            kind = "euclidean" if self.distance else "cosine"
            made.append(mb.Embeddings(self.vectors[np.concatenate(rows)], names, similarity=kind).comparisons())
        return made


class Group:
    """One rate of one group at several thresholds: moments, and limits at the two levels."""

    def __init__(self, rates: list[Rate], levels: tuple[float, ...]) -> None:
        self.rates = rates
        self.fitted = rates[0].comparisons and rates[0]._no_latent is None
        errors = np.array([rate.errors for rate in rates])
        self.limits: dict[float, list[tuple[float, float]]] = {}
        model = rates[0].latent_model() if self.fitted else None
        for level in levels:
            if model is None:
                self.limits[level] = [tuple(rate.interval("auto", level)) for rate in rates if rate.comparisons]
                continue
            x = np.tile(errors, 2)
            upper = np.repeat([False, True], errors.size)
            found = model.limit(x, np.full(x.size, model.deviate(level)), upper, tolerance=1e-3).reshape(2, -1)
            self.limits[level] = [(float(low), float(high)) for low, high in found.T]

    def moments(self, k: int) -> GroupMoments:
        return moments(self.rates[k].unit)

    def variance(self, k: int) -> float:
        """As `GroupRates` has it: without bias, not below what pairs say alone, nor below one error."""
        rate, m = self.rates[k], self.moments(k)
        if rate.metric == "far":
            plain = float(m.personal + m.clustered) / bias_factor("far", rate.effective_identities, 1.0)
            corrected = plain * bias_factor("far", effective_number(rate.tally.impostor.comparisons), 1.0)
            return max(corrected, float(m.clustered), 1.0) / float(m.comparisons) ** 2
        factor = bias_factor("frr", rate.effective_identities)
        return max(rate.variance * (factor if np.isfinite(factor) else 1.0), float(m.least))


def limits_of(a: Group, b: Group, i: int, j: int) -> dict[str, tuple[float, float]]:
    """The limits of the gap by each method."""
    one, two = a.rates[i].estimate, b.rates[j].estimate
    d = one - two
    combined = mover(one, a.limits[ONE][i], two, b.limits[ONE][j])
    found = {"mover": combined}
    if a.rates[i].errors == 0 and b.rates[j].errors == 0:
        return {"auto": combined, "dyadic": combined, **found}
    v = a.variance(i), b.variance(j)
    half = t_quantile(0.025, welch(v, tuple(max(g.effective_identities - 1.0, 1.0) for g in (a.rates[i], b.rates[j]))))
    found["dyadic"] = d - half * sum(v) ** 0.5, d + half * sum(v) ** 0.5
    both = a.moments(i), b.moments(j)
    statistic, freedom = gap_statistic(*both)
    found["auto"] = combined
    if combined[0] > 0.0 or combined[1] < 0.0 or t_tails(float(statistic), float(freedom)) < 0.05:
        found["auto"] = decided(0.0, difference_limits(*both, 0.025), combined)
    return found


def check(data: list[mb.Comparisons], half: Half, found: dict[str, tuple[float, float]], metric: str, k: int) -> None:
    """The same through `by_group`, groups at one threshold."""
    t = float(half.far[k] if metric == "far" else half.frr[k])
    a, b = data
    assert a.instance_a is not None
    assert a.instance_b is not None
    assert b.instance_a is not None
    assert b.instance_b is not None
    people = a.identities.size
    images = int(max(a.instance_a.max(), a.instance_b.max())) + 1
    joined = mb.Comparisons(
        np.concatenate([a.a, b.a + people]),
        np.concatenate([a.b, b.b + people]),
        np.concatenate([a.score, b.score]),
        distance=half.distance,
        instance_a=np.concatenate([a.instance_a, b.instance_a + images]),
        instance_b=np.concatenate([a.instance_b, b.instance_b + images]),
    )
    label = {str(i): "a" if i < people else "b" for i in range(people + b.identities.size)}
    gap = mb.by_group(joined, -t if half.distance else t, group=label).gap(metric, "a", "b")  # type: ignore[arg-type]
    statistic, freedom = gap_statistic(*gap.moments)
    assert np.isclose(gap.p_value, t_tails(float(statistic), float(freedom))) or gap.estimate == 0.0
    for method in ("auto", "dyadic"):
        limits = found[method]
        assert np.allclose(tuple(gap.interval(method)), limits, rtol=1e-2, atol=1e-9), (method, metric, k)


def counted(half: Half, sizes: tuple[int, int], rng: np.random.Generator) -> dict[str, list[list[GroupMoments]]]:
    """The moments of both groups at all thresholds, counted in matrices."""
    chosen = rng.choice(len(half.people), sum(sizes), replace=False)
    made: dict[str, list[list[GroupMoments]]] = {"far": [], "frr": []}
    for group in (chosen[: sizes[0]], chosen[sizes[0] :]):
        rows = [half.people[i] for i in group]
        rows = [r if r.size <= half.most else rng.choice(r, half.most, replace=False) for r in rows]
        m = np.array([r.size for r in rows])
        starts, vectors = np.concatenate([[0], np.cumsum(m)[:-1]]), half.vectors[np.concatenate(rows)]
        scores = similarity(vectors, vectors, half.distance)
        pairs = np.outer(m, m) - np.diag(m * m)
        people = effective_number(m)
        one = np.add.reduceat(np.add.reduceat(scores[None] >= half.far[:, None, None], starts, 1, int), starts, 2)
        one[:, np.arange(m.size), np.arange(m.size)] = 0
        impostor = ImpostorTally(
            pairs.sum(axis=1), one.sum(axis=2), int((pairs**2).sum()), (one * pairs).sum((1, 2)), (one**2).sum((1, 2))
        )
        made["far"].append([moments(rate_of_part(impostor, k, people)) for k in range(len(FAR))])
        np.fill_diagonal(scores, np.inf)
        missed = np.add.reduceat(np.add.reduceat(scores[None] < half.frr[:, None, None], starts, 1, int), starts, 2)
        genuine = GenuineTally(m * (m - 1) // 2, missed[:, np.arange(m.size), np.arange(m.size)] // 2)
        if genuine.comparisons.any():
            people = effective_number(genuine.comparisons)
            made["frr"].append([moments(rate_of_part(genuine, k, people)) for k in range(len(FRR))])
    return made


def levels(name: str, half: Half, sizes: tuple[int, int], replications: int, seed: int) -> list[dict[str, Any]]:
    """How often the test of the default interval, and that of the groups' own standard errors, find a gap."""
    kept: dict[tuple[str, str, float, str], list[bool]] = {}
    for number in range(replications):
        made = counted(half, sizes, np.random.default_rng([seed, *sizes, number]))
        for kind, up, down in (("equal", 0, 0), ("a × 3", 1, 0), ("b × 3", 0, 1)):
            for metric, target in CELLS:
                if len(made[metric]) < 2:
                    continue
                k = (FAR if metric == "far" else FRR).index(target)
                a, b = made[metric][0][k + up], made[metric][1][k + down]
                d = float(a.rate - b.rate)
                statistic, freedom = gap_statistic(a, b)
                found = d != 0.0 and t_tails(float(statistic), float(freedom)) <= 0.05
                kept.setdefault((kind, metric, target, "auto"), []).append(found)
                v = [
                    max(float(g.personal + g.clustered), float(g.clustered)) / float(g.comparisons) ** 2 for g in (a, b)
                ]
                v = [max(value, float(g.least)) for value, g in zip(v, (a, b), strict=True)]
                size = t_tails(d / sum(v) ** 0.5, welch((v[0], v[1]), (float(a.freedom), float(b.freedom))))
                kept.setdefault((kind, metric, target, "dyadic"), []).append(d != 0.0 and size <= 0.05)
    rows = []
    for (kind, metric, target, method), hits in kept.items():
        row: dict[str, Any] = {"data": name, "people": f"{sizes[0]}/{sizes[1]}", "gap": kind, "metric": metric}
        row |= {"rate": target, "method": method, "replications": len(hits), "rejected": f"{np.mean(hits):.4f}"}
        rows.append(row)
    return rows


def study(name: str, half: Half, sizes: tuple[int, int], replications: int, seed: int) -> list[dict[str, Any]]:
    kinds = [("equal", 0, 0), ("a × 3", 1, 0), ("b × 3", 0, 1)]
    if half.sides is not None:
        kinds = [(name.partition(", ")[2], 0, 0)]
    grids = {"far": FAR, "frr": FRR}
    kept: dict[tuple[str, str, float, str], list[tuple[float, float, float]]] = {}
    for number in range(replications):
        data = half.draw(sizes, np.random.default_rng([seed, *sizes, number]))
        asked = np.concatenate([half.far, half.frr])
        series = [mb.evaluate(d, -asked if half.distance else asked) for d in data]
        levels = (ONE, BOTH) if number < OWN else (ONE,)
        made = {
            metric: [Group([getattr(s[k + at], metric) for k in range(len(grid))], levels) for s in series]
            for metric, grid, at in (("far", FAR, 0), ("frr", FRR, len(FAR)))
        }
        for kind, up, down in kinds:
            for metric, target in CELLS:
                a, b = made[metric]
                if not a.rates[0].comparisons or not b.rates[0].comparisons:
                    continue
                k = grids[metric].index(target)
                i, j = k + up, k + down
                sides = (0, 1) if half.sides is not None else (None, None)
                truth = half.rate(metric, i, sides[0]), half.rate(metric, j, sides[1])
                stretch = half.stretch(metric, i, j, sizes)
                estimate = a.rates[i].estimate, b.rates[j].estimate
                d, gap = estimate[0] - estimate[1], truth[0] - truth[1]
                found = limits_of(a, b, i, j)
                if number == 0 and i == j:
                    check(data, half, found, metric, i)
                if kind == "equal":
                    stretch = (1.0, *stretch[1:])
                at = d - (d - gap) * stretch[0]
                for method, (low, high) in found.items():
                    there = float(low <= at <= high)
                    kept.setdefault((kind, metric, target, method), []).append(
                        (float(low > 0.0 or high < 0.0), there, high - low)
                    )
                for method in ("auto", "wilson") if number < OWN else ():
                    hit, width = True, 0.0
                    for g, at_k, own, p, s in zip((a, b), (i, j), estimate, truth, stretch[1:], strict=True):
                        low, high = g.limits[BOTH][at_k] if method == "auto" else g.rates[at_k].interval("wilson", BOTH)
                        there = own + (p - own) * s if own <= p else own * (p / own) ** s
                        hit &= low <= there <= high
                        width += (high - low) / 2.0
                    kept.setdefault((kind, metric, target, f"own, {method}"), []).append((np.nan, float(hit), width))
    rows = []
    for (kind, metric, target, method), values in kept.items():
        rejected, coverage, width = np.mean(values, axis=0)
        row: dict[str, Any] = {"data": name, "people": f"{sizes[0]}/{sizes[1]}", "gap": kind, "metric": metric}
        row |= {"rate": target, "method": method, "replications": len(values)}
        row |= {"rejected": "" if np.isnan(rejected) else f"{rejected:.4f}", "coverage": f"{coverage:.4f}"}
        rows.append(row | {"width": f"{width / target:.4g}"})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--half", choices=("a", "b"), default="b")
    parser.add_argument("--only", nargs="*", help="names of the data sets to run")
    parser.add_argument("--levels", action="store_true", help="only how often a gap is found, for more sizes")
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    kind = " --levels" if given.levels else ""
    command = f"--data FOLDER --half {given.half}{kind} --replications {given.replications} --seed {given.seed}"
    rows: list[dict[str, Any]] = []
    for name, each in (LEVELS if given.levels else SIZES).items():
        if given.only and name not in given.only:
            continue
        half = Half(name, given.half, given.data)
        for sizes in each:
            rows += (levels if given.levels else study)(name, half, sizes, given.replications, given.seed)
            with given.out.open("w", encoding="utf-8", newline="") as stream:
                stream.write(f"# python studies/group_gaps.py {command}\n")
                stream.write("# rejected: the interval leaves out 0; width: mean, over the target rate\n")
                writer = csv.DictWriter(stream, FIELDS[: 8 if given.levels else 10], lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            print(name, sizes, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
