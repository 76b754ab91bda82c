"""Where the templates of pages come from, and what a page may run."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from matchbound.errors import MissingExtraError

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).resolve().parent


def templates() -> Environment:
    """Where the templates of pages come from: what is not there is an error, and everything is escaped."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise MissingExtraError("the HTML report needs jinja2; install matchbound[report]") from None
    return _environment()


@cache
def _environment() -> Environment:
    """Made once, because it keeps the templates that it compiled."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def content_policy(style: str, script: str) -> str:
    """A content security policy under which only this style sheet and this script run, and nothing is fetched."""

    def digest(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    return (
        f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
