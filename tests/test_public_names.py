"""The public names: all can be imported, what they return is public too, and each has an example that runs."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import matchbound as mb

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = [name for name in mb.__all__ if not name.startswith("_")]
NUMBERS = [name for name in PUBLIC if inspect.isclass(getattr(mb, name)) and issubclass(getattr(mb, name), mb.Number)]
"""Results that are documented once, by `Number` and by the call that returns them."""


def _types() -> dict[str, type]:
    """Every dataclass of the packages whose types people hold, by name."""
    found: dict[str, type] = {}
    for module in pkgutil.walk_packages(mb.__path__, "matchbound."):
        if module.name.split(".")[1] not in ("counts", "data", "readers", "results", "report", "planning", "study"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if inspect.isclass(value) and value.__module__ == module.name and dataclasses.is_dataclass(value):
                found.setdefault(name, value)
    return found


def _callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in [*(name for name in PUBLIC if name not in NUMBERS), "Number"]:
        value = getattr(mb, name)
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value) and not issubclass(value, BaseException):
            for own, member in vars(value).items():
                made = getattr(member, "fget", None) or getattr(member, "func", None) or member
                made = getattr(made, "__func__", made)
                if not own.startswith("_") and inspect.isfunction(made):
                    yield f"{name}.{own}", made


def test_every_name_can_be_imported() -> None:
    assert len(PUBLIC) > 40
    for name in PUBLIC:
        assert getattr(mb, name) is not None


def test_what_public_calls_return_is_public() -> None:
    types, hidden = _types(), {}
    for name, function in _callables():
        told = str(function.__annotations__.get("return", ""))
        for word in re.findall(r"\b[A-Z]\w+", told):
            if word in types and word not in PUBLIC:
                hidden[name] = word
    assert hidden == {}


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in NUMBERS])
def test_a_name_is_documented(name: str) -> None:
    value = getattr(mb, name)
    if inspect.isclass(value) and issubclass(value, BaseException):
        return
    text = inspect.getdoc(value) or ""
    assert "Examples\n--------" in text, "an example that runs"
    if inspect.isfunction(value):
        assert "Parameters\n----------" in text
        assert "Returns\n-------" in text or "-> None" in str(inspect.signature(value))
    reference = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    assert re.search(rf"\b{name}\b", reference), "a place in the reference"


@pytest.mark.parametrize("name", PUBLIC)
def test_the_examples_of_a_name_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # examples may write files
    tests = doctest.DocTestFinder(recurse=False).find(getattr(mb, name), name, globs={})
    for one in tests:
        told: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mb.MatchboundWarning)
            runner.run(one, out=told.append)
        assert not told, "".join(told)


WEAK = re.compile(r"is not None|isinstance\(|__name__|>= 0\b")
ALONE = {"DaskExecutor"}
"""Names whose example needs what a test has not: a cluster."""


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in NUMBERS])
def test_an_example_shows_something(name: str) -> None:
    value = getattr(mb, name)
    if name in ALONE or (inspect.isclass(value) and issubclass(value, BaseException)):
        return
    shown = [one for one in doctest.DocTestParser().get_examples(inspect.getdoc(value) or "") if one.want]
    assert any(one.want.strip() not in ("True", "False") for one in shown), "a number or a text, not a truth"
    assert not [one.source for one in shown if WEAK.search(one.source)]


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in NUMBERS])
def test_see_also_names_what_is_there(name: str) -> None:
    value = getattr(mb, name)
    if inspect.isclass(value) and issubclass(value, BaseException):
        return
    text = inspect.getdoc(value) or ""
    found = re.search(r"^See Also\n-+\n(.+?)(?:\n\n|\Z)", text, re.M | re.S)
    assert found, "calls and results that belong together name each other"
    for other in re.split(r",\s*", " ".join(found[1].split())):
        home: Any = mb
        for part in other.split("."):
            home = getattr(home, part)
            assert home is not None


def test_methods_name_their_parameters() -> None:
    silent = []
    for name, function in _callables():
        wanted = [one for one in inspect.signature(function).parameters if one not in ("self", "cls")]
        text = inspect.getdoc(function) or ""
        told = text.partition("Parameters\n----------")[2]
        silent += [f"{name}: {one}" for one in wanted if not re.search(rf"^[\w, *]*\b{one}\b[^.]*$", told, re.M)]
    assert silent == []
