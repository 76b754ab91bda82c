"""Tables of coverage, made from the CSV files of our studies: the directive ``coverage-table``.

    ```{coverage-table} ../reproduction/fig5.csv
    :metric: far
    :methods: naive-wilson wilson latent
    ```

Rows are methods, columns are the rates studied, cells are the coverage in percent and, in brackets, the mean width
divided by the true rate. The directive ``people-table`` has a row for each number of people and method, ``csv-column``
shows one column of a CSV, and the role ``csv-value`` one number, as percentages.
"""

from __future__ import annotations

import csv
import shlex
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

Row = dict[str, str]


def rows_of(path: Path) -> list[Row]:
    """The rows of a study, without the lines that say how it was made."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def table(
    rows: list[Row], metric: str, methods: list[str], level: float, coverage: str = "coverage"
) -> list[list[str]]:
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
    return cell(float(row[coverage]), float(row["mean_width"]) / float(row["truth"]))


def cell(coverage: float, width: float) -> str:
    """Coverage in percent, and width in brackets."""
    shown = f"{100 * coverage:.1f}" if 0.99 <= coverage < 1.0 else f"{100 * coverage:.0f}"
    return f"{shown}% ({width:,.0f})" if width >= 100 else f"{shown}% ({width:.2g})"


def people_table(rows: list[Row], data: str, metric: str, methods: list[str]) -> list[list[str]]:
    """Header and lines of a table by number of people: people and methods down, rates across."""
    chosen = {
        (int(row["identities"]), row["method"], float(row["rate"])): row
        for row in rows
        if row["data"] == data and row["metric"] == metric and float(row.get("level") or 0.95) == 0.95
    }
    if not chosen:
        raise ValueError(f"no row of {data} for {metric}")
    rates = sorted({key[2] for key in chosen})
    lines = [["people", "method", *(f"{metric.upper()} {rate:g}" for rate in rates)]]
    for people in sorted({key[0] for key in chosen}):
        for method in methods:
            found = [chosen[people, method, rate] for rate in rates]
            cells = [cell(float(row["coverage"]), float(row["width"])) for row in found]
            lines.append([str(people), method, *cells])
    return lines


def markdown(lines: list[list[str]]) -> str:
    """The lines as a Markdown table."""
    rule = "|" + " --- |" * len(lines[0])
    return "\n".join(
        ["| " + " | ".join(lines[0]) + " |", rule, *("| " + " | ".join(line) + " |" for line in lines[1:])]
    )


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
        text = markdown([lines[0], *([f"`{line[0]}`", *line[1:]] for line in lines[1:])])
        found: list[nodes.Node] = self.parse_text_to_nodes(text)
        return found


class PeopleTable(SphinxDirective):
    """One table by number of people from one CSV."""

    required_arguments = 1
    option_spec = {  # noqa: RUF012
        "data": directives.unchanged_required,
        "metric": directives.unchanged_required,
        "methods": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Read the CSV and lay out the table."""
        relative, absolute = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        methods = [name.strip() for name in self.options["methods"].split(",")]
        lines = people_table(rows_of(Path(absolute)), self.options["data"], self.options["metric"], methods)
        found: list[nodes.Node] = self.parse_text_to_nodes(markdown(lines))
        return found


class CsvColumn(SphinxDirective):
    """One column of a CSV, a line for each value of another."""

    required_arguments = 1
    option_spec = {"rows": directives.unchanged_required, "value": directives.unchanged_required}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Read the CSV and lay out the column."""
        relative, absolute = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        label, value = self.options["rows"], self.options["value"]
        found = {row[label]: row[value] for row in rows_of(Path(absolute))}
        text = f"| {label} | share |\n| --- | --- |\n"
        text += "\n".join(f"| `{name}` | {100 * float(number):.1f}% |" for name, number in found.items())
        made: list[nodes.Node] = self.parse_text_to_nodes(text)
        return made


class CsvValue(SphinxRole):
    """``{csv-value}`file.csv column="value" wanted```: one number of a CSV as a percentage."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Read the number."""
        file, condition, wanted = shlex.split(self.text)
        column, _, value = condition.partition("=")
        relative, absolute = self.env.relfn2path(file)
        self.env.note_dependency(relative)
        (row,) = (row for row in rows_of(Path(absolute)) if row[column] == value)
        return [nodes.Text(f"{100 * float(row[wanted]):.1f}%")], []


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("coverage-table", CoverageTable)
    app.add_directive("people-table", PeopleTable)
    app.add_directive("csv-column", CsvColumn)
    app.add_role("csv-value", CsvValue())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
