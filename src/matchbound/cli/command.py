"""One command: what it was given, the verb run, and the answer written with what it was made from."""

from __future__ import annotations

import inspect
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matchbound._version import __version__
from matchbound.cli import STDIN
from matchbound.errors import DataError, MatchboundWarning, UsageError, spelled, without_secrets
from matchbound.files.opening import file_digest, is_address, local_path, own_name, own_names
from matchbound.files.writing import whole_file, write_atomically
from matchbound.metrics import METRICS, Home
from matchbound.notes import GIVEN, Note, heard
from matchbound.results.claims import Claim, Statement, parse_claim
from matchbound.show.records import Record, to_csv, to_json
from matchbound.show.section import claim_lines, claim_record
from matchbound.show.terms import Terms, speaking

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from matchbound.counting.sources import AnySource

# the exit code when a claim is not shown
NOT_SHOWN = 3
# More notes of one kind than this are joined in one line.
FEW_OF_KIND = 4
# arguments that name a file to write
WRITTEN = ("output", "plot", "report", "checkpoint")
# arguments that name files to read; an option of a reader may, too
READ = (
    "file files data gallery probes candidates against against_gallery against_probes pilot failures threshold_from "
    "people"
)
LABORATORY = ("system", "operator", "test_id", "date", "note")
# arguments that change no number, or that may hold secrets: provenance leaves them out
NO_PARAMETERS = {
    *(*WRITTEN, *LABORATORY, "format", "terms", "quiet", "workers", "dask", "checkpoint_every", "option", "seed"),
    *("title", "search_protocol"),
}
# arguments of Python that are options of the same name; the others go to readers with ``--option``
OPTIONS = (
    "reader similarity distance missing repeats weighting far frr fpir upper width prior power level instances budget "
    "rank group people failures threshold method resamples seed workers identities"
)
Verdicts = list[tuple[Claim, float | None]]


@dataclass
class Run:
    """The command that is running.

    words
        As they were typed.
    arguments
        By name; groups of options are taken apart.
    sources
        What was read; data know their files as they were when they were opened.
    decided
        Parameters whose value the data decided; they take the place of what was typed.
    """

    words: Sequence[str] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    sources: list[AnySource] = field(default_factory=list)
    decided: dict[str, Any] = field(default_factory=dict)

    @property
    def form(self) -> str:
        """Output format: the one asked for, or else that of the ending of the output."""
        ending = Path(self.arguments.get("output") or "").suffix.lower()
        return self.arguments.get("format") or (ending[1:] if ending in (".json", ".csv") else "table")

    @property
    def quiet(self) -> bool:
        """Whether nothing but the answer and errors is wanted."""
        return bool(self.arguments.get("quiet"))


RUN: ContextVar[Run] = ContextVar("RUN")


@dataclass
class Outcome:
    """What a verb has computed.

    records
        One per number, for JSON and CSV.
    text
        Makes the table for people; called with ``colour=``.
    claims
        Verdicts, each with its threshold (None for a curve).
    parts
        Further parts of the JSON document, such as groups.
    notes
        Warnings that the text shows itself; they go into JSON and not to stderr.
    document
        A whole report, written in place of records and text.
    """

    records: Sequence[Record] = ()
    text: Callable[..., str] = str
    claims: Sequence[tuple[Claim, float | None]] = ()
    parts: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    document: str | None = None

    @property
    def passed(self) -> bool:
        """Whether every claim is shown."""
        return all(claim.shown for claim, _ in self.claims)


def execute(command: Callable[..., Outcome | None], bound: inspect.BoundArguments, words: Sequence[str]) -> int:
    """Run a verb and write its answer; the exit code."""
    bound.apply_defaults()
    arguments: dict[str, Any] = {"verb": command.__name__}
    for name, value in bound.arguments.items():
        arguments |= vars(value) if is_dataclass(value) else {name: list(value) if name == "files" else value}
    _check_places(arguments)
    laboratory_entries(arguments)
    run = Run(words, arguments)
    token = RUN.set(run)
    terms: Terms = "plain" if run.form in ("json", "csv") else arguments.get("terms", "plain")
    try:
        with speaking(terms):
            with collecting() as notes:
                outcome = command(*bound.args, **bound.kwargs)
            if not run.quiet:
                sys.stderr.write("".join(f"warning: {text}\n" for text in joined(notes)))
            if outcome is None:
                return 0
            _deliver(outcome, [*notes, *outcome.notes], run)
    finally:
        RUN.reset(token)
    return 0 if outcome.passed else NOT_SHOWN


def joined(notes: Iterable[Note]) -> Iterator[str]:
    """The notes, those of one kind in one line where there are many, as with many groups."""
    kinds: dict[str, list[Note]] = {}
    for note in notes:
        kinds.setdefault(note.code, []).append(note)
    for code, of_kind in kinds.items():
        if code == GIVEN or len(of_kind) <= FEW_OF_KIND:
            yield from of_kind
        else:
            yield f"{of_kind[0]} (and {len(of_kind) - 1} more of this kind)"


@contextmanager
def collecting() -> Iterator[list[Note]]:
    """Collect matchbound's warnings in the words of the command line; others go their way."""
    texts: list[Note] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    texts += dict.fromkeys(Note(note.code, without_secrets(in_options(note))) for note in heard(caught))
    for item in caught:
        if not issubclass(item.category, MatchboundWarning):
            warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)


def in_options(message: object) -> str:
    """An error or a note with the arguments of Python functions written as options; other text as it is."""
    return spelled(getattr(message, "marked", str(message)), _as_option)


def _as_option(name: str, value: str) -> str:
    """An argument of Python as it is typed."""
    if name == "read":
        files, _, reader = value.partition("; ")
        return f"both files ({files}) and --reader {reader}"
    name = {"n_resamples": "resamples", "rng": "seed", "G": "identities"}.get(name, name)
    if name in OPTIONS.split():
        known = RUN.get(Run()).arguments
        elsewhere = " of matchbound evaluate" if known.get("verb") == "check" and name not in known else ""
        return f"--{name} {'' if value == 'True' else value}".rstrip() + elsewhere
    if not value:
        return name
    table, dot, keys = name.partition(".")
    given = "" if value == "None" else value
    return " ".join(f"--option {table}{dot}{key}={given}" for key in keys.split("+"))


def _deliver(outcome: Outcome, notes: Sequence[str], run: Run) -> None:
    """Write the answer in the form asked for, to standard output or, whole or not at all, to a file."""
    made_from = provenance()  # which checks that the files are still what was counted
    output = None if run.arguments["verb"] == "protocol" else run.arguments.get("output")  # there it is the list
    verdicts = claim_lines(outcome.claims) if outcome.claims else ""
    if outcome.document is not None or run.form == "csv":  # the answer of a claim, also of a quiet run
        sys.stderr.write(verdicts)
    if outcome.document is not None:
        content = outcome.document
    elif run.form == "json":
        records = [claim_record(claim, threshold) for claim, threshold in outcome.claims]
        judged = {"passed": outcome.passed, "claims": records} if records else {}
        content = to_json(outcome.records, notes, made_from, also={**judged, **outcome.parts})
    elif run.form == "csv":
        content = to_csv(outcome.records)
    else:
        colour = output is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        content = verdicts + outcome.text(colour=colour)
    if output is None:
        sys.stdout.write(content)
        sys.stdout.flush()
    else:
        write_atomically(output, content)
        if outcome.document is not None:
            wrote(output)


def wrote(path: str) -> None:
    """Name on stderr a file that was written in addition to the answer."""
    if not RUN.get().quiet:
        sys.stderr.write(f"wrote {path}\n")


def write_figure(drawn: Axes | Figure, path: str) -> None:
    """Write a picture, or that of some axes; the same data give the same bytes."""
    import matplotlib

    figure: Any = getattr(drawn, "figure", drawn)
    form = Path(path).suffix.lower()[1:]
    unstamped = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[form]
    with matplotlib.rc_context({"svg.hashsalt": "matchbound"}), whole_file(path) as place:
        figure.savefig(place, format=form, dpi=200, bbox_inches="tight", metadata=unstamped)
    wrote(path)


def provenance() -> dict[str, Any]:
    """What made a result: version, parameters, seed, digests of the input, the command, what a laboratory adds.

    A file that is no longer what was read is an error: its digest would stand with counts of something else.
    """
    run = RUN.get()
    _check_unchanged(run)
    sources, arguments = _sources(run.arguments), {**run.arguments, **run.decided}
    digests = [file_digest("-" if name == STDIN else name) for name in sources]
    _check_unchanged(run)  # nor while their digests were taken
    parameters: dict[str, Any] = {}
    for key, value in arguments.items():
        zero = key in ("distance", "threshold", "far") and value not in (None, [])  # says something
        if key not in NO_PARAMETERS and (value or zero):
            names = own_name if isinstance(value, str) else own_names
            parameters[key] = names(value) if key in READ.split() else value
    words = command_line(run.words, {*sources, *(str(arguments.get(name)) for name in WRITTEN)})
    further = {"command": words, "laboratory": laboratory_entries(arguments)}
    return {
        "version": __version__,
        "parameters": parameters,
        "seed": arguments.get("seed"),
        "input": digests[0] if len(digests) == 1 else digests or None,
        **{name: value for name, value in further.items() if value},
    }


def _check_unchanged(run: Run) -> None:
    """Raise where a file is no longer what was read."""
    for origin in dict.fromkeys(origin for source in run.sources for origin in source.origin):
        origin.check()


def _sources(arguments: Mapping[str, Any]) -> list[str]:
    """The files that a command reads."""
    given = [value for name, value in arguments.items() if name in READ.split() and value]
    return [name for value in given for name in ([value] if isinstance(value, str) else value)]


def laboratory_entries(arguments: Mapping[str, Any]) -> dict[str, str]:
    """What a laboratory adds to the provenance, by name."""
    entries = {key: str(arguments[key]) for key in LABORATORY[:-1] if arguments.get(key) is not None}
    for pair in arguments.get("note") or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--note takes KEY=VALUE; got {pair}")
        if key.strip() in entries:
            raise UsageError(f"--note: {key.strip()} is given twice")
        entries[key.strip()] = value.strip()
    return entries


def command_line(words: Sequence[str], files: Collection[str]) -> str | None:
    """What was typed, with `files` by their own names and no value of ``--option``; None without a command.

    Options of readers may hold keys to where the data lie. Options that change no number are left out.
    """
    unsaid = ("--workers", "--dask", "--checkpoint", "--checkpoint-every", "--output", "-o")
    kept: list[str] = []
    for before, token in zip(("", *words), words, strict=False):
        option, equals, value = token.partition("=") if token.startswith("--") else ("", "", token)
        if before in unsaid or (option or token) in unsaid:
            continue
        if before == "--option" or option == "--option":
            name, given, _ = value.partition("=")
            kept.append(f"{option}{equals}{name}{given and '=…'}")
        elif token == STDIN:
            kept.append("-")
        else:
            kept.append(f"{option}{equals}{without_secrets(own_name(value) if value in files else value)}")
    return shlex.join(["matchbound", *kept]) if kept else None


def _check_places(arguments: Mapping[str, Any]) -> None:
    """Check where a command writes before it begins."""
    options = (pair.partition("=")[2] for pair in arguments.get("option") or ())
    sources = [path for path in map(_path, (*_sources(arguments), *options)) if path is not None]
    for name in WRITTEN:
        place = arguments.get(name)
        if place is None:
            continue
        target = _path(place)
        if target is None:
            raise UsageError(f"--{name} needs the name of a file on this machine; got {place!r}")
        try:
            if any(_is_within(target, source) for source in sources):
                what = "is read by this command and would be overwritten; name another file"
                raise UsageError(f"--{name} {place} {what}")
            if target.is_dir():
                raise DataError(f"{target}: cannot be written (it is a folder; name a file)")
            if not target.parent.is_dir():
                raise DataError(f"{target}: cannot be written (there is no folder {target.parent})")
        except OSError as error:
            raise UsageError(f"--{name} {place}: cannot be written ({error.strerror or error})") from None


def _path(name: str) -> Path | None:
    """The path of a file on this machine; None for addresses, standard streams and what cannot be a name."""
    nowhere = name in ("", "-", STDIN) or "\0" in name or is_address(name)
    return None if nowhere else Path(local_path(name))


def _is_within(target: Path, source: Path) -> bool:
    """Whether a place is that of a file or in a folder."""
    below = source.is_dir() and Path(os.path.realpath(target)).is_relative_to(os.path.realpath(source))
    return below or (target.exists() and source.exists() and target.samefile(source))


# the verb that judges claims about each kind of result
WHERE: dict[Home, str] = {
    "rates": "evaluate --threshold",
    "curve": "roc",
    "comparison": "compare",
    "groups": "groups",
    "searches": "identify",
}


def read_claims(texts: Sequence[str] | None, *homes: Home, failures: object = None) -> list[Statement]:
    """Claims in parts; what cannot be read, or not here, stops the run before it starts."""
    claims = [parse_claim(text) for text in texts or ()]
    for text, statement in zip(texts or (), claims, strict=True):
        readable: tuple[Home, ...] = tuple(METRICS[statement.metric].read) or ("searches",)
        if not set(homes) & set(readable):
            verbs = " or ".join(f"matchbound {WHERE[home]}" for home in readable)
            raise UsageError(f"claim {text!r}: {statement.metric} is judged by {verbs}")
        if statement.metric in ("gfar", "gfrr") and failures is None:
            raise UsageError(f"a claim about {statement.metric} needs --fta, --fte or --failures")
    return claims


def about(home: Home, claims: Sequence[Statement]) -> list[Statement]:
    """The claims that are read from a kind of result."""
    return [statement for statement in claims if home in METRICS[statement.metric].read]


def with_plans(verdicts: Verdicts, data: AnySource) -> Verdicts:
    """The same with the number of people that would settle an open claim about FAR or FRR."""
    if not verdicts:
        return verdicts
    from matchbound.planning.plan import with_plan

    return [(with_plan(claim, data), threshold) for claim, threshold in verdicts]
