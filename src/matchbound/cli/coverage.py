"""``matchbound coverage``: how often intervals cover the true rate, on a model or on your own data."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from matchbound.cli import options as opt
from matchbound.cli.command import Outcome
from matchbound.cli.reading import READING, Reading
from matchbound.errors import UsageError

if TYPE_CHECKING:
    from matchbound.study.coverage import CoverageStudy

DataFile = Annotated[
    str | None, Parameter(name="--data", help="Scores or embeddings of your own; without it, the paper's model.")
]
Rates = Annotated[list[float] | None, opt.several("Rates to be covered; repeatable.")]
CurveRates = Annotated[
    list[float] | None,
    opt.several("FARs at which to cover FRR of the curve; repeatable.", name="--frr-at-far"),
]
Methods = Annotated[list[str] | None, opt.several("Interval method; repeatable.")]
Levels = Annotated[list[float] | None, opt.several("Confidence level; repeatable.")]
Identities = Annotated[list[int] | None, opt.several("Identities in each data set; repeatable.")]
Instances = Annotated[
    int | None, Parameter(help="Instances of each identity: of a model exactly, of embeddings at most.")
]
Replications = Annotated[int, Parameter(help="Data sets.", validator=opt.at_least(1))]
Truth = Annotated[int, Parameter(help="Size of the simulated population of a model.", validator=opt.at_least(100))]
Processes = Annotated[int, Parameter(help="Processes; the numbers do not depend on it.", validator=opt.at_least(1))]
Resume = Annotated[str | None, Parameter(help="File that keeps finished replications; the same command continues.")]
Plot = Annotated[str | None, Parameter(help="File for a picture (.svg, .png or .pdf).")]


def coverage(
    *,
    data: DataFile = None,
    far: Rates = None,
    frr: Rates = None,
    frr_at_far: CurveRates = None,
    method: Methods = None,
    level: Levels = None,
    identities: Identities = None,
    instances: Instances = None,
    replications: Replications = 200,
    resamples: opt.Resamples = 1000,
    seed: opt.Seed = 0,
    truth_identities: Truth = 200_000,
    resume: Resume = None,
    plot: Plot = None,
    reading: Reading = READING,
    workers: Processes = 1,
    dask: opt.Dask = None,
    answer: opt.Answer = opt.ANSWER,
    quiet: opt.Quiet = False,
) -> Outcome:
    """How often intervals cover the true rate, and how wide they are, over many data sets.

    Example: `matchbound coverage --data faces.npz --far 0.01 --method wilson --method latent --identities 50`
    """
    from matchbound.study.coverage import coverage_study
    from matchbound.study.models import SyntheticModel

    asked = {"far": far, "frr": frr, "frr@far": frr_at_far}
    for name, rates in asked.items():
        opt.check_rates(f"--{name.replace('@', '-at-')}", rates)
    if plot is not None and Path(plot).suffix.lower() not in (".svg", ".png", ".pdf"):
        raise UsageError(f"--plot must end in .svg, .png or .pdf; got {plot}")
    with opt.Working(workers, dask).started() as how:
        study = coverage_study(
            SyntheticModel() if data is None else reading.load((data,)),
            methods=method,
            levels=level or (0.95,),
            G=identities or 50,
            M=instances,
            rates={name: rates for name, rates in asked.items() if rates} or None,
            replications=replications,
            rng=seed,
            n_resamples=resamples,
            **how,
            resume=resume,
            truth_identities=truth_identities,
        )
    if plot is not None:
        _draw(study, plot)
    return Outcome(study.to_records(), partial(coverage_text, study), () if data is None else (data,))


def coverage_text(study: CoverageStudy, *, width: int | None = None, colour: bool = False) -> str:
    """The rows as a table for a terminal."""
    from matchbound.show.numbers import level_text, percent
    from matchbound.show.tables import table_text as table

    rows = [
        (
            row.metric.upper(),
            percent(row.truth),
            row.method,
            level_text(row.level),
            f"{row.n_identities}",
            f"{row.replications}",
            f"{100 * row.coverage:.1f} [{100 * row.coverage_low:.1f}, {100 * row.coverage_high:.1f}]",
            f"{100 * row.missed_below:.1f}",
            f"{100 * row.missed_above:.1f}",
            f"{row.mean_width / row.truth:.3g}" if row.truth else "",
        )
        for row in study.rows
    ]
    headings = (
        "metric",
        "truth",
        "method",
        "level",
        "identities",
        "data sets",
        "coverage %",
        "below",
        "above",
        "width/truth",
    )
    note = (
        "coverage: share of data sets whose interval held the truth, with its 95% Wilson interval; below, above: the\n"
        "interval lay wholly below, or above, the truth.\n"
    )
    return table(headings, rows, width=width, colour=colour) + note


def _draw(study: CoverageStudy, plot: str) -> None:
    import io

    from matchbound.files.writing import write_atomically

    several = len({row.n_identities for row in study.rows}) > 1
    drawn = io.BytesIO()
    figure: Any = study.plot("identities" if several else "rate", level=study.rows[0].level)[0].figure
    figure.savefig(drawn, format=Path(plot).suffix.lower().removeprefix("."))
    write_atomically(plot, drawn.getvalue())
