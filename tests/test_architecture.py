"""The architecture page lists every module as it is, and names only files that are there."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import module_map  # noqa: E402


def test_the_list_of_modules_is_up_to_date() -> None:
    text = module_map.PAGE.read_text("utf-8")
    assert module_map.page_with(text) == text, "run python docs/_ext/module_map.py"


def test_every_module_says_what_it_is() -> None:
    silent = [
        path for path in module_map.SOURCE.rglob("*.py") if path.stat().st_size and not module_map.first_line(path)
    ]
    assert silent == []


def test_files_that_the_page_names_exist() -> None:
    told = module_map.PAGE.read_text("utf-8").split(module_map.START)[0]
    named = [name for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?)`", told) if "NAME" not in name]
    assert len(named) > 10
    missing = [name for name in named if not (module_map.SOURCE / name).exists() and not (ROOT / name).exists()]
    assert missing == []


WHERE = {
    "the variance of FAR": ("stats/variance.py", "def far_plug_in"),
    "Kaldi": ("readers/layouts/trials.py", "kaldi"),
    "the bound that rules comparisons out": ("counting/screen.py", "bound"),
    "--far": ("cli/roc.py", "far: "),
    "Wilson's limits": ("stats/intervals.py", "def wilson_limits"),
    "the words of the report": ("report/words.py", "def headline"),
}
"""What a new contributor looks for, the file that the page names for it, and what stands in that file."""


@pytest.mark.parametrize("sought", WHERE)
def test_the_page_leads_to_the_file(sought: str) -> None:
    path, mark = WHERE[sought]
    told = module_map.PAGE.read_text("utf-8").split("## Where is")[1].split("\n## ")[0]
    (row,) = [line for line in told.splitlines() if sought in line]
    assert f"`{path}`" in row
    assert mark in (module_map.SOURCE / path).read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "package"),
    [
        ("comparisons are of an instance with itself", "data"),
        ("rows repeat another row exactly", "data"),
        ("Wilson falls back on", "results"),
        ("identities: intervals rest on how identities differ", "results"),
    ],
)
def test_the_text_of_a_warning_stands_in_one_place(words: str, package: str) -> None:
    found = [path for path in module_map.SOURCE.rglob("*.py") if words in path.read_text("utf-8")]
    assert [path.relative_to(module_map.SOURCE).parts[0] for path in found] == [package]


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
