"""What the verbs share beside options: warnings, names of systems, provenance, colours."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from matchbound._version import __version__
from matchbound.cli import STDIN
from matchbound.cli.laboratory import LABORATORY, Laboratory, command_line
from matchbound.cli.spoken import as_options
from matchbound.errors import MatchboundWarning, without_secrets
from matchbound.files.names import own_name, own_names
from matchbound.files.origin import Origin
from matchbound.notes import heard

PLACES = ("threshold_from", "failures", "protocol", "pilot", "gallery", "probes", "checkpoint", "output", "people")
"""Parameters of commands that are files."""


@dataclass
class Told:
    """The warnings raised while a verb ran."""

    texts: list[str] = field(default_factory=list)


@contextmanager
def listening(quiet: bool) -> Iterator[Told]:
    """Collect matchbound's warnings, and show them on stderr unless asked to be quiet."""
    told = Told()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield told
    told.texts += dict.fromkeys(as_options(without_secrets(note)) for note in heard(caught))
    for item in caught:
        if not issubclass(item.category, MatchboundWarning):
            warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)
    if not quiet:
        for text in told.texts:
            sys.stderr.write(f"warning: {text}\n")


def system_names(files: Sequence[str]) -> list[str]:
    """What to call systems: the files' own names, numbered where two are alike."""
    return own_names(files)


_read: list[Callable[[], Sequence[Origin]]] = []
"""What this run has read: files, as they were when they were opened."""


def remember(files: Sequence[str], origin: Callable[[], Sequence[Origin]]) -> None:
    """Note what files were when they were read, so that provenance is about what was counted."""
    if files:
        _read.append(origin)


def provenance(
    files: Sequence[str],
    seed: int | None,
    parameters: Mapping[str, Any],
    laboratory: Laboratory = LABORATORY,
) -> dict[str, Any]:
    """What made a result: version, parameters, seed, the digest of the input, the command, what a laboratory adds.

    A file that is no longer what was read is an error: its digest would stand beside counts of something else.
    """
    from matchbound.files.opening import file_digest

    origins = list(dict.fromkeys(origin for found in _read for origin in found()))
    _read.clear()
    for origin in origins:
        origin.check()
    digests = [file_digest("-" if name == STDIN else name) for name in files]
    for origin in origins:
        origin.check()
    return {
        "version": __version__,
        "parameters": {key: _leaves(key, value) for key, value in parameters.items() if value is not None},
        "seed": seed,
        "input": digests[0] if len(digests) == 1 else digests,
        **({} if (command := command_line()) is None else {"command": command}),
        **({"laboratory": entries} if (entries := laboratory.entries()) else {}),
    }


def _leaves(key: str, value: Any) -> Any:
    """A parameter as it may be shared: of a file, its own name."""
    return own_name(value) if key in PLACES and isinstance(value, str) else value


def forget_inputs() -> None:
    """A new command begins: what an earlier one in this process read, and did not come to report, is not its own."""
    _read.clear()


def colour_wanted(output: str | None) -> bool:
    """Colours only on a terminal, and not where NO_COLOR is set."""
    import os

    return output is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
