"""Coverage of differences of two systems on real embeddings: people drawn from a large set that stands for everybody.

Run as ``python studies/compare_real.py FILE.npz … --replications 200 --seed 3 --output FILE``. System A compares whole
embeddings, system B half of their coordinates, at a threshold where its rate is twice (``differ``) or as large as
(``equal``) A's rate in the whole set. 50 people are drawn, at most ten instances each.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from compare_shared import Row, run_on_files, share_of
from numpy.typing import NDArray

import matchbound as mb
from matchbound.calls.comparison import Where, compare_points

CELLS = (("far", 1e-3), ("far", 1e-2), ("far", 1e-1), ("frr", 1e-2), ("frr", 1e-1))
METHODS = ("auto", "dyadic", "latent")
PEOPLE, MOST = 50, 10
FloatArray = NDArray[np.float64]


def population(path: Path, seed: int) -> tuple[list[FloatArray], NDArray[np.int64]]:
    """Vectors of both systems, of length 1 except for faces, and identities with two instances or more."""
    archive = np.load(path, allow_pickle=False)
    vectors = archive["embeddings"].astype(np.float64)
    _, owner = np.unique(archive["identity"], return_inverse=True)
    order = np.random.default_rng(seed).permutation(owner.size)
    place = np.empty(owner.size, dtype=np.int64)
    for identity in np.unique(owner):
        mine = order[owner[order] == identity]
        place[mine] = np.arange(mine.size)
    kept = np.flatnonzero((place < MOST) & (np.bincount(owner)[owner] > 1))
    vectors, owner = vectors[kept], owner[kept]
    views = [vectors, vectors[:, : vectors.shape[1] // 2]]
    if not path.name.startswith("face"):
        views = [view / np.linalg.norm(view, axis=1, keepdims=True) for view in views]
    return views, owner


def distances(view: FloatArray, rows: slice | NDArray[np.int64] = slice(None)) -> FloatArray:
    squares = np.einsum("ij,ij->i", view, view)
    part = view[rows]
    product = np.einsum("ij,ij->i", part, part)[:, None] + squares[None, :] - 2.0 * part @ view.T
    result: FloatArray = np.sqrt(np.maximum(product, 0.0))
    return result


def scored(views: list[FloatArray], owner: NDArray[np.int64], rows: NDArray[np.int64]) -> list[mb.Comparisons]:
    """All pairs of some instances, as each system scores them."""
    first, second = np.triu_indices(rows.size, k=1)
    who = owner[rows]
    return [
        mb.Comparisons(who[first], who[second], distances(view[rows])[first, second], distance=True) for view in views
    ]


def all_scores(view: FloatArray, owner: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """Sorted impostor and genuine distances of everybody."""
    strangers, kin = [], []
    for start in range(0, owner.size, 500):
        rows = slice(start, min(start + 500, owner.size))
        d = distances(view, rows)
        later = np.arange(rows.start, rows.stop)[:, None] < np.arange(owner.size)[None, :]
        same = owner[rows][:, None] == owner[None, :]
        strangers.append(d[later & ~same].astype(np.float32))
        kin.append(d[later & same])
    return np.sort(np.concatenate(strangers)).astype(np.float64), np.sort(np.concatenate(kin))


def study(path: Path, replications: int, seed: int) -> list[Row]:
    views, owner = population(path, seed)
    scores = [all_scores(view, owner) for view in views]
    people = np.unique(owner)
    settings = []
    for name, times in (("differ", 2.0), ("equal", 1.0)):
        for metric, rate in CELLS:
            grid, truth = [], []
            for (strangers, kin), wanted in zip(scores, (rate, times * rate), strict=True):
                values, share = (strangers, wanted) if metric == "far" else (kin, 1.0 - wanted)
                threshold = float(np.quantile(values, share))
                below = float(np.searchsorted(values, threshold, side="right")) / values.size
                grid.append(threshold)
                truth.append(below if metric == "far" else 1.0 - below)
            settings.append((name, metric, rate, grid, truth[0] - truth[1]))
    del scores
    kept: dict[tuple[str, str, float, str], list[tuple[bool, float]]] = {}
    for replication in range(replications):
        rng = np.random.default_rng([seed, replication])
        chosen = rng.choice(people, PEOPLE, replace=False)
        rows = np.flatnonzero(np.isin(owner, chosen))
        pair = scored(views, owner, rows)
        tables = compare_points(pair, [Where(tuple(grid)) for _, _, _, grid, _ in settings])
        for (name, metric, rate, _, true), table in zip(settings, tables, strict=True):
            difference = getattr(table.comparisons["1", "2"], metric)
            for method in METHODS:
                interval = difference.interval(method)
                kept.setdefault((name, metric, rate, method), []).append((true in interval, interval.width))
    made = []
    for (name, metric, rate, method), each in kept.items():
        covered, width = (np.array(column, dtype=float) for column in zip(*each, strict=True))
        made.append(
            {
                "data": path.stem,
                "systems": name,
                "metric": metric,
                "rate": rate,
                "method": method,
                **share_of(covered, "coverage"),
                "width_to_rate": width.mean() / rate,
                "replications": covered.size,
            }
        )
    return made


if __name__ == "__main__":
    run_on_files("compare_real.py", study, __doc__)
