"""Family-wise errors of five equal systems on unbalanced faces, by ways of drawing signs.

    python studies/compare_systems_faces.py --data FOLDER --half b --replications 1500 --seed 2 --out FILE

Five systems that see three quarters of the coordinates each, at thresholds at which each of them has the target FAR in
one half of the people (those with two images or more, at most ten each). A replication draws 50 people of that half;
``rejected`` is how often the p-value of the largest of ten differences is at most 5%. Methods: "max-t" (the library's:
the sign of a pair of people is that of ξ_i + ξ_j), "weighted signs" (of w_i·ξ_i + w_j·ξ_j, w_i² the squared differences
that a person takes part in, so that pairs follow the person who carries more), "normal" (normal draws).
"""

from __future__ import annotations

import argparse
import csv
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from default_coverage import FILES, MOST
from numpy.typing import NDArray

from matchbound.stats.dyadic import bias_factor
from matchbound.stats.families import Largest, SignTerms, gaussian_largest

Array = NDArray[Any]
RATES, PEOPLE, SYSTEMS, DRAWS = (1e-3, 1e-2), 50, 5, 300
METHODS = ("max-t", "weighted signs", "normal")


def distances(rows: Array) -> Array:
    squares = np.einsum("ij,ij->i", rows, rows)
    return np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * rows @ rows.T, 0.0))


def halves(folder: Path, half: str) -> tuple[Array, list[Array]]:
    """Vectors, and the rows of each person of one half."""
    stored = np.load(folder / FILES["faces"], allow_pickle=False)
    _, codes = np.unique(stored["identity"], return_inverse=True)
    people = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    rng = np.random.default_rng(123)
    people = [rng.permutation(rows)[:MOST] for rows in people if rows.size >= 2]
    order = rng.permutation(len(people))
    chosen = order[: order.size // 2] if half == "a" else order[order.size // 2 :]
    return stored["embeddings"].astype(np.float64), [people[i] for i in chosen]


def terms_of(errors: list[Array], m: Array) -> SignTerms | None:
    """What the signs are given to, from n_ij of each system and m_ij, shape (G, G)."""
    first, second = np.triu_indices(m.shape[0], 1)
    d = np.array([(a - b)[first, second] for a, b in combinations(errors, 2)])
    kept = np.flatnonzero((d != 0.0).any(axis=0))
    if not kept.size:
        return None
    first, second, each = first[kept], second[kept], m.sum(axis=1)
    _, renamed = np.unique(np.concatenate([first, second]), return_inverse=True)
    return SignTerms(
        renamed[: kept.size],
        renamed[kept.size :],
        d[:, kept],
        m[first, second],
        each[first] + each[second],
        float(each.sum()) / 2.0,
        float(each @ each),
        float((m * m).sum()) / 2.0,
    )


def signs(terms: SignTerms, method: str, rng: np.random.Generator) -> Array:
    people = int(max(terms.first.max(), terms.second.max())) + 1
    xi = rng.standard_normal((DRAWS, people))
    if method == "weighted signs":
        squares = (terms.d**2).sum(axis=0)
        xi *= np.sqrt(np.bincount(terms.first, squares, people) + np.bincount(terms.second, squares, people))
    return np.where(xi[:, terms.first] + xi[:, terms.second] < 0.0, -1.0, 1.0)


def influence(errors: list[Array], m: Array) -> Array:
    each, total = m.sum(axis=1), m.sum()
    d = np.array([(a - b).sum(axis=1) for a, b in combinations(errors, 2)])
    result: Array = d - d.sum(axis=1, keepdims=True) / total * each
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--half", choices=("a", "b"), default="b")
    parser.add_argument("--replications", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    vectors, people = halves(given.data, given.half)
    rng = np.random.default_rng(3)
    views = [vectors[:, rng.permutation(vectors.shape[1])[: 3 * vectors.shape[1] // 4]] for _ in range(SYSTEMS)]
    rows, owner = np.concatenate(people), np.repeat(np.arange(len(people)), [p.size for p in people])
    apart = np.triu(owner[:, None] != owner[None, :], 1)
    thresholds = []
    for view in views:
        every = distances(view[rows]).astype(np.float32)[apart]
        thresholds.append([float(np.partition(every, int(r * every.size))[int(r * every.size)]) for r in RATES])
    hits: dict[tuple[float, str], int] = {(rate, method): 0 for rate in RATES for method in METHODS}
    for number in range(given.replications):
        rng = np.random.default_rng([given.seed, number])
        chosen = [people[i] for i in rng.choice(len(people), PEOPLE, replace=False)]
        sizes = np.array([p.size for p in chosen])
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        m = np.outer(sizes, sizes).astype(np.float64)
        np.fill_diagonal(m, 0.0)
        effective = float(sizes.sum() ** 2 / (sizes @ sizes))
        factor, freedom = bias_factor("far", effective), effective - 1.0
        between = [distances(view[np.concatenate(chosen)]) for view in views]
        for k, rate in enumerate(RATES):
            match = [(d <= t[k]).astype(np.float64) for d, t in zip(between, thresholds, strict=True)]
            errors = [np.add.reduceat(np.add.reduceat(one, starts, axis=0), starts, axis=1) for one in match]
            for one in errors:
                np.fill_diagonal(one, 0.0)
            terms = terms_of(errors, m)
            if terms is None:
                continue
            top = terms.largest(np.ones((1, terms.m.size)), factor, freedom)
            for method in METHODS:
                if method == "normal":
                    null = gaussian_largest(influence(errors, m), n_resamples=2000)
                else:
                    drawn = signs(terms, method, np.random.default_rng([given.seed, number, k]))
                    null = Largest.of(terms.largest(drawn, factor, freedom))
                hits[rate, method] += bool(null.p_values(top)[0] <= 0.05)
    with given.out.open("w", encoding="utf-8", newline="") as stream:
        command = f"--data FOLDER --half {given.half} --replications {given.replications} --seed {given.seed}"
        stream.write(f"# python studies/compare_systems_faces.py {command}\n")
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("data", "metric", "rate", "method", "rejected", "monte_carlo_error", "replications"))
        for (rate, method), count in hits.items():
            share = count / given.replications
            error = (share * (1.0 - share) / given.replications) ** 0.5
            row = (f"{share:.4f}", f"{error:.4f}", given.replications)
            writer.writerow((f"faces-{given.half}", "far", rate, method, *row))


if __name__ == "__main__":
    main()
