"""``import matchbound`` is light: it brings numpy and nothing heavy, and every public name can be had."""

from __future__ import annotations

import subprocess
import sys

import matchbound as mb

HEAVY = (
    "numba",
    "scipy",
    "matplotlib",
    "pyarrow",
    "dask",
    "distributed",
    "rich",
    "cyclopts",
    "pandas",
    "jinja2",
)


def test_import_brings_nothing_heavy() -> None:
    code = f"import matchbound, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_tables_are_evaluated_without_compiled_code() -> None:
    code = (
        "import warnings; warnings.simplefilter('ignore'); import matchbound as mb, sys;"
        "mb.evaluate(mb.Comparisons(list('aab'), list('abb'), [.9, .1, .8]), .5).far.interval('wilson');"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    for name in mb.__all__:
        assert getattr(mb, name) is not None
    assert set(mb.__all__) <= set(dir(mb))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(mb, "nonsense")
