"""The architecture page lists every module as it is, and names only files that are there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

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
