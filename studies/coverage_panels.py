"""Pictures of coverage studies, as small panels with one line per method, and their rows as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matchbound.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from matchbound.study.coverage import CoverageRow

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
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
    return figure, [list(line) for line in panels]


def plot_study(rows: Sequence[CoverageRow], kind: str = "nominal", level: float = 0.95) -> Sequence[Axes]:
    """Draw the rows of a study; see `CoverageStudy.plot`."""
    if not rows:
        raise UsageError("the study has no rows to draw")
    if kind == "nominal":
        groups = split(rows, lambda row: (row.metric, row.target))
        across, label, title = (lambda row: row.level), "nominal coverage", panel_title
    elif kind == "rate":
        groups = split((row for row in rows if abs(row.level - level) < 1e-9), lambda row: row.metric)
        across, label, title = (lambda row: row.target), "true rate", lambda row: NAMES[row.metric]
    elif kind == "identities":
        groups = split((row for row in rows if abs(row.level - level) < 1e-9), lambda row: (row.metric, row.target))
        across, label, title = (lambda row: float(row.n_identities)), "identities", panel_title
    else:
        raise UsageError(f"kind must be 'nominal', 'rate' or 'identities'; got {kind!r}")
    panels = _panels([group[0].metric for group in groups])
    for panel, group in zip(panels, groups, strict=True):
        if kind == "nominal":
            panel.plot([0.5, 1.0], [0.5, 1.0], "k--", linewidth=0.8)
        else:
            panel.axhline(level, color="black", linestyle="--", linewidth=0.8)
        draw_lines(panel, group, across)
        panel.set_title(title(group[0]), fontsize=9)
        panel.set_xlabel(label, fontsize=8)
        panel.set_xscale("log" if kind == "rate" else "linear")
        place = panel.get_subplotspec()
        if place is None or place.is_first_col():
            panel.set_ylabel("estimated coverage", fontsize=8)
    legend_below(panels[0].figure, rows)
    return panels


def _panels(metrics: Sequence[str]) -> list[Axes]:
    """A panel for each entry: in one line, or a line for each metric where one line would be too long."""
    kinds = list(dict.fromkeys(metrics))
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


def draw_lines(
    panel: Axes,
    rows: Sequence[CoverageRow],
    across: Callable[[CoverageRow], float],
    upward: Callable[[CoverageRow], float] | None = None,
) -> None:
    """One line for each method; of coverage, with a band that is its own 95% interval."""
    for mine in split(rows, lambda row: row.method):
        mine = sorted(mine, key=across)
        x = [across(row) for row in mine]
        colour, label = style(mine[0].method)
        y = [row.coverage if upward is None else upward(row) for row in mine]
        panel.plot(x, y, color=colour, marker="o", markersize=2.5, linewidth=1.2, label=label)
        if upward is None:
            low, high = [row.coverage_low for row in mine], [row.coverage_high for row in mine]
            panel.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def legend_below(figure: Any, rows: Iterable[Any]) -> None:
    """One legend for all panels, under them."""
    from matplotlib.lines import Line2D

    styles = [style(method) for method in dict.fromkeys(row.method for row in rows)]
    handles = [Line2D([], [], color=colour, marker="o", markersize=3, label=label) for colour, label in styles]
    columns = 2 if len(figure.axes) == 1 else 4
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=8, frameon=False)


def panel_title(row: CoverageRow) -> str:
    """The rate that intervals were to cover, and the rate that its threshold was meant for where that is another."""
    name = NAMES.get(row.metric, row.metric)
    if row.metric == "frr@far":
        return f"{name} = {row.target:g}: {row.truth:.2g}"
    if abs(row.truth / row.target - 1.0) < 0.005:
        return f"{name} = {row.target:g}"
    return f"{name} = {row.truth:.3g} (aimed at {row.target:g})"


def style(method: str) -> tuple[str, str]:
    """Colour and label of a method."""
    return STYLES.get(method, ("#333333", method))


def split(rows: Iterable[Any], key: Callable[[Any], Any]) -> list[list[Any]]:
    """Rows in groups of equal keys, in the order in which they come."""
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


def rows_csv(records: Sequence[Mapping[str, Any]], header: Mapping[str, Any]) -> str:
    """Records of one kind as CSV after ``# key: value`` lines."""
    stream = io.StringIO()
    for key, value in header.items():
        stream.write(f"# {key}: {value}\n")
    if records:
        writer = csv.DictWriter(stream, list(records[0]), lineterminator="\n")
        writer.writeheader()
        for record in records:
            writer.writerow(
                {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in record.items()}
            )
    return stream.getvalue()
