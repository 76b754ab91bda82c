"""The tables of a report in LaTeX, to be included in a paper; they need the booktabs package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matchbound.show.section import Document, Section
from matchbound.show.tables import Column, Table

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
    "●": r"$\bullet$",
    "“": "``",
    "”": "''",
}


def to_latex(document: Document) -> str:
    """Every table of every section as a table environment; the lead of a section stands in its first caption."""
    head = f"% {_flat(document.title)}\n% {_flat(document.source)}\n% needs \\usepackage{{booktabs}}"
    return "\n\n".join([head, *(part for section in document.sections for part in _tables(section))]) + "\n"


def _tables(section: Section) -> Iterator[str]:
    if section.verdicts:
        rows = tuple((item.requirement, item.verdict, item.reason) for item in section.verdicts)
        judged = Table((Column("Claim"), Column("Verdict"), Column("Why")), rows)
        yield _table(judged, section.title, section.key, r"p{0.24\linewidth}lp{0.56\linewidth}")
    for place, made in enumerate(section.tables):
        opening = section.lead if not place else ""
        caption = " ".join(part for part in (opening, made.title or section.title, made.note) if part)
        yield _table(made.on_one_line(), caption, f"{section.key}-{place + 1}" if place else section.key)
    for part in section.parts:
        yield from _tables(part)


def text(value: str) -> str:
    """Text that LaTeX prints as it is, on one line."""
    return "".join(ESCAPES.get(c, c) for c in _flat(value))


def _flat(value: str) -> str:
    return "".join(c for c in " ".join(value.split()) if c.isprintable())


def _table(made: Table, caption: str, label: str, columns: str | None = None) -> str:
    columns = columns or "l" + "r" * (len(made.columns) - 1)
    lines: Sequence[str] = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{text(caption)}}}",
        rf"\label{{tab:matchbound-{label}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(text(column.heading) for column in made.columns) + r" \\",
        r"\midrule",
        *[" & ".join(text(cell) for cell in row) + r" \\" for row in made.rows],
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)
