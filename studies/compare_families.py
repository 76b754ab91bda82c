"""How often families of simultaneous intervals miss: all pairs of five systems, or of eight groups.

Run as ``python studies/compare_families.py STUDY --replications 1000 --seed 8 --output FILE``, STUDY one of

- ``systems``: five equal systems on 50 people; how often any of ten intervals leaves out 0;
- ``groups``: eight equal groups of 25 people; how often any of 28 intervals leaves out 0;
- ``differ``: the same where two of the systems, four of the groups, err three times as often; how often all intervals
  hold the true difference.

Methods: ``max-t`` (the library's), ``normal approximation`` (the critical value by normal draws everywhere), and, where
nothing differs, ``oracle``: the one critical value that, knowing the true distribution of the largest statistic, errs
most often without exceeding 5% (it is below 5% where errors are so few that the statistic jumps). Intervals of groups
are those of the test alone; the default ones are mostly the combined limits of both rates. The model is the paper's
(`compare_shared.draw`). Matrices do the counting; the first two replications go through `compare_all` and
`by_group` too, and must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from compare_shared import FARS, FRRS, INSTANCES, FloatArray, Row, draw, run, share_of, systems, true_thresholds
from numpy.typing import NDArray

import matchbound as mb
from matchbound.calls.comparison import compare_all
from matchbound.calls.groups import by_group
from matchbound.stats.families import (
    DECIMALS,
    MOST_TERMS,
    Largest,
    SignTerms,
    Within,
    adjusted_level,
    flipped,
    gaussian_largest,
    normal_scores,
    permuted_frr,
    permuted_moments,
    thrown_far,
    thrown_moments,
)
from matchbound.stats.gaps import GroupMoments, gap_statistic
from matchbound.stats.intervals import t_quantile

PEOPLE, OFFSETS = 50, [0, 8, 16, 24, 32]
GROUPS, MEMBERS = 8, 25
DRAWS, LEVEL, ALONE = 2000, 0.95, 1.959964
GROUP_DRAWS = 500
"""Of the world of equal groups; p-values are valid with any number of draws."""
TIMES = 3.0


@dataclass(frozen=True, eq=False)
class Family:
    """Differences that are looked at together: estimates, variances and freedom, shape (S,)."""

    estimate: FloatArray
    variance: FloatArray
    freedom: FloatArray
    gaussian: Largest
    null: Largest | None

    @property
    def largest(self) -> float:
        """The largest statistic, on the normal scale."""
        known = self.variance > 0.0
        statistics = np.where(known, self.estimate / np.sqrt(np.where(known, self.variance, 1.0)), 0.0)
        return float(normal_scores(statistics, self.freedom).max())

    def limits(self, calibrated: bool = True) -> FloatArray:
        """Lower and upper limits, shape (2, S)."""
        far = near = max(self.gaussian.critical(LEVEL), ALONE)
        if calibrated and self.null is not None:
            near = max(self.null.critical(LEVEL), ALONE)
            far = max(far, near)
        found = []
        for d, v, df in zip(self.estimate, self.variance, self.freedom, strict=True):
            wide, close = (np.sqrt(v) * t_quantile((1.0 - adjusted_level(c)) / 2.0, df) for c in (far, near))
            found.append((d - (close if d > close else wide), d + (close if -d > close else wide)))
        return np.array(found).T

    def misses(self, truth: FloatArray, calibrated: bool = True) -> NDArray[np.bool_]:
        """Which intervals leave out the truth, shape (S,)."""
        low, high = self.limits(calibrated)
        return np.asarray((truth < low) | (truth > high))


def pair_errors(view: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Comparisons of each two identities that match (within an identity: that do not), shape (K, G, G)."""
    distance = np.sqrt(np.maximum(2.0 - 2.0 * (view @ view.T), 0.0))
    size = view.shape[0] // INSTANCES
    out = np.empty((thresholds.size, size, size))
    for k, threshold in enumerate(thresholds):
        match = (distance <= threshold).reshape(size, INSTANCES, size, INSTANCES).sum(axis=(1, 3)).astype(float)
        match[np.diag_indices(size)] = (INSTANCES**2 - np.diag(match)) / 2.0
        out[k] = match
    return out


def linear(errors: FloatArray, metric: str) -> tuple[float, FloatArray, float]:
    """Rate, influence of each identity, and variance without bias and not below its floor, of complete balanced data.

    `errors` may be a difference of two systems' errors. The same as `matchbound.stats.differences`, in matrices.
    """
    size = errors.shape[0]
    if metric == "frr":
        own = np.diag(errors)
        total = size * INSTANCES * (INSTANCES - 1) / 2
        moved = (own - own.mean()) / total
        return float(own.sum() / total), moved, float(moved @ moved) * size / (size - 1)
    off = errors.copy()
    off[np.diag_indices(size)] = 0.0
    ordered = size * (size - 1) * INSTANCES**2
    d = off - off.sum() / ordered * INSTANCES**2
    d[np.diag_indices(size)] = 0.0
    r, q = d.sum(axis=1), float((d * d).sum())
    factor = size * (size - 1) / ((size - 2) * (size - 3))
    value = max(factor * (4.0 * float(r @ r) - 2.0 * q), 2.0 * q) / ordered**2
    return float(off.sum() / ordered), 2.0 * r / ordered, value


def of_systems(errors: FloatArray, metric: str) -> Family:
    """All pairs of systems from the errors of each, shape (systems, G, G)."""
    d = np.array([a - b for a, b in combinations(errors, 2)])
    made = [linear(one, metric) for one in d]
    size = d.shape[1]
    null = None
    if metric == "frr":
        g = INSTANCES * (INSTANCES - 1) / 2.0
        own = d[:, np.arange(size), np.arange(size)]
        own = own[:, np.any(own != 0.0, axis=0)]
        place, each = np.arange(own.shape[1]), np.full(own.shape[1], g)
        genuine = SignTerms(place, place, own, each, each, g * size, g * g * size, 0.0)
        if genuine.terms:
            null = flipped(genuine, size / (size - 1), size - 1, n_resamples=DRAWS)
    else:
        first, second = np.triu_indices(size, k=1)
        kept = np.flatnonzero(np.any(d[:, first, second] != 0.0, axis=0))
        first, second = first[kept], second[kept]
        _, renamed = np.unique(np.array([first, second]), return_inverse=True)
        renamed = renamed.reshape(2, kept.size)
        m, each = float(INSTANCES**2), float((size - 1) * INSTANCES**2)
        full = np.ones(kept.size)
        impostor = SignTerms(
            renamed[0],
            renamed[1],
            d[:, first, second],
            m * full,
            2.0 * each * full,
            size * each / 2.0,
            size * each**2,
            size * (size - 1) * m**2 / 2.0,
        )
        if 0 < impostor.terms <= MOST_TERMS:
            factor = size * (size - 1) / ((size - 2) * (size - 3))
            null = flipped(impostor, factor, size - 1, n_resamples=DRAWS)
    values = np.array([value for _, _, value in made])
    return Family(
        np.array([estimate for estimate, _, _ in made]),
        values,
        np.full(values.size, size - 1.0),
        gaussian_largest(np.array([moved for _, moved, _ in made]), n_resamples=DRAWS),
        null,
    )


@dataclass(frozen=True, eq=False)
class GroupFamily:
    """Gaps of all pairs of groups that are looked at together, by the test of a gap.

    estimate : float64 array, shape (S,)
    one, two : GroupMoments
        Of the first and the second group of each pair, arrays of shape (1, S).
    """

    estimate: FloatArray
    one: GroupMoments
    two: GroupMoments
    gaussian: Largest
    null: Largest | None

    def scores(self, truth: FloatArray) -> FloatArray:
        """How far the data lie from each true gap, on the normal scale, shape (S,)."""
        result: FloatArray = normal_scores(*gap_statistic(self.one, self.two, truth[None, :]))[0]
        return result

    @property
    def largest(self) -> float:
        """The largest statistic of equal groups, on the normal scale."""
        return float(self.scores(np.zeros(self.estimate.size)).max())

    def misses(self, truth: FloatArray, calibrated: bool = True) -> NDArray[np.bool_]:
        """Which limits of the test leave out the truth, shape (S,).

        A limit that leaves out 0 has the critical value of the world of equal groups, any other the larger one.
        """
        far = near = max(self.gaussian.critical(LEVEL), ALONE)
        if calibrated and self.null is not None:
            near = max(self.null.critical(LEVEL), ALONE)
            far = max(far, near)
        at, d = self.scores(truth), self.estimate
        found = (self.scores(np.zeros(d.size)) > near) & ((d - truth) * d > 0.0)
        return np.asarray(at > np.where(found, near, far))


def of_groups(errors: FloatArray, metric: str) -> GroupFamily:
    """All pairs of groups from the errors within each, shape (groups, members, members)."""
    groups, size, _ = errors.shape
    n = size * (size - 1) / 2 * INSTANCES**2 if metric == "far" else size * INSTANCES * (INSTANCES - 1) / 2
    moved = np.zeros((groups, groups * size))
    rate = np.zeros(groups)
    for g in range(groups):
        rate[g], moved[g, size * g : size * (g + 1)], _ = linear(errors[g], metric)
    owner = np.repeat(np.arange(groups), size)
    if metric == "frr":
        own = np.concatenate([np.diag(one) for one in errors])
        each = np.full(own.size, n / size)
        null = permuted_frr(owner, own, each, n_resamples=GROUP_DRAWS)
        moments = permuted_moments(owner, own[None, :], each[None, :])
    else:
        off = errors * (1.0 - np.eye(size))
        clumps = off[:, *np.triu_indices(size, k=1)]
        p = off.sum() / (2.0 * n * groups)
        d = (off - p * INSTANCES**2) * (1.0 - np.eye(size))
        shared = float((d.sum(axis=2) ** 2).sum() - (d * d).sum())
        spread = shared / (groups * size * (size - 1) * (size - 2) * INSTANCES**4) / p**2 if p > 0.0 else 0.0
        within = Within(
            owner,
            np.full(owner.size, float((size - 1) * INSTANCES**2)),
            np.full(groups, size * (size - 1) / 2 * INSTANCES**4),
            np.full(groups, float(size)),
            clumps[clumps > 0.0],
            max(spread, 0.0),
        )
        null = thrown_far(within, n_resamples=GROUP_DRAWS)
        moments = thrown_moments(within, off.sum(axis=2).reshape(1, -1), (clumps**2).sum(axis=1)[None, :])
    one, two = np.triu_indices(groups, k=1)
    gaussian = gaussian_largest(moved[one] - moved[two], n_resamples=GROUP_DRAWS)
    return GroupFamily(rate[one] - rate[two], moments.columns(one), moments.columns(two), gaussian, null)


def cells(samples: int = 8, times: float = 1.0) -> list[tuple[str, float, float]]:
    """(metric, rate, threshold) of each cell, at `times` the rate."""
    grid = true_thresholds(samples, [times * rate for rate in FARS], [times * rate for rate in FRRS])
    return [(m, rate, grid[m][times * rate]) for m, rates in (("far", FARS), ("frr", FRRS)) for rate in rates]


def attainable(largest: list[float]) -> FloatArray:
    """Which of the largest statistics the one best critical value rejects, without exceeding 5%."""
    values = np.round(np.array(largest), DECIMALS)
    beyond = np.array([np.mean(values >= value) for value in values])
    result: FloatArray = (beyond <= 1.0 - LEVEL).astype(float)
    return result


def equal(name: str, families: Callable[[int], Sequence[Family | GroupFamily]], replications: int) -> list[Row]:
    """Family-wise errors where nothing differs."""
    chosen = cells()
    hits: dict[tuple[int, str], list[bool]] = {}
    tops: dict[int, list[float]] = {}
    for replication in range(replications):
        for k, family in enumerate(families(replication)):
            nothing = np.zeros(family.estimate.size)
            hits.setdefault((k, "max-t"), []).append(bool(family.misses(nothing).any()))
            normal = family.misses(nothing, calibrated=False)
            hits.setdefault((k, "normal approximation"), []).append(bool(normal.any()))
            tops.setdefault(k, []).append(family.largest)
    rows = []
    for k, (metric, rate, _) in enumerate(chosen):
        found = {"max-t": hits[k, "max-t"], "normal approximation": hits[k, "normal approximation"]}
        found["oracle"] = [bool(hit) for hit in attainable(tops[k])]
        for method, happened in found.items():
            what: Row = {"study": name, "metric": metric, "rate": rate, "method": method}
            rows.append({**what, **share_of(happened, "rejected"), "replications": replications})
    return rows


def many_systems(replications: int, seed: int) -> list[Row]:
    """Five equal systems, all ten pairs: how often any simultaneous interval excludes 0."""
    chosen = cells()
    thresholds = np.array([threshold for _, _, threshold in chosen])

    def families(replication: int) -> list[Family]:
        views = draw(np.random.default_rng([seed, replication]), PEOPLE, OFFSETS)
        errors = np.array([pair_errors(view, thresholds) for view in views])
        made = [of_systems(errors[:, k], metric) for k, (metric, _, _) in enumerate(chosen)]
        if replication < 2:
            same = systems(np.random.default_rng([seed, replication]), PEOPLE, OFFSETS)
            for (metric, _, threshold), family in zip(chosen, made, strict=True):
                rows = compare_all(same, threshold=threshold).differences(metric, method="dyadic", n_resamples=DRAWS)
                agree([row.difference.estimate for row in rows], [row.interval for row in rows], family)
        return made

    return equal("systems", families, replications)


def many_groups(replications: int, seed: int) -> list[Row]:
    """Eight equal groups of 25 identities, all 28 pairs: how often any simultaneous interval excludes 0."""
    chosen = cells()
    thresholds = np.array([threshold for _, _, threshold in chosen])
    owner = np.arange(GROUPS * MEMBERS * INSTANCES) // INSTANCES

    def families(replication: int) -> list[GroupFamily]:
        view = draw(np.random.default_rng([seed, replication]), GROUPS * MEMBERS, [0])[0]
        blocks = within(pair_errors(view, thresholds))
        made = [of_groups(blocks[k], metric) for k, (metric, _, _) in enumerate(chosen)]
        if replication < 2:
            names = np.array([f"g{g}" for g in range(GROUPS)])[owner // MEMBERS]
            data = mb.Embeddings(view, owner, "euclidean", group=names)
            for (metric, _, threshold), family in zip(chosen, made, strict=True):
                rows = by_group(data, threshold, workers=1).gaps(metric, n_resamples=GROUP_DRAWS)  # type: ignore[arg-type]
                assert np.allclose([row.gap.estimate for row in rows], family.estimate, rtol=0.0, atol=1e-12)
                outside = [0.0 not in row.interval for row in rows]
                assert np.array_equal(outside, family.misses(np.zeros(len(rows))))
        return made

    return equal("groups", families, replications)


def agree(estimates: list[float], intervals: list[mb.Interval], family: Family) -> None:
    """Hold the library's limits against those made here (other limits serve where neither side errs at all)."""
    assert np.allclose(estimates, family.estimate, rtol=0.0, atol=1e-12)
    differ = family.estimate != 0.0
    assert np.allclose(np.array([list(one) for one in intervals]).T[:, differ], family.limits()[:, differ], rtol=1e-6)


def within(errors: FloatArray) -> FloatArray:
    """The blocks of the groups, shape (K, groups, members, members)."""
    parts = [slice(MEMBERS * g, MEMBERS * (g + 1)) for g in range(GROUPS)]
    return np.stack([errors[:, part, part] for part in parts], axis=1)


def differ(replications: int, seed: int) -> list[Row]:
    """Systems and groups that differ: how often all simultaneous intervals hold the true difference.

    And how often an interval of two that are equal leaves out 0, and one of two that differ lies too close to 0.
    """
    low, high = cells(40), cells(40, TIMES)
    thresholds = np.array([[threshold for _, _, threshold in each] for each in (low, high)])
    worse = {"systems": np.array([0, 0, 0, 1, 1]), "groups": np.arange(GROUPS) % 2}
    held: dict[tuple[str, int, str], list[tuple[bool, bool, bool]]] = {}
    for replication in range(replications):
        rng = np.random.default_rng([seed, replication])
        views = draw(rng, PEOPLE, OFFSETS)
        several = np.array([pair_errors(v, thresholds[w]) for v, w in zip(views, worse["systems"], strict=True)])
        view = draw(rng, GROUPS * MEMBERS, [0])[0]
        both = np.stack([within(pair_errors(view, grid)) for grid in thresholds])
        for k, (metric, rate, _) in enumerate(low):
            made: dict[str, Family | GroupFamily] = {
                "systems": of_systems(several[:, k], metric),
                "groups": of_groups(both[worse["groups"], k, np.arange(GROUPS)], metric),
            }
            for name, family in made.items():
                true = rate * (1.0 + (TIMES - 1.0) * worse[name])
                gaps = np.array([a - b for a, b in combinations(true, 2)])
                for method in ("max-t", "normal approximation"):
                    missed = family.misses(gaps, calibrated=method == "max-t")
                    equal_ones = missed & (gaps == 0.0)
                    away = missed & (np.abs(gaps) > np.abs(family.estimate)) & ~equal_ones
                    found = (not missed.any(), bool(equal_ones.any()), bool(away.any()))
                    held.setdefault((name, k, method), []).append(found)
    return [
        {
            "study": name,
            "metric": low[k][0],
            "rate": low[k][1],
            "method": method,
            **share_of((each[0] for each in rows), "all_hold"),
            "equal_pairs_missed": float(np.mean([each[1] for each in rows])),
            "missed_away_from_0": float(np.mean([each[2] for each in rows])),
            "replications": replications,
        }
        for (name, k, method), rows in held.items()
    ]


if __name__ == "__main__":
    run("compare_families.py", {"systems": many_systems, "groups": many_groups, "differ": differ}, __doc__)
