"""Where a command reads and writes, checked before it begins: an input is never overwritten, and - is a stream."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from matchbound.cli import STDIN
from matchbound.errors import DataError, MatchboundError, UsageError
from matchbound.files.opening import is_address, local_path

WRITTEN = ("output", "plot", "report", "checkpoint")
"""Arguments that name a file to write."""
READ = ("file", "files", "gallery", "probes", "against", "pilot", "protocol", "gallery_file", "probe_file", "option")
"""Arguments that name files to read; a reader's options may."""


def settle(command: Callable[..., Any], bound: inspect.BoundArguments) -> None:
    """Check the places that a command was given, and turn ``--output -`` into standard output."""
    arguments = bound.arguments
    parameters = inspect.signature(command).parameters
    sources = list(_sources(arguments))
    for name in WRITTEN:
        place = arguments.get(name)
        if not isinstance(place, str):
            continue
        option = f"--{name.replace('_', '-')}"
        if place in ("-", STDIN):
            if name != "output" or parameters[name].default is not None:
                raise UsageError(f"{option} needs the name of a file; - stands for standard output after --output only")
            arguments[name] = None
            continue
        if not isinstance(parameters[name].default, str):  # else it is a folder, which is made
            _writable(option, place, sources)


def _below(target: Path, origin: Path) -> bool:
    return origin.is_dir() and Path(os.path.realpath(target)).is_relative_to(os.path.realpath(origin))


def _sources(arguments: dict[str, Any]) -> Iterator[str]:
    for name in READ:
        given = arguments.get(name)
        for item in (given,) if isinstance(given, str) else given or ():
            if isinstance(item, str):
                yield item.partition("=")[2] if name == "option" else item


def _writable(option: str, place: str, sources: list[str]) -> None:
    """Refuse a place that cannot be written, or that is read."""
    if not place or "\0" in place:
        raise UsageError(f"{option} needs the name of a file; got {place!r}")
    if is_address(place):
        raise UsageError(f"{option} takes a file on this machine; write it here, then copy it to {place}")
    target = Path(local_path(place))
    try:
        there = target.exists()
        for source in sources:
            if source in ("", "-", STDIN) or is_address(source) or "\0" in source:
                continue
            origin = Path(local_path(source))
            if (there and origin.exists() and os.path.samefile(target, origin)) or (
                origin.is_dir() and Path(os.path.realpath(target)).is_relative_to(os.path.realpath(origin))
            ):
                raise UsageError(
                    f"{option} {place} is read by this command and would be overwritten; name another file"
                )
        if not target.parent.is_dir():
            raise DataError(f"{place}: cannot be written (there is no folder {target.parent})")
    except (OSError, ValueError) as error:
        if isinstance(error, MatchboundError):
            raise
        raise UsageError(f"{option} {place}: cannot be written ({getattr(error, 'strerror', None) or error})") from None
