"""Family-wise errors on real embeddings: people drawn from a large set, dealt to groups or met by several systems.

Run as ``python studies/compare_families_real.py FILE.npz … --replications 400 --seed 3 --output FILE``.

- ``groups``: 200 people in eight groups at random, which are therefore equal; how often any of 28 p-values is at most
  5%.
- ``systems``: five systems that see three quarters of the coordinates each, at thresholds where their rates in the
  whole set are equal; 50 people; how often any of ten p-values is at most 5%.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from compare_real import CELLS, all_scores, population, scored
from compare_shared import FloatArray, Row, run_on_files, share_of
from numpy.typing import NDArray

import matchbound as mb
from matchbound.calls.comparison import Where, compare_points
from matchbound.calls.groups import by_group

GROUPS, MEMBERS, SYSTEMS, PEOPLE = 8, 25, 5, 50
DRAWS = 1000


def thresholds_of(view: FloatArray, owner: NDArray[np.int64]) -> list[float]:
    """Where the whole set has the rate of each cell."""
    strangers, kin = all_scores(view, owner)
    return [float(np.quantile(strangers, r) if m == "far" else np.quantile(kin, 1.0 - r)) for m, r in CELLS]


def groups(view: FloatArray, owner: NDArray[np.int64], replications: int, seed: int) -> list[list[bool]]:
    """For each replication and cell: whether any gap between equal groups is found."""
    grid = thresholds_of(view, owner)
    found = []
    for replication in range(replications):
        chosen = np.random.default_rng([seed, replication]).permutation(np.unique(owner))[: GROUPS * MEMBERS]
        group = {int(person): f"g{place % GROUPS}" for place, person in enumerate(chosen)}
        rows = np.flatnonzero(np.isin(owner, chosen))
        data = mb.Embeddings(view[rows], owner[rows], "euclidean", group=[group[int(who)] for who in owner[rows]])
        hits = []
        for (metric, _), threshold in zip(CELLS, grid, strict=True):
            made = by_group(data, threshold, workers=1).gaps(metric, n_resamples=DRAWS)  # type: ignore[arg-type]
            hits.append(min(row.p_value for row in made) <= 0.05)
        found.append(hits)
    return found


def systems(views: list[FloatArray], owner: NDArray[np.int64], replications: int, seed: int) -> list[list[bool]]:
    """For each replication and cell: whether any difference of equal systems is found."""
    grids = [thresholds_of(view, owner) for view in views]
    found = []
    for replication in range(replications):
        chosen = np.random.default_rng([seed, replication]).permutation(np.unique(owner))[:PEOPLE]
        rows = np.flatnonzero(np.isin(owner, chosen))
        data = scored(views, owner, rows)
        tables = compare_points(data, [Where(at) for at in zip(*grids, strict=True)])
        hits = []
        for table, (metric, _) in zip(tables, CELLS, strict=True):
            rows_made = table.differences(metric, method="dyadic", n_resamples=DRAWS)
            hits.append(min(row.p_value for row in rows_made) <= 0.05)
        found.append(hits)
    return found


def study(path: Path, replications: int, seed: int) -> list[Row]:
    (whole, _), owner = population(path, seed)
    rng = np.random.default_rng(seed)
    width = whole.shape[1]
    views = [whole[:, rng.permutation(width)[: 3 * width // 4]] for _ in range(SYSTEMS)]
    if not path.name.startswith("face"):
        views = [view / np.linalg.norm(view, axis=1, keepdims=True) for view in views]
    made: list[Row] = []
    for name, found in (
        ("groups", groups(whole, owner, replications, seed)),
        ("systems", systems(views, owner, replications, seed)),
    ):
        for (metric, rate), hits in zip(CELLS, zip(*found, strict=True), strict=True):
            what: Row = {"data": path.stem, "study": name, "metric": metric, "rate": rate, "method": "max-t"}
            made.append({**what, **share_of(hits, "rejected"), "replications": replications})
    return made


if __name__ == "__main__":
    run_on_files("compare_families_real.py", study, __doc__)
