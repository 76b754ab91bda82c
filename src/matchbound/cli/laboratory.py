"""What a laboratory writes into a result: the system under test, who ran it, and notes of its own."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

from matchbound.cli import STDIN
from matchbound.errors import UsageError, without_secrets
from matchbound.files.names import own_name

COMMAND: ContextVar[tuple[str, ...]] = ContextVar("COMMAND", default=())
"""The words of the command line that is running."""


@Parameter(name="*", group=Group("For a laboratory", sort_key=4))
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


CHANGE_NOTHING = ("--workers", "--dask", "--checkpoint", "--checkpoint-every", "--output", "-o")
"""Options that change no number: who does the work, and where the answer goes."""


def command_line(words: Sequence[str] | None = None) -> str | None:
    """The command that is running, with files by their own names and no value of ``--option``; None without one.

    Options of readers may hold keys to where the data lie. Options that change no number are left out.
    """
    tokens = _that_matter(COMMAND.get() if words is None else tuple(words))
    if not tokens:
        return None
    said = ["matchbound"]
    for before, token in zip(("", *tokens), tokens, strict=False):
        if before == "--option" or token.startswith("--option="):
            name, equals, _ = token.removeprefix("--option=").partition("=")
            said.append(f"{token[: len(token) - len(token.removeprefix('--option='))]}{name}{equals and '=…'}")
        else:
            said.append(_own(token))
    return shlex.join(said)


def _that_matter(tokens: Sequence[str]) -> tuple[str, ...]:
    kept = []
    for before, token in zip(("", *tokens), tokens, strict=False):
        if before not in CHANGE_NOTHING and token.partition("=")[0] not in CHANGE_NOTHING:
            kept.append(token)
    return tuple(kept)


def _own(token: str) -> str:
    if token == STDIN:
        return "-"
    option, equals, value = token.partition("=") if token.startswith("--") else ("", "", token)
    if "://" in value or "/" in value or os.sep in value:
        value = own_name(value)
    return f"{option}{equals}{without_secrets(value)}"
