"""The reference of the command line, made from the command line: the directive ``cli-reference``."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def verbs() -> dict[str, str]:
    """Each verb with its help as Markdown, as the application itself describes it."""
    from matchbound.cli.app import VERBS, build

    made = {}
    for verb in VERBS:
        whole = build(verb)[verb].generate_docs(output_format="markdown", recursive=False)
        lines = whole.splitlines()
        while lines and (not lines[0].strip() or lines[0].startswith("#")):
            lines.pop(0)
        lines = [f"matchbound {line}" if line.startswith(f"{verb} ") else line for line in lines]
        made[verb] = "\n".join(lines) + f"\n\nExample: `matchbound {verb} {VERBS[verb][2]}`\n"
    return made


class CliReference(SphinxDirective):
    """All verbs with their options."""

    def run(self) -> list[nodes.Node]:
        """One section a verb."""
        self.env.note_reread()
        text = "\n\n".join(f"## {verb}\n\n{told}" for verb, told in verbs().items())
        found: list[nodes.Node] = self.parse_text_to_nodes(text, allow_section_headings=True)
        return found


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("cli-reference", CliReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
