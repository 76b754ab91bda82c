"""Does a plan keep its promise? Twenty plans, and data simulated at the size that each of them asks for.

    python studies/plan_check.py --replications 400 --seed 1 --output docs/studies/plan_check.csv

A plan promises that with probability 0.95 the interval will be narrow enough (or the bound low enough). Every
replication simulates all comparisons of the planned people, tallies them and asks `matchbound` for its
interval. Sixteen settings draw errors from the latent Gaussian model with which the plan was made; four are
planned from a pilot of another model, embeddings β_i + noise (Fogliato, Patil & Perona 2024, §6.1), and
checked on fresh data of that model.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

import matchbound as mb
from matchbound.counts.tally import GenuineTally, ImpostorTally, Tally
from matchbound.planning.latent_model import UNKNOWN, Dependence
from matchbound.planning.plan import Plan, plan
from matchbound.results.error_rates import error_rates
from matchbound.results.rates import Rate

WEAK = Dependence(0.03, 0.12, 0.30)
MIDDLE = Dependence(0.06, 0.60, 0.35)
PILOTS, PILOT_SIZE = 20, 150


@dataclass(frozen=True)
class Setting:
    """One plan: what it is asked for, and the model that makes the data."""

    name: str
    asked: dict[str, Any]
    dependence: Dependence | None  # None: the embedding model, planned from a pilot


SETTINGS = (
    Setting("unknown", {"far": 1e-1, "width": 0.06, "instances": 2}, UNKNOWN),
    Setting("unknown", {"far": 1e-2, "width": 0.01, "instances": 2}, UNKNOWN),
    Setting("unknown", {"far": 1e-2, "upper": 0.02, "instances": 5}, UNKNOWN),
    Setting("unknown", {"far": 1e-3, "upper": 0.002, "instances": 2}, UNKNOWN),
    Setting("unknown", {"far": 1e-3, "width": 0.002, "instances": 1}, UNKNOWN),
    Setting("unknown", {"far": 1e-4, "upper": 0.0003, "instances": 2}, UNKNOWN),
    Setting("middle", {"far": 1e-2, "width": 0.008, "instances": 3}, MIDDLE),
    Setting("middle", {"far": 1e-3, "upper": 0.002, "instances": 5}, MIDDLE),
    Setting("middle", {"far": 1e-1, "upper": 0.12, "instances": 2}, MIDDLE),
    Setting("weak", {"far": 1e-2, "width": 0.004, "instances": 5}, WEAK),
    Setting("weak", {"far": 1e-3, "upper": 0.0015, "instances": 2}, WEAK),
    Setting("weak", {"far": 1e-3, "width": 0.001, "instances": 1}, WEAK),
    Setting("unknown", {"frr": 0.02, "width": 0.02, "instances": 5}, UNKNOWN),
    Setting("unknown", {"frr": 0.01, "upper": 0.03, "instances": 3}, UNKNOWN),
    Setting("middle", {"frr": 0.10, "width": 0.05, "instances": 10}, MIDDLE),
    Setting("weak", {"frr": 0.05, "upper": 0.07, "instances": 5}, WEAK),
    Setting("pilot", {"far": 1e-2, "width": 0.004, "instances": 5}, None),
    Setting("pilot", {"far": 1e-3, "upper": 0.0015, "instances": 5}, None),
    Setting("pilot", {"far": 1e-1, "width": 0.03, "instances": 3}, None),
    Setting("pilot", {"frr": 0.10, "width": 0.05, "instances": 5}, None),
)


def latent_rate(setting: Setting, made: Plan, rng: np.random.Generator) -> Rate:
    """One data set of the latent Gaussian model, as the rate that `evaluate` would give."""
    assert setting.dependence is not None
    size, m = made.n_identities, made.instances
    known = setting.dependence.at(m)
    if made.target.metric == "frr":
        g = m * (m - 1) // 2
        own = np.sqrt(known.genuine) * rng.standard_normal(size) + ndtri(made.target.rate)
        errors = rng.binomial(g, ndtr(own / np.sqrt(1.0 - known.genuine)))
        return rate_of("frr", np.full(size, g), errors, None)
    first, second = np.triu_indices(size, k=1)
    effect = rng.standard_normal(size)
    score = np.sqrt(known.shared) * (effect[first] + effect[second]) + ndtri(made.target.rate)
    score += np.sqrt(known.same - 2.0 * known.shared) * rng.standard_normal(first.size)
    errors = rng.binomial(m * m, ndtr(score / np.sqrt(1.0 - known.same)))
    table = np.zeros((size, size), dtype=np.int64)
    table[first, second] = errors
    return rate_of("far", np.full(size, m * m * (size - 1)), None, table + table.T, m)


def rate_of(metric: str, comparisons: Any, genuine_errors: Any, table: Any, instances: int = 1) -> Rate:
    """A rate from errors of identities (FRR) or of identity pairs (FAR, symmetric table)."""
    size = comparisons.size
    none = np.zeros(size, dtype=np.int64)
    m = instances * instances
    if metric == "frr":
        genuine = GenuineTally(comparisons.astype(np.int64), genuine_errors[None, :].astype(np.int64))
        impostor = ImpostorTally(none, none[None, :], 0, np.zeros(1, np.int64), np.zeros(1, np.int64))
    else:
        genuine = GenuineTally(none, none[None, :])
        impostor = ImpostorTally(
            comparisons.astype(np.int64),
            table.sum(axis=1)[None, :],
            m * m * size * (size - 1),
            np.array([m * int(table.sum())]),
            np.array([int((table * table).sum())]),
        )
    tally = Tally(np.arange(size), np.zeros(1), False, genuine, impostor)
    rates = error_rates(tally)[0]
    return rates.far if metric == "far" else rates.frr


def embeddings(size: int, instances: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """The paper's model: β ~ Exponential(1) in 128 dimensions, noise N(0, 5), rows of length 1; shape (G, M, 128)."""
    x = rng.exponential(1.0, (size, 1, 128)) + rng.normal(0.0, np.sqrt(5.0), (size, instances, 128))
    return x / np.linalg.norm(x, axis=2, keepdims=True)


def true_threshold(metric: str, rate: float, rng: np.random.Generator) -> float:
    """The threshold at which the model has this rate, from four million independent-ish comparisons."""
    scores = []
    for _ in range(200):
        x = embeddings(2000, 2, rng)
        if metric == "frr":
            scores.append(np.einsum("id,id->i", x[:, 0], x[:, 1]))
        else:
            for shift in range(1, 11):
                scores.append(np.einsum("id,id->i", x[:, 0], np.roll(x[:, 1], shift, axis=0)))
    return float(np.quantile(np.concatenate(scores), rate if metric == "frr" else 1.0 - rate))


def embedding_rate(made: Plan, threshold: float, rng: np.random.Generator) -> Rate:
    """One data set of the embedding model, as the rate that `evaluate` would give."""
    size, m = made.n_identities, made.instances
    x = embeddings(size, m, rng).astype(np.float32)
    if made.target.metric == "frr":
        inner = np.einsum("ikd,ild->ikl", x, x)
        first, second = np.triu_indices(m, k=1)
        errors = (inner[:, first, second] < threshold).sum(axis=1)
        return rate_of("frr", np.full(size, first.size), errors, None)
    flat = x.reshape(size * m, -1)
    match = (flat @ flat.T >= threshold).reshape(size, m, size, m).sum(axis=(1, 3))
    np.fill_diagonal(match, 0)
    return rate_of("far", np.full(size, m * m * (size - 1)), None, match, m)


def kept(made: Plan, rate: Rate) -> bool:
    """Whether the interval keeps the promise."""
    if made.target.goal == "width":
        return rate.interval(level=made.target.level).width <= made.target.value
    return rate.upper_bound(level=made.target.level) <= made.target.value


def check(number: int, setting: Setting, replications: int, seed: int) -> dict[str, Any]:
    """Plan, simulate and count; the settings with a pilot take a fresh one every so often."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    hits, sizes = 0, []
    if setting.dependence is not None:
        made = plan(**setting.asked, dependence=setting.dependence)
        sizes.append(made.n_identities)
        hits = sum(kept(made, latent_rate(setting, made, rng)) for _ in range(replications))
    else:
        metric = "far" if "far" in setting.asked else "frr"
        threshold = true_threshold(metric, setting.asked[metric], rng)
        for share in np.array_split(np.arange(replications), PILOTS):
            pilot = embeddings(PILOT_SIZE, 5, rng).reshape(-1, 128)
            known = mb.Embeddings(pilot, np.repeat(np.arange(PILOT_SIZE), 5))
            made = plan(**setting.asked, dependence=known)
            sizes.append(made.n_identities)
            hits += sum(kept(made, embedding_rate(made, threshold, rng)) for _ in share)
    met = hits / replications
    return {
        "setting": number + 1,
        "dependence": setting.name,
        "metric": made.target.metric,
        "rate": made.target.rate,
        "goal": made.target.goal,
        "value": made.target.value,
        "instances": made.instances,
        "identities": round(float(np.mean(sizes))),
        "promised": made.target.power,
        "met": round(met, 4),
        "monte_carlo_error": round(float(np.sqrt(max(met * (1 - met), 1 / replications) / replications)), 4),
    }


def main() -> None:
    """Run all settings and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of settings")
    parser.add_argument("--output", type=Path, default=Path("docs/studies/plan_check.csv"))
    options = parser.parse_args()
    warnings.simplefilter("ignore", mb.MatchboundWarning)
    rows = []
    for number, setting in enumerate(SETTINGS):
        if options.only and number + 1 not in options.only:
            continue
        rows.append(check(number, setting, options.replications, options.seed))
        sys.stderr.write(f"{rows[-1]}\n")
    average = float(np.mean([row["met"] for row in rows]))
    lines = [
        f"# python studies/plan_check.py --replications {options.replications} --seed {options.seed}",
        f"# mean of met over {len(rows)} settings: {average:.4f}",
        ",".join(rows[0]),
        *(",".join(str(value) for value in row.values()) for row in rows),
    ]
    options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.stderr.write(lines[1] + "\n")


if __name__ == "__main__":
    main()
