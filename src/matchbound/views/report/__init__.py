"""A report as one HTML page, or as tables in Markdown or LaTeX."""

from __future__ import annotations

from matchbound.errors import UsageError
from matchbound.results.report import Report


def render(report: Report, form: str = "html") -> str:
    """The report in the form asked for: ``"html"``, ``"markdown"`` or ``"latex"``."""
    if form == "html":
        from matchbound.views.report.html import to_html

        return to_html(report)
    if form == "markdown":
        from matchbound.views.report.markdown import to_markdown

        return to_markdown(report)
    if form == "latex":
        from matchbound.views.report.latex import to_latex

        return to_latex(report)
    raise UsageError(f"format must be html, markdown or latex; got {form!r}")
