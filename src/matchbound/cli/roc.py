"""``matchbound roc``: FRR at a FAR, FAR at an FRR, EER and AUC with intervals; ROC, DET and score plots."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter

from matchbound.cli import options as opt
from matchbound.cli.claims import ClaimOption, read_claims
from matchbound.cli.command import Outcome
from matchbound.cli.progress import wrote
from matchbound.cli.reading import READING, Reading
from matchbound.errors import MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.results.claims import judge_all
from matchbound.results.interval import check_rate
from matchbound.results.points import OperatingPoint
from matchbound.results.roc import RocCurve
from matchbound.show.terms import Terms
from matchbound.stats.curve.bootstrap import CURVE_BOOTSTRAPS
from matchbound.stats.curve.smooth import SMOOTHS

PLOT_FORMATS = (".png", ".svg", ".pdf")
PlotKind = Literal["det", "roc", "scores", "precision-recall", "thresholds", "costs"]
Fars = Annotated[list[float] | None, opt.several("FAR at which FRR is wanted; repeat it for several.", alias="--fmr")]
Frrs = Annotated[list[float] | None, opt.several("FRR at which FAR is wanted; repeat it for several.", alias="--fnmr")]
CurveMethod = Annotated[str, opt.choice("Interval method", (*OperatingPoint.methods, "log-t"))]
Points = Annotated[
    bool, opt.flag("FRR at FAR 1e-2 … 1e-6 as the data support, and where nothing matches.", name="--points")
]
MinCllr = Annotated[bool, opt.flag("minCllr, for scores of any scale.")]
LevelFar = Annotated[
    float | Literal["calibrate"] | None,
    Parameter(help="Of union: level of FAR's interval (0.9 in the authors' program), or calibrate.", group=opt.EXPERT),
]
SmoothOption = Annotated[
    str | None, opt.choice("Of the bootstraps: read smoothed curves, and the estimate", SMOOTHS, group=opt.EXPERT)
]
Plot = Annotated[str | None, Parameter(help="Picture to write: .png, .svg or .pdf.")]


def roc(
    *files: opt.Files,
    far: Fars = None,
    frr: Frrs = None,
    claim: ClaimOption = None,
    method: CurveMethod = "auto",
    level: opt.Level = 0.95,
    weighting: opt.Weighting = "comparisons",
    every: Points = False,
    min_dcf: opt.MinDcf = None,
    act_dcf: opt.ActDcf = None,
    cllr: opt.Cllr = False,
    min_cllr: MinCllr = False,
    plot: Plot = None,
    kind: Annotated[PlotKind, Parameter(help="What the picture shows.")] = "det",
    resamples: opt.Resamples = 2000,
    seed: opt.Seed = 0,
    level_far: LevelFar = None,
    smooth: SmoothOption = None,
    reading: Reading = READING,
    running: opt.Running = opt.RUNNING,
    answer: opt.Answer = opt.ANSWER,
    laboratory: opt.Laboratory = opt.LABORATORY,
    quiet: opt.Quiet = False,
) -> Outcome:
    """FRR at given FARs, FAR at given FRRs, EER, AUC, detection costs and Cllr, with intervals.

    Example: `matchbound roc scores.csv --far 0.01 --min-dcf 0.01 --plot det.png`
    """
    from matchbound.calls.roc import roc as run
    from matchbound.files.writing import write_atomically
    from matchbound.results.number import records_of
    from matchbound.show.records import number_table

    claims = read_claims(claim, "curve")
    _of_method(method, level_far, smooth)
    priors = {"min_dcf": opt.read_priors("--min-dcf", min_dcf), "actual_dcf": opt.read_priors("--act-dcf", act_dcf)}
    opt.check_rates("--far", far)
    opt.check_rates("--frr", frr)
    ending = None if plot is None else Path(plot).suffix.lower()
    if ending is not None and ending not in PLOT_FORMATS:
        raise UsageError(f"--plot must end in {', '.join(PLOT_FORMATS)}; got {plot}")
    data = reading.load_or_scan(files)
    with running.started() as how:
        curve = run(data, weighting=weighting, **how)
        usual = [] if frr or every else [rate for rate in (1e-1, 1e-2, 1e-3) if rate * curve.tally.n_impostor >= 1.0]
        points = [curve.at_far(rate) for rate in far or usual] + [curve.at_frr(rate) for rate in frr or []]
        points += [point for point in curve.points() if isinstance(point, OperatingPoint)] if every else []
        costs = [getattr(curve, name)(prior) for name, asked in priors.items() for prior in asked]
        costs += ([curve.cllr()] if cllr else []) + ([curve.min_cllr()] if cllr or min_cllr else [])
        drawing = {"n_resamples": resamples, "rng": seed, "workers": running.workers or 1}
        records = []
        for number in (*points, curve.eer(), curve.auc(), *costs):
            own = _of_method(method, level_far, smooth, "level_frr" if number.metric == "far@frr" else "level_far")
            records += records_of([number], method, level, **drawing, **own)
        verdicts = judge_all(claims, (), curve, level=level)
        if cllr or act_dcf:
            _warn_of_scale(curve)
    if plot is not None and ending is not None:
        write_atomically(plot, _picture(curve, kind, level, ending[1:], answer.terms))
        wrote(plot)
    taken = reading.taken(data, data.distance) | {"far": far or usual}
    return Outcome(records, number_table(records).text, files, verdicts, taken=taken)


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


def _of_method(
    method: str, level_far: float | str | None, smooth: str | None, name: str = "level_far"
) -> dict[str, Any]:
    """Options of one method, refused with others."""
    if level_far is not None and method != "union":
        raise UsageError("--level-far goes with --method union")
    if isinstance(level_far, float):
        check_rate(level_far, "--level-far", "0.9", zero=True)
    if smooth is not None and method not in CURVE_BOOTSTRAPS:
        raise UsageError("--smooth goes with the bootstraps")
    options = {name: level_far, "smooth": smooth}
    return {name: value for name, value in options.items() if value is not None}


def _picture(curve: Any, kind: PlotKind, level: float, form: str, terms: Terms) -> bytes:
    """The plot as the bytes of a file; the same data give the same bytes."""
    import matplotlib

    from matchbound.show.mpl import new_axes

    axes = new_axes(pyplot=False)
    curve.plot(kind, ax=axes, level=level, terms=terms)
    buffer = io.BytesIO()
    unstamped = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[form]
    with matplotlib.rc_context({"svg.hashsalt": "matchbound"}):
        figure = axes.get_figure(root=True)
        assert figure is not None
        figure.savefig(buffer, format=form, dpi=200, bbox_inches="tight", metadata=unstamped)
    return buffer.getvalue()
