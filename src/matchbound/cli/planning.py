"""``matchbound protocol``, ``plan`` and ``coverage``: which study to make, and whether its intervals will do."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from matchbound.cli import options as opt
from matchbound.cli.command import Outcome, write_figure
from matchbound.errors import UsageError, check_level
from matchbound.results.points import OperatingPoint
from matchbound.results.rates import Rate

METHODS = tuple(dict.fromkeys((*Rate.methods, *OperatingPoint.methods)))


def protocol(
    file: str,
    *,
    budget: int,
    output: Annotated[str, Parameter(name=["--output", "-o"], validator=opt.ends_in(".csv", ".parquet"))],
    kind: Literal["impostor", "genuine"] = "impostor",
    scores: bool = False,
    seed: opt.Seed = 0,
    reading: opt.Reading = opt.READING,
    format: Annotated[Literal["table", "json", "csv"], Parameter(group=opt.OUTPUT)] = "table",
    quiet: opt.Quiet = False,
) -> Outcome:
    """Choose which comparisons to score, so that they share as few people as possible.

    Args:
        file: Embeddings, or a CSV or Parquet list of identity and instance.
        budget: How many comparisons can be scored.
        output: The list of comparisons: .csv or .parquet.
        kind: impostor comparisons for FAR, genuine ones for FRR.
        scores: Score the comparisons too, ready for evaluate.
        format: Output format of the summary.
    """
    from matchbound.planning.protocol import design_protocol, read_instances, score_protocol
    from matchbound.show.columns import table_of_records

    listed, data = (read_instances(file) if reading.reader is None else None), None
    if listed is None:
        source = reading.load((file,))
        if source.kind == "comparisons":
            raise UsageError("protocol takes embeddings or a list of instances; these comparisons have scores")
        listed, data = (source.identities[source.codes], source.instance), source
    elif scores:
        raise UsageError(f"--scores needs embeddings, and {file} lists instances only")
    design = design_protocol(listed[0], budget=budget, kind=kind, instance=listed[1], rng=seed)
    design.write(output, score_protocol(design, data) if scores and data is not None else None)
    record = {
        "kind": kind,
        "comparisons": len(design),
        "identities": design.n_identities,
        "fewest_visits": int(design.visits.min()),
        "most_visits": int(design.visits.max()),
        "file": output,
    }
    return Outcome([record], table_of_records([record]).text)


def plan(
    *,
    far: opt.Far = None,
    frr: opt.Frr = None,
    width: opt.Rate = None,
    upper: opt.Rate = None,
    level: opt.Level = 0.95,
    power: float = 0.95,
    instances: int = 2,
    claim: opt.Rate = None,
    design_effect: float | None = None,
    pilot: str | None = None,
    method: Annotated[str, opt.choice("The interval that will be used", ("auto", "latent", "wilson"))] = "auto",
    reading: opt.Reading = opt.READING,
    seed: opt.Seed = 0,
    plot: opt.Plot = None,
    answer: opt.Answer = opt.ANSWER,
) -> Outcome:
    """How many people to recruit so that the interval will be narrow enough, or the bound low enough.

    Args:
        far: FAR that the system is thought to have; 0 for no errors at all.
        frr: FRR that the system is thought to have.
        width: The two-sided interval is to be no wider than this.
        upper: The one-sided upper bound is to be no higher than this.
        power: Probability with which the data meet the goal.
        instances: Instances of each person.
        claim: A rate that the bound is to stay below.
        design_effect: Design effect at the planned size, where one is known.
        pilot: Scores or embeddings of a pilot, to read the dependence from.
    """
    from matchbound.planning.plan import plan as make

    goal: dict[str, Any] = {"far": far, "frr": frr, "width": width, "upper": upper, "claim": claim, "method": method}
    goal |= {"level": level, "power": power, "instances": instances, "design_effect": design_effect, "rng": seed}
    planned = make(pilot=None if pilot is None else reading.load((pilot,)), **goal)
    costs = planned.cost_curve()
    if plot is not None:
        write_figure(planned.plot(costs)[0], plot)
    return Outcome(planned.to_records(costs), planned._section(costs).text)


def coverage(
    *,
    data: str | None = None,
    far: Annotated[opt.Fars, Parameter(help="FAR to be covered; repeatable.")] = None,
    frr: opt.Frrs = None,
    frr_at_far: opt.Rates = None,
    method: Annotated[list[str] | None, opt.choice("Interval method; repeatable", METHODS)] = None,
    level: Annotated[list[float] | None, Parameter(converter=opt.rates, validator=opt.each(check_level))] = None,
    identities: list[int] | None = None,
    instances: int | None = None,
    replications: Annotated[int, Parameter(validator=Number(gte=1))] = 200,
    resamples: opt.Resamples = 1000,
    seed: opt.Seed = 0,
    resume: str | None = None,
    reading: opt.Reading = opt.READING,
    workers: Annotated[int, Parameter(validator=Number(gte=1), group=opt.WORK)] = 1,
    dask: Annotated[str | None, Parameter(group=opt.WORK)] = None,
    answer: opt.Answer = opt.ANSWER,
) -> Outcome:
    """How often intervals cover the true rate, and how wide they are, over many data sets.

    The paper's experiments are scripts of the source repository: studies/paper_figures.py (fig1, fig2, fig3, fig4,
    fig5, width, roc, diverse, table) and studies/paper_claims.py (dependence, bias, protocol).

    Args:
        data: Scores or embeddings of your own; without it, the paper's model.
        frr: FRR to be covered; repeatable.
        frr_at_far: FARs at which to cover FRR of the curve; repeatable.
        level: Confidence level; repeatable.
        identities: Identities in each data set; repeatable.
        instances: Instances of each identity: of a model exactly, of embeddings at most.
        replications: Data sets.
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
        )
    return Outcome(study.to_records(), study._section().text)
