"""Latent correlations as functions of the false accept rate, in whole populations: a table and a figure.

    python studies/latent_curves.py --out docs/studies/latent-curves.csv --figure docs/images/latent-curves.svg

Real sets as in latent_coverage.py (at most 500 people and ten instances of each), and the paper's model.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
from latent_coverage import MOST, SETS, Model, Population, impostor_tally, pair_errors, similarity

from matchbound.stats.latent.fit import correlations, impostor_design, impostor_products

RATES = np.geomspace(1e-4, 0.5, 25)
NAMES = {
    "paper": "the paper's model",
    "wolves": "wolves (made up)",
    "faces-a": "faces, half A",
    "faces-b": "faces, half B",
    "drawings": "drawings",
    "texts": "texts",
    "voices-etri": "voices, read",
    "voices-digits": "voices, digits",
}


def curve(name: str, folder: Path, seed: int) -> list[dict[str, Any]]:
    """ρ_s and ρ_w at each rate."""
    rng = np.random.default_rng(seed)
    if name in SETS:
        source = Population(name, folder)
        people = [source.people[i] for i in rng.permutation(len(source.people))[:500]]
        rows = [r if r.size <= MOST else rng.choice(r, MOST, replace=False) for r in people]
        sizes = np.array([r.size for r in rows])
        sample = source.vectors[np.concatenate(rows)]
        scores = similarity(sample, sample, source.distance)
    else:
        model = Model.__new__(Model)
        model.name = name
        scores, sizes = model.draw(500, rng)
    owner = np.repeat(np.arange(sizes.size), sizes)
    first, second = np.triu_indices(owner.size, 1)
    different = owner[first] != owner[second]
    first, second = first[different], second[different]
    values = scores[first, second]
    index = np.zeros((sizes.size, sizes.size), np.int64)
    index[np.triu_indices(sizes.size, 1)] = np.arange(sizes.size * (sizes.size - 1) // 2)
    ranked = np.sort(values)[::-1]
    thresholds = np.unique(ranked[np.rint(RATES * values.size).astype(np.int64) - 1])
    n = pair_errors(index[owner[first], owner[second]], values, sizes.size * (sizes.size - 1) // 2, thresholds)
    tally = impostor_tally(n, sizes, thresholds, keep=False).impostor
    products = impostor_products(tally)
    found = correlations(impostor_design(tally), products)
    return [
        {"data": name, "rate": f"{p:.6g}", "rho_identity": f"{s:.4f}", "rho_pair": f"{w:.4f}"}
        for p, s, w in zip(products.rate, found.identity, found.pair, strict=True)
    ]


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Two panels: ρ_s and ρ_w over the rate."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "matchbound", "font.size": 11})
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    axes = figure.subplots(1, 2)
    for axis, key, title in zip(
        axes,
        ("rho_identity", "rho_pair"),
        (r"$\rho_s$: one identity in common", r"$\rho_w$: the same identity pair"),
        strict=True,
    ):
        for name, label in NAMES.items():
            part = sorted((float(r["rate"]), float(r[key])) for r in rows if r["data"] == name)
            made_up = name not in SETS
            axis.plot(*zip(*part, strict=True), label=label, ls="--" if made_up else "-", lw=1.8)
        axis.set_xscale("log")
        axis.set_xlabel("false accept rate")
        axis.set_title(title)
        axis.grid(alpha=0.3)
        axis.set_ylim(bottom=0.0)
    axes[0].set_ylabel("latent correlation")
    axes[0].legend(fontsize=9, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--figure", type=Path, required=True)
    given = parser.parse_args()
    rows = [row for name in NAMES for row in curve(name, given.data, given.seed)]
    with given.out.open("w", encoding="utf-8", newline="") as stream:
        stream.write(f"# python studies/latent_curves.py --seed {given.seed}\n")
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    draw(rows, given.figure)


if __name__ == "__main__":
    main()
