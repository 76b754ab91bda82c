"""The list of modules on the architecture page, from the first line of each module's docstring.

``python docs/_ext/module_map.py`` brings the page up to date; a test fails while it is not.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "matchbound"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
START, END = "<!-- modules -->", "<!-- end of modules -->"
ORDER = (
    "cli",
    "study",
    "report",
    "planning",
    "calls",
    "results",
    "show",
    "stats",
    "counting",
    "readers",
    "data",
    "counts",
    "kernels",
    "files",
)


def first_line(path: Path) -> str:
    """What a module says that it is, in one line."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def section() -> str:
    """The list, as Markdown: one table per package, and the modules beside them."""
    unknown = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()} - set(ORDER)
    if unknown:
        raise SystemExit(f"packages that the map does not know: {', '.join(sorted(unknown))}")
    parts = []
    for package in ORDER:
        folder = SOURCE / package
        parts += [f"### {package}", "", first_line(folder / "__init__.py"), "", "| module | what |", "| --- | --- |"]
        for path in sorted(folder.rglob("*.py")):
            name = path.relative_to(folder).with_suffix("").as_posix().removesuffix("/__init__")
            if name != "__init__" and path.stat().st_size:
                parts.append(f"| `{name.replace('/', '.')}` | {first_line(path)} |")
        parts.append("")
    parts += ["### Beside the packages", "", "| module | what |", "| --- | --- |"]
    parts += [f"| `{path.stem}` | {first_line(path)} |" for path in sorted(SOURCE.glob("[!_]*.py"))]
    return "\n".join(parts)


def page_with(text: str) -> str:
    """The page with the list in its place."""
    head, rest = text.split(START, 1)
    return f"{head}{START}\n\n{section()}\n\n{END}{rest.split(END, 1)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page_with(PAGE.read_text("utf-8")), "utf-8")
