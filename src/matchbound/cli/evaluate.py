"""``matchbound evaluate``: FAR and FRR at fixed thresholds."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from matchbound.cli import options as opt
from matchbound.cli.command import RUN, Outcome, about, read_claims, with_plans
from matchbound.errors import UsageError, check_prior
from matchbound.notes import PARTIAL_LABELS
from matchbound.results.claims import judge_all
from matchbound.results.rates import VARIANCES, ErrorRates, Rate
from matchbound.stats.resampling import BOOTSTRAPS

WITH_VARIANCE = ("auto", "wilson", "wald", "agresti-coull", "jeffreys")
Method = Annotated[str, opt.choice("Interval method", Rate.methods)]
Variance = Annotated[
    str | None, opt.choice(f"Of {', '.join(WITH_VARIANCE[1:])}", (*VARIANCES, *BOOTSTRAPS), group=opt.EXPERT)
]


def evaluate(
    *files: opt.Files,
    threshold: opt.Thresholds = None,
    threshold_from: str | None = None,
    criterion: str | None = None,
    claim: opt.ClaimTexts = None,
    method: Method = "auto",
    interval: opt.Interval = opt.INTERVAL,
    prior: Annotated[list[float] | None, Parameter(converter=opt.rates, validator=opt.each(check_prior))] = None,
    linkage: bool = False,
    failures: opt.FailureOptions = opt.NO_FAILURES,
    variance: Variance = None,
    reading: opt.Reading = opt.READING,
    running: opt.Running = opt.RUNNING,
    answer: opt.Answer = opt.ANSWER,
    laboratory: opt.Laboratory = opt.NO_ENTRIES,
) -> Outcome:
    """False accept and false reject rates at given thresholds, with intervals.

    Args:
        threshold_from: Comparisons of other people (a development set) to choose the threshold on.
        criterion: With --threshold-from: eer (default), min-hter, far=RATE, frr=RATE.
        prior: Share of genuine comparisons at which precision and F1 are wanted; repeatable.
        linkage: Precision, recall and F1 at the data's own share of genuine comparisons.
    """
    from matchbound.calls.evaluate import evaluate as run
    from matchbound.calls.evaluate import roc
    from matchbound.results.number import records_of
    from matchbound.show.columns import number_table

    failed = failures.load()
    claims = read_claims(claim, "rates", "curve", failures=failed)
    if threshold and threshold_from is not None:
        raise UsageError("give --threshold or --threshold-from, not both")
    if not threshold and threshold_from is None and (not claims or about("rates", claims)):
        raise UsageError("give at least one --threshold, or --threshold-from another file")
    if criterion is not None and threshold_from is None:
        raise UsageError("--criterion goes with --threshold-from")
    if variance is not None and method not in WITH_VARIANCE:
        raise UsageError("--variance goes with --method wilson, wald, agresti-coull or jeffreys")
    level, options = interval.level, interval.drawing | ({} if variance is None else {"variance": variance})
    data = reading.load_or_scan(files)
    chosen: dict[str, Any] = {"threshold": threshold} if threshold else {}
    if threshold_from is not None:
        chosen = {"threshold_from": reading.load([threshold_from]), "criterion": criterion or "eer"}
    records: list[Any] = []
    general: list[Any] = []
    linked: list[Any] = []
    with running.started() as how:
        rated = run(data, **chosen, weighting=interval.weighting, **how) if chosen else ()
        series = [rated] if isinstance(rated, ErrorRates) else rated
        for rates in series:
            RUN.get().decided |= {"distance": rates.distance, "threshold": threshold or [rates.threshold]}
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
                failing = [n for n in (pair.gfar, pair.gfrr) if n.rate.comparisons]
                general += records_of(failing, method, level, **options)
        asked = about("curve", claims)
        curve = roc(data, **how) if asked else None
        points = [] if curve is None else records_of([curve.claimed(each) for each in asked], "auto", level)
        verdicts = judge_all(claims, series, curve, level=level, method=method, failures=failed, **options)
    # the numbers that were asked for come first
    tables = [linked, records, general, points] if linkage else [records, general, linked, points]

    def text(colour: bool) -> str:
        return "".join(number_table(rows).text(colour=colour) for rows in tables if rows)

    return Outcome([*records, *general, *linked, *points], text, with_plans(verdicts, data))
