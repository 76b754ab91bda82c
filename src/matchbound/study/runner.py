"""Run the replications of a study: in this process, in several, or on a cluster; and take up where a run stopped."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from matchbound._version import __version__
from matchbound.arraytypes import FloatArray
from matchbound.errors import DataError, UsageError, plainly
from matchbound.files.writing import whole_file
from matchbound.results.interval import check_whole
from matchbound.study.methods import Draws, Method
from matchbound.study.samples import Cell, Sample

Progress = Callable[[int, int], None]

BLOCK = 20
"""Replications that one task makes."""
WRITE_EVERY = 20.0
"""Seconds between two writings of an unfinished run."""


class Sampler(Protocol):
    """Draws the data set of a replication; it must be picklable and say in `repr` all that decides its draws."""

    def sample(self, rng: np.random.Generator, cells: tuple[Cell, ...]) -> Sample:
        """One data set."""


class Cluster(Protocol):
    """A Dask client, as far as studies use it."""

    def get_executor(self) -> Executor:
        """An executor of `concurrent.futures` that runs on the cluster."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What every replication of a study does.

    sampler
        Where data sets come from.
    cells
        The rates.
    methods
        Names and functions.
    levels : float64 array, shape (L,)
    n_resamples
        B.
    seed
        Replication r draws from ``SeedSequence(seed, spawn_key=(r,))``.
    """

    sampler: Sampler
    cells: tuple[Cell, ...]
    methods: tuple[tuple[str, Method], ...]
    levels: FloatArray
    n_resamples: int
    seed: int

    def fingerprint(self) -> str:
        """What decides the answer, in short; the number of replications does not."""
        said = repr(
            (
                __version__,
                repr(self.sampler),
                self.cells,
                [name for name, _ in self.methods],
                self.levels.tolist(),
                self.n_resamples,
                self.seed,
            )
        )
        return hashlib.sha256(said.encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What replications gave.

    limits : float64 array, shape (replications, cells, methods, levels, 2)
    errors, comparisons : float64 arrays, shape (replications, cells)
    """

    limits: FloatArray = field(repr=False)
    errors: FloatArray = field(repr=False)
    comparisons: FloatArray = field(repr=False)


def replicate(plan: Plan, replications: Sequence[int]) -> Outcomes:
    """Some replications, one after the other."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        made = [_once(plan, number) for number in replications]
    return Outcomes(*(np.array(part) for part in zip(*made, strict=True)))


def _once(plan: Plan, number: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    seed = np.random.SeedSequence(plan.seed, spawn_key=(number,))
    sample = plan.sampler.sample(np.random.default_rng(_child(seed, 0)), plan.cells)
    draws = Draws(seed, plan.n_resamples, sample.n_identities)
    limits = np.stack([method(sample, plan.levels, draws) for _, method in plan.methods], axis=1)
    errors, comparisons = np.zeros(len(plan.cells)), np.zeros(len(plan.cells))
    impostor, genuine = sample.far_tally.impostor, sample.frr_tally.genuine
    errors[list(sample.far_cells)] = impostor.errors.sum(axis=1) / 2.0
    comparisons[list(sample.far_cells)] = impostor.comparisons.sum() / 2.0
    errors[list(sample.frr_cells)] = genuine.errors.sum(axis=1)
    comparisons[list(sample.frr_cells)] = genuine.comparisons.sum()
    for c in sample.curve_cells:
        comparisons[c] = genuine.comparisons.sum()
        errors[c] = sample.curve.at_far(plan.cells[c].target).estimate * comparisons[c]
    return limits, errors, comparisons


def _child(seed: np.random.SeedSequence, stream: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, stream))


def run(
    plan: Plan,
    replications: int,
    *,
    workers: int = 1,
    executor: Executor | Cluster | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Outcomes:
    """All replications of a plan; the answer does not depend on who makes them.

    Parameters
    ----------
    workers
        Processes on this machine; with one, everything runs in this process.
    executor
        A Dask client, or any executor of `concurrent.futures`, instead of processes.
    resume
        A file (``.npz``) to which finished replications are written, and from which they are taken. A run with more
        replications takes those of a shorter one.
    progress
        Called as ``progress(done, total)``.
    """
    check_whole(workers, "workers")
    store = _Store.open(plan, replications, None if resume is None else Path(resume))
    missing = store.missing()
    blocks = [missing[start : start + BLOCK] for start in range(0, len(missing), BLOCK)]
    if progress is not None:
        progress(replications - len(missing), replications)
    for block, made in _made(plan, blocks, min(workers, max(len(blocks), 1)), executor):
        store.put(block, made)
        if progress is not None:
            progress(store.count, replications)
    return store.finish()


def _made(
    plan: Plan, blocks: list[list[int]], workers: int, executor: Executor | Cluster | None
) -> Iterator[tuple[list[int], Outcomes]]:
    if not blocks:
        return
    if executor is None and workers == 1:
        for block in blocks:
            yield block, replicate(plan, block)
        return
    with _crew(workers, executor) as crew:
        waiting: dict[Future[Outcomes], list[int]] = {crew.submit(replicate, plan, block): block for block in blocks}
        try:
            for future in as_completed(list(waiting)):
                yield waiting.pop(future), future.result()
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def _crew(workers: int, executor: Executor | Cluster | None) -> Iterator[Executor]:
    if executor is not None:
        yield executor if isinstance(executor, Executor) else executor.get_executor()
        return
    import multiprocessing

    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


def finished_part(path: Path) -> dict[str, NDArray[Any]] | None:
    """What a stopped study left in a file; None where there is no file."""
    if not path.exists():
        return None
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:  # a damaged archive makes numpy raise nearly anything
        raise DataError(
            f"{path}: cannot be read as a study to resume ({plainly(error, 200)}); delete it to start afresh"
        ) from None


class _Store:
    """Finished replications, in memory and, where asked, in a file."""

    def __init__(self, plan: Plan, replications: int, path: Path | None) -> None:
        cells = len(plan.cells)
        self._fingerprint = plan.fingerprint()
        self._path = path
        self._wanted = replications
        self._done = np.zeros(replications, dtype=bool)
        self._limits = np.full((replications, cells, len(plan.methods), plan.levels.size, 2), np.nan)
        self._errors = np.zeros((replications, cells))
        self._comparisons = np.zeros((replications, cells))
        self._written = time.monotonic()
        self._changed = False

    @staticmethod
    def open(plan: Plan, replications: int, path: Path | None) -> _Store:
        kept = None if path is None else finished_part(path)
        if kept is not None and str(kept.get("fingerprint", "")) != plan.fingerprint():
            raise UsageError(
                f"{path}: holds another study (other data, methods, levels, rates or seed); name another file"
            )
        store = _Store(plan, max(replications, 0 if kept is None else int(kept["done"].size)), path)
        store._wanted = replications
        if kept is not None:
            size = int(kept["done"].size)
            store._done[:size] = kept["done"]
            store._limits[:size], store._errors[:size] = kept["limits"], kept["errors"]
            store._comparisons[:size] = kept["comparisons"]
        return store

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self._done[: self._wanted]))

    def missing(self) -> list[int]:
        return [int(r) for r in np.flatnonzero(~self._done[: self._wanted])]

    def put(self, replications: Sequence[int], made: Outcomes) -> None:
        rows = list(replications)
        self._limits[rows], self._errors[rows], self._comparisons[rows] = made.limits, made.errors, made.comparisons
        self._done[rows] = True
        self._changed = True
        if time.monotonic() - self._written > WRITE_EVERY:
            self._write()

    def finish(self) -> Outcomes:
        self._write()
        wanted = slice(0, self._wanted)
        return Outcomes(self._limits[wanted], self._errors[wanted], self._comparisons[wanted])

    def _write(self) -> None:
        if self._path is None or not self._changed:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(self._path) as place, open(place, "wb") as stream:
            np.savez(
                stream,
                fingerprint=np.array(self._fingerprint),
                done=self._done,
                limits=self._limits,
                errors=self._errors,
                comparisons=self._comparisons,
            )
        self._written = time.monotonic()
        self._changed = False
