"""Names that are loaded when they are first used, so that importing a package is quick.

A package lists its names once, in the ``__init__.pyi`` that type checkers read too.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any


def exported(
    package: str, hint: Callable[[str], str | None] = lambda name: None
) -> tuple[list[str], Callable[[str], Any]]:
    """The public names of a package, and its ``__getattr__``.

    Parameters
    ----------
    hint
        What to say to somebody who asks for a name that is not there, if anything.
    """
    stub = ast.parse(pkgutil.get_data(package, "__init__.pyi") or b"")
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: str(node.module) for node in imports for alias in node.names}

    def find(name: str) -> Any:
        if name not in homes:
            advice = hint(name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}" + (f"; {advice}" if advice else ""))
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(importlib.import_module(package), name, value)
        return value

    return sorted(homes), find
