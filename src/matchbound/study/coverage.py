"""Coverage studies: how often intervals hold the true rate, over many data sets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.data.embeddings import Embeddings
from matchbound.errors import UsageError
from matchbound.results.interval import check_level, check_whole, named
from matchbound.results.rates import METHODS as RATE_METHODS
from matchbound.show.shown import Shown
from matchbound.stats.intervals import wilson
from matchbound.stats.resampling import seed_of
from matchbound.study.curve_methods import CURVE_KNOWN, CURVE_METHODS, curve_method_named
from matchbound.study.methods import FAST, Method, method_named
from matchbound.study.models import SyntheticModel
from matchbound.study.populations import Population, population_of
from matchbound.study.runner import Cluster, Outcomes, Plan, Progress, Sampler, finished_part, run
from matchbound.study.samples import Cell, Sample
from matchbound.study.splits import HalfSampler, cells_of_half, curve_cells, split_identities

if TYPE_CHECKING:
    from matplotlib.axes import Axes


METHODS = tuple(FAST)
RATES = {"far": (1e-4, 1e-3, 1e-2, 1e-1), "frr": (1e-3, 1e-2, 1e-1)}


@dataclass(frozen=True)
class CoverageRow(Shown):
    """One method at one level for one rate.

    metric
        ``"far"``, ``"frr"`` or ``"frr@far"``.
    target
        The rate that the threshold was meant to give; the FAR of ``"frr@far"``.
    truth
        The rate of the population at the threshold: what intervals were to cover.
    threshold
        In the units of the scores.
    method, level
        The intervals.
    n_identities
        Identities in each data set.
    replications
        Data sets on which the interval was defined.
    coverage, coverage_low, coverage_high
        Share of them whose interval held the truth, with its own 95% Wilson interval.
    missed_below, missed_above
        Share of them whose interval lay wholly below, and wholly above, the truth.
    mean_width, median_width
        Of the intervals.
    coverage_adjusted
        Coverage as it would be of an unlimited population, to first order, where data sets were drawn without
        replacement from a limited one (see `matchbound.study.splits`); equal to `coverage` for synthetic models.
    mean_estimate
        Of the rate, over data sets.

    See Also
    --------
    CoverageStudy

    Examples
    --------
    >>> import matchbound as mb
    >>> model = mb.SyntheticModel(noise_variance=5.0)
    >>> study = mb.coverage_study(model, methods=["wilson"], G=15, M=2, rates={"far": [0.1]}, replications=20, rng=0)
    >>> row = study.rows[0]
    >>> row.method, row.target, round(row.coverage, 2)
    ('wilson', 0.1, 0.85)
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

    rows : tuple of CoverageRow
        Tidy: one for each rate, method and level (and number of identities).
    seed
        Of the study.
    n_resamples
        Bootstrap replicates of each interval.
    source
        What the data sets were.
    outcomes : tuple of Outcomes
        Limits of every interval of every replication, for each number of identities.

    See Also
    --------
    coverage_study

    Examples
    --------
    >>> import matchbound as mb
    >>> model = mb.SyntheticModel(noise_variance=5.0)
    >>> study = mb.coverage_study(model, methods=["wilson"], G=15, M=2, rates={"far": [0.1]}, replications=20, rng=0)
    >>> [row.method for row in study.rows]
    ['wilson']
    """

    rows: tuple[CoverageRow, ...] = field(repr=False)
    seed: int
    n_resamples: int
    source: str
    outcomes: tuple[Outcomes, ...] = field(repr=False, default=())

    def to_records(self) -> list[dict[str, Any]]:
        """One record per row of the study."""
        return [record for row in self.rows for record in row.to_records()]

    def select(self, **wanted: Any) -> list[CoverageRow]:
        """Rows whose fields have the given values: ``study.select(metric="far", method="wilson")``.

        Parameters
        ----------
        wanted
            Values of fields by name; a row must have all of them.
        """
        names = {item.name for item in fields(CoverageRow)}
        for name in wanted:
            if name not in names:
                raise UsageError(f"rows have no field {name!r}; they have {', '.join(sorted(names))}")
        return [row for row in self.rows if all(_same(getattr(row, name), value) for name, value in wanted.items())]

    def columns(self) -> dict[str, list[Any]]:
        """The rows by column."""
        return {item.name: [getattr(row, item.name) for row in self.rows] for item in fields(CoverageRow)}

    def to_csv(self, path: str | os.PathLike[str], header: Mapping[str, Any] | None = None) -> None:
        """Write the rows as CSV, after lines ``# key: value`` that say where they come from.

        Parameters
        ----------
        path
            The file to write; it appears whole or not at all.
        header
            What the first lines say, by key.
        """
        from matchbound.files.writing import write_atomically

        write_atomically(path, rows_csv(self.rows, {"source": self.source, "seed": self.seed, **(header or {})}))

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as Parquet, with the same facts in the metadata.

        Parameters
        ----------
        path
            The file to write; it appears whole or not at all.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table(self.columns())
        facts = {"source": self.source, "seed": str(self.seed), "n_resamples": str(self.n_resamples)}
        pq.write_table(table.replace_schema_metadata(facts), os.fspath(path))

    def plot(
        self, kind: Literal["nominal", "rate", "identities", "width"] = "nominal", **options: Any
    ) -> Sequence[Axes]:
        """Draw the study: coverage against the nominal level, the rate or the number of identities, or widths.

        Parameters
        ----------
        kind
            ``"nominal"``, ``"rate"``, ``"identities"`` or ``"width"``: what coverage is drawn against, or widths.
        options
            Of that picture.
        """
        from matchbound.study.plots import plot_study

        return plot_study(self.rows, kind, **options)


@dataclass(frozen=True)
class ModelSampler:
    """Data sets of G new people of a model."""

    model: SyntheticModel
    n_identities: int

    def sample(self, rng: np.random.Generator, cells: tuple[Cell, ...]) -> Sample:
        """One data set."""
        vectors, sizes = self.model.draw(self.n_identities, rng)
        return Sample(vectors, sizes, "euclidean", cells)


def coverage_study(
    source: SyntheticModel | Embeddings,
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
    executor: Executor | Cluster | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    truth_identities: int = 200_000,
    cache: str | os.PathLike[str] | None = None,
) -> CoverageStudy:
    """How often intervals cover the true rate, and how wide they are.

    With a `SyntheticModel`, each replication is a data set of G new people, and thresholds are those at which a large
    simulated population has the given rates (the paper's §6.1). With `Embeddings`, identities are split in two at
    random; one half sets the thresholds, the other is the population from which each replication draws G identities
    without replacement (§6.2), and whose own rates at those thresholds are to be covered.

    Parameters
    ----------
    source
        A model or real embeddings.
    methods
        Names that `Rate.interval` knows (or, for ``"frr@far"``, `CURVE_METHODS`), or a mapping from names to functions
        as in `matchbound.study.methods`. By default all but ``"naive-bootstrap"``.
    levels
        Nominal levels.
    G
        Identities in each data set; several give one study each, one after the other.
    M
        Instances of each identity: exactly so many for a model (by default its own law), at most so many for
        embeddings (by default 10, as in the paper).
    rates
        Target rates, ``{"far": […], "frr": […]}``; or ``{"frr@far": […]}`` for FRR at the sample's own thresholds for
        these FARs.
    replications
        Data sets.
    rng
        Seed; replication r draws from ``SeedSequence(seed, spawn_key=(r,))``, whoever makes it.
    n_resamples
        Replicates of each bootstrap.
    workers, executor
        Processes on this machine; or a Dask client, or any executor of `concurrent.futures`. A script that asks for
        several processes must guard its entry with ``if __name__ == "__main__":``.
    resume
        A file (``.npz``) in which finished replications are kept; the same call again takes up where it stopped.
    progress
        Called as ``progress(done, total)``.
    truth_identities, cache
        Size of the simulated population, and a folder in which it is kept.

    Returns
    -------
    CoverageStudy

    See Also
    --------
    CoverageStudy, SyntheticModel

    Examples
    --------
    >>> import matchbound as mb
    >>> study = mb.coverage_study(
    ...     mb.SyntheticModel(), methods=["wilson"], rates={"far": [0.1]}, replications=20, rng=0, truth_identities=4000
    ... )
    >>> study.rows[0].replications
    20
    """
    chosen = rates if rates is not None else RATES
    curve = tuple(chosen.get("frr@far", ()))
    named = _methods(methods, bool(curve))
    nominal = _levels(levels)
    seed = seed_of(rng)
    counts = [G] if isinstance(G, (int, np.integer)) else list(G)
    check_whole(replications, "replications")
    check_whole(n_resamples, "n_resamples")
    unknown = sorted(set(chosen) - {"far", "frr", "frr@far"})
    if unknown:
        raise UsageError(f"rates: {unknown[0]!r} is not 'far', 'frr' or 'frr@far'")
    far, frr = tuple(chosen.get("far", ())), tuple(chosen.get("frr", ()))
    if bool(far or frr) == bool(curve):
        raise UsageError("rates: name target rates for 'far' and 'frr', or for 'frr@far', not both")
    places = {count: _place(resume, count if len(counts) > 1 else None) for count in counts}
    for place in places.values():
        if place is not None:
            finished_part(place)  # a damaged file is told before hours of work, not after
    if isinstance(source, SyntheticModel):
        model = source if M is None else source.with_sizes(M)
        population = population_of(model, n_identities=truth_identities, cache=cache)
        cells = _model_cells(population, far, frr, curve)
        said, half = repr(model), None
    elif isinstance(source, Embeddings):
        set_on, drawn_from = split_identities(source, seed=seed, most=10 if M is None else M)
        cells = cells_of_half(set_on, drawn_from, far, frr) if not curve else curve_cells(drawn_from, curve)
        said, half = f"{source.n_identities} identities of real data, half of them drawn from", drawn_from
    else:
        raise UsageError(f"source must be a SyntheticModel or Embeddings; got {type(source).__name__}")
    rows: list[CoverageRow] = []
    outcomes: list[Outcomes] = []
    for count in counts:
        sampler: Sampler
        fraction = 0.0
        if half is None:
            sampler = ModelSampler(model, int(count))
        else:
            if count > half.n_identities:
                raise UsageError(f"G: the half to draw from has {half.n_identities} identities; {count} were asked for")
            sampler = HalfSampler(half, int(count))
            fraction = count / half.n_identities
        plan = Plan(sampler, cells, named, nominal, int(n_resamples), seed)
        made = run(plan, replications, workers=workers, executor=executor, resume=places[count], progress=progress)
        outcomes.append(made)
        rows.extend(summary(plan, made, int(count), fraction))
    return CoverageStudy(tuple(rows), seed, int(n_resamples), said, tuple(outcomes))


def _model_cells(
    population: Population, far: Sequence[float], frr: Sequence[float], curve: Sequence[float]
) -> tuple[Cell, ...]:
    truth = population.truth((*far, *curve), frr)
    cells = [Cell("far", true.rate, true.threshold, true.rate) for true in truth.far[: len(far)]]
    cells += [Cell("frr", true.rate, true.threshold, true.rate) for true in truth.frr]
    for true in truth.far[len(far) :]:
        there = float(population.rates("frr", true.threshold))
        cells.append(Cell("frr@far", true.rate, true.threshold, there))
    return tuple(cells)


def summary(plan: Plan, made: Outcomes, n_identities: int, fraction: float = 0.0) -> list[CoverageRow]:
    """Rows of a study from the limits of its replications; `fraction` of the population is drawn each time."""
    rows = []
    for c, cell in enumerate(plan.cells):
        stretched = _stretched(made.errors[:, c], made.comparisons[:, c], cell.truth, fraction)
        with np.errstate(invalid="ignore"):
            estimates = made.errors[:, c] / made.comparisons[:, c]
        for s, (name, _) in enumerate(plan.methods):
            for k, level in enumerate(plan.levels):
                low, high = made.limits[:, c, s, k, 0], made.limits[:, c, s, k, 1]
                defined = np.isfinite(low) & np.isfinite(high)
                total = int(np.count_nonzero(defined))
                if not total:
                    continue
                low, high = low[defined], high[defined]
                below, above = float(np.mean(high < cell.truth)), float(np.mean(low > cell.truth))
                coverage = float(np.mean((low <= cell.truth) & (cell.truth <= high)))
                moved = stretched[defined]
                adjusted = coverage
                if fraction > 0.0:
                    adjusted = float(np.mean((low <= moved) & (moved <= high)))
                bounds = wilson(coverage, total, 0.025)
                width = high - low
                rows.append(
                    CoverageRow(
                        cell.metric,
                        cell.target,
                        cell.truth,
                        cell.threshold,
                        name,
                        float(level),
                        n_identities,
                        total,
                        coverage,
                        *bounds,
                        below,
                        above,
                        float(width.mean()),
                        float(np.median(width)),
                        adjusted,
                        float(np.nanmean(estimates)),
                    )
                )
    return rows


def _stretched(errors: FloatArray, comparisons: FloatArray, truth: float, fraction: float) -> FloatArray:
    """The truth moved away from each estimate to where the error of an unlimited population would put it.

    Drawing a share f of the identities without replacement makes the error of an estimate smaller by √(1 − f), to first
    order. The error is stretched by as much on the scale of log-odds, with half an error added so that no errors are
    a number too.
    """
    if fraction <= 0.0 or not 0.0 < truth < 1.0:
        return np.full(errors.shape, truth)
    factor = 1.0 / np.sqrt(max(1.0 - fraction, 1e-9))
    estimate = np.log((errors + 0.5) / (comparisons - errors + 0.5))
    there = np.log(truth / (1.0 - truth))
    result: FloatArray = 1.0 / (1.0 + np.exp(-(estimate + factor * (there - estimate))))
    return result


def rows_csv(rows: Sequence[Any], header: Mapping[str, Any]) -> str:
    """Rows (dataclasses of one kind) as CSV after ``# key: value`` lines."""
    import csv
    import io

    stream = io.StringIO()
    for key, value in header.items():
        stream.write(f"# {key}: {value}\n")
    records = [asdict(row) if not isinstance(row, Mapping) else dict(row) for row in rows]
    if records:
        writer = csv.DictWriter(stream, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _short(value) for key, value in record.items()} for record in records)
    return stream.getvalue()


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, (int, float)):
        return bool(np.isclose(left, right, rtol=1e-9, atol=0.0))
    return bool(left == right)


def _methods(methods: Sequence[str] | Mapping[str, Method] | None, curve: bool) -> tuple[tuple[str, Method], ...]:
    if methods is None:
        methods = CURVE_METHODS if curve else METHODS
    if isinstance(methods, str):
        methods = [methods]
    if isinstance(methods, Mapping):
        found = tuple(methods.items())
    else:
        known = CURVE_KNOWN if curve else tuple(dict.fromkeys((*FAST, *RATE_METHODS)))
        find = curve_method_named if curve else method_named
        names = dict.fromkeys(named(name, known, "methods") for name in methods)
        found = tuple((name, find(name)) for name in names)
    if not found:
        raise UsageError("methods: name at least one")
    return found


def _levels(levels: Sequence[float]) -> FloatArray:
    nominal = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    if not nominal.size:
        raise UsageError("levels holds no level; give at least one, such as 0.95")
    return np.array([check_level(level, "levels") for level in nominal.tolist()])


def _place(resume: str | os.PathLike[str] | None, count: int | None) -> Path | None:
    """The file that keeps the study of one number of identities, where there are several."""
    if resume is None:
        return None
    place = Path(resume)
    return place if count is None else place.with_name(f"{place.stem}-g{count}{place.suffix}")
