"""The public names: the import is light, what they return is public too, and each has an example that runs."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import matchbound as mb
from conftest import run_words
from matchbound import results

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = [name for name in mb.__all__ if not name.startswith("_")]
CLASSES = [name for name in results.__all__ if name not in PUBLIC]
OBJECTS = {**{name: getattr(mb, name) for name in PUBLIC}, **{name: getattr(results, name) for name in CLASSES}}
ERRORS = [name for name in PUBLIC if isinstance(OBJECTS[name], type) and issubclass(OBJECTS[name], BaseException)]
NUMBERS = [name for name in CLASSES if issubclass(OBJECTS[name], mb.Number)]
"""Results that are documented once, by `Number` and by the call that returns them."""
WEAK = re.compile(r"is not None|isinstance\(|__name__|>= 0\b")
ALONE = {"DaskExecutor"}
"""Names whose example needs what a test has not: a cluster."""
HEAVY = ["numba", "scipy", "matplotlib", "pyarrow", "dask", "distributed", "rich", "cyclopts", "pandas", "jinja2"]
TABLE = "mb.Comparisons(list('aab'), list('abb'), [.9, .1, .8])"


def _results() -> dict[str, type]:
    """Every dataclass of the package of results, by name."""
    found: dict[str, type] = {}
    for module in pkgutil.walk_packages(results.__path__, "matchbound.results."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if inspect.isclass(value) and value.__module__ == module.name and dataclasses.is_dataclass(value):
                found.setdefault(name, value)
    return found


def _callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, value in OBJECTS.items():
        if name in NUMBERS:
            continue
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value) and not issubclass(value, BaseException):
            for own, member in vars(value).items():
                made = getattr(member, "fget", None) or getattr(member, "func", None) or member
                made = getattr(made, "__func__", made)
                if not own.startswith("_") and inspect.isfunction(made):
                    yield f"{name}.{own}", made


def test_the_surface_is_small_and_every_name_is_listed_once() -> None:
    assert len(mb.__all__) <= 45
    for package in (mb, results):
        stub = (Path(package.__file__ or "").parent / "__init__.pyi").read_text("utf-8")
        names = re.findall(r"(\w+) as \1\b", stub)
        assert sorted(names) == package.__all__ == dir(package)


@pytest.mark.parametrize("then", ["", f"mb.evaluate({TABLE}, .5).far.interval('wilson')"])
def test_neither_the_import_nor_a_small_table_brings_anything_heavy(then: str) -> None:
    code = f"import sys, warnings, matchbound as mb; warnings.simplefilter('ignore'); {then}\n"
    code += f"print([name for name in {HEAVY!r} if name in sys.modules])"
    assert run_words([sys.executable, "-c", code]).stdout.strip() == "[]"


def test_a_name_that_is_elsewhere_is_pointed_to() -> None:
    assert not hasattr(mb, "nonsense")
    for name, where in (("eer", r"roc\(data\)\.eer"), ("RocCurve", "matchbound.results"), ("fmr", "evaluate")):
        with pytest.raises(AttributeError, match=where):
            getattr(mb, name)


def test_what_public_calls_return_is_public() -> None:
    types, hidden = _results(), {}
    for name, function in _callables():
        returned = str(function.__annotations__.get("return", ""))
        for word in re.findall(r"\b[A-Z]\w+", returned):
            if word in types and word not in OBJECTS:
                hidden[name] = word
    assert hidden == {}


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in ERRORS])
def test_a_name_is_documented_with_an_example_that_shows_something(name: str) -> None:
    value = OBJECTS[name]
    text = inspect.getdoc(value) or ""
    assert "Examples\n--------" in text or name == "Number"
    if inspect.isfunction(value):
        assert "Parameters\n----------" in text
        assert "Returns\n-------" in text or "-> None" in str(inspect.signature(value))
    if name not in (*ALONE, "Number"):
        shown = [one for one in doctest.DocTestParser().get_examples(text) if one.want]
        assert any(one.want.strip() not in ("True", "False") for one in shown), "a number or a text, not a truth"
        assert not [one.source for one in shown if WEAK.search(one.source)]


@pytest.mark.parametrize("name", OBJECTS)
def test_the_examples_of_a_name_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # examples may write files
    for one in doctest.DocTestFinder(recurse=False).find(OBJECTS[name], name, globs={}):
        problems: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mb.MatchboundWarning)
            runner.run(one, out=problems.append)
        assert not problems, "".join(problems)


@pytest.mark.parametrize("name", OBJECTS)
def test_see_also_names_what_is_there(name: str) -> None:
    found = re.search(r"^See Also\n-+\n(.+?)(?:\n\n|\Z)", inspect.getdoc(OBJECTS[name]) or "", re.M | re.S)
    for other in re.split(r",\s*", " ".join(found[1].split())) if found else ():
        first, *parts = other.split(".")
        home = OBJECTS[first]
        for part in parts:
            home = getattr(home, part)


def test_methods_name_their_parameters() -> None:
    silent = []
    for name, function in _callables():
        wanted = [one for one in inspect.signature(function).parameters if one not in ("self", "cls")]
        text = inspect.getdoc(function) or ""
        told = text.partition("Parameters\n----------")[2]
        silent += [f"{name}: {one}" for one in wanted if not re.search(rf"^[\w, *]*\b{one}\b[^.]*$", told, re.M)]
    assert silent == []
