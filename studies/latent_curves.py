"""Latent correlations as functions of the false accept rate, in whole populations: the picture of the default interval.

    python studies/latent_curves.py --data FOLDER --out latent-curves.csv --figure latent-curves.svg

500 people of each real set (or all of them), ten images at most; 500 people of made-up sets (default_coverage.py).
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from default_coverage import FILES, Half, Model

import matchbound as mb
from matchbound.stats.latent.fit import correlations_at, design_of, products_of

RATES = np.geomspace(1e-4, 0.5, 40)
MADE_UP = ("paper", "wolves", "hubs")
FIELDS = ("data", "rate", "rho_identity", "rho_pair")


def curve(name: str, folder: Path, seed: int) -> list[dict[str, str]]:
    """ρ_s and ρ_w at each rate."""
    rng = np.random.default_rng(seed)
    if name in FILES:
        half = Half(name, "whole", folder)
        data = half.draw(min(500, len(half.people)), rng)
    else:
        model = Model.__new__(Model)
        model.name = name
        data = model.draw(500, rng)
    scores = np.sort(data.similarity[~data.genuine])[::-1]
    thresholds = np.unique(scores[np.rint(RATES * scores.size).astype(np.int64) - 1])
    tally = mb.tally(data, -thresholds if data.distance else thresholds, pairs=False).impostor
    products = products_of(tally)
    identity, pair = correlations_at(design_of(tally), products)
    return [
        {"data": name, "rate": f"{p:.6g}", "rho_identity": f"{s:.4f}", "rho_pair": f"{w:.4f}"}
        for p, s, w in zip(products.rate, identity, pair, strict=True)
    ]


def draw(rows: list[dict[str, str]], path: Path) -> None:
    """Both correlations of every set."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for ax, field, title in zip(axes, FIELDS[2:], ("one identity in common", "same identity pair"), strict=True):
        for name in dict.fromkeys(row["data"] for row in rows):
            mine = [row for row in rows if row["data"] == name]
            x, y = ([float(row[key]) for row in mine] for key in ("rate", field))
            ax.plot(x, y, label=name, lw=1.4, ls="--" if name in MADE_UP else "-")
        ax.set_xscale("log")
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("false accept rate", fontsize=8)
        ax.tick_params(labelsize=8)
    axes[0].legend(fontsize=7, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Every set, and the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    rows = [row for name in (*FILES, *MADE_UP) for row in curve(name, given.data, given.seed)]
    with given.out.open("w", newline="") as stream:
        stream.write(f"# python studies/latent_curves.py --seed {given.seed}\n")
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    if given.figure:
        draw(rows, given.figure)


if __name__ == "__main__":
    main()
