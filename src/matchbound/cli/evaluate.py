"""``matchbound evaluate``: FAR and FRR at fixed thresholds."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from matchbound.cli import common
from matchbound.cli.claims import (
    ClaimOption,
    check_failures,
    exit_code,
    needs_curve,
    needs_threshold,
    read_claims,
    with_plans,
)
from matchbound.cli.failures import NO_FAILURES, FailureOptions
from matchbound.cli.laboratory import LABORATORY, Laboratory
from matchbound.cli.options import (
    ANSWER,
    READING,
    RUNNING,
    Answer,
    Files,
    Level,
    Method,
    Quiet,
    Reading,
    Resamples,
    Running,
    Seed,
    Threshold,
    Weighting,
)
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import UsageError
from matchbound.notes import PARTIAL_LABELS
from matchbound.readers.scan import ScoreFile
from matchbound.results.claims import AT_A_THRESHOLD, judge_all
from matchbound.results.interval import check_prior, named
from matchbound.results.rates import VARIANCES, Rate
from matchbound.stats.resampling import BOOTSTRAPS

Settings = Annotated[str | None, Parameter(help="Of the latent method: default, reference or light.")]
Variance = Annotated[
    str | None,
    Parameter(help="Of wilson, wald, agresti-coull and jeffreys: plug-in, bias-corrected, fixed-sizes, vertex, …"),
]
ProtocolFile = Annotated[
    str | None, Parameter(help="Score only the comparisons in this file (from matchbound protocol), not all pairs.")
]

Prior = Annotated[
    list[float] | None,
    Parameter(
        help="Share of genuine comparisons at which precision and F1 are wanted; repeatable.", negative_iterable=""
    ),
]
ThresholdFrom = Annotated[
    str | None, Parameter(help="Comparisons of other people (a development set) to choose the threshold on.")
]
Criterion = Annotated[str, Parameter(help="With --threshold-from: eer, min-hter, far=RATE or frr=RATE.")]
Linkage = Annotated[
    bool,
    Parameter(
        help="Precision, recall and F1 at the data's own share of genuine comparisons.", negative="", show_default=False
    ),
]


def evaluate(
    *files: Files,
    threshold: Threshold = None,
    threshold_from: ThresholdFrom = None,
    criterion: Criterion = "eer",
    method: Method = "auto",
    level: Level = 0.95,
    settings: Settings = None,
    weighting: Weighting = "comparisons",
    variance: Variance = None,
    resamples: Resamples = 2000,
    seed: Seed = 0,
    reading: Reading = READING,
    running: Running = RUNNING,
    answer: Answer = ANSWER,
    protocol: ProtocolFile = None,
    prior: Prior = None,
    linkage: Linkage = False,
    failures: FailureOptions = NO_FAILURES,
    claim: ClaimOption = None,
    laboratory: Laboratory = LABORATORY,
    quiet: Quiet = False,
) -> int:
    """False accept and false reject rates at given thresholds, with intervals.

    Example: `matchbound evaluate scores.csv --threshold 0.5 --claim "far<1e-3"`
    """
    from matchbound.calls.evaluate import evaluate as run
    from matchbound.calls.roc import roc
    from matchbound.results.number import Number, records_of
    from matchbound.show.costs import linkage_table
    from matchbound.show.curve import curve_table
    from matchbound.show.failures import generalised_table
    from matchbound.show.text import rates_table

    claims = read_claims(claim)
    failures.check()
    if threshold and threshold_from is not None:
        raise UsageError("give --threshold or --threshold-from, not both")
    if not threshold and threshold_from is None and (not claims or needs_threshold(claims)):
        raise UsageError("give at least one --threshold, or --threshold-from another file")
    for value in prior or ():
        check_prior(value)
    priors: list[float | None] = [*([None] if linkage else []), *(prior or [])]
    method = named(method, Rate.methods, "--method")
    if settings is not None and method not in ("auto", "latent"):
        raise UsageError("--settings goes with --method latent")
    chosen: dict[str, Any] = {} if settings is None else {"settings": settings}
    if variance is not None:
        if method not in ("auto", "wilson", "wald", "agresti-coull", "jeffreys"):
            raise UsageError("--variance goes with --method wilson, wald, agresti-coull or jeffreys")
        chosen["variance"] = variance = named(variance, (*VARIANCES, *BOOTSTRAPS), "--variance")
    with common.listening(quiet) as told:
        failed = failures.load()
        check_failures(claims, failed)
        data = reading.load_or_scan(files)
        if protocol is not None:
            data = _scored(data, protocol)
        if threshold_from is not None:
            threshold = [roc(reading.load([threshold_from])).threshold_at(criterion)]
        with running.started(quiet) as how:
            series = run(data, threshold, weighting=weighting, **how) if threshold else ()
            curve = roc(_in_order(data), **how) if needs_curve(claims) else None
            own = {"n_resamples": resamples, "rng": seed, **chosen}
            records, linked, general = [], [], []
            for rates in series:
                both = rates.far.comparisons and rates.frr.comparisons
                records += records_of([rates.far, rates.frr], method, level, **own)
                if priors and both:
                    linked += records_of([rates.precision(p) for p in priors], "auto", level)
                    if not any(note.code == PARTIAL_LABELS for note in rates.warnings):
                        linked += records_of([rates.f1(p) for p in priors], "auto", level)
                        linked += records_of([rates.recall()], method, level, **own)
                further: list[Number] = [rates.hter()] if threshold_from is not None and both else []
                if failed is not None:
                    generalised = rates.generalised(failed)
                    further += [number for number in (generalised.gfar, generalised.gfrr) if number.rate.comparisons]
                general += records_of(further, "auto", level)
            asked = [said for _, said in claims if said.metric not in AT_A_THRESHOLD]
            read = [] if curve is None else [curve.claimed(said) for said in asked]
            points = records_of(read, "auto", level)
            made = with_plans(judge_all(claims, series, curve, level=level, method=method, failures=failed), data)
    source = common.provenance(
        files,
        seed,
        {
            "verb": "evaluate",
            "threshold": threshold or None,
            "method": method,
            "level": level,
            "threshold_from": threshold_from,
            "criterion": None if threshold_from is None else criterion,
            "settings": settings,
            "weighting": None if weighting == "comparisons" else weighting,
            "variance": variance,
            "resamples": resamples,
            **reading.parameters(data, series[0].distance if series else getattr(data, "distance", None)),
            "protocol": protocol,
            "prior": prior or None,
            "fta": failures.fta,
            "fte": failures.fte,
            "failures": failures.failures,
            "claim": claim or None,
        },
        laboratory,
    )

    def tables(colour: bool = False) -> str:
        parts = [rates_table(records, colour=colour)] if records else []
        parts += [generalised_table(general, colour=colour)] if general else []
        parts += [linkage_table(linked, colour=colour)] if linked else []
        return "".join(parts + ([curve_table(points, colour=colour)] if points else []))

    answer.deliver([*records, *general, *linked, *points], tables, told.texts, source, made)
    return exit_code(made)


def _in_order(data: Comparisons | Embeddings | ScoreFile) -> Comparisons | Embeddings:
    """Data that a curve can be made of."""
    if isinstance(data, ScoreFile):
        raise UsageError(f"{data.path}: a claim about a curve needs the scores in order, and this table is too large")
    return data


def _scored(data: Comparisons | Embeddings | ScoreFile, protocol: str) -> Comparisons:
    """The comparisons that a protocol lists, scored."""
    from matchbound.planning.protocol import read_protocol, score_protocol

    if not isinstance(data, Embeddings):
        raise UsageError("--protocol lists comparisons of embeddings to score; these data are scored already")
    return score_protocol(read_protocol(protocol, data), data)
