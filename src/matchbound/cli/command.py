"""One command: its arguments checked, its verb run, and the answer written with what it was made from."""

from __future__ import annotations

import inspect
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from matchbound._version import __version__
from matchbound.cli import STDIN
from matchbound.cli.messages import in_options
from matchbound.cli.options import ANSWER, LABORATORY, Answer, Laboratory
from matchbound.cli.progress import COMMAND, quiet
from matchbound.errors import DataError, MatchboundError, MatchboundWarning, UsageError, without_secrets
from matchbound.files.opening import is_address, local_path
from matchbound.files.origin import Origin, own_name, own_names
from matchbound.files.writing import write_atomically
from matchbound.notes import Note, heard
from matchbound.results.claims import Claim
from matchbound.show.claims import claim_lines, claim_record
from matchbound.show.records import Record, to_csv, to_json
from matchbound.show.terms import speaking, worded

NOT_SHOWN = 3
"""The exit code when a claim is not shown."""
WRITTEN = ("output", "plot", "report", "checkpoint")
"""Arguments that name a file to write."""
READ = (
    *("file", "files", "gallery", "probes", "candidates", "against", "against_gallery", "against_probes", "pilot"),
    *("protocol", "failures", "failed_enrolments", "failed_probes", "threshold_from", "people", "option"),
)
"""Arguments that name files to read; an option of a reader may."""
NO_PARAMETERS = {*WRITTEN, "format", "terms", "quiet", "workers", "dask", "checkpoint_every", "option", "seed", "title"}
"""Arguments that change no number, or that may hold secrets: provenance leaves them out."""


@dataclass
class Outcome:
    """What a verb has computed.

    records
        One per number, for JSON and CSV.
    text
        Makes the table for people; called with ``colour=``.
    inputs
        The files that were read.
    claims
        Verdicts, each with its threshold (None for a curve).
    parts
        Further parts of the JSON document, such as groups.
    taken
        Parameters whose value was decided by the data; they take the place of what was typed.
    notes
        Warnings that the text shows itself; they go into JSON and not to stderr.
    """

    records: Sequence[Record]
    text: Callable[..., str]
    inputs: Sequence[str] = ()
    claims: Sequence[tuple[Claim, float | None]] = ()
    parts: Mapping[str, Any] = field(default_factory=dict)
    taken: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def passed(self) -> bool:
        """Whether every claim is shown."""
        return all(claim.shown for claim, _ in self.claims)


_arguments: ContextVar[Mapping[str, Any] | None] = ContextVar("_arguments", default=None)
"""The arguments of the command that is running, by name; groups of options are taken apart."""
_read: list[Callable[[], Sequence[Origin]]] = []
"""What this run has read: files, as they were when they were opened."""


def remember(files: Sequence[str], origin: Callable[[], Sequence[Origin]]) -> None:
    """Note what files were when they were read, so that provenance is about what was counted."""
    if files:
        _read.append(origin)


def execute(command: Callable[..., Outcome | int], bound: inspect.BoundArguments) -> int:
    """Run a verb and write its answer; the exit code."""
    _read.clear()
    bound.apply_defaults()
    _check_places(bound)
    arguments = dict(_flat(bound.arguments))
    token = _arguments.set({"verb": command.__name__, **arguments})
    try:
        with collecting() as found:
            outcome = command(*bound.args, **bound.kwargs)
        if not quiet():
            sys.stderr.write("".join(f"warning: {text}\n" for text in found))
        if isinstance(outcome, int):
            return outcome
        source = provenance(outcome.inputs, **outcome.taken)
    finally:
        _arguments.reset(token)
    answer = next((group for group in bound.arguments.values() if isinstance(group, Answer)), ANSWER)
    answer = answer if answer is not ANSWER else Answer(arguments.get("format", "table"))
    _deliver(outcome, answer, [*found, *outcome.notes], source)
    return 0 if outcome.passed else NOT_SHOWN


@contextmanager
def collecting() -> Iterator[list[str]]:
    """Collect matchbound's warnings in the words of the command line; others go their way."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    texts += dict.fromkeys(without_secrets(in_options(note)) for note in heard(caught))
    for item in caught:
        if not issubclass(item.category, MatchboundWarning):
            warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)


def provenance(inputs: Sequence[str], **taken: Any) -> dict[str, Any]:
    """What made a result: version, parameters, seed, the digest of the input, the command, what a laboratory adds.

    A file that is no longer what was read is an error: its digest would stand with counts of something else.
    """
    from matchbound.files.opening import file_digest

    origins = list(dict.fromkeys(origin for found in _read for origin in found()))
    _read.clear()
    for origin in origins:
        origin.check()
    digests = [file_digest("-" if name == STDIN else name) for name in inputs]
    for origin in origins:
        origin.check()
    arguments = {**(_arguments.get() or {}), **taken}
    laboratory = arguments.pop("laboratory", LABORATORY)
    given = {key: value for key, value in arguments.items() if value or key in ("distance", "threshold", "far")}
    parameters = {key: _shared(key, value) for key, value in given.items() if key not in NO_PARAMETERS}
    return {
        "version": __version__,
        "parameters": {key: value for key, value in parameters.items() if value not in (None, [])},
        "seed": arguments.get("seed"),
        "input": digests[0] if len(digests) == 1 else digests or None,
        **({} if (words := command_line()) is None else {"command": words}),
        **({"laboratory": entries} if (entries := laboratory.entries()) else {}),
    }


def _shared(name: str, value: Any) -> Any:
    """An argument as it may be shared: of files, their own names."""
    if name in READ and value:
        return own_name(value) if isinstance(value, str) else own_names(value)
    return value


def _flat(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Arguments by name, with those of groups of options; a laboratory's entries stay together."""
    for name, value in arguments.items():
        if isinstance(value, Laboratory):
            yield "laboratory", value
        elif is_dataclass(value) and not isinstance(value, type):
            yield from ((item.name, getattr(value, item.name)) for item in fields(value))
        else:
            yield name, list(value) if isinstance(value, tuple) else value


def _deliver(outcome: Outcome, answer: Answer, notes: Sequence[str], source: Mapping[str, Any]) -> None:
    """Write the answer in the form asked for."""
    if answer.format == "json":
        verdicts = [claim_record(claim, threshold) for claim, threshold in outcome.claims]
        judged = {"passed": outcome.passed, "claims": verdicts} if verdicts else {}
        content = to_json(outcome.records, notes, source, also={**judged, **outcome.parts})
    elif answer.format == "csv":
        content = to_csv(outcome.records)
    else:
        colour = answer.output is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        with speaking(answer.terms):
            content = worded(claim_lines(outcome.claims) + outcome.text(colour=colour), answer.terms)
    write_out(content, answer.output)


def write_out(content: str, output: str | None) -> None:
    """Write to standard output or, whole or not at all, to a file."""
    if output is None:
        sys.stdout.write(content)
        sys.stdout.flush()
    else:
        write_atomically(output, content)


def command_line(words: Sequence[str] | None = None) -> str | None:
    """The command that is running, with files by their own names and no value of ``--option``; None without one.

    Options of readers may hold keys to where the data lie. Options that change no number are left out.
    """
    unsaid = ("--workers", "--dask", "--checkpoint", "--checkpoint-every", "--output", "-o")
    typed = COMMAND.get() if words is None else tuple(words)
    kept: list[str] = []
    for before, token in zip(("", *typed), typed, strict=False):
        option, equals, value = token.partition("=") if token.startswith("--") else ("", "", token)
        if before in unsaid or (option or token) in unsaid:
            continue
        if before == "--option" or option == "--option":
            name, given, _ = value.partition("=")
            kept.append(f"{option}{equals}{name}{given and '=…'}")
        elif token == STDIN:
            kept.append("-")
        else:
            place = "/" in value or os.sep in value
            kept.append(f"{option}{equals}{without_secrets(own_name(value) if place else value)}")
    return shlex.join(["matchbound", *kept]) if kept else None


def _check_places(bound: inspect.BoundArguments) -> None:
    """Check where a command reads and writes before it begins; ``--output -`` becomes standard output."""
    sources = list(_sources(dict(_flat(bound.arguments))))
    for name, value in bound.arguments.items():
        if is_dataclass(value) and not isinstance(value, type):
            own = {item.name: getattr(value, item.name) for item in fields(value)}
            places = _checked(own, {item.name: item.default for item in fields(value)}, sources)
            bound.arguments[name] = replace(value, **places) if places else value
        else:
            parameter = bound.signature.parameters[name]
            bound.arguments.update(_checked({name: value}, {name: parameter.default}, sources))


def _checked(given: Mapping[str, Any], defaults: Mapping[str, Any], sources: list[str]) -> dict[str, Any]:
    """The places to write among some arguments, each checked."""
    places: dict[str, Any] = {}
    for name in WRITTEN:
        place = given.get(name)
        if not isinstance(place, str):
            continue
        if place in ("-", STDIN):
            if name != "output" or defaults[name] is not None:
                raise UsageError(f"--{name} needs the name of a file; - stands for standard output after --output only")
            places[name] = None
        elif not isinstance(defaults[name], str):  # else it is a folder, which is made
            _check_writable(f"--{name}", place, sources)
    return places


def _sources(arguments: Mapping[str, Any]) -> Iterator[str]:
    for name in READ:
        given = arguments.get(name)
        for item in (given,) if isinstance(given, str) else given or ():
            if isinstance(item, str):
                yield item.partition("=")[2] if name == "option" else item


def _check_writable(option: str, place: str, sources: list[str]) -> None:
    """Raise where a place cannot be written, or is read."""
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
            below = origin.is_dir() and Path(os.path.realpath(target)).is_relative_to(os.path.realpath(origin))
            if below or (there and origin.exists() and os.path.samefile(target, origin)):
                raise UsageError(
                    f"{option} {place} is read by this command and would be overwritten; name another file"
                )
        if target.is_dir():
            raise DataError(f"{place}: cannot be written (it is a folder; name a file)")
        if not target.parent.is_dir():
            raise DataError(f"{place}: cannot be written (there is no folder {target.parent})")
    except (OSError, ValueError) as error:
        if isinstance(error, MatchboundError):
            raise
        raise UsageError(f"{option} {place}: cannot be written ({getattr(error, 'strerror', None) or error})") from None


def in_notes(notes: Sequence[Note]) -> tuple[Note, ...]:
    """Notes in the words of the command line."""
    return tuple(Note(note.code, in_options(note)) for note in notes)
