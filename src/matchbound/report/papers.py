"""A report as text: for a terminal, in Markdown, or as LaTeX tables (with the booktabs package) for a paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matchbound.show.section import Document, Section, sentence_of
from matchbound.show.tables import WORDS, Column, Table

# What Markdown would read as its own.
SPECIAL = "\\`*_{}[]<>|#~$"
# What LaTeX would read as its own.
ESCAPES = {
    **{c: f"\\{c}" for c in "{}&%$#_"},
    **{c: f"{{{c}}}" for c in "[]*"},  # after the end of a row, a bracket would be a length and a star a command
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
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


def to_text(document: Document) -> str:
    """For a terminal: everything but the figures."""
    return "\n".join(section.text() for section in document.sections)


def to_markdown(document: Document) -> str:
    """Everything but the figures."""
    parts = [f"# {markdown_text(document.title)}", *_facts(document.about)]
    parts += [part for section in document.sections for part in section_lines(section, 2)]
    return "\n\n".join(parts) + "\n"


def section_lines(section: Section, depth: int) -> list[str]:
    """A section as paragraphs; `depth` is that of its heading."""
    parts = [f"{'#' * depth} {markdown_text(section.title)}"] if section.title else []
    for item in section.verdicts:
        reason = " ".join([item.reason, *(sentence_of(rule) for rule in item.rules)])
        parts.append(f"- **{markdown_text(item.verdict)}**: {markdown_text(item.requirement)}. {markdown_text(reason)}")
    parts += [markdown_text(sentence) for sentence in section.prose]
    if section.cards:
        columns = (Column("Number"), Column("Value", "number"), Column("Interval", "number"))
        parts.append(_pipe_table(columns, [(card.what, card.value, card.under) for card in section.cards]))
    for table in section.tables:
        parts += [markdown_text(table.title)] if table.title else []
        parts.append(_pipe_table(table.columns, table.on_one_line().rows))
        parts += [markdown_text(table.note)] if table.note else []
    parts += _facts(section.facts)
    parts += [line for part in section.parts for line in section_lines(part, depth + 1)]
    notes = "\n".join(f"- {markdown_text(sentence_of(note))}" for note in section.notes)
    return [*parts, *([notes] if notes else [])]


def markdown_text(value: str) -> str:
    """Plain text that Markdown leaves as it is, on one line."""
    return "".join("\\" + c if c in SPECIAL else c for c in " ".join(value.split()))


def _facts(facts: Sequence[tuple[str, str]]) -> list[str]:
    return [_pipe_table((Column("What"), Column("")), facts)] if facts else []


def _pipe_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """A pipe table; numbers are flush right."""
    marks = ["---" if column.kind in WORDS else "---:" for column in columns]
    cells = [[markdown_text(cell) for cell in row] for row in ([column.heading for column in columns], *rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (cells[0], marks, *cells[1:]))


def to_latex(document: Document) -> str:
    """Every table of every section as a table environment; the lead of a section stands in its first caption."""
    head = f"% {flat(document.title)}\n% {flat(document.source)}\n% needs \\usepackage{{booktabs}}"
    return "\n\n".join([head, *(part for section in document.sections for part in _tables(section))]) + "\n"


def _tables(section: Section) -> Iterator[str]:
    if section.verdicts:
        rows = tuple((item.requirement, item.verdict, item.reason) for item in section.verdicts)
        judged = Table((Column("Claim"), Column("Verdict"), Column("Why")), rows)
        yield _tabular(
            judged, section.title or "Claims", f"{section.key}-claims", r"p{0.24\linewidth}lp{0.56\linewidth}"
        )
    for place, table in enumerate(section.tables):
        opening = section.lead if not place else ""
        caption = " ".join(part for part in (opening, table.title or section.title, table.note) if part)
        yield _tabular(table.on_one_line(), caption, f"{section.key}-{place + 1}" if place else section.key)
    for part in section.parts:
        yield from _tables(part)


def latex_text(value: str) -> str:
    """Text that LaTeX prints as it is, on one line."""
    return "".join(ESCAPES.get(c, c) for c in flat(value))


def flat(value: str) -> str:
    """The same on one line, without what cannot be printed."""
    return "".join(c for c in " ".join(value.split()) if c.isprintable())


def _tabular(table: Table, caption: str, label: str, columns: str | None = None) -> str:
    columns = columns or "".join("l" if column.kind in WORDS else "r" for column in table.columns)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(caption)}}}",
        rf"\label{{tab:matchbound-{label}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(latex_text(column.heading) for column in table.columns) + r" \\",
        r"\midrule",
        *[" & ".join(latex_text(cell) for cell in row) + r" \\" for row in table.rows],
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)
