"""Failures to enrol and to acquire on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from matchbound.data.failures import Failures
from matchbound.errors import UsageError


@Parameter(name="*")
@dataclass(frozen=True)
class FailureOptions:
    """What failed before any comparison was made."""

    fta: Annotated[str | None, Parameter(help="Failures to acquire, as FAILED/ATTEMPTS, such as 12/900.")] = None
    fte: Annotated[str | None, Parameter(help="Failures to enrol, as FAILED/PEOPLE, such as 3/150.")] = None
    failures: Annotated[
        str | None, Parameter(help="Table of attempts with columns identity, acquired and (optional) enrolled.")
    ] = None

    def load(self) -> Failures | None:
        """The failures, or None where nothing is given."""
        if self.failures is not None:
            if self.fta is not None or self.fte is not None:
                raise UsageError("--failures tells who failed; leave out --fta and --fte")
            from matchbound.readers.failures import read_failures

            return read_failures(self.failures)
        if self.fta is None and self.fte is None:
            return None
        return Failures.from_counts(fta=_counts("--fta", self.fta), fte=_counts("--fte", self.fte))

    def check(self) -> None:
        """Refuse counts that are none before any work is done."""
        for name, text in (("--fta", self.fta), ("--fte", self.fte)):
            _counts(name, text)


NO_FAILURES = FailureOptions()
"""The group where nothing is given."""


def _counts(name: str, text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    failed, slash, total = text.partition("/")
    try:
        pair = int(failed), int(total)
    except ValueError:
        pair = (-1, -1)
    if not slash or not 0 <= pair[0] <= pair[1] or pair[1] < 1:
        raise UsageError(f"{name} takes FAILED/TOTAL, such as 12/900; got {text}")
    return pair
