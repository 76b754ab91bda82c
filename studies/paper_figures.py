"""The coverage experiments of the paper, each a CSV and a picture (Fogliato, Patil & Perona 2024, Figs. 1 to 5, §C).

    python studies/paper_figures.py fig3 --replications 2000 --seed 0 --output docs/reproduction
    python studies/paper_figures.py fig5 --splits 20 --replications 20 --data DIR --output docs/reproduction

Figures: fig1, fig2, fig3, fig4, width, table (synthetic people); fig5, roc, diverse (real data: DIR holds the files of
`real_sets.py`). fig1 to fig3, width and table are views of one study of G = 50 people with M = 5 instances each; name a
folder with --keep to make it once, and to resume a run that was stopped. fig5 and roc are made on --splits random
halves of the faces, --replications data sets each: which people are in a half decides what the smallest rates are.
--latent-only makes the rows `latent` again and leaves the other rows of the CSV as they are.
"""

from __future__ import annotations

import argparse
import csv
import io
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from coverage_panels import STYLES, draw_lines, legend_below, new_figure, panel_title, plot_study, rows_csv, split
from real_sets import SETS, load

from matchbound._version import __version__
from matchbound.files.writing import write_atomically
from matchbound.study.coverage import CURVE_METHODS, CoverageRow, CoverageStudy, coverage_study
from matchbound.study.models import SyntheticModel, population_of

PAPER_METHODS = ("naive-wilson", "wilson", "wald", "subsets", "two-level", "vertex", "double-or-nothing")
REAL_METHODS = ("naive-wilson", "wilson", "vertex", "double-or-nothing", "latent")
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)
FAR_GRID = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1)
FRR_GRID = (1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1)
FAR_RATES = (1e-4, 1e-3, 1e-2, 1e-1)
FRR_RATES = (1e-3, 1e-2, 1e-1)
CURVE_RATES = (1e-3, 1e-2, 1e-1)
IDENTITIES = (5, 10, 20, 30, 50, 75, 100)
DIVERSE = {"speakers": 20, "texts": 20, "drawings": 50}
"""Data sets of the figure on diverse data, and identities drawn from each: few where there are few."""
LATENT_SHARE = 4
"""Of synthetic people, the latent interval is studied on the first quarter of the replications."""
TRUTH_IDENTITIES = 1_000_000


@dataclass(frozen=True)
class Request:
    """What to make; the fields are the options of the command."""

    output: Path
    replications: int | None = None
    splits: int = 20
    seed: int = 0
    resamples: int = 1000
    workers: int = 1
    data: Path | None = None
    keep: Path | None = None
    truth_identities: int = TRUTH_IDENTITIES
    latent_only: bool = False

    def command(self, figure: str, replications: int) -> str:
        """The command that makes the same CSV again."""
        words = ["python", "studies/paper_figures.py", figure, "--replications", str(replications)]
        words += ["--resamples", str(self.resamples), "--seed", str(self.seed)]
        if figure in OVER_SPLITS:
            words += ["--splits", str(self.splits)]
        if self.truth_identities != TRUTH_IDENTITIES:
            words += ["--truth-identities", str(self.truth_identities)]
        words += ["--latent-only"] if self.latent_only else []
        return shlex.join([*words, *(("--data", "DIR") if figure in NEED_DATA else ())])

    def study(self, source: Any, name: str, replications: int, **asked: Any) -> CoverageStudy:
        """A coverage study that is kept under a name."""
        return coverage_study(
            source,
            replications=replications,
            n_resamples=self.resamples,
            workers=self.workers,
            truth_identities=self.truth_identities,
            resume=None if self.keep is None else self.keep / f"{name}-seed{self.seed}.npz",
            **{"rng": self.seed, **asked},
        )

    def g50(self, replications: int, name: str = "g50", **asked: Any) -> CoverageStudy:
        """The study of 50 synthetic people that several figures show."""
        rates = {"far": FAR_GRID, "frr": FRR_GRID}
        options = {"methods": PAPER_METHODS, "levels": LEVELS, "G": 50, "rates": rates, **asked}
        return self.study(SyntheticModel(), name, replications, **options)

    def g50_rows(self, figure: str, replications: int) -> list[CoverageRow]:
        """Its rows, and those of the latent interval on a quarter of the data sets."""
        few = {"far": FAR_RATES, "frr": FRR_RATES}
        latent = self.g50(max(replications // LATENT_SHARE, 1), "g50-latent", methods=("latent",), rates=few)
        if self.latent_only:
            return [*_kept_rows(self.output / f"{figure}.csv"), *latent.rows]
        return [*self.g50(replications).rows, *latent.rows]


@dataclass(frozen=True)
class SplitRow(CoverageRow):
    """Coverage over several splits of the same people; the Monte Carlo error is that of the mean over splits.

    truth, threshold
        Means over splits.
    truth_low, truth_high
        The smallest and the largest truth of a split.
    coverage_low, coverage_high
        Mean ± 1.96 standard errors, from the spread of the splits' coverages.
    worst_split
        The lowest coverage of a split.
    """

    splits: int = 0
    truth_low: float = 0.0
    truth_high: float = 0.0
    worst_split: float = 0.0


def over_splits(studies: Sequence[CoverageStudy]) -> list[SplitRow]:
    """Rows of several studies of one design as one row for each rate, method and level.

    A split without a single error at a threshold is left out there: every interval that begins at 0 covers.
    """
    rows = []
    for group in split((row for study in studies for row in study.rows if row.truth > 0.0), _cell_of):
        covered = np.array([row.coverage for row in group])
        error = float(covered.std(ddof=1) / np.sqrt(covered.size)) if covered.size > 1 else float("nan")
        mean = {
            name: float(np.mean([getattr(row, name) for row in group]))
            for name in (item.name for item in fields(CoverageRow))
            if isinstance(getattr(group[0], name), float)
        }
        truths = [row.truth for row in group]
        rows.append(
            SplitRow(
                **{
                    **asdict(group[0]),
                    **mean,
                    "target": group[0].target,
                    "replications": sum(row.replications for row in group),
                    "coverage_low": max(float(covered.mean()) - 1.96 * error, 0.0),
                    "coverage_high": min(float(covered.mean()) + 1.96 * error, 1.0),
                },
                splits=len(group),
                truth_low=min(truths),
                truth_high=max(truths),
                worst_split=float(covered.min()),
            )
        )
    return rows


def _cell_of(row: CoverageRow) -> tuple[str, float, str, float]:
    return row.metric, row.target, row.method, row.level


def fig1(request: Request) -> tuple[Path, ...]:
    """Six methods, two systems of equal FAR 0.1: the first pair of data sets that naive Wilson tells apart."""
    count = request.replications or 1000
    made = request.g50(count).outcomes[0]
    c, k = FAR_GRID.index(1e-1), LEVELS.index(0.95)
    even = count - count % 2
    limits = made.limits[:even, c, :, k, :].reshape(even // 2, 2, len(PAPER_METHODS), 2)
    estimates = (made.errors[:even, c] / made.comparisons[:even, c]).reshape(-1, 2)
    apart = (limits[:, 0, :, 0] > limits[:, 1, :, 1]) | (limits[:, 1, :, 0] > limits[:, 0, :, 1])
    pair = int(np.argmax(apart[:, PAPER_METHODS.index("naive-wilson")]))
    worse = int(np.argmax(estimates[pair]))
    records = []
    for s, method in enumerate(PAPER_METHODS):
        for system, which in (("A", worse), ("B", 1 - worse)):
            if method != "wald":
                low, high = limits[pair, which, s].tolist()
                interval = {"estimate": float(estimates[pair, which]), "low": low, "high": high, "truth": 1e-1}
                told_apart = float(apart[:, s].mean())
                records.append({"method": method, "system": system, **interval, "pairs_told_apart": told_apart})
    facts = {"pairs of data sets": even // 2, "pair shown": f"replications {2 * pair} and {2 * pair + 1}"}
    return write("fig1", request, count, records, _draw_systems(records), facts)


def fig2(request: Request) -> tuple[Path, ...]:
    """Coverage of 95% intervals against the error rate."""
    count = request.replications or 1000
    rows = [row for row in request.g50_rows("fig2", count) if row.level == 0.95]
    return write("fig2", request, count, rows, plot_study(rows, "rate")[0])


def fig3(request: Request) -> tuple[Path, ...]:
    """Estimated against nominal coverage."""
    count = request.replications or 1000
    rows = _ordered(request.g50_rows("fig3", count))
    return write("fig3", request, count, rows, plot_study(rows)[0])


def fig4(request: Request) -> tuple[Path, ...]:
    """Coverage of 95% intervals for FAR against the number of identities."""
    count = request.replications or 100
    asked: dict[str, Any] = {"G": IDENTITIES, "rates": {"far": FAR_RATES}}
    methods = ("latent",) if request.latent_only else (*PAPER_METHODS, "latent")
    study = request.study(SyntheticModel(), f"by-identities-{len(methods)}", count, methods=methods, **asked)
    rows = [*(_kept_rows(request.output / "fig4.csv") if request.latent_only else ()), *study.rows]
    return write("fig4", request, count, rows, plot_study(rows, "identities")[0])


def width(request: Request) -> tuple[Path, ...]:
    """Coverage against width, and width against nominal coverage."""
    count = request.replications or 1000
    found = request.g50_rows("width", count)
    rows = [row for row in found if row.metric == "far" and row.target in FAR_RATES]
    return write("width", request, count, rows, _draw_widths(rows))


def table(request: Request) -> tuple[Path, ...]:
    """The table of coverage at level 0.95, without a picture, with four readings of the two-level bootstrap."""
    count = request.replications or 2000
    rows = [row for row in _ordered(request.g50(count).rows) if row.level == 0.95]
    variants = {name: TwoLevelReading(*reading) for name, reading in TWO_LEVEL_READINGS.items()}
    rows += request.g50(count, "g50-two-level", methods=variants, levels=(0.95,), rates={"frr": FRR_RATES}).rows
    population = population_of(SyntheticModel(), request.truth_identities)
    truth = [population.meet("far", rate) for rate in FAR_RATES] + [population.meet("frr", rate) for rate in FRR_RATES]
    errors = (f"{true.metric} {true.rate:g}: {true.standard_error / true.rate:.2%}" for true in truth)
    return write("table", request, count, rows, None, {"standard errors of the truth": ", ".join(errors)})


def fig5(request: Request) -> tuple[Path, ...]:
    """Estimated against nominal coverage on real faces."""
    count = request.replications or 20
    asked = {"methods": REAL_METHODS, "levels": LEVELS, "G": 50, "rates": {"far": FAR_RATES, "frr": FRR_RATES}}
    rows = _ordered(_over_faces(request, "faces", count, **asked))
    return write("fig5", request, count, rows, plot_study(rows)[0], {"data": SETS["faces"].what})


def roc(request: Request) -> tuple[Path, ...]:
    """Estimated against nominal coverage of intervals for FRR at a FAR, on real faces."""
    count = request.replications or 20
    methods = (*CURVE_METHODS, "latent")
    rows = _over_faces(
        request, "faces-roc", count, methods=methods, levels=LEVELS, G=50, rates={"frr@far": CURVE_RATES}
    )
    return write("roc", request, count, rows, plot_study(rows)[0], {"data": SETS["faces"].what})


def diverse(request: Request) -> tuple[Path, ...]:
    """Estimated against nominal coverage on speakers, texts and drawings."""
    count = request.replications or 400
    records: list[dict[str, Any]] = []
    figure, panels = new_figure(len(DIVERSE), 2)
    methods = ("latent",) if request.latent_only else (*PAPER_METHODS, "latent")
    for column, (kind, identities) in enumerate(DIVERSE.items()):
        asked: dict[str, Any] = {"methods": methods, "levels": LEVELS, "G": identities}
        rates = {"frr": (1e-1,), "far": (1e-2,)}
        study = request.study(load(kind, request.data), f"{kind}-{len(methods)}", count, rates=rates, **asked)
        every = [*(_kept_rows(request.output / "diverse.csv", kind) if request.latent_only else ()), *study.rows]
        records += [{"data": kind, **asdict(row)} for row in every]
        for line, metric in enumerate(("frr", "far")):
            panel, rows = panels[line][column], [row for row in every if row.metric == metric]
            panel.plot([0.5, 1.0], [0.5, 1.0], "k--", linewidth=0.8)
            draw_lines(panel, rows, lambda row: row.level, lambda row: row.coverage_adjusted)
            panel.set_title(f"{kind}, {panel_title(rows[0])}", fontsize=9)
            panel.set_xlabel("nominal coverage", fontsize=8)
            panel.set_ylabel("" if column else "estimated coverage, adjusted", fontsize=8)
    legend_below(figure, every)
    return write("diverse", request, count, records, panels[0][0], {kind: SETS[kind].what for kind in DIVERSE})


def _over_faces(request: Request, name: str, count: int, **asked: Any) -> list[SplitRow]:
    faces = load("faces", request.data)
    seeds = [request.seed * 1000 + number for number in range(request.splits)]
    return over_splits([request.study(faces, f"{name}-{seed}", count, rng=seed, **asked) for seed in seeds])


def _ordered(rows: Sequence[Any]) -> list[Any]:
    """Rows at the rates of the paper's figures, FRR first."""
    cells = [*(("frr", rate) for rate in FRR_RATES), *(("far", rate) for rate in FAR_RATES)]
    return [row for cell in cells for row in rows if (row.metric, row.target) == cell]


def _kept_rows(path: Path, kind: str | None = None) -> list[CoverageRow]:
    """Rows of a CSV that are not of the latent interval; of one data set, where it has several."""
    kinds = {item.name: {"str": str, "int": int, "float": float}[str(item.type)] for item in fields(CoverageRow)}
    with open(path, encoding="utf-8", newline="") as stream:
        records = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    mine = [record for record in records if record["method"] != "latent" and record.get("data") == kind]
    return [CoverageRow(**{name: cast(record[name]) for name, cast in kinds.items()}) for record in mine]


TWO_LEVEL_READINGS = {
    "two-level, both orders": (True, False),
    "two-level, shared draw": (False, True),
    "two-level, both orders, shared draw": (True, True),
}


@dataclass(frozen=True)
class TwoLevelReading:
    """Other readings of the two-level bootstrap of FRR, to explain other programs' numbers; not methods to use.

    both_orders
        Each comparison is there twice, as (k, l) and as (l, k): half the variance within an identity.
    shared
        All copies of an identity share one draw instead of one draw each: more variance.
    """

    both_orders: bool
    shared: bool

    def __call__(self, rate: Any, levels: Any, n_resamples: int, seed: int) -> list[tuple[float, float]]:
        replicates = self.replicates(
            rate.tally.genuine.errors[rate.index], rate.tally.genuine.comparisons, n_resamples, seed
        )
        tails = [((1.0 - level) / 2.0, (1.0 + level) / 2.0) for level in levels]
        return [tuple(np.quantile(replicates, tail, method="weibull").tolist()) for tail in tails]

    def replicates(self, errors: Any, comparisons: Any, n_resamples: int, seed: int) -> Any:
        """FRR of each replicate, shape (B,)."""
        rng = np.random.default_rng(seed)
        used = np.flatnonzero(comparisons)
        made = comparisons[used] * (2 if self.both_orders else 1)
        copies = rng.multinomial(used.size, np.full(used.size, 1.0 / used.size), n_resamples)
        trials = np.broadcast_to(made, copies.shape) if self.shared else copies * made
        drawn = rng.binomial(trials, errors[used] / comparisons[used])
        return (drawn * copies if self.shared else drawn).sum(axis=1) / (copies @ made)


def _draw_systems(records: Sequence[dict[str, Any]]) -> Any:
    """Intervals of two systems by each method."""
    figure, ((panel,),) = new_figure(1)
    methods = list(dict.fromkeys(record["method"] for record in records))
    panel.axhline(records[0]["truth"], color="black", linestyle="--", linewidth=0.8)
    for record in records:
        shift, marker = (-0.15, "o") if record["system"] == "A" else (0.15, "s")
        estimate, colour = record["estimate"], STYLES[record["method"]][0]
        reach = [[estimate - record["low"]], [record["high"] - estimate]]
        place = methods.index(record["method"]) + shift
        panel.errorbar(place, estimate, reach, fmt=marker, color=colour, capsize=3, markersize=4)
    panel.set_xticks(range(len(methods)), [STYLES[method][1] for method in methods], rotation=30, ha="right")
    panel.set_ylabel("FAR with 95% interval", fontsize=8)
    panel.set_title("two systems of equal accuracy (A: circles, B: squares)", fontsize=9)
    figure.set_size_inches(6.4, 3.6)
    return panel


def _draw_widths(rows: Sequence[CoverageRow]) -> Any:
    """Coverage against mean width (top) and mean width against the level (bottom), a column for each rate."""
    from matplotlib.ticker import NullFormatter

    groups = split(rows, lambda row: (row.metric, row.target))
    figure, lines = new_figure(len(groups), 2, sharey=False)
    for top, bottom, group in zip(*lines, groups, strict=True):
        draw_lines(top, group, lambda row: row.mean_width)
        draw_lines(bottom, group, lambda row: row.level, lambda row: row.mean_width)
        top.set_xscale("log")
        bottom.set_yscale("log")
        top.xaxis.set_minor_formatter(NullFormatter())
        bottom.yaxis.set_minor_formatter(NullFormatter())
        top.set_xlabel("mean width", fontsize=8)
        bottom.set_xlabel("nominal coverage", fontsize=8)
        top.set_title(panel_title(group[0]), fontsize=9)
    lines[0][0].set_ylabel("estimated coverage", fontsize=8)
    lines[1][0].set_ylabel("mean width", fontsize=8)
    legend_below(figure, rows)
    return lines[0][0]


def write(
    figure: str, request: Request, count: int, rows: Sequence[Any], panel: Any, facts: dict[str, Any] | None = None
) -> tuple[Path, ...]:
    """Write the CSV, with the command that made it, and the picture."""
    request.output.mkdir(parents=True, exist_ok=True)
    header = {"command": request.command(figure, count), "seed": request.seed, "version": __version__, **(facts or {})}
    target = request.output / ("table-g50.csv" if figure == "table" else f"{figure}.csv")
    if request.latent_only:
        lines = target.read_text(encoding="utf-8").splitlines()
        known = [line.removeprefix("# other methods: ") for line in lines if line.startswith("# other methods: ")]
        header["other methods"] = known[0] if known else lines[0].removeprefix("# command: ")
    records = [row if isinstance(row, dict) else asdict(row) for row in rows]
    write_atomically(target, rows_csv(records, header))
    if panel is None:
        return (target,)
    image = io.BytesIO()
    panel.figure.savefig(image, dpi=140, metadata={"Software": f"matchbound {__version__}"})
    write_atomically(target.with_suffix(".png"), image.getvalue())
    return target, target.with_suffix(".png")


FIGURES: dict[str, Callable[[Request], tuple[Path, ...]]] = {
    made.__name__: made for made in (fig1, fig2, fig3, fig4, fig5, width, roc, diverse, table)
}
NEED_DATA = ("fig5", "roc", "diverse")
OVER_SPLITS = ("fig5", "roc")


def main(words: Sequence[str] | None = None) -> None:
    """Parse the options and make the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="+", choices=sorted(FIGURES), metavar="figure")
    for item in fields(Request):
        option = f"--{item.name.replace('_', '-')}"
        if item.name == "latent_only":
            parser.add_argument(option, action="store_true")
        else:
            kind = Path if item.name in ("output", "data", "keep") else int
            parser.add_argument(option, type=kind, default=Path() if item.name == "output" else item.default)
    options = vars(parser.parse_args(words))
    request = Request(**{name: value for name, value in options.items() if name != "figures"})
    for figure in options["figures"]:
        for path in FIGURES[figure](replace(request)):
            sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
