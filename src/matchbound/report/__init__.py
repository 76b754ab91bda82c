"""A report as one HTML page, or as tables in Markdown or LaTeX."""

from __future__ import annotations

from matchbound.errors import UsageError
from matchbound.report.page import Report
from matchbound.show.terms import Terms, worded


def render(report: Report, form: str = "html", terms: Terms = "plain") -> str:
    """The report in the form asked for: ``"html"``, ``"markdown"`` or ``"latex"``; ``terms="iso"`` writes FMR, FNMR."""
    if form == "html":
        from matchbound.report.old_html import to_html

        return worded(to_html(report), terms)
    if form == "markdown":
        from matchbound.report.old_markdown import to_markdown

        return worded(to_markdown(report), terms)
    if form == "latex":
        from matchbound.report.old_latex import to_latex

        return worded(to_latex(report), terms)
    raise UsageError(f"format must be html, markdown or latex; got {form!r}")
