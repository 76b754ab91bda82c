"""Tables of coverage, made from the CSV files of our studies: the directive ``coverage-table``.

    ```{coverage-table} ../reproduction/fig5.csv
    :metric: far
    :methods: naive-wilson wilson latent
    ```

Rows are methods, columns are the rates studied, cells are the coverage in percent and, in brackets, the mean width divided by
the true rate.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

Row = dict[str, str]


def rows_of(path: Path) -> list[Row]:
    """The rows of a study, without the lines that say how it was made."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def table(rows: list[Row], metric: str, methods: list[str], level: float, coverage: str = "coverage") -> list[list[str]]:
    """Header and lines of the table: methods down, rates (and data sets) across."""
    chosen = [row for row in rows if row["metric"] == metric and float(row["level"]) == level]
    columns = sorted({(row.get("data", ""), float(row["target"])) for row in chosen})
    header = ["method", *(f"{data + ' ' if data else ''}{metric.upper()} {target:g}" for data, target in columns)]
    lines = [header]
    for method in methods:
        cells = {(row.get("data", ""), float(row["target"])): row for row in chosen if row["method"] == method}
        if not cells:
            raise ValueError(f"no row of method {method} for {metric}")
        lines.append([method, *(_cell(cells.get(column), coverage) for column in columns)])
    return lines


def _cell(row: Row | None, coverage: str) -> str:
    if row is None:
        return "–"
    width = float(row["mean_width"]) / float(row["truth"])
    return f"{100 * float(row[coverage]):.0f}% ({width:.3g})"


class CoverageTable(SphinxDirective):
    """One table from one CSV."""

    required_arguments = 1
    option_spec = {  # noqa: RUF012
        "metric": directives.unchanged_required,
        "methods": directives.unchanged_required,
        "level": float,
        "coverage": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """Read the CSV and lay out the table."""
        relative, absolute = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        rows = rows_of(Path(absolute))
        options = self.options
        lines = table(
            rows,
            options["metric"],
            options["methods"].split(),
            options.get("level", 0.95),
            options.get("coverage", "coverage"),
        )
        text = "\n".join("| " + " | ".join(line) + " |" for line in lines[:1])
        text += "\n|" + " --- |" * len(lines[0]) + "\n"
        text += "\n".join("| `" + line[0] + "` | " + " | ".join(line[1:]) + " |" for line in lines[1:])
        found: list[nodes.Node] = self.parse_text_to_nodes(text)
        return found


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("coverage-table", CoverageTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
