"""Pictures of coverage studies: small panels, one line per method, the promise as a dashed line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from matchbound.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from matchbound.study.coverage import CoverageRow

Kind = Literal["nominal", "rate", "identities", "width"]

STYLES: dict[str, tuple[str, str]] = {
    "naive-wilson": ("#999999", "naive Wilson"),
    "wilson": ("#0072b2", "Wilson"),
    "wald": ("#56b4e9", "Wald"),
    "subsets": ("#e69f00", "subsets"),
    "two-level": ("#b8860b", "two-level"),
    "vertex": ("#009e73", "vertex"),
    "double-or-nothing": ("#cc79a7", "double-or-nothing"),
    "latent": ("#d55e00", "latent (not in the paper)"),
    "union": ("#0072b2", "union of Wilson"),
    "influence": ("#56b4e9", "influence (not in the paper)"),
    "smoothed double-or-nothing": ("#7b3f61", "double-or-nothing, log-normal"),
}
"""Colour and name of each method; colours that people with colour blindness can tell apart."""
MOST_COLUMNS = 4
NAMES = {"far": "FAR", "frr": "FRR", "frr@far": "FRR at FAR"}


def new_figure(n_columns: int, n_rows: int = 1, *, sharey: bool = True) -> tuple[Figure, list[list[Axes]]]:
    """A figure of panels that is drawn to a file, without a window; panels as rows of columns."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("plots need matplotlib: install matchbound[plots]") from None
    figure = Figure(figsize=(2.0 + 2.35 * n_columns, 0.9 + 2.3 * n_rows), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(n_rows, n_columns, sharey=sharey, squeeze=False)
    for panel in panels.flat:
        panel.grid(True, color="#e6e6e6", linewidth=0.6)
        panel.set_axisbelow(True)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
        panel.tick_params(labelsize=8)
    return figure, [list(line) for line in panels]


def plot_study(rows: Sequence[CoverageRow], kind: Kind = "nominal", *, level: float = 0.95) -> Sequence[Axes]:
    """Draw the rows of a study; the figure is ``axes[0].figure``.

    Parameters
    ----------
    rows
        Of one study.
    kind
        ``"nominal"``: coverage against the level, a panel for each rate. ``"rate"``: coverage against the rate.
        ``"identities"``: coverage against the number of identities, a panel for each rate. ``"width"``: coverage
        against mean width, and mean width against the level.
    level
        Which level, for ``"rate"`` and ``"identities"``.
    """
    if not rows:
        raise UsageError("the study has no rows to draw")
    if kind == "nominal":
        return draw_nominal(rows)
    if kind == "rate":
        return draw_by_rate([row for row in rows if abs(row.level - level) < 1e-9], level)
    if kind == "identities":
        return draw_by_identities([row for row in rows if abs(row.level - level) < 1e-9], level)
    if kind == "width":
        return draw_widths(rows)
    raise UsageError(f"kind must be 'nominal', 'rate', 'identities' or 'width'; got {kind!r}")


def draw_nominal(
    rows: Sequence[CoverageRow], panels: Sequence[Axes] | None = None, *, adjusted: bool = False
) -> list[Axes]:
    """Estimated against nominal coverage, one panel for each rate."""
    cells = _distinct((row.metric, row.target) for row in rows)
    if panels is None:
        panels = _lines_of_panels([metric for metric, _ in cells])
        legend_below(_figure_of(panels[0]), rows)
    for panel, (metric, target) in zip(panels, cells, strict=True):
        mine = [row for row in rows if (row.metric, row.target) == (metric, target)]
        panel.plot([0.5, 1.0], [0.5, 1.0], "k--", linewidth=0.8)
        _lines(panel, mine, lambda row: row.level, adjusted=adjusted)
        panel.set_title(_title(mine[0]), fontsize=9)
        panel.set_xlabel("nominal coverage", fontsize=8)
        panel.set_xlim(0.48, 1.01)
        place = panel.get_subplotspec()
        if place is None or place.is_first_col():
            panel.set_ylabel("estimated coverage" + (", adjusted" if adjusted else ""), fontsize=8)
    return list(panels)


def _lines_of_panels(metrics: Sequence[str]) -> list[Axes]:
    """A panel for each entry: in one line, or a line for each metric where one line would be too long."""
    kinds = _distinct(metrics)
    if len(metrics) <= MOST_COLUMNS or len(kinds) == 1:
        return new_figure(len(metrics))[1][0]
    figure, lines = new_figure(max(metrics.count(kind) for kind in kinds), len(kinds))
    chosen = []
    for line, kind in zip(lines, kinds, strict=True):
        used = metrics.count(kind)
        chosen += line[:used]
        for panel in line[used:]:
            figure.delaxes(panel)
    return chosen


def draw_by_rate(rows: Sequence[CoverageRow], level: float) -> list[Axes]:
    """Coverage against the rate, one panel for each metric."""
    metrics = _distinct(row.metric for row in rows)
    figure, lines = new_figure(max(len(metrics), 2))
    panels = lines[0][: len(metrics)]
    for panel, metric in zip(panels, metrics, strict=True):
        mine = [row for row in rows if row.metric == metric]
        panel.axhline(level, color="black", linestyle="--", linewidth=0.8)
        _lines(panel, mine, lambda row: row.target)
        panel.set_xscale("log")
        panel.set_xlabel(f"true {NAMES.get(metric, metric)}", fontsize=8)
    panels[0].set_ylabel(f"coverage of {level:.0%} intervals", fontsize=8)
    legend_below(figure, rows)
    return panels


def draw_by_identities(rows: Sequence[CoverageRow], level: float) -> list[Axes]:
    """Coverage against the number of identities, one panel for each rate."""
    cells = _distinct((row.metric, row.target) for row in rows)
    figure, lines = new_figure(len(cells))
    for panel, (metric, target) in zip(lines[0], cells, strict=True):
        mine = [row for row in rows if (row.metric, row.target) == (metric, target)]
        panel.axhline(level, color="black", linestyle="--", linewidth=0.8)
        _lines(panel, mine, lambda row: float(row.n_identities))
        panel.set_title(f"{NAMES.get(metric, metric)} = {target:g}", fontsize=9)
        panel.set_xlabel("identities", fontsize=8)
    lines[0][0].set_ylabel(f"coverage of {level:.0%} intervals", fontsize=8)
    legend_below(figure, rows)
    return lines[0]


def draw_widths(rows: Sequence[CoverageRow]) -> list[Axes]:
    """Coverage against mean width (top) and mean width against the level (bottom), a column for each rate."""
    cells = _distinct((row.metric, row.target) for row in rows)
    from matplotlib.ticker import NullFormatter

    figure, lines = new_figure(len(cells), 2, sharey=False)
    for top, bottom, (metric, target) in zip(*lines, cells, strict=True):
        mine = [row for row in rows if (row.metric, row.target) == (metric, target)]
        _lines(top, mine, lambda row: row.mean_width)
        _lines(bottom, mine, lambda row: row.level, lambda row: row.mean_width)
        top.set_xscale("log")
        bottom.set_yscale("log")
        top.xaxis.set_minor_formatter(NullFormatter())
        bottom.yaxis.set_minor_formatter(NullFormatter())
        top.set_title(f"{NAMES.get(metric, metric)} = {target:g}", fontsize=9)
        top.set_xlabel("mean width", fontsize=8)
        bottom.set_xlabel("nominal coverage", fontsize=8)
    lines[0][0].set_ylabel("estimated coverage", fontsize=8)
    lines[1][0].set_ylabel("mean width", fontsize=8)
    legend_below(figure, rows)
    return [*lines[0], *lines[1]]


def draw_systems(intervals: Sequence[Any], truth: float) -> Axes:
    """Intervals of two systems by each method; rows have method, system, estimate, low and high."""
    figure, lines = new_figure(1)
    panel = lines[0][0]
    methods = _distinct(row.method for row in intervals)
    panel.axhline(truth, color="black", linestyle="--", linewidth=0.8)
    for place, method in enumerate(methods):
        for shift, system, marker in ((-0.15, "A", "o"), (0.15, "B", "s")):
            for row in intervals:
                if row.method == method and row.system == system:
                    panel.errorbar(
                        place + shift,
                        row.estimate,
                        [[row.estimate - row.low], [row.high - row.estimate]],
                        fmt=marker,
                        color=STYLES[method][0],
                        capsize=3,
                        markersize=4,
                    )
    panel.set_xticks(range(len(methods)), [STYLES[method][1] for method in methods], rotation=30, ha="right")
    panel.set_ylabel("FAR with 95% interval", fontsize=8)
    panel.set_title("two systems of equal accuracy (A: circles, B: squares)", fontsize=9)
    figure.set_size_inches(6.4, 3.6)
    return panel


def legend_below(figure: Figure, rows: Iterable[Any]) -> None:
    """One legend for all panels, under them."""
    from matplotlib.lines import Line2D

    methods = _distinct(row.method for row in rows)
    handles = [
        Line2D([], [], color=_style(method)[0], marker="o", markersize=3, label=_style(method)[1]) for method in methods
    ]
    columns = 2 if len(figure.axes) == 1 else 4
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=8, frameon=False)


def _figure_of(panel: Axes) -> Figure:
    from matplotlib.figure import Figure

    figure = panel.figure
    assert isinstance(figure, Figure)
    return figure


def _lines(
    panel: Axes,
    rows: Sequence[CoverageRow],
    across: Callable[[CoverageRow], float],
    upward: Callable[[CoverageRow], float] | None = None,
    *,
    adjusted: bool = False,
) -> None:
    """One line for each method; coverage has a band, its own 95% interval."""
    for method in _distinct(row.method for row in rows):
        mine = sorted((row for row in rows if row.method == method), key=across)
        x = [across(row) for row in mine]
        y = [_coverage(row, adjusted) if upward is None else upward(row) for row in mine]
        colour, label = _style(method)
        panel.plot(x, y, color=colour, marker="o", markersize=2.5, linewidth=1.2, label=label)
        if upward is None and not adjusted:
            low, high = [row.coverage_low for row in mine], [row.coverage_high for row in mine]
            panel.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def _title(row: CoverageRow) -> str:
    """The rate that intervals were to cover, and what its threshold was meant for where that is another."""
    name = NAMES.get(row.metric, row.metric)
    if row.metric == "frr@far":
        return f"{name} = {row.target:g}: {row.truth:.2g}"
    if abs(row.truth / row.target - 1.0) < 0.005:
        return f"{name} = {row.target:g}"
    return f"{name} = {row.truth:.3g} (aimed at {row.target:g})"


def _coverage(row: CoverageRow, adjusted: bool) -> float:
    return row.coverage_adjusted if adjusted else row.coverage


def _style(method: str) -> tuple[str, str]:
    return STYLES.get(method, ("#333333", method))


def _distinct(items: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(items))
