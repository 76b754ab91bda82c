"""Formulas as MathML, which browsers draw by themselves: the site fetches nothing when it is read."""

from __future__ import annotations

from typing import Any

from latex2mathml.converter import convert
from sphinx.application import Sphinx


def _inline(self: Any, node: Any) -> None:
    self.body.append(convert(node.astext()))


def _block(self: Any, node: Any) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(convert(node.astext(), display="block"))
    self.body.append("</div>\n")


def _skip(visit: Any) -> Any:
    from docutils.nodes import SkipNode

    def visitor(self: Any, node: Any) -> None:
        visit(self, node)
        raise SkipNode

    return visitor


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer under the name ``mathml``."""
    app.add_html_math_renderer("mathml", inline_renderers=(_skip(_inline), None), block_renderers=(_skip(_block), None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
