"""The replications of a coverage study: draw a data set, call the interval methods on it, keep the limits.

A study draws its data sets from a `Sampler`. Each replication has random streams of its own, so that an answer depends
neither on who makes it nor on which other methods are asked. A stopped study resumes from one file.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from matchbound._version import __version__
from matchbound.arraytypes import BoolArray, FloatArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError, MatchboundWarning, UsageError, plainly
from matchbound.files.writing import whole_file
from matchbound.stats.resampling import BOOTSTRAPS
from matchbound.study.models import SyntheticModel

Metric = Literal["far", "frr", "frr@far"]
Data = Comparisons | Embeddings
# ``method(number, levels, n_resamples, seed)`` gives (low, high) at each level for a rate or a point of a curve.
Method = Callable[[Any, FloatArray, int, int], Sequence[tuple[float, float]]]
Progress = Callable[[int, int], None]

# Streams of random numbers of one replication.
DATA_STREAM, RESAMPLING_STREAM = 0, 1
# Replications that one task makes.
BLOCK = 20


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
        arrays = (np.ascontiguousarray(values).tobytes() for values in self.source.arrays)
        digest = hashlib.sha256(b"".join(arrays)).hexdigest()
        return f"Sampler({self.n_identities} of {self.source.n_identities} identities, {digest[:16]})"


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


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Limits of R replications, shape (R, cells, methods, levels, 2), NaN where undefined, and counts (R, cells)."""

    limits: FloatArray = field(repr=False)
    errors: FloatArray = field(repr=False)
    comparisons: FloatArray = field(repr=False)

    def first(self, count: int) -> Outcomes:
        return Outcomes(self.limits[:count], self.errors[:count], self.comparisons[:count])


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
        decides = (
            __version__,
            repr(self.sampler),
            self.cells,
            [name for name, _ in self.methods],
            self.levels.tolist(),
            self.n_resamples,
            self.seed,
        )
        return hashlib.sha256(repr(decides).encode()).hexdigest()

    def replicate(self, replications: Sequence[int]) -> Outcomes:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, user_api="blas"):
            rows = [self._once(number) for number in replications]
        return Outcomes(*(np.array(column) for column in zip(*rows, strict=True)))

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
    resume: Path | None = None,
    progress: Progress | None = None,
) -> Outcomes:
    """All replications; the answer does not depend on who makes them. Parameters as in `coverage_study`."""
    done, outcomes = _kept(setup, replications, resume)

    def missing() -> list[int]:
        return [int(row) for row in np.flatnonzero(~done[:replications])]

    blocks = [missing()[start : start + BLOCK] for start in range(0, len(missing()), BLOCK)]
    if progress is not None:
        progress(replications - len(missing()), replications)
    # warnings are ignored here and not in each replication: filters belong to the process, and threads share them
    with warnings.catch_warnings():
        _ignore_warnings()
        for block, part in _outcomes(setup, blocks, min(workers, max(len(blocks), 1)), executor):
            done[block] = True
            for name, values in vars(part).items():
                getattr(outcomes, name)[block] = values
            if resume is not None:
                resume.parent.mkdir(parents=True, exist_ok=True)
                with whole_file(resume) as place, open(place, "wb") as stream:
                    np.savez(stream, fingerprint=np.array(setup.fingerprint), done=done, **vars(outcomes))
            if progress is not None:
                progress(replications - len(missing()), replications)
    return outcomes.first(replications)


def _kept(setup: Setup, replications: int, path: Path | None) -> tuple[BoolArray, Outcomes]:
    """Which replications are done, and room for the outcomes of all, with those that a stopped study left."""
    kept = {} if path is None else read_kept(path)
    if kept and str(kept["fingerprint"]) != setup.fingerprint:
        raise UsageError(f"{path}: holds another study (other data, methods, levels, rates or seed); name another file")
    before = int(kept["done"].size) if kept else 0
    size, cells = max(replications, before), len(setup.cells)
    done = np.zeros(size, dtype=bool)
    limits = np.full((size, cells, len(setup.methods), setup.levels.size, 2), np.nan)
    outcomes = Outcomes(limits, np.zeros((size, cells)), np.zeros((size, cells)))
    if kept:
        done[:before] = kept["done"]
        for name, values in vars(outcomes).items():
            values[:before] = kept[name]
    return done, outcomes


def _outcomes(
    setup: Setup, blocks: list[list[int]], workers: int, executor: Any
) -> Iterator[tuple[list[int], Outcomes]]:
    if executor is None and workers == 1:
        for block in blocks:
            yield block, setup.replicate(block)
        return
    with _pool(workers, executor) as pool:
        waiting: dict[Future[Outcomes], list[int]] = {pool.submit(setup.replicate, block): block for block in blocks}
        try:
            for future in as_completed(list(waiting)):
                yield waiting.pop(future), future.result()
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


def read_kept(path: Path) -> dict[str, NDArray[Any]]:
    """What a stopped study left in a file; empty where there is no file."""
    if not path.exists():
        return {}
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
            return {name: archive[name] for name in ("fingerprint", "done", "limits", "errors", "comparisons")}
    except Exception as error:  # a damaged archive makes numpy raise nearly anything
        raise DataError(
            f"{path}: cannot be read as a study to resume ({plainly(error, 200)}); delete it to start afresh"
        ) from None
