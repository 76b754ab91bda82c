"""A report as one HTML page, in Markdown, as tables in LaTeX, or as text for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchbound.errors import UsageError
from matchbound.show.section import Document
from matchbound.show.terms import Terms, speaking

if TYPE_CHECKING:
    from matchbound.report.page import Report


def render(report: Report | Document, form: str = "html", terms: Terms = "plain") -> str:
    """The report in the form asked for: ``"html"``, ``"markdown"``, ``"latex"`` or ``"text"``.

    ``terms="iso"`` writes FMR and FNMR.
    """
    document = report if isinstance(report, Document) else report.document(terms)
    with speaking(terms):
        if form == "html":
            from matchbound.report.html import to_html

            return to_html(document)
        if form == "markdown":
            from matchbound.report.papers import to_markdown

            return to_markdown(document)
        if form == "latex":
            from matchbound.report.papers import to_latex

            return to_latex(document)
        if form == "text":
            return "\n".join(section.text() for section in document.sections)
    raise UsageError(f"format must be html, markdown, latex or text; got {form!r}")
