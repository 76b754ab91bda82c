"""Coverage and error rates of comparisons between systems and groups, on synthetic systems of equal accuracy.

Run as ``python studies/compare_coverage.py STUDY --replications 1000 --seed 8 --output FILE``, STUDY one of
``paired``, ``points``, ``systems``, ``groups``, ``figure1``. The model is the paper's (§5.1): instance k of
identity i is β_i + ε_ik, β exponential, ε normal with variance 5, scaled to length 1, compared by Euclidean distance. A
system sees 128 of the coordinates; systems that see different ones are equally good, and correlated by the coordinates
that they share.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import matchbound as mb
from matchbound.api_compare import compare, compare_all, compare_thresholds
from matchbound.api_groups import by_group
from matchbound.stats.differences import t_quantile
from matchbound.stats.groups import welch
from matchbound.stats.simultaneous import adjusted_level, max_t

SEEN, INSTANCES = 128, 5
FARS, FRRS = (1e-3, 1e-2, 1e-1), (1e-2, 1e-1)
FloatArray = NDArray[np.float64]


def draw(rng: np.random.Generator, identities: int, offsets: list[int]) -> list[FloatArray]:
    """Vectors of each system, shape (identities·5, 128): the coordinates from its offset on."""
    width = SEEN + max(offsets)
    beta = rng.exponential(size=(identities, width))
    x = np.repeat(beta, INSTANCES, axis=0) + rng.normal(0.0, np.sqrt(5.0), (identities * INSTANCES, width))
    views = [x[:, start : start + SEEN] for start in offsets]
    return [view / np.linalg.norm(view, axis=1, keepdims=True) for view in views]


def systems(rng: np.random.Generator, identities: int, offsets: list[int]) -> list[mb.Comparisons]:
    """All pairs of instances, scored by each system."""
    rows = identities * INSTANCES
    first, second = np.triu_indices(rows, k=1)
    owner = np.arange(rows) // INSTANCES
    made = []
    for view in draw(rng, identities, offsets):
        squares = np.maximum(2.0 - 2.0 * (view @ view.T), 0.0)
        score = np.sqrt(squares[first, second])
        made.append(mb.Comparisons(owner[first], owner[second], score, distance=True))
    return made


def true_thresholds(samples: int = 40) -> dict[str, dict[float, float]]:
    """Thresholds at which a system has each rate (nearly; equal systems are equal at any), from samples."""
    rng = np.random.default_rng(20240)
    impostor, genuine = [], []
    for _ in range(samples):
        data = systems(rng, 200, [0])[0]
        impostor.append(data.score[~data.genuine].astype(np.float32))
        genuine.append(data.score[data.genuine])
    strangers, kin = np.concatenate(impostor), np.concatenate(genuine)
    return {
        "far": {rate: float(np.quantile(strangers, rate)) for rate in FARS},
        "frr": {rate: float(np.quantile(kin, 1.0 - rate)) for rate in FRRS},
    }


def coverages(kept: dict[tuple[str, float, str], list[tuple[bool, float, float]]]) -> list[dict[str, object]]:
    """One row a cell from (covered, width, width of the unpaired interval) of each replication."""
    made = []
    for (metric, rate, method), rows in kept.items():
        covered, width, unpaired = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
        made.append(
            {
                "metric": metric,
                "rate": rate,
                "method": method,
                "coverage": covered.mean(),
                "monte_carlo_error": np.sqrt(covered.mean() * (1 - covered.mean()) / covered.size),
                "width_to_unpaired": width.mean() / unpaired.mean(),
                "narrowest": width.min(),
                "replications": covered.size,
            }
        )
    return made


def paired(replications: int, seed: int) -> list[dict[str, object]]:
    """Two systems that share 7/8 of their coordinates: coverage of the difference, and width against unpaired."""
    grid = true_thresholds(8)
    chosen = [(metric, rate) for metric in ("far", "frr") for rate in grid[metric]]
    thresholds = [[grid[metric][rate]] * 2 for metric, rate in chosen]
    methods = ("auto", "dyadic", "latent")
    kept: dict[tuple[str, float, str], list[tuple[bool, float, float]]] = {}
    for replication in range(replications):
        a, b = systems(np.random.default_rng([seed, replication]), 50, [0, 16])
        several = compare_thresholds(a, b, thresholds)
        for (metric, rate), made in zip(chosen, several, strict=True):
            difference = getattr(made, metric)
            for method in methods:
                interval = difference.interval(method)
                unpaired = 2.0 * 2.01 * np.sqrt(difference.unpaired_variance)
                row = (0.0 in interval, interval.width, unpaired)
                kept.setdefault((metric, rate, method), []).append(row)
    return coverages(kept)


def points(replications: int, seed: int) -> list[dict[str, object]]:
    """The two systems of ``paired``: coverage of differences of FRR at equal FAR, and of EER."""
    kept: dict[tuple[str, float, str], list[tuple[bool, float, float]]] = {}
    for replication in range(replications):
        a, b = systems(np.random.default_rng([seed, replication]), 50, [0, 16])
        for rate in FARS:
            made = compare(a, b, far=rate)
            numbers = [("frr@far", rate, made.frr)] + ([("eer", 0.0, made.eer)] if rate == FARS[0] else [])
            for metric, at, difference in numbers:
                interval = difference.interval()
                unpaired = 2.0 * 2.01 * np.sqrt(difference.unpaired_variance)
                kept.setdefault((metric, at, "auto"), []).append((0.0 in interval, interval.width, unpaired))
    return coverages(kept)


def rejections(name: str, found: dict[tuple[str, float, str], list[bool]]) -> list[dict[str, object]]:
    made = []
    for (metric, rate, method), hits in found.items():
        share = float(np.mean(hits))
        made.append(
            {
                "study": name,
                "metric": metric,
                "rate": rate,
                "method": method,
                "rejected": share,
                "monte_carlo_error": np.sqrt(share * (1 - share) / len(hits)),
                "replications": len(hits),
            }
        )
    return made


def pair_errors(view: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Comparisons of each two identities that match (within an identity: that do not), shape (K, G, G)."""
    rows = view.shape[0]
    distance = np.sqrt(np.maximum(2.0 - 2.0 * (view @ view.T), 0.0))
    size = rows // INSTANCES
    out = np.empty((thresholds.size, size, size))
    for k, threshold in enumerate(thresholds):
        match = (distance <= threshold).reshape(size, INSTANCES, size, INSTANCES).sum(axis=(1, 3)).astype(float)
        own = np.diag(match)
        match[np.diag_indices(size)] = (INSTANCES**2 - own) / 2.0
        out[k] = match
    return out


def linear(errors: FloatArray, metric: str) -> tuple[float, FloatArray, float, float]:
    """Rate, influence of each identity, variance without bias, and its floor, of complete balanced data.

    `errors` may be a difference of two systems' errors. The same as `matchbound.stats.differences`, in matrices.
    """
    size = errors.shape[0]
    if metric == "frr":
        own = np.diag(errors)
        total = size * INSTANCES * (INSTANCES - 1) / 2
        moved = (own - own.mean()) / total
        value = float(moved @ moved) * size / (size - 1)
        return float(own.sum() / total), moved, value, 0.0
    off = errors.copy()
    off[np.diag_indices(size)] = 0.0
    ordered = size * (size - 1) * INSTANCES**2
    d = off - off.sum() / ordered * INSTANCES**2
    d[np.diag_indices(size)] = 0.0
    r, q = d.sum(axis=1), float((d * d).sum())
    factor = size * (size - 1) / ((size - 2) * (size - 3))
    value = (4.0 * float(r @ r) - 2.0 * q) / ordered**2 * factor
    return float(off.sum() / ordered), 2.0 * r / ordered, value, 2.0 * q / ordered**2


def cells() -> list[tuple[int, str, float, float]]:
    grid = true_thresholds(8)
    return [(k, m, rate, grid[m][rate]) for k, (m, rate) in enumerate((m, r) for m in grid for r in grid[m])]


def many_systems(replications: int, seed: int) -> list[dict[str, object]]:
    """Five equal systems, all ten pairs: how often any simultaneous interval excludes 0.

    Matrices do the counting; the first two replications go through `compare_all` too, and must agree.
    """
    chosen, offsets = cells(), [0, 8, 16, 24, 32]
    thresholds = np.array([cell[3] for cell in chosen])
    found: dict[tuple[str, float, str], list[bool]] = {}
    for replication in range(replications):
        views = draw(np.random.default_rng([seed, replication]), 50, offsets)
        errors = [pair_errors(view, thresholds) for view in views]
        for k, metric, rate, threshold in chosen:
            made = [linear(a[k] - b[k], metric) for a, b in combinations(errors, 2)]
            critical = max_t(np.array([moved for _, moved, _, _ in made]), n_resamples=2000)
            bound = t_quantile((1.0 - adjusted_level(critical)) / 2.0, 49.0)
            hits = [abs(d) > bound * np.sqrt(max(value, floor)) for d, _, value, floor in made]
            found.setdefault((metric, rate, "max-t"), []).append(any(hits))
            if replication < 2:
                same = systems(np.random.default_rng([seed, replication]), 50, offsets)
                rows = compare_all(same, threshold=threshold).differences(metric, method="dyadic", n_resamples=2000)
                assert [0.0 not in row.interval for row in rows] == hits
                assert np.allclose([row.difference.estimate for row in rows], [d for d, _, _, _ in made])
    return rejections("systems", found)


def many_groups(replications: int, seed: int) -> list[dict[str, object]]:
    """Eight equal groups of 25 identities, all 28 pairs: how often any simultaneous interval excludes 0.

    Matrices do the counting; the first two replications go through `by_group` too, and must agree.
    """
    chosen = cells()
    thresholds = np.array([cell[3] for cell in chosen])
    owner = np.arange(200 * INSTANCES) // INSTANCES
    found: dict[tuple[str, float, str], list[bool]] = {}
    for replication in range(replications):
        view = draw(np.random.default_rng([seed, replication]), 200, [0])[0]
        errors = pair_errors(view, thresholds)
        for k, metric, rate, threshold in chosen:
            made = []
            moved = np.zeros((8, 200))
            for g in range(8):
                part = slice(25 * g, 25 * g + 25)
                p, moved[g, part], value, floor = linear(errors[k, part, part], metric)
                n = 25 * 24 / 2 * INSTANCES**2 if metric == "far" else 25 * INSTANCES * (INSTANCES - 1) / 2
                made.append((p, max(value, floor, 1.0 / n**2)))
            pairs = list(combinations(range(8), 2))
            critical = max_t(np.array([moved[g] - moved[h] for g, h in pairs]), n_resamples=2000)
            hits = []
            for g, h in pairs:
                (p, v), (q, w) = made[g], made[h]
                freedom = welch((v, w), (24.0, 24.0))
                bound = t_quantile((1.0 - adjusted_level(critical)) / 2.0, freedom)
                hits.append(abs(p - q) > bound * np.sqrt(v + w))
            found.setdefault((metric, rate, "max-t"), []).append(any(hits))
            if replication < 2:
                names = np.array([f"g{g}" for g in range(8)])[owner // 25]
                data = mb.Embeddings(view, owner, "euclidean", group=names)
                rows = by_group(data, threshold, workers=1).gaps(metric, n_resamples=2000)
                assert np.allclose([row.gap.estimate for row in rows], [made[g][0] - made[h][0] for g, h in pairs])
                assert [0.0 not in row.interval for row in rows if not row.gap.notes] == [
                    hit for hit, row in zip(hits, rows, strict=True) if not row.gap.notes
                ]
    return rejections("groups", found)


def figure1(replications: int, seed: int) -> list[dict[str, object]]:
    """The paper's Fig. 1: two equal systems at FAR 0.1, 50 identities, 5 images each.

    "naive": comparisons taken for independent, as in a two-proportion z test. "intervals": naive Wilson
    intervals of the two systems do not overlap. "matchbound": the p-value of the paired difference is below
    0.05.
    """
    grid = true_thresholds()
    threshold = grid["far"][1e-1]
    found: dict[tuple[str, float, str], list[bool]] = {}
    for replication in range(replications):
        rng = np.random.default_rng([seed, replication])
        for name, offsets in (("correlated", [0, 16]), ("independent", [0, SEEN])):
            a, b = systems(rng, 50, offsets)
            made = compare(a, b, threshold=threshold)
            n, one, two = made.far.a.comparisons, made.far.rate_a, made.far.rate_b  # type: ignore[attr-defined]
            z = (one - two) / np.sqrt((one * (1 - one) + two * (1 - two)) / n)
            low, high = (rates.far.interval("naive-wilson") for rates in (made.a, made.b))
            apart = low.high < high.low or high.high < low.low
            found.setdefault(("far", 1e-1, f"naive, {name} systems"), []).append(abs(z) > 1.959964)
            found.setdefault(("far", 1e-1, f"intervals, {name} systems"), []).append(apart)
            found.setdefault(("far", 1e-1, f"matchbound, {name} systems"), []).append(made.far.p_value < 0.05)
    return rejections("figure1", found)


STUDIES: dict[str, Callable[[int, int], list[dict[str, object]]]] = {
    "paired": paired,
    "points": points,
    "systems": many_systems,
    "groups": many_groups,
    "figure1": figure1,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", mb.MatchboundWarning)
    rows = STUDIES[options.study](options.replications, options.seed)
    stream = io.StringIO()
    target = f" --output {options.output}" if options.output else ""
    stream.write(
        f"# python studies/compare_coverage.py {options.study} --replications {options.replications} "
        f"--seed {options.seed}{target}\n"
    )
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})

    if options.output is None:
        sys.stdout.write(stream.getvalue())
    else:
        options.output.write_text(stream.getvalue(), encoding="utf-8")


if __name__ == "__main__":
    main()
