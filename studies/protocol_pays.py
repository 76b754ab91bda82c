"""Does a designed protocol pay? The variance of FAR under four ways to spend the same number of comparisons.

    python studies/protocol_pays.py --replications 4000 --seed 1 --data DIRECTORY --output docs/studies

Ways: `protocol` (matchbound.design_protocol); `random` pairs of instances of different people, drawn without
replacement; `blocks`, random pairs of people with all M² comparisons of their instances; `people`, all
comparisons among a few people chosen at random. Synthetic data are drawn afresh every time from the paper's
model (β ~ Exponential(1) in 128 dimensions plus noise N(0, 5), rows of length 1; M = 5). Real data (DIRECTORY
holds face_lfw_dlib.npz and others, which are not part of this project) are populations from which G people
with M instances each are drawn without replacement.

Writes protocol_pays.csv, protocol_pays.svg, protocol_coverage.csv and protocol_bootstraps.csv.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import matchbound as mb
from matchbound.planning.protocol import design_protocol, score_protocol

M = 5
RATES = (0.3, 0.1, 0.01)
WAYS = ("protocol", "random", "blocks", "people")
Array = np.ndarray[Any, Any]


def synthetic(size: int, rng: np.random.Generator) -> Array:
    """Embeddings of the paper's model, rows of one person together, shape (G·M, 128)."""
    x = rng.exponential(1.0, (size, 1, 128)) + rng.normal(0.0, np.sqrt(5.0), (size, M, 128))
    return (x / np.linalg.norm(x, axis=2, keepdims=True)).reshape(-1, 128).astype(np.float32)


def population(path: Path, distance: bool) -> Array:
    """Similarities among M instances of everybody who has so many, shape (G·M, G·M)."""
    stored = np.load(path, allow_pickle=False)
    codes = np.unique(stored["identity"], return_inverse=True)[1]
    rows = np.concatenate([np.flatnonzero(codes == i)[:M] for i in np.flatnonzero(np.bincount(codes) >= M)])
    x = stored["embeddings"][rows].astype(np.float32)
    if distance:
        square = (x * x).sum(axis=1)
        return -np.sqrt(np.maximum(square[:, None] + square - 2.0 * x @ x.T, 0.0))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x @ x.T


def chosen(
    way: str, size: int, budget: int, rng: np.random.Generator, designed: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Rows of the comparisons that a way of spending the budget takes."""
    if way == "protocol":
        return designed
    if way == "random":
        first, second = rng.integers(size * M, size=(2, 3 * budget + 50))
        low, high = np.minimum(first, second), np.maximum(first, second)
        key = (low * (size * M) + high)[low // M != high // M]
        key = key[np.sort(np.unique(key, return_index=True)[1])][:budget]
        return key // (size * M), key % (size * M)
    inner = np.arange(M)
    if way == "blocks":
        pairs = -(-budget // (M * M))
        first, second = rng.integers(size, size=(2, 3 * pairs + 50))
        low, high = np.minimum(first, second), np.maximum(first, second)
        key = (low * size + high)[low != high]
        key = key[np.sort(np.unique(key, return_index=True)[1])][:pairs]
        low, high = key // size, key % size
    else:
        people = 2
        while people * (people - 1) // 2 * M * M < budget:
            people += 1
        drawn = rng.permutation(size)[:people]  # once: both sides of a comparison are of the same few people
        low, high = (drawn[side] for side in np.triu_indices(people, k=1))
    first = (low[:, None, None] * M + inner[:, None] + 0 * inner).reshape(-1)
    second = (high[:, None, None] * M + inner + 0 * inner[:, None]).reshape(-1)
    keep = rng.permutation(first.size)[:budget]
    return first[keep], second[keep]


def variances(
    draw: Callable[[np.random.Generator], Callable[[Array, Array], Array]],
    thresholds: Array,
    size: int,
    replications: int,
    seed: int,
    name: str,
) -> list[dict[str, Any]]:
    """Variance of FAR by way, budget and threshold, over replications of the data."""
    budgets = [size // 2, size, 2 * size, 10 * size]
    design = {b: design_protocol(np.repeat(np.arange(size), M), budget=b) for b in budgets}
    found = np.empty((len(budgets), len(WAYS), thresholds.size, replications))
    rng = np.random.default_rng(seed)
    for r in range(replications):
        score = draw(rng)
        for i, budget in enumerate(budgets):
            for j, way in enumerate(WAYS):
                first, second = chosen(way, size, budget, rng, (design[budget].first, design[budget].second))
                values = score(first, second)
                found[i, j, :, r] = [(values >= t).mean() for t in thresholds]
    rows = []
    for i, budget in enumerate(budgets):
        for k, rate in enumerate(RATES):
            var = {way: found[i, j, k].var(ddof=1) for j, way in enumerate(WAYS)}
            row: dict[str, Any] = {"data": name, "identities": size, "instances": M, "budget": budget, "far": rate}
            row |= {f"variance_{way}": f"{var[way]:.4g}" for way in WAYS}
            row |= {f"ratio_to_{way}": round(var["protocol"] / var[way], 3) for way in WAYS[1:]}
            row["monte_carlo_error_of_ratio_to_random"] = round(
                _ratio_error(found[i, 0, k], found[i, 1, k]) * var["protocol"] / var["random"], 3
            )
            rows.append(row)
    return rows


def _ratio_error(a: Array, b: Array) -> float:
    """Relative standard error of the ratio of two variances, from the fourth moments."""
    parts = []
    for x in (a, b):
        d = (x - x.mean()) ** 2
        parts.append(d.var() / d.mean() ** 2 / x.size)
    return float(np.sqrt(sum(parts)))


def coverage(replications: int, seed: int) -> list[dict[str, Any]]:
    """Coverage of Wilson's interval on protocol data: G = 200, budget 2,000, level 0.95, through the public calls."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
    size, budget = 200, 2000
    identity = np.repeat(np.arange(size), M)
    thresholds = synthetic_thresholds(np.random.default_rng(seed + 1))
    protocol = design_protocol(identity, budget=budget)
    hits, widths = np.zeros(len(RATES)), np.zeros(len(RATES))
    for _ in range(replications):
        data = score_protocol(protocol, mb.Embeddings(synthetic(size, rng), identity))
        for k, rates in enumerate(mb.evaluate(data, list(thresholds))):
            low, high = rates.far.interval("wilson")
            hits[k] += low <= RATES[k] <= high
            widths[k] += high - low
    cover = hits / replications
    return [
        {
            "data": "synthetic",
            "identities": size,
            "instances": M,
            "budget": budget,
            "far": rate,
            "level": 0.95,
            "coverage": round(float(cover[k]), 4),
            "monte_carlo_error": round(float(np.sqrt(cover[k] * (1 - cover[k]) / replications)), 4),
            "mean_width": f"{widths[k] / replications:.4g}",
        }
        for k, rate in enumerate(RATES)
    ]


def bootstraps(replications: int, seed: int) -> list[dict[str, Any]]:
    """What variance each method gives FAR on protocol data, over the true one: G = 200, the model of the paper."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3,)))
    size = 200
    identity = np.repeat(np.arange(size), M)
    thresholds = synthetic_thresholds(np.random.default_rng(seed + 1))
    kinds = ("plug-in", "vertex", "double-or-nothing")
    rows = []
    for budget in (size // 2, size, 2 * size, 10 * size):
        protocol = design_protocol(identity, budget=budget)
        given, seen = np.zeros((len(kinds), len(RATES))), np.zeros((len(RATES), replications))
        for r in range(replications):
            data = score_protocol(protocol, mb.Embeddings(synthetic(size, rng), identity))
            for k, rates in enumerate(mb.evaluate(data, list(thresholds))):
                seen[k, r] = rates.far.estimate
                given[0, k] += rates.far.variance
                for j, kind in enumerate(kinds[1:], start=1):
                    given[j, k] += rates.far.bootstrap(kind, n_resamples=200, rng=r).variance
        for k, rate in enumerate(RATES):
            true = seen[k].var(ddof=1)
            row: dict[str, Any] = {"identities": size, "instances": M, "budget": budget, "far": rate}
            row |= {"variance": f"{true:.4g}"}
            row |= {
                f"{kind} / true": round(float(given[j, k] / replications / true), 3) for j, kind in enumerate(kinds)
            }
            row["monte_carlo_error"] = round(float(np.sqrt(_kurtosis(seen[k]) / replications)), 3)
            rows.append(row)
    return rows


def _kurtosis(x: Array) -> float:
    """Relative variance of a variance estimate, per replication."""
    d = (x - x.mean()) ** 2
    return float(d.var() / d.mean() ** 2)


def synthetic_thresholds(rng: np.random.Generator) -> Array:
    """Where the model has the rates, from eight million comparisons of fresh people."""
    parts = []
    for _ in range(80):
        x = synthetic(1000, rng).reshape(1000, M, -1)
        for shift in range(1, 21):
            for m in range(M):
                parts.append(np.einsum("id,id->i", x[:, m], np.roll(x[:, (m + shift) % M], shift, axis=0)))
    return np.asarray(np.quantile(np.concatenate(parts), 1.0 - np.array(RATES)))


def write(path: Path, rows: list[dict[str, Any]], command: str) -> None:
    """A table with the command that made it."""
    lines = [f"# {command}", ",".join(rows[0]), *(",".join(str(v) for v in row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def draw_synthetic(size: int) -> Callable[[np.random.Generator], Callable[[Array, Array], Array]]:
    def draw(rng: np.random.Generator) -> Callable[[Array, Array], Array]:
        x = synthetic(size, rng)
        return lambda first, second: np.einsum("id,id->i", x[first], x[second])

    return draw


def draw_people(scores: Array, size: int) -> Callable[[np.random.Generator], Callable[[Array, Array], Array]]:
    def draw(rng: np.random.Generator) -> Callable[[Array, Array], Array]:
        people = rng.choice(scores.shape[0] // M, size, replace=False)
        rows = (people[:, None] * M + rng.permuted(np.tile(np.arange(M), (size, 1)), axis=1)).reshape(-1)
        return lambda first, second: scores[rows[first], rows[second]]

    return draw


def protocol_figure(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Variance of FAR under the protocol over that of other ways to spend a budget.

    The rows are those of docs/studies/protocol_pays.csv; the second largest FAR is drawn.
    """
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(str(row["data"]) for row in rows))
    figure = Figure(figsize=(3.4 * len(names), 3.4), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(names), sharey=True))
    styles = {"random": ("o", "#1b4965"), "blocks": ("s", "#ca6702"), "people": ("^", "#9b2226")}
    rate = sorted({float(row["far"]) for row in rows})[-2:][0]
    for ax, name in zip(panels, names, strict=True):
        mine = [row for row in rows if row["data"] == name and float(row["far"]) == rate]
        budgets = [int(row["budget"]) / int(row["identities"]) for row in mine]
        for way, (marker, colour) in styles.items():
            ax.plot(budgets, [float(row[f"ratio_to_{way}"]) for row in mine], marker=marker, color=colour, label=way)
        ax.axhline(1.0, color="#888888", linewidth=0.8, linestyle="--")
        ax.set_xscale("log")
        ax.set_xticks(budgets, [f"{b:g}" for b in budgets])
        ax.minorticks_off()
        ax.set_title(f"{name}, FAR {rate:g}", fontsize=10)
        ax.set_xlabel("comparisons per person")
    panels[0].set_ylim(0.0, 1.15)
    panels[0].set_ylabel("variance under the protocol ÷ other")
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--output", type=Path, default=Path("docs/studies"))
    options = parser.parse_args()
    warnings.simplefilter("ignore", mb.MatchboundWarning)
    n, seed = options.replications, options.seed
    command = f"python studies/protocol_pays.py --replications {n} --seed {seed}"
    rows = variances(
        draw_synthetic(200), synthetic_thresholds(np.random.default_rng(seed + 1)), 200, n, seed, "synthetic"
    )
    sys.stderr.write("synthetic done\n")
    sets = (("face_lfw_dlib.npz", "faces", True, 100), ("char_omniglot_eval_cnn.npz", "drawings", False, 100))
    for file, name, distance, size in sets if options.data else ():
        scores = population(options.data / file, distance)
        people = np.arange(scores.shape[0]) // M
        thresholds = np.quantile(scores[people[:, None] != people], 1.0 - np.array(RATES))
        rows += variances(draw_people(scores, size), thresholds, size, n, seed, name)
        sys.stderr.write(f"{name} done\n")
    write(options.output / "protocol_pays.csv", rows, command + (" --data DIRECTORY" if options.data else ""))

    protocol_figure(rows).savefig(options.output / "protocol_pays.svg", metadata={"Date": None})
    write(options.output / "protocol_coverage.csv", coverage(n // 2, seed), command)
    write(options.output / "protocol_bootstraps.csv", bootstraps(n // 4, seed), command)


if __name__ == "__main__":
    main()
