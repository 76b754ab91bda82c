"""Calls that compare systems on the same comparisons: match, read the curves, count, hand out results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Literal

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.calls.evaluate import raise_notes, threshold_grid, weighted_curve
from matchbound.counting.recount import EXACT_COMPARISONS, Source, rank_scores, tally_comparisons
from matchbound.counting.run import Executor, Progress, RunOptions
from matchbound.counting.sources import AnySource, recount_of
from matchbound.counts.curve import CurveTally
from matchbound.counts.tally import JointTally, Tally, join
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.matching import Matched, match
from matchbound.errors import DataError, UsageError, argument, check_rate, named
from matchbound.notes import Note
from matchbound.readers.read import Readable, in_memory
from matchbound.results.comparison import Comparison, IdentityDifference, RateDifference, SystemDifference, SystemsTable
from matchbound.results.rates import WEIGHTINGS, error_rates
from matchbound.stats.differences import DifferenceModel, JointSums, fit_difference, paired_ranks, unit_joint
from matchbound.stats.dyadic import effective_number
from matchbound.stats.latent.fit import design_of, unit_design
from matchbound.stats.variance import unit_rate

# The latent model of a difference is fitted to as many identities as make about this many comparisons.
MODEL_COMPARISONS = 1_000_000
# What is read: ``("frr@far", 0.001)``, ``("far@frr", 0.05)`` or ``("eer", None)``.
Target = tuple[str, float | None]
EER: Target = ("eer", None)


@dataclass(frozen=True)
class Where:
    """Where systems are compared: at thresholds (one for all, or one each), or where each has this FAR or this FRR."""

    threshold: float | Sequence[float] | None = None
    far: float | None = None
    frr: float | None = None

    def __post_init__(self) -> None:
        if sum(option is not None for option in (self.threshold, self.far, self.frr)) != 1:
            raise UsageError(f"give one of {argument('threshold')}, {argument('far')} or {argument('frr')}")
        if self.mode != "threshold":
            check_rate(self.given, self.mode)  # type: ignore[arg-type]

    @property
    def mode(self) -> Literal["threshold", "far", "frr"]:
        return "far" if self.far is not None else "frr" if self.frr is not None else "threshold"

    @property
    def given(self) -> float | None:
        """The FAR or FRR that all systems have."""
        return self.frr if self.far is None else self.far

    @property
    def target(self) -> Target | None:
        """What is read from the curves; None at thresholds."""
        return {"threshold": None, "far": ("frr@far", self.far), "frr": ("far@frr", self.frr)}[self.mode]

    def thresholds(self, size: int) -> FloatArray:
        """One threshold for each of so many systems; NaN where none is given."""
        if self.threshold is None:
            return np.full(size, np.nan)
        return threshold_grid(self.threshold, size)


def compare(
    a: AnySource | Readable,
    b: AnySource | Readable,
    *,
    threshold: float | Sequence[float] | None = None,
    far: float | None = None,
    frr: float | None = None,
    weighting: str = "comparisons",
    names: tuple[str, str] = ("A", "B"),
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Two systems on the same comparisons: differences and ratios of their error rates.

    Parameters
    ----------
    a, b
        `Comparisons`, `Embeddings` of the same instances, or tables on disk (`scan`), which are read into memory.
        They are matched by instance (without their names, row by row); what has no match is left out, and the result
        says how much that was.
    threshold
        One for both systems, or ``(threshold of a, threshold of b)``: rates at fixed thresholds.
    far, frr
        Compare FRR where each system has this FAR, or the reverse. That the thresholds are estimated is counted.
    names
        What to call the two systems in tables and pictures.
    weighting, workers, executor, progress
        As for `evaluate`.

    Returns
    -------
    Comparison
        With ``.far``, ``.frr`` and ``.eer`` (A minus B) and ``.p_value``.

    See Also
    --------
    compare_all, Comparison, by_group

    Examples
    --------
    >>> import matchbound as mb
    >>> a = mb.demo_data()
    >>> b = mb.Embeddings(a.vectors[:, :48], a.identities[a.codes], instance=a.instance)
    >>> difference = mb.compare(a, b, far=0.01).frr
    >>> f"{100 * difference.estimate:.2f} points, p = {difference.p_value:.1g}"
    '-2.09 points, p = 0.06'
    """
    options = RunOptions(workers, executor, progress)
    table = compare_points([a, b], [Where(threshold, far, frr)], weighting, options)[0]
    result = replace(table.comparisons["1", "2"], names=names, warnings=table.warnings)
    raise_notes(result.warnings)
    return result


def compare_all(
    systems: Mapping[str, AnySource] | Sequence[AnySource],
    *,
    threshold: float | Sequence[float] | None = None,
    far: float | None = None,
    frr: float | None = None,
    weighting: str = "comparisons",
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> SystemsTable:
    """Several systems on the same comparisons: all pairs, with simultaneous intervals.

    Parameters
    ----------
    systems
        By name, or in a sequence (they are then called 1, 2, …).
    threshold, far, frr, weighting, workers, executor, progress
        As for `compare`.

    Returns
    -------
    SystemsTable
        Every pair of systems, with one critical value for all of them.

    See Also
    --------
    compare

    Examples
    --------
    >>> import matchbound as mb
    >>> faces = mb.demo_data()
    >>> names = faces.identities[faces.codes]
    >>> systems = {str(d): mb.Embeddings(faces.vectors[:, :d], names) for d in (32, 48, 64)}
    >>> len(mb.compare_all(systems, threshold=0.6).comparisons)
    3
    """
    options = RunOptions(workers, executor, progress)
    table = compare_points(systems, [Where(threshold, far, frr)], weighting, options)[0]
    raise_notes(table.warnings)
    return table


def compare_points(
    systems: Mapping[str, AnySource] | Sequence[AnySource | Readable],
    points: Sequence[Where],
    weighting: str = "comparisons",
    options: RunOptions | None = None,
) -> tuple[SystemsTable, ...]:
    """`compare_all` at several points: the systems are matched and their curves made once, each pair counted once.

    Nothing is warned; each table holds its warnings. Where curves are made, EER is counted in the same pass.
    """
    named_systems = systems if isinstance(systems, Mapping) else {str(k + 1): s for k, s in enumerate(systems)}
    if len(named_systems) < 2:
        raise UsageError("give at least two systems")
    names, size = tuple(named_systems), len(named_systems)
    sources = [in_memory(source) for source in named_systems.values()]
    matched = _Systems(match(sources), options or RunOptions(), weighting)
    targets = [where.target for where in points if where.target is not None]
    targets += [EER] if targets else []
    fixed = [where.thresholds(size) for where in points]
    grids = []
    for i in range(size):
        read = dict(zip(targets, matched.read(i, targets), strict=True))
        grid = [read[w.target].threshold if w.target else f[i] for w, f in zip(points, fixed, strict=True)]
        grids.append(np.array([*grid, *([read[EER].threshold] if targets else [])], dtype=np.float64))
    pairs = {(names[i], names[j]): _Pair(matched, i, j, grids) for i, j in combinations(range(size), 2)}
    found = [source.findings() for source in matched.matched.systems]
    shared = [
        note if all(note in each for each in found) else note.about(f"system {name}")
        for name, own in zip(names, found, strict=True)
        for note in own
    ]
    shared += matched.matched.notes
    tables = []
    for k, where in enumerate(points):
        comparisons = {both: pair.compare(where, k, both) for both, pair in pairs.items()}
        notes = [*_one_for_all(where, sources), *shared, *(note for c in comparisons.values() for note in c.warnings)]
        tables.append(SystemsTable(names, comparisons, tuple(dict.fromkeys(notes))))
    return tuple(tables)


@dataclass(frozen=True)
class Reading:
    """FRR, FAR or EER read from a curve, and what a unit of FRR and of FAR at a fixed threshold moves it by."""

    metric: str
    estimate: float
    threshold: float
    share_frr: float
    share_far: float

    @staticmethod
    def of(curve: CurveTally, metric: str, target: float | None) -> Reading:
        from matchbound.stats.curve.influence import curve_slopes, rate_shares
        from matchbound.stats.curve.rates import crossing, index_at_far, index_at_frr

        if target is None:
            crossed = crossing(curve.far, curve.frr)
            k, estimate = crossed.index, crossed.estimate
        elif metric == "frr@far":
            k = index_at_far(curve.far, target)
            estimate = float(curve.frr[k])
        else:
            k = index_at_frr(curve.frr, target)
            estimate = float(curve.far[k])
        shares = (float(share[0]) for share in rate_shares(metric, curve_slopes(curve, np.array([k]))))
        return Reading(metric, estimate, float(curve.thresholds[k]), *shares)


class _Systems:
    """Matched systems, what was read from their curves, and their counts."""

    def __init__(self, matched: Matched, options: RunOptions, weighting: str) -> None:
        self.matched, self.options = matched, options
        self.weighting = named(weighting, WEIGHTINGS, "weighting")
        first = matched.systems[0]
        total = first.n_genuine + first.n_impostor
        if not total:
            raise DataError(f"there are no comparisons: {len(first)} matched {first.unit} make no pair")
        scored = total <= EXACT_COMPARISONS
        self.sources: list[Source] = [s.comparisons() if scored else s for s in matched.systems]
        self.recounts = [recount_of(source, options.workers, options.executor) for source in self.sources]
        self.readings: dict[tuple[int, Target], Reading] = {}
        self.tallies: dict[tuple[int, bytes], Tally] = {}

    def read(self, i: int, targets: Sequence[Target]) -> list[Reading]:
        """Numbers of the curve of a system; those that are not known yet are read from one curve."""
        new = [target for target in targets if (i, target) not in self.readings]
        if new:
            recount = self.recounts[i].for_curve(every=self.weighting == "identities")
            curve = weighted_curve(recount, self.weighting, self.options)
            self.readings |= {(i, target): Reading.of(curve, *target) for target in new}
        return [self.readings[i, target] for target in targets]

    def tally(self, i: int, thresholds: FloatArray) -> Tally:
        key = i, thresholds.tobytes()
        if key not in self.tallies:
            self.tallies[key] = self.recounts[i].tally(thresholds, pairs=True, options=self.options)
        return self.tallies[key]

    def joint(self, i: int, j: int, one: FloatArray, two: FloatArray) -> JointTally:
        joint, a, b = join(self.tally(i, one), self.tally(j, two)), self.sources[i], self.sources[j]
        if isinstance(a, Comparisons) and isinstance(b, Comparisons):
            apart = [_wrong(a, x) != _wrong(b, y) for x, y in zip(one, two, strict=True)]
            kinds = {"far": ~a.genuine, "frr": a.genuine}
            counts = {kind: np.array([np.count_nonzero(row & rows) for row in apart]) for kind, rows in kinds.items()}
            joint = replace(joint, disagreements=counts)
        return unit_joint(joint) if self.weighting == "identities" else joint


class _Pair:
    """Two of the systems at some thresholds of each: differences at any of them, and the latent models behind them."""

    def __init__(self, systems: _Systems, i: int, j: int, grids: Sequence[FloatArray]) -> None:
        self.systems, self.places, self.grids = systems, (i, j), (grids[i], grids[j])
        self.units = systems.joint(i, j, *self.grids)
        self.models = cache(self._model)

    def compare(self, where: Where, k: int, names: tuple[str, str]) -> Comparison:
        """At the k-th thresholds."""
        systems, matched = self.systems, self.systems.matched
        a, b = (
            error_rates(systems.tally(i, grid), (), systems.recounts[i], systems.weighting)[k]
            for i, grid in zip(self.places, self.grids, strict=True)
        )
        kind = IdentityDifference if systems.weighting == "identities" else RateDifference
        differences: dict[str, SystemDifference] = {}
        for metric, one, two in (("far", a.far, b.far), ("frr", a.frr, b.frr)):
            people = one.effective_identities
            sums = JointSums(self.units, k, {metric: (1.0, 1.0)}, people)
            differences[metric] = kind(one, two, max(people - 1.0, 1.0), sums, self.models)
        if where.target is not None:
            differences["frr" if where.mode == "far" else "far"] = self.read(where.target, self.units, k)
        notes = [*a.warnings, *b.warnings]
        notes += [note for d in differences.values() if not math.isnan(d.estimate) for note in d.notes]
        unmatched = tuple(matched.unmatched[i] for i in self.places)
        return Comparison(
            where.mode, where.given, differences["far"], differences["frr"], a, b, matched.matched, unmatched,
            matched.how, tuple(dict.fromkeys(notes)), self.at_crossing, names,
        )  # fmt: skip

    def at_crossing(self) -> SystemDifference:
        """EER; where curves were made anyway, the last thresholds are those of equal error rates."""
        grids = [np.array([self.systems.read(i, [EER])[0].threshold]) for i in self.places]
        if all(grid[-1] == own[0] for grid, own in zip(self.grids, grids, strict=True)):
            return self.read(EER, self.units, -1)
        return self.read(EER, self.systems.joint(*self.places, *grids), 0)

    def read(self, target: Target, units: JointTally, k: int) -> SystemDifference:
        """A number that was read from both curves; the slopes there make it a combination of FRR and FAR."""
        a, b = (self.systems.read(i, [target])[0] for i in self.places)
        people = max(effective_number(units.a.genuine.comparisons), 4.0)
        shares = {"frr": (a.share_frr, b.share_frr), "far": (a.share_far, b.share_far)}
        sums = JointSums(units, k, {kind: both for kind, both in shares.items() if any(both)}, people)
        return SystemDifference(a, b, people - 1.0, sums, self.models)

    def _model(self, kind: str) -> DifferenceModel | None:
        """The latent model of the difference of FAR or FRR, at thresholds where both systems err equally often.

        Correlations may come from a part of the identities; what was compared is counted on all of them.
        """
        a, b = _some_comparisons(*(self.systems.sources[i] for i in self.places))
        which: Literal["impostor", "genuine"] = "impostor" if kind == "far" else "genuine"
        rows = np.flatnonzero(a.genuine == (which == "genuine"))
        ranks = paired_ranks(rows.size, kind)
        if not ranks.size:
            return None
        a = a.take(rows)
        b = a.with_fields(score=b.score[rows], distance=b.distance)
        grids = [rank_scores(system, ranks, which) for system in (a, b)]
        both = shared_errors(a, b, *grids)
        joint = join(tally_comparisons(a, grids[0]), tally_comparisons(b, grids[1]))
        model = fit_difference(joint, both, kind)
        whole = next(iter(self.systems.tallies.values())).part(kind)
        weighed = self.systems.weighting == "identities"
        return replace(model, design=unit_design(unit_rate(whole, 0)) if weighed else design_of(whole))


def shared_errors(a: Comparisons, b: Comparisons, one: FloatArray, two: FloatArray) -> IntArray:
    """Comparisons on which both systems err, at pairs of thresholds, shape (K,)."""
    return np.array([np.count_nonzero(_wrong(a, x) & _wrong(b, y)) for x, y in zip(one, two, strict=True)])


def _wrong(system: Comparisons, threshold: float) -> BoolArray:
    matched = system.score <= threshold if system.distance else system.score >= threshold
    return np.asarray(matched != system.genuine)


def _some_comparisons(a: Source, b: Source) -> tuple[Comparisons, Comparisons]:
    """The comparisons of two systems among some identities, taken at random, where all would take long to sort."""
    share = MODEL_COMPARISONS / (a.n_genuine + a.n_impostor)
    if share < 1.0:
        size = a.n_identities
        chosen = np.random.default_rng(0).permutation(size)[: max(int(size * math.sqrt(share)), 2)]
        a, b = a.among(chosen), b.among(chosen)
    return a.comparisons(), b.comparisons()


def _one_for_all(where: Where, sources: Sequence[Source]) -> tuple[Note, ...]:
    """What to say where one threshold serves systems whose scores are of different kinds."""
    if where.threshold is None or np.ndim(where.threshold):
        return ()
    kinds = dict.fromkeys(
        source.similarity if isinstance(source, Embeddings) else "distance" if source.distance else "similarity"
        for source in sources
    )
    if len(kinds) < 2 or set(kinds) == {"cosine", "similarity"}:
        return ()
    return (
        Note(
            "one-threshold",
            f"one threshold for systems with different scores ({', '.join(kinds)}): it cannot mean the same for all. "
            "Give one for each system, or compare where FAR is equal (far=)",
        ),
    )
