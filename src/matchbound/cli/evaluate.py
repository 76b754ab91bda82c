"""``matchbound evaluate``: FAR and FRR at fixed thresholds."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from matchbound.cli import options as opt
from matchbound.cli.claims import ClaimOption, check_failures, needs_curve, needs_threshold, read_claims, with_plans
from matchbound.cli.command import Outcome
from matchbound.cli.reading import READING, Reading
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import UsageError
from matchbound.metrics import METRICS
from matchbound.notes import PARTIAL_LABELS
from matchbound.readers.scan import ScoreFile
from matchbound.results.claims import judge_all
from matchbound.results.interval import check_prior
from matchbound.results.rates import VARIANCES, Rate
from matchbound.stats.resampling import BOOTSTRAPS

WITH_VARIANCE = ("auto", "wilson", "wald", "agresti-coull", "jeffreys")
Method = Annotated[str, opt.choice("Interval method", Rate.methods)]
Variance = Annotated[
    str | None, opt.choice(f"Of {', '.join(WITH_VARIANCE[1:])}", (*VARIANCES, *BOOTSTRAPS), group=opt.EXPERT)
]
Prior = Annotated[
    list[float] | None, opt.several("Share of genuine comparisons at which precision and F1 are wanted; repeatable.")
]
Linkage = Annotated[bool, opt.flag("Precision, recall and F1 at the data's own share of genuine comparisons.")]
ThresholdFrom = Annotated[
    str | None, Parameter(help="Comparisons of other people (a development set) to choose the threshold on.")
]
Criterion = Annotated[str | None, Parameter(help="With --threshold-from: eer (default), min-hter, far=RATE, frr=RATE.")]
ProtocolFile = Annotated[
    str | None, Parameter(help="Score only the comparisons in this file (from matchbound protocol), not all pairs.")
]


def evaluate(
    *files: opt.Files,
    threshold: opt.Threshold = None,
    threshold_from: ThresholdFrom = None,
    criterion: Criterion = None,
    claim: ClaimOption = None,
    method: Method = "auto",
    level: opt.Level = 0.95,
    weighting: opt.Weighting = "comparisons",
    prior: Prior = None,
    linkage: Linkage = False,
    failures: opt.FailureOptions = opt.NO_FAILURES,
    protocol: ProtocolFile = None,
    resamples: opt.Resamples = 2000,
    seed: opt.Seed = 0,
    variance: Variance = None,
    reading: Reading = READING,
    running: opt.Running = opt.RUNNING,
    answer: opt.Answer = opt.ANSWER,
    laboratory: opt.Laboratory = opt.LABORATORY,
    quiet: opt.Quiet = False,
) -> Outcome:
    """False accept and false reject rates at given thresholds, with intervals.

    Example: `matchbound evaluate scores.csv --threshold 0.5 --claim "far<1e-3"`
    """
    from matchbound.calls.evaluate import evaluate as run
    from matchbound.calls.roc import roc
    from matchbound.results.number import records_of
    from matchbound.show.records import number_table

    claims = read_claims(claim, "rates", "curve")
    if threshold and threshold_from is not None:
        raise UsageError("give --threshold or --threshold-from, not both")
    if not threshold and threshold_from is None and (not claims or needs_threshold(claims)):
        raise UsageError("give at least one --threshold, or --threshold-from another file")
    if variance is not None and method not in WITH_VARIANCE:
        raise UsageError("--variance goes with --method wilson, wald, agresti-coull or jeffreys")
    for value in prior or ():
        check_prior(value)
    failed = failures.load()
    check_failures(claims, failed)
    chosen: dict[str, Any] = {"variance": variance}
    options = {"n_resamples": resamples, "rng": seed, **{k: v for k, v in chosen.items() if v is not None}}
    data = reading.load_or_scan(files)
    if protocol is not None:
        data = _scored(data, protocol)
    if threshold_from is not None:
        threshold = [roc(reading.load([threshold_from])).threshold_at(criterion or "eer")]
    with running.started() as how:
        series = run(data, threshold, weighting=weighting, **how) if threshold else ()
        curve = roc(_in_order(data), **how) if needs_curve(claims) else None
        records, linked, general = [], [], []
        for rates in series:
            both = rates.far.comparisons and rates.frr.comparisons
            records += records_of([rates.far, rates.frr], method, level, **options)
            priors = [*([None] if linkage else []), *(prior or [])] if both else []
            linked += records_of([rates.precision(p) for p in priors], "auto", level)
            if priors and not any(note.code == PARTIAL_LABELS for note in rates.warnings):
                linked += records_of([rates.f1(p) for p in priors], "auto", level)
                linked += records_of([rates.recall()], method, level, **options)
            general += records_of([rates.hter()] if threshold_from is not None and both else [], "auto", level)
            if failed is not None:
                pair = rates.generalised(failed)
                general += records_of([n for n in (pair.gfar, pair.gfrr) if n.rate.comparisons], "auto", level)
        asked = [statement for _, statement in claims if "curve" in METRICS[statement.metric].read]
        points = [] if curve is None else records_of([curve.claimed(each) for each in asked], "auto", level)
        verdicts = judge_all(claims, series, curve, level=level, method=method, failures=failed)
    tables = [records, general, linked, points]
    if linkage:
        tables.insert(0, tables.pop(2))  # the numbers that were asked for come first

    def text(colour: bool) -> str:
        return "".join(number_table(rows).text(colour=colour) for rows in tables if rows)

    taken = reading.taken(data, series[0].distance if series else None) | {"threshold": threshold}
    return Outcome([*records, *general, *linked, *points], text, files, with_plans(verdicts, data), taken=taken)


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
