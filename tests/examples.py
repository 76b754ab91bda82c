"""The files that the documentation's examples read, made from a seed."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

import matchbound as mb


def make_examples(folder: Path) -> None:
    """scores.csv (a matcher's score table with groups) and faces.npz (embeddings)."""
    faces = mb.demo_data()
    assert faces.group is not None
    assert faces.instance is not None
    identity = faces.identities[faces.codes]
    group = faces.group[faces.codes]
    np.savez(folder / "faces.npz", embeddings=faces.vectors, identity=identity, group=group, instance=faces.instance)
    some = mb.demo_data(n_identities=60, seed=3)
    assert some.instance is not None
    first, second = np.triu_indices(len(some), 1)
    scores = some.score_pairs(first, second)
    names = some.identities[some.codes]
    with open(folder / "scores.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id_a", "instance_a", "id_b", "instance_b", "score"])
        for i, j, score in zip(first, second, scores, strict=True):
            writer.writerow([names[i], some.instance[i], names[j], some.instance[j], f"{score:.6f}"])
