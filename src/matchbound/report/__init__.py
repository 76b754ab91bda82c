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
    from matchbound.report.html import to_html
    from matchbound.report.papers import to_latex, to_markdown, to_text

    forms = {"html": to_html, "markdown": to_markdown, "latex": to_latex, "text": to_text}
    if form not in forms:
        raise UsageError(f"format must be html, markdown, latex or text; got {form!r}")
    if terms not in ("plain", "iso"):
        raise UsageError(f"terms must be plain or iso; got {terms!r}")
    with speaking(terms):
        return forms[form](report if isinstance(report, Document) else report.document())
