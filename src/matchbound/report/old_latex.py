"""The report's tables in LaTeX, to be included in a paper; they need the booktabs package."""

from __future__ import annotations

from collections.abc import Sequence

from matchbound.report import systems_words as systems
from matchbound.report import words
from matchbound.report.old_markdown import Table, curve_table, gaps_table, groups_table, points_table, verdicts_table
from matchbound.report.page import Report
from matchbound.show.numbers import level_text

ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "[": "{[}",  # after the end of a row, a bracket would be a length and a star a command
    "]": "{]}",
    "*": "{*}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "−": "$-$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "×": r"$\times$",
    "“": "``",
    "”": "''",
}


def to_latex(report: Report) -> str:
    """Tables of claims, operating points, the whole curve, groups and systems: table environments with captions."""
    level = level_text(report.level)
    source = "; ".join(f"{name} {value}" for name, value in words.provenance_rows(report))
    d = report.description
    counts = f"{d.n_genuine:,} genuine and {d.n_impostor:,} impostor comparisons of {d.n_identities:,} identities."
    parts = [
        f"% {_comment(report.title)}\n% {_comment(source)}\n% needs \\usepackage{{booktabs}}",
        _table(
            points_table(report),
            f"{words.headline(report)} {counts} Intervals at level {level}; “below” is a one-sided bound.",
            "points",
        ),
        _table(
            curve_table(report),
            f"Equal error rate{',' if report.costs else ' and'} area under the ROC curve"
            f"{' and costs' if report.costs else ''}, with {level} intervals.",
            "curve",
        ),
    ]
    if report.verdicts:
        told = f"Claims, each judged by one-sided bounds with {level} confidence."
        parts.insert(1, _table(verdicts_table(report), told, "claims", r"p{0.24\linewidth}lp{0.56\linewidth}"))
    if report.groups is not None:
        told = f"Rates within groups at threshold {report.groups.reading}, with {level} intervals."
        parts.append(_table(groups_table(report), told, "groups"))
        if report.groups.gaps:
            told = f"Differences between groups, with {level} intervals that hold for all pairs at once."
            parts.append(_table(gaps_table(report), told, "gaps"))
    if report.systems is not None:
        told = " ".join([*systems.verdict(report.systems, report.level), systems.caption(report.systems, report.level)])
        parts.append(_table(systems.systems_table(report.systems), told, "systems"))
    return "\n\n".join(parts) + "\n"


def text(value: str) -> str:
    """Text that LaTeX prints as it is, on one line."""
    return "".join(ESCAPES.get(c, c) for c in _comment(value))


def _comment(value: str) -> str:
    return "".join(c for c in " ".join(value.split()) if c.isprintable())


def _table(made: Table, caption: str, label: str, columns: str | None = None) -> str:
    headings, rows = made
    columns = columns or "l" + "r" * (len(headings) - 1)
    lines: Sequence[str] = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{text(caption)}}}",
        rf"\label{{tab:matchbound-{label}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(text(cell) for cell in headings) + r" \\",
        r"\midrule",
        *[" & ".join(text(cell) for cell in row) + r" \\" for row in rows],
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)
