"""Outputs shown in tutorials are made when the site is built.

In the folders named here, ``python`` blocks of a page run in order in one namespace, in a folder with the example
files, and a ``text`` block right after one becomes what it printed. The lines under ``$ matchbound …`` in a
``console`` block become what the command prints. A block that fails is a warning, and with ``-W`` an error.
`tests/docs/test_docs.py` checks that the text in the repository says the same; ``python docs/_ext/live_blocks.py``
brings it up to date.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import warnings
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).resolve().parents[1]

FOLDERS = ("index", "tutorials/", "coming-from/")
FENCE = re.compile(r"^```(python|text|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
logger = logging.getLogger(__name__)


def refresh(text: str, page: str) -> str:
    """The page with the output of its blocks replaced by what they print now."""
    space: dict[str, object] = {}
    made: list[str] = []
    printed, end = "", 0
    for match in FENCE.finditer(text):
        between = text[end : match.start()]
        language, body = match.groups()
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(body, page, "exec"), space)
            printed = out.getvalue()
        elif language == "console":
            body = "".join(_console(line, page) for line in body.splitlines() if line.startswith("$ "))
        elif printed and not between.strip():
            body = printed.rstrip() + "\n"
        made += [between, f"```{language}\n{body}```"]
        end = match.end()
    return "".join([*made, text[end:]])


def _console(line: str, page: str) -> str:
    from matchbound.cli import main

    out, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
        code = main(shlex.split(line)[2:])
    if code:
        raise RuntimeError(f"{page}: {line} ended with {code}: {told.getvalue()}")
    shown = out.getvalue().rstrip()
    return f"{line}\n{shown}\n" if shown else f"{line}\n"


def _source_read(app: Sphinx, docname: str, content: list[str]) -> None:
    if not docname.startswith(FOLDERS) or not app.config.make_outputs:
        return
    folder: Path = app.example_files  # type: ignore[attr-defined]
    before = os.getcwd()
    try:
        os.chdir(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content[0] = refresh(content[0], docname)
    except Exception as error:
        logger.warning("a code block fails: %s", error, location=docname)
    finally:
        os.chdir(before)


def _write_examples(app: Sphinx) -> None:
    from matchbound.data.example import write_examples

    if not app.config.make_outputs:
        return
    folder = tempfile.TemporaryDirectory(prefix="matchbound-docs-")
    write_examples(Path(folder.name))
    app.example_files = Path(folder.name)  # type: ignore[attr-defined]
    app.example_folder = folder  # type: ignore[attr-defined]


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the events of a build; ``-D make_outputs=0`` leaves outputs and pictures as they are."""
    app.add_config_value("make_outputs", True, "env", bool)
    app.connect("builder-inited", _write_examples)
    app.connect("source-read", _source_read)
    return {"parallel_read_safe": False, "parallel_write_safe": True}


def write_all(pages: list[Path]) -> None:
    """Bring the outputs in the pages themselves up to date."""
    from matchbound.data.example import write_examples

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_examples(Path(folder))
        for page in pages:
            page.write_text(refresh(page.read_text(), str(page)))


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT.parent / "tests"), str(ROOT.parent / "src")]
    os.environ["MPLBACKEND"] = "Agg"
    named = [Path(name).resolve() for name in sys.argv[1:]]
    write_all(
        named or [ROOT / "index.md", *sorted(ROOT.glob("tutorials/*.md")), *sorted(ROOT.glob("coming-from/*.md"))]
    )
