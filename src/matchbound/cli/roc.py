"""``matchbound roc``: FRR at a FAR, FAR at an FRR, EER and AUC with intervals; ROC, DET and score plots."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from matchbound.cli import common
from matchbound.cli.claims import ClaimOption, exit_code, needs_threshold, read_claims
from matchbound.cli.costs import ActDcf, CllrOption, MinDcf, read_priors
from matchbound.cli.laboratory import LABORATORY, Laboratory
from matchbound.cli.options import (
    ANSWER,
    READING,
    RUNNING,
    Answer,
    Files,
    Level,
    Quiet,
    Reading,
    Resamples,
    Running,
    Seed,
    Weighting,
    check_rates,
    wrote,
)
from matchbound.errors import UsageError
from matchbound.results.claims import judge_all
from matchbound.results.interval import check_rate, named
from matchbound.show.terms import Terms

PLOT_FORMATS = (".png", ".svg", ".pdf")

Far = Annotated[
    list[float] | None, Parameter(help="FAR at which FRR is wanted; repeat it for several.", negative_iterable="")
]
Frr = Annotated[
    list[float] | None, Parameter(help="FRR at which FAR is wanted; repeat it for several.", negative_iterable="")
]
CurveMethod = Annotated[
    str,
    Parameter(help="auto, latent, influence, union, vertex, double-or-nothing, subsets or two-level."),
]
Every = Annotated[
    bool,
    Parameter(
        name="--points",
        help="FRR at FAR 1e-2 … 1e-6 as the data support, and where nothing matches.",
        negative="",
        show_default=False,
    ),
]
MinCllr = Annotated[
    bool,
    Parameter(
        help="minCllr, for scores of any scale.",
        negative="",
        show_default=False,
    ),
]
LevelFar = Annotated[
    float | Literal["calibrate"] | None,
    Parameter(help="Of the union rule: the level of FAR's interval, or calibrate; 0.9 as in the authors' program."),
]
SmoothOption = Annotated[
    str | None, Parameter(help="Of the bootstraps: read each curve smoothed by binormal, log-normal or kernel.")
]
Plot = Annotated[str | None, Parameter(help="Picture to write: .png, .svg or .pdf.")]
PlotKind = Literal["det", "roc", "scores", "precision-recall", "thresholds", "costs"]
Kind = Annotated[PlotKind, Parameter(help="What the picture shows.")]


def roc(
    *files: Files,
    far: Far = None,
    frr: Frr = None,
    weighting: Weighting = "comparisons",
    method: CurveMethod = "auto",
    level: Level = 0.95,
    level_far: LevelFar = None,
    smooth: SmoothOption = None,
    resamples: Resamples = 2000,
    seed: Seed = 0,
    every: Every = False,
    min_dcf: MinDcf = None,
    act_dcf: ActDcf = None,
    cllr: CllrOption = False,
    min_cllr: MinCllr = False,
    claim: ClaimOption = None,
    plot: Plot = None,
    kind: Kind = "det",
    reading: Reading = READING,
    running: Running = RUNNING,
    answer: Answer = ANSWER,
    laboratory: Laboratory = LABORATORY,
    quiet: Quiet = False,
) -> int:
    """FRR at given FARs, FAR at given FRRs, EER, AUC, detection costs and Cllr, with intervals.

    Example: `matchbound roc scores.csv --far 0.01 --min-dcf 0.01 --cllr --plot det.png`
    """
    from matchbound.calls.roc import roc as run
    from matchbound.files.writing import write_atomically
    from matchbound.results.number import records_of
    from matchbound.results.points import OperatingPoint
    from matchbound.show.curve import curve_table

    method = named(method, (*OperatingPoint.methods, "log-t"), "--method")
    chosen = _chosen(method, level_far, smooth)
    claims = read_claims(claim)
    if needs_threshold(claims):
        raise UsageError("a claim about rates at a threshold goes with matchbound evaluate --threshold")
    priors = {"min_dcf": read_priors("--min-dcf", min_dcf), "actual_dcf": read_priors("--act-dcf", act_dcf)}
    for name, rates in (("--far", far), ("--frr", frr)):
        check_rates(name, rates)
    if plot is not None and Path(plot).suffix.lower() not in PLOT_FORMATS:
        raise UsageError(f"--plot must end in {', '.join(PLOT_FORMATS)}; got {plot}")
    with common.listening(quiet) as told:
        data = reading.load_or_scan(files)
        with running.started(quiet) as how:
            curve = run(data, weighting=weighting, **how)
            wanted = far or (
                [] if frr or every else [f for f in (1e-1, 1e-2, 1e-3) if f * curve.tally.n_impostor >= 1.0]
            )
            points = [curve.at_far(rate) for rate in wanted] + [curve.at_frr(rate) for rate in frr or []]
            points += [point for point in curve.points() if isinstance(point, OperatingPoint)] if every else []
            numbers = [*points, curve.eer(), curve.auc()]
            costs = [getattr(curve, name)(prior) for name, asked in priors.items() for prior in asked]
            costs += ([curve.cllr()] if cllr else []) + ([curve.min_cllr()] if cllr or min_cllr else [])
            drawing = {"n_resamples": resamples, "rng": seed, "workers": running.workers or 1}
            by_frr = {"level_frr" if name == "level_far" else name: value for name, value in chosen.items()}
            records = [
                record
                for number in (*numbers, *costs)
                for record in records_of(
                    [number], method, level, **drawing, **(by_frr if number.metric == "far@frr" else chosen)
                )
            ]
            made = judge_all(claims, (), curve, level=level)
        picture = None if plot is None else _picture(curve, kind, level, Path(plot).suffix.lower()[1:], answer.terms)
    source = common.provenance(
        files,
        seed,
        {
            "verb": "roc",
            "far": wanted or None,
            "frr": frr or None,
            "weighting": None if weighting == "comparisons" else weighting,
            "method": method,
            "level": level,
            **chosen,
            "resamples": resamples,
            "min_dcf": min_dcf or None,
            "act_dcf": act_dcf or None,
            "cllr": cllr or None,
            "claim": claim or None,
            **reading.parameters(data, data.distance),
        },
        laboratory,
    )
    if plot is not None and picture is not None:
        write_atomically(plot, picture)
        wrote(plot, quiet)
    answer.deliver(records, partial(curve_table, records), told.texts, source, made)
    return exit_code(made)


def _chosen(method: str, level_far: float | str | None, smooth: str | None) -> dict[str, Any]:
    """Options of one method, refused with others."""
    from matchbound.stats.curve.bootstrap import CURVE_BOOTSTRAPS
    from matchbound.stats.curve.smooth import SMOOTHS

    if level_far is not None and method != "union":
        raise UsageError("--level-far goes with --method union")
    if isinstance(level_far, float):
        check_rate(level_far, "--level-far", "0.9", zero=True)
    if smooth is not None and method not in CURVE_BOOTSTRAPS:
        raise UsageError("--smooth goes with the bootstraps")
    made: dict[str, Any] = {} if level_far is None else {"level_far": level_far}
    return made if smooth is None else made | {"smooth": named(smooth, SMOOTHS, "--smooth")}


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
