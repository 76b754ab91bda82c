"""A report in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from matchbound.show.section import Document, Section, sentence_of

SPECIAL = "\\`*_{}[]<>|#~$"


def to_markdown(document: Document) -> str:
    """Everything but the figures."""
    parts = [f"# {text(document.title)}"]
    parts += [table(("What", ""), document.about)] if document.about else []
    for section in document.sections:
        parts += section_lines(section, 2)
    return "\n\n".join(parts) + "\n"


def section_lines(section: Section, depth: int) -> list[str]:
    """A section as paragraphs; `depth` is that of its heading."""
    parts = [f"{'#' * depth} {text(section.title)}"] if section.title else []
    for item in section.verdicts:
        told = " ".join([item.reason, *(sentence_of(rule) for rule in item.rules)])
        parts.append(f"- **{text(item.verdict)}**: {text(item.requirement)}. {text(told)}")
    parts += [text(sentence) for sentence in section.prose]
    if section.cards:
        parts.append(table(("Number", "Value", "Interval"), [(c.what, c.value, c.under) for c in section.cards]))
    for made in section.tables:
        shown = made.on_one_line()
        parts += [text(made.title)] if made.title else []
        parts.append(table([column.heading for column in shown.columns], shown.rows))
        parts += [text(made.note)] if made.note else []
    parts += [table(("What", ""), section.facts)] if section.facts else []
    for part in section.parts:
        parts += section_lines(part, depth + 1)
    return parts + (["\n".join(f"- {text(sentence_of(note))}" for note in section.notes)] if section.notes else [])


def text(value: str) -> str:
    """Plain text that Markdown leaves as it is, on one line."""
    flat = " ".join(value.split())
    return "".join("\\" + c if c in SPECIAL else c for c in flat)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A pipe table; the first column is flush left, the others flush right."""
    marks = ["---", *["---:"] * (len(headings) - 1)]
    lines = [[text(cell) for cell in headings], marks, *[[text(cell) for cell in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
