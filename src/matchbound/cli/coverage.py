"""``matchbound coverage``: how often intervals cover the true rate, on a model or on your own data."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from matchbound.cli import options as opt
from matchbound.cli.command import Outcome
from matchbound.results.interval import check_level
from matchbound.results.points import OperatingPoint
from matchbound.results.rates import Rate

if TYPE_CHECKING:
    from matchbound.study.coverage import CoverageStudy

METHODS = tuple(dict.fromkeys((*Rate.methods, *OperatingPoint.methods)))
NOTE = """coverage: share of data sets whose interval held the truth, with its 95% Wilson interval; below, above: the
interval lay wholly below, or above, the truth.
"""


def coverage(
    *,
    data: str | None = None,
    far: opt.Fars = None,
    frr: opt.Frrs = None,
    frr_at_far: opt.Rates = None,
    method: Annotated[list[str] | None, opt.choice("Interval method; repeatable", METHODS, several=True)] = None,
    level: Annotated[list[float] | None, Parameter(validator=opt.each(check_level))] = None,
    identities: list[int] | None = None,
    instances: int | None = None,
    replications: Annotated[int, Parameter(validator=opt.at_least(1))] = 200,
    resamples: opt.Resamples = 1000,
    seed: opt.Seed = 0,
    truth_identities: Annotated[int, Parameter(validator=opt.at_least(100))] = 200_000,
    resume: str | None = None,
    reading: opt.Reading = opt.READING,
    workers: Annotated[int, Parameter(validator=opt.at_least(1), group=opt.WORK)] = 1,
    dask: Annotated[str | None, Parameter(group=opt.WORK)] = None,
    answer: opt.Answer = opt.ANSWER,
) -> Outcome:
    """How often intervals cover the true rate, and how wide they are, over many data sets.

    The paper's experiments are scripts of the source repository: studies/paper_figures.py (fig1, fig2, fig3, fig4,
    fig5, width, roc, diverse, table) and studies/paper_claims.py (dependence, bias, protocol).

    Args:
        data: Scores or embeddings of your own; without it, the paper's model.
        far: FAR to be covered; repeatable.
        frr: FRR to be covered; repeatable.
        frr_at_far: FARs at which to cover FRR of the curve; repeatable.
        level: Confidence level; repeatable.
        identities: Identities in each data set; repeatable.
        instances: Instances of each identity: of a model exactly, of embeddings at most.
        replications: Data sets.
        truth_identities: Size of the simulated population of a model.
        workers: Processes; the numbers do not depend on it.
        dask: Address of a Dask scheduler to run on.
        resume: File that keeps finished replications; the same command continues.
    """
    from matchbound.study.coverage import coverage_study
    from matchbound.study.models import SyntheticModel

    asked = {"far": far, "frr": frr, "frr@far": frr_at_far}
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
    return Outcome(study.to_records(), partial(coverage_text, study))


def coverage_text(study: CoverageStudy, *, colour: bool = False) -> str:
    """The rows as a table for a terminal."""
    from matchbound.show.numbers import level_text, percent
    from matchbound.show.tables import as_table

    rows = [
        (
            *(row.metric.upper(), percent(row.truth), row.method, level_text(row.level)),
            *(f"{row.n_identities}", f"{row.replications}"),
            f"{100 * row.coverage:.1f} [{100 * row.coverage_low:.1f}, {100 * row.coverage_high:.1f}]",
            *(f"{100 * row.missed_below:.1f}", f"{100 * row.missed_above:.1f}"),
            f"{row.mean_width / row.truth:.3g}" if row.truth else "",
        )
        for row in study.rows
    ]
    headings = ("metric", "truth", "method", "level", "identities", "data sets", "coverage %", "below", "above")
    return as_table((*headings, "width/truth"), rows).text(colour=colour) + NOTE
