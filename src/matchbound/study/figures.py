"""The experiments of the paper by name: each makes a CSV and a picture from a seed.

Fogliato, Patil & Perona (2024), Figs. 1 to 5 and the appendix "Additional numerical experiments". The synthetic ones
share one study of G = 50 people with M = 5 instances each: figures 1 to 3, the widths and the table are views of it.
"""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound._version import __version__
from matchbound.errors import UsageError
from matchbound.study import paper_figures
from matchbound.study.coverage import CoverageRow, CoverageStudy, coverage_study, rows_csv
from matchbound.study.curve_methods import CURVE_METHODS
from matchbound.study.datasets import DATASETS, load
from matchbound.study.methods import Method, TwoLevelVariant
from matchbound.study.models import SyntheticModel
from matchbound.study.runner import Cluster, Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER_METHODS = ("naive-wilson", "wilson", "wald", "subsets", "two-level", "vertex", "double-or-nothing")
REAL_METHODS = ("naive-wilson", "wilson", "vertex", "double-or-nothing", "latent")
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)
FAR_GRID = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1)
FRR_GRID = (1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1)
FAR_RATES = (1e-4, 1e-3, 1e-2, 1e-1)
CURVE_RATES = (1e-3, 1e-2, 1e-1)
CURVE_LATENT_LEVELS = (0.8, 0.95)
"""On curves the latent interval takes longest: fewer levels, and half of the replications."""
FRR_RATES = (1e-3, 1e-2, 1e-1)
IDENTITIES = (5, 10, 20, 30, 50, 75, 100)
TRUTH_IDENTITIES = 1_000_000
LATENT_SHARE = 4
"""The latent interval takes longer, and is studied on the first quarter of the replications at G = 50."""
DIVERSE = {"speakers": 20, "texts": 20, "drawings": 50}
"""Data sets of the figure on diverse data, and identities drawn from each: few where there are few."""


TWO_LEVEL_VARIANTS: dict[str, Method] = {
    "two-level, both orders": TwoLevelVariant(both_orders=True),
    "two-level, shared draw": TwoLevelVariant(shared=True),
    "two-level, both orders, shared draw": TwoLevelVariant(both_orders=True, shared=True),
}
"""Readings of the two-level bootstrap that the table adds for FRR."""


@dataclass(frozen=True)
class Request:
    """What to make and with what means.

    output
        Folder for figure and CSV.
    replications
        Data sets; by default those of the experiment.
    seed, n_resamples, workers
        As in `coverage_study`.
    data
        Folder with the real data sets.
    keep
        Folder in which populations and finished replications are kept, so that figures that share a study share it
        and a stopped run resumes.
    progress
        Called as ``progress(done, total)``.
    executor
        A Dask client, or any executor of `concurrent.futures`, instead of processes.
    """

    output: Path
    replications: int | None = None
    seed: int = 0
    n_resamples: int = 1000
    workers: int = 1
    data: Path | None = None
    keep: Path | None = None
    progress: Progress | None = None
    truth_identities: int = TRUTH_IDENTITIES
    executor: Executor | Cluster | None = None

    def command(self, figure: str, replications: int) -> str:
        """The command that makes the same files again."""
        words = ["matchbound", "coverage", "--figure", figure, "--replications", str(replications)]
        words += ["--resamples", str(self.n_resamples), "--seed", str(self.seed)]
        if self.truth_identities != TRUTH_IDENTITIES:
            words += ["--truth-identities", str(self.truth_identities)]
        if figure in NEED_DATA:
            words += ["--data", "DIR"]
        return shlex.join(words)


@dataclass(frozen=True)
class SystemRow:
    """An interval for one of two systems (Fig. 1)."""

    method: str
    system: str
    estimate: float
    low: float
    high: float
    truth: float
    pairs_told_apart: float


def make_figure(name: str, request: Request) -> tuple[Path, ...]:
    """Make a figure of the paper; returns the files that were written."""
    if name not in FIGURES:
        raise UsageError(f"figure must be one of {', '.join(FIGURES)}; got {name!r}")
    request.output.mkdir(parents=True, exist_ok=True)
    return FIGURES[name](name, request)


def _fig1(name: str, request: Request) -> tuple[Path, ...]:
    """Six methods, two systems of equal FAR 0.1: the first pair of data sets that naive Wilson tells apart."""
    count = request.replications or 1000
    study = _g50(request, count)
    methods = [method for method in PAPER_METHODS if method != "wald"]
    made = study.outcomes[0]
    c, k = FAR_GRID.index(1e-1), LEVELS.index(0.95)
    limits = made.limits[: count - count % 2, c, :, k, :].reshape(count // 2, 2, len(PAPER_METHODS), 2)
    estimates = (made.errors[:, c] / made.comparisons[:, c])[: count - count % 2].reshape(-1, 2)
    apart = (limits[:, 0, :, 0] > limits[:, 1, :, 1]) | (limits[:, 1, :, 0] > limits[:, 0, :, 1])
    pair = int(np.argmax(apart[:, PAPER_METHODS.index("naive-wilson")]))
    worse = int(np.argmax(estimates[pair]))
    rows = []
    for method in methods:
        s = PAPER_METHODS.index(method)
        for system, which in (("A", worse), ("B", 1 - worse)):
            low, high = limits[pair, which, s]
            share = float(apart[:, s].mean())
            rows.append(SystemRow(method, system, float(estimates[pair, which]), float(low), float(high), 1e-1, share))
    from matchbound.study.plots import draw_systems

    facts = {"pairs of data sets": count // 2, "pair shown": f"replications {2 * pair} and {2 * pair + 1}"}
    return _write(name, request, count, rows, draw_systems(rows, 1e-1), facts)


def _fig2(name: str, request: Request) -> tuple[Path, ...]:
    """Coverage of 95% intervals against the error rate."""
    count = request.replications or 1000
    rows = [row for row in _with_latent(request, count) if row.level == 0.95]
    from matchbound.study.plots import draw_by_rate

    return _write(name, request, count, rows, draw_by_rate(rows, 0.95)[0])


def _fig3(name: str, request: Request) -> tuple[Path, ...]:
    """Estimated against nominal coverage."""
    count = request.replications or 1000
    cells = [*(("frr", rate) for rate in FRR_RATES), *(("far", rate) for rate in FAR_RATES)]
    found = _with_latent(request, count)
    rows = [row for cell in cells for row in found if (row.metric, row.target) == cell]
    from matchbound.study.plots import draw_nominal

    return _write(name, request, count, rows, draw_nominal(rows)[0])


def _fig4(name: str, request: Request) -> tuple[Path, ...]:
    """Coverage of 95% intervals for FAR against the number of identities."""
    count = request.replications or 100
    study = coverage_study(
        SyntheticModel(),
        methods=(*PAPER_METHODS, "latent"),
        levels=(0.95,),
        G=IDENTITIES,
        rates={"far": FAR_RATES},
        replications=count,
        rng=request.seed,
        **_means(request, "by-identities"),
    )
    from matchbound.study.plots import draw_by_identities

    return _write(name, request, count, study.rows, draw_by_identities(study.rows, 0.95)[0])


def _fig5(name: str, request: Request) -> tuple[Path, ...]:
    """Estimated against nominal coverage on real faces."""
    count = request.replications or 400
    study = coverage_study(
        load("faces", request.data),
        methods=REAL_METHODS,
        levels=LEVELS,
        G=50,
        rates={"far": FAR_RATES, "frr": FRR_RATES},
        replications=count,
        rng=request.seed,
        **_means(request, "faces"),
    )
    cells = [*(("frr", rate) for rate in FRR_RATES), *(("far", rate) for rate in FAR_RATES)]
    rows = [row for cell in cells for row in study.rows if (row.metric, row.target) == cell]
    from matchbound.study.plots import draw_nominal

    return _write(name, request, count, rows, draw_nominal(rows)[0], {"data": DATASETS["faces"].what})


def _width(name: str, request: Request) -> tuple[Path, ...]:
    """Coverage against width, and width against nominal coverage."""
    count = request.replications or 1000
    rows = [row for row in _with_latent(request, count) if row.metric == "far" and row.target in FAR_RATES]
    from matchbound.study.plots import draw_widths

    return _write(name, request, count, rows, draw_widths(rows)[0])


def _table(name: str, request: Request) -> tuple[Path, ...]:
    """The table of coverage at level 0.95, without a picture."""
    count = request.replications or 2000
    study = _g50(request, count)
    rows = [
        row
        for row in study.rows
        if row.level == 0.95 and row.target in (FAR_RATES if row.metric == "far" else FRR_RATES)
    ]
    variants = coverage_study(
        SyntheticModel(),
        methods=TWO_LEVEL_VARIANTS,
        levels=(0.95,),
        G=50,
        rates={"frr": FRR_RATES},
        replications=count,
        rng=request.seed,
        **_means(request, "g50-two-level"),
    )
    rows += variants.rows
    truth = SyntheticModel().truth(FAR_RATES, FRR_RATES, n_identities=request.truth_identities, cache=request.keep)
    facts = {
        "standard errors of the truth": ", ".join(
            f"{true.metric} {true.rate:g}: {true.standard_error / true.rate:.2%}" for true in (*truth.far, *truth.frr)
        )
    }
    return _write("table-g50", request, count, rows, None, facts, figure="table")


def _diverse(name: str, request: Request) -> tuple[Path, ...]:
    """Estimated against nominal coverage on speakers, texts and drawings."""
    count = request.replications or 400
    rows: list[dict[str, Any]] = []
    studies: list[CoverageStudy] = []
    for kind, identities in DIVERSE.items():
        study = coverage_study(
            load(kind, request.data),
            methods=(*PAPER_METHODS, "latent"),
            levels=LEVELS,
            G=identities,
            rates={"frr": (1e-1,), "far": (1e-2,)},
            replications=count,
            rng=request.seed,
            **_means(request, kind),
        )
        rows += [{"data": kind, **asdict(row)} for row in study.rows]
        studies.append(study)
    from matchbound.study.plots import draw_nominal, legend_below, new_figure

    figure, panels = new_figure(len(studies), 2)
    for column, (kind, study) in enumerate(zip(DIVERSE, studies, strict=True)):
        for line, metric in enumerate(("frr", "far")):
            panel = panels[line][column]
            draw_nominal(study.select(metric=metric), [panel], adjusted=True)
            panel.set_title(f"{kind}, {panel.get_title()}", fontsize=9)
            if column:
                panel.set_ylabel("")
    legend_below(figure, studies[0].rows)
    facts = {kind: DATASETS[kind].what for kind in DIVERSE}
    return _write(name, request, count, rows, panels[0][0], facts)


def _roc(name: str, request: Request) -> tuple[Path, ...]:
    """Estimated against nominal coverage of intervals for FRR at a FAR, on real faces."""
    count = request.replications or 400
    faces = load("faces", request.data)

    def study(methods: Sequence[str], levels: Sequence[float], replications: int, kept: str) -> CoverageStudy:
        return coverage_study(
            faces,
            methods=methods,
            levels=levels,
            G=50,
            rates={"frr@far": CURVE_RATES},
            replications=replications,
            rng=request.seed,
            **_means(request, kept),
        )

    rows = [
        *study(CURVE_METHODS, LEVELS, count, "faces-roc").rows,
        *study(("latent",), CURVE_LATENT_LEVELS, max(count // 2, 1), "faces-roc-latent").rows,
    ]
    from matchbound.study.plots import draw_nominal

    return _write(name, request, count, rows, draw_nominal(rows)[0], {"data": DATASETS["faces"].what})


def _g50(request: Request, count: int) -> CoverageStudy:
    return coverage_study(
        SyntheticModel(),
        methods=PAPER_METHODS,
        levels=LEVELS,
        G=50,
        rates={"far": FAR_GRID, "frr": FRR_GRID},
        replications=count,
        rng=request.seed,
        **_means(request, "g50"),
    )


def _with_latent(request: Request, count: int) -> list[CoverageRow]:
    latent = coverage_study(
        SyntheticModel(),
        methods=("latent",),
        levels=LEVELS,
        G=50,
        rates={"far": FAR_RATES, "frr": FRR_RATES},
        replications=max(count // LATENT_SHARE, 1),
        rng=request.seed,
        **_means(request, "g50-latent"),
    )
    return [*_g50(request, count).rows, *latent.rows]


def _means(request: Request, study: str) -> dict[str, Any]:
    keep = request.keep
    return {
        "n_resamples": request.n_resamples,
        "workers": request.workers,
        "executor": request.executor,
        "progress": request.progress,
        "truth_identities": request.truth_identities,
        "cache": keep,
        "resume": None if keep is None else keep / f"{study}-seed{request.seed}.npz",
    }


def _write(
    name: str,
    request: Request,
    count: int,
    rows: Sequence[Any],
    panel: Axes | None,
    facts: dict[str, Any] | None = None,
    *,
    figure: str | None = None,
) -> tuple[Path, ...]:
    from matchbound.files.writing import write_atomically

    header = {
        "command": request.command(figure or name, count),
        "seed": request.seed,
        "version": __version__,
        **(facts or {}),
    }
    table = request.output / f"{name}.csv"
    write_atomically(table, rows_csv(rows, header))
    if panel is None:
        return (table,)
    picture = request.output / f"{name}.png"
    from matplotlib.figure import Figure

    drawn = panel.figure
    assert isinstance(drawn, Figure)
    image = io.BytesIO()
    drawn.savefig(image, dpi=140, metadata={"Software": f"matchbound {__version__}"})
    write_atomically(picture, image.getvalue())
    return table, picture


def _dependence(name: str, request: Request) -> tuple[Path, ...]:
    """Cov/Var of identity pairs against FAR (the paper's §6.1)."""
    count = request.replications or 40
    rows = paper_figures.dependence_rows(count, request.seed)
    return _write(name, request, count, rows, paper_figures.draw_dependence(rows))


def _bias(name: str, request: Request) -> tuple[Path, ...]:
    """The bias of bootstrap variances (the paper's Table 1)."""
    count = request.replications or 1000
    return _write(name, request, count, paper_figures.bias_rows(count, request.seed), None)


def _protocol(name: str, request: Request) -> tuple[Path, ...]:
    """Which comparisons a protocol takes first (the paper's Appendix B)."""
    rows = paper_figures.protocol_rows()
    return _write(name, request, 1, rows, paper_figures.draw_protocol(rows))


FIGURES: dict[str, Callable[[str, Request], tuple[Path, ...]]] = {
    "fig1": _fig1,
    "fig2": _fig2,
    "fig3": _fig3,
    "fig4": _fig4,
    "fig5": _fig5,
    "width": _width,
    "roc": _roc,
    "diverse": _diverse,
    "table": _table,
    "dependence": _dependence,
    "bias": _bias,
    "protocol": _protocol,
}
NEED_DATA = ("fig5", "roc", "diverse")
SYNTHETIC = ("table", "fig1", "fig2", "fig3", "fig4", "width", "dependence", "bias", "protocol")
