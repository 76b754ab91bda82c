"""Where a command reads and writes, checked before it begins: an input is never overwritten, and - is a stream."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from matchbound.cli import STDIN, common
from matchbound.errors import DataError, MatchboundError, UsageError
from matchbound.files.opening import is_address, local_path

WRITTEN = ("output", "plot", "report", "checkpoint")
"""Arguments that name a file to write."""
READ = (
    "file",
    "files",
    "gallery",
    "probes",
    "against",
    "pilot",
    "protocol",
    "failures",
    "threshold_from",
    "gallery_file",
    "probe_file",
    "option",
)
"""Arguments that name files to read; a reader's options may."""


def settle(command: Callable[..., Any], bound: inspect.BoundArguments) -> None:
    """Check the places that a command was given, and turn ``--output -`` into standard output."""
    common.forget_inputs()
    sources = list(_sources(bound.arguments))
    defaults = {name: parameter.default for name, parameter in inspect.signature(command).parameters.items()}
    for name, given in dict(bound.arguments).items():
        if is_dataclass(given) and not isinstance(given, type):  # a group of options
            own = {item.name: item.default for item in fields(given)}
            kept = {part: getattr(given, part) for part in own}
            bound.arguments[name] = replace(given, **_settled(kept, own, sources))
        else:
            bound.arguments.update(_settled({name: given}, defaults, sources))


def _settled(given: dict[str, Any], defaults: dict[str, Any], sources: list[str]) -> dict[str, Any]:
    """The places among some arguments, each checked."""
    made: dict[str, Any] = {}
    for name in WRITTEN:
        place = given.get(name)
        if not isinstance(place, str):
            continue
        option = f"--{name}"
        if place in ("-", STDIN):
            if name != "output" or defaults[name] is not None:
                raise UsageError(f"{option} needs the name of a file; - stands for standard output after --output only")
            made[name] = None
        elif not isinstance(defaults[name], str):  # else it is a folder, which is made
            _writable(option, place, sources)
    return made


def _below(target: Path, origin: Path) -> bool:
    return origin.is_dir() and Path(os.path.realpath(target)).is_relative_to(os.path.realpath(origin))


def _sources(arguments: dict[str, Any]) -> Iterator[str]:
    flat = dict(arguments)
    for group in arguments.values():
        if is_dataclass(group) and not isinstance(group, type):
            flat |= {item.name: getattr(group, item.name) for item in fields(group)}
    for name in READ:
        given = flat.get(name)
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
