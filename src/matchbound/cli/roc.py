"""``matchbound roc``: FRR at a FAR, FAR at an FRR, EER and AUC with intervals; ROC, DET and score plots."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from matchbound.cli import common
from matchbound.cli.common import (
    Checkpoint,
    Dask,
    Distance,
    Files,
    FormatOption,
    Level,
    Output,
    Quiet,
    Reader,
    ReaderOption,
    Resamples,
    Seed,
    Similarity,
    Workers,
)
from matchbound.errors import UsageError
from matchbound.results.methods import named

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
Plot = Annotated[str | None, Parameter(help="Picture to write: .png, .svg or .pdf.")]
Kind = Annotated[Literal["det", "roc", "scores"], Parameter(help="What the picture shows.")]


def roc(
    *files: Files,
    far: Far = None,
    frr: Frr = None,
    method: CurveMethod = "auto",
    level: Level = 0.95,
    resamples: Resamples = 2000,
    seed: Seed = 0,
    plot: Plot = None,
    kind: Kind = "det",
    distance: Distance = False,
    similarity: Similarity = "cosine",
    reader: Reader = None,
    option: ReaderOption = None,
    format: FormatOption = "table",
    output: Output = None,
    workers: Workers = None,
    dask: Dask = None,
    checkpoint: Checkpoint = None,
    quiet: Quiet = False,
) -> int:
    """FRR at given FARs, FAR at given FRRs, the equal error rate and the area under the curve, with intervals.

    Example: `matchbound roc scores.csv --far 0.01 --far 0.001 --plot det.png`
    """
    from matchbound.calls.rates import roc as run
    from matchbound.files.writing import write_atomically
    from matchbound.results.points import OperatingPoint
    from matchbound.show.curve import curve_records, curve_table

    if not 0.0 < level < 1.0:
        raise UsageError(f"--level must lie between 0 and 1, such as 0.95; got {level}")
    method = named(method, OperatingPoint.methods, "--method")
    for name, rates in (("--far", far), ("--frr", frr)):
        for rate in rates or ():
            if not 0.0 <= rate <= 1.0:
                raise UsageError(f"{name} must be a rate between 0 and 1, such as 0.001; got {rate:g}")
    if plot is not None and Path(plot).suffix.lower() not in PLOT_FORMATS:
        raise UsageError(f"--plot must end in {', '.join(PLOT_FORMATS)}; got {plot}")
    with common.listening(quiet) as told:
        data = common.load(files, reader=reader, distance=distance, similarity=similarity, option=option)
        with common.running(dask, quiet) as (executor, progress):
            curve = run(data, workers=workers, executor=executor, progress=progress, checkpoint=checkpoint)
            wanted = far or ([] if frr else [f for f in (1e-1, 1e-2, 1e-3) if f * curve.tally.n_impostor >= 1.0])
            points = [curve.at_far(rate) for rate in wanted] + [curve.at_frr(rate) for rate in frr or []]
            numbers = [*points, curve.eer(), curve.auc()]
            records = curve_records(numbers, method, level, n_resamples=resamples, rng=seed, workers=workers or 1)
        picture = None if plot is None else _picture(curve, kind, level, Path(plot).suffix.lower()[1:])
    source = common.provenance(
        files,
        seed,
        {
            "verb": "roc",
            "far": wanted or None,
            "frr": frr or None,
            "method": method,
            "level": level,
            "resamples": resamples,
            "distance": data.distance,
            "similarity": common.similarity_of(data),
            "reader": reader,
        },
    )
    if plot is not None and picture is not None:
        write_atomically(plot, picture)
    text = curve_table(records, colour=common.colour_wanted(output)) if format == "table" else ""
    common.deliver(format, output, records, text, told.texts, source)
    return 0


def _picture(curve: Any, kind: Literal["det", "roc", "scores"], level: float, form: str) -> bytes:
    """The plot as the bytes of a file; the same data give the same bytes."""
    import matplotlib

    options = {} if kind == "scores" else {"level": level}
    axes = curve.plot(kind, **options)
    buffer = io.BytesIO()
    unstamped = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[form]
    with matplotlib.rc_context({"svg.hashsalt": "matchbound"}):
        axes.figure.savefig(buffer, format=form, dpi=200, bbox_inches="tight", metadata=unstamped)
    return buffer.getvalue()
