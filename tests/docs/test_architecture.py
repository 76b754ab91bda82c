"""The architecture page names only files that are there, and every module says what it is."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "matchbound"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"


def test_every_module_says_what_it_is() -> None:
    modules = [path for path in SOURCE.rglob("*.py") if path.stat().st_size]
    assert [path for path in modules if not ast.get_docstring(ast.parse(path.read_text("utf-8")))] == []


def test_files_that_the_page_names_exist() -> None:
    told = PAGE.read_text("utf-8")
    named = [name for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?)`", told) if "NAME" not in name]
    assert len(named) > 10
    missing = [name for name in named if not (SOURCE / name).exists() and not (ROOT / name).exists()]
    assert missing == []


@pytest.mark.parametrize(
    ("words", "package"),
    [
        ("comparisons are of an instance with itself", "data"),
        ("rows repeat another row exactly", "data"),
        ("the effective sample size is the least", "results"),
        ("too few to estimate the variation between identities", "results"),
    ],
)
def test_the_text_of_a_warning_stands_in_one_place(words: str, package: str) -> None:
    found = [path for path in SOURCE.rglob("*.py") if words in path.read_text("utf-8")]
    assert [path.relative_to(SOURCE).parts[0] for path in found] == [package]


@pytest.mark.parametrize("folder", ["studies", "benchmarks", "fuzz"])
def test_what_scripts_import_is_there(folder: str) -> None:
    missing = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "matchbound":
                home = importlib.import_module(node.module)
                for name in (one.name for one in node.names):
                    if not hasattr(home, name) and importlib.util.find_spec(f"{node.module}.{name}") is None:
                        missing.append(f"{path.name}: {node.module}.{name}")
    assert missing == []


def test_names_in_pages_are_there() -> None:
    """Dotted names such as ``matchbound.stats.variance.plug_in`` and files of tests and scripts, in every page."""
    scripts = {path.name for folder in ("tests", "studies", "fuzz") for path in (ROOT / folder).rglob("*.py")}
    missing = []
    for page in [*sorted((ROOT / "docs").rglob("*.md")), *ROOT.glob("*.md")]:
        text = page.read_text("utf-8")
        for name in re.findall(r"\bmatchbound(?:\.\w+)+", text):
            try:
                pkgutil.resolve_name(name)
            except (ImportError, AttributeError):
                missing.append(f"{page.name}: {name}")
        for folder, name in re.findall(r"((?:tests|studies|fuzz)/(?:\w+/)*)?(\w+\.py)\b", text):
            if not (ROOT / folder / name).exists() if folder else name.startswith("test_") and name not in scripts:
                missing.append(f"{page.name}: {folder}{name}")
    assert missing == []
