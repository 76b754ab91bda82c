"""A report as one HTML page, or as tables in Markdown or LaTeX."""

from __future__ import annotations

from matchbound.errors import UsageError
from matchbound.report.page import Report


def render(report: Report, form: str = "html") -> str:
    """The report in the form asked for: ``"html"``, ``"markdown"`` or ``"latex"``."""
    if form == "html":
        from matchbound.report.html import to_html

        return to_html(report)
    if form == "markdown":
        from matchbound.report.markdown import to_markdown

        return to_markdown(report)
    if form == "latex":
        from matchbound.report.latex import to_latex

        return to_latex(report)
    raise UsageError(f"format must be html, markdown or latex; got {form!r}")
