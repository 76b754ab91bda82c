"""Coverage studies: how often intervals hold the true rate, over many data sets.

A study draws its data sets from a `Sampler`, calls the interval methods on each and keeps the limits. Each replication
has random streams of its own, so that an answer depends neither on who makes it nor on which other methods are asked. A
stopped study resumes from one file.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from matchbound._version import __version__
from matchbound.arraytypes import FloatArray
from matchbound.counting.checkpoint import Checkpoint, fingerprint
from matchbound.counting.recount import rank_scores
from matchbound.counting.run import Partial
from matchbound.data.comparisons import Comparisons, Source
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError, MatchboundWarning, UsageError, argument, check_level, check_whole, named
from matchbound.files.writing import write_atomically
from matchbound.notes import Note
from matchbound.show.numbers import level_text, percent
from matchbound.show.records import to_csv
from matchbound.show.shown import Shown
from matchbound.show.tables import Table, as_table
from matchbound.stats.intervals import wilson
from matchbound.stats.resampling import BOOTSTRAPS, seed_of
from matchbound.study.models import SyntheticModel, population_of

Metric = Literal["far", "frr", "frr@far"]
Data = Comparisons | Embeddings
# ``method(number, levels, n_resamples, seed)`` gives (low, high) at each level for a rate or a point of a curve.
Method = Callable[[Any, FloatArray, int, int], Sequence[tuple[float, float]]]
Progress = Callable[[int, int], None]

# Streams of random numbers of one replication.
DATA_STREAM, RESAMPLING_STREAM = 0, 1
# Replications that one task makes.
BLOCK = 20
LEGEND = (
    "coverage: share of data sets whose interval held the truth, with its 95% Wilson interval; below, above: the "
    "interval lay wholly below, or above, the truth."
)


@dataclass(frozen=True)
class Cell:
    """One rate that a study asks about.

    ``"frr@far"`` is FRR at the sample's own threshold for a FAR, and `threshold` then the population's. `target` is the
    rate that the threshold was meant to give (that FAR), `truth` the population's rate, which an interval must cover.
    """

    metric: Metric
    target: float
    threshold: float
    truth: float


@dataclass(frozen=True, repr=False)
class Sampler:
    """Data sets of G people: new ones of a model, or some of the data, drawn without replacement.

    Its `repr` says everything that decides the draws.
    """

    source: SyntheticModel | Data
    n_identities: int

    def sample(self, rng: np.random.Generator) -> Data:
        if isinstance(self.source, SyntheticModel):
            return self.source.sample(self.n_identities, rng)
        return self.source.among(np.sort(rng.choice(self.source.n_identities, self.n_identities, replace=False)))

    def __repr__(self) -> str:
        if isinstance(self.source, SyntheticModel):
            return f"Sampler({self.source!r}, {self.n_identities})"
        digest = fingerprint(*self.source.arrays)[:16]
        return f"Sampler({self.n_identities} of {self.source.n_identities} identities, {digest})"


@dataclass(frozen=True)
class NamedMethod:
    """A method of ``interval`` by name, with options; a bootstrap is drawn once for all levels."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(self, number: Any, levels: FloatArray, n_resamples: int, seed: int) -> Sequence[tuple[float, float]]:
        options = dict(self.options)
        if self.name in BOOTSTRAPS:
            drawn = number.bootstrap(self.name, n_resamples, seed, **options)
            intervals = [drawn.interval(float(level)) for level in levels]
        else:
            intervals = [number.interval(self.name, float(level), **options) for level in levels]
        return [(interval.low, interval.high) for interval in intervals]


@dataclass(eq=False)
class Outcomes(Partial):
    """Limits of R replications, shape (R, cells, methods, levels, 2), NaN where undefined, and counts (R, cells).

    `blocks` are their numbers, in whose order the rows are.
    """

    limits: FloatArray = field(repr=False)
    errors: FloatArray = field(repr=False)
    comparisons: FloatArray = field(repr=False)

    @classmethod
    def restored(cls, state: dict[str, FloatArray], blocks: set[int]) -> Outcomes:
        return cls(state["limits"], state["errors"], state["comparisons"], blocks=blocks)

    def state(self) -> dict[str, FloatArray]:
        return {"limits": self.limits, "errors": self.errors, "comparisons": self.comparisons}

    def join(self, other: Outcomes, workers: int | None) -> None:
        order = np.argsort([*sorted(self.blocks), *sorted(other.blocks)])
        for name, rows in other.state().items():
            setattr(self, name, np.concatenate([getattr(self, name), rows])[order])

    def first(self, count: int) -> Outcomes:
        return Outcomes(*(rows[:count] for rows in self.state().values()), blocks=set(range(count)))


@dataclass(frozen=True, eq=False)
class Setup:
    """What every replication of a study does; replication r draws from ``SeedSequence(seed, spawn_key=(r,))``."""

    sampler: Sampler
    cells: tuple[Cell, ...]
    methods: tuple[tuple[str, Method], ...]
    levels: FloatArray
    n_resamples: int
    seed: int

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything that decides the answer; the number of replications does not."""
        names = [name for name, _ in self.methods]
        return fingerprint(__version__, self.sampler, self.cells, names, self.levels, self.n_resamples, self.seed)

    def replicate(self, replications: Sequence[int]) -> Outcomes:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, user_api="blas"):
            rows = [self._once(number) for number in replications]
        return Outcomes(*(np.array(column) for column in zip(*rows, strict=True)), blocks=set(replications))

    def _once(self, number: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        def stream(which: int) -> np.random.Generator:
            return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number, which)))

        numbers = self._numbers(self.sampler.sample(stream(DATA_STREAM)))
        seed = int(stream(RESAMPLING_STREAM).integers(0, 2**62))
        limits = np.full((len(self.cells), len(self.methods), self.levels.size, 2), np.nan)
        errors, comparisons = np.zeros(len(self.cells)), np.zeros(len(self.cells))
        for c, (rate, total) in enumerate(numbers):
            if total:
                errors[c], comparisons[c] = rate.estimate * total, total
                limits[c] = [method(rate, self.levels, self.n_resamples, seed) for _, method in self.methods]
        return limits, errors, comparisons

    def _numbers(self, data: Data) -> list[tuple[Any, int]]:
        """The rate of each cell in a data set, and its comparisons."""
        from matchbound.calls.evaluate import evaluate, roc

        if self.cells[0].metric == "frr@far":
            curve = roc(data, workers=1)
            points = [curve.at_far(cell.target) for cell in self.cells]
            return [(point, int(point.counts[1] or 0)) for point in points]
        measured = evaluate(data, [cell.threshold for cell in self.cells], workers=1)
        rates = [getattr(one, cell.metric) for one, cell in zip(measured, self.cells, strict=True)]
        return [(rate, int(rate.comparisons)) for rate in rates]


def run(
    setup: Setup,
    replications: int,
    *,
    workers: int = 1,
    executor: Any = None,
    checkpoint: Checkpoint | None = None,
    outcomes: Outcomes | None = None,
    progress: Progress | None = None,
) -> Outcomes:
    """All replications but for the `outcomes` that are there; the answer does not depend on who makes them."""
    missing = [number for number in range(replications) if outcomes is None or number not in outcomes.blocks]
    blocks = [missing[start : start + BLOCK] for start in range(0, len(missing), BLOCK)]
    done = replications - len(missing)
    if progress is not None:
        progress(done, replications)
    # warnings are ignored here and not in each replication: filters belong to the process, and threads share them
    with warnings.catch_warnings():
        _ignore_warnings()
        for part in _outcomes(setup, blocks, min(workers, max(len(blocks), 1)), executor):
            done += len(part.blocks)
            if outcomes is None:
                outcomes = part
            else:
                outcomes.add(part)
            if checkpoint is not None:
                checkpoint.save(outcomes)
            if progress is not None:
                progress(done, replications)
    assert outcomes is not None
    return outcomes.first(replications)


def _outcomes(setup: Setup, blocks: list[list[int]], workers: int, executor: Any) -> Iterator[Outcomes]:
    if executor is None and workers == 1:
        yield from map(setup.replicate, blocks)
        return
    with _pool(workers, executor) as pool:
        waiting: list[Future[Outcomes]] = [pool.submit(setup.replicate, block) for block in blocks]
        try:
            for future in as_completed(waiting):
                yield future.result()
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def _pool(workers: int, executor: Any) -> Iterator[Executor]:
    """An executor of `concurrent.futures`: the one given, that of a Dask client, or new processes."""
    if executor is not None:
        client = getattr(executor, "client", executor)
        yield client if isinstance(client, Executor) else client.get_executor()
        return
    import multiprocessing

    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn, initializer=_ignore_warnings) as pool:
        yield pool


def _ignore_warnings() -> None:
    """What an interval on one data set warns of is part of what is studied."""
    warnings.simplefilter("ignore", MatchboundWarning)


METHODS = ("naive-wilson", "wilson", "wald", "subsets", "two-level", "vertex", "double-or-nothing", "latent")
# For FRR at a FAR: the methods of the paper's figure on ROC curves (union is its Wilson), and `influence`.
CURVE_METHODS: dict[str, Method] = {
    "union": NamedMethod("union"),
    "double-or-nothing": NamedMethod("double-or-nothing"),
    "smoothed double-or-nothing": NamedMethod("double-or-nothing", (("smooth", "log-normal"),)),
    "influence": NamedMethod("influence"),
}
RATES = {"far": (1e-4, 1e-3, 1e-2, 1e-1), "frr": (1e-3, 1e-2, 1e-1)}
# The seed's stream that splits identities in two: none that a replication uses.
SPLIT_STREAM = 1 << 32
# Of more instances than this in the half that sets thresholds, impostor pairs are scored among a random sample.
MOST_ROWS = 10_000


@dataclass(frozen=True)
class CoverageRow(Shown):
    """One method at one level for one rate.

    `target` is the rate that the threshold was meant to give (the FAR of ``"frr@far"``), `truth` that of the population
    there, which intervals were to cover. `replications` are the data sets on which the interval was defined; `coverage`
    is the share of them whose interval held the truth, with its own 95% Wilson interval, and `missed_below` and
    `missed_above` that whose interval lay wholly below, and above.

    `coverage_adjusted`, where data sets were drawn without replacement from a limited population, is the coverage in an
    unlimited one, to first order. Drawing G of H identities makes the variance of a rate (1 − G/H) times as large, so
    that intervals seem to cover more than they would; where G/H is not small look at this, not at `coverage`. Equal to
    `coverage` for synthetic models.
    """

    metric: str
    target: float
    truth: float
    threshold: float
    method: str
    level: float
    n_identities: int
    replications: int
    coverage: float
    coverage_low: float
    coverage_high: float
    missed_below: float
    missed_above: float
    mean_width: float
    median_width: float
    coverage_adjusted: float
    mean_estimate: float


@dataclass(frozen=True, eq=False)
class CoverageStudy(Shown):
    """The results of a study.

    `rows` is tidy: one for each rate, method and level (and number of identities). `outcomes` has the limits of every
    interval of every replication, for each number of identities.
    """

    rows: tuple[CoverageRow, ...] = field(repr=False)
    seed: int
    n_resamples: int
    source: str
    outcomes: tuple[Outcomes, ...] = field(repr=False, default=())

    def to_records(self) -> list[dict[str, Any]]:
        return [record for row in self.rows for record in row.to_records()]

    def _tables(self) -> list[Table]:
        rows = [
            (
                *(row.metric.upper(), percent(row.truth), row.method, level_text(row.level)),
                *(f"{row.n_identities}", f"{row.replications}"),
                f"{100 * row.coverage:.1f} [{100 * row.coverage_low:.1f}, {100 * row.coverage_high:.1f}]",
                *(f"{100 * row.missed_below:.1f}", f"{100 * row.missed_above:.1f}"),
                f"{row.mean_width / row.truth:.3g}" if row.truth else "",
            )
            for row in self.rows
        ]
        headings = ("metric", "truth", "method", "level", "identities", "data sets", "coverage %", "below", "above")
        return [replace(as_table((*headings, "width/truth"), rows), note=LEGEND)]

    def to_csv(self, path: str | os.PathLike[str], header: Mapping[str, Any] | None = None) -> None:
        """Write the rows as CSV after lines ``# key: value`` (`header` too); the file appears whole or not at all."""
        facts = {"source": self.source, "seed": self.seed, **(header or {})}
        head = "".join(f"# {key}: {value}\n" for key, value in facts.items())
        write_atomically(path, head + to_csv(self.to_records()))


def coverage_study(
    source: SyntheticModel | Embeddings | Comparisons,
    *,
    methods: Sequence[str] | Mapping[str, Method] | None = None,
    levels: Sequence[float] = (0.95,),
    G: int | Sequence[int] = 50,
    M: int | None = None,
    rates: Mapping[str, Sequence[float]] | None = None,
    replications: int = 200,
    rng: int | np.random.Generator | None = None,
    n_resamples: int = 1000,
    workers: int = 1,
    executor: Any = None,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    truth_identities: int = 200_000,
) -> CoverageStudy:
    """How often intervals cover the true rate, and how wide they are.

    With a `SyntheticModel`, each replication is a data set of G new people, and thresholds are those at which a large
    simulated population has the given rates (the paper's §6.1). With data of your own, identities are split in two at
    random; one half sets the thresholds, the other is the population from which each replication draws G identities
    without replacement (§6.2), and whose own rates at those thresholds are to be covered.

    Parameters
    ----------
    source
        A model, embeddings, or comparisons with identities.
    methods
        Names of methods of ``interval``, or a mapping from names to functions ``f(number, levels, n_resamples, seed)``
        that give (low, high) at each level. By default all but ``"naive-bootstrap"``; for ``"frr@far"``
        those of `CURVE_METHODS`.
    levels
        Nominal levels.
    G
        Identities in each data set; several give one study each.
    M
        Instances of each identity: exactly M for a model (by default its own law), at most M for embeddings (by default
        10, as in the paper). Comparisons are taken as they are.
    rates
        Targets ``{"far": […], "frr": […]}``, or ``{"frr@far": […]}`` for FRR at the sample's own thresholds. By default
        FAR of 1e-4 to 0.1 and FRR of 1e-3 to 0.1, without those of which the half that sets thresholds has too few
        comparisons.
    replications, n_resamples
        Data sets, and replicates of each bootstrap.
    rng
        Seed; replication r draws from ``SeedSequence(seed, spawn_key=(r,))``, whoever makes it.
    workers, executor
        Processes on this machine; or a Dask client, or any executor of `concurrent.futures`. A script that asks for
        several processes must guard its entry with ``if __name__ == "__main__":``.
    resume
        A file (``.npz``) in which finished replications are kept; the same call again continues where it stopped.
    progress
        As for `evaluate`.
    truth_identities
        Size of the simulated population.

    Returns
    -------
    CoverageStudy

    See Also
    --------
    SyntheticModel

    Examples
    --------
    >>> import matchbound as mb
    >>> study = mb.coverage_study(
    ...     mb.SyntheticModel(), methods=["wilson"], rates={"far": [0.1]}, replications=20, rng=0, truth_identities=4000
    ... )
    >>> study.rows[0].replications
    20
    """
    wanted = _targets(rates if rates is not None else RATES)
    chosen = _methods(methods, curve=wanted[0][0] == "frr@far")
    nominal = np.array([check_level(level, "levels") for level in np.atleast_1d(levels).tolist()])
    if not nominal.size:
        raise UsageError("levels holds no level; give at least one, such as 0.95")
    seed = seed_of(rng)
    for value, name in ((replications, "replications"), (n_resamples, "n_resamples"), (workers, "workers")):
        check_whole(value, name)
    counts = np.atleast_1d(G).tolist()
    population: SyntheticModel | Data
    if isinstance(source, SyntheticModel):
        population = source if M is None else replace(source, sizes=M)
        cells, described, most = _model_cells(population, truth_identities, wanted), repr(population), None
    elif isinstance(source, Source):
        set_on, population = split_identities(source, seed=seed, most=10 if M is None else M)
        if rates is None:
            wanted = _supported(set_on, wanted)
        cells = _data_cells(set_on, population, wanted)
        described = f"{source.n_identities} identities of data, half of them drawn from"
        most = population.n_identities
    else:
        raise UsageError(f"source must be a SyntheticModel, Embeddings or Comparisons; got {type(source).__name__}")
    if most is not None and max(counts, default=0) > most:
        raise UsageError(f"the half to draw from has {most} identities, not {max(counts)}; give {argument('G', most)}")
    setups = [Setup(Sampler(population, count), cells, chosen, nominal, int(n_resamples), seed) for count in counts]
    checkpoints = [_checkpoint(resume, setup, several=len(counts) > 1) for setup in setups]
    # a damaged file is reported before hours of work, not after
    before = [None if one is None else one.load(Outcomes.restored) for one in checkpoints]
    rows: list[CoverageRow] = []
    outcomes: list[Outcomes] = []
    for count, setup, checkpoint, there in zip(counts, setups, checkpoints, before, strict=True):
        part = run(
            setup, replications, workers=workers, executor=executor, checkpoint=checkpoint, outcomes=there,
            progress=progress,
        )  # fmt: skip
        outcomes.append(part)
        rows.extend(summary(setup, part, count, 0.0 if most is None else count / most))
    return CoverageStudy(tuple(rows), seed, int(n_resamples), described, tuple(outcomes))


def _checkpoint(resume: str | os.PathLike[str] | None, setup: Setup, several: bool) -> Checkpoint | None:
    """The file of a study of one number of identities; its name says which, where there are several."""
    if resume is None:
        return None
    place = Path(resume)
    place.parent.mkdir(parents=True, exist_ok=True)
    name = f"{place.stem}-g{setup.sampler.n_identities}{place.suffix}" if several else place.name
    return Checkpoint(place.with_name(name), setup.fingerprint)


def split_identities(data: Data, *, seed: int, most: int = 10) -> tuple[Data, Data]:
    """Two random halves of the identities; of embeddings, at most `most` instances of each, chosen at random."""
    if data.n_identities < 4:
        raise DataError(f"a study needs at least 4 identities to split in two; the data have {data.n_identities}")
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(SPLIT_STREAM,)))
    order = rng.permutation(data.n_identities)
    halves = [np.sort(part) for part in np.split(order, [data.n_identities // 2])]
    if data.kind == "embeddings":
        rows = rng.permutation(len(data))
        owner = data.arrays[0][rows]
        order = np.argsort(owner, kind="stable")
        place = np.arange(rows.size) - np.searchsorted(owner[order], owner[order])
        data = data.take(rows[order][place < most])
    return data.among(halves[0]), data.among(halves[1])


def _data_cells(set_on: Data, drawn_from: Data, wanted: Sequence[tuple[Metric, float]]) -> tuple[Cell, ...]:
    """The rates of one half at thresholds at which the other has the target rates, or at its own for FRR at a FAR."""
    from matchbound.calls.evaluate import evaluate, roc

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchboundWarning)
        if wanted[0][0] == "frr@far":
            curve = roc(drawn_from)
            points = [curve.at_far(rate) for _, rate in wanted]
            return tuple(Cell("frr@far", point.target, point.threshold, point.estimate) for point in points)
        thresholds = [at for metric in ("far", "frr") for at in _thresholds(set_on, metric, wanted)]
        there = evaluate(drawn_from, thresholds)
    cells = []
    for (metric, rate), threshold, rates in zip(wanted, thresholds, there, strict=True):
        number = rates.far if metric == "far" else rates.frr
        if not number.comparisons:
            raise DataError(f"the half of the identities to draw from has no comparisons for {metric}")
        cells.append(Cell(metric, rate, threshold, float(number.estimate)))
    return tuple(cells)


def _supported(data: Data, wanted: Sequence[tuple[Metric, float]]) -> list[tuple[Metric, float]]:
    """The default targets that mean an error or more among the comparisons of the half that sets thresholds.

    The others are named in a warning; all stay where none is supported, and `_thresholds` says why not.
    """
    comparisons = {"far": data.n_impostor, "frr": data.n_genuine}
    kept = [(metric, rate) for metric, rate in wanted if comparisons[metric] * rate >= 1.0]
    left_out = ", ".join(f"{metric} {rate:g}" for metric, rate in wanted if (metric, rate) not in kept)
    if kept and left_out:
        text = (
            f"{left_out} left out: the half of the identities that sets thresholds has only {data.n_impostor:,} "
            f"impostor and {data.n_genuine:,} genuine comparisons"
        )
        warnings.warn(Note("rates-left-out", text), MatchboundWarning, stacklevel=3)
    return kept or list(wanted)


def _thresholds(data: Data, metric: str, wanted: Sequence[tuple[Metric, float]]) -> list[float]:
    """Where the shares of the comparisons err that are wanted of a metric, to the nearest comparison scored."""
    rates = [rate for name, rate in wanted if name == metric]
    count, kind = (data.n_impostor, "impostor") if metric == "far" else (data.n_genuine, "genuine")
    if rates and count * min(rates) < 1.0:
        raise DataError(
            f"{metric} {min(rates):g}: the half that sets thresholds has only {count} {kind} comparisons; ask for "
            "larger rates"
        )
    errors = [round(count * rate) for rate in rates]
    return rank_scores(data, errors, kind, most_rows=MOST_ROWS).tolist() if errors else []  # type: ignore[arg-type]


def _model_cells(model: SyntheticModel, size: int, wanted: Sequence[tuple[Metric, float]]) -> tuple[Cell, ...]:
    """The rates of a simulated population at thresholds at which it has the target rates."""
    population, cells = population_of(model, size), []
    for metric, rate in wanted:
        true = population.meet("far" if metric == "frr@far" else metric, rate)
        truth = float(population.rates("frr", true.threshold)) if metric == "frr@far" else true.rate
        cells.append(Cell(metric, rate, true.threshold, truth))
    return tuple(cells)


def summary(setup: Setup, made: Outcomes, n_identities: int, fraction: float = 0.0) -> list[CoverageRow]:
    """Rows of a study from the limits of its replications; `fraction` of the population is drawn each time."""
    rows = []
    for c, cell in enumerate(setup.cells):
        stretched = stretched_truth(made.errors[:, c], made.comparisons[:, c], cell.truth, fraction)
        with np.errstate(invalid="ignore"):
            estimates = made.errors[:, c] / made.comparisons[:, c]
        for s, (name, _) in enumerate(setup.methods):
            for k, level in enumerate(setup.levels):
                limits = made.limits[:, c, s, k]
                defined = np.isfinite(limits).all(axis=1)
                if not defined.any():
                    continue
                low, high = limits[defined].T
                coverage = float(np.mean((low <= cell.truth) & (cell.truth <= high)))
                width, moved = high - low, stretched[defined]
                rows.append(
                    CoverageRow(
                        metric=cell.metric,
                        target=cell.target,
                        truth=cell.truth,
                        threshold=cell.threshold,
                        method=name,
                        level=float(level),
                        n_identities=n_identities,
                        replications=int(defined.sum()),
                        coverage=coverage,
                        **dict(zip(("coverage_low", "coverage_high"), wilson(coverage, low.size, 0.025), strict=True)),
                        missed_below=float(np.mean(high < cell.truth)),
                        missed_above=float(np.mean(low > cell.truth)),
                        mean_width=float(width.mean()),
                        median_width=float(np.median(width)),
                        coverage_adjusted=float(np.mean((low <= moved) & (moved <= high))),
                        mean_estimate=float(np.nanmean(estimates)),
                    )
                )
    return rows


def stretched_truth(errors: FloatArray, comparisons: FloatArray, truth: float, fraction: float) -> FloatArray:
    """The truth moved away from each estimate to where the error of an unlimited population would put it.

    Drawing a share f of the identities without replacement makes the error of an estimate smaller by √(1 − f), to first
    order. The error is stretched by as much on the scale of log-odds, with half an error added so that a data set
    without errors has log-odds too.
    """
    if fraction <= 0.0 or not 0.0 < truth < 1.0:
        return np.full(errors.shape, truth)
    factor = 1.0 / np.sqrt(max(1.0 - fraction, 1e-9))
    estimate = np.log((errors + 0.5) / (comparisons - errors + 0.5))
    there = np.log(truth / (1.0 - truth))
    result: FloatArray = 1.0 / (1.0 + np.exp(-(estimate + factor * (there - estimate))))
    return result


def _targets(rates: Mapping[str, Sequence[float]]) -> list[tuple[Metric, float]]:
    names: tuple[Metric, ...] = ("far", "frr", "frr@far")
    unknown = sorted(set(rates) - set(names))
    if unknown:
        raise UsageError(f"rates: {unknown[0]!r} is not 'far', 'frr' or 'frr@far'")
    wanted = [(name, float(rate)) for name in names for rate in rates.get(name, ())]
    if len({name == "frr@far" for name, _ in wanted}) != 1:
        raise UsageError("rates: name target rates for 'far' and 'frr', or for 'frr@far', not both")
    return wanted


def _methods(methods: Sequence[str] | Mapping[str, Method] | None, curve: bool) -> tuple[tuple[str, Method], ...]:
    from matchbound.results.points import OperatingPoint
    from matchbound.results.rates import Rate

    if not isinstance(methods, Mapping):
        special = CURVE_METHODS if curve else dict.fromkeys(METHODS)
        known = tuple(dict.fromkeys((*special, *(OperatingPoint.methods if curve else Rate.methods))))
        asked = special if methods is None else [methods] if isinstance(methods, str) else methods
        names = [named(name, known, "methods") for name in asked]
        methods = {name: special.get(name) or NamedMethod(name) for name in names}
    if not methods:
        raise UsageError("methods: name at least one")
    return tuple(methods.items())
