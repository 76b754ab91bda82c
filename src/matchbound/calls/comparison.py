"""Calls that set systems side by side: check the arguments, run the engine, hand out results."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.calls.curve_readings import Reading, Target, read_curve
from matchbound.calls.groups import by_group
from matchbound.counting.executors import RunOptions
from matchbound.counting.joint import joint_tally
from matchbound.counting.recount import Source, rank_scores, tally_comparisons
from matchbound.counting.run import Executor, Progress
from matchbound.counting.sources import AnySource, recount_of
from matchbound.counts.joint import JointTally
from matchbound.counts.tally import Tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.matching import Matched, match
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.readers.loading import Readable, in_memory
from matchbound.results.comparison import (
    Comparison,
    Difference,
    IdentityDifference,
    Models,
    PointDifference,
    RateDifference,
)
from matchbound.results.error_rates import ErrorRates, error_rates
from matchbound.results.interval import check_rate, named
from matchbound.results.rates import WEIGHTINGS
from matchbound.results.systems import SystemsTable, systems_table
from matchbound.stats.differences import PointTerms
from matchbound.stats.dyadic import effective_number
from matchbound.stats.latent import design_of, unit_design
from matchbound.stats.latent.differences import (
    DifferenceModel,
    fit_difference,
    paired_ranks,
)
from matchbound.stats.latent.model import Design
from matchbound.stats.variance import far_by_pair, frr_by_identity, unit_joint

__all__ = ["Where", "by_group", "compare", "compare_all", "compare_points", "compare_thresholds"]

EXACT_COMPARISONS = 3_000_000
"""Pairs of embeddings up to this many are scored and kept; beyond, they are counted block by block."""
MODEL_COMPARISONS = 1_000_000
"""The latent model of a difference is fitted to as many identities as make about this many comparisons."""


@dataclass(frozen=True)
class Where:
    """Where systems are set side by side; one of the three.

    threshold
        One for all systems, or one each.
    far, frr
        Where each system has this rate.
    """

    threshold: float | Sequence[float] | None = None
    far: float | None = None
    frr: float | None = None

    def __post_init__(self) -> None:
        if sum(option is not None for option in (self.threshold, self.far, self.frr)) != 1:
            raise UsageError("give one of threshold=, far= or frr=")
        for name in ("far", "frr"):
            rate = getattr(self, name)
            if rate is not None:
                check_rate(rate, name)

    @property
    def target(self) -> Target | None:
        """What is read from the curves; None at thresholds."""
        if self.far is not None:
            return "frr@far", self.far
        return None if self.frr is None else ("far@frr", self.frr)


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
        They are matched by instance (without names of instances, row by row); what has no match is left out, and the
        result says how much that was.
    threshold
        One for both systems, or ``(threshold of a, threshold of b)``: rates at fixed thresholds.
    far
        Compare FRR where each system has this FAR. That the thresholds are estimated is counted.
    frr
        Compare FAR where each system has this FRR.
    weighting
        ``"comparisons"``, or ``"identities"``: every identity (FRR) and every identity pair (FAR) counts once, as in
        `evaluate`.
    names
        What to call the two systems in tables and pictures.
    workers, executor, progress
        How embeddings are counted; see `evaluate`.

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
    where = Where(threshold, far, frr)
    sources = [in_memory(a), in_memory(b)]
    matched = match(sources)
    pair = _Pair.of(matched, RunOptions(workers, executor, progress), weighting=weighting)
    notes = (*_one_for_all(where, sources), *_findings(matched), *matched.notes)
    result = replace(pair.compare(where, where.threshold, notes, matched), names=names)
    for text in result.warnings:
        warnings.warn(text, MatchboundWarning, stacklevel=2)
    return result


def compare_thresholds(
    a: AnySource,
    b: AnySource,
    thresholds: Sequence[Sequence[float]] | FloatArray,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> tuple[Comparison, ...]:
    """`compare` at several pairs of thresholds (of a, of b), for the price of one pass over the data.

    Parameters
    ----------
    a, b : Comparisons, Embeddings or ScoreFile
        The two systems.
    thresholds : sequence of pairs
        Each a threshold of `a` and one of `b`.
    workers, executor, progress
        How embeddings are counted; see `evaluate`.

    Returns
    -------
    tuple of Comparison
        One per pair of thresholds; all from one pass.

    See Also
    --------
    compare, compare_all

    Examples
    --------
    >>> import matchbound as mb
    >>> faces = mb.demo_data()
    >>> several = compare_thresholds(faces, faces, [(0.5, 0.5), (0.6, 0.6)])
    >>> [round(one.far.estimate, 3) for one in several]
    [0.0, 0.0]
    """
    grid = np.array(thresholds, dtype=np.float64)
    if grid.ndim != 2 or grid.shape[1] != 2 or np.isnan(grid).any():
        raise UsageError("thresholds must be pairs: the threshold of a, the threshold of b")
    matched = match([in_memory(a), in_memory(b)])
    pair = _Pair.of(matched, RunOptions(workers, executor, progress))
    notes = (*_findings(matched), *matched.notes)
    joint = pair.joint(grid[:, 0], grid[:, 1])
    made = tuple(pair.at(joint.at(k), notes, matched) for k in range(grid.shape[0]))
    for text in dict.fromkeys(text for one in made for text in one.warnings):
        warnings.warn(text, MatchboundWarning, stacklevel=2)
    return made


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
    threshold
        One for all systems, or one each.
    far, frr, weighting, workers, executor, progress
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
    >>> import numpy as np
    >>> faces = mb.demo_data()
    >>> noise = np.random.default_rng(1).normal(size=faces.vectors.shape)
    >>> names = faces.identities[faces.codes]
    >>> others = {str(s): mb.Embeddings(faces.vectors + s * noise, names) for s in (0.0, 0.02, 0.04)}
    >>> table = mb.compare_all(others, threshold=0.6)
    >>> len(table.comparisons)
    3
    """
    table = compare_points(
        systems, [Where(threshold, far, frr)], workers=workers, executor=executor, progress=progress, eer=False,
        weighting=weighting,
    )[0]  # fmt: skip
    for text in table.warnings:
        warnings.warn(text, MatchboundWarning, stacklevel=2)
    return table


def compare_points(
    systems: Mapping[str, AnySource] | Sequence[AnySource],
    points: Sequence[Where],
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    eer: bool = True,
    weighting: str = "comparisons",
) -> tuple[SystemsTable, ...]:
    """`compare_all` at several points: the systems are matched and their curves made once, each pair counted once.

    Nothing is warned; each table holds its warnings. With `eer`, that of each pair is at hand.
    """
    named = dict(systems) if isinstance(systems, Mapping) else {str(k + 1): s for k, s in enumerate(systems)}
    if len(named) < 2:
        raise UsageError("give at least two systems")
    sources = [in_memory(s) for s in named.values()]
    names, matched, remember = list(named), match(sources), _Remembered()
    grids = [None if where.threshold is None else _each(where.threshold, len(names)) for where in points]
    targets: list[Target] = [where.target for where in points if where.target is not None]
    made: list[dict[tuple[str, str], Comparison]] = [{} for _ in points]
    for i in range(len(names)):
        for j in range(i + 1, len(names)):
            two: Any = (matched.systems[i], matched.systems[j])
            both = Matched(two, matched.matched, (matched.unmatched[i], matched.unmatched[j]), matched.how)
            pair = _Pair.of(both, RunOptions(workers, executor, progress), remember, weighting)
            asked = [None if grid is None else (float(grid[i]), float(grid[j])) for grid in grids]
            pair.prepare([at for at in asked if at is not None], [*targets, *([("eer", None)] if eer else [])])
            for table, where, at in zip(made, points, asked, strict=True):
                table[names[i], names[j]] = pair.compare(where, at, (), both)
    said = [(*_one_for_all(where, sources), *_findings(matched), *matched.notes) for where in points]
    return tuple(systems_table(tuple(names), table, notes) for table, notes in zip(made, said, strict=True))


class _Remembered:
    """Scored pairs, tallies and readings of systems that take part in several comparisons."""

    def __init__(self) -> None:
        self.scored: dict[Embeddings, Comparisons] = {}
        self.tallies: dict[tuple[Comparisons, bytes], Tally] = {}
        self.readings: dict[tuple[Source, str, float | None], Reading] = {}

    def pairs(self, source: Embeddings) -> Comparisons:
        """All pairs of the embeddings, scored."""
        if source not in self.scored:
            self.scored[source] = source.comparisons()
        return self.scored[source]

    def tally(self, source: Comparisons, thresholds: FloatArray) -> Tally:
        """The tally of a system at a threshold."""
        key = source, thresholds.tobytes()
        if key not in self.tallies:
            self.tallies[key] = tally_comparisons(source, thresholds)
        return self.tallies[key]

    def read(self, source: Source, targets: Sequence[Target], options: RunOptions, weighting: str) -> list[Reading]:
        """Numbers of the curve of a system; what is not known yet is read from one curve."""
        new = [target for target in targets if (source, *target) not in self.readings]
        if new:
            for target, reading in zip(new, read_curve(source, new, options, weighting), strict=True):
                self.readings[source, *target] = reading
        return [self.readings[source, *target] for target in targets]


class _Pair:
    """Two matched systems, and the counting that comparisons of them need."""

    def __init__(
        self, a: Source, b: Source, options: RunOptions, remember: _Remembered, weighting: str = "comparisons"
    ) -> None:
        self.a, self.b, self.options, self.remember = a, b, options, remember
        self.weighting = named(weighting, WEIGHTINGS, "weighting")
        self.designs: tuple[Design, Design] | None = None
        self.prepared: dict[tuple[float, float], JointTally] = {}
        self.models: Models = cache(self._model)

    @staticmethod
    def of(
        matched: Matched, options: RunOptions, remember: _Remembered | None = None, weighting: str = "comparisons"
    ) -> _Pair:
        remember = remember or _Remembered()
        a, b = matched.systems
        if isinstance(a, Embeddings) and isinstance(b, Embeddings):
            if len(a) < 2:
                raise DataError(f"there are no comparisons: {len(a)} matched embeddings make no pair")
            if len(a) * (len(a) - 1) // 2 <= EXACT_COMPARISONS:
                return _Pair(remember.pairs(a), remember.pairs(b), options, remember, weighting)
        return _Pair(a, b, options, remember, weighting)

    def joint(self, thresholds_a: ArrayLike, thresholds_b: ArrayLike) -> JointTally:
        one = np.atleast_1d(np.asarray(thresholds_a, dtype=np.float64))
        two = np.atleast_1d(np.asarray(thresholds_b, dtype=np.float64))
        if isinstance(self.a, Comparisons) and isinstance(self.b, Comparisons):
            made = joint_tally(self.a, self.b, one, two, tally=self.remember.tally)
        else:
            made = joint_tally(self.a, self.b, one, two, self.options)
        if self.weighting == "identities":
            units = far_by_pair(made.a.impostor, 0), frr_by_identity(made.a.genuine, 0)
            self.designs = unit_design(units[0]), unit_design(units[1])
        else:
            self.designs = design_of(made.a.impostor), design_of(made.a.genuine)
        return made

    def prepare(self, thresholds: Sequence[tuple[float, float]], targets: Sequence[Target]) -> None:
        """Count at several points in one pass, so that `compare` finds them."""
        read = [self.remember.read(source, targets, self.options, self.weighting) for source in (self.a, self.b)]
        grid = [*thresholds, *((one.threshold, two.threshold) for one, two in zip(*read, strict=True))]
        if grid:
            joint = self.joint([at[0] for at in grid], [at[1] for at in grid])
            self.prepared |= {at: joint.at(k) for k, at in enumerate(grid)}

    def _joint_at(self, one: float, two: float) -> JointTally:
        return self.prepared[one, two] if (one, two) in self.prepared else self.joint([one], [two])

    def compare(
        self,
        where: Where,
        threshold: float | Sequence[float] | None,
        notes: tuple[Note, ...],
        matched: Matched,
    ) -> Comparison:
        """The comparison at a point; `threshold` is that of these two systems."""
        if where.target is None:
            one, two = _each(threshold, 2).tolist()
            return self.at(self._joint_at(one, two), notes, matched)
        point = self._at_target(*where.target)
        return self.at(self._joint_at(point.threshold_a, point.threshold_b), notes, matched, point, where.target[1])

    def at(
        self,
        joint: JointTally,
        notes: tuple[Note, ...],
        matched: Matched,
        point: PointDifference | None = None,
        target: float | None = None,
    ) -> Comparison:
        """The comparison at one pair of thresholds."""
        rates = [
            error_rates(t, (), recount_of(source, self.options.workers, self.options.executor), self.weighting)[0]
            for t, source in ((joint.a, self.a), (joint.b, self.b))
        ]
        far, frr = self._differences(rates[0], rates[1], joint)
        mode: Literal["threshold", "far", "frr"] = "threshold"
        if point is not None and point.metric == "frr@far":
            mode, frr = "far", point
        elif point is not None:
            mode, far = "frr", point
        told = [*notes, *rates[0].warnings, *rates[1].warnings]
        told += [note for d in (far, frr) if not math.isnan(d.estimate) for note in d.notes]
        return Comparison(
            mode=mode,
            target=target,
            far=far,
            frr=frr,
            a=rates[0],
            b=rates[1],
            matched=matched.matched,
            unmatched=matched.unmatched,
            matched_by=matched.how,
            warnings=tuple(dict.fromkeys(told)),
            at_crossing=lambda: self._at_target("eer", None),
        )

    def _differences(self, a: ErrorRates, b: ErrorRates, joint: JointTally) -> tuple[Difference, Difference]:
        """Of FAR and of FRR."""
        of = self._units_of(joint)
        return (
            _rate_difference("far", a, b, of, self.models, self.weighting),
            _rate_difference("frr", a, b, of, self.models, self.weighting),
        )

    def _units_of(self, joint: JointTally) -> JointTally:
        """What is counted: comparisons, or identities and their pairs."""
        return unit_joint(joint) if self.weighting == "identities" else joint

    def _at_target(self, metric: str, target: float | None) -> PointDifference:
        """Read a number from both curves, with the slopes that make it a combination of FRR and FAR."""
        read = [
            self.remember.read(source, [(metric, target)], self.options, self.weighting)[0]
            for source in (self.a, self.b)
        ]
        values, thresholds = [one.value for one in read], [one.threshold for one in read]
        joint = self._units_of(self._joint_at(thresholds[0], thresholds[1]))
        g = joint.a.genuine.comparisons
        size = max(effective_number(g), 4.0)
        terms = PointTerms(
            joint,
            (read[0].share_frr, read[1].share_frr),
            (read[0].share_far, read[1].share_far),
            size,
        )
        return PointDifference(
            metric,
            values[0],
            values[1],
            size - 1.0,
            threshold_a=thresholds[0],
            threshold_b=thresholds[1],
            terms=terms,
            models=self.models,
        )

    def _model(self, kind: str) -> DifferenceModel | None:
        """The latent model of the difference of FAR or FRR, at thresholds where both systems err equally often.

        Correlations may come from a part of the identities; what was compared is counted on all of them.
        """
        a, b = _subset(self.a, self.b)
        which: Literal["impostor", "genuine"] = "impostor" if kind == "far" else "genuine"
        if isinstance(a, Comparisons) and isinstance(b, Comparisons):
            rows = np.flatnonzero(a.genuine == (which == "genuine"))
            a = a.take(rows)
            b = a.with_fields(score=b.score[rows], distance=b.distance)
        ranks = paired_ranks(a.n_impostor if which == "impostor" else a.n_genuine, kind)
        if not ranks.size:
            return None
        joint = joint_tally(a, b, rank_scores(a, ranks, which), rank_scores(b, ranks, which), self.options)
        made = fit_difference(joint, kind)
        if self.designs is None:
            return made
        return replace(made, design=self.designs[0 if kind == "far" else 1])


def _rate_difference(
    metric: str, a: ErrorRates, b: ErrorRates, joint: JointTally, models: Models, weighting: str
) -> RateDifference:
    one, two = (a.far, b.far) if metric == "far" else (a.frr, b.frr)
    freedom = max(one.effective_identities - 1.0, 1.0)
    kind = IdentityDifference if weighting == "identities" else RateDifference
    return kind(metric, one.estimate, two.estimate, freedom, a=one, b=two, joint=joint, models=models)


def _subset(a: Source, b: Source) -> tuple[Source, Source]:
    """The same systems on some identities, taken evenly, where the whole would take long to sort."""
    if isinstance(a, Comparisons) and isinstance(b, Comparisons):
        if len(a) <= MODEL_COMPARISONS:
            return a, b
        kept = _some_identities(a.n_identities, math.sqrt(MODEL_COMPARISONS / len(a)))
        rows = np.flatnonzero(kept[a.a] & kept[a.b])
        part = a.take(rows)
        return part, part.with_fields(score=b.score[rows], distance=b.distance)
    assert isinstance(a, Embeddings)
    assert isinstance(b, Embeddings)
    pairs = len(a) * (len(a) - 1) / 2.0
    kept = _some_identities(a.n_identities, min(math.sqrt(MODEL_COMPARISONS / pairs), 1.0))
    rows = np.flatnonzero(kept[a.codes])
    return a.take(rows).comparisons(), b.take(rows).comparisons()


def _some_identities(size: int, share: float) -> BoolArray:
    rng = np.random.default_rng(0)
    kept = np.zeros(size, dtype=bool)
    chosen: IntArray = rng.permutation(size)[: max(int(size * share), 2)]
    kept[chosen] = True
    return kept


def _each(threshold: float | Sequence[float] | None, size: int) -> FloatArray:
    try:
        grid = np.array(threshold, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"threshold must be a number or one number for each system; got {threshold!r}") from None
    if grid.ndim == 0:
        grid = np.full(size, float(grid))
    if grid.shape != (size,) or np.isnan(grid).any():
        raise UsageError(f"threshold must be one number, or {size} numbers, one for each system; got {threshold!r}")
    return grid


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


def _findings(matched: Matched) -> tuple[Note, ...]:
    return tuple(dict.fromkeys(text for source in matched.systems for text in source.findings()))
