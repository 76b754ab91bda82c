"""What a laboratory writes into a result: the system under test, who ran it, and notes of its own."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from matchbound.cli import STDIN
from matchbound.errors import UsageError

COMMAND: ContextVar[tuple[str, ...]] = ContextVar("COMMAND", default=())
"""The words of the command line that is running."""


@Parameter(name="*")
@dataclass(frozen=True)
class Laboratory:
    """What is written into the provenance beside the parameters."""

    system: Annotated[str | None, Parameter(help="Name and version of the system under test.")] = None
    operator: Annotated[str | None, Parameter(help="Who ran the test.")] = None
    test_id: Annotated[str | None, Parameter(help="Identifier of the test.")] = None
    date: Annotated[str | None, Parameter(help="When the test was made, in your words.")] = None
    note: Annotated[
        list[str] | None,
        Parameter(help="A further entry, as KEY=VALUE; repeatable.", negative_iterable=""),
    ] = None

    def entries(self) -> dict[str, str]:
        """What was given, by name."""
        given = {"system": self.system, "operator": self.operator, "test_id": self.test_id, "date": self.date}
        made = {key: value for key, value in given.items() if value is not None}
        for pair in self.note or ():
            key, equals, value = pair.partition("=")
            if not equals or not key.strip():
                raise UsageError(f"--note takes KEY=VALUE; got {pair}")
            if key.strip() in made:
                raise UsageError(f"--note: {key.strip()} is given twice")
            made[key.strip()] = value.strip()
        return made


LABORATORY = Laboratory()
"""The group where nothing is given."""


def command_line(words: Sequence[str] | None = None) -> str | None:
    """The command that is running, with paths reduced to the names of files; None where there is none."""
    tokens = COMMAND.get() if words is None else tuple(words)
    if not tokens:
        return None
    return shlex.join(["matchbound", *[_without_folder(token) for token in tokens]])


def _without_folder(token: str) -> str:
    if token == STDIN:
        return "-"
    option, equals, value = token.partition("=") if token.startswith("--") else ("", "", token)
    if "://" in value or os.sep in value:
        value = value.rstrip(os.sep).rpartition("/")[2].rpartition(os.sep)[2]
    return f"{option}{equals}{value}"
