"""``matchbound protocol`` and ``matchbound plan``: what to do before there are data."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from matchbound.cli.command import Outcome
from matchbound.cli.options import ANSWER, Answer, FormatOption, Level, Quiet, Seed, flag
from matchbound.cli.reading import READING, Reader, Reading, Similarity
from matchbound.errors import UsageError

Data = Annotated[str, Parameter(help="Embeddings, or a CSV or Parquet list of identity and instance.")]
Budget = Annotated[int, Parameter(help="How many comparisons can be scored.")]
Kind = Annotated[Literal["impostor", "genuine"], Parameter(help="impostor comparisons for FAR, genuine ones for FRR.")]
Scores = Annotated[bool, flag("Score the comparisons too, ready for evaluate.")]
Far = Annotated[
    float | None, Parameter(help="FAR that the system is thought to have; 0 for no errors at all.", alias="--fmr")
]
Frr = Annotated[float | None, Parameter(help="FRR that the system is thought to have.", alias="--fnmr")]
Width = Annotated[float | None, Parameter(help="The two-sided interval is to be no wider than this.")]
Upper = Annotated[float | None, Parameter(help="The one-sided upper bound is to be no higher than this.")]
Power = Annotated[float, Parameter(help="Probability with which the data meet the goal.")]
Instances = Annotated[int, Parameter(help="Instances of each person.")]
Claim = Annotated[float | None, Parameter(help="A rate that the bound is to stay below.")]
Effect = Annotated[float | None, Parameter(help="Design effect at the planned size, where one is known.")]
Pilot = Annotated[str | None, Parameter(help="Scores or embeddings of a pilot, to read the dependence from.")]
PlanMethod = Annotated[str, Parameter(help="The interval that will be used: auto (latent) or wilson.")]
Plot = Annotated[str | None, Parameter(help="File for a picture of the plan (.svg, .png or .pdf).")]


def protocol(
    file: Data,
    *,
    budget: Budget,
    output: Annotated[str, Parameter(name=["--output", "-o"], help="The list of comparisons: .csv or .parquet.")],
    kind: Kind = "impostor",
    scores: Scores = False,
    seed: Seed = 0,
    similarity: Similarity = "cosine",
    reader: Reader = None,
    format: FormatOption = "table",
    quiet: Quiet = False,
) -> Outcome:
    """Choose which comparisons to score, so that they share as few people as possible.

    Example: `matchbound protocol faces.npz --budget 10000 --output protocol.csv`
    """
    from matchbound.data.embeddings import Embeddings
    from matchbound.planning.protocol import design_protocol, score_protocol
    from matchbound.planning.protocol_files import read_instances, write_protocol
    from matchbound.planning.words import protocol_record, protocol_text

    if Path(output).suffix.lower() not in (".csv", ".parquet"):
        raise UsageError(f"--output must end in .csv or .parquet; got {output}")
    listed = read_instances(file) if reader is None else None
    if listed is not None:
        if scores:
            raise UsageError(f"--scores needs embeddings, and {file} lists instances only")
        made = design_protocol(listed.identity, budget=budget, kind=kind, instance=listed.instance, rng=seed)
        write_protocol(made, output)
    else:
        data = Reading(similarity=similarity, reader=reader).load((file,))
        if not isinstance(data, Embeddings):
            raise UsageError("protocol takes embeddings or a list of instances; these comparisons have scores")
        shown = data.identities[data.codes]
        made = design_protocol(shown, budget=budget, kind=kind, instance=data.instance, rng=seed)
        write_protocol(made, output, score_protocol(made, data) if scores else None)
    record = protocol_record(made, output)
    return Outcome([record], partial(protocol_text, record), (file,))


def plan(
    *,
    far: Far = None,
    frr: Frr = None,
    width: Width = None,
    upper: Upper = None,
    level: Level = 0.95,
    power: Power = 0.95,
    instances: Instances = 2,
    claim: Claim = None,
    design_effect: Effect = None,
    pilot: Pilot = None,
    method: PlanMethod = "auto",
    reading: Reading = READING,
    seed: Seed = 0,
    plot: Plot = None,
    answer: Answer = ANSWER,
    quiet: Quiet = False,
) -> Outcome:
    """How many people to recruit so that the interval will be narrow enough, or the bound low enough.

    Example: `matchbound plan --far 1e-3 --upper 2e-3 --instances 3`
    """
    from matchbound.planning.plan import plan as make
    from matchbound.planning.words import plan_records, plan_text

    if plot is not None and Path(plot).suffix.lower() not in (".svg", ".png", ".pdf"):
        raise UsageError(f"--plot must end in .svg, .png or .pdf; got {plot}")
    made = make(
        far=far,
        frr=frr,
        width=width,
        upper=upper,
        level=level,
        power=power,
        pilot=None if pilot is None else reading.load((pilot,)),
        design_effect=design_effect,
        method=method,
        instances=instances,
        claim=claim,
        rng=seed,
    )
    curve = made.cost_curve()
    if plot is not None:
        import io

        from matchbound.files.writing import write_atomically
        from matchbound.planning.plots import cost_figure

        drawn = io.BytesIO()
        cost_figure(made, curve).savefig(drawn, format=Path(plot).suffix.lower().removeprefix("."))
        write_atomically(plot, drawn.getvalue())
    return Outcome(plan_records(made, curve), partial(plan_text, made, curve), () if pilot is None else (pilot,))
