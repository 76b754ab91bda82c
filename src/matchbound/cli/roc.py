"""``matchbound roc``: FRR at a FAR, FAR at an FRR, EER and AUC with intervals; ROC, DET and score plots."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter
from cyclopts.validators import Number

from matchbound.cli import options as opt
from matchbound.cli.command import RUN, Outcome, read_claims, write_figure
from matchbound.errors import MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.results.claims import judge_all
from matchbound.results.points import OperatingPoint
from matchbound.results.roc import RocCurve
from matchbound.stats.curve.bootstrap import CURVE_BOOTSTRAPS
from matchbound.stats.curve.smooth import SMOOTHS

Smooth = Annotated[
    str | None, opt.choice("Of the bootstraps: read smoothed curves, and the estimate", SMOOTHS, group=opt.EXPERT)
]


def roc(
    *files: opt.Files,
    far: opt.Fars = None,
    frr: opt.Frrs = None,
    claim: opt.ClaimTexts = None,
    method: Annotated[str, opt.choice("Interval method", (*OperatingPoint.methods, "log-t"))] = "auto",
    interval: opt.Interval = opt.INTERVAL,
    points: bool = False,
    min_dcf: opt.MinDcf = None,
    act_dcf: opt.Priors = None,
    cllr: opt.Cllr = False,
    min_cllr: bool = False,
    plot: opt.Plot = None,
    kind: Literal["det", "roc", "scores"] = "det",
    level_far: Annotated[float | None, Parameter(validator=Number(gte=0, lt=1), group=opt.EXPERT)] = None,
    smooth: Smooth = None,
    reading: opt.Reading = opt.READING,
    running: opt.Running = opt.RUNNING,
    answer: opt.Answer = opt.ANSWER,
    laboratory: opt.Laboratory = opt.NO_ENTRIES,
) -> Outcome:
    """FRR at given FARs, FAR at given FRRs, EER, AUC, detection costs and Cllr, with intervals.

    Args:
        frr: FRR at which FAR is wanted; repeat it for several.
        points: FRR at FAR 1e-2 … 1e-6 as the data support, and where nothing matches.
        act_dcf: Prior for the actual detection cost; scores are natural log-likelihood ratios.
        min_cllr: minCllr, for scores of any scale.
        kind: What the picture shows.
        level_far: Of union: level of FAR's interval (0.9 in the authors' program).
    """
    from matchbound.calls.evaluate import roc as run
    from matchbound.results.number import records_of
    from matchbound.show.columns import number_table
    from matchbound.show.mpl import new_axes

    claims = read_claims(claim, "curve")
    if level_far is not None and method != "union":
        raise UsageError("--level-far goes with --method union")
    if smooth is not None and method not in CURVE_BOOTSTRAPS:
        raise UsageError("--smooth goes with the bootstraps")
    data, level = reading.load_or_scan(files), interval.level
    records: list[Any] = []
    with running.started() as how:
        curve = run(data, weighting=interval.weighting, **how)
        usual = [] if frr or points else [rate for rate in (1e-1, 1e-2, 1e-3) if rate * curve.tally.n_impostor >= 1.0]
        numbers = [curve.at_far(rate) for rate in far or usual] + [curve.at_frr(rate) for rate in frr or []]
        numbers += [point for point in curve.points() if isinstance(point, OperatingPoint)] if points else []
        costs: list[Any] = [*map(curve.min_dcf, min_dcf or ()), *map(curve.actual_dcf, act_dcf or ())]
        costs += ([curve.cllr()] if cllr else []) + ([curve.min_cllr()] if cllr or min_cllr else [])
        options = interval.drawing | {"workers": running.workers or 1} | ({} if smooth is None else {"smooth": smooth})
        for number in (*numbers, curve.eer(), curve.auc(), *costs):
            other = "level_frr" if number.metric == "far@frr" else "level_far"
            own = {} if level_far is None else {other: level_far}
            records += records_of([number], method, level, **options, **own)
        verdicts = judge_all(claims, (), curve, level=level)
        if cllr or act_dcf:
            _warn_of_scale(curve)
    if plot is not None:
        write_figure(curve.plot(kind, ax=new_axes(pyplot=False), level=level, terms=answer.terms), plot)
    RUN.get().decided |= {"far": far or usual, "distance": curve.distance}
    return Outcome(records, number_table(records).text, verdicts)


def _warn_of_scale(curve: RocCurve) -> None:
    """Warn where scores that are read as log-likelihood ratios look like something else."""
    scores = curve.thresholds[np.isfinite(curve.thresholds)]
    if curve.distance or (scores.size and float(np.abs(scores).max()) <= 1.0):
        text = (
            f"Cllr and the actual cost read scores as natural log-likelihood ratios; these are "
            f"{'distances' if curve.distance else f'between {scores.min():.3g} and {scores.max():.3g}'}, as those of "
            "cosine similarities or probabilities are. --min-cllr and --min-dcf take scores of any scale"
        )
        warnings.warn(Note("not-log-likelihood-ratios", text), MatchboundWarning, stacklevel=2)
